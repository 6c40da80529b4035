//! Arguments of the commands about the machine at hand: `doctor`.

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
Exit codes: 0 nothing found; 1 something found; 2 there is no such disk, or nothing could be seen. Nothing is changed:
each finding has the command that changes it, and the command that undoes that. docs/doctor.md lists the checks.";
