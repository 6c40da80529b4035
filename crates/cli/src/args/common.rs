//! What several commands have in common: disk and seed, how many simulations run at once, and how and where results are written.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use fairhead_sim::parallel;

/// The modern 7200 rpm disk of docs/reference/devices.md#35-nas2020.
pub(super) const DISK: &str = "nas2020";
/// Any number will do, as long as it is the same tomorrow.
pub(super) const SEED: &str = "1";

pub(super) fn seed(text: &str) -> Result<u64, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| format!("a number from 0 to {}, decimal or 0x…", u64::MAX))
}

/// How many simulations run at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Args)]
pub(crate) struct Threads {
    /// How many simulations run at once. Changes no result. Default: the number of CPUs.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(super) threads: Option<u16>,
}

impl Threads {
    /// As many as were asked for, or as there are CPUs.
    pub(crate) fn count(self) -> usize {
        self.threads.map_or_else(parallel::available, usize::from)
    }
}

/// How results are written, and where to.
#[derive(Debug, PartialEq, Eq, Args)]
pub(crate) struct Output<F: ValueEnum + Send + Sync + 'static> {
    /// How the results are written.
    #[arg(long = "output-format", id = "output_format", value_name = "FORMAT", default_value = "human")]
    pub(crate) format: F,
    /// Write them to a file instead of the terminal.
    #[arg(short = 'o', long = "output", id = "output", value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
}

/// How results are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// A table.
    Human,
    /// One object, fields with their unit in the name.
    Json,
    /// fio's json+ layout, one object per scheduler.
    #[value(name = "json+")]
    JsonPlus,
    /// A line per job and scheduler.
    Csv,
}

/// How a table is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TableFormat {
    /// A table.
    Human,
    /// An array with an object for each row.
    Json,
    /// A line for each row.
    Csv,
}

/// How a sweep is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SweepFormat {
    /// A table, with a row for all seeds together.
    Human,
    /// An object for each point.
    Json,
    /// A line for each point.
    Csv,
}

/// How findings are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    /// For people.
    Human,
    /// One object.
    Json,
}
