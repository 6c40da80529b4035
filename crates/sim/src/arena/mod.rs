//! Loads × disks × schedulers: how satisfied each load is, and how far each scheduler is from the best.
//!
//! ```text
//!   loads × disks = cells ─► what each job gets alone
//!                        └─► schedulers × seeds ─► satisfaction, regret ─► mean, 90th percentile, worst
//! ```
//!
//! A *cell* is a load on a disk. In it all schedulers run the same seeds over one span, and the satisfaction
//! of a scheduler is the geometric mean over the seeds ([`crate::satisfaction`]). Its *regret* is the best
//! satisfaction of any scheduler in the cell over its own: 1.00 is the best, and 2.00 means that all jobs get
//! half of what they could get. Example: a load is satisfied to 0.8 under A and to 0.4 under B: regrets 1.00
//! and 2.00.
//!
//! **The span** is what the options of the load say, to the last `runtime`, or [`SPAN`] where they say none.
//! On an NVMe drive all of the load's times (run times, delays, changes) are a quarter of that: it serves as
//! many requests in a second as a disk in minutes.
//!
//! **Cells are independent** and known beforehand, so any thread or machine may run any of them ([`Part`]),
//! and finished cells can be kept ([`Keep`]). The disk changes slowest, so no part has all cells of one disk.
//!
//! What it does not do: count regret against what is possible. The best of the schedulers in the arena may be
//! far from that, and one more scheduler can raise the regret of all others.

mod summary;

pub use summary::Summary;

use crate::advise::{Book, Run, judged};
use crate::engine::Scenario;
use crate::error::SimError;
use crate::job::JobFile;
use crate::metrics::Result;
use crate::parallel;
use crate::resumable::{self, Keep, Line};
use crate::satisfaction::{Alone, Emphasis, Load};
use crate::simulate;
use crate::sweep::{Part, Setting, Tuned};
use fairhead_core::Duration;
use fairhead_device::{Device, Driver};
use std::fmt;

/// The span of a load whose options say none.
pub const SPAN: Duration = Duration::from_secs(24);
/// On an NVMe drive the times of a load are divided by this.
const NVME_PART: u64 = 4;

/// Loads, disks and schedulers.
#[derive(Clone, Debug)]
pub struct Arena {
    /// The loads.
    pub loads: Vec<JobFile>,
    /// The disks, each with its machine.
    pub settings: Vec<Setting>,
    /// The schedulers with their tunables.
    pub tuned: Vec<Tuned>,
    /// The first seed. The others are the numbers after it.
    pub seed: u64,
    /// The number of seeds.
    pub seeds: u32,
}

/// A load on a disk: indices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The index of the load in [`Arena::loads`].
    pub load: usize,
    /// The index of the disk in [`Arena::settings`].
    pub setting: usize,
}

/// A cell in which all schedulers have run.
#[derive(Clone, Debug)]
pub struct Cell {
    /// The load over its span.
    pub load: Load,
    /// What one clone of each job gets alone.
    pub alone: Run,
    /// The runs of each scheduler, in the order of [`Arena::tuned`].
    pub book: Book,
}

impl Cell {
    /// How satisfied the load is under each scheduler.
    #[must_use]
    pub fn satisfactions(&self) -> Vec<f64> {
        (0..self.book.standings.len()).map(|t| self.book.satisfaction(t)).collect()
    }

    /// The best satisfaction in the cell over that of each scheduler.
    #[must_use]
    pub fn regrets(&self) -> Vec<f64> {
        let of = self.satisfactions();
        let best = of.iter().copied().fold(0.0, f64::max);
        of.iter().map(|own| best / own).collect()
    }
}

/// A cell that cannot be run.
#[derive(Debug)]
pub struct Failed {
    /// The name of the load.
    pub load: String,
    /// The name of the disk.
    pub disk: String,
    /// What is wrong.
    pub error: SimError,
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {}: {}", self.load, self.disk, self.error)
    }
}

impl std::error::Error for Failed {}

impl Arena {
    /// Returns the number of cells.
    #[must_use]
    pub fn count(&self) -> usize {
        self.loads.len() * self.settings.len()
    }

    /// Returns cell number `i`. The load changes fastest.
    #[must_use]
    pub fn place(&self, i: usize) -> Place {
        let loads = self.loads.len().max(1);
        Place { load: i % loads, setting: i / loads }
    }

    /// Runs the cells of a part on `threads` threads; their number does not change the cells. A cell is
    /// `None` if it is in another part, or was not begun because [`Keep::is_over`]. `done` is called with the
    /// number of finished cells.
    ///
    /// # Errors
    /// The first cell that cannot be run, such as a load that does not fit a disk.
    pub fn run(
        &self,
        part: Part,
        threads: usize,
        keep: &dyn Keep,
        done: &(dyn Fn(usize) + Sync),
    ) -> std::result::Result<Vec<Option<Cell>>, Failed> {
        let cells: Vec<usize> = (0..self.count()).filter(|&i| part.has(i)).collect();
        let loads = (0..self.count()).map(|i| self.checked(i, self.load(i)));
        let loads = loads.collect::<std::result::Result<Vec<_>, _>>()?;
        // Few cells share the threads: each runs its schedulers on several.
        let each = (threads / cells.len().max(1)).max(1);
        let name = |n: usize| cells[n].to_string();
        let mut ran = resumable::map(cells.len(), threads, keep, done, name, |n| {
            self.runs(&loads[cells[n]], cells[n], each)
        })
        .into_iter();
        let cell = |(i, load): (usize, Load)| {
            let Some(runs) = part.has(i).then(|| ran.next().flatten()).flatten() else { return Ok(None) };
            let mut runs = self.checked(i, runs)?;
            if !self.is_whole(&runs, &load) {
                runs = self.checked(i, self.runs(&load, i, threads))?;
            }
            Ok(Some(self.cell(load, runs)))
        };
        loads.into_iter().enumerate().map(cell).collect()
    }

    /// An error with its cell.
    fn checked<T>(&self, i: usize, result: Result<T>) -> std::result::Result<T, Failed> {
        let place = self.place(i);
        result.map_err(|error| Failed {
            load: self.loads[place.load].file_name.clone(),
            disk: self.settings[place.setting].name.clone(),
            error,
        })
    }

    /// The load of a cell, over its span.
    ///
    /// # Errors
    /// If its jobs do not run beside each other, or the disk is impossible.
    pub fn load(&self, i: usize) -> Result<Load> {
        let place = self.place(i);
        let (jobs, setting) = (&self.loads[place.load], &self.settings[place.setting]);
        if let Some(late) = jobs.jobs.iter().find(|job| job.wave > 0 || job.wait_for.is_some()) {
            let message =
                "it waits for another job to end; in the arena all run beside each other".to_owned();
            return Err(SimError::Job { job: late.name.clone(), message });
        }
        let mut is_nvme = false;
        for model in jobs.models(&setting.disk) {
            is_nvme |= Device::new(model)?.facts().driver == Driver::Nvme;
        }
        let part = if is_nvme { NVME_PART } else { 1 };
        let span = Load::span_of(jobs).unwrap_or(SPAN) / part;
        Ok(Load::new(&shortened(jobs, part), span, &Emphasis::Even))
    }

    /// A run of a cell: the scheduler, and which of the seeds.
    #[must_use]
    pub fn scenario(&self, load: &Load, setting: usize, tuned: usize, nth: u32) -> Scenario {
        let (setting, tuned) = (&self.settings[setting], &self.tuned[tuned]);
        Scenario {
            jobs: load.jobs.clone(),
            disk: setting.disk.clone(),
            host: setting.host.clone(),
            scheduler: tuned.scheduler.to_owned(),
            config: tuned.config,
            seed: self.seed.wrapping_add(u64::from(nth)),
            interval: None,
            time_max: Some(load.span),
            watch: None,
        }
    }

    /// What one clone of each job gets alone, then the runs of each scheduler, seed by seed.
    fn runs(&self, load: &Load, i: usize, threads: usize) -> Result<Runs> {
        let setting = self.place(i).setting;
        let seeds = self.seeds as usize;
        let base = self.scenario(load, setting, 0, 0);
        let alone = Alone::measure(load, &base, threads)?;
        let runs = parallel::map(self.tuned.len() * seeds, threads, &|_| {}, |n| {
            #[allow(clippy::cast_possible_truncation, reason = "below `seeds`")]
            let outcome = simulate(&self.scenario(load, setting, n / seeds, (n % seeds) as u32))?;
            Ok(judged(load, &alone, &outcome))
        });
        let first = Ok(Run::alone(load, &alone));
        Ok(Runs(std::iter::once(first).chain(runs).collect::<Result<_>>()?))
    }

    /// Whether there are as many runs and jobs as the cell has; a file of results may have been changed.
    fn is_whole(&self, runs: &Runs, load: &Load) -> bool {
        runs.0.len() == 1 + self.tuned.len() * self.seeds as usize
            && runs.0.iter().all(|run| run.jobs.len() == load.parties.len())
    }

    fn cell(&self, load: Load, runs: Runs) -> Cell {
        let mut runs = runs.0.into_iter();
        let alone = runs.next().expect("the cell is whole");
        let mut book = Book::new(&load.parties, None, self.tuned.len());
        for standing in &mut book.standings {
            standing.race = runs.by_ref().take(self.seeds as usize).collect();
        }
        Cell { load, alone, book }
    }
}

/// All runs of a cell, as a line of text: between two of them is ` / `.
struct Runs(Vec<Run>);

const BETWEEN: &str = " / ";

impl Line for Runs {
    fn write(&self) -> String {
        self.0.iter().map(Run::write).collect::<Vec<_>>().join(BETWEEN)
    }

    fn read(text: &str) -> Option<Self> {
        text.split(BETWEEN).map(Run::read).collect::<Option<_>>().map(Self)
    }
}

/// A load in a part of the time.
fn shortened(jobs: &JobFile, part: u64) -> JobFile {
    let mut jobs = jobs.clone();
    for job in &mut jobs.jobs {
        job.runtime = job.runtime.map(|t| t / part);
        for time in [&mut job.startdelay, &mut job.wave_delay, &mut job.ramp_time] {
            *time = *time / part;
        }
    }
    jobs.changes.iter_mut().for_each(|change| change.at = change.at / part);
    jobs
}

#[cfg(test)]
mod tests;
