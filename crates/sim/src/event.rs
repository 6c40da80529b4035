//! What happens next: a queue of events ordered by time, class and number.
//!
//! Two events at one instant are ordered by class (a device completion before the run of the request queue,
//! that before a process, that before a timer) and then by the order in which they were scheduled. The class
//! order is physics, not taste: the interrupt runs the request queue before the process that it wakes can
//! submit again, and that is what makes idling necessary at all.
//!
//! Most events make the next one of their kind: a processor has done one thing and begins another. So the
//! place of an event that was taken stays empty until the next is asked for, and what is scheduled meanwhile
//! is put there:
//!
//! ```text
//!        3                    ·                    8                    4
//!      ┌─┴─┐    pop: 3      ┌─┴─┐    push 8      ┌─┴─┐    and down    ┌─┴─┐
//!      4   9  ─────────►    4   9  ─────────►    4   9  ─────────►    8   9      one way through the heap, not two
//! ```

use fairhead_core::Instant;

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

/// The queue: a binary heap, whose first place may be empty.
#[derive(Debug, Default)]
pub(crate) struct Events {
    heap: Vec<Entry>,
    /// The first was taken.
    is_taken: bool,
    count: u64,
}

impl Events {
    /// Schedules `due` for `at`.
    pub(crate) fn push(&mut self, at: Instant, due: Due) {
        self.count += 1;
        let entry = Entry { at, key: due.class() << 56 | self.count, due };
        if std::mem::take(&mut self.is_taken) {
            return self.sink(entry);
        }
        let mut hole = self.heap.len();
        self.heap.push(entry);
        while hole > 0 {
            let parent = (hole - 1) / 2;
            if !entry.is_before(&self.heap[parent]) {
                break;
            }
            self.heap[hole] = self.heap[parent];
            hole = parent;
        }
        self.heap[hole] = entry;
    }

    /// Puts an entry into the first place, which is empty, and from there to where it belongs.
    fn sink(&mut self, entry: Entry) {
        let heap = &mut self.heap[..];
        let mut hole = 0;
        loop {
            let left = 2 * hole + 1;
            let child = match heap.get(left..) {
                Some([a, b, ..]) => left + usize::from(b.is_before(a)),
                Some([_]) => left,
                _ => break,
            };
            if !heap[child].is_before(&entry) {
                break;
            }
            heap[hole] = heap[child];
            hole = child;
        }
        heap[hole] = entry;
    }

    /// When the next event is due, and its class.
    #[inline]
    pub(crate) fn peek(&mut self) -> Option<(Instant, u64)> {
        if self.is_taken {
            self.fill();
        }
        self.heap.first().map(|e| (e.at, e.key >> 56))
    }

    /// Nothing was put where the last event was taken from.
    #[inline(never)]
    fn fill(&mut self) {
        self.is_taken = false;
        if let Some(last) = self.heap.pop().filter(|_| !self.heap.is_empty()) {
            self.sink(last);
        }
    }

    /// Takes the next event.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<(Instant, Due)> {
        self.peek()?;
        self.is_taken = true;
        self.heap.first().map(|e| (e.at, e.due))
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
        let order: Vec<Due> = std::iter::from_fn(|| events.pop().map(|e| e.1)).collect();
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
                if rng.below(3) == 0 {
                    assert_eq!(events.peek(), next.map(|(at, due)| (at, due.class())));
                }
                assert_eq!(events.pop(), next);
                now = next.map_or(now, |n| n.0);
            }
        }
    }
}
