//! The device's peak rate, from which B and the length of weight raising follow.
//!
//! What a device that queues has *taken* in a moment says little about what it *does*. Over a long time the two agree, so
//! the rate is what was dispatched over an interval of at least 300 ms, usually 1 s, and enters a mean. An interval ends
//! early when the device has had nothing to do for 100 ms. Sequential intervals count for more (half of the new estimate
//! if the interval is long and all of it sequential, a tenth if not), and a mostly random one counts only if it raises the
//! estimate: a random load says nothing about what the disk could do.
//!
//! Example, rates in 2^-16 sectors/us: estimate 22000; in 1 s 200000 sectors are dispatched in 1000 requests, 990 of them
//! sequential. The rate is 13107, its part 1/2, the new estimate 17553 (134 MB/s).
//!
//! The engine of 2010 took the best rate of a single slot: see [`early`](super::early).
//
//= linux-6.12 block/bfq-iosched.c bfq_update_peak_rate, bfq_update_rate_reset, bfq_reset_rate_computation
//= docs/reference/bfq.md#36-peak-rate-estimator

use super::Bfq;
use super::budget::TELLING;
use super::history::is_far;
use super::queue::QueueId;
use crate::elevator::Cx;
use crate::request::Request;
use crate::trace::{Detail, Reason};
use crate::units::{Duration, Instant};

/// A rate in 2^-16 sectors per microsecond.
const SHIFT: u32 = 16;
/// What a disk is taken to be until it is known better: two thirds of this.
//= linux-6.12 block/bfq-iosched.c ref_rate, docs/reference/bfq.md#36-peak-rate-estimator
pub(super) const REFERENCE_ROT: u64 = 14_000;
/// The same without a head.
pub(super) const REFERENCE_NONROT: u64 = 33_000;
/// An interval that says something has at least so many requests,
//= linux-6.12 block/bfq-iosched.c BFQ_RATE_MIN_SAMPLES, docs/reference/bfq.md#36-peak-rate-estimator
const SAMPLES_MIN: u32 = 32;
/// and lasts for so long;
//= linux-6.12 block/bfq-iosched.c BFQ_RATE_MIN_INTERVAL, docs/reference/bfq.md#36-peak-rate-estimator
const SPAN_MIN: Duration = Duration::from_ms(300);
/// after so long it ends.
//= linux-6.12 block/bfq-iosched.c BFQ_RATE_REF_INTERVAL, docs/reference/bfq.md#36-peak-rate-estimator
const SPAN_FULL: Duration = Duration::from_secs(1);
/// It ends early when nothing was sent for so long.
//= linux-6.12 block/bfq-iosched.c bfq_update_peak_rate, 100 ms, docs/reference/bfq.md#36-peak-rate-estimator
const GAP: Duration = Duration::from_ms(100);
/// A device that finished its last request so recently was not idle.
//= linux-6.12 block/bfq-iosched.c BFQ_MIN_TT / 10, docs/reference/bfq.md#36-peak-rate-estimator
const RECENT: Duration = Duration::from_ms(2);
/// No device is faster: 20 million sectors per second.
//= linux-6.12 block/bfq-iosched.c bfq_update_rate_reset, docs/reference/bfq.md#36-peak-rate-estimator
const RATE_MAX: u64 = 20 << SHIFT;
/// A completion after a gap is too slow for its size below this rate.
//= linux-6.12 block/bfq-iosched.c bfq_completed_request, 1 << (BFQ_RATE_SHIFT - 10)
//= docs/reference/bfq.md#36-peak-rate-estimator
const RATE_SLUGGISH: u64 = 1 << (SHIFT - 10);
/// Slots that must have been seen by the rule of 2010.
//= bfq-2010 BFQ_PEAK_RATE_SAMPLES, docs/reference/bfq.md#36-peak-rate-estimator
const SLOTS_MIN: u32 = 32;

/// The estimate, and the interval that is being observed.
#[derive(Clone, Copy, Debug)]
pub(super) struct PeakRate {
    pub(super) peak: u64,
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

impl PeakRate {
    pub(super) fn new(rotational: bool) -> Self {
        let reference = if rotational { REFERENCE_ROT } else { REFERENCE_NONROT };
        Self {
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

    /// A request of `len` sectors goes to a device that is busy or not. Answers whether the estimate changed.
    #[inline]
    fn dispatched(&mut self, now: Instant, len: u32, busy: bool, near: bool, ended: Option<Instant>) -> bool {
        if self.samples == 0 {
            self.restart(now, len);
            return false;
        }
        let mut changed = false;
        if !busy && now.saturating_since(self.last_dispatch) > GAP {
            changed = self.finish(ended);
            self.restart(now, len);
        } else {
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
        changed
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
        let trust = u64::from(9 * self.sequential / self.samples);
        let trust = (trust * self.span.as_us() / SPAN_FULL.as_us()).min(8);
        let part = 10 - trust;
        self.peak = (self.peak * (part - 1) / part + rate / part).max(1);
        true
    }

    /// A request completed, `gap` after the one before. Answers whether the estimate changed.
    #[inline]
    fn completed(&mut self, gap: Duration, ended: Option<Instant>) -> bool {
        if gap.as_us() <= RECENT.as_us() || (u64::from(self.max_len) << SHIFT) / gap.as_us() >= RATE_SLUGGISH
        {
            return false;
        }
        let changed = self.finish(ended);
        self.samples = 0;
        changed
    }

    /// A slot of `time` ended in which `sectors` were sent: the rule of 2010.
    fn slot(&mut self, sectors: u32, time: Duration) -> bool {
        self.best_slot =
            self.best_slot.max((u64::from(sectors) << SHIFT) / time.as_us().max(1)).min(RATE_MAX);
        self.slots = (self.slots + 1).min(SLOTS_MIN);
        let changed = self.slots == SLOTS_MIN && self.peak != self.best_slot.max(1);
        if changed {
            self.peak = self.best_slot.max(1);
        }
        changed
    }
}

impl Bfq {
    /// The device's peak rate, in 2^-16 sectors per microsecond.
    pub(super) const fn peak(&self) -> u64 {
        self.rate.peak
    }

    /// `rq` goes to the device, which has `in_flight` others.
    #[inline]
    pub(super) fn rate_dispatch(&mut self, cx: &mut Cx<'_>, q: QueueId, rq: &Request) {
        if !self.config.rate_estimator {
            return;
        }
        let near = !is_far(self.limits.rotational, self.last_pos, rq.start, rq.len);
        if self.rate.dispatched(cx.now, rq.len.0, self.in_flight > 0, near, self.last_completion) {
            self.rate_changed(cx, q);
        }
    }

    /// A request of `q` completed.
    #[inline]
    pub(super) fn rate_complete(&mut self, cx: &mut Cx<'_>, q: QueueId) {
        let gap = self.last_completion.map_or(Duration::MAX, |t| cx.now.saturating_since(t));
        if self.config.rate_estimator && self.rate.completed(gap, self.last_completion) {
            self.rate_changed(cx, q);
        }
        self.last_completion = Some(cx.now);
    }

    /// The slot of `q` is over.
    pub(super) fn rate_slot(&mut self, cx: &mut Cx<'_>, q: QueueId, sectors: u32, end: Instant) {
        let time = end.saturating_since(self.slot_start);
        if self.config.rate_estimator || !self.queues[q].sync || time <= TELLING {
            return;
        }
        if self.rate.slot(sectors, time) {
            self.rate_changed(cx, q);
        }
    }

    #[cold]
    fn rate_changed(&mut self, cx: &mut Cx<'_>, q: QueueId) {
        self.recompute_bmax();
        cx.note_in_numbers(Reason::RateUpdate, self.queues[q].task, Detail::Rate { rate: self.rate.peak });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(peak: u64, samples: u32, sequential: u32, sectors: u64, span_ms: u64) -> PeakRate {
        let span = Duration::from_ms(span_ms);
        PeakRate { peak, samples, sequential, sectors, span, ..PeakRate::new(true) }
    }

    #[test]
    //= docs/reference/bfq.md#86-test-vectors type=test
    fn at_first_it_is_two_thirds_of_a_usual_disk_of_its_kind() {
        assert_eq!([true, false].map(|rotational| PeakRate::new(rotational).peak), [9333, 22_000]);
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
    fn begun(first: Instant) -> PeakRate {
        let mut rate = PeakRate::new(true);
        assert!(!rate.dispatched(first, 8, false, false, None), "one request says nothing");
        rate
    }

    #[test]
    fn an_interval_ends_after_a_second_or_when_an_idle_device_got_nothing_for_100_ms() {
        let first = Instant::EPOCH + Duration::from_secs(5);
        let ns = Duration::from_ns(1);
        let samples = |gap, busy| {
            let mut rate = begun(first);
            rate.dispatched(first + gap, 8, busy, false, None);
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
            rate.dispatched(now, 8, busy, near, ended);
            assert_eq!((busy, near, ended, rate.sequential), (busy, near, ended, counts));
        }
    }

    #[test]
    fn a_completion_that_is_late_for_the_largest_request_of_late_ends_the_interval() {
        let first = Instant::EPOCH + Duration::from_secs(5);
        let mut rate = begun(first);
        let send = |rate: &mut PeakRate, len| rate.dispatched(first + RECENT, len, true, true, None);
        send(&mut rate, 64);
        send(&mut rate, 16);
        assert_eq!(rate.max_len, 64);
        (2..30).for_each(|_| assert!(!send(&mut rate, 8)));
        assert_eq!((rate.samples, rate.max_len), (31, 64));
        send(&mut rate, 8);
        assert_eq!(rate.max_len, 8, "the 32nd says anew what is large");
        // 8 sectors in 8192 us are 64 by 2^-16, and not too slow.
        for (gap_us, left) in [(8192, 32), (8193, 0)] {
            assert!(!rate.completed(Duration::from_us(gap_us), None), "it was too short to count");
            assert_eq!((gap_us, rate.samples), (gap_us, left));
        }
        // After a short gap nothing is too slow.
        let mut tiny = PeakRate { max_len: 1, samples: 5, ..PeakRate::new(true) };
        for (gap_us, left) in [(2000, 5), (2001, 0)] {
            assert!(!tiny.completed(Duration::from_us(gap_us), None));
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
        rate = PeakRate { sectors: 20_000_000, ..before };
        assert!(rate.finish(None), "this fast it may be");
    }

    #[test]
    //= docs/reference/bfq.md#84-scheduling-theorems S16 type=test
    fn a_saturating_stream_is_found_out() {
        let mut rate = PeakRate::new(true);
        let mut now = Instant::EPOCH;
        // 256 sectors in each ms: 16777.
        for _ in 0..60_000 {
            let ended = Some(now);
            now = now + Duration::from_ms(1);
            rate.dispatched(now, 256, true, true, ended);
        }
        assert!(rate.peak.abs_diff(16_777) < 100, "{}", rate.peak);
    }

    #[test]
    fn an_idle_device_ends_the_interval_and_its_time_does_not_count() {
        let mut rate = PeakRate::new(true);
        let mut now = Instant::EPOCH;
        for _ in 0..400 {
            now = now + Duration::from_ms(1);
            rate.dispatched(now, 256, true, true, Some(now));
        }
        let before = rate.peak;
        now = now + Duration::from_secs(50);
        assert!(rate.dispatched(now, 256, false, false, Some(now - Duration::from_secs(50))));
        assert!(rate.peak > before, "16777 in 400 ms, not next to nothing in 50 s: {}", rate.peak);
        assert_eq!((rate.samples, rate.sectors), (1, 256));
    }

    #[test]
    fn the_rule_of_2010_takes_the_best_slot_once_32_were_seen() {
        let mut rate = PeakRate::new(true);
        for _ in 0..31 {
            assert!(!rate.slot(5000, Duration::from_ms(50)));
        }
        assert!(rate.slot(100, Duration::from_ms(50)));
        assert_eq!(rate.peak, (5000 << 16) / 50_000);
        assert!(!rate.slot(100, Duration::from_ms(50)), "nothing new");
    }
}
