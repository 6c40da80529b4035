//! Processors that serve one lane after the other, on hosts before the multi-queue era
//! ([`super::processors`] has those of later ones).

use super::clock::Clock;
use crate::event::Due;
use fairhead_core::{Duration, Instant};
use std::collections::VecDeque;

/// The processors, the lanes that wait for one, and how long all have worked.
#[derive(Debug)]
pub(super) struct Cpus {
    all: u32,
    idle: u32,
    /// Lanes that wait, in order, and the time that each needs.
    waiting: VecDeque<(u32, Duration)>,
    busy: Duration,
    counted_to: Instant,
}

impl Cpus {
    pub(super) const fn new(all: u32) -> Self {
        Self { all, idle: all, waiting: VecDeque::new(), busy: Duration::ZERO, counted_to: Instant::EPOCH }
    }

    /// A lane needs a processor for a while. It has done its work at [`Due::CpuDone`].
    pub(super) fn take(&mut self, clock: &mut Clock, lane: u32, cost: Duration) {
        if self.idle == 0 {
            self.waiting.push_back((lane, cost));
            return;
        }
        self.count(clock.now);
        self.idle -= 1;
        clock.after(cost, Due::CpuDone(lane));
    }

    /// A lane is done with its processor, which the next that waits gets.
    pub(super) fn release(&mut self, clock: &mut Clock) {
        if let Some((lane, cost)) = self.waiting.pop_front() {
            clock.after(cost, Due::CpuDone(lane));
        } else {
            self.count(clock.now);
            self.idle += 1;
        }
    }

    /// Counts the work up to now. Returns all of it.
    pub(super) fn count(&mut self, now: Instant) -> Duration {
        self.busy += now.since(self.counted_to) * u64::from(self.all - self.idle);
        self.counted_to = now;
        self.busy
    }
}
