//! Which client is next after an answer: closed loops of readers against a disk that takes a fixed time, in
//! virtual time.

use fairhead_core::sched::any::{AnyConfig, preset};
use fairhead_core::units::{Class, Duration, GroupId, Instant, IoPrio, Sector, TaskId, Weight};
use fairhead_core::{Control, Limits};
use fairhead_live::{Bio, ClientId, FileId, IoId, Op, RequestQueue, Settings, Start};

const LEN: u32 = 64 << 10;

const fn us(n: u64) -> Duration {
    Duration::from_us(n)
}

/// Reads in sequence, one request at a time, and pauses between an answer and the next request.
#[derive(Clone, Copy)]
struct Reader {
    class: Class,
    level: u8,
    group: u32,
    pause: Duration,
}

impl Reader {
    const fn new(class: Class, level: u8, pause: Duration) -> Self {
        Self { class, level, group: 0, pause }
    }

    const fn in_group(self, group: u32) -> Self {
        Self { group, ..self }
    }
}

/// A disk that takes `service` for each request. One with a head does one after the other; flash does all
/// that it has at a time.
struct Disk {
    scheduler: &'static str,
    rotational: bool,
    depth: u16,
    service: Duration,
}

/// How many requests each reader has been answered within a second.
fn run(disk: &Disk, readers: &[Reader], set: impl Fn(&mut AnyConfig)) -> Vec<u64> {
    let mut world = World::new(disk, readers, set);
    while world.now < Instant::EPOCH + Duration::from_secs(1) {
        world.step();
    }
    world.done
}

struct World<'a> {
    disk: &'a Disk,
    readers: &'a [Reader],
    queue: RequestQueue<()>,
    client: ClientId,
    now: Instant,
    /// When each reader asks next; `None` while it waits for its answer.
    asks_at: Vec<Option<Instant>>,
    done: Vec<u64>,
    /// What the disk has, in the order in which it does it, and when it is done with it.
    flights: Vec<(Instant, IoId)>,
}

impl<'a> World<'a> {
    fn new(disk: &'a Disk, readers: &'a [Reader], set: impl Fn(&mut AnyConfig)) -> Self {
        let limits = Limits {
            tags: 64,
            tasks: 16,
            groups: 4,
            queue_depth: disk.depth,
            rotational: disk.rotational,
            ..Limits::default()
        };
        let mut config = (preset(disk.scheduler).unwrap().config)().live();
        set(&mut config);
        let mut queue = RequestQueue::new(Settings { limits, ..Settings::default() }, config).unwrap();
        let client = queue.join();
        // They begin one after the other, so that each has been seen alone.
        let asks_at = (0..readers.len()).map(|i| Some(Instant::EPOCH + us(100 * i as u64))).collect();
        let (done, flights) = (vec![0; readers.len()], Vec::new());
        Self { disk, readers, queue, client, now: Instant::EPOCH, asks_at, done, flights }
    }

    fn ask(&mut self, i: usize) {
        let reader = &self.readers[i];
        let offset = self.done[i] * u64::from(LEN);
        let bio = Bio {
            op: Op::Read,
            file: FileId(0),
            offset: offset + ((i as u64) << 40),
            len: LEN,
            sector: Sector((offset >> 9) + ((i as u64) << 24)),
            fua: false,
            sync: true,
            task: TaskId(i as u32 + 1),
            group: GroupId(reader.group),
            prio: IoPrio { class: reader.class, level: reader.level },
            cookie: i as u64,
        };
        self.asks_at[i] = None;
        self.queue.submit(self.now, self.client, bio, Some(()));
    }

    /// To the next moment at which anything happens.
    fn step(&mut self) {
        if self.flights.first().is_some_and(|f| f.0 <= self.now) {
            let (_, io) = self.flights.remove(0);
            self.queue.finished(self.now, io, &[Ok(())]);
        }
        for i in 0..self.readers.len() {
            if self.asks_at[i].is_some_and(|at| at <= self.now) {
                self.ask(i);
            }
        }
        if self.queue.next_timer().is_some_and(|at| at <= self.now) {
            self.queue.timer(self.now);
        }
        while let Some(start) = self.queue.next(self.now) {
            let Start::Io(io) = start else { panic!("no client flushes") };
            let before = self.flights.last().filter(|_| self.disk.rotational);
            let begins = before.map_or(self.now, |f| f.0);
            self.flights.push((begins + self.disk.service, io));
        }
        while let Some(answer) = self.queue.answer() {
            let i = answer.cookie as usize;
            self.done[i] += 1;
            self.asks_at[i] = Some(self.now + self.readers[i].pause);
        }
        self.queue.check();
        let moments = self.asks_at.iter().flatten().copied();
        let moments = moments.chain(self.flights.first().map(|f| f.0)).chain(self.queue.next_timer());
        self.now = moments.min().expect("something comes").max(self.now);
    }
}

const BEST_EFFORT: Reader = Reader::new(Class::BestEffort, 4, us(30));
const IDLE: Reader = Reader::new(Class::Idle, 0, us(30));

/// On a kernel, 198 MiB/s beside nothing (docs/reference/nvme.md#4-after-a-completion).
#[test]
fn under_mq_deadline_the_idle_class_waits_for_a_best_effort_reader() {
    for depth in [1, 8] {
        let disk = Disk { scheduler: "mq-deadline", rotational: true, depth, service: us(300) };
        let done = run(&disk, &[BEST_EFFORT, IDLE], |_| ());
        assert!(done[0] > 3000 && done[1] < 10, "depth {depth}: {done:?}");
    }
}

#[test]
fn a_reader_that_thinks_for_long_does_not_keep_the_disk_from_the_idle_class() {
    let disk = Disk { scheduler: "mq-deadline", rotational: true, depth: 1, service: us(300) };
    let thinker = Reader { pause: Duration::from_ms(5), ..BEST_EFFORT };
    let done = run(&disk, &[thinker, IDLE], |_| ());
    // The thinker's turn is 5.3 to 5.6 ms; the other has the rest, but for its own pause.
    assert!(done[0] > 175 && done[1] > 2300, "{done:?}");
}

#[test]
fn requests_of_one_class_go_on_as_without_waiting() {
    for scheduler in ["noop", "deadline", "mq-deadline", "kyber"] {
        let disk = Disk { scheduler, rotational: true, depth: 1, service: us(300) };
        let done = run(&disk, &[BEST_EFFORT; 2], |_| ());
        // 3,333 if the disk never waits for a client.
        assert!(done.iter().sum::<u64>() >= 3330, "{scheduler}: {done:?}");
    }
}

fn low_latency_off(config: &mut AnyConfig) {
    config.set("low_latency", 0).unwrap();
}

/// On a kernel, be0 beside be7 has 14 times as much (178:10 MiB/s); both have the same if the pauses are used
/// for injections.
#[test]
fn under_bfq_a_reader_of_a_higher_level_keeps_flash() {
    let (first, last) =
        (Reader::new(Class::BestEffort, 0, us(30)), Reader::new(Class::BestEffort, 7, us(30)));
    let disk = Disk { scheduler: "bfq", rotational: false, depth: 32, service: us(300) };
    let done = run(&disk, &[first, last], low_latency_off);
    // Nominal 8:1, by amount of service.
    assert!(done[0] > 6 * done[1] && done.iter().sum::<u64>() > 2900, "{done:?}");
}

#[test]
fn under_bfq_groups_have_their_weights_on_flash() {
    let disk = Disk { scheduler: "bfq", rotational: false, depth: 32, service: us(300) };
    let readers = [BEST_EFFORT.in_group(1), BEST_EFFORT.in_group(2)];
    let mut world = World::new(&disk, &readers, low_latency_off);
    for (group, weight) in [(1, 100), (2, 300)] {
        let weight = Weight::new(weight).unwrap();
        world.queue.control(Instant::EPOCH, Control::SetWeight(GroupId(group), weight)).unwrap();
    }
    while world.now < Instant::EPOCH + Duration::from_secs(2) {
        world.step();
    }
    let (least, most) = (world.done[0], world.done[1]);
    assert!(most * 10 > least * 27 && most * 10 < least * 33, "1:3 within a tenth: {least}:{most}");
}
