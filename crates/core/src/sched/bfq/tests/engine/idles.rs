//! When the disk is kept idle for a queue.

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
