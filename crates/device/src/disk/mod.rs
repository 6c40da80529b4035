//! The hard disk: two machines that run at the same time and share a buffer.
//!
//! The *interface machine* (this file) decodes commands in order of arrival, looks them up in the buffer and
//! moves bytes over the bus. The *media machine* (`media.rs`) does one thing at a time: it rests, reads for a
//! command and then ahead of it, or writes. Their concurrency decides far more about a disk of any age than
//! its seek curve does.
//!
//! ```text
//!   command ─► decode ─┬─ hit ─────────► bus ───────────────► done
//!                      ├─ streaming hit: wait for look-ahead ─► done
//!                      ├─ cached write ► bus ► write cache ───► done      (brought out later: destage)
//!                      └─ miss, FUA ───► pending ─► media ────► done
//! ```
//!
//! Worked number (`ide2004`, 4 KiB): a hit takes 0.030 ms of look-up and 0.048 ms of bus. A miss waits 0.30
//! ms for the firmware, then for arm and platter; while the firmware works the head keeps reading
//! for the stream before, about two blocks of 4 KiB. That is why alternating sequential readers are as slow
//! as they are, and no slower.
//!
//! Everything is evaluated lazily. The media have one timer, the instant of their next change; it is shown to
//! the driver only while a command waits for it.
//!
//! What this does not do: data (timing only), bad sectors, power states.
//= docs/reference/devices.md#1-hard-disk

mod actuators;
mod destage;
mod link;
mod media;
mod ncq;
mod read_cache;
#[cfg(test)]
mod tests;
mod write_cache;

use crate::geometry::{Arm, Geometry};
use crate::params::{CacheMode, DiskParams, Overheads, RaStop};
use crate::seek::SeekCurve;
use crate::{Command, Counters, DeviceOp, Driver, Facts, ParamError};
pub use actuators::MultiDisk;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use fairhead_core::elevator::Actuators;
use fairhead_core::units::{Duration, Instant, Sector, Tag};
use link::Link;
use media::Media;
use ncq::{Done, Pending};
use read_cache::ReadCache;
use write_cache::{Cover, WriteCache};

/// No instant: later than any.
const NEVER: u64 = u64::MAX;

/// A hard disk. See the module's text; made by [`crate::Device::new`].
#[derive(Clone, Debug)]
pub struct Disk {
    t: Timing,
    geo: Geometry,
    seek: SeekCurve,
    facts: Facts,
    // The interface machine.
    /// When the interface can take up the next command.
    interface_free: u64,
    /// What crosses to and from the host; not kept if only one command at a time can want it.
    link: Link,
    keeps_link: bool,
    last_submit: u64,
    in_flight: u16,
    busy_since: u64,
    /// A command is being decoded, so the host is not idle although nothing waits yet.
    decoding: bool,
    done: Done,
    pending: Vec<Pending>,
    /// Writes that the cache has no room for, oldest first.
    waiting_writes: VecDeque<WaitingWrite>,
    /// A flush that waits for what came before it.
    flush: Option<Tag>,
    /// The flush in flight, waiting or already decided: until it is done nothing is accepted.
    barrier: Option<Tag>,
    // What they share.
    cache: ReadCache,
    writes: WriteCache,
    // The media machine.
    /// The media's state is known up to here.
    clock: u64,
    media: Media,
    /// When the media change next, or earlier: never later.
    media_at: u64,
    /// Since when the media have been at rest, if they are.
    rest_since: u64,
    /// When the oldest of the cached extents came into an empty cache.
    dirty_since: u64,
    arm: Arm,
    /// The sector after the last one that passed for a purpose.
    head_lba: u64,
    /// Where the stream before this one was left, for hits decoded before it was.
    left: media::Left,
    /// Sectors served to one stream in a row while other commands waited.
    burst: u64,
    /// Sectors of the write cache that went to the media in a row while a command waited.
    in_a_row: u64,
    counters: Counters,
    /// Overheads by history, if the drive has such, and whether the last command was a write.
    overheads: Option<Box<Overheads>>,
    wrote: bool,
}

/// A write that the cache has no room for.
#[derive(Clone, Copy, Debug)]
struct WaitingWrite {
    tag: Tag,
    start: u64,
    end: u64,
    since: u64,
}

/// Parameters in the form the hot path wants. Times in nanoseconds, lengths in sectors.
#[derive(Clone, Debug)]
struct Timing {
    ov_hit: u64,
    ov_miss: u64,
    ov_write: u64,
    ov_dest: u64,
    ov_flush: u64,
    write_settle: u64,
    write_settle_less: u64,
    /// Picoseconds per sector on the bus.
    bus_ps: u64,
    /// The last 4 KiB of a read cross the bus after the media are done with it.
    tail: u64,
    ra_max: u64,
    low_water: u64,
    ra_abort: u64,
    ra_keep: usize,
    stream_gap: u64,
    ra_on_hit: bool,
    min_ra: u64,
    read_on_arrival: bool,
    /// Shortest time of a sector anywhere: bounds from below how long look-ahead takes.
    sector_min: u64,
    /// What a hit takes longer than the look-up.
    hit_lag: u64,
    /// From the last byte to the completion.
    end_lag: u64,
    /// From the command to the first byte of a write that is done on the media, and from its last sector to
    /// its completion.
    ov_data: u64,
    media_end_lag: u64,
    /// From `ov_miss` until the bus may be taken up again, and what that takes.
    leave: u64,
    join: u64,
    /// Thousandths of a read that must be in the buffer before the bus takes it; `None`: nothing.
    watermark: Option<u64>,
    /// What the watermark is a share of, if not of the read.
    watermark_of: Option<u64>,
    partial_hits: bool,
    /// Sectors of a segment that keeps what was asked for last.
    keep: Option<u64>,
    read_cache: bool,
    read_anywhere: bool,
    write_anywhere: bool,
    write_seek_min: u64,
    ra_stop: RaStop,
    write_through: bool,
    wc_delay: u64,
    destage_idle_only: bool,
    age_weight_permille: u32,
    age_max: u64,
    stream_burst: u64,
}

/// The tail of a read: what crosses the bus after the last sector has passed.
//= docs/reference/devices.md#13-command-timeline
const TAIL_SECTORS: u64 = 8;
/// History kept behind a segment's end, in multiples of the look-ahead.
//= docs/reference/devices.md#14-read-buffer-and-look-ahead rule 7
const HISTORY: u64 = 4;

impl Timing {
    fn new(p: &DiskParams, t_rev: u64) -> Self {
        let bus_ps = u64::try_from(512 * 1_000_000_000_000 / u128::from(p.bus_rate)).unwrap_or(NEVER);
        let ra_max = u64::from(p.ra_max.0);
        let most = p.zones.iter().map(|z| z.spt).max().unwrap_or(1);
        Self {
            ov_hit: p.ov_hit.as_ns(),
            ov_miss: p.ov_miss.as_ns(),
            ov_write: p.ov_write.as_ns(),
            ov_dest: p.ov_dest.as_ns(),
            ov_flush: p.ov_flush.as_ns(),
            write_settle: p.write_settle.as_ns(),
            write_settle_less: p.write_settle_less.as_ns(),
            bus_ps,
            tail: bus_ps * p.read_watermark_permille.map_or(TAIL_SECTORS, |_| 1) / 1000,
            ra_max,
            low_water: ra_max * u64::from(p.low_water_permille) / 1000,
            ra_abort: p.ra_abort.unwrap_or(p.ov_miss).as_ns(),
            ra_keep: p.ra_keep as usize,
            stream_gap: u64::from(p.stream_gap.0),
            ra_on_hit: p.ra_on_hit,
            min_ra: u64::from(p.min_ra.0),
            read_on_arrival: p.read_on_arrival,
            sector_min: t_rev / u64::from(most),
            hit_lag: p.ov_hit.as_ns().saturating_sub(p.ov_miss.as_ns()),
            end_lag: 0,
            ov_data: p.ov_write.as_ns(),
            media_end_lag: 0,
            leave: 0,
            join: 0,
            watermark: p.read_watermark_permille.map(u64::from),
            watermark_of: p.watermark_of_segment.then_some(u64::from(p.segment.0)),
            partial_hits: p.partial_hits,
            keep: (p.keeps_requested && p.segment.0 > 0).then_some(u64::from(p.segment.0)),
            read_cache: p.read_cache,
            read_anywhere: p.read_anywhere,
            write_anywhere: p.write_anywhere,
            write_seek_min: p.write_seek_min.as_ns(),
            ra_stop: p.ra_stop,
            write_through: p.cache_mode == CacheMode::WriteThrough,
            wc_delay: p.wc_delay.as_ns(),
            destage_idle_only: p.destage_idle_only,
            age_weight_permille: p.age_weight_permille,
            age_max: p.age_max.as_ns(),
            stream_burst: u64::from(p.stream_burst.0),
        }
    }

    /// The time that sectors take on the bus.
    fn cross(&self, sectors: u64) -> u64 {
        sectors * self.bus_ps / 1000
    }

    /// What they take on a free bus, with the end of the command.
    fn bus(&self, sectors: u64) -> u64 {
        self.cross(sectors) + self.end_lag
    }

    /// How many sectors of a read must be in the buffer before the bus takes it; 0: none, it takes them as
    /// they come.
    fn watermark(&self, sectors: u64) -> u64 {
        let of = self.watermark_of.unwrap_or(sectors);
        self.watermark.map_or(0, |share| (of * share).div_ceil(1000).clamp(1, sectors))
    }

    /// The time that the last of them take.
    fn tail(&self, sectors: u64) -> u64 {
        (self.tail + self.end_lag).min(self.bus(sectors))
    }

    /// The overheads of a command that comes after a read or a write.
    fn follow(&mut self, o: &Overheads, write: bool, after_write: bool) {
        let i = usize::from(after_write);
        let (hit, miss) = match write {
            false => (o.read_hit[i], o.read_miss[i]),
            true => (o.write_hit[i], o.write_miss[i]),
        };
        self.ov_data = o.write_data[i].as_ns();
        self.media_end_lag = o.write_media_end.as_ns();
        (self.leave, self.join) = (o.read_leave[i].as_ns(), o.read_join.as_ns());
        let accepted = if self.write_through { miss.min(o.write_data[i]) } else { hit };
        (self.ov_hit, self.ov_miss, self.ov_write) = (hit.as_ns(), miss.as_ns(), accepted.as_ns());
        self.ra_abort = self.ov_miss;
        self.hit_lag = self.ov_hit.saturating_sub(self.ov_miss);
        self.end_lag = if write { o.write_end } else { o.read_end }.as_ns();
    }
}

impl Disk {
    pub(crate) fn new(p: &DiskParams) -> Result<Self, ParamError> {
        p.check().map_err(|e| e.of(&p.name))?;
        let geo = Geometry::new(p);
        let depth = usize::from(p.queue_depth);
        let buffer = p.buffer_bytes / 512;
        // Without look-ahead a segment is as large as its share of the buffer.
        let history = match u64::from(p.ra_max.0) * HISTORY {
            _ if p.segment.0 > 0 => u64::from(p.segment.0),
            0 => (buffer / u64::from(p.nseg)).max(1),
            n => n,
        };
        Ok(Self {
            t: Timing::new(p, geo.t_rev),
            seek: SeekCurve::new(p),
            facts: Facts {
                capacity: geo.capacity,
                rotational: true,
                queue_depth: p.queue_depth,
                driver: p.driver.unwrap_or(Driver::usual(p.queue_depth)),
                max_request: p.max_request,
                write_cache: p.cache_mode == CacheMode::WriteBack,
                fua: true,
                actuators: Actuators::default(),
            },
            interface_free: 0,
            link: Link::new(depth),
            keeps_link: p.queue_depth > 1,
            last_submit: 0,
            in_flight: 0,
            busy_since: 0,
            decoding: false,
            done: Done::new(depth),
            pending: Vec::with_capacity(depth),
            waiting_writes: VecDeque::with_capacity(depth),
            flush: None,
            barrier: None,
            cache: ReadCache::new(p.nseg as usize, buffer, history),
            writes: WriteCache::new(p.wc_slots as usize, p.wc_bytes / 512, p.wc_merge),
            clock: 0,
            media: Media::Rest { parked: None },
            media_at: NEVER,
            rest_since: 0,
            dirty_since: 0,
            arm: geo.arm(0),
            head_lba: 0,
            left: media::Left::default(),
            burst: 0,
            in_a_row: 0,
            counters: Counters::default(),
            overheads: p.overheads.map(Box::new),
            wrote: false,
            geo,
        })
    }

    pub(crate) fn facts(&self) -> Facts {
        self.facts
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.counters
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.in_flight == 0
    }

    pub(crate) fn head(&self, now: Instant) -> Sector {
        Sector(self.head_at(now.as_ns()))
    }

    /// A flush is not queued: it waits for what is in flight and nothing overtakes it.
    pub(crate) fn can_accept(&self) -> bool {
        self.in_flight < self.facts.queue_depth && self.barrier.is_none()
    }

    /// Whether a command waits for the media to change.
    fn someone_waits(&self) -> bool {
        !self.pending.is_empty() || !self.waiting_writes.is_empty() || self.flush.is_some()
    }

    pub(crate) fn busy_time(&self, now: Instant) -> Duration {
        let since = (self.in_flight > 0).then(|| Instant::from_ns(self.busy_since.max(1)));
        self.counters.busy_time_until(now, since)
    }

    pub(crate) fn next_event(&self) -> Option<Instant> {
        let done = self.done.next().unwrap_or(NEVER);
        let at = if self.someone_waits() { done.min(self.media_at) } else { done };
        (at != NEVER).then(|| Instant::from_ns(at.max(1)))
    }

    pub(crate) fn poll(&mut self, now: Instant) -> Option<Tag> {
        let now = now.as_ns();
        if self.someone_waits() {
            self.advance(now);
        }
        let (at, tag) = self.done.pop(now)?;
        self.in_flight -= 1;
        if self.barrier == Some(tag) {
            self.barrier = None;
        }
        if self.in_flight == 0 {
            self.counters.busy_time += Duration::from_ns(at - self.busy_since);
        }
        Some(tag)
    }

    pub(crate) fn submit(&mut self, now: Instant, cmd: Command) {
        assert!(self.can_accept(), "submit: the disk's queue is full");
        let now = now.as_ns();
        assert!(now >= self.last_submit, "submit: time runs backwards");
        let (start, end) = (cmd.start.0, cmd.start.0.saturating_add(u64::from(cmd.len.0)));
        assert!(
            cmd.op == DeviceOp::Flush || (start < end && end <= self.geo.capacity),
            "submit: sectors {start} to {end} of a disk of {}",
            self.geo.capacity
        );
        self.last_submit = now;
        if self.in_flight == 0 {
            self.busy_since = now;
        }
        if self.t.destage_idle_only {
            self.advance(now);
            self.decoding = true;
            self.rearm();
        }
        self.in_flight += 1;
        let base = now.max(self.interface_free);
        if let (Some(o), DeviceOp::Read | DeviceOp::Write) = (&self.overheads, cmd.op) {
            let write = cmd.op == DeviceOp::Write;
            self.t.follow(o, write, core::mem::replace(&mut self.wrote, write));
        }
        match cmd.op {
            DeviceOp::Read => self.read(base, cmd.tag, start, end),
            DeviceOp::Write => self.write(base, &cmd, end),
            DeviceOp::Flush => self.begin_flush(base, cmd.tag),
            // A disk has nothing to discard; it only acknowledges.
            DeviceOp::Discard => {
                self.counters.discards += 1;
                self.finish(base + self.t.ov_write, cmd.tag);
            }
        }
        if self.t.destage_idle_only {
            self.decoding = false;
            self.rearm();
        }
    }

    /// The interface is busy until `at`, when the command is done.
    fn finish(&mut self, at: u64, tag: Tag) {
        self.interface_free = self.interface_free.max(at);
        self.done.push(at, tag);
    }

    /// When data that are in the buffer from `at` on, or come from the host, have crossed the link.
    fn cross(&mut self, at: u64, sectors: u64) -> u64 {
        let work = self.t.cross(sectors);
        if !self.keeps_link {
            return at + work;
        }
        self.link.forget(self.last_submit);
        self.link.burst(at, work)
    }

    /// When a read is done whose data come from the media and cross from `from` to `done` if nothing else
    /// does.
    fn cross_from_media(&mut self, from: u64, done: u64, sectors: u64) -> u64 {
        if !self.keeps_link {
            return done;
        }
        self.link.forget(self.last_submit);
        let lag = self.t.end_lag;
        self.link.spread(from, done - lag, self.t.cross(sectors)) + lag
    }

    fn read(&mut self, base: u64, tag: Tag, start: u64, end: u64) {
        let t = base + self.t.ov_hit - self.t.hit_lag;
        self.advance(t);
        self.interface_free = t;
        self.counters.reads += 1;
        self.counters.bytes_read += (end - start) * 512;
        if !self.writes.is_empty() {
            match self.writes.cover(start, end) {
                Cover::Full => {
                    self.counters.hits += 1;
                    let crossed = self.cross(t + self.t.hit_lag, end - start);
                    return self.finish(crossed + self.t.end_lag, tag);
                }
                Cover::Partial => return self.enqueue(base, t, tag, start, end, false),
                Cover::None => {}
            }
        }
        if self.t.read_cache && self.read_live(t, tag, start, end) {
            return;
        }
        match self.cache.find(start, end).filter(|_| self.t.read_cache) {
            Some(seg) => self.hit(base, t, seg, tag, start, end),
            None => self.enqueue(base, t, tag, start, end, false),
        }
    }

    /// A hit in a segment that the media are not filling.
    fn hit(&mut self, base: u64, t: u64, seg: usize, tag: Tag, start: u64, end: u64) {
        self.counters.hits += 1;
        let ready = self.left.ready(&self.geo, seg, end, t);
        let crossed = self.cross(ready.max(t + self.t.hit_lag), end - start);
        self.finish(crossed + self.t.end_lag, tag);
        //= docs/reference/devices.md#14-read-buffer-and-look-ahead rule 6
        if !self.cache.is_among_recent(seg, self.t.ra_keep) {
            self.halt_stream(base + self.t.ra_abort);
        }
        self.cache.touch(seg);
        (self.cache.segs[seg].requested, self.cache.segs[seg].consumed) = (start, end);
        self.resume(t, seg);
    }

    /// Puts a command into the queue for the media.
    fn enqueue(&mut self, base: u64, t: u64, tag: Tag, start: u64, end: u64, write: bool) {
        let mut data = base + self.t.ov_data;
        if write && self.keeps_link {
            data = self.cross(data, end - start) - self.t.cross(end - start);
        }
        let ready = t.max(base + self.t.ov_miss);
        let place = self.geo.place(start);
        self.pending.push(Pending { tag, start, end, write, since: base, ready, data, place });
        self.note_contention(t);
        self.work_arrived(t);
    }

    fn write(&mut self, base: u64, cmd: &Command, end: u64) {
        let (start, sectors) = (cmd.start.0, u64::from(cmd.len.0));
        let t = base + self.t.ov_write;
        self.advance(t);
        self.interface_free = t;
        self.counters.writes += 1;
        self.counters.bytes_written += sectors * 512;
        self.overwrite(t, start, end);
        if self.t.write_through || cmd.fua || sectors > self.writes.capacity {
            self.counters.media_writes += 1;
            self.writes.supersede(&self.geo, start, end);
            self.enqueue(base, t, cmd.tag, start, end, true);
        } else {
            if !self.waiting_writes.is_empty() || !self.accept(t, cmd.tag, start, end) {
                self.counters.write_waits += 1;
                self.waiting_writes.push_back(WaitingWrite { tag: cmd.tag, start, end, since: t });
            }
            self.work_arrived(t);
        }
    }

    /// Takes a write into the cache at `t` if there is room: its data cross the bus and it is done.
    fn accept(&mut self, t: u64, tag: Tag, start: u64, end: u64) -> bool {
        if self.writes.is_rewrite(start, end) || self.is_ahead_of_destage(t, start, end) {
            // In place: no slot, no set-up.
        } else if self.written_out(t) + self.writes.capacity < self.writes.held() + (end - start) {
            return false;
        } else if let Some(active) = self.writes.tail(start) {
            self.writes.extend_tail(&self.geo, active, start, end);
            self.counters.tail_merges += 1;
            if active {
                self.extend_destage(end);
            }
        } else if self.writes.has_slot() {
            if self.writes.list.is_empty() {
                self.dirty_since = t;
            }
            self.writes.insert(&self.geo, start, end, t);
        } else {
            return false;
        }
        let crossed = self.cross(t.max(self.interface_free), end - start);
        self.finish(crossed + self.t.end_lag, tag);
        true
    }

    fn begin_flush(&mut self, base: u64, tag: Tag) {
        self.counters.flushes += 1;
        self.advance(base);
        self.interface_free = base;
        (self.flush, self.barrier) = (Some(tag), Some(tag));
        self.work_arrived(base);
        self.end_flush(base);
    }

    /// Ends the flush if everything before it is done and on the media.
    fn end_flush(&mut self, t: u64) {
        let quiet = self.pending.is_empty() && self.waiting_writes.is_empty() && self.writes.is_empty();
        if quiet
            && !matches!(self.media, Media::Write(_))
            && let Some(tag) = self.flush.take()
        {
            // Reads in flight have been decided; their completion may still be ahead.
            self.finish(t.max(self.done.last) + self.t.ov_flush, tag);
        }
    }
}
