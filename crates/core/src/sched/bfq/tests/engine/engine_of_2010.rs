//! The engine of 2010.

use super::*;

#[test]
//= docs/reference/bfq.md#2-the-v0-engine table type=test
fn an_async_queue_sends_four_requests_and_lets_sync_ones_finish() {
    let mut rig = Rig::new(Config::v0());
    for i in 0..8 {
        rig.insert(write(1, 1000 + 8 * i));
    }
    let reader = rig.insert(read(2, 9_000_000));
    let mut sent = Vec::new();
    for _ in 0..4 {
        sent.push(rig.issue());
    }
    assert!(sent.iter().all(|&(_, task)| task == 1));
    assert_eq!(rig.issue().0, reader, "the quota is used up");
    for (tag, _) in sent {
        rig.complete(tag);
    }
    assert!(matches!(rig.dispatch(), Dispatch::Hold(_)), "not while the read is at the device");
    rig.complete(reader);
    rig.drain();
}

#[test]
//= docs/reference/bfq.md#2-the-v0-engine table type=test
fn a_slot_begins_with_its_first_completion() {
    let mut rig = Rig::new(Config::v0());
    let tag = rig.insert(read(1, 1000));
    rig.insert(read(1, 1008));
    assert_eq!(rig.issue().0, tag);
    let q = rig.of(1);
    assert!(!rig.bfq.timed_out(rig.now + Duration::from_secs(100), q));
    rig.pass(ms(50));
    rig.complete(tag);
    assert!(!rig.bfq.timed_out(rig.now + ms(124), q) && rig.bfq.timed_out(rig.now + ms(125), q));
    rig.drain();
}

#[test]
//= docs/reference/bfq.md#2-the-v0-engine table type=test
fn a_queue_that_times_out_pays_for_a_whole_budget() {
    let mut rig = Rig::new(Config::v0());
    rig.insert(read(1, 1000));
    rig.insert(read(1, 1008));
    let (tag, _) = rig.issue();
    rig.complete(tag);
    let q = rig.of(1);
    assert_eq!((rig.queue(1).next_budget, rig.bfq.bmin()), (12_288, 8192));
    let start = rig.bfq.hierarchy.times(q).0;
    rig.cx(|bfq, cx| bfq.expire(cx, Expire::BudgetTimeout));
    assert_eq!(rig.bfq.hierarchy.times(q).0, start + (12_288_u64 << 22) / 40);
    rig.drain();
}

#[test]
//= docs/reference/bfq.md#30-cfq-clean-ups, docs/reference/bfq.md#38-interactive-queues type=test
fn no_queue_takes_the_disk_away() {
    let mut rig = two_readers(Config::v0());
    rig.insert(of_level(read(3, 5_000_000), Class::RealTime, 0));
    assert_eq!(in_service(&rig), Some(TaskId(1)));
    rig.drain_issued();
}

#[test]
//= docs/reference/bfq.md#2-the-v0-engine table type=test
fn budgets_go_by_steps() {
    let mut rig = Rig::new(Config::v0());
    rig.serve(read(1, 1000));
    let q = rig.of(1);
    for (reason, old, next) in [
        (Expire::TooIdle, 9000, 8872),
        (Expire::TooIdle, 8200, 8192),
        (Expire::BudgetTimeout, 8192, 12_288),
        (Expire::BudgetExhausted, 9000, 10_024),
        (Expire::BudgetExhausted, 16_000, 16_384),
        (Expire::NoMoreRequests, 9000, 9000),
    ] {
        rig.queue(1).next_budget = old;
        rig.cx(|bfq, cx| bfq.feed_back(cx.requests, q, reason));
        assert_eq!(rig.queue(1).next_budget, next, "{reason:?}");
    }
}
