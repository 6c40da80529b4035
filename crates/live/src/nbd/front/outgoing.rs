//! What goes out: replies, as soon as there are any, as far as the socket takes them.

use super::parts::{data_len, part_len};
use super::{NbdFront, PendingRequest, SEND};
use crate::bio::Answer;
use crate::counters::Counted;
use crate::data::Data;
use crate::engine::Context;
use crate::nbd::connection::{Out, Sent, State};
use crate::nbd::session::{Command, Errno, Request};
use crate::ring::{Ring, Token};
use std::io;

impl NbdFront {
    pub(super) fn answered(&mut self, context: &mut Context, answer: Answer<Data>) {
        let number = answer.cookie as usize;
        // What a connection asked for that is gone may still be answered; its number may be another's.
        let is_known = self.pending.get(number).is_some_and(|a| a.identity.client == answer.client);
        if !is_known {
            return;
        }
        let mut pending = self.pending.remove(number);
        let PendingRequest { slot, export, request, began, .. } = pending;
        let result = answer.result.map_err(Errno::from);
        if matches!(request.command, Command::Trim | Command::Zero { .. }) && result.is_ok() {
            pending.done += u64::from(part_len(&request, pending.done));
            if pending.done < request.len {
                return self.submit_part(context, pending, None);
            }
        }
        let has_data = matches!(request.command, Command::Read | Command::Status { .. });
        // What was given up, or taken back, has no data, and no success either.
        let data = answer.data.filter(|_| has_data && result.is_ok());
        let result = if has_data && data.is_none() { result.and(Err(Errno::Io)) } else { result };
        let took = context.now.saturating_since(began);
        self.exports[export].counters.count(counted(&request), request.len, result.is_ok(), took);
        let c = &mut self.connections[slot];
        c.open -= 1;
        if data.is_none() {
            let len = data_len(&request);
            c.held -= len;
            self.held -= len;
            self.has_freed |= len > 0;
        }
        if c.is_held || c.is_waiting {
            self.resumed.push(slot);
        }
        let before = c.replies();
        if !c.is_sending && !c.has_output() {
            c.progress = context.now;
        }
        c.put(match data {
            Some(Data::Piped(piped)) => Out::Piped(piped, request.len),
            Some(Data::Mapped(window)) => Out::Mapped(c.session.head(&request, result), window),
            Some(Data::Extents(extents)) => Out::Bytes(c.session.status(&request, &extents)),
            data => Out::Reply(c.session.head(&request, result), data.and_then(Data::memory)),
        });
        self.replies += c.replies() - before;
        self.mark_dirty(slot);
    }

    /// Sends what there is for a connection, or forgets it.
    pub(super) fn look_at(&mut self, context: &mut Context, ring: &mut Ring, slot: usize) -> io::Result<()> {
        let Some(c) = self.connections.get_mut(slot) else { return Ok(()) };
        c.is_dirty = false;
        if c.state != State::Dead && !c.is_sending {
            self.send(context, ring, slot)?;
        }
        let c = &self.connections[slot];
        if c.starts_tls && c.state == State::Open && !c.has_output() && !c.is_sending {
            self.start_tls(context, slot);
        }
        let c = &self.connections[slot];
        if c.state == State::Finishing && c.open == 0 && !c.has_output() && !c.is_sending {
            self.end(context, slot);
        }
        self.reap(slot);
        Ok(())
    }

    /// Sends all that there is, as far as the socket takes it; the ring has the rest.
    fn send(&mut self, context: &mut Context, ring: &mut Ring, slot: usize) -> io::Result<()> {
        let token = Token::Front(slot * 4 + SEND);
        while self.connections[slot].has_output() {
            let has_others = self.connections.len() > 1;
            match self.connections[slot].send(ring, token, has_others)? {
                Sent::Now(len) => self.gone(context, slot, len),
                Sent::Later => return Ok(()),
                Sent::Broken => {
                    self.end(context, slot);
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    pub(super) fn sent(&mut self, context: &mut Context, slot: usize, result: i32) {
        let c = &mut self.connections[slot];
        c.is_sending = false;
        if c.state == State::Dead {
            return self.mark_dirty(slot);
        }
        let is_cut = -result == libc::EFAULT && c.copy_windows();
        if result < 0 && !is_cut && !matches!(-result, libc::EINTR | libc::EAGAIN) {
            return self.end(context, slot);
        }
        // Of a socket that was waited for, the outcome says no more than that it has room.
        let len = if c.is_piping() { 0 } else { result.max(0) as usize };
        self.gone(context, slot, len);
        self.mark_dirty(slot);
    }

    /// Notes that `len` bytes are in the socket.
    pub(super) fn gone(&mut self, context: &Context, slot: usize, len: usize) {
        let c = &mut self.connections[slot];
        c.progress = context.now;
        let before = c.replies();
        let freed = c.sent(len);
        c.held -= freed;
        self.held -= freed;
        self.replies -= before - c.replies();
        self.has_freed |= freed > 0 || c.replies() < before;
        if c.is_held || c.is_waiting {
            self.resumed.push(slot);
        }
    }
}

/// What a request is for the statistics.
const fn counted(request: &Request) -> Counted {
    match request.command {
        Command::Read => Counted::Read,
        Command::Write | Command::Trim | Command::Zero { .. } => Counted::Write,
        Command::Flush => Counted::Flush,
        Command::Status { .. } => Counted::Question,
    }
}
