//! What comes from outside: classes, groups, tasks that end.

use super::*;

fn weight(n: u16) -> Weight {
    Weight(NonZeroU16::new(n).unwrap())
}

#[test]
//= docs/reference/bfq.md#712-priority-changes type=test
fn a_new_priority_counts_from_the_next_insertion_on() {
    let mut rig = two_readers(plain());
    rig.control(Control::SetPrio(TaskId(2), IoPrio::new(Class::BestEffort, 0)));
    assert_eq!(rig.weight(2), 40);
    rig.insert(read(2, 9_000_900));
    assert_eq!(rig.weight(2), 40, "it is on a tree");
    rig.drain_issued();
    rig.pass(ms(100));
    rig.insert(read(2, 9_001_000));
    assert_eq!(rig.weight(2), 80);
    // What a request carries that it did not carry before is right, too.
    rig.drain();
    rig.pass(ms(100));
    rig.insert(of_level(read(2, 9_002_000), Class::Idle, 3));
    assert_eq!((rig.weight(2), rig.bfq.class(rig.of(2))), (10, Class::Idle));
    rig.drain();
}

#[test]
fn async_requests_of_another_priority_go_to_another_queue() {
    let mut rig = Rig::new(plain());
    rig.insert(write(1, 1000));
    rig.insert(write(2, 2000));
    let shared = rig.asyn(1);
    assert_eq!(rig.asyn(2), shared);
    rig.insert(of_level(write(2, 3000), Class::BestEffort, 0));
    assert_ne!(rig.asyn(2), shared);
    rig.drain();
    rig.exit(1);
    rig.exit(2);
    rig.pass(ms(10));
    assert_eq!(rig.in_use(), 1, "no task uses them any more");
}

#[test]
//= docs/reference/bfq.md#711-group-changes type=test
fn a_queue_changes_its_group_whatever_it_is_doing() {
    for state in 0..5 {
        let mut rig = two_readers(plain());
        match state {
            0 => {}
            1 => {
                let q = rig.of(1);
                assert_eq!(rig.bfq.in_service, Some(q));
                rig.cx(|bfq, cx| bfq.expire(cx, Expire::BudgetTimeout));
            }
            2 => rig.drain_issued(),
            3 => {
                rig.drain_issued();
                rig.pass(ms(30));
            }
            _ => {
                rig.drain_issued();
                rig.pass(ms(3000));
            }
        }
        rig.insert(in_group(read(1, 500_000), 2));
        assert_eq!(rig.bfq.group_of(rig.of(1)), GroupId(2), "{state}");
        rig.insert(in_group(read(2, 600_000), 3));
        rig.drain_issued();
        assert_eq!(rig.bfq.groups[GroupId(2)].allocated, 0);
    }
}

#[test]
//= docs/reference/bfq.md#711-group-changes type=test
fn a_group_that_goes_leaves_its_queues_to_the_group_above() {
    let mut rig = Rig::new(plain());
    rig.control(Control::SetParent(GroupId(2), GroupId(1)));
    rig.control(Control::SetWeight(GroupId(2), weight(5000)));
    for i in 0..3 {
        rig.insert(in_group(read(1, 1000 + 8 * i), 2));
        rig.insert(in_group(write(1, 90_000 + 8 * i), 2));
        rig.insert(in_group(read(2, 900_000 + 8 * i), 2));
    }
    let (tag, _) = rig.issue();
    assert_eq!(rig.bfq.hierarchy.group_weight(GroupId(2)), 1000, "no group weighs more");
    assert_eq!(rig.bfq.groups[GroupId(1)].allocated, 9, "with what is inside");
    rig.control(Control::GroupExit(GroupId(2)));
    assert_eq!(rig.bfq.group_of(rig.of(1)), GroupId(1));
    assert_eq!(rig.bfq.groups[GroupId(1)].allocated, 9);
    rig.control(Control::GroupExit(GroupId(1)));
    assert_eq!(rig.bfq.group_of(rig.of(1)), GroupId::ROOT);
    assert_eq!(rig.bfq.groups[GroupId(1)].allocated, 0);
    rig.complete(tag);
    rig.drain();
    // Its number comes back, elsewhere.
    rig.control(Control::SetParent(GroupId(2), GroupId(3)));
    rig.insert(in_group(read(1, 2000), 2));
    assert_eq!(rig.bfq.group_of(rig.of(1)), GroupId(2));
    assert_eq!(rig.bfq.hierarchy.parent(GroupId(2)), Some(GroupId(3)));
    rig.drain();
}

#[test]
fn a_group_whose_queue_is_awaited_or_known_can_have_another_parent() {
    for idles in [true, false] {
        let mut rig = Rig::new(plain());
        rig.control(Control::SetParent(GroupId(2), GroupId(1)));
        rig.insert(in_group(read(1, 1000), 2));
        let (tag, _) = rig.issue();
        rig.complete(tag);
        assert_eq!(rig.bfq.in_service, Some(rig.of(1)), "it is awaited");
        if !idles {
            rig.pass(ms(3000));
        }
        rig.control(Control::SetParent(GroupId(1), GroupId(3)));
        assert_eq!(rig.bfq.in_service, None);
        rig.insert(in_group(read(1, 1008), 2));
        rig.insert(in_group(read(2, 9000), 3));
        rig.drain();
        assert_eq!(rig.bfq.hierarchy.parent(GroupId(1)), Some(GroupId(3)));
    }
}

/// A task that goes to a group takes its queue along, and what waits in there: that is not the group's,
/// which may have no requests of its own and go elsewhere.
#[test]
fn a_group_whose_queue_has_requests_of_another_can_have_another_parent() {
    for state in 0..4 {
        let mut rig = Rig::new(plain());
        rig.control(Control::SetParent(GroupId(2), GroupId(1)));
        rig.insert(read(1, 1000));
        rig.issue();
        for i in 0..2 {
            rig.insert(read(1, 900_000 + 8 * i));
        }
        let own = rig.insert(in_group(read(1, 1008), 2));
        assert_eq!(rig.issue().0, own);
        rig.complete(own);
        assert_eq!(rig.bfq.in_service, Some(rig.of(1)));
        if state >= 2 {
            rig.issue();
            rig.issue();
        }
        if state % 2 == 1 {
            rig.cx(|bfq, cx| bfq.expire(cx, Expire::BudgetTimeout));
        }
        rig.control(Control::SetParent(GroupId(1), GroupId(3)));
        assert_eq!(rig.bfq.group_of(rig.of(1)), GroupId(2));
        assert_eq!([1, 2, 3].map(|g| rig.bfq.groups[GroupId(g)].allocated), [3, 3, 3], "{state}");
        rig.control(Control::SetParent(GroupId(2), GroupId::ROOT));
        assert_eq!([1, 2, 3].map(|g| rig.bfq.groups[GroupId(g)].allocated), [0, 3, 0], "{state}");
        rig.drain_issued();
        assert_eq!(rig.bfq.groups[GroupId(2)].allocated, 0, "{state}");
    }
}

/// A limit may have kept the request back until its group was gone.
#[test]
fn a_request_that_comes_after_its_group_has_gone_is_of_the_group_above() {
    for parent in [GroupId::ROOT, GroupId(3)] {
        let mut rig = Rig::new(plain());
        rig.control(Control::SetParent(GroupId(2), GroupId(1)));
        rig.control(Control::GroupExit(GroupId(2)));
        let late = rig.insert(in_group(read(1, 1000), 2));
        assert_eq!(rig.bfq.group_of(rig.of(1)), GroupId(1));
        rig.control(Control::GroupExit(GroupId(1)));
        rig.insert(in_group(write(1, 90_000), 2));
        assert_eq!([rig.of(1), rig.asyn(1)].map(|q| rig.bfq.group_of(q)), [GroupId::ROOT; 2]);
        rig.finish(late);
        // The number comes back: the new group has nothing of the old one.
        rig.control(Control::SetParent(GroupId(1), parent));
        assert_eq!(rig.bfq.in_service, Some(rig.of(1)), "still awaited");
        rig.drain();
    }
}

#[test]
fn books_of_groups_count_slots_idling_and_lost_places() {
    use crate::elevator::Elevator;
    let limits = Limits { groups: 3, ..Limits::default() };
    let mut e = Elevator::<Bfq>::new(limits, plain()).unwrap();
    let at = |n| Instant::EPOCH + ms(n);
    let go = |e: &mut Elevator<Bfq>, n, tag| assert_eq!(e.dispatch(at(n)), Dispatch::Issue(Tag(tag)));
    let _ = e.insert(at(0), Tag(0), in_group(read(1, 1000), 1));
    go(&mut e, 0, 0);
    assert_eq!(e.complete(at(5), Tag(0)).count(), 1);
    // Awaited from 5 to 8, and from 12 to 20, in vain.
    let _ = e.insert(at(8), Tag(0), in_group(read(1, 1008), 1));
    go(&mut e, 8, 0);
    assert_eq!(e.complete(at(12), Tag(0)).count(), 1);
    e.timer(at(20));
    let one = e.stats(GroupId(1));
    assert_eq!([one.disk_time, one.idle_time, one.empty_time], [ms(20), ms(11), ms(0)]);
    assert_eq!((one.disk_dequeue, one.queue_size_samples, one.queue_size_sum), (0, 1, 1));
    // The other group comes at 31, and waits until no task waits for the first any more, at 43.
    let _ = e.insert(at(30), Tag(0), in_group(read(1, 1016), 1));
    go(&mut e, 30, 0);
    let _ = e.insert(at(31), Tag(1), in_group(read(2, 900_000), 2));
    assert_eq!(e.complete(at(35), Tag(0)).count(), 1);
    e.timer(at(43));
    go(&mut e, 43, 1);
    let (one, two) = (e.stats(GroupId(1)), e.stats(GroupId(2)));
    assert_eq!([one.disk_time, one.idle_time, one.empty_time], [ms(33), ms(19), ms(10)]);
    assert_eq!([two.disk_time, two.group_wait_time], [ms(0), ms(12)]);
    assert_eq!((one.disk_dequeue, two.disk_dequeue), (1, 0));
    assert_eq!(e.complete(at(50), Tag(1)).count(), 1);
    e.control(at(51), Control::TaskExit(TaskId(2))).unwrap();
    assert_eq!(e.stats(GroupId(2)).disk_time, ms(8));
}

#[test]
fn without_hierarchy_all_is_the_root() {
    let mut rig = Rig::new(Config { hierarchy: false, ..plain() });
    rig.insert(in_group(read(1, 1000), 3));
    rig.insert(in_group(read(2, 9000), 700));
    rig.control(Control::SetWeight(GroupId(3), weight(7)));
    rig.control(Control::GroupExit(GroupId(3)));
    assert_eq!(rig.bfq.group_of(rig.of(2)), GroupId::ROOT);
    rig.drain();
}

#[test]
//= docs/reference/bfq.md#311-request-pool-saturation type=test
fn a_part_of_the_tags_is_for_tasks_that_wait() {
    let limits = Limits { tags: 160, groups: 4, ..Limits::default() };
    let mut rig = Rig::with(limits, plain());
    let sync_write = |task, start| Request { sync: true, ..write(task, start) };
    let mut admitted = [0; 2];
    while rig.bfq.has_room(&write(1, 7)) {
        rig.insert(write(1, 1000 * admitted[0]));
        admitted[0] += 1;
    }
    while rig.bfq.has_room(&sync_write(2, 7)) {
        rig.insert(sync_write(2, (1 << 30) + 1000 * admitted[1]));
        admitted[1] += 1;
    }
    assert_eq!(admitted, [80, 40], "half for async ones, three quarters for all writes");
    assert!(rig.bfq.has_room(&read(3, 7)));
    let off = Rig::with(limits, Config { pool_limits: false, ..plain() });
    assert!(off.bfq.has_room(&write(1, 7)));
}

#[test]
//= docs/reference/bfq.md#311-request-pool-saturation type=test
fn a_writer_whose_share_is_used_up_waits_for_all_of_its_writes() {
    let limits = Limits { tags: 160, ..Limits::default() };
    let mut rig = Rig::with(limits, plain());
    assert_eq!(rig.bfq.depth_for(&write(1, 7)), 80);
    rig.insert(read(2, 1 << 30));
    let mut admitted = 0;
    while rig.bfq.has_room(&write(1, 7)) {
        rig.insert(write(1, 1000 * admitted));
        admitted += 1;
    }
    assert_eq!((admitted, rig.bfq.depth_for(&write(1, 7))), (40, 1), "half of half the tags");
    assert!(!rig.bfq.has_room_below(&write(1, 7), 1) && rig.bfq.has_room_below(&write(1, 7), 41));
    rig.drain();
    assert!(rig.bfq.has_room_below(&write(1, 7), 1));
}

#[test]
//= docs/reference/bfq.md#311-request-pool-saturation type=test
fn groups_have_their_part_of_the_tags_by_weight() {
    let limits = Limits { tags: 256, groups: 4, ..Limits::default() };
    let mut rig = Rig::with(limits, plain());
    rig.control(Control::SetWeight(GroupId(2), weight(300)));
    rig.insert(in_group(write(2, 1 << 30), 2));
    let mut admitted = 0;
    while rig.bfq.has_room(&in_group(write(1, 7), 1)) {
        rig.insert(in_group(write(1, 1000 * admitted), 1));
        admitted += 1;
    }
    assert_eq!(admitted, 128 * 100 / 400);
    assert!(rig.bfq.has_room(&in_group(write(2, 7), 2)));
}
