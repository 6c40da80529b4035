//! Lanes that were turned away, by what stands in their way: one question for each cause, however many wait
//! for it.
//!
//! The elevator turns a request away because a limit of its group is used up, or because the scheduler keeps
//! tags free; the queue does if the disk has a write that may still change what the request is about. Whether
//! a limit has room is the same question for all requests of a group in one direction. So they wait in one
//! line, and the first one asks for all: if it has no room, no other has.
//!
//! ```text
//!   group 3, writes ─ a/1 b/1 c/1 … 10,000 more        due at 12.4 ms        the first one asks
//!   task 7, reads   ─ d/7                                                    the scheduler has its own rule for each task
//! ```
//!
//! **First come, first served.** Each has a ticket and keeps it until it is placed: if another took its room,
//! it is the first one again. A later one that would wait for the same limit queues behind those that already
//! do.
//!
//! **Bounded.** [`Causes::next`] goes round the lines, and the queue asks until [`RETRIES`] have said no.
//! There is no walk over those that wait.
//!
//! What it does not do: ask.

use crate::lane_id::LaneId;
use fairhead_core::units::{GroupId, Instant};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

/// How many questions in vain are asked each time: more than the programs that a disk serves at once, and few
/// enough to cost nothing.
pub(crate) const RETRIES: usize = 8;

/// What stands in the way of a lane's oldest bio.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Cause {
    /// A limit on what the group may read, or write.
    Limit(GroupId, bool),
    /// The scheduler's rule for the task and the kind of request.
    Scheduler(LaneId),
    /// A write that was taken back, and that this bio must not overtake.
    Behind(usize),
    /// The requests of the group about space that have been handed over, beside other groups.
    Space(GroupId),
}

/// Where a lane waits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Ticket {
    pub(crate) cause: Cause,
    pub(crate) number: u64,
}

/// A lane of a client.
pub(crate) type Waiter = (usize, LaneId);

#[derive(Debug, Default)]
struct Line {
    waiters: BTreeMap<u64, Waiter>,
    /// When the cause is gone at the latest, if that is known.
    due: Option<Instant>,
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Causes {
    lines: BTreeMap<Cause, Line>,
    due: BTreeSet<(Instant, Cause)>,
    /// The line that was asked last.
    last: Option<Cause>,
    numbers: u64,
}

impl Causes {
    /// A lane waits for this, until `due` if that is news. One that had a number already keeps it.
    pub(crate) fn wait(
        &mut self,
        cause: Cause,
        due: Option<Instant>,
        waiter: Waiter,
        number: Option<u64>,
    ) -> Ticket {
        let number = number.unwrap_or_else(|| {
            self.numbers += 1;
            self.numbers
        });
        self.lines.entry(cause).or_default().waiters.insert(number, waiter);
        if due.is_some() {
            self.set_due(cause, due);
        }
        Ticket { cause, number }
    }

    /// The limit of this line opens then.
    pub(crate) fn set_due(&mut self, cause: Cause, due: Option<Instant>) {
        let Some(line) = self.lines.get_mut(&cause) else { return };
        if line.due != due {
            line.due.map(|at| self.due.remove(&(at, cause)));
            due.map(|at| self.due.insert((at, cause)));
            line.due = due;
        }
    }

    /// A lane waits no more.
    pub(crate) fn leave(&mut self, ticket: Ticket) {
        let line = self.lines.get_mut(&ticket.cause).expect("it has a ticket");
        line.waiters.remove(&ticket.number).expect("it has a ticket");
        if line.waiters.is_empty() {
            self.set_due(ticket.cause, None);
            self.lines.remove(&ticket.cause);
        }
    }

    /// Returns the lane that asks on behalf of all that wait for this cause.
    pub(crate) fn first(&self, cause: Cause) -> Option<(Ticket, Waiter)> {
        let (&number, &waiter) = self.lines.get(&cause)?.waiters.first_key_value()?;
        Some((Ticket { cause, number }, waiter))
    }

    /// Whether one with that number, or a new one, would stand behind others that wait for this.
    pub(crate) fn is_behind(&self, cause: Cause, number: Option<u64>) -> bool {
        self.first(cause).is_some_and(|(first, _)| number.is_none_or(|n| first.number < n))
    }

    /// A line whose time has come.
    pub(crate) fn due(&self, now: Instant) -> Option<Cause> {
        self.due.first().filter(|(at, _)| *at <= now).map(|&(_, cause)| cause)
    }

    /// When the next one's comes.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.due.first().map(|&(at, _)| at)
    }

    /// The line whose turn it is to be asked.
    pub(crate) fn next(&mut self) -> Option<Cause> {
        let after = self.last.map_or(Bound::Unbounded, Bound::Excluded);
        let next = self.lines.range((after, Bound::Unbounded)).next();
        let next = next.or_else(|| self.lines.first_key_value()).map(|(&cause, _)| cause);
        self.last = next;
        next
    }

    /// For how many causes anything waits.
    pub(crate) fn len(&self) -> usize {
        self.lines.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// All that wait.
    pub(crate) fn all(&self) -> impl Iterator<Item = (Ticket, Waiter)> + '_ {
        self.lines.iter().flat_map(|(&cause, line)| {
            line.waiters.iter().map(move |(&number, &waiter)| (Ticket { cause, number }, waiter))
        })
    }

    /// Panics if anything is inconsistent.
    pub(crate) fn check(&self) {
        assert!(self.lines.values().all(|l| !l.waiters.is_empty()), "{self:?}");
        let due = self.lines.iter().filter_map(|(&cause, line)| Some((line.due?, cause)));
        assert_eq!(due.collect::<BTreeSet<_>>(), self.due);
    }
}
