//! Slots: how a queue gets the disk, keeps it, and loses it.
//!
//! ```text
//!            wake                 select                       expire
//!   idle ───────────► busy ──────────────────► in service ──────────────► busy, with new times
//!     ▲   (add_busy,         (set_in_service)   │   ▲   │                 or idle (del_busy)
//!     │    preempt)                             └───┘   └── empty: the disk idles, or others' requests are injected
//!     └──────────────────────────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! A queue keeps the disk until its budget is used up, its slot has lasted for `timeout_sync`, it has nothing
//! to send and is not idled for, or is idled for in vain, or another takes the disk away: one of a higher
//! class or weight that becomes busy, or one that resumes its own slot after a short pause.
//!
//! A queue that ran empty keeps what is left of its budget (*hole credit*). If its next request comes soon it
//! continues with that, and with its old timestamps: it is as if it had never stopped.
//
//= linux-6.12 block/bfq-iosched.c bfq_select_queue, __bfq_set_in_service_queue, bfq_bfqq_expire
//= linux-6.12 block/bfq-iosched.c __bfq_bfqq_expire,
//= linux-6.12 block/bfq-iosched.c bfq_bfqq_handle_idle_busy_switch, bfq_updated_next_req
//= docs/reference/bfq.md#73-from-idle-to-busy

use super::queue::{LinkId, Queue};
use super::setting::Setting;
use crate::elevator::Cx;
use crate::sched::bfq::view::{Expire, QueueId, since};
use crate::sched::bfq::{self, Bfq};
use crate::trace::{Detail, Reason};
use crate::units::{Duration, GroupId, Instant, Sector, Sectors};

/// A queue that drained for longer than this has left the burst it began in.
//= linux-6.12 block/bfq-iosched.c bfq_bfqq_handle_idle_busy_switch
//= docs/reference/bfq.md#73-from-idle-to-busy
const BURST_EXIT: Duration = Duration::from_secs(10);

/// A slot of a stream lasts for so long at least, however small its group's part is: the way to its place,
/// and twice as long for its data.
const STREAM_LEAST: Duration = Duration::from_ms(25);

/// A slot of a queue that seeks lasts for so long at least for each request that the queue has, at a disk
/// with a head and at others.
const REQUEST_LEAST: Duration = Duration::from_ms(6);
const QUICK_LEAST: Duration = Duration::from_ms(2);

/// A queue that seeks with more requests than these has the same turn as all others: too much of what it has
/// at the disk is done in the slots of others, whose requests are done in its own.
const FEW: u64 = 4;

/// See [`Bfq::bearable`]. It is a part of the second that no request is to wait for: the other part is for
/// turns of others that come first.
const PAID_WITHIN: Duration = Duration::from_ms(700);

/// Streams have turns within this multiple (a fraction) of the usual time, while nothing but streams wanted
/// the disk in the last second.
const STREAMS_TIMES: (u64, u64) = (5, 2);
const ONLY_STREAMS: Duration = Duration::from_secs(1);

/// What to do about the queue in service.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Verdict {
    /// A request of this queue, which need not be the one in service, and why.
    Serve(QueueId, Reason),
    /// Nothing, for now.
    Wait,
    /// It loses the disk.
    Leave(Expire),
}

/// Getting the disk.
impl Bfq {
    /// The queue that is to send the next request, and why; `None` to wait.
    #[inline]
    pub(crate) fn select(&mut self, cx: &mut Cx<'_>) -> Option<(QueueId, Reason)> {
        if let Some(q) = self.in_service {
            match self.review_in_service(cx, q) {
                Verdict::Serve(served, why) => return Some((served, why)),
                Verdict::Wait => return None,
                Verdict::Leave(reason) => self.expire(cx, reason),
            }
        }
        self.select_next(cx)
    }

    /// The queue that is to send the next request, and why, if no queue is in service; `None` to wait.
    #[inline(never)]
    fn select_next(&mut self, cx: &mut Cx<'_>) -> Option<(QueueId, Reason)> {
        loop {
            let q = self.set_in_service(cx)?;
            match self.review(cx, q, Reason::NewBatch) {
                Verdict::Serve(served, why) => return Some((served, why)),
                Verdict::Wait => return None,
                Verdict::Leave(reason) => self.expire(cx, reason),
            }
        }
    }

    /// What to do about `q`, which is in service.
    #[inline]
    fn review_in_service(&mut self, cx: &Cx<'_>, q: QueueId) -> Verdict {
        if self.may_time_out(cx.now, q) && !self.must_idle(q) {
            return Verdict::Leave(Expire::BudgetTimeout);
        }
        self.review(cx, q, Reason::Batch)
    }

    /// What to do about `q`, which is in service and may be for longer.
    #[inline(always)]
    fn review(&mut self, cx: &Cx<'_>, q: QueueId, why: Reason) -> Verdict {
        if self.several_actuators
            && let Some(other) = self.underused_actuator(cx.requests, q)
        {
            return Verdict::Serve(other, Reason::Actuator);
        }
        let queue = &self.queues[q];
        if let Some(tag) = queue.next_rq {
            if !self.has_budget_for(cx.requests, q, tag) {
                return Verdict::Leave(Expire::BudgetExhausted);
            }
            if queue.waiting {
                self.stop_idling(q);
            }
            return Verdict::Serve(q, why);
        }
        if queue.waiting || (queue.in_flight > 0 && self.will_idle(q)) {
            return match self.choose_injected(cx, q) {
                Some((other, why)) => Verdict::Serve(other, why),
                None => Verdict::Wait,
            };
        }
        Verdict::Leave(Expire::NoMoreRequests)
    }

    /// The next queue gets the disk.
    pub(crate) fn set_in_service(&mut self, cx: &mut Cx<'_>) -> Option<QueueId> {
        let q = self.hierarchy.select(self.tick(cx.now))?;
        self.in_service = Some(q);
        //= deviates bfq-position-in-service
        self.unposition(q);
        self.gap = 0..0;
        self.count_slot();
        self.raise_selected(cx.now, q);
        self.start_slot(cx.now, q);
        self.in_service_last_pos = Sector(0);
        if cx.books.is_observed() {
            self.book_start(cx, q);
        }
        Some(q)
    }

    /// For the books. Functions of their own, here and below, so that otherwise nothing is in the way.
    #[cold]
    fn book_start(&self, cx: &mut Cx<'_>, q: QueueId) {
        if self.setting.groups {
            cx.books.groups.serve(cx.now, self.group_of(q));
        }
        let detail = Detail::Budget { budget: self.hierarchy.budget(q) };
        cx.note_in_numbers(Reason::SliceStart, self.queues[q].task, detail);
    }

    pub(crate) fn start_slot(&mut self, now: Instant, q: QueueId) {
        self.slot_start = now;
        self.rules_selected();
        let raised = self.hierarchy.weight(q) / self.hierarchy.base_weight(q).max(1);
        let times = if self.is_soft_raised(q) { 1 } else { u64::from(raised) };
        let deadline = if self.setting.clock_runs_at_once {
            self.tick(now) + self.setting.timeout * times
        } else {
            now + Duration::MAX
        };
        let queue = &mut self.queues[q];
        queue.fifo_checked = false;
        queue.slot_deadline = deadline;
        queue.waits_since = deadline;
        if !self.limits.turns_within.is_zero() {
            self.share_turns(q);
        }
    }

    /// The slot of `q`, which is in service, ends in time for the other groups that have requests.
    #[inline(never)]
    fn share_turns(&mut self, q: QueueId) {
        if !self.is_stream(q) {
            self.other_than_stream = self.slot_start;
        }
        let Some(turn) = self.turn(q) else { return };
        let deadline = self.slot_start + turn;
        let queue = &mut self.queues[q];
        if deadline < queue.slot_deadline {
            queue.slot_deadline = deadline;
            queue.waits_since = deadline;
        }
    }

    /// How long a slot of `q` lasts while other groups have requests: its group's part, by weight, of the
    /// time [within](crate::Limits::turns_within) which all have turns.
    fn turn(&self, q: QueueId) -> Option<Duration> {
        if self.groups_pending < 2 {
            return None;
        }
        let within = self.limits.turns_within;
        let equal = (within / u64::from(self.groups_pending)).max(STREAM_LEAST);
        Some(match self.requests_of_seeky(q) {
            None => {
                let only_streams = self.slot_start.saturating_since(self.other_than_stream) >= ONLY_STREAMS;
                let (times, over) = if only_streams { STREAMS_TIMES } else { (1, 1) };
                self.part(q, within * times / over).max(STREAM_LEAST)
            }
            Some(count) if count <= FEW => {
                let each = if self.limits.rotational { REQUEST_LEAST } else { QUICK_LEAST };
                self.part(q, within).max(each * count)
            }
            Some(_) => equal,
        })
    }

    /// How many requests `q` has, at least one, if it seeks.
    fn requests_of_seeky(&self, q: QueueId) -> Option<u64> {
        let Queue { requests, in_flight, .. } = &self.queues[q];
        self.is_seeky(q).then(|| u64::from(requests.len() + in_flight).max(1))
    }

    /// The part of `time` that is due to the group of `q` by weight.
    fn part(&self, q: QueueId, time: Duration) -> Duration {
        Duration::from_ns(self.hierarchy.part(q, time.as_ns()))
    }

    /// Bounds a budget of `q` by what its turn may cost: the finish time that a queue competes with is its
    /// budget's, and a queue of little weight with a large one would be the last for long.
    #[cold]
    #[inline(never)]
    pub(crate) fn fit_turn(&self, q: QueueId, budget: u32) -> u32 {
        let Some(turn) = self.turn(q) else { return budget };
        let is_single = self.requests_of_seeky(q) == Some(1);
        let turn = if is_single { self.part(q, self.limits.turns_within) } else { turn };
        let whole = self.setting.charged_time.as_ns().max(1);
        let most = u64::from(self.bmax_now).saturating_mul(turn.as_ns()) / whole;
        budget.min(u32::try_from(most).unwrap_or(u32::MAX).max(1))
    }

    /// What the time of a slot of `q` counts as: a queue with one request at a time pays in [`PAID_WITHIN`]
    /// for it, or it would have to wait longer for its next turn.
    #[cold]
    #[inline(never)]
    pub(crate) fn bearable(&self, q: QueueId, time: Duration) -> Duration {
        let is_single = self.groups_pending > 1 && self.requests_of_seeky(q) == Some(1);
        if is_single { time.min(self.part(q, PAID_WITHIN)) } else { time }
    }
}

/// Losing the disk.
impl Bfq {
    /// The slot of the queue in service ends.
    pub(crate) fn expire(&mut self, cx: &mut Cx<'_>, reason: Expire) {
        self.expire_as_of(cx, reason, cx.now);
    }

    /// The slot of the queue in service ends, which was of use until `end`.
    pub(crate) fn expire_as_of(&mut self, cx: &mut Cx<'_>, reason: Expire, end: Instant) {
        let Some(q) = self.in_service else { return };
        let sent = self.hierarchy.service(q);
        let slow = self.settle(cx.now, q, reason, end);
        self.rules_expired(cx, q, sent, end);
        self.raise_expired(cx.now, q);
        let service = self.hierarchy.service(q);
        self.feed_back(cx.requests, q, reason);
        self.note_seeky_shared(q);
        if cx.books.is_observed() {
            let budget = self.queues[q].next_budget;
            return self.book_end(cx, q, reason, Detail::Slot { service, budget, slow });
        }
        self.end_slot(cx, q, reason);
    }

    /// Ends the slot where books are kept: the group is charged the time of the slot, idling included.
    #[cold]
    fn book_end(&mut self, cx: &mut Cx<'_>, q: QueueId, reason: Expire, detail: Detail) {
        cx.note_in_numbers(reason.note(), self.queues[q].task, detail);
        let group = self.group_of(q);
        self.charge_group(cx, group);
        self.end_slot(cx, q, reason);
        self.book_dequeue(cx, group);
    }

    /// The group of the queue in service is charged its time.
    pub(crate) fn charge_group(&self, cx: &mut Cx<'_>, group: GroupId) {
        if self.setting.groups {
            let used = cx.now.saturating_since(self.slot_start);
            cx.books.groups.charge(group, used, Duration::ZERO);
            cx.books.groups.leave(cx.now);
        }
    }

    /// If no queue in the group wants the disk any more, while others do, the group has lost its place; and
    /// so on upwards.
    fn book_dequeue(&self, cx: &mut Cx<'_>, mut group: GroupId) {
        while let Some(above) = self.hierarchy.parent(group)
            && !self.hierarchy.is_group_active(group)
            && self.tot_busy() > 0
        {
            cx.books.groups.dequeued(group);
            group = above;
        }
    }

    /// No queue is in service any more; `q`, which was, is busy if it has requests, or is to keep its place.
    pub(crate) fn end_slot(&mut self, cx: &mut Cx<'_>, q: QueueId, reason: Expire) {
        let empty = self.is_empty(q);
        let keep = !empty || (reason == Expire::Preempted && self.needed(q));
        if keep {
            self.fit_budget(cx.requests, q);
            self.hierarchy.expire_requeue(self.tick(cx.now), q);
            self.refresh_weight(q);
            self.move_to_front(q);
        } else {
            if self.queues[q].in_flight == 0 {
                let now = self.tick(cx.now);
                self.queues[q].drain(now);
            }
            self.del_busy(cx, q, true);
        }
        self.note_times(cx, q);
        self.stop_idling(q);
        self.in_service = None;
        self.hierarchy.reset_service();
        if !keep && !matches!(reason, Expire::BudgetTimeout | Expire::BudgetExhausted) {
            self.queues[q].hole_credit = true;
        } else {
            self.hierarchy.set_service(q, 0);
        }
        if !empty {
            self.reposition(cx, q);
        } else if !keep {
            self.reap(q);
        }
    }
}

/// Idling.
impl Bfq {
    /// The queue in service has nothing to send and nothing at the device: the disk idles for it.
    /// Answers whether it may: see [`Limits`](crate::Limits::idle_for_quick_only).
    #[inline(always)]
    pub(crate) fn start_idling(&mut self, cx: &mut Cx<'_>, q: QueueId) -> bool {
        let Some(wanted) = self.idle_period(q) else { return true };
        let Some(idle) = self.idle_allowed(q, wanted) else { return false };
        self.queues[q].waiting = true;
        self.idle_start = cx.now;
        self.idle_timer = Some(cx.now + idle);
        if cx.books.is_observed() {
            self.book_idling(cx, q);
        }
        true
    }

    #[cold]
    fn book_idling(&self, cx: &mut Cx<'_>, q: QueueId) {
        if self.setting.groups {
            cx.books.groups.idles(cx.now);
        }
        cx.note(Reason::SliceIdle, self.queues[q].task);
    }

    /// The disk idles for `q` no longer.
    #[inline]
    pub(crate) fn stop_idling(&mut self, q: QueueId) {
        self.queues[q].waiting = false;
        self.idle_timer = None;
    }

    /// The idle timer fires: the disk idled for the queue in service in vain.
    pub(crate) fn idle_timeout(&mut self, cx: &mut Cx<'_>) {
        self.idle_timer = None;
        let Some(q) = self.in_service else { return };
        self.queues[q].waiting = false;
        if self.timed_out(cx.now, q) {
            self.expire_as_of(cx, Expire::BudgetTimeout, self.idle_start);
        } else if self.is_empty(q) {
            self.expire_as_of(cx, Expire::TooIdle, self.idle_start);
        }
    }
}

/// Becoming busy, and idle.
impl Bfq {
    /// `q` was idle and got its first request, `rq`. Answers whether it counts as interactive.
    pub(crate) fn wake(&mut self, cx: &mut Cx<'_>, q: QueueId, link: Option<LinkId>) -> bool {
        let stably_merged = link.is_some_and(|l| self.links[l].stably_merged);
        let mut wakeup = self.look_at_wakeup(cx.now, q, stably_merged);
        if self.limits.one_youth && !self.wakes_young_group(cx.now, q) {
            wakeup.is_not_young();
        }
        let resumes = self.set_budget_for_activation(cx, q);
        let now = self.tick(cx.now);
        let queue = &mut self.queues[q];
        let long_gone = queue.in_flight == 0 && since(now, queue.drained_at) > BURST_EXIT;
        let new = core::mem::replace(&mut queue.just_created, false);
        if !new && long_gone {
            self.rules_left_burst(q);
        }
        self.raise_on_wakeup(cx, q, wakeup, new);
        self.fit_budget(cx.requests, q);
        let queue = &mut self.queues[q];
        queue.last_backlog_start = now;
        queue.since_backlog = 0;
        self.add_busy(cx, q);
        if self.in_service.is_some_and(|s| self.preempts(q, s, resumes)) {
            self.expire(cx, Expire::Preempted);
        }
        wakeup.interactive
    }

    /// What `q` may send, now that it is busy: what it had left, if it comes back in time. Answers whether it
    /// does.
    fn set_budget_for_activation(&mut self, cx: &Cx<'_>, q: QueueId) -> bool {
        let queue = &mut self.queues[q];
        let in_time = cx.now <= queue.past.last_completion() + self.setting.slice_idle * 3;
        let resumes = queue.hole_credit && in_time && self.left(q) > 0;
        let budget = if resumes {
            // It is positive, and at most a budget.
            u32::try_from(self.left(q)).unwrap_or(0).min(self.queues[q].next_budget)
        } else {
            self.queues[q].hole_credit = false;
            let cost = self.queues[q].next_rq.map_or(0, |tag| self.charge(cx.requests, tag, q));
            self.queues[q].next_budget.max(cost)
        };
        self.hierarchy.set_budget(q, budget);
        self.hierarchy.set_service(q, 0);
        resumes
    }

    /// Whether `q`, which became busy, takes the disk away from `s`. That is part of making the disk
    /// responsive: without raising, slots end by themselves. On a disk that
    /// [idles for quick tasks only](crate::Limits::idle_for_quick_only), or
    /// [spares other groups](crate::Limits::spares_groups), a queue that has requests loses it to one that is
    /// before it in virtual time.
    fn preempts(&self, q: QueueId, s: QueueId, resumes: bool) -> bool {
        let Setting { preempts, decides, .. } = self.setting;
        if !preempts || !decides || !self.hierarchy.may_preempt() {
            return false;
        }
        let resumes = resumes && self.queues[q].raise.factor() >= self.queues[s].raise.factor();
        resumes || self.hierarchy.outweighs(q, s) || !self.keeps_disk(s)
    }

    /// Whether it is better to keep the disk for `s`, which has it, than to turn to another queue.
    fn keeps_disk(&self, s: QueueId) -> bool {
        let less = self.idles_less && self.limits.idle_for_quick_only || self.spares_groups();
        if less { self.is_empty(s) && self.will_idle(s) } else { self.better_to_idle(s) }
    }

    /// `q` is among those that want the disk.
    fn add_busy(&mut self, cx: &mut Cx<'_>, q: QueueId) {
        let credit = core::mem::take(&mut self.queues[q].hole_credit);
        self.hierarchy.activate(self.tick(cx.now), q, credit);
        let class = self.hierarchy.class(q);
        let queue = &mut self.queues[q];
        queue.busy = true;
        queue.class = class;
        self.busy[class as usize] += 1;
        self.busy_in_all += 1;
        self.wr_busy += u32::from(queue.raise.is_raised());
        self.active_links.push_front(&mut self.active[usize::from(queue.actuator)], q);
        self.count(q);
        self.rules_woke(q);
        self.note_times(cx, q);
    }

    /// `q` wants the disk no more; `on_expiry`: it had it.
    pub(crate) fn del_busy(&mut self, cx: &mut Cx<'_>, q: QueueId, on_expiry: bool) {
        let queue = &mut self.queues[q];
        queue.busy = false;
        self.busy[queue.class as usize] -= 1;
        self.busy_in_all -= 1;
        self.wr_busy -= u32::from(queue.raise.is_raised());
        self.active_links.remove(&mut self.active[usize::from(queue.actuator)], q);
        let drained = queue.in_flight == 0;
        self.hierarchy.deactivate(self.tick(cx.now), q, true, on_expiry);
        if drained {
            self.uncount(q);
        }
    }

    /// An idle, or emptied, queue out of service has neither.
    pub(crate) fn go_idle(&mut self, cx: &mut Cx<'_>, q: QueueId) {
        self.del_busy(cx, q, false);
        self.hierarchy.set_budget(q, 0);
        self.hierarchy.set_service(q, 0);
        self.note_times(cx, q);
        if cx.books.is_observed() {
            self.book_dequeue(cx, self.group_of(q));
        }
    }

    /// The next request of `q` changed: its budget must do for that, unless `q` is in service.
    #[inline]
    pub(crate) fn update_next(&mut self, cx: &mut Cx<'_>, q: QueueId) {
        if self.in_service != Some(q)
            && let Some(tag) = self.queues[q].next_rq
        {
            self.update_budget(cx, q, cx.requests[tag].rq.len);
        }
    }

    /// The next request of `q` has this length: its budget must do for that, unless `q` is in service.
    pub(crate) fn update_budget(&mut self, cx: &mut Cx<'_>, q: QueueId, len: Sectors) {
        if self.in_service == Some(q) {
            return;
        }
        let budget = self.queues[q].next_budget.max(self.cost(q, len)).max(self.hierarchy.service(q));
        if budget != self.hierarchy.budget(q) {
            self.hierarchy.set_budget(q, budget);
            self.hierarchy.requeue(self.tick(cx.now), q);
            self.refresh_weight(q);
            self.move_to_front(q);
            self.note_times(cx, q);
        }
    }

    fn move_to_front(&mut self, q: QueueId) {
        let list = &mut self.active[usize::from(self.queues[q].actuator)];
        if list.first() != Some(q) {
            self.active_links.remove(list, q);
            self.active_links.push_front(list, q);
        }
    }
}

/// The counts that say whether all queues are to get the same.
//= linux-6.12 block/bfq-iosched.c bfq_asymmetric_scenario, docs/reference/bfq.md#33-asymmetric-scenarios
impl Bfq {
    /// Whether `q` must be protected for its share to come out right: weights, classes or groups differ.
    #[inline]
    pub(crate) fn asymmetric(&self, q: QueueId) -> bool {
        self.classes_differ() || self.groups_pending > 1 || self.weights_differ(q)
    }

    fn classes_differ(&self) -> bool {
        self.busy.iter().filter(|&&n| n > 0).count() > 1
    }

    /// Whether queues have different weights, and `q` is not among those with the least.
    fn weights_differ(&self, q: QueueId) -> bool {
        let several = self.weights_in_use & self.weights_in_use.wrapping_sub(1) != 0;
        several
            && self.queues[q]
                .weight_counted
                .is_none_or(|w| bfq::weight_index(w) != self.weights_in_use.trailing_zeros() as usize)
    }

    /// `q` has requests, queued or at the device.
    pub(crate) fn count(&mut self, q: QueueId) {
        if !core::mem::replace(&mut self.queues[q].pending_counted, true) {
            let group = &mut self.groups[self.hierarchy.group(q)];
            let new = group.queues_pending == 0;
            self.groups_pending += u32::from(new);
            group.queues_pending += 1;
            if new
                && !self.limits.turns_within.is_zero()
                && let Some(s) = self.in_service
            {
                self.share_turns(s);
            }
        }
        self.count_weight(q);
    }

    /// `q` has none any more.
    pub(crate) fn uncount(&mut self, q: QueueId) {
        if core::mem::take(&mut self.queues[q].pending_counted) {
            let group = &mut self.groups[self.hierarchy.group(q)];
            group.queues_pending -= 1;
            self.groups_pending -= u32::from(group.queues_pending == 0);
        }
        self.count_weight(q);
    }

    /// The hierarchy may have put a new weight or class in force.
    #[inline]
    pub(crate) fn refresh_weight(&mut self, q: QueueId) {
        let class = self.hierarchy.class(q);
        let queue = &mut self.queues[q];
        let before = core::mem::replace(&mut queue.class, class);
        if queue.busy {
            self.busy[before as usize] -= 1;
            self.busy[class as usize] += 1;
        }
        self.count_weight(q);
    }

    /// Files `q` under its weight while it has requests and is not raised.
    fn count_weight(&mut self, q: QueueId) {
        let (weight, base) = (self.hierarchy.weight(q), self.hierarchy.base_weight(q));
        let queue = &mut self.queues[q];
        queue.weighs_more = weight > base;
        let now = (queue.pending_counted && weight == base).then_some(weight);
        let before = core::mem::replace(&mut queue.weight_counted, now);
        if before == now {
            return;
        }
        if let Some(weight) = before {
            let i = bfq::weight_index(weight);
            self.weights[i] -= 1;
            self.weights_in_use &= !(u32::from(self.weights[i] == 0) << i);
        }
        if let Some(weight) = now {
            let i = bfq::weight_index(weight);
            self.weights[i] += 1;
            self.weights_in_use |= 1 << i;
        }
    }

    /// Records the virtual times of `q` and of the groups above it.
    #[inline]
    pub(crate) fn note_times(&self, cx: &mut Cx<'_>, q: QueueId) {
        if cx.books.trace.enabled() {
            self.note_all_times(cx, q);
        }
    }

    #[cold]
    fn note_all_times(&self, cx: &mut Cx<'_>, q: QueueId) {
        let task = self.queues[q].task;
        let (start, finish) = self.hierarchy.times(q);
        let weight = self.hierarchy.weight(q);
        cx.note_in_numbers(Reason::Times, task, Detail::Times { group: None, start, finish, weight });
        let mut group = self.hierarchy.group(q);
        while let Some(above) = self.hierarchy.parent(group) {
            let (start, finish) = self.hierarchy.group_times(group);
            let weight = self.hierarchy.group_weight(group);
            let detail = Detail::Times { group: Some(group), start, finish, weight };
            cx.note_in_numbers(Reason::Times, task, detail);
            group = above;
        }
    }
}
