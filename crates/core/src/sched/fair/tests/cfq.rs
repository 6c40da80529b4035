//! CFQ, whose queues have slices of their own inside those of their group.

extern crate std;
use super::world::{Client, G1, G2, G3, World, limits, world_of};
use crate::request::Op;
use crate::sched::cfq::{Cfq, Config as Inner};
use crate::sched::fair::{Config, Layer};
use crate::{Class, Control, Duration, IoPrio, Limits, TaskId};
use std::vec::Vec;

const TIME: u64 = 20_000;

fn world(layer: Layer, inner: Inner, clients: &[Client]) -> World<Cfq> {
    world_of(limits(4), Config { layer, inner }, clients)
}

/// The disk time of each client, in 1000ths.
fn shares(world: &World<Cfq>, clients: usize) -> Vec<u64> {
    let of = |i| world.done.iter().filter(|d| d.client == i).map(|d| d.service.as_us()).sum::<u64>();
    let each: Vec<u64> = (0..clients).map(of).collect();
    let all: u64 = each.iter().sum();
    each.iter().map(|time| time * 1000 / all).collect()
}

fn near(got: &[u64], want: &[u64]) -> bool {
    got.len() == want.len() && got.iter().zip(want).all(|(a, b)| a.abs_diff(*b) <= 25)
}

#[test]
fn groups_share_time_by_weight_whatever_the_era() {
    for inner in [Inner::default(), Inner::linux_2_6_34(), Inner::linux_2_6_33()] {
        let mut world = world(Layer::default(), inner, &[G1, G2].map(Client::reader));
        world.set_weights(&[1000, 500]);
        world.run(TIME);
        assert!(near(&shares(&world, 2), &[667, 333]), "{:?}: {:?}", inner.era, shares(&world, 2));
    }
}

/// Slices of 100 ms for queues do not fit into those of the group: one queue is always cut off.
#[test]
fn two_readers_in_a_group_get_the_same_whatever_the_slices() {
    for group_slice in [20, 70, 100, 130, 150, 250] {
        for think in [0, 100] {
            let think = Duration::from_us(think);
            let layer = Layer { group_slice: Duration::from_ms(group_slice), ..Layer::default() };
            let clients = [G1, G1, G2].map(|g| Client { think, ..Client::reader(g) });
            let mut world = world(layer, Inner::default(), &clients);
            world.run(TIME);
            let got = shares(&world, 3);
            assert!(near(&got, &[250, 250, 500]), "{group_slice} ms, {think:?}: {got:?}");
        }
    }
}

#[test]
fn levels_hold_inside_a_group_that_is_cut_off() {
    let clients = [Client::reader(G1), Client::reader(G1), Client::reader(G2)];
    let mut world = world(Layer::default(), Inner::default(), &clients);
    world.control(Control::SetPrio(TaskId(0), IoPrio::new(Class::BestEffort, 0)));
    world.run(TIME);
    // 180 and 100 ms.
    assert!(near(&shares(&world, 3), &[321, 179, 500]), "{:?}", shares(&world, 3));
}

#[test]
fn readers_beside_writers_in_both_groups() {
    let writer = |g| Client { op: Op::Write, depth: 16, ..Client::random(g) };
    let clients = [Client::reader(G1), writer(G1), Client::reader(G2), writer(G2)];
    let mut world = world(Layer::default(), Inner::default(), &clients);
    world.run(TIME);
    let got = shares(&world, 4);
    assert!((got[0] + got[1]).abs_diff(500) <= 25 && got[0].abs_diff(got[2]) <= 40, "{got:?}");
    assert!(got[0] > got[1], "a reader gets more than a writer: {got:?}");
}

#[test]
fn classes_of_groups_cut_off_and_hand_back() {
    let rare = Client { think: Duration::from_ms(30), ..Client::random(G3) };
    let clients = [Client::reader(G1), Client::reader(G1), rare];
    let mut world = world(Layer::default(), Inner::default(), &clients);
    world.set_class(G3, Class::RealTime);
    world.run(TIME);
    let got = shares(&world, 3);
    assert!(got[0].abs_diff(got[1]) <= 25, "cut off thirty times a second: {got:?}");
    let waits = world.done.iter().filter(|d| d.client == 2).map(|d| d.latency).max().unwrap();
    assert!(waits < Duration::from_ms(30), "{waits:?}");
}

#[test]
fn a_group_goes_and_its_task_moves() {
    let mut world = world_of::<Cfq>(
        Limits { tasks: 2, ..limits(4) },
        Config::default(),
        &[G1, G1, G2].map(Client::reader),
    );
    world.run(300);
    world.control(Control::GroupExit(G1));
    world.regroup(1, G2);
    world.run(600);
    world.control(Control::SetParent(G1, G2));
    world.regroup(0, G1);
    world.run(10_000);
    assert!(world.done.len() > 2000, "{}", world.done.len());
}
