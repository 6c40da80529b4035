//! Think time: the time from the completion of the last request to the next arrival, of a task, a queue or a
//! group.
//!
//! A mean that forgets ([`super::decay`]) of times that are cut at twice what one would wait, because longer
//! is as good as for ever: with 8 ms to wait, pauses of 2, 2 and 500 ms count as 2, 2 and 16. It is trusted
//! from the third pause on; until then each task counts as quick.
//!
//! It does not decide whether waiting pays: that is the scheduler's business.
//!
//= linux-2.6.33 block/cfq-iosched.c cfq_update_io_thinktime

use super::decay::DecayedSum;
use crate::units::{Duration, Instant};

/// See the [module](self).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ThinkTime {
    last_end: Option<Instant>,
    times: DecayedSum,
}

impl ThinkTime {
    /// Makes the think time of a task that appears now, whose first request must not look late.
    #[must_use]
    pub(crate) fn since(now: Instant) -> Self {
        Self { last_end: Some(now), times: DecayedSum::default() }
    }

    /// A request arrived; longer than twice `idle` is as good as for ever.
    pub(crate) fn arrived(&mut self, now: Instant, idle: Duration) {
        self.arrived_within(now, idle * 2);
    }

    /// Records an arrival; think times of more than `longest` count as `longest`.
    #[inline]
    pub(crate) fn arrived_within(&mut self, now: Instant, longest: Duration) {
        let thought = self.last_end.map_or(longest, |end| now.saturating_since(end).min(longest));
        self.times.push(thought.as_ns());
    }

    /// A sync request completed.
    pub(crate) fn completed(&mut self, now: Instant) {
        self.last_end = Some(now);
    }

    /// When the last request completed, if one did.
    #[must_use]
    pub(crate) const fn last_end(&self) -> Option<Instant> {
        self.last_end
    }

    /// Whether enough is known to say so, and it thinks for longer than `limit`.
    #[must_use]
    pub(crate) fn exceeds(&self, limit: Duration) -> bool {
        self.times.is_valid() && self.times.mean() > limit.as_ns()
    }

    /// Whether enough is known.
    #[must_use]
    pub(crate) fn is_valid(&self) -> bool {
        self.times.is_valid()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    //= docs/reference/cfq.md#9-test-vectors vector 6 type=test
    fn the_third_think_time_is_trusted() {
        let mut think = ThinkTime::since(Instant::EPOCH);
        let idle = Duration::from_ms(8);
        for valid in [false, false, true] {
            assert!(!think.exceeds(Duration::ZERO), "nothing is known yet");
            think.arrived(Instant::EPOCH, idle);
            assert_eq!(think.is_valid(), valid);
        }
        // (0 + 128) / 84 = 1 unit, by rounding.
        assert!(think.exceeds(Duration::ZERO) && !think.exceeds(Duration::from_ns(1)));
        for _ in 0..100 {
            think.arrived(Instant::EPOCH + Duration::from_secs(9), idle);
        }
        assert!(
            think.exceeds(Duration::from_ms(15)) && !think.exceeds(Duration::from_ms(17)),
            "capped at twice 8 ms"
        );
    }
}
