//! Clients in groups, at a disk that is simple enough to say what they should get.

extern crate std;
use crate::request::Op;
use crate::sched::fair::{Config, Divisible, Fair};
use crate::{
    Class, Control, Dispatch, Duration, Elevator, GroupId, Insert, Instant, Limits, Request, Sector, Sectors,
    Tag, TaskId, Weight,
};
use std::collections::VecDeque;
use std::vec::Vec;

pub(super) type Controlled<S> = Elevator<Fair<S>>;

pub(super) const G1: GroupId = GroupId(1);
pub(super) const G2: GroupId = GroupId(2);
pub(super) const G3: GroupId = GroupId(3);

pub(super) fn at(ms: u64) -> Instant {
    Instant::EPOCH + Duration::from_ms(ms)
}

pub(super) fn weight(n: u16) -> Weight {
    Weight::new(n).unwrap()
}

pub(super) fn limits(groups: u32) -> Limits {
    Limits { groups, ..Limits::default() }
}

/// What it takes to go elsewhere, and for each sector (50 MB/s).
const SEEK: Duration = Duration::from_ms(7);
const SECTOR: Duration = Duration::from_us(10);

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

/// A request that is done.
#[derive(Clone, Copy, Debug)]
pub(super) struct Done {
    pub(super) client: usize,
    pub(super) at: Instant,
    /// How long the disk had to do with it.
    pub(super) service: Duration,
    pub(super) waited: Duration,
}

pub(super) struct World<S: Divisible> {
    pub(super) elevator: Controlled<S>,
    pub(super) now: Instant,
    clients: Vec<Client>,
    places: Vec<Sector>,
    arrivals: Vec<(Instant, usize)>,
    owners: Vec<(usize, Instant)>,
    free: Vec<Tag>,
    device: VecDeque<Tag>,
    depth: usize,
    busy: Option<(Instant, Duration)>,
    head: Sector,
    random: u64,
    pub(super) done: Vec<Done>,
}

impl<S: Divisible> World<S> {
    pub(super) fn new(limits: Limits, config: Config<S::Config>, clients: &[Client]) -> Self {
        let mut world = Self {
            elevator: Elevator::new(limits, config).unwrap(),
            now: Instant::EPOCH,
            clients: clients.to_vec(),
            places: (0..clients.len()).map(|i| Sector(i as u64 * 10_000_000)).collect(),
            arrivals: Vec::new(),
            owners: std::vec![(0, Instant::EPOCH); usize::from(limits.tags)],
            free: (0..limits.tags).rev().map(Tag).collect(),
            device: VecDeque::new(),
            depth: usize::from(limits.queue_depth),
            busy: None,
            head: Sector(0),
            random: 88_172_645_463_325_252,
            done: Vec::new(),
        };
        for (i, c) in clients.iter().enumerate() {
            (0..c.depth).for_each(|_| world.arrivals.push((at(c.from), i)));
        }
        world
    }

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
        self.clients[client].group = group;
    }

    fn below(&mut self, n: u64) -> u64 {
        //= G. Marsaglia, Xorshift RNGs (2003), section 4
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % n
    }

    fn send(&mut self, i: usize) {
        let c = self.clients[i];
        if self.now >= at(c.until) {
            return;
        }
        let place = if c.random { Sector(self.below(50_000_000) / 8 * 8) } else { self.places[i] };
        self.places[i] = place + Sectors(c.len);
        let task = TaskId(u32::try_from(i).unwrap());
        let rq = Request::read(task, place, Sectors(c.len));
        let rq = Request { op: c.op, sync: c.op == Op::Read, group: c.group, ..rq };
        let tag = self.free.pop().expect("more tags than requests");
        self.owners[usize::from(tag.0)] = (i, self.now);
        let _: Insert = self.elevator.insert(self.now, tag, rq);
    }

    fn pump(&mut self) {
        while self.device.len() < self.depth {
            let Dispatch::Issue(tag) = self.elevator.dispatch(self.now) else { break };
            self.device.push_back(tag);
        }
        if let (None, Some(&tag)) = (self.busy, self.device.front()) {
            let rq = self.elevator.requests()[tag].rq;
            let seek = if rq.start == self.head { Duration::ZERO } else { SEEK };
            let service = seek + SECTOR * u64::from(rq.len.0);
            self.head = rq.end();
            self.busy = Some((self.now + service, service));
        }
    }

    fn finish(&mut self, service: Duration) {
        let tag = self.device.pop_front().unwrap();
        self.busy = None;
        let freed: Vec<Tag> = self.elevator.complete(self.now, tag).collect();
        for tag in freed {
            let (i, since) = self.owners[usize::from(tag.0)];
            self.done.push(Done { client: i, at: self.now, service, waited: self.now.since(since) });
            self.arrivals.push((self.now + self.clients[i].think, i));
            self.free.push(tag);
        }
    }

    /// Up to this many ms after the beginning.
    pub(super) fn run(&mut self, until: u64) {
        let mut events = 0_u32;
        loop {
            self.pump();
            let arrival = self.arrivals.iter().map(|a| a.0).min();
            let timer = self.elevator.next_timer().map(|t| t.0);
            let busy = self.busy.map(|b| b.0);
            let next = arrival.into_iter().chain(timer).chain(busy).min();
            let Some(next) = next.filter(|&next| next <= at(until)) else { break };
            self.now = self.now.max(next);
            if let Some((_, service)) = self.busy.filter(|b| b.0 <= self.now) {
                self.finish(service);
            } else if let Some(i) = self.arrivals.iter().position(|a| a.0 <= self.now) {
                let (_, client) = self.arrivals.swap_remove(i);
                self.send(client);
            } else {
                self.elevator.timer(self.now);
            }
            events += 1;
            if events.is_multiple_of(64) {
                self.elevator.check();
            }
        }
        self.now = at(until);
        self.elevator.check();
    }

    /// What of the disk's busy time between these two, in ms, the clients of each group got, in thousandths.
    pub(super) fn shares<const N: usize>(&self, from: u64, until: u64, groups: [GroupId; N]) -> [u64; N] {
        let in_time = self.done.iter().filter(|d| d.at > at(from) && d.at <= at(until));
        let of = |d: &Done| (self.clients[d.client].group, d.service.as_us());
        let times: Vec<(GroupId, u64)> = in_time.map(of).collect();
        let all: u64 = times.iter().map(|t| t.1).sum();
        groups.map(|g| times.iter().filter(|t| t.0 == g).map(|t| t.1).sum::<u64>() * 1000 / all.max(1))
    }

    /// How many requests of this client were done.
    pub(super) fn count(&self, client: usize, from: u64, until: u64) -> usize {
        self.done.iter().filter(|d| d.client == client && d.at > at(from) && d.at <= at(until)).count()
    }
}
