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
//! is the [red-black tree](super::red_black) of this crate, which has the shape of the kernel's. The *idle*
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

use super::red_black::{self, LEFT, Links, Nodes, RIGHT};
use crate::table::{NIL, Place};
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

#[derive(Clone, Copy, Debug)]
struct Node {
    start: u64,
    finish: u64,
    /// The least start in this subtree.
    min_start: u64,
    links: Links,
    weight: u32,
    standing: Standing,
}

impl red_black::Node for Node {
    type Key = u64;
    type Summary = u64;

    #[inline]
    fn links(&self) -> &Links {
        &self.links
    }
    #[inline]
    fn links_mut(&mut self) -> &mut Links {
        &mut self.links
    }
    #[inline]
    fn key(&self) -> u64 {
        self.finish
    }
    #[inline]
    fn is_before(a: u64, b: u64) -> bool {
        later(b, a)
    }
    #[inline]
    fn own(&self) -> u64 {
        self.start
    }
    #[inline]
    fn summary(&self) -> u64 {
        self.min_start
    }
    #[inline]
    fn set_summary(&mut self, min_start: u64) {
        self.min_start = min_start;
    }
    #[inline]
    fn least(a: u64, b: u64) -> u64 {
        if later(a, b) { b } else { a }
    }
}

/// The entities of any number of [`ServiceTree`]s.
#[derive(Clone, Debug)]
pub(crate) struct Wf2q<E> {
    nodes: Nodes<Node>,
    kernel_forget: bool,
    kernel_search: bool,
    id: PhantomData<E>,
}

/// One resource, shared by weight. Its nodes are in a [`Wf2q`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServiceTree {
    active: u32,
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
        Self { active: NIL, idle: NIL, idle_first: NIL, idle_last: NIL, vtime, weight: 0 }
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
            links: Links::OUT,
            weight: 1,
            standing: Standing::Detached,
        };
        Self { nodes: Nodes::new(len, node), kernel_forget: false, kernel_search: false, id: PhantomData }
    }

    /// Forgets as the kernel does, for comparisons: at most one idle entity at a time, and when no entity is
    /// active and all idle ones are done, `V` *is set back* to the last one's finish. Default off.
    pub(crate) const fn set_kernel_forget(&mut self, on: bool) {
        self.kernel_forget = on;
    }

    /// Searches as the kernel does, for comparisons: stopping too early; see `docs/deviations.md`. Default
    /// off.
    pub(crate) const fn set_kernel_search(&mut self, on: bool) {
        self.kernel_search = on;
    }

    /// Where an entity stands.
    #[inline]
    #[must_use]
    pub(crate) fn standing(&self, e: E) -> Standing {
        self.nodes.at(Place::of(e).0).standing
    }

    /// `S` and `F`.
    #[inline]
    #[must_use]
    pub(crate) fn times(&self, e: E) -> (u64, u64) {
        let node = self.nodes.at(Place::of(e).0);
        (node.start, node.finish)
    }

    /// Its weight.
    #[inline]
    #[must_use]
    pub(crate) fn weight(&self, e: E) -> u32 {
        self.nodes.at(Place::of(e).0).weight
    }

    /// Gives an entity that is in no tree new times.
    ///
    /// # Panics
    /// If it is in a tree.
    #[inline]
    pub(crate) fn set_times(&mut self, e: E, start: u64, finish: u64) {
        let node = self.nodes.at_mut(Place::of(e).0);
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
        let node = self.nodes.at_mut(Place::of(e).0);
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
        let node = self.nodes.at_mut(Place::of(e).0);
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
        let node = self.nodes.at_mut(Place::of(e).0);
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
    }

    /// Puts a held entity on the idle tree.
    ///
    /// # Panics
    /// If it is not held.
    pub(crate) fn retire(&mut self, tree: &mut ServiceTree, e: E) {
        let n = Place::of(e).0;
        self.link(&mut tree.idle, n, Standing::Idle);
        let finish = self.nodes.at(n).finish;
        if self.nodes.get(tree.idle_first).is_none_or(|first| later(first.finish, finish)) {
            tree.idle_first = n;
        }
        if self.nodes.get(tree.idle_last).is_none_or(|last| !later(last.finish, finish)) {
            tree.idle_last = n;
        }
    }

    /// Takes an entity off the tree that it is on, if it is on one. It is held then.
    #[inline]
    pub(crate) fn hold(&mut self, tree: &mut ServiceTree, e: E) {
        let n = Place::of(e).0;
        match self.nodes.at(n).standing {
            Standing::Active => self.unlink(&mut tree.active, n),
            Standing::Idle => self.hold_idle(tree, n),
            Standing::Held | Standing::Detached => {}
        }
    }

    fn hold_idle(&mut self, tree: &mut ServiceTree, n: u32) {
        if tree.idle_first == n {
            tree.idle_first = self.nodes.neighbour(n, RIGHT);
        }
        if tree.idle_last == n {
            tree.idle_last = self.nodes.neighbour(n, LEFT);
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
        if let Some(root) = self.nodes.get(tree.active) {
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
        if self.kernel_forget
            && !tree.has_active()
            && !later(self.nodes.at(tree.idle_last).finish, tree.vtime)
        {
            tree.vtime = self.nodes.at(tree.idle_last).finish;
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
        let mut node = self.nodes.get(tree.active)?;
        let vtime = latest(tree.vtime, node.min_start);
        if self.kernel_search {
            return self.kernel_next(tree.active, vtime);
        }
        //= deviates wf2q-search
        // There is an eligible one at `at` or below. Entities on its left are before it and before all on the
        // right.
        let mut at = tree.active;
        loop {
            let [left, right] = node.links.children();
            at = match self.nodes.get(left) {
                Some(below) if !later(below.min_start, vtime) => left,
                _ if !later(node.start, vtime) => return Place(at).id(),
                _ => right,
            };
            node = self.nodes.at(at);
        }
    }

    /// As the kernel searches: to the left where an entity is eligible; but once one was seen on the way,
    /// never to the right.
    fn kernel_next(&self, root: u32, vtime: u64) -> Option<E> {
        let (mut at, mut found) = (root, NIL);
        loop {
            let node = self.nodes.at(at);
            if !later(node.start, vtime) {
                found = at;
            }
            let [left, right] = node.links.children();
            at = match self.nodes.get(left) {
                Some(below) if !later(below.min_start, vtime) => left,
                _ if found != NIL => return Place(found).id(),
                _ => right,
            };
        }
    }

    /// Whether no other entity is on the active tree than `e`, which is.
    #[must_use]
    pub(crate) fn is_only_active(&self, tree: &ServiceTree, e: E) -> bool {
        tree.active == Place::of(e).0 && self.nodes.at(tree.active).links.children() == [NIL; 2]
    }

    /// Puts a held entity on the tree below `root`.
    #[inline]
    fn link(&mut self, root: &mut u32, n: u32, standing: Standing) {
        let node = self.nodes.at_mut(n);
        assert!(node.standing == Standing::Held, "on a tree already, or detached");
        node.standing = standing;
        self.nodes.insert(root, n);
    }

    /// Takes an entity off the tree below `root`.
    #[inline]
    fn unlink(&mut self, root: &mut u32, n: u32) {
        self.nodes.at_mut(n).standing = Standing::Held;
        self.nodes.remove(root, n);
    }

    /// Walks both trees and panics if order, links, least starts or ends are wrong.
    pub(crate) fn check(&self, tree: &ServiceTree) {
        for (root, standing) in [(tree.active, Standing::Active), (tree.idle, Standing::Idle)] {
            self.nodes.check(root);
            let mut at = self.nodes.end(root, LEFT);
            while let Some(node) = self.nodes.get(at) {
                assert_eq!(node.standing, standing, "in a tree where it does not stand");
                at = self.nodes.neighbour(at, RIGHT);
            }
        }
        let ends = [LEFT, RIGHT].map(|side| self.nodes.end(tree.idle, side));
        assert_eq!([tree.idle_first, tree.idle_last], ends, "ends of the idle tree");
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::testkit::Random;
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
        let mut random = Random::new(1);
        for step in 0..20_000_u64 {
            let x = random.next();
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

    #[test]
    fn an_entity_is_the_only_active_one_if_no_other_is_on_the_tree() {
        let (mut wf2q, mut tree) = (Wf2q::<Tag>::new(3, 0), ServiceTree::new(0));
        let only =
            |wf2q: &Wf2q<Tag>, tree: &ServiceTree| [0, 1, 2].map(|i| wf2q.is_only_active(tree, Tag(i)));
        for i in 0..3 {
            wf2q.attach(&mut tree, Tag(i));
            wf2q.set_times(Tag(i), 0, 10 + u64::from(i));
        }
        wf2q.activate(&mut tree, Tag(1));
        assert_eq!(only(&wf2q, &tree), [false, true, false]);
        wf2q.retire(&mut tree, Tag(2));
        assert_eq!(only(&wf2q, &tree), [false, true, false], "one on the idle tree is not active");
        wf2q.activate(&mut tree, Tag(0));
        assert_eq!(only(&wf2q, &tree), [false; 3]);
        wf2q.hold(&mut tree, Tag(1));
        assert_eq!(only(&wf2q, &tree), [true, false, false]);
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
