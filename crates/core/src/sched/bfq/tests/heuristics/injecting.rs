//! Injection and actuators.

use super::super::super::rules::inject::Measured;
use super::*;

fn injecting() -> Config {
    plain()
}

/// Task 1 is in service, the disk idles for it; task 2 and those of `others` have requests queued.
fn idling_beside(config: Config, others: core::ops::Range<u32>) -> Rig {
    let mut rig = Rig::new(config);
    rig.serve(read(1, 1000));
    let tag = rig.insert(read(1, 1008));
    rig.insert(read(2, 1_000_000));
    rig.insert(read(2, 1_000_008));
    for task in others {
        rig.insert(read(task, 10_000_000 * u64::from(task)));
    }
    assert_eq!(rig.issue().0, tag);
    rig.complete(tag);
    let one = rig.of(1);
    assert!(rig.bfq.in_service == Some(one) && rig.queue(1).waiting);
    // Idling gains nothing here, so that injection is allowed.
    rig.queue(1).past.has_io_bound(false);
    limit(&mut rig, 0);
    rig
}

/// The number of requests that may be at the device for others to be injected beside task 1's queue.
fn limit(rig: &mut Rig, limit: u32) {
    let (q, now) = (rig.of(1), rig.now);
    rig.bfq.rules.inject.has_measured(q, Measured::of(limit, Duration::ZERO, now));
}

/// The limit of task 1's queue was lowered that long ago.
fn changed(rig: &mut Rig, ago: Duration) {
    let (q, at) = (rig.of(1), rig.now - ago);
    rig.bfq.rules.inject.has_measured(q, Measured::of(0, Duration::ZERO, at));
}

fn idling(config: Config) -> Rig {
    idling_beside(config, 0..0)
}

fn choose(rig: &mut Rig) -> Option<(QueueId, Reason)> {
    let one = rig.of(1);
    rig.cx(|bfq, cx| bfq.choose_injected(cx, one))
}

#[test]
fn general_injection_goes_up_to_the_limit() {
    let mut rig = idling(injecting());
    assert_eq!(choose(&mut rig), None, "limit 0");
    assert!(!rig.bfq.rules.inject.state().0);
    limit(&mut rig, 1);
    assert_eq!(choose(&mut rig), Some((rig.of(2), Reason::Injected)));
    assert!(rig.bfq.rules.inject.state().0);
    assert_eq!(rig.issue().1, 2);
    assert_eq!(rig.bfq.in_service, Some(rig.of(1)), "its turn continues");
    assert_eq!(choose(&mut rig), None, "one is at the device");
    limit(&mut rig, 2);
    assert!(choose(&mut rig).is_some());
}

#[test]
fn no_general_injection_where_idling_gains_throughput_or_a_raised_queue_continues_soon() {
    let mut rig = idling(injecting());
    limit(&mut rig, 1);
    rig.queue(1).past.has_io_bound(true);
    assert_eq!(choose(&mut rig), None, "sequential on a disk");
    let mut rig = idling(injecting());
    limit(&mut rig, 1);
    let one = rig.of(1);
    rig.raise(one, 30);
    assert_eq!(choose(&mut rig), None, "the only raised queue");
    rig.queue(1).past.adopt_short_think(false);
    assert!(choose(&mut rig).is_some(), "but it thinks for long");
    rig.queue(1).past.adopt_short_think(true);
    let two = rig.of(2);
    rig.raise(two, 30);
    assert_eq!(choose(&mut rig).map(|c| c.0), Some(two), "the other is raised too");
    let mut rig = idling(Config { injection: false, ..injecting() });
    limit(&mut rig, 5);
    assert_eq!(choose(&mut rig), None, "switched off");
}

#[test]
fn only_raised_queues_are_injected_for_a_raised_one_that_continues_soon() {
    let mut rig = idling_beside(injecting(), 3..4);
    limit(&mut rig, 1);
    let (one, two, three) = (rig.of(1), rig.of(2), rig.of(3));
    rig.raise(one, 30);
    rig.raise(two, 30);
    assert_eq!(choose(&mut rig).map(|c| c.0), Some(two), "not {three:?}, which became busy last");
}

#[test]
fn on_flash_large_requests_are_not_injected_beside_others() {
    for (sectors, beside, expected) in [(64, true, false), (63, true, true), (64, false, true)] {
        let mut rig = Rig::flash(injecting());
        rig.serve(read(1, 1000));
        let tag = rig.insert(read(1, 1008));
        rig.issue();
        rig.complete(tag);
        assert!(rig.queue(1).waiting);
        rig.insert(Request { len: Sectors(sectors), ..read(2, 1_000_000) });
        let one = rig.of(1);
        rig.bfq.in_flight += u32::from(beside);
        limit(&mut rig, 2);
        let chosen = rig.cx(|bfq, cx| bfq.choose_injected(cx, one));
        assert_eq!(chosen.is_some(), expected, "{sectors} sectors");
        rig.bfq.in_flight -= u32::from(beside);
    }
}

#[test]
fn the_tasks_own_async_queue_comes_first_then_the_waker_then_the_woken() {
    let mut rig = idling_beside(injecting(), 3..5);
    let (one, two, three, four) = (rig.of(1), rig.of(2), rig.of(3), rig.of(4));
    rig.bfq.rules.wakers.set(one, Some(three));
    rig.bfq.rules.wakers.set(four, Some(one));
    assert_eq!(choose(&mut rig), Some((three, Reason::Waker)));
    rig.bfq.rules.wakers.set(one, None);
    assert_eq!(choose(&mut rig), Some((four, Reason::Waker)));
    rig.insert(write(1, 77_000));
    let own = rig.asyn(1);
    assert_eq!(choose(&mut rig), Some((own, Reason::Injected)), "before {two:?}, {three:?}, {four:?}");
    assert!(!rig.bfq.rules.inject.state().0, "that is no general injection");
}

#[test]
fn another_tasks_request_in_the_async_queue_is_not_its_own() {
    let mut rig = idling(injecting());
    rig.insert(write(9, 500));
    rig.insert(write(1, 77_000));
    let own = rig.asyn(1);
    let next = rig.bfq.queues[own].next_rq.unwrap();
    assert_eq!(rig.requests[next].rq.task, TaskId(9));
    assert_eq!(choose(&mut rig), None);
}

#[test]
fn an_injected_queue_that_empties_has_neither_budget_nor_service() {
    let mut rig = idling(injecting());
    let two = rig.of(2);
    for _ in 0..2 {
        limit(&mut rig, 4);
        let (tag, task) = rig.issue();
        assert_eq!(task, 2);
        rig.complete(tag);
    }
    let queue = &rig.bfq.queues[two];
    assert!(!queue.busy && queue.requests.is_empty());
    assert_eq!((rig.bfq.hierarchy.budget(two), rig.bfq.hierarchy.service(two)), (0, 0));
    rig.pass(ms(20));
    rig.insert(read(2, 2_000_000));
    assert!(rig.bfq.hierarchy.budget(two) >= 8, "and gets a budget when it is busy again");
    rig.drain();
}

#[test]
fn a_measurement_begins_when_a_request_comes_to_an_idle_device() {
    let mut rig = idling(injecting());
    changed(&mut rig, ms(10));
    rig.insert(read(1, 1016));
    assert!(rig.bfq.rules.inject.state().1);
    let tag = rig.issue().0;
    assert_eq!(rig.bfq.rules.inject.state().2, Some(tag));
    rig.pass(ms(3));
    rig.complete(tag);
    assert!(rig.bfq.rules.inject.known(rig.of(1)).1 >= ms(3));
    let mut rig = idling(injecting());
    changed(&mut rig, ms(9));
    rig.insert(read(1, 1016));
    assert!(!rig.bfq.rules.inject.state().1, "too soon after the limit was lowered");
}

#[test]
//= docs/reference/bfq.md#42-injection, docs/reference/bfq.md#b-kernel-quirks type=test
fn an_unknown_queue_that_is_awaited_for_long_gets_a_try_but_not_in_the_kernel() {
    for (kernel, expected) in [(false, true), (true, false)] {
        let mut rig = idling(injecting());
        rig.bfq.rules.inject.setting.tries = !kernel;
        let one = rig.of(1);
        limit(&mut rig, 0);
        assert_eq!(choose(&mut rig), None, "not yet");
        rig.now = rig.bfq.idle_start + ms(8);
        let chosen = rig.cx(|bfq, cx| bfq.choose_injected(cx, one));
        assert_eq!(chosen.is_some(), expected);
    }
}

#[test]
fn a_second_arm_gets_a_request_when_it_has_too_little_to_do() {
    let actuators = Actuators::at(&[Sector(1 << 20)]);
    let limits = Limits { queue_depth: 32, actuators, ..Limits::default() };
    let mut rig = Rig::with(limits, injecting());
    let (low, high) = (1000, (1 << 20) + 1000);
    for i in 0..20 {
        rig.insert(read(1, low + 8 * i));
        rig.insert(read(2, high + 8 * i));
    }
    let mut issued = Vec::new();
    for _ in 0..8 {
        issued.push(rig.issue().1);
    }
    let of = |task| issued.iter().filter(|&&t| t == task).count();
    assert_eq!((of(1), of(2)), (4, 4), "{issued:?}: both arms are kept busy up to 4 requests");
    // The queue in service needs the second arm, and the first one is behind after each of its requests.
    let mut rig = Rig::with(limits, injecting());
    for i in 0..20 {
        rig.insert(read(2, high + 8 * i));
        rig.insert(read(1, low + 8 * i));
    }
    let issued: Vec<u32> = (0..8).map(|_| rig.issue().1).collect();
    assert_eq!(issued, [2, 1, 2, 1, 2, 1, 2, 1]);
    let mut rig = Rig::with(limits, Config { actuators: false, ..injecting() });
    for i in 0..20 {
        rig.insert(read(1, low + 8 * i));
        rig.insert(read(2, high + 8 * i));
    }
    let issued: Vec<u32> = (0..8).map(|_| rig.issue().1).collect();
    assert!(issued.iter().all(|&task| task == issued[0]), "{issued:?}: switched off");
}

#[test]
fn theorem_s14_general_injection_never_exceeds_the_limit() {
    let mut lab = Lab::new(Limits { queue_depth: 8, ..Limits::default() }, injecting(), |rq| {
        Duration::from_us(500 + rq.start.0 % 4000)
    });
    for task in 1..6 {
        let think = Duration::from_us(u64::from(task) * 900);
        let reader = Client::reader(task, 16);
        // With different weights, queues are idled for whatever they do.
        let template = of_level(reader.template, Class::BestEffort, u8::try_from(task).unwrap());
        lab.add(Client { sequential: task == 1, think, template, ..reader });
    }
    lab.add(Client::writer(9, 16));
    // `Rig::check_injection` looks at each.
    lab.run(Duration::from_secs(5), |_| ());
    assert!(lab.rig.injections > 20, "{} injections", lab.rig.injections);
}
