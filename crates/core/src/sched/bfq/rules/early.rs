//! The rules of 2010 for slots and budgets: what they cost, how long they last.
//!
//! | switch of [`Config`](crate::sched::bfq::Config) | rule when it is off |
//! |---|---|
//! | `throughput_boost` | budgets: B is three quarters of what the disk does in a slot; at least B/2; plus 1024 sectors when used up, minus 128 after idling in vain, back to three quarters of B after a timeout |
//! | `fair_writes` | a slot's clock starts with its first completion. A queue that times out, is slow or async pays for a whole budget. An async queue may send 4 requests in a slot if others wait, none while sync requests are at the device, and for 40 ms |
//!
//! A queue is *slow* if at its rate its budget would not be used up within `timeout_sync`. (The published
//! test has the comparison the other way round; this is what its description says.)
//!
//! Other rules have their own form of 2010, which is theirs: seeks and think times in `history`, the rate of
//! the device in `rate`, for which queues the disk idles in `idle`. With both kinds of raising off no queue
//! takes the disk away from another.
//
//= bfq-2010 __bfq_bfqq_recalc_budget, bfq_charge_full_budget, bfq_dispatch_requests
//= docs/reference/bfq.md#2-the-v0-engine

use crate::sched::bfq::view::Expire;
use crate::units::Duration;

/// Sectors by which a budget shrinks when its queue was idled for in vain.
//= bfq-2010 __bfq_bfqq_recalc_budget, docs/reference/bfq.md#2-the-v0-engine
const STEP_DOWN: u32 = 128;
/// Sectors by which a budget grows that was used up.
const STEP_UP: u32 = 8 * 128;
/// The number of requests that an async queue may send in a slot if others wait.
//= bfq-2010 bfq_max_budget_async_rq, docs/reference/bfq.md#2-the-v0-engine
const ASYNC_REQUESTS: u32 = 4;
/// How long the slot of an async queue lasts.
//= bfq-2010 bfq_timeout_async, docs/reference/bfq.md#2-the-v0-engine
pub(crate) const TIMEOUT_ASYNC: Duration = Duration::from_ms(40);
/// A slot that is not longer than this says nothing about its queue's speed.
//= linux-6.12 block/bfq-iosched.c BFQ_MIN_TT, docs/reference/bfq.md#24-charge-by-time
const TELLING: Duration = Duration::from_ms(20);

/// What this rule is set to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    /// Whether slots are charged, and end, by these rules.
    pub(crate) on: bool,
    /// How long the slot of a sync queue lasts.
    pub(crate) timeout: Duration,
    /// How long the slot of an async queue lasts.
    pub(crate) timeout_async: Duration,
}

/// What only these rules keep.
#[derive(Clone, Copy, Debug)]
//= deviates bfq-v0-rules
pub(crate) struct Early {
    pub(crate) setting: Setting,
    /// The clock of the slot runs.
    clock_runs: bool,
    /// How many requests were sent in this slot.
    sent: u32,
    /// How many sync requests are at the device.
    sync_in_flight: u32,
}

/// A slot that is over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spent {
    /// Whether its queue is sync.
    pub(crate) sync: bool,
    /// In sectors.
    pub(crate) budget: u32,
    /// In sectors.
    pub(crate) service: u32,
    /// How long the slot was of use.
    pub(crate) time: Duration,
    /// Why it ended.
    pub(crate) reason: Expire,
}

/// What a slot is charged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Charge {
    /// Whether the queue was slow.
    pub(crate) slow: bool,
    /// Sectors to pay for beyond the service.
    pub(crate) more: u32,
}

/// The budget after one of `old` sectors, whose slot ended for `reason`; `largest` is B.
pub(crate) fn next_budget(old: u32, reason: Expire, largest: u32, smallest: u32) -> u32 {
    match reason {
        Expire::TooIdle => old.saturating_sub(STEP_DOWN).max(smallest),
        Expire::BudgetTimeout => largest / 4 * 3,
        Expire::BudgetExhausted => old.saturating_add(STEP_UP).min(largest),
        Expire::NoMoreRequests | Expire::Preempted => old,
    }
}

impl Early {
    /// No request has been sent.
    pub(crate) const fn new(setting: Setting) -> Self {
        Self { setting, clock_runs: false, sent: 0, sync_in_flight: 0 }
    }

    /// A queue gets the disk.
    #[inline]
    pub(crate) const fn selected(&mut self) {
        self.clock_runs = false;
        self.sent = 0;
    }

    /// A request goes to the device; `in_slot` says whether it is one of the queue in service.
    pub(crate) fn dispatched(&mut self, sync: bool, in_slot: bool) {
        self.sent += u32::from(in_slot);
        self.sync_in_flight += u32::from(self.setting.on && sync);
    }

    /// Whether a queue has sent all it may in this slot, while `busy` queues want the disk or have it.
    #[inline]
    pub(crate) const fn has_sent_all(&self, sync: bool, busy: u32) -> bool {
        self.setting.on && !sync && busy > 1 && self.sent >= ASYNC_REQUESTS
    }

    /// A request is done.
    pub(crate) fn completed(&mut self, sync: bool) {
        self.sync_in_flight -= u32::from(self.setting.on && sync);
    }

    /// Tunables changed, while this many sync requests are at the device.
    pub(crate) const fn retuned(&mut self, sync_in_flight: u32) {
        self.sync_in_flight = if self.setting.on { sync_in_flight } else { 0 };
    }

    /// A request of the queue in service is done. If it is the first of its slot, answers for how long the
    /// slot lasts from now on.
    #[inline]
    pub(crate) const fn completed_in_slot(&mut self, sync: bool) -> Option<Duration> {
        if !self.setting.on || self.clock_runs {
            return None;
        }
        self.clock_runs = true;
        Some(if sync { self.setting.timeout } else { self.setting.timeout_async })
    }

    /// Whether a queue must let the sync requests at the device finish first.
    #[inline]
    pub(crate) const fn holds(&self, sync: bool) -> bool {
        self.setting.on && !sync && self.sync_in_flight > 0
    }

    /// What a slot that is over is charged.
    pub(crate) fn expired(&self, slot: &Spent) -> Charge {
        let Spent { sync, budget, service, time, reason } = *slot;
        let measured = sync && self.clock_runs && time > TELLING;
        let slow = measured
            && u128::from(service) * u128::from(self.setting.timeout.as_ns())
                < u128::from(budget) * u128::from(time.as_ns());
        let pays_all = reason == Expire::BudgetTimeout || !sync || (slow && reason == Expire::TooIdle);
        Charge { slow, more: if pays_all { budget.saturating_sub(service) } else { 0 } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Duration = Duration::from_ms(125);

    fn new(on: bool) -> Early {
        Early::new(Setting { on, timeout: TIMEOUT, timeout_async: TIMEOUT_ASYNC })
    }

    #[test]
    fn budgets_go_by_steps() {
        let next = |old, reason| next_budget(old, reason, 16_000, 8000);
        assert_eq!([9000, 8100].map(|old| next(old, Expire::TooIdle)), [8872, 8000]);
        assert_eq!([9000, 15_500].map(|old| next(old, Expire::BudgetExhausted)), [10_024, 16_000]);
        assert_eq!(next(9000, Expire::BudgetTimeout), 12_000);
        assert_eq!([Expire::NoMoreRequests, Expire::Preempted].map(|why| next(9000, why)), [9000; 2]);
    }

    #[test]
    fn the_first_completion_starts_the_clock_of_each_slot() {
        let mut early = new(true);
        assert_eq!(early.completed_in_slot(true), Some(TIMEOUT));
        assert_eq!(early.completed_in_slot(true), None);
        early.selected();
        assert_eq!(early.completed_in_slot(false), Some(Duration::from_ms(40)));
        assert_eq!(new(false).completed_in_slot(true), None);
    }

    #[test]
    fn an_async_queue_sends_four_requests_in_a_slot_if_others_wait() {
        let all = |on, sync, busy| {
            let mut early = new(on);
            [0; 5].map(|_| {
                early.dispatched(sync, false);
                early.dispatched(sync, true);
                early.has_sent_all(sync, busy)
            })
        };
        assert_eq!(all(true, false, 2), [false, false, false, true, true]);
        assert_eq!(
            (all(true, true, 2), all(true, false, 1), all(false, false, 2)),
            ([false; 5], [false; 5], [false; 5])
        );
        let mut early = new(true);
        let _ = [0; 5].map(|_| early.dispatched(false, true));
        early.selected();
        assert!(!early.has_sent_all(false, 2), "each slot begins anew");
    }

    #[test]
    fn an_async_queue_waits_for_sync_requests_at_the_device() {
        let mut early = new(true);
        early.dispatched(false, true);
        assert!(!early.holds(false));
        early.dispatched(true, true);
        assert!(early.holds(false) && !early.holds(true));
        early.dispatched(true, true);
        early.completed(false);
        early.completed(true);
        assert!(early.holds(false), "for both of them");
        early.completed(true);
        assert!(!early.holds(false));
    }

    #[test]
    fn rules_that_are_turned_on_learn_what_is_at_the_device() {
        let mut early = new(false);
        early.dispatched(true, true);
        assert!(!early.holds(false));
        early.setting.on = true;
        early.retuned(1);
        assert!(early.holds(false));
        early.completed(true);
        assert!(!early.holds(false));
        early.dispatched(true, true);
        early.setting.on = false;
        early.retuned(1);
        assert!(!early.holds(false));
        early.completed(true);
    }

    /// The charge of a slot of a queue that sent 100 of 200 sectors in this time; its clock runs.
    fn charge(sync: bool, ms: u64, reason: Expire) -> Charge {
        let mut early = new(true);
        let _ = early.completed_in_slot(sync);
        early.expired(&Spent { sync, budget: 200, service: 100, time: Duration::from_ms(ms), reason })
    }

    #[test]
    fn a_queue_is_slow_that_would_not_use_up_its_budget_in_time() {
        // 100 sectors in 62.5 ms are 200 in 125.
        assert!(!charge(true, 62, Expire::Preempted).slow && charge(true, 63, Expire::Preempted).slow);
        assert!(!charge(false, 63, Expire::Preempted).slow);
        let slot = Spent { sync: true, budget: 2000, service: 1, time: TELLING, reason: Expire::TooIdle };
        let mut early = new(true);
        let longer = Spent { time: TELLING + Duration::from_ns(1), ..slot };
        assert!(!early.expired(&longer).slow, "the clock does not run");
        let _ = early.completed_in_slot(true);
        assert!(!early.expired(&slot).slow && early.expired(&longer).slow);
    }

    #[test]
    fn queues_that_time_out_are_async_or_slow_and_awaited_in_vain_pay_for_a_whole_budget() {
        let more = |sync, ms, reason| charge(sync, ms, reason).more;
        assert_eq!(more(true, 1, Expire::BudgetTimeout), 100);
        assert_eq!(more(false, 1, Expire::NoMoreRequests), 100);
        assert_eq!((more(true, 63, Expire::TooIdle), more(true, 62, Expire::TooIdle)), (100, 0));
        assert_eq!(more(true, 63, Expire::BudgetExhausted), 0);
        let over = Spent { sync: false, budget: 1, service: 9, time: TELLING, reason: Expire::TooIdle };
        assert_eq!(new(true).expired(&over).more, 0, "it has paid for more already");
    }
}
