//! What an interrupted race has found: the runs that had finished, and how each candidate compares with the
//! default on the seeds that both have run.
//!
//! Example: of five candidates the first three have finished three seeds, the others two. Each is compared
//! with the default by its own pairs, so factors of two candidates may come from different seeds. Nothing is
//! confirmed on fresh seeds, so the best of many flatters itself: it is a hint, not advice.

use super::race::{self, Comparison, Run};
use super::{Advice, Candidate, Question, Waiting};

/// Advice, or what is known of it after an interruption.
#[derive(Clone, Debug)]
pub enum Answer {
    /// The question as it was run (a job may have been cut short), and the advice.
    Whole(Box<(Question, Advice)>),
    /// It was interrupted.
    SoFar(Box<SoFar>),
}

impl Answer {
    /// The advice, if it was not interrupted.
    #[must_use]
    pub fn whole(self) -> Option<(Question, Advice)> {
        match self {
            Self::Whole(whole) => Some(*whole),
            Self::SoFar(_) => None,
        }
    }
}

/// A finished run: the candidate's number, the seed, and the result.
pub(super) type Ran = (usize, u64, Run);

/// The finished runs of an interrupted race.
#[derive(Clone, Debug)]
pub struct SoFar {
    /// The candidates; the default first.
    pub candidates: Vec<Candidate>,
    /// The jobs that wait, and what is measured of them.
    pub waiting: Waiting,
    /// The weight of each figure in the score.
    weights: [f64; super::Figures::COUNT],
    /// The finished runs of each candidate, with their seeds.
    runs: Vec<Vec<(u64, Run)>>,
}

impl SoFar {
    pub(super) fn new(
        question: &Question,
        candidates: Vec<Candidate>,
        waiting: Waiting,
        ran: &[Ran],
    ) -> Self {
        let of = |c: usize| ran.iter().filter(|r| r.0 == c).map(|&(_, seed, run)| (seed, run)).collect();
        let runs = (0..candidates.len()).map(of).collect();
        Self { candidates, waiting, weights: question.goal.weights(), runs }
    }

    /// The candidate's runs of which the default has run the seed, too, and the default's, in pairs.
    fn pairs(&self, candidate: usize) -> (Vec<Run>, Vec<Run>) {
        let default = |seed: u64| self.runs[0].iter().find(|(s, _)| *s == seed).map(|(_, run)| *run);
        self.runs[candidate].iter().filter_map(|&(seed, run)| Some((run, default(seed)?))).unzip()
    }

    /// The candidate's runs that can be compared with the default's.
    #[must_use]
    pub fn runs(&self, candidate: usize) -> Vec<Run> {
        self.pairs(candidate).0
    }

    /// The candidate's figures against the default's, from the seeds that both have run.
    #[must_use]
    pub fn against_default(&self, candidate: usize) -> Comparison {
        let (mine, default) = self.pairs(candidate);
        Comparison { confirmed: false, ..race::compare(&self.weights, &mine, &default) }
    }

    /// The candidates that can be compared, the best score first; the default has a score of 1.
    #[must_use]
    pub fn ranked(&self) -> Vec<usize> {
        let score = |c: usize| self.against_default(c).score.map_or(1.0, |s| s.ratio);
        let mut all: Vec<usize> = (0..self.runs.len()).filter(|&c| !self.pairs(c).0.is_empty()).collect();
        // Stable: of equal scores the plainer candidate comes first.
        all.sort_by(|a, b| score(*b).total_cmp(&score(*a)));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::question;
    use super::super::{Goal, answer};
    use super::*;
    use crate::resumable::Keep;
    use std::sync::atomic::{AtomicUsize, Ordering};

    const JOBS: &str = "[streams]\nrw=read\nbs=64k\nsize=64m\nnumjobs=2\nruntime=1s\ntime_based\n\
                        [reader]\nrw=randread\nbs=4k\nsize=64m\nruntime=1s\ntime_based\n";

    /// Keeps nothing, and is over after some runs.
    struct Until(AtomicUsize, usize);

    impl Keep for Until {
        fn known(&self, _: &str) -> Option<&str> {
            None
        }
        fn keep(&self, _: &str, _: &str) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
        fn is_over(&self) -> bool {
            self.0.load(Ordering::Relaxed) >= self.1
        }
    }

    fn after(runs: usize) -> SoFar {
        let keep = Until(AtomicUsize::new(0), runs);
        match answer(&question(JOBS, "nas2020", Goal::Balanced), 1, &keep, &|_| {}).unwrap() {
            Answer::SoFar(so_far) => *so_far,
            Answer::Whole(_) => panic!("it was over after {runs} runs"),
        }
    }

    #[test]
    fn an_interrupted_race_tells_what_had_finished() {
        assert!(after(0).ranked().is_empty(), "not even the run that finds out what a run costs");
        assert!(after(1).ranked().is_empty(), "that run is of no seed of the race");
        // One seed of the first six candidates.
        let so_far = after(7);
        let ranked = so_far.ranked();
        assert_eq!(ranked.len(), 6, "{ranked:?}");
        assert!(ranked.contains(&0) && so_far.runs(0).len() == 1);
        let best = so_far.against_default(ranked[0]);
        assert!(!best.confirmed && best.score.is_none_or(|s| s.ratio >= 1.0), "{best:?}");
    }
}
