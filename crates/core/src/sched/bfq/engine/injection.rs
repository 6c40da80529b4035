//! Which queues can be served while the disk is kept for another one.
//!
//! The [hooks](crate::sched::bfq::hooks) ask for them in the order of the rules. An injected request is
//! charged to its own queue, whose turn in virtual time it does not take: see [`super::slot`].
//!
//! **Several actuators.** A disk with two arms is half idle if the queue in service needs one of them. An arm
//! with fewer than 4 requests, and fewer than the next arm, gets a request of a queue that needs it, before
//! the queue in service gets its turn.
//
//= linux-6.12 block/bfq-iosched.c bfq_find_bfqq_for_underused_actuator, docs/reference/bfq.md#45-actuators

use crate::request::{Request, Requests};
use crate::sched::bfq::Bfq;
use crate::sched::bfq::view::QueueId;

/// An actuator with this many requests has enough.
//= linux-6.12 block/bfq-iosched.c actuator_load_threshold, docs/reference/bfq.md#45-actuators
const ENOUGH: u32 = 4;

impl Bfq {
    /// The async queue of the task that alone has `s`, if the request that is next there is its own.
    pub(crate) fn own_async(&self, requests: &Requests, s: QueueId) -> Option<QueueId> {
        let link = self.queues[s].owner?;
        let q = self.links[link].asyn?;
        let next = self.queues[q].next_rq?;
        (self.rqs[next].process == self.process_of(link) && self.fits(requests, q)).then_some(q)
    }

    /// Whether a queue's next request is within what is left of its budget.
    pub(crate) fn fits(&self, requests: &Requests, q: QueueId) -> bool {
        let queue = &self.queues[q];
        let Some(next) = queue.next_rq.filter(|_| queue.busy) else { return false };
        i64::from(self.charge(requests, next, q)) <= self.left(q)
    }

    /// The busy queue that became active last whose next request is within its budget, and `suits`. That gets
    /// the request, and whether the queue is raised.
    pub(crate) fn find_busy(
        &self,
        requests: &Requests,
        suits: impl Fn(&Request, bool) -> bool,
    ) -> Option<QueueId> {
        let fits = |&q: &QueueId| {
            let queue = &self.queues[q];
            let Some(next) = queue.next_rq else { return false };
            suits(&requests[next].rq, queue.raise.is_raised()) && self.fits(requests, q)
        };
        let actuators = self.actuators.count();
        self.active[..actuators].iter().find_map(|list| self.active_links.iter(list).find(fits))
    }

    /// While `s` is in service: a queue whose request is to go to an actuator that has too little to do.
    #[inline]
    pub(crate) fn underused_actuator(&self, requests: &Requests, s: QueueId) -> Option<QueueId> {
        let actuators = self.actuators.count();
        if actuators == 1 {
            return None;
        }
        let found = (0..actuators).find_map(|a| self.queue_needing(requests, s, a, actuators))?;
        (found != s).then_some(found)
    }

    /// The queue that is to send a request to actuator `a`, if that has too little to do.
    fn queue_needing(&self, requests: &Requests, s: QueueId, a: usize, actuators: usize) -> Option<QueueId> {
        let has = self.in_flight_of[a];
        if has >= ENOUGH || a + 1 < actuators && has >= self.in_flight_of[a + 1] {
            return None;
        }
        if usize::from(self.queues[s].actuator) == a {
            return Some(s);
        }
        self.active_links.iter(&self.active[a]).find(|&q| self.fits(requests, q))
    }
}
