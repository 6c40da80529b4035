//! How many requests of a queue may be at the device at a time.
//!
//! Of all conditions the last matters most to people: since a sync request was last late (it took longer than
//! `fifo_expire_sync`), async queues may have one more request at the device for each `slice_sync` that has
//! passed, starting with one.
//!
//! ```text
//!   250 ms after a late request, slices of 100 ms: 2 async requests;  before any was late: 10, as after 1 s
//! ```
//
//= linux-2.6.34 block/cfq-iosched.c cfq_may_dispatch, docs/reference/cfq.md#55-dispatch

use crate::sched::cfq::view::{Slice, View};
use crate::units::{Duration, Instant};

/// What counts as "long ago" before any sync request was late.
//= linux-2.6.33 block/cfq-iosched.c cfq_init_queue
const NEVER_LATE: Duration = Duration::from_secs(1);

/// What this rule is set to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    /// Requests that a queue may have at the device beside other queues.
    pub(crate) quantum: u32,
    /// Half the quantum is always allowed, all of it only while the slice lasts: from 2.6.34 on.
    pub(crate) halves: bool,
    /// The only busy sync queue counts as alone: from 3.x on.
    pub(crate) alone_among_sync: bool,
    /// Async queues have less after a sync request was late.
    pub(crate) low_latency: bool,
    /// A sync request is late that completes this long after it came, or later.
    pub(crate) late: Duration,
    /// The depth of async queues grows by one in this time.
    pub(crate) step: Duration,
    /// What a request at the device is taken to need.
    pub(crate) each: Duration,
}

/// See the [module](self).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Depth {
    setting: Setting,
    /// When a sync request was last late; `None` until a queue has been busy.
    last_late: Option<Instant>,
}

/// The active queue, as far as this rule looks at it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sender {
    pub(crate) sync: bool,
    pub(crate) is_idle_class: bool,
    /// Its requests at the device.
    pub(crate) dispatched: u32,
    pub(crate) slice: Slice,
}

impl Depth {
    pub(crate) const fn new(setting: Setting) -> Self {
        Self { setting, last_late: None }
    }

    /// A queue has requests again. The first time, it is as if a sync request had been late one second ago:
    /// the depth of async queues begins at what it grows to in that time.
    #[inline]
    pub(crate) fn became_busy(&mut self, now: Instant) {
        self.last_late.get_or_insert(now - NEVER_LATE);
    }

    /// A sync request completed that came at `since`. A late one sends the depth of async queues back to one.
    #[inline(always)]
    pub(crate) fn completed(&mut self, now: Instant, since: Instant) {
        if since + self.setting.late <= now {
            self.last_late = Some(now);
        }
    }

    /// Whether the active queue may send a request now. If not, requests are at the device. `idles` answers
    /// whether the queue is worth waiting for.
    #[inline(always)]
    pub(crate) fn allows(&self, view: &View, of: &Sender, idles: impl FnOnce() -> bool) -> bool {
        let [asynchronous, sync] = view.in_flight;
        // Async requests have to finish first: no idling behind them.
        if asynchronous > 0 && idles() {
            return false;
        }
        if !of.sync && sync > 0 {
            return false;
        }
        let max = self.max(view, of);
        let max = if of.sync || !self.setting.low_latency { max } else { max.min(self.ramp(view.now, of)) };
        u64::from(of.dispatched) < max
    }

    /// How many requests an async queue may have at the device because of when a sync one was last late.
    fn ramp(&self, now: Instant, of: &Sender) -> u64 {
        let since = now.saturating_since(self.last_late.unwrap_or(now));
        (since / self.setting.step).max(u64::from(of.dispatched == 0))
    }

    /// How many requests a queue may have at the device, whatever was late.
    #[inline(always)]
    fn max(&self, view: &View, of: &Sender) -> u64 {
        if of.is_idle_class {
            return 1;
        }
        let (dispatched, quantum) = (u64::from(of.dispatched), u64::from(self.setting.quantum));
        let alone = view.busy == 1 || (self.setting.alone_among_sync && of.sync && view.busy_sync == 1);
        if !self.setting.halves {
            return if alone { u64::MAX } else { quantum };
        }
        let half = (quantum / 2).max(1);
        if dispatched < half {
            half
        } else if alone {
            // With no other queue to wait for there is nothing to limit.
            u64::MAX
        } else if self.ends_soon(view.now, of) {
            0
        } else {
            quantum
        }
    }

    /// Whether what is at the device will take the rest of the slice.
    fn ends_soon(&self, now: Instant, of: &Sender) -> bool {
        of.slice.is_new || now + self.setting.each * u64::from(of.dispatched) > of.slice.end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: u32 = 1000;

    const fn ms(n: u64) -> Duration {
        Duration::from_ms(n)
    }

    fn at(n: u64) -> Instant {
        Instant::EPOCH + ms(n)
    }

    /// The settings of 3.x.
    fn setting() -> Setting {
        Setting {
            quantum: 8,
            halves: true,
            alone_among_sync: true,
            low_latency: true,
            late: ms(125),
            step: ms(100),
            each: ms(8),
        }
    }

    /// A queue whose slice lasts from 5000 ms to 5100 ms.
    fn sender(sync: bool) -> Sender {
        let slice = Slice { start: at(5000), end: at(5100), is_new: false };
        Sender { sync, is_idle_class: false, dispatched: 0, slice }
    }

    /// A view at 5000 ms, with this many busy queues, of which this many are sync.
    fn busy(busy: u32, busy_sync: u32) -> View {
        View { busy, busy_sync, ..View::at(at(5000)) }
    }

    /// How many requests the queue can send one after another, none of which completes.
    fn depth(rule: &Depth, view: View, mut of: Sender) -> u32 {
        (0..ALL)
            .find(|&n| {
                of.dispatched = n;
                !rule.allows(&view, &of, || false)
            })
            .unwrap_or(ALL)
    }

    #[test]
    fn in_2_6_33_a_queue_has_its_quantum_and_any_depth_when_alone() {
        let rule = Depth::new(Setting { halves: false, alone_among_sync: false, quantum: 4, ..setting() });
        assert_eq!(depth(&rule, busy(2, 1), sender(true)), 4);
        assert_eq!(depth(&rule, busy(1, 1), sender(true)), ALL);
        let odd = Depth::new(Setting { quantum: 5, ..rule.setting });
        assert_eq!(depth(&odd, busy(2, 2), sender(true)), 5);
    }

    #[test]
    fn half_the_quantum_is_always_allowed_and_all_of_it_while_the_slice_lasts() {
        let rule = Depth::new(setting());
        let started = sender(true);
        assert_eq!(depth(&rule, busy(2, 2), started), 8, "8 x 8 ms fit into 100");
        let new = Sender { slice: Slice { is_new: true, ..started.slice }, ..started };
        assert_eq!(depth(&rule, busy(2, 2), new), 4);
        // After five, 5 x 8 ms reach the end of it; the sixth is the last.
        let short = Sender { slice: Slice { end: at(5040), ..started.slice }, ..started };
        assert_eq!(depth(&rule, busy(2, 2), short), 6);
        let over = Sender { slice: Slice { end: at(5000), ..started.slice }, ..started };
        assert_eq!(depth(&rule, busy(2, 2), over), 4);
        for (quantum, half) in [(1, 1), (2, 1), (3, 1), (6, 3)] {
            let rule = Depth::new(Setting { quantum, ..setting() });
            assert_eq!(depth(&rule, busy(2, 2), new), half, "half of {quantum}");
        }
    }

    #[test]
    fn a_queue_that_is_alone_has_any_depth() {
        for (alone_among_sync, view, sync, want) in [
            (true, busy(1, 1), true, ALL),
            (true, busy(3, 1), true, ALL),
            (false, busy(3, 1), true, 4),
            (true, busy(3, 2), true, 4),
            (true, busy(3, 1), false, 4),
        ] {
            let rule = Depth::new(Setting { alone_among_sync, low_latency: false, ..setting() });
            let of = sender(sync);
            let of = Sender { slice: Slice { is_new: true, ..of.slice }, ..of };
            assert_eq!(depth(&rule, view, of), want, "{alone_among_sync} {view:?} {sync}");
        }
    }

    #[test]
    fn the_idle_class_has_one_request_at_a_time() {
        let idle = Sender { is_idle_class: true, ..sender(true) };
        assert_eq!(depth(&Depth::new(setting()), busy(1, 1), idle), 1);
    }

    #[test]
    fn sync_and_async_requests_wait_for_each_other() {
        let rule = Depth::new(Setting { low_latency: false, ..setting() });
        let with = |in_flight| View { in_flight, ..busy(2, 1) };
        let allows = |in_flight, sync, idles| rule.allows(&with(in_flight), &sender(sync), || idles);
        assert!(
            !allows([1, 0], true, true),
            "async requests finish before a queue that is waited for begins"
        );
        assert!(allows([1, 0], true, false) && allows([0, 1], true, true));
        assert!(!allows([0, 1], false, false), "an async queue waits for sync requests");
        assert!(allows([1, 0], false, false) && allows([0, 0], false, false));
    }

    #[test]
    //= docs/reference/cfq.md#9-test-vectors vector 5 type=test
    fn async_depth_grows_by_one_a_slice_since_a_sync_request_was_late() {
        for (ago, want) in [(0, 1), (50, 1), (199, 1), (200, 2), (250, 2), (1000, 10)] {
            let mut rule = Depth::new(Setting { quantum: 100, ..setting() });
            rule.completed(at(5000 - ago), at(0));
            assert_eq!(depth(&rule, busy(1, 0), sender(false)), want, "{ago} ms ago");
            assert_eq!(depth(&rule, busy(1, 1), sender(true)), ALL, "sync requests are free");
            rule.setting.low_latency = false;
            assert_eq!(depth(&rule, busy(1, 0), sender(false)), ALL);
        }
        // The quantum holds, too.
        let mut rule = Depth::new(setting());
        rule.completed(at(1000), at(0));
        assert_eq!(depth(&rule, busy(2, 1), sender(false)), 8);
    }

    #[test]
    fn before_any_request_was_late_it_is_as_if_one_had_been_a_second_before_the_first_came() {
        let mut rule = Depth::new(Setting { quantum: 100, ..setting() });
        assert_eq!(depth(&rule, busy(1, 0), sender(false)), 1, "nothing came");
        rule.became_busy(at(4900));
        assert_eq!(depth(&rule, busy(1, 0), sender(false)), 11);
        rule.became_busy(at(5000));
        assert_eq!(depth(&rule, busy(1, 0), sender(false)), 11, "only the first counts");
        rule.completed(at(5000), at(0));
        rule.became_busy(at(5000));
        assert_eq!(depth(&rule, busy(1, 0), sender(false)), 1);
    }

    #[test]
    fn a_request_is_late_after_125_ms() {
        for (took, late) in [(124, None), (125, Some(at(1125))), (126, Some(at(1126)))] {
            let mut rule = Depth::new(setting());
            rule.completed(at(1000 + took), at(1000));
            assert_eq!(rule.last_late, late, "after {took} ms");
        }
    }
}
