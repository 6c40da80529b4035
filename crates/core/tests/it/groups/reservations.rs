//! Guarantees, with weights beside them and against them.

use super::world::{Toy, World};
use crate::support::chance::Chance;
use crate::support::draw::narrow;
use crate::support::seeds;
use fairhead_core::units::Id;
use fairhead_core::{Control, Duration, GroupId, Min, Weight};

const WINDOW: Duration = Duration::from_secs(1);
const WINDOWS: u64 = 120;

/// Of `capacity` requests a second, at most four fifths are guaranteed to some groups of small weight; others
/// of large weight want all. Returns how many windows of a second missed a guarantee, and of how many.
fn misses(chance: &mut Chance, toy: Toy, capacity: u64, name: &str, tunables: &[(&str, u64)]) -> (u64, u64) {
    let guaranteed = chance.range(1, 6);
    let groups = 1 + guaranteed + chance.range(1, 3);
    let mut world = World::new(toy, narrow(groups), name, tunables);
    let mut left = capacity * 4 / 5;
    let mut due = vec![0; usize::try_from(groups).unwrap()];
    for group in 1..groups {
        let id = GroupId::from_index(narrow(group));
        let weight = if group <= guaranteed { chance.range(1, 20) } else { 1000 };
        // Enough to fill the device alone, and something that waits.
        let outstanding = 2 * u32::from(toy.depth) + 2;
        world.control(Control::SetWeight(id, Weight::new(narrow(weight)).unwrap())).unwrap();
        if group <= guaranteed && left > 0 {
            let iops = chance.scaled(1, left);
            left -= iops;
            due[id.index()] = iops;
            world.control(Control::SetMin(id, Min { iops: narrow(iops) })).unwrap();
        }
        world.add(id.index(), outstanding, 8, Duration::ZERO);
    }
    world.run(WINDOW);
    let mut missed = 0;
    for _ in 0..WINDOWS {
        let before = world.got.clone();
        world.run(WINDOW);
        // A window cuts through one request.
        missed +=
            world.since(&before).iter().zip(&due).filter(|(g, due)| g.requests + 1 < **due).count() as u64;
    }
    (missed, WINDOWS * guaranteed)
}

fn keeps_guarantees(test: &str, toy: Toy, capacity: u64, name: &str, tunables: &[(&str, u64)]) {
    let (mut missed, mut all) = (0, 0);
    seeds::each_long(test, |seed| {
        let (m, n) = misses(&mut Chance::Seed(seed), toy, capacity, name, tunables);
        (missed, all) = (missed + m, all + n);
    });
    assert!(missed * 1000 <= all, "{name} {tunables:?}: {missed} of {all} windows missed");
}

#[test]
fn a_card_in_slices_keeps_guarantees() {
    keeps_guarantees("a_card_in_slices_keeps_guarantees", Toy::SLOW, 1000, "deadline+groups", &[]);
}

#[test]
fn b_wf2q_keeps_guarantees() {
    keeps_guarantees("b_wf2q_keeps_guarantees", Toy::SLOW, 1000, "noop+groups", &[("engine", 1)]);
}

#[test]
fn flash_keeps_guarantees() {
    let toy = Toy { request: Duration::from_us(7_992), ..Toy::FLASH };
    keeps_guarantees("flash_keeps_guarantees", toy, 1000, "deadline+groups", &[]);
}

/// On a disk whose streams are read in slices of 100 ms, a guarantee for scattered requests costs a seek
/// there and one back.
#[test]
fn a_disk_keeps_guarantees() {
    // 5 ms there and 5 ms back.
    keeps_guarantees("a_disk_keeps_guarantees", Toy::DISK, 80, "deadline+groups", &[]);
}

/// A group that is guaranteed less than its weight gives it anyway loses nothing; the rest is shared by
/// weight.
#[test]
fn what_is_left_is_shared_by_weight() {
    for name in ["noop+groups", "deadline+groups"] {
        let tunables = [("group_slice", 2_000_000), ("group_target", 0)];
        let mut world = World::new(Toy::SLOW, 4, name, &tunables);
        for (i, weight, iops) in [(1, 100, 500), (2, 300, 0), (3, 100, 0)] {
            let id = GroupId(i);
            world.control(Control::SetWeight(id, Weight::new(weight).unwrap())).unwrap();
            world.control(Control::SetMin(id, Min { iops })).unwrap();
            world.add(i as usize, 4, 8, Duration::ZERO);
        }
        world.run(Duration::from_secs(20));
        let got: Vec<u64> = world.got.iter().map(|g| g.requests / 20).collect();
        // Half of the device is the first one's by guarantee, more than its fifth, which its weight gives it.
        // A guarantee runs 1/16 faster than asked. It is not made to pay back for ever what it has had beyond
        // its share, so it has a turn now and then. Of the rest, 3 : 1.
        assert!((500..545).contains(&got[1]), "{name}: {got:?}");
        assert!((3 * got[3]).abs_diff(got[2]) < 10, "{name}: {got:?}");
    }
}
