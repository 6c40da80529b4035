//! Puts nearly sorted items in order of time, in bounded memory.
//!
//! ```text
//! in    5  7  6  9  2 …            (2 is later than the window can mend)
//! heap  [5 7 6] → 5   [7 6 9] → 6   …
//! out   5  6  7  9  9              2 is given the time of the one before, and counted
//! ```
//!
//! Items with equal times keep their order.

use fairhead_core::Duration;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// An item with a time.
pub(crate) trait Timed {
    fn at(&self) -> Duration;
    /// Moves the item to a later time.
    fn delay_to(&mut self, at: Duration);
}

struct Entry<T> {
    key: Reverse<(Duration, u64)>,
    item: T,
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}
impl<T> Eq for Entry<T> {}
impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl<T> Ord for Entry<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key.cmp(&other.key)
    }
}

/// Sorts items by holding up to `window` of them back.
pub(crate) struct Reorder<T> {
    heap: BinaryHeap<Entry<T>>,
    window: usize,
    count: u64,
    last: Duration,
    late: u64,
}

impl<T: Timed> Reorder<T> {
    pub(crate) fn new(window: usize) -> Self {
        Self { heap: BinaryHeap::new(), window, count: 0, last: Duration::ZERO, late: 0 }
    }

    /// Returns the number of items that came too late to be put in order.
    pub(crate) fn late(&self) -> u64 {
        self.late
    }

    /// Whether another item must be put in before one is taken out.
    pub(crate) fn wants(&self) -> bool {
        self.heap.len() < self.window
    }

    pub(crate) fn put(&mut self, item: T) {
        self.heap.push(Entry { key: Reverse((item.at(), self.count)), item });
        self.count += 1;
    }

    /// Returns the earliest item if its time is at most `until`.
    pub(crate) fn take_until(&mut self, until: Duration) -> Option<T> {
        if self.heap.peek()?.key.0.0 > until { None } else { self.take() }
    }

    /// Returns the earliest item.
    pub(crate) fn take(&mut self) -> Option<T> {
        let mut item = self.heap.pop()?.item;
        if item.at() < self.last {
            self.late += 1;
            item.delay_to(self.last);
        }
        self.last = item.at();
        Some(item)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Timed for u64 {
        fn at(&self) -> Duration {
            Duration::from_ns(*self)
        }
        fn delay_to(&mut self, at: Duration) {
            *self = at.as_ns();
        }
    }

    fn through(window: usize, times: &[u64]) -> (Vec<u64>, u64) {
        let (mut r, mut out) = (Reorder::new(window), Vec::new());
        for t in times {
            r.put(*t);
            if !r.wants() {
                out.extend(r.take());
            }
        }
        out.extend(std::iter::from_fn(|| r.take()));
        (out, r.late())
    }

    #[test]
    fn what_the_window_mends_is_in_order() {
        assert_eq!(through(3, &[5, 7, 6, 9, 8]), (vec![5, 6, 7, 8, 9], 0));
    }

    #[test]
    fn what_comes_too_late_is_moved_and_counted() {
        assert_eq!(through(2, &[5, 7, 6, 9, 2]), (vec![5, 6, 7, 7, 9], 1));
        assert_eq!(through(1, &[5, 2]), (vec![5, 5], 1));
    }
}
