//! Sorted lists that live in a fixed table: the structure behind every queue here.
//!
//! A [`Forest`] owns one node per id (a tag, a queue); a [`Tree`] is one list in it. Any number of them share
//! one forest, because an id is in at most one at a time: a scheduler's thousand queues need one node per
//! request, not a thousand arrays. Keys are `u64` (a sector, a virtual time); equal keys keep their order of
//! insertion. The first, the last and the neighbours are O(1), insert, remove and lower-bound look-ups
//! O(log n) in the mean; nothing allocates.
//!
//! All nodes are linked to their neighbours; a [red-black tree](super::red_black) is the index of that list,
//! as a book's index is: it has one node here and there. A look-up goes down the tree to the last indexed
//! node that is not too far, and along the list from there. A new node is indexed when its place was more
//! than `FAR` steps from an indexed one, and sometimes in any case (`OFTEN`):
//!
//! ```text
//!   index:        30                     a new 45: down to 30, along to 40, in before 50
//!               /    \
//!             10      60
//!   list:     10 20   30 40 50   60 70
//! ```
//!
//! So a short queue, as most are, is a list and nothing else, and in a long one nine nodes of ten come and go
//! without a turn of the tree. With every node in the index a request of deadline takes 584 instructions
//! instead of 434 at 16 tasks, and one of bfq 1,727 instead of 1,592.
//!
//! It does not own values and does not compare with wrap-around: a caller whose keys wrap must renumber. It
//! does not bound the steps from one indexed node to the next, either: removing just the indexed ones makes a
//! look-up as long as the list, until the next insertion there corrects it.
//!
//= paper: W. Pugh 1990, "Skip lists: a probabilistic alternative to balanced trees"

use super::red_black::{self, LEFT, Links, Nodes, RIGHT, Side};
use crate::table::{NIL, Place};
use crate::units::Id;
use core::marker::PhantomData;

/// The neighbour of a node that is in no list.
const OUT: u32 = NIL - 1;

/// A new node is indexed when it is more than this many steps behind an indexed one. Measured: more makes the
/// walks dearer, fewer the index.
const FAR: u32 = 6;

/// Of this many new nodes one is indexed in any case, if the list is as long. Insertions in descending order
/// never walk far, so they alone would leave a long list without an index for searches.
const OFTEN: u32 = 16;

#[derive(Clone, Copy, Debug)]
struct Node {
    key: u64,
    /// Its place in the index, if it is indexed.
    links: Links,
    /// The neighbours in the list.
    thread: [u32; 2],
}

impl red_black::Node for Node {
    type Key = u64;
    type Summary = ();
    /// A scheduler that takes requests in ascending order removes the next one soon, which costs least near
    /// the leaves.
    const SUCCESSOR: Side = LEFT;

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
        self.key
    }
    #[inline]
    fn is_before(a: u64, b: u64) -> bool {
        a < b
    }
    #[inline]
    fn own(&self) {}
    #[inline]
    fn summary(&self) {}
    #[inline]
    fn set_summary(&mut self, (): ()) {}
    #[inline]
    fn least((): (), (): ()) {}
}

/// One node for each id; the trees are [`Tree`]s.
#[derive(Clone, Debug)]
pub(crate) struct Forest<I> {
    nodes: Nodes<Node>,
    /// How many insertions there were, modulo 2^32.
    inserted: u32,
    id: PhantomData<I>,
}

/// One ordered tree in a [`Forest`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tree {
    /// Of the index.
    root: u32,
    /// The first and the last.
    ends: [u32; 2],
    len: u32,
}

impl Default for Tree {
    fn default() -> Self {
        Self { root: NIL, ends: [NIL; 2], len: 0 }
    }
}

impl Tree {
    /// How many ids are in the tree.
    #[must_use]
    pub(crate) const fn len(&self) -> u32 {
        self.len
    }

    /// Whether the tree is empty.
    #[must_use]
    pub(crate) const fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl<I: Id> Forest<I> {
    /// A forest with room for the ids `0..len`. Allocates.
    #[must_use]
    pub(crate) fn new(len: usize) -> Self {
        let node = Node { key: 0, links: Links::OUT, thread: [OUT; 2] };
        Self { nodes: Nodes::new(len, node), inserted: 0, id: PhantomData }
    }

    /// Whether `id` is in some tree of this forest.
    #[inline]
    #[must_use]
    pub(crate) fn contains(&self, id: I) -> bool {
        self.nodes.at(Place::of(id).0).thread[0] != OUT
    }

    /// The key under which `id` is filed; meaningless when it is in no tree.
    #[inline]
    #[must_use]
    pub(crate) fn key(&self, id: I) -> u64 {
        self.nodes.at(Place::of(id).0).key
    }

    /// Files `id` under `key`, behind those with an equal key.
    ///
    /// # Panics
    /// If `id` is already in a tree.
    pub(crate) fn insert(&mut self, tree: &mut Tree, id: I, key: u64) {
        assert!(!self.contains(id), "already in a tree");
        let n = Place::of(id).0;
        let (mut parent, mut at, mut before) = (NIL, tree.root, NIL);
        while let Some(node) = self.nodes.get(at) {
            let side = usize::from(key >= node.key);
            (parent, before) = (at, if side == RIGHT { at } else { before });
            at = node.links.children()[side];
        }
        let (mut behind, mut steps) = (self.after(tree, before), 0);
        // The index has only some of the nodes, so the rest of the way goes along the list.
        while let Some(node) = self.nodes.get(behind)
            && node.key <= key
        {
            (before, behind) = (behind, node.thread[1]);
            steps += 1;
        }
        *self.nodes.at_mut(n) = Node { key, links: Links::OUT, thread: [before, behind] };
        self.tie(tree, before, RIGHT, n);
        self.tie(tree, behind, LEFT, n);
        tree.len += 1;
        self.inserted = self.inserted.wrapping_add(1);
        // Indexed only when the walk gets long, or now and then: most nodes leave before, and rebalancing
        // would cost more than walking.
        if steps > FAR || self.inserted.is_multiple_of(OFTEN) && tree.len >= OFTEN {
            self.index(tree, n, parent);
        }
    }

    /// Adds `id` to `tree`, with a short way for a tree that is empty.
    ///
    /// # Panics
    /// If `id` is already in a tree.
    #[inline]
    pub(crate) fn insert_maybe_first(&mut self, tree: &mut Tree, id: I, key: u64) {
        if tree.is_empty() { self.insert_first(tree, id, key) } else { self.insert(tree, id, key) }
    }

    /// Adds `id` to a tree that is empty.
    ///
    /// # Panics
    /// If `id` is already in a tree.
    #[inline]
    pub(crate) fn insert_first(&mut self, tree: &mut Tree, id: I, key: u64) {
        debug_assert!(tree.is_empty(), "there are others");
        let n = Place::of(id).0;
        let node = self.nodes.at_mut(n);
        assert!(node.thread[0] == OUT, "already in a tree");
        *node = Node { key, links: Links::OUT, thread: [NIL; 2] };
        *tree = Tree { root: NIL, ends: [n; 2], len: 1 };
    }

    /// Takes `id` out of `tree`.
    ///
    /// # Panics
    /// If `id` is in no tree. That it is in *this* one is the caller's duty (`check` tells).
    pub(crate) fn remove(&mut self, tree: &mut Tree, id: I) {
        let n = Place::of(id).0;
        let node = self.nodes.at_mut(n);
        let ([before, behind], is_indexed) = (node.thread, !node.links.is_out());
        assert!(before != OUT, "in no tree");
        node.thread[0] = OUT;
        self.tie(tree, before, RIGHT, behind);
        self.tie(tree, behind, LEFT, before);
        tree.len -= 1;
        if is_indexed {
            self.unindex(tree, n);
        }
    }

    /// Takes `id` out of `tree`, which has nothing else.
    ///
    /// # Panics
    /// If `id` is in no tree.
    #[inline(always)]
    pub(crate) fn remove_last(&mut self, tree: &mut Tree, id: I) {
        debug_assert!(tree.len == 1, "there are others");
        let node = self.nodes.at_mut(Place::of(id).0);
        assert!(node.thread[0] != OUT, "in no tree");
        if !node.links.is_out() {
            return self.remove(tree, id);
        }
        node.thread[0] = OUT;
        *tree = Tree::default();
    }

    /// Files `id`, which is in `tree`, under another key, behind those with an equal key.
    ///
    /// # Panics
    /// If `id` is in no tree.
    pub(crate) fn set_key(&mut self, tree: &mut Tree, id: I, key: u64) {
        let n = Place::of(id).0;
        let Node { thread: [before, behind], links, .. } = *self.nodes.at(n);
        assert!(before != OUT, "in no tree");
        let moved = self.inserted.wrapping_add(1);
        if self.nodes.get(before).is_none_or(|n| n.key <= key)
            && self.nodes.get(behind).is_none_or(|n| key < n.key)
        {
            self.nodes.at_mut(n).key = key;
        } else if links.is_out() && self.nodes.at(tree.ends[1]).key <= key && !moved.is_multiple_of(OFTEN) {
            self.inserted = moved;
            self.move_last(tree, n, key);
        } else {
            self.remove(tree, id);
            self.insert(tree, id, key);
        }
    }

    /// Files `n`, which is not indexed and not the last, behind all others.
    fn move_last(&mut self, tree: &mut Tree, n: u32, key: u64) {
        let [before, behind] = self.nodes.at(n).thread;
        self.tie(tree, before, RIGHT, behind);
        self.tie(tree, behind, LEFT, before);
        let last = core::mem::replace(&mut tree.ends[1], n);
        self.nodes.at_mut(last).thread[1] = n;
        let node = self.nodes.at_mut(n);
        (node.key, node.thread) = (key, [last, NIL]);
    }

    /// The first id of `tree`: smallest key, earliest inserted.
    #[inline]
    #[must_use]
    pub(crate) fn first(&self, tree: &Tree) -> Option<I> {
        Place(tree.ends[0]).id()
    }

    /// The last id of `tree`.
    #[inline]
    #[must_use]
    pub(crate) fn last(&self, tree: &Tree) -> Option<I> {
        Place(tree.ends[1]).id()
    }

    /// The id after `id` in its tree.
    #[inline]
    #[must_use]
    pub(crate) fn next(&self, id: I) -> Option<I> {
        Place(self.nodes.at(Place::of(id).0).thread[1]).id()
    }

    /// The id before `id` in its tree.
    #[inline]
    #[must_use]
    pub(crate) fn prev(&self, id: I) -> Option<I> {
        Place(self.nodes.at(Place::of(id).0).thread[0]).id()
    }

    /// The first id of `tree` with a key of at least `key`.
    #[must_use]
    pub(crate) fn lower_bound(&self, tree: &Tree, key: u64) -> Option<I> {
        let (mut at, mut before) = (tree.root, NIL);
        while let Some(node) = self.nodes.get(at) {
            let below = node.key < key;
            before = if below { at } else { before };
            at = node.links.children()[usize::from(below)];
        }
        let mut found = self.after(tree, before);
        while let Some(node) = self.nodes.get(found)
            && node.key < key
        {
            found = node.thread[1];
        }
        Place(found).id()
    }

    /// The ids of `tree` in order.
    pub(crate) fn iter(&self, tree: &Tree) -> impl Iterator<Item = I> + '_ {
        core::iter::successors(self.first(tree), |&id| self.next(id))
    }

    /// Walks the whole list and its index and panics if order, links or length are wrong.
    pub(crate) fn check(&self, tree: &Tree) {
        self.nodes.check(tree.root);
        let (mut len, mut key, mut before) = (0, 0, NIL);
        let mut indexed = self.nodes.end(tree.root, LEFT);
        let mut at = tree.ends[0];
        while at != NIL {
            let node = self.nodes.at(at);
            assert!(node.key >= key, "out of order");
            assert_eq!(node.thread[0], before, "stale link back");
            if !node.links.is_out() {
                assert_eq!(at, indexed, "the index has another order");
                indexed = self.nodes.neighbour(at, RIGHT);
            }
            (key, before, at, len) = (node.key, at, node.thread[1], len + 1);
        }
        assert_eq!(indexed, NIL, "indexed, but not in the list");
        assert_eq!(tree.ends[1], before, "stale last");
        assert_eq!(len, tree.len, "wrong length");
    }

    /// The node behind `n` in the list; without `n`, the first.
    #[inline]
    fn after(&self, tree: &Tree, n: u32) -> u32 {
        self.nodes.get(n).map_or(tree.ends[0], |node| node.thread[1])
    }

    /// Makes `to` the neighbour of `n` on one side; without `n`, it is the last on the other.
    #[inline]
    fn tie(&mut self, tree: &mut Tree, n: u32, side: Side, to: u32) {
        match self.nodes.get_mut(n) {
            Some(node) => node.thread[side] = to,
            None => tree.ends[1 - side] = to,
        }
    }

    /// Adds `n` to the index, as a leaf below `parent`, where the way down ended.
    #[inline(never)]
    fn index(&mut self, tree: &mut Tree, n: u32, parent: u32) {
        let key = self.nodes.at(n).key;
        let side = self.nodes.get(parent).map_or(LEFT, |above| usize::from(key >= above.key));
        self.nodes.hang(&mut tree.root, n, parent, side);
    }

    /// Takes `n` out of the index.
    #[inline(never)]
    fn unindex(&mut self, tree: &mut Tree, n: u32) {
        self.nodes.remove(&mut tree.root, n);
        self.nodes.at_mut(n).links = Links::OUT;
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::testkit::Random;
    use crate::units::Tag;
    use std::vec::Vec;

    /// The twin: a vector sorted by (key, order of insertion).
    #[test]
    fn agrees_with_a_sorted_vector() {
        let mut forest = Forest::<Tag>::new(64);
        let mut trees = [Tree::default(), Tree::default()];
        let mut twins: [Vec<(u64, u64, Tag)>; 2] = [Vec::new(), Vec::new()];
        let mut random = Random::new(1);
        for step in 0..20_000_u64 {
            let x = random.next();
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

    #[test]
    fn a_new_key_moves_an_id_as_if_it_were_filed_anew() {
        let mut random = Random::new(1);
        let (mut forest, mut tree) = (Forest::<Tag>::new(16), Tree::default());
        let mut twin: Vec<(u64, u64, Tag)> = Vec::new();
        for i in 0..16 {
            forest.insert(&mut tree, Tag(i), 10);
            twin.push((10, 0, Tag(i)));
        }
        for step in 1..5000 {
            let x = random.next();
            let (i, key) = (x as usize % 16, (x >> 8) % 20);
            forest.set_key(&mut tree, twin[i].2, key);
            forest.check(&tree);
            (twin[i].0, twin[i].1) = (key, step);
            twin.sort_by_key(|t| (t.0, t.1));
            assert!(forest.iter(&tree).eq(twin.iter().map(|t| t.2)));
        }
    }
}
