//! Two settings of a disk, compared under whatever load the machine has: turns, figures, verdict.
//!
//! ```text
//! turns:  A  B  B  A  A  B  B  A      a pair of neighbours has one of each: a drift hits both alike
//!         └pair┘ └pair┘ └pair┘ └pair┘
//! events ─► Requests: bio queued … completed ─► Figures of each turn, by process ─► Verdict: paired ratios
//! ```
//!
//! The first second of a turn is not counted: requests of the turn before are still on their way, and
//! schedulers learn. A request counts in the turn in which it was made, whenever it completes, so that one
//! that waits until the end of its turn is not left out.
//!
//! A pair gives one ratio of each figure. The ratio that is reported is the geometric mean over pairs, with
//! Student's interval of 95 % ([`fairhead_sim::advise::statistics`]).
//!
//! What this does not do: change a scheduler, read a clock, or know what the user wants. Nothing here does
//! input or output.

mod figures;
mod requests;
mod verdict;

pub use figures::{Figures, Told, Way};
pub use requests::Requests;
pub use verdict::{Job, Outcome, Row, Verdict, verdict};

/// One of the two settings.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Side {
    /// What the other is compared with.
    A,
    /// What is tried.
    B,
}

/// The side of the turn with this number, from 0.
#[must_use]
pub const fn side(turn: usize) -> Side {
    match turn % 4 {
        0 | 3 => Side::A,
        _ => Side::B,
    }
}

/// The pairs of complete turns: numbers of A's and of B's turn.
pub fn pairs(turns: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..turns / 2).map(|p| match side(2 * p) {
        Side::A => (2 * p, 2 * p + 1),
        Side::B => (2 * p + 1, 2 * p),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_are_abba() {
        let order: Vec<Side> = (0..8).map(side).collect();
        use Side::{A, B};
        assert_eq!(order, [A, B, B, A, A, B, B, A]);
        assert_eq!(pairs(7).collect::<Vec<_>>(), [(0, 1), (3, 2), (4, 5)]);
        assert!(pairs(8).all(|(a, b)| side(a) == A && side(b) == B));
    }
}
