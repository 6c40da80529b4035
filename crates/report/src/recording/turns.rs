//! Records which client was served when, and why: consecutive requests are one turn, and turns join when
//! there are too many.

use fairhead_core::{Duration, Reason};

/// The most turns that are kept; half as many are shown.
const MOST: usize = 8_000;
/// The first grain: gaps within a turn are shorter than this. It is doubled as often as necessary.
const FIRST_GRAIN_NS: u64 = 62_500;
/// The number of reasons that a turn keeps.
const REASONS: usize = 3;

/// A stretch of time in which a lane was served, or the disk idled for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Turn {
    pub(crate) lane: usize,
    pub(crate) is_idle: bool,
    pub(crate) from: u64,
    pub(crate) to: u64,
    /// The time in the device, or idle, within the turn, in nanoseconds.
    pub(crate) ns: u64,
    /// The number of requests, or how often the disk idled.
    pub(crate) count: u64,
    /// The first few reasons, and how often each applied.
    pub(crate) reasons: [(Reason, u64); REASONS],
}

/// Turns, in order of their beginnings within a lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Turns {
    pub(crate) grain_ns: u64,
    turns: Vec<Turn>,
    /// The last turn of each lane and kind.
    last: Vec<[Option<usize>; 2]>,
}

impl Default for Turns {
    fn default() -> Self {
        Self { grain_ns: FIRST_GRAIN_NS, turns: Vec::new(), last: Vec::new() }
    }
}

impl Turn {
    fn join(&mut self, other: &Self) {
        self.to = self.to.max(other.to);
        self.ns += other.ns;
        self.count += other.count;
        for &(reason, n) in other.reasons.iter().filter(|r| r.1 > 0) {
            let known = self.reasons.iter().position(|r| r.1 > 0 && r.0 == reason);
            let place = known.or_else(|| self.reasons.iter().position(|r| r.1 == 0));
            if let Some(p) = place {
                self.reasons[p] = (reason, self.reasons[p].1 + n);
            }
        }
    }
}

impl Turns {
    /// Records that a request of a lane was served.
    pub(crate) fn add(&mut self, lane: usize, from: Duration, to: Duration, why: Reason) {
        self.push(lane, false, from, to, why);
    }

    /// Records that the disk idled for a lane.
    pub(crate) fn idle(&mut self, lane: usize, from: Duration, to: Duration, why: Reason) {
        self.push(lane, true, from, to, why);
    }

    fn push(&mut self, lane: usize, is_idle: bool, from: Duration, to: Duration, why: Reason) {
        let (from, to) = (from.as_ns(), to.as_ns());
        let mut reasons = [(Reason::None, 0); REASONS];
        reasons[0] = (why, 1);
        let turn = Turn { lane, is_idle, from, to, ns: to - from, count: 1, reasons };
        self.insert(&turn);
        if self.turns.len() >= MOST {
            self.coarsen(MOST / 2);
        }
    }

    fn insert(&mut self, turn: &Turn) {
        if self.last.len() <= turn.lane {
            self.last.resize(turn.lane + 1, [None; 2]);
        }
        let last = &mut self.last[turn.lane][usize::from(turn.is_idle)];
        match last.map(|i| &mut self.turns[i]) {
            Some(before) if turn.from < before.to + self.grain_ns => before.join(turn),
            _ => {
                *last = Some(self.turns.len());
                self.turns.push(*turn);
            }
        }
    }

    /// Doubles the grain until there are at most `most` turns.
    fn coarsen(&mut self, most: usize) {
        while self.turns.len() > most {
            self.grain_ns *= 2;
            let turns = std::mem::take(&mut self.turns);
            self.last.clear();
            turns.iter().for_each(|t| self.insert(t));
        }
    }

    /// Reduces the turns to the number that a picture shows.
    pub(crate) fn finish(&mut self) {
        self.coarsen(MOST / 2);
        self.turns.sort_by_key(|t| (t.lane, t.is_idle, t.from));
    }

    /// Returns all turns.
    pub(crate) fn all(&self) -> &[Turn] {
        &self.turns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_in_a_row_are_one_turn() {
        let mut turns = Turns::default();
        let ms = Duration::from_ms;
        turns.add(0, ms(0), ms(1), Reason::SliceStart);
        turns.add(0, ms(1), ms(3), Reason::Batch);
        turns.add(1, ms(3), ms(4), Reason::Batch);
        turns.idle(1, ms(4), ms(6), Reason::SliceIdle);
        turns.add(0, ms(6), ms(7), Reason::FifoExpired);
        turns.finish();
        let got: Vec<_> = turns.all().iter().map(|t| (t.lane, t.is_idle, t.from, t.to, t.count)).collect();
        let m = 1_000_000;
        assert_eq!(
            got,
            [
                (0, false, 0, 3 * m, 2),
                (0, false, 6 * m, 7 * m, 1),
                (1, false, 3 * m, 4 * m, 1),
                (1, true, 4 * m, 6 * m, 1)
            ]
        );
        assert_eq!(turns.all()[0].reasons[..2], [(Reason::SliceStart, 1), (Reason::Batch, 1)]);
    }

    #[test]
    fn a_million_requests_are_some_thousand_turns_of_the_same_length() {
        let mut turns = Turns::default();
        for i in 0..1_000_000u64 {
            let from = Duration::from_us(i * 100);
            turns.add((i % 7) as usize, from, from + Duration::from_us(90), Reason::Arrival);
        }
        turns.finish();
        assert!(turns.all().len() <= MOST / 2, "{}", turns.all().len());
        assert_eq!(turns.all().iter().map(|t| t.ns).sum::<u64>(), 1_000_000 * 90_000);
        assert_eq!(turns.all().iter().map(|t| t.count).sum::<u64>(), 1_000_000);
    }
}
