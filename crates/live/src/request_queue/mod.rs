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
//!   flush(file) ─► past the scheduler; limits and shares of time may hold it
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
//! get [`TIMEDOUT`](crate::Errno::TIMEDOUT), the elevator sees it complete, and its place at the disk goes to
//! others. A late completion changes nothing. Until it comes, the io may still write; so a bio that overlaps
//! a write that was given up fails in the same way, or its client would read data that may still change.
//!
//! **Next of the same.** After an answer, the disk is kept for the client's next bio for a moment, if the
//! scheduler would prefer it ([`Elevator::prefers`]) and the client is known to send it at once:
//! `awaiting.rs` has the rule. Everything else waits for that moment.
//!
//! **Flush** covers the writes that were answered before it came. Each file has at most one running flush;
//! those that come meanwhile share the next. If it fails, all that wait fail with it, and each client that
//! was connected then gets the error with its next flush. For limits it is a write of one sector, and its
//! time is paid for by a pause of its group (`flush_shares.rs`).
//!
//! **Switch.** Another scheduler takes over what waits, in the order in which it came. What is at the disk
//! finishes by itself.
//!
//! | file | what it has |
//! |---|---|
//! | `bios.rs` | clients, and their bios from submission to answer |
//! | `tags.rs` | how bios get to the elevator |
//! | `disk.rs` | what the disk does next, and what becomes of it |
//! | `flush.rs` | flushes |
//!
//! What it does not do: time, threads, files, memory. The engine's loop drives it, and tests with a disk made
//! of a vector.

mod bios;
mod disk;
mod flush;
mod tags;

use crate::at_disk::AtDisk;
pub use crate::at_disk::{IoId, Piece};
use crate::awaiting::Awaiting;
use crate::bio::{Answer, Bio, FileId};
use crate::causes::Causes;
use crate::depth::{AT_DISK_MAX, Depth};
use crate::recording::Event;
use crate::scheduler_switch::SchedulerSwitch;
use bios::{Client, NO_CLIENT, Pending};
use fairhead_core::config::ConfigError;
use fairhead_core::elevator::{Control, Elevator, Limits};
use fairhead_core::groups::{GroupStats, Refusal};
use fairhead_core::sched::any::{AnyConfig, AnyScheduler};
use fairhead_core::units::{Duration, GroupId, Id, Instant, Tag};
use flush::AllFlushes;
use slab::Slab;
use std::collections::VecDeque;
use tags::stays_alone;

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

/// See the [module](self).
#[derive(Debug)]
pub struct RequestQueue<D> {
    settings: Settings,
    elevators: SchedulerSwitch,
    /// By tag: the piece; and when the tag was given out, to hand them over in order. Those not in use are in
    /// `free`.
    tags: Vec<Option<Piece>>,
    came: Vec<u64>,
    /// By tag: the group of a request that takes or gives back space.
    about_space: Vec<Option<GroupId>>,
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
    flushes: AllFlushes,
    /// How often it was asked whether something may go to the elevator.
    questions: u64,
    answers: VecDeque<Answer<D>>,
    serial: u64,
}

/// Making one, and what a front asks of it.
impl<D> RequestQueue<D> {
    /// An empty queue.
    ///
    /// # Errors
    /// If a limit or a tunable is out of range.
    pub fn new(settings: Settings, config: AnyConfig) -> Result<Self, ConfigError> {
        let tags = settings.limits.tags;
        let mut clients = Slab::new();
        assert_eq!(clients.insert(Client::default()), NO_CLIENT.slot, "the first one");
        Ok(Self {
            settings,
            elevators: SchedulerSwitch::new(settings.limits, config)?,
            tags: vec![None; usize::from(tags)],
            came: vec![0; usize::from(tags)],
            about_space: vec![None; usize::from(tags)],
            free: (0..tags).rev().map(Tag).collect(),
            freed: Vec::new(),
            clients,
            bios: Slab::new(),
            line: VecDeque::new(),
            stalled: Causes::default(),
            retry_at: None,
            at_disk: AtDisk::new(settings.timeout),
            depth: Depth::new(settings.limits.queue_depth, settings.adaptive_depth),
            awaiting: Awaiting::new(settings.limits.tasks),
            orphans: 0,
            crowd: 0,
            flushes: AllFlushes::new(settings.limits.groups),
            questions: 0,
            answers: VecDeque::new(),
            serial: 0,
        })
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
        // The other client is none.
        self.bios.len() == 1 && self.crowd == 0 && self.clients.len() == 2
    }

    /// Whether anything that is here is about this file.
    #[must_use]
    pub fn knows(&self, file: FileId) -> bool {
        self.flushes.of_files.knows(file) || self.bios.iter().any(|(_, p)| p.bio.file == file)
    }

    /// Whether anything that is here changes bytes of this file behind `end`.
    pub(crate) fn changes_behind(&self, file: FileId, end: u64) -> bool {
        let is_one = |bio: &Bio| {
            bio.file == file && bio.op.changes() && bio.offset.saturating_add(u64::from(bio.len)) > end
        };
        self.bios.iter().any(|(_, p)| is_one(&p.bio))
    }

    /// The groups of the bios and flushes that are here.
    pub(crate) fn busy_groups(&self) -> impl Iterator<Item = GroupId> {
        self.bios.iter().map(|(_, p)| p.bio.group).chain(self.flushes.all().map(|w| w.group))
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
        if let Control::GroupExit(group) = change {
            self.flushes.shares().forget(group);
        }
        self.flushes.ask_again();
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
        for who in self.flushes.all() {
            counts[who.client.slot].0 += 1;
        }
        self.check_flushes();
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
