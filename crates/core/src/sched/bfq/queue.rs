//! Queues, the tasks that use them, and how both come and go.
//!
//! ```text
//!   task ──► Process ──► Link (one for each actuator) ──► its sync Queue ─┐
//!                                                  └────► an async Queue  ├─► requests: by sector, and by age
//!   task ──► Process ──► Link ──► (merged: the same sync Queue) ──────────┘
//! ```
//!
//! A sync queue belongs to one task and one actuator; merging makes it belong to several tasks. An async queue belongs to a
//! group: all its tasks of one class and level share it. Budgets, service, weights and virtual times of a queue are in
//! the [hierarchy](crate::parts::hierarchy), under the same number.
//!
//! Queues come from a pool: one for each task and actuator, as many async ones as can be used at a time, and some spare
//! ones for those that were left behind with requests still in them. A queue goes back when no task refers to it and its
//! last request has completed. When the pool is empty, and for tasks beyond [`crate::Limits::tasks`], there is the *fallback*
//! queue, which everyone shares who has nothing better (`oom_bfqq` in the kernel): async, best effort, level 4.
//
//= linux-6.12 block/bfq-iosched.h struct bfq_queue, struct bfq_io_cq; block/bfq-iosched.c bfq_init_bfqq, bfq_put_queue,
//= linux-6.12 block/bfq-iosched.c bfq_exit_icq, docs/reference/bfq.md#710-exit

use super::Bfq;
use super::group::Kind;
use super::rules::burst;
use super::rules::history::{Past, Remembered};
use super::rules::inject::Measured;
use super::view::{Expire, QueueId};
use super::weight_raising::Raise;
use crate::elevator::{Actuators, Cx};
use crate::parts::sorted::SortedQueue;
use crate::parts::tasks::TaskSlot;
use crate::units::{Class, GroupId, Id, Instant, IoPrio, Tag, TaskId, id};

id! {
    /// What a task has with one actuator: `slot * actuators + actuator`.
    pub(super) LinkId(u32)
}

/// A group has so many async queues for each actuator: 8 levels of RT, 8 of BE, and IDLE.
pub(super) const ASYNC_KINDS: usize = 17;

/// One queue.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag of its own, named as in the literature")]
pub(super) struct Queue {
    /// Whether a task may have it; free ones are in the pool.
    pub(super) in_use: bool,
    pub(super) sync: bool,
    /// The actuator that its requests need.
    pub(super) actuator: u8,
    /// Asked for; the class and weight in force are the hierarchy's.
    pub(super) prio: IoPrio,
    /// In sector order and in order of arrival.
    pub(super) requests: SortedQueue,
    /// The best of them.
    pub(super) next_rq: Option<Tag>,
    pub(super) in_flight: u32,
    /// Links whose pointer is this queue, and pending redirections to it.
    pub(super) process_refs: u32,
    /// Links that may stably merge with it later.
    pub(super) stable_refs: u32,
    /// The task that has it alone; `None` if it is shared or async.
    pub(super) owner: Option<LinkId>,
    /// In messages: whose it is or was first.
    pub(super) task: TaskId,

    /// Sectors for its next slot.
    pub(super) next_budget: u32,
    pub(super) slot_deadline: Instant,
    /// When it became without queued and in-flight requests.
    pub(super) drained_at: Option<Instant>,
    /// The later told of the two above: since when it has been waiting, if that is in the past.
    pub(super) waits_since: Instant,
    pub(super) busy: bool,
    /// The disk idles for it.
    pub(super) waiting: bool,
    /// It ran empty with budget left, and may go on with that.
    pub(super) hole_credit: bool,
    /// Deadlines were looked at in this slot.
    pub(super) fifo_checked: bool,
    /// Who was found then, and may not be passed.
    pub(super) overdue: Option<Tag>,
    pub(super) just_created: bool,
    pub(super) created: Instant,
    /// Counted among its group's queues with queued or in-flight requests.
    pub(super) pending_counted: bool,
    /// The weight under which it is counted, while it is not raised and busy or in flight.
    pub(super) weight_counted: Option<u32>,
    /// Its weight in force is a raised one.
    pub(super) weighs_more: bool,
    /// In force, as in the hierarchy. While the queue is busy it is counted under this.
    pub(super) class: Class,

    /// What its requests say about its task.
    pub(super) past: Past,
    /// When it last became backlogged, the sectors served since, and when the first of these were.
    pub(super) last_backlog_start: Instant,
    pub(super) since_backlog: u64,
    pub(super) first_io: Instant,

    pub(super) raise: Raise,

    /// Its tasks' next requests go to that queue.
    pub(super) merge_to: Option<QueueId>,
    /// Several tasks have, or had, it.
    pub(super) shared: bool,
    pub(super) split_wanted: bool,
    pub(super) split_time: Option<Instant>,
    /// Filed by the position of `next_rq`.
    pub(super) positioned: bool,
}

impl Queue {
    /// An empty one. `tick` is now, by the clock of whatever is not measured finely.
    pub(super) fn new(sync: bool, prio: IoPrio, task: TaskId, past: Past, tick: Instant) -> Self {
        Self {
            in_use: false,
            sync,
            actuator: 0,
            prio,
            requests: SortedQueue::default(),
            next_rq: None,
            in_flight: 0,
            process_refs: 0,
            stable_refs: 0,
            owner: None,
            task,
            next_budget: 0,
            slot_deadline: tick,
            drained_at: None,
            waits_since: tick,
            busy: false,
            waiting: false,
            hole_credit: false,
            fifo_checked: false,
            overdue: None,
            just_created: sync,
            created: tick,
            pending_counted: false,
            weight_counted: None,
            weighs_more: false,
            class: prio.class,
            past,
            last_backlog_start: tick,
            since_backlog: 0,
            first_io: tick,
            raise: Raise::new(tick),
            merge_to: None,
            shared: false,
            split_wanted: false,
            split_time: None,
            positioned: false,
        }
    }
}

/// What is saved of a queue when its task shares another one, until they part again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Saved {
    pub(super) past: Remembered,
    pub(super) burst: burst::Past,
    pub(super) raise: Raise,
    pub(super) inject: Measured,
}

/// What a task has with one actuator.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Link {
    pub(super) sync: Option<QueueId>,
    pub(super) asyn: Option<QueueId>,
    pub(super) saved: Option<Saved>,
    /// Merged for good, as queues that were created together are.
    pub(super) stably_merged: bool,
    /// A queue created shortly before: to merge with, once it is known what they do.
    pub(super) stable_target: Option<QueueId>,
}

/// A task.
#[derive(Clone, Copy, Debug)]
pub(super) struct Process {
    pub(super) task: TaskId,
    /// What its requests count with: async, sync.
    pub(super) prio: [IoPrio; 2],
    /// What the last one of either kind carried.
    pub(super) seen: [IoPrio; 2],
    /// Its queue of either kind has not heard of `prio` yet.
    pub(super) prio_changed: [bool; 2],
    /// As of its last request.
    pub(super) group: GroupId,
    /// Its requests in existence.
    pub(super) requests: u32,
    /// Gone; the slot is given back with its last request.
    pub(super) exited: bool,
}

impl Process {
    /// One that was not known before.
    pub(super) fn new(task: TaskId, group: GroupId) -> Self {
        Self {
            task,
            prio: [IoPrio::default(); 2],
            seen: [IoPrio::default(); 2],
            prio_changed: [false; 2],
            group,
            requests: 0,
            exited: false,
        }
    }

    /// A request of a kind came that carries `prio`. Whoever spoke last is right: the requests, by carrying another
    /// priority than those before, or [`Self::set_prio`].
    #[inline]
    pub(super) fn see_prio(&mut self, kind: usize, prio: IoPrio) {
        if self.seen[kind] != prio {
            self.seen[kind] = prio;
            self.prio_changed[kind] |= self.prio[kind] != prio;
            self.prio[kind] = prio;
        }
    }

    /// The task's priority changes for the requests to come.
    pub(super) fn set_prio(&mut self, prio: IoPrio) {
        self.prio = [prio; 2];
        self.prio_changed = [true; 2];
    }
}

/// What is kept for a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rq {
    pub(super) queue: QueueId,
    pub(super) process: TaskSlot,
    pub(super) actuator: u8,
    pub(super) kind: Kind,
    pub(super) deadline: Instant,
}

impl Queue {
    /// It has neither queued nor in-flight requests any more.
    pub(super) const fn drain(&mut self, now: Instant) {
        self.drained_at = Some(now);
        self.waits_since = now;
    }
}

impl Rq {
    /// Of a tag that is not in use.
    pub(super) fn blank(process: TaskSlot) -> Self {
        Self { queue: QueueId::FALLBACK, process, actuator: 0, kind: Kind::Async, deadline: Instant::EPOCH }
    }
}

/// What a queue of this priority weighs.
//= linux-6.12 block/bfq-iosched.h BFQ_WEIGHT_CONVERSION_COEFF
//= docs/reference/bfq.md#17-weights-and-their-changes
fn weight_of(prio: IoPrio) -> u32 {
    if prio.class == Class::Idle { 10 } else { 10 * (8 - u32::from(prio.level.min(7))) }
}

/// Where they are.
impl Bfq {
    #[inline]
    pub(super) fn link(&self, slot: TaskSlot, actuator: usize) -> LinkId {
        if !self.several_actuators {
            return LinkId::from_index(slot.index());
        }
        LinkId::from_index(slot.index() * self.actuators.count() + actuator)
    }

    #[inline]
    pub(super) fn process_of(&self, link: LinkId) -> TaskSlot {
        TaskSlot::from_index(link.index() / self.actuators.count())
    }

    #[inline]
    pub(super) fn actuator_of(&self, link: LinkId) -> usize {
        link.index() % self.actuators.count()
    }

    #[inline]
    pub(super) fn is_empty(&self, q: QueueId) -> bool {
        self.queues[q].next_rq.is_none()
    }

    /// In force.
    #[inline]
    pub(super) fn class(&self, q: QueueId) -> Class {
        self.queues[q].class
    }

    #[inline]
    pub(super) fn group_of(&self, q: QueueId) -> GroupId {
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
    /// An empty queue out of the pool, with a reference for whoever asked; `None` if there is none.
    fn new_queue(&mut self, now: Instant, slot: TaskSlot, actuator: usize, sync: bool) -> Option<QueueId> {
        let q = self.pool_links.pop_front(&mut self.pool)?;
        self.hierarchy.detach(q);
        let process = &self.processes[slot];
        let (prio, group) = (process.prio[usize::from(sync)], process.group);
        let past = self.rules.history.created(now, sync, prio.class != Class::Idle);
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
    pub(super) fn new_sync_queue(
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
    pub(super) fn async_queue(&mut self, cx: &mut Cx<'_>, slot: TaskSlot, link: LinkId) -> QueueId {
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
    pub(super) fn set_prio(&mut self, q: QueueId, prio: IoPrio) {
        self.queues[q].prio = prio;
        self.hierarchy.set_weight(q, prio.class, weight_of(prio));
    }

    /// Gives a queue another factor of raising; its weight follows.
    pub(super) fn set_factor(&mut self, q: QueueId, factor: u32) {
        let queue = &mut self.queues[q];
        let before = core::mem::replace(&mut queue.raise.factor, factor);
        if queue.busy {
            self.wr_busy += u32::from(factor > 1);
            self.wr_busy -= u32::from(before > 1);
        }
        self.hierarchy.set_raise(q, factor);
    }

    /// Puts a queue's weight, though not its class, in force at once.
    pub(super) fn apply_weight(&mut self, cx: &mut Cx<'_>, q: QueueId) {
        self.hierarchy.apply_weight(q);
        self.refresh_weight(q);
        self.note_times(cx, q);
    }
}

/// Going.
impl Bfq {
    /// A link does not refer to `q` any more.
    pub(super) fn put_queue_ref(&mut self, q: QueueId) {
        let queue = &mut self.queues[q];
        queue.process_refs -= 1;
        if queue.process_refs == 0 {
            // Who has no tasks redirects nobody.
            queue.merge_to = None;
            self.reap(q);
        }
    }

    /// A task leaves its queue.
    pub(super) fn leave_queue(&mut self, cx: &mut Cx<'_>, q: QueueId) {
        if self.queues[q].busy && self.is_empty(q) && self.in_service != Some(q) {
            self.go_idle(cx, q);
        }
        self.clear_last_created(q);
        self.put_queue_ref(q);
    }

    /// Frees `q` if nobody needs it any more.
    pub(super) fn reap(&mut self, q: QueueId) {
        let queue = &self.queues[q];
        let unneeded = queue.process_refs == 0 && queue.in_flight == 0 && !queue.busy;
        if unneeded && queue.in_use && q != QueueId::FALLBACK {
            self.free_queue(q);
        }
    }

    fn free_queue(&mut self, q: QueueId) {
        debug_assert!(self.is_empty(q), "freed while it is used");
        let owned = self.queues[q].owner.is_some();
        self.rules.bursts.freed(q, owned);
        self.rules.wakers.freed(q);
        self.merge_queue_freed(q);
        //= deviates bfq-freed-weight
        if !self.config.quirks {
            self.hierarchy.detach(q);
        }
        let queue = &mut self.queues[q];
        queue.in_use = false;
        //= deviates bfq-async-life
        self.unregister_async(q);
        self.pool_links.push_back(&mut self.pool, q);
    }

    /// If `q` is its group's queue for async requests of a kind, it is so no more.
    pub(super) fn unregister_async(&mut self, q: QueueId) {
        let queue = &self.queues[q];
        if !queue.sync {
            let key = Self::async_key(self.group_of(q), queue.prio, usize::from(queue.actuator));
            if self.async_queues.find(key).any(|other| other == q) {
                self.async_queues.remove(q);
            }
        }
    }

    /// A task is gone; its requests that wait are still served.
    pub(super) fn exit(&mut self, cx: &mut Cx<'_>, slot: TaskSlot) {
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

    /// A task leaves its queue without following the merges that are under way.
    pub(super) fn quit_queue(&mut self, cx: &mut Cx<'_>, q: QueueId) {
        if self.queues[q].process_refs > 1 {
            // Others have it, or will: it is nobody's own any more.
            self.queues[q].owner = None;
        }
        self.drop_redirections(cx, q);
        self.leave_queue(cx, q);
    }

    /// A request of the task is no more.
    #[inline]
    pub(super) fn forget_request(&mut self, slot: TaskSlot) {
        let process = &mut self.processes[slot];
        process.requests -= 1;
        if process.exited && process.requests == 0 {
            self.tasks.release(slot);
        }
    }
}
