//! Clients in groups, at a disk that is simple enough to say what they should get.

extern crate std;
use crate::request::Op;
use crate::sched::fair::{Config, Divisible, Fair};
use crate::testkit::{self, Done};
use crate::{Class, Control, Duration, Elevator, GroupId, Limits, Request, Sector, Sectors, TaskId, Weight};
use std::vec::Vec;

pub(super) type Controlled<S> = Elevator<Fair<S>>;

pub(super) const G1: GroupId = GroupId(1);
pub(super) const G2: GroupId = GroupId(2);
pub(super) const G3: GroupId = GroupId(3);

pub(super) use crate::testkit::ms as at;

pub(super) fn weight(n: u16) -> Weight {
    Weight::new(n).unwrap()
}

pub(super) fn limits(groups: u32) -> Limits {
    Limits { groups, ..Limits::default() }
}

/// A client that sends a request, waits for it, thinks, and sends the next; `depth` of these at a time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Client {
    pub(super) group: GroupId,
    pub(super) op: Op,
    pub(super) len: u32,
    pub(super) think: Duration,
    pub(super) depth: u32,
    pub(super) random: bool,
    /// When it begins and ends, in ms.
    pub(super) from: u64,
    pub(super) until: u64,
}

impl Client {
    pub(super) fn reader(group: GroupId) -> Self {
        let think = Duration::from_us(100);
        Self { group, op: Op::Read, len: 256, think, depth: 1, random: false, from: 0, until: 1_000_000 }
    }

    pub(super) fn random(group: GroupId) -> Self {
        Self { random: true, len: 8, ..Self::reader(group) }
    }

    pub(super) fn writer(group: GroupId) -> Self {
        Self { op: Op::Write, depth: 16, ..Self::random(group) }
    }
}

impl Client {
    /// As the testkit has it; the place of a sequential one depends on its number.
    fn number(self, i: usize) -> testkit::Client {
        let start = Sector(if self.random { 0 } else { i as u64 * 10_000_000 });
        let read = Request::read(TaskId(u32::try_from(i).unwrap()), start, Sectors(self.len));
        testkit::Client {
            template: Request { op: self.op, sync: self.op == Op::Read, group: self.group, ..read },
            random_over: self.random.then_some(50_000_000),
            think: self.think,
            depth: self.depth,
            from: at(self.from),
            until: at(self.until),
        }
    }
}

pub(super) type World<S> = testkit::World<Fair<S>>;

/// A disk that takes 7 ms to go elsewhere, and 10 us for each sector (50 MB/s).
fn disk(head: Sector, rq: &Request) -> Duration {
    let seek = if rq.start == head { Duration::ZERO } else { Duration::from_ms(7) };
    seek + Duration::from_us(10) * u64::from(rq.len.0)
}

pub(super) fn world_of<S: Divisible>(
    limits: Limits,
    config: Config<S::Config>,
    clients: &[Client],
) -> World<S> {
    let clients: Vec<testkit::Client> = clients.iter().enumerate().map(|(i, c)| c.number(i)).collect();
    World::new(limits, config, disk, &clients)
}

impl<S: Divisible> World<S> {
    pub(super) fn control(&mut self, change: Control) {
        self.elevator.control(self.now, change).unwrap();
        self.elevator.check();
    }

    pub(super) fn set_weights(&mut self, weights: &[u16]) {
        for (g, &w) in (1..).zip(weights) {
            self.control(Control::SetWeight(GroupId(g), weight(w)));
        }
    }

    pub(super) fn set_class(&mut self, group: GroupId, class: Class) {
        self.control(Control::SetClass(group, class));
    }

    /// From now on `client` sends its requests on behalf of this group.
    pub(super) fn regroup(&mut self, client: usize, group: GroupId) {
        self.clients[client].template.group = group;
    }

    /// What of the disk's busy time between these two, in ms, the clients of each group got, in thousandths.
    pub(super) fn shares<const N: usize>(&self, from: u64, until: u64, groups: [GroupId; N]) -> [u64; N] {
        let in_time = self.done.iter().filter(|d| d.at > at(from) && d.at <= at(until));
        let of = |d: &Done| (self.clients[d.client].template.group, d.service.as_us());
        let times: Vec<(GroupId, u64)> = in_time.map(of).collect();
        let all: u64 = times.iter().map(|t| t.1).sum();
        groups.map(|g| times.iter().filter(|t| t.0 == g).map(|t| t.1).sum::<u64>() * 1000 / all.max(1))
    }
}
