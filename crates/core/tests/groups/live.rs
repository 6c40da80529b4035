//! Changes under load: weights, classes, tasks that move, groups that go and come back. Nothing is lost, and after a second everyone
//! has what it is due now.

use crate::shares::judge;
use crate::support::chance::Chance;
use crate::support::draw::narrow;
use crate::support::seeds;
use crate::tree::Tree;
use crate::world::{Toy, World};
use fairhead_core::units::Id;
use fairhead_core::{Class, Control, Duration, GroupId, Weight};

/// In which the new shares are reached.
const SETTLES: Duration = Duration::from_secs(1);
const SPAN: Duration = Duration::from_secs(3);
/// Nobody is due less than one part in so many.
const PARTS: u128 = 40;

struct Case<'a> {
    chance: &'a mut Chance,
    tree: Tree,
    world: World,
    /// Of each task: its group.
    homes: Vec<usize>,
    /// Who is gone.
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

    /// A group with nothing in it goes, under load; its tasks are its parent's then. Or one that is gone comes back.
    fn remove_or_revive(&mut self, group: usize) {
        let parent = self.tree.0[group].parent;
        if let Some(old) = self.gone.pop() {
            // Its last requests may still be served.
            if self.world.control(Control::SetParent(GroupId::from_index(old), GroupId::ROOT)).is_err() {
                return self.gone.push(old);
            }
            // Who had been in it is its parent's for good.
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

    /// Whether everybody who is due anything is due enough to be measured.
    fn is_measurable(&self) -> bool {
        self.tree.shares().iter().all(|&(a, b)| a == 0 || b / a <= PARTS)
    }
}

fn changes(chance: &mut Chance, toy: Toy, name: &str, tunables: &[(&str, u64)]) {
    let mut case = Case::draw(chance, toy, name, tunables);
    case.world.run(SETTLES);
    for i in 0..6 {
        case.change(name.ends_with("+groups"));
        case.world.run(SETTLES);
        if case.is_measurable() {
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
    cfq_follows: Toy::CARD, "cfq", ["slice_sync" = MS, "low_latency" = 0];
    flash_by_b_wf2q_follows: Toy::FLASH, "noop+groups", ["engine" = 1];
}
