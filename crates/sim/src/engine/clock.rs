//! The clock: what time it is in the run, and what is scheduled.

use super::earliest::Earliest;
use crate::event::{Due, Events};
use fairhead_core::{Duration, Instant};

/// Virtual time, and the events to come.
#[derive(Debug)]
pub(super) struct Clock {
    pub(super) now: Instant,
    events: Events,
    /// The run ends before anything that is later.
    pub(super) until: Instant,
    /// How many events have been handled.
    pub(super) handled: u64,
}

impl Clock {
    /// Later than anything that happens.
    pub(super) const NEVER: Instant = Earliest::NEVER;

    /// A clock at the beginning of a run, which lasts for `most` if that is given.
    pub(super) fn new(most: Option<Duration>) -> Self {
        let until = Instant::EPOCH + most.unwrap_or(Duration::MAX);
        Self { now: Instant::EPOCH, events: Events::default(), until, handled: 0 }
    }

    /// Schedules an event.
    #[inline]
    pub(super) fn schedule(&mut self, at: Instant, due: Due) {
        self.events.push(at, due);
    }

    /// Schedules an event that comes after a while.
    #[inline]
    pub(super) fn after(&mut self, delay: Duration, due: Due) {
        self.events.push(self.now + delay, due);
    }

    /// When the next event is due; [`Clock::NEVER`] if there is none.
    #[inline]
    pub(super) fn next_at(&self) -> Instant {
        self.events.next_at(Self::NEVER)
    }

    /// Takes the next event.
    #[inline]
    pub(super) fn take_next(&mut self) -> Option<Due> {
        self.events.pop()
    }

    /// Advances to the time of what is handled next. Time never goes backwards: what is late comes now.
    #[inline]
    pub(super) fn advance(&mut self, at: Instant) {
        self.now = self.now.max(at);
        self.handled += 1;
    }
}
