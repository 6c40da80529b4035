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

use super::columns::{Columns, Csv};
use super::scsi;

/// The columns of a file without a header.
const COLUMNS: Columns = Columns { separator: ',', time: 1, op: Some(2), size: 3, object: 4 };

/// Returns the parser of the format.
pub(crate) const fn parser() -> Csv {
    Csv::new(COLUMNS, 1_000_000_000)
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
