//! Queues, the tasks that use them, and how both come and go.
//!
//! ```text
//!   task ──► Process ──► Link (one for each actuator) ──► its sync Queue ─┐
//!                                                  └────► an async Queue  ├─► requests: by sector, and by age
//!   task ──► Process ──► Link ──► (merged: the same sync Queue) ──────────┘
//! ```
//!
//! A sync queue belongs to one task and one actuator; merging makes it belong to several tasks. An async
//! queue belongs to a group: all its tasks of one class and level share it. Budgets, service, weights and
//! virtual times of a queue are in the [hierarchy](crate::parts::hierarchy), under the same number.
//!
//! Queues come from a pool: one for each task and actuator, as many async ones as can be used at a time, and
//! some spare ones for those that were left behind with requests still in them. A queue goes back when no
//! task refers to it and its last request has completed. When the pool is empty, and for tasks beyond
//! [`crate::Limits::tasks`], there is the *fallback* queue, which everyone shares who has nothing better
//! (`oom_bfqq` in the kernel): async, best effort, level 4.
//
//= linux-6.12 block/bfq-iosched.h struct bfq_queue, struct bfq_io_cq; block/bfq-iosched.c bfq_init_bfqq
//= bfq_put_queue,
//= linux-6.12 block/bfq-iosched.c bfq_exit_icq, docs/reference/bfq.md#710-exit

use crate::parts::sorted::SortedQueue;
use crate::parts::tasks::TaskSlot;
use crate::sched::bfq::rules::burst;
use crate::sched::bfq::rules::history::{Past, Remembered};
use crate::sched::bfq::rules::inject::Measured;
use crate::sched::bfq::rules::raise::Raising;
use crate::sched::bfq::view::{Kind, QueueId};
use crate::units::{Class, GroupId, Instant, IoPrio, Tag, TaskId, id};

id! {
    /// What a task has with one actuator: `slot * actuators + actuator`.
    pub(crate) LinkId(u32)
}

/// The number of async queues of a group for each actuator: 8 levels of RT, 8 of BE, and IDLE.
pub(crate) const ASYNC_KINDS: usize = 17;

/// One queue.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag of its own, named as in the literature")]
pub(crate) struct Queue {
    /// Whether a task may have it; free ones are in the pool.
    pub(crate) in_use: bool,
    pub(crate) sync: bool,
    /// The actuator that its requests need.
    pub(crate) actuator: u8,
    /// The priority that is asked for; the class and weight in force are the hierarchy's.
    pub(crate) prio: IoPrio,
    /// Its requests that wait, in sector order and in order of arrival.
    pub(crate) requests: SortedQueue,
    /// The request that it sends next.
    pub(crate) next_rq: Option<Tag>,
    pub(crate) in_flight: u32,
    /// Links whose pointer is this queue, and pending redirections to it.
    pub(crate) process_refs: u32,
    /// Links that may stably merge with it later.
    pub(crate) stable_refs: u32,
    /// The task that has it to itself; `None` if it is shared or async.
    pub(crate) owner: Option<LinkId>,
    /// The task that it belongs to in messages: its own, or its first.
    pub(crate) task: TaskId,

    /// Sectors for its next slot.
    pub(crate) next_budget: u32,
    pub(crate) slot_deadline: Instant,
    /// When it last had neither queued nor in-flight requests any more.
    pub(crate) drained_at: Option<Instant>,
    /// Since when it has waited for the disk, if that is in the past: the time that was last set of the two
    /// above.
    pub(crate) waits_since: Instant,
    pub(crate) busy: bool,
    /// The disk idles for it.
    pub(crate) waiting: bool,
    /// It ran empty with budget left, and may continue with that.
    pub(crate) hole_credit: bool,
    /// Whether deadlines were looked at in this slot.
    pub(crate) fifo_checked: bool,
    /// The request that was found to be overdue then, and may not be passed over.
    pub(crate) overdue: Option<Tag>,
    pub(crate) just_created: bool,
    pub(crate) created: Instant,
    /// Counted among its group's queues with queued or in-flight requests.
    pub(crate) pending_counted: bool,
    /// The weight under which it is counted, while it is not raised and busy or in flight.
    pub(crate) weight_counted: Option<u32>,
    /// Its weight in force is a raised one.
    pub(crate) weighs_more: bool,
    /// In force, as in the hierarchy. While the queue is busy it is counted under this.
    pub(crate) class: Class,

    /// What its requests say about its task.
    pub(crate) past: Past,
    /// When it last became backlogged, the sectors served since, and when the first of these were.
    pub(crate) last_backlog_start: Instant,
    pub(crate) since_backlog: u64,
    pub(crate) first_io: Instant,

    pub(crate) raise: Raising,

    /// Its tasks' next requests go to that queue.
    pub(crate) merge_to: Option<QueueId>,
    /// Several tasks have, or had, it.
    pub(crate) shared: bool,
    pub(crate) split_wanted: bool,
    pub(crate) split_time: Option<Instant>,
    /// Filed by the position of `next_rq`.
    pub(crate) positioned: bool,
}

impl Queue {
    /// An empty one. `tick` is now, by the clock of whatever is not measured finely.
    pub(crate) fn new(sync: bool, prio: IoPrio, task: TaskId, past: Past, tick: Instant) -> Self {
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
pub(crate) struct Saved {
    pub(crate) past: Remembered,
    pub(crate) burst: burst::Past,
    pub(crate) raise: Raising,
    pub(crate) inject: Measured,
}

/// What a task has with one actuator.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Link {
    pub(crate) sync: Option<QueueId>,
    pub(crate) asyn: Option<QueueId>,
    pub(crate) saved: Option<Saved>,
    /// Merged for good, as queues that were created together are.
    pub(crate) stably_merged: bool,
    /// A queue created shortly before: to merge with, once it is known what they do.
    pub(crate) stable_target: Option<QueueId>,
}

/// A task.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Process {
    pub(crate) task: TaskId,
    /// What its requests count with: async, sync.
    pub(crate) prio: [IoPrio; 2],
    /// What the last one of either kind carried.
    pub(crate) seen: [IoPrio; 2],
    /// Its queue of either kind has not heard of `prio` yet.
    pub(crate) prio_changed: [bool; 2],
    /// As of its last request.
    pub(crate) group: GroupId,
    /// Its requests in existence.
    pub(crate) requests: u32,
    /// When its last request was complete, or merged into another.
    pub(crate) last: Instant,
    /// Gone; the slot is given back with its last request.
    pub(crate) exited: bool,
}

impl Process {
    /// One that was not known before.
    pub(crate) fn new(task: TaskId, group: GroupId) -> Self {
        Self {
            task,
            prio: [IoPrio::default(); 2],
            seen: [IoPrio::default(); 2],
            prio_changed: [false; 2],
            group,
            requests: 0,
            last: Instant::EPOCH,
            exited: false,
        }
    }

    /// Whether it was given a priority that none of its requests carry: it would be lost with the slot.
    pub(crate) fn has_own_prio(&self) -> bool {
        self.prio[0] != self.seen[0] && self.prio[1] != self.seen[1]
    }

    /// A request of a kind came that carries `prio`. What was said last counts: by requests, if they carry
    /// another priority than those before, or by [`Self::set_prio`].
    #[inline]
    pub(crate) fn see_prio(&mut self, kind: usize, prio: IoPrio) {
        if self.seen[kind] != prio {
            self.seen[kind] = prio;
            self.prio_changed[kind] |= self.prio[kind] != prio;
            self.prio[kind] = prio;
        }
    }

    /// The task's priority changes for the requests to come.
    pub(crate) fn set_prio(&mut self, prio: IoPrio) {
        self.prio = [prio; 2];
        self.prio_changed = [true; 2];
    }
}

/// What is kept for a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rq {
    pub(crate) queue: QueueId,
    pub(crate) process: TaskSlot,
    pub(crate) actuator: u8,
    pub(crate) kind: Kind,
    pub(crate) deadline: Instant,
}

impl Queue {
    /// It has neither queued nor in-flight requests any more.
    pub(crate) const fn drain(&mut self, now: Instant) {
        self.drained_at = Some(now);
        self.waits_since = now;
    }
}

impl Rq {
    /// Of a tag that is not in use.
    pub(crate) fn blank(process: TaskSlot) -> Self {
        Self { queue: QueueId::FALLBACK, process, actuator: 0, kind: Kind::Async, deadline: Instant::EPOCH }
    }
}
