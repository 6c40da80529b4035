//! How often each latency occurred, to two digits, in as much memory as the latencies that did occur need.
//!
//! Up to 256 ns each nanosecond has a count of its own; above, each power of two has 128 counts, so that a
//! count's values are less than a hundredth apart. Counts are kept in blocks of 32, made when the first of
//! them is needed: the calls of one client are within a few powers of two of each other, and take 2 to 4 KiB
//! where all counts together would take 36 KiB.
//!
//! ```text
//!   5 000 123 ns ─► shift 15: 2^15 * 152 ≤ it ─► count 15 * 128 + 152 = 2072 ─► block 64, 24th in it
//! ```
//!
//! Latencies above 73 minutes are counted as 73 minutes. Counts never decrease.

/// The longest latency with a count of its own: more than any bound that a scheduler promises.
const LONGEST_NS: u64 = (1 << 42) - 1;
/// The counts of a power of two, as a power of two.
const STEPS_LOG2: u32 = 7;
const STEPS: u64 = 1 << STEPS_LOG2;
/// Counts in a block.
const BLOCK: usize = 32;
const BLOCKS: usize = (count_of(LONGEST_NS) as usize).div_ceil(BLOCK);
/// The place of a block that has not been made.
const NONE: u8 = u8::MAX;

/// A histogram of latencies.
#[derive(Clone, Debug)]
pub struct Latencies {
    /// Where each block is among those that have been made.
    place: [u8; BLOCKS],
    blocks: Vec<[u64; BLOCK]>,
    total: u64,
}

/// One count: the latencies up to `highest` that are nearly the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    lowest: u64,
    /// The longest latency that is counted here, in nanoseconds.
    pub highest_ns: u64,
    /// How many there were.
    pub count: u64,
}

impl Step {
    /// The middle, which stands for all of them.
    fn middle(self) -> f64 {
        real(self.lowest + (self.highest_ns + 1 - self.lowest) / 2)
    }
}

impl Latencies {
    pub(crate) const fn new() -> Self {
        Self { place: [NONE; BLOCKS], blocks: Vec::new(), total: 0 }
    }

    pub(crate) fn record(&mut self, ns: u64) {
        let i = count_of(ns.min(LONGEST_NS)) as usize;
        self.block(i / BLOCK)[i % BLOCK] += 1;
        self.total += 1;
    }

    fn block(&mut self, number: usize) -> &mut [u64; BLOCK] {
        if self.place[number] == NONE {
            self.place[number] = u8::try_from(self.blocks.len()).expect("there are fewer blocks than that");
            self.blocks.push([0; BLOCK]);
        }
        &mut self.blocks[usize::from(self.place[number])]
    }

    pub(crate) fn add(&mut self, other: &Self) {
        for (number, place) in other.place.iter().enumerate().filter(|(_, place)| **place != NONE) {
            let theirs = &other.blocks[usize::from(*place)];
            self.block(number).iter_mut().zip(theirs).for_each(|(a, b)| *a += b);
        }
        self.total += other.total;
    }

    /// Returns the counts that are not 0, from the shortest latency to the longest.
    pub fn steps(&self) -> impl Iterator<Item = Step> {
        let made = self.place.iter().enumerate().filter(|(_, place)| **place != NONE);
        made.flat_map(|(number, place)| {
            let counts = self.blocks[usize::from(*place)].iter().zip(number * BLOCK..);
            counts.filter(|(count, _)| **count > 0).map(|(&count, i)| step(i as u64, count))
        })
    }

    /// Returns the latency, in nanoseconds, that `percent` (0 to 100) of all do not exceed; 0 if there are
    /// none.
    #[must_use]
    pub fn percentile(&self, percent: f64) -> u64 {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most the total")]
        let wanted = ((percent.clamp(0.0, 100.0) / 100.0 * real(self.total)).ceil() as u64).max(1);
        let mut sum = 0;
        let found = self.steps().find(|step| {
            sum += step.count;
            sum >= wanted
        });
        found.map_or(0, |step| step.highest_ns)
    }

    /// Returns the part of all latencies, 0 to 1, that are at most `ns` nanoseconds, to two digits of the
    /// latency; 1 if there are none.
    #[must_use]
    pub fn part_within(&self, ns: u64) -> f64 {
        let within: u64 = self.steps().filter(|s| s.highest_ns <= ns).map(|s| s.count).sum();
        if self.total == 0 { 1.0 } else { real(within) / real(self.total) }
    }

    /// Returns the standard deviation, in nanoseconds.
    #[must_use]
    pub fn stdev(&self) -> f64 {
        if self.total == 0 {
            return 0.0;
        }
        let total = real(self.total);
        let mean = self.steps().map(|s| real(s.count) * s.middle() / total).sum::<f64>();
        let squares = self.steps().map(|s| (s.middle() - mean) * (s.middle() - mean) * real(s.count));
        (squares.sum::<f64>() / total).sqrt()
    }
}

impl PartialEq for Latencies {
    fn eq(&self, other: &Self) -> bool {
        // Blocks lie in the order in which they were needed, which does not matter.
        self.total == other.total && self.steps().eq(other.steps())
    }
}

/// Which count a latency belongs to.
const fn count_of(ns: u64) -> u64 {
    let shift = (u64::BITS - ns.leading_zeros()).saturating_sub(STEPS_LOG2 + 1);
    shift as u64 * STEPS + (ns >> shift)
}

/// The latencies of a count.
const fn step(i: u64, count: u64) -> Step {
    let shift = (i / STEPS).saturating_sub(1);
    let lowest = (i - shift * STEPS) << shift;
    Step { lowest, highest_ns: lowest + (1 << shift) - 1, count }
}

#[allow(clippy::cast_precision_loss, reason = "for reports; 53 bits of nanoseconds are 104 days")]
const fn real(n: u64) -> f64 {
    n as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use hdrhistogram::Histogram;

    #[test]
    fn figures_are_those_of_a_full_histogram() {
        let mut rng = Rng::new(1, "latencies");
        for spread in [8, 20, 33, 42] {
            let mut full = Histogram::<u64>::new_with_bounds(1, LONGEST_NS, 2).unwrap();
            let (mut a, mut b) = (Latencies::new(), Latencies::new());
            for i in 0..5_000 {
                let ns = (rng.next_u64() >> (64 - 1 - rng.below(spread))).max(1);
                full.saturating_record(ns);
                if i % 3 == 0 { a.record(ns) } else { b.record(ns) }
            }
            a.add(&b);
            for percent in [0.0, 1.0, 50.0, 90.0, 99.0, 99.9, 99.99, 100.0] {
                if percent > 0.0 {
                    assert_eq!(
                        a.percentile(percent),
                        full.value_at_percentile(percent),
                        "{spread} {percent}"
                    );
                }
            }
            assert!((a.stdev() - full.stdev()).abs() <= full.stdev() * 1e-12, "{spread}");
            let steps: Vec<_> = a.steps().map(|s| (s.highest_ns, s.count)).collect();
            let recorded: Vec<_> =
                full.iter_recorded().map(|v| (v.value_iterated_to(), v.count_at_value())).collect();
            assert_eq!(steps, recorded);
        }
    }

    #[test]
    fn latencies_near_each_other_take_little_memory() {
        let mut l = Latencies::new();
        (0..1_000_000).for_each(|i| l.record(2_000_000 + i * 14));
        assert!(l.blocks.len() <= 16, "{} blocks", l.blocks.len());
        l.record(u64::MAX);
        assert!(l.percentile(100.0) >= LONGEST_NS);
    }

    #[test]
    fn the_order_of_calls_does_not_matter() {
        let of = |all: &[u64]| {
            let mut l = Latencies::new();
            all.iter().for_each(|&ns| l.record(ns));
            l
        };
        assert_eq!(of(&[1, 5_000, 9_000_000]), of(&[9_000_000, 1, 5_000]));
        assert_ne!(of(&[1, 5_000]), of(&[1, 5_100]));
        assert_eq!((of(&[]).percentile(50.0), of(&[]).stdev()), (0, 0.0));
    }
}
