//! Read-ahead on demand: from where a file is read to what is worth reading with it.
//!
//! ```text
//!   window 1          window 2                  window 3
//!   |0 1 2 3|4 5 6 7 8 9 10 11|12 …           27|28 …
//!      ^m    ^m                ^m                            m: marker; touching it sends for the next window
//! ```
//!
//! A reader that misses a page gets a window that begins there. One page of the window is marked: the first
//! that was not asked for. When the reader comes to the mark the next window, twice as long, is sent for, so
//! a sequential reader has one window to consume while the next one is read, and both are in flight when the
//! disk is the bottleneck. Reads that do not continue each other get exactly what they ask for.
//!
//! It knows pages and windows only; the caller that hands the window in skips what is in memory already.
//
//= docs/reference/hosts.md#page-cache-and-readahead
//= linux-2.6.33 mm/readahead.c ondemand_readahead, get_init_ra_size, get_next_ra_size

use crate::host::Host;
use crate::job::{Job, Program};

/// What to read: pages `start..start + len`, and the page to mark.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Window {
    pub(super) start: u32,
    pub(super) len: u32,
    pub(super) marker: Option<u32>,
}

/// The read-ahead state of one open file.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReadAhead {
    /// The largest window in pages. Zero: never read ahead.
    max: u32,
    /// A call longer than that has a window of its own length, up to this many pages.
    with_calls: u32,
    start: u32,
    size: u32,
    /// How many pages at the window's end were not asked for when it was sent for; the first of them is
    /// marked.
    ahead: u32,
    /// The last page of the last call.
    last: Option<u32>,
}

impl ReadAhead {
    const fn new(max: u32) -> Self {
        Self { max, with_calls: 0, start: 0, size: 0, ahead: 0, last: None }
    }

    /// That of a job's files on a host.
    pub(super) fn of(job: &Job, host: &Host) -> Self {
        Self::new(advised(job, host.read_ahead)).with_calls(host.read_with_call())
    }

    /// Windows as long as a call, up to `pages` pages, for calls that are longer than the largest window.
    const fn with_calls(self, pages: u32) -> Self {
        Self { with_calls: pages, ..self }
    }

    /// The largest window of a call for `wanted` pages.
    const fn most(&self, wanted: u32) -> u32 {
        let with_call = if wanted < self.with_calls { wanted } else { self.with_calls };
        if with_call > self.max { with_call } else { self.max }
    }

    /// A call has read up to `page`.
    pub(super) const fn read_up_to(&mut self, page: u32) {
        self.last = Some(page);
    }

    /// `page` is not in memory; `wanted` pages from there are asked for.
    pub(super) fn on_miss(&mut self, page: u32, wanted: u32) -> Window {
        if self.max == 0 {
            return Window { start: page, len: wanted, marker: None };
        }
        // A miss within the window was dropped from memory before it was used: not what the next window is
        // for.
        let most = self.most(wanted);
        if page != 0 && self.size > 0 && page == self.start + self.size {
            self.ramp_up(most);
            return self.window(page, most);
        }
        let is_sequential = self.last.is_some_and(|last| page == last || page == last.saturating_add(1));
        if page == 0 || is_sequential || wanted > most {
            self.start = page;
            self.size = initial(wanted, most);
            self.ahead = if self.size > wanted { self.size - wanted } else { self.size };
            return self.window(page, most);
        }
        Window { start: page, len: wanted, marker: None }
    }

    /// The marked `page` is touched; `wanted` pages from there are asked for, and `missing` is the first page
    /// behind it that is not in memory.
    pub(super) fn on_marker(&mut self, page: u32, wanted: u32, missing: u32) -> Option<Window> {
        if self.max == 0 {
            return None;
        }
        let most = self.most(wanted);
        if self.is_expected(page) {
            self.ramp_up(most);
        } else {
            // Another reader's mark, or this one's from before it jumped: go on behind what is there.
            if missing.saturating_sub(page) > most {
                return None;
            }
            self.start = missing;
            self.size = next(missing - page + wanted, most);
            self.ahead = self.size;
        }
        Some(self.window(page, most))
    }

    const fn is_expected(&self, page: u32) -> bool {
        self.size > 0 && (page == self.start + self.size - self.ahead || page == self.start + self.size)
    }

    fn ramp_up(&mut self, most: u32) {
        self.start += self.size;
        self.size = next(self.size, most);
        self.ahead = self.size;
    }

    /// The current window. If the page that asked for it bears its mark, the one behind it comes along.
    fn window(&mut self, page: u32, most: u32) -> Window {
        if page == self.start && self.ahead == self.size {
            self.ahead = next(self.size, most);
            self.size += self.ahead;
        }
        Window { start: self.start, len: self.size, marker: Some(self.start + self.size - self.ahead) }
    }
}

/// The first window of a run that begins with a call for `wanted` pages.
const fn initial(wanted: u32, max: u32) -> u32 {
    let size = wanted.next_power_of_two();
    if size <= max / 32 {
        size * 4
    } else if size <= max / 4 {
        size * 2
    } else {
        max
    }
}

/// The window after one of `size` pages.
const fn next(size: u32, max: u32) -> u32 {
    let grown = if size < max / 16 { size * 4 } else { size * 2 };
    if grown < max { grown } else { max }
}

/// The largest window of read-ahead, with fio's advice to the kernel about the file.
//= docs/reference/hosts.md#page-cache-and-readahead
fn advised(job: &Job, pages: u32) -> u32 {
    match (job.program, job.rw.random) {
        // Its reads are those that reached the disk: read-ahead was had.
        (Some(Program::StartUp(_)), _) => 0,
        (Some(_), _) => pages,
        (None, _) if !job.fadvise => pages,
        (None, true) => 0,
        (None, false) => pages * 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(start: u32, len: u32, marker: u32) -> Window {
        Window { start, len, marker: Some(marker) }
    }

    #[test]
    fn a_sequential_reader_gets_windows_that_double_up_to_the_largest() {
        let mut ra = ReadAhead::new(32);
        assert_eq!(ra.on_miss(0, 1), window(0, 4, 1));
        let mut windows = Vec::new();
        let mut marker = 1;
        for _ in 0..5 {
            let w = ra.on_marker(marker, 1, u32::MAX).unwrap();
            marker = w.marker.unwrap();
            windows.push((w.start, w.len));
            assert_eq!(marker, w.start, "in the steady state the first page of a window is marked");
        }
        assert_eq!(windows, [(4, 8), (12, 16), (28, 32), (60, 32), (92, 32)]);
    }

    #[test]
    fn reads_all_over_get_what_they_ask_for() {
        let mut ra = ReadAhead::new(32);
        for page in [1000, 20, 777] {
            assert_eq!(ra.on_miss(page, 2), Window { start: page, len: 2, marker: None });
            ra.read_up_to(page + 1);
        }
    }

    #[test]
    fn the_second_call_in_a_row_starts_a_run() {
        let mut ra = ReadAhead::new(32);
        assert_eq!(ra.on_miss(500, 1).marker, None);
        ra.read_up_to(500);
        assert_eq!(ra.on_miss(501, 1), window(501, 4, 502));
    }

    #[test]
    fn a_large_call_gets_the_largest_window_at_once() {
        let mut ra = ReadAhead::new(32);
        // 16 pages are more than a quarter of 32: the window is 32, and its second half was not asked for.
        assert_eq!(ra.on_miss(0, 16), window(0, 32, 16));
    }

    #[test]
    fn a_call_longer_than_the_largest_window_is_read_in_windows() {
        let mut ra = ReadAhead::new(32);
        // Everything is asked for, so the window marks itself and brings the next one.
        assert_eq!(ra.on_miss(0, 64), window(0, 64, 32));
        assert_eq!(ra.on_marker(32, 32, 64), Some(window(64, 32, 64)));
    }

    /// Traced on Linux 6.18 with windows of 32 pages: calls of 64, 128 and 256 pages are read in requests as
    /// long as they are, calls of 1024 in requests of 320 pages.
    #[test]
    fn a_call_longer_than_the_largest_window_has_one_of_its_own_length() {
        for (wanted, len) in [(16, 32), (64, 64), (256, 256), (1024, 320)] {
            let mut ra = ReadAhead::new(32).with_calls(320);
            ra.on_miss(0, wanted);
            let mut page = ra.start + ra.size - ra.ahead;
            for _ in 0..3 {
                let w = ra.on_marker(page, wanted, u32::MAX).unwrap();
                page = w.marker.unwrap();
                assert_eq!(w.len, len, "{wanted}");
            }
        }
        // One that continues nothing gets what it asks for.
        let mut ra = ReadAhead::new(32).with_calls(320);
        assert_eq!(ra.on_miss(1000, 64), Window { start: 1000, len: 64, marker: None });
    }

    #[test]
    fn a_page_dropped_before_its_use_is_in_the_window_that_its_miss_brings() {
        let mut ra = ReadAhead::new(32);
        assert_eq!(ra.on_miss(0, 1), window(0, 4, 1));
        ra.read_up_to(0);
        let w = ra.on_miss(1, 1);
        assert!(w.start <= 1 && 1 < w.start + w.len, "{w:?}");
    }

    #[test]
    fn advice_against_reading_ahead_is_followed() {
        let mut ra = ReadAhead::new(0);
        assert_eq!(ra.on_miss(0, 3), Window { start: 0, len: 3, marker: None });
        assert_eq!(ra.on_marker(0, 1, 1), None);
    }

    #[test]
    fn a_strange_mark_continues_behind_what_is_there() {
        let mut ra = ReadAhead::new(32);
        ra.read_up_to(9);
        // Pages 10 to 17 are there; 8 + 1 pages so far, so the next window has 18.
        assert_eq!(ra.on_marker(10, 1, 18), Some(window(18, 18, 18)));
    }
}
