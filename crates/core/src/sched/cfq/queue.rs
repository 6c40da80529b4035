//! Queues and the tasks that use them.
//!
//! ```text
//!   task ──► Context ──► its sync Queue ─┐
//!            (think time, priority)      ├─► requests: by sector, and by age
//!   task ──► Context ──► (merged) ───────┘
//!
//!   async requests of all tasks ──► 8 RT, 8 BE and 1 IDLE queue, shared, for each group
//! ```
//!
//! Sync queues come from a pool of one for each task and some spare ones for those that were left behind by a
//! merge or split with requests still in them. When it is empty, and for tasks beyond
//! [`crate::Limits::tasks`], there is the *fallback* queue, which all tasks of a group share that have none
//! of their own (`oom_cfqq` in the kernel, where it is in the root).
//!
//! A queue has a *home*, the group of its requests, and is filed in that group. In 2.6.33 and 2.6.34 it is
//! filed in the root while it seeks, unless `group_isolation` is on.

use super::rules::cooperate::Position;
use super::rules::idling::Window;
use super::rules::seek::Jumps;
use super::view::{Kind, QueueId, Slice};
use crate::parts::sorted::SortedQueue;
use crate::parts::think_time::ThinkTime;
use crate::units::{Class, Duration, GroupId, Instant, IoPrio, Tag, TaskId};

/// The pending requests of one scheduling unit.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag of its own, named as in the literature")]
pub(super) struct Queue {
    /// Requests by sector, and in order of arrival.
    pub(super) requests: SortedQueue,
    /// The best candidate.
    pub(super) next: Option<Tag>,
    /// Issued and not completed.
    pub(super) dispatched: u32,
    /// Pending requests with the metadata flag.
    pub(super) meta_pending: u32,

    pub(super) prio: IoPrio,
    pub(super) sync: bool,
    /// The group of its requests, and the one in whose trees it is filed.
    pub(super) home: GroupId,
    pub(super) group: GroupId,
    /// The task that it was made for; of the shared ones: 0.
    pub(super) task: TaskId,

    pub(super) slice: Slice,
    /// What was left of the last slice when it was cut short, or was overrun (negative), in ns.
    pub(super) slice_resid: i64,
    /// What is left of a slice in whose middle its group lost the disk, under the controller; zero: nothing.
    pub(super) slice_left: Duration,
    /// Requests issued in this slice.
    pub(super) slice_dispatch: u32,

    /// The service tree it is in, by index.
    pub(super) tree: Option<u8>,
    /// Where it is filed for those that look for a cooperator.
    pub(super) position: Position,
    pub(super) jumps: Jumps,
    /// Whether it is worth idling for.
    pub(super) window: Window,

    /// The queue that its tasks are to use from their next request on, with that queue's generation.
    pub(super) merge_into: Option<(QueueId, u32)>,
    /// Contexts that point here, or will after the pending merges.
    pub(super) process_refs: u32,
    /// How often this id was given out, so that a stale link is recognised.
    pub(super) generation: u32,

    /// Idling for its next request, with the timer armed.
    pub(super) wait_request: bool,
    /// The awaited request came, but might grow: at the latest the timer lets it go.
    pub(super) must_dispatch: bool,
    /// The fifo was looked at in this slice.
    pub(super) fifo_checked: bool,
    /// Used by several tasks that read one stream.
    pub(super) coop: bool,
    /// Those tasks have parted: give each its own queue again.
    pub(super) split_coop: bool,
    /// The slice was stretched to see the next request before it ends.
    pub(super) wait_busy: bool,
}

impl Queue {
    /// An empty one.
    pub(super) fn new(sync: bool, prio: IoPrio, task: TaskId, group: GroupId) -> Self {
        let mut queue = Self {
            requests: SortedQueue::default(),
            next: None,
            dispatched: 0,
            meta_pending: 0,
            prio,
            sync,
            home: group,
            group,
            task,
            slice: Slice::NONE,
            slice_resid: 0,
            slice_left: Duration::ZERO,
            slice_dispatch: 0,
            tree: None,
            position: Position::default(),
            jumps: Jumps::default(),
            window: Window::new(sync),
            merge_into: None,
            process_refs: 0,
            generation: 0,
            wait_request: false,
            must_dispatch: false,
            fifo_checked: false,
            coop: false,
            split_coop: false,
            wait_busy: false,
        };
        queue.set_prio(prio);
        queue
    }

    /// Changes the priority; the idle class has one level and no idling.
    pub(super) fn set_prio(&mut self, prio: IoPrio) {
        self.prio = IoPrio { level: prio.level.min(7), ..prio };
        if prio.class == Class::Idle {
            self.prio.level = 7;
            self.window.close();
        }
    }

    /// How many requests wait.
    pub(super) const fn queued(&self) -> u32 {
        self.requests.len()
    }

    /// Whether no request waits.
    pub(super) const fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// Whether it is in a service tree: it has requests, or is active.
    pub(super) const fn is_busy(&self) -> bool {
        self.tree.is_some()
    }

    /// Whether its tasks go on using it: it is neither to be split nor to be merged into another.
    pub(super) const fn stays(&self) -> bool {
        !self.split_coop && self.merge_into.is_none()
    }

    pub(super) const fn is_idle_class(&self) -> bool {
        matches!(self.prio.class, Class::Idle)
    }

    pub(super) const fn is_rt(&self) -> bool {
        matches!(self.prio.class, Class::RealTime)
    }

    pub(super) const fn kind(&self) -> Kind {
        match (self.sync, self.window.is_open()) {
            (false, _) => Kind::Async,
            (true, false) => Kind::SyncNoIdle,
            (true, true) => Kind::Sync,
        }
    }
}

/// A task, as this device knows it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Context {
    /// Its queue for sync requests, once it has one of its own.
    pub(super) sync_queue: Option<QueueId>,
    /// The priority of its async (0) and sync (1) requests.
    prio: [IoPrio; 2],
    /// The priority that its last request of either kind came with.
    seen: [IoPrio; 2],
    /// The sync queue has not heard of its priority yet.
    pub(super) prio_changed: bool,
    pub(super) think: ThinkTime,
    /// Its requests that are not complete.
    pub(super) outstanding: u32,
    pub(super) exited: bool,
}

impl Context {
    /// A task that was not known before.
    pub(super) fn new(think: ThinkTime) -> Self {
        Self {
            sync_queue: None,
            prio: [IoPrio::default(); 2],
            seen: [IoPrio::default(); 2],
            prio_changed: false,
            think,
            outstanding: 0,
            exited: false,
        }
    }

    /// The priority that a request counts with which carries `prio`: the last of the two counts, the requests
    /// (by carrying another priority than those before) or [`Self::set_prio`].
    pub(super) fn prio(&self, sync: bool, prio: IoPrio) -> IoPrio {
        let i = usize::from(sync);
        if self.seen[i] == prio { self.prio[i] } else { prio }
    }

    /// A request came that carries `prio`; answers what counts.
    pub(super) fn see_prio(&mut self, sync: bool, prio: IoPrio) -> IoPrio {
        let i = usize::from(sync);
        if self.seen[i] != prio {
            self.seen[i] = prio;
            self.prio_changed |= sync && self.prio[i] != prio;
            self.prio[i] = prio;
        }
        self.prio[i]
    }

    /// Whether it has requests, is about to go, or was given a priority that none of its requests carry.
    pub(super) fn is_needed(&self) -> bool {
        let has_own_prio = self.prio[0] != self.seen[0] && self.prio[1] != self.seen[1];
        self.outstanding > 0 || self.exited || has_own_prio
    }

    /// The task's priority changes for the requests to come.
    pub(super) fn set_prio(&mut self, prio: IoPrio) {
        self.prio = [prio; 2];
        self.prio_changed = true;
    }
}

/// What is known of a request, beside the elevator's slot.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rq {
    pub(super) queue: QueueId,
    pub(super) context: crate::parts::tasks::TaskSlot,
    /// When the fifo lets it out of turn.
    pub(super) deadline: Instant,
    /// Whether it came with the metadata flag.
    pub(super) meta: bool,
}
