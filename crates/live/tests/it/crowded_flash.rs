//! A tenant that keeps a disk without a head busy, beside one of its own weight that thinks: how long the
//! latter waits, in virtual time.

use fairhead_core::sched::any::preset;
use fairhead_core::units::{Class, Duration, GroupId, Instant, IoPrio, Sector, TaskId};
use fairhead_core::{Control, Limits};
use fairhead_live::{Bio, ClientId, FileId, IoId, Op, RequestQueue, Settings, Start};

/// What a request takes: one after the other, as the engine's thread does them for an image in memory.
const SERVICE: Duration = Duration::from_us(5);

/// Longer than a task may think for which such a disk is kept idle.
const THINKS: Duration = Duration::from_us(300);

/// The requests that the busy tenant has at a time.
const DEEP: u32 = 256;

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
}

impl World {
    fn new() -> Self {
        let limits = Limits {
            tags: 512,
            groups: 4,
            queue_depth: 32,
            rotational: false,
            idle_for_quick_only: true,
            one_youth: true,
            ..Limits::default()
        };
        let config = (preset("bfq").unwrap().config)();
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
        }
    }

    fn ask(&mut self, group: u32, op: Op) {
        self.serial += 1;
        let offset = self.serial % 4096 * 8192 + (u64::from(group) << 30);
        let bio = Bio {
            op,
            file: FileId(group),
            offset,
            len: 4096,
            sector: Sector(offset >> 9),
            fua: false,
            sync: true,
            task: TaskId(group),
            group: GroupId(group),
            prio: IoPrio { class: Class::BestEffort, level: 4 },
            cookie: group.into(),
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
            self.ask(2, Op::Read);
        }
        if self.queue.next_timer().is_some_and(|at| at <= self.now) {
            self.queue.timer(self.now);
        }
        while let Some(start) = self.queue.next(self.now) {
            let Start::Io(io) = start else { panic!("no client flushes") };
            let before = self.flights.iter().map(|f| f.0).max().unwrap_or(self.now);
            self.flights.push((before.max(self.now) + SERVICE, io));
        }
        while let Some(answer) = self.queue.answer() {
            if answer.cookie == 1 {
                self.ask(1, op);
            } else {
                self.waits.push(self.now.since(self.asked));
                self.asks_at = Some(self.now + THINKS);
            }
        }
    }

    /// How often the thinker was served in two seconds, and its longest wait.
    fn run(mut self, op: Op) -> (usize, Duration) {
        (0..DEEP).for_each(|_| self.ask(1, op));
        while self.now < Instant::EPOCH + Duration::from_secs(2) {
            self.serve(op);
            let moments = self.asks_at.into_iter().chain(self.flights.iter().map(|f| f.0));
            self.now = moments.chain(self.queue.next_timer()).min().expect("something comes").max(self.now);
        }
        let open = self.asks_at.is_none().then(|| self.now.since(self.asked));
        (self.waits.len(), self.waits.iter().copied().chain(open).max().unwrap_or_default())
    }
}

#[test]
fn a_tenant_that_thinks_waits_little_beside_one_of_its_weight() {
    for op in [Op::Read, Op::Write, Op::Discard] {
        let (count, longest) = World::new().run(op);
        println!("{op:?}: {count} requests, the longest {longest}");
        assert!(longest <= Duration::from_ms(100), "{op:?}: {longest}");
        // Of those that it would have alone, with so much thought between two.
        let alone = Duration::from_secs(2).as_ns() / (THINKS + SERVICE).as_ns();
        assert!(count as u64 * 100 >= alone * 45, "{op:?}: {count} of {alone}");
    }
}
