//! The balanced tree of this crate: red-black, with links that are indices, and a summary of each subtree.
//!
//! [`Nodes`] owns one node for each place of a fixed table, and a tree is the number of its root; any number
//! of trees share the nodes, for each node is in at most one. The owner says what a node is: a [`Node`] has
//! [`Links`] in it, a *key* by which it is sorted, and a *summary*: the least of some other value among it
//! and all nodes below it. Insertion and removal keep the summaries, so that a search can leave out a subtree
//! that has nothing for it. Keys that are equal keep their order of insertion.
//!
//! ```text
//!             30, 7            each node: key, own value; the least value of the subtree in brackets
//!            /     \
//!   10, 5 [4]       60, 9 [8]
//!      \             /        which is the first with a value of at most 8? Left at 30, for [4] <= 8;
//!      20, 4     50, 8        and there 10, which has nothing on its left, and 5 <= 8
//! ```
//!
//! Two structures are built on it: the sorted lists of [`tree`](super::tree), of which it is the index,
//! without a summary; and the trees of [`wf2q`](super::wf2q), sorted by finish time, with the least start.
//!
//! The *shape* is that of the textbook, which is Linux's too: a new node is a leaf, a node with two children
//! is replaced by the next in order ([`Node::SUCCESSOR`]), and the repairs are the usual ones. So a search
//! whose answer depends on the shape, as the kernel's for the next entity does, gives the kernel's answer.
//!
//! A treap, which BFQ's trees were before, costs more, besides a tree of this shape for comparisons. In
//! instructions for each request (`cargo xtask bench --check`), bfq takes 1,600 with a treap and 1,592 with
//! this at 16 tasks, and 2,172 and 2,142 in 16 groups.
//!
//! It does not know what keys mean. There is no recursion, and nothing allocates after `new`.
//
//= paper: L. Guibas, R. Sedgewick 1978, "A dichromatic framework for balanced trees"
//= book: T. Cormen et al., "Introduction to Algorithms", red-black trees; augmenting data structures

use crate::table::{NIL, Place, Table};

/// Towards smaller keys ([`LEFT`]) or larger ones ([`RIGHT`]): the index of an array of two.
pub(super) type Side = usize;
pub(super) const LEFT: Side = 0;
pub(super) const RIGHT: Side = 1;

/// The parent of a node that is in no tree.
const OUT: u32 = NIL - 1;

/// What a node's place in a tree is made of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Links {
    parent: u32,
    child: [u32; 2],
    red: bool,
}

impl Links {
    /// Those of a node that is in no tree.
    pub(super) const OUT: Self = Self { parent: OUT, child: [NIL; 2], red: false };

    /// Whether the node is in no tree, for owners that set [`Links::OUT`] after a removal.
    #[inline]
    pub(super) const fn is_out(&self) -> bool {
        self.parent == OUT
    }

    /// The children, left and right.
    #[inline]
    pub(super) const fn children(&self) -> [u32; 2] {
        self.child
    }
}

/// What can be in a tree.
pub(super) trait Node {
    /// What nodes are sorted by.
    type Key: Copy;
    /// What is known of a subtree; `()` if nothing is.
    type Summary: Copy + PartialEq;
    /// On which side of a node with two children the neighbour is that takes its place when it is removed.
    const SUCCESSOR: Side = RIGHT;

    fn links(&self) -> &Links;
    fn links_mut(&mut self) -> &mut Links;
    fn key(&self) -> Self::Key;
    /// Whether a node with key `a` comes before one with key `b` that is in the tree already.
    fn is_before(a: Self::Key, b: Self::Key) -> bool;

    /// The summary of this node alone.
    fn own(&self) -> Self::Summary;
    /// The summary of this node and all below it, as last set.
    fn summary(&self) -> Self::Summary;
    fn set_summary(&mut self, summary: Self::Summary);
    /// The summary of two parts together, which is that of one of them.
    fn least(a: Self::Summary, b: Self::Summary) -> Self::Summary;
}

/// The nodes of any number of trees.
#[derive(Clone, Debug)]
pub(super) struct Nodes<N> {
    table: Table<Place, N>,
}

impl<N: Node> Nodes<N> {
    /// Makes `len` copies of a node. Allocates.
    pub(super) fn new(len: usize, node: N) -> Self
    where
        N: Clone,
    {
        Self { table: Table::new(len, node) }
    }

    /// The node at `n`; `None` for [`NIL`].
    #[inline]
    pub(super) fn get(&self, n: u32) -> Option<&N> {
        self.table.get(Place(n))
    }

    /// The node at `n`, to change, but for its key while it is in a tree; `None` for [`NIL`].
    #[inline]
    pub(super) fn get_mut(&mut self, n: u32) -> Option<&mut N> {
        self.table.get_mut(Place(n))
    }

    #[inline]
    pub(super) fn at(&self, n: u32) -> &N {
        &self.table[Place(n)]
    }

    #[inline]
    pub(super) fn at_mut(&mut self, n: u32) -> &mut N {
        &mut self.table[Place(n)]
    }

    #[inline]
    fn links(&self, n: u32) -> &Links {
        self.at(n).links()
    }

    #[inline]
    fn links_mut(&mut self, n: u32) -> &mut Links {
        self.at_mut(n).links_mut()
    }

    #[inline]
    fn is_red(&self, n: u32) -> bool {
        self.get(n).is_some_and(|node| node.links().red)
    }

    /// The node at one end of a tree; [`NIL`] if it is empty.
    pub(super) fn end(&self, root: u32, side: Side) -> u32 {
        let (mut end, mut at) = (NIL, root);
        while let Some(node) = self.get(at) {
            (end, at) = (at, node.links().child[side]);
        }
        end
    }

    /// The node before or behind `n` in its tree; [`NIL`] if there is none.
    pub(super) fn neighbour(&self, n: u32, side: Side) -> u32 {
        let below = self.links(n).child[side];
        if below != NIL {
            return self.end(below, 1 - side);
        }
        let (mut from, mut up) = (n, self.links(n).parent);
        while let Some(node) = self.get(up)
            && node.links().child[side] == from
        {
            (from, up) = (up, node.links().parent);
        }
        up
    }

    /// Adds `n`, which is in no tree, behind those with an equal key.
    #[inline]
    pub(super) fn insert(&mut self, root: &mut u32, n: u32) {
        let (key, own) = (self.at(n).key(), self.at(n).own());
        let (mut parent, mut at, mut side) = (NIL, *root, LEFT);
        while let Some(node) = self.get_mut(at) {
            // Each node on the way down gets the new one below it.
            let summary = N::least(node.summary(), own);
            node.set_summary(summary);
            side = usize::from(!N::is_before(key, node.key()));
            (parent, at) = (at, node.links().child[side]);
        }
        self.hang(root, n, parent, side);
    }

    /// Adds `n`, which is in no tree, as a leaf on one side of `parent`. Its summary is not passed on.
    #[inline]
    pub(super) fn hang(&mut self, root: &mut u32, n: u32, parent: u32, side: Side) {
        let node = self.at_mut(n);
        node.set_summary(node.own());
        *node.links_mut() = Links { parent, child: [NIL; 2], red: parent != NIL };
        let Some(above) = self.get_mut(parent) else {
            *root = n;
            return;
        };
        above.links_mut().child[side] = n;
        if above.links().red {
            self.mend_insertion(root, n, parent);
        }
    }

    /// `n` and its parent are both red.
    fn mend_insertion(&mut self, root: &mut u32, mut n: u32, mut parent: u32) {
        loop {
            // A red node is not the root, so there is a node above it.
            let grand = self.links(parent).parent;
            let links = self.links(grand);
            let side = usize::from(links.child[RIGHT] == parent);
            let (uncle, above) = (links.child[1 - side], links.parent);
            if !self.is_red(uncle) {
                if self.links(parent).child[1 - side] == n {
                    self.rotate(root, parent, n, side);
                    parent = n;
                }
                self.links_mut(parent).red = false;
                self.links_mut(grand).red = true;
                return self.rotate(root, grand, parent, 1 - side);
            }
            self.links_mut(parent).red = false;
            self.links_mut(uncle).red = false;
            if above == NIL {
                return;
            }
            self.links_mut(grand).red = true;
            if !self.is_red(above) {
                return;
            }
            (n, parent) = (grand, above);
        }
    }

    /// Takes `n` out of its tree. Its links stay as they are.
    #[inline]
    pub(super) fn remove(&mut self, root: &mut u32, n: u32) {
        let (links, own) = (*self.links(n), self.at(n).own());
        let (hole, parent, was_red) = match links.child {
            [NIL, only] | [only, NIL] => {
                self.replace(root, n, links.parent, only);
                (only, links.parent, links.red)
            }
            _ => self.splice_neighbour(root, n, &links),
        };
        self.narrow(links.parent, NIL, own);
        if was_red {
            return;
        }
        // A black node is missing above the hole: a red one there can turn black, else the tree must turn.
        match self.get_mut(hole) {
            Some(node) if node.links().red => node.links_mut().red = false,
            _ => self.mend_removal(root, hole, parent),
        }
    }

    /// Puts a neighbour of `n`, which has two children, in its place. Returns the node that is now in the
    /// neighbour's old place, the parent there, and whether a red node left there.
    fn splice_neighbour(&mut self, root: &mut u32, n: u32, links: &Links) -> (u32, u32, bool) {
        let (side, mut child) = (N::SUCCESSOR, links.child);
        let next = self.end(child[side], 1 - side);
        let Links { parent: above, child: below, red: was_red } = *self.links(next);
        let hole = below[side];
        let mut hole_parent = next;
        if above == n {
            child[side] = hole;
        } else {
            self.replace(root, next, above, hole);
            self.links_mut(child[side]).parent = next;
            self.narrow(above, n, self.at(next).own());
            hole_parent = above;
        }
        self.replace(root, n, links.parent, next);
        let moved = self.links_mut(next);
        (moved.child, moved.red) = (child, links.red);
        self.links_mut(child[1 - side]).parent = next;
        self.refresh(next);
        (hole, hole_parent, was_red)
    }

    /// Two black nodes are below one side of `parent` where the other side, with the black node `n` or none,
    /// has one.
    fn mend_removal(&mut self, root: &mut u32, mut n: u32, mut parent: u32) {
        while parent != NIL {
            let side = usize::from(self.links(parent).child[RIGHT] == n);
            let mut sibling = self.links(parent).child[1 - side];
            // A red sibling goes up, so that the new sibling is black; the cases below expect that.
            if self.is_red(sibling) {
                self.links_mut(sibling).red = false;
                self.links_mut(parent).red = true;
                self.rotate(root, parent, sibling, side);
                sibling = self.links(parent).child[1 - side];
            }
            let children = self.links(sibling).child;
            let (near, mut far) = (children[side], children[1 - side]);
            if !self.is_red(far) {
                if !self.is_red(near) {
                    // No red node to move over: both sides lose one black node, and the lack moves up to the
                    // parent, unless that is red and turns black.
                    self.links_mut(sibling).red = true;
                    let links = self.links_mut(parent);
                    if links.red {
                        links.red = false;
                        return;
                    }
                    (n, parent) = (parent, links.parent);
                    continue;
                }
                // The red nephew is on the near side: one rotation brings it to the far side.
                self.rotate(root, sibling, near, 1 - side);
                (far, sibling) = (sibling, near);
            }
            // The far nephew's red pays for the missing black node: one rotation, and the tree is balanced.
            let red = core::mem::replace(&mut self.links_mut(parent).red, false);
            self.links_mut(sibling).red = red;
            self.links_mut(far).red = false;
            return self.rotate(root, parent, sibling, side);
        }
    }

    /// Rotates `n` down to `side`; its child on the other side, `up`, takes its place.
    #[inline]
    fn rotate(&mut self, root: &mut u32, n: u32, up: u32, side: Side) {
        let sunk = self.at(n);
        let (summary, parent) = (sunk.summary(), sunk.links().parent);
        let risen = self.at_mut(up);
        risen.set_summary(summary);
        let inner = core::mem::replace(&mut risen.links_mut().child[side], n);
        let sunk = self.links_mut(n);
        sunk.child[1 - side] = inner;
        sunk.parent = up;
        if let Some(node) = self.get_mut(inner) {
            node.links_mut().parent = n;
        }
        self.replace(root, n, parent, up);
        self.refresh(n);
    }

    /// Puts `new`, or nothing, where `old` is below `parent`.
    #[inline]
    fn replace(&mut self, root: &mut u32, old: u32, parent: u32, new: u32) {
        match self.get_mut(parent) {
            Some(above) => {
                let child = &mut above.links_mut().child;
                child[usize::from(child[RIGHT] == old)] = new;
            }
            None => *root = new,
        }
        if let Some(node) = self.get_mut(new) {
            node.links_mut().parent = parent;
        }
    }

    /// A node with the summary `own` is no longer below `n` and those above it, up to `top`, exclusive.
    #[inline]
    fn narrow(&mut self, mut n: u32, top: u32, own: N::Summary) {
        // Only where it was the least can something change; the first node that stays as it was ends it.
        while n != top
            && let Some(node) = self.get(n)
            && node.summary() == own
        {
            let parent = node.links().parent;
            if !self.refresh(n) {
                return;
            }
            n = parent;
        }
    }

    /// Computes the summary of `n` from its own value and its children's; whether it changed.
    #[inline]
    fn refresh(&mut self, n: u32) -> bool {
        let node = self.at(n);
        let (before, mut least) = (node.summary(), node.own());
        for child in node.links().child {
            if let Some(below) = self.get(child) {
                least = N::least(least, below.summary());
            }
        }
        self.at_mut(n).set_summary(least);
        least != before
    }

    /// Walks the tree and panics if order, links, colours or summaries are wrong.
    pub(super) fn check(&self, root: u32) {
        assert!(!self.is_red(root), "red root");
        assert!(self.get(root).is_none_or(|top| top.links().parent == NIL), "a root with a parent");
        let (mut at, mut before, mut black_depth) = (self.end(root, LEFT), None::<&N>, None);
        while let Some(node) = self.get(at) {
            assert!(before.is_none_or(|b| !N::is_before(node.key(), b.key())), "out of order");
            self.check_node(at, &mut black_depth);
            (before, at) = (Some(node), self.neighbour(at, RIGHT));
        }
    }

    fn check_node(&self, n: u32, black_depth: &mut Option<u32>) {
        let node = self.at(n);
        let mut least = node.own();
        for child in node.links().child {
            let Some(below) = self.get(child) else { continue };
            assert!(below.links().parent == n, "a child that does not know its parent");
            assert!(!(node.links().red && below.links().red), "red below red");
            least = N::least(least, below.summary());
        }
        assert!(node.summary() == least, "stale summary");
        if node.links().child.contains(&NIL) {
            let blacks =
                core::iter::successors(Some(n), |&at| Some(self.links(at).parent).filter(|&up| up != NIL))
                    .filter(|&at| !self.is_red(at))
                    .count();
            let blacks = u32::try_from(blacks).unwrap_or(u32::MAX);
            assert_eq!(*black_depth.get_or_insert(blacks), blacks, "unequal black depth");
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::testkit::Random;
    use std::format;
    use std::string::String;
    use std::vec::Vec;

    /// A node with the least of its numbers as summary.
    #[derive(Clone, Debug)]
    struct Entry {
        links: Links,
        key: u32,
        number: u32,
        least: u32,
    }

    impl Node for Entry {
        type Key = u32;
        type Summary = u32;

        fn links(&self) -> &Links {
            &self.links
        }
        fn links_mut(&mut self) -> &mut Links {
            &mut self.links
        }
        fn key(&self) -> u32 {
            self.key
        }
        fn is_before(a: u32, b: u32) -> bool {
            a < b
        }
        fn own(&self) -> u32 {
            self.number
        }
        fn summary(&self) -> u32 {
            self.least
        }
        fn set_summary(&mut self, least: u32) {
            self.least = least;
        }
        fn least(a: u32, b: u32) -> u32 {
            a.min(b)
        }
    }

    fn nodes(len: usize) -> Nodes<Entry> {
        Nodes::new(len, Entry { links: Links::OUT, key: 0, number: 0, least: 0 })
    }

    /// Eight nodes, `n` with key `n`, inserted in this order; and the shape after each insertion.
    fn eight() -> (Nodes<Entry>, u32, Vec<String>) {
        let (mut nodes, mut root, mut shapes) = (nodes(8), NIL, Vec::new());
        for n in 0..8 {
            nodes.at_mut(n).key = n;
            nodes.insert(&mut root, n);
            nodes.check(root);
            shapes.push(shape(&nodes, root));
        }
        (nodes, root, shapes)
    }

    /// `(left number right)`, in lower case if red: letters a to z for 0 to 25.
    fn shape(nodes: &Nodes<Entry>, n: u32) -> String {
        if n == NIL {
            return String::new();
        }
        let [left, right] = nodes.links(n).children();
        let letter = char::from_u32(u32::from('A') + n).unwrap();
        let letter = if nodes.is_red(n) { letter.to_ascii_lowercase() } else { letter };
        format!("({}{letter}{})", shape(nodes, left), shape(nodes, right))
    }

    #[test]
    fn grows_as_in_the_textbook() {
        let (_, _, shapes) = eight();
        assert_eq!(
            shapes,
            [
                "(A)",
                "(A(b))",
                "((a)B(c))",
                "((A)B(C(d)))",
                "((A)B((c)D(e)))",
                "((A)B((C)d(E(f))))",
                "((A)B((C)d((e)F(g))))",
                "(((A)b(C))D((E)f(G(h))))",
            ]
        );
    }

    #[test]
    fn a_node_with_two_children_is_replaced_by_the_next() {
        let (mut nodes, mut root, _) = eight();
        nodes.remove(&mut root, 3);
        assert_eq!(shape(&nodes, root), "(((A)b(C))E((F)g(H)))");
        nodes.remove(&mut root, 0);
        assert_eq!(shape(&nodes, root), "((B(c))E((F)g(H)))");
        nodes.check(root);
    }

    /// All nodes of a tree, from one end towards `side`.
    fn walk(nodes: &Nodes<Entry>, root: u32, side: Side) -> impl Iterator<Item = u32> + '_ {
        let some = |n: u32| (n != NIL).then_some(n);
        core::iter::successors(some(nodes.end(root, 1 - side)), move |&n| some(nodes.neighbour(n, side)))
    }

    /// The twin: vectors sorted by key and order of insertion.
    #[test]
    fn agrees_with_sorted_vectors() {
        let mut nodes = nodes(64);
        let (mut roots, mut twins) = ([NIL; 2], [const { Vec::<u32>::new() }; 2]);
        let mut random = Random::new(1);
        for _ in 0..20_000 {
            let x = random.next();
            let [n, key, number] = [0, 8, 16].map(|shift| u32::try_from((x >> shift) % 64).unwrap());
            if let Some(i) = (0..2).find(|&i| twins[i].contains(&n)) {
                nodes.remove(&mut roots[i], n);
                twins[i].retain(|&other| other != n);
            } else {
                let i = usize::from(x >> 63 > 0);
                (nodes.at_mut(n).key, nodes.at_mut(n).number) = (key, number);
                nodes.insert(&mut roots[i], n);
                let behind = twins[i].partition_point(|&other| nodes.at(other).key <= key);
                twins[i].insert(behind, n);
            }
            for (&root, twin) in roots.iter().zip(&twins) {
                nodes.check(root);
                assert!(walk(&nodes, root, RIGHT).eq(twin.iter().copied()));
                assert!(walk(&nodes, root, LEFT).eq(twin.iter().rev().copied()));
                let least = twin.iter().map(|&n| nodes.at(n).number).min();
                assert_eq!(nodes.get(root).map(|node| node.least), least);
            }
        }
    }

    #[test]
    fn stays_shallow_however_sorted_the_keys_are() {
        for stride in [1, 4095, 1237] {
            let (mut nodes, mut root) = (nodes(4096), NIL);
            for n in 0..4096 {
                nodes.at_mut(n).key = n * stride % 4096;
                nodes.insert(&mut root, n);
            }
            nodes.check(root);
            let up = |&n: &u32| Some(nodes.links(n).parent).filter(|&up| up != NIL);
            let deepest = (0..4096).map(|n| core::iter::successors(Some(n), up).count()).max().unwrap();
            assert!(deepest <= 24, "{deepest} levels: more than twice the logarithm");
        }
    }
}
