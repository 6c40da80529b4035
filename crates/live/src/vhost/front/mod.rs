//! Guests' rings on the engine's thread.
//!
//! ```text
//!   kick (eventfd) ─ring─► awake ─► chain ─► request ─► bios ─► RequestQueue
//!                                                                  │ answers
//!   signal, once a turn ◄── used ring ◄── status ◄─────────────────┘
//! ```
//!
//! The thread that schedules reads the rings itself: a request costs no hand-over to another thread. While
//! the engine is awake, guests need not kick; it looks at the rings of those that have kicked each turn.
//! Before it sleeps it asks them to kick again, and looks once more.
//!
//! **Data** are read and written in the guest's memory, if it is aligned as the disk needs, else through a
//! buffer; and always through a buffer if requests have a time limit, as one that is given up may still be
//! at the disk when the guest uses its memory for something else.
//!
//! **One guest cannot take the thread.** A turn reads a bounded number of descriptors of each ring, and as
//! much as the [turn](crate::turns) of its tenant has room for; what is no I/O (questions for the name,
//! refused requests) counts more. A device has a bounded number of requests in the queue. The others wait in
//! its rings. Rings that are broken are not read any more, until the guest sets them up again.
//!
//! **Sessions.** What comes from the socket is another thread's work (`session.rs`); it sends [`Command`]s. A
//! session that ends leaves its requests to the disk, without an answer: the next one does those again that
//! are marked as in flight. Its rings begin only when the disk is done with the old ones, or an old write
//! could come after a new one.
//!
//! | file | what it has |
//! |---|---|
//! | `rings.rs`, `sessions.rs` | devices, sessions and rings; how they begin and end |
//! | `requests.rs`, `tasks.rs` | from rings to the queue |
//! | `answers.rs` | from the queue to rings |
//!
//! What it does not do: sockets, the protocol.

mod answers;
mod requests;
mod rings;
mod sessions;
mod tasks;

use super::command::Command;
use super::event_fd::drain;
use super::memory::GuestMemory;
use super::request::Kind;
use super::split_ring::Descriptor;
use crate::bio::{Answer, ClientId};
use crate::buffer::Pool;
use crate::data::Data;
use crate::engine::{Context, Front};
use crate::guest_data::Part;
use crate::ring::{Outcome, Ring as IoRing, Token};
use fairhead_core::units::Instant;
use io_uring::opcode::{Nop, PollAdd};
use io_uring::types::Fd;
pub(super) use rings::Served;
use rings::{Device, Place, find};
use slab::Slab;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::{Arc, mpsc};

/// Cookies of guests' bios have this bit; those of other fronts do not.
pub(crate) const COOKIE: u64 = 1 << 62;

/// Operation ids in the ring: `4 * number + KIND`. Number 0 wakes the engine, others are those of polls, plus
/// one. Kinds 0 to 2 are NBD's.
pub(crate) const KIND: usize = 3;

#[derive(Debug)]
struct Poll {
    place: Place,
    is_cancelled: bool,
    /// Kept for the kernel.
    _kick: Arc<File>,
}

/// A request that is not answered.
#[derive(Debug)]
struct PendingRequest {
    place: Place,
    session: u64,
    client: ClientId,
    head: u16,
    kind: Kind,
    status: Part,
    /// Where data of a read go that are not read in place.
    parts: Vec<Part>,
    /// Keeps the parts mapped.
    memory: Arc<GuestMemory>,
    bytes: u64,
    /// Bios that are not answered.
    open: usize,
    has_failed: bool,
    began: Instant,
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct VhostFront {
    devices: Vec<Device>,
    commands: mpsc::Receiver<Command>,
    pool: Arc<Pool>,
    /// Whether data may be read and written in place.
    in_place: bool,
    pending: Slab<PendingRequest>,
    polls: Slab<Poll>,
    awake: Vec<Place>,
    dirty: Vec<Place>,
    to_cancel: Vec<usize>,
    serial: u64,
    is_stopping: bool,
    /// Room for a chain.
    chain: Vec<Descriptor>,
    readable: Vec<Part>,
    writable: Vec<Part>,
}

impl VhostFront {
    pub(super) fn new(
        devices: Vec<Served>,
        commands: mpsc::Receiver<Command>,
        pool: Arc<Pool>,
        in_place: bool,
    ) -> Self {
        let device = |served| Device { served, session: None, open: 0, stale: 0 };
        Self {
            devices: devices.into_iter().map(device).collect(),
            commands,
            pool,
            in_place,
            pending: Slab::new(),
            polls: Slab::new(),
            awake: Vec::new(),
            dirty: Vec::new(),
            to_cancel: Vec::new(),
            serial: 0,
            is_stopping: false,
            chain: Vec::new(),
            readable: Vec::new(),
            writable: Vec::new(),
        }
    }
}

impl Front for VhostFront {
    fn begin(&mut self, _: &mut Context, _: &mut IoRing) -> io::Result<()> {
        Ok(())
    }

    fn outcome(
        &mut self,
        _: &mut Context,
        _: &mut IoRing,
        number: usize,
        outcome: Outcome,
    ) -> io::Result<()> {
        let Some(key) = (number / 4).checked_sub(1) else { return Ok(()) };
        let Poll { place, .. } = self.polls.remove(key);
        let Some(ring) = find(&mut self.devices, place) else { return Ok(()) };
        ring.poll = None;
        if outcome.result > 0 {
            drain(&ring.setup.kick);
            self.wake(place);
        }
        Ok(())
    }

    fn answer(&mut self, context: &mut Context, answer: Answer<Data>) {
        self.answered(context, answer);
    }

    fn turn(&mut self, context: &mut Context, ring: &mut IoRing) -> io::Result<()> {
        while let Ok(command) = self.commands.try_recv() {
            self.obey(context, command);
        }
        // Those that wake up meanwhile are at the end. Another one is the first in the next turn.
        for i in 0..self.awake.len() {
            self.work(context, self.awake[i]);
        }
        if !self.awake.is_empty() {
            self.awake.rotate_left(1);
        }
        for place in std::mem::take(&mut self.dirty) {
            self.signal(place);
        }
        for key in std::mem::take(&mut self.to_cancel) {
            if let Some(poll) = self.polls.get_mut(key).filter(|p| !p.is_cancelled) {
                poll.is_cancelled = true;
                ring.cancel(Token::Front(4 * (key + 1) + KIND))?;
            }
        }
        Ok(())
    }

    fn poll(&mut self, _: &mut Context) -> bool {
        let devices = &mut self.devices;
        self.awake.iter().any(|place| {
            find(devices, *place).is_some_and(|r| {
                r.waits_until.is_none() && r.is_readable() && r.setup.split.has_more() == Ok(true)
            })
        })
    }

    fn rest(&mut self, context: &mut Context, ring: &mut IoRing) -> io::Result<()> {
        let mut wakes = false;
        let mut stay = Vec::new();
        for place in std::mem::take(&mut self.awake) {
            let Some(guest) = find(&mut self.devices, place) else { continue };
            if guest.held.is_some() || !guest.again.is_empty() {
                // It continues when something of its device is answered.
                stay.push(place);
                continue;
            }
            if let Some(at) = guest.waits_until {
                stay.push(place);
                wakes |= at <= context.now;
                continue;
            }
            let has_more = guest.is_readable() && guest.setup.split.ask_for_kick() != Ok(false);
            if has_more && !self.is_stopping {
                guest.setup.split.be_quiet();
                stay.push(place);
                wakes = true;
                continue;
            }
            guest.is_awake = false;
            if guest.is_readable() && guest.poll.is_none() && !self.is_stopping {
                let kick = Arc::clone(&guest.setup.kick);
                let poll = PollAdd::new(Fd(kick.as_raw_fd()), libc::POLLIN as u32).build();
                let key = self.polls.insert(Poll { place, is_cancelled: false, _kick: kick });
                guest.poll = Some(key);
                // SAFETY: it names no memory; the file is kept with the poll.
                unsafe { ring.push(poll, Token::Front(4 * (key + 1) + KIND))? };
            }
        }
        self.awake = stay;
        if wakes {
            // SAFETY: it names no memory.
            unsafe { ring.push(Nop::new().build(), Token::Front(KIND))? };
        }
        Ok(())
    }

    fn next_timer(&self) -> Option<Instant> {
        let waits = |place: &Place| {
            let session = self.devices.get(place.device)?.session.as_ref()?;
            session.rings.get(place.ring)?.as_ref()?.waits_until
        };
        self.awake.iter().filter_map(waits).min()
    }

    fn stop(&mut self, _: &mut Context) {
        self.is_stopping = true;
        self.to_cancel.extend(self.polls.iter().map(|(key, _)| key));
    }

    fn is_quiet(&self) -> bool {
        self.pending.is_empty() && self.polls.is_empty()
    }
}

#[cfg(test)]
mod neighbours;
