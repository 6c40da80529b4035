//! A step: what happened to the scheduler at once, under its lock, and what it said meanwhile.
//!
//! [`steps`](super::steps) puts steps together from lines; [`positions`](super::positions) and the replays
//! read them.

use super::line::{Io, Thread};
use super::message::{Name, Say};
use fairhead_core::{Instant, Sector};

/// A message in a step.
#[derive(Clone, Debug)]
pub(super) struct Said {
    pub(super) line: u32,
    pub(super) queue: Option<Name>,
    pub(super) say: Say,
    /// The line as it stands.
    pub(super) text: Box<str>,
}

/// What a dispatch attempt led to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Sent {
    /// No request.
    Nothing,
    /// The log names the request.
    Request(Io),
    /// One; which, the log does not tell.
    Unknown,
}

/// What made the step happen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// A request comes.
    Insert(Io),
    /// A bio comes, and is looked at for merging with a queued request; a request of its own follows.
    Bio(Io),
    /// A bio or request comes, and became part of another.
    Merge(Io),
    /// The device could take a request.
    Dispatch(Sent),
    /// The device got a request; in logs without attempts.
    Issue(Io),
    /// The device has finished a request.
    Complete(Io),
    /// The device gave a request back.
    Requeue(Io),
    /// A timer.
    Timer,
    /// A task ends.
    Exit,
    /// Something else made the scheduler speak.
    Other,
}

/// A step.
#[derive(Clone, Debug)]
pub(super) struct Step {
    /// The first line.
    pub(super) line: u32,
    pub(super) at: Instant,
    pub(super) thread: Thread,
    pub(super) kind: Kind,
    /// What the clock may show instead: the time at which the thread made its first request of those that it
    /// hands over together.
    pub(super) plugged: Option<Instant>,
    /// The first line as it stands.
    pub(super) text: Box<str>,
    pub(super) says: Vec<Said>,
}

impl Step {
    /// The first answer that `pick` gives to a message.
    pub(super) fn find<T>(&self, pick: impl FnMut(&Said) -> Option<T>) -> Option<T> {
        self.says.iter().find_map(pick)
    }

    /// If it is an attempt that sent a request: of which queue, and what that was charged for it.
    pub(super) fn served(&self) -> Option<Served> {
        let returned = self.says.iter().position(|s| s.say == Say::Returned)?;
        self.says[returned..].iter().find_map(|s| match s.say {
            Say::Served { sectors } => Some(Served { queue: s.queue, charge: sectors, at: None }),
            _ => None,
        })
    }
}

/// What an attempt sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Served {
    pub(super) queue: Option<Name>,
    pub(super) charge: u32,
    /// Where the request was, if the log tells.
    pub(super) at: Option<Sector>,
}

impl Served {
    /// Whether it may be that request: a sync one costs its length, an async one may cost several times that.
    pub(super) fn fits(&self, io: &Io) -> bool {
        let (charge, len) = (self.charge, io.len.max(1));
        charge == len || !io.sync && charge.is_multiple_of(len) && charge / len <= 10
    }
}
