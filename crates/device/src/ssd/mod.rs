//! A solid-state device: SATA and NVMe drives, eMMC, microSD cards.
//!
//! Many small machines work side by side; a command passes through them in this order:
//!
//! ```text
//!            command    firmware     dies          channels       link
//!            processor  and DMA      t_read        bytes wanted   all bytes, first ready first
//!   read  ──► t_cmd ───► t_fix ───► [ die ] ─────► [ bus ] ─────► [ link ] ──► done
//!             serial     pipelined   one for each   one for each
//!                                    page           `dies_per_channel` dies
//!   write ──► t_cmd ───► t_fix_write ──► room in the write buffer? ──► [ link ] ──► done      (programmed later)
//! ```
//!
//! Nothing moves, so the place matters only by its die: page `lpn` lies on die `lpn mod dies`, and neighbours
//! are on different channels. Completions are naturally out of order.
//!
//! Worked numbers (`plextor_m5s`): 4 KiB alone take 11 + 20 + 60 + 20.5 (channel) + 10.2 (link) = 121.7 us.
//! Many of them at once wait for the command processor, 1/11 us = 90.9k a second. 128 KiB alone take 11 +
//! 20 + 60 + 41 until the first pages are ready, and 327.7 us on the link: 285 MB/s. With two at once the
//! link never rests: 400 MB/s. So sequential throughput with few requests outstanding is a matter of latency,
//! and read-ahead, not flash, sets it.
//!
//! Sequential readers may be read ahead of (`prefetch.rs`).
//!
//! Where reads and writes share the buffer (`shared_buffer`), a read does not go past writes that wait for
//! room: it takes its turn behind them, and goes to its die when they are in. It holds no room itself.
//!
//! The link serves commands by the time their first page is ready, never by the order of submission: a large
//! read whose pages wait for busy dies does not block small ones that are ready. The same goes for the
//! channels.
//!
//! The inside is simulated when it is asked: at the next command, and at the first instant at which a command
//! may be done ([`Ssd::soonest`]). A drive with many reads in flight is polled once for each, not at each of
//! its steps.
//!
//! What this does not do: data; a page map. Reads find their page where a drive that was written in order has
//! it, even when it is still in the write buffer, and what garbage collection costs is computed (`ftl.rs`),
//! not played out block by block. No wear, no errors, no temperature, no power states.
//= docs/reference/devices.md#22-sata-ssds to 2.4

mod dies;
mod ftl;
mod prefetch;
#[cfg(test)]
mod tests;
mod timers;
mod write_buffer;

use crate::au::{Costs, Units};
use crate::params::SsdParams;
use crate::{Command, Counters, DeviceOp, Driver, Facts, ParamError};
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;
use dies::{Dies, Outcome, Program};
use fairhead_core::elevator::Actuators;
use fairhead_core::units::{Duration, Instant, Sector, Sectors, Tag};
use ftl::Ftl;
use prefetch::{Lookup, Prefetch};
use timers::NEVER;
use write_buffer::{Landing, WriteBuffer};

/// Parameters in the form the hot path wants. Times in nanoseconds, lengths in sectors.
#[derive(Clone, Copy, Debug)]
struct Timing {
    channels: u32,
    /// In all.
    dies: u32,
    /// Their number less one, if it is a power of two.
    die_mask: Option<u64>,
    planes: u32,
    page: u64,
    /// The logarithm of a page's sectors, if pages are a power of two.
    page_log: Option<u32>,
    cmd: u64,
    fix: u64,
    fix_write: u64,
    flush: u64,
    slc_idle: u64,
    read: u64,
    prog: u64,
    prog_slc: u64,
    erase: u64,
    /// Pages move inside a die.
    copy_back: bool,
    /// What a read waits when it suspends a program; zero: it cannot.
    suspend: u64,
    /// Picoseconds per sector.
    channel_ps: u64,
    link_ps: u64,
}

impl Timing {
    fn new(p: &SsdParams) -> Self {
        let ps = |rate: u64| u64::try_from(512 * 1_000_000_000_000 / u128::from(rate)).unwrap_or(NEVER);
        Self {
            channels: p.channels,
            dies: p.channels * p.dies_per_channel,
            die_mask: Some(u64::from(p.channels * p.dies_per_channel))
                .filter(|n| n.is_power_of_two())
                .map(|n| n - 1),
            planes: p.planes,
            page: u64::from(p.page.0),
            page_log: p.page.0.is_power_of_two().then(|| p.page.0.ilog2()),
            cmd: p.t_cmd.as_ns(),
            fix: p.t_fix.as_ns(),
            fix_write: p.t_fix_write.as_ns(),
            flush: p.t_flush.as_ns(),
            slc_idle: p.slc_idle.as_ns(),
            read: p.t_read.as_ns(),
            prog: p.t_prog.as_ns(),
            prog_slc: p.t_prog_slc.as_ns(),
            erase: p.t_erase.as_ns(),
            copy_back: p.copy_back,
            suspend: p.t_suspend.as_ns(),
            channel_ps: ps(p.channel_rate),
            link_ps: ps(p.link_rate),
        }
    }

    fn channel(&self, sectors: u32) -> u64 {
        u64::from(sectors) * self.channel_ps / 1000
    }

    fn link(&self, sectors: u64) -> u64 {
        sectors * self.link_ps / 1000
    }

    /// The page that a sector is on.
    fn page_of(&self, sector: u64) -> u64 {
        self.page_log.map_or_else(|| sector / self.page, |log| sector >> log)
    }

    /// The die that a page lies on. Reads ask for it, and a mask is many times faster than a division.
    #[allow(clippy::cast_possible_truncation, reason = "at most 1024 dies")]
    fn die_of(&self, lpn: u64) -> usize {
        self.die_mask.map_or_else(|| lpn % u64::from(self.dies), |mask| lpn & mask) as usize
    }

    /// The least that any of the pages that `[start, end)` is on takes on its channel.
    #[allow(clippy::cast_possible_truncation, reason = "at most a page of 256 KiB")]
    fn least_channel(&self, start: u64, end: u64) -> u64 {
        let Some(log) = self.page_log else { return self.channel(1) };
        let in_page = (1 << log) - 1;
        let (len, first) = (end - start, self.page - (start & in_page));
        let least = if len <= first { len } else { first.min(((end - 1) & in_page) + 1) };
        self.channel(least as u32)
    }
}

/// A command between submission and the decision on when it is done.
#[derive(Clone, Copy, Debug)]
struct Slot {
    tag: Tag,
    op: DeviceOp,
    fua: bool,
    start: u64,
    end: u64,
    /// Pages of a read that are not in the controller yet; and whether the dies were asked for several.
    pages: u32,
    is_large: bool,
    /// When the last byte crosses the link, if that is known.
    link_end: u64,
    /// Sectors of a write that are not in the buffer yet.
    rest: u64,
    /// Whether garbage collection pays for it.
    random: bool,
}

/// Commands on their way, in the order of their arrival; and when the first arrives, which is asked for at
/// each step.
#[derive(Clone, Debug)]
struct Way {
    slots: VecDeque<(u64, u32)>,
    next: u64,
}

impl Way {
    fn new(depth: usize) -> Self {
        Self { slots: VecDeque::with_capacity(depth), next: NEVER }
    }

    fn push(&mut self, at: u64, slot: u32) {
        if self.slots.is_empty() {
            self.next = at;
        }
        self.slots.push_back((at, slot));
    }

    fn pop(&mut self) -> Option<u32> {
        let (_, slot) = self.slots.pop_front()?;
        self.next = self.slots.front().map_or(NEVER, |first| first.0);
        Some(slot)
    }
}

/// Completions by time; equals in the order in which they were decided. The link makes nearly every new one
/// the last.
#[derive(Clone, Debug)]
struct Done(VecDeque<(u64, Tag)>);

impl Done {
    fn push(&mut self, at: u64, tag: Tag) {
        if self.0.back().is_none_or(|last| last.0 <= at) {
            self.0.push_back((at, tag));
        } else {
            self.insert(at, tag);
        }
    }

    /// A flush takes longer than reads that are decided after it.
    #[inline(never)]
    fn insert(&mut self, at: u64, tag: Tag) {
        let i = self.0.partition_point(|done| done.0 <= at);
        self.0.insert(i, (at, tag));
    }

    /// When the first is; [`NEVER`] if there is none.
    fn next(&self) -> u64 {
        self.0.front().map_or(NEVER, |done| done.0)
    }

    fn len(&self) -> usize {
        self.0.len()
    }
}

/// A solid-state device. See the module's text; made by [`crate::Device::new`].
#[derive(Clone, Debug)]
pub struct Ssd {
    t: Timing,
    facts: Facts,
    flush_queued: bool,
    durable: bool,
    /// Reads take their turn for the buffer.
    shared: bool,
    // Commands.
    slots: Vec<Slot>,
    free: Vec<u32>,
    last_submit: u64,
    in_flight: u16,
    /// The last completion, or the first submission after a rest.
    since: u64,
    /// When each command processor is free.
    servers: Vec<u64>,
    /// Reads that the dies were asked for several pages of, and that are not done.
    large: u32,
    /// The least that part of a read on one page has taken on a channel, and a read on the link.
    least_channel: u64,
    least_link: u64,
    /// The last instant that was an event of a drive that is polled at each of its steps; and how many such
    /// instants passed without a poll, less the polls at which there was none.
    seen_at: u64,
    unseen: i64,
    /// Reads on their way to the dies, and everything else on its way to the write buffer, in order.
    reads: Way,
    others: Way,
    /// A flush that is not queued waits for what is in flight, and nothing is accepted until it is done.
    held_flush: Option<Tag>,
    barrier: Option<Tag>,
    done: Done,
    last_done: u64,
    // What they share.
    dies: Dies,
    /// Until when the link is taken: to the host, from the host. A half-duplex link has one direction.
    link_free: [u64; 2],
    inbound: usize,
    buffer: WriteBuffer,
    ftl: Ftl,
    prefetch: Prefetch,
    units: Option<Units>,
    counters: Counters,
}

impl Ssd {
    pub(crate) fn new(p: &SsdParams) -> Result<Self, ParamError> {
        p.check().map_err(|e| e.of(&p.name))?;
        let (t, depth) = (Timing::new(p), usize::from(p.queue_depth));
        let buffer = WriteBuffer::new(p.write_buffer / 512, t.page, u64::from(t.planes), depth);
        let prefetch = Prefetch::new(p.prefetch / 512, t.page, p.capacity, depth);
        let costs = Costs { copy_per_kib_ps: p.copy_per_kib_ps, t_erase: p.t_erase, page_rmw: p.page_rmw };
        Ok(Self {
            facts: Facts {
                capacity: p.capacity,
                rotational: false,
                queue_depth: p.queue_depth,
                driver: p.driver.unwrap_or(Driver::usual(p.queue_depth)),
                max_request: p.max_request,
                write_cache: !p.power_loss_protection,
                fua: true,
                actuators: Actuators::default(),
            },
            flush_queued: p.flush_queued,
            durable: p.power_loss_protection,
            shared: p.shared_buffer,
            slots: Vec::with_capacity(depth),
            free: Vec::with_capacity(depth),
            last_submit: 0,
            in_flight: 0,
            // It has worked until now: what was written before is where it was.
            since: Instant::EPOCH.as_ns(),
            servers: vec![0; p.cmd_servers as usize],
            large: 0,
            least_channel: NEVER,
            least_link: NEVER,
            seen_at: 0,
            unseen: 0,
            reads: Way::new(depth),
            others: Way::new(depth),
            held_flush: None,
            barrier: None,
            done: Done(VecDeque::with_capacity(depth)),
            last_done: 0,
            dies: Dies::new(&t, depth + prefetch.fetches_max(), buffer.units_max(depth)),
            link_free: [0; 2],
            inbound: usize::from(!p.half_duplex),
            buffer,
            ftl: Ftl::new(p),
            prefetch,
            units: (p.au.0 > 0).then(|| Units::new(p.au, p.open_au, p.au_log, costs)),
            counters: Counters::default(),
            t,
        })
    }

    pub(crate) fn facts(&self) -> Facts {
        self.facts
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.counters
    }

    pub(crate) fn busy_time(&self, now: Instant) -> Duration {
        let since = (self.in_flight > 0).then(|| Instant::from_ns(self.since.max(1)));
        self.counters.busy_time_until(now, since)
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.in_flight == 0
    }

    pub(crate) fn can_accept(&self) -> bool {
        self.in_flight < self.facts.queue_depth && self.barrier.is_none()
    }

    /// Whether a command waits for something to happen inside.
    fn someone_waits(&self) -> bool {
        usize::from(self.in_flight) > self.done.len()
    }

    #[inline]
    pub(crate) fn next_event(&self) -> Option<Instant> {
        let done = self.done.next();
        let at = if self.someone_waits() { done.min(self.soonest()) } else { done };
        (at != NEVER).then(|| Instant::from_ns(at.max(1)))
    }

    /// Not later than any command is done of which that is not decided. Later than the next step if that
    /// cannot end one:
    ///
    /// ```text
    ///   a read has to   be processed ─► be sensed ─► cross the channel ─► cross the link     each takes at least what its smallest part
    ///                    at t_read       at least     at least                               takes, or the smallest of all before it
    /// ```
    fn soonest(&self) -> u64 {
        // The link is behind the first page of a read. Of several pages the last may be there when all is
        // across.
        let moved = if self.large > 0 { 0 } else { self.least_link };
        let sensed = self.least_channel.saturating_add(moved);
        let found = if self.prefetch.may_hit() { 0 } else { self.t.read.saturating_add(sensed) };
        let read = self.reads.next.saturating_add(found);
        self.dies.soonest(sensed, moved).min(read).min(self.others.next).min(self.buffer.next)
    }

    pub(crate) fn poll(&mut self, now: Instant) -> Option<Tag> {
        let now = now.as_ns();
        self.advance_while_awaited(now, true);
        let is_done = self.done.next() <= now;
        if !is_done && self.seen_at != now && self.last_submit != now {
            self.unseen -= 1;
        }
        self.seen_at = now;
        if !is_done {
            return None;
        }
        let (at, tag) = self.done.0.pop_front()?;
        self.in_flight -= 1;
        if self.barrier == Some(tag) {
            self.barrier = None;
        }
        self.counters.busy_time += Duration::from_ns(at - self.since);
        self.since = at;
        Some(tag)
    }

    /// Brings figures and [`Self::unseen`] up to `now`, as if it were polled at each step. Returns when the
    /// last of them was.
    pub(crate) fn catch_up(&mut self, now: Instant) -> Option<Instant> {
        self.advance_while_awaited(now.as_ns(), false);
        (self.seen_at > 0).then(|| Instant::from_ns(self.seen_at))
    }

    /// How many more events this would have been if it were polled at each step that a command waits for.
    /// Less than none: fewer.
    pub(crate) fn unseen(&self) -> i64 {
        self.unseen
    }

    pub(crate) fn submit(&mut self, now: Instant, cmd: Command) {
        assert!(self.can_accept(), "submit: the drive's queue is full");
        let now = now.as_ns();
        assert!(now >= self.last_submit, "submit: time runs backwards");
        let (start, end) = (cmd.start.0, cmd.start.0.saturating_add(u64::from(cmd.len.0)));
        assert!(
            cmd.op == DeviceOp::Flush || (start < end && end <= self.facts.capacity),
            "submit: sectors {start} to {end} of a drive of {}",
            self.facts.capacity
        );
        self.last_submit = now;
        if self.in_flight == 0 {
            self.end_idle(now);
            self.since = now;
        }
        self.advance(now);
        // What this command does at once is another event.
        self.seen_at = 0;
        self.in_flight += 1;
        match cmd.op {
            DeviceOp::Read => {
                self.least_link = self.least_link.min(self.t.link(end - start));
                self.least_channel = self.least_channel.min(self.t.least_channel(start, end));
                self.counters.reads += 1;
                self.counters.bytes_read += (end - start) * 512;
                let at = self.process(now, 0) + self.t.fix;
                let slot = self.slot(&cmd, end, false);
                self.reads.push(at, slot);
            }
            DeviceOp::Write => self.submit_write(now, &cmd, end),
            DeviceOp::Flush if !self.flush_queued => {
                (self.held_flush, self.barrier) = (Some(cmd.tag), Some(cmd.tag));
                self.release_flush(now);
            }
            DeviceOp::Flush | DeviceOp::Discard => self.submit_other(now, &cmd, end),
        }
    }

    fn submit_write(&mut self, now: u64, cmd: &Command, end: u64) {
        let start = cmd.start.0;
        self.counters.writes += 1;
        self.counters.bytes_written += (end - start) * 512;
        self.ftl.overwrite(start, end);
        let random = self.ftl.is_random(start, end);
        let upkeep = match &mut self.units {
            Some(units) => units.write(start, end, &mut self.counters).as_ns(),
            None => 0,
        };
        let at = self.process(now, upkeep) + self.t.fix_write;
        let slot = self.slot(cmd, end, random);
        self.others.push(at, slot);
    }

    fn submit_other(&mut self, now: u64, cmd: &Command, end: u64) {
        let at = self.process(now, 0) + self.t.fix_write;
        let slot = self.slot(cmd, end, false);
        self.others.push(at, slot);
    }

    /// The command processor that is free first takes the command, and has `upkeep` to do with it. Answers
    /// when it is done.
    fn process(&mut self, now: u64, upkeep: u64) -> u64 {
        let mut first = 0;
        for i in 1..self.servers.len() {
            if self.servers[i] < self.servers[first] {
                first = i;
            }
        }
        let at = now.max(self.servers[first]) + self.t.cmd + upkeep;
        self.servers[first] = at;
        at
    }

    #[allow(clippy::cast_possible_truncation, reason = "as many as commands in flight")]
    fn slot(&mut self, cmd: &Command, end: u64, random: bool) -> u32 {
        let (start, rest) = (cmd.start.0, u64::from(cmd.len.0));
        let (tag, op, fua) = (cmd.tag, cmd.op, cmd.fua && !self.durable);
        let new = Slot { tag, op, fua, start, end, pages: 0, is_large: false, link_end: 0, rest, random };
        if let Some(slot) = self.free.pop() {
            self.slots[slot as usize] = new;
            return slot;
        }
        self.slots.push(new);
        self.slots.len() as u32 - 1
    }

    /// It is known when a command is done.
    fn finish(&mut self, at: u64, slot: u32) {
        self.last_done = self.last_done.max(at);
        self.done.push(at, self.slots[slot as usize].tag);
        self.free.push(slot);
    }

    /// When something happens inside next, and what.
    fn next_step(&self) -> (u64, Step) {
        let (flash, landing) = (self.dies.next(), self.buffer.next);
        let (read, other) = (self.reads.next, self.others.next);
        let at = flash.min(read).min(landing.min(other));
        // What happens at one instant happens in this order.
        let step = match at {
            _ if at == flash => Step::Flash,
            _ if at == landing => Step::Landing,
            _ if at == read => Step::Read,
            _ => Step::Other,
        };
        (at, step)
    }

    /// Plays everything that happens until `until`.
    fn advance(&mut self, until: u64) {
        if !self.advance_while_awaited(until, false) {
            return;
        }
        loop {
            let (now, step) = self.next_step();
            if now > until || now == NEVER {
                return;
            }
            self.play(now, step);
        }
    }

    /// Plays what happens until `until`, up to the instant after which no command waits for anything. The
    /// driver counts an event at that instant if this is a poll. Returns whether something is left to play.
    fn advance_while_awaited(&mut self, until: u64, is_poll: bool) -> bool {
        let mut at = 0;
        loop {
            let (now, step) = self.next_step();
            if now > until || now == NEVER {
                return false;
            }
            if now != at && !self.someone_waits() {
                return true;
            }
            at = now;
            if now != self.seen_at {
                self.seen_at = now;
                self.unseen += i64::from(now < until || !is_poll);
            }
            self.play(now, step);
        }
    }

    #[inline]
    fn play(&mut self, now: u64, step: Step) {
        match step {
            Step::Flash => self.flash(now),
            Step::Landing => self.land(now),
            Step::Read => {
                if let Some(slot) = self.reads.pop() {
                    self.begin_read(now, slot);
                }
            }
            Step::Other => {
                if let Some(slot) = self.others.pop() {
                    self.arrive(now, slot);
                }
            }
        }
        self.release_flush(now);
    }

    fn flash(&mut self, now: u64) {
        match self.dies.step() {
            Outcome::Step => self.counters.suspends = self.dies.suspends,
            Outcome::Page { id } => self.page_ready(now, id),
            Outcome::Programmed { sectors, epoch } => {
                self.counters.destages += 1;
                self.counters.destaged_sectors += u64::from(sectors);
                self.buffer.programmed(sectors, epoch);
                self.settle(now);
                self.accept(now);
            }
            Outcome::Migrated => {
                self.ftl.migrated();
                if !self.ftl.slc_full && self.in_flight > 0 {
                    self.dies.migrate(now, 0);
                }
            }
        }
    }

    /// A read has come out of the command processor. Where it takes its turn with writes it stands behind
    /// those that wait for room.
    //= docs/reference/devices.md#shared-buffer
    fn begin_read(&mut self, now: u64, slot: u32) {
        if self.shared && !self.buffer.waiting.is_empty() {
            self.counters.read_waits += 1;
            return self.buffer.waiting.push_back(slot);
        }
        self.sense(now, slot);
    }

    /// A read may go to the dies, unless it has been fetched ahead.
    fn sense(&mut self, now: u64, slot: u32) {
        let (start, end) = (self.slots[slot as usize].start, self.slots[slot as usize].end);
        let pages = match self.prefetch.look_up(slot, start, end) {
            Lookup::Miss => {
                self.counters.misses += 1;
                self.dies.read(now, slot, start, end)
            }
            Lookup::Hit => {
                self.counters.hits += 1;
                0
            }
            Lookup::Awaited => {
                self.counters.streaming_hits += 1;
                1
            }
        };
        let s = &mut self.slots[slot as usize];
        (s.pages, s.is_large) = (pages, pages > 1);
        self.large += u32::from(pages > 1);
        if pages == 0 {
            self.send(now, slot);
        }
        while let Some(fetch) = self.prefetch.fetch() {
            self.counters.look_ahead_sectors += fetch.end - fetch.start;
            self.least_channel = self.least_channel.min(self.t.least_channel(fetch.start, fetch.end));
            let pages = self.dies.read(now, fetch.id, fetch.start, fetch.end);
            self.prefetch.fetching(fetch.id, pages);
        }
    }

    /// A page is in the controller.
    fn page_ready(&mut self, now: u64, id: u32) {
        if id < u32::from(self.facts.queue_depth) {
            self.slots[id as usize].pages -= 1;
            return self.send(now, id);
        }
        self.prefetch.page(id);
        while let Some(slot) = self.prefetch.ready() {
            self.slots[slot as usize].pages = 0;
            self.send(now, slot);
        }
    }

    /// Some data of a read are in the controller. The first take their place on the link for all; it is done
    /// when the last are there and all have crossed.
    fn send(&mut self, now: u64, slot: u32) {
        let s = &mut self.slots[slot as usize];
        if s.link_end == 0 {
            s.link_end = now.max(self.link_free[0]) + self.t.link(s.end - s.start);
            self.link_free[0] = s.link_end;
        }
        if s.pages == 0 {
            self.large -= u32::from(s.is_large);
            let at = s.link_end.max(now);
            self.finish(at, slot);
        }
    }

    /// A write, flush or discard has come out of the command processor.
    fn arrive(&mut self, now: u64, slot: u32) {
        let s = self.slots[slot as usize];
        if s.op == DeviceOp::Discard {
            self.counters.discards += 1;
            self.ftl.discard(s.start, s.end);
            return self.finish(now, slot);
        }
        self.counters.flushes += u64::from(s.op == DeviceOp::Flush);
        self.buffer.waiting.push_back(slot);
        self.accept(now);
        self.counters.write_waits +=
            u64::from(s.op == DeviceOp::Write && self.buffer.waiting.back() == Some(&slot));
    }

    /// Takes in what there is room for.
    #[allow(clippy::cast_possible_truncation, reason = "no more than the length of a command")]
    fn accept(&mut self, now: u64) {
        while let Some(&slot) = self.buffer.waiting.front() {
            let at = now.max(self.link_free[self.inbound]);
            let s = &mut self.slots[slot as usize];
            if s.op == DeviceOp::Read {
                self.buffer.waiting.pop_front();
                self.sense(now, slot);
                continue;
            }
            if s.op == DeviceOp::Flush {
                self.buffer.waiting.pop_front();
                if self.durable {
                    self.finish(at + self.t.flush, slot);
                } else {
                    self.buffer.cross(Landing { at, sectors: 0, random: false, barrier: Some(slot) });
                }
                continue;
            }
            let taken = self.buffer.take(s.rest);
            if taken == 0 {
                break;
            }
            s.rest -= taken;
            let (at, sectors, random) = (at + self.t.link(taken), taken as u32, s.random);
            self.link_free[self.inbound] = at;
            let (whole, fua) = (s.rest == 0, s.fua);
            let barrier = (whole && fua).then_some(slot);
            self.buffer.cross(Landing { at, sectors, random, barrier });
            if whole {
                self.buffer.waiting.pop_front();
                if !fua {
                    self.finish(at, slot);
                }
            }
        }
        self.dies.pressed = self.buffer.is_pressed();
    }

    /// Data have crossed the link.
    fn land(&mut self, now: u64) {
        let Some(landing) = self.buffer.land() else { return };
        self.ftl.wrote(u64::from(landing.sectors), landing.random);
        while let Some((sectors, epoch)) = self.buffer.unit(landing.barrier.is_some()) {
            let was_full = self.ftl.slc_full;
            let charge = self.ftl.program(self.dies.migrating());
            let (slc, moves, erases) = (charge.slc, charge.moves + charge.folds, charge.erases);
            self.counters.page_moves += u64::from(charge.moves * self.t.planes);
            if charge.folds > 0 {
                self.dies.hold_back(self.ftl.slc_used);
            }
            self.counters.erases += u64::from(erases);
            self.dies.program(
                now,
                charge.die as usize,
                Program { sectors, epoch, slc, moves, erases, next: 0 },
            );
            if self.ftl.slc_full && !was_full {
                self.dies.migrate(now, self.ftl.slc_used);
            }
        }
        if let Some(slot) = landing.barrier {
            self.buffer.end_epoch(slot);
            self.settle(now);
        }
    }

    /// Ends flushes and FUA writes whose data are on the flash.
    fn settle(&mut self, now: u64) {
        while let Some(slot) = self.buffer.settled() {
            let flush = self.slots[slot as usize].op == DeviceOp::Flush;
            self.finish(now + if flush { self.t.flush } else { 0 }, slot);
        }
        self.dies.pressed = self.buffer.is_pressed();
    }

    /// A flush that is not queued starts when everything before it is done.
    fn release_flush(&mut self, now: u64) {
        if self.held_flush.is_none() || usize::from(self.in_flight) > self.done.len() + 1 {
            return;
        }
        if let Some(tag) = self.held_flush.take() {
            let (op, start, len) = (DeviceOp::Flush, Sector(0), Sectors(0));
            let base = if self.done.0.is_empty() { now } else { now.max(self.last_done) };
            self.submit_other(base, &Command { tag, op, start, len, fua: false }, 0);
        }
    }

    /// The host was idle until now: the SLC cache may have been emptied.
    fn end_idle(&mut self, now: u64) {
        if !self.ftl.has_slc() {
            return;
        }
        let from = self.since + self.t.slc_idle;
        if from < now {
            self.advance(from);
            self.dies.migrate(from, self.ftl.slc_used);
        }
        self.advance(now);
        self.dies.migrate(now, if self.ftl.slc_full { self.ftl.slc_used } else { 0 });
    }
}

/// What happens inside.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    Flash,
    Landing,
    Read,
    Other,
}
