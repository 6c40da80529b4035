//! Where the engine asks its [rules](super::rules), and does what they answer.
//!
//! A hook gathers the facts that a rule looks at, calls the rule, and hands its [`Effect`] to [`Bfq::apply`].

use super::Bfq;
use super::history::is_far;
use super::rules::depth::Served;
use super::view::{Effect, QueueId, View};
use crate::elevator::Cx;
use crate::request::Request;
use crate::trace::{Detail, Reason};
use crate::units::Instant;

/// What rules see, and what they ask for.
impl Bfq {
    /// What a rule may know of the device now.
    #[inline(always)]
    fn seen(&self, now: Instant) -> View {
        View {
            now,
            tick: self.tick(now),
            in_flight: self.in_flight,
            queued: self.queued,
            last_completion: self.last_completion,
        }
    }

    /// Does what a rule asks for at an event of `q`.
    #[inline]
    fn apply(&mut self, cx: &mut Cx<'_>, q: QueueId, effect: Effect) {
        match effect {
            Effect::None => {}
            Effect::Rerate => self.rerate(cx, q),
            Effect::Rejudge => self.boost = self.boost_rule(),
        }
    }

    #[cold]
    fn rerate(&mut self, cx: &mut Cx<'_>, q: QueueId) {
        self.recompute_bmax();
        let rate = self.rules.rate.peak();
        cx.note_in_numbers(Reason::RateUpdate, self.queues[q].task, Detail::Rate { rate });
    }
}

/// Events.
impl Bfq {
    /// `rq` of `q` is about to go to the device.
    #[inline]
    pub(super) fn rules_dispatched(&mut self, cx: &mut Cx<'_>, q: QueueId, rq: &Request) {
        let near = !is_far(self.limits.rotational, self.last_pos, rq.start, rq.len);
        let effect = self.rules.rate.dispatched(&self.seen(cx.now), rq.len, near);
        self.apply(cx, q, effect);
    }

    /// A request of `q` completed, and is still counted at the device.
    #[inline]
    pub(super) fn rules_completed(&mut self, cx: &mut Cx<'_>, q: QueueId) {
        let view = self.seen(cx.now);
        let (queues, serving) = (&self.queues, self.in_service);
        let served = || {
            let queue = &queues[serving?];
            Some(Served { short_think: queue.short_think, requests: queue.in_flight + queue.requests.len() })
        };
        let effect = self.rules.depth.completed(&view, served);
        self.apply(cx, q, effect);
        let effect = self.rules.rate.completed(&view);
        self.apply(cx, q, effect);
        self.last_completion = Some(cx.now);
    }

    /// The slot of `q`, in which it sent `sectors`, is over; it was of use until `end`.
    pub(super) fn rules_expired(&mut self, cx: &mut Cx<'_>, q: QueueId, sectors: u32, end: Instant) {
        if self.queues[q].sync {
            let time = end.saturating_since(self.slot_start);
            let effect = self.rules.rate.expired(sectors, time);
            self.apply(cx, q, effect);
        }
    }
}
