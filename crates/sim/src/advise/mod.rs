//! Which scheduler and which tunables for this job on this disk, and why: candidates, a race over seeds, a verdict.
//!
//! ```text
//!   job, disk ─► candidates ─► race: rounds of 3, 3, 6, 12 … seeds ─► confirmation on seeds that nobody saw ─► verdict
//!                  (a table,     after each, who cannot win any more    winner, best of the kernel's,            ├ why
//!                   with reasons) is let go                             default                                  └ to do
//! ```
//!
//! **Figures.** A run has up to three, [`Figures`]: how long those wait who wait (start-up, or the tail of the latency), what
//! the disk moves, and how fairly those share who want the same. Each is compared with the *default*, what a kernel would use on
//! that disk if nobody chose, as a ratio; above 1 is better, whichever figure it is.
//!
//! **Score.** A [`Goal`] gives each figure a weight, and the score is the weighted geometric mean of the ratios. With
//! `balanced` (a third each), a scheduler that halves the latency, costs a tenth of the throughput and shares as before scores
//! (2 · 0.9 · 1)^⅓ = 1.216. Whoever disagrees with the weights has the Pareto front: those that no other candidate beats in
//! everything.
//!
//! **Statistics.** All candidates run the same seeds (common random numbers): the same files in the same places, the same
//! offsets. So a seed gives a *pair* of runs, and the ratio within a pair varies much less than either run. The logarithms of
//! the ratios have a mean and, by Student's t, an interval of 95 %; both are told as ratios again. Example: latencies of 80, 100
//! and 125 ms against 160, 210 and 240 ms are ratios of 2.0, 2.1 and 1.92; their logarithms 0.693, 0.742, 0.652 have the mean
//! 0.696 and the deviation 0.045, so 2.01 times as quick, with t(0.975, 2) = 4.303 between 1.80 and 2.24. Cohen's d is not
//! told: it divides by the deviation over seeds, which a simulation makes as small as one likes.
//!
//! *No difference* is said where the interval lies within [`EQUAL`] of 1, whatever its significance: the models are not better
//! than that. Where it is wider and holds 1, nothing was found, and that is said instead.
//!
//! **The race** ([`race`]) ends the runs of those early that cannot win. After each round a candidate is let go if its score is
//! below the leader's by the paired interval of 99 %, or, while there are more than four, if it is not in the better half (but those
//! that are equal to the leader stay). Of equal ones the plainer leads. Picking the best of many noisy figures flatters the
//! winner, so its figures are not those of the race: winner and default run again on as many fresh seeds, and those are told.
//!
//! **The budget** is in seconds on the command line and in the simulator's events here ([`EVENTS_PER_S`] for each): how many
//! rounds fit is decided by events alone, which are a function of job, disk and seed. A faster machine is done earlier, a slower one
//! later, and both say the same. The number of rounds is told, and asking for that many gives the same bytes.
//!
//! What it does not do: vary the load, the disk or the host (a seed changes where files lie and what chance draws, no more, so
//! the interval is one over seeds and says nothing of how well the models fit your disk); search tunables beyond the table;
//! correct the final intervals for there being several figures; follow weights that change during a run.
//
//= Student, "The probable error of a mean", Biometrika 6, 1908
//= O. Maron, A. Moore, "Hoeffding races", 1993; M. Birattari et al., "A racing algorithm for configuring metaheuristics", 2002
//= Z. Karnin, T. Koren, O. Somekh, "Almost optimal exploration in multi-armed bandits", 2013 (sequential halving)
//= A. Law, "Simulation modeling and analysis", chapters 10 and 11 (paired comparison, common random numbers)

mod apply;
mod candidates;
mod explain;
mod figures;
pub mod race;
pub mod statistics;
mod verdict;

pub use apply::{Step, steps};
pub use candidates::{Candidate, Place, kernels_default};
pub use explain::{Told, explain};
pub use figures::{Figures, Wait, Waiting, figures, waiting};
pub(crate) use figures::{fairness, tail_of};
pub use race::{Comparison, EQUAL, End, LetGo, Race};
pub use verdict::factor;

use crate::engine::Scenario;
use crate::host::Host;
use crate::job::JobFile;
use crate::metrics::{Outcome, Result};
use crate::{parallel, simulate};
use fairhead_core::Duration;
use fairhead_device::{Device, DeviceParams, Facts};
use race::{FIRST_SEEDS, Rules, Run, confirming};
use std::sync::atomic::{AtomicU64, Ordering};

/// What a second of the budget stands for, on two cores. The slowest of the built-in jobs runs at 1.5 million events per second
/// and core, most at 2 to 10; so a budget of 60 s is seldom used up in 60 s, and more seldom exceeded.
pub const EVENTS_PER_S: u64 = 2_000_000;

/// What a run cost.
#[must_use]
pub fn work(o: &Outcome) -> Duration {
    Duration::from_ns(o.events)
}

/// Candidates that are tried even if the budget is too small for them: the schedulers before their tunables.
const CANDIDATES_MIN: usize = 4;

/// What one wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Goal {
    /// Who waits is to wait as little as possible.
    Latency,
    /// The disk is to move as much as possible.
    Throughput,
    /// Who wants the same is to get the same, or by weight.
    Fairness,
    /// All three alike.
    #[default]
    Balanced,
}

impl Goal {
    /// The weights of latency, throughput and fairness. What one wants counts three quarters; an eighth for each of the others keeps out
    /// who gains a percent by giving up everything else.
    #[must_use]
    pub const fn weights(self) -> [f64; Figures::COUNT] {
        const REST: f64 = 0.125;
        match self {
            Self::Latency => [0.75, REST, REST],
            Self::Throughput => [REST, 0.75, REST],
            Self::Fairness => [REST, REST, 0.75],
            Self::Balanced => [1.0 / 3.0; Figures::COUNT],
        }
    }
}

/// What is asked.
#[derive(Clone, Debug)]
pub struct Question {
    /// The load.
    pub jobs: JobFile,
    /// The disk.
    pub disk: DeviceParams,
    /// The machine around it.
    pub host: Host,
    /// What one wants.
    pub goal: Goal,
    /// What all chance follows from.
    pub seed: u64,
    /// The most events, [`EVENTS_PER_S`] for each second.
    pub events: u64,
    /// That many rounds at most, whatever they cost. `None`: as many as the budget allows.
    pub rounds: Option<u32>,
    /// The preset that is in use now. `None`: what a kernel uses if nobody chooses.
    pub against: Option<&'static str>,
    /// The job that waits. `None`: by the rules of [`Waiting`].
    pub foreground: Option<String>,
}

/// How far it has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stage {
    /// Which round; one more than there were for the confirmation.
    pub round: u32,
    /// Runs of this round, and how many of them are done.
    pub runs: usize,
    /// See there.
    pub done: usize,
    /// Events so far, of all rounds.
    pub events: u64,
}

/// The answer.
#[derive(Clone, Debug)]
pub struct Advice {
    /// What was tried; the default first.
    pub candidates: Vec<Candidate>,
    /// What the budget did not allow to be tried, by name.
    pub not_tried: Vec<String>,
    /// How they did.
    pub race: Race,
    /// Who waits.
    pub waiting: Waiting,
    /// What the disk is to a driver.
    pub facts: Facts,
    /// The seed that the explanation was made with.
    pub told_seed: u64,
    /// Where the time of those who wait went, under the default and under the winner (or the leader, if it is the default that
    /// wins), and what that says; nothing where it cannot be told.
    pub told: Option<Told>,
}

impl Question {
    /// A candidate's run with a seed.
    #[must_use]
    pub fn scenario(&self, candidate: &Candidate, seed: u64) -> Scenario {
        Scenario {
            jobs: self.jobs.clone(),
            disk: self.disk.clone(),
            host: self.host.clone(),
            scheduler: candidate.preset.to_owned(),
            config: candidate.config,
            seed,
            interval: None,
            time_max: Some(TIME_MAX),
            watch: None,
        }
    }
}

/// Longer than any load that is told of one disk; who never ends is cut off there.
const TIME_MAX: Duration = Duration::from_secs(3600);

/// Answers, on so many threads, which changes nothing; `stage` hears how far it is.
///
/// # Errors
/// If the load does not fit the disk.
pub fn advise(question: &Question, threads: usize, stage: &(dyn Fn(Stage) + Sync)) -> Result<Advice> {
    let facts = Device::new(&question.disk)?.facts();
    let default = question.against.unwrap_or_else(|| kernels_default(&facts));
    let mut candidates = candidates::choose(&question.jobs, &facts, default);
    let waiting = figures::waiting(&question.jobs, question.foreground.as_deref(), question.goal);
    let first = simulate(&question.scenario(&candidates[0], question.seed))?;
    let affordable = affordable(question.events, first.events).min(candidates.len());
    let not_tried = candidates.split_off(affordable).iter().map(Candidate::name).collect();
    let race = run_race(question, &candidates, &waiting, threads, stage)?;
    let told_seed = race::seeds(question.seed, "advise.confirm", 1)[0];
    let told = tell(question, &candidates, &race, &waiting, told_seed)?;
    Ok(Advice { candidates, not_tried, race, waiting, facts, told_seed, told })
}

/// How many candidates a budget is enough for, in a first round and a confirmation of three, if all cost what the default does.
fn affordable(events: u64, per_run: u64) -> usize {
    let runs = (events / per_run.max(1)).saturating_sub(3 * u64::from(confirming(1)));
    usize::try_from(runs / u64::from(FIRST_SEEDS)).unwrap_or(usize::MAX).max(CANDIDATES_MIN)
}

fn run_race(
    question: &Question,
    candidates: &[Candidate],
    waiting: &Waiting,
    threads: usize,
    stage: &(dyn Fn(Stage) + Sync),
) -> Result<Race> {
    let in_kernel: Vec<bool> = candidates.iter().map(|c| c.place == Place::Kernel).collect();
    let rules = Rules {
        weights: question.goal.weights(),
        events: question.events,
        rounds: question.rounds,
        seed: question.seed,
    };
    let spent = AtomicU64::new(0);
    race::race(&in_kernel, &rules, &mut |round, work| {
        let done =
            |done| stage(Stage { round, runs: work.len(), done, events: spent.load(Ordering::Relaxed) });
        let runs = parallel::map(work.len(), threads, &done, |i| {
            let (candidate, seed) = work[i];
            let outcome = simulate(&question.scenario(&candidates[candidate], seed))?;
            spent.fetch_add(outcome.events, Ordering::Relaxed);
            Ok(judged(question, waiting, &outcome))
        });
        runs.into_iter().collect()
    })
}

fn judged(question: &Question, waiting: &Waiting, o: &Outcome) -> Run {
    Run { figures: figures::figures(&question.jobs, waiting, o), events: o.events }
}

/// Where the time went under the default, and under whom it is compared with.
fn tell(
    question: &Question,
    candidates: &[Candidate],
    race: &Race,
    waiting: &Waiting,
    seed: u64,
) -> Result<Option<Told>> {
    let other = match race.winner() {
        0 => race.leader,
        winner => winner,
    };
    // A set whose members have a queue each cannot be told of; its load runs all the same.
    if other == 0 || waiting.jobs.is_empty() || question.disk.members().is_some() {
        return Ok(None);
    }
    let clients = waiting.clients(&question.jobs);
    let told = |c: usize| crate::why::explain(&question.scenario(&candidates[c], seed), &clients);
    let (before, after) = (told(0)?.1, told(other)?.1);
    let names = [0, other].map(|c| candidates[c].name());
    Ok(Some(explain(&names, other, waiting.what, before, after)))
}

#[cfg(test)]
mod tests;
