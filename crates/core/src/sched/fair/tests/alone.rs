//! With requests of one group only, whatever groups there are, the controller does not show.

extern crate std;
use super::world::{Controlled, at, limits};
use crate::config::Tunables;
use crate::request::Op;
use crate::sched::Scheduler;
use crate::sched::fair::{Config, Divisible, Fair};
use crate::sched::{anticipatory, cfq, deadline, noop};
use crate::testkit::Random;
use crate::{
    Class, Control, Dispatch, Duration, Elevator, GroupId, Instant, IoPrio, Limits, Request, Sector, Sectors,
    Tag, TaskId,
};
use std::vec::Vec;

/// A scheduler by itself and one under the controller, which get one sequence of random events and must
/// answer alike.
struct Pair<S: Divisible> {
    plain: Elevator<S>,
    fair: Controlled<S>,
    group: GroupId,
    now: Instant,
    random: Random,
    free: Vec<Tag>,
    device: Vec<Tag>,
    requeued: usize,
}

impl<S: Divisible> Pair<S> {
    fn new(limits: Limits, config: S::Config, groups: u32, group: GroupId, seed: u64) -> Self
    where
        S::Config: Clone,
    {
        let fair = Config { layer: super::super::Layer::default(), inner: config };
        Self {
            plain: Elevator::new(Limits { groups: 1, ..limits }, config).unwrap(),
            fair: Elevator::new(Limits { groups, ..limits }, fair).unwrap(),
            group,
            now: Instant::EPOCH,
            random: Random::new(seed),
            free: (0..limits.tags).map(Tag).collect(),
            device: Vec::new(),
            requeued: 0,
        }
    }

    fn insert(&mut self) {
        let Some(tag) = self.free.pop() else { return };
        let task = TaskId(u32::try_from(self.random.below(4)).unwrap());
        let start = Sector(self.random.below(40) * 8 + u64::from(task.0) * 1_000_000);
        let len = Sectors(8 * (1 + u32::try_from(self.random.below(4)).unwrap()));
        let op = if self.random.below(3) == 0 { Op::Write } else { Op::Read };
        let sync = op == Op::Read || self.random.below(4) == 0;
        let rq = Request { op, sync, ..Request::read(task, start, len) };
        let plain = self.plain.insert(self.now, tag, rq);
        assert_eq!(self.fair.insert(self.now, tag, Request { group: self.group, ..rq }), plain);
    }

    fn dispatch(&mut self) {
        let plain = self.plain.dispatch(self.now);
        assert_eq!(self.fair.dispatch(self.now), plain);
        if let Dispatch::Issue(tag) = plain {
            self.device.push(tag);
        }
    }

    fn complete(&mut self) {
        if self.device.is_empty() {
            return;
        }
        let i = usize::try_from(self.random.below(self.device.len() as u64)).unwrap();
        let tag = self.device.swap_remove(i);
        if self.random.below(20) == 0 {
            self.plain.requeue(self.now, tag);
            self.fair.requeue(self.now, tag);
            self.requeued += 1;
            return;
        }
        let freed: Vec<Tag> = self.plain.complete(self.now, tag).collect();
        assert!(self.fair.complete(self.now, tag).eq(freed.iter().copied()));
        self.free.extend(freed);
    }

    fn pass(&mut self) {
        let us = [10, 500, 3_000, 20_000, 300_000][usize::try_from(self.random.below(5)).unwrap()];
        self.now = self.now + Duration::from_us(self.random.below(us));
        self.plain.timer(self.now);
        self.fair.timer(self.now);
    }

    fn run(mut self, steps: usize) {
        for step in 0..steps {
            match self.random.below(10) {
                0..=3 => self.insert(),
                4..=6 => self.dispatch(),
                7 => self.complete(),
                8 => self.pass(),
                _ if self.random.below(10) == 0 => {
                    let exit = Control::TaskExit(TaskId(u32::try_from(self.random.below(4)).unwrap()));
                    self.plain.control(self.now, exit).unwrap();
                    self.fair.control(self.now, exit).unwrap();
                }
                _ => self.complete(),
            }
            if step % 8 == 0 {
                self.fair.check();
            }
        }
        assert!(self.requeued > 0, "a storm with everything in it");
    }
}

fn differs_nowhere<S: Divisible>(config: S::Config) {
    for seed in 1..=8 {
        for (groups, group) in [(1, GroupId::ROOT), (3, GroupId::ROOT), (3, GroupId(2))] {
            for depth in [1, 4] {
                // Fewer tasks, and CFQ runs out of queues: of which it has more for several groups.
                let limits = Limits {
                    queue_depth: depth,
                    tags: 32,
                    tasks: 32,
                    rotational: seed % 2 == 0,
                    ..limits(1)
                };
                Pair::<S>::new(limits, config, groups, group, seed).run(1500);
            }
        }
    }
}

#[test]
fn noop() {
    differs_nowhere::<noop::Noop>(noop::Config::default());
}

#[test]
fn deadline() {
    differs_nowhere::<deadline::Deadline>(deadline::Config::default());
    differs_nowhere::<deadline::Deadline>(deadline::Config::linux_2_6_9());
}

#[test]
fn anticipatory() {
    differs_nowhere::<anticipatory::Anticipatory>(anticipatory::Config::default());
    differs_nowhere::<anticipatory::Anticipatory>(anticipatory::Config::linux_2_6_9());
}

#[test]
fn the_name_tells_both() {
    assert_eq!(<Fair<deadline::Deadline> as Scheduler>::NAME, "deadline+groups");
}

#[test]
fn cfq() {
    for config in [cfq::Config::default(), cfq::Config::linux_2_6_34()] {
        differs_nowhere::<cfq::Cfq>(config);
    }
}

/// A task of the IDLE class waits while the disk waits for the only other one of its group to come back. How
/// long is one tunable by itself, and one under the controller.
#[test]
fn cfq_waits_for_a_group_as_by_itself() {
    fn answer<S: Scheduler>(config: S::Config, groups: u32, group: GroupId) -> Dispatch {
        let limits = Limits { rotational: true, ..limits(groups) };
        let mut elevator: Elevator<S> = Elevator::new(limits, config).unwrap();
        let read = Request { group, ..Request::read(TaskId(1), Sector(0), Sectors(8)) };
        let idle = Request {
            group,
            prio: IoPrio::new(Class::Idle, 7),
            ..Request::read(TaskId(2), Sector(1000), Sectors(8))
        };
        let _ = elevator.insert(at(0), Tag(0), read);
        assert_eq!(elevator.dispatch(at(0)), Dispatch::Issue(Tag(0)));
        assert_eq!(elevator.complete(at(5), Tag(0)).count(), 1);
        let _ = elevator.insert(at(6), Tag(1), idle);
        elevator.dispatch(at(6))
    }
    for ms in [8, 0] {
        let (mut plain, mut both) = (cfq::Config::default(), Config::<cfq::Config>::default());
        for (name, ms) in [("slice_idle", 0), ("group_idle", ms)] {
            plain.set(name, ms * 1_000_000).unwrap();
            both.set(name, ms * 1_000_000).unwrap();
        }
        let alone = answer::<cfq::Cfq>(plain, 1, GroupId::ROOT);
        assert_eq!(matches!(alone, Dispatch::Issue(_)), ms == 0, "{alone:?}");
        assert_eq!(answer::<Fair<cfq::Cfq>>(both, 3, GroupId(1)), alone, "with {ms} ms");
    }
}
