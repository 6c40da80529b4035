//! What must hold between events: counts agree with structures, links with what they point to.
//!
//! The numbers are those of docs/reference/bfq.md#81-conservation-and-structure.
//! What concerns virtual times (I8 to I13) is checked by the
//! [hierarchy](crate::parts::hierarchy).

use super::queue::Queue;
use crate::request::{Requests, State};
use crate::sched::bfq::view::{Kind, QueueId};
use crate::sched::bfq::{self, Bfq};
use crate::units::{GroupId, Sector, Tag};

/// How many there are, as a count of requests or queues.
fn count(items: impl Iterator) -> u32 {
    u32::try_from(items.count()).unwrap_or(u32::MAX)
}

impl Bfq {
    pub(crate) fn walk(&self, requests: &Requests) {
        self.hierarchy.check();
        for (q, queue) in self.used() {
            self.walk_queue(q, queue, requests);
        }
        self.walk_counts(requests);
        self.walk_busy();
        self.walk_groups(requests);
        self.walk_links();
        self.walk_tasks(requests);
        self.walk_relations();
        self.check_gap();
    }

    fn used(&self) -> impl Iterator<Item = (QueueId, &Queue)> {
        self.queues.iter().filter(|(_, queue)| queue.in_use)
    }

    fn walk_queue(&self, q: QueueId, queue: &Queue, requests: &Requests) {
        let mut last = Sector(0);
        for tag in self.sorted.iter(&queue.requests) {
            let start = requests[tag].rq.start;
            assert!(requests[tag].state == State::Queued, "a request that does not wait");
            assert_eq!(self.rqs[tag].queue, q, "a request of another queue");
            assert!(start >= last, "a stale position");
            last = start;
        }
        let by_age = self.sorted.arrivals(&queue.requests).filter(|&tag| self.rqs[tag].queue == q);
        assert_eq!(count(by_age), queue.requests.len(), "I3: by sector and by age");
        assert_eq!(queue.next_rq.is_some(), !queue.requests.is_empty(), "I3: a next request if there is one");
        let next = queue.next_rq.filter(|&tag| self.rqs[tag].queue != q || !self.sorted.contains(tag));
        assert_eq!(next, None, "I3: a foreign next request");
        let serving = self.in_service == Some(q);
        assert!(queue.busy || queue.next_rq.is_none(), "I7: requests wait, and the queue is not busy");
        assert_eq!(queue.busy && !serving, self.hierarchy.is_active(q), "busy, and not in the hierarchy");
        if let Some(tag) = queue.next_rq.filter(|_| !serving && !self.setting.as_kernel) {
            assert!(
                self.hierarchy.budget(q) >= requests[tag].rq.len.0.min(1 << 30),
                "I4: a budget too small"
            );
        }
        if serving {
            assert!(queue.busy, "I7: in service, and not busy");
            assert!(self.hierarchy.service(q) <= self.hierarchy.budget(q), "I5: more served than allowed");
            assert!(!queue.positioned, "the queue in service is filed by position");
        }
        assert!(!queue.waiting || serving, "I16: idling for a queue that is not in service");
        let unneeded = queue.process_refs == 0 && queue.in_flight == 0 && !queue.busy;
        assert!(!unneeded || q == QueueId::FALLBACK, "I19: a queue that is not needed");
        self.check_raising(q);
    }

    fn walk_counts(&self, requests: &Requests) {
        let queued = self.used().map(|(_, queue)| queue.requests.len()).sum::<u32>();
        let in_flight = self.used().map(|(_, queue)| queue.in_flight).sum::<u32>();
        assert_eq!((queued, in_flight), (self.queued, self.in_flight), "I2: requests of all queues");
        let by_actuator = self.in_flight_of.iter().sum::<u32>();
        assert_eq!(
            by_actuator,
            if self.several_actuators { self.in_flight } else { 0 },
            "I2: requests by actuator"
        );
        let mine = |&(tag, slot): &(Tag, &crate::request::Slot)| match slot.state {
            State::Issued => true,
            // One that was handed back is still at the device, for a scheduler.
            State::Queued => !self.sorted.contains(tag),
            State::Free | State::Merged | State::Held => false,
        };
        assert_eq!(count(requests.iter().filter(mine)), self.in_flight, "I2: requests at the device");
        let reads = |&(tag, _): &(Tag, _)| self.rqs[tag].kind == Kind::SyncRead;
        self.check_rules(requests.iter().filter(mine).filter(reads).map(|(tag, _)| tag));
        let all = || requests.iter().filter(|(_, s)| matches!(s.state, State::Issued | State::Queued));
        for kind in [Kind::SyncRead, Kind::SyncWrite, Kind::Async] {
            let such = all().filter(|(_, s)| Kind::of(&s.rq) == kind);
            assert_eq!(count(such), self.in_use[kind as usize], "requests by kind");
        }
        assert_eq!(count(all()), self.queued + self.in_flight, "I1: requests in existence");
        assert_eq!(
            self.idle_timer.is_some(),
            self.used().any(|(_, queue)| queue.waiting),
            "I16: the idle timer"
        );
    }

    fn walk_busy(&self) {
        let (mut busy, mut raised, mut weights) = ([0; 3], 0, [0; bfq::WEIGHTS]);
        for (q, queue) in self.used() {
            let pending = queue.busy || queue.in_flight > 0;
            assert_eq!(queue.pending_counted, pending, "I15: counted if it has requests");
            let weight = self.hierarchy.weight(q);
            let counted = (pending && weight == self.hierarchy.base_weight(q)).then_some(weight);
            let more = weight > self.hierarchy.base_weight(q);
            assert_eq!(queue.weighs_more, more, "whether its weight is a raised one");
            assert_eq!(queue.weight_counted, counted, "I14: counted under its weight");
            if let Some(weight) = counted {
                weights[bfq::weight_index(weight)] += 1;
            }
            assert_eq!(queue.class, self.hierarchy.class(q), "I6: counted under its class");
            if queue.busy {
                busy[self.class(q) as usize] += 1;
                raised += u32::from(queue.raise.is_raised());
            }
        }
        assert_eq!((busy, raised), (self.busy, self.wr_busy), "I6: busy queues");
        assert_eq!(self.busy.iter().sum::<u32>(), self.busy_in_all, "I6: busy queues in all");
        assert_eq!(weights, self.weights, "I14: queues by weight");
        let in_use = (0..bfq::WEIGHTS).filter(|&i| weights[i] > 0).fold(0, |bits, i| bits | 1 << i);
        assert_eq!(in_use, self.weights_in_use, "I14: weights in use");
        assert_eq!(self.hierarchy.in_service(), self.in_service, "I13: in service");
        for (actuator, list) in self.active.iter().enumerate() {
            let mine = self.used().filter(|(_, queue)| queue.busy && usize::from(queue.actuator) == actuator);
            assert_eq!(count(mine), list.len(), "active queues of an actuator");
            for q in self.active_links.iter(list) {
                let queue = &self.queues[q];
                assert!(queue.busy && usize::from(queue.actuator) == actuator, "in a foreign list");
            }
        }
    }

    fn walk_groups(&self, requests: &Requests) {
        let mut pending = 0;
        for (g, group) in self.groups.iter() {
            let mine = self.used().filter(|&(q, queue)| queue.pending_counted && self.group_of(q) == g);
            assert_eq!(count(mine), group.queues_pending, "I15: pending queues of a group");
            pending += u32::from(group.queues_pending > 0);
            self.by_position.check(&group.positions);
            for q in self.by_position.iter(&group.positions) {
                let queue = &self.queues[q];
                let start = queue.next_rq.map(|tag| requests[tag].rq.start.0);
                assert!(queue.positioned && self.group_of(q) == g, "filed by position in a foreign group");
                assert_eq!(Some(self.by_position.key(q)), start, "filed under a stale position");
            }
            let inside = |q: &QueueId| self.is_inside(self.group_of(*q), g);
            let allocated = self.used().filter(|(q, _)| g != GroupId::ROOT && inside(q));
            let allocated = allocated.map(|(_, queue)| queue.requests.len() + queue.in_flight).sum::<u32>();
            assert_eq!(allocated, group.allocated, "requests of a group");
        }
        assert_eq!(pending, self.groups_pending, "I15: groups with pending queues");
        let positioned = self.used().filter(|(_, queue)| queue.positioned);
        let filed = self.groups.iter().map(|(_, group)| group.positions.len()).sum::<u32>();
        assert_eq!(count(positioned), filed, "filed by position");
    }

    fn walk_links(&self) {
        for (q, queue) in self.used().filter(|&(q, _)| q != QueueId::FALLBACK) {
            let links = self.links.iter().filter(|(_, link)| [link.sync, link.asyn].contains(&Some(q)));
            let promised = self.used().filter(|(_, other)| other.merge_to == Some(q));
            let promised = promised.map(|(_, other)| other.process_refs).sum::<u32>();
            assert_eq!(count(links), queue.process_refs - promised, "I18: references of {q:?}");
            let targets = self.links.iter().filter(|(_, link)| link.stable_target == Some(q));
            assert_eq!(count(targets), queue.stable_refs, "who may merge with {q:?} later");
            let mut chain = core::iter::successors(Some(q), |&q| self.queues[q].merge_to).skip(1);
            let mut steps = 0;
            let sound = chain.all(|x| {
                steps += 1;
                let to = &self.queues[x];
                to.in_use && to.sync && x != q && self.group_of(x) == self.group_of(q)
            });
            assert!(sound && steps <= self.queues.len(), "I17: merges of {q:?}");
            if let Some(owner) = queue.owner.filter(|_| queue.process_refs > 0) {
                assert_eq!(self.links[owner].sync, Some(q), "the owner of {q:?} uses another queue");
            }
        }
        let free = self.all_queues().filter(|&q| !self.queues[q].in_use);
        assert_eq!(count(free), self.pool.len(), "queues in the pool");
    }

    fn walk_tasks(&self, requests: &Requests) {
        for (slot, process) in self.processes.iter() {
            let mine = |&(tag, s): &(Tag, &crate::request::Slot)| {
                matches!(s.state, State::Queued | State::Issued) && self.rqs[tag].process == slot
            };
            assert_eq!(count(requests.iter().filter(mine)), process.requests, "requests of {slot:?}");
            if slot == self.tasks.fallback() || !process.exited {
                continue;
            }
            for actuator in 0..self.actuators.count() {
                let link = &self.links[self.link(slot, actuator)];
                assert!(link.sync.or(link.asyn).is_none(), "a task that has gone uses a queue");
            }
        }
    }

    fn walk_relations(&self) {
        assert!(self.queues[QueueId::FALLBACK].in_use, "no fallback");
    }
}
