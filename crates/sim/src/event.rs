//! What happens next: a queue of events ordered by time, class and number.
//!
//! Two events at one instant are ordered by class (a device completion before the run of the request queue,
//! that before a process, that before a timer) and then by the order in which they were scheduled. The class
//! order is physics, not taste: the interrupt runs the request queue before the process that it wakes can
//! submit again, and that is what makes idling necessary at all.
//!
//! A run has a few dozen events in the queue at most times: those of processors and drives, each of which
//! soon makes the next. The nearest are a sorted list, in which a new event is a few comparisons away from
//! its place. All behind them, such as the times that thousands of clients sleep until, are a heap:
//!
//! ```text
//!   heap: 90 81 700 95 …   │   near: 64 55 31 30 12 ─► next
//!                          │           ▲
//!    behind all near ones  │           60 is put here
//! ```

use fairhead_core::Instant;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// What is due.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Due {
    /// The interrupt handler of a completed command has run: its queue's number, 0 for a single disk, and the
    /// tag.
    Completed(u8, u16),
    /// The scheduler's lock is free again, and requests may be waiting for it.
    RunQueue(u8),
    /// A worker runs the request queue: the scheduler or an insertion asked for it.
    Worker(u8),
    /// The request queue is run again after a dispatch that was given nothing.
    DelayedRun(u8),
    /// A thread's CPU work is done.
    CpuDone(u32),
    /// A thread has slept enough.
    Wake(u32),
    /// The plug of a device queue has been in for long enough.
    Unplug(u8),
    /// The flusher looks around.
    Flusher,
    /// An interval of the time series ends.
    Interval,
    /// A second is over in which clients were watched for a steady state.
    Steady,
    /// A client's start-up has had its time: its client and which start-up.
    TimeOut(u32, u32),
    /// A change of groups: which of them.
    Change(u32),
}

impl Due {
    const fn class(self) -> u64 {
        match self {
            Self::Completed(..) | Self::RunQueue(_) | Self::Worker(_) => 1,
            Self::CpuDone(_) | Self::Wake(_) => 2,
            Self::Unplug(_)
            | Self::DelayedRun(_)
            | Self::Flusher
            | Self::Interval
            | Self::Steady
            | Self::TimeOut(..)
            | Self::Change(_) => 3,
        }
    }
}

/// An event with its place in the order: time, class, number.
#[derive(Clone, Copy, Debug)]
struct Entry {
    at: Instant,
    /// The class in the highest eight bits.
    key: u64,
    due: Due,
}

impl Entry {
    #[inline]
    fn is_before(&self, other: &Self) -> bool {
        let order = |e: &Self| u128::from(e.at.as_ns()) << 64 | u128::from(e.key);
        order(self) < order(other)
    }
}

impl Ord for Entry {
    /// The greatest is the one that comes first, as a heap has it.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.key).cmp(&(self.at, self.key))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for Entry {}

/// The most events in the sorted list. When there are more, the later half goes to the heap.
const NEAR: usize = 32;

/// The queue: a sorted list of the nearest events, and a heap of those behind.
#[derive(Debug, Default)]
pub(crate) struct Events {
    /// The farthest first. All are before any in `far`; none only if there are no events.
    near: Vec<Entry>,
    far: BinaryHeap<Entry>,
    count: u64,
}

impl Events {
    /// Schedules `due` for `at`.
    #[inline]
    pub(crate) fn push(&mut self, at: Instant, due: Due) {
        self.count += 1;
        self.put(Entry { at, key: due.class() << 56 | self.count, due });
    }

    fn put(&mut self, entry: Entry) {
        // Work that begins now ends later than most that has begun before: it is near the beginning.
        let place = self.near.iter().position(|other| other.is_before(&entry)).unwrap_or(self.near.len());
        if place == 0 && !self.far.is_empty() {
            return self.far.push(entry);
        }
        self.near.insert(place, entry);
        if self.near.len() > NEAR {
            self.far.extend(self.near.drain(..NEAR / 2));
        }
    }

    /// When the next event is due; `never` if there is none.
    #[inline]
    pub(crate) fn next_at(&self, never: Instant) -> Instant {
        self.near.last().map_or(never, |e| e.at)
    }

    /// Takes the next event.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Due> {
        let next = self.near.pop()?;
        if self.near.is_empty() {
            self.fetch();
        }
        Some(next.due)
    }

    /// Fills the list from the heap.
    fn fetch(&mut self) {
        self.near.extend(std::iter::from_fn(|| self.far.pop()).take(NEAR / 2));
        self.near.reverse();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use fairhead_core::Duration;

    #[test]
    fn ties_go_by_class_then_by_order() {
        let mut events = Events::default();
        let t = Instant::EPOCH;
        for due in [Due::Unplug(0), Due::CpuDone(2), Due::CpuDone(1), Due::Completed(0, 9)] {
            events.push(t, due);
        }
        let order: Vec<Due> = std::iter::from_fn(|| events.pop()).collect();
        assert_eq!(order, [Due::Completed(0, 9), Due::CpuDone(2), Due::CpuDone(1), Due::Unplug(0)]);
    }

    /// Beside a list that is searched.
    #[test]
    fn the_next_event_is_that_of_a_list() {
        let (mut rng, mut events, mut list) = (Rng::new(1, "test"), Events::default(), Vec::new());
        let mut now = Instant::EPOCH;
        for i in 0..20_000 {
            // Runs in which they become more, and fewer.
            if rng.below(100) < if i / 500 % 2 == 0 { 55 } else { 45 } {
                let at = now + Duration::from_ns(rng.below(40));
                let due = if rng.below(2) == 0 { Due::CpuDone(i) } else { Due::TimeOut(i, 0) };
                events.push(at, due);
                list.push((at, due.class(), i, due));
            } else {
                let first = list.iter().map(|e| (e.0, e.1, e.2)).min();
                let at = first.and_then(|first| list.iter().position(|e| (e.0, e.1, e.2) == first));
                let next = at.map(|at| list.remove(at)).map(|e| (e.0, e.3));
                let never = Instant::from_ns(u64::MAX);
                assert_eq!(events.next_at(never), next.map_or(never, |n| n.0));
                assert_eq!(events.pop(), next.map(|n| n.1));
                now = next.map_or(now, |n| n.0);
            }
        }
    }
}
