//! Records bytes and time of each client per interval; intervals double when there are too many.

use fairhead_core::Duration;

/// The first length of intervals, in nanoseconds: an eighth of a millisecond. It is doubled as often as
/// necessary.
const FIRST_NS: u64 = 125_000;
/// The most intervals.
const MOST: usize = 1024;

/// What happened in one interval.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
struct Interval {
    /// The bytes of each client.
    bytes: Vec<u64>,
    busy_ns: Vec<u64>,
    idled_ns: u64,
}

impl Interval {
    fn new(count: usize) -> Self {
        Self { bytes: vec![0; count], busy_ns: vec![0; count], idled_ns: 0 }
    }

    fn add(&mut self, other: &Self) {
        self.bytes.iter_mut().zip(&other.bytes).for_each(|(a, b)| *a += b);
        self.busy_ns.iter_mut().zip(&other.busy_ns).for_each(|(a, b)| *a += b);
        self.idled_ns += other.idled_ns;
    }
}

/// The intervals of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Flow {
    count: usize,
    /// The length of an interval, in nanoseconds.
    pub(crate) width_ns: u64,
    intervals: Vec<Interval>,
}

impl Flow {
    /// Makes an empty record for `count` clients.
    pub(crate) const fn new(count: usize) -> Self {
        Self { count, width_ns: FIRST_NS, intervals: Vec::new() }
    }

    /// Returns the number of intervals.
    pub(crate) const fn len(&self) -> usize {
        self.intervals.len()
    }

    /// Doubles the length of the intervals.
    pub(crate) fn coarsen(&mut self) {
        let merged = self.intervals.chunks(2).map(|pair| {
            let mut sum = pair[0].clone();
            pair[1..].iter().for_each(|other| sum.add(other));
            sum
        });
        self.intervals = merged.collect();
        self.width_ns *= 2;
    }

    #[allow(clippy::cast_possible_truncation, reason = "below MOST when it is used")]
    fn at(&mut self, ns: u64) -> &mut Interval {
        while ns / self.width_ns >= MOST as u64 {
            self.coarsen();
        }
        let i = (ns / self.width_ns) as usize;
        while self.intervals.len() <= i {
            self.intervals.push(Interval::new(self.count));
        }
        &mut self.intervals[i]
    }

    /// Records bytes that were moved for a client.
    pub(crate) fn moved(&mut self, who: usize, at: Duration, bytes: u64) {
        self.at(at.as_ns()).bytes[who] += bytes;
    }

    /// Records that the device worked for a client.
    pub(crate) fn busy(&mut self, who: usize, from: Duration, to: Duration) {
        self.over(from, to, &mut |i, ns| i.busy_ns[who] += ns);
    }

    /// Records that the disk idled on purpose.
    pub(crate) fn idled(&mut self, from: Duration, to: Duration) {
        self.over(from, to, &mut |i, ns| i.idled_ns += ns);
    }

    /// Distributes a time over the intervals that it covers.
    fn over(&mut self, from: Duration, to: Duration, add: &mut dyn FnMut(&mut Interval, u64)) {
        let (mut from, to) = (from.as_ns(), to.as_ns());
        // The last instant comes first, so that the intervals do not double on the way.
        self.at(to.max(from));
        while from < to {
            let end = (from / self.width_ns + 1) * self.width_ns;
            let until = end.min(to);
            add(self.at(from), until - from);
            from = until;
        }
    }

    /// Returns the length of an interval, in nanoseconds, in a run of this length: all are equal except the
    /// last.
    pub(crate) fn length_ns(&self, interval: usize, run: Duration) -> u64 {
        let begin = interval as u64 * self.width_ns;
        self.width_ns.min(run.as_ns().saturating_sub(begin)).max(1)
    }

    /// Returns the bytes of a client, by interval.
    pub(crate) fn bytes(&self, who: usize) -> impl Iterator<Item = u64> + '_ {
        self.intervals.iter().map(move |i| i.bytes[who])
    }

    /// Returns the time of a client in the device, in nanoseconds, by interval.
    pub(crate) fn busy_ns(&self, who: usize) -> impl Iterator<Item = u64> + '_ {
        self.intervals.iter().map(move |i| i.busy_ns[who])
    }

    /// Returns the time that the disk idled on purpose, in nanoseconds, by interval.
    pub(crate) fn idled_ns(&self) -> impl Iterator<Item = u64> + '_ {
        self.intervals.iter().map(|i| i.idled_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost_when_intervals_double() {
        let mut flow = Flow::new(2);
        let mut sum = 0;
        for i in 0..100_000u64 {
            let from = Duration::from_us(i * 700);
            flow.moved((i % 2) as usize, from, i);
            flow.busy(0, from, from + Duration::from_us(500));
            flow.idled(from + Duration::from_us(500), from + Duration::from_us(700));
            sum += i;
        }
        assert!(flow.len() <= MOST && flow.width_ns.is_multiple_of(FIRST_NS), "{}", flow.len());
        assert_eq!(flow.bytes(0).chain(flow.bytes(1)).sum::<u64>(), sum);
        assert_eq!(flow.busy_ns(0).sum::<u64>(), 100_000 * 500_000);
        assert_eq!(flow.idled_ns().sum::<u64>(), 100_000 * 200_000);
        // Every interval but the last has five sevenths of its length.
        let full = flow.width_ns / 7 * 5;
        let off = flow.busy_ns(0).take(flow.len() - 1).map(|ns| ns.abs_diff(full)).max();
        assert!(off < Some(500_000), "{off:?}");
    }
}
