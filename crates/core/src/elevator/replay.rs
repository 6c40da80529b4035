//! Calls that carry out another implementation's decisions, to compare the states afterwards.
//!
//! A log of a kernel says which requests it merged, which it issued and when. To compare its next decision
//! with ours, ours must be in the same state; so these calls merge, issue and change what the log says, where
//! [`Elevator::insert`] and [`Elevator::dispatch`] would do as they think right. No driver of a disk needs
//! them.

use super::{Cx, Dispatch, Elevator, End, cx};
use crate::request::{Request, State};
use crate::sched::Scheduler;
use crate::trace::Action;
use crate::units::{Instant, Tag};

impl<S: Scheduler> Elevator<S> {
    /// Inserts a request as [`Self::insert`] does, but never merges it: for comparisons with an
    /// implementation that did not.
    ///
    /// # Panics
    /// As [`Self::insert`], and if there is no such group.
    pub fn insert_apart(&mut self, now: Instant, tag: Tag, rq: Request) {
        let Self { sched, common } = self;
        common.advance(now);
        assert!(common.books.groups.exists(rq.group), "of a group that is no more");
        common.requests.claim(tag, &rq, now, common.shown());
        common.books.arrives(now, &rq, sched.chooses_groups());
        if common.limits.merges {
            sched.prepare_merge(cx!(common), &rq);
            common.file(sched, tag, &rq);
        }
        common.enqueue(sched, tag, &rq);
    }

    /// Inserts a request as [`Self::insert`] does, but merges it with `into` whatever the scheduler says: for
    /// comparisons with an implementation that merged them. If the driver merges
    /// ([`Limits::merges`](super::Limits) is false), the grown request is not joined with its neighbour:
    /// [`Self::join`] does that.
    ///
    /// # Panics
    /// As [`Self::insert`], if there is no such group, and if `into` does not wait.
    pub fn insert_into(&mut self, now: Instant, tag: Tag, rq: Request, into: Tag, end: End) {
        let Self { sched, common } = self;
        common.advance(now);
        assert!(common.requests[into].state == State::Queued, "merged with a request that does not wait");
        assert!(common.books.groups.exists(rq.group), "of a group that is no more");
        common.requests.claim(tag, &rq, now, common.shown());
        common.books.arrives(now, &rq, sched.chooses_groups());
        if common.limits.merges {
            return common.merge(sched, into, end, tag, false);
        }
        // Nothing is filed, and what touches the grown request is joined by the one that decided this.
        let action = if end == End::Back { Action::BackMerge } else { Action::FrontMerge };
        common.books.merged(now, action, tag, &rq, sched.chooses_groups());
        common.requests.merge(into, tag);
        sched.merged(cx!(common), into, end);
    }

    /// Dispatches as [`Self::dispatch`] does, with an answer from elsewhere: for comparisons with an
    /// implementation that gave it.
    ///
    /// # Panics
    /// If time goes backwards, or the answer is a request that does not wait.
    pub fn issue_by(
        &mut self,
        now: Instant,
        choose: impl FnOnce(&mut S, &mut Cx<'_>) -> Dispatch,
    ) -> Dispatch {
        let Self { sched, common } = self;
        common.advance(now);
        let cx = cx!(common);
        let answer = choose(sched, cx);
        let why = cx.why;
        if let Dispatch::Issue(tag) = answer {
            let _ = common.issue::<S, false>(sched, tag, why);
        }
        answer
    }

    /// Puts the scheduler into a state that it has not come to by itself: for comparisons with an
    /// implementation that has.
    ///
    /// # Panics
    /// If time goes backwards.
    pub fn override_state<R>(&mut self, now: Instant, change: impl FnOnce(&mut S, &mut Cx<'_>) -> R) -> R {
        let Self { sched, common } = self;
        common.advance(now);
        change(sched, cx!(common))
    }
}
