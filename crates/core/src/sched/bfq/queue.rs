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

use super::rules::burst;
use super::rules::history::{Past, Remembered};
use super::rules::inject::Measured;
use super::rules::raise::Raising;
use super::view::{Kind, QueueId};
use crate::parts::sorted::SortedQueue;
use crate::parts::tasks::TaskSlot;
use crate::units::{Class, GroupId, Instant, IoPrio, Tag, TaskId, id};

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

    pub(super) raise: Raising,

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
            raise: Raising::new(tick),
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
    pub(super) raise: Raising,
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
