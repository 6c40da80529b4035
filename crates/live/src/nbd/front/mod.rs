//! NBD on the engine's ring: sockets, and between them and the queue the [sessions](super::session).
//!
//! ```text
//!   RECV ─► input ─► Session ─► bios ─► RequestQueue
//!                                           │ answers
//!   sendmsg ◄── up to 256 parts a turn ◄────┘
//! ```
//!
//! All complete requests of what came in one go are submitted before more is received, and all replies of a
//! turn go out in one message for each connection, at once as far as its socket takes them: by a call, since
//! a client waits for it, and an outcome in the ring would only wake the engine. Where there are several
//! connections, a worker of the ring sends long messages, so that no client waits for the copying of another
//! one's data. The server stops reading from a connection that has no room: because of what it has in the
//! queue, because it does not read its replies, or because all together hold too much. A client that keeps
//! the server waiting is dropped: a handshake takes ten seconds at most, and half a minute without progress
//! ends a connection that does not read its replies or does not send the data that it has announced. If
//! memory is scarce, that time is shorter. A client that has hung up takes with it what it asked for and was
//! not read within two seconds. If all places are taken, a newcomer gets that of the oldest handshake, or of
//! a client that has more than others (`peer/`).
//!
//! While the engine polls, requests of the only connection are received by calls that do not block; the ring
//! gets a receive only before the engine sleeps.
//!
//! A connection that ends takes what it asked for with it ([`leave`](crate::RequestQueue::leave)); if it says
//! so first, it gets what it asked for.
//!
//! What a client asks for that is no I/O is bounded by [turns](crate::turns).
//!
//! | file | what it has |
//! |---|---|
//! | `coming.rs`, `listener.rs` | connections that come and go |
//! | `incoming.rs` | from bytes to requests |
//! | `requests.rs`, `parts.rs` | from requests to bios |
//! | `outgoing.rs` | from answers to bytes |
//! | `orders.rs` | what other threads ask for |

mod coming;
mod incoming;
mod listener;
mod orders;
mod outgoing;
mod parts;
mod requests;

use super::connection::{Connection, Identity, State};
use super::export_table::ExportTable;
use super::session::Request;
use super::tls::Tls;
use crate::bio::Answer;
use crate::buffer::Pool;
use crate::data::Data;
use crate::engine::{Context, Front};
use crate::pipes::Pipes;
use crate::ring::{Outcome, Ring};
use crate::turns::Line;
use fairhead_core::units::{Duration, Instant};
pub(super) use listener::Listener;
use slab::Slab;
use std::collections::VecDeque;
use std::io;
use std::net::Shutdown;
use std::sync::{Arc, mpsc};

/// How often it is checked who keeps the server waiting.
const TICK: Duration = Duration::from_secs(1);
/// Above this many bytes that all connections hold together, the server stops reading from each that holds
/// more than a little.
const HELD_MAX: u64 = 256 << 20;

/// Operation ids in the ring: `4 * slot + kind`, with the slot of a connection or listener and one of these
/// kinds.
const RECEIVE: usize = 0;
const SEND: usize = 1;
const ACCEPT: usize = 2;

/// What another thread wants done between two turns.
pub(super) type Order = Box<dyn FnOnce(&mut NbdFront, &mut Context) + Send>;

/// A request that is not answered.
#[derive(Debug)]
struct PendingRequest {
    slot: usize,
    identity: Identity,
    export: usize,
    request: Request,
    /// How much of it is done, if it is done in parts.
    done: u64,
    began: Instant,
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct NbdFront {
    exports: ExportTable,
    /// What other threads want done; none any more once the engine has stopped.
    orders: Option<mpsc::Receiver<Order>>,
    /// The [version](crate::groups::GroupTable::version) of the groups that the connections have.
    groups_seen: u64,
    listeners: Vec<(Listener, bool)>,
    tls: Option<Tls>,
    connections_max: usize,
    per_peer_max: usize,
    pool: Arc<Pool>,
    pipes: Arc<Pipes>,
    connections: Slab<Connection>,
    pending: Slab<PendingRequest>,
    /// Connections that want to receive, have something to send, wait for memory, may have what they
    /// waited for, and wait for their tenants' turns.
    to_receive: Vec<usize>,
    dirty: Vec<usize>,
    waiting: VecDeque<usize>,
    resumed: Vec<usize>,
    line: Line,
    /// Memory that data hold, and replies; and whether it has become less.
    held: u64,
    replies: u64,
    has_freed: bool,
    /// The most connections that there were, and where short replies are made.
    most: usize,
    scratch: Vec<u8>,
    tick: Option<Instant>,
    /// No connection is accepted before the next tick: the process has no room for another file.
    is_resting: bool,
    is_stopping: bool,
    /// Whether the accepts that were pending when it began to stop have been taken back.
    has_cancelled: bool,
}

impl NbdFront {
    pub(super) fn new(
        exports: ExportTable,
        orders: mpsc::Receiver<Order>,
        listeners: Vec<Listener>,
        tls: Option<Tls>,
        (connections_max, per_peer_max): (usize, usize),
        pool: Arc<Pool>,
    ) -> Self {
        Self {
            exports,
            orders: Some(orders),
            groups_seen: 0,
            listeners: listeners.into_iter().map(|l| (l, false)).collect(),
            tls,
            connections_max,
            per_peer_max,
            pool,
            pipes: Arc::default(),
            connections: Slab::new(),
            pending: Slab::new(),
            to_receive: Vec::new(),
            dirty: Vec::new(),
            waiting: VecDeque::new(),
            resumed: Vec::new(),
            line: Line::default(),
            held: 0,
            replies: 0,
            has_freed: false,
            most: 0,
            scratch: Vec::new(),
            tick: None,
            is_resting: false,
            is_stopping: false,
            has_cancelled: false,
        }
    }
}

impl Front for NbdFront {
    fn begin(&mut self, context: &mut Context, ring: &mut Ring) -> io::Result<()> {
        self.exports.begin(context);
        self.accept_all(ring)
    }

    fn begin_turn(&mut self, context: &mut Context) {
        self.continue_line(context);
    }

    fn outcome(
        &mut self,
        context: &mut Context,
        _: &mut Ring,
        number: usize,
        outcome: Outcome,
    ) -> io::Result<()> {
        let (slot, kind) = (number / 4, number % 4);
        match kind {
            ACCEPT => self.accepted(context, slot, outcome.result),
            SEND => self.sent(context, slot, outcome.result),
            _ => self.received(context, slot, outcome.result),
        }
        self.retry(context);
        Ok(())
    }

    fn answer(&mut self, context: &mut Context, answer: Answer<Data>) {
        self.answered(context, answer);
        self.retry(context);
    }

    fn turn(&mut self, context: &mut Context, ring: &mut Ring) -> io::Result<()> {
        if self.tick.is_some_and(|at| at <= context.now) {
            self.look_at_clock(context);
        }
        while let Some(order) = self.orders.as_ref().and_then(|orders| orders.try_recv().ok()) {
            order(self, context);
        }
        while !self.dirty.is_empty() {
            for slot in std::mem::take(&mut self.dirty) {
                self.look_at(context, ring, slot)?;
            }
            self.retry(context);
        }
        if self.exports.has_closing() {
            self.exports.let_go(context);
        }
        if !self.stays_back(context) {
            self.rest(context, ring)?;
        }
        if self.is_stopping {
            self.cancel_accepts(ring)?;
        } else {
            self.accept_all(ring)?;
        }
        let ticks = self.is_resting || !self.connections.is_empty() || self.has_shrunk();
        if self.tick.is_none() && ticks {
            self.tick = Some(context.now + TICK);
        }
        Ok(())
    }

    fn poll(&mut self, context: &mut Context) -> bool {
        let [slot] = self.to_receive[..] else { return false };
        let has_come = self.connections.get_mut(slot).is_some_and(Connection::receive_some);
        if has_come {
            self.to_receive.clear();
            self.came(context, slot);
        }
        has_come
    }

    fn rest(&mut self, context: &mut Context, ring: &mut Ring) -> io::Result<()> {
        while let Some(slot) = self.to_receive.pop() {
            self.listen(context, ring, slot)?;
        }
        Ok(())
    }

    fn next_timer(&self) -> Option<Instant> {
        [self.tick, self.line.next_timer()].into_iter().flatten().min()
    }

    fn stop(&mut self, _: &mut Context) {
        self.is_stopping = true;
        let slots: Vec<usize> = self.connections.iter().map(|(slot, _)| slot).collect();
        for slot in slots {
            let c = &mut self.connections[slot];
            if c.state == State::Open {
                c.state = State::Finishing;
                c.socket.shutdown(Shutdown::Read);
            }
            self.mark_dirty(slot);
        }
    }

    fn hang_up(&mut self) {
        self.connections.iter().for_each(|(_, c)| c.socket.shutdown(Shutdown::Both));
        // What a stuck disk keeps in memory does not listen.
        self.listeners.retain(|(_, is_accepting)| *is_accepting);
        // A thread that waits for an answer gets an error.
        self.orders = None;
    }

    fn is_quiet(&self) -> bool {
        self.connections.is_empty() && self.listeners.iter().all(|(_, is_accepting)| !is_accepting)
    }
}

impl NbdFront {
    /// The connection is to be looked at, at the end of the turn.
    fn mark_dirty(&mut self, slot: usize) {
        if !std::mem::replace(&mut self.connections[slot].is_dirty, true) {
            self.dirty.push(slot);
        }
    }
}

#[cfg(test)]
mod long_writes;
#[cfg(test)]
mod neighbours;
#[cfg(test)]
mod tests;
