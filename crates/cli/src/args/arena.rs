//! What can be written behind `fairhead arena`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use fairhead_lab::arena::SCHEDULERS;
use fairhead_sim::sweep::Part;

use super::common::{DISKS, Output, RESULTS, RESUME, RUNS, SEED, Threads, part, seed};

#[derive(Debug, Args)]
#[command(after_help = LEGEND)]
pub(crate) struct ArenaArgs {
    /// Built-in workloads or fio job files, each a load. Default: the 40 of the arena (docs/arena.md).
    #[arg(value_name = "LOAD")]
    pub(crate) loads: Vec<PathBuf>,
    /// The disk models: presets (`fairhead list disks`) or TOML files. Default: twelve presets of all classes
    /// (docs/arena.md).
    #[arg(long, value_name = "PRESET|FILE[,…]", value_delimiter = ',', help_heading = DISKS)]
    pub(crate) disk: Vec<String>,
    /// The schedulers (`fairhead list schedulers`), or libraries, as for `run`.
    #[arg(
        long,
        value_name = "NAME[,NAME…]",
        default_values = SCHEDULERS,
        value_delimiter = ',',
        help_heading = DISKS,
    )]
    pub(crate) sched: Vec<String>,
    /// The values of a tunable, such as bfq.slice_idle=0,8ms: each is a scheduler of its own. May be
    /// repeated: every combination is run.
    #[arg(long = "set", value_name = "SCHED.TUNABLE=VALUE[,…]", help_heading = DISKS)]
    pub(crate) set: Vec<String>,
    /// The first random seed, a number in decimal or 0x…: the same seed gives the same result.
    #[arg(long, value_name = "N", default_value = SEED, value_parser = seed, help_heading = RUNS)]
    pub(crate) seed: u64,
    /// The number of seeds: --seed and the numbers after it.
    #[arg(
        long,
        value_name = "N",
        default_value = "1",
        value_parser = clap::value_parser!(u32).range(1..=1000),
        help_heading = RUNS,
    )]
    pub(crate) seeds: u32,
    /// Keep finished cells in this file, and reuse those that it has: the same command resumes after an
    /// interruption.
    #[arg(long, value_name = "FILE", help_heading = RESUME)]
    pub(crate) resume: Option<PathBuf>,
    /// Run only every Nth cell, from the Kth on: part K of N of the arena, for N machines. Keep the cells
    /// with --resume, and join them with --merge.
    #[arg(long, value_name = "K/N", value_parser = part, requires = "resume", help_heading = RESUME)]
    pub(crate) shard: Option<Part>,
    /// Take the cells that these files of --resume have; what none has is run. With --resume they are copied
    /// there.
    #[arg(long, value_name = "FILE", num_args = 1.., help_heading = RESUME)]
    pub(crate) merge: Vec<PathBuf>,
    /// Also write one HTML page to this file: a heat map of regrets for each scheduler, and all cells.
    #[arg(long, value_name = "FILE.html", help_heading = RESULTS)]
    pub(crate) report: Option<PathBuf>,
    /// Also write the heat maps of that page into this folder, as SVG files.
    #[arg(long, value_name = "DIR", help_heading = RESULTS)]
    pub(crate) pictures: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) threads: Threads,
    #[command(flatten)]
    pub(crate) output: Output<ArenaFormat>,
}

/// The format of the arena's results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ArenaFormat {
    /// A table of schedulers, and their worst cells.
    Human,
    /// One JSON object: schedulers, cells and jobs.
    Json,
    /// CSV, a row per cell, scheduler and job.
    Csv,
}

/// Help below the options of `arena`: its words.
const LEGEND: &str = "\
A cell is a load on a disk. Satisfaction: how much of what it would get alone each job gets, as a weighted \
geometric mean (docs/advise.md). Regret: the best satisfaction in the cell over that of the scheduler; 1.00 \
is the best. p90: nine of ten cells have no more. best in: cells in which no scheduler is better by 5 %. \
Ctrl-C lets the current cells finish and writes those that are done; a second Ctrl-C ends at once.";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::tests::refused;
    use crate::args::{Cli, Command};
    use clap::Parser;

    #[test]
    fn every_flag_of_arena() {
        let parse = |argv: &[&str]| match Cli::try_parse_from([&["fairhead", "arena"], argv].concat())
            .unwrap()
            .command
        {
            Some(Command::Arena(args)) => args,
            other => panic!("{other:?}"),
        };
        let none = parse(&[]);
        assert_eq!((none.loads.len(), none.disk.len(), none.sched.len()), (0, 0, 5));
        assert_eq!((none.seed, none.seeds, none.shard), (1, 1, None));
        assert_eq!((none.resume, none.merge, none.report, none.set), (None, vec![], None, vec![]));
        assert_eq!(
            (none.output.format, none.output.file, none.threads.threads),
            (ArenaFormat::Human, None, None)
        );
        assert_eq!(parse(&["a.fio", "film-copy"]).loads, [PathBuf::from("a.fio"), "film-copy".into()]);
        assert_eq!(parse(&["--disk", "nvme,sata_ssd"]).disk, ["nvme", "sata_ssd"]);
        assert_eq!(parse(&["--sched", "bfq", "--sched", "cfq"]).sched, ["bfq", "cfq"]);
        assert_eq!(parse(&["--set", "bfq.slice_idle=0,8ms"]).set, ["bfq.slice_idle=0,8ms"]);
        assert_eq!((parse(&["--seed", "0x10"]).seed, parse(&["--seeds", "3"]).seeds), (16, 3));
        let sharded = parse(&["--resume", "r", "--shard", "2/3"]);
        assert_eq!((sharded.resume, sharded.shard), (Some("r".into()), Some(Part { number: 2, of: 3 })));
        assert_eq!(parse(&["--merge", "a", "b"]).merge.len(), 2);
        assert_eq!(parse(&["--report", "x.html"]).report, Some("x.html".into()));
        assert_eq!((none.pictures, parse(&["--pictures", "x"]).pictures), (None, Some("x".into())));
        assert_eq!(parse(&["--threads", "2"]).threads.threads, Some(2));
        assert_eq!(parse(&["--output-format", "csv"]).output.format, ArenaFormat::Csv);
        assert_eq!(parse(&["--output-format", "json", "-o", "x"]).output.file, Some("x".into()));
        assert!(refused(&["arena", "--seeds", "0"]).contains("1..=1000"));
        assert!(refused(&["arena", "--shard", "1/2"]).contains("--resume"));
    }
}
