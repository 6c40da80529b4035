//! The calls that each request makes, as pieces of work that are compiled for each scheduler.

use super::{Common, Dispatch, Insert};
use crate::request::{Link, Request};
use crate::sched::Scheduler;
use crate::units::{Instant, Tag};
use core::marker::PhantomData;

/// The part of an [`Elevator`](super::Elevator)'s work that is done with its scheduler. [`Scheduler::act`]
/// calls [`Act::with`] once with the scheduler that decides, whose type is known from there on.
///
/// This may be a call. Its arguments fit into registers, where a value that held them all would be written to
/// memory and read again; and they are in the order in which the elevator's caller gave them, so that they
/// are where they should be.
pub trait Act {
    /// What the work is done on.
    type On;
    /// What is special to this piece of work.
    type What;
    /// What comes of it.
    type Answer;
    /// Does the work.
    fn with<S: Scheduler>(on: &mut Self::On, now: Instant, what: Self::What, sched: &mut S) -> Self::Answer;
}

/// A request arrives whose group needs no attention ([`Common::direct`]). `PLAIN`, here and below:
/// [`Common::is_plain`].
pub(super) struct Arrival<'a, const PLAIN: bool>(PhantomData<&'a Request>);

impl<'a, const PLAIN: bool> Act for Arrival<'a, PLAIN> {
    type On = Common;
    type What = (Tag, &'a Request);
    type Answer = Insert;
    #[inline(always)]
    fn with<S: Scheduler>(common: &mut Common, now: Instant, (tag, rq): Self::What, sched: &mut S) -> Insert {
        common.insert::<S, PLAIN>(sched, now, tag, rq)
    }
}

/// A request arrives, and its group may need attention.
pub(super) struct ArrivalWithCare<'a>(PhantomData<&'a Request>);

impl<'a> Act for ArrivalWithCare<'a> {
    type On = Common;
    type What = (Tag, &'a Request);
    type Answer = Insert;
    #[inline(always)]
    fn with<S: Scheduler>(common: &mut Common, now: Instant, (tag, rq): Self::What, sched: &mut S) -> Insert {
        common.insert_with_care(sched, now, tag, rq)
    }
}

/// A request arrives that must not be merged.
pub(super) struct LonelyArrival<'a>(PhantomData<&'a Request>);

impl<'a> Act for LonelyArrival<'a> {
    type On = Common;
    type What = (Tag, &'a Request);
    type Answer = ();
    fn with<S: Scheduler>(common: &mut Common, now: Instant, (tag, rq): Self::What, sched: &mut S) {
        common.insert_alone(sched, now, tag, rq);
    }
}

/// The device has room.
pub(super) struct Room<const PLAIN: bool>;

impl<const PLAIN: bool> Act for Room<PLAIN> {
    type On = Common;
    type What = ();
    type Answer = Dispatch;
    #[inline(always)]
    fn with<S: Scheduler>(common: &mut Common, now: Instant, (): (), sched: &mut S) -> Dispatch {
        common.dispatch::<S, PLAIN>(sched, now)
    }
}

/// The device has finished a request.
pub(super) struct Completion<const PLAIN: bool>;

impl<const PLAIN: bool> Act for Completion<PLAIN> {
    type On = Common;
    type What = Tag;
    type Answer = Link;
    #[inline(always)]
    fn with<S: Scheduler>(common: &mut Common, now: Instant, tag: Tag, sched: &mut S) -> Link {
        common.complete::<S, PLAIN>(sched, now, tag)
    }
}
