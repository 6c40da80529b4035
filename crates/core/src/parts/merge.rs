//! Who ends where this request starts, and who starts where it ends: what can be merged.
//!
//! Who ends where this request starts, and who starts where it ends: what can be merged.
//!
//! Each request has two *edges*, its first sector and the sector behind its last. All edges are filed in one hash by
//! their sector, so that a newcomer looks twice: at its start for the ends of others (back merge), and at its end for
//! the starts of others (front merge). Mostly nobody is there, and then its own edges go to the very buckets that were
//! searched: [`MergeIndex::insert_alone`] looks and files in one go.
//!
//! The chain of a bucket is a ring that goes through the bucket, and buckets and edges are nodes of one table. So
//! nothing is at an end, and to file or remove an edge takes no branch:
//!
//! ```text
//!   bucket 5 ──► end of [8,16) ──► start of [16,24) ──► bucket 5          empty:   bucket 6 ──► bucket 6
//! ```
//!
//! It does not know what may be merged: direction, limits and the scheduler's wishes are the elevator's business.

use crate::table::{Place, Table};
use crate::units::{Id, Sector, Tag};

/// How many buckets there are for each tag, at least: two for each edge, so that most chains are empty.
const BUCKETS_PER_TAG: usize = 4;
/// 2^64 divided by the golden ratio: Fibonacci hashing.
//= D. Knuth, The Art of Computer Programming, volume 3, section 6.4
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

#[derive(Clone, Copy, Debug)]
struct Node {
    sector: Sector,
    next: Place,
    prev: Place,
}

/// See the [module](self).
#[derive(Debug)]
pub struct MergeIndex {
    /// First the buckets, then two for each tag: start and end.
    nodes: Table<Place, Node>,
    buckets: u32,
    shift: u32,
}

impl MergeIndex {
    /// An index with room for the tags `0..tags`. Allocates.
    #[must_use]
    pub fn new(tags: u16) -> Self {
        let tags = usize::from(tags);
        let buckets = (tags.max(1) * BUCKETS_PER_TAG).next_power_of_two();
        let node = Node { sector: Sector(0), next: Place(0), prev: Place(0) };
        let mut nodes = Table::new(buckets + 2 * tags, node);
        for (at, node) in nodes.iter_mut() {
            (node.next, node.prev) = (at, at);
        }
        Self { nodes, buckets: Place::from_index(buckets).0, shift: 64 - buckets.trailing_zeros() }
    }

    /// Files `tag`, which is not filed and covers the sectors from `start` to before `end`, if no other request touches
    /// it. Answers whether it is filed.
    #[inline(always)]
    pub fn insert_alone(&mut self, tag: Tag, start: Sector, end: Sector) -> bool {
        let (bucket_start, bucket_end) = (self.bucket(start), self.bucket(end));
        let (at_start, at_end) = (self.start(tag), self.end(tag));
        let nodes = self.nodes.as_mut_slice();
        if holds(nodes, bucket_start, start, at_end) || holds(nodes, bucket_end, end, at_start) {
            return false;
        }
        link(nodes, bucket_start, at_start, start);
        link(nodes, bucket_end, at_end, end);
        true
    }

    /// Files `tag`, which is not filed, and covers the sectors from `start` to before `end`.
    pub fn insert(&mut self, tag: Tag, start: Sector, end: Sector) {
        self.file(self.start(tag), start);
        self.file(self.end(tag), end);
    }

    /// Removes `tag`, which is filed.
    #[inline(always)]
    pub fn remove(&mut self, tag: Tag) {
        let (start, end) = (self.start(tag), self.end(tag));
        let nodes = self.nodes.as_mut_slice();
        unlink(nodes, start);
        unlink(nodes, end);
    }

    /// `tag`, which is filed, starts at `start` now.
    pub fn move_start(&mut self, tag: Tag, start: Sector) {
        let at = self.start(tag);
        unlink(self.nodes.as_mut_slice(), at);
        self.file(at, start);
    }

    /// `tag`, which is filed, ends before `end` now.
    pub fn move_end(&mut self, tag: Tag, end: Sector) {
        let at = self.end(tag);
        unlink(self.nodes.as_mut_slice(), at);
        self.file(at, end);
    }

    /// The requests that start at `sector`, the one filed last first.
    pub fn starting_at(&self, sector: Sector) -> impl Iterator<Item = Tag> + '_ {
        self.edges_at(sector).filter(|edge| edge % 2 == 0).map(|edge| Tag::from_index(edge / 2))
    }

    /// The requests that end before `sector`, the one filed last first.
    pub fn ending_at(&self, sector: Sector) -> impl Iterator<Item = Tag> + '_ {
        self.edges_at(sector).filter(|edge| edge % 2 == 1).map(|edge| Tag::from_index(edge / 2))
    }

    fn edges_at(&self, sector: Sector) -> impl Iterator<Item = usize> + '_ {
        let bucket = self.bucket(sector);
        core::iter::successors(Some(bucket), |&at| Some(self.nodes[at].next))
            .skip(1)
            .take_while(move |&at| at != bucket)
            .filter(move |&at| self.nodes[at].sector == sector)
            .map(|at| (at.0 - self.buckets) as usize)
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "shifted to the number of buckets")]
    fn bucket(&self, sector: Sector) -> Place {
        Place((sector.0.wrapping_mul(GOLDEN) >> self.shift) as u32)
    }

    #[inline]
    fn start(&self, tag: Tag) -> Place {
        Place(self.buckets + u32::from(tag.0) * 2)
    }

    #[inline]
    fn end(&self, tag: Tag) -> Place {
        Place(self.buckets + u32::from(tag.0) * 2 + 1)
    }

    fn file(&mut self, at: Place, sector: Sector) {
        let bucket = self.bucket(sector);
        link(self.nodes.as_mut_slice(), bucket, at, sector);
    }
}

/// Whether `bucket` holds an edge at `sector` of the kind of `like`: a start or an end.
#[inline(always)]
fn holds(nodes: &[Node], bucket: Place, sector: Sector, like: Place) -> bool {
    let mut at = nodes[bucket.index()].next;
    while at != bucket {
        let node = &nodes[at.index()];
        // The number of buckets is even, so starts are at even places.
        if node.sector == sector && (at.0 ^ like.0) & 1 == 0 {
            return true;
        }
        at = node.next;
    }
    false
}

#[inline(always)]
fn link(nodes: &mut [Node], bucket: Place, at: Place, sector: Sector) {
    let next = nodes[bucket.index()].next;
    nodes[bucket.index()].next = at;
    nodes[next.index()].prev = at;
    nodes[at.index()] = Node { sector, next, prev: bucket };
}

#[inline(always)]
fn unlink(nodes: &mut [Node], at: Place) {
    let Node { next, prev, .. } = nodes[at.index()];
    debug_assert!(nodes[prev.index()].next == at, "not filed");
    nodes[prev.index()].next = next;
    nodes[next.index()].prev = prev;
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    #[test]
    fn tells_starts_from_ends_at_the_same_sector() {
        let mut index = MergeIndex::new(4);
        index.insert(Tag(0), Sector(0), Sector(8));
        index.insert(Tag(1), Sector(8), Sector(16));
        index.insert(Tag(2), Sector(4), Sector(8));
        assert_eq!(index.ending_at(Sector(8)).map(|t| t.0).collect::<Vec<_>>(), [2, 0]);
        assert!(index.starting_at(Sector(8)).eq([Tag(1)]));
        index.move_end(Tag(2), Sector(24));
        index.move_start(Tag(1), Sector(6));
        assert!(index.ending_at(Sector(8)).eq([Tag(0)]) && index.starting_at(Sector(8)).next().is_none());
        assert!(index.ending_at(Sector(24)).eq([Tag(2)]) && index.starting_at(Sector(6)).eq([Tag(1)]));
        index.remove(Tag(0));
        assert!(index.ending_at(Sector(8)).next().is_none());
    }

    #[test]
    fn files_alone_only_who_touches_nobody() {
        let mut index = MergeIndex::new(4);
        assert!(index.insert_alone(Tag(0), Sector(8), Sector(16)));
        assert!(index.insert_alone(Tag(1), Sector(8), Sector(16)), "the same place does not touch");
        assert!(!index.insert_alone(Tag(2), Sector(16), Sector(24)), "starts where others end");
        assert!(!index.insert_alone(Tag(2), Sector(0), Sector(8)), "ends where others start");
        assert!(
            index.starting_at(Sector(16)).next().is_none() && index.ending_at(Sector(8)).next().is_none()
        );
    }

    /// The twin: a list of requests. Few sectors, so that chains are long.
    #[test]
    fn agrees_with_a_list() {
        let mut index = MergeIndex::new(16);
        let mut twin: Vec<(Tag, u64, u64)> = Vec::new();
        let mut x = 0x9e37_79b9_7f4a_7c15_u64;
        for _ in 0..20_000 {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            let (tag, start, len) = (Tag((x % 16) as u16), (x >> 8) % 12, 1 + (x >> 16) % 4);
            if let Some(i) = twin.iter().position(|t| t.0 == tag) {
                twin.remove(i);
                index.remove(tag);
            } else {
                let end = start + len;
                let touches = twin.iter().any(|t| t.2 == start || t.1 == end);
                let filed = index.insert_alone(tag, Sector(start), Sector(end));
                assert_eq!(filed, !touches);
                if !filed {
                    index.insert(tag, Sector(start), Sector(end));
                }
                twin.push((tag, start, end));
            }
            for sector in 0..16 {
                let starting = twin.iter().rev().filter(|t| t.1 == sector).map(|t| t.0);
                let ending = twin.iter().rev().filter(|t| t.2 == sector).map(|t| t.0);
                assert!(index.starting_at(Sector(sector)).eq(starting), "starts at {sector}");
                assert!(index.ending_at(Sector(sector)).eq(ending), "ends at {sector}");
            }
        }
    }
}
