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
//! **One guest cannot take the thread.** A turn reads a bounded number of descriptors of each ring, and a
//! device has a bounded number of requests in the queue; the others wait in its rings. Rings that are broken
//! are not read any more, until the guest sets them up again.
//!
//! **Sessions.** What comes from the socket is another thread's work (`session.rs`); it sends [`Command`]s. A
//! session that ends leaves its requests to the disk, without an answer: the next one does those again that
//! are marked as in flight. Its rings begin only when the disk is done with the old ones, or an old write
//! could come after a new one.
//!
//! What it does not do: sockets, the protocol.

use super::command::{Command, Setup, What};
use super::event_fd::drain;
use super::inflight::RingMarks;
use super::memory::GuestMemory;
use super::request::{ID, Kind, Limits, Request, SECTOR, Status};
use super::shared::Shared;
use super::split_ring::{Broken, Descriptor};
use crate::bio::{Answer, Bio, ClientId, FileId, Op};
use crate::buffer::Pool;
use crate::data::Data;
use crate::engine::{Context, Front};
use crate::guest_data::{GuestData, Part, gather, scatter};
use crate::nbd::{Counted, Counters};
use crate::ring::{Outcome, Ring as IoRing, Token};
use fairhead_core::Control;
use fairhead_core::units::{Class, GroupId, Instant, IoPrio, Sector, TaskId};
use io_uring::opcode::{Nop, PollAdd};
use io_uring::types::Fd;
use slab::Slab;
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::{Arc, mpsc};

/// Cookies of guests' bios have this bit; those of other fronts do not.
pub(crate) const COOKIE: u64 = 1 << 62;

/// Operation ids in the ring: `4 * number + KIND`. Number 0 wakes the engine, others are those of polls, plus
/// one. Kinds 0 to 2 are NBD's.
pub(crate) const KIND: usize = 3;

/// How many descriptors of a ring are read in a turn.
const DESCRIPTORS_A_TURN: usize = 512;

/// How many requests of a device there may be.
const OPEN_MAX: usize = 1024;

/// Tasks of devices begin here, behind those of NBD's connections; each device has this many.
const TASKS: u32 = 3 << 29;
const TASKS_EACH: u32 = 32;

/// The task of requests without a priority of their own.
const USUAL: u32 = TASKS_EACH - 1;

/// A device, as the front needs it.
#[derive(Debug)]
pub(super) struct Served {
    pub(super) shared: Arc<Shared>,
    pub(super) file: FileId,
    pub(super) start: Sector,
    pub(super) group: String,
    /// Whether nothing else is in its group: then a guest may be real-time in there.
    pub(super) is_alone_in_group: bool,
    pub(super) prio: IoPrio,
    /// What direct I/O takes is a multiple of this.
    pub(super) align: u32,
    pub(super) counters: Arc<Counters>,
    pub(super) _lock: Arc<File>,
}

#[derive(Debug)]
struct Device {
    served: Served,
    session: Option<Session>,
    /// Requests that are not answered: of this session, and of earlier ones.
    open: usize,
    stale: usize,
}

#[derive(Debug)]
struct Session {
    id: u64,
    client: ClientId,
    group: GroupId,
    /// A bit for each task that has sent anything.
    tasks: u32,
    rings: Vec<Option<GuestRing>>,
}

#[derive(Debug)]
struct GuestRing {
    serial: u64,
    setup: Setup,
    /// Whether it is read: not while requests of earlier sessions are at the disk.
    has_begun: bool,
    is_broken: bool,
    is_awake: bool,
    is_dirty: bool,
    poll: Option<usize>,
    /// Requests that are not answered.
    open: usize,
    /// Heads of requests that an earlier server left.
    again: VecDeque<u16>,
    /// A request that there is no room for.
    held: Option<(u16, Request)>,
    stopping: Option<mpsc::Sender<u16>>,
}

/// Where a ring is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Place {
    device: usize,
    ring: usize,
    serial: u64,
}

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
        // Those that wake up meanwhile are at the end.
        for i in 0..self.awake.len() {
            self.work(context, self.awake[i]);
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
            find(devices, *place).is_some_and(|r| r.is_readable() && r.setup.split.has_more() == Ok(true))
        })
    }

    fn rest(&mut self, _: &mut Context, ring: &mut IoRing) -> io::Result<()> {
        let mut wakes = false;
        let mut stay = Vec::new();
        for place in std::mem::take(&mut self.awake) {
            let Some(guest) = find(&mut self.devices, place) else { continue };
            if guest.held.is_some() || !guest.again.is_empty() {
                // It continues when something of its device is answered.
                stay.push(place);
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

    fn stop(&mut self, _: &mut Context) {
        self.is_stopping = true;
        self.to_cancel.extend(self.polls.iter().map(|(key, _)| key));
    }

    fn is_quiet(&self) -> bool {
        self.pending.is_empty() && self.polls.is_empty()
    }
}

impl GuestRing {
    /// Whether chains are read from it.
    const fn is_readable(&self) -> bool {
        self.has_begun && !self.is_broken && self.stopping.is_none()
    }
}

fn find(devices: &mut [Device], place: Place) -> Option<&mut GuestRing> {
    let session = devices.get_mut(place.device)?.session.as_mut()?;
    session.rings.get_mut(place.ring)?.as_mut().filter(|r| r.serial == place.serial)
}

/// Coming and going.
impl VhostFront {
    fn obey(&mut self, context: &mut Context, Command { device: number, session: id, what }: Command) {
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
    fn begin_rings(&mut self, number: usize) {
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
    fn wake(&mut self, place: Place) {
        let Some(ring) = find(&mut self.devices, place) else { return };
        if !std::mem::replace(&mut ring.is_awake, true) {
            ring.setup.split.be_quiet();
            self.awake.push(place);
        }
    }

    /// Says that a ring has stopped, if it is to stop and everything is answered.
    fn end_if_stopped(&mut self, place: Place) {
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

    fn signal(&mut self, place: Place) {
        let Some(ring) = find(&mut self.devices, place) else { return };
        ring.is_dirty = false;
        if ring.setup.split.wants_signal()
            && let Some(call) = &mut ring.setup.call
        {
            call.call();
        }
    }
}

fn task_of(device: usize, code: u32) -> TaskId {
    TaskId(TASKS + TASKS_EACH * device as u32 + code)
}

/// What comes from guests.
impl VhostFront {
    /// Takes what a ring has.
    fn work(&mut self, context: &mut Context, place: Place) {
        let mut budget = DESCRIPTORS_A_TURN;
        loop {
            match self.next(place, &mut budget) {
                Ok(None) => break,
                Ok(Some((head, request))) => {
                    if !self.has_room(context, place.device, &request) {
                        if let Some(ring) = find(&mut self.devices, place) {
                            ring.held = Some((head, request));
                        }
                        break;
                    }
                    self.submit(context, place, head, request);
                }
                Err(_) => {
                    self.devices[place.device].served.counters.violation();
                    if let Some(ring) = find(&mut self.devices, place) {
                        ring.is_broken = true;
                        ring.again.clear();
                    }
                    break;
                }
            }
        }
        self.end_if_stopped(place);
    }

    /// Returns the next request of a ring.
    fn next(&mut self, place: Place, budget: &mut usize) -> Result<Option<(u16, Request)>, Broken> {
        let Self { devices, chain, readable, writable, is_stopping, .. } = self;
        let limits = devices[place.device].served.shared.limits();
        let Some(ring) = find(devices, place) else { return Ok(None) };
        if let Some(held) = ring.held.take() {
            return Ok(Some(held));
        }
        if *budget == 0 || *is_stopping || !ring.has_begun || ring.is_broken {
            return Ok(None);
        }
        let is_lost =
            ring.setup.split.memory().is_lost() || ring.setup.marks.as_ref().is_some_and(RingMarks::is_lost);
        if is_lost {
            return Err(Broken("the guest's memory was cut off"));
        }
        let head = match ring.again.pop_front() {
            Some(head) => head,
            None if ring.stopping.is_some() => return Ok(None),
            None => {
                let Some(head) = ring.setup.split.peek()? else { return Ok(None) };
                ring.setup.split.take();
                if let Some(marks) = &mut ring.setup.marks {
                    marks.taken(head);
                }
                head
            }
        };
        let split = &ring.setup.split;
        split.chain(head, chain)?;
        *budget = budget.saturating_sub(chain.len());
        readable.clear();
        writable.clear();
        for part in chain.iter() {
            // The driver puts all that is for us to read before all that is for us to write.
            let into = if part.is_for_device { &mut *writable } else { &mut *readable };
            if !split.memory().parts(part.address, part.len, into) {
                return Err(Broken("a buffer that is not in memory"));
            }
        }
        // SAFETY: the parts were just looked up in the memory, which the ring keeps.
        let request = unsafe { Request::parse(readable, writable, limits) };
        request.map(|r| Some((head, r))).map_err(|e| Broken(e.0))
    }

    fn has_room(&self, context: &Context, number: usize, request: &Request) -> bool {
        let device = &self.devices[number];
        let len = u32::try_from(request.bytes()).unwrap_or(u32::MAX);
        device.open < OPEN_MAX
            && device.session.as_ref().is_some_and(|s| context.queue.has_room(s.client, len))
    }

    /// A request goes its way.
    fn submit(&mut self, context: &mut Context, place: Place, head: u16, request: Request) {
        let Device { served, session, open, .. } = &mut self.devices[place.device];
        let Some(session) = session else { return };
        let Some(Some(ring)) = session.rings.get_mut(place.ring) else { return };
        ring.open += 1;
        *open += 1;
        let mut pending = PendingRequest {
            place,
            session: session.id,
            client: session.client,
            head,
            kind: request.asks.unwrap_or(Kind::Id),
            status: request.status,
            parts: Vec::new(),
            memory: Arc::clone(ring.setup.split.memory()),
            bytes: request.bytes(),
            open: request.ranges.len(),
            has_failed: false,
            began: context.now,
        };
        let op = match request.asks {
            Ok(Kind::Read) => Op::Read,
            Ok(Kind::Write) => Op::Write,
            Ok(Kind::Discard) => Op::Discard,
            Ok(Kind::Zero) => Op::Zero { may_discard: false },
            Ok(Kind::Flush) => {
                pending.open = 1;
                let cookie = COOKIE | self.pending.insert(pending) as u64;
                return context.queue.flush(session.client, served.file, cookie);
            }
            Ok(Kind::Id) => {
                let room: u64 = request.data.iter().map(|p| u64::from(p.len)).sum();
                pending.bytes = room.min(ID as u64);
                // SAFETY: the parts are in the memory, which the request keeps.
                unsafe { scatter(&served.shared.id(), &request.data) };
                return self.finish(context, pending, Status::Ok);
            }
            Err(status) => return self.finish(context, pending, status),
        };
        if request.ranges.is_empty() {
            return self.finish(context, pending, Status::Ok);
        }
        self.send(context, pending, op, request);
    }

    /// The bios of a request go to the queue.
    fn send(&mut self, context: &mut Context, mut pending: PendingRequest, op: Op, request: Request) {
        let place = pending.place;
        let Request { prio, ranges, data: parts, .. } = request;
        let mut data = self.data_of(&mut pending, op, parts);
        let Device { served, session, .. } = &mut self.devices[place.device];
        let Some(session) = session else { return };
        let Some(Some(ring)) = session.rings.get(place.ring) else { return };
        let fua = op.changes() && (ring.setup.is_write_through || !served.shared.is_cached());
        let (code, prio) = priority(prio, served);
        session.tasks |= 1 << code;
        let cookie = COOKIE | self.pending.insert(pending) as u64;
        for range in ranges {
            let op = match op {
                Op::Zero { .. } => Op::Zero { may_discard: range.may_discard },
                op => op,
            };
            let bio = Bio {
                op,
                file: served.file,
                offset: range.offset,
                len: range.len,
                sector: Sector(served.start.0 + range.offset / SECTOR),
                fua,
                sync: true,
                task: task_of(place.device, code),
                group: session.group,
                prio,
                cookie,
            };
            context.queue.submit(context.now, session.client, bio, data.take());
        }
    }

    /// The data of a request: in place, or a buffer; a read that has none gets one from the store.
    fn data_of(&self, pending: &mut PendingRequest, op: Op, parts: Vec<Part>) -> Option<Data> {
        if !matches!(op, Op::Read | Op::Write) {
            return None;
        }
        let align = u64::from(self.devices[pending.place.device].served.align);
        let is_aligned = |p: &Part| (p.start.as_ptr() as u64 | u64::from(p.len)).is_multiple_of(align);
        if self.in_place && parts.iter().all(is_aligned) {
            let memory = Arc::clone(&pending.memory);
            // SAFETY: the parts are in the memory, which the data keep.
            return Some(Data::Guest(unsafe { GuestData::new(parts.into(), memory) }));
        }
        if op == Op::Read {
            pending.parts = parts;
            return None;
        }
        let mut buffer = self.pool.buffer(pending.bytes as usize);
        // SAFETY: the parts are in the memory, which the request keeps.
        unsafe { gather(&parts, &mut buffer) };
        Some(Data::Memory(buffer))
    }
}

/// The task and priority of a request. A guest that is not alone in its group is not real-time there: it
/// would go before tenants that are not its own.
fn priority(of_guest: Option<IoPrio>, served: &Served) -> (u32, IoPrio) {
    let Some(prio) = of_guest else { return (USUAL, served.prio) };
    let prio = match prio.class {
        Class::RealTime if !served.is_alone_in_group => IoPrio::new(Class::BestEffort, 0),
        _ => prio,
    };
    let class = match prio.class {
        Class::RealTime => 0,
        Class::BestEffort => 1,
        Class::Idle => 2,
    };
    (8 * class + u32::from(prio.level), prio)
}

/// What goes back to guests.
impl VhostFront {
    fn answered(&mut self, context: &mut Context, answer: Answer<Data>) {
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
    fn finish(&mut self, context: &mut Context, pending: PendingRequest, status: Status) {
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

impl Shared {
    /// What can be asked of the device.
    fn limits(&self) -> Limits {
        Limits { size: self.size() / SECTOR * SECTOR, is_read_only: self.is_read_only() }
    }
}
