//! Replay of a recorded start-up: one order of requests over all processes, handed on like a baton.
//!
//! ```text
//!   trace      A read  A ahead  A ahead  B read  A read
//!   process A  ▓▓▓▓▓▓  ▓        ▓                (waits for its own two) ▓▓▓▓▓
//!   process B                            ▓▓▓▓▓▓▓
//! ```
//!
//! The process that has the baton makes the next request of the trace. A read that a program waited for is
//! made when the process's read-ahead has come, and keeps the baton until it has come itself; read-ahead
//! hands it on at once. Recorded pauses are left out. Every process has a file of its own and reads it past
//! the page cache: `Seq` continues where its request before ended, `Rand` reads anywhere. The start-up has
//! ended when everything has come.
//!
//! The latency of read-ahead, in the figures, is that of handing it in.
//
//= docs/reference/benchmarks.md#4-replayed-start-ups

use super::Machine;
use super::client::{Action, Call};
use super::phase::{Phase, Step};
use crate::event::Due;
use crate::job::{Job, StartUpTrace};
use crate::metrics::StartUp;
use crate::rng::Rng;
use fairhead_core::{Duration, Instant};
use std::sync::Arc;

const BLOCK_SECTORS: u64 = 8;

/// What a process does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    /// A start-up begins; ask again.
    Begin,
    /// It has the baton, for this request.
    Request(Call),
    /// Another process has the baton.
    Wait,
    /// All requests have been made: wait for one's own.
    Drain,
    /// The start-ups are over.
    End,
}

/// A replay: the baton and how far it is.
#[derive(Debug)]
pub(super) struct Replay {
    trace: Arc<StartUpTrace>,
    /// The job's first client; the others follow, one for each process.
    first_client: u32,
    /// How many requests have been made.
    at: usize,
    /// By process, in sectors: where its next sequential request goes.
    position: Vec<u64>,
    /// How many processes have nothing left to wait for.
    drained: usize,
    rng: Rng,
    iterations: u32,
    pause: Duration,
    timeout: Duration,
    begun: Option<Instant>,
    done: Vec<StartUp>,
}

impl Replay {
    /// The replay of a job, if it is one.
    pub(super) fn new(job: &Job, job_index: usize, first_client: u32, seed: u64) -> Option<Self> {
        let trace = Arc::clone(job.startup_trace.as_ref()?.trace.as_ref()?);
        Some(Self {
            first_client,
            at: 0,
            position: vec![0; trace.processes.len()],
            drained: 0,
            rng: Rng::new(seed, &format!("replay.{job_index}")),
            iterations: job.iterations,
            pause: job.iteration_pause,
            timeout: job.timeout,
            begun: None,
            done: Vec::new(),
            trace,
        })
    }

    fn clients(&self) -> std::ops::Range<u32> {
        let count = u32::try_from(self.trace.processes.len()).expect("a few hundred at most");
        self.first_client..self.first_client + count
    }

    fn iteration(&self) -> u32 {
        u32::try_from(self.done.len()).expect("a thousand at most")
    }

    fn is_over(&self) -> bool {
        self.iteration() >= self.iterations
    }

    fn turn(&mut self, process: u32, now: Instant, base: u64, span: u64) -> Turn {
        if self.is_over() {
            return Turn::End;
        }
        if self.begun.is_none() {
            (self.begun, self.at, self.drained) = (Some(now), 0, 0);
            return Turn::Begin;
        }
        match self.trace.requests.get(self.at) {
            None => Turn::Drain,
            Some(rq) if u32::from(rq.process) != process => Turn::Wait,
            Some(&rq) => {
                let room = span.saturating_sub(u64::from(rq.sectors));
                let position = &mut self.position[usize::from(rq.process)];
                if rq.jumps {
                    *position = self.rng.below(room / BLOCK_SECTORS + 1) * BLOCK_SECTORS;
                // A file shorter than what the process read wraps around.
                } else if *position > room {
                    *position = 0;
                }
                let offset = base + *position;
                *position += u64::from(rq.sectors);
                let (len, meta, ahead) = (rq.sectors, rq.meta, rq.ahead);
                Turn::Request(Call { action: Action::Read, offset, len, meta, ahead, ..Call::NONE })
            }
        }
    }

    /// The client that has the baton; none when all requests have been made.
    fn holder(&self) -> Option<u32> {
        self.trace.requests.get(self.at).map(|rq| self.first_client + u32::from(rq.process))
    }

    fn end(&mut self, now: Instant, finished: bool) {
        if let Some(begun) = self.begun.take() {
            self.done.push(StartUp { took: now.since(begun), finished });
        }
    }

    /// Gives up, at a time-out or the end of the run.
    pub(super) fn give_up(&mut self, now: Instant) {
        self.end(now, false);
        self.iterations = 0;
    }

    /// How long each start-up took, at the end of the run, and whose figure that is.
    pub(super) fn into_times(mut self, now: Instant) -> (usize, Vec<StartUp>) {
        self.give_up(now);
        (self.first_client as usize, self.done)
    }
}

impl Machine<'_> {
    /// The lane's next step, if its client replays a trace; whether it does.
    pub(super) fn next_of_replay(&mut self, lane: u32) -> bool {
        let index = self.lanes[lane as usize].client;
        let client = &self.clients[index as usize];
        let Some(replay) = &mut self.replays[client.stats.job] else { return false };
        if client.is_over(self.clock.now) {
            // All clients of the replay end together, as the start-up is one measurement.
            replay.give_up(self.clock.now);
            let clients = replay.clients();
            self.end_lane(lane);
            self.wake_lanes(clients, self.clock.now);
            return true;
        }
        let (base, span) = client.region();
        match replay.turn(index - replay.first_client, self.clock.now, base, span) {
            Turn::Begin => {
                let due = Due::TimeOut(index, replay.iteration());
                self.clock.after(replay.timeout, due);
                let clients = replay.clients();
                // Each start-up begins with a cold cache and new processes, or the second one would measure
                // memory.
                self.cache.invalidate_all();
                clients.for_each(|client| self.new_process(client));
                return self.next_of_replay(lane);
            }
            Turn::Request(call) => self.prepare_call(lane, &Call { file: client.files[0], ..call }),
            Turn::Wait => self.wait_for_baton(lane),
            Turn::Drain => {
                self.lanes[lane as usize].phase = Phase::Drain;
                self.advance(lane);
            }
            Turn::End => self.end_lane(lane),
        }
        true
    }

    /// The lane's request has been made, or has come if it was waited for: the baton goes to the next.
    pub(super) fn pass_baton(&mut self, lane: u32) {
        let index = self.lanes[lane as usize].client;
        let Some(replay) = &mut self.replays[self.clients[index as usize].stats.job] else { return };
        if replay.begun.is_none() {
            // It was given up meanwhile.
            return self.next_step(lane);
        }
        replay.at += 1;
        match replay.holder() {
            Some(holder) if holder != index => {
                self.wait_for_baton(lane);
                self.wake_lanes(holder..holder + 1, self.clock.now);
            }
            Some(_) => self.next_step(lane),
            None => {
                let clients = replay.clients();
                self.wait_for_baton(lane);
                self.wake_lanes(clients, self.clock.now);
            }
        }
    }

    /// Wakes those of the clients that wait for the baton, at that time.
    fn wake_lanes(&mut self, clients: std::ops::Range<u32>, at: Instant) {
        for client in clients {
            let lane = self.clients[client as usize].first_lane;
            let l = &self.lanes[lane as usize];
            if l.phase == Phase::Pause && l.sleep_until.is_none() {
                self.sleep(lane, at);
            }
        }
    }

    /// A process waits for its own requests at the end; the last one ends the start-up.
    pub(super) fn drain(&mut self, lane: u32) -> Step {
        if self.lanes[lane as usize].has_pending() {
            return Step::Blocked;
        }
        self.wait_for_baton(lane);
        let index = self.lanes[lane as usize].client as usize;
        let Some(replay) = &mut self.replays[self.clients[index].stats.job] else { return Step::Blocked };
        replay.drained += 1;
        if replay.begun.is_none() {
            // It was given up meanwhile.
            self.sleep(lane, self.clock.now);
        } else if replay.drained == replay.trace.processes.len() {
            replay.end(self.clock.now, true);
            let next = if replay.is_over() { self.clock.now } else { self.clock.now + replay.pause };
            let clients = replay.clients();
            self.wake_lanes(clients, next);
        }
        Step::Blocked
    }

    /// The time of a replay is over, unless its start-up has ended; whether it is.
    pub(super) fn replay_times_out(&mut self, client: u32, iteration: u32) -> bool {
        let Some(replay) = &mut self.replays[self.clients[client as usize].stats.job] else { return false };
        if replay.begun.is_none() || replay.iteration() != iteration {
            return false;
        }
        replay.give_up(self.clock.now);
        let clients = replay.clients();
        for c in clients.clone() {
            self.clients[c as usize].stopped = true;
        }
        self.wake_lanes(clients, self.clock.now);
        true
    }
}
