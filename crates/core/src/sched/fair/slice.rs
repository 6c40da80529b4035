//! Turns: a group gets the disk, for how long, what it is charged, and how it loses it.
//!
//! ```text
//!   chosen         first request dispatched in it completes                          over
//!     ├──── 9 ms ───────┼───────────────────── 100 ms ────────────────────────────────┤
//!        unaccounted                          charged
//! ```
//!
//! A slice's clock starts when the first request that was dispatched in it completes: the seek to a group's
//! place is not charged. It stands still while the group has nothing to do and no other group wants the disk,
//! and while a request of another group is served out of turn. What a slice overran, because its last request
//! took long or because its next was waited for, is charged: a group that overruns by 3 ms has 3 ms less
//! later. (V9's published table says so too: its slices of 100 ms were charged 100.7.)
//!
//! With many groups slices shrink, so that each has its turn within `group_target`. Weights act by how often
//! a group is chosen, not by the slice:
//!
//! | groups with requests | 1-3 | 4 | 6 | 10 | 18 | 100 |
//! |---|---:|---:|---:|---:|---:|---:|
//! | slice, ms | 100 | 75 | 50 | 30 | 16.7 | 16 |
//!
//! Where groups [share](super::Mode::Shared) the device, a turn is `group_quantum` requests, and ends at once
//! when the group has none.
//!
//= linux-2.6.33 block/cfq-iosched.c cfq_cfqq_slice_usage, cfq_group_served, docs/reference/cfq.md#63-charging
//= docs/reference/groups.md#5-slices-idling-and-expiry charged time
//= docs/reference/groups.md#5-slices-idling-and-expiry

use super::{Divisible, Fair, Mode};
use crate::elevator::Cx;
use crate::trace::Reason;
use crate::units::{Duration, GroupId, Instant, Sectors};

/// The shortest slice that many groups can make: below, one request takes as long.
const SLICE_MIN: Duration = Duration::from_ms(1);
/// What a request is taken to be, before it is known, where turns are counted in sectors: 64 KiB.
const SECTORS_PER_REQUEST: u32 = 128;

/// Why a turn ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Expire {
    /// It is over.
    Used,
    /// The group has nothing more to do.
    Empty,
    /// Its next request did not come in time.
    IdleTimeout,
    /// A group of a higher class came.
    Preempted,
    /// Everything is being drained.
    Drain,
}

impl Expire {
    const fn reason(self) -> Reason {
        match self {
            Self::Used => Reason::SliceUsed,
            Self::Empty => Reason::SliceEmpty,
            Self::IdleTimeout => Reason::IdleTimeout,
            Self::Preempted => Reason::Preempted,
            Self::Drain => Reason::Drain,
        }
    }
}

/// The turn of the group that has the disk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slice {
    /// Which one: requests dispatched in it bear this number.
    pub(super) number: u32,
    chosen: Instant,
    /// When its clock started, and when it will be over.
    started: Option<Instant>,
    end: Instant,
    /// Since when its clock stands still.
    stopped: Option<Instant>,
    pub(super) requests: u32,
    sectors: u32,
    /// Whether the disk is kept idle for the group.
    pub(super) is_idling: bool,
}

impl Slice {
    pub(super) const fn new() -> Self {
        Self {
            number: 0,
            chosen: Instant::EPOCH,
            started: None,
            end: Instant::EPOCH,
            stopped: None,
            requests: 0,
            sectors: 0,
            is_idling: false,
        }
    }

    const fn begin(&mut self, now: Instant) {
        let number = match self.number.wrapping_add(1) {
            super::OUT_OF_TURN => 1,
            number => number,
        };
        *self = Self { number, chosen: now, ..Self::new() };
    }

    #[inline]
    pub(super) const fn issued(&mut self, len: Sectors) {
        self.requests += 1;
        self.sectors = self.sectors.saturating_add(len.0);
    }

    pub(super) const fn has_started(&self) -> bool {
        self.started.is_some()
    }

    /// The first request dispatched in it has completed.
    #[inline(never)]
    pub(super) fn start(&mut self, now: Instant, length: Duration) {
        self.started = Some(now);
        self.end = now + length;
        if self.stopped.is_some() {
            self.stopped = Some(now);
        }
    }

    #[inline]
    pub(super) const fn is_stopped(&self) -> bool {
        self.stopped.is_some()
    }

    #[inline]
    pub(super) fn is_used(&self, now: Instant) -> bool {
        self.started.is_some() && self.stopped.unwrap_or(now) >= self.end
    }

    /// Stops the clock if it runs, and starts it if it stands still.
    #[inline(never)]
    fn stop_or_go_on(&mut self, now: Instant) {
        let Some(since) = self.stopped.take() else {
            self.stopped = Some(now);
            return;
        };
        let pause = now.saturating_since(since);
        self.chosen = self.chosen + pause;
        self.started = self.started.map(|start| start + pause);
        self.end = self.end + pause;
    }

    /// What to charge, and what not.
    fn usage(&self, now: Instant, tick: Duration) -> (Duration, Duration) {
        let now = self.stopped.unwrap_or(now);
        match self.started {
            Some(start) if start < now => (now.since(start), start.saturating_since(self.chosen)),
            // Lost before, or right when, its first request completed: nothing comes for free.
            _ => (now.saturating_since(self.chosen).max(tick), Duration::ZERO),
        }
    }
}

impl<S: Divisible> Fair<S> {
    /// How long a slice is that starts now.
    pub(super) fn slice_length(&self) -> Duration {
        let layer = &self.config.layer;
        if layer.group_target.is_zero() {
            return layer.group_slice;
        }
        let part = layer.group_target / u64::from(self.tree.active().max(1));
        let least = (layer.group_idle * 2).max(SLICE_MIN);
        layer.group_slice.min(part.max(least))
    }

    /// What a turn is expected to be, as it is charged.
    pub(super) fn quantum(&self) -> u32 {
        let requests = self.config.layer.group_quantum;
        match self.unit {
            super::Unit::Time => microseconds(self.slice_length()),
            super::Unit::Sectors => requests.saturating_mul(SECTORS_PER_REQUEST),
            super::Unit::Requests => requests,
        }
    }

    /// Gives the disk to the group whose turn it is.
    #[inline(never)]
    pub(super) fn choose(&mut self, cx: &mut Cx<'_>) -> GroupId {
        let group = self.tree.select(cx.now, self.quantum()).expect("a group has requests");
        self.active = Some(group);
        self.slice.begin(cx.now);
        self.force(group);
        self.sched.enter(cx);
        cx.books.groups.serve(cx.now, group);
        cx.note(Reason::SliceStart, self.members[group].task);
        group
    }

    /// A new turn for a group when no other wants the disk.
    #[inline(never)]
    pub(super) fn renew(&mut self, cx: &mut Cx<'_>, group: GroupId) {
        let used = self.settle(cx, group);
        self.tree.charge(group, used);
        self.slice.begin(cx.now);
        if self.mode == Mode::Slices {
            // Its head is where it was: there is no seek to leave out.
            self.slice.start(cx.now, self.slice_length());
        }
    }

    /// Takes the disk from the group that has it, if one has.
    #[inline(never)]
    pub(super) fn expire(&mut self, cx: &mut Cx<'_>, why: Expire) {
        let Some(group) = self.active else { return };
        self.force(group);
        self.sched.leave(cx);
        self.stop_idling(cx);
        let used = self.settle(cx, group);
        self.active = None;
        if self.members[group].queued > 0 {
            self.tree.expire(cx.now, group, used);
        } else {
            self.tree.charge(group, used);
            self.lose_place(cx, group);
        }
        cx.books.groups.leave(cx.now);
        cx.note(why.reason(), self.members[group].task);
    }

    /// The group has nothing more to do, and gives up its place among the others.
    #[inline(never)]
    pub(super) fn lose_place(&mut self, cx: &mut Cx<'_>, group: GroupId) {
        let left = self.tree.deactivate(cx.now, group);
        if self.tree.active() == 0 {
            return;
        }
        let around = core::iter::successors(Some(group), |&g| self.tree.parent(g));
        around.take(left as usize).for_each(|g| cx.books.groups.dequeued(g));
    }

    /// Enters a turn in the books. Returns what it is charged.
    fn settle(&self, cx: &mut Cx<'_>, group: GroupId) -> u32 {
        let (used, unaccounted) = self.slice.usage(cx.now, self.tick);
        if self.mode == Mode::Slices {
            cx.books.groups.charge(group, used, unaccounted);
        }
        match self.unit {
            super::Unit::Time => microseconds(used),
            super::Unit::Sectors => self.slice.sectors,
            super::Unit::Requests => self.slice.requests,
        }
    }

    /// The clock of the slice stands still while the group has nothing to do and no other group wants the
    /// disk, and while another group is served out of turn.
    #[inline]
    pub(super) fn update_clock(&mut self, now: Instant) {
        let Some(group) = self.active else { return };
        let stands = self.detours > 0 || self.tree.active() == 1 && self.members[group].is_idle();
        if stands != self.slice.is_stopped() {
            self.slice.stop_or_go_on(now);
        }
    }
}

/// As the tree counts time; longer than an hour counts as that.
pub(super) fn microseconds(time: Duration) -> u32 {
    u32::try_from(time.as_us()).unwrap_or(u32::MAX)
}
