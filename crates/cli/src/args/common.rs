//! Arguments that several commands share: disk, seed, threads, and the format and file of the results.

use fairhead_sim::sweep::Part;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use fairhead_sim::parallel;

/// The disk preset used by default: a modern 7200 rpm disk (docs/reference/devices.md#35-nas2020).
pub(crate) const DISK: &str = "nas2020";
/// The groups of options in help.
pub(super) const DISKS: &str = "Disk and schedulers";
pub(super) const RUNS: &str = "Runs";
pub(super) const RESULTS: &str = "Results";
pub(super) const RECORDINGS: &str = "Recordings of a run";
pub(super) const RESUME: &str = "Resume and share";
pub(super) const RECORD_FIRST: &str = "Record a disk of this machine";
pub(super) const TRACES: &str = "Traces";

/// The default random seed. Any number will do, as long as it never changes.
pub(super) const SEED: &str = "1";

pub(super) fn seed(text: &str) -> Result<u64, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| format!("a number from 0 to {}, decimal or 0x…", u64::MAX))
}

/// `2/8`: the second of eight parts.
pub(super) fn part(text: &str) -> Result<Part, String> {
    let parsed = text.split_once('/').and_then(|(k, n)| Some((k.parse().ok()?, n.parse().ok()?)));
    match parsed {
        Some((number, of)) if (1..=of).contains(&number) => Ok(Part { number, of }),
        _ => Err("expected K/N, part K of N, with K from 1 to N, such as 2/8".to_owned()),
    }
}

/// The disk of the commands that simulate one.
#[derive(Debug, Args)]
pub(crate) struct Disk {
    /// The disk model: a preset (`fairhead list disks`) or a TOML file.
    #[arg(long = "disk", id = "disk", value_name = "PRESET|FILE", default_value = DISK, help_heading = DISKS)]
    pub(crate) name: String,
}

/// The seed of the commands that use one.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Seed {
    /// Random seed, a number in decimal or 0x…: the same seed gives the same result.
    #[arg(
        long = "seed",
        id = "seed",
        value_name = "N",
        default_value = SEED,
        value_parser = seed,
        help_heading = RUNS,
    )]
    pub(crate) number: u64,
}

/// The run time of jobs.
#[derive(Debug, Args)]
pub(crate) struct Runtime {
    /// Run every job for this time, such as 10s, instead of the job file's `runtime`.
    #[arg(long = "runtime", id = "runtime", value_name = "TIME", help_heading = RUNS)]
    pub(crate) time: Option<String>,
}

/// The number of simulations that run at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Args)]
pub(crate) struct Threads {
    /// Run this many simulations at once. Changes no result. Default: the number of CPUs.
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u16).range(1..=1024),
        help_heading = RUNS,
    )]
    pub(super) threads: Option<u16>,
}

impl Threads {
    /// The number of threads to use: the given number, or else the number of CPUs.
    pub(crate) fn count(self) -> usize {
        self.threads.map_or_else(parallel::available, usize::from)
    }
}

/// The format of the results and the file they are written to.
#[derive(Debug, PartialEq, Eq, Args)]
pub(crate) struct Output<F: ValueEnum + Send + Sync + 'static> {
    /// The format of the results.
    #[arg(
        long = "output-format",
        id = "output_format",
        value_name = "FORMAT",
        default_value = "human",
        help_heading = RESULTS,
    )]
    pub(crate) format: F,
    /// Write the results to this file instead of the terminal.
    #[arg(short = 'o', long = "output", id = "output", value_name = "FILE", help_heading = RESULTS)]
    pub(crate) file: Option<PathBuf>,
}

/// The format of the results of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// A table.
    Human,
    /// One JSON object; the names of fields end in their unit.
    Json,
    /// fio's json+ format, one object per scheduler.
    #[value(name = "json+")]
    JsonPlus,
    /// CSV, a row per job and scheduler.
    Csv,
}

/// The format of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TableFormat {
    /// A table.
    Human,
    /// A JSON array with an object per row.
    Json,
    /// CSV.
    Csv,
}

/// The format of a sweep's results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SweepFormat {
    /// A table, with one row for all seeds of a point.
    Human,
    /// JSON, with an object per point and seed.
    Json,
    /// CSV, a row per point and seed.
    Csv,
}

/// The format of findings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    /// Text for people.
    Human,
    /// One JSON object.
    Json,
}
