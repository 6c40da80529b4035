//! The waiting room: requests of groups whose limit is used up.
//!
//! Such a request waits in front of everything: the scheduler does not know of it, and nothing is merged with
//! it. When it is due, the elevator inserts it as if it had come then; if it is merged into another, the
//! driver learns that from the completion.
//!
//! Example: of a group with a limit of 10 reads a second, three come at once. One goes to the scheduler, two
//! wait here; the timer lets the second go on after 100 ms, and the third after 200 ms.
//!
//! [`Throttle`](crate::parts::throttle::Throttle) decides which requests wait, and until when.

use super::{Common, Elevator, Timer, cx};
use crate::request::Request;
use crate::sched::Scheduler;
use crate::units::{Instant, Tag};

impl Common {
    /// Whether a request that arrives has to wait for a limit.
    #[inline(never)]
    pub(super) fn is_held<S: Scheduler>(&mut self, sched: &mut S, tag: Tag, rq: &Request) -> bool {
        // Requests that are due by now came before this one.
        self.let_pass(sched);
        if self.throttle.admit(self.now, &self.books.groups, tag, rq) {
            return false;
        }
        self.requests.hold(tag);
        self.aside += 1;
        self.books.held(self.now, tag, rq);
        true
    }

    /// Those that limits let pass by now go to the scheduler.
    #[inline(never)]
    pub(super) fn let_pass<S: Scheduler>(&mut self, sched: &mut S) {
        while self.requests.held() > 0
            && let Some(tag) = self.throttle.pass(self.now, &self.books.groups, &self.requests)
        {
            self.hand_over(sched, tag);
        }
    }

    /// Inserts a request that need not wait for limits any longer. Unlike [`Self::insert`], it does not
    /// report a merge.
    pub(super) fn hand_over<S: Scheduler>(&mut self, sched: &mut S, tag: Tag) {
        self.aside -= 1;
        let waited = self.requests.let_go(tag, self.now, self.shown());
        let rq = self.requests[tag].rq;
        self.books.let_pass(waited, &rq);
        if self.limits.merges {
            if !self.requests[tag].no_merge && !self.is_quiet(sched, &rq) {
                sched.prepare_merge(cx!(self), &rq);
                if let Some((into, end)) = self.find_merge(sched, &rq, self.requests[tag].segments) {
                    return self.merge(sched, into, end, tag, true);
                }
            }
            self.file(sched, tag, &rq);
        }
        self.books.inserted_late(self.now, tag, &rq);
        sched.insert(cx!(self), tag);
    }

    #[inline(never)]
    pub(super) fn throttle_has_room(&self, rq: &Request) -> bool {
        let group = self.books.groups.home(rq.group);
        self.throttle.has_room(self.now, &self.books.groups, &Request { group, ..*rq })
    }

    /// Ticks are the scheduler's business, not that of limits.
    #[cold]
    pub(super) fn with_limits(&self, timer: Option<(Instant, Timer)>) -> Option<(Instant, Timer)> {
        let due = self.throttle.next_due().map(|when| (when, Timer::Limit));
        timer.into_iter().chain(due).min_by_key(|&(when, _)| when)
    }
}

impl<S: Scheduler> Elevator<S> {
    /// Returns when a limit that keeps a request like this one out ([`Self::has_room`]) will let it in;
    /// `None` if no limit does. The time may be in the past.
    ///
    /// There is no timer for that: timers are for what waits here.
    #[must_use]
    pub fn room_at(&self, rq: &Request) -> Option<Instant> {
        if self.common.throttle.is_unused() || self.common.throttle_has_room(rq) {
            return None;
        }
        let group = self.common.books.groups.home(rq.group);
        Some(self.common.throttle.opens_at(&self.common.books.groups, &Request { group, ..*rq }))
    }
}
