//! Whether the device queues requests itself (NCQ, TCQ), found out from how many it has when more are
//! waiting.
//!
//! A device is taken to queue until 33 completions under load have shown that it does not. Once it has had
//! more than three requests at a time, the question is settled. What the driver says about its depth is not
//! asked: the kernel does not know either.
//!
//! ```text
//!   at the device   3 3 3 3 …  (33 completions while others wait)  ──► it does not queue
//!                   4 3 2 4 …                                      ──► it queues, for good
//! ```
//
//= linux-6.12 block/bfq-iosched.c bfq_update_hw_tag, docs/reference/bfq.md#310-low-latency-with-ncq

use crate::sched::bfq::view::{Effect, View};

/// A device that has more requests than this at a time queues them; with fewer queued and at the device there
/// is no load.
//= linux-6.12 block/bfq-iosched.c BFQ_HW_QUEUE_THRESHOLD, docs/reference/bfq.md#310-low-latency-with-ncq
pub(crate) const THRESHOLD: u32 = 3;
/// The threshold of 2010.
//= bfq-2010 BFQ_HW_QUEUE_THRESHOLD, docs/reference/bfq.md#310-low-latency-with-ncq
pub(crate) const THRESHOLD_2010: u32 = 4;
/// The number of completions under load after which, at the next, a device is judged.
//= linux-6.12 block/bfq-iosched.c BFQ_HW_QUEUE_SAMPLES, docs/reference/bfq.md#310-low-latency-with-ncq
const SAMPLES: u32 = 32;

/// What is known of the device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Depth {
    pub(crate) threshold: u32,
    verdict: Option<bool>,
    /// The most requests at a time since the last verdict.
    most: u32,
    samples: u32,
}

/// The queue in service, as far as this rule looks at it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Served {
    /// Whether its next request is expected soon.
    pub(crate) short_think: bool,
    /// Its requests, waiting and at the device.
    pub(crate) requests: u32,
}

impl Depth {
    /// A device of which nothing is known.
    pub(crate) const fn new(threshold: u32) -> Self {
        Self { threshold, verdict: None, most: 0, samples: 0 }
    }

    /// Whether the device queues, as far as is known.
    pub(crate) fn may_queue(&self) -> bool {
        self.verdict != Some(false)
    }

    /// The most requests that the device had at a time since it was last judged.
    pub(crate) const fn most(&self) -> u32 {
        self.most
    }

    /// A request completed; `served` answers for the queue in service, if there is one.
    #[inline]
    pub(crate) fn completed(&mut self, view: &View, served: impl FnOnce() -> Option<Served>) -> Effect {
        self.most = self.most.max(view.in_flight);
        if self.verdict == Some(true) || view.in_flight + view.queued <= self.threshold {
            return Effect::None;
        }
        // A queue that is idled for and has little in hand keeps others' load away from the device: that the
        // device has few requests then says nothing about what it would take.
        let kept_away = |s: Served| s.short_think && s.requests < self.threshold;
        if view.in_flight < self.threshold && served().is_some_and(kept_away) {
            return Effect::None;
        }
        self.judge()
    }

    /// Counts a completion under load, and judges the device when there were enough.
    #[inline]
    fn judge(&mut self) -> Effect {
        self.samples += 1;
        if self.samples <= SAMPLES {
            return Effect::None;
        }
        self.verdict = Some(self.most > self.threshold);
        (self.most, self.samples) = (0, 0);
        Effect::Rejudge
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A request completes of a device that had `in_flight`, it included, while `queued` waited.
    fn completed(depth: &mut Depth, in_flight: u32, queued: u32, served: Option<(bool, u32)>) -> Effect {
        let view = View { in_flight, queued, ..View::at(crate::Instant::EPOCH) };
        depth.completed(&view, || served.map(|(short_think, requests)| Served { short_think, requests }))
    }

    #[test]
    fn thirty_three_completions_under_load_decide() {
        let mut depth = Depth::new(THRESHOLD);
        for n in 0..33 {
            assert_eq!((n, depth.verdict), (n, None));
            let effect = completed(&mut depth, 3, 1, None);
            assert_eq!(effect, if n == 32 { Effect::Rejudge } else { Effect::None }, "after {n}");
        }
        assert!(!depth.may_queue());
        assert_eq!(depth.most(), 0, "each verdict starts anew");
        for n in 0..33 {
            let effect = completed(&mut depth, 4, 0, None);
            assert_eq!(effect, if n == 32 { Effect::Rejudge } else { Effect::None }, "after {n}");
        }
        assert_eq!(depth.verdict, Some(true), "later completions decide anew");
        for _ in 0..100 {
            assert_eq!(completed(&mut depth, 1, 9, None), Effect::None);
        }
        assert!(depth.may_queue(), "for ever");
    }

    #[test]
    fn load_is_more_than_the_threshold() {
        for (threshold, in_flight, queued, counts) in
            [(THRESHOLD, 1, 2, 0), (THRESHOLD, 1, 3, 1), (THRESHOLD, 3, 0, 0), (THRESHOLD_2010, 2, 2, 0)]
        {
            let mut depth = Depth::new(threshold);
            let _ = completed(&mut depth, in_flight, queued, None);
            assert_eq!((depth.samples, depth.most), (counts, in_flight), "{in_flight} and {queued}");
        }
    }

    #[test]
    fn a_queue_that_has_little_and_thinks_shortly_keeps_the_load_away() {
        for (in_flight, served, counts) in [
            (2, Some((true, 2)), 0),
            (2, Some((true, 3)), 1),
            (2, Some((false, 2)), 1),
            (3, Some((true, 2)), 1),
            (2, None, 1),
        ] {
            let mut depth = Depth::new(THRESHOLD);
            let _ = completed(&mut depth, in_flight, 9, served);
            assert_eq!(depth.samples, counts, "{in_flight} {served:?}");
        }
    }
}
