//! What several drives behind one queue have together: commands in flight, and figures.
//!
//! Each drive counts the commands that it gets. What several of them get of one command is counted once more
//! than it was asked for: [`Joint::recounted`] is taken off their sum.

use crate::{Command, Counters, DeviceOp, Facts};
use fairhead_core::units::{Duration, Instant};

/// See the [module](self).
#[derive(Clone, Debug)]
pub(crate) struct Joint {
    facts: Facts,
    in_flight: u16,
    busy_since: Instant,
    /// What was counted more than once.
    pub(crate) recounted: Counters,
    counters: Counters,
}

impl Joint {
    pub(crate) fn new(facts: Facts) -> Self {
        let (recounted, counters) = (Counters::default(), Counters::default());
        Self { facts, in_flight: 0, busy_since: Instant::EPOCH, recounted, counters }
    }

    pub(crate) const fn facts(&self) -> Facts {
        self.facts
    }

    pub(crate) const fn counters(&self) -> &Counters {
        &self.counters
    }

    pub(crate) fn busy_time(&self, now: Instant) -> Duration {
        self.counters.busy_time_until(now, (self.in_flight > 0).then_some(self.busy_since))
    }

    pub(crate) const fn is_idle(&self) -> bool {
        self.in_flight == 0
    }

    pub(crate) const fn has_room(&self) -> bool {
        self.in_flight < self.facts.queue_depth
    }

    /// A command begins. Returns its first sector and the one behind its last.
    ///
    /// # Panics
    /// If its sectors are none of the drives'.
    pub(crate) fn begin(&mut self, now: Instant, cmd: Command) -> (u64, u64) {
        let (start, end) = (cmd.start.0, cmd.start.0.saturating_add(u64::from(cmd.len.0)));
        let capacity = self.facts.capacity;
        assert!(
            cmd.op == DeviceOp::Flush || (start < end && end <= capacity),
            "submit: sectors {start} to {end} of {capacity}"
        );
        if self.in_flight == 0 {
            self.busy_since = now;
        }
        self.in_flight += 1;
        (start, end)
    }

    /// A command has ended.
    pub(crate) fn end(&mut self, at: Instant) {
        self.in_flight -= 1;
        if self.in_flight == 0 {
            self.counters.busy_time += at.since(self.busy_since);
        }
    }

    /// Adds up what the drives have counted.
    pub(crate) fn count<'c>(&mut self, drives: impl Iterator<Item = &'c Counters>) {
        let busy_time = self.counters.busy_time;
        self.counters = Counters::sum(drives);
        self.counters.uncount(&self.recounted);
        self.counters.busy_time = busy_time;
    }
}
