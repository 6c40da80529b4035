//! A closed world without faults, in which no request waits longer than the scheduler's documented bound.
//!
//! A few tasks keep a few requests each in the system: they send one, wait for it, think, send the next. The
//! device takes `queue_depth` requests and serves them one after another, 1 to 20 ms each. When enough
//! requests have been served, the load continues until all that wait at that moment have been served too: a
//! starving task shows.

use super::bounds::{Bound, Load, SERVICE_MAX, Tested};
use super::chance::Chance;
use super::draw::{self, narrow};
use super::subject::{Subject, Twin};
use fairhead_core::sched::any::AnyConfig;
use fairhead_core::{
    Class, Dispatch, Duration, Instant, IoPrio, Limits, Request, Sector, Sectors, Tag, TaskId,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

struct Client {
    template: Request,
    sequential: bool,
    think_us_max: u64,
    next: Sector,
    /// When each of its idle slots sends its next request.
    ready: Vec<Instant>,
}

/// See the [module](self).
pub(crate) struct Calm<'a> {
    chance: &'a mut Chance,
    bound: Bound,
    config: AnyConfig,
    limits: Limits,
    load: Load,
    clients: Vec<Client>,
    subject: Subject,
    now: Instant,
    at_device: VecDeque<Tag>,
    done_at: Option<Instant>,
    /// Those that everything waits for in the end.
    marked: BTreeSet<Tag>,
    waiting: BTreeMap<Tag, (Instant, Request)>,
    longest: Duration,
}

/// The end of a case is not waited for if bounds are longer than this: tunables can make them so.
const BOUND_MAX: Duration = Duration::from_secs(1000);

const CLASSES: [Class; 3] = [Class::RealTime, Class::BestEffort, Class::Idle];

/// The disk that clients read from, in sectors: 32 GiB.
const DISK: u64 = 1 << 26;

impl<'a> Calm<'a> {
    pub(crate) fn draw(chance: &'a mut Chance, tested: impl Into<Tested>) -> Self {
        let Tested { name, mut config, bound } = tested.into();
        super::seeds::about(name);
        draw::tune(chance, &mut config);
        let limits = Limits {
            tags: 64,
            tasks: *chance.pick(&[2, 10, 64]),
            merges: chance.percent(80),
            rotational: chance.percent(80),
            queue_depth: narrow(chance.scaled(1, 31)),
            tick: Duration::from_ms(chance.below(2)),
            ..Limits::default()
        };
        let now = Instant::EPOCH + Duration::from_us(chance.below(1 << 20));
        let classes = chance.percent(15);
        let clients = 0..chance.range(1, 10);
        let clients: Vec<_> = clients.map(|i| Client::draw(chance, now, narrow(i), classes)).collect();
        let load = Load {
            requests: clients.iter().map(|c| c.ready.len() as u64).sum(),
            tasks: clients.len() as u64,
            depth: u64::from(limits.queue_depth),
            own_queues: clients.len() <= limits.tasks as usize,
            tick: limits.tick,
            any_async: clients.iter().any(|c| !c.template.sync),
            classes: clients.iter().any(|c| c.template.prio.class != clients[0].template.prio.class),
        };
        let mut subject = Subject::new(limits, config, Twin::Batches);
        subject.check_every = 16;
        if super::seeds::verbose() {
            eprintln!("{limits:?}\n{config:?}\n{load:?}");
        }
        Self {
            chance,
            bound,
            config,
            limits,
            load,
            clients,
            subject,
            now,
            at_device: VecDeque::new(),
            done_at: None,
            marked: BTreeSet::new(),
            waiting: BTreeMap::new(),
            longest: Duration::ZERO,
        }
    }

    /// Serves `completions` requests, then those that wait, then lets the rest drain. Returns the longest
    /// wait.
    pub(crate) fn run(mut self, completions: u64) -> Duration {
        let mut done = 0;
        while done < completions {
            done += self.turn(true);
        }
        let waiting = self.waiting.iter().map(|(&tag, (_, rq))| (tag, self.bound(rq)));
        self.marked =
            waiting.filter(|(_, bound)| bound.is_some_and(|b| b < BOUND_MAX)).map(|(t, _)| t).collect();
        while !self.marked.is_empty() {
            if self.turn(true) > 0 {
                self.check_waiting();
            }
        }
        while !self.waiting.is_empty() {
            self.turn(false);
        }
        self.longest
    }

    /// Up to the next event. Returns how many requests have completed.
    fn turn(&mut self, sending: bool) -> u64 {
        let mut done = 0;
        if sending {
            self.send();
        }
        self.pump();
        let next = self.next_event(sending);
        self.now = self.now.max(next.expect("requests wait, and nothing is coming that could change that"));
        if self.done_at.is_some_and(|at| at <= self.now) {
            done = self.finish();
        }
        if self.subject.next_timer().is_some_and(|(when, _)| when <= self.now) {
            self.subject.timer(self.now);
        }
        done
    }

    fn bound(&self, rq: &Request) -> Option<Duration> {
        (self.bound)(&self.config, &self.load, rq)
    }

    fn check_waiting(&self) {
        for tag in &self.marked {
            let (since, rq) = self.waiting[tag];
            self.check_wait(&rq, self.now.since(since));
        }
    }

    fn check_wait(&self, rq: &Request, waited: Duration) {
        if let Some(bound) = self.bound(rq) {
            let (load, config) = (&self.load, &self.config);
            assert!(
                waited <= bound,
                "{rq:?} takes {waited} and more, the bound is {bound}; {load:?}, {config:?}"
            );
        }
    }

    fn next_event(&self, sending: bool) -> Option<Instant> {
        let arrivals = self.clients.iter().flat_map(|c| &c.ready).copied().filter(|_| sending);
        let timer = self.subject.next_timer().map(|(when, _)| when);
        arrivals.chain(timer).chain(self.done_at).min()
    }

    fn send(&mut self) {
        for client in &mut self.clients {
            while let Some(i) = client.ready.iter().position(|&at| at <= self.now) {
                let tag = self.subject.ledger.free_tag().expect("more tags than requests");
                client.ready.swap_remove(i);
                let rq = client.request(self.chance);
                self.waiting.insert(tag, (self.now, rq));
                let _ = self.subject.insert(self.now, tag, rq);
            }
        }
    }

    fn pump(&mut self) {
        while self.at_device.len() < usize::from(self.limits.queue_depth) {
            let Dispatch::Issue(tag) = self.subject.dispatch(self.now) else { return };
            self.at_device.push_back(tag);
            self.start();
        }
    }

    /// The device turns to the next request, if it is idle and there is one.
    fn start(&mut self) {
        if self.done_at.is_none() && !self.at_device.is_empty() {
            let service = self.chance.range(1_000_000, SERVICE_MAX.as_ns());
            self.done_at = Some(self.now + Duration::from_ns(service));
        }
    }

    fn finish(&mut self) -> u64 {
        let tag = self.at_device.pop_front().expect("it is being served");
        self.done_at = None;
        let done = self.subject.complete(self.now, tag);
        for done in &done {
            let waited = self.now.since(done.inserted);
            self.longest = self.longest.max(waited);
            self.check_wait(&done.rq, waited);
            self.waiting.remove(&done.tag);
            self.marked.remove(&done.tag);
            let client = &mut self.clients[done.rq.task.0 as usize];
            client.ready.push(self.now + Duration::from_us(self.chance.range(0, client.think_us_max)));
        }
        self.start();
        done.len() as u64
    }
}

impl Client {
    fn draw(chance: &mut Chance, now: Instant, number: u32, classes: bool) -> Self {
        let (task, at) = (TaskId(number), Sector(chance.below(DISK)));
        let mut template = match chance.below(4) {
            0 => Request::write(task, at, Sectors(64)),
            1 => Request { sync: true, ..Request::write(task, at, Sectors(8)) },
            _ => Request::read(task, at, Sectors(*chance.pick(&[8, 64, 256]))),
        };
        let class = if classes { CLASSES[chance.index(CLASSES.len())] } else { Class::BestEffort };
        template.prio = IoPrio::new(class, narrow(chance.below(8)));
        Self {
            template,
            sequential: chance.percent(60),
            think_us_max: *chance.pick(&[0, 0, 1000, 30_000]),
            next: at,
            ready: vec![now; narrow(chance.range(1, 4))],
        }
    }

    fn request(&mut self, chance: &mut Chance) -> Request {
        let rq = Request { start: self.next, ..self.template };
        let ahead = if self.sequential && rq.end().0 < DISK { rq.end().0 } else { chance.below(DISK) };
        self.next = Sector(ahead);
        rq
    }
}
