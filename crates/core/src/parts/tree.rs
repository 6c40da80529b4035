//! Ordered trees that live in a fixed table: the sorted structure behind every queue here.
//!
//! A [`Forest`] owns one node per id (a tag, a queue); a [`Tree`] is a root into it. Any number of trees share one
//! forest, because an id is in at most one of them at a time: a scheduler's thousand queues need one node per request,
//! not a thousand arrays. Keys are `u64` (a sector, a virtual time); equal keys keep their order of insertion. Insert,
//! remove, neighbour and lower-bound look-ups are O(log n), the first entry is O(1), and nothing allocates.
//!
//! It is a red-black tree with parent links, stored as indices. It does not own values and does not compare with
//! wrap-around: a caller whose keys wrap must renumber.
//!
//= paper: R. Bayer 1972; L. Guibas, R. Sedgewick 1978, "A dichromatic framework for balanced trees"

use crate::table::Table;
use crate::units::Id;

const NIL: u32 = u32::MAX;
const OUT: u32 = u32::MAX - 1;

#[derive(Clone, Copy, Debug)]
struct Node {
    key: u64,
    parent: u32,
    child: [u32; 2],
    red: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Slot(u32);

impl Id for Slot {
    fn index(self) -> usize {
        self.0 as usize
    }
    #[allow(clippy::cast_possible_truncation, reason = "a forest has fewer than 2^32 nodes")]
    fn from_index(i: usize) -> Self {
        Self(i as u32)
    }
}

/// One node for each id; the trees are [`Tree`]s.
#[derive(Debug)]
pub struct Forest<I> {
    nodes: Table<Slot, Node>,
    id: core::marker::PhantomData<I>,
}

/// One ordered tree in a [`Forest`].
#[derive(Clone, Copy, Debug)]
pub struct Tree {
    root: u32,
    first: u32,
    len: u32,
}

impl Default for Tree {
    fn default() -> Self {
        Self { root: NIL, first: NIL, len: 0 }
    }
}

impl Tree {
    /// How many ids are in the tree.
    #[must_use]
    pub const fn len(&self) -> u32 {
        self.len
    }

    /// Whether the tree is empty.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// The way down: 0 left, 1 right.
type Side = usize;

impl<I: Id> Forest<I> {
    /// A forest with room for the ids `0..len`. Allocates.
    #[must_use]
    pub fn new(len: usize) -> Self {
        let node = Node { key: 0, parent: OUT, child: [NIL; 2], red: false };
        Self { nodes: Table::new(len, node), id: core::marker::PhantomData }
    }

    /// Whether `id` is in some tree of this forest.
    #[must_use]
    pub fn contains(&self, id: I) -> bool {
        self.nodes[Slot::from_index(id.index())].parent != OUT
    }

    /// The key under which `id` is filed; meaningless when it is in no tree.
    #[must_use]
    pub fn key(&self, id: I) -> u64 {
        self.nodes[Slot::from_index(id.index())].key
    }

    /// Files `id` under `key`, behind those with an equal key.
    ///
    /// # Panics
    /// If `id` is already in a tree.
    pub fn insert(&mut self, tree: &mut Tree, id: I, key: u64) {
        assert!(!self.contains(id), "already in a tree");
        let n = Slot::from_index(id.index()).0;
        let (mut parent, mut side, mut leftmost) = (NIL, 0, true);
        let mut at = tree.root;
        while at != NIL {
            parent = at;
            side = usize::from(key >= self.at(at).key);
            leftmost &= side == 0;
            at = self.at(at).child[side];
        }
        *self.at_mut(n) = Node { key, parent, child: [NIL; 2], red: true };
        if parent == NIL {
            tree.root = n;
        } else {
            self.at_mut(parent).child[side] = n;
        }
        if leftmost {
            tree.first = n;
        }
        tree.len += 1;
        self.rebalance_after_insert(tree, n);
    }

    /// Takes `id` out of `tree`.
    ///
    /// # Panics
    /// If `id` is in no tree. That it is in *this* one is the caller's duty (`check` tells).
    pub fn remove(&mut self, tree: &mut Tree, id: I) {
        assert!(self.contains(id), "in no tree");
        let n = Slot::from_index(id.index()).0;
        if tree.first == n {
            tree.first = self.step(n, 1);
        }
        tree.len -= 1;
        let node = *self.at(n);
        let (hole, parent, was_red) = if node.child[0] == NIL || node.child[1] == NIL {
            let only = node.child[usize::from(node.child[0] == NIL)];
            self.replace(tree, n, only);
            (only, node.parent, node.red)
        } else {
            self.splice_successor(tree, n)
        };
        if !was_red {
            self.rebalance_after_remove(tree, hole, parent);
        }
        self.at_mut(n).parent = OUT;
    }

    /// The first id of `tree`: smallest key, earliest inserted.
    #[must_use]
    pub fn first(&self, tree: &Tree) -> Option<I> {
        Self::some(tree.first)
    }

    /// The last id of `tree`.
    #[must_use]
    pub fn last(&self, tree: &Tree) -> Option<I> {
        if tree.root == NIL {
            return None;
        }
        Self::some(self.descend(tree.root, 1))
    }

    /// The id after `id` in its tree.
    #[must_use]
    pub fn next(&self, id: I) -> Option<I> {
        Self::some(self.step(Slot::from_index(id.index()).0, 1))
    }

    /// The id before `id` in its tree.
    #[must_use]
    pub fn prev(&self, id: I) -> Option<I> {
        Self::some(self.step(Slot::from_index(id.index()).0, 0))
    }

    /// The first id of `tree` with a key of at least `key`.
    #[must_use]
    pub fn lower_bound(&self, tree: &Tree, key: u64) -> Option<I> {
        let (mut at, mut found) = (tree.root, NIL);
        while at != NIL {
            let node = self.at(at);
            if node.key >= key {
                found = at;
                at = node.child[0];
            } else {
                at = node.child[1];
            }
        }
        Self::some(found)
    }

    /// The ids of `tree` in order.
    pub fn iter(&self, tree: &Tree) -> impl Iterator<Item = I> + '_ {
        core::iter::successors(self.first(tree), |&id| self.next(id))
    }

    /// Walks the whole tree and panics if its order, links, colours, length or first entry are wrong.
    pub fn check(&self, tree: &Tree) {
        assert_eq!(
            tree.first,
            if tree.root == NIL { NIL } else { self.descend(tree.root, 0) },
            "stale first"
        );
        assert!(tree.root == NIL || !self.at(tree.root).red, "red root");
        let (mut len, mut key, mut black_depth) = (0, 0, None);
        for id in self.iter(tree) {
            let n = Slot::from_index(id.index()).0;
            assert!(self.at(n).key >= key, "out of order");
            key = self.at(n).key;
            len += 1;
            self.check_node(n, &mut black_depth);
        }
        assert_eq!(len, tree.len, "wrong length");
    }

    fn check_node(&self, n: u32, black_depth: &mut Option<u32>) {
        let node = self.at(n);
        for child in node.child {
            assert!(child == NIL || self.at(child).parent == n, "child does not know its parent");
            assert!(!(node.red && child != NIL && self.at(child).red), "red below red");
        }
        if node.child.contains(&NIL) {
            let (mut blacks, mut up) = (0, n);
            while up != NIL {
                blacks += u32::from(!self.at(up).red);
                up = self.at(up).parent;
            }
            assert_eq!(*black_depth.get_or_insert(blacks), blacks, "unequal black depth");
        }
    }

    fn some(n: u32) -> Option<I> {
        (n != NIL).then(|| I::from_index(n as usize))
    }

    fn at(&self, n: u32) -> &Node {
        &self.nodes[Slot(n)]
    }

    fn at_mut(&mut self, n: u32) -> &mut Node {
        &mut self.nodes[Slot(n)]
    }

    fn is_red(&self, n: u32) -> bool {
        n != NIL && self.at(n).red
    }

    /// As far as it goes from `n` to one side.
    fn descend(&self, mut n: u32, side: Side) -> u32 {
        while self.at(n).child[side] != NIL {
            n = self.at(n).child[side];
        }
        n
    }

    /// The neighbour of `n` in order, on one side.
    fn step(&self, n: u32, side: Side) -> u32 {
        let below = self.at(n).child[side];
        if below != NIL {
            return self.descend(below, 1 - side);
        }
        let (mut from, mut up) = (n, self.at(n).parent);
        while up != NIL && self.at(up).child[side] == from {
            from = up;
            up = self.at(up).parent;
        }
        up
    }

    /// Hangs `new` where `old` hung.
    fn replace(&mut self, tree: &mut Tree, old: u32, new: u32) {
        let parent = self.at(old).parent;
        if parent == NIL {
            tree.root = new;
        } else {
            let side = usize::from(self.at(parent).child[1] == old);
            self.at_mut(parent).child[side] = new;
        }
        if new != NIL {
            self.at_mut(new).parent = parent;
        }
    }

    /// Puts the successor of `n`, which has two children, in its place. Answers where a black node may now be missing.
    fn splice_successor(&mut self, tree: &mut Tree, n: u32) -> (u32, u32, bool) {
        let node = *self.at(n);
        let s = self.descend(node.child[1], 0);
        let succ = *self.at(s);
        let hole = succ.child[1];
        let hole_parent = if succ.parent == n { s } else { succ.parent };
        if succ.parent != n {
            self.replace(tree, s, hole);
            self.at_mut(s).child[1] = node.child[1];
            self.at_mut(node.child[1]).parent = s;
        }
        self.replace(tree, n, s);
        self.at_mut(s).child[0] = node.child[0];
        self.at_mut(node.child[0]).parent = s;
        self.at_mut(s).red = node.red;
        (hole, hole_parent, succ.red)
    }

    /// Rotates `n` down to `side`; its child on the other side comes up.
    fn rotate(&mut self, tree: &mut Tree, n: u32, side: Side) {
        let up = self.at(n).child[1 - side];
        let inner = self.at(up).child[side];
        self.at_mut(n).child[1 - side] = inner;
        if inner != NIL {
            self.at_mut(inner).parent = n;
        }
        self.replace(tree, n, up);
        self.at_mut(up).child[side] = n;
        self.at_mut(n).parent = up;
    }

    fn rebalance_after_insert(&mut self, tree: &mut Tree, mut n: u32) {
        loop {
            let parent = self.at(n).parent;
            if !self.is_red(parent) {
                break;
            }
            let grand = self.at(parent).parent;
            let side = usize::from(self.at(grand).child[1] == parent);
            let uncle = self.at(grand).child[1 - side];
            if self.is_red(uncle) {
                self.at_mut(parent).red = false;
                self.at_mut(uncle).red = false;
                self.at_mut(grand).red = true;
                n = grand;
                continue;
            }
            let top = if self.at(parent).child[1 - side] == n {
                self.rotate(tree, parent, side);
                n
            } else {
                parent
            };
            self.at_mut(top).red = false;
            self.at_mut(grand).red = true;
            self.rotate(tree, grand, 1 - side);
            break;
        }
        let root = tree.root;
        self.at_mut(root).red = false;
    }

    fn rebalance_after_remove(&mut self, tree: &mut Tree, mut n: u32, mut parent: u32) {
        while parent != NIL && !self.is_red(n) {
            let side = usize::from(self.at(parent).child[1] == n);
            let mut sibling = self.at(parent).child[1 - side];
            if self.is_red(sibling) {
                self.at_mut(sibling).red = false;
                self.at_mut(parent).red = true;
                self.rotate(tree, parent, side);
                sibling = self.at(parent).child[1 - side];
            }
            let [near, far] = {
                let c = self.at(sibling).child;
                [c[side], c[1 - side]]
            };
            if !self.is_red(near) && !self.is_red(far) {
                self.at_mut(sibling).red = true;
                n = parent;
                parent = self.at(n).parent;
                continue;
            }
            if !self.is_red(far) {
                self.at_mut(near).red = false;
                self.at_mut(sibling).red = true;
                self.rotate(tree, sibling, 1 - side);
                sibling = near;
            }
            self.at_mut(sibling).red = self.at(parent).red;
            self.at_mut(parent).red = false;
            let far = self.at(sibling).child[1 - side];
            self.at_mut(far).red = false;
            self.rotate(tree, parent, side);
            n = tree.root;
            break;
        }
        if n != NIL {
            self.at_mut(n).red = false;
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::units::Tag;
    use std::vec::Vec;

    /// The twin: a vector sorted by (key, order of insertion).
    #[test]
    fn agrees_with_a_sorted_vector() {
        let mut forest = Forest::<Tag>::new(64);
        let mut trees = [Tree::default(), Tree::default()];
        let mut twins: [Vec<(u64, u64, Tag)>; 2] = [Vec::new(), Vec::new()];
        let mut x = 0x9e37_79b9_7f4a_7c15_u64;
        for step in 0..20_000_u64 {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            let tag = Tag((x % 64) as u16);
            let which = (x >> 8) as usize % 2;
            if let Some(i) = (0..2).find(|&i| twins[i].iter().any(|t| t.2 == tag)) {
                forest.remove(&mut trees[i], tag);
                twins[i].retain(|t| t.2 != tag);
            } else {
                let key = (x >> 16) % 20;
                forest.insert(&mut trees[which], tag, key);
                twins[which].push((key, step, tag));
                twins[which].sort_unstable();
            }
            for (tree, twin) in trees.iter().zip(&twins) {
                forest.check(tree);
                let got: Vec<Tag> = forest.iter(tree).collect();
                let want: Vec<Tag> = twin.iter().map(|t| t.2).collect();
                assert_eq!(got, want);
                assert_eq!(forest.last(tree), want.last().copied());
                let key = (x >> 24) % 22;
                let bound = twin.iter().find(|t| t.0 >= key).map(|t| t.2);
                assert_eq!(forest.lower_bound(tree, key), bound);
                assert!(want.windows(2).all(|w| forest.prev(w[1]) == Some(w[0])));
            }
        }
    }
}
