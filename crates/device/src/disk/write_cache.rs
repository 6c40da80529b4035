//! The write cache: extents that were accepted and are not yet on the media.
//!
//! The drive keeps a *command stack* of at most `slots` extents. A write that begins exactly where the most
//! recently accepted extent ends joins it (tail merge); any other takes a slot. A rewrite of cached data
//! replaces it. Separate extents stay separate even when they touch, because each is set up on its own when
//! it is brought to the media.
//!
//! Extents are sorted by start and disjoint; the one being written ([`WriteCache::active`]) stands apart and
//! may overlap a newer one.
//= docs/reference/devices.md#15-write-buffer-and-destaging

use crate::geometry::{Geometry, Place};
use alloc::vec::Vec;

/// One run of cached sectors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// When its first sector was accepted.
    pub(crate) arrival: u64,
    id: u64,
    pub(crate) place: Place,
}

impl Extent {
    pub(crate) fn len(&self) -> u64 {
        self.end - self.start
    }
}

/// What the cache has of a range.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cover {
    /// Nothing is to be written.
    None,
    /// Some of it.
    Partial,
    /// All of it.
    Full,
}

/// The cache.
#[derive(Clone, Debug)]
pub(crate) struct WriteCache {
    /// By start, disjoint.
    pub(crate) list: Vec<Extent>,
    /// The one on its way to the media.
    pub(crate) active: Option<Extent>,
    /// Id of the most recently accepted extent: the one that a tail merge may extend.
    last: u64,
    next_id: u64,
    /// Sectors in `list`.
    listed: u64,
    pub(crate) slots: usize,
    /// In sectors.
    pub(crate) capacity: u64,
    /// Whether tails are merged at all.
    merge: bool,
}

impl WriteCache {
    /// `capacity` in sectors.
    pub(crate) fn new(slots: usize, capacity: u64, merge: bool) -> Self {
        let list = Vec::with_capacity(slots);
        Self { list, active: None, last: 0, next_id: 1, listed: 0, slots, capacity, merge }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty() && self.active.is_none()
    }

    fn used_slots(&self) -> usize {
        self.list.len() + usize::from(self.active.is_some())
    }

    /// Sectors held, the active extent in full.
    pub(crate) fn held(&self) -> u64 {
        self.listed + self.active.map_or(0, |a| a.len())
    }

    pub(crate) fn has_slot(&self) -> bool {
        self.used_slots() < self.slots
    }

    /// Above three quarters of either limit: bringing data out is then as urgent as what the host asks for.
    pub(crate) fn is_nearly_full(&self) -> bool {
        4 * self.used_slots() > 3 * self.slots || 4 * self.held() > 3 * self.capacity
    }

    /// The first listed extent that ends beyond `start`.
    fn first_after(&self, start: u64) -> usize {
        self.list.partition_point(|e| e.end <= start)
    }

    /// A listed extent that overlaps `[start, end)`.
    pub(crate) fn overlap(&self, start: u64, end: u64) -> Option<usize> {
        let i = self.first_after(start);
        (i < self.list.len() && self.list[i].start < end).then_some(i)
    }

    /// What is cached of `[start, end)`.
    pub(crate) fn cover(&self, start: u64, end: u64) -> Cover {
        let mut any = false;
        if let Some(a) = &self.active {
            if a.start <= start && end <= a.end {
                return Cover::Full;
            }
            any = a.start < end && start < a.end;
        }
        let mut at = start;
        for e in &self.list[self.first_after(start)..] {
            if e.start >= end {
                break;
            }
            any = true;
            if e.start > at {
                break;
            }
            at = e.end;
            if at >= end {
                return Cover::Full;
            }
        }
        if any { Cover::Partial } else { Cover::None }
    }

    /// Whether `[start, end)` lies inside one listed extent: a rewrite in place.
    pub(crate) fn is_rewrite(&self, start: u64, end: u64) -> bool {
        self.overlap(start, end).is_some_and(|i| self.list[i].start <= start && end <= self.list[i].end)
    }

    /// Whether a write at `start` continues the most recently accepted extent; `true` inside: the active one.
    pub(crate) fn tail(&self, start: u64) -> Option<bool> {
        if !self.merge {
            return None;
        }
        if self.active.is_some_and(|a| a.id == self.last && a.end == start) {
            return Some(true);
        }
        let i = self.list.partition_point(|e| e.end < start);
        let e = self.list.get(i)?;
        (e.end == start && e.id == self.last).then_some(false)
    }

    /// Extends the most recently accepted extent to `end`. [`Self::tail`] said which it is.
    pub(crate) fn extend_tail(&mut self, geo: &Geometry, active: bool, start: u64, end: u64) {
        self.supersede(geo, start, end);
        if active {
            let a = self.active.as_mut().expect("the tail is the active extent");
            a.end = end;
        } else {
            let i = self.list.partition_point(|e| e.end < start);
            self.list[i].end = end;
            self.listed += end - start;
        }
    }

    /// A new extent; there must be a slot.
    pub(crate) fn insert(&mut self, geo: &Geometry, start: u64, end: u64, arrival: u64) {
        self.supersede(geo, start, end);
        debug_assert!(self.has_slot());
        self.last = self.next_id;
        self.next_id += 1;
        let at = self.list.partition_point(|e| e.start < start);
        let place = geo.place(start);
        self.list.insert(at, Extent { start, end, arrival, id: self.last, place });
        self.listed += end - start;
    }

    /// Drops what newer data in `[start, end)` replaces. An extent that sticks out on both sides stays as it
    /// is (only a write past the cache can do that).
    pub(crate) fn supersede(&mut self, geo: &Geometry, start: u64, end: u64) {
        while let Some(i) = self.overlap(start, end) {
            let e = &mut self.list[i];
            match (e.start < start, e.end > end) {
                (true, true) => return,
                (true, false) => {
                    self.listed -= e.end - start;
                    e.end = start;
                }
                (false, true) => {
                    self.listed -= end - e.start;
                    e.start = end;
                    e.place = geo.place(end);
                }
                (false, false) => {
                    self.listed -= e.len();
                    self.list.remove(i);
                }
            }
        }
    }

    /// Takes a listed extent out to be written.
    pub(crate) fn activate(&mut self, i: usize) -> Extent {
        debug_assert!(self.active.is_none());
        let e = self.list.remove(i);
        self.listed -= e.len();
        self.active = Some(e);
        e
    }

    /// The active extent is left at `at`: the rest of it is listed again. Newer data that were accepted
    /// meanwhile replace it.
    pub(crate) fn put_back(&mut self, geo: &Geometry, at: u64) {
        let Some(a) = self.active.take() else { return };
        let (mut start, mut end) = (at, a.end);
        while start < end
            && let Some(i) = self.overlap(start, end)
        {
            let newer = &self.list[i];
            if newer.start <= start { start = newer.end.min(end) } else { end = newer.start }
        }
        if start < end {
            let i = self.list.partition_point(|e| e.start < start);
            self.list.insert(i, Extent { start, end, place: geo.place(start), ..a });
            self.listed += end - start;
        }
    }

    /// The books are right.
    #[cfg(test)]
    pub(crate) fn check(&self) {
        assert_eq!(self.listed, self.list.iter().map(Extent::len).sum::<u64>());
        assert!(self.list.windows(2).all(|w| w[0].end <= w[1].start), "sorted and disjoint");
        assert!(self.list.iter().all(|e| e.start < e.end));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::DeviceParams;

    fn cache() -> (WriteCache, Geometry) {
        let Ok(DeviceParams::Disk(p)) = DeviceParams::preset("ide2004") else { unreachable!() };
        (WriteCache::new(4, 1000, true), Geometry::new(&p))
    }

    fn ranges(c: &WriteCache) -> Vec<(u64, u64)> {
        c.check();
        c.list.iter().map(|e| (e.start, e.end)).collect()
    }

    #[test]
    fn only_the_most_recent_extent_grows() {
        let (mut c, g) = cache();
        c.insert(&g, 100, 200, 0);
        c.insert(&g, 500, 600, 0);
        assert_eq!((c.tail(600), c.tail(200), c.tail(300)), (Some(false), None, None));
        c.extend_tail(&g, false, 600, 650);
        assert_eq!(ranges(&c), [(100, 200), (500, 650)]);
        c.insert(&g, 200, 300, 0);
        assert_eq!(ranges(&c), [(100, 200), (200, 300), (500, 650)], "neighbours stay apart");
        assert_eq!(c.held(), 350);
    }

    #[test]
    fn the_tail_may_be_on_its_way() {
        let (mut c, g) = cache();
        c.insert(&g, 100, 200, 0);
        c.activate(0);
        assert_eq!(c.tail(200), Some(true));
        c.extend_tail(&g, true, 200, 300);
        assert_eq!(c.active.map(|a| a.end), Some(300));
        assert_eq!((c.held(), c.list.len()), (200, 0));
    }

    #[test]
    fn newer_data_replaces_older() {
        let (mut c, g) = cache();
        c.insert(&g, 100, 200, 0);
        c.insert(&g, 300, 400, 0);
        assert!(c.is_rewrite(120, 180) && c.is_rewrite(100, 200) && !c.is_rewrite(150, 250));
        c.insert(&g, 150, 350, 0);
        assert_eq!(ranges(&c), [(100, 150), (150, 350), (350, 400)]);
        assert_eq!(c.list[2].place.phase, g.place(350).phase, "what is left is set up anew");
        c.insert(&g, 90, 500, 0);
        assert_eq!(ranges(&c), [(90, 500)]);
        c.supersede(&g, 200, 300);
        assert_eq!(ranges(&c), [(90, 500)], "a write past the cache splits nothing");
    }

    #[test]
    fn what_is_left_of_an_extent_waits_again_and_still_grows() {
        let (mut c, g) = cache();
        c.insert(&g, 100, 200, 0);
        c.activate(0);
        c.put_back(&g, 150);
        assert_eq!((ranges(&c), c.held(), c.list[0].place.phase), (vec![(150, 200)], 50, g.place(150).phase));
        assert_eq!(c.tail(200), Some(false), "it is the newest");
        // Newer data over its end, and over where the head was.
        c.activate(0);
        c.insert(&g, 190, 210, 0);
        c.insert(&g, 140, 165, 0);
        c.put_back(&g, 160);
        assert_eq!(ranges(&c), [(140, 165), (165, 190), (190, 210)]);
        c.activate(1);
        c.insert(&g, 160, 200, 0);
        c.put_back(&g, 170);
        assert_eq!(ranges(&c), [(140, 160), (160, 200), (200, 210)], "all of it is newer");
    }

    #[test]
    fn cover_counts_neighbours_as_one() {
        let (mut c, g) = cache();
        c.insert(&g, 100, 200, 0);
        c.insert(&g, 500, 600, 0);
        c.insert(&g, 200, 300, 0);
        assert_eq!(c.cover(150, 250), Cover::Full);
        assert_eq!(c.cover(250, 350), Cover::Partial);
        assert_eq!(c.cover(50, 100), Cover::None);
        assert_eq!(c.cover(300, 500), Cover::None);
        c.activate(0);
        assert_eq!(c.cover(120, 130), Cover::Full, "also while on its way");
        assert_eq!(c.cover(90, 130), Cover::Partial);
    }

    #[test]
    fn nearly_full_is_three_quarters_of_either_limit() {
        let (mut c, g) = cache();
        for start in [0, 100, 200] {
            c.insert(&g, start, start + 10, 0);
        }
        assert!(!c.is_nearly_full() && c.has_slot());
        c.insert(&g, 300, 310, 0);
        assert!(c.is_nearly_full() && !c.has_slot());
        let (mut c, g) = cache();
        c.insert(&g, 0, 751, 0);
        assert!(c.is_nearly_full());
    }
}
