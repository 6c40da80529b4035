//! The segments of the read buffer.
//!
//! Each segment holds one run of sectors, `[start, end)`, read for one stream. The media fill one segment at
//! a time (the *live* one); how far they are is evaluated lazily, so `end` of the live segment is what was
//! known last.
//!
//! ```text
//!          start         consumed        end           limit
//!            |  history     |   unread    |  to be read   |
//!            v              v             v               v
//!     -------[##############|#############|...............]------- lba
//! ```
//!
//! History is kept for at most four times the look-ahead, and all segments together stay within the buffer:
//! the least recently used give way, oldest data first. What this does not do: segments of fixed size,
//! wrap-around inside a segment.
//= docs/reference/devices.md#14-read-buffer-and-look-ahead (state, rules 4, 6 and 7)

use alloc::boxed::Box;
use alloc::vec;
/// One run of buffered sectors.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Segment {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// End of the host's last read in it.
    pub(crate) consumed: u64,
    /// Its first sector.
    pub(crate) requested: u64,
    /// How far look-ahead may go.
    pub(crate) limit: u64,
    /// A stamp: larger is more recent; 0 is never.
    last_use: u64,
}

impl Segment {
    fn len(&self) -> u64 {
        self.end - self.start
    }
}

/// All segments.
#[derive(Clone, Debug)]
pub(crate) struct ReadCache {
    pub(crate) segs: Box<[Segment]>,
    stamp: u64,
    /// Valid sectors in all segments, kept at most `capacity`.
    total: u64,
    capacity: u64,
    history: u64,
}

impl ReadCache {
    /// `capacity` and `history` in sectors.
    pub(crate) fn new(nseg: usize, capacity: u64, history: u64) -> Self {
        Self { segs: vec![Segment::default(); nseg].into(), stamp: 0, total: 0, capacity, history }
    }

    /// A segment with all of `[start, end)`.
    pub(crate) fn find(&self, start: u64, end: u64) -> Option<usize> {
        self.segs.iter().position(|s| s.start <= start && end <= s.end)
    }

    /// Marks a segment as the most recently used.
    pub(crate) fn touch(&mut self, i: usize) {
        self.stamp += 1;
        self.segs[i].last_use = self.stamp;
    }

    /// Whether a segment is among the `n` most recently used.
    pub(crate) fn is_among_recent(&self, i: usize, n: usize) -> bool {
        n >= self.segs.len() || {
            let mine = self.segs[i].last_use;
            self.segs.iter().filter(|s| s.last_use > mine).count() < n
        }
    }

    /// The segment for a read that has to go to the media: an existing segment that the read continues, or
    /// else the least recently used one, emptied. What such a segment has of the read is read again.
    pub(crate) fn open(&mut self, start: u64) -> usize {
        let mut oldest = 0;
        for (i, s) in self.segs.iter().enumerate() {
            if s.start <= start && start <= s.end && s.last_use > 0 {
                return i;
            }
            if s.last_use < self.segs[oldest].last_use {
                oldest = i;
            }
        }
        let s = &mut self.segs[oldest];
        self.total -= s.len();
        *s = Segment {
            start,
            end: start,
            consumed: start,
            requested: start,
            limit: start,
            last_use: s.last_use,
        };
        oldest
    }

    /// The media have read segment `i` up to `end` (or, after all, only up to there).
    pub(crate) fn set_end(&mut self, i: usize, end: u64) {
        let s = &mut self.segs[i];
        self.total -= s.len();
        s.end = end.max(s.start);
        s.start = s.start.max(s.end.saturating_sub(self.history));
        self.total += s.len();
        self.trim(i);
    }

    /// Sectors in front of a segment that passed by before the first one asked for.
    pub(crate) fn extend_front(&mut self, i: usize, sectors: u64) {
        let sectors = sectors.min(self.history.saturating_sub(self.segs[i].len()));
        self.segs[i].start -= sectors;
        self.total += sectors;
        self.trim(i);
    }

    /// Keeps the total within the buffer; segment `live` is cut last.
    fn trim(&mut self, live: usize) {
        while self.total > self.capacity {
            let excess = self.total - self.capacity;
            let victim = (0..self.segs.len())
                .filter(|&i| i != live && self.segs[i].len() > 0)
                .min_by_key(|&i| self.segs[i].last_use)
                .unwrap_or(live);
            let s = &mut self.segs[victim];
            let cut = excess.min(s.len());
            s.start += cut;
            self.total -= cut;
        }
    }

    /// A write to `[start, end)` makes what is buffered from there on stale.
    pub(crate) fn overwrite(&mut self, start: u64, end: u64) {
        for s in &mut self.segs {
            if s.start < end && start < s.end {
                let new_end = start.max(s.start);
                self.total -= s.end - new_end;
                s.end = new_end;
                s.consumed = s.consumed.min(new_end);
            }
        }
    }

    /// The books are right.
    #[cfg(test)]
    pub(crate) fn check(&self) {
        assert_eq!(self.total, self.segs.iter().map(Segment::len).sum::<u64>());
        assert!(self.total <= self.capacity, "the buffer is bounded");
        assert!(self.segs.iter().all(|s| s.len() <= self.history));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(c: &mut ReadCache, start: u64, end: u64) -> usize {
        let i = c.open(start);
        c.set_end(i, end);
        c.touch(i);
        c.check();
        i
    }

    #[test]
    fn a_read_at_the_end_of_a_segment_goes_on_in_it() {
        let mut c = ReadCache::new(2, 1000, 400);
        let a = fill(&mut c, 100, 200);
        assert_eq!((c.open(200), c.open(150)), (a, a));
        let b = fill(&mut c, 201, 300);
        assert_ne!(a, b, "a gap makes it another stream");
        assert_eq!(c.find(210, 220), Some(b));
        assert_eq!(c.find(195, 205), None, "across two segments is no hit");
    }

    #[test]
    fn the_least_recently_used_is_recycled() {
        let mut c = ReadCache::new(2, 1000, 400);
        let a = fill(&mut c, 100, 200);
        let b = fill(&mut c, 1000, 1100);
        c.touch(a);
        assert!(c.is_among_recent(a, 1) && !c.is_among_recent(b, 1) && c.is_among_recent(b, 2));
        assert_eq!(fill(&mut c, 5000, 5001), b);
    }

    #[test]
    fn history_and_total_are_bounded_oldest_data_first() {
        let mut c = ReadCache::new(3, 1000, 400);
        let a = fill(&mut c, 0, 500);
        assert_eq!(c.segs[a].start, 100, "400 sectors of history");
        let b = fill(&mut c, 10_000, 10_400);
        fill(&mut c, 20_000, 20_300);
        assert_eq!((c.segs[a].start, c.segs[a].end), (200, 500), "100 too many: the oldest of the oldest go");
        assert_eq!(c.segs[b].start, 10_000);
    }

    #[test]
    fn a_write_makes_the_rest_stale() {
        let mut c = ReadCache::new(2, 1000, 400);
        let a = fill(&mut c, 100, 200);
        c.overwrite(90, 100);
        c.overwrite(200, 210);
        assert_eq!(c.find(100, 200), Some(a), "neighbours do not count");
        c.overwrite(150, 160);
        assert_eq!((c.find(100, 150), c.find(160, 170)), (Some(a), None));
        c.check();
        c.overwrite(90, 300);
        assert_eq!(c.find(100, 101), None);
        c.check();
    }
}
