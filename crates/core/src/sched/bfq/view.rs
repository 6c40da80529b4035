//! What passes between the engine and its rules: names of queues, what a rule may see, what it may ask for.
//!
//! ```text
//!             View, and facts as plain values
//!   engine ───────────────────────────────────► rule     created, arrived, dispatched, completed, expired …
//!   engine ◄─────────────────────────────────── rule     Effect, or the answer to a question
//! ```
//!
//! A [`View`] is a copy, so a rule can change nothing through it, and a unit test of a rule is written with
//! literal values. What costs something to find out is passed as a closure, which a rule calls only if it
//! needs the fact.

use crate::request::{Op, Request};
use crate::trace::Reason;
use crate::units::{Duration, Id, Instant, Tag};
use core::num::NonZeroU32;

/// A queue; 1 is the fallback. There is no queue 0, so an optional id is as small and as quick to compare,
/// and no table has a first entry that means anything.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct QueueId(NonZeroU32);

impl QueueId {
    /// The queue of every task for which there is no other: async, best effort, level 4. Never merged, in a
    /// burst or a waker.
    pub(crate) const FALLBACK: Self = Self(NonZeroU32::MIN);
}

impl Id for QueueId {
    #[inline]
    fn index(self) -> usize {
        self.0.get() as usize
    }
    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "the index came from this type")]
    fn from_index(i: usize) -> Self {
        Self(NonZeroU32::new(i as u32).unwrap_or(NonZeroU32::MIN))
    }
}

/// What limits a request's admission.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    SyncRead,
    SyncWrite,
    Async,
}

impl Kind {
    #[inline]
    pub(crate) fn of(rq: &Request) -> Self {
        match (rq.sync, rq.op) {
            (true, Op::Read) => Self::SyncRead,
            (true, _) => Self::SyncWrite,
            (false, _) => Self::Async,
        }
    }
}

/// What a rule may know of the device at one event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View {
    /// The time of the event.
    pub(crate) now: Instant,
    /// The step of coarse clocks: `Config::tick`.
    pub(crate) step: Duration,
    /// Requests at the device. At a completion, the one that completes is still counted.
    pub(crate) in_flight: u32,
    /// Requests that wait in queues.
    pub(crate) queued: u32,
    /// Queues that have requests or the disk.
    pub(crate) busy: u32,
    /// When a request last completed, before this event.
    pub(crate) last_completion: Option<Instant>,
}

impl View {
    /// The time of the event on a coarse clock, which whatever is not measured finely goes by: raising,
    /// bursts and merging.
    #[inline]
    pub(crate) fn tick(&self) -> Instant {
        self.now.floor_to(self.step)
    }

    /// A view of a device that has nothing to do.
    #[cfg(test)]
    pub(crate) const fn at(now: Instant) -> Self {
        Self { now, step: Duration::ZERO, in_flight: 0, queued: 0, busy: 0, last_completion: None }
    }
}

/// What a rule asks the engine for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub(crate) enum Effect {
    /// Nothing changes.
    None,
    /// The peak rate has another estimate: the largest budget follows from it.
    Rerate,
    /// Whether the device queues requests itself is known anew: for which queues idling pays follows from it.
    Rejudge,
    /// The trace is to say this of the queue.
    Note(Reason),
    /// The disk passes over this request of a raised queue, which is to be raised for longer.
    Protect(Tag),
    /// The queue reads a stream: interactive raising is suspended, and it is in no burst.
    Streams,
    /// The queue has read a stream to its end: raising that was suspended may resume.
    StreamEnded,
}

/// What becomes of a queue that is created.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Created {
    /// It stays alone.
    Alone,
    /// It stays alone, and newcomers of its group are compared with it.
    Last,
    /// It may be merged later with the one that was created before.
    Later,
    /// It is merged with that one now.
    Now,
}

/// Why a slot ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Expire {
    /// The disk idled for it in vain.
    TooIdle,
    /// It had the disk for long enough.
    BudgetTimeout,
    /// Its next request costs more than is left of its budget.
    BudgetExhausted,
    /// It has nothing to send, and is not worth waiting for.
    NoMoreRequests,
    /// Another one takes the disk away.
    Preempted,
}

impl Expire {
    /// What the trace says of it.
    pub(crate) const fn note(self) -> Reason {
        match self {
            Self::TooIdle => Reason::IdleTimeout,
            Self::BudgetTimeout => Reason::BudgetTimeout,
            Self::BudgetExhausted => Reason::BudgetExhausted,
            Self::NoMoreRequests => Reason::SliceEmpty,
            Self::Preempted => Reason::Preempted,
        }
    }
}

/// How long ago `then` was; for ever if it never was.
pub(crate) fn since(now: Instant, then: Option<Instant>) -> Duration {
    then.map_or(Duration::MAX, |t| now.saturating_since(t))
}
