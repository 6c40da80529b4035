//! The page cache: which pages of which files are in memory, and in what state.
//!
//! ```text
//!  file ─► table ─► chunk of 1024 pages ─► frame { file, page, flags, place in the list of clean pages }
//!              └──► chunks with dirty pages, in file order
//! ```
//!
//! A page is *clean* (up to date, on the list, oldest first), *being read*, *dirty*, *being written*, or
//! dirty again while being written. Only clean pages are on the list, so the oldest evictable page is always
//! its head, and a page with I/O in flight or data that the disk lacks is never dropped. Dirty pages of a
//! file are kept in file order, because that is how they are written; files with dirty pages are kept in the
//! order in which they became dirty.
//!
//! Example: memory for 4 pages holds clean 0, 1, 2 and dirty 3. Reading page 4 drops page 0; dirtying page 1
//! takes it off the list, so reading page 5 drops page 2.
//!
//! It does not decide when to read ahead, when to write, or which lane waits: see `readahead`, `flusher` and
//! `buffered`. When all pages are dirty or busy it exceeds its size rather than wait; the limits on dirty
//! pages keep that small.
//
//= docs/reference/hosts.md#page-cache-and-readahead, docs/reference/hosts.md#dirty-pages-and-flusher

use super::frames::{DIRTY, Frame, Frames, MARKER, NEW, NONE, READING, UPTODATE, WRITEBACK};
use crate::metrics::CacheStats;
use fairhead_core::{GroupId, Instant};
use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;

/// Sectors of a page.
pub(super) const PAGE_SECTORS: u32 = 8;
/// Bytes of a page.
pub(super) const PAGE_BYTES: u64 = 4096;
/// Entries of a chunk of a file's table.
const CHUNK: usize = 1024;

/// The stamp of a page that is the last of this number of pages that became dirty.
#[allow(clippy::cast_possible_truncation, reason = "stamps are compared with wrap-around")]
const fn stamp_of(dirtied: u64) -> u32 {
    dirtied as u32
}

/// Whether a stamp is later than another one.
const fn is_later(stamp: u32, than: u32) -> bool {
    stamp.wrapping_sub(than).wrapping_sub(1) < 1 << 31
}

/// What the cache knows of 1024 pages of a file.
#[derive(Debug)]
struct Chunk {
    /// By page; [`NONE`]: it is not in memory.
    frames: [u32; CHUNK],
    /// A bit for each page: whether it is dirty.
    dirty: [u64; CHUNK / 64],
    /// How many are.
    dirty_count: u32,
    /// None of these became so before this stamp.
    since: u32,
}

impl Chunk {
    const EMPTY: Self = Self { frames: [NONE; CHUNK], dirty: [0; CHUNK / 64], dirty_count: 0, since: 0 };

    /// A page becomes dirty. Returns whether it is the only one.
    fn set_dirty(&mut self, page: usize, stamp: u32) -> bool {
        if self.dirty_count == 0 {
            self.since = stamp;
        }
        self.dirty[page / 64] |= 1 << (page % 64);
        self.dirty_count += 1;
        self.dirty_count == 1
    }

    /// A page is dirty no more. Returns whether it was the last one.
    fn clear_dirty(&mut self, page: usize) -> bool {
        self.dirty[page / 64] &= !(1 << (page % 64));
        self.dirty_count -= 1;
        self.dirty_count == 0
    }

    /// The first dirty page in `from..to`.
    fn next_dirty(&self, from: usize, to: usize) -> Option<usize> {
        let mut word = from / 64;
        let mut bits = *self.dirty.get(word)? & (u64::MAX << (from % 64));
        while bits == 0 {
            word += 1;
            bits = *self.dirty.get(word)?;
        }
        Some(word * 64 + bits.trailing_zeros() as usize).filter(|&page| page < to)
    }
}

/// The parts of a range of pages that lie in one chunk each: its number, and the pages within it.
fn parts(from: u32, to: u32) -> impl Iterator<Item = (usize, Range<usize>)> {
    let (from, to) = (from as usize, to as usize);
    (from / CHUNK..to.div_ceil(CHUNK)).map(move |chunk| {
        let first = chunk * CHUNK;
        (chunk, from.saturating_sub(first)..(to - first).min(CHUNK))
    })
}

/// A write in flight, of some pages of a file.
#[derive(Clone, Copy, Debug)]
struct Flight {
    first: u32,
    count: u32,
    seq: u64,
}

/// A thread that waits for the writes of a range that had begun when it asked.
#[derive(Clone, Copy, Debug)]
struct SyncWaiter {
    thread: u32,
    /// The first page of the range, and the one behind its last.
    range: (u32, u32),
    seq: u64,
}

impl SyncWaiter {
    fn waits_for(&self, flight: &Flight) -> bool {
        let (first, end) = self.range;
        flight.seq <= self.seq && flight.first < end && flight.first + flight.count > first
    }
}

/// What the cache knows of one file.
#[derive(Debug, Default)]
struct Mapping {
    table: Vec<Option<Box<Chunk>>>,
    cached: u32,
    /// The chunks with dirty pages.
    dirty: BTreeSet<u32>,
    /// Since when it has been dirty.
    dirtied: Option<Instant>,
    /// Where the next pass of writing begins.
    cursor: u32,
    flights: Vec<Flight>,
    page_waiters: Vec<(u32, u32)>,
    sync_waiters: Vec<SyncWaiter>,
}

impl Mapping {
    fn chunk(&self, number: usize) -> Option<&Chunk> {
        self.table.get(number)?.as_deref()
    }
}

/// The cache.
#[derive(Debug)]
pub(super) struct Cache {
    frames: Frames,
    capacity: u32,
    files: Vec<Mapping>,
    /// Files with dirty pages, in the order in which they became so or had their last turn.
    dirty_files: VecDeque<u32>,
    /// Pages that are dirty and not being written.
    pub(super) dirty: u32,
    /// Pages being written.
    pub(super) writeback: u32,
    /// Pages that have become dirty so far.
    pub(super) dirtied: u64,
    seq: u64,
    /// Above the first the flusher works, above the second no process may dirty more; in pages.
    pub(super) dirty_background: u32,
    pub(super) dirty_hard: u32,
    /// There were more than the second, and have not been fewer since.
    pub(super) limit_exceeded: bool,
    pub(super) stats: CacheStats,
}

impl Cache {
    /// A cache of `bytes` bytes for `files` files. `background`, `hard`: how many pages may be dirty before
    /// the flusher works, and at most.
    pub(super) fn new(bytes: u64, files: usize, (background, hard): (u32, u32)) -> Self {
        let capacity = u32::try_from(bytes / PAGE_BYTES).unwrap_or(NONE - 1).max(1);
        Self {
            frames: Frames::new(),
            capacity,
            files: (0..files).map(|_| Mapping::default()).collect(),
            dirty_files: VecDeque::new(),
            dirty: 0,
            writeback: 0,
            dirtied: 0,
            seq: 0,
            dirty_background: background,
            dirty_hard: hard,
            limit_exceeded: false,
            stats: CacheStats::default(),
        }
    }

    /// How many pages fit.
    pub(super) const fn capacity(&self) -> u32 {
        self.capacity
    }

    /// Whether pages of the file are dirty or being written.
    pub(super) fn is_dirty(&self, file: u32) -> bool {
        let mapping = &self.files[file as usize];
        !mapping.dirty.is_empty() || !mapping.flights.is_empty()
    }

    /// How many pages of the file are in memory.
    pub(super) fn cached(&self, file: u32) -> u32 {
        self.files[file as usize].cached
    }

    fn frame(&self, file: u32, page: u32) -> Option<u32> {
        let chunk = self.files[file as usize].chunk(page as usize / CHUNK)?;
        Some(chunk.frames[page as usize % CHUNK]).filter(|&f| f != NONE)
    }

    /// The page's flags, if it is in memory.
    pub(super) fn flags(&self, file: u32, page: u32) -> Option<u8> {
        self.frame(file, page).and_then(|f| self.frames.flags(f))
    }

    /// How many pages from `from` on, in a row and before `to`, have such flags; none: not in memory.
    pub(super) fn run(&self, file: u32, from: u32, to: u32, is_such: impl Fn(Option<u8>) -> bool) -> u32 {
        let mut count = 0;
        for (chunk, pages) in parts(from, to.max(from)) {
            let Some(chunk) = self.files[file as usize].chunk(chunk) else {
                if !is_such(None) {
                    break;
                }
                count += pages.len();
                continue;
            };
            let wanted = pages.len();
            let such = chunk.frames[pages].iter().take_while(|f| is_such(self.frames.flags(**f))).count();
            count += such;
            if such < wanted {
                break;
            }
        }
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    /// Brings a page that is not there into memory with these flags. Drops the oldest clean page if memory is
    /// full.
    pub(super) fn add(&mut self, file: u32, page: u32, flags: u8) {
        debug_assert!(self.frame(file, page).is_none(), "a page is in memory once");
        // If no page is clean, memory is exceeded by this one: dirty pages are bounded by the limits on
        // writers, pages being read by the windows.
        if self.frames.used() >= self.capacity as usize
            && let Some(oldest) = self.frames.oldest()
        {
            self.stats.evicted += 1;
            self.drop_frame(oldest);
        }
        let index = self.frames.add(file, page, flags);
        let mapping = &mut self.files[file as usize];
        mapping.cached += 1;
        let chunk = page as usize / CHUNK;
        if mapping.table.len() <= chunk {
            mapping.table.resize_with(chunk + 1, || None);
        }
        let chunk = mapping.table[chunk].get_or_insert_with(|| Box::new(Chunk::EMPTY));
        chunk.frames[page as usize % CHUNK] = index;
    }

    /// Changes the flags of those of these pages that are in memory.
    fn update(&mut self, file: u32, first: u32, count: u32, (set, clear): (u8, u8)) {
        for (chunk, pages) in parts(first, first + count) {
            let Some(chunk) = self.files[file as usize].chunk(chunk) else { continue };
            for &f in chunk.frames[pages].iter().filter(|f| **f != NONE) {
                self.frames.update(f, set, clear);
            }
        }
    }

    /// Notes that the page is used: it is the newest now. Returns its flags.
    pub(super) fn touch(&mut self, file: u32, page: u32) -> Option<u8> {
        self.stats.touched += 1;
        let f = self.frame(file, page)?;
        Some(self.frames.touch(f))
    }

    /// Touches pages from `from` on, up to `to` or one that is not in memory, is not up to date or has a
    /// marker, which it returns.
    pub(super) fn touch_known(&mut self, file: u32, from: u32, to: u32) -> u32 {
        let mut known = 0;
        for (chunk, pages) in parts(from, to) {
            let Some(chunk) = self.files[file as usize].chunk(chunk) else { break };
            let wanted = pages.len();
            let touched = self.frames.touch_known(&chunk.frames[pages]);
            known += touched;
            if touched < wanted {
                break;
            }
        }
        self.stats.touched += known as u64;
        from + u32::try_from(known).unwrap_or(0)
    }

    pub(super) fn clear_marker(&mut self, file: u32, page: u32) {
        self.update(file, page, 1, (0, MARKER));
    }

    /// The read of these pages has been handed in.
    pub(super) fn handed_in(&mut self, file: u32, first: u32, count: u32) {
        self.update(file, first, count, (0, NEW));
    }

    /// The read of these pages has completed. `woken` gets who waited for one of them.
    pub(super) fn read_done(&mut self, file: u32, first: u32, count: u32, woken: &mut VecDeque<u32>) {
        self.update(file, first, count, (UPTODATE, READING));
        self.wake_page_waiters(file, first, count, woken);
    }

    /// The group that made the page dirty first, if that is tracked.
    pub(super) fn dirtier(&self, file: u32, page: u32) -> Option<GroupId> {
        self.frame(file, page).and_then(|f| self.frames.get(f).dirtier)
    }

    /// The page is newer than the disk from now on, by this group's doing. One that is already is no more
    /// than it was.
    pub(super) fn set_dirty(&mut self, now: Instant, file: u32, page: u32, dirtier: Option<GroupId>) {
        if self.frame(file, page).is_none() {
            self.add(file, page, 0);
        }
        self.set_dirty_while(now, file, page..page + 1, dirtier, |_| true);
    }

    /// The pages in `pages` are newer than the disk from now on, up to one that is not in memory or not up to
    /// date, which it returns.
    pub(super) fn set_dirty_known(
        &mut self,
        now: Instant,
        file: u32,
        pages: Range<u32>,
        dirtier: Option<GroupId>,
    ) -> u32 {
        self.set_dirty_while(now, file, pages, dirtier, |flags| flags & UPTODATE != 0)
    }

    fn set_dirty_while(
        &mut self,
        now: Instant,
        file: u32,
        all: Range<u32>,
        dirtier: Option<GroupId>,
        is_such: impl Fn(u8) -> bool,
    ) -> u32 {
        let mapping = &mut self.files[file as usize];
        let mut next = all.start;
        'chunks: for (number, pages) in parts(all.start, all.end) {
            let Some(Some(chunk)) = mapping.table.get_mut(number) else { break };
            for page in pages {
                let f = chunk.frames[page];
                let Some(flags) = self.frames.flags(f).filter(|flags| is_such(*flags)) else { break 'chunks };
                next += 1;
                if flags & DIRTY != 0 {
                    continue;
                }
                self.frames.update(f, DIRTY | UPTODATE, 0);
                self.dirty += 1;
                self.dirtied += 1;
                let stamp = stamp_of(self.dirtied);
                let frame = self.frames.get_mut(f);
                (frame.dirtier, frame.stamp) = (dirtier, stamp);
                if chunk.set_dirty(page, stamp) {
                    mapping.dirty.insert(number as u32);
                }
                if mapping.dirtied.is_none() {
                    mapping.dirtied = Some(now);
                    self.dirty_files.push_back(file);
                }
            }
        }
        self.stats.touched += u64::from(next - all.start);
        next
    }

    /// The first dirty page of the file in `from..to`; of those that became dirty after a stamp, none.
    pub(super) fn next_dirty(&self, file: u32, from: u32, to: u32, until: Option<u32>) -> Option<u32> {
        if from >= to {
            return None;
        }
        let is_old = |stamp: u32| until.is_none_or(|until| !is_later(stamp, until));
        let mapping = &self.files[file as usize];
        for &number in mapping.dirty.range(from / CHUNK as u32..=(to - 1) / CHUNK as u32) {
            let Some(chunk) = mapping.chunk(number as usize).filter(|c| is_old(c.since)) else { continue };
            let first = number * CHUNK as u32;
            let (mut next, end) = (from.saturating_sub(first) as usize, (to - first) as usize);
            while let Some(page) = chunk.next_dirty(next, end) {
                if is_old(self.frames.get(chunk.frames[page]).stamp) {
                    return Some(first + page as u32);
                }
                next = page + 1;
            }
        }
        None
    }

    /// A stamp of now, for [`Self::next_dirty`].
    pub(super) const fn stamp(&self) -> u32 {
        stamp_of(self.dirtied)
    }

    /// A write of these dirty pages has been handed in.
    pub(super) fn write_begun(&mut self, file: u32, first: u32, count: u32) {
        self.update(file, first, count, (WRITEBACK, DIRTY));
        for (number, pages) in parts(first, first + count) {
            let mapping = &mut self.files[file as usize];
            let Some(Some(chunk)) = mapping.table.get_mut(number) else { continue };
            if pages.fold(false, |_, page| chunk.clear_dirty(page)) {
                mapping.dirty.remove(&(number as u32));
            }
        }
        self.dirty -= count;
        self.writeback += count;
        self.seq += 1;
        let seq = self.seq;
        let mapping = &mut self.files[file as usize];
        mapping.flights.push(Flight { first, count, seq });
        if mapping.dirty.is_empty() {
            mapping.dirtied = None;
            self.dirty_files.retain(|&f| f != file);
        }
    }

    /// The write of these pages has completed.
    pub(super) fn write_done(&mut self, file: u32, first: u32, count: u32, woken: &mut VecDeque<u32>) {
        self.update(file, first, count, (0, WRITEBACK));
        self.writeback -= count;
        let mapping = &mut self.files[file as usize];
        let flight = mapping.flights.iter().position(|f| f.first == first).expect("a write that was begun");
        mapping.flights.remove(flight);
        let flights = &mapping.flights;
        mapping.sync_waiters.retain(|waiter| {
            let waits = flights.iter().any(|f| waiter.waits_for(f));
            if !waits {
                woken.push_back(waiter.thread);
            }
            waits
        });
        self.wake_page_waiters(file, first, count, woken);
    }

    fn wake_page_waiters(&mut self, file: u32, first: u32, count: u32, woken: &mut VecDeque<u32>) {
        self.files[file as usize].page_waiters.retain(|&(page, thread)| {
            let is_in = (first..first + count).contains(&page);
            if is_in {
                woken.push_back(thread);
            }
            !is_in
        });
    }

    /// The thread waits for the I/O of a page.
    pub(super) fn wait_for_page(&mut self, file: u32, page: u32, thread: u32) {
        self.files[file as usize].page_waiters.push((page, thread));
    }

    /// Whether the thread has to wait for writes of these pages of the file that have begun by now; if so it
    /// is woken after the last. Writes of other pages do not matter.
    pub(super) fn wait_for_writes(&mut self, file: u32, range: (u32, u32), thread: u32) -> bool {
        let mapping = &mut self.files[file as usize];
        let waiter = SyncWaiter { thread, range, seq: self.seq };
        let waits = mapping.flights.iter().any(|f| waiter.waits_for(f));
        if waits {
            mapping.sync_waiters.push(waiter);
        }
        waits
    }

    /// The file whose turn it is to be written: dirty since `before` or earlier. It goes to the end of the
    /// queue.
    pub(super) fn next_dirty_file(&mut self, before: Instant) -> Option<u32> {
        let is_old = |f: &u32| self.files[*f as usize].dirtied.is_some_and(|d| d <= before);
        let at = self.dirty_files.iter().position(is_old)?;
        let file = self.dirty_files.remove(at)?;
        self.dirty_files.push_back(file);
        Some(file)
    }

    /// How many files have dirty pages.
    pub(super) fn dirty_files(&self) -> u32 {
        u32::try_from(self.dirty_files.len()).unwrap_or(u32::MAX)
    }

    /// Where the file's next pass of writing begins.
    pub(super) fn cursor(&self, file: u32) -> u32 {
        self.files[file as usize].cursor
    }

    pub(super) fn set_cursor(&mut self, file: u32, page: u32) {
        self.files[file as usize].cursor = page;
    }

    /// Drops the clean pages of `first..first + count`.
    pub(super) fn invalidate(&mut self, file: u32, first: u32, count: u32) {
        for page in first..first.saturating_add(count) {
            if let Some(f) = self.frame(file, page).filter(|&f| self.frames.is_clean(f)) {
                self.drop_frame(f);
            }
        }
    }

    /// Drops all clean pages of the file.
    pub(super) fn invalidate_file(&mut self, file: u32) {
        let chunks = self.files[file as usize].table.len();
        for chunk in (0..chunks).filter(|&c| self.files[file as usize].table[c].is_some()).collect::<Vec<_>>()
        {
            #[allow(clippy::cast_possible_truncation, reason = "pages are counted in 32 bits")]
            self.invalidate(file, (chunk * CHUNK) as u32, CHUNK as u32);
        }
    }

    /// Drops all clean pages.
    pub(super) fn invalidate_all(&mut self) {
        while let Some(oldest) = self.frames.oldest() {
            self.drop_frame(oldest);
        }
    }

    fn drop_frame(&mut self, f: u32) {
        let Frame { file, page, .. } = *self.frames.get(f);
        self.frames.remove(f);
        let mapping = &mut self.files[file as usize];
        mapping.cached -= 1;
        if let Some(Some(chunk)) = mapping.table.get_mut(page as usize / CHUNK) {
            chunk.frames[page as usize % CHUNK] = NONE;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const T: Instant = Instant::EPOCH;

    fn holding(pages: u32) -> Cache {
        Cache::new(u64::from(pages) * PAGE_BYTES, 2, (pages / 10, pages / 5))
    }

    #[test]
    fn the_oldest_clean_page_makes_room() {
        let mut cache = holding(4);
        (0..3).for_each(|p| cache.add(0, p, UPTODATE));
        cache.set_dirty(T, 0, 3, None);
        cache.add(0, 4, UPTODATE);
        assert_eq!(cache.flags(0, 0), None, "page 0 was the oldest");
        cache.set_dirty(T, 0, 1, None);
        cache.add(0, 5, UPTODATE);
        assert_eq!(cache.flags(0, 2), None, "page 1 was older, but is dirty");
        assert_eq!((cache.dirty, cache.stats.evicted), (2, 2));
    }

    #[test]
    fn a_touched_page_is_the_newest() {
        let mut cache = holding(2);
        (0..2).for_each(|p| cache.add(0, p, UPTODATE));
        cache.touch(0, 0);
        cache.add(1, 0, UPTODATE);
        assert!(cache.flags(0, 0).is_some() && cache.flags(0, 1).is_none());
    }

    #[test]
    fn pages_with_io_under_way_stay_even_beyond_the_capacity() {
        let mut cache = holding(2);
        (0..5).for_each(|p| cache.add(0, p, READING));
        assert_eq!(cache.cached(0), 5);
        cache.read_done(0, 0, 5, &mut VecDeque::new());
        cache.add(0, 9, UPTODATE);
        assert_eq!(cache.flags(0, 0), None);
    }

    #[test]
    fn a_write_takes_pages_in_file_order_and_a_sync_waits_for_those_begun() {
        let mut cache = holding(100);
        for page in [7, 3, 5, 4] {
            cache.set_dirty(T, 1, page, None);
        }
        assert_eq!(cache.next_dirty(1, 0, 100, None), Some(3));
        cache.write_begun(1, 3, 3);
        assert_eq!((cache.dirty, cache.writeback), (1, 3));
        assert!(cache.wait_for_writes(1, (0, u32::MAX), 42));
        cache.write_begun(1, 7, 1);
        let mut woken = VecDeque::new();
        cache.write_done(1, 3, 3, &mut woken);
        assert_eq!(woken, [42], "the write of page 7 began later and is not waited for");
        cache.write_done(1, 7, 1, &mut woken);
        assert_eq!((cache.dirty, cache.writeback), (0, 0));
        assert_eq!(cache.next_dirty_file(T), None);
    }

    #[test]
    fn a_thread_waits_for_the_writes_of_its_range_only() {
        let mut cache = holding(100);
        for page in [10, 11, 20, 21] {
            cache.set_dirty(T, 1, page, None);
        }
        cache.write_begun(1, 10, 2);
        cache.write_begun(1, 20, 2);
        for (range, waits) in [((0, 10), false), ((12, 20), false), ((22, 30), false), ((12, 21), true)] {
            assert_eq!(cache.wait_for_writes(1, range, 7), waits, "{range:?}");
        }
        let mut woken = VecDeque::new();
        cache.write_done(1, 10, 2, &mut woken);
        assert!(woken.is_empty(), "pages 10 and 11 are not waited for");
        cache.write_done(1, 20, 2, &mut woken);
        assert_eq!(woken, [7]);
    }

    #[test]
    fn a_page_is_dirty_since_it_was_made_so() {
        let mut cache = holding(100);
        cache.set_dirty(T, 1, 5, None);
        let before = cache.stamp();
        cache.set_dirty(T, 1, 5, None);
        cache.set_dirty(T, 1, 6, None);
        // A pass takes the old one alone; without a stamp, both.
        assert_eq!([0, 6].map(|from| cache.next_dirty(1, from, 100, Some(before))), [Some(5), None]);
        assert_eq!([0, 6].map(|from| cache.next_dirty(1, from, 100, None)), [Some(5), Some(6)]);
    }

    /// Random pages of several chunks become dirty and are written: the next dirty page is that of a map.
    #[test]
    fn the_next_dirty_page_is_the_next_in_file_order_that_is_old_enough() {
        let (mut cache, mut rng) = (holding(1 << 20), crate::rng::Rng::new(1, "dirty pages"));
        let mut map = std::collections::BTreeMap::new();
        let mut old = 0;
        for step in 0..20_000 {
            let mut draw = |n: u64| rng.below(n) as u32;
            let page = [0, 1020, 2048, 7 * 1024][draw(4) as usize] + draw(8);
            if draw(3) > 0 {
                cache.set_dirty(T, 1, page, None);
                map.entry(page).or_insert_with(|| cache.stamp());
            } else if map.remove(&page).is_some() {
                cache.write_begun(1, page, 1);
                cache.write_done(1, page, 1, &mut VecDeque::new());
            }
            if step % 97 == 0 {
                old = cache.stamp();
            }
            let (from, to) = (draw(8000), draw(8000));
            for until in [None, Some(old)] {
                let is_old = |(_, stamp): &(&u32, &u32)| until.is_none_or(|until| **stamp <= until);
                let expected = map.range(from..to.max(from)).find(is_old).map(|(page, _)| *page);
                assert_eq!(cache.next_dirty(1, from, to, until), expected, "{step}: {from}..{to} {until:?}");
            }
        }
        assert_eq!(cache.dirty as usize, map.len());
    }

    #[test]
    fn a_page_dirtied_while_being_written_is_dirty_afterwards() {
        let mut cache = holding(8);
        cache.set_dirty(T, 0, 1, None);
        cache.write_begun(0, 1, 1);
        cache.set_dirty(T, 0, 1, None);
        cache.write_done(0, 1, 1, &mut VecDeque::new());
        assert_eq!(cache.flags(0, 1), Some(UPTODATE | DIRTY));
        assert_eq!(cache.next_dirty_file(T), Some(0));
    }

    #[test]
    fn a_page_is_of_the_group_that_dirtied_it_first_until_it_is_written() {
        let mut cache = holding(8);
        let (one, two) = (Some(GroupId(1)), Some(GroupId(2)));
        cache.set_dirty(T, 0, 1, one);
        cache.set_dirty(T, 0, 1, two);
        assert_eq!(cache.dirtier(0, 1), one);
        cache.write_begun(0, 1, 1);
        cache.set_dirty(T, 0, 1, two);
        assert_eq!(cache.dirtier(0, 1), two, "what it has now is not what is being written");
        cache.write_done(0, 1, 1, &mut VecDeque::new());
        cache.write_begun(0, 1, 1);
        cache.write_done(0, 1, 1, &mut VecDeque::new());
        cache.set_dirty(T, 0, 1, None);
        assert_eq!(cache.dirtier(0, 1), None);
    }

    #[test]
    fn invalidating_spares_dirty_pages() {
        let mut cache = holding(8);
        cache.add(0, 1, UPTODATE);
        cache.set_dirty(T, 0, 2, None);
        cache.invalidate_file(0);
        assert_eq!((cache.flags(0, 1), cache.cached(0)), (None, 1));
    }

    #[test]
    fn files_take_turns_from_the_longest_dirty() {
        let mut cache = holding(8);
        cache.set_dirty(T, 1, 0, None);
        cache.set_dirty(T + fairhead_core::Duration::from_secs(1), 0, 0, None);
        let late = T + fairhead_core::Duration::from_secs(2);
        assert_eq!(cache.next_dirty_file(T), Some(1));
        assert_eq!(cache.next_dirty_file(late), Some(0), "file 1 had its turn");
        assert_eq!(cache.next_dirty_file(T), Some(1), "only file 1 is as old as that");
    }
}
