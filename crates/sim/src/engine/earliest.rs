//! The earliest of a few times, each of which changes now and then.
//!
//! ```text
//!   disk 0: 7 us   disk 1: 9 us   disk 2: 3 us   disk 3: never        known: disk 2, 3 us
//!
//!   disk 1 ─► 2 us     one comparison: disk 1 is the first now
//!   disk 0 ─► 8 us     none: it was not the first, and is not
//!   disk 2 ─► never    all times are looked at
//! ```
//!
//! Runs have few disks. To look at 4 times takes fewer instructions than to keep a tree of them, and to look
//! at 64, which is the most, about as many.

use fairhead_core::Instant;

/// The earliest of a few times; of equal ones that with the smallest number.
#[derive(Clone, Debug)]
pub(super) struct Earliest {
    /// By number.
    times: Box<[Instant]>,
    /// The number with the earliest time, and that time.
    first: usize,
    next: Instant,
}

impl Earliest {
    /// Later than anything.
    pub(super) const NEVER: Instant = Instant::from_ns(u64::MAX);

    /// Makes `count` times, none of which is set.
    pub(super) fn new(count: usize) -> Self {
        Self { times: vec![Self::NEVER; count].into(), first: 0, next: Self::NEVER }
    }

    /// Changes one of the times.
    #[inline]
    pub(super) fn set(&mut self, i: usize, at: Option<Instant>) {
        let at = at.unwrap_or(Self::NEVER);
        // Most timers of schedulers are never set.
        if std::mem::replace(&mut self.times[i], at) == at {
            return;
        }
        if at < self.next || at == self.next && i < self.first {
            (self.first, self.next) = (i, at);
        } else if i == self.first {
            self.find();
        }
    }

    /// Finds the earliest again: the one that was it has become later.
    fn find(&mut self) {
        (self.first, self.next) = (0, Self::NEVER);
        for (i, &at) in self.times.iter().enumerate() {
            if at < self.next {
                (self.first, self.next) = (i, at);
            }
        }
    }

    /// The earliest time; [`Self::NEVER`] if none is set.
    #[inline]
    pub(super) fn next(&self) -> Instant {
        self.next
    }

    /// The number of the earliest, if that is not after `now`.
    #[inline]
    pub(super) fn due(&self, now: Instant) -> Option<usize> {
        (self.next <= now).then_some(self.first)
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
