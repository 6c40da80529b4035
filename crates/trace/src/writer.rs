//! A trace in one of the formats that can be written, chosen at run time.

use crate::fields::{after, on_a_disk};
use crate::format::{blkparse, blktrace, iolog};
use crate::record::{Names, Op, Record};
use fairhead_core::Duration;
use std::io::{self, Write};

/// A format in which a trace can be written.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub enum Target {
    /// The binary format of `blktrace`, for blkparse and btt.
    Blktrace,
    /// The text that `blkparse` prints.
    Blkparse,
    /// The log of fio's `write_iolog`, version 3: without completions and tasks.
    Iolog,
}

impl Target {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Blktrace, Self::Blkparse, Self::Iolog];

    /// Returns the name that commands and languages take.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Blktrace => "blktrace",
            Self::Blkparse => "blkparse",
            Self::Iolog => "iolog",
        }
    }

    /// Returns the target of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|t| t.name() == name)
    }
}

/// Writes requests in order of time.
///
/// ```
/// use fairhead_core::{Duration, Sector};
/// use fairhead_trace::{Names, Op, Record, Target, Writer, read};
/// let mut names = Names::default();
/// names.add_device("8,0").unwrap();
/// let mut bytes = Vec::new();
/// let mut writer = Writer::new(Target::Blkparse, &mut bytes).unwrap();
/// writer.write(&Record::new(Duration::ZERO, Op::Write, Sector(64), 8), &names).unwrap();
/// writer.finish(&names).unwrap();
/// let mut trace = read("a", std::io::Cursor::new(bytes)).unwrap();
/// assert_eq!(trace.next().unwrap().unwrap().sector, Sector(64));
/// ```
pub struct Writer<W>(Kind<W>);

enum Kind<W> {
    Blktrace(blktrace::Writer<W>),
    Blkparse(blkparse::Writer<W>),
    Iolog(iolog::Writer<W>),
}

impl<W: Write> Writer<W> {
    /// Begins a trace.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn new(target: Target, out: W) -> io::Result<Self> {
        Ok(Self(match target {
            Target::Blktrace => Kind::Blktrace(blktrace::Writer::new(out)),
            Target::Blkparse => Kind::Blkparse(blkparse::Writer::new(out)),
            Target::Iolog => Kind::Iolog(iolog::Writer::new(out)?),
        }))
    }

    /// Writes one request. Its time must not be before that of the previous one. `names` are those of its
    /// trace.
    ///
    /// # Errors
    /// If it cannot be written, or the format cannot represent it.
    pub fn write(&mut self, record: &Record, names: &Names) -> io::Result<()> {
        match &mut self.0 {
            Kind::Blktrace(w) => w.write(record, names),
            Kind::Blkparse(w) => w.write(record, names),
            Kind::Iolog(w) => w.write(record, names),
        }
    }

    /// Ends the trace.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn finish(self, names: &Names) -> io::Result<()> {
        match self.0 {
            Kind::Blktrace(w) => w.finish(),
            Kind::Blkparse(w) => w.finish(names),
            Kind::Iolog(w) => w.finish(),
        }
    }
}

/// Checks that a request made by hand can stand in a trace behind one of the time `last`. Requests out of a
/// [`Trace`](crate::Trace) always can.
///
/// # Errors
/// In one line: what is wrong with it, and what would be right.
pub fn check(record: &Record, last: Duration) -> Result<(), String> {
    let at = record.at;
    if at < last {
        let (at, last) = (at.as_ns(), last.as_ns());
        return Err(format!("at {at} ns, but the request before it is at {last} ns: sort them by time"));
    }
    for (what, time) in [("issued", record.issued), ("completed", record.completed)] {
        if let Some(time) = time.filter(|time| *time < at) {
            let (time, at) = (time.as_ns(), at.as_ns());
            return Err(format!(
                "{what} at {time} ns, but made at {at} ns: expected a time that is not earlier"
            ));
        }
    }
    let latest = record.completed.unwrap_or(at).max(record.issued.unwrap_or(at));
    after(latest, Duration::ZERO)?;
    if (record.op == Op::Flush) != (record.sectors == 0) {
        let (op, n) = (record.op, record.sectors);
        return Err(format!(
            "{op:?} of {n} sectors: expected 0 sectors for a flush, and 1 or more otherwise"
        ));
    }
    on_a_disk(record.sector.0, record.sectors)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairhead_core::Sector;

    #[test]
    fn a_name_means_one_target() {
        for target in Target::ALL {
            assert_eq!(Target::named(target.name()), Some(target));
        }
        assert_eq!(Target::named("ftrace"), None);
    }

    #[test]
    fn what_no_trace_has_is_refused() {
        let (ms, good) = (Duration::from_ms, Record::new(Duration::from_ms(2), Op::Read, Sector(8), 8));
        assert_eq!(check(&good, ms(2)), Ok(()));
        assert_eq!(check(&Record { op: Op::Flush, sectors: 0, ..good }, ms(0)), Ok(()));
        for (record, last, words) in [
            (good, ms(3), "sort them by time"),
            (Record { issued: Some(ms(1)), ..good }, ms(0), "issued at 1000000 ns, but made at 2000000 ns"),
            (Record { completed: Some(ms(1)), ..good }, ms(0), "completed at"),
            (Record { completed: Some(Duration::MAX), ..good }, ms(0), "more than can be counted"),
            (Record { sectors: 0, ..good }, ms(0), "Read of 0 sectors"),
            (Record { op: Op::Flush, ..good }, ms(0), "0 sectors for a flush"),
            (Record { sector: Sector(1 << 55), ..good }, ms(0), "beyond every disk"),
        ] {
            let said = check(&record, last).unwrap_err();
            assert!(said.contains(words), "{said}");
        }
    }
}
