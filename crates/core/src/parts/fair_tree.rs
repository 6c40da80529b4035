//! Which group's tasks to serve next, and for what share: groups in groups with weights and classes, by
//! either of two engines.
//!
//! A *leaf* is what a group's own tasks want; it stands beside the groups in that group and competes with
//! them by the *leaf weight*, always as BE. Classes are strict among siblings.
//!
//! ```text
//!   activate ──► (waits) ──► select ──► served … ──► expire, or charge and deactivate
//!                   ▲  │ deactivate                     │
//!                   └──┴────────────────────────────────┘
//! ```
//!
//! | engine | which is next among siblings | how far off its share one can be, at each level |
//! |---|---|---|
//! | [`Engine::DiskTime`] | the least service for its weight: [`DiskTime`] | one turn of its own and one of each sibling |
//! | [`Engine::Wf2q`] | who finishes first among those whose turn has come: [`Hierarchy`] | about one turn |
//!
//! Both give the same shares in the long run. B-WF2Q+ mixes the turns of heavy and light groups more evenly.
//!
//! What is counted as service (time, sectors, requests) is the caller's business, and so are turns: how long,
//! and whether the disk is kept idle for a leaf that has nothing to do for a moment. Such a leaf is to stay
//! active.
//!
//= docs/reference/groups.md#2-entities-weights-and-classes to 4

use super::disk_time::DiskTime;
use super::hierarchy::Hierarchy;
use crate::choice;
use crate::table::Table;
use crate::units::{Class, GroupId, Id, Instant, Weight};

/// The class of a group's own tasks among the groups in it.
const LEAF_CLASS: Class = Class::BestEffort;
/// The most turns that service out of turn puts a leaf ahead of its share: a guarantee above the share must
/// not become an endless debt.
const AHEAD: u32 = 2;
/// B-WF2Q+ asks for the time only for the IDLE class's turns, which are off.
const NO_TIME: Instant = Instant::EPOCH;

choice! {
    /// The rule that chooses the next among siblings.
    pub enum Engine {
        /// The child that got least for its weight, as in CFS and CFQ. The IO controller's rule since V8.
        DiskTime = "cfs";
        /// B-WF2Q+, as in BFQ. The IO controller's rule up to V7.
        Wf2q = "wf2q";
    }
}

#[derive(Clone, Debug)]
enum Inner {
    DiskTime(DiskTime),
    Wf2q(Budgets),
}

/// B-WF2Q+ for leaves that are groups. A group without groups in it is its own leaf, among its siblings.
#[derive(Clone, Debug)]
struct Budgets {
    h: Hierarchy<GroupId>,
}

/// A group as users set it, and what is active in it.
#[derive(Clone, Copy, Debug)]
struct Node {
    parent: GroupId,
    class: Class,
    weight: u32,
    leaf_weight: u32,
    /// Its own tasks have work.
    is_active: bool,
    /// How many children have: groups, and its leaf.
    children: u32,
    /// How many groups are in it, active or not.
    groups: u32,
    /// Their weights by class.
    weights: [u64; 3],
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub(crate) struct FairTree {
    inner: Inner,
    nodes: Table<GroupId, Node>,
    active: u32,
    serving: Option<GroupId>,
    /// As last set or selected with.
    quantum: u32,
}

impl FairTree {
    /// Makes a tree for `groups` groups, the root included. All are children of the root, with weight and
    /// leaf weight 100 and class BE. Allocates.
    #[must_use]
    pub(crate) fn new(engine: Engine, groups: u32) -> Self {
        let groups = groups.max(1);
        let weight = Weight::DEFAULT.get();
        let node = Node {
            parent: GroupId::ROOT,
            class: Class::BestEffort,
            weight,
            leaf_weight: weight,
            is_active: false,
            children: 0,
            groups: 0,
            weights: [0; 3],
        };
        let inner = match engine {
            Engine::DiskTime => Inner::DiskTime(DiskTime::new(groups)),
            Engine::Wf2q => Inner::Wf2q(Budgets::new(groups)),
        };
        let mut nodes = Table::new(groups as usize, node);
        nodes[GroupId::ROOT].groups = groups - 1;
        Self { inner, nodes, active: 0, serving: None, quantum: 1 }
    }

    /// Sets the service that leaves may be given in one turn, until [`FairTree::select`] gets another. Call
    /// it before the first leaf is activated: B-WF2Q+ needs it then.
    pub(crate) fn set_quantum(&mut self, quantum: u32) {
        self.quantum = quantum.max(1);
    }

    /// Puts a group into another one, while nothing in it is active.
    ///
    /// # Panics
    /// If something is active in it, or it is the root, or it would be inside itself.
    pub(crate) fn set_parent(&mut self, group: GroupId, parent: GroupId) {
        let old = core::mem::replace(&mut self.nodes[group].parent, parent);
        self.nodes[old].groups -= 1;
        self.nodes[parent].groups += 1;
        match &mut self.inner {
            Inner::DiskTime(d) => d.set_parent(group, parent),
            Inner::Wf2q(w) => {
                w.set_parent(group, parent);
                for moved in [group, old, parent] {
                    w.settle(moved, &self.nodes[moved], self.quantum);
                }
            }
        }
    }

    /// Gives a group and its leaf other weights (1 to 10000) and the group another class, at once, whether
    /// active or not. Of the root only the leaf weight counts.
    pub(crate) fn set_shares(&mut self, group: GroupId, weight: u32, leaf_weight: u32, class: Class) {
        let (weight, leaf_weight) = (weight.max(1), leaf_weight.max(1));
        let old = self.nodes[group];
        if old.is_active {
            let sum = &mut self.nodes[group].weights[LEAF_CLASS as usize];
            *sum = *sum - u64::from(old.leaf_weight) + u64::from(leaf_weight);
        }
        if old.children > 0 && group != GroupId::ROOT {
            let sums = &mut self.nodes[old.parent].weights;
            sums[old.class as usize] -= u64::from(old.weight);
            sums[class as usize] += u64::from(weight);
        }
        let node = &mut self.nodes[group];
        (node.weight, node.leaf_weight, node.class) = (weight, leaf_weight, class);
        match &mut self.inner {
            Inner::DiskTime(d) => {
                d.set_group(group, weight, class);
                d.set_leaf(group, leaf_weight, LEAF_CLASS);
            }
            Inner::Wf2q(w) => w.set_shares(group, &self.nodes[group]),
        }
    }

    /// The group's own tasks have work. Nothing happens if they had.
    pub(crate) fn activate(&mut self, now: Instant, leaf: GroupId) {
        if self.nodes[leaf].is_active {
            return;
        }
        self.active += 1;
        self.nodes[leaf].is_active = true;
        let (mut group, mut class, mut weight) = (leaf, LEAF_CLASS, self.nodes[leaf].leaf_weight);
        loop {
            let node = &mut self.nodes[group];
            node.weights[class as usize] += u64::from(weight);
            node.children += 1;
            if node.children > 1 || group == GroupId::ROOT {
                break;
            }
            (group, class, weight) = (node.parent, node.class, node.weight);
        }
        match &mut self.inner {
            Inner::DiskTime(d) => d.activate(now, leaf),
            Inner::Wf2q(w) => w.activate(now, leaf, self.quantum),
        }
    }

    /// The group's own tasks have no work, and are not waited for; they may be the ones in service, and are
    /// to be [charged](FairTree::charge) first. Nothing happens if they were not active.
    ///
    /// Returns how many groups have nothing active left in them and so lost their place among their siblings:
    /// this one, its parent and so on upwards.
    pub(crate) fn deactivate(&mut self, now: Instant, leaf: GroupId) -> u32 {
        if !self.nodes[leaf].is_active {
            return 0;
        }
        let was_serving = self.serving == Some(leaf);
        if was_serving {
            self.serving = None;
        }
        match &mut self.inner {
            Inner::DiskTime(d) => d.deactivate(now, leaf),
            Inner::Wf2q(w) => w.deactivate(now, leaf),
        }
        self.active -= 1;
        self.nodes[leaf].is_active = false;
        let (mut group, mut class, mut weight) = (leaf, LEAF_CLASS, self.nodes[leaf].leaf_weight);
        let mut left = 0;
        loop {
            let node = &mut self.nodes[group];
            node.weights[class as usize] -= u64::from(weight);
            // A group competes with its siblings only while something in it is active, so the last one takes
            // the group out, and so on up.
            node.children -= 1;
            if node.children > 0 || group == GroupId::ROOT {
                return left;
            }
            left += 1;
            (group, class, weight) = (node.parent, node.class, node.weight);
        }
    }

    /// Chooses the leaf to serve, `None` when none is active. It is in service until it expires or is
    /// deactivated. `quantum`: what it may be given in this turn.
    ///
    /// # Panics
    /// If a leaf is in service already.
    pub(crate) fn select(&mut self, now: Instant, quantum: u32) -> Option<GroupId> {
        assert!(self.serving.is_none(), "two leaves in service");
        self.set_quantum(quantum);
        self.serving = match &mut self.inner {
            Inner::DiskTime(d) => d.select(),
            Inner::Wf2q(w) => w.select(now),
        };
        self.serving
    }

    /// The leaf in service leaves service and stays active; it was given `used` since it was selected, on top
    /// of what it was [charged](FairTree::charge) already.
    ///
    /// # Panics
    /// If it is not in service.
    pub(crate) fn expire(&mut self, now: Instant, leaf: GroupId, used: u32) {
        assert!(self.serving.take() == Some(leaf), "{leaf:?} is not in service");
        match &mut self.inner {
            Inner::DiskTime(d) => d.spend(leaf, used),
            Inner::Wf2q(w) => w.expire(now, leaf, used, self.quantum),
        }
    }

    /// A leaf was given `used`. If it is not in service, it was out of its turn; it may be inactive then.
    pub(crate) fn charge(&mut self, leaf: GroupId, used: u32) {
        let at_most = self.quantum.saturating_mul(AHEAD);
        match &mut self.inner {
            Inner::DiskTime(d) if self.serving == Some(leaf) => d.spend(leaf, used),
            Inner::DiskTime(d) => d.charge(leaf, used, at_most),
            Inner::Wf2q(w) => w.charge(leaf, used, at_most),
        }
    }

    /// Whether `a` has precedence over `b` by class: of the two siblings that hold them.
    #[must_use]
    pub(crate) fn outranks(&self, a: GroupId, b: GroupId) -> bool {
        let depth = |leaf| core::iter::successors(Some(leaf), |&g| self.parent(g)).count();
        let (mut depth_a, mut depth_b) = (depth(a), depth(b));
        let ((mut a, mut class_a), (mut b, mut class_b)) = ((a, LEAF_CLASS), (b, LEAF_CLASS));
        while a != b {
            let (above_a, above_b) = (depth_a >= depth_b, depth_b >= depth_a);
            if above_a {
                (a, class_a, depth_a) = (self.nodes[a].parent, self.nodes[a].class, depth_a - 1);
            }
            if above_b {
                (b, class_b, depth_b) = (self.nodes[b].parent, self.nodes[b].class, depth_b - 1);
            }
        }
        class_a < class_b
    }

    /// The group's group; `None` for the root.
    #[must_use]
    pub(crate) fn parent(&self, group: GroupId) -> Option<GroupId> {
        (group != GroupId::ROOT).then(|| self.nodes[group].parent)
    }

    /// Whether `inner` is `outer`, or somewhere inside it.
    #[must_use]
    pub(crate) fn is_inside(&self, inner: GroupId, outer: GroupId) -> bool {
        core::iter::successors(Some(inner), |&g| self.parent(g)).any(|g| g == outer)
    }

    /// Whether the group's own tasks have work.
    #[inline]
    #[must_use]
    pub(crate) fn is_active(&self, leaf: GroupId) -> bool {
        self.nodes[leaf].is_active
    }

    /// How many leaves are active.
    #[inline]
    #[must_use]
    pub(crate) const fn active(&self) -> u32 {
        self.active
    }

    /// A leaf's present share among those of its class that are active, as numerator and denominator; if it
    /// is not active, as if it came now. Tiny shares are rounded up.
    #[cfg(test)]
    pub(crate) fn share(&self, leaf: GroupId) -> (u64, u64) {
        let mut node = &self.nodes[leaf];
        let (mut class, mut weight, mut counts) = (LEAF_CLASS, u64::from(node.leaf_weight), node.is_active);
        let (mut part, mut whole) = (1, 1);
        let mut group = leaf;
        loop {
            let sum = node.weights[class as usize] + if counts { 0 } else { weight };
            (part, whole) = (part * weight, whole * sum);
            // Both factors are less than 2^32 at the next level, too.
            let excess = 32_u32.saturating_sub(u64::leading_zeros(whole));
            (part, whole) = ((part >> excess).max(1), whole >> excess);
            if group == GroupId::ROOT {
                return (part, whole);
            }
            (class, weight, counts) = (node.class, u64::from(node.weight), node.children > 0);
            group = node.parent;
            node = &self.nodes[group];
        }
    }

    /// Walks everything and panics if something is wrong. O(groups^2): for tests.
    pub(crate) fn check(&self) {
        for (g, node) in self.nodes.iter() {
            let mut weights = [0; 3];
            let mut children = u32::from(node.is_active);
            weights[LEAF_CLASS as usize] += u64::from(node.leaf_weight) * u64::from(node.is_active);
            for (_, child) in
                self.nodes.iter().filter(|(c, n)| c.index() > 0 && n.parent == g && n.children > 0)
            {
                children += 1;
                weights[child.class as usize] += u64::from(child.weight);
            }
            assert_eq!((node.children, node.weights), (children, weights), "active children of {g:?}");
            let is_active = match &self.inner {
                Inner::DiskTime(d) => d.is_active(g),
                Inner::Wf2q(w) => w.is_active(g),
            };
            assert_eq!(is_active, node.is_active, "{g:?}");
        }
        assert_eq!(self.nodes.iter().filter(|(_, n)| n.is_active).count(), self.active as usize);
        assert!(self.serving.is_none_or(|leaf| self.is_active(leaf)), "in service, but not active");
        match &self.inner {
            Inner::DiskTime(d) => d.check(),
            Inner::Wf2q(w) => {
                w.h.check();
                for (g, node) in self.nodes.iter() {
                    let stand = (w.h.group(g), w.h.class(g), w.h.weight(g));
                    assert_eq!(stand, node.stand(g), "the leaf of {g:?} competes elsewhere");
                }
            }
        }
    }
}

impl Node {
    /// The group, class and weight by which its own tasks compete.
    fn stand(&self, group: GroupId) -> (GroupId, Class, u32) {
        if self.groups > 0 || group == GroupId::ROOT {
            (group, LEAF_CLASS, self.leaf_weight)
        } else {
            (self.parent, self.class, self.weight)
        }
    }
}

impl Budgets {
    fn new(groups: u32) -> Self {
        let mut h = Hierarchy::new(groups as usize, groups);
        h.set_idle_turns(false);
        for g in (0..groups).map(GroupId) {
            h.place(g, GroupId::ROOT, LEAF_CLASS, Weight::DEFAULT.get());
        }
        Self { h }
    }

    fn set_parent(&mut self, group: GroupId, parent: GroupId) {
        self.h.detach_group(group);
        self.h.set_parent(group, parent);
    }

    /// Puts a group's leaf where it belongs now. If it is in service, it continues as if out of its turn.
    fn settle(&mut self, leaf: GroupId, node: &Node, quantum: u32) {
        let (group, class, weight) = node.stand(leaf);
        if self.h.group(leaf) == group {
            return;
        }
        self.deactivate(NO_TIME, leaf);
        self.h.detach(leaf);
        self.h.detach_group(leaf);
        self.h.place(leaf, group, class, weight);
        if node.is_active {
            self.activate(NO_TIME, leaf, quantum);
        }
    }

    fn set_shares(&mut self, group: GroupId, node: &Node) {
        if group != GroupId::ROOT {
            self.h.reweigh_group(NO_TIME, group, node.class, node.weight);
        }
        let (_, class, weight) = node.stand(group);
        self.h.reweigh(NO_TIME, group, class, weight);
    }

    fn activate(&mut self, now: Instant, leaf: GroupId, quantum: u32) {
        self.h.set_budget(leaf, quantum);
        self.h.activate(now, leaf, false);
    }

    fn deactivate(&mut self, now: Instant, leaf: GroupId) {
        let was_serving = self.h.in_service() == Some(leaf);
        self.h.deactivate(now, leaf, true, was_serving);
        if was_serving {
            self.h.reset_service();
        }
        self.h.set_service(leaf, 0);
    }

    #[inline(never)]
    fn select(&mut self, now: Instant) -> Option<GroupId> {
        self.h.select(now)
    }

    fn expire(&mut self, now: Instant, leaf: GroupId, used: u32, quantum: u32) {
        if self.h.in_service() != Some(leaf) {
            // It was settled elsewhere during its turn.
            return self.charge(leaf, used, u32::MAX);
        }
        self.h.served(leaf, used);
        self.h.set_budget(leaf, quantum);
        self.h.expire_requeue(now, leaf);
        self.h.reset_service();
        self.h.set_service(leaf, 0);
    }

    fn charge(&mut self, leaf: GroupId, used: u32, at_most: u32) {
        if self.h.in_service() == Some(leaf) {
            self.h.served(leaf, used);
        } else {
            self.h.charge(NO_TIME, leaf, used, at_most);
        }
    }

    fn is_active(&self, leaf: GroupId) -> bool {
        self.h.is_active(leaf) || self.h.in_service() == Some(leaf)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec;
    use std::vec::Vec;

    const NOW: Instant = Instant::EPOCH;
    const BE: Class = Class::BestEffort;
    const ENGINES: [Engine; 2] = [Engine::DiskTime, Engine::Wf2q];

    const fn group(n: u32) -> GroupId {
        GroupId(n)
    }

    /// Below the root, groups of these weights, all with work from the start.
    fn flat(engine: Engine, weights: &[u32]) -> FairTree {
        let mut tree = FairTree::new(engine, 1 + u32::try_from(weights.len()).unwrap());
        for (i, &weight) in (1..).zip(weights) {
            tree.set_shares(group(i), weight, 100, BE);
            tree.activate(NOW, group(i));
        }
        tree.check();
        tree
    }

    /// The leaves that have the next turns, 100 each.
    fn turns(tree: &mut FairTree, count: usize) -> Vec<u32> {
        let mut turns = vec![];
        for _ in 0..count {
            let leaf = tree.select(NOW, 100).expect("a leaf waits");
            tree.expire(NOW, leaf, 100);
            turns.push(leaf.0);
        }
        tree.check();
        turns
    }

    //= docs/reference/groups.md#12-test-vectors vector 1 type=test
    #[test]
    fn twice_the_weight_has_two_turns_of_three() {
        let mut tree = flat(Engine::DiskTime, &[1000, 500]);
        let order = turns(&mut tree, 18);
        assert_eq!(order[..6], [1, 2, 1, 2, 1, 1]);
        assert_eq!(order.iter().filter(|&&g| g == 1).count(), 12);
        for nine in order.windows(9) {
            assert!((5..=7).contains(&nine.iter().filter(|&&g| g == 1).count()), "{order:?}");
        }
    }

    //= docs/reference/groups.md#12-test-vectors vector 8 type=test
    #[test]
    fn groups_in_groups() {
        for engine in ENGINES {
            let mut tree = FairTree::new(engine, 5);
            tree.set_parent(group(3), group(1));
            tree.set_parent(group(4), group(1));
            for leaf in [3, 4, 2] {
                tree.activate(NOW, group(leaf));
            }
            let count = |turns: Vec<u32>| [2, 3, 4].map(|g| turns.iter().filter(|&&t| t == g).count());
            assert_eq!(count(turns(&mut tree, 400)), [200, 100, 100], "{engine:?}");
            assert_eq!(tree.deactivate(NOW, group(4)), 1);
            assert_eq!(count(turns(&mut tree, 400)), [200, 200, 0], "{engine:?}");
            assert_eq!(tree.deactivate(NOW, group(3)), 2, "its parent too has lost its place");
        }
    }

    //= docs/reference/groups.md#12-test-vectors vector 2 type=test
    #[test]
    fn who_is_outranked_waits_and_pays_nothing() {
        for engine in ENGINES {
            let mut tree = flat(engine, &[100, 100, 100]);
            tree.set_shares(group(1), 1, 100, Class::RealTime);
            tree.set_shares(group(3), 10_000, 100, Class::Idle);
            assert!(tree.outranks(group(1), group(2)) && tree.outranks(group(2), group(3)));
            assert_eq!(turns(&mut tree, 10), [1; 10], "{engine:?}");
            tree.deactivate(NOW, group(1));
            let later = NOW + crate::units::Duration::from_secs(3600);
            for _ in 0..10 {
                let leaf = tree.select(later, 100).expect("two wait");
                assert_eq!(leaf, group(2), "{engine:?}: an hour without a turn of the IDLE class");
                tree.expire(later, leaf, 100);
            }
            tree.deactivate(NOW, group(2));
            assert_eq!(turns(&mut tree, 3), [3; 3]);
            // As level as they were before.
            tree.set_shares(group(3), 100, 100, BE);
            tree.activate(NOW, group(2));
            let order = turns(&mut tree, 6);
            assert_eq!(order.iter().filter(|&&g| g == 2).count(), 3, "{engine:?}: {order:?}");
        }
    }

    /// Jobs of 22500 ms each, by turns of 100 ms: when each is done.
    fn finishes(engine: Engine, weights: &[u32]) -> Vec<u32> {
        let mut tree = flat(engine, weights);
        let mut left = vec![22_500; weights.len()];
        let (mut time, mut done) = (0, vec![0; weights.len()]);
        while let Some(leaf) = tree.select(NOW, 100) {
            let i = leaf.index() - 1;
            time += 100;
            left[i] -= 100;
            if left[i] > 0 {
                tree.expire(NOW, leaf, 100);
            } else {
                done[i] = time;
                tree.charge(leaf, 100);
                assert_eq!(tree.deactivate(NOW, leaf), 1);
            }
        }
        done
    }

    //= docs/reference/groups.md#12-test-vectors vector 4 type=test
    #[test]
    fn jobs_are_done_when_processor_sharing_has_them_done() {
        let cases: [(&[u32], &[u32]); 4] = [
            (&[1000, 500], &[33_750, 45_000]),
            (&[1000, 250], &[28_125, 45_000]),
            (&[1000, 1000], &[45_000, 45_000]),
            (&[300, 200, 100], &[45_000, 56_250, 67_500]),
        ];
        for (engine, (weights, ideal)) in ENGINES.into_iter().flat_map(|e| cases.map(|c| (e, c))) {
            for (done, &ideal) in finishes(engine, weights).into_iter().zip(ideal) {
                assert!(done.abs_diff(ideal) <= 200, "{engine:?}, {weights:?}: {done} for {ideal}");
            }
        }
    }

    #[test]
    fn equal_weights_take_turns() {
        for engine in ENGINES {
            let mut tree = flat(engine, &[100; 7]);
            let order = turns(&mut tree, 70);
            for seven in order.chunks(7) {
                assert_eq!(seven, [1, 2, 3, 4, 5, 6, 7], "{engine:?}");
            }
        }
    }

    /// A weight of 1 has just been served, and waits for 9999 turns of another of 10000.
    #[test]
    fn a_new_weight_holds_at_once() {
        for engine in ENGINES {
            let mut tree = flat(engine, &[1, 10_000]);
            while turns(&mut tree, 1) != [1] {}
            assert_eq!(turns(&mut tree, 50), [2; 50], "{engine:?}");
            tree.set_shares(group(1), 10_000, 100, BE);
            let order = turns(&mut tree, 10);
            assert!(order.iter().filter(|&&g| g == 1).count() >= 4, "{engine:?}: {order:?}");
            tree.set_shares(group(1), 1, 100, BE);
            let order = turns(&mut tree, 100);
            assert!(order.iter().filter(|&&g| g == 1).count() <= 2, "{engine:?}: {order:?}");
        }
    }

    #[test]
    fn new_groups_in_a_group_with_work() {
        for engine in ENGINES {
            let mut tree = flat(engine, &[100, 100, 100]);
            tree.deactivate(NOW, group(3));
            assert_eq!(tree.select(NOW, 100), Some(group(1)));
            // It is in service while it gets a group, and while that has work.
            tree.set_parent(group(3), group(1));
            tree.check();
            tree.activate(NOW, group(3));
            tree.expire(NOW, group(1), 100);
            let count = |turns: Vec<u32>| [1, 2, 3].map(|g| turns.iter().filter(|&&t| t == g).count());
            let [one, two, three] = count(turns(&mut tree, 40));
            assert!((9..=11).contains(&one) && (9..=11).contains(&three), "{engine:?}: {one} {two} {three}");
            assert_eq!(tree.deactivate(NOW, group(3)), 1);
            tree.set_parent(group(3), GroupId::ROOT);
            let [one, two, _] = count(turns(&mut tree, 40));
            assert!(one.abs_diff(two) <= 2, "{engine:?}: {one} {two}");
            assert_eq!(tree.deactivate(NOW, group(1)), 1);
            assert_eq!(tree.deactivate(NOW, group(1)), 0, "it was not active");
        }
    }

    #[test]
    fn shares_are_products() {
        let mut tree = FairTree::new(Engine::DiskTime, 4);
        tree.set_parent(group(3), group(1));
        tree.set_shares(group(1), 300, 50, BE);
        tree.set_shares(group(3), 150, 100, BE);
        for leaf in [1, 2, 3] {
            tree.activate(NOW, group(leaf));
        }
        let is = |tree: &FairTree, leaf: u32, part: u64, whole: u64| {
            let (n, d) = tree.share(group(leaf));
            assert_eq!(n * whole, d * part, "{leaf} has {n} of {d}, not {part} of {whole}");
        };
        is(&tree, 1, 300 * 50, 400 * 200);
        is(&tree, 2, 100, 400);
        is(&tree, 3, 300 * 150, 400 * 200);
        is(&tree, 0, 100, 500); // As if it came now.
        tree.deactivate(NOW, group(2));
        tree.deactivate(NOW, group(3));
        is(&tree, 1, 1, 1);
        assert_eq!((tree.active(), tree.is_active(group(1)), tree.is_active(group(2))), (1, true, false));
    }
}
