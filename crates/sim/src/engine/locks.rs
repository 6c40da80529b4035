//! The one lock of a disk's scheduler, which processors take in the order in which they come.
//!
//! ```text
//!   hold 1 µs, hand-over 0.5 µs, four come at once
//!
//!   A  |■■■■■|                                   nobody is in line before it: 1 µs
//!   B  ·······|■■■■■▒▒|                          one is: 1.5 µs
//!   C  ················|■■■■■▒▒▒▒▒|              two are: 2 µs
//!   D  ···························|■■■■■▒▒▒▒▒▒▒| three are: 2.5 µs
//! ```
//!
//! A processor that comes knows how many are in line, so its visit is settled at once. Those that come later
//! slow the next visits, not this.
//
//= docs/reference/nvme.md#23-lock-contention

use crate::host::Lock;
use fairhead_core::{Duration, Instant};
use std::collections::VecDeque;

/// A disk's lock.
#[derive(Debug)]
pub(super) struct DiskLock {
    pub(super) costs: Lock,
    /// When the visits end that have not, in order.
    ends: VecDeque<Instant>,
    /// For how long it was held.
    pub(super) held: Duration,
}

/// One processor's visit: how long it waits, and when it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Visit {
    pub(super) waits: Duration,
    pub(super) end: Instant,
}

impl DiskLock {
    pub(super) const fn new(costs: Lock) -> Self {
        Self { costs, ends: VecDeque::new(), held: Duration::ZERO }
    }

    /// A processor inserts and dispatches `requests` requests; `alone` of them are the only ones of their
    /// processes.
    pub(super) fn submit(&mut self, now: Instant, requests: u32, alone: u32) -> Visit {
        let Lock { insert, dispatch, insert_batch, dispatch_batch, .. } = self.costs;
        let times = requests.div_ceil(insert_batch.max(1)) + requests.div_ceil(dispatch_batch.max(1));
        let hold = (insert + dispatch) * u64::from(requests) + self.costs.alone * u64::from(alone);
        self.visit(now, times, hold)
    }

    /// A processor ends a request. `None`: it does not take the lock for that.
    pub(super) fn complete(&mut self, now: Instant) -> Option<Visit> {
        let hold = self.costs.complete;
        (!hold.is_zero()).then(|| self.visit(now, 1, hold))
    }

    /// A processor takes the lock `times` times and holds it for `hold` in all.
    fn visit(&mut self, now: Instant, times: u32, hold: Duration) -> Visit {
        while self.ends.front().is_some_and(|end| *end <= now) {
            self.ends.pop_front();
        }
        let in_line = u32::try_from(self.ends.len()).unwrap_or(u32::MAX).min(self.costs.waiters_max);
        let begin = self.ends.back().map_or(now, |end| now.max(*end));
        let takes = hold + self.costs.hand_over * u64::from(in_line) * u64::from(times);
        let end = begin + takes;
        self.ends.push_back(end);
        self.held += takes;
        Visit { waits: begin.since(now), end }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn lock(hand_over_ns: u64, waiters_max: u32) -> Lock {
        Lock {
            insert: Duration::from_ns(600),
            dispatch: Duration::from_ns(400),
            complete: Duration::ZERO,
            alone: Duration::ZERO,
            hand_over: Duration::from_ns(hand_over_ns),
            waiters_max,
            insert_batch: u32::MAX,
            dispatch_batch: u32::MAX,
        }
    }

    fn ns(ns: u64) -> Instant {
        Instant::EPOCH + Duration::from_ns(ns)
    }

    /// Held 1 us by one with three behind it: as drawn above, with a hand-over of 250 ns for each of two
    /// acquisitions.
    #[test]
    fn each_waits_for_all_before_it_and_takes_longer_for_each_of_them() {
        let mut l = DiskLock::new(lock(250, 9));
        let visits: Vec<Visit> = (0..4).map(|_| l.submit(ns(100), 1, 0)).collect();
        let expected = [(0, 1_100), (1_000, 2_600), (2_500, 4_600), (4_500, 7_100)];
        for (visit, (waits, end)) in visits.iter().zip(expected) {
            assert_eq!((visit.waits.as_ns(), visit.end), (waits, ns(end)));
        }
        assert_eq!(l.held.as_ns(), 7_000);
        // At 4.6 us the third is out: one is in line.
        assert_eq!(l.submit(ns(4_600), 1, 0), Visit { waits: Duration::from_ns(2_500), end: ns(8_600) });
        // All are out.
        assert_eq!(l.submit(ns(9_000), 1, 0), Visit { waits: Duration::ZERO, end: ns(10_000) });
    }

    #[test]
    fn the_hand_over_has_a_limit_and_batches_have_fewer() {
        let mut l = DiskLock::new(lock(250, 1));
        let ends: Vec<Instant> = (0..4).map(|_| l.submit(ns(0), 1, 0).end).collect();
        assert_eq!(ends, [1_000, 2_500, 4_000, 5_500].map(ns), "500 ns however many wait");
        // 32 requests one by one are 64 acquisitions, in batches two.
        for (batch, takes) in [(1, 32_000 + 64 * 250), (32, 32_000 + 2 * 250)] {
            let costs = Lock { insert_batch: batch, dispatch_batch: batch, ..lock(250, 1) };
            let mut l = DiskLock::new(costs);
            l.submit(ns(0), 1, 0);
            assert_eq!(l.submit(ns(0), 32, 0).end, ns(1_000 + takes));
        }
        assert_eq!(l.complete(ns(0)), None, "no lock for completions");
    }
}
