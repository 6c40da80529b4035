//! How many requests of a queue may be at the device at a time.
//!
//! Of all rules the last matters most to people: since a sync request was last late (it took longer than
//! `fifo_expire_sync`), async queues may have one more request at the device for each `slice_sync` that has
//! passed, starting with one.
//!
//= linux-2.6.34 block/cfq-iosched.c cfq_may_dispatch

use crate::sched::cfq::Cfq;
use crate::sched::cfq::queue::QueueId;
use crate::units::{Duration, Instant};

/// What counts as "long ago" before any sync request was late.
//= linux-2.6.33 block/cfq-iosched.c cfq_init_queue
pub(in crate::sched::cfq) const NEVER_LATE: Duration = Duration::from_secs(1);

impl Cfq {
    /// Whether the active queue may send a request now. If not, requests are at the device.
    pub(in crate::sched::cfq) fn may_dispatch(&self, id: QueueId, now: Instant) -> bool {
        let queue = &self.queues[id];
        let [asynchronous, sync] = self.in_flight;
        // Async requests have to finish first: no idling behind them.
        if asynchronous > 0 && self.should_idle(id) {
            return false;
        }
        if !queue.sync && sync > 0 {
            return false;
        }
        let max = self.max_depth(id, now);
        if queue.sync || !self.config.low_latency {
            return u64::from(queue.dispatched) < max;
        }
        let since = now.saturating_since(self.last_delayed_sync.unwrap_or(now));
        let ramp = (since / self.config.slice_sync).max(u64::from(queue.dispatched == 0));
        u64::from(queue.dispatched) < max.min(ramp)
    }

    fn max_depth(&self, id: QueueId, now: Instant) -> u64 {
        let queue = &self.queues[id];
        if queue.is_idle_class() {
            return 1;
        }
        let (dispatched, quantum) = (u64::from(queue.dispatched), u64::from(self.config.quantum));
        let era = self.config.era;
        let alone = self.busy_queues == 1 || (era.since_3() && queue.sync && self.busy_sync_queues == 1);
        if !era.since_2_6_34() {
            return if alone { u64::MAX } else { quantum };
        }
        // From 2.6.34 on half the quantum is always allowed, all of it only while the slice lasts
        // (docs/reference/cfq.md#55-dispatch).
        let half = (quantum / 2).max(1);
        if dispatched < half {
            half
        } else if alone {
            // With no other queue to wait for there is nothing to limit.
            u64::MAX
        } else if self.slice_used_soon(id, now) {
            0
        } else {
            quantum
        }
    }

    /// Whether what is at the device will take the rest of the slice, at `slice_idle` for each request.
    fn slice_used_soon(&self, id: QueueId, now: Instant) -> bool {
        let queue = &self.queues[id];
        queue.slice_new || now + self.config.slice_idle * u64::from(queue.dispatched) > queue.slice_end
    }
}
