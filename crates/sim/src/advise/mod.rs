//! Which scheduler and which tunables for this job on this disk, and why: candidates, a race over seeds, a
//! verdict.
//!
//! ```text
//!   job, disk ─► candidates ─► race: rounds of 3, 3, 6, 12 … seeds ─► confirmation on seeds that nobody saw ─► verdict
//!                  (a table,     after each, who cannot win any more    winner, best of the kernel's,            ├ why
//!                   with reasons) is let go                             default                                  └ to do
//! ```
//!
//! **Figures.** A run has up to three, [`Figures`]: the wait (of a start-up, or the tail of the latency), the
//! throughput of the disk, and how fairly jobs share that want the same. Each is compared with the *default*,
//! the scheduler that a kernel would use on that disk, as a ratio; above 1 is better, whichever figure it is.
//!
//! **Score.** A [`Goal`] gives each figure a weight, and the score is the weighted geometric mean of the
//! ratios. With `balanced` (a third each), a scheduler that halves the latency, costs a tenth of the
//! throughput and shares as before scores (2 · 0.9 · 1)^⅓ = 1.216. For other weights there is the Pareto
//! front: the candidates that no other beats in everything.
//!
//! **Statistics.** All candidates run the same seeds (common random numbers): the same files in the same
//! places, the same offsets. So a seed gives a *pair* of runs, and the ratio within a pair varies much less
//! than either run. The logarithms of the ratios have a mean and, by Student's t, an interval of 95 %; both
//! are reported as ratios again. Example: latencies of 80, 100 and 125 ms against 160, 210 and 240 ms are
//! ratios of 2.0, 2.1 and 1.92; their logarithms 0.693, 0.742, 0.652 have the mean 0.696 and the deviation
//! 0.045, so 2.01 times as quick, with t(0.975, 2) = 4.303 between 1.80 and 2.24. Cohen's d is not reported:
//! it divides by the deviation over seeds, which a simulation makes as small as one likes.
//!
//! *No difference* is said where the interval lies within [`EQUAL`] of 1, whatever its significance: the
//! models are not better than that. Where it is wider and holds 1, nothing was found, and that is said
//! instead.
//!
//! **The race** ([`race`]) ends the runs of those early that cannot win. After each round a candidate is let
//! go if its score is below the leader's by the paired interval of 99 %, or, while there are more than four,
//! if it is not in the better half (but those that are equal to the leader stay). Picking the best of many
//! noisy figures flatters it, so the reported figures are not those of the race: best, leader and default run
//! again on as many fresh seeds, and beside a candidate with tunables the same without. Of those within 2.5 %
//! of the best the plainest is named.
//!
//! **The budget** is in seconds on the command line and in reckoned work here ([`work`]): how many rounds fit
//! is decided by what the runs did, which is a function of job, disk and seed. A faster machine is done
//! earlier, a slower one later, and both say the same. The output has the number of rounds, and asking for
//! that many gives the same bytes. A job of which the budget does not even allow a first round of the main
//! schedulers is cut short ([`Advice::shortened`]): its `runtime=` is.
//!
//! **Interrupted**, a race tells what had finished ([`SoFar`]), and resumes with the runs that were kept
//! ([`Keep`]); then it gives the same bytes.
//!
//! What it does not do: vary the load, the disk or the host (a seed changes where files lie and what chance
//! draws, no more, so the interval is one over seeds and says nothing of how well the models fit your disk);
//! search tunables beyond the table; correct the final intervals for there being several figures; follow
//! weights that change during a run.
//
//= Student, "The probable error of a mean", Biometrika 6, 1908
//= O. Maron, A. Moore, "Hoeffding races", 1993; M. Birattari et al., "A racing algorithm for configuring metaheuristics", 2002
//= Z. Karnin, T. Koren, O. Somekh, "Almost optimal exploration in multi-armed bandits", 2013 (sequential halving)
//= A. Law, "Simulation modeling and analysis", chapters 10 and 11 (paired comparison, common random numbers)

mod apply;
mod candidates;
pub mod cost;
mod explain;
mod figures;
mod payers;
pub mod race;
mod remedy;
mod so_far;
pub mod statistics;
mod verdict;

pub use apply::{Step, steps, steps_to_stay};
pub use candidates::{Candidate, Place, kernels_default};
pub use cost::{Cost, Limit};
pub use explain::{Told, explain};
pub use figures::{Figures, Wait, Waiting, figures, waiting};
pub(crate) use figures::{fairness, time_waited};
pub use payers::{Got, Payer, Payers, speed};
pub use race::{Comparison, EQUAL, End, LetGo, Race};
pub use remedy::Remedy;
pub use so_far::{Answer, SoFar};
pub use verdict::{factor, means};

use crate::engine::Scenario;
use crate::host::Host;
use crate::idled::IdledForLimit;
use crate::job::JobFile;
use crate::metrics::{Outcome, Result};
use crate::resumable::{self, Keep};
use crate::simulate;
use fairhead_core::Duration;
use fairhead_core::sched::any::preset;
use fairhead_core::sched::catalogue::Named;
use fairhead_device::{Device, DeviceParams, Facts};
use race::{Entrant, FIRST_SEEDS, Rules, Run, confirming};
use so_far::Ran;
use std::sync::atomic::{AtomicU64, Ordering};

/// The work that a second of the budget stands for. Two cores do twice as much; [`work`] is up to twice too
/// low.
pub const WORK_PER_S: Duration = Duration::from_secs(1);

/// Nanoseconds of one core that a run's parts are reckoned to take, on the machine that we measured on
/// (`bench/RESULTS.md`, reckoned work): between half of what they took and two and a half times as much, for
/// all example jobs on four disks under six schedulers.
//= docs/reference/choices.md#advise-work
const EVENT_NS: u64 = 90;
const REQUEST_NS: u64 = 500;
const PAGE_NS: u64 = 40;
const DESTAGE_NS: u64 = 1200;
const CLIENT_NS: u64 = 100_000;

/// Returns the cost of a run, reckoned from what it did and not from a clock, so that it is the same
/// everywhere.
#[must_use]
pub fn work(o: &Outcome) -> Duration {
    let requests = o.disk.issued + o.disk.merged;
    let pages = o.cache.pages_read + o.cache.pages_written;
    Duration::from_ns(
        o.events * EVENT_NS
            + requests * REQUEST_NS
            + pages * PAGE_NS
            + o.disk.counters.destages * DESTAGE_NS
            + o.clients.len() as u64 * CLIENT_NS,
    )
}

/// Candidates that are tried even if the budget is too small for them: the schedulers before their tunables.
const CANDIDATES_MIN: usize = 4;

/// Candidates for whose first round and confirmation a job is cut short, if the budget is not enough.
const CANDIDATES_WANTED: u64 = 12;

/// A job is not cut shorter than that: a time slice is tenths of a second.
const RUNTIME_MIN: Duration = Duration::from_secs(1);

/// What a good scheduler is judged by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Goal {
    /// Short waits.
    Latency,
    /// The throughput of the disk.
    Throughput,
    /// Equal shares, or shares by weight, for jobs that want the same.
    Fairness,
    /// All three alike.
    #[default]
    Balanced,
}

impl Goal {
    /// The weights of latency, throughput and fairness. The goal counts three quarters; an eighth for each of
    /// the others keeps out a candidate that gains a percent by giving up everything else.
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

/// The question: a load, a disk, a host, and what to compare.
#[derive(Clone, Debug)]
pub struct Question {
    /// The load.
    pub jobs: JobFile,
    /// The disk.
    pub disk: DeviceParams,
    /// The machine around it.
    pub host: Host,
    /// What a good scheduler is judged by.
    pub goal: Goal,
    /// Random seed. One seed gives one result.
    pub seed: u64,
    /// The most work, [`WORK_PER_S`] for each second.
    pub work: Duration,
    /// The number of rounds, whatever they cost. `None`: as many as the budget allows.
    pub rounds: Option<u32>,
    /// The scheduler that is in use now. `None`: the default of the kernel.
    pub against: Option<Named>,
    /// The job that waits. `None`: by the rules of [`Waiting`].
    pub foreground: Option<String>,
    /// The schedulers that are tried, without tunables, beside the default. `None`: the table's, which has
    /// none from outside.
    pub only: Option<Vec<Named>>,
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
    /// Work so far, of all rounds.
    pub work: Duration,
}

/// The answer.
#[derive(Clone, Debug)]
pub struct Advice {
    /// The candidates that were tried; the default first.
    pub candidates: Vec<Candidate>,
    /// The candidates that the budget did not allow, by name.
    pub not_tried: Vec<String>,
    /// To what part of its run times the job was cut, in thousandths, for want of budget; none: it was not.
    pub shortened: Option<u64>,
    /// The race, with the standing of each candidate.
    pub race: Race,
    /// The jobs that wait, and what is measured of them.
    pub waiting: Waiting,
    /// The facts of the disk that a driver sees.
    pub facts: Facts,
    /// The seed that the explanation was made with.
    pub told_seed: u64,
    /// Where the time of the waiting jobs went, under the default and under the winner (or the leader, if the
    /// default wins), and what that says; `None` where no reason is found.
    pub told: Option<Told>,
    /// What each job gets under the default and under the same other candidate; `None` if there is only the
    /// default.
    pub payers: Option<Payers>,
    /// Whether a limit of the job file makes the disk idle under the winner, with the seed of the
    /// explanation.
    pub idled: Option<IdledForLimit>,
    /// A limit for those who do not wait, where no scheduler is the answer.
    pub remedy: Option<Remedy>,
    /// The processor time that a kernel's schedulers cost, with the seed of the explanation; empty where that
    /// is not modelled, or hardly anything.
    pub costs: Vec<Cost>,
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

/// Longer than any load that takes one disk; a run that does not end is cut off here.
const TIME_MAX: Duration = Duration::from_secs(3600);

/// Returns the advice. `threads` changes only how long that takes. `stage` is called with the progress.
/// `None` if it was interrupted.
///
/// # Errors
/// If the load does not fit the disk.
pub fn advise(
    question: &Question,
    threads: usize,
    keep: &dyn Keep,
    stage: &(dyn Fn(Stage) + Sync),
) -> Result<Option<(Question, Advice)>> {
    Ok(answer(question, threads, keep, stage)?.whole())
}

/// Returns the advice as [`advise`] does, or what was known when it was interrupted.
///
/// # Errors
/// If the load does not fit the disk.
pub fn answer(
    question: &Question,
    threads: usize,
    keep: &dyn Keep,
    stage: &(dyn Fn(Stage) + Sync),
) -> Result<Answer> {
    let facts = facts(question)?;
    let default = question.against.map_or_else(|| preset(kernels_default(&facts)).map(Named::from), Some);
    let default = default.expect("a built-in scheduler");
    let mut candidates = candidates::choose(&question.jobs, &facts, &default, question.only.as_deref());
    let is_told = cost::is_told(question, &facts);
    if is_told {
        // A scheduler whose cost is not known would look free.
        let known = |c: &Candidate| c.preset == default.name || cost::is_known(&question.host, c.preset);
        candidates.retain(|c| question.only.is_some() || known(c));
    }
    let waiting = who_waits(question, is_told);
    let mut question = question.clone();
    let mut ran = Vec::new();
    let so_far = |question: &Question, candidates: Vec<Candidate>, waiting: Waiting, ran: &[Ran]| {
        Ok(Answer::SoFar(Box::new(SoFar::new(question, candidates, waiting, ran))))
    };
    let Some((per_run, shortened)) = fit(&mut question, &candidates, &waiting, keep)? else {
        return so_far(&question, candidates, waiting, &ran);
    };
    let affordable = affordable(question.work, per_run).min(candidates.len());
    let not_tried = candidates.split_off(affordable).iter().map(Candidate::name).collect();
    let race = match run_race(&question, &candidates, &waiting, (threads, keep, stage), &mut ran) {
        Err(Stopped::Over) => return so_far(&question, candidates, waiting, &ran),
        Err(Stopped::Failed(e)) => return Err(e),
        Ok(race) => race,
    };
    let told_seed = race::seeds(question.seed, "advise.confirm", 1)[0];
    let (told, payers, idled) = tell(&question, &candidates, &race, &waiting, told_seed)?;
    let remedy = match remedy_for(&question, &candidates, &race, (&waiting, &facts), threads, keep) {
        Err(Stopped::Over) => return so_far(&question, candidates, waiting, &ran),
        Err(Stopped::Failed(e)) => return Err(e),
        Ok(remedy) => remedy,
    };
    let costs = if is_told { cost::costs(&question, &candidates, told_seed)? } else { Vec::new() };
    let advice = Advice {
        candidates,
        not_tried,
        shortened,
        race,
        waiting,
        facts,
        told_seed,
        told,
        payers,
        idled,
        remedy,
        costs,
    };
    Ok(Answer::Whole(Box::new((question, advice))))
}

/// Cuts the job short if the budget is not enough for it. Returns what a run costs, and to what part the job
/// was cut, in thousandths; `None` if it was interrupted.
fn fit(
    question: &mut Question,
    candidates: &[Candidate],
    waiting: &Waiting,
    keep: &dyn Keep,
) -> Result<Option<(Duration, Option<u64>)>> {
    let Some(first) = first_run(question, &candidates[0], waiting, keep)? else { return Ok(None) };
    let Some(permille) = shortened(question, first.work, candidates.len()) else {
        return Ok(Some((first.work, None)));
    };
    shorten(&mut question.jobs, permille);
    let cut = first_run(question, &candidates[0], waiting, keep)?;
    Ok(cut.map(|run| (run.work, Some(permille))))
}

/// What a driver knows of the disk; of several, of the first: they are of one kind.
fn facts(question: &Question) -> Result<Facts> {
    let models = question.jobs.models(&question.disk).into_iter();
    let all = models.map(|m| Ok(Device::new(m)?.facts())).collect::<Result<Vec<Facts>>>()?;
    match all.iter().all(|f| f.rotational == all[0].rotational) {
        true => Ok(all[0]),
        false => Err(crate::SimError::MixedDisks),
    }
}

/// Chooses the jobs that wait: by the rules of [`Waiting`]. If these name none, all jobs on flash whose
/// requests have a price in processor time, since a scheduler can earn its cost there only by shorter tails.
fn who_waits(question: &Question, is_told: bool) -> Waiting {
    let (jobs, name) = (&question.jobs, question.foreground.as_deref());
    let waiting = figures::waiting(jobs, name, question.goal);
    if waiting.jobs.is_empty() && is_told {
        return figures::waiting(jobs, name, Goal::Latency);
    }
    waiting
}

/// A run of the default, for what it costs.
fn first_run(
    question: &Question,
    default: &Candidate,
    waiting: &Waiting,
    keep: &dyn Keep,
) -> Result<Option<Run>> {
    let name = |_| format!("{} first", length(&question.jobs));
    let mut runs = resumable::map(1, 1, keep, &|_| {}, name, |_| {
        Ok(judged(question, waiting, &simulate(&question.scenario(default, question.seed))?))
    });
    runs.swap_remove(0).transpose()
}

/// How many candidates a budget is enough for, in a first round and a confirmation of three, if all cost what
/// the default does.
fn affordable(budget: Duration, per_run: Duration) -> usize {
    let runs = (budget.as_ns() / per_run.as_ns().max(1)).saturating_sub(3 * u64::from(confirming(1)));
    usize::try_from(runs / u64::from(FIRST_SEEDS)).unwrap_or(usize::MAX).max(CANDIDATES_MIN)
}

/// To what part a job's run times have to be cut, in thousandths; none if its budget is enough.
fn shortened(question: &Question, per_run: Duration, candidates: usize) -> Option<u64> {
    let wanted =
        CANDIDATES_WANTED.min(candidates as u64) * u64::from(FIRST_SEEDS) + 3 * u64::from(confirming(1));
    let cost = u128::from(per_run.as_ns()) * u128::from(wanted);
    let permille = u64::try_from(u128::from(question.work.as_ns()) * 1000 / cost.max(1)).unwrap_or(u64::MAX);
    let has_runtime = question.jobs.jobs.iter().any(|j| j.runtime.is_some_and(|r| r > RUNTIME_MIN));
    (permille < 1000 && has_runtime).then_some(permille)
}

/// Tells runs of a job that was cut from others of the same: its run times added up.
fn length(jobs: &JobFile) -> String {
    let sum = jobs.jobs.iter().fold(Duration::ZERO, |sum, j| sum + j.runtime.unwrap_or_default());
    format!("{}ms", sum.as_ms())
}

/// Cuts run times and what is not counted at their beginning.
fn shorten(jobs: &mut JobFile, permille: u64) {
    let cut = |t: Duration| (t * permille / 1000).max(RUNTIME_MIN.min(t));
    for job in &mut jobs.jobs {
        job.runtime = job.runtime.map(cut);
        job.ramp_time = job.ramp_time * permille / 1000;
    }
}

/// A limit, on flash, where the winner is no scheduler, or the default for want of anything better.
fn remedy_for(
    question: &Question,
    candidates: &[Candidate],
    race: &Race,
    (waiting, facts): (&Waiting, &Facts),
    threads: usize,
    keep: &dyn Keep,
) -> std::result::Result<Option<Remedy>, Stopped> {
    let winner = race.winner();
    let is_no_answer = winner == 0 || candidates[winner].preset == "noop";
    if facts.rotational || !is_no_answer || question.only.is_some() {
        return Ok(None);
    }
    let seeds = race::seeds(question.seed, "advise.confirm", confirming(race.rounds));
    let without = &race.standings[winner].fresh;
    remedy::find(question, (winner, &candidates[winner]), waiting, (&seeds, without), threads, keep)
}

/// Why a race has no result.
enum Stopped {
    Over,
    Failed(crate::SimError),
}

/// Runs the race, and adds each run that has finished to `ran`.
fn run_race(
    question: &Question,
    candidates: &[Candidate],
    waiting: &Waiting,
    (threads, keep, stage): (usize, &dyn Keep, &(dyn Fn(Stage) + Sync)),
    ran: &mut Vec<Ran>,
) -> std::result::Result<Race, Stopped> {
    let is_plain =
        |o: &Candidate, c: &Candidate| (o.preset, o.place) == (c.preset, c.place) && o.set.is_empty();
    let plain = |c: &Candidate| candidates.iter().position(|o| is_plain(o, c));
    let entrant = |(i, c): (usize, &Candidate)| Entrant {
        is_choice: c.place == Place::Kernel,
        plain: plain(c).unwrap_or(i),
    };
    let entrants: Vec<Entrant> = candidates.iter().enumerate().map(entrant).collect();
    let rules = Rules {
        weights: question.goal.weights(),
        work: question.work,
        rounds: question.rounds,
        seed: question.seed,
    };
    let spent = AtomicU64::new(0);
    race::race(&entrants, &rules, &mut |round, todo| {
        let done = |done| {
            let work = Duration::from_ns(spent.load(Ordering::Relaxed));
            stage(Stage { round, runs: todo.len(), done, work });
        };
        let length = length(&question.jobs);
        let name = |i: usize| format!("{length} {} {}", candidates[todo[i].0].name(), todo[i].1);
        let runs = resumable::map(todo.len(), threads, keep, &done, name, |i| {
            let (candidate, seed) = todo[i];
            let run = judged(question, waiting, &simulate(&question.scenario(&candidates[candidate], seed))?);
            spent.fetch_add(run.work.as_ns(), Ordering::Relaxed);
            Ok(run)
        });
        let finished = todo.iter().zip(&runs).filter_map(|(&(c, seed), run)| match run {
            Some(Ok(run)) => Some((c, seed, *run)),
            _ => None,
        });
        ran.extend(finished);
        runs.into_iter().map(|run| run.ok_or(Stopped::Over)?.map_err(Stopped::Failed)).collect()
    })
}

fn judged(question: &Question, waiting: &Waiting, o: &Outcome) -> Run {
    Run { figures: figures::figures(&question.jobs, waiting, o), work: work(o) }
}

/// Where the time of those who wait went, and what each job got, in a pair of runs; and whether a limit made
/// the disk idle in the winner's.
fn tell(
    question: &Question,
    candidates: &[Candidate],
    race: &Race,
    waiting: &Waiting,
    seed: u64,
) -> Result<(Option<Told>, Option<Payers>, Option<IdledForLimit>)> {
    let other = match race.winner() {
        0 => race.leader,
        winner => winner,
    };
    let run = |c: usize| simulate(&question.scenario(&candidates[c], seed));
    if other == 0 {
        let has_groups = question.jobs.cgroups.len() > 1;
        let alone = has_groups.then(|| run(0)).transpose()?;
        return Ok((None, None, alone.as_ref().and_then(IdledForLimit::of)));
    }
    let (before, after) = (run(0)?, run(other)?);
    let idled = IdledForLimit::of(if race.winner() == 0 { &before } else { &after });
    let payers = Some(Payers::new(&question.jobs, other, &before, &after));
    if waiting.jobs.is_empty() {
        return Ok((None, payers, idled));
    }
    let names = [0, other].map(|c| candidates[c].name());
    let tail = (waiting.what == Wait::Tail).then(|| changed_most(waiting, &before, &after)).flatten();
    let (clients, tails) = match tail {
        None => (waiting.clients(&question.jobs), [None, None]),
        Some((job, tails)) => {
            let one = Waiting { what: waiting.what, jobs: vec![job] };
            (one.clients(&question.jobs), tails.map(Some))
        }
    };
    let told = |c: usize, ceiling: Option<Duration>| {
        let scenario = question.scenario(&candidates[c], seed);
        match ceiling {
            None => crate::why::explain(&scenario, &clients),
            Some(ceiling) => crate::why::explain_up_to(&scenario, &clients, ceiling),
        }
    };
    let (before, after) = (told(0, tails[0])?.1, told(other, tails[1])?.1);
    Ok((Some(explain(&names, other, tails, before, after)), payers, idled))
}

/// Of the jobs that wait, the one whose 99th percentile changed most, with both.
fn changed_most(waiting: &Waiting, before: &Outcome, after: &Outcome) -> Option<(usize, [Duration; 2])> {
    let tail = |o: &Outcome, job: usize| time_waited(Wait::Tail, o.clients.iter().filter(|c| c.job == job));
    let of = |&job: &usize| Some((job, [tail(before, job)?, tail(after, job)?]));
    let change = |tails: [Duration; 2]| {
        let [a, b] = tails.map(|t| libm::log(statistics::real(t.as_ns().max(1))));
        (a - b).abs()
    };
    waiting.jobs.iter().filter_map(of).max_by(|a, b| change(a.1).total_cmp(&change(b.1)))
}

#[cfg(test)]
mod tests;
