//! What requests cost the processors under each scheduler, and what holds a load back.
//!
//! **The cost** is processor time for a request, without what the programs compute: submission, completion,
//! the scheduler's work, and waiting for its lock. Example: one process that reads as fast as one processor
//! can ask takes 2.79 us for a request without a scheduler and 4.25 us under BFQ; so BFQ costs 1.46 us, and
//! 34 % of the requests a second.
//!
//! **What holds a load back** ([`Limit`]) is found by trying, not by thresholds on busy times: a queue at the
//! drive does not say whether the drive or the load made it so deep.
//!
//! ```text
//!   the load as it is ────────────────────────────► T
//!   processors and locks ten times as quick ──────► is it more than T by a tenth?  ─yes─► the lock, if it is held nine tenths of the time; else the processors
//!                                                         │ no
//!   the same, and every job twice ────────────────► is that more by a quarter?     ─yes─► nothing: each request takes its time, or the jobs want no more
//!                                                         └ no ──────────────────────────► the drive
//! ```
//!
//! The tenth is above what seeds do to a throughput. A quarter tells a drive that is nearly full, where twice
//! the load still gains a little, from one that is not, where it gains nearly all of its double.
//!
//! What it does not do: tell which of several drives is the limit; look at hosts whose processors are not
//! modelled one by one ([`Cores`]); or look at disks with an arm, whose few hundred requests a second cost
//! the processors less than a thousandth.

use super::at_once::at_once;
use super::{Asked, Place, Question, Stopped, work};
use crate::engine::Scenario;
use crate::host::{Cores, Elevator, Host, Lock};
use crate::metrics::{Outcome, Result, rate};
use crate::resumable::Line;
use crate::simulate;
use fairhead_core::Duration;
use fairhead_device::Facts;

/// The resource that limits a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// The processors that its processes may use, or the one that each process runs on.
    Processor,
    /// The lock of the scheduler.
    Lock,
    /// The drive.
    Drive,
    /// No resource: requests take their time, or the jobs want no more.
    Nothing,
}

impl Limit {
    /// Returns the limit in words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Processor => "processor",
            Self::Lock => "lock",
            Self::Drive => "drive",
            Self::Nothing => "nothing",
        }
    }
}

impl Line for Limit {
    fn write(&self) -> String {
        self.words().to_owned()
    }

    fn read(text: &str) -> Option<Self> {
        [Self::Processor, Self::Lock, Self::Drive, Self::Nothing].into_iter().find(|l| l.words() == text)
    }
}

/// The numbers in the order of the fields, then the limit.
impl Line for Cost {
    fn write(&self) -> String {
        let times = [self.per_request, self.in_scheduler, self.lock_wait].map(|t| t.as_ns());
        let [per_request, in_scheduler, lock_wait] = times;
        let (candidate, requests, busy, iops) =
            (self.candidate, self.requests, self.busy_permille, self.iops);
        let limit = self.limit.words();
        format!("{candidate} {requests} {per_request} {in_scheduler} {lock_wait} {busy} {iops} {limit}")
    }

    fn read(text: &str) -> Option<Self> {
        let (numbers, limit) = text.rsplit_once(' ')?;
        let numbers = numbers.split(' ').map(|n| n.parse().ok()).collect::<Option<Vec<u64>>>()?;
        let &[candidate, requests, per_request, in_scheduler, lock_wait, busy_permille, iops] = &numbers[..]
        else {
            return None;
        };
        Some(Self {
            candidate: usize::try_from(candidate).ok()?,
            requests,
            per_request: Duration::from_ns(per_request),
            in_scheduler: Duration::from_ns(in_scheduler),
            lock_wait: Duration::from_ns(lock_wait),
            busy_permille,
            iops,
            limit: Limit::read(limit)?,
        })
    }
}

/// The cost of a load under one scheduler, in one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Which candidate.
    pub candidate: usize,
    /// Requests that the disk got.
    pub requests: u64,
    /// Processor time for each, without the programs' own computing.
    pub per_request: Duration,
    /// The part of it that is the scheduler's own work.
    pub in_scheduler: Duration,
    /// The part of it that is waiting for the scheduler's lock.
    pub lock_wait: Duration,
    /// The share of all processors' time that it took, in thousandths.
    pub busy_permille: u64,
    /// Requests a second.
    pub iops: u64,
    /// The resource that limits the load.
    pub limit: Limit,
}

/// The runs that all costs take, by the work of the load: three of each scheduler, of which one has twice the
/// jobs.
pub(super) const RUNS: u64 = 16;
/// The cost is that of a second in which all jobs run: it is a mean over a hundred thousand requests.
const SPAN: Duration = Duration::from_secs(1);
/// By this factor processors and locks are faster in the first trial.
const QUICKER: u64 = 10;
/// A gain of more than that, in percent, is one of the processors.
const GAIN_PCT: u64 = 10;
/// A gain of more than that by twice the load, in percent, says that the drive has room.
const ROOM_PCT: u64 = 25;
/// A lock that is held for this many thousandths of the time is full: processors could not use it more.
const FULL_PERMILLE: u64 = 900;

/// Whether processor time has a price: on a disk without an arm, on a host with processors.
pub(super) fn is_told(question: &Question, facts: &Facts) -> bool {
    !facts.rotational && question.host.cores.is_some()
}

/// What the schedulers that a kernel has cost, without tunables, in the order of the candidates.
pub(super) fn costs(asked: &Asked<'_>, seed: u64) -> std::result::Result<Vec<Cost>, Stopped> {
    let candidates = &asked.chosen.all;
    let plain = |c: &usize| candidates[*c].place == Place::Kernel && candidates[*c].set.is_empty();
    let all: Vec<usize> = (0..candidates.len()).filter(plain).collect();
    let name = |i: usize| format!("cost of {} {seed}", candidates[all[i]].name());
    // What happens before all jobs run would be most of the run, and costs a request as much.
    let jobs = at_once(&asked.load.jobs).unwrap_or_else(|| asked.load.jobs.clone());
    let begun = jobs.jobs.iter().map(|j| j.wave_delay).max().unwrap_or_default();
    let span = asked.load.span.min(begun + SPAN);
    let costs = asked.runs.each(all.len(), name, |i| {
        let whole = asked.question.scenario(&asked.load, &candidates[all[i]], seed);
        cost(all[i], &Scenario { jobs: jobs.clone(), time_max: Some(span), ..whole })
    })?;
    // A result that was kept may be of another order of the candidates.
    Ok(costs.into_iter().zip(all).map(|(cost, candidate)| Cost { candidate, ..cost }).collect())
}

/// The cost, and the work of the runs that it took.
fn cost(candidate: usize, scenario: &Scenario) -> Result<(Cost, Duration)> {
    let o = simulate(scenario)?;
    let requests = o.disk.issued.max(1);
    let part = |time: Duration| time / requests;
    let (limit, of_limit) = limit(scenario, &o)?;
    let cost = Cost {
        candidate,
        requests: o.disk.issued,
        per_request: part(for_requests(&o)),
        in_scheduler: part(o.cpu.scheduler),
        lock_wait: part(o.cpu.lock_wait),
        busy_permille: permille(o.cpu.total(), o.elapsed * u64::from(o.cpus)),
        iops: rate(o.disk.issued, o.elapsed),
        limit,
    };
    Ok((cost, work(&o) + of_limit))
}

/// Processor time that requests took, without what programs computed.
pub(super) fn for_requests(o: &Outcome) -> Duration {
    o.cpu.total().saturating_sub(o.cpu.user)
}

fn permille(part: Duration, all: Duration) -> u64 {
    rate(part.as_ns(), all) / 1_000_000
}

/// What holds a load back that gave this, and the work of finding it out.
fn limit(scenario: &Scenario, o: &Outcome) -> Result<(Limit, Duration)> {
    let moved = |o: &Outcome| rate(o.clients.iter().map(|c| c.bytes()).sum(), o.elapsed);
    let is_more = |a: u64, b: u64, pct: u64| u128::from(a) * 100 > u128::from(b) * u128::from(100 + pct);
    let mut quick = Scenario { host: quicker(&scenario.host), ..scenario.clone() };
    let with_quick = simulate(&quick)?;
    if is_more(moved(&with_quick), moved(o), GAIN_PCT) {
        let is_full = permille(o.disk.lock_held, o.elapsed) >= FULL_PERMILLE;
        return Ok((if is_full { Limit::Lock } else { Limit::Processor }, work(&with_quick)));
    }
    quick.jobs.jobs.iter_mut().for_each(|j| j.numjobs = j.numjobs.saturating_mul(2));
    let doubled = simulate(&quick)?;
    let has_room = is_more(moved(&doubled), moved(&with_quick), ROOM_PCT);
    Ok((if has_room { Limit::Nothing } else { Limit::Drive }, work(&with_quick) + work(&doubled)))
}

/// The host with processors and locks that are [`QUICKER`] times as quick.
fn quicker(host: &Host) -> Host {
    let part = |time: Duration| time / QUICKER;
    let lock = |lock: &Lock| Lock {
        insert: part(lock.insert),
        dispatch: part(lock.dispatch),
        complete: part(lock.complete),
        alone: part(lock.alone),
        hand_over: part(lock.hand_over),
        ..*lock
    };
    let scheduler = |&(name, e): &(&'static str, Elevator)| {
        (name, Elevator { work: part(e.work), lock: e.lock.as_ref().map(lock) })
    };
    let cores = |c: &Cores| Cores {
        call: part(c.call),
        submit: part(c.submit),
        complete: part(c.complete),
        poll: part(c.poll),
        wake: part(c.wake),
        schedulers: c.schedulers.iter().map(scheduler).collect(),
        ..c.clone()
    };
    Host {
        think: part(host.think),
        buffered: part(host.buffered),
        copy: part(host.copy),
        write_page: part(host.write_page),
        allocate: part(host.allocate),
        hole: part(host.hole),
        cores: host.cores.as_ref().map(cores),
        ..host.clone()
    }
}
