//! Guarantees: kept, charged to the groups that have them, and no more than asked for.

extern crate std;
use super::rules::{rig, rig_with};
use super::world::{Client, G1, G2, G3, World, at, limits, world_of};
use crate::parts::fair_tree::Engine;
use crate::sched::fair::{Config, Divisible, Layer};
use crate::sched::{anticipatory, deadline, noop};
use crate::{Class, Control, Duration, GroupId, Hold, Limits, Min};
use std::vec::Vec;

fn iops(group: GroupId, iops: u32) -> Control {
    Control::SetMin(group, Min { iops })
}

/// In how many whole seconds from the second one on the client had fewer than `iops` requests.
fn missed<S: Divisible>(world: &World<S>, client: usize, iops: usize, seconds: u64) -> usize {
    (1..seconds).filter(|s| world.count(client, s * 1000, (s + 1) * 1000) < iops).count()
}

fn patient(group: GroupId) -> Client {
    Client { depth: 4, ..Client::random(group) }
}

fn keeps_its_word<S: Divisible>(layer: Layer) {
    // A reader that streams, and one that floods; each would have the disk for itself by its weight.
    let clients = [patient(G1), Client::reader(G2), Client { depth: 16, ..Client::random(G3) }];
    let mut world = world_of::<S>(limits(4), Config { layer, inner: S::Config::default() }, &clients);
    world.set_weights(&[1, 10_000, 10_000]);
    world.control(iops(G1, 40));
    world.run(60_000);
    assert_eq!(missed(&world, 0, 40, 60), 0);
    let count = world.count(0, 0, 60_000);
    assert!(count <= 60 * 43 + 20, "{count} requests in 60 s are more than was asked for");
}

#[test]
fn a_guarantee_is_kept_in_every_second() {
    keeps_its_word::<noop::Noop>(Layer::default());
    keeps_its_word::<deadline::Deadline>(Layer::default());
    keeps_its_word::<deadline::Deadline>(Layer { engine: Engine::Wf2q, ..Layer::default() });
    keeps_its_word::<deadline::Deadline>(Layer { fairness: 2, ..Layer::default() });
}

/// AS needs the disk to itself to change direction, and waits for readers: not for those with a guarantee.
#[test]
fn a_guarantee_is_kept_by_as() {
    keeps_its_word::<anticipatory::Anticipatory>(Layer::default());
}

#[test]
fn guarantees_go_before_classes_and_do_not_take_from_each_other() {
    let clients = [patient(G1), patient(G2), Client { depth: 16, ..Client::random(G3) }];
    let mut world = world_of::<deadline::Deadline>(limits(4), Config::default(), &clients);
    world.set_class(G3, Class::RealTime);
    world.set_class(G2, Class::Idle);
    world.control(iops(G1, 30));
    world.control(iops(G2, 60));
    world.run(60_000);
    assert_eq!([missed(&world, 0, 30, 60), missed(&world, 1, 60, 60)], [0, 0]);
}

/// What is served out of turn counts for the share.
#[test]
fn a_guarantee_below_the_share_does_not_add_to_it() {
    let clients = [patient(G1), patient(G2)];
    for guarantee in [0, 20] {
        let mut world = world_of::<deadline::Deadline>(limits(3), Config::default(), &clients);
        world.control(iops(G1, guarantee));
        world.run(30_000);
        let share = world.shares(0, 30_000, [G1])[0];
        assert!(share.abs_diff(500) <= 20, "{guarantee} requests/s guaranteed: {share}");
    }
}

#[test]
fn flash_keeps_guarantees_too() {
    let limits = Limits { rotational: false, queue_depth: 8, ..limits(3) };
    let clients = [patient(G1), Client { depth: 64, ..Client::random(G2) }];
    let mut world = world_of::<noop::Noop>(limits, Config::default(), &clients);
    world.set_weights(&[1, 10_000]);
    world.control(iops(G1, 50));
    world.run(30_000);
    // It waits for those that are at the device already, so it always has room for one more.
    assert_eq!(missed(&world, 0, 50, 30), 0);
}

/// The disk is kept idle for one group when the other's next request becomes due.
#[test]
fn what_is_due_ends_idling_for_somebody_else() {
    let mut rig = rig(Layer::default());
    rig.control(0, iops(G2, 100));
    let tags: Vec<_> = (0..3).map(|_| rig.read(0, G2)).collect();
    let reader = rig.read(0, G1);
    // The first is due at once; the next 15/16 of 10 ms later.
    rig.issues(0, tags[0]);
    rig.complete(1, tags[0]);
    let now_or_next = rig.elevator.dispatch(at(1));
    let (first, other) =
        if now_or_next == crate::Dispatch::Issue(reader) { (reader, tags[1]) } else { (tags[1], reader) };
    rig.complete(4, first);
    if first == reader {
        rig.holds(4, Hold::SliceIdle);
        assert_eq!(rig.elevator.next_timer().unwrap().0, at(0) + Duration::from_us(9375));
        rig.elevator.timer(at(10));
        rig.issues(10, other);
        rig.complete(11, other);
        // Group 1 is still waited for: 8 ms from when it had nothing more to do.
        rig.holds(11, Hold::SliceIdle);
        rig.elevator.timer(at(12));
        rig.issues(12, tags[2]);
    } else {
        panic!("group 1 came second, but has had less");
    }
}

/// A disk that takes several gets nothing else until it has done what was due. The slice's clock stands still
/// meanwhile.
#[test]
fn what_is_due_is_not_overtaken_in_the_device() {
    let mut rig = rig_with(Limits { queue_depth: 8, ..limits(4) }, Layer::default());
    rig.control(0, iops(G2, 5));
    let stream: Vec<_> = (0..8).map(|_| rig.read(0, G1)).collect();
    rig.issues(0, stream[0]);
    rig.issues(0, stream[1]);
    rig.complete(10, stream[0]);
    let due = rig.read(20, G2);
    rig.issues(20, due);
    rig.holds(20, Hold::Depth);
    rig.complete(30, stream[1]);
    rig.holds(30, Hold::Depth);
    rig.complete(60, due);
    rig.issues(60, stream[2]);
    let second = rig.read(61, G2);
    // From 10 to 110 but for the 40 that were the other's.
    rig.complete(140, stream[2]);
    rig.issues(140, stream[3]);
    rig.complete(151, stream[3]);
    rig.issues(151, second);
    let time = |g| rig.elevator.groups().disk_time(g).as_ms();
    assert_eq!([time(G1), time(G2)], [101, 40]);
}

#[test]
fn a_clock_starts_with_the_requests_and_owes_no_more_than_a_second() {
    use super::super::clock::Clock;
    use super::super::reserve::Reserve;
    let (mut reserve, mut clock) = (Reserve::new(4), Clock::default());
    reserve.join(G1, &mut clock, at(0));
    assert!(reserve.is_empty(), "nothing is guaranteed");
    clock.set(10);
    reserve.join(G1, &mut clock, at(500));
    assert_eq!(reserve.first(None), Some((G1, at(500))));
    assert_eq!(reserve.first(Some(G1)), None);
    let step = Duration::from_us(93_750);
    reserve.dispatched(G1, &mut clock, at(520), true);
    assert_eq!(
        reserve.first(None),
        Some((G1, at(500) + step)),
        "from when it was due, not from when it was served"
    );
    reserve.dispatched(G1, &mut clock, at(530), true);
    assert_eq!(reserve.first(None), Some((G1, at(500) + step)), "not yet due: served by weight");
    reserve.dispatched(G1, &mut clock, at(9_000), true);
    assert_eq!(reserve.first(None), Some((G1, at(8_000) + step)), "a second of arrears at most");
    reserve.dispatched(G1, &mut clock, at(9_000), false);
    assert!(reserve.is_empty());
    reserve.join(G1, &mut clock, at(20_000));
    assert_eq!(reserve.first(None), Some((G1, at(20_000))), "a pause earns nothing");
}
