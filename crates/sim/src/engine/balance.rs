//! How fast processes may dirty pages, so that the disk keeps up (Linux 3.2 and later).
//!
//! ```text
//!   dirty pages   0 ──── background ──── free run ──────── set point ──────── hard
//!   the process        never waits          │  up to twice     1      down to 0 times its rate
//!                                           └─ pauses: pages dirtied / (rate × that factor), 200 ms at most
//! ```
//!
//! The *rate* is one for all processes. Every 200 ms it moves towards the rate at which they would dirty just
//! as much as the disk writes: `rate × factor × written / dirtied`. Example: two writers at 100 MiB/s each
//! beside a disk that writes 100 MiB/s get a rate of 50. The factor keeps the number of dirty pages at the
//! set point, half way between the hard limit and the free run, which is half way between both limits.
//!
//! It does not pause anything and knows no pages, only their numbers: see `buffered`. All disks have one rate
//! here, where Linux has one for each.
//
//= docs/reference/hosts.md#dirty-throttling

use fairhead_core::{Duration, Instant};

/// How often the rate moves.
const INTERVAL: Duration = Duration::from_ms(200);
/// The last seconds, of which what the disk wrote counts in proportion to the time.
const PERIOD: Duration = Duration::from_secs(3);
/// The longest pause, and one that is too short to be made.
const PAUSE_MAX: Duration = Duration::from_ms(200);
const PAUSE_MIN: Duration = Duration::from_ms(5);
/// Time without dirtying is to a process's credit for so long.
const CREDIT: Duration = Duration::from_secs(1);
/// Pages a second that a disk is taken to write before it has: 100 MiB/s.
const FIRST_RATE: u64 = 25_600;
/// The least pages of a file that a flusher writes at a time: 4 MiB.
const CHUNK_MIN: u64 = 1024;
/// One, in the factor.
const ONE: i64 = 1 << 10;

/// What a process has dirtied and not paid for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Debt {
    /// Pages dirtied since it last looked at the limits, less those that it has paused for.
    pub(super) pages: u32,
    /// Until when it has paused for what it dirtied.
    paid_until: Instant,
    /// After how many pages it looks.
    looks_after: u32,
}

impl Debt {
    pub(super) const NONE: Self = Self { pages: 0, paid_until: Instant::EPOCH, looks_after: 1 };

    /// Whether it has dirtied enough to look at the limits.
    pub(super) const fn is_due(&self) -> bool {
        self.pages >= self.looks_after
    }
}

/// The rate, and what it follows from.
#[derive(Debug)]
pub(super) struct Balance {
    background: u64,
    hard: u64,
    /// Pages a second that each process may dirty at the set point.
    rate: u64,
    /// The last rate that would have been just right.
    balanced: u64,
    /// Pages a second that the disk writes: over the last seconds, and smoothed.
    writes: u64,
    writes_smoothed: u64,
    /// The last look: when, and how many pages had been written and dirtied by then.
    looked: Instant,
    written: u64,
    dirtied: u64,
}

impl Balance {
    /// Of a host with these limits in pages.
    pub(super) fn new((background, hard): (u32, u32)) -> Self {
        Self {
            background: background.into(),
            hard: hard.into(),
            rate: FIRST_RATE,
            balanced: FIRST_RATE,
            writes: FIRST_RATE,
            writes_smoothed: FIRST_RATE,
            looked: Instant::EPOCH,
            written: 0,
            dirtied: 0,
        }
    }

    const fn free_run(&self) -> u64 {
        u64::midpoint(self.background, self.hard)
    }

    const fn set_point(&self) -> u64 {
        u64::midpoint(self.free_run(), self.hard)
    }

    /// The factor of the rate, of [`ONE`], with `dirty` pages dirty or being written: 2 at the free run, 1 at
    /// the set point, 0 at the hard limit.
    fn factor(&self, dirty: u64) -> i64 {
        let signed = |pages: u64| i64::try_from(pages).unwrap_or(i64::MAX);
        if dirty >= self.hard {
            return 0;
        }
        let span = signed(self.hard - self.set_point()).max(1);
        let x = (signed(self.set_point()) - signed(dirty)).saturating_mul(ONE) / span;
        let x = x.clamp(-ONE, ONE);
        ONE + x * x / ONE * x / ONE
    }

    /// Pages a second that a process may dirty while `dirty` are; 0: none.
    fn rate_at(&self, dirty: u64) -> u64 {
        let factor = u64::try_from(self.factor(dirty)).unwrap_or(0);
        self.rate * factor / ONE.unsigned_abs()
    }

    /// The disk begins to write after it had nothing to: the time before does not count.
    pub(super) const fn begin(&mut self, now: Instant, written: u64, dirtied: u64) {
        (self.looked, self.written, self.dirtied) = (now, written, dirtied);
    }

    /// Looks at what has been written and dirtied by now, if that is due.
    pub(super) fn look(&mut self, now: Instant, written: u64, dirtied: u64, dirty: u32) {
        let time = now.saturating_since(self.looked);
        if time < INTERVAL {
            return;
        }
        let per_second = |pages: u64| pages.saturating_mul(1_000_000_000) / time.as_ns();
        let (writes, dirties) = (per_second(written - self.written), per_second(dirtied - self.dirtied));
        self.see_writes(writes, time);
        self.move_rate(dirties, dirty.into());
        self.begin(now, written, dirtied);
    }

    fn see_writes(&mut self, writes: u64, time: Duration) {
        let (old, part) = (self.writes, time.as_ms().min(PERIOD.as_ms()));
        self.writes = (writes * part + old * (PERIOD.as_ms() - part)) / PERIOD.as_ms();
        let smoothed = &mut self.writes_smoothed;
        // It follows only what still moves away from it.
        if *smoothed > old && old >= self.writes {
            *smoothed -= (*smoothed - old) / 8;
        } else if *smoothed < old && old <= self.writes {
            *smoothed += (old - *smoothed) / 8;
        }
    }

    /// The rate moves an eighth of the way, less the smaller the way is, and only if all signs agree.
    fn move_rate(&mut self, dirties: u64, dirty: u64) {
        let allowed = self.rate_at(dirty).max(1);
        let writes = self.writes_smoothed.max(1);
        let balanced =
            (u128::from(allowed) * u128::from(writes) / u128::from(dirties.max(1))).min(u128::from(writes));
        #[allow(clippy::cast_possible_truncation, reason = "at most what the disk writes")]
        let balanced = balanced as u64;
        let signs = [self.balanced, balanced, allowed];
        let goal = if dirty < self.set_point() {
            signs.into_iter().min().map_or(self.rate, |least| least.max(self.rate))
        } else {
            signs.into_iter().max().map_or(self.rate, |most| most.min(self.rate))
        };
        let way = goal.abs_diff(self.rate);
        let shift = self.rate / (2 * way + 1);
        let step = if shift < 64 { (way >> shift).div_ceil(8) } else { 0 };
        self.rate = if goal > self.rate { self.rate + step } else { self.rate - step }.max(1);
        self.balanced = balanced;
    }

    /// How long a process pauses that has dirtied pages, with `dirty` dirty or being written in all; `None`:
    /// not now.
    pub(super) fn pause(&self, now: Instant, dirty: u32, debt: &mut Debt) -> Option<Instant> {
        let dirty = u64::from(dirty);
        if dirty <= self.free_run() {
            let left = self.hard.saturating_sub(dirty).max(1);
            *debt = Debt { pages: 0, paid_until: now, looks_after: 1 << (left.ilog2() / 2) };
            return None;
        }
        // The pause is at most an eighth of the time that the disk needs for all of it.
        let drained = Duration::from_ns(dirty * 125_000_000 / self.writes_smoothed.max(1));
        let longest = drained.min(PAUSE_MAX).max(PAUSE_MIN);
        let rate = self.rate_at(dirty);
        if rate == 0 {
            return Some(now + longest);
        }
        debt.looks_after = u32::try_from(rate / 100).unwrap_or(u32::MAX).max(1);
        if now.saturating_since(debt.paid_until) > CREDIT {
            (debt.pages, debt.paid_until) = (0, now);
            return None;
        }
        let due = debt.paid_until + Duration::from_ns(u64::from(debt.pages) * 1_000_000_000 / rate);
        if due < now + PAUSE_MIN {
            (debt.pages, debt.paid_until) = (0, due);
            return None;
        }
        let until = due.min(now + longest);
        let unpaid = due.since(until).as_ns() * rate / 1_000_000_000;
        (debt.pages, debt.paid_until) = (u32::try_from(unpaid).unwrap_or(u32::MAX), until);
        Some(until)
    }

    /// How many pages of a file a flusher writes before it turns to the next: what the disk writes in half a
    /// second, at most an eighth of the hard limit, in steps of 4 MiB.
    pub(super) fn chunk(&self) -> u32 {
        let pages = (self.writes_smoothed / 2).min(self.hard / 8) + CHUNK_MIN;
        u32::try_from(pages / CHUNK_MIN * CHUNK_MIN).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(ms: u64) -> Instant {
        Instant::from_ns(Instant::EPOCH.as_ns() + ms * 1_000_000)
    }

    /// Limits of 100 and 200 MiB: free run 150, set point 175.
    fn balance() -> Balance {
        Balance::new((25_600, 51_200))
    }

    #[test]
    fn the_factor_is_two_at_the_free_run_one_at_the_set_point_and_none_at_the_limit() {
        let factor = |mib: u64| balance().factor(mib * 256);
        assert_eq!([150, 175, 200, 300].map(factor), [2 * ONE, ONE, 0, 0]);
        // Half way on either side: an eighth more or less.
        assert_eq!((factor(100), balance().factor(41_600), balance().factor(48_000)), (2 * ONE, 1152, 896));
    }

    #[test]
    fn a_process_pays_for_its_pages_in_pauses_of_at_most_200_ms() {
        let balance = balance();
        let mut debt = Debt::NONE;
        assert_eq!(balance.pause(at(1000), 38_400, &mut debt), None, "free run");
        // At the set point and 100 MiB/s 2560 pages take 100 ms.
        debt.pages = 2560;
        assert_eq!(balance.pause(at(1000), 44_800, &mut debt), Some(at(1100)));
        assert_eq!((debt.pages, debt.paid_until), (0, at(1100)));
        // 50 ms without a write are to its credit.
        debt.pages = 2560;
        assert_eq!(balance.pause(at(1150), 44_800, &mut debt), Some(at(1200)));
        // 300 ms are paid in two pauses: 44 800 pages take 1750 ms, an eighth of which is more than 200.
        debt.pages = 7680;
        assert_eq!(balance.pause(at(1200), 44_800, &mut debt), Some(at(1400)));
        assert_eq!(balance.pause(at(1400), 44_800, &mut debt), Some(at(1500)));
        // 4 ms are not worth a pause, but are not forgotten.
        debt.pages = 103;
        assert_eq!(balance.pause(at(1500), 44_800, &mut debt), None);
        debt.pages = 103;
        assert!(balance.pause(at(1500), 44_800, &mut debt).is_some_and(|until| until > at(1507)));
        assert_eq!(balance.pause(at(1600), 51_200, &mut debt), Some(at(1800)), "the hard limit");
    }

    #[test]
    fn two_writers_come_to_half_of_what_the_disk_writes_and_the_pages_to_the_set_point() {
        let mut balance = balance();
        let (mut written, mut dirtied, mut dirty, disk) = (0_u64, 0_u64, 38_400_u64, 20_480);
        balance.begin(at(0), 0, 0);
        for tenth in 1..=600 {
            dirtied += 2 * balance.rate_at(dirty) / 10;
            written += disk / 10;
            dirty = (38_400 + dirtied).saturating_sub(written).max(1);
            balance.look(at(tenth * 100), written, dirtied, u32::try_from(dirty).unwrap());
        }
        assert!((9_700..10_800).contains(&balance.rate_at(dirty)), "{balance:?}");
        assert!((41_600..48_000).contains(&dirty), "{dirty} of a set point of 44 800");
        assert!((19_000..22_000).contains(&balance.writes_smoothed), "{balance:?}");
    }

    #[test]
    fn a_chunk_is_half_a_second_of_writing_within_an_eighth_of_the_limit() {
        let mut balance = balance();
        assert_eq!(balance.chunk(), 7 * 1024, "an eighth of 200 MiB, and up to 4 MiB more");
        balance.writes_smoothed = 5000;
        assert_eq!(balance.chunk(), 3 * 1024);
        balance.writes_smoothed = 10;
        assert_eq!(balance.chunk(), 1024);
    }
}
