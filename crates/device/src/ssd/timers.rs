//! Which work ends next: [`Timers`] for work of any length, [`Turns`] for work that nearly always takes the
//! same time.
//!
//! [`Timers`] is a tournament: every inner node is the earlier of its two children, and the next timer is at
//! the root. Setting one costs a comparison for each level up to the first match that it neither had won nor
//! wins now. Of equals the lower number wins.
//!
//! ```text
//!            [1: 1]                timers 0..4 at 30, 10, 40, 20
//!        [2: 1]    [3: 3]          timer 1 is next; set to 50, the root becomes 3
//!      0:30 1:10  2:40 3:20
//! ```

use alloc::boxed::Box;
use alloc::collections::VecDeque;

/// No instant: later than any.
pub(super) const NEVER: u64 = u64::MAX;

/// A timer, or the one that wins a match.
#[derive(Clone, Copy, Debug)]
struct Entry {
    at: u64,
    number: u32,
}

/// Timers numbered from 0.
#[derive(Clone, Debug)]
pub(super) struct Timers {
    /// Node `n` is side `n % 2` of match `n / 2`, whose winner is node `n / 2`: the winner of all is at 1,
    /// the winners of the two halves at 2 and 3, and so on; the timers themselves are the second half.
    matches: Box<[[Entry; 2]]>,
}

#[allow(clippy::cast_possible_truncation, reason = "a device has at most 2048 resources")]
impl Timers {
    pub(super) fn new(count: usize) -> Self {
        let leaves = count.next_power_of_two().max(2);
        // Of equals the left child wins.
        let entry = |node: usize| Entry { at: NEVER, number: first_leaf(node.max(1), leaves) as u32 };
        Self { matches: (0..leaves).map(|i| [entry(2 * i), entry(2 * i + 1)]).collect() }
    }

    /// The earliest: when, and whose.
    #[inline]
    pub(super) fn next(&self) -> (u64, usize) {
        let first = &self.matches[0][1];
        (first.at, first.number as usize)
    }

    #[inline]
    pub(super) fn get(&self, i: usize) -> u64 {
        let node = self.matches.len() + i;
        self.matches[node / 2][node % 2].at
    }

    #[inline]
    pub(super) fn set(&mut self, i: usize, at: u64) {
        let mut node = self.matches.len() + i;
        self.matches[node / 2][node % 2].at = at;
        while node > 1 {
            node /= 2;
            let [left, right] = self.matches[node];
            let wins = if right.at < left.at { right } else { left };
            let before = core::mem::replace(&mut self.matches[node / 2][node % 2], wins);
            // It neither won this match nor does now: nothing changes above.
            if before.number != i as u32 && wins.number != i as u32 {
                return;
            }
        }
    }
}

/// Work that mostly takes the same time, and so ends in the order in which it began: when each piece ends,
/// and its number. Of equal times the lower number is first, as in [`Timers`].
#[derive(Clone, Debug)]
pub(super) struct Turns {
    all: VecDeque<(u64, u32)>,
    /// The earliest; `(NEVER, 0)` if there is none.
    first: (u64, u32),
}

impl Turns {
    pub(super) fn new(most: usize) -> Self {
        Self { all: VecDeque::with_capacity(most), first: (NEVER, 0) }
    }

    #[inline]
    pub(super) fn push(&mut self, at: u64, number: u32) {
        if self.all.back().is_none_or(|last| *last < (at, number)) {
            self.all.push_back((at, number));
        } else {
            self.insert(at, number);
        }
        self.first = self.first.min((at, number));
    }

    /// Inserts work before some that was pushed earlier: a read that suspends a program begins late, and a
    /// page crosses a channel faster than a unit.
    #[inline(never)]
    fn insert(&mut self, at: u64, number: u32) {
        let i = self.all.partition_point(|other| *other < (at, number));
        self.all.insert(i, (at, number));
    }

    /// The earliest: when, and whose.
    #[inline]
    pub(super) fn next(&self) -> (u64, usize) {
        (self.first.0, self.first.1 as usize)
    }

    /// Removes the earliest.
    #[inline]
    pub(super) fn pop(&mut self) {
        self.all.pop_front();
        self.first = self.all.front().copied().unwrap_or((NEVER, 0));
    }

    /// Whether work with that number has not ended.
    #[cfg(test)]
    pub(super) fn has(&self, number: usize) -> bool {
        self.all.iter().any(|one| one.1 as usize == number)
    }
}

/// The leftmost leaf below a node.
fn first_leaf(mut node: usize, leaves: usize) -> usize {
    while node < leaves {
        node *= 2;
    }
    node - leaves
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_begins_late_waits_for_what_begins_after_it() {
        let mut turns = Turns::new(8);
        for (at, number) in [(30, 1), (40, 4), (60, 2), (50, 3), (50, 0), (60, 5)] {
            turns.push(at, number);
        }
        let all: Vec<(u64, usize)> = std::iter::from_fn(|| {
            let next = turns.next();
            turns.pop();
            (next.0 != NEVER).then_some(next)
        })
        .collect();
        assert_eq!(all, [(30, 1), (40, 4), (50, 0), (50, 3), (60, 2), (60, 5)]);
    }

    #[test]
    fn the_root_is_always_the_minimum() {
        for count in [1, 2, 3, 8, 41, 64] {
            let mut timers = Timers::new(count);
            assert_eq!(timers.next(), (NEVER, 0), "{count} unset timers");
            let mut state = 9_u64;
            for _ in 0..5000 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let (i, at) = ((state >> 33) as usize % count, (state >> 40) % 50);
                timers.set(i, if at < 10 { NEVER } else { at });
                let naive = (0..count).map(|i| (timers.get(i), i)).min();
                assert_eq!(Some(timers.next()), naive, "the earliest, and of equals the first");
            }
        }
    }
}
