//! Limits of groups: who may go on to the scheduler, and when the next one may.
//!
//! A group's [`Max`] bounds bytes and requests a second, of reads and of writes, of the group with all groups
//! inside it. A request continues when its group's limits and those of all groups above have room for it;
//! until then it waits here, behind the older ones of its group and direction.
//!
//! **Virtual scheduling.** For each limit there is one number, the instant `next` from which the next request
//! may go. One that goes at `t` moves it on by `amount / rate`, exactly: what does not make a whole
//! nanosecond is kept as a fraction.
//!
//! ```text
//!   10 requests/s, burst 0:     comes   0   0   0   350         a burst of 200 ms:   0   0   0   0   0
//!                               goes    0 100 200   350 (ms)                         0   0   0 100 200
//! ```
//!
//! While requests wait, the schedule continues from where it was, not from when it was checked, so timers
//! that are late or coarse lose nothing. Time in which nothing waited is not made up for, beyond `burst`:
//! `next` is never earlier than `t - burst`. One that had to wait for *another* limit may find its own `next`
//! in the past: of that, one request's time is kept, or limits that are nearly used up in both would together
//! let less pass than either. So in any span, a group gets at most its rate times span and burst, and one
//! request; two where several limits meet.
//!
//! **Turns.** Groups inside a group compete for its limit, and so do its own requests. They take turns by the
//! time that their requests take of that limit (start-time fair queueing): the group that had less goes
//! first. A group that pauses, or waits for its own limit, is at most one request ahead when it is back.
//!
//! ```text
//!   root ── P: 100/s ─┬─ A: 60/s        A and B wait for P: 50 each. B alone: 100. A alone: 60.
//!                     └─ B
//! ```
//!
//! Requests wait at the innermost place; what is *ready* in a group is known to the group above, and so on up
//! to a group whose limit is *closed*. Closed ones wait in a tree for the time when they open. So letting one
//! request go costs a step per level, each O(log n), and finding out that no request may go costs one
//! comparison.
//!
//! It does not limit the root, and does not know what becomes of a request afterwards: one that is handed
//! back by the device, or merged, has been paid for. Discards are paid for as writes.
//!
//= ITU-T I.371, the generic cell rate algorithm (virtual scheduling)
//= P. Goyal, H. Vin, H. Cheng 1996, "Start-time fair queuing"
//= linux-6.12 block/blk-throttle.c: what is limited, docs/reference/groups.md#11-later-mechanisms

use super::fifo::{Fifo, Links};
use super::tree::{Forest, Tree};
use super::wide::{div_ceil, div_rem};
use crate::groups::{Groups, Max};
use crate::request::{Op, Request, Requests};
use crate::table::Table;
use crate::units::{Duration, GroupId, Instant, Tag, id};
use core::num::NonZeroU64;

const NS_PER_SEC: u64 = 1_000_000_000;

/// One group may have one in this many of the driver's requests waiting for its limits, and all groups
/// together half of them: a group at its limit must not leave the others without tags.
const GROUP_PART: u32 = 8;
const ALL_PART: u32 = 2;

id! {
    /// The limits of one group for one direction: reads, or writes and discards.
    ValveId(u32)
}
id! {
    /// A competitor inside a valve: the group's own requests, or (odd) the valve of a group in it, by its own
    /// number.
    EntryId(u32)
}

impl ValveId {
    fn of(group: GroupId, op: Op) -> Self {
        Self(group.0 * 2 + u32::from(op != Op::Read))
    }

    fn group(self) -> GroupId {
        GroupId(self.0 / 2)
    }

    fn in_group(self, group: GroupId) -> Self {
        Self(group.0 * 2 + self.0 % 2)
    }

    fn own(self) -> EntryId {
        EntryId(self.0 * 2)
    }

    /// As a competitor in the valve above.
    fn as_entry(self) -> EntryId {
        EntryId(self.0 * 2 + 1)
    }

    /// Bytes, and requests, a second.
    fn rates(self, max: &Max) -> [Option<NonZeroU64>; 2] {
        if self.0.is_multiple_of(2) { [max.rbps, max.riops] } else { [max.wbps, max.wiops] }
    }

    fn is_root(self) -> bool {
        self.group() == GroupId::ROOT
    }
}

impl EntryId {
    fn valve(self) -> ValveId {
        ValveId(self.0 / 2)
    }

    fn is_own(self) -> bool {
        self.0.is_multiple_of(2)
    }
}

/// One limit.
#[derive(Clone, Copy, Debug, Default)]
struct Meter {
    /// When the next request may go, in nanoseconds of the clock, and beyond that a fraction of a nanosecond,
    /// whose denominator is the rate.
    next: u64,
    fraction: u64,
}

impl Meter {
    /// The first whole nanosecond at which the next one may go.
    fn opens(self) -> u64 {
        self.next.saturating_add(u64::from(self.fraction > 0))
    }

    /// One goes at `now`. Returns how long it takes of the limit, in nanoseconds.
    fn charge(&mut self, now: u64, amount: u64, rate: NonZeroU64, burst: Duration, waited: bool) -> u64 {
        let rate = rate.get();
        let work = u128::from(amount) * u128::from(NS_PER_SEC);
        let time = div_ceil(work, rate);
        let earliest = now.saturating_sub(burst.as_ns()).saturating_sub(if waited { time } else { 0 });
        if self.next < earliest {
            *self = Self { next: earliest, fraction: 0 };
        }
        let (whole, fraction) = div_rem(work + u128::from(self.fraction), rate);
        self.next = self.next.saturating_add(whole);
        self.fraction = fraction;
        time
    }

    /// Changes the rate: a request that waits has to wait longer or shorter in proportion.
    fn rescale(&mut self, now: u64, old: Option<NonZeroU64>, new: Option<NonZeroU64>) {
        let (Some(old), Some(new)) = (old, new) else {
            *self = Self::default();
            return;
        };
        let ahead = self.opens().saturating_sub(now);
        if old != new && ahead > 0 {
            // Times beyond the clock's end are its end.
            let ahead = div_ceil(u128::from(ahead) * u128::from(old.get()), new.get());
            *self = Self { next: now.saturating_add(ahead), fraction: 0 };
        }
    }
}

/// The limits of one group for one direction, and the requests that wait for them or for those above.
#[derive(Clone, Copy, Debug, Default)]
struct Valve {
    /// Of bytes, and of requests.
    meters: [Meter; 2],
    /// The group's own requests that wait.
    own: Fifo<Tag>,
    /// The entries that could continue as far as this valve is concerned, by what they had of it.
    ready: Tree,
    /// The least that the next entry must have had, and what the last one took, in nanoseconds of this
    /// valve's limit.
    turn: u64,
    step: u64,
    /// What the own requests had of this valve, and what this valve had of the one above.
    had: [u64; 2],
    /// Whether an entry is ready but has to wait for this valve's own limit.
    is_closed: bool,
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub(crate) struct Throttle {
    valves: Table<ValveId, Valve>,
    links: Links<Tag>,
    /// Entries in the `ready` tree of a valve, or among the closed ones.
    forest: Forest<EntryId>,
    /// Valves that are closed while an entry in them is ready, by the time when they open.
    closed: Tree,
    /// How many requests wait.
    waiting: u32,
    /// How many groups have a limit.
    limited: u32,
    /// The instant up to which all have gone that may, in nanoseconds.
    now: u64,
    /// How many requests the driver has.
    pool: u32,
}

impl Throttle {
    /// Makes a throttle for `groups` groups and `tags` tags; `pool` is the number of the driver's requests.
    /// Allocates.
    #[must_use]
    pub(crate) fn new(groups: u32, tags: u16, pool: u32) -> Self {
        let (groups, tags) = if groups > 1 { (groups as usize, usize::from(tags)) } else { (0, 0) };
        Self {
            valves: Table::new(groups * 2, Valve::default()),
            links: Links::new(tags),
            forest: Forest::new(groups * 4),
            closed: Tree::default(),
            waiting: 0,
            limited: 0,
            now: 0,
            pool,
        }
    }

    /// Whether nothing is limited, and no request waits.
    #[inline]
    #[must_use]
    pub(crate) const fn is_unused(&self) -> bool {
        self.limited == 0 && self.waiting == 0
    }

    /// How many requests wait.
    #[must_use]
    pub(crate) const fn waiting(&self) -> u32 {
        self.waiting
    }

    /// When the next request may go, if one waits.
    #[must_use]
    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.forest.first(&self.closed).map(|e| Instant::from_ns(self.forest.key(e)))
    }

    /// Whether the driver should make a request like this one now: not if it would only wait here, where
    /// enough of its group, or of all groups, do.
    #[must_use]
    pub(crate) fn has_room(&self, now: Instant, groups: &Groups, rq: &Request) -> bool {
        let valve = ValveId::of(rq.group, rq.op);
        let part = |parts: u32| (self.pool / parts).max(1);
        Self::path(groups, valve).all(|v| self.opens(v) <= now.as_ns())
            || self.valves[valve].own.len() < part(GROUP_PART) && self.waiting < part(ALL_PART)
    }

    /// When a request like this one could go on at once, if none went before.
    #[must_use]
    pub(crate) fn opens_at(&self, groups: &Groups, rq: &Request) -> Instant {
        let opens = Self::path(groups, ValveId::of(rq.group, rq.op)).map(|v| self.opens(v)).max();
        // Instants begin with 1.
        Instant::from_ns(opens.unwrap_or(1).max(1))
    }

    /// A request comes, of a group that exists. Returns whether it may go on at once; if not, it waits here.
    /// Those that are due must have [gone](Self::pass) before.
    pub(crate) fn admit(&mut self, now: Instant, groups: &Groups, tag: Tag, rq: &Request) -> bool {
        self.now = self.now.max(now.as_ns());
        let valve = ValveId::of(rq.group, rq.op);
        if self.lets_pass(groups, valve) {
            debug_assert!(self.valves[valve].own.is_empty(), "passes older ones of its group");
            for v in Self::path(groups, valve) {
                self.charge(groups, v, rq, false);
            }
            return true;
        }
        self.waiting += 1;
        let own = &mut self.valves[valve].own;
        self.links.push_back(own, tag);
        if own.len() == 1 {
            // Only the first in line competes; the others follow it in order.
            self.rise(groups, valve.own(), false);
        }
        false
    }

    /// The next request that may go by now, if there is one: it has been paid for and waits no more.
    pub(crate) fn pass(&mut self, now: Instant, groups: &Groups, requests: &Requests) -> Option<Tag> {
        loop {
            for root in [Op::Read, Op::Write].map(|op| ValveId::of(GroupId::ROOT, op)) {
                if !self.valves[root].ready.is_empty() {
                    return Some(self.pull(groups, requests, root, true));
                }
            }
            // No request is ready, so the next valve opens; there may be several between the last call and
            // now.
            let first = self.forest.first(&self.closed);
            let Some(entry) = first.filter(|&e| self.forest.key(e) <= now.as_ns()) else {
                self.now = self.now.max(now.as_ns());
                return None;
            };
            // It happens when it was due, whenever we look.
            let valve = entry.valve();
            self.now = self.now.max(self.due(valve));
            self.reopen(valve);
            self.rise(groups, entry, true);
        }
    }

    /// Any request that waits, whatever the limits say, and unpaid.
    pub(crate) fn take(&mut self, groups: &Groups, requests: &Requests) -> Option<Tag> {
        let valve = self.forest.first(&self.closed)?.valve();
        self.reopen(valve);
        let tag = self.pull(groups, requests, valve, false);
        if !self.valves[valve].ready.is_empty() {
            self.close(valve);
        }
        Some(tag)
    }

    /// A group's limit is another than `old`. Those that are due must have [gone](Self::pass) before; some
    /// may be due afterwards.
    pub(crate) fn change(&mut self, now: Instant, groups: &Groups, group: GroupId, old: &Max) {
        self.now = self.now.max(now.as_ns());
        let new = groups.max(group);
        self.limited = self.limited + u32::from(!new.is_none()) - u32::from(!old.is_none());
        for valve in [Op::Read, Op::Write].map(|op| ValveId::of(group, op)) {
            let is_waiting = !self.valves[valve].ready.is_empty();
            if is_waiting {
                // It leaves its place first: whether it is closed, and until when, depends on the meters that
                // change.
                self.sink(groups, valve);
            }
            let rates = valve.rates(old).into_iter().zip(valve.rates(&new));
            for (meter, (old, new)) in self.valves[valve].meters.iter_mut().zip(rates) {
                meter.rescale(self.now, old, new);
            }
            if is_waiting && self.is_open(valve) {
                self.rise(groups, valve.as_entry(), true);
            } else if is_waiting {
                self.close(valve);
            }
        }
    }

    /// Walks everything and panics if anything is inconsistent. Only between calls, when no request is due.
    pub(crate) fn check(&self, groups: &Groups) {
        let (mut waiting, mut closed, mut limited) = (0, 0, 0);
        for (v, valve) in self.valves.iter() {
            limited += u32::from(v.0.is_multiple_of(2) && !groups.max(v.group()).is_none());
            waiting += valve.own.len();
            closed += u32::from(valve.is_closed);
            self.forest.check(&valve.ready);
            for entry in self.forest.iter(&valve.ready) {
                assert!(Self::container(groups, entry) == v, "ready in another group");
                assert!(entry.is_own() || !self.valves[entry.valve()].is_closed, "ready and closed");
            }
            assert_eq!(self.forest.contains(v.own()), !valve.own.is_empty(), "own requests are ready");
            let is_placed = self.forest.contains(v.as_entry());
            assert_eq!(is_placed, !valve.ready.is_empty(), "a valve with a ready entry is ready or closed");
            assert!(!valve.is_closed || is_placed && !self.is_open(v), "closed for nothing");
            assert!(!v.is_root() || valve.ready.is_empty(), "a request may go");
        }
        assert_eq!((waiting, closed, limited), (self.waiting, self.closed.len(), self.limited), "counts");
    }

    /// Whether a request waits here.
    #[must_use]
    pub(crate) fn holds(&self, tag: Tag, rq: &Request) -> bool {
        self.valves
            .get(ValveId::of(rq.group, rq.op))
            .is_some_and(|v| self.links.iter(&v.own).any(|t| t == tag))
    }
}

/// The schedule.
impl Throttle {
    /// The valve and those above it, up to the root's.
    fn path(groups: &Groups, valve: ValveId) -> impl Iterator<Item = ValveId> + '_ {
        core::iter::successors(Some(valve), |v| groups.parent(v.group()).map(|p| v.in_group(p)))
    }

    /// The valve in which an entry competes.
    fn container(groups: &Groups, entry: EntryId) -> ValveId {
        let valve = entry.valve();
        match groups.parent(valve.group()) {
            Some(parent) if !entry.is_own() => valve.in_group(parent),
            _ => valve,
        }
    }

    /// When its limits are, or were, ready for the next request. (They count those that are not set as never
    /// used.)
    fn due(&self, valve: ValveId) -> u64 {
        let [bytes, requests] = self.valves[valve].meters;
        bytes.next.max(requests.next)
    }

    /// Returns the time at which a valve opens, in whole nanoseconds, rounded up.
    fn opens(&self, valve: ValveId) -> u64 {
        let [bytes, requests] = self.valves[valve].meters;
        bytes.opens().max(requests.opens())
    }

    fn is_open(&self, valve: ValveId) -> bool {
        self.opens(valve) <= self.now
    }

    fn lets_pass(&self, groups: &Groups, valve: ValveId) -> bool {
        Self::path(groups, valve).all(|v| self.is_open(v))
    }

    /// A request goes through. Returns how long it takes of the limit, if there is one.
    fn charge(&mut self, groups: &Groups, valve: ValveId, rq: &Request, waited: bool) -> Option<u64> {
        let max = groups.max(valve.group());
        let amounts = [rq.len.bytes(), 1].into_iter().zip(valve.rates(&max));
        let meters = &mut self.valves[valve].meters;
        let limits = meters.iter_mut().zip(amounts);
        let charged = limits.filter_map(|(meter, (amount, rate))| {
            Some(meter.charge(self.now, amount, rate?, max.burst, waited))
        });
        charged.max()
    }
}

/// Turns.
impl Throttle {
    /// Takes the request whose turn it is in `top`, where an entry is ready. `top` is in no tree meanwhile,
    /// nor afterwards.
    fn pull(&mut self, groups: &Groups, requests: &Requests, top: ValveId, is_paid: bool) -> Tag {
        let entries = core::iter::successors(self.first_ready(top), |e| {
            if e.is_own() { None } else { self.first_ready(e.valve()) }
        });
        let leaf = entries.last().map_or(top, EntryId::valve);
        let tag = self.valves[leaf].own.first().expect("ready, but nothing waits");
        self.take_turns(groups, &requests[tag].rq, top, is_paid);
        self.waiting -= 1;
        let valve = &mut self.valves[leaf];
        self.links.pop_front(&mut valve.own);
        if !valve.own.is_empty() {
            self.forest.insert(&mut valve.ready, leaf.own(), valve.had[0]);
        }
        // The groups on the way have had their turn: each goes back behind its siblings, or closes if the
        // request used its limit up.
        for valve in Self::path(groups, leaf).take_while(|&v| v != top) {
            if !self.valves[valve].ready.is_empty() {
                self.settle(groups, valve);
            }
        }
        tag
    }

    fn first_ready(&self, valve: ValveId) -> Option<EntryId> {
        self.forest.first(&self.valves[valve].ready)
    }

    /// From `top` down to the sender of `rq`: the first in each group has its turn, and leaves the tree.
    fn take_turns(&mut self, groups: &Groups, rq: &Request, top: ValveId, is_paid: bool) {
        let (mut valve, mut time) = (top, 0);
        while let Some(entry) = self.first_ready(valve) {
            // Inside a group without a limit, turns are by the limit above it.
            let charged = if is_paid { self.charge(groups, valve, rq, true) } else { None };
            time = charged.unwrap_or(time);
            let v = &mut self.valves[valve];
            self.forest.remove(&mut v.ready, entry);
            v.step = time;
            v.turn = v.turn.max(self.forest.key(entry));
            let had = &mut self.valves[entry.valve()].had[usize::from(!entry.is_own())];
            *had = had.saturating_add(time);
            if entry.is_own() {
                return;
            }
            valve = entry.valve();
        }
    }

    /// Records that an entry has become ready: `entry` in its group, and the groups above as far as they were
    /// not ready. It may be back after waiting for its own limit (`was_away`).
    fn rise(&mut self, groups: &Groups, mut entry: EntryId, mut was_away: bool) {
        loop {
            let at = Self::container(groups, entry);
            let Valve { turn, step, .. } = self.valves[at];
            // A newcomer starts where the turns are now. One that was away for its own limit may be behind by
            // one step, or a limit would cost it a turn each time.
            let least = if was_away { turn.saturating_sub(step) } else { turn };
            let had = &mut self.valves[entry.valve()].had[usize::from(!entry.is_own())];
            *had = least.max(*had);
            let had = *had;
            let ready = &mut self.valves[at].ready;
            let is_news = ready.is_empty();
            self.forest.insert(ready, entry, had);
            // The groups above know already that something here is ready.
            if !is_news || at.is_root() {
                return;
            }
            if !self.is_open(at) {
                return self.close(at);
            }
            (entry, was_away) = (at.as_entry(), false);
        }
    }

    /// Records that no entry in `valve` is ready for those above it any more.
    fn sink(&mut self, groups: &Groups, mut valve: ValveId) {
        loop {
            if self.valves[valve].is_closed {
                return self.reopen(valve);
            }
            let above = Self::container(groups, valve.as_entry());
            let ready = &mut self.valves[above].ready;
            self.forest.remove(ready, valve.as_entry());
            if !ready.is_empty() || above.is_root() {
                return;
            }
            valve = above;
        }
    }

    /// Files `valve`, which has just had a turn and still has a ready entry.
    fn settle(&mut self, groups: &Groups, valve: ValveId) {
        if self.is_open(valve) {
            let above = Self::container(groups, valve.as_entry());
            let had = self.valves[valve].had[1];
            self.forest.insert(&mut self.valves[above].ready, valve.as_entry(), had);
        } else {
            self.close(valve);
        }
    }

    fn close(&mut self, valve: ValveId) {
        let opens = self.opens(valve);
        self.valves[valve].is_closed = true;
        self.forest.insert(&mut self.closed, valve.as_entry(), opens);
    }

    fn reopen(&mut self, valve: ValveId) {
        self.valves[valve].is_closed = false;
        self.forest.remove(&mut self.closed, valve.as_entry());
    }
}

#[cfg(test)]
mod tests;
