//! What each job of a load gets when it has the disk to itself.
//!
//! One clone of the job runs under no scheduler and under `mq-deadline`, and the better of the two counts.
//! The files of all jobs are laid out as in the load, and the others do not begin. Jobs that differ by
//! nothing but their names are run once. A job that reads through the page cache makes one pass over its
//! files: what it reads again would come from memory, alone more than in company.

use super::got::of_clients;
use super::{Got, Load};
use crate::engine::Scenario;
use crate::job::{Direction, Job, JobFile, Program};
use crate::metrics::{Outcome, Result};
use crate::parallel;
use crate::simulate;
use fairhead_core::Duration;
use fairhead_core::sched::any::preset;

/// The schedulers of which the better counts.
const SCHEDULERS: [&str; 2] = ["noop", "mq-deadline"];

/// What one clone of each job gets alone.
#[derive(Clone, Debug, PartialEq)]
pub struct Alone {
    jobs: Vec<Got>,
}

/// A run of one job alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Solo {
    job: usize,
    scheduler: &'static str,
}

impl Solo {
    /// The runs that a load needs: of each job that differs from those before it, under each scheduler.
    #[must_use]
    pub fn all(load: &Load) -> Vec<Self> {
        let jobs = (0..load.jobs.jobs.len()).filter(|&job| first_like(&load.jobs, job) == job);
        jobs.flat_map(|job| SCHEDULERS.map(|scheduler| Self { job, scheduler })).collect()
    }

    /// The name of the run among those of its load.
    #[must_use]
    pub fn name(&self) -> String {
        format!("job {} alone under {}", self.job, self.scheduler)
    }

    /// Runs the job: `base` says the disk, the host and the seed. Returns what it got, and the run.
    ///
    /// # Errors
    /// If the load does not fit the disk.
    pub fn run(&self, load: &Load, base: &Scenario) -> Result<(Got, Outcome)> {
        let outcome = simulate(&scenario(load, base, self.job, self.scheduler))?;
        let number = if is_task(&load.jobs.jobs[self.job]) { 0 } else { self.job };
        let clients: Vec<_> = outcome.clients.iter().filter(|c| c.job == number).collect();
        Ok((of_clients(load, self.job, &outcome, &clients), outcome))
    }
}

impl Alone {
    /// What the jobs of a load got in the runs of [`Solo::all`].
    ///
    /// # Panics
    /// If there are fewer results than runs.
    #[must_use]
    pub fn of(load: &Load, results: &[Got]) -> Self {
        let runs = Solo::all(load);
        let best = |job: usize| {
            let first = first_like(&load.jobs, job);
            let of = runs.iter().zip(results).filter(|(solo, _)| solo.job == first).map(|(_, got)| got);
            of.max_by(|a, b| figure(a).total_cmp(&figure(b))).cloned().expect("two schedulers")
        };
        Self { jobs: (0..load.jobs.jobs.len()).map(best).collect() }
    }

    /// Runs each job of a load alone: `base` says the disk, the host and the seed.
    ///
    /// # Errors
    /// If the load does not fit the disk.
    pub fn measure(load: &Load, base: &Scenario, threads: usize) -> Result<Self> {
        let runs = Solo::all(load);
        let results =
            parallel::map(runs.len(), threads, &|_| {}, |i| runs[i].run(load, base).map(|(got, _)| got));
        Ok(Self::of(load, &results.into_iter().collect::<Result<Vec<_>>>()?))
    }

    /// What one clone of a job gets.
    #[must_use]
    pub fn got(&self, job: usize) -> &Got {
        &self.jobs[job]
    }

    /// The figure of one clone.
    #[must_use]
    pub fn figure(&self, job: usize) -> f64 {
        figure(&self.jobs[job])
    }
}

fn figure(got: &Got) -> f64 {
    got.figures.first().copied().unwrap_or(0.0)
}

/// The first job of the file that differs from this one by its name alone.
fn first_like(jobs: &JobFile, job: usize) -> usize {
    let plain = |job: &Job| Job { name: String::new(), line: 0, ..job.clone() };
    let this = plain(&jobs.jobs[job]);
    (0..job).find(|&other| plain(&jobs.jobs[other]) == this).unwrap_or(job)
}

/// Whether it replays a task of a trace, on the disk itself, at times that are recorded.
fn is_task(job: &Job) -> bool {
    job.program == Some(Program::Trace)
}

/// A run in which one clone of one job begins. Of a trace only that task is there.
fn scenario(load: &Load, base: &Scenario, job: usize, scheduler: &str) -> Scenario {
    let mut jobs = load.jobs.clone();
    for (i, other) in jobs.jobs.iter_mut().enumerate() {
        (other.wave, other.wait_for, other.wave_delay) = (0, None, Duration::ZERO);
        other.startdelay = if i == job { Duration::ZERO } else { load.span + Duration::from_secs(1) };
    }
    jobs.jobs[job].numjobs = 1;
    let reads = matches!(jobs.jobs[job].rw.direction, Direction::Read | Direction::Mixed);
    jobs.jobs[job].time_based &= jobs.jobs[job].direct || !reads;
    if is_task(&jobs.jobs[job]) {
        jobs.jobs = vec![jobs.jobs.swap_remove(job)];
    }
    let config = preset(scheduler).map(|p| (p.config)()).expect("a built-in scheduler");
    Scenario { jobs, scheduler: scheduler.to_owned(), config, time_max: Some(load.span), ..base.clone() }
}
