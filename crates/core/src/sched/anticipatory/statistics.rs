//! What is known about tasks: how long they think, how far they seek, and whether they vanish.
//!
//! Each task has a decaying mean of its think times (from the completion of its last sync request to its next
//! one, in ticks, at most 19 ms) and one of the distances between its requests. A task without a sample is
//! judged by what the first samples of others were, and by two probabilities, in 1/256:
//!
//! | probability | grows when | shrinks when |
//! |---|---|---|
//! | `exits`: a new task sends one request and exits | waiting for one was in vain, or it was found to have exited | a task gives its first sample |
//! | `exits_alone`: no task continues where an exited task stopped | waiting for one that had exited was in vain | a close request of another task comes instead |
//!
//! Growing and shrinking are steps of 1/8: from 0, four disappointments make 105/256, six 139/256: more than
//! half.
//!
//! A task has its own entry while [`Limits::tasks`](crate::Limits::tasks) suffice, and gives it back when it
//! has exited, all its requests are done and it is not awaited. If all entries are taken, a task that has
//! been idle for long makes room; if none has, further tasks share one entry, as if they were one.
//!
//= linux-2.6.32 block/as-iosched.c as_update_iohist, as_update_thinktime, as_update_seekdist

use crate::parts::decay::Decayed;
use crate::parts::tasks::{TaskMap, TaskSlot};
use crate::request::Request;
use crate::table::Table;
use crate::units::{Duration, Instant, Sector, TaskId};
use core::ops::{Index, IndexMut};

/// A probability of 1.
pub(super) const CERTAIN: u64 = 256;

/// Longer think times count as this, less one tick.
//= linux-2.6.32 block/as-iosched.c MAX_THINKTIME
const THINK_MAX: Duration = Duration::from_ms(20);

/// A seek further than any disk is long (128 PiB) counts as this, so that sums cannot overflow.
const SEEK_MAX: u64 = 1 << 48;

/// The expectations of a process that has not been seen before: the kernel's file `est_time`.
#[cfg(test)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct EstTime {
    /// The probability that it exits after its first request, in per cent.
    pub(crate) exit_percent: u64,
    /// The probability that, when a process has exited, no other continues where it stopped, in per cent.
    pub(crate) exit_no_coop_percent: u64,
    /// How long it thinks on average.
    pub(crate) think_mean: Duration,
    /// How far it seeks on average, in sectors.
    pub(crate) seek_mean: u64,
}

/// A decaying frequency, in 1/256.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Probability(u64);

impl Probability {
    pub(super) const fn get(self) -> u64 {
        self.0
    }

    pub(super) const fn hit(&mut self) {
        self.0 = (7 * self.0 + CERTAIN) / 8;
    }

    pub(super) const fn miss(&mut self) {
        self.0 = 7 * self.0 / 8;
    }
}

/// A decaying mean of first samples, where 256 stands for 1.
#[derive(Clone, Copy, Debug, Default)]
struct FirstSamples {
    total: u64,
}

impl FirstSamples {
    fn push(&mut self, value: u64) {
        self.total = (7 * self.total + CERTAIN * value) / 8;
    }

    const fn mean(self) -> u64 {
        self.total / CERTAIN
    }
}

/// What is known about one task.
#[derive(Clone, Copy, Debug)]
pub(super) struct Task {
    pub(super) alive: bool,
    /// Has sent a sync request.
    started: bool,
    /// Has seen one complete.
    pub(super) running: bool,
    pub(super) queued: u32,
    pub(super) at_device: u32,
    pub(super) handed_back: u32,
    pub(super) last_end: Instant,
    last_pos: Sector,
    pub(super) think: Decayed,
    seek: Decayed,
}

impl Task {
    fn new() -> Self {
        Self {
            alive: true,
            started: false,
            running: false,
            queued: 0,
            at_device: 0,
            handed_back: 0,
            last_end: Instant::EPOCH,
            last_pos: Sector(0),
            think: Decayed::default(),
            seek: Decayed::default(),
        }
    }

    pub(super) const fn in_flight(&self) -> u32 {
        self.at_device + self.handed_back
    }
}

/// What is expected of tasks that have not been seen before.
#[derive(Debug)]
pub(super) struct Newcomers {
    tick: Duration,
    think_ticks_max: u64,
    /// The probability that one exits after its first request.
    pub(super) exits: Probability,
    /// The probability that no task continues where an exited task stopped.
    pub(super) exits_alone: Probability,
    think: FirstSamples,
    seek: FirstSamples,
}

impl Newcomers {
    fn new(tick: Duration) -> Self {
        Self {
            tick,
            think_ticks_max: (THINK_MAX / tick).saturating_sub(1),
            exits: Probability::default(),
            exits_alone: Probability::default(),
            think: FirstSamples::default(),
            seek: FirstSamples::default(),
        }
    }

    /// `rq` is the next request of `task`; if that was new until now, it says something about others.
    fn history(&mut self, task: &mut Task, rq: &Request, now: Instant) {
        if task.running || task.started {
            // With a request queued or handed back the task did not wait for its last one, so there was no
            // thinking.
            let thinking = task.running && task.queued == 0 && task.handed_back == 0;
            let think = if thinking { now.saturating_since(task.last_end) / self.tick } else { 0 };
            let think = think.min(self.think_ticks_max);
            let seek = rq.start.distance(task.last_pos).min(SEEK_MAX);
            // First samples make up what is expected of new tasks.
            if task.think.is_empty() {
                self.think.push(think);
                self.exits.miss();
            }
            if task.seek.is_empty() {
                self.seek.push(seek);
            }
            task.think.push(think);
            task.seek.push_seek(seek);
        }
        task.last_pos = rq.end();
        task.started = true;
    }

    /// How long new tasks think, in ticks.
    pub(super) const fn think_mean(&self) -> u64 {
        self.think.mean()
    }
}

/// All tasks, and what is expected of further ones.
#[derive(Debug)]
pub(super) struct Tasks {
    map: TaskMap,
    tasks: Table<TaskSlot, Task>,
    pub(super) newcomers: Newcomers,
}

impl Index<TaskSlot> for Tasks {
    type Output = Task;
    fn index(&self, slot: TaskSlot) -> &Task {
        &self.tasks[slot]
    }
}

impl IndexMut<TaskSlot> for Tasks {
    fn index_mut(&mut self, slot: TaskSlot) -> &mut Task {
        &mut self.tasks[slot]
    }
}

impl Tasks {
    pub(super) fn new(tasks: u32, tick: Duration) -> Self {
        let map = TaskMap::new(tasks);
        Self { tasks: Table::new(map.table_len(), Task::new()), map, newcomers: Newcomers::new(tick) }
    }

    /// `rq` arrives. Returns the entry of its task, which is alive, since it sends requests.
    pub(super) fn arrive(&mut self, rq: &Request, now: Instant, awaited: Option<TaskSlot>) -> TaskSlot {
        let (mut slot, mut is_new) = self.map.claim(rq.task);
        if slot == self.map.fallback() && self.make_room(now, awaited) {
            (slot, is_new) = self.map.claim(rq.task);
        }
        let task = &mut self.tasks[slot];
        if is_new {
            *task = Task::new();
        } else if !task.alive {
            // Another task of the same number, while requests of the one before are in flight.
            let Task { queued, at_device, handed_back, .. } = *task;
            *task = Task { queued, at_device, handed_back, ..Task::new() };
        }
        if rq.sync {
            self.newcomers.history(task, rq, now);
        }
        task.queued += 1;
        slot
    }

    /// Forgets a task that has been idle for long, so that another can have its entry. Returns whether there
    /// was one.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self, now: Instant, awaited: Option<TaskSlot>) -> bool {
        let Self { map, tasks, .. } = self;
        let eldest = map.eldest(now, |slot| {
            let task = &tasks[slot];
            let stays = task.queued > 0 || task.in_flight() > 0 || awaited == Some(slot);
            (!stays).then_some(task.last_end)
        });
        if let Some(slot) = eldest {
            self.map.release(slot);
        }
        eldest.is_some()
    }

    /// A task exits; whether it was known and alive.
    pub(super) fn exit(&mut self, task: TaskId, awaited: Option<TaskSlot>) -> bool {
        let Some(slot) = self.map.find(task) else { return false };
        let was_alive = core::mem::replace(&mut self.tasks[slot].alive, false);
        self.forget_if_gone(slot, awaited);
        was_alive
    }

    /// Frees an entry that nothing refers to any more.
    pub(super) fn forget_if_gone(&mut self, slot: TaskSlot, awaited: Option<TaskSlot>) {
        let task = &self.tasks[slot];
        if !task.alive && task.queued == 0 && task.in_flight() == 0 && awaited != Some(slot) {
            self.map.release(slot);
        }
    }

    #[cfg(test)]
    pub(super) fn slot(&self, task: TaskId) -> Option<TaskSlot> {
        self.map.find(task)
    }

    pub(super) fn number(&self, slot: TaskSlot) -> Option<TaskId> {
        self.map.task(slot)
    }

    /// `rq`, of another task that seems to go on in the place of this one, counts as its own.
    pub(super) fn book_for(&mut self, slot: TaskSlot, rq: &Request, now: Instant) {
        self.newcomers.history(&mut self.tasks[slot], rq, now);
    }

    /// Waiting for the task was in vain, or it has exited: if it never gave a sample, others like it may not
    /// either.
    pub(super) fn expect_exit_if_new(&mut self, slot: TaskSlot) {
        if self.tasks[slot].think.is_empty() {
            self.newcomers.exits.hit();
        }
    }

    /// How far the task usually seeks, in sectors.
    pub(super) fn usual_seek(&self, slot: TaskSlot) -> u64 {
        let seek = &self.tasks[slot].seek;
        if seek.is_empty() { self.newcomers.seek.mean() } else { seek.mean() }
    }

    #[cfg(test)]
    pub(super) fn est_time(&self) -> EstTime {
        let Newcomers { tick, exits, exits_alone, think, seek, .. } = &self.newcomers;
        EstTime {
            exit_percent: 100 * exits.get() / CERTAIN,
            exit_no_coop_percent: 100 * exits_alone.get() / CERTAIN,
            think_mean: *tick * think.mean(),
            seek_mean: seek.mean(),
        }
    }

    pub(super) fn check(&self, queued: u32, at_device: u32, in_flight: u32) {
        let mut sums = [0; 3];
        for (_, task) in self.tasks.iter() {
            sums[0] += task.queued;
            sums[1] += task.at_device;
            sums[2] += task.in_flight();
        }
        assert_eq!(
            sums,
            [queued, at_device, in_flight],
            "requests by task: queued, at the device, in flight"
        );
        assert!(self.tasks[self.map.fallback()].alive, "those who share an entry cannot exit");
    }
}
