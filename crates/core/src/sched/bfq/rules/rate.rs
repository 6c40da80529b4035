//! The device's peak rate, from which the largest budget and the length of weight raising follow.
//!
//! What a device that queues has *taken* in a moment says little about what it *does*. Over a long time the
//! two agree, so the rate is what was dispatched over an interval of at least 300 ms, usually 1 s, and enters
//! a mean. An interval ends early when the device has had nothing to do for 100 ms. Sequential intervals
//! count for more (half of the new estimate if the interval is long and all of it sequential, a tenth if
//! not), and a mostly random one counts only if it raises the estimate: a random load says nothing about what
//! the disk could do.
//!
//! Example, rates in 2^-16 sectors/us: estimate 22000; in 1 s 200000 sectors are dispatched in 1000 requests,
//! 990 of them sequential. The rate is 13107, its part 1/2, the new estimate 17553 (134 MB/s).
//!
//! The engine of 2010 took the best rate of a single slot of more than 20 ms, from the 32nd such slot on.
//
//= linux-6.12 block/bfq-iosched.c bfq_update_peak_rate, bfq_update_rate_reset, bfq_reset_rate_computation
//= bfq-2010 bfq_update_peak_rate, docs/reference/bfq.md#36-peak-rate-estimator

use crate::sched::bfq::view::{Effect, View};
use crate::units::{Duration, Instant, Sectors};

/// A rate in 2^-16 sectors per microsecond.
const SHIFT: u32 = 16;
/// What a disk with a head is taken for until its rate is known better: two thirds of this.
//= linux-6.12 block/bfq-iosched.c ref_rate, docs/reference/bfq.md#36-peak-rate-estimator
const REFERENCE_ROT: u64 = 14_000;
/// What a disk without a head is taken for: two thirds of this.
const REFERENCE_NONROT: u64 = 33_000;
/// An interval with fewer requests than this says nothing.
//= linux-6.12 block/bfq-iosched.c BFQ_RATE_MIN_SAMPLES, docs/reference/bfq.md#36-peak-rate-estimator
const SAMPLES_MIN: u32 = 32;
/// An interval that is shorter than this says nothing.
//= linux-6.12 block/bfq-iosched.c BFQ_RATE_MIN_INTERVAL, docs/reference/bfq.md#36-peak-rate-estimator
const SPAN_MIN: Duration = Duration::from_ms(300);
/// The length at which an interval ends.
//= linux-6.12 block/bfq-iosched.c BFQ_RATE_REF_INTERVAL, docs/reference/bfq.md#36-peak-rate-estimator
const SPAN_FULL: Duration = Duration::from_secs(1);
/// An interval ends early when nothing was sent for longer than this.
//= linux-6.12 block/bfq-iosched.c bfq_update_peak_rate, 100 ms, docs/reference/bfq.md#36-peak-rate-estimator
const GAP: Duration = Duration::from_ms(100);
/// A device that finished its last request less than this ago was not idle.
//= linux-6.12 block/bfq-iosched.c BFQ_MIN_TT / 10, docs/reference/bfq.md#36-peak-rate-estimator
const RECENT: Duration = Duration::from_ms(2);
/// No device is faster: 20 million sectors per second.
//= linux-6.12 block/bfq-iosched.c bfq_update_rate_reset, docs/reference/bfq.md#36-peak-rate-estimator
const RATE_MAX: u64 = 20 << SHIFT;
/// A completion after a gap is too slow for its size below this rate.
//= linux-6.12 block/bfq-iosched.c bfq_completed_request, 1 << (BFQ_RATE_SHIFT - 10)
const RATE_SLUGGISH: u64 = 1 << (SHIFT - 10);
/// The number of slots that must have been seen by the rule of 2010.
//= bfq-2010 BFQ_PEAK_RATE_SAMPLES, docs/reference/bfq.md#36-peak-rate-estimator
const SLOTS_MIN: u32 = 32;
/// By the rule of 2010, a slot that is not longer than this says nothing.
//= bfq-2010 bfq_update_peak_rate, docs/reference/bfq.md#36-peak-rate-estimator
const SLOT_MIN: Duration = Duration::from_ms(20);

/// What a rate is taken from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Method {
    /// What was dispatched over long intervals.
    Intervals,
    /// The best single slot: the rule of 2010.
    BestSlot,
}

/// The estimate, and the interval that is being observed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rate {
    pub(crate) method: Method,
    peak: u64,
    samples: u32,
    sequential: u32,
    sectors: u64,
    first_dispatch: Instant,
    last_dispatch: Instant,
    /// The largest request of late, in sectors.
    max_len: u32,
    span: Duration,
    /// By the rule of 2010: slots seen, and the best rate among them.
    slots: u32,
    best_slot: u64,
}

/// What the engine is asked for if the estimate is another.
const fn effect(changed: bool) -> Effect {
    if changed { Effect::Rerate } else { Effect::None }
}

impl Rate {
    /// A device whose rate is guessed from its kind.
    pub(crate) fn new(method: Method, rotational: bool) -> Self {
        let reference = if rotational { REFERENCE_ROT } else { REFERENCE_NONROT };
        Self {
            method,
            peak: reference * 2 / 3,
            samples: 0,
            sequential: 0,
            sectors: 0,
            first_dispatch: Instant::EPOCH,
            last_dispatch: Instant::EPOCH,
            max_len: 0,
            span: Duration::ZERO,
            slots: 0,
            best_slot: 0,
        }
    }

    /// The estimate, in 2^-16 sectors per microsecond.
    pub(crate) const fn peak(&self) -> u64 {
        self.peak
    }

    /// A request of length `len` goes to the device; `near` says whether it begins close to where the one
    /// before ended.
    #[inline(always)]
    pub(crate) fn dispatched(&mut self, view: &View, len: Sectors, near: bool) -> Effect {
        if self.method != Method::Intervals {
            return Effect::None;
        }
        let (now, len, busy, ended) = (view.now, len.0, view.in_flight > 0, view.last_completion);
        if self.samples == 0 {
            self.restart(now, len);
            return Effect::None;
        }
        let mut changed = false;
        if !busy && now.saturating_since(self.last_dispatch) > GAP {
            // The pause says nothing about the device: the interval ends before it.
            changed = self.finish(ended);
            self.restart(now, len);
        } else {
            // After a pause, even a short one, a near request is not the continuation that a busy device
            // would see.
            let recent = busy || ended.is_some_and(|t| now.saturating_since(t) < RECENT);
            self.samples += 1;
            self.sequential += u32::from(recent && near);
            self.sectors += u64::from(len);
            self.max_len = if self.samples.is_multiple_of(32) { len } else { self.max_len.max(len) };
            self.span = now.saturating_since(self.first_dispatch);
            if self.span >= SPAN_FULL {
                changed = self.finish(ended);
                self.restart(now, len);
            }
        }
        self.last_dispatch = now;
        effect(changed)
    }

    fn restart(&mut self, now: Instant, len: u32) {
        (self.first_dispatch, self.last_dispatch) = (now, now);
        (self.samples, self.sequential) = (1, 0);
        (self.sectors, self.max_len) = (u64::from(len), len);
    }

    /// The interval is over; the last completion was at `ended`. Answers whether the estimate changed.
    fn finish(&mut self, ended: Option<Instant>) -> bool {
        if self.samples < SAMPLES_MIN || self.span < SPAN_MIN {
            return false;
        }
        if let Some(ended) = ended {
            self.span = self.span.max(ended.saturating_since(self.first_dispatch));
        }
        let rate = (self.sectors << SHIFT) / self.span.as_us();
        let random = self.sequential < 3 * self.samples / 4;
        if (random && rate <= self.peak) || rate > RATE_MAX {
            return false;
        }
        // From 0 for a random or very short interval to 8 for a long sequential one; a part of 1/10 to 1/2.
        // Whole numbers round down at each step, as in the kernel.
        let trust = u64::from(9 * self.sequential / self.samples);
        let trust = (trust * self.span.as_us() / SPAN_FULL.as_us()).min(8);
        let part = 10 - trust;
        self.peak = (self.peak * (part - 1) / part + rate / part).max(1);
        true
    }

    /// A request completed.
    #[inline]
    pub(crate) fn completed(&mut self, view: &View) -> Effect {
        let gap = view.last_completion.map_or(Duration::MAX, |t| view.now.saturating_since(t));
        let in_time = || (u64::from(self.max_len) << SHIFT) / gap.as_us() >= RATE_SLUGGISH;
        if self.method != Method::Intervals || gap.as_us() <= RECENT.as_us() || in_time() {
            return Effect::None;
        }
        let changed = self.finish(view.last_completion);
        self.samples = 0;
        effect(changed)
    }

    /// The slot of a sync queue, in which it sent `sectors`, ended after `time`.
    pub(crate) fn expired(&mut self, sectors: u32, time: Duration) -> Effect {
        if self.method != Method::BestSlot || time <= SLOT_MIN {
            return Effect::None;
        }
        let rate = (u64::from(sectors) << SHIFT) / time.as_us();
        self.best_slot = self.best_slot.max(rate).min(RATE_MAX);
        self.slots = (self.slots + 1).min(SLOTS_MIN);
        if self.slots < SLOTS_MIN || self.peak == self.best_slot.max(1) {
            return Effect::None;
        }
        self.peak = self.best_slot.max(1);
        Effect::Rerate
    }

    /// Has this estimate: for tests of what follows from it.
    #[cfg(test)]
    pub(crate) const fn is_known_as(&mut self, peak: u64) {
        self.peak = peak;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new() -> Rate {
        Rate::new(Method::Intervals, true)
    }

    /// Answers whether the estimate changed.
    fn dispatched(
        rate: &mut Rate,
        now: Instant,
        len: u32,
        busy: bool,
        near: bool,
        ended: Option<Instant>,
    ) -> bool {
        let view = View { in_flight: u32::from(busy), last_completion: ended, ..View::at(now) };
        rate.dispatched(&view, Sectors(len), near) == Effect::Rerate
    }

    /// A request completes `gap` after the one before.
    fn completed(rate: &mut Rate, gap: Duration) {
        let before = Instant::EPOCH + Duration::from_secs(5);
        let view = View { last_completion: Some(before), ..View::at(before + gap) };
        assert_eq!(rate.completed(&view), Effect::None, "it was too short to count");
    }

    fn interval(peak: u64, samples: u32, sequential: u32, sectors: u64, span_ms: u64) -> Rate {
        let span = Duration::from_ms(span_ms);
        Rate { peak, samples, sequential, sectors, span, ..new() }
    }

    #[test]
    //= docs/reference/bfq.md#86-test-vectors type=test
    fn at_first_it_is_two_thirds_of_a_usual_disk_of_its_kind() {
        assert_eq!(
            [true, false].map(|rotational| Rate::new(Method::Intervals, rotational).peak()),
            [9333, 22_000]
        );
    }

    #[test]
    //= docs/reference/bfq.md#86-test-vectors peak-rate UPDATE type=test
    fn an_interval_enters_the_estimate_by_how_sequential_it_is() {
        let table = [
            (interval(22_000, 1000, 990, 200_000, 1000), Some(17_553)),
            (interval(22_000, 1000, 990, 600_000, 1000), Some(30_660)),
            (interval(22_000, 400, 100, 100_000, 1000), None),
            (interval(22_000, 400, 100, 500_000, 1000), Some(23_346)),
            (interval(9333, 64, 63, 90_000, 400), Some(10_105)),
        ];
        for (mut rate, expected) in table {
            let before = rate.peak;
            assert_eq!(rate.finish(None), expected.is_some(), "{rate:?}");
            assert_eq!(rate.peak, expected.unwrap_or(before));
        }
    }

    #[test]
    fn an_interval_that_is_short_or_has_few_requests_says_nothing() {
        for mut rate in [interval(9333, 31, 31, 90_000, 1000), interval(9333, 64, 64, 90_000, 299)] {
            assert!(!rate.finish(None));
        }
        for mut rate in [interval(9333, 32, 32, 90_000, 1000), interval(9333, 64, 64, 90_000, 300)] {
            assert!(rate.finish(None));
        }
    }

    #[test]
    //= docs/reference/bfq.md#86-test-vectors peak-rate UPDATE type=test
    fn an_interval_is_sequential_from_three_quarters_of_its_requests_on() {
        // 6553, which lowers the estimate if the interval counts. Of 33 requests three quarters are 24.
        for (samples, sequential, counts) in
            [(400, 300, true), (400, 299, false), (33, 24, true), (33, 23, false)]
        {
            let mut rate = interval(22_000, samples, sequential, 100_000, 1000);
            assert_eq!((sequential, rate.finish(None)), (sequential, counts));
        }
        // A random one counts if it raises the estimate: 6553, and 6554.
        for (sectors, counts) in [(100_000, false), (100_016, true)] {
            let mut rate = interval(6553, 400, 0, sectors, 1000);
            assert_eq!((sectors, rate.finish(None)), (sectors, counts));
        }
    }

    #[test]
    fn no_interval_counts_for_more_than_a_half() {
        // 13107 in 1 s and in 4 s: half of it either way.
        let estimate = |sectors, span| {
            let mut rate = interval(22_000, 1000, 1000, sectors, span);
            assert!(rate.finish(None));
            rate.peak
        };
        assert_eq!((estimate(200_000, 1000), estimate(800_000, 4000)), (17_553, 17_553));
    }

    /// An interval that began a while ago, at `first`, with a request of 8 sectors.
    fn begun(first: Instant) -> Rate {
        let mut rate = new();
        assert!(!dispatched(&mut rate, first, 8, false, false, None), "one request says nothing");
        assert_eq!((rate.samples, rate.sectors, rate.first_dispatch), (1, 8, first), "it begins an interval");
        rate
    }

    #[test]
    fn an_interval_ends_after_a_second_or_when_an_idle_device_got_nothing_for_100_ms() {
        let first = Instant::EPOCH + Duration::from_secs(5);
        let ns = Duration::from_ns(1);
        let samples = |gap, busy| {
            let mut rate = begun(first);
            dispatched(&mut rate, first + gap, 8, busy, false, None);
            rate.samples
        };
        let (gap, full) = (Duration::from_ms(100), Duration::from_secs(1));
        assert_eq!((samples(gap, false), samples(gap + ns, false), samples(gap + ns, true)), (2, 1, 2));
        assert_eq!((samples(full - ns, true), samples(full, true)), (2, 1));
    }

    #[test]
    fn a_request_is_sequential_if_it_is_near_and_the_device_was_not_idle() {
        let first = Instant::EPOCH + Duration::from_secs(5);
        let now = first + Duration::from_ms(10);
        let (recent, ns) = (Duration::from_ms(2), Duration::from_ns(1));
        for (busy, near, ended, counts) in [
            (true, true, None, 1),
            (true, false, None, 0),
            (false, true, None, 0),
            (false, true, Some(now - recent), 0),
            (false, true, Some(now - recent + ns), 1),
            (false, false, Some(now), 0),
        ] {
            let mut rate = begun(first);
            dispatched(&mut rate, now, 8, busy, near, ended);
            assert_eq!((busy, near, ended, rate.sequential), (busy, near, ended, counts));
        }
    }

    #[test]
    fn a_completion_that_is_late_for_the_largest_request_of_late_ends_the_interval() {
        let first = Instant::EPOCH + Duration::from_secs(5);
        let mut rate = begun(first);
        let send = |rate: &mut Rate, len| dispatched(rate, first + RECENT, len, true, true, None);
        send(&mut rate, 64);
        send(&mut rate, 16);
        assert_eq!(rate.max_len, 64);
        (2..30).for_each(|_| assert!(!send(&mut rate, 8)));
        assert_eq!((rate.samples, rate.max_len), (31, 64));
        send(&mut rate, 8);
        assert_eq!(rate.max_len, 8, "the 32nd says anew what is large");
        // 8 sectors in 8192 us are 64 by 2^-16, and not too slow.
        for (gap_us, left) in [(8192, 32), (8193, 0)] {
            completed(&mut rate, Duration::from_us(gap_us));
            assert_eq!((gap_us, rate.samples), (gap_us, left));
        }
        // After a short gap nothing is too slow.
        let mut tiny = Rate { max_len: 1, samples: 5, ..new() };
        for (gap_us, left) in [(2000, 5), (2001, 0)] {
            completed(&mut tiny, Duration::from_us(gap_us));
            assert_eq!((gap_us, tiny.samples), (gap_us, left));
        }
    }

    #[test]
    fn an_interval_lasts_until_the_last_completion() {
        let (mut short, mut long) =
            (interval(9333, 64, 64, 90_000, 400), interval(9333, 64, 64, 90_000, 400));
        let end = long.first_dispatch + Duration::from_ms(800);
        assert!(short.finish(None) && long.finish(Some(end)));
        // 14745 at trust 3, 7372 at trust 7.
        assert_eq!((short.peak, long.peak), (9333 * 6 / 7 + 14_745 / 7, 9333 * 2 / 3 + 7372 / 3));
    }

    #[test]
    //= docs/reference/bfq.md#84-scheduling-theorems S15 type=test
    fn the_estimate_stays_in_range_and_never_falls_by_more_than_a_half() {
        let mut rate = interval(22_000, 1000, 1000, 1, 1000);
        for _ in 0..40 {
            let before = rate.peak;
            rate.samples = 1000;
            rate.sequential = 1000;
            assert!(rate.finish(None) && rate.peak >= before / 2 && rate.peak >= 1);
        }
        assert_eq!(rate.peak, 1);
        let before = rate;
        rate.sectors = 20_001_000;
        assert!(!rate.finish(None), "no device is as fast as that");
        rate = Rate { sectors: 20_000_000, ..before };
        assert!(rate.finish(None), "this fast it may be");
    }

    #[test]
    //= docs/reference/bfq.md#84-scheduling-theorems S16 type=test
    fn a_saturating_stream_is_found_out() {
        let mut rate = new();
        let mut now = Instant::EPOCH;
        // 256 sectors in each ms: 16777.
        for _ in 0..60_000 {
            let ended = Some(now);
            now = now + Duration::from_ms(1);
            dispatched(&mut rate, now, 256, true, true, ended);
        }
        assert!(rate.peak.abs_diff(16_777) < 100, "{}", rate.peak);
    }

    #[test]
    fn an_idle_device_ends_the_interval_and_its_time_does_not_count() {
        let mut rate = new();
        let mut now = Instant::EPOCH;
        for _ in 0..400 {
            now = now + Duration::from_ms(1);
            dispatched(&mut rate, now, 256, true, true, Some(now));
        }
        let before = rate.peak;
        now = now + Duration::from_secs(50);
        assert!(dispatched(&mut rate, now, 256, false, false, Some(now - Duration::from_secs(50))));
        assert!(rate.peak > before, "16777 in 400 ms, not next to nothing in 50 s: {}", rate.peak);
        assert_eq!((rate.samples, rate.sectors), (1, 256));
    }

    #[test]
    fn the_rule_of_2010_takes_the_best_slot_once_32_were_seen() {
        let mut rate = Rate::new(Method::BestSlot, true);
        let slot = |rate: &mut Rate, sectors, ms| rate.expired(sectors, Duration::from_ms(ms));
        for _ in 0..31 {
            assert_eq!(slot(&mut rate, 5000, 50), Effect::None);
            assert_eq!(slot(&mut rate, 9000, 20), Effect::None, "it was too short to count");
        }
        assert_eq!(slot(&mut rate, 100, 50), Effect::Rerate);
        assert_eq!(rate.peak(), (5000 << 16) / 50_000);
        assert_eq!(slot(&mut rate, 100, 50), Effect::None, "nothing new");
        assert_eq!(slot(&mut rate, 6000, 50), Effect::Rerate, "a better one");
        assert_eq!(slot(&mut rate, 9_000_000, 21), Effect::Rerate);
        assert_eq!(rate.peak(), RATE_MAX, "no device is faster");
    }

    #[test]
    fn each_method_sees_its_own_events_only() {
        let mut rate = Rate { method: Method::BestSlot, ..interval(9333, 64, 64, 90_000, 1000) };
        let first = Instant::EPOCH + Duration::from_secs(5);
        assert!(!dispatched(&mut rate, first, 8, false, true, None));
        completed(&mut rate, Duration::from_secs(1));
        assert_eq!((rate.samples, rate.peak), (64, 9333));
        let mut rate = new();
        for _ in 0..99 {
            assert_eq!(rate.expired(5000, Duration::from_ms(50)), Effect::None);
        }
    }
}
