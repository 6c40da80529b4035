//! Beside a running kernel: its scheduler's log replayed into ours, decision by decision.
//!
//! A log is what the `blk` tracer of Linux records: arrivals, completions, and what the scheduler said of its
//! decisions. The replay gives ours the same arrivals and completions at the same times, asks it whenever the
//! kernel's was asked, and counts by [`Topic`] how often both agree. After a difference ours is put into the
//! kernel's state, so that one difference is counted once. See `docs/conformance.md` for recording logs and
//! reading results.
//!
//! ```text
//! file (plain or .xz) ─► log (lines) ─► steps (what happened under one lock) ─► replay ─► report
//! ```
//!
//! ```no_run
//! let report = fairhead_conform::compare_file("bfq.txt.xz".as_ref(), &mut |_read, _total| {})?;
//! println!("{}: {} requests, agrees: {}", report.log, report.requests, report.agrees());
//! # Ok::<(), fairhead_conform::LogError>(())
//! ```

#![forbid(unsafe_code)]

mod bfq;
mod deadline;
mod file;
mod first_reads;
mod header;
mod line;
mod load;
mod log;
mod message;
mod plugs;
mod positions;
mod report;
mod reruns;
mod step;
mod steps;
mod survey;
mod tags;
mod ticks;
mod words;

#[cfg(test)]
mod tests;

pub use header::Scheduler;
pub use log::LogError;
pub use report::{Agreement, Difference, Report, Topic};

use file::Position;
use log::Log;
use std::io::BufRead;
use std::path::Path;
use steps::Steps;
use survey::Survey;

/// Replays a log, which is read twice: `open` begins with it. `name` is for messages, `progress` hears how
/// many bytes have been read.
///
/// # Errors
/// If it is no log, or one of a scheduler that cannot be compared. Any bytes give a report or an error.
///
/// ```
/// let error = fairhead_conform::compare(&mut || Ok(&b"nothing\n"[..]), "a.txt", &mut |_| {}).unwrap_err();
/// assert!(error.to_string().starts_with("a.txt"), "{error}");
/// ```
pub fn compare<R: BufRead>(
    open: &mut dyn FnMut() -> Result<R, String>,
    name: &str,
    progress: &mut dyn FnMut(u64),
) -> Result<Report, LogError> {
    let mut log = || {
        let source = open().map_err(|message| LogError { log: name.to_owned(), line: 0, message })?;
        Log::open(source, name)
    };
    let mut first = log()?;
    let scheduler = first.header().scheduler().map_err(|message| first.error_at(0, &message))?;
    let (tally, lost) = match scheduler {
        Scheduler::MqDeadline => {
            let (reruns, reads) = reruns::Reruns::of(first)?;
            deadline::compare(Steps::new(log()?, false), reruns, reads, progress)?
        }
        Scheduler::Bfq => {
            let survey = Survey::of(first)?;
            bfq::compare(Steps::new(log()?, true), &survey, progress)?
        }
    };
    Ok(tally.report(name, scheduler, lost))
}

/// Compares a log in a file, plain or compressed by `xz`. `progress` is called with the bytes that have been
/// read and the bytes in all.
///
/// # Errors
/// As [`compare`], and if the file cannot be read.
pub fn compare_file(path: &Path, progress: &mut dyn FnMut(u64, u64)) -> Result<Report, LogError> {
    let position = Position::default();
    let mut open = || file::open(path, &position);
    compare(&mut open, &path.display().to_string(), &mut |_| progress(position.read(), position.total()))
}
