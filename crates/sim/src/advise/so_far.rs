//! What an interrupted race has found: the runs that had finished, and how each candidate compares with the
//! default on the seeds that both have run.
//!
//! Example: of five candidates the first three have finished three seeds, the others two. Each is compared
//! with the default by its own pairs, so factors of two candidates may come from different seeds. Nothing is
//! confirmed on fresh seeds, so the best of many flatters itself: it is a hint, not advice.

use super::book::{Book, Comparison, Run};
use super::{Advice, Candidate, Question, SPAN_MAX};
use crate::satisfaction::Load;

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
    /// The load over its span.
    pub load: Load,
    /// The candidates; what is in use now first.
    pub candidates: Vec<Candidate>,
    book: Book,
    /// The finished runs of each candidate, with their seeds.
    runs: Vec<Vec<(u64, Run)>>,
}

impl SoFar {
    pub(super) fn new(load: Load, candidates: Vec<Candidate>, book: Book, ran: &[Ran]) -> Self {
        let mut runs = vec![Vec::new(); candidates.len()];
        ran.iter().for_each(|(c, seed, run)| runs[*c].push((*seed, run.clone())));
        Self { load, candidates, book, runs }
    }

    /// An answer that was interrupted before its first race.
    pub(super) fn nothing(question: &Question, candidates: &[Candidate]) -> Self {
        let load = Load::new(&question.jobs, SPAN_MAX, &question.emphasis);
        let book = Book::new(&load.parties, None, candidates.len());
        Self::new(load, candidates.to_vec(), book, &[])
    }

    /// The candidate's runs of which the first has run the seed, too, and the first's, in pairs.
    fn pairs(&self, candidate: usize) -> (Vec<Run>, Vec<Run>) {
        let first = |seed: u64| self.runs[0].iter().find(|(s, _)| *s == seed).map(|(_, run)| run.clone());
        self.runs[candidate].iter().filter_map(|(seed, run)| Some((run.clone(), first(*seed)?))).unzip()
    }

    /// How many of the candidate's runs can be compared with what is in use now.
    #[must_use]
    pub fn count(&self, candidate: usize) -> usize {
        self.pairs(candidate).0.len()
    }

    /// The candidate against what is in use now, from the seeds that both have run.
    #[must_use]
    pub fn against_now(&self, candidate: usize) -> Comparison {
        let (mine, now) = self.pairs(candidate);
        self.book.compare(&mine, &now)
    }

    /// The candidates that can be compared, the best first; what is in use now has 1.
    #[must_use]
    pub fn ranked(&self) -> Vec<usize> {
        let ratio = |c: usize| self.against_now(c).load.ratio;
        let mut all: Vec<usize> = (0..self.runs.len()).filter(|&c| self.count(c) > 0).collect();
        // Stable: of equal ones the plainer candidate comes first.
        all.sort_by(|a, b| ratio(*b).total_cmp(&ratio(*a)));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::super::answer;
    use super::super::tests::question;
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
        match answer(&question(JOBS, "nas2020"), 1, &keep, &|_| {}).unwrap() {
            Answer::SoFar(so_far) => *so_far,
            Answer::Whole(_) => panic!("it was over after {runs} runs"),
        }
    }

    #[test]
    fn an_interrupted_race_tells_what_had_finished() {
        // One run of the whole load says what fits the budget; then each job is alone under two schedulers.
        let before_the_race = 1 + 2 * 2;
        for runs in 0..=before_the_race {
            assert!(after(runs).ranked().is_empty(), "{runs}");
        }
        // One seed of the kernel's three, and another of the first.
        let so_far = after(before_the_race + 4);
        let ranked = so_far.ranked();
        assert_eq!(ranked.len(), 3, "{ranked:?}");
        assert!(ranked.contains(&0) && so_far.count(0) == 2);
        let best = so_far.against_now(ranked[0]);
        assert!(!best.is_confirmed && best.load.ratio >= 1.0, "{best:?}");
    }
}
