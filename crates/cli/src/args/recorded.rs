//! Arguments of the commands on recordings and real drives: `trace`, `conform`, `validate`, `calibrate`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use fairhead_trace::Target;

use super::common::{Output, ReportFormat, SEED, seed};

#[derive(Debug, Args)]
#[command(after_help = TRACE_LEGEND)]
pub(crate) struct TraceArgs {
    /// The trace: blktrace (any file of a set stands for the set), blkparse, ftrace, perf script, biosnoop,
    /// iosnoop, fio iolog, MSR, Alibaba, Tencent, SPC, cloudPhysics (CSV, VSCSI), libCacheSim's CSV, DiskSim,
    /// MQSim, a recorded start-up, or a recording of serve or mount; plain or compressed (gzip, xz, zstd,
    /// bzip2).
    #[arg(value_name = "FILE")]
    pub(crate) trace: PathBuf,
    /// Convert the trace to this format, instead of describing it.
    #[arg(long, value_name = "FORMAT", conflicts_with = "output_format")]
    pub(crate) to: Option<TraceTarget>,
    #[command(flatten)]
    pub(crate) output: Output<ReportFormat>,
}

/// Help below the options of `trace`: the columns of its table.
const TRACE_LEGEND: &str = "\
sync: reads other than read-ahead, and requests that are flagged as sync. sequential: requests that begin \
where the previous one of the same task, device and operation ended. latency: from the request to its \
completion, if the trace has completions.";

/// The format in which a trace is written.
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
    /// A log of the kernel's blk tracer, plain or compressed by xz. docs/conformance.md says how to record
    /// one.
    #[arg(value_name = "LOG")]
    pub(crate) log: PathBuf,
    /// Print at most this many differences, the first ones.
    #[arg(long, value_name = "N", default_value = "10")]
    pub(crate) differences: usize,
    #[command(flatten)]
    pub(crate) output: Output<ReportFormat>,
}

impl From<TraceTarget> for Target {
    fn from(target: TraceTarget) -> Self {
        match target {
            TraceTarget::Blktrace => Self::Blktrace,
            TraceTarget::Blkparse => Self::Blkparse,
            TraceTarget::Iolog => Self::Iolog,
        }
    }
}

#[derive(Debug, Args)]
#[command(after_help = VALIDATE_LEGEND)]
pub(crate) struct ValidateArgs {
    /// The disk model: a preset (`fairhead list disks`), a TOML file, or DiskSim's FILE.diskspecs or
    /// FILE.parv.
    #[arg(value_name = "PRESET|FILE")]
    pub(crate) disk: String,
    /// The recording of the drive, in DiskSim's validation format: one request per line.
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: PathBuf,
    /// The transfer rate of the bus, such as 10MB/s. Default: the model's own.
    #[arg(long, value_name = "RATE")]
    pub(crate) bus_rate: Option<String>,
    #[command(flatten)]
    pub(crate) output: Output<ReportFormat>,
}

/// Help below the options of `validate`: the demerit figure.
const VALIDATE_LEGEND: &str = "\
The demerit figure is the root mean square of the horizontal distance between the two distributions of \
response times (Ruemmler and Wilkes 1994): the error of the model, as a time. 0 is perfect. Each request is \
sent as long after the previous completion as in the recording.";

#[derive(Debug, Args)]
#[command(after_help = CALIBRATE_LEGEND)]
pub(crate) struct CalibrateArgs {
    /// A block device, or a file such as the one of `fairhead emulate`. Without --write it is only read. The
    /// page cache is bypassed.
    #[arg(value_name = "DEVICE|FILE", required_unless_present = "model")]
    pub(crate) device: Option<PathBuf>,
    /// Calibrate a disk model instead of a device, in virtual time: a preset (`fairhead list disks`) or a
    /// TOML file.
    #[arg(long, value_name = "PRESET|FILE", conflicts_with_all = ["device", "write"])]
    pub(crate) model: Option<String>,
    /// The name of the fitted disk. Default: the name of the output file, or else of the measured device.
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Measure for about this time, such as 30s, with fewer samples if necessary. Default: as long as all
    /// samples take, one or two minutes.
    #[arg(long, value_name = "TIME")]
    pub(crate) time: Option<String>,
    /// Measure writes, too. This destroys all data on the device, which must not be mounted.
    #[arg(long)]
    pub(crate) write: bool,
    /// Random seed for the places that are read, a number in decimal or 0x….
    #[arg(long, value_name = "N", default_value = SEED, value_parser = seed)]
    pub(crate) seed: u64,
    /// The format of the report.
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) output_format: ReportFormat,
    /// Write the fitted disk to this file, for --disk and every other argument that takes a disk.
    #[arg(short, long, value_name = "FILE.toml")]
    pub(crate) output: Option<PathBuf>,
}

/// Help below the options of `calibrate`: its words.
const CALIBRATE_LEGEND: &str = "\
Confidence: high, measured directly and with the same result each time; fair, as a rule measured within a \
few percent; low, close to what was measured, or one of several values that would explain it; assumed, a \
default, because reads do not show it. The demerit figure is the distance of the fitted model from the \
drive on fresh requests, as in `fairhead validate`. Close other programs that use the disk while it is \
measured.";

#[cfg(test)]
mod tests {
    use super::super::tests::refused;
    use super::super::{Cli, Command};
    use super::*;
    use clap::Parser;

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
        assert_eq!((none.log, none.differences, none.output.file), ("x".into(), 10, None));
        assert_eq!(none.output.format, ReportFormat::Human);
        assert_eq!(parse(&["x", "--differences", "3"]).differences, 3);
        assert_eq!(parse(&["x", "--output-format", "json"]).output.format, ReportFormat::Json);
        assert_eq!(parse(&["x", "-o", "y"]).output.file, Some("y".into()));
        assert!(refused(&["conform"]).contains("<LOG>"));
    }
}
