//! Another implementation's decisions and numbers in place of our own.

use super::rig::*;
use crate::trace::Detail;

/// Task 1 has the disk and two more requests; task 2 has one.
fn serving() -> (Rig, [Tag; 3]) {
    let mut rig = Rig::new(plain());
    rig.pass(ms(200));
    let tags = [read(1, 1000), read(1, 1008), read(2, 9_000_000)].map(|rq| rig.insert(rq));
    assert_eq!(rig.issue().0, tags[0]);
    (rig, tags)
}

#[test]
fn a_slot_that_idled_in_vain_is_charged_until_the_idling_began() {
    // (whether it idled in vain, when the idling began, and for how long the slot is charged; in ms)
    for (idled, began, charged) in
        [(true, Some(30), 30), (false, Some(30), 100), (true, Some(0), 100), (true, None, 100)]
    {
        let (mut rig, _) = serving();
        let start = rig.now;
        rig.bfq.slot_start = start;
        rig.bfq.idle_start = began.map_or(start - ms(1), |n| start + ms(n));
        let (most, whole) = (u64::from(rig.bfq.bmax_now), rig.bfq.setting.charged_time.as_ms());
        rig.now = start + ms(100);
        rig.notes();
        assert!(rig.cx(|bfq, cx| bfq.force_expire(cx, Reason::IdleTimeout, idled)));
        let events = core::iter::from_fn(|| rig.books.trace.pop());
        let service = events.into_iter().find_map(|e| match e.detail {
            Detail::Slot { service, .. } => Some(service),
            _ => None,
        });
        assert_eq!(service.map(u64::from), Some(most * charged / whole), "{idled} {began:?}");
        assert!(!rig.cx(|bfq, cx| bfq.force_expire(cx, Reason::IdleTimeout, idled)), "no queue is served");
    }
}

#[test]
fn idling_ends_with_an_imposed_request_of_the_queue_that_is_idled_for() {
    for (which, still_idles) in [(1, false), (2, true)] {
        let (mut rig, tags) = serving();
        rig.cx(|bfq, cx| bfq.force_waiting(cx, true));
        assert!(rig.queue(1).waiting && rig.bfq.idle_timer.is_some());
        let answer = rig.cx(|bfq, cx| bfq.force_issue(cx, tags[which]));
        assert_eq!(answer, Dispatch::Issue(tags[which]));
        assert_eq!((rig.queue(1).waiting, rig.bfq.idle_timer.is_some()), (still_idles, still_idles));
    }
}

#[test]
fn a_slot_may_have_begun_later_or_earlier() {
    let (mut rig, _) = serving();
    let start = rig.bfq.slot_start;
    rig.bfq.adopt_clock(ms(5), true);
    assert_eq!(rig.bfq.slot_start, start + ms(5));
    rig.bfq.adopt_clock(ms(7), false);
    assert_eq!(rig.bfq.slot_start, start - ms(2));
}

/// A thread that hands several requests over has read its clock before the slot began: in the kernel that is
/// a slot of 71 minutes.
#[test]
fn a_slot_that_ends_before_it_began_is_long_in_the_kernel() {
    for (repairs, long) in [(false, true), (true, false)] {
        let (mut rig, _) = {
            let mut rig = Rig::new(Config { repairs, ..plain() });
            rig.pass(ms(200));
            let tags = [read(1, 1000), read(1, 1008)].map(|rq| rig.insert(rq));
            assert_eq!(rig.issue().0, tags[0]);
            (rig, tags)
        };
        rig.notes();
        rig.bfq.adopt_clock(ms(1), true);
        assert!(rig.cx(|bfq, cx| bfq.force_expire(cx, Reason::Preempted, false)));
        let slots = core::iter::from_fn(|| rig.books.trace.pop()).filter_map(|e| match e.detail {
            Detail::Slot { service, slow, .. } => Some((service, slow)),
            _ => None,
        });
        let slots: std::vec::Vec<_> = slots.collect();
        let whole = rig.bfq.bmax_now;
        assert_eq!(slots, [if long { (whole, true) } else { (8, false) }], "{repairs}");
    }
}
