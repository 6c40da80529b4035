//! A load over one span: its jobs, what each counts, and the share of the disk that each may expect.

use super::kind::{is_idle_class, kind};
use super::{Alone, Got, LEAST, geometric};
use crate::job::{Cgroup, Job, JobFile, Kind, Setting};
use fairhead_core::{Duration, Weight};

/// The weight of a job of the idle class, which takes what is left over.
const IDLE_CLASS: f64 = 0.1;
/// By what factor jobs count more that the user names.
//= docs/reference/choices.md#advise-emphasis
const EMPHASIS: f64 = 4.0;
/// The least share that a bulk job may expect: beside a hundred others it still wants a twentieth.
const LEAST_SHARE: f64 = 0.05;
/// The level of priority in the middle, whose tasks have the default weight of a group.
const MIDDLE_LEVEL: f64 = 4.0;

/// Which jobs count more.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Emphasis {
    /// Each counts as its class and its group say.
    #[default]
    Even,
    /// Those of a kind count four times.
    Kind(Kind),
    /// Those of a name count four times, and may not fare worse than now.
    Job(String),
}

impl Emphasis {
    /// By what factor a job counts more.
    fn of(&self, jobs: &JobFile, job: &Job) -> f64 {
        let is_meant = match self {
            Self::Even => false,
            Self::Kind(of) => kind(jobs, job) == *of,
            Self::Job(name) => job.name == *name,
        };
        if is_meant { EMPHASIS } else { 1.0 }
    }
}

/// A job of a load, as its satisfaction sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Party {
    /// What of it its user feels.
    pub kind: Kind,
    /// How much it counts among the jobs.
    pub weight: f64,
    /// The part of what it gets alone that each of its clones may expect beside the others; 1 of jobs that
    /// are not bulk.
    pub share: f64,
    /// Whether it may wait until others have no work.
    pub is_idle_class: bool,
}

/// A load that is judged over a span.
#[derive(Clone, Debug)]
pub struct Load {
    /// The jobs; none of them ends the others.
    pub jobs: JobFile,
    /// The virtual time after which a run is cut off.
    pub span: Duration,
    /// What each job counts, in the order of the file.
    pub parties: Vec<Party>,
}

impl Load {
    /// A load over a span.
    #[must_use]
    pub fn new(jobs: &JobFile, span: Duration, emphasis: &Emphasis) -> Self {
        let shares = Shares::of(jobs);
        let party = |job: &Job| {
            let is_idle_class = is_idle_class(job);
            let class = if is_idle_class { IDLE_CLASS } else { 1.0 };
            Party {
                kind: kind(jobs, job),
                weight: class * group_weight(jobs, job) * emphasis.of(jobs, job),
                share: shares.of_job(jobs, job),
                is_idle_class,
            }
        };
        let parties = jobs.jobs.iter().map(party).collect();
        let mut jobs = jobs.clone();
        jobs.jobs.iter_mut().for_each(|job| job.exitall = false);
        Self { jobs, span, parties }
    }

    /// The span over which a load is judged if its options say it: to the last `runtime`, start delays and
    /// ramps included. `None` if they do not, if a job ends the others, or if there are stone walls.
    #[must_use]
    pub fn span_of(jobs: &JobFile) -> Option<Duration> {
        let end = |job: &Job| Some(job.startdelay + job.wave_delay + job.ramp_time + job.runtime?);
        let last = jobs.jobs.iter().filter_map(end).max();
        last.filter(|_| jobs.wave_count() == 1 && jobs.jobs.iter().all(|job| !job.exitall))
    }

    /// How satisfied a job is: from [`LEAST`] to 1, and above 1 for a bulk job that gets more than its share.
    #[must_use]
    pub fn of_job(&self, job: usize, got: &Got, alone: &Alone) -> f64 {
        let wanted = alone.figure(job) * self.parties[job].share;
        //= deviates no-saturation
        let most = if self.parties[job].kind == Kind::Bulk { f64::INFINITY } else { 1.0 };
        let of = |&figure: &f64| if wanted > 0.0 { (figure / wanted).clamp(LEAST, most) } else { 1.0 };
        geometric(got.figures.iter().map(of))
    }
}

/// The logarithm of how satisfied a load is: of the weighted geometric mean of what its jobs are.
#[must_use]
pub fn log_of_all(parties: &[Party], of_jobs: impl IntoIterator<Item = f64>) -> f64 {
    let (mut sum, mut all) = (0.0, 0.0);
    for (party, u) in parties.iter().zip(of_jobs) {
        (sum, all) = (sum + party.weight * libm::log(u.max(LEAST)), all + party.weight);
    }
    if all > 0.0 { sum / all } else { 0.0 }
}

/// The weight of a job's group, and of those around it, by the default weight.
fn group_weight(jobs: &JobFile, job: &Job) -> f64 {
    let default = f64::from(Weight::default().0.get());
    path(jobs, jobs.cgroup_of(job)).map(|g| weight(&jobs.cgroups[g]) / default).product()
}

/// A group and those around it, without the root.
fn path(jobs: &JobFile, group: usize) -> impl Iterator<Item = usize> {
    let around = |&g: &usize| Some(jobs.cgroups[g].parent).filter(|g| *g != 0);
    std::iter::successors(Some(group).filter(|g| *g != 0), around)
}

/// The weight that a group has at the start.
fn weight(group: &Cgroup) -> f64 {
    let given = |s: &Setting| if let Setting::Weight(w) = s { Some(*w) } else { None };
    f64::from(group.settings.iter().rev().find_map(given).unwrap_or_default().0.get())
}

/// The weight of a task beside groups and other tasks: by its level, the middle one that of a group.
fn task_weight(job: &Job) -> f64 {
    let level = job.prio.map_or(MIDDLE_LEVEL, |p| f64::from(p.level));
    f64::from(Weight::default().0.get()) * (8.0 - level) / MIDDLE_LEVEL
}

/// The weights of all bulk jobs that compete, summed up for each wave and group.
struct Shares {
    sums: Vec<Vec<f64>>,
}

impl Shares {
    fn of(jobs: &JobFile) -> Self {
        let groups = jobs.cgroups.len().max(1);
        let waves = jobs.wave_count() as usize;
        let mut sums = vec![vec![0.0; groups]; waves];
        let mut is_active = vec![vec![false; groups]; waves];
        for job in jobs.jobs.iter().filter(|job| competes(jobs, job)) {
            let (wave, mut group) = (job.wave as usize, jobs.cgroup_of(job));
            sums[wave][group] += task_weight(job) * f64::from(job.numjobs);
            while group != 0 && !is_active[wave][group] {
                is_active[wave][group] = true;
                let parent = jobs.cgroups[group].parent;
                sums[wave][parent] += weight(&jobs.cgroups[group]);
                group = parent;
            }
        }
        Self { sums }
    }

    /// The part of the disk that each clone of a job may expect.
    fn of_job(&self, jobs: &JobFile, job: &Job) -> f64 {
        if !competes(jobs, job) {
            return 1.0;
        }
        let (sums, group) = (&self.sums[job.wave as usize], jobs.cgroup_of(job));
        let own = task_weight(job) / sums[group];
        let of_groups = path(jobs, group).map(|g| weight(&jobs.cgroups[g]) / sums[jobs.cgroups[g].parent]);
        (own * of_groups.product::<f64>()).max(LEAST_SHARE)
    }
}

/// Whether it takes all that it can get.
fn competes(jobs: &JobFile, job: &Job) -> bool {
    kind(jobs, job) == Kind::Bulk && !is_idle_class(job)
}
