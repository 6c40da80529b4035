//! What the books say to those who read them: the figures of a group, under the kernel's names.
//!
//! They are read seldom, and written at each request. So what can be counted from the requests that there
//! are, such as how many wait, is counted when it is read, and takes a look at each tag.

use super::books::{CELLS, Cell, CellId, Turns};
use super::{Group, Groups};
use crate::request::{Request, Requests, Slot, State};
use crate::units::{Duration, GroupId, Id};

/// A count for each direction, and for sync and async, as the kernel's files have it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Split(pub(super) [[u64; 2]; 3]);

impl Split {
    fn add(&mut self, rq: &Request, n: u64) {
        self.0[rq.op as usize][usize::from(rq.sync)] += n;
    }

    fn merge(&mut self, other: &Self) {
        let all = self.0.iter_mut().flatten().zip(other.0.iter().flatten());
        all.for_each(|(mine, theirs)| *mine += theirs);
    }

    /// Returns the part of reads.
    #[must_use]
    pub const fn read(&self) -> u64 {
        self.0[0][0] + self.0[0][1]
    }
    /// Returns the part of writes.
    #[must_use]
    pub const fn write(&self) -> u64 {
        self.0[1][0] + self.0[1][1]
    }
    /// Returns the part of discards.
    #[must_use]
    pub const fn discard(&self) -> u64 {
        self.0[2][0] + self.0[2][1]
    }
    /// Returns the part of sync requests: those for which a task waits.
    #[must_use]
    pub const fn sync(&self) -> u64 {
        self.0[0][1] + self.0[1][1] + self.0[2][1]
    }
    /// Returns the part of async requests.
    #[must_use]
    pub const fn asyn(&self) -> u64 {
        self.0[0][0] + self.0[1][0] + self.0[2][0]
    }
    /// Returns the sum of all.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.sync() + self.asyn()
    }
}

/// The statistics of a group, under the kernel's names. Requests of groups inside it are not counted.
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
    /// Nanoseconds from issue (the last, if a request was handed back) to completion, added up over requests:
    /// may be more than went by.
    pub io_service_time: Split,
    /// Nanoseconds from insertion (of the older part, if two were joined) to issue, the same. Waiting for
    /// limits is not in it.
    pub io_wait_time: Split,
    /// Nanoseconds that requests waited for limits, the same.
    pub throttled_time: Split,
    /// Requests that were merged into others.
    pub io_merged: Split,
    /// Requests that wait, also those that do for limits.
    pub io_queued: Split,
    /// `io_queued` at all moments when the group, or a queue of its, was chosen, added up, and how many
    /// moments. This and what follows only of schedulers that choose groups.
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

/// What users read.
impl Groups {
    /// Returns the disk time that the group was charged: see [`GroupStats::disk_time`].
    #[must_use]
    pub fn disk_time(&self, group: GroupId) -> Duration {
        self.groups[group].turns.disk_time
    }

    /// Returns the statistics of the group.
    #[must_use]
    pub(crate) fn stats(&self, group: GroupId, requests: &Requests) -> GroupStats {
        let mut stats = self.settled(group);
        self.alive(requests).filter(|slot| slot.rq.group == group).for_each(|slot| stats.add_alive(slot));
        stats
    }

    /// Writes the statistics of each group, from group 0 on; groups beyond the end of `all` are left out.
    pub(crate) fn all_stats(&self, all: &mut [GroupStats], requests: &Requests) {
        for (stats, (group, _)) in all.iter_mut().zip(self.groups.iter()) {
            *stats = self.settled(group);
        }
        for slot in self.alive(requests) {
            if let Some(stats) = all.get_mut(slot.rq.group.index()) {
                stats.add_alive(slot);
            }
        }
    }

    /// What the group got with all groups in it, also those that are no more.
    #[must_use]
    pub(crate) fn recursive(&self, group: GroupId, requests: &Requests) -> GroupStats {
        let mut sum = GroupStats::NONE;
        for (inner, _) in self.groups.iter().filter(|&(g, _)| self.is_inside(g, group)) {
            sum.add(&self.settled(inner));
            sum.add(&self.gone[inner]);
        }
        let alive = self.alive(requests).filter(|slot| self.is_inside(slot.rq.group, group));
        alive.for_each(|slot| sum.add_alive(slot));
        sum
    }

    /// The requests that wait or are at the device, if books are kept.
    fn alive<'a>(&self, requests: &'a Requests) -> impl Iterator<Item = &'a Slot> {
        let kept = self.is_kept();
        requests.iter().map(|(_, slot)| slot).filter(move |slot| kept && slot.is_alive())
    }

    /// The group's books without the requests that there are.
    pub(super) fn settled(&self, group: GroupId) -> GroupStats {
        let Group { turns, sectors_apart, .. } = self.groups[group];
        let mut stats = GroupStats { disk_sectors: sectors_apart, ..GroupStats::of_turns(&turns) };
        if self.served == Some(group) {
            stats.idle_time += self.idled;
        }
        for i in 0..CELLS {
            if let Some(cell) = self.cells.get(CellId::nth(group, i)) {
                stats.add_cell(i, cell);
            }
        }
        stats
    }
}

impl GroupStats {
    fn of_turns(turns: &Turns) -> Self {
        let Turns { disk_time, unaccounted_time, disk_dequeue, .. } = *turns;
        let Turns { queue_size_sum, queue_size_samples, .. } = *turns;
        let Turns { group_wait_time, idle_time, empty_time, .. } = *turns;
        Self {
            disk_time,
            unaccounted_time,
            disk_dequeue,
            queue_size_sum,
            queue_size_samples,
            group_wait_time,
            idle_time,
            empty_time,
            ..Self::NONE
        }
    }

    fn add_cell(&mut self, i: usize, cell: &Cell) {
        let (op, sync) = (i / 2, i % 2);
        self.io_service_bytes.0[op][sync] += cell.bytes;
        self.io_serviced.0[op][sync] += cell.serviced;
        self.io_service_time.0[op][sync] += cell.service_ns;
        self.io_wait_time.0[op][sync] += cell.wait_ns;
        self.throttled_time.0[op][sync] += cell.throttled_ns;
        self.io_merged.0[op][sync] += cell.merged;
        self.disk_sectors = self.disk_sectors.wrapping_add(cell.bytes / 512);
    }

    /// A request that waits, or is at the device.
    fn add_alive(&mut self, slot: &Slot) {
        if slot.state == State::Issued {
            self.disk_sectors = self.disk_sectors.wrapping_add(u64::from(slot.rq.len.0));
        } else {
            self.io_queued.add(&slot.rq, 1);
        }
    }
}
