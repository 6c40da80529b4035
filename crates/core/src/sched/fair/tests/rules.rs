//! The rules one by one, at instants chosen by hand.

extern crate std;
use super::world::{Controlled, G1, G2, at, limits, weight};
use crate::config::Tunables;
use crate::sched::fair::{Config, Fair, Layer};
use crate::sched::{Scheduler, deadline, noop};
use crate::testkit;
use crate::{
    Class, Control, Duration, GroupId, GroupStats, Hold, Limits, Reason, Request, Sector, Sectors, Tag,
    TaskId,
};
use std::vec::Vec;

pub(super) type Rig = testkit::Rig<Fair<noop::Noop>>;

pub(super) fn rig(layer: Layer) -> Rig {
    rig_with(Limits { trace: 256, ..limits(4) }, layer)
}

pub(super) fn rig_with(limits: Limits, layer: Layer) -> Rig {
    Rig::with(limits, Config { layer, inner: noop::Config::default() })
}

impl Rig {
    /// Inserts a read of a group.
    pub(super) fn read(&mut self, ms: u64, group: GroupId) -> Tag {
        let rq = testkit::read(group.0, self.added() * 1000);
        self.queue(ms, Request { group, ..rq })
    }

    fn serve(&mut self, from: u64, until: u64, tag: Tag) {
        self.issues(from, tag);
        self.complete(until, tag);
    }

    fn stats(&self, group: GroupId) -> GroupStats {
        self.elevator.stats(group)
    }
}

//= docs/reference/groups.md#12-test-vectors vector 7 type=test
#[test]
fn the_time_to_the_first_completion_is_not_charged() {
    let mut rig = rig(Layer::default());
    let tags: Vec<Tag> = (0..3).map(|_| rig.read(0, G1)).collect();
    let other = rig.read(0, G2);
    rig.serve(0, 9, tags[0]);
    rig.serve(9, 109, tags[1]);
    rig.issues(109, other);
    let stats = rig.stats(G1);
    assert_eq!((stats.disk_time, stats.unaccounted_time), (Duration::from_ms(100), Duration::from_ms(9)));
}

#[test]
fn what_a_slice_overran_is_charged_too() {
    let mut rig = rig(Layer::default());
    let tags: Vec<Tag> = (0..4).map(|_| rig.read(0, G1)).collect();
    let other = rig.read(0, G2);
    rig.serve(0, 9, tags[0]);
    rig.serve(9, 108, tags[1]);
    rig.serve(108, 130, tags[2]);
    rig.issues(130, other);
    assert_eq!(rig.stats(G1).disk_time, Duration::from_ms(121));
}

/// Nothing comes for free: a group with one request in a turn pays for it, seek and all.
#[test]
fn a_slice_that_ends_with_its_first_completion_is_charged_from_its_beginning() {
    let mut rig = rig(Layer { group_idle: Duration::ZERO, ..Layer::default() });
    let tag = rig.read(0, G1);
    let other = rig.read(0, G2);
    rig.serve(0, 9, tag);
    rig.issues(9, other);
    assert_eq!(rig.stats(G1).disk_time, Duration::from_ms(9));
}

/// While no other group wants the disk, a group is not charged for time in which it has no requests.
#[test]
fn time_that_nobody_wanted_is_not_charged() {
    let mut rig = rig(Layer::default());
    let tag = rig.read(0, G1);
    rig.serve(0, 10, tag);
    let tag = rig.read(10, G1);
    rig.serve(10, 30, tag);
    let tag = rig.read(10_000, G2);
    rig.issues(10_000, tag);
    assert_eq!(rig.stats(G1).disk_time, Duration::from_ms(20));
}

//= docs/reference/groups.md#12-test-vectors vector 2 type=test
#[test]
fn a_higher_class_takes_the_disk_away_and_keeps_it() {
    let mut rig = rig(Layer::default());
    rig.control(0, Control::SetClass(G2, Class::RealTime));
    let low: Vec<Tag> = (0..3).map(|_| rig.read(0, G1)).collect();
    rig.serve(0, 10, low[0]);
    let high: Vec<Tag> = (0..40).map(|_| rig.read(10, G2)).collect();
    for (i, &tag) in high.iter().enumerate() {
        rig.serve(10 + 10 * i as u64, 20 + 10 * i as u64, tag);
    }
    // It is waited for, as it may come back at once.
    rig.holds(410, Hold::SliceIdle);
    rig.elevator.timer(at(418));
    rig.issues(418, low[1]);
}

#[test]
fn a_group_that_thinks_is_waited_for_and_one_that_thinks_too_long_is_not() {
    let mut rig = rig(Layer::default());
    let other: Vec<Tag> = (0..4).map(|_| rig.read(0, G2)).collect();
    rig.serve(0, 5, other[0]);
    rig.serve(5, 110, other[1]);
    let mut next = rig.read(110, G1);
    for n in 0..4 {
        let now = 110 + 10 * n;
        rig.serve(now, now + 5, next);
        rig.holds(now + 5, Hold::SliceIdle);
        assert_eq!(rig.elevator.next_timer().unwrap().0, at(now + 13));
        next = rig.read(now + 10, G1);
    }
    rig.serve(150, 155, next);
    // Once in vain: the mean is above 8 ms from then on.
    rig.holds(162, Hold::SliceIdle);
    rig.elevator.timer(at(163));
    rig.issues(163, other[2]);
    rig.complete(170, other[2]);
    let events: Vec<Reason> = rig.elevator.drain_trace().map(|e| e.reason).collect();
    assert!(events.contains(&Reason::GroupIdle) && events.contains(&Reason::IdleTimeout));
    assert_eq!(rig.stats(G1).idle_time, Duration::from_ms(4 * 5 + 1));
    assert_eq!(rig.stats(G1).disk_dequeue, 1);
}

#[test]
fn nobody_waits_for_who_has_exited() {
    let mut rig = rig(Layer::default());
    let tag = rig.read(0, G1);
    rig.serve(0, 5, tag);
    let other = rig.read(5, G2);
    rig.holds(6, Hold::SliceIdle);
    rig.control(7, Control::TaskExit(TaskId(G1.0)));
    rig.issues(7, other);
}

#[test]
fn flash_that_queues_is_never_idle_unless_asked_for() {
    for (fairness, waits) in [(0, false), (1, true)] {
        let limits = Limits { rotational: false, queue_depth: 8, ..limits(4) };
        let mut rig = rig_with(limits, Layer { fairness, ..Layer::default() });
        let tag = rig.read(0, G1);
        rig.serve(0, 1, tag);
        let other = rig.read(1, G2);
        if waits { rig.holds(1, Hold::SliceIdle) } else { rig.issues(1, other) }
    }
}

#[test]
fn with_fairness_2_a_slice_begins_when_the_others_are_done() {
    for (fairness, waits) in [(0, false), (2, true)] {
        let limits = Limits { queue_depth: 8, ..limits(4) };
        let mut rig = rig_with(limits, Layer { fairness, group_idle: Duration::ZERO, ..Layer::default() });
        let tag = rig.read(0, G1);
        rig.issues(0, tag);
        let other = rig.read(1, G2);
        if waits {
            rig.holds(1, Hold::DrainBatch);
            rig.complete(5, tag);
        }
        rig.issues(5, other);
    }
}

//= docs/reference/groups.md#12-test-vectors vector 6 type=test
#[test]
fn the_pool_has_room_for_every_group() {
    let limits = Limits { pool: 3, ..limits(4) };
    let mut rig = rig_with(limits, Layer { group_requests: 2, ..Layer::default() });
    let of = |group| Request { group, ..Request::read(TaskId(1), Sector(0), Sectors(8)) };
    let first = rig.read(0, G1);
    rig.read(0, G1);
    assert!(!rig.elevator.has_room(&of(G1)), "the third waits for its group's");
    assert!(rig.elevator.has_room(&of(G2)));
    rig.read(0, G2);
    assert!(!rig.elevator.has_room(&of(G2)), "the second waits for the device's");
    assert!(rig.elevator.has_room(&of(GroupId(3))), "each group has room for one");
    let write = Request { op: crate::Op::Write, sync: false, ..of(G1) };
    assert!(rig.elevator.has_room(&write), "kinds are counted apart");
    rig.serve(0, 1, first);
    assert!(rig.elevator.has_room(&of(G1)));
}

/// A takes all that it can get, then B comes.
#[test]
fn a_flood_leaves_room_for_others() {
    let limits = Limits { pool: 128, ..limits(4) };
    let mut rig = rig_with(limits, Layer::default());
    let of = |group| Request { group, ..Request::read(TaskId(1), Sector(0), Sectors(8)) };
    let take = |rig: &mut Rig, group| {
        let mut tags = Vec::new();
        while rig.elevator.has_room(&of(group)) {
            tags.push(rig.read(0, group));
        }
        tags
    };
    let flood = take(&mut rig, G1);
    let late = take(&mut rig, G2);
    assert_eq!((flood.len(), late.len()), (112, 16));
    for tag in &flood[..48] {
        rig.serve(0, 0, *tag);
        take(&mut rig, G1);
        take(&mut rig, G2);
    }
    assert_eq!(take(&mut rig, G1).len(), 0);
    let held = rig.elevator.scheduler().members[G1].held[1];
    assert!((64..=72).contains(&held), "{held} of 128, with two groups");
}

#[test]
fn both_lists_of_tunables_are_one() {
    type Both = Config<deadline::Config>;
    let names: Vec<&str> = Both::LIST.iter().map(|t| t.name).collect();
    assert_eq!(names.len(), Layer::LIST.len() + deadline::Config::LIST.len());
    let mut both = Both::default();
    both.set("group_slice", 50_000_000).unwrap();
    both.set("fifo_batch", 4).unwrap();
    assert_eq!((both.layer.group_slice, both.inner.fifo_batch), (Duration::from_ms(50), 4));
    assert_eq!((both.get("group_slice"), both.get("fifo_batch")), (Some(50_000_000), Some(4)));
    assert!(both.set("fairness", 3).is_err() && both.set("nothing", 1).is_err());
    assert!(both.validate().is_ok());
    both.layer.fairness = 3;
    assert_eq!(both.validate().unwrap_err().field, "fairness");
    assert!(Controlled::<deadline::Deadline>::new(limits(2), both).is_err());
}

#[test]
fn tunables_change_under_way_but_for_the_engine() {
    let mut rig = rig(Layer::default());
    let tag = rig.read(0, G1);
    rig.issues(0, tag);
    let mut config = Config::<noop::Config>::default();
    config.layer.group_idle = Duration::ZERO;
    assert_eq!(rig.elevator.reconfigure(at(1), config), Ok(true));
    rig.complete(5, tag);
    let other = rig.read(5, G2);
    rig.issues(5, other);
    config.layer.engine = crate::parts::fair_tree::Engine::Wf2q;
    assert_eq!(rig.elevator.reconfigure(at(6), config), Ok(false));
    config.layer.fairness = 7;
    assert!(rig.elevator.reconfigure(at(6), config).is_err());
}

/// A group is removed with a request waiting and one at the device; its number comes back as a group of
/// another.
#[test]
fn a_group_is_removed_and_its_number_comes_back() {
    let mut rig = rig(Layer::default());
    rig.control(0, Control::SetWeight(G1, weight(1000)));
    let tags: Vec<Tag> = (0..2).map(|_| rig.read(0, G1)).collect();
    let other = rig.read(0, G2);
    rig.issues(0, tags[0]);
    rig.control(1, Control::GroupExit(G1));
    assert!(rig.elevator.control(at(1), Control::SetParent(G1, G2)).is_err(), "still has requests");
    rig.complete(5, tags[0]);
    rig.serve(5, 10, tags[1]);
    // No group waits for one that is gone.
    rig.serve(10, 15, other);
    rig.control(15, Control::SetParent(G1, G2));
    let tag = rig.read(16, G1);
    rig.issues(24, tag);
    assert_eq!(rig.elevator.scheduler().tree.parent(G1), Some(G2));
    assert_eq!(<super::super::Fair<noop::Noop> as Scheduler>::NAME, "noop+groups");
}
