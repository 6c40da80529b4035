//! Whether a request that arrives takes the disk from the active queue.
//!
//! The first rule of [`Rule`] that applies decides. A preempted queue keeps what is left of its slice: it
//! will be filed that much earlier.
//!
//= linux-2.6.33 block/cfq-iosched.c cfq_should_preempt, cfq_preempt_queue

use crate::elevator::Cx;
use crate::request::Request;
use crate::sched::cfq::Cfq;
use crate::sched::cfq::queue::{Kind, QueueId};
use crate::sched::cfq::service_tree::Place;
use crate::sched::cfq::slices::Expire;

/// What decided, in the order in which the rules are tried.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::sched::cfq) enum Rule {
    /// No: there is no active queue.
    NoActive,
    /// No: the newcomer is of the idle class.
    IdleClass,
    /// Yes: the active queue is of the idle class.
    OverIdleClass,
    /// No: the active queue is real-time, the newcomer is not.
    UnderRealTime,
    /// Yes: a program waits for the newcomer, and none for the active queue.
    SyncOverAsync,
    /// No: the active queue is of another group. Under the controller this goes before all others.
    OtherGroup,
    /// Yes: the active queue's time is up anyway.
    SliceUsed,
    /// Yes: the newcomer was what the last of the seeky queues, which has nothing to send, was waiting for.
    AwaitedWorkload,
    /// Yes: the request is for metadata, and the active queue has none such.
    Metadata,
    /// Yes: the newcomer is real-time, the active queue is not.
    RealTime,
    /// Yes: the active queue has nothing to send, and idling for it is not worth it; without
    /// `quirk_preempt_empty` only if the disk waits for it all the same. From 3.x on.
    NotWorthWaiting,
    /// No: the disk is not being kept idle.
    NotWaiting,
    /// Yes: the disk idles, and the request is right where the head is.
    Close,
    /// No: the disk idles, but the request is far away.
    Far,
}

impl Rule {
    pub(in crate::sched::cfq) const fn preempts(self) -> bool {
        matches!(
            self,
            Self::OverIdleClass
                | Self::SyncOverAsync
                | Self::SliceUsed
                | Self::AwaitedWorkload
                | Self::Metadata
                | Self::RealTime
                | Self::NotWorthWaiting
                | Self::Close
        )
    }
}

impl Cfq {
    /// Which rule says whether `rq`, which was put into queue `new`, preempts the active queue.
    pub(in crate::sched::cfq) fn preemption_rule(&self, cx: &Cx<'_>, new: QueueId, rq: &Request) -> Rule {
        let Some(active) = self.active else { return Rule::NoActive };
        let (n, a) = (&self.queues[new], &self.queues[active]);
        // Two queues in the tree are the newcomer and the active one, which stays there until its slice ends.
        let awaited = |tree: u8| self.groups[n.group].trees[usize::from(tree)].queues.len() == 2;
        // Under the controller the disk belongs to one group at a time, and only the controller takes it
        // away.
        if self.is_confined && n.group != a.group {
            Rule::OtherGroup
        } else if n.is_idle_class() {
            Rule::IdleClass
        } else if a.is_idle_class() {
            Rule::OverIdleClass
        } else if a.is_rt() && !n.is_rt() {
            Rule::UnderRealTime
        } else if rq.sync && !a.sync {
            // This rule and those of classes cross groups; all after it do not
            // (docs/reference/cfq.md#67-isolation).
            Rule::SyncOverAsync
        } else if n.group != a.group {
            Rule::OtherGroup
        } else if self.slice_used(active, cx.now) {
            Rule::SliceUsed
        } else if self.serving.kind == Kind::SyncNoIdle
            && n.kind() == Kind::SyncNoIdle
            && n.tree.is_some_and(awaited)
            && a.is_empty()
        {
            Rule::AwaitedWorkload
        } else if rq.meta && a.meta_pending == 0 {
            Rule::Metadata
        } else if n.is_rt() && !a.is_rt() {
            Rule::RealTime
        } else if self.config.era.since_3()
            && a.is_empty()
            && (self.config.quirk_preempt_empty || a.wait_request)
            && !self.should_idle(active)
        {
            Rule::NotWorthWaiting
        } else if self.active_context.is_none() || !a.wait_request {
            Rule::NotWaiting
        } else if rq.start.0.abs_diff(self.last_position.0) <= a.seek.close_sectors(self.seek, true) {
            Rule::Close
        } else {
            Rule::Far
        }
    }

    /// Something was put into a queue that is not active: takes the disk for it if the rules say so.
    pub(in crate::sched::cfq) fn try_preempt(&mut self, cx: &mut Cx<'_>, new: QueueId, rq: &Request) {
        if self.preemption_rule(cx, new, rq).preempts() {
            self.preempt(cx, new);
        }
    }

    fn preempt(&mut self, cx: &mut Cx<'_>, new: QueueId) {
        let other_kind = self.active.is_some_and(|a| self.queues[a].kind() != self.queues[new].kind());
        self.expire(cx, Expire::Preempted);
        // Otherwise the newcomer, though first in its tree, would have to wait for its kind's turn.
        if self.config.era.since_3() && other_kind {
            self.groups[self.queues[new].group].saved = None;
        }
        // In front of its tree, so that it is chosen once its class and kind are.
        self.file(cx, new, Place::Front);
        let queue = &mut self.queues[new];
        queue.slice_end = cx.now;
        queue.slice_new = true;
    }
}
