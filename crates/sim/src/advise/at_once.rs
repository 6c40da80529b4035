//! The load in another order: all jobs begin at once.
//!
//! A built-in load begins as people have it: the film plays before the copy, and the copy has run for a while
//! when a program starts. A scheduler that learns from the past may fare worse where all begin in one
//! instant, as after a reboot. So the kernel's schedulers run that, too, on the seeds of the first round, and
//! what differs is said in one line. Example: under BFQ a film and a copy that begin together may be taken
//! for one reader.
//!
//! What it does not do: change the answer, or confirm on fresh seeds.

use super::book::{Book, EQUAL, Floor};
use super::race::{FIRST_SEEDS, seeds};
use super::statistics::Ratio;
use super::{Asked, Stopped, judged};
use crate::job::JobFile;
use crate::satisfaction::Load;
use crate::simulate;
use fairhead_core::Duration;

/// What differs if all jobs begin at once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AtOnce {
    /// Another candidate is surely better than the answer, by that.
    Better(usize, Ratio),
    /// A floor bars the answer: the job, and why.
    Barred(usize, Floor),
}

/// The load with all jobs beginning at once; `None` if they do.
pub(super) fn at_once(jobs: &JobFile) -> Option<JobFile> {
    if jobs.jobs.iter().all(|job| job.startdelay.is_zero()) {
        return None;
    }
    let mut jobs = jobs.clone();
    jobs.jobs.iter_mut().for_each(|job| job.startdelay = Duration::ZERO);
    Some(jobs)
}

/// What differs from the answer if all jobs begin at once.
pub(super) fn find(asked: &Asked<'_>, winner: usize) -> Result<Option<AtOnce>, Stopped> {
    let Some(jobs) = at_once(&asked.question.jobs) else { return Ok(None) };
    let load = Load::new(&jobs, asked.load.span, &asked.question.emphasis);
    let mut candidates: Vec<usize> = asked.chosen.plain.clone().collect();
    if !candidates.contains(&winner) {
        candidates.push(winner);
    }
    let seeds = seeds(asked.question.seed, "advise.race", FIRST_SEEDS);
    let mut book = Book::new(&load.parties, asked.book.named, asked.chosen.all.len());
    bring(asked, &load, &mut book, &candidates, &seeds[..1])?;
    candidates.retain(|&c| c == 0 || c == winner || may_be_better(&book, c, winner));
    bring(asked, &load, &mut book, &candidates, &seeds[1..])?;
    if let Some((job, floor)) = book.floor(winner, 0) {
        return Ok(Some(AtOnce::Barred(job, floor)));
    }
    let better = |&c: &usize| book.floor(c, 0).is_none() && book.against(c, winner).load.low > EQUAL;
    let best = candidates.into_iter().filter(better);
    let best = best.max_by(|a, b| book.satisfaction(*a).total_cmp(&book.satisfaction(*b)));
    Ok(best.map(|c| AtOnce::Better(c, book.against(c, winner).load)))
}

/// Whether a candidate may be surely better than the winner with three seeds, by the first of them. Of three
/// gaps of which one is below zero and whose mean `m` is above, the deviation is at least 0.87 `m`, and the
/// interval, which is 2.48 deviations on either side, holds zero.
fn may_be_better(book: &Book, candidate: usize, winner: usize) -> bool {
    book.satisfaction(candidate) > book.satisfaction(winner)
}

/// Runs candidates with more seeds.
fn bring(
    asked: &Asked<'_>,
    load: &Load,
    book: &mut Book,
    candidates: &[usize],
    seeds: &[u64],
) -> Result<(), Stopped> {
    let which = |i: usize| (candidates[i / seeds.len()], seeds[i % seeds.len()]);
    let name = |i: usize| format!("at once {} {}", asked.chosen.all[which(i).0].name(), which(i).1);
    let runs = asked.runs.each(candidates.len() * seeds.len(), name, |i| {
        let (candidate, seed) = which(i);
        let scenario = asked.question.scenario(load, &asked.chosen.all[candidate], seed);
        let run = judged(load, &asked.alone, &simulate(&scenario)?);
        let work = run.work;
        Ok((run, work))
    })?;
    for (&candidate, runs) in candidates.iter().zip(runs.chunks(seeds.len())) {
        book.standings[candidate].race.extend_from_slice(runs);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    /// No three gaps whose first is not above zero have an interval above zero.
    #[test]
    fn one_seed_that_is_not_better_leaves_no_sure_gain() {
        let mut rng = Rng::new(1, "gaps");
        let mut better = 0;
        for _ in 0..100_000 {
            let mut gap = || (rng.below(2001) as f64 - 1000.0) / 1000.0;
            let (first, near) = (gap(), gap());
            let gaps = [first, near, near + gap() / 50.0];
            let low = Ratio::of(&gaps, super::super::book::INTERVAL).low;
            assert!(first > 0.0 || low <= 1.0, "{gaps:?}");
            better += u32::from(low > 1.0);
        }
        assert!(better > 1000, "{better}");
    }
}
