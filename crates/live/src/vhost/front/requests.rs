//! What comes from guests: requests out of their rings, as far as there is room, and their bios.

use super::super::inflight::RingMarks;
use super::super::request::{ID, Kind, Limits, Request, SECTOR, Status};
use super::super::shared::Shared;
use super::super::split_ring::Broken;
use super::rings::{Device, Place, find};
use super::tasks::{priority, task_of};
use super::{COOKIE, PendingRequest, VhostFront};
use crate::bio::{Bio, Flush, Op};
use crate::data::Data;
use crate::engine::Context;
use crate::guest_data::{GuestData, Part, gather, scatter};
use crate::turns::{MESSAGE, STEP, Tenant};
use fairhead_core::units::{Duration, Instant, Sector};
use std::sync::Arc;

/// How many descriptors of a ring are read in a turn.
const DESCRIPTORS_A_TURN: usize = 512;

/// What a descriptor costs besides.
const PART: Duration = Duration::from_ns(20);

/// How many requests of a device there may be.
const OPEN_MAX: usize = 1024;

/// What a ring did in a turn: requests for the disk; what is none, and the time that limits have it take.
#[derive(Debug, Default)]
struct Work {
    requests: u64,
    io: Duration,
    other: Duration,
    at_least: Duration,
}

impl Work {
    /// A request was taken; `io` is what one for the disk uses of the turn.
    fn add(&mut self, context: &Context, device: &Device, request: &Request, io: Duration) {
        let parts = Duration::from_ns(PART.as_ns() * request.data.len() as u64);
        let is_flush = request.asks == Ok(Kind::Flush);
        let session = device.session.as_ref();
        if is_flush && session.is_some_and(|session| context.queue.flushes_enough(session.client)) {
            // For limits, flushes that wait together are one.
            self.other += STEP + parts;
        } else if !is_flush && (request.asks.is_err() || request.ranges.is_empty()) {
            self.other += STEP + parts;
            self.at_least += session.map_or(Duration::ZERO, |session| context.least_time(session.group));
        } else {
            self.requests += 1;
            self.io += if io.is_zero() { io } else { io + parts };
        }
    }
}

impl VhostFront {
    /// Takes what a ring has, as much as its tenant may in this turn.
    pub(super) fn work(&mut self, context: &mut Context, place: Place) {
        let Some(tenant) = self.tenant(place) else { return };
        match context.turns.left(&tenant, context.now, false) {
            Ok(left) => {
                let io = context.turns.io(&tenant, self.devices.len() == 1);
                let work = self.take(context, place, left, io);
                context.use_up(&tenant, work.requests, work.io);
                if !work.other.is_zero() {
                    context.charge(&tenant, work.other + MESSAGE, work.at_least);
                }
            }
            Err(at) => self.pause(place, at),
        }
        self.end_if_stopped(place);
    }

    /// On whose account a ring's work is; it waits no longer.
    fn tenant(&mut self, place: Place) -> Option<Tenant> {
        find(&mut self.devices, place)?.waits_until = None;
        let session = self.devices[place.device].session.as_ref()?;
        Some(Tenant::Group(session.group))
    }

    fn pause(&mut self, place: Place, until: Instant) {
        if let Some(ring) = find(&mut self.devices, place) {
            ring.waits_until = Some(until);
        }
    }

    fn take(&mut self, context: &mut Context, place: Place, left: Duration, io: Duration) -> Work {
        let (mut work, mut budget) = (Work::default(), DESCRIPTORS_A_TURN);
        loop {
            if work.io + work.other >= left || !work.at_least.is_zero() {
                self.pause(place, context.now);
                break;
            }
            match self.next(place, &mut budget) {
                Ok(None) => break,
                Ok(Some((head, request))) => {
                    if !self.has_room(context, place.device, &request) {
                        if let Some(ring) = find(&mut self.devices, place) {
                            ring.held = Some((head, request));
                        }
                        break;
                    }
                    work.add(context, &self.devices[place.device], &request, io);
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
        work
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
                let (code, prio) = priority(request.prio, served);
                session.tasks |= 1 << code;
                let task = task_of(place.device, code);
                let flush = Flush { file: served.file, task, group: session.group, prio, cookie };
                return context.queue.flush(context.now, session.client, flush);
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

impl Shared {
    /// What can be asked of the device.
    fn limits(&self) -> Limits {
        Limits { size: self.size() / SECTOR * SECTOR, is_read_only: self.is_read_only() }
    }
}
