//! libCacheSim's CSV, as its `trace.csv` has it.
//!
//! ```text
//! version,time, op,size,lbn
//! 1,      33800,2a,512, 42000745
//! ```
//!
//! Units: time in seconds (decimals are read), size in bytes; the object (`obj_id`, `lbn` …) is a sector of
//! 512 bytes. Because the clock mostly counts seconds, all requests of a second come at once, which a replay
//! cannot correct. Tasks and completions are not recorded. There is one disk in a file, device `0`.
//!
//! The crate's `columns` module explains the header. Without one, only the columns above are recognised.
//! Objects that are no numbers (keys of caches) are refused: they are no places on a disk.
//
//= 1a1a11a/libCacheSim FAQ "What are the units in the trace?"; data/trace.csv

use super::LineParser;
use super::columns::Columns;
use super::scsi;
use crate::record::{Names, Notes, Record};

/// The columns of a file without a header.
const COLUMNS: Columns = Columns { separator: ',', time: 1, op: Some(2), size: 3, object: 4 };

/// The parser of the format.
#[derive(Default)]
pub(crate) struct LibCacheSim {
    columns: Option<Columns>,
}

/// Whether a line begins like one of this format.
pub(super) fn has_shape(line: &str) -> bool {
    if Columns::of_header(line).is_some() {
        return true;
    }
    let fields: Vec<&str> = line.split(',').map(str::trim).collect();
    let number = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    // Tencent's files have five numbers, too, of which the fourth is 0 or 1.
    match fields[..] {
        ["1" | "2", time, op, size, lbn] => {
            let command = u8::from_str_radix(op, 16).ok().filter(|_| op.len() == 2);
            let is_command = command.and_then(scsi::operation).is_some();
            is_command && [time, size, lbn].iter().all(|s| number(s)) && size.len() > 1
        }
        _ => false,
    }
}

impl LineParser for LibCacheSim {
    type Item = Record;

    fn line(&mut self, line: &str, names: &mut Names, _: &mut Notes) -> Result<Option<Record>, String> {
        if line.trim().is_empty() {
            return Ok(None);
        }
        if let Some((columns, _)) = Columns::of_header(line) {
            self.columns = Some(columns);
            return Ok(None);
        }
        let mut record = self.columns.as_ref().unwrap_or(&COLUMNS).record(line, 1_000_000_000)?;
        record.device = names.add_device("0")?;
        Ok(Some(record))
    }
}
