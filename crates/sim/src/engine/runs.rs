//! When queues are run: at once after an insertion, or by an event that is armed here.
//!
//! ```text
//!   insertion ─────────────────────► run ─┬─ the lock is held ──────► RunQueue, when it is free
//!   completion, timer ─┬─ single-queue ─►─┤  requests were held back ─► DelayedRun, after two ticks
//!                      └─ multi-queue ─► Worker, if the queue asks    the plug is in ──────────► Unplug, after 3 ms
//! ```
//!
//! Of each kind one event at most is armed for a queue.

use super::clock::Clock;
use super::disks::{Disks, bits};
use crate::event::Due;
use crate::host::Plug;

impl Disks<'_> {
    /// Runs the queues that have been handed something.
    pub(super) fn run_touched(&mut self, clock: &mut Clock) {
        for member in bits(self.take_touched()) {
            self.run_member(clock, member);
        }
    }

    /// Runs a queue, and arms what is to run it later.
    pub(super) fn run_member(&mut self, clock: &mut Clock, member: usize) {
        let again = self.run(clock.now, member);
        if let Some(at) = again.filter(|_| !self.coming[member].run) {
            self.coming[member].run = true;
            clock.schedule(at, Due::RunQueue(number(member)));
        }
        if self.queue(member).wants_later_run() {
            self.arm_later_run(clock, member);
        }
    }

    /// Arms what is to run a queue that holds requests back.
    #[inline(never)]
    fn arm_later_run(&mut self, clock: &mut Clock, member: usize) {
        if let Some(layer) = self.queue(member).layer()
            && self.queue(member).wants_delayed_run()
            && !self.coming[member].delayed
        {
            self.coming[member].delayed = true;
            clock.schedule(layer.delayed_run(clock.now), Due::DelayedRun(number(member)));
        }
        if self.queue(member).is_plugged() && !self.coming[member].unplug {
            self.coming[member].unplug = true;
            clock.after(Plug::DELAY, Due::Unplug(number(member)));
        }
    }

    /// Something has happened to a queue that is no insertion. In the single-queue layer that runs the queue
    /// at once; in the multi-queue layer a worker does it, if the queue asks for it.
    pub(super) fn run_if_wanted(&mut self, clock: &mut Clock, member: usize) {
        let Some(layer) = self.queue(member).layer() else { return self.run_member(clock, member) };
        if self.queue(member).wants_run() && !self.coming[member].worker {
            self.coming[member].worker = true;
            clock.after(layer.worker, Due::Worker(number(member)));
        }
    }

    /// Something has happened to all queues that is no insertion.
    pub(super) fn run_all_if_wanted(&mut self, clock: &mut Clock) {
        (0..usize::from(self.members())).for_each(|member| self.run_if_wanted(clock, member));
    }

    /// A run that was armed is due.
    pub(super) fn run_due(&mut self, clock: &mut Clock, due: Due, member: u8) {
        let member = usize::from(member);
        let coming = &mut self.coming[member];
        match due {
            Due::Unplug(_) => coming.unplug = false,
            Due::RunQueue(_) => coming.run = false,
            Due::Worker(_) => coming.worker = false,
            Due::DelayedRun(_) => coming.delayed = false,
            other => unreachable!("{other:?} runs no queue"),
        }
        if matches!(due, Due::Unplug(_)) {
            self.queue_mut(member).unplug(clock.now);
        }
        self.run_member(clock, member);
    }
}

#[allow(clippy::cast_possible_truncation, reason = "64 at most")]
const fn number(member: usize) -> u8 {
    member as u8
}
