//! What a driver sees of the three schedulers: timelines, and small closed worlds.

extern crate std;
use super::round_robin::Config;
use super::slices::{Ts1, Ts2};
use super::{CfqTs1, CfqTs2, RoundRobin};
use crate::config::{ConfigError, Tunables};
use crate::sched::Scheduler;
use crate::testkit::{self, Client, World, read, write};
use crate::trace::{Action, Reason};
use crate::{
    Control, Dispatch, Duration, Elevator, End, Hold, Insert, Instant, Limits, Request, Sector, Sectors, Tag,
    TaskId, Timer,
};
use core::fmt::Write as _;
use std::string::{String, ToString};
use std::vec::Vec;

/// Ticks of HZ = 1000, as in the kernels that these come from.
const TICK: Duration = Duration::from_ms(1);

fn us(us: u64) -> Instant {
    Instant::EPOCH.floor_to(TICK) + Duration::from_us(us)
}

fn ms(ms: u64) -> Instant {
    us(ms * 1000)
}

fn limits() -> Limits {
    Limits { tick: TICK, trace: 4096, ..Limits::default() }
}

type Rig<S> = testkit::Rig<S>;

fn rig<S: Scheduler>(config: S::Config) -> Rig<S> {
    Rig::with(limits(), config)
}

impl<S: Scheduler> Rig<S> {
    /// The trace since the last call, one event a line: ms, blktrace's letter, task, sector, reason.
    fn timeline(&mut self) -> String {
        let mut text = String::new();
        for e in self.elevator.drain_trace() {
            let at = e.at.since(ms(0)).as_us();
            let (letter, task) = (e.action.letter(), e.task.0);
            write!(text, "{:>3}.{} {letter} {task}", at / 1000, at % 1000 / 100).unwrap();
            if e.tag.is_some() {
                write!(text, " {}+{}", e.start.0, e.len.0).unwrap();
            }
            if e.reason != Reason::None {
                write!(text, " {:?}", e.reason).unwrap();
            }
            text.push('\n');
        }
        text
    }
}

#[track_caller]
fn assert_timeline(got: &str, want: &str) {
    let lines = |text: &str| text.trim().lines().map(|l| l.trim().to_string()).collect::<Vec<_>>();
    assert_eq!(lines(got), lines(want), "got:\n{got}");
}

// What happens within a queue, which all three share.

//= docs/reference/cfq.md#9-test-vectors vector 1
#[test]
fn the_nearest_request_is_chosen_with_going_back_dearer() {
    let order = |at: u64, a: u64, b: u64| {
        let mut rig = rig::<CfqTs1>(Ts1::default());
        rig.queue(ms(0), read(1, at - 8));
        rig.serve_all(ms(0));
        rig.queue(ms(0), read(1, a));
        rig.queue(ms(0), read(1, b));
        rig.serve_all(ms(0))[0]
    };
    assert_eq!(order(1000, 1100, 960), 960, "100 forward against 40 back, which count twice");
    assert_eq!(order(1000, 1100, 950), 1100, "a tie goes to the larger start");
    assert_eq!(order(50_000, 40_000, 10), 40_000, "10 is more than 16 MiB back");
    assert_eq!(order(50_000, 20, 10), 10, "both are");
}

#[test]
fn without_find_best_crq_the_lowest_request_goes_first() {
    let mut rig = rig::<RoundRobin>(Config { find_best_crq: false, ..Config::default() });
    for start in [5000, 100, 900] {
        rig.queue(ms(0), read(1, start));
    }
    assert_eq!(rig.serve_all(ms(0)), [100, 900, 5000]);
}

/// Which kind goes first because of its age, 600 ms after a sync and an async request far away were queued
/// among closer ones.
fn first_to_expire(swap_fifo_limits: bool) -> Vec<u64> {
    let config = Config { swap_fifo_limits, quantum: 1, ..Config::default() };
    let mut rig = rig::<RoundRobin>(config);
    rig.queue(ms(0), read(1, 900_000));
    rig.queue(ms(0), write(1, 800_000));
    rig.queue(ms(600), read(1, 100));
    rig.serve_all(ms(600))
}

#[test]
fn the_oldest_request_goes_first_when_it_has_expired() {
    assert_eq!(first_to_expire(false)[0], 900_000, "sync ones after 500 ms");
}

//= docs/reference/cfq.md#8-quirks Q2
#[test]
fn the_released_kernels_expired_async_requests_after_the_time_of_sync_ones() {
    assert_eq!(first_to_expire(true)[0], 800_000);
}

#[test]
fn one_request_per_125_ms_goes_first_because_of_its_age() {
    let mut rig = rig::<RoundRobin>(Config { quantum: 1, ..Config::default() });
    for start in [700_000, 800_000, 900_000] {
        rig.queue(ms(0), read(1, start));
    }
    for start in [100, 200, 300] {
        rig.queue(ms(600), read(1, start));
    }
    let mut reasons = Vec::new();
    for at in [600, 601, 724, 725] {
        let tag = rig.issue(ms(at));
        rig.complete(ms(at), tag);
        reasons.extend(rig.elevator.drain_trace().filter(|e| e.action == Action::Issue).map(|e| e.reason));
    }
    assert_eq!(reasons, [Reason::FifoExpired, Reason::Nearest, Reason::Nearest, Reason::FifoExpired]);
}

#[test]
fn a_request_on_the_dispatch_list_does_not_grow() {
    let mut rig = rig::<CfqTs1>(Ts1::default());
    rig.queue(ms(0), read(1, 100));
    rig.queue(ms(0), read(1, 500));
    let _ = rig.issue(ms(0));
    // 500 is on the list, behind 100.
    assert_eq!(rig.add(ms(0), read(1, 508)).1, Insert::Queued);
    assert!(matches!(rig.add(ms(0), read(1, 516)).1, Insert::Merged { end: End::Back, .. }));
    assert_eq!(rig.serve_all(ms(0)), [500, 508]);
}

#[test]
fn front_merges_stay_within_a_task_and_back_merges_need_not() {
    let mut rig = rig::<RoundRobin>(Config::default());
    rig.queue(ms(0), read(1, 100));
    assert_eq!(rig.add(ms(0), read(2, 92)).1, Insert::Queued);
    assert!(matches!(rig.add(ms(0), read(2, 108)).1, Insert::Merged { into: Tag(0), end: End::Back }));
    assert!(matches!(rig.add(ms(0), read(2, 84)).1, Insert::Merged { into: Tag(1), end: End::Front }));
    assert_eq!(rig.serve_all(ms(0)), [84, 100], "what ends where a listed request starts goes before it");
}

#[test]
fn the_older_of_two_requests_that_start_alike_leaves_at_once() {
    let mut rig = rig::<CfqTs1>(Ts1::default());
    rig.queue(ms(0), read(2, 500));
    let first = rig.queue(ms(0), read(1, 100));
    rig.queue(ms(0), write(1, 100));
    assert_eq!(rig.issue(ms(0)), first, "it is on the list, though task 2 has the first slice");
    rig.complete(ms(0), first);
    assert_eq!(rig.serve_all(ms(0)), [500]);
}

#[test]
fn a_request_that_an_older_one_joins_expires_as_that_would() {
    let mut rig = rig::<CfqTs1>(Ts1::default());
    rig.queue(ms(0), read(1, 4000));
    assert_eq!(rig.serve_all(ms(0)), [4000]);
    rig.queue(ms(1), read(1, 116));
    rig.queue(ms(10), read(1, 5000));
    let young = rig.queue(ms(20), read(1, 100));
    assert!(matches!(rig.add(ms(20), read(1, 108)).1, Insert::Merged { .. }));
    assert_eq!(rig.elevator.requests()[young].rq.len, Sectors(24), "the one at 116 has joined it");
    // The head is at 4008, so the one at 5000 is nearer; but it expires later than that of the first ms.
    assert_eq!(rig.issue(ms(600)), young);
}

// cfq-2.6.10.

#[test]
fn a_round_takes_one_request_of_each_task_and_is_always_completed() {
    let mut rig = rig::<RoundRobin>(Config { quantum: 2, ..Config::of_2_6_10() });
    for i in 0..2 {
        for task in 1..=3 {
            rig.queue(ms(0), read(task, u64::from(task) * 10_000 + i * 100));
        }
    }
    // Task 4 comes when the second round is on the list already, so it is in the third.
    for (from, to) in [(0, 5), (5, 10), (10, 20), (20, 30), (30, 40), (40, 50)] {
        let tag = rig.issue(ms(from));
        if from == 20 {
            rig.queue(ms(from), read(4, 90_000));
        }
        rig.complete(ms(to), tag);
    }
    rig.serve_all(ms(50));
    let issued: String =
        rig.timeline().lines().filter(|l| l.contains(" D ")).map(|l| std::format!("{l}\n")).collect();
    assert_timeline(
        &issued,
        "
        0.0 D 1 10000+8 Nearest
        5.0 D 2 20000+8 Nearest
        10.0 D 3 30000+8 Nearest
        20.0 D 1 10100+8 Nearest
        30.0 D 2 20100+8 Nearest
        40.0 D 3 30100+8 Nearest
        50.0 D 4 90000+8 Nearest
        ",
    );
}

#[test]
fn who_has_used_the_disk_least_goes_first() {
    let mut rig = rig::<RoundRobin>(Config::of_2_6_10());
    // Task 1 uses 27 ms and task 2 9 ms; an eighth of each is left, as their first second starts with that.
    for (task, from, to) in [(1, 0, 27), (2, 27, 36)] {
        let tag = rig.queue(ms(from), read(task, u64::from(task) * 10_000));
        assert_eq!(rig.issue(ms(from)), tag);
        rig.complete(ms(to), tag);
    }
    for task in 1..=3 {
        rig.queue(ms(36), read(task, u64::from(task) * 20_000));
    }
    assert_eq!(rig.serve_all(ms(36)), [60_000, 40_000, 20_000]);
}

#[test]
fn a_queue_with_a_request_in_flight_waits_for_the_second_round() {
    let mut rig = rig::<RoundRobin>(Config { quantum: 1, ..Config::of_2_6_10() });
    rig.queue(ms(0), read(1, 100));
    let first = rig.issue(ms(0));
    rig.queue(ms(0), read(1, 200));
    rig.queue(ms(0), read(2, 90_000));
    let second = rig.issue(ms(0));
    assert_eq!(rig.elevator.requests()[second].rq.task, TaskId(2), "task 1 has one at the device");
    let third = rig.issue(ms(0));
    assert_eq!(rig.elevator.requests()[third].rq.task, TaskId(1), "no other task waits");
    for tag in [first, second, third] {
        rig.complete(ms(5), tag);
    }
}

// Time slices.

#[test]
fn a_slice_of_ts1_as_a_timeline() {
    let mut rig = rig::<CfqTs1>(Ts1::of_2004());
    rig.queue(ms(0), read(1, 100));
    rig.queue(ms(0), read(2, 90_000));
    let tag = rig.issue(ms(0));
    assert_eq!(rig.dispatch(ms(0)), Dispatch::Hold(Hold::SliceIdle), "with one of its own at the device");
    rig.complete(ms(2), tag);
    assert_eq!(rig.elevator.next_timer(), Some((ms(4), Timer::SliceIdle)), "since the disk was asked again");
    let tag = rig.queue(ms(3), read(1, 108));
    assert_eq!(rig.elevator.next_timer(), None);
    assert_eq!(rig.issue(ms(3)), tag);
    rig.complete(ms(5), tag);
    assert_eq!(rig.dispatch(ms(5)), Dispatch::Hold(Hold::SliceIdle));
    rig.elevator.timer(ms(9));
    let tag = rig.issue(ms(9));
    rig.complete(ms(14), tag);
    assert_timeline(
        &rig.timeline(),
        "
        0.0 I 1 100+8
        0.0 I 2 90000+8
        0.0 m 1 SliceStart
        0.0 D 1 100+8 Nearest
        2.0 C 1 100+8
        3.0 I 1 108+8
        3.0 D 1 108+8 Nearest
        5.0 C 1 108+8
        9.0 m 1 IdleTimeout
        9.0 m 2 SliceStart
        9.0 D 2 90000+8 Nearest
        14.0 C 2 90000+8
        ",
    );
}

#[test]
fn slices_of_ts2_as_a_timeline() {
    let mut rig = rig::<CfqTs2>(Ts2 { quantum: 2, slice_async_rq: 3, ..Ts2::of_2004() });
    for i in 0..5 {
        rig.queue(ms(0), write(1, 1000 + i * 100));
    }
    rig.queue(ms(0), read(2, 90_000));
    for at in 0..5 {
        let tag = rig.issue(ms(at));
        rig.complete(ms(at + 1), tag);
    }
    assert_eq!(rig.dispatch(ms(5)), Dispatch::Hold(Hold::SliceIdle), "the reader's, for all the writes");
    rig.elevator.timer(ms(9));
    let tag = rig.issue(ms(9));
    rig.complete(ms(10), tag);
    assert_timeline(
        &rig.timeline(),
        "
        0.0 I 1 1000+8
        0.0 I 1 1100+8
        0.0 I 1 1200+8
        0.0 I 1 1300+8
        0.0 I 1 1400+8
        0.0 I 2 90000+8
        0.0 m 1 SliceStart
        0.0 D 1 1000+8 Nearest
        1.0 C 1 1000+8
        1.0 D 1 1100+8 Nearest
        2.0 C 1 1100+8
        2.0 m 1 AsyncQuota
        2.0 m 2 SliceStart
        2.0 D 1 1200+8 Nearest
        3.0 C 1 1200+8
        3.0 D 1 1300+8 Nearest
        4.0 C 1 1300+8
        4.0 D 2 90000+8 Nearest
        5.0 C 2 90000+8
        9.0 m 2 IdleTimeout
        9.0 m 1 SliceStart
        9.0 D 1 1400+8 Nearest
        10.0 C 1 1400+8
        ",
    );
}

#[test]
fn an_awaited_request_is_served_even_when_the_slice_is_over() {
    // Ticks make the slice end (10 ms) and the idle period's end (14, cut to 10) meet what comes at 10.
    let mut rig = rig::<CfqTs1>(Ts1 { slice: Duration::from_ms(10), ..Ts1::of_2004() });
    rig.queue(ms(0), read(1, 100));
    rig.queue(ms(0), read(2, 90_000));
    let tag = rig.issue(ms(0));
    rig.complete(ms(6), tag);
    assert_eq!(rig.elevator.next_timer(), Some((ms(10), Timer::SliceIdle)));
    let awaited = rig.queue(ms(10), read(1, 108));
    assert_eq!(rig.issue(ms(10)), awaited);
    rig.queue(ms(10), read(1, 116));
    rig.complete(ms(11), awaited);
    assert_eq!(rig.serve_all(ms(11)), [90_000], "but only what came by then");
    rig.elevator.timer(ms(15));
    assert_eq!(rig.serve_all(ms(15)), [116]);
}

//= docs/reference/cfq.md#8-quirks Q3
#[test]
fn the_idle_period_starts_with_the_last_completion_unless_the_quirk_is_on() {
    for quirk in [false, true] {
        let mut rig = rig::<CfqTs2>(Ts2 { idle_in_flight: quirk, ..Ts2::default() });
        let [a, b] = [100, 200].map(|start| rig.queue(ms(0), read(1, start)));
        rig.queue(ms(0), read(2, 90_000));
        assert_eq!([rig.issue(ms(0)), rig.issue(ms(0))], [a, b]);
        assert_eq!(rig.dispatch(ms(0)), Dispatch::Hold(Hold::SliceIdle));
        let timer = |rig: &Rig<CfqTs2>| rig.elevator.next_timer().map(|(when, _)| when);
        assert_eq!(timer(&rig), quirk.then(|| ms(4)));
        rig.complete(ms(2), a);
        assert_eq!(timer(&rig), quirk.then(|| ms(4)));
        rig.complete(ms(3), b);
        assert_eq!(timer(&rig), Some(ms(if quirk { 4 } else { 7 })));
    }
}

#[test]
fn the_driver_has_at_most_max_depth_requests() {
    let mut rig = rig::<CfqTs1>(Ts1 { max_depth: 3, ..Ts1::of_2004() });
    for i in 0..5 {
        rig.queue(ms(0), read(1, i * 100));
    }
    let first = rig.issue(ms(0));
    let _ = (rig.issue(ms(0)), rig.issue(ms(0)));
    assert_eq!(rig.dispatch(ms(0)), Dispatch::Hold(Hold::Depth));
    rig.complete(ms(1), first);
    let _ = rig.issue(ms(1));
    assert_eq!(rig.dispatch(ms(1)), Dispatch::Hold(Hold::Depth));
}

#[test]
fn without_an_idle_period_an_empty_queue_loses_the_disk() {
    let mut rig = rig::<CfqTs2>(Ts2 { slice_idle: Duration::ZERO, ..Ts2::default() });
    rig.queue(ms(0), read(1, 100));
    rig.queue(ms(0), read(2, 90_000));
    assert_eq!(rig.serve_all(ms(0)), [100, 90_000]);
    assert_eq!(rig.elevator.next_timer(), None);
}

#[test]
fn a_task_that_is_gone_is_not_waited_for_if_so_set() {
    for exit_ends_idle in [false, true] {
        let mut rig = rig::<CfqTs1>(Ts1 { exit_ends_idle, ..Ts1::of_2004() });
        rig.queue(ms(0), read(1, 100));
        rig.queue(ms(0), read(2, 90_000));
        let tag = rig.issue(ms(0));
        rig.complete(ms(1), tag);
        let _ = rig.elevator.control(ms(1), Control::TaskExit(TaskId(1)));
        let answer = rig.dispatch(ms(1));
        assert_eq!(matches!(answer, Dispatch::Issue(_)), exit_ends_idle, "{answer:?}");
    }
}

#[test]
fn an_idle_period_is_at_most_half_of_a_slice() {
    let refused =
        |config| Elevator::<CfqTs1>::new(limits(), config).err().map(|e: ConfigError| e.to_string());
    let config = Ts1 { slice: Duration::from_ms(10), idle: Duration::from_ms(6), ..Ts1::default() };
    let text = refused(config).expect("6 ms is more than half of 10 ms");
    assert_eq!(text, "idle, in percent of slice, = 60 is out of range: 0 to 50");
    assert_eq!(refused(Ts1 { idle: Duration::from_ms(5), ..config }), None);
    assert!(Ts1::default().set("slice", 0).is_err() && Config::default().set("quantum", 0).is_err());
    assert!(Ts2::default().set("max_depth", 1).is_err());
}

// All three: faults and exits.

/// Runs a test for each of the three presets.
macro_rules! for_each {
    ($($test:ident: $body:ident;)*) => {
        $(#[test]
        fn $test() {
            $body::<RoundRobin>(Config::of_2_6_10());
            $body::<CfqTs1>(Ts1::of_2004());
            $body::<CfqTs2>(Ts2::of_2004());
        })*
    };
}

for_each! {
    what_is_handed_back_goes_first_and_completes_once: hands_back;
    draining_empties_everything_and_leaves_a_working_scheduler: drains;
    tasks_without_a_slot_share_one_queue: shares_the_fallback;
    the_slot_of_a_task_that_is_gone_is_used_again: releases_slots;
    spurious_timers_change_nothing: ignores_spurious_timers;
}

fn hands_back<S: Scheduler>(config: S::Config) {
    let mut rig = rig::<S>(config);
    for i in 0..6 {
        rig.queue(ms(0), read(1 + i % 2, u64::from(i) * 1000));
    }
    let first = rig.issue(ms(0));
    rig.elevator.requeue(ms(1), first);
    rig.elevator.check();
    assert_eq!(rig.issue(ms(1)), first);
    rig.complete(ms(2), first);
    let mut rest = Vec::new();
    for at in 2..100 {
        rest.extend(rig.serve_all(ms(at)));
        rig.elevator.timer(ms(at));
    }
    rest.sort_unstable();
    let all: Vec<_> =
        (0..6).map(|i| i * 1000).filter(|&s| s != rig.elevator.requests()[first].rq.start.0).collect();
    assert_eq!(rest, all);
}

fn drains<S: Scheduler>(config: S::Config) {
    let mut rig = rig::<S>(config);
    for i in 0..30 {
        rig.queue(ms(0), read(1 + i % 5, u64::from(i) * 1000));
    }
    // Something on the list, at the device, and awaited.
    let tag = rig.issue(ms(0));
    let mut drained = Vec::new();
    while let Some(tag) = rig.elevator.drain(ms(1)) {
        rig.elevator.check();
        drained.push(tag);
    }
    assert_eq!(drained.len(), 29);
    drained.push(tag);
    for tag in drained {
        rig.complete(ms(2), tag);
    }
    rig.queue(ms(50), read(9, 77));
    rig.elevator.timer(ms(60));
    assert_eq!(rig.serve_all(ms(60)), [77]);
}

fn shares_the_fallback<S: Scheduler>(config: S::Config) {
    let mut rig = Rig::<S>::with(Limits { tasks: 1, ..limits() }, config);
    for task in 1..=4 {
        rig.queue(ms(0), read(task, u64::from(task) * 1000));
    }
    // It has no queue of its own: nothing to release.
    let _ = rig.elevator.control(ms(0), Control::TaskExit(TaskId(3)));
    let mut served = Vec::new();
    for at in 0..100 {
        served.extend(rig.serve_all(ms(at)));
        rig.elevator.timer(ms(at));
    }
    assert_eq!(served, [1000, 2000, 3000, 4000], "the three that share a queue leave in sector order");
}

fn releases_slots<S: Scheduler>(config: S::Config) {
    let mut rig = Rig::<S>::with(Limits { tasks: 1, ..limits() }, config);
    for task in 1..=3 {
        let start = u64::from(task) * 1000;
        let at = ms(u64::from(task) * 10);
        rig.queue(at, read(task, start));
        let tag = rig.issue(at);
        let _ = rig.elevator.control(at, Control::TaskExit(TaskId(task)));
        rig.elevator.check();
        rig.complete(at, tag);
        rig.elevator.timer(at + Duration::from_ms(5));
        // Only a task with a queue of its own may front-merge there, and none into the others' queue.
        rig.queue(at + Duration::from_ms(5), read(task + 100, start));
        let merged = rig.add(at + Duration::from_ms(5), read(task + 200, start - 8)).1;
        assert_eq!(merged, Insert::Queued, "task {} did not get the slot of task {task}", task + 100);
        let _ = rig.elevator.control(at + Duration::from_ms(5), Control::TaskExit(TaskId(task + 100)));
        while let Some(tag) = rig.elevator.drain(at + Duration::from_ms(6)) {
            rig.complete(at + Duration::from_ms(6), tag);
        }
        rig.elevator.timer(at + Duration::from_ms(9));
    }
}

// Closed worlds.

fn reader(task: u32) -> Client {
    let template = read(task, u64::from(task) * 10_000_000);
    Client { from: ms(0), ..Client::sequential(template, Duration::from_us(50)) }
}

/// A writer that keeps `depth` requests in the system.
fn writer(task: u32, depth: u32) -> Client {
    let template = Request { len: Sectors(64), ..write(task, u64::from(task) * 10_000_000) };
    Client { template, depth, think: Duration::ZERO, ..reader(task) }
}

/// A disk of 28 MB/s, which is 18 us a sector, with 0.15 ms for a command and 8 ms to go elsewhere.
fn disk(head: Sector, rq: &Request) -> Duration {
    let travel = if rq.start == head { 0 } else { 8_000 };
    Duration::from_us(150 + travel + u64::from(rq.len.0) * 18)
}

fn world<S: Scheduler>(config: S::Config, clients: &[Client]) -> World<S> {
    World::new(Limits { tick: TICK, merges: false, ..Limits::default() }, config, disk, clients)
}

/// A closed loop after this time.
fn run<S: Scheduler>(config: S::Config, clients: &[Client], until: Instant) -> World<S> {
    let mut world = world(config, clients);
    world.run(until);
    world
}

/// The task of each request, with the time when it was issued.
fn issues<S: Scheduler>(world: &World<S>) -> Vec<(Instant, u32)> {
    world.done.iter().map(|d| (d.issued, world.clients[d.client].template.task.0)).collect()
}

/// The turns that were taken: who, from its first issue to that of the next.
fn turns<S: Scheduler>(world: &World<S>) -> Vec<(u32, Duration)> {
    let log = issues(world);
    let mut turns = Vec::new();
    let mut start = log[0];
    for (at, task) in log {
        if task != start.1 {
            turns.push((start.1, at.since(start.0)));
            start = (at, task);
        }
    }
    turns
}

fn ignores_spurious_timers<S: Scheduler>(config: S::Config) {
    let clients = [reader(1), reader(2), writer(3, 16)];
    let plain = run::<S>(config, &clients, ms(2000));
    let mut spurious = world::<S>(config, &clients);
    spurious.spurious_timers = true;
    spurious.run(ms(2000));
    assert_eq!(spurious.done, plain.done);
}

//= docs/reference/cfq.md#9-test-vectors vector 11
#[test]
fn two_equal_readers_alternate_in_slices_of_83_ms() {
    let world = run::<CfqTs1>(Ts1::of_2004(), &[reader(1), reader(2)], ms(3000));
    let turns = turns(&world);
    assert!(turns.len() > 30, "{turns:?}");
    for (i, &(task, length)) in turns.iter().enumerate() {
        assert_eq!(task, 1 + (i as u32) % 2, "they alternate");
        // A request takes 0.3 ms, or 8.3 ms from afar; a tick of rounding.
        let (min, max) = (Duration::from_ms(83 - 9), Duration::from_ms(83 + 9));
        assert!(min <= length && length <= max, "turn {i}: {length}");
    }
}

//= docs/reference/published-results.md#11-case-1 R000-C1-cfq-2 R000-C1-cfq-4 R000-C1-cfq-8
#[test]
fn the_worst_latency_is_about_the_slices_of_the_others() {
    let alone = run::<CfqTs1>(Ts1::of_2004(), &[reader(1)], ms(5000)).sectors()[0];
    for n in [2_u64, 4, 8] {
        let clients: Vec<_> = (0..n as u32).map(reader).collect();
        let world = run::<CfqTs1>(Ts1::of_2004(), &clients, ms(5000));
        let served = world.sectors();
        let total: u64 = served.iter().sum();
        assert!(total * 100 > alone * 85, "{n} readers together had {total}, one alone {alone}");
        let (least, most) = (served.iter().min().unwrap(), served.iter().max().unwrap());
        // In 5 s each of 8 has 7 or 8 slices.
        assert!(least * 100 > most * 80, "{served:?}");
        let worst = world.done.iter().map(|d| d.latency).max().unwrap();
        // A slice ends up to an idle period early, when the queue is empty and no such period is left; it may
        // also end with a request that came just in time, and starts with a seek.
        let (least, most) = (Duration::from_ms(79 * (n - 1)), Duration::from_ms(83 * (n - 1) + 12 * n));
        assert!(least <= worst && worst <= most, "{n} readers: {worst}");
    }
}

/// What a reader and a writer that keeps 64 requests queued are served, in sectors, in 10 s.
fn reader_and_writer<S: Scheduler>(config: S::Config) -> [u64; 2] {
    let world = run::<S>(config, &[reader(1), writer(2, 64)], ms(10_000));
    <[u64; 2]>::try_from(world.sectors()).unwrap()
}

//= docs/reference/published-results.md#17-vmstat R000-V-old-1 R000-V-new-1
#[test]
fn a_reader_beside_a_deep_writer_gets_nearly_the_whole_disk_from_ts2_on() {
    let [reader, writer] = reader_and_writer::<CfqTs2>(Ts2::of_2004());
    // Alone it would have had a request each 0.344 ms, thinking time included, of 8 sectors.
    let alone = 10_000_000 / (150 + 50 + 8 * 18) * 8;
    assert!(reader * 100 > alone * 75, "{reader} of {alone}");
    assert!(writer > 0);
    let [before, _] = reader_and_writer::<RoundRobin>(Config::of_2_6_10());
    assert!(before * 3 < reader, "{before} with the request round robin, {reader} with slices");
}

#[test]
fn an_async_turn_lasts_eight_requests() {
    let world = run::<CfqTs2>(Ts2::of_2004(), &[reader(1), writer(2, 64)], ms(3000));
    let mut in_a_row = 0;
    for (_, task) in issues(&world) {
        in_a_row = if task == 2 { in_a_row + 1 } else { 0 };
        assert!(in_a_row <= 8, "the writer had more than slice_async_rq");
    }
}
