//! What each group got, counted apart from the elevator, over a tree of groups of its own.

use fairhead_core::sched::any::AnyScheduler;
use fairhead_core::{Control, Elevator, GroupId, GroupStats, Instant, Op, Request, Tag};
use std::collections::BTreeMap;

/// What a group got; groups in it are not counted.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
struct Sums {
    /// Of reads, writes, discards.
    bytes: [u64; 3],
    serviced: [u64; 3],
    sync: u64,
    wait_ns: u64,
    service_ns: u64,
    /// Those of issued requests, however often they were.
    sectors: u64,
    /// Those that were carried by others, of completed requests.
    merged: u64,
}

#[derive(Clone, Debug)]
struct Group {
    parent: usize,
    is_gone: bool,
    sums: Sums,
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub(crate) struct Tally {
    groups: Vec<Group>,
    issued: BTreeMap<u16, Instant>,
    /// Of all groups that ever were.
    total: u64,
}

impl Tally {
    pub(crate) fn new(groups: u32) -> Self {
        let group = Group { parent: 0, is_gone: false, sums: Sums::default() };
        Self { groups: vec![group; groups as usize], issued: BTreeMap::new(), total: 0 }
    }

    /// The group that a request with this `group` belongs to.
    pub(crate) fn home(&self, group: GroupId) -> GroupId {
        let mut at = group.0 as usize;
        while self.groups.get(at).is_some_and(|g| g.is_gone) {
            at = self.groups[at].parent;
        }
        GroupId(if at < self.groups.len() { u32::try_from(at).unwrap() } else { 0 })
    }

    /// A change was made.
    pub(crate) fn control(&mut self, change: &Control) {
        match *change {
            Control::GroupExit(group) => self.groups[group.0 as usize].is_gone = true,
            Control::SetParent(group, parent) => {
                let (i, to) = (group.0 as usize, parent.0 as usize);
                if self.groups[i].is_gone {
                    let old = self.groups[i].parent;
                    for g in &mut self.groups {
                        if g.parent == i {
                            g.parent = old;
                        }
                    }
                    self.groups[i] = Group { parent: to, is_gone: false, sums: Sums::default() };
                }
                self.groups[i].parent = to;
            }
            _ => {}
        }
    }

    /// `sectors`: none if it was issued before.
    pub(crate) fn issued(&mut self, now: Instant, tag: Tag, group: GroupId, sectors: u32) {
        self.issued.insert(tag.0, now);
        self.groups[group.0 as usize].sums.sectors += u64::from(sectors);
    }

    pub(crate) fn completed(
        &mut self,
        now: Instant,
        tag: Tag,
        group: GroupId,
        rq: &Request,
        oldest: Instant,
        (bytes, merged): (u64, u64),
    ) {
        let issued = self.issued.remove(&tag.0).expect("it was issued");
        let (wait, service) = (issued.since(oldest), now.since(issued));
        let sums = &mut self.groups[group.0 as usize].sums;
        sums.bytes[rq.op as usize] += bytes;
        sums.serviced[rq.op as usize] += 1;
        sums.sync += u64::from(rq.sync);
        sums.wait_ns += wait.as_ns();
        sums.service_ns += service.as_ns();
        sums.merged += merged;
        self.total += bytes;
    }

    /// `requests` are those in the elevator: group, whether it waits or was handed back, whether another
    /// carries it.
    pub(crate) fn check(
        &self,
        elevator: &Elevator<AnyScheduler>,
        requests: impl Iterator<Item = (GroupId, bool, bool)>,
    ) {
        if self.groups.len() == 1 {
            return;
        }
        let mut now = vec![(0, 0, 0); self.groups.len()];
        for (group, waits, is_carried) in requests {
            let (queued, merged, alive) = &mut now[group.0 as usize];
            *queued += u64::from(waits && !is_carried);
            *merged += u64::from(is_carried);
            *alive += u64::from(!is_carried);
        }
        let mut stats = vec![GroupStats::default(); self.groups.len()];
        elevator.all_stats(&mut stats);
        // To ask for each group by itself would take too long.
        let one = GroupId(u32::try_from(self.total as usize / 512 % self.groups.len()).unwrap());
        assert_eq!(elevator.stats(one), stats[one.0 as usize], "one group's figures are those among all");
        for ((i, g), stats) in self.groups.iter().enumerate().zip(stats) {
            let id = GroupId(u32::try_from(i).unwrap());
            let split = |s: &fairhead_core::Split| [s.read(), s.write(), s.discard()];
            let theirs = Sums {
                bytes: split(&stats.io_service_bytes),
                serviced: split(&stats.io_serviced),
                sync: stats.io_serviced.sync(),
                wait_ns: stats.io_wait_time.total(),
                service_ns: stats.io_service_time.total(),
                sectors: stats.disk_sectors,
                merged: stats.io_merged.total(),
            };
            let (queued, merged, alive) = now[i];
            let ours = Sums { merged: g.sums.merged + merged, ..g.sums };
            assert_eq!(theirs, ours, "what group {i} got");
            assert_eq!(stats.io_queued.total(), queued, "what waits in group {i}");
            assert_eq!(elevator.is_group_idle(id), alive == 0, "whether group {i} has requests");
            assert_eq!(elevator.groups().exists(id), !g.is_gone, "whether group {i} is there");
        }
        let all = elevator.recursive_stats(GroupId::ROOT).io_service_bytes.total();
        assert_eq!(all, self.total, "what all groups got that ever were");
    }
}

const _: () = assert!(Op::Read as usize == 0 && Op::Write as usize == 1 && Op::Discard as usize == 2);
