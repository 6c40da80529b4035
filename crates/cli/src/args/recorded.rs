//! What was recorded or is measured: traces, logs of kernels, drives.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::common::{Output, ReportFormat, SEED, seed};

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
    #[command(flatten)]
    pub(crate) output: Output<ReportFormat>,
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
    #[command(flatten)]
    pub(crate) output: Output<ReportFormat>,
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
    #[command(flatten)]
    pub(crate) output: Output<ReportFormat>,
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
    pub(crate) output_format: ReportFormat,
    /// Write the disk file here: every command that takes a disk takes it.
    #[arg(short, long, value_name = "FILE.toml")]
    pub(crate) output: Option<PathBuf>,
}

/// What the words mean.
const CALIBRATE_LEGEND: &str = "\
Confidence: high, measured by itself and alike each time; fair, measured within a few percent as a rule; low, near what was
measured, or one of several that would explain it; assumed, a default that reads do not show. The demerit figure is the distance of
the fitted model from the drive on fresh requests, as in fairhead validate. Close other programs that use the disk.";

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
