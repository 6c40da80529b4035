//! iosnoop, of perf-tools (ftrace): a line for each request of a disk, when it has completed.
//!
//! ```text
//! STARTs         ENDs           COMM         PID    TYPE DEV      BLOCK        BYTES     LATms
//! 71200.500100   71200.500700   postgres     2210   W    8,0      10240000     4096       0.60
//! └ with -s      └ with -t
//! ```
//!
//! A device is `MAJOR,MINOR`; the type has the kernel's letters. Without `-s` and `-t` the table has no times
//! and is refused; one of them will do, as the other follows from the latency. A table without its header is
//! read if it has both. DTrace's iosnoop is another format, which is not read.
//!
//! The crate's `snoop` module explains times and flushes.
//
//= brendangregg/perf-tools man/man8/iosnoop.8 FIELDS; examples/iosnoop_example.txt

use super::blkparse::pair;
use super::snoop::{Column, Tool, is_decimal, is_kind};

/// The tool.
pub(crate) const TOOL: Tool =
    Tool { name: "iosnoop", column, is_header, guess, advice: "record with `iosnoop -ts`" };

/// Whether a line begins like one of this format.
pub(super) fn has_shape(line: &str) -> bool {
    is_header(line) || guess(&line.split_ascii_whitespace().collect::<Vec<_>>()).is_some()
}

fn is_header(line: &str) -> bool {
    let mut words = line.split_ascii_whitespace();
    words.any(|w| w == "COMM") && words.any(|w| w == "LATms")
}

fn column(name: &str) -> Column {
    match name {
        "STARTs" => Column::Start,
        "ENDs" => Column::End,
        "COMM" => Column::Comm,
        "PID" => Column::Pid,
        "TYPE" => Column::Kind,
        "DEV" => Column::Disk,
        "BLOCK" => Column::Sector,
        "BYTES" => Column::Bytes,
        "LATms" => Column::Latency,
        _ => Column::Other,
    }
}

fn guess(words: &[&str]) -> Option<Vec<Column>> {
    let [start, end, _, .., kind, device, _, _, latency] = words else { return None };
    let has_shape =
        [start, end, latency].iter().all(|w| is_decimal(w)) && is_kind(kind) && pair(device).is_some();
    has_shape.then(|| {
        vec![
            Column::Start,
            Column::End,
            Column::Comm,
            Column::Pid,
            Column::Kind,
            Column::Disk,
            Column::Sector,
            Column::Bytes,
            Column::Latency,
        ]
    })
}
