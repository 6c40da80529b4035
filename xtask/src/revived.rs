//! What `docs/revived.md` shows: schedulers on modelled disks in a running Linux, from
//! `bench/guest/measured.csv`.
//!
//! ```text
//!   bench/guest.sh ─► measured.csv ─► bars for each disk ─► docs/pictures/revived-DISK.svg
//!                                  └► a table            ─► docs/revived.md, behind its mark
//! ```
//!
//! What this does not do: measure. A scheduler that the guest was not run with is not shown.

use crate::docs::{MARK, root_file};
use crate::svg;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

const PAGE: &str = "docs/revived.md";
const MEASURED: &str = "bench/guest/measured.csv";

/// The schedulers, as the file names them and as people do; ours begin with `fh-`.
const SCHEDS: [(&str, &str); 7] = [
    ("none", "none"),
    ("mq-deadline", "mq-deadline"),
    ("kyber", "kyber"),
    ("bfq", "bfq"),
    ("fh-as", "as (Fairhead)"),
    ("fh-cfq", "cfq (Fairhead)"),
    ("fh-bfq", "bfq (Fairhead)"),
];

/// The disks, as the file names them, and what they are.
const DISKS: [(&str, &str); 2] =
    [("nas2020", "a drive of 4 TB of 2020"), ("sata2009q", "a SATA drive of 2009 with command queueing")];

/// A figure: its heading, the job, the client whose time counts (all clients' MiB/s if there is none).
type Figure = (&'static str, &'static str, Option<&'static str>);

const FIGURES: [Figure; 4] = [
    ("a program starts, ms", "start", Some("app")),
    ("two readers in sequence, MiB/s", "seq2", None),
    ("one reader that thinks for 2 ms, one that does not, MiB/s", "think", None),
    ("ten readers in sequence, MiB/s", "seq10", None),
];

/// The figures of a disk's picture.
const DRAWN: [usize; 2] = [0, 1];

/// Makes the pictures and the page's table.
pub(crate) fn make(files: &mut BTreeMap<PathBuf, String>) -> Result<(), String> {
    let read = |name: &str| fs::read_to_string(root_file(name)).map_err(|e| format!("{name}: {e}"));
    let (rows, page) = (read(MEASURED)?, read(PAGE)?);
    let (text, _) = page.split_once(MARK).ok_or_else(|| format!("{PAGE} has no line {MARK}"))?;
    let mut made = format!("{text}{MARK}\n");
    for (disk, what) in DISKS {
        let cells = DRAWN.map(|i| bars(&rows, disk, &FIGURES[i]));
        let titles = DRAWN.map(|i| FIGURES[i].0);
        let picture = format!("pictures/revived-{disk}.svg");
        let name = format!("{disk}: {what}");
        files.insert(root_file(&format!("docs/{picture}")), svg::bars(&name, titles, &cells));
        let _ = write!(made, "\n![{name}]({picture})\n");
    }
    made.push_str(&table(&rows));
    files.insert(root_file(PAGE), made);
    Ok(())
}

/// A row for each disk and figure, a column for each scheduler.
fn table(rows: &str) -> String {
    let names: Vec<&str> = SCHEDS.iter().map(|(_, name)| *name).collect();
    let mut out =
        format!("\n| disk | | {} |\n|---|---|{}\n", names.join(" | "), "---:|".repeat(SCHEDS.len()));
    for (disk, _) in DISKS {
        for figure in &FIGURES {
            let _ = write!(out, "| {disk} | {} |", figure.0);
            for (sched, _) in SCHEDS {
                let value = value(rows, disk, sched, figure).map_or(String::new(), short);
                let _ = write!(out, " {value} |");
            }
            out.push('\n');
        }
    }
    out
}

fn bars(rows: &str, disk: &str, figure: &Figure) -> Vec<svg::Bar> {
    let bar = |(sched, label): &(&str, &'static str)| {
        let value = value(rows, disk, sched, figure)?;
        Some(svg::Bar { label, value, text: short(value), strong: sched.starts_with("fh-") })
    };
    SCHEDS.iter().filter_map(bar).collect()
}

/// Three digits that count.
fn short(value: f64) -> String {
    match value {
        v if v >= 100.0 => format!("{v:.0}"),
        v if v >= 10.0 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    }
}

/// A figure of a cell: milliseconds of a client, or MiB/s of all clients together.
fn value(rows: &str, disk: &str, sched: &str, (_, job, client): &Figure) -> Option<f64> {
    let cell = format!("{disk},{job},{sched},");
    let mut sum = None;
    for row in rows.lines().filter_map(|line| line.strip_prefix(&cell)) {
        // client, start_ns, elapsed_ns, bytes, …
        let columns: Vec<&str> = row.split(',').collect();
        let number = |i: usize| columns.get(i).and_then(|v| v.parse::<f64>().ok());
        let (elapsed_ns, bytes) = (number(2)?, number(3)?);
        match client {
            Some(client) if columns[0] == *client => return Some(elapsed_ns / 1e6),
            Some(_) => {}
            None if elapsed_ns > 0.0 => {
                *sum.get_or_insert(0.0) += bytes / elapsed_ns * 1e9 / f64::from(1 << 20);
            }
            None => {}
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_those_of_a_cell() {
        let rows = "d,start,cfq,app,5,250000000,1,1,1,1\nd,start,cfq,load,0,1000000000,1048576,1,1,1\n\
                    d,seq2,cfq,a.0,0,500000000,1048576,1,1,1\nd,seq2,cfq,a.1,0,1000000000,1048576,1,1,1\n";
        let of = |job, client| value(rows, "d", "cfq", &("", job, client));
        assert_eq!(of("start", Some("app")), Some(250.0));
        assert_eq!(of("seq2", None), Some(3.0));
        assert_eq!(of("think", None), None, "was not run");
    }
}
