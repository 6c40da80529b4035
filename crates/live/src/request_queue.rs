//! The request queue of one scheduled disk: everything between a client's bio and the backing store that is not I/O.
//!
//! It is to the live engine what the block layer is to a kernel. A *bio* is what a client asks for. It is cut into *pieces* that the
//! device takes; each goes to the [`Elevator`] as a request under a tag, where neighbours are merged. What the elevator issues is an
//! *io*: one or more pieces in a row. Whoever drives the queue does it, and says how it went.
//!
//! ```text
//!   submit(bio, data) ─► bios ──cut──► tags ─► Elevator ─► next(now) → Io ─► driver: read, write, …
//!                          ▲   clients take turns for tags                          │
//!   answer() ◄─────────────┴────────────────── finished(io, piece by piece) ◄───────┘
//!   flush(file) ─► at once, past the elevator
//! ```
//!
//! **Clients** take turns for tags, and a client's tasks among themselves; and the elevator has its say ([`Elevator::has_room`]): of a group at its
//! limit, not all tags wait. The task that it turns away waits alone.
//! Each client may have so many bios and bytes here ([`RequestQueue::has_room`]); a front stops reading from one that has no room.
//!
//! **Cancel.** A bio that is taken back is answered at once. Its requests stay in the elevator until it issues them, and then
//! take no time. What is at the disk cannot be taken back: its data stay until the disk is done with them. A write that is taken back
//! there may still come, so what overlaps it waits until it has: nothing that is asked for later is overtaken by it.
//!
//! **Stuck.** An io that takes longer than [`Settings::timeout`] is given up: its clients get [`Errno::TIMEDOUT`], the elevator sees it complete,
//! and its place at the disk goes to others. Should it come back, that changes nothing. Until then it may still write; so what
//! overlaps a write that was given up fails in the same way, or somebody would read what changes behind his back.
//!
//! **Flush** covers the writes that were answered before it came. One is under way for each file; those that come meanwhile share
//! the next. If it fails, what was lost may be anybody's, and the kernel does not say so twice: all who wait fail with it, and
//! each client that was there then hears it at its next flush. While one that was given up may still come, flushes of its file fail.
//!
//! **Switch.** Another scheduler takes over what waits, in the order in which it came. What is at the disk finishes by itself.
//!
//! What it does not do: time, threads, files, memory. The engine's loop drives it, and tests with a disk made of a vector.

use crate::bio::{Answer, Bio, BioId, ClientId, Errno, FileId, Op, Origin};
use crate::depth::{AT_DISK_MAX, Depth};
use crate::lanes::Lanes;
use crate::recording::{Event, Recorded};
use fairhead_core::config::ConfigError;
use fairhead_core::elevator::{Control, Dispatch, Elevator, Limits};
use fairhead_core::groups::{GroupStats, Refusal};
use fairhead_core::request::{self, Request, State};
use fairhead_core::sched::any::{AnyConfig, AnyScheduler};
use fairhead_core::units::{Duration, GroupId, Id, Instant, Sectors, Tag};
use slab::Slab;
use std::collections::{BTreeMap, VecDeque};

const SECTOR: u64 = 512;

/// Sizes and facts that a queue is made for.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// What the elevator is made for; `queue_depth` is the depth at first.
    pub limits: Limits,
    /// Whether the depth follows how long the disk takes, within 8 to 32. Default false.
    pub adaptive_depth: bool,
    /// The largest piece of a bio, in bytes: a multiple of 4096. Default 512 KiB.
    pub piece_bytes_max: u32,
    /// How many bios one client may have here. Default 256.
    pub client_bios_max: u32,
    /// How many bytes one client may have here. Default 32 MiB, the largest request of NBD; one bio always has room.
    pub client_bytes_max: u64,
    /// How long an io may take before it is given up. Default 30 s, as for SCSI disks.
    //= linux-6.12 drivers/scsi/sd.h SD_TIMEOUT
    pub timeout: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            limits: Limits { tags: 1024, tasks: 1024, groups: 256, ..Limits::default() },
            adaptive_depth: false,
            piece_bytes_max: 512 << 10,
            client_bios_max: 256,
            client_bytes_max: 32 << 20,
            timeout: Duration::from_secs(30),
        }
    }
}

/// A part of a bio, as long as the device takes it: the unit that is merged, done, and fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Piece {
    /// In [`RequestQueue::data`]: whose data.
    pub bio: BioId,
    /// What to do.
    pub op: Op,
    /// In which file.
    pub file: FileId,
    /// The first byte in the file.
    pub offset: u64,
    /// Where that is in the bio's data.
    pub at: u32,
    /// How many bytes.
    pub len: u32,
    /// Done when it is stable.
    pub fua: bool,
    pub(crate) tag: Tag,
}

impl Piece {
    /// Whether `next` continues this one, so that one transfer does for both.
    #[must_use]
    pub fn is_followed_by(&self, next: &Self) -> bool {
        (self.op, self.file, self.fua, self.offset + u64::from(self.len))
            == (next.op, next.file, next.fua, next.offset)
    }
}

/// An io's number, until it is [finished](RequestQueue::finished).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct IoId(pub usize);

/// What the driver shall do now.
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Start {
    /// The [pieces](RequestQueue::pieces) of this io, then say [`RequestQueue::finished`].
    Io(IoId),
    /// Make stable what was written to this file, then say [`RequestQueue::flushed`].
    Flush(FileId),
}

#[derive(Debug)]
struct Pending<D> {
    bio: Bio,
    client: ClientId,
    serial: u64,
    came: Instant,
    data: Option<D>,
    /// So many bytes have been cut off and given to the elevator.
    placed: u32,
    /// So many pieces are there, or at the disk.
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
    /// Whether it is in line for tags; and among those of whom the elevator has turned some task away.
    is_in_line: bool,
    is_stalled: bool,
    /// Goes when the last bio is answered; or is gone, and hears nothing any more.
    is_leaving: bool,
    is_gone: bool,
}

#[derive(Debug)]
struct Io {
    tag: Tag,
    /// Which scheduler issued it, counted from the first.
    era: u64,
    request: Request,
    pieces: Vec<Piece>,
    began: Instant,
    gives_up: Instant,
    is_given_up: bool,
}

/// A scheduler that has another in its place, until the disk is done with what it issued.
#[derive(Debug)]
struct Retired {
    elevator: Elevator<AnyScheduler>,
    era: u64,
}

#[derive(Debug, Default)]
struct Flushes {
    /// When the one under way is given up; nothing, if it was.
    gives_up: Option<Instant>,
    is_running: bool,
    /// The last failure, and when that was.
    failed: Option<(u64, Errno)>,
    is_in_line: bool,
    /// Who waits for the one under way, and for the next.
    covered: Vec<(ClientId, u64)>,
    waiting: Vec<(ClientId, u64)>,
}

/// See the [module](self).
#[derive(Debug)]
pub struct RequestQueue<D> {
    settings: Settings,
    elevator: Recorded,
    config: AnyConfig,
    retired: Vec<Retired>,
    era: u64,
    /// By tag: the piece; and when the tag was given out, to hand them over in order. Those not in use are in `free`.
    tags: Vec<Option<Piece>>,
    came: Vec<u64>,
    free: Vec<Tag>,
    clients: Slab<Client>,
    bios: Slab<Pending<D>>,
    /// Clients that have something to place, in turn; and those of whom the elevator has turned some task away.
    line: VecDeque<usize>,
    stalled: Vec<usize>,
    ios: Slab<Io>,
    depth: Depth,
    in_flight: u16,
    given_up: u32,
    orphans: u32,
    flushes: Vec<Flushes>,
    flush_line: VecDeque<FileId>,
    answers: VecDeque<Answer<D>>,
    /// What groups got under schedulers before this one, by group.
    before: Vec<GroupStats>,
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
            elevator: Recorded::new(Elevator::new(settings.limits, config)?),
            config,
            retired: Vec::new(),
            era: 0,
            tags: vec![None; usize::from(tags)],
            came: vec![0; usize::from(tags)],
            free: (0..tags).rev().map(Tag).collect(),
            clients: Slab::new(),
            bios: Slab::new(),
            line: VecDeque::new(),
            stalled: Vec::new(),
            ios: Slab::new(),
            depth: Depth::new(settings.limits.queue_depth, settings.adaptive_depth),
            in_flight: 0,
            given_up: 0,
            orphans: 0,
            flushes: Vec::new(),
            flush_line: VecDeque::new(),
            answers: VecDeque::new(),
            before: vec![GroupStats::default(); settings.limits.groups as usize],
            serial: 0,
        })
    }

    /// Somebody new.
    pub fn join(&mut self) -> ClientId {
        self.serial += 1;
        let slot = self.clients.insert(Client { serial: self.serial, ..Client::default() });
        ClientId { slot, serial: self.serial }
    }

    /// A client goes: its bios are taken back, and nothing is answered any more. Unknown clients are nobody.
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
        let c = &self.clients[slot];
        if (c.is_gone || c.is_leaving) && c.bios == 0 && !c.is_in_line && !c.is_stalled {
            self.clients.remove(slot);
        }
    }

    /// Whether anything that is here is about this file.
    #[must_use]
    pub fn knows(&self, file: FileId) -> bool {
        let flushes = |f: &Flushes| f.is_running || f.is_in_line || !f.waiting.is_empty();
        self.flushes.get(file.0 as usize).is_some_and(flushes)
            || self.bios.iter().any(|(_, p)| p.bio.file == file)
    }

    /// Whether the client may hand in another bio of `len` bytes now. Who does so all the same is not refused; it is who reads from
    /// a client that has to stop.
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
        if self.given_up > 0 && self.is_in_doubt(&bio) {
            self.bios[slot].placed = bio.len;
            self.bios[slot].result = Err(Errno::TIMEDOUT);
            self.finish_bio(slot);
        } else {
            self.clients[client.slot].unplaced.push(bio.task, slot);
            self.line_up(client.slot);
            self.place(now);
        }
        BioId { slot, serial }
    }

    /// Whether a write that was given up may still change what this is about.
    fn is_in_doubt(&self, bio: &Bio) -> bool {
        let end = bio.offset + u64::from(bio.len);
        self.ios.iter().filter(|(_, io)| io.is_given_up).flat_map(|(_, io)| &io.pieces).any(|p| {
            p.op != Op::Read
                && p.file == bio.file
                && p.offset < end
                && bio.offset < p.offset + u64::from(p.len)
        })
    }

    /// Whether the disk has a write that nobody waits for any more, and that would change what this is about.
    fn is_behind(&self, piece: &Piece) -> bool {
        self.orphans > 0
            && self.ios.iter().flat_map(|(_, io)| &io.pieces).any(|p| {
                self.bios[p.bio.slot].is_orphan
                    && p.file == piece.file
                    && p.offset < piece.offset + u64::from(piece.len)
                    && piece.offset < p.offset + u64::from(p.len)
            })
    }

    /// Takes a bio back: it is answered at once with [`Errno::INTR`], unless it is done. Answers whether it was not.
    pub fn cancel(&mut self, now: Instant, bio: BioId) -> bool {
        let Some(p) = self.bios.get_mut(bio.slot).filter(|p| p.serial == bio.serial && !p.is_answered) else {
            return false;
        };
        if p.placed < p.bio.len {
            p.placed = p.bio.len;
            self.clients[p.client.slot].unplaced.remove(p.bio.task, bio.slot);
        }
        p.result = Err(Errno::INTR);
        self.answer_early(bio.slot);
        self.orphan(bio.slot);
        if self.bios[bio.slot].open == 0 {
            self.finish_bio(bio.slot);
        }
        self.place(now);
        true
    }

    /// What to tell whom.
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
        if p.bio.op != Op::Read && !std::mem::replace(&mut p.is_orphan, true) {
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
            let Some((task, slot)) = c.unplaced.next() else {
                self.drop_if_done(client);
                continue;
            };
            let (piece, request) = self.cut(slot);
            if self.is_behind(&piece) || !self.elevator.elevator().has_room(&request) {
                let c = &mut self.clients[client];
                c.unplaced.turned_away(task);
                if !std::mem::replace(&mut c.is_stalled, true) {
                    self.stalled.push(client);
                }
            } else {
                let (p, c) = (&mut self.bios[slot], &mut self.clients[client]);
                p.placed += piece.len;
                p.open += 1;
                if p.placed == p.bio.len {
                    c.unplaced.placed(task)
                } else {
                    c.unplaced.goes_on(task)
                }
                self.insert(now, piece, request);
            }
            self.line_up(client);
        }
    }

    /// A client takes its place behind the others, if it has anything to ask.
    fn line_up(&mut self, client: usize) {
        let c = &mut self.clients[client];
        if c.unplaced.has_ready() && !std::mem::replace(&mut c.is_in_line, true) {
            self.line.push_back(client);
        }
    }

    /// Who was turned away by the elevator may try again.
    fn unstall(&mut self, now: Instant) {
        for client in std::mem::take(&mut self.stalled) {
            let c = &mut self.clients[client];
            c.unplaced.retry();
            c.is_stalled = c.unplaced.has_away();
            if c.is_stalled {
                self.stalled.push(client);
            }
            self.line_up(client);
            self.drop_if_done(client);
        }
        self.place(now);
    }

    /// The next piece of a bio, and the request that it is.
    fn cut(&self, slot: usize) -> (Piece, Request) {
        let p = &self.bios[slot];
        let offset = p.bio.offset + u64::from(p.placed);
        // The first piece ends where the others begin: at a multiple of their size.
        let most = self.settings.piece_bytes_max - (offset % u64::from(self.settings.piece_bytes_max)) as u32;
        let len = most.min(p.bio.len - p.placed);
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
        self.elevator.insert(now, tag, request);
    }

    fn free(&mut self, tag: Tag) {
        debug_assert!(self.tags[tag.index()].is_some(), "freed twice");
        self.tags[tag.index()] = None;
        self.free.push(tag);
    }
}

/// The disk.
impl<D> RequestQueue<D> {
    /// What shall the disk do next? `None`: nothing for now. Something else may be said after the next call of any other kind, at the
    /// latest at [`Self::next_timer`].
    pub fn next(&mut self, now: Instant) -> Option<Start> {
        if let Some(file) = self.flush_line.pop_front() {
            self.start_flush(now, file);
            return Some(Start::Flush(file));
        }
        while self.in_flight < self.depth.now() {
            let Dispatch::Issue(tag) = self.elevator.dispatch(now) else { return None };
            let io = self.start(now, tag);
            if !self.ios[io.0].pieces.is_empty() {
                self.depth.issued(self.in_flight);
                return Some(Start::Io(io));
            }
            self.end(now, io);
            self.unstall(now);
        }
        None
    }

    fn start(&mut self, now: Instant, tag: Tag) -> IoId {
        let requests = self.elevator.elevator().requests();
        let carried = requests.carried(tag);
        let mut pieces: Vec<Piece> =
            [tag].into_iter().chain(carried).filter_map(|t| self.tags[t.index()]).collect();
        pieces.sort_unstable_by_key(|p| (p.file, p.offset));
        let gives_up = now + self.settings.timeout;
        self.in_flight += 1;
        // What was taken back is not done; its tag comes back with the others.
        let (cancelled, pieces) = pieces.into_iter().partition(|p| self.bios[p.bio.slot].is_answered);
        let request = requests[tag].rq;
        let io = Io { tag, era: self.era, request, pieces, began: now, gives_up, is_given_up: false };
        let id = IoId(self.ios.insert(io));
        self.drop_pieces(&cancelled);
        id
    }

    /// The pieces of an io, in order of file and offset.
    #[must_use]
    pub fn pieces(&self, io: IoId) -> &[Piece] {
        &self.ios[io.0].pieces
    }

    /// Whether nobody waits for an io any more.
    #[must_use]
    pub fn is_given_up(&self, io: IoId) -> bool {
        self.ios[io.0].is_given_up
    }

    /// What an io is for the scheduler: the whole, with what has been taken back.
    #[must_use]
    pub fn request(&self, io: IoId) -> &Request {
        &self.ios[io.0].request
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
        let pieces = std::mem::take(&mut self.ios[io.0].pieces);
        assert_eq!(results.len(), pieces.len(), "a result for each piece");
        for (piece, result) in pieces.iter().zip(results) {
            let p = &mut self.bios[piece.bio.slot];
            p.result = p.result.and(*result);
        }
        if !self.ios[io.0].is_given_up {
            self.depth.took(now.saturating_since(self.ios[io.0].began), self.in_flight - 1);
        }
        self.end(now, io);
        self.drop_pieces(&pieces);
        self.unstall(now);
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

    /// Nothing is left of an io.
    fn end(&mut self, now: Instant, io: IoId) {
        let Io { tag, era, is_given_up, .. } = self.ios.remove(io.0);
        if is_given_up {
            self.given_up -= 1;
        } else {
            self.leave_disk(now, tag, era);
        }
    }

    /// For the scheduler that issued it, the disk is done with it; its place there and its tags are free.
    fn leave_disk(&mut self, now: Instant, tag: Tag, era: u64) {
        self.in_flight -= 1;
        let retired = self.retired.iter().position(|r| r.era == era);
        let tags: Vec<Tag> = match retired {
            Some(i) => self.retired[i].elevator.complete(now, tag).collect(),
            None => self.elevator.complete(now, tag).collect(),
        };
        for tag in tags {
            self.free(tag);
        }
        if let Some(i) = retired.filter(|&i| self.retired[i].elevator.requests().issued() == 0) {
            let old = self.retired.swap_remove(i);
            Self::add_books(&mut self.before, &old.elevator);
        }
    }

    /// Time has come to [`Self::next_timer`], or any other.
    pub fn timer(&mut self, now: Instant) {
        if self.elevator.elevator().next_timer().is_some_and(|(at, _)| at <= now) {
            self.elevator.timer(now);
        }
        let is_late = |io: &Io| !io.is_given_up && io.gives_up <= now;
        while let Some(io) = self.ios.iter().find(|(_, io)| is_late(io)).map(|(slot, _)| IoId(slot)) {
            self.give_up(now, io);
        }
        for file in 0..self.flushes.len() {
            if self.flushes[file].gives_up.is_some_and(|at| at <= now) {
                let f = &mut self.flushes[file];
                f.gives_up = None;
                let mut covered = std::mem::take(&mut f.covered);
                covered.append(&mut f.waiting);
                self.answer_flushes(FileId(file as u32), covered, Err(Errno::TIMEDOUT));
            }
        }
        self.unstall(now);
    }

    fn give_up(&mut self, now: Instant, id: IoId) {
        let io = &mut self.ios[id.0];
        io.is_given_up = true;
        let (tag, era, pieces) = (io.tag, io.era, io.pieces.clone());
        self.given_up += 1;
        self.leave_disk(now, tag, era);
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
        let doubtful: Vec<usize> = waiting.filter(|&slot| self.is_in_doubt(&self.bios[slot].bio)).collect();
        for slot in doubtful {
            let p = &mut self.bios[slot];
            (p.placed, p.result) = (p.bio.len, Err(Errno::TIMEDOUT));
            self.clients[p.client.slot].unplaced.remove(p.bio.task, slot);
            if p.open == 0 {
                self.finish_bio(slot);
            }
        }
    }

    /// When to call [`Self::timer`] at the latest.
    #[must_use]
    pub fn next_timer(&self) -> Option<Instant> {
        let elevator = self.elevator.elevator().next_timer().map(|t| t.0);
        let io = self.ios.iter().filter(|(_, io)| !io.is_given_up).map(|(_, io)| io.gives_up).min();
        let flush = self.flushes.iter().filter_map(|f| f.gives_up).min();
        [elevator, io, flush].into_iter().flatten().min()
    }
}

/// Flushes.
impl<D> RequestQueue<D> {
    /// A client wants stable what was answered before.
    pub fn flush(&mut self, client: ClientId, file: FileId, cookie: u64) {
        let Some(c) = self.client(client) else { return };
        c.bios += 1;
        let f = self.flushes_of(file);
        if f.is_running && f.gives_up.is_none() {
            return self.answer_flushes(file, vec![(client, cookie)], Err(Errno::TIMEDOUT));
        }
        f.waiting.push((client, cookie));
        self.line_up_for_flush(file);
    }

    fn line_up_for_flush(&mut self, file: FileId) {
        let f = &mut self.flushes[file.0 as usize];
        if !f.is_running && !f.is_in_line && !f.waiting.is_empty() {
            f.is_in_line = true;
            self.flush_line.push_back(file);
        }
    }

    fn start_flush(&mut self, now: Instant, file: FileId) {
        let gives_up = now + self.settings.timeout;
        let f = &mut self.flushes[file.0 as usize];
        f.covered = std::mem::take(&mut f.waiting);
        (f.is_in_line, f.is_running, f.gives_up) = (false, true, Some(gives_up));
    }

    /// Something in the file could not be made stable: it may be anybody's, and each client that is here hears it once.
    pub fn sync_failed(&mut self, file: FileId, errno: Errno) {
        self.serial += 1;
        let failed = Some((self.serial, errno));
        self.flushes_of(file).failed = failed;
    }

    /// The file of this number is no more; the next one has nothing to do with it.
    pub fn forget(&mut self, file: FileId) {
        self.flushes_of(file).failed = None;
    }

    fn flushes_of(&mut self, file: FileId) -> &mut Flushes {
        let index = file.0 as usize;
        if self.flushes.len() <= index {
            self.flushes.resize_with(index + 1, Flushes::default);
        }
        &mut self.flushes[index]
    }

    /// The file's flush is done.
    pub fn flushed(&mut self, file: FileId, result: Result<(), Errno>) {
        let f = &mut self.flushes[file.0 as usize];
        (f.is_running, f.gives_up) = (false, None);
        let mut covered = std::mem::take(&mut f.covered);
        if let Err(errno) = result {
            covered.append(&mut f.waiting);
            self.sync_failed(file, errno);
        }
        self.answer_flushes(file, covered, result);
        self.line_up_for_flush(file);
    }

    fn answer_flushes(&mut self, file: FileId, covered: Vec<(ClientId, u64)>, result: Result<(), Errno>) {
        let failed = self.flushes[file.0 as usize].failed;
        for (client, cookie) in covered {
            // Of one that is gone the slot may be another's by now.
            let Some(c) = self.clients.get_mut(client.slot).filter(|c| c.serial == client.serial) else {
                continue;
            };
            c.bios -= 1;
            let heard = c.heard.get(&file).copied().unwrap_or(c.serial);
            let missed = failed.filter(|&(at, _)| at > heard);
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
        let groups = self.elevator.elevator().groups();
        let is_new = matches!(change, Control::SetParent(g, _) if !groups.exists(g));
        self.elevator.control(now, change)?;
        if let Control::SetParent(group, _) = change
            && is_new
        {
            // What had its number before got that.
            self.before[group.index()] = GroupStats::default();
        }
        self.unstall(now);
        Ok(())
    }

    /// Another scheduler, or other tunables. What waits is handed over in the order in which it came; nothing stops meanwhile.
    ///
    /// # Errors
    /// If a tunable is out of range; then nothing has changed.
    pub fn switch(&mut self, now: Instant, config: AnyConfig) -> Result<(), ConfigError> {
        if self.config.scheduler() == config.scheduler() && self.elevator.reconfigure(now, config)? {
            self.config = config;
            return Ok(());
        }
        let new = Elevator::new(self.settings.limits, config)?;
        let old = self.elevator.replace(new, config);
        self.config = config;
        self.take_over_groups(now, &old);
        let mut waiting: Vec<Tag> = old
            .requests()
            .iter()
            .filter(|(_, slot)| matches!(slot.state, State::Queued | State::Held))
            .flat_map(|(tag, _)| old.requests().carried(tag).chain([tag]))
            .collect();
        waiting.sort_unstable_by_key(|t| self.came[t.index()]);
        for tag in waiting {
            let piece = self.tags[tag.index()].expect("it waits");
            let request = self.request_of(&piece);
            self.elevator.insert(now, tag, request);
        }
        if old.requests().issued() > 0 {
            self.retired.push(Retired { elevator: old, era: self.era });
        } else {
            Self::add_books(&mut self.before, &old);
        }
        self.era += 1;
        self.unstall(now);
        Ok(())
    }

    /// The new scheduler's groups are as they were under the old one.
    fn take_over_groups(&mut self, now: Instant, old: &Elevator<AnyScheduler>) {
        let (groups, new) = (old.groups(), self.elevator.elevator().groups());
        let mut all: Vec<GroupId> = (1..groups.count()).map(GroupId::from_index).collect();
        let depth = |g: GroupId| std::iter::successors(groups.parent(g), |&p| groups.parent(p)).count();
        all.sort_by_key(|&g| (!groups.exists(g), depth(g)));
        let mut changes = vec![Control::SetLeafWeight(GroupId::ROOT, groups.leaf_weight(GroupId::ROOT))];
        for g in all {
            let Some(parent) = groups.parent(g) else { continue };
            if !groups.exists(g) {
                changes.extend([Control::SetParent(g, groups.home(g)), Control::GroupExit(g)]);
                continue;
            }
            // Most are as they are made, and each change takes the longer the more groups there are.
            let differs = [
                (new.parent(g) != Some(parent)).then_some(Control::SetParent(g, parent)),
                (new.weight(g) != groups.weight(g)).then(|| Control::SetWeight(g, groups.weight(g))),
                (new.leaf_weight(g) != groups.leaf_weight(g))
                    .then(|| Control::SetLeafWeight(g, groups.leaf_weight(g))),
                (new.class(g) != groups.class(g)).then(|| Control::SetClass(g, groups.class(g))),
                (new.max(g) != groups.max(g)).then(|| Control::SetMax(g, groups.max(g))),
                (new.min(g) != groups.min(g)).then(|| Control::SetMin(g, groups.min(g))),
            ];
            changes.extend(differs.into_iter().flatten());
        }
        for change in changes {
            self.elevator.control(now, change).expect("as it was");
        }
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
                Op::Read => request::Op::Read,
                Op::Write => request::Op::Write,
                Op::Discard | Op::Zero { .. } => request::Op::Discard,
            },
            sync: bio.sync || bio.op == Op::Read,
            meta: false,
            no_idle: false,
            task: bio.task,
            group: bio.group,
            prio: bio.prio,
        }
    }

    fn add_books(before: &mut [GroupStats], elevator: &Elevator<AnyScheduler>) {
        for (i, sum) in before.iter_mut().enumerate() {
            // What waits was handed over, and is counted there.
            let stats = GroupStats {
                io_queued: Default::default(),
                ..*elevator.groups().stats(GroupId::from_index(i))
            };
            sum.add(&stats);
        }
    }

    /// What a group got since the queue was made.
    #[must_use]
    pub fn stats(&self, group: GroupId) -> GroupStats {
        let mut sum = *self.elevator.elevator().groups().stats(group);
        sum.add(&self.before[group.index()]);
        for old in &self.retired {
            let stats = old.elevator.groups().stats(group);
            sum.add(&GroupStats { io_queued: Default::default(), ..*stats });
        }
        sum
    }

    /// The scheduler's tunables.
    #[must_use]
    pub const fn config(&self) -> &AnyConfig {
        &self.config
    }

    /// The elevator, to look at.
    #[must_use]
    pub const fn elevator(&self) -> &Elevator<AnyScheduler> {
        self.elevator.elevator()
    }

    /// Keeps what the elevator is told and decides from now on, for [`Self::take_events`]. To be called first of all.
    ///
    /// # Panics
    /// If something has been submitted before: the story would have no beginning.
    pub fn record(&mut self) {
        assert_eq!(self.serial, 0, "recording begins at the beginning");
        self.elevator.keep(self.config);
    }

    /// What has been kept since the last time.
    pub fn take_events(&mut self) -> Vec<Event> {
        self.elevator.take()
    }

    /// What the elevator is made for.
    #[must_use]
    pub const fn limits(&self) -> &Limits {
        &self.settings.limits
    }

    /// How many ios the disk may have at a time, and whether that adapts.
    #[must_use]
    pub const fn depth(&self) -> (u16, bool) {
        (self.depth.now(), self.depth.is_adaptive())
    }

    /// Sets the depth, 1 to 1024; `None`: what it would be if nobody had set it. What the disk has, it keeps.
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
        (self.in_flight, self.given_up)
    }

    /// Walks everything and panics if anything is inconsistent. For tests.
    pub fn check(&self) {
        self.elevator.elevator().check();
        let used = self.tags.iter().flatten().count();
        assert_eq!(used + self.free.len(), self.tags.len(), "tags in use and free ones");
        let live = self.ios.iter().filter(|(_, io)| !io.is_given_up).count();
        assert_eq!((live, self.ios.len() - live), (usize::from(self.in_flight), self.given_up as usize));
        assert_eq!(self.bios.iter().filter(|(_, p)| p.is_orphan).count(), self.orphans as usize);
        let mut counts = vec![(0, 0); self.clients.capacity()];
        for (_, p) in &self.bios {
            counts[p.client.slot].0 += 1;
            counts[p.client.slot].1 += u64::from(p.bio.len);
        }
        for f in &self.flushes {
            for (client, _) in f.covered.iter().chain(&f.waiting) {
                counts[client.slot].0 += 1;
            }
        }
        for (slot, c) in &self.clients {
            assert_eq!((c.bios, c.bytes), counts[slot], "what client {slot} has here");
            c.unplaced.check();
            assert!(
                c.is_in_line || !c.unplaced.has_ready(),
                "client {slot} waits for tags and is not in line"
            );
            assert!(c.is_stalled || !c.unplaced.has_away(), "client {slot} was turned away and is forgotten");
        }
    }
}
