extern crate std;
use super::*;
use crate::testkit::{self, us as at};
use crate::{Elevator, Insert, Sector, Sectors, TaskId};
use std::string::{String, ToString};
use std::vec::Vec;

fn request(op: Op, start: u64) -> Request {
    Request { op, sync: op == Op::Read, ..Request::read(TaskId(1), Sector(start), Sectors(8)) }
}

type Rig = testkit::Rig<Kyber>;

fn rig() -> Rig {
    Rig::with(Limits { tags: 2048, queue_depth: 1024, trace: 8, ..Limits::default() }, Config::default())
}

/// With times in microseconds.
impl Rig {
    /// Queues a request that merges with none.
    fn queue_op(&mut self, us: u64, op: Op) -> Tag {
        let start = 100 * self.added();
        self.queue(at(us), request(op, start))
    }

    fn queue_many(&mut self, n: usize, op: Op) {
        for _ in 0..n {
            self.queue_op(0, op);
        }
    }

    fn try_issue(&mut self, us: u64) -> Option<Tag> {
        match self.dispatch(at(us)) {
            Dispatch::Issue(tag) => Some(tag),
            Dispatch::Hold(why) => {
                assert_eq!(why, Hold::Depth);
                None
            }
            Dispatch::Empty => None,
        }
    }

    /// The kinds of the next `n` requests, by letter.
    fn kinds(&mut self, us: u64, n: usize) -> String {
        (0..n)
            .map(|_| {
                let tag = self.issue(at(us));
                testkit::letter(self.request(tag).op).to_ascii_lowercase()
            })
            .collect()
    }

    /// `n` requests, one after another from `us` on, each `latency_us` in the device and nowhere else.
    fn serve(&mut self, us: u64, op: Op, n: u64, latency_us: u64) -> u64 {
        let mut now = us;
        for _ in 0..n {
            let tag = self.queue_op(now, op);
            self.issues(at(now), tag);
            now += latency_us;
            self.complete(at(now), tag);
        }
        now
    }

    fn depth(&self, domain: Domain) -> u32 {
        self.elevator.scheduler().lanes[domain as usize].depth
    }
}

#[test]
fn domains_take_turns_in_batches() {
    let mut rig = rig();
    for op in [Op::Read, Op::Write, Op::Discard] {
        rig.queue_many(40, op);
    }
    let turn = ["r".repeat(16), "w".repeat(8), "d".to_string()].concat();
    assert_eq!(rig.kinds(0, 50), turn.repeat(2));
}

#[test]
fn a_domain_alone_keeps_its_turn() {
    let mut rig = rig();
    rig.queue_many(40, Op::Write);
    assert_eq!(rig.kinds(0, 40), "w".repeat(40));
    assert_eq!(rig.try_issue(0), None);
}

#[test]
fn tokens_limit_what_is_at_the_device() {
    let mut rig = rig();
    rig.queue_many(70, Op::Discard);
    let issued: Vec<Tag> = core::iter::from_fn(|| rig.try_issue(0)).collect();
    assert_eq!(issued.len(), 64, "a discard holds one of 64 tokens");
    assert_eq!(rig.elevator.dispatch(at(0)), Dispatch::Hold(Hold::Depth));
    rig.queue_op(0, Op::Read);
    assert_eq!(rig.kinds(0, 1), "r", "other domains have their own");
    rig.complete(at(1), issued[0]);
    assert_eq!(rig.kinds(1, 1), "d");
    rig.elevator.requeue(at(2), issued[1]);
    rig.elevator.check();
    assert_eq!(rig.try_issue(2), Some(issued[1]), "handed back, it still has its token");
    assert_eq!(rig.try_issue(2), None);
}

//= docs/reference/elevators.md#8-test-vectors vector 9
#[test]
fn a_congested_device_rescales_the_domains_by_their_99th_percentile() {
    let mut rig = rig();
    // Reads far beyond their target of 2 ms make the device congested; writes take less than half of their 10
    // ms.
    let now = rig.serve(0, Op::Write, 500, 4_000);
    let now = rig.serve(now, Op::Read, 500, 20_000);
    rig.timer(at(now));
    assert_eq!(rig.depth(Domain::Write), 128 * 2 / 4, "bucket 1");
    assert_eq!(rig.depth(Domain::Read), 256, "bucket 7: more, but no more than there are");

    let mut lane = Lane::new(Domain::Write);
    for _ in 0..500 {
        lane.total.add(Duration::from_ms(14), Duration::from_ms(10));
    }
    lane.resize(Domain::Write, at(0), true);
    assert_eq!(lane.depth, 128, "bucket 5: 192, capped");
}

#[test]
fn a_domain_that_misses_its_target_gets_more_tokens_even_on_an_idle_device() {
    let mut lane = Lane { depth: 40, ..Lane::new(Domain::Read) };
    let mut misses_by = |ms: u64, congested| {
        for _ in 0..500 {
            lane.total.add(Duration::from_ms(ms), Duration::from_ms(2));
        }
        lane.resize(Domain::Read, at(0), congested);
        lane.depth
    };
    assert_eq!(misses_by(3, false), 40 * 6 / 4, "bucket 5");
    assert_eq!(misses_by(2, false), 60, "bucket 3 is good, and the device is not congested");
    assert_eq!(misses_by(1, true), 60 * 2 / 4, "bucket 1");
    for _ in 0..8 {
        misses_by(0, true);
    }
    assert_eq!(misses_by(0, true), 1, "at least one");
}

#[test]
fn few_samples_count_after_a_second() {
    let mut histogram = Histogram::default();
    let target = Duration::from_ms(2);
    assert_eq!(histogram.percentile(at(0), 99), None, "nothing to say");
    histogram.add(Duration::from_ms(1), target);
    assert_eq!(
        histogram.percentile(at(5_000_000), 99),
        None,
        "the second begins when they are first looked at"
    );
    assert_eq!(histogram.percentile(at(5_999_999), 99), None);
    assert_eq!(histogram.percentile(at(6_000_000), 99), Some(1));
    assert_eq!(histogram.percentile(at(7_000_000), 99), None, "each sample counts once");
    (0..500).for_each(|_| histogram.add(Duration::from_ms(3), target));
    assert_eq!(histogram.percentile(at(7_000_000), 99), Some(5), "500 need not wait");
}

#[test]
fn a_window_ends_100_ms_after_its_first_completion() {
    let mut rig = rig();
    rig.serve(0, Op::Read, 3, 9_000);
    assert_eq!(rig.elevator.next_timer(), Some((at(109_000), Timer::Window)));
    rig.timer(at(109_000));
    assert_eq!(rig.elevator.next_timer(), None, "no window without completions");
    rig.serve(200_000, Op::Read, 1, 1_000);
    assert_eq!(rig.elevator.next_timer(), Some((at(301_000), Timer::Window)));
}

#[test]
fn a_percentile_is_remembered_for_one_congested_window() {
    let mut lane = Lane::new(Domain::Write);
    for _ in 0..500 {
        lane.total.add(Duration::from_ms(1), Duration::from_ms(10));
    }
    lane.resize(Domain::Write, at(0), false);
    assert_eq!((lane.depth, lane.remembered), (128, Some(0)));
    lane.resize(Domain::Write, at(0), true);
    assert_eq!((lane.depth, lane.remembered), (32, None), "128 × 1 / 4, by the remembered one");
    lane.resize(Domain::Write, at(0), true);
    assert_eq!(lane.depth, 32, "only once");
}

#[test]
fn buckets_are_quarters_of_the_target() {
    let mut histogram = Histogram::default();
    for us in [0, 1, 500, 501, 1000, 2000, 2001, 3500, 3501, 1_000_000] {
        histogram.add(Duration::from_us(us), Duration::from_ms(2));
    }
    assert_eq!(histogram.buckets, [3, 2, 0, 1, 1, 0, 1, 2]);
}

#[test]
fn spurious_timers_change_nothing() {
    let mut rig = rig();
    rig.serve(0, Op::Read, 600, 100);
    let before = rig.elevator.next_timer();
    rig.timer(at(60_000));
    assert_eq!(rig.elevator.next_timer(), before);
    assert_eq!(rig.elevator.scheduler().lanes[0].total.samples, 600);
}

#[test]
fn async_requests_may_use_three_quarters_of_the_tags() {
    let limits = Limits { tags: 8, ..Limits::default() };
    let mut elevator = Elevator::<Kyber>::new(limits, Config::default()).unwrap();
    for i in 0..6 {
        assert!(elevator.has_room(&request(Op::Write, 0)));
        let _ = elevator.insert(at(0), Tag(i), request(Op::Write, u64::from(i) * 100));
    }
    assert!(!elevator.has_room(&request(Op::Write, 0)) && elevator.has_room(&request(Op::Read, 0)));
}

#[test]
fn a_percentile_is_the_bucket_up_to_which_the_samples_add_up() {
    let percentile = |percent| {
        let mut histogram = Histogram::default();
        for us in [5, 5, 5, 5, 15, 15, 15, 15, 25, 25, 25, 25] {
            histogram.add(Duration::from_us(us), Duration::from_us(40));
        }
        assert_eq!(histogram.percentile(at(0), percent), None, "12 samples are few, for a second");
        let bucket = histogram.percentile(at(1_000_000), percent);
        assert_eq!(histogram.samples, 0, "it starts anew");
        bucket
    };
    // Four samples in each of the first three buckets: a third of them is not above the first.
    assert_eq!([1, 33, 34, 66, 67, 100].map(percentile), [0, 0, 1, 1, 2, 2].map(Some));
}

#[test]
fn of_two_that_join_and_came_together_the_first_keeps_its_place() {
    for (first, then) in [(0, 0), (0, 1)] {
        let mut elevator = rig().elevator;
        let mut insert = |us, tag, start| elevator.insert(at(us), Tag(tag), request(Op::Read, start));
        assert_eq!(insert(first, 0, 1000), Insert::Queued);
        assert_eq!(insert(then, 1, 5000), Insert::Queued);
        assert_eq!(insert(then, 2, 1016), Insert::Queued);
        assert!(matches!(insert(then, 3, 1008), Insert::Merged { into: Tag(0), .. }));
        assert_eq!(elevator.requests()[Tag(0)].rq.len, Sectors(24), "all three are one");
        assert_eq!(elevator.dispatch(at(2)), Dispatch::Issue(Tag(0)));
        assert_eq!(elevator.dispatch(at(2)), Dispatch::Issue(Tag(1)));
    }
}

#[test]
fn a_run_is_wanted_while_requests_wait_and_not_for_those_at_the_device() {
    let mut rig = rig();
    assert!(!rig.elevator.wants_run(), "nothing waits");
    let tag = rig.queue_op(0, Op::Read);
    assert!(rig.elevator.wants_run());
    rig.issues(at(0), tag);
    assert!(!rig.elevator.wants_run(), "the only one is at the device");
}
