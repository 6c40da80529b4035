//! What is recorded of an elevator's work: in a trace for those who ask why, and in the books of groups.
//!
//! Each thing that can happen to a request has its call, from the one place where it happens. A trace of no length and books
//! of one group cost a comparison each; where neither is kept ([`Books::is_observed`]), what happens to each request is not even told.

use super::Limits;
use crate::groups::Groups;
use crate::request::Request;
use crate::trace::{Action, Detail, Reason, TraceEvent, TraceRing};
use crate::units::{Instant, Sector, Sectors, Tag, TaskId};

/// What is recorded of an elevator's work, and the groups that it is recorded of.
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
            groups: Groups::new(limits.groups, limits.tags, limits.capacity),
            is_observed: limits.trace > 0 || limits.groups > 1,
        }
    }

    /// Whether anything is recorded at all.
    #[inline]
    pub(crate) const fn is_observed(&self) -> bool {
        self.is_observed
    }

    /// A request arrives. Answers whether there is its group; if not, nothing is recorded.
    #[inline(always)]
    pub(super) fn arrives(&mut self, now: Instant, tag: Tag, rq: &Request, chooses: bool) -> bool {
        self.groups.arrives(now, tag, rq, chooses)
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

    /// It goes to the scheduler after that.
    pub(super) fn let_pass(&mut self, now: Instant, tag: Tag, rq: &Request) {
        self.groups.let_pass(now, tag, rq);
        self.trace(now, Action::Insert, Reason::Limit, tag, rq);
    }

    /// It is merged into another as it comes.
    pub(super) fn merged(&mut self, now: Instant, action: Action, tag: Tag, rq: &Request, chooses: bool) {
        self.groups.merged(rq, chooses);
        self.trace(now, action, Reason::None, tag, rq);
    }

    /// It is merged into `kept` after it waited for a limit.
    pub(super) fn merged_late(
        &mut self,
        now: Instant,
        action: Action,
        (kept, tag): (Tag, Tag),
        rq: &Request,
        chooses: bool,
    ) {
        self.groups.let_pass(now, tag, rq);
        self.groups.joined(kept, tag, rq, chooses);
        self.trace(now, action, Reason::Limit, tag, rq);
    }

    /// It was with the scheduler, and is a part of `kept` now.
    pub(super) fn joined(&mut self, now: Instant, kept: Tag, tag: Tag, rq: &Request, chooses: bool) {
        self.groups.joined(kept, tag, rq, chooses);
        self.trace(now, Action::Join, Reason::None, tag, rq);
    }

    /// The device gets it.
    #[inline(always)]
    pub(super) fn issued(&mut self, now: Instant, tag: Tag, rq: &Request, why: Reason, chooses: bool) {
        self.groups.issued(now, tag, rq, false, chooses);
        self.trace(now, Action::Issue, why, tag, rq);
    }

    /// The device, which handed it back, gets it again.
    pub(super) fn issued_again(&mut self, now: Instant, tag: Tag, rq: &Request, chooses: bool) {
        self.groups.issued(now, tag, rq, true, chooses);
        self.trace(now, Action::Issue, Reason::Requeued, tag, rq);
    }

    /// The device hands it back.
    pub(super) fn requeued(&mut self, now: Instant, tag: Tag, rq: &Request, chooses: bool) {
        self.groups.requeued(now, rq, chooses);
        self.trace(now, Action::Requeue, Reason::None, tag, rq);
    }

    /// The device has finished it.
    #[inline(always)]
    pub(super) fn completed(&mut self, now: Instant, tag: Tag, rq: &Request) {
        self.groups.completed(now, tag, rq);
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
