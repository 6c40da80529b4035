//! The media machine: what the arm and the head do, one thing at a time.
//!
//! ```text
//!            miss chosen                    limit reached, or stopped
//!   Rest ───────────────► Stream ─────────────────────────────────────► Rest (parked over that track)
//!     │                   read, then look-ahead of the same segment      │ unread part below low water
//!     │ extent or FUA      ▲                                             │
//!     └────────────────► Write ──► (waiting writes, flush, next choice)  └──► Stream
//! ```
//!
//! A read and the look-ahead behind it are one `Stream`: the head just continues. The stream is *busy* until
//! the last sector that the host waits for; from then on anything else may take the arm away. Progress is not
//! simulated: where the head is at `t` follows from the phase function.
//!
//! At the end of an operation, in this order: a sequential continuation of the stream (only with a queue, and
//! only for a limited time), a command, a cached extent, more look-ahead. Above three quarters of the write
//! cache, commands and extents compete by access time.
//= docs/reference/devices.md#14-read-buffer-and-look-ahead to 1.6

use super::ncq::{self, Pending};
use super::{Disk, NEVER};
use crate::geometry::{Arm, Geometry, Place};
use crate::params::RaStop;
use fairhead_core::units::{Duration, Tag};

/// What the media do.
#[derive(Clone, Debug)]
pub(super) enum Media {
    /// The arm does nothing. `parked`: it is over the end of this segment, whose look-ahead was full.
    Rest { parked: Option<usize> },
    /// Read into a segment.
    Stream(Stream),
    /// Write.
    Write(Writing),
}

/// Reading `lba0` from `t0` on, for as long as it lasts.
#[derive(Clone, Debug)]
pub(super) struct Stream {
    pub(super) seg: usize,
    /// When the head is over `lba0`, whose phase is `p0`.
    t0: u64,
    lba0: u64,
    p0: u64,
    /// Until then the host waits for what is read: sectors up to `busy_end`.
    pub(super) busy_until: u64,
    busy_end: u64,
    /// The time up to which the look-ahead of a continuing stream has priority over cached writes.
    turn_end: u64,
    /// Look-ahead stops then in any case.
    halt_at: u64,
}

/// Writing from `t0` on.
#[derive(Clone, Debug)]
pub(super) struct Writing {
    pub(super) t0: u64,
    pub(super) p0: u64,
    pub(super) end: u64,
    pub(super) end_at: u64,
    /// The active extent of the write cache, or else a command's own data.
    pub(super) cached: bool,
    /// Where the head was when a command began to wait for the end of it; `NEVER`: none does.
    pub(super) contended: u64,
}

/// The stream that was left last: commands decoded before it was left may still find its last sectors unread.
#[derive(Clone, Debug, Default)]
pub(super) struct Left {
    seg: usize,
    t0: u64,
    p0: u64,
    until: u64,
}

impl Left {
    /// When the sectors before `end` of a segment are in the buffer, not before `t`.
    pub(super) fn ready(&self, geo: &Geometry, seg: usize, end: u64, t: u64) -> u64 {
        if t >= self.until || seg != self.seg {
            return t;
        }
        t.max(self.t0 + geo.end_phase(end).saturating_sub(self.p0))
    }
}

impl Stream {
    /// When look-ahead has had its turn, and cached writes may take the arm.
    pub(super) fn turn_until(&self, geo: &Geometry, limit: u64) -> u64 {
        let end = self.turn_end.min(limit);
        if end <= self.busy_end {
            self.busy_until
        } else {
            self.time_of(geo, end).min(self.halt_at).max(self.busy_until)
        }
    }

    /// Sectors that the host has asked for since the stream took the arm.
    pub(super) fn served(&self) -> u64 {
        self.busy_end - self.lba0
    }

    /// When the last sector before `end` has passed.
    fn time_of(&self, geo: &Geometry, end: u64) -> u64 {
        if end <= self.lba0 { self.t0 } else { self.t0 + (geo.end_phase(end) - self.p0) }
    }

    /// The first sector not yet read at `t`.
    fn position(&self, geo: &Geometry, limit: u64, t: u64) -> u64 {
        let t = t.min(self.halt_at);
        if t <= self.t0 {
            return self.lba0;
        }
        geo.lba_at(self.p0 + (t - self.t0)).min(limit).max(self.lba0)
    }
}

impl Disk {
    /// Brings the media up to `to`.
    pub(super) fn advance(&mut self, to: u64) {
        while self.media_at <= to {
            self.clock = self.clock.max(self.media_at);
            self.media_step(self.clock);
        }
        self.clock = self.clock.max(to);
    }

    /// Something new for the media at `t`, up to which they have been advanced.
    pub(super) fn work_arrived(&mut self, t: u64) {
        self.rearm();
        self.advance(t);
    }

    /// Sets the media's timer anew.
    pub(super) fn rearm(&mut self) {
        let work_at = if self.pending.is_empty() { self.destage_at() } else { 0 };
        self.media_at = match &self.media {
            Media::Rest { .. } if work_at == NEVER => NEVER,
            Media::Rest { .. } => work_at.max(self.clock),
            Media::Stream(s) => {
                // A lower bound that needs no division; the step computes the exact instant.
                let ahead = self.cache.segs[s.seg].limit.saturating_sub(s.busy_end);
                let full_at = s.busy_until + ahead * self.t.sector_min;
                let work_at = if work_at == NEVER { NEVER } else { work_at.max(s.busy_until) };
                full_at.min(s.halt_at).min(work_at).max(self.clock)
            }
            Media::Write(w) => w.end_at.min(self.drained_at(w)).min(self.yields_at(w)),
        };
    }

    /// The media's timer went off.
    fn media_step(&mut self, t: u64) {
        match &self.media {
            Media::Rest { .. } => self.decide(t),
            Media::Write(w) if w.end_at <= t => self.end_write(t),
            Media::Write(w) if self.yields_at(w) <= t => self.yield_destage(t),
            Media::Write(_) => {
                self.retry_waiting(t);
                self.rearm();
            }
            Media::Stream(s) => {
                let (limit, busy_until, halt_at) = (self.cache.segs[s.seg].limit, s.busy_until, s.halt_at);
                let stop = s.time_of(&self.geo, limit).min(halt_at);
                let destage_at = self.destage_at();
                if t >= busy_until && (!self.pending.is_empty() || destage_at <= t) {
                    self.decide(t);
                } else if t >= stop && t >= busy_until {
                    self.park(stop);
                } else {
                    let work_at = if self.pending.is_empty() { destage_at } else { 0 };
                    self.media_at = stop.min(work_at).max(busy_until).max(t + 1);
                }
            }
        }
    }

    /// Takes the arm off the stream at `stop`, at the latest; the seek may start when the result says.
    pub(super) fn leave(&mut self, t: u64, stop: u64, ready: u64) -> u64 {
        let mut go = ready.max(t);
        if let Media::Stream(s) = &self.media {
            let s = s.clone();
            let mut stop = stop.max(s.busy_until).min(go);
            if self.t.min_ra > 0 {
                let must = (s.busy_end + self.t.min_ra).min(self.cache.segs[s.seg].limit);
                let at = s.time_of(&self.geo, must).min(s.halt_at);
                (go, stop) = (go.max(at), stop.max(at));
            }
            let at = self.note_progress(&s, stop);
            (self.arm, self.head_lba) = (self.geo.arm(at), at);
            self.left = Left { seg: s.seg, t0: s.t0, p0: s.p0, until: stop };
            self.media = Media::Rest { parked: None };
        }
        go
    }

    /// Books what the stream has read by `t`; returns the first sector it has not.
    fn note_progress(&mut self, s: &Stream, t: u64) -> u64 {
        let at = s.position(&self.geo, self.cache.segs[s.seg].limit, t);
        let known = self.cache.segs[s.seg].end.max(s.busy_end);
        self.counters.look_ahead_sectors += at.saturating_sub(known);
        self.cache.set_end(s.seg, at);
        at
    }

    /// The stream has read what it may.
    fn park(&mut self, stop: u64) {
        let Media::Stream(s) = &self.media else { return };
        let s = s.clone();
        let at = self.note_progress(&s, stop);
        let full = at >= self.cache.segs[s.seg].limit && self.t.ra_max > 0;
        self.counters.look_ahead_full += u64::from(full);
        (self.arm, self.head_lba) = (self.geo.arm(at), at);
        self.media = Media::Rest { parked: full.then_some(s.seg) };
        self.rest_since = stop;
        self.rearm();
    }

    /// The sector that the head is about to reach at `t`, or will when it has arrived there.
    pub(super) fn head_at(&self, t: u64) -> u64 {
        match &self.media {
            Media::Rest { .. } => self.head_lba,
            Media::Stream(s) => s.position(&self.geo, self.cache.segs[s.seg].limit, t),
            Media::Write(w) if t >= w.end_at => w.end,
            Media::Write(w) => self.geo.lba_at(w.p0 + t.saturating_sub(w.t0)).min(w.end),
        }
    }

    /// Where the arm is at `t`.
    fn arm_at(&self, t: u64) -> Arm {
        match &self.media {
            Media::Stream(s) => self.geo.arm(s.position(&self.geo, self.cache.segs[s.seg].limit, t)),
            _ => self.arm,
        }
    }

    /// Seek (settling included) and rotational wait from `arm`, starting at `t`.
    pub(super) fn position(&self, arm: Arm, t: u64, to: &Place, write: bool) -> (u64, u64) {
        let mut seek = self.seek.time(arm, to.arm);
        if write && seek > 0 {
            seek = (seek + self.t.write_settle).saturating_sub(self.t.write_settle_less);
        }
        (seek, self.geo.wait(t + seek, to))
    }

    /// Counts a positioning from where the arm is and does it; returns when the head is over `lba`, and how
    /// long it waited for that.
    pub(super) fn go_to(&mut self, t: u64, lba: u64, to: &Place, write: bool) -> (u64, u64) {
        let (mut seek, mut wait) = self.position(self.arm, t, to, write);
        if write && seek < self.t.write_seek_min && lba != self.head_lba {
            seek = self.t.write_seek_min;
            wait = self.geo.wait(t + seek, to);
        }
        self.counters.seeks += u64::from(self.arm.track != to.arm.track);
        self.counters.seek_time += Duration::from_ns(seek);
        self.counters.rotational_wait += Duration::from_ns(wait);
        let continues = lba.checked_sub(self.head_lba).is_some_and(|gap| gap <= self.t.stream_gap);
        self.counters.lost_revolutions += u64::from(continues && wait > self.geo.t_rev / 2);
        (t + seek + wait, wait)
    }

    /// From `t` until the head, coming from `arm`, is over the first sector of a command.
    pub(super) fn access(&self, p: &Pending, arm: Arm, t: u64) -> u64 {
        let go = t.max(p.ready);
        let (seek, wait) = self.position(arm, go, &p.place, p.write);
        go - t + seek + wait
    }

    /// The command to be served next, of those that wait for the media.
    pub(super) fn best_command(&self, arm: Arm, t: u64) -> Option<usize> {
        let access = |p: &Pending| self.access(p, arm, t);
        ncq::choose(&self.pending, t, self.t.age_weight_permille, self.t.age_max, access)
    }

    /// The media are free at `t`, or may be taken off look-ahead: what next?
    fn decide(&mut self, t: u64) {
        if self.absorb(t) {
            self.end_flush(t);
            return self.rearm();
        }
        let destage = self.destage_at() <= t;
        let arm = self.arm_at(t);
        let pick = self.best_command(arm, t);
        // Nearly full, a cached extent competes with the commands; otherwise it comes after them.
        let compete = destage && self.facts.queue_depth > 1 && self.writes.is_nearly_full();
        match pick {
            Some(i) if compete => match self.extent_before(&self.pending[i], arm, t) {
                Some(e) => self.start_destage(e, t),
                None => self.start_command(i, t),
            },
            Some(i) => self.start_command(i, t),
            None if destage => {
                if let Some((e, _)) = self.nearest_extent(arm, t, 0) {
                    self.start_destage(e, t);
                }
            }
            None => {}
        }
        self.end_flush(t);
        self.rearm();
    }

    /// Whether a command would be served if the stream were broken: a write that waits for room only once it
    /// is too old, as extents are nearer than a reader in order by chance only.
    fn someone_waits_for_the_arm(&self, t: u64) -> bool {
        !self.pending.is_empty() || self.a_write_is_too_old(t)
    }

    /// Serves one pending read that continues the running stream. Others wait meanwhile, but only for a
    /// limited time.
    fn absorb(&mut self, t: u64) -> bool {
        let Media::Stream(s) = &self.media else { return false };
        if self.facts.queue_depth == 1 {
            return false;
        }
        let seg = &self.cache.segs[s.seg];
        let reach = s.position(&self.geo, seg.limit, t) + self.t.stream_gap;
        let next = (self.pending.iter().enumerate())
            .filter(|(_, p)| !p.write && seg.start <= p.start && p.start <= reach)
            .filter(|(_, p)| self.writes.overlap(p.start, p.end).is_none())
            .min_by_key(|(_, p)| p.start);
        let Some((i, &p)) = next else { return false };
        let others = self.pending.len() > 1 || self.a_write_is_too_old(t);
        let unfair = others && self.burst + (p.end - p.start) > self.t.stream_burst;
        if unfair || self.stream_had_its_turn(s) {
            return false;
        }
        self.pending.remove(i);
        self.stream_to(t, p.tag, p.start, p.end);
        true
    }

    /// A read that the running stream will come by, or has.
    fn stream_to(&mut self, t: u64, tag: Tag, start: u64, end: u64) {
        if self.someone_waits_for_the_arm(t) {
            self.burst += end - start;
        }
        let Media::Stream(s) = &mut self.media else { unreachable!("only a running stream is continued") };
        let passed = s.time_of(&self.geo, end).max(t);
        let bus = self.t.bus(end - start);
        // What is there crosses at once, or not before there is as much as the watermark says.
        let mark = if self.t.partial_hits { 0 } else { self.t.watermark(end - start) };
        let bus_at = s.time_of(&self.geo, start + mark).max(t + self.t.hit_lag);
        s.busy_until = s.busy_until.max(passed);
        s.busy_end = s.busy_end.max(end);
        s.halt_at = NEVER;
        let seg = s.seg;
        self.counters.streaming_hits += 1;
        let bus_at = if mark == 0 { t + self.t.hit_lag } else { bus_at };
        let done = (passed + self.t.tail(end - start)).max(bus_at + bus);
        let done = self.cross_from_media(bus_at, done, end - start);
        self.done.push(done, tag);
        self.consume_live(seg, start, end);
        self.rearm();
    }

    /// How far look-ahead of a segment may go behind a read that ends at `end`.
    fn ra_limit(&self, seg: usize, requested: u64, end: u64) -> u64 {
        let full = self.t.keep.map_or(u64::MAX, |segment| (requested + segment).max(end));
        let limit = (end + self.t.ra_max).min(self.geo.capacity).min(full);
        match self.t.ra_stop {
            RaStop::Never => limit,
            stop => limit.min(self.geo.ra_stop(self.cache.segs[seg].start, end, stop)),
        }
    }

    /// The host has read the live segment up to `end`: look-ahead may go on from there.
    fn consume_live(&mut self, seg: usize, start: u64, end: u64) {
        let limit = self.ra_limit(seg, start, end);
        let s = &mut self.cache.segs[seg];
        (s.requested, s.consumed) = (start, end);
        s.limit = s.limit.max(limit);
        self.cache.touch(seg);
    }

    /// Serves a read from the segment that the media are filling, if it is there or will soon be.
    pub(super) fn read_live(&mut self, t: u64, tag: Tag, start: u64, end: u64) -> bool {
        let Media::Stream(s) = &self.media else { return false };
        let seg = s.seg;
        let live = &self.cache.segs[seg];
        if start < live.start || start > live.limit + self.t.stream_gap {
            return false;
        }
        if end > live.end {
            let s = s.clone();
            let at = self.note_progress(&s, t);
            if end > at {
                let unfair =
                    self.someone_waits_for_the_arm(t) && self.burst + (end - start) > self.t.stream_burst;
                if start > at + self.t.stream_gap || unfair || self.stream_had_its_turn(&s) {
                    return false;
                }
                self.stream_to(t, tag, start, end);
                return true;
            }
            if start < self.cache.segs[seg].start {
                return false;
            }
        }
        self.counters.hits += 1;
        let crossed = self.cross(t + self.t.hit_lag, end - start);
        self.finish(crossed + self.t.end_lag, tag);
        self.consume_live(seg, start, end);
        true
    }

    /// Stops look-ahead at `at`, or when the host no longer waits for it.
    pub(super) fn halt_stream(&mut self, at: u64) {
        if let Media::Stream(s) = &mut self.media {
            if s.halt_at == NEVER {
                self.counters.foreign_stops += 1;
            }
            s.halt_at = s.halt_at.min(at.max(s.busy_until));
            self.media_at = self.media_at.min(s.halt_at.max(self.clock));
        }
    }

    /// After a hit in a segment, continues its look-ahead if that was full and no longer is, or if every
    /// hit does.
    pub(super) fn resume(&mut self, t: u64, seg: usize) {
        let Media::Rest { parked } = self.media else { return };
        let s = self.cache.segs[seg];
        let limit = self.ra_limit(seg, s.requested, s.consumed).max(s.limit);
        let low = parked == Some(seg) && s.end.saturating_sub(s.consumed) <= self.t.low_water;
        if !(low || self.t.ra_on_hit) || s.end >= limit || self.destage_at() <= t + self.t.ov_dest {
            return;
        }
        let place = self.geo.place(s.end);
        let (seek, wait) = self.position(self.arm, t, &place, false);
        self.cache.segs[seg].limit = limit;
        self.media = Media::Stream(Stream {
            seg,
            t0: t + seek + wait,
            lba0: s.end,
            p0: place.phase,
            busy_until: t,
            busy_end: s.end,
            turn_end: s.end,
            halt_at: NEVER,
        });
        self.rearm();
    }

    /// A write makes what is buffered of its sectors stale; look-ahead that is there, or would come by, ends.
    pub(super) fn overwrite(&mut self, t: u64, start: u64, end: u64) {
        if let Media::Stream(s) = &self.media {
            let live = &self.cache.segs[s.seg];
            if s.busy_until <= t && live.start < end && start < live.limit {
                self.leave(t, t, t);
                self.rearm();
            }
        }
        self.cache.overwrite(start, end);
    }

    pub(super) fn start_command(&mut self, i: usize, t: u64) {
        let p = self.pending[i];
        // Cached data that the read needs in part goes to the media first; the read stays in the queue.
        if !p.write
            && let Some(e) = self.writes.overlap(p.start, p.end)
        {
            return self.start_destage(e, t + self.t.ov_dest);
        }
        self.pending.remove(i);
        (self.burst, self.in_a_row) = (0, 0);
        let go = self.leave(t, p.since + self.t.ra_abort, p.ready);
        if p.write { self.start_write(&p, go) } else { self.start_read(&p, go) }
    }

    fn start_read(&mut self, p: &Pending, go: u64) {
        let bus = self.t.bus(p.end - p.start);
        let seg = self.cache.open(p.start);
        if !self.t.read_cache {
            self.cache.set_end(seg, p.start);
        }
        if self.cache.segs[seg].end >= p.end {
            // Came into the buffer while it waited.
            self.counters.hits += 1;
            let crossed = self.cross(go, p.end - p.start);
            return self.done.push(crossed + self.t.end_lag, p.tag);
        }
        self.counters.misses += 1;
        let goes_on = self.cache.segs[seg].end > self.cache.segs[seg].start;
        let turn_end = p.start + if goes_on && self.facts.queue_depth > 1 { self.t.stream_burst } else { 0 };
        let (ts, wait) = self.go_to(go, p.start, &p.place, false);
        let passed = ts + (self.geo.end_phase(p.end) - p.place.phase);
        let bus_at = match self.t.watermark(p.end - p.start) {
            0 => ts,
            first => ts + (self.geo.end_phase(p.start + first) - p.place.phase),
        };
        let bus_at = bus_at.max(p.ready + self.t.leave) + self.t.join;
        let in_order = (passed, self.t.tail(p.end - p.start));
        let (media_at, tail) = if self.t.read_anywhere {
            let first_crosses_last = |(at, behind)| (at, in_order.1.max(self.t.bus(behind)));
            self.caught(p, ts, wait).map_or(in_order, first_crosses_last)
        } else {
            in_order
        };
        let done = self.cross_from_media(bus_at, (media_at + tail).max(bus_at + bus), p.end - p.start);
        self.done.push(done, p.tag);
        if self.t.read_on_arrival && p.start == self.cache.segs[seg].start {
            let passing = self.geo.sectors_before(p.start, wait);
            self.cache.extend_front(seg, passing);
            self.counters.look_ahead_sectors += passing;
        }
        self.cache.segs[seg].limit = 0;
        self.consume_live(seg, p.start, p.end);
        self.media = Media::Stream(Stream {
            seg,
            t0: ts,
            lba0: p.start,
            p0: p.place.phase,
            busy_until: passed,
            busy_end: p.end,
            turn_end,
            halt_at: NEVER,
        });
    }

    /// Of a read or write within one track that the head comes down on: when all of it has passed, a
    /// revolution later, and how many sectors passed before the first. `ts` is when the head is over the
    /// first, after waiting for `wait`.
    fn caught(&self, p: &Pending, ts: u64, wait: u64) -> Option<(u64, u64)> {
        let (length, whole) = (self.geo.end_phase(p.end) - p.place.phase, self.geo.t_rev);
        let before = (wait + length).checked_sub(whole)?;
        let one_track = self.geo.arm(p.start) == self.geo.arm(p.end - 1);
        one_track.then(|| (ts + whole - wait, before / p.place.sector_time.max(1)))
    }

    /// A write that is done when it is on the media. Each sector must have crossed the bus before the head is
    /// over it; else the head waits for it to come round again.
    fn start_write(&mut self, p: &Pending, go: u64) {
        let (mut t0, wait) = self.go_to(go, p.start, &p.place, true);
        let media = self.geo.end_phase(p.end) - p.place.phase;
        let first = p.data + self.t.cross(1);
        let last = p.data + self.t.cross(p.end - p.start);
        let ready = first.max((last + p.place.sector_time).saturating_sub(media));
        let caught = if self.t.write_anywhere { self.caught(p, t0, wait) } else { None };
        // What the head comes down on is written at once if all of it is there.
        let caught = caught.filter(|_| t0 - wait >= last);
        if caught.is_none() && t0 < ready {
            let late = (ready - t0).next_multiple_of(self.geo.t_rev);
            self.counters.lost_revolutions += 1;
            self.counters.rotational_wait += Duration::from_ns(late);
            t0 += late;
        }
        let end_at = t0 + media;
        let done = caught.map_or(end_at, |(at, _)| at);
        self.done.push(done + self.t.media_end_lag, p.tag);
        self.media = Media::Write(Writing {
            t0,
            p0: p.place.phase,
            end: p.end,
            end_at,
            cached: false,
            contended: NEVER,
        });
    }
}

#[cfg(test)]
impl Media {
    /// When what has been begun for the host or the cache ends; 0 at rest.
    pub(super) fn ends_at(&self) -> u64 {
        match self {
            Self::Rest { .. } => 0,
            Self::Stream(s) => s.busy_until,
            Self::Write(w) => w.end_at,
        }
    }

    pub(super) fn is_destage(&self) -> bool {
        matches!(self, Self::Write(w) if w.cached)
    }
}
