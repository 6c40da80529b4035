//! Connections that come and go: which are let in, which give way to a newcomer, whose they are, and which
//! end because they keep the server waiting.

use super::{ACCEPT, HELD_MAX, NbdFront};
use crate::engine::Context;
use crate::heap;
use crate::nbd::TRANSFER_MAX;
use crate::nbd::connection::{Connection, Identity, Out, Socket, State};
use crate::nbd::session::Session;
use crate::nbd::tls::TlsMode;
use crate::peer::{Holder, Owner, Peer, gives_way};
use crate::ring::{Ring, Token};
use crate::turns::Tenant;
use fairhead_core::Control;
use fairhead_core::units::{Duration, Instant, TaskId};
use io_uring::opcode::Accept;
use io_uring::types::Fd;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io;
use std::net::Shutdown;
use std::os::fd::{FromRawFd, OwnedFd};

/// The longest handshake; then the connection ends.
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);

/// The longest time without progress of a client that has replies to read, or data of a write to send.
const UNREAD_MAX: Duration = Duration::from_secs(30);

/// [`UNREAD_MAX`] while other connections need the memory.
const CROWDED_MAX: Duration = Duration::from_secs(4);

/// A client that hung up is noticed after this time, at the latest, although its input is not read.
const GONE_MAX: Duration = Duration::from_secs(2);

/// The connections from which on inputs are short.
const CROWD: usize = 512;

/// When this many connections or more have become half as many, memory goes back.
const MANY: usize = 16;

/// Tasks of connections begin here; those of the library's clients at 1.
const TASKS: u32 = 1 << 30;

impl NbdFront {
    pub(super) fn accept_all(&mut self, ring: &mut Ring) -> io::Result<()> {
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
    pub(super) fn cancel_accepts(&mut self, ring: &mut Ring) -> io::Result<()> {
        if std::mem::replace(&mut self.has_cancelled, true) {
            return Ok(());
        }
        let pending = self.listeners.iter().enumerate().filter(|(_, (_, is_accepting))| *is_accepting);
        pending.map(|(i, _)| i * 4 + ACCEPT).try_for_each(|number| ring.cancel(Token::Front(number)))
    }

    pub(super) fn accepted(&mut self, context: &mut Context, listener: usize, result: i32) {
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
        self.replies += connection.replies();
        let slot = self.connections.insert(connection);
        self.most = self.most.max(self.connections.len());
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

    /// How many connections an owner has.
    fn count_of(&self, owner: &Owner) -> usize {
        self.connections.iter().filter(|(_, c)| c.state != State::Dead && c.peer.owner == *owner).count()
    }

    /// Learns who a client is that has begun TLS. Returns whether it has too many connections.
    pub(super) fn proves(&mut self, slot: usize) -> bool {
        let c = &mut self.connections[slot];
        let Some(certificate) = c.secured.as_ref().and_then(|secured| secured.get()).cloned() else {
            return false;
        };
        c.secured = None;
        let Some(certificate) = certificate else { return false };
        c.peer.proves(certificate);
        let owner = c.peer.owner.clone();
        (c.tenant, c.access_seen) = (Tenant::Owner(owner.clone()), None);
        self.count_of(&owner) > self.per_peer_max
    }

    pub(super) fn start_tls(&mut self, context: &mut Context, slot: usize) {
        let c = &mut self.connections[slot];
        c.starts_tls = false;
        match self.tls.as_ref().map(|tls| c.start_tls(tls)) {
            Some(Ok(())) => self.to_receive.push(slot),
            _ => self.end(context, slot),
        }
    }

    pub(super) fn join(&mut self, context: &mut Context, slot: usize, export: usize) {
        let Context { now, queue, groups, .. } = context;
        let served = &self.exports[export];
        let Ok(group) = groups.ensure(*now, queue, &served.group) else { return self.end(context, slot) };
        served.counters.connection();
        self.exports.joined(export);
        let task = TaskId(TASKS + slot as u32);
        let is_small = self.connections.len() > CROWD;
        let c = &mut self.connections[slot];
        c.identity = Some(Identity { client: queue.join(), task, group });
        (c.tenant, c.is_small) = (Tenant::Group(group), is_small);
    }

    /// Groups have come or gone: the number of one that is gone may be another's. A connection counts for the
    /// group of its export, or for the closest one around it that there is.
    pub(super) fn look_up_groups(&mut self, context: &Context) {
        self.groups_seen = context.groups.version();
        for (_, c) in &mut self.connections {
            if let (Some(identity), Some(export)) = (&mut c.identity, c.session.export()) {
                identity.group = context.groups.closest(&self.exports[export].group);
                c.tenant = Tenant::Group(identity.group);
            }
        }
    }

    /// Nothing is done any more for this connection.
    pub(super) fn end(&mut self, context: &mut Context, slot: usize) {
        let c = &mut self.connections[slot];
        if std::mem::replace(&mut c.state, State::Dead) == State::Dead {
            return;
        }
        c.socket.shutdown(Shutdown::Both);
        self.held -= c.held;
        self.replies -= c.replies();
        self.has_freed = true;
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
    pub(super) fn reap(&mut self, slot: usize) {
        let c = &self.connections[slot];
        if c.state == State::Dead && !c.is_receiving && !c.is_sending && !c.is_dirty {
            let c = self.connections.remove(slot);
            if let Some(export) = c.session.export().filter(|_| c.identity.is_some()) {
                self.exports.forgotten(export);
            }
        }
    }

    /// Connections whose input is not read, and whose clients are gone. The end of their input is behind
    /// requests that may wait for their tenant's limits, for minutes, and for so long they would keep places
    /// and memory.
    fn hung_up(&self, now: Instant) -> Vec<usize> {
        let is_quiet = |c: &Connection| {
            c.state == State::Open && !c.is_receiving && now.saturating_since(c.heard) >= GONE_MAX
        };
        let quiet = self.connections.iter().filter(|(_, c)| is_quiet(c));
        let (slots, mut polled): (Vec<usize>, Vec<PollFd<'_>>) =
            quiet.map(|(slot, c)| (slot, PollFd::new(&c.socket, PollFlags::empty()))).unzip();
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        // Those that cannot be asked about are asked about again.
        let Ok(1..) = poll(&mut polled, Some(&at_once)) else { return Vec::new() };
        let is_gone = |polled: &PollFd<'_>| polled.revents().intersects(PollFlags::HUP | PollFlags::ERR);
        slots.into_iter().zip(&polled).filter(|(_, polled)| is_gone(polled)).map(|(slot, _)| slot).collect()
    }

    /// Whether there are far fewer connections than there were.
    pub(super) fn has_shrunk(&self) -> bool {
        self.most >= MANY && self.connections.len() <= self.most / 2
    }

    pub(super) fn look_at_clock(&mut self, context: &mut Context) {
        let is_crowded = self.held + self.replies + u64::from(TRANSFER_MAX) > HELD_MAX;
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
        late.into_iter().chain(self.hung_up(context.now)).for_each(|slot| self.end(context, slot));
        // What was given up has its answer before its place in the queue is free.
        self.resumed.extend(self.connections.iter().filter(|(_, c)| c.is_held).map(|(slot, _)| slot));
        self.retry(context);
        if self.has_shrunk() {
            self.most = self.connections.len();
            self.pending.shrink_to_fit();
            heap::give_back();
        }
        (self.tick, self.is_resting) = (None, false);
    }
}
