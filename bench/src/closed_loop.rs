//! The loop: see the crate's documentation.

use crate::alloc;
use fairhead_core::sched::any::{AnyScheduler, Preset};
use fairhead_core::{
    Dispatch, Duration, Elevator, Insert, Instant, Limits, Request, Sector, Sectors, Tag, TaskId,
};

type Any = Elevator<AnyScheduler>;

/// A tag is a task's number.
pub(crate) const TASKS_MAX: u16 = 4096;

/// The disk, in sectors: 128 GiB.
const DISK: u64 = 1 << 28;

/// How long the disk needs for a request.
const SERVICE: Duration = Duration::from_us(100);

/// The calls that are counted, each apart.
pub(crate) mod phase {
    use super::{Any, Dispatch, Insert, Instant, Request, Tag};

    #[inline(never)]
    pub(crate) fn insert(elevator: &mut Any, now: Instant, tag: Tag, rq: Request) -> Insert {
        elevator.insert(now, tag, rq)
    }
    #[inline(never)]
    pub(crate) fn dispatch(elevator: &mut Any, now: Instant) -> Dispatch {
        elevator.dispatch(now)
    }
    #[inline(never)]
    pub(crate) fn timer(elevator: &mut Any, now: Instant) {
        elevator.timer(now);
    }
    #[inline(never)]
    pub(crate) fn complete(elevator: &mut Any, now: Instant, tag: Tag) -> usize {
        elevator.complete(now, tag).count()
    }
}

struct Loop {
    elevator: Any,
    now: Instant,
    /// Where each task reads or writes next.
    at: Vec<Sector>,
    random: u64,
}

impl Loop {
    fn new(preset: &Preset, tasks: u16) -> Self {
        let limits = Limits { tags: tasks, tasks: u32::from(tasks), ..Limits::default() };
        let elevator = Any::new(limits, (preset.config)()).expect("a preset's tunables are in range");
        let mut this = Self { elevator, now: Instant::EPOCH, at: Vec::new(), random: 1 };
        // Apart enough that no sequential reader reaches the next.
        this.at = (0..u64::from(tasks)).map(|i| Sector(i * (DISK / u64::from(TASKS_MAX)))).collect();
        this
    }

    /// A position in units of a request.
    fn anywhere(&mut self) -> Sector {
        //= G. Marsaglia, Xorshift RNGs (2003), section 4
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        Sector(self.random % DISK / 8 * 8)
    }

    fn request(&mut self, task: u16) -> Request {
        let id = TaskId(u32::from(task));
        let random = self.anywhere();
        match task % 4 {
            0 | 1 => {
                let at = &mut self.at[usize::from(task)];
                let start = *at;
                *at = start + Sectors(8);
                Request::read(id, start, Sectors(8))
            }
            2 => Request::read(id, random, Sectors(8)),
            _ => Request::write(id, random, Sectors(8)),
        }
    }

    /// One request through dispatch and completion, and its successor inserted.
    fn turn<const MEASURED: bool>(&mut self) {
        let tag = loop {
            match calls::dispatch::<MEASURED>(&mut self.elevator, self.now) {
                Dispatch::Issue(tag) => break tag,
                Dispatch::Hold(_) => {
                    let (when, _) = self.elevator.next_timer().expect("nothing is at the device");
                    self.now = self.now.max(when);
                    calls::timer::<MEASURED>(&mut self.elevator, self.now);
                }
                Dispatch::Empty => panic!("every task has a request in the elevator"),
            }
        };
        self.now = self.now + SERVICE;
        let freed = calls::complete::<MEASURED>(&mut self.elevator, self.now, tag);
        assert_eq!(freed, 1, "nothing merges with one request a task");
        self.insert::<MEASURED>(tag);
    }

    fn insert<const MEASURED: bool>(&mut self, tag: Tag) {
        let rq = self.request(tag.0);
        let answer = calls::insert::<MEASURED>(&mut self.elevator, self.now, tag, rq);
        assert_eq!(answer, Insert::Queued);
    }
}

/// The measured functions, or others that do the same.
mod calls {
    use super::{Any, Dispatch, Insert, Instant, Request, Tag, phase};

    pub(super) fn insert<const MEASURED: bool>(e: &mut Any, now: Instant, tag: Tag, rq: Request) -> Insert {
        if MEASURED { phase::insert(e, now, tag, rq) } else { e.insert(now, tag, rq) }
    }
    pub(super) fn dispatch<const MEASURED: bool>(e: &mut Any, now: Instant) -> Dispatch {
        if MEASURED { phase::dispatch(e, now) } else { e.dispatch(now) }
    }
    pub(super) fn timer<const MEASURED: bool>(e: &mut Any, now: Instant) {
        if MEASURED { phase::timer(e, now) } else { e.timer(now) }
    }
    pub(super) fn complete<const MEASURED: bool>(e: &mut Any, now: Instant, tag: Tag) -> usize {
        if MEASURED { phase::complete(e, now, tag) } else { e.complete(now, tag).count() }
    }
}

/// Runs the loop for `requests` requests after a warm-up; answers how often the measured part touched the heap.
pub(crate) fn run(preset: &Preset, tasks: u16, requests: u32) -> u64 {
    let mut it = Loop::new(preset, tasks);
    for task in 0..tasks {
        it.insert::<false>(Tag(task));
    }
    for _ in 0..u32::from(tasks) * 2 + 1000 {
        it.turn::<false>();
    }
    let before = alloc::calls();
    for _ in 0..requests {
        it.turn::<true>();
    }
    let used = alloc::calls() - before;
    assert_eq!(it.elevator.requests().queued(), u32::from(tasks));
    it.elevator.check();
    used
}
