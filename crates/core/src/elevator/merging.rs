//! Merging: requests that touch become one.
//!
//! A new request that starts where a queued one ends is appended to it (*back merge*); one that ends where a
//! queued one starts is put in front (*front merge*, where the scheduler wants those). Both must go in one
//! direction and be of one group, the scheduler may object, and the sum must respect the limits; a request
//! that once hit a limit is left alone from then on. After a merge the grown request may touch its neighbour;
//! then the two are *joined*.
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
use crate::units::{Sectors, Tag};

impl Common {
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

    fn compatible<S: Scheduler>(&self, sched: &S, into: Tag, rq: &Request) -> bool {
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
