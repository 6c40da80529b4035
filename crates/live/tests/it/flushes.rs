//! What flushes cost their groups, in virtual time: limits, weights, and what becomes of flushes that are
//! held.

use fairhead_core::sched::any::preset;
use fairhead_core::units::{Duration, GroupId, Instant, IoPrio, Sector, TaskId, Weight};
use fairhead_core::{Class, Control, Limits, Max};
use fairhead_live::{Bio, ClientId, Errno, FileId, Flush, IoId, Op, RequestQueue, Settings, Start};
use std::num::NonZeroU64;

const TIMEOUT: Duration = Duration::from_secs(2);
const SCHEDULERS: [&str; 7] = ["noop", "deadline", "mq-deadline", "kyber", "bfq", "cfq", "as"];

/// As the lab's sata_ssd: a read, and a flush of a drive with nothing to write.
const READ: Duration = Duration::from_us(110);
const FLUSH: Duration = Duration::from_us(475);

/// A program that asks for one thing, waits for it, and thinks.
struct Program {
    client: ClientId,
    group: GroupId,
    file: u32,
    op: Op,
    think: Duration,
    asks_at: Option<Instant>,
    asked: Instant,
    waits: Vec<Duration>,
}

/// A queue at a disk that does one thing after the other.
struct Rig {
    queue: RequestQueue<()>,
    now: Instant,
    at_disk: Vec<(Instant, Start)>,
    free_at: Instant,
    programs: Vec<Program>,
    /// How many flushes the disk did.
    flushes: u64,
}

impl Rig {
    fn new(scheduler: &str) -> Self {
        let limits = Limits { tags: 64, queue_depth: 8, groups: 8, rotational: false, ..Limits::default() };
        let settings = Settings { limits, timeout: Some(TIMEOUT), ..Settings::default() };
        let queue = RequestQueue::new(settings, (preset(scheduler).unwrap().config)().live()).unwrap();
        let (now, at_disk, programs) = (Instant::EPOCH, Vec::new(), Vec::new());
        Self { queue, now, at_disk, free_at: now, programs, flushes: 0 }
    }

    fn control(&mut self, change: Control) {
        self.queue.control(self.now, change).unwrap();
    }

    fn group(&mut self, number: u32, parent: u32, weight: u16) -> GroupId {
        let group = GroupId(number);
        self.control(Control::SetParent(group, GroupId(parent)));
        self.control(Control::SetWeight(group, Weight::new(weight).unwrap()));
        group
    }

    fn limit(&mut self, group: GroupId, writes: u64) {
        let rate = NonZeroU64::new(writes);
        self.control(Control::SetMax(group, Max { riops: rate, wiops: rate, ..Max::default() }));
    }

    fn program(&mut self, group: GroupId, file: u32, op: Op, think: Duration) -> usize {
        let client = self.queue.join();
        let (asks_at, asked, waits) = (Some(self.now), self.now, Vec::new());
        self.programs.push(Program { client, group, file, op, think, asks_at, asked, waits });
        self.programs.len() - 1
    }

    fn ask(&mut self, i: usize) {
        let Program { client, group, file, op, .. } = self.programs[i];
        let n = self.programs[i].waits.len() as u64;
        (self.programs[i].asks_at, self.programs[i].asked) = (None, self.now);
        let (file, task, prio, cookie) = (FileId(file), TaskId(i as u32 + 1), IoPrio::default(), i as u64);
        if op == Op::Flush {
            return self.queue.flush(self.now, client, Flush { file, task, group, prio, cookie });
        }
        // Scattered, and of a part of the file for each program.
        let block = ((i as u64) << 20) + n * 7919 % 65_536;
        let sector = Sector(block * 8);
        let (offset, len, fua, sync) = (block * 4096, 4096, false, true);
        let bio = Bio { op, file, offset, len, sector, fua, sync, task, group, prio, cookie };
        self.queue.submit(self.now, client, bio, None);
    }

    fn pump(&mut self) {
        while let Some(start) = self.queue.next(self.now) {
            let takes = match start {
                Start::Io(_) => READ,
                Start::Flush(_) => FLUSH,
            };
            self.flushes += u64::from(matches!(start, Start::Flush(_)));
            self.free_at = self.free_at.max(self.now) + takes;
            self.at_disk.push((self.free_at, start));
        }
        while let Some(answer) = self.queue.answer() {
            assert_eq!(answer.result, Ok(()));
            let p = &mut self.programs[answer.cookie as usize];
            p.waits.push(self.now.since(p.asked));
            p.asks_at = Some(self.now + p.think);
        }
    }

    fn step(&mut self) {
        for i in 0..self.programs.len() {
            if self.programs[i].asks_at.is_some_and(|at| at <= self.now) {
                self.ask(i);
            }
        }
        if self.queue.next_timer().is_some_and(|at| at <= self.now) {
            self.queue.timer(self.now);
        }
        self.pump();
    }

    /// Everything that comes within this time happens.
    fn run(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            self.step();
            let asks = self.programs.iter().filter_map(|p| p.asks_at);
            let due = self.at_disk.iter().map(|d| d.0).chain(asks).chain(self.queue.next_timer()).min();
            let Some(next) = due.map(|at| at.max(self.now)).filter(|&at| at <= end) else { break };
            self.now = next;
            while let Some(i) = self.at_disk.iter().position(|d| d.0 <= self.now) {
                match self.at_disk.remove(i).1 {
                    Start::Io(io) => self.finish(io),
                    Start::Flush(file) => self.queue.flushed(self.now, file, Ok(())),
                }
            }
            self.queue.check();
        }
        self.now = end;
    }

    fn finish(&mut self, io: IoId) {
        let results = vec![Ok(()); self.queue.pieces(io).len()];
        self.queue.finished(self.now, io, &results);
    }

    fn done(&self, i: usize) -> usize {
        self.programs[i].waits.len()
    }

    fn p99(&self, i: usize) -> Duration {
        let mut waits = self.programs[i].waits.clone();
        waits.sort_unstable();
        waits[waits.len() * 99 / 100]
    }

    /// One flush by hand.
    fn flush(&mut self, client: ClientId, group: GroupId, cookie: u64) {
        let (file, task, prio) = (FileId(0), TaskId(9), IoPrio::default());
        self.queue.flush(self.now, client, Flush { file, task, group, prio, cookie });
        self.queue.check();
    }

    fn heard(&mut self) -> Vec<(u64, Result<(), Errno>)> {
        std::iter::from_fn(|| self.queue.answer()).map(|a| (a.cookie, a.result)).collect()
    }

    /// A client of a group at its limit, which has just used up what it may have for a tenth of a second.
    fn at_limit(scheduler: &str) -> (Self, ClientId, GroupId) {
        let mut rig = Self::new(scheduler);
        let group = rig.group(1, 0, 100);
        rig.limit(group, 10);
        let client = rig.queue.join();
        rig.flush(client, group, 1);
        assert_eq!(rig.queue.next(rig.now), Some(Start::Flush(FileId(0))), "{scheduler}: the first one goes");
        rig.queue.flushed(rig.now, FileId(0), Ok(()));
        assert_eq!(rig.heard(), [(1, Ok(()))]);
        (rig, client, group)
    }
}

#[test]
fn a_flush_counts_as_a_write_for_the_limits_of_its_group_and_those_above() {
    for scheduler in SCHEDULERS {
        for inner in [false, true] {
            let mut rig = Rig::new(scheduler);
            let outer = rig.group(1, 0, 100);
            let group = if inner { rig.group(2, 1, 100) } else { outer };
            rig.limit(outer, 10);
            let flusher = rig.program(group, 0, Op::Flush, Duration::ZERO);
            rig.run(Duration::from_secs(2));
            assert!((20..=22).contains(&rig.done(flusher)), "{scheduler} {inner}: {}", rig.done(flusher));
        }
    }
}

#[test]
fn flushes_of_a_group_that_wait_for_its_limit_are_one_and_those_of_two_files_are_two() {
    for scheduler in SCHEDULERS {
        let mut rig = Rig::new(scheduler);
        let group = rig.group(1, 0, 100);
        rig.limit(group, 10);
        let all: Vec<usize> = (0..16).map(|i| rig.program(group, i % 2, Op::Flush, Duration::ZERO)).collect();
        rig.run(Duration::from_secs(2));
        assert!((20..=22).contains(&rig.flushes), "{scheduler}: {} flushes", rig.flushes);
        for i in all {
            assert!((9..=12).contains(&rig.done(i)), "{scheduler}: {} of file {}", rig.done(i), i % 2);
        }
    }
}

/// Neither the writes of a group keep its flushes from its limit for ever, nor the other way round.
#[test]
fn flushes_and_writes_of_a_group_share_its_limit() {
    for scheduler in SCHEDULERS {
        let mut rig = Rig::new(scheduler);
        let group = rig.group(1, 0, 100);
        rig.limit(group, 100);
        let flusher = rig.program(group, 0, Op::Flush, Duration::ZERO);
        let writer = rig.program(group, 1, Op::Write, Duration::ZERO);
        rig.run(Duration::from_secs(2));
        let (flushes, writes) = (rig.done(flusher), rig.done(writer));
        assert!((199..=203).contains(&(flushes + writes)), "{scheduler}: {flushes} and {writes}");
        assert!(flushes > 80 && writes > 80, "{scheduler}: {flushes} flushes, {writes} writes");
    }
}

/// The reads that a program has beside nothing, and beside `flushers`.
fn reads(scheduler: &str, weight: u16, flushers: u32, files: u32) -> (usize, usize, Duration) {
    let run = |flushers: u32| {
        let mut rig = Rig::new(scheduler);
        let (good, evil) = (rig.group(1, 0, 100), rig.group(2, 0, weight));
        let reader = rig.program(good, 7, Op::Read, Duration::from_us(40));
        for i in 0..flushers {
            rig.program(evil, i % files, Op::Flush, Duration::ZERO);
        }
        rig.run(Duration::from_secs(2));
        (rig.done(reader), rig.p99(reader))
    };
    let ((alone, _), (beside, p99)) = (run(0), run(flushers));
    (alone, beside, p99)
}

/// Its part would be a flush in 2.4 s.
#[test]
fn a_flush_of_a_group_of_little_weight_waits_less_than_a_second() {
    let mut rig = Rig::new("noop");
    let light = rig.group(1, 0, 1);
    for i in 2..7 {
        let heavy = rig.group(i, 0, 1000);
        rig.program(heavy, i, Op::Read, Duration::from_us(40));
    }
    let flusher = rig.program(light, 0, Op::Flush, Duration::ZERO);
    rig.run(Duration::from_secs(10));
    let longest = rig.programs[flusher].waits.iter().copied().max().unwrap();
    assert!(longest > Duration::from_ms(500), "there is no pause to bound: {longest}");
    assert!(longest < Duration::from_secs(1), "{longest}");
}

/// A neighbour of weight 1 that flushed at depth 1 left a reader a quarter of its reads, and one with eight
/// connections a fifteenth.
#[test]
fn flushes_take_no_more_time_than_the_weight_of_their_group_allows() {
    for scheduler in SCHEDULERS {
        for flushers in [1, 8] {
            let (alone, beside, p99) = reads(scheduler, 1, flushers, 1);
            assert!(beside * 100 >= alone * 95, "{scheduler}: {beside} of {alone} reads beside {flushers}");
            assert!(p99 <= READ * 2, "{scheduler}: {p99}");
            let (alone, beside, p99) = reads(scheduler, 100, flushers, 1);
            assert!(beside * 100 >= alone * 45, "{scheduler}: {beside} of {alone} reads beside {flushers}");
            assert!(p99 <= READ * 2 + FLUSH, "{scheduler}: {p99}");
        }
    }
}

#[test]
fn many_files_are_not_flushed_all_at_once_beside_others() {
    for scheduler in SCHEDULERS {
        let (alone, beside, p99) = reads(scheduler, 100, 50, 50);
        assert!(beside * 100 >= alone * 45, "{scheduler}: {beside} of {alone} reads");
        assert!(p99 <= READ * 2 + FLUSH * 4, "{scheduler}: {p99}");
    }
}

#[test]
fn flushes_do_not_pause_for_groups_that_want_nothing() {
    let mut rig = Rig::new("noop");
    let (good, evil) = (rig.group(1, 0, 100), rig.group(2, 0, 1));
    let flusher = rig.program(evil, 0, Op::Flush, Duration::ZERO);
    rig.run(Duration::from_ms(475));
    assert_eq!((rig.done(flusher), rig.queue.flush_pauses()), (1000, 0), "alone");
    // One read: the flushes pause as long as its program may be about to ask for another, and no longer.
    let reader = rig.program(good, 1, Op::Read, Duration::from_secs(100));
    rig.run(Duration::from_ms(475));
    assert_eq!(rig.done(reader), 1);
    assert!((988..994).contains(&(rig.done(flusher) - 1000)), "{}", rig.done(flusher));
}

/// What two of the same weight flush at the same time is mostly done by one commit: they do not wait for each
/// other. One of much more weight is waited for.
#[test]
fn groups_that_flush_wait_only_for_those_of_more_weight() {
    for (weight, least) in [(100, 900), (10_000, 0)] {
        let mut rig = Rig::new("noop");
        let (one, other) = (rig.group(1, 0, 100), rig.group(2, 0, weight));
        let flushers =
            [(one, 0), (other, 1)].map(|(g, file)| rig.program(g, file, Op::Flush, Duration::ZERO));
        rig.run(Duration::from_ms(950));
        let [a, b] = flushers.map(|i| rig.done(i));
        assert!(a >= least && (least > 0 || a < 50) && b >= 900, "weight {weight}: {a} and {b}");
    }
}

/// Weights hold level by level, and classes come before them.
#[test]
fn the_share_of_flushes_follows_the_tree_and_classes() {
    let flushes = |prepare: fn(&mut Rig) -> [GroupId; 2]| {
        let mut rig = Rig::new("noop");
        let [reads, flushes] = prepare(&mut rig);
        rig.program(reads, 1, Op::Read, Duration::ZERO);
        let flusher = rig.program(flushes, 0, Op::Flush, Duration::ZERO);
        rig.run(Duration::from_secs(1));
        FLUSH * rig.done(flusher) as u64
    };
    // 300 of 400 outside, whatever it has inside.
    let inside = flushes(|rig| {
        let outer = rig.group(1, 0, 300);
        rig.group(2, outer.0, 1);
        [rig.group(3, 0, 100), GroupId(2)]
    });
    assert!((650..780).contains(&inside.as_ms()), "{inside}");
    let of_parent = flushes(|rig| {
        let outer = rig.group(1, 0, 300);
        [outer, rig.group(2, outer.0, 50)]
    });
    assert!((300..360).contains(&of_parent.as_ms()), "50 of 150: {of_parent}");
    let idle = flushes(|rig| {
        let idle = rig.group(2, 0, 100);
        rig.control(Control::SetClass(idle, Class::Idle));
        [rig.group(1, 0, 100), idle]
    });
    assert!(idle < Duration::from_ms(20), "{idle}");
    let real_time = flushes(|rig| {
        let quick = rig.group(2, 0, 100);
        rig.control(Control::SetClass(quick, Class::RealTime));
        [rig.group(1, 0, 100), quick]
    });
    assert!(real_time > Duration::from_ms(700), "{real_time}");
}

/// Of a flush for two groups each is charged one half.
#[test]
fn a_flush_for_two_groups_is_split_between_them() {
    let mut rig = Rig::new("noop");
    let groups = [1, 2, 3].map(|g| rig.group(g, 0, 100));
    let [a, b, reads] = groups;
    rig.program(reads, 7, Op::Read, Duration::ZERO);
    let clients = [a, b].map(|g| (rig.queue.join(), g));
    rig.run(Duration::from_us(50));
    for (client, group) in clients {
        rig.flush(client, group, 100);
    }
    assert_eq!(rig.queue.next(rig.now), Some(Start::Flush(FileId(0))));
    rig.now = rig.now + Duration::from_ms(8);
    rig.queue.flushed(rig.now, FileId(0), Ok(()));
    assert_eq!(rig.heard().len(), 2);
    // The reader is still here, so each waits 4 ms for it; the other one wants nothing by then but was here.
    rig.flush(clients[0].0, a, 101);
    assert_eq!(rig.queue.next(rig.now), None);
    rig.now = rig.now + Duration::from_us(3900);
    assert_eq!(rig.queue.next(rig.now), None, "it pauses");
    rig.now = rig.now + Duration::from_us(100);
    assert_eq!(rig.queue.next(rig.now), Some(Start::Flush(FileId(0))));
}

#[test]
fn a_limit_that_changes_lets_a_held_flush_go() {
    for scheduler in SCHEDULERS {
        let (mut rig, client, group) = Rig::at_limit(scheduler);
        rig.flush(client, group, 2);
        assert_eq!(rig.queue.next(rig.now), None, "{scheduler}: it is held");
        rig.control(Control::SetMax(group, Max::default()));
        assert_eq!(rig.queue.next(rig.now), Some(Start::Flush(FileId(0))), "{scheduler}");
        rig.queue.flushed(rig.now, FileId(0), Ok(()));
        assert_eq!((rig.heard(), rig.queue.next(rig.now)), (vec![(2, Ok(()))], None));
        rig.queue.check();
    }
}

/// A new scheduler counts anew, and lets one pass, as it does with writes. None is lost, and the limit holds
/// from then on.
#[test]
fn held_flushes_go_on_under_another_scheduler() {
    for scheduler in SCHEDULERS {
        let (mut rig, _, group) = Rig::at_limit(scheduler);
        let all: Vec<usize> =
            (0..5).map(|f| rig.program(group, f, Op::Flush, Duration::from_secs(9))).collect();
        rig.step();
        assert_eq!(rig.flushes, 0, "{scheduler}: all are held");
        for (i, other) in (1..).zip(["kyber", "noop"]) {
            rig.queue.switch(rig.now, (preset(other).unwrap().config)().live()).unwrap();
            rig.queue.check();
            rig.run(Duration::from_ms(1));
            assert_eq!(rig.flushes, i, "{scheduler} to {other}");
        }
        rig.run(Duration::from_ms(250));
        assert_eq!(rig.flushes, 4, "{scheduler}");
        rig.run(Duration::from_ms(100));
        assert_eq!(rig.flushes, 5, "{scheduler}");
        assert!(all.into_iter().all(|i| rig.done(i) == 1), "{scheduler}: each is answered once");
    }
}

#[test]
fn a_client_that_leaves_takes_its_held_flush_with_it_and_no_other() {
    let (mut rig, leaves, group) = Rig::at_limit("bfq");
    let stays = rig.queue.join();
    rig.flush(leaves, group, 2);
    rig.flush(stays, group, 3);
    rig.queue.leave(rig.now, leaves);
    rig.queue.check();
    rig.run(Duration::from_ms(10));
    assert_eq!(rig.flushes, 0, "still held");
    rig.queue.leave(rig.now, stays);
    rig.queue.check();
    assert!(!rig.queue.knows(FileId(0)) || rig.queue.next(rig.now).is_none());
    rig.run(Duration::from_secs(1));
    assert_eq!((rig.flushes, rig.heard()), (0, vec![]), "no flush for clients that are gone");
    assert!(!rig.queue.knows(FileId(0)), "nothing is left of it");
    let next = rig.queue.join();
    rig.flush(next, group, 4);
    assert_eq!(rig.queue.next(rig.now), Some(Start::Flush(FileId(0))));
}

/// The time that a caller gets a signal in.
#[test]
fn a_held_flush_can_be_taken_back() {
    let (mut rig, client, group) = Rig::at_limit("bfq");
    rig.flush(client, group, 2);
    rig.flush(client, group, 3);
    assert!(rig.queue.cancel_flush(rig.now, client, 2));
    assert!(!rig.queue.cancel_flush(rig.now, client, 2), "it is answered");
    rig.queue.check();
    assert_eq!(rig.heard(), [(2, Err(Errno::INTR))]);
    rig.now = rig.now + Duration::from_ms(200);
    rig.queue.timer(rig.now);
    assert_eq!(rig.queue.next(rig.now), Some(Start::Flush(FileId(0))));
    assert!(!rig.queue.cancel_flush(rig.now, client, 3), "it is at the disk");
    rig.queue.flushed(rig.now, FileId(0), Ok(()));
    assert_eq!(rig.heard(), [(3, Ok(()))]);
}

/// The error of a flush is for all that were there, held ones included.
#[test]
fn a_held_flush_hears_of_a_failure() {
    let (mut rig, held, group) = Rig::at_limit("noop");
    let other = rig.queue.join();
    rig.flush(held, group, 2);
    assert_eq!(rig.queue.next(rig.now), None);
    rig.flush(other, GroupId::ROOT, 3);
    assert_eq!(rig.queue.next(rig.now), Some(Start::Flush(FileId(0))));
    rig.queue.flushed(rig.now, FileId(0), Err(Errno::IO));
    assert_eq!(rig.heard(), [(3, Err(Errno::IO))]);
    rig.now = rig.now + Duration::from_ms(200);
    rig.queue.timer(rig.now);
    assert_eq!(rig.queue.next(rig.now), Some(Start::Flush(FileId(0))));
    rig.queue.flushed(rig.now, FileId(0), Ok(()));
    assert_eq!(rig.heard(), [(2, Err(Errno::IO))], "what it had written may be lost");
}

/// Waiting for a limit is no time at the disk; and a flush that was given up may still do harm.
#[test]
fn a_held_flush_is_not_given_up_but_fails_behind_one_that_was() {
    let (mut rig, held, group) = Rig::at_limit("noop");
    rig.control(Control::SetMax(group, Max { wiops: NonZeroU64::new(1), ..Max::default() }));
    let other = rig.queue.join();
    (2..5).for_each(|cookie| rig.flush(held, group, cookie));
    rig.flush(other, GroupId::ROOT, 9);
    assert_eq!(rig.queue.next(rig.now), Some(Start::Flush(FileId(0))));
    rig.now = rig.now + TIMEOUT;
    rig.queue.timer(rig.now);
    assert_eq!(rig.heard(), [(9, Err(Errno::TIMEDOUT))]);
    assert_eq!(rig.queue.next(rig.now), None);
    assert_eq!(rig.heard(), [2, 3, 4].map(|c| (c, Err(Errno::TIMEDOUT))), "their limit has opened");
    rig.queue.check();
    rig.queue.flushed(rig.now, FileId(0), Ok(()));
    rig.flush(other, GroupId::ROOT, 10);
    assert_eq!(rig.queue.next(rig.now), Some(Start::Flush(FileId(0))), "it is over");
}
