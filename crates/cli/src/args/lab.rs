//! Arguments of the commands of the lab: `run`, `advise`, `sweep`, `ladder`, `reproduce`.

use std::path::PathBuf;

use clap::{Args, Parser as _, ValueEnum};
use fairhead_sim::job::{Kind, asked};
use fairhead_sim::sweep::Part;

use super::common::{
    DISK, DISKS, Disk, Format, Output, RECORD_FIRST, RECORDINGS, RESULTS, RESUME, RUNS, ReportFormat,
    Runtime, SEED, Seed, SweepFormat, TRACES, TableFormat, Threads, part, seed,
};
use super::recorded::TraceTarget;
use super::{Cli, Command};

#[derive(Debug, Args)]
#[command(after_help = RUN_LEGEND)]
pub(crate) struct RunArgs {
    /// A fio job file, a built-in workload (`fairhead list workloads`), or a recorded trace in any format
    /// that `fairhead trace` reads; - for a job file or trace on standard input.
    #[arg(value_name = "JOB|TRACE")]
    pub(crate) job: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) replay: ReplayArgs,
    #[command(flatten)]
    pub(crate) disk: Disk,
    /// The machine around the disk, by year: 2004, 2010, 2016 or 2020. Default: the year of the disk preset,
    /// 2020 for a disk from a file. Settings follow after commas, as in 2020,path=60us. processors: 2023 for
    /// processors that are modelled one by one, with the locks of schedulers; 2024 for a later mq-deadline
    /// (default for NVMe presets: 2023). nr_requests: the number of requests, as in sysfs (default: what the
    /// disk's driver and the scheduler have). path: the time that a request takes to reach the disk, and
    /// again its completion to come back, for disks behind a loop device, FUSE or NBD (default 0). hz: the
    /// kernel's timer ticks per second (default 250). dirty_bytes and dirty_background_bytes: how much may be
    /// dirty in memory, as in /proc/sys/vm (default: 20 and 10 % of 1 GiB). read_ahead_kb: the largest window
    /// of read-ahead (default 128).
    #[arg(long, value_name = "YEAR[,SETTING…]", help_heading = DISKS)]
    pub(crate) host: Option<String>,
    /// The schedulers to compare (`fairhead list schedulers`), or libraries with a scheduler of your own,
    /// such as ./libmine.so (docs/extend.md). Default: all. If the job names control groups: the schedulers
    /// that can share by group, each with and without that.
    #[arg(long, value_name = "NAME[,NAME…]", value_delimiter = ',', help_heading = DISKS)]
    pub(crate) sched: Vec<String>,
    /// Set a tunable of a scheduler, such as cfq.slice_idle=4ms (`fairhead show SCHED` lists them). May be
    /// repeated.
    #[arg(long = "set", value_name = "SCHED.TUNABLE=VALUE", help_heading = DISKS)]
    pub(crate) set: Vec<String>,
    #[command(flatten)]
    pub(crate) seed: Seed,
    #[command(flatten)]
    pub(crate) runtime: Runtime,
    /// Run a second time with the jobs started in the reverse order, and list the results that change.
    #[arg(long, help_heading = RUNS)]
    pub(crate) jitter_starts: bool,
    /// Also report the figures of each interval of this length, such as 1s.
    #[arg(long, value_name = "TIME", help_heading = RESULTS)]
    pub(crate) interval: Option<String>,
    /// Also report the disk time of each control group in each interval of this length, such as 2s (at least
    /// 10ms), and the ratio of the first group to each other one.
    #[arg(long, value_name = "TIME", help_heading = RESULTS)]
    pub(crate) watch: Option<String>,
    /// Also explain where the time of a job's clients went. CLIENT is a job, or one clone of it as JOB.CLONE.
    /// FROM-TO selects a part of the run, as in JOB@3s-4s. Default: the part in which the client was slowest.
    #[arg(long, value_name = "CLIENT[@FROM-TO]", help_heading = RESULTS)]
    pub(crate) why: Option<String>,
    #[command(flatten)]
    pub(crate) record: RecordingArgs,
    /// Also write an HTML page with the results and pictures of the runs, as one self-contained file.
    #[arg(long, value_name = "FILE.html", help_heading = RESULTS)]
    pub(crate) report: Option<PathBuf>,
    /// Also write the pictures of the runs into this folder, as SVG files.
    #[arg(long, value_name = "DIR", help_heading = RESULTS)]
    pub(crate) pictures: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) threads: Threads,
    #[command(flatten)]
    pub(crate) output: Output<Format>,
    /// Jobs in the words of fio's command line, as in `fairhead run -- --name=x --rw=randread --size=1g`.
    /// A whole line that begins with fio may be pasted. Its --output and --output-format=json are those of -o
    /// and json+ here.
    #[arg(last = true, value_name = "FIO…")]
    pub(crate) words: Vec<String>,
}

/// The load of the commands that need one.
#[derive(Debug, Args)]
pub(crate) struct Load {
    /// A fio job file, a built-in workload (`fairhead list workloads`), or a recorded trace in any format
    /// that `fairhead trace` reads; - for a job file or trace on standard input.
    #[arg(value_name = "JOB|TRACE")]
    pub(crate) job: PathBuf,
    #[command(flatten)]
    pub(crate) replay: ReplayArgs,
}

/// Recordings of what happens in a run. They change no result; with any of them the schedulers run one after
/// the other.
#[derive(Debug, Default, Args)]
pub(crate) struct RecordingArgs {
    /// Write a CSV row for each request: its client, its place, the times of its creation, insertion, issue
    /// and completion, and why the scheduler chose it. With - the rows go to the terminal, and the results
    /// only to the file of -o.
    #[arg(long, value_name = "FILE.csv", help_heading = RECORDINGS)]
    pub(crate) requests: Option<PathBuf>,
    /// Write a timeline for ui.perfetto.dev: calls, what the disk works on or idles for, and each decision
    /// with its reason.
    #[arg(long, value_name = "FILE", help_heading = RECORDINGS)]
    pub(crate) timeline: Option<PathBuf>,
    /// Write a trace of the block layer's events, in the format of --trace-format. Needs a run of one
    /// scheduler.
    #[arg(long, value_name = "FILE", help_heading = RECORDINGS)]
    pub(crate) trace_out: Option<PathBuf>,
    /// The format of --trace-out: blktrace's binary form (for blkparse and btt), blkparse's text, or a log
    /// that fio replays.
    #[arg(
        long,
        value_name = "FORMAT",
        default_value = "blktrace",
        requires = "trace_out",
        help_heading = RECORDINGS,
    )]
    pub(crate) trace_format: TraceTarget,
}

impl RunArgs {
    /// The arguments with what a command line of fio says of the output, where nothing else says it.
    pub(crate) fn with_fios_output(mut self) -> Self {
        let asked = asked(&self.words);
        if self.output.format == Format::Human && asked.json {
            self.output.format = Format::JsonPlus;
        }
        self.output.file = self.output.file.or_else(|| asked.output.map(PathBuf::from));
        self
    }

    /// The arguments of `fairhead run` with these words, which are known to be right.
    pub(crate) fn of(words: &[&str]) -> Self {
        match Cli::parse_from([&["fairhead", "run"], words].concat()).command {
            Some(Command::Run(args)) => args,
            other => unreachable!("run is a command: {other:?}"),
        }
    }
}

/// The options that say how a recorded trace is replayed.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ReplayArgs {
    /// When the requests of a trace are sent. Default: closed if the trace has completion times, else open.
    #[arg(long, value_name = "HOW", help_heading = TRACES)]
    pub(crate) replay: Option<ReplayMode>,
    /// Replay a trace at this speed, in percent: 200 halves all gaps between requests. Default: 100.
    #[arg(
        long,
        value_name = "PERCENT",
        value_parser = clap::value_parser!(u32).range(1..=8_640_000),
        help_heading = TRACES,
    )]
    pub(crate) replay_time_scale: Option<u32>,
    /// How the addresses of a trace are mapped if its disk is larger than this one. Default: scale.
    #[arg(long, value_name = "HOW", help_heading = TRACES)]
    pub(crate) replay_fit: Option<ReplayFit>,
    /// Replay only the requests of this device of the trace. May be repeated. Default: all devices.
    #[arg(long, value_name = "NAME", help_heading = TRACES)]
    pub(crate) replay_device: Vec<String>,
    /// Map all devices of a trace to the same sectors of the disk. Default: each device has a region of its
    /// own, one behind the other.
    #[arg(long, help_heading = TRACES)]
    pub(crate) replay_redirect: bool,
    /// Number of tasks of a trace that have a client each; all other tasks share one. Default: 16.
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=4096),
        help_heading = TRACES,
    )]
    pub(crate) replay_clients: Option<u32>,
    /// The most requests that a client of a trace has in flight. Default: 256.
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=4096),
        help_heading = TRACES,
    )]
    pub(crate) replay_depth: Option<u32>,
}

/// When the requests of a trace are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReplayMode {
    /// At their recorded times, however slow the disk is.
    Open,
    /// As long after the completion before it as in the recording.
    Closed,
    /// As soon as the request before it has completed, without pauses.
    NoStall,
}

/// How the addresses of a trace are mapped to a smaller disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReplayFit {
    /// Scale all addresses down.
    Scale,
    /// Wrap addresses beyond the end to the start of the disk.
    Wrap,
}

/// Help below the options of `run`: the columns of its table.
const RUN_LEGEND: &str = "\
The table has a row for each job and scheduler; on a terminal the best value of each column is bold. \
min/max: the rate of the slowest client over that of the fastest; 1 is fair. mean, p99, max: latency of a \
call. sync: latency of an fsync or fdatasync. took: the time of the longest client, with > if another job \
ended it (exitall); the rates of the row are over this time. MiB/s while all ran: for jobs that end at \
different times, the rate until the first of them ended, and how long that was. idled on purpose: share of \
the time in which the disk had nothing to do although requests waited, because the scheduler expected a \
better request.";

#[derive(Debug, Args)]
#[command(after_help = ADVISE_LEGEND)]
pub(crate) struct AdviseArgs {
    #[command(flatten)]
    pub(crate) load: Load,
    /// The disk model: a preset (`fairhead list disks`), a TOML file, or a disk of this machine such as
    /// /dev/sda, for the preset most like it. Default: nas2020; with --record the preset most like the
    /// recorded disk.
    #[arg(long, value_name = "PRESET|FILE|DEVICE", help_heading = DISKS)]
    pub(crate) disk: Option<String>,
    /// Record what this machine does for this time, such as 60s, and advise from that. In place of the job
    /// stands the disk or partition to record, such as /dev/sda. Ctrl-C ends the recording earlier. Needs
    /// root.
    #[arg(long, value_name = "TIME", help_heading = RECORD_FIRST)]
    pub(crate) record: Option<String>,
    /// With --record: keep the recording in this file.
    #[arg(
        long,
        value_name = "FILE",
        default_value = "recorded.blktrace",
        requires = "record",
        help_heading = RECORD_FIRST,
    )]
    pub(crate) recording: PathBuf,
    /// The machine around the disk, by year: 2004, 2010, 2016 or 2020, with settings as for
    /// `run`, such as 2020,path=60us. Default: the year of the disk preset, 2020 for a disk from a file.
    #[arg(long, value_name = "YEAR[,SETTING…]", help_heading = DISKS)]
    pub(crate) host: Option<String>,
    /// Which kind of job counts four times: starts, rates (films, cameras), waits (queries, commits), bulk
    /// (copies). even: each counts as its class and its control group say.
    #[arg(long, value_name = "KIND", default_value = "even", value_parser = goal, help_heading = RUNS)]
    pub(crate) goal: Goal,
    /// The job that counts four times, and may not fare worse than now.
    #[arg(long = "for", value_name = "JOB", conflicts_with = "goal", help_heading = RUNS)]
    pub(crate) of_job: Option<String>,
    /// How much to simulate, as an approximate time on two cores. The cost of a run is computed from its
    /// events, not measured, so the same budget gives the same answer on every machine.
    #[arg(long, value_name = "TIME", default_value = "10s", help_heading = RUNS)]
    pub(crate) budget: String,
    /// Run at most this many rounds of seeds in each race, even beyond --budget; the budget still bounds how
    /// many fresh seeds confirm. Default: as many as the budget allows.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=5), help_heading = RUNS)]
    pub(crate) rounds: Option<u32>,
    /// The scheduler in use now, which all others are compared with. Default: the kernel's default for such a
    /// disk.
    #[arg(long, value_name = "SCHED", help_heading = DISKS)]
    pub(crate) against: Option<String>,
    /// Compare only these schedulers, with default tunables, and the one in use now, as in
    /// none,mq-deadline,kyber,bfq; a library with a scheduler of your own is named by its file, as for `run`.
    /// Default: all that suit the disk, with the tunables that matter.
    #[arg(long, value_name = "SCHED[,…]", value_delimiter = ',', help_heading = DISKS)]
    pub(crate) sched: Vec<String>,
    /// Also print every candidate, what each job gets under it, the reasons, and all that can be done.
    #[arg(long, help_heading = RESULTS)]
    pub(crate) details: bool,
    #[command(flatten)]
    pub(crate) seed: Seed,
    #[command(flatten)]
    pub(crate) runtime: Runtime,
    /// Also write an HTML page with the verdict, the figures behind it, and pictures of the winner and the
    /// default.
    #[arg(long, value_name = "FILE.html", help_heading = RESULTS)]
    pub(crate) report: Option<PathBuf>,
    /// Keep the results of finished runs in this file, and reuse those that it has: the same command resumes
    /// after an interruption.
    #[arg(long, value_name = "FILE", help_heading = RESUME)]
    pub(crate) resume: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) threads: Threads,
    #[command(flatten)]
    pub(crate) output: Output<ReportFormat>,
}

/// Which jobs of advice count more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Goal {
    /// Each as its class and group say.
    Even,
    /// Those of a kind.
    Kind(Kind),
}

/// The words of `--goal`, with what they mean.
const GOALS: [(&str, Goal); 5] = [
    ("even", Goal::Even),
    ("starts", Goal::Kind(Kind::Start)),
    ("rates", Goal::Kind(Kind::Paced)),
    ("waits", Goal::Kind(Kind::Waiting)),
    ("bulk", Goal::Kind(Kind::Bulk)),
];

/// The words that `--goal` had, with those that replace them.
const OLD_GOALS: [(&str, &str); 4] = [
    ("latency", "starts or waits"),
    ("throughput", "bulk"),
    ("fairness", "even, which weighs jobs by class and group"),
    ("balanced", "even"),
];

/// A value of `--goal`.
fn goal(text: &str) -> Result<Goal, String> {
    if let Some((_, goal)) = GOALS.iter().find(|(word, _)| *word == text) {
        return Ok(*goal);
    }
    if let Some((_, now)) = OLD_GOALS.iter().find(|(word, _)| *word == text) {
        return Err(format!("it is now {now}"));
    }
    Err("there are even, starts, rates, waits and bulk".to_owned())
}

/// Help below the options of `advise`.
const ADVISE_LEGEND: &str = "\
A bar is how much of what it would get alone on that disk each job gets, under what is in use now and under \
the other scheduler. start: the time until it is done; rate: the rate that it asks for; p99: the latency \
that one call of a hundred exceeds; bulk: its throughput, by its share. docs/advise.md has the rules.";

#[derive(Debug, Args)]
#[command(after_help = SWEEP_LEGEND)]
pub(crate) struct SweepArgs {
    #[command(flatten)]
    pub(crate) load: Load,
    /// The disk models: presets (`fairhead list disks`) or TOML files.
    #[arg(
        long,
        value_name = "PRESET|FILE[,…]",
        default_value = DISK,
        value_delimiter = ',',
        help_heading = DISKS,
    )]
    pub(crate) disk: Vec<String>,
    /// The machine around the disks, by year: 2004, 2010, 2016 or 2020, with settings as for
    /// `run`, such as 2020,path=60us. Default: the year of each disk preset, 2020 for a disk from a file.
    #[arg(long, value_name = "YEAR[,SETTING…]", help_heading = DISKS)]
    pub(crate) host: Option<String>,
    /// The schedulers (`fairhead list schedulers`), or libraries, as for `run`. Default: all, as for `run`.
    #[arg(long, value_name = "NAME[,NAME…]", value_delimiter = ',', help_heading = DISKS)]
    pub(crate) sched: Vec<String>,
    /// The values of a tunable, such as cfq.slice_idle=0,2ms,4ms,8ms. May be repeated: every combination is
    /// run.
    #[arg(long = "set", value_name = "SCHED.TUNABLE=VALUE[,…]", help_heading = DISKS)]
    pub(crate) set: Vec<String>,
    /// The first random seed, a number in decimal or 0x…: the same seed gives the same result.
    #[arg(long, value_name = "N", default_value = SEED, value_parser = seed, help_heading = RUNS)]
    pub(crate) seed: u64,
    /// The number of seeds for each point: --seed and the numbers after it.
    #[arg(
        long,
        value_name = "N",
        default_value = "1",
        value_parser = clap::value_parser!(u32).range(1..),
        help_heading = RUNS,
    )]
    pub(crate) seeds: u32,
    #[command(flatten)]
    pub(crate) runtime: Runtime,
    /// Keep the results of finished runs in this file, and reuse those that it has: the same command resumes
    /// after an interruption.
    #[arg(long, value_name = "FILE", help_heading = RESUME)]
    pub(crate) resume: Option<PathBuf>,
    /// Run only every Nth point, from the Kth on: part K of N of the sweep, for N machines. Keep the results
    /// with --resume, and join them with --merge.
    #[arg(long, value_name = "K/N", value_parser = part, requires = "resume", help_heading = RESUME)]
    pub(crate) shard: Option<Part>,
    /// Take the results that these files of --resume have; what none has is run. With --resume they are
    /// copied there.
    #[arg(long, value_name = "FILE", num_args = 1.., help_heading = RESUME)]
    pub(crate) merge: Vec<PathBuf>,
    /// Also write one HTML page to this file: lines or heat maps over the tunables, the settings that no
    /// other beats, and a table with a column for each tunable.
    #[arg(long, value_name = "FILE.html", help_heading = RESULTS)]
    pub(crate) report: Option<PathBuf>,
    /// Also write the pictures of that page into this folder, as SVG files.
    #[arg(long, value_name = "DIR", help_heading = RESULTS)]
    pub(crate) pictures: Option<PathBuf>,
    /// Also write the rows to this Parquet file, with the columns of the CSV.
    #[arg(long, value_name = "FILE", help_heading = RESULTS)]
    pub(crate) parquet: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) threads: Threads,
    #[command(flatten)]
    pub(crate) output: Output<SweepFormat>,
}

/// Help below the options of `sweep`: the columns of its table.
const SWEEP_LEGEND: &str = "\
of alone: how much of what it would get alone on that disk each job gets, as a weighted geometric mean over \
the jobs. The other columns have what each job gets: start: the time until it is done; rate: the rate that \
it asks for; p99: the latency that one call of a hundred exceeds; bulk: its throughput. ±: half the \
interval of 95 %. docs/sweep.md has the rules. Ctrl-C lets the current runs finish and writes the rows that \
are done; a second Ctrl-C ends at once.";

#[derive(Debug, Args)]
#[command(after_help = LADDER_LEGEND)]
pub(crate) struct LadderArgs {
    /// A fio job file or a built-in workload (`fairhead list workloads`). Default: startup-10r-seq.
    #[arg(value_name = "JOB.fio", conflicts_with = "scenario")]
    pub(crate) job: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) disk: Disk,
    /// The machine around the disk, by year: 2004, 2010, 2016 or 2020. Default: the year of the
    /// disk preset, 2020 for a disk from a file.
    #[arg(long, value_name = "YEAR", conflicts_with = "scenario")]
    pub(crate) host: Option<String>,
    /// The job whose latency is reported. Default: the first that starts an application, else the first that
    /// plays a film, else the last job.
    #[arg(long, value_name = "JOB", conflicts_with = "scenario")]
    pub(crate) foreground: Option<String>,
    /// Try only this switch of BFQ: with all others off, and with all others on.
    #[arg(long, value_name = "SWITCH", conflicts_with_all = ["scenario", "without_each"])]
    pub(crate) only: Option<String>,
    /// Run with all switches on, then with all but one, for each switch.
    #[arg(long, conflicts_with = "scenario")]
    pub(crate) without_each: bool,
    /// Instead of a job, run the load that a switch was written for, with and without the switch; all: for
    /// each switch.
    #[arg(long, value_name = "SWITCH|all", conflicts_with_all = ["disk", "runtime"])]
    pub(crate) scenario: Option<String>,
    #[command(flatten)]
    pub(crate) seed: Seed,
    #[command(flatten)]
    pub(crate) runtime: Runtime,
    #[command(flatten)]
    pub(crate) threads: Threads,
    #[command(flatten)]
    pub(crate) output: Output<TableFormat>,
}

/// Help below the options of `ladder`: the columns of its table.
const LADDER_LEGEND: &str = "\
Each row has one switch of BFQ more than the row before (with --without-each: one less than bfq). quicker: \
how many times shorter the foreground job's start-up time, or else its p99, is than in the row before (than \
bfq's). more: how many times as many bytes per second the disk moves. 1.00x: no difference.";

#[derive(Debug, Args)]
pub(crate) struct ReproduceArgs {
    /// The published source: cfq-timeslices-2004 (time-sliced CFQ), cfq-seeky-ssd-2010 (seeky processes on
    /// flash), bfq-2010 (BFQ announced), io-controller-v9-2009 (an IO controller), bfq-v8-2016 (BFQ on an
    /// SSD) or icpe24 (schedulers on NVMe drives). 000 to 004 mean the first five, in this order. Default:
    /// all.
    #[arg(value_name = "SOURCE")]
    pub(crate) source: Option<String>,
    /// Compare with your own measurements instead: a CSV file with the columns job, scheduler, metric and
    /// published, and optionally of, disk, host and bound (docs/reproduce.md).
    #[arg(long, value_name = "FILE", conflicts_with = "source")]
    pub(crate) figures: Option<PathBuf>,
    /// The disk model for rows of --figures that name none: a preset or a TOML file.
    #[arg(long, value_name = "PRESET|FILE", default_value = "980pro", requires = "figures")]
    pub(crate) disk: String,
    /// The machine for rows of --figures that name none, as for `run`. Default: the year of the disk preset.
    #[arg(long, value_name = "YEAR[,SETTING…]", requires = "figures")]
    pub(crate) host: Option<String>,
    /// List the known misses with their reasons, and fail (exit code 1) if a miss is new, worse than known,
    /// or gone. In the table, a row ends when its verdict is clear.
    #[arg(long)]
    pub(crate) check: bool,
    /// Run only the rows whose id contains this text.
    #[arg(long, value_name = "ROW")]
    pub(crate) only: Option<String>,
    /// The number of random file layouts; each figure is the mean over them.
    #[arg(
        long,
        value_name = "N",
        default_value = "16",
        value_parser = clap::value_parser!(u32).range(1..=1000),
    )]
    pub(crate) layouts: u32,
    /// The random seed of the first layout, a number in decimal or 0x…; the others use the numbers after it.
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
        RunArgs::of(argv)
    }

    #[test]
    fn no_command_is_a_picture_and_all_needs_no_command() {
        assert!(Cli::try_parse_from(["fairhead"]).unwrap().command.is_none());
        assert!(Cli::try_parse_from(["fairhead", "--all"]).unwrap().all);
        assert!(Cli::try_parse_from(["fairhead", "--all", "run"]).is_err());
    }

    #[test]
    fn every_flag_of_run() {
        assert_eq!(run(&["a.fio"]).job, Some("a.fio".into()));
        assert_eq!(run(&["--disk", "ide2004"]).disk.name, "ide2004");
        assert_eq!(run(&["--sched", "noop,cfq", "--sched", "as"]).sched, ["noop", "cfq", "as"]);
        assert_eq!(
            run(&["--set", "cfq.slice_idle=4ms", "--set=cfq.quantum=8"]).set,
            ["cfq.slice_idle=4ms", "cfq.quantum=8"]
        );
        assert_eq!(run(&["--seed", "7"]).seed.number, 7);
        assert_eq!(run(&["--seed", "0xff"]).seed.number, 255);
        assert_eq!(run(&["--runtime", "10s"]).runtime.time.as_deref(), Some("10s"));
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
        assert_eq!((none.job, none.disk.name.as_str(), none.host, none.seed.number), (None, DISK, None, 1));
        assert_eq!(
            (none.only, none.without_each, none.scenario, none.runtime.time),
            (None, false, None, None)
        );
        assert_eq!(
            (none.output.format, none.output.file, none.threads.threads),
            (TableFormat::Human, None, None)
        );
        assert_eq!(parse(&["a.fio"]).job, Some("a.fio".into()));
        assert_eq!(parse(&["--disk", "nvme"]).disk.name, "nvme");
        assert_eq!(parse(&["--host", "2010"]).host.as_deref(), Some("2010"));
        assert_eq!(parse(&["--foreground", "app"]).foreground.as_deref(), Some("app"));
        assert_eq!(parse(&["--only", "bursts"]).only.as_deref(), Some("bursts"));
        assert!(parse(&["--without-each"]).without_each);
        assert_eq!(parse(&["--scenario", "all"]).scenario.as_deref(), Some("all"));
        assert_eq!(parse(&["--seed", "3"]).seed.number, 3);
        assert_eq!(parse(&["--runtime", "9s"]).runtime.time.as_deref(), Some("9s"));
        assert_eq!(parse(&["--threads", "2"]).threads.threads, Some(2));
        assert_eq!(parse(&["--output-format", "csv"]).output.format, TableFormat::Csv);
        assert_eq!(parse(&["-o", "x"]).output.file, Some("x".into()));
        let of_a_job = ["a.fio", "--disk=nvme", "--host=2010", "--foreground=app", "--only=bursts"];
        for option in of_a_job.into_iter().chain(["--without-each", "--runtime=9s"]) {
            let said = refused(&["ladder", option, "--scenario", "all"]);
            assert!(said.contains("cannot be used with"), "{option}: {said}");
        }
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
