//! Injection: while the disk idles for one queue, a few requests of others.
//!
//! Idling for a queue keeps its guarantees and wastes the disk. Requests of others sent meanwhile cost the queue little as
//! long as its own next request does not wait for them. How many that is, is measured, for each queue: how long its first request
//! takes after an idle period, with nothing else at the device (the *base time*) and with others there.
//!
//! ```text
//!   limit 1, base time 4 ms        others:  ──x──┐            first request, 5 ms:  below 1.5 * 4 ms, limit 2
//!   limit 2                        others:  ──x──x──┐         first request, 7 ms:  not below 6 ms,   limit 1
//! ```
//!
//! A shorter time without others, or a shorter time at all, is the new base time; the limit is never more than one above what
//! the device ever had at once. Measurements are at least 10 ms apart, and forgotten after 1 s without a lowering. A
//! queue with short think times starts at 0, one with long ones at 1, as much of its time would be wasted.
//!
//! Whom to serve, the first that there is:
//!
//! 1. the async queue of the same task, if the request is that task's: it may wait for its own writes;
//! 2. the queue's [waker](super::rules::waker), and 3. the first that it wakes itself: idling would keep away what it waits for;
//! 4. *general* injection: any busy queue, most recently activated first, while fewer than `limit` requests are at the
//!    device. Not where idling gains throughput, and not for a raised queue that will soon go on.
//!
//! On flash, general injection sends nothing of 32 KiB or more while something is at the device. The first three ask for no limit.
//! An injected request is charged to its own queue, whose turn in virtual time it does not take: see [`super::slot`].
//!
//! **Several actuators.** A disk with two arms is half idle if the queue in service needs one of them. An arm with fewer than 4
//! requests, and fewer than the next arm, gets a request of whoever needs it, before the queue in service gets its turn.
//!
//! Where the kernel means to try a limit of 1 for a queue that is awaited for long without any measurement, but adds
//! nanoseconds to ticks and so never does, we do (unless [`quirks`](super::Config::quirks)).
//!
//= linux-6.12 block/bfq-iosched.c bfq_choose_bfqq_for_injection, bfq_update_inject_limit
//= linux-6.12 block/bfq-iosched.c bfq_find_bfqq_for_underused_actuator
//= docs/reference/bfq.md#42-injection, docs/reference/bfq.md#45-actuators

use super::Bfq;
use super::view::{QueueId, since};
use crate::elevator::Cx;
use crate::request::Requests;
use crate::trace::Reason;
use crate::units::{Duration, Instant, Tag};

/// Measurements are forgotten when the limit has not been lowered for so long.
//= linux-6.12 block/bfq-iosched.c bfq_add_request, docs/reference/bfq.md#42-injection
const FORGET: Duration = Duration::from_ms(1000);

/// Between a lowering and the next measurement.
const APART: Duration = Duration::from_ms(10);

/// A change of think time that is so soon after a reset does not reset again.
//= linux-6.12 block/bfq-iosched.c bfq_update_has_short_ttime, docs/reference/bfq.md#42-injection
const STEADY: Duration = Duration::from_ms(100);

/// On flash, a request of so many sectors or more is large.
//= linux-6.12 block/bfq-iosched.c BFQQ_SECT_THR_NONROT, docs/reference/bfq.md#42-injection
const LARGE: u32 = 64;

/// An actuator with so many requests has enough.
//= linux-6.12 block/bfq-iosched.c actuator_load_threshold, docs/reference/bfq.md#45-actuators
const ENOUGH: u32 = 4;

/// A queue's measurements.
#[derive(Clone, Copy, Debug)]
pub(super) struct Inject {
    /// How many requests the device may have for others to be injected.
    pub(super) limit: u32,
    /// How long its first request takes without injection; zero: unknown.
    pub(super) base_time: Duration,
    /// When the limit was lowered or all was forgotten.
    pub(super) changed: Instant,
}

impl Inject {
    /// Of a new queue.
    pub(super) const fn new(created: Instant) -> Self {
        Self { limit: 0, base_time: Duration::ZERO, changed: created }
    }
}

/// The device's state of measuring.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Injection {
    /// The next request of the queue in service is to be timed.
    pub(super) wait_dispatch: bool,
    /// It is timed.
    pub(super) waited_rq: Option<Tag>,
    /// Since when.
    pub(super) occupied_at: Option<Instant>,
    /// A request of another queue was injected meanwhile.
    pub(super) injected: bool,
}

impl Bfq {
    /// Forgets a queue's measurements.
    pub(super) fn reset_injection(&mut self, now: Instant, q: QueueId) {
        let changed = self.tick(now);
        self.injection.waited_rq = None;
        let queue = &mut self.queues[q];
        let limit = u32::from(!queue.short_think);
        queue.inject = Inject { limit, base_time: Duration::ZERO, changed };
    }

    /// The only request of its task came to `q`, a sync queue: it may be the one to time.
    pub(super) fn injection_on_arrival(&mut self, now: Instant, q: QueueId) {
        if !self.config.injection {
            return;
        }
        let since_change = self.tick(now).saturating_since(self.queues[q].inject.changed);
        if since_change >= FORGET {
            // And a change has been too recent for anything else.
            self.reset_injection(now, q);
            return;
        }
        if since_change < APART || self.in_service != Some(q) {
            return;
        }
        let alone = self.in_flight == 0;
        let disturbed = self.injection.injected && !self.queues[q].inject.base_time.is_zero();
        if !(alone || disturbed) {
            return;
        }
        self.injection.occupied_at = Some(now);
        self.injection.wait_dispatch = true;
        if alone {
            self.injection.injected = false;
        }
    }

    /// A request of the queue in service is dispatched.
    #[inline]
    pub(super) fn injection_on_dispatch(&mut self, _q: QueueId, tag: Tag) {
        if self.injection.wait_dispatch {
            self.injection.wait_dispatch = false;
            self.injection.waited_rq = Some(tag);
        }
    }

    /// A request of `q` completes, and is still counted at the device.
    #[inline]
    pub(super) fn injection_on_completion(&mut self, now: Instant, q: QueueId, tag: Tag) {
        if self.injection.waited_rq == Some(tag) {
            self.learn_inject_limit(now, q);
        }
    }

    /// The request that was timed has completed.
    fn learn_inject_limit(&mut self, now: Instant, q: QueueId) {
        let took = since(now, self.injection.occupied_at);
        let (alone, injected) = (self.in_flight == 1, self.injection.injected);
        let (most, tick) = (self.rules.depth.most(), self.tick(now));
        let inject = &mut self.queues[q].inject;
        let (old, base) = (inject.limit, inject.base_time);
        if !base.is_zero() && injected {
            let threshold = base + base / 2;
            if took >= threshold && old > 0 {
                inject.limit -= 1;
                inject.changed = tick;
            } else if took < threshold && old <= most {
                inject.limit += 1;
            }
        }
        if base.is_zero() && alone {
            inject.limit = old.max(1);
            inject.base_time = took;
        } else if took < base || !injected && alone {
            inject.base_time = took;
        }
        self.injection.waited_rq = None;
        self.injection.injected = false;
    }

    /// The queue's think time turned short or long.
    pub(super) fn injection_on_think_change(&mut self, now: Instant, q: QueueId) {
        let queue = &self.queues[q];
        let steady = self.tick(now).saturating_since(queue.inject.changed) >= STEADY;
        if self.config.injection && queue.inject.base_time.is_zero() && (steady || !queue.short_think) {
            self.reset_injection(now, q);
        }
    }

    /// Whom to serve while `s` is in service, has nothing queued, and is worth waiting for.
    pub(super) fn choose_injected(&mut self, cx: &Cx<'_>, s: QueueId) -> Option<(QueueId, Reason)> {
        if self.config.injection
            && let Some(own) = self.own_async(cx.requests, s)
        {
            return Some((own, Reason::Injected));
        }
        if self.config.wakers {
            let wakers = &self.rules.wakers;
            let (waker, woken) = (wakers.waker(s), wakers.first_woken(s));
            if let Some(q) = waker.filter(|&q| self.fits(cx.requests, q)) {
                return Some((q, Reason::Waker));
            }
            if let Some(q) = woken.filter(|&q| self.fits(cx.requests, q)) {
                return Some((q, Reason::Waker));
            }
        }
        let queue = &self.queues[s];
        //= deviates bfq-protection
        let soon = queue.raise.factor > 1
            && (self.rules.protect.is_greedy() || self.wr_busy <= 1 && queue.short_think);
        if !self.config.injection || soon || self.boosts(s) {
            return None;
        }
        let q = self.find_injectable(cx, s)?;
        self.injection.injected = true;
        Some((q, Reason::Injected))
    }

    /// The async queue of the task that alone has `s`, if the request that is next there is its own.
    fn own_async(&self, requests: &Requests, s: QueueId) -> Option<QueueId> {
        let link = self.queues[s].owner?;
        let q = self.links[link].asyn?;
        let next = self.queues[q].next_rq?;
        (self.rqs[next].process == self.process_of(link) && self.fits(requests, q)).then_some(q)
    }

    /// Whether a queue's next request is within what is left of its budget.
    fn fits(&self, requests: &Requests, q: QueueId) -> bool {
        let queue = &self.queues[q];
        let Some(next) = queue.next_rq.filter(|_| queue.busy) else { return false };
        i64::from(self.charge(requests, next, q)) <= self.left(q)
    }

    /// A queue for general injection.
    fn find_injectable(&self, cx: &Cx<'_>, s: QueueId) -> Option<QueueId> {
        let queue = &self.queues[s];
        let limit = match queue.inject.limit {
            0 if self.is_worth_a_try(cx.now, s) => 1,
            limit => limit,
        };
        if self.in_flight >= limit {
            return None;
        }
        let only_raised = queue.raise.factor > 1 && queue.short_think;
        let only_small = !self.limits.rotational && self.in_flight > 0;
        let suits = |&q: &QueueId| {
            let Some(next) = self.queues[q].next_rq else { return false };
            let raised = self.queues[q].raise.factor > 1;
            let small = cx.requests[next].rq.len.0 < LARGE;
            (raised || !only_raised) && (small || !only_small) && self.fits(cx.requests, q)
        };
        let actuators = self.actuators.count();
        self.active[..actuators].iter().find_map(|list| self.active_links.iter(list).find(suits))
    }

    /// Whether nothing is known about injection for `s`, which is waited for longer than usual.
    fn is_worth_a_try(&self, now: Instant, s: QueueId) -> bool {
        let queue = &self.queues[s];
        //= deviates bfq-inject-try
        !self.config.quirks
            && queue.waiting
            && queue.inject.base_time.is_zero()
            && now.saturating_since(self.idle_start) >= self.slice_idle
    }

    /// The queue in service expires: nothing is to be timed.
    #[inline]
    pub(super) fn clear_injection(&mut self) {
        self.injection.injected = false;
        self.injection.wait_dispatch = false;
        self.injection.waited_rq = None;
    }

    /// While `s` is in service: a queue whose request is to go to an actuator that has too little to do.
    #[inline]
    pub(super) fn underused_actuator(&self, requests: &Requests, s: QueueId) -> Option<QueueId> {
        let actuators = self.actuators.count();
        if actuators == 1 || !self.config.actuators {
            return None;
        }
        let found = (0..actuators).find_map(|a| self.who_needs(requests, s, a, actuators))?;
        (found != s).then_some(found)
    }

    /// Who is to send a request to actuator `a` of so many, if that has too little to do.
    fn who_needs(&self, requests: &Requests, s: QueueId, a: usize, actuators: usize) -> Option<QueueId> {
        let has = self.in_flight_of[a];
        if has >= ENOUGH || a + 1 < actuators && has >= self.in_flight_of[a + 1] {
            return None;
        }
        if usize::from(self.queues[s].actuator) == a {
            return Some(s);
        }
        self.active_links.iter(&self.active[a]).find(|&q| self.fits(requests, q))
    }
}
