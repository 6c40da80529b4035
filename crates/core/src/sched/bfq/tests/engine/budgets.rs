//! Budgets: how much a queue may send in its slot.

use super::*;

#[test]
//= docs/reference/bfq.md#86-test-vectors slots_seen type=test
fn the_eleventh_slot_makes_the_measured_budget_count() {
    let mut rig = Rig::new(plain());
    rig.bfq.bmax_now = 40_000;
    for seen in [32, 60, 84, 105, 123, 139, 153, 165, 176, 186] {
        rig.bfq.count_slot();
        assert_eq!((rig.bfq.slots_seen, rig.bfq.bmax()), (seen, 16_384));
    }
    rig.bfq.count_slot();
    assert_eq!((rig.bfq.slots_seen, rig.bfq.bmax(), rig.bfq.bmin()), (194, 40_000, 1250));
    rig.bfq.count_slot();
    assert_eq!(rig.bfq.slots_seen, 201);
}

/// The next budget of a queue that had `old`, was served `service`, and has requests at the device.
fn fed_back(rig: &mut Rig, reason: Expire, old: u32, in_flight: u32, service: u32) -> u32 {
    let q = rig.of(1);
    let queue = rig.queue(1);
    let before = queue.in_flight;
    (queue.next_budget, queue.in_flight) = (old, in_flight);
    rig.bfq.hierarchy.set_service(q, service);
    rig.bfq.feed_back(&rig.requests, q, reason);
    let queue = rig.queue(1);
    queue.in_flight = before;
    queue.next_budget
}

#[test]
//= docs/reference/bfq.md#22-feedback-at-expiry type=test
fn budgets_grow_by_factors_and_shrink_by_steps() {
    use Expire::*;
    let mut rig = Rig::new(plain());
    rig.serve(read(1, 1000));
    // C = 16384, so the smallest is 512.
    for (reason, old, in_flight, service, next) in [
        (TooIdle, 4000, 1, 0, 8000),
        (TooIdle, 10_000, 1, 0, 16_384),
        (TooIdle, 4000, 0, 0, 1952),
        (TooIdle, 2561, 0, 0, 513),
        (TooIdle, 2560, 0, 0, 512),
        (BudgetTimeout, 4000, 0, 0, 8000),
        (BudgetExhausted, 4000, 0, 4000, 16_000),
        (BudgetExhausted, 5000, 0, 5000, 16_384),
        (NoMoreRequests, 4000, 0, 700, 700),
        (NoMoreRequests, 4000, 0, 300, 512),
        (Preempted, 4000, 0, 300, 4000),
    ] {
        assert_eq!(fed_back(&mut rig, reason, old, in_flight, service), next, "{reason:?} of {old}");
    }
}

#[test]
//= docs/reference/bfq.md#83-budgets U3 type=test
fn a_queue_that_always_uses_it_up_has_the_largest_after_three_slots() {
    let mut rig = Rig::new(plain());
    rig.serve(read(1, 1000));
    let mut budget = 512;
    for next in [2048, 8192, 16_384, 16_384] {
        budget = fed_back(&mut rig, Expire::BudgetExhausted, budget, 0, budget);
        assert_eq!(budget, next);
    }
}

#[test]
//= docs/reference/bfq.md#22-feedback-at-expiry type=test
fn raised_queues_have_small_budgets_and_async_ones_the_largest() {
    let mut rig = Rig::new(plain());
    rig.serve(read(1, 1000));
    rig.queue(1).raise.has_factor(30);
    for reason in [Expire::TooIdle, Expire::BudgetExhausted, Expire::NoMoreRequests, Expire::Preempted] {
        assert_eq!(fed_back(&mut rig, reason, 9999, 0, 4000), 1024);
    }
    rig.queue(1).raise.has_factor(1);
    rig.queue(1).sync = false;
    for reason in [Expire::TooIdle, Expire::BudgetExhausted, Expire::NoMoreRequests] {
        assert_eq!(fed_back(&mut rig, reason, 512, 0, 4000), 16_384);
    }
}

#[test]
//= docs/reference/bfq.md#83-budgets U1 type=test
fn once_slots_were_seen_no_budget_is_above_the_measured_one() {
    let mut rig = Rig::new(plain());
    rig.serve(read(1, 1000));
    rig.bfq.bmax_now = 9000;
    assert_eq!(fed_back(&mut rig, Expire::NoMoreRequests, 512, 0, 20_000), 20_000, "warming up");
    rig.bfq.slots_seen = 200;
    assert_eq!(fed_back(&mut rig, Expire::NoMoreRequests, 512, 0, 20_000), 9000);
}

/// What a slot of task 1 of `ms` milliseconds with 300 sectors is charged, of a budget of 10922.
fn charged(rig: &mut Rig, reason: Expire, time: Duration) -> (u32, bool) {
    let q = rig.of(1);
    rig.bfq.hierarchy.set_budget(q, 10_922);
    rig.bfq.hierarchy.set_service(q, 300);
    rig.bfq.slot_start = rig.now;
    let end = rig.now + time;
    let slow = rig.bfq.settle(end, q, reason, end);
    (rig.bfq.hierarchy.service(q), slow)
}

#[test]
//= docs/reference/bfq.md#24-charge-by-time type=test
fn slow_queues_pay_for_their_time() {
    let mut rig = two_readers(plain());
    // More than 20 ms, and less than half of what the disk could do.
    assert_eq!(charged(&mut rig, Expire::NoMoreRequests, ms(60)), (16_384 * 60 / 125, true));
    assert_eq!(charged(&mut rig, Expire::NoMoreRequests, ms(999)), (16_384, true));
    assert_eq!(charged(&mut rig, Expire::NoMoreRequests, ms(20)), (300, false), "seeks decide");
    seek(&mut rig, 1, true);
    assert_eq!(charged(&mut rig, Expire::NoMoreRequests, ms(20)), (16_384 * 20 / 125, true));
    assert_eq!(charged(&mut rig, Expire::NoMoreRequests, NS), (16_384 * 8 / 125, true), "a brief slot");
    rig.queue(1).raise.has_factor(30);
    assert_eq!(charged(&mut rig, Expire::NoMoreRequests, ms(60)).0, 300, "raised");
    rig.queue(1).raise.has_factor(1);
}

#[test]
//= docs/reference/bfq.md#24-charge-by-time type=test
fn a_queue_that_times_out_with_a_third_of_its_budget_left_pays_for_its_time() {
    let mut rig = two_readers(plain());
    rig.bfq.bmax_now = 500;
    assert_eq!(charged(&mut rig, Expire::BudgetTimeout, ms(125)), (500, false));
    assert_eq!(charged(&mut rig, Expire::BudgetExhausted, ms(125)), (300, false));
    rig.bfq.bmax_now = 16_384;
}

#[test]
//= docs/reference/bfq.md#23-cost-of-a-request type=test
fn an_async_request_costs_three_times_its_size_among_equals() {
    let mut rig = Rig::new(plain());
    let write = rig.insert(write(1, 5000));
    let q = rig.asyn(1);
    assert_eq!(rig.bfq.charge(&rig.requests, write, q), 24);
    // Others of another weight: shares count exactly.
    rig.insert(of_level(read(2, 1000), Class::BestEffort, 7));
    assert_eq!(rig.bfq.charge(&rig.requests, write, q), 8);
}

#[test]
//= docs/reference/bfq.md#25-slot-clock type=test
fn an_awaited_queue_that_used_most_of_its_budget_is_not_cut() {
    let mut rig = Rig::new(plain());
    rig.serve(read(1, 1000));
    let q = rig.of(1);
    assert!(rig.queue(1).waiting);
    let late = rig.now + ms(200);
    assert!(rig.bfq.timed_out(late, q) && rig.bfq.may_time_out(late, q));
    let budget = rig.bfq.hierarchy.budget(q);
    rig.bfq.hierarchy.set_service(q, budget - budget / 3 + 1);
    assert!(!rig.bfq.may_time_out(late, q));
    rig.queue(1).waiting = false;
    assert!(rig.bfq.may_time_out(late, q));
    rig.queue(1).waiting = true;
}
