//! Naive twins: schedulers written a second time, as plainly as docs/reference has it, over vectors that are
//! searched from end to end.
//!
//! The twin and the real one get the same random requests and must issue the same ones. Merging is off (the
//! suite checks that apart), but for noop, whose whole policy it is. What a twin shares with the real one is
//! docs/reference and nothing else.
//!
//! The parts have twins beside them (`src/parts/*`): trees, fifos and indices against sorted vectors.

use crate::support::chance::Chance;
use crate::support::draw::narrow;
use crate::support::seeds;
use fairhead_core::sched::any::{AnyConfig, AnyScheduler, preset};
use fairhead_core::{
    Dispatch, Duration, Elevator, End, Insert, Instant, Limits, Op, Request, Rest, Sector, Sectors, Tag,
    TaskId,
};
use std::collections::VecDeque;

/// A scheduler, the plain way.
trait Twin {
    fn insert(&mut self, now: Instant, tag: Tag, rq: Request);
    fn dispatch(&mut self, now: Instant) -> Option<Tag>;
}

#[derive(Clone, Copy)]
struct Waiting {
    tag: Tag,
    rq: Request,
    since: Instant,
}

/// deadline, since about 2.6.24.
//= docs/reference/elevators.md#32-variant-b type=test
struct NaiveDeadline {
    /// In order of arrival.
    waiting: Vec<Waiting>,
    expire: [Duration; 2],
    fifo_batch: u64,
    writes_starved: u64,
    batching: u64,
    starved: u64,
    /// What the last request that was issued leads to: the next of its direction in sector order, by then.
    next: [Option<Tag>; 2],
}

/// 0 for reads, 1 for everything else.
fn dir(rq: &Request) -> usize {
    usize::from(rq.op != Op::Read)
}

impl NaiveDeadline {
    fn new(config: &AnyConfig) -> Self {
        let get = |name| config.get(name).expect("a tunable of deadline");
        Self {
            waiting: Vec::new(),
            expire: [Duration::from_ns(get("read_expire")), Duration::from_ns(get("write_expire"))],
            fifo_batch: get("fifo_batch"),
            writes_starved: get("writes_starved"),
            batching: 0,
            starved: 0,
            next: [None; 2],
        }
    }

    fn oldest(&self, d: usize) -> Option<Waiting> {
        self.waiting.iter().find(|w| dir(&w.rq) == d).copied()
    }

    /// Which request starts the next batch.
    fn new_batch(&mut self, now: Instant) -> Option<Tag> {
        let (reads, writes) = (self.oldest(0), self.oldest(1));
        let d = match (reads, writes) {
            (None, None) => return None,
            (Some(_), None) => 0,
            (None, Some(_)) => 1,
            (Some(_), Some(_)) => {
                self.starved += 1;
                usize::from(self.starved > self.writes_starved)
            }
        };
        if d == 1 {
            self.starved = 0;
        }
        let head = self.oldest(d)?;
        let expired = head.since + self.expire[d] < now;
        self.batching = 0;
        if expired { Some(head.tag) } else { self.next[d].or(Some(head.tag)) }
    }

    fn take(&mut self, tag: Tag) {
        let at = self.waiting.iter().position(|w| w.tag == tag).expect("it waits");
        let gone = self.waiting.remove(at);
        // Equal starts: the later one follows.
        let order = |w: &Waiting| (w.rq.start, w.since, w.tag);
        let behind = |w: &&Waiting| dir(&w.rq) == dir(&gone.rq) && order(w) > order(&gone);
        self.next = [None; 2];
        self.next[dir(&gone.rq)] = self.waiting.iter().filter(behind).min_by_key(|w| order(w)).map(|w| w.tag);
    }
}

impl Twin for NaiveDeadline {
    fn insert(&mut self, now: Instant, tag: Tag, rq: Request) {
        self.waiting.push(Waiting { tag, rq, since: now });
    }

    fn dispatch(&mut self, now: Instant) -> Option<Tag> {
        let running = self.next[0].or(self.next[1]).filter(|_| self.batching < self.fifo_batch);
        let tag = match running {
            Some(tag) => tag,
            None => self.new_batch(now)?,
        };
        self.batching += 1;
        self.take(tag);
        Some(tag)
    }
}

/// noop: a queue in order of arrival, the hint, and the elevator's merging.
//= docs/reference/elevators.md#13-merging, docs/reference/elevators.md#2-noop type=test
struct NaiveNoop {
    queue: VecDeque<(Tag, Request, Instant)>,
    hint: Option<Tag>,
    max_sectors: u32,
    frozen: Vec<Tag>,
}

impl NaiveNoop {
    fn fits(&self, at: usize, rq: &Request) -> bool {
        self.queue[at].1.len.0 + rq.len.0 <= self.max_sectors
    }

    /// Where `rq` may be merged: at the hint's end or start, or at any request's end.
    fn neighbour(&self, rq: &Request) -> Option<(usize, End)> {
        let free = |at: &usize| self.queue[*at].1.op == rq.op && !self.frozen.contains(&self.queue[*at].0);
        let hinted = self.queue.iter().position(|waiting| Some(waiting.0) == self.hint).filter(free);
        if let Some(at) = hinted {
            if self.queue[at].1.end() == rq.start {
                return Some((at, End::Back));
            }
            if self.queue[at].1.start == rq.end() {
                return Some((at, End::Front));
            }
        }
        let mut back = (0..self.queue.len()).filter(free).filter(|&at| self.queue[at].1.end() == rq.start);
        let found = back.next()?;
        assert!(back.next().is_none(), "the scene has no two requests that end alike");
        Some((found, End::Back))
    }

    /// After the request at `at` grew at `end`: makes it one with its neighbour in the queue, if it touches
    /// that there.
    fn join(&mut self, at: usize, end: End) {
        let grown = self.queue[at].1;
        let other = match end {
            End::Back => at + 1,
            End::Front => at.wrapping_sub(1),
        };
        let Some(&(tag, rq, _)) = self.queue.get(other) else { return };
        let touches = match end {
            End::Back => rq.start == grown.end(),
            End::Front => rq.end() == grown.start,
        };
        if !touches || rq.op != grown.op || self.frozen.contains(&tag) {
            return;
        }
        let (kept, gone) = if end == End::Back { (at, other) } else { (other, at) };
        if self.frozen.contains(&self.queue[at].0) || !self.fits(kept, &self.queue[gone].1) {
            return;
        }
        let (tag, front, since) = self.queue[kept];
        let (_, back, other_since) = self.queue[gone];
        let whole = Request { len: front.len + back.len, ..front };
        // The place of the one that came first.
        let (place, empty) = if other_since < since { (gone, kept) } else { (kept, gone) };
        self.queue[place] = (tag, whole, since.min(other_since));
        self.queue.remove(empty);
        self.hint = Some(tag);
    }

    fn insert(&mut self, now: Instant, tag: Tag, rq: Request) -> Insert {
        if let Some((at, end)) = self.neighbour(&rq) {
            let into = self.queue[at].0;
            if self.fits(at, &rq) {
                let whole = &mut self.queue[at].1;
                whole.start = whole.start.min(rq.start);
                whole.len = whole.len + rq.len;
                self.hint = Some(into);
                self.join(at, end);
                return Insert::Merged { into, end };
            }
            self.frozen.push(into);
            if self.hint == Some(into) {
                self.hint = None;
            }
        }
        self.queue.push_back((tag, rq, now));
        self.hint.get_or_insert(tag);
        Insert::Queued
    }

    fn dispatch(&mut self) -> Option<(Tag, Request)> {
        let (tag, rq, _) = self.queue.pop_front()?;
        self.frozen.retain(|&t| t != tag);
        if self.hint == Some(tag) {
            self.hint = None;
        }
        Some((tag, rq))
    }
}

fn elevator(limits: Limits, config: AnyConfig) -> Elevator<AnyScheduler> {
    Elevator::new(limits, config).expect("in range")
}

/// Gives both one sequence of requests and questions, at equal instants.
fn compare(chance: &mut Chance, config: AnyConfig, twin: &mut dyn Twin) {
    let mut real = elevator(Limits { tags: 48, merges: false, ..Limits::default() }, config);
    let mut now = Instant::EPOCH;
    let mut free: Vec<Tag> = (0..48).map(Tag).collect();
    let span = *chance.pick(&[40, 400, 100_000]);
    for _ in 0..300 {
        now = now + Duration::from_us(*chance.pick(&[0, 1, 3_000, 100_000]));
        for _ in 0..chance.below(6) {
            let Some(tag) = free.pop() else { break };
            let read = Request::read(TaskId(1), Sector(chance.below(span)), Sectors(8));
            let rq = if chance.percent(40) { Request { op: Op::Write, sync: false, ..read } } else { read };
            let _ = real.insert(now, tag, rq);
            twin.insert(now, tag, rq);
            // Order of arrival decides between equal starts; let it be visible to the twin.
            now = now + Duration::from_ns(1);
        }
        if chance.percent(50) {
            let (room, mut issued) = (chance.below(6) as usize, Vec::new());
            let rest = real.dispatch_batch(now, room, |tag| issued.push(tag));
            for tag in issued {
                assert_eq!(twin.dispatch(now), Some(tag), "which request is next in the batch");
                assert_eq!(real.complete(now, tag).count(), 1);
                free.push(tag);
            }
            assert!(rest == Rest::Full || twin.dispatch(now).is_none(), "{rest:?}, but a request waits");
            continue;
        }
        for _ in 0..chance.below(6) {
            let answer = match real.dispatch(now) {
                Dispatch::Issue(tag) => Some(tag),
                Dispatch::Empty => None,
                Dispatch::Hold(why) => panic!("deadline never holds: {why:?}"),
            };
            assert_eq!(answer, twin.dispatch(now), "which request is next");
            if let Some(tag) = answer {
                assert_eq!(real.complete(now, tag).count(), 1);
                free.push(tag);
            }
        }
    }
}

#[test]
fn deadline_issues_what_the_plain_rules_say() {
    let preset = preset("deadline").expect("a preset");
    seeds::each("deadline_issues_what_the_plain_rules_say", |seed| {
        let mut chance = Chance::Seed(seed);
        let mut config = (preset.config)();
        for (name, values) in [
            ("fifo_batch", [0, 1, 2, 5, 16]),
            ("writes_starved", [0, 1, 2, 2, 7]),
            ("read_expire", [0, 1_000_000, 50_000_000, 500_000_000, 500_000_000]),
            ("write_expire", [0, 1_000_000, 500_000_000, 5_000_000_000, 5_000_000_000]),
        ] {
            config.set(name, *chance.pick(&values)).expect("in range");
        }
        compare(&mut chance, config, &mut NaiveDeadline::new(&config));
    });
}

#[test]
fn noop_merges_and_issues_what_the_plain_rules_say() {
    let preset = preset("noop").expect("a preset");
    seeds::each("noop_merges_and_issues_what_the_plain_rules_say", |seed| {
        let mut chance = Chance::Seed(seed);
        // Every request starts at a multiple of 8 that no other has, so that a neighbour is one request or
        // none.
        let limits = Limits { tags: 256, max_sectors: Sectors(64), ..Limits::default() };
        let mut real = elevator(limits, (preset.config)());
        let mut twin = NaiveNoop { queue: VecDeque::new(), hint: None, max_sectors: 64, frozen: Vec::new() };
        let mut places: Vec<u64> = (0..200).collect();
        for i in (1..places.len()).rev() {
            places.swap(i, chance.index(i + 1));
        }
        let near = chance.percent(50);
        let mut now = Instant::EPOCH;
        for (i, &place) in places.iter().enumerate() {
            // Half of the cases come in runs, which merge more.
            let place = if near { i as u64 ^ 3 } else { place };
            let rq = Request::read(TaskId(narrow(chance.below(3))), Sector(place * 8), Sectors(8));
            let tag = Tag(u16::try_from(i).expect("few"));
            now = now + Duration::from_ns(chance.below(2));
            let (ours, theirs) = (twin.insert(now, tag, rq), real.insert(now, tag, rq));
            assert_eq!(theirs, ours, "inserting {rq:?}");
            if chance.percent(20) {
                check_next(&mut real, &mut twin, now);
            }
        }
        while !twin.queue.is_empty() {
            check_next(&mut real, &mut twin, now);
        }
        assert_eq!(real.dispatch(now), Dispatch::Empty);
    });
}

fn check_next(real: &mut Elevator<AnyScheduler>, twin: &mut NaiveNoop, now: Instant) {
    match twin.dispatch() {
        None => assert_eq!(real.dispatch(now), Dispatch::Empty),
        Some((tag, whole)) => {
            assert_eq!(real.dispatch(now), Dispatch::Issue(tag));
            let issued = real.requests()[tag].rq;
            assert_eq!((issued.start, issued.len), (whole.start, whole.len), "what it covers");
        }
    }
}
