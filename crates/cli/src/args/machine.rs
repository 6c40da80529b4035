//! Arguments of the commands about the machine at hand: `doctor`, `record`, `apply`, `try`.

use std::path::PathBuf;

use clap::Args;

use super::common::{Output, ReportFormat};

#[derive(Debug, Args)]
#[command(after_help = DOCTOR_LEGEND)]
pub(crate) struct DoctorArgs {
    /// Only this disk, such as sda or /dev/sda. Default: all disks.
    #[arg(value_name = "DISK")]
    pub(crate) disk: Option<String>,
    /// Leave out the numbers from the lab, which take a few seconds.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Look at the files below this folder instead of /: a copy of another machine's /sys, /proc, /etc, /run
    /// and /usr/lib/udev.
    #[arg(long, value_name = "DIR", default_value = "/")]
    pub(crate) root: PathBuf,
    /// One JSON object; short for --output-format json.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) output: Output<ReportFormat>,
}

/// Help below the options of `doctor`.
const DOCTOR_LEGEND: &str = "\
Exit codes: 0 nothing found; 1 something found; 2 there is no such disk, or nothing could be seen. Nothing \
is changed: each finding has the command that changes it, and the command that undoes that. docs/doctor.md \
lists the checks.";

#[derive(Debug, Args)]
#[command(after_help = RECORD_LEGEND)]
pub(crate) struct RecordArgs {
    /// A disk or partition, such as sda, /dev/sda1 or /dev/disk/by-id/…; several are possible. Default: all
    /// disks with a queue of requests.
    #[arg(value_name = "DISK")]
    pub(crate) disks: Vec<String>,
    /// Record for this time, such as 60s or 10m; Ctrl-C ends it earlier and keeps what there is.
    #[arg(short, long, value_name = "TIME", default_value = "60s")]
    pub(crate) time: String,
    /// Write the recording to this file.
    #[arg(short, long, value_name = "FILE", default_value = "recorded.blktrace")]
    pub(crate) output: PathBuf,
    /// End when the file has this size, in MiB. A request takes about 150 bytes.
    #[arg(long, value_name = "MIB", default_value = "1024", value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub(crate) size: u64,
    /// The size of the kernel's buffers of all processors together, in MiB: larger loses fewer events on a
    /// busy machine.
    #[arg(long, value_name = "MIB", default_value = "32", value_parser = clap::value_parser!(u64).range(1..=4096))]
    pub(crate) buffer: u64,
    /// The format of the summary.
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) output_format: ReportFormat,
}

/// Help below the options of `record`.
const RECORD_LEGEND: &str = "\
Needs root, and a kernel with tracefs; nothing else, and nothing of the machine is changed. `fairhead \
trace`, `run` and `advise` read the file, and so do blkparse, btt and fio. p50, p99: from the moment when \
the program wants a request to its completion. random: requests that do not begin where the process's \
previous one ended. docs/record.md has more.";

#[derive(Debug, Args)]
#[command(after_help = APPLY_LEGEND)]
pub(crate) struct ApplyArgs {
    /// The disk, such as sda or /dev/sda.
    #[arg(value_name = "DISK")]
    pub(crate) disk: String,
    /// A scheduler of the kernel (none, mq-deadline, bfq, kyber), and settings of the queue or tunables of
    /// the scheduler. Default: the present scheduler.
    #[arg(value_name = "SCHEDULER] [NAME=VALUE", required_unless_present = "undo", conflicts_with = "undo")]
    pub(crate) settings: Vec<String>,
    /// Remove the rule, and put back what was in force before it.
    #[arg(long)]
    pub(crate) undo: bool,
    /// Show what would be done, and change nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do not ask.
    #[arg(long, short = 'y')]
    pub(crate) yes: bool,
    /// Write the rule below this folder instead of /: a copy of another machine's files, or a system to be
    /// installed. Nothing is set at once.
    #[arg(long, value_name = "DIR", default_value = "/")]
    pub(crate) root: PathBuf,
}

/// Help below the options of `apply`.
const APPLY_LEGEND: &str = "\
The rule is one file in /etc/udev/rules.d, for this disk alone: by its serial number, or else by what is \
said aloud. It holds from now on and after every start. `fairhead try` compares two schedulers without \
keeping either. docs/try.md tells more.";

#[derive(Debug, Args)]
#[command(after_help = TRY_LEGEND)]
pub(crate) struct TryArgs {
    /// The disk, such as sda or /dev/sda.
    #[arg(value_name = "DISK")]
    pub(crate) disk: String,
    /// The scheduler to try (none, mq-deadline, bfq, kyber), and settings of the queue or tunables of the
    /// scheduler.
    #[arg(value_name = "SCHEDULER] [NAME=VALUE", required = true)]
    pub(crate) settings: Vec<String>,
    /// The scheduler to compare with, under the kernel's defaults. Default: what is in force.
    #[arg(long, value_name = "SCHEDULER")]
    pub(crate) against: Option<String>,
    /// How long to measure, all turns together.
    #[arg(long, short = 't', value_name = "TIME", default_value = "60s")]
    pub(crate) time: String,
    /// How long a turn is. Its first second is not counted.
    #[arg(long, value_name = "TIME", default_value = "5s")]
    pub(crate) turn: String,
    /// Run this job file under fio meanwhile. Default: whatever this machine does.
    #[arg(long, value_name = "FILE")]
    pub(crate) job: Option<PathBuf>,
    /// One JSON object; short for --output-format json.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) output: Output<ReportFormat>,
}

/// Help below the options of `try`.
const TRY_LEGEND: &str = "\
The scheduler changes in turns, A B B A, and always goes back: at the end, on Ctrl-C, and when fairhead is \
killed. Nothing outlives a restart of the machine. Exit codes: 0 measured; 1 it could not be; 2 misuse; 130 \
ended by Ctrl-C.";

/// Arguments of the watchdog of `try`, which `try` starts.
#[derive(Debug, Args)]
pub(crate) struct PutBackArgs {
    /// The number of the inherited handle.
    pub(crate) handle: i32,
    /// The disk's name.
    pub(crate) disk: String,
}
