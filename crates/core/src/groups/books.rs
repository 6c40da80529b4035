//! Books: what each group got, under the kernel's names.
//!
//! Two write in them: the elevator says what happens to requests, and a scheduler that knows groups whose turn it is, and what that
//! one is charged. Both only add; nobody decides by what is in them.
//!
//! Example: of two groups, A is served from 0 to 30 ms, and B has a request from 10 ms on, which is issued at 30 ms and
//! completes at 40 ms. B's `group_wait_time` is 20 ms then (10 to 30), as is its `io_wait_time`, and its `io_service_time` 10 ms.
//!
//! They are kept where there are several groups; of one alone, there would be nothing to compare.

use super::{Group, Groups, Refusal};
use crate::request::Request;
use crate::units::{Duration, GroupId, Instant, Tag};

/// A count for each direction, and for sync and async, as the kernel's files have it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Split(pub(super) [[u64; 2]; 3]);

impl Split {
    fn cell(&mut self, rq: &Request) -> &mut u64 {
        &mut self.0[rq.op as usize][usize::from(rq.sync)]
    }

    fn add(&mut self, rq: &Request, n: u64) {
        *self.cell(rq) += n;
    }

    fn sub(&mut self, rq: &Request, n: u64) {
        *self.cell(rq) -= n;
    }

    fn merge(&mut self, other: &Self) {
        let all = self.0.iter_mut().flatten().zip(other.0.iter().flatten());
        all.for_each(|(mine, theirs)| *mine += theirs);
    }

    /// Of reads.
    #[must_use]
    pub const fn read(&self) -> u64 {
        self.0[0][0] + self.0[0][1]
    }
    /// Of writes.
    #[must_use]
    pub const fn write(&self) -> u64 {
        self.0[1][0] + self.0[1][1]
    }
    /// Of discards.
    #[must_use]
    pub const fn discard(&self) -> u64 {
        self.0[2][0] + self.0[2][1]
    }
    /// Of requests for which somebody waits.
    #[must_use]
    pub const fn sync(&self) -> u64 {
        self.0[0][1] + self.0[1][1] + self.0[2][1]
    }
    /// Of the others.
    #[must_use]
    pub const fn asyn(&self) -> u64 {
        self.0[0][0] + self.0[1][0] + self.0[2][0]
    }
    /// Of all.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.sync() + self.asyn()
    }
}

/// What a group got, under the kernel's names. Requests of groups inside it are not counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct GroupStats {
    /// Disk time that the group was charged. Only of schedulers that charge time.
    pub disk_time: Duration,
    /// Time that the disk was the group's, but was not charged.
    pub unaccounted_time: Duration,
    /// Sectors issued.
    pub disk_sectors: u64,
    /// How often it ran out of requests and lost its place while it was one of several.
    pub disk_dequeue: u64,
    /// Bytes of completed requests. cgroup v2's `rbytes`, `wbytes`, `dbytes`.
    pub io_service_bytes: Split,
    /// Completed requests after merging. cgroup v2's `rios`, `wios`, `dios`.
    pub io_serviced: Split,
    /// Nanoseconds from issue (the last, if a request was handed back) to completion, added up over requests: may be more than went by.
    pub io_service_time: Split,
    /// Nanoseconds from insertion (of the older part, if two were joined) to issue, the same. Waiting for limits is not in it.
    pub io_wait_time: Split,
    /// Nanoseconds that requests waited for limits, the same.
    pub throttled_time: Split,
    /// Requests that were merged into others.
    pub io_merged: Split,
    /// Requests that wait, also those that do for limits.
    pub io_queued: Split,
    /// `io_queued` at all moments when the group, or a queue of its, was chosen, added up, and how many moments. This and what follows
    /// only of schedulers that choose groups.
    pub queue_size_sum: u64,
    /// See `queue_size_sum`.
    pub queue_size_samples: u64,
    /// Time from having requests, while another group was served, until being served.
    pub group_wait_time: Duration,
    /// Time that the disk was kept idle for the group.
    pub idle_time: Duration,
    /// Time without requests, while not being served.
    pub empty_time: Duration,
}

impl GroupStats {
    pub(super) const NONE: Self = Self {
        disk_time: Duration::ZERO,
        unaccounted_time: Duration::ZERO,
        disk_sectors: 0,
        disk_dequeue: 0,
        io_service_bytes: Split([[0; 2]; 3]),
        io_serviced: Split([[0; 2]; 3]),
        io_service_time: Split([[0; 2]; 3]),
        io_wait_time: Split([[0; 2]; 3]),
        throttled_time: Split([[0; 2]; 3]),
        io_merged: Split([[0; 2]; 3]),
        io_queued: Split([[0; 2]; 3]),
        queue_size_sum: 0,
        queue_size_samples: 0,
        group_wait_time: Duration::ZERO,
        idle_time: Duration::ZERO,
        empty_time: Duration::ZERO,
    };

    /// Adds another group's books, or the same group's on another device.
    pub fn add(&mut self, other: &Self) {
        self.disk_time += other.disk_time;
        self.unaccounted_time += other.unaccounted_time;
        self.disk_sectors += other.disk_sectors;
        self.disk_dequeue += other.disk_dequeue;
        self.io_service_bytes.merge(&other.io_service_bytes);
        self.io_serviced.merge(&other.io_serviced);
        self.io_service_time.merge(&other.io_service_time);
        self.io_wait_time.merge(&other.io_wait_time);
        self.throttled_time.merge(&other.throttled_time);
        self.io_merged.merge(&other.io_merged);
        self.io_queued.merge(&other.io_queued);
        self.queue_size_sum += other.queue_size_sum;
        self.queue_size_samples += other.queue_size_samples;
        self.group_wait_time += other.group_wait_time;
        self.idle_time += other.idle_time;
        self.empty_time += other.empty_time;
    }
}

/// Of a request, for the books.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    /// When it was inserted, or had waited for limits; while it waits for them, when it came.
    inserted: Instant,
    /// When it was last issued.
    issued: Instant,
}

impl Times {
    pub(super) const NONE: Self = Self { inserted: Instant::EPOCH, issued: Instant::EPOCH };
}

/// What schedulers that know groups have to say for the books.
impl Groups {
    /// It is this group's turn, or the turn of another queue of its, from now on.
    pub fn serve(&mut self, now: Instant, group: GroupId) {
        if self.served != Some(group) {
            self.leave(now);
            self.served = Some(group);
        }
        let g = &mut self.groups[group];
        if let Some(since) = g.since.take() {
            let time = if g.queued > 0 { &mut g.stats.group_wait_time } else { &mut g.stats.empty_time };
            *time += now.saturating_since(since);
        }
        g.stats.queue_size_sum += u64::from(g.queued);
        g.stats.queue_size_samples += 1;
    }

    /// It is nobody's turn.
    pub fn leave(&mut self, now: Instant) {
        self.idled(now);
        if let Some(group) = self.served.take() {
            self.groups[group].since = Some(now);
        }
    }

    /// The disk is kept idle for the group that is served, from now on, until it is not or a request is issued.
    pub const fn idles(&mut self, now: Instant) {
        if self.idle_since.is_none() {
            self.idle_since = Some(now);
        }
    }

    /// It is no more.
    #[inline(never)]
    pub fn idled(&mut self, now: Instant) {
        if let (Some(since), Some(group)) = (self.idle_since.take(), self.served) {
            self.groups[group].stats.idle_time += now.saturating_since(since);
        }
    }

    /// The group that had the disk is charged `used`, and not charged `unaccounted`.
    pub fn charge(&mut self, group: GroupId, used: Duration, unaccounted: Duration) {
        let stats = &mut self.groups[group].stats;
        stats.disk_time += used;
        stats.unaccounted_time += unaccounted;
    }

    /// The group ran out of requests, and has lost its place.
    pub fn dequeued(&mut self, group: GroupId) {
        self.groups[group].stats.disk_dequeue += 1;
    }
}

/// What the elevator has to say for the books: for each thing that can happen to a request, what it means for them. Where no
/// books are kept, nothing. `chooses`: whether the scheduler chooses groups, and says so here ([`Scheduler::chooses_groups`]).
///
/// [`Scheduler::chooses_groups`]: crate::sched::Scheduler::chooses_groups
impl Groups {
    /// It arrives. Answers whether there is its group; if not, nothing is entered.
    #[inline(always)]
    pub(crate) fn arrives(&mut self, now: Instant, tag: Tag, rq: &Request, chooses: bool) -> bool {
        let Some(g) = self.groups.get_mut(rq.group).filter(|g| !g.is_gone) else { return false };
        let Some(times) = self.times.get_mut(tag) else { return true };
        times.inserted = now;
        g.requests += 1;
        g.stats.io_queued.add(rq, 1);
        if chooses {
            g.queue(now, rq.group, self.served);
        }
        true
    }

    /// It arrived some time ago, had to wait for a limit, and goes on now.
    pub(crate) fn let_pass(&mut self, now: Instant, tag: Tag, rq: &Request) {
        let Some(times) = self.times.get_mut(tag) else { return };
        let waited = now.saturating_since(core::mem::replace(&mut times.inserted, now));
        self.groups[rq.group].stats.throttled_time.add(rq, waited.as_ns());
    }

    /// It is merged into another of its group as it comes.
    pub(crate) fn merged(&mut self, rq: &Request, chooses: bool) {
        if self.times.is_empty() {
            return;
        }
        let g = &mut self.groups[rq.group];
        g.requests -= 1;
        g.stats.io_queued.sub(rq, 1);
        g.queued -= u32::from(chooses);
        g.stats.io_merged.add(rq, 1);
    }

    /// `gone`, which has waited, is a part of `kept` now; that is as old as the older of both.
    pub(crate) fn joined(&mut self, kept: Tag, gone: Tag, rq: &Request, chooses: bool) {
        if self.times.is_empty() {
            return;
        }
        self.times[kept].inserted = self.times[kept].inserted.min(self.times[gone].inserted);
        self.merged(rq, chooses);
    }

    /// The device got it, for the first time or `again`.
    #[inline(always)]
    pub(crate) fn issued(&mut self, now: Instant, tag: Tag, rq: &Request, again: bool, chooses: bool) {
        let Some(times) = self.times.get_mut(tag) else { return };
        times.issued = now;
        let g = &mut self.groups[rq.group];
        g.stats.io_queued.sub(rq, 1);
        if !again {
            g.stats.disk_sectors += u64::from(rq.len.0);
        }
        if chooses {
            g.unqueue(now, rq.group, self.served);
            if self.idle_since.is_some() {
                self.idled(now);
            }
        }
    }

    /// The device handed it back.
    pub(crate) fn requeued(&mut self, now: Instant, rq: &Request, chooses: bool) {
        if self.times.is_empty() {
            return;
        }
        let g = &mut self.groups[rq.group];
        g.stats.io_queued.add(rq, 1);
        if chooses {
            g.queue(now, rq.group, self.served);
        }
    }

    /// The device finished it.
    #[inline(always)]
    pub(crate) fn completed(&mut self, now: Instant, tag: Tag, rq: &Request) {
        let Some(times) = self.times.get(tag) else { return };
        let g = &mut self.groups[rq.group];
        g.requests -= 1;
        g.stats.io_service_bytes.add(rq, rq.len.bytes());
        g.stats.io_serviced.add(rq, 1);
        // These are the elevator's times, which never go backwards.
        g.stats.io_wait_time.add(rq, times.issued.as_ns() - times.inserted.as_ns());
        g.stats.io_service_time.add(rq, now.as_ns() - times.issued.as_ns());
    }

    /// The group's books, and those of groups that were in it and are no more, begin anew. What waits is counted as before.
    pub(crate) fn reset_stats(&mut self, now: Instant, group: GroupId) -> Result<(), Refusal> {
        let g = self.groups.get_mut(group).filter(|g| !g.is_gone).ok_or(Refusal::NoGroup(group))?;
        g.stats = GroupStats { io_queued: g.stats.io_queued, ..GroupStats::NONE };
        g.gone = GroupStats::NONE;
        let idle = self.idle_since.as_mut().filter(|_| self.served == Some(group));
        for since in g.since.as_mut().into_iter().chain(idle) {
            *since = now;
        }
        Ok(())
    }
}

/// Of schedulers that choose groups: who waits while others are served.
impl Group {
    /// One more request waits. If it is the first, and out of turn, the group waits from now on.
    #[inline(always)]
    fn queue(&mut self, now: Instant, group: GroupId, served: Option<GroupId>) {
        self.queued += 1;
        if self.queued == 1 && served != Some(group) {
            let empty = self.begin(now);
            self.stats.empty_time += empty;
        }
    }

    /// One request fewer waits. If it was the last, and out of turn, the group has what it waited for.
    #[inline(always)]
    fn unqueue(&mut self, now: Instant, group: GroupId, served: Option<GroupId>) {
        self.queued -= 1;
        if self.queued == 0 && served != Some(group) {
            let waited = self.begin(now);
            self.stats.group_wait_time += waited;
        }
    }

    /// Something begins. Answers how long what was before has lasted.
    #[inline(always)]
    fn begin(&mut self, now: Instant) -> Duration {
        self.since.replace(now).map_or(Duration::ZERO, |since| now.saturating_since(since))
    }
}
