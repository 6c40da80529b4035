//! What the controller keeps of each group.

use super::reserve::Clock;
use crate::parts::think_time::ThinkTime;
use crate::units::{Duration, Instant, TaskId};

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
    /// Whether somebody waited for its last request.
    pub(super) was_sync: bool,
    /// Who sent its last request, and has exited since.
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
    pub(super) fn arrived(&mut self, now: Instant, sync: bool, task: TaskId, idle: Duration) -> bool {
        if self.is_idle() && self.think.last_end().is_some() {
            self.think.arrived(now, idle);
        }
        self.held[usize::from(sync)] += 1;
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
    pub(super) fn completed(&mut self, now: Instant, sync: bool) {
        self.at_device -= 1;
        self.held[usize::from(sync)] -= 1;
        if self.is_idle() {
            self.think.completed(now);
        }
    }

    /// Whether it has no requests.
    pub(super) const fn is_idle(&self) -> bool {
        self.queued == 0 && self.at_device == 0
    }
}
