//! The machine: events in virtual time, from a client's call to the disk and back.
//!
//! ```text
//!  client lane ──CPU──► call ─┬─ direct: pieces ──────────► Volume: DiskQueue (elevator, device) ──► interrupt ──► lane
//!                             └─ buffered: pages ──► cache ──► windows of read-ahead ─►│◄─ flusher, fsync
//! ```
//!
//! One loop takes the earliest of: the device's next completion, the next event in the queue, the elevator's
//! timer. Everything else follows from there. The run is a function of its [`Scenario`]; nothing is asked of
//! the machine that it runs on.
//!
//! *Threads* are numbered: first the lanes of all clients, then the flusher's. Whatever can be waited for (a
//! request, a page, a flush, a time) keeps numbers of threads in order and hands them to [`Machine::resume`].

mod access;
mod action;
mod buffered;
mod cache;
mod capacity;
mod client;
mod disks;
mod earliest;
mod files;
mod flusher;
mod groups;
mod lane;
mod locks;
mod memory;
mod pattern;
mod phase;
mod player;
mod pools;
mod processors;
mod program;
mod queue;
mod readahead;
mod replay;
mod startup;
mod steady;
mod steer;
mod traced;
mod waiting;
mod work;
mod zones;

use crate::error::SimError;
use crate::event::{Due, Events};
use crate::host::{Host, Plug};
use crate::job::{self, DiskId, Distribution, JobFile, Program, Size};
use crate::journal::{self, Sink};
use crate::metrics::{CacheStats, DiskOutcome, DiskPoint, DiskStats, Outcome, Point, Result, Together};
use crate::rng::Rng;
use crate::why::{self, Recorder};
use cache::Cache;
pub use capacity::measure as capacity;
use client::{Client, Region};
use disks::{Disks, Wanted};
use earliest::Earliest;
use fairhead_core::sched::any::{AnyConfig, preset};
use fairhead_core::{Duration, GroupId, Instant, Tag, TaskId};
use fairhead_device::DeviceParams;
use files::Files;
use groups::Groups;
pub use groups::groups_kept;
use lane::{Lane, Phase};
pub use memory::{Memory, memory};
use processors::{Processors, Work};
use queue::Sizes;
use replay::Replay;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use steer::Flows;
use traced::Traced;

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
    },
}

/// Runs a scenario.
///
/// # Errors
/// If the scenario cannot be: a tunable out of range, an impossible disk, files that do not fit.
pub fn simulate(scenario: &Scenario) -> Result<Outcome> {
    Machine::new(scenario, 0)?.run(scenario).map(|(outcome, _)| outcome)
}

/// Books of where the time of some clients goes, of a part of the run apart if one is asked about.
#[derive(Clone, Copy)]
pub(crate) struct Books<'b> {
    pub(crate) clients: &'b [usize],
    pub(crate) window: Option<why::Window>,
}

/// Simulates; keeps books, and tells a sink what happens.
pub(crate) fn observe<'a>(
    scenario: &'a Scenario,
    books: Option<Books<'_>>,
    sink: Option<&'a mut dyn Sink>,
) -> Result<(Outcome, Option<why::Report>)> {
    let mut machine = Machine::new(scenario, TRACE)?;
    let run = machine.describe(scenario);
    let books = books.map(|books| machine.books(&run, books));
    machine.keeps_books = books.is_some();
    machine.journal = sink.map(|sink| Rc::new(RefCell::new(machine.begin_journal(&run, sink))));
    machine.queue.listen(books, machine.journal.clone());
    machine.run(scenario)
}

/// Calls an observer. Few runs are observed, and all pay for the code of observers in the loop: there it is
/// only a test and a call, and the rest is elsewhere.
#[cold]
#[inline(never)]
pub(crate) fn out_of_line<T>(tell: impl FnOnce() -> T) -> T {
    tell()
}

/// Later than anything that happens.
const NEVER: Instant = Earliest::NEVER;

/// Points of the time series, all clients together: a run that has more has longer intervals, as its memory
/// is bounded.
const POINTS_MAX: usize = 1 << 20;

/// Events of the elevator that are kept until its call is over: more than any one call makes.
const TRACE: u32 = 1 << 14;

struct Machine<'a> {
    now: Instant,
    events: Events,
    queue: Disks<'a>,
    /// The journal, if the run is observed.
    journal: Option<queue::Journal<'a>>,
    /// Whether the queue has books of where time goes.
    keeps_books: bool,
    groups: Groups<'a>,
    watch: groups::Watch,
    files: Files,
    cache: Cache,
    clients: Vec<Client>,
    lanes: Vec<Lane>,
    /// By job.
    replays: Vec<Option<Replay>>,
    traces: Vec<Traced>,
    steady: Vec<steady::Watch>,
    steady_at: Instant,
    /// What ends the run before its end.
    failed: Option<SimError>,
    flushers: Vec<flusher::Thread>,
    flusher_armed: bool,
    host: &'a Host,
    /// By queue: which runs are coming.
    coming: Vec<Coming>,
    /// In pages; above the first the flusher works, above the second no process may dirty more.
    dirty_background: u32,
    dirty_hard: u32,
    limit_exceeded: bool,
    jitter: Rng,
    starts: Rng,
    cpus: lane::Cpus,
    cpu_queue: VecDeque<(u32, Duration)>,
    /// Which process runs where, on hosts of the multi-queue era.
    processors: Option<Processors>,
    /// How long work takes.
    cpu_chance: Rng,
    /// Several calls are being submitted as one batch.
    is_submitting: bool,
    /// The number of the next process that a client starts.
    next_task: u32,
    /// The wave that runs, and how many of its clients have not ended.
    wave: u32,
    wave_clients: u32,
    /// How many clients wait for a job to end before they start.
    clients_waiting: u32,
    /// How many clients of each job have not ended, of the wave that runs.
    jobs_left: Vec<u32>,
    /// When all jobs of the wave have started, as long as none has ended; none if there is one job only.
    together_from: Option<Instant>,
    /// A job has `exitall`: the first client to end ends all of its reporting group.
    exit_all: bool,
    ended: bool,
    /// No `exit_what=all` has ended all waves.
    waves_left: bool,
    /// The client that found the disk full.
    disk_full: Option<u32>,
    time_max: Instant,
    interval: Option<Duration>,
    series: Vec<Vec<Point>>,
    current: Vec<Point>,
    disk_series: Vec<DiskPoint>,
    disk_before: DiskPoint,
    /// Of each disk, if there are several: its series, and its figures at the last interval's end.
    series_of: Vec<(Vec<DiskPoint>, DiskPoint)>,
    cache_stats: CacheStats,
    handled: u64,
    // Scratch space.
    owners: Vec<Owner>,
    woken: VecDeque<u32>,
    touched: Vec<u32>,
}

impl<'a> Machine<'a> {
    #[allow(clippy::too_many_lines, reason = "most are a list of fields, one in a line")]
    fn new(scenario: &'a Scenario, trace: u32) -> Result<Self> {
        let (jobs, host) = (&scenario.jobs, &scenario.host);
        let (flushers, tasks) = Self::flushers_and_tasks(jobs, host);
        let mut groups = Groups::of(jobs);
        // A process that has ended may leave requests behind while the next one starts.
        let starters = jobs.clients().filter(|c| c.job.iterations > 1).count();
        let slots = tasks + u32::try_from(starters).unwrap_or(0);
        let sizes = Sizes { tasks: slots, groups: groups.count(), guarantees: groups.has_guarantees() };
        let mut queue = Disks::new(&wanted_disks(scenario)?, host, sizes, trace)?;
        groups::give(&mut groups, &mut queue)?;
        let files = Files::place(jobs, queue.all_facts().map(|f| f.capacity), scenario.seed)?;
        let cache = Cache::new(host.memory, files.files.len());
        let (mut clients, lanes) = Self::make_clients(scenario, &files, &groups)?;
        let (traces, replays) = (traced::traces(&mut clients)?, replays(scenario)?);
        for client in &mut clients {
            client.is_led = client.traced.is_some() || replays[client.stats.job].is_some();
        }
        let processors = work::processors(jobs, host)?;
        let share = |percent: u8| u64::from(cache.capacity()) * u64::from(percent) / 100;
        let pages = |percent: u8| u32::try_from(share(percent)).unwrap_or(u32::MAX);
        Ok(Self {
            now: Instant::EPOCH,
            events: Events::default(),
            journal: None,
            keeps_books: false,
            watch: groups::Watch::new(scenario.watch, groups.count()),
            groups,
            files,
            current: vec![Point::default(); clients.len()],
            clients,
            lanes,
            replays,
            traces,
            steady: steady::watches(jobs),
            steady_at: Instant::EPOCH,
            failed: None,
            flushers,
            flusher_armed: false,
            host,
            coming: vec![Coming::default(); usize::from(queue.members())],
            series_of: several(queue.count()),
            queue,
            dirty_background: pages(host.dirty_background_pct),
            dirty_hard: pages(host.dirty_pct),
            cache,
            limit_exceeded: false,
            jitter: Rng::new(scenario.seed, "host.jitter"),
            starts: Rng::new(scenario.seed, "host.starts"),
            cpus: lane::Cpus::new(jobs.cpus.unwrap_or(host.cpus)),
            cpu_queue: VecDeque::new(),
            processors,
            cpu_chance: Rng::new(scenario.seed, "host.work"),
            is_submitting: false,
            next_task: tasks,
            wave: 0,
            wave_clients: 0,
            clients_waiting: 0,
            jobs_left: vec![0; scenario.jobs.jobs.len()],
            together_from: None,
            exit_all: jobs.jobs.iter().any(|j| j.exitall),
            ended: false,
            waves_left: true,
            disk_full: None,
            time_max: scenario.time_max.map_or(Instant::EPOCH + Duration::MAX, |d| Instant::EPOCH + d),
            interval: scenario.interval,
            series: Vec::new(),
            disk_series: Vec::new(),
            disk_before: DiskPoint::default(),
            cache_stats: CacheStats::default(),
            handled: 0,
            owners: Vec::new(),
            woken: VecDeque::new(),
            touched: Vec::new(),
        })
    }

    /// Returns the threads that write dirty pages, and the number of tasks: task 0 (no task), the clients,
    /// and those threads.
    fn flushers_and_tasks(jobs: &JobFile, host: &Host) -> (Vec<flusher::Thread>, u32) {
        let first = u32::try_from(jobs.client_count()).unwrap_or(u32::MAX - 4) + 1;
        let flushers = Self::flusher_threads(host.flusher, first);
        #[allow(clippy::cast_possible_truncation, reason = "two at most")]
        let tasks = first + flushers.len() as u32;
        (flushers, tasks)
    }

    fn make_clients(
        scenario: &Scenario,
        files: &Files,
        groups: &Groups<'_>,
    ) -> Result<(Vec<Client>, Vec<Lane>)> {
        let (mut clients, mut lanes) = (Vec::new(), Vec::new());
        let mut flows = Flows::default();
        for (i, c) in scenario.jobs.clients().enumerate() {
            let used = files.of_client[i].clone();
            let region = region(&c, files, i)?;
            let mut client = Client::new(&c, used, region, scenario.host.read_ahead, scenario.seed);
            let number =
                |n: usize| u32::try_from(n).expect("job files are limited to a few thousand clients");
            client.task = TaskId(number(i) + 1);
            client.group = groups.id(c.job);
            client.first_lane = number(lanes.len());
            client.share = flows.join(c.job.flow);
            lanes.extend((0..client.all_lanes).map(|_| Lane::new(number(i))));
            clients.push(client);
        }
        Ok((clients, lanes))
    }

    fn run(mut self, scenario: &Scenario) -> Result<(Outcome, Option<why::Report>)> {
        for (change, i) in scenario.jobs.changes.iter().zip(0..) {
            self.events.push(self.now + change.at, Due::Change(i));
        }
        self.begin_to_look();
        self.start_wave();
        self.run_events();
        self.finish(scenario)
    }

    /// What is known of the run beforehand.
    fn describe(&self, scenario: &Scenario) -> journal::Run {
        // Task 0 stands for no task.
        let nobody = |name: &str| journal::Task { name: name.to_owned(), client: None, group: GroupId::ROOT };
        let client = |(i, c): (usize, crate::job::Client<'_>)| journal::Task {
            name: match c.job.numjobs {
                1 => c.job.name.clone(),
                _ => format!("{}.{}", c.job.name, c.clone),
            },
            client: Some(i),
            group: self.clients[i].group,
        };
        let mut tasks = vec![nobody("nobody")];
        tasks.extend(scenario.jobs.clients().enumerate().map(client));
        tasks.extend(self.flushers.iter().map(|_| nobody("the flusher")));
        let facts = self.queue.facts(DiskId::default());
        journal::Run {
            scheduler: scenario.scheduler.clone(),
            seed: scenario.seed,
            tasks,
            groups: scenario.jobs.cgroups.iter().map(|g| g.path.clone()).collect(),
            members: self.queue.members(),
            capacity: facts.capacity,
            rotational: facts.rotational,
            queue_depth: facts.queue_depth,
        }
    }

    /// Books for some clients.
    fn books(&self, run: &journal::Run, books: Books<'_>) -> Recorder {
        let names = run.tasks.iter().map(|t| t.name.clone()).collect();
        let task_of = self.lanes.iter().map(|l| self.clients[l.client as usize].task).collect();
        let mut recorder = Recorder::new(names, task_of);
        recorder.keeps(self.queue.disk_of_members(), self.queue.labels());
        if let Some(window) = books.window {
            recorder.asks_about(window);
        }
        for &i in books.clients {
            let client = &self.clients[i];
            recorder.watch(i, client.task, client.first_lane, client.all_lanes);
        }
        recorder
    }

    fn begin_journal(&self, run: &journal::Run, sink: &'a mut dyn Sink) -> journal::Recorder<'a> {
        let lane = |l: &Lane| (l.client as usize, self.clients[l.client as usize].first_lane);
        journal::Recorder::new(run, self.lanes.iter().map(lane), sink)
    }

    /// Calls the journal, if one is kept.
    #[inline]
    fn journal(&self, tell: impl FnOnce(&mut journal::Recorder<'a>)) {
        if let Some(journal) = &self.journal {
            out_of_line(|| tell(&mut journal.borrow_mut()));
        }
    }

    /// Calls the books, if any are kept.
    #[inline]
    fn why(&mut self, tell: impl FnOnce(&mut Recorder)) {
        if self.keeps_books {
            out_of_line(|| self.queue.why().map(|mut why| tell(&mut why)));
        }
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
            let event = self.events.next_at(NEVER);
            let at = event.min(device).min(timer);
            if at > self.time_max || at == NEVER || self.ended {
                return self.end(at);
            }
            self.sample(at);
            self.now = self.now.max(at);
            self.handled += 1;
            let now = self.now;
            self.why(|why| why.settle(now));
            self.journal(|journal| journal.at(now));
            // At one instant the devices come first, then events by class, then the elevators' timers.
            if device == at {
                self.interrupts();
            } else if event == at {
                if let Some(due) = self.events.pop() {
                    self.handle(due);
                }
            } else {
                self.timer();
            }
        }
    }

    /// Devices have finished commands: their interrupts come after the way back.
    #[inline]
    fn interrupts(&mut self) {
        while let Some((member, tag)) = self.queue.poll(self.now) {
            let way_back = self.host.path + self.jitter.exponential(self.host.path_jitter);
            let irq = way_back + self.host.irq + self.jitter.exponential(self.host.irq_jitter);
            if irq.is_zero() {
                self.complete(usize::from(member), tag);
            } else {
                self.events.push(self.now + irq, Due::Completed(member, tag.0));
            }
        }
    }

    /// The run is over before `at`.
    #[cold]
    fn end(&mut self, at: Instant) {
        if at > self.time_max && !self.ended {
            // What a drive was at by then.
            self.now = self.now.max(self.queue.catch_up(self.time_max).unwrap_or(self.now));
        }
        self.queue.catch_up(self.now);
    }

    /// The timer of an elevator is due.
    fn timer(&mut self) {
        let Some(member) = self.queue.due_timer(self.now) else { return };
        // What a limit let pass is an insertion.
        if self.queue.timer(self.now, member) { self.run_member(member) } else { self.run_if_wanted(member) }
    }

    #[inline]
    fn handle(&mut self, due: Due) {
        match due {
            Due::Completed(member, tag) => self.complete(usize::from(member), Tag(tag)),
            Due::CpuDone(lane) => self.cpu_done(lane),
            Due::Wake(thread) => self.wake(thread),
            Due::Unplug(member) => {
                let member = usize::from(member);
                self.coming[member].unplug = false;
                self.queue.unplug_member(self.now, member);
                self.run_member(member);
            }
            Due::RunQueue(member) => {
                self.coming[usize::from(member)].run = false;
                self.run_member(usize::from(member));
            }
            Due::Worker(member) => {
                self.coming[usize::from(member)].worker = false;
                self.run_member(usize::from(member));
            }
            Due::DelayedRun(member) => {
                self.coming[usize::from(member)].delayed = false;
                self.run_member(usize::from(member));
            }
            Due::Flusher => self.flusher_due(),
            Due::Interval => self.end_interval(),
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
            None => (self.flushers[thread as usize - lanes].sleep_until, None),
        };
        if until.is_none_or(|until| until > self.now) {
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

    /// Starts the clients of the current wave, one after the other; skips waves without any.
    fn start_wave(&mut self) {
        if let (Some(interval), true) = (self.interval, self.wave == 0) {
            self.events.push(self.now + interval, Due::Interval);
        }
        let mut order: Vec<usize> =
            (0..self.clients.len()).filter(|&i| self.clients[i].job.wave == self.wave).collect();
        if self.host.starts_reversed {
            order.reverse();
        }
        let mut gap = Duration::ZERO;
        for i in order {
            if !self.waves_left {
                continue;
            }
            let client = &mut self.clients[i];
            self.wave_clients += 1;
            self.jobs_left[client.stats.job] += 1;
            client.waits = client.job.wait_for.is_some();
            self.clients_waiting += u32::from(client.waits);
            if !client.waits {
                self.start_client(i, &mut gap);
            }
        }
        self.start_waiting();
        self.ended |= self.wave_clients == 0;
        let mine = || self.clients.iter().filter(|c| c.job.wave == self.wave);
        // "Together" is what clients move while all of the wave run; with one job, or jobs that wait for
        // others, there is no such time.
        let is_alone = self.jobs_left.iter().filter(|left| **left > 0).count() < 2 || mine().any(|c| c.waits);
        self.together_from = mine().map(|c| c.started + c.job.ramp_time).max().filter(|_| !is_alone);
    }

    /// Starts the clients that wait for a job of which all clients have ended.
    fn start_waiting(&mut self) {
        if self.clients_waiting == 0 {
            return;
        }
        let mut gap = Duration::ZERO;
        for i in 0..self.clients.len() {
            if !self.clients[i].waits {
                continue;
            }
            let name = self.clients[i].job.wait_for.as_ref();
            let runs = |c: &Client| c.lanes > 0 && Some(&c.job.name) == name;
            if !self.clients[..i].iter().any(runs) {
                self.start_client(i, &mut gap);
            }
        }
    }

    /// Starts a client, `gap` after those before it, and lengthens the gap for the next.
    fn start_client(&mut self, i: usize, gap: &mut Duration) {
        let client = &mut self.clients[i];
        self.clients_waiting -= u32::from(client.waits);
        // fio counts startdelay from its own start, also behind a stone wall.
        let delayed = Instant::EPOCH + client.job.startdelay;
        client.start(delayed.max(self.now + client.job.wave_delay) + *gap);
        //= docs/reference/hosts.md#start-gap
        if client.traced.is_none() {
            *gap += self.host.start_gap / 2 + self.starts.exponential(self.host.start_gap / 2);
        }
        let (started, first, count) = (client.started, client.first_lane, client.all_lanes);
        let counts_from = client.counts_from();
        self.why(|why| why.counts_from(i, counts_from));
        (first..first + count).for_each(|lane| self.pause(lane, started));
        self.prepare_cache(i);
    }

    /// The first job of a wave has ended: what was moved while all ran is known.
    fn end_together(&mut self) {
        let Some(from) = self.together_from.take().filter(|from| self.now > *from) else { return };
        let span = self.now.since(from);
        for client in self.clients.iter_mut().filter(|c| c.job.wave == self.wave) {
            client.stats.together = Some(Together { span, bytes: client.together });
        }
    }

    // ---- the request queue -------------------------------------------------------------------------------

    /// Runs the queues that have been handed something.
    fn run_queue(&mut self) {
        for member in disks::bits(self.queue.take_touched()) {
            self.run_member(member);
        }
    }

    /// Runs a queue, and arms what is to run it later.
    fn run_member(&mut self, member: usize) {
        #[allow(clippy::cast_possible_truncation, reason = "64 at most")]
        let number = member as u8;
        let coming = &mut self.coming[member];
        if let Some(at) = self.queue.run(self.now, member).filter(|_| !coming.run) {
            coming.run = true;
            self.events.push(at, Due::RunQueue(number));
        }
        if self.queue.wants_later_run(member) {
            self.arm_later_run(member);
        }
    }

    /// Arms what is to run a queue that holds requests back.
    #[inline(never)]
    fn arm_later_run(&mut self, member: usize) {
        #[allow(clippy::cast_possible_truncation, reason = "64 at most")]
        let number = member as u8;
        let coming = &mut self.coming[member];
        if let Some(layer) = self.queue.layer(member)
            && self.queue.wants_delayed_run(member)
            && !coming.delayed
        {
            coming.delayed = true;
            self.events.push(layer.delayed_run(self.now), Due::DelayedRun(number));
        }
        if self.queue.is_plugged(member) && !coming.unplug {
            coming.unplug = true;
            self.events.push(self.now + Plug::DELAY, Due::Unplug(number));
        }
    }

    /// Something has happened to a queue that is no insertion. In the single-queue layer that runs the queue
    /// at once; in the multi-queue layer a worker does it, if the queue asks for it.
    fn run_if_wanted(&mut self, member: usize) {
        let Some(layer) = self.queue.layer(member) else { return self.run_member(member) };
        let coming = &mut self.coming[member];
        if self.queue.wants_run(member) && !coming.worker {
            coming.worker = true;
            #[allow(clippy::cast_possible_truncation, reason = "64 at most")]
            self.events.push(self.now + layer.worker, Due::Worker(member as u8));
        }
    }

    /// Something has happened to all queues that is no insertion.
    fn run_all_if_wanted(&mut self) {
        (0..usize::from(self.queue.members())).for_each(|member| self.run_if_wanted(member));
    }

    /// The interrupt handler: completes a request, runs the queue if that is its business, and only then
    /// wakes who waited.
    fn complete(&mut self, member: usize, tag: Tag) {
        let woken = &mut self.woken;
        self.queue.complete(self.now, member, tag, &mut self.owners, woken);
        // Most requests are of one call, and nothing else waits for them.
        if let [Owner::Lane(lane)] = self.owners[..]
            && woken.is_empty()
        {
            let is_done = self.lanes[lane as usize].piece_done();
            self.run_after_completion(member);
            if is_done {
                self.resume(lane);
            }
            return self.resume_woken();
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
                Owner::Write { file, first, count } => {
                    self.cache_stats.pages_written += u64::from(count);
                    self.cache.write_done(file, first, count, woken);
                }
            }
        }
        self.run_after_completion(member);
        self.resume_woken();
    }

    fn resume_woken(&mut self) {
        while let Some(thread) = self.woken.pop_front() {
            self.resume(thread);
        }
    }

    /// Runs a queue after a completion, if that is its business; then threads get the requests that are free.
    fn run_after_completion(&mut self, member: usize) {
        self.run_if_wanted(member);
        // Each that waits for a request gets one chance: there may be fewer free ones than it needs.
        for _ in 0..self.queue.waiting(member) {
            let Some(thread) = self.queue.pop_waiter(member) else { break };
            self.grant_batch(thread);
            // The first in line takes what is free before the next one is looked at.
            if (thread as usize) < self.lanes.len() { self.go_on(thread) } else { self.resume(thread) }
        }
    }

    fn grant_batch(&mut self, thread: u32) {
        let lanes = self.lanes.len();
        let batch = match self.lanes.get_mut(thread as usize) {
            Some(lane) => &mut lane.batch,
            None => &mut self.flushers[thread as usize - lanes].batch,
        };
        *batch = batch.granted(self.now);
    }

    // ---- figures -----------------------------------------------------------------------------------------

    fn end_interval(&mut self) {
        let points = std::mem::replace(&mut self.current, vec![Point::default(); self.clients.len()]);
        self.series.push(points);
        let each: Vec<_> = (0..self.queue.count()).map(|disk| self.queue.stats(self.now, disk)).collect();
        let all = disks::together(&each).point();
        self.disk_series.push(all.since(&self.disk_before));
        self.disk_before = all;
        for ((series, before), stats) in self.series_of.iter_mut().zip(&each) {
            series.push(stats.point().since(before));
            *before = stats.point();
        }
        if self.series.len() * self.clients.len() >= POINTS_MAX && self.series.len().is_multiple_of(2) {
            self.double_interval();
        }
        if let Some(interval) = self.interval {
            self.events.push(self.now + interval, Due::Interval);
        }
    }

    /// Each two intervals become one.
    fn double_interval(&mut self) {
        self.interval = self.interval.map(|i| i * 2);
        let rows = std::mem::take(&mut self.series);
        let mut rows = rows.into_iter();
        while let (Some(mut row), Some(next)) = (rows.next(), rows.next()) {
            row.iter_mut().zip(&next).for_each(|(a, b)| a.add(b));
            self.series.push(row);
        }
        for series in
            std::iter::once(&mut self.disk_series).chain(self.series_of.iter_mut().map(|s| &mut s.0))
        {
            let all = std::mem::take(series);
            *series = all.chunks(2).map(|two| two[1..].iter().fold(two[0], DiskPoint::plus)).collect();
        }
    }

    fn finish(mut self, scenario: &Scenario) -> Result<(Outcome, Option<why::Report>)> {
        let (now, lost) = (self.now, self.queue.trace_lost());
        self.journal(|journal| journal.finish(now, lost));
        let report = self.queue.take_report();
        if let Some(client) = self.disk_full {
            let (job, capacity) =
                (&self.clients[client as usize].job, self.files.disk_bytes(client as usize) / 512);
            return Err(files::no_space(job, capacity, capacity));
        }
        if self.failed.is_none() {
            self.check_traces();
        }
        if let Some(error) = self.failed {
            return Err(error);
        }
        for client in self.clients.iter_mut().filter(|c| c.lanes > 0 && c.job.wave <= self.wave) {
            client.stats.elapsed = self.now.saturating_since(client.counts_from());
        }
        for replay in std::mem::take(&mut self.replays).into_iter().flatten() {
            let (client, times) = replay.into_times(self.now);
            self.clients[client].stats.startups = times;
        }
        self.cache_stats.evicted = self.cache.evicted;
        self.cache_stats.dirty_at_end = u64::from(self.cache.dirty + self.cache.writeback);
        let watch = self.take_samples();
        let mut notes = scenario.jobs.notes.clone();
        notes.append(&mut self.groups.notes);
        notes.extend(self.clients.iter_mut().filter_map(|c| c.note.take()));
        self.end_of_looking(&mut notes);
        self.end_traces(&scenario.scheduler, &mut notes);
        let groups = self.groups.outcomes(|g| self.queue.group_stats(g));
        let unseen = self.queue.unseen();
        let (disk, disks) = disk_figures(self.queue, self.now, self.series_of);
        let cpus = scenario.jobs.cpus.unwrap_or(self.host.cpus);
        let books = self.processors.as_ref().map(Processors::books);
        let outcome = Outcome {
            groups_not_kept: self.groups.not_kept(groups_kept(&scenario.config)),
            groups,
            watch,
            scheduler: scenario.scheduler.clone(),
            seed: scenario.seed,
            elapsed: self.now.since(Instant::EPOCH),
            disk,
            disks,
            clients: self.clients.into_iter().map(|c| c.into_stats(self.now)).collect(),
            interval: self.interval,
            series: self.series,
            disk_series: self.disk_series,
            cache: self.cache_stats,
            cpu_busy: books.map_or_else(|| self.cpus.count(self.now), |books| books.total()),
            cpu: books.unwrap_or_default(),
            cpus,
            events: self.handled.saturating_add_signed(unseen),
            notes,
        };
        Ok((outcome, report))
    }
}

/// Which runs of a queue are coming.
#[derive(Clone, Copy, Debug, Default)]
struct Coming {
    unplug: bool,
    run: bool,
    worker: bool,
    delayed: bool,
}

/// A place for the series of each disk, if there are several.
fn several(disks: usize) -> Vec<(Vec<DiskPoint>, DiskPoint)> {
    if disks > 1 { vec![Default::default(); disks] } else { Vec::new() }
}

/// The disks that a scenario asks for.
fn wanted_disks<'a>(scenario: &'a Scenario) -> Result<Vec<Wanted<'a>>> {
    let (model, scheduler, config) = (&scenario.disk, scenario.scheduler.as_str(), scenario.config);
    let of_run = Wanted { label: "", model, scheduler, config };
    let wanted = |disk: &'a job::Disk| -> Result<Wanted<'a>> {
        let mut wanted = of_run;
        if let Some(preset) = disk.scheduler.filter(|name| *name != scheduler).and_then(preset) {
            (wanted.scheduler, wanted.config) = (preset.name, (preset.config)());
        }
        if let Some(model) = &disk.model {
            wanted.model = model.params.as_deref().ok_or_else(|| SimError::Model(model.name.clone()))?;
        }
        Ok(wanted)
    };
    if scenario.jobs.disks.is_empty() {
        return Ok(vec![of_run]);
    }
    let disks = scenario.jobs.disks.iter();
    disks.map(|disk| Ok(Wanted { label: &disk.label, ..wanted(disk)? })).collect()
}

/// What the disks did: all together, and one by one if there are several.
fn disk_figures(
    disks: Disks<'_>,
    now: Instant,
    series: Vec<(Vec<DiskPoint>, DiskPoint)>,
) -> (DiskStats, Vec<DiskOutcome>) {
    let done = disks.finish(now);
    let stats: Vec<DiskStats> = done.iter().map(|d| d.stats.clone()).collect();
    let one = |(done, (series, _)): (disks::Done, _)| {
        let disks::Done { label, scheduler, stats } = done;
        DiskOutcome { label, scheduler, stats, series }
    };
    (disks::together(&stats), done.into_iter().zip(series).map(one).collect())
}

/// The replays of recorded start-ups, by job.
fn replays(scenario: &Scenario) -> Result<Vec<Option<Replay>>> {
    let mut first_client = 0;
    let mut all = Vec::new();
    for (i, job) in scenario.jobs.jobs.iter().enumerate() {
        let replay = Replay::new(job, i, first_client, scenario.seed);
        if replay.is_none() && job.program == Some(Program::Replay) {
            let message = "its start-up trace has not been read".to_owned();
            return Err(SimError::Job { job: job.name.clone(), message });
        }
        all.push(replay);
        first_client += job.numjobs;
    }
    Ok(all)
}

/// Which part of each of its files a client uses.
fn region(c: &crate::job::Client<'_>, files: &Files, client: usize) -> Result<Region> {
    let used = &files.of_client[client];
    let of_used = || used.iter().map(|&f| &files.files[f as usize]);
    let append_from = of_used().map(|f| f.append_from).max().unwrap_or(0) * 512;
    let whole = of_used().map(|f| f.size).min().unwrap_or(0) * 512;
    let base = files::offset(c.job, c.clone, whole) + append_from;
    let room = whole.saturating_sub(base);
    let count = used.len() as u64;
    let disk = files.disk_bytes(client);
    // A file system check is of the whole disk, whatever the size.
    let size = c.job.size.filter(|_| c.job.program != Some(Program::Fsck)).map(|s| s.bytes_of(disk));
    let span = match (c.job.filesize, size) {
        (Some(file), _) if !c.job.append => file.bytes_of(disk).saturating_sub(base).min(room),
        (_, Some(size)) => (size / count).min(room),
        (_, None) => room,
    };
    let block = u64::from(c.job.smallest_block());
    if span < block && c.job.program.is_none() {
        return Err(SimError::Job {
            job: c.job.name.clone(),
            message: format!(
                "nothing left to do at offset {base} of {whole} bytes; offset= and offset_increment= must leave room for one block"
            ),
        });
    }
    if let Distribution::Zoned(zones) = &c.job.distribution
        && zones.iter().any(|z| matches!(z.size, Size::Bytes(b) if b > span))
    {
        let message = format!("its random_distribution has a part that is longer than its {span} bytes");
        return Err(SimError::Job { job: c.job.name.clone(), message });
    }
    let room = files.known[client].saturating_sub(base).max(span);
    let region = Region { base, span, size: size.unwrap_or(span * count), file: whole, room };
    let span = span / 512;
    if let Some(Program::StartUp(application)) = c.job.program
        && span < startup::sectors_needed(application)
    {
        let needed = startup::sectors_needed(application).div_ceil(2048);
        let message = format!("it has {} MiB, and starting needs {needed}; use a larger size=", span / 2048);
        return Err(SimError::Job { job: c.job.name.clone(), message });
    }
    if c.job.startup_trace.as_ref().and_then(|t| t.trace.as_ref()).is_some_and(|t| span < t.longest()) {
        let message = format!(
            "its files of {} KiB are shorter than the trace's longest request; use a larger size=",
            span / 2
        );
        return Err(SimError::Job { job: c.job.name.clone(), message });
    }
    Ok(region)
}
