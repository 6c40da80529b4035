//! How much of the time the disk may be idle on purpose while requests wait: a bucket of idle time.
//!
//! The bucket begins full, with half of what a second may have in it, and gets the other half each second; so
//! no second has more than its share. What empties it is time in which the disk is kept for a task that has
//! nothing to send, though others' requests wait: [`IdleShare::watch`] is asked with every event. When it is
//! empty there is no more idling, but for a task that is known to send its next request at once
//! ([`IdleShare::quick`]): to wait for that one costs a small part of a request, and keeps the weights and
//! the order of streams.
//!
//! ```text
//!   share 10 %    left   50 ms ▇▇▇▇▆▅▄▃▂▁     ▁▁▁▂▁▁    + 50 ms a second
//!                 idle         └ 4 ms each ┘ └ not ┘ 4 ms
//! ```
//!
//! What it does not do: decide for whom the disk idles. It limits what others have decided.

use crate::units::{Duration, Instant};

/// A task whose mean think time is known, and at most this, is waited for at any time; for twice as long at
/// most. On a disk with a head, where a request takes longer, and on one without.
const QUICK: [Duration; 2] = [Duration::from_us(200), Duration::from_us(500)];

/// See the [module](self).
#[derive(Clone, Copy, Debug)]
pub(crate) struct IdleShare {
    /// In percent of any second; `None`: there is no bound.
    share: Option<u8>,
    left: Duration,
    /// When `left` was that.
    at: Instant,
    /// Whether the disk has been idle since then.
    is_idle: bool,
    quick: Duration,
}

impl IdleShare {
    /// At most `percent` of any second; `None`: as much as is wanted.
    pub(crate) fn new(percent: Option<u8>, rotational: bool) -> Self {
        let mut this = Self {
            share: percent,
            left: Duration::ZERO,
            at: Instant::EPOCH,
            is_idle: false,
            quick: QUICK[usize::from(rotational)],
        };
        this.left = this.full();
        this
    }

    /// Half of what a second may have.
    fn full(&self) -> Duration {
        Duration::from_ms(1000) * u64::from(self.share.unwrap_or(0)) / 200
    }

    /// Whether there is a bound.
    #[inline(always)]
    pub(crate) const fn is_bounded(&self) -> bool {
        self.share.is_some()
    }

    /// There is no bound any more: the user has said how long the disk idles.
    pub(crate) const fn lift(&mut self) {
        self.share = None;
    }

    /// From now on the disk is idle on purpose, or is not.
    #[inline(always)]
    pub(crate) fn watch(&mut self, now: Instant, is_idle: impl FnOnce() -> bool) {
        if self.is_bounded() {
            self.settle(now);
            self.is_idle = is_idle();
        }
    }

    fn settle(&mut self, now: Instant) {
        self.left = self.left_at(now);
        self.at = now;
    }

    fn left_at(&self, now: Instant) -> Duration {
        let past = now.saturating_since(self.at);
        let gained = past * u64::from(self.share.unwrap_or(0)) / 200;
        // What is spent may be more than there was, by the lateness of a timer: the debt is forgiven.
        let spent = if self.is_idle { past } else { Duration::ZERO };
        (self.left + gained).saturating_sub(spent).min(self.full())
    }

    /// How long the disk may idle from now on for a task, if `wanted` is the time that it would idle without
    /// a bound; `None`: not at all. There is all of that time or none, as a part would be lost. `is_quick`
    /// answers whether the mean think time of the task is known, and not longer.
    pub(crate) fn allow(
        &self,
        now: Instant,
        wanted: Duration,
        is_quick: impl FnOnce(Duration) -> bool,
    ) -> Option<Duration> {
        if !self.is_bounded() {
            return Some(wanted);
        }
        let wanted_at_most = wanted.min(self.full());
        if !wanted_at_most.is_zero() && self.left_at(now) >= wanted_at_most {
            return Some(wanted_at_most);
        }
        is_quick(self.quick).then_some(wanted.min(self.quick * 2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_ms(1);

    fn at(us: u64) -> Instant {
        Instant::EPOCH + Duration::from_us(us)
    }

    /// Idles for `wanted` at a time, as often and for as long as that is allowed, with 1 ms of work between.
    /// Returns the longest time that was idle in any second of the first ten, in whole milliseconds.
    fn most_in_a_second(share: Option<u8>, wanted: Duration) -> u64 {
        let mut bucket = IdleShare::new(share, true);
        let (mut now, mut idle_in) = (0, std::vec![0_u64; 10_000]);
        while now < 10_000_000 {
            let idle = bucket.allow(at(now), wanted, |_| false).map_or(0, |d| d.as_ns() / 1000);
            bucket.watch(at(now), || idle > 0);
            for us in now..now + idle {
                if let Some(ms) = idle_in.get_mut((us / 1000) as usize) {
                    *ms += 1;
                }
            }
            bucket.watch(at(now + idle), || false);
            now += idle + 1000;
        }
        idle_in.windows(1000).map(|w| w.iter().sum::<u64>() / 1000).max().unwrap()
    }

    #[test]
    fn no_second_has_more_than_its_share() {
        for wanted in [MS, MS * 8, MS * 20, MS * 1000] {
            let most = most_in_a_second(Some(10), wanted);
            assert!((45..=100).contains(&most), "{wanted}: {most} ms");
            assert_eq!(most_in_a_second(Some(0), wanted), 0);
            assert!(most_in_a_second(None, wanted) >= 499, "without a bound");
        }
    }

    #[test]
    fn a_quick_task_is_waited_for_without_anything_left() {
        let bucket = IdleShare::new(Some(0), true);
        let limit = |bucket: &IdleShare, mean| bucket.allow(at(9), MS * 8, |quick| mean <= quick);
        assert_eq!(limit(&bucket, Duration::from_us(500)), Some(MS));
        assert_eq!(limit(&bucket, Duration::from_us(501)), None);
        let mut flash = IdleShare::new(Some(0), false);
        assert_eq!(limit(&flash, Duration::from_us(200)), Some(Duration::from_us(400)));
        assert_eq!(limit(&flash, Duration::from_us(201)), None);
        flash.lift();
        assert_eq!(limit(&flash, MS), Some(MS * 8));
    }
}
