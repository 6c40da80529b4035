//! The life of queues, tried with random events: tasks that read streams together and part again, exit with
//! requests anywhere, change groups and priorities; groups that go, come back and move; queues that run out;
//! a clock that jumps.
//
//= docs/reference/bfq.md#85-lifecycle type=test
//!
//! The suite's storms do this to every scheduler. Here tasks are made to meet, so that merges, splits, wakers
//! and bursts come by the hundred; the test counts them. Everything is walked after each event, and in the
//! end all must have been given back.

use super::*;
use crate::config::{Tunables, Unit};
use crate::units::Weight;
use core::num::NonZeroU16;

const TASKS: u32 = 10;
const SPAN: u64 = 1 << 22;

/// Numbers that look drawn.
struct Chance(u64);

impl Chance {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % n
    }

    fn percent(&mut self, p: u64) -> bool {
        self.below(100) < p
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        let i = usize::try_from(self.below(of.len() as u64)).unwrap();
        of[i]
    }
}

/// What a task reads.
#[derive(Clone, Copy)]
enum Habit {
    /// The next piece of a stream that others read too.
    Stream(usize),
    /// Its own stream.
    Alone(u64),
    Anywhere,
    /// It writes, and does not wait.
    Writes,
}

struct Storm {
    seed: u64,
    rig: Rig,
    chance: Chance,
    habits: [Habit; TASKS as usize],
    prios: [IoPrio; TASKS as usize],
    groups: [u32; TASKS as usize],
    streams: [u64; 3],
    stay: u64,
    /// Tasks mostly send when a request of another one, always the same, completes.
    wakes: bool,
    seen: Vec<(Reason, u32)>,
}

impl Storm {
    fn new(seed: u64) -> Self {
        let mut chance = Chance(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let mut config = Config::live();
        let calm = chance.percent(30);
        for t in Config::LIST.iter().filter(|t| t.unit == Unit::Switch) {
            if !calm && chance.percent(15) {
                config.set(t.name, chance.below(2)).unwrap();
            }
        }
        config.tick = chance.pick(&[Duration::ZERO, Duration::ZERO, ms(4)]);
        config.slice_idle = chance.pick(&[ms(8), ms(8), ms(1), Duration::ZERO]);
        let halves = [Sector(SPAN / 2), Sector(SPAN / 2 + 9000)];
        let limits = Limits {
            tags: 32,
            tasks: chance.pick(&[2, 5, 16]),
            groups: chance.pick(&[1, 3]),
            rotational: chance.percent(60),
            queue_depth: 32,
            actuators: Actuators::at(&halves[..chance.pick(&[0, 0, 1, 2])]),
            ..Limits::default()
        };
        let mut rig = Rig::with(limits, config);
        if chance.percent(20) {
            rig.now = Instant::from_ns((1 << 63) - 1_000_000_000);
        }
        Self {
            seed,
            rig,
            habits: [Habit::Stream(0); TASKS as usize],
            prios: [IoPrio::default(); TASKS as usize],
            groups: [0; TASKS as usize],
            streams: [1000, SPAN / 2 - 3000, SPAN - 100_000],
            stay: chance.pick(&[99, 97, 80]),
            wakes: chance.percent(25),
            seen: Vec::new(),
            chance,
        }
    }

    fn step(&mut self) {
        match self.chance.below(100) {
            0..30 if self.wakes => self.rig.pass(ms(1)),
            30..33 if self.wakes => self.rig.pass(ms(20)),
            0..38 => {
                let task = self.task();
                self.send(task);
            }
            38..66 => {
                let _ = self.rig.dispatch();
            }
            66..86 => self.finish_one(),
            86..95 => {
                let us = self.chance.pick(&[0, 100, 1000, 3000, 9000]);
                self.rig.pass(Duration::from_us(us));
            }
            95 => {
                let time = self.chance.pick(&[21, 30, 130, 190, 650, 2100, 11_000, 3_600_000]);
                self.rig.pass(ms(time));
            }
            96 => {
                let task = self.task();
                self.rig.exit(task);
            }
            97 => {
                let i = self.task() as usize;
                let class =
                    self.chance.pick(&[Class::BestEffort, Class::BestEffort, Class::RealTime, Class::Idle]);
                self.prios[i] = IoPrio::new(class, self.chance.pick(&[4, 4, 0, 7]));
            }
            98 => {
                let i = self.task() as usize;
                self.groups[i] = self.chance.pick(&[0, 0, 1, 2, 7]);
            }
            _ => self.change_groups(),
        }
        while let Some(e) = self.rig.books.trace.pop() {
            match self.seen.iter_mut().find(|(reason, _)| *reason == e.reason) {
                Some((_, n)) => *n += 1,
                None => self.seen.push((e.reason, 1)),
            }
        }
    }

    fn task(&mut self) -> u32 {
        u32::try_from(self.chance.below(u64::from(TASKS))).unwrap()
    }

    fn change_groups(&mut self) {
        let group = GroupId(self.chance.pick(&[0, 1, 2, 7]));
        match self.chance.below(4) {
            0 => self.rig.control(Control::GroupExit(group)),
            // It is not refused here: whatever waits in there goes with it.
            3 => {
                let parent = GroupId(self.chance.pick(&[0, 1, 2]));
                self.rig.control(Control::SetParent(group, parent));
            }
            1 => {
                let weight = self.chance.pick(&[1, 100, 1000, 9999]);
                self.rig.control(Control::SetWeight(group, Weight(NonZeroU16::new(weight).unwrap())));
            }
            _ => {
                let task = TaskId(self.task());
                self.rig.control(Control::SetPrio(
                    task,
                    IoPrio::new(Class::BestEffort, self.chance.pick(&[1, 4])),
                ));
            }
        }
    }

    fn send(&mut self, task: u32) {
        if self.rig.free.is_empty() {
            return;
        }
        let i = task as usize;
        if !self.chance.percent(self.stay) {
            let stream = self.chance.pick(&[0, 0, 1, 2]);
            let own = self.chance.below(SPAN);
            self.habits[i] = self.chance.pick(&[
                Habit::Stream(stream),
                Habit::Stream(stream),
                Habit::Alone(own),
                Habit::Anywhere,
                Habit::Writes,
            ]);
        }
        let len = self.chance.pick(&[8, 8, 8, 64, 100]);
        let start = match &mut self.habits[i] {
            Habit::Stream(s) => advance(&mut self.streams[*s], len),
            Habit::Alone(at) => advance(at, len),
            Habit::Anywhere | Habit::Writes => self.chance.below(SPAN),
        };
        let sync = !matches!(self.habits[i], Habit::Writes);
        let rq = Request {
            sync,
            len: Sectors(len),
            prio: self.prios[i],
            ..in_group(read(task, start), self.groups[i])
        };
        self.rig.insert(rq);
    }

    fn finish_one(&mut self) {
        let at_device: Vec<Tag> =
            self.rig.requests.iter().filter(|(_, s)| s.state == State::Issued).map(|(tag, _)| tag).collect();
        if !at_device.is_empty() {
            let tag = self.chance.pick(&at_device);
            let task = self.rig.requests[tag].rq.task.0;
            self.rig.complete(tag);
            if self.wakes {
                self.rig.pass(Duration::from_us(300));
                self.send(task ^ 1);
            }
        }
    }

    /// Everything drains, all tasks exit, and everything is given back.
    fn end(mut self) -> Vec<(Reason, u32)> {
        self.rig.drain_issued();
        for task in 0..TASKS {
            self.rig.exit(task);
        }
        self.rig.pass(Duration::from_secs(1));
        let bfq = &self.rig.bfq;
        let left: Vec<_> = bfq.queues.iter().filter(|(_, queue)| queue.in_use).skip(1).collect();
        assert!(left.is_empty(), "seed {}: only the fallback is to be left: {left:#?}", self.seed);
        assert!(
            bfq.rules.bursts.counts().1 == 0
                && bfq.rules.wakers.last_completed().is_none_or(|q| q == QueueId::FALLBACK)
        );
        assert!(
            bfq.groups.iter().all(|(_, group)| group.last_created.is_none() && group.positions.is_empty())
        );
        assert!(bfq.links.iter().all(|(_, link)| link.sync.or(link.asyn).or(link.stable_target).is_none()));
        assert_eq!((bfq.wr_busy, bfq.queued, bfq.in_flight, bfq.tot_busy()), (0, 0, 0, 0));
        self.seen
    }
}

fn advance(at: &mut u64, len: u32) -> u64 {
    let start = *at;
    *at = (start + u64::from(len)) % (SPAN - 1000);
    start
}

#[test]
fn queues_live_through_everything_and_leave_nothing_behind() {
    let mut seen: Vec<(Reason, u32)> = Vec::new();
    for seed in 1..=200 {
        let mut storm = Storm::new(seed);
        // On failure: the seed is in the output.
        std::eprintln!("seed {seed}");
        for _ in 0..600 {
            storm.step();
        }
        for (reason, n) in storm.end() {
            match seen.iter_mut().find(|(known, _)| *known == reason) {
                Some((_, all)) => *all += n,
                None => seen.push((reason, n)),
            }
        }
    }
    let wanted = [
        Reason::QueueMerge,
        Reason::QueueSplit,
        Reason::WakerFound,
        Reason::LargeBurst,
        Reason::RaisedInteractive,
        Reason::RaisedSoftRealTime,
        Reason::RaisedAsync,
        Reason::RaiseEnd,
        Reason::Preempted,
        Reason::IdleTimeout,
    ];
    for reason in wanted {
        let n = seen.iter().find(|(known, _)| *known == reason).map_or(0, |(_, n)| *n);
        assert!(n >= 4, "{reason:?} came {n} times only: {seen:?}");
    }
}
