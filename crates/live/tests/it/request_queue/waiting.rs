//! Clients that are turned away, and wait: for a limit, or for the scheduler to have room.

use super::Small;
use crate::chance::Chance;
use fairhead_core::request::State;
use fairhead_core::units::{Duration, GroupId, TaskId};
use fairhead_core::{Control, Max};
use fairhead_live::{Bio, Op};
use std::collections::BTreeMap;
use std::num::NonZeroU64;

/// A task that is turned away was in front of all others of its client: a reader beside a writer came to the
/// scheduler when the disk was done with something, milliseconds late.
#[test]
fn who_is_turned_away_keeps_no_other_task_from_the_scheduler() {
    let mut s = Small::with_scheduler("kyber", 16, 1);
    let client = s.queue.join();
    for cookie in 0..40 {
        let bio = Bio { sync: false, task: TaskId(2), ..Small::bio(Op::Write, cookie, cookie) };
        s.queue.submit(s.now, client, bio, None);
    }
    let here = |s: &Small, task| {
        s.queue
            .elevator()
            .requests()
            .iter()
            .filter(|(_, r)| r.rq.task == task && r.state != State::Free)
            .count()
    };
    let writes = here(&s, TaskId(2));
    assert!(writes < 16, "{writes}: tags are kept free for those who wait");
    s.start().unwrap();
    s.ask(client, Op::Read, 100, 100);
    assert_eq!(here(&s, TaskId(1)), 1, "at once");
    let own = Bio { task: TaskId(2), ..Small::bio(Op::Read, 101, 101) };
    s.queue.submit(s.now, client, own, None);
    assert_eq!(here(&s, TaskId(2)), writes + 1, "nor do its own writes keep its reads");
    s.queue.check();
}

/// Waits as an engine does, at a disk that needs no time, until that bio is answered; and says how long that
/// took.
fn wait_for(s: &mut Small, cookie: u64) -> Duration {
    let began = s.now;
    for _ in 0..10_000 {
        while let Some(io) = s.start() {
            s.finish(io);
        }
        if s.heard().contains(&(cookie, Ok(()))) {
            return s.now.since(began);
        }
        s.now = s.now.max(s.queue.next_timer().expect("something comes"));
        s.queue.timer(s.now);
    }
    panic!("{cookie} is never done");
}

fn limited(s: &mut Small, group: u32, reads: u64, writes: u64) -> GroupId {
    let max = Max { riops: NonZeroU64::new(reads), wiops: NonZeroU64::new(writes), ..Max::default() };
    s.queue.control(s.now, Control::SetParent(GroupId(group), GroupId::ROOT)).unwrap();
    s.queue.control(s.now, Control::SetMax(GroupId(group), max)).unwrap();
    GroupId(group)
}

/// All places for those who wait for limits were taken by groups that wait long. Another one, whose limit had
/// opened again, was not asked, since there is a timer only for those who have a place.
#[test]
fn a_limit_that_opens_lets_in_who_was_turned_away() {
    let mut s = Small::new(64);
    let slow = s.queue.join();
    for group in 1..=4 {
        let group = limited(&mut s, group, 1, 1);
        for i in 0..20 {
            let bio = Bio { task: TaskId(10 + group.0), group, ..Small::bio(Op::Read, i * 2, 1000) };
            s.queue.submit(s.now, slow, bio, None);
        }
    }
    let (quick, group) = (s.queue.join(), limited(&mut s, 5, 1000, 1));
    for cookie in 0..20 {
        s.queue.submit(s.now, quick, Bio { group, ..Small::bio(Op::Read, 500 + cookie * 2, cookie) }, None);
    }
    let took = wait_for(&mut s, 19);
    assert!(took < Duration::from_ms(25), "20 reads at 1000 a second: {took:?}");
}

/// Each time, only some of the tasks that were turned away are tried again. When the disk was done with
/// everything, and these all had to wait for a limit, those behind them were never tried.
#[test]
fn whoever_stands_behind_many_that_are_turned_away_is_tried_too() {
    let mut s = Small::with_scheduler("kyber", 8, 8);
    let (many, busy) = (s.queue.join(), s.queue.join());
    let group = limited(&mut s, 1, 1, 1);
    let write = |i: u64| Bio { sync: false, ..Small::bio(Op::Write, i * 2, i) };
    for i in 0..200 {
        s.queue.submit(s.now, many, Bio { task: TaskId(100 + i as u32), group, ..write(i) }, None);
    }
    for i in 200..205 {
        s.queue.submit(s.now, busy, write(i), None);
    }
    s.queue.submit(s.now, many, Bio { task: TaskId(99), ..write(300) }, None);
    let took = wait_for(&mut s, 300);
    assert!(took < Duration::from_ms(50), "{took:?}");
}

/// Each time, eight causes are asked about. What is left out is asked about a moment later, and there is no
/// such timer if nothing is.
#[test]
fn causes_that_were_left_out_are_asked_about_a_moment_later() {
    for (groups, left_out) in [(4, false), (5, true)] {
        let mut s = Small::new(16);
        let client = s.queue.join();
        for group in 1..=groups {
            let group = limited(&mut s, group, 1, 1);
            for i in 0..40 {
                let op = if i % 2 == 0 { Op::Read } else { Op::Write };
                let (task, block) = (TaskId(10 + group.0), u64::from(group.0) * 100 + i * 2);
                let bio = Bio { task, group, ..Small::bio(op, block, 0) };
                s.queue.submit(s.now, client, bio, None);
            }
        }
        while let Some(io) = s.start() {
            s.finish(io);
        }
        let next = s.queue.next_timer().expect("limits open").since(s.now);
        assert_eq!(next <= Duration::from_ms(1), left_out, "{} causes: in {next}", 2 * groups);
    }
}

/// Each client that waits for the same cause is woken when it is gone, and in the order in which it came:
/// clients of several limited groups, among them some that take back what they asked for, beside a busy one,
/// under each scheduler.
#[test]
fn whoever_waits_for_the_same_limit_is_served_as_it_came() {
    for (name, seed) in ["noop", "mq-deadline", "kyber", "bfq", "cfq"].into_iter().zip(1..) {
        let mut chance = Chance::Seed(seed);
        let mut s = Small::with_scheduler(name, 16, 2);
        let busy = s.queue.join();
        let groups: Vec<GroupId> = (1..=4).map(|g| limited(&mut s, g, 200 * u64::from(g), 300)).collect();
        let (mut asked, mut open) = (BTreeMap::<(GroupId, bool), Vec<u64>>::new(), Vec::new());
        for cookie in 0..400_u64 {
            let (group, op) = (*chance.pick(&groups), *chance.pick(&[Op::Read, Op::Write]));
            let client = s.queue.join();
            let bio = Bio { group, task: TaskId(cookie as u32), ..Small::bio(op, cookie * 2, cookie) };
            let id = s.queue.submit(s.now, client, bio, None);
            if chance.percent(10) {
                s.queue.cancel(s.now, id);
            } else {
                asked.entry((group, op == Op::Read)).or_default().push(cookie);
                open.push(cookie);
            }
            if chance.percent(30) {
                s.ask(busy, Op::Read, 5000 + cookie * 2, 1000 + cookie);
            }
            s.queue.check();
        }
        let mut began = Vec::new();
        for _ in 0..20_000 {
            while let Some(io) = s.start() {
                let pieces = s.queue.pieces(io).to_vec();
                began.extend(pieces.iter().map(|p| s.queue.bio(p).cookie));
                s.finish(io);
                s.heard();
            }
            began.retain(|c| *c < 1000);
            if began.len() == open.len() {
                break;
            }
            s.now =
                s.now.max(s.queue.next_timer().unwrap_or_else(|| panic!("{name}: {began:?} of {open:?}")));
            s.queue.timer(s.now);
        }
        assert_eq!(began.len(), open.len(), "{name}: a waiting bio is forgotten");
        if name == "noop" {
            // Under the others the scheduler has a say, too.
            for (line, cookies) in asked {
                let order: Vec<u64> = began.iter().copied().filter(|c| cookies.contains(c)).collect();
                assert_eq!(order, cookies, "{line:?}");
            }
        }
    }
}

/// The most questions that are asked for one io of a busy client, beside `clients` others in a group that may
/// read once a second, each with one read.
fn questions_beside(clients: u64) -> u64 {
    let mut s = Small::with_depth(64, 8);
    let group = limited(&mut s, 1, 1, 1);
    let busy = s.queue.join();
    for i in 0..clients {
        let client = s.queue.join();
        let bio =
            Bio { task: TaskId(100 + i as u32), group, ..Small::bio(Op::Read, 1000 + i * 2, 1 << 32 | i) };
        s.queue.submit(s.now, client, bio, None);
    }
    let mut most = 0;
    for i in 0..1000 {
        let before = s.queue.questions();
        s.ask(busy, Op::Read, i % 400 * 2, i);
        while let Some(io) = s.start() {
            s.finish(io);
        }
        assert!(s.heard().contains(&(i, Ok(()))), "{i} waits, too");
        // Time that does not open the limit.
        s.now = s.now + Duration::from_us(20);
        s.queue.timer(s.now);
        most = most.max(s.queue.questions() - before);
    }
    most
}

/// Each completion asked about all that waited. Now the first of a line asks for all.
#[test]
fn what_waits_costs_the_others_no_more_questions_if_it_is_more() {
    let (few, many) = (questions_beside(10), questions_beside(10_000));
    assert!(few > 1, "{few}: nothing waits");
    assert!(many <= few + 2, "{few} questions for an io beside 10 that wait, {many} beside 10,000");
}

/// A bio that came later found room that a limit had just got, and went before all that waited for it.
#[test]
fn who_comes_later_stands_behind_those_who_wait_for_the_same_limit() {
    let mut s = Small::with_scheduler("noop", 8, 1);
    let group = limited(&mut s, 1, 100, 100);
    let ask = |s: &mut Small, cookie: u64| {
        let client = s.queue.join();
        let bio = Bio { group, task: TaskId(cookie as u32), ..Small::bio(Op::Read, cookie * 2, cookie) };
        s.queue.submit(s.now, client, bio, None);
    };
    (0..30).for_each(|cookie| ask(&mut s, cookie));
    let mut order = Vec::new();
    for cookie in 30..200 {
        s.now = s.now + Duration::from_ms(5);
        // It comes before the timer is heard, as a client of a busy engine does.
        ask(&mut s, cookie);
        s.queue.timer(s.now);
        while let Some(io) = s.start() {
            s.finish(io);
            order.extend(s.heard().into_iter().map(|h| h.0));
        }
    }
    assert!(order.len() > 50 && order.is_sorted(), "{order:?}");
}

/// The scheduler had turned two clients away, and then only bios were left that had been taken back: the two
/// were never asked again.
#[test]
fn who_was_turned_away_is_asked_again_when_what_was_taken_back_leaves() {
    let mut s = Small::with_scheduler("kyber", 8, 1);
    let (gone, waits) = (s.queue.join(), s.queue.join());
    let write = |i: u64| Bio { sync: false, ..Small::bio(Op::Write, i * 2, i) };
    for i in 0..20 {
        s.queue.submit(s.now, gone, write(i), None);
    }
    s.queue.submit(s.now, waits, write(100), None);
    assert!(!s.queue.elevator().has_room(&s.queue.elevator().requests().iter().next().unwrap().1.rq));
    s.queue.leave(s.now, gone);
    let io = s.start().expect("what was taken back takes no time");
    s.finish(io);
    assert_eq!((s.heard(), s.start()), (vec![(100, Ok(()))], None));
}
