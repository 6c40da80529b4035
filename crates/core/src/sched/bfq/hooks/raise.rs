//! Where the engine asks by how much queues are [raised](crate::sched::bfq::rules::raise), and does what the
//! rule answers.

use crate::elevator::Cx;
use crate::sched::bfq::Bfq;
use crate::sched::bfq::engine::queues::has_usual_weight;
use crate::sched::bfq::rules::raise::{Batch, Change, Raising, Speed, Wakeup, Waking};
use crate::sched::bfq::view::QueueId;
use crate::trace::Detail;
use crate::units::{Duration, GroupId, Instant};

/// Facts and answers.
impl Bfq {
    /// What is known of the device's speed.
    fn speed(&self) -> Speed {
        Speed { peak: self.rules.rate.peak(), greedy: self.rules.protect.is_greedy() }
    }

    /// What `q` has done since it became busy.
    fn batch(&self, q: QueueId) -> Batch {
        let queue = &self.queues[q];
        Batch { began: queue.last_backlog_start, sectors: queue.since_backlog }
    }

    /// For how long an interactive queue is raised.
    #[cfg(test)]
    pub(crate) fn raise_duration(&self) -> Duration {
        self.rules.raise.len(self.speed())
    }

    /// For how long a queue with this factor is raised.
    pub(crate) fn raise_len_of(&self, factor: u32) -> Duration {
        self.rules.raise.len_of(factor, self.speed())
    }

    /// Whether `q` is raised as soft real-time.
    #[inline]
    pub(crate) fn is_soft_raised(&self, q: QueueId) -> bool {
        self.rules.raise.is_soft(&self.queues[q].raise)
    }

    /// Gives `q` another factor, if the rule asks for one; its weight follows.
    pub(crate) fn reweigh(&mut self, cx: &mut Cx<'_>, q: QueueId, change: Option<Change>) {
        let Some(Change { before, factor, why, at_most }) = change else { return };
        self.set_factor(q, before, factor);
        cx.note_in_numbers(why, self.queues[q].task, Detail::Raised { factor, at_most });
    }
}

/// Events of a queue.
impl Bfq {
    /// What `q` looks like, which becomes busy: to be asked before anything is done about it.
    pub(crate) fn look_at_wakeup(&self, now: Instant, q: QueueId, stably_merged: bool) -> Wakeup {
        let queue = &self.queues[q];
        let waking = Waking {
            burst: self.rules.bursts.in_large(q),
            in_flight: queue.in_flight > 0,
            usual: has_usual_weight(queue.prio),
            drained_at: queue.drained_at,
            all_far: queue.past.is_totally_seeky(),
            known: queue.sync && (queue.owner.is_some() || stably_merged),
        };
        self.rules.raise.look(&self.seen(now), &queue.raise, waking)
    }

    /// `q` becomes busy, and looked like `wakeup`; `new` says whether its first request came.
    pub(crate) fn raise_on_wakeup(&mut self, cx: &mut Cx<'_>, q: QueueId, wakeup: Wakeup, new: bool) {
        let (view, speed) = (self.seen(cx.now), self.speed());
        let queue = &mut self.queues[q];
        let woken = self.rules.raise.woke(&view, &mut queue.raise, wakeup, queue.split_time, speed);
        if woken.anew {
            self.rules.streams.raised(q);
        }
        self.reweigh(cx, q, woken.change);
        if woken.first || new && wakeup.burst && self.rules.streams.on {
            let small = self.rules.streams.first_budget(self.bmin());
            self.hierarchy.set_budget(q, small.min(self.hierarchy.budget(q)));
        }
    }

    /// An async request came to `q`, which is busy.
    pub(crate) fn raise_async(&mut self, cx: &mut Cx<'_>, q: QueueId) {
        let (view, speed) = (self.seen(cx.now), self.speed());
        let change = self.rules.raise.arrived_async(&view, &mut self.queues[q].raise, speed);
        self.reweigh(cx, q, change);
    }

    /// A request came to `q`, whose factor was `before` until then; `interactive` says whether the queue
    /// became busy with it, and was idle for long.
    #[inline(always)]
    pub(crate) fn raise_arrived(&mut self, now: Instant, q: QueueId, before: u32, interactive: bool) {
        let view = self.seen(now);
        self.rules.raise.arrived(&view, &mut self.queues[q].raise, before, interactive);
        if interactive && self.limits.one_youth {
            self.share_youth(q);
        }
    }

    /// None of the last requests of `q` was near the one before.
    pub(crate) fn raise_turned_far(&mut self, cx: &mut Cx<'_>, q: QueueId) {
        let (view, speed) = (self.seen(cx.now), self.speed());
        let change = self.rules.raise.turned_far(&view, &mut self.queues[q].raise, speed);
        self.reweigh(cx, q, change);
    }

    /// `q` gets the disk.
    pub(crate) fn raise_selected(&mut self, now: Instant, q: QueueId) {
        let view = self.seen(now);
        let queue = &mut self.queues[q];
        self.rules.raise.selected(&view, &mut queue.raise, queue.waits_since);
    }

    /// `q`, which is in service, sent a request. Ends raising that is over, and puts the weight in force that
    /// the queue should have.
    #[inline(always)]
    pub(crate) fn check_raise_end(&mut self, cx: &mut Cx<'_>, q: QueueId) {
        let (view, queue) = (self.seen(cx.now), &self.queues[q]);
        if self.rules.raise.may_be_over(&view, &queue.raise, || self.rules.bursts.in_large(q)) {
            self.end_raising_that_is_over(cx, q);
        }
        let queue = &self.queues[q];
        if queue.weighs_more != queue.raise.is_raised() {
            self.apply_weight(cx, q);
        }
    }

    #[cold]
    fn end_raising_that_is_over(&mut self, cx: &mut Cx<'_>, q: QueueId) {
        let (view, speed, burst) = (self.seen(cx.now), self.speed(), self.rules.bursts.in_large(q));
        while let Some(change) = self.rules.raise.review(&view, &mut self.queues[q].raise, burst, speed) {
            self.reweigh(cx, q, Some(change));
        }
    }

    /// The slot of `q` ends.
    pub(crate) fn raise_expired(&mut self, now: Instant, q: QueueId) {
        let (view, batch) = (self.seen(now), self.batch(q));
        let queue = &mut self.queues[q];
        let (empty, in_flight) = (queue.next_rq.is_none(), queue.in_flight > 0);
        self.rules.raise.expired(&view, &mut queue.raise, empty, in_flight, batch);
    }

    /// Others' turns have emptied `q`.
    #[inline]
    pub(crate) fn raise_emptied(&mut self, q: QueueId) {
        self.rules.raise.emptied(&mut self.queues[q].raise);
    }

    /// The last request of `q` completed, which has none to send.
    pub(crate) fn raise_completed(&mut self, now: Instant, q: QueueId) {
        let (view, batch) = (self.seen(now), self.batch(q));
        self.rules.raise.completed(&view, &mut self.queues[q].raise, batch);
    }

    /// Ends raising, whatever its kind.
    pub(crate) fn end_raising(&mut self, cx: &mut Cx<'_>, q: QueueId) {
        let view = self.seen(cx.now);
        let change = self.rules.raise.end(&view, &mut self.queues[q].raise);
        self.reweigh(cx, q, change);
    }
}

/// Groups whose tasks share one youth.
impl Bfq {
    /// `q` becomes busy: whether its group is young. In the root each task is young for itself.
    #[cold]
    #[inline(never)]
    pub(crate) fn wakes_young_group(&mut self, now: Instant, q: QueueId) -> bool {
        let (group, view, speed) = (self.group_of(q), self.seen(now), self.speed());
        group == GroupId::ROOT || self.rules.raise.woke_in(&view, &mut self.groups[group].youth, speed)
    }

    /// `q` is raised for its youth, which is its group's.
    #[cold]
    #[inline(never)]
    fn share_youth(&mut self, q: QueueId) {
        let group = self.group_of(q);
        if group != GroupId::ROOT {
            let youth = self.groups[group].youth;
            self.rules.raise.shared(&mut self.queues[q].raise, &youth);
        }
    }

    /// Whether `q` may be raised for its youth.
    fn is_in_young_group(&self, now: Instant, q: QueueId) -> bool {
        let group = self.group_of(q);
        !self.limits.one_youth
            || group == GroupId::ROOT
            || self.rules.raise.is_young(&self.seen(now), &self.groups[group].youth, self.speed())
    }

    /// A request of `q` completed.
    #[cold]
    #[inline(never)]
    pub(crate) fn hear_of_group(&mut self, now: Instant, q: QueueId) {
        let (group, tick) = (self.group_of(q), self.tick(now));
        self.groups[group].youth.heard(tick);
    }
}

/// Tasks that share a queue.
impl Bfq {
    /// The tasks of `q` go over to `x`.
    pub(crate) fn raise_merged(&mut self, cx: &mut Cx<'_>, q: QueueId, x: QueueId) {
        let (mut left, mut joined) = (self.queues[q].raise, self.queues[x].raise);
        let [taken, given] = self.rules.raise.merged(&mut left, &mut joined);
        (self.queues[q].raise, self.queues[x].raise) = (left, joined);
        self.reweigh(cx, x, taken);
        self.reweigh(cx, q, given);
    }

    /// What is remembered of `q` while its task shares another queue; a `new` one would have been raised.
    pub(crate) fn raise_remembered(&self, now: Instant, q: QueueId, new: bool) -> Raising {
        let new = new && self.is_in_young_group(now, q);
        self.rules.raise.remembered(&self.seen(now), &self.queues[q].raise, new, self.speed())
    }

    /// `q` is of a task that had another queue before, which was raised as `was` says.
    pub(crate) fn raise_split(&mut self, cx: &mut Cx<'_>, q: QueueId, was: &Raising) {
        let (view, speed, burst) = (self.seen(cx.now), self.speed(), self.rules.bursts.in_large(q));
        let change = self.rules.raise.split(&view, &mut self.queues[q].raise, was, burst, speed);
        self.reweigh(cx, q, change);
    }
}

/// What other rules find out.
impl Bfq {
    /// A greedy disk passes over a request of `q`, which is raised.
    pub(super) fn raise_protected(&mut self, q: QueueId) {
        let speed = self.speed();
        self.rules.raise.protected(&mut self.queues[q].raise, speed);
    }

    /// `q` reads a stream: it is not a program that starts, and counts in no burst.
    pub(super) fn suspend_raising(&mut self, cx: &mut Cx<'_>, q: QueueId) {
        let view = self.seen(cx.now);
        if let Some((change, start, len)) = self.rules.raise.suspend(&view, &mut self.queues[q].raise) {
            self.reweigh(cx, q, Some(change));
            self.rules.streams.suspend(q, start, len);
        }
        if self.rules.bursts.streams(q) {
            while let Some(other) = self.rules.bursts.release() {
                self.raise_after_burst(cx, other);
            }
        }
    }

    /// The run that `q` read is over: if it was a piece of a program's start, raising resumes.
    pub(super) fn resume_suspended(&mut self, cx: &mut Cx<'_>, q: QueueId) {
        if let Some((start, len)) = self.rules.streams.resume(q) {
            let view = self.seen(cx.now);
            let change = self.rules.raise.resume(&view, &mut self.queues[q].raise, start, len);
            self.reweigh(cx, q, change);
        }
    }

    /// `q` was in a large burst, which is none any more: it is raised as it would have been then, if it has
    /// read in more places than one, or as soon as it does. Queues that have not may be streams, too, which
    /// have not got far.
    fn raise_after_burst(&mut self, cx: &mut Cx<'_>, q: QueueId) {
        let (queue, view) = (&self.queues[q], self.seen(cx.now));
        let one_task = queue.sync && queue.owner.is_some() && !queue.shared;
        if !one_task || !has_usual_weight(queue.prio) || !self.is_in_young_group(cx.now, q) {
            return;
        }
        let missed = self.rules.raise.missed(&view, &queue.raise, queue.created, self.speed());
        let Some(len) = missed else { return };
        self.rules.streams.suspend(q, queue.created, len);
        if self.rules.streams.has_jumped(q) {
            self.resume_suspended(cx, q);
        }
    }
}
