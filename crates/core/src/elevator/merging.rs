//! Merging: requests that touch become one.
//!
//! A new request that starts where a queued one ends is appended to it (*back merge*); one that ends where a
//! queued one starts is put in front (*front merge*, where the scheduler wants those). Both must go in one
//! direction and be of one group, the scheduler may object, and the sum must respect the limits; a request
//! that once hit a limit is left alone from then on, and one that must stay alone
//! ([`insert_alone`](super::Elevator::insert_alone)) from the beginning. After a merge the grown request may
//! touch its neighbour; then the two are *joined*.
//!
//! Example: `[100,8)` and `[200,8)` are queued (start, sectors). `[108,92)` comes: back merge into the first,
//! which is now `[100,100)` and touches the second: joined into `[100,108)`. One request goes to the disk,
//! three complete.
//!
//! It does not know *where* two touch: edges are filed in the [merge index](crate::parts::merge).

use super::{Common, End, cx};
use crate::parts::merge::Edges;
use crate::request::{Link, Request};
use crate::sched::Scheduler;
use crate::trace::Action;
use crate::units::{Instant, Sectors, Tag};

impl Common {
    /// Inserts a request that is not merged, now or later.
    pub(super) fn insert_alone<S: Scheduler>(&mut self, sched: &mut S, now: Instant, tag: Tag, rq: &Request) {
        let rq = Request { group: self.books.groups.home(rq.group), ..*rq };
        self.advance(now);
        self.requests.claim(tag, &rq, now, self.shown());
        self.requests.forbid_merging(tag);
        self.books.arrives(now, &rq, sched.chooses_groups());
        if !self.throttle.is_unused() && self.is_held(sched, tag, &rq) {
            return;
        }
        if self.limits.merges {
            self.file(sched, tag, &rq);
        }
        self.enqueue(sched, tag, &rq);
    }

    /// A queued request that `rq` can be merged into, and at which end.
    pub(super) fn find_merge<S: Scheduler>(
        &mut self,
        sched: &mut S,
        rq: &Request,
        segments: u32,
    ) -> Option<(Tag, End)> {
        let (into, end) = self.find_neighbour(sched, rq)?;
        if self.fits(into, rq.len, segments) {
            return Some((into, end));
        }
        // A request that is full is not tried again, as in Linux 2.6
        // (docs/reference/elevators.md#13-merging).
        self.requests.forbid_merging(into);
        if self.hint == Link::to(into) {
            self.hint = Link::NONE;
        }
        None
    }

    /// Whether `rq` starts where a queued request ends, or ends where one starts, whatever else is true of
    /// the two.
    pub(super) fn touches<S: Scheduler>(&self, sched: &S, rq: &Request) -> bool {
        let (start, end) = (rq.start, rq.end());
        let hinted = self.hint.tag().map(|hint| &self.requests[hint].rq);
        hinted.is_some_and(|hinted| hinted.end() == start || hinted.start == end)
            || self.index.ending_at(start).next().is_some()
            || sched.front_merges() && self.index.starting_at(end).next().is_some()
    }

    fn find_neighbour<S: Scheduler>(&self, sched: &S, rq: &Request) -> Option<(Tag, End)> {
        let (start, end) = (rq.start, rq.end());
        // The hint is the last request that grew: a sequential stream nearly always continues it, at either
        // end and whether or not the scheduler looks for front merges.
        if let Some(hint) = self.hint.tag() {
            let hinted = &self.requests[hint].rq;
            let touches = match (hinted.end() == start, hinted.start == end) {
                (true, _) => Some(End::Back),
                (_, true) => Some(End::Front),
                _ => None,
            };
            if let Some(at) = touches
                && self.compatible(sched, hint, rq)
            {
                return Some((hint, at));
            }
        }
        if let Some(tag) = self.index.ending_at(start).find(|&t| self.compatible(sched, t, rq)) {
            return Some((tag, End::Back));
        }
        // Back merges first: sequential streams grow upwards, so most merges are found before the second
        // search.
        if !sched.front_merges() {
            return None;
        }
        let tag = self.index.starting_at(end).find(|&t| self.compatible(sched, t, rq))?;
        Some((tag, End::Front))
    }

    pub(super) fn compatible<S: Scheduler>(&self, sched: &S, into: Tag, rq: &Request) -> bool {
        let slot = &self.requests[into];
        !slot.no_merge
            && slot.rq.op == rq.op
            && slot.rq.group == rq.group
            && sched.may_merge(&self.requests, into, rq)
    }

    fn fits(&self, into: Tag, len: Sectors, segments: u32) -> bool {
        let slot = &self.requests[into];
        u64::from(slot.rq.len.0) + u64::from(len.0) <= u64::from(self.limits.max_sectors.0)
            && slot.segments + segments <= u32::from(self.limits.max_segments)
    }

    /// Merges `tag` into another; `late`: after it waited for a limit.
    pub(super) fn merge<S: Scheduler>(&mut self, sched: &mut S, into: Tag, end: End, tag: Tag, late: bool) {
        let action = if end == End::Back { Action::BackMerge } else { Action::FrontMerge };
        let (now, rq) = (self.now, &self.requests[tag].rq);
        if late {
            self.books.merged_late(now, action, tag, rq, sched.chooses_groups());
        } else {
            self.books.merged(now, action, tag, rq, sched.chooses_groups());
        }
        self.requests.merge(into, tag);
        // A merge at one end leaves the other where it was.
        let rq = self.requests[into].rq;
        match end {
            End::Back => self.index.move_end(into, rq.end()),
            End::Front => self.index.move_start(sched.edges(), into, rq.start),
        }
        sched.merged(cx!(self), into, end);
        self.hint = Link::to(into);
        self.hint_start = rq.start;
        self.join_neighbour(sched, into, end);
    }

    /// After `tag` grew at `end`: if it touches another request there, makes the two one.
    fn join_neighbour<S: Scheduler>(&mut self, sched: &mut S, tag: Tag, end: End) {
        let rq = self.requests[tag].rq;
        let joins = |&t: &Tag| t != tag && self.compatible(sched, t, &rq);
        let other = match (sched.edges(), end) {
            (Edges::Both, End::Back) => self.index.starting_at(rq.end()).find(joins),
            (Edges::Both, End::Front) => self.index.ending_at(rq.start).find(joins),
            (Edges::Ends, _) => sched.neighbour(tag, end).filter(|&t| {
                let neighbour = &self.requests[t].rq;
                let touches =
                    if end == End::Back { neighbour.start == rq.end() } else { neighbour.end() == rq.start };
                touches && joins(&t)
            }),
        };
        let Some(other) = other else { return };
        // The one in front survives, as it does when the core joins a request with its neighbour.
        let (kept, gone) = if end == End::Back { (tag, other) } else { (other, tag) };
        let slot = self.requests[gone];
        if self.requests[kept].no_merge || !self.fits(kept, slot.rq.len, slot.segments) {
            return;
        }
        sched.joined(cx!(self), kept, gone);
        self.books.joined(self.now, gone, &slot.rq, sched.chooses_groups());
        self.index.remove(sched.edges(), gone);
        self.requests.merge(kept, gone);
        self.index.move_end(kept, slot.rq.end());
        self.hint = Link::to(kept);
        self.hint_start = self.requests[kept].rq.start;
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::super::{Control, Dispatch, Elevator, Insert, Limits};
    use super::*;
    use crate::groups::Max;
    use crate::sched::any::{AnyScheduler, PRESETS};
    use crate::testkit::us as at;
    use crate::units::{GroupId, Sector, TaskId};
    use core::num::NonZeroU64;
    use std::vec::Vec;

    fn read(start: u64) -> Request {
        Request::read(TaskId(1), Sector(start), Sectors(8))
    }

    /// A request and whether it must stay alone.
    fn with(start: u64) -> (Request, bool) {
        (read(start), false)
    }

    fn alone(start: u64) -> (Request, bool) {
        (read(start), true)
    }

    /// Inserts requests under tags from 0 on; none is merged.
    fn insert(e: &mut Elevator<AnyScheduler>, group: GroupId, requests: &[(Request, bool)]) {
        for (&(rq, alone), tag) in requests.iter().zip(0..) {
            let rq = Request { group, ..rq };
            if alone {
                e.insert_alone(at(1), Tag(tag), rq);
            } else {
                assert_eq!(e.insert(at(1), Tag(tag), rq), Insert::Queued, "{rq:?}");
            }
            e.check();
        }
    }

    /// Issues all that waits, and returns how many requests each one frees.
    fn drain(e: &mut Elevator<AnyScheduler>, mut now: Instant) -> Vec<usize> {
        let mut freed = Vec::new();
        loop {
            match e.dispatch(now) {
                Dispatch::Issue(tag) => freed.push(e.complete(now, tag).count()),
                Dispatch::Hold(_) => {
                    now = e.next_timer().expect("nothing is at the device").0.max(now);
                    e.timer(now);
                }
                Dispatch::Empty => return freed,
            }
            e.check();
        }
    }

    #[test]
    fn a_request_that_must_stay_alone_is_merged_with_none_that_comes_before_or_after() {
        for preset in PRESETS {
            let mut e = Elevator::<AnyScheduler>::new(Limits::default(), (preset.config)()).unwrap();
            let all = [with(0), alone(8), with(16), with(100), alone(92), with(84)];
            insert(&mut e, GroupId::ROOT, &all);
            // The others still find each other beside it.
            let merged = e.insert(at(2), Tag(6), read(24));
            assert_eq!(merged, Insert::Merged { into: Tag(2), end: End::Back }, "{}", preset.name);
            let mut freed = drain(&mut e, at(3));
            freed.sort_unstable();
            assert_eq!(freed, [1, 1, 1, 1, 1, 2], "{}", preset.name);
        }
    }

    #[test]
    fn a_gap_that_is_filled_joins_no_request_that_must_stay_alone() {
        for preset in PRESETS {
            let mut e = Elevator::<AnyScheduler>::new(Limits::default(), (preset.config)()).unwrap();
            insert(&mut e, GroupId::ROOT, &[with(0), alone(16)]);
            let merged = e.insert(at(1), Tag(2), read(8));
            assert_eq!(merged, Insert::Merged { into: Tag(0), end: End::Back }, "{}", preset.name);
            let mut freed = drain(&mut e, at(2));
            freed.sort_unstable();
            assert_eq!(freed, [1, 2], "{}", preset.name);
        }
    }

    #[test]
    fn a_request_that_must_stay_alone_does_so_after_it_waited_for_a_limit() {
        let limits = Limits { groups: 2, ..Limits::default() };
        for preset in PRESETS {
            let mut e = Elevator::<AnyScheduler>::new(limits, (preset.config)()).unwrap();
            let max = Max { riops: NonZeroU64::new(10), ..Max::default() };
            e.control(at(0), Control::SetMax(GroupId(1), max)).unwrap();
            let all = [with(100), alone(8), with(0), alone(16), with(24), with(32)];
            insert(&mut e, GroupId(1), &all);
            // All of them have waited before the first one is issued.
            let mut now = at(1);
            while e.requests().held() > 0 {
                now = e.next_timer().expect("a limit opens").0;
                e.timer(now);
                e.check();
            }
            let mut freed = drain(&mut e, now);
            freed.sort_unstable();
            assert_eq!(freed, [1, 1, 1, 1, 2], "{}", preset.name);
        }
    }
}
