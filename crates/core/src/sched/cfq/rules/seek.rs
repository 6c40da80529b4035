//! Whether a queue jumps about.
//!
//! By the rule of 2.6.34 each request shifts a mark into a history of 32: 1 if it starts more than 800
//! sectors from where the last one ended (or, by the rule for flash, if it is shorter than 64 sectors). Five
//! marks make a queue seeky, so a new one has the benefit of the doubt. By the rule of 2.6.33 it is the mean
//! distance that counts.
//!
//! ```text
//!   by distance   0 8 16 24 32 … 216 │ 1224 2232 3240 4248  ──► 4 marks of 32: a stream
//!                                    │ … and 5256           ──► 5 marks: seeky
//! ```
//
//= linux-2.6.34 block/cfq-iosched.c cfq_update_io_seektime, CFQQ_SEEKY
//= linux-2.6.33 block/cfq-iosched.c cfq_update_io_seektime, cfq_rq_close

use crate::parts::decay::Decayed;
use crate::sched::cfq::view::CLOSE_SECTORS;
use crate::units::{Sector, Sectors};

/// From here on a request counts as a seek, by the rule of 2.6.34.
//= linux-2.6.34 block/cfq-iosched.c CFQQ_SEEK_THR
const SEEK_SECTORS: u64 = 8 * 100;
/// Mean distance above which a queue seeks, by the rule of 2.6.33.
//= linux-2.6.33 block/cfq-iosched.c CFQQ_SEEK_THR
const MEAN_SEEK_SECTORS: u64 = 8 * 1024;
/// A request shorter than this is small, on a disk without a head.
//= linux-2.6.34 block/cfq-iosched.c CFQQ_SECT_THR_NONROT
const SMALL_SECTORS: u32 = 2 * 32;
/// More marks than this in 32 requests make a queue seeky.
//= linux-2.6.34 block/cfq-iosched.c CFQQ_SEEKY
const SEEKY_MARKS: u32 = 32 / 8;

/// How a queue is judged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Method {
    /// By the mean distance of its requests.
    MeanDistance,
    /// By how many of its last requests were far away.
    Distance,
    /// By how many of its last requests were short.
    Size,
}

/// The rule's settings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seeks {
    pub(crate) method: Method,
    /// Cooperation and splits trust a mean distance from the first request on.
    pub(crate) trusts_early: bool,
}

/// What is known of a queue: kept with it, and looked at here only.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Jumps {
    last_end: Option<Sector>,
    history: u32,
    /// How many bits of the history are set.
    marks: u32,
    distance: Decayed,
}

impl Seeks {
    /// A request comes to a queue.
    #[inline(always)]
    pub(crate) fn arrived(&self, jumps: &mut Jumps, start: Sector, len: Sectors) {
        let distance = jumps.last_end.map_or(0, |end| end.0.abs_diff(start.0));
        match self.method {
            Method::MeanDistance => jumps.distance.push_seek(distance),
            Method::Size => jumps.mark(len.0 < SMALL_SECTORS),
            Method::Distance => jumps.mark(distance > SEEK_SECTORS),
        }
        jumps.last_end = Some(start + len);
    }

    /// Whether the queue seeks, for cooperation and splits.
    #[inline]
    pub(crate) fn is_seeky(&self, jumps: &Jumps) -> bool {
        self.judge(jumps, !self.trusts_early)
    }

    /// Whether the queue is known to seek, so that idling for it does not pay.
    #[inline]
    pub(crate) fn surely_seeks(&self, jumps: &Jumps) -> bool {
        self.judge(jumps, true)
    }

    /// Whether the queue seeks: by the mean from the first request on, or only `once_valid`.
    fn judge(&self, jumps: &Jumps, once_valid: bool) -> bool {
        match self.method {
            Method::MeanDistance => {
                (!once_valid || jumps.distance.is_valid()) && jumps.distance.mean() > MEAN_SEEK_SECTORS
            }
            Method::Size | Method::Distance => jumps.marks > SEEKY_MARKS,
        }
    }

    /// How far a request may be from the head to count as close to this queue's. The rule of 2.6.33 goes by
    /// the queue's own mean.
    //= linux-2.6.33 block/cfq-iosched.c cfq_rq_close
    pub(crate) fn close_sectors(&self, jumps: &Jumps) -> u64 {
        self.close_sectors_uncapped(jumps).min(CLOSE_SECTORS)
    }

    /// How far a request may be from the head to count as close to this queue's, however large the mean is.
    pub(crate) fn close_sectors_uncapped(&self, jumps: &Jumps) -> u64 {
        let by_mean = self.method == Method::MeanDistance && jumps.distance.is_valid();
        if by_mean { jumps.distance.mean() } else { CLOSE_SECTORS }
    }
}

impl Jumps {
    fn mark(&mut self, seek: bool) {
        self.marks = self.marks + u32::from(seek) - (self.history >> 31);
        self.history = (self.history << 1) | u32::from(seek);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(method: Method) -> Seeks {
        Seeks { method, trusts_early: true }
    }

    fn after(method: Method, requests: impl IntoIterator<Item = (u64, u32)>) -> Jumps {
        let mut jumps = Jumps::default();
        for (start, len) in requests {
            rule(method).arrived(&mut jumps, Sector(start), Sectors(len));
        }
        jumps
    }

    fn seeky(method: Method, requests: impl IntoIterator<Item = (u64, u32)>) -> bool {
        rule(method).is_seeky(&after(method, requests))
    }

    /// `n` contiguous requests of 8 sectors, then `jumps` of which each starts 1000 sectors behind the last.
    fn stream(n: u64, jumps: u64) -> impl Iterator<Item = (u64, u32)> {
        (0..n).map(|i| (i * 8, 8)).chain((1..=jumps).map(move |j| (n * 8 + j * 1000 + (j - 1) * 8, 8)))
    }

    #[test]
    //= docs/reference/cfq.md#9-test-vectors vector 7 type=test
    fn five_jumps_in_thirty_two_requests_are_seeky() {
        assert!(seeky(Method::Distance, stream(27, 5)));
        assert!(!seeky(Method::Distance, stream(28, 4)));
        assert!(
            !seeky(Method::Distance, stream(27, 5).chain((0..32).map(|i| (100_000_000 + i * 8, 8)))),
            "forgotten"
        );
        assert!(!seeky(Method::Distance, (0..32).map(|i| (i * 808, 8))), "800 sectors are no seek");
        assert!(seeky(Method::Distance, (0..32).map(|i| (i * 809, 8))), "801 are");
    }

    #[test]
    fn a_mark_is_forgotten_with_the_thirty_third_request() {
        let marks = |streams: u64| {
            // The first request has no distance; five jumps, and then a stream from where the last one ended.
            let jumps = (0..6).map(|i| (i * 10_000, 8));
            let stream = (0..streams).map(|i| (50_008 + i * 8, 8));
            after(Method::Distance, jumps.chain(stream)).marks
        };
        assert_eq!([0, 27, 28, 31, 32].map(marks), [5, 5, 4, 1, 0]);
    }

    #[test]
    fn a_jump_back_counts_like_one_ahead() {
        assert!(seeky(Method::Distance, (0..6).map(|i| (1_000_000 - i * 10_000, 8))));
        assert!(seeky(Method::MeanDistance, (0..100).map(|i| (1_000_000_000 - i * 10_000, 8))));
    }

    #[test]
    //= docs/reference/cfq.md#9-test-vectors vector 7 type=test
    fn five_small_requests_are_seeky_on_flash_even_if_contiguous() {
        assert!(seeky(Method::Size, stream(5, 0)));
        assert!(!seeky(Method::Size, stream(4, 0)));
        assert!(seeky(Method::Size, (0..5).map(|i| (i * 64, 63))));
        assert!(
            !seeky(Method::Size, (0..32).map(|i| (i * 1_000_000, 64))),
            "large ones are not, wherever they are"
        );
    }

    #[test]
    fn a_mean_distance_above_4_mib_is_seeky_in_2_6_33() {
        assert!(!seeky(Method::MeanDistance, (0..100).map(|i| (i * 7000, 8))));
        assert!(seeky(Method::MeanDistance, (0..100).map(|i| (i * 9000, 8))));
        // A mean settles at 256 / 249 of its samples: 8192 of 7968, 8193 of 7969.
        let settled = |gap: u64| after(Method::MeanDistance, (0..200).map(|i| (i * (gap + 8), 8)));
        for (gap, mean) in [(7968, 8192), (7969, 8193)] {
            let jumps = settled(gap);
            assert_eq!(jumps.distance.mean(), mean);
            assert_eq!(rule(Method::MeanDistance).is_seeky(&jumps), mean > 8192, "a mean of {mean}");
        }
    }

    #[test]
    fn one_long_jump_is_trusted_at_once_by_cooperation_and_with_the_third_request_by_idling() {
        let two = after(Method::MeanDistance, [(0, 8), (1 << 30, 8)]);
        let three = after(Method::MeanDistance, [(0, 8), (1 << 30, 8), (0, 8)]);
        let late = Seeks { trusts_early: false, ..rule(Method::MeanDistance) };
        let early = rule(Method::MeanDistance);
        assert_eq!([early, late].map(|rule| rule.is_seeky(&two)), [true, false]);
        assert_eq!([early, late].map(|rule| rule.surely_seeks(&two)), [false; 2]);
        assert_eq!([early, late].map(|rule| rule.is_seeky(&three)), [true; 2]);
        assert_eq!([early, late].map(|rule| rule.surely_seeks(&three)), [true; 2]);
        // Marks are trusted from the first on.
        let five = after(Method::Size, stream(5, 0));
        assert!(Seeks { trusts_early: false, ..rule(Method::Size) }.surely_seeks(&five));
    }

    #[test]
    fn the_close_threshold_follows_the_mean_only_in_2_6_33() {
        let (mean, marks) = (rule(Method::MeanDistance), rule(Method::Distance));
        let mut jumps = Jumps::default();
        assert_eq!(mean.close_sectors_uncapped(&jumps), 8192, "nothing is known");
        for i in 0..100 {
            mean.arrived(&mut jumps, Sector(i * 108), Sectors(8));
        }
        // Integers settle at 256 / 249 of what goes in.
        assert_eq!(mean.close_sectors(&jumps), 100 * 256 / 249 + 1);
        assert_eq!([marks.close_sectors(&jumps), marks.close_sectors_uncapped(&jumps)], [8192; 2]);
        for i in 0..100 {
            mean.arrived(&mut jumps, Sector(i * 20_008), Sectors(8));
        }
        assert_eq!(mean.close_sectors(&jumps), 8192);
        assert_eq!(mean.close_sectors_uncapped(&jumps), 20_000 * 256 / 249);
    }
}
