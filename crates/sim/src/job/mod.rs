//! fio job files: the subset that users of I/O benchmarks write, and Fairhead's own options under the prefix
//! `fh_`.
//!
//! The same file runs under fio on a real disk and here on a modelled one. [`parse`] takes the text and gives
//! a [`JobFile`], or a [`JobError`] of one line that names the file, the line and what would be right:
//!
//! ```text
//! job.fio:7: unknown option 'iodpeth'; did you mean 'iodepth'?
//! ```
//!
//! Every option of fio 3.33 is known. Those that matter to a disk are obeyed, those that cannot (clocks,
//! logs, buffers' contents) are accepted and listed in a note, and those that would change the load in a way
//! that is not simulated are refused: a result for another job than the one in the file would be worse than
//! none. `docs/job-files.md` has the tables.
//!
//! ```text
//! load, value                      plain types of a load; values with fio's units
//! disks, groups, steady, …         what belongs to a few options, with its types
//! model                            a job, with a field of each of these types
//! draft                            a section while its lines are read
//! load_values                      values of a few options, with their own grammar
//! options, finish                  what each option sets in a draft; what is settled at the section's end
//! parse                            lines, sections, and the rules between jobs
//! ```
//!
//! A file imports files of the lines above its own.
//!
//! `command_line` reads fio's command line with the same parser. What it does not do: open files; what a job
//! file includes is read by the caller ([`Surroundings::include`]).
//
//= fio-3.33 HOWTO "Job file format"

mod cmdprio;
mod command_line;
mod disks;
mod draft;
mod engines;
mod error;
mod finish;
mod groups;
mod load;
mod load_values;
mod model;
mod nearest;
mod options;
mod parse;
mod steady;
mod steer;
mod surroundings;
mod trace;
mod value;

#[cfg(test)]
mod examples_test;
#[cfg(test)]
mod fio_test;
#[cfg(test)]
mod like_fio_test;
#[cfg(test)]
mod tests;

pub use cmdprio::CallPrio;
pub use command_line::{Asked, asked, parse_command_line};
pub use disks::{DISKS_MAX, Disk, DiskId, Model};
pub use error::JobError;
pub use groups::{Cgroup, Change, ChangeTo, Setting, class_word};
pub use load::{
    Application, BlockSize, Direction, Distribution, Engine, FileService, Kind, Layout, Metadata, Pattern,
    PerOp, Percentiles, Placement, Program, RandomZone, Sequencer, Size, SyncMode, Unified, Verify, Zones,
};
pub use model::{Client, Job, JobFile, Written};
pub use nearest::nearest;
pub use parse::{not_utf8, parse, parse_bytes, parse_in};
pub use steady::{SteadyFigure, SteadyState};
pub use steer::{ExitWhat, Flow, LatencyTarget, RateMin};
pub use surroundings::{ReadFile, Surroundings};
pub use trace::{StartUpTrace, TRACE_BYTES_MAX, TRACE_PROCESSES_MAX, TraceFile, TraceRequest};
pub use value::{size_value, time_value};

/// The most bytes that a job file may have: a thousand times a long one.
pub const BYTES_MAX: usize = 1 << 20;
/// The most bytes that a line may have: a list of 64 block sizes fits many times.
pub const LINE_BYTES_MAX: usize = 4096;
/// The most file names of a job that are checked against the jobs above it.
const NAMES_LOOKED_AT: u64 = 1024;
/// The most clients that a job file may ask for, `numjobs` counted.
pub const CLIENTS_MAX: u32 = 4096;
