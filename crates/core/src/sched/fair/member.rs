//! What the controller keeps of each group, and how a request goes through it.

use super::clock::Clock;
use super::slice::Expire;
use super::{Divisible, Fair, OUT_OF_TURN};
use crate::elevator::Cx;
use crate::parts::think_time::ThinkTime;
use crate::units::{Duration, GroupId, Instant, Tag, TaskId};

/// A group.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member {
    /// Requests that wait.
    pub(super) queued: u32,
    /// Requests at the device, or handed back by it.
    pub(super) at_device: u32,
    /// All these by kind: async, sync.
    pub(super) held: [u32; 2],
    /// From when it had no requests to its next.
    pub(super) think: ThinkTime,
    /// Whether its last request was sync.
    pub(super) was_sync: bool,
    /// The task that sent its last request, and whether it has exited since.
    pub(super) task: TaskId,
    pub(super) has_exited: bool,
    /// What it is guaranteed.
    pub(super) clock: Clock,
    /// It was removed; its requests are still served.
    pub(super) is_gone: bool,
}

impl Member {
    pub(super) fn new() -> Self {
        Self {
            queued: 0,
            at_device: 0,
            held: [0; 2],
            think: ThinkTime::default(),
            was_sync: true,
            task: TaskId(0),
            has_exited: false,
            clock: Clock::default(),
            is_gone: false,
        }
    }

    /// A request is put in. Whether none waited before.
    #[inline]
    pub(super) fn arrived(&mut self, now: Instant, task: TaskId, idle: Duration) -> bool {
        if self.is_idle() && self.think.last_end().is_some() {
            self.think.arrived(now, idle);
        }
        self.task = task;
        self.has_exited = false;
        self.queued += 1;
        self.queued == 1
    }

    /// A request goes to the device.
    #[inline]
    pub(super) const fn issued(&mut self, sync: bool) {
        self.queued -= 1;
        self.at_device += 1;
        self.was_sync = sync;
    }

    /// A request has completed.
    #[inline]
    pub(super) fn completed(&mut self, now: Instant) {
        self.at_device -= 1;
        if self.is_idle() {
            self.think.completed(now);
        }
    }

    /// Whether it has no requests.
    pub(super) const fn is_idle(&self) -> bool {
        self.queued == 0 && self.at_device == 0
    }
}

impl<S: Divisible> Fair<S> {
    #[inline]
    pub(super) fn arrive(&mut self, cx: &mut Cx<'_>, tag: Tag) {
        let rq = &cx.requests[tag].rq;
        let (group, sync, task) = (rq.group, rq.sync, rq.task);
        let m = &mut self.members[group];
        let is_first = m.arrived(cx.now, task, self.config.layer.group_idle);
        self.queued += 1;
        self.pool.take(&mut m.held, sync);
        if is_first {
            self.reserve.join(group, &mut m.clock, cx.now);
            // The group in service kept its place in the tree while it was idled for.
            if self.active == Some(group) {
                self.stop_idling(cx);
                if self.slice.is_stopped() {
                    self.update_clock(cx.now);
                }
            } else {
                self.join(cx, group);
            }
        }
        self.force(group);
    }

    /// A group that does not have the disk has requests again.
    #[inline(never)]
    fn join(&mut self, cx: &mut Cx<'_>, group: GroupId) {
        self.tree.activate(cx.now, group);
        self.update_clock(cx.now);
        if let Some(active) = self.active
            && self.has_classes
            && self.tree.outranks(group, active)
        {
            self.expire(cx, Expire::Preempted);
        }
    }

    /// `tag` of `group` goes to the device, in its turn if it is the one that has the disk.
    pub(super) fn issued(&mut self, cx: &mut Cx<'_>, tag: Tag, group: GroupId) {
        if self.active == Some(group) {
            return self.issued_in_turn(cx, tag, group);
        }
        self.count_issued(cx, tag, group);
        self.slices[tag] = OUT_OF_TURN;
        if self.members[group].queued == 0 {
            self.lose_place(cx, group);
        }
    }

    /// Records that a request of the group that has the disk was issued.
    #[inline(always)]
    pub(super) fn issued_in_turn(&mut self, cx: &mut Cx<'_>, tag: Tag, group: GroupId) {
        self.count_issued(cx, tag, group);
        self.slice.issued(cx.requests[tag].rq.len);
        self.slices[tag] = self.slice.number;
        if self.slice.is_idling {
            self.stop_idling(cx);
        }
    }

    #[inline(always)]
    fn count_issued(&mut self, cx: &mut Cx<'_>, tag: Tag, group: GroupId) {
        let m = &mut self.members[group];
        m.issued(cx.requests[tag].rq.sync);
        self.queued -= 1;
        self.at_device += 1;
        let any_left = m.queued > 0;
        self.reserve.dispatched(group, &mut m.clock, cx.now, any_left);
    }

    /// A request of a group has completed.
    #[inline(always)]
    pub(super) fn finish(&mut self, cx: &mut Cx<'_>, tag: Tag) {
        let rq = &cx.requests[tag].rq;
        let (group, sync, len) = (rq.group, rq.sync, rq.len.0);
        let m = &mut self.members[group];
        m.completed(cx.now);
        let is_idle = m.is_idle();
        self.at_device -= 1;
        self.pool.give_back(&mut m.held, sync);
        let slice = self.slices[tag];
        if slice == OUT_OF_TURN {
            self.end_detour(cx, group, len);
            self.update_clock(cx.now);
        } else if self.active == Some(group) {
            // A slice begins with its first completion: the seek to the group's data is not charged
            // (docs/reference/groups.md#5-slices-idling-and-expiry).
            if slice == self.slice.number && !self.slice.has_started() {
                let length = self.slice_length();
                self.slice.start(cx.now, length);
            }
            if is_idle {
                self.update_clock(cx.now);
            }
        }
        self.force(group);
    }
}
