//! Where the engine asks which queue is served while the disk is kept for another one.
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
//! The first three ask for no limit.
//
//= linux-6.12 block/bfq-iosched.c bfq_choose_bfqq_for_injection, docs/reference/bfq.md#42-injection

use crate::elevator::Cx;
use crate::sched::bfq::Bfq;
use crate::sched::bfq::rules::inject::Awaited;
use crate::sched::bfq::view::QueueId;
use crate::trace::Reason;

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

    /// A queue for general injection.
    fn find_injectable(&self, cx: &Cx<'_>, s: QueueId) -> Option<QueueId> {
        let queue = &self.queues[s];
        let awaited = Awaited {
            raised: queue.raise.is_raised(),
            short_think: queue.past.thinks_shortly(),
            idle_since: queue.waiting.then_some(self.idle_start),
        };
        let terms = self.rules.inject.terms(&self.seen(cx.now), s, awaited)?;
        self.find_busy(cx.requests, |rq, raised| terms.suits(raised, rq.len))
    }
}
