//! Slices begin and end: a queue gets the disk, its clock starts, it loses the disk.
//!
//! A slice's clock starts when its first request *completes*, so that the seek to a queue's place is not
//! charged to it (it is the previous queue's absence that made it necessary). How long slices are is a rule
//! ([`lengths`](super::rules::lengths)), and so is what they cost ([`charge`](super::rules::charge)).
//
//= linux-2.6.33 block/cfq-iosched.c __cfq_set_active_queue, __cfq_slice_expired

use super::Cfq;
use super::service_tree::Place;
use super::view::{Expire, QueueId, Slice};
use crate::elevator::Cx;
use crate::parts::tasks::TaskSlot;
use crate::trace::Reason;
use crate::units::{Duration, GroupId, Instant};

/// The active queue, and what belongs to its turn.
#[derive(Debug, Default)]
pub(super) struct Turn {
    /// The active queue: it has the disk.
    pub(super) active: Option<QueueId>,
    /// The task whose request was the first in this slice.
    pub(super) task: Option<TaskSlot>,
    /// Until when the disk waits for the active queue's next request, if it does.
    pub(super) timer: Option<Instant>,
}

impl Cfq {
    /// The slice with regard to how many others wait for theirs.
    fn scaled_slice(&mut self, id: QueueId) -> Duration {
        let (queue, lengths, trees) = (&self.queues[id], &self.rules.lengths, &mut self.trees);
        if !lengths.scales() {
            return lengths.full(queue.sync, queue.prio);
        }
        let busy = trees.groups[queue.group].update_busy_average(queue.prio.class);
        let part = trees.part_of(queue.group, lengths.target());
        lengths.scaled(queue.sync, queue.prio, busy, part)
    }

    /// The first request of a slice has completed: its time runs from now.
    pub(super) fn start_clock(&mut self, id: QueueId, now: Instant) {
        let mut lasts = self.scaled_slice(id);
        let queue = &mut self.queues[id];
        if !queue.slice_left.is_zero() {
            // The rest of a slice that the controller interrupted, not a new one.
            lasts = lasts.min(core::mem::take(&mut queue.slice_left));
        }
        queue.slice = Slice { start: now, end: now + lasts, is_new: false };
        self.rules.charging.clock_started(lasts);
    }

    /// Gives the disk to a queue.
    pub(super) fn activate(&mut self, cx: &mut Cx<'_>, id: QueueId) {
        let queue = &mut self.queues[id];
        queue.slice = Slice { start: cx.now, end: cx.now, is_new: true };
        queue.slice_dispatch = 0;
        queue.wait_request = false;
        queue.must_dispatch = false;
        queue.fifo_checked = false;
        let task = queue.task;
        if self.trees.layout.divides {
            cx.books.groups.serve(cx.now, queue.group);
            self.rules.charging.selected(cx.now);
        }
        self.turn.timer = None;
        self.turn.active = Some(id);
        self.rules.cooperation.forget();
        self.rules.cooperation.leave(id, &mut queue.position);
        cx.note(Reason::SliceStart, task);
    }

    /// Takes the disk from the active queue, if there is one.
    pub(super) fn expire(&mut self, cx: &mut Cx<'_>, why: Expire) {
        let Some(id) = self.turn.active.take() else { return };
        self.turn.task = None;
        self.turn.timer = None;
        let queue = &mut self.queues[id];
        queue.wait_request = false;
        queue.wait_busy = false;
        // Cooperators read one stream. A shared queue that seeks has tasks that went different ways.
        if queue.coop && self.rules.seeks.is_seeky(&queue.jumps) {
            queue.split_coop = true;
        }
        if why.keeps_residue() && !queue.slice.is_new {
            // Negative if it was overrun. Slices are much shorter than 2^63 ns.
            queue.slice_resid = queue.slice.end.as_ns().wrapping_sub(cx.now.as_ns()).cast_signed();
        }
        let (empty, task, group) = (queue.is_empty(), queue.task, queue.group);
        if self.trees.layout.divides {
            self.charge(cx, id);
        }
        // Saved before the queue leaves: a group that becomes empty drops it again.
        self.trees.save_workload(group, cx.now);
        if empty {
            self.remove_busy(cx, id);
        } else {
            self.file(cx, id, Place::Turn);
            self.refresh_position(cx.requests, id);
        }
        cx.note(why.reason(), task);
    }

    /// A queue has requests again, and was in no tree.
    pub(super) fn add_busy(&mut self, cx: &mut Cx<'_>, id: QueueId) {
        self.rules.depth.became_busy(cx.now);
        self.change_group(cx, id);
        self.trees.add(&cx.books.groups, cx.now, id, &mut self.queues[id], &self.rules.lengths);
    }

    /// A queue has no requests, and no slice.
    pub(super) fn remove_busy(&mut self, cx: &mut Cx<'_>, id: QueueId) {
        let queue = &mut self.queues[id];
        self.rules.cooperation.leave(id, &mut queue.position);
        self.trees.remove(&mut cx.books.groups, id, queue);
    }

    /// Puts a busy queue where it belongs.
    pub(super) fn file(&mut self, cx: &mut Cx<'_>, id: QueueId, place: Place) {
        self.change_group(cx, id);
        self.trees.file(cx.now, id, &mut self.queues[id], place, &self.rules.lengths);
    }

    /// Moves a queue to the trees of another group if it belongs there now.
    #[inline]
    fn change_group(&mut self, cx: &mut Cx<'_>, id: QueueId) {
        if let Some(to) = self.trees.other_group(&self.queues[id]) {
            self.move_to_group(cx, id, to);
        }
    }

    fn move_to_group(&mut self, cx: &mut Cx<'_>, id: QueueId, to: GroupId) {
        let queue = &mut self.queues[id];
        // Filing uses the residue up; the queue is only moved here, so it keeps it.
        let (residue, was_busy) = (queue.slice_resid, queue.is_busy());
        self.trees.groups[queue.group].dispatched -= queue.dispatched;
        self.trees.groups[to].dispatched += queue.dispatched;
        if was_busy {
            self.remove_busy(cx, id);
        }
        self.queues[id].group = to;
        if was_busy {
            self.add_busy(cx, id);
            self.queues[id].slice_resid = residue;
            self.refresh_position(cx.requests, id);
        }
    }
}
