extern crate std;
use super::*;
use crate::testkit::{Rig, letter, ms};
use crate::{Insert, IoPrio};
use core::fmt::Write as _;
use std::string::String;
use std::vec::Vec;

const RT: Class = Class::RealTime;
const BE: Class = Class::BestEffort;
const IDLE: Class = Class::Idle;

fn read(class: Class, start: u64) -> Request {
    Request { prio: IoPrio::new(class, 4), ..crate::testkit::read(1, start) }
}

fn write(class: Class, start: u64) -> Request {
    Request { op: Op::Write, sync: false, ..read(class, start) }
}

/// A golden log of what is issued: `rt R100`.
impl Rig<MqDeadline> {
    fn queue_all(&mut self, ms: u64, requests: impl IntoIterator<Item = Request>) {
        for rq in requests {
            self.queue(ms, rq);
        }
    }

    /// Issues a request, logs it, and leaves it with the device.
    fn issue_why(&mut self, ms: u64) -> Result<(Tag, Reason), Dispatch> {
        let answer = self.dispatch(ms);
        let Dispatch::Issue(tag) = answer else { return Err(answer) };
        let rq = self.request(tag);
        let class = ["rt", "be", "idle"][rq.prio.class as usize];
        write!(self.log, "{class} {}{}, ", letter(rq.op), rq.start.0).unwrap();
        Ok((tag, self.why().unwrap()))
    }

    /// Issues and completes one after another, and answers the log.
    fn steps(&mut self, ms: u64, n: usize) -> String {
        for _ in 0..n {
            let (tag, _) = self.issue_why(ms).unwrap();
            self.complete(ms, tag);
        }
        core::mem::take(&mut self.log)
    }
}

//= docs/reference/elevators.md#4-mq-deadline step 3
#[test]
fn higher_classes_go_first() {
    let mut rig = Rig::<MqDeadline>::new(Config::default());
    rig.queue_all(0, [read(IDLE, 10), write(BE, 50), read(BE, 60), read(RT, 200), write(RT, 100)]);
    assert_eq!(rig.steps(1, 5), "rt R200, rt W100, be W50, be R60, idle R10, ");
}

#[test]
fn a_lower_class_waits_while_a_higher_one_is_at_the_device() {
    let mut rig = Rig::<MqDeadline>::new(Config::default());
    rig.queue_all(0, [read(RT, 100), read(BE, 50), read(IDLE, 10)]);
    let (rt, _) = rig.issue_why(0).unwrap();
    assert_eq!(rig.issue_why(1), Err(Dispatch::Hold(Hold::HigherClass)));
    rig.complete(2, rt);
    let (be, _) = rig.issue_why(2).unwrap();
    assert_eq!(rig.issue_why(2), Err(Dispatch::Hold(Hold::HigherClass)), "idle waits for best-effort");
    rig.elevator.requeue(ms(3), be);
    assert_eq!(rig.issue_why(3), Ok((be, Reason::Requeued)));
    assert_eq!(rig.issue_why(3), Err(Dispatch::Hold(Hold::HigherClass)), "handed back is not completed");
    rig.complete(4, be);
    rig.issue_why(4).unwrap();
    assert_eq!(rig.issue_why(4), Err(Dispatch::Empty));
    assert_eq!(rig.log, "rt R100, be R50, be R50, idle R10, ");
}

//= docs/reference/elevators.md#4-mq-deadline step 2
#[test]
fn a_request_ages_past_higher_classes() {
    let mut rig = Rig::<MqDeadline>::new(Config::default());
    rig.queue_all(0, [write(BE, 50), write(IDLE, 10)]);
    rig.queue_all(5_000, (1..6).map(|i| read(RT, i * 100)));
    assert_eq!(rig.steps(9_999, 1), "rt R100, ");
    assert_eq!(rig.issue_why(10_000).map(|(_, why)| why), Ok(Reason::Aged), "at its instant");
    assert_eq!(
        rig.steps(10_000, 2),
        "be W50, idle W10, rt R200, ",
        "first best-effort, then idle, then the rest"
    );
}

#[test]
fn nobody_ages_while_one_class_is_alone() {
    let mut rig = Rig::<MqDeadline>::new(Config {
        fifo_batch: 1,
        read_expire: Duration::from_secs(60),
        ..Config::default()
    });
    rig.queue_all(0, [read(BE, 900)]);
    rig.queue_all(1, [read(BE, 100)]);
    assert_eq!(
        rig.steps(20_000, 2),
        "be R100, be R900, ",
        "sector order, though 900 is older than ten seconds"
    );
}

#[test]
fn the_oldest_class_goes_first_among_the_aged() {
    let mut rig = Rig::<MqDeadline>::new(Config::default());
    rig.queue_all(0, [read(IDLE, 10)]);
    rig.queue_all(1_000, [read(BE, 50)]);
    rig.queue_all(2_000, [read(RT, 100)]);
    rig.queue_all(19_000, [read(RT, 200)]);
    assert_eq!(rig.steps(20_000, 4), "idle R10, be R50, rt R100, rt R200, ");
}

#[test]
fn an_old_write_is_not_hidden_by_young_reads_of_its_class() {
    let mut rig = Rig::<MqDeadline>::new(Config::default());
    rig.queue_all(0, [write(BE, 50)]);
    rig.queue_all(9_000, [read(BE, 70), read(RT, 100)]);
    assert_eq!(rig.steps(10_000, 3), "be W50, rt R100, be R70, ");
}

#[test]
fn an_aged_batch_goes_on_in_sector_order() {
    let mut rig = Rig::<MqDeadline>::new(Config::default());
    rig.queue_all(0, [read(BE, 500), read(BE, 900), read(BE, 700)]);
    rig.queue_all(11_000, [read(RT, 100)]);
    assert_eq!(rig.steps(12_000, 4), "be R500, be R700, be R900, rt R100, ");
}

#[test]
fn fresh_batches_of_one_class_do_not_hide_the_oldest_request_of_another() {
    let config = Config { prio_aging_expire: Duration::from_us(1), fifo_batch: 4, ..Config::default() };
    let mut rig = Rig::<MqDeadline>::new(config);
    rig.queue_all(0, [write(RT, 1_000_000)]);
    // Best-effort reads always come behind the position and start a batch, real-time ones ahead of it go on
    // with it.
    for i in 1..=10 {
        rig.queue_all(2 * i, [read(BE, 100_000 - i * 1000)]);
        rig.queue_all(2 * i + 1, [read(RT, i * 1000)]);
        if rig.steps(2 * i + 2, 2).contains("rt W") {
            return;
        }
    }
    panic!("the oldest request of all is not served");
}

#[test]
fn starvation_and_batches_are_shared_between_classes() {
    let mut rig = Rig::<MqDeadline>::new(Config { fifo_batch: 1, ..Config::default() });
    rig.queue_all(0, [read(RT, 100)]);
    rig.steps(0, 1);
    rig.queue_all(0, [read(RT, 200), read(RT, 300), read(BE, 400), write(BE, 10_000)]);
    assert_eq!(rig.steps(0, 2), "rt R200, rt R300, ", "no write waits in their class");
    rig.queue_all(0, [read(BE, 500), read(BE, 600)]);
    assert_eq!(rig.steps(0, 2), "be R400, be R500, ", "two batches of reads pass the write");
    assert_eq!(rig.issue_why(0).map(|(_, why)| why), Ok(Reason::WritesStarved));
    rig.log.clear();

    let mut rig = Rig::<MqDeadline>::new(Config { fifo_batch: 2, ..Config::default() });
    rig.queue_all(0, [read(RT, 100), read(BE, 10), read(BE, 20), read(BE, 30)]);
    let why: Vec<_> = (0..4)
        .map(|_| {
            let (tag, why) = rig.issue_why(0).unwrap();
            rig.complete(0, tag);
            why
        })
        .collect();
    let (batch, new) = (Reason::Batch, Reason::NewBatch);
    assert_eq!(
        why,
        [batch, batch, new, batch],
        "the batch that a real-time read is in continues in best-effort"
    );
}

#[test]
fn a_request_that_arrives_just_ahead_is_taken_along() {
    let mut rig = Rig::<MqDeadline>::new(Config::default());
    rig.queue_all(0, [read(BE, 100), read(BE, 500)]);
    assert_eq!(rig.steps(0, 1), "be R100, ");
    rig.queue_all(0, [read(BE, 300), read(BE, 50)]);
    assert_eq!(rig.steps(0, 3), "be R300, be R500, be R50, ");
}

#[test]
fn deadlines_pass_at_their_instant() {
    for (ms, why) in [(499, Reason::NewBatch), (500, Reason::FifoExpired)] {
        let mut rig = Rig::<MqDeadline>::new(Config { fifo_batch: 0, ..Config::default() });
        rig.queue_all(0, [read(BE, 100)]);
        assert_eq!(rig.issue_why(ms).map(|(_, why)| why), Ok(why), "at {ms} ms");
    }
}

#[test]
fn classes_do_not_merge() {
    let mut rig = Rig::<MqDeadline>::new(Config::default());
    rig.queue_all(0, [read(BE, 100), read(RT, 108), read(IDLE, 92)]);
    assert_eq!(rig.add(0, read(BE, 108)).1, Insert::Merged { into: Tag(0), end: End::Back });
    assert_eq!(rig.add(0, read(BE, 92)).1, Insert::Merged { into: Tag(0), end: End::Front });
    assert_eq!(rig.steps(0, 3), "rt R108, be R92, idle R92, ");
}

#[test]
fn joined_requests_count_once() {
    let mut rig = Rig::<MqDeadline>::new(Config { async_depth: 2, ..Config::default() });
    rig.queue_all(0, [write(BE, 100), write(BE, 116)]);
    assert!(!rig.elevator.has_room(&write(BE, 500)));
    assert!(matches!(rig.add(0, write(BE, 108)).1, Insert::Merged { .. }));
    assert!(rig.elevator.has_room(&write(BE, 500)), "three became one");
    assert_eq!(rig.steps(0, 1), "be W100, ");
    assert_eq!(rig.issue_why(0), Err(Dispatch::Empty));
}

#[test]
fn async_depth_limits_all_but_sync_reads() {
    let mut rig = Rig::<MqDeadline>::new(Config { async_depth: 1, ..Config::default() });
    rig.queue_all(0, [read(BE, 0), write(BE, 100)]);
    let read_ahead = Request { sync: false, ..read(BE, 300) };
    assert!(!rig.elevator.has_room(&write(BE, 200)) && !rig.elevator.has_room(&read_ahead));
    assert!(rig.elevator.has_room(&read(BE, 200)));
    rig.steps(0, 2);
    assert!(rig.elevator.has_room(&write(BE, 200)), "completed");
}

#[test]
fn draining_hands_out_every_class() {
    let mut rig = Rig::<MqDeadline>::new(Config::default());
    rig.queue_all(0, [read(IDLE, 1), write(IDLE, 20), write(BE, 40), read(RT, 60)]);
    let drained: Vec<u64> = core::iter::from_fn(|| {
        let tag = rig.elevator.drain(ms(0))?;
        rig.elevator.check();
        Some(rig.elevator.requests()[tag].rq.start.0)
    })
    .collect();
    assert_eq!(drained, [60, 40, 1, 20]);
}
