//! Several requests in one call.
//!
//! A driver that collects requests, or serves many at a time, holds its lock once for all of them:
//!
//! ```text
//!   core 0: staged ─┐
//!   core 1: staged ─┴─ lock ─► insert_batch(now, …) ─► dispatch_batch(now, room, …) ─ unlock ─► the device
//! ```
//!
//! A batch is the single calls in its order, at one time: merging, limits, books and trace are the same. The
//! time is looked at once for all of them, and so is the scheduler where it is chosen at run time. That is
//! worth 6 % of the instructions with 32 requests of noop, and nothing with four (`bench/RESULTS.md`): what
//! batches are for is the lock.
//!
//! **Its time may be in the past.** Cores read their clocks before they get the lock. A batch that is older
//! than the last call counts as of that call.
//!
//! It does not collect anything: batches are the driver's.

use super::{Act, Common, Dispatch, Elevator, Hold, Insert};
use crate::request::Request;
use crate::sched::Scheduler;
use crate::units::{Instant, Tag};
use core::marker::PhantomData;

/// Why a batch of dispatches ended.
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rest {
    /// The room is used up: as many requests were issued as there was room for. More may wait.
    Full,
    /// The elevator holds what waits, as [`Dispatch::Hold`].
    Hold(Hold),
    /// No request waits, as [`Dispatch::Empty`].
    Empty,
}

struct Arrivals<'a, F, const PLAIN: bool>(PhantomData<(&'a Request, F)>);

impl<'a, F: FnMut(Tag, Insert), const PLAIN: bool> Act for Arrivals<'a, F, PLAIN> {
    type On = Common;
    type What = (&'a [(Tag, Request)], F);
    type Answer = ();
    #[inline(always)]
    fn with<S: Scheduler>(common: &mut Common, now: Instant, (batch, mut each): Self::What, sched: &mut S) {
        common.advance(now);
        let times = (now, common.shown());
        for (tag, rq) in batch {
            let answer = if PLAIN || rq.group.0 < common.direct {
                common.insert_now::<S, PLAIN>(sched, times, *tag, rq)
            } else {
                common.insert_carefully(sched, now, *tag, rq)
            };
            each(*tag, answer);
        }
    }
}

impl Common {
    /// A function of its own, so that otherwise nothing is in the way.
    #[inline(never)]
    fn insert_carefully<S: Scheduler>(
        &mut self,
        sched: &mut S,
        now: Instant,
        tag: Tag,
        rq: &Request,
    ) -> Insert {
        self.insert_with_care(sched, now, tag, rq)
    }
}

struct Rooms<F, const PLAIN: bool>(PhantomData<F>);

impl<F: FnMut(Tag), const PLAIN: bool> Act for Rooms<F, PLAIN> {
    type On = Common;
    type What = (usize, F);
    type Answer = Rest;
    #[inline(always)]
    fn with<S: Scheduler>(
        common: &mut Common,
        now: Instant,
        (room, mut issue): (usize, F),
        sched: &mut S,
    ) -> Rest {
        common.advance(now);
        for _ in 0..room {
            match common.dispatch_now::<S, PLAIN>(sched) {
                Dispatch::Issue(tag) => issue(tag),
                Dispatch::Hold(why) => return Rest::Hold(why),
                Dispatch::Empty => return Rest::Empty,
            }
        }
        Rest::Full
    }
}

impl<S: Scheduler> Elevator<S> {
    /// Requests arrive together, in this order: [`Self::insert`] for each. `each` gets every tag with what
    /// became of it, in the same order. A time before that of the last call counts as that.
    ///
    /// # Panics
    /// If a tag is in use or out of range, or a request is empty: bugs of the driver.
    pub fn insert_batch(
        &mut self,
        now: Instant,
        batch: &[(Tag, Request)],
        mut each: impl FnMut(Tag, Insert),
    ) {
        let now = now.max(self.common.now);
        if let [(tag, rq)] = *batch {
            return each(tag, self.insert(now, tag, rq));
        }
        let common = &mut self.common;
        if common.is_plain {
            self.sched.act::<Arrivals<'_, _, true>>(common, now, (batch, each));
        } else {
            self.sched.act::<Arrivals<'_, _, false>>(common, now, (batch, each));
        }
    }

    /// Dispatches until `room` requests are issued, or [`Self::dispatch`] answers with something other than a
    /// request. `issue` gets each request's tag, in order: a promise to obey. A time before that of the last
    /// call counts as that.
    pub fn dispatch_batch(&mut self, now: Instant, room: usize, mut issue: impl FnMut(Tag)) -> Rest {
        let now = now.max(self.common.now);
        if room == 1 {
            return match self.dispatch(now) {
                Dispatch::Issue(tag) => {
                    issue(tag);
                    Rest::Full
                }
                Dispatch::Hold(why) => Rest::Hold(why),
                Dispatch::Empty => Rest::Empty,
            };
        }
        let common = &mut self.common;
        if common.is_plain {
            self.sched.act::<Rooms<_, true>>(common, now, (room, issue))
        } else {
            self.sched.act::<Rooms<_, false>>(common, now, (room, issue))
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::elevator::{End, Limits};
    use crate::sched::noop::Noop;
    use crate::testkit::us as at;
    use crate::units::{Sector, Sectors, TaskId};
    use std::vec::Vec;

    fn read(start: u64) -> Request {
        Request::read(TaskId(1), Sector(start), Sectors(8))
    }

    #[test]
    fn a_batch_merges_within_itself_and_ends_where_there_is_no_room() {
        let mut e = Elevator::<Noop>::new(Limits::default(), Default::default()).unwrap();
        let mut answers = Vec::new();
        let batch = [0, 8, 100, 200].into_iter().zip(0..).map(|(start, tag)| (Tag(tag), read(start)));
        e.insert_batch(at(1), &batch.collect::<Vec<_>>(), |tag, answer| answers.push((tag.0, answer)));
        let merged = Insert::Merged { into: Tag(0), end: End::Back };
        assert_eq!(answers, [(0, Insert::Queued), (1, merged), (2, Insert::Queued), (3, Insert::Queued)]);
        let mut issued = Vec::new();
        assert_eq!(e.dispatch_batch(at(1), 0, |tag| issued.push(tag.0)), Rest::Full);
        assert_eq!(e.dispatch_batch(at(1), 2, |tag| issued.push(tag.0)), Rest::Full);
        assert_eq!(issued, [0, 2]);
        assert_eq!(e.dispatch_batch(at(1), 2, |tag| issued.push(tag.0)), Rest::Empty);
        assert_eq!(issued, [0, 2, 3]);
        assert_eq!(e.complete(at(2), Tag(0)).count(), 2);
    }

    #[test]
    fn a_batch_of_a_core_whose_clock_is_behind_counts_as_of_the_last_call() {
        let mut e = Elevator::<Noop>::new(Limits::default(), Default::default()).unwrap();
        e.insert_batch(at(10), &[(Tag(0), read(0))], |_, _| ());
        e.insert_batch(at(7), &[(Tag(1), read(100))], |_, _| ());
        assert_eq!(e.requests()[Tag(1)].since, at(10));
        assert_eq!(e.dispatch_batch(at(3), 9, |_| ()), Rest::Empty);
        e.check();
    }
}
