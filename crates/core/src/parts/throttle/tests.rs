//! Numbers by hand, and limits drawn at random against a walk through every window of what went.

extern crate std;
use super::*;
use crate::elevator::Control;
use crate::units::{Sector, Sectors, TaskId};
use std::vec;
use std::vec::Vec;

const MS: Duration = Duration::from_ms(1);

struct Rig {
    groups: Groups,
    requests: Requests,
    throttle: Throttle,
    now: Instant,
    next_tag: u16,
    /// When which group's request went, in milliseconds, and how many bytes.
    gone: Vec<(u64, u32, u64)>,
}

const G: [GroupId; 5] = [GroupId(0), GroupId(1), GroupId(2), GroupId(3), GroupId(4)];

impl Rig {
    fn new(parents: &[(usize, usize)]) -> Self {
        let mut groups = Groups::new(5, 0);
        for &(child, parent) in parents {
            groups.control(&Control::SetParent(G[child], G[parent]), &Requests::new(1)).unwrap();
        }
        Self {
            groups,
            requests: Requests::new(1024),
            throttle: Throttle::new(5, 1024, 1024),
            now: Instant::EPOCH,
            next_tag: 0,
            gone: vec![],
        }
    }

    fn limit(&mut self, group: usize, max: Max) {
        self.run(0);
        let old = self.groups.max(G[group]);
        self.groups.control(&Control::SetMax(G[group], max), &self.requests).unwrap();
        self.throttle.change(self.now, &self.groups, G[group], &old);
        self.run(0);
    }

    fn come(&mut self, group: usize, op: Op, sectors: u32) {
        let tag = Tag(self.next_tag);
        self.next_tag += 1;
        let read = Request::read(TaskId(1), Sector(0), Sectors(sectors));
        let rq = Request { op, group: G[group], ..read };
        self.requests.claim(tag, &rq, self.now, self.now);
        self.run(0);
        if self.throttle.admit(self.now, &self.groups, tag, &rq) {
            self.book(tag);
        }
        self.throttle.check(&self.groups);
    }

    fn reads(&mut self, group: usize, count: usize) {
        (0..count).for_each(|_| self.come(group, Op::Read, 8));
    }

    fn book(&mut self, tag: Tag) {
        let rq = &self.requests[tag].rq;
        let ms = self.now.since(Instant::EPOCH).as_us() / 1000;
        self.gone.push((ms, rq.group.0, rq.len.bytes()));
    }

    /// Lets `ms` milliseconds pass, with a look whenever a request is due.
    fn run(&mut self, ms: u64) {
        let end = self.now + MS * ms;
        while let Some(due) = self.throttle.next_due().filter(|&d| d <= end) {
            self.now = self.now.max(due);
            self.look();
        }
        self.now = end;
        self.look();
    }

    fn look(&mut self) {
        while let Some(tag) = self.throttle.pass(self.now, &self.groups, &self.requests) {
            self.book(tag);
        }
        self.throttle.check(&self.groups);
    }

    fn times(&mut self, group: usize) -> Vec<u64> {
        self.gone.iter().filter(|g| g.1 == G[group].0).map(|g| g.0).collect()
    }

    fn count(&self, group: usize, from: u64, to: u64) -> usize {
        self.gone.iter().filter(|g| g.1 == G[group].0 && (from..to).contains(&g.0)).count()
    }
}

fn iops(n: u64) -> Max {
    Max { riops: NonZeroU64::new(n), ..Max::default() }
}

fn with_burst(ms: u64, max: Max) -> Max {
    Max { burst: MS * ms, ..max }
}

#[test]
fn ten_a_second_are_one_each_hundred_milliseconds() {
    let mut rig = Rig::new(&[]);
    rig.limit(1, iops(10));
    rig.reads(1, 3);
    rig.run(350);
    rig.reads(1, 2);
    rig.run(1000);
    // The third could go at 200; at 350 no request had waited since 300, and that is not made up for.
    assert_eq!(rig.times(1), [0, 100, 200, 350, 450]);
}

#[test]
fn a_burst_makes_up_for_unused_time_and_no_more() {
    let mut rig = Rig::new(&[]);
    rig.limit(1, with_burst(200, iops(10)));
    rig.run(5000);
    rig.reads(1, 5);
    rig.run(1000);
    // As if they had been due at 4800, 4900, 5000, 5100, 5200.
    assert_eq!(rig.times(1), [5000, 5000, 5000, 5100, 5200]);
}

#[test]
fn late_looks_lose_nothing() {
    let mut rig = Rig::new(&[]);
    rig.limit(1, iops(1000));
    rig.reads(1, 1000);
    for _ in 0..10 {
        rig.now = rig.now + MS * 95;
        rig.look();
    }
    // 950 ms later 951 have gone, 95 at each look.
    assert_eq!(rig.gone.len(), 951);
    rig.run(49);
    assert_eq!(rig.gone.len(), 1000, "1 ms each, from the first at 0");
}

#[test]
fn fractions_of_nanoseconds_are_not_lost() {
    let mut rig = Rig::new(&[]);
    rig.limit(1, iops(3_000_000));
    rig.reads(1, 1000);
    rig.run(1);
    assert_eq!(rig.gone.len(), 1000);
    // 333 and a third each: a meter that rounds is 333 ns off after 1000.
    assert_eq!(rig.throttle.valves[ValveId::of(G[1], Op::Read)].meters[1].next, (1 << 42) + 333_333);
}

#[test]
fn bytes_and_requests_count_by_direction_and_discards_are_writes() {
    let mut rig = Rig::new(&[]);
    // 512 KB/s: 4096 bytes take 8 ms.
    let max = Max { wbps: NonZeroU64::new(512_000), wiops: NonZeroU64::new(500), ..Max::default() };
    rig.limit(1, max);
    rig.reads(1, 3);
    rig.come(1, Op::Write, 8);
    rig.come(1, Op::Discard, 1);
    (0..3).for_each(|_| rig.come(1, Op::Write, 1));
    rig.run(100);
    // Reads at once. The first write takes 8 ms by bytes, the others 1 ms, but 2 ms by number. That had time
    // to spare meanwhile, of which one request's is kept: so two more come after 1 ms, and then each after 2.
    assert_eq!(rig.times(1), [0, 0, 0, 0, 8, 9, 10, 12]);
}

#[test]
fn the_other_of_two_limits_does_not_add_its_waits() {
    let mut rig = Rig::new(&[]);
    // Large ones take 100 ms by bytes, small ones 1 ms; each takes 10 ms by number.
    let max = Max { rbps: NonZeroU64::new(5_120_000), riops: NonZeroU64::new(100), ..Max::default() };
    rig.limit(1, max);
    for _ in 0..10 {
        rig.come(1, Op::Read, 1000);
        rig.come(1, Op::Read, 10);
    }
    rig.run(1010);
    assert_eq!(rig.gone.len(), 20, "101 ms a pair, 10 pairs: the last small one goes at 1009 at the latest");
    assert!(rig.gone[18].0 >= 909, "nor earlier than the bytes allow");
}

#[test]
fn a_parent_bounds_the_sum_and_its_children_take_turns() {
    let mut rig = Rig::new(&[(2, 1), (3, 1)]);
    rig.limit(1, iops(100));
    rig.limit(2, iops(60));
    rig.reads(2, 100);
    rig.reads(3, 100);
    rig.run(1000);
    let (a, b) = (rig.count(2, 0, 1000), rig.count(3, 0, 1000));
    assert_eq!(a + b, 100);
    assert!((49..=51).contains(&a), "{a} : {b} of two that both want more than 50");
    rig.run(1000);
    assert_eq!(rig.count(2, 1000, 2000) + rig.count(3, 1000, 2000), 100, "both still wait");
}

#[test]
fn a_child_below_its_turn_leaves_the_rest_to_the_others() {
    let mut rig = Rig::new(&[(2, 1), (3, 1)]);
    rig.limit(1, iops(100));
    rig.limit(2, iops(20));
    rig.reads(2, 100);
    rig.reads(3, 200);
    rig.reads(1, 200);
    rig.run(1999);
    assert!((39..=41).contains(&rig.count(2, 0, 2000)), "{}", rig.count(2, 0, 2000));
    assert_eq!(rig.gone.len(), 200);
    let (own, other) = (rig.count(1, 0, 2000), rig.count(3, 0, 2000));
    assert!(own.abs_diff(other) <= 1, "own requests {own} and the other child's {other} take turns");
    // It does not catch up either on what its own limit had kept from it.
    rig.limit(2, Max::default());
    rig.run(300);
    assert!(rig.count(2, 2000, 2300) <= 12, "{}", rig.count(2, 2000, 2300));
}

#[test]
fn turns_are_by_bytes_where_bytes_are_limited_also_through_a_group_without_limit() {
    let mut rig = Rig::new(&[(2, 1), (3, 2), (4, 2)]);
    rig.limit(1, Max { rbps: NonZeroU64::new(10 << 20), ..Max::default() });
    for _ in 0..100 {
        rig.come(3, Op::Read, 2048);
        rig.come(4, Op::Read, 256);
        rig.come(4, Op::Read, 256);
        rig.come(4, Op::Read, 256);
        rig.come(4, Op::Read, 256);
    }
    rig.run(5000);
    let bytes = |g: usize| rig.gone.iter().filter(|x| x.1 == G[g].0).map(|x| x.2).sum::<u64>();
    assert!(bytes(3).abs_diff(bytes(4)) <= 2 << 20, "{} : {}", bytes(3), bytes(4));
}

#[test]
fn children_whose_limits_add_up_to_the_parents_get_them() {
    let mut rig = Rig::new(&[(2, 1), (3, 1)]);
    rig.limit(1, iops(30));
    rig.limit(2, iops(20));
    rig.limit(3, iops(10));
    rig.reads(2, 300);
    rig.reads(3, 300);
    rig.run(10_000);
    assert!((196..=204).contains(&rig.times(2).len()), "{}", rig.times(2).len());
    assert!((98..=102).contains(&rig.times(3).len()), "{}", rig.times(3).len());
}

#[test]
fn lowering_and_lifting_count_at_once() {
    let mut rig = Rig::new(&[]);
    rig.limit(1, iops(10));
    rig.reads(1, 20);
    rig.run(50);
    // 50 ms are left of 100: 500 of 1000.
    rig.limit(1, iops(1));
    rig.run(600);
    rig.limit(1, iops(100));
    // The second went at 550; 900 ms left of 1000 are 9 now.
    rig.run(20);
    assert_eq!(rig.times(1), [0, 550, 659, 669]);
    rig.limit(1, Max::default());
    assert_eq!(rig.gone.len(), 20, "without a limit no request waits");
    assert!(rig.throttle.is_unused());
}

#[test]
fn draining_takes_all_in_the_order_of_each_group() {
    let mut rig = Rig::new(&[(2, 1)]);
    rig.limit(1, iops(1));
    rig.limit(2, iops(2));
    for _ in 0..5 {
        rig.reads(1, 1);
        rig.reads(2, 1);
        rig.come(2, Op::Write, 8);
    }
    let mut taken = vec![];
    while let Some(tag) = rig.throttle.take(&rig.groups, &rig.requests) {
        taken.push(tag);
        rig.throttle.check(&rig.groups);
    }
    assert_eq!((rig.gone.len() + taken.len(), rig.throttle.waiting()), (15, 0));
    for group in [G[1], G[2]] {
        let reads = |t: &&Tag| rig.requests[**t].rq.group == group && rig.requests[**t].rq.op == Op::Read;
        let of: Vec<_> = taken.iter().filter(reads).collect();
        assert!(of.is_sorted(), "{of:?}");
    }
}

#[test]
fn a_group_at_its_limit_leaves_room_for_the_others() {
    let mut rig = Rig::new(&[]);
    rig.limit(1, iops(1));
    let rq = |g: usize| Request { group: G[g], ..Request::read(TaskId(1), Sector(0), Sectors(8)) };
    let mut made = 0;
    while rig.throttle.has_room(rig.now, &rig.groups, &rq(1)) {
        rig.reads(1, 1);
        made += 1;
    }
    assert_eq!(made, 1 + 1024 / 8, "one goes, and an eighth of the requests may wait");
    assert!(rig.throttle.has_room(rig.now, &rig.groups, &rq(2)), "who need not wait has room");
}
