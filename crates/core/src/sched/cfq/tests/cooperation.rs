//! Tasks that read one stream: served in one slice, merged, split.

use super::*;

/// Tasks 1 and 2 share a stream: while a request of 1 is at the device, 2 asks for what comes next.
fn sharing(config: Config) -> Bare {
    let mut rig = Bare::new(config);
    let a = rig.insert(read(1, 0));
    rig.issue();
    rig.insert(read(2, 8));
    rig.pass(ms(1));
    rig.complete(a);
    rig
}

/// And now 1 has sent its next request, which goes to 2's queue.
fn merged(config: Config) -> Bare {
    let mut rig = sharing(config);
    let (b, task) = rig.issue();
    assert_eq!(task, 2);
    rig.insert(read(1, 16));
    rig.pass(ms(1));
    rig.complete(b);
    rig
}

#[test]
fn a_close_request_is_served_at_once_and_the_queues_become_one() {
    let mut rig = sharing(Config::default());
    let (one, two) = (rig.sync_queue_of(1).unwrap(), rig.sync_queue_of(2).unwrap());
    let free = rig.cfq.queues.pooled();
    assert_eq!(rig.cfq.next_timer(), None, "no idling when a cooperator is there");
    assert_eq!(rig.issue().1, 2);
    assert_eq!(rig.cfq.queues.merge_target(one), Some(two));
    rig.insert(read(1, 16));
    assert_eq!(rig.sync_queue_of(1), Some(two));
    assert!(rig.queue(two).coop && rig.queue(two).process_refs == 2);
    assert_eq!(rig.cfq.queues.pooled(), free + 1, "the old queue is back in the pool");
    let notes = rig.notes();
    assert!(notes.contains(&Reason::Cooperator) && notes.contains(&Reason::QueueMerge), "{notes:?}");
}

#[test]
fn queues_that_are_far_seeky_async_or_of_another_class_do_not_cooperate() {
    let changes: [fn(&mut Queue); 4] = [
        |q| q.set_prio(IoPrio::new(Class::RealTime, 4)),
        |q| q.set_prio(IoPrio::new(Class::BestEffort, 5)),
        |q| q.set_prio(IoPrio::new(Class::Idle, 0)),
        |q| q.sync = false,
    ];
    for change in changes {
        let mut rig = sharing(Config::default());
        let (one, two) = (rig.sync_queue_of(1).unwrap(), rig.sync_queue_of(2).unwrap());
        change(rig.queue(two));
        rig.cx(|cfq, cx| cfq.refresh_position(cx.requests, two));
        assert_eq!(rig.cfq.close_cooperator(one), None);
    }
    for (start, close) in [(8 + 8192, true), (8 + 8193, false)] {
        let mut rig = Bare::new(Config::default());
        let a = rig.insert(read(1, 0));
        rig.issue();
        rig.insert(read(2, start));
        rig.complete(a);
        let one = rig.sync_queue_of(1).unwrap();
        assert_eq!((start, rig.cfq.close_cooperator(one).is_some()), (start, close));
    }
    let mut rig = sharing(Config::default());
    let (one, two) = (rig.sync_queue_of(1).unwrap(), rig.sync_queue_of(2).unwrap());
    assert_eq!(rig.cfq.close_cooperator(one), Some(two));
    for _ in 0..5 {
        for start in [1 << 30, 0] {
            rig.jump(two, start);
        }
    }
    assert_eq!(rig.cfq.close_cooperator(one), None);
}

#[test]
fn the_request_ahead_of_the_head_is_taken_before_the_one_behind() {
    let mut rig = Bare::new(Config::default());
    let a = rig.insert(read(1, 5000));
    rig.issue();
    rig.insert(read(2, 5000));
    let ahead = rig.insert(read(3, 5100));
    rig.complete(a);
    assert_eq!(rig.dispatch(), Dispatch::Issue(ahead));
}

#[test]
fn tasks_that_part_get_their_own_queues_again() {
    let mut rig = merged(Config::default());
    let shared = rig.sync_queue_of(1).unwrap();
    let mut place = 1 << 20;
    // Both jump about, until the queue is found to seek when its slice ends.
    for i in 0..8 {
        place += 1 << 20;
        rig.insert(read(1 + i % 2, place));
    }
    assert!(rig.cfq.is_seeky(shared));
    rig.cx(|cfq, cx| cfq.expire(cx, Expire::Used));
    assert!(rig.queue(shared).split_coop);
    rig.insert(read(1, 1 << 29));
    assert_ne!(rig.sync_queue_of(1), Some(shared));
    assert!(rig.notes().contains(&Reason::QueueSplit));
    // The last one keeps it.
    rig.insert(read(2, 1 << 29));
    assert_eq!(rig.sync_queue_of(2), Some(shared));
    assert!(!rig.queue(shared).coop && !rig.queue(shared).split_coop);
}

#[test]
fn exits_along_a_chain_of_merges_leave_no_references() {
    for gone in [[1, 2, 3, 4], [2, 1, 4, 3], [3, 4, 2, 1], [4, 1, 3, 2]] {
        let mut rig = Bare::new(Config::default());
        let free = rig.cfq.queues.pooled();
        let queues = [1, 2, 3, 4].map(|task| {
            let tag = rig.insert(read(task, u64::from(task) * 100_000));
            rig.queue_of(tag)
        });
        // 1 to 2, 4 to 3, and then 2 with its two to 3 with its two.
        rig.cfq.set_up_merge(queues[0], queues[1]);
        rig.cfq.set_up_merge(queues[3], queues[2]);
        rig.cfq.set_up_merge(queues[1], queues[3]);
        assert_eq!(queues.map(|q| rig.queue(q).process_refs), [1, 2, 4, 1]);
        rig.cfq.set_up_merge(queues[2], queues[0]);
        assert_eq!(rig.cfq.queues.merge_target(queues[2]), None, "no circles");
        // The first follows one link of the chain.
        rig.insert(read(1, 0));
        assert_eq!(rig.sync_queue_of(1), Some(queues[1]));
        for task in gone {
            rig.control(Control::TaskExit(TaskId(task)));
        }
        while rig.cfq.queues.waiting > 0 {
            let (tag, _) = rig.issue();
            rig.complete(tag);
        }
        assert_eq!(rig.cfq.queues.pooled(), free);
    }
}

#[test]
fn the_side_with_more_tasks_stays() {
    let mut rig = merged(Config::default());
    let shared = rig.sync_queue_of(1).unwrap();
    let tag = rig.insert(read(3, 1 << 20));
    let third = rig.queue_of(tag);
    rig.cfq.set_up_merge(shared, third);
    assert_eq!(
        (rig.cfq.queues.merge_target(third), rig.cfq.queues.merge_target(shared)),
        (Some(shared), None)
    );
}

#[test]
fn a_queue_without_tasks_is_no_target_unless_the_quirk_says_so() {
    for quirk in [false, true] {
        let mut rig = Bare::new(Config { quirk_merge_unchecked: quirk, ..Config::linux_2_6_34() });
        let tags = [1, 2, 3].map(|task| rig.insert(read(task, u64::from(task) * 100_000)));
        let [one, dead, three] = tags.map(|t| rig.queue_of(t));
        rig.control(Control::TaskExit(TaskId(2)));
        rig.cfq.set_up_merge(one, dead);
        assert_eq!(rig.cfq.queues.merge_target(dead), quirk.then_some(one));
        // A third one would then follow the dead queue's link.
        rig.cfq.set_up_merge(three, dead);
        assert_eq!(rig.cfq.queues.merge_target(three), quirk.then_some(one));
        rig.cfq.check(&rig.requests);
    }
}

#[test]
fn in_2_6_33_one_early_jump_ends_cooperation_if_the_quirk_is_on() {
    for quirk in [true, false] {
        let mut rig = sharing(Config { quirk_seeky_early: quirk, ..Config::linux_2_6_33() });
        let one = rig.sync_queue_of(1).unwrap();
        rig.jump(one, 1 << 30);
        assert_eq!(rig.cfq.close_cooperator(one).is_none(), quirk);
    }
}
