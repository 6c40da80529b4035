//! What biosnoop and iosnoop have in common: a table that is printed while requests complete.
//!
//! A header names the columns; a line is one request, printed when it has completed. The columns differ by
//! version and option, so the header decides. A task's name may have blanks; the columns behind it are
//! counted from the end of the line.
//!
//! Times are decimal seconds, latencies decimal milliseconds, sectors have 512 bytes. A request was issued
//! its latency before it completed; it was made its time in the queue (`QUE(ms)`) before that. The kernel
//! gives flushes and commands that pass through no sector (`-1`, or 18446744073709551615): without bytes it
//! is a flush, with bytes it is left out and counted.

use super::{LineParser, ftrace};
use crate::error::quote;
use crate::event::{kind, of_letters};
use crate::fields::{after, decimal, in_sectors, number};
use crate::record::{Flags, Names, Notes, Op, Record};
use fairhead_core::{Duration, TaskId};

/// A time that is added to all: the first request may have begun before the tool's time 0.
const BEFORE: Duration = Duration::from_ms(24 * 3600 * 1000);

/// The meaning of a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Column {
    Start,
    End,
    Comm,
    Pid,
    Disk,
    Kind,
    Sector,
    Bytes,
    Queued,
    Latency,
    Other,
}

/// A tool that prints such a table.
pub(crate) struct Tool {
    /// The name, for messages.
    pub(super) name: &'static str,
    /// The meaning of a column by its name in the header.
    pub(super) column: fn(&str) -> Column,
    /// Whether a line is the header.
    pub(super) is_header: fn(&str) -> bool,
    /// The columns of a table without a header, by the shape of a line.
    pub(super) guess: fn(&[&str]) -> Option<Vec<Column>>,
    /// What to do about a table without times.
    pub(super) advice: &'static str,
}

/// The parser of a tool's table.
pub(crate) struct Snoop {
    tool: &'static Tool,
    columns: Option<Vec<Column>>,
}

impl Snoop {
    pub(crate) const fn new(tool: &'static Tool) -> Self {
        Self { tool, columns: None }
    }

    /// Returns the columns of a header, if there are all that a request needs.
    fn header(&self, line: &str) -> Result<Vec<Column>, String> {
        let columns: Vec<Column> = line.split_ascii_whitespace().map(self.tool.column).collect();
        let (name, advice) = (self.tool.name, self.tool.advice);
        let has = |column| columns.contains(&column);
        let missing = [
            (has(Column::Start) || has(Column::End), "time"),
            (has(Column::Start) || has(Column::Latency), "latency"),
            (has(Column::Kind), "type"),
            (has(Column::Sector), "sector"),
            (has(Column::Bytes), "size"),
        ];
        match missing.iter().find(|(is_there, _)| !is_there) {
            Some((_, what)) => Err(format!("a table of {name} without a column for the {what}: {advice}")),
            None => Ok(columns),
        }
    }
}

impl LineParser for Snoop {
    type Item = Record;

    fn line(&mut self, line: &str, names: &mut Names, notes: &mut Notes) -> Result<Option<Record>, String> {
        if let Some(lost) = note(line) {
            notes.lost = notes.lost.saturating_add(lost);
            return Ok(None);
        }
        if (self.tool.is_header)(line) {
            self.columns = Some(self.header(line)?);
            return Ok(None);
        }
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let columns = match &self.columns {
            Some(columns) => columns,
            None => self.columns.insert((self.tool.guess)(&words).ok_or_else(|| {
                format!("no header before the first request: expected the columns of {}", self.tool.name)
            })?),
        };
        Row::of(columns, words)?.record(names, notes)
    }
}

/// Whether a line is none of the table. Returns the number of events that it reports as lost.
fn note(line: &str) -> Option<u64> {
    let text = line.trim();
    let text = text.strip_prefix("WARNING: ").unwrap_or(text);
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    match words[..] {
        [] => Some(0),
        [first, ..] if ["Tracing", "Ending", "Detaching"].iter().any(|w| first.starts_with(w)) => Some(0),
        ["Possibly", "lost", n, "samples"] | ["lost" | "Lost", n, "events", ..] => n.parse().ok(),
        _ => ftrace::lost(text),
    }
}

/// The words of a line, by column.
struct Row<'a> {
    columns: &'a [Column],
    words: Vec<&'a str>,
    /// How many more words than columns there are: blanks in the task's name.
    extra: usize,
}

impl<'a> Row<'a> {
    fn of(columns: &'a [Column], words: Vec<&'a str>) -> Result<Self, String> {
        let (n, needed) = (words.len(), columns.len());
        match n.checked_sub(needed) {
            Some(extra) if extra == 0 || columns.contains(&Column::Comm) => {
                Ok(Self { columns, words, extra })
            }
            _ => Err(format!("{n} words; the table has {needed} columns")),
        }
    }

    /// Returns the words of a column.
    fn words(&self, column: Column) -> Option<&[&'a str]> {
        let comm = self.columns.iter().position(|c| *c == Column::Comm).unwrap_or(self.columns.len());
        let at = self.columns.iter().position(|c| *c == column)?;
        let first = if at > comm { at + self.extra } else { at };
        let count = if at == comm { 1 + self.extra } else { 1 };
        self.words.get(first..first + count)
    }

    /// Returns the word of a column.
    fn word(&self, column: Column) -> Option<&'a str> {
        self.words(column)?.first().copied()
    }

    /// Returns when the request was made, issued and completed.
    fn times(&self) -> Result<(Duration, Duration, Duration), String> {
        let time = |column| match self.word(column) {
            Some(text) => after(BEFORE, decimal("time", text, 1_000_000_000)?).map(Some),
            None => Ok(None),
        };
        let span = |column, what| match self.word(column) {
            // Not known.
            Some(text) if column == Column::Queued && text.starts_with('-') => Ok(Duration::ZERO),
            Some(text) => decimal(what, text, 1_000_000),
            None => Ok(Duration::ZERO),
        };
        let (queued, latency) =
            (span(Column::Queued, "time in the queue")?, span(Column::Latency, "latency")?);
        let (issued, completed) = match (time(Column::Start)?, time(Column::End)?) {
            (Some(start), Some(end)) => (start, end.max(start)),
            (Some(start), None) => (start, after(start, latency)?),
            (None, Some(end)) => (end.saturating_sub(latency), end),
            (None, None) => return Err("no time".to_owned()),
        };
        Ok((issued.saturating_sub(queued), issued, completed))
    }

    /// Returns the operation, sector and bytes. `None` for what is no request for sectors.
    fn place(&self, notes: &mut Notes) -> Result<Option<(Op, Flags, u64, u64)>, String> {
        let word = |column| self.word(column).unwrap_or_default();
        let (letters, sector) = (word(Column::Kind), word(Column::Sector));
        let bytes: u64 = number("number of bytes", word(Column::Bytes))?;
        if letters.is_empty() || !letters.bytes().all(|b| b.is_ascii_uppercase()) {
            return Err(format!("type {}: expected letters such as R, W or WS", quote(letters)));
        }
        let no_sector = sector == "-1" || sector == "18446744073709551615";
        if no_sector {
            // A command that passes through, such as a question for the drive's health.
            notes.empty += u64::from(bytes > 0);
            let flags = of_letters(letters).map_or(Flags::NONE, |(_, flags)| flags);
            return Ok((bytes == 0).then_some((Op::Flush, flags, 0, 0)));
        }
        let sector = number("sector", sector)?;
        let Some((op, flags)) = of_letters(letters) else { return Ok(None) };
        Ok(match (kind(op, flags, u32::from(bytes > 0)), op) {
            (Some(Op::Flush), _) => Some((Op::Flush, flags, 0, 0)),
            (None, Op::Flush) => None,
            _ => Some((op, flags, sector, bytes.div_ceil(512))),
        })
    }

    fn record(&self, names: &mut Names, notes: &mut Notes) -> Result<Option<Record>, String> {
        let (at, issued, completed) = self.times()?;
        let Some((op, flags, sector, sectors)) = self.place(notes)? else { return Ok(None) };
        let mut record = in_sectors(at, op, sector, sectors)?;
        (record.issued, record.completed, record.flags) = (Some(issued), Some(completed), flags);
        record.device = names.add_device(self.word(Column::Disk).unwrap_or_default())?;
        if let Some(pid) = self.word(Column::Pid) {
            record.task = TaskId(number("process's number", pid)?);
            names.name_task(record.task, &self.words(Column::Comm).unwrap_or_default().join(" "));
        }
        Ok(Some(record))
    }
}

/// Whether a word is a time or latency: digits with a point.
pub(super) fn is_decimal(word: &str) -> bool {
    word.contains('.') && decimal("", word, 1).is_ok()
}

/// Whether a word is a type of request.
pub(super) fn is_kind(word: &str) -> bool {
    of_letters(word).is_some() && word.bytes().all(|b| b.is_ascii_uppercase())
}
