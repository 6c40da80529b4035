//! Virtual time: how much device time the whole disk has had to give out. It runs at a rate, in hundredths of
//! wall-clock time.

use fairhead_core::{Duration, Instant};

/// A rate of 100 %.
const ONE: u64 = 1 << 14;

/// The virtual clock, in nanoseconds of device time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    base: u64,
    since: Instant,
    rate: u64,
}

impl Clock {
    pub(super) const fn new() -> Self {
        Self { base: 0, since: Instant::EPOCH, rate: ONE }
    }

    /// What it shows.
    pub(super) fn at(&self, now: Instant) -> u64 {
        self.base + self.worth(now.saturating_since(self.since))
    }

    /// How far it gets in this time.
    pub(super) fn worth(&self, time: Duration) -> u64 {
        time.as_ns().saturating_mul(self.rate) / ONE
    }

    /// The first instant at which it shows `v`.
    pub(super) fn when(&self, v: u64) -> Instant {
        let ahead = v.saturating_sub(self.base).saturating_mul(ONE);
        self.since + Duration::from_ns(ahead.div_ceil(self.rate))
    }

    /// The rate in percent, rounded down.
    pub(super) const fn percent(&self) -> u32 {
        (self.rate * 100 / ONE) as u32
    }

    /// From now on it runs at another rate: `step` sixty-fourths faster, but at least at `min` and at most
    /// at `max` percent.
    pub(super) fn adjust(&mut self, now: Instant, step: i32, min: u32, max: u32) {
        self.base = self.at(now);
        self.since = now;
        let change = self.rate * u64::from(step.unsigned_abs()) / 64;
        let change = if step == 0 { 0 } else { change.max(1) };
        let rate = if step < 0 { self.rate.saturating_sub(change) } else { self.rate + change };
        let of = |percent: u32| (u64::from(percent) * ONE).div_ceil(100);
        self.rate = rate.clamp(of(min), of(max.max(min)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_is_the_first_at_which_the_clock_shows_a_time() {
        let mut clock = Clock::new();
        let mut now = Instant::EPOCH;
        for (i, step) in [0, -4, 1, 3, -1, 4, 4].into_iter().enumerate() {
            now = now + Duration::from_ns(1_000_003);
            clock.adjust(now, step, 1, 10_000);
            for ahead in [1, 2, 77, 1_000_000_007] {
                let v = clock.at(now) + ahead;
                let when = clock.when(v);
                assert!(clock.at(when) >= v && clock.at(when - Duration::from_ns(1)) < v, "{i} {ahead}");
            }
        }
    }

    #[test]
    fn the_rate_stays_in_its_range() {
        let mut clock = Clock::new();
        for _ in 0..300 {
            clock.adjust(Instant::EPOCH, -4, 50, 150);
        }
        assert_eq!(clock.percent(), 50);
        for _ in 0..300 {
            clock.adjust(Instant::EPOCH, 1, 50, 150);
        }
        assert_eq!(clock.percent(), 150);
    }
}
