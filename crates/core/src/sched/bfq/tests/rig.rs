//! What the tests drive a `Bfq` with: [`Rig`] step by step, looking inside; [`Lab`] as a small closed world
//! of clients, a device and a clock around it.

extern crate std;

pub(super) use super::super::*;
pub(super) use crate::elevator::Books;
pub(super) use crate::elevator::{Control, Cx, Dispatch};
pub(super) use crate::request::{Request, Requests, State};
pub(super) use crate::sched::Scheduler;
pub(super) use crate::trace::{Action, Reason};
pub(super) use crate::units::{Class, Duration, Id, IoPrio, Sectors, TaskId};
pub(super) use std::collections::VecDeque;
pub(super) use std::vec::Vec;

pub(super) fn ms(n: u64) -> Duration {
    Duration::from_ms(n)
}

pub(super) const NS: Duration = Duration::from_ns(1);

pub(super) fn read(task: u32, start: u64) -> Request {
    Request::read(TaskId(task), Sector(start), Sectors(8))
}

pub(super) fn write(task: u32, start: u64) -> Request {
    Request::write(TaskId(task), Sector(start), Sectors(8))
}

pub(super) fn of_level(rq: Request, class: Class, level: u8) -> Request {
    Request { prio: IoPrio::new(class, level), ..rq }
}

pub(super) fn in_group(rq: Request, group: u32) -> Request {
    Request { group: GroupId(group), ..rq }
}

/// Nothing but what a test turns on.
pub(super) fn plain() -> Config {
    Config {
        low_latency: false,
        queue_merge: false,
        stable_merge: false,
        bursts: false,
        streams: false,
        ..Config::live()
    }
}

/// The scheduler without the elevator: no merging of requests, every step by hand, everything checked after
/// each.
pub(super) struct Rig {
    pub(super) bfq: Bfq,
    pub(super) requests: Requests,
    pub(super) books: Books,
    pub(super) now: Instant,
    pub(super) free: VecDeque<Tag>,
    /// General injections.
    pub(super) injections: u32,
    /// Everything is walked after this many events.
    pub(super) check_every: u32,
    pub(super) unchecked: u32,
}

impl Rig {
    pub(super) fn with(limits: Limits, config: Config) -> Self {
        Self {
            bfq: Bfq::new(limits, config).unwrap(),
            requests: Requests::new(limits.tags),
            books: Books::new(&Limits { trace: 4096, ..limits }),
            now: Instant::EPOCH,
            free: (0..limits.tags).map(Tag).collect(),
            injections: 0,
            check_every: 1,
            unchecked: 0,
        }
    }

    pub(super) fn new(config: Config) -> Self {
        Self::with(Limits { groups: 4, ..Limits::default() }, config)
    }

    /// On flash that takes 32 requests at a time.
    pub(super) fn flash(config: Config) -> Self {
        let limits = Limits { rotational: false, queue_depth: 32, groups: 4, ..Limits::default() };
        Self::with(limits, config)
    }

    pub(super) fn cx<T>(&mut self, f: impl FnOnce(&mut Bfq, &mut Cx<'_>) -> T) -> T {
        let why = Reason::None;
        let cx = &mut Cx { now: self.now, requests: &mut self.requests, books: &mut self.books, why };
        f(&mut self.bfq, cx)
    }

    pub(super) fn check(&mut self) {
        self.unchecked += 1;
        if self.unchecked >= self.check_every {
            self.unchecked = 0;
            self.bfq.check(&self.requests);
        }
    }

    /// Time passes; a timer that is due meanwhile fires.
    pub(super) fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some((at, _)) = self.bfq.next_timer()
            && at <= end
        {
            self.now = self.now.max(at);
            self.cx(|bfq, cx| bfq.timer(cx));
            self.check();
        }
        self.now = end;
    }

    pub(super) fn insert(&mut self, rq: Request) -> Tag {
        let tag = self.free.pop_front().expect("a free tag");
        self.requests.claim(tag, &rq, self.now, self.now);
        self.cx(|bfq, cx| bfq.insert(cx, tag));
        self.check();
        tag
    }

    pub(super) fn dispatch(&mut self) -> Dispatch {
        let (answer, why) = self.cx(|bfq, cx| (bfq.dispatch(cx), cx.why));
        match answer {
            Dispatch::Issue(tag) => {
                self.requests.issue(tag, self.now);
                if why == Reason::Injected {
                    self.check_injection(tag);
                }
            }
            Dispatch::Hold(_) => {
                let ends = self.bfq.next_timer().is_some() || self.requests.issued() > 0;
                assert!(ends, "nothing is coming to end the hold");
            }
            Dispatch::Empty => assert_eq!(self.requests.queued(), 0),
        }
        self.check();
        answer
    }

    /// Theorem S14: general injection keeps to the limit of the queue in service.
    pub(super) fn check_injection(&mut self, tag: Tag) {
        let s = self.bfq.in_service.expect("while a queue is in service");
        let queue = &self.bfq.queues[s];
        let own = queue.owner.and_then(|link| self.bfq.links[link].asyn);
        let q = self.bfq.rqs[tag].queue;
        assert_ne!(q, s, "injected is what others send");
        if own != Some(q) {
            let limit = self.bfq.rules.inject.known(s).0.max(1);
            assert!(self.bfq.in_flight <= limit, "{} at the device, limit {limit}", self.bfq.in_flight);
            self.injections += 1;
        }
    }

    /// Dispatches, which must give a request: its tag, and the task that sent it.
    pub(super) fn issue(&mut self) -> (Tag, u32) {
        let answer = self.dispatch();
        let Dispatch::Issue(tag) = answer else { panic!("{answer:?}") };
        (tag, self.requests[tag].rq.task.0)
    }

    pub(super) fn complete(&mut self, tag: Tag) {
        self.cx(|bfq, cx| bfq.complete(cx, tag));
        let carried = self.requests.free(tag);
        assert_eq!(self.requests.freed(tag, carried).count(), 1);
        self.free.push_back(tag);
        self.check();
    }

    /// Inserts a request and serves what comes, each in 1 ms, until it has completed.
    pub(super) fn serve(&mut self, rq: Request) {
        let tag = self.insert(rq);
        self.finish(tag);
    }

    pub(super) fn finish(&mut self, tag: Tag) {
        loop {
            match self.dispatch() {
                Dispatch::Issue(issued) => {
                    self.pass(ms(1));
                    self.complete(issued);
                    if issued == tag {
                        return;
                    }
                }
                Dispatch::Hold(_) => {
                    let (at, _) = self.bfq.next_timer().expect("a hold ends");
                    self.pass(at.saturating_since(self.now));
                }
                Dispatch::Empty => panic!("lost {tag:?}"),
            }
        }
    }

    /// Serves all that waits, each in 1 ms.
    pub(super) fn drain(&mut self) {
        while self.requests.queued() > 0 {
            match self.dispatch() {
                Dispatch::Issue(issued) => {
                    self.pass(ms(1));
                    self.complete(issued);
                }
                _ => self.pass(ms(1)),
            }
        }
    }

    /// Completes what is at the device and serves the rest.
    pub(super) fn drain_issued(&mut self) {
        let issued: Vec<Tag> =
            self.requests.iter().filter(|(_, s)| s.state == State::Issued).map(|(t, _)| t).collect();
        for tag in issued {
            self.complete(tag);
        }
        self.drain();
    }

    pub(super) fn control(&mut self, change: Control) {
        if self.books.groups.control(&change, &Requests::new(1)).is_ok() {
            self.cx(|bfq, cx| bfq.control(cx, &change));
        }
        self.check();
    }

    pub(super) fn exit(&mut self, task: u32) {
        self.control(Control::TaskExit(TaskId(task)));
    }

    pub(super) fn link(&self, task: u32) -> LinkId {
        let slot = self.bfq.tasks.find(TaskId(task)).expect("the task is known");
        self.bfq.link(slot, 0)
    }

    /// A task's sync queue.
    pub(super) fn of(&self, task: u32) -> QueueId {
        self.bfq.links[self.link(task)].sync.expect("it has a queue")
    }

    pub(super) fn queue(&mut self, task: u32) -> &mut Queue {
        let q = self.of(task);
        &mut self.bfq.queues[q]
    }

    /// A task's async queue.
    pub(super) fn asyn(&self, task: u32) -> QueueId {
        self.bfq.links[self.link(task)].asyn.expect("it has one")
    }

    pub(super) fn factor(&self, task: u32) -> u32 {
        self.bfq.queues[self.of(task)].raise.factor()
    }

    /// Gives a queue another factor.
    pub(super) fn raise(&mut self, q: QueueId, factor: u32) {
        if let Some(change) = self.bfq.queues[q].raise.change(factor, Reason::None) {
            self.bfq.set_factor(q, change.before, factor);
        }
    }

    /// The queue that wakes a task's.
    pub(super) fn waker(&self, task: u32) -> Option<QueueId> {
        self.bfq.rules.wakers.waker(self.of(task))
    }

    /// The weight in force of a task's sync queue.
    pub(super) fn weight(&self, task: u32) -> u32 {
        self.bfq.hierarchy.weight(self.of(task))
    }

    pub(super) fn in_use(&self) -> usize {
        self.bfq.queues.iter().filter(|(_, queue)| queue.in_use).count()
    }

    /// The reasons noted since the last call.
    pub(super) fn notes(&mut self) -> Vec<Reason> {
        let events = core::iter::from_fn(|| self.books.trace.pop());
        events.filter(|e| e.action == Action::Note).map(|e| e.reason).collect()
    }
}

/// A client that sends requests in a [`Lab`].
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
        let area = Sector((u64::from(task) + 1) << 26);
        let template = Request::read(TaskId(task), area, Sectors(sectors));
        Self { template, sequential: true, think: Duration::from_us(100), depth: 1 }
    }

    pub(super) fn writer(task: u32, depth: usize) -> Self {
        let reader = Self::reader(task, 64);
        let template = Request { op: crate::Op::Write, sync: false, ..reader.template };
        Self { template, think: Duration::ZERO, depth, ..reader }
    }
}

/// See the module. The device serves its requests one after another.
pub(super) struct Lab {
    pub(super) rig: Rig,
    service: fn(&Request) -> Duration,
    pub(super) depth: usize,
    pub(super) clients: Vec<Client>,
    /// Sectors that each got.
    pub(super) got: Vec<u64>,
    pub(super) device: VecDeque<Tag>,
    pub(super) done_at: Instant,
    ready: Vec<(Instant, usize)>,
    pub(super) sent: Vec<usize>,
    pub(super) places: Vec<u64>,
    pub(super) chance: u64,
}

impl Lab {
    pub(super) fn new(limits: Limits, config: Config, service: fn(&Request) -> Duration) -> Self {
        Self {
            rig: Rig { check_every: 101, ..Rig::with(limits, config) },
            service,
            depth: usize::from(limits.queue_depth),
            clients: Vec::new(),
            got: Vec::new(),
            device: VecDeque::new(),
            done_at: Instant::EPOCH,
            ready: Vec::new(),
            sent: std::vec![0; usize::from(limits.tags)],
            places: Vec::new(),
            chance: 0x9e37_79b9_7f4a_7c15,
        }
    }

    /// Another client begins now.
    pub(super) fn add(&mut self, client: Client) -> usize {
        let i = self.clients.len();
        self.clients.push(client);
        self.got.push(0);
        self.places.push(client.template.start.0);
        self.ready.extend((0..client.depth).map(|_| (self.rig.now, i)));
        i
    }

    /// Lets the clients work for so long; `watch` sees everything after each event.
    pub(super) fn run(&mut self, time: Duration, mut watch: impl FnMut(&mut Rig)) {
        let end = self.rig.now + time;
        while self.rig.now < end {
            self.step(end);
            watch(&mut self.rig);
        }
    }

    pub(super) fn step(&mut self, end: Instant) {
        while let Some(i) = self.ready.iter().position(|r| r.0 <= self.rig.now) {
            let (_, client) = self.ready.swap_remove(i);
            self.send(client);
            self.pump();
        }
        let completion = (!self.device.is_empty()).then_some(self.done_at);
        let timer = self.rig.bfq.next_timer().map(|t| t.0);
        let arrival = self.ready.iter().map(|r| r.0).min();
        let next = completion.into_iter().chain(timer).chain(arrival).chain([end]).min().expect("the end");
        self.rig.now = self.rig.now.max(next);
        if completion == Some(self.rig.now) {
            self.complete();
        } else if timer.is_some_and(|t| t <= self.rig.now) {
            self.rig.cx(|bfq, cx| bfq.timer(cx));
        }
        self.pump();
    }

    pub(super) fn send(&mut self, client: usize) {
        let Client { template, sequential, .. } = self.clients[client];
        self.chance ^= self.chance << 13;
        self.chance ^= self.chance >> 7;
        self.chance ^= self.chance << 17;
        let start = if sequential { self.places[client] } else { template.start.0 + self.chance % (1 << 25) };
        self.places[client] = start + u64::from(template.len.0);
        let tag = self.rig.insert(Request { start: Sector(start), ..template });
        self.sent[tag.index()] = client;
    }

    pub(super) fn complete(&mut self) {
        let tag = self.device.pop_front().expect("the device is busy");
        let client = self.sent[tag.index()];
        self.got[client] += u64::from(self.rig.requests[tag].rq.len.0);
        self.rig.complete(tag);
        self.ready.push((self.rig.now + self.clients[client].think, client));
        self.start_next();
    }

    pub(super) fn start_next(&mut self) {
        if let Some(&next) = self.device.front() {
            self.done_at = self.rig.now + (self.service)(&self.rig.requests[next].rq);
        }
    }

    pub(super) fn pump(&mut self) {
        while self.device.len() < self.depth {
            let Dispatch::Issue(tag) = self.rig.dispatch() else { break };
            self.device.push_back(tag);
            if self.device.len() == 1 {
                self.start_next();
            }
        }
    }
}
