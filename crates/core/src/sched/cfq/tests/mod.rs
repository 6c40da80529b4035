//! Two rigs: [`Bare`] drives a `Cfq` step by step and looks inside, [`Lab`] is a small closed world of
//! clients, a device and a clock.

extern crate std;

mod behaviour;
mod cooperation;
mod decisions;
mod groups;
mod preemption;
mod waiting;

use super::queue::Queue;
use super::view::Kind;
use super::*;
use crate::elevator::Books;
use crate::elevator::{Elevator, Insert};
use crate::trace::{Action, TraceEvent};
use crate::units::{Class, Duration, Id, IoPrio, Sectors, TaskId};
use std::collections::VecDeque;
use std::vec::Vec;

pub(super) fn ms(n: u64) -> Duration {
    Duration::from_ms(n)
}

pub(super) fn at(n: u64) -> Instant {
    Instant::EPOCH + ms(n)
}

pub(super) fn read(task: u32, start: u64) -> Request {
    Request::read(TaskId(task), Sector(start), Sectors(8))
}

pub(super) fn write(task: u32, start: u64) -> Request {
    Request::write(TaskId(task), Sector(start), Sectors(8))
}

pub(super) fn with_prio(rq: Request, class: Class, level: u8) -> Request {
    Request { prio: IoPrio::new(class, level), ..rq }
}

pub(super) fn old(era: Era) -> Config {
    match era {
        Era::Linux2_6_33 => Config::linux_2_6_33(),
        Era::Linux2_6_34 => Config::linux_2_6_34(),
        Era::Linux3_10 | Era::Linux4_3 => Config { era, ..Config::default() },
    }
}

/// The scheduler without the elevator: no merging, every step by hand.
pub(super) struct Bare {
    pub(super) cfq: Cfq,
    pub(super) requests: Requests,
    pub(super) books: Books,
    pub(super) now: Instant,
    next_tag: u16,
}

impl Bare {
    pub(super) fn with(limits: Limits, config: Config) -> Self {
        Self {
            cfq: Cfq::new(limits, config).unwrap(),
            requests: Requests::new(limits.tags),
            books: Books::new(&Limits { trace: 64, ..limits }),
            now: Instant::EPOCH,
            next_tag: 0,
        }
    }

    pub(super) fn new(config: Config) -> Self {
        Self::with(Limits::default(), config)
    }

    pub(super) fn cx<T>(&mut self, f: impl FnOnce(&mut Cfq, &mut Cx<'_>) -> T) -> T {
        let why = Reason::None;
        let cx = &mut Cx { now: self.now, requests: &mut self.requests, books: &mut self.books, why };
        f(&mut self.cfq, cx)
    }

    pub(super) fn pass(&mut self, time: Duration) {
        self.now = self.now + time;
    }

    pub(super) fn insert(&mut self, rq: Request) -> Tag {
        let tag = Tag(self.next_tag);
        self.next_tag += 1;
        self.requests.claim(tag, &rq, self.now, self.now);
        self.cx(|cfq, cx| cfq.insert(cx, tag));
        self.cfq.check(&self.requests);
        tag
    }

    pub(super) fn dispatch(&mut self) -> Dispatch {
        let answer = self.cx(|cfq, cx| cfq.dispatch(cx));
        if let Dispatch::Issue(tag) = answer {
            self.requests.issue(tag, self.now);
        }
        self.cfq.check(&self.requests);
        answer
    }

    /// Dispatches, which must give a request: the task that sent it.
    pub(super) fn issue(&mut self) -> (Tag, u32) {
        let answer = self.dispatch();
        let Dispatch::Issue(tag) = answer else { panic!("{answer:?}") };
        (tag, self.requests[tag].rq.task.0)
    }

    pub(super) fn complete(&mut self, tag: Tag) {
        self.cx(|cfq, cx| cfq.complete(cx, tag));
        self.requests.free(tag);
        self.cfq.check(&self.requests);
    }

    /// Inserts, dispatches and completes a request in 1 ms; it must be chosen.
    pub(super) fn serve(&mut self, rq: Request) {
        let tag = self.insert(rq);
        assert_eq!(self.dispatch(), Dispatch::Issue(tag));
        self.pass(ms(1));
        self.complete(tag);
    }

    pub(super) fn control(&mut self, change: Control) {
        self.books.groups.control(&change, &Requests::new(1)).unwrap();
        self.cx(|cfq, cx| cfq.control(cx, &change));
        self.cfq.check(&self.requests);
    }

    pub(super) fn timer(&mut self) {
        self.cx(|cfq, cx| cfq.timer(cx));
        self.cfq.check(&self.requests);
    }

    /// The queue of a request, of a task.
    pub(super) fn queue_of(&self, tag: Tag) -> QueueId {
        self.cfq.queues.rqs[tag].queue
    }

    pub(super) fn sync_queue_of(&self, task: u32) -> Option<QueueId> {
        self.cfq.tasks[self.cfq.tasks.find(TaskId(task))?].sync_queue
    }

    pub(super) fn queue(&mut self, id: QueueId) -> &mut Queue {
        &mut self.cfq.queues[id]
    }

    /// A queue's next request begins here, as far as seeks go.
    pub(super) fn jump(&mut self, id: QueueId, start: u64) {
        let Cfq { rules, queues, .. } = &mut self.cfq;
        rules.seeks.arrived(&mut queues[id].jumps, Sector(start), Sectors(8));
    }

    /// The reasons noted since the last call.
    pub(super) fn notes(&mut self) -> Vec<Reason> {
        let events = core::iter::from_fn(|| self.books.trace.pop());
        events.filter(|e| e.action == Action::Note).map(|e| e.reason).collect()
    }
}

/// A client in a [`Lab`], which sends requests.
#[derive(Clone, Copy)]
pub(super) struct Client {
    /// Its requests; the start is where its area begins.
    pub(super) template: Request,
    pub(super) sequential: bool,
    /// From a completion to the next request.
    pub(super) think: Duration,
    /// How many requests it keeps in the system.
    pub(super) depth: usize,
}

impl Client {
    pub(super) fn reader(task: u32, sectors: u32) -> Self {
        let area = Sector(u64::from(task) << 26);
        let template = Request::read(TaskId(task), area, Sectors(sectors));
        Self { template, sequential: true, think: Duration::from_us(100), depth: 1 }
    }

    pub(super) fn random_reader(task: u32, sectors: u32) -> Self {
        Self { sequential: false, ..Self::reader(task, sectors) }
    }

    pub(super) fn writer(task: u32, depth: usize) -> Self {
        let reader = Self::reader(task, 64);
        let template = Request { op: crate::Op::Write, sync: false, ..reader.template };
        Self { template, think: Duration::ZERO, depth, ..reader }
    }
}

/// What a client got.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Got {
    pub(super) requests: u64,
    pub(super) sectors: u64,
    /// The time that the device spent on it.
    pub(super) device: Duration,
    pub(super) latency_max: Duration,
}

/// See the module.
pub(super) struct Lab {
    pub(super) elevator: Elevator<Cfq>,
    pub(super) now: Instant,
    service: fn(&Request) -> Duration,
    depth: usize,
    clients: Vec<Client>,
    pub(super) got: Vec<Got>,
    /// Requests at the device, served one after another.
    device: VecDeque<Tag>,
    done_at: Instant,
    /// When the next request of a client comes, with its client.
    ready: Vec<(Instant, usize)>,
    sent: Vec<Option<(Instant, usize)>>,
    places: Vec<u64>,
    chance: u64,
    completions: u64,
    /// Everything that was recorded.
    pub(super) events: Vec<TraceEvent>,
}

impl Lab {
    pub(super) fn new(limits: Limits, config: Config, service: fn(&Request) -> Duration) -> Self {
        let limits = Limits { trace: 256, merges: false, ..limits };
        Self {
            elevator: Elevator::new(limits, config).unwrap(),
            now: Instant::EPOCH,
            service,
            depth: usize::from(limits.queue_depth),
            clients: Vec::new(),
            got: Vec::new(),
            device: VecDeque::new(),
            done_at: Instant::EPOCH,
            ready: Vec::new(),
            sent: std::vec![None; usize::from(limits.tags)],
            places: Vec::new(),
            chance: 0x9e37_79b9_7f4a_7c15,
            completions: 0,
            events: Vec::new(),
        }
    }

    /// Lets these clients work for `time`, and forgets the ones before. Requests in flight at the end do not
    /// count.
    pub(super) fn run(&mut self, clients: &[Client], time: Duration) -> Vec<Got> {
        self.clients = clients.to_vec();
        self.got = std::vec![Got::default(); clients.len()];
        self.places = clients.iter().map(|c| c.template.start.0).collect();
        for (i, client) in clients.iter().enumerate() {
            self.ready.extend((0..client.depth).map(|_| (self.now, i)));
        }
        let end = self.now + time;
        while self.now < end {
            self.step();
        }
        let got = self.got.clone();
        self.ready.clear();
        self.clients.clear();
        let seen = self.events.len();
        while !self.device.is_empty() || self.elevator.next_timer().is_some() {
            self.step();
        }
        self.events.truncate(seen);
        got
    }

    fn step(&mut self) {
        while let Some(i) = self.ready.iter().position(|r| r.0 <= self.now) {
            let (_, client) = self.ready.swap_remove(i);
            self.send(client);
            self.pump();
        }
        let completion = (!self.device.is_empty()).then_some(self.done_at);
        let timer = self.elevator.next_timer().map(|t| t.0);
        let arrival = self.ready.iter().map(|r| r.0).min();
        let next = completion.into_iter().chain(timer).chain(arrival).min().expect("something happens");
        self.now = self.now.max(next);
        if completion == Some(self.now) {
            self.complete();
        } else if timer.is_some_and(|t| t <= self.now) {
            self.elevator.timer(self.now);
        }
        self.pump();
    }

    fn send(&mut self, client: usize) {
        let Client { template, sequential, .. } = self.clients[client];
        let tag = Tag::from_index(self.sent.iter().position(Option::is_none).expect("a free tag"));
        self.chance ^= self.chance << 13;
        self.chance ^= self.chance >> 7;
        self.chance ^= self.chance << 17;
        let start = if sequential { self.places[client] } else { template.start.0 + self.chance % (1 << 25) };
        self.places[client] = start + u64::from(template.len.0);
        self.sent[tag.index()] = Some((self.now, client));
        let inserted = self.elevator.insert(self.now, tag, Request { start: Sector(start), ..template });
        assert_eq!(inserted, Insert::Queued);
    }

    fn complete(&mut self) {
        let tag = self.device.pop_front().expect("the device is busy");
        let rq = self.elevator.requests()[tag].rq;
        assert_eq!(self.elevator.complete(self.now, tag).count(), 1);
        self.completions += 1;
        if self.completions.is_multiple_of(64) {
            self.elevator.check();
        }
        let (since, client) = self.sent[tag.index()].take().expect("it was sent");
        if let Some(c) = self.clients.get(client) {
            let got = &mut self.got[client];
            got.requests += 1;
            got.sectors += u64::from(rq.len.0);
            got.device += (self.service)(&rq);
            got.latency_max = got.latency_max.max(self.now.since(since));
            self.ready.push((self.now + c.think, client));
        }
        if let Some(&next) = self.device.front() {
            self.done_at = self.now + (self.service)(&self.elevator.requests()[next].rq);
        }
    }

    fn pump(&mut self) {
        while self.device.len() < self.depth {
            let Dispatch::Issue(tag) = self.elevator.dispatch(self.now) else { break };
            if self.device.is_empty() {
                self.done_at = self.now + (self.service)(&self.elevator.requests()[tag].rq);
            }
            self.device.push_back(tag);
        }
        self.events.extend(self.elevator.drain_trace());
        assert_eq!(self.elevator.trace_lost(), 0);
    }

    /// Runs of issues to one task: the task, how many, from the first to the next run's first.
    pub(super) fn turns(&self) -> Vec<(u32, u64, Duration)> {
        let mut turns: Vec<(u32, u64, Duration)> = Vec::new();
        let mut began = Instant::EPOCH;
        for e in self.events.iter().filter(|e| e.action == Action::Issue) {
            match turns.last_mut() {
                Some(turn) if turn.0 == e.task.0 => turn.1 += 1,
                last => {
                    if let Some(turn) = last {
                        turn.2 = e.at.since(began);
                    }
                    began = e.at;
                    turns.push((e.task.0, 1, Duration::ZERO));
                }
            }
        }
        turns
    }

    /// The slices in which a task's requests were issued: how many, and from the first issue to the end.
    pub(super) fn slices(&self, task: u32) -> Vec<(u64, Duration)> {
        let (mut slices, mut open): (Vec<(u64, Duration)>, Option<Instant>) = (Vec::new(), None);
        for e in &self.events {
            match (e.action, open) {
                (Action::Note, Some(began)) if e.reason != Reason::SliceStart => {
                    slices.last_mut().expect("open").1 = e.at.since(began);
                    open = None;
                }
                (Action::Issue, None) if e.task.0 == task => {
                    open = Some(e.at);
                    slices.push((1, Duration::ZERO));
                }
                (Action::Issue, Some(_)) if e.task.0 == task => slices.last_mut().expect("open").0 += 1,
                _ => {}
            }
        }
        slices
    }
}
