//! What the CSV files of cloudPhysics and libCacheSim have in common: columns for time, object, size and
//! operation, named by a header, in any order; columns with other names are ignored.
//!
//! An object is the first sector of a request. An operation is a word (`read`, `write`, and those of caches,
//! `get`, `set`) or a SCSI command in hexadecimal (`28`, `2a`); without the column all requests are reads.

use super::{LineParser, scsi};
use crate::error::quote;
use crate::fields::{decimal, in_bytes, in_sectors, number};
use crate::record::{Names, Notes, Op, Record};

/// The characters that separate fields, in order of preference.
const SEPARATORS: [char; 3] = [',', '\t', '|'];

/// Where the columns are, and how many there are at least.
#[derive(Clone, Debug)]
pub(super) struct Columns {
    pub(super) separator: char,
    pub(super) time: usize,
    pub(super) object: usize,
    pub(super) size: usize,
    pub(super) op: Option<usize>,
}

impl Columns {
    /// Returns the columns of a header, with the name of the object's. `None` for a line that is no header.
    pub(super) fn of_header(line: &str) -> Option<(Self, String)> {
        let separator = SEPARATORS.into_iter().find(|s| line.contains(*s))?;
        let name = |s: &str| s.trim_matches(['#', ' ', '"']).to_ascii_lowercase().replace('-', "_");
        let names: Vec<String> = line.split(separator).map(name).collect();
        let find = |known: &[&str]| names.iter().position(|n| known.contains(&n.as_str()));
        let time = find(&["time", "timestamp", "clock_time", "real_time", "ts"])?;
        let object = find(&["object", "obj", "obj_id", "object_id", "id", "lbn", "lba"])?;
        let size = find(&["size", "obj_size", "object_size", "req_size", "len", "length"])?;
        let op = find(&["op", "operation", "op_type", "cmd"]);
        Some((Self { separator, time, object, size, op }, names[object].clone()))
    }

    /// Parses a line; a time unit is `ns_each` nanoseconds.
    pub(super) fn record(&self, line: &str, ns_each: u64) -> Result<Record, String> {
        let fields: Vec<&str> = line.split(self.separator).map(|f| f.trim().trim_matches('"')).collect();
        let field = |at: usize, what: &str| {
            let n = fields.len();
            let missing = || format!("{n} fields; the {what} would be field {}", at + 1);
            fields.get(at).copied().ok_or_else(missing)
        };
        let at = decimal("time", field(self.time, "time")?, ns_each)?;
        let op = match self.op {
            Some(column) => operation(field(column, "operation")?)?,
            None => Op::Read,
        };
        let bytes = number("size", field(self.size, "size")?)?;
        let sectors = in_bytes(at, op, 0, bytes)?.sectors;
        let object = number("sector as an object", field(self.object, "object")?)?;
        if op == Op::Flush {
            return in_sectors(at, op, 0, 0);
        }
        in_sectors(at, op, object, u64::from(sectors))
    }
}

/// The parser of a format with such columns. There is one disk in a file, device `0`.
pub(crate) struct Csv {
    columns: Columns,
    /// Nanoseconds in a unit of its times.
    ns_each: u64,
}

impl Csv {
    /// Returns the parser of a format that has these columns where a file has no header.
    pub(super) const fn new(columns: Columns, ns_each: u64) -> Self {
        Self { columns, ns_each }
    }
}

impl LineParser for Csv {
    type Item = Record;

    fn line(&mut self, line: &str, names: &mut Names, _: &mut Notes) -> Result<Option<Record>, String> {
        if line.trim().is_empty() {
            return Ok(None);
        }
        // A line of data begins with a figure, and most lines are that; a header does not.
        let may_be_header = !line.starts_with(|c: char| c.is_ascii_digit());
        if let Some((columns, _)) = may_be_header.then(|| Columns::of_header(line)).flatten() {
            self.columns = columns;
            return Ok(None);
        }
        let mut record = self.columns.record(line, self.ns_each)?;
        record.device = names.add_device("0")?;
        Ok(Some(record))
    }
}

fn operation(text: &str) -> Result<Op, String> {
    let word = text.to_ascii_lowercase();
    let command = u8::from_str_radix(word.strip_prefix("0x").unwrap_or(&word), 16).ok();
    match word.as_str() {
        "read" | "r" | "get" | "gets" => Ok(Op::Read),
        "write" | "w" | "set" | "put" | "add" | "replace" => Ok(Op::Write),
        "delete" | "trim" | "unmap" | "discard" => Ok(Op::Discard),
        "flush" | "sync" => Ok(Op::Flush),
        _ => command.and_then(scsi::operation).ok_or_else(|| {
            format!("operation {}: expected read or write, or a SCSI command such as 28 or 2a", quote(text))
        }),
    }
}
