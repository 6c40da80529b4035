//! Which of two requests is cheaper to reach: the choice that AS introduced and CFQ and BFQ inherited.
//!
//! The head is at `last`. Going forward costs the distance. Going back costs `penalty` times the distance,
//! and only up to `back_max`; whatever lies further back is *wrapped*: the head will come by on its next
//! sweep.
//!
//! With `last` = 1000 and penalty 2: 1100 costs 100, 960 costs 80 and wins; 950 costs 100, a tie, and the one
//! further on (1100) wins.
//!
//= linux-2.6.33 block/cfq-iosched.c cfq_choose_req, docs/reference/cfq.md#33-best-request

use crate::units::Sector;

/// How far back a seek may go, and how much dearer it is than one forward.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct BackSeek {
    /// The largest backward seek, in sectors.
    pub max: u64,
    /// A factor.
    pub penalty: u64,
}

/// Whether the first of the two starting sectors is to be preferred with the head at `last`.
#[must_use]
pub(crate) fn first_is_nearer(first: Sector, second: Sector, last: Sector, back: BackSeek) -> bool {
    match (cost(first, last, back), cost(second, last, back)) {
        (Some(a), Some(b)) if a == b => first >= second,
        (Some(a), Some(b)) => a < b,
        (Some(_), None) => true,
        (None, Some(_)) => false,
        (None, None) => first <= second,
    }
}

/// `None` when the request is wrapped.
fn cost(start: Sector, last: Sector, back: BackSeek) -> Option<u64> {
    if start >= last {
        Some(start.0 - last.0)
    } else if start.0.saturating_add(back.max) >= last.0 {
        Some((last.0 - start.0).saturating_mul(back.penalty))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BACK: BackSeek = BackSeek { max: 2 * 16384, penalty: 2 };

    fn winner(a: u64, b: u64, last: u64) -> u64 {
        let first = first_is_nearer(Sector(a), Sector(b), Sector(last), BACK);
        // The order of the arguments must not matter.
        assert!(a == b || first != first_is_nearer(Sector(b), Sector(a), Sector(last), BACK));
        if first { a } else { b }
    }

    #[test]
    fn follows_the_published_vectors() {
        assert_eq!(winner(1100, 960, 1000), 960);
        assert_eq!(winner(1100, 950, 1000), 1100, "a tie goes to the larger start");
        assert_eq!(winner(40000, 10, 50000), 40000, "10 is too far back, so wrapped");
        assert_eq!(winner(20, 10, 50000), 10, "both wrapped: the smaller start");
    }

    #[test]
    fn of_two_at_one_place_the_first_is_preferred() {
        for start in [1100, 900, 10] {
            assert!(first_is_nearer(Sector(start), Sector(start), Sector(50_000), BACK), "{start}");
        }
        assert!(first_is_nearer(Sector(60_000), Sector(60_000), Sector(50_000), BACK));
    }
}
