//! How fast it turns: from the times at which the same sectors come by.
//!
//! Some places are read in the same order twice. Between, everything has been displaced from the drive's
//! buffer, so both times the head waited for the sector, and the time between the two is a whole number of
//! revolutions:
//!
//! ```text
//!     place 1   |....x..............................x      d1 = 151 turns
//!     place 2   |.......x.............................x    d2 = 152 turns    one T divides all
//! ```
//!
//! Every candidate `T` is scored by how well the distances gather on one angle, the mean of
//! `cos(2 pi d / T)`: 1 if all are multiples, near 0 for a wrong one. A half or third of the right `T`
//! divides them too, so the longest of the good ones counts. What is left over, `d mod T`, is the noise of
//! the measurement; what lies far out was disturbed.

use super::drive::{median, spread};
use std::f64::consts::TAU;

/// Revolutions, found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    /// One, ns.
    pub(super) ns: f64,
    /// What one time of passing is off, ns.
    pub(super) jitter: f64,
    /// Share of the distances that are no multiples.
    pub(super) outliers: f64,
}

/// From 20,000 to 3,000 revolutions per minute.
const SHORTEST: f64 = 3e6;
const LONGEST: f64 = 20e6;
/// Chance alone hardly gives a third with a hundred distances.
pub(super) const SCORE_SEEN: f64 = 0.4;

fn score(distances: &[f64], turn: f64) -> f64 {
    // Multiples of the turn lie at angle 0, not just together, so the other half of the sum is of no use.
    let sum: f64 = distances.iter().map(|d| ((d / turn).fract() * TAU).cos()).sum();
    sum / distances.len().max(1) as f64
}

/// The distance of a value from the nearest multiple.
fn off(d: f64, turn: f64) -> f64 {
    d - (d / turn).round() * turn
}

/// The longest time that divides the distances, if one does.
pub(super) fn find(distances: &[f64]) -> Option<Turn> {
    let far = distances.iter().copied().fold(1.0, f64::max);
    // Neighbouring candidates differ by a tenth of a turn at the farthest.
    let mut candidates = Vec::new();
    let mut turn = SHORTEST;
    while turn <= LONGEST {
        candidates.push((score(distances, turn), turn));
        turn += turn * turn / far / 10.0;
    }
    let best = candidates.iter().map(|c| c.0).fold(0.0, f64::max);
    if best < SCORE_SEEN {
        return None;
    }
    let coarse = candidates.iter().rev().find(|c| c.0 > 0.8 * best)?.1;
    // Near the longest good one there may be a better: the top of its hill.
    let near = candidates.iter().filter(|c| (c.1 / coarse - 1.0).abs() < 2.0 * coarse / far);
    let mut turn = near.max_by(|a, b| a.0.total_cmp(&b.0))?.1;
    for _ in 0..8 {
        let limit = turn / 8.0;
        let (mut nd, mut nn) = (0.0, 0.0);
        for &d in distances.iter().filter(|d| off(**d, turn).abs() < limit) {
            let n = (d / turn).round();
            nd += n * d;
            nn += n * n;
        }
        if nn > 0.0 {
            turn = nd / nn;
        }
    }
    let offs: Vec<f64> = distances.iter().map(|&d| off(d, turn)).collect();
    let typical = spread(&offs).max(20_000.0);
    let far_out =
        offs.iter().filter(|o| (**o - median(&offs)).abs() > (6.0 * typical).min(turn / 6.0)).count();
    Some(Turn {
        ns: turn,
        jitter: spread(&offs) / std::f64::consts::SQRT_2,
        outliers: far_out as f64 / distances.len() as f64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calibrate::drive::Chance;

    fn distances(turn: f64, noise: f64, wild: u64, seed: u64) -> Vec<f64> {
        let mut c = Chance::new(seed);
        (0..100)
            .map(|i| {
                let n = (120 + c.below(60)) as f64;
                let wild = if i < wild { c.unit() * turn } else { 0.0 };
                n * turn + (c.unit() - 0.5) * noise + wild
            })
            .collect()
    }

    #[test]
    fn the_turn_itself_is_found_and_not_a_part_of_it() {
        for (seed, rpm) in [3600.0, 4200.0, 5400.0, 7200.0, 10_045.0, 15_000.0].into_iter().enumerate() {
            let turn = 60e9 / rpm;
            for (noise, wild) in [(0.0, 0), (100_000.0, 0), (100_000.0, 15)] {
                let t = find(&distances(turn, noise, wild, seed as u64)).unwrap();
                let ppm = (t.ns / turn - 1.0).abs() * 1e6;
                assert!(ppm < 50.0, "{rpm} rpm, noise {noise}, {wild} wild: {} ns, {ppm} ppm", t.ns);
                assert!((t.outliers - wild as f64 / 100.0).abs() < 0.06, "{} of {wild}", t.outliers);
            }
        }
    }

    #[test]
    fn what_does_not_turn_has_no_turn() {
        let mut c = Chance::new(3);
        let random: Vec<f64> = (0..100).map(|_| 1e9 + c.unit() * 1e9).collect();
        assert!(find(&random).is_none());
    }
}
