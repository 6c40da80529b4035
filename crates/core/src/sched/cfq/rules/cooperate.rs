//! Tasks that read one stream together: a pool of dump workers, a threaded copier.
//!
//! ```text
//!   sectors  ──1──2──3──4──5──6──►     task A reads 1, 3, 5, …   task B reads 2, 4, 6, …
//!                   ▲ head
//! ```
//!
//! When A's queue is empty and B's next request is within 8192 sectors of the head, waiting for A would be
//! silly: B is served at once, as A's *cooperator*, and the two queues are to become one: the next request of
//! a task of the smaller side goes to the other's queue. When that queue starts to seek, the tasks have
//! parted, and each gets its own queue again.
//!
//! To find cooperators, busy queues of each priority level are kept in a tree by the position of their
//! candidate. Those that cannot cooperate (async, seeky, of the idle class) are left out, where the kernel
//! would find them and give up; so is the active queue, for which others are looked for.
//!
//! **References.** `process_refs` of a queue counts the contexts that use it, and those that will once they
//! have followed the pending merges: promising a merge adds the source's references to the target, a context
//! that follows leaves the source only, one that exits or is split off leaves the whole chain. A queue
//! without references, requests or slice goes back to the pool.
//!
//! Where the kernel takes the one of two neighbours of the head at which its tree search happens to end, we
//! take the one ahead.
//!
//= linux-2.6.33 block/cfq-iosched.c cfq_close_cooperator, cfq_setup_merge, split_cfqq

use crate::elevator::Cx;
use crate::parts::tasks::TaskSlot;
use crate::request::{Request, Requests};
use crate::sched::cfq::Cfq;
use crate::sched::cfq::queue::{Queue, QueueId};
use crate::sched::cfq::slices::{Expire, NOWHERE};
use crate::sched::cfq::stats::CLOSE_SECTORS;
use crate::trace::Reason;
use crate::units::{Class, GroupId, IoPrio, TaskId};
use core::ops::Range;

impl Cfq {
    /// Files a queue by the position of its candidate, unless it has none or cannot cooperate, or another
    /// queue's candidate is in the same place.
    pub(in crate::sched::cfq) fn refresh_position(&mut self, requests: &Requests, id: QueueId) {
        self.leave_position(id);
        self.no_neighbour = NOWHERE;
        let (rule, once_valid) = (self.seek, !self.config.quirk_seeky_early);
        let queue = &mut self.queues[id];
        let Some(next) = queue.next else { return };
        if !queue.sync || queue.is_idle_class() || queue.seek.is_seeky(rule, once_valid) {
            return;
        }
        let at = requests[next].rq.start.0;
        let level = queue.prio.level;
        let tree = &mut self.positions[usize::from(level)];
        self.by_position.insert(tree, id, at);
        queue.position = Some(level);
        // Two candidates at one place cannot both be filed; the older stays
        // (docs/reference/cfq.md#53-position-in-the-service-tree).
        let taken = self.by_position.prev(id).is_some_and(|q| self.by_position.key(q) == at);
        if taken {
            self.leave_position(id);
        }
    }

    #[inline]
    pub(in crate::sched::cfq) fn leave_position(&mut self, id: QueueId) {
        if let Some(level) = self.queues[id].position.take() {
            self.no_neighbour = NOWHERE;
            self.by_position.remove(&mut self.positions[usize::from(level)], id);
        }
    }

    /// A queue whose next request is so close to the head that it should be served in place of `id`, which is
    /// active and empty.
    #[inline]
    pub(in crate::sched::cfq) fn close_cooperator(&mut self, id: QueueId) -> Option<QueueId> {
        if self.no_neighbour.contains(&self.last_position.0) {
            return None;
        }
        let (found, no_neighbour) = self.find_cooperator(id);
        self.no_neighbour = no_neighbour;
        found
    }

    /// The cooperator, and the positions of the head at which there would be none.
    pub(in crate::sched::cfq) fn find_cooperator(&self, id: QueueId) -> (Option<QueueId>, Range<u64>) {
        let queue = &self.queues[id];
        let idle_class = self.config.era.since_2_6_34() && queue.is_idle_class();
        if !queue.sync || idle_class || self.groups[queue.group].queues == 1 || self.is_seeky(id) {
            return (None, NOWHERE);
        }
        let tree = &self.positions[usize::from(queue.prio.level)];
        let head = self.last_position.0;
        let close = queue.seek.close_sectors(self.seek, false);
        let ahead = self.by_position.lower_bound(tree, head);
        let behind = ahead.map_or_else(|| self.by_position.last(tree), |q| self.by_position.prev(q));
        let at = |q: Option<QueueId>| q.map(|q| self.by_position.key(q));
        let found = match (at(ahead), at(behind)) {
            (Some(key), _) if key - head <= close => ahead,
            (_, Some(key)) if head - key <= close => behind,
            (next, last) => {
                // The threshold may change with the next request, but not beyond its maximum.
                let from = last.map_or(0, |key| key.saturating_add(CLOSE_SECTORS + 1));
                return (None, from..next.map_or(u64::MAX, |key| key.saturating_sub(CLOSE_SECTORS)));
            }
        };
        let fits = |&q: &QueueId| {
            let other = &self.queues[q];
            let alike = other.sync && other.is_rt() == queue.is_rt();
            // Filed together, in the root, are also queues of different groups.
            //= deviates cfq-coop-home
            let related = other.group == queue.group && other.home == queue.home;
            alike && related && !self.is_seeky(q)
        };
        (found.filter(fits), NOWHERE)
    }

    pub(in crate::sched::cfq) fn is_seeky(&self, id: QueueId) -> bool {
        self.queues[id].seek.is_seeky(self.seek, !self.config.quirk_seeky_early)
    }

    /// The queue that tasks of `id` are to use from now on.
    pub(in crate::sched::cfq) fn merge_target(&self, id: QueueId) -> Option<QueueId> {
        let (target, generation) = self.queues[id].merge_into?;
        (self.queues[target].generation == generation).then_some(target)
    }

    /// Decides that `id` and `other` shall become one, unless they are about to already.
    pub(in crate::sched::cfq) fn set_up_merge(&mut self, id: QueueId, other: QueueId) {
        if self.merge_target(id).is_some() {
            return;
        }
        let unchecked = self.config.quirk_merge_unchecked;
        if self.queues[other].process_refs == 0 && !unchecked {
            return;
        }
        // The neighbour may be about to merge itself; its tasks end up in the last queue of the chain. A
        // chain that leads back here would be a circle.
        let mut end = other;
        while let Some(target) = self.merge_target(end) {
            end = target;
        }
        if end == id {
            return;
        }
        let (mine, others) = (self.queues[id].process_refs, self.queues[end].process_refs);
        if mine == 0 || (others == 0 && !unchecked) {
            return;
        }
        // The queue with fewer tasks is given up (docs/reference/cfq.md#511-cooperating-queues).
        let (from, to) = if others >= mine { (id, end) } else { (end, id) };
        self.queues[from].merge_into = Some((to, self.queues[to].generation));
        // The target is kept for the tasks that are still to come.
        self.queues[to].process_refs += self.queues[from].process_refs;
    }

    /// The queue for the next sync request of a task: its own, after the merges and splits that are due;
    /// another if the task has gone to another group.
    pub(in crate::sched::cfq) fn sync_queue(
        &mut self,
        cx: &mut Cx<'_>,
        slot: TaskSlot,
        rq: &Request,
        prio: IoPrio,
    ) -> QueueId {
        let Request { task, group, .. } = *rq;
        if let Some(id) = self.contexts[slot].sync_queue.filter(|&id| self.queues[id].home != group) {
            self.contexts[slot].sync_queue = None;
            self.drop_reference(cx, id);
        }
        if let Some(id) = self.contexts[slot].sync_queue
            && self.queues[id].split_coop
        {
            // Its tasks have parted since they were merged: the shared queue is seeky now.
            self.split(cx, slot, task, id);
        }
        let Some(id) = self.contexts[slot].sync_queue else { return self.new_queue(slot, rq, prio) };
        let Some(target) = self.merge_target(id) else { return id };
        self.contexts[slot].sync_queue = Some(target);
        self.queues[target].coop = true;
        self.queues[id].process_refs -= 1;
        self.reap(cx, id);
        cx.note(Reason::QueueMerge, task);
        target
    }

    /// Takes a task out of a shared queue whose tasks have parted; the last one keeps it.
    fn split(&mut self, cx: &mut Cx<'_>, slot: TaskSlot, task: TaskId, id: QueueId) {
        let queue = &mut self.queues[id];
        if queue.process_refs == 1 {
            queue.coop = false;
            queue.split_coop = false;
            return;
        }
        self.contexts[slot].sync_queue = None;
        self.drop_reference(cx, id);
        cx.note(Reason::QueueSplit, task);
    }

    /// A queue of its own for a task; the fallback when there is none left, or for a task without a slot.
    fn new_queue(&mut self, slot: TaskSlot, rq: &Request, prio: IoPrio) -> QueueId {
        let fallback = QueueId::fallback(rq.group);
        if slot == self.tasks.fallback() {
            return fallback;
        }
        let Some(id) = self.free_links.pop_front(&mut self.free) else { return fallback };
        let generation = self.queues[id].generation;
        self.queues[id] = Queue { process_refs: 1, generation, ..Queue::new(true, prio, rq.task, rq.group) };
        self.contexts[slot].sync_queue = Some(id);
        self.contexts[slot].prio_changed = false;
        id
    }

    /// A context leaves a queue without following its merge: the promises along the chain are off.
    pub(in crate::sched::cfq) fn drop_reference(&mut self, cx: &mut Cx<'_>, id: QueueId) {
        let mut at = Some(id);
        while let Some(id) = at {
            at = self.merge_target(id);
            self.queues[id].process_refs -= 1;
            self.reap(cx, id);
        }
    }

    /// Returns a queue to the pool if no context uses it and it has no request anywhere.
    pub(in crate::sched::cfq) fn reap(&mut self, cx: &mut Cx<'_>, id: QueueId) {
        if self.queues[id].process_refs > 0 || !self.is_own(id) {
            return;
        }
        let queue = &mut self.queues[id];
        queue.merge_into = None;
        if !queue.is_empty() || queue.dispatched > 0 {
            return;
        }
        if self.active == Some(id) {
            self.expire(cx, Expire::Empty);
        }
        let generation = self.queues[id].generation.wrapping_add(1);
        let blank = Queue::new(true, IoPrio::new(Class::BestEffort, 4), TaskId(0), GroupId::ROOT);
        self.queues[id] = Queue { generation, ..blank };
        self.free_links.push_back(&mut self.free, id);
    }
}
