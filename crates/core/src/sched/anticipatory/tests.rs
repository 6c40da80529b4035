extern crate std;
use super::*;
use crate::testkit::{Client, Rig, World, ms as at, read, write};
use crate::{Sectors, TaskId};
use core::fmt::Write as _;
use std::string::String;
use std::vec::Vec;

/// A disk far away.
const FAR: u64 = 40_000_000;

fn ms(instant: Instant) -> u64 {
    instant.since(Instant::EPOCH).as_ms()
}

fn early() -> Config {
    Config::linux_2_6_9()
}

fn late() -> Config {
    Config::default()
}

impl Rig<Anticipatory> {
    /// One read of `task`, alone on the disk, that takes 5 ms.
    fn serve(&mut self, time: u64, rq: Request) {
        let tag = self.insert(time, rq);
        self.issues(time, tag);
        self.complete(time + 5, tag);
    }

    /// `time letter task+sector reason` for everything that happened.
    fn log(&mut self) -> String {
        let mut log = String::new();
        for e in self.elevator.drain_trace() {
            write!(log, "{} {} task {}", ms(e.at), e.action.letter(), e.task.0).unwrap();
            if e.tag.is_some() {
                write!(log, " at {}", e.start.0).unwrap();
            }
            match e.reason {
                Reason::None => log.push('\n'),
                reason => writeln!(log, " {reason:?}").unwrap(),
            }
        }
        log
    }

    fn sched(&self) -> &Anticipatory {
        self.elevator.scheduler()
    }
}

fn sequential(task: u32) -> Client {
    Client::sequential(read(task, u64::from(task) * FAR), Duration::from_us(50))
}

fn random(task: u32, over: u64) -> Client {
    let template = Request { len: Sectors(128), ..read(task, u64::from(task) * FAR) };
    Client { template, random_over: Some(over), ..sequential(task) }
}

fn writer(task: u32) -> Client {
    Client { template: write(task, u64::from(task) * FAR), ..sequential(task) }
}

/// A disk that takes 0.2 ms for each 8 sectors, and 10 ms to move the head anywhere.
fn disk(head: Sector, rq: &Request) -> Duration {
    Duration::from_us(if rq.start == head { 0 } else { 10_000 } + u64::from(rq.len.0) * 25)
}

/// A closed loop at a disk that takes this many requests.
fn world(config: Config, depth: u16, clients: &[Client]) -> World<Anticipatory> {
    let limits = Limits { queue_depth: depth, tick: Duration::from_ms(1), ..Limits::default() };
    World::new(limits, config, disk, clients)
}

/// A closed loop after this many milliseconds.
fn run(config: Config, depth: u16, clients: &[Client], until: u64) -> World<Anticipatory> {
    let mut world = world(config, depth, clients);
    world.run(until);
    world
}

impl World<Anticipatory> {
    fn served(&self, task: u32) -> usize {
        self.done.iter().filter(|d| self.task(d.client) == task).count()
    }

    fn task(&self, client: usize) -> u32 {
        self.clients[client].template.task.0
    }

    fn max_latency_ms(&self) -> u64 {
        self.done.iter().map(|d| d.latency.as_ms()).max().unwrap()
    }

    /// The turns: the task, the number of its requests, and when it ended.
    fn turns(&self) -> Vec<(u32, usize, u64)> {
        let mut turns: Vec<(u32, usize, u64)> = Vec::new();
        for d in &self.done {
            let task = self.task(d.client);
            match turns.last_mut() {
                Some(turn) if turn.0 == task => *turn = (task, turn.1 + 1, ms(d.at)),
                _ => turns.push((task, 1, ms(d.at))),
            }
        }
        turns
    }
}

#[test]
fn sequential_readers_take_turns_of_read_expire() {
    for (config, n) in [(early(), 2), (early(), 4), (late(), 4), (late(), 8)] {
        let clients: Vec<Client> = (1..=n).map(sequential).collect();
        let run = run(config, 1, &clients, 4_000);
        // Expiry is looked at every 125 ms; with one competitor the look comes too early every second time.
        let turn = if n == 2 { 250 } else { 125 };
        for window in run.turns()[1..].windows(2).take(12) {
            let (before, (task, requests, ends)) = (window[0], window[1]);
            assert_eq!(task, before.0 % n + 1, "{n} readers: the oldest is next");
            assert!((ends - before.2).abs_diff(turn) <= 2, "{n} readers: a turn of {} ms", ends - before.2);
            assert!(requests as u64 > turn * 7 / 2, "{n} readers: only {requests} requests in a turn");
        }
        let per_reader = run.max_latency_ms() / u64::from(n);
        assert!((117..=133).contains(&per_reader), "{n} readers: waited for {per_reader} ms each");
    }
}

/// Two far readers on a device that takes two requests: after each request of reader 1, the disk waits for
/// its next. Reader 2's request expires at 126 ms, but the look at 125 ms comes too early and the next one is
/// at 250 ms.
//= docs/reference/elevators.md#8-test-vectors vector 5 type=test
#[test]
fn a_sequential_reader_keeps_the_disk_until_the_other_expires() {
    let mut rig = Rig::<Anticipatory>::new(late());
    let mut tag = rig.insert(0, read(1, 0));
    rig.issues(0, tag);
    let far = rig.insert(1, read(2, FAR));
    let mut time = 0;
    while time < 250 {
        rig.holds(time + 1, Hold::Anticipate);
        assert_eq!(rig.timer_at(), None, "the completion is coming");
        rig.complete(time + 4, tag);
        rig.holds(time + 4, Hold::Anticipate);
        assert_eq!(rig.timer_at(), Some(at(time + 10)));
        time += 5;
        tag = rig.insert(time, read(1, time / 5 * 8));
        assert_eq!(rig.timer_at(), None, "a hit ends the wait");
        if time < 250 {
            rig.issues(time, tag);
        }
    }
    rig.issues(250, far);
    // Now the disk is reader 2's.
    rig.holds(251, Hold::Anticipate);
    rig.complete(254, far);
    rig.holds(254, Hold::Anticipate);
    let far = rig.insert(255, read(2, FAR + 8));
    rig.issues(255, far);
}

#[test]
fn the_reasons_for_waiting_and_for_giving_up() {
    let mut rig = Rig::<Anticipatory>::new(late());
    rig.serve(0, read(1, 0));
    let far = rig.insert(6, read(2, FAR));
    rig.holds(6, Hold::Anticipate);
    let hit = rig.insert(7, read(1, 8));
    rig.issues(7, hit);
    rig.complete(12, hit);
    rig.holds(12, Hold::Anticipate);
    assert_eq!(rig.timer_at(), Some(at(18)));
    rig.timer(18);
    rig.issues(18, far);
    let expected = "\
        0 I task 1 at 0\n0 m task 1 BatchChange\n0 D task 1 at 0 NewBatch\n5 C task 1 at 0\n\
        6 I task 2 at 40000000\n6 m task 1 Anticipate\n\
        7 I task 1 at 8\n7 m task 1 AnticipationHit\n7 D task 1 at 8 Nearest\n12 C task 1 at 8\n\
        12 m task 1 Anticipate\n18 m task 1 AnticipationTimeout\n18 D task 2 at 40000000 Nearest\n";
    assert_eq!(rig.log(), expected);
}

/// What the first sync request after an async batch says about that batch, by how long it took.
//= docs/reference/elevators.md#8-test-vectors vector 6 type=test
#[test]
fn async_batches_adapt_to_their_target() {
    let size_after = |took: u64, issued: u32, idled: bool| {
        let config = late();
        let mut batch = Batch::new(&config, Duration::from_ms(1));
        assert_eq!(batch.writes_max(), 12);
        batch.change_to(Kind::Async);
        batch.begin(at(1000), &config);
        (0..issued).for_each(|_| batch.count_write());
        if idled {
            batch.note_idleness(false);
        }
        batch.change_to(Kind::Sync);
        batch.begin(at(1000 + took), &config);
        batch.completed(at(1000 + took), Kind::Sync, 1, true, &config);
        batch.writes_max()
    };
    assert_eq!(size_after(400, 12, false), 6);
    assert_eq!(size_after(20, 12, false), 24);
    assert_eq!(size_after(200, 12, false), 11);
    assert_eq!(size_after(100, 12, false), 13);
    assert_eq!(size_after(20, 5, false), 12, "did not use all, so could not have gone faster");
    assert_eq!([400, 200].map(|took| size_after(took, 5, true)), [12, 12], "idled: says nothing");
    assert_eq!(size_after(125, 12, false), 12);
}

/// A think time of 4 ms, again and again: the mean starts at 8 because of rounding, and passes 5.
//= docs/reference/elevators.md#8-test-vectors vector 7 type=test
#[test]
fn think_times_are_filtered_in_ticks() {
    let mut rig =
        Rig::<Anticipatory>::with(Limits { tick: Duration::from_ms(1), ..Limits::default() }, late());
    let mut means = Vec::new();
    for n in 0..4 {
        // 5 ms of service and 4 ms of thinking.
        rig.serve(9 * n, read(1, 8 * n));
        let tasks = &rig.sched().tasks;
        means.push(tasks[tasks.slot(TaskId(1)).unwrap()].think.mean());
    }
    assert_eq!(means, [0, 8, 6, 5]);
    assert_eq!(rig.sched().est_time().think_mean, Duration::ZERO, "an eighth of 4 ms, in whole ms");
}

#[test]
fn long_think_times_count_as_19_ms_and_make_waiting_useless() {
    let mut rig = Rig::<Anticipatory>::new(late());
    for n in 0..8 {
        rig.serve(1000 * n, read(1, 8 * n));
    }
    let tasks = &rig.sched().tasks;
    // Rounded up, as long as there are few samples.
    assert_eq!(tasks[tasks.slot(TaskId(1)).unwrap()].think.mean(), 20);
    let far = rig.insert(7006, read(2, FAR));
    rig.issues(7006, far);
}

/// After 3 ms in vain, 256 sectors ahead are close in 2.6.9, and 65536 in 2.6.32; half as much behind.
//= docs/reference/elevators.md#8-test-vectors vector 8 type=test
#[test]
fn closeness_grows_while_the_disk_waits() {
    for (config, waited, ahead) in
        [(early(), 1, 64), (early(), 3, 256), (late(), 0, 8192), (late(), 3, 65_536)]
    {
        let breaks = |start: u64| {
            let mut rig = Rig::<Anticipatory>::new(config);
            rig.serve(0, read(1, 1_000_000));
            // A far request makes the disk wait; what comes later may be close.
            rig.insert(5, read(2, FAR));
            rig.holds(5, Hold::Anticipate);
            rig.insert(5 + waited, read(3, start));
            !matches!(rig.dispatch(5 + waited), Dispatch::Hold(_))
        };
        let head = 1_000_008;
        let found = [breaks(head + ahead), breaks(head + ahead + 1), breaks(head - ahead / 2)];
        assert_eq!(found, [true, false, true], "{:?} after {waited} ms", config.variant);
        assert!(!breaks(head - ahead / 2 - 1), "{:?} after {waited} ms, behind", config.variant);
    }
}

/// Two random readers side by side, one of whose files is larger: its mean seek is longer than the way to the
/// other, so that the disk does not wait for it, but waits for the other.
#[test]
fn the_random_reader_with_longer_seeks_loses() {
    let small = Client { template: Request { len: Sectors(128), ..read(1, 0) }, ..random(1, 200_000) };
    let large =
        Client { template: Request { len: Sectors(128), ..read(2, 300_000) }, ..random(2, 4_000_000) };
    let run = run(early(), 1, &[small, large], 20_000);
    let shares = [run.served(1), run.served(2)];
    assert!(shares[1] * 10 < shares[0] * 7, "{shares:?}");
    assert!(shares[1] > 50, "but is not starved: {shares:?}");
}

/// The writer has one request at a time, so its batch is over with that, and the next comes after 500 ms of
/// reads.
#[test]
fn a_writer_with_one_request_gets_one_in_each_read_batch() {
    for config in [early(), late()] {
        let run = run(config, 1, &[sequential(1), writer(2)], 10_000);
        assert!((18..=20).contains(&run.served(2)), "{:?}: {}", config.variant, run.served(2));
        assert!((505..=530).contains(&run.max_latency_ms()), "{}", run.max_latency_ms());
    }
}

/// Reader 1 has two requests in flight, so one is at the device whenever the sync batch is over.
#[test]
fn a_deferred_batch_of_writes_gets_no_time_in_2_6_9() {
    let reader = sequential(1);
    let second = Client { template: read(1, FAR + 8_000_000), ..reader };
    let writers = [2, 3, 4].map(writer);
    let clients = [reader, second, writers[0], writers[1], writers[2]];
    let writes = |config: Config| {
        let run = run(config, 2, &clients, 10_000);
        assert!(run.served(1) > 500);
        run.served(2) + run.served(3) + run.served(4)
    };
    assert!(writes(early()) <= 4, "{}", writes(early()));
    assert!(writes(late()) >= 40, "{}", writes(late()));
}

#[test]
fn a_batch_change_waits_for_the_device() {
    let mut rig = Rig::<Anticipatory>::new(late());
    let first = rig.insert(0, read(1, 0));
    rig.issues(0, first);
    let second = rig.insert(0, read(1, 100));
    rig.issues(0, second);
    let written = rig.insert(1, write(2, 50));
    rig.complete(4, first);
    rig.holds(4, Hold::Anticipate);
    // The wait is timed from the first completion of the awaited task; that of its other request does not
    // prolong it.
    rig.complete(8, second);
    assert_eq!(rig.timer_at(), Some(at(10)));
    rig.timer(10);
    let later = rig.insert(10, read(1, 200));
    rig.issues(10, later);
    // From the first completion, 500 ms of sync; then the write, once the device is empty.
    let mut reads = Vec::from([later]);
    for n in 0..2 {
        let tag = rig.insert(505, read(1, 300 + 100 * n));
        reads.push(tag);
    }
    rig.holds(505, Hold::DrainBatch);
    assert_eq!(rig.timer_at(), None);
    rig.complete(506, later);
    rig.issues(506, written);
    rig.holds(506, Hold::DrainBatch);
}

#[test]
fn draining_waits_for_nothing() {
    let mut rig = Rig::<Anticipatory>::new(late());
    rig.serve(0, read(1, 0));
    let written = rig.insert(6, write(3, 500));
    let far = rig.insert(6, read(2, FAR));
    rig.holds(6, Hold::Anticipate);
    let drained: Vec<Tag> = core::iter::from_fn(|| rig.elevator.drain(at(7))).collect();
    assert_eq!(drained, [far, written]);
    assert_eq!(rig.timer_at(), None);
    drained.into_iter().for_each(|tag| rig.complete(12, tag));
    assert_eq!(rig.dispatch(12), Dispatch::Empty);
    assert_eq!(rig.sched().own.in_flight, 0);
}

#[test]
fn an_exit_in_the_middle_of_a_wait() {
    for config in [early(), late()] {
        let mut rig = Rig::<Anticipatory>::new(config);
        rig.serve(0, read(1, 0));
        let far = rig.insert(6, read(2, FAR));
        rig.holds(6, Hold::Anticipate);
        rig.exit(7, 1);
        // Its entry is kept while it is awaited.
        assert!(rig.sched().tasks.slot(TaskId(1)).is_some());
        rig.holds(7, Hold::Anticipate);
        let farther = rig.insert(8, read(3, 2 * FAR));
        if config.variant == Variant::Late {
            // Another task may still continue where it stopped.
            rig.holds(8, Hold::Anticipate);
            rig.timer(11);
            assert_eq!(rig.sched().est_time().exit_no_coop_percent, 12, "1/8");
        }
        assert!(rig.sched().est_time().exit_percent >= 12, "{:?}", rig.sched().est_time());
        rig.issues(11, far);
        assert!(rig.sched().tasks.slot(TaskId(1)).is_none(), "no longer awaited");
        rig.complete(16, far);
        rig.timer(22);
        rig.issues(22, farther);
    }
}

#[test]
fn an_exit_while_the_awaited_request_is_at_the_device() {
    let mut rig = Rig::<Anticipatory>::new(late());
    let near = rig.insert(0, read(1, 0));
    rig.issues(0, near);
    let far = rig.insert(1, read(2, FAR));
    rig.holds(1, Hold::Anticipate);
    rig.exit(2, 1);
    rig.holds(2, Hold::Anticipate);
    rig.complete(5, near);
    assert_eq!(rig.timer_at(), Some(at(11)), "its completion starts the timer");
    rig.timer(11);
    rig.issues(11, far);
}

/// An exited reader, and a cooperator that continues where it stopped: with 2.6.32's rules that ends the
/// wait.
#[test]
fn a_cooperator_takes_an_exited_tasks_place() {
    let mut rig = Rig::<Anticipatory>::new(late());
    rig.serve(0, read(1, 0));
    rig.insert(6, read(2, FAR));
    rig.holds(6, Hold::Anticipate);
    rig.exit(7, 1);
    let next = rig.insert(8, read(3, 64));
    rig.issues(8, next);
    assert_eq!(rig.sched().est_time().exit_no_coop_percent, 0);
    assert!(rig.log().contains("8 m task 1 AnticipationClose"));
}

/// New tasks that send one request and exit, again and again. The probability goes 32, 60, 84, 105, 123, 139
/// (of 256) in six steps, past a half; in 2.6.32 the product of two such has to pass a half, 185 * 185 after
/// ten.
#[test]
fn newcomers_that_exit_are_not_waited_for() {
    for (config, useless_from) in [(early(), 6), (late(), 10)] {
        let mut rig = Rig::<Anticipatory>::new(config);
        let mut waits = 0;
        for n in 0..12_u32 {
            let time = 100 * u64::from(n);
            let tag = rig.insert(time, read(10 + n, u64::from(n) * FAR));
            rig.issues(time, tag);
            rig.complete(time + 5, tag);
            let other = rig.insert(time + 6, write(1, 7));
            if rig.dispatch(time + 6) == Dispatch::Hold(Hold::Anticipate) {
                waits += 1;
                rig.exit(time + 7, 10 + n);
                rig.timer(time + 11);
                rig.issues(time + 11, other);
            }
            rig.complete(time + 20, other);
        }
        assert_eq!(waits, useless_from, "{:?}", config.variant);
    }
}

/// New tasks that pause for about a second before their second request, which counts as 19 ticks. The mean of
/// first samples goes 2, 4, 6, 7 in whole ticks, and a wait lasts for 6.
#[test]
fn newcomers_that_think_for_long_are_not_waited_for() {
    for config in [early(), late()] {
        let limits = Limits { tick: Duration::from_ms(1), ..Limits::default() };
        let mut rig = Rig::<Anticipatory>::with(limits, config);
        let mut found = Vec::new();
        for n in 0..7_u32 {
            let (time, start) = (3000 * u64::from(n), u64::from(n) * FAR);
            rig.serve(time, read(10 + n, start));
            let other = rig.insert(time + 6, write(1, 7));
            let waits = rig.dispatch(time + 6) == Dispatch::Hold(Hold::Anticipate);
            if waits {
                rig.timer(time + 20);
                rig.issues(time + 20, other);
            }
            rig.complete(time + 30, other);
            found.push((rig.sched().tasks.newcomers.think_mean(), waits));
            rig.serve(time + 1000, read(10 + n, start + 8));
        }
        let expected = [(0, true), (2, true), (4, true), (6, true), (7, false), (9, false), (10, false)];
        assert_eq!(found, expected, "{:?}", config.variant);
    }
}

#[test]
fn a_slot_is_given_back_when_a_task_has_gone() {
    let mut rig = Rig::<Anticipatory>::with(Limits { tasks: 2, ..Limits::default() }, late());
    for n in 0..20 {
        rig.serve(1000 * u64::from(n), read(n, u64::from(n) * FAR));
        rig.exit(1000 * u64::from(n) + 6, n);
        assert!(rig.sched().tasks.slot(TaskId(n)).is_some(), "task {n} has an entry of its own");
    }
}

#[test]
fn spurious_timers_change_nothing() {
    let clients = [sequential(1), random(2, 4_000_000), writer(3)];
    for config in [early(), late()] {
        let plain = run(config, 2, &clients, 3_000);
        let mut spurious = world(config, 2, &clients);
        spurious.spurious_timers = true;
        spurious.run(3_000);
        assert_eq!(plain.done, spurious.done);
    }
}

#[test]
fn a_request_that_was_handed_back_goes_first_and_the_wait_goes_on() {
    let mut rig = Rig::<Anticipatory>::new(late());
    let near = rig.insert(0, read(1, 0));
    rig.issues(0, near);
    let far = rig.insert(1, read(2, FAR));
    rig.holds(1, Hold::Anticipate);
    rig.elevator.requeue(at(2), near);
    rig.elevator.check();
    rig.issues(3, near);
    rig.holds(3, Hold::Anticipate);
    rig.complete(6, near);
    assert_eq!(rig.timer_at(), Some(at(12)));
    rig.timer(12);
    rig.issues(12, far);
}

/// Reader 1's next request is merged into reader 2's, so it never shows: the wait ends by itself.
#[test]
fn an_awaited_request_that_is_merged_into_another_does_not_prolong_the_wait() {
    let mut rig = Rig::<Anticipatory>::new(late());
    rig.serve(0, read(1, 0));
    let far = rig.insert(6, read(2, FAR));
    rig.holds(6, Hold::Anticipate);
    let merged = rig.insert(7, read(1, FAR + 8));
    rig.holds(7, Hold::Anticipate);
    rig.timer(11);
    rig.issues(11, far);
    assert!(rig.elevator.complete(at(16), far).eq([far, merged]));
}

#[test]
fn without_antic_expire_the_disk_never_waits() {
    let mut rig = Rig::<Anticipatory>::new(Config { antic_expire: Duration::ZERO, ..late() });
    rig.serve(0, read(1, 0));
    let far = rig.insert(6, read(2, FAR));
    rig.issues(6, far);
}

#[test]
fn a_join_keeps_the_earlier_deadline_and_forgets_the_other_request() {
    let mut rig = Rig::<Anticipatory>::new(Config { antic_expire: Duration::ZERO, ..late() });
    let first = rig.insert(0, read(1, 0));
    rig.issues(0, first);
    let behind = rig.insert(1, read(2, FAR + 16));
    let near = rig.insert(2, read(1, 100));
    let front = rig.insert(3, read(3, FAR));
    let between = rig.insert(4, read(3, FAR + 8));
    // Now one request of three, as old as the one behind, and it has the place of that.
    assert_eq!(rig.elevator.requests()[front].rq.len, Sectors(24));
    rig.complete(130, first);
    rig.issues(130, front);
    assert!(rig.elevator.complete(at(135), front).eq([front, behind, between]));
    rig.issues(135, near);
}

#[test]
fn sync_and_async_requests_do_not_merge() {
    let mut rig = Rig::<Anticipatory>::new(late());
    rig.insert(0, write(1, 0));
    rig.insert(0, Request { sync: true, ..write(1, 8) });
    assert_eq!(rig.elevator.requests().queued(), 2);
}

#[test]
fn extreme_values_do_not_overflow() {
    for raw in [0, u64::MAX] {
        let mut config = late();
        for name in ["read_expire", "write_expire", "read_batch_expire", "write_batch_expire", "antic_expire"]
        {
            config.set(name, raw).unwrap();
        }
        let mut rig = Rig::<Anticipatory>::new(config);
        for (n, start) in [0, u64::MAX - 16, 5, u64::MAX - 100].into_iter().enumerate() {
            let time = 1000 * n as u64;
            rig.insert(time, write(2, start / 2));
            let tag = rig.insert(time, read(1, start));
            while rig.elevator.requests()[tag].state == crate::State::Queued {
                match rig.dispatch(time) {
                    Dispatch::Issue(other) if other != tag => rig.complete(time, other),
                    _ => {}
                }
            }
            rig.complete(time + 5, tag);
        }
        assert!(rig.sched().tasks.newcomers.think_mean() < 20);
    }
}

/// Reader 1 seeks 10000 sectors on average. What is nearer than that to the head is served instead of
/// waiting.
#[test]
fn a_request_nearer_than_the_awaited_tasks_usual_seek_is_served() {
    for config in [early(), late()] {
        for (distance, served) in [(9_000, true), (12_000, false)] {
            let mut rig = Rig::<Anticipatory>::new(config);
            for n in 0..8 {
                rig.serve(6 * n, read(1, 100_000 + 10_000 * n));
            }
            let head = 170_008;
            let tag = rig.insert(48, read(2, head - distance));
            let expected = if served { Dispatch::Issue(tag) } else { Dispatch::Hold(Hold::Anticipate) };
            assert_eq!(rig.dispatch(48), expected, "{:?}, {distance} sectors back", config.variant);
        }
    }
}

/// Tasks exit that are known not to be newcomers, and no task takes their place: six times that costs a whole
/// wait, then an exit ends the wait. A cooperator then makes it less probable again.
#[test]
fn exits_alone_are_remembered() {
    let mut rig = Rig::<Anticipatory>::new(late());
    for n in 0..7_u32 {
        let time = 100 * u64::from(n);
        let start = u64::from(n) * FAR;
        rig.serve(time, read(10 + n, start));
        rig.serve(time + 6, read(10 + n, start + 8));
        rig.exit(time + 12, 10 + n);
        let far = rig.insert(time + 12, read(1, 100 * FAR));
        if n < 6 {
            rig.holds(time + 12, Hold::Anticipate);
            rig.timer(time + 17);
            rig.issues(time + 17, far);
        } else {
            rig.issues(time + 12, far);
        }
        rig.complete(time + 25, far);
    }
    // 139 of 256; after a cooperator 121.
    assert_eq!(rig.sched().est_time().exit_no_coop_percent, 54);
    rig.serve(800, read(20, 0));
    let far = rig.insert(806, read(1, 100 * FAR));
    rig.holds(806, Hold::Anticipate);
    rig.exit(807, 20);
    let next = rig.insert(808, read(30, 64));
    rig.issues(808, next);
    assert_eq!(rig.sched().est_time().exit_no_coop_percent, 47);
    rig.complete(809, next);
    rig.timer(815);
    rig.issues(815, far);
}

/// Forward first; a little backward if nothing is ahead; else from the lowest.
#[test]
fn a_sweep_ends_with_a_wrap_to_the_lowest() {
    let mut rig = Rig::<Anticipatory>::new(late());
    // One task, so that the disk never waits. The first batch starts at the oldest.
    let order = [6_000_000, 0, 3_000_000, 6_000_100, 5_999_990];
    let tags = order.map(|start| rig.insert(0, read(1, start)));
    // 5999990 is 18 sectors back, so costs 36; 6000100 costs 92.
    for expected in [0, 4, 3, 1, 2] {
        rig.issues(1, tags[expected]);
    }
}

#[test]
fn where_an_async_batch_begins() {
    for (config, first) in [(early(), 1), (late(), 0)] {
        let mut rig = Rig::<Anticipatory>::new(config);
        let tags = [900, 100].map(|start| rig.insert(0, write(1, start)));
        let next = rig.insert(0, read(2, FAR));
        rig.issues(0, next);
        rig.complete(1, next);
        rig.holds(1, Hold::Anticipate);
        rig.timer(7);
        rig.issues(7, tags[first]);
    }
}

/// While nothing async waits, a sync batch does not age: the first write has to wait for all of the 500 ms.
#[test]
fn a_sync_batch_is_timed_from_when_the_other_kind_waits() {
    let mut rig = Rig::<Anticipatory>::new(Config { antic_expire: Duration::ZERO, ..late() });
    for n in 0..100 {
        rig.serve(10 * n, read(1, 8 * n));
    }
    let written = rig.insert(1000, write(2, FAR));
    let mut last = 0;
    for n in 100..200 {
        let time = 10 * n;
        let tag = rig.insert(time, read(1, 8 * n));
        let Dispatch::Issue(first) = rig.dispatch(time) else { panic!("the device is empty") };
        if first == written {
            last = time;
            break;
        }
        assert_eq!(first, tag);
        rig.complete(time + 5, tag);
    }
    // The batch was last extended at 990 ms.
    assert_eq!(last, 1500);
}

/// A close request of another task counts as the awaited task's own in 2.6.32: as a sample of its think time.
/// In 2.6.9 only its think time starts anew.
#[test]
fn a_close_request_is_booked_for_the_awaited_task() {
    for (config, samples, last_end) in [(early(), false, 8), (late(), true, 5)] {
        let mut rig = Rig::<Anticipatory>::new(config);
        rig.serve(0, read(1, 0));
        rig.insert(6, read(2, FAR));
        rig.holds(6, Hold::Anticipate);
        rig.insert(8, read(3, 24));
        let tasks = &rig.sched().tasks;
        let task = &tasks[tasks.slot(TaskId(1)).unwrap()];
        assert_eq!((!task.think.is_empty(), ms(task.last_end)), (samples, last_end), "{:?}", config.variant);
    }
}
