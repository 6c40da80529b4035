//! What io.latency promises: targets of groups at the cost of their peers, and nothing while all are kept.

use super::world::{Client, World};
use fairhead_core::sched::noop::Noop;
use fairhead_core::{Control, Duration, GroupId, Limits, Request};
use fairhead_outside::iolatency::IoLatency;

/// A device that does 8 requests at a time, each in 400 us: of 32 at the device, each is there for 1.6 ms.
const FLASH: (usize, fn(&Request) -> Duration) = (8, |_| Duration::from_us(400));

fn limits() -> Limits {
    Limits { rotational: false, queue_depth: 32, tags: 512, ..Limits::default() }
}

/// Groups in the root with these targets in microseconds, 0 for none.
fn world(targets: &[u64], clients: &[Client]) -> World<IoLatency> {
    let weights = vec![100; targets.len()];
    let mut world = World::<IoLatency>::new(limits(), Default::default(), &weights, clients, FLASH);
    for (i, target) in (1..).zip(targets) {
        let target = (*target > 0).then(|| Duration::from_us(*target));
        world.elevator.control(world.now, Control::SetLatency(GroupId(i), target)).unwrap();
    }
    world
}

/// What a client has without it: its mean latency, and how many requests are done.
fn without(clients: &[Client], i: usize) -> (u64, u64) {
    let mut world = World::<Noop>::new(limits(), Default::default(), &[100; 4], clients, FLASH);
    world.run(5000);
    (world.mean_us(i, 2000, 5000), world.count(i, 2000, 5000))
}

/// One that is to be quick, and one that floods the device.
fn two() -> [Client; 2] {
    [Client { think: Duration::from_ms(1), ..Client::reader(1, 4) }, Client::reader(2, 64)]
}

#[test]
fn a_target_is_met_by_throttling_the_others() {
    let (slow, all) = without(&two(), 1);
    let missed = without(&two(), 0).0;
    assert!(missed > 2500, "without it, it is missed");
    let mut world = world(&[1000, 0], &two());
    world.run(5000);
    let (mean, others) = (world.mean_us(0, 2000, 5000), world.count(1, 2000, 5000));
    println!("{mean} us, without {missed} us; the others {others} of {all} in 3 s");
    assert!(mean <= 1000, "{mean} us");
    // As little as that takes: 1 ms is long enough for 12 more to wait at the device.
    assert!(others * 10 >= all * 9 && others < all, "{others} of {all}, which took {slow} us each");
}

#[test]
fn nothing_is_throttled_while_targets_are_met() {
    let mut world = world(&[10_000, 20_000], &two());
    world.run(5000);
    for i in [0, 1] {
        assert_eq!((world.mean_us(i, 2000, 5000), world.count(i, 2000, 5000)), without(&two(), i));
    }
    assert_eq!([1, 2].map(|g| world.elevator.scheduler().depth(GroupId(g))), [None; 2]);
}

#[test]
fn only_peers_with_a_higher_target_are_throttled() {
    // The target of the second cannot be met; that of the first is.
    let clients = [1, 2, 3].map(|g| Client::reader(g, 32));
    let mut world = world(&[50_000, 60_000, 0], &clients);
    world.run(1000);
    let depths = |world: &World<IoLatency>| [1, 2, 3].map(|g| world.elevator.scheduler().depth(GroupId(g)));
    assert_eq!(depths(&world), [None; 3]);
    world
        .elevator
        .control(world.now, Control::SetLatency(GroupId(2), Some(Duration::from_us(100_000))))
        .unwrap();
    world.elevator.control(world.now, Control::SetLatency(GroupId(1), Some(Duration::from_us(1)))).unwrap();
    world.run(3000);
    assert_eq!(depths(&world), [None, Some(1), Some(1)], "the lowest target is never throttled");
    world.elevator.control(world.now, Control::SetLatency(GroupId(2), Some(Duration::from_us(1)))).unwrap();
    world.elevator.control(world.now, Control::SetLatency(GroupId(1), Some(Duration::from_us(2)))).unwrap();
    world.run(6000);
    assert_eq!(depths(&world), [Some(1), None, Some(1)]);
}

#[test]
fn groups_of_other_parents_do_not_matter() {
    // 3 is in 1, with a target that is never met, and 2 is a sibling of 1.
    let clients = [Client::reader(3, 8), Client::reader(2, 64)];
    let mut world = world(&[0, 0, 1], &clients);
    world.elevator.control(world.now, Control::SetParent(GroupId(3), GroupId(1))).unwrap();
    world.run(2000);
    assert_eq!(world.elevator.scheduler().depth(GroupId(2)), None);
    // If the target is that of 1, what 3 does counts.
    world.elevator.control(world.now, Control::SetLatency(GroupId(1), Some(Duration::from_us(1)))).unwrap();
    world.run(4000);
    assert_eq!(world.elevator.scheduler().depth(GroupId(2)), Some(1));
}

#[test]
fn the_others_are_free_again_when_the_group_stops() {
    let [mut quick, flood] = two();
    quick.until = Duration::from_secs(3);
    let mut world = world(&[700, 0], &[quick, flood]);
    world.run(3000);
    assert!(world.elevator.scheduler().depth(GroupId(2)).is_some());
    world.run(5000);
    assert_eq!(world.elevator.scheduler().depth(GroupId(2)), None);
    assert!(world.count(1, 4000, 5000) >= 19_900, "{}", world.count(1, 4000, 5000));
}
