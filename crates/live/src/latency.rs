//! How long clients waited, group by group: from when a bio was handed in until it was answered.
//!
//! Histograms with 16 steps to each power of two, so that a reported value is at most a sixteenth too large:
//! 4 KiB each, made when there is something to count. The clock is the engine's, which looks once a turn.
//! Bios that were taken back are not counted; those that failed or were given up are.

use crate::bio::{Answer, Errno};
use fairhead_core::units::{Duration, GroupId, Id, Instant};
use hdrhistogram::Histogram;

/// Nothing is shorter than that to a histogram, in nanoseconds.
const SHORTEST_NS: u64 = 1024;
/// The longest latency that is counted as it is, one hour in ns; longer ones count as this.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// How long requests of one kind took.
#[derive(Clone, Debug)]
pub(crate) struct Latency {
    histogram: Histogram<u64>,
    sum_ns: u64,
    errors: u64,
}

impl Latency {
    fn new() -> Self {
        let histogram = Histogram::new_with_bounds(SHORTEST_NS, LONGEST_NS, 1).expect("bounds that can be");
        Self { histogram, sum_ns: 0, errors: 0 }
    }

    fn see(&mut self, took: Duration, failed: bool) {
        self.histogram.saturating_record(took.as_ns());
        self.sum_ns = self.sum_ns.saturating_add(took.as_ns());
        self.errors += u64::from(failed);
    }

    /// How many there were, those that failed included.
    pub(crate) fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// Added up.
    pub(crate) const fn sum_ns(&self) -> u64 {
        self.sum_ns
    }

    /// How many failed.
    pub(crate) const fn errors(&self) -> u64 {
        self.errors
    }

    /// The latency that this share of all bios did not exceed, in ns; 0 if there are none.
    pub(crate) fn quantile_ns(&self, quantile: f64) -> u64 {
        self.histogram.value_at_quantile(quantile)
    }

    /// The longest.
    pub(crate) fn max_ns(&self) -> u64 {
        self.histogram.max()
    }

    /// The steps that have something in them: up to which time, and how many.
    pub(crate) fn steps_ns(&self) -> impl Iterator<Item = (u64, u64)> {
        self.histogram.iter_recorded().map(|step| (step.value_iterated_to(), step.count_at_value()))
    }
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Latencies {
    /// By group: reads, and everything else.
    groups: Vec<Option<Box<[Latency; 2]>>>,
}

impl Latencies {
    pub(crate) fn new(groups: usize) -> Self {
        Self { groups: vec![None; groups] }
    }

    /// A bio is answered.
    pub(crate) fn see<D>(&mut self, now: Instant, answer: &Answer<D>) {
        let Some(origin) = answer.origin.filter(|_| answer.result != Err(Errno::INTR)) else { return };
        let Some(group) = self.groups.get_mut(origin.group.index()) else { return };
        let kinds = group.get_or_insert_with(|| Box::new([Latency::new(), Latency::new()]));
        let kind = usize::from(origin.op.changes());
        kinds[kind].see(now.saturating_since(origin.came), answer.result.is_err());
    }

    /// The number is another group's from now on.
    pub(crate) fn forget(&mut self, group: GroupId) {
        self.groups[group.index()] = None;
    }

    /// A copy: reads, and everything else; `None` if there was nothing yet.
    pub(crate) fn of(&self, group: GroupId) -> Option<Box<[Latency; 2]>> {
        self.groups[group.index()].clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bio::{ClientId, Op, Origin};

    fn answer(op: Op, came_us: u64, result: Result<(), Errno>) -> Answer<()> {
        let came = Instant::EPOCH + Duration::from_us(came_us);
        let origin = Some(Origin { group: GroupId(1), op, came });
        Answer { client: ClientId { slot: 0, serial: 1 }, cookie: 0, result, origin, data: None }
    }

    #[test]
    fn what_is_told_is_at_most_a_sixteenth_too_much() {
        let mut l = Latencies::new(2);
        let now = Instant::EPOCH + Duration::from_secs(100);
        for us in 1..=1000 {
            l.see(now, &answer(Op::Read, 100_000_000 - us, Ok(())));
        }
        let [reads, writes] = *l.of(GroupId(1)).unwrap();
        assert_eq!((reads.count(), writes.count(), reads.sum_ns()), (1000, 0, 500_500_000));
        for (quantile, us) in [(0.5, 500), (0.99, 990)] {
            let told = reads.quantile_ns(quantile);
            assert!((us * 1000..=us * 1000 * 17 / 16).contains(&told), "{quantile}: {told}");
        }
        assert_eq!(reads.steps_ns().map(|(_, n)| n).sum::<u64>(), 1000);
        assert!(reads.max_ns() >= 1_000_000);
        assert!(l.of(GroupId(0)).is_none());
        l.forget(GroupId(1));
        assert!(l.of(GroupId(1)).is_none(), "another group's");
    }

    #[test]
    fn what_failed_counts_and_what_was_taken_back_does_not() {
        let mut l = Latencies::new(2);
        let now = Instant::EPOCH + Duration::from_secs(7200);
        l.see(now, &answer(Op::Write, 0, Err(Errno::TIMEDOUT)));
        l.see(now, &answer(Op::Zero { may_discard: true }, 1, Err(Errno::INTR)));
        l.see(now, &Answer { origin: None, ..answer(Op::Write, 2, Ok(())) });
        let writes = &l.of(GroupId(1)).unwrap()[1];
        assert_eq!((writes.count(), writes.errors()), (1, 1));
        assert!(writes.quantile_ns(0.5) >= LONGEST_NS, "two hours count as the longest");
    }
}
