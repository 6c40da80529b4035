//! DiskSim's two text formats.
//!
//! **ASCII**, which DiskSim 4 reads by default:
//!
//! ```text
//! arrival ms  device  block  blocks  flags
//! 0.5         0       1234   8       1
//! ```
//!
//! Units: time in milliseconds as a decimal number, blocks of 512 bytes, flags in hexadecimal: bit 0 is set
//! for a read; bit 1 (synchronous: time-critical) becomes [`Flags::SYNC`]; other bits are ignored. A device
//! is its number.
//!
//! **Validation**, recordings of real drives:
//!
//! ```text
//!    cache  block    blocks  service µs   next µs
//! W  Hit    4583176  4       663.00000    45422.00000
//! ```
//!
//! Units: times in microseconds. `service` is the time from arrival to completion, `next` the time from the
//! completion to the next arrival. There is one request at a time, with think times between them.
//!
//! `next` is not the time from arrival to arrival: in five recordings of 10,000 requests it does not depend
//! on `service`. (The slope of one on the other is between -0.06 and 0.03. It would be 1 if `next` were
//! counted from the arrival, because a program that waits longer for an answer sends its next request later.)
//! In the recording of the HP C3323A `next` is shorter than `service` in 5153 of 9074 rows. DiskSim, too,
//! sends the next request this long after the completion.
//!
//! The result of the drive's cache (`Hit`, `Miss`, and `Doub` and `Trip` in some recordings) is ignored. The
//! first request arrives at 0; the device is `0`.
//
//= DiskSim 4.0 Reference Manual 4 "Input Workloads": Traces

use super::{LineParser, words};
use crate::error::quote;
use crate::fields::{after, decimal, in_sectors, number};
use crate::record::{Flags, Names, Notes, Op, Record};
use fairhead_core::Duration;

/// The parser of the default format.
pub(crate) struct DiskSim;

impl LineParser for DiskSim {
    type Item = Record;

    fn line(&mut self, line: &str, names: &mut Names, _: &mut Notes) -> Result<Option<Record>, String> {
        if line.trim().is_empty() {
            return Ok(None);
        }
        let [time, device, block, blocks, flags] =
            words(line, "arrival time in ms, device, block, blocks, flags")?;
        let at = decimal("arrival time", time, 1_000_000)?;
        let bits = u32::from_str_radix(flags.strip_prefix("0x").unwrap_or(flags), 16);
        let bits =
            bits.map_err(|_| format!("flags {}: expected a hexadecimal number, 1 for a read", quote(flags)))?;
        let op = if bits & 1 == 1 { Op::Read } else { Op::Write };
        let mut record = in_sectors(at, op, number("block", block)?, number("number of blocks", blocks)?)?;
        if bits & 2 == 2 {
            record.flags = Flags::SYNC;
        }
        let device: u32 = number("device", device)?;
        record.device = names.add_device(&device.to_string())?;
        Ok(Some(record))
    }
}

/// The results of a drive's cache in a recording: a hit, a miss, or two or three times the expected time.
pub(crate) const CACHE_WORDS: [&str; 4] = ["Hit", "Miss", "Doub", "Trip"];

/// The parser of the format with measured times.
#[derive(Default)]
pub(crate) struct Validation {
    /// The time of the next request's arrival.
    next: Duration,
}

impl LineParser for Validation {
    type Item = Record;

    fn line(&mut self, line: &str, names: &mut Names, _: &mut Notes) -> Result<Option<Record>, String> {
        if line.trim().is_empty() {
            return Ok(None);
        }
        let [op, cache, block, blocks, service, next] = words(
            line,
            "R or W, Hit, Miss, Doub or Trip, block, blocks, service time and time to the next in µs",
        )?;
        let op = match op {
            "R" => Op::Read,
            "W" => Op::Write,
            _ => return Err(format!("operation {}: expected R or W", quote(op))),
        };
        if !CACHE_WORDS.contains(&cache) {
            return Err(format!("cache {}: expected Hit, Miss, Doub or Trip", quote(cache)));
        }
        let at = self.next;
        let mut record = in_sectors(at, op, number("block", block)?, number("number of blocks", blocks)?)?;
        let completed = after(at, decimal("service time", service, 1000)?)?;
        record.completed = Some(completed);
        if record.sectors == 0 {
            return Err("number of blocks 0: expected 1 or more".to_owned());
        }
        record.device = names.add_device("0")?;
        self.next = after(completed, decimal("time to the next", next, 1000)?)?;
        Ok(Some(record))
    }
}
