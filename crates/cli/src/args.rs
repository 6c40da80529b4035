//! What can be written on the command line. Parsing only: what the words mean is settled in `plan`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use fairhead_sim::job::nearest;

use crate::error::{CliError, fail, one_line};

/// Which disk scheduler and which tunables for my workload on my disk, and why?
#[derive(Debug, Parser)]
#[command(name = "fairhead", version, max_term_width = 110, disable_help_subcommand = true)]
#[command(
    after_help = "Without a command: `fairhead run`, an application that starts while ten readers stream, under every scheduler."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Simulate a fio job file under one or several schedulers and compare.
    Run(RunArgs),
    /// Find the scheduler and the tunables for a job on a disk, by many runs, and say why and what to do.
    Advise(AdviseArgs),
    /// Run a grid of schedulers, tunables, disks and seeds, and write a row of figures for each point.
    Sweep(SweepArgs),
    /// Turn BFQ's heuristics on one by one and tell what each buys.
    Ladder(LadderArgs),
    /// Put the published tables of a source beside ours, number by number.
    Reproduce(ReproduceArgs),
    /// Tell what is in a recorded block trace of any known format, or write it in another.
    Trace(TraceArgs),
    /// Replay a running kernel's log into our scheduler, and say where the two decide differently.
    Conform(ConformArgs),
    /// Replay a recorded drive's requests through a disk model, and say how far its response times are from the drive's.
    Validate(ValidateArgs),
    /// Measure a real disk, without changing what is on it, and write it down as a disk file.
    Calibrate(CalibrateArgs),
    /// Serve files as block devices over NBD, so that each client gets its share of the disk.
    Serve(ServeArgs),
    /// Replay a recording of `serve --record` or `mount --record`, and say whether everything is decided as it was.
    ReplayLive(ReplayLiveArgs),
    /// Show a file that is as slow as a disk, in real time, for any program or for the kernel's own schedulers.
    Emulate(EmulateArgs),
    /// Show a folder so that what is read and written there is scheduled: by thread, I/O priority and cgroup.
    Mount(MountArgs),
    /// Ask a running `serve` or `mount` for its statistics, or change what it does.
    Ctl(CtlArgs),
    /// Show who gets what of the disk of a running `serve` or `mount`, again and again.
    Top(TopArgs),
    /// List what can be named: disks, schedulers or workloads.
    List(ListArgs),
    /// Show a scheduler's tunables, a disk's description or a workload's job file.
    Show(ShowArgs),
    /// Print the script that completes commands and options in a shell.
    Completions(CompletionsArgs),
    /// Print the manual page, or write one for each command.
    Man(ManArgs),
}

impl Default for Command {
    fn default() -> Self {
        Self::Run(RunArgs::default())
    }
}

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
    /// The machine around the disk, by the year of its habits: 2004, 2010, 2016 or 2020. Default: the disk's time, 2020 for a
    /// disk of your own.
    #[arg(long, value_name = "YEAR")]
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
    /// How many simulations run at once. Changes no result. Default: the number of CPUs.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    /// How the results are written.
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) output_format: Format,
    /// Write them to a file instead of the terminal.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
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
rate over the fastest's, 1 is fair. mean, p99, max: latency of a call. took: the longest client's time. idled on purpose: the
disk had nothing to do and requests waited, because the scheduler expected a better one.";

/// The modern 7200 rpm disk of devices.md 3.5.
const DISK: &str = "nas2020";
/// Any number will do, as long as it is the same tomorrow.
const SEED: &str = "1";

impl Default for RunArgs {
    fn default() -> Self {
        Self {
            job: None,
            replay: ReplayArgs::default(),
            disk: DISK.to_owned(),
            host: None,
            sched: Vec::new(),
            set: Vec::new(),
            seed: 1,
            runtime: None,
            interval: None,
            watch: None,
            why: None,
            record: RecordArgs::default(),
            report: None,
            pictures: None,
            threads: None,
            output_format: Format::Human,
            output: None,
        }
    }
}

#[derive(Debug, Args)]
#[command(after_help = LADDER_LEGEND)]
pub(crate) struct LadderArgs {
    /// A fio job file, or the name of a built-in workload (`fairhead list workloads`). Default: startup-10r-seq.
    #[arg(value_name = "JOB.fio", conflicts_with = "scenario")]
    pub(crate) job: Option<PathBuf>,
    /// The disk: a preset (`fairhead list disks`) or a TOML file.
    #[arg(long, value_name = "PRESET|FILE", default_value = DISK, conflicts_with = "scenario")]
    pub(crate) disk: String,
    /// The machine around the disk: 2004, 2010 or 2020. Default: the disk's time.
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
    /// How many simulations run at once. Changes no result. Default: the number of CPUs.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    /// How the results are written.
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) output_format: TableFormat,
    /// Write them to a file instead of the terminal.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// What the columns of a ladder mean.
const LADDER_LEGEND: &str = "\
Each row has one switch of BFQ more than the row before (with --without-each: one less than bfq). quicker: how many times
shorter the foreground job's start-up, or else its 99th percentile, is than in the row before (than bfq's); more: how many
times as much the disk moves. 1.00x is nothing bought.";

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
    /// The machine around the disk: 2004, 2010, 2016 or 2020. Default: the disk's time.
    #[arg(long, value_name = "YEAR")]
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
    /// How many simulations run at once. Changes no result. Default: the number of CPUs.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    /// How the results are written.
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) output_format: ConformFormat,
    /// Write them to a file instead of the terminal.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

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
    /// The machine around the disks: 2004, 2010, 2016 or 2020. Default: each disk's time.
    #[arg(long, value_name = "YEAR")]
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
    /// How many simulations run at once. Changes no result. Default: the number of CPUs.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    /// How the rows are written.
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) output_format: SweepFormat,
    /// Write them to a file instead of the terminal.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
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

/// What the columns of a sweep mean.
const SWEEP_LEGEND: &str = "\
wait: of those who wait (docs/advise.md), the mean start-up time, the time until they are done, or the 99th percentile of a call.
min/max: the smallest share over the largest. mean, p99, max: latency of a call. Ctrl-C ends after the runs under way and writes
the rows that are done; a second one ends at once.";

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
pub(crate) struct ReproduceArgs {
    /// The source: 000 (time-sliced CFQ, 2004) or 001 (seeky processes on flash, 2010). Default: all.
    #[arg(value_name = "SOURCE")]
    pub(crate) source: Option<String>,
    /// Fail (exit code 1) if a number misses its stated tolerance, and name it.
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
    /// How many simulations run at once. Changes no result. Default: the number of CPUs.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    /// How the results are written.
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) output_format: TableFormat,
    /// Write them to a file instead of the terminal.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = TRACE_LEGEND)]
pub(crate) struct TraceArgs {
    /// The trace: blktrace (one file of a set opens all), blkparse, ftrace, fio iolog, MSR, Alibaba, Tencent, SPC, DiskSim or a
    /// recorded start-up; plain, or compressed by gzip, xz, zstd or bzip2.
    #[arg(value_name = "FILE")]
    pub(crate) trace: PathBuf,
    /// Write the trace anew, in this format, instead of telling what is in it.
    #[arg(long, value_name = "FORMAT", conflicts_with = "output_format")]
    pub(crate) to: Option<TraceTarget>,
    /// How the summary is written.
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) output_format: ConformFormat,
    /// Write to a file instead of the terminal.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// What the columns of a trace's table mean.
const TRACE_LEGEND: &str = "\
sync: reads that are no read-ahead, and what is flagged so. sequential: begins where the one before of the same task, device and
operation ended. latency: from the request to its completion, where the trace tells it.";

/// What a trace can be written as.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TraceTarget {
    /// blktrace's binary form, for blkparse and btt.
    #[default]
    Blktrace,
    /// blkparse's text.
    Blkparse,
    /// fio's iolog, version 3.
    Iolog,
}

#[derive(Debug, Args)]
pub(crate) struct ConformArgs {
    /// A log of the blk tracer, plain or compressed by xz; docs/conformance.md says how to record one.
    #[arg(value_name = "LOG")]
    pub(crate) log: PathBuf,
    /// How many of the first differences are shown.
    #[arg(long, value_name = "N", default_value = "10")]
    pub(crate) differences: usize,
    /// How the results are written.
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) output_format: ConformFormat,
    /// Write them to a file instead of the terminal.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = VALIDATE_LEGEND)]
pub(crate) struct ValidateArgs {
    /// The model: a preset (`fairhead list disks`), a TOML file, or DiskSim's FILE.diskspecs or FILE.parv.
    #[arg(value_name = "PRESET|FILE")]
    pub(crate) disk: String,
    /// What the drive did: DiskSim's validation form, a request a line.
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: PathBuf,
    /// Behind a bus of this rate, such as 10MB/s, instead of the model's own.
    #[arg(long, value_name = "RATE")]
    pub(crate) bus_rate: Option<String>,
    /// How to write the figures.
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) output_format: ConformFormat,
    /// Write them to a file instead of the terminal.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// What the figure means.
const VALIDATE_LEGEND: &str = "\
The demerit figure is the root mean square of the horizontal distance between the two distributions of response times
(Ruemmler and Wilkes 1994): how wrong the model is, in time. Requests are sent so long after the answer to the one before as
in the recording.";

#[derive(Debug, Args)]
#[command(after_help = CALIBRATE_LEGEND)]
pub(crate) struct CalibrateArgs {
    /// A block device, or a file (of `fairhead emulate`, say). It is read only, past the page cache.
    #[arg(value_name = "DEVICE|FILE", required_unless_present = "model")]
    pub(crate) device: Option<PathBuf>,
    /// Calibrate a disk model instead, in virtual time: a preset (`fairhead list disks`) or a disk file.
    #[arg(long, value_name = "PRESET|FILE", conflicts_with_all = ["device", "write"])]
    pub(crate) model: Option<String>,
    /// What the fitted disk is called. Default: the file name of what is measured, or of the disk file.
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Take about that long, with fewer samples if need be. Default: what it takes, a minute or two.
    #[arg(long, value_name = "TIME")]
    pub(crate) time: Option<String>,
    /// Measure writes, too. Everything on the device is lost! It must not be mounted.
    #[arg(long)]
    pub(crate) write: bool,
    /// Where to look is drawn from this: a number, decimal or 0x….
    #[arg(long, value_name = "N", default_value = SEED, value_parser = seed)]
    pub(crate) seed: u64,
    /// How the report is written.
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) output_format: ConformFormat,
    /// Write the disk file here: every command that takes a disk takes it.
    #[arg(short, long, value_name = "FILE.toml")]
    pub(crate) output: Option<PathBuf>,
}

/// What the words mean.
const CALIBRATE_LEGEND: &str = "\
Confidence: high, measured by itself and alike each time; fair, measured within a few percent as a rule; low, near what was
measured, or one of several that would explain it; assumed, a default that reads do not show. The demerit figure is the distance of
the fitted model from the drive on fresh requests, as in fairhead validate. Close other programs that use the disk.";

#[derive(Debug, Args)]
#[command(after_help = SERVE_LEGEND)]
pub(crate) struct ServeArgs {
    /// A file or block device, and what clients call it. May be repeated: all are on one disk and share it.
    #[arg(long = "export", value_name = "NAME=FILE[,KEY=VALUE…]", required = true)]
    pub(crate) exports: Vec<String>,
    /// Listen on a unix socket, which only its owner can open. May be repeated.
    #[arg(long, value_name = "PATH")]
    pub(crate) socket: Vec<PathBuf>,
    /// Listen on TCP: a port of this machine, or ADDRESS:PORT. May be repeated.
    #[arg(long, value_name = "[ADDR:]PORT")]
    pub(crate) listen: Vec<String>,
    /// Let other machines connect, though nothing is encrypted and nobody is asked for a password.
    #[arg(long)]
    pub(crate) insecure_remote: bool,
    /// The scheduler (`fairhead list schedulers`).
    #[arg(long, value_name = "NAME", default_value = "bfq")]
    pub(crate) sched: String,
    /// Set a tunable, such as slice_idle=4ms. May be repeated.
    #[arg(long = "set", value_name = "TUNABLE=VALUE")]
    pub(crate) set: Vec<String>,
    /// How many requests the disk has at a time. Default: 1 for a disk with a head; for others 32, and down to 8 while it takes long for them; or what the emulated disk has.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) depth: Option<u16>,
    /// Be as slow as this disk, in real time: a preset (`fairhead list disks`) or a TOML file.
    #[arg(long, value_name = "PRESET|FILE")]
    pub(crate) emulate: Option<String>,
    /// Go through the page cache instead of around it: then any offset and length will do, and the disk is not seen.
    #[arg(long)]
    pub(crate) cached: bool,
    /// How many connections there may be.
    #[arg(long, value_name = "N", default_value = "256", value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub(crate) connections: u16,
    /// Record what the scheduler is told and decides, for `fairhead replay-live`.
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// Serve only while this shell command runs; $uri and $socket tell it where, $control where it can be controlled.
    #[arg(long, value_name = "COMMAND")]
    pub(crate) run: Option<String>,
    #[command(flatten)]
    pub(crate) control: ControlArgs,
}

/// Of all that run until they are told to end.
#[derive(Debug, Default, Args)]
pub(crate) struct ControlArgs {
    /// Listen on a unix socket, which only its owner can open, for `fairhead ctl` and `fairhead top`.
    #[arg(long, value_name = "PATH")]
    pub(crate) control: Option<PathBuf>,
    /// Tell Prometheus, over HTTP: a port of this machine, or ADDRESS:PORT.
    #[arg(long, value_name = "[ADDR:]PORT")]
    pub(crate) metrics: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = CTL_LEGEND)]
pub(crate) struct CtlArgs {
    /// The socket of --control.
    #[arg(value_name = "SOCKET")]
    pub(crate) socket: PathBuf,
    /// What to do. Default: stats.
    #[arg(value_name = "WORD")]
    pub(crate) words: Vec<String>,
}

/// What can be said.
const CTL_LEGEND: &str = "\
stats: everything there is to know, as JSON; metrics: the same as Prometheus reads it; make GROUP [KEY=VALUE…], set GROUP KEY=VALUE…, \
remove GROUP; sched NAME [TUNABLE=VALUE…]: another scheduler; tune TUNABLE=VALUE…: other tunables; \
depth N|auto: the most requests at the disk. Keys: weight=, leaf_weight= 1…10000, \
class=rt|be|idle, rbps=, wbps= (such as 50m), riops=, wiops= (a number), or max for no limit, burst= (a time), min_iops=. docs/control.md.";

#[derive(Debug, Args)]
pub(crate) struct TopArgs {
    /// The socket of --control.
    #[arg(value_name = "SOCKET")]
    pub(crate) socket: PathBuf,
    /// How long to look each time.
    #[arg(long, value_name = "TIME", default_value = "1s")]
    pub(crate) interval: String,
    /// End after that many tables.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) count: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct ReplayLiveArgs {
    /// The recording.
    #[arg(value_name = "FILE")]
    pub(crate) recording: PathBuf,
}

/// What an export can be told.
const SERVE_LEGEND: &str = "\
Keys of an export: weight=1…10000, class=rt|be|idle, rbps=, wbps= (such as 50m), riops=, wiops= (a number): the most it gets; min_iops= the \
requests a second it gets at least; leaf_weight= and burst= as in docs/control.md; group=PATH, if not a group of its own name; readonly; description=TEXT. Ctrl-C or SIGTERM end it: what \
is under way is finished, and a table tells what each export did.";

/// How a comparison is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ConformFormat {
    /// A table and the first differences.
    Human,
    /// One object.
    Json,
}

/// How a reproduction is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TableFormat {
    /// A table.
    Human,
    /// An array with an object per published number.
    Json,
    /// A line per published number.
    Csv,
}

#[derive(Debug, Args)]
#[command(after_help = EMULATE_LEGEND)]
pub(crate) struct EmulateArgs {
    /// The disk: a preset (`fairhead list disks`) or a TOML file.
    #[arg(value_name = "PRESET|FILE")]
    pub(crate) disk: String,
    /// What is on it: a file, whose size is the disk's, or a block device. It has to be faster than the disk that it plays.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// A folder, in which it is shown as `disk`.
    #[arg(value_name = "MOUNTPOINT")]
    pub(crate) at: PathBuf,
}

#[derive(Debug, Args)]
#[command(after_help = MOUNT_LEGEND)]
pub(crate) struct MountArgs {
    /// The folder whose files are read and written.
    #[arg(value_name = "SOURCE")]
    pub(crate) source: PathBuf,
    /// The folder where it is shown.
    #[arg(value_name = "MOUNTPOINT")]
    pub(crate) at: PathBuf,
    /// The scheduler (`fairhead list schedulers`).
    #[arg(long, value_name = "NAME", default_value = "bfq")]
    pub(crate) sched: String,
    /// Set a tunable, such as bfq.low_latency=0. May be repeated.
    #[arg(long = "set", value_name = "SCHED.TUNABLE=VALUE")]
    pub(crate) set: Vec<String>,
    /// What the threads of a cgroup get, such as tenants/gold,weight=300. May be repeated.
    #[arg(long = "group", value_name = "PATH,KEY=VALUE…")]
    pub(crate) groups: Vec<String>,
    /// How many requests the disk has at a time. Default: 1 for a disk with a head; for others 32, and down to 8 while it takes long for them.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) depth: Option<u16>,
    /// As slow as this disk, in real time: a preset (`fairhead list disks`) or a TOML file.
    #[arg(long, value_name = "PRESET|FILE")]
    pub(crate) emulate: Option<String>,
    /// Record what the scheduler is told and decides, for `fairhead replay-live`.
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) control: ControlArgs,
}

/// What a group can be told.
const MOUNT_LEGEND: &str = "\
Keys of a group: weight=1…10000, class=rt|be|idle, rbps=, wbps= (such as 50m), riops=, wiops= (a number): the most it gets; min_iops= the \
requests a second it gets at least. It ends by Ctrl-C, SIGTERM or `umount MOUNTPOINT`; docs/mount.md.";

/// How it ends.
const EMULATE_LEGEND: &str = "\
It ends by Ctrl-C, SIGTERM or `umount MOUNTPOINT`, and tells then how late it was. Requests reach the disk in the order in which they
come, so that whoever uses it schedules: docs/emulate.md.";

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// What to list.
    pub(crate) what: Listed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Listed {
    Disks,
    Schedulers,
    Workloads,
}

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// A scheduler, disk or workload; or a disk's FILE (TOML, or DiskSim's .diskspecs or .parv), which is printed as TOML.
    pub(crate) name: String,
}

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// For which shell.
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Write fairhead.1 and a page for each command into this folder.
    #[arg(value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,
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

fn seed(text: &str) -> Result<u64, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| format!("a number from 0 to {}, decimal or 0x…", u64::MAX))
}

/// The command line, or the exit code after an answer to `--help` or a line about what is wrong.
pub(crate) fn parse(argv: impl IntoIterator<Item = OsString>) -> Result<Cli, ExitCode> {
    Cli::try_parse_from(argv).map_err(|e| match e.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            // A closed pipe is no reason to complain.
            let _ = e.print();
            ExitCode::SUCCESS
        }
        _ => fail(&CliError::Misuse(explain(&e))),
    })
}

/// clap's finding in one line, with the nearest word if it knows one.
fn explain(e: &clap::Error) -> String {
    let text = e.to_string();
    let first = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
    let mut line = match e.kind() {
        // The missing arguments are on the lines below.
        ErrorKind::MissingRequiredArgument | ErrorKind::InvalidValue => {
            let body: Vec<&str> = text
                .lines()
                .take_while(|l| !l.starts_with("Usage:") && !l.trim_start().starts_with("tip:"))
                .collect();
            one_line(body.join("\n").trim_start_matches("error: ")).replace(":;", ":")
        }
        _ => first.to_owned(),
    };
    if let Some(word) = suggestion(e) {
        line.push_str(&format!("; did you mean '{word}'?"));
    }
    line
}

/// What was meant: clap's guess, or else the nearest of the known words by typing errors, which clap does not count.
fn suggestion(e: &clap::Error) -> Option<String> {
    let text = |kind| match e.get(kind) {
        Some(ContextValue::String(s)) => Some(s.clone()),
        Some(ContextValue::Strings(s)) => s.first().cloned(),
        _ => None,
    };
    let clap_knows =
        [ContextKind::SuggestedArg, ContextKind::SuggestedSubcommand, ContextKind::SuggestedValue];
    if let Some(word) = clap_knows.into_iter().find_map(text) {
        return Some(word);
    }
    if let Some(word) = text(ContextKind::InvalidSubcommand) {
        let command = Cli::command();
        return nearest(&word, command.get_subcommands().map(clap::Command::get_name)).map(str::to_owned);
    }
    match (text(ContextKind::InvalidValue), e.get(ContextKind::ValidValue)) {
        (Some(word), Some(ContextValue::Strings(known))) => {
            nearest(&word, known.iter().map(String::as_str)).map(str::to_owned)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(argv: &[&str]) -> RunArgs {
        match Cli::try_parse_from([&["fairhead", "run"], argv].concat()).unwrap().command {
            Some(Command::Run(args)) => args,
            other => panic!("{other:?}"),
        }
    }

    fn refused(argv: &[&str]) -> String {
        explain(&Cli::try_parse_from([&["fairhead"], argv].concat()).unwrap_err())
    }

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn no_command_is_run_without_arguments() {
        assert!(Cli::try_parse_from(["fairhead"]).unwrap().command.is_none());
        let (a, b) = (RunArgs::default(), run(&[]));
        assert_eq!(format!("{a:?}"), format!("{b:?}"));
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
        assert_eq!(run(&["--threads", "2"]).threads, Some(2));
        assert_eq!(run(&["--output-format", "json+"]).output_format, Format::JsonPlus);
        assert_eq!(run(&["--output-format=csv"]).output_format, Format::Csv);
        assert_eq!(run(&["-o", "x"]).output, Some("x".into()));
        assert_eq!(run(&["--output", "x"]).output, Some("x".into()));
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
        assert_eq!((none.output_format, none.output, none.threads), (TableFormat::Human, None, None));
        assert_eq!(parse(&["a.fio"]).job, Some("a.fio".into()));
        assert_eq!(parse(&["--disk", "nvme"]).disk, "nvme");
        assert_eq!(parse(&["--host", "2010"]).host.as_deref(), Some("2010"));
        assert_eq!(parse(&["--foreground", "app"]).foreground.as_deref(), Some("app"));
        assert_eq!(parse(&["--only", "bursts"]).only.as_deref(), Some("bursts"));
        assert!(parse(&["--without-each"]).without_each);
        assert_eq!(parse(&["--scenario", "all"]).scenario.as_deref(), Some("all"));
        assert_eq!(parse(&["--seed", "3"]).seed, 3);
        assert_eq!(parse(&["--runtime", "9s"]).runtime.as_deref(), Some("9s"));
        assert_eq!(parse(&["--threads", "2"]).threads, Some(2));
        assert_eq!(parse(&["--output-format", "csv"]).output_format, TableFormat::Csv);
        assert_eq!(parse(&["-o", "x"]).output, Some("x".into()));
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
        assert_eq!((none.output_format, none.output, none.threads), (TableFormat::Human, None, None));
        assert_eq!(parse(&["000"]).source.as_deref(), Some("000"));
        assert!(parse(&["--check"]).check);
        assert_eq!(parse(&["--only", "R000-C1"]).only.as_deref(), Some("R000-C1"));
        assert_eq!(parse(&["--layouts", "2"]).layouts, 2);
        assert_eq!(parse(&["--seed", "5"]).seed, 5);
        assert_eq!(parse(&["--threads", "1"]).threads, Some(1));
        assert_eq!(parse(&["--output-format", "json"]).output_format, TableFormat::Json);
        assert_eq!(parse(&["-o", "x"]).output, Some("x".into()));
        assert!(refused(&["reproduce", "--layouts", "0"]).contains("1..=1000"));
    }

    #[test]
    fn every_flag_of_the_last_commands() {
        let parse = |argv: &[&str]| Cli::try_parse_from([&["fairhead"], argv].concat()).unwrap().command;
        let shell = |name| match parse(&["completions", name]) {
            Some(Command::Completions(args)) => args.shell,
            other => panic!("{other:?}"),
        };
        assert_eq!((shell("bash"), shell("fish")), (clap_complete::Shell::Bash, clap_complete::Shell::Fish));
        let folder = |argv| match parse(argv) {
            Some(Command::Man(args)) => args.folder,
            other => panic!("{other:?}"),
        };
        assert_eq!((folder(&["man"]), folder(&["man", "x"])), (None, Some("x".into())));
        assert!(refused(&["completions", "tcsh"]).contains("bash"));
        let validate = |argv: &[&str]| match parse(&[&["validate", "d", "--trace", "t"], argv].concat()) {
            Some(Command::Validate(args)) => args,
            other => panic!("{other:?}"),
        };
        assert_eq!(validate(&[]).bus_rate, None);
        let all = validate(&["--bus-rate", "10MB/s", "--output-format", "json", "-o", "x"]);
        assert_eq!((all.bus_rate.as_deref(), all.output), (Some("10MB/s"), Some("x".into())));
        assert_eq!(all.output_format, ConformFormat::Json);
    }

    #[test]
    fn every_flag_of_conform() {
        let parse = |argv: &[&str]| match Cli::try_parse_from([&["fairhead", "conform"], argv].concat())
            .unwrap()
            .command
        {
            Some(Command::Conform(args)) => args,
            other => panic!("{other:?}"),
        };
        let none = parse(&["x"]);
        assert_eq!((none.log, none.differences, none.output), ("x".into(), 10, None));
        assert_eq!(none.output_format, ConformFormat::Human);
        assert_eq!(parse(&["x", "--differences", "3"]).differences, 3);
        assert_eq!(parse(&["x", "--output-format", "json"]).output_format, ConformFormat::Json);
        assert_eq!(parse(&["x", "-o", "y"]).output, Some("y".into()));
        assert!(refused(&["conform"]).contains("<LOG>"));
    }

    #[test]
    fn every_argument_of_emulate() {
        let argv = ["fairhead", "emulate", "nas2020", "disk.img", "/mnt"];
        let Some(Command::Emulate(args)) = Cli::try_parse_from(argv).unwrap().command else {
            panic!("emulate")
        };
        assert_eq!((args.disk.as_str(), args.file, args.at), ("nas2020", "disk.img".into(), "/mnt".into()));
        assert!(refused(&["emulate", "nas2020", "disk.img"]).contains("<MOUNTPOINT>"));
    }

    #[test]
    fn every_flag_of_mount() {
        let parse = |argv: &[&str]| {
            let argv = [&["fairhead", "mount", "a", "b"], argv].concat();
            let Some(Command::Mount(args)) = Cli::try_parse_from(argv).unwrap().command else {
                panic!("mount")
            };
            args
        };
        let none = parse(&[]);
        assert_eq!((none.source, none.at, none.sched.as_str()), ("a".into(), "b".into(), "bfq"));
        assert_eq!((none.set.len(), none.groups.len(), none.depth, none.emulate), (0, 0, None, None));
        assert_eq!(parse(&["--sched", "cfq"]).sched, "cfq");
        assert_eq!(parse(&["--set", "bfq.low_latency=0"]).set, ["bfq.low_latency=0"]);
        assert_eq!(
            parse(&["--group", "a,weight=2", "--group", "b,class=rt"]).groups,
            ["a,weight=2", "b,class=rt"]
        );
        assert_eq!(parse(&["--depth", "2"]).depth, Some(2));
        assert_eq!(parse(&["--emulate", "nas2020"]).emulate.as_deref(), Some("nas2020"));
        assert!(refused(&["mount", "a", "b", "--depth", "0"]).contains("1..=1024"));
        let control = parse(&["--control", "c", "--metrics", "9100"]).control;
        assert_eq!((control.control, control.metrics.as_deref()), (Some("c".into()), Some("9100")));
    }

    #[test]
    fn every_argument_of_ctl_and_top() {
        let parse = |argv: &[&str]| Cli::try_parse_from([&["fairhead"], argv].concat()).unwrap().command;
        let Some(Command::Ctl(ctl)) = parse(&["ctl", "s", "set", "vm1", "weight=300"]) else { panic!("ctl") };
        assert_eq!(
            (ctl.socket, ctl.words),
            ("s".into(), ["set", "vm1", "weight=300"].map(str::to_owned).into())
        );
        let Some(Command::Top(top)) = parse(&["top", "s", "--interval", "2s", "--count", "3"]) else {
            panic!("top")
        };
        assert_eq!((top.socket, top.interval.as_str(), top.count), ("s".into(), "2s", Some(3)));
        let Some(Command::Top(top)) = parse(&["top", "s"]) else { panic!("top") };
        assert_eq!((top.interval.as_str(), top.count), ("1s", None));
        assert!(refused(&["ctl"]).contains("<SOCKET>"));
    }

    #[test]
    fn mistakes_are_one_line_with_the_nearest_word() {
        assert_eq!(refused(&["rnu"]), "unrecognized subcommand 'rnu'; did you mean 'run'?");
        assert_eq!(
            refused(&["run", "--shced", "noop"]),
            "unexpected argument '--shced' found; did you mean '--sched'?"
        );
        assert_eq!(
            refused(&["list", "disk"]),
            "invalid value 'disk' for '<WHAT>'; [possible values: disks, schedulers, workloads]; did you mean 'disks'?"
        );
        assert_eq!(refused(&["show"]), "the following required arguments were not provided: <NAME>");
        assert!(refused(&["run", "--threads", "0"]).contains("1..=1024"));
        assert!(
            refused(&["run", "--seed", "x"])
                .ends_with("a number from 0 to 18446744073709551615, decimal or 0x…")
        );
    }
}
