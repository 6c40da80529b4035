//! The pace of control: how much of the time its work may take.
//!
//! A line may have the engine's thread make the tables of another scheduler, or this process make a megabyte
//! of text; each takes processor time that the disk's clients do not have, and has no weight. So after work
//! the clients of control wait, until all of it took no more than one part in [`SHARE`] of the time.
//!
//! ```text
//!   eight clients without a pause    ▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓
//!   with it                          ▓·······▓·······▓      and what a usual client asks for at once
//! ```
//!
//! What it does not do: divide that among clients; they take turns, a line each.

use fairhead_core::units::{Duration, Instant};

/// Work may take one part in this many of the time.
const SHARE: u64 = 16;

/// How far work may be ahead of that: a usual client, with some hundred lines in a row, waits for nothing.
const AHEAD: Duration = Duration::from_ms(200);

/// What work counts as at most: one that took longer waited for a disk, which is not to stop control.
const MOST: Duration = Duration::from_ms(20);

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Pace {
    /// When all work until now will have been no more than its part.
    until: Instant,
}

impl Default for Pace {
    fn default() -> Self {
        Self { until: Instant::EPOCH }
    }
}

impl Pace {
    /// Work took so long, and is done now.
    pub(super) fn worked(&mut self, now: Instant, took: Duration) {
        self.until = self.until.max(now) + took.min(MOST) * SHARE;
    }

    /// How long to wait before there is more; zero: not at all.
    pub(super) fn pause(&self, now: Instant) -> Duration {
        self.until.saturating_since(now + AHEAD)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Work that takes `each`, again after this much thought. Returns how often it was done in ten seconds,
    /// and the longest wait.
    fn run(each: Duration, thinks: Duration) -> (u64, Duration) {
        let (mut pace, mut now, mut count, mut longest) =
            (Pace::default(), Instant::EPOCH, 0, Duration::ZERO);
        while now < Instant::EPOCH + Duration::from_secs(10) {
            let pause = pace.pause(now);
            longest = longest.max(pause);
            now = now + pause + each;
            pace.worked(now, each);
            count += 1;
            now = now + thinks;
        }
        (count, longest)
    }

    #[test]
    fn clients_without_a_pause_have_a_part_of_the_time() {
        for us in [20, 500, 20_000] {
            let each = Duration::from_us(us);
            let (count, _) = run(each, Duration::ZERO);
            let worked = each * count;
            let most = (Duration::from_secs(10) + AHEAD) / SHARE + each * 2;
            assert!(worked <= most && worked >= Duration::from_ms(550), "{worked} of 10 s, {each} each");
        }
    }

    #[test]
    fn a_disk_that_hangs_does_not_stop_control() {
        let mut pace = Pace::default();
        pace.worked(Instant::EPOCH, Duration::from_secs(60));
        assert!(pace.pause(Instant::EPOCH) <= Duration::from_ms(200));
    }

    #[test]
    fn a_usual_client_waits_for_nothing() {
        // A screen of figures, ten times a second; and a script.
        assert_eq!(run(Duration::from_ms(2), Duration::from_ms(100)).1, Duration::ZERO);
        assert_eq!(run(Duration::from_us(100), Duration::from_ms(2)).1, Duration::ZERO);
    }
}
