//! Which process runs on which processor, on hosts of the multi-queue era.
//!
//! Each client is a process. What it has to do is a list; it does one thing after the other, on one processor
//! at a time:
//!
//! ```text
//!   completion, think time ends ─► ready list of the process ─► (asleep? place it) ─► processor ─► next thing, or sleep
//!                                                                                 ▲        │ behind the first that waits?
//!                                                                                 └────────┘
//! ```
//!
//! A process that wakes goes to the processor that it was on, to an idle one that it may use, or into the
//! shortest queue. A processor that has nothing to do takes a process from another's queue. Between two
//! things a process yields to one in its queue that has had less CPU time, by [`Processors::GRAIN`]; one that
//! has slept is behind by at most [`Processors::CREDIT`], so that sleepers come at once and cannot save up.
//
//= docs/reference/nvme.md#3-what-a-model-needs

use super::waiting::{Line, Tickets};
use crate::metrics::CpuBooks;
use crate::rng::Rng;
use fairhead_core::Duration;
use std::collections::VecDeque;

/// Something that a process does on a processor, for one of its lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// Computes before a call, which is then submitted.
    Prepare(u32),
    /// Takes note that what a lane waited for has come.
    TakeUp(u32),
    /// Looks for a request again, which a lane waits for.
    Retry(u32),
    /// Pays for requests that a buffered call has handed in.
    Pay(u32),
    /// Submits the calls that it has prepared.
    Submit(u32),
}

impl Work {
    pub(super) const fn lane(self) -> u32 {
        match self {
            Self::Prepare(lane)
            | Self::TakeUp(lane)
            | Self::Retry(lane)
            | Self::Pay(lane)
            | Self::Submit(lane) => lane,
        }
    }
}

/// Where a process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It has nothing to do.
    Asleep,
    /// It waits in the queue of its processor.
    Waits,
    /// It is on its processor.
    Runs,
}

/// Processors that a process may use, one bit each; `None`: all.
pub(super) type Allowed = Option<Box<[u64]>>;

/// How a process runs.
#[derive(Debug)]
pub(super) struct Habits {
    /// Where.
    pub(super) allowed: Allowed,
    /// How many completions it takes up at a time: the least, unless fewer calls are in flight, and the most.
    pub(super) reaps: (u32, u32),
}

#[derive(Debug)]
struct Process {
    state: State,
    /// Calls to be prepared; and everything else.
    calls: VecDeque<Work>,
    ready: VecDeque<Work>,
    /// How many completions it takes up before it prepares calls, and how many it has.
    reaps: u32,
    reaped: u32,
    /// How many completions it waits for before it takes up any; and of those that it is at, how many are
    /// left.
    at_least: u32,
    left: u32,
    /// Lanes whose calls are prepared and not submitted.
    staged: Vec<u32>,
    /// What it does now, and what that takes.
    doing: Option<Work>,
    spent: CpuBooks,
    /// It was woken, and has not paid for that.
    is_waking: bool,
    /// The processor that it is on, or was on last.
    cpu: u16,
    allowed: Allowed,
    /// CPU time that it has had, as far as it counts.
    had: Duration,
}

impl Process {
    fn may_use(&self, cpu: usize) -> bool {
        let allowed = self.allowed.as_deref();
        allowed.is_none_or(|set| set.get(cpu / 64).is_some_and(|word| word >> (cpu % 64) & 1 == 1))
    }

    /// Whether it has something to do, with `in_flight` calls in flight.
    fn has_work(&self, in_flight: u32) -> bool {
        if self.at_least <= 1 {
            return !self.ready.is_empty() || !self.calls.is_empty();
        }
        let enough = self.at_least.min(in_flight).max(1) as usize;
        self.left > 0 || !self.calls.is_empty() || self.ready.len() >= enough
    }

    /// The next work of a process that waits for several completions: it takes up those that are there, then
    /// prepares the calls in their place.
    fn next_in_batches(&mut self) -> Option<Work> {
        if self.left == 0 {
            if let Some(call) = self.calls.pop_front() {
                return Some(call);
            }
            self.left = u32::try_from(self.ready.len()).unwrap_or(u32::MAX).min(self.reaps);
        }
        self.left = self.left.saturating_sub(1);
        self.ready.pop_front()
    }
}

#[derive(Debug, Default)]
struct Processor {
    running: Option<u32>,
    waiting: Line,
    /// What the process on it has had, or the last.
    clock: Duration,
}

#[derive(Debug)]
pub(super) struct Processors {
    all: Vec<Processor>,
    idle: usize,
    /// Processes in queues.
    queued: usize,
    tickets: Tickets,
    processes: Vec<Process>,
    /// What all processes have done.
    books: CpuBooks,
    /// By how much work is longer or shorter than usual.
    chance: Rng,
}

impl Processors {
    /// How much less CPU time a waiting process must have had to preempt the one that runs.
    const GRAIN: Duration = Duration::from_ms(1);
    /// The most by which a process that slept counts as having had less CPU time than others.
    const CREDIT: Duration = Duration::from_ms(3);

    /// Processors for processes.
    pub(super) fn new(cpus: u32, of: Vec<Habits>, chance: Rng) -> Self {
        let count = cpus.max(1) as usize;
        let processes = of.into_iter().enumerate().map(|(i, Habits { allowed, reaps })| Process {
            state: State::Asleep,
            calls: VecDeque::new(),
            ready: VecDeque::new(),
            reaps: reaps.1,
            reaped: 0,
            at_least: reaps.0,
            left: 0,
            staged: Vec::new(),
            doing: None,
            spent: CpuBooks::default(),
            is_waking: false,
            #[allow(clippy::cast_possible_truncation, reason = "there are at most 1024 processors")]
            cpu: (i % count) as u16,
            allowed,
            had: Duration::ZERO,
        });
        let processes: Vec<Process> = processes.collect();
        Self {
            tickets: Tickets::new(processes.len()),
            processes,
            all: (0..count).map(|_| Processor::default()).collect(),
            idle: count,
            queued: 0,
            books: CpuBooks::default(),
            chance,
        }
    }

    /// The processor that a process is on, or was on last.
    #[inline]
    pub(super) fn cpu_of(&self, process: usize) -> u16 {
        self.processes[process].cpu
    }

    /// The CPU time that a process has had, as far as it counts.
    pub(super) fn had(&self, process: usize) -> Duration {
        self.processes[process].had
    }

    /// What all processes have done so far.
    pub(super) const fn books(&self) -> CpuBooks {
        self.books
    }

    /// Adds work to a process that has `in_flight` calls in flight. True if it slept and has got a processor:
    /// it is to be started.
    #[inline]
    pub(super) fn add(&mut self, process: usize, work: Work, in_flight: u32) -> bool {
        let p = &mut self.processes[process];
        let list = if matches!(work, Work::Prepare(_)) { &mut p.calls } else { &mut p.ready };
        list.push_back(work);
        p.state == State::Asleep && p.has_work(in_flight) && self.wake(process)
    }

    fn may_use(&self, process: usize, cpu: usize) -> bool {
        self.processes[process].may_use(cpu)
    }

    /// Finds a processor for a process that slept. True if it is on one now.
    fn wake(&mut self, process: usize) -> bool {
        let last = usize::from(self.processes[process].cpu);
        let is_free = |cpu: &usize| self.all[*cpu].running.is_none() && self.may_use(process, *cpu);
        let found = is_free(&last).then_some(last);
        let found = found.or_else(|| (self.idle > 0).then(|| (0..self.all.len()).find(is_free)).flatten());
        self.processes[process].is_waking = true;
        if let Some(cpu) = found {
            self.catch_up(process, cpu);
            self.put(process, cpu);
            return true;
        }
        let length = |cpu: &usize| (self.all[*cpu].waiting.len(), *cpu != last);
        let usable = (0..self.all.len()).filter(|&cpu| self.may_use(process, cpu));
        let cpu = usable.min_by_key(length).unwrap_or(last);
        self.catch_up(process, cpu);
        self.enqueue(process, cpu);
        false
    }

    /// A process comes to a processor: it counts as not much behind those that are there, nor ahead of them.
    fn catch_up(&mut self, process: usize, cpu: usize) {
        let clock = self.all[cpu].clock;
        let p = &mut self.processes[process];
        p.had = p.had.clamp(clock.saturating_sub(Self::CREDIT), clock);
    }

    #[allow(
        clippy::cast_possible_truncation,
        reason = "there are at most 1024 processors, and fewer than 2^32 processes"
    )]
    fn put(&mut self, process: usize, cpu: usize) {
        self.idle -= 1;
        self.all[cpu].running = Some(process as u32);
        let p = &mut self.processes[process];
        (p.state, p.cpu) = (State::Runs, cpu as u16);
    }

    #[allow(
        clippy::cast_possible_truncation,
        reason = "there are at most 1024 processors, and fewer than 2^32 processes"
    )]
    fn enqueue(&mut self, process: usize, cpu: usize) {
        self.queued += 1;
        let p = &mut self.processes[process];
        (p.state, p.cpu) = (State::Waits, cpu as u16);
        self.all[cpu].waiting.push(&mut self.tickets, process as u32, p.had);
    }

    /// What the process, which is on a processor, does next; and whether it was just woken. It has nothing:
    /// `None`.
    #[inline]
    pub(super) fn next(&mut self, process: usize) -> Option<(Work, bool)> {
        let p = &mut self.processes[process];
        if p.at_least > 1 {
            p.doing = p.next_in_batches();
            return Some((p.doing?, std::mem::take(&mut p.is_waking)));
        }
        // A program such as fio takes up one completion and makes a call in its place, unless the job has it
        // take more at a time.
        let prepares = p.reaped >= p.reaps || p.ready.is_empty();
        let work = if prepares { p.calls.pop_front() } else { None };
        let work = work.or_else(|| {
            p.reaped = if p.calls.is_empty() && prepares { 1 } else { p.reaped + 1 };
            p.ready.pop_front()
        });
        p.doing = work;
        Some((work?, std::mem::take(&mut p.is_waking)))
    }

    /// The process does this now.
    #[inline]
    pub(super) fn does(&mut self, process: usize, work: Work) {
        self.processes[process].doing = Some(work);
    }

    /// Makes work that is no visit of a lock longer or shorter by chance, by at most `most` percent.
    #[inline]
    pub(super) fn spread(&mut self, most: u8, spent: &mut CpuBooks) {
        let most = u64::from(most);
        if most == 0 {
            return;
        }
        let percent = 100 - most + self.chance.below(2 * most + 1);
        // Most work is one of the two.
        for part in [&mut spent.submit, &mut spent.complete].into_iter().filter(|part| !part.is_zero()) {
            *part = *part * percent / 100;
        }
    }

    /// The process begins with what it does now, which takes this. Returns how long that is.
    #[inline]
    pub(super) fn begin(&mut self, process: usize, spent: CpuBooks) -> Duration {
        let takes = spent.total();
        let p = &mut self.processes[process];
        p.spent = spent;
        p.had += takes;
        self.all[usize::from(p.cpu)].clock = p.had;
        takes
    }

    /// The process has done what it was at. Returns what that was, and what it took.
    #[inline]
    pub(super) fn done(&mut self, process: usize) -> (Option<Work>, CpuBooks) {
        let p = &mut self.processes[process];
        let spent = std::mem::take(&mut p.spent);
        self.books.add(&spent);
        (p.doing, spent)
    }

    /// A call is prepared. True if it is time to submit those that are.
    #[inline]
    pub(super) fn stage(&mut self, process: usize, lane: u32, batch: u32) -> bool {
        let p = &mut self.processes[process];
        p.staged.push(lane);
        p.calls.is_empty() || p.staged.len() >= batch as usize
    }

    /// The lanes whose calls are prepared.
    #[inline]
    pub(super) fn staged(&self, process: usize) -> &[u32] {
        &self.processes[process].staged
    }

    /// The one call that is prepared, if there is only one; it is no longer.
    #[inline]
    pub(super) fn take_single(&mut self, process: usize) -> Option<u32> {
        let staged = &mut self.processes[process].staged;
        if staged.len() == 1 { staged.pop() } else { None }
    }

    /// The calls that are prepared; they are no longer.
    #[inline]
    pub(super) fn take_staged(&mut self, process: usize) -> Vec<u32> {
        std::mem::take(&mut self.processes[process].staged)
    }

    /// Gives back what [`take_staged`](Self::take_staged) gave, or its memory.
    #[inline]
    pub(super) fn return_staged(&mut self, process: usize, staged: Vec<u32>) {
        let p = &mut self.processes[process];
        if p.staged.is_empty() {
            p.staged = staged;
        }
    }

    /// A process, which has `in_flight` calls in flight, has done one thing. Returns the process that is on
    /// its processor from now on: itself, one that waited, or none.
    #[inline]
    pub(super) fn turn(&mut self, process: usize, in_flight: u32) -> Option<usize> {
        let p = &self.processes[process];
        let (cpu, sleeps, had) = (usize::from(p.cpu), !p.has_work(in_flight), p.had);
        if self.queued == 0 && !sleeps {
            return Some(process);
        }
        if !sleeps {
            let least = self.all[cpu].waiting.least(&self.tickets);
            // A process is preempted only if another has had less by a grain; else each call would change
            // processes.
            let next = least.filter(|least| *least + Self::GRAIN <= had).and_then(|_| self.call(cpu));
            let Some(next) = next else { return Some(process) };
            self.leave(process, State::Waits);
            self.enqueue(process, cpu);
            self.put(next, cpu);
            return Some(next);
        }
        self.leave(process, State::Asleep);
        if self.queued == 0 {
            return None;
        }
        let next = match self.call(cpu) {
            Some(next) => next,
            None => {
                // Nothing waits here, so the processor takes a process from the longest queue, as an idle one
                // does.
                let next = self.steal_for(cpu)?;
                self.catch_up(next, cpu);
                next
            }
        };
        self.put(next, cpu);
        Some(next)
    }

    fn leave(&mut self, process: usize, state: State) {
        self.idle += 1;
        let p = &mut self.processes[process];
        (p.state, p.doing) = (state, None);
        self.all[usize::from(p.cpu)].running = None;
    }

    /// Of those who wait for a processor the one that has had the least CPU time leaves its queue.
    fn call(&mut self, cpu: usize) -> Option<usize> {
        let next = self.all[cpu].waiting.call(&mut self.tickets)?;
        self.queued -= 1;
        Some(next as usize)
    }

    /// Returns the process that an idle processor takes from the longest queue that has one for it.
    fn steal_for(&mut self, cpu: usize) -> Option<usize> {
        let mut longest: Option<(usize, usize, u32)> = None;
        for from in 0..self.all.len() {
            let len = self.all[from].waiting.len();
            if len <= longest.map_or(0, |l| l.0) {
                continue;
            }
            let (processes, tickets) = (&self.processes, &self.tickets);
            let may_have = |p: u32| processes[p as usize].may_use(cpu);
            if let Some(process) = self.all[from].waiting.oldest(tickets, may_have) {
                longest = Some((len, from, process));
            }
        }
        let (_, from, process) = longest?;
        self.all[from].waiting.leave(&mut self.tickets, process);
        self.queued -= 1;
        Some(process as usize)
    }

    /// Panics if the books do not agree with each other: a process on two processors, or on one and in a
    /// queue.
    #[cfg(debug_assertions)]
    pub(super) fn check(&self) {
        let mut seen = vec![0; self.processes.len()];
        for (i, cpu) in self.all.iter().enumerate() {
            let here = cpu.running.iter().map(|p| (p, State::Runs));
            let here = here.map(|(&p, state)| (p, state));
            for (p, state) in here.chain(cpu.waiting.iter(&self.tickets).map(|p| (p, State::Waits))) {
                seen[p as usize] += 1;
                let process = &self.processes[p as usize];
                assert_eq!((process.state, usize::from(process.cpu)), (state, i), "where a process is");
                assert!(self.may_use(p as usize, i), "process {p} may not use processor {i}");
            }
        }
        assert_eq!(self.idle, self.all.iter().filter(|c| c.running.is_none()).count(), "idle processors");
        assert_eq!(
            self.queued,
            self.all.iter().map(|c| c.waiting.len()).sum::<usize>(),
            "processes in queues"
        );
        for (p, count) in self.processes.iter().zip(seen) {
            assert_eq!(count, i32::from(p.state != State::Asleep), "a process is in one place");
        }
    }
}
