//! What is waited for beside the active queue's next request, and when a deep queue is waited for no more.

use super::*;

const NS: Duration = Duration::from_ns(1);

/// Serves sequential requests of task 1, from the `i`th on, with a pause before each.
fn serve_after(rig: &mut Bare, i: core::ops::Range<u64>, pause: Duration) {
    for i in i {
        rig.pass(pause);
        rig.timer();
        rig.serve(read(1, i * 8));
    }
}

#[test]
fn a_group_is_waited_for_while_its_only_queue_has_a_request_at_the_device() {
    let waits = |rig: &Bare| rig.cfq.group_waits(rig.sync_queue_of(1).unwrap());
    for (era, expected) in [(Era::Linux2_6_34, false), (Era::Linux3_10, true)] {
        let mut rig = Bare::new(Config { group_idle: ms(8), ..old(era) });
        rig.insert(read(1, 0));
        assert!(!waits(&rig), "the device has nothing");
        rig.issue();
        assert_eq!((era, waits(&rig)), (era, expected));
        rig.insert(read(2, 1 << 30));
        assert!(!waits(&rig), "the group has another queue");
    }
    // One that thinks for too long is not.
    let mut rig = Bare::new(Config::default());
    serve_after(&mut rig, 0..4, ms(500));
    rig.insert(read(1, 32));
    rig.issue();
    assert!(!waits(&rig));
}

#[test]
//= linux-2.6.33 block/cfq-iosched.c cfq_should_wait_busy, type=test
fn a_slice_is_stretched_if_the_next_request_would_come_behind_its_end() {
    let stretches = |rig: &mut Bare, left: Duration| {
        let id = rig.sync_queue_of(1).unwrap();
        let end = rig.queue(id).slice.end;
        rig.cfq.stretches(id, end - left).is_some()
    };
    // Within a tick of the end, whatever is known.
    let mut rig = Bare::new(Config::default());
    rig.serve(read(1, 0));
    for (left, expected) in [(ms(1) + NS, false), (ms(1), true), (Duration::ZERO, true)] {
        assert_eq!((left, stretches(&mut rig, left)), (left, expected));
    }
    // Earlier if its task is known to think for longer than is left.
    serve_after(&mut rig, 1..4, ms(5));
    assert_eq!([ms(20), ms(2)].map(|left| stretches(&mut rig, left)), [false, true]);
    // Not for the sake of a group that has another queue.
    rig.insert(read(2, 1 << 30));
    assert!(!stretches(&mut rig, Duration::ZERO));
}

#[test]
fn from_3_x_on_no_slice_is_stretched_for_a_queue_with_requests_or_a_group_that_thinks_for_long() {
    for (era, expected) in [(Era::Linux2_6_34, true), (Era::Linux3_10, false)] {
        let mut rig = Bare::new(Config { group_idle: ms(8), ..old(era) });
        let at_end = |rig: &mut Bare| {
            let id = rig.sync_queue_of(1).unwrap();
            let end = rig.queue(id).slice.end;
            rig.cfq.stretches(id, end).is_some()
        };
        rig.serve(read(1, 0));
        assert!(at_end(&mut rig));
        rig.insert(read(1, 8));
        assert_eq!((era, at_end(&mut rig)), (era, expected), "a request waits");
        let mut rig = Bare::new(Config { group_idle: ms(8), ..old(era) });
        serve_after(&mut rig, 0..4, ms(500));
        assert_eq!((era, at_end(&mut rig)), (era, expected), "the group thinks for long");
    }
}

/// A queue of task 1 that is deep, and worth waiting for, with requests `distance` sectors apart.
fn deep(era: Era, distance: u64) -> (Bare, QueueId) {
    let mut rig = Bare::new(Config { seek: Seek::Distance, ..old(era) });
    for i in 0..6 {
        rig.insert(read(1, i * distance));
    }
    let id = rig.sync_queue_of(1).unwrap();
    assert!(rig.queue(id).window.is_deep() && rig.queue(id).window.is_open());
    (rig, id)
}

#[test]
//= linux-3.10 block/cfq-iosched.c cfq_select_queue, type=test
fn a_deep_queue_that_seeks_and_is_outrun_in_the_first_half_of_its_slice_is_not_waited_for() {
    for (era, distance, slice_new, end, stops) in [
        (Era::Linux3_10, 1_000_000, true, 0, true),
        (Era::Linux3_10, 1_000_000, false, 91, true),
        (Era::Linux3_10, 1_000_000, false, 90, false),
        (Era::Linux3_10, 8, true, 0, false),
        (Era::Linux2_6_34, 1_000_000, true, 0, false),
    ] {
        let (mut rig, id) = deep(era, distance);
        let queue = rig.queue(id);
        (queue.slice.is_new, queue.slice.start, queue.slice.end) = (slice_new, at(10), at(end));
        rig.cfq.rules_ran_empty(id, at(50));
        let window = rig.queue(id).window;
        assert_eq!((era, end, window.is_deep(), window.is_open()), (era, end, !stops, !stops));
    }
}

#[test]
fn a_deep_queue_that_was_waited_for_in_vain_is_deep_no_more() {
    let (mut rig, id) = deep(Era::Linux4_3, 1_000_000);
    let tags: Vec<Tag> = (0..6).map(|_| rig.issue().0).collect();
    tags.into_iter().for_each(|tag| rig.complete(tag));
    assert!(rig.cfq.next_timer().is_some() && rig.queue(id).window.is_deep());
    rig.pass(ms(8));
    rig.timer();
    assert!(!rig.queue(id).window.is_deep());
}

#[test]
//= linux-2.6.33 block/cfq-iosched.c cfq_update_idle_window, type=test
fn by_the_mean_distance_the_window_closes_with_the_third_request() {
    let mut rig = Bare::new(Config::linux_2_6_33());
    for (start, open) in [(0, true), (1 << 30, true), (1 << 20, false)] {
        let tag = rig.insert(read(1, start));
        let id = rig.queue_of(tag);
        assert_eq!((start, rig.queue(id).window.is_open()), (start, open));
    }
}

#[test]
fn before_any_sync_request_was_late_ten_async_ones_may_be_at_the_device() {
    // It counts as a second ago, ten slices of 100 ms.
    let mut rig = Bare::new(Config::default());
    for i in 0..20 {
        rig.insert(write(1, i * 1000));
    }
    let issued = core::iter::from_fn(|| matches!(rig.dispatch(), Dispatch::Issue(_)).then_some(()));
    assert_eq!(issued.count(), 10);
}
