//! Changes under load: weights, classes, tasks that move, groups that go and come back. Nothing is lost, and
//! after a second everyone has what it is due now; under CFQ by itself, once the [debts](Case::debts) of
//! before are paid.

use super::shares::judge;
use super::tree::Tree;
use super::world::{Toy, World};
use crate::support::chance::Chance;
use crate::support::draw::narrow;
use crate::support::seeds;
use fairhead_core::units::Id;
use fairhead_core::{Class, Control, Duration, GroupId, Weight};

/// In which the new shares are reached.
const SETTLES: Duration = Duration::from_secs(1);
const SPAN: Duration = Duration::from_secs(3);
/// The smallest share that a group is due: one part in this many.
const PARTS: u128 = 40;
/// CFQ's slices.
const SLICE: Duration = Duration::from_ms(1);
/// The longest time that the test waits for debts to be paid.
const PATIENCE: Duration = Duration::from_secs(5);

struct Case<'a> {
    chance: &'a mut Chance,
    tree: Tree,
    world: World,
    /// Of each task: its group.
    homes: Vec<usize>,
    /// The groups that are removed.
    gone: Vec<usize>,
}

impl<'a> Case<'a> {
    fn draw(chance: &'a mut Chance, toy: Toy, name: &str, tunables: &[(&str, u64)]) -> Self {
        let tree = Tree::draw(chance, 8, 40);
        let mut world = World::new(toy, narrow(tree.0.len() as u64), name, tunables);
        tree.controls().for_each(|c| world.control(c).unwrap());
        let homes: Vec<usize> = (0..tree.0.len()).filter(|&g| tree.0[g].has_tasks).collect();
        for &group in &homes {
            world.add(group, u32::from(toy.depth) * 2, 8, Duration::ZERO);
        }
        Self { chance, tree, world, homes, gone: Vec::new() }
    }

    fn group(&mut self) -> usize {
        let all: Vec<usize> = (0..self.tree.0.len()).filter(|g| !self.gone.contains(g)).collect();
        *self.chance.pick(&all)
    }

    fn see_tasks(&mut self) {
        for (group, node) in self.tree.0.iter_mut().enumerate() {
            node.has_tasks = self.homes.contains(&group);
        }
    }

    /// A change, and how the tree is then.
    fn change(&mut self, classes: bool) {
        let group = self.group();
        let id = GroupId::from_index(group);
        match self.chance.below(if classes { 4 } else { 3 }) {
            0 if group > 0 => {
                let weight = narrow(self.chance.range(20, 2000));
                self.tree.0[group].weight = weight;
                self.world.control(Control::SetWeight(id, Weight::new(weight).unwrap())).unwrap();
            }
            1 => {
                let task = self.chance.index(self.homes.len());
                self.homes[task] = group;
                self.world.move_task(task, group);
            }
            2 if group > 0 => self.remove_or_revive(group),
            3 if group > 0 => {
                let class = *self.chance.pick(&[Class::RealTime, Class::BestEffort, Class::Idle]);
                self.tree.0[group].class = class;
                self.world.control(Control::SetClass(id, class)).unwrap();
            }
            _ => {}
        }
        self.see_tasks();
    }

    /// A group with nothing in it goes, under load; its tasks are its parent's then. Or one that is gone
    /// comes back.
    fn remove_or_revive(&mut self, group: usize) {
        let parent = self.tree.0[group].parent;
        if let Some(old) = self.gone.pop() {
            // Its last requests may still be served.
            if self.world.control(Control::SetParent(GroupId::from_index(old), GroupId::ROOT)).is_err() {
                return self.gone.push(old);
            }
            // The tasks in it belong to its parent for good.
            for (task, &home) in self.world.tasks.iter_mut().zip(&self.homes) {
                if task.group == old {
                    task.group = home;
                }
            }
            let node = &mut self.tree.0[old];
            (node.parent, node.weight, node.leaf_weight, node.class) = (0, 100, 100, Class::BestEffort);
        } else if self.tree.0.iter().skip(1).all(|n| n.parent != group) {
            self.world.control(Control::GroupExit(GroupId::from_index(group))).unwrap();
            self.gone.push(group);
            for task in (0..self.homes.len()).filter(|&t| self.homes[t] == group).collect::<Vec<_>>() {
                self.homes[task] = parent;
                // What it sent before may starve in the group that is gone; it still names that.
                self.world.move_task(task, group);
            }
        }
    }

    /// Whether each group that is due anything is due enough to be measured.
    fn is_measurable(&self) -> bool {
        self.tree.shares().iter().all(|&(a, b)| a == 0 || b / a <= PARTS)
    }

    /// The smallest share of all, as one part in the returned number.
    fn parts_most(&self) -> u64 {
        let shares = self.tree.shares().into_iter().filter(|s| s.0 > 0);
        shares.map(|(a, b)| u64::try_from(b.div_ceil(a)).unwrap()).max().unwrap_or(1)
    }

    /// How long CFQ takes to settle the shares of before a change, if a group was due one part in `before`.
    ///
    /// What a slice cost, its length divided by the group's share, stays whatever the group's share is
    /// afterwards; and since the share is looked up when a group is charged, but after that, the first slice
    /// after a change costs as much once more. A group that comes is placed behind all others, and has one
    /// slice at the share it came with. So all that is from before has gone by after two slices at the
    /// smallest share that any group has while tasks of before and of after both send: in each group no more
    /// weighs in than before and after together.
    //= docs/reference/cfq.md#62-group-tree, docs/reference/cfq.md#66-hierarchy type=test
    fn debts(&self, before: u64) -> Duration {
        SLICE * (2 * (before + self.parts_most()))
    }
}

fn changes(chance: &mut Chance, toy: Toy, name: &str, tunables: &[(&str, u64)]) {
    let mut case = Case::draw(chance, toy, name, tunables);
    case.world.run(SETTLES);
    let mut settled = case.world.now;
    for i in 0..6 {
        let before = case.parts_most();
        case.change(name.ends_with("+groups"));
        if name == "cfq" {
            settled = settled.max(case.world.now + case.debts(before));
        }
        case.world.run(SETTLES);
        let rest = settled.saturating_since(case.world.now);
        if case.is_measurable() && rest <= PATIENCE {
            case.world.run(rest);
            judge(&mut case.world, toy, &case.tree, SPAN, &format!("{name} {tunables:?}, change {i}"));
        }
    }
    case.world.drain(Duration::from_secs(10));
}

macro_rules! changes {
    ($($test:ident: $toy:expr, $name:literal, [$($key:literal = $value:expr),*];)*) => {
        $(#[test]
        fn $test() {
            seeds::each_long(stringify!($test), |seed| {
                changes(&mut Chance::Seed(seed), $toy, $name, &[$(($key, $value)),*]);
            });
        })*
    };
}

const MS: u64 = 1_000_000;

changes! {
    noop_in_slices_follows: Toy::CARD, "noop+groups", ["group_slice" = MS, "group_target" = 0];
    deadline_on_flash_follows: Toy::FLASH, "deadline+groups", [];
    deadline_by_b_wf2q_follows: Toy::CARD, "deadline+groups", ["group_slice" = MS, "group_target" = 0, "engine" = 1];
    cfq_follows: Toy::CARD, "cfq", ["slice_sync" = SLICE.as_ns(), "low_latency" = 0];
    flash_by_b_wf2q_follows: Toy::FLASH, "noop+groups", ["engine" = 1];
}

/// A group's own tasks, of leaf weight 1 beside a group of 999 in there, get one part in 2000, beside another
/// group of the same weight. When the inner group stops, half is due. But a slice of 1 ms has cost 2 s of
/// virtual time, which the other one, alone, takes 1 s to come through; and so does the next slice.
//= docs/reference/cfq.md#66-hierarchy type=test
#[test]
fn cfq_pays_for_a_slice_at_the_share_of_before() {
    let mut world = World::new(Toy::CARD, 4, "cfq", &[("slice_sync", SLICE.as_ns()), ("low_latency", 0)]);
    let [beside, outer, inner] = [1, 2, 3];
    let id = GroupId::from_index;
    world.control(Control::SetParent(id(inner), id(outer))).unwrap();
    world.control(Control::SetWeight(id(inner), Weight::new(999).unwrap())).unwrap();
    world.control(Control::SetLeafWeight(id(outer), Weight::new(1).unwrap())).unwrap();
    let stops = world.add(inner, 2, 8, Duration::ZERO);
    world.add(beside, 2, 8, Duration::ZERO);
    world.add(outer, 2, 8, Duration::ZERO);
    let got = |world: &mut World, ms: u64| {
        let before = world.got.clone();
        world.run(Duration::from_ms(ms));
        world.since(&before)[outer].time
    };
    // With the request that its clock starts with.
    let slice = SLICE + Toy::CARD.request + Toy::CARD.sector * 8;
    assert_eq!(got(&mut world, 100), slice, "one slice, last of all");
    world.tasks[stops].outstanding = 0;
    assert_eq!(got(&mut world, 900), Duration::ZERO, "that is paid for");
    assert_eq!(got(&mut world, 1000), slice, "another, by its share of when it was charged last");
    assert_eq!(got(&mut world, 100), Duration::ZERO, "that is paid for, too");
    got(&mut world, 200);
    let half = got(&mut world, 1000);
    assert!(half.as_ms().abs_diff(500) <= 2, "half, not {half}");
}

/// The disk is kept idle for a task whose group was removed with the group around it; the outer number goes
/// to a new group meanwhile.
#[test]
fn a_number_is_given_away_while_the_disk_waits_for_a_group_inside() {
    for name in ["noop+groups", "deadline+groups", "as+groups", "cfq+groups", "cfq", "bfq"] {
        let engines: &[&[_]] =
            if name.ends_with("+groups") { &[&[("engine", 0)], &[("engine", 1)]] } else { &[&[]] };
        for tunables in engines {
            let mut world = World::new(Toy::DISK, 4, name, tunables);
            let [beside, outer, inner] = [1, 2, 3];
            let id = GroupId::from_index;
            world.control(Control::SetParent(id(inner), id(outer))).unwrap();
            world.add(inner, 1, 8, Duration::from_secs(1));
            world.run(Duration::from_ms(6));
            assert_eq!((world.open, world.got[inner].requests), (0, 1), "{name}");
            world.control(Control::GroupExit(id(inner))).unwrap();
            world.control(Control::GroupExit(id(outer))).unwrap();
            world.control(Control::SetParent(id(outer), id(beside))).unwrap();
            world.elevator.check();
            world.control(Control::SetParent(id(inner), id(outer))).unwrap();
            world.elevator.check();
            world.drain(Duration::from_secs(1));
            for group in [beside, outer, inner] {
                world.add(group, 4, 8, Duration::ZERO);
            }
            world.run(Duration::from_ms(500));
            world.drain(Duration::from_secs(1));
        }
    }
}
