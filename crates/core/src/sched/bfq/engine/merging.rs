//! Queues that become one, and part again: what the engine does when the
//! [rule](crate::sched::bfq::rules::merge) says so.
//!
//! Two queues are *linked*: from then on the task whose request arrives, and each other task that uses its
//! queue, goes over to the other queue with its next request. Requests that are queued stay where they are. A
//! *split* gives a task a queue of its own, and what was remembered of its old one.
//!
//! **References.** `process_refs` of a queue counts the links that point to it, and those that will once they
//! have followed the pending merges. Linking adds the source's references to the target. A task that follows
//! leaves the source only; one that exits or is split off leaves the whole chain. A queue without references
//! redirects no task, so a chain never leads to a queue that is free. Targets of stable merges are no
//! references: they are cleared when the queue goes.
//
//= linux-6.12 block/bfq-iosched.c bfq_setup_cooperator, bfq_setup_merge, bfq_merge_bfqqs, bfq_split_bfqq
//= docs/reference/bfq.md#32-early-queue-merge

use super::queue::LinkId;
use crate::elevator::Cx;
use crate::parts::tasks::TaskSlot;
use crate::sched::bfq::Bfq;
use crate::sched::bfq::view::{Created, QueueId};
use crate::trace::Reason;
use crate::units::Sector;

/// Linking.
impl Bfq {
    /// The queue that `q` shall become one with, now that a request of `link` comes to it at `position`;
    /// links them. They are merged by [`Self::follow_merges`].
    #[inline(always)]
    pub(crate) fn find_cooperator(
        &mut self,
        cx: &Cx<'_>,
        q: QueueId,
        position: Sector,
        link: LinkId,
    ) -> Option<QueueId> {
        if self.queues[q].merge_to.is_some() {
            return Some(self.chain_end(q));
        }
        if self.merges_at_once() {
            return None;
        }
        if let Some(target) = self.links[link].stable_target
            && self.is_known(cx.now, q)
        {
            self.forget_stable_target(link);
            return if self.joins(q, target) { self.link_for_good(q, link, target) } else { None };
        }
        if !self.seeks_company(cx.now, q) {
            return None;
        }
        let far = self.in_service == Some(q) && self.gap.contains(&position.0);
        if far { None } else { self.find_close(cx, q, position) }
    }

    /// The queue that `q` shall become one with, among those that read near `position`; links them.
    #[inline(never)]
    fn find_close(&mut self, cx: &Cx<'_>, q: QueueId, position: Sector) -> Option<QueueId> {
        if let Some(s) = self.in_service
            && Self::are_close(position, self.in_service_last_pos)
            && self.may_join(cx.now, q, s)
            && let Some(target) = self.link_to(q, s)
        {
            return Some(target);
        }
        let near = self.nearest(cx, q, position).filter(|&x| self.may_join(cx.now, q, x))?;
        self.link_to(q, near)
    }

    fn chain_end(&self, q: QueueId) -> QueueId {
        let mut end = q;
        while let Some(next) = self.queues[end].merge_to {
            end = next;
        }
        end
    }

    /// Decides that `q` and what `x` is becoming shall be one, if both have a task and they are not becoming
    /// one already.
    pub(crate) fn link_to(&mut self, q: QueueId, x: QueueId) -> Option<QueueId> {
        let end = self.chain_end(x);
        let (mine, others) = (self.queues[q].process_refs, self.queues[end].process_refs);
        let alive = mine > 0 && others > 0 && self.queues[x].process_refs > 0;
        if end == q || !alive || self.group_of(q) != self.group_of(end) {
            return None;
        }
        self.queues[q].merge_to = Some(end);
        self.queues[end].process_refs += mine;
        Some(end)
    }

    /// Makes a task follow the merges that its queue is in, and answers the queue that it has then.
    pub(crate) fn follow_merges(&mut self, cx: &mut Cx<'_>, link: LinkId) -> QueueId {
        let Some(mut q) = self.links[link].sync else { return QueueId::FALLBACK };
        while let Some(x) = self.queues[q].merge_to {
            self.merge(cx, link, q, x);
            q = x;
        }
        q
    }

    /// The task of `link` goes over from `q` to `x`.
    fn merge(&mut self, cx: &mut Cx<'_>, link: LinkId, q: QueueId, x: QueueId) {
        self.save(cx.now, q);
        self.save(cx.now, x);
        self.rules_merged(cx, q, x);
        self.links[link].sync = Some(x);
        self.queues[x].shared = true;
        self.queues[x].owner = None;
        self.queues[q].owner = None;
        let group = self.group_of(q);
        if self.groups[group].last_created == Some(q) {
            self.groups[group].last_created = Some(x);
        }
        let task = self.processes[self.process_of(link)].task;
        cx.note(Reason::QueueMerge, task);
        self.leave_queue(cx, q);
        let in_vain = self.queues[q].process_refs == 0 && self.queues[q].waiting;
        if in_vain && self.in_service == Some(q) && self.stops_idling_in_vain() {
            self.stop_idling(q);
        }
    }

    /// The queue of a task for its next sync request, after the split that may be due.
    #[inline]
    pub(crate) fn split_if_wanted(&mut self, cx: &mut Cx<'_>, slot: TaskSlot, link: LinkId) -> QueueId {
        let Some(q) = self.links[link].sync else { return QueueId::FALLBACK };
        let queue = &self.queues[q];
        if queue.split_wanted && queue.shared && !self.links[link].stably_merged {
            return self.split(cx, slot, link, q);
        }
        q
    }

    fn split(&mut self, cx: &mut Cx<'_>, slot: TaskSlot, link: LinkId, q: QueueId) -> QueueId {
        self.rules_leave(q, link);
        cx.note(Reason::QueueSplit, self.processes[slot].task);
        let queue = &mut self.queues[q];
        if queue.process_refs == 1 && queue.merge_to.is_none() {
            queue.shared = false;
            queue.split_wanted = false;
            queue.task = self.processes[slot].task;
            queue.owner = Some(link);
            //= deviates bfq-split-prio
            self.set_prio(q, self.processes[slot].prio[1]);
            self.resume(cx, q, link);
            return q;
        }
        self.drop_redirections(cx, q);
        let waker = self.waker(q);
        self.links[link].sync = None;
        self.leave_queue(cx, q);
        let own = self.new_sync_queue(cx, slot, link, true);
        if own == QueueId::FALLBACK {
            return own;
        }
        self.queues[own].split_time = Some(self.tick(cx.now));
        self.rules_split(cx, own, link, waker);
        own
    }

    /// At expiry: a shared queue that seeks is to be split.
    #[inline]
    pub(crate) fn note_seeky_shared(&mut self, q: QueueId) {
        if self.queues[q].shared && self.is_seeky(q) {
            self.queues[q].split_wanted = true;
        }
    }

    /// A sync queue was created for `link`, not by a split: it may be one with the last that was created.
    /// Answers which one to use.
    pub(crate) fn consider_stable_merge(&mut self, cx: &mut Cx<'_>, q: QueueId, link: LinkId) -> QueueId {
        if q == QueueId::FALLBACK {
            return q;
        }
        let group = self.group_of(q);
        let last = self.groups[group].last_created;
        match (self.becomes(q, last), last) {
            (Created::Last, _) => self.groups[group].last_created = Some(q),
            (Created::Later, Some(last)) => {
                self.forget_stable_target(link);
                self.links[link].stable_target = Some(last);
                self.queues[last].stable_refs += 1;
            }
            (Created::Now, Some(last)) => {
                self.queues[q].owner = Some(link);
                self.link_for_good(q, link, last);
                return self.follow_merges(cx, link);
            }
            (Created::Alone | Created::Later | Created::Now, _) => {}
        }
        q
    }

    fn link_for_good(&mut self, q: QueueId, link: LinkId, target: QueueId) -> Option<QueueId> {
        let end = self.link_to(q, target)?;
        self.links[link].stably_merged = true;
        if let Some(other) = self.queues[end].owner {
            self.links[other].stably_merged = true;
        }
        Some(end)
    }

    /// A task will not merge with the queue that was created before its own.
    pub(crate) fn forget_stable_target(&mut self, link: LinkId) {
        if let Some(target) = self.links[link].stable_target.take() {
            self.queues[target].stable_refs -= 1;
        }
    }

    /// A task is about to leave `q`, and will not follow the merges that are pending.
    pub(crate) fn drop_redirections(&mut self, cx: &mut Cx<'_>, q: QueueId) {
        let mut at = self.queues[q].merge_to;
        if self.queues[q].process_refs == 1 {
            self.queues[q].merge_to = None;
        }
        while let Some(x) = at {
            at = self.queues[x].merge_to;
            if self.queues[x].process_refs == 1 {
                self.leave_queue(cx, x);
            } else {
                self.put_queue_ref(x);
            }
        }
    }

    /// A queue leaves its group, or a task leaves it: newcomers are not compared with it.
    pub(crate) fn clear_last_created(&mut self, q: QueueId) {
        let group = self.group_of(q);
        if self.groups[group].last_created == Some(q) {
            self.groups[group].last_created = None;
        }
    }

    /// A queue is freed: no queue will merge with it.
    pub(crate) fn merge_queue_freed(&mut self, q: QueueId) {
        self.unposition(q);
        self.clear_last_created(q);
        if self.queues[q].stable_refs > 0 {
            for (_, link) in self.links.iter_mut() {
                link.stable_target = link.stable_target.filter(|&target| target != q);
            }
            self.queues[q].stable_refs = 0;
        }
    }
}
