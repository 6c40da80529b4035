//! The engine, rule by rule: budgets, slots, idling, classes, groups, admission.

use super::rig::*;
use crate::sched::bfq::rules::idle::Boost;
use crate::sched::bfq::view::Expire;
use crate::trace::Detail;
use crate::units::Weight;
use core::num::NonZeroU16;

/// Tasks 1 and 2 have requests, and task 1's queue is in service.
fn two_readers(config: Config) -> Rig {
    let mut rig = Rig::new(config);
    for i in 0..4 {
        rig.insert(read(1, 1000 + 8 * i));
        rig.insert(read(2, 9_000_000 + 8 * i));
    }
    assert_eq!(rig.issue().1, 1);
    rig
}

fn in_service(rig: &Rig) -> Option<TaskId> {
    rig.bfq.in_service.map(|q| rig.bfq.queues[q].task)
}

fn random(task: u32, i: u64) -> Request {
    read(task, (i * 7_654_321) % (1 << 30) + 8)
}

/// Makes a task's queue seeky, or not.
fn seek(rig: &mut Rig, task: u32, seeky: bool) {
    let bits = if seeky { u32::MAX >> 8 } else { 1 };
    rig.queue(task).past.has_seeks(bits);
}

mod budgets {
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
}

mod idles {
    use super::*;

    #[test]
    //= docs/reference/bfq.md#41-when-to-idle type=test
    fn the_merged_truth_table() {
        // A queue with others beside it, all alike; then the rows that need idling, one by one.
        for needed in [false, true] {
            for raised_busy in [false, true] {
                for boost in [Boost::All, Boost::Sequential, Boost::None] {
                    for sequential in [false, true] {
                        let mut rig = two_readers(plain());
                        let q = rig.of(1);
                        seek(&mut rig, 1, !sequential);
                        rig.bfq.rules.idle.has_boost(boost);
                        let (groups, raised) = (rig.bfq.groups_pending, rig.bfq.wr_busy);
                        rig.bfq.groups_pending += u32::from(needed);
                        rig.bfq.wr_busy = u32::from(raised_busy);
                        let pays = boost == Boost::All || boost == Boost::Sequential && sequential;
                        let idles = needed || !raised_busy && pays;
                        assert_eq!(rig.bfq.better_to_idle(q), idles, "{needed} {raised_busy} {boost:?}");
                        (rig.bfq.groups_pending, rig.bfq.wr_busy) = (groups, raised);
                    }
                }
            }
        }
    }

    #[test]
    //= docs/reference/bfq.md#41-when-to-idle type=test
    fn what_a_device_is_decides_for_which_queues_idling_pays() {
        let rule = |rotational, queues: bool| {
            let limits = Limits { rotational, ..Limits::default() };
            let mut rig = Rig::with(limits, plain());
            if !queues {
                // Nothing else than one at a time, under load.
                for i in 0..40 {
                    rig.insert(read(1, 1000 * i));
                }
                rig.drain();
            }
            assert_eq!(rig.bfq.rules.depth.may_queue(), queues);
            rig.bfq.rules.idle.boost()
        };
        assert_eq!((rule(true, false), rule(true, true)), (Boost::All, Boost::Sequential));
        assert_eq!((rule(false, false), rule(false, true)), (Boost::Sequential, Boost::None));
        let off = |config: Config, rotational| {
            Rig::with(Limits { rotational, ..Limits::default() }, config).bfq.rules.idle.boost()
        };
        assert_eq!(off(Config { ncq_random: false, ..plain() }, true), Boost::All);
        assert_eq!(off(Config { ncq_flash: false, ..plain() }, false), Boost::Sequential);
        assert_eq!(off(Config { throughput_boost: false, ..plain() }, true), Boost::Early);
    }

    #[test]
    //= docs/reference/bfq.md#41-when-to-idle type=test
    fn the_guards_come_first() {
        let mut rig = two_readers(plain());
        let q = rig.of(1);
        rig.bfq.rules.idle.has_boost(Boost::All);
        assert!(rig.bfq.better_to_idle(q));
        rig.queue(1).class = Class::Idle;
        assert!(!rig.bfq.better_to_idle(q));
        rig.bfq.rules.idle.setting.always = true;
        assert!(rig.bfq.better_to_idle(q));
        rig.queue(1).process_refs = 0;
        assert!(!rig.bfq.better_to_idle(q), "no request would come");
        let refs = &mut rig.queue(1).process_refs;
        *refs = 1;
        rig.bfq.rules.idle.setting.always = false;
        rig.queue(1).class = Class::BestEffort;
        rig.bfq.rules.idle.setting.slice_idle = Duration::ZERO;
        assert!(!rig.bfq.better_to_idle(q));
    }

    #[test]
    //= docs/reference/bfq.md#41-when-to-idle needed type=test
    fn a_raised_queue_is_protected_from_those_that_are_not() {
        let mut rig = two_readers(plain());
        let q = rig.of(1);
        rig.bfq.rules.idle.has_boost(Boost::None);
        assert!(!rig.bfq.better_to_idle(q));
        rig.queue(1).raise.has_factor(30);
        rig.bfq.wr_busy = 1;
        assert!(rig.bfq.needed(q), "the other is not raised");
        rig.bfq.wr_busy = 2;
        assert!(!rig.bfq.needed(q), "all are");
        rig.bfq.in_flight += 4;
        assert!(rig.bfq.needed(q), "four of others are at the device");
        rig.bfq.rules.idle.setting.for_raised = false;
        assert!(!rig.bfq.needed(q));
        rig.bfq.in_flight -= 4;
        rig.bfq.wr_busy = 0;
        rig.queue(1).raise.has_factor(1);
    }

    #[test]
    //= docs/reference/bfq.md#33-asymmetric-scenarios type=test
    fn the_lightest_queue_needs_no_protection() {
        let mut rig = Rig::new(plain());
        for (task, level) in [(1, 0), (2, 4), (3, 4)] {
            rig.insert(of_level(read(task, 1_000_000 * u64::from(task)), Class::BestEffort, level));
        }
        let asymmetric = |rig: &Rig, task| rig.bfq.asymmetric(rig.of(task));
        assert!(asymmetric(&rig, 1) && !asymmetric(&rig, 2) && !asymmetric(&rig, 3));
        rig.insert(of_level(read(4, 7), Class::RealTime, 4));
        assert!(asymmetric(&rig, 2), "two classes");
        rig.drain();
        rig.pass(ms(100));
        rig.insert(read(2, 7));
        rig.insert(read(3, 700));
        assert!(!asymmetric(&rig, 2), "only weights of those that have something to do count");
        rig.insert(in_group(read(5, 70_000), 1));
        assert!(asymmetric(&rig, 2), "two groups");
    }

    /// For how long the disk idles for task 1.
    fn idle_time(prepare: impl Fn(&mut Rig)) -> Duration {
        let mut rig = Rig::new(plain());
        rig.bfq.rules.idle.has_boost(Boost::All);
        let tag = rig.insert(read(1, 1000));
        assert_eq!(rig.issue().0, tag);
        rig.insert(read(2, 9_000_000));
        prepare(&mut rig);
        rig.complete(tag);
        let (at, _) = rig.bfq.next_timer().expect("the disk idles");
        at.since(rig.now)
    }

    #[test]
    //= docs/reference/bfq.md#26-idling type=test
    fn how_long_the_disk_idles() {
        assert_eq!(idle_time(|_| ()), ms(8));
        assert_eq!(idle_time(|rig| seek(rig, 1, true)), ms(2), "a seeky one among equals");
        let needed = |rig: &mut Rig| {
            seek(rig, 1, true);
            rig.insert(of_level(read(3, 5_000_000), Class::Idle, 7));
        };
        assert_eq!(idle_time(needed), ms(8), "a seeky one among others");
    }

    #[test]
    //= docs/reference/bfq.md#43-strict-guarantees, docs/reference/bfq.md#84-scheduling-theorems S8 type=test
    fn strict_guarantees_mean_one_request_at_a_time_and_idling_for_all() {
        let config = Config { strict_guarantees: true, slice_idle: Duration::ZERO, ..plain() };
        let mut rig = Rig::new(config);
        let first = rig.insert(write(1, 1000));
        rig.insert(read(2, 9_000_000));
        assert_eq!(rig.issue().0, first);
        assert_eq!(rig.dispatch(), Dispatch::Hold(Hold::Depth));
        rig.complete(first);
        assert_eq!(rig.dispatch(), Dispatch::Hold(Hold::SliceIdle), "for an async queue, too");
        assert_eq!(rig.bfq.next_timer().unwrap().0.since(rig.now), ms(8));
        rig.drain();
    }

    #[test]
    //= docs/reference/bfq.md#84-scheduling-theorems S1 type=test
    fn without_idling_no_request_is_held() {
        let mut rig = Rig::new(Config { slice_idle: Duration::ZERO, ..Config::live() });
        for i in 0..200 {
            for task in 0..5 {
                rig.insert(random(task, i * 5 + u64::from(task)));
            }
            while rig.requests.queued() > 2 {
                let (tag, _) = rig.issue();
                rig.pass(ms(1));
                rig.complete(tag);
            }
        }
        rig.drain();
    }

    #[test]
    fn a_small_request_that_ends_idling_may_leave_at_once() {
        let mut rig = Rig::new(plain());
        rig.serve(read(1, 1000));
        assert!(rig.queue(1).waiting);
        let tag = rig.insert(read(1, 1008));
        assert!(rig.queue(1).waiting, "it might grow");
        assert_eq!(rig.issue().0, tag);
        assert!(!rig.queue(1).waiting && rig.bfq.next_timer().is_none());
        rig.complete(tag);
        rig.insert(Request { len: Sectors(64), ..read(1, 1016) });
        assert!(!rig.queue(1).waiting, "a large one ends it");
    }
}

mod slots {
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
}

mod outside {
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
}

mod retuning {
    use super::*;

    fn retune(rig: &mut Rig, config: Config) -> bool {
        let done = rig.cx(|bfq, cx| bfq.reconfigure(cx, config)).unwrap();
        rig.check();
        done
    }

    #[test]
    //= docs/reference/bfq.md#713-tunables-and-shutdown type=test
    //= docs/reference/bfq.md#84-scheduling-theorems S9 type=test
    fn with_low_latency_off_no_queue_is_raised_any_more() {
        let mut rig = Rig::new(Config::live());
        rig.insert(read(1, 1000));
        rig.insert(read(1, 1008));
        let (tag, _) = rig.issue();
        assert_eq!((rig.factor(1), rig.weight(1)), (30, 1200));
        assert!(retune(&mut rig, Config { low_latency: false, ..Config::live() }));
        assert_eq!((rig.factor(1), rig.bfq.wr_busy), (1, 0));
        rig.issue();
        assert_eq!(rig.weight(1), 40, "with its next dispatch");
        rig.complete(tag);
        rig.drain_issued();
    }

    #[test]
    //= docs/reference/bfq.md#43-strict-guarantees, docs/reference/bfq.md#713-tunables-and-shutdown type=test
    fn strict_guarantees_bring_idling_back() {
        let off = Config { slice_idle: Duration::ZERO, ..plain() };
        let mut rig = Rig::new(off);
        rig.serve(read(1, 1000));
        assert_eq!(rig.bfq.next_timer(), None);
        assert!(retune(&mut rig, Config { strict_guarantees: true, ..off }));
        rig.serve(read(1, 1008));
        assert_eq!(rig.bfq.next_timer().map(|(at, _)| at.since(rig.now)), Some(ms(8)));
    }

    #[test]
    fn a_new_timeout_changes_the_largest_budget() {
        let mut rig = Rig::new(plain());
        assert!(retune(&mut rig, Config { timeout_sync: ms(250), ..plain() }));
        assert_eq!(rig.bfq.bmax_now, 2 * 17_801);
        assert!(retune(&mut rig, Config { max_budget: Sectors(7), ..plain() }));
        assert_eq!(rig.bfq.bmax_now, 7);
    }

    #[test]
    fn what_it_was_sized_for_stays() {
        let mut rig = two_readers(plain());
        for config in [
            Config { hierarchy: false, ..plain() },
            Config { actuators: false, ..plain() },
            Config { repairs: false, ..plain() },
            Config { tick: ms(4), ..plain() },
        ] {
            assert!(!retune(&mut rig, config));
            assert_eq!(rig.bfq.config, plain());
        }
        let bad = Config { wr_coeff: 0, ..plain() };
        assert!(rig.cx(|bfq, cx| bfq.reconfigure(cx, bad)).is_err());
    }
}

mod engine_of_2010 {
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
}
