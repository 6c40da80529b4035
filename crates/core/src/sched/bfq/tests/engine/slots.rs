//! Slots: which queue is in service, and how a slot ends.

use super::*;

#[test]
//= docs/reference/bfq.md#73-from-idle-to-busy step 4, docs/reference/bfq.md#78-expire step 7 type=test
fn a_queue_that_comes_back_in_time_continues_with_what_was_left() {
    for (pause, resumes) in [(ms(15), true), (ms(30), false)] {
        let mut rig = Rig::new(plain());
        rig.serve(read(1, 1000));
        let q = rig.of(1);
        let (left, (start, _)) = (rig.bfq.hierarchy.budget(q) - 8, rig.bfq.hierarchy.times(q));
        rig.insert(read(2, 9_000_000));
        rig.pass(ms(8));
        assert!(!rig.queue(1).busy && rig.queue(1).hole_credit, "idled for in vain");
        // The other one is served meanwhile.
        for i in 1..4 {
            rig.serve(read(2, 9_000_000 + 8 * i));
        }
        rig.pass(pause.saturating_sub(ms(12)));
        rig.insert(read(1, 1008));
        let (now, _) = rig.bfq.hierarchy.times(q);
        if resumes {
            // Idling in vain has made its budgets smaller.
            assert_eq!(rig.bfq.hierarchy.budget(q), left.min(8874));
            assert!(now < start + (16 << 22), "it starts where it stopped: {start} {now}");
        } else {
            assert_eq!(rig.bfq.hierarchy.budget(q), rig.queue(1).next_budget);
        }
    }
}

#[test]
//= docs/reference/bfq.md#73-from-idle-to-busy step 4 type=test
fn what_was_left_is_kept_for_three_idle_times_after_the_last_completion() {
    for (late, resumes) in [(Duration::ZERO, true), (NS, false)] {
        let mut rig = Rig::new(plain());
        let large = |i: u64| Request { len: Sectors(1024), ..read(1, 1000 + 1024 * i) };
        (0..9).for_each(|i| rig.serve(large(i)));
        let (q, last_end) = (rig.of(1), rig.now);
        let left = rig.bfq.hierarchy.budget(q) - 9 * 1024;
        rig.insert(read(2, 9_000_000));
        rig.pass(ms(8));
        assert!(!rig.queue(1).busy && rig.queue(1).hole_credit, "idled for in vain");
        (1..4).for_each(|i| rig.serve(read(2, 9_000_000 + 8 * i)));
        rig.pass((last_end + rig.bfq.setting.slice_idle * 3 + late).since(rig.now));
        rig.insert(large(9));
        let next = rig.queue(1).next_budget;
        assert!(left < next, "{left} is another than {next}");
        assert_eq!((late, rig.bfq.hierarchy.budget(q)), (late, if resumes { left } else { next }));
    }
}

#[test]
//= docs/reference/bfq.md#73-from-idle-to-busy step 9 type=test
fn queues_that_take_the_disk_away() {
    for (rq, preempts) in [
        (of_level(read(3, 5_000_000), Class::RealTime, 7), true),
        (of_level(read(3, 5_000_000), Class::BestEffort, 3), true),
        (of_level(read(3, 5_000_000), Class::BestEffort, 4), false),
        (of_level(read(3, 5_000_000), Class::BestEffort, 5), false),
        (of_level(read(3, 5_000_000), Class::Idle, 7), false),
    ] {
        let mut rig = two_readers(plain());
        rig.insert(rq);
        assert_eq!(in_service(&rig).is_none(), preempts, "{:?}", rq.prio);
    }
    // A queue that is not worth idling for loses the disk to any other.
    let mut rig = two_readers(plain());
    rig.bfq.rules.idle.has_boost(Boost::None);
    rig.insert(read(3, 5_000_000));
    assert_eq!(in_service(&rig), None);
}

#[test]
//= docs/reference/bfq.md#15-choosing-across-classes, docs/reference/bfq.md#76-dispatch step 8 type=test
fn an_idle_class_queue_sends_one_request_a_slot_and_is_not_starved() {
    let mut rig = Rig::new(plain());
    for i in 0..4 {
        rig.insert(of_level(read(9, 50_000_000 + 8 * i), Class::Idle, 7));
    }
    let start = rig.now;
    let mut turns = Vec::new();
    for i in 0..600 {
        if i % 8 == 0 {
            for j in 0..8 {
                rig.insert(read(1, 1000 + 8 * (i + j)));
            }
        }
        let (tag, task) = rig.issue();
        if task == 9 {
            turns.push(rig.now.since(start).as_ms());
        }
        rig.pass(ms(1));
        rig.complete(tag);
    }
    // T9: 200 ms and a slot.
    assert!(turns.len() >= 2 && turns[0] <= 325, "{turns:?}");
    assert!(turns.windows(2).all(|pair| (200..=325).contains(&(pair[1] - pair[0]))), "{turns:?}");
    rig.drain();
}

#[test]
//= docs/reference/bfq.md#29-choosing-a-request, docs/reference/bfq.md#84-scheduling-theorems S5 type=test
fn once_in_a_slot_the_oldest_goes_out_of_order() {
    let mut rig = Rig::new(plain());
    rig.serve(read(1, 1000));
    let old = rig.insert(read(1, 900_000_000));
    rig.pass(ms(130));
    for i in 1..5 {
        rig.insert(read(1, 1000 + 8 * i));
    }
    // A slot begins, in which the fifo was not looked at yet.
    let q = rig.of(1);
    if rig.bfq.in_service == Some(q) {
        rig.cx(|bfq, cx| bfq.expire(cx, Expire::BudgetTimeout));
    }
    let (first, _) = rig.issue();
    assert_ne!(first, old, "the nearest is first");
    assert_eq!(rig.issue().0, old, "then the one that has waited for too long");
    rig.drain_issued();
}

#[test]
//= docs/reference/bfq.md#84-scheduling-theorems S5 type=test
fn arrivals_do_not_pass_the_oldest_once_it_has_waited_for_too_long() {
    let mut rig = Rig::new(plain());
    rig.serve(read(1, 1000));
    let old = rig.insert(read(1, 900_000_000));
    rig.insert(read(1, 1008));
    // A stream of which one request always waits, beside the far one.
    let mut late = 0;
    for i in 2.. {
        let (tag, _) = rig.issue();
        if tag == old {
            break;
        }
        late += u32::from(rig.now.since(rig.requests[old].since) > ms(125 + 125));
        assert!(late < 3, "the far one should have gone in the slot that began after its deadline");
        rig.insert(read(1, 1000 + 8 * i));
        rig.pass(ms(4));
        rig.complete(tag);
    }
    rig.drain_issued();
    rig.drain();
}

#[test]
//= docs/reference/bfq.md#83-budgets U5 type=test
fn no_slot_lasts_longer_than_its_time_and_an_event() {
    let mut rig = Rig::new(plain());
    for i in 0..100 {
        rig.insert(random(1, i));
        rig.insert(random(2, 1000 + i));
    }
    let (mut turn, mut since) = (0, rig.now);
    while rig.requests.queued() > 0 {
        let Dispatch::Issue(tag) = rig.dispatch() else {
            rig.pass(ms(1));
            continue;
        };
        let task = rig.requests[tag].rq.task.0;
        if task != turn {
            (turn, since) = (task, rig.now);
        }
        assert!(rig.now.since(since) <= ms(125), "{:?}", rig.now.since(since));
        rig.pass(ms(7));
        rig.complete(tag);
    }
}

#[test]
//= docs/reference/bfq.md#710-exit type=test
fn a_task_that_exits_in_its_slot_leaves_its_requests() {
    let mut rig = two_readers(plain());
    rig.exit(1);
    assert_eq!(in_service(&rig), None);
    let q = rig.bfq.rqs[Tag(0)].queue;
    assert_eq!((rig.bfq.queues[q].process_refs, rig.bfq.hierarchy.service(q)), (0, 0));
    rig.drain_issued();
    assert!(!rig.bfq.queues[q].in_use, "its last request has completed");
    assert_eq!(rig.bfq.tasks.find(TaskId(1)), None);
    rig.exit(2);
    assert_eq!(rig.in_use(), 1, "but for the fallback");
}

#[test]
fn draining_gives_everything_whatever_it_would_rather_wait_for() {
    let mut rig = Rig::new(Config { strict_guarantees: true, ..Config::live() });
    for i in 0..30 {
        let task = u32::try_from(i % 5).unwrap();
        rig.insert(if i % 3 == 0 { write(task, i * 1000) } else { read(task, i * 1000) });
    }
    let _ = rig.dispatch();
    let mut drained = 0;
    while let Some(tag) = rig.cx(|bfq, cx| bfq.drain(cx)) {
        rig.requests.issue(tag, rig.now);
        rig.check();
        drained += 1;
    }
    assert_eq!((drained, rig.requests.queued()), (29, 0));
}

#[test]
fn virtual_times_are_recorded_of_a_queue_and_of_the_groups_above_it() {
    let mut rig = Rig::new(plain());
    rig.control(Control::SetParent(GroupId(2), GroupId(1)));
    rig.insert(in_group(read(1, 1000), 2));
    let (q, h) = (rig.of(1), &rig.bfq.hierarchy);
    let of_group = |g| (Some(g), h.group_times(g), h.group_weight(g));
    let expected = [(None, h.times(q), h.weight(q)), of_group(GroupId(2)), of_group(GroupId(1))];
    let events = core::iter::from_fn(|| rig.books.trace.pop());
    let times = events.into_iter().filter_map(|e| match e.detail {
        Detail::Times { group, start, finish, weight } => Some((group, (start, finish), weight)),
        _ => None,
    });
    let times: Vec<_> = times.collect();
    assert_eq!(times.last_chunk(), Some(&expected));
}
