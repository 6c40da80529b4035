//! When the disk waits for a queue that has nothing to send right now.
//!
//! A sync queue whose task sends its next request soon after the last one completed, near to it, is worth
//! waiting for (`slice_idle`): otherwise the head would go to another queue and back for every request.
//! Queues that seek or think are served without waiting, one after the other; only the last of them waits,
//! for the sake of all.
//!
//! The `idle_window` of a queue says which of the two it is. It is closed when the queue seeks (unless it has
//! had four requests waiting: *deep*) or its task thinks for longer than `slice_idle` on average.
//!
//! Nothing waits on a device without a head that queues requests, which is kept busy otherwise.
//!
//= linux-2.6.33 block/cfq-iosched.c cfq_should_idle, cfq_arm_slice_timer, cfq_update_idle_window

use crate::elevator::Cx;
use crate::parts::think_time::ThinkTime;
use crate::sched::cfq::queue::{Queue, QueueId};
use crate::sched::cfq::slices::Expire;
use crate::sched::cfq::{Cfq, Seek};
use crate::trace::Reason;
use crate::units::{Duration, Instant};

/// The number of waiting requests from which a queue is deep.
//= linux-2.6.33 block/cfq-iosched.c cfq_update_idle_window
const DEEP: u32 = 4;

impl Cfq {
    /// Whether waiting for this queue pays.
    #[inline(always)]
    pub(in crate::sched::cfq) fn should_idle(&self, id: QueueId) -> bool {
        // The window is never open with `slice_idle` zero, nor that of the idle class.
        (self.queues[id].idle_window && !self.is_fast()) || self.should_idle_for_kind(id)
    }

    /// Whether waiting for it pays as the last of its kind, for the sake of all.
    #[inline(never)]
    fn should_idle_for_kind(&self, id: QueueId) -> bool {
        let queue = &self.queues[id];
        let since_3 = self.config.era.since_3();
        if !queue.sync || queue.is_idle_class() || (since_3 && self.config.slice_idle.is_zero()) {
            return false;
        }
        let Some(tree) = queue.tree.map(usize::from) else { return false };
        let tree = &self.groups[queue.group].trees[tree];
        tree.queues.len() == 1 && !(since_3 && tree.think.exceeds(self.config.slice_idle))
    }

    /// Whether the device has no head, and queues requests as far as one knows.
    pub(in crate::sched::cfq) fn is_fast(&self) -> bool {
        !self.rotational && self.probe.may_queue()
    }

    /// A sync request of the active queue completed and none is left: arms the timer if waiting pays.
    pub(in crate::sched::cfq) fn arm_idle(&mut self, cx: &mut Cx<'_>, id: QueueId) {
        let queue = &self.queues[id];
        if self.is_fast() || queue.dispatched > 0 {
            return;
        }
        let (idle, reason) = if !self.config.slice_idle.is_zero() && self.should_idle(id) {
            let reason = if queue.idle_window { Reason::SliceIdle } else { Reason::WorkloadIdle };
            (self.config.slice_idle, reason)
        } else if self.group_idles && self.groups[queue.group].queues == 1 {
            (self.config.group_idle, Reason::GroupIdle)
        } else {
            return;
        };
        // A task that has gone sends nothing; one that is known to think for longer than the slice lasts, too
        // late.
        let Some(context) = self.active_context.map(|slot| &self.contexts[slot]).filter(|c| !c.exited) else {
            return;
        };
        if context.think.exceeds(queue.slice_end.saturating_since(cx.now)) {
            return;
        }
        let task = queue.task;
        self.queues[id].wait_request = true;
        self.idle_timer = Some(cx.now + idle);
        if self.divides {
            cx.books.groups.idles(cx.now);
        }
        cx.note(reason, task);
    }

    /// Whether the group would lose its place if `id`, its only queue, lost the disk now, while requests are
    /// at the device.
    pub(in crate::sched::cfq) fn group_waits(&self, id: QueueId) -> bool {
        let group = &self.groups[self.queues[id].group];
        self.group_idles
            && group.queues == 1
            && group.dispatched > 0
            && !group.think.exceeds(self.config.group_idle)
    }

    /// Whether to stretch the slice until the next request comes, so that the group is not without work when
    /// the slice ends, and keeps its place.
    //= linux-2.6.33 block/cfq-iosched.c cfq_should_wait_busy
    pub(in crate::sched::cfq) fn should_wait_busy(&self, id: QueueId, now: Instant) -> bool {
        let queue = &self.queues[id];
        let group = &self.groups[queue.group];
        let since_3 = self.config.era.since_3();
        if group.queues > 1
            || (since_3 && !queue.is_empty())
            || (since_3 && group.think.exceeds(self.config.group_idle))
        {
            return false;
        }
        if self.slice_used(id, now) {
            return true;
        }
        let left = queue.slice_end.saturating_since(now);
        let thinks_longer = self.active_context.is_some_and(|slot| self.contexts[slot].think.exceeds(left));
        thinks_longer || left <= self.tick
    }

    /// A deep queue that seeks, and is served faster than it sends: waiting for it only wastes time.
    //= linux-3.10 block/cfq-iosched.c cfq_select_queue
    pub(in crate::sched::cfq) fn stop_idling_if_outrun(&mut self, id: QueueId, now: Instant) {
        let seeky = self.is_seeky(id);
        let queue = &mut self.queues[id];
        let early = queue.slice_new
            || queue.slice_end.saturating_since(now) > now.saturating_since(queue.slice_start);
        if self.config.era.since_3() && seeky && queue.idle_window && early {
            queue.deep = false;
            queue.idle_window = false;
        }
    }

    /// The idle timer's time has come.
    pub(in crate::sched::cfq) fn idle_timeout(&mut self, cx: &mut Cx<'_>) {
        self.idle_timer = None;
        let Some(id) = self.active else { return };
        if self.divides {
            cx.books.groups.idled(cx.now);
        }
        if self.queues[id].must_dispatch {
            return;
        }
        if self.slice_used(id, cx.now) {
            self.expire(cx, Expire::Used);
        } else if self.queues[id].is_empty() {
            self.queues[id].deep = false;
            self.expire(cx, Expire::IdleTimeout);
        }
    }
}

impl Queue {
    /// A sync request was put in, by a task that thinks like `think`: is the queue still worth waiting for?
    pub(in crate::sched::cfq) fn update_idle_window(
        &mut self,
        idle: Duration,
        rule: Seek,
        think: &ThinkTime,
        ends_here: bool,
    ) {
        self.deep |= self.queued() >= DEEP;
        if ends_here || idle.is_zero() || (!self.deep && self.seek.is_seeky(rule, true)) {
            self.idle_window = false;
        } else if think.is_valid() {
            self.idle_window = !think.exceeds(idle);
        }
    }
}
