//! NBD on the engine's ring: sockets, and between them and the queue the [`Session`]s.
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
//! memory is scarce, that time is shorter. If all places are taken, a newcomer gets that of the oldest
//! handshake, or of a client that has more than others (`peer.rs`).
//!
//! While the engine polls, requests of the only connection are received by calls that do not block; the ring
//! gets a receive only before the engine sleeps.
//!
//! A connection that ends takes what it asked for with it ([`leave`](crate::RequestQueue::leave)); if it says
//! so first, it gets what it asked for.

use super::connection::{
    Came, Connection, Identity, Out, STRAIGHT, Sent, Socket, SocketKind, State, Writing,
};
use super::export_table::ExportTable;
use super::peer::{Holder, Owner, Peer, gives_way};
use super::session::{Command, Errno, Request, Session, Step};
use super::tls::{Tls, TlsMode};
use crate::bio::{Answer, Bio, Op};
use crate::buffer::Pool;
use crate::data::Data;
use crate::engine::{Context, Front};
use crate::extents::{EXTENTS_MAX, Question};
use crate::pipes::Pipes;
use crate::ring::{LARGE, LONG, Outcome, Ring, Token};
use fairhead_core::Control;
use fairhead_core::units::{Duration, Instant, Sector, TaskId};
use io_uring::opcode::Accept;
use io_uring::types::Fd;
use slab::Slab;
use std::collections::BTreeMap;
use std::io;
use std::net::{Shutdown, TcpListener};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixListener;
use std::sync::{Arc, mpsc};

/// The longest handshake; then the connection ends.
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);
/// The longest time without progress of a client that has replies to read, or data of a write to send.
const UNREAD_MAX: Duration = Duration::from_secs(30);
/// [`UNREAD_MAX`] while other connections need the memory.
const CROWDED_MAX: Duration = Duration::from_secs(4);
/// How often these times are checked.
const TICK: Duration = Duration::from_secs(1);
/// The server stops reading from a connection with this many bytes that are not sent.
const UNSENT_MAX: u64 = 8 << 20;
/// Above this many bytes that all connections hold together, the server stops reading from each that holds
/// more than a little.
const HELD_MAX: u64 = 256 << 20;
const LITTLE: u64 = 1 << 20;
/// The cost of a question about block status, in bytes that are read: a block of the file system's metadata.
const STATUS_COST: u32 = 4096;

/// The most bytes of a discard, of zeroing or of a question that are done at a time. What is longer is done
/// part by part, so that a client has no more in the queue than with short headers.
const PART_MAX: u64 = 1 << 30;

/// The most headers behind large writes that are taken by calls in a row, before the disk does what they ask.
const STEPS_AT_ONCE: u32 = 4;

/// Operation ids in the ring: `4 * slot + kind`, with the slot of a connection or listener and one of these
/// kinds.
const RECEIVE: usize = 0;
const SEND: usize = 1;
const ACCEPT: usize = 2;

/// Tasks of connections begin here; those of the library's clients at 1.
const TASKS: u32 = 1 << 30;

/// A socket that is listened on.
#[derive(Debug)]
pub(super) enum Listener {
    Unix(UnixListener),
    Tcp(TcpListener),
    Vsock(OwnedFd),
}

impl Listener {
    fn fd(&self) -> RawFd {
        match self {
            Self::Unix(l) => l.as_raw_fd(),
            Self::Tcp(l) => l.as_raw_fd(),
            Self::Vsock(l) => l.as_raw_fd(),
        }
    }

    const fn kind(&self) -> SocketKind {
        match self {
            Self::Unix(_) => SocketKind::Unix,
            Self::Tcp(_) => SocketKind::Tcp,
            Self::Vsock(_) => SocketKind::Vsock,
        }
    }
}

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
    /// Connections that want to receive, that have something to send, and that wait for room.
    to_receive: Vec<usize>,
    dirty: Vec<usize>,
    waiting: Vec<usize>,
    held: u64,
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
            waiting: Vec::new(),
            held: 0,
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
        if self.tick.is_none() && (self.is_resting || !self.connections.is_empty()) {
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
        self.tick
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

/// Coming and going.
impl NbdFront {
    fn accept_all(&mut self, ring: &mut Ring) -> io::Result<()> {
        if self.is_resting {
            return Ok(());
        }
        for (i, (listener, is_accepting)) in self.listeners.iter_mut().enumerate().filter(|(_, l)| !l.1) {
            let accept = Accept::new(Fd(listener.fd()), std::ptr::null_mut(), std::ptr::null_mut());
            let accept = accept.flags(libc::SOCK_CLOEXEC).build();
            *is_accepting = true;
            // SAFETY: it names no memory.
            unsafe { ring.push(accept, Token::Front(i * 4 + ACCEPT))? };
        }
        Ok(())
    }

    /// Takes the pending accepts back, once. The sockets stay as they are: a service manager that passed one
    /// listens on it for the next server.
    fn cancel_accepts(&mut self, ring: &mut Ring) -> io::Result<()> {
        if std::mem::replace(&mut self.has_cancelled, true) {
            return Ok(());
        }
        let pending = self.listeners.iter().enumerate().filter(|(_, (_, is_accepting))| *is_accepting);
        pending.map(|(i, _)| i * 4 + ACCEPT).try_for_each(|number| ring.cancel(Token::Front(number)))
    }

    fn accepted(&mut self, context: &mut Context, listener: usize, result: i32) {
        self.listeners[listener].1 = false;
        if result < 0 {
            self.is_resting = true;
            return;
        }
        // SAFETY: the kernel has just made it for us.
        let fd = unsafe { OwnedFd::from_raw_fd(result) };
        if self.is_stopping {
            return;
        }
        let socket = Socket::new(fd, self.listeners[listener].0.kind());
        let peer = socket.peer();
        // What is not put away is closed.
        if self.count_of(&peer.owner) >= self.per_peer_max {
            return;
        }
        let all = self.connections.iter().filter(|(_, c)| c.state != State::Dead).count();
        if all >= self.connections_max {
            let Some(slot) = self.gives_way(context.now, &peer) else { return };
            self.end(context, slot);
        }
        let mut connection = Connection::new(socket, peer, context.now);
        let mode = self.tls.as_ref().map_or(TlsMode::Off, |tls| tls.mode);
        connection.session = Session::new().with_tls(mode);
        connection.put(Out::Bytes(Session::greeting()));
        let slot = self.connections.insert(connection);
        self.mark_dirty(slot);
        self.to_receive.push(slot);
    }

    /// The connection that gives its place to a newcomer: the oldest handshake, or one of a client that has
    /// more than the newcomer.
    fn gives_way(&self, now: Instant, newcomer: &Peer) -> Option<usize> {
        let all = || self.connections.iter().filter(|(_, c)| c.state == State::Open);
        let handshakes = all().filter(|(_, c)| c.identity.is_none());
        if let Some((oldest, _)) = handshakes.min_by_key(|(_, c)| c.began) {
            return Some(oldest);
        }
        let holders = all().map(|(slot, c)| Holder {
            slot,
            peer: &c.peer,
            is_idle: c.open == 0 && c.writing.is_none() && !c.has_output(),
            silent: now.saturating_since(c.heard).as_ns(),
        });
        let holders: Vec<Holder<'_>> = holders.collect();
        gives_way(&holders, newcomer)
    }

    /// The connection is to be looked at, at the end of the turn.
    fn mark_dirty(&mut self, slot: usize) {
        if !std::mem::replace(&mut self.connections[slot].is_dirty, true) {
            self.dirty.push(slot);
        }
    }

    /// Nothing is done any more for this connection.
    fn end(&mut self, context: &mut Context, slot: usize) {
        let c = &mut self.connections[slot];
        if std::mem::replace(&mut c.state, State::Dead) == State::Dead {
            return;
        }
        c.socket.shutdown(Shutdown::Both);
        self.held -= c.held;
        if let Some(identity) = c.identity {
            context.queue.leave(context.now, identity.client);
            // The result does not matter: a task that the scheduler does not know has no history to drop.
            let _ = context.queue.control(context.now, Control::TaskExit(identity.task));
            self.pending.retain(|_, a| a.slot != slot);
            if let Some(export) = self.connections[slot].session.export() {
                self.exports.ended(export);
            }
        }
        self.mark_dirty(slot);
    }

    /// Forgets it, if the kernel has.
    fn reap(&mut self, slot: usize) {
        let c = &self.connections[slot];
        if c.state == State::Dead && !c.is_receiving && !c.is_sending && !c.is_dirty {
            let c = self.connections.remove(slot);
            if let Some(export) = c.session.export().filter(|_| c.identity.is_some()) {
                self.exports.forgotten(export);
            }
        }
    }

    fn look_at_clock(&mut self, context: &mut Context) {
        let is_crowded = self.held + u64::from(super::TRANSFER_MAX) > HELD_MAX;
        let most = if is_crowded { CROWDED_MAX } else { UNREAD_MAX };
        let is_late = |c: &Connection| {
            let handshakes = c.state == State::Open && c.identity.is_none();
            let writes = c.is_receiving && c.writing.is_some();
            handshakes && context.now.saturating_since(c.began) > HANDSHAKE_MAX
                || c.is_sending && context.now.saturating_since(c.progress) > most
                || writes && context.now.saturating_since(c.heard) > most
        };
        let late: Vec<usize> =
            self.connections.iter().filter(|(_, c)| is_late(c)).map(|(slot, _)| slot).collect();
        late.into_iter().for_each(|slot| self.end(context, slot));
        (self.tick, self.is_resting) = (None, false);
    }
}

/// What other threads ask for.
impl NbdFront {
    /// Returns the clients of an export, and how many connections each has.
    pub(super) fn peers_of(&self, export: usize) -> BTreeMap<String, usize> {
        let open = self.connections.iter().filter(|(_, c)| c.state != State::Dead && c.identity.is_some());
        let mut peers = BTreeMap::new();
        for (_, c) in open.filter(|(_, c)| c.session.export() == Some(export)) {
            *peers.entry(c.peer.owner.to_string()).or_insert(0) += 1;
        }
        peers
    }

    pub(super) const fn exports(&mut self) -> &mut ExportTable {
        &mut self.exports
    }

    /// Ends all connections of an export.
    pub(super) fn end_all_of(&mut self, context: &mut Context, export: usize) {
        let is_one = |c: &Connection| c.identity.is_some() && c.session.export() == Some(export);
        let slots: Vec<usize> =
            self.connections.iter().filter(|(_, c)| is_one(c)).map(|(slot, _)| slot).collect();
        slots.into_iter().for_each(|slot| self.end(context, slot));
    }

    /// Whether a client of these exports has begun to change bytes behind `end`: the disk is at it, or its
    /// data are on their way.
    pub(super) fn changes_behind(&self, context: &Context, exports: &[usize], end: u64) -> bool {
        let reaches = |request: &Request| request.offset.saturating_add(request.len) > end;
        let is_one = |c: &Connection| c.session.export().is_some_and(|export| exports.contains(&export));
        let comes = |c: &Connection| {
            let writing = c.writing.as_ref().map(|w| w.request);
            let asked = c.asked.filter(|request| !matches!(request.command, Command::Read));
            writing.is_some_and(|w| reaches(&w)) || asked.is_some_and(|asked| reaches(&asked))
        };
        let open = self.connections.iter().filter(|(_, c)| c.state != State::Dead);
        open.map(|(_, c)| c).any(|c| is_one(c) && comes(c))
            || exports.iter().any(|&export| context.queue.changes_behind(self.exports[export].file, end))
    }
}

/// What comes in.
impl NbdFront {
    fn received(&mut self, context: &mut Context, slot: usize, result: i32) {
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
    fn stays_back(&self, context: &Context) -> bool {
        let [slot] = self.to_receive[..] else { return false };
        let c = self.connections.get(slot);
        context.polls
            && self.connections.len() == 1
            && c.is_some_and(|c| c.state == State::Open && c.is_plain())
    }

    /// Something has arrived without the ring.
    fn came(&mut self, context: &mut Context, slot: usize) {
        let c = &mut self.connections[slot];
        c.heard = context.now;
        if c.open > 0 {
            context.queue.expect_more();
        }
        self.read(context, slot);
    }

    /// Receives more of a connection's input. What has arrived already is read, up to a limit, as the disk
    /// has to do it, too.
    fn listen(&mut self, context: &mut Context, ring: &mut Ring, slot: usize) -> io::Result<()> {
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
    fn retry(&mut self, context: &mut Context) {
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

    fn start_tls(&mut self, context: &mut Context, slot: usize) {
        let c = &mut self.connections[slot];
        c.starts_tls = false;
        match self.tls.as_ref().map(|tls| c.start_tls(tls)) {
            Some(Ok(())) => self.to_receive.push(slot),
            _ => self.end(context, slot),
        }
    }

    /// Learns who a client is that has begun TLS. Returns whether it has too many connections.
    fn proves(&mut self, slot: usize) -> bool {
        let c = &mut self.connections[slot];
        let Some(certificate) = c.secured.as_ref().and_then(|secured| secured.get()).cloned() else {
            return false;
        };
        c.secured = None;
        let Some(certificate) = certificate else { return false };
        c.peer.proves(certificate);
        let owner = c.peer.owner.clone();
        self.count_of(&owner) > self.per_peer_max
    }

    /// How many connections an owner has.
    fn count_of(&self, owner: &Owner) -> usize {
        self.connections.iter().filter(|(_, c)| c.state != State::Dead && c.peer.owner == *owner).count()
    }

    fn join(&mut self, context: &mut Context, slot: usize, export: usize) {
        let Context { now, queue, groups, .. } = context;
        let served = &self.exports[export];
        let Ok(group) = groups.ensure(*now, queue, &served.group) else { return self.end(context, slot) };
        served.counters.connection();
        self.exports.joined(export);
        let task = TaskId(TASKS + slot as u32);
        self.connections[slot].identity = Some(Identity { client: queue.join(), task, group });
    }

    /// Groups have come or gone: the number of one that is gone may be another's. A connection counts for the
    /// group of its export, or for the closest one around it that there is.
    fn look_up_groups(&mut self, context: &Context) {
        self.groups_seen = context.groups.version();
        for (_, c) in &mut self.connections {
            if let (Some(identity), Some(export)) = (&mut c.identity, c.session.export()) {
                identity.group = context.groups.closest(&self.exports[export].group);
            }
        }
    }

    /// There is room: the request goes its way.
    fn ask(&mut self, context: &mut Context, slot: usize, request: Request) {
        let len = data_len(&request);
        self.held += len;
        self.connections[slot].held += len;
        match request.command {
            Command::Write => {
                let data = self.room(slot, &request);
                self.connections[slot].writing = Some(Writing { request, data, filled: 0 });
            }
            Command::Status { one } => {
                let most = if one { 1 } else { EXTENTS_MAX };
                let question = Question { len: part_len(&request, 0), most };
                self.submit(context, slot, request, Some(Data::Question(question)));
            }
            Command::Read => {
                let data = self.pages(slot, &request);
                self.submit(context, slot, request, data);
            }
            Command::Flush | Command::Trim | Command::Zero { .. } => {
                self.submit(context, slot, request, None);
            }
        }
    }

    /// The data of a read, if bytes of a file in memory can be sent as they are.
    fn pages(&self, slot: usize, request: &Request) -> Option<Data> {
        let session = &self.connections[slot].session;
        let export = &self.exports[session.export()?];
        if request.len >= LARGE {
            let head = session.head(request, Ok(()));
            // Whether sockets of virtual machines take pages was not tried.
            let takes_pages = !matches!(self.connections[slot].socket, Socket::Vsock(_));
            return (export.has_pages && takes_pages).then(|| Data::Piped(self.pipes.reply(head.bytes())));
        }
        export.map.as_ref()?.window(request.offset, request.len as u32).map(Data::Mapped)
    }

    /// Room for the data of a write: a pipe, if it is to a file in memory and all of them are still in a unix
    /// socket.
    fn room(&self, slot: usize, request: &Request) -> Data {
        let c = &self.connections[slot];
        let len = request.len as usize;
        let has_pages = c.session.export().is_some_and(|e| self.exports[e].has_pages);
        let is_unix = matches!(c.socket, Socket::Unix(_));
        let is_piped = has_pages && is_unix && !request.fua && len >= STRAIGHT && (len as u64) < LONG;
        let load = (is_piped && c.input().is_empty()).then(|| self.pipes.load(len as u32)).flatten();
        load.map_or_else(|| Data::Memory(self.pool.buffer(len)), Data::Load)
    }

    fn submit(&mut self, context: &mut Context, slot: usize, request: Request, data: Option<Data>) {
        let c = &mut self.connections[slot];
        let (Some(identity), Some(export)) = (c.identity, c.session.export()) else { return };
        c.open += 1;
        let pending = PendingRequest { slot, identity, export, request, done: 0, began: context.now };
        self.submit_part(context, pending, data);
    }

    /// Hands in the next part of a request, which mostly is all of it.
    fn submit_part(&mut self, context: &mut Context, mut pending: PendingRequest, data: Option<Data>) {
        if context.groups.version() != self.groups_seen {
            self.look_up_groups(context);
        }
        let PendingRequest { slot, export, request, done, .. } = pending;
        // Its group may have gone since the part before.
        let Some(identity) = self.connections[slot].identity else { return };
        pending.identity = identity;
        let served = &self.exports[export];
        let cookie = self.pending.insert(pending) as u64;
        let op = match request.command {
            Command::Flush => return context.queue.flush(identity.client, served.file, cookie),
            Command::Write => Op::Write,
            Command::Trim => Op::Discard,
            Command::Zero { no_hole } => Op::Zero { may_discard: !no_hole },
            Command::Read => Op::Read,
            Command::Status { .. } => Op::Extents,
        };
        if matches!(op, Op::Discard | Op::Zero { may_discard: true }) {
            self.exports.thin(export);
        }
        let bio = Bio {
            op,
            file: served.file,
            offset: request.offset + done,
            len: bio_len(&request, done),
            sector: Sector(served.start.0 + (request.offset + done) / 512),
            fua: request.fua && op.changes(),
            sync: true,
            task: identity.task,
            group: identity.group,
            prio: served.prio,
            cookie,
        };
        context.queue.submit(context.now, identity.client, bio, data);
    }
}

/// What goes out.
impl NbdFront {
    fn answered(&mut self, context: &mut Context, answer: Answer<Data>) {
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
        self.exports[export].counters.done(&request, result, context.now.saturating_since(began));
        let c = &mut self.connections[slot];
        c.open -= 1;
        if data.is_none() {
            let len = data_len(&request);
            c.held -= len;
            self.held -= len;
        }
        if !c.is_sending && !c.has_output() {
            c.progress = context.now;
        }
        c.put(match data {
            Some(Data::Piped(piped)) => Out::Piped(piped, request.len),
            Some(Data::Mapped(window)) => Out::Mapped(c.session.head(&request, result), window),
            Some(Data::Extents(extents)) => Out::Bytes(c.session.status(&request, &extents)),
            data => Out::Reply(c.session.head(&request, result), data.and_then(Data::memory)),
        });
        self.mark_dirty(slot);
    }

    /// Sends what there is for a connection, or forgets it.
    fn look_at(&mut self, context: &mut Context, ring: &mut Ring, slot: usize) -> io::Result<()> {
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

    fn sent(&mut self, context: &mut Context, slot: usize, result: i32) {
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
    fn gone(&mut self, context: &Context, slot: usize, len: usize) {
        let c = &mut self.connections[slot];
        c.progress = context.now;
        let freed = c.sent(len);
        c.held -= freed;
        self.held -= freed;
    }
}

/// The bytes that are done next of a request of which `done` are done. The client asks for the rest of a
/// question again.
fn part_len(request: &Request, done: u64) -> u32 {
    (request.len - done).min(PART_MAX) as u32
}

/// The bytes of the next part of a request that the scheduler charges.
fn bio_len(request: &Request, done: u64) -> u32 {
    match request.command {
        Command::Status { .. } => part_len(request, done).min(STATUS_COST),
        _ => part_len(request, done),
    }
}

/// How much memory the data of a request take.
fn data_len(request: &Request) -> u64 {
    match request.command {
        Command::Read | Command::Write => request.len,
        _ => 0,
    }
}
