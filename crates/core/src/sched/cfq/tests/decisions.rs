//! Slices, classes, depth, idling: one rule at a time.

use super::*;
use crate::elevator::Timer;

/// The slice of a queue of level `level` beside `n - 1` others of level 4, when the average has settled.
fn settled_slice(limits: Limits, n: u32, level: u8) -> Duration {
    let mut rig = Bare::with(limits, Config::default());
    let first = rig.insert(with_prio(read(0, 0), Class::BestEffort, level));
    for task in 1..n {
        rig.insert(read(task, u64::from(task) * 1000));
    }
    let (id, now) = (rig.queue_of(first), rig.now);
    for _ in 0..50 {
        rig.cfq.start_clock(id, now);
    }
    rig.cfq.queues[id].slice.end.since(now)
}

#[test]
//= docs/reference/cfq.md#9-test-vectors vector 2 type=test
fn slices_shrink_as_more_queues_are_busy() {
    let ticks = Limits { tick: ms(1), ..Limits::default() };
    let expected = [(1, 100), (2, 100), (3, 100), (4, 75), (6, 50), (8, 37), (10, 30), (20, 16)];
    for (n, want) in expected {
        assert_eq!((n, settled_slice(ticks, n, 4)), (n, ms(want)));
    }
    assert_eq!((settled_slice(ticks, 8, 0), settled_slice(ticks, 20, 7)), (ms(67), ms(6)));
    // Without ticks nothing is rounded.
    assert_eq!(settled_slice(Limits::default(), 8, 4), Duration::from_us(37_500));
}

#[test]
//= docs/reference/cfq.md#9-test-vectors vector 3 type=test
fn the_average_of_busy_queues_grows_fast_and_stops_falling_at_three() {
    let mut rig = Bare::new(Config::default());
    for task in 0..4 {
        rig.insert(read(task, u64::from(task) * 1000));
    }
    let average = |rig: &mut Bare| rig.cfq.trees.groups[GroupId::ROOT].update_busy_average(Class::BestEffort);
    assert_eq!([(); 3].map(|()| average(&mut rig)), [3, 4, 4]);
    for _ in 0..3 {
        assert!(rig.cx(|cfq, cx| cfq.drain(cx)).is_some());
    }
    assert_eq!([(); 3].map(|()| average(&mut rig)), [3, 3, 3]);
}

#[test]
//= docs/reference/cfq.md#9-test-vectors vector 4 type=test
fn an_async_queue_sends_its_quota_and_then_makes_room() {
    let mut rig = Bare::new(Config::default());
    for i in 0..20 {
        rig.insert(write(1, i * 1000));
        rig.insert(with_prio(write(2, i * 1000 + 500), Class::BestEffort, 6));
    }
    let mut order = Vec::new();
    for _ in 0..32 {
        let (tag, task) = rig.issue();
        order.push(task);
        rig.pass(Duration::from_us(10));
        rig.complete(tag);
    }
    assert!(order[..16].iter().all(|&t| t == 1), "16 requests of level 4: {order:?}");
    assert!(order[16..24].iter().all(|&t| t == 2), "8 requests of level 6: {order:?}");
    assert!(order[24..28].iter().all(|&t| t == 1), "the 4 that were left: {order:?}");
    assert!(rig.notes().contains(&Reason::AsyncQuota));
}

#[test]
//= docs/reference/cfq.md#9-test-vectors vector 5 type=test
fn async_depth_restarts_at_one_after_a_sync_request_was_late() {
    for (late_ms, want) in [(250, 2), (50, 1), (1000, 10)] {
        let mut rig = Bare::new(Config { quantum: 100, ..Config::default() });
        for i in 0..20 {
            rig.insert(write(1, i * 1000));
        }
        rig.cfq.rules.depth.completed(rig.now - ms(late_ms), rig.now - ms(late_ms + 125));
        let mut issued = 0;
        while let Dispatch::Issue(_) = rig.dispatch() {
            issued += 1;
        }
        assert_eq!((late_ms, issued), (late_ms, want));
        assert_eq!(rig.dispatch(), Dispatch::Hold(Hold::Depth));
    }
}

#[test]
fn a_sync_request_that_took_too_long_is_what_counts_as_late() {
    // One that was not late: eleven slices of 100 ms since a second before the first request.
    for (took, want) in [(124, 11), (125, 1)] {
        let mut rig = Bare::new(Config { quantum: 100, ..Config::default() });
        let tag = rig.insert(read(1, 0));
        rig.issue();
        rig.pass(ms(took));
        rig.complete(tag);
        rig.control(Control::TaskExit(TaskId(1)));
        for i in 0..20 {
            rig.insert(write(2, i * 1000));
        }
        let issued = core::iter::from_fn(|| matches!(rig.dispatch(), Dispatch::Issue(_)).then_some(()));
        assert_eq!((took, issued.count()), (took, want));
    }
}

/// How many of 20 waiting requests of `task` leave at once.
fn depth(rig: &mut Bare, task: u32) -> usize {
    for i in 0..20 {
        rig.insert(read(task, 1_000_000 + i * 8));
    }
    core::iter::from_fn(|| matches!(rig.dispatch(), Dispatch::Issue(_)).then_some(())).count()
}

#[test]
//= docs/reference/cfq.md#55-dispatch may_dispatch type=test
fn depth_of_a_sync_queue_by_era() {
    for (era, alone, with_reader, with_writer) in [
        (Era::Linux2_6_33, 20, 4, 4),
        // Before the slice has started, half of the quantum; a lone sync queue among async ones is free from
        // 3.x on.
        (Era::Linux2_6_34, 20, 4, 4),
        (Era::Linux3_10, 20, 4, 20),
    ] {
        let mut rig = Bare::new(old(era));
        assert_eq!((era, depth(&mut rig, 1)), (era, alone));
        for (other, want) in [(read(2, 0), with_reader), (write(2, 0), with_writer)] {
            let mut rig = Bare::new(old(era));
            // The first one in has the disk, and shares it with one that came later.
            let first = rig.insert(read(1, 999_992));
            assert_eq!(rig.dispatch(), Dispatch::Issue(first));
            rig.insert(other);
            assert_eq!((era, depth(&mut rig, 1) + 1), (era, if want == 20 { 21 } else { want }));
        }
    }
}

#[test]
fn half_the_quantum_turns_into_all_of_it_while_the_slice_lasts() {
    let mut rig = Bare::new(Config::default());
    rig.serve(read(1, 0));
    rig.insert(read(2, 1 << 30));
    // 100 ms of slice are left: 8 requests at 8 ms each fit.
    assert_eq!(depth(&mut rig, 1), 8);
    let mut rig = Bare::new(Config::default());
    rig.serve(read(1, 0));
    rig.pass(ms(63));
    rig.timer();
    rig.serve(read(1, 8));
    rig.insert(read(2, 1 << 30));
    let id = rig.sync_queue_of(1).unwrap();
    rig.queue(id).slice.end = rig.now + ms(40);
    // After five, 5 x 8 ms reach the end of it; the sixth would be too much.
    assert_eq!(depth(&mut rig, 1), 6);
}

#[test]
fn async_requests_drain_before_a_queue_that_idles_starts_and_wait_for_sync_ones() {
    let mut rig = Bare::new(Config::default());
    let w = rig.insert(write(1, 0));
    assert_eq!(rig.issue().1, 1);
    let r = rig.insert(read(2, 1000));
    assert_eq!(rig.dispatch(), Dispatch::Hold(Hold::Depth), "the write is still at the device");
    rig.complete(w);
    assert_eq!(rig.issue(), (r, 2));

    let mut rig = Bare::new(Config::default());
    let r = rig.insert(read(2, 1000));
    rig.issue();
    rig.control(Control::TaskExit(TaskId(2)));
    let w = rig.insert(write(1, 0));
    assert_eq!(rig.dispatch(), Dispatch::Hold(Hold::Depth), "a read is still at the device");
    rig.complete(r);
    assert_eq!(rig.issue(), (w, 1));
}

#[test]
fn classes_are_strict_and_the_idle_class_has_one_request_at_a_time() {
    let mut rig = Bare::new(Config::default());
    for i in 0..3 {
        rig.insert(with_prio(read(1, i * 8), Class::Idle, 0));
    }
    for i in 0..3 {
        rig.insert(read(2, 1000 + i * 8));
        rig.insert(with_prio(read(3, 2000 + i * 8), Class::RealTime, 7));
    }
    let mut order = Vec::new();
    while rig.cfq.queues.waiting > 0 {
        let (tag, task) = rig.issue();
        if task == 1 && rig.cfq.queues.waiting > 0 {
            assert_eq!(rig.dispatch(), Dispatch::Hold(Hold::Depth));
        }
        order.push(task);
        rig.complete(tag);
        // No task comes back: no idling.
        if order.len() % 3 == 0 {
            rig.control(Control::TaskExit(TaskId(task)));
        }
    }
    assert_eq!(order, [3, 3, 3, 2, 2, 2, 1, 1, 1]);
}

#[test]
fn in_the_idle_class_a_turn_is_one_request() {
    let idle = |task, start| with_prio(read(task, start), Class::Idle, 0);
    // While others wait the turn ends with the dispatch: the next has the disk before the first has
    // completed.
    let mut rig = Bare::new(Config::default());
    for i in 0..2 {
        for task in [1, 2] {
            rig.insert(idle(task, u64::from(task) * 1_000_000 + i * 8));
        }
    }
    let (first, second) = (rig.issue(), rig.issue());
    assert_eq!((first.1, second.1), (1, 2));
    rig.complete(first.0);
    assert_eq!(rig.issue().1, 1);
    // It ends with the completion if the others came meanwhile.
    let mut rig = Bare::new(Config::default());
    rig.insert(idle(1, 0));
    rig.insert(idle(1, 8));
    let first = rig.issue();
    rig.insert(idle(2, 1_000_000));
    rig.complete(first.0);
    assert_eq!((first.1, rig.issue().1), (1, 2));
}

#[test]
fn a_changed_priority_counts_from_the_next_request_on() {
    let mut rig = Bare::new(Config::default());
    let tag = rig.insert(read(1, 0));
    let id = rig.queue_of(tag);
    rig.control(Control::SetPrio(TaskId(1), IoPrio::new(Class::RealTime, 2)));
    assert_eq!(rig.queue(id).prio, IoPrio::default());
    rig.insert(read(1, 8));
    assert_eq!(rig.queue(id).prio, IoPrio::new(Class::RealTime, 2));
    // The task's async requests change too, at once; and a request that says something new is heard.
    let w = rig.insert(write(1, 0));
    assert_eq!(rig.queue_of(w), QueueId::of_async(GroupId::ROOT, IoPrio::new(Class::RealTime, 2)));
    rig.insert(with_prio(read(1, 16), Class::BestEffort, 7));
    assert_eq!(rig.queue(id).prio, IoPrio::new(Class::BestEffort, 7));
    // The idle class is not waited for.
    rig.insert(with_prio(read(1, 24), Class::Idle, 0));
    assert!(rig.queue(id).prio.level == 7 && !rig.queue(id).window.is_open());
}

#[test]
fn a_lower_level_is_put_off_by_the_difference_of_slices_for_each_other_queue() {
    let mut rig = Bare::new(Config::default());
    for task in 0..3 {
        rig.insert(read(task, u64::from(task) * 1000));
    }
    let low = rig.insert(with_prio(read(9, 9000), Class::BestEffort, 7));
    // It was not counted yet when it was filed: two others, 180 - 40 ms each.
    let key = rig.cfq.trees.filed.key(rig.queue_of(low));
    assert_eq!(key, (rig.now + ms(2 * 140)).as_ns());
    let first = rig.cfq.trees.filed.key(rig.sync_queue_of(0).unwrap());
    assert_eq!(first, (rig.now - ms(80)).as_ns(), "the very first one is ahead of its time");
}

#[test]
fn an_idling_queue_keeps_the_disk_until_its_request_or_the_timer() {
    let mut rig = Bare::new(Config::default());
    rig.serve(read(1, 0));
    assert_eq!(rig.cfq.next_timer(), Some((rig.now + ms(8), Timer::SliceIdle)));
    rig.insert(read(2, 1 << 30));
    assert_eq!(rig.dispatch(), Dispatch::Hold(Hold::SliceIdle));
    rig.pass(ms(3));
    let next = rig.insert(read(1, 8));
    assert_eq!((rig.cfq.next_timer(), rig.dispatch()), (None, Dispatch::Issue(next)));
    rig.complete(next);
    rig.pass(ms(8) - Duration::from_ns(1));
    rig.timer();
    assert_eq!(rig.dispatch(), Dispatch::Hold(Hold::SliceIdle), "a timer that is early changes nothing");
    rig.pass(Duration::from_ns(1));
    rig.timer();
    assert_eq!(rig.issue().1, 2);
    let notes = rig.notes();
    assert!(notes.contains(&Reason::SliceIdle) && notes.contains(&Reason::IdleTimeout), "{notes:?}");
}

#[test]
fn thinkers_seekers_and_fast_devices_are_not_waited_for() {
    // Long thinks: known with the third.
    let mut rig = Bare::new(Config { group_idle: Duration::ZERO, ..Config::default() });
    for i in 0..5 {
        rig.pass(ms(20));
        rig.timer();
        rig.serve(read(1, i * 8));
    }
    let id = rig.sync_queue_of(1).unwrap();
    assert!(!rig.queue(id).window.is_open());
    // Seeks: known with the fifth. A deep queue idles all the same, until it disappoints.
    let mut rig = Bare::new(Config::default());
    for i in 0..6 {
        rig.insert(read(1, i * 1_000_000));
    }
    let id = rig.sync_queue_of(1).unwrap();
    assert!(rig.queue(id).window.is_open() && rig.queue(id).window.is_deep() && rig.cfq.is_seeky(id));
    // A device without a head that may queue.
    let mut rig = Bare::with(Limits { rotational: false, ..Limits::default() }, Config::default());
    rig.serve(Request { len: Sectors(64), ..read(1, 0) });
    assert_eq!(rig.cfq.next_timer(), None);
    // No idling at all.
    let mut rig =
        Bare::new(Config { slice_idle: Duration::ZERO, group_idle: Duration::ZERO, ..Config::default() });
    rig.serve(read(1, 0));
    assert_eq!(rig.cfq.next_timer(), None);
}

#[test]
fn four_waiting_requests_make_a_queue_deep() {
    for (waiting, deep) in [(3, false), (4, true)] {
        let mut rig = Bare::new(Config::default());
        for i in 0..waiting {
            rig.insert(read(1, i * 8));
        }
        let id = rig.sync_queue_of(1).unwrap();
        assert_eq!((waiting, rig.queue(id).window.is_deep()), (waiting, deep));
    }
}

#[test]
fn the_disk_does_not_idle_while_the_queue_has_a_request_at_the_device() {
    let mut rig = Bare::new(Config::default());
    let tags = [rig.insert(read(1, 0)), rig.insert(read(1, 8))];
    assert_eq!([rig.issue().0, rig.issue().0], tags);
    rig.complete(tags[0]);
    assert_eq!(rig.cfq.next_timer(), None);
    rig.complete(tags[1]);
    assert_eq!(rig.cfq.next_timer(), Some((rig.now + ms(8), Timer::SliceIdle)));
}

#[test]
//= docs/reference/cfq.md#9-test-vectors vector 6 type=test
fn one_long_think_counts_as_twice_what_would_be_waited_for() {
    let config = Config { group_idle: ms(2), ..Config::default() };
    let after = |quick: u64| {
        let mut rig = Bare::new(config);
        (0..quick).for_each(|i| rig.serve(read(1, i * 8)));
        rig.pass(ms(500));
        rig.timer();
        rig.serve(read(1, quick * 8));
        rig
    };
    // As 16 ms, after two requests without a pause: the mean is 6 ms.
    let rig = after(2);
    assert_eq!(rig.cfq.next_timer(), Some((rig.now + ms(8), Timer::SliceIdle)), "worth waiting for");
    // For its group, whose first request counts as a long think, as 4 ms, after three without: the mean is
    // 1.6 ms.
    let mut rig = after(4);
    let group = &rig.cfq.trees.groups[GroupId::ROOT];
    assert!(group.think.is_valid() && !group.think.exceeds(ms(2)) && group.think.exceeds(ms(1)));
    // Three long thinks in a row are too much for both.
    for i in 5..8 {
        rig.pass(ms(500));
        rig.timer();
        rig.serve(read(1, i * 8));
    }
    let id = rig.sync_queue_of(1).unwrap();
    assert!(!rig.queue(id).window.is_open() && rig.cfq.trees.groups[GroupId::ROOT].think.exceeds(ms(2)));
}

#[test]
//= docs/reference/cfq.md#33-best-request type=test
fn the_next_candidate_is_a_neighbour_as_seen_from_the_start_of_the_request_issued() {
    let mut rig = Bare::new(Config::default());
    rig.cfq.device.head = Sector(1000);
    let long = rig.insert(Request { len: Sectors(64), ..read(1, 1000) });
    // From its start 72 sectors ahead, and 20 back, which count twice; from its end 8 ahead and 84 back.
    let [ahead, back] = [1072, 980].map(|start| rig.insert(read(1, start)));
    assert_eq!([rig.issue().0, rig.issue().0, rig.issue().0], [long, back, ahead]);
}

#[test]
fn timers_are_rounded_up_to_whole_ticks_as_the_clock_is_rounded_down() {
    let tick = ms(4);
    // It begins with a tick.
    let at = |n| Instant::EPOCH.floor_to(tick) + ms(n);
    for (idle, fires) in [(ms(8), 12), (ms(9), 16), (Duration::from_us(8001), 16), (ms(6), 12)] {
        let config = Config { slice_idle: idle, ..Config::default() };
        let limits = Limits { tick, ..Limits::default() };
        let mut e = Elevator::<Cfq>::new(limits, config).unwrap();
        let _ = e.insert(at(1), Tag(0), read(1, 0));
        let _ = e.insert(at(1), Tag(1), read(2, 1 << 30));
        assert_eq!(e.dispatch(at(1)), Dispatch::Issue(Tag(0)));
        // It shows 4 ms.
        let _ = e.complete(at(7), Tag(0)).count();
        assert_eq!((idle, e.next_timer()), (idle, Some((at(fires), Timer::SliceIdle))));
        e.timer(at(fires) - Duration::from_ns(1));
        assert_eq!(e.dispatch(at(fires) - Duration::from_ns(1)), Dispatch::Hold(Hold::SliceIdle));
        e.timer(at(fires));
        assert_eq!((idle, e.dispatch(at(fires))), (idle, Dispatch::Issue(Tag(1))));
    }
}

#[test]
fn only_the_last_seeky_queue_idles_for_all_of_them() {
    let mut rig = Bare::new(Config { group_idle: Duration::ZERO, ..Config::default() });
    let seeky = |rig: &mut Bare, task| {
        let id = rig.sync_queue_of(task).unwrap();
        rig.queue(id).window.close();
    };
    let (a, b) = (rig.insert(read(1, 0)), rig.insert(read(2, 1 << 20)));
    // Their kind is SyncNoIdle from when they are filed next.
    for task in [1, 2] {
        seeky(&mut rig, task);
        let id = rig.sync_queue_of(task).unwrap();
        rig.cx(|cfq, cx| cfq.file(cx, id, super::super::service_tree::Place::Turn));
    }
    assert_eq!(rig.issue(), (a, 1));
    rig.complete(a);
    assert_eq!(rig.cfq.next_timer(), None, "the other one is still there");
    assert_eq!(rig.issue(), (b, 2));
    rig.complete(b);
    assert!(rig.cfq.next_timer().is_some());
    assert!(rig.notes().contains(&Reason::WorkloadIdle));
}

#[test]
//= docs/reference/cfq.md#65-keeping-a-share type=test
fn a_lone_queue_not_worth_waiting_for_keeps_the_disk_for_group_idle() {
    for (era, idles) in [(Era::Linux3_10, true), (Era::Linux2_6_34, false)] {
        // Idling for queues is off, so only the group is left to be waited for.
        let mut rig = Bare::new(Config { slice_idle: Duration::ZERO, group_idle: ms(8), ..old(era) });
        rig.serve(read(1, 0));
        assert_eq!((era, rig.cfq.next_timer().is_some()), (era, idles));
        assert_eq!(rig.notes().contains(&Reason::GroupIdle), idles);
        // It does not keep another queue of the group out.
        rig.insert(read(2, 1 << 30));
        assert_eq!(rig.issue().1, 2);
    }
}

#[test]
fn a_no_idle_request_closes_the_window_from_3_x_on() {
    for (era, open) in [(Era::Linux2_6_34, true), (Era::Linux3_10, false)] {
        let mut rig = Bare::new(old(era));
        let tag = rig.insert(Request { no_idle: true, ..read(1, 0) });
        let id = rig.queue_of(tag);
        assert_eq!((era, rig.queue(id).window.is_open()), (era, open));
    }
}

#[test]
fn an_old_request_goes_first_once_in_a_slice() {
    let mut rig = Bare::new(Config::default());
    rig.cfq.device.head = Sector(5000);
    let (far, farther) = (rig.insert(read(1, 1_000_000)), rig.insert(read(1, 2_000_000)));
    rig.pass(ms(125));
    let near = rig.insert(read(1, 5000));
    assert_eq!(rig.issue().0, far, "its time has come");
    let near_now = rig.insert(read(1, 1_000_008));
    assert_eq!(rig.issue().0, near_now, "the fifo is not looked at twice");
    assert_eq!(rig.issue().0, farther);
    assert_eq!(rig.issue().0, near);
}

#[test]
fn metadata_goes_before_other_requests() {
    let mut rig = Bare::new(Config::default());
    rig.insert(read(1, 0));
    let meta = rig.insert(Request { meta: true, ..read(1, 1 << 30) });
    rig.insert(read(1, 8));
    assert_eq!(rig.issue().0, meta);
}

#[test]
fn a_task_that_exits_in_the_middle_of_its_slice_gives_the_disk_back() {
    let mut rig = Bare::new(Config::default());
    rig.serve(read(1, 0));
    let other = rig.insert(read(2, 1 << 30));
    assert_eq!(rig.dispatch(), Dispatch::Hold(Hold::SliceIdle));
    rig.control(Control::TaskExit(TaskId(1)));
    assert_eq!((rig.cfq.next_timer(), rig.dispatch()), (None, Dispatch::Issue(other)));
    // Requests of a task that has gone are served; then its slot and queue are free for another.
    let free = rig.cfq.queues.pooled();
    let late = rig.insert(read(3, 0));
    rig.control(Control::TaskExit(TaskId(3)));
    rig.control(Control::TaskExit(TaskId(3)));
    assert!(rig.cfq.tasks.find(TaskId(3)).is_some());
    rig.complete(other);
    rig.pass(ms(8));
    rig.timer();
    assert_eq!(rig.dispatch(), Dispatch::Issue(late));
    rig.complete(late);
    assert_eq!((rig.cfq.tasks.find(TaskId(3)), rig.cfq.queues.pooled()), (None, free));
}

#[test]
fn tasks_beyond_the_limit_share_a_queue() {
    let mut rig = Bare::with(Limits { tasks: 2, ..Limits::default() }, Config::default());
    let tags = [1, 2, 3, 4].map(|task| rig.insert(read(task, u64::from(task) * 1000)));
    let queues = tags.map(|tag| rig.queue_of(tag));
    assert_ne!(queues[0], queues[1]);
    assert_eq!(queues[2..], [QueueId::fallback(GroupId::ROOT); 2]);
    let w = rig.insert(with_prio(write(5, 0), Class::BestEffort, 1));
    assert_eq!(rig.queue_of(w), QueueId::of_async(GroupId::ROOT, IoPrio::new(Class::BestEffort, 1)));
    // When a slot becomes free, a newcomer has it.
    rig.control(Control::TaskExit(TaskId(1)));
    while rig.cfq.queues.waiting > 0 {
        if let Dispatch::Issue(tag) = rig.dispatch() {
            rig.complete(tag);
        } else {
            rig.pass(ms(8));
            rig.timer();
        }
    }
    let own = rig.insert(read(3, 50_000));
    assert!(rig.cfq.queues.is_own(rig.queue_of(own)));
}

#[test]
fn tasks_that_have_been_idle_longest_make_room() {
    let mut rig = Bare::with(Limits { tasks: 8, ..Limits::default() }, Config::default());
    for task in [1, 2, 3, 4, 5, 6, 7, 8, 1] {
        rig.serve(read(task, u64::from(task) * 100_000));
        rig.pass(ms(30));
        rig.timer();
    }
    let newcomer = rig.insert(read(9, 5000));
    assert!(rig.cfq.queues.is_own(rig.queue_of(newcomer)));
    let known = [1, 2, 3, 9].map(|task| rig.cfq.tasks.find(TaskId(task)).is_some());
    assert_eq!(known, [true, false, true, true]);
}

#[test]
fn a_task_that_is_busy_or_was_given_a_priority_keeps_its_slot() {
    let mut rig = Bare::with(Limits { tasks: 2, ..Limits::default() }, Config::default());
    rig.control(Control::SetPrio(TaskId(1), IoPrio::new(Class::RealTime, 0)));
    let busy = rig.insert(read(2, 1000));
    rig.pass(ms(1000));
    let newcomer = rig.insert(read(3, 5000));
    assert_eq!(rig.queue_of(newcomer), QueueId::fallback(GroupId::ROOT));
    assert_eq!(rig.dispatch(), Dispatch::Issue(busy));
    rig.complete(busy);
    while rig.cfq.queues.waiting > 0 {
        if let Dispatch::Issue(tag) = rig.dispatch() {
            rig.complete(tag);
        } else {
            rig.pass(ms(8));
            rig.timer();
        }
    }
    rig.pass(ms(1000));
    rig.timer();
    let again = rig.insert(read(4, 9000));
    assert!(rig.cfq.queues.is_own(rig.queue_of(again)));
    assert!(rig.cfq.tasks.find(TaskId(1)).is_some(), "its priority would be lost");
}

#[test]
fn a_request_handed_back_counts_as_dispatched_but_not_as_at_the_device() {
    let mut e = Elevator::<Cfq>::new(Limits::default(), Config::default()).unwrap();
    let _ = e.insert(at(0), Tag(0), read(1, 0));
    let _ = e.insert(at(0), Tag(1), read(1, 1000));
    assert_eq!(e.dispatch(at(0)), Dispatch::Issue(Tag(0)));
    e.requeue(at(1), Tag(0));
    assert_eq!((e.scheduler().device.in_driver, e.scheduler().device.in_flight), (0, [0, 1]));
    e.check();
    assert_eq!(e.dispatch(at(1)), Dispatch::Issue(Tag(0)));
    assert_eq!((e.scheduler().device.in_driver, e.scheduler().device.head), (1, Sector(8)));
    assert_eq!(e.dispatch(at(1)), Dispatch::Issue(Tag(1)));
    assert_eq!(e.complete(at(2), Tag(0)).count() + e.complete(at(2), Tag(1)).count(), 2);
    e.check();
}

#[test]
fn drain_takes_everything_in_order_of_class() {
    let mut rig = Bare::new(Config::default());
    rig.insert(with_prio(read(1, 0), Class::Idle, 0));
    rig.insert(write(2, 100));
    rig.serve(with_prio(read(3, 200), Class::RealTime, 0));
    rig.insert(with_prio(read(3, 208), Class::RealTime, 0));
    rig.insert(read(4, 300));
    let mut order = Vec::new();
    while let Some(tag) = rig.cx(|cfq, cx| cfq.drain(cx)) {
        rig.requests.issue(tag, rig.now);
        rig.cfq.check(&rig.requests);
        order.push(rig.requests[tag].rq.task.0);
    }
    assert_eq!(order, [3, 2, 4, 1]);
}

#[test]
fn a_merge_needs_the_same_queue() {
    let mut e = Elevator::<Cfq>::new(Limits::default(), Config::default()).unwrap();
    let merges =
        |e: &mut Elevator<Cfq>, tag, rq| matches!(e.insert(at(0), Tag(tag), rq), Insert::Merged { .. });
    assert!(!merges(&mut e, 0, read(1, 0)));
    assert!(!merges(&mut e, 1, read(2, 8)), "another task");
    assert!(!merges(&mut e, 2, write(1, 1000)));
    assert!(merges(&mut e, 3, write(2, 1008)), "async requests of one level share a queue");
    assert!(!merges(&mut e, 4, with_prio(write(3, 1016), Class::BestEffort, 2)), "of another level");
    assert!(
        !merges(&mut e, 5, Request { sync: true, ..write(1, 1016) }),
        "a sync one never into an async one"
    );
    assert!(merges(&mut e, 6, read(1, 8)), "its own");
    e.check();
}

#[test]
fn a_joined_request_leaves_its_age_to_the_survivor() {
    let mut e = Elevator::<Cfq>::new(Limits::default(), Config::default()).unwrap();
    let _ = e.insert(at(0), Tag(0), read(1, 16));
    let _ = e.insert(at(10), Tag(1), read(1, 0));
    assert!(matches!(e.insert(at(20), Tag(2), read(1, 8)), Insert::Merged { .. }));
    e.check();
    let cfq = e.scheduler();
    assert_eq!(cfq.queues.rqs[Tag(1)].deadline, at(125), "the first one's");
    assert_eq!((cfq.queues.waiting, e.requests()[Tag(1)].rq.len), (1, Sectors(24)));
}
