//! MSR Cambridge: a week of 36 volumes on 13 servers, 2007 (SNIA IOTTA, trace set 388).
//!
//! ```text
//! Timestamp,         Hostname,DiskNumber,Type,Offset,    Size, ResponseTime
//! 128166372003061629,usr,     0,         Read,7014609920,24576,41286
//! ```
//!
//! Units: time and response time in 100 ns (Windows' file time, since 1601), offset and size in bytes. A
//! device is `HOSTNAME.DISKNUMBER`. The response time gives the completion. Tasks are not recorded. A header
//! line is ignored. Requests are nearly in order of time; in some files the order is off by more than a
//! window, see `Notes::late`.
//
//= SNIA IOTTA MSR Cambridge README 3

use super::{LineParser, commas};
use crate::error::quote;
use crate::fields::{after, in_bytes, number, ticks};
use crate::record::{Names, Notes, Op, Record};

/// The unit of a file time, in nanoseconds. Times fit until the year 2111.
const TICK_NS: u64 = 100;

/// The parser of the format.
pub(crate) struct Msr;

impl LineParser for Msr {
    type Item = Record;

    fn line(&mut self, line: &str, names: &mut Names, _: &mut Notes) -> Result<Option<Record>, String> {
        if line.trim().is_empty()
            || line.trim_start().get(..9).is_some_and(|h| h.eq_ignore_ascii_case("timestamp"))
        {
            return Ok(None);
        }
        let [time, host, disk, op, offset, size, response] =
            commas(line, "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime")?;
        let at = ticks("timestamp", time, TICK_NS)?;
        let disk: u32 = number("disk number", disk)?;
        let op = match op {
            _ if op.eq_ignore_ascii_case("read") => Op::Read,
            _ if op.eq_ignore_ascii_case("write") => Op::Write,
            _ => return Err(format!("type {}: expected Read or Write", quote(op))),
        };
        let mut record = in_bytes(at, op, number("offset", offset)?, number("size", size)?)?;
        record.completed = Some(after(at, ticks("response time", response, TICK_NS)?)?);
        record.device = names.add_device(&format!("{host}.{disk}"))?;
        Ok(Some(record))
    }
}
