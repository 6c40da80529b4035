//! What happens next: a queue of events ordered by time, class and number.
//!
//! Two events at one instant are ordered by class (a device completion before the run of the request queue, that
//! before a process, that before a timer) and then by the order in which they were scheduled. The class order is
//! physics, not taste: the interrupt runs the request queue before the process that it wakes can submit again, and that is
//! what makes idling necessary at all.

use fairhead_core::Instant;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What is due.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Due {
    /// The interrupt handler of a completed command has run: its queue's number, 0 for a single disk, and the tag.
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

/// The queue.
#[derive(Debug, Default)]
pub(crate) struct Events {
    heap: BinaryHeap<Reverse<(Instant, u64, Due)>>,
    count: u64,
}

impl Events {
    /// Schedules `due` for `at`.
    pub(crate) fn push(&mut self, at: Instant, due: Due) {
        self.count += 1;
        self.heap.push(Reverse((at, due.class() << 56 | self.count, due)));
    }

    /// When the next event is due, and its class.
    pub(crate) fn peek(&self) -> Option<(Instant, u64)> {
        self.heap.peek().map(|Reverse((at, key, _))| (*at, key >> 56))
    }

    /// Takes the next event.
    pub(crate) fn pop(&mut self) -> Option<(Instant, Due)> {
        self.heap.pop().map(|Reverse((at, _, due))| (at, due))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
