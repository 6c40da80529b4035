//! Tasks that always have some requests on their way, an elevator, and a toy device.
//!
//! The device serves up to `depth` requests at once, each for a time that depends on its length and, if it
//! has a head, on where it starts. The groups' parts of its time are counted here.

use fairhead_core::sched::any::{AnyConfig, AnyScheduler, preset};
use fairhead_core::units::Id;
use fairhead_core::{
    Control, Duration, Elevator, GroupId, Instant, Limits, Op, Refusal, Request, Sector, Sectors, Tag, TaskId,
};
use std::collections::BTreeSet;

/// A device that one can work out by hand.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Toy {
    /// How many requests it serves at once.
    pub(crate) depth: u16,
    pub(crate) rotational: bool,
    /// For each request, and for each of its sectors.
    pub(crate) request: Duration,
    pub(crate) sector: Duration,
    /// For each request that does not start where the one before ended.
    pub(crate) seek: Duration,
}

impl Toy {
    /// Flash of 20,000 requests of 4 KiB a second, one at a time.
    pub(crate) const CARD: Self = Self {
        depth: 1,
        rotational: false,
        request: Duration::from_us(42),
        sector: Duration::from_us(1),
        seek: Duration::ZERO,
    };

    /// A card with 1,000 requests a second.
    pub(crate) const SLOW: Self = Self { request: Duration::from_us(992), ..Self::CARD };

    /// Flash that serves eight requests at a time.
    pub(crate) const FLASH: Self = Self { depth: 8, request: Duration::from_us(392), ..Self::CARD };

    /// A disk of 80 MB/s with a seek of 5 ms.
    pub(crate) const DISK: Self = Self {
        depth: 1,
        rotational: true,
        request: Duration::from_us(20),
        sector: Duration::from_ns(6_400),
        seek: Duration::from_ms(5),
    };
}

/// A task that sends requests: `outstanding` at a time, each following the one before on the disk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Task {
    pub(crate) group: usize,
    pub(crate) outstanding: u32,
    pub(crate) len: u32,
    /// From a completion to the next request.
    pub(crate) think: Duration,
    pub(crate) op: Op,
    next: Sector,
    /// How often it went to another group.
    moves: u32,
}

/// What a group got.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Got {
    pub(crate) time: Duration,
    pub(crate) requests: u64,
    pub(crate) sectors: u64,
}

#[derive(Debug)]
pub(crate) struct World {
    pub(crate) elevator: Elevator<AnyScheduler>,
    pub(crate) now: Instant,
    toy: Toy,
    head: Sector,
    /// At the device: when done, and which; with what it takes.
    flights: BTreeSet<(Instant, Tag)>,
    takes: Vec<Duration>,
    /// The next requests to be sent: when, and by which task.
    thinking: BTreeSet<(Instant, u64, usize)>,
    events: u64,
    free: Vec<Tag>,
    pub(crate) tasks: Vec<Task>,
    /// The task that sent each request, and how often it had moved.
    owner: Vec<(usize, u32)>,
    pub(crate) got: Vec<Got>,
    /// Handed in and not complete.
    pub(crate) open: u64,
}

/// The number of tags.
const TAGS: u16 = 1024;

impl World {
    pub(crate) fn new(toy: Toy, groups: u32, name: &str, tunables: &[(&str, u64)]) -> Self {
        Self::with(toy, groups, name, tunables, Limits::default())
    }

    pub(crate) fn with(toy: Toy, groups: u32, name: &str, tunables: &[(&str, u64)], limits: Limits) -> Self {
        let mut config: AnyConfig = (preset(name).unwrap_or_else(|| panic!("no scheduler {name}")).config)();
        for (key, value) in tunables {
            config.set(key, *value).unwrap();
        }
        let limits = Limits {
            tags: TAGS,
            tasks: 256,
            groups,
            rotational: toy.rotational,
            queue_depth: toy.depth,
            ..limits
        };
        Self {
            elevator: Elevator::new(limits, config).unwrap(),
            now: Instant::EPOCH,
            toy,
            head: Sector(0),
            flights: BTreeSet::new(),
            takes: vec![Duration::ZERO; usize::from(TAGS)],
            thinking: BTreeSet::new(),
            events: 0,
            free: (0..TAGS).rev().map(Tag).collect(),
            tasks: Vec::new(),
            owner: vec![(0, 0); usize::from(TAGS)],
            got: vec![Got::default(); groups as usize],
            open: 0,
        }
    }

    pub(crate) fn control(&mut self, change: Control) -> Result<(), Refusal> {
        self.elevator.control(self.now, change)
    }

    /// A task that reads from now on, in a part of the disk that is its own. Returns its number.
    pub(crate) fn add(&mut self, group: usize, outstanding: u32, len: u32, think: Duration) -> usize {
        let i = self.tasks.len();
        let next = Sector(i as u64 * 10_000_000);
        self.tasks.push(Task { group, outstanding, len, think, op: Op::Read, next, moves: 0 });
        self.start(i);
        i
    }

    fn start(&mut self, task: usize) {
        for _ in 0..self.tasks[task].outstanding {
            self.think(task, self.now);
        }
    }

    /// The task sends to another group from now on: at once, for what it sent before may wait where others
    /// starve it.
    pub(crate) fn move_task(&mut self, task: usize, group: usize) {
        let mover = &mut self.tasks[task];
        mover.group = group;
        mover.moves += 1;
        self.thinking.retain(|t| t.2 != task);
        self.start(task);
    }

    fn think(&mut self, task: usize, until: Instant) {
        self.events += 1;
        self.thinking.insert((until, self.events, task));
    }

    /// What each group got since `before`.
    pub(crate) fn since(&self, before: &[Got]) -> Vec<Got> {
        let less = |a: &Got, b: &Got| Got {
            time: a.time - b.time,
            requests: a.requests - b.requests,
            sectors: a.sectors - b.sectors,
        };
        self.got.iter().zip(before).map(|(a, b)| less(a, b)).collect()
    }

    pub(crate) fn run(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            self.pump();
            let timer = self.elevator.next_timer().map(|(at, _)| at.max(self.now));
            let flight = self.flights.first().map(|f| f.0);
            let thought = self.thinking.first().map(|t| t.0);
            let Some(next) = [timer, flight, thought].into_iter().flatten().min().filter(|&at| at <= end)
            else {
                break;
            };
            self.now = next;
            if thought == Some(next) {
                let (_, _, task) = self.thinking.pop_first().unwrap();
                self.send(task);
            } else if flight == Some(next) {
                let (_, tag) = self.flights.pop_first().unwrap();
                self.finish(tag);
            } else {
                self.elevator.timer(self.now);
            }
        }
        self.now = end;
        self.elevator.check();
    }

    /// No more requests come; everything that waits is served.
    pub(crate) fn drain(&mut self, at_most: Duration) {
        self.thinking.clear();
        self.tasks.iter_mut().for_each(|t| t.outstanding = 0);
        let end = self.now + at_most;
        while self.open > 0 && self.now < end {
            self.run(Duration::from_ms(10));
        }
        assert_eq!(self.open, 0, "requests that are never served");
        assert_eq!((self.elevator.requests().queued(), self.elevator.requests().issued()), (0, 0));
    }

    fn send(&mut self, i: usize) {
        let task = &mut self.tasks[i];
        if task.outstanding == 0 {
            return;
        }
        let tag = self.free.pop().expect("tags for all");
        let rq = Request {
            group: GroupId::from_index(task.group),
            op: task.op,
            ..Request::read(TaskId(1 + u32::try_from(i).unwrap()), task.next, Sectors(task.len))
        };
        // Without a head nothing is gained by what follows; kept apart, nothing is merged, and all that is
        // wanted waits.
        task.next = if self.toy.rotational { rq.end() } else { rq.end() + Sectors(8) };
        self.owner[tag.index()] = (i, task.moves);
        self.open += 1;
        self.elevator.insert_batch(self.now, &[(tag, rq)], |_, _| ());
    }

    fn pump(&mut self) {
        let room = usize::from(self.toy.depth).saturating_sub(self.flights.len());
        let mut issued = Vec::new();
        let _ = self.elevator.dispatch_batch(self.now, room, |tag| issued.push(tag));
        for tag in issued {
            let rq = &self.elevator.requests()[tag].rq;
            let seek = if rq.start == self.head { Duration::ZERO } else { self.toy.seek };
            self.head = rq.end();
            let takes = self.toy.request + seek + self.toy.sector * u64::from(rq.len.0);
            self.takes[tag.index()] = takes;
            self.flights.insert((self.now + takes, tag));
        }
    }

    fn finish(&mut self, tag: Tag) {
        let rq = self.elevator.requests()[tag].rq;
        let got = &mut self.got[rq.group.index()];
        got.time += self.takes[tag.index()];
        got.requests += 1;
        got.sectors += u64::from(rq.len.0);
        let done: Vec<Tag> = self.elevator.complete(self.now, tag).collect();
        for tag in done {
            self.free.push(tag);
            self.open -= 1;
            let (i, moves) = self.owner[tag.index()];
            if self.tasks[i].moves == moves {
                self.think(i, self.now + self.tasks[i].think);
            }
        }
    }
}
