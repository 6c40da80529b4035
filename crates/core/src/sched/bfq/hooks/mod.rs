//! Where the engine asks its [rules](super::rules), and does what they answer.
//!
//! A hook gathers the facts that a rule looks at, calls the rule, and hands its [`Effect`] to [`Bfq::apply`].

mod idle;
mod inject;
mod merge;
mod raise;

use super::Bfq;
use super::rules::burst::Newcomer;
use super::rules::depth::Served;
use super::rules::early::{self, Charge, Spent};
use super::rules::history::{Arrival, Past};
use super::view::{Effect, Expire, Kind, QueueId, View};
use crate::elevator::Cx;
use crate::request::{Request, State};
use crate::trace::{Detail, Reason};
use crate::units::{Class, Instant, Tag};

/// What rules see, and what they ask for.
impl Bfq {
    /// What a rule may know of the device now.
    #[inline(always)]
    pub(crate) fn seen(&self, now: Instant) -> View {
        View {
            now,
            step: self.setting.tick,
            in_flight: self.in_flight,
            queued: self.queued,
            busy: self.tot_busy(),
            last_completion: self.last_completion,
        }
    }

    /// Does what a rule asks for at an event of `q`: most often nothing.
    #[inline(always)]
    fn apply(&mut self, cx: &mut Cx<'_>, q: QueueId, effect: Effect) {
        if !matches!(effect, Effect::None) {
            self.act(cx, q, effect);
        }
    }

    #[cold]
    #[inline(never)]
    fn act(&mut self, cx: &mut Cx<'_>, q: QueueId, effect: Effect) {
        match effect {
            Effect::None => {}
            Effect::Rerate => self.rerate(cx, q),
            Effect::Rejudge => self.rules.judge(),
            Effect::Note(what) => cx.note(what, self.queues[q].task),
            Effect::Protect(tag) => self.protect(cx, tag),
            Effect::Streams => self.suspend_raising(cx, q),
            Effect::StreamEnded => self.resume_suspended(cx, q),
        }
    }

    fn rerate(&mut self, cx: &mut Cx<'_>, q: QueueId) {
        self.recompute_bmax();
        let rate = self.rules.rate.peak();
        cx.note_in_numbers(Reason::RateUpdate, self.queues[q].task, Detail::Rate { rate });
    }

    /// The disk passes over a request of a raised queue.
    fn protect(&mut self, cx: &mut Cx<'_>, tag: Tag) {
        let q = self.rqs[tag].queue;
        self.raise_protected(q);
        cx.note(Reason::Protected, self.queues[q].task);
    }
}

/// Events.
impl Bfq {
    /// What is known of a queue that is made now: nothing.
    pub(crate) fn new_past(&self, now: Instant, sync: bool, class: Class) -> Past {
        self.rules.history.created(now, sync, class != Class::Idle)
    }

    /// `q` is new.
    pub(crate) fn rules_new_queue(&mut self, now: Instant, q: QueueId) {
        let view = self.seen(now);
        self.rules.bursts.created(&view, q);
        self.rules.inject.created(&view, q);
        self.rules.streams.created(q);
        self.rules.wakers.created(&view, q);
    }

    /// `rq` comes to `q`, and is not yet put in. Answers whether the next request of `q` is expected soon.
    #[inline]
    pub(crate) fn rules_arrived(&mut self, cx: &mut Cx<'_>, q: QueueId, rq: &Request) -> bool {
        let view = self.seen(cx.now);
        let queue = &mut self.queues[q];
        let to = Arrival {
            sync: queue.sync,
            judged: queue.class != Class::Idle,
            busy: queue.busy,
            waiting: queue.next_rq.is_some(),
            in_flight: queue.in_flight > 0,
            created: queue.just_created,
            split: queue.split_time,
        };
        let learned = self.rules.history.arrived(&view, &mut queue.past, &to, rq);
        let short_think = queue.past.thinks_shortly();
        if learned.think_changed {
            self.rules_think_changed(cx.now, q, short_think);
        }
        if learned.all_far && self.is_soft_raised(q) {
            self.raise_turned_far(cx, q);
        }
        short_think
    }

    /// The think time of `q` turned short or long.
    fn rules_think_changed(&mut self, now: Instant, q: QueueId, short_think: bool) {
        let view = self.seen(now);
        self.rules.inject.think_changed(&view, q, short_think);
    }

    /// A request comes to `q`, which was created just now.
    pub(crate) fn rules_created(&mut self, cx: &mut Cx<'_>, q: QueueId) {
        let view = self.seen(cx.now);
        let new = Newcomer { q, group: self.group_of(q), split: self.queues[q].split_time };
        let queues = &self.queues;
        self.rules.bursts.arrived(&view, new, |marked| cx.note(Reason::LargeBurst, queues[marked].task));
    }

    /// The only request of its task comes to `q`, a sync queue.
    #[inline]
    pub(crate) fn rules_arrived_alone(&mut self, cx: &mut Cx<'_>, q: QueueId, short_think: bool) {
        let view = self.seen(cx.now);
        let effect = self.rules.wakers.arrived(&view, q, short_think);
        self.apply(cx, q, effect);
        self.rules.inject.arrived(&view, q, self.in_service == Some(q), short_think);
    }

    /// A request went to the device; `raised` says whether its queue is.
    #[inline]
    pub(crate) fn rules_sent(&mut self, now: Instant, tag: Tag, kind: Kind, raised: bool) {
        if kind == Kind::SyncRead {
            let view = self.seen(now);
            self.rules.protect.dispatched(&view, tag, raised);
        }
    }

    /// `rq` of `q`, which is `raised` or not, is about to go to the device. Answers whether `q` is raised
    /// when the rules have seen it.
    #[inline(always)]
    pub(crate) fn rules_dispatched(
        &mut self,
        cx: &mut Cx<'_>,
        q: QueueId,
        tag: Tag,
        rq: &Request,
        raised: bool,
    ) -> bool {
        if self.in_service == Some(q) {
            self.rules.inject.dispatched(tag);
        }
        let near = !self.rules.history.is_far(self.last_pos, rq);
        let effect = self.rules.rate.dispatched(&self.seen(cx.now), rq.len, near);
        self.apply(cx, q, effect);
        let bursts = &self.rules.bursts;
        let counts = || raised || bursts.is_member(q);
        match self.rules.streams.dispatched(q, rq, counts) {
            Effect::None => raised,
            effect => {
                self.apply(cx, q, effect);
                self.queues[q].raise.is_raised()
            }
        }
    }

    /// A request of `q` completed, and is still counted at the device.
    #[inline]
    pub(crate) fn rules_completed(&mut self, cx: &mut Cx<'_>, q: QueueId, tag: Tag, kind: Kind) {
        let view = self.seen(cx.now);
        let depth = &self.rules.depth;
        self.rules.inject.completed(&view, q, tag, || depth.most());
        if kind == Kind::SyncRead {
            let effect = self.rules.protect.completed(&view, tag);
            self.apply(cx, q, effect);
        }
        let (queues, serving) = (&self.queues, self.in_service);
        let served = || {
            let queue = &queues[serving?];
            let requests = queue.in_flight + queue.requests.len();
            Some(Served { short_think: queue.past.thinks_shortly(), requests })
        };
        let effect = self.rules.depth.completed(&view, served);
        self.apply(cx, q, effect);
        let effect = self.rules.rate.completed(&view);
        self.apply(cx, q, effect);
        self.last_completion = Some(cx.now);
    }

    /// A request of `q`, the queue in service, completed, which may be the first of its slot.
    #[inline]
    pub(crate) fn rules_completed_in_slot(&mut self, now: Instant, q: QueueId, sync: bool) {
        if let Some(lasts) = self.rules.early.completed_in_slot(sync) {
            self.slot_start = now;
            self.queues[q].slot_deadline = self.tick(now) + lasts;
        }
    }

    /// The slot of `q`, which lasted until `end`, is charged by the rules of 2010, if these hold. Answers
    /// whether the queue was slow.
    pub(crate) fn settle_as_in_2010(
        &mut self,
        now: Instant,
        q: QueueId,
        reason: Expire,
        end: Instant,
    ) -> Option<bool> {
        if !self.rules.early.setting.on {
            return None;
        }
        let (budget, service) = (self.hierarchy.budget(q), self.hierarchy.service(q));
        let time = end.saturating_since(self.slot_start);
        let slot = Spent { sync: self.queues[q].sync, budget, service, time, reason };
        let Charge { slow, more } = self.rules.early.expired(&slot);
        if more > 0 {
            self.served(now, q, more);
        }
        Some(slow)
    }

    /// The budget after one of `old` sectors, whose slot ended for `reason`, by the rules of 2010.
    pub(crate) fn next_budget_as_in_2010(old: u32, reason: Expire, largest: u32, smallest: u32) -> u32 {
        early::next_budget(old, reason, largest, smallest)
    }

    /// The device's peak rate, in 2^-16 sectors per microsecond.
    pub(crate) const fn peak_rate(&self) -> u64 {
        self.rules.rate.peak()
    }

    /// A queue gets the disk.
    #[inline]
    pub(crate) const fn rules_selected(&mut self) {
        self.rules.early.selected();
    }

    /// `q` becomes busy.
    #[inline]
    pub(crate) fn rules_woke(&mut self, q: QueueId) {
        self.rules.wakers.woke(q);
    }

    /// `q` becomes busy after having been idle for long.
    pub(crate) fn rules_left_burst(&mut self, q: QueueId) {
        self.rules.bursts.leave(q);
    }

    /// `q` is freed; `owned` says whether one task still had it to itself.
    pub(crate) fn rules_freed(&mut self, q: QueueId, owned: bool) {
        self.rules.bursts.freed(q, owned);
        self.rules.wakers.freed(q);
    }

    /// Tunables changed: the rules of 2010 count from now on, or no more.
    pub(crate) fn rules_retuned(&mut self, cx: &Cx<'_>) {
        // A request that was handed back is still at the device, for a scheduler.
        let at_device = cx.requests.iter().filter(|&(tag, slot)| match slot.state {
            State::Issued => true,
            State::Queued => !self.sorted.contains(tag),
            State::Free | State::Merged | State::Held => false,
        });
        let sync = at_device.filter(|&(tag, _)| self.rqs[tag].kind != Kind::Async).count();
        self.rules.early.retuned(u32::try_from(sync).unwrap_or(u32::MAX));
        self.counts_sent = self.several_actuators || self.rules.early.setting.on;
    }

    /// The slot of `q`, in which it sent `sectors`, is over; it was of use until `end`.
    pub(crate) fn rules_expired(&mut self, cx: &mut Cx<'_>, q: QueueId, sectors: u32, end: Instant) {
        self.rules.inject.expired();
        if self.queues[q].sync {
            let time = end.saturating_since(self.slot_start);
            let effect = self.rules.rate.expired(sectors, time);
            self.apply(cx, q, effect);
        }
    }
}

/// What must hold between events.
impl Bfq {
    /// How `q` is raised.
    pub(crate) fn check_raising(&self, q: QueueId) {
        self.rules.raise.check(&self.queues[q].raise);
    }

    /// What rules keep; `reads` are the sync reads at the device.
    pub(crate) fn check_rules(&self, reads: impl Iterator<Item = Tag>) {
        self.rules.protect.check(reads);
        self.rules.bursts.check(|q| self.queues[q].in_use);
        self.rules.wakers.check(|q| self.queues[q].in_use);
    }
}
