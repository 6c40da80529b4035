//! Where a client's time went: what it waited for, behind which other clients, and why.
//!
//! [`explain`] runs a scenario as [`crate::simulate`] does and accounts for the time of some of its clients.
//! At any instant a client is in exactly one of these states, so that the parts add up to its time, to the
//! nanosecond:
//!
//! ```text
//!   paused ─► computing ─► waits for a tag ─► queued ──────────────────────────► in the device ─► (next call)
//!                                              ├ the device works for X            ├ on others, X: behind X there
//!                                              ├ the disk idles on purpose for Y   └ on this one: served
//!                                              └ held: plug, lock, no client's turn
//! ```
//!
//! * If a call waits for several requests (a large read, an fsync), the most advanced one counts.
//! * If several calls are in flight (`iodepth`), the one that began first counts: the client has waited for
//!   it longest.
//! * A device does not say what it is working on. The time from one completion to the next, or from the first
//!   request that it got while empty, is taken as spent on the request that completes. For a drive that works
//!   on one thing at a time that is what it does, up to reading ahead; a flash drive works on many at once,
//!   so that *behind others* there means *beside others*.
//! * The client that the disk idles for is the one that the scheduler's trace names, or else the one whose
//!   turn it was.
//!
//! Example: a read of `a` arrives at 0 ms while the disk serves `b` until 4 ms; `b`'s turn continues, the
//! disk idles for it until 12 ms, then serves `a` until 20 ms. Of `a`'s 20 ms, 4 are *queued behind b*, 8
//! *the disk idled for b*, 8 *served*.
//!
//! [`answer`] compares a part of the run with the rest of it, and explains why the clients were slow in it.
//!
//! It is made from events as they happen: the lanes of the clients in question, the driver's tags, and the
//! trace of the elevator, which is emptied after every call of it. Memory is bounded by the numbers of
//! clients and tags and by [`SLOWEST`]. Without a question none of this code runs, and the trace has no
//! entries.

mod recorder;
mod window;

pub use window::{Calls, Cause, Decision, KEPT, Kind, When, Window, WindowReport, answer};

pub(crate) use recorder::{Doing, Followers, Recorder, Status, Wait, gives_turn};
pub(crate) use window::time;

use crate::engine::{Books, Scenario, observe};
use crate::job::{JobFile, nearest};
use crate::metrics::{Outcome, Result};
use fairhead_core::trace::Reason;
use fairhead_core::{Duration, TaskId};

/// The number of slowest calls that are reported.
pub const SLOWEST: usize = 5;

/// Runs a scenario and explains where the time of some clients went, by their indices into
/// [`Outcome::clients`].
///
/// The outcome is that of [`crate::simulate`].
///
/// # Errors
/// If the scenario is impossible: see [`crate::SimError`].
pub fn explain(scenario: &Scenario, clients: &[usize]) -> Result<(Outcome, Report)> {
    let (outcome, report) = observe(scenario, Some(Books { clients, window: None, ceiling: None }), None)?;
    Ok((outcome, report.expect("clients were given")))
}

/// Explains as [`explain`] does, but tells the slowest of the calls that took no longer than `ceiling`.
///
/// With a percentile as the ceiling the first of [`Report::slowest`] is the call at that percentile.
///
/// # Errors
/// If the scenario is impossible: see [`crate::SimError`].
pub fn explain_up_to(scenario: &Scenario, clients: &[usize], ceiling: Duration) -> Result<(Outcome, Report)> {
    let books = Books { clients, window: None, ceiling: Some(ceiling) };
    let (outcome, report) = observe(scenario, Some(books), None)?;
    Ok((outcome, report.expect("clients were given")))
}

/// Returns the indices of the clients that `name` means: all clones of a job, or one clone as `JOB.CLONE`.
///
/// ```
/// use fairhead_sim::{job, why};
/// let jobs = job::parse("[a]\nsize=1m\nnumjobs=3\n[b]\nsize=1m\n", "x.fio").unwrap();
/// assert_eq!(why::select(&jobs, "a").unwrap(), [0, 1, 2]);
/// assert_eq!(why::select(&jobs, "a.1").unwrap(), [1]);
/// assert!(why::select(&jobs, "c").unwrap_err().contains("'c'"));
/// ```
///
/// # Errors
/// If there is no such client: one line with the known names.
pub fn select(jobs: &JobFile, name: &str) -> std::result::Result<Vec<usize>, String> {
    let names: Vec<(&str, String)> =
        jobs.clients().map(|c| (c.job.name.as_str(), format!("{}.{}", c.job.name, c.clone))).collect();
    let of = |wanted: &dyn Fn(&(&str, String)) -> bool| -> Vec<usize> {
        names.iter().enumerate().filter(|(_, n)| wanted(n)).map(|(i, _)| i).collect()
    };
    let job = of(&|n| n.0 == name);
    let found = if job.is_empty() { of(&|n| n.1 == name) } else { job };
    if !found.is_empty() {
        return Ok(found);
    }
    let mut known: Vec<String> = Vec::new();
    for job in &jobs.jobs {
        known.push(match job.numjobs {
            1 => job.name.clone(),
            n => format!("{0} ({0}.0 to {0}.{1})", job.name, n - 1),
        });
    }
    known.dedup();
    let guess = nearest(name, jobs.jobs.iter().map(|j| j.name.as_str()));
    let guess = guess.map_or_else(String::new, |word| format!("; did you mean '{word}'?"));
    Err(format!("no client '{name}'; there are {}{guess}", known.join(", ")))
}

/// The account of some clients' time.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The clients that are explained.
    pub clients: Vec<ClientReport>,
    /// The sum over all of them.
    pub total: Account,
    /// The part of it that they waited at each disk, in the order of the job file; empty if there is one
    /// disk.
    pub disks: Vec<OnDisk>,
    /// The account of a part of the run, and why calls were slow then, if that was asked.
    pub window: Option<WindowReport>,
    /// The slowest calls of the clients, the slowest first; at most [`SLOWEST`].
    pub slowest: Vec<Story>,
    /// The names of all tasks, by [`TaskId`]: the clients and the host's threads that write dirty pages.
    pub names: Vec<String>,
    /// The scheduler's last estimate of the device's peak rate, in 2^-16 sectors per microsecond, if it makes
    /// any; none of several devices.
    pub peak_rate: Option<u64>,
    /// The number of events that the trace lost. If it is not 0, the clients that the disk idled for may be
    /// wrong.
    pub lost: u64,
}

impl Report {
    /// Returns a task's name.
    #[must_use]
    pub fn name(&self, task: TaskId) -> &str {
        self.names.get(task.0 as usize).map_or("nobody", String::as_str)
    }
}

/// The part of the clients' time that was spent waiting at one of several disks: for its tags, in its queue,
/// in the device. Time that they compute or pause is no part of it.
#[derive(Clone, Debug, PartialEq)]
pub struct OnDisk {
    /// The disk's name.
    pub disk: String,
    /// The parts of the time.
    pub account: Account,
}

/// One client's time.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientReport {
    /// The client: an index into [`Outcome::clients`].
    pub client: usize,
    /// The name of the client: the job's, with the number of the clone if it has several.
    pub name: String,
    /// The parts of its time.
    pub account: Account,
}

/// The parts of a client's time. They add up to it, except for the fields that overlap with others.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Account {
    /// Time asleep by the client's own choice: think time, a cap on its rate.
    pub paused: Duration,
    /// Time on a CPU, or waiting for one.
    pub computing: Duration,
    /// Time waiting for a tag, because all were in use.
    pub tag: Duration,
    /// Time held back because too many pages were dirty.
    pub throttled: Duration,
    /// Time queued while the device was empty and the scheduler did not idle: the plug, the scheduler's lock,
    /// the grace period of the idle class.
    pub held: Duration,
    /// Time in which the device worked on the client's own request.
    pub served: Duration,
    /// The waits behind each other task, in the order of their first appearance. The client itself may be one
    /// of them: with its other requests, and with idling for it while it had requests queued.
    pub blame: Vec<Blame>,
    /// Overlaps: paused or computing while other requests waited, because the disk idled for this client.
    pub idled_for_it: Duration,
    /// Overlaps: time with its weight raised as interactive.
    pub raised_interactive: Duration,
    /// Overlaps: time with its weight raised as soft real-time.
    pub raised_soft_real_time: Duration,
    /// Why its requests were chosen, and how often.
    pub chosen: Vec<(Reason, u64)>,
    /// The scheduler's notes about it, such as how its turns ended, and how often.
    pub noted: Vec<(Reason, u64)>,
}

/// The waits behind one other task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blame {
    /// The task that was waited for.
    pub task: TaskId,
    /// Time queued while the device worked for it.
    pub queued: Duration,
    /// Time queued while the disk idled for it.
    pub idled: Duration,
    /// Time in the device while the device worked for it.
    pub device: Duration,
}

impl Blame {
    const fn new(task: TaskId) -> Self {
        Self { task, queued: Duration::ZERO, idled: Duration::ZERO, device: Duration::ZERO }
    }

    /// Returns the sum of these waits.
    #[must_use]
    pub fn total(&self) -> Duration {
        self.queued + self.idled + self.device
    }
}

impl Account {
    /// Returns the sum of all parts, which is the client's time.
    #[must_use]
    pub fn total(&self) -> Duration {
        let own = self.paused + self.computing + self.tag + self.throttled + self.held + self.served;
        self.blame.iter().fold(own, |sum, b| sum + b.total())
    }

    /// Returns the time queued while the device worked for others.
    #[must_use]
    pub fn queued(&self) -> Duration {
        self.blame.iter().fold(Duration::ZERO, |sum, b| sum + b.queued)
    }

    /// Returns the time queued while the disk idled for any client.
    #[must_use]
    pub fn idled(&self) -> Duration {
        self.blame.iter().fold(Duration::ZERO, |sum, b| sum + b.idled)
    }

    /// Returns the time in the device while it worked for others.
    #[must_use]
    pub fn device(&self) -> Duration {
        self.blame.iter().fold(Duration::ZERO, |sum, b| sum + b.device)
    }

    fn blame(&mut self, task: TaskId) -> &mut Blame {
        let at = self.blame.iter().position(|b| b.task == task).unwrap_or_else(|| {
            self.blame.push(Blame::new(task));
            self.blame.len() - 1
        });
        &mut self.blame[at]
    }

    /// Adds the parts of another account.
    fn add(&mut self, other: &Self) {
        self.paused += other.paused;
        self.computing += other.computing;
        self.tag += other.tag;
        self.throttled += other.throttled;
        self.held += other.held;
        self.served += other.served;
        self.idled_for_it += other.idled_for_it;
        self.raised_interactive += other.raised_interactive;
        self.raised_soft_real_time += other.raised_soft_real_time;
        for b in &other.blame {
            let mine = self.blame(b.task);
            mine.queued += b.queued;
            mine.idled += b.idled;
            mine.device += b.device;
        }
        other.chosen.iter().for_each(|&(reason, n)| count(&mut self.chosen, reason, n));
        other.noted.iter().for_each(|&(reason, n)| count(&mut self.noted, reason, n));
    }
}

fn count(list: &mut Vec<(Reason, u64)>, reason: Reason, n: u64) {
    match list.iter_mut().find(|e| e.0 == reason) {
        Some(entry) => entry.1 += n,
        None => list.push((reason, n)),
    }
}

/// The kind of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallKind {
    /// A read.
    Read,
    /// A write, to the disk or to memory.
    Write,
    /// A trim: sectors are no longer needed.
    Trim,
    /// A sync: everything must be on the disk.
    Sync,
}

/// One call, and what happened to it.
#[derive(Clone, Debug, PartialEq)]
pub struct Story {
    /// The client that made it.
    pub client: usize,
    /// When it ended, from the start of the run.
    pub ended: Duration,
    /// Whether the call ended; if not, the run ended then.
    pub over: bool,
    /// The time that it took.
    pub took: Duration,
    /// The kind of call.
    pub kind: CallKind,
    /// The length of the call, in bytes.
    pub bytes: u64,
    /// The parts of its time.
    pub account: Account,
    /// The steps of the call, one after the other, which cover all of its time. Empty unless a window was
    /// asked about.
    pub steps: Vec<Step>,
    /// Why its last request was chosen.
    pub chosen: Reason,
}

/// A step of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// What the call does or waits for in this step.
    pub phase: Phase,
    /// From when, from the start of the run.
    pub from: Duration,
    /// Until when.
    pub to: Duration,
    /// The parts of that time.
    pub account: Account,
}

/// What a call does or waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Its own work on a CPU.
    Computing,
    /// A request of the pool.
    Tag,
    /// Fewer dirty pages.
    Throttled,
    /// The scheduler.
    Queued,
    /// The device.
    InDevice,
}

/// A reason in a few words.
#[must_use]
pub const fn words(reason: Reason) -> &'static str {
    match reason {
        Reason::None => "no reason given",
        Reason::Arrival => "its turn in order of arrival",
        Reason::Batch => "next in sector order in a batch",
        Reason::NewBatch => "first of a new batch",
        Reason::FifoExpired => "its deadline had passed",
        Reason::WritesStarved => "writes had been passed over often enough",
        Reason::Aged => "it had waited so long that its class no longer counted",
        Reason::Requeued => "handed back by the device",
        Reason::Nearest => "the cheapest to reach",
        Reason::Drain => "everything was drained",
        Reason::Anticipate => "the disk waited for its next request",
        Reason::AnticipationHit => "the awaited request came",
        Reason::AnticipationClose => "a request close to the awaited one came",
        Reason::AnticipationTimeout => "waiting for it took too long",
        Reason::AnticipationUseless => "waiting for it makes no sense",
        Reason::BatchChange => "the direction of batches changed",
        Reason::SliceIdle => "the disk idled for its next request",
        Reason::WorkloadIdle => "the disk idled for its workload's next request",
        Reason::GroupIdle => "the disk idled for its group's next request",
        Reason::SliceStart => "got the disk",
        Reason::SliceUsed => "its time was up",
        Reason::SliceEmpty => "it had nothing more to do",
        Reason::IdleTimeout => "its next request came too late",
        Reason::AsyncQuota => "it had sent as many async requests as it may",
        Reason::Preempted => "a more urgent queue took the disk away",
        Reason::Cooperator => "a queue near the head was served instead",
        Reason::QueueMerge => "merged with a queue that reads the same stream",
        Reason::QueueSplit => "split from a queue that read another stream",
        Reason::TaskExit => "it ended",
        Reason::Depth => "as many at the device as it may have",
        Reason::NoToken => "its domain had no tokens left",
        Reason::HigherClass => "a higher class was at the device",
        Reason::DrainKind => "the other kind had to finish first",
        Reason::BudgetExhausted => "its budget was used up",
        Reason::BudgetTimeout => "the time for its budget was up",
        Reason::Times => "new virtual times",
        Reason::RaisedInteractive => "raised as interactive",
        Reason::RaisedSoftRealTime => "raised as soft real-time",
        Reason::RaisedAsync => "raised as a rare async writer",
        Reason::RaiseEnd => "no longer raised",
        Reason::LargeBurst => "one of many that began at once",
        Reason::RateUpdate => "the device's rate was estimated anew",
        Reason::Injected => "injected while the disk idled for another",
        Reason::Waker => "it wakes the one whose turn it was, or is woken by it",
        Reason::Actuator => "its actuator had too little to do",
        Reason::WakerFound => "found to be woken by another",
        Reason::Reserved => "its group has a guarantee of requests a second",
        Reason::Protected => "the device seemed to pass it over",
        Reason::Limit => "the limit of its group was used up",
    }
}
