//! Weights in the tree of groups: the share of each group that is active, and shares that are given away.
//!
//! A group's own requests are a *leaf*: one more child of the group, with its leaf weight. The share of a
//! leaf is the product, along its way to the root, of weight by the sum of the weights of siblings that are
//! active.
//!
//! ```text
//!   root ─┬─ a  200                 a alone with b:  b 1/3
//!         └─ b  100 ─┬─ c  100      with c and d in it: c 1/6, d 1/6, a 2/3
//!                    └─ d  100
//! ```
//!
//! A leaf that uses less than its share gives the rest away. Its weight *in use* is lower then, and so are
//! those of the groups around it, so that it keeps the share that it needs and all others have theirs
//! multiplied by one factor `k`. What is known: the shares `s` by full weights; of those inside a group, the
//! shares `D` of leaves that give and the shares `T` that they keep; `k = (1 - T) / (1 - D)`, of the root's
//! `T` and `D`. The share of a group is then `T + k (s - D)`, its own `T` and `D` taken, and so its weight
//! has to be `(T + k (s - D)) W / (k S)` beside siblings that keep their weights, with `W` the sum of
//! full weights of all of these and `S` the share of their parent. No other group's weight changes. So a leaf
//! that needs its share again takes it back alone: it and the groups around it have their full weights.

use fairhead_core::{GroupId, Groups};

/// A share of everything.
pub(super) const WHOLE: u64 = 1 << 24;

/// Weights in use count in this part of full ones.
const FINE: u64 = 1 << 10;

#[derive(Clone, Copy, Debug, Default)]
struct Node {
    parent: u32,
    /// Full weights, in [`FINE`].
    weight: u64,
    leaf_weight: u64,
    /// Weights in use.
    inuse: u64,
    leaf_inuse: u64,
    /// Of what is active in it, itself as a leaf included: how many, and the sums of weights.
    actives: u32,
    full_sum: u64,
    inuse_sum: u64,
    is_leaf_active: bool,
    /// While it is planned who gives: the shares of leaves in it that give, and what they keep.
    given: u64,
    kept: u64,
    /// Its share as a leaf, as of a change.
    share: u64,
    share_of: u64,
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Tree {
    nodes: Vec<Node>,
    /// How often a share may have changed.
    changes: u64,
}

/// `a b / c`.
fn scaled(a: u128, b: u64, c: u128) -> u64 {
    u64::try_from(a * u128::from(b) / c.max(1)).unwrap_or(u64::MAX)
}

impl Tree {
    /// Allocates.
    pub(super) fn new(groups: u32) -> Self {
        Self { nodes: vec![Node::default(); groups as usize], changes: 1 }
    }

    /// How often a share may have changed.
    pub(super) const fn changes(&self) -> u64 {
        self.changes
    }

    /// Takes parents and weights over. All weights are full then.
    pub(super) fn rebuild(&mut self, groups: &Groups) {
        for (i, node) in (0_u32..).zip(&mut self.nodes) {
            let group = GroupId(i);
            *node = Node {
                parent: groups.parent(group).map_or(0, |p| p.0),
                weight: u64::from(groups.weight(group).get()) * FINE,
                leaf_weight: u64::from(groups.leaf_weight(group).get()) * FINE,
                is_leaf_active: node.is_leaf_active,
                ..Node::default()
            };
            (node.inuse, node.leaf_inuse) = (node.weight, node.leaf_weight);
        }
        for i in 0..self.nodes.len() {
            if std::mem::take(&mut self.nodes[i].is_leaf_active) {
                self.activate(i as u32);
            }
        }
        self.changes += 1;
    }

    /// A leaf has requests.
    pub(super) fn activate(&mut self, leaf: u32) {
        let node = &mut self.nodes[leaf as usize];
        assert!(!node.is_leaf_active, "it is active");
        node.is_leaf_active = true;
        node.leaf_inuse = node.leaf_weight;
        self.changes += 1;
        let (mut at, mut full, mut inuse) = (leaf, node.leaf_weight, node.leaf_inuse);
        loop {
            let node = &mut self.nodes[at as usize];
            node.actives += 1;
            node.full_sum += full;
            node.inuse_sum += inuse;
            if node.actives > 1 || at == 0 {
                return;
            }
            node.inuse = node.weight;
            (at, full, inuse) = (node.parent, node.weight, node.inuse);
        }
    }

    /// A leaf has had none for some time.
    pub(super) fn deactivate(&mut self, leaf: u32) {
        let node = &mut self.nodes[leaf as usize];
        assert!(node.is_leaf_active, "it is not active");
        node.is_leaf_active = false;
        self.changes += 1;
        let (mut at, mut full, mut inuse) = (leaf, node.leaf_weight, node.leaf_inuse);
        loop {
            let node = &mut self.nodes[at as usize];
            node.actives -= 1;
            node.full_sum -= full;
            node.inuse_sum -= inuse;
            if node.actives > 0 || at == 0 {
                return;
            }
            (at, full, inuse) = (node.parent, node.weight, node.inuse);
        }
    }

    /// The share of an active leaf, at least the smallest above nothing.
    pub(super) fn share(&mut self, leaf: u32) -> u64 {
        let node = &self.nodes[leaf as usize];
        if node.share_of == self.changes {
            return node.share;
        }
        let share = self.product(leaf, Some(node.leaf_inuse), |n| (n.inuse, n.inuse_sum)).max(1);
        let changes = self.changes;
        let node = &mut self.nodes[leaf as usize];
        (node.share, node.share_of) = (share, changes);
        share
    }

    /// The share of an active leaf by full weights.
    pub(super) fn full_share(&self, leaf: u32) -> u64 {
        let weight = self.nodes[leaf as usize].leaf_weight;
        self.product(leaf, Some(weight), |n| (n.weight, n.full_sum)).max(1)
    }

    /// The share of a group, and of its own requests if `leaf` is their weight: `of` gives a group's weight
    /// and the sum of those in it.
    fn product(&self, group: u32, leaf: Option<u64>, of: impl Fn(&Node) -> (u64, u64)) -> u64 {
        let mut share = WHOLE;
        let (mut at, mut weight) = (group, leaf);
        loop {
            let (own, sum) = of(&self.nodes[at as usize]);
            if let Some(weight) = weight {
                share = share * weight / sum.max(1);
            }
            if at == 0 {
                return share;
            }
            (weight, at) = (Some(own), self.nodes[at as usize].parent);
        }
    }

    /// Whether a leaf has given part of its share away, or a group around it has.
    pub(super) fn gives(&self, leaf: u32) -> bool {
        let node = &self.nodes[leaf as usize];
        node.leaf_inuse < node.leaf_weight || self.path(leaf).any(|n| n.inuse < n.weight)
    }

    /// A group with those around it, but for the root.
    fn path(&self, group: u32) -> impl Iterator<Item = &Node> {
        let up = |at: &u32| Some(self.nodes[*at as usize].parent);
        std::iter::successors(Some(group), up).take_while(|at| *at != 0).map(|at| &self.nodes[at as usize])
    }

    /// A leaf takes back what it has given away.
    pub(super) fn take_back(&mut self, leaf: u32) {
        let full = self.nodes[leaf as usize].leaf_weight;
        self.use_leaf(leaf, full);
        let mut at = leaf;
        while at != 0 {
            let full = self.nodes[at as usize].weight;
            self.use_group(at, full);
            at = self.nodes[at as usize].parent;
        }
        self.changes += 1;
    }

    fn use_leaf(&mut self, leaf: u32, weight: u64) {
        let node = &mut self.nodes[leaf as usize];
        node.inuse_sum = node.inuse_sum - node.leaf_inuse + weight;
        node.leaf_inuse = weight;
    }

    fn use_group(&mut self, group: u32, weight: u64) {
        let node = &mut self.nodes[group as usize];
        let old = std::mem::replace(&mut node.inuse, weight);
        let parent = node.parent;
        let sum = &mut self.nodes[parent as usize].inuse_sum;
        *sum = *sum - old + weight;
    }

    /// Plans anew who gives: of the active leaves, those of which `keeps` returns a share keep that one,
    /// which is below their full share, and give the rest to the others. None gives if all would.
    pub(super) fn plan(&mut self, active: &[u32], keeps: impl Fn(u32, u64) -> Option<u64>) {
        let (mut takers, mut any) = (false, false);
        for &leaf in active {
            self.take_back(leaf);
            self.forget_plan(leaf);
        }
        for &leaf in active {
            match keeps(leaf, self.full_share(leaf)) {
                Some(keep) => {
                    self.give(leaf, keep.max(1));
                    any = true;
                }
                None => takers = true,
            }
        }
        if !takers || !any {
            return;
        }
        for &leaf in active {
            if let Some(keep) = keeps(leaf, self.full_share(leaf)) {
                self.lower(leaf, keep.max(1));
            }
        }
        self.changes += 1;
    }

    fn forget_plan(&mut self, leaf: u32) {
        let mut at = leaf;
        loop {
            let node = &mut self.nodes[at as usize];
            (node.given, node.kept) = (0, 0);
            if at == 0 {
                return;
            }
            at = node.parent;
        }
    }

    fn give(&mut self, leaf: u32, keep: u64) {
        let share = self.full_share(leaf);
        let mut at = leaf;
        loop {
            let node = &mut self.nodes[at as usize];
            node.given += share;
            node.kept += keep.min(share);
            if at == 0 {
                return;
            }
            at = node.parent;
        }
    }

    /// Sets the weights in use of a leaf that gives, and of the groups around it, by the formula above.
    fn lower(&mut self, leaf: u32, keep: u64) {
        let Node { given, kept, .. } = self.nodes[0];
        // 1 - D and 1 - T of the root. Rounding may have D at 1, or above.
        let (rest, room) = (u128::from(WHOLE.saturating_sub(given)), u128::from(WHOLE.saturating_sub(kept)));
        let node = self.nodes[leaf as usize];
        let own = self.product(leaf, None, |n| (n.weight, n.full_sum)).max(1);
        let weight = scaled(u128::from(keep) * rest, node.full_sum, room * u128::from(own));
        self.use_leaf(leaf, weight.clamp(1, node.leaf_weight));
        let mut at = leaf;
        while at != 0 {
            let node = self.nodes[at as usize];
            let share = self.product(at, None, |n| (n.weight, n.full_sum));
            let around = self.product(node.parent, None, |n| (n.weight, n.full_sum)).max(1);
            let others = u128::from(share.saturating_sub(node.given));
            let sum = u128::from(node.kept) * rest + room * others;
            let full_sum = self.nodes[node.parent as usize].full_sum;
            let weight = scaled(sum, full_sum, room * u128::from(around));
            self.use_group(at, weight.clamp(1, node.weight.max(weight)));
            at = node.parent;
        }
    }

    /// Whether a leaf is active.
    pub(super) fn is_active(&self, leaf: u32) -> bool {
        self.nodes[leaf as usize].is_leaf_active
    }

    pub(super) fn check(&self) {
        let mut sums = vec![(0, 0, 0); self.nodes.len()];
        for (at, node) in self.nodes.iter().enumerate() {
            let mut add = |to: usize, full, inuse| {
                let (actives, f, i) = &mut sums[to];
                (*actives, *f, *i) = (*actives + 1, *f + full, *i + inuse);
            };
            if node.is_leaf_active {
                add(at, node.leaf_weight, node.leaf_inuse);
            }
            if node.actives > 0 && at != 0 {
                add(node.parent as usize, node.weight, node.inuse);
            }
        }
        for (node, sum) in self.nodes.iter().zip(sums) {
            assert_eq!((node.actives, node.full_sum, node.inuse_sum), sum, "sums of weights");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The root, with groups in it and in each other: their parents, and their weights.
    fn tree(groups: &[(u32, u64)]) -> Tree {
        let mut tree = Tree::new(1 + groups.len() as u32);
        tree.nodes[0].leaf_weight = 100 * FINE;
        for (node, &(parent, weight)) in tree.nodes[1..].iter_mut().zip(groups) {
            *node = Node { parent, weight: weight * FINE, leaf_weight: 100 * FINE, ..Node::default() };
            (node.inuse, node.leaf_inuse) = (node.weight, node.leaf_weight);
        }
        tree
    }

    /// In thousandths, rounded.
    fn shares(tree: &mut Tree, leaves: &[u32]) -> Vec<u64> {
        leaves.iter().map(|&leaf| (tree.share(leaf) * 1000 + WHOLE / 2) / WHOLE).collect()
    }

    #[test]
    fn shares_are_those_of_active_groups() {
        let mut tree = tree(&[(0, 200), (0, 100), (2, 100), (2, 100)]);
        for leaf in [1, 3, 4] {
            tree.activate(leaf);
        }
        assert_eq!(shares(&mut tree, &[1, 3, 4]), [667, 167, 167]);
        tree.deactivate(1);
        assert_eq!(shares(&mut tree, &[3, 4]), [500, 500]);
        // Its own requests, beside those of its groups; and those of the root.
        tree.activate(2);
        tree.activate(0);
        assert_eq!(shares(&mut tree, &[0, 2, 3, 4]), [500, 167, 167, 167]);
        tree.check();
    }

    #[test]
    fn what_is_given_away_goes_to_all_others_by_their_shares() {
        // Weights on two levels: 1 and 2 in the root, 3 and 4 in 1, 5 and 6 in 2.
        let mut tree = tree(&[(0, 100), (0, 300), (1, 100), (1, 300), (2, 200), (2, 200)]);
        let active = [3, 4, 5, 6];
        for leaf in active {
            tree.activate(leaf);
        }
        // 62.5, 187.5, 375 and 375 thousandths. 4 keeps 40, and 6 keeps 10: 512.5 are given away, and the
        // others have 950 for 437.5.
        let keep = |leaf, _| match leaf {
            4 => Some(WHOLE * 40 / 1000),
            6 => Some(WHOLE * 10 / 1000),
            _ => None,
        };
        tree.plan(&active, keep);
        assert_eq!(shares(&mut tree, &active), [136, 40, 814, 10]);
        assert!(tree.gives(4) && tree.gives(6) && tree.gives(3), "3 is in a group that has become lighter");
        tree.check();
        tree.plan(&active, |_, _| None);
        assert_eq!(shares(&mut tree, &active), [63, 188, 375, 375]);
        // All would give: none does.
        tree.plan(&active, |_, _| Some(1));
        assert_eq!(shares(&mut tree, &active), [63, 188, 375, 375]);
    }

    #[test]
    fn who_takes_back_has_its_full_weight_at_once() {
        let mut tree = tree(&[(0, 200), (0, 100), (0, 100)]);
        for leaf in [1, 2, 3] {
            tree.activate(leaf);
        }
        tree.plan(&[1, 2, 3], |leaf, _| (leaf == 1).then_some(WHOLE / 10));
        assert_eq!(shares(&mut tree, &[1, 2, 3]), [100, 450, 450]);
        tree.take_back(1);
        assert_eq!(shares(&mut tree, &[1, 2, 3]), [500, 250, 250]);
        tree.check();
    }
}
