//! The request queue of one scheduled disk: everything between a client's bio and the backing store that is
//! not I/O.
//!
//! It is to the live engine what the block layer is to a kernel. A *bio* is one operation of a client's. It
//! is cut into *pieces* that the device takes; each goes to the [`Elevator`] as a request under a tag, where
//! neighbours are merged. What the elevator issues is an *io*: one or more pieces in a row. The driver of the
//! queue carries it out, and reports the result.
//!
//! ```text
//!   submit(bio, data) ─► bios ──cut──► tags ─► Elevator ─► next(now) → Io ─► driver: read, write, …
//!                          ▲   clients take turns for tags                          │
//!   answer() ◄─────────────┴────────────────── finished(io, piece by piece) ◄───────┘
//!   flush(file) ─► at once, past the elevator
//! ```
//!
//! **Clients** take turns for tags, and a client's tasks among themselves; and the elevator has its say
//! ([`Elevator::has_room`]): of a group at its limit, not all tags wait. The task that it turns away waits
//! alone, in line with those that wait for the same cause (`causes.rs`). The first one of a line asks for
//! all: when the disk is done with something, when the elevator's timer or a limit's time comes, or when a
//! setting changes; if there are more causes than questions, also every millisecond. So a waiting client
//! costs the others nothing, however many wait. Bios and bytes of each client are limited
//! ([`RequestQueue::has_room`]); a front stops reading from a client that has no room.
//!
//! **Cancel.** A bio that is taken back is answered at once. Its requests stay in the elevator until it
//! issues them, and then take no time. What is at the disk cannot be taken back: its data stay until the disk
//! is done with them. A write that is taken back there may still come, so what overlaps it waits until it
//! has: nothing that is asked for later is overtaken by it.
//!
//! **Stuck.** An io that takes longer than [`Settings::timeout`], if there is one, is given up: its clients
//! get [`Errno::TIMEDOUT`], the elevator sees it complete, and its place at the disk goes to others. A late
//! completion changes nothing. Until it comes, the io may still write; so a bio that overlaps a write that
//! was given up fails in the same way, or its client would read data that may still change.
//!
//! **Next of the same.** After an answer, the disk is kept for the client's next bio for a moment, if the
//! scheduler would prefer it ([`Elevator::prefers`]) and the client is known to send it at once:
//! `awaiting.rs` has the rule. Everything else waits for that moment.
//!
//! **Flush** covers the writes that were answered before it came. Each file has at most one running flush;
//! those that come meanwhile share the next. If it fails, all that wait fail with it, and each client that
//! was connected then gets the error with its next flush.
//!
//! **Switch.** Another scheduler takes over what waits, in the order in which it came. What is at the disk
//! finishes by itself.
//!
//! What it does not do: time, threads, files, memory. The engine's loop drives it, and tests with a disk made
//! of a vector.

use crate::at_disk::{AtDisk, Io};
pub use crate::at_disk::{IoId, Piece};
use crate::awaiting::Awaiting;
use crate::bio::{Answer, Bio, BioId, ClientId, Errno, FileId, Op, Origin};
use crate::causes::{Cause, Causes, RETRIES, Waiter};
use crate::client_lanes::Lanes;
use crate::depth::{AT_DISK_MAX, Depth};
use crate::flushes::Flushes;
use crate::lane_id::LaneId;
use crate::recording::Event;
use crate::scheduler_switch::SchedulerSwitch;
use fairhead_core::config::ConfigError;
use fairhead_core::elevator::{Control, Dispatch, Elevator, Limits};
use fairhead_core::groups::{GroupStats, Refusal};
use fairhead_core::request::{self, Request};
use fairhead_core::sched::any::{AnyConfig, AnyScheduler};
use fairhead_core::units::{Duration, GroupId, Id, Instant, Sectors, Tag};
use slab::Slab;
use std::collections::{BTreeMap, VecDeque};

const SECTOR: u64 = 512;

/// If there are more causes than are asked about at once, the others are asked about after this time, if
/// nothing else comes: rare enough to cost nothing, and soon for a disk.
const RETRY_AFTER: Duration = Duration::from_ms(1);

/// Sizes and facts that a queue is made for.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The limits of the elevator; `queue_depth` is the depth at first.
    pub limits: Limits,
    /// Whether the depth follows how long the disk takes, within 8 to 32. Default false.
    pub adaptive_depth: bool,
    /// The largest piece of a bio, in bytes: a multiple of 4096. Default 512 KiB.
    pub piece_bytes_max: u32,
    /// How many bios one client may have here. Default 256.
    pub client_bios_max: u32,
    /// How many bytes one client may have here. Default 32 MiB, the largest request of NBD; one bio always
    /// has room.
    pub client_bytes_max: u64,
    /// How long an io or a flush may take before it is given up. Default `None`: clients wait for as long
    /// as it takes, as they do for a file system.
    pub timeout: Option<Duration>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            limits: Limits { tags: 1024, tasks: 1024, groups: 256, ..Limits::default() },
            adaptive_depth: false,
            piece_bytes_max: 512 << 10,
            client_bios_max: 256,
            client_bytes_max: 32 << 20,
            timeout: None,
        }
    }
}

/// The next work for the driver.
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Start {
    /// The [pieces](RequestQueue::pieces) of this io, then say [`RequestQueue::finished`].
    Io(IoId),
    /// Make stable what was written to this file, then say [`RequestQueue::flushed`].
    Flush(FileId),
}

/// After this many bios in a row that came alone, the next one is expected alone, too.
const CROWD: u32 = 16;

/// The outcome of a retry of those that wait for a cause.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Retry {
    Placed,
    InVain,
    /// The first one waits for something else now, and the next one has not been asked.
    Moved,
}

/// Whether a piece must not be merged: with a question, a read would be answered only when the question is,
/// which may take many calls.
fn stays_alone(piece: &Piece) -> bool {
    piece.op == Op::Extents
}

#[derive(Debug)]
struct Pending<D> {
    bio: Bio,
    client: ClientId,
    serial: u64,
    came: Instant,
    data: Option<D>,
    /// The bytes that have been cut off and given to the elevator.
    placed: u32,
    /// The pieces that are in the elevator or at the disk.
    open: u32,
    result: Result<(), Errno>,
    is_answered: bool,
    /// Answered, while it may still change something.
    is_orphan: bool,
}

impl<D> Pending<D> {
    fn answer(&self, data: Option<D>) -> Answer<D> {
        let origin = Origin { group: self.bio.group, op: self.bio.op, came: self.came };
        Answer {
            client: self.client,
            cookie: self.bio.cookie,
            result: self.result,
            origin: Some(origin),
            data,
        }
    }
}

#[derive(Debug, Default)]
struct Client {
    serial: u64,
    bios: u32,
    bytes: u64,
    /// Bios of which something has no tag yet.
    unplaced: Lanes,
    /// Failed flushes that it has heard of, by file.
    heard: BTreeMap<FileId, u64>,
    /// Whether it is in line for tags.
    is_in_line: bool,
    /// Goes when the last bio is answered; or is gone, and hears nothing any more.
    is_leaving: bool,
    is_gone: bool,
}

/// See the [module](self).
#[derive(Debug)]
pub struct RequestQueue<D> {
    settings: Settings,
    elevators: SchedulerSwitch,
    /// By tag: the piece; and when the tag was given out, to hand them over in order. Those not in use are in
    /// `free`.
    tags: Vec<Option<Piece>>,
    came: Vec<u64>,
    free: Vec<Tag>,
    /// Room for those that an io gives back.
    freed: Vec<Tag>,
    clients: Slab<Client>,
    bios: Slab<Pending<D>>,
    /// Clients that have something to place, in turn; and lanes that were turned away.
    line: VecDeque<usize>,
    stalled: Causes,
    /// When those are asked about again that there was no time for, whatever else happens.
    retry_at: Option<Instant>,
    at_disk: AtDisk,
    depth: Depth,
    awaiting: Awaiting,
    /// Bios that are answered, while they may still change something.
    orphans: u32,
    /// How many bios may come alone before that is expected.
    crowd: u32,
    flushes: Flushes<(ClientId, u64)>,
    /// How often it was asked whether something may go to the elevator.
    questions: u64,
    answers: VecDeque<Answer<D>>,
    serial: u64,
}

/// Clients and what they ask.
impl<D> RequestQueue<D> {
    /// An empty queue.
    ///
    /// # Errors
    /// If a limit or a tunable is out of range.
    pub fn new(settings: Settings, config: AnyConfig) -> Result<Self, ConfigError> {
        let tags = settings.limits.tags;
        Ok(Self {
            settings,
            elevators: SchedulerSwitch::new(settings.limits, config)?,
            tags: vec![None; usize::from(tags)],
            came: vec![0; usize::from(tags)],
            free: (0..tags).rev().map(Tag).collect(),
            freed: Vec::new(),
            clients: Slab::new(),
            bios: Slab::new(),
            line: VecDeque::new(),
            stalled: Causes::default(),
            retry_at: None,
            at_disk: AtDisk::new(settings.timeout),
            depth: Depth::new(settings.limits.queue_depth, settings.adaptive_depth),
            awaiting: Awaiting::new(settings.limits.tasks),
            orphans: 0,
            crowd: 0,
            flushes: Flushes::new(),
            questions: 0,
            answers: VecDeque::new(),
            serial: 0,
        })
    }

    /// Adds a client. Returns its id, for all calls about it.
    pub fn join(&mut self) -> ClientId {
        self.serial += 1;
        let slot = self.clients.insert(Client { serial: self.serial, ..Client::default() });
        ClientId { slot, serial: self.serial }
    }

    /// Removes a client: its bios are taken back, and nothing of it is answered any more. A client that has
    /// left already is ignored.
    pub fn leave(&mut self, now: Instant, client: ClientId) {
        let Some(c) = self.client(client) else { return };
        c.is_gone = true;
        let bios: Vec<BioId> = (self.bios.iter())
            .filter(|(_, p)| p.client == client)
            .map(|(slot, p)| BioId { slot, serial: p.serial })
            .collect();
        for bio in bios {
            self.cancel(now, bio);
        }
        self.drop_if_done(client.slot);
    }

    /// A client asks for nothing more, and goes when it has its last answer.
    pub fn depart(&mut self, client: ClientId) {
        let Some(c) = self.client(client) else { return };
        c.is_leaving = true;
        self.drop_if_done(client.slot);
    }

    fn client(&mut self, client: ClientId) -> Option<&mut Client> {
        self.clients.get_mut(client.slot).filter(|c| c.serial == client.serial && !c.is_gone)
    }

    fn drop_if_done(&mut self, slot: usize) {
        let Some(c) = self.clients.get(slot) else { return };
        if (c.is_gone || c.is_leaving) && c.bios == 0 && !c.is_in_line {
            self.clients.remove(slot);
        }
    }

    /// A number that grows with each bio and flush that is submitted.
    pub(crate) const fn submitted(&self) -> u64 {
        self.serial
    }

    /// A client has sent more while it waited for an answer: it will probably do so again, for a while.
    pub(crate) const fn expect_more(&mut self) {
        self.crowd = CROWD;
    }

    /// Whether one bio is here, and none is expected before it is answered; with several clients, one is.
    pub(crate) fn is_alone(&self) -> bool {
        self.bios.len() == 1 && self.crowd == 0 && self.clients.len() == 1
    }

    /// Whether anything that is here is about this file.
    #[must_use]
    pub fn knows(&self, file: FileId) -> bool {
        self.flushes.knows(file) || self.bios.iter().any(|(_, p)| p.bio.file == file)
    }

    /// Whether anything that is here changes bytes of this file behind `end`.
    pub(crate) fn changes_behind(&self, file: FileId, end: u64) -> bool {
        let is_one = |bio: &Bio| {
            bio.file == file && bio.op.changes() && bio.offset.saturating_add(u64::from(bio.len)) > end
        };
        self.bios.iter().any(|(_, p)| is_one(&p.bio))
    }

    /// The groups of the bios that are here.
    pub(crate) fn busy_groups(&self) -> impl Iterator<Item = GroupId> {
        self.bios.iter().map(|(_, p)| p.bio.group)
    }

    /// Whether the client may submit another bio of `len` bytes now. A bio beyond that is not refused; the
    /// front that reads from the client has to stop.
    #[must_use]
    pub fn has_room(&self, client: ClientId, len: u32) -> bool {
        self.clients.get(client.slot).is_some_and(|c| {
            let bytes = c.bytes + u64::from(len);
            c.bios == 0 || c.bios < self.settings.client_bios_max && bytes <= self.settings.client_bytes_max
        })
    }

    /// A client asks for something. Of one that is gone, nothing becomes of it.
    ///
    /// # Panics
    /// If the bio is empty, or reaches beyond the last byte that there can be: a front sees to that.
    pub fn submit(&mut self, now: Instant, client: ClientId, bio: Bio, data: Option<D>) -> BioId {
        assert!(bio.len > 0 && bio.offset.checked_add(u64::from(bio.len)).is_some(), "{bio:?}");
        self.serial += 1;
        let serial = self.serial;
        let Some(c) = self.client(client) else { return BioId { slot: usize::MAX, serial } };
        c.bios += 1;
        c.bytes += u64::from(bio.len);
        // Before placing: this may be the bio that the disk is kept for.
        self.awaiting.asked(now, bio.task);
        if self.bios.is_empty() {
            self.crowd = self.crowd.saturating_sub(1);
        }
        let slot = self.bios.insert(Pending {
            bio,
            client,
            serial,
            came: now,
            data,
            placed: 0,
            open: 0,
            result: Ok(()),
            is_answered: false,
            is_orphan: false,
        });
        // A write that was given up may still change these bytes, so no answer would be right but an error.
        if self.at_disk.may_change(&bio) {
            self.bios[slot].placed = bio.len;
            self.bios[slot].result = Err(Errno::TIMEDOUT);
            self.finish_bio(slot);
        } else {
            self.clients[client.slot].unplaced.push(LaneId::of(&bio), slot);
            self.line_up(client.slot);
            self.place(now);
        }
        BioId { slot, serial }
    }

    /// Whether the disk still has a write of the same place that was given up or taken back.
    fn is_behind(&self, piece: &Piece) -> bool {
        self.orphans > 0 && self.at_disk.has(piece, |p| self.bios[p.bio.slot].is_orphan)
    }

    /// Takes a bio back: it is answered at once with [`Errno::INTR`], unless it is done. Returns whether it
    /// was not.
    pub fn cancel(&mut self, now: Instant, bio: BioId) -> bool {
        let Some(p) = self.bios.get_mut(bio.slot).filter(|p| p.serial == bio.serial && !p.is_answered) else {
            return false;
        };
        if p.placed < p.bio.len {
            // No further piece is cut; those that are in the elevator already come back empty when it issues
            // them.
            p.placed = p.bio.len;
            let ticket = self.clients[p.client.slot].unplaced.remove(LaneId::of(&p.bio), bio.slot);
            ticket.into_iter().for_each(|t| self.stalled.leave(t));
        }
        p.result = Err(Errno::INTR);
        self.answer_early(bio.slot);
        // A write at the disk may still take effect, so later bios that overlap it wait (`is_behind`).
        self.orphan(bio.slot);
        if self.bios[bio.slot].open == 0 {
            self.finish_bio(bio.slot);
        }
        self.place(now);
        true
    }

    /// Takes the next answer, for the front to pass on to its client.
    pub fn answer(&mut self) -> Option<Answer<D>> {
        self.answers.pop_front()
    }

    fn answer_early(&mut self, slot: usize) {
        let p = &mut self.bios[slot];
        if !std::mem::replace(&mut p.is_answered, true) {
            let answer = p.answer(None);
            self.push_answer(answer);
        }
    }

    fn orphan(&mut self, slot: usize) {
        let p = &mut self.bios[slot];
        if p.bio.op.changes() && !std::mem::replace(&mut p.is_orphan, true) {
            self.orphans += 1;
        }
    }

    fn push_answer(&mut self, answer: Answer<D>) {
        if self.client(answer.client).is_some() {
            self.answers.push_back(answer);
        }
    }

    /// All of it is done: answered, if it is not yet, and forgotten.
    fn finish_bio(&mut self, slot: usize) {
        let mut p = self.bios.remove(slot);
        self.orphans -= u32::from(p.is_orphan);
        let c = &mut self.clients[p.client.slot];
        c.bios -= 1;
        c.bytes -= u64::from(p.bio.len);
        if !p.is_answered {
            let data = p.data.take();
            self.push_answer(p.answer(data));
        }
        self.drop_if_done(p.client.slot);
    }
}

/// Tags.
impl<D> RequestQueue<D> {
    /// Gives tags to those who are in line for them.
    fn place(&mut self, now: Instant) {
        while !self.free.is_empty() {
            let Some(client) = self.line.pop_front() else { return };
            let c = &mut self.clients[client];
            c.is_in_line = false;
            let Some((lane, slot, number)) = c.unplaced.next() else {
                // Its bios were taken back while it was in line.
                self.drop_if_done(client);
                continue;
            };
            let (piece, request) = self.cut(slot);
            let limit = Cause::Limit(request.group, request.op == request::Op::Read);
            // Others of its group wait for this limit: asked now, it could take the room that they wait for.
            if self.stalled.is_behind(limit, number) {
                self.turn_away((client, lane), number, (limit, None));
            } else if let Some(why) = self.obstacle(lane, &piece, &request) {
                self.turn_away((client, lane), number, why);
            } else {
                let (p, c) = (&mut self.bios[slot], &mut self.clients[client]);
                p.placed += piece.len;
                p.open += 1;
                if p.placed == p.bio.len {
                    c.unplaced.placed(lane)
                } else {
                    c.unplaced.goes_on(lane)
                }
                self.insert(now, piece, request);
            }
            // One piece for each turn, then behind the others: a client with many bios delays no other by
            // more than that.
            self.line_up(client);
        }
    }

    /// What stands in the way of a piece; and when that is gone at the latest, if it is known.
    fn obstacle(
        &mut self,
        lane: LaneId,
        piece: &Piece,
        request: &Request,
    ) -> Option<(Cause, Option<Instant>)> {
        self.questions += 1;
        // Order goes before limits: a bio behind a write that may still come needs no room yet.
        if self.is_behind(piece) {
            return Some((Cause::Behind(piece.bio.slot), None));
        }
        if self.elevator().has_room(request) {
            return None;
        }
        // A limit's end is known beforehand. That the scheduler has room shows only when it is asked again.
        let opens = self.elevator().room_at(request);
        let limit = Cause::Limit(request.group, request.op == request::Op::Read);
        Some((opens.map_or(Cause::Scheduler(lane), |_| limit), opens))
    }

    fn turn_away(&mut self, waiter: Waiter, number: Option<u64>, (cause, due): (Cause, Option<Instant>)) {
        let ticket = self.stalled.wait(cause, due, waiter, number);
        self.clients[waiter.0].unplaced.turned_away(waiter.1, ticket);
    }

    /// A client takes its place behind the others, if it has anything to ask.
    fn line_up(&mut self, client: usize) {
        let c = &mut self.clients[client];
        if c.unplaced.has_ready() && !std::mem::replace(&mut c.is_in_line, true) {
            self.line.push_back(client);
        }
    }

    /// Something has changed; `done` is what the disk is done with, if it is that. Those that were turned
    /// away are asked about, by cause.
    fn unstall(&mut self, now: Instant, done: Option<&Request>) {
        // Clients that were not turned away come first; they need no question by cause.
        self.place(now);
        if self.stalled.is_empty() {
            self.retry_at = None;
            return;
        }
        let mut is_all = true;
        // Limits whose time has come.
        while !self.free.is_empty()
            && let Some(cause) = self.stalled.due(now)
        {
            is_all &= self.ask_again(now, cause) != Retry::Moved;
            // One that is due and has no room all the same is asked about with the others.
            if self.stalled.due(now) == Some(cause) {
                self.stalled.set_due(cause, None);
                is_all = false;
            }
        }
        // The completion may have made room for its group, so that line is asked at once.
        if let Some(rq) = done {
            is_all &= self.ask_again(now, Cause::Limit(rq.group, rq.op == request::Op::Read)) != Retry::Moved;
        }
        // Then a bounded number of the others, in turn, so that a completion costs the same however many
        // wait.
        let mut in_vain = 0;
        while in_vain < RETRIES.min(self.stalled.len())
            && !self.free.is_empty()
            && let Some(cause) = self.stalled.next()
        {
            let outcome = self.ask_again(now, cause);
            in_vain += usize::from(outcome != Retry::Placed);
            is_all &= outcome != Retry::Moved;
        }
        is_all &= self.stalled.len() <= RETRIES;
        // What was left out is asked about a moment later, or it would wait for the next completion, which
        // may never come.
        self.retry_at = (!is_all).then_some(now + RETRY_AFTER);
    }

    /// Those that wait for this are placed, the first one first, as long as there is room.
    fn ask_again(&mut self, now: Instant, cause: Cause) -> Retry {
        let mut outcome = Retry::InVain;
        while !self.free.is_empty()
            && let Some((ticket, (client, lane))) = self.stalled.first(cause)
        {
            let slot = self.clients[client].unplaced.oldest(lane).expect("it waits");
            let (piece, request) = self.cut(slot);
            match self.obstacle(lane, &piece, &request) {
                Some((still, due)) if still == cause => {
                    self.stalled.set_due(cause, due);
                    return outcome;
                }
                Some(other) => {
                    // Its bio is another by now, or something else stands in the way of it.
                    self.stalled.leave(ticket);
                    self.turn_away((client, lane), Some(ticket.number), other);
                    return Retry::Moved;
                }
                None => {
                    self.stalled.leave(ticket);
                    self.clients[client].unplaced.retry(lane);
                    self.line_up(client);
                    self.place(now);
                    // Others in line may have taken its room; then it waits again, as the first one.
                    if self.stalled.first(cause).is_some_and(|(t, _)| t == ticket) {
                        return outcome;
                    }
                    outcome = Retry::Placed;
                }
            }
        }
        outcome
    }

    /// The next piece of a bio, and the request that it is.
    fn cut(&self, slot: usize) -> (Piece, Request) {
        let p = &self.bios[slot];
        let offset = p.bio.offset + u64::from(p.placed);
        let left = p.bio.len - p.placed;
        let len = match p.bio.op {
            // A question is asked once, wherever its bytes are: they are only what it costs.
            Op::Extents => left,
            // The first piece ends where the others begin: at a multiple of their size.
            _ => {
                let size = self.settings.piece_bytes_max;
                left.min(size - (offset % u64::from(size)) as u32)
            }
        };
        let piece = Piece {
            bio: BioId { slot, serial: p.serial },
            op: p.bio.op,
            file: p.bio.file,
            offset,
            at: p.placed,
            len,
            fua: p.bio.fua,
            tag: Tag(0),
        };
        (piece, self.request_of(&piece))
    }

    fn insert(&mut self, now: Instant, piece: Piece, request: Request) {
        let tag = self.free.pop().expect("checked before");
        self.serial += 1;
        self.came[tag.index()] = self.serial;
        self.tags[tag.index()] = Some(Piece { tag, ..piece });
        self.elevators.insert(now, tag, request, stays_alone(&piece));
    }

    fn free(&mut self, tag: Tag) {
        debug_assert!(self.tags[tag.index()].is_some(), "freed twice");
        self.tags[tag.index()] = None;
        self.free.push(tag);
    }
}

/// The disk.
impl<D> RequestQueue<D> {
    /// Returns the next work for the disk; `None`: nothing for now. The answer may differ after the next call
    /// of any other kind, at the latest at [`Self::next_timer`].
    pub fn next(&mut self, now: Instant) -> Option<Start> {
        // Flushes go past the elevator, as in the kernel
        // (docs/reference/elevators.md#18-barriers-and-flushes).
        if let Some(file) = self.flushes.begin(self.settings.timeout.map(|t| now + t)) {
            return Some(Start::Flush(file));
        }
        if self.awaiting.is_held(now) {
            return None;
        }
        while self.at_disk.count().0 < self.depth.now() {
            // An answer is a promise to obey, so it is asked for only with room at the disk.
            let Dispatch::Issue(tag) = self.elevators.dispatch(now) else { return None };
            let io = self.start(now, tag);
            if !self.at_disk[io].pieces.is_empty() {
                self.depth.issued(self.at_disk.count().0);
                return Some(Start::Io(io));
            }
            // All of its bios were taken back: it completes without the disk, and the room goes to the next.
            let io = self.at_disk.ends(io);
            self.leave_disk(now, io.era, io.tag);
            self.unstall(now, Some(&io.request));
        }
        None
    }

    fn start(&mut self, now: Instant, tag: Tag) -> IoId {
        let requests = self.elevator().requests();
        let request = requests[tag].rq;
        let tags = [tag].into_iter().chain(requests.carried(tag));
        let mut pieces: Vec<Piece> = tags.filter_map(|t| self.tags[t.index()]).collect();
        // Merged requests are adjacent on the disk; their pieces may be of several bios, in any order of
        // arrival.
        pieces.sort_unstable_by_key(|p| (p.file, p.offset));
        // What was taken back is not done; its tag comes back with the others.
        let cancelled: Vec<Piece> = pieces.extract_if(.., |p| self.bios[p.bio.slot].is_answered).collect();
        let era = self.elevators.era();
        let io = Io { tag, era, request, pieces, began: now, is_given_up: false };
        let id = self.at_disk.begins(io);
        self.drop_pieces(&cancelled);
        id
    }

    /// The pieces of an io, in order of file and offset.
    #[must_use]
    pub fn pieces(&self, io: IoId) -> &[Piece] {
        &self.at_disk[io].pieces
    }

    /// Whether the io was given up: no client waits for it any more.
    #[must_use]
    pub fn is_given_up(&self, io: IoId) -> bool {
        self.at_disk[io].is_given_up
    }

    /// The request that an io is for the scheduler: the whole, including bios that have been taken back.
    #[must_use]
    pub fn request(&self, io: IoId) -> &Request {
        &self.at_disk[io].request
    }

    /// The bio that a piece is of.
    #[must_use]
    pub fn bio(&self, piece: &Piece) -> &Bio {
        &self.bios[piece.bio.slot].bio
    }

    /// The data of a piece's bio, with which it was handed in or that the driver puts there.
    pub fn data(&mut self, piece: &Piece) -> &mut Option<D> {
        &mut self.bios[piece.bio.slot].data
    }

    /// The disk is done with an io; `results` are those of its pieces.
    ///
    /// # Panics
    /// If there are not as many results as pieces.
    pub fn finished(&mut self, now: Instant, io: IoId, results: &[Result<(), Errno>]) {
        let io = self.at_disk.ends(io);
        assert_eq!(results.len(), io.pieces.len(), "a result for each piece");
        for (piece, result) in io.pieces.iter().zip(results) {
            let p = &mut self.bios[piece.bio.slot];
            p.result = p.result.and(*result);
        }
        // For the elevator and the depth it ended when it was given up.
        if !io.is_given_up {
            self.depth.took(now.saturating_since(io.began), self.at_disk.count().0);
            self.leave_disk(now, io.era, io.tag);
        }
        self.drop_pieces(&io.pieces);
        // The scheduler that issued it may have been replaced; the new one says nothing about its tasks.
        if io.era == self.elevators.era() && self.elevator().prefers(&io.request) {
            self.awaiting.answered(now, io.request.task);
        }
        self.unstall(now, Some(&io.request));
    }

    fn drop_pieces(&mut self, pieces: &[Piece]) {
        for piece in pieces {
            let p = &mut self.bios[piece.bio.slot];
            p.open -= 1;
            if p.open == 0 && p.placed == p.bio.len {
                self.finish_bio(piece.bio.slot);
            }
        }
    }

    /// For the scheduler that issued it, the disk is done with it, and its tags are free.
    fn leave_disk(&mut self, now: Instant, era: u64, tag: Tag) {
        let mut tags = std::mem::take(&mut self.freed);
        self.elevators.complete(now, era, tag, &mut tags);
        tags.drain(..).for_each(|tag| self.free(tag));
        self.freed = tags;
    }

    /// Time has come to [`Self::next_timer`], or any other.
    pub fn timer(&mut self, now: Instant) {
        self.elevators.timer(now);
        while let Some(io) = self.at_disk.late(now) {
            self.give_up(now, io);
        }
        while let Some((file, whom)) = self.flushes.give_up(now) {
            self.answer_flushes(file, whom, Err(Errno::TIMEDOUT));
        }
        self.unstall(now, None);
    }

    fn give_up(&mut self, now: Instant, id: IoId) {
        self.at_disk.gives_up(id);
        let io = &self.at_disk[id];
        let (tag, era, pieces) = (io.tag, io.era, io.pieces.clone());
        // Its place goes to others at once; the io itself stays known until the kernel returns it, as its
        // memory is still in use.
        self.leave_disk(now, era, tag);
        for piece in pieces {
            let p = &mut self.bios[piece.bio.slot];
            p.result = Err(Errno::TIMEDOUT);
            self.answer_early(piece.bio.slot);
            self.orphan(piece.bio.slot);
        }
        self.give_up_what_waits_for_it();
    }

    /// What has no tag yet fails as it would if it came now.
    fn give_up_what_waits_for_it(&mut self) {
        let waiting = self.clients.iter().flat_map(|(_, c)| c.unplaced.bios());
        let doubtful: Vec<usize> =
            waiting.filter(|&slot| self.at_disk.may_change(&self.bios[slot].bio)).collect();
        for slot in doubtful {
            let p = &mut self.bios[slot];
            (p.placed, p.result) = (p.bio.len, Err(Errno::TIMEDOUT));
            let ticket = self.clients[p.client.slot].unplaced.remove(LaneId::of(&p.bio), slot);
            ticket.into_iter().for_each(|t| self.stalled.leave(t));
            if p.open == 0 {
                self.finish_bio(slot);
            }
        }
    }

    /// Returns when to call [`Self::timer`] at the latest.
    #[must_use]
    pub fn next_timer(&self) -> Option<Instant> {
        // Without a free tag a retry could place nothing; the next completion asks anyway.
        let retries = [self.retry_at, self.stalled.next_due()].into_iter().filter(|_| !self.free.is_empty());
        let timers = [self.elevators.next_timer(), self.at_disk.next_timer(), self.flushes.next_timer()];
        let timers = timers.into_iter().chain(retries).chain([self.awaiting.until()]);
        timers.flatten().min()
    }
}

/// Flushes.
impl<D> RequestQueue<D> {
    /// A client wants stable what was answered before.
    pub fn flush(&mut self, client: ClientId, file: FileId, cookie: u64) {
        self.serial += 1;
        let Some(c) = self.client(client) else { return };
        c.bios += 1;
        if let Err(who) = self.flushes.ask(file, (client, cookie)) {
            self.answer_flushes(file, vec![who], Err(Errno::TIMEDOUT));
        }
    }

    /// Data of the file could not be made stable. They may be any client's, so each client that is here gets
    /// the error once, with its next flush.
    pub fn sync_failed(&mut self, file: FileId, errno: Errno) {
        self.serial += 1;
        self.flushes.failed(file, self.serial, errno);
    }

    /// The file of this number is no more; the next one has nothing to do with it.
    pub fn forget(&mut self, file: FileId) {
        self.flushes.forget(file);
    }

    /// The file's flush is done.
    pub fn flushed(&mut self, file: FileId, result: Result<(), Errno>) {
        let whom = self.flushes.done(file, result.is_ok());
        if let Err(errno) = result {
            self.sync_failed(file, errno);
        }
        self.answer_flushes(file, whom, result);
    }

    fn answer_flushes(&mut self, file: FileId, whom: Vec<(ClientId, u64)>, result: Result<(), Errno>) {
        for (client, cookie) in whom {
            // Of one that is gone the slot may be another's by now.
            let Some(c) = self.clients.get_mut(client.slot).filter(|c| c.serial == client.serial) else {
                continue;
            };
            c.bios -= 1;
            // The kernel reports a failed write-back once, to one caller. Here each client that was connected
            // then gets it, once.
            let heard = c.heard.get(&file).copied().unwrap_or(c.serial);
            let missed = self.flushes.news(file, heard);
            if let Some((at, _)) = missed {
                c.heard.insert(file, at);
            }
            let result = result.and(missed.map_or(Ok(()), |(_, errno)| Err(errno)));
            self.push_answer(Answer { client, cookie, result, origin: None, data: None });
            self.drop_if_done(client.slot);
        }
    }
}

/// Changes, and what can be seen.
impl<D> RequestQueue<D> {
    /// Something changes from outside, as in [`Elevator::control`].
    ///
    /// # Errors
    /// If it cannot be; then nothing has changed.
    pub fn control(&mut self, now: Instant, change: Control) -> Result<(), Refusal> {
        self.elevators.control(now, change)?;
        self.awaiting.end();
        self.unstall(now, None);
        Ok(())
    }

    /// Changes the scheduler or its tunables. The waiting requests are handed over in the order in which they
    /// came; nothing stops meanwhile.
    ///
    /// # Errors
    /// If a tunable is out of range; then nothing has changed.
    pub fn switch(&mut self, now: Instant, config: AnyConfig) -> Result<(), ConfigError> {
        let mut waiting = self.elevators.switch(now, config)?;
        self.awaiting.end();
        // The new scheduler sees the arrivals that the old one saw, in their order.
        waiting.sort_unstable_by_key(|t| self.came[t.index()]);
        for tag in waiting {
            let piece = self.tags[tag.index()].expect("it waits");
            self.elevators.insert(now, tag, self.request_of(&piece), stays_alone(&piece));
        }
        self.unstall(now, None);
        Ok(())
    }

    /// What a piece is for the elevator.
    fn request_of(&self, piece: &Piece) -> Request {
        let bio = &self.bios[piece.bio.slot].bio;
        let first = piece.offset / SECTOR - bio.offset / SECTOR;
        let sectors = (piece.offset % SECTOR + u64::from(piece.len)).div_ceil(SECTOR);
        Request {
            start: bio.sector + Sectors(u32::try_from(first).expect("a bio has less than 4 GiB")),
            len: Sectors(u32::try_from(sectors).expect("a piece is smaller")),
            op: match bio.op {
                Op::Read | Op::Extents => request::Op::Read,
                Op::Write => request::Op::Write,
                Op::Discard | Op::Zero { .. } | Op::Allocate { .. } => request::Op::Discard,
            },
            sync: bio.sync || !bio.op.changes(),
            meta: false,
            no_idle: false,
            task: bio.task,
            group: bio.group,
            prio: bio.prio,
        }
    }

    /// Returns the statistics of each group since the queue was made, by number.
    #[must_use]
    pub fn all_stats(&self) -> Vec<GroupStats> {
        self.elevators.all_stats()
    }

    /// The scheduler's tunables.
    #[must_use]
    pub const fn config(&self) -> &AnyConfig {
        self.elevators.config()
    }

    /// The elevator, to look at.
    #[must_use]
    pub const fn elevator(&self) -> &Elevator<AnyScheduler> {
        self.elevators.elevator()
    }

    /// Records the elevator's events and decisions from now on, for [`Self::take_events`]. Call it before any
    /// other method.
    ///
    /// # Panics
    /// If something has been submitted before: the story would have no beginning.
    pub fn record(&mut self) {
        assert_eq!(self.serial, 0, "recording begins at the beginning");
        self.elevators.record();
    }

    /// Takes the events that were recorded since the last call.
    pub fn take_events(&mut self) -> Vec<Event> {
        self.elevators.take_events()
    }

    /// Returns the limits that the elevator was made with.
    #[must_use]
    pub const fn limits(&self) -> &Limits {
        &self.settings.limits
    }

    /// How often it was asked whether a bio may go to the elevator, since the queue was made: what those that
    /// wait cost the others.
    #[must_use]
    pub const fn questions(&self) -> u64 {
        self.questions
    }

    /// How many ios the disk may have at a time, and whether that adapts.
    #[must_use]
    pub const fn depth(&self) -> (u16, bool) {
        (self.depth.now(), self.depth.is_adaptive())
    }

    /// Sets the depth, 1 to 1024; `None` goes back to the default. Ios that the disk has already stay there.
    ///
    /// # Errors
    /// If it is out of range; then nothing has changed.
    pub fn set_depth(&mut self, depth: Option<u16>) -> Result<(), String> {
        if depth.is_some_and(|d| !(1..=AT_DISK_MAX).contains(&d)) {
            return Err(format!("depth {}: 1 to {AT_DISK_MAX}, or auto", depth.unwrap_or_default()));
        }
        self.depth.set(depth);
        Ok(())
    }

    /// How many ios the disk has that have not been given up, and how many that have.
    #[must_use]
    pub const fn in_flight(&self) -> (u16, u32) {
        self.at_disk.count()
    }

    /// Walks everything and panics if anything is inconsistent. For tests.
    pub fn check(&self) {
        self.elevator().check();
        self.at_disk.check();
        let used = self.tags.iter().flatten().count();
        assert_eq!(used + self.free.len(), self.tags.len(), "tags in use and free ones");
        assert_eq!(self.bios.iter().filter(|(_, p)| p.is_orphan).count(), self.orphans as usize);
        let mut counts = vec![(0, 0); self.clients.capacity()];
        for (_, p) in &self.bios {
            counts[p.client.slot].0 += 1;
            counts[p.client.slot].1 += u64::from(p.bio.len);
        }
        for (client, _) in self.flushes.all() {
            counts[client.slot].0 += 1;
        }
        for (slot, c) in &self.clients {
            assert_eq!((c.bios, c.bytes), counts[slot], "what client {slot} has here");
            c.unplaced.check();
            assert!(
                c.is_in_line || !c.unplaced.has_ready(),
                "client {slot} waits for tags and is not in line"
            );
        }
        self.stalled.check();
        let away =
            self.clients.iter().flat_map(|(slot, c)| c.unplaced.away().map(move |(t, l)| (t, (slot, l))));
        let mut away: Vec<_> = away.collect();
        away.sort_unstable();
        assert!(self.stalled.all().eq(away), "who was turned away stands in a line");
    }
}
