//! Weight raising: which queues are raised, when, and until when.

use super::*;

/// Raising and nothing else.
fn raising() -> Config {
    Config { low_latency: true, ..plain() }
}

/// Without interactive raising, so that soft real-time shows.
fn soft_only() -> Config {
    Config { interactive: false, ..raising() }
}

#[test]
fn the_duration_is_what_a_large_program_takes_to_start() {
    let duration = |rotational, tick, wr_max_time| {
        let limits = Limits { rotational, ..Limits::default() };
        Rig::with(limits, Config { tick, wr_max_time, ..raising() }).bfq.raise_duration()
    };
    assert_eq!(
        duration(true, Duration::ZERO, Duration::ZERO),
        Duration::from_ns(14000 * 7_000_000_000 / 9333)
    );
    assert_eq!(duration(true, Duration::ZERO, Duration::ZERO).as_ms(), 10_500);
    assert_eq!(duration(false, Duration::ZERO, Duration::ZERO), ms(3750));
    assert_eq!(duration(true, ms(4), Duration::ZERO), ms(10_500), "in whole ticks");
    assert_eq!(duration(false, ms(4), Duration::ZERO), ms(3748), "in whole ticks");
    assert_eq!(duration(true, Duration::ZERO, ms(700)), ms(700), "as set");
}

#[test]
fn the_duration_is_clamped() {
    for (rotational, peak, expected) in
        [(false, 60_000, ms(3000)), (true, 100, ms(25_000)), (true, 3920, ms(25_000))]
    {
        let mut rig = Rig::with(Limits { rotational, ..Limits::default() }, raising());
        rig.bfq.rules.rate.is_known_as(peak);
        assert_eq!(rig.bfq.raise_duration(), expected, "at {peak}");
    }
}

#[test]
fn a_new_reader_is_raised_with_its_first_request_and_has_a_small_budget() {
    let mut rig = Rig::new(raising());
    rig.insert(read(1, 1000));
    assert_eq!((rig.factor(1), rig.weight(1)), (30, 1200));
    let q = rig.of(1);
    assert_eq!(rig.bfq.hierarchy.budget(q), 1024, "twice the least budget, 16384 / 32");
    assert!(rig.notes().contains(&Reason::RaisedInteractive));
}

#[test]
fn no_queue_is_raised_that_should_not_be() {
    let off = Config { low_latency: false, ..raising() };
    let rest = Config { interactive: false, soft_realtime: false, ..raising() };
    let usual = read(1, 1000);
    let cases = [
        ("low_latency off", off, usual),
        ("patches 17 and 18 off", rest, usual),
        ("a weight of its own", raising(), of_level(usual, Class::BestEffort, 3)),
        ("the idle class", raising(), of_level(usual, Class::Idle, 4)),
    ];
    for (why, config, rq) in cases {
        let mut rig = Rig::new(config);
        for _ in 0..4 {
            rig.serve(rq);
            assert_eq!(rig.factor(1), 1, "{why}");
            rig.pass(ms(5000));
        }
    }
    let mut rig = Rig::new(raising());
    rig.insert(of_level(usual, Class::RealTime, 4));
    assert_eq!(rig.factor(1), 30, "of the real-time class, with the usual weight");
    let mut rig = Rig::new(raising());
    rig.insert(write(1, 1000));
    let q = rig.asyn(1);
    assert_eq!(rig.bfq.queues[q].raise.factor(), 1, "an async queue that becomes busy");
}

#[test]
fn interactive_raising_ends_with_a_dispatch_after_its_time() {
    let mut rig = Rig::new(raising());
    let duration = rig.bfq.raise_duration();
    rig.serve(read(1, 1000));
    let start = rig.queue(1).raise.period().0;
    assert_eq!(start, Instant::EPOCH, "the first request's arrival");
    // Two requests at a time, so that it is never idle.
    let mut last = rig.insert(read(1, 1008));
    let mut at = 1016;
    rig.issue();
    for until in [duration, duration + NS] {
        while rig.now.since(start) < until {
            let step = (until - rig.now.since(start)).min(ms(40));
            rig.now = rig.now + step;
            rig.insert(read(1, at));
            at += 8;
            assert_eq!(rig.factor(1), 30, "an arrival ends nothing");
            let next = rig.issue().0;
            rig.complete(last);
            last = next;
        }
        let (factor, weight) = if until == duration { (30, 1200) } else { (1, 40) };
        assert_eq!(
            (rig.factor(1), rig.weight(1)),
            (factor, weight),
            "{until:?} after the start, in force at once"
        );
    }
    let next = rig.queue(1).raise.soft_from();
    assert_eq!(next, rig.now, "it may be soft real-time from now on");
    assert!(rig.notes().contains(&Reason::RaiseEnd));
}

#[test]
fn interactive_raising_ends_after_120000_sectors() {
    let mut rig = Rig::new(raising());
    let (mut sectors, mut at) = (0, 1000);
    while rig.factor_or_raised(1) == 30 {
        let rq = Request { len: Sectors(1000), ..read(1, at) };
        let tag = rig.insert(rq);
        let (issued, _) = rig.issue();
        assert_eq!(issued, tag);
        sectors += 1000;
        at += 1000;
        rig.pass(ms(1));
        rig.complete(tag);
        assert!(sectors <= 121_000, "raised after {sectors} sectors");
    }
    assert_eq!(sectors, 121_000, "the first request beyond 120000");
}

impl Rig {
    /// The factor; 30 for a task that has not come yet.
    fn factor_or_raised(&self, task: u32) -> u32 {
        self.bfq.tasks.find(TaskId(task)).map_or(30, |_| self.factor(task))
    }
}

#[test]
fn a_queue_is_interactive_again_after_more_than_two_idle_seconds() {
    for (idle, expected) in [(ms(2000), 1), (ms(2000) + NS, 30)] {
        let mut rig = Rig::new(Config { soft_realtime: false, ..raising() });
        rig.serve(read(1, 1000));
        let q = rig.of(1);
        rig.cx(|bfq, cx| bfq.end_raising(cx, q));
        rig.pass(ms(100));
        // When it expired, for want of a request.
        let drained = rig.queue(1).drained_at.unwrap();
        rig.pass(idle - rig.now.since(drained));
        rig.insert(read(1, 9000));
        assert_eq!(rig.factor(1), expected, "idle for {idle:?}");
    }
}

#[test]
fn a_second_interactive_period_counts_its_sectors_anew() {
    let mut rig = Rig::new(raising());
    rig.serve(read(1, 1000));
    let q = rig.of(1);
    rig.cx(|bfq, cx| bfq.end_raising(cx, q));
    rig.queue(1).raise.has_service(119_999);
    rig.pass(ms(3000));
    rig.insert(read(1, 9000));
    assert_eq!((rig.factor(1), rig.queue(1).raise.service()), (30, 0));
}

/// Task 1 becomes busy, sends 700 sectors within 20 ms, and has drained.
fn after_a_batch(config: Config) -> Rig {
    let mut rig = Rig::new(config);
    let tag = rig.insert(Request { len: Sectors(700), ..read(1, 1000) });
    rig.issue();
    rig.now = rig.now + ms(20);
    rig.complete(tag);
    rig.pass(ms(30));
    rig
}

#[test]
fn a_task_that_paces_itself_is_soft_real_time_and_a_faster_one_is_not() {
    // 700 sectors at 7000 per second are 100 ms.
    for (at, expected) in [(ms(100), 1), (ms(100) + NS, 3000)] {
        let mut rig = after_a_batch(soft_only());
        assert_eq!(rig.queue(1).raise.soft_from(), Instant::EPOCH + ms(100));
        rig.pass(at.saturating_sub(rig.now.since(Instant::EPOCH)));
        rig.insert(read(1, 1700));
        assert_eq!(rig.factor(1), expected, "at {at:?}");
    }
    let mut rig = after_a_batch(Config { wr_max_softrt_rate: 0, ..soft_only() });
    rig.pass(ms(900));
    rig.insert(read(1, 1700));
    assert_eq!(rig.factor(1), 1, "no rate, no soft real-time");
}

#[test]
fn the_bound_for_greedy_tasks_is_the_idle_time_and_four_ticks() {
    for (tick, margin) in [(Duration::ZERO, 16), (ms(4), 16), (ms(1), 4), (ms(10), 40)] {
        let mut rig = Rig::new(Config { tick, ..soft_only() });
        rig.serve(read(1, 1000));
        rig.pass(ms(30));
        let (now, next) = (rig.now, rig.queue(1).raise.soft_from());
        let idle = if tick == ms(10) { 0 } else { 8 };
        // It drained 1 ms after the start, and expired when idling was over.
        let from = next - ms(idle + margin);
        assert!(from >= Instant::EPOCH && from <= now, "with a tick of {tick:?}: {next:?}");
        assert_eq!(from.floor_to(tick), from, "a whole tick");
    }
}

#[test]
fn the_next_instant_never_moves_back() {
    let mut rig = after_a_batch(soft_only());
    let q = rig.of(1);
    let far = rig.now + ms(5000);
    rig.queue(1).raise.is_soft_from(far);
    let now = rig.now;
    rig.bfq.raise_expired(now, q);
    assert_eq!(rig.queue(1).raise.soft_from(), far);
}

#[test]
fn a_soft_real_time_period_ends_after_300_ms() {
    let mut rig = after_a_batch(soft_only());
    rig.pass(ms(100));
    rig.insert(read(1, 1700));
    assert_eq!(rig.factor(1), 3000);
    let tag = rig.issue().0;
    let mut last = tag;
    let mut at = 1708;
    // The start moves a little with each of its slots.
    while rig.factor(1) == 3000 {
        let age = rig.now.since(rig.queue(1).raise.period().0);
        assert!(age <= ms(300), "{age:?}");
        rig.now = rig.now + ms(7);
        rig.insert(read(1, at));
        at += 8;
        let next = rig.issue().0;
        rig.complete(last);
        last = next;
    }
    assert_eq!(rig.factor(1), 1, "no interactive period to go on with");
    let lasted = rig.now.since(Instant::EPOCH + ms(150));
    assert!(lasted > ms(300) && lasted < ms(330), "{lasted:?}");
}

#[test]
fn an_interactive_period_continues_after_a_soft_real_time_one() {
    let mut rig = after_a_batch(raising());
    assert_eq!(rig.factor(1), 30);
    // In interactive raising the instant is not planned when the last request completes, only at expiry.
    rig.queue(1).raise.is_soft_from(Instant::EPOCH + ms(60));
    rig.pass(ms(100));
    rig.insert(read(1, 1700));
    assert_eq!(rig.factor(1), 3000);
    assert_eq!(rig.queue(1).raise.interrupted(), Some(Instant::EPOCH));
    let tag = rig.issue().0;
    let (now, q) = (rig.now, rig.of(1));
    rig.now = now + ms(301);
    rig.cx(|bfq, cx| bfq.check_raise_end(cx, q));
    assert_eq!(
        (rig.factor(1), rig.queue(1).raise.period().0),
        (30, Instant::EPOCH),
        "as if nothing had been"
    );
    rig.complete(tag);
    // But not if that is over too.
    rig.queue(1).raise.has_interrupted(Some(Instant::EPOCH));
    rig.raise(q, 3000);
    rig.queue(1).raise.adopt(Instant::EPOCH, ms(300));
    rig.now = Instant::EPOCH + rig.bfq.raise_duration() + NS;
    rig.cx(|bfq, cx| bfq.check_raise_end(cx, q));
    assert_eq!(rig.factor(1), 1);
}

#[test]
fn turning_totally_seeky_ends_soft_real_time_at_once() {
    let mut rig = after_a_batch(soft_only());
    rig.pass(ms(100));
    let tag = rig.insert(read(1, 1700));
    assert_eq!(rig.factor(1), 3000);
    for i in 0..40 {
        rig.insert(read(1, 1_000_000 * (i + 1)));
    }
    assert_eq!(rig.factor(1), 1);
    rig.finish(tag);
    rig.drain();
    rig.pass(ms(1900));
    rig.insert(read(1, 7));
    assert_eq!(rig.factor(1), 1, "nor does it begin again");
}

#[test]
fn the_time_for_which_a_soft_real_time_queue_waits_is_added() {
    let mut rig = after_a_batch(soft_only());
    rig.pass(ms(100));
    rig.insert(read(1, 1700));
    let (start, q) = (rig.now, rig.of(1));
    assert_eq!(rig.queue(1).raise.period().0, start);
    // Drained before that: served for the first time now.
    let later = start + ms(50);
    rig.bfq.raise_selected(later, q);
    assert_eq!(rig.queue(1).raise.period().0, later);
    // Its last slot ended, or was to end, 30 ms ago: these do not count.
    rig.queue(1).waits_since = later + ms(70);
    rig.bfq.raise_selected(later + ms(100), q);
    assert_eq!(rig.queue(1).raise.period().0, later + ms(30));
    // A deadline to come: nothing was waited for.
    rig.queue(1).waits_since = later + ms(500);
    rig.bfq.raise_selected(later + ms(200), q);
    assert_eq!(rig.queue(1).raise.period().0, later + ms(30));
}

#[test]
fn an_async_queue_not_heard_of_for_500_ms_is_raised_when_it_is_busy() {
    for (quiet, expected) in [(ms(500), 1), (ms(500) + NS, 30)] {
        let mut rig = Rig::new(raising());
        rig.insert(write(1, 1000));
        let q = rig.asyn(1);
        rig.now = rig.now + quiet;
        rig.insert(write(1, 9000));
        assert_eq!(rig.bfq.queues[q].raise.factor(), expected, "after {quiet:?}");
        assert_eq!(rig.notes().contains(&Reason::RaisedAsync), expected > 1);
    }
    let mut rig = Rig::new(Config { low_latency: false, ..raising() });
    rig.insert(write(1, 1000));
    rig.now = rig.now + ms(600);
    rig.insert(write(1, 9000));
    let q = rig.asyn(1);
    assert_eq!(rig.bfq.queues[q].raise.factor(), 1);
}

#[test]
fn a_raised_queue_preempts_one_that_is_not() {
    let mut rig = Rig::new(raising());
    rig.serve(read(1, 1000));
    let q = rig.of(1);
    rig.cx(|bfq, cx| bfq.end_raising(cx, q));
    rig.insert(read(1, 1008));
    rig.insert(read(1, 1016));
    let tag = rig.issue().0;
    rig.insert(read(2, 500_000));
    assert_eq!(rig.bfq.in_service.map(|s| s == q), None, "preempted");
    assert_eq!(rig.issue().1, 2);
    rig.complete(tag);
}
