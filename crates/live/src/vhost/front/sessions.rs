//! Sessions and rings that begin and end, as the thread of the socket commands; and rings that are woken and
//! signalled.

use super::super::command::{Command, What};
use super::super::request::Kind;
use super::rings::{GuestRing, Place, Session, find};
use super::tasks::{TASKS_EACH, task_of};
use super::{PendingRequest, VhostFront};
use crate::engine::Context;
use fairhead_core::Control;
use fairhead_core::units::GroupId;
use std::collections::VecDeque;

impl VhostFront {
    pub(super) fn obey(
        &mut self,
        context: &mut Context,
        Command { device: number, session: id, what }: Command,
    ) {
        let device = &mut self.devices[number];
        if let What::Begin = what {
            self.end(context, number);
            let Context { now, queue, groups, .. } = context;
            let device = &mut self.devices[number];
            device.served.counters.connection();
            // Where there is no more room for groups, it shares with all that have none.
            let group = groups.ensure(*now, queue, &device.served.group).unwrap_or(GroupId::ROOT);
            let client = queue.join();
            device.session = Some(Session { id, client, group, tasks: 0, rings: Vec::new() });
            return;
        }
        let Some(session) = device.session.as_mut().filter(|s| s.id == id) else { return };
        match what {
            What::Begin => {}
            What::Start(ring, setup) => {
                if session.rings.len() <= ring {
                    session.rings.resize_with(ring + 1, || None);
                }
                self.serial += 1;
                session.rings[ring] = Some(GuestRing {
                    serial: self.serial,
                    setup: *setup,
                    has_begun: false,
                    is_broken: false,
                    is_awake: false,
                    is_dirty: false,
                    waits_until: None,
                    poll: None,
                    open: 0,
                    again: VecDeque::new(),
                    held: None,
                    stopping: None,
                });
                self.begin_rings(number);
            }
            What::Call(ring, call) => {
                if let Some(Some(ring)) = session.rings.get_mut(ring) {
                    ring.setup.call = call;
                    // What was signalled to the old one may not have been heard.
                    if let Some(call) = &mut ring.setup.call {
                        call.call();
                    }
                }
            }
            What::Stop(ring, reply) => {
                if let Some(Some(guest)) = session.rings.get_mut(ring) {
                    self.to_cancel.extend(guest.poll);
                    guest.stopping = Some(reply);
                    let place = Place { device: number, ring, serial: guest.serial };
                    self.end_if_stopped(place);
                }
            }
            What::End => self.end(context, number),
        }
    }

    /// Begins with rings that wait for the requests of earlier sessions.
    pub(super) fn begin_rings(&mut self, number: usize) {
        let device = &mut self.devices[number];
        let Some(session) = device.session.as_mut().filter(|_| device.stale == 0) else { return };
        let mut begun = Vec::new();
        let new = session.rings.iter_mut().enumerate().filter_map(|(i, r)| r.as_mut().map(|r| (i, r)));
        for (i, ring) in new.filter(|(_, r)| !r.has_begun) {
            ring.has_begun = true;
            let split = &mut ring.setup.split;
            if let Some(marks) = &mut ring.setup.marks {
                ring.again = marks.begin(split.next_used()).into();
                split.set_next_available(split.next_used().wrapping_add(ring.again.len() as u16));
            }
            begun.push(Place { device: number, ring: i, serial: ring.serial });
        }
        for place in begun {
            // What is there already came without a kick that this server has heard; and so may signals that
            // the last one did not send.
            self.wake(place);
            if let Some(call) = find(&mut self.devices, place).and_then(|r| r.setup.call.as_mut()) {
                call.call();
            }
        }
    }

    /// The session of a device is over, if there is one.
    fn end(&mut self, context: &mut Context, number: usize) {
        let device = &mut self.devices[number];
        let Some(session) = device.session.take() else { return };
        self.to_cancel.extend(session.rings.iter().flatten().filter_map(|r| r.poll));
        // A flush has nothing to wait for, and who has left hears nothing of it.
        self.pending
            .retain(|_, p| p.session != session.id || p.place.device != number || p.kind != Kind::Flush);
        let is_left = |p: &&PendingRequest| p.session == session.id && p.place.device == number;
        device.open = 0;
        device.stale += self.pending.iter().map(|(_, p)| p).filter(is_left).count();
        context.queue.depart(session.client);
        for code in (0..TASKS_EACH).filter(|code| session.tasks >> code & 1 != 0) {
            let task = task_of(number, code);
            // The result does not matter: a task that the scheduler does not know has no history to drop.
            let _ = context.queue.control(context.now, Control::TaskExit(task));
        }
    }

    /// Has a ring looked at, each turn from now on.
    pub(super) fn wake(&mut self, place: Place) {
        let Some(ring) = find(&mut self.devices, place) else { return };
        if !std::mem::replace(&mut ring.is_awake, true) {
            ring.setup.split.be_quiet();
            self.awake.push(place);
        }
    }

    /// Says that a ring has stopped, if it is to stop and everything is answered.
    pub(super) fn end_if_stopped(&mut self, place: Place) {
        let Some(ring) = find(&mut self.devices, place) else { return };
        let is_done = ring.open == 0 && ring.held.is_none() && ring.again.is_empty();
        if !is_done {
            return;
        }
        let Some(reply) = ring.stopping.take() else { return };
        // The other side may have gone meanwhile.
        let _ = reply.send(ring.setup.split.next_available());
        if let Some(session) = &mut self.devices[place.device].session {
            session.rings[place.ring] = None;
        }
    }

    pub(super) fn signal(&mut self, place: Place) {
        let Some(ring) = find(&mut self.devices, place) else { return };
        ring.is_dirty = false;
        if ring.setup.split.wants_signal()
            && let Some(call) = &mut ring.setup.call
        {
            call.call();
        }
    }
}
