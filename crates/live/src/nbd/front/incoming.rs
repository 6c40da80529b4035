//! What comes in: bytes from sockets, and the requests in them, as far as there is room.

use super::parts::{bio_len, data_len};
use super::{HELD_MAX, NbdFront, RECEIVE};
use crate::data::Data;
use crate::engine::Context;
use crate::nbd::connection::{Came, State, Writing};
use crate::nbd::session::{Command, INPUT_MAX, Request, Step};
use crate::ring::{Ring, Token};
use crate::turns::{MESSAGE, STEP, Tenant};
use fairhead_core::units::{Duration, Instant};
use std::io;

/// The server stops reading from a connection with this many bytes that are not sent, data included.
const UNSENT_MAX: u64 = 8 << 20;

/// Each connection may hold a little, whatever the others hold: all together no more than this.
const LITTLE: u64 = 1 << 20;
const LITTLE_ALL: u64 = 64 << 20;

/// Replies that are no data of reads: of all connections, in equal parts, and of one.
const REPLIES_ALL: u64 = 16 << 20;
const REPLIES_LEAST: u64 = 512;
const REPLIES_MAX: u64 = 256 << 10;

/// Memory for replies that is kept for the next.
const SCRATCH_KEPT: usize = 64 << 10;

/// How many connections that wait for memory are looked at when there is some.
const TRIES: usize = 8;

/// The cost of a thread for TLS.
const TLS: Duration = Duration::from_us(100);

/// The bytes of a reply without data.
const SHORT: usize = 16;

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

    /// Those who waited may have what they waited for.
    pub(super) fn retry(&mut self, context: &mut Context) {
        while !self.resumed.is_empty() {
            for slot in std::mem::take(&mut self.resumed) {
                let Some(c) = self.connections.get_mut(slot) else { continue };
                let was_waiting = std::mem::take(&mut c.is_waiting);
                if was_waiting {
                    // What it has by right does not depend on those before it.
                    self.waiting.retain(|&other| other != slot);
                }
                if std::mem::take(&mut self.connections[slot].is_held) || was_waiting {
                    self.read(context, slot);
                }
            }
        }
        if !std::mem::take(&mut self.has_freed) {
            return;
        }
        for _ in 0..self.waiting.len().min(TRIES) {
            let Some(slot) = self.waiting.pop_front() else { return };
            if let Some(c) = self.connections.get_mut(slot).filter(|c| c.is_waiting) {
                c.is_waiting = false;
                self.read(context, slot);
            }
        }
    }

    /// Those continue that had used up their turns.
    pub(super) fn continue_line(&mut self, context: &mut Context) {
        while let Some(slot) = self.line.next(&context.turns, context.now) {
            if let Some(c) = self.connections.get_mut(slot).filter(|c| c.is_in_line) {
                c.is_in_line = false;
                self.read(context, slot);
            }
        }
    }

    fn stand_in_line(&mut self, slot: usize, at: Instant) {
        let c = &mut self.connections[slot];
        if !std::mem::replace(&mut c.is_in_line, true) {
            self.line.push(&c.tenant, slot, at);
        }
    }

    /// The part of some memory that each connection has, whatever the others hold.
    fn part_of(&self, all: u64) -> u64 {
        all / self.connections.len().max(1) as u64
    }

    /// Whether there is memory for the data of this request of the connection's.
    fn has_memory(&self, slot: usize, request: &Request) -> bool {
        let c = &self.connections[slot];
        let len = data_len(request);
        c.held + len <= self.part_of(LITTLE_ALL).min(LITTLE) || self.held + self.replies + len <= HELD_MAX
    }

    /// It waits until others hold less.
    fn wait_for_memory(&mut self, slot: usize) -> Read {
        if !std::mem::replace(&mut self.connections[slot].is_waiting, true) {
            self.waiting.push_back(slot);
        }
        Read::Over
    }

    /// It waits until something of its own is answered, or sent.
    fn hold(&mut self, slot: usize) -> Read {
        self.connections[slot].is_held = true;
        Read::Over
    }

    /// Hands in what has come, as much as it may in this turn; the rest waits in line.
    fn read(&mut self, context: &mut Context, slot: usize) {
        let c = &self.connections[slot];
        if c.state != State::Open || c.is_receiving {
            return;
        }
        let tenant = c.tenant.clone();
        let left = match context.turns.left(&tenant, context.now, c.news > 0) {
            Ok(left) => left,
            Err(at) => return self.stand_in_line(slot, at),
        };
        let io = context.turns.io(&tenant, self.connections.len() == 1);
        let mut sum = Sum::default();
        loop {
            if sum.io + sum.other >= left || !sum.at_least.is_zero() {
                self.stand_in_line(slot, context.now);
                break;
            }
            match self.read_some(context, slot) {
                Read::More => {}
                Read::Io => {
                    sum.requests += 1;
                    sum.io += io;
                }
                Read::Other(cost, at_least) => sum.add(cost, at_least),
                Read::Over => break,
                Read::Changes(cost) => {
                    sum.add(cost, Duration::ZERO);
                    sum.settle(context, &tenant);
                    // Its account is another one from here on.
                    return self.read(context, slot);
                }
                Read::Ends(cost) => {
                    sum.add(cost, Duration::ZERO);
                    break;
                }
            }
        }
        sum.settle(context, &tenant);
    }

    /// The next of what has come.
    fn read_some(&mut self, context: &mut Context, slot: usize) -> Read {
        let c = &mut self.connections[slot];
        if let Some(request) = c.asked {
            let (client, len) = (c.identity.map(|i| i.client), bio_len(&request, 0));
            if !self.has_memory(slot, &request) {
                return self.wait_for_memory(slot);
            }
            if client.is_some_and(|client| !context.queue.has_room(client, len)) {
                return self.hold(slot);
            }
            self.connections[slot].asked = None;
            self.ask(context, slot, request);
            return Read::More;
        }
        if let Some(Writing { request, data, .. }) = c.written() {
            self.submit(context, slot, request, Some(data));
            return Read::More;
        }
        let most = self.part_of(REPLIES_ALL).clamp(REPLIES_LEAST, REPLIES_MAX);
        let c = &mut self.connections[slot];
        if c.unsent() > UNSENT_MAX || c.replies() > most {
            return self.hold(slot);
        }
        if c.identity.is_none() {
            // Long lists beyond every part. Data that others hold keep no newcomer out.
            if self.replies > 2 * REPLIES_ALL {
                return self.wait_for_memory(slot);
            }
            if self.proves(slot) {
                self.end(context, slot);
                return Read::Over;
            }
            self.look_up_access(slot);
        }
        self.step(context, slot)
    }

    /// What it may choose, if that has changed.
    fn look_up_access(&mut self, slot: usize) {
        let c = &mut self.connections[slot];
        let version = Some(self.exports.version());
        if c.access_seen != version {
            c.session.set_access(self.exports.access(&c.peer));
            c.access_seen = version;
        }
    }

    /// The next step of the protocol.
    fn step(&mut self, context: &mut Context, slot: usize) -> Read {
        let Self { connections, exports, scratch, .. } = self;
        let c = &mut connections[slot];
        scratch.clear();
        let (taken, step) = c.step(exports.facts(), scratch);
        let said = scratch.len();
        if said > 0 {
            let before = c.replies();
            c.put_bytes(scratch);
            self.replies += c.replies() - before;
            scratch.shrink_to(SCRATCH_KEPT);
            self.mark_dirty(slot);
        }
        let c = &mut self.connections[slot];
        let (cost, cost_of_flush) = (cost(taken, said), cost(taken, SHORT));
        match step {
            Step::Data => Read::More,
            Step::Next => {
                // What passes by is part of a message that was or will be counted.
                let is_whole = said > 0;
                c.did(false);
                let limited = c.identity.filter(|_| is_whole).map(|i| i.group);
                Read::Other(cost, limited.map_or(Duration::ZERO, |group| context.least_time(group)))
            }
            Step::Wait => {
                self.to_receive.push(slot);
                Read::Over
            }
            Step::StartTls => {
                // It came without TLS, so an attacker on the network may have sent it.
                if c.input().is_empty() {
                    c.starts_tls = true;
                } else {
                    self.end(context, slot);
                }
                Read::Ends(TLS)
            }
            Step::Begin(export) => {
                self.join(context, slot, export);
                Read::Changes(cost)
            }
            Step::Request(request) => {
                c.did(true);
                c.asked = Some(request);
                let is_flush = request.command == Command::Flush;
                match c.identity.filter(|i| is_flush && context.queue.flushes_enough(i.client)) {
                    // For limits, flushes that wait together are one.
                    Some(_) => Read::Other(cost_of_flush, Duration::ZERO),
                    None => Read::Io,
                }
            }
            Step::Leave => {
                c.state = State::Finishing;
                self.mark_dirty(slot);
                Read::Ends(cost)
            }
            Step::Drop(_) => {
                if let Some(export) = c.session.export() {
                    self.exports[export].counters.violation();
                }
                self.end(context, slot);
                Read::Ends(cost)
            }
        }
    }
}

/// What became of the next of what has come.
enum Read {
    /// Nothing that costs much; there may be more.
    More,
    /// A request for the disk.
    Io,
    /// A step that is none, what it cost, and the time that limits have it take.
    Other(Duration, Duration),
    /// There is no more for now.
    Over,
    /// The connection has another tenant.
    Changes(Duration),
    /// The last step for now, and what it cost.
    Ends(Duration),
}

/// What a connection did in a turn.
#[derive(Debug, Default)]
struct Sum {
    /// Requests for the disk, and what they used of the turn.
    requests: u64,
    io: Duration,
    other: Duration,
    at_least: Duration,
}

impl Sum {
    fn add(&mut self, cost: Duration, at_least: Duration) {
        if self.other.is_zero() {
            self.other += MESSAGE;
        }
        self.other += cost;
        self.at_least += at_least;
    }

    fn settle(&self, context: &mut Context, tenant: &Tenant) {
        context.use_up(tenant, self.requests, self.io);
        if !self.other.is_zero() {
            context.charge(tenant, self.other, self.at_least);
        }
    }
}

/// The cost of a step by the bytes that it took and said: eight nanoseconds each. Bytes that only pass by
/// cost one.
fn cost(taken: usize, said: usize) -> Duration {
    match said {
        0 => Duration::from_ns(taken as u64) + STEP,
        _ => Duration::from_ns(8 * (taken.min(INPUT_MAX) + said) as u64) + STEP,
    }
}
