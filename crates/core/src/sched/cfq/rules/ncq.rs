//! Whether the device queues requests itself (NCQ, TCQ), found out from how many it has when more are
//! waiting.
//!
//! A device is taken to queue until 51 completions under load have shown that it does not. Once it has had
//! five at a time, the next verdict settles the question. What the driver says about its depth is not asked:
//! kernels did not know it either.
//!
//! ```text
//!   at the device   4 4 4 4 …  (51 completions while 6 others wait) ──► it does not queue, until it has 5
//!                   5 4 3 5 …                                       ──► it queues, for good
//! ```
//
//= linux-2.6.33 block/cfq-iosched.c cfq_update_hw_tag

use crate::sched::cfq::view::View;

/// A device that ever has this many requests queues them.
//= linux-2.6.33 block/cfq-iosched.c CFQ_HW_QUEUE_MIN
const QUEUEING_DEPTH: u32 = 5;
/// The number of completions under load that are watched before a device counts as one that does not queue.
//= linux-2.6.33 block/cfq-iosched.c cfq_update_hw_tag
const SAMPLES: u32 = 50;

/// What is known of the device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ncq {
    /// Whether it has a head.
    rotational: bool,
    verdict: Option<bool>,
    /// It has no head, and queues requests as far as is known.
    is_fast: bool,
    most: u32,
    samples: u32,
}

/// The active queue, as far as this rule looks at it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Served {
    /// Whether it is worth idling for.
    pub(crate) window: bool,
    /// Its requests, waiting and at the device.
    pub(crate) requests: u32,
}

impl Ncq {
    /// A device of which nothing is known.
    pub(crate) const fn new(rotational: bool) -> Self {
        Self { rotational, verdict: None, is_fast: !rotational, most: 0, samples: 0 }
    }

    /// A request completed; `served` answers for the active queue, if there is one.
    #[inline(always)]
    pub(crate) fn completed(&mut self, view: &View, served: impl FnOnce() -> Option<Served>) {
        self.most = self.most.max(view.in_driver);
        let no_load = view.queued <= QUEUEING_DEPTH && view.in_driver <= QUEUEING_DEPTH;
        if self.verdict == Some(true) || no_load {
            return;
        }
        // A queue that is idled for and has little in hand says nothing about the device's depth.
        let is_light = |s: Served| s.window && s.requests < QUEUEING_DEPTH;
        if view.in_driver < QUEUEING_DEPTH && served().is_some_and(is_light) {
            return;
        }
        self.samples += 1;
        if self.samples > SAMPLES {
            self.samples = SAMPLES;
            let queues = self.most >= QUEUEING_DEPTH;
            self.verdict = Some(queues);
            self.is_fast = queues && !self.rotational;
        }
    }

    /// Whether the device queues, as far as is known.
    #[inline]
    pub(crate) fn may_queue(&self) -> bool {
        self.verdict != Some(false)
    }

    /// Whether the device has no head, and queues requests as far as is known: nothing waits on such a
    /// device, which is kept busy otherwise.
    #[inline]
    pub(crate) const fn is_fast(&self) -> bool {
        self.is_fast
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Instant;

    /// A request completes of a device that had `in_driver`, it included, while `queued` waited.
    fn completed(ncq: &mut Ncq, in_driver: u32, queued: u32, served: Option<(bool, u32)>) {
        let view = View { in_driver, queued, ..View::at(Instant::EPOCH) };
        ncq.completed(&view, || served.map(|(window, requests)| Served { window, requests }));
    }

    #[test]
    //= docs/reference/cfq.md#9-test-vectors vector 8 type=test
    fn fifty_one_completions_under_load_decide_about_queueing() {
        let mut ncq = Ncq::new(true);
        for n in 0..51 {
            assert_eq!((n, ncq.verdict), (n, None));
            assert!(ncq.may_queue());
            completed(&mut ncq, 4, 6, None);
        }
        assert!(!ncq.may_queue());
        completed(&mut ncq, 4, 6, None);
        assert_eq!(ncq.verdict, Some(false));
        completed(&mut ncq, 5, 6, None);
        assert_eq!(ncq.verdict, Some(true), "each later completion decides anew");
        for _ in 0..100 {
            completed(&mut ncq, 1, 6, None);
        }
        assert!(ncq.may_queue(), "for ever");
    }

    #[test]
    fn a_depth_that_was_seen_without_load_counts_too() {
        let mut ncq = Ncq::new(true);
        completed(&mut ncq, 5, 0, None);
        assert_eq!((ncq.most, ncq.samples), (5, 0));
        (0..51).for_each(|_| completed(&mut ncq, 1, 6, None));
        assert_eq!(ncq.verdict, Some(true));
    }

    #[test]
    fn load_is_more_than_five_that_wait_or_are_at_the_device() {
        for (in_driver, queued, counts) in [(1, 5, 0), (5, 5, 0), (1, 6, 1), (6, 0, 1)] {
            let mut ncq = Ncq::new(true);
            completed(&mut ncq, in_driver, queued, None);
            assert_eq!((ncq.samples, ncq.most), (counts, in_driver), "{in_driver} and {queued}");
        }
    }

    #[test]
    fn a_queue_that_is_idled_for_and_has_little_keeps_the_load_away() {
        for (in_driver, served, counts) in [
            (4, Some((true, 4)), 0),
            (4, Some((true, 5)), 1),
            (4, Some((false, 4)), 1),
            (5, Some((true, 4)), 1),
            (4, None, 1),
        ] {
            let mut ncq = Ncq::new(true);
            completed(&mut ncq, in_driver, 6, served);
            assert_eq!(ncq.samples, counts, "{in_driver} {served:?}");
        }
    }

    #[test]
    fn a_device_without_a_head_is_fast_until_it_is_known_not_to_queue() {
        for (rotational, depth, before, after) in [
            (false, 5, true, true),
            (false, 4, true, false),
            (true, 5, false, false),
            (true, 4, false, false),
        ] {
            let mut ncq = Ncq::new(rotational);
            assert_eq!(ncq.is_fast(), before, "{rotational}");
            (0..50).for_each(|_| completed(&mut ncq, depth, 6, None));
            assert_eq!(ncq.is_fast(), before, "{rotational}");
            completed(&mut ncq, depth, 6, None);
            assert_eq!(ncq.is_fast(), after, "{rotational} {depth}");
        }
    }
}
