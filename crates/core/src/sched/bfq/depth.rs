//! Whether the device queues requests itself (NCQ, TCQ), found out by looking how many it has when more are waiting.
//!
//! It is taken to queue until 33 completions under load have shown that it does not; once it has had more than three at a
//! time, the question is settled. What the driver says about its depth is not asked: the kernel does not know either.
//
//= linux-6.12 block/bfq-iosched.c bfq_update_hw_tag, docs/reference/bfq.md#310-low-latency-with-ncq

use super::Bfq;

/// A device that has more than so many requests queues them; fewer are no load.
//= linux-6.12 block/bfq-iosched.c BFQ_HW_QUEUE_THRESHOLD, docs/reference/bfq.md#310-low-latency-with-ncq
const QUEUEING: u32 = 3;
/// The same in 2010.
//= bfq-2010 BFQ_HW_QUEUE_THRESHOLD, docs/reference/bfq.md#310-low-latency-with-ncq
const QUEUEING_2010: u32 = 4;
/// So many completions under load are watched before saying that a device does not queue.
//= linux-6.12 block/bfq-iosched.c BFQ_HW_QUEUE_SAMPLES, docs/reference/bfq.md#310-low-latency-with-ncq
const SAMPLES: u32 = 32;

/// What is known.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DepthProbe {
    verdict: Option<bool>,
    /// The most requests at a time, since the last verdict.
    pub(super) most: u32,
    samples: u32,
}

impl DepthProbe {
    /// Whether the device queues, as far as one knows.
    pub(super) fn may_queue(&self) -> bool {
        self.verdict != Some(false)
    }

    /// A request completed of a device that had `in_flight`, it included, while `queued` waited. Answers whether there is
    /// a verdict.
    #[inline]
    fn completed(&mut self, threshold: u32, in_flight: u32, queued: u32, light: bool) -> bool {
        self.most = self.most.max(in_flight);
        if self.verdict == Some(true) || in_flight + queued <= threshold || light {
            return false;
        }
        self.samples += 1;
        if self.samples <= SAMPLES {
            return false;
        }
        self.verdict = Some(self.most > threshold);
        (self.most, self.samples) = (0, 0);
        true
    }
}

impl Bfq {
    /// A request is about to be counted as completed.
    #[inline]
    pub(super) fn watch_depth(&mut self) {
        let threshold = if self.config.throughput_boost { QUEUEING } else { QUEUEING_2010 };
        // A queue that is idled for and has little in hand keeps the load away.
        let light = self.in_flight < threshold
            && self.in_service.is_some_and(|s| {
                let queue = &self.queues[s];
                queue.short_think && queue.in_flight + queue.requests.len() < threshold
            });
        if self.depth.completed(threshold, self.in_flight, self.queued, light) {
            self.boost = self.boost_rule();
        }
    }

    /// The most requests that the device had at a time, since it was last judged.
    pub(super) const fn max_in_flight(&self) -> u32 {
        self.depth.most
    }

    /// Whether this is flash that queues.
    #[inline]
    pub(super) fn nonrot_with_queueing(&self) -> bool {
        !self.limits.rotational && self.depth.may_queue()
    }

    pub(super) const fn rotational(&self) -> bool {
        self.limits.rotational
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thirty_three_completions_under_load_decide() {
        let mut probe = DepthProbe::default();
        for n in 0..33 {
            assert_eq!((n, probe.verdict), (n, None));
            probe.completed(QUEUEING, 3, 1, false);
        }
        assert!(!probe.may_queue());
        for _ in 0..33 {
            probe.completed(QUEUEING, 4, 0, false);
        }
        assert_eq!(probe.verdict, Some(true), "later completions decide anew");
        for _ in 0..100 {
            probe.completed(QUEUEING, 1, 9, false);
        }
        assert!(probe.may_queue(), "for ever");
    }

    #[test]
    fn completions_without_load_say_nothing() {
        let mut probe = DepthProbe::default();
        for _ in 0..100 {
            probe.completed(QUEUEING, 1, 2, false);
            probe.completed(QUEUEING, 2, 9, true);
        }
        assert_eq!((probe.verdict, probe.samples, probe.most), (None, 0, 2));
    }
}
