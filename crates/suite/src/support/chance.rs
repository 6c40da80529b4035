//! Where the draws come from: a seed, or the bytes of a fuzzer.

use std::cell::RefCell;

/// A number that was drawn, as the bytes of a fuzzer that would give the same.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Draw {
    number: u64,
    bytes: usize,
}

thread_local! {
    /// What this thread drew from seeds, if that is wanted.
    static TAPE: RefCell<Option<Vec<Draw>>> = const { RefCell::new(None) };
}

/// From now on, what this thread draws from seeds is written down.
pub(crate) fn start_tape() {
    TAPE.set(Some(Vec::new()));
}

/// Returns what was drawn since, first draw first; nothing more is written down.
pub(crate) fn take_tape() -> Vec<Draw> {
    TAPE.take().unwrap_or_default()
}

/// A source of draws. The same seed or bytes give the same draws on every machine.
#[derive(Clone, Debug)]
pub(crate) enum Chance {
    /// SplitMix64 in this state.
    Seed(u64),
    /// What is left of a fuzzer's input, last byte first; zero when nothing is.
    Bytes(Vec<u8>),
}

//= G. Steele, D. Lea, C. Flood, Fast splittable pseudorandom number generators (2014), section 4.1
pub(crate) const fn mix(seed: u64) -> u64 {
    let z = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// 2^64 divided by the golden ratio, odd: `SplitMix64`'s step.
pub(crate) const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

impl Chance {
    /// Gives these draws, and zeros after them.
    pub(crate) fn of(draws: &[Draw]) -> Self {
        let bytes = |draw: &Draw| draw.number.to_le_bytes().into_iter().take(draw.bytes);
        Self::Bytes(draws.iter().rev().flat_map(bytes).collect())
    }

    /// Whether a fuzzer's input is used up; never so for a seed.
    pub(crate) fn exhausted(&self) -> bool {
        matches!(self, Self::Bytes(bytes) if bytes.is_empty())
    }

    /// A number below `n`, or any, for which a fuzzer spends this many bytes.
    fn next(&mut self, bytes_wanted: usize, n: Option<u64>) -> u64 {
        let below = |drawn: u64| n.map_or(drawn, |n| drawn % n);
        match self {
            Self::Seed(state) => {
                *state = state.wrapping_add(GOLDEN);
                let drawn = below(mix(*state));
                TAPE.with_borrow_mut(|tape| {
                    if let Some(tape) = tape {
                        tape.push(Draw { number: drawn, bytes: bytes_wanted });
                    }
                });
                drawn
            }
            Self::Bytes(bytes) => {
                below((0..bytes_wanted).fold(0, |n, _| n << 8 | u64::from(bytes.pop().unwrap_or(0))))
            }
        }
    }

    /// A number below `n`, which is not 0. (The bias of a remainder does not matter here.)
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        let wanted = match n {
            0..=0x100 => 1,
            0x101..=0x1_0000 => 2,
            _ => 8,
        };
        self.next(wanted, Some(n))
    }

    /// A number from `low` to `high`, both included.
    pub(crate) fn range(&mut self, low: u64, high: u64) -> u64 {
        match (high - low).checked_add(1) {
            Some(n) => low + self.below(n),
            None => self.next(8, None),
        }
    }

    /// A number from `low` to `high` whose magnitude is drawn first: small ones are as likely as large ones.
    pub(crate) fn scaled(&mut self, low: u64, high: u64) -> u64 {
        let bits = self.below(u64::from(64 - (high - low).leading_zeros()) + 1);
        let top =
            1u64.checked_shl(u32::try_from(bits).unwrap()).map_or(high - low, |n| (n - 1).min(high - low));
        low + self.range(0, top)
    }

    /// True in `percent` of 100 draws.
    pub(crate) fn percent(&mut self, percent: u64) -> bool {
        percent > 0 && self.below(100) < percent
    }

    /// One of `items`.
    pub(crate) fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.index(items.len())]
    }

    /// An index below `len`.
    pub(crate) fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.below(len as u64)).unwrap()
    }

    /// An index, as likely as its weight is heavy; the last one when all are 0.
    pub(crate) fn weighted(&mut self, weights: &[u64]) -> usize {
        let total: u64 = weights.iter().sum();
        let mut at = self.below(total.max(1));
        for (i, &w) in weights.iter().enumerate() {
            if at < w {
                return i;
            }
            at -= w;
        }
        weights.len() - 1
    }
}

/// A number that fits because of the range it was drawn from.
pub(crate) fn narrow<T: TryFrom<u64, Error: std::fmt::Debug>>(n: u64) -> T {
    T::try_from(n).expect("drawn from a range that fits")
}
