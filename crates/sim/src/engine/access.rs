//! Where random calls land.
//!
//! fio visits every block once per pass unless told otherwise. It keeps a bitmap for that; here a permutation
//! does it without memory: a Feistel network over the smallest even number of bits that holds all blocks,
//! walked again for numbers that fall outside.
//!
//! ```text
//!   counter 0 1 2 3 …  ──► network of 4 rounds, keys drawn per pass ──► block 17 3 40 8 …, none twice
//! ```
//!
//! The skewed distributions draw a *rank* and spread ranks over the file with another permutation, where fio
//! uses a hash. Their powers and logarithms come from `libm`, which is the same code on every machine; those
//! of `std` come from the machine's C library, and a last bit that differs would move a block.
//
//= fio-3.33 HOWTO "random_distribution", "norandommap"; lib/zipf.c, lib/gauss.c (methods, not text)
//= M. Luby, C. Rackoff, "How to construct pseudorandom permutations from pseudorandom functions", 1988

use crate::job::{Distribution, RandomZone};
use crate::rng::Rng;
use std::collections::BTreeMap;

/// A permutation of `0..n`.
#[derive(Clone, Debug)]
pub(super) struct Permutation {
    n: u64,
    half_bits: u32,
    keys: [u64; 4],
    /// What is added, modulo `n`.
    shift: u64,
}

impl Permutation {
    pub(super) fn new(n: u64, rng: &mut Rng) -> Self {
        let bits = 64 - n.saturating_sub(1).leading_zeros();
        Self {
            n,
            half_bits: bits.div_ceil(2).max(1),
            keys: std::array::from_fn(|_| rng.next_u64()),
            shift: 0,
        }
    }

    /// The permutation moved, so that 0 goes to this part of the range.
    fn around(&mut self, center: f64) {
        let at = to_u64(to_f64(self.n) * center) % self.n;
        self.shift = (at + self.n - self.get(0)) % self.n;
    }

    /// Where `i` goes. `i` is below `n`.
    pub(super) fn get(&self, i: u64) -> u64 {
        let mask = (1 << self.half_bits) - 1;
        let mut x = i;
        loop {
            let (mut left, mut right) = (x >> self.half_bits, x & mask);
            for key in self.keys {
                // A round of SplitMix64's mixing; its top bits are its best.
                let mixed = (right ^ key).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
                (left, right) = (right, left ^ (mixed >> (64 - self.half_bits)));
            }
            x = left << self.half_bits | right;
            if x < self.n {
                return if self.shift == 0 { x } else { (x + self.shift) % self.n };
            }
        }
    }
}

/// What draws blocks for one client: the same for all of its files, but for how far it got in each.
#[derive(Clone, Debug)]
pub(super) enum Picker {
    /// Any block, as often as it comes.
    Uniform,
    /// Every block once per pass: the permutation of the current pass and how many were drawn, by file.
    Once(Vec<(Permutation, u64)>),
    /// Ranks by a power law, spread over the file.
    Zipf(Zipf, Permutation),
    /// Rank `n * u^power`, spread over the file.
    Pareto(f64, Permutation),
    /// Around the middle, or a center; deviation and center in millionths of the range.
    Normal(u64, Option<u64>),
    /// In one of several parts of the file, and anywhere in it.
    Zoned(Zones),
    /// By [`Marks`], which the client has for each file: calls differ in length.
    Marked,
}

impl Picker {
    /// For files of `blocks` blocks each.
    pub(super) fn new(d: &Distribution, repeats: bool, blocks: u64, files: usize, rng: &mut Rng) -> Self {
        let blocks = blocks.max(1);
        match *d {
            Distribution::Uniform if repeats => Self::Uniform,
            Distribution::Uniform => {
                Self::Once((0..files).map(|_| (Permutation::new(blocks, rng), 0)).collect())
            }
            Distribution::Zipf(theta) => Self::Zipf(Zipf::new(blocks, theta), Permutation::new(blocks, rng)),
            Distribution::Pareto(h) => {
                Self::Pareto(libm::log(h) / libm::log(1.0 - h), Permutation::new(blocks, rng))
            }
            Distribution::Normal(percent) => Self::Normal(to_u64(percent * 10_000.0), None),
            Distribution::Zoned(_) => Self::Uniform,
        }
    }

    /// The client's `file`-th file has that many blocks, which is fewer than others have.
    pub(super) fn limit(&mut self, file: usize, blocks: u64, rng: &mut Rng) {
        if let Self::Once(passes) = self
            && let Some(pass) = passes.get_mut(file)
        {
            *pass = (Permutation::new(blocks.max(1), rng), 0);
        }
    }

    /// Moves the most popular block to this part of the range, from 0 to 1.
    //= fio-3.33 HOWTO "random_distribution"; with zipf:1.2:0.5 the most popular of 100 blocks is number 50
    pub(super) fn around(mut self, center: Option<f64>) -> Self {
        let Some(center) = center else { return self };
        match &mut self {
            Self::Zipf(_, spread) | Self::Pareto(_, spread) => spread.around(center),
            Self::Normal(_, at) => *at = Some(to_u64(center * 1_000_000.0)),
            Self::Uniform | Self::Once(_) | Self::Zoned(_) | Self::Marked => {}
        }
        self
    }

    /// A block in `0..blocks` of the client's `file`-th file. `None` if each was visited, unless they are to
    /// be visited `again`.
    pub(super) fn draw(&mut self, file: usize, blocks: u64, again: bool, rng: &mut Rng) -> Option<u64> {
        if blocks == 0 {
            return None;
        }
        Some(match self {
            Self::Uniform | Self::Marked => rng.below(blocks),
            Self::Zoned(zones) => zones.draw(blocks, rng),
            Self::Once(passes) => {
                let (permutation, drawn) = &mut passes[file];
                if *drawn == permutation.n {
                    if !again {
                        return None;
                    }
                    (*permutation, *drawn) = (Permutation::new(permutation.n, rng), 0);
                }
                *drawn += 1;
                permutation.get(*drawn - 1).min(blocks - 1)
            }
            Self::Zipf(zipf, spread) => spread.get(zipf.rank(unit(rng))).min(blocks - 1),
            Self::Pareto(power, spread) => {
                let rank = to_u64(to_f64(spread.n - 1) * libm::pow(unit(rng), *power));
                spread.get(rank.min(spread.n - 1)).min(blocks - 1)
            }
            Self::Normal(deviation, center) => {
                // Twelve uniform numbers add up to a normal one of mean 6 and deviation 1.
                let sum: u128 = (0..12).map(|_| u128::from(rng.next_u64() >> 32)).sum();
                let step = u128::from(blocks) * u128::from(*deviation);
                let offset = (sum * step) >> 32;
                let middle = u128::from(blocks) * 500_000;
                let at = (middle + offset).saturating_sub(6 * step) / 1_000_000;
                let at = u64::try_from(at).unwrap_or(u64::MAX).min(blocks - 1);
                match center {
                    None => at,
                    Some(center) => {
                        let shift = u128::from(blocks) * u128::from(*center) / 1_000_000;
                        let moved = u128::from(at) + shift + u128::from(blocks) - u128::from(blocks / 2);
                        u64::try_from(moved % u128::from(blocks)).unwrap_or(at)
                    }
                }
            }
        })
    }

    /// Another pass begins: every block may be visited once more.
    pub(super) fn renew(&mut self, rng: &mut Rng) {
        let Self::Once(passes) = self else { return };
        for (permutation, drawn) in passes.iter_mut().filter(|p| p.1 > 0) {
            (*permutation, *drawn) = (Permutation::new(permutation.n, rng), 0);
        }
    }
}

/// Parts of a file, each with its share of the calls. Blocks may repeat, as with fio.
//= fio-3.33 HOWTO "random_distribution"; bounds and repetitions seen in its logs of offsets
#[derive(Clone, Debug)]
pub(super) struct Zones {
    /// Percent of the calls, where it starts and how long it is, in bytes.
    parts: Vec<(u8, u64, u64)>,
    span: u64,
}

impl Zones {
    /// Makes the parts of a range of `span` bytes.
    pub(super) fn new(zones: &[RandomZone], span: u64) -> Self {
        let mut end = 0;
        let part = |zone: &RandomZone| {
            let start = end;
            end = (start + zone.size.bytes_of(span)).min(span);
            (zone.percent, start, end - start)
        };
        Self { parts: zones.iter().map(part).collect(), span: span.max(1) }
    }

    fn draw(&self, blocks: u64, rng: &mut Rng) -> u64 {
        let mut at = rng.below(100);
        let chosen = self.parts.iter().find(|(percent, ..)| {
            let is_here = at < u64::from(*percent);
            at = at.saturating_sub(u64::from(*percent));
            is_here
        });
        let Some(&(_, start, len)) = chosen else { return 0 };
        let in_blocks = |bytes: u64| {
            let exact = u128::from(bytes) * u128::from(blocks) / u128::from(self.span);
            u64::try_from(exact).unwrap_or(blocks)
        };
        // A part that is shorter than a block is one block.
        (in_blocks(start) + rng.below(in_blocks(len).max(1))).min(blocks - 1)
    }
}

/// Which blocks of a file were visited: a bitmap that has memory only for where calls were.
///
/// A draw that hits a visited block takes the next free one, and behind the last block the first, as fio
/// does.
#[derive(Clone, Debug, Default)]
pub(super) struct Marks {
    /// 64 blocks each, by number; those that are missing are free.
    words: BTreeMap<u64, u64>,
    visited: u64,
}

impl Marks {
    /// A free block in `0..blocks`. `None` if there is none, unless they are to be visited `again`.
    pub(super) fn draw(&mut self, blocks: u64, again: bool, rng: &mut Rng) -> Option<u64> {
        if self.visited >= blocks {
            if !again || blocks == 0 {
                return None;
            }
            *self = Self::default();
        }
        let from = rng.below(blocks);
        Some(self.next_free(from, blocks).or_else(|| self.next_free(0, blocks)).unwrap_or(from))
    }

    fn next_free(&self, from: u64, blocks: u64) -> Option<u64> {
        let below = (1 << (from % 64)) - 1;
        let mut at = from / 64;
        let mut word = self.word(at) | below;
        if word == u64::MAX {
            // The words behind it that are full, one after the other.
            let full =
                self.words.range(at + 1..).zip(at + 1..).take_while(|((k, w), i)| *k == i && **w == u64::MAX);
            at += 1 + full.count() as u64;
            word = self.word(at);
        }
        Some(at * 64 + u64::from(word.trailing_ones())).filter(|b| *b < blocks)
    }

    fn word(&self, at: u64) -> u64 {
        self.words.get(&at).copied().unwrap_or(0)
    }

    /// How many of `most` blocks from `first` on are free before the first that is not.
    pub(super) fn free_from(&self, first: u64, most: u64) -> u64 {
        (first..first + most).take_while(|b| self.word(b / 64) >> (b % 64) & 1 == 0).count() as u64
    }

    /// Visits blocks.
    pub(super) fn visit(&mut self, first: u64, count: u64) {
        for block in first..first + count {
            let word = self.words.entry(block / 64).or_default();
            let bit = 1 << (block % 64);
            self.visited += u64::from(*word & bit == 0);
            *word |= bit;
        }
    }
}

/// Ranks with a likelihood of `rank^-theta`.
//= J. Gray et al., "Quickly generating billion-record synthetic databases", 1994
#[derive(Clone, Debug)]
pub(super) struct Zipf {
    n: f64,
    theta: f64,
    zeta_n: f64,
    eta: f64,
}

impl Zipf {
    fn new(n: u64, theta: f64) -> Self {
        let (zeta_2, zeta_n) = (zeta(n.min(2), theta), zeta(n, theta));
        let n = to_f64(n);
        let eta = (1.0 - libm::pow(2.0 / n, 1.0 - theta)) / (1.0 - zeta_2 / zeta_n);
        Self { n, theta, zeta_n, eta }
    }

    /// The rank, from 0, for a uniform `u`.
    fn rank(&self, u: f64) -> u64 {
        let z = u * self.zeta_n;
        if z < 1.0 {
            return 0;
        }
        if z < 1.0 + libm::pow(0.5, self.theta) {
            return 1.min(to_u64(self.n) - 1);
        }
        let rank = self.n * libm::pow(self.eta * u - self.eta + 1.0, 1.0 / (1.0 - self.theta));
        to_u64(rank).min(to_u64(self.n) - 1)
    }
}

/// The sum of `i^-theta` for `i` from 1 to `n`: the first terms one by one, the rest by Euler and Maclaurin's
/// formula.
fn zeta(n: u64, theta: f64) -> f64 {
    const EXACT: u64 = 1000;
    let term = |i: u64| libm::pow(to_f64(i), -theta);
    let head: f64 = (1..=n.min(EXACT)).map(term).sum();
    if n <= EXACT {
        return head;
    }
    let integral = |x: f64| libm::pow(x, 1.0 - theta) / (1.0 - theta);
    let (a, b) = (EXACT, n);
    head + integral(to_f64(b)) - integral(to_f64(a)) + (term(b) - term(a)) / 2.0
}

/// Uniform in `[0, 1)`.
fn unit(rng: &mut Rng) -> f64 {
    to_f64(rng.next_u64() >> 11) / to_f64(1 << 53)
}

#[allow(clippy::cast_precision_loss, reason = "ranks beyond 2^53 do not exist: blocks of a disk")]
const fn to_f64(n: u64) -> f64 {
    n as f64
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the conversion saturates, and callers limit it"
)]
const fn to_u64(x: f64) -> u64 {
    x as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permutation_visits_everything_once() {
        for n in [1, 2, 3, 7, 64, 1000, 4097] {
            let p = Permutation::new(n, &mut Rng::new(n, "test"));
            let mut all: Vec<u64> = (0..n).map(|i| p.get(i)).collect();
            if n >= 64 {
                let in_place = all.iter().enumerate().filter(|(i, x)| *i as u64 == **x).count();
                assert!(in_place < 10, "{in_place} of {n} stay in place");
            }
            all.sort_unstable();
            assert!(all.into_iter().eq(0..n), "{n}");
        }
    }

    #[test]
    fn a_pass_visits_every_block_and_the_next_pass_in_another_order() {
        let mut rng = Rng::new(5, "test");
        let mut picker = Picker::new(&Distribution::Uniform, false, 100, 1, &mut rng);
        let mut pass = || (0..100).map(|_| picker.draw(0, 100, true, &mut rng).unwrap()).collect::<Vec<_>>();
        let (a, b) = (pass(), pass());
        assert_ne!(a, b);
        for mut p in [a, b] {
            p.sort_unstable();
            assert!(p.into_iter().eq(0..100));
        }
    }

    #[test]
    fn marks_give_every_block_once() {
        for blocks in [1, 63, 64, 65, 200, 1000] {
            let (mut marks, mut rng) = (Marks::default(), Rng::new(blocks, "test"));
            let mut all = Vec::new();
            while let Some(block) = marks.draw(blocks, false, &mut rng) {
                assert_eq!(marks.free_from(block, 1), 1, "{block} of {blocks}");
                let run = marks.free_from(block, 3.min(blocks - block));
                marks.visit(block, run);
                all.extend(block..block + run);
            }
            all.sort_unstable();
            assert!(all.into_iter().eq(0..blocks), "{blocks}");
        }
    }

    #[test]
    fn zeta_by_formula_is_the_sum() {
        for theta in [0.5, 0.99, 1.2] {
            let sum: f64 = (1..=20_000_u64).map(|i| libm::pow(to_f64(i), -theta)).sum();
            let off = (zeta(20_000, theta) - sum).abs() / sum;
            assert!(off < 1e-7, "{theta}: {off}");
        }
    }

    /// How many of 100 000 draws land on each of the blocks, most first.
    fn popularity(d: Distribution, blocks: u64) -> Vec<u32> {
        let mut rng = Rng::new(1, "test");
        let mut picker = Picker::new(&d, false, blocks, 1, &mut rng);
        let mut hits = vec![0; usize::try_from(blocks).unwrap()];
        (0..100_000).for_each(|_| {
            hits[usize::try_from(picker.draw(0, blocks, true, &mut rng).unwrap()).unwrap()] += 1
        });
        hits.sort_unstable_by(|a, b| b.cmp(a));
        hits
    }

    #[test]
    fn zipf_prefers_by_rank() {
        // Likelihood 1 / (i^1.2 zeta): the first twice^1.2 = 2.3 times the second.
        let hits = popularity(Distribution::Zipf(1.2), 1000);
        let expected = 100_000.0 / zeta(1000, 1.2);
        let first = f64::from(hits[0]);
        assert!((first / expected - 1.0).abs() < 0.03, "{first} for {expected}");
        assert!((first / f64::from(hits[1]) / 2.297 - 1.0).abs() < 0.05, "{:?}", &hits[..3]);
    }

    #[test]
    fn pareto_gives_a_share_of_the_blocks_the_rest_of_the_calls() {
        // The definition of h: a share h of the blocks gets a share 1 - h of the calls.
        let hits = popularity(Distribution::Pareto(0.2), 10_000);
        let head: u32 = hits[..2000].iter().sum();
        assert!((78_500..81_500).contains(&head), "{head}");
    }

    /// fio multiplies by one less than there are blocks, and rounds down.
    #[test]
    fn pareto_never_gives_the_last_rank() {
        assert_eq!(popularity(Distribution::Pareto(0.2), 1), [100_000]);
        assert_eq!(popularity(Distribution::Pareto(0.2), 2), [100_000, 0]);
        let three = popularity(Distribution::Pareto(0.2), 3);
        assert!(three[1] > 0 && three[2] == 0, "{three:?}");
    }

    #[test]
    fn normal_is_around_the_middle() {
        let mut rng = Rng::new(2, "test");
        let mut picker = Picker::new(&Distribution::Normal(10.0), false, 1000, 1, &mut rng);
        let draws: Vec<u64> = (0..100_000).map(|_| picker.draw(0, 1000, true, &mut rng).unwrap()).collect();
        let within = |d: u64| draws.iter().filter(|&&x| x.abs_diff(500) <= d).count();
        // 68.3 % within one deviation of 100 blocks, 95.4 % within two.
        assert!((67_500..69_600).contains(&within(100)), "{}", within(100));
        assert!((94_800..96_000).contains(&within(200)), "{}", within(200));
    }
}
