extern crate std;
use super::*;
use crate::units::Id;
use crate::{Class, Elevator, GroupId, IoPrio, Op, Sectors, TaskId};
use core::fmt::Write as _;
use std::string::String;
use std::vec::Vec;

/// A disk far away.
const FAR: u64 = 40_000_000;

fn at(ms: u64) -> Instant {
    Instant::EPOCH + Duration::from_ms(ms)
}

fn ms(instant: Instant) -> u64 {
    instant.since(Instant::EPOCH).as_ms()
}

fn request(task: u32, start: u64, sync: bool, op: Op) -> Request {
    Request {
        start: Sector(start),
        len: Sectors(8),
        op,
        sync,
        meta: false,
        no_idle: false,
        task: TaskId(task),
        group: GroupId::ROOT,
        prio: IoPrio::new(Class::BestEffort, 4),
    }
}

fn read(task: u32, start: u64) -> Request {
    request(task, start, true, Op::Read)
}

fn write(task: u32, start: u64) -> Request {
    request(task, start, false, Op::Write)
}

fn early() -> Config {
    Config::linux_2_6_9()
}

fn late() -> Config {
    Config::default()
}

/// An elevator whose tags count up, on the clock of the test.
struct Rig {
    elevator: Elevator<Anticipatory>,
    tags: u16,
}

impl Rig {
    fn new(config: Config) -> Self {
        Self::with(config, Limits::default())
    }

    fn with(config: Config, limits: Limits) -> Self {
        Self { elevator: Elevator::new(Limits { trace: 256, ..limits }, config).unwrap(), tags: 0 }
    }

    fn insert(&mut self, time: u64, rq: Request) -> Tag {
        let tag = Tag(self.tags);
        self.tags += 1;
        let _ = self.elevator.insert(at(time), tag, rq);
        self.elevator.check();
        tag
    }

    fn dispatch(&mut self, time: u64) -> Dispatch {
        let answer = self.elevator.dispatch(at(time));
        self.elevator.check();
        answer
    }

    #[track_caller]
    fn issues(&mut self, time: u64, tag: Tag) {
        assert_eq!(self.dispatch(time), Dispatch::Issue(tag));
    }

    #[track_caller]
    fn holds(&mut self, time: u64, why: Hold) {
        assert_eq!(self.dispatch(time), Dispatch::Hold(why));
    }

    fn complete(&mut self, time: u64, tag: Tag) {
        self.elevator.complete(at(time), tag).for_each(drop);
        self.elevator.check();
    }

    fn exit(&mut self, time: u64, task: u32) {
        self.elevator.control(at(time), Control::TaskExit(TaskId(task)));
        self.elevator.check();
    }

    fn timer(&mut self, time: u64) {
        self.elevator.timer(at(time));
        self.elevator.check();
    }

    fn timer_at(&self) -> Option<u64> {
        self.elevator.next_timer().map(|(when, _)| ms(when))
    }

    /// One read of `task`, alone on the disk, that takes 5 ms.
    fn serve(&mut self, time: u64, rq: Request) {
        let tag = self.insert(time, rq);
        self.issues(time, tag);
        self.complete(time + 5, tag);
    }

    /// `time letter task+sector reason` for everything that happened.
    fn log(&mut self) -> String {
        let mut log = String::new();
        for e in self.elevator.drain_trace() {
            write!(log, "{} {} task {}", ms(e.at), e.action.letter(), e.task.0).unwrap();
            if e.tag.is_some() {
                write!(log, " at {}", e.start.0).unwrap();
            }
            match e.reason {
                Reason::None => log.push('\n'),
                reason => writeln!(log, " {reason:?}").unwrap(),
            }
        }
        log
    }

    fn sched(&self) -> &Anticipatory {
        self.elevator.scheduler()
    }
}

/// One client of the closed loop: it sends its next request `think` after the completion of the last.
#[derive(Clone, Copy, Debug)]
struct Client {
    rq: Request,
    /// Where the next request starts: behind the last, or anywhere in this many sectors after `rq.start`.
    random_over: Option<u64>,
    think: Duration,
}

impl Client {
    fn sequential(task: u32) -> Self {
        Self { rq: read(task, u64::from(task) * FAR), random_over: None, think: Duration::from_us(50) }
    }

    fn random(task: u32, over: u64) -> Self {
        let rq = Request { len: Sectors(128), ..read(task, u64::from(task) * FAR) };
        Self { rq, random_over: Some(over), think: Duration::from_us(50) }
    }

    fn writer(task: u32) -> Self {
        Self { rq: write(task, u64::from(task) * FAR), ..Self::sequential(task) }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Served {
    task: u32,
    at: Instant,
    latency: Duration,
}

/// A disk with a queue, its clients, and the driver between: a closed loop in virtual time.
///
/// The disk serves one request at a time, in order: 0.2 ms for each 8 sectors, and 10 ms to move the head anywhere.
struct Loop {
    elevator: Elevator<Anticipatory>,
    depth: usize,
    now: Instant,
    clients: Vec<Client>,
    /// When each client sends, or sent, its request; and whether it has been sent.
    sends: Vec<(Instant, bool)>,
    device: Vec<Tag>,
    done_at: Option<Instant>,
    head: Sector,
    served: Vec<Served>,
    spurious_timers: bool,
    rng: u64,
}

impl Loop {
    fn new(config: Config, depth: u16, clients: &[Client]) -> Self {
        let limits = Limits { queue_depth: depth, tick: Duration::from_ms(1), ..Limits::default() };
        Self {
            elevator: Elevator::new(limits, config).unwrap(),
            depth: usize::from(depth),
            now: Instant::EPOCH,
            clients: clients.to_vec(),
            sends: (0..clients.len())
                .map(|i| (Instant::EPOCH + Duration::from_us(i as u64), false))
                .collect(),
            device: Vec::new(),
            done_at: None,
            head: Sector(0),
            served: Vec::new(),
            spurious_timers: false,
            rng: 0x9e37_79b9_7f4a_7c15,
        }
    }

    fn run(mut self, until_ms: u64) -> Self {
        while self.now < at(until_ms) {
            self.step();
        }
        self
    }

    fn step(&mut self) {
        let (client, send) = (0..self.sends.len())
            .filter(|&i| !self.sends[i].1)
            .map(|i| (i, self.sends[i].0))
            .min_by_key(|&(_, when)| when)
            .map_or((0, None), |(i, when)| (i, Some(when)));
        let timer = self.elevator.next_timer().map(|(when, _)| when);
        let next = [self.done_at, send, timer].into_iter().flatten().min();
        self.now = next.expect("nothing is coming").max(self.now);
        if self.done_at == Some(self.now) {
            self.finish();
        } else if send == next {
            self.send(client);
        } else {
            self.elevator.timer(self.now);
        }
        if self.spurious_timers && self.elevator.next_timer().is_none_or(|(when, _)| when > self.now) {
            self.elevator.timer(self.now);
        }
        while self.device.len() < self.depth
            && let Dispatch::Issue(tag) = self.elevator.dispatch(self.now)
        {
            self.device.push(tag);
            self.start();
        }
        if self.served.len().is_multiple_of(64) {
            self.elevator.check();
        }
    }

    fn send(&mut self, i: usize) {
        self.sends[i].1 = true;
        let client = &mut self.clients[i];
        let mut rq = client.rq;
        if let Some(over) = client.random_over {
            self.rng ^= self.rng << 13;
            self.rng ^= self.rng >> 7;
            self.rng ^= self.rng << 17;
            rq.start = Sector(rq.start.0 + self.rng % over / 128 * 128);
        } else {
            client.rq.start = rq.end();
        }
        let _ = self.elevator.insert(self.now, Tag::from_index(i), rq);
    }

    fn start(&mut self) {
        if self.done_at.is_none()
            && let Some(&tag) = self.device.first()
        {
            let rq = self.elevator.requests()[tag].rq;
            let seek = if rq.start == self.head { 0 } else { 10_000 };
            self.head = rq.end();
            self.done_at = Some(self.now + Duration::from_us(seek + u64::from(rq.len.0) * 25));
        }
    }

    fn finish(&mut self) {
        self.done_at = None;
        let tag = self.device.remove(0);
        let done: Vec<Tag> = self.elevator.complete(self.now, tag).collect();
        for tag in done {
            let i = tag.index();
            let latency = self.now.since(self.sends[i].0);
            self.served.push(Served { task: self.clients[i].rq.task.0, at: self.now, latency });
            self.sends[i] = (self.now + self.clients[i].think, false);
        }
        self.start();
    }

    fn count(&self, task: u32) -> usize {
        self.served.iter().filter(|s| s.task == task).count()
    }

    fn max_latency_ms(&self) -> u64 {
        self.served.iter().map(|s| s.latency.as_ms()).max().unwrap()
    }

    /// Whose turn it was, for how many requests, until when.
    fn turns(&self) -> Vec<(u32, usize, u64)> {
        let mut turns: Vec<(u32, usize, u64)> = Vec::new();
        for s in &self.served {
            match turns.last_mut() {
                Some(turn) if turn.0 == s.task => *turn = (s.task, turn.1 + 1, ms(s.at)),
                _ => turns.push((s.task, 1, ms(s.at))),
            }
        }
        turns
    }
}

#[test]
fn sequential_readers_take_turns_of_read_expire() {
    for (config, n) in [(early(), 2), (early(), 4), (late(), 4), (late(), 8)] {
        let clients: Vec<Client> = (1..=n).map(Client::sequential).collect();
        let run = Loop::new(config, 1, &clients).run(4_000);
        // Expiry is looked at every 125 ms; with one competitor the look comes too early every second time.
        let turn = if n == 2 { 250 } else { 125 };
        for window in run.turns()[1..].windows(2).take(12) {
            let (before, (task, requests, ends)) = (window[0], window[1]);
            assert_eq!(task, before.0 % n + 1, "{n} readers: the oldest is next");
            assert!((ends - before.2).abs_diff(turn) <= 2, "{n} readers: a turn of {} ms", ends - before.2);
            assert!(requests as u64 > turn * 7 / 2, "{n} readers: only {requests} requests in a turn");
        }
        let per_reader = run.max_latency_ms() / u64::from(n);
        assert!((117..=133).contains(&per_reader), "{n} readers: waited for {per_reader} ms each");
    }
}

/// Two far readers on a device that takes two requests: after each request of reader 1, the disk waits for its next.
/// Reader 2's request expires at 126 ms, but the look at 125 ms comes too early and the next one is at 250 ms.
//= type=test elevators section 8 vector 5
#[test]
fn a_sequential_reader_keeps_the_disk_until_the_other_expires() {
    let mut rig = Rig::new(late());
    let mut tag = rig.insert(0, read(1, 0));
    rig.issues(0, tag);
    let far = rig.insert(1, read(2, FAR));
    let mut time = 0;
    while time < 250 {
        rig.holds(time + 1, Hold::Anticipate);
        assert_eq!(rig.timer_at(), None, "the completion is coming");
        rig.complete(time + 4, tag);
        rig.holds(time + 4, Hold::Anticipate);
        assert_eq!(rig.timer_at(), Some(time + 10));
        time += 5;
        tag = rig.insert(time, read(1, time / 5 * 8));
        assert_eq!(rig.timer_at(), None, "a hit ends the wait");
        if time < 250 {
            rig.issues(time, tag);
        }
    }
    rig.issues(250, far);
    // Now the disk is reader 2's.
    rig.holds(251, Hold::Anticipate);
    rig.complete(254, far);
    rig.holds(254, Hold::Anticipate);
    let far = rig.insert(255, read(2, FAR + 8));
    rig.issues(255, far);
}

#[test]
fn the_reasons_for_waiting_and_for_giving_up() {
    let mut rig = Rig::new(late());
    rig.serve(0, read(1, 0));
    let far = rig.insert(6, read(2, FAR));
    rig.holds(6, Hold::Anticipate);
    let hit = rig.insert(7, read(1, 8));
    rig.issues(7, hit);
    rig.complete(12, hit);
    rig.holds(12, Hold::Anticipate);
    assert_eq!(rig.timer_at(), Some(18));
    rig.timer(18);
    rig.issues(18, far);
    let expected = "\
        0 I task 1 at 0\n0 m task 1 BatchChange\n0 D task 1 at 0 NewBatch\n5 C task 1 at 0\n\
        6 I task 2 at 40000000\n6 m task 1 Anticipate\n\
        7 I task 1 at 8\n7 m task 1 AnticipationHit\n7 D task 1 at 8 Nearest\n12 C task 1 at 8\n\
        12 m task 1 Anticipate\n18 m task 1 AnticipationTimeout\n18 D task 2 at 40000000 Nearest\n";
    assert_eq!(rig.log(), expected);
}

/// What the first sync request after an async batch says about that batch, by how long it took.
//= type=test elevators section 8 vector 6
#[test]
fn async_batches_adapt_to_their_target() {
    let size_after = |took: u64, issued: u32, idled: bool| {
        let config = late();
        let mut batch = Batch::new(&config, Duration::from_ms(1));
        assert_eq!(batch.writes_max(), 12);
        batch.change_to(Kind::Async);
        batch.begin(at(1000), &config);
        (0..issued).for_each(|_| batch.count_write());
        if idled {
            batch.note_idleness(false);
        }
        batch.change_to(Kind::Sync);
        batch.begin(at(1000 + took), &config);
        batch.completed(at(1000 + took), Kind::Sync, 1, true, &config);
        batch.writes_max()
    };
    assert_eq!(size_after(400, 12, false), 6);
    assert_eq!(size_after(20, 12, false), 24);
    assert_eq!(size_after(200, 12, false), 11);
    assert_eq!(size_after(100, 12, false), 13);
    assert_eq!(size_after(20, 5, false), 12, "did not use all, so could not have gone faster");
    assert_eq!([400, 200].map(|took| size_after(took, 5, true)), [12, 12], "idled: says nothing");
    assert_eq!(size_after(125, 12, false), 12);
}

/// A think time of 4 ms, again and again: the mean starts at 8 because of rounding, and passes 5.
//= type=test elevators section 8 vector 7
#[test]
fn think_times_are_filtered_in_ticks() {
    let mut rig = Rig::with(late(), Limits { tick: Duration::from_ms(1), ..Limits::default() });
    let mut means = Vec::new();
    for n in 0..4 {
        // 5 ms of service and 4 ms of thinking.
        rig.serve(9 * n, read(1, 8 * n));
        let tasks = &rig.sched().tasks;
        means.push(tasks[tasks.slot(TaskId(1)).unwrap()].think.mean());
    }
    assert_eq!(means, [0, 8, 6, 5]);
    assert_eq!(rig.sched().est_time().think_mean, Duration::ZERO, "an eighth of 4 ms, in whole ms");
}

#[test]
fn long_think_times_count_as_19_ms_and_make_waiting_useless() {
    let mut rig = Rig::new(late());
    for n in 0..8 {
        rig.serve(1000 * n, read(1, 8 * n));
    }
    let tasks = &rig.sched().tasks;
    // Rounded up, as long as there are few samples.
    assert_eq!(tasks[tasks.slot(TaskId(1)).unwrap()].think.mean(), 20);
    let far = rig.insert(7006, read(2, FAR));
    rig.issues(7006, far);
}
