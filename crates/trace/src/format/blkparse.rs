//! blkparse's text, in its default form.
//!
//! ```text
//! device cpu  sequence time        pid   action flags sector + sectors [process]
//!   8,0    3        1  0.000000000   697 Q      WS    223490 + 8       [kjournald]
//!   8,0    3        2  0.000829000   697 C      WS    223490 + 8       [0]
//! ```
//!
//! Units: time in seconds, sectors of 512 bytes. A device is `MAJOR,MINOR`. The crate's `assemble` module
//! explains which events make a request, and the effect of merges, splits and remaps. Ignored are events that
//! make no request, commands that pass through (they have no `+`), messages, and the summary after the
//! events, from its first line on (`CPU0 (sda):`, `Total (sda):`). Custom output formats (`blkparse -f`) are
//! not read.
//!
//! When written, a request becomes `Q`, then `D` if its time of issue is known, and `C` if its completion is
//! known. All events are of processor 0, and there is no summary.
//
//= blkparse(1) "TRACE ACTIONS", "DEFAULT OUTPUT"

use super::LineParser;
use crate::error::quote;
use crate::event::{Action, Event, Timeline, ends_write, kind, letters, of_letters};
use crate::fields::{decimal, number, on_a_disk};
use crate::record::{DeviceId, Flags, Names, Notes, Op, Record};
use fairhead_core::{Duration, TaskId};
use std::io::{self, Write};

/// The parser of the format.
#[derive(Default)]
pub(crate) struct Blkparse {
    /// Whether the summary has begun.
    ended: bool,
}

impl LineParser for Blkparse {
    type Item = Event;

    fn line(&mut self, line: &str, names: &mut Names, _: &mut Notes) -> Result<Option<Event>, String> {
        let text = line.trim_start();
        let summary = ["CPU", "Total (", "Throughput (", "Events (", "Skips:"];
        self.ended = self.ended || summary.iter().any(|s| text.starts_with(s));
        if self.ended || text.is_empty() || text.starts_with("Input file ") {
            return Ok(None);
        }
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        let [device, cpu, sequence, time, pid, action, ref rest @ ..] = words[..] else {
            let n = words.len();
            return Err(format!(
                "{n} words; an event has at least 6: device, CPU, sequence, time, process, action"
            ));
        };
        if pair(device).is_none() {
            return Err(format!("device {}: expected MAJOR,MINOR", quote(device)));
        }
        let _: u32 = number("CPU", cpu)?;
        let _: u64 = number("sequence number", sequence)?;
        let at = decimal("time", time, 1_000_000_000)?;
        let task = TaskId(number("process's number", pid)?);
        let Some(action) = Action::of_letter(action) else { return Ok(None) };
        let Some((op, flags, sector, sectors)) = io(action, rest)? else { return Ok(None) };
        let device = names.add_device(device)?;
        if !matches!(action, Action::Complete | Action::Requeue) {
            names.name_task(task, in_brackets(text).unwrap_or_default());
        }
        Ok(Some(Event { at, action, task, device, op, flags, sector, sectors }))
    }
}

/// Parses `8,0`.
pub(super) fn pair(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.split_once(',')?;
    Some((number("", major).ok()?, number("", minor).ok()?))
}

/// Returns the text in the brackets at the end. It may contain brackets; the text before has none.
fn in_brackets(line: &str) -> Option<&str> {
    // blkparse prints `(null)` for a name that it does not know.
    let name = line.split_once(" [")?.1.trim_end().strip_suffix(']')?;
    (name != "(null)").then_some(name)
}

/// Parses `WS 223490 + 8 …`, or `FWS […` for a flush alone. `None` for commands that neither read nor write.
pub(super) fn io(action: Action, words: &[&str]) -> Result<Option<(Op, Flags, u64, u32)>, String> {
    let Some((op, flags)) = words.first().and_then(|w| of_letters(w)) else { return Ok(None) };
    // The text in the brackets is a name, and may look like anything.
    let plus = words.iter().take_while(|w| !w.starts_with('[')).position(|w| *w == "+");
    let (sector, sectors) = match plus {
        Some(at) if at >= 2 => {
            let sectors = words.get(at + 1).ok_or("the line ends at '+'; a number of sectors follows")?;
            (number("sector", words[at - 1])?, number("number of sectors", sectors)?)
        }
        _ => match words {
            [_, sector, status, ..] if status.starts_with('[') => (number("sector", sector).unwrap_or(0), 0),
            _ => (0, 0),
        },
    };
    let Some(op) = kind(op, flags, sectors) else {
        let is_end = ends_write(action, op, sector, sectors) && on_a_disk(sector, 0).is_ok();
        return Ok(is_end.then_some((op, flags, sector, 0)));
    };
    // A flush alone has no sector.
    let sector = if sectors == 0 { 0 } else { sector };
    on_a_disk(sector, sectors)?;
    Ok(Some((op, flags, sector, sectors)))
}

/// Writes the text that blkparse prints.
///
/// ```
/// use fairhead_core::{Duration, Sector};
/// use fairhead_trace::{Names, Op, Record, format::blkparse::Writer};
/// let mut names = Names::default();
/// names.add_device("8,0").unwrap();
/// let mut text = Vec::new();
/// let mut writer = Writer::new(&mut text);
/// writer.write(&Record::new(Duration::ZERO, Op::Read, Sector(2048), 8), &names).unwrap();
/// writer.finish(&names).unwrap();
/// assert!(String::from_utf8(text).unwrap().contains("2048 + 8"));
/// ```
pub struct Writer<W> {
    out: W,
    sequence: u64,
    timeline: Timeline,
}

impl<W: Write> Writer<W> {
    /// Starts a text.
    #[must_use]
    pub fn new(out: W) -> Self {
        Self { out, sequence: 0, timeline: Timeline::new() }
    }

    /// Writes one request. Its time must not be before that of the previous one. `names` are those of its
    /// trace.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&mut self, record: &Record, names: &Names) -> io::Result<()> {
        self.until(record.at, names)?;
        self.timeline.put(record);
        Ok(())
    }

    /// Writes one event as it happened, instead of requests. Its time must not be before that of the previous
    /// one.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write_event(&mut self, event: &Event, names: &Names) -> io::Result<()> {
        self.event(event, names)
    }

    /// Writes a message of the scheduler (`m`).
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write_message(&mut self, at: Duration, of: DeviceId, text: &str, names: &Names) -> io::Result<()> {
        let (seconds, ns) = (at.as_ns() / 1_000_000_000, at.as_ns() % 1_000_000_000);
        let (device, zero) = (device(of, names), 0);
        writeln!(
            self.out,
            "{device:>6} {zero:>2} {zero:>8} {seconds:>5}.{ns:09} {zero:>5} {m:>2} {n:>3} {text}",
            m = 'm',
            n = 'N'
        )
    }

    /// Ends the text.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn finish(mut self, names: &Names) -> io::Result<()> {
        self.until(Duration::MAX, names)?;
        self.out.flush()
    }

    fn until(&mut self, at: Duration, names: &Names) -> io::Result<()> {
        while let Some(event) = self.timeline.take(at) {
            self.event(&event, names)?;
        }
        Ok(())
    }

    fn event(&mut self, e: &Event, names: &Names) -> io::Result<()> {
        self.sequence += 1;
        let (seconds, ns) = (e.at.as_ns() / 1_000_000_000, e.at.as_ns() % 1_000_000_000);
        let (device, letter, flags) = (device(e.device, names), e.action.letter(), letters(e.op, e.flags));
        let who = match e.action {
            Action::Complete => "0",
            _ => names.task(e.task).unwrap_or("unknown"),
        };
        let place = if e.sectors == 0 { String::new() } else { format!("{} + {} ", e.sector, e.sectors) };
        let (sequence, pid) = (self.sequence, e.task.0);
        writeln!(
            self.out,
            "{device:>6} {cpu:>2} {sequence:>8} {seconds:>5}.{ns:09} {pid:>5} {letter:>2} {flags:>3} {place}[{who}]",
            cpu = 0
        )
    }
}

/// Returns the device in the notation of the format.
fn device(id: DeviceId, names: &Names) -> String {
    let name = names.device(id);
    if pair(name).is_some() { name.to_owned() } else { format!("259,{}", id.0) }
}
