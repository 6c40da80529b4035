//! biosnoop, of bcc (Python), libbpf-tools and others: a line for each request of a disk, when it has
//! completed.
//!
//! ```text
//! TIME(s)     COMM           PID     DISK      T  SECTOR     BYTES  QUE(ms) LAT(ms)
//! 4.700311    xfsaild/dm-1   418     nvme0n1   W  81264000   8192      0.02    0.31
//! └ completed since the first   └ who made it  └ or WS, RA, FF …      └ with -Q
//! ```
//!
//! A device is its name. Before libbpf-tools the type is `R` or `W` only, so that flushes, discards and who
//! waits are not distinguished. Columns with other names are ignored. A table without its header is read if
//! it has the columns above, with or without `QUE(ms)`. bpftrace's `biosnoop.bt` prints no sectors and is
//! refused.
//!
//! The crate's `snoop` module explains times and flushes.
//
//= iovisor/bcc man/man8/biosnoop.8 FIELDS; tools/biosnoop_example.txt

use super::snoop::{Column, Tool, is_decimal, is_kind};

/// The tool.
pub(crate) const TOOL: Tool =
    Tool { name: "biosnoop", column, is_header, guess, advice: "bcc's biosnoop prints it" };

/// Whether a line begins like one of this format.
pub(super) fn has_shape(line: &str) -> bool {
    is_header(line) || guess(&line.split_ascii_whitespace().collect::<Vec<_>>()).is_some()
}

fn is_header(line: &str) -> bool {
    line.starts_with("TIME(") && line.contains("LAT(ms)")
}

fn column(name: &str) -> Column {
    match name {
        "TIME(s)" => Column::End,
        "COMM" => Column::Comm,
        "PID" => Column::Pid,
        "DISK" => Column::Disk,
        "T" => Column::Kind,
        "SECTOR" => Column::Sector,
        "BYTES" => Column::Bytes,
        "QUE(ms)" => Column::Queued,
        "LAT(ms)" => Column::Latency,
        _ => Column::Other,
    }
}

fn guess(words: &[&str]) -> Option<Vec<Column>> {
    let number = |word: &str| word == "-1" || (!word.is_empty() && word.bytes().all(|b| b.is_ascii_digit()));
    let ends_so = |queued: usize| match words {
        [time, _, .., pid, _, kind, sector, bytes, latency] if queued == 0 => {
            is_decimal(time)
                && number(pid)
                && is_kind(kind)
                && number(sector)
                && number(bytes)
                && is_decimal(latency)
        }
        [time, _, .., pid, _, kind, sector, bytes, wait, latency] if queued == 1 => {
            let times = is_decimal(time) && is_decimal(wait.trim_start_matches('-')) && is_decimal(latency);
            times && number(pid) && is_kind(kind) && number(sector) && number(bytes)
        }
        _ => false,
    };
    let mut columns = vec![
        Column::End,
        Column::Comm,
        Column::Pid,
        Column::Disk,
        Column::Kind,
        Column::Sector,
        Column::Bytes,
        Column::Latency,
    ];
    if ends_so(0) {
        return Some(columns);
    }
    columns.insert(7, Column::Queued);
    ends_so(1).then_some(columns)
}
