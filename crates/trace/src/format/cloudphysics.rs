//! cloudPhysics, a week of 106 virtual disks, as CSV.
//!
//! ```text
//! time,         object,  op,   size
//! 5633000000100,42000745,write,512
//! ```
//!
//! Units: time in microseconds, the object is a sector of 512 bytes, size in bytes. There is one disk in a
//! file, device `0`. Tasks and completions are not recorded. The crate's `columns` module explains the
//! header; a file without one has the columns above. The traces' binary form is [`vscsi`](super::vscsi); with
//! times in seconds it is [`libcachesim`](super::libcachesim).
//
//= Waldspurger, Park, Garthwaite, Ahmad: Efficient MRC Construction with SHARDS, 5.1

use super::columns::{Columns, Csv};

/// The columns of a file without a header.
const COLUMNS: Columns = Columns { separator: ',', time: 0, object: 1, op: Some(2), size: 3 };

/// Returns the parser of the format.
pub(crate) const fn parser() -> Csv {
    Csv::new(COLUMNS, 1000)
}

/// Whether a line is a header of this format.
pub(super) fn is_header(line: &str) -> bool {
    Columns::of_header(line).is_some_and(|(_, object)| object == "object")
}
