//! Which queue is served while the disk is kept for another one.
//!
//! The first that there is:
//!
//! 1. the async queue of the same task, if the request is that task's: it may wait for its own writes;
//! 2. the queue's [waker](crate::sched::bfq::rules::waker), and 3. the first that it wakes itself: idling
//!    would keep away what it waits for;
//! 4. any busy queue, most recently activated first, on the terms of
//!    [injection](crate::sched::bfq::rules::inject). Not where idling gains throughput, and not for a raised
//!    queue that will soon have a request again.
//!
//! The first three ask for no limit. An injected request is charged to its own queue, whose turn in virtual
//! time it does not take: see [`super::slot`].
//!
//! **Several actuators.** A disk with two arms is half idle if the queue in service needs one of them. An arm
//! with fewer than 4 requests, and fewer than the next arm, gets a request of a queue that needs it, before
//! the queue in service gets its turn.
//!
//= linux-6.12 block/bfq-iosched.c bfq_choose_bfqq_for_injection, bfq_find_bfqq_for_underused_actuator
//= docs/reference/bfq.md#42-injection, docs/reference/bfq.md#45-actuators

use crate::elevator::Cx;
use crate::request::Requests;
use crate::sched::bfq::Bfq;
use crate::sched::bfq::rules::inject::Awaited;
use crate::sched::bfq::view::QueueId;
use crate::trace::Reason;

/// An actuator with this many requests has enough.
//= linux-6.12 block/bfq-iosched.c actuator_load_threshold, docs/reference/bfq.md#45-actuators
const ENOUGH: u32 = 4;

impl Bfq {
    /// The queue to serve while `s` is in service, has nothing queued, and is worth waiting for.
    pub(crate) fn choose_injected(&mut self, cx: &Cx<'_>, s: QueueId) -> Option<(QueueId, Reason)> {
        if self.rules.inject.setting.on
            && let Some(own) = self.own_async(cx.requests, s)
        {
            return Some((own, Reason::Injected));
        }
        if self.rules.wakers.setting.on {
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
        let soon = queue.raise.is_raised()
            && (self.rules.protect.is_greedy() || self.wr_busy <= 1 && queue.past.thinks_shortly());
        if !self.rules.inject.setting.on || soon || self.boosts(s) {
            return None;
        }
        let q = self.find_injectable(cx, s)?;
        self.rules.inject.injected();
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
        let awaited = Awaited {
            raised: queue.raise.is_raised(),
            short_think: queue.past.thinks_shortly(),
            idle_since: queue.waiting.then_some(self.idle_start),
        };
        let terms = self.rules.inject.terms(&self.seen(cx.now), s, awaited)?;
        let suits = |&q: &QueueId| {
            let queue = &self.queues[q];
            let Some(next) = queue.next_rq else { return false };
            terms.suits(queue.raise.is_raised(), cx.requests[next].rq.len) && self.fits(cx.requests, q)
        };
        let actuators = self.actuators.count();
        self.active[..actuators].iter().find_map(|list| self.active_links.iter(list).find(suits))
    }

    /// While `s` is in service: a queue whose request is to go to an actuator that has too little to do.
    #[inline]
    pub(crate) fn underused_actuator(&self, requests: &Requests, s: QueueId) -> Option<QueueId> {
        let actuators = self.actuators.count();
        if actuators == 1 {
            return None;
        }
        let found = (0..actuators).find_map(|a| self.queue_needing(requests, s, a, actuators))?;
        (found != s).then_some(found)
    }

    /// The queue that is to send a request to actuator `a`, if that has too little to do.
    fn queue_needing(&self, requests: &Requests, s: QueueId, a: usize, actuators: usize) -> Option<QueueId> {
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
