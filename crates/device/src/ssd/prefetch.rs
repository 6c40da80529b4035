//! Reading ahead of sequential readers, into the controller's memory.
//!
//! A read that begins where one of the last eight streams ended makes that stream go on, and from the second
//! read on `prefetch` bytes beyond its end are fetched, in chunks of a quarter of that on a fixed grid. A
//! read that lies in fetched chunks waits for those that are still on their way, and then takes the link:
//! `t_cmd + t_fix + link`.
//!
//! ```text
//!   chunks of the device    |     4     |     5     |     6     |     7     |     8     |
//!   reads                            ▓▓▓▓▓▓ read      then fetched: what is left of 5, 6, 7, 8 and 9
//! ```
//!
//! Fetches queue on the dies like reads do. What they fetch for a reader that has left is not used.
//!
//! What this does not do: notice that fetched data have been overwritten, which would cost the same.
//= docs/reference/devices.md#22-sata-ssds

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

/// The number of sequential streams of reads that are recognised.
const STREAMS: usize = 8;
/// Chunks of a stream that can be in memory.
const CHUNKS: u64 = 16;
/// Chunks of what is fetched ahead.
const AHEAD: u64 = 4;
/// No chunk.
const NONE: u64 = u64::MAX;

/// How a read fares.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Lookup {
    /// It has to go to the dies.
    Miss,
    /// It is in memory.
    Hit,
    /// It will be, when [`Prefetch::ready`] says so.
    Awaited,
}

/// Pages to fetch, in sectors; `id` comes back to [`Prefetch::page`] with each of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Fetch {
    pub(super) id: u32,
    pub(super) start: u64,
    pub(super) end: u64,
}

/// Room for a chunk.
#[derive(Clone, Copy, Debug)]
struct Cell {
    chunk: u64,
    /// Sectors from here to the chunk's end were fetched.
    from: u64,
    /// Pages on their way.
    pages: u32,
}

#[derive(Clone, Copy, Debug)]
struct Stream {
    /// Whether any of the cells was ever used for this stream.
    fetched: bool,
    /// The next chunk to fetch.
    next: u64,
    cells: [Cell; CHUNKS as usize],
}

/// A read that waits for chunks.
#[derive(Clone, Copy, Debug)]
struct Waiter {
    slot: u32,
    stream: usize,
    first: u64,
    last: u64,
    chunks: u64,
}

/// The streams in the order of their last use: a number of four bits for each, the longest ago lowest.
///
/// Every random read begins a stream, and with it the order changes; in one word that is a few shifts.
#[derive(Clone, Copy, Debug)]
struct Order(u32);

impl Order {
    const fn new() -> Self {
        Self(0x7654_3210)
    }

    /// The streams, that used longest ago first.
    fn streams(self) -> impl Iterator<Item = usize> {
        (0..STREAMS).map(move |place| (self.0 >> (4 * place)) as usize & 0xf)
    }

    fn place_of(self, stream: usize) -> usize {
        self.streams().position(|s| s == stream).expect("each stream has a place")
    }

    /// Moves the stream at a place to the end, as it is used now. Returns its number.
    fn take_last(&mut self, place: usize) -> usize {
        let (stream, below) = ((self.0 >> (4 * place)) & 0xf, (1 << (4 * place)) - 1);
        self.0 = (self.0 & below) | ((self.0 >> 4) & !below & 0x0fff_ffff) | (stream << 28);
        stream as usize
    }
}

/// The streams and what was fetched for them. Lengths in sectors.
#[derive(Clone, Debug)]
pub(super) struct Prefetch {
    ahead: u64,
    chunk: u64,
    capacity: u64,
    /// Identities of fetches begin here.
    base: u32,
    /// The end of each stream's last read; none while the stream is unused.
    ends: [u64; STREAMS],
    /// The streams in the order of their last use, the longest ago first.
    order: Order,
    /// The number of cells of each stream that have pages on their way.
    awaited: [u32; STREAMS],
    /// Streams for which something was fetched.
    fetched: u32,
    streams: Vec<Stream>,
    /// In the order in which they came; and how many of them wait for nothing any more.
    waiting: VecDeque<Waiter>,
    ready: usize,
    /// The stream of the last read.
    current: Option<usize>,
}

#[allow(clippy::cast_possible_truncation, reason = "128 cells, and pages of a chunk of at most 1 GiB")]
impl Prefetch {
    /// Reads ahead by `ahead` sectors; zero: never. Fetches are numbered from `base`, the number of commands.
    pub(super) fn new(ahead: u64, page: u64, capacity: u64, base: usize) -> Self {
        let cell = Cell { chunk: NONE, from: 0, pages: 0 };
        let stream = Stream { fetched: false, next: 0, cells: [cell; CHUNKS as usize] };
        Self {
            ahead,
            chunk: (ahead / AHEAD).next_multiple_of(page).max(page),
            capacity,
            base: base as u32,
            ends: [NONE; STREAMS],
            order: Order::new(),
            awaited: [0; STREAMS],
            fetched: 0,
            streams: vec![stream; if ahead > 0 { STREAMS } else { 0 }],
            waiting: VecDeque::with_capacity(base),
            ready: 0,
            current: None,
        }
    }

    /// How many fetches there can be at once.
    pub(super) fn fetches_max(&self) -> usize {
        self.streams.len() * CHUNKS as usize
    }

    /// Looks up a read of `[start, end)`; [`fetch`](Self::fetch) then says what to fetch.
    pub(super) fn look_up(&mut self, slot: u32, start: u64, end: u64) -> Lookup {
        self.current = None;
        if self.ahead == 0 {
            return Lookup::Miss;
        }
        let Some(i) = self.ends.iter().position(|&e| e == start) else {
            self.begin(end);
            return Lookup::Miss;
        };
        let chunk = self.chunk;
        self.order.take_last(self.order.place_of(i));
        let stream = &mut self.streams[i];
        self.ends[i] = end;
        self.current = Some(i);
        let (first, last) = (start / chunk, (end - 1) / chunk);
        let (mut chunks, mut here) = (0, last - first < CHUNKS);
        for c in first..=last.min(first + CHUNKS) {
            let cell = &stream.cells[(c % CHUNKS) as usize];
            here &= cell.chunk == c && cell.from <= start.max(c * chunk);
            chunks += u64::from(cell.pages > 0);
        }
        if !here {
            stream.next = end / chunk;
            return Lookup::Miss;
        }
        if chunks == 0 {
            return Lookup::Hit;
        }
        self.waiting.push_back(Waiter { slot, stream: i, first, last, chunks });
        Lookup::Awaited
    }

    /// A new stream, in place of the one that was used longest ago and has nothing on its way.
    fn begin(&mut self, end: u64) {
        let Some(place) = self.order.streams().position(|s| self.awaited[s] == 0) else { return };
        let i = self.order.take_last(place);
        let stream = &mut self.streams[i];
        if core::mem::take(&mut stream.fetched) {
            self.fetched -= 1;
            stream.cells.iter_mut().for_each(|c| c.chunk = NONE);
        }
        // Nothing of it is in memory, so its next read says what to fetch first.
        self.ends[i] = end;
    }

    /// Whether the next read may find something in memory.
    #[inline]
    pub(super) fn may_hit(&self) -> bool {
        self.fetched > 0
    }

    /// What to fetch now. Call until `None`, each time telling with [`fetching`](Self::fetching) how many
    /// pages it is.
    pub(super) fn fetch(&mut self) -> Option<Fetch> {
        let i = self.current?;
        let (s, read) = (&mut self.streams[i], self.ends[i]);
        let (c, begin) = (s.next, s.next * self.chunk);
        let cell = &mut s.cells[(c % CHUNKS) as usize];
        if begin >= (read + self.ahead).min(self.capacity) || cell.pages > 0 {
            return None;
        }
        let (start, end) = (begin.max(read), (begin + self.chunk).min(self.capacity));
        if start >= end {
            return None;
        }
        s.next += 1;
        self.fetched += u32::from(!core::mem::replace(&mut s.fetched, true));
        (cell.chunk, cell.from) = (c, start);
        Some(Fetch { id: self.base + i as u32 * CHUNKS as u32 + (c % CHUNKS) as u32, start, end })
    }

    fn cell(&mut self, id: u32) -> (usize, &mut Cell) {
        let n = (id - self.base) as usize;
        let stream = n / CHUNKS as usize;
        (stream, &mut self.streams[stream].cells[n % CHUNKS as usize])
    }

    pub(super) fn fetching(&mut self, id: u32, pages: u32) {
        let (stream, cell) = self.cell(id);
        cell.pages = pages;
        self.awaited[stream] += 1;
    }

    /// A fetched page is in memory.
    pub(super) fn page(&mut self, id: u32) {
        let (stream, cell) = self.cell(id);
        cell.pages -= 1;
        if cell.pages == 0 {
            let chunk = cell.chunk;
            self.awaited[stream] -= 1;
            let has_it = |w: &&mut Waiter| w.stream == stream && (w.first..=w.last).contains(&chunk);
            for w in self.waiting.iter_mut().filter(has_it) {
                w.chunks -= 1;
                self.ready += usize::from(w.chunks == 0);
            }
        }
    }

    /// A read whose chunks are in memory, oldest first.
    pub(super) fn ready(&mut self) -> Option<u32> {
        if self.ready == 0 {
            return None;
        }
        self.ready -= 1;
        let i = self.waiting.iter().position(|w| w.chunks == 0)?;
        self.waiting.remove(i).map(|w| w.slot)
    }

    /// How much the list holds without allocating.
    #[cfg(test)]
    pub(super) fn room_of_lists(&self) -> usize {
        self.waiting.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_that_was_used_longest_ago_comes_first() {
        let (mut order, mut list) = (Order::new(), (0..STREAMS).collect::<Vec<_>>());
        for i in 0..1000 {
            let place = i * i % 61 % STREAMS;
            let stream = list.remove(place);
            list.push(stream);
            assert_eq!((order.place_of(stream), order.take_last(place)), (place, stream));
            assert!(order.streams().eq(list.iter().copied()), "{order:?} {list:?}");
        }
    }
}
