//! The earliest of a few times, each of which changes now and then: a tournament.
//!
//! ```text
//!            3 us (disk 2)                 asked: one look
//!          ┌──────┴──────┐                 one changes: as many comparisons as the tree is deep, 4 for 16 disks
//!       7 us (0)      3 us (2)
//!       ┌──┴──┐       ┌──┴──┐
//!      7 us  9 us    3 us  never
//! ```

use fairhead_core::Instant;

/// The earliest of a few times; of equal ones that with the smallest number.
#[derive(Clone, Debug)]
pub(super) struct Earliest {
    /// The number of leaves, a power of two.
    leaves: usize,
    /// The root at 1, the children of `i` at `2i` and `2i + 1`: the earliest time below, and whose it is.
    nodes: Box<[(Instant, usize)]>,
}

impl Earliest {
    /// Later than anything.
    const NEVER: Instant = Instant::from_ns(u64::MAX);

    /// So many times, none of which is set.
    pub(super) fn new(count: usize) -> Self {
        let leaves = count.next_power_of_two();
        let mut nodes = vec![(Self::NEVER, 0); 2 * leaves].into_boxed_slice();
        (0..leaves).for_each(|i| nodes[leaves + i].1 = i);
        (1..leaves).rev().for_each(|i| nodes[i] = nodes[2 * i].min(nodes[2 * i + 1]));
        Self { leaves, nodes }
    }

    /// Changes one of the times.
    pub(super) fn set(&mut self, i: usize, at: Option<Instant>) {
        let mut node = self.leaves + i;
        self.nodes[node].0 = at.unwrap_or(Self::NEVER);
        while node > 1 {
            node /= 2;
            let winner = self.nodes[2 * node].min(self.nodes[2 * node + 1]);
            if self.nodes[node] == winner {
                return;
            }
            self.nodes[node] = winner;
        }
    }

    /// The earliest time and its number, if any time is set.
    pub(super) fn first(&self) -> Option<(Instant, usize)> {
        let first = self.nodes[1];
        (first.0 < Self::NEVER).then_some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use fairhead_core::Duration;

    /// Beside a list that is searched.
    #[test]
    fn the_earliest_is_that_of_a_list() {
        for count in [1, 2, 3, 4, 7, 16, 64] {
            let (mut rng, mut tree) = (Rng::new(count as u64, "test"), Earliest::new(count));
            let mut list = vec![None; count];
            assert_eq!(tree.first(), None);
            for _ in 0..2000 {
                let i = usize::try_from(rng.below(count as u64)).unwrap();
                let at = (rng.below(4) > 0).then(|| Instant::EPOCH + Duration::from_ns(rng.below(50)));
                list[i] = at;
                tree.set(i, at);
                let first = list.iter().enumerate().filter_map(|(i, at)| Some(((*at)?, i))).min();
                assert_eq!(tree.first(), first, "{count}");
            }
        }
    }
}
