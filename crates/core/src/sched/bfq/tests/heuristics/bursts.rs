//! Bursts of queue activations.

use super::*;

fn bursts() -> Config {
    Config { bursts: true, low_latency: true, ..plain() }
}

/// Tasks `tasks` send their first requests, 10 ms apart, each served at once.
fn begin(rig: &mut Rig, tasks: core::ops::Range<u32>) {
    for task in tasks {
        rig.serve(read(task, 1_000_000 * u64::from(task)));
        rig.pass(ms(9));
    }
}

fn in_large(rig: &Rig, tasks: core::ops::Range<u32>) -> Vec<u32> {
    tasks.filter(|&task| rig.bfq.rules.bursts.in_large(rig.of(task))).collect()
}

#[test]
fn the_eighth_makes_a_burst_large_and_takes_the_others_with_it() {
    let mut rig = Rig::new(bursts());
    begin(&mut rig, 1..8);
    assert_eq!(in_large(&rig, 1..8), []);
    assert!((1..8).all(|task| rig.factor(task) == 30), "seven are raised");
    assert!(!rig.notes().contains(&Reason::LargeBurst));
    begin(&mut rig, 8..10);
    assert_eq!(in_large(&rig, 1..10), (1..10).collect::<Vec<_>>());
    assert_eq!(rig.bfq.rules.bursts.counts().1, 0);
    assert_eq!((rig.factor(8), rig.factor(9), rig.factor(1)), (1, 1, 30));
    let large = rig.notes().iter().filter(|&&r| r == Reason::LargeBurst).count();
    assert_eq!(large, 9, "each is said once");
    rig.serve(read(1, 1_000_008));
    assert_eq!(rig.factor(1), 1, "those that are raised lose it with their next dispatch");
}

#[test]
fn with_the_patch_off_every_queue_is_raised() {
    let mut rig = Rig::new(Config { bursts: false, ..bursts() });
    begin(&mut rig, 1..20);
    assert!((1..20).all(|task| rig.factor(task) == 30));
}

#[test]
fn more_than_180_ms_of_quiet_or_another_group_end_a_burst() {
    for (quiet, expected) in [(ms(180), 8), (ms(180) + NS, 0)] {
        let mut rig = Rig::new(bursts());
        begin(&mut rig, 1..8);
        let last = rig.bfq.rules.bursts.last_insert().unwrap();
        rig.pass(quiet - rig.now.since(last));
        begin(&mut rig, 8..9);
        assert_eq!(in_large(&rig, 1..9).len(), expected, "after {quiet:?}");
    }
    let mut rig = Rig::new(bursts());
    begin(&mut rig, 1..8);
    rig.pass(ms(50));
    rig.serve(in_group(read(8, 8_000_000), 1));
    assert_eq!(in_large(&rig, 1..9), []);
    assert_eq!((rig.bfq.rules.bursts.counts().0, rig.bfq.rules.bursts.parent()), (1, GroupId(1)));
}

#[test]
fn a_task_that_begins_while_others_work_begins_no_burst() {
    let mut rig = Rig::new(bursts());
    // Task 1's queue is always busy.
    rig.insert(read(1, 1_000_000));
    rig.now = rig.now + ms(300);
    for task in 2..20 {
        rig.insert(read(task, 1_000_000 * u64::from(task)));
        rig.now = rig.now + ms(5);
    }
    assert_eq!(rig.bfq.rules.bursts.counts().0, 0, "the old burst is over, and this is none");
    assert_eq!(in_large(&rig, 1..20), []);
    rig.drain();
}

#[test]
fn a_task_that_exits_no_longer_counts() {
    let mut rig = Rig::new(bursts());
    begin(&mut rig, 1..8);
    rig.exit(3);
    rig.pass(ms(20));
    assert_eq!(rig.bfq.rules.bursts.counts(), (6, 6));
    begin(&mut rig, 8..9);
    assert_eq!(in_large(&rig, 8..9), [], "the seventh again");
    begin(&mut rig, 9..10);
    assert_eq!(in_large(&rig, 9..10), [9]);
    assert_eq!(in_large(&rig, 1..3), [1, 2]);
}

/// As in Linux since about 6.2.
#[test]
fn without_repairs_a_task_that_exits_still_counts() {
    let mut rig = Rig::new(Config { repairs: false, ..bursts() });
    begin(&mut rig, 1..8);
    rig.exit(3);
    rig.pass(ms(20));
    assert_eq!(rig.bfq.rules.bursts.counts(), (7, 6));
    begin(&mut rig, 8..9);
    assert_eq!(in_large(&rig, 8..9), [8], "the eighth");
}

/// A comparison shows that a newcomer is in a large burst, or that it is not; what follows is decided from
/// there.
#[test]
fn a_burst_becomes_what_a_comparison_shows() {
    let mut rig = Rig::new(bursts());
    begin(&mut rig, 1..4);
    let third = rig.of(3);
    rig.cx(|bfq, cx| bfq.adopt_large_burst(cx, third, true));
    rig.check();
    assert_eq!(in_large(&rig, 1..4), [1, 2, 3]);
    begin(&mut rig, 4..5);
    assert_eq!((in_large(&rig, 4..5), rig.factor(4)), (std::vec![4], 1));
    let fourth = rig.of(4);
    rig.cx(|bfq, cx| bfq.adopt_large_burst(cx, fourth, false));
    rig.check();
    begin(&mut rig, 5..11);
    assert_eq!(in_large(&rig, 4..11), [], "a new burst of seven");
    begin(&mut rig, 11..12);
    assert_eq!(in_large(&rig, 4..12).len(), 8);
}

#[test]
fn all_of_a_burst_may_exit_and_their_queues_serve_others() {
    let mut rig = Rig::new(bursts());
    for round in 0..5 {
        begin(&mut rig, 1..6);
        for task in 1..6 {
            rig.exit(task);
        }
        rig.pass(ms(30));
        assert_eq!(rig.bfq.rules.bursts.counts(), (0, 0), "round {round}");
    }
    begin(&mut rig, 1..10);
    assert_eq!(in_large(&rig, 1..10).len(), 9);
    for task in 1..10 {
        rig.exit(task);
    }
    rig.pass(ms(30));
    begin(&mut rig, 11..12);
    assert_eq!(in_large(&rig, 11..12), [11], "the burst continues");
}

#[test]
fn a_queue_leaves_its_burst_after_ten_idle_seconds() {
    let mut rig = Rig::new(bursts());
    begin(&mut rig, 1..9);
    rig.pass(Duration::from_secs(9));
    rig.insert(read(1, 1_000_008));
    assert_eq!((in_large(&rig, 1..2), rig.factor(1)), (std::vec![1], 1), "still in it");
    rig.drain();
    rig.pass(Duration::from_secs(10) + ms(30));
    rig.insert(read(1, 1_000_016));
    assert_eq!(in_large(&rig, 1..2), []);
    assert_eq!(rig.factor(1), 1, "it was in it when it became busy");
    rig.drain();
    rig.pass(ms(2100));
    rig.insert(read(1, 1_000_024));
    assert_eq!(rig.factor(1), 30, "from the next time on");
}

#[test]
fn theorem_s12_no_queue_of_a_large_burst_is_raised_after_its_next_dispatch() {
    let mut rig = Rig::new(bursts());
    begin(&mut rig, 1..30);
    for round in 1..40_u64 {
        for task in 1..30 {
            rig.serve(read(task, 1_000_000 * u64::from(task) + 8 * round));
            let q = rig.of(task);
            assert!(
                !rig.bfq.rules.bursts.in_large(q) || rig.factor(task) == 1,
                "task {task} in round {round}"
            );
            rig.pass(ms(70 * (round % 3)));
        }
    }
    assert_eq!(in_large(&rig, 1..30).len(), 29);
}
