//! Chance, named and repeatable.
//!
//! Every source of chance has its own generator, seeded from the run's seed and a name (`host.jitter`,
//! `client.3`, `layout`): adding a client or exchanging the scheduler never shifts another's stream. The
//! generator is xoshiro256++, its arithmetic all integers, so a seed means the same on every machine and in
//! every year; that is why it is here and not a crate whose streams may change with its version.
//!
//= D. Blackman, S. Vigna, "Scrambled linear pseudorandom number generators", 2021
//= G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom number generators", 2014 (SplitMix64, for seeding)

use fairhead_core::Duration;

/// `2^35 / k`, rounded up, for `k` from 2 to 16: multiplying by it and shifting divides a number below `2^30`
/// by `k` exactly, as `2^35 / 2^30` is more than the rounding adds.
const INVERSES: [u64; 15] = {
    let mut inverses = [0; 15];
    let mut k = 2;
    while k <= 16 {
        inverses[k - 2] = (1_u64 << INVERSE_BITS).div_ceil(k as u64);
        k += 1;
    }
    inverses
};
const INVERSE_BITS: u32 = 35;

/// A generator.
#[derive(Clone, Debug)]
pub struct Rng {
    state: [u64; 4],
}

impl Rng {
    /// The generator called `name` in the run with `seed`.
    #[must_use]
    pub fn new(seed: u64, name: &str) -> Self {
        // FNV-1a over the name keeps the streams apart, SplitMix64 spreads the bits.
        let mut z = name
            .bytes()
            .fold(seed ^ 0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3));
        let state = std::array::from_fn(|_| {
            z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut x = z;
            x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            x ^ (x >> 31)
        });
        Self { state }
    }

    /// 64 uniform bits.
    pub fn next_u64(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// Uniform in `0..n`.
    ///
    /// # Panics
    /// If `n` is 0.
    pub fn below(&mut self, n: u64) -> u64 {
        assert!(n > 0, "nothing to choose from");
        // The bias of multiply-and-shift is n / 2^64: nothing for disk sectors.
        ((u128::from(self.next_u64()) * u128::from(n)) >> 64) as u64
    }

    /// True in `percent` of 100 cases.
    pub fn percent(&mut self, percent: u8) -> bool {
        self.below(100) < u64::from(percent)
    }

    /// Exponentially distributed with this mean, in whole nanoseconds.
    ///
    /// An exponential is a geometric number of halvings (leading zeros) times ln 2, plus a rest below ln 2
    /// that is -ln(1 - v/2) for a uniform v; the rest is summed as a series in 32-bit fixed point.
    pub fn exponential(&mut self, mean: Duration) -> Duration {
        const LN2: u64 = 2_977_044_472; // ln 2 * 2^32
        if mean.is_zero() {
            return Duration::ZERO;
        }
        let bits = self.next_u64();
        let halvings = u64::from((bits >> 32).leading_zeros().saturating_sub(32));
        let w = (bits & 0xffff_ffff) / 2; // v/2 in [0, 1/2)
        let (mut power, mut rest) = ((w * w) >> 32, w);
        for inverse in INVERSES {
            rest += (power * inverse) >> INVERSE_BITS;
            power = (power * w) >> 32;
        }
        let x = u128::from(halvings * LN2 + rest);
        Duration::from_ns(((x * u128::from(mean.as_ns())) >> 32) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_seeds_keep_streams_apart() {
        let mut a = Rng::new(1, "layout");
        assert_eq!(a.next_u64(), Rng::new(1, "layout").next_u64());
        assert_ne!(Rng::new(1, "layout").next_u64(), Rng::new(1, "client.1").next_u64());
        assert_ne!(Rng::new(1, "layout").next_u64(), Rng::new(2, "layout").next_u64());
    }

    #[test]
    fn an_exponential_has_its_mean_and_its_median() {
        let mut rng = Rng::new(7, "test");
        let n = 200_000_u64;
        let mut samples: Vec<u64> = (0..n).map(|_| rng.exponential(Duration::from_us(5)).as_ns()).collect();
        let mean = samples.iter().sum::<u64>() / n;
        samples.sort_unstable();
        assert!(mean.abs_diff(5000) < 50, "mean {mean}");
        let median = samples[100_000]; // 5000 * ln 2 = 3466
        assert!(median.abs_diff(3466) < 40, "median {median}");
        let p99 = samples[198_000]; // 5000 * ln 100 = 23026
        assert!(p99.abs_diff(23_026) < 400, "p99 {p99}");
    }

    #[test]
    fn dividing_by_inverses_is_exact() {
        let mut rng = Rng::new(4, "test");
        for i in 0..10_000_u64 {
            let n = if i < 100 { (1 << 30) - 1 - i } else { rng.below(1 << 30) };
            for (k, inverse) in (2..).zip(INVERSES) {
                assert_eq!((n * inverse) >> INVERSE_BITS, n / k, "{n} / {k}");
            }
        }
    }

    #[test]
    fn below_covers_its_range_evenly() {
        let mut rng = Rng::new(3, "test");
        let mut hits = [0_u32; 10];
        for _ in 0..100_000 {
            hits[rng.below(10) as usize] += 1;
        }
        assert!(hits.iter().all(|h| (9_700..10_300).contains(h)), "{hits:?}");
    }
}
