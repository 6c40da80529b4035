//! The Storage Performance Council's trace file format, revision 1.0.1: the `Financial` and `WebSearch`
//! traces among others.
//!
//! ```text
//! ASU,LBA,     Size,Opcode,Timestamp[,more …]
//! 0,  20941264,8192,W,     0.551706
//! ```
//!
//! Units: LBA in sectors of 512 bytes from the start of the application storage unit (ASU), size in bytes,
//! time in seconds since the trace began, as a decimal number. A device is an ASU. Opcodes are `R` and `W` in
//! either case. Further fields are ignored, as the specification requires. Tasks and completions are not
//! recorded.
//
//= SPC Trace File Format Specification 1.0.1

use super::LineParser;
use crate::error::quote;
use crate::fields::{decimal, in_bytes, in_sectors, number};
use crate::record::{Names, Notes, Op, Record};

/// The parser of the format.
pub(crate) struct Spc;

impl LineParser for Spc {
    type Item = Record;

    fn line(&mut self, line: &str, names: &mut Names, _: &mut Notes) -> Result<Option<Record>, String> {
        if line.trim().is_empty() {
            return Ok(None);
        }
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        let [asu, lba, size, op, time, ..] = fields[..] else {
            let n = fields.len();
            return Err(format!("{n} fields; a request has 5 or more: ASU,LBA,Size,Opcode,Timestamp"));
        };
        let op = match op {
            "R" | "r" => Op::Read,
            "W" | "w" => Op::Write,
            _ => return Err(format!("opcode {}: expected R or W", quote(op))),
        };
        let at = decimal("timestamp", time, 1_000_000_000)?;
        let sectors = in_bytes(at, op, 0, number("size", size)?)?.sectors;
        let mut record = in_sectors(at, op, number("LBA", lba)?, u64::from(sectors))?;
        let asu: u32 = number("ASU", asu)?;
        record.device = names.add_device(&asu.to_string())?;
        Ok(Some(record))
    }
}
