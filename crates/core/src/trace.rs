//! What was decided, when and why: a bounded ring of events.
//!
//! Every decision carries its reason. The ring keeps the newest [`crate::Limits::trace`] events; older ones
//! are overwritten and counted in [`TraceRing::lost`]. With a length of 0 recording costs one comparison. The
//! letters are blktrace's: `I` inserted, `M` back merge, `F` front merge, `J` two requests joined, `D`
//! issued, `C` completed, `R` requeued, `m` a message of the scheduler.

use crate::table::{Place, Table};
use crate::units::{Duration, GroupId, Instant, Sector, Sectors, Tag, TaskId};

/// The kind of an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// A request was given to the scheduler.
    Insert,
    /// A request was appended to a queued one.
    BackMerge,
    /// A request was put in front of a queued one.
    FrontMerge,
    /// Two queued requests became one.
    Join,
    /// The device got a request.
    Issue,
    /// The device finished a request.
    Complete,
    /// The device handed a request back.
    Requeue,
    /// The scheduler changed its mind about something; the reason says what.
    Note,
}

impl Action {
    /// blktrace's letter.
    #[must_use]
    pub const fn letter(self) -> char {
        match self {
            Self::Insert => 'I',
            Self::BackMerge => 'M',
            Self::FrontMerge => 'F',
            Self::Join => 'J',
            Self::Issue => 'D',
            Self::Complete => 'C',
            Self::Requeue => 'R',
            Self::Note => 'm',
        }
    }
}

/// Why. One list for all schedulers, so that reports can compare them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Reason {
    /// No reason: the action speaks for itself.
    #[default]
    None,
    /// Its turn in order of arrival.
    Arrival,
    /// The next in sector order in a running batch.
    Batch,
    /// The first of a new batch.
    NewBatch,
    /// Its fifo deadline has passed.
    FifoExpired,
    /// Writes had been passed over often enough.
    WritesStarved,
    /// The request waited so long that its class no longer counts.
    Aged,
    /// Handed back by the device, so issued before anything else.
    Requeued,
    /// The cheapest to reach from here.
    Nearest,
    /// Everything is being drained.
    Drain,
    /// Waiting for the task that was last served to send its next request.
    Anticipate,
    /// The awaited request came.
    AnticipationHit,
    /// A request close enough to the awaited one came.
    AnticipationClose,
    /// Waiting was given up: it lasted too long.
    AnticipationTimeout,
    /// Waiting makes no sense: the task thinks too long, seeks too far, or has gone.
    AnticipationUseless,
    /// The direction of batches changes.
    BatchChange,
    /// An empty sync queue keeps the disk for its next request.
    SliceIdle,
    /// The last queue of a workload keeps the disk for the workload's next request.
    WorkloadIdle,
    /// The group's last queue keeps the disk for the group's next request.
    GroupIdle,
    /// A queue got the disk.
    SliceStart,
    /// A queue's time was up.
    SliceUsed,
    /// A queue had nothing more to do.
    SliceEmpty,
    /// A queue did not send its next request in time.
    IdleTimeout,
    /// A queue had sent as many async requests as it may at a time.
    AsyncQuota,
    /// A more urgent queue took the disk away.
    Preempted,
    /// A queue near the head's position was served instead.
    Cooperator,
    /// Two queues that read one stream became one.
    QueueMerge,
    /// A queue of several tasks that no longer read one stream was split.
    QueueSplit,
    /// The task went away.
    TaskExit,
    /// A queue has as many requests at the device as it may.
    Depth,
    /// A domain has no tokens left.
    NoToken,
    /// A higher class still has requests at the device.
    HigherClass,
    /// Sync requests first have to see async ones finish, or the other way round.
    DrainKind,
    /// A queue used up its budget.
    BudgetExhausted,
    /// A queue's time for its budget was up.
    BudgetTimeout,
    /// A queue, or a group, has new virtual times.
    Times,
    /// A queue's weight is raised: it seems interactive.
    RaisedInteractive,
    /// A queue's weight is raised: it seems soft real-time.
    RaisedSoftRealTime,
    /// A queue's weight is raised: it is async and had not been heard of for a while.
    RaisedAsync,
    /// A queue's weight is its own again.
    RaiseEnd,
    /// A queue is one of many that began at once, and is not raised.
    LargeBurst,
    /// The device's rate was estimated anew.
    RateUpdate,
    /// Served although another queue has the disk: the disk would idle for that one.
    Injected,
    /// Served although another queue has the disk: it wakes that one, or is woken by it.
    Waker,
    /// Served although another queue has the disk: its actuator has too little to do.
    Actuator,
    /// A queue was found to be woken by another.
    WakerFound,
    /// Served although another group has the disk: its group has a guarantee of requests per second.
    Reserved,
    /// A protected request is at the device, which seems to pass it over.
    Protected,
    /// A limit of the request's group, or of one above, was used up: noted when it begins to wait, and the
    /// reason why it is inserted or merged later.
    Limit,
}

/// The numbers of a decision, for comparison with another implementation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Detail {
    /// None.
    #[default]
    None,
    /// A queue got the disk: how much it may send, in sectors.
    Budget {
        /// Sectors.
        budget: u32,
    },
    /// A queue's turn ended.
    Slot {
        /// What it was charged, in sectors.
        service: u32,
        /// Its next budget, in sectors.
        budget: u32,
        /// Whether it was found slow.
        slow: bool,
    },
    /// A queue, or a group if `group` is one, has new virtual times.
    Times {
        /// The group that these are of; `None`: the task's queue.
        group: Option<GroupId>,
        /// In units of 2^-22 sectors per weight.
        start: u64,
        /// The new finish time.
        finish: u64,
        /// The weight in force.
        weight: u32,
    },
    /// A queue's weight is raised by this factor from now on; 1: no more.
    Raised {
        /// The factor.
        factor: u32,
        /// The longest time that the weight stays raised.
        at_most: Duration,
    },
    /// The device's rate was estimated anew.
    Rate {
        /// In 2^-16 sectors per microsecond.
        rate: u64,
    },
}

/// One event of the trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TraceEvent {
    /// The time of the event.
    pub at: Instant,
    /// The kind of event.
    pub action: Action,
    /// The reason of a decision.
    pub reason: Reason,
    /// The request; `None` for an [`Action::Note`] that is not about a request.
    pub tag: Option<Tag>,
    /// The task that the event is about.
    pub task: TaskId,
    /// The first sector of the request.
    pub start: Sector,
    /// The length of the request.
    pub len: Sectors,
    /// The numbers of an [`Action::Note`].
    pub detail: Detail,
}

/// A ring buffer of the newest events.
///
/// ```
/// use fairhead_core::trace::TraceRing;
/// let mut ring = TraceRing::new(16);
/// assert!(ring.pop().is_none(), "nothing has happened");
/// assert_eq!(ring.lost(), 0);
/// ```
#[derive(Clone, Debug)]
pub struct TraceRing {
    events: Table<Place, Option<TraceEvent>>,
    next: u32,
    oldest: u32,
    kept: u32,
    lost: u64,
}

impl TraceRing {
    /// Makes a ring of `len` events; with 0 nothing is recorded. Allocates.
    #[must_use]
    pub fn new(len: u32) -> Self {
        Self { events: Table::new(len as usize, None), next: 0, oldest: 0, kept: 0, lost: 0 }
    }

    /// Returns the number of events that were overwritten before they were read.
    #[must_use]
    pub const fn lost(&self) -> u64 {
        self.lost
    }

    /// Whether events are recorded.
    #[inline]
    #[must_use]
    pub(crate) fn enabled(&self) -> bool {
        !self.events.is_empty()
    }

    /// Records an event.
    pub fn push(&mut self, event: TraceEvent) {
        let len = self.len();
        if len == 0 {
            return;
        }
        self.events[Place(self.next)] = Some(event);
        self.next = if self.next + 1 == len { 0 } else { self.next + 1 };
        if self.kept == len {
            self.oldest = self.next;
            self.lost += 1;
        } else {
            self.kept += 1;
        }
    }

    /// Removes and returns the oldest event.
    pub fn pop(&mut self) -> Option<TraceEvent> {
        if self.kept == 0 {
            return None;
        }
        let event = self.events[Place(self.oldest)].take();
        self.oldest = if self.oldest + 1 == self.len() { 0 } else { self.oldest + 1 };
        self.kept -= 1;
        event
    }

    #[allow(clippy::cast_possible_truncation, reason = "made from a u32")]
    fn len(&self) -> u32 {
        self.events.len() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(n: u32) -> TraceEvent {
        TraceEvent {
            at: Instant::EPOCH,
            action: Action::Note,
            reason: Reason::None,
            tag: None,
            task: TaskId(n),
            start: Sector(0),
            len: Sectors(0),
            detail: Detail::None,
        }
    }

    #[test]
    fn keeps_the_newest_and_counts_the_lost() {
        let mut ring = TraceRing::new(3);
        for n in 0..5 {
            ring.push(event(n));
        }
        let got = core::array::from_fn(|_| ring.pop().map(|e| e.task.0));
        assert_eq!(got, [Some(2), Some(3), Some(4), None]);
        assert_eq!(ring.lost(), 2);
    }

    #[test]
    fn a_ring_of_no_length_records_nothing() {
        let mut ring = TraceRing::new(0);
        ring.push(event(1));
        assert_eq!((ring.pop(), ring.lost()), (None, 0));
    }
}
