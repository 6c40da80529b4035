//! When the disk waits for a group that has nothing to send right now.
//!
//! A group that runs empty loses its place, though its reader may only look at what it has read before it
//! asks for more. With weights 2:1 and a pause of 2 ms after each request, the heavier group would get one
//! request for each slice of the other. So the disk waits for it, at most `group_idle`, if its pauses are not
//! longer than that in the mean. Its slice may be over meanwhile: then the next request ends the wait, and
//! the group goes back among the others *with* something to do.
//!
//! A *pause* is from when the group has no request left, waiting or at the device, to its next. While it has
//! requests at the device that it would be waited for after, no other group is let in, either.
//!
//! Nothing waits for a group whose last task has exited, that was removed, or that has only async writes; nor
//! on flash that queues requests, unless `fairness` says so. The think times are those of whole groups: what
//! a scheduler knows of tasks is its own business, and it idles for these as always.
//!
//= docs/reference/groups.md#5-slices-idling-and-expiry group idling
//= linux-2.6.33 block/cfq-iosched.c cfq_should_wait_busy; linux-4.20 cfq_arm_slice_timer (group_idle)

use super::{Divisible, Fair};
use crate::elevator::Cx;
use crate::trace::Reason;
use crate::units::{GroupId, Instant};

impl<S: Divisible> Fair<S> {
    /// Whether to wait for the next request of a group that has none waiting; and until when, unless for one
    /// at the device.
    pub(super) fn awaits(&self, group: GroupId, now: Instant) -> Option<Option<Instant>> {
        let m = &self.members[group];
        let idle = self.config.layer.group_idle;
        let pays = (m.was_sync && !self.is_fast) || self.config.layer.fairness > 0;
        if idle.is_zero() || !pays || m.has_exited || m.is_gone || m.think.exceeds(idle) {
            return None;
        }
        if m.at_device > 0 {
            return Some(None);
        }
        let until = m.think.last_end().map_or(now, |end| end + idle);
        (now < until).then_some(Some(until))
    }

    /// The disk waits for the group that has it.
    #[inline(never)]
    pub(super) fn idle(&mut self, cx: &mut Cx<'_>, group: GroupId) {
        if self.at_device == 0 {
            cx.books.groups.idles(cx.now);
        }
        if !core::mem::replace(&mut self.slice.is_idling, true) {
            cx.note(Reason::GroupIdle, self.members[group].task);
        }
    }

    /// It waits no more.
    #[inline]
    pub(super) fn stop_idling(&mut self, cx: &mut Cx<'_>) {
        if core::mem::replace(&mut self.slice.is_idling, false) {
            cx.books.groups.idled(cx.now);
        }
    }
}
