//! The machine: events in virtual time, from a client's call to the disk and back.
//!
//! ```text
//!  lane ──CPU──► call ─┬─ direct: pieces ─────────► Disks ─► DiskQueue ─► Wire ─► device ─► interrupt ─► threads
//!                      └─ buffered: pages ─► cache ─► read-ahead ─►│◄─ flusher, fsync
//! ```
//!
//! One loop takes the earliest of: the device's next completion, the next event in the queue, the elevator's
//! timer. Everything else follows from there. The run is a function of its [`Scenario`]; nothing is asked of
//! the machine that it runs on.
//!
//! *Threads* are numbered: first the lanes of all clients, then the flusher's. Whatever can be waited for (a
//! request, a page, a flush, a time) keeps numbers of threads in order and hands them to [`Machine::resume`].
//!
//! The machine is made of parts that own their state. These know of nothing but what their methods take, and
//! import each other in one direction only:
//!
//! | part | files |
//! |---|---|
//! | the time, and what is scheduled | `clock` |
//! | disks, and how a set spreads requests over its members | `disks`, `set` |
//! | a disk's queue: pools, those who wait, locks, the way to the device, its observer | `queue`, `pools`, `waiters`, `locks`, `wire`, `tap` |
//! | when queues are run | `runs`, `earliest` |
//! | processors, by era | `cpus`; `processors`, `waiting` |
//! | a client, its calls, and what says which it makes | `client`, `call`, `per_call`, `script`; `pattern`, `program`, `startup`, `player` |
//! | what steers a client | `steer`, `reads_again`, `readahead` |
//! | files and the pages of them that are in memory | `files`, `cache` |
//! | how fast pages may be dirtied | `balance` |
//! | the time series | `series` |
//!
//! What leads through several parts are methods of the machine: what wakes a thread in `threads`; a call in
//! `lane`, on processors in `work`, in memory in `buffered` and `flusher`; starts and ends of clients in
//! `waves`, of what they look at in `steady`; recordings in `replay` and `traced`; groups in `groups`;
//! observers in `observers`. `setup` makes a machine from a scenario, and `outcome` figures from the machine.
//! These files and this one are one room: they call each other's methods, as [`Machine`] is theirs together.

mod access;
mod action;
mod balance;
mod buffered;
mod cache;
mod call;
mod capacity;
mod client;
mod clock;
mod cpus;
mod disks;
mod earliest;
mod files;
mod flusher;
mod frames;
mod groups;
mod lane;
mod locks;
pub(crate) mod memory;
mod observers;
mod outcome;
mod owner;
mod pattern;
mod per_call;
mod phase;
mod player;
mod pools;
mod processors;
mod program;
mod queue;
mod readahead;
mod reads_again;
mod replay;
mod runs;
mod script;
mod series;
mod set;
mod setup;
mod startup;
mod steady;
mod steer;
mod tap;
mod threads;
mod traced;
mod waiters;
mod waiting;
mod waves;
mod wire;
mod work;
mod zones;

use crate::error::SimError;
use crate::event::Due;
use crate::host::Host;
use crate::job::JobFile;
use crate::metrics::{Outcome, Result};
use crate::rng::Rng;
use crate::why;
use balance::Balance;
use cache::Cache;
pub use capacity::measure as capacity;
use client::Client;
use clock::Clock;
use cpus::Cpus;
use disks::Disks;
use fairhead_core::sched::any::AnyConfig;
use fairhead_core::{Duration, Instant, Tag};
use fairhead_device::DeviceParams;
use files::Files;
use flusher::Flushers;
use groups::Groups;
pub use groups::groups_kept;
use lane::Lane;
pub(crate) use observers::{Books, observe};
pub(crate) use owner::Owner;
use processors::Processors;
use replay::Replay;
use series::Series;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use traced::Traced;
use waves::Waves;

/// Everything that decides a run.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The load.
    pub jobs: JobFile,
    /// The disk; where there are several, those whose model the jobs do not say.
    pub disk: DeviceParams,
    /// The machine around it.
    pub host: Host,
    /// The scheduler's name, for the report and its cost on the host's CPU.
    pub scheduler: String,
    /// The scheduler.
    pub config: AnyConfig,
    /// The seed of all chance.
    pub seed: u64,
    /// The length of an interval of the time series; none: no series. Of a run with more than a million
    /// points it is doubled until they are fewer.
    pub interval: Option<Duration>,
    /// Stop after that much virtual time even if clients have not ended.
    pub time_max: Option<Duration>,
    /// How often the disk time of control groups is looked at; none: never. Looking changes nothing.
    pub watch: Option<Duration>,
}

impl Scenario {
    /// Returns a run of a load on a disk, with seed 1, until all clients have ended. It has no time series
    /// and no samples of groups: their fields can be set.
    #[must_use]
    pub fn new(jobs: JobFile, disk: DeviceParams, host: Host, scheduler: &str, config: AnyConfig) -> Self {
        let (scheduler, seed) = (scheduler.to_owned(), 1);
        Self { jobs, disk, host, scheduler, config, seed, interval: None, time_max: None, watch: None }
    }
}

/// Runs a scenario.
///
/// # Errors
/// If the scenario cannot be: a tunable out of range, an impossible disk, files that do not fit.
pub fn simulate(scenario: &Scenario) -> Result<Outcome> {
    Machine::new(scenario, 0)?.run(scenario).map(|(outcome, _)| outcome)
}

/// Runs a scenario as [`simulate`] does. `None`, an event later, if `stop` becomes true meanwhile.
///
/// # Errors
/// If the scenario cannot be: see [`simulate`].
pub fn simulate_unless(scenario: &Scenario, stop: &AtomicBool) -> Result<Option<Outcome>> {
    let mut machine = Machine::new(scenario, 0)?;
    machine.stop = Some(stop);
    let outcome = machine.run(scenario);
    if stop.load(Ordering::Relaxed) {
        return Ok(None);
    }
    outcome.map(|(outcome, _)| Some(outcome))
}

/// All parts of the lab, each of which has its own file and owns its state. What follows from an event goes
/// through several parts; the methods for that are in the file of the part that it begins with.
struct Machine<'a> {
    host: &'a Host,
    clock: Clock,
    // The load: clients, the lanes that they make calls in, and what leads those that replay a recording.
    clients: Vec<Client>,
    lanes: Vec<Lane>,
    /// By job.
    replays: Vec<Option<Replay>>,
    traces: Vec<Traced>,
    waves: Waves,
    steady: steady::Watches,
    /// The number of the next process that a client starts.
    next_task: u32,
    // Processors: of hosts before the multi-queue era, and of later ones.
    cpus: Cpus,
    processors: Option<Processors>,
    /// Several calls are being submitted as one batch.
    is_submitting: bool,
    // Memory.
    files: Files,
    cache: Cache,
    balance: Balance,
    flushers: Flushers,
    // Disks, and the groups that share them.
    disks: Disks<'a>,
    groups: Groups<'a>,
    watch: groups::Watch,
    /// How much longer than usual interrupts take.
    jitter: Rng,
    // What comes out.
    series: Series,
    /// The journal, if the run is observed.
    journal: Option<tap::Journal<'a>>,
    /// Whether the queue has books of where time goes.
    keeps_books: bool,
    /// Nothing is handled any more: all clients have ended, or one of these is why.
    ended: bool,
    /// What ends the run from outside, if something may.
    stop: Option<&'a AtomicBool>,
    failed: Option<SimError>,
    /// The client that found the disk full.
    disk_full: Option<u32>,
    // Scratch space.
    owners: Vec<Owner>,
    woken: VecDeque<u32>,
    touched: Vec<u32>,
}

impl<'a> Machine<'a> {
    fn run(mut self, scenario: &Scenario) -> Result<(Outcome, Option<why::Report>)> {
        for (change, i) in scenario.jobs.changes.iter().zip(0..) {
            self.clock.after(change.at, Due::Change(i));
        }
        self.begin_to_look();
        self.start_wave();
        self.run_events();
        self.finish(scenario)
    }

    /// Ends the run without figures.
    #[cold]
    fn fail(&mut self, error: SimError) {
        (self.failed, self.ended) = (Some(error), true);
    }

    /// Ends the run: a client found no space on its disk.
    #[cold]
    fn end_at_full_disk(&mut self, client: u32) {
        (self.disk_full, self.ended) = (Some(client), true);
    }

    /// Handles one event after the other, until all clients have ended or time is up.
    fn run_events(&mut self) {
        loop {
            let (device, timer) = self.disks.due();
            let event = self.clock.next_at();
            let at = event.min(device).min(timer);
            if at > self.clock.until || at == Clock::NEVER || self.ended || self.is_stopped() {
                return self.end(at);
            }
            self.sample(at);
            self.clock.advance(at);
            let now = self.clock.now;
            self.why(|why| why.settle(now));
            self.journal(|journal| journal.at(now));
            // At one instant the devices come first, then events by class, then the elevators' timers.
            if device == at {
                self.interrupts();
            } else if event == at {
                if let Some(due) = self.clock.take_next() {
                    self.handle(due);
                }
            } else {
                self.timer();
            }
        }
    }

    #[inline]
    fn is_stopped(&self) -> bool {
        self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
    }

    /// Devices have finished commands: their interrupts come after the way back.
    #[inline]
    fn interrupts(&mut self) {
        while let Some((member, tag)) = self.disks.poll(self.clock.now) {
            let way_back = self.host.path + self.jitter.exponential(self.host.path_jitter);
            let irq = way_back + self.host.irq + self.jitter.exponential(self.host.irq_jitter);
            if irq.is_zero() {
                self.complete(usize::from(member), tag);
            } else {
                self.clock.after(irq, Due::Completed(member, tag.0));
            }
        }
    }

    /// The run is over before `at`.
    #[cold]
    fn end(&mut self, at: Instant) {
        if at > self.clock.until && !self.ended {
            // What a drive was at by then.
            self.clock.now =
                self.clock.now.max(self.disks.catch_up(self.clock.until).unwrap_or(self.clock.now));
        }
        self.disks.catch_up(self.clock.now);
    }

    /// The timer of an elevator is due.
    fn timer(&mut self) {
        let Some(member) = self.disks.due_timer(self.clock.now) else { return };
        // What a limit let pass is an insertion.
        if self.disks.queue_mut(member).timer(self.clock.now) {
            self.disks.run_member(&mut self.clock, member)
        } else {
            self.disks.run_if_wanted(&mut self.clock, member)
        }
    }

    #[inline]
    fn handle(&mut self, due: Due) {
        match due {
            Due::Completed(member, tag) => self.complete(usize::from(member), Tag(tag)),
            Due::CpuDone(lane) => self.cpu_done(lane),
            Due::Wake(thread) => self.wake(thread),
            Due::Unplug(m) | Due::RunQueue(m) | Due::Worker(m) | Due::DelayedRun(m) => {
                self.disks.run_due(&mut self.clock, due, m);
            }
            Due::Flusher => self.flusher_due(),
            Due::Interval => {
                if let Some(next) = self.series.end_interval(self.clock.now, &self.disks) {
                    self.clock.schedule(next, Due::Interval);
                }
            }
            Due::Steady => self.look_for_steadiness(),
            Due::TimeOut(client, iteration) => self.time_out(client, iteration),
            Due::Change(index) => self.change_groups(index),
        }
    }
}
