//! Queues that become one, by position and for good, and part again.

use super::*;

fn early() -> Config {
    Config { queue_merge: true, ..plain() }
}

fn stable() -> Config {
    Config { stable_merge: true, ..plain() }
}

/// Task 1 has read at 1000 and is not idled for any more; task 2 has a request queued at `position`, and task
/// 9 one far away.
fn near(config: Config, position: u64) -> Rig {
    let mut rig = Rig::new(config);
    rig.serve(read(1, 1000));
    rig.serve(read(1, 1008));
    rig.pass(ms(25));
    rig.insert(read(2, position));
    rig.insert(read(9, 900_000_000));
    rig
}

/// Tasks 1 and 2 share 2's queue; nothing is queued.
fn merged(config: Config) -> Rig {
    let mut rig = near(config, 1024);
    rig.insert(read(1, 1016));
    rig.drain();
    rig.exit(9);
    assert_eq!(rig.of(1), rig.of(2));
    rig
}

/// Makes a queue look as if it had only sought lately.
fn make_seeky(rig: &mut Rig, task: u32) {
    rig.queue(task).past.has_seeks(u32::MAX >> 2);
    let q = rig.of(task);
    assert!(rig.bfq.is_seeky(q) && !rig.bfq.queues[q].past.is_totally_seeky());
}

#[test]
fn readers_of_one_stream_share_a_queue_from_the_next_request_on() {
    let mut rig = near(early(), 1024);
    let (one, two) = (rig.of(1), rig.of(2));
    assert_ne!(one, two, "nothing yet: no other queue is busy");
    rig.insert(read(1, 1016));
    assert_eq!(rig.of(1), two);
    let queue = rig.queue(2);
    assert_eq!((queue.process_refs, queue.owner, queue.shared, queue.requests.len()), (2, None, true, 2));
    assert!(rig.notes().contains(&Reason::QueueMerge));
    rig.drain();
    rig.pass(ms(30));
    assert!(!rig.bfq.queues[one].in_use, "back in the pool");
}

#[test]
//= deviates bfq-coop-alone
fn a_stream_whose_readers_preempt_each_other_becomes_one_but_not_in_the_kernel() {
    for kernel in [false, true] {
        let mut rig = Rig::new(early());
        rig.bfq.rules.merge.setting.as_kernel = kernel;
        rig.serve(read(1, 1000));
        let tag = rig.insert(read(1, 1008));
        assert_eq!(rig.issue().0, tag);
        // The only busy queue is the one in service, which has read next to this.
        rig.insert(read(2, 1016));
        assert_eq!(rig.of(1) == rig.of(2), !kernel);
        rig.complete(tag);
        rig.drain();
    }
}

#[test]
fn a_close_request_merges_with_the_queue_in_service() {
    for (distance, close) in [(8192, true), (8193, false)] {
        let mut rig = Rig::new(early());
        rig.serve(read(1, 1000));
        rig.serve(read(1, 1008));
        rig.insert(read(2, 5_000_000));
        rig.insert(read(3, 9_000_000));
        rig.insert(read(1, 1016));
        let tag = rig.issue().0;
        let last = rig.bfq.in_service_last_pos.0;
        assert_eq!(last, 1024);
        rig.insert(read(3, last + distance));
        assert_eq!(rig.of(3) == rig.of(1), close, "{distance} sectors away");
        rig.complete(tag);
        rig.drain();
    }
}

#[test]
fn the_close_request_ahead_is_taken_before_the_one_behind() {
    // (what tasks 2 and 3 wait for, where task 1 asks, with whom it merges)
    let cases = [
        ((20_000, 12_000), 16_000, Some(2)),
        ((30_000, 12_000), 16_000, Some(3)),
        ((24_192, 3), 16_000, Some(2)),
        ((24_193, 3), 16_000, None),
        ((7_808, 900_000), 16_000, Some(2)),
        ((7_807, 900_000), 16_000, None),
        ((16_000, 15_999), 16_000, Some(2)),
    ];
    for ((two, three), position, expected) in cases {
        let mut rig = Rig::new(early());
        rig.serve(read(1, 7_000_000));
        rig.serve(read(1, 7_000_008));
        rig.insert(read(2, two));
        rig.insert(read(3, three));
        let (q2, q3) = (rig.of(2), rig.of(3));
        if q2 == q3 {
            continue;
        }
        rig.insert(read(1, position));
        let one = rig.of(1);
        let found = if one == q2 { Some(2) } else { (one == q3).then_some(3) };
        assert_eq!(found, expected, "{two} and {three}, from {position}");
    }
}

/// The queue in service is not in the order of positions, but its next request counts as one there.
#[test]
fn the_queue_in_service_may_be_the_closest_or_farther_than_a_waiting_one() {
    // (the next request of task 4, which is in service; where task 1 asks; with whom it merges)
    let cases = [
        (58_400, 50_050, 3),
        (58_400, 58_300, 4),
        (58_300, 58_300, 4),
        (41_800, 50_150, 3),
        (41_800, 41_900, 4),
    ];
    for (next, position, expected) in cases {
        let mut rig = Rig::new(early());
        rig.serve(read(4, 7_000_000));
        rig.serve(read(4, 7_000_008));
        rig.insert(read(3, 50_100));
        rig.insert(read(4, next));
        let (three, four) = (rig.of(3), rig.of(4));
        assert_eq!(rig.bfq.in_service, Some(four), "it was idled for");
        assert_ne!(three, four, "they are too far from each other");
        rig.insert(read(1, position));
        let one = rig.of(1);
        let found = [(three, 3), (four, 4)].into_iter().find(|(q, _)| *q == one);
        assert_eq!(found.map(|(_, task)| task), Some(expected), "beside {next}, from {position}");
        rig.drain();
    }
}

#[test]
fn queues_that_do_not_fit_are_not_merged() {
    let seeky: fn(&mut Rig, u32) = |rig, task| make_seeky(rig, task);
    let late: fn(&mut Rig, u32) = |rig, task| {
        let now = rig.now;
        rig.queue(task).since_backlog = 8;
        rig.queue(task).first_io = now - ms(100) - NS;
    };
    let fits: fn(&mut Rig, u32) = |rig, task| {
        let now = rig.now;
        rig.queue(task).since_backlog = 8;
        rig.queue(task).first_io = now - ms(100);
    };
    let unserved: fn(&mut Rig, u32) = |rig, task| {
        let now = rig.now;
        rig.queue(task).since_backlog = 0;
        rig.queue(task).first_io = now - ms(1000);
    };
    for (what, change, merges) in [
        ("seeky", seeky, false),
        ("too late", late, false),
        ("just not", fits, true),
        ("not served since its backlog began", unserved, true),
    ] {
        for task in [1, 2] {
            let mut rig = near(early(), 1024);
            change(&mut rig, task);
            rig.insert(read(1, 1016));
            assert_eq!(rig.of(1) == rig.of(2), merges, "{what}: task {task}");
            rig.drain();
        }
    }
    let others = [
        of_level(read(2, 1024), Class::RealTime, 4),
        of_level(read(2, 1024), Class::Idle, 4),
        in_group(read(2, 1024), 1),
    ];
    for rq in others {
        let mut rig = Rig::new(early());
        rig.serve(read(1, 1000));
        rig.serve(read(1, 1008));
        rig.insert(rq);
        rig.insert(read(1, 1016));
        assert_ne!(rig.of(1), rig.of(2), "{rq:?}");
        rig.drain();
    }
    let mut rig = near(Config { queue_merge: false, ..early() }, 1024);
    rig.insert(read(1, 1016));
    assert_ne!(rig.of(1), rig.of(2), "switched off");
    let mut rig = Rig::new(early());
    rig.serve(read(1, 1000));
    rig.insert(write(2, 1008));
    rig.insert(write(1, 1016));
    assert_eq!(rig.asyn(1), rig.asyn(2), "of one group and priority");
    rig.insert(read(1, 1024));
    assert_ne!(rig.of(1), rig.asyn(2), "sync and async do not mix");
    rig.drain();
}

#[test]
fn flash_that_queues_is_left_to_sort_by_itself() {
    let scene = |config| {
        let mut rig = Rig::flash(config);
        rig.serve(read(1, 1000));
        rig.serve(read(1, 1008));
        rig.insert(read(2, 1024));
        rig.insert(read(1, 1016));
        rig.of(1) == rig.of(2)
    };
    assert!(!scene(early()));
    assert!(scene(Config { ncq_flash: false, ..early() }), "before patch 21 all devices merged");
}

#[test]
fn a_link_is_followed_by_every_task_of_the_queue() {
    // 1 and 2 share 2's queue; then that merges into 3's.
    let mut rig = merged(early());
    let two = rig.of(2);
    rig.serve(read(1, 1040));
    rig.pass(ms(25));
    rig.insert(read(3, 2000));
    rig.insert(read(8, 800_000_000));
    let three = rig.of(3);
    rig.insert(read(1, 1990));
    assert_eq!(rig.of(1), three);
    assert_eq!(rig.of(2), two, "it has not sent anything since");
    assert_eq!(rig.bfq.queues[two].merge_to, Some(three));
    assert_eq!((rig.bfq.queues[two].process_refs, rig.bfq.queues[three].process_refs), (1, 3));
    rig.insert(read(2, 9_000_000));
    assert_eq!(rig.of(2), three, "wherever its next request is");
    assert_eq!(rig.bfq.queues[three].process_refs, 3);
    rig.drain();
    rig.pass(ms(30));
    assert!(!rig.bfq.queues[two].in_use);
}

#[test]
fn what_a_queue_was_goes_over_to_the_other() {
    let mut rig = near(Config { low_latency: true, ..early() }, 1024);
    rig.serve(read(5, 5_000_000));
    let (one, two, five) = (rig.of(1), rig.of(2), rig.of(5));
    for q in [one, two] {
        rig.cx(|bfq, cx| bfq.end_raising(cx, q));
    }
    rig.bfq.rules.wakers.set(one, Some(five));
    rig.raise(one, 30);
    let start = rig.now - ms(1);
    rig.queue(1).raise.adopt(start, ms(4000));
    rig.queue(1).past.has_io_bound(true);
    rig.queue(2).past.has_io_bound(false);
    let raise = rig.queue(1).raise;
    rig.serve(read(2, 1032));
    rig.insert(read(9, 900_000_100));
    rig.insert(read(2, 1024));
    rig.insert(read(1, 1016));
    assert_eq!(rig.of(1), two);
    let queue = &rig.bfq.queues[two];
    assert!(queue.past.is_io_bound());
    assert_eq!(rig.bfq.rules.wakers.waker(two), Some(five));
    assert_eq!((queue.raise.factor(), queue.raise.period()), (30, raise.period()));
    assert_eq!(rig.bfq.queues[one].raise.factor(), 1);
    rig.drain();
}

#[test]
fn a_shared_queue_that_seeks_is_split_and_each_task_gets_its_past_back() {
    let mut rig = merged(early());
    let shared = rig.of(1);
    let link = rig.link(1);
    let saved = rig.bfq.links[link].saved.expect("saved at the merge");
    make_seeky(&mut rig, 1);
    rig.bfq.note_seeky_shared(shared);
    assert!(rig.queue(1).split_wanted);
    rig.insert(read(1, 40_000_000));
    let own = rig.of(1);
    assert_ne!(own, shared);
    assert_eq!(rig.bfq.queues[own].split_time, Some(rig.now));
    assert_eq!(rig.bfq.queues[own].owner, Some(link));
    assert_eq!(rig.bfq.rules.inject.measured(own), saved.inject);
    assert_eq!(rig.queue(2).process_refs, 1);
    // The last one keeps it.
    rig.insert(read(2, 90_000_000));
    assert_eq!(rig.of(2), shared);
    let queue = rig.queue(2);
    assert!(!queue.shared && !queue.split_wanted && queue.owner.is_some());
    assert_eq!(rig.notes().iter().filter(|&&r| r == Reason::QueueSplit).count(), 2);
    rig.drain();
}

#[test]
fn raising_is_resumed_after_a_split_if_its_time_is_not_over() {
    let config = Config { low_latency: true, ..early() };
    // (how long shared, burst, factor before, interactive start ago, factor after)
    let cases = [
        (ms(500), false, 30, None, 30),
        (ms(500), true, 30, None, 1),
        (ms(20_000), false, 30, None, 1),
        (ms(200), false, 3000, None, 3000),
        (ms(500), false, 3000, Some(ms(1000)), 30),
        (ms(500), true, 3000, Some(ms(1000)), 1),
        (ms(500), false, 3000, Some(ms(15_000)), 1),
    ];
    for (shared, burst, before, ago, after) in cases {
        let mut rig = merged(Config { ..config });
        let (link, now) = (rig.link(1), rig.now);
        let saved = rig.bfq.links[link].saved.as_mut().unwrap();
        saved.raise.has_factor(before);
        saved.raise.adopt(now, if before == 30 { ms(10_500) } else { ms(300) });
        saved.raise.has_interrupted(ago.map(|ago| now - ago));
        saved.burst.in_large = burst;
        make_seeky(&mut rig, 1);
        rig.queue(1).split_wanted = true;
        rig.now = rig.now + shared;
        let soft_rt_next = rig.now + ms(100_000);
        rig.insert(read(1, 40_000_000));
        assert_eq!(rig.factor(1), after, "{shared:?}, burst {burst}, {before}, {ago:?}");
        let _ = soft_rt_next;
        rig.drain();
    }
}

#[test]
fn for_two_seconds_after_a_split_raising_stays_as_it_is() {
    for (quiet, expected) in [(ms(2000), 1), (ms(2000) + NS, 30)] {
        let mut rig = merged(Config { low_latency: true, ..early() });
        let link = rig.link(1);
        rig.bfq.links[link].saved.as_mut().unwrap().raise.has_factor(1);
        make_seeky(&mut rig, 1);
        rig.queue(1).split_wanted = true;
        rig.serve(read(1, 40_000_000));
        assert_eq!(rig.factor(1), 1);
        rig.pass(ms(100));
        rig.queue(1).drained_at = None;
        let split = rig.queue(1).split_time.unwrap();
        rig.pass(quiet - rig.now.since(split));
        rig.insert(read(1, 50_000_000));
        assert_eq!(rig.factor(1), expected, "{quiet:?} after the split");
        rig.drain();
    }
}

#[test]
fn a_queue_merged_while_it_is_new_is_remembered_as_raised() {
    let config = Config { low_latency: true, ..early() };
    let mut rig = near(config, 1024);
    rig.insert(read(3, 1100));
    assert_eq!(rig.of(3), rig.of(2), "at its first request");
    let link = rig.link(3);
    let saved = rig.bfq.links[link].saved.unwrap();
    assert_eq!((saved.raise.factor(), saved.raise.period()), (30, (rig.now, rig.bfq.raise_duration())));
    rig.drain();
}

#[test]
fn shared_queues_are_not_raised_but_stably_merged_ones_are() {
    let mut rig = merged(Config { low_latency: true, soft_realtime: false, ..early() });
    let q = rig.of(1);
    rig.cx(|bfq, cx| bfq.end_raising(cx, q));
    rig.pass(ms(3000));
    rig.insert(read(1, 2000));
    assert_eq!(rig.factor(1), 1);
    rig.drain();
    rig.pass(ms(3000));
    let link = rig.link(1);
    rig.bfq.links[link].stably_merged = true;
    rig.insert(read(1, 2008));
    assert_eq!(rig.factor(1), 30);
    rig.drain();
}

#[test]
fn on_flash_queues_created_together_become_one_at_once() {
    for (gap, together) in [(ms(180), true), (ms(180) + NS, false)] {
        let mut rig = Rig::flash(stable());
        rig.serve(read(1, 1000));
        let created = rig.queue(1).created;
        rig.pass(gap - rig.now.since(created));
        rig.insert(read(2, 9_000_000));
        assert_eq!(rig.of(1) == rig.of(2), together, "{gap:?} apart");
        for task in [1, 2] {
            let link = rig.link(task);
            assert_eq!(rig.bfq.links[link].stably_merged, together);
        }
        rig.drain();
    }
}

#[test]
fn only_queues_that_are_alike_become_one_for_good() {
    let others = [
        of_level(read(2, 9_000_000), Class::BestEffort, 3),
        of_level(read(2, 9_000_000), Class::RealTime, 4),
        in_group(read(2, 9_000_000), 1),
    ];
    for rq in others {
        let mut rig = Rig::flash(stable());
        rig.serve(read(1, 1000));
        rig.serve(rq);
        assert_ne!(rig.of(1), rig.of(2), "{rq:?}");
    }
    let mut rig = Rig::flash(Config { stable_merge: false, ..stable() });
    rig.serve(read(1, 1000));
    rig.serve(read(2, 9_000_000));
    assert_ne!(rig.of(1), rig.of(2), "switched off");
}

#[test]
fn the_last_created_is_remembered_for_600_ms() {
    let mut rig = Rig::flash(stable());
    rig.serve(read(1, 1000));
    let created = rig.queue(1).created;
    let last = |rig: &Rig| rig.bfq.groups[GroupId::ROOT].last_created;
    assert_eq!(last(&rig), Some(rig.of(1)));
    rig.pass(ms(600) - rig.now.since(created));
    rig.serve(read(2, 9_000_000));
    assert_eq!(last(&rig), Some(rig.of(1)), "too late for it, but it stays");
    rig.pass(NS);
    rig.serve(read(3, 5_000_000));
    assert_eq!(last(&rig), Some(rig.of(3)));
    rig.exit(3);
    assert_eq!(last(&rig), None);
}

/// On a disk: task 2's queue was created 20 ms after task 1's.
fn watched() -> Rig {
    let mut rig = Rig::new(stable());
    rig.serve(read(1, 1000));
    rig.pass(ms(19));
    rig.serve(read(2, 9_000_000));
    rig
}

#[test]
fn on_a_disk_the_newcomer_decides_after_600_ms() {
    for (wait, decided) in [(ms(600), false), (ms(600) + NS, true)] {
        let mut rig = watched();
        let (one, created) = (rig.of(1), rig.queue(2).created);
        let link = rig.link(2);
        assert_eq!(rig.bfq.links[link].stable_target, Some(one));
        assert_eq!(rig.queue(1).stable_refs, 1);
        make_seeky(&mut rig, 2);
        rig.pass(wait - rig.now.since(created));
        rig.insert(read(2, 40_000_000));
        assert_eq!(rig.of(2) == one, decided, "after {wait:?}");
        assert_eq!(rig.bfq.links[link].stably_merged, decided);
        assert_eq!(rig.bfq.queues[one].stable_refs, u32::from(!decided));
        rig.drain();
    }
}

#[test]
fn a_newcomer_that_reads_sequentially_stays_alone() {
    let mut rig = watched();
    let one = rig.of(1);
    rig.pass(ms(700));
    rig.queue(2).past.has_io_bound(true);
    let two = rig.of(2);
    assert!(rig.bfq.boosts(two));
    rig.insert(read(2, 9_000_008));
    assert_ne!(rig.of(2), one);
    let link = rig.link(2);
    assert_eq!(rig.bfq.links[link].stable_target, None, "for ever");
    assert_eq!(rig.queue(1).stable_refs, 0);
    rig.drain();
}

#[test]
fn queues_merged_for_good_are_never_split() {
    let mut rig = watched();
    make_seeky(&mut rig, 2);
    rig.pass(ms(700));
    rig.serve(read(2, 40_000_000));
    let shared = rig.of(1);
    assert_eq!(rig.of(2), shared);
    for i in 0..40 {
        make_seeky(&mut rig, 1);
        rig.bfq.note_seeky_shared(shared);
        rig.insert(read(1 + i % 2, 1_000_000 * u64::from(i)));
        assert_eq!((rig.of(1), rig.of(2)), (shared, shared));
    }
    assert!(rig.queue(1).split_wanted);
    rig.drain();
    // One that joined it by position leaves it again.
    let mut rig = watched();
    rig.bfq.rules.merge.setting.by_position = true;
    make_seeky(&mut rig, 2);
    rig.pass(ms(700));
    rig.serve(read(2, 40_000_000));
    let shared = rig.of(1);
    rig.serve(read(3, 77_000_000));
    rig.queue(1).past.has_seeks(1);
    rig.insert(read(1, 77_000_016));
    rig.insert(read(3, 77_000_008));
    if rig.of(3) == shared {
        make_seeky(&mut rig, 1);
        rig.queue(1).split_wanted = true;
        rig.insert(read(3, 5_000_000));
        rig.insert(read(1, 6_000_000));
        assert_ne!(rig.of(3), shared);
        assert_eq!(rig.of(1), shared);
    }
    rig.drain();
}
