//! Budgets: how many sectors a queue may send in a slot, what a request costs, and what a slot is charged in
//! the end.
//!
//! A queue that uses up its budget gets a larger one, one that leaves most of it unused a smaller one. None
//! is larger than B, what the disk does at its peak rate within `timeout_sync`, and none smaller than B/32;
//! until some slots have been seen B is 16384 sectors (8 MiB). Example: a budget of B/32 that is always used
//! up becomes B/8, B/2, B.
//!
//! A request costs its length. An async one costs three times as much, for what its writing costs those who
//! come after, unless all shares count exactly ([`Bfq::asymmetric`]).
//!
//! A queue that is *slow*, because it seeks or is at the inner end of the disk, would keep the disk for long
//! with a small service. It is charged for the time: as many sectors as the peak rate makes of it.
//!
//! ```text
//!   slot of 60 ms, 300 sectors sent, B = 16384 for 125 ms:   charged 16384 * 60 / 125 = 7864
//! ```
//!
//! The engine of 2010 had steps instead of factors, at least B/2, and a whole budget as the price for being
//! slow; these rules are in [`early`].
//
//= linux-6.12 block/bfq-iosched.c __bfq_bfqq_recalc_budget, bfq_bfqq_charge_time, bfq_bfqq_is_slow
//= linux-6.12 block/bfq-iosched.c bfq_serv_to_charge,
//= linux-6.12 block/bfq-iosched.c bfq_bfqq_budget_timeout, bfq_may_expire_for_budg_timeout
//= docs/reference/bfq.md#25-slot-clock

use super::setting::Budgets;
use crate::request::Requests;
use crate::sched::bfq::view::{Expire, QueueId};
use crate::sched::bfq::{Bfq, DEFAULT_BUDGET};
use crate::units::{Duration, Instant, Sectors, Tag};

/// `slots_seen` from which on the measured B counts.
//= linux-6.12 block/bfq-iosched.c bfq_stats_min_budgets, docs/reference/bfq.md#21-maximum-budget
const SLOTS_WARM: u32 = 194;
/// A slot shorter than this says nothing about its queue's speed.
//= linux-6.12 block/bfq-iosched.c bfq_bfqq_is_slow, docs/reference/bfq.md#24-charge-by-time
const BRIEF: Duration = Duration::from_ms(1);
/// One longer than this does.
//= linux-6.12 block/bfq-iosched.c BFQ_MIN_TT, docs/reference/bfq.md#24-charge-by-time
const TELLING: Duration = Duration::from_ms(20);
/// What the kernel takes a slot for that ended before it began: microseconds below zero in 32 bits. A thread
/// that hands several requests over reads its clock once for all of them.
const WRAPPED: Duration = Duration::from_us(u32::MAX as u64);
/// The largest charge: so that sums fit.
const CHARGE_MAX: u32 = 1 << 30;

impl Bfq {
    /// B, for now.
    #[inline]
    pub(crate) fn bmax(&self) -> u32 {
        if self.slots_seen >= SLOTS_WARM { self.bmax_now } else { DEFAULT_BUDGET }
    }

    /// The smallest budget.
    #[inline]
    pub(crate) fn bmin(&self) -> u32 {
        self.setting.budgets.smallest(self.bmax())
    }

    /// A slot began: B is known a little better.
    #[inline]
    pub(crate) fn count_slot(&mut self) {
        self.slots_seen = (7 * self.slots_seen + 256) / 8;
    }

    /// B from the peak rate, unless the user has set it.
    pub(crate) fn recompute_bmax(&mut self) {
        if let Some(sectors) = self.setting.max_budget {
            self.bmax_now = sectors;
            return;
        }
        let sectors = (self.peak_rate() * 1000 * self.setting.timeout.as_ms()) >> 16;
        let sectors = self.setting.budgets.largest(sectors);
        self.bmax_now = u32::try_from(sectors).unwrap_or(u32::MAX).clamp(1, CHARGE_MAX);
    }

    /// What a new queue may send in its first slot.
    pub(crate) fn first_budget(&self) -> u32 {
        self.setting.budgets.first(self.bmax())
    }

    /// What `tag` costs `q`, in sectors.
    #[inline]
    pub(crate) fn charge(&self, requests: &Requests, tag: Tag, q: QueueId) -> u32 {
        self.cost(q, requests[tag].rq.len)
    }

    /// What a request of `len` costs `q`, in sectors.
    #[inline]
    pub(crate) fn cost(&self, q: QueueId, len: Sectors) -> u32 {
        let len = len.0.min(CHARGE_MAX);
        let queue = &self.queues[q];
        if queue.sync || queue.raise.is_raised() || self.asymmetric(q) {
            return len;
        }
        len.saturating_mul(self.setting.async_cost).min(CHARGE_MAX)
    }

    /// What is left of its budget; negative when it had to be charged for more.
    #[inline]
    pub(crate) fn left(&self, q: QueueId) -> i64 {
        self.hierarchy.left(q)
    }

    /// Whether its next request fits what is left.
    #[inline(always)]
    pub(crate) fn has_budget_for(&self, requests: &Requests, q: QueueId, tag: Tag) -> bool {
        i64::from(self.charge(requests, tag, q)) <= self.left(q)
    }

    /// Makes the budget of a queue that is not in service large enough for its next request.
    //= deviates bfq-fit-budget
    pub(crate) fn fit_budget(&mut self, requests: &Requests, q: QueueId) {
        if let Some(tag) = self.queues[q].next_rq {
            let cost = self.charge(requests, tag, q);
            if cost > self.hierarchy.budget(q) && !self.setting.as_kernel {
                self.hierarchy.set_budget(q, cost);
            }
        }
    }

    /// A sector count that `q` was served, or is charged for.
    #[inline(always)]
    pub(crate) fn served(&mut self, now: Instant, q: QueueId, sectors: u32) {
        let now = self.tick(now);
        let queue = &mut self.queues[q];
        if queue.since_backlog == 0 {
            queue.first_io = now;
        }
        queue.raise.served(sectors);
        queue.since_backlog += u64::from(sectors);
        self.hierarchy.served(q, sectors);
    }

    /// Whether the slot has lasted for too long.
    #[inline]
    pub(crate) fn timed_out(&self, now: Instant, q: QueueId) -> bool {
        self.tick(now) >= self.queues[q].slot_deadline
    }

    /// Whether it may end for that. An empty queue that has used most of its budget is left in peace: to cut
    /// it would put its timestamps out of step.
    #[inline]
    pub(crate) fn may_time_out(&self, now: Instant, q: QueueId) -> bool {
        self.timed_out(now, q) && (!self.queues[q].waiting || self.has_third_left(q))
    }

    fn has_third_left(&self, q: QueueId) -> bool {
        self.left(q) >= i64::from(self.hierarchy.budget(q) / 3)
    }

    /// The slot of `q`, which lasted until `end`, is over: charges for time if that is due. Answers whether
    /// the queue was slow.
    pub(crate) fn settle(&mut self, now: Instant, q: QueueId, reason: Expire, end: Instant) -> bool {
        if let Some(slow) = self.settle_as_in_2010(now, q, reason, end) {
            return slow;
        }
        let (slow, time) = self.judge_speed(q, end);
        let timed_out = reason == Expire::BudgetTimeout && self.has_third_left(q);
        if !self.queues[q].raise.is_raised() && (slow || timed_out) {
            let time = if self.limits.turns_within.is_zero() { time } else { self.bearable(q, time) };
            self.charge_time(now, q, time);
        }
        slow
    }

    /// Whether `q` was slow in its slot, and how long that counts as.
    fn judge_speed(&self, q: QueueId, end: Instant) -> (bool, Duration) {
        if !self.queues[q].sync {
            return (false, Duration::ZERO);
        }
        //= deviates conform-plug-clock
        let backwards = self.setting.as_kernel && end < self.slot_start;
        let time = if backwards { WRAPPED } else { end.saturating_since(self.slot_start) };
        if time < BRIEF {
            // Where the disk does not idle for it, each of its requests has a slot of its own: if that
            // counted for more than it took, a task that thinks would have a request in each slot of others.
            let counts = !(self.idles_less && self.limits.idle_for_quick_only);
            return (self.is_seeky(q) && counts, self.setting.brief_counts_as);
        }
        let slow =
            if time > TELLING { self.hierarchy.service(q) < self.bmax_now / 2 } else { self.is_seeky(q) };
        (slow, time)
    }

    /// Charges for `time` at the peak rate, if that is more than the service. In whole milliseconds.
    //= docs/reference/bfq.md#24-charge-by-time
    fn charge_time(&mut self, now: Instant, q: QueueId, time: Duration) {
        let whole = self.setting.charged_time;
        let (part, whole) = (time.as_ms().min(whole.as_ms()), whole.as_ms().max(1));
        let service = self.hierarchy.service(q);
        let charged = u64::from(self.bmax_now) * part / whole;
        let charged = u32::try_from(charged).unwrap_or(CHARGE_MAX).max(service);
        if charged > self.hierarchy.budget(q) {
            self.hierarchy.set_budget(q, charged);
        }
        if charged > service {
            self.served(now, q, charged - service);
        }
    }

    /// The next budget of `q`, whose slot ended for `reason`.
    pub(crate) fn feed_back(&mut self, requests: &Requests, q: QueueId, reason: Expire) {
        let (largest, smallest) = (self.bmax_now, self.bmin());
        let queue = &self.queues[q];
        let old = queue.next_budget;
        let mut budget = if !queue.sync {
            largest
        } else if queue.raise.is_raised() {
            2 * smallest
        } else if self.setting.budgets == Budgets::Steps {
            Self::next_budget_as_in_2010(old, reason, largest, smallest)
        } else {
            match reason {
                Expire::TooIdle if queue.in_flight > 0 => old.saturating_mul(2).min(largest),
                Expire::TooIdle if old > 5 * smallest => old - 4 * smallest,
                Expire::TooIdle => smallest,
                Expire::BudgetTimeout => old.saturating_mul(2).min(largest),
                Expire::BudgetExhausted => old.saturating_mul(4).min(largest),
                Expire::NoMoreRequests => self.hierarchy.service(q).max(smallest),
                // Not its fault: nothing changes.
                Expire::Preempted => return,
            }
        };
        if self.slots_seen >= SLOTS_WARM && self.setting.max_budget.is_none() {
            budget = budget.min(largest);
        }
        if !self.limits.turns_within.is_zero() {
            budget = self.fit_turn(q, budget);
        }
        self.queues[q].next_budget = budget;
        if let Some(tag) = self.queues[q].next_rq {
            let cost = self.charge(requests, tag, q);
            self.hierarchy.set_budget(q, budget.max(cost));
        }
    }
}
