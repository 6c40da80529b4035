//! Queues become one, when their tasks read one stream, and come apart; tasks begin and cease to use them.
//!
//! Which queues read one stream is a rule ([`cooperate`](super::rules::cooperate)).
//!
//! **References.** `process_refs` of a queue counts the contexts that use it, and those that will once they
//! have followed the pending merges: promising a merge adds the source's references to the target, a context
//! that follows leaves the source only, one that exits or is split off leaves the whole chain. A queue
//! without references, requests or slice goes back to the pool.
//
//= linux-2.6.33 block/cfq-iosched.c cfq_setup_merge, cfq_merge_cfqqs, split_cfqq

use super::Cfq;
use super::rules::cooperate::Side;
use super::view::{Expire, QueueId};
use crate::elevator::Cx;
use crate::parts::tasks::TaskSlot;
use crate::request::Request;
use crate::trace::Reason;
use crate::units::{IoPrio, TaskId};

impl Cfq {
    /// Decides that `id` and `other` shall become one, unless they are about to already.
    pub(super) fn set_up_merge(&mut self, id: QueueId, other: QueueId) {
        let (queues, rule) = (&mut self.queues, &self.rules.cooperation);
        if queues.merge_target(id).is_some() || !rule.may_join(queues[other].process_refs) {
            return;
        }
        // The neighbour may be about to merge itself; its tasks end up in the last queue of the chain. A
        // chain that leads back here would be a circle.
        let mut end = other;
        while let Some(target) = queues.merge_target(end) {
            end = target;
        }
        if end == id {
            return;
        }
        let (from, to) = match rule.given_up(queues[id].process_refs, queues[end].process_refs) {
            None => return,
            Some(Side::Own) => (id, end),
            Some(Side::Other) => (end, id),
        };
        queues[from].merge_into = Some((to, queues[to].generation));
        // The target is kept for the tasks that are still to come.
        queues[to].process_refs += queues[from].process_refs;
    }

    /// The queue for the next sync request of a task: its own, after the merges and splits that are due;
    /// another if the task has gone to another group.
    pub(super) fn sync_queue(
        &mut self,
        cx: &mut Cx<'_>,
        slot: TaskSlot,
        rq: &Request,
        prio: IoPrio,
    ) -> QueueId {
        let Request { task, group, .. } = *rq;
        if let Some(id) = self.tasks[slot].sync_queue.filter(|&id| self.queues[id].home != group) {
            self.tasks[slot].sync_queue = None;
            self.drop_reference(cx, id);
        }
        if let Some(id) = self.tasks[slot].sync_queue
            && self.queues[id].split_coop
        {
            // Its tasks have parted since they were merged: the shared queue is seeky now.
            self.split(cx, slot, task, id);
        }
        let Some(id) = self.tasks[slot].sync_queue else { return self.new_queue(slot, rq, prio) };
        let Some(target) = self.queues.merge_target(id) else { return id };
        self.tasks[slot].sync_queue = Some(target);
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
        self.tasks[slot].sync_queue = None;
        self.drop_reference(cx, id);
        cx.note(Reason::QueueSplit, task);
    }

    /// A queue of its own for a task; the fallback when there is none left, or for a task without a slot.
    fn new_queue(&mut self, slot: TaskSlot, rq: &Request, prio: IoPrio) -> QueueId {
        let fallback = QueueId::fallback(rq.group);
        if slot == self.tasks.fallback() {
            return fallback;
        }
        let Some(id) = self.queues.take_own(rq, prio) else { return fallback };
        self.tasks[slot].sync_queue = Some(id);
        self.tasks[slot].prio_changed = false;
        id
    }

    /// A context leaves a queue without following its merge: the promises along the chain are off.
    pub(super) fn drop_reference(&mut self, cx: &mut Cx<'_>, id: QueueId) {
        let mut at = Some(id);
        while let Some(id) = at {
            at = self.queues.merge_target(id);
            self.queues[id].process_refs -= 1;
            self.reap(cx, id);
        }
    }

    /// Returns a queue to the pool if no context uses it and it has no request anywhere.
    pub(super) fn reap(&mut self, cx: &mut Cx<'_>, id: QueueId) {
        if self.queues[id].process_refs > 0 || !self.queues.is_own(id) {
            return;
        }
        let queue = &mut self.queues[id];
        queue.merge_into = None;
        if !queue.is_empty() || queue.dispatched > 0 {
            return;
        }
        if self.turn.active == Some(id) {
            self.expire(cx, Expire::Empty);
        }
        self.queues.give_back(id);
    }
}
