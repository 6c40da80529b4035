//! The rules of 2010, for those switches of [`Config`](super::Config) that are off.
//!
//! | switch | rule when it is off |
//! |---|---|
//! | `throughput_boost` | budgets: B is three quarters of what the disk does in a slot; at least B/2; plus 1024 sectors when used up, minus 128 after idling in vain, back to three quarters of B after a timeout. A queue is idled for, when nothing is at the device, unless it thinks for longer than `slice_idle`, or seeks while the device queues |
//! | `rate_estimator` | the peak rate is the best rate of a slot of more than 20 ms, from the 32nd such slot on |
//! | `interactive` and `soft_realtime` | nobody takes the disk away from another |
//! | `fair_writes` | a slot's clock starts with its first completion. Who times out, is slow or async pays for a whole budget. An async queue may send 4 requests in a slot if others wait, none while sync requests are at the device, and for 40 ms |
//!
//! A queue is *slow* if at its rate its budget would not be used up within `timeout_sync`. (The published test has the
//! comparison the other way round; this is what its description says.)
//
//= bfq-2010 __bfq_bfqq_recalc_budget, bfq_update_peak_rate, bfq_charge_full_budget, bfq_dispatch_requests
//= docs/reference/bfq.md#2-the-v0-engine

use super::Bfq;
use super::budget::TELLING;
use super::slot::Expire;
use super::view::QueueId;
use crate::units::{Duration, Instant};

/// Sectors by which a budget shrinks when its queue was idled for in vain.
//= bfq-2010 __bfq_bfqq_recalc_budget, docs/reference/bfq.md#2-the-v0-engine
const STEP_DOWN: u32 = 128;
/// Sectors by which one grows that was used up.
const STEP_UP: u32 = 8 * 128;
/// Requests that an async queue may send in a slot if others wait.
//= bfq-2010 bfq_max_budget_async_rq, docs/reference/bfq.md#2-the-v0-engine
const ASYNC_REQUESTS: u32 = 4;
/// How long the slot of an async queue lasts.
//= bfq-2010 bfq_timeout_async, docs/reference/bfq.md#2-the-v0-engine
const ASYNC_TIMEOUT: Duration = Duration::from_ms(40);

/// What only these rules keep.
#[derive(Clone, Copy, Debug, Default)]
//= deviates bfq-v0-rules
pub(super) struct Early {
    /// The clock of the slot runs.
    pub(super) clock_runs: bool,
    /// Requests that were sent in this slot.
    pub(super) sent: u32,
    /// Sync requests at the device.
    pub(super) sync_in_flight: u32,
}

impl Bfq {
    pub(super) fn budget_as_in_2010(&self, q: QueueId, reason: Expire) -> u32 {
        let (largest, smallest) = (self.bmax_now, self.bmin());
        let old = self.queues[q].next_budget;
        match reason {
            Expire::TooIdle => old.saturating_sub(STEP_DOWN).max(smallest),
            Expire::BudgetTimeout => largest / 4 * 3,
            Expire::BudgetExhausted => old.saturating_add(STEP_UP).min(largest),
            Expire::NoMoreRequests | Expire::Preempted => old,
        }
    }

    /// Charges a slot; answers whether its queue was slow.
    pub(super) fn settle_as_in_2010(
        &mut self,
        now: Instant,
        q: QueueId,
        reason: Expire,
        end: Instant,
    ) -> bool {
        let sync = self.queues[q].sync;
        let (budget, service) = (self.hierarchy.budget(q), self.hierarchy.service(q));
        let time = end.saturating_since(self.slot_start);
        let measured = sync && self.early.clock_runs && time > TELLING;
        let slow = measured
            && u128::from(service) * u128::from(self.timeout.as_ns())
                < u128::from(budget) * u128::from(time.as_ns());
        let pays_all = reason == Expire::BudgetTimeout || !sync || (slow && reason == Expire::TooIdle);
        if pays_all && budget > service {
            self.served(now, q, budget - service);
        }
        slow
    }

    /// Whether `q` was the kind of queue that is idled for.
    pub(super) fn has_idle_window(&self, q: QueueId) -> bool {
        let queue = &self.queues[q];
        !(queue.past.thinks_longer_than(self.slice_idle) || self.rules.depth.may_queue() && self.is_seeky(q))
    }

    /// The first completion of a slot starts its clock.
    pub(super) fn start_clock_as_in_2010(&mut self, now: Instant, q: QueueId) {
        if self.config.fair_writes || core::mem::replace(&mut self.early.clock_runs, true) {
            return;
        }
        self.slot_start = now;
        let timeout = if self.queues[q].sync { self.timeout } else { self.ticks(ASYNC_TIMEOUT) };
        self.queues[q].slot_deadline = self.tick(now) + timeout;
    }

    /// Whether an async queue must let sync requests finish first.
    pub(super) fn waits_for_sync(&self, q: QueueId) -> bool {
        !self.config.fair_writes && !self.queues[q].sync && self.early.sync_in_flight > 0
    }

    /// Whether an async queue has sent all it may.
    pub(super) fn async_quota_used(&self, q: QueueId) -> bool {
        !self.config.fair_writes
            && !self.queues[q].sync
            && self.tot_busy() > 1
            && self.early.sent >= ASYNC_REQUESTS
    }
}
