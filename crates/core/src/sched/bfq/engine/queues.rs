//! How queues come and go, and which one a task has.
//!
//! What there is of them is in [`queue`](super::queue).
//
//= linux-6.12 block/bfq-iosched.c bfq_init_bfqq, bfq_put_queue, bfq_exit_icq, docs/reference/bfq.md#710-exit

use super::queue::{ASYNC_KINDS, Link, LinkId, Queue};
use crate::elevator::{Actuators, Cx};
use crate::parts::tasks::TaskSlot;
use crate::sched::bfq::Bfq;
use crate::sched::bfq::view::{Expire, QueueId};
use crate::units::{Class, GroupId, Id, Instant, IoPrio};

/// What a queue of this priority weighs.
//= linux-6.12 block/bfq-iosched.h BFQ_WEIGHT_CONVERSION_COEFF
//= docs/reference/bfq.md#17-weights-and-their-changes
fn weight_of(prio: IoPrio) -> u32 {
    if prio.class == Class::Idle { 10 } else { 10 * (8 - u32::from(prio.level.min(7))) }
}

/// Whether a queue of this priority weighs as much as a queue does by default.
//= deviates bfq-usual-weight
pub(crate) fn has_usual_weight(prio: IoPrio) -> bool {
    prio.level == IoPrio::default().level && prio.class != Class::Idle
}

/// Where they are.
impl Bfq {
    #[inline]
    pub(crate) fn link(&self, slot: TaskSlot, actuator: usize) -> LinkId {
        if !self.several_actuators {
            return LinkId::from_index(slot.index());
        }
        LinkId::from_index(slot.index() * self.actuators.count() + actuator)
    }

    #[inline]
    pub(crate) fn process_of(&self, link: LinkId) -> TaskSlot {
        TaskSlot::from_index(link.index() / self.actuators.count())
    }

    #[inline]
    pub(crate) fn actuator_of(&self, link: LinkId) -> usize {
        link.index() % self.actuators.count()
    }

    #[inline]
    pub(crate) fn is_empty(&self, q: QueueId) -> bool {
        self.queues[q].next_rq.is_none()
    }

    /// In force.
    #[inline]
    pub(crate) fn class(&self, q: QueueId) -> Class {
        self.queues[q].class
    }

    #[inline]
    pub(crate) fn group_of(&self, q: QueueId) -> GroupId {
        self.hierarchy.group(q)
    }

    /// What an async queue is known by.
    fn async_key(group: GroupId, prio: IoPrio, actuator: usize) -> u64 {
        let level = usize::from(prio.level.min(7));
        let kind = match prio.class {
            Class::RealTime => level,
            Class::BestEffort => 8 + level,
            Class::Idle => 16,
        };
        ((group.index() * ASYNC_KINDS + kind) * Actuators::MAX + actuator) as u64
    }
}

/// Coming.
impl Bfq {
    /// An empty queue out of the pool, with one reference; `None` if there is none.
    fn new_queue(&mut self, now: Instant, slot: TaskSlot, actuator: usize, sync: bool) -> Option<QueueId> {
        let q = self.pool_links.pop_front(&mut self.pool)?;
        self.hierarchy.detach(q);
        let process = &self.processes[slot];
        let (prio, group) = (process.prio[usize::from(sync)], process.group);
        let past = self.new_past(now, sync, prio.class);
        let mut queue = Queue::new(sync, prio, process.task, past, self.tick(now));
        queue.in_use = true;
        queue.process_refs = 1;
        queue.next_budget = self.first_budget();
        queue.actuator = u8::try_from(actuator).unwrap_or(0);
        self.queues[q] = queue;
        self.rules_new_queue(now, q);
        self.hierarchy.place(q, group, prio.class, weight_of(prio));
        Some(q)
    }

    /// A queue for the sync requests of `link`: its own, or the one that it is merged with at once.
    pub(crate) fn new_sync_queue(
        &mut self,
        cx: &mut Cx<'_>,
        slot: TaskSlot,
        link: LinkId,
        after_split: bool,
    ) -> QueueId {
        let Some(q) = self.new_queue(cx.now, slot, self.actuator_of(link), true) else {
            return QueueId::FALLBACK;
        };
        self.links[link].sync = Some(q);
        if after_split { q } else { self.consider_stable_merge(cx, q, link) }
    }

    /// The queue for the async requests of `link`.
    pub(crate) fn async_queue(&mut self, cx: &mut Cx<'_>, slot: TaskSlot, link: LinkId) -> QueueId {
        let process = &self.processes[slot];
        let key = Self::async_key(process.group, process.prio[0], self.actuator_of(link));
        let known = self.async_queues.find(key).next();
        let q = if let Some(q) = known {
            self.queues[q].process_refs += 1;
            q
        } else {
            let Some(q) = self.new_queue(cx.now, slot, self.actuator_of(link), false) else {
                return QueueId::FALLBACK;
            };
            self.async_queues.insert(q, key);
            q
        };
        self.links[link].asyn = Some(q);
        q
    }

    /// Gives a sync queue another class and weight, at its next activation or requeue.
    pub(crate) fn set_prio(&mut self, q: QueueId, prio: IoPrio) {
        self.queues[q].prio = prio;
        self.hierarchy.set_weight(q, prio.class, weight_of(prio));
    }

    /// A queue's factor of raising was `before` and is `factor`; its weight follows.
    pub(crate) fn set_factor(&mut self, q: QueueId, before: u32, factor: u32) {
        if self.queues[q].busy {
            self.wr_busy += u32::from(factor > 1);
            self.wr_busy -= u32::from(before > 1);
        }
        self.hierarchy.set_raise(q, factor);
    }

    /// Puts a queue's weight, though not its class, in force at once.
    pub(crate) fn apply_weight(&mut self, cx: &mut Cx<'_>, q: QueueId) {
        self.hierarchy.apply_weight(q);
        self.refresh_weight(q);
        self.note_times(cx, q);
    }
}

/// Going.
impl Bfq {
    /// A link does not refer to `q` any more.
    pub(crate) fn put_queue_ref(&mut self, q: QueueId) {
        let queue = &mut self.queues[q];
        queue.process_refs -= 1;
        if queue.process_refs == 0 {
            // A queue without tasks redirects none.
            queue.merge_to = None;
            self.reap(q);
        }
    }

    /// A task leaves its queue.
    pub(crate) fn leave_queue(&mut self, cx: &mut Cx<'_>, q: QueueId) {
        if self.queues[q].busy && self.is_empty(q) && self.in_service != Some(q) {
            self.go_idle(cx, q);
        }
        self.clear_last_created(q);
        self.put_queue_ref(q);
    }

    /// Frees `q` if it has no task, no request at the device and no place among the busy queues.
    pub(crate) fn reap(&mut self, q: QueueId) {
        let queue = &self.queues[q];
        let unneeded = queue.process_refs == 0 && queue.in_flight == 0 && !queue.busy;
        if unneeded && queue.in_use && q != QueueId::FALLBACK {
            self.free_queue(q);
        }
    }

    fn free_queue(&mut self, q: QueueId) {
        debug_assert!(self.is_empty(q), "freed while it is used");
        let owned = self.queues[q].owner.is_some();
        self.rules_freed(q, owned);
        self.merge_queue_freed(q);
        //= deviates bfq-freed-weight
        if !self.setting.as_kernel {
            self.hierarchy.detach(q);
        }
        let queue = &mut self.queues[q];
        queue.in_use = false;
        //= deviates bfq-async-life
        self.unregister_async(q);
        self.pool_links.push_back(&mut self.pool, q);
    }

    /// If `q` is its group's queue for async requests of a kind, it is so no more.
    pub(crate) fn unregister_async(&mut self, q: QueueId) {
        let queue = &self.queues[q];
        if !queue.sync {
            let key = Self::async_key(self.group_of(q), queue.prio, usize::from(queue.actuator));
            if self.async_queues.find(key).any(|other| other == q) {
                self.async_queues.remove(q);
            }
        }
    }

    /// A task is gone; its requests that wait are still served.
    pub(crate) fn exit(&mut self, cx: &mut Cx<'_>, slot: TaskSlot) {
        if core::mem::replace(&mut self.processes[slot].exited, true) {
            return;
        }
        for actuator in 0..self.actuators.count() {
            let link = self.link(slot, actuator);
            self.forget_stable_target(link);
            let Link { sync, asyn, .. } = core::mem::take(&mut self.links[link]);
            for q in sync.into_iter().chain(asyn) {
                self.abandon(cx, q);
            }
        }
        if self.processes[slot].requests == 0 {
            self.tasks.release(slot);
        }
    }

    /// A task that used `q` is gone.
    fn abandon(&mut self, cx: &mut Cx<'_>, q: QueueId) {
        if self.in_service == Some(q) {
            //= deviates bfq-exit-service
            if cx.books.is_observed() {
                self.charge_group(cx, self.group_of(q));
            }
            self.end_slot(cx, q, Expire::BudgetTimeout);
        }
        self.quit_queue(cx, q);
    }

    /// A task leaves its queue without following the merges that are pending.
    pub(crate) fn quit_queue(&mut self, cx: &mut Cx<'_>, q: QueueId) {
        if self.queues[q].process_refs > 1 {
            // Other tasks have it, or will: it has no owner any more.
            self.queues[q].owner = None;
        }
        self.drop_redirections(cx, q);
        self.leave_queue(cx, q);
    }

    /// A request of the task is no more.
    #[inline]
    pub(crate) fn forget_request(&mut self, now: Instant, slot: TaskSlot) {
        let process = &mut self.processes[slot];
        process.requests -= 1;
        process.last = now;
        if process.exited && process.requests == 0 {
            self.tasks.release(slot);
        }
    }
}
