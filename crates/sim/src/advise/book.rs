//! What the runs of each candidate gave, seed by seed, and how one compares with another.

use super::statistics::{Mean, Ratio};
use crate::job::Kind;
use crate::resumable::Line;
use crate::satisfaction::{Alone, LEAST, Load, Party, log_of_all};
use fairhead_core::Duration;

/// The probability of the reported intervals.
pub const INTERVAL: f64 = 0.95;
/// A factor that is not worth mentioning, either way, nor a change: what a model and the disk that it stands
/// for differ by. Half of the figures that the running kernel gives on a modelled disk are within 3 % of
/// ours, and of the sums over a job's clients nine in ten within 5 %.
//= docs/reference/choices.md#advise-worth
pub const EQUAL: f64 = 1.05;
/// Of candidates whose satisfactions differ by less than this factor, the plainest is chosen, not the best.
/// It is half of [`EQUAL`], so that the chosen one is within that of the best even if the runs have erred by
/// the other half.
//= docs/reference/choices.md#advise-near
pub const NEAR: f64 = 1.025;
/// How sure one has to be to let a candidate go. Twenty candidates with as many chances to be let go wrongly:
/// 99 %.
pub(super) const SURE: f64 = 0.99;
/// A job starves with less than this part of the satisfaction that it has now.
const STARVES: f64 = 0.1;

/// How a job fared in a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fared {
    /// What users read: see [`Got::amount`](crate::satisfaction::Got).
    pub amount: f64,
    /// From 0 to 1.
    pub satisfaction: f64,
    /// Whether it was not done when the span was over: the amount is a bound.
    pub is_cut: bool,
}

/// The result of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// The jobs, in the order of the file.
    pub jobs: Vec<Fared>,
    /// The cost of the run, as [`work`](super::work) reckons.
    pub work: Duration,
}

impl Run {
    /// What one clone of each job gets alone, where each is satisfied.
    #[must_use]
    pub fn alone(load: &Load, alone: &Alone) -> Self {
        let job = |j| {
            let got = alone.got(j);
            Fared { amount: got.amount, satisfaction: 1.0, is_cut: got.is_cut }
        };
        Self { jobs: (0..load.parties.len()).map(job).collect(), work: Duration::ZERO }
    }
}

/// The numbers as the bits of floating-point numbers, then the work.
impl Line for Run {
    fn write(&self) -> String {
        let job = |f: &Fared| {
            let (amount, satisfaction) = (f.amount.to_bits(), f.satisfaction.to_bits());
            format!("{amount:016x} {satisfaction:016x} {} ", u8::from(f.is_cut))
        };
        format!("{}{}", self.jobs.iter().map(job).collect::<String>(), self.work.as_ns())
    }

    fn read(text: &str) -> Option<Self> {
        let words: Vec<&str> = text.split(' ').collect();
        let (work, jobs) = words.split_last()?;
        let number = |bits: &str| u64::from_str_radix(bits, 16).ok().map(f64::from_bits);
        let job = |words: &[&str]| {
            let &[amount, satisfaction, is_cut] = words else { return None };
            let is_cut = is_cut == "1";
            Some(Fared { amount: number(amount)?, satisfaction: number(satisfaction)?, is_cut })
        };
        let jobs = jobs.chunks(3).map(job).collect::<Option<Vec<_>>>()?;
        Some(Self { jobs, work: Duration::from_ns(work.parse().ok()?) })
    }
}

/// A reason for which a candidate is not advised, whatever others gain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Floor {
    /// The job gets less than a tenth of its satisfaction now.
    Starves,
    /// The job misses a rate that it gets now.
    MissesRate,
    /// The job that the user named fares worse than now.
    NamedPays,
    /// The job is not done when the span is over, and is now.
    CutOff,
}

impl Floor {
    /// What is said of the job.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Starves => "gets less than a tenth of what it gets now",
            Self::MissesRate => "misses its rate",
            Self::NamedPays => "fares worse",
            Self::CutOff => "is not done in time",
        }
    }
}

/// One candidate against another.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// How many times as satisfied each job is.
    pub jobs: Vec<Ratio>,
    /// How many times as satisfied the load is.
    pub load: Ratio,
    /// Whether the figures are from fresh seeds, not from those of the race.
    pub is_confirmed: bool,
}

/// The runs of a candidate.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Standing {
    /// In the race, seed by seed.
    pub race: Vec<Run>,
    /// In the confirmation, on fresh seeds; of finalists only.
    pub fresh: Vec<Run>,
}

/// The runs of all candidates.
#[derive(Clone, Debug, PartialEq)]
pub struct Book {
    /// The jobs, as the satisfaction of the load weighs them.
    pub parties: Vec<Party>,
    /// The job that the user named, which may not fare worse than now.
    pub named: Option<usize>,
    /// The runs of each candidate; the first is what is in use now.
    pub standings: Vec<Standing>,
}

impl Book {
    /// A book without runs.
    #[must_use]
    pub fn new(parties: &[Party], named: Option<usize>, candidates: usize) -> Self {
        Self { parties: parties.to_vec(), named, standings: vec![Standing::default(); candidates] }
    }

    /// The logarithm of how satisfied the load is in a run.
    fn log(&self, run: &Run) -> f64 {
        log_of_all(&self.parties, run.jobs.iter().map(|job| job.satisfaction))
    }

    /// The logarithms of how satisfied the load is in these runs.
    pub(super) fn logs(&self, runs: &[Run]) -> Vec<f64> {
        runs.iter().map(|run| self.log(run)).collect()
    }

    /// The runs of two candidates on the same seeds: fresh ones if both have them.
    fn paired(&self, a: usize, b: usize) -> (&[Run], &[Run], bool) {
        let (a, b) = (&self.standings[a], &self.standings[b]);
        let is_confirmed = !a.fresh.is_empty() && !b.fresh.is_empty();
        let (a, b) = if is_confirmed { (&a.fresh, &b.fresh) } else { (&a.race, &b.race) };
        let n = a.len().min(b.len());
        (&a[..n], &b[..n], is_confirmed)
    }

    /// A candidate against another: from the confirmation where both were in it, else from the race.
    #[must_use]
    pub fn against(&self, candidate: usize, other: usize) -> Comparison {
        let (a, b, is_confirmed) = self.paired(candidate, other);
        Comparison { is_confirmed, ..self.compare(a, b) }
    }

    /// Runs against others on the same seeds, in pairs.
    pub(super) fn compare(&self, a: &[Run], b: &[Run]) -> Comparison {
        let pairs = || a.iter().zip(b);
        let log = |run: &Run, job: usize| libm::log(run.jobs[job].satisfaction.max(LEAST));
        let job =
            |j: usize| Ratio::of(&pairs().map(|(a, b)| log(a, j) - log(b, j)).collect::<Vec<_>>(), INTERVAL);
        let load = pairs().map(|(a, b)| self.log(a) - self.log(b)).collect::<Vec<_>>();
        let jobs = (0..self.parties.len()).map(job).collect();
        Comparison { jobs, load: Ratio::of(&load, INTERVAL), is_confirmed: false }
    }

    /// The runs that a candidate's figures come from: the fresh ones if it has any, else those of the race.
    #[must_use]
    pub fn told(&self, candidate: usize) -> &[Run] {
        let s = &self.standings[candidate];
        if s.fresh.is_empty() { &s.race } else { &s.fresh }
    }

    /// How satisfied the load is under a candidate: the geometric mean over its runs.
    #[must_use]
    pub fn satisfaction(&self, candidate: usize) -> f64 {
        libm::exp(Mean::of(&self.logs(self.told(candidate))).mean)
    }

    /// How satisfied the load is under a candidate and under another, on the seeds that both ran.
    #[must_use]
    pub fn satisfactions(&self, candidate: usize, other: usize) -> [f64; 2] {
        let (a, b, _) = self.paired(candidate, other);
        [a, b].map(|runs| libm::exp(Mean::of(&self.logs(runs)).mean))
    }

    /// How a job fares under a candidate: the mean of its amounts, the geometric mean of its satisfactions,
    /// and whether any run cut it off.
    #[must_use]
    pub fn fared(&self, candidate: usize, job: usize) -> Fared {
        fared(self.told(candidate), job)
    }

    /// How a job fares under a candidate and under another, on the seeds that both ran.
    #[must_use]
    pub fn fared_beside(&self, candidate: usize, other: usize, job: usize) -> [Fared; 2] {
        let (a, b, _) = self.paired(candidate, other);
        [a, b].map(|runs| fared(runs, job))
    }

    /// The first job that bars a candidate against another, by the mean of all runs that both have.
    #[must_use]
    pub fn floor(&self, candidate: usize, now: usize) -> Option<(usize, Floor)> {
        self.barring(candidate, now, &Barred { by: |ratio| ratio.ratio, cut: |cut, all| cut * 2 > all })
    }

    /// The first job that bars a candidate whatever more seeds would bring: where seeds differ, three of them
    /// may have a job below a floor that it is above in the mean of many.
    pub(super) fn surely_barred(&self, candidate: usize, now: usize) -> Option<(usize, Floor)> {
        self.barring(candidate, now, &Barred { by: |ratio| ratio.high, cut: |cut, all| cut == all })
    }

    fn barring(&self, candidate: usize, now: usize, barred: &Barred) -> Option<(usize, Floor)> {
        let (c, n) = (&self.standings[candidate], &self.standings[now]);
        let pairs: Vec<(&Run, &Run)> =
            c.race.iter().zip(&n.race).chain(c.fresh.iter().zip(&n.fresh)).collect();
        if pairs.is_empty() || candidate == now {
            return None;
        }
        (0..self.parties.len()).find_map(|job| Some((job, self.floor_of(job, &pairs, barred)?)))
    }

    fn floor_of(&self, job: usize, pairs: &[(&Run, &Run)], barred: &Barred) -> Option<Floor> {
        let log = |run: &Run| libm::log(run.jobs[job].satisfaction.max(LEAST));
        let logs: Vec<f64> = pairs.iter().map(|(c, n)| log(c) - log(n)).collect();
        let ratio = (barred.by)(&Ratio::of(&logs, SURE));
        let now = libm::exp(Mean::of(&pairs.iter().map(|(_, n)| log(n)).collect::<Vec<_>>()).mean);
        let is_cut = |(c, n): &&(&Run, &Run)| c.jobs[job].is_cut && !n.jobs[job].is_cut;
        let party = &self.parties[job];
        // What may wait until others have no work is no reason.
        if party.is_idle_class {
            None
        } else if ratio < STARVES {
            Some(Floor::Starves)
        } else if party.kind == Kind::Paced && now >= 1.0 / EQUAL && ratio < 1.0 / EQUAL {
            Some(Floor::MissesRate)
        } else if self.named == Some(job) && Ratio::of(&logs, INTERVAL).high < 1.0 / NEAR {
            Some(Floor::NamedPays)
        } else if (barred.cut)(pairs.iter().filter(is_cut).count(), pairs.len()) {
            Some(Floor::CutOff)
        } else {
            None
        }
    }
}

/// How much of the runs has to be below a floor.
struct Barred {
    /// The ratio of satisfactions that has to be below it.
    by: fn(&Ratio) -> f64,
    /// Whether that number of cut-off runs, of all runs, is too many.
    cut: fn(usize, usize) -> bool,
}

fn fared(runs: &[Run], job: usize) -> Fared {
    let mean = |of: &dyn Fn(&Fared) -> f64| {
        Mean::of(&runs.iter().map(|run| of(&run.jobs[job])).collect::<Vec<_>>()).mean
    };
    Fared {
        amount: mean(&|f| f.amount),
        satisfaction: libm::exp(mean(&|f| libm::log(f.satisfaction.max(LEAST)))),
        is_cut: runs.iter().any(|run| run.jobs[job].is_cut),
    }
}
