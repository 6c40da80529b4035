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
    /// By number, up to a power of two.
    times: Box<[Instant]>,
    /// The number with the earliest time: of all at 1, of the two halves at 2 and 3, and so on; a number's
    /// own place is behind those.
    first: Box<[u8]>,
    /// The earliest of all times.
    next: Instant,
}

impl Earliest {
    /// Later than anything.
    pub(super) const NEVER: Instant = Instant::from_ns(u64::MAX);

    /// Makes `count` times, 128 at most, none of which is set.
    pub(super) fn new(count: usize) -> Self {
        let leaves = count.next_power_of_two();
        let number = |i: usize| u8::try_from(i).expect("128 at most");
        let mut first = vec![0; 2 * leaves].into_boxed_slice();
        (0..leaves).for_each(|i| first[leaves + i] = number(i));
        (1..leaves).rev().for_each(|i| first[i] = first[2 * i]);
        Self { times: vec![Self::NEVER; leaves].into(), first, next: Self::NEVER }
    }

    /// Changes one of the times.
    #[inline]
    pub(super) fn set(&mut self, i: usize, at: Option<Instant>) {
        let at = at.unwrap_or(Self::NEVER);
        // Most timers of schedulers are never set.
        if std::mem::replace(&mut self.times[i], at) != at {
            self.play(i);
        }
    }

    /// Plays the matches of one whose time has changed.
    fn play(&mut self, i: usize) {
        let mut node = self.times.len() + i;
        while node > 1 {
            // Siblings are an even number and the next.
            let (left, right) = (self.first[node & !1], self.first[node | 1]);
            let is_right = self.times[usize::from(right)] < self.times[usize::from(left)];
            node /= 2;
            self.first[node] = if is_right { right } else { left };
        }
        self.next = self.times[usize::from(self.first[1])];
    }

    /// The earliest time; [`Self::NEVER`] if none is set.
    #[inline]
    pub(super) fn next(&self) -> Instant {
        self.next
    }

    /// The number of the earliest, if that is not after `now`.
    #[inline]
    pub(super) fn due(&self, now: Instant) -> Option<usize> {
        (self.next <= now).then(|| usize::from(self.first[1]))
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
            assert_eq!(tree.next(), Earliest::NEVER);
            for _ in 0..2000 {
                let i = usize::try_from(rng.below(count as u64)).unwrap();
                let at = (rng.below(4) > 0).then(|| Instant::EPOCH + Duration::from_ns(rng.below(50)));
                list[i] = at;
                tree.set(i, at);
                let first = list.iter().enumerate().filter_map(|(i, at)| Some(((*at)?, i))).min();
                assert_eq!(tree.next(), first.map_or(Earliest::NEVER, |f| f.0), "{count}");
                for now in
                    first.map(|f| [(f.0 - Duration::from_ns(1), None), (f.0, Some(f.1))]).iter().flatten()
                {
                    assert_eq!(tree.due(now.0), now.1, "{count}");
                }
            }
        }
    }
}
