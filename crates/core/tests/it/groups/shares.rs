//! Shares by weight at every level, against the fluid ideal.

use super::tree::Tree;
use super::world::{Got, Toy, World};
use crate::support::chance::Chance;
use crate::support::seeds;
use fairhead_core::Duration;

const SPAN: Duration = Duration::from_secs(10);

/// What is shared on this device: the time of one that serves one request at a time, else sectors.
fn amount(toy: Toy, got: &Got) -> u64 {
    if toy.depth == 1 { got.time.as_ns() } else { got.sectors }
}

/// Groups that always want more get what they are due, within 2 % each.
fn keeps_shares(chance: &mut Chance, toy: Toy, name: &str, tunables: &[(&str, u64)], parts: u64) {
    let tree = Tree::draw(chance, 64, parts);
    let groups = u32::try_from(tree.0.len()).unwrap();
    let mut world = World::new(toy, groups, name, tunables);
    tree.controls().for_each(|c| world.control(c).unwrap());
    for (group, node) in tree.0.iter().enumerate() {
        if node.has_tasks {
            let outstanding = u32::from(toy.depth) * 2;
            world.add(group, outstanding, 8, Duration::ZERO);
        }
    }
    world.run(Duration::from_secs(1));
    judge(&mut world, toy, &tree, SPAN, &format!("{name} {tunables:?}"));
}

/// Whether everyone gets what it is due, within 2 %, in the time to come.
pub(crate) fn judge(world: &mut World, toy: Toy, tree: &Tree, span: Duration, what: &str) {
    let before = world.got.clone();
    world.run(span);
    let got = world.since(&before);
    let busy: u64 = got.iter().map(|g| g.time.as_ns()).sum();
    assert!(busy > span.as_ns() * u64::from(toy.depth) / 10 * 9, "{what}: the device was idle");
    let all: u64 = got.iter().map(|g| amount(toy, g)).sum();
    for (group, (due, got)) in tree.shares().iter().zip(&got).enumerate() {
        let (ideal, got) = (u128::from(all) * due.0 / due.1, u128::from(amount(toy, got)));
        assert!(
            got.abs_diff(ideal) * 50 <= ideal,
            "{what}: group {group} got {got}, due are {ideal}: {:?}",
            tree.0
        );
    }
}

macro_rules! shares {
    ($($test:ident: $toy:expr, $name:literal, [$($key:literal = $value:expr),*], $parts:expr;)*) => {
        $(#[test]
        fn $test() {
            seeds::each_long(stringify!($test), |seed| {
                let tunables: &[(&str, u64)] = &[$(($key, $value)),*];
                keeps_shares(&mut Chance::Seed(seed), $toy, $name, tunables, $parts);
            });
        })*
    };
}

const MS: u64 = 1_000_000;

shares! {
    // Slices of 1 ms: a group that is due one part in 150 gets 67 of them in 10 s.
    noop_in_slices: Toy::CARD, "noop+groups", ["group_slice" = MS, "group_target" = 0], 150;
    noop_in_slices_by_b_wf2q: Toy::CARD, "noop+groups", ["group_slice" = MS, "group_target" = 0, "engine" = 1], 150;
    deadline_in_slices: Toy::CARD, "deadline+groups", ["group_slice" = MS, "group_target" = 0], 150;
    anticipatory_in_slices: Toy::CARD, "as+groups", ["group_slice" = MS, "group_target" = 0], 150;
    deadline_on_flash: Toy::FLASH, "deadline+groups", [], 300;
    deadline_on_flash_by_b_wf2q: Toy::FLASH, "deadline+groups", ["engine" = 1], 300;
    // CFQ counts a group's fraction of the disk in 4096ths.
    cfq_in_slices: Toy::CARD, "cfq", ["slice_sync" = MS, "low_latency" = 0], 40;
    noop_on_flash: Toy::FLASH, "noop+groups", [], 300;
}

/// With CFQ's defaults, on a disk: no group is off by more than the current slice, and by what is not
/// charged: a slice's time begins with its first completion, so a group that has the disk for many slices in
/// a row pays for one of these, and one that comes in between for none.
#[test]
fn a_disk_by_default() {
    seeds::each_long("a_disk_by_default", |seed| {
        for name in ["noop+groups", "deadline+groups", "as+groups"] {
            let toy = Toy::DISK;
            let tree = Tree::draw(&mut Chance::Seed(seed), 4, 10);
            let mut world = World::new(toy, u32::try_from(tree.0.len()).unwrap(), name, &[]);
            tree.controls().for_each(|c| world.control(c).unwrap());
            for group in (0..tree.0.len()).filter(|&g| tree.0[g].has_tasks) {
                world.add(group, 1, 256, Duration::from_us(100));
            }
            world.run(SPAN);
            let all: u64 = world.got.iter().map(|g| g.time.as_ns()).sum();
            for (due, got) in tree.shares().iter().zip(&world.got) {
                let ideal = Duration::from_ns(u64::try_from(u128::from(all) * due.0 / due.1).unwrap());
                let off = got.time.as_ns().abs_diff(ideal.as_ns());
                let first = toy.seek + toy.request + toy.sector * 256;
                let slice = Duration::from_ms(100) + first;
                // Of each slice of at least 100 ms this much is free; a group with a part f of the disk has
                // 1 - f to gain or lose.
                let others = u128::from(ideal.as_ns()) * (due.1 - due.0) / due.1;
                let free = u64::try_from(others * u128::from(first.as_ns()) / u128::from(100 * MS)).unwrap();
                assert!(off <= slice.as_ns() + free, "{name}: {} got, {ideal} due: {:?}", got.time, tree.0);
            }
        }
    });
}
