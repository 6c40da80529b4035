//! What passes between the engine and its rules: names of queues, what a rule may see, and slices.
//!
//! ```text
//!             View, and facts as plain values
//!   engine ───────────────────────────────────► rule     arrived, dispatched, completed, selected, expired …
//!   engine ◄─────────────────────────────────── rule     an answer, which the engine carries out
//! ```
//!
//! A [`View`] is a copy, so a rule can change nothing through it, and a unit test of a rule is written with
//! literal values. What costs something to find out is passed as a closure, which a rule calls only if it
//! needs the fact.

use crate::trace::Reason;
use crate::units::{Class, Duration, GroupId, Instant, IoPrio, id};

id! {
    /// A queue's number.
    pub(crate) QueueId(u32)
}

/// The levels of a class.
pub(crate) const LEVELS: usize = 8;

/// A request within this distance of the head is close.
//= linux-2.6.34 block/cfq-iosched.c CFQQ_CLOSE_THR
pub(crate) const CLOSE_SECTORS: u64 = 8 * 1024;

/// How many queues a group has that are shared.
pub(crate) const SHARED: u32 = 18;

impl QueueId {
    /// The shared queue of those in a group that have none of their own.
    pub(crate) const fn fallback(group: GroupId) -> Self {
        Self(group.0 * SHARED + 17)
    }

    /// The shared queue for async requests of a priority in a group.
    #[inline]
    pub(crate) fn of_async(group: GroupId, prio: IoPrio) -> Self {
        let level = u32::from(prio.level.min(7));
        let which = match prio.class {
            Class::RealTime => level,
            Class::BestEffort => 8 + level,
            Class::Idle => 16,
        };
        Self(group.0 * SHARED + which)
    }
}

/// What kind of service a queue asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// Async: no program waits for it.
    Async,
    /// Sync, but idling for this one queue would not pay: it seeks, or its task thinks for too long.
    SyncNoIdle,
    /// Sync, and the next request will come soon and nearby.
    Sync,
}

impl Kind {
    pub(crate) const ALL: [Self; 3] = [Self::Async, Self::SyncNoIdle, Self::Sync];
}

/// What a rule may know of the device and the queues at one event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View {
    /// The time of the event.
    pub(crate) now: Instant,
    /// Requests that wait in queues.
    pub(crate) queued: u32,
    /// Requests at the device. At a completion, the one that completes is still counted.
    pub(crate) in_driver: u32,
    /// Requests that were issued and are not complete: async, sync.
    pub(crate) in_flight: [u32; 2],
    /// Queues that have requests or the disk.
    pub(crate) busy: u32,
    /// Those of them that are sync.
    pub(crate) busy_sync: u32,
}

impl View {
    /// A view of a device that has nothing to do.
    #[cfg(test)]
    pub(crate) const fn at(now: Instant) -> Self {
        Self { now, queued: 0, in_driver: 0, in_flight: [0; 2], busy: 0, busy_sync: 0 }
    }
}

/// The time slice of a queue: the present one, or its last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Slice {
    /// When its clock started; before that, when the queue got the disk.
    pub(crate) start: Instant,
    pub(crate) end: Instant,
    /// No request of it has completed yet, so its clock has not started.
    pub(crate) is_new: bool,
}

impl Slice {
    /// The slice of a queue that never had the disk.
    pub(crate) const NONE: Self = Self { start: Instant::EPOCH, end: Instant::EPOCH, is_new: false };

    /// Whether its time is up.
    #[inline]
    pub(crate) fn is_used(&self, now: Instant) -> bool {
        !self.is_new && now >= self.end
    }

    /// The time that is left of it.
    #[inline]
    pub(crate) fn left(&self, now: Instant) -> Duration {
        self.end.saturating_since(now)
    }
}

/// What "a tick" means, and whether the clock advances in ticks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Ticks {
    pub(crate) one: Duration,
    is_clock: bool,
}

impl Ticks {
    /// Ticks of a clock that advances by `step`; zero: it is exact, and a tick is 1 ms.
    pub(crate) const fn new(step: Duration) -> Self {
        let is_clock = !step.is_zero();
        Self { one: if is_clock { step } else { Duration::from_ms(1) }, is_clock }
    }

    /// `d` rounded down to ticks, if the clock advances in these.
    pub(crate) fn whole(self, d: Duration) -> Duration {
        if self.is_clock { self.one * (d / self.one) } else { d }
    }
}

/// Why a slice ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Expire {
    /// Its time was up when a request completed (or it is of the idle class, and one request was all it
    /// gets).
    Completed,
    /// Its time was found to be up later.
    Used,
    /// It has nothing more to do.
    Empty,
    /// Its next request did not come in time.
    IdleTimeout,
    /// It had sent as many async requests as it may at a time.
    AsyncQuota,
    /// A more urgent queue came.
    Preempted,
    /// Another queue has requests right where the head is.
    Cooperator,
    /// Its task has gone.
    TaskExit,
    /// Everything is being drained.
    Drain,
    /// Its group lost the disk.
    Suspended,
}

impl Expire {
    /// Whether the queue gets in its next turn what this slice left (or pays what it overran).
    pub(crate) const fn keeps_residue(self) -> bool {
        matches!(self, Self::Completed | Self::Preempted)
    }

    /// What the trace says of it.
    pub(crate) const fn reason(self) -> Reason {
        match self {
            Self::Completed | Self::Used => Reason::SliceUsed,
            Self::Empty => Reason::SliceEmpty,
            Self::IdleTimeout => Reason::IdleTimeout,
            Self::AsyncQuota => Reason::AsyncQuota,
            Self::Preempted | Self::Suspended => Reason::Preempted,
            Self::Cooperator => Reason::Cooperator,
            Self::TaskExit => Reason::TaskExit,
            Self::Drain => Reason::Drain,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(n: u64) -> Duration {
        Duration::from_ms(n)
    }

    #[test]
    fn a_slice_is_used_from_its_end_on_if_its_clock_runs() {
        let at = |n| Instant::EPOCH + ms(n);
        let slice = Slice { start: at(10), end: at(50), is_new: false };
        assert_eq!([49, 50, 51].map(|n| slice.is_used(at(n))), [false, true, true]);
        assert_eq!([10, 49, 51].map(|n| slice.left(at(n))), [ms(40), ms(1), ms(0)]);
        assert!(!Slice { is_new: true, ..slice }.is_used(at(60)));
    }

    #[test]
    fn without_a_tick_nothing_is_rounded_and_a_tick_is_one_millisecond() {
        let (exact, coarse) = (Ticks::new(Duration::ZERO), Ticks::new(ms(4)));
        assert_eq!((exact.one, exact.whole(Duration::from_us(1500))), (ms(1), Duration::from_us(1500)));
        assert_eq!((coarse.one, [7, 8, 9].map(|n| coarse.whole(ms(n)))), (ms(4), [ms(4), ms(8), ms(8)]));
    }
}
