//! A start beside many tasks that are known to the request queue and idle; the schedulers alone are tried in
//! `core/tests/it/idle_tasks.rs`.

use fairhead_core::Limits;
use fairhead_core::sched::any::preset;
use fairhead_core::units::{Duration, GroupId, Instant, IoPrio, Sector, TaskId};
use fairhead_live::{Bio, ClientId, FileId, Op, RequestQueue, Settings, Start};

/// The tasks that keep the disk busy, and how many reads each has.
const READERS: u32 = 2;
const DEPTH: u32 = 4;
/// The task that starts.
const NEWCOMER: u32 = 500;

/// A disk that serves one read at a time: 200 us in a row, 6 ms elsewhere.
struct World {
    queue: RequestQueue<()>,
    client: ClientId,
    now: Instant,
    head: Sector,
}

impl World {
    fn new(name: &str) -> Self {
        let limits = Limits { tags: 256, tasks: 64, merges: false, rotational: true, ..Limits::default() };
        let settings = Settings { limits, ..Settings::default() };
        let mut queue = RequestQueue::new(settings, (preset(name).unwrap().config)().live()).unwrap();
        let client = queue.join();
        Self { queue, client, now: Instant::EPOCH + Duration::from_ms(1), head: Sector(0) }
    }

    fn read(&mut self, task: u32, sector: u64) {
        let bio = Bio {
            op: Op::Read,
            file: FileId(0),
            offset: sector * 512,
            len: 64 * 512,
            sector: Sector(sector),
            fua: false,
            sync: true,
            task: TaskId(task),
            group: GroupId::ROOT,
            prio: IoPrio::default(),
            cookie: task.into(),
        };
        self.queue.submit(self.now, self.client, bio, None);
    }

    /// Serves one read. Returns its task.
    fn serve(&mut self) -> u32 {
        loop {
            if let Some(Start::Io(io)) = self.queue.next(self.now) {
                let sector = Sector(self.queue.pieces(io)[0].offset / 512);
                let took = if sector == self.head { 200 } else { 6000 };
                self.now = self.now + Duration::from_us(took);
                self.head = Sector(sector.0 + 64);
                self.queue.finished(self.now, io, &[Ok(())]);
                let answer = self.queue.answer().expect("one for each read: nothing is merged");
                return answer.cookie as u32;
            }
            self.now = self.now.max(self.queue.next_timer().expect("something waits"));
            self.queue.timer(self.now);
        }
    }

    /// The time that 60 reads of a newcomer take, one after the other, beside `idle` tasks that were busy
    /// before.
    fn start(mut self, idle: u32) -> Duration {
        for task in 0..idle {
            self.read(1000 + task, u64::from(task) << 12);
            self.serve();
        }
        self.now = self.now + Duration::from_ms(500);
        let mut next: Vec<u64> = (0..READERS).map(|reader| u64::from(reader + 1) << 34).collect();
        let mut read_on = |world: &mut Self, reader: u32| {
            let start = &mut next[reader as usize];
            world.read(1 + reader, *start);
            *start += 64;
        };
        for _ in 0..DEPTH {
            (0..READERS).for_each(|reader| read_on(&mut self, reader));
        }
        for _ in 0..2000 {
            let reader = self.serve() - 1;
            read_on(&mut self, reader);
        }
        let begun = self.now;
        for read in 0..60 {
            self.read(NEWCOMER, (read * 7919 % 10_000) << 20);
            loop {
                match self.serve() {
                    NEWCOMER => break,
                    reader => read_on(&mut self, reader - 1),
                }
            }
        }
        self.now.since(begun)
    }
}

#[test]
fn a_start_in_a_live_queue_beside_ten_thousand_idle_tasks_is_as_quick_as_beside_none() {
    for name in ["bfq", "cfq", "as"] {
        let (alone, beside) = (World::new(name).start(0), World::new(name).start(10_000));
        println!("{name}: {alone:?} beside none, {beside:?} beside 10,000");
        assert!(beside.as_ns() <= alone.as_ns() * 11 / 10, "{name}: {alone:?} beside none, {beside:?}");
    }
}
