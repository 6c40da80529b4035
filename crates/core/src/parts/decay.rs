//! A mean that forgets: the think times and seek distances of AS, CFQ and BFQ.
//!
//! Each sample enters with weight 1/8 and old ones decay by 7/8, in integers with 256 standing for one
//! sample. `samples` grows 0, 32, 60, 84, … towards 249; the mean is trusted once it passes 80, with the
//! third sample.
//!
//= linux-2.6.33 block/cfq-iosched.c cfq_update_io_thinktime, cfq_update_io_seektime

/// Farther than any disk is long, in sectors (128 PiB): what a driver with larger numbers means is not a
/// distance, and 256 times it would not fit.
const FARTHEST: u64 = 1 << 48;

/// The sum and weight behind a decaying mean: cheaper than the mean where samples are frequent and the mean
/// is seldom read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct DecayedSum {
    samples: u64,
    total: u64,
}

impl DecayedSum {
    /// Adds a sample.
    #[inline]
    pub(crate) fn push(&mut self, value: u64) {
        // Think times are at most some 10 ms and distances are cut, so 256 times a sample fits by far.
        self.samples = (7 * self.samples + 256) / 8;
        self.total = (7 * self.total + 256 * value) / 8;
    }

    /// The mean, rounded as for think times: `(total + 128) / samples`; 0 before the first sample.
    #[must_use]
    pub(crate) fn mean(&self) -> u64 {
        (self.total + 128).checked_div(self.samples).unwrap_or(0)
    }

    /// Whether there have been enough samples to trust the mean.
    #[must_use]
    pub(crate) const fn is_valid(&self) -> bool {
        self.samples > 80
    }
}

/// A decaying mean.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Decayed {
    sum: DecayedSum,
    mean: u64,
}

impl Decayed {
    /// Adds a sample; `mean` is rounded as for think times.
    pub(crate) fn push(&mut self, value: u64) {
        self.sum.push(value);
        self.mean = self.sum.mean();
    }

    /// Adds a sample; `mean` is rounded as for seek distances: `(total + samples / 2) / samples`.
    pub(crate) fn push_rounded(&mut self, value: u64) {
        self.sum.push(value);
        self.mean = (self.sum.total + self.sum.samples / 2) / self.sum.samples;
    }

    /// Adds a seek distance, cut to 4 means plus some slack (more while there are few samples), so that one
    /// jump across the disk does not drown the rest.
    pub(crate) fn push_seek(&mut self, distance: u64) {
        let slack = if self.sum.samples <= 60 { 2 * 1024 * 1024 } else { 2 * 1024 * 64 };
        self.push_rounded(distance.min(4 * self.mean + slack).min(FARTHEST));
    }

    /// The mean; 0 before the first sample.
    #[must_use]
    pub(crate) const fn mean(&self) -> u64 {
        self.mean
    }

    /// Whether there has been no sample yet.
    #[must_use]
    pub(crate) const fn is_empty(&self) -> bool {
        self.sum.samples == 0
    }

    /// Whether there have been enough samples to trust the mean.
    #[must_use]
    pub(crate) const fn is_valid(&self) -> bool {
        self.sum.is_valid()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jumps_between_the_ends_of_all_sector_numbers_do_not_overflow() {
        let mut d = Decayed::default();
        for _ in 0..1000 {
            d.push_seek(u64::MAX);
        }
        // `samples` settles at 249 of 256, so a mean settles at 256/249 of its samples.
        let settled = FARTHEST / 249 * 256;
        assert!(d.mean().abs_diff(settled) < settled / 1000, "{} instead of {settled}", d.mean());
    }

    #[test]
    fn four_milliseconds_three_times() {
        let mut d = Decayed::default();
        let mut seen = [(0, 0, 0, false); 3];
        for s in &mut seen {
            d.push(4);
            *s = (d.sum.samples, d.sum.total, d.mean(), d.is_valid());
        }
        assert_eq!(seen.map(|s| (s.0, s.1)), [(32, 128), (60, 240), (84, 338)]);
        assert_eq!((seen[2].2, seen.map(|s| s.3)), (5, [false, false, true]));
    }

    #[test]
    fn samples_settle_at_249() {
        let mut d = Decayed::default();
        for _ in 0..100 {
            d.push(0);
        }
        assert_eq!((d.sum.samples, d.mean()), (249, 0));
    }

    #[test]
    fn one_jump_does_not_drown_the_rest() {
        let mut d = Decayed::default();
        for _ in 0..100 {
            d.push_seek(8);
        }
        d.push_seek(1 << 40);
        assert!(d.mean() < 2 * 1024 * 64, "{}", d.mean());
    }
}
