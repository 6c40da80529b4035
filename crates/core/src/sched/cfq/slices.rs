//! Time slices: how long, from when to when, and what happens at their end.
//!
//! A slice's clock starts when its first request *completes*, so that the seek to a queue's place is not
//! charged to it (it is the previous queue's absence that made it necessary). With `low_latency` slices
//! shrink when many queues are busy, so that each has its turn within `target_latency`: 300 ms.
//!
//! | busy sync queues (BE/4) | 1-3 | 4 | 6 | 8 | 10 | 20 |
//! |---|---:|---:|---:|---:|---:|---:|
//! | slice, ms | 100 | 75 | 50 | 37 | 30 | 16 |
//!
//! The floor is twice `slice_idle`, scaled by priority.
//!
//= linux-2.6.33 block/cfq-iosched.c cfq_set_prio_slice, __cfq_slice_expired

use super::queue::{LEVELS, Queue, QueueId};
use super::service_tree::Place;
use super::{Cfq, Config, mul_div};
use crate::elevator::Cx;
use crate::trace::Reason;
use crate::units::{Duration, Instant};
use core::ops::Range;

/// No position.
pub(super) const NOWHERE: Range<u64> = 0..0;

/// A slice of level 4 is the base; each level up or down adds or takes a fifth of it.
//= linux-2.6.33 block/cfq-iosched.c CFQ_SLICE_SCALE
const SLICE_SCALE: u64 = 5;

/// Why a slice ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Expire {
    /// Its time was up when a request completed (or it is of the idle class, and one request was all it
    /// gets).
    Completed,
    /// Its time was found to be up later.
    Used,
    /// It has nothing more to do.
    Empty,
    /// Its next request did not come in time.
    IdleTimeout,
    /// It had sent as many async requests as it may at a time.
    AsyncQuota,
    /// A more urgent queue came.
    Preempted,
    /// Another queue has requests right where the head is.
    Cooperator,
    /// Its task has gone.
    TaskExit,
    /// Everything is being drained.
    Drain,
    /// Its group lost the disk.
    Suspended,
}

impl Expire {
    /// Whether the queue gets in its next turn what this slice left (or pays what it overran).
    const fn keeps_residue(self) -> bool {
        matches!(self, Self::Completed | Self::Preempted)
    }

    const fn reason(self) -> Reason {
        match self {
            Self::Completed | Self::Used => Reason::SliceUsed,
            Self::Empty => Reason::SliceEmpty,
            Self::IdleTimeout => Reason::IdleTimeout,
            Self::AsyncQuota => Reason::AsyncQuota,
            Self::Preempted | Self::Suspended => Reason::Preempted,
            Self::Cooperator => Reason::Cooperator,
            Self::TaskExit => Reason::TaskExit,
            Self::Drain => Reason::Drain,
        }
    }
}

/// The full slices of async (0) and sync (1) queues by level: `base + base / 5 x (4 - level)`.
pub(super) fn slice_table(
    config: &Config,
    whole_ticks: impl Fn(Duration) -> Duration,
) -> [[Duration; LEVELS]; 2] {
    [config.slice_async, config.slice_sync].map(|base| {
        let step = whole_ticks(base / SLICE_SCALE);
        core::array::from_fn(|level| {
            let level = level as u64;
            if level <= 4 { base + step * (4 - level) } else { base - step * (level - 4) }
        })
    })
}

impl Cfq {
    /// The slice by kind and priority alone.
    pub(super) fn prio_slice(&self, queue: &Queue) -> Duration {
        self.slices[usize::from(queue.sync)][usize::from(queue.prio.level)]
    }

    /// The slice with regard to how many others wait for theirs.
    fn scaled_slice(&mut self, id: QueueId) -> Duration {
        let queue = &self.queues[id];
        let slice = self.prio_slice(queue);
        if !self.config.low_latency {
            return slice;
        }
        let group = queue.group;
        let busy = self.groups[group].update_busy_average(queue.prio.class);
        let expected = self.config.slice_sync * u64::from(busy);
        let group_slice = self.group_slice(group);
        if expected <= group_slice {
            return slice;
        }
        // A slice shorter than two waits would be spent on idling.
        let floor = slice.min(mul_div(self.config.slice_idle * 2, slice, self.config.slice_sync));
        self.whole_ticks(mul_div(slice, group_slice, expected).max(floor))
    }

    /// The first request of a slice has completed: its time runs from now.
    pub(super) fn start_clock(&mut self, id: QueueId, now: Instant) {
        let mut slice = self.scaled_slice(id);
        let queue = &mut self.queues[id];
        if !queue.slice_left.is_zero() {
            // The rest of a slice that the controller interrupted, not a new one.
            slice = slice.min(core::mem::take(&mut queue.slice_left));
        }
        queue.slice_start = now;
        queue.slice_end = now + slice;
        queue.slice_new = false;
        self.slice = slice;
    }

    pub(super) fn slice_used(&self, id: QueueId, now: Instant) -> bool {
        let queue = &self.queues[id];
        !queue.slice_new && now >= queue.slice_end
    }

    /// How many requests an async queue may send in a slice.
    //= linux-2.6.33 block/cfq-iosched.c cfq_prio_to_maxrq
    pub(super) fn async_quota(&self, queue: &Queue) -> u64 {
        2 * u64::from(self.config.slice_async_rq) * (LEVELS as u64 - u64::from(queue.prio.level))
    }

    /// Gives the disk to a queue.
    pub(super) fn activate(&mut self, cx: &mut Cx<'_>, id: QueueId) {
        let queue = &mut self.queues[id];
        queue.slice_start = cx.now;
        queue.slice_end = cx.now;
        queue.slice_dispatch = 0;
        queue.wait_request = false;
        queue.must_dispatch = false;
        queue.fifo_checked = false;
        queue.slice_new = true;
        let task = queue.task;
        if self.divides {
            cx.books.groups.serve(cx.now, queue.group);
            self.activated = cx.now;
            self.slice = Duration::ZERO;
        }
        self.idle_timer = None;
        self.active = Some(id);
        self.no_neighbour = NOWHERE;
        self.leave_position(id);
        cx.note(Reason::SliceStart, task);
    }

    /// Takes the disk from the active queue, if there is one.
    pub(super) fn expire(&mut self, cx: &mut Cx<'_>, why: Expire) {
        let Some(id) = self.active.take() else { return };
        self.active_context = None;
        self.idle_timer = None;
        let (rule, once_valid) = (self.seek, !self.config.quirk_seeky_early);
        let queue = &mut self.queues[id];
        queue.wait_request = false;
        queue.wait_busy = false;
        // Cooperators read one stream. A shared queue that seeks has tasks that went different ways.
        if queue.coop && queue.seek.is_seeky(rule, once_valid) {
            queue.split_coop = true;
        }
        if why.keeps_residue() && !queue.slice_new {
            // Negative if it was overrun. Slices are much shorter than 2^63 ns.
            queue.slice_resid = queue.slice_end.as_ns().wrapping_sub(cx.now.as_ns()).cast_signed();
        }
        let (empty, task, group) = (queue.is_empty(), queue.task, queue.group);
        if self.divides {
            self.charge(cx, id);
        }
        // Saved before the queue leaves: a group that becomes empty drops it again.
        self.save_workload(group, cx.now);
        if empty {
            self.remove_busy(cx, id);
        } else {
            self.file(cx, id, Place::Turn);
            self.refresh_position(cx.requests, id);
        }
        cx.note(why.reason(), task);
    }

    /// Charges the group of a queue whose slice ends: for the time of the slice, but in IOPS mode for its
    /// requests, a tick each, and for a whole slice if there are none but async queues, whose requests are
    /// still to be carried out.
    ///
    /// The kernel charges those nothing if none was carried out yet; we charge them the time.
    //= deviates cfq-async-charge
    //= linux-3.10 block/cfq-iosched.c cfq_cfqq_slice_usage, cfq_group_served
    fn charge(&mut self, cx: &mut Cx<'_>, id: QueueId) {
        let queue = &self.queues[id];
        let group = queue.group;
        let (used, unaccounted) = self.slice_usage(queue, cx.now);
        let amount = if self.counts_requests() {
            self.tick * u64::from(queue.slice_dispatch)
        } else if self.config.era.since_3() && !queue.sync && !self.groups[group].has_sync() {
            // What a disk's cache has taken is still to be written when the next group has the disk.
            used.max(self.slice)
        } else {
            used
        };
        self.shares.charge(&cx.books.groups, group, amount);
        cx.books.groups.charge(group, used, unaccounted);
        cx.books.groups.leave(cx.now);
    }

    /// The time of a slice, and what is not charged: what was overrun and, since 3.x, the time until the
    /// first completion.
    fn slice_usage(&self, queue: &Queue, now: Instant) -> (Duration, Duration) {
        // Nothing completed, or in this very instant: the time since the queue got the disk counts, at least
        // a tick, or single requests would be free.
        if queue.slice_new || queue.slice_start == now {
            return (now.saturating_since(self.activated).max(self.tick), Duration::ZERO);
        }
        let all = now.saturating_since(queue.slice_start);
        let used = all.min(self.slice);
        let before = queue.slice_start.saturating_since(self.activated);
        let unaccounted = Duration::from_ns(all.as_ns() - used.as_ns());
        (used, if self.config.era.since_3() { unaccounted + before } else { unaccounted })
    }

    /// Whether groups share requests, not time: when nothing is waited for, and the device queues, time says
    /// nothing.
    //= linux-3.10 block/cfq-iosched.c iops_mode
    fn counts_requests(&self) -> bool {
        self.config.era.since_3() && self.config.slice_idle.is_zero() && self.probe.may_queue()
    }
}
