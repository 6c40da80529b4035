//! The observer of a disk's queue: it tells the books of where time goes, and the journal, what happens.
//!
//! Each method is one thing that happened, and calls both. Most runs have no observer, and all pay for its
//! code in the loop: there it is a test and a call ([`out_of_line`]).

use super::owner::Owner;
use super::wire::FLUSH_TAG;
use crate::{journal, why};
use fairhead_core::sched::any::AnyScheduler;
use fairhead_core::{Action, Dispatch, Elevator, Hold, Request, Sector, Tag, TraceEvent};
use std::cell::RefCell;
use std::rc::Rc;

/// A run's journal, which all queues write.
pub(super) type Journal<'a> = Rc<RefCell<journal::Recorder<'a>>>;

/// A run's books of where time goes, which all queues keep.
pub(super) type Books = Rc<RefCell<why::Recorder>>;

/// Calls an observer. Few runs are observed, and all pay for the code of observers in the loop: there it is
/// only a test and a call, and the rest is elsewhere.
#[cold]
#[inline(never)]
pub(super) fn out_of_line<T>(tell: impl FnOnce() -> T) -> T {
    tell()
}

/// The observer of one queue, and scratch space for its arguments.
#[derive(Debug)]
pub(super) struct Tap<'a> {
    member: u8,
    why: Option<Books>,
    journal: Option<Journal<'a>>,
    answer: Dispatch,
    events: Vec<TraceEvent>,
    tags: Vec<Tag>,
}

impl<'a> Tap<'a> {
    pub(super) fn new(member: u8, why: Option<Books>, journal: Option<Journal<'a>>) -> Self {
        Self { member, why, journal, answer: Dispatch::Empty, events: Vec::new(), tags: Vec::new() }
    }

    fn why(&mut self, tell: impl FnOnce(&mut why::Recorder, u8)) {
        if let Some(why) = &self.why {
            tell(&mut why.borrow_mut(), self.member);
        }
    }

    fn journal(&mut self, tell: impl FnOnce(&mut journal::Recorder<'a>, u8)) {
        if let Some(journal) = &self.journal {
            tell(&mut journal.borrow_mut(), self.member);
        }
    }

    // ---- requests ----------------------------------------------------------------------------------------

    /// A lane's request found none in the pool. (What the page cache hands in is put together anew after the
    /// wait.)
    pub(super) fn refused(&mut self, rq: &Request, owner: Owner) {
        if let Owner::Lane(_) = owner {
            self.journal(|journal, member| journal.refused(member, rq));
        }
    }

    /// A request was taken from a pool.
    pub(super) fn made(&mut self, rq: &Request) {
        self.journal(|journal, member| journal.made(member, rq));
    }

    /// A task hands in what it has collected.
    pub(super) fn hands_in(&mut self) {
        self.journal(|journal, member| journal.hands_in(member));
    }

    /// A request gets its tag, before the elevator gets it.
    pub(super) fn tagged(&mut self, tag: Tag) {
        self.journal(|journal, member| journal.inserted(member, tag));
    }

    /// A request is in the elevator.
    pub(super) fn inserted(&mut self, elevator: &mut Elevator<AnyScheduler>, tag: Tag, owner: Owner) {
        self.why(|why, member| why.inserted(member, tag, owner));
        self.drain(elevator);
    }

    /// A request has completed, which had the tags in `freed`.
    pub(super) fn completed(&mut self, elevator: &mut Elevator<AnyScheduler>, tag: Tag, freed: &[u16]) {
        let freed: Vec<Tag> = freed.iter().map(|free| Tag(*free)).collect();
        self.why(|why, member| why.completed(member, tag, &freed));
        self.drain(elevator);
        self.journal(|journal, member| journal.completed(member, tag, &freed));
    }

    /// Empties the elevator's trace, which holds what one call of it recorded.
    pub(super) fn drain(&mut self, elevator: &mut Elevator<AnyScheduler>) {
        let mut events = std::mem::take(&mut self.events);
        events.extend(elevator.drain_trace());
        for event in events.drain(..) {
            self.tags.clear();
            if let (Action::Issue, Some(tag)) = (event.action, event.tag) {
                self.tags.extend(elevator.requests().carried(tag));
            }
            let tags = std::mem::take(&mut self.tags);
            self.why(|why, member| why.heard(member, &event, &tags));
            self.journal(|journal, member| journal.heard(member, &event, &tags));
            self.tags = tags;
        }
        self.tags.clear();
        self.events = events;
    }

    // ---- the device --------------------------------------------------------------------------------------

    /// The device's head is there; it has finished a command or got one.
    pub(super) fn head(&mut self, head: Option<Sector>, finished: Option<Tag>) {
        self.journal(|journal, member| {
            if let Some(tag) = finished {
                journal.finished(member, tag);
            }
            journal.head(member, head);
        });
    }

    /// The elevator was asked for a request, or would have answered this. `idles`: the scheduler keeps the
    /// disk idle.
    pub(super) fn answered(&mut self, answer: Dispatch, idles: bool) {
        self.answer = answer;
        let hold = match answer {
            Dispatch::Hold(hold) if idles => Some(hold),
            _ => None,
        };
        self.journal(|journal, member| journal.idles(member, hold));
    }

    /// The queue has done what it could; the device has work, or not.
    pub(super) fn status(&mut self, has_work: bool, is_plugged: bool) {
        let status = match self.answer {
            _ if has_work => why::Status::Busy,
            Dispatch::Hold(hold) if hold.is_idling() && hold != Hold::IdleClass && !is_plugged => {
                why::Status::Idling
            }
            _ => why::Status::Empty,
        };
        self.why(|why, member| why.has(member, status));
    }

    // ---- threads -----------------------------------------------------------------------------------------

    /// A thread wants a flush.
    pub(super) fn wants_flush(&mut self, thread: u32) {
        self.journal(|journal, member| journal.wants_flush(member, thread));
        self.why(|why, member| why.waits_for_flush(thread, member));
    }

    /// A flush begins, for these threads.
    pub(super) fn flushes(&mut self, threads: &[u32]) {
        self.why(|why, member| why.flushes(member, FLUSH_TAG, threads));
        self.journal(|journal, member| journal.flushes(member));
    }

    /// The flush has ended.
    pub(super) fn flushed(&mut self) {
        self.why(|why, member| why.completed(member, FLUSH_TAG, &[FLUSH_TAG]));
        self.journal(|journal, member| journal.flushed(member));
    }

    /// A thread waits for a request.
    pub(super) fn waits_for_tag(&mut self, thread: u32) {
        self.why(|why, member| why.waits(thread, why::Wait::Tag { member }));
    }

    /// A thread waits until writes are not congested.
    pub(super) fn waits_for_congestion(&mut self, thread: u32) {
        self.why(|why, _| why.waits(thread, why::Wait::Throttle));
    }
}
