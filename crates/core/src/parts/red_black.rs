//! Just the shape of a red-black tree: which node hangs where, as textbooks and Linux keep it.
//!
//! Our own trees are shaped otherwise, which does not show in their answers. A search that depends on the
//! shape, as the kernel's for the next entity does, can only be repeated on the same shape: this is what it
//! is for, and it is used for comparisons with a kernel and for nothing else.
//!
//! Insertion goes down to a leaf, behind equals; what is removed with two children is replaced by the next in
//! order. The repairs are the usual ones, mirrored by an index: a *side* is 0 for left and 1 for right.
//
//= paper: L. Guibas, R. Sedgewick 1978, "A dichromatic framework for balanced trees"
//= book: T. Cormen et al., "Introduction to Algorithms", red-black trees

use crate::table::{NIL, Place, Table};

#[derive(Clone, Copy, Debug)]
struct Node {
    parent: u32,
    child: [u32; 2],
    red: bool,
}

/// The nodes of any number of trees; a tree is the number of its root.
#[derive(Clone, Debug)]
pub(super) struct RedBlack {
    nodes: Table<Place, Node>,
}

impl RedBlack {
    /// Room for the nodes `0..len`. Allocates.
    pub(super) fn new(len: usize) -> Self {
        Self { nodes: Table::new(len, Node { parent: NIL, child: [NIL; 2], red: false }) }
    }

    /// The children of a node, left and right.
    pub(super) fn children(&self, n: u32) -> [u32; 2] {
        self.at(n).child
    }

    /// Adds `n`, which is in no tree, before the first node for which `is_before` answers true.
    pub(super) fn insert(&mut self, root: &mut u32, n: u32, is_before: impl Fn(u32) -> bool) {
        let (mut parent, mut at, mut side) = (NIL, *root, 0);
        while at != NIL {
            side = usize::from(!is_before(at));
            (parent, at) = (at, self.at(at).child[side]);
        }
        *self.at_mut(n) = Node { parent, child: [NIL; 2], red: true };
        match parent {
            NIL => *root = n,
            _ => self.at_mut(parent).child[side] = n,
        }
        self.mend_insertion(root, n);
        self.at_mut(*root).red = false;
    }

    /// Two red nodes may follow each other at `n`.
    fn mend_insertion(&mut self, root: &mut u32, mut n: u32) {
        loop {
            let mut parent = self.at(n).parent;
            if !self.is_red(parent) {
                return;
            }
            // A red node is not the root.
            let grand = self.at(parent).parent;
            let side = self.side(grand, parent);
            let uncle = self.at(grand).child[1 - side];
            self.at_mut(grand).red = true;
            if self.is_red(uncle) {
                self.at_mut(parent).red = false;
                self.at_mut(uncle).red = false;
                n = grand;
                continue;
            }
            if self.side(parent, n) != side {
                self.rotate(root, parent, side);
                parent = n;
            }
            self.at_mut(parent).red = false;
            return self.rotate(root, grand, 1 - side);
        }
    }

    /// Takes `n` out of its tree.
    pub(super) fn remove(&mut self, root: &mut u32, n: u32) {
        let Node { parent, child: [left, right], red } = *self.at(n);
        if left == NIL || right == NIL {
            let child = if left == NIL { right } else { left };
            self.hang(root, parent, n, child);
            if child != NIL {
                self.at_mut(child).red = false;
            } else if !red {
                self.mend_removal(root, parent);
            }
            return;
        }
        // Two children: the successor takes the place and colour of `n`, so what is missing is missing where
        // the successor was.
        let mut next = right;
        while self.at(next).child[0] != NIL {
            next = self.at(next).child[0];
        }
        let Node { parent: above, child: [_, below], red: next_red } = *self.at(next);
        let short = if above == n { next } else { above };
        if above != n {
            self.hang(root, above, next, below);
            self.at_mut(next).child[1] = right;
            self.at_mut(right).parent = next;
        }
        self.hang(root, parent, n, next);
        self.at_mut(next).child[0] = left;
        self.at_mut(left).parent = next;
        self.at_mut(next).red = red;
        if below != NIL {
            self.at_mut(below).red = false;
        } else if !next_red {
            self.mend_removal(root, short);
        }
    }

    /// On one side of `parent` a black node is missing.
    fn mend_removal(&mut self, root: &mut u32, mut parent: u32) {
        let mut n = NIL;
        while parent != NIL {
            let side = usize::from(self.at(parent).child[1] == n);
            let mut sibling = self.at(parent).child[1 - side];
            // A red sibling goes up, so that the new sibling is black; the cases below expect that.
            if self.is_red(sibling) {
                self.at_mut(sibling).red = false;
                self.at_mut(parent).red = true;
                self.rotate(root, parent, side);
                sibling = self.at(parent).child[1 - side];
            }
            let (inner, outer) = (self.at(sibling).child[side], self.at(sibling).child[1 - side]);
            // No red node to move over: the sibling's side loses a black node, too, and the lack moves up.
            if !self.is_red(inner) && !self.is_red(outer) {
                self.at_mut(sibling).red = true;
                if self.is_red(parent) {
                    self.at_mut(parent).red = false;
                    return;
                }
                (n, parent) = (parent, self.at(parent).parent);
                continue;
            }
            // One rotation brings the red nephew to the outer side.
            if !self.is_red(outer) {
                self.at_mut(inner).red = false;
                self.at_mut(sibling).red = true;
                self.rotate(root, sibling, 1 - side);
                sibling = inner;
            }
            self.at_mut(sibling).red = self.at(parent).red;
            self.at_mut(parent).red = false;
            let outer = self.at(sibling).child[1 - side];
            self.at_mut(outer).red = false;
            return self.rotate(root, parent, side);
        }
    }

    /// Lets `n` sink to one side; its child on the other takes its place.
    fn rotate(&mut self, root: &mut u32, n: u32, side: usize) {
        let up = self.at(n).child[1 - side];
        let inner = self.at(up).child[side];
        let parent = self.at(n).parent;
        self.at_mut(n).child[1 - side] = inner;
        if inner != NIL {
            self.at_mut(inner).parent = n;
        }
        self.hang(root, parent, n, up);
        self.at_mut(up).child[side] = n;
        self.at_mut(n).parent = up;
    }

    /// Hangs `new` where `old` was below `parent`.
    fn hang(&mut self, root: &mut u32, parent: u32, old: u32, new: u32) {
        match parent {
            NIL => *root = new,
            _ => {
                let side = self.side(parent, old);
                self.at_mut(parent).child[side] = new;
            }
        }
        if new != NIL {
            self.at_mut(new).parent = parent;
        }
    }

    fn side(&self, parent: u32, n: u32) -> usize {
        usize::from(self.at(parent).child[1] == n)
    }

    fn is_red(&self, n: u32) -> bool {
        n != NIL && self.at(n).red
    }

    fn at(&self, n: u32) -> &Node {
        &self.nodes[Place(n)]
    }

    fn at_mut(&mut self, n: u32) -> &mut Node {
        &mut self.nodes[Place(n)]
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::format;
    use std::string::String;
    use std::vec::Vec;

    /// `(left number right)`, in lower case if red: letters a to z for 0 to 25.
    fn shape(tree: &RedBlack, n: u32) -> String {
        if n == NIL {
            return String::new();
        }
        let [left, right] = tree.children(n);
        let letter = char::from_u32(u32::from('A') + n).unwrap();
        let letter = if tree.is_red(n) { letter.to_ascii_lowercase() } else { letter };
        format!("({}{letter}{})", shape(tree, left), shape(tree, right))
    }

    #[test]
    fn grows_as_in_the_textbook() {
        let (mut tree, mut root) = (RedBlack::new(8), NIL);
        let mut shapes = Vec::new();
        for n in 0..8 {
            tree.insert(&mut root, n, |at| n < at);
            shapes.push(shape(&tree, root));
        }
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
        let (mut tree, mut root) = (RedBlack::new(8), NIL);
        (0..8).for_each(|n| tree.insert(&mut root, n, |at| n < at));
        tree.remove(&mut root, 3);
        assert_eq!(shape(&tree, root), "(((A)b(C))E((F)g(H)))");
        tree.remove(&mut root, 0);
        assert_eq!(shape(&tree, root), "((B(c))E((F)g(H)))");
    }

    /// Number of black nodes on every way down, with the order and the colours checked.
    fn check(tree: &RedBlack, n: u32, order: &mut Vec<u32>) -> u32 {
        if n == NIL {
            return 1;
        }
        let [left, right] = tree.children(n);
        for child in [left, right] {
            assert!(!(tree.is_red(n) && tree.is_red(child)), "two red ones");
            assert!(child == NIL || tree.at(child).parent == n, "a wrong parent");
        }
        let black = check(tree, left, order);
        order.push(n);
        assert_eq!(check(tree, right, order), black, "black height");
        black + u32::from(!tree.is_red(n))
    }

    #[test]
    fn stays_a_red_black_tree() {
        let (mut tree, mut root) = (RedBlack::new(64), NIL);
        let mut kept: Vec<u32> = Vec::new();
        let mut x = 0x9E37_79B9_7F4A_7C15_u64;
        for _ in 0..20_000 {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            let n = u32::try_from(x % 64).unwrap();
            match kept.binary_search(&n) {
                Ok(at) => {
                    kept.remove(at);
                    tree.remove(&mut root, n);
                }
                Err(at) => {
                    kept.insert(at, n);
                    tree.insert(&mut root, n, |other| n < other);
                }
            }
            let mut order = Vec::new();
            check(&tree, root, &mut order);
            assert!(!tree.is_red(root));
            assert_eq!(order, kept);
        }
    }
}
