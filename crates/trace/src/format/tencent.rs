//! Tencent's cloud block storage: 5584 virtual volumes over ten days of October 2018 (SNIA IOTTA, "Tencent
//! Block Storage").
//!
//! ```text
//! Timestamp, Offset,  Size,IOType,VolumeID
//! 1538323200,12910952,128, 0,     1063
//! ```
//!
//! Units: time in whole seconds since 1970, offset and size in sectors of 512 bytes; type 0 reads, 1 writes.
//! A device is the number of a volume. Because the clock counts seconds, all requests of a second come at
//! once, which a replay cannot correct. Tasks and completions are not recorded. The files come as `.tgz`, an
//! archive: extract the text first.
//
//= SNIA IOTTA Tencent Block Storage README 3

use super::{LineParser, commas};
use crate::error::quote;
use crate::fields::{in_sectors, number, ticks};
use crate::record::{Names, Notes, Op, Record};

/// The parser of the format.
pub(crate) struct Tencent;

impl LineParser for Tencent {
    type Item = Record;

    fn line(&mut self, line: &str, names: &mut Names, _: &mut Notes) -> Result<Option<Record>, String> {
        if line.trim().is_empty() || line.get(..9).is_some_and(|h| h.eq_ignore_ascii_case("timestamp")) {
            return Ok(None);
        }
        let [time, offset, size, op, volume] = commas(line, "Timestamp,Offset,Size,IOType,VolumeID")?;
        let op = match op {
            "0" => Op::Read,
            "1" => Op::Write,
            _ => return Err(format!("type {}: expected 0 for a read or 1 for a write", quote(op))),
        };
        let at = ticks("timestamp", time, 1_000_000_000)?;
        let mut record = in_sectors(at, op, number("offset", offset)?, number("size", size)?)?;
        let volume: u32 = number("volume", volume)?;
        record.device = names.add_device(&volume.to_string())?;
        Ok(Some(record))
    }
}
