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

use super::LineParser;
use super::columns::Columns;
use crate::record::{Names, Notes, Record};

/// The columns of a file without a header.
const COLUMNS: Columns = Columns { separator: ',', time: 0, object: 1, op: Some(2), size: 3 };

/// The parser of the format.
#[derive(Default)]
pub(crate) struct CloudPhysics {
    columns: Option<Columns>,
}

/// Whether a line is a header of this format.
pub(super) fn is_header(line: &str) -> bool {
    Columns::of_header(line).is_some_and(|(_, object)| object == "object")
}

impl LineParser for CloudPhysics {
    type Item = Record;

    fn line(&mut self, line: &str, names: &mut Names, _: &mut Notes) -> Result<Option<Record>, String> {
        if line.trim().is_empty() {
            return Ok(None);
        }
        if let Some((columns, _)) = Columns::of_header(line) {
            self.columns = Some(columns);
            return Ok(None);
        }
        let mut record = self.columns.as_ref().unwrap_or(&COLUMNS).record(line, 1000)?;
        record.device = names.add_device("0")?;
        Ok(Some(record))
    }
}
