//! Refusals, and books with numbers by hand.

extern crate std;
use super::*;
use crate::elevator::{Control, Dispatch, Elevator, Hold, Insert, Limits, Timer};
use crate::request::{Op, Request, Requests};
use crate::sched::noop::Noop;
use crate::testkit::ms as at;
use crate::trace::Action;
use crate::units::{Sector, Sectors, Tag, TaskId};
use std::string::ToString;
use std::vec::Vec;

const G: [GroupId; 5] = [GroupId(0), GroupId(1), GroupId(2), GroupId(3), GroupId(4)];

fn ms(split_ns: u64) -> u64 {
    Duration::from_ns(split_ns).as_ms()
}

fn elevator() -> Elevator<Noop> {
    let limits = Limits { groups: 5, capacity: 1000, tick: Duration::from_ms(4), ..Limits::default() };
    Elevator::new(limits, Default::default()).unwrap()
}

fn read(group: usize, start: u64) -> Request {
    Request { group: G[group], ..Request::read(TaskId(1), Sector(start), Sectors(8)) }
}

fn iops(n: u64) -> Max {
    Max { riops: NonZeroU64::new(n), wiops: NonZeroU64::new(2 * n), ..Max::default() }
}

#[test]
fn a_guarantee_must_fit_into_the_limits_around_it_whichever_comes_last() {
    let mut groups = Groups::new(5, 0);
    let none = Requests::new(8);
    let mut set = |change| groups.control(&change, &none);
    set(Control::SetParent(G[2], G[1])).unwrap();
    set(Control::SetParent(G[3], G[2])).unwrap();
    set(Control::SetMax(G[1], iops(100))).unwrap();
    set(Control::SetMin(G[3], Min { iops: 60 })).unwrap();
    // 60 + 50 inside group 1.
    let above = Refusal::AboveLimit { iops: 110, limit: 100 };
    assert_eq!(set(Control::SetMin(G[2], Min { iops: 50 })), Err(above));
    assert_eq!(above.to_string(), "reservations of 110 requests/s are above the group's limit of 100");
    set(Control::SetMin(G[2], Min { iops: 40 })).unwrap();
    let below = Refusal::AboveLimit { iops: 100, limit: 99 };
    assert_eq!(set(Control::SetMax(G[1], iops(99))), Err(below));
    assert_eq!(set(Control::SetMax(G[2], iops(99))), Err(below));
    set(Control::SetMin(G[4], Min { iops: 1 })).unwrap();
    assert_eq!(set(Control::SetParent(G[4], G[3])), Err(Refusal::AboveLimit { iops: 101, limit: 100 }));
    // Nothing of all that has happened.
    assert_eq!(groups.max(G[1]), iops(100));
    assert_eq!(groups.max(G[2]), Max::default());
    assert_eq!(groups.parent(G[4]), Some(GroupId::ROOT));
    assert_eq!(groups.min(G[2]), Min { iops: 40 });
}

#[test]
fn a_burst_of_more_than_an_hour_is_refused() {
    let mut groups = Groups::new(2, 0);
    let hour = Max { burst: Max::BURST_MAX, ..iops(10) };
    let none = Requests::new(8);
    groups.control(&Control::SetMax(G[1], hour), &none).unwrap();
    let more = Max::BURST_MAX + Duration::from_ns(1);
    let refusal = groups.control(&Control::SetMax(G[1], Max { burst: more, ..iops(1) }), &none).unwrap_err();
    assert_eq!(refusal, Refusal::Burst(more));
    assert_eq!(refusal.to_string(), "a burst of 3600000000001ns is too long: at most 3600s");
    assert_eq!(groups.max(G[1]), hour);
}

#[test]
fn waits_and_services_are_added_up_exactly_whatever_the_tick() {
    let mut e = elevator();
    // 1 and 2 are merged into one request; 3 comes between it and 4 and joins them.
    for (now, tag, start) in [(1, 1, 100), (2, 2, 108), (3, 4, 124), (5, 3, 116)] {
        let _ = e.insert(at(now), Tag(tag), read(1, start));
    }
    assert_eq!(e.stats(G[1]).io_queued.total(), 1);
    assert_eq!(e.stats(G[1]).io_merged.total(), 3, "two merged, one joined");
    assert_eq!(e.dispatch(at(11)), Dispatch::Issue(Tag(1)));
    e.requeue(at(12), Tag(1));
    assert_eq!(e.stats(G[1]).io_queued.total(), 1);
    assert_eq!(e.dispatch(at(15)), Dispatch::Issue(Tag(1)));
    assert_eq!(e.complete(at(22), Tag(1)).count(), 4);
    let stats = e.stats(G[1]);
    // From 1 to the second issue at 15; from there to 22.
    assert_eq!((ms(stats.io_wait_time.total()), ms(stats.io_service_time.total())), (14, 7));
    assert_eq!((stats.io_serviced.read(), stats.io_service_bytes.read()), (1, 4 * 4096));
    assert_eq!(stats.disk_sectors, 32, "issued twice, counted once");
    assert_eq!(stats.io_queued.total(), 0);
    assert_eq!(e.stats(G[2]), GroupStats::default());
}

#[test]
fn reads_writes_and_discards_sync_and_async_are_told_apart() {
    let mut e = elevator();
    let write = Request { group: G[1], ..Request::write(TaskId(1), Sector(1000), Sectors(16)) };
    let sync = Request { sync: true, start: Sector(2000), ..write };
    let discard = Request { op: Op::Discard, start: Sector(3000), len: Sectors(100), ..write };
    for (tag, rq) in [read(1, 0), write, sync, discard].into_iter().enumerate() {
        let _ = e.insert(at(0), Tag(u16::try_from(tag).unwrap()), rq);
    }
    while let Dispatch::Issue(tag) = e.dispatch(at(1)) {
        assert_eq!(e.complete(at(1), tag).count(), 1);
    }
    let Split(cells) = e.stats(G[1]).io_service_bytes;
    assert_eq!(cells, [[0, 4096], [8192, 8192], [51200, 0]]);
    let s = e.stats(G[1]).io_serviced;
    assert_eq!([s.read(), s.write(), s.discard(), s.sync(), s.asyn(), s.total()], [1, 2, 1, 2, 2, 4]);
}

#[test]
fn turns_waits_idling_and_emptiness_are_timed() {
    let mut groups = Groups::new(3, 0);
    let none = Requests::new(8);
    let say = |groups: &mut Groups, now: u64, action, group: usize| match action {
        Action::Insert => groups.waits(at(now), G[group]),
        Action::Issue => groups.waits_no_more(at(now), G[group]),
        _ => unreachable!(),
    };
    say(&mut groups, 0, Action::Insert, 1);
    say(&mut groups, 1, Action::Insert, 1);
    groups.serve(at(3), G[1]);
    say(&mut groups, 4, Action::Insert, 2);
    say(&mut groups, 5, Action::Issue, 1);
    groups.serve(at(6), G[1]);
    say(&mut groups, 6, Action::Issue, 1);
    groups.idles(at(8));
    groups.idles(at(9));
    groups.serve(at(16), G[2]);
    say(&mut groups, 17, Action::Issue, 2);
    groups.leave(at(20));
    say(&mut groups, 26, Action::Insert, 1);
    say(&mut groups, 30, Action::Insert, 2);
    // Out of turn, its last.
    say(&mut groups, 33, Action::Issue, 1);
    say(&mut groups, 34, Action::Insert, 1);
    groups.serve(at(40), G[2]);
    let (one, two) = (groups.stats(G[1], &none), groups.stats(G[2], &none));
    // 2 queued when first chosen, 1 the second time.
    assert_eq!((one.queue_size_sum, one.queue_size_samples), (3, 2));
    assert_eq!((two.queue_size_sum, two.queue_size_samples), (2, 2));
    assert_eq!(one.idle_time.as_ms(), 8, "from 8 until the other's turn at 16");
    assert_eq!(one.group_wait_time.as_ms(), 3 + 7, "from 0 to 3, from 26 to 33; since 34 it still waits");
    assert_eq!(one.empty_time.as_ms(), 10 + 1, "from 16 to 26, from 33 to 34");
    assert_eq!(two.group_wait_time.as_ms(), 12 + 10, "from 4 to 16, from 30 to 40");
    assert_eq!(two.empty_time.as_ms(), 10, "from 20 to 30");
    groups.reset_stats(at(41), G[1], &none).unwrap();
    groups.serve(at(45), G[1]);
    assert_eq!(groups.stats(G[1], &none).group_wait_time.as_ms(), 4, "from the new beginning at 41");
}

#[test]
fn waiting_for_a_limit_is_counted_apart() {
    let mut e = elevator();
    e.control(at(0), Control::SetMax(G[1], iops(10))).unwrap();
    for tag in 0..3 {
        assert_eq!(e.insert(at(0), Tag(tag), read(1, 8 * u64::from(tag))), Insert::Queued, "not merged");
    }
    assert_eq!(e.stats(G[1]).io_queued.total(), 3);
    assert_eq!(e.dispatch(at(0)), Dispatch::Issue(Tag(0)));
    assert_eq!(e.dispatch(at(0)), Dispatch::Hold(Hold::Limit));
    assert_eq!(e.next_timer(), Some((at(100), Timer::Limit)), "not rounded to ticks of 4 ms");
    assert_eq!(e.complete(at(10), Tag(0)).count(), 1);
    e.timer(at(100));
    e.check();
    // Late: 200 was the time of the last one, which joins the second.
    e.timer(at(230));
    assert_eq!(e.stats(G[1]).io_queued.total(), 1);
    assert_eq!(e.dispatch(at(240)), Dispatch::Issue(Tag(1)));
    assert_eq!(e.complete(at(250), Tag(1)).collect::<Vec<_>>(), [Tag(1), Tag(2)]);
    let stats = e.stats(G[1]);
    assert_eq!(ms(stats.throttled_time.total()), 100 + 230);
    assert_eq!(ms(stats.io_wait_time.total()), 140, "from 100 to 240");
    assert_eq!((stats.io_serviced.total(), stats.io_merged.total()), (2, 1));
    assert_eq!(e.dispatch(at(250)), Dispatch::Empty);
}

#[test]
fn sums_include_groups_inside_and_those_that_are_no_more() {
    let mut e = elevator();
    e.control(at(0), Control::SetParent(G[2], G[1])).unwrap();
    e.control(at(0), Control::SetParent(G[3], G[2])).unwrap();
    let serve = |e: &mut Elevator<Noop>, group: usize, tag: u16| {
        let _ = e.insert(at(1), Tag(tag), read(group, 0));
        assert_eq!(e.dispatch(at(1)), Dispatch::Issue(Tag(tag)));
        assert_eq!(e.complete(at(1), Tag(tag)).count(), 1);
    };
    for group in [0, 1, 2, 3, 3] {
        serve(&mut e, group, 0);
    }
    let sums = |e: &Elevator<Noop>| -> Vec<u64> {
        (0..4).map(|g| e.recursive_stats(G[g]).io_serviced.total()).collect()
    };
    assert_eq!(sums(&e), [5, 4, 3, 2]);
    // The innermost goes with a request in flight, then its parent; the parent's number is used again
    // elsewhere.
    let _ = e.insert(at(1), Tag(7), read(3, 0));
    e.control(at(1), Control::GroupExit(G[3])).unwrap();
    e.control(at(1), Control::GroupExit(G[2])).unwrap();
    assert_eq!(e.groups().home(G[3]), G[1]);
    assert_eq!(e.control(at(1), Control::SetParent(G[2], G[0])), Err(Refusal::Busy(G[2])));
    assert_eq!(e.dispatch(at(1)), Dispatch::Issue(Tag(7)));
    assert_eq!(e.complete(at(1), Tag(7)).count(), 1);
    e.control(at(1), Control::SetParent(G[2], G[0])).unwrap();
    assert_eq!(e.groups().home(G[3]), G[1], "it was never in the new group of that number");
    assert_eq!(sums(&e), [6, 5, 0, 3]);
    e.control(at(1), Control::SetParent(G[3], G[2])).unwrap();
    assert_eq!(sums(&e), [6, 5, 0, 0]);
    serve(&mut e, 3, 0);
    assert_eq!(sums(&e), [7, 5, 1, 1]);
}

/// No call could lift them afterwards, and a request may wait for hours.
#[test]
fn limits_go_with_their_group_and_those_above_stay() {
    let mut e = elevator();
    e.control(at(0), Control::SetParent(G[2], G[1])).unwrap();
    e.control(at(0), Control::SetMax(G[1], iops(10))).unwrap();
    e.control(at(0), Control::SetMax(G[2], iops(1))).unwrap();
    for tag in 0..4 {
        let _ = e.insert(at(0), Tag(tag), read(2, u64::from(tag) * 100));
    }
    assert_eq!(e.dispatch(at(0)), Dispatch::Issue(Tag(0)));
    e.control(at(50), Control::GroupExit(G[2])).unwrap();
    for tag in 1..4 {
        let ms = 100 * u64::from(tag);
        assert_eq!(e.dispatch(at(ms - 1)), Dispatch::Hold(Hold::Limit));
        assert_eq!(e.dispatch(at(ms)), Dispatch::Issue(Tag(tag)), "ten a second");
    }
    e.check();
}

#[test]
fn books_can_begin_anew() {
    let mut e = elevator();
    let _ = e.insert(at(0), Tag(0), read(1, 0));
    let _ = e.insert(at(0), Tag(1), read(1, 100));
    assert_eq!(e.dispatch(at(1)), Dispatch::Issue(Tag(0)));
    e.reset_stats(at(5), G[1]).unwrap();
    let waits = GroupStats { io_queued: e.stats(G[1]).io_queued, ..GroupStats::default() };
    assert_eq!((waits.io_queued.total(), e.stats(G[1])), (1, waits));
    assert_eq!(e.dispatch(at(9)), Dispatch::Issue(Tag(1)));
    assert_eq!(e.complete(at(10), Tag(0)).count(), 1);
    assert_eq!(e.complete(at(10), Tag(1)).count(), 1);
    let stats = e.stats(G[1]);
    assert_eq!((stats.io_queued.total(), stats.io_serviced.total()), (0, 2));
    assert_eq!(stats.group_wait_time, Duration::ZERO, "noop chooses no groups");
    e.control(at(10), Control::GroupExit(G[1])).unwrap();
    assert_eq!(e.reset_stats(at(10), G[1]), Err(Refusal::NoGroup(G[1])));
}

#[test]
fn reservations_of_all_groups_together_must_fit_the_disk() {
    let mut groups = Groups::new(5, 1000);
    let none = Requests::new(8);
    let mut reserve = |group: usize, iops| groups.control(&Control::SetMin(G[group], Min { iops }), &none);
    reserve(1, 600).unwrap();
    assert_eq!(reserve(2, 401), Err(Refusal::Infeasible { sum: 1001, capacity: 1000 }));
    reserve(2, 400).unwrap();
    assert_eq!(reserve(3, 1), Err(Refusal::Infeasible { sum: 1001, capacity: 1000 }));
    // What a group had before does not count beside what it is to have.
    reserve(1, 500).unwrap();
    reserve(1, 600).unwrap();
    // Less is accepted, and so is none.
    reserve(2, 0).unwrap();
    reserve(1, 1000).unwrap();
}

/// What is asked beforehand is what the change then answers, and asking changes nothing.
#[test]
fn a_change_can_be_asked_about_before_it_is_made() {
    let mut e = elevator();
    assert_eq!(e.insert(at(0), Tag(0), read(4, 0)), Insert::Queued);
    let (parent, min, max) = (
        |group: usize, parent: usize| Control::SetParent(G[group], G[parent]),
        |group: usize, iops| Control::SetMin(G[group], Min { iops }),
        |group: usize, n| Control::SetMax(G[group], iops(n)),
    );
    let changes = [
        (parent(2, 1), true),
        (parent(1, 2), false),
        (parent(4, 1), false),
        (min(2, 600), true),
        (min(3, 500), false),
        (max(1, 500), false),
        (max(1, 700), true),
        (min(2, 800), false),
        (max(3, 100), true),
        (min(3, 300), false),
        (parent(2, 3), false),
        (Control::GroupExit(G[1]), false),
        (Control::GroupExit(G[2]), true),
        (Control::SetClass(G[2], Class::Idle), false),
        (parent(2, 3), true),
        (Control::SetWeight(GroupId::ROOT, Weight::DEFAULT), false),
        (Control::SetLeafWeight(GroupId::ROOT, Weight::DEFAULT), true),
    ];
    for (change, is_possible) in changes {
        let asked = [(); 2].map(|()| e.may_change(&change));
        let answer = e.control(at(1), change);
        assert_eq!((asked, answer.is_ok()), ([answer; 2], is_possible), "{change:?}");
    }
}
