//! The lab: runs, advice, sweeps, ladders and published tables.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::common::{DISK, Format, Output, ReportFormat, SEED, SweepFormat, TableFormat, Threads, seed};
use super::recorded::TraceTarget;

#[derive(Debug, Args)]
#[command(after_help = RUN_LEGEND)]
pub(crate) struct RunArgs {
    /// A fio job file, the name of a built-in workload (`fairhead list workloads`), or a recorded trace of any format that `fairhead trace`
    /// knows.
    #[arg(value_name = "JOB|TRACE")]
    pub(crate) job: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) replay: ReplayArgs,
    /// The disk: a preset (`fairhead list disks`) or a TOML file.
    #[arg(long, value_name = "PRESET|FILE", default_value = DISK)]
    pub(crate) disk: String,
    /// The machine around the disk, by the year of its habits: 2004, 2010, 2016, 2020, 2023 or 2024. Default: the disk's time, 2020 for a
    /// disk of your own. Settings follow behind commas, as in 2020,path=60us: path is what the way to the disk takes, in each
    /// direction, of a disk behind a loop device, FUSE or NBD (default 0); hz is the kernel's ticks a second (default 250).
    #[arg(long, value_name = "YEAR[,SETTING…]")]
    pub(crate) host: Option<String>,
    /// The schedulers to compare (`fairhead list schedulers`). Default: all; those that know groups, with and without, if the job
    /// names control groups.
    #[arg(long, value_name = "NAME[,NAME…]", value_delimiter = ',')]
    pub(crate) sched: Vec<String>,
    /// Set a tunable, such as cfq.slice_idle=4ms. May be repeated.
    #[arg(long = "set", value_name = "SCHED.TUNABLE=VALUE")]
    pub(crate) set: Vec<String>,
    /// What all chance in the run follows from: a number, decimal or 0x….
    #[arg(long, value_name = "N", default_value = SEED, value_parser = seed)]
    pub(crate) seed: u64,
    /// Run every job for that long, whatever the file says.
    #[arg(long, value_name = "TIME")]
    pub(crate) runtime: Option<String>,
    /// Also run with the jobs started in the reverse order, and say which results hang on that.
    #[arg(long)]
    pub(crate) jitter_starts: bool,
    /// Also report a series of intervals of that length.
    #[arg(long, value_name = "TIME")]
    pub(crate) interval: Option<String>,
    /// Also report the disk time of control groups per interval of that length, and the first one's ratio to the others.
    #[arg(long, value_name = "TIME")]
    pub(crate) watch: Option<String>,
    /// Also tell where the time of a client went: of all clones of a job, or of one as JOB.CLONE; and why it was slow when it was
    /// slowest, or in a part of the run, as in JOB@3s-4s.
    #[arg(long, value_name = "CLIENT[@FROM-TO]")]
    pub(crate) why: Option<String>,
    #[command(flatten)]
    pub(crate) record: RecordArgs,
    /// Also write a page with the verdict, the figures and pictures of the runs: one file, for any browser.
    #[arg(long, value_name = "FILE.html")]
    pub(crate) report: Option<PathBuf>,
    /// Also write the pictures of the runs into a folder, as SVG.
    #[arg(long, value_name = "DIR")]
    pub(crate) pictures: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) threads: Threads,
    #[command(flatten)]
    pub(crate) output: Output<Format>,
}

/// What is written down of what happens in a run, beside its figures. It changes none of them; schedulers run one after the other.
#[derive(Debug, Default, Args)]
pub(crate) struct RecordArgs {
    /// Write a row for each request, as CSV: whose, where, when it was made, inserted, issued, completed, and why it was chosen.
    /// - is the terminal, and then the results are not printed without -o.
    #[arg(long, value_name = "FILE.csv")]
    pub(crate) requests: Option<PathBuf>,
    /// Write a timeline for ui.perfetto.dev: calls, what the disk works on and idles for, each decision with its reason.
    #[arg(long, value_name = "FILE")]
    pub(crate) timeline: Option<PathBuf>,
    /// Write what happened as a trace of the block layer. Of one scheduler.
    #[arg(long, value_name = "FILE")]
    pub(crate) trace_out: Option<PathBuf>,
    /// As what: blktrace's binary form (for blkparse and btt), blkparse's text, or a log that fio replays.
    #[arg(long, value_name = "FORMAT", default_value = "blktrace", requires = "trace_out")]
    pub(crate) trace_format: TraceTarget,
}

/// How a recorded trace is replayed.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Traces")]
pub(crate) struct ReplayArgs {
    /// When a trace's requests are made. Default: closed if the trace tells when they were answered, else open.
    #[arg(long, value_name = "HOW")]
    pub(crate) replay: Option<ReplayMode>,
    /// The speed of a trace's time in percent: at 200 all gaps are half as long.
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u32).range(1..=8_640_000))]
    pub(crate) replay_time_scale: Option<u32>,
    /// How a trace of a larger disk gets onto this one.
    #[arg(long, value_name = "HOW")]
    pub(crate) replay_fit: Option<ReplayFit>,
    /// Replay only the requests of this device of the trace. May be repeated.
    #[arg(long, value_name = "NAME")]
    pub(crate) replay_device: Vec<String>,
    /// Replay all devices as one, each request at its own sector, instead of one after the other on the disk.
    #[arg(long)]
    pub(crate) replay_redirect: bool,
    /// How many tasks of a trace have a client of their own; all others share one. Default: 16.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(crate) replay_clients: Option<u32>,
    /// How many requests of a client may be under way. Default: 256.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(crate) replay_depth: Option<u32>,
}

/// When a trace's requests are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReplayMode {
    /// At their recorded times, whatever the disk does.
    Open,
    /// So long after the completion that each followed.
    Closed,
    /// As fast as they are done.
    NoStall,
}

/// How a trace gets onto a smaller disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReplayFit {
    /// All places move together.
    Scale,
    /// What is beyond the end begins again at the start.
    Wrap,
}

/// What the columns of the table mean.
const RUN_LEGEND: &str = "\
The table has a row for each job and scheduler; on a terminal the best of each column is bold. min/max: the slowest client's
rate over the fastest's, 1 is fair. mean, p99, max: latency of a call. sync: of an fsync or fdatasync. took: the longest
client's time, which the rates of the row are over. MiB/s while all ran: where jobs beside each other end at different times, what
the job moved before the first ended, and how long that was. idled on purpose: the disk had nothing to do and requests waited, because the scheduler expected a better one.";

#[derive(Debug, Args)]
#[command(after_help = ADVISE_LEGEND)]
pub(crate) struct AdviseArgs {
    /// A fio job file, the name of a built-in workload (`fairhead list workloads`), or a recorded trace of any format that `fairhead trace`
    /// knows.
    #[arg(value_name = "JOB|TRACE")]
    pub(crate) job: PathBuf,
    #[command(flatten)]
    pub(crate) replay: ReplayArgs,
    /// The disk: a preset (`fairhead list disks`) or a TOML file.
    #[arg(long, value_name = "PRESET|FILE", default_value = DISK)]
    pub(crate) disk: String,
    /// The machine around the disk: 2004, 2010, 2016, 2020, 2023 or 2024. Default: the disk's time. Settings as for `run`: 2020,path=60us.
    #[arg(long, value_name = "YEAR[,SETTING…]")]
    pub(crate) host: Option<String>,
    /// What counts most: latency, throughput and fairness count three quarters and the others an eighth each; balanced, all alike.
    #[arg(long, value_name = "GOAL", default_value = "balanced")]
    pub(crate) goal: Goal,
    /// How much may be simulated, as a time on two cores. It is reckoned from what runs do, so that a machine's speed changes no result.
    #[arg(long, value_name = "TIME", default_value = "60s")]
    pub(crate) budget: String,
    /// That many rounds of seeds at most, whatever they take, instead of as many as the budget allows.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=5))]
    pub(crate) rounds: Option<u32>,
    /// What is in use now. Default: what a kernel uses on such a disk if nobody chooses.
    #[arg(long, value_name = "SCHED")]
    pub(crate) against: Option<String>,
    /// Compare only these schedulers, without tunables, and the one that is in use now. Example: none,mq-deadline,kyber,bfq. Default: all
    /// that make sense on the disk, with the tunables that matter.
    #[arg(long, value_name = "SCHED[,…]", value_delimiter = ',')]
    pub(crate) sched: Vec<String>,
    /// The job that waits. Default: what starts, plays, ends the others, or pauses.
    #[arg(long, value_name = "JOB")]
    pub(crate) foreground: Option<String>,
    /// What all chance in the runs follows from: a number, decimal or 0x….
    #[arg(long, value_name = "N", default_value = SEED, value_parser = seed)]
    pub(crate) seed: u64,
    /// Run every job for that long, whatever the file says.
    #[arg(long, value_name = "TIME")]
    pub(crate) runtime: Option<String>,
    /// Also write a page with the verdict, the evidence and pictures of winner and default: one file, for any browser.
    #[arg(long, value_name = "FILE.html")]
    pub(crate) report: Option<PathBuf>,
    /// Keep the results of runs there, and do not run again what it has: who was interrupted goes on.
    #[arg(long, value_name = "FILE")]
    pub(crate) resume: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) threads: Threads,
    #[command(flatten)]
    pub(crate) output: Output<ReportFormat>,
}

/// What counts most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Goal {
    /// Who waits.
    Latency,
    /// What the disk moves.
    Throughput,
    /// Who gets what.
    Fairness,
    /// All alike.
    Balanced,
}

/// What the columns of advice mean.
const ADVISE_LEGEND: &str = "\
The best comes first. The figures of winner and default are from fresh seeds, the others' from the race. Factors are against the
default, seed by seed; above 1 is better, in brackets the interval of 95 %. front: nothing else is at least as good in everything
and better in something.";

#[derive(Debug, Args)]
#[command(after_help = SWEEP_LEGEND)]
pub(crate) struct SweepArgs {
    /// A fio job file, the name of a built-in workload (`fairhead list workloads`), or a recorded trace of any format that `fairhead trace`
    /// knows.
    #[arg(value_name = "JOB|TRACE")]
    pub(crate) job: PathBuf,
    #[command(flatten)]
    pub(crate) replay: ReplayArgs,
    /// The disks: presets (`fairhead list disks`) or TOML files.
    #[arg(long, value_name = "PRESET|FILE[,…]", default_value = DISK, value_delimiter = ',')]
    pub(crate) disk: Vec<String>,
    /// The machine around the disks: 2004, 2010, 2016, 2020, 2023 or 2024. Default: each disk's time. Settings as for `run`: 2020,path=60us.
    #[arg(long, value_name = "YEAR[,SETTING…]")]
    pub(crate) host: Option<String>,
    /// The schedulers (`fairhead list schedulers`). Default: as for run.
    #[arg(long, value_name = "NAME[,NAME…]", value_delimiter = ',')]
    pub(crate) sched: Vec<String>,
    /// Values of a tunable, such as cfq.slice_idle=0,2ms,4ms,8ms. May be repeated: all combinations are run.
    #[arg(long = "set", value_name = "SCHED.TUNABLE=VALUE[,…]")]
    pub(crate) set: Vec<String>,
    /// The first seed: a number, decimal or 0x….
    #[arg(long, value_name = "N", default_value = SEED, value_parser = seed)]
    pub(crate) seed: u64,
    /// How many seeds, one after the other.
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) seeds: u32,
    /// Run every job for that long, whatever the file says.
    #[arg(long, value_name = "TIME")]
    pub(crate) runtime: Option<String>,
    /// Keep the results of runs there, and do not run again what it has: who was interrupted goes on.
    #[arg(long, value_name = "FILE")]
    pub(crate) resume: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) threads: Threads,
    #[command(flatten)]
    pub(crate) output: Output<SweepFormat>,
}

/// What the columns of a sweep mean.
const SWEEP_LEGEND: &str = "\
wait: of those who wait (docs/advise.md), the mean start-up time, the time until they are done or for each call, or the 99th percentile of a call.
min/max: the smallest share over the largest. mean, p99, max: latency of a call. Ctrl-C ends after the runs under way and writes
the rows that are done; a second one ends at once.";

#[derive(Debug, Args)]
#[command(after_help = LADDER_LEGEND)]
pub(crate) struct LadderArgs {
    /// A fio job file, or the name of a built-in workload (`fairhead list workloads`). Default: startup-10r-seq.
    #[arg(value_name = "JOB.fio", conflicts_with = "scenario")]
    pub(crate) job: Option<PathBuf>,
    /// The disk: a preset (`fairhead list disks`) or a TOML file.
    #[arg(long, value_name = "PRESET|FILE", default_value = DISK, conflicts_with = "scenario")]
    pub(crate) disk: String,
    /// The machine around the disk: 2004, 2010, 2016, 2020, 2023 or 2024. Default: the disk's time.
    #[arg(long, value_name = "YEAR", conflicts_with = "scenario")]
    pub(crate) host: Option<String>,
    /// Whose latency is told. Default: a job that starts an application, or plays a film, or else the last one.
    #[arg(long, value_name = "JOB", conflicts_with = "scenario")]
    pub(crate) foreground: Option<String>,
    /// Only this switch: on top of nothing, and on top of everything else.
    #[arg(long, value_name = "SWITCH", conflicts_with_all = ["scenario", "without_each"])]
    pub(crate) only: Option<String>,
    /// Everything on, and then everything but one.
    #[arg(long, conflicts_with = "scenario")]
    pub(crate) without_each: bool,
    /// The load that a switch was written for, with and without it, instead of a job: a switch, or all.
    #[arg(long, value_name = "SWITCH|all")]
    pub(crate) scenario: Option<String>,
    /// What all chance in the runs follows from: a number, decimal or 0x….
    #[arg(long, value_name = "N", default_value = SEED, value_parser = seed)]
    pub(crate) seed: u64,
    /// Run every job for that long, whatever the file says.
    #[arg(long, value_name = "TIME", conflicts_with = "scenario")]
    pub(crate) runtime: Option<String>,
    #[command(flatten)]
    pub(crate) threads: Threads,
    #[command(flatten)]
    pub(crate) output: Output<TableFormat>,
}

/// What the columns of a ladder mean.
const LADDER_LEGEND: &str = "\
Each row has one switch of BFQ more than the row before (with --without-each: one less than bfq). quicker: how many times
shorter the foreground job's start-up, or else its 99th percentile, is than in the row before (than bfq's); more: how many
times as much the disk moves. 1.00x is nothing bought.";

#[derive(Debug, Args)]
pub(crate) struct ReproduceArgs {
    /// The published source: cfq-timeslices-2004 (time-sliced CFQ), cfq-seeky-ssd-2010 (seeky processes on flash), bfq-2010
    /// (BFQ announced), io-controller-v9-2009 (an IO controller), bfq-v8-2016 (BFQ on an SSD) or icpe24 (schedulers on NVMe
    /// drives). 000 to 004 mean the first five, in this order. Default: all.
    #[arg(value_name = "SOURCE")]
    pub(crate) source: Option<String>,
    /// Hold the lab against your own measurements instead: a CSV file with the columns job, scheduler, metric and published, and, if you like,
    /// of, disk, host and bound (docs/reproduce.md).
    #[arg(long, value_name = "FILE", conflicts_with = "source")]
    pub(crate) figures: Option<PathBuf>,
    /// The disk of lines of --figures that name none: a preset or a TOML file.
    #[arg(long, value_name = "PRESET|FILE", default_value = "980pro", requires = "figures")]
    pub(crate) disk: String,
    /// The host of lines of --figures that name none. Default: the disk's time.
    #[arg(long, value_name = "YEAR[,SETTING…]", requires = "figures")]
    pub(crate) host: Option<String>,
    /// Name the known misses with their reasons, and fail (exit code 1) on a miss that is not known, is worse than known, or is gone.
    #[arg(long)]
    pub(crate) check: bool,
    /// Only rows whose id contains this.
    #[arg(long, value_name = "ROW")]
    pub(crate) only: Option<String>,
    /// The mean is over that many file layouts.
    #[arg(long, value_name = "N", default_value = "16", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) layouts: u32,
    /// The seed of the first layout; the others follow.
    #[arg(long, value_name = "N", default_value = SEED, value_parser = seed)]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) threads: Threads,
    #[command(flatten)]
    pub(crate) output: Output<TableFormat>,
}

#[cfg(test)]
mod tests {
    use super::super::tests::refused;
    use super::super::{Cli, Command};
    use super::*;
    use clap::Parser;

    fn run(argv: &[&str]) -> RunArgs {
        match Cli::try_parse_from([&["fairhead", "run"], argv].concat()).unwrap().command {
            Some(Command::Run(args)) => args,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn no_command_is_run_without_arguments() {
        assert!(Cli::try_parse_from(["fairhead"]).unwrap().command.is_none());
        assert!(matches!(Command::default(), Command::Run(args) if args.job.is_none()));
    }

    #[test]
    fn every_flag_of_run() {
        assert_eq!(run(&["a.fio"]).job, Some("a.fio".into()));
        assert_eq!(run(&["--disk", "ide2004"]).disk, "ide2004");
        assert_eq!(run(&["--sched", "noop,cfq", "--sched", "as"]).sched, ["noop", "cfq", "as"]);
        assert_eq!(
            run(&["--set", "cfq.slice_idle=4ms", "--set=cfq.quantum=8"]).set,
            ["cfq.slice_idle=4ms", "cfq.quantum=8"]
        );
        assert_eq!(run(&["--seed", "7"]).seed, 7);
        assert_eq!(run(&["--seed", "0xff"]).seed, 255);
        assert_eq!(run(&["--runtime", "10s"]).runtime.as_deref(), Some("10s"));
        assert_eq!(run(&["--interval", "1s"]).interval.as_deref(), Some("1s"));
        assert_eq!(run(&["--watch", "2s"]).watch.as_deref(), Some("2s"));
        assert_eq!(run(&["--why", "readers.3"]).why.as_deref(), Some("readers.3"));
        assert_eq!(run(&["--threads", "2"]).threads.threads, Some(2));
        assert_eq!(run(&["--output-format", "json+"]).output.format, Format::JsonPlus);
        assert_eq!(run(&["--output-format=csv"]).output.format, Format::Csv);
        assert_eq!(run(&["-o", "x"]).output.file, Some("x".into()));
        assert_eq!(run(&["--output", "x"]).output.file, Some("x".into()));
    }

    #[test]
    fn every_flag_of_ladder() {
        let parse = |argv: &[&str]| match Cli::try_parse_from([&["fairhead", "ladder"], argv].concat())
            .unwrap()
            .command
        {
            Some(Command::Ladder(args)) => args,
            other => panic!("{other:?}"),
        };
        let none = parse(&[]);
        assert_eq!((none.job, none.disk.as_str(), none.host, none.seed), (None, DISK, None, 1));
        assert_eq!((none.only, none.without_each, none.scenario, none.runtime), (None, false, None, None));
        assert_eq!(
            (none.output.format, none.output.file, none.threads.threads),
            (TableFormat::Human, None, None)
        );
        assert_eq!(parse(&["a.fio"]).job, Some("a.fio".into()));
        assert_eq!(parse(&["--disk", "nvme"]).disk, "nvme");
        assert_eq!(parse(&["--host", "2010"]).host.as_deref(), Some("2010"));
        assert_eq!(parse(&["--foreground", "app"]).foreground.as_deref(), Some("app"));
        assert_eq!(parse(&["--only", "bursts"]).only.as_deref(), Some("bursts"));
        assert!(parse(&["--without-each"]).without_each);
        assert_eq!(parse(&["--scenario", "all"]).scenario.as_deref(), Some("all"));
        assert_eq!(parse(&["--seed", "3"]).seed, 3);
        assert_eq!(parse(&["--runtime", "9s"]).runtime.as_deref(), Some("9s"));
        assert_eq!(parse(&["--threads", "2"]).threads.threads, Some(2));
        assert_eq!(parse(&["--output-format", "csv"]).output.format, TableFormat::Csv);
        assert_eq!(parse(&["-o", "x"]).output.file, Some("x".into()));
        assert!(refused(&["ladder", "a.fio", "--scenario", "all"]).contains("cannot be used with"));
    }

    #[test]
    fn every_flag_of_reproduce() {
        let parse = |argv: &[&str]| match Cli::try_parse_from([&["fairhead", "reproduce"], argv].concat())
            .unwrap()
            .command
        {
            Some(Command::Reproduce(args)) => args,
            other => panic!("{other:?}"),
        };
        let none = parse(&[]);
        assert_eq!((none.source, none.check, none.layouts, none.seed, none.only), (None, false, 16, 1, None));
        assert_eq!(
            (none.output.format, none.output.file, none.threads.threads),
            (TableFormat::Human, None, None)
        );
        assert_eq!(parse(&["bfq-2010"]).source.as_deref(), Some("bfq-2010"));
        assert!(parse(&["--check"]).check);
        assert_eq!(parse(&["--only", "R000-C1"]).only.as_deref(), Some("R000-C1"));
        assert_eq!(parse(&["--layouts", "2"]).layouts, 2);
        assert_eq!(parse(&["--seed", "5"]).seed, 5);
        assert_eq!(parse(&["--threads", "1"]).threads.threads, Some(1));
        assert_eq!(parse(&["--output-format", "json"]).output.format, TableFormat::Json);
        assert_eq!(parse(&["-o", "x"]).output.file, Some("x".into()));
        assert!(refused(&["reproduce", "--layouts", "0"]).contains("1..=1000"));
    }
}
