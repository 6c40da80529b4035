//! Alibaba's cloud: 1000 virtual disks over January 2020 (`io_traces.csv` of the repository
//! alibaba/block-traces).
//!
//! ```text
//! device_id,opcode,offset,      length,timestamp
//! 0,        R,     126703644672,4096,  1577808000000626
//! ```
//!
//! Units: offset and length in bytes, time in microseconds since 1970. A device is its number. Tasks and
//! completions are not recorded. A header line is ignored. `device_size.csv`, in the same folder, is not
//! read.
//
//= alibaba/block-traces README Schema

use super::{LineParser, commas};
use crate::error::quote;
use crate::fields::{in_bytes, number, ticks};
use crate::record::{Names, Notes, Op, Record};

/// The parser of the format.
pub(crate) struct Alibaba;

impl LineParser for Alibaba {
    type Item = Record;

    fn line(&mut self, line: &str, names: &mut Names, _: &mut Notes) -> Result<Option<Record>, String> {
        if line.trim().is_empty() || line.starts_with("device_id") {
            return Ok(None);
        }
        let [device, op, offset, length, time] = commas(line, "device_id,opcode,offset,length,timestamp")?;
        let device: u32 = number("device", device)?;
        let op = match op {
            "R" | "r" => Op::Read,
            "W" | "w" => Op::Write,
            _ => return Err(format!("opcode {}: expected R or W", quote(op))),
        };
        let at = ticks("timestamp", time, 1000)?;
        let mut record = in_bytes(at, op, number("offset", offset)?, number("length", length)?)?;
        record.device = names.add_device(&device.to_string())?;
        Ok(Some(record))
    }
}
