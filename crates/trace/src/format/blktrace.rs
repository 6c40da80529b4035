//! blktrace's binary format: `sda.blktrace.0`, `sda.blktrace.1` …, a file for each processor, or one stream
//! (`blktrace -o -`).
//!
//! Each event is 48 bytes in the byte order of the machine that recorded it, then `pdu_len` bytes that depend
//! on the event:
//!
//! ```text
//! 0      4         8      16      24     28      32   36      40   44     46       48
//! magic  sequence  time   sector  bytes  action  pid  device  cpu  error  pdu_len  pdu …
//! ```
//!
//! Units: time in nanoseconds since the recording began, sectors of 512 bytes, length in bytes. The magic is
//! `0x65617400` plus the version, 7; its byte order is that of the file. The lower half of the action is the
//! kind of event, its upper half the kind of request: read or write, sync, metadata and so on.
//!
//! The files of a set are merged by time; a stream is put in order within a window. The crate's `assemble`
//! module explains which events make a request. A device is `MAJOR,MINOR`. Ignored are commands that pass
//! through (`BLK_TC_PC`), messages, the wall clock, drivers' data, cgroups (which blkparse 1.2.0 itself takes
//! for damage), and error numbers.
//!
//! When written, a request becomes `Q`, then `D` if its time of issue is known, and `C` if its completion is
//! known. Alternatively the caller writes event by event, with messages. The name of each task is written
//! once. A device whose name is not `MAJOR,MINOR` becomes `259,NUMBER`.
//
//= linux include/uapi/linux/blktrace_api.h struct blk_io_trace

use crate::error::{Place, TraceError};
use crate::event::{Action, Event, Timeline, ends_write, kind};
use crate::events::Events;
use crate::fields::on_a_disk;
use crate::record::{DeviceId, Flags, Names, Notes, Op, Record};
use crate::unpack::fill;
use fairhead_core::{Duration, TaskId};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufReader, Read, Write};

const MAGIC: u32 = 0x6561_7400;
const VERSION: u32 = 7;
const HEADER_BYTES: usize = 48;
/// The bits of the kind of request, as they are in the action.
const READ: u32 = 1 << 16;
const WRITE: u32 = 1 << 17;
const FLUSH: u32 = 1 << 18;
const SYNC: u32 = 1 << 19;
const QUEUE: u32 = 1 << 20;
const ISSUE: u32 = 1 << 22;
const COMPLETE: u32 = 1 << 23;
const FS: u32 = 1 << 24;
const PC: u32 = 1 << 25;
const NOTIFY: u32 = 1 << 26;
/// The lower half of a note that is a message, and the length of the longest message that the kernel writes.
const MESSAGE: u32 = 2;
const MESSAGE_MAX: usize = 127;
const AHEAD: u32 = 1 << 27;
const META: u32 = 1 << 28;
const DISCARD: u32 = 1 << 29;
const FUA: u32 = 1 << 31;
/// A bit in the lower half: the pdu starts with the id of a cgroup.
const CGROUP: u32 = 1 << 8;
/// Times above this are damage.
const NS_MAX: u64 = u64::MAX / 8 * 7;

/// Whether a file that begins with these bytes has this format.
pub(crate) fn is_magic(head: &[u8]) -> bool {
    let Some(first) = head.first_chunk() else { return false };
    [u32::from_le_bytes(*first), u32::from_be_bytes(*first)].iter().any(|m| m & 0xffff_ff00 == MAGIC)
}

/// The parser of one file.
pub(crate) struct Blktrace {
    file: String,
    input: BufReader<Box<dyn Read>>,
    /// The number of bytes read.
    offset: u64,
    big_endian: bool,
    devices: BTreeMap<u32, DeviceId>,
}

impl Blktrace {
    pub(crate) fn new(file: &str, input: Box<dyn Read>) -> Self {
        Self {
            file: file.to_owned(),
            input: BufReader::new(input),
            offset: 0,
            big_endian: false,
            devices: BTreeMap::new(),
        }
    }

    fn error(&self, at: u64, message: String) -> TraceError {
        TraceError { file: self.file.clone(), place: Place::Byte(at), message }
    }

    /// Fills the buffer and returns the number of bytes that there were.
    fn fill(&mut self, buffer: &mut [u8]) -> Result<usize, TraceError> {
        let filled = fill(&mut self.input, buffer)
            .map_err(|e| self.error(self.offset, format!("cannot be read any further: {e}")))?;
        self.offset += filled as u64;
        Ok(filled)
    }

    /// Returns the next event's header and the bytes after it.
    fn raw(&mut self) -> Result<Option<(Header, Vec<u8>)>, TraceError> {
        let start = self.offset;
        let mut bytes = [0; HEADER_BYTES];
        let n = self.fill(&mut bytes)?;
        if n == 0 {
            return Ok(None);
        }
        if n < HEADER_BYTES {
            let message = format!("the file ends in an event: {n} bytes of {HEADER_BYTES}");
            return Err(self.error(start, message));
        }
        if start == 0 {
            self.big_endian = bytes[0] == 0x65;
        }
        let header = Header::from(&bytes, self.big_endian);
        if header.magic & 0xffff_ff00 != MAGIC {
            let message =
                format!("no event begins here: {:#010x} instead of {:#010x}", header.magic, MAGIC | VERSION);
            return Err(self.error(start, message));
        }
        if header.magic & 0xff != VERSION {
            let message =
                format!("an event of version {}; only version {VERSION} is known", header.magic & 0xff);
            return Err(self.error(start, message));
        }
        let mut pdu = vec![0; usize::from(header.pdu_len)];
        let n = self.fill(&mut pdu)?;
        if n < pdu.len() {
            let message = format!("the file ends in an event's data: {n} bytes of {}", pdu.len());
            return Err(self.error(start, message));
        }
        Ok(Some((header, pdu)))
    }

    fn device(&mut self, raw: u32, names: &mut Names) -> Result<DeviceId, String> {
        if let Some(id) = self.devices.get(&raw) {
            return Ok(*id);
        }
        let id = names.add_device(&format!("{},{}", raw >> 20, raw & 0xf_ffff))?;
        self.devices.insert(raw, id);
        Ok(id)
    }

    fn event(&mut self, h: &Header, names: &mut Names) -> Result<Option<Event>, String> {
        let Some(action) = h.what() else { return Ok(None) };
        let sectors = h.bytes.div_ceil(512);
        let flags = h.flags();
        let is_end = ends_write(action, h.op(), h.sector, sectors) && on_a_disk(h.sector, 0).is_ok();
        let Some(op) = kind(h.op(), flags, sectors).or(is_end.then_some(Op::Write)) else { return Ok(None) };
        if h.time >= NS_MAX {
            return Err(format!("a time of {} ns is beyond what can be counted", h.time));
        }
        let sector = if op == Op::Flush { 0 } else { h.sector };
        on_a_disk(sector, sectors)?;
        let device = self.device(h.device, names)?;
        let (at, task) = (Duration::from_ns(h.time), TaskId(h.pid));
        Ok(Some(Event { at, action, task, device, op, flags, sector, sectors }))
    }
}

impl Events for Blktrace {
    fn next(&mut self, names: &mut Names, notes: &mut Notes) -> Result<Option<Event>, TraceError> {
        loop {
            let start = self.offset;
            let Some((header, pdu)) = self.raw()? else { return Ok(None) };
            if header.action & !CGROUP == NOTIFY {
                let name = pdu.split(|b| *b == 0).next().unwrap_or_default();
                // A later name is that of the program that the process has become.
                names.rename_task(TaskId(header.pid), &String::from_utf8_lossy(name));
            }
            if header.action & !CGROUP == NOTIFY | MESSAGE {
                notes.lost = notes.lost.saturating_add(lost(&pdu));
            }
            let event = self.event(&header, names).map_err(|message| self.error(start, message))?;
            if event.is_some() {
                return Ok(event);
            }
        }
    }
}

/// Returns how many events a message reports as lost: `fairhead lost 25 events`, as [`Writer::write_lost`]
/// writes.
fn lost(message: &[u8]) -> u64 {
    let text = String::from_utf8_lossy(message);
    let words: Vec<&str> = text.trim_end_matches('\0').split(' ').collect();
    match words[..] {
        ["fairhead", "lost", n, "events"] => n.parse().unwrap_or(0),
        _ => 0,
    }
}

/// The fixed part of an event.
struct Header {
    magic: u32,
    time: u64,
    sector: u64,
    bytes: u32,
    action: u32,
    pid: u32,
    device: u32,
    pdu_len: u16,
}

impl Header {
    fn from(bytes: &[u8; HEADER_BYTES], big_endian: bool) -> Self {
        let part = |at: usize, n: usize| {
            let fold = |sum: u64, b: &u8| sum << 8 | u64::from(*b);
            let bytes = &bytes[at..at + n];
            if big_endian { bytes.iter().fold(0, fold) } else { bytes.iter().rev().fold(0, fold) }
        };
        let word = |at| u32::try_from(part(at, 4)).unwrap_or(u32::MAX);
        Self {
            magic: word(0),
            time: part(8, 8),
            sector: part(16, 8),
            bytes: word(24),
            action: word(28),
            pid: word(32),
            device: word(36),
            pdu_len: u16::try_from(part(46, 2)).unwrap_or(u16::MAX),
        }
    }

    fn what(&self) -> Option<Action> {
        if self.action & (NOTIFY | PC) != 0 {
            return None;
        }
        // The lower half, without the bit for a cgroup.
        Some(match self.action & 0xffff & !CGROUP {
            1 => Action::Queue,
            6 => Action::Requeue,
            7 => Action::Issue,
            8 => Action::Complete,
            12 => Action::Insert,
            _ => return None,
        })
    }

    fn op(&self) -> Op {
        match self.action {
            a if a & DISCARD != 0 => Op::Discard,
            a if a & WRITE != 0 => Op::Write,
            a if a & FLUSH != 0 && self.bytes == 0 => Op::Flush,
            _ => Op::Read,
        }
    }

    fn flags(&self) -> Flags {
        let bits = [
            (SYNC, Flags::SYNC),
            (META, Flags::META),
            (AHEAD, Flags::AHEAD),
            (FUA, Flags::FUA),
            (FLUSH, Flags::PREFLUSH),
        ];
        let set = bits.into_iter().filter(|(bit, _)| self.action & bit != 0);
        set.fold(Flags::NONE, |all, (_, flag)| all | flag)
    }
}

/// Writes one stream of this format, little-endian.
///
/// ```
/// use fairhead_core::{Duration, Sector};
/// use fairhead_trace::{Names, Op, Record, format::blktrace::Writer, read};
/// let mut names = Names::default();
/// names.add_device("8,0").unwrap();
/// let mut bytes = Vec::new();
/// let mut writer = Writer::new(&mut bytes);
/// writer.write(&Record::new(Duration::ZERO, Op::Read, Sector(2048), 8), &names).unwrap();
/// writer.finish().unwrap();
/// let mut trace = read("a", std::io::Cursor::new(bytes)).unwrap();
/// assert_eq!(trace.next().unwrap().unwrap().sector, Sector(2048));
/// ```
pub struct Writer<W> {
    out: W,
    sequence: u32,
    timeline: Timeline,
    named: BTreeSet<u32>,
    devices: Vec<u32>,
}

impl<W: Write> Writer<W> {
    /// Starts a stream.
    #[must_use]
    pub fn new(out: W) -> Self {
        let (timeline, named, devices) = (Timeline::new(), BTreeSet::new(), Vec::new());
        Self { out, sequence: 0, timeline, named, devices }
    }

    /// Writes one request. Its time must not be before that of the previous one. `names` are those of its
    /// trace.
    ///
    /// # Errors
    /// If it cannot be written, or has 4 GiB or more, which the format cannot represent.
    pub fn write(&mut self, record: &Record, names: &Names) -> io::Result<()> {
        fits(record.sectors)?;
        self.introduce(record.at, record.task, record.device, names)?;
        while let Some(event) = self.timeline.take(record.at) {
            self.event(&event)?;
        }
        self.timeline.put(record);
        Ok(())
    }

    /// Writes one event as it happened, instead of requests. Its time must not be before that of the previous
    /// one.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub fn write_event(&mut self, event: &Event, names: &Names) -> io::Result<()> {
        fits(event.sectors)?;
        self.introduce(event.at, event.task, event.device, names)?;
        self.event(event)
    }

    /// Writes a message of the scheduler (`m`), of up to 127 bytes.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write_message(
        &mut self,
        at: Duration,
        device: DeviceId,
        text: &str,
        names: &Names,
    ) -> io::Result<()> {
        self.introduce(at, TaskId(0), device, names)?;
        let device = self.devices[device.0 as usize];
        let text = &text.as_bytes()[..text.len().min(MESSAGE_MAX)];
        self.header(at, 0, 0, MESSAGE | NOTIFY, TaskId(0), device, text)
    }

    /// Writes the name of a task: its first, or another that it has taken on (`exec`).
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write_name(&mut self, at: Duration, task: TaskId, name: &str) -> io::Result<()> {
        self.named.insert(task.0);
        let mut pdu = name.as_bytes()[..name.len().min(15)].to_vec();
        pdu.push(0);
        self.header(at, 0, 0, NOTIFY, task, 0, &pdu)
    }

    /// Writes that events were lost, as a message that this crate's reader counts in [`Notes::lost`].
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write_lost(
        &mut self,
        at: Duration,
        device: DeviceId,
        events: u64,
        names: &Names,
    ) -> io::Result<()> {
        self.write_message(at, device, &format!("fairhead lost {events} events"), names)
    }

    /// Numbers devices and names tasks that appear for the first time.
    fn introduce(&mut self, at: Duration, task: TaskId, device: DeviceId, names: &Names) -> io::Result<()> {
        while self.devices.len() <= device.0 as usize {
            let id = u32::try_from(self.devices.len()).map_err(io::Error::other)?;
            self.devices.push(number(names.device(DeviceId(id))).unwrap_or(259 << 20 | (id & 0xf_ffff)));
        }
        match names.task(task) {
            Some(name) if !self.named.contains(&task.0) => self.write_name(at, task, name),
            _ => Ok(()),
        }
    }

    /// Ends the stream.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn finish(mut self) -> io::Result<()> {
        while let Some(event) = self.timeline.take(Duration::MAX) {
            self.event(&event)?;
        }
        self.out.flush()
    }

    fn event(&mut self, e: &Event) -> io::Result<()> {
        let what = match e.action {
            Action::Queue => 1 | QUEUE,
            Action::Insert => 12 | QUEUE,
            Action::BackMerge => 2 | QUEUE,
            Action::FrontMerge => 3 | QUEUE,
            Action::Issue => 7 | ISSUE,
            Action::Complete => 8 | COMPLETE,
            Action::Requeue => 6 | 1 << 21,
        };
        let op = match e.op {
            Op::Read => READ,
            Op::Write => WRITE,
            Op::Discard => DISCARD | WRITE,
            Op::Flush => FLUSH,
        };
        let bits = [
            (SYNC, Flags::SYNC),
            (META, Flags::META),
            (AHEAD, Flags::AHEAD),
            (FUA, Flags::FUA),
            (FLUSH, Flags::PREFLUSH),
        ];
        let set = bits.into_iter().filter(|(_, f)| e.flags.has(*f)).fold(0, |all, (bit, _)| all | bit);
        let device = self.devices[e.device.0 as usize];
        self.header(e.at, e.sector, e.sectors * 512, what | op | set | FS, e.task, device, &[])
    }

    #[allow(clippy::too_many_arguments, reason = "the fields of one header, in its order")]
    fn header(
        &mut self,
        at: Duration,
        sector: u64,
        bytes: u32,
        action: u32,
        task: TaskId,
        device: u32,
        pdu: &[u8],
    ) -> io::Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        let mut b = Vec::with_capacity(HEADER_BYTES + pdu.len());
        for word in [MAGIC | VERSION, self.sequence] {
            b.extend_from_slice(&word.to_le_bytes());
        }
        b.extend_from_slice(&at.as_ns().to_le_bytes());
        b.extend_from_slice(&sector.to_le_bytes());
        for word in [bytes, action, task.0, device, 0, (pdu.len() as u32) << 16] {
            b.extend_from_slice(&word.to_le_bytes());
        }
        b.extend_from_slice(pdu);
        self.out.write_all(&b)
    }
}

fn fits(sectors: u32) -> io::Result<()> {
    if u64::from(sectors) * 512 <= u64::from(u32::MAX) {
        return Ok(());
    }
    let message = "a request of 4 GiB or more cannot be written in blktrace's format";
    Err(io::Error::new(io::ErrorKind::InvalidInput, message))
}

/// Returns the number that the kernel gives to a device such as `8,16`.
fn number(name: &str) -> Option<u32> {
    let (major, minor) = name.split_once(',')?;
    let (major, minor): (u32, u32) = (major.parse().ok()?, minor.parse().ok()?);
    (major < 1 << 12 && minor < 1 << 20).then_some(major << 20 | minor)
}
