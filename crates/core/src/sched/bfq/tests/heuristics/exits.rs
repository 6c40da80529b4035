//! Tasks that go away while their queues are merging, merged, splitting or waited for.

use super::*;

fn all() -> Config {
    Config { queue_merge: true, stable_merge: false, bursts: true, low_latency: true, ..Config::live() }
}

/// Queues of tasks 1, 2 and 3, linked 1 → 2 → 3, and no task has followed yet.
fn chain() -> Rig {
    let mut rig = Rig::new(Config { low_latency: false, bursts: false, ..all() });
    for task in 1..=3 {
        rig.serve(read(task, 1_000_000 * u64::from(task)));
        rig.pass(ms(30));
    }
    let (one, two, three) = (rig.of(1), rig.of(2), rig.of(3));
    // As two links made within one event each would be.
    rig.bfq.queues[one].merge_to = Some(two);
    rig.bfq.queues[two].process_refs += 1;
    rig.bfq.queues[two].merge_to = Some(three);
    rig.bfq.queues[three].process_refs += 2;
    rig.check();
    rig
}

/// Sends a request of each task that is left, drains and ends all: everything must be given back.
fn finish(mut rig: Rig, left: &[u32]) {
    let queues = 1;
    for &task in left {
        rig.insert(read(task, 10_000_000 * u64::from(task)));
    }
    rig.drain();
    for &task in left {
        rig.exit(task);
    }
    rig.pass(ms(200));
    rig.drain();
    assert_eq!(rig.in_use(), queues, "the fallback is left");
    for (_, link) in rig.bfq.links.iter() {
        assert_eq!((link.sync, link.stable_target), (None, None));
    }
}

#[test]
fn each_of_a_chain_of_three_may_exit_at_any_step() {
    let orders = [[1, 2, 3], [1, 3, 2], [2, 1, 3], [2, 3, 1], [3, 1, 2], [3, 2, 1]];
    for order in orders {
        for exits in 0..=3 {
            let mut rig = chain();
            for &task in &order[..exits] {
                rig.exit(task);
            }
            finish(rig, &order[exits..]);
        }
        // One follows before the first exits.
        for follower in 1..=3 {
            let mut rig = chain();
            rig.insert(read(follower, 500));
            let end = rig.of(follower);
            assert!(rig.bfq.queues[end].merge_to.is_none());
            for (i, &task) in order.iter().enumerate() {
                rig.exit(task);
                let _ = rig.dispatch();
                if i == 1 {
                    rig.pass(ms(3));
                }
            }
            rig.drain_issued();
            finish(rig, &[]);
        }
    }
}

#[test]
fn all_tasks_of_a_chain_end_up_in_its_last_queue() {
    let mut rig = chain();
    let three = rig.of(3);
    for task in [1, 2, 3] {
        rig.insert(read(task, 500 + u64::from(task)));
        assert_eq!(rig.of(task), three);
    }
    assert_eq!(rig.bfq.queues[three].process_refs, 3);
    finish(rig, &[1, 2, 3]);
}

/// Tasks 1 and 2 share 2's queue, and both have requests queued.
fn sharing() -> Rig {
    let mut rig = Rig::new(Config { low_latency: false, ..all() });
    rig.serve(read(1, 1000));
    rig.serve(read(1, 1008));
    rig.insert(read(2, 1024));
    rig.insert(read(1, 1016));
    assert_eq!(rig.of(1), rig.of(2));
    rig
}

#[test]
fn a_task_of_a_shared_queue_may_exit_with_requests_queued_or_at_the_device() {
    for issue_first in [false, true] {
        for first in [1, 2] {
            let mut rig = sharing();
            if issue_first {
                rig.pass(ms(20));
                rig.issue();
            }
            rig.exit(first);
            rig.drain_issued();
            let other = 3 - first;
            assert_eq!(rig.queue(other).process_refs, 1);
            finish(rig, &[other]);
        }
    }
}

#[test]
fn a_split_right_after_the_merge_works() {
    let mut rig = sharing();
    let shared = rig.of(1);
    rig.queue(1).split_wanted = true;
    rig.insert(read(1, 40_000_000));
    assert_ne!(rig.of(1), shared);
    rig.insert(read(2, 80_000_000));
    assert_eq!(rig.of(2), shared);
    assert!(!rig.queue(2).shared);
    finish(rig, &[1, 2]);
    // With the other one gone at the same moment.
    let mut rig = sharing();
    rig.queue(1).split_wanted = true;
    rig.exit(2);
    rig.insert(read(1, 40_000_000));
    assert_eq!(rig.queue(1).process_refs, 1);
    finish(rig, &[1]);
}

#[test]
fn a_split_while_another_merge_is_pending_leaves_the_whole_chain() {
    let mut rig = sharing();
    rig.serve(read(3, 60_000_000));
    let (shared, three) = (rig.of(1), rig.of(3));
    rig.bfq.queues[shared].merge_to = Some(three);
    rig.bfq.queues[three].process_refs += 2;
    rig.queue(1).split_wanted = true;
    rig.check();
    rig.insert(read(1, 40_000_000));
    assert!(rig.of(1) != shared && rig.of(1) != three);
    assert_eq!((rig.bfq.queues[shared].process_refs, rig.bfq.queues[three].process_refs), (1, 2));
    rig.insert(read(2, 80_000_000));
    assert!(rig.of(2) != shared && rig.of(2) != three, "it wants to be alone too, and a merge was pending");
    assert_eq!(rig.bfq.queues[three].process_refs, 1);
    finish(rig, &[1, 2, 3]);
}

#[test]
fn the_target_of_a_stable_merge_may_be_gone_when_it_is_decided() {
    let config = Config { queue_merge: false, stable_merge: true, low_latency: false, ..all() };
    let mut rig = Rig::new(config);
    rig.serve(read(1, 1000));
    rig.pass(ms(19));
    rig.serve(read(2, 9_000_000));
    let (target, link) = (rig.of(1), rig.link(2));
    rig.exit(1);
    rig.pass(ms(30));
    assert!(!rig.bfq.queues[target].in_use);
    assert_eq!(rig.bfq.links[link].stable_target, None);
    rig.pass(ms(700));
    rig.insert(read(2, 40_000_000));
    assert!(!rig.queue(2).shared);
    finish(rig, &[2]);
    // The one that was to decide is gone.
    let mut rig = Rig::new(config);
    rig.serve(read(1, 1000));
    rig.pass(ms(19));
    rig.serve(read(2, 9_000_000));
    rig.exit(2);
    assert_eq!(rig.queue(1).stable_refs, 0);
    finish(rig, &[1]);
    // The target has no task any more, but requests.
    let mut rig = Rig::new(config);
    rig.serve(read(1, 1000));
    rig.pass(ms(19));
    rig.serve(read(2, 9_000_000));
    rig.pass(ms(700));
    rig.queue(2).past.has_seeks(u32::MAX >> 1);
    rig.insert(read(1, 2000));
    rig.exit(1);
    rig.insert(read(2, 40_000_000));
    assert!(!rig.queue(2).shared, "no other task shares it");
    finish(rig, &[2]);
}

#[test]
fn a_queue_in_service_that_lost_its_task_gives_way() {
    let mut rig = Rig::new(Config { low_latency: false, ..all() });
    rig.serve(read(1, 1000));
    let one = rig.of(1);
    assert_eq!(rig.bfq.in_service, Some(one), "idled for");
    rig.insert(read(2, 9_000_000));
    rig.exit(1);
    assert_ne!(rig.bfq.in_service, Some(one));
    assert_eq!(rig.issue().1, 2);
    rig.drain_issued();
    finish(rig, &[2]);
}

#[test]
fn a_task_that_moves_to_another_group_leaves_its_queue_to_tasks_that_are_about_to_come() {
    let mut rig = chain();
    let three = rig.of(3);
    rig.insert(in_group(read(3, 500), 1));
    assert_ne!(rig.of(3), three);
    assert_eq!((rig.bfq.queues[three].process_refs, rig.bfq.queues[three].owner), (2, None));
    for task in [1, 2] {
        rig.insert(read(task, 9000));
        assert_eq!(rig.of(task), three);
    }
    rig.drain();
    for task in 1..=3 {
        rig.exit(task);
    }
    finish(rig, &[]);
    // One in the middle leaves the chain.
    let mut rig = chain();
    rig.insert(in_group(read(2, 500), 1));
    assert_ne!(rig.of(1), rig.of(2));
    rig.insert(read(1, 9000));
    assert_eq!(rig.of(1), rig.of(3));
    finish(rig, &[1, 2, 3]);
}

#[test]
fn when_queues_run_out_the_fallback_takes_all_and_heuristics_leave_it_alone() {
    let mut rig = Rig::with(Limits { tasks: 2, ..Limits::default() }, all());
    for round in 0..20_u64 {
        for task in 1..8 {
            rig.serve(read(task, 1000 + 8 * round));
        }
        rig.pass(ms(40));
    }
    let fallback = &rig.bfq.queues[QueueId::FALLBACK];
    assert_eq!((fallback.raise.factor(), fallback.merge_to, fallback.shared), (1, None, false));
    assert!(!rig.bfq.rules.bursts.is_member(QueueId::FALLBACK));
    assert_eq!(rig.bfq.rules.wakers.first_woken(QueueId::FALLBACK), None);
}
