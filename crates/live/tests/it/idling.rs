//! Tenants that think, and reconnect as new tasks, beside each other: how long they wait and how long the
//! disk is idle meanwhile, in virtual time.

use crate::chance::Chance;
use fairhead_core::sched::any::{AnyConfig, preset};
use fairhead_core::units::{Class, Duration, GroupId, Instant, IoPrio, Sector, TaskId, Weight};
use fairhead_core::{Control, Limits};
use fairhead_live::{Bio, ClientId, FileId, IoId, Op, RequestQueue, Settings, Start};

const THINKS: Duration = Duration::from_ms(4);
/// A tenant comes back as another task after this many requests.
const RECONNECTS: u64 = 30;
const WEIGHTS: [u16; 6] = [50, 100, 190, 250, 350, 430];
const EQUAL: [u16; 6] = [100; 6];

/// What a request takes; all at a time, as the disk has no head.
const SERVICE: Duration = Duration::from_us(200);

/// What came out of some seconds.
#[derive(Debug)]
struct Outcome {
    done: u64,
    longest: Duration,
    /// The longest idle time in any second, while requests waited.
    idle_max: Duration,
}

struct World {
    queue: RequestQueue<()>,
    client: ClientId,
    chance: Chance,
    now: Instant,
    asks_at: Vec<Option<Instant>>,
    asked: Vec<Instant>,
    done: Vec<u64>,
    flights: Vec<(Instant, IoId)>,
    longest: Duration,
    /// Idle times of each millisecond.
    idle: Vec<Duration>,
}

impl World {
    fn new(weights: &[u16], live: bool, set: impl Fn(&mut AnyConfig)) -> Self {
        let limits = Limits {
            tags: 256,
            tasks: 256,
            groups: 8,
            queue_depth: 32,
            rotational: false,
            idle_for_quick_only: live,
            one_youth: live,
            ..Limits::default()
        };
        let mut config = (preset("bfq").unwrap().config)().live();
        set(&mut config);
        let mut queue = RequestQueue::new(Settings { limits, ..Settings::default() }, config).unwrap();
        for (i, weight) in weights.iter().enumerate() {
            let group = GroupId(i as u32 + 1);
            queue.control(Instant::EPOCH, Control::SetParent(group, GroupId::ROOT)).unwrap();
            let weight = Weight::new(*weight).unwrap();
            queue.control(Instant::EPOCH, Control::SetWeight(group, weight)).unwrap();
        }
        let (client, tenants) = (queue.join(), weights.len());
        Self {
            queue,
            client,
            chance: Chance::Seed(7),
            now: Instant::EPOCH,
            asks_at: (0..tenants as u64).map(|i| Some(Instant::EPOCH + Duration::from_us(700 * i))).collect(),
            asked: vec![Instant::EPOCH; tenants],
            done: vec![0; tenants],
            flights: Vec::new(),
            longest: Duration::ZERO,
            idle: Vec::new(),
        }
    }

    fn ask(&mut self, i: usize) {
        let session = self.done[i] / RECONNECTS;
        let offset = ((i as u64) << 30) + self.chance.below(200) * 4096;
        let bio = Bio {
            op: if self.chance.below(3) == 0 { Op::Read } else { Op::Write },
            file: FileId(i as u32),
            offset,
            len: 4096,
            sector: Sector(offset >> 9),
            fua: false,
            sync: true,
            task: TaskId((session * 10 + i as u64 + 1) as u32),
            group: GroupId(i as u32 + 1),
            prio: IoPrio { class: Class::BestEffort, level: 4 },
            cookie: i as u64,
        };
        (self.asks_at[i], self.asked[i]) = (None, self.now);
        self.queue.submit(self.now, self.client, bio, Some(()));
    }

    fn serve(&mut self) {
        while let Some(i) = self.flights.iter().position(|f| f.0 <= self.now) {
            let (_, io) = self.flights.remove(i);
            self.queue.finished(self.now, io, &[Ok(())]);
        }
        for i in 0..self.asks_at.len() {
            if self.asks_at[i].is_some_and(|at| at <= self.now) {
                self.ask(i);
            }
        }
        if self.queue.next_timer().is_some_and(|at| at <= self.now) {
            self.queue.timer(self.now);
        }
        while let Some(start) = self.queue.next(self.now) {
            let Start::Io(io) = start else { panic!("no client flushes") };
            self.flights.push((self.now + SERVICE, io));
        }
        while let Some(answer) = self.queue.answer() {
            let i = answer.cookie as usize;
            self.done[i] += 1;
            self.longest = self.longest.max(self.now.since(self.asked[i]));
            self.asks_at[i] = Some(self.now + THINKS);
        }
    }

    /// To the next moment at which anything happens.
    fn step(&mut self) {
        self.serve();
        let moments = self.asks_at.iter().flatten().copied();
        let moments = moments.chain(self.flights.iter().map(|f| f.0)).chain(self.queue.next_timer());
        let next = moments.min().expect("something comes").max(self.now);
        let is_idle = self.flights.is_empty() && self.asks_at.iter().any(Option::is_none);
        let mut at = self.now;
        while at < next {
            let ms = at.since(Instant::EPOCH).as_ns() / 1_000_000;
            let end = next.min(Instant::EPOCH + Duration::from_ms(ms + 1));
            self.idle.resize(ms as usize + 1, Duration::ZERO);
            if is_idle {
                self.idle[ms as usize] += end.since(at);
            }
            at = end;
        }
        self.now = next;
    }

    fn run(mut self, secs: u64) -> Outcome {
        while self.now < Instant::EPOCH + Duration::from_secs(secs) {
            self.step();
        }
        self.queue.check();
        // A tenant that still waits has waited at least until now.
        let waits = self.asks_at.iter().zip(&self.asked).filter(|(at, _)| at.is_none());
        let open = waits.map(|(_, asked)| self.now.since(*asked)).max().unwrap_or_default();
        let sum = |second: &[Duration]| second.iter().fold(Duration::ZERO, |sum, d| sum + *d);
        let idle_max = self.idle.windows(1000).map(sum).max().unwrap();
        Outcome { done: self.done.iter().sum(), longest: self.longest.max(open), idle_max }
    }
}

fn no_idling(config: &mut AnyConfig) {
    config.set("slice_idle", 0).unwrap();
}

#[test]
fn the_disk_is_never_idle_for_tenants_that_think() {
    for weights in [WEIGHTS, EQUAL] {
        let live = World::new(&weights, true, |_| ()).run(10);
        assert_eq!(live.idle_max, Duration::ZERO, "{weights:?}: {live:?}");
        let lab = World::new(&weights, false, |_| ()).run(10);
        assert!(lab.idle_max > Duration::from_ms(20), "there is nothing to switch off: {lab:?}");
    }
}

#[test]
fn no_tenant_waits_for_long_because_others_reconnect() {
    let live = World::new(&WEIGHTS, true, |_| ()).run(20);
    let lab = World::new(&WEIGHTS, false, |_| ()).run(20);
    let none = World::new(&WEIGHTS, true, no_idling).run(20);
    // docs/live-fairness.md has these.
    println!("in the lab {lab:?}\nlive {live:?}\nslice_idle=0 {none:?}");
    assert!(live.longest <= Duration::from_ms(1), "{live:?}");
    assert!(lab.longest > Duration::from_ms(10), "there is no wait to bound: {lab:?}");
}

#[test]
fn tenants_of_equal_weight_get_nine_tenths_of_what_they_get_without_idling() {
    let live = World::new(&EQUAL, true, |_| ()).run(20);
    let most = World::new(&EQUAL, true, no_idling).run(20);
    assert!(live.done * 10 >= most.done * 9, "{} of {}", live.done, most.done);
}
