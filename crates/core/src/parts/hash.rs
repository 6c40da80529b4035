//! Look-up by a number that repeats: which requests end at sector X?
//!
//! A chained hash of fixed size: a power of two of buckets, at least one for each id, and one node per id.
//! Several ids may have the same key; [`Hash::find`] walks them, newest first. Used for merging (keys are end
//! and start sectors) and for finding a task's slot by its number.
//!
//! Each chain is a ring that goes through its bucket, and buckets and ids are nodes of one table. So nothing
//! is at an end, and to file or remove an id takes no branch:
//!
//! ```text
//!   bucket 5 ──► id 9 ──► id 2 ──► bucket 5          empty:   bucket 6 ──► bucket 6
//! ```

use crate::table::{Place, Table};
use crate::units::Id;
use core::marker::PhantomData;

/// 2^64 divided by the golden ratio: Fibonacci hashing.
//= D. Knuth, The Art of Computer Programming, volume 3, section 6.4
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

#[derive(Clone, Copy, Debug)]
struct Node {
    key: u64,
    next: Place,
    prev: Place,
}

/// A fixed hash from keys to ids.
#[derive(Clone, Debug)]
pub(crate) struct Hash<I> {
    /// First one for each id, then one for each bucket.
    nodes: Table<Place, Node>,
    buckets: u32,
    shift: u32,
    id: PhantomData<I>,
}

impl<I: Id> Hash<I> {
    /// A hash with room for the ids `0..len`. Allocates.
    #[must_use]
    pub(crate) fn new(len: usize) -> Self {
        let size = len.max(2).next_power_of_two();
        let nowhere = Place(0);
        let mut nodes = Table::new(len + size, Node { key: 0, next: nowhere, prev: nowhere });
        for (at, node) in nodes.iter_mut().skip(len) {
            (node.next, node.prev) = (at, at);
        }
        Self { nodes, buckets: Place::from_index(len).0, shift: 64 - size.trailing_zeros(), id: PhantomData }
    }

    /// Files `id`, which is not filed, under `key`.
    #[inline]
    pub(crate) fn insert(&mut self, id: I, key: u64) {
        let (bucket, at) = (self.bucket(key), Place::of(id));
        debug_assert!(at.0 < self.buckets, "no such id");
        let next = self.nodes[bucket].next;
        self.nodes[bucket].next = at;
        self.nodes[next].prev = at;
        self.nodes[at] = Node { key, next, prev: bucket };
    }

    /// Removes `id`, which is filed.
    #[inline]
    pub(crate) fn remove(&mut self, id: I) {
        let Node { next, prev, .. } = self.nodes[Place::of(id)];
        debug_assert!(self.nodes[prev].next == Place::of(id), "not filed");
        self.nodes[prev].next = next;
        self.nodes[next].prev = prev;
    }

    /// The ids filed under `key`, newest first.
    #[inline]
    pub(crate) fn find(&self, key: u64) -> impl Iterator<Item = I> + '_ {
        let mut at = self.nodes[self.bucket(key)].next;
        core::iter::from_fn(move || {
            while at.0 < self.buckets {
                let (node, id) = (&self.nodes[at], I::from_index(at.index()));
                at = node.next;
                if node.key == key {
                    return Some(id);
                }
            }
            None
        })
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "shifted to the number of buckets")]
    fn bucket(&self, key: u64) -> Place {
        Place(self.buckets + (key.wrapping_mul(GOLDEN) >> self.shift) as u32)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::units::Tag;
    use std::vec::Vec;

    #[test]
    fn finds_all_of_a_key_and_only_those() {
        let mut hash = Hash::<Tag>::new(16);
        for i in 0..16 {
            hash.insert(Tag(i), u64::from(i % 3));
        }
        hash.remove(Tag(3));
        hash.remove(Tag(15));
        let mut got: Vec<u16> = hash.find(0).map(|t| t.0).collect();
        got.sort_unstable();
        assert_eq!(got, [0, 6, 9, 12]);
        assert_eq!(hash.find(99).count(), 0);
    }
}
