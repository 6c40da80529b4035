//! What an I/O costs the processors of a host of the multi-queue era, and the locks that it passes.
//!
//! A process runs on one processor at a time, whatever its `iodepth`. It does one thing after the other:
//!
//! ```text
//!   one process, many calls in flight (2023 values, no scheduler)
//!
//!   CPU    ─ complete 1.3 µs ─ complete ─ … ─┬─ think 0.3 µs, submit 1.2 µs ─ think, submit ─ … ─ sleep, or the next completions
//!   drive      ▲      ▲                      └──► a request each                        2.8 µs each: 358 k requests a second
//! ```
//!
//! A scheduler adds its own work to each request. What it does under a lock is done for one request at a
//! time, whatever the number of processors; a processor that comes meanwhile waits and does nothing else:
//!
//! ```text
//!   CPU 0  ─ work ─[ lock: insert, dispatch ]─ work ─
//!   CPU 1  ─ work ── spins ─────────────────[ + hand-over ][ insert, dispatch ]─ work ─
//!   CPU 2  ─ work ─ spins ────────────────────────────────────────────────────[ + hand-over … ]
//! ```
//!
//! A lock that is taken over from another processor brings its cache lines along, and those of what it
//! protects, which those who wait keep pulling at: each acquisition takes [`Lock::hand_over`] longer for each
//! processor that is in line, up to [`Lock::waiters_max`]. So a lock gets slower when it is contended, and
//! throughput falls again when processes are added.
//!
//! What this does not do: prefer a processor's own caches, stop a process for an interrupt of another's (a
//! completion costs the process that waits for it, which is on the processor that submitted), or charge a
//! processor for the requests of the flusher.
//
//= docs/reference/nvme.md#1-the-path-of-a-request, docs/reference/nvme.md#3-what-a-model-needs

use fairhead_core::Duration;

/// CPU time of an I/O. All times are of the calling process. What precedes `submit` is
/// [`Host::think`](super::Host::think).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cores {
    /// CPU time of each system call that submits direct I/O, however many requests it submits. Part of their
    /// latency.
    pub call: Duration,
    /// CPU time of each request of a direct call: block layer and driver. Part of its latency.
    pub submit: Duration,
    /// CPU time of each request that completes: interrupt, task work, the program's reaping. Part of its
    /// latency.
    pub complete: Duration,
    /// CPU time of each request that a polling program (`hipri`) finds complete, in place of `complete`.
    pub poll: Duration,
    /// CPU time of each wake-up of a process that sleeps: leaving the processor and coming back. Part of the
    /// latency of what it is woken for.
    pub wake: Duration,
    /// By how much of its time each piece of work takes longer or shorter, evenly distributed, in percent; at
    /// most 100. So no result depends on processors that keep in step.
    pub spread_pct: u8,
    /// CPU time of schedulers, by the beginning of their names; a scheduler that is not listed costs none.
    pub schedulers: Vec<(&'static str, Elevator)>,
}

/// CPU time of a scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Elevator {
    /// Per request, under no lock or under one of many.
    pub work: Duration,
    /// The work under the one lock of its disk, if it has one.
    pub lock: Option<Lock>,
}

/// The one lock of a disk's scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lock {
    /// How long it is held to insert a request.
    pub insert: Duration,
    /// How long it is held to dispatch one.
    pub dispatch: Duration,
    /// How long it is held when one completes; zero: it is not taken.
    pub complete: Duration,
    /// How much longer it is held for a request of a process that has no other in flight: its queue comes
    /// into service and leaves it.
    pub alone: Duration,
    /// How much longer an acquisition takes for each processor that holds the lock or waits for it already.
    pub hand_over: Duration,
    /// The hand-over gets longer with the number of waiting processors, up to this number.
    pub waiters_max: u32,
    /// The most requests that are inserted in one acquisition of the lock. At least 1.
    pub insert_batch: u32,
    /// The most requests that are dispatched in one acquisition of the lock. At least 1.
    pub dispatch_batch: u32,
}

impl Lock {
    /// The time that a request takes under the lock while no other processor wants it.
    #[must_use]
    pub fn hold(&self) -> Duration {
        self.insert + self.dispatch + self.complete
    }
}

impl Cores {
    /// Returns the CPU time of the named scheduler. `mq-deadline` is not `mq`'s: the longest name that fits
    /// counts.
    #[must_use]
    pub fn scheduler(&self, name: &str) -> Elevator {
        let fits = self.schedulers.iter().filter(|(begins, _)| name.starts_with(begins));
        fits.max_by_key(|(begins, _)| begins.len()).map(|s| s.1).unwrap_or_default()
    }
}
