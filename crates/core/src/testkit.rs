//! What unit tests of schedulers and parts share: instants and requests in a word, chance, an elevator that
//! is driven by hand, and a closed loop of clients and a disk.
//!
//! ```text
//!   Rig      the test makes each call, at instants of its choice; everything is checked after each
//!   World    clients send, a disk serves, and time passes: the test reads what was done
//! ```
//!
//! What only the tests of one scheduler need is an `impl` block for its rig, beside these tests.

extern crate std;

use crate::elevator::{Control, Dispatch, Elevator, Hold, Insert, Limits};
use crate::request::{Op, Request};
use crate::sched::Scheduler;
use crate::trace::{Action, Reason};
use crate::units::{Duration, Id, Instant, Sector, Sectors, Tag, TaskId};
use std::collections::VecDeque;
use std::string::String;
use std::vec::Vec;

/// An instant, in microseconds.
pub(crate) fn us(us: u64) -> Instant {
    Instant::EPOCH + Duration::from_us(us)
}

/// An instant, in milliseconds.
pub(crate) fn ms(ms: u64) -> Instant {
    us(ms * 1000)
}

/// A read of 8 sectors.
pub(crate) fn read(task: u32, start: u64) -> Request {
    Request::read(TaskId(task), Sector(start), Sectors(8))
}

/// An async write of 8 sectors.
pub(crate) fn write(task: u32, start: u64) -> Request {
    Request::write(TaskId(task), Sector(start), Sectors(8))
}

/// Chance: the same numbers from the same seed.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        //= G. Marsaglia, Xorshift RNGs (2003), section 4
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number below `n`, which is not 0.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}

/// When a call of a [`Rig`] is made: an instant, or a number of milliseconds.
pub(crate) trait When: Copy {
    fn instant(self) -> Instant;
}

impl When for Instant {
    fn instant(self) -> Instant {
        self
    }
}

impl When for u64 {
    fn instant(self) -> Instant {
        ms(self)
    }
}

/// An elevator driven by hand, which is checked after each call. Tags count up and then come back in the
/// order in which they became free.
pub(crate) struct Rig<S: Scheduler> {
    pub(crate) elevator: Elevator<S>,
    /// What the test writes down.
    pub(crate) log: String,
    free: VecDeque<Tag>,
    added: u64,
}

impl<S: Scheduler> Rig<S> {
    /// With the usual limits, and a trace that is long enough for a test.
    pub(crate) fn new(config: S::Config) -> Self {
        Self::with(Limits { trace: 256, ..Limits::default() }, config)
    }

    pub(crate) fn with(limits: Limits, config: S::Config) -> Self {
        let free = (0..limits.tags).map(Tag).collect();
        Self { elevator: Elevator::new(limits, config).unwrap(), log: String::new(), free, added: 0 }
    }

    pub(crate) fn add(&mut self, when: impl When, rq: Request) -> (Tag, Insert) {
        self.added += 1;
        let tag = self.free.pop_front().expect("a free tag");
        let answer = self.elevator.insert(when.instant(), tag, rq);
        self.elevator.check();
        (tag, answer)
    }

    /// How many requests were inserted.
    pub(crate) const fn added(&self) -> u64 {
        self.added
    }

    /// Inserts a request, whether it merges or not.
    pub(crate) fn insert(&mut self, when: impl When, rq: Request) -> Tag {
        self.add(when, rq).0
    }

    /// Inserts a request that is not to merge.
    #[track_caller]
    pub(crate) fn queue(&mut self, when: impl When, rq: Request) -> Tag {
        let (tag, answer) = self.add(when, rq);
        assert_eq!(answer, Insert::Queued, "{rq:?} should not merge");
        tag
    }

    pub(crate) fn dispatch(&mut self, when: impl When) -> Dispatch {
        let answer = self.elevator.dispatch(when.instant());
        self.elevator.check();
        answer
    }

    /// Dispatches, which must give a request.
    #[track_caller]
    pub(crate) fn issue(&mut self, when: impl When) -> Tag {
        let answer = self.dispatch(when);
        let Dispatch::Issue(tag) = answer else { panic!("{answer:?} at {:?}", when.instant()) };
        tag
    }

    /// Dispatches, which must give this request.
    #[track_caller]
    pub(crate) fn issues(&mut self, when: impl When, tag: Tag) {
        assert_eq!(self.dispatch(when), Dispatch::Issue(tag), "at {:?}", when.instant());
    }

    /// Dispatches, which must hold the disk back.
    #[track_caller]
    pub(crate) fn holds(&mut self, when: impl When, why: Hold) {
        assert_eq!(self.dispatch(when), Dispatch::Hold(why), "at {:?}", when.instant());
    }

    pub(crate) fn complete(&mut self, when: impl When, tag: Tag) {
        self.free.extend(self.elevator.complete(when.instant(), tag));
        self.elevator.check();
    }

    /// Issues and completes at once whatever comes: the starting sectors.
    pub(crate) fn serve_all(&mut self, when: impl When) -> Vec<u64> {
        let mut starts = Vec::new();
        while let Dispatch::Issue(tag) = self.dispatch(when) {
            starts.push(self.request(tag).start.0);
            self.complete(when, tag);
        }
        starts
    }

    #[track_caller]
    pub(crate) fn control(&mut self, when: impl When, change: Control) {
        self.elevator.control(when.instant(), change).unwrap();
        self.elevator.check();
    }

    pub(crate) fn exit(&mut self, when: impl When, task: u32) {
        self.control(when, Control::TaskExit(TaskId(task)));
    }

    pub(crate) fn timer(&mut self, when: impl When) {
        self.elevator.timer(when.instant());
        self.elevator.check();
    }

    /// When the timer is to fire.
    pub(crate) fn timer_at(&self) -> Option<Instant> {
        self.elevator.next_timer().map(|(when, _)| when)
    }

    pub(crate) fn request(&self, tag: Tag) -> Request {
        self.elevator.requests()[tag].rq
    }

    /// Why the last request that was issued since the last call of this was chosen. Empties the trace.
    pub(crate) fn why(&mut self) -> Option<Reason> {
        self.elevator.drain_trace().filter(|e| e.action == Action::Issue).last().map(|e| e.reason)
    }
}

/// A client that sends requests, `depth` at a time, from one instant until another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Client {
    /// Its requests; the start is where its area begins.
    pub(crate) template: Request,
    /// Where a request starts: behind the last, or anywhere in this many sectors, at multiples of its length.
    pub(crate) random_over: Option<u64>,
    /// From a completion to the next request.
    pub(crate) think: Duration,
    pub(crate) depth: u32,
    pub(crate) from: Instant,
    pub(crate) until: Instant,
}

impl Client {
    /// Sends requests as `template`, one behind the other on the disk and one at a time.
    pub(crate) fn sequential(template: Request, think: Duration) -> Self {
        let until = Instant::EPOCH + Duration::from_secs(1_000_000);
        Self { template, random_over: None, think, depth: 1, from: Instant::EPOCH, until }
    }
}

/// A request that is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Done {
    pub(crate) client: usize,
    /// When the device got it, and when it was done.
    pub(crate) issued: Instant,
    pub(crate) at: Instant,
    /// How long the disk was busy with it, and how long the client waited for it.
    pub(crate) service: Duration,
    pub(crate) latency: Duration,
}

/// A closed loop in virtual time: clients, a driver, and a disk that serves its requests one after another.
pub(crate) struct World<S: Scheduler> {
    pub(crate) elevator: Elevator<S>,
    pub(crate) now: Instant,
    pub(crate) clients: Vec<Client>,
    /// All requests that are done, in order.
    pub(crate) done: Vec<Done>,
    /// Whether the timer fires before each look, due or not.
    pub(crate) spurious_timers: bool,
    places: Vec<Sector>,
    arrivals: Vec<(Instant, usize)>,
    /// By tag: the client, when it sent the request, and when the device got it.
    sent: Vec<(usize, Instant, Instant)>,
    free: Vec<Tag>,
    device: VecDeque<Tag>,
    depth: usize,
    /// When the request at the front of the device is done, and how long it takes.
    busy: Option<(Instant, Duration)>,
    head: Sector,
    service: fn(head: Sector, rq: &Request) -> Duration,
    random: Random,
}

impl<S: Scheduler> World<S> {
    /// The disk takes `limits.queue_depth` requests, each of which takes what `service` says for it and the
    /// place of the head.
    pub(crate) fn new(
        limits: Limits,
        config: S::Config,
        service: fn(head: Sector, rq: &Request) -> Duration,
        clients: &[Client],
    ) -> Self {
        let send = |(i, c): (usize, &Client)| (0..c.depth).map(|_| (c.from, i)).collect::<Vec<_>>();
        Self {
            elevator: Elevator::new(limits, config).unwrap(),
            now: Instant::EPOCH,
            clients: clients.to_vec(),
            done: Vec::new(),
            spurious_timers: false,
            places: clients.iter().map(|c| c.template.start).collect(),
            arrivals: clients.iter().enumerate().flat_map(send).collect(),
            sent: std::vec![(0, Instant::EPOCH, Instant::EPOCH); usize::from(limits.tags)],
            free: (0..limits.tags).rev().map(Tag).collect(),
            device: VecDeque::new(),
            depth: usize::from(limits.queue_depth),
            busy: None,
            head: Sector(0),
            service,
            random: Random::new(1),
        }
    }

    /// Lets everything happen that happens until then.
    pub(crate) fn run(&mut self, until: impl When) {
        let until = until.instant();
        let mut events = 0_u32;
        loop {
            if self.spurious_timers {
                self.elevator.timer(self.now);
            }
            self.pump();
            let arrival = self.arrivals.iter().map(|a| a.0).min();
            let timer = self.elevator.next_timer().map(|t| t.0);
            let busy = self.busy.map(|b| b.0);
            let next = arrival.into_iter().chain(timer).chain(busy).min();
            let Some(next) = next.filter(|&next| next <= until) else { break };
            self.now = self.now.max(next);
            if let Some((_, service)) = self.busy.take_if(|b| b.0 <= self.now) {
                self.finish(service);
            } else if let Some(i) = self.arrivals.iter().position(|a| a.0 <= self.now) {
                let (_, client) = self.arrivals.remove(i);
                self.send(client);
            } else {
                self.elevator.timer(self.now);
            }
            events += 1;
            if events.is_multiple_of(64) {
                self.elevator.check();
            }
        }
        self.now = until;
        self.elevator.check();
    }

    fn send(&mut self, i: usize) {
        let Client { template, random_over, until, .. } = self.clients[i];
        if self.now >= until {
            return;
        }
        let len = u64::from(template.len.0);
        let start = match random_over {
            Some(over) => Sector(template.start.0 + self.random.below(over) / len * len),
            None => self.places[i],
        };
        let rq = Request { start, ..template };
        self.places[i] = rq.end();
        let tag = self.free.pop().expect("fewer requests than tags");
        self.sent[tag.index()] = (i, self.now, self.now);
        let _: Insert = self.elevator.insert(self.now, tag, rq);
    }

    fn pump(&mut self) {
        while self.device.len() < self.depth {
            let Dispatch::Issue(tag) = self.elevator.dispatch(self.now) else { break };
            self.device.push_back(tag);
            self.sent[tag.index()].2 = self.now;
        }
        if let (None, Some(&tag)) = (self.busy, self.device.front()) {
            let rq = self.elevator.requests()[tag].rq;
            let service = (self.service)(self.head, &rq);
            self.head = rq.end();
            self.busy = Some((self.now + service, service));
        }
    }

    fn finish(&mut self, service: Duration) {
        let tag = self.device.pop_front().expect("the disk is busy");
        let (_, _, issued) = self.sent[tag.index()];
        let freed: Vec<Tag> = self.elevator.complete(self.now, tag).collect();
        for tag in freed {
            let (client, since, _) = self.sent[tag.index()];
            let latency = self.now.since(since);
            self.done.push(Done { client, issued, at: self.now, service, latency });
            self.arrivals.push((self.now + self.clients[client].think, client));
            self.free.push(tag);
        }
    }

    /// How many requests of a client were done after `from` and not after `until`.
    pub(crate) fn count(&self, client: usize, from: impl When, until: impl When) -> usize {
        let (from, until) = (from.instant(), until.instant());
        self.done.iter().filter(|d| d.client == client && d.at > from && d.at <= until).count()
    }

    /// The sectors that each client got.
    pub(crate) fn sectors(&self) -> Vec<u64> {
        let len = |i: usize| u64::from(self.clients[i].template.len.0);
        let count = |i: usize| self.done.iter().filter(|d| d.client == i).count() as u64;
        (0..self.clients.len()).map(|i| count(i) * len(i)).collect()
    }
}

/// The letter of an operation in logs.
pub(crate) const fn letter(op: Op) -> char {
    match op {
        Op::Read => 'R',
        Op::Write => 'W',
        Op::Discard => 'D',
    }
}
