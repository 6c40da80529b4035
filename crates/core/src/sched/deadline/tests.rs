extern crate std;
use super::*;
use crate::request::Request;
use crate::testkit::{Rig, letter, ms};
use crate::{Insert, Sectors, TaskId};
use core::fmt::Write as _;
use std::string::String;
use std::vec::Vec;

const TASK: TaskId = TaskId(1);

fn read(start: u64) -> Request {
    crate::testkit::read(TASK.0, start)
}

fn write(start: u64) -> Request {
    crate::testkit::write(TASK.0, start)
}

/// A golden log: `R10` for each request as it is issued, a bar before each that starts a batch.
impl Rig<Deadline> {
    /// Issues one request, completes it at once, logs it, and answers why it was chosen.
    fn step(&mut self, ms: u64) -> Option<Reason> {
        let Dispatch::Issue(tag) = self.dispatch(ms) else { return None };
        let rq = self.request(tag);
        let why = self.why().unwrap();
        let bar = if why == Reason::Batch || self.log.is_empty() { "" } else { "| " };
        write!(self.log, "{bar}{}{} ", letter(rq.op), rq.start.0).unwrap();
        self.complete(ms, tag);
        Some(why)
    }

    fn steps(&mut self, ms: u64, n: usize) -> String {
        for _ in 0..n {
            self.step(ms);
        }
        core::mem::take(&mut self.log)
    }
}

//= docs/reference/elevators.md#8-test-vectors vector 3
#[test]
fn two_batches_of_reads_for_one_of_writes() {
    let mut rig = Rig::<Deadline>::new(Config { fifo_batch: 2, ..Config::default() });
    for i in 1..=9 {
        rig.queue(0, read(i * 10_000));
        rig.queue(0, write(i * 10_000 + 5000));
    }
    assert_eq!(
        rig.steps(1, 12),
        "R10000 R20000 | R30000 R40000 | W15000 W25000 | R50000 R60000 | R70000 R80000 | W35000 W45000 "
    );
    assert_eq!(rig.steps(1, 9), "R90000 | W55000 W65000 | W75000 W85000 | W95000 ");
}

#[test]
fn a_batch_does_not_turn_back_and_the_next_starts_at_the_oldest() {
    let mut rig = Rig::<Deadline>::new(Config::default());
    for start in [500, 900, 100, 300] {
        rig.queue(0, read(start));
    }
    assert_eq!(rig.steps(0, 4), "R500 R900 | R100 R300 ", "one way up, then the oldest that is left");
}

#[test]
fn a_new_batch_in_the_same_direction_goes_on_in_sector_order() {
    let mut rig = Rig::<Deadline>::new(Config { fifo_batch: 2, ..Config::default() });
    for start in [300, 100, 500, 700, 900] {
        rig.queue(0, read(start));
    }
    assert_eq!(rig.steps(0, 5), "R300 R500 | R700 R900 | R100 ");
}

#[test]
fn a_request_that_arrives_ahead_joins_the_batch_only_behind_the_chosen_next() {
    let mut rig = Rig::<Deadline>::new(Config::default());
    rig.queue(0, read(100));
    rig.queue(0, read(500));
    rig.step(0);
    rig.queue(0, read(300)); // between the last one and the remembered successor
    rig.queue(0, read(700));
    assert_eq!(rig.steps(0, 3), "R100 R500 R700 | R300 ", "500 was already chosen to be next");
}

#[test]
fn an_expired_request_starts_the_next_batch_but_does_not_break_one() {
    let mut rig = Rig::<Deadline>::new(Config { fifo_batch: 3, ..Config::default() });
    for start in [500, 100] {
        rig.queue(0, read(start));
    }
    for start in [600, 700, 800] {
        rig.queue(10, read(start));
    }
    assert_eq!(rig.step(10), Some(Reason::NewBatch));
    // 500 ms after it came the deadline of 100 has not passed yet, one later it has: too late for this batch.
    assert_eq!(rig.step(500), Some(Reason::Batch));
    assert_eq!(rig.step(501), Some(Reason::Batch));
    assert_eq!(rig.step(501), Some(Reason::FifoExpired));
    assert_eq!(rig.step(501), Some(Reason::Batch));
    assert_eq!(rig.log, "R500 R600 R700 | R100 R800 ");
}

#[test]
fn a_deadline_passes_after_its_instant_not_at_it() {
    for (ms, why) in [(500, Reason::NewBatch), (501, Reason::FifoExpired)] {
        let mut rig = Rig::<Deadline>::new(Config::default());
        rig.queue(0, read(100));
        assert_eq!(rig.step(ms), Some(why), "at {ms} ms");
    }
}

#[test]
fn writes_wait_for_two_batches_of_reads_and_then_say_why() {
    let mut rig = Rig::<Deadline>::new(Config { fifo_batch: 1, ..Config::default() });
    for i in 0..6 {
        rig.queue(0, read(1000 * i));
        rig.queue(0, write(1000 * i + 500));
    }
    let why: Vec<_> = (0..6).map(|_| rig.step(0).unwrap()).collect();
    let (new, starved) = (Reason::NewBatch, Reason::WritesStarved);
    assert_eq!(why, [new, new, starved, new, new, starved]);
    assert_eq!(rig.log, "R0 | R1000 | W500 | R2000 | R3000 | W1500 ");
}

#[test]
fn batches_of_reads_count_only_while_writes_wait() {
    let mut rig = Rig::<Deadline>::new(Config { fifo_batch: 1, ..Config::default() });
    for i in 0..8 {
        rig.queue(0, read(1000 * i));
    }
    rig.steps(0, 4);
    rig.queue(0, write(50));
    assert_eq!(rig.steps(0, 4), "R4000 | R5000 | W50 | R6000 ");
}

#[test]
fn discards_wait_with_the_writes() {
    let mut rig = Rig::<Deadline>::new(Config::default());
    rig.queue(0, Request { op: Op::Discard, ..write(100) });
    rig.queue(0, read(900));
    rig.queue(0, write(200));
    assert_eq!(rig.steps(0, 3), "R900 | D100 W200 ");
}

//= docs/reference/elevators.md#8-test-vectors vector 4
#[test]
fn the_old_rule_alternates_between_two_streams() {
    // Two clients, each with one request queued at all times: reads of 0, 8, 16, … and of 1000000, 1000008, …
    let interleave = |config| {
        let mut rig = Rig::<Deadline>::new(config);
        rig.queue(0, read(0));
        rig.queue(0, read(1_000_000));
        let (mut near, mut far, mut order) = (8, 1_000_008, String::new());
        for ms in 1..=6 {
            rig.step(ms);
            let served_near = !rig.log.contains("R1000");
            rig.log.clear();
            order.push(if served_near { 'n' } else { 'f' });
            let from = if served_near { &mut near } else { &mut far };
            rig.queue(ms, read(*from));
            *from += 8;
        }
        order
    };
    assert_eq!(interleave(Config::linux_2_6_9()), "nfnfnf");
    assert_eq!(
        interleave(Config::default()),
        "nfnfnf",
        "nothing is contiguous with what waits, in either rule"
    );
}

#[test]
fn the_old_rule_batches_what_is_contiguous_and_stops_at_a_gap() {
    let mut rig =
        Rig::<Deadline>::new(Config { fifo_batch: 4, front_merges: false, ..Config::linux_2_6_9() });
    // The elevator would merge contiguous neighbours; requests of full size stay apart.
    let big = |i: u64| Request::read(TASK, Sector(i * 1024), Sectors(1024));
    for i in [0, 1, 2, 5, 6] {
        rig.queue(0, big(i));
    }
    rig.queue(0, write(9_000_000));
    assert_eq!(rig.steps(0, 3), "R0 R1024 R2048 ", "one batch, though a write waits");
    // At the gap the batch is over, and stays over: 6144 is contiguous with 5120, but the count was never
    // reset.
    assert_eq!(rig.steps(0, 3), "R5120 | W9000000 | R6144 ");
}

#[test]
fn the_old_rule_starts_at_the_lowest_sector_and_chooses_the_direction_each_time() {
    let mut rig = Rig::<Deadline>::new(Config::linux_2_6_9());
    for i in [5, 3, 1, 7] {
        rig.queue(0, read(i * 1000));
        rig.queue(0, write(i * 1000 + 500));
    }
    assert_eq!(
        rig.steps(0, 8),
        "R1000 | R3000 | W1500 | R5000 | R7000 | W3500 | W5500 | W7500 ",
        "two reads for one write, each from its lowest sector"
    );
}

#[test]
fn the_old_rule_honours_deadlines_at_each_choice() {
    let mut rig = Rig::<Deadline>::new(Config::linux_2_6_9());
    rig.queue(0, read(9000));
    for i in 1..4 {
        rig.queue(400, read(1000 * i));
    }
    assert_eq!(rig.step(450), Some(Reason::NewBatch));
    assert_eq!(rig.step(501), Some(Reason::FifoExpired));
    assert_eq!(rig.steps(501, 1), "R1000 | R9000 | R2000 ");
}

#[test]
fn a_front_merge_moves_the_request_and_keeps_its_age() {
    let mut rig = Rig::<Deadline>::new(Config::default());
    let old = rig.queue(0, read(1000));
    rig.queue(1, read(990));
    let (_, answer) = rig.add(2, read(992));
    assert_eq!(answer, Insert::Merged { into: old, end: End::Front });
    assert_eq!(rig.step(501), Some(Reason::FifoExpired));
    assert_eq!(rig.steps(501, 1), "R992 | R990 ");

    let mut rig = Rig::<Deadline>::new(Config { front_merges: false, ..Config::default() });
    rig.queue(0, read(1000));
    rig.queue(0, read(5000));
    assert_eq!(rig.add(0, read(4992)).1, Insert::Queued, "front merges are off");
}

#[test]
fn a_joined_request_hands_on_its_deadline_and_its_turn() {
    let mut rig = Rig::<Deadline>::new(Config::default());
    rig.queue(0, read(116)); // will be swallowed
    rig.queue(5, read(50));
    rig.queue(400, read(100));
    assert!(matches!(rig.add(400, read(108)).1, Insert::Merged { .. }), "closes the gap between 100 and 116");
    assert_eq!(rig.elevator.requests().queued(), 2);
    assert_eq!(rig.step(501), Some(Reason::FifoExpired), "100 has inherited the deadline of 116");
    assert_eq!(rig.log, "R100 ");
}

#[test]
fn the_successor_is_followed_when_the_next_request_is_swallowed() {
    let mut rig = Rig::<Deadline>::new(Config::default());
    rig.queue(0, read(10));
    let next = rig.queue(0, read(100));
    rig.queue(0, read(200));
    rig.step(0);
    assert_eq!(rig.elevator.scheduler().own.next, Some(next));
    rig.queue(0, read(84));
    let _ = rig.add(0, read(92));
    assert_eq!(rig.elevator.requests()[next].state, crate::State::Merged);
    assert_eq!(rig.steps(0, 2), "R10 R200 | R84 ");
}

#[test]
fn a_request_handed_back_goes_first_and_the_batch_goes_on() {
    let mut rig = Rig::<Deadline>::new(Config::default());
    for start in [100, 200, 300] {
        rig.queue(0, read(start));
    }
    let Dispatch::Issue(tag) = rig.elevator.dispatch(ms(0)) else { panic!("nothing issued") };
    rig.elevator.requeue(ms(1), tag);
    rig.elevator.check();
    assert_eq!(rig.step(1), Some(Reason::Requeued));
    assert_eq!(rig.step(1), Some(Reason::Batch));
    assert_eq!(rig.steps(1, 1), "R100 R200 R300 ");
    assert_eq!(rig.step(1), None);
}

#[test]
fn draining_hands_out_everything_once() {
    let mut rig = Rig::<Deadline>::new(Config::default());
    for start in [300, 100, 200] {
        rig.queue(0, write(start));
        rig.queue(0, read(start + 1000));
    }
    let drained: Vec<u64> = core::iter::from_fn(|| {
        let tag = rig.elevator.drain(ms(0))?;
        rig.elevator.check();
        Some(rig.elevator.requests()[tag].rq.start.0)
    })
    .collect();
    assert_eq!(drained, [1100, 1200, 1300, 100, 200, 300]);
}

/// The module's bound for writes, at its worst: reads keep coming, and the deadline has passed.
#[test]
fn a_write_waits_for_no_more_batches_than_documented() {
    let config =
        Config { fifo_batch: 4, writes_starved: 2, write_expire: Duration::ZERO, ..Config::default() };
    let mut rig = Rig::<Deadline>::new(config);
    for i in 0..20 {
        rig.queue(0, read(i * 100));
    }
    rig.step(1);
    rig.queue(1, write(5_000));
    rig.queue(1, write(1_000));
    let bound = |older: u32| (older + 1) * 3 * 4 + 3;
    let mut waited = 0;
    while !rig.log.contains("W1000 ") {
        rig.queue(2, read(10_000 + u64::from(waited) * 100));
        rig.step(2);
        waited += 1;
        assert!(waited <= bound(1), "{}", rig.log);
    }
}
