//! Where the engine asks its [rules](super::rules).
//!
//! A hook gathers the facts that a rule looks at, calls the rule, and carries out what it answers.

use super::Cfq;
use super::rules::charge::Spent;
use super::rules::cooperate::{Candidate, Cooperation, Fellow, Reader};
use super::rules::depth::Sender;
use super::rules::idling::{Empty, Idling};
use super::rules::ncq::Served;
use super::rules::preempt::{Active, Ground, Newcomer};
use super::service_tree::Place;
use super::view::{Expire, QueueId, View};
use crate::elevator::Cx;
use crate::parts::tasks::TaskSlot;
use crate::request::{Request, Requests};
use crate::units::{Duration, Instant};
use core::ops::Range;

/// What rules see.
impl Cfq {
    /// What a rule may know of the device and the queues now.
    #[inline(always)]
    fn seen(&self, now: Instant) -> View {
        View {
            now,
            queued: self.queues.waiting,
            in_driver: self.device.in_driver,
            in_flight: self.device.in_flight,
            busy: self.trees.busy,
            busy_sync: self.trees.busy_sync,
        }
    }

    /// Whether a queue seeks, for cooperation and splits.
    #[inline]
    pub(super) fn is_seeky(&self, id: QueueId) -> bool {
        self.rules.seeks.is_seeky(&self.queues[id].jumps)
    }

    /// Whether waiting for this queue pays.
    #[inline(always)]
    pub(super) fn should_idle(&self, id: QueueId) -> bool {
        Idling::pays(self.queues[id].window, self.rules.ncq.is_fast()) || self.should_idle_for_kind(id)
    }

    /// Whether waiting for it pays as the last of its kind, for the sake of all.
    #[inline(never)]
    fn should_idle_for_kind(&self, id: QueueId) -> bool {
        let queue = &self.queues[id];
        if !queue.sync || queue.is_idle_class() {
            return false;
        }
        let Some(tree) = queue.tree.map(usize::from) else { return false };
        let tree = &self.trees.groups[queue.group].trees[tree];
        self.rules.idling.pays_for_kind(tree.queues.len(), &tree.think)
    }

    /// Whether the active queue may send a request now. If not, requests are at the device.
    pub(super) fn may_dispatch(&self, id: QueueId, now: Instant) -> bool {
        let queue = &self.queues[id];
        let of = Sender {
            sync: queue.sync,
            is_idle_class: queue.is_idle_class(),
            dispatched: queue.dispatched,
            slice: queue.slice,
        };
        self.rules.depth.allows(&self.seen(now), &of, || self.should_idle(id))
    }

    /// Whether its group is waited for if `id`, which is active, has nothing to send.
    #[inline]
    pub(super) fn group_waits(&self, id: QueueId) -> bool {
        self.rules.idling.waits_for(&self.trees.groups[self.queues[id].group].members())
    }
}

/// Requests come.
impl Cfq {
    /// `rq` of a task came to `id`: think time, seeks, and whether the queue is worth idling for.
    #[inline]
    pub(super) fn learn(&mut self, cx: &Cx<'_>, id: QueueId, slot: TaskSlot, rq: &Request) {
        let (rules, trees) = (&self.rules, &mut self.trees);
        let (queue, context) = (&mut self.queues[id], &mut self.tasks[slot]);
        context.outstanding += 1;
        rules.thinking.arrived(cx.now, queue.sync, &mut context.think);
        if rules.thinking.of_groups {
            let (tree, group) = trees.groups[queue.group].thinks(queue.tree);
            rules.thinking.arrived_in_group(cx.now, queue.sync, tree, group);
        }
        rules.seeks.arrived(&mut queue.jumps, rq.start, rq.len);
        if queue.sync && !queue.is_idle_class() {
            let (waiting, next, jumps) = (queue.queued(), queue.next, &queue.jumps);
            let seeks = || rules.seeks.surely_seeks(jumps);
            let ends_here = || next.is_some_and(|tag| cx.requests[tag].rq.no_idle);
            rules.idling.arrived(&mut queue.window, waiting, &context.think, seeks, ends_here);
        }
    }

    /// What says whether `rq`, which was put into `new`, takes the disk from `active`.
    pub(super) fn ground(&self, now: Instant, new: QueueId, active: QueueId, rq: &Request) -> Ground {
        let (n, a) = (&self.queues[new], &self.queues[active]);
        let newcomer =
            Newcomer { group: n.group, class: n.prio.class, kind: n.kind(), sync: rq.sync, meta: rq.meta };
        let served = Active {
            group: a.group,
            class: a.prio.class,
            sync: a.sync,
            serving: self.trees.serving.kind,
            is_empty: a.is_empty(),
            has_meta: a.meta_pending > 0,
            slice_used: a.slice.is_used(now),
            is_awaited: a.wait_request,
            has_task: self.turn.task.is_some(),
        };
        let trees = &self.trees.groups[n.group].trees;
        let two_left = || n.tree.is_some_and(|tree| trees[usize::from(tree)].queues.len() == 2);
        let close =
            || rq.start.0.abs_diff(self.device.head.0) <= self.rules.seeks.close_sectors_uncapped(&a.jumps);
        self.rules.preemption.ground(&newcomer, &served, two_left, || self.should_idle(active), close)
    }

    /// Something was put into a queue that is not active: takes the disk for it if the rules say so.
    pub(super) fn try_preempt(&mut self, cx: &mut Cx<'_>, new: QueueId, rq: &Request) {
        let Some(active) = self.turn.active else { return };
        if self.ground(cx.now, new, active, rq).preempts() {
            self.preempt(cx, new, active);
        }
    }

    fn preempt(&mut self, cx: &mut Cx<'_>, new: QueueId, active: QueueId) {
        let (kind, before) = (self.queues[new].kind(), self.queues[active].kind());
        self.expire(cx, Expire::Preempted);
        if self.rules.preemption.ends_workload(kind, before) {
            self.trees.groups[self.queues[new].group].saved = None;
        }
        // In front of its tree, so that it is chosen once its class and kind are.
        self.file(cx, new, Place::Front);
        let queue = &mut self.queues[new];
        queue.slice.end = cx.now;
        queue.slice.is_new = true;
    }

    /// The active queue, for which the disk was idling, has something to send: now, or, if it is a single
    /// page and no other queue waits, as soon as the driver wants it.
    //= linux-2.6.33 block/cfq-iosched.c cfq_rq_enqueued
    pub(super) fn end_idling(&mut self, cx: &mut Cx<'_>, id: QueueId, rq: &Request) {
        if self.trees.layout.divides {
            cx.books.groups.idled(cx.now);
        }
        if Idling::ends_at_once(rq.len, self.trees.busy) {
            self.turn.timer = None;
            self.queues[id].wait_request = false;
        } else {
            self.queues[id].must_dispatch = true;
        }
    }
}

/// Cooperators.
impl Cfq {
    /// Files a queue by the position of its candidate, for those that look for a cooperator.
    pub(super) fn refresh_position(&mut self, requests: &Requests, id: QueueId) {
        let queue = &mut self.queues[id];
        let candidate = queue.next.map(|next| Candidate {
            start: requests[next].rq.start,
            level: queue.prio.level,
            sync: queue.sync,
            is_idle_class: queue.is_idle_class(),
        });
        let (seeks, jumps) = (&self.rules.seeks, &queue.jumps);
        self.rules.cooperation.refresh(id, &mut queue.position, candidate, || seeks.is_seeky(jumps));
    }

    /// A queue whose next request is so close to the head that it should be served in place of `id`, which is
    /// active and empty.
    #[inline]
    pub(super) fn close_cooperator(&mut self, id: QueueId) -> Option<QueueId> {
        if self.rules.cooperation.knows_none(self.device.head) {
            return None;
        }
        let (found, none_while) = self.find_cooperator(id);
        self.rules.cooperation.learn(none_while);
        found
    }

    /// The cooperator, and the positions of the head at which there would be none.
    pub(super) fn find_cooperator(&self, id: QueueId) -> (Option<QueueId>, Range<u64>) {
        let queue = &self.queues[id];
        let of = Reader {
            level: queue.prio.level,
            sync: queue.sync,
            is_idle_class: queue.is_idle_class(),
            alone: self.trees.groups[queue.group].queues == 1,
        };
        let close_sectors = || self.rules.seeks.close_sectors(&queue.jumps);
        let fits = |other| Cooperation::fit(&self.fellow(id), &self.fellow(other), || self.is_seeky(other));
        self.rules.cooperation.find(self.device.head, &of, || self.is_seeky(id), close_sectors, fits)
    }

    fn fellow(&self, id: QueueId) -> Fellow {
        let queue = &self.queues[id];
        Fellow { sync: queue.sync, is_rt: queue.is_rt(), group: queue.group, home: queue.home }
    }
}

/// Requests complete.
impl Cfq {
    /// A request completed, and is still counted at the device.
    #[inline]
    pub(super) fn rules_completed(&mut self, now: Instant) {
        let (view, queues, active) = (self.seen(now), &self.queues, self.turn.active);
        let served = || {
            let queue = &queues[active?];
            Some(Served { window: queue.window.is_open(), requests: queue.dispatched + queue.queued() })
        };
        self.rules.ncq.completed(&view, served);
    }

    /// For how long to stretch the slice of the active queue, whose group would be without work when it ends.
    #[inline]
    pub(super) fn stretches(&self, id: QueueId, now: Instant) -> Option<Duration> {
        let queue = &self.queues[id];
        let group = self.trees.groups[queue.group].members();
        let thinks_longer = |left| self.turn.task.is_some_and(|slot| self.tasks[slot].think.exceeds(left));
        self.rules.idling.stretches(now, &queue.slice, queue.is_empty(), &group, thinks_longer)
    }

    /// A sync request of the active queue completed and none is left: arms the timer if waiting pays.
    pub(super) fn arm_idle(&mut self, cx: &mut Cx<'_>, id: QueueId) {
        let queue = &self.queues[id];
        let of = Empty {
            window: queue.window,
            dispatched: queue.dispatched,
            slice: queue.slice,
            is_fast: self.rules.ncq.is_fast(),
        };
        let alone = || self.trees.groups[queue.group].queues == 1;
        let think = || {
            let context = &self.tasks[self.turn.task?];
            (!context.exited).then_some(&context.think)
        };
        let wait = self.rules.idling.waits(cx.now, &of, || self.should_idle(id), alone, think);
        let Some(wait) = wait else { return };
        let task = queue.task;
        self.queues[id].wait_request = true;
        self.turn.timer = Some(cx.now + wait.lasts);
        if self.trees.layout.divides {
            cx.books.groups.idles(cx.now);
        }
        cx.note(wait.why, task);
    }

    /// The active queue is empty, and the disk does not wait for it yet.
    pub(super) fn rules_ran_empty(&mut self, id: QueueId, now: Instant) {
        let seeky = self.is_seeky(id);
        let queue = &mut self.queues[id];
        self.rules.idling.ran_empty(now, &mut queue.window, &queue.slice, seeky);
    }

    /// The slice of `id` is over, which its group pays for.
    pub(super) fn charge(&mut self, cx: &mut Cx<'_>, id: QueueId) {
        let queue = &self.queues[id];
        let spent = Spent { slice: queue.slice, sync: queue.sync, requests: queue.slice_dispatch };
        let (ncq, group) = (&self.rules.ncq, &self.trees.groups[queue.group]);
        let charge = self.rules.charging.expired(cx.now, &spent, || ncq.may_queue(), || group.has_sync());
        self.trees.shares.charge(&cx.books.groups, queue.group, charge.amount);
        cx.books.groups.charge(queue.group, charge.used, charge.unaccounted);
        cx.books.groups.leave(cx.now);
    }
}
