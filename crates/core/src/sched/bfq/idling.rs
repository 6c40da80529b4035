//! When the disk idles for a queue that has nothing to send right now, and for how long.
//!
//! It is done for two reasons. *Throughput*: a sequential reader's next request is worth waiting for, as it needs no seek. And
//! *guarantees*: if another queue were served in the hole, the device would be busy with that when the next
//! request comes, and the weights would say little about who gets what. If all are to get the same, and the device
//! queues, the device's own order gives it to them, and nothing needs to be waited for.
//!
//! | device | random, or not I/O-bound, or thinking | sequential |
//! |---|---|---|
//! | with a head, does not queue | idle | idle |
//! | with a head, queues | | idle |
//! | no head, does not queue | | idle |
//! | no head, queues | | |
//!
//! is what throughput asks for, unless a raised queue is busy; and guarantees, whatever the device, if the queue is raised
//! and others are not, if it is raised and the device has many of others' requests, if the shares differ
//! ([`Bfq::asymmetric`]), or if it is alone.
//!
//! The disk idles for at most `slice_idle` (8 ms), 2 ms for a seeky queue among equals, and at least 20 ms for a raised one.
//
//= linux-6.12 block/bfq-iosched.c bfq_better_to_idle, idling_boosts_thr_without_issues, idling_needed_for_service_guarantees,
//= linux-6.12 block/bfq-iosched.c bfq_asymmetric_scenario, bfq_arm_slice_timer, bfq_idle_slice_timer_body
//= docs/reference/bfq.md#33-asymmetric-scenarios

use super::Bfq;
use super::queue::Queue;
use super::view::{Boost, Expire, QueueId};
use crate::elevator::Cx;
use crate::trace::Reason;
use crate::units::{Class, Duration};

/// For how long a seeky queue among equals is idled for, at most.
//= linux-6.12 block/bfq-iosched.c BFQ_MIN_TT, docs/reference/bfq.md#26-idling
const IDLE_SEEKY: Duration = Duration::from_ms(2);
/// For how long a raised queue is, at least.
//= linux-6.12 block/bfq-iosched.c bfq_arm_slice_timer, docs/reference/bfq.md#26-idling
const IDLE_RAISED: Duration = Duration::from_ms(20);
/// So many more requests of others at the device delay a raised queue.
//= linux-6.12 block/bfq-iosched.c idling_needed_for_service_guarantees, docs/reference/bfq.md#41-when-to-idle
const CROWD: u32 = 4;

impl Bfq {
    /// For whom idling pays, as far as the device is known.
    pub(super) fn boost_rule(&self) -> Boost {
        let (config, rotational) = (&self.config, self.limits.rotational);
        let queues = self.rules.depth.may_queue();
        match rotational {
            _ if !config.throughput_boost => Boost::Early,
            true if queues && config.ncq_random => Boost::Sequential,
            true => Boost::All,
            false if queues && config.ncq_flash => Boost::None,
            false => Boost::Sequential,
        }
    }

    /// Whether `q` must be protected for its share to come out right: weights, classes or groups differ.
    #[inline]
    pub(super) fn asymmetric(&self, q: QueueId) -> bool {
        self.classes_differ() || self.groups_pending > 1 || self.weights_differ(q)
    }

    fn classes_differ(&self) -> bool {
        self.busy.iter().filter(|&&n| n > 0).count() > 1
    }

    /// Whether queues have different weights, and `q` is not among those with the least.
    fn weights_differ(&self, q: QueueId) -> bool {
        let several = self.weights_in_use & self.weights_in_use.wrapping_sub(1) != 0;
        several
            && self.queues[q]
                .weight_counted
                .is_none_or(|w| super::weight_index(w) != self.weights_in_use.trailing_zeros() as usize)
    }

    /// Whether idling for `q` makes for more throughput.
    #[inline]
    pub(super) fn boosts(&self, q: QueueId) -> bool {
        let counts = !self.raised_queues_wait() || self.rules.streams.on && self.queues[q].raise.factor > 1;
        counts && self.would_boost(q)
    }

    /// Whether a raised queue is busy, which counts for more than throughput.
    #[inline]
    pub(super) const fn raised_queues_wait(&self) -> bool {
        self.config.pool_limits && self.wr_busy > 0
    }

    /// The same, if no raised queue were busy.
    #[inline]
    pub(super) fn would_boost(&self, q: QueueId) -> bool {
        let queue = &self.queues[q];
        if queue.process_refs == 0 {
            return false;
        }
        match self.boost {
            Boost::All => true,
            Boost::Sequential => {
                let past = &queue.past;
                past.is_io_bound() && past.thinks_shortly() && !self.rules.history.is_seeky(past)
            }
            Boost::None => false,
            Boost::Early => self.has_idle_window(q),
        }
    }

    /// Whether the requests of `q` jump about.
    #[inline]
    pub(super) fn is_seeky(&self, q: QueueId) -> bool {
        self.rules.history.is_seeky(&self.queues[q].past)
    }

    /// Whether `q` was the kind of queue that was idled for in 2010.
    fn has_idle_window(&self, q: QueueId) -> bool {
        let queue = &self.queues[q];
        !(queue.past.thinks_longer_than(self.slice_idle) || self.rules.depth.may_queue() && self.is_seeky(q))
    }

    /// Whether a queue is raised, and others that are busy are not.
    #[inline]
    fn is_raised_among_others(&self, queue: &Queue) -> bool {
        queue.raise.factor > 1 && self.config.ncq_latency && self.wr_busy < self.tot_busy()
    }

    /// Whether idling for `q` is needed for its share.
    pub(super) fn needed(&self, q: QueueId) -> bool {
        let (config, queue) = (&self.config, &self.queues[q]);
        if queue.process_refs == 0 {
            return false;
        }
        let raised = self.is_raised_among_others(queue)
            || queue.raise.factor > 1
                && config.ncq_latency
                && (self.in_flight >= queue.in_flight + CROWD || self.needed_at_greedy_disk(q));
        if !config.asymmetric_idling {
            return raised || self.has_idle_window(q);
        }
        raised || self.tot_busy() == 1 || self.asymmetric(q)
    }

    /// Whether to idle for `q` when it has nothing to send.
    #[inline]
    pub(super) fn better_to_idle(&self, q: QueueId) -> bool {
        let queue = &self.queues[q];
        if queue.process_refs == 0 {
            return false;
        }
        if self.config.strict_guarantees {
            return true;
        }
        if self.slice_idle.is_zero() || !queue.sync || queue.class == Class::Idle {
            return false;
        }
        // What is seen soonest comes first.
        self.is_raised_among_others(queue) || self.boosts(q) || self.needed(q)
    }

    /// Whether `q` has nothing to send and is to be idled for.
    #[inline]
    pub(super) fn must_idle(&self, q: QueueId) -> bool {
        self.is_empty(q) && self.better_to_idle(q)
    }

    /// The queue in service has nothing to send and nothing at the device: the disk idles.
    #[inline(always)]
    pub(super) fn start_idling(&mut self, cx: &mut Cx<'_>, q: QueueId) {
        // In 2010 only if the device had nothing at all to do.
        if !self.config.throughput_boost && self.in_flight > 0 {
            return;
        }
        let queue = &self.queues[q];
        let mut idle = self.slice_idle;
        if queue.raise.factor > 1 {
            idle = idle.max(IDLE_RAISED);
        } else if self.config.throughput_boost
            && self.rules.history.is_seeky(&queue.past)
            && !self.asymmetric(q)
        {
            idle = idle.min(IDLE_SEEKY);
        }
        let queue = &mut self.queues[q];
        queue.waiting = true;
        self.idle_start = cx.now;
        self.idle_timer = Some(cx.now + idle);
        if cx.books.is_observed() {
            self.book_idling(cx, q);
        }
    }

    #[cold]
    fn book_idling(&self, cx: &mut Cx<'_>, q: QueueId) {
        if self.config.hierarchy {
            cx.books.groups.idles(cx.now);
        }
        cx.note(Reason::SliceIdle, self.queues[q].task);
    }

    /// The disk idles no more, whoever it idled for.
    #[inline]
    pub(super) fn stop_idling(&mut self, q: QueueId) {
        self.queues[q].waiting = false;
        self.idle_timer = None;
    }

    /// The idle timer's time has come.
    pub(super) fn idle_timeout(&mut self, cx: &mut Cx<'_>) {
        self.idle_timer = None;
        let Some(q) = self.in_service else { return };
        self.queues[q].waiting = false;
        if self.timed_out(cx.now, q) {
            self.expire_as_of(cx, Expire::BudgetTimeout, self.idle_start);
        } else if self.is_empty(q) {
            self.expire_as_of(cx, Expire::TooIdle, self.idle_start);
        }
    }
}
