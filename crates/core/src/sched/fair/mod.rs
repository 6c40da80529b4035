//! The IO controller: makes any scheduler that is [`Divisible`] fair between groups.
//!
//! For many tenants on one disk, each with a share of the disk's *time* whatever the others do, under a
//! scheduler that knows nothing of that: `deadline+groups` is deadline within each group, and this between
//! them. The group tree with weights, classes and guarantees is the elevator's ([`crate::groups`]).
//!
//! ```text
//!   insert ──► the group's own part of the scheduler (divisible.rs) ──► tree of groups (parts/fair_tree.rs): whose turn?
//!                                                                          │
//!   device ◄── a request of the group that has the disk ◄── its slice (slice.rs), waiting for it (idling.rs)
//!         ◄── a request that a guarantee makes due, out of turn (reserve.rs)
//! ```
//!
//! Example: two readers, 100 MB/s each when alone, groups of weights 1000 and 500, under noop. The first has
//! the disk for 100 ms, the second for 100 ms, the first for 100 ms and another 100 ms, and so on: two slices
//! of three, 67 and 33 MB/s less the seeks from one to the other, which cost 10 ms in 300. Without the
//! controller each request is a seek.
//!
//! # Two ways to share
//!
//! Disks with a head, and whatever takes one request at a time: the group whose turn it is has the device
//! *alone* for a slice, and is charged time ([`Mode::Slices`]). Flash that queues requests works on many at
//! once and has no seeks to save: there, groups take turns by a few requests, as many as the device has room
//! for, and are charged sectors ([`Mode::Shared`]). Nothing is ever held back then; so weights count as far
//! as more is wanted than the device's queue can take. With `fairness` above 0, or when told to charge time,
//! it is slices there, too.
//!
//! # When there is only one group
//!
//! It never loses the disk while no other group has requests, and then the scheduler decides as if it were by
//! itself, request by request.
//!
//! # How long one waits
//!
//! As under the scheduler alone, and for the turns of the other groups in between. Of n groups with requests,
//! weights w and classes alike, each has its slice of at most `group_slice` once per the others'
//! `(W - w) / w` slices. Classes are strict: RT groups can keep their BE and IDLE siblings waiting for ever,
//! and guarantees go before everything.
//!
//! # What it does not do
//!
//! Limits are kept in front of every scheduler, this one too. The driver decides which group owns an async
//! write. A group's sync and async requests are one queue here, and count as sync; the scheduler inside tells
//! them apart.
//!
//= paper: V. Goyal, IO scheduler based IO controller V9, 2009, docs/reference/groups.md
//= docs/reference/groups.md#5-slices-idling-and-expiry to 8

mod check;
mod clock;
mod config;
mod control;
mod divisible;
mod idling;
mod member;
mod pool;
mod reserve;
mod slice;
#[cfg(test)]
mod tests;

pub use self::config::{Charge, Config, Layer};
pub use self::divisible::Divisible;
use self::member::Member;
use self::pool::Pool;
use self::reserve::Reserve;
use self::slice::{Expire, Slice};
use super::Scheduler;
use crate::config::{ConfigError, Tunables};
use crate::elevator::{Control, Cx, Dispatch, End, Hold, Limits, Timer};
use crate::parts::fair_tree::FairTree;
use crate::parts::merge::Edges;
use crate::request::{Request, Requests};
use crate::table::Table;
use crate::units::{Duration, GroupId, Instant, Tag};

/// How groups share the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// There is but one group: nothing to share.
    Single,
    /// One at a time, for a slice of time.
    Slices,
    /// All at the same time, some requests each in turn.
    Shared,
}

/// What is charged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Unit {
    Time,
    Sectors,
    Requests,
}

/// The number of no slice: of requests that were dispatched out of turn.
const OUT_OF_TURN: u32 = 0;

/// See the [module](self).
#[derive(Debug)]
pub struct Fair<S: Divisible> {
    sched: S,
    config: Config<S::Config>,
    mode: Mode,
    unit: Unit,
    /// The device has no head, and queues requests.
    is_fast: bool,
    tick: Duration,
    pool: Pool,

    /// The scheduler has the context of this group; its entry here is stale.
    in_force: GroupId,
    contexts: Table<GroupId, S::Context>,
    members: Table<GroupId, Member>,
    tree: FairTree,
    reserve: Reserve,
    /// Whether some group has a class other than BE.
    has_classes: bool,

    /// The group that has the disk.
    active: Option<GroupId>,
    slice: Slice,
    /// In which slice each request was dispatched.
    slices: Table<Tag, u32>,
    queued: u32,
    at_device: u32,
    /// Requests at the device that were dispatched out of turn, and since when they use it.
    detours: u32,
    detour_since: Instant,
    /// When to look again, though nothing may have happened.
    wake: Option<Instant>,
}

/// What to do about the group that has the disk.
enum Verdict {
    Keep,
    /// It has had a whole turn, and another follows: no other group wants the disk.
    Renew,
    /// For its next request, until then, or for one at the device.
    Wait(Option<Instant>),
    Leave(Expire),
}

impl<S: Divisible> Scheduler for Fair<S> {
    const NAME: &'static str = S::DIVIDED;
    type Config = Config<S::Config>;

    fn new(limits: Limits, config: Self::Config) -> Result<Self, ConfigError> {
        config.layer.validate()?;
        let sched = S::divided(limits, config.inner)?;
        let groups = limits.groups as usize;
        let tags = if groups > 1 { usize::from(limits.tags) } else { 0 };
        let is_fast = !limits.rotational && limits.queue_depth > 1;
        let (mode, unit) = control::sharing(&config.layer, is_fast);
        let mut this = Self {
            mode: if groups > 1 { mode } else { Mode::Single },
            unit,
            is_fast,
            tick: if limits.tick.is_zero() { Duration::from_ms(1) } else { limits.tick },
            pool: Pool::new(limits.requests()),
            in_force: GroupId::ROOT,
            contexts: Table::new(groups, sched.context()),
            members: Table::new(groups, Member::new()),
            tree: FairTree::new(config.layer.engine, limits.groups),
            reserve: Reserve::new(groups),
            has_classes: false,
            active: None,
            slice: Slice::new(),
            slices: Table::new(tags, OUT_OF_TURN),
            queued: 0,
            at_device: 0,
            detours: 0,
            detour_since: Instant::EPOCH,
            wake: None,
            sched,
            config,
        };
        this.tree.set_quantum(this.quantum());
        Ok(this)
    }

    #[inline]
    fn chooses_groups(&self) -> bool {
        true
    }

    #[inline]
    fn insert(&mut self, cx: &mut Cx<'_>, tag: Tag) {
        if self.mode != Mode::Single {
            self.arrive(cx, tag);
        }
        self.sched.insert(cx, tag);
    }

    #[inline]
    fn dispatch(&mut self, cx: &mut Cx<'_>) -> Dispatch {
        if self.mode == Mode::Single {
            return self.sched.dispatch(cx);
        }
        self.dispatch_among_groups(cx)
    }

    fn drain(&mut self, cx: &mut Cx<'_>) -> Option<Tag> {
        if self.mode == Mode::Single {
            return self.sched.drain(cx);
        }
        if self.queued == 0 {
            return None;
        }
        let group = match self.active.filter(|&g| self.members[g].queued > 0) {
            Some(group) => group,
            None => {
                self.expire(cx, Expire::Drain);
                self.choose(cx)
            }
        };
        self.force(group);
        let tag = self.sched.drain(cx)?;
        self.issued(cx, tag, group);
        Some(tag)
    }

    fn merged(&mut self, cx: &mut Cx<'_>, kept: Tag, end: End) {
        self.force(cx.requests[kept].rq.group);
        self.sched.merged(cx, kept, end);
    }

    fn joined(&mut self, cx: &mut Cx<'_>, kept: Tag, gone: Tag) {
        let rq = &cx.requests[gone].rq;
        if self.mode != Mode::Single {
            let m = &mut self.members[rq.group];
            m.queued -= 1;
            self.queued -= 1;
            self.pool.give_back(&mut m.held, rq.sync);
        }
        self.force(rq.group);
        self.sched.joined(cx, kept, gone);
    }

    #[inline]
    fn complete(&mut self, cx: &mut Cx<'_>, tag: Tag) {
        if self.mode != Mode::Single {
            self.finish(cx, tag);
        }
        self.sched.complete(cx, tag);
    }

    fn requeue(&mut self, cx: &mut Cx<'_>, tag: Tag) {
        self.force(cx.requests[tag].rq.group);
        self.sched.requeue(cx, tag);
    }

    fn reissue(&mut self, cx: &mut Cx<'_>, tag: Tag) {
        self.force(cx.requests[tag].rq.group);
        self.sched.reissue(cx, tag);
    }

    fn control(&mut self, cx: &mut Cx<'_>, change: &Control) {
        self.change(cx, change);
    }

    fn reconfigure(&mut self, cx: &mut Cx<'_>, config: Self::Config) -> Result<bool, ConfigError> {
        self.retune(cx, config)
    }

    fn timer(&mut self, cx: &mut Cx<'_>) {
        if self.wake.is_some_and(|at| at <= cx.now) {
            self.wake = None;
        }
        if let Some(group) = self.active {
            self.force(group);
        }
        self.sched.timer(cx);
    }

    fn next_timer(&self) -> Option<(Instant, Timer)> {
        let own = self.wake.map(|at| (at, Timer::SliceIdle));
        own.into_iter().chain(self.sched.next_timer()).min_by_key(|(at, _)| *at)
    }

    fn prepare_merge(&mut self, cx: &mut Cx<'_>, rq: &Request) {
        self.force(rq.group);
        self.sched.prepare_merge(cx, rq);
    }

    fn may_merge(&self, requests: &Requests, into: Tag, rq: &Request) -> bool {
        self.sched.may_merge(requests, into, rq)
    }

    fn has_room(&self, rq: &Request) -> bool {
        (self.mode == Mode::Single || self.has_request(rq)) && self.sched.has_room(rq)
    }

    fn front_merges(&self) -> bool {
        self.sched.front_merges()
    }

    #[inline]
    fn edges(&self) -> Edges {
        self.sched.edges()
    }

    fn neighbour(&self, tag: Tag, end: End) -> Option<Tag> {
        self.sched.neighbour(tag, end)
    }

    fn check(&self, requests: &Requests) {
        self.check_all(requests);
    }
}

impl<S: Divisible> Fair<S> {
    /// The scheduler.
    #[must_use]
    pub const fn inner(&self) -> &S {
        &self.sched
    }

    /// The group that has the disk has no request waiting. A scheduler may learn from being asked in vain.
    #[inline(never)]
    fn tell_emptiness(&mut self, cx: &mut Cx<'_>, group: GroupId) {
        self.force(group);
        let answer = self.sched.dispatch(cx);
        debug_assert!(answer == Dispatch::Empty, "{group:?} has no requests");
    }

    #[inline(never)]
    fn dispatch_among_groups(&mut self, cx: &mut Cx<'_>) -> Dispatch {
        self.wake = None;
        if self.queued == 0 {
            if let Some(group) = self.active {
                self.tell_emptiness(cx, group);
            }
            return Dispatch::Empty;
        }
        let answer = match self.dispatch_due(cx) {
            Some(answer) => answer,
            // A due request is at a device that sorts: more requests now would let it finish those first.
            None if self.is_clearing() => Dispatch::Hold(Hold::Depth),
            None => self.dispatch_in_turn(cx),
        };
        match answer {
            Dispatch::Issue(tag) => Dispatch::Issue(tag),
            Dispatch::Hold(why) => self.hold(cx.now, why),
            Dispatch::Empty => Dispatch::Empty,
        }
    }

    /// The disk gets no more for now, except requests of guarantees that become due.
    #[inline(never)]
    fn hold(&mut self, now: Instant, why: Hold) -> Dispatch {
        let due = self.reserve.first(self.active).map(|(_, due)| due).filter(|&due| due > now);
        self.wake = self.wake.into_iter().chain(due).min();
        Dispatch::Hold(why)
    }

    /// Dispatches for the group that has the turn, after it has decided whether the turn ends. The next group
    /// is [`FairTree`]'s choice.
    //= docs/reference/groups.md#5-slices-idling-and-expiry select
    #[inline(always)]
    fn dispatch_in_turn(&mut self, cx: &mut Cx<'_>) -> Dispatch {
        let mut turn = self.active;
        if let Some(group) = turn {
            // The scheduler may be working on another group since the last insertion.
            self.force(group);
            let (any, is_used) = (self.members[group].queued > 0, self.is_used(cx.now));
            if !any {
                self.tell_emptiness(cx, group);
            }
            // The usual case, more requests and time left, needs no verdict.
            if !any || is_used {
                match self.verdict(group, cx.now, any, is_used) {
                    Verdict::Keep => {}
                    Verdict::Renew => self.renew(cx, group),
                    Verdict::Wait(until) => {
                        // The group would lose its share if it lost its place for a moment's thought
                        // (docs/reference/groups.md#5-slices-idling-and-expiry).
                        self.wake = until;
                        self.idle(cx, group);
                        return Dispatch::Hold(Hold::SliceIdle);
                    }
                    Verdict::Leave(why) => {
                        self.expire(cx, why);
                        turn = None;
                    }
                }
            }
        }
        let group = turn.unwrap_or_else(|| self.choose(cx));
        // `fairness` 2: requests of others in the device's queue would take the group's time.
        if self.is_draining(group) {
            return Dispatch::Hold(Hold::DrainBatch);
        }
        let answer = self.sched.dispatch(cx);
        match answer {
            Dispatch::Issue(tag) => self.issued_in_turn(cx, tag, group),
            // The scheduler idles by itself, as AS does; the books count that as time kept idle for the
            // group.
            Dispatch::Hold(why) if why.is_idling() => self.idle(cx, group),
            Dispatch::Hold(_) | Dispatch::Empty => {}
        }
        answer
    }

    /// Whether the turn of the group that has the disk is over.
    #[inline]
    fn is_used(&self, now: Instant) -> bool {
        match self.mode {
            Mode::Shared => self.slice.requests >= self.config.layer.group_quantum,
            Mode::Single | Mode::Slices => self.slice.is_used(now),
        }
    }

    /// What to do about the group that has the disk, if none of its requests waits though some do, or its
    /// turn is over.
    #[inline(never)]
    fn verdict(&self, group: GroupId, now: Instant, any: bool, is_used: bool) -> Verdict {
        // With no other group to change to, leaving would only cost idle time.
        if self.tree.active() == 1 {
            return if is_used { Verdict::Renew } else { Verdict::Keep };
        }
        if any {
            // AS refuses in the middle of a change of batches, and while it anticipates
            // (docs/reference/groups.md#6-schedulers-in-the-layer).
            return if self.sched.may_leave() { Verdict::Leave(Expire::Used) } else { Verdict::Keep };
        }
        let awaited = if self.mode == Mode::Shared { None } else { self.awaits(group, now) };
        match awaited {
            Some(until) => Verdict::Wait(until),
            None if is_used => Verdict::Leave(Expire::Used),
            None if self.slice.is_idling => Verdict::Leave(Expire::IdleTimeout),
            None => Verdict::Leave(Expire::Empty),
        }
    }

    /// Whether the group's slice shall begin only when the device has finished what others sent.
    #[inline]
    fn is_draining(&self, group: GroupId) -> bool {
        self.config.layer.fairness > 1
            // Only before the first request of a slice: later the device has the group's own.
            && self.slice.requests == 0
            && self.at_device > self.members[group].at_device
    }

    /// Has the scheduler work on this group.
    #[inline]
    fn force(&mut self, group: GroupId) {
        if self.in_force != group {
            self.exchange(group);
        }
    }

    #[inline(never)]
    fn exchange(&mut self, group: GroupId) {
        let old = core::mem::replace(&mut self.in_force, group);
        self.sched.swap(group, &mut self.contexts[group]);
        self.contexts[old] = self.contexts[group];
    }
}
