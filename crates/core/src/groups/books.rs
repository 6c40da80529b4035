//! Books: what each group got.
//!
//! Two write in them: the elevator records what happens to requests, and a scheduler that knows groups
//! records whose turn it is and what that group is charged. Both only add; no decision depends on them.
//!
//! Example: of two groups, A is served from 0 to 30 ms, and B has a request from 10 ms on, which is issued at
//! 30 ms and completes at 40 ms. B's `group_wait_time` is 20 ms then (10 to 30), as is its `io_wait_time`,
//! and its `io_service_time` 10 ms.
//!
//! **What a request costs.** Its own entry in the table of requests says when it was inserted and issued.
//! When it completes, what it got is entered at once, into one line of the processor's cache: there is one
//! for each group, direction and kind. What waits or is at the device is not counted here at all
//! ([`super::stats`] does that when they are read).
//!
//! They are kept where there are several groups; of one alone, there would be nothing to compare.

use super::{Group, GroupStats, Groups, Refusal};
use crate::request::{Op, Request, Requests, Slot};
use crate::units::{Duration, GroupId, Id, Instant, id};

/// How many cells a group has: one for each direction, sync and async.
pub(super) const CELLS: usize = 6;

id! {
    /// A group's cell: its number times [`CELLS`], and twice the direction, and 1 for sync.
    pub(super) CellId(u32)
}

impl CellId {
    #[inline(always)]
    pub(super) fn of(rq: &Request) -> Self {
        Self((rq.group.0 * 3 + rq.op as u32) * 2 + u32::from(rq.sync))
    }

    pub(super) fn nth(group: GroupId, i: usize) -> Self {
        Self::from_index(group.index() * CELLS + i)
    }
}

const _: () = assert!(Op::Read as u32 == 0 && Op::Discard as u32 == 2);

/// What requests of one group, direction and kind got: see [`super::GroupStats`].
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
pub(super) struct Cell {
    pub(super) serviced: u64,
    pub(super) bytes: u64,
    pub(super) wait_ns: u64,
    pub(super) service_ns: u64,
    pub(super) throttled_ns: u64,
    pub(super) merged: u64,
}

/// What a scheduler that chooses groups says of one: see [`super::GroupStats`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Turns {
    pub(super) disk_time: Duration,
    pub(super) unaccounted_time: Duration,
    pub(super) disk_dequeue: u64,
    pub(super) queue_size_sum: u64,
    pub(super) queue_size_samples: u64,
    pub(super) group_wait_time: Duration,
    pub(super) idle_time: Duration,
    pub(super) empty_time: Duration,
}

impl Turns {
    pub(super) const NONE: Self = Self {
        disk_time: Duration::ZERO,
        unaccounted_time: Duration::ZERO,
        disk_dequeue: 0,
        queue_size_sum: 0,
        queue_size_samples: 0,
        group_wait_time: Duration::ZERO,
        idle_time: Duration::ZERO,
        empty_time: Duration::ZERO,
    };
}

/// What schedulers that know groups have to say for the books.
impl Groups {
    /// The turn of this group begins, or that of another queue of it.
    pub(crate) fn serve(&mut self, now: Instant, group: GroupId) {
        if self.served != Some(group) {
            self.leave(now);
            self.served = Some(group);
        }
        let g = &mut self.groups[group];
        if let Some(since) = g.since.take() {
            let time = if g.queued > 0 { &mut g.turns.group_wait_time } else { &mut g.turns.empty_time };
            *time += now.saturating_since(since);
        }
        g.turns.queue_size_sum += u64::from(g.queued);
        g.turns.queue_size_samples += 1;
    }

    /// The turn of the group in service ends, and no other begins.
    pub(crate) fn leave(&mut self, now: Instant) {
        self.idled(now);
        let idled = core::mem::replace(&mut self.idled, Duration::ZERO);
        if let Some(group) = self.served.take() {
            let g = &mut self.groups[group];
            g.turns.idle_time += idled;
            g.since = Some(now);
        }
    }

    /// The disk is kept idle for the group that is served, from now on, until it is not or a request is
    /// issued.
    pub(crate) const fn idles(&mut self, now: Instant) {
        if self.idle_since.is_none() {
            self.idle_since = Some(now);
        }
    }

    /// The idling that was noted before has ended.
    #[inline(never)]
    pub(crate) fn idled(&mut self, now: Instant) {
        self.idled_until(now);
    }

    #[inline(always)]
    fn idled_until(&mut self, now: Instant) {
        if let Some(since) = self.idle_since.take() {
            self.idled += now.saturating_since(since);
        }
    }

    /// Whether books are kept.
    #[inline(always)]
    pub(crate) fn is_kept(&self) -> bool {
        !self.cells.is_empty()
    }

    /// The group that had the disk is charged `used`, and not charged `unaccounted`.
    pub(crate) fn charge(&mut self, group: GroupId, used: Duration, unaccounted: Duration) {
        let turns = &mut self.groups[group].turns;
        turns.disk_time += used;
        turns.unaccounted_time += unaccounted;
    }

    /// The group ran out of requests, and has lost its place.
    pub(crate) fn dequeued(&mut self, group: GroupId) {
        self.groups[group].turns.disk_dequeue += 1;
    }
}

/// What the elevator has to say for the books: for each thing that can happen to a request, what it means for
/// them. Where no books are kept, nothing.
impl Groups {
    /// For schedulers that choose groups, of which there are several: one more request of this group waits.
    #[inline(always)]
    pub(crate) fn waits(&mut self, now: Instant, group: GroupId) {
        self.groups[group].queue(now, group, self.served);
    }

    /// For schedulers that choose groups, of which there are several: one request fewer of this group waits,
    /// as the device got it.
    #[inline(always)]
    pub(crate) fn waits_no_more(&mut self, now: Instant, group: GroupId) {
        self.groups[group].unqueue(now, group, self.served);
        self.idled_until(now);
    }

    /// A request waited for a limit for `waited`, and goes to the scheduler now.
    pub(crate) fn throttled(&mut self, waited: Duration, rq: &Request) {
        if let Some(cell) = self.cells.get_mut(CellId::of(rq)) {
            cell.throttled_ns += waited.as_ns();
        }
    }

    /// It is a part of another of its group now. `chooses`: whether the scheduler chooses groups, and says so
    /// here ([`Scheduler::chooses_groups`](crate::sched::Scheduler::chooses_groups)).
    pub(crate) fn merged(&mut self, rq: &Request, chooses: bool) {
        if let Some(cell) = self.cells.get_mut(CellId::of(rq)) {
            cell.merged += 1;
            self.groups[rq.group].queued -= u32::from(chooses);
        }
    }

    /// The device handed it back: its sectors are neither at the device nor of a completed request, but have
    /// been counted.
    pub(crate) fn requeued(&mut self, rq: &Request) {
        let apart = &mut self.groups[rq.group].sectors_apart;
        *apart = apart.wrapping_add(u64::from(rq.len.0));
    }

    /// The device got it again.
    pub(crate) fn issued_again(&mut self, rq: &Request) {
        let apart = &mut self.groups[rq.group].sectors_apart;
        *apart = apart.wrapping_sub(u64::from(rq.len.0));
    }

    /// The device finished it.
    #[inline(always)]
    pub(crate) fn completed(&mut self, now: Instant, slot: &Slot) {
        let Some(cell) = self.cells.get_mut(CellId::of(&slot.rq)) else { return };
        // These are the elevator's times, which never go backwards.
        cell.serviced += 1;
        cell.bytes += slot.rq.len.bytes();
        cell.wait_ns += slot.issued.as_ns() - slot.inserted.as_ns();
        cell.service_ns += now.as_ns() - slot.issued.as_ns();
    }

    /// The group's books, and those of groups that were in it and are no more, begin anew. What waits is
    /// counted as before.
    pub(crate) fn reset_stats(
        &mut self,
        now: Instant,
        group: GroupId,
        requests: &Requests,
    ) -> Result<(), Refusal> {
        if !self.exists(group) {
            return Err(Refusal::NoGroup(group));
        }
        self.clear(group);
        // What is at the device has been counted.
        let counted = self.stats(group, requests).disk_sectors;
        let g = &mut self.groups[group];
        g.sectors_apart = g.sectors_apart.wrapping_sub(counted);
        g.since = g.since.map(|_| now);
        if self.served == Some(group) {
            self.idle_since = self.idle_since.map(|_| now);
            self.idled = Duration::ZERO;
        }
        Ok(())
    }

    /// The books of a group, and of those that were in it and are no more, are empty.
    pub(super) fn clear(&mut self, group: GroupId) {
        for i in 0..CELLS {
            if let Some(cell) = self.cells.get_mut(CellId::nth(group, i)) {
                *cell = Cell::default();
            }
        }
        (self.groups[group].turns, self.groups[group].sectors_apart) = (Turns::NONE, 0);
        self.gone[group] = GroupStats::NONE;
    }
}

/// For schedulers that choose groups: the groups that wait while others are served.
impl Group {
    /// One more request waits. If it is the first, and out of turn, the group waits from now on.
    #[inline(always)]
    fn queue(&mut self, now: Instant, group: GroupId, served: Option<GroupId>) {
        self.queued += 1;
        if self.queued == 1 && served != Some(group) {
            let empty = self.begin(now);
            self.turns.empty_time += empty;
        }
    }

    /// One request fewer waits. If it was the last, and out of turn, the group has what it waited for.
    #[inline(always)]
    fn unqueue(&mut self, now: Instant, group: GroupId, served: Option<GroupId>) {
        self.queued -= 1;
        if self.queued == 0 && served != Some(group) {
            let waited = self.begin(now);
            self.turns.group_wait_time += waited;
        }
    }

    /// Something begins. Returns how long what was before has lasted.
    #[inline(always)]
    fn begin(&mut self, now: Instant) -> Duration {
        self.since.replace(now).map_or(Duration::ZERO, |since| now.saturating_since(since))
    }
}
