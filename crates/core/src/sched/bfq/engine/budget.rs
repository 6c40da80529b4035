//! Budgets: how many sectors a queue may send in a slot, what a request costs, and what a slot is charged in the end.
//!
//! A queue that uses up its budget gets a larger one, one that leaves most of it unused a smaller one. None is larger than
//! B, what the disk does at its peak rate within `timeout_sync`, and none smaller than B/32; until some slots have been
//! seen B is 16384 sectors (8 MiB). Example: a budget of B/32 that is always used up becomes B/8, B/2, B.
//!
//! A request costs its length. An async one costs three times as much, for what its writing costs those who come after,
//! unless all shares count exactly ([`Bfq::asymmetric`]).
//!
//! A queue that is *slow*, because it seeks or is at the inner end of the disk, would keep the disk for long with a small
//! service. It is charged for the time: as many sectors as the peak rate makes of it.
//!
//! ```text
//!   slot of 60 ms, 300 sectors sent, B = 16384 for 125 ms:   charged 16384 * 60 / 125 = 7864
//! ```
//!
//! The engine of 2010 had steps instead of factors, at least B/2, and a whole budget as the price for being slow; these
//! rules are in [`early`].
//
//= linux-6.12 block/bfq-iosched.c __bfq_bfqq_recalc_budget, bfq_bfqq_charge_time, bfq_bfqq_is_slow, bfq_serv_to_charge,
//= linux-6.12 block/bfq-iosched.c bfq_bfqq_budget_timeout, bfq_may_expire_for_budg_timeout
//= docs/reference/bfq.md#25-slot-clock

use crate::request::Requests;
use crate::sched::bfq::rules::early;
use crate::sched::bfq::view::{Expire, QueueId};
use crate::sched::bfq::{Bfq, DEFAULT_BUDGET};
use crate::units::{Duration, Instant, Sectors, Tag};

/// `slots_seen` from which on the measured B counts.
//= linux-6.12 block/bfq-iosched.c bfq_stats_min_budgets, docs/reference/bfq.md#21-maximum-budget
const SLOTS_WARM: u32 = 194;
/// The smallest budget is this part of B.
const SMALLEST_PART: u32 = 32;
/// What an async request costs, in units of its length.
//= linux-6.12 block/bfq-iosched.c bfq_async_charge_factor, docs/reference/bfq.md#23-cost-of-a-request
const ASYNC_COST: u32 = 3;
/// A slot shorter than this says nothing about its queue's speed.
//= linux-6.12 block/bfq-iosched.c bfq_bfqq_is_slow, docs/reference/bfq.md#24-charge-by-time
const BRIEF: Duration = Duration::from_ms(1);
/// One longer than this does.
//= linux-6.12 block/bfq-iosched.c BFQ_MIN_TT, docs/reference/bfq.md#24-charge-by-time
const TELLING: Duration = Duration::from_ms(20);
/// What a brief slot counts as on a disk without a head; on others it is `slice_idle`.
//= linux-6.12 block/bfq-iosched.c BFQ_MIN_TT / 10, docs/reference/bfq.md#24-charge-by-time
const BRIEF_COUNTS_AS: Duration = Duration::from_ms(2);
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
        if self.config.throughput_boost { self.bmax() / SMALLEST_PART } else { self.bmax() / 2 }
    }

    /// A slot began: B is known a little better.
    #[inline]
    pub(crate) fn count_slot(&mut self) {
        self.slots_seen = (7 * self.slots_seen + 256) / 8;
    }

    /// B from the peak rate, unless the user has set it.
    pub(crate) fn recompute_bmax(&mut self) {
        if self.config.max_budget.0 > 0 {
            self.bmax_now = self.config.max_budget.0;
            return;
        }
        let sectors = (self.rules.rate.peak() * 1000 * self.timeout.as_ms()) >> 16;
        let sectors = if self.config.throughput_boost { sectors } else { sectors * 3 / 4 };
        self.bmax_now = u32::try_from(sectors).unwrap_or(u32::MAX).clamp(1, CHARGE_MAX);
    }

    /// What a new queue may send in its first slot.
    pub(crate) fn first_budget(&self) -> u32 {
        if self.config.throughput_boost { 2 * self.bmax() / 3 } else { self.bmax() / 4 * 3 }
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
        if queue.sync || !self.config.fair_writes || queue.raise.is_raised() || self.asymmetric(q) {
            return len;
        }
        (len.saturating_mul(ASYNC_COST)).min(CHARGE_MAX)
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
            if cost > self.hierarchy.budget(q) && !self.config.quirks {
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

    /// Whether it may end for that. An empty queue that has used most of its budget is left in peace: to cut it would
    /// put its timestamps out of step.
    #[inline]
    pub(crate) fn may_time_out(&self, now: Instant, q: QueueId) -> bool {
        self.timed_out(now, q) && (!self.queues[q].waiting || self.has_third_left(q))
    }

    fn has_third_left(&self, q: QueueId) -> bool {
        self.left(q) >= i64::from(self.hierarchy.budget(q) / 3)
    }

    /// The slot of `q`, which lasted until `end`, is over: charges for time if that is due. Answers whether the queue
    /// was slow.
    pub(crate) fn settle(&mut self, now: Instant, q: QueueId, reason: Expire, end: Instant) -> bool {
        if self.rules.early.setting.on {
            return self.settle_as_in_2010(now, q, reason, end);
        }
        let (slow, time) = self.judge_speed(q, end);
        let timed_out = reason == Expire::BudgetTimeout && self.has_third_left(q);
        if !self.queues[q].raise.is_raised() && (slow || timed_out) {
            self.charge_time(now, q, time);
        }
        slow
    }

    /// Whether `q` was slow in its slot, and how long that counts as.
    fn judge_speed(&self, q: QueueId, end: Instant) -> (bool, Duration) {
        if !self.queues[q].sync {
            return (false, Duration::ZERO);
        }
        let time = end.saturating_since(self.slot_start);
        if time < BRIEF {
            //= linux-6.12 block/bfq-iosched.c bfq_slice_idle, where the tunable is not looked at
            //= docs/reference/bfq.md#b-kernel-quirks
            let idle = if self.config.quirks { Duration::from_ms(8) } else { self.slice_idle };
            return (self.is_seeky(q), if self.limits.rotational { idle } else { BRIEF_COUNTS_AS });
        }
        let slow =
            if time > TELLING { self.hierarchy.service(q) < self.bmax_now / 2 } else { self.is_seeky(q) };
        (slow, time)
    }

    /// Charges for `time` at the peak rate, if that is more than the service. In whole milliseconds.
    //= docs/reference/bfq.md#24-charge-by-time
    fn charge_time(&mut self, now: Instant, q: QueueId, time: Duration) {
        // Compile-time constants in the kernel (docs/reference/bfq.md#b-kernel-quirks, B11).
        let whole = if self.config.quirks { self.ticks(Duration::from_ms(125)) } else { self.timeout };
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
        } else if !self.config.throughput_boost {
            early::next_budget(old, reason, largest, smallest)
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
        if self.slots_seen >= SLOTS_WARM && self.config.max_budget.0 == 0 {
            budget = budget.min(largest);
        }
        self.queues[q].next_budget = budget;
        if let Some(tag) = self.queues[q].next_rq {
            let cost = self.charge(requests, tag, q);
            self.hierarchy.set_budget(q, budget.max(cost));
        }
    }
}
