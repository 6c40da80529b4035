//! Who ends where this request starts, and who starts where it ends: what can be merged.
//!
//! Who ends where this request starts, and who starts where it ends: what can be merged.
//!
//! Each request has two *edges*, its first sector and the sector behind its last. All edges are filed in one hash by
//! their sector, so that a newcomer looks twice: at its start for the ends of others (back merge), and at its end for
//! the starts of others (front merge). Mostly nobody is there, and then its own edges go to the very buckets that were
//! searched: [`MergeIndex::insert_alone`] looks and files in one go.
//!
//! The edges in one bucket form a chain, linked both ways; its first edge points back to the bucket. With eight buckets
//! for each edge most chains are empty, so the common case has its own short functions: both buckets empty, or
//! each edge alone in its own.
//!
//! ```text
//!   bucket 5 ──► end of [8,16) ⇄ start of [16,24)          bucket 6 ──► nothing
//! ```
//!
//! It does not know what may be merged: direction, limits and the scheduler's wishes are the elevator's business.

use crate::table::{NIL, Place, Table};
use crate::units::{Id, Sector, Tag};

/// How many buckets there are for each tag, at least: eight for each edge.
const BUCKETS_PER_TAG: usize = 16;
/// 2^64 divided by the golden ratio: Fibonacci hashing.
//= D. Knuth, The Art of Computer Programming, volume 3, section 6.4
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
/// In `prev`: the number of a bucket, not of an edge.
const BUCKET: u32 = 1 << 31;

/// Which edge: the tag doubled, plus one for the end. Or [`NIL`].
type EdgeId = u32;

#[derive(Clone, Copy, Debug)]
struct Edge {
    sector: Sector,
    next: EdgeId,
    /// The edge before, or [`BUCKET`] and the bucket.
    prev: u32,
}

/// See the [module](self).
#[derive(Debug)]
pub struct MergeIndex {
    /// The first edge of each bucket.
    heads: Table<Place, EdgeId>,
    /// Start and end of each tag.
    edges: Table<Tag, [Edge; 2]>,
    shift: u32,
}

impl MergeIndex {
    /// An index with room for the tags `0..tags`. Allocates.
    #[must_use]
    pub fn new(tags: u16) -> Self {
        let tags = usize::from(tags);
        let buckets = (tags.max(1) * BUCKETS_PER_TAG).next_power_of_two();
        Self {
            heads: Table::new(buckets, NIL),
            edges: Table::new(tags, [Edge { sector: Sector(0), next: NIL, prev: BUCKET }; 2]),
            shift: 64 - buckets.trailing_zeros(),
        }
    }

    /// Files `tag`, which is not filed and covers the sectors from `start` to before `end`, if both its buckets are empty:
    /// then no other request touches it. Answers whether it is filed.
    #[inline(always)]
    pub fn insert_alone(&mut self, tag: Tag, start: Sector, end: Sector) -> bool {
        let (at_start, at_end) = (self.bucket(start), self.bucket(end));
        let both_empty = self.heads[at_start] & self.heads[at_end] == NIL;
        if !both_empty || at_start == at_end {
            return false;
        }
        self.heads[at_start] = start_of(tag);
        self.heads[at_end] = end_of(tag);
        self.edges[tag] = [
            Edge { sector: start, next: NIL, prev: BUCKET | at_start.0 },
            Edge { sector: end, next: NIL, prev: BUCKET | at_end.0 },
        ];
        true
    }

    /// Files `tag`, which is not filed, and covers the sectors from `start` to before `end`.
    pub fn insert(&mut self, tag: Tag, start: Sector, end: Sector) {
        self.link(start_of(tag), start);
        self.link(end_of(tag), end);
    }

    /// Removes `tag`, which is filed, if each of its edges is alone in its bucket. Answers whether it is removed.
    #[inline(always)]
    pub fn remove_alone(&mut self, tag: Tag) -> bool {
        let [start, end] = &self.edges[tag];
        let (at_start, at_end) = (start.prev, end.prev);
        if start.next & end.next != NIL || at_start & at_end & BUCKET == 0 {
            return false;
        }
        self.heads[Place(at_start & !BUCKET)] = NIL;
        self.heads[Place(at_end & !BUCKET)] = NIL;
        true
    }

    /// Removes `tag`, which is filed.
    pub fn remove(&mut self, tag: Tag) {
        self.unlink(start_of(tag));
        self.unlink(end_of(tag));
    }

    /// `tag`, which is filed, starts at `start` now.
    pub fn move_start(&mut self, tag: Tag, start: Sector) {
        self.unlink(start_of(tag));
        self.link(start_of(tag), start);
    }

    /// `tag`, which is filed, ends before `end` now.
    pub fn move_end(&mut self, tag: Tag, end: Sector) {
        self.unlink(end_of(tag));
        self.link(end_of(tag), end);
    }

    /// The requests that start at `sector`, the one filed last first.
    pub fn starting_at(&self, sector: Sector) -> impl Iterator<Item = Tag> + '_ {
        self.edges_at(sector).filter(|id| id & 1 == 0).map(tag_of)
    }

    /// The requests that end before `sector`, the one filed last first.
    pub fn ending_at(&self, sector: Sector) -> impl Iterator<Item = Tag> + '_ {
        self.edges_at(sector).filter(|id| id & 1 == 1).map(tag_of)
    }

    fn edges_at(&self, sector: Sector) -> impl Iterator<Item = EdgeId> + '_ {
        let mut at = self.heads[self.bucket(sector)];
        core::iter::from_fn(move || {
            while at != NIL {
                let (id, edge) = (at, self.edge(at));
                at = edge.next;
                if edge.sector == sector {
                    return Some(id);
                }
            }
            None
        })
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "shifted to the number of buckets")]
    fn bucket(&self, sector: Sector) -> Place {
        Place((sector.0.wrapping_mul(GOLDEN) >> self.shift) as u32)
    }

    fn edge(&self, id: EdgeId) -> &Edge {
        &self.edges[tag_of(id)][(id & 1) as usize]
    }

    fn edge_mut(&mut self, id: EdgeId) -> &mut Edge {
        &mut self.edges[tag_of(id)][(id & 1) as usize]
    }

    fn link(&mut self, id: EdgeId, sector: Sector) {
        let bucket = self.bucket(sector);
        let next = core::mem::replace(&mut self.heads[bucket], id);
        *self.edge_mut(id) = Edge { sector, next, prev: BUCKET | bucket.0 };
        if next != NIL {
            self.edge_mut(next).prev = id;
        }
    }

    fn unlink(&mut self, id: EdgeId) {
        let Edge { next, prev, .. } = *self.edge(id);
        if prev & BUCKET == 0 {
            self.edge_mut(prev).next = next;
        } else {
            debug_assert!(self.heads[Place(prev & !BUCKET)] == id, "not filed");
            self.heads[Place(prev & !BUCKET)] = next;
        }
        if next != NIL {
            self.edge_mut(next).prev = prev;
        }
    }
}

#[inline]
fn start_of(tag: Tag) -> EdgeId {
    u32::from(tag.0) * 2
}

#[inline]
fn end_of(tag: Tag) -> EdgeId {
    u32::from(tag.0) * 2 + 1
}

#[inline]
fn tag_of(id: EdgeId) -> Tag {
    Tag::from_index((id / 2) as usize)
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
        assert!(!index.insert_alone(Tag(1), Sector(16), Sector(24)), "starts where the other ends");
        assert!(!index.insert_alone(Tag(1), Sector(0), Sector(8)), "ends where the other starts");
        assert!(
            index.starting_at(Sector(16)).next().is_none() && index.ending_at(Sector(8)).next().is_none()
        );
        index.insert(Tag(1), Sector(16), Sector(24));
        assert!(!index.remove_alone(Tag(0)) && !index.remove_alone(Tag(1)), "they share a bucket");
        index.remove(Tag(1));
        assert!(index.remove_alone(Tag(0)));
        assert!(
            index.starting_at(Sector(8)).next().is_none() && index.ending_at(Sector(16)).next().is_none()
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
                if !index.remove_alone(tag) {
                    index.remove(tag);
                }
            } else {
                let end = start + len;
                let touches = twin.iter().any(|t| t.2 == start || t.1 == end);
                let filed = index.insert_alone(tag, Sector(start), Sector(end));
                assert!(!(filed && touches), "merges would be missed");
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
