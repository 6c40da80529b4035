//! Events of the block layer while they happen, from the kernel's tracefs: nothing to install, and nothing
//! that other users of tracing would notice.
//!
//! ```no_run
//! use fairhead_machine::tracefs::{BlockEvents, Options};
//! use std::time::Duration;
//! // Requests of one disk (7,0 is /dev/loop0), from the moment when a program wants them to their completion.
//! let mut tap = BlockEvents::open(&Options { devices: vec![(7, 0)], ..Options::default() }).unwrap();
//! let mut events = Vec::new();
//! for _ in 0..100 {
//!     tap.wait(Duration::from_millis(100)).unwrap();
//!     // In order of time, of all processors.
//!     tap.read(&mut events).unwrap();
//!     for e in events.drain(..) {
//!         println!("{} {:?} {}+{} by {}", e.at_ns, e.action, e.sector, e.sectors, e.comm.text());
//!     }
//! }
//! // The last events, with tracing off; then everything is removed again.
//! tap.finish(&mut events).unwrap();
//! println!("{} events were lost", tap.lost());
//! ```
//!
//! **An own instance.** `instances/fairhead-PID-START` has its own buffers, filter and clock. It is removed
//! when [`BlockEvents`] is dropped: at the end, on an error, in a panic. A program that is killed leaves its
//! instance behind; the next [`BlockEvents::open`] finds by the process's number and time of start that
//! it has no owner, and removes it ([`BlockEvents::removed`]). If tracefs is not mounted, it is mounted on a
//! temporary folder, which is unmounted again.
//!
//! **What is recorded** is events of the given devices only. They are picked out here as long as other
//! devices are quiet, and by the kernel (`filter`) when those have the most events ([`Options::others_max`]).
//! The clock is `CLOCK_MONOTONIC`. Pages are read as they are in the kernel's memory and decoded by its own
//! description of them ([`fairhead_trace::ring`]).
//!
//! **Order.** Each processor has a buffer. A [`read`](BlockEvents::read) takes what is in all of them, and
//! returns the events up to the moment when it began; later ones wait for the next call. So all events come
//! in order of time.
//!
//! **Memory** is bounded by the buffers ([`Options::buffer_bytes`], of all processors together) twice: once
//! in the kernel, once decoded. Without a reader, the oldest events are overwritten, and counted
//! ([`BlockEvents::lost`]).
//!
//! What this does not do: decide what a request is ([`fairhead_trace`] assembles events), or look into other
//! events than those of the block layer.
//
//= linux Documentation/trace/ftrace.rst "Instances", "trace_pipe_raw"

mod instance;
mod mount;
mod tap;

pub use tap::{BlockEvents, Options};

/// Why there are no events: one line that says what is wrong and what would be right.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TraceFsError(pub(crate) String);

impl std::fmt::Display for TraceFsError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TraceFsError {}
