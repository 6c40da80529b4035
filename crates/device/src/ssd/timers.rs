//! One timer for each of a fixed number of resources, and which of them is next.
//!
//! A tournament: every inner node is the earlier of its two children, and the next timer is at the root.
//! Setting one costs a comparison for each level up to the first match that it neither had won nor wins now.
//! Of equals the lower number wins.
//!
//! ```text
//!            [1: 1]                timers 0..4 at 30, 10, 40, 20
//!        [2: 1]    [3: 3]          timer 1 is next; set to 50, the root becomes 3
//!      0:30 1:10  2:40 3:20
//! ```

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
    /// The winner of all at 1, of the two halves at 2 and 3, and so on; the timers themselves are the second
    /// half. With its time, so that a match looks at two neighbours and nothing else.
    entries: Box<[Entry]>,
}

#[allow(clippy::cast_possible_truncation, reason = "a device has at most 2048 resources")]
impl Timers {
    pub(super) fn new(count: usize) -> Self {
        let leaves = count.next_power_of_two().max(2);
        // Of equals the left child wins.
        let entry = |i: usize| Entry { at: NEVER, number: first_leaf(i.max(1), leaves) as u32 };
        Self { entries: (0..2 * leaves).map(entry).collect() }
    }

    /// The earliest: when, and whose.
    #[inline]
    pub(super) fn next(&self) -> (u64, usize) {
        (self.entries[1].at, self.entries[1].number as usize)
    }

    #[inline]
    pub(super) fn get(&self, i: usize) -> u64 {
        self.entries[self.entries.len() / 2 + i].at
    }

    #[inline]
    pub(super) fn set(&mut self, i: usize, at: u64) {
        let mut node = self.entries.len() / 2 + i;
        self.entries[node].at = at;
        while node > 1 {
            let (left, right) = (self.entries[node & !1], self.entries[node | 1]);
            let wins = if right.at < left.at { right } else { left };
            node /= 2;
            let before = std::mem::replace(&mut self.entries[node], wins);
            // It neither won this match nor does now: nothing changes above.
            if before.number != i as u32 && wins.number != i as u32 {
                return;
            }
        }
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
