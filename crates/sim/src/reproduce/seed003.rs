//! Seed 003: "IO scheduler based IO controller V9", September 2009.
//!
//! Two databases, each in a group of its own, are asked at once to count the rows of a table of 880 MB: two scans of a disk, and how
//! long each takes. The disk is not stated; it is `sata2009` here, and the host [`Host::of_2010`], whose kernel is two versions
//! younger than the source's.
//!
//! What calibrated these, and so predicts nothing: where on the disk the tables lie, on the 22.5 s of a scan alone; and that a scan has one
//! window of read-ahead under way, on noop's and deadline's rows without the controller (`scan-one-window` in the list of deviations).
//!
//! Two alternating scans lock to the platter: a row is a matter of whole revolutions, and moves with the angle between the two tables. It
//! is drawn anew in each layout.
//
//= reference-results.md 4 (the project's transcription); devices.md 3.2, 4.6, 8.5

use super::{Column, Figure, Options, Report, Row, run_plain_rows};
use crate::host::Host;
use crate::metrics::{Outcome, Result};

/// Where the first table lies: in the zone of 39.1 MB/s.
//= deviates scan-zone
const FIRST_TABLE: u64 = 445_000_000;
/// From the first table to the second: 1.0 GiB.
//= devices.md 3.2
const APART: u64 = 1 << 21;

/// What counts as reproduced of two scans with equal weights.
//= the project's bar for these rows
const TOLERANCE: f64 = 0.08;
/// How long a scan alone takes, "about".
const ALONE_S: f64 = 22.5;

/// What the document calls a scheduler, ours without the controller, and the seconds of both scans without it.
//= reference-results.md 4.1
const EQUAL: [(&str, &str, [f64; 2]); 4] = [
    ("cfq", "cfq-2.6.33", [48.4, 48.4]),
    ("noop", "noop", [138.0, 138.0]),
    ("as", "as", [46.3, 47.0]),
    ("deadline", "deadline", [137.1, 137.1]),
];

pub(super) fn reproduce(options: &Options, progress: &(dyn Fn(usize, usize) + Sync)) -> Result<Report> {
    let figures: Vec<Figure> = run_plain_rows(&rows(), options, progress)?;
    Ok(Report {
        source: "003",
        title: "an IO controller over four schedulers (J. Marchand and V. Goyal, 2009)",
        seed: options.seed,
        layouts: options.layouts.max(1),
        figures,
        checks: vec![],
        notes: vec!["rows of the two scans change by whole revolutions with the layout: see their spread"],
    })
}

fn rows() -> Vec<Row> {
    let mut rows = vec![alone()];
    rows.extend(EQUAL.map(without_controller));
    rows
}

/// A scan's seconds.
fn seconds(metric: &'static str, published: f64) -> Column {
    Column::listed(metric, "s", published)
}

fn row(id: String, preset: &'static str, jobs: String, columns: Vec<Column>) -> Row {
    Row { id, jobs, preset, disk: "sata2009", host: Host::of_2010, interval: None, columns, read_off: times }
}

fn alone() -> Row {
    let column = Column { calibration: true, tolerance: Some(0.02), ..seconds("took", ALONE_S) };
    row("R003-alone".to_owned(), "cfq-2.6.33", scan("first", FIRST_TABLE), vec![column])
}

fn without_controller((name, preset, [first, second]): (&str, &'static str, [f64; 2])) -> Row {
    let calibration = matches!(name, "noop" | "deadline");
    let column =
        |metric, published| Column { calibration, tolerance: Some(TOLERANCE), ..seconds(metric, published) };
    let columns = vec![column("without_first", first), column("without_second", second)];
    row(format!("R003-E-{name}"), preset, two_scans(), columns)
}

fn scan(name: &str, at: u64) -> String {
    format!("[{name}]\nfh_workload=dbscan\nfh_start={at}sectors\n")
}

fn two_scans() -> String {
    scan("first", FIRST_TABLE) + &scan("second", FIRST_TABLE + APART)
}

/// How long each client took.
#[allow(clippy::cast_precision_loss, reason = "far below 2^52 ns")]
fn times(outcome: &Outcome) -> Vec<f64> {
    outcome.clients.iter().map(|c| c.elapsed.as_ns() as f64 / 1e9).collect()
}
