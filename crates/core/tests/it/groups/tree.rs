//! A tree of groups, and what each is due.

use crate::support::chance::Chance;
use crate::support::draw::narrow;
use fairhead_core::{Class, Control, GroupId, Weight};

/// A group: its parent, its weight and class, the weight of its own tasks, and whether it has any.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node {
    pub(crate) parent: usize,
    pub(crate) weight: u16,
    pub(crate) class: Class,
    pub(crate) leaf_weight: u16,
    pub(crate) has_tasks: bool,
}

impl Node {
    const ROOT: Self =
        Self { parent: 0, weight: 100, class: Class::BestEffort, leaf_weight: 100, has_tasks: false };
}

/// The root is node 0; parents come before their children.
#[derive(Clone, Debug)]
pub(crate) struct Tree(pub(crate) Vec<Node>);

impl Tree {
    /// Draws up to `groups` groups in up to three levels below the root. A group that has tasks is due at
    /// least one part in `parts`.
    pub(crate) fn draw(chance: &mut Chance, groups: usize, parts: u64) -> Self {
        loop {
            let tree = Self::draw_any(chance, groups);
            if tree.shares().iter().all(|&(a, b)| a == 0 || b / a <= u128::from(parts)) {
                return tree;
            }
        }
    }

    fn draw_any(chance: &mut Chance, groups: usize) -> Self {
        let weight = |chance: &mut Chance, spread: u64| narrow(chance.scaled(100, 100 + spread));
        let spread = *chance.pick(&[0, 200, 900, 9_900]);
        let mut nodes = vec![Node::ROOT];
        let mut depth = vec![0];
        for _ in 0..chance.range(1, groups as u64) {
            let parent = match chance.index(nodes.len()) {
                p if depth[p] < 3 => p,
                _ => 0,
            };
            depth.push(depth[parent] + 1);
            let (weight, leaf_weight) = (weight(chance, spread), weight(chance, spread));
            nodes.push(Node { parent, weight, leaf_weight, ..Node::ROOT });
        }
        for i in 0..nodes.len() {
            let is_leaf = nodes.iter().skip(1).all(|n| n.parent != i);
            nodes[i].has_tasks = is_leaf || chance.percent(20);
        }
        Self(nodes)
    }

    /// What makes the groups as they are here.
    pub(crate) fn controls(&self) -> impl Iterator<Item = Control> + '_ {
        let id = |i: usize| GroupId(u32::try_from(i).unwrap());
        let weight = |w: u16| Weight::new(w).unwrap();
        (0..self.0.len()).flat_map(move |i| {
            let node = self.0[i];
            let own = [
                Control::SetParent(id(i), id(node.parent)),
                Control::SetWeight(id(i), weight(node.weight)),
                Control::SetLeafWeight(id(i), weight(node.leaf_weight)),
            ];
            own.into_iter().skip(if i == 0 { 2 } else { 0 })
        })
    }

    /// Each group's own part of everything, as a fraction, while all who have tasks always want more.
    pub(crate) fn shares(&self) -> Vec<(u128, u128)> {
        (0..self.0.len()).map(|i| if self.0[i].has_tasks { self.share(i) } else { (0, 1) }).collect()
    }

    fn share(&self, i: usize) -> (u128, u128) {
        if self.first_class(i) != Class::BestEffort {
            return (0, 1);
        }
        let (mut part, mut whole) = (u128::from(self.0[i].leaf_weight), self.inside(i));
        let mut at = i;
        while at != 0 {
            let parent = self.0[at].parent;
            if self.0[at].class != self.first_class(parent) {
                return (0, 1);
            }
            part *= u128::from(self.0[at].weight);
            whole *= self.inside(parent);
            at = parent;
        }
        (part, whole)
    }

    fn active_children(&self, i: usize) -> impl Iterator<Item = &Node> {
        let all = self.0.iter().enumerate().skip(1);
        all.filter(move |(c, n)| n.parent == i && self.is_active(*c)).map(|(_, n)| n)
    }

    /// The most urgent class of those who want something in group `i`; its own tasks are BE.
    fn first_class(&self, i: usize) -> Class {
        let own = self.0[i].has_tasks.then_some(Class::BestEffort);
        self.active_children(i).map(|n| n.class).chain(own).min().unwrap_or_default()
    }

    /// The weights of all who share what group `i` gets.
    fn inside(&self, i: usize) -> u128 {
        let first = self.first_class(i);
        let own = if self.0[i].has_tasks && first == Class::BestEffort { self.0[i].leaf_weight } else { 0 };
        let children = self.active_children(i).filter(|n| n.class == first);
        u128::from(own) + children.map(|n| u128::from(n.weight)).sum::<u128>()
    }

    fn is_active(&self, i: usize) -> bool {
        self.0[i].has_tasks || (i + 1..self.0.len()).any(|c| self.0[c].parent == i && self.is_active(c))
    }
}

#[test]
fn the_ideal_is_what_one_works_out_by_hand() {
    let node = |parent, weight, has_tasks| Node { parent, weight, has_tasks, ..Node::ROOT };
    //= docs/reference/groups.md#12-test-vectors vector 8 type=test
    let mut tree = Tree(vec![
        node(0, 100, false),
        node(0, 500, false),
        node(1, 500, true),
        node(1, 500, true),
        node(0, 500, true),
    ]);
    let percent: Vec<_> = tree.shares().iter().map(|(a, b)| 100 * a / b).collect();
    assert_eq!(percent, [0, 0, 25, 25, 50]);
    tree.0[4].class = Class::Idle;
    let percent: Vec<_> = tree.shares().iter().map(|(a, b)| 100 * a / b).collect();
    assert_eq!(percent, [0, 0, 50, 50, 0]);
}
