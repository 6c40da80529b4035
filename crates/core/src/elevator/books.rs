//! What is recorded of an elevator's work: in a trace for those who ask why, and in the books of groups.
//!
//! Each thing that can happen to a request has its call, from the one place where it happens. A trace of no
//! length costs a comparison, and so do books of one group.

use super::Limits;
use crate::groups::Groups;
use crate::request::{Request, Slot};
use crate::trace::{Action, Detail, Reason, TraceEvent, TraceRing};
use crate::units::{Duration, Instant, Sector, Sectors, Tag, TaskId};

/// The trace and the groups' statistics of an elevator.
#[derive(Clone, Debug)]
pub struct Books {
    /// Decisions.
    pub trace: TraceRing,
    /// The groups.
    pub groups: Groups,
    /// Whether events are recorded at all: in a trace, or as of several groups.
    is_observed: bool,
}

impl Books {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            trace: TraceRing::new(limits.trace),
            groups: Groups::new(limits.groups, limits.capacity),
            is_observed: limits.trace > 0 || limits.groups > 1,
        }
    }

    /// Whether anything is recorded at all.
    #[inline]
    pub(crate) const fn is_observed(&self) -> bool {
        self.is_observed
    }

    /// A request arrives, of a group that is there.
    #[inline(always)]
    pub(super) fn arrives(&mut self, now: Instant, rq: &Request, chooses: bool) {
        if chooses && self.groups.is_kept() {
            self.groups.waits(now, rq.group);
        }
    }

    /// It goes to the scheduler as it comes.
    #[inline(always)]
    pub(super) fn inserted(&mut self, now: Instant, tag: Tag, rq: &Request) {
        self.trace(now, Action::Insert, Reason::None, tag, rq);
    }

    /// It begins to wait for a limit.
    pub(super) fn held(&mut self, now: Instant, tag: Tag, rq: &Request) {
        self.trace(now, Action::Note, Reason::Limit, tag, rq);
    }

    /// It need not wait for a limit any longer.
    pub(super) fn let_pass(&mut self, waited: Duration, rq: &Request) {
        self.groups.throttled(waited, rq);
    }

    /// It goes to the scheduler after it waited for a limit.
    pub(super) fn inserted_late(&mut self, now: Instant, tag: Tag, rq: &Request) {
        self.trace(now, Action::Insert, Reason::Limit, tag, rq);
    }

    /// It is merged into another as it comes.
    pub(super) fn merged(&mut self, now: Instant, action: Action, tag: Tag, rq: &Request, chooses: bool) {
        self.groups.merged(rq, chooses);
        self.trace(now, action, Reason::None, tag, rq);
    }

    /// It is merged into another after it waited for a limit.
    pub(super) fn merged_late(
        &mut self,
        now: Instant,
        action: Action,
        tag: Tag,
        rq: &Request,
        chooses: bool,
    ) {
        self.groups.merged(rq, chooses);
        self.trace(now, action, Reason::Limit, tag, rq);
    }

    /// It was with the scheduler, and is a part of another now.
    pub(super) fn joined(&mut self, now: Instant, tag: Tag, rq: &Request, chooses: bool) {
        self.groups.merged(rq, chooses);
        self.trace(now, Action::Join, Reason::None, tag, rq);
    }

    /// The device gets it.
    #[inline(always)]
    pub(super) fn issued(&mut self, now: Instant, rq: &Request, chooses: bool) {
        if chooses && self.groups.is_kept() {
            self.groups.waits_no_more(now, rq.group);
        }
    }

    /// The trace of that.
    pub(super) fn trace_issued(&mut self, now: Instant, why: Reason, tag: Tag, rq: &Request) {
        self.trace(now, Action::Issue, why, tag, rq);
    }

    /// The device, which handed it back, gets it again.
    pub(super) fn issued_again(&mut self, now: Instant, tag: Tag, rq: &Request, chooses: bool) {
        self.groups.issued_again(rq);
        self.issued(now, rq, chooses);
        self.trace(now, Action::Issue, Reason::Requeued, tag, rq);
    }

    /// The device hands it back.
    pub(super) fn requeued(&mut self, now: Instant, tag: Tag, rq: &Request, chooses: bool) {
        self.groups.requeued(rq);
        self.arrives(now, rq, chooses);
        self.trace(now, Action::Requeue, Reason::None, tag, rq);
    }

    /// The device has finished it.
    #[inline(always)]
    pub(super) fn completed(&mut self, now: Instant, slot: &Slot) {
        self.groups.completed(now, slot);
    }

    /// The trace of that.
    pub(super) fn trace_completed(&mut self, now: Instant, tag: Tag, rq: &Request) {
        self.trace(now, Action::Complete, Reason::None, tag, rq);
    }

    #[inline(always)]
    fn trace(&mut self, now: Instant, action: Action, reason: Reason, tag: Tag, rq: &Request) {
        if self.trace.enabled() {
            self.push(now, action, reason, tag, rq);
        }
    }

    #[cold]
    fn push(&mut self, at: Instant, action: Action, reason: Reason, tag: Tag, rq: &Request) {
        let Request { task, start, len, .. } = *rq;
        let (tag, detail) = (Some(tag), Detail::None);
        self.trace.push(TraceEvent { at, action, reason, tag, task, start, len, detail });
    }

    /// A scheduler changed its mind about something.
    #[cold]
    pub(super) fn push_note(&mut self, at: Instant, reason: Reason, task: TaskId, detail: Detail) {
        let (action, tag, start, len) = (Action::Note, None, Sector(0), Sectors(0));
        self.trace.push(TraceEvent { at, action, reason, tag, task, start, len, detail });
    }
}
