//! Which queue wakes which.

use super::*;

fn waking() -> Config {
    plain()
}

/// Task 2 is known for its long pauses; task 1 has sent a request.
fn two(config: Config) -> Rig {
    let mut rig = Rig::new(config);
    rig.serve(read(1, 1000));
    rig.pass(ms(30));
    for i in 0..6 {
        rig.serve(read(2, 1_000_000 + 8 * i));
        rig.pass(ms(30));
    }
    assert!(!rig.queue(2).past.thinks_shortly());
    rig
}

/// Task `a` completes a request; `gap` later task `b` sends one, which is served.
fn wake(rig: &mut Rig, a: u32, b: u32, gap: Duration) {
    let at = rig.now.as_ns() % 100_000 * 8;
    rig.serve(read(a, 10_000 + at));
    rig.now = rig.now + gap;
    rig.serve(read(b, 50_000_000 + at));
    rig.pass(ms(30));
}

#[test]
fn three_times_make_a_waker() {
    let mut rig = two(waking());
    let (one, two) = (rig.of(1), rig.of(2));
    for count in 1..=3 {
        assert_eq!(rig.waker(2), None);
        wake(&mut rig, 1, 2, ms(1));
        assert_eq!(rig.bfq.rules.wakers.count(rig.of(2)), count);
    }
    assert_eq!(rig.waker(2), Some(one));
    assert_eq!(rig.bfq.rules.wakers.first_woken(one), Some(two));
    assert!(rig.notes().contains(&Reason::WakerFound));
}

#[test]
fn later_requests_and_quick_tasks_say_nothing() {
    for (gap, found) in [(ms(4) - NS, true), (ms(4), false)] {
        let mut rig = two(waking());
        for _ in 0..5 {
            wake(&mut rig, 1, 2, gap);
        }
        assert_eq!(rig.waker(2).is_some(), found, "{gap:?} after the completion");
    }
    let mut rig = Rig::new(waking());
    for i in 0..5 {
        rig.serve(read(1, 1000 + 8 * i));
        rig.serve(read(2, 1_000_000 + 8 * i));
        assert_eq!((rig.queue(2).past.thinks_shortly(), rig.bfq.rules.wakers.count(rig.of(2))), (true, 0));
    }
    let mut rig = two(Config { wakers: false, ..waking() });
    for _ in 0..5 {
        wake(&mut rig, 1, 2, ms(1));
    }
    assert_eq!(rig.waker(2), None, "switched off");
}

#[test]
fn another_candidate_or_too_much_time_begin_anew() {
    let mut rig = two(waking());
    rig.serve(read(3, 80_000_000));
    rig.pass(ms(30));
    wake(&mut rig, 1, 2, ms(1));
    wake(&mut rig, 1, 2, ms(1));
    wake(&mut rig, 3, 2, ms(1));
    assert_eq!(rig.bfq.rules.wakers.count(rig.of(2)), 1, "another one came in between");
    wake(&mut rig, 1, 2, ms(1));
    wake(&mut rig, 1, 2, ms(1));
    rig.pass(ms(1024));
    wake(&mut rig, 1, 2, ms(1));
    assert_eq!((rig.bfq.rules.wakers.count(rig.of(2)), rig.waker(2)), (1, None), "128 * 8 ms have passed");
}

#[test]
fn a_waker_that_goes_leaves_nothing_behind() {
    let mut rig = two(waking());
    for _ in 0..3 {
        wake(&mut rig, 1, 2, ms(1));
    }
    let one = rig.of(1);
    rig.exit(1);
    rig.pass(ms(100));
    assert!(!rig.bfq.queues[one].in_use);
    assert_eq!(rig.waker(2), None);
    assert_ne!(rig.bfq.rules.wakers.last_completed(), Some(one));
    // And the other way round.
    let mut rig = two(waking());
    for _ in 0..3 {
        wake(&mut rig, 1, 2, ms(1));
    }
    rig.exit(2);
    rig.pass(ms(100));
    assert!(rig.bfq.rules.wakers.first_woken(rig.of(1)).is_none());
}

#[test]
fn a_newcomer_with_the_number_of_a_candidate_is_not_taken_for_it() {
    let mut rig = two(waking());
    wake(&mut rig, 1, 2, ms(1));
    wake(&mut rig, 1, 2, ms(1));
    let old = rig.of(1);
    rig.exit(1);
    rig.pass(ms(100));
    // Until the number comes round again.
    let mut task = 10;
    loop {
        rig.serve(read(task, 5000));
        rig.pass(ms(30));
        if rig.of(task) == old {
            break;
        }
        rig.exit(task);
        rig.pass(ms(1));
        task += 1;
    }
    let (q, now) = (rig.of(2), rig.now);
    rig.bfq.rules.wakers.counts_since(q, now);
    wake(&mut rig, task, 2, ms(1));
    assert_eq!((rig.bfq.rules.wakers.count(rig.of(2)), rig.waker(2)), (1, None));
}

#[test]
fn the_queue_that_became_busy_last_is_first_among_the_woken() {
    let mut rig = two(waking());
    rig.serve(read(3, 80_000_000));
    rig.pass(ms(30));
    let (one, two, three) = (rig.of(1), rig.of(2), rig.of(3));
    rig.bfq.rules.wakers.set(two, Some(one));
    rig.bfq.rules.wakers.set(three, Some(one));
    let woken = |rig: &Rig| rig.bfq.rules.wakers.woken(one).collect::<Vec<_>>();
    assert_eq!(woken(&rig), [three, two]);
    rig.insert(read(2, 2_000_000));
    assert_eq!(woken(&rig), [two, three]);
    rig.bfq.rules.wakers.set(two, None);
    assert_eq!(woken(&rig), [three]);
    rig.drain();
}

#[test]
fn a_shared_queue_is_no_waker() {
    let mut rig = two(waking());
    rig.queue(1).shared = true;
    for _ in 0..5 {
        wake(&mut rig, 1, 2, ms(1));
    }
    assert_eq!(rig.waker(2), None);
}
