//! Which scheduler and which tunables for this load on this disk, and why: candidates, races over seeds, a
//! verdict.
//!
//! ```text
//!   load, disk ─► span, what each job gets alone
//!        │
//!        ├─► what the kernel has, as it is ─► race ─► winner, or what is in use now
//!        ├─► the winner's tunables         ─► race ─► the winner with tunables, if that is surely better
//!        └─► Fairhead's own                ─► race ─► named beside the answer, if one is surely better
//! ```
//!
//! **One currency.** A candidate is as good as the load is satisfied under it: see [`crate::satisfaction`].
//! All are judged over one span of virtual time.
//!
//! **Floors.** A candidate is not advised under which a job starves, misses a rate that it gets now, is not
//! done in time and is now, or under which the job that the user named fares worse: see
//! [`Floor`].
//!
//! **Statistics.** All candidates run the same seeds (common random numbers): the same files in the same
//! places, the same offsets. So a seed gives a *pair* of runs, and the ratio within a pair varies much less
//! than either run. The logarithms of the ratios have a mean and, by Student's t, an interval of 95 %; both
//! are reported as ratios again.
//!
//! *No difference* is said where the interval lies within [`EQUAL`] of 1, whatever its significance: the
//! models are not better than that. For the same reason a change is advised only where the whole interval is
//! beyond [`EQUAL`].
//!
//! **A race** ([`race`]) ends the runs of those early that cannot win. Picking the best of many noisy figures
//! flatters it, so the reported figures are those of fresh seeds. Of those within 2.5 % of the best the
//! plainest is named.
//!
//! **The budget** is in seconds on the command line and in reckoned work here ([`work`]): how many rounds fit
//! is decided by what the runs did, which is a function of load, disk and seed. A faster machine is done
//! earlier, a slower one later, and both say the same. A load of which the budget does not even allow a first
//! round has its run times cut ([`Advice::shortened`]), unless a program starts in it.
//!
//! **Interrupted**, it tells what had finished ([`SoFar`]), and resumes with the runs that were kept
//! ([`Keep`]); then it gives the same bytes.
//!
//! What it does not do: vary the load, the disk or the host (a seed changes where files lie and what chance
//! draws, no more, so the interval is one over seeds and says nothing of how well the models fit your disk);
//! search tunables beyond the table; correct the intervals for there being several; follow weights that
//! change during a run.
//
//= Student, "The probable error of a mean", Biometrika 6, 1908
//= O. Maron, A. Moore, "Hoeffding races", 1993; M. Birattari et al., "A racing algorithm for configuring metaheuristics", 2002
//= A. Law, "Simulation modeling and analysis", chapters 10 and 11 (paired comparison, common random numbers)

mod apply;
mod at_once;
pub mod book;
mod candidates;
pub mod cost;
mod explain;
pub mod race;
mod remedy;
mod runs;
mod so_far;
pub mod statistics;
mod verdict;

pub use apply::{Step, kernel_values, steps, steps_to_stay};
pub use at_once::AtOnce;
pub use book::{Book, Comparison, EQUAL, Fared, Floor, Run};
pub use candidates::{Candidate, Place, kernels_default};
pub use cost::{Cost, Limit};
pub use explain::{Told, explain};
pub use race::{End, LetGo, Race};
pub use remedy::Remedy;
pub use so_far::{Answer, SoFar};
pub use verdict::{Row, Verdict, factor};

use crate::engine::Scenario;
use crate::host::Host;
use crate::idled::IdledForLimit;
use crate::job::{JobFile, Kind};
use crate::metrics::{Outcome, Result};
use crate::resumable::Keep;
use crate::satisfaction::{Alone, Emphasis, Load, Solo, got};
use crate::simulate;
use fairhead_core::Duration;
use fairhead_core::sched::any::preset;
use fairhead_core::sched::catalogue::Named;
use fairhead_device::{Device, DeviceParams, Facts};
use race::{CONFIRM_MAX, FIRST_SEEDS, Rules, confirming};
use runs::Runs;
use so_far::Ran;
use std::ops::Range;

/// The work that a second of the budget stands for. Two cores do twice as much; [`work`] is up to twice too
/// low.
pub const WORK_PER_S: Duration = Duration::from_secs(1);

/// Nanoseconds of one core that a run's parts are reckoned to take, on the machine that we measured on
/// (`bench/RESULTS.md`, reckoned work): between a third of what they took and two and a half times as much,
/// for example jobs on four disks under six schedulers.
//= docs/reference/choices.md#advise-work
const EVENT_NS: u64 = 90;
const REQUEST_NS: u64 = 500;
const PAGE_READ_NS: u64 = 60;
const PAGE_WRITTEN_NS: u64 = 20;
const DESTAGE_NS: u64 = 100;
const CLIENT_NS: u64 = 100_000;
const TOUCH_NS: u64 = 5;

/// Returns the cost of a run, reckoned from what it did and not from a clock, so that it is the same
/// everywhere.
#[must_use]
pub fn work(o: &Outcome) -> Duration {
    let requests = o.disk.issued + o.disk.merged;
    Duration::from_ns(
        o.events * EVENT_NS
            + requests * REQUEST_NS
            + o.cache.pages_read * PAGE_READ_NS
            + o.cache.pages_written * PAGE_WRITTEN_NS
            + o.cache.touched * TOUCH_NS
            + o.disk.counters.destages * DESTAGE_NS
            + o.clients.len() as u64 * CLIENT_NS,
    )
}

/// A job is not cut shorter than that: a time slice is tenths of a second.
const RUNTIME_MIN: Duration = Duration::from_secs(1);

/// The longest span of a load whose options say none.
const SPAN_MAX: Duration = Duration::from_secs(60);

/// The question: a load, a disk, a host, and what to compare.
#[derive(Clone, Debug)]
pub struct Question {
    /// The load.
    pub jobs: JobFile,
    /// The disk.
    pub disk: DeviceParams,
    /// The machine around it.
    pub host: Host,
    /// Which jobs count more.
    pub emphasis: Emphasis,
    /// Random seed. One seed gives one result.
    pub seed: u64,
    /// The most work, [`WORK_PER_S`] for each second.
    pub work: Duration,
    /// The number of rounds, whatever they cost. `None`: as many as the budget allows.
    pub rounds: Option<u32>,
    /// The scheduler that is in use now. `None`: the default of the kernel.
    pub against: Option<Named>,
    /// The schedulers that are tried, without tunables, beside the one in use. `None`: the table's, which has
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
    /// All candidates: what is in use now, the kernel's others, their tunables, Fairhead's own.
    pub candidates: Vec<Candidate>,
    /// Those that have no tunables and that a kernel has, or that the user named; the first is in use now.
    pub plain: Range<usize>,
    /// Fairhead's own.
    pub own: Range<usize>,
    /// To what part of its run times the load was cut, in thousandths, for want of budget; none: it was not.
    pub shortened: Option<u64>,
    /// The load over its span.
    pub load: Load,
    /// What each job gets alone.
    pub alone: Alone,
    /// The runs of all candidates.
    pub book: Book,
    /// The races in their order: the kernel's schedulers, the winner's tunables, Fairhead's own. The later
    /// two are left out where they have one entrant.
    pub races: Vec<Race>,
    /// The candidate to use; 0: what is in use now.
    pub winner: usize,
    /// The best of Fairhead's own, if it is surely better than the winner.
    pub better_own: Option<usize>,
    /// The seed, the budget as work, and the number of rounds that were asked for: with these, one load on
    /// one disk has one answer.
    pub asked: (u64, Duration, Option<u32>),
    /// The facts of the disk that a driver sees.
    pub facts: Facts,
    /// The seed that the explanation was made with.
    pub told_seed: u64,
    /// Where the time of the job went whose satisfaction differs most, under what is in use and under the
    /// candidate that is compared with it; `None` where no reason is found.
    pub told: Option<Told>,
    /// Whether a limit of the job file makes the disk idle under the winner, with the seed of the
    /// explanation.
    pub idled: Option<IdledForLimit>,
    /// A limit for bulk jobs, where no scheduler is the answer.
    pub remedy: Option<Remedy>,
    /// The processor time that a kernel's schedulers cost, with the seed of the explanation; empty where that
    /// is not modelled, or hardly anything.
    pub costs: Vec<Cost>,
    /// What all jobs beginning at once would change; nothing where they do, or where the answer is the same.
    pub at_once: Option<AtOnce>,
    spent: Duration,
}

impl Advice {
    /// The candidate that is compared with what is in use now: the winner, or the best of the others.
    #[must_use]
    pub fn compared(&self) -> usize {
        let first = &self.races[0];
        match self.winner {
            0 if first.leader != 0 => first.entrants[first.leader],
            0 => self.second().unwrap_or(0),
            winner => winner,
        }
    }

    /// The best of the kernel's others by the race, whether it is better or not.
    fn second(&self) -> Option<usize> {
        let satisfied = |c: usize| self.book.satisfaction(c);
        self.plain.clone().skip(1).max_by(|a, b| satisfied(*a).total_cmp(&satisfied(*b)))
    }

    /// The cost of all runs, those of jobs alone and of the explanation included.
    #[must_use]
    pub const fn work(&self) -> Duration {
        self.spent
    }

    /// How many rounds the longest race had, and why it ended.
    #[must_use]
    pub fn rounds(&self) -> (u32, End) {
        let first = &self.races[0];
        (first.rounds, first.end)
    }
}

impl Question {
    /// A candidate's run with a seed, over a span.
    #[must_use]
    pub fn scenario(&self, load: &Load, candidate: &Candidate, seed: u64) -> Scenario {
        Scenario {
            jobs: load.jobs.clone(),
            time_max: Some(load.span),
            ..self.of(&self.jobs, candidate, seed, SPAN_MAX)
        }
    }

    /// A run of the load as it is written.
    fn of(&self, jobs: &JobFile, candidate: &Candidate, seed: u64, time_max: Duration) -> Scenario {
        Scenario {
            jobs: jobs.clone(),
            disk: self.disk.clone(),
            host: self.host.clone(),
            scheduler: candidate.preset.to_owned(),
            config: candidate.config,
            seed,
            interval: None,
            time_max: Some(time_max),
            watch: None,
        }
    }
}

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
    let chosen = candidates::choose(&question.jobs, &facts, &default, question.only.as_deref());
    let so_far = SoFar::nothing(question, &chosen.all);
    let mut asked = match Asked::new(question, chosen, Runs::new(threads, keep), stage) {
        Ok(asked) => asked,
        Err(Stopped::Over) => return Ok(Answer::SoFar(Box::new(so_far))),
        Err(Stopped::Failed(e)) => return Err(e),
    };
    match asked.race(&facts) {
        Ok(advice) => Ok(Answer::Whole(Box::new((asked.question, advice)))),
        Err(Stopped::Over) => Ok(Answer::SoFar(Box::new(asked.so_far()))),
        Err(Stopped::Failed(e)) => Err(e),
    }
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

/// Why there is no whole answer.
enum Stopped {
    Over,
    Failed(crate::SimError),
}

impl From<crate::SimError> for Stopped {
    fn from(e: crate::SimError) -> Self {
        Self::Failed(e)
    }
}

/// A question that is being answered.
struct Asked<'a> {
    /// The question; its run times may have been cut.
    question: Question,
    /// The load over its span, and what its jobs get alone.
    load: Load,
    alone: Alone,
    chosen: candidates::Chosen,
    book: Book,
    shortened: Option<u64>,
    /// Each run that has finished.
    ran: Vec<Ran>,
    runs: Runs<'a>,
    stage: &'a (dyn Fn(Stage) + Sync),
}

impl<'a> Asked<'a> {
    fn new(
        question: &Question,
        chosen: candidates::Chosen,
        mut runs: Runs<'a>,
        stage: &'a (dyn Fn(Stage) + Sync),
    ) -> std::result::Result<Self, Stopped> {
        let mut question = question.clone();
        let shortened = shorten_to_budget(&mut question, &chosen, &runs)?;
        runs.cut(length(&question.jobs));
        let span = span(&question, &chosen, &runs)?;
        let load = Load::new(&question.jobs, span, &question.emphasis);
        let base = question.scenario(&load, &chosen.all[0], question.seed);
        let solos = Solo::all(&load);
        let name = |i: usize| format!("{} {}", solos[i].name(), question.seed);
        let alone = runs.each(solos.len(), name, |i| {
            let (got, outcome) = solos[i].run(&load, &base)?;
            Ok((got, work(&outcome)))
        })?;
        let alone = Alone::of(&load, &alone);
        let named = match &question.emphasis {
            Emphasis::Job(name) => question.jobs.jobs.iter().position(|j| j.name == *name),
            _ => None,
        };
        let book = Book::new(&load.parties, named, chosen.all.len());
        let ran = Vec::new();
        Ok(Self { question, load, alone, chosen, book, shortened, ran, runs, stage })
    }

    fn so_far(self) -> SoFar {
        SoFar::new(self.load, self.chosen.all, self.book, &self.ran)
    }

    /// Runs the races, and explains what came of them.
    fn race(&mut self, facts: &Facts) -> std::result::Result<Advice, Stopped> {
        let plain: Vec<usize> = self.chosen.plain.clone().collect();
        let mut races = vec![self.run_race(&plain, CONFIRM_MAX)?];
        let mut winner = races[0].winner;
        let tuned = self.chosen.tuned_of(winner);
        if !tuned.is_empty() {
            let entrants: Vec<usize> = std::iter::once(winner).chain(tuned).collect();
            races.push(self.run_race(&entrants, CONFIRM_MAX)?);
            let with_tunables = races[1].winner;
            // What is compared with the winner may still fall below a floor beside what is in use.
            if self.book.floor(with_tunables, 0).is_none() {
                winner = with_tunables;
            }
        }
        let own: Vec<usize> = self.chosen.own.clone().collect();
        let mut better_own = None;
        if !own.is_empty() {
            let entrants: Vec<usize> = std::iter::once(winner).chain(own).collect();
            // They are named in one line: what a round leaves open stays so.
            let race = self.run_race(&entrants, confirming(1))?;
            better_own = Some(race.winner).filter(|w| *w != winner);
            races.push(race);
        }
        self.advice(facts, races, winner, better_own)
    }

    /// Runs a race between candidates, the first of which is the base, with at most this number of fresh
    /// seeds.
    fn run_race(&mut self, entrants: &[usize], fresh: u32) -> std::result::Result<Race, Stopped> {
        let Self { question, load, alone, chosen, book, ran, runs, stage, .. } = self;
        let rounds = if fresh < CONFIRM_MAX { Some(1) } else { question.rounds };
        let work = question.work.saturating_sub(runs.spent());
        // What decides between the kernel's schedulers is confirmed whatever it takes; whether a tunable is
        // better still, or one of ours, as far as the budget goes.
        let is_plain = entrants.iter().copied().eq(chosen.plain.clone());
        let confirming = if is_plain { Duration::MAX } else { work };
        let rules = Rules { work, rounds, fresh, confirming, seed: question.seed };
        race::race(book, entrants, &rules, &mut |round, todo| {
            let done = |done| stage(Stage { round, runs: todo.len(), done, work: runs.spent() });
            let name = |i: usize| format!("{} {}", chosen.all[todo[i].0].name(), todo[i].1);
            let made = runs.begun(todo.len(), &done, name, |i| {
                let (candidate, seed) = todo[i];
                let outcome = simulate(&question.scenario(load, &chosen.all[candidate], seed))?;
                let run = judged(load, alone, &outcome);
                let work = run.work;
                Ok((run, work))
            });
            let finished = todo.iter().zip(&made).filter_map(|(&(c, seed), run)| match run {
                Some(Ok(run)) => Some((c, seed, run.clone())),
                _ => None,
            });
            ran.extend(finished);
            made.into_iter().map(|run| run.ok_or(Stopped::Over)?.map_err(Stopped::Failed)).collect()
        })
    }

    /// Explains what came of the races.
    fn advice(
        &self,
        facts: &Facts,
        races: Vec<Race>,
        winner: usize,
        better_own: Option<usize>,
    ) -> std::result::Result<Advice, Stopped> {
        let seed = race::seeds(self.question.seed, "advise.confirm", 1)[0];
        let costs = if cost::is_told(&self.question, facts) { cost::costs(self, seed)? } else { Vec::new() };
        let mut advice = Advice {
            candidates: self.chosen.all.clone(),
            plain: self.chosen.plain.clone(),
            own: self.chosen.own.clone(),
            shortened: self.shortened,
            load: self.load.clone(),
            alone: self.alone.clone(),
            book: self.book.clone(),
            races,
            winner,
            better_own,
            asked: (self.question.seed, self.question.work, self.question.rounds),
            facts: *facts,
            told_seed: seed,
            told: None,
            idled: None,
            remedy: None,
            costs,
            at_once: None,
            spent: Duration::ZERO,
        };
        advice.told = self.tell(&advice, seed)?;
        if self.question.jobs.cgroups.len() > 1 {
            advice.idled = IdledForLimit::of(&self.run(winner, seed)?);
        }
        advice.remedy = self.remedy(&advice, facts)?;
        advice.at_once = at_once::find(self, winner)?;
        advice.spent = self.runs.spent();
        Ok(advice)
    }

    /// A run whose outcome is looked into, and not kept.
    fn run(&self, candidate: usize, seed: u64) -> std::result::Result<Outcome, Stopped> {
        if self.runs.is_over() {
            return Err(Stopped::Over);
        }
        let outcome = simulate(&self.question.scenario(&self.load, &self.chosen.all[candidate], seed))?;
        self.runs.count(work(&outcome));
        Ok(outcome)
    }

    /// Where the time of the job went whose satisfaction differs most, in a pair of runs.
    fn tell(&self, advice: &Advice, seed: u64) -> std::result::Result<Option<Told>, Stopped> {
        let other = advice.compared();
        if other == 0 {
            return Ok(None);
        }
        let change = |job: usize| libm::fabs(libm::log(advice.book.against(other, 0).jobs[job].ratio));
        let judged = (0..self.load.parties.len()).filter(|&j| !self.load.parties[j].is_idle_class);
        let Some(job) = judged.max_by(|a, b| change(*a).total_cmp(&change(*b))) else { return Ok(None) };
        let clients = self.load.jobs.clients().enumerate();
        let clients: Vec<usize> = clients.filter_map(|(i, c)| (c.job_index == job).then_some(i)).collect();
        let is_tail = self.load.parties[job].kind == Kind::Waiting;
        let books = crate::parallel::map(2, self.runs.threads, &|_| {}, |i| {
            let c = [0, other][i];
            let scenario = self.question.scenario(&self.load, &self.chosen.all[c], seed);
            if !is_tail {
                let (outcome, report) = crate::why::explain(&scenario, &clients)?;
                self.runs.count(work(&outcome));
                return Ok((None, report));
            }
            let tail = self.tail(c, job, seed)?;
            let (outcome, report) = crate::why::explain_up_to(&scenario, &clients, tail)?;
            self.runs.count(work(&outcome));
            Ok((Some(tail), report))
        });
        let mut books = books.into_iter().collect::<std::result::Result<Vec<_>, Stopped>>()?;
        let (after, before) = (books.pop().expect("two books"), books.pop().expect("two books"));
        let names = [0, other].map(|c| self.chosen.all[c].name());
        Ok(Some(explain(&names, other, [before.0, after.0], before.1, after.1)))
    }

    /// The 99th percentile of a job under a candidate with a seed, which the confirmation may have run.
    fn tail(&self, candidate: usize, job: usize, seed: u64) -> std::result::Result<Duration, Stopped> {
        let ran = self.ran.iter().find(|(c, s, _)| (*c, *s) == (candidate, seed));
        let amount = match ran {
            Some((_, _, run)) => run.jobs[job].amount,
            None => got(&self.load, job, &self.run(candidate, seed)?).amount,
        };
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "seconds")]
        let tail = Duration::from_ns((amount * 1e9) as u64);
        Ok(tail)
    }

    /// A limit, on flash, where the winner is no scheduler, or what is in use for want of anything better.
    fn remedy(&self, advice: &Advice, facts: &Facts) -> std::result::Result<Option<Remedy>, Stopped> {
        let winner = advice.winner;
        let is_no_answer = winner == 0 || self.chosen.all[winner].preset == "noop";
        if facts.rotational || !is_no_answer || self.question.only.is_some() {
            return Ok(None);
        }
        let seeds = race::seeds(self.question.seed, "advise.confirm", confirming(advice.rounds().0));
        remedy::find(self, winner, &seeds)
    }
}

/// How the jobs of a load fared in a run.
#[must_use]
pub fn judged(load: &Load, alone: &Alone, outcome: &Outcome) -> Run {
    let job = |j: usize| {
        let got = got(load, j, outcome);
        let satisfaction = load.of_job(j, &got, alone);
        Fared { amount: got.amount, satisfaction, is_cut: got.is_cut }
    };
    Run { jobs: (0..load.parties.len()).map(job).collect(), work: work(outcome) }
}

/// The span over which the load is judged: what its options say, or else as long as it takes under the
/// slowest of the plain candidates, at most [`SPAN_MAX`].
fn span(
    question: &Question,
    chosen: &candidates::Chosen,
    runs: &Runs<'_>,
) -> std::result::Result<Duration, Stopped> {
    if let Some(span) = Load::span_of(&question.jobs) {
        return Ok(span);
    }
    let most = if question.jobs.jobs.iter().any(|j| j.program == Some(crate::job::Program::Trace)) {
        TRACE_MAX
    } else {
        SPAN_MAX
    };
    let plain = &chosen.all[chosen.plain.clone()];
    let name = |i: usize| format!("span of {} {}", plain[i].name(), question.seed);
    let took = runs.each(plain.len(), name, |i| {
        let outcome = simulate(&question.of(&question.jobs, &plain[i], question.seed, most))?;
        Ok((outcome.elapsed, work(&outcome)))
    })?;
    Ok(took.into_iter().max().unwrap_or(most).max(Duration::from_ms(1)))
}

/// Longer than any recorded load; a replay that does not end is cut off here.
const TRACE_MAX: Duration = Duration::from_secs(3600);

/// Cuts run times where the budget is not enough. Returns to what part, in thousandths.
fn shorten_to_budget(
    question: &mut Question,
    chosen: &candidates::Chosen,
    runs: &Runs<'_>,
) -> std::result::Result<Option<u64>, Stopped> {
    let jobs = &question.jobs;
    let has_start = jobs.jobs.iter().any(|j| crate::satisfaction::kind(jobs, j) == Kind::Start);
    if has_start || Load::span_of(jobs).is_none() {
        return Ok(None);
    }
    let name = |_| format!("whole {} {}", chosen.all[0].name(), question.seed);
    let first = runs.each(1, name, |_| {
        let cost = work(&simulate(&question.of(jobs, &chosen.all[0], question.seed, TRACE_MAX))?);
        Ok((cost, cost))
    })?[0];
    let cost = u128::from(first.as_ns()) * u128::from(runs_wanted(question, chosen));
    let permille = u64::try_from(u128::from(question.work.as_ns()) * 1000 / cost.max(1)).unwrap_or(u64::MAX);
    let has_runtime = jobs.jobs.iter().any(|j| j.runtime.is_some_and(|r| r > RUNTIME_MIN));
    if permille >= 1000 || !has_runtime {
        return Ok(None);
    }
    shorten(&mut question.jobs, permille);
    Ok(Some(permille))
}

/// The number of runs of an answer that is clear after one round: a round of all candidates, the confirmation
/// of three, two jobs alone for the work of one run, two books, and on flash the limits and the costs.
fn runs_wanted(question: &Question, chosen: &candidates::Chosen) -> u64 {
    let jobs = question.jobs.jobs.len() as u64;
    let own = chosen.all.len() as u64 * u64::from(FIRST_SEEDS) + 3 * u64::from(confirming(1)) + jobs + 2;
    let of_flash = if question.host.cores.is_some() { remedy::RUNS + cost::RUNS } else { 0 };
    own + of_flash
}

/// Tells runs of a load that was cut from others of the same: its run times added up.
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

#[cfg(test)]
mod tests;
