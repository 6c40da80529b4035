//! B-WF2Q+: which entity to serve next, by weight, among those whose turn has come.
//!
//! A [`ServiceTree`] shares one resource between entities by weight. Service is counted in sectors; dividing
//! it by a weight gives *virtual time*, in units of 2^-22 sectors per unit of weight. The tree's own virtual
//! time `V` advances by what is served, divided by the weight `W` of all its entities: it says how far
//! everyone would be if the resource were a fluid. An entity has a start `S` and a finish `F`: between them
//! lies the budget it asks for, divided by its weight. It is *eligible* when `S <= V`, for then the fluid has
//! begun to serve it; the one to serve next is the eligible one with the least `F`. Without eligibility, WFQ,
//! a heavy entity could be ahead of its share by many budgets; here by one.
//!
//! Three entities with weights 10, 20 and 40 and budgets of 64, 64 and 128 sectors, all starting at 0:
//!
//! ```text
//!                S    F (in millions)     V = 0: all are eligible; b and c finish first, b came first: serve b.
//!   a    10      0   26.8                 Then b is filed anew at 13.4..26.8, and V = 64 * 2^22 / 70 = 3.8:
//!   b    20      0   13.4                 b is not eligible; serve c.
//!   c    40      0   13.4
//! ```
//!
//! The *active* tree holds those that wait for service, by `F`; equal ones keep their order of insertion.
//! Each node also knows the least `S` below it, so that the search leaves out what is not eligible. The tree
//! is a treap: ordered as a search tree by `F` and as a heap by a rank drawn once for each node; inserting
//! and removing turn fewer than two nodes in the mean, and the depth is logarithmic in the mean. The *idle*
//! tree holds entities that have nothing to do but were served ahead of their share (`F > V`); they count in
//! `W` until `V` gets there, and one that comes back before that resumes at its old `F`. All trees share the
//! nodes of one [`Wf2q`], for an entity is in at most one.
//!
//! Virtual times wrap around and are compared by signed difference. `V` never decreases.
//!
//! It does not know what an entity is, nor its budget, nor classes and parents: see
//! [`hierarchy`](super::hierarchy).
//!
//= paper: J. Bennett, H. Zhang 1997, "Hierarchical packet fair queueing algorithms" (WF2Q+)
//= paper: I. Stoica, H. Abdel-Wahab 1995, "Earliest eligible virtual deadline first" (the augmented tree)
//= paper: F. Checconi, P. Valente 2010, "High throughput disk scheduling with fair bandwidth distribution" (B-WF2Q+)
//= paper: R. Seidel, C. Aragon 1996, "Randomized search trees"

use super::red_black::RedBlack;
use crate::table::{NIL, Place, Table};
use crate::units::Id;
use core::marker::PhantomData;

/// How many binary places of a virtual time are fraction.
//= linux-6.12 block/bfq-wf2q.c WFQ_SERVICE_SHIFT, docs/reference/bfq.md#12-timestamps-and-virtual-time
const SHIFT: u32 = 22;

/// The virtual time that serving `sectors` to `weight` takes, rounded down.
///
/// # Panics
/// If `weight` is 0.
#[inline]
#[must_use]
pub(crate) const fn vt(sectors: u32, weight: u64) -> u64 {
    ((sectors as u64) << SHIFT) / weight
}

/// The most sectors that a weight can be served in a virtual time.
#[inline]
#[must_use]
pub(crate) fn sectors(vtime: u64, weight: u64) -> u32 {
    u32::try_from((u128::from(vtime) * u128::from(weight)) >> SHIFT).unwrap_or(u32::MAX)
}

/// Whether virtual time `a` is later than `b`. They are less than 2^63 apart.
#[inline]
#[must_use]
pub(crate) const fn later(a: u64, b: u64) -> bool {
    a.wrapping_sub(b).cast_signed() > 0
}

/// The later of two virtual times.
#[inline]
const fn latest(a: u64, b: u64) -> u64 {
    if later(a, b) { a } else { b }
}

/// Where an entity stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Standing {
    /// It has nothing to do, and its last service is behind `V`. It does not count in `W`.
    Detached,
    /// In no tree, but counted in `W`: being served, or between two trees.
    Held,
    /// On the active tree.
    Active,
    /// On the idle tree.
    Idle,
}

/// Towards smaller finish times or larger ones: the index of an array of two.
const LEFT: usize = 0;
const RIGHT: usize = 1;

#[derive(Clone, Copy, Debug)]
struct Node {
    start: u64,
    finish: u64,
    /// The least start in this subtree.
    min_start: u64,
    child: [u32; 2],
    parent: u32,
    /// Above those of the children.
    rank: u32,
    weight: u32,
    standing: Standing,
}

/// The entities of any number of [`ServiceTree`]s.
#[derive(Clone, Debug)]
pub(crate) struct Wf2q<E> {
    nodes: Table<Place, Node>,
    kernel_forget: bool,
    /// The active trees once more, in the kernel's shape.
    kernel_shape: Option<RedBlack>,
    id: PhantomData<E>,
}

/// One resource, shared by weight. Its nodes are in a [`Wf2q`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServiceTree {
    active: u32,
    /// The root of the active tree in the kernel's shape, if that is kept.
    kernel_active: u32,
    idle: u32,
    /// The ends of the idle tree.
    idle_first: u32,
    idle_last: u32,
    vtime: u64,
    weight: u64,
}

impl ServiceTree {
    /// An empty tree at a virtual time.
    #[must_use]
    pub(crate) const fn new(vtime: u64) -> Self {
        Self { active: NIL, kernel_active: NIL, idle: NIL, idle_first: NIL, idle_last: NIL, vtime, weight: 0 }
    }

    /// `V`.
    #[inline]
    #[must_use]
    pub(crate) const fn vtime(&self) -> u64 {
        self.vtime
    }

    /// Sets `V`: for comparisons only.
    pub(super) const fn adopt_vtime(&mut self, vtime: u64) {
        self.vtime = vtime;
    }

    /// `W`: the weight of all entities that are not detached.
    #[inline]
    #[must_use]
    pub(crate) const fn weight(&self) -> u64 {
        self.weight
    }

    /// Whether an entity waits for service.
    #[inline]
    #[must_use]
    pub(crate) const fn has_active(&self) -> bool {
        self.active != NIL
    }
}

impl<E: Id> Wf2q<E> {
    /// Room for the entities `0..len`, all detached, with weight 1 and all times at `origin`. Allocates.
    #[must_use]
    pub(crate) fn new(len: usize, origin: u64) -> Self {
        let node = Node {
            start: origin,
            finish: origin,
            min_start: origin,
            child: [NIL; 2],
            parent: NIL,
            rank: 0,
            weight: 1,
            standing: Standing::Detached,
        };
        let mut nodes = Table::<Place, _>::new(len, node);
        for (place, node) in nodes.iter_mut() {
            node.rank = scatter(place.0);
        }
        Self { nodes, kernel_forget: false, kernel_shape: None, id: PhantomData }
    }

    /// Forgets as the kernel does, for comparisons: at most one idle entity at a time, and when no entity is
    /// active and all idle ones are done, `V` *is set back* to the last one's finish. Default off.
    pub(crate) const fn set_kernel_forget(&mut self, on: bool) {
        self.kernel_forget = on;
    }

    /// Searches as the kernel does, for comparisons: on a tree of its shape, and stopping too early; see
    /// `docs/deviations.md`. Only while no entity is active. Allocates. Default off.
    pub(crate) fn set_kernel_search(&mut self, on: bool) {
        self.kernel_shape = on.then(|| RedBlack::new(self.nodes.len()));
    }

    /// Where an entity stands.
    #[inline]
    #[must_use]
    pub(crate) fn standing(&self, e: E) -> Standing {
        self.nodes[Place::of(e)].standing
    }

    /// `S` and `F`.
    #[inline]
    #[must_use]
    pub(crate) fn times(&self, e: E) -> (u64, u64) {
        let node = &self.nodes[Place::of(e)];
        (node.start, node.finish)
    }

    /// Its weight.
    #[inline]
    #[must_use]
    pub(crate) fn weight(&self, e: E) -> u32 {
        self.nodes[Place::of(e)].weight
    }

    /// Gives an entity that is in no tree new times.
    ///
    /// # Panics
    /// If it is in a tree.
    #[inline]
    pub(crate) fn set_times(&mut self, e: E, start: u64, finish: u64) {
        let node = &mut self.nodes[Place::of(e)];
        assert!(matches!(node.standing, Standing::Detached | Standing::Held), "times of one in a tree");
        node.start = start;
        node.finish = finish;
    }

    /// Gives an entity another weight, at once and without new times. If it is not detached, it belongs to
    /// `tree`.
    ///
    /// # Panics
    /// If `weight` is 0.
    pub(crate) fn set_weight(&mut self, tree: &mut ServiceTree, e: E, weight: u32) {
        assert!(weight > 0, "a weight of 0");
        let node = &mut self.nodes[Place::of(e)];
        let old = core::mem::replace(&mut node.weight, weight);
        if node.standing != Standing::Detached {
            tree.weight = tree.weight - u64::from(old) + u64::from(weight);
        }
    }

    /// Counts a detached entity in `W`. It is held then.
    ///
    /// # Panics
    /// If it is not detached.
    #[inline]
    pub(crate) fn attach(&mut self, tree: &mut ServiceTree, e: E) {
        let node = &mut self.nodes[Place::of(e)];
        assert!(node.standing == Standing::Detached, "already attached");
        node.standing = Standing::Held;
        tree.weight += u64::from(node.weight);
    }

    /// Counts a held entity in `W` no longer.
    ///
    /// # Panics
    /// If it is not held.
    #[inline]
    pub(crate) fn detach(&mut self, tree: &mut ServiceTree, e: E) {
        let node = &mut self.nodes[Place::of(e)];
        assert!(node.standing == Standing::Held, "detached from a tree, or twice");
        node.standing = Standing::Detached;
        tree.weight -= u64::from(node.weight);
    }

    /// Puts a held entity on the active tree, behind those with an equal finish.
    ///
    /// # Panics
    /// If it is not held.
    #[inline]
    pub(crate) fn activate(&mut self, tree: &mut ServiceTree, e: E) {
        self.link(&mut tree.active, Place::of(e).0, Standing::Active);
        if let Some(shape) = &mut self.kernel_shape {
            let (nodes, n) = (&self.nodes, Place::of(e).0);
            let finish = nodes[Place(n)].finish;
            shape.insert(&mut tree.kernel_active, n, |at| later(nodes[Place(at)].finish, finish));
        }
    }

    /// Puts a held entity on the idle tree.
    ///
    /// # Panics
    /// If it is not held.
    pub(crate) fn retire(&mut self, tree: &mut ServiceTree, e: E) {
        let n = Place::of(e).0;
        self.link(&mut tree.idle, n, Standing::Idle);
        let finish = self.at(n).finish;
        if self.nodes.get(Place(tree.idle_first)).is_none_or(|first| later(first.finish, finish)) {
            tree.idle_first = n;
        }
        if self.nodes.get(Place(tree.idle_last)).is_none_or(|last| !later(last.finish, finish)) {
            tree.idle_last = n;
        }
    }

    /// Takes an entity off the tree that it is on, if it is on one. It is held then.
    #[inline]
    pub(crate) fn hold(&mut self, tree: &mut ServiceTree, e: E) {
        let n = Place::of(e).0;
        match self.at(n).standing {
            Standing::Active => {
                self.unlink(&mut tree.active, n);
                if let Some(shape) = &mut self.kernel_shape {
                    shape.remove(&mut tree.kernel_active, n);
                }
            }
            Standing::Idle => self.hold_idle(tree, n),
            Standing::Held | Standing::Detached => {}
        }
    }

    fn hold_idle(&mut self, tree: &mut ServiceTree, n: u32) {
        if tree.idle_first == n {
            tree.idle_first = self.neighbour(n, RIGHT);
        }
        if tree.idle_last == n {
            tree.idle_last = self.neighbour(n, LEFT);
        }
        self.unlink(&mut tree.idle, n);
    }

    /// Moves `V` on by service of `sectors`. Does nothing to a tree without entities.
    #[inline]
    pub(crate) fn serve(&mut self, tree: &mut ServiceTree, sectors: u32) {
        if tree.weight > 0 {
            tree.vtime = tree.vtime.wrapping_add(vt(sectors, tree.weight));
            self.forget(tree);
        }
    }

    /// Moves `V` on to where at least one active entity is eligible, if none is.
    #[inline]
    pub(crate) fn jump(&mut self, tree: &mut ServiceTree) {
        let before = tree.vtime;
        if let Some(root) = self.nodes.get(Place(tree.active)) {
            tree.vtime = latest(tree.vtime, root.min_start);
        }
        // Where virtual time stays, the kernel does not look; we have forgotten all that there was to forget.
        if tree.vtime != before {
            self.forget(tree);
        }
    }

    /// Detaches the idle entities that `V` has reached.
    #[inline]
    fn forget(&mut self, tree: &mut ServiceTree) {
        if tree.idle_first != NIL {
            self.forget_some(tree);
        }
    }

    fn forget_some(&mut self, tree: &mut ServiceTree) {
        if self.kernel_forget && !tree.has_active() && !later(self.at(tree.idle_last).finish, tree.vtime) {
            tree.vtime = self.at(tree.idle_last).finish;
        }
        while let Some(first) = Place(tree.idle_first).id::<E>() {
            if later(self.times(first).1, tree.vtime) {
                break;
            }
            self.hold(tree, first);
            self.detach(tree, first);
            if self.kernel_forget {
                break;
            }
        }
    }

    /// The active entity to serve next: least finish among the eligible. When none is eligible, those with
    /// the least start count as such. `None` when no entity is active.
    #[inline]
    #[must_use]
    pub(crate) fn next(&self, tree: &ServiceTree) -> Option<E> {
        let mut node = self.nodes.get(Place(tree.active))?;
        let vtime = latest(tree.vtime, node.min_start);
        if let Some(shape) = &self.kernel_shape {
            return self.kernel_next(shape, tree.kernel_active, vtime);
        }
        //= deviates wf2q-search
        // There is an eligible one at `at` or below. Entities on its left are before it and before all on the
        // right.
        let mut at = tree.active;
        loop {
            let [left, right] = node.child;
            at = match self.nodes.get(Place(left)) {
                Some(below) if !later(below.min_start, vtime) => left,
                _ if !later(node.start, vtime) => return Place(at).id(),
                _ => right,
            };
            node = self.at(at);
        }
    }

    /// As the kernel searches: to the left where an entity is eligible; but once one was seen on the way,
    /// never to the right.
    fn kernel_next(&self, shape: &RedBlack, root: u32, vtime: u64) -> Option<E> {
        let (mut at, mut found) = (root, NIL);
        loop {
            if !later(self.at(at).start, vtime) {
                found = at;
            }
            let [left, right] = shape.children(at);
            at = match left {
                _ if self.has_eligible(shape, left, vtime) => left,
                _ if found != NIL => return Place(found).id(),
                _ => right,
            };
        }
    }

    /// Whether one at `n` or below is eligible.
    fn has_eligible(&self, shape: &RedBlack, n: u32, vtime: u64) -> bool {
        n != NIL
            && (!later(self.at(n).start, vtime)
                || shape.children(n).into_iter().any(|child| self.has_eligible(shape, child, vtime)))
    }

    /// Whether no other entity is on the active tree than `e`, which is.
    #[must_use]
    pub(crate) fn is_only_active(&self, tree: &ServiceTree, e: E) -> bool {
        tree.active == Place::of(e).0 && self.at(tree.active).child == [NIL; 2]
    }

    #[inline]
    fn at(&self, n: u32) -> &Node {
        &self.nodes[Place(n)]
    }

    #[inline]
    fn at_mut(&mut self, n: u32) -> &mut Node {
        &mut self.nodes[Place(n)]
    }

    /// Adds `n` to the treap below `root`: as a leaf, then up while it outranks the one above.
    fn link(&mut self, root: &mut u32, n: u32, standing: Standing) {
        let Node { start, finish, rank, standing: before, .. } = *self.at(n);
        assert!(before == Standing::Held, "on a tree already, or detached");
        let (mut parent, mut at, mut side) = (NIL, *root, LEFT);
        while let Some(node) = self.nodes.get_mut(Place(at)) {
            if later(node.min_start, start) {
                // Each node on the way down gets the new entity below it. Its smallest start time is what
                // makes the search for an eligible entity O(log n).
                node.min_start = start;
            }
            // Equal finish times: the newcomer goes right, behind those that came before.
            side = usize::from(!later(node.finish, finish));
            (parent, at) = (at, node.child[side]);
        }
        let node = self.at_mut(n);
        node.standing = standing;
        node.min_start = start;
        node.child = [NIL; 2];
        node.parent = parent;
        if parent == NIL {
            *root = n;
            return;
        }
        self.at_mut(parent).child[side] = n;
        while let Some(above) = self.nodes.get(Place(parent))
            // Ranks are drawn once for each entity: that keeps the treap balanced in the mean, whatever the
            // order of arrivals.
            && above.rank < rank
        {
            self.raise(root, n, parent);
            parent = self.at(n).parent;
        }
    }

    /// Puts `n` in its parent's place, and the parent below it.
    fn raise(&mut self, root: &mut u32, n: u32, parent: u32) {
        let above = *self.at(parent);
        let side = usize::from(above.child[RIGHT] == n);
        let inner = self.at(n).child[1 - side];
        let sunk = self.at_mut(parent);
        sunk.child[side] = inner;
        sunk.parent = n;
        if let Some(inner) = self.nodes.get_mut(Place(inner)) {
            inner.parent = parent;
        }
        self.refresh(parent);
        let risen = self.at_mut(n);
        risen.child[1 - side] = parent;
        risen.min_start = above.min_start;
        self.hang(root, above.parent, self.side(above.parent, parent), n);
    }

    /// On which side of its parent a node hangs.
    #[inline]
    fn side(&self, parent: u32, n: u32) -> usize {
        self.nodes.get(Place(parent)).map_or(LEFT, |above| usize::from(above.child[RIGHT] == n))
    }

    /// Hangs `n` on one side below `parent`, or at the root.
    #[inline]
    fn hang(&mut self, root: &mut u32, parent: u32, side: usize, n: u32) {
        match self.nodes.get_mut(Place(parent)) {
            Some(above) => above.child[side] = n,
            None => *root = n,
        }
        if let Some(node) = self.nodes.get_mut(Place(n)) {
            node.parent = parent;
        }
    }

    /// The least start at `n` and below, from its own and its children's; whether it changed.
    #[inline]
    fn refresh(&mut self, n: u32) -> bool {
        let node = self.at(n);
        let mut least = node.start;
        for child in node.child {
            if let Some(below) = self.nodes.get(Place(child))
                && later(least, below.min_start)
            {
                least = below.min_start;
            }
        }
        core::mem::replace(&mut self.at_mut(n).min_start, least) != least
    }

    /// Takes `n` out of the treap below `root`: those below it become one treap, in its place.
    fn unlink(&mut self, root: &mut u32, n: u32) {
        let node = self.at_mut(n);
        node.standing = Standing::Held;
        let Node { start, parent: above, child: [mut left, mut right], .. } = *node;
        let (mut parent, mut side) = (above, self.side(above, n));
        while left != NIL && right != NIL {
            let (a, b) = (self.at(left), self.at(right));
            let least = if later(a.min_start, b.min_start) { b.min_start } else { a.min_start };
            // The higher rank goes up: the order by rank, which balances the treap, holds again without
            // rotations.
            let (up, inner) = if a.rank >= b.rank { (left, RIGHT) } else { (right, LEFT) };
            self.hang(root, parent, side, up);
            let node = self.at_mut(up);
            node.min_start = least;
            let below = node.child[inner];
            *(if inner == RIGHT { &mut left } else { &mut right }) = below;
            (parent, side) = (up, inner);
        }
        self.hang(root, parent, side, if left == NIL { right } else { left });
        let mut up = above;
        // Only nodes whose smallest start was that of `n` can change; the first that keeps it ends the walk.
        while up != NIL && self.at(up).min_start == start && self.refresh(up) {
            up = self.at(up).parent;
        }
    }

    /// The node before or behind `n` in its tree.
    fn neighbour(&self, n: u32, side: usize) -> u32 {
        let mut at = self.at(n).child[side];
        if at != NIL {
            while self.at(at).child[1 - side] != NIL {
                at = self.at(at).child[1 - side];
            }
            return at;
        }
        let (mut from, mut up) = (n, self.at(n).parent);
        while up != NIL && self.at(up).child[side] == from {
            (from, up) = (up, self.at(up).parent);
        }
        up
    }

    /// Walks both trees and panics if order, heap, links, least starts or ends are wrong.
    pub(crate) fn check(&self, tree: &ServiceTree) {
        self.check_treap(tree.active, Standing::Active);
        let [first, last] = self.check_treap(tree.idle, Standing::Idle);
        assert_eq!([tree.idle_first, tree.idle_last], [first, last], "ends of the idle tree");
    }

    /// Checks every node; answers the ends.
    fn check_treap(&self, root: u32, standing: Standing) -> [u32; 2] {
        let Some(top) = self.nodes.get(Place(root)) else { return [NIL; 2] };
        assert_eq!(top.parent, NIL, "a root with a parent");
        let end = |side: usize| {
            let mut at = root;
            while self.at(at).child[side] != NIL {
                at = self.at(at).child[side];
            }
            at
        };
        let (first, last) = (end(LEFT), end(RIGHT));
        let (mut at, mut before) = (first, first);
        while at != NIL {
            let node = self.at(at);
            assert_eq!(node.standing, standing, "in a tree where it does not stand");
            assert!(!later(self.at(before).finish, node.finish), "out of order");
            let mut least = node.start;
            for below in node.child.into_iter().filter(|&child| child != NIL) {
                let child = self.at(below);
                assert_eq!(child.parent, at, "a child that does not know its parent");
                assert!(child.rank <= node.rank, "a child outranks its parent");
                least = if later(least, child.min_start) { child.min_start } else { least };
            }
            assert_eq!(node.min_start, least, "least start");
            (before, at) = (at, self.neighbour(at, RIGHT));
        }
        assert_eq!(before, last, "an end that is not reached");
        [first, last]
    }
}

/// A number that looks random, the same for the same place.
//= G. Steele, D. Lea, C. Flood, Fast splittable pseudorandom number generators (2014), section 4.1
#[allow(clippy::cast_possible_truncation, reason = "the upper half of 64 bits")]
const fn scatter(n: u32) -> u32 {
    let z = (n as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) >> 32) as u32
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::units::Tag;
    use std::vec::Vec;

    /// An entity, as the twin knows it: finish, order of insertion, start.
    type Entry = (u64, u64, u64, Tag);

    /// The twin: vectors that are sorted and searched from end to end.
    #[test]
    fn agrees_with_sorted_vectors() {
        let origin = 0_u64.wrapping_sub(20_000);
        let mut wf2q = Wf2q::<Tag>::new(64, origin);
        let mut trees = [ServiceTree::new(origin), ServiceTree::new(origin)];
        let mut twins: [Vec<Entry>; 2] = [Vec::new(), Vec::new()];
        let mut x = 0x9e37_79b9_7f4a_7c15_u64;
        for step in 0..20_000_u64 {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            let tag = Tag((x % 64) as u16);
            // Times that wrap around in the middle of the test.
            let base = origin.wrapping_add(2 * step);
            let which = (x >> 8) as usize % 2;
            if let Some(i) = (0..2).find(|&i| twins[i].iter().any(|t| t.3 == tag)) {
                wf2q.hold(&mut trees[i], tag);
                wf2q.detach(&mut trees[i], tag);
                twins[i].retain(|t| t.3 != tag);
            } else {
                let start = base.wrapping_add((x >> 16) % 400);
                let finish = start.wrapping_add((x >> 24) % 4000);
                wf2q.attach(&mut trees[which], tag);
                wf2q.set_times(tag, start, finish);
                wf2q.activate(&mut trees[which], tag);
                twins[which].push((finish, step, start, tag));
                twins[which].sort_by_key(|t| (t.0.wrapping_sub(origin), t.1));
            }
            for (tree, twin) in trees.iter_mut().zip(&twins) {
                tree.vtime = latest(tree.vtime, base.wrapping_add((x >> 32) % 100));
                wf2q.check(tree);
                assert_eq!(tree.weight(), twin.len() as u64);
                let eligible = twin.iter().find(|t| !later(t.2, tree.vtime));
                let least = twin.iter().map(|t| t.2.wrapping_sub(origin)).min();
                let first = twin.iter().find(|t| Some(t.2.wrapping_sub(origin)) == least);
                assert_eq!(wf2q.next(tree), eligible.or(first).map(|t| t.3));
            }
        }
    }

    /// With distinct finish times the shape is that of random insertions: about 1.4 log2 n deep in the mean.
    #[test]
    fn stays_shallow_however_sorted_the_finish_times_are() {
        for stride in [1, 4095, 1237] {
            let (mut wf2q, mut tree) = (Wf2q::<Tag>::new(4096, 0), ServiceTree::new(0));
            for i in 0..4096_u64 {
                let tag = Tag(i as u16);
                wf2q.attach(&mut tree, tag);
                wf2q.set_times(tag, 0, i * stride % 4096);
                wf2q.activate(&mut tree, tag);
            }
            wf2q.check(&tree);
            let depth = |mut n: u32| {
                let mut depth = 0;
                while n != NIL {
                    (n, depth) = (wf2q.at(n).parent, depth + 1);
                }
                depth
            };
            let sum: u32 = (0..4096).map(depth).sum();
            assert!(sum / 4096 < 20, "mean depth {}", sum / 4096);
            assert!((0..4096).all(|n| depth(n) < 40), "the deepest");
        }
    }

    #[test]
    fn the_idle_tree_keeps_weight_until_virtual_time_gets_there() {
        for kernel in [false, true] {
            let (mut wf2q, mut tree) = (Wf2q::<Tag>::new(4, 0), ServiceTree::new(0));
            wf2q.set_kernel_forget(kernel);
            for i in 0..4 {
                wf2q.attach(&mut tree, Tag(i));
                wf2q.set_times(Tag(i), 0, vt([30, 10, 20, 90][usize::from(i)], 4));
                wf2q.retire(&mut tree, Tag(i));
                wf2q.check(&tree);
            }
            wf2q.serve(&mut tree, 9);
            assert_eq!(tree.weight(), 4, "V is at 9/4, before everyone");
            wf2q.serve(&mut tree, 12);
            assert_eq!(tree.weight(), if kernel { 3 } else { 2 }, "V is at 21/4, behind two");
            for i in 0..4 {
                if wf2q.standing(Tag(i)) == Standing::Idle {
                    wf2q.hold(&mut tree, Tag(i));
                    wf2q.detach(&mut tree, Tag(i));
                    wf2q.check(&tree);
                }
            }
            assert_eq!(tree.weight(), 0);
            wf2q.serve(&mut tree, 8);
            assert_eq!(tree.vtime(), vt(21, 4), "no entity, no virtual time");
        }
    }

    //= linux-6.12 block/bfq-wf2q.c bfq_forget_idle, docs/reference/bfq.md#14-operations-on-one-tree type=test
    #[test]
    fn virtual_time_goes_back_only_as_in_the_kernel() {
        for kernel in [false, true] {
            let (mut wf2q, mut tree) = (Wf2q::<Tag>::new(1, 0), ServiceTree::new(0));
            wf2q.set_kernel_forget(kernel);
            wf2q.attach(&mut tree, Tag(0));
            wf2q.set_times(Tag(0), 0, 100);
            wf2q.retire(&mut tree, Tag(0));
            wf2q.serve(&mut tree, 1);
            assert_eq!(tree.vtime(), if kernel { 100 } else { vt(1, 1) });
            assert_eq!(tree.weight(), 0);
        }
    }
}
