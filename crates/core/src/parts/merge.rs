//! Finds the requests that a request can merge with: those that end where it starts, and those that start
//! where it ends.
//!
//! Each request has two *edges*, its first sector and the sector behind its last. All edges are filed in one
//! hash by their sector, so that a newcomer looks twice: at its start for the ends of others (back merge),
//! and at its end for the starts of others (front merge). Mostly none is there ([`MergeIndex::is_quiet`]),
//! and then its own edges go to the very buckets that were searched.
//!
//! The edges in one bucket form a chain, newest first. To file one takes no branch, and one that is first in
//! its chain is taken out without looking at the others. With sixteen buckets for each edge nearly every
//! chain has one edge or none.
//!
//! ```text
//!   bucket 5 ──► end of [8,16) ──► start of [16,24)          bucket 6 ──► nothing
//! ```
//!
//! A scheduler that wants no front merges from here has half of the work ([`Edges::Ends`]).
//!
//! It does not know what may be merged: direction, limits and the scheduler's wishes are the elevator's
//! business.

use crate::table::{NIL, Place, Table};
use crate::units::{Id, Sector, Tag};

/// How many buckets there are for each tag, at least: sixteen for each edge. Measured: with eight, more meet
/// a stranger in their bucket, and a request costs 3 (noop) to 11 instructions more.
const BUCKETS_PER_TAG: usize = 32;

/// There are no more buckets than that: tags that are many are for hardware queues that hold requests after
/// they were issued, and those are not filed. Tables of 512 KiB or 2 MiB for each of several disks would not
/// fit the processor's caches, and a miss costs more than a stranger.
const BUCKETS_MAX: usize = 1 << 15;
/// 2^64 divided by the golden ratio: Fibonacci hashing.
//= D. Knuth, The Art of Computer Programming, volume 3, section 6.4
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Which edge: the tag doubled, plus one for the end. Or [`NIL`].
type EdgeId = u32;

/// The edges of requests that are filed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Edges {
    /// Starts and ends: front and back merges.
    Both,
    /// Ends: back merges only.
    Ends,
}

#[derive(Clone, Copy, Debug)]
struct Edge {
    sector: Sector,
    /// The next in the chain.
    next: EdgeId,
    /// Where the chain starts.
    bucket: Place,
}

/// See the [module](self). The user of an index chooses which [`Edges`] are filed, always the same.
#[derive(Clone, Debug)]
pub(crate) struct MergeIndex {
    /// The first edge of each bucket.
    heads: Table<Place, EdgeId>,
    /// Start and end of each tag.
    edges: Table<Tag, [Edge; 2]>,
    shift: u32,
}

impl MergeIndex {
    /// An index with room for the tags `0..tags`. Allocates.
    #[must_use]
    pub(crate) fn new(tags: u16) -> Self {
        let tags = usize::from(tags);
        let buckets = (tags.max(1) * BUCKETS_PER_TAG).next_power_of_two().min(BUCKETS_MAX);
        let edge = Edge { sector: Sector(0), next: NIL, bucket: Place(0) };
        Self {
            heads: Table::new(buckets, NIL),
            edges: Table::new(tags, [edge; 2]),
            shift: 64 - buckets.trailing_zeros(),
        }
    }

    /// Whether certainly no request touches the sectors from `start` to before `end`: no edge is in either
    /// bucket.
    #[inline(always)]
    #[must_use]
    pub(crate) fn is_quiet(&self, filed: Edges, start: Sector, end: Sector) -> bool {
        let at_start = self.heads[self.bucket(start)];
        match filed {
            Edges::Both => at_start & self.heads[self.bucket(end)] == NIL,
            Edges::Ends => at_start == NIL,
        }
    }

    /// Files `tag`, which is not filed and covers the sectors from `start` to before `end`.
    #[inline(always)]
    pub(crate) fn insert(&mut self, filed: Edges, tag: Tag, start: Sector, end: Sector) {
        if filed == Edges::Both {
            let (first, last) = (self.head(start_of(tag), start), self.head(end_of(tag), end));
            self.edges[tag] = [first, last];
        } else {
            self.link(end_of(tag), end);
        }
    }

    /// Removes `tag`, which is filed, if its edges are first in their chains. Returns whether it is removed.
    #[inline(always)]
    pub(crate) fn remove_first(&mut self, filed: Edges, tag: Tag) -> bool {
        let [start, end] = self.edges[tag];
        let is_first = |edge: Edge, id| self.heads[edge.bucket] == id;
        if !is_first(end, end_of(tag)) || filed == Edges::Both && !is_first(start, start_of(tag)) {
            return false;
        }
        self.heads[end.bucket] = end.next;
        if filed == Edges::Both {
            self.heads[start.bucket] = start.next;
        }
        true
    }

    /// Removes `tag`, which is filed.
    pub(crate) fn remove(&mut self, filed: Edges, tag: Tag) {
        if filed == Edges::Both {
            self.unlink(start_of(tag));
        }
        self.unlink(end_of(tag));
    }

    /// `tag`, which is filed, starts at `start` now.
    pub(crate) fn move_start(&mut self, filed: Edges, tag: Tag, start: Sector) {
        if filed == Edges::Both {
            self.unlink(start_of(tag));
            self.link(start_of(tag), start);
        }
    }

    /// `tag`, which is filed, ends before `end` now.
    pub(crate) fn move_end(&mut self, tag: Tag, end: Sector) {
        self.unlink(end_of(tag));
        self.link(end_of(tag), end);
    }

    /// The requests that start at `sector`, the one filed last first. None if only ends are filed.
    pub(crate) fn starting_at(&self, sector: Sector) -> impl Iterator<Item = Tag> + '_ {
        self.edges_at(sector).filter(|id| id & 1 == 0).map(tag_of)
    }

    /// The requests that end before `sector`, the one filed last first.
    pub(crate) fn ending_at(&self, sector: Sector) -> impl Iterator<Item = Tag> + '_ {
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

    #[inline]
    fn edge(&self, id: EdgeId) -> &Edge {
        &self.edges[tag_of(id)][(id & 1) as usize]
    }

    #[inline]
    fn edge_mut(&mut self, id: EdgeId) -> &mut Edge {
        &mut self.edges[tag_of(id)][(id & 1) as usize]
    }

    #[inline(always)]
    fn link(&mut self, id: EdgeId, sector: Sector) {
        *self.edge_mut(id) = self.head(id, sector);
    }

    /// Makes an edge the first of its chain; answers what is to be kept of it.
    #[inline(always)]
    fn head(&mut self, id: EdgeId, sector: Sector) -> Edge {
        let bucket = self.bucket(sector);
        let next = core::mem::replace(&mut self.heads[bucket], id);
        Edge { sector, next, bucket }
    }

    fn unlink(&mut self, id: EdgeId) {
        let Edge { next, bucket, .. } = *self.edge(id);
        if self.heads[bucket] == id {
            self.heads[bucket] = next;
            return;
        }
        let mut at = self.heads[bucket];
        while self.edge(at).next != id {
            at = self.edge(at).next;
        }
        self.edge_mut(at).next = next;
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
    use crate::testkit::Random;
    use std::vec::Vec;

    #[test]
    fn tells_starts_from_ends_at_the_same_sector() {
        let mut index = MergeIndex::new(4);
        index.insert(Edges::Both, Tag(0), Sector(0), Sector(8));
        index.insert(Edges::Both, Tag(1), Sector(8), Sector(16));
        index.insert(Edges::Both, Tag(2), Sector(4), Sector(8));
        assert_eq!(index.ending_at(Sector(8)).map(|t| t.0).collect::<Vec<_>>(), [2, 0]);
        assert!(index.starting_at(Sector(8)).eq([Tag(1)]));
        index.move_end(Tag(2), Sector(24));
        index.move_start(Edges::Both, Tag(1), Sector(6));
        assert!(index.ending_at(Sector(8)).eq([Tag(0)]) && index.starting_at(Sector(8)).next().is_none());
        assert!(index.ending_at(Sector(24)).eq([Tag(2)]) && index.starting_at(Sector(6)).eq([Tag(1)]));
        index.remove(Edges::Both, Tag(0));
        assert!(index.ending_at(Sector(8)).next().is_none());
    }

    #[test]
    fn is_quiet_only_where_nobody_touches() {
        for filed in [Edges::Both, Edges::Ends] {
            let mut index = MergeIndex::new(4);
            index.insert(filed, Tag(0), Sector(8), Sector(16));
            assert!(!index.is_quiet(filed, Sector(16), Sector(24)), "starts where the other ends");
            assert_eq!(
                index.is_quiet(filed, Sector(0), Sector(8)),
                filed == Edges::Ends,
                "ends where it starts"
            );
            index.remove(filed, Tag(0));
            assert!(
                index.is_quiet(filed, Sector(16), Sector(24)) && index.is_quiet(filed, Sector(0), Sector(8))
            );
        }
    }

    /// The twin: a list of requests. Few sectors, so that chains are long.
    fn agrees_with_a_list(filed: Edges) {
        let mut index = MergeIndex::new(16);
        let mut twin: Vec<(Tag, u64, u64)> = Vec::new();
        let mut random = Random::new(1);
        for _ in 0..20_000 {
            let x = random.next();
            let (tag, start, len) = (Tag((x % 16) as u16), (x >> 8) % 12, 1 + (x >> 16) % 4);
            if let Some(i) = twin.iter().position(|t| t.0 == tag) {
                twin.remove(i);
                if !index.remove_first(filed, tag) {
                    index.remove(filed, tag);
                }
            } else {
                let end = start + len;
                let touches = twin.iter().any(|t| t.2 == start || t.1 == end && filed == Edges::Both);
                let quiet = index.is_quiet(filed, Sector(start), Sector(end));
                assert!(!(quiet && touches), "merges would be missed");
                index.insert(filed, tag, Sector(start), Sector(end));
                twin.push((tag, start, end));
            }
            for sector in 0..16 {
                let starting =
                    twin.iter().rev().filter(|t| t.1 == sector && filed == Edges::Both).map(|t| t.0);
                let ending = twin.iter().rev().filter(|t| t.2 == sector).map(|t| t.0);
                assert!(index.starting_at(Sector(sector)).eq(starting), "starts at {sector}");
                assert!(index.ending_at(Sector(sector)).eq(ending), "ends at {sector}");
            }
        }
    }

    #[test]
    fn agrees_with_a_list_of_both_edges() {
        agrees_with_a_list(Edges::Both);
    }

    #[test]
    fn agrees_with_a_list_of_ends() {
        agrees_with_a_list(Edges::Ends);
    }
}
