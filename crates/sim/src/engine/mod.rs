//! The machine: events in virtual time, from a client's call to the disk and back.
//!
//! ```text
//!  client lane ──CPU──► call ─┬─ direct: pieces ──────────► Disks: DiskQueue (elevator, device) ──► interrupt ──► lane
//!                             └─ buffered: pages ──► cache ──► windows of read-ahead ─►│◄─ flusher, fsync
//! ```
//!
//! One loop takes the earliest of: the device's next completion, the next event in the queue, the elevator's
//! timer. Everything else follows from there. The run is a function of its [`Scenario`]; nothing is asked of
//! the machine that it runs on.
//!
//! *Threads* are numbered: first the lanes of all clients, then the flusher's. Whatever can be waited for (a
//! request, a page, a flush, a time) keeps numbers of threads in order and hands them to [`Machine::resume`].
//!
//! The machine is made of parts that own their state. These know of nothing but what their methods take:
//!
//! | part | files |
//! |---|---|
//! | the time, and what is scheduled | `clock` |
//! | disks: queues, pools, those who wait, locks, the way to the device, and when queues are run | `disks`, `queue`, `pools`, `waiters`, `locks`, `wire`, `runs`, `earliest` |
//! | processors, by era | `cpus`; `processors`, `waiting` |
//! | a client: its pattern, program or recording, and what steers it | `client`, `pattern`, `program`, `steer`, … |
//! | files and the pages of them that are in memory | `files`, `cache` |
//! | how fast pages may be dirtied | `balance` |
//! | the time series | `series` |
//!
//! What leads through several parts are methods of the machine: a call in `lane`, on processors in `work`, in
//! memory in `buffered`, `readahead` and `flusher`; starts and ends of clients in `waves`; recordings in
//! `replay` and `traced`; groups in `groups`; observers in `observers` and `tap`. `setup` makes a machine
//! from a scenario, and `outcome` figures from the machine.

mod access;
mod action;
mod balance;
mod buffered;
mod cache;
mod capacity;
mod client;
mod clock;
mod cpus;
mod disks;
mod earliest;
mod files;
mod flusher;
mod groups;
mod lane;
mod locks;
mod memory;
mod observers;
mod outcome;
mod pattern;
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
mod series;
mod setup;
mod startup;
mod steady;
mod steer;
mod tap;
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
use lane::{Lane, Phase};
pub use memory::{Memory, memory};
pub(crate) use observers::{Books, observe, out_of_line};
use processors::{Processors, Work};
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

/// The owner of a piece: what its completion wakes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// No lane waits for it.
    None,
    /// A lane's call.
    Lane(u32),
    /// Pages on their way into memory.
    Read {
        /// Their file.
        file: u32,
        /// The first page.
        first: u32,
        /// How many.
        count: u32,
    },
    /// The entry of a request that all members of a set have.
    Shared(u32),
    /// Pages on their way to the disk.
    Write {
        /// Their file.
        file: u32,
        /// The first page.
        first: u32,
        /// How many.
        count: u32,
        /// The request is as long as it may be, and is not merged.
        alone: bool,
    },
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
    queue: Disks<'a>,
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
            let (device, timer) = self.queue.due();
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
        while let Some((member, tag)) = self.queue.poll(self.clock.now) {
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
                self.clock.now.max(self.queue.catch_up(self.clock.until).unwrap_or(self.clock.now));
        }
        self.queue.catch_up(self.clock.now);
    }

    /// The timer of an elevator is due.
    fn timer(&mut self) {
        let Some(member) = self.queue.due_timer(self.clock.now) else { return };
        // What a limit let pass is an insertion.
        if self.queue.timer(self.clock.now, member) {
            self.queue.run_member(&mut self.clock, member)
        } else {
            self.queue.run_if_wanted(&mut self.clock, member)
        }
    }

    #[inline]
    fn handle(&mut self, due: Due) {
        match due {
            Due::Completed(member, tag) => self.complete(usize::from(member), Tag(tag)),
            Due::CpuDone(lane) => self.cpu_done(lane),
            Due::Wake(thread) => self.wake(thread),
            Due::Unplug(m) | Due::RunQueue(m) | Due::Worker(m) | Due::DelayedRun(m) => {
                self.queue.run_due(&mut self.clock, due, m);
            }
            Due::Flusher => self.flusher_due(),
            Due::Interval => {
                if let Some(next) = self.series.end_interval(self.clock.now, &self.queue) {
                    self.clock.schedule(next, Due::Interval);
                }
            }
            Due::Steady => self.look_for_steadiness(),
            Due::TimeOut(client, iteration) => self.time_out(client, iteration),
            Due::Change(index) => self.change_groups(index),
        }
    }

    // ---- threads -----------------------------------------------------------------------------------------

    fn flusher_id(&self, i: usize) -> u32 {
        u32::try_from(self.lanes.len() + i).expect("threads are counted in 32 bits")
    }

    /// What a thread waited for has come.
    fn resume(&mut self, thread: u32) {
        let lanes = self.lanes.len();
        match self.lanes.get_mut(thread as usize) {
            Some(lane) => {
                lane.sleep_until = None;
                let client = lane.client as usize;
                self.clients[client].stats.cpu.switches += 1;
                if self.processors.is_some() {
                    self.add_work(thread, Work::TakeUp(thread));
                } else {
                    self.go_on(thread);
                }
            }
            None => self.resume_flusher(thread as usize - lanes),
        }
    }

    /// A time that a thread had set itself has come; unless something else came first.
    fn wake(&mut self, thread: u32) {
        let lanes = self.lanes.len();
        let lane = self.lanes.get(thread as usize);
        let (until, phase) = match lane {
            Some(lane) => (lane.sleep_until, Some(lane.phase)),
            None => (self.flushers.threads[thread as usize - lanes].sleep_until, None),
        };
        if until.is_none_or(|until| until > self.clock.now) {
            return;
        }
        if phase == Some(Phase::Pause) {
            self.lanes[thread as usize].sleep_until = None;
            self.next_step(thread);
        } else {
            self.queue.end_wait_for_congestion(thread);
            self.resume(thread);
        }
    }

    /// The interrupt handler: completes a request, runs the queue if that is its business, and only then
    /// wakes who waited.
    fn complete(&mut self, member: usize, tag: Tag) {
        let woken = &mut self.woken;
        self.queue.complete(self.clock.now, member, tag, &mut self.owners, woken);
        // Most requests are of one call, and nothing else waits for them.
        if let [Owner::Lane(lane)] = self.owners[..]
            && woken.is_empty()
        {
            let is_done = self.lanes[lane as usize].piece_done();
            return self.run_after_completion(member, is_done.then_some(lane));
        }
        for owner in &self.owners {
            match *owner {
                Owner::None | Owner::Shared(_) => {}
                Owner::Lane(lane) => {
                    if self.lanes[lane as usize].piece_done() {
                        woken.push_back(lane);
                    }
                }
                Owner::Read { file, first, count } => self.cache.read_done(file, first, count, woken),
                Owner::Write { file, first, count, .. } => {
                    self.cache.stats.pages_written += u64::from(count);
                    self.cache.write_done(file, first, count, woken);
                }
            }
        }
        self.run_after_completion(member, None);
    }

    /// Resumes the lane whose call has ended, and who else waited for that.
    #[inline]
    fn resume_owners(&mut self, lane: Option<u32>) {
        if let Some(lane) = lane {
            self.resume(lane);
        }
        while let Some(thread) = self.woken.pop_front() {
            self.resume(thread);
        }
    }

    /// Runs a queue after a completion, if that is its business. Then the owners of what has completed are
    /// resumed, and threads that wait for requests.
    ///
    /// Where processors are modelled one by one, a thread that waits for a request is woken after the owner
    /// of the completed one, and only then looks whether there is a request: the owner may have taken it for
    /// its next call. Elsewhere it gets the request at once.
    fn run_after_completion(&mut self, member: usize, owner: Option<u32>) {
        self.queue.run_if_wanted(&mut self.clock, member);
        if self.queue.waiting(member) == 0 {
            return self.resume_owners(owner);
        }
        if self.processors.is_some() {
            let can_wake = self.queue.can_wake(member);
            let waiters: Vec<u32> = (0..can_wake).map_while(|_| self.queue.pop_waiter(member)).collect();
            let (first, last): (Vec<u32>, Vec<u32>) =
                waiters.into_iter().partition(|&thread| owner.is_some_and(|o| self.runs_before(thread, o)));
            first.into_iter().for_each(|thread| self.retry(thread));
            self.resume_owners(owner);
            last.into_iter().for_each(|thread| self.retry(thread));
            return;
        }
        // Each that waits for a request gets one chance: there may be fewer free ones than it needs.
        for _ in 0..self.queue.waiting(member) {
            let Some(thread) = self.queue.pop_waiter(member) else { break };
            self.grant_batch(thread);
            // The first in line takes what is free before the next one is looked at.
            if (thread as usize) < self.lanes.len() { self.go_on(thread) } else { self.resume(thread) }
        }
        self.resume_owners(owner);
    }

    /// Whether of two threads that are woken at one instant the first comes before the other on a processor.
    fn runs_before(&self, thread: u32, other: u32) -> bool {
        let (Some(a), Some(b)) = (self.lanes.get(thread as usize), self.lanes.get(other as usize)) else {
            return true;
        };
        self.processors.as_ref().is_some_and(|p| p.had(a.client as usize) < p.had(b.client as usize))
    }

    /// A thread that waits for a request is woken, and tries again when it is on a processor.
    fn retry(&mut self, thread: u32) {
        self.grant_batch(thread);
        match self.lanes.get(thread as usize) {
            Some(lane) => {
                self.clients[lane.client as usize].stats.cpu.switches += 1;
                self.add_work(thread, Work::Retry(thread));
            }
            None => self.resume(thread),
        }
    }

    fn grant_batch(&mut self, thread: u32) {
        let lanes = self.lanes.len();
        let batch = match self.lanes.get_mut(thread as usize) {
            Some(lane) => &mut lane.batch,
            None => &mut self.flushers.threads[thread as usize - lanes].batch,
        };
        *batch = batch.granted(self.clock.now);
    }
}
