//! Injection: how many requests of others may be sent while the disk idles for one queue.
//!
//! Idling for a queue keeps its guarantees and wastes the disk. Requests of others sent meanwhile cost the
//! queue little as long as its own next request does not wait for them. How many that is, is measured, for
//! each queue: how long its first request takes after an idle period, with nothing else at the device (the
//! *base time*) and with others there.
//!
//! ```text
//!   limit 1, base time 4 ms        others:  ──x──┐            first request, 5 ms:  below 1.5 * 4 ms, limit 2
//!   limit 2                        others:  ──x──x──┐         first request, 7 ms:  not below 6 ms,   limit 1
//! ```
//!
//! A shorter time without others, or a shorter time at all, is the new base time; the limit is never more
//! than one above what the device ever had at once. Measurements are at least 10 ms apart, and forgotten
//! after 1 s without a lowering. A queue with short think times starts at 0, one with long ones at 1, as much
//! of its time would be wasted.
//!
//! While fewer requests than the limit are at the device, any busy queue may send one, but
//!
//! - only a raised one, while a raised queue that thinks shortly is idled for;
//! - none of 32 KiB or more on flash, while something is at the device.
//!
//! Where the kernel means to try a limit of 1 for a queue that is awaited for long without any measurement,
//! but adds nanoseconds to ticks and so never does, this rule does (unless [`Setting::tries`] is off).
//!
//! What it does not do: choose which queue sends; the engine takes the first that [suits](Terms::suits).
//
//= linux-6.12 block/bfq-iosched.c bfq_choose_bfqq_for_injection, bfq_update_inject_limit
//= linux-6.12 block/bfq-iosched.c bfq_reset_inject_limit

use crate::sched::bfq::view::{QueueId, View, since};
use crate::table::Table;
use crate::units::{Duration, Instant, Sectors, Tag};

/// Measurements are forgotten when the limit has not been lowered for this long.
//= linux-6.12 block/bfq-iosched.c bfq_add_request, docs/reference/bfq.md#42-injection
const FORGET: Duration = Duration::from_ms(1000);

/// The least time between a lowering and the next measurement.
const APART: Duration = Duration::from_ms(10);

/// A change of think time sooner than this after a reset does not reset again.
//= linux-6.12 block/bfq-iosched.c bfq_update_has_short_ttime, docs/reference/bfq.md#42-injection
const STEADY: Duration = Duration::from_ms(100);

/// On flash, a request of this many sectors or more is large.
//= linux-6.12 block/bfq-iosched.c BFQQ_SECT_THR_NONROT, docs/reference/bfq.md#42-injection
const LARGE: Sectors = Sectors(64);

/// What this rule is set to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    /// Whether others' requests are injected.
    pub(crate) on: bool,
    /// Whether a queue of which nothing is known gets a try after an idle period of the usual length.
    pub(crate) tries: bool,
    /// How long the disk idles for a queue.
    pub(crate) slice_idle: Duration,
    /// Whether the device has a head.
    pub(crate) rotational: bool,
}

/// A queue's measurements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Measured {
    /// How many requests the device may have for others to be injected.
    limit: u32,
    /// How long the queue's first request takes without injection; zero: unknown.
    base_time: Duration,
    /// When the limit was lowered or all was forgotten.
    changed: Instant,
}

impl Measured {
    const fn nothing(limit: u32, changed: Instant) -> Self {
        Self { limit, base_time: Duration::ZERO, changed }
    }

    /// With this limit and base time: for tests.
    #[cfg(test)]
    pub(crate) const fn of(limit: u32, base_time: Duration, changed: Instant) -> Self {
        Self { limit, base_time, changed }
    }
}

/// The queue in service, which has nothing to send and is worth waiting for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Awaited {
    pub(crate) raised: bool,
    /// Whether its next request is expected soon.
    pub(crate) short_think: bool,
    /// Since when the disk has idled for it, if it does.
    pub(crate) idle_since: Option<Instant>,
}

/// Which request may be injected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Terms {
    only_raised: bool,
    only_small: bool,
}

impl Terms {
    /// Whether a request of this length may be injected, of a queue that is raised or not.
    pub(crate) fn suits(self, raised: bool, len: Sectors) -> bool {
        (raised || !self.only_raised) && (len < LARGE || !self.only_small)
    }
}

/// All queues' measurements, and the one that is being made.
#[derive(Clone, Debug)]
pub(crate) struct Inject {
    pub(crate) setting: Setting,
    queues: Table<QueueId, Measured>,
    /// The next request of the queue in service is to be timed.
    wait_dispatch: bool,
    /// The request that is timed.
    timed: Option<Tag>,
    /// When its time began.
    occupied_at: Option<Instant>,
    /// A request of another queue was injected meanwhile.
    injected: bool,
}

impl Inject {
    /// Nothing has been measured. Allocates.
    pub(crate) fn new(setting: Setting, queues: usize) -> Self {
        Self {
            setting,
            queues: Table::new(queues, Measured::nothing(0, Instant::EPOCH)),
            wait_dispatch: false,
            timed: None,
            occupied_at: None,
            injected: false,
        }
    }

    /// What is known of a queue.
    pub(crate) fn measured(&self, q: QueueId) -> Measured {
        self.queues[q]
    }

    /// What was known of a queue, before its task shared another one, holds again.
    pub(crate) fn split(&mut self, q: QueueId, measured: Measured) {
        self.queues[q] = measured;
    }

    /// A queue is created.
    pub(crate) fn created(&mut self, view: &View, q: QueueId) {
        self.queues[q] = Measured::nothing(0, view.tick());
    }

    /// Forgets a queue's measurements.
    fn reset(&mut self, tick: Instant, q: QueueId, short_think: bool) {
        self.timed = None;
        self.queues[q] = Measured::nothing(u32::from(!short_think), tick);
    }

    /// The only request of its task comes to `q`, a sync queue, which may be in service: it may be the one to
    /// time.
    #[inline]
    pub(crate) fn arrived(&mut self, view: &View, q: QueueId, serving: bool, short_think: bool) {
        if !self.setting.on {
            return;
        }
        let tick = view.tick();
        let since_change = tick.saturating_since(self.queues[q].changed);
        if since_change >= FORGET {
            // And a change has been too recent for anything else.
            self.reset(tick, q, short_think);
            return;
        }
        if since_change < APART || !serving {
            return;
        }
        let alone = view.in_flight == 0;
        let disturbed = self.injected && !self.queues[q].base_time.is_zero();
        if !(alone || disturbed) {
            return;
        }
        self.occupied_at = Some(view.now);
        self.wait_dispatch = true;
        if alone {
            self.injected = false;
        }
    }

    /// A request of the queue in service is dispatched.
    #[inline]
    pub(crate) const fn dispatched(&mut self, tag: Tag) {
        if self.wait_dispatch {
            self.wait_dispatch = false;
            self.timed = Some(tag);
        }
    }

    /// A request of `q` completes; `most` is what the device had at once of late.
    #[inline]
    pub(crate) fn completed(&mut self, view: &View, q: QueueId, tag: Tag, most: impl FnOnce() -> u32) {
        if self.timed == Some(tag) {
            self.learn(*view, q, most());
        }
    }

    /// The request that was timed has completed.
    fn learn(&mut self, view: View, q: QueueId, most: u32) {
        let took = since(view.now, self.occupied_at);
        let (alone, injected) = (view.in_flight == 1, self.injected);
        let measured = &mut self.queues[q];
        let (old, base) = (measured.limit, measured.base_time);
        if !base.is_zero() && injected {
            let threshold = base + base / 2;
            if took >= threshold && old > 0 {
                measured.limit -= 1;
                measured.changed = view.tick();
            } else if took < threshold && old <= most {
                measured.limit += 1;
            }
        }
        if base.is_zero() && alone {
            measured.limit = old.max(1);
            measured.base_time = took;
        } else if took < base || !injected && alone {
            measured.base_time = took;
        }
        self.timed = None;
        self.injected = false;
    }

    /// The queue's think time turned short or long.
    pub(crate) fn think_changed(&mut self, view: &View, q: QueueId, short_think: bool) {
        let Measured { base_time, changed, .. } = self.queues[q];
        let steady = view.tick().saturating_since(changed) >= STEADY;
        if self.setting.on && base_time.is_zero() && (steady || !short_think) {
            self.reset(view.tick(), q, short_think);
        }
    }

    /// The slot of the queue in service ends: nothing is to be timed.
    #[inline]
    pub(crate) const fn expired(&mut self) {
        self.injected = false;
        self.wait_dispatch = false;
        self.timed = None;
    }

    /// Whether a request of another queue may be sent while the disk is kept for `s`, and which.
    pub(crate) fn terms(&self, view: &View, s: QueueId, awaited: Awaited) -> Option<Terms> {
        let limit = match self.queues[s].limit {
            0 if self.is_worth_a_try(view.now, s, awaited) => 1,
            limit => limit,
        };
        (view.in_flight < limit).then_some(Terms {
            only_raised: awaited.raised && awaited.short_think,
            only_small: !self.setting.rotational && view.in_flight > 0,
        })
    }

    /// Whether nothing is known about `s`, which is waited for longer than usual.
    fn is_worth_a_try(&self, now: Instant, s: QueueId, awaited: Awaited) -> bool {
        //= deviates bfq-inject-try
        self.setting.tries
            && self.queues[s].base_time.is_zero()
            && awaited.idle_since.is_some_and(|t| now.saturating_since(t) >= self.setting.slice_idle)
    }

    /// A request that suits the terms is sent.
    pub(crate) const fn injected(&mut self) {
        self.injected = true;
    }

    /// What is known of a queue, to change: for tests of the engine.
    #[cfg(test)]
    pub(crate) fn has_measured(&mut self, q: QueueId, measured: Measured) {
        self.queues[q] = measured;
    }

    /// The limit and base time of a queue: for tests of the engine.
    #[cfg(test)]
    pub(crate) fn known(&self, q: QueueId) -> (u32, Duration) {
        (self.queues[q].limit, self.queues[q].base_time)
    }

    /// Whether a request has been injected that counts, the next request is to be timed, and the one that is
    /// timed: for tests of the engine.
    #[cfg(test)]
    pub(crate) const fn state(&self) -> (bool, bool, Option<Tag>) {
        (self.injected, self.wait_dispatch, self.timed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Id;

    const MS: Duration = Duration::from_ms(1);

    fn q() -> QueueId {
        QueueId::from_index(2)
    }

    fn at(ms: u64) -> Instant {
        Instant::EPOCH + MS * ms
    }

    fn new() -> Inject {
        Inject::new(Setting { on: true, tries: true, slice_idle: MS * 8, rotational: true }, 4)
    }

    /// With a limit and a base time since 5000 ms.
    fn known(limit: u32, base_ms: u64) -> Inject {
        let mut inject = new();
        inject.has_measured(q(), Measured::of(limit, MS * base_ms, at(5000)));
        inject
    }

    /// The outcome of one measurement: limit and base time, in ms.
    fn learn(limit: u32, base: u64, took: u64, injected: bool, in_flight: u32, most: u32) -> (u32, u64) {
        let mut inject =
            Inject { timed: Some(Tag(7)), occupied_at: Some(at(6000)), injected, ..known(limit, base) };
        let view = View { in_flight, ..View::at(at(6000 + took)) };
        inject.completed(&view, q(), Tag(6), || panic!("another request says nothing"));
        assert_eq!(inject.timed, Some(Tag(7)));
        inject.completed(&view, q(), Tag(7), || most);
        assert_eq!((inject.timed, inject.injected), (None, false));
        let measured = inject.measured(q());
        assert_eq!(measured.changed == view.now, measured.limit < limit, "the time of a lowering");
        (measured.limit, measured.base_time.as_ms())
    }

    #[test]
    fn the_limit_follows_what_injection_costs() {
        assert_eq!(learn(0, 0, 4, false, 1, 9), (1, 4), "nothing known: the base time, and a limit of 1");
        assert_eq!(learn(3, 0, 4, false, 1, 9), (3, 4));
        assert_eq!(learn(0, 0, 4, true, 2, 9), (0, 0), "nothing known, and others at the device");
        assert_eq!(learn(1, 4, 5, true, 2, 9), (2, 4), "below 1.5 * 4 ms");
        assert_eq!(learn(2, 4, 6, true, 2, 9), (1, 4), "not below it");
        assert_eq!(learn(0, 4, 7, true, 2, 9), (0, 4));
        assert_eq!(learn(2, 4, 5, true, 2, 2), (3, 4), "one more than the device ever had");
        assert_eq!(learn(3, 4, 5, true, 2, 2), (3, 4));
        assert_eq!(learn(1, 4, 3, true, 2, 9), (2, 3), "faster than ever: the new base");
        assert_eq!(learn(1, 4, 9, false, 1, 9), (1, 9), "alone, and slower: the new base too");
        assert_eq!(learn(1, 4, 9, false, 2, 9), (1, 4));
    }

    /// A request comes `ms` after the last change; answers whether it is timed.
    fn arrives(inject: &mut Inject, ms: u64, serving: bool, in_flight: u32) -> bool {
        let view = View { in_flight, ..View::at(at(5000 + ms)) };
        inject.arrived(&view, q(), serving, false);
        inject.dispatched(Tag(3));
        inject.timed == Some(Tag(3))
    }

    #[test]
    fn a_request_is_timed_that_comes_to_an_idle_device_or_one_with_injected_requests() {
        assert!(arrives(&mut known(1, 4), 10, true, 0));
        assert!(!arrives(&mut known(1, 4), 9, true, 0), "too soon after the limit was lowered");
        assert!(!arrives(&mut known(1, 4), 10, false, 0), "its queue is not in service");
        assert!(
            !arrives(&mut known(1, 4), 10, true, 1),
            "the device has others' requests, not injected ones"
        );
        let injected = |base| Inject { injected: true, ..known(1, base) };
        let mut beside = injected(4);
        assert!(arrives(&mut beside, 10, true, 1));
        assert!(beside.injected && beside.occupied_at == Some(at(5010)));
        assert!(!arrives(&mut injected(0), 10, true, 1), "there is no base time to compare with");
        let mut alone = injected(4);
        assert!(arrives(&mut alone, 10, true, 0));
        assert!(!alone.injected, "they are done");
        let off = Setting { on: false, ..new().setting };
        assert!(!arrives(&mut Inject { setting: off, ..known(1, 4) }, 10, true, 0));
    }

    #[test]
    fn only_the_next_request_is_timed() {
        let mut inject = known(1, 4);
        assert!(arrives(&mut inject, 10, true, 0));
        inject.dispatched(Tag(4));
        assert_eq!(inject.timed, Some(Tag(3)));
        inject.expired();
        assert_eq!(inject.state(), (false, false, None));
    }

    #[test]
    fn measurements_are_forgotten_after_a_second() {
        for (short, limit) in [(true, 0), (false, 1)] {
            let mut inject = Inject { timed: Some(Tag(1)), ..known(5, 4) };
            inject.arrived(&View::at(at(5999)), q(), false, short);
            assert_eq!(inject.known(q()), (5, MS * 4));
            inject.arrived(&View::at(at(6000)), q(), true, short);
            assert_eq!((inject.measured(q()), inject.timed), (Measured::nothing(limit, at(6000)), None));
        }
    }

    #[test]
    fn a_change_of_think_time_resets_only_what_is_not_yet_known() {
        // (how long ago, short, base time, forgotten)
        for (ago, short, base, forgotten) in
            [(100, true, 0, true), (99, true, 0, false), (0, false, 0, true), (500, false, 4, false)]
        {
            let mut inject = known(5, base);
            inject.think_changed(&View::at(at(5000 + ago)), q(), short);
            assert_eq!(inject.known(q()).0 != 5, forgotten, "{ago} ms ago, short {short}, base {base} ms");
        }
        let mut off = known(5, 0);
        off.setting.on = false;
        off.think_changed(&View::at(at(6000)), q(), false);
        assert_eq!(off.known(q()).0, 5);
    }

    const AWAITED: Awaited = Awaited { raised: false, short_think: true, idle_since: None };

    #[test]
    fn others_may_send_while_the_device_has_fewer_requests_than_the_limit() {
        for (limit, in_flight, allowed) in [(0, 0, false), (1, 0, true), (1, 1, false), (3, 2, true)] {
            let view = View { in_flight, ..View::at(at(6000)) };
            let terms = known(limit, 4).terms(&view, q(), AWAITED);
            assert_eq!(terms.is_some(), allowed, "{in_flight} of {limit}");
        }
    }

    #[test]
    fn an_unknown_queue_that_is_awaited_for_long_gets_a_try() {
        let idle = |ms: u64| Awaited { idle_since: Some(at(6000 - ms)), ..AWAITED };
        let view = View::at(at(6000));
        assert!(known(0, 0).terms(&view, q(), idle(8)).is_some());
        assert!(known(0, 0).terms(&view, q(), idle(7)).is_none(), "not yet");
        assert!(known(0, 0).terms(&view, q(), AWAITED).is_none(), "the disk does not idle");
        assert!(known(0, 4).terms(&view, q(), idle(8)).is_none(), "it is known to do harm");
        let busy = View { in_flight: 1, ..view };
        assert!(known(0, 0).terms(&busy, q(), idle(8)).is_none(), "a limit of 1");
        let kernel = Setting { tries: false, ..new().setting };
        assert!(Inject { setting: kernel, ..known(0, 0) }.terms(&view, q(), idle(8)).is_none());
    }

    #[test]
    fn what_suits() {
        let terms = |rotational, in_flight, raised, short_think| {
            let inject = Inject { setting: Setting { rotational, ..new().setting }, ..known(9, 4) };
            let view = View { in_flight, ..View::at(at(6000)) };
            inject.terms(&view, q(), Awaited { raised, short_think, ..AWAITED }).unwrap()
        };
        let (small, large) = (Sectors(63), Sectors(64));
        let any = terms(true, 3, false, true);
        assert!(any.suits(false, large));
        assert_eq!(any, terms(false, 0, false, true), "an idle flash takes large ones too");
        assert_eq!(any, terms(true, 3, true, false), "a raised queue that thinks for long waits for itself");
        let flash = terms(false, 1, false, true);
        assert!(flash.suits(false, small) && !flash.suits(false, large));
        let raised = terms(true, 3, true, true);
        assert!(raised.suits(true, large) && !raised.suits(false, small));
    }

    #[test]
    fn a_queue_starts_with_nothing_known_and_takes_back_what_was() {
        let mut inject = known(5, 4);
        let was = inject.measured(q());
        inject.created(&View::at(at(9000)), q());
        assert_eq!(inject.measured(q()), Measured::nothing(0, at(9000)));
        inject.split(q(), was);
        assert_eq!(inject.known(q()), (5, MS * 4));
        inject.injected();
        assert!(inject.state().0);
    }
}
