//! The table *who pays*: what each job gets under the default and under the candidate that is compared with
//! it.
//!
//! A factor says that a job gains. The gain may come from another job, which a total or a geometric mean
//! hides. So both runs with the seed of the explanation are put side by side, job by job. Rates are those of
//! the time in which all jobs ran, if there is such a time: afterwards a job has the disk to itself, which
//! says nothing about sharing.
//!
//! What it does not do: average over seeds. It shows one pair of runs.

use crate::job::{Job, JobFile};
use crate::metrics::{ClientStats, OpStats, Outcome, rate};
use crate::rates::{self, Rate};
use fairhead_core::Duration;

/// What a job got in a run.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Got {
    /// Bytes per second of all its clients, in all directions.
    pub bytes_per_s: u64,
    /// The 99th percentile of the latency of its calls, those that sync included.
    pub p99: Option<Duration>,
    /// The time until its last client ended.
    pub took: Duration,
    /// The rates that the job asks for, over all of its time; empty if it asks for none.
    pub rates: Vec<Rate>,
}

impl Got {
    /// The rate that was missed by most, if any was.
    #[must_use]
    pub fn missed(&self) -> Option<&Rate> {
        self.rates.iter().filter(|r| r.is_missed).min_by(|a, b| a.kept().total_cmp(&b.kept()))
    }
}

/// A job under two schedulers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payer {
    /// The job's name.
    pub name: String,
    /// The number of its clients.
    pub clients: usize,
    /// Under the default.
    pub before: Got,
    /// Under the other candidate.
    pub after: Got,
}

impl Payer {
    /// Whether the job gets less than a tenth of what it got.
    #[must_use]
    pub fn starves(&self) -> bool {
        self.after.bytes_per_s.saturating_mul(10) < self.before.bytes_per_s
    }

    /// Whether the job gets less than nine tenths of what it got.
    #[must_use]
    pub fn pays(&self) -> bool {
        self.after.bytes_per_s.saturating_mul(10) < self.before.bytes_per_s.saturating_mul(9)
    }
}

/// All jobs under two schedulers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payers {
    /// The candidate that is compared with the default.
    pub candidate: usize,
    /// The jobs, in the order of the job file.
    pub jobs: Vec<Payer>,
}

impl Payers {
    /// Puts two runs side by side.
    pub(super) fn new(jobs: &JobFile, candidate: usize, before: &Outcome, after: &Outcome) -> Self {
        let row = |(job, j): (usize, &Job)| {
            let of = |o: &Outcome| -> Vec<ClientStats> {
                o.clients.iter().filter(|c| c.job == job).cloned().collect()
            };
            let (b, a) = (of(before), of(after));
            Payer { name: j.name.clone(), clients: b.len(), before: got(j, &b), after: got(j, &a) }
        };
        Self { candidate, jobs: jobs.jobs.iter().enumerate().map(row).collect() }
    }

    /// Bytes per second of all jobs, under the default and under the other candidate.
    #[must_use]
    pub fn totals(&self) -> (u64, u64) {
        let sum = |of: fn(&Payer) -> u64| self.jobs.iter().map(of).sum();
        (sum(|p| p.before.bytes_per_s), sum(|p| p.after.bytes_per_s))
    }
}

fn got(job: &Job, clients: &[ClientStats]) -> Got {
    let mut calls = OpStats::default();
    clients.iter().flat_map(|c| [&c.read, &c.write, &c.trim, &c.sync]).for_each(|o| calls.add(o));
    Got {
        bytes_per_s: clients.iter().map(speed).sum(),
        p99: calls.percentile(99.0),
        took: clients.iter().map(|c| c.started + c.elapsed).max().unwrap_or_default(),
        rates: rates::of(job, clients.iter()),
    }
}

/// Returns the bytes per second of a client, in the time in which all jobs ran if there was such a time, and
/// otherwise over its own.
#[must_use]
pub fn speed(c: &ClientStats) -> u64 {
    match c.together {
        Some(t) => rate(t.bytes, t.span),
        None => rate(c.read.bytes + c.write.bytes + c.trim.bytes, c.elapsed),
    }
}
