//! Shares of a disk over time.

extern crate std;
use super::world::{Client, G1, G2, G3, World, limits, world_of};
use crate::parts::fair_tree::Engine;
use crate::sched::fair::{Config, Divisible, Layer};
use crate::sched::{deadline, noop};
use crate::{Class, Control, Duration, GroupId, Limits, Weight};
use std::vec::Vec;

fn world<S: Divisible>(clients: &[Client]) -> World<S> {
    world_of(limits(5), Config::default(), clients)
}

/// Whether a share in thousandths is within two hundredths of what it should be.
#[track_caller]
fn assert_near(share: u64, ideal: u64) {
    assert!(share.abs_diff(ideal) <= 20, "{share} of 1000, not {ideal}");
}

fn two_to_one<S: Divisible>(layer: Layer, clients: &[Client]) -> u64 {
    let mut world = world_of::<S>(limits(3), Config { layer, inner: S::Config::default() }, clients);
    world.set_weights(&[1000, 500]);
    world.run(20_000);
    world.shares(0, 20_000, [G1])[0]
}

#[test]
fn readers_share_time_by_weight() {
    let readers = [G1, G2].map(Client::reader);
    for engine in [Engine::DiskTime, Engine::Wf2q] {
        let layer = Layer { engine, ..Layer::default() };
        assert_near(two_to_one::<noop::Noop>(layer, &readers), 667);
        assert_near(two_to_one::<deadline::Deadline>(layer, &readers), 667);
    }
}

#[test]
fn who_seeks_pays_for_the_seeks() {
    let clients = [Client::random(G1), Client::reader(G2)];
    assert_near(two_to_one::<noop::Noop>(Layer::default(), &clients), 667);
    assert_near(two_to_one::<deadline::Deadline>(Layer::default(), &clients), 667);
}

/// The light group floods the disk.
#[test]
fn many_requests_do_not_make_a_share() {
    let clients = [Client::reader(G1), Client { depth: 32, ..Client::random(G2) }];
    assert_near(two_to_one::<deadline::Deadline>(Layer::default(), &clients), 667);
}

//= docs/reference/groups.md#12-test-vectors vector 3 type=test
#[test]
fn a_group_that_blinks_keeps_its_share_if_it_is_waited_for() {
    let blinking = Client { think: Duration::from_ms(2), ..Client::reader(G1) };
    let clients = [blinking, Client { depth: 4, ..Client::random(G2) }];
    // Of its slices it is idle 2 ms in 4.6.
    let mut world = world_of::<noop::Noop>(limits(3), Config::default(), &clients);
    world.set_weights(&[1000, 500]);
    world.run(20_000);
    let stats = |world: &World<noop::Noop>, g| world.elevator.groups().disk_time(g).as_ms();
    let (a, b) = (stats(&world, G1), stats(&world, G2));
    assert_near(a * 1000 / (a + b), 667);
    let layer = Layer { group_idle: Duration::ZERO, ..Layer::default() };
    let mut world =
        world_of::<noop::Noop>(limits(3), Config { layer, inner: noop::Config::default() }, &clients);
    world.set_weights(&[1000, 500]);
    world.run(20_000);
    let (requests, slices) = (world.count(0, 0, 20_000), stats(&world, G2) / 100);
    assert!(requests as u64 <= slices + slices / 10, "{requests} requests in {slices} slices of the other");
}

//= docs/reference/groups.md#12-test-vectors vector 8 type=test
#[test]
fn groups_in_groups() {
    let readers = [G3, GroupId(4), G2].map(Client::reader);
    let stops = Client { until: 20_000, ..readers[1] };
    let mut world = world::<deadline::Deadline>(&[readers[0], stops, readers[2]]);
    world.control(Control::SetParent(G3, G1));
    world.control(Control::SetParent(GroupId(4), G1));
    world.run(40_000);
    let [a1, a2, b] = world.shares(0, 20_000, [G3, GroupId(4), G2]);
    for (share, ideal) in [(a1, 250), (a2, 250), (b, 500)] {
        assert_near(share, ideal);
    }
    let [a1, b] = world.shares(20_500, 40_000, [G3, G2]);
    assert_near(a1, 500);
    assert_near(b, 500);
}

#[test]
fn classes_are_strict() {
    for (g1, g2) in [(Class::RealTime, Class::BestEffort), (Class::BestEffort, Class::Idle)] {
        let first = Client { until: 10_000, ..Client::reader(G1) };
        let mut world = world::<deadline::Deadline>(&[first, Client::reader(G2)]);
        world.set_class(G1, g1);
        world.set_class(G2, g2);
        world.run(20_000);
        assert!(world.shares(100, 10_000, [G1])[0] >= 995, "{g1:?} {:?}", world.shares(0, 10_000, [G1]));
        assert_eq!(world.shares(10_100, 20_000, [G2]), [1000]);
    }
}

#[test]
fn a_new_weight_shows_within_a_second() {
    let mut world = world::<deadline::Deadline>(&[G1, G2].map(Client::reader));
    world.run(10_000);
    world.set_weights(&[900, 100]);
    world.run(20_000);
    assert_near(world.shares(0, 10_000, [G1])[0], 500);
    // Two slices of the light one in a second.
    assert!(world.shares(10_000, 11_000, [G1])[0] >= 750, "{:?}", world.shares(10_000, 11_000, [G1]));
    assert_near(world.shares(11_000, 20_000, [G1])[0], 900);
}

/// With 20 groups slices of 16 ms make the round 320 ms and the seeks.
#[test]
fn with_many_groups_slices_shrink() {
    let groups: Vec<GroupId> = (1..=20).map(GroupId).collect();
    let clients: Vec<Client> = groups.iter().map(|&g| Client::reader(g)).collect();
    let mut world = world_of::<noop::Noop>(limits(21), Config::default(), &clients);
    world.run(20_000);
    let longest = world.done.iter().map(|d| d.latency).max().unwrap();
    assert!(longest < Duration::from_ms(700), "{longest}");
    for &group in &groups {
        assert_near(world.shares(0, 20_000, [group])[0], 50);
    }
}

/// Writes of a flood wait; reads of the other group do not wait for them.
#[test]
fn a_writer_leaves_a_reader_its_share() {
    let clients = [Client::reader(G1), Client::writer(G2)];
    let mut world = world::<deadline::Deadline>(&clients);
    world.run(20_000);
    assert_near(world.shares(0, 20_000, [G1])[0], 500);
}

/// Flash that queues: both have requests at the device at once, by weight, and it is never idle.
#[test]
fn flash_is_shared_by_the_request() {
    let limits = Limits { rotational: false, queue_depth: 8, ..limits(3) };
    let client = |group, len| Client { depth: 16, random: true, len, ..Client::reader(group) };
    let clients = [client(G1, 8), client(G2, 64)];
    let mut world = world_of::<noop::Noop>(limits, Config::default(), &clients);
    world.set_weights(&[100, 300]);
    world.run(20_000);
    let sectors = [0, 1].map(|c| world.count(c, 0, 20_000) as u64 * [8, 64][c]);
    assert_near(sectors[0] * 1000 / (sectors[0] + sectors[1]), 250);
    let busy: u64 = world.done.iter().map(|d| d.service.as_us()).sum();
    assert!(busy > 19_990_000, "idle for {} us", 20_000_000 - busy);
}

/// A task moves, a group is removed and comes back elsewhere, and all requests are served.
#[test]
fn moves_and_removals_under_load() {
    let mut world = world::<deadline::Deadline>(&[G1, G2, G3].map(Client::reader));
    world.run(5_000);
    world.regroup(2, G2);
    world.run(10_000);
    world.control(Control::GroupExit(G3));
    assert!(world.shares(5_500, 10_000, [G1])[0].abs_diff(500) <= 30);
    world.control(Control::SetParent(G3, G1));
    world.regroup(2, G3);
    world.control(Control::SetWeight(G2, Weight::new(300).unwrap()));
    world.run(20_000);
    // 100 (its own tasks and G3's, half each) and 300.
    let counts = [0, 1, 2].map(|c| world.count(c, 11_000, 20_000));
    assert!(counts[1] > counts[0] * 5 && counts[1] > counts[2] * 5, "{counts:?}");
    assert!(counts[0].abs_diff(counts[2]) * 5 < counts[0], "{counts:?}");
}
