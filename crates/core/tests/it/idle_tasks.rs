//! A start beside many tasks that are known and idle: it takes as long as beside none.
//!
//! Two readers in a row, with several requests each, keep the disk busy; a task that starts reads small
//! pieces all over it, one after the other. Before that, many tasks have sent one request each. A scheduler
//! that has no room for the newcomer treats it as one of a crowd.

use fairhead_core::sched::any::{AnyScheduler, preset};
use fairhead_core::{
    Dispatch, Duration, Elevator, Insert, Instant, Limits, Request, Sector, Sectors, Tag, TaskId,
};
use std::collections::VecDeque;

/// The reads of a start.
const READS: u32 = 60;
/// The tasks that keep the disk busy, and how many requests each has.
const READERS: u32 = 2;
const DEPTH: u32 = 4;

/// A disk that serves one request at a time: 200 us in a row, 6 ms elsewhere.
struct World {
    elevator: Elevator<AnyScheduler>,
    now: Instant,
    head: Sector,
    free: VecDeque<Tag>,
    /// By tag.
    sent: Vec<Option<Request>>,
}

impl World {
    fn new(name: &str) -> Self {
        let limits = Limits { tasks: 64, merges: false, rotational: true, ..Limits::default() };
        let config = (preset(name).expect("a preset").config)();
        Self {
            elevator: Elevator::new(limits, config).expect("in range"),
            now: Instant::EPOCH + Duration::from_ms(1),
            head: Sector(0),
            free: (0..limits.tags).map(Tag).collect(),
            sent: vec![None; limits.tags.into()],
        }
    }

    fn insert(&mut self, task: u32, start: u64) {
        let tag = self.free.pop_front().expect("few are in flight");
        let read = Request::read(TaskId(task), Sector(start), Sectors(64));
        assert_eq!(self.elevator.insert(self.now, tag, read), Insert::Queued);
        self.sent[usize::from(tag.0)] = Some(read);
    }

    /// Serves one request. Returns its task.
    fn serve(&mut self) -> u32 {
        loop {
            if let Dispatch::Issue(tag) = self.elevator.dispatch(self.now) {
                let rq = self.sent[usize::from(tag.0)].expect("sent before");
                let took = if rq.start == self.head { 200 } else { 6000 };
                self.now = self.now + Duration::from_us(took);
                self.head = rq.end();
                let done: Vec<Tag> = self.elevator.complete(self.now, tag).collect();
                self.free.extend(done);
                return rq.task.0;
            }
            let (at, _) = self.elevator.next_timer().expect("a hold ends");
            self.now = self.now.max(at);
            self.elevator.timer(self.now);
        }
    }

    /// The time that a start takes, beside `idle` tasks that were busy before.
    fn start(mut self, idle: u32) -> Duration {
        for task in 0..idle {
            self.insert(1000 + task, u64::from(task) << 12);
            self.serve();
        }
        self.now = self.now + Duration::from_ms(500);
        let mut next: Vec<u64> = (0..READERS).map(|reader| u64::from(reader + 1) << 34).collect();
        let mut read_on = |world: &mut Self, reader: u32| {
            let start = &mut next[reader as usize];
            world.insert(1 + reader, *start);
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
        for read in 0..READS {
            self.insert(500, u64::from(read * 7919 % 10_000) << 20);
            loop {
                match self.serve() {
                    500 => break,
                    reader => read_on(&mut self, reader - 1),
                }
            }
        }
        self.now.since(begun)
    }
}

#[test]
fn a_start_beside_ten_thousand_idle_tasks_is_as_quick_as_beside_none() {
    for name in ["bfq", "cfq", "cfq-2.6.33", "cfq-ts2", "as"] {
        let Some(_) = preset(name) else { panic!("no preset {name}") };
        let (alone, beside) = (World::new(name).start(0), World::new(name).start(10_000));
        println!("{name}: {alone:?} beside none, {beside:?} beside 10,000");
        assert!(beside.as_ns() <= alone.as_ns() * 11 / 10, "{name}: {alone:?} beside none, {beside:?}");
    }
}
