extern crate std;
use super::*;
use crate::parts::wf2q::vt;
use crate::units::Tag;
use std::vec::Vec;

const NOW: Instant = Instant::EPOCH;
const BE: Class = Class::BestEffort;
const fn group(n: u32) -> GroupId {
    GroupId(n)
}

/// Places a leaf and activates it.
fn start(h: &mut Hierarchy<Tag>, tag: Tag, group: GroupId, weight: u32, budget: u32) {
    h.place(tag, group, BE, weight);
    h.set_budget(tag, budget);
    h.activate(NOW, tag, false);
    h.check();
}

/// Serves the next leaf its whole budget, in pieces of 8 sectors; it has more to do.
fn slot(h: &mut Hierarchy<Tag>, now: Instant) -> Tag {
    slot_at(h, now).1
}

/// Selects the next task and returns it with the root's virtual time at the start of the slot.
fn slot_at(h: &mut Hierarchy<Tag>, now: Instant) -> (u64, Tag) {
    let tag = h.select(now).expect("a task waits");
    let vtime = h.vtime(GroupId::ROOT, BE);
    h.check();
    for _ in 0..h.budget(tag) / 8 {
        h.served(tag, 8);
    }
    h.expire_requeue(now, tag);
    h.reset_service();
    h.set_service(tag, 0);
    h.check();
    (vtime, tag)
}

/// The order and the times that docs/reference/bfq.md#86-test-vectors lists for three backlogged queues.
#[test]
fn serves_in_the_specified_order() {
    let mut h = Hierarchy::<Tag>::new(3, 1);
    for (i, (weight, budget)) in [(10, 64), (20, 64), (40, 128)].into_iter().enumerate() {
        start(&mut h, Tag::from_index(i), GroupId::ROOT, weight, budget);
    }
    let mut slots = Vec::new();
    for _ in 0..12 {
        let next = h.best(GroupId::ROOT).expect("three wait");
        let (start, finish) = h.times(Tag::from_index(next.index()));
        let (vtime, tag) = slot_at(&mut h, NOW);
        slots.push((['a', 'b', 'c'][tag.index()], start, finish, vtime));
    }
    let want = [
        ('b', 0, 13_421_772, 0),
        ('c', 0, 13_421_772, 3_834_792),
        ('a', 0, 26_843_545, 11_504_376),
        ('b', 13_421_772, 26_843_544, 15_339_168),
        ('c', 13_421_772, 26_843_544, 19_173_960),
        ('b', 26_843_544, 40_265_316, 26_843_544),
        ('c', 26_843_544, 40_265_316, 30_678_336),
        ('a', 26_843_545, 53_687_090, 38_347_920),
        ('b', 40_265_316, 53_687_088, 42_182_712),
        ('c', 40_265_316, 53_687_088, 46_017_504),
        ('b', 53_687_088, 67_108_860, 53_687_088),
        ('c', 53_687_088, 67_108_860, 57_521_880),
    ];
    assert_eq!(slots, want);
}

#[test]
fn groups_share_before_their_children_do() {
    let mut h = Hierarchy::<Tag>::new(4, 3);
    h.set_parent(group(2), group(1));
    h.set_group_weight(group(1), 30);
    start(&mut h, Tag(0), GroupId::ROOT, 10, 16);
    start(&mut h, Tag(1), group(1), 70, 16);
    start(&mut h, Tag(2), group(2), 10, 16);
    start(&mut h, Tag(3), group(2), 30, 16);
    h.set_group_weight(group(2), 70);
    let mut slots = [0_u32; 4];
    for _ in 0..8000 {
        slots[slot(&mut h, NOW).index()] += 1;
    }
    // The root 1:3. In group 1, 7:10 until the weight of group 2 is applied, then 7:7. In group 2, 1:3.
    for (got, want) in slots.into_iter().zip([2000_u32, 3000, 750, 2250]) {
        assert!(want.abs_diff(got) <= 12, "{slots:?}");
    }
    assert_eq!((h.group_weight(group(2)), h.parent(group(2))), (70, Some(group(1))));
    assert_eq!([0, 1, 2, 3].map(|leaf| h.part(Tag(leaf), 4000)), [1000, 3000, 1500, 1500], "by groups");
}

#[test]
fn classes_go_in_order_but_idle_has_its_turn() {
    let mut h = Hierarchy::<Tag>::new(3, 1);
    for (i, class) in CLASSES.into_iter().enumerate() {
        h.place(Tag::from_index(i), GroupId::ROOT, class, 10);
        h.set_budget(Tag::from_index(i), 8);
        h.activate(NOW, Tag::from_index(i), false);
    }
    let turns: Vec<u64> =
        (0..1000).filter(|&ms| slot(&mut h, NOW + Duration::from_ms(ms)) == Tag(2)).collect();
    assert_eq!(turns, [201, 402, 603, 804], "more than 200 ms from turn to turn");
    h.deactivate(NOW, Tag(0), true, false);
    assert_eq!(slot(&mut h, NOW), Tag(1));
}

#[test]
fn who_stops_early_pays_for_what_it_was_given() {
    let mut h = Hierarchy::<Tag>::new(2, 1);
    start(&mut h, Tag(0), GroupId::ROOT, 10, 800);
    start(&mut h, Tag(1), GroupId::ROOT, 10, 900);
    assert_eq!(h.select(NOW), Some(Tag(0)));
    h.served(Tag(0), 100);
    h.deactivate(NOW, Tag(0), true, true);
    h.reset_service();
    h.check();
    assert_eq!(h.times(Tag(0)), (0, vt(100, 10)));
    assert!(h.is_attached(Tag(0)) && !h.is_active(Tag(0)), "it is ahead of its share");
    assert_eq!(h.total_weight(GroupId::ROOT, BE), 20);
    assert_eq!(h.service(Tag(0)), 100, "the caller's to clear");
    h.set_service(Tag(0), 0);
    // Back at once: it resumes at its finish.
    h.activate(NOW, Tag(0), false);
    assert_eq!(h.times(Tag(0)).0, vt(100, 10));
    h.deactivate(NOW, Tag(0), true, false);
    // When the other has had as much, it is forgotten.
    assert_eq!(h.select(NOW), Some(Tag(1)));
    h.served(Tag(1), 100);
    assert!(!h.is_attached(Tag(0)));
    h.check();
}

#[test]
fn weights_wait_for_the_next_filing() {
    let mut h = Hierarchy::<Tag>::new(1, 1);
    start(&mut h, Tag(0), GroupId::ROOT, 40, 64);
    h.set_weight(Tag(0), Class::RealTime, 80);
    h.set_raise(Tag(0), 30);
    assert_eq!((h.weight(Tag(0)), h.class(Tag(0)), h.raise(Tag(0))), (40, BE, 30));
    h.apply_weight(Tag(0));
    h.check();
    assert_eq!((h.weight(Tag(0)), h.base_weight(Tag(0)), h.class(Tag(0))), (2400, 80, BE));
    assert_eq!(h.total_weight(GroupId::ROOT, BE), 2400);
    h.requeue(NOW, Tag(0));
    h.check();
    assert_eq!(h.class(Tag(0)), Class::RealTime, "a class changes with the tree");
    assert_eq!(h.total_weight(GroupId::ROOT, BE), 0);
    assert_eq!(h.total_weight(GroupId::ROOT, Class::RealTime), 2400);
}

#[test]
fn a_group_with_nobody_waiting_is_not_next() {
    let mut h = Hierarchy::<Tag>::new(3, 3);
    h.set_parent(group(2), group(1));
    start(&mut h, Tag(0), group(2), 10, 64);
    start(&mut h, Tag(1), group(2), 10, 64);
    start(&mut h, Tag(2), GroupId::ROOT, 100, 6400);
    assert_eq!(h.select(NOW), Some(Tag(0)));
    h.check();
    assert!(!h.may_preempt(), "group 1 is in service and would be next, for its other leaf");
    h.deactivate(NOW, Tag(1), true, false);
    h.check();
    assert!(h.may_preempt(), "the root's leaf would be next");
    h.deactivate(NOW, Tag(0), true, true);
    h.reset_service();
    h.check();
    assert_eq!(h.select(NOW), Some(Tag(2)));
    assert_eq!(h.group_times(group(1)).0, 0);
}

#[test]
fn a_group_that_is_idle_can_be_moved() {
    let mut h = Hierarchy::<Tag>::new(2, 3);
    start(&mut h, Tag(0), group(1), 10, 64);
    start(&mut h, Tag(1), GroupId::ROOT, 10, 64);
    assert_eq!(h.select(NOW), Some(Tag(0)), "its group weighs more");
    h.served(Tag(0), 64);
    h.deactivate(NOW, Tag(0), true, true);
    h.reset_service();
    assert_eq!((h.total_weight(group(1), BE), h.total_weight(GroupId::ROOT, BE)), (0, 110));
    h.detach_group(group(1));
    h.check();
    assert_eq!(h.total_weight(GroupId::ROOT, BE), 10);
    h.set_parent(group(1), group(2));
    h.activate(NOW, Tag(0), false);
    h.check();
    assert_eq!(h.total_weight(group(2), BE), 100);
}

#[test]
fn weights_compare_between_siblings() {
    let mut h = Hierarchy::<Tag>::new(4, 3);
    h.place(Tag(0), GroupId::ROOT, BE, 50);
    h.place(Tag(1), group(1), BE, 10);
    h.place(Tag(2), group(1), BE, 80);
    h.place(Tag(3), group(2), Class::RealTime, 1);
    assert!(h.outweighs(Tag(1), Tag(0)), "its group weighs 100");
    assert!(h.outweighs(Tag(2), Tag(1)) && !h.outweighs(Tag(1), Tag(2)));
    assert!(h.outweighs(Tag(3), Tag(2)) && !h.outweighs(Tag(2), Tag(3)));
}
