//! A tenant that keeps a disk without a head busy, beside one of its own weight that thinks: how long the
//! latter waits, in virtual time.

use crate::chance::Chance;
use fairhead_core::sched::any::preset;
use fairhead_core::units::{Class, Duration, GroupId, Instant, IoPrio, Sector, TaskId};
use fairhead_core::{Control, Limits};
use fairhead_live::{Bio, ClientId, FileId, IoId, Op, RequestQueue, Settings, Start};

/// Longer than a task may think for which such a disk is kept idle.
const THINKS: Duration = Duration::from_us(300);

/// The requests that the disk has at a time. It does one after the other, as the engine's thread does them
/// for an image in memory.
const DEPTH: u16 = 32;

/// The requests that the busy tenant has at a time. Its tasks are numbered from 1 on.
const DEEP: u32 = 256;

const THINKER: u32 = 1000;

/// How long a client thinks after an answer.
type Thinks = fn(&mut Chance) -> Duration;

struct World {
    queue: RequestQueue<()>,
    busy: ClientId,
    thinker: ClientId,
    now: Instant,
    /// When the thinker asks next, or since when it waits.
    asks_at: Option<Instant>,
    asked: Instant,
    flights: Vec<(Instant, IoId)>,
    waits: Vec<Duration>,
    serial: u64,
    chance: Chance,
    /// What a request takes, and how long the thinker thinks.
    service: Duration,
    thinks: Thinks,
    /// How many tasks the busy tenant has.
    tasks: u32,
}

impl World {
    fn new(service: Duration, thinks: Thinks, tasks: u32) -> Self {
        let limits = Limits {
            tags: 512,
            tasks: 512,
            groups: 4,
            queue_depth: DEPTH,
            rotational: false,
            idle_for_quick_only: true,
            one_youth: true,
            ..Limits::default()
        };
        let config = (preset("bfq").unwrap().config)().live();
        let mut queue = RequestQueue::new(Settings { limits, ..Settings::default() }, config).unwrap();
        for group in [GroupId(1), GroupId(2)] {
            queue.control(Instant::EPOCH, Control::SetParent(group, GroupId::ROOT)).unwrap();
        }
        let (busy, thinker) = (queue.join(), queue.join());
        Self {
            queue,
            busy,
            thinker,
            now: Instant::EPOCH,
            asks_at: Some(Instant::EPOCH),
            asked: Instant::EPOCH,
            flights: Vec::new(),
            waits: Vec::new(),
            serial: 0,
            chance: Chance::Seed(11),
            service,
            thinks,
            tasks,
        }
    }

    fn ask(&mut self, group: u32, task: u32, op: Op) {
        self.serial += 1;
        let offset = self.chance.below(4096) * 8192 + (u64::from(group) << 30);
        let bio = Bio {
            op,
            file: FileId(group),
            offset,
            len: 4096,
            sector: Sector(offset >> 9),
            fua: false,
            sync: true,
            task: TaskId(task),
            group: GroupId(group),
            prio: IoPrio { class: Class::BestEffort, level: 4 },
            cookie: task.into(),
        };
        let client = if group == 1 { self.busy } else { self.thinker };
        self.queue.submit(self.now, client, bio, Some(()));
    }

    fn serve(&mut self, op: Op) {
        while let Some(i) = self.flights.iter().position(|f| f.0 <= self.now) {
            let (_, io) = self.flights.remove(i);
            let results = vec![Ok(()); self.queue.pieces(io).len()];
            self.queue.finished(self.now, io, &results);
        }
        if self.asks_at.is_some_and(|at| at <= self.now) {
            (self.asks_at, self.asked) = (None, self.now);
            self.ask(2, THINKER, Op::Read);
        }
        if self.queue.next_timer().is_some_and(|at| at <= self.now) {
            self.queue.timer(self.now);
        }
        while let Some(start) = self.queue.next(self.now) {
            let Start::Io(io) = start else { panic!("no client flushes") };
            let before = self.flights.iter().map(|f| f.0).max().unwrap_or(self.now);
            self.flights.push((before.max(self.now) + self.service, io));
        }
        while let Some(answer) = self.queue.answer() {
            if answer.cookie != u64::from(THINKER) {
                self.ask(1, answer.cookie as u32, op);
            } else {
                self.waits.push(self.now.since(self.asked));
                self.asks_at = Some(self.now + (self.thinks)(&mut self.chance));
            }
        }
    }

    fn run_until(&mut self, end: Instant, op: Op) {
        while self.now < end {
            self.serve(op);
            let moments = self.asks_at.into_iter().chain(self.flights.iter().map(|f| f.0));
            self.now = moments.chain(self.queue.next_timer()).min().expect("something comes").max(self.now);
        }
    }

    /// How often the thinker is served in two seconds beside the busy tenant, and its waits, from the
    /// shortest on. Both are no longer young: for ten seconds the thinker was alone.
    fn run(mut self, op: Op) -> (u64, Vec<Duration>) {
        self.run_until(Instant::EPOCH + Duration::from_secs(10), op);
        (0..DEEP).for_each(|i| self.ask(1, i % self.tasks + 1, op));
        self.run_until(Instant::EPOCH + Duration::from_secs(13), op);
        self.waits.clear();
        self.run_until(Instant::EPOCH + Duration::from_secs(15), op);
        let open = self.asks_at.is_none().then(|| self.now.since(self.asked));
        let count = self.waits.len() as u64;
        self.waits.extend(open);
        self.waits.sort_unstable();
        (count, self.waits)
    }
}

/// Most of its pauses are short, but some long, as those of a client that has to wait for a processor.
fn now_and_then(chance: &mut Chance) -> Duration {
    if chance.below(16) == 0 { Duration::from_ms(5) } else { Duration::from_us(30) }
}

#[test]
fn a_tenant_that_thinks_waits_little_beside_one_of_its_weight() {
    let clients: [(&str, Thinks); 2] = [("steady", |_| THINKS), ("now and then", now_and_then)];
    let us = Duration::from_us;
    // Tasks with one request each are quick: the disk may be kept idle for them.
    let floods = [(us(5), Op::Write, DEEP), (us(12), Op::Discard, 8), (us(80), Op::Read, 8)];
    let cases = floods.into_iter().flat_map(|flood| clients.map(|client| (flood, client)));
    for ((service, op, tasks), (client, thinks)) in cases {
        let (count, waits) = World::new(service, thinks, tasks).run(op);
        let (p99, longest) = (waits[waits.len() * 99 / 100], waits[waits.len() - 1]);
        let name = format!("{client}, {op:?} of {service} by {tasks} tasks");
        println!("{name}: {count} requests, p99 {p99}, the longest {longest}");
        // The disk does what it has before it does another request.
        let full = service * u64::from(DEPTH + 1);
        let mut chance = Chance::Seed(11);
        let mean = (0..1000).fold(Duration::ZERO, |sum, _| sum + thinks(&mut chance)) / 1000;
        let most = Duration::from_secs(2).as_ns() / (mean + full).as_ns();
        assert!(count * 100 >= most * 90, "{name}: {count} of {most}");
        assert!(p99 <= full * 2, "{name}: p99 {p99} of {full}");
        assert!(longest <= Duration::from_ms(130), "{name}: {longest}");
    }
}
