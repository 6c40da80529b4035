//! Runs side by side. Schedulers whose runs are identical are shown as one run with several names: there is
//! no clearer *no difference*.

use crate::recording::Recording;
use crate::svg::{Key, LOOKS, file_stem};
use crate::words::real;
use fairhead_core::sched::any::{PRESETS, shown};
use fairhead_sim::Outcome;
use fairhead_sim::job::JobFile;
use fairhead_sim::metrics::OpStats;

/// The result of a run under one scheduler.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// The name of the scheduler, with its tunables if there are any.
    pub name: &'a str,
    /// The figures.
    pub outcome: &'a Outcome,
    /// The recording of the run.
    pub recording: &'a Recording,
}

/// Several runs of one job on one disk.
#[derive(Debug)]
pub struct Runs<'a> {
    /// The job.
    pub jobs: &'a JobFile,
    pub(crate) shown: Vec<Shown<'a>>,
}

/// A run under all its names.
#[derive(Debug)]
pub(crate) struct Shown<'a> {
    pub(crate) names: Vec<&'a str>,
    /// The stem of its file names.
    pub(crate) stem: String,
    pub(crate) outcome: &'a Outcome,
    pub(crate) recording: &'a Recording,
    /// The index of the look; [`LOOKS`] is grey.
    pub(crate) look: usize,
}

impl Shown<'_> {
    /// Returns all its names, joined.
    pub(crate) fn name(&self) -> String {
        self.names.join(", ")
    }
}

fn is_same(a: &Outcome, b: &Outcome) -> bool {
    a.clients == b.clients && a.disk == b.disk && a.groups == b.groups && a.elapsed == b.elapsed
}

/// Whether a name is that of an older era of a scheduler, such as `cfq-2.6.33` beside `cfq`, or of a
/// scheduler below groups.
fn is_variant(name: &str) -> bool {
    let is_base = |base: &str| name.strip_prefix(base).is_some_and(|rest| rest.starts_with(['-', '+']));
    PRESETS.iter().any(|p| is_base(p.name) || is_base(shown(p.name)))
}

/// Returns the looks of runs with these names. Up to [`LOOKS`] runs have one each. Of more, the schedulers
/// themselves come before their older eras, and what is then left is grey.
fn looks(names: &[&str]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..names.len()).collect();
    order.sort_by_key(|&i| is_variant(names[i]));
    order.truncate(LOOKS);
    order.sort_unstable();
    (0..names.len()).map(|i| order.iter().position(|&o| o == i).unwrap_or(LOOKS)).collect()
}

impl<'a> Runs<'a> {
    /// Groups identical runs, for a page.
    #[must_use]
    pub fn grouped(jobs: &'a JobFile, runs: &[Run<'a>]) -> Self {
        Self::new(jobs, runs, is_same)
    }

    /// Keeps each run by itself, for files, so that there is a file for each name.
    #[must_use]
    pub fn each(jobs: &'a JobFile, runs: &[Run<'a>]) -> Self {
        Self::new(jobs, runs, |_, _| false)
    }

    fn new(jobs: &'a JobFile, runs: &[Run<'a>], same: fn(&Outcome, &Outcome) -> bool) -> Self {
        let mut shown: Vec<Shown<'a>> = Vec::new();
        for run in runs {
            if let Some(known) = shown.iter_mut().find(|s| same(s.outcome, run.outcome)) {
                known.names.push(run.name);
                continue;
            }
            let mut stem = file_stem(&[run.name]);
            if shown.iter().any(|s| s.stem == stem) {
                stem = format!("{stem}-{}", shown.len() + 1);
            }
            shown.push(Shown {
                names: vec![run.name],
                stem,
                outcome: run.outcome,
                recording: run.recording,
                look: LOOKS,
            });
        }
        let names: Vec<&str> = shown.iter().map(|s| s.names[0]).collect();
        for (s, look) in shown.iter_mut().zip(looks(&names)) {
            s.look = look;
        }
        Self { jobs, shown }
    }

    /// Returns the letter of a run.
    pub(crate) fn sign(run: usize) -> String {
        let letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
        letters.chars().nth(run).map_or_else(|| (run + 1).to_string(), String::from)
    }

    /// Returns the keys of the runs.
    pub(crate) fn keys(&self) -> Vec<Key> {
        let key = |(i, s): (usize, &Shown<'_>)| Key { look: s.look, sign: Self::sign(i), name: s.name() };
        self.shown.iter().enumerate().map(key).collect()
    }

    /// Returns the time of the longest run, in nanoseconds.
    pub(crate) fn longest_ns(&self) -> f64 {
        real(self.shown.iter().map(|s| s.outcome.elapsed.as_ns()).max().unwrap_or(1).max(1))
    }

    /// Returns the calls of a job: reads, writes and trims, as the table counts them.
    pub(crate) fn calls(outcome: &Outcome, job: usize) -> OpStats {
        let mut all = OpStats::default();
        for c in outcome.clients.iter().filter(|c| c.job == job) {
            [&c.read, &c.write, &c.trim].iter().for_each(|s| all.add(s));
        }
        all
    }

    /// Returns the stem of a job's file names, which is unique.
    pub(crate) fn job_stem(&self, job: usize) -> String {
        let stem = |j: usize| file_stem(&[&self.jobs.jobs[j].name]);
        let mine = stem(job);
        let is_taken = (0..job).any(|j| stem(j) == mine);
        match (mine.is_empty(), is_taken) {
            (true, _) => (job + 1).to_string(),
            (false, true) => format!("{mine}-{}", job + 1),
            (false, false) => mine,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_most_eight_runs_have_colours_and_eras_have_none_before_schedulers() {
        let all: Vec<&str> = PRESETS.iter().map(|p| shown(p.name)).collect();
        let looks = looks(&all);
        let coloured: Vec<&str> = all.iter().zip(&looks).filter(|l| *l.1 < LOOKS).map(|l| *l.0).collect();
        assert_eq!(coloured.len(), LOOKS);
        for name in ["none", "deadline", "as", "cfq", "bfq", "mq-deadline", "kyber"] {
            assert!(coloured.contains(&name), "{name} of {coloured:?}");
        }
        assert_eq!(super::looks(&["bfq-v0", "bfq", "a", "b"]), [0, 1, 2, 3]);
        assert!(is_variant("noop+groups") && is_variant("cfq-ts1") && !is_variant("mq-deadline"));
    }
}
