//! One page of the ring buffer: raw events with their times.

use super::format::Layout;

/// The flags in the word `commit`, beside the number of bytes: events before this page were lost; the number
/// of them follows the events.
const MISSED: u64 = 1 << 31;
const MISSED_STORED: u64 = 1 << 30;
/// The bits of `commit` that are a number of bytes.
const LENGTH: u64 = (1 << 20) - 1;
/// The types of events that are no data.
const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;
/// The number of bits of the time in an event's first word, and of the bits in an absolute time.
const DELTA_BITS: u32 = 27;
const STAMP_BITS: u32 = 59;

/// The events that were overwritten before a page was read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lost {
    /// None were lost.
    None,
    /// The number of events that were lost.
    Known(u64),
    /// Some were lost; the kernel had no room to say how many.
    Unknown,
}

/// One event as it is in the page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RawEvent<'a> {
    /// The time, in nanoseconds of the instance's `trace_clock`.
    pub at_ns: u64,
    /// The data: fields as the event's `format` file has them.
    pub data: &'a [u8],
}

/// An iterator over the events of one page. It ends after the last event, or after the first error.
///
/// ```
/// use fairhead_trace::ring::{Layout, Lost, Page};
/// let layout = Layout::parse("field: u64 timestamp; offset:0; size:8;\nfield: local_t commit; offset:8; size:8;\n\
///     field: char data; offset:16; size:4080;\n").unwrap();
/// // The time 1000, 8 bytes of events: 5 ns later one of type 1, with 4 bytes of data.
/// let word = if cfg!(target_endian = "little") { 1 | 5 << 5 } else { 1 << 27 | 5 };
/// let mut bytes = [1000u64.to_ne_bytes(), 8u64.to_ne_bytes()].concat();
/// bytes.extend(u32::to_ne_bytes(word));
/// bytes.extend([1, 2, 3, 4]);
/// let mut page = Page::new(&bytes, &layout).unwrap();
/// assert_eq!(page.lost(), Lost::None);
/// let event = page.next().unwrap().unwrap();
/// assert_eq!((event.at_ns, event.data), (1005, &[1, 2, 3, 4][..]));
/// assert!(page.next().is_none());
/// ```
#[derive(Clone, Debug)]
pub struct Page<'a> {
    events: &'a [u8],
    at: usize,
    /// Where the events begin in the page, for messages.
    base: usize,
    now: u64,
    lost: Lost,
}

impl<'a> Page<'a> {
    /// Begins a page. `bytes` is what one `read` returned; what follows the events need not be there.
    ///
    /// # Errors
    /// If it is shorter than its header says. The message is one line.
    pub fn new(bytes: &'a [u8], layout: &Layout) -> Result<Self, String> {
        let short = || format!("a page of {} bytes; its header alone has {}", bytes.len(), layout.data);
        let head = bytes.get(..layout.data).ok_or_else(short)?;
        let now = head.first_chunk().map(|b| u64::from_ne_bytes(*b)).ok_or_else(short)?;
        let commit = match layout.commit_bytes {
            4 => head[8..].first_chunk().map(|b| u64::from(u32::from_ne_bytes(*b))),
            _ => head[8..].first_chunk().map(|b| u64::from_ne_bytes(*b)),
        };
        let commit = commit.ok_or_else(short)?;
        let length = usize::try_from(commit & LENGTH).unwrap_or(usize::MAX);
        let data = &bytes[layout.data..];
        let events = data.get(..length).ok_or_else(|| {
            format!("a page that says it has {length} bytes of events, and has {}", data.len())
        })?;
        let stored = || {
            // A number of the kernel's `long`, as long as `commit`.
            let bytes = data.get(length..length + layout.commit_bytes)?;
            match *bytes {
                [a, b, c, d] => Some(u64::from(u32::from_ne_bytes([a, b, c, d]))),
                _ => bytes.first_chunk().map(|b| u64::from_ne_bytes(*b)),
            }
        };
        let lost = match (commit & MISSED != 0, commit & MISSED_STORED != 0) {
            (false, _) => Lost::None,
            (true, true) => stored().map_or(Lost::Unknown, Lost::Known),
            (true, false) => Lost::Unknown,
        };
        Ok(Self { events, at: 0, base: layout.data, now, lost })
    }

    /// Returns what was lost before the first event of this page.
    #[must_use]
    pub const fn lost(&self) -> Lost {
        self.lost
    }

    fn word(&self, at: usize) -> Option<u32> {
        self.events.get(at..)?.first_chunk().map(|b| u32::from_ne_bytes(*b))
    }

    /// Ends the page with an error about the event at this byte.
    fn damaged(&mut self, at: usize, message: &str) -> String {
        self.at = self.events.len();
        format!("byte {} of a page: {message}", self.base + at)
    }

    /// Returns `len` bytes at `from` and moves the position behind them, in whole words.
    fn take(&mut self, start: usize, from: usize, len: usize) -> Result<&'a [u8], String> {
        let Some(data) = from.checked_add(len).and_then(|end| self.events.get(from..end)) else {
            return Err(self.damaged(start, "an event that is longer than the rest of the page"));
        };
        self.at = from + len.next_multiple_of(4);
        Ok(data)
    }
}

impl<'a> Iterator for Page<'a> {
    type Item = Result<RawEvent<'a>, String>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.at < self.events.len() {
            let start = self.at;
            let Some(head) = self.word(start) else {
                return Some(Err(self.damaged(start, "the events end in an event's first word")));
            };
            let (kind, delta) = split(head);
            let second = self.word(start + 4);
            let data = match (kind, second) {
                (PADDING, _) if delta == 0 => {
                    // The rest of the page is unused.
                    self.at = self.events.len();
                    return None;
                }
                (0 | PADDING | TIME_EXTEND | TIME_STAMP, None) => {
                    return Some(Err(self.damaged(start, "the events end in an event's second word")));
                }
                (TIME_EXTEND, Some(high)) => {
                    let gap = u64::from(high) << DELTA_BITS | u64::from(delta);
                    self.now = self.now.saturating_add(gap);
                    self.at = start + 8;
                    continue;
                }
                (TIME_STAMP, Some(high)) => {
                    let stamp = u64::from(high) << DELTA_BITS | u64::from(delta);
                    // Its upper bits are not recorded: they are those of the time before.
                    let mask = (1 << STAMP_BITS) - 1;
                    self.now = self.now & !mask | stamp & mask;
                    self.at = start + 8;
                    continue;
                }
                // Here the length counts the word that it is in.
                (0, Some(length)) if length >= 4 => self.take(start, start + 8, length as usize - 4),
                (0, Some(_)) => Err(self.damaged(start, "an event of less than no bytes")),
                (PADDING, Some(length)) => self.take(start, start + 4, length as usize),
                (words, _) => self.take(start, start + 4, words as usize * 4),
            };
            self.now = self.now.saturating_add(u64::from(delta));
            match data {
                // A discarded event.
                Ok(_) if kind == PADDING => {}
                data => return Some(data.map(|data| RawEvent { at_ns: self.now, data })),
            }
        }
        None
    }
}

/// Splits an event's first word into type and time: a bit field, whose first bits are the lowest on
/// little-endian machines and the highest on others.
const fn split(word: u32) -> (u32, u32) {
    if cfg!(target_endian = "little") {
        (word & 31, word >> 5)
    } else {
        (word >> DELTA_BITS, word & ((1 << DELTA_BITS) - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAYOUT: Layout = Layout { commit_bytes: 8, data: 16, page: 4096 };

    fn head(kind: u32, delta: u32) -> [u8; 4] {
        let word =
            if cfg!(target_endian = "little") { delta << 5 | kind } else { kind << DELTA_BITS | delta };
        word.to_ne_bytes()
    }

    /// A page from the events' bytes, with flags in `commit` and bytes behind the events.
    fn page(now: u64, flags: u64, events: &[u8], behind: &[u8]) -> Vec<u8> {
        let commit = events.len() as u64 | flags;
        [&now.to_ne_bytes()[..], &commit.to_ne_bytes(), events, behind].concat()
    }

    fn times(bytes: &[u8]) -> Vec<Result<(u64, usize), String>> {
        Page::new(bytes, &LAYOUT).unwrap().map(|e| e.map(|e| (e.at_ns, e.data.len()))).collect()
    }

    #[test]
    fn each_type_of_event() {
        let mut events = Vec::new();
        events.extend([head(2, 10).to_vec(), vec![0; 8]].concat());
        // An extension by 3 × 2^27 + 5 ns.
        events.extend([head(TIME_EXTEND, 5), 3u32.to_ne_bytes()].concat());
        // A long event: 120 bytes and the word of its length.
        events.extend([head(0, 1).to_vec(), 124u32.to_ne_bytes().to_vec(), vec![0; 120]].concat());
        // A discarded event, whose time counts.
        events.extend([head(PADDING, 7).to_vec(), 8u32.to_ne_bytes().to_vec(), vec![0; 4]].concat());
        events.extend([head(1, 1).to_vec(), vec![0; 4]].concat());
        // An absolute time.
        events.extend([head(TIME_STAMP, 9), 100u32.to_ne_bytes()].concat());
        events.extend([head(1, 2).to_vec(), vec![0; 4]].concat());
        // The rest is padding, whatever is in it.
        events.extend([head(PADDING, 0).to_vec(), vec![0xff; 21]].concat());
        let extended = 1010 + (3 << 27) + 5 + 1;
        let want = [(1010, 8), (extended, 120), (extended + 8, 4), ((100 << 27) + 9 + 2, 4)];
        assert_eq!(times(&page(1000, 0, &events, &[])), want.map(Ok));
    }

    #[test]
    fn an_absolute_time_keeps_the_upper_bits() {
        let events = [&head(TIME_STAMP, 9)[..], &1u32.to_ne_bytes(), &head(1, 0), &[0; 4]].concat();
        let before = 3 << STAMP_BITS | 55;
        assert_eq!(times(&page(before, 0, &events, &[])), [Ok((3 << STAMP_BITS | 1 << 27 | 9, 4))]);
    }

    #[test]
    fn lost_events_are_told() {
        let events = [&head(1, 0)[..], &[0; 4]].concat();
        let lost =
            |flags, behind: &[u8]| Page::new(&page(0, flags, &events, behind), &LAYOUT).unwrap().lost();
        assert_eq!(lost(0, &[]), Lost::None);
        assert_eq!(lost(MISSED, &[]), Lost::Unknown);
        assert_eq!(lost(MISSED | MISSED_STORED, &77u64.to_ne_bytes()), Lost::Known(77));
        assert_eq!(lost(MISSED | MISSED_STORED, &[1, 2]), Lost::Unknown, "the page is cut off");
    }

    #[test]
    fn damage_is_told_once_with_its_byte() {
        for (events, message) in [
            (vec![1, 2], "byte 16 of a page: the events end in an event's first word"),
            (head(0, 1).to_vec(), "byte 16 of a page: the events end in an event's second word"),
            ([head(0, 1), 3u32.to_ne_bytes()].concat(), "byte 16 of a page: an event of less than no bytes"),
            (
                [head(28, 1), [0; 4]].concat(),
                "byte 16 of a page: an event that is longer than the rest of the page",
            ),
            (
                [head(0, 1), u32::MAX.to_ne_bytes()].concat(),
                "byte 16 of a page: an event that is longer than the rest of the page",
            ),
        ] {
            assert_eq!(times(&page(0, 0, &events, &[])), [Err(message.to_owned())]);
        }
        assert!(Page::new(&[0; 15], &LAYOUT).unwrap_err().contains("15 bytes"));
        let cut = page(0, 0, &[0; 100], &[]);
        assert!(Page::new(&cut[..60], &LAYOUT).unwrap_err().contains("says it has 100"));
    }
}
