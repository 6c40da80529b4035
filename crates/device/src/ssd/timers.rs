//! One timer for each of a fixed number of resources, and which of them is next.
//!
//! A tournament: every inner node names the earlier of its two children, so that setting a timer costs one comparison
//! per level, and the next one is at the root. Of equals the lower number wins.
//!
//! ```text
//!            [1: 1]                timers 0..4 at 30, 10, 40, 20
//!        [2: 1]    [3: 3]          timer 1 is next; set to 50, the root becomes 3
//!      0:30 1:10  2:40 3:20
//! ```

/// No instant: later than any.
pub(super) const NEVER: u64 = u64::MAX;

/// Timers numbered from 0.
#[derive(Clone, Debug)]
pub(super) struct Timers {
    /// When each goes off; as many as there are leaves.
    at: Vec<u64>,
    /// The winner below each inner node; the root is 1.
    winner: Vec<u32>,
}

#[allow(clippy::cast_possible_truncation, reason = "a device has at most 2048 resources")]
impl Timers {
    pub(super) fn new(count: usize) -> Self {
        let leaves = count.next_power_of_two().max(2);
        // Of equals the left child wins.
        let winner = (0..leaves).map(|i| first_leaf(i.max(1), leaves) as u32).collect();
        Self { at: vec![NEVER; leaves], winner }
    }

    /// The earliest: when, and whose.
    pub(super) fn next(&self) -> (u64, usize) {
        let i = self.winner[1] as usize;
        (self.at[i], i)
    }

    pub(super) fn get(&self, i: usize) -> u64 {
        self.at[i]
    }

    pub(super) fn set(&mut self, i: usize, at: u64) {
        let leaves = self.at.len();
        self.at[i] = at;
        let mut node = (leaves + i) / 2;
        let (mut left, mut right) = ((i & !1) as u32, (i | 1) as u32);
        loop {
            let wins = if self.at[right as usize] < self.at[left as usize] { right } else { left };
            self.winner[node] = wins;
            if node == 1 {
                return;
            }
            (left, right) = (self.winner[node & !1], self.winner[node | 1]);
            node /= 2;
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
