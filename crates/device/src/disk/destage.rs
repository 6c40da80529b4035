//! Destaging: bringing cached writes out to the media.
//!
//! An extent is set up when the media have nothing to do for the host, and written from its start. The newest
//! one grows while the host writes on behind it, so a sequential writer that is faster than the media makes
//! *one* extent that never ends. With one command at a time no command waits meanwhile; with a queue, a read
//! may. So a run of destaging is a turn:
//!
//! ```text
//!                    a read begins to wait                          the read is served
//!   ── destaging ────────────┬──────── stream_burst at most ────────┬── seek, read ──┬── destaging, from where it was ──
//!                            └─ or until the read is as old as age_max (one revolution at least)
//! ```
//!
//! Worked number (`nas2020`): 2 MiB at 209 MB/s take 10 ms. So a read beside a sequential writer waits for 10
//! ms, a seek and a rotation, and not until the writer rests.
//!
//! What this does not do: yield with a queue depth of 1, where a cached extent is never longer than the
//! cache.
//= docs/reference/devices.md#15-write-buffer-and-destaging, docs/reference/devices.md#16-queueing

use super::media::{Media, Stream, Writing};
use super::ncq::Pending;
use super::{Disk, NEVER, WaitingWrite};
use crate::geometry::Arm;

impl Disk {
    /// Whether a write has waited for room for too long, and longer than any command for the media: it is as
    /// old as they are.
    pub(super) fn a_write_is_too_old(&self, t: u64) -> bool {
        self.waiting_writes.front().is_some_and(|w| {
            t.saturating_sub(w.since) > self.t.age_max
                && self.pending.first().is_none_or(|p| w.since <= p.since)
        })
    }

    /// When a cached extent has been set up and may take the arm, if no command wants it. The set-up begins
    /// when the media have nothing to do for the host, and a command that comes meanwhile goes first: a
    /// sequential reader that asks again within `ov_dest` keeps the arm.
    //= docs/reference/devices.md#destage
    pub(super) fn destage_at(&self) -> u64 {
        let list = &self.writes.list;
        if list.is_empty() {
            return NEVER;
        }
        let free = match &self.media {
            Media::Rest { .. } => self.rest_since,
            Media::Stream(s) if self.flush.is_some() => s.busy_until,
            //= docs/reference/devices.md#destage
            Media::Stream(s) => s.turn_until(&self.geo, self.cache.segs[s.seg].limit),
            Media::Write(w) => w.end_at,
        };
        let set_up = match &self.media {
            Media::Stream(s) if self.stream_had_its_turn(s) => free,
            _ => free.max(self.dirty_since) + self.t.ov_dest,
        };
        // A write that has waited for room for too long does not wait for that.
        let set_up = match self.waiting_writes.front() {
            Some(w) => set_up.min(free.max(w.since + self.t.age_max)),
            None => set_up,
        };
        let delay = self.t.wc_delay;
        if (delay == 0 && !self.t.destage_idle_only)
            || self.flush.is_some()
            || !self.waiting_writes.is_empty()
            || self.writes.is_nearly_full()
        {
            return set_up;
        }
        let oldest = list.iter().map(|e| e.arrival).min().unwrap_or(0) + delay;
        let due = match self.t.destage_idle_only {
            false => oldest,
            true if self.decoding || self.someone_waits() => return NEVER,
            true => oldest.max(self.done.last + delay),
        };
        due.max(set_up)
    }

    /// The extent of at least `least` sectors that can be begun first from `arm`, and the time until then.
    pub(super) fn nearest_extent(&self, arm: Arm, t: u64, least: u64) -> Option<(usize, u64)> {
        let list = &self.writes.list;
        let mut best: Option<(u64, usize)> = None;
        // Extents are in order of tracks: outwards from the arm, the seek of most is soon too long to look at
        // their rotation.
        let mut reach = u64::MAX;
        let mid = list.partition_point(|e| e.place.arm.track < arm.track);
        for k in 0..mid.max(list.len() - mid) {
            for i in [mid.checked_sub(k + 1), Some(mid + k)].into_iter().flatten() {
                let Some(e) =
                    list.get(i).filter(|e| e.len() >= least && e.place.arm.cyl.abs_diff(arm.cyl) <= reach)
                else {
                    continue;
                };
                let (seek, wait) = self.position(arm, t, &e.place, true);
                let candidate = (seek + wait, i);
                if best.is_none_or(|b| candidate < b) {
                    best = Some(candidate);
                    let seek = candidate.0 + self.t.write_settle_less;
                    reach = self.seek.reach(seek.saturating_sub(self.t.write_settle));
                }
            }
        }
        best.map(|(cost, i)| (i, cost))
    }

    pub(super) fn start_destage(&mut self, i: usize, t: u64) {
        self.leave(t, t, t);
        let contended = if self.pending.is_empty() { NEVER } else { self.writes.list[i].start };
        if contended == NEVER {
            self.in_a_row = 0;
        }
        let e = self.writes.activate(i);
        let (t0, _) = self.go_to(t, e.start, &e.place, true);
        let end_at = t0 + (self.geo.end_phase(e.end) - e.place.phase);
        self.media =
            Media::Write(Writing { t0, p0: e.place.phase, end: e.end, end_at, cached: true, contended });
    }

    /// The extent being written got longer.
    pub(super) fn extend_destage(&mut self, end: u64) {
        if let Media::Write(w) = &mut self.media {
            w.end = end;
            w.end_at = w.t0 + (self.geo.end_phase(end) - w.p0);
        }
    }

    /// How many sectors of the active extent are on the media at `t`.
    pub(super) fn written_out(&self, t: u64) -> u64 {
        match (&self.media, &self.writes.active) {
            (Media::Write(w), Some(a)) if w.cached && t > w.t0 => {
                self.geo.lba_at(w.p0 + (t - w.t0)).min(a.end).saturating_sub(a.start)
            }
            _ => 0,
        }
    }

    /// Whether the active extent has these sectors and the head has not come to them.
    pub(super) fn is_ahead_of_destage(&self, t: u64, start: u64, end: u64) -> bool {
        self.writes
            .active
            .is_some_and(|a| a.start <= start && end <= a.end && a.start + self.written_out(t) <= start)
    }

    /// When enough of the active extent is on the media for the first waiting write.
    pub(super) fn drained_at(&self, w: &Writing) -> u64 {
        let (Some(&WaitingWrite { start, end, .. }), Some(a)) =
            (self.waiting_writes.front(), &self.writes.active)
        else {
            return NEVER;
        };
        if !self.writes.has_slot() && self.writes.tail(start).is_none() {
            return NEVER;
        }
        let excess = (self.writes.held() + (end - start)).saturating_sub(self.writes.capacity).max(1);
        if a.start + excess > a.end {
            return NEVER;
        }
        (w.t0 + (self.geo.end_phase(a.start + excess) - w.p0)).max(self.clock + 1)
    }

    /// Accepts what fits of the waiting writes, in order.
    pub(super) fn retry_waiting(&mut self, t: u64) {
        while let Some(&WaitingWrite { tag, start, end, .. }) = self.waiting_writes.front() {
            if !self.accept(t, tag, start, end) {
                break;
            }
            self.waiting_writes.pop_front();
        }
    }

    pub(super) fn end_write(&mut self, t: u64) {
        let Media::Write(w) = &self.media else { return };
        (self.arm, self.head_lba) = (self.geo.arm(w.end - 1), w.end);
        let cached = w.cached;
        self.in_a_row += w.end.saturating_sub(w.contended);
        self.media = Media::Rest { parked: None };
        self.rest_since = t;
        if cached && let Some(e) = self.writes.active.take() {
            self.counters.destages += 1;
            self.counters.destaged_sectors += e.len();
        }
        self.retry_waiting(t);
        self.end_flush(t);
        self.rearm();
    }

    /// The cached extent that goes to the media before `next`, the command that would be served: one that the
    /// head is over sooner; any if a write has waited for room for too long; a long one if the stream of
    /// reads has had its turn. Not when cached data have had theirs, nor before a command that is too old
    /// itself.
    pub(super) fn extent_before(&self, next: &Pending, arm: Arm, t: u64) -> Option<usize> {
        let aged = self.pending.first().is_some_and(|p| t.saturating_sub(p.since) > self.t.age_max);
        let turn = if aged { 1 } else { self.t.stream_burst.max(1) };
        if self.in_a_row >= turn {
            return None;
        }
        let nearest = |least| self.nearest_extent(arm, t, least);
        if self.a_write_is_too_old(t) {
            return nearest(0).map(|e| e.0);
        }
        if aged {
            return None;
        }
        if let Media::Stream(s) = &self.media
            && self.stream_had_its_turn(s)
        {
            return nearest(self.t.stream_burst).map(|e| e.0);
        }
        let access = self.access(next, arm, t);
        nearest(0).filter(|e| e.1 < access).map(|e| e.0)
    }

    /// Whether a stream of reads has had as much as a turn while a write waits for room that an extent as
    /// long as a turn has. A short one is not worth a revolution of the stream.
    pub(super) fn stream_had_its_turn(&self, s: &Stream) -> bool {
        let turn = self.t.stream_burst;
        self.facts.queue_depth > 1
            && turn > 0
            && !self.waiting_writes.is_empty()
            && s.served() >= turn
            && self.writes.list.iter().any(|e| e.len() >= turn)
    }

    /// When the extent being written gives up the arm for a command that waits: after `stream_burst` since a
    /// command waits, or when that is too old, but not within the first revolution: a turn brings something
    /// out.
    pub(super) fn yields_at(&self, w: &Writing) -> u64 {
        if w.contended == NEVER || self.facts.queue_depth == 1 {
            return NEVER;
        }
        let Some(first) = self.pending.first() else { return NEVER };
        let left = self.t.stream_burst.saturating_sub(self.in_a_row);
        let mark = (w.contended + left).min(w.end);
        let burst_at = w.t0 + self.geo.end_phase(mark.max(1)).saturating_sub(w.p0);
        burst_at.min(first.since.saturating_add(self.t.age_max)).max(w.t0 + self.geo.t_rev).max(self.clock)
    }

    /// A command has begun to wait while the media write.
    pub(super) fn note_contention(&mut self, t: u64) {
        let at = self.writes.active.map_or(NEVER, |a| a.start + self.written_out(t));
        if let Media::Write(w) = &mut self.media
            && w.cached
            && w.contended == NEVER
        {
            w.contended = at;
        }
    }

    /// The extent being written gives up the arm: the rest of it waits again, and a command is served.
    //= docs/reference/devices.md#destage
    pub(super) fn yield_destage(&mut self, t: u64) {
        let (Media::Write(w), Some(active)) = (&self.media, self.writes.active) else { return };
        let at = active.start + self.written_out(t);
        self.in_a_row += at.saturating_sub(w.contended);
        self.counters.destaged_sectors += at - active.start;
        (self.arm, self.head_lba) = (self.geo.arm(at), at);
        self.writes.put_back(&self.geo, at);
        self.media = Media::Rest { parked: None };
        self.rest_since = t;
        self.retry_waiting(t);
        if let Some(i) = self.best_command(self.arm, t) {
            self.start_command(i, t);
        }
        self.end_flush(t);
        self.rearm();
    }
}
