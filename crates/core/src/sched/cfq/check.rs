//! What must hold between events: counts agree with structures, links with what they point to.

use super::Cfq;
use super::service_tree::tree_index;
use super::view::{Kind, QueueId};
use crate::parts::tasks::TaskSlot;
use crate::request::{Requests, State};
use crate::units::{Class, Sector};

impl Cfq {
    pub(super) fn walk(&self, requests: &Requests) {
        let (mut queued, mut in_flight) = (0, [0; 2]);
        for (id, queue) in self.queues.iter() {
            self.walk_queue(id, requests);
            queued += queue.queued();
            in_flight[usize::from(queue.sync)] += queue.dispatched;
        }
        assert_eq!((queued, in_flight), (self.queues.waiting, self.device.in_flight), "requests");
        assert!(self.device.in_driver <= in_flight[0] + in_flight[1], "more at the device than issued");
        let (mut busy, mut busy_sync, mut dispatched) = (0, 0, 0);
        for (id, group) in self.trees.groups.iter() {
            let before = busy;
            for tree in &group.trees {
                self.trees.filed.check(&tree.queues);
                busy += tree.queues.len();
                for queue in self.trees.filed.iter(&tree.queues).map(|q| &self.queues[q]) {
                    assert_eq!(queue.group, id, "a queue of another group");
                    busy_sync += u32::from(queue.sync);
                }
            }
            assert_eq!(group.queues, busy - before, "busy queues of {id:?}");
            dispatched += group.dispatched;
        }
        assert_eq!(dispatched, in_flight[0] + in_flight[1], "requests of all groups");
        assert_eq!((self.trees.busy, self.trees.busy_sync), (busy, busy_sync), "busy queues");
        let (trees, divides) = (&self.trees, self.trees.layout.divides);
        trees.shares.check(|group| divides && trees.groups[group].queues > 0);
        self.rules.cooperation.check();
        let (active, head) = (self.turn.active, self.device.head);
        assert!(self.turn.timer.is_none() || active.is_some(), "idling without an active queue");
        assert!(active.is_none_or(|id| self.queues[id].is_busy()), "the active queue is in no tree");
        if let Some(id) = active.filter(|_| self.rules.cooperation.knows_none(head)) {
            assert_eq!(self.find_cooperator(id).0, None, "a cooperator was overlooked");
        }
        self.walk_contexts(requests);
    }

    fn walk_queue(&self, id: QueueId, requests: &Requests) {
        let queue = &self.queues[id];
        assert!(queue.dispatched <= self.trees.groups[queue.group].dispatched, "more than all of its group");
        let (mut meta, mut last) = (0, Sector(0));
        for tag in self.queues.links.iter(&queue.requests) {
            let start = requests[tag].rq.start;
            assert!(requests[tag].state == State::Queued, "a request that does not wait");
            assert_eq!(self.queues.rqs[tag].queue, id, "a request of another queue");
            let home =
                if queue.sync || !self.queues.async_in_root() { requests[tag].rq.group } else { queue.home };
            assert_eq!(home, queue.home, "a request of another group");
            assert!(start >= last, "a stale position");
            last = start;
            meta += u32::from(self.queues.rqs[tag].meta);
        }
        let by_age = self
            .queues
            .links
            .arrivals(&queue.requests)
            .filter(|&tag| self.queues.rqs[tag].queue == id)
            .count();
        assert_eq!(u32::try_from(by_age), Ok(queue.queued()), "by sector and by age");
        assert_eq!(meta, queue.meta_pending, "metadata");
        assert_eq!(queue.next.is_some(), !queue.is_empty(), "a candidate if and only if there are requests");
        assert!(
            queue.next.is_none_or(|t| self.queues.rqs[t].queue == id && self.queues.links.contains(t)),
            "foreign candidate"
        );
        let active = self.turn.active == Some(id);
        assert_eq!(queue.is_busy(), active || !queue.is_empty(), "busy if and only if active or not empty");
        assert_eq!(queue.is_busy(), self.trees.filed.contains(id), "filed");
        let place = self.rules.cooperation.place(id);
        assert_eq!(queue.position.is_filed(), place.is_some(), "filed by position");
        assert!(!(active && place.is_some()), "the active queue is its own cooperator");
        if let (Some(next), Some(place)) = (queue.next, place) {
            assert_eq!(place, requests[next].rq.start, "a stale candidate position");
        }
        if queue.is_idle_class() && queue.tree.is_some() && queue.kind() != Kind::Async {
            assert!(!queue.window.is_open(), "idling for the idle class");
        }
        assert!(
            queue.tree.is_none_or(|t| usize::from(t) <= tree_index(Class::Idle, queue.kind())),
            "no such tree"
        );
    }

    /// References and outstanding requests are counted for those that have some. The sums over all hold,
    /// too, so the others have none.
    fn walk_contexts(&self, requests: &Requests) {
        let (mut references, mut promised) = (0, 0);
        for (id, queue) in self.queues.iter().filter(|(id, _)| self.queues.is_own(*id)) {
            references += queue.process_refs;
            promised += self.queues.merge_target(id).map_or(0, |_| queue.process_refs);
            if queue.process_refs > 0 {
                self.walk_references(id, queue.process_refs);
            }
        }
        let direct =
            self.tasks.iter().filter(|(_, c)| c.sync_queue.is_some_and(|q| self.queues.is_own(q))).count();
        assert_eq!(u32::try_from(direct), Ok(references - promised), "references of all queues");
        let mut outstanding = 0;
        for (slot, context) in self.tasks.iter() {
            outstanding += context.outstanding;
            if context.outstanding > 0 {
                self.walk_outstanding(slot, requests);
            }
            assert!(!(context.exited && context.sync_queue.is_some()), "a task that has gone uses a queue");
        }
        let all = requests.iter().filter(|(_, s)| matches!(s.state, State::Queued | State::Issued)).count();
        assert_eq!(u32::try_from(all), Ok(outstanding), "requests of all tasks");
    }

    fn walk_references(&self, id: QueueId, references: u32) {
        let direct = self.tasks.iter().filter(|(_, c)| c.sync_queue == Some(id)).count();
        let promised = self.queues.iter().filter(|&(other, _)| self.queues.merge_target(other) == Some(id));
        let promised: u32 = promised.map(|(_, q)| q.process_refs).sum();
        assert_eq!(u32::try_from(direct), Ok(references - promised), "references of {id:?}");
    }

    fn walk_outstanding(&self, slot: TaskSlot, requests: &Requests) {
        let mine = |&(tag, s): &(crate::Tag, &crate::request::Slot)| {
            matches!(s.state, State::Queued | State::Issued) && self.queues.rqs[tag].context == slot
        };
        let outstanding = requests.iter().filter(mine).count();
        assert_eq!(u32::try_from(outstanding), Ok(self.tasks[slot].outstanding), "requests of {slot:?}");
    }
}
