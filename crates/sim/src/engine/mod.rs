//! The machine: events in virtual time, from a client's call to the disk and back.
//!
//! ```text
//!  client lane ──think on a CPU──► call ──pieces──► DiskQueue (elevator, device) ──completion──► interrupt ──► lane
//! ```
//!
//! One loop takes the earliest of: the device's next completion, the next event in the queue, the elevator's timer.
//! Everything else follows from there. The run is a function of its [`Scenario`]; nothing is asked of the machine
//! that it runs on.

mod client;
mod files;
mod queue;

use crate::error::SimError;
use crate::event::{Due, Events};
use crate::host::{Host, Plug};
use crate::job::{BlockSize, JobFile};
use crate::metrics::{Outcome, Point, Result};
use crate::rng::Rng;
use client::{Call, Client, Next};
use fairhead_core::sched::any::AnyConfig;
use fairhead_core::{Duration, Instant, IoPrio, Op, Request, Tag, TaskId};
use fairhead_device::DeviceParams;
use files::Files;
use queue::{BATCH_REQUESTS, BATCH_TIME, DiskQueue};
use std::collections::VecDeque;

/// Everything that decides a run.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The load.
    pub jobs: JobFile,
    /// The disk.
    pub disk: DeviceParams,
    /// The machine around it.
    pub host: Host,
    /// The scheduler's name, for the report and its cost on the host's CPU.
    pub scheduler: String,
    /// The scheduler.
    pub config: AnyConfig,
    /// The seed of all chance.
    pub seed: u64,
    /// The length of an interval of the time series; none: no series.
    pub interval: Option<Duration>,
    /// Stop after that much virtual time even if clients have not ended.
    pub time_max: Option<Duration>,
}

/// Who handed in a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// Nobody waits for it.
    Nobody,
    /// A lane's call.
    Lane(u32),
}

/// A lane of calls, one at a time.
#[derive(Debug)]
struct Lane {
    client: u32,
    call: Call,
    /// Sectors of the call that have been handed in.
    handed_in: u32,
    /// Pieces that have not completed.
    pending: u32,
    since: Instant,
    /// What a batcher may still overdraw, and until when.
    overdraw: u8,
    overdraw_until: Instant,
}

/// Runs a scenario.
///
/// # Errors
/// If the scenario cannot be: a tunable out of range, an impossible disk, files that do not fit.
pub fn simulate(scenario: &Scenario) -> Result<Outcome> {
    let mut machine = Machine::new(scenario)?;
    machine.start_wave();
    while machine.step() {}
    Ok(machine.finish(scenario))
}

struct Machine<'a> {
    now: Instant,
    events: Events,
    queue: DiskQueue,
    files: Files,
    clients: Vec<Client>,
    lanes: Vec<Lane>,
    host: &'a Host,
    /// `think` with the scheduler's cost.
    think: Duration,
    jitter: Rng,
    idle_cpus: u32,
    cpu_queue: VecDeque<(u32, Duration)>,
    /// The wave that runs, and how many of its clients have not ended.
    wave: u32,
    wave_clients: u32,
    ended: bool,
    unplug_armed: bool,
    time_max: Instant,
    interval: Option<Duration>,
    series: Vec<Vec<Point>>,
    current: Vec<Point>,
    owners: Vec<Owner>,
    handled: u64,
}

impl<'a> Machine<'a> {
    fn new(scenario: &'a Scenario) -> Result<Self> {
        let jobs = &scenario.jobs;
        let tasks = u32::try_from(jobs.client_count()).unwrap_or(u32::MAX) + 1;
        let queue = DiskQueue::new(&scenario.disk, &scenario.host, scenario.config, tasks, 0)?;
        let files = Files::place(jobs, queue.device().facts().capacity, scenario.seed)?;
        let (mut clients, mut lanes) = (Vec::new(), Vec::new());
        for (i, c) in jobs.clients().enumerate() {
            let used = files.of_client[i].clone();
            let region = region(&c, &files, &used)?;
            let mut client = Client::new(c.job, c.job_index, c.clone, used, region, scenario.seed);
            #[allow(
                clippy::cast_possible_truncation,
                reason = "job files are limited to a few thousand clients"
            )]
            let index = i as u32;
            client.task = TaskId(index + 1);
            lanes.extend((0..c.job.iodepth).map(|_| Lane::new(index)));
            clients.push(client);
        }
        Ok(Self {
            now: Instant::EPOCH,
            events: Events::default(),
            queue,
            files,
            current: vec![Point::default(); clients.len()],
            clients,
            lanes,
            host: &scenario.host,
            think: scenario.host.think + scenario.host.sched_cost(&scenario.scheduler),
            jitter: Rng::new(scenario.seed, "host.jitter"),
            idle_cpus: scenario.host.cpus,
            cpu_queue: VecDeque::new(),
            wave: 0,
            wave_clients: 0,
            ended: false,
            unplug_armed: false,
            time_max: scenario.time_max.map_or(Instant::EPOCH + Duration::MAX, |d| Instant::EPOCH + d),
            interval: scenario.interval,
            series: Vec::new(),
            owners: Vec::new(),
            handled: 0,
        })
    }

    /// Handles the earliest event; false when all clients have ended or time is up.
    fn step(&mut self) -> bool {
        let device = self.queue.device_due();
        let timer = self.queue.timer_due();
        let event = self.events.peek();
        // Ties: the device first, then events by class, the elevator's timer among the timers.
        let earliest = [device.map(|t| (t, 0)), event, timer.map(|t| (t, 3))].into_iter().flatten().min();
        let Some((at, class)) = earliest.filter(|e| !self.ended && e.0 <= self.time_max) else {
            return false;
        };
        self.now = self.now.max(at);
        self.handled += 1;
        if class == 0 {
            while let Some(tag) = self.queue.poll(self.now) {
                let irq = self.host.irq + self.jitter.exponential(self.host.irq_jitter);
                self.events.push(self.now + irq, Due::Completed(tag.0));
            }
        } else if event.is_some_and(|e| e == (at, class)) {
            if let Some((_, due)) = self.events.pop() {
                self.handle(due);
            }
        } else {
            self.queue.timer(self.now);
            self.run_queue();
        }
        true
    }

    fn handle(&mut self, due: Due) {
        match due {
            Due::Completed(tag) => self.complete(Tag(tag)),
            Due::CpuDone(lane) => {
                self.release_cpu();
                self.begin_call(lane);
            }
            Due::Wake(lane) => self.next_step(lane),
            Due::Unplug => {
                self.unplug_armed = false;
                self.queue.unplug();
                self.run_queue();
            }
            Due::Flusher => {}
            Due::Interval => self.end_interval(),
        }
    }

    // ---- clients -------------------------------------------------------------------------------------------------

    /// Starts the clients of the current wave; skips waves without any.
    fn start_wave(&mut self) {
        if let (Some(interval), true) = (self.interval, self.wave == 0) {
            self.events.push(self.now + interval, Due::Interval);
        }
        for (i, client) in self.clients.iter_mut().enumerate().filter(|(_, c)| c.job.wave == self.wave) {
            client.started = self.now + client.job.startdelay;
            client.stats.started = client.started.since(Instant::EPOCH);
            self.wave_clients += 1;
            for (lane, _) in self.lanes.iter().enumerate().filter(|(_, l)| l.client as usize == i) {
                #[allow(clippy::cast_possible_truncation, reason = "lanes are limited by the job file")]
                self.events.push(client.started, Due::Wake(lane as u32));
            }
        }
        self.ended = self.wave_clients == 0;
    }

    /// A lane is free: what does its client want?
    fn next_step(&mut self, lane: u32) {
        let client = &mut self.clients[self.lanes[lane as usize].client as usize];
        match client.next(self.now) {
            Next::Call(call) => {
                self.lanes[lane as usize].call = call;
                let cpu = self.cpu_cost(lane, call);
                self.take_cpu(lane, cpu);
            }
            Next::Pause(until) => self.events.push(until, Due::Wake(lane)),
            Next::End => self.end_lane(lane),
        }
    }

    fn end_lane(&mut self, lane: u32) {
        let index = self.lanes[lane as usize].client as usize;
        let client = &mut self.clients[index];
        client.lanes -= 1;
        if client.lanes > 0 {
            return;
        }
        client.stats.elapsed = self.now.saturating_since(client.started).saturating_sub(client.job.ramp_time);
        self.queue.exit_task(self.now, client.task);
        self.wave_clients -= 1;
        if self.wave_clients == 0 {
            self.wave += 1;
            self.start_wave();
        }
        self.run_queue();
    }

    /// CPU time before a call: system call, scheduler, allocation of new blocks.
    fn cpu_cost(&mut self, lane: u32, call: Call) -> Duration {
        let job = &self.clients[self.lanes[lane as usize].client as usize].job;
        let blocks = u64::from(call.len.div_ceil(8));
        let mut cost = job.think.map_or(self.think, |t| t + (self.think.saturating_sub(self.host.think)));
        cost += job.cpu_per_4k * blocks;
        if call.op == Op::Write {
            let file = &mut self.files.files[call.file as usize];
            let end = call.offset + u64::from(call.len);
            if end > file.allocated {
                let new = (end - file.allocated.max(call.offset)).div_ceil(8);
                file.allocated = end;
                cost += self.host.allocate * new;
            }
        }
        cost
    }

    // ---- processors ----------------------------------------------------------------------------------------------

    fn take_cpu(&mut self, lane: u32, cost: Duration) {
        if self.idle_cpus == 0 {
            self.cpu_queue.push_back((lane, cost));
            return;
        }
        self.idle_cpus -= 1;
        self.events.push(self.now + cost, Due::CpuDone(lane));
    }

    fn release_cpu(&mut self) {
        match self.cpu_queue.pop_front() {
            Some((lane, cost)) => self.events.push(self.now + cost, Due::CpuDone(lane)),
            None => self.idle_cpus += 1,
        }
    }

    // ---- calls ---------------------------------------------------------------------------------------------------

    fn begin_call(&mut self, lane: u32) {
        let l = &mut self.lanes[lane as usize];
        l.since = self.now;
        l.handed_in = 0;
        l.pending = 0;
        self.hand_in(lane);
        self.run_queue();
    }

    /// Hands in the pieces of a lane's call, as many as the request pool allows.
    fn hand_in(&mut self, lane: u32) {
        let l = &mut self.lanes[lane as usize];
        let client = &self.clients[l.client as usize];
        let call = l.call;
        let sync = call.op == Op::Read || client.job.direct_write_sync.unwrap_or(self.host.direct_write_sync);
        let layout = &self.files.files[call.file as usize].layout;
        while l.handed_in < call.len {
            let left = call.len - l.handed_in;
            let (start, len) =
                layout.piece(call.offset + u64::from(l.handed_in), left.min(self.host.max_request.0));
            let rq = Request {
                start,
                len,
                op: call.op,
                sync,
                meta: false,
                no_idle: sync && call.op == Op::Write,
                task: client.task,
                group: fairhead_core::GroupId::ROOT,
                prio: client.job.prio.unwrap_or(IoPrio::default()),
            };
            let batcher = l.overdraw > 0 && self.now <= l.overdraw_until;
            if self.queue.submit(self.now, rq, Owner::Lane(lane), batcher).is_err() {
                self.queue.wait(lane, sync);
                break;
            }
            l.overdraw = l.overdraw.saturating_sub(1);
            l.handed_in += len.0;
            l.pending += 1;
        }
        // Whoever waits for I/O pulls the plug, and a direct call waits.
        self.queue.unplug();
    }

    fn run_queue(&mut self) {
        self.queue.run(self.now);
        if self.queue.is_plugged() && !self.unplug_armed {
            self.unplug_armed = true;
            self.events.push(self.now + Plug::DELAY, Due::Unplug);
        }
    }

    /// The interrupt handler: completes a request, runs the queue, and only then wakes who waited.
    fn complete(&mut self, tag: Tag) {
        let mut owners = std::mem::take(&mut self.owners);
        self.queue.complete(self.now, tag, &mut owners);
        while let Some(lane) = self.queue.pop_waiter() {
            let l = &mut self.lanes[lane as usize];
            l.overdraw = BATCH_REQUESTS;
            l.overdraw_until = self.now + BATCH_TIME;
            self.hand_in(lane);
        }
        self.run_queue();
        for owner in &owners {
            if let Owner::Lane(lane) = *owner {
                let l = &mut self.lanes[lane as usize];
                l.pending -= 1;
                if l.pending == 0 && l.handed_in == l.call.len {
                    self.end_call(lane);
                }
            }
        }
        self.owners = owners;
    }

    fn end_call(&mut self, lane: u32) {
        let l = &self.lanes[lane as usize];
        let index = l.client as usize;
        let client = &mut self.clients[index];
        let latency = self.now.since(l.since);
        let bytes = u64::from(l.call.len) * 512;
        if client.is_measured(l.since) {
            let stats = match l.call.op {
                Op::Read => &mut client.stats.read,
                Op::Write => &mut client.stats.write,
                Op::Discard => &mut client.stats.trim,
            };
            stats.record(bytes, latency);
        }
        let point = &mut self.current[index];
        point.calls += 1;
        point.latency_max = point.latency_max.max(latency);
        match l.call.op {
            Op::Read => point.read_bytes += bytes,
            Op::Write => point.written_bytes += bytes,
            Op::Discard => {}
        }
        let pause = client.think_pause();
        if pause.is_zero() {
            self.next_step(lane);
        } else {
            self.events.push(self.now + pause, Due::Wake(lane));
        }
    }

    // ---- figures -------------------------------------------------------------------------------------------------

    fn end_interval(&mut self) {
        let points = std::mem::replace(&mut self.current, vec![Point::default(); self.clients.len()]);
        self.series.push(points);
        if let Some(interval) = self.interval {
            self.events.push(self.now + interval, Due::Interval);
        }
    }

    fn finish(mut self, scenario: &Scenario) -> Outcome {
        for client in self.clients.iter_mut().filter(|c| c.lanes > 0 && c.job.wave <= self.wave) {
            client.stats.elapsed =
                self.now.saturating_since(client.started).saturating_sub(client.job.ramp_time);
        }
        Outcome {
            scheduler: scenario.scheduler.clone(),
            seed: scenario.seed,
            elapsed: self.now.since(Instant::EPOCH),
            disk: self.queue.finish(self.now),
            clients: self.clients.into_iter().map(|c| c.stats).collect(),
            interval: scenario.interval,
            series: self.series,
            events: self.handled,
            notes: scenario.jobs.notes.clone(),
        }
    }
}

impl Lane {
    const fn new(client: u32) -> Self {
        Self {
            client,
            call: Call { op: Op::Read, file: 0, offset: 0, len: 0 },
            handed_in: 0,
            pending: 0,
            since: Instant::EPOCH,
            overdraw: 0,
            overdraw_until: Instant::EPOCH,
        }
    }
}

/// Which part of each of its files a client uses: first sector and length.
fn region(c: &crate::job::Client<'_>, files: &Files, used: &[u32]) -> Result<(u64, u64)> {
    let smallest = used.iter().map(|&f| files.files[f as usize].size).min().unwrap_or(0);
    let whole = smallest * 512;
    let offset = c.job.offset.bytes_of(whole) + c.job.offset_increment.bytes_of(whole) * u64::from(c.clone);
    let wanted = c.job.size.map(|s| s.bytes_of(whole) / used.len() as u64);
    let room = whole.saturating_sub(offset);
    let span = wanted.unwrap_or(room).min(room) / 512;
    if span < u64::from(c.job.largest_block().div_ceil(512)) && c.job.program.is_none() {
        return Err(SimError::Job {
            job: c.job.name.clone(),
            message: format!(
                "nothing left to do at offset {offset} of {whole} bytes; offset= and offset_increment= must leave room for one block"
            ),
        });
    }
    Ok((offset / 512, span))
}

/// A block size from its distribution, in bytes.
fn draw_size(bs: &BlockSize, rng: &mut Rng) -> u32 {
    match bs {
        BlockSize::Fixed(bytes) => *bytes,
        #[allow(clippy::cast_possible_truncation, reason = "below the larger of two u32")]
        BlockSize::Range { min, max } => min * (1 + rng.below(u64::from(max / min)) as u32),
        BlockSize::Split(parts) => {
            let mut at = rng.below(100);
            for &(bytes, percent) in parts {
                if at < u64::from(percent) {
                    return bytes;
                }
                at -= u64::from(percent);
            }
            parts[0].0
        }
    }
}
