//! Look-up by a number that repeats: which requests end at sector X?
//!
//! A chained hash of fixed size: a power of two of buckets, at least one for each id, and one link per id. Several ids
//! may have the same key; [`Hash::find`] walks them, newest first. Used for merging (keys are end and start sectors)
//! and for finding a task's slot by its number.

use crate::table::Table;
use crate::units::Id;

const NIL: u32 = u32::MAX;
/// 2^64 divided by the golden ratio: Fibonacci hashing.
//= D. Knuth, The Art of Computer Programming, volume 3, section 6.4
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Bucket(u32);

impl Id for Bucket {
    fn index(self) -> usize {
        self.0 as usize
    }
    #[allow(clippy::cast_possible_truncation, reason = "fewer than 2^32 buckets")]
    fn from_index(i: usize) -> Self {
        Self(i as u32)
    }
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    key: u64,
    prev: u32,
    next: u32,
}

/// A fixed hash from keys to ids.
#[derive(Debug)]
pub struct Hash<I> {
    buckets: Table<Bucket, u32>,
    entries: Table<I, Entry>,
    shift: u32,
}

impl<I: Id> Hash<I> {
    /// A hash with room for the ids `0..len`. Allocates.
    #[must_use]
    pub fn new(len: usize) -> Self {
        let size = len.max(2).next_power_of_two();
        Self {
            buckets: Table::new(size, NIL),
            entries: Table::new(len, Entry { key: 0, prev: NIL, next: NIL }),
            shift: 64 - size.trailing_zeros(),
        }
    }

    /// Files `id`, which is not filed, under `key`.
    #[allow(clippy::cast_possible_truncation, reason = "an id is below 2^32")]
    pub fn insert(&mut self, id: I, key: u64) {
        let bucket = self.bucket(key);
        let next = self.buckets[bucket];
        self.entries[id] = Entry { key, prev: NIL, next };
        if next != NIL {
            self.entries[I::from_index(next as usize)].prev = id.index() as u32;
        }
        self.buckets[bucket] = id.index() as u32;
    }

    /// Removes `id`, which is filed.
    pub fn remove(&mut self, id: I) {
        let Entry { key, prev, next } = self.entries[id];
        if prev == NIL {
            let bucket = self.bucket(key);
            debug_assert!(self.buckets[bucket] as usize == id.index(), "not filed");
            self.buckets[bucket] = next;
        } else {
            self.entries[I::from_index(prev as usize)].next = next;
        }
        if next != NIL {
            self.entries[I::from_index(next as usize)].prev = prev;
        }
    }

    /// The ids filed under `key`, newest first.
    pub fn find(&self, key: u64) -> impl Iterator<Item = I> + '_ {
        let mut at = self.buckets[self.bucket(key)];
        core::iter::from_fn(move || {
            while at != NIL {
                let id = I::from_index(at as usize);
                let entry = &self.entries[id];
                at = entry.next;
                if entry.key == key {
                    return Some(id);
                }
            }
            None
        })
    }

    #[allow(clippy::cast_possible_truncation, reason = "shifted to the number of buckets")]
    fn bucket(&self, key: u64) -> Bucket {
        Bucket((key.wrapping_mul(GOLDEN) >> self.shift) as u32)
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
