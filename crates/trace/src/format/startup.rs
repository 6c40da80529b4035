//! Recorded start-ups: the reads that a program makes when it starts with nothing in memory, as the I/O
//! snooper of the S benchmark suite writes them.
//!
//! ```text
//! process      gap      sectors start     kind  distance  hits  flags  stamp     event
//! xterm-31657  .015820  8       113248520 Rand  -65536    0     RA     4.682409  C
//! ```
//!
//! Units: sectors of 512 bytes, stamp in seconds since recording began. Flags: `R` read, with `A` for
//! read-ahead and `M` for metadata. The process's number is the task. Ignored, because other fields have the
//! same information or it is not needed: the gap since the previous request, whether it continues it (`Seq`)
//! and how far it jumps, the count of hits, the event. The device is `0`; completions are not recorded.
//!
//! The simulator's `fh_startup_trace` reads these files itself, because it replays their order and not their
//! times.
//
//= docs/reference/benchmarks.md#4-replayed-start-ups

use super::{LineParser, words};
use crate::error::quote;
use crate::event::of_letters;
use crate::fields::{decimal, in_sectors, number};
use crate::record::{Names, Notes, Op, Record};
use fairhead_core::TaskId;

/// The parser of the format.
pub(crate) struct StartUp;

impl LineParser for StartUp {
    type Item = Record;

    fn line(&mut self, line: &str, names: &mut Names, _: &mut Notes) -> Result<Option<Record>, String> {
        if line.trim().is_empty() {
            return Ok(None);
        }
        let [process, _gap, sectors, start, kind, _distance, _hits, flags, stamp, _event] =
            words(line, "process, time, sectors, start, Seq or Rand, distance, hits, flags, stamp, event")?;
        if !matches!(kind, "Seq" | "Rand") {
            return Err(format!("{}: expected Seq or Rand", quote(kind)));
        }
        let Some((op @ (Op::Read | Op::Write), set)) = of_letters(flags) else {
            return Err(format!(
                "flags {}: expected those of a read or write, R or W with A for read-ahead, S for sync and M for metadata",
                quote(flags)
            ));
        };
        let at = decimal("stamp", stamp, 1_000_000_000)?;
        let mut record = in_sectors(at, op, number("start", start)?, number("number of sectors", sectors)?)?;
        let (name, pid) = process
            .rsplit_once('-')
            .ok_or_else(|| format!("process {}: expected NAME-NUMBER", quote(process)))?;
        record.task = TaskId(number("process's number", pid)?);
        record.flags = set;
        record.device = names.add_device("0")?;
        names.name_task(record.task, name);
        Ok(Some(record))
    }
}
