//! What CFQ learns by watching: whether queues seek, whether the device queues. (How long tasks think:
//! [`crate::parts::think_time`].)

use super::Seek;
use crate::parts::decay::Decayed;
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
/// A request within this distance of the head is close.
//= linux-2.6.34 block/cfq-iosched.c CFQQ_CLOSE_THR
pub(super) const CLOSE_SECTORS: u64 = 8 * 1024;
/// A device that ever has this many requests queues them.
//= linux-2.6.33 block/cfq-iosched.c CFQ_HW_QUEUE_MIN
const QUEUEING_DEPTH: u32 = 5;
/// The number of completions under load that are watched before a device counts as one that does not queue.
//= linux-2.6.33 block/cfq-iosched.c cfq_update_hw_tag
const DEPTH_SAMPLES: u32 = 50;

/// Whether a queue jumps about.
///
/// By the rule of 2.6.34 each request shifts a mark into a history of 32: 1 if it starts more than 800
/// sectors from where the last one ended (or, by the rule for flash, if it is shorter than 64 sectors). Five
/// marks make a queue seeky, so a new one has the benefit of the doubt. By the rule of 2.6.33 it is the mean
/// distance that counts.
//= linux-2.6.34 block/cfq-iosched.c cfq_update_io_seektime
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SeekStats {
    last_end: Option<Sector>,
    history: u32,
    /// How many bits of the history are set.
    marks: u32,
    distance: Decayed,
}

impl SeekStats {
    #[inline]
    pub(super) fn arrived(&mut self, rule: Seek, start: Sector, len: Sectors) {
        let distance = self.last_end.map_or(0, |end| end.0.abs_diff(start.0));
        match rule {
            Seek::Mean => self.distance.push_seek(distance),
            Seek::Size => self.mark(len.0 < SMALL_SECTORS),
            Seek::Distance | Seek::Auto => self.mark(distance > SEEK_SECTORS),
        }
        self.last_end = Some(start + len);
    }

    fn mark(&mut self, seek: bool) {
        self.marks = self.marks + u32::from(seek) - (self.history >> 31);
        self.history = (self.history << 1) | u32::from(seek);
    }

    /// Whether the queue seeks; by the mean from the first request on, or only `once_valid`.
    pub(super) fn is_seeky(&self, rule: Seek, once_valid: bool) -> bool {
        match rule {
            Seek::Mean => {
                (!once_valid || self.distance.is_valid()) && self.distance.mean() > MEAN_SEEK_SECTORS
            }
            Seek::Size | Seek::Distance | Seek::Auto => self.marks > SEEKY_MARKS,
        }
    }

    /// How far a request may be from the head to count as close to this queue's. The rule of 2.6.33 goes by
    /// the queue's own mean, which may be large when it is `uncapped`.
    //= linux-2.6.33 block/cfq-iosched.c cfq_rq_close
    pub(super) fn close_sectors(&self, rule: Seek, uncapped: bool) -> u64 {
        if rule != Seek::Mean || !self.distance.is_valid() {
            return CLOSE_SECTORS;
        }
        let mean = self.distance.mean();
        if uncapped { mean } else { mean.min(CLOSE_SECTORS) }
    }
}

/// Whether the device queues requests (NCQ, TCQ), found out by looking how many it ever took when more were
/// waiting.
///
/// It is taken to queue until 51 completions under load have shown that it does not; once it has had five at
/// a time, the question is settled. What the driver says about its depth is not asked: kernels did not know
/// it either.
//= linux-2.6.33 block/cfq-iosched.c cfq_update_hw_tag
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DepthProbe {
    verdict: Option<bool>,
    most: u32,
    samples: u32,
}

impl DepthProbe {
    /// A request completed while the device had `in_driver`, itself included, and `queued` waited. `light` if
    /// the active queue would like to idle and has too little in hand to load the device.
    pub(super) fn completed(&mut self, in_driver: u32, queued: u32, light: bool) {
        self.most = self.most.max(in_driver);
        let idle_device = queued <= QUEUEING_DEPTH && in_driver <= QUEUEING_DEPTH;
        if self.verdict == Some(true) || idle_device || (light && in_driver < QUEUEING_DEPTH) {
            return;
        }
        self.samples += 1;
        if self.samples > DEPTH_SAMPLES {
            self.samples = DEPTH_SAMPLES;
            self.verdict = Some(self.most >= QUEUEING_DEPTH);
        }
    }

    /// Whether `requests` are too few to load a device that queues.
    pub(super) const fn is_light(requests: u32) -> bool {
        requests < QUEUEING_DEPTH
    }

    /// Whether the device queues, as far as one knows.
    pub(super) fn may_queue(&self) -> bool {
        self.verdict != Some(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seeky(rule: Seek, requests: impl IntoIterator<Item = (u64, u32)>) -> bool {
        let mut seek = SeekStats::default();
        for (start, len) in requests {
            seek.arrived(rule, Sector(start), Sectors(len));
        }
        seek.is_seeky(rule, false)
    }

    /// `n` contiguous requests of 8 sectors, then `jumps` of which each starts 1000 sectors behind the last.
    fn stream(n: u64, jumps: u64) -> impl Iterator<Item = (u64, u32)> {
        (0..n).map(|i| (i * 8, 8)).chain((1..=jumps).map(move |j| (n * 8 + j * 1000 + (j - 1) * 8, 8)))
    }

    #[test]
    //= docs/reference/cfq.md#9-test-vectors vector 7 type=test
    fn five_jumps_in_thirty_two_requests_are_seeky() {
        assert!(seeky(Seek::Distance, stream(27, 5)));
        assert!(!seeky(Seek::Distance, stream(28, 4)));
        assert!(
            !seeky(Seek::Distance, stream(27, 5).chain((0..32).map(|i| (100_000_000 + i * 8, 8)))),
            "forgotten"
        );
        assert!(!seeky(Seek::Distance, (0..32).map(|i| (i * 808, 8))), "800 sectors are no seek");
    }

    #[test]
    //= docs/reference/cfq.md#9-test-vectors vector 7 type=test
    fn five_small_requests_are_seeky_on_flash_even_if_contiguous() {
        assert!(seeky(Seek::Size, stream(5, 0)));
        assert!(!seeky(Seek::Size, stream(4, 0)));
        assert!(
            !seeky(Seek::Size, (0..32).map(|i| (i * 1_000_000, 64))),
            "large ones are not, wherever they are"
        );
    }

    #[test]
    fn a_mean_distance_above_4_mib_is_seeky_in_2_6_33() {
        assert!(!seeky(Seek::Mean, (0..100).map(|i| (i * 7000, 8))));
        assert!(seeky(Seek::Mean, (0..100).map(|i| (i * 9000, 8))));
        // One long jump among the first requests: seeky at once, or only when there have been three.
        let mut seek = SeekStats::default();
        seek.arrived(Seek::Mean, Sector(0), Sectors(8));
        seek.arrived(Seek::Mean, Sector(1 << 30), Sectors(8));
        assert!(seek.is_seeky(Seek::Mean, false) && !seek.is_seeky(Seek::Mean, true));
    }

    #[test]
    fn the_close_threshold_follows_the_mean_only_in_2_6_33() {
        let mut seek = SeekStats::default();
        assert_eq!(seek.close_sectors(Seek::Mean, true), 8192, "nothing is known");
        for i in 0..100 {
            seek.arrived(Seek::Mean, Sector(i * 108), Sectors(8));
        }
        // Integers settle at 256 / 249 of what goes in.
        assert_eq!(seek.close_sectors(Seek::Mean, false), 100 * 256 / 249 + 1);
        assert_eq!(seek.close_sectors(Seek::Distance, false), 8192);
        for i in 0..100 {
            seek.arrived(Seek::Mean, Sector(i * 20_008), Sectors(8));
        }
        assert_eq!(seek.close_sectors(Seek::Mean, false), 8192);
        assert_eq!(seek.close_sectors(Seek::Mean, true), 20_000 * 256 / 249);
    }

    #[test]
    //= docs/reference/cfq.md#9-test-vectors vector 8 type=test
    fn fifty_one_completions_under_load_decide_about_queueing() {
        let mut probe = DepthProbe::default();
        for n in 0..51 {
            assert_eq!((n, probe.verdict), (n, None));
            probe.completed(4, 6, false);
        }
        assert!(!probe.may_queue());
        probe.completed(5, 6, false);
        assert_eq!(probe.verdict, Some(true), "later completions decide anew");
        for _ in 0..100 {
            probe.completed(1, 6, false);
        }
        assert!(probe.may_queue(), "for ever");
    }

    #[test]
    fn completions_without_load_say_nothing_about_queueing() {
        let mut probe = DepthProbe::default();
        for _ in 0..100 {
            probe.completed(1, 5, false);
            probe.completed(4, 6, true);
        }
        assert_eq!((probe.verdict, probe.samples), (None, 0));
    }
}
