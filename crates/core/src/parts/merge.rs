//! Who ends where this request starts, and who starts where it ends: what can be merged.
//!
//! Each request has two *edges*, its first sector and the sector behind its last. Both are filed in one [`Hash`] by
//! their sector, so that a newcomer looks twice: at its start for the ends of others (back merge), and at its end for
//! the starts of others (front merge).
//!
//! It does not know what may be merged: direction, limits and the scheduler's wishes are the elevator's business.

use super::hash::Hash;
use crate::units::{Id, Sector, Tag};

/// An edge of a request: the tag doubled, plus one for the end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Edge(u32);

impl Edge {
    #[inline]
    fn start(tag: Tag) -> Self {
        Self(u32::from(tag.0) * 2)
    }

    #[inline]
    fn end(tag: Tag) -> Self {
        Self(u32::from(tag.0) * 2 + 1)
    }

    #[inline]
    fn is_end(self) -> bool {
        self.0 % 2 == 1
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "made from a tag")]
    fn tag(self) -> Tag {
        Tag((self.0 / 2) as u16)
    }
}

impl Id for Edge {
    #[inline]
    fn index(self) -> usize {
        self.0 as usize
    }
    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "the index came from this type")]
    fn from_index(i: usize) -> Self {
        Self(i as u32)
    }
}

/// See the [module](self).
#[derive(Debug)]
pub struct MergeIndex {
    edges: Hash<Edge>,
}

impl MergeIndex {
    /// An index with room for the tags `0..tags`. Allocates.
    #[must_use]
    pub fn new(tags: u16) -> Self {
        Self { edges: Hash::new(usize::from(tags) * 2) }
    }

    /// Files `tag`, which is not filed, and covers the sectors from `start` to before `end`.
    #[inline]
    pub fn insert(&mut self, tag: Tag, start: Sector, end: Sector) {
        self.edges.insert(Edge::start(tag), start.0);
        self.edges.insert(Edge::end(tag), end.0);
    }

    /// Removes `tag`, which is filed.
    #[inline]
    pub fn remove(&mut self, tag: Tag) {
        self.edges.remove(Edge::start(tag));
        self.edges.remove(Edge::end(tag));
    }

    /// `tag`, which is filed, starts at `start` now.
    pub fn set_start(&mut self, tag: Tag, start: Sector) {
        self.edges.remove(Edge::start(tag));
        self.edges.insert(Edge::start(tag), start.0);
    }

    /// `tag`, which is filed, ends before `end` now.
    pub fn set_end(&mut self, tag: Tag, end: Sector) {
        self.edges.remove(Edge::end(tag));
        self.edges.insert(Edge::end(tag), end.0);
    }

    /// The requests that start at `sector`, the one filed last first.
    #[inline]
    pub fn starting_at(&self, sector: Sector) -> impl Iterator<Item = Tag> + '_ {
        self.edges.find(sector.0).filter(|e| !e.is_end()).map(Edge::tag)
    }

    /// The requests that end before `sector`, the one filed last first.
    #[inline]
    pub fn ending_at(&self, sector: Sector) -> impl Iterator<Item = Tag> + '_ {
        self.edges.find(sector.0).filter(|e| e.is_end()).map(Edge::tag)
    }
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
        index.set_end(Tag(2), Sector(24));
        index.set_start(Tag(1), Sector(6));
        assert!(index.ending_at(Sector(8)).eq([Tag(0)]) && index.starting_at(Sector(8)).next().is_none());
        assert!(index.ending_at(Sector(24)).eq([Tag(2)]) && index.starting_at(Sector(6)).eq([Tag(1)]));
        index.remove(Tag(0));
        assert!(index.ending_at(Sector(8)).next().is_none());
    }
}
