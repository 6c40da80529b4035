//! The loop: see the crate's documentation.

use crate::alloc;
use fairhead_core::sched::Scheduler;
use fairhead_core::sched::any::{AnyConfig, AnyScheduler, Preset};
use fairhead_core::sched::fair::Fair;
use fairhead_core::sched::{anticipatory, bfq, cfq, cfq_early, deadline, kyber, mq_deadline, noop};
use fairhead_core::{
    Dispatch, Duration, Elevator, GroupId, Insert, Instant, Limits, Request, Rest, Sector, Sectors, Tag,
    TaskId,
};

/// A tag is a task's number.
pub(crate) const TASKS_MAX: u16 = 4096;

/// The disk, in sectors: 128 GiB.
const DISK: u64 = 1 << 28;

/// The region of a sequential reader, in sectors. It reads it again and again.
const REGION: u64 = DISK / TASKS_MAX as u64;

/// How long the disk needs for a request.
const SERVICE: Duration = Duration::from_us(100);

/// The calls that are counted, each apart.
pub(crate) mod phase {
    use super::{Dispatch, Elevator, Insert, Instant, Request, Rest, Scheduler, Tag};

    #[inline(never)]
    pub(crate) fn insert<S: Scheduler>(
        elevator: &mut Elevator<S>,
        now: Instant,
        tag: Tag,
        rq: Request,
    ) -> Insert {
        elevator.insert(now, tag, rq)
    }
    #[inline(never)]
    pub(crate) fn dispatch<S: Scheduler>(elevator: &mut Elevator<S>, now: Instant) -> Dispatch {
        elevator.dispatch(now)
    }
    #[inline(never)]
    pub(crate) fn insert_batch<S: Scheduler>(
        elevator: &mut Elevator<S>,
        now: Instant,
        batch: &[(Tag, Request)],
    ) {
        elevator.insert_batch(now, batch, |_, answer| assert_eq!(answer, Insert::Queued));
    }
    /// Returns how many were issued; they are the first of `issued`.
    #[inline(never)]
    pub(crate) fn dispatch_batch<S: Scheduler>(
        elevator: &mut Elevator<S>,
        now: Instant,
        issued: &mut [Tag],
    ) -> (usize, Rest) {
        let mut places = issued.iter_mut();
        let rest = elevator.dispatch_batch(now, places.len(), |tag| {
            if let Some(place) = places.next() {
                *place = tag;
            }
        });
        let left = places.len();
        (issued.len() - left, rest)
    }
    #[inline(never)]
    pub(crate) fn timer<S: Scheduler>(elevator: &mut Elevator<S>, now: Instant) {
        elevator.timer(now);
    }
    #[inline(never)]
    pub(crate) fn complete<S: Scheduler>(elevator: &mut Elevator<S>, now: Instant, tag: Tag) -> usize {
        elevator.complete(now, tag).count()
    }
}

struct Loop<S> {
    elevator: Elevator<S>,
    now: Instant,
    /// Where each task reads or writes next.
    at: Vec<Sector>,
    random: u64,
    groups: u16,
    /// Of the batch at hand: what is to be inserted, and what was issued.
    batch: Vec<(Tag, Request)>,
    issued: Vec<Tag>,
}

impl<S: Scheduler> Loop<S> {
    fn new(config: S::Config, tasks: u16, groups: u16) -> Self {
        let limits =
            Limits { tags: tasks, tasks: u32::from(tasks), groups: u32::from(groups), ..Limits::default() };
        let elevator = Elevator::new(limits, config).expect("a preset's tunables are in range");
        let (batch, issued) =
            (Vec::with_capacity(usize::from(tasks)), Vec::with_capacity(usize::from(tasks)));
        let mut this =
            Self { elevator, now: Instant::EPOCH, at: Vec::new(), random: 1, groups, batch, issued };
        this.at = (0..u64::from(tasks)).map(|i| Sector(i * REGION)).collect();
        this
    }

    /// A position that touches no other request: sequential ones are at multiples of 8.
    fn anywhere(&mut self) -> Sector {
        //= G. Marsaglia, Xorshift RNGs (2003), section 4
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        Sector(self.random % DISK / 16 * 16 + 4)
    }

    fn request(&mut self, task: u16) -> Request {
        let id = TaskId(u32::from(task));
        let random = self.anywhere();
        let rq = match task % 4 {
            0 | 1 => {
                let at = &mut self.at[usize::from(task)];
                let start = *at;
                *at = start + Sectors(8);
                // Back to the start of its region before it touches the next reader's.
                let first = u64::from(task) * REGION;
                if at.0 + 8 >= first + REGION {
                    *at = Sector(first);
                }
                Request::read(id, start, Sectors(8))
            }
            2 => Request::read(id, random, Sectors(8)),
            _ => Request::write(id, random, Sectors(8)),
        };
        Request { group: GroupId(u32::from(task % self.groups)), ..rq }
    }

    /// One request through dispatch and completion, and its successor inserted.
    fn turn<const MEASURED: bool>(&mut self) {
        let tag = loop {
            match calls::dispatch::<S, MEASURED>(&mut self.elevator, self.now) {
                Dispatch::Issue(tag) => break tag,
                Dispatch::Hold(_) => {
                    let (when, _) = self.elevator.next_timer().expect("nothing is at the device");
                    self.now = self.now.max(when);
                    calls::timer::<S, MEASURED>(&mut self.elevator, self.now);
                }
                Dispatch::Empty => panic!("every task has a request in the elevator"),
            }
        };
        self.now = self.now + SERVICE;
        let freed = calls::complete::<S, MEASURED>(&mut self.elevator, self.now, tag);
        assert_eq!(freed, 1, "nothing merges with one request a task");
        self.insert::<MEASURED>(tag);
    }

    fn insert<const MEASURED: bool>(&mut self, tag: Tag) {
        let rq = self.request(tag.0);
        let answer = calls::insert::<S, MEASURED>(&mut self.elevator, self.now, tag, rq);
        assert_eq!(answer, Insert::Queued);
    }
}

/// Several requests at a time.
impl<S: Scheduler> Loop<S> {
    /// At most `size` requests through dispatch and completion, and their successors inserted: with one call
    /// for all dispatches and one for all insertions if `BATCHED`, else with one for each. Returns how many.
    fn turn_of<const MEASURED: bool, const BATCHED: bool>(&mut self, size: usize) -> usize {
        self.issued.clear();
        while !self.dispatch_some::<MEASURED, BATCHED>(size) {
            let (when, _) = self.elevator.next_timer().expect("nothing is at the device");
            self.now = self.now.max(when);
            calls::timer::<S, MEASURED>(&mut self.elevator, self.now);
        }
        self.now = self.now + SERVICE;
        self.batch.clear();
        for i in 0..self.issued.len() {
            let tag = self.issued[i];
            let freed = calls::complete::<S, MEASURED>(&mut self.elevator, self.now, tag);
            assert_eq!(freed, 1, "nothing merges with one request a task");
            let rq = self.request(tag.0);
            self.batch.push((tag, rq));
        }
        if MEASURED && BATCHED {
            phase::insert_batch(&mut self.elevator, self.now, &self.batch);
        } else {
            for &(tag, rq) in &self.batch {
                let answer = calls::insert::<S, MEASURED>(&mut self.elevator, self.now, tag, rq);
                assert_eq!(answer, Insert::Queued);
            }
        }
        self.issued.len()
    }

    /// Issues up to `size` requests. Returns whether there is any.
    fn dispatch_some<const MEASURED: bool, const BATCHED: bool>(&mut self, size: usize) -> bool {
        if MEASURED && BATCHED {
            self.issued.resize(size, Tag(0));
            let (issued, rest) = phase::dispatch_batch(&mut self.elevator, self.now, &mut self.issued);
            assert!(issued == size || rest != Rest::Full);
            self.issued.truncate(issued);
        } else {
            while self.issued.len() < size
                && let Dispatch::Issue(tag) = calls::dispatch::<S, MEASURED>(&mut self.elevator, self.now)
            {
                self.issued.push(tag);
            }
        }
        !self.issued.is_empty()
    }
}

/// The measured functions, or others that do the same.
mod calls {
    use super::{Dispatch, Elevator, Insert, Instant, Request, Scheduler, Tag, phase};

    pub(super) fn insert<S: Scheduler, const MEASURED: bool>(
        e: &mut Elevator<S>,
        now: Instant,
        tag: Tag,
        rq: Request,
    ) -> Insert {
        if MEASURED { phase::insert(e, now, tag, rq) } else { e.insert(now, tag, rq) }
    }
    pub(super) fn dispatch<S: Scheduler, const MEASURED: bool>(
        e: &mut Elevator<S>,
        now: Instant,
    ) -> Dispatch {
        if MEASURED { phase::dispatch(e, now) } else { e.dispatch(now) }
    }
    pub(super) fn timer<S: Scheduler, const MEASURED: bool>(e: &mut Elevator<S>, now: Instant) {
        if MEASURED { phase::timer(e, now) } else { e.timer(now) }
    }
    pub(super) fn complete<S: Scheduler, const MEASURED: bool>(
        e: &mut Elevator<S>,
        now: Instant,
        tag: Tag,
    ) -> usize {
        if MEASURED { phase::complete(e, now, tag) } else { e.complete(now, tag).count() }
    }
}

/// Runs the loop for `requests` requests after a warm-up; answers how often the measured part touched the
/// heap. The elevator is made for its scheduler alone, as in a kernel or another driver that has a fixed
/// scheduler.
pub(crate) fn run(preset: &Preset, tasks: u16, requests: u32, groups: u16) -> u64 {
    match (preset.config)() {
        AnyConfig::Outside(_) => run_any(preset, tasks, requests, groups),
        AnyConfig::Noop(c) => run_with::<noop::Noop>(c, tasks, groups, requests),
        AnyConfig::Deadline(c) => run_with::<deadline::Deadline>(c, tasks, groups, requests),
        AnyConfig::MqDeadline(c) => run_with::<mq_deadline::MqDeadline>(c, tasks, groups, requests),
        AnyConfig::Kyber(c) => run_with::<kyber::Kyber>(c, tasks, groups, requests),
        AnyConfig::Anticipatory(c) => run_with::<anticipatory::Anticipatory>(c, tasks, groups, requests),
        AnyConfig::CfqRoundRobin(c) => run_with::<cfq_early::RoundRobin>(c, tasks, groups, requests),
        AnyConfig::CfqTs1(c) => run_with::<cfq_early::CfqTs1>(c, tasks, groups, requests),
        AnyConfig::CfqTs2(c) => run_with::<cfq_early::CfqTs2>(c, tasks, groups, requests),
        AnyConfig::Cfq(c) => run_with::<cfq::Cfq>(c, tasks, groups, requests),
        AnyConfig::Bfq(c) => run_with::<bfq::Bfq>(c, tasks, groups, requests),
        AnyConfig::FairNoop(c) => run_with::<Fair<noop::Noop>>(c, tasks, groups, requests),
        AnyConfig::FairDeadline(c) => run_with::<Fair<deadline::Deadline>>(c, tasks, groups, requests),
        AnyConfig::FairCfq(c) => run_with::<Fair<cfq::Cfq>>(c, tasks, groups, requests),
        AnyConfig::FairAnticipatory(c) => {
            run_with::<Fair<anticipatory::Anticipatory>>(c, tasks, groups, requests)
        }
    }
}

/// Runs the loop like [`run`], with the scheduler chosen at run time.
pub(crate) fn run_any(preset: &Preset, tasks: u16, requests: u32, groups: u16) -> u64 {
    run_with::<AnyScheduler>((preset.config)(), tasks, groups, requests)
}

/// As [`run_any`], but up to `size` requests at a time, in batches or with a call for each.
pub(crate) fn run_batches(
    preset: &Preset,
    tasks: u16,
    requests: u32,
    groups: u16,
    size: usize,
    batched: bool,
) -> u64 {
    let config = (preset.config)();
    if batched {
        run_batches_with::<true>(config, tasks, groups, requests, size)
    } else {
        run_batches_with::<false>(config, tasks, groups, requests, size)
    }
}

fn run_batches_with<const BATCHED: bool>(
    config: AnyConfig,
    tasks: u16,
    groups: u16,
    requests: u32,
    size: usize,
) -> u64 {
    let mut it = Loop::<AnyScheduler>::new(config, tasks, groups);
    for task in 0..tasks {
        it.insert::<false>(Tag(task));
    }
    let mut left = usize::from(tasks) * 2 + 1000;
    while left > 0 {
        left -= it.turn_of::<false, BATCHED>(size.min(left));
    }
    let before = alloc::calls();
    let mut left = requests as usize;
    while left > 0 {
        left -= it.turn_of::<true, BATCHED>(size.min(left));
    }
    let used = alloc::calls() - before;
    assert_eq!(it.elevator.requests().queued(), u32::from(tasks));
    it.elevator.check();
    used
}

fn run_with<S: Scheduler>(config: S::Config, tasks: u16, groups: u16, requests: u32) -> u64 {
    let mut it = Loop::<S>::new(config, tasks, groups);
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
