//! Reservations: a guaranteed number of requests a second for a group, whatever others want.
//!
//! After mClock: each group with a guarantee of r requests a second has a clock, the instant at which its
//! next request is *due*. It stands at the present when the group gets requests after a pause, and advances
//! by 1/r with each that is dispatched because it is due. What the group gets by its weight does not move it,
//! so weights never use up a guarantee. With a guarantee of 10 and requests that always wait:
//!
//! ```text
//!   due       0 ms   94    188    281 …
//!   served    ▲ ▲▲▲  ▲      ▲      ▲▲▲▲▲▲   ▲
//!             due, then its slice   its slice
//! ```
//!
//! A request is due at one instant and leaves when the device is next free, and a disk that takes several has
//! others to finish first. So that each second sees its r requests all the same, the clock goes by 15/16 of
//! 1/r: at 40 a second, a request may be 65 ms late. And it never lags by more than a second: after a time in
//! which the device could not do what was guaranteed, no group makes up for all of it.
//!
//! A due request goes out of its turn, in the middle of another group's slice: that is what a guarantee
//! costs. Until it is done, the device gets nothing but what is due; otherwise a disk that sorts what it has
//! would continue the stream that it is at.
//!
//= paper: A. Gulati, A. Merchant, P. Varman, "mClock: handling throughput variability for hypervisor IO scheduling", OSDI 2010
//= deviates fair-reservation-pace

use super::clock::Clock;
use super::member::Member;
use super::slice::microseconds;
use super::{Divisible, Fair, Mode, Unit};
use crate::elevator::{Cx, Dispatch};
use crate::parts::tree::{Forest, Tree};
use crate::table::Table;
use crate::trace::Reason;
use crate::units::{Duration, GroupId, Instant};

/// The farthest that a clock lags behind.
const LAG_MAX: Duration = Duration::from_secs(1);

/// Groups that have requests and a guarantee, by when they are due.
#[derive(Debug)]
pub(super) struct Reserve {
    tree: Tree,
    forest: Forest<GroupId>,
}

impl Reserve {
    pub(super) fn new(groups: usize) -> Self {
        Self { tree: Tree::default(), forest: Forest::new(groups) }
    }

    /// Whether no group is, or will be, due.
    #[inline]
    pub(super) const fn is_empty(&self) -> bool {
        self.tree.is_empty()
    }

    /// The group has requests again.
    #[inline]
    pub(super) fn join(&mut self, group: GroupId, clock: &mut Clock, now: Instant) {
        if clock.is_set() {
            self.enter(group, clock, now);
        }
    }

    #[inline(never)]
    fn enter(&mut self, group: GroupId, clock: &mut Clock, now: Instant) {
        if !self.forest.contains(group) {
            // A clock in the past would let the group catch up on time in which it wanted nothing.
            let due = clock.due.map_or(now, |due| due.max(now));
            clock.due = Some(due);
            self.forest.insert(&mut self.tree, group, due.as_ns());
        }
    }

    /// The group has none, or no guarantee any more.
    pub(super) fn part(&mut self, group: GroupId) {
        if self.forest.contains(group) {
            self.forest.remove(&mut self.tree, group);
        }
    }

    /// A request of the group is dispatched, in its turn or not; `any_left`: it has more.
    #[inline]
    pub(super) fn dispatched(&mut self, group: GroupId, clock: &mut Clock, now: Instant, any_left: bool) {
        if clock.is_set() {
            self.step(group, clock, now, any_left);
        }
    }

    #[inline(never)]
    fn step(&mut self, group: GroupId, clock: &mut Clock, now: Instant, any_left: bool) {
        if let Some(due) = clock.due.filter(|&due| due <= now) {
            // Steps are counted from when the request was due, not from now, or each delay would lower the
            // rate for good.
            let due = due.max(now - LAG_MAX) + clock.step;
            clock.due = Some(due);
            if any_left {
                self.forest.set_key(&mut self.tree, group, due.as_ns());
            }
        }
        if !any_left {
            self.part(group);
        }
    }

    /// The group that is due first, and is not `except`.
    pub(super) fn first(&self, except: Option<GroupId>) -> Option<(GroupId, Instant)> {
        let first = self.forest.first(&self.tree)?;
        let group = if Some(first) == except { self.forest.next(first)? } else { first };
        Some((group, Instant::from_ns(self.forest.key(group))))
    }

    pub(super) fn check(&self, members: &Table<GroupId, Member>) {
        self.forest.check(&self.tree);
        for (group, m) in members.iter() {
            let waits = m.clock.is_set() && m.queued > 0;
            assert_eq!(self.forest.contains(group), waits, "{group:?}: a guarantee, and requests");
            assert!(!waits || m.clock.due == Some(Instant::from_ns(self.forest.key(group))), "{group:?}");
        }
    }
}

impl<S: Divisible> Fair<S> {
    /// The request of a guarantee that is due, of a group that does not have the disk.
    #[inline]
    pub(super) fn dispatch_due(&mut self, cx: &mut Cx<'_>) -> Option<Dispatch> {
        if self.reserve.is_empty() {
            return None;
        }
        let (group, due) = self.reserve.first(self.active)?;
        if due <= cx.now { self.detour(cx, group) } else { None }
    }

    /// Whether the device is to have nothing else before it has finished what was sent out of turn: a disk
    /// that sorts what it has would continue the stream that it is at.
    #[inline]
    pub(super) fn is_clearing(&self) -> bool {
        self.detours > 0 && self.mode == Mode::Slices
    }

    /// A request of `group` out of turn, if its scheduler has one for now. The group that has the disk gets
    /// it back.
    #[inline(never)]
    fn detour(&mut self, cx: &mut Cx<'_>, group: GroupId) -> Option<Dispatch> {
        if let Some(active) = self.active {
            self.force(active);
            // The group in service keeps its turn; the scheduler puts that group's state away for this one
            // request.
            self.sched.leave(cx);
            self.stop_idling(cx);
        }
        self.force(group);
        self.sched.enter(cx);
        let answer = self.sched.dispatch(cx);
        self.sched.leave(cx);
        if let Dispatch::Issue(tag) = answer {
            cx.why = Reason::Reserved;
            if self.detours == 0 {
                self.detour_since = cx.now;
            }
            self.detours += 1;
            self.issued(cx, tag, group);
            self.update_clock(cx.now);
        }
        if let Some(active) = self.active {
            self.force(active);
            self.sched.enter(cx);
        }
        matches!(answer, Dispatch::Issue(_)).then_some(answer)
    }

    /// A request that was served out of turn has completed: its group is charged the device's time since the
    /// last one did.
    #[inline(never)]
    pub(super) fn end_detour(&mut self, cx: &mut Cx<'_>, group: GroupId, len: u32) {
        let used = cx.now.saturating_since(self.detour_since);
        self.detour_since = cx.now;
        self.detours -= 1;
        let service = match self.unit {
            Unit::Time => microseconds(used),
            Unit::Sectors => len,
            Unit::Requests => 1,
        };
        self.tree.charge(group, service);
        if self.mode == Mode::Slices {
            cx.books.groups.charge(group, used, Duration::ZERO);
        }
    }
}
