//! What comes in: bytes from sockets, and the requests in them, as far as there is room.

use super::parts::{bio_len, data_len};
use super::{HELD_MAX, NbdFront, RECEIVE};
use crate::data::Data;
use crate::engine::Context;
use crate::nbd::connection::{Came, Out, State, Writing};
use crate::nbd::session::{Request, Step};
use crate::ring::{Ring, Token};
use std::io;

/// The server stops reading from a connection with this many bytes that are not sent.
const UNSENT_MAX: u64 = 8 << 20;

const LITTLE: u64 = 1 << 20;

/// The most headers behind large writes that are taken by calls in a row, before the disk does what they ask.
const STEPS_AT_ONCE: u32 = 4;

impl NbdFront {
    pub(super) fn received(&mut self, context: &mut Context, slot: usize, result: i32) {
        let c = &mut self.connections[slot];
        c.is_receiving = false;
        match c.state {
            State::Open if result > 0 => {
                c.heard = context.now;
                c.received(result as usize);
                if c.open > 0 {
                    context.queue.expect_more();
                }
                self.read(context, slot);
            }
            State::Open if matches!(-result, libc::EINTR | libc::EAGAIN) => self.to_receive.push(slot),
            State::Open => self.end(context, slot),
            State::Finishing | State::Dead => self.mark_dirty(slot),
        }
    }

    /// Whether the engine will poll for what the only connection sends: through the ring that takes three
    /// calls, and without it one.
    pub(super) fn stays_back(&self, context: &Context) -> bool {
        let [slot] = self.to_receive[..] else { return false };
        let c = self.connections.get(slot);
        context.polls
            && self.connections.len() == 1
            && c.is_some_and(|c| c.state == State::Open && c.is_plain())
    }

    /// Something has arrived without the ring.
    pub(super) fn came(&mut self, context: &mut Context, slot: usize) {
        let c = &mut self.connections[slot];
        c.heard = context.now;
        if c.open > 0 {
            context.queue.expect_more();
        }
        self.read(context, slot);
    }

    /// Receives more of a connection's input. What has arrived already is read, up to a limit, as the disk
    /// has to do it, too.
    pub(super) fn listen(&mut self, context: &mut Context, ring: &mut Ring, slot: usize) -> io::Result<()> {
        let has_others = self.connections.len() > 1;
        for turn in 0.. {
            let Some(c) = self.connections.get_mut(slot) else { return Ok(()) };
            if c.state != State::Open || c.is_receiving {
                return Ok(());
            }
            match c.receive(ring, Token::Front(slot * 4 + RECEIVE), turn < STEPS_AT_ONCE, has_others)? {
                Came::Later => return Ok(()),
                Came::Broken => {
                    self.end(context, slot);
                    return Ok(());
                }
                Came::NoRoom => self.use_memory(context, slot),
                Came::Now => {
                    self.came(context, slot);
                    if self.to_receive.last() != Some(&slot) {
                        return Ok(());
                    }
                    self.to_receive.pop();
                }
            }
        }
        Ok(())
    }

    /// The data of a write that are arriving do not fit its pipe.
    fn use_memory(&mut self, context: &mut Context, slot: usize) {
        let Some(w) = &mut self.connections[slot].writing else { return };
        let mut memory = self.pool.buffer(w.request.len as usize);
        let data = std::mem::replace(&mut w.data, Data::Memory(self.pool.buffer(0)));
        if data.unload(&mut memory).is_err() {
            return self.end(context, slot);
        }
        w.data = Data::Memory(memory);
    }

    /// Those who waited may have room now.
    pub(super) fn retry(&mut self, context: &mut Context) {
        if self.waiting.is_empty() {
            return;
        }
        for slot in std::mem::take(&mut self.waiting) {
            if let Some(c) = self.connections.get_mut(slot).filter(|c| c.is_waiting) {
                c.is_waiting = false;
                self.read(context, slot);
            }
        }
    }

    /// Whether there is room for the data of this request of the connection's.
    fn has_room(&self, context: &Context, slot: usize, request: &Request) -> bool {
        let c = &self.connections[slot];
        let len = data_len(request);
        let has_memory = c.held + len <= LITTLE || self.held + len <= HELD_MAX;
        has_memory && c.identity.is_none_or(|i| context.queue.has_room(i.client, bio_len(request, 0)))
    }

    fn wait_for_room(&mut self, slot: usize) {
        if !std::mem::replace(&mut self.connections[slot].is_waiting, true) {
            self.waiting.push(slot);
        }
    }

    /// Hands in all that has come.
    fn read(&mut self, context: &mut Context, slot: usize) {
        loop {
            let c = &mut self.connections[slot];
            if c.state != State::Open || c.is_receiving {
                return;
            }
            if let Some(request) = c.asked {
                if !self.has_room(context, slot, &request) {
                    return self.wait_for_room(slot);
                }
                self.connections[slot].asked = None;
                self.ask(context, slot, request);
                continue;
            }
            if let Some(Writing { request, data, .. }) = c.written() {
                self.submit(context, slot, request, Some(data));
                continue;
            }
            if c.unsent() > UNSENT_MAX {
                return self.wait_for_room(slot);
            }
            if c.identity.is_none() {
                if self.proves(slot) {
                    return self.end(context, slot);
                }
                let c = &mut self.connections[slot];
                c.session.set_access(self.exports.access(&c.peer));
            }
            let c = &mut self.connections[slot];
            let mut out = Vec::new();
            let mut session = std::mem::take(&mut c.session);
            let (taken, step) = session.step(self.exports.facts(), c.input(), &mut out);
            c.session = session;
            if step == Step::Data {
                c.take_data(taken);
            } else {
                c.take(taken);
            }
            if !out.is_empty() {
                c.put(Out::Bytes(out));
                self.mark_dirty(slot);
            }
            match step {
                Step::Next | Step::Data => {}
                Step::Wait => return self.to_receive.push(slot),
                Step::StartTls => {
                    // It came without TLS, so an attacker on the network may have sent it.
                    if !self.connections[slot].input().is_empty() {
                        return self.end(context, slot);
                    }
                    self.connections[slot].starts_tls = true;
                    return;
                }
                Step::Begin(export) => self.join(context, slot, export),
                Step::Request(request) => self.connections[slot].asked = Some(request),
                Step::Leave => {
                    self.connections[slot].state = State::Finishing;
                    self.mark_dirty(slot);
                }
                Step::Drop(_) => {
                    if let Some(export) = self.connections[slot].session.export() {
                        self.exports[export].counters.violation();
                    }
                    self.end(context, slot);
                }
            }
        }
    }
}
