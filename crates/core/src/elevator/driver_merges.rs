//! Merges that the driver makes itself.
//!
//! A kernel's block layer finds what can be merged, appends bios to its own requests, and then tells the
//! elevator. Such a driver sets [`Limits::merges`](super::Limits) to false and makes three calls:
//!
//! ```text
//!   may two pieces be one?          may_merge(now, into, piece)
//!   a bio was added to a request    grow(now, tag, end, by)          the bio had no tag
//!   two requests became one         join(now, kept, gone)            the tag `gone` is free at once
//! ```
//!
//! Limits of size are the driver's. A request that waits for a limit of its group, or was handed back, stays
//! as it is: `may_merge` says no.

use super::{Elevator, End, cx};
use crate::request::{Request, State};
use crate::sched::Scheduler;
use crate::trace::Action;
use crate::units::{Instant, Sector, Sectors, Tag};

impl<S: Scheduler> Elevator<S> {
    /// Whether the driver may make `rq`, which touches the request `into` and has no tag or waits under
    /// another one, a part of `into`.
    ///
    /// # Panics
    /// If time goes backwards, or the elevator merges by itself.
    pub fn may_merge(&mut self, now: Instant, into: Tag, rq: &Request) -> bool {
        let Self { sched, common } = self;
        assert!(!common.limits.merges, "the elevator merges by itself");
        common.advance(now);
        let Some(slot) = common.requests.get(into) else { return false };
        if slot.state != State::Queued {
            return false;
        }
        let rq = Request { group: common.books.groups.home(rq.group), ..*rq };
        sched.prepare_merge(cx!(common), &rq);
        common.compatible(sched, into, &rq)
    }

    /// Whether [`Self::grow`] and [`Self::join`] take this request: it waits in the scheduler, was not handed
    /// back, and need not stay alone.
    #[must_use]
    pub fn grows(&self, tag: Tag) -> bool {
        let slot = self.common.requests.get(tag);
        slot.is_some_and(|slot| slot.state == State::Queued && !slot.no_merge)
    }

    /// The driver made the waiting request `tag` longer by `by` sectors, at one end: [`Self::may_merge`] said
    /// that it may.
    ///
    /// # Panics
    /// If time goes backwards, the elevator merges by itself, the request does not wait in the scheduler, or
    /// it would lie beyond the disk's first or last sector number.
    pub fn grow(&mut self, now: Instant, tag: Tag, end: End, by: Sectors) {
        let Self { sched, common } = self;
        assert!(!common.limits.merges, "the elevator merges by itself");
        common.advance(now);
        let rq = common.requests[tag].rq;
        let (start, action) = match end {
            End::Back => (rq.end().0, Action::BackMerge),
            End::Front => {
                (rq.start.0.checked_sub(by.0.into()).expect("before the first sector"), Action::FrontMerge)
            }
        };
        let added = Request { start: Sector(start), len: by, ..rq };
        common.requests.grow(tag, &added);
        // The books know arrivals; this one was merged as it came.
        common.books.arrives(now, &added, sched.chooses_groups());
        common.books.merged(now, action, tag, &added, sched.chooses_groups());
        sched.merged(cx!(common), tag, end);
    }

    /// The driver made the waiting request `gone` a part of `kept`, which ends where `gone` starts. The tag
    /// `gone` is free from now on, and what it carried is carried by `kept`.
    ///
    /// # Panics
    /// If time goes backwards, the elevator merges by itself, one of the two does not wait in the scheduler,
    /// or they do not touch.
    pub fn join(&mut self, now: Instant, kept: Tag, gone: Tag) {
        let Self { sched, common } = self;
        assert!(!common.limits.merges, "the elevator merges by itself");
        common.advance(now);
        common.requests.assert_joins(kept, gone);
        let rq = common.requests[gone].rq;
        sched.joined(cx!(common), kept, gone);
        common.books.joined(now, gone, &rq, sched.chooses_groups());
        common.requests.absorb(kept, gone);
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::super::{Control, Dispatch, Insert, Limits};
    use super::*;
    use crate::groups::Max;
    use crate::sched::any::{AnyScheduler, PRESETS};
    use crate::testkit::us as at;
    use crate::units::{GroupId, TaskId};
    use core::num::NonZeroU64;

    fn read(start: u64) -> Request {
        Request::read(TaskId(1), Sector(start), Sectors(8))
    }

    fn each_preset(test: impl Fn(Elevator<AnyScheduler>, &str)) {
        let limits = Limits { merges: false, groups: 2, ..Limits::default() };
        for preset in PRESETS {
            test(Elevator::new(limits, (preset.config)()).unwrap(), preset.name);
        }
    }

    /// Issues and completes everything; returns the tags with first sector and length.
    fn drain(e: &mut Elevator<AnyScheduler>, mut now: Instant) -> std::vec::Vec<(u16, u64, u32)> {
        let mut issued = std::vec::Vec::new();
        loop {
            match e.dispatch(now) {
                Dispatch::Issue(tag) => {
                    let rq = e.requests()[tag].rq;
                    issued.push((tag.0, rq.start.0, rq.len.0));
                    assert!(e.complete(now, tag).eq([tag]), "no tag is carried");
                }
                Dispatch::Hold(_) => {
                    now = e.next_timer().expect("nothing is at the device").0.max(now);
                    e.timer(now);
                }
                Dispatch::Empty => break,
            }
            e.check();
        }
        issued.sort_unstable();
        issued
    }

    /// An elevator that repeats what another one merged, as a library's does, frees the same tags.
    #[test]
    fn what_another_elevator_merged_is_repeated_with_its_tags() {
        each_preset(|mut e, name| {
            e.insert_apart(at(1), Tag(0), read(100));
            e.insert_apart(at(1), Tag(1), read(116));
            e.insert_into(at(2), Tag(2), read(108), Tag(0), End::Back);
            e.check();
            assert_eq!(e.requests()[Tag(0)].rq.end(), Sector(116), "{name}: not joined by itself");
            e.join(at(2), Tag(0), Tag(1));
            e.insert_into(at(3), Tag(1), read(92), Tag(0), End::Front);
            e.check();
            let issued = e.issue_by(at(4), |s, cx| s.drain(cx).map_or(Dispatch::Empty, Dispatch::Issue));
            assert_eq!(issued, Dispatch::Issue(Tag(0)), "{name}");
            assert_eq!(e.requests()[Tag(0)].rq, Request { len: Sectors(32), ..read(92) }, "{name}");
            assert!(e.complete(at(5), Tag(0)).eq([Tag(0), Tag(2), Tag(1)]), "{name}");
            e.check();
        });
    }

    #[test]
    fn what_a_driver_merged_is_served_once_and_whole() {
        each_preset(|mut e, name| {
            for (tag, start) in [(0, 100), (1, 108), (2, 500)] {
                assert_eq!(e.insert(at(1), Tag(tag), read(start)), Insert::Queued, "{name}");
            }
            assert!(e.may_merge(at(2), Tag(0), &read(92)), "{name}");
            e.grow(at(2), Tag(0), End::Front, Sectors(8));
            e.check();
            assert!(e.may_merge(at(3), Tag(1), &read(116)), "{name}");
            e.grow(at(3), Tag(1), End::Back, Sectors(8));
            e.check();
            let second = e.requests()[Tag(1)].rq;
            assert!(e.may_merge(at(4), Tag(0), &second), "{name}");
            e.join(at(4), Tag(0), Tag(1));
            e.check();
            // The tag of the one that is gone is free.
            assert_eq!(e.insert(at(5), Tag(1), read(900)), Insert::Queued, "{name}");
            assert_eq!(drain(&mut e, at(6)), [(0, 92, 32), (1, 900, 8), (2, 500, 8)], "{name}");
            // Two pieces were added and one request was joined. (Books are kept since there are two groups.)
            assert_eq!(e.stats(GroupId::ROOT).io_merged.total(), 3, "{name}");
        });
    }

    #[test]
    fn requests_that_are_not_with_the_scheduler_stay_as_they_are() {
        each_preset(|mut e, name| {
            let write = Request { op: crate::Op::Write, ..read(108) };
            let _ = e.insert(at(1), Tag(0), read(100));
            assert!(!e.may_merge(at(1), Tag(0), &write), "{name}: of another direction");
            assert!(!e.may_merge(at(1), Tag(1), &read(108)), "{name}: no request");
            assert_eq!(e.dispatch(at(1)), Dispatch::Issue(Tag(0)), "{name}");
            assert!(!e.may_merge(at(1), Tag(0), &read(108)), "{name}: at the device");
            e.requeue(at(2), Tag(0));
            assert!(!e.may_merge(at(2), Tag(0), &read(108)), "{name}: handed back");

            let max = Max { riops: NonZeroU64::new(1), ..Max::default() };
            e.control(at(3), Control::SetMax(GroupId(1), max)).unwrap();
            let of_group = |start| Request { group: GroupId(1), ..read(start) };
            let _ = e.insert(at(4), Tag(1), of_group(1000));
            let _ = e.insert(at(4), Tag(2), of_group(2000));
            assert_eq!(e.requests()[Tag(2)].state, State::Held, "{name}");
            assert!(!e.may_merge(at(4), Tag(2), &of_group(2008)), "{name}: it waits for a limit");
        });
    }
}
