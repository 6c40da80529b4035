//! When a batch ends, how the next one begins, and how many requests an async one may have.
//!
//! ```text
//!        change_to(Async)           device empty: begin            change_to(Sync)     begin       first sync completes
//!  sync ───────┼── drain ── … ───────────┼── async, 125 ms ──────────┼── drain ───────────┼─ fresh ──────┼── sync, 500 ms
//!              is_changing               is_over after 125 ms        is_changing          no end yet     the async batch is
//!                                        or writes_max requests                                          judged: writes_max
//! ```
//!
//! Async requests may sit in the drive's cache, so how long a batch of them really took shows only when the
//! first sync request after it completes. Worked numbers, for the target of 125 ms: a batch of 12 that took
//! 400 ms (more than three times the target) makes the next one 6; one of 200 ms makes it 11; one that used
//! all its 12 in 20 ms makes it 24. One that ran out of requests teaches nothing.
//!
//= linux-2.6.32 block/as-iosched.c update_write_batch

use super::{Config, Kind};
use crate::units::{Duration, Instant};

#[derive(Clone, Copy, Debug)]
pub(super) struct Batch {
    kind: Kind,
    /// When it is over; set when it begins (async), when its first request completes (sync).
    ends: Instant,
    /// Of another kind than the one before, whose requests are still at the device.
    changing: bool,
    /// Its first request has not completed: it lasts.
    fresh: bool,
    writes_max: u64,
    writes_left: u64,
    /// The async batch had nothing to issue for a while, so its length says nothing.
    writes_idled: bool,
    /// Since when its clock stands still: its group does not have the disk.
    paused: Option<Instant>,
}

impl Batch {
    pub(super) fn new(config: &Config, tick: Duration) -> Self {
        Self {
            kind: Kind::Async,
            ends: Instant::EPOCH - Duration::MAX,
            changing: false,
            fresh: false,
            // One request for each 10 ticks of the target, at least two.
            //= linux-2.6.32 block/as-iosched.c as_init_queue
            writes_max: (config.write_batch_expire / tick / 10).max(2),
            writes_left: 0,
            // Before the first async batch there is nothing to learn from.
            //= deviates as-first-batch
            writes_idled: true,
            paused: None,
        }
    }

    pub(super) const fn kind(&self) -> Kind {
        self.kind
    }

    pub(super) const fn is_changing(&self) -> bool {
        self.changing
    }

    #[cfg(test)]
    pub(super) const fn writes_max(&self) -> u64 {
        self.writes_max
    }

    //= linux-2.6.32 block/as-iosched.c as_batch_expired
    pub(super) fn is_over(&self, now: Instant) -> bool {
        let spent = self.kind == Kind::Async && self.writes_left == 0;
        !self.changing && !self.fresh && (spent || now > self.ends)
    }

    /// Nothing sync waits, and perhaps nothing async.
    pub(super) const fn note_idleness(&mut self, any_async: bool) {
        if matches!(self.kind, Kind::Async) && (self.writes_left == 0 || !any_async) {
            self.writes_idled = true;
        }
    }

    /// Only sync requests wait: their batch need not end soon.
    pub(super) fn extend(&mut self, now: Instant, config: &Config) {
        self.ends = now + config.read_batch_expire;
    }

    pub(super) fn change_to(&mut self, kind: Kind) {
        self.changing |= kind != self.kind;
        self.kind = kind;
        if kind == Kind::Async {
            self.fresh = false;
            self.writes_left = self.writes_max;
            self.writes_idled = false;
        }
    }

    /// The device is empty, and gets the batch's first request.
    pub(super) fn begin(&mut self, now: Instant, config: &Config) {
        self.changing = false;
        match self.kind {
            Kind::Async => self.ends = now + config.write_batch_expire,
            Kind::Sync => self.fresh = true,
        }
    }

    pub(super) const fn count_write(&mut self) {
        self.writes_left = self.writes_left.saturating_sub(1);
    }

    /// A request of `kind` completes, of `in_flight` that include it.
    //= linux-2.6.32 block/as-iosched.c as_completed_request
    pub(super) fn completed(
        &mut self,
        now: Instant,
        kind: Kind,
        in_flight: u32,
        timed: bool,
        config: &Config,
    ) {
        // While the group has lost the disk its batch clock stands still.
        let now = self.paused.unwrap_or(now);
        if self.changing && in_flight == 1 {
            self.changing = false;
            self.fresh |= self.kind == Kind::Sync;
            // 2.6.9 does not set the end here: an async batch that had to wait for reads in flight expires at
            // once (docs/reference/elevators.md#57-completion, quirk).
            if timed {
                let expire = match self.kind {
                    Kind::Sync => config.read_batch_expire,
                    Kind::Async => config.write_batch_expire,
                };
                self.ends = now + expire;
            }
        }
        if self.fresh && self.kind == kind {
            // The first read after a batch of writes shows how long that batch took, with what the disk's
            // cache still had to write.
            self.resize(now, config.write_batch_expire);
            self.ends = now + config.read_batch_expire;
            self.fresh = false;
        }
    }

    /// Its group loses the disk.
    pub(super) fn pause(&mut self, now: Instant) {
        self.paused.get_or_insert(now);
    }

    /// Its group has the disk again: what time was left is left.
    pub(super) fn resume(&mut self, now: Instant) {
        if let Some(since) = self.paused.take() {
            self.ends = self.ends + now.saturating_since(since);
        }
    }

    /// Everything has to go, in any order.
    pub(super) const fn abandon(&mut self) {
        self.kind = Kind::Sync;
        self.changing = false;
        self.fresh = false;
    }

    /// Learns from the async batch that is over now.
    fn resize(&mut self, now: Instant, target: Duration) {
        let took = (now + target).saturating_since(self.ends);
        if took > target && !self.writes_idled {
            self.writes_max = if took > target * 3 { self.writes_max / 2 } else { self.writes_max - 1 };
        } else if took < target && self.writes_left == 0 {
            let grown = if target > took * 3 { self.writes_max * 2 } else { self.writes_max + 1 };
            self.writes_max = grown.min(WRITES_MAX_EVER);
        }
        self.writes_max = self.writes_max.max(1);
    }
}

/// No device takes more requests than there are tags, so counting further means nothing.
const WRITES_MAX_EVER: u64 = u16::MAX as u64;
