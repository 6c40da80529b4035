//! Runs side by side. Schedulers whose runs are identical are shown as one run with several names: there is
//! no clearer *no difference*.

use crate::recording::Recording;
use crate::svg::{Key, file_stem};
use crate::words::real;
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
            shown.push(Shown { names: vec![run.name], stem, outcome: run.outcome, recording: run.recording });
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
        let key = |(i, s): (usize, &Shown<'_>)| Key { look: i, sign: Self::sign(i), name: s.name() };
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
