//! A closed world: clients in groups, an elevator, and a device that serves several requests at a time.
//!
//! Each client keeps a number of requests in the system and thinks between them. The device has `servers`,
//! each of which takes the oldest request that it has; so what it takes beyond their number waits inside.

use fairhead_core::sched::Scheduler;
use fairhead_core::{
    Control, Dispatch, Duration, Elevator, GroupId, Instant, Limits, Request, Sector, Sectors, Tag, TaskId,
    Weight,
};
use std::collections::VecDeque;

/// A client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Client {
    pub(crate) template: Request,
    /// How many requests it has in the system at a time.
    pub(crate) depth: u32,
    /// From a completion to the next request.
    pub(crate) think: Duration,
    pub(crate) from: Duration,
    pub(crate) until: Duration,
}

impl Client {
    /// A reader of random blocks of 4 KiB in a group.
    pub(crate) fn reader(group: u32, depth: u32) -> Self {
        let template =
            Request { group: GroupId(group), ..Request::read(TaskId(group), Sector(0), Sectors(8)) };
        let (from, until) = (Duration::ZERO, Duration::from_secs(1000));
        Self { template, depth, think: Duration::ZERO, from, until }
    }
}

/// A request that is done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Done {
    pub(crate) client: usize,
    pub(crate) at: Instant,
    /// From its insertion to its completion, and from its issue.
    pub(crate) latency: Duration,
    pub(crate) at_disk: Duration,
}

/// See the [module](self).
pub(crate) struct World<S: Scheduler> {
    pub(crate) elevator: Elevator<S>,
    pub(crate) now: Instant,
    pub(crate) done: Vec<Done>,
    clients: Vec<Client>,
    service: fn(&Request) -> Duration,
    servers: usize,
    depth: usize,
    arrivals: Vec<(Instant, usize)>,
    sent: Vec<(usize, Instant, Instant)>,
    free: Vec<Tag>,
    queued: VecDeque<Tag>,
    served: Vec<(Instant, Tag)>,
    random: u64,
}

impl<S: Scheduler> World<S> {
    /// `groups` are the weights of the groups from the first in the root on.
    pub(crate) fn new(
        limits: Limits,
        config: S::Config,
        groups: &[u16],
        clients: &[Client],
        (servers, service): (usize, fn(&Request) -> Duration),
    ) -> Self {
        let limits = Limits { groups: 1 + groups.len() as u32, ..limits };
        let mut elevator = Elevator::new(limits, config).unwrap();
        for (i, weight) in (1..).zip(groups) {
            let change = Control::SetWeight(GroupId(i), Weight::new(*weight).unwrap());
            elevator.control(Instant::EPOCH, change).unwrap();
        }
        let send = |(i, c): (usize, &Client)| vec![(Instant::EPOCH + c.from, i); c.depth as usize];
        Self {
            elevator,
            now: Instant::EPOCH,
            done: Vec::new(),
            clients: clients.to_vec(),
            service,
            servers,
            depth: usize::from(limits.queue_depth),
            arrivals: clients.iter().enumerate().flat_map(send).collect(),
            sent: vec![(0, Instant::EPOCH, Instant::EPOCH); usize::from(limits.tags)],
            free: (0..limits.tags).rev().map(Tag).collect(),
            queued: VecDeque::new(),
            served: Vec::new(),
            random: 1,
        }
    }

    /// Lets everything happen that happens until this many milliseconds after the start.
    pub(crate) fn run(&mut self, ms: u64) {
        let until = Instant::EPOCH + Duration::from_ms(ms);
        loop {
            self.pump();
            let arrival = self.arrivals.iter().map(|a| a.0).min();
            let timer = self.elevator.next_timer().map(|t| t.0);
            let served = self.served.iter().map(|s| s.0).min();
            let next = arrival.into_iter().chain(timer).chain(served).min();
            let Some(next) = next.filter(|next| *next <= until) else { break };
            self.now = self.now.max(next);
            if let Some(i) = self.served.iter().position(|s| s.0 <= self.now) {
                let (_, tag) = self.served.remove(i);
                self.complete(tag);
            } else if let Some(i) = self.arrivals.iter().position(|a| a.0 <= self.now) {
                let (_, client) = self.arrivals.remove(i);
                self.send(client);
            } else {
                self.elevator.timer(self.now);
            }
        }
        self.now = until;
        self.elevator.check();
    }

    fn send(&mut self, i: usize) {
        let client = &self.clients[i];
        if self.now >= Instant::EPOCH + client.until {
            return;
        }
        self.random =
            self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        // Far from each other, and never adjacent.
        let start = Sector((self.random >> 34) * 1000);
        let tag = self.free.pop().expect("fewer requests than tags");
        self.sent[usize::from(tag.0)] = (i, self.now, self.now);
        let _ = self.elevator.insert(self.now, tag, Request { start, ..client.template });
    }

    fn pump(&mut self) {
        while self.queued.len() + self.served.len() < self.depth {
            let Dispatch::Issue(tag) = self.elevator.dispatch(self.now) else { break };
            self.sent[usize::from(tag.0)].2 = self.now;
            self.queued.push_back(tag);
        }
        while self.served.len() < self.servers {
            let Some(tag) = self.queued.pop_front() else { return };
            let service = (self.service)(&self.elevator.requests()[tag].rq);
            self.served.push((self.now + service, tag));
        }
    }

    fn complete(&mut self, tag: Tag) {
        let freed: Vec<Tag> = self.elevator.complete(self.now, tag).collect();
        for tag in freed {
            let (client, sent, issued) = self.sent[usize::from(tag.0)];
            let (latency, at_disk) = (self.now.since(sent), self.now.since(issued));
            self.done.push(Done { client, at: self.now, latency, at_disk });
            self.arrivals.push((self.now + self.clients[client].think, client));
            self.free.push(tag);
        }
    }

    /// What a client had done in these milliseconds.
    fn of(&self, client: usize, from: u64, until: u64) -> impl Iterator<Item = &Done> {
        let [from, until] = [from, until].map(|ms| Instant::EPOCH + Duration::from_ms(ms));
        self.done.iter().filter(move |d| d.client == client && d.at > from && d.at <= until)
    }

    /// How many of a client's requests were done in these milliseconds.
    pub(crate) fn count(&self, client: usize, from: u64, until: u64) -> u64 {
        self.of(client, from, until).count() as u64
    }

    /// The mean latency of a client's requests in these milliseconds, in microseconds.
    pub(crate) fn mean_us(&self, client: usize, from: u64, until: u64) -> u64 {
        let sum: u64 = self.of(client, from, until).map(|d| d.latency.as_us()).sum();
        sum / self.count(client, from, until).max(1)
    }

    /// The time at the disk that this percentage of a client's requests in these milliseconds does not
    /// exceed, in microseconds.
    pub(crate) fn at_disk_us(&self, percent: usize, client: usize, from: u64, until: u64) -> u64 {
        let mut all: Vec<u64> = self.of(client, from, until).map(|d| d.at_disk.as_us()).collect();
        all.sort_unstable();
        all.get(all.len() * percent / 100).copied().unwrap_or(0)
    }
}
