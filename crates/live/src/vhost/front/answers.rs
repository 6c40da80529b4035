//! What goes back to guests: answers, by the used ring.

use super::super::request::{Kind, Status};
use super::rings::find;
use super::{COOKIE, PendingRequest, VhostFront};
use crate::bio::Answer;
use crate::counters::Counted;
use crate::data::Data;
use crate::engine::Context;
use crate::guest_data::scatter;

impl VhostFront {
    pub(super) fn answered(&mut self, context: &mut Context, answer: Answer<Data>) {
        let key = (answer.cookie & !COOKIE) as usize;
        let Some(pending) = self.pending.get_mut(key).filter(|p| p.client == answer.client) else { return };
        pending.open -= 1;
        pending.has_failed |= answer.result.is_err();
        if !pending.parts.is_empty() {
            match answer.data.and_then(Data::memory).filter(|_| answer.result.is_ok()) {
                // SAFETY: the parts are in the memory, which the request keeps.
                Some(buffer) => unsafe { scatter(&buffer, &pending.parts) },
                None => pending.has_failed = true,
            }
        }
        if pending.open > 0 {
            return;
        }
        let pending = self.pending.remove(key);
        let status = if pending.has_failed { Status::IoError } else { Status::Ok };
        self.finish(context, pending, status);
    }

    /// Gives a request back to the guest.
    pub(super) fn finish(&mut self, context: &mut Context, pending: PendingRequest, status: Status) {
        let PendingRequest { place, session, head, kind, bytes, began, .. } = pending;
        let device = &mut self.devices[place.device];
        let counted = match kind {
            Kind::Read => Counted::Read,
            Kind::Write | Kind::Discard | Kind::Zero => Counted::Write,
            Kind::Flush => Counted::Flush,
            Kind::Id => Counted::Question,
        };
        let took = context.now.saturating_since(began);
        device.served.counters.count(counted, bytes, status == Status::Ok, took);
        if device.session.as_ref().is_none_or(|s| s.id != session) {
            device.stale -= 1;
            if device.stale == 0 {
                self.begin_rings(place.device);
            }
            return;
        }
        device.open -= 1;
        let Some(ring) = find(&mut self.devices, place) else { return };
        ring.open -= 1;
        if !ring.is_broken {
            // SAFETY: the place is in the memory, which the request has kept until here.
            unsafe { scatter(&[status as u8], &[pending.status]) };
            let has_data = status == Status::Ok && matches!(kind, Kind::Read | Kind::Id);
            let written = 1 + if has_data { bytes as u32 } else { 0 };
            if let Some(marks) = &ring.setup.marks {
                marks.gives_back(head);
            }
            ring.setup.split.give_back(head, written);
            if let Some(marks) = &ring.setup.marks {
                marks.gave_back(head, ring.setup.split.next_used());
            }
            if !std::mem::replace(&mut ring.is_dirty, true) {
                self.dirty.push(place);
            }
        }
        self.end_if_stopped(place);
    }
}
