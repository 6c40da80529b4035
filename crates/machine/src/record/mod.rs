//! Recording what a machine's disks do, to a file that every command reads that takes a trace.
//!
//! ```text
//! names of disks ─► targets: devices, partitions ─► tracefs: events ─► tape: blktrace's binary form ─► file
//! ```
//!
//! [`targets`] turns what a user calls a disk (`sda`, `/dev/sda1`, `/dev/disk/by-id/…`) into device numbers.
//! [`record`] reads their events until it is ended, and writes them in the form of [`Tape`].
//!
//! **The process of a request** is known when a program wants it (`block_bio_queue`): that event's thread and
//! name are kept. Issue and completion, which a `kworker` or an interrupt may perform, are found by sectors
//! when the file is read. What the kernel writes back later from its page cache is the flusher's, as a kernel
//! does not remember for whom a page was made dirty.
//!
//! **Our own writes** (the file) are made by this process itself and not left to the flusher, so that they
//! are known as ours; they are left out of the recording, and counted.
//!
//! **Bounds.** Memory: the buffers of [`crate::tracefs`] and tables of 65,536 entries. File: a number of
//! bytes, at which the recording ends.

mod tape;
mod target;

pub use tape::{Facts, ProcessFacts, Tape, class};
pub use target::{Target, targets};

use crate::tracefs::{BlockEvents, Options};
use std::fs::File;
use std::time::{Duration, Instant};

/// How long to wait for events at a time: the longest time that a recording takes to end.
const PATIENCE: Duration = Duration::from_millis(100);

/// How to record.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What to record; not empty.
    pub targets: Vec<Target>,
    /// For how long.
    pub time: Duration,
    /// The size of the file at which the recording ends, in bytes.
    pub file_bytes: u64,
    /// The size of the kernel's buffers, in bytes.
    pub buffer_bytes: u64,
}

/// Why a recording ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    /// Its time was over.
    Time,
    /// The file was full.
    Full,
    /// The caller wanted no more.
    Told,
}

/// What a recording came to.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Why it ended.
    pub ended: Ended,
    /// How long it lasted.
    pub time: Duration,
    /// The number of events that the kernel overwrote because they were not read in time.
    pub lost: u64,
    /// The number of requests of this process, which are left out.
    pub own: u64,
    /// What is known of the processes.
    pub facts: Facts,
}

/// Records to a file. `goes_on` is asked several times a second, with the time so far and the number of
/// requests; it ends the recording by `false`. `began` is called once, when the kernel records, with the
/// names of instances that killed runs had left behind and that were removed.
///
/// # Errors
/// If the kernel does not let us, or the file cannot be written. One line says what would be right.
#[allow(clippy::disallowed_methods, reason = "a recording lasts for a time on the clock")]
pub fn record(
    plan: &Plan,
    file: File,
    began: impl FnOnce(&[String]),
    mut goes_on: impl FnMut(Duration, u64) -> bool,
) -> Result<Outcome, String> {
    let devices = plan.targets.iter().flat_map(Target::numbers).collect();
    let options = Options { devices, buffer_bytes: plan.buffer_bytes, ..Options::default() };
    let mut tap = BlockEvents::open(&options).map_err(|e| e.to_string())?;
    let mut tape = Tape::new(file, &plan.targets);
    began(tap.removed());
    let cannot = |e: std::io::Error| format!("cannot write the recording: {e}");
    let start = Instant::now();
    let mut events = Vec::new();
    let ended = loop {
        let so_far = start.elapsed();
        if so_far >= plan.time {
            break Ended::Time;
        }
        if !goes_on(so_far, tape.requests()) {
            break Ended::Told;
        }
        if tape.bytes() >= plan.file_bytes {
            break Ended::Full;
        }
        tap.wait(PATIENCE.min(plan.time - so_far)).map_err(|e| e.to_string())?;
        let lost = tap.lost();
        tap.read(&mut events).map_err(|e| e.to_string())?;
        tape.lost(tap.lost() - lost).map_err(cannot)?;
        for event in events.drain(..) {
            tape.put(&event).map_err(cannot)?;
        }
    };
    let time = start.elapsed();
    let lost = tap.lost();
    tap.finish(&mut events).map_err(|e| e.to_string())?;
    for event in &events {
        tape.put(event).map_err(cannot)?;
    }
    tape.lost(tap.lost() - lost).map_err(cannot)?;
    let (own, facts) = tape.finish().map_err(cannot)?;
    Ok(Outcome { ended, time, lost: tap.lost(), own, facts })
}
