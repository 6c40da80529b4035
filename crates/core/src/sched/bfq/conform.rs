//! Looking at queues, and putting another implementation's decisions and state in place of our own.
//!
//! For comparisons only. Once two sides have decided differently, a comparison that lets both run on compares
//! nothing. So the side that is judged is put into the other's state, and continues from there. These
//! functions skip the policy and keep the books: each leaves a scheduler that could have come this far by
//! itself, had it decided so. The engine and the rules do not know of this file.
//!
//! ```text
//! mute(true)  insert, complete    no queue is preempted or expires meanwhile
//! mute(false)
//! force_expire, force_select, force_issue    what the other decided, in its order
//! adopt_…                                    numbers that still differ
//! ```

use super::engine::queue::LinkId;
use super::rules::raise::Change;
use super::view::{Expire, QueueId};
use super::{Bfq, Imposed};
use crate::elevator::{Cx, Dispatch};
use crate::trace::Reason;
use crate::units::{Class, Duration, Instant, Tag, TaskId};

/// A queue. Valid for as long as a task uses it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct QueueRef(QueueId);

/// What can be seen of a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct View {
    /// The task that it belongs to, or belonged to first.
    pub task: TaskId,
    /// Whether several tasks use it, or did.
    pub shared: bool,
    /// Whether its requests are sync: reads, and writes that a task waits for.
    pub sync: bool,
    /// Whether it has requests, or the disk.
    pub busy: bool,
    /// Whether the disk idles for it.
    pub waiting: bool,
    /// Its class in force.
    pub class: Class,
    /// Its weight in force, raised or not.
    pub weight: u32,
    /// Its weight without raising.
    pub base_weight: u32,
    /// The factor by which its weight is to be multiplied; 1: not raised.
    pub factor: u32,
    /// When its period of raising began; if it is not raised, when a request last came.
    pub raise_start: Instant,
    /// How long its period of raising lasts.
    pub raise_len: Duration,
    /// The budget of its slot, in sectors.
    pub budget: u32,
    /// What it was charged of that, in sectors.
    pub service: u32,
    /// The budget of its next slot, in sectors.
    pub next_budget: u32,
    /// Its virtual times of start and finish.
    pub times: (u64, u64),
    /// The virtual time of its class in its group.
    pub vtime: u64,
    /// The number of its requests at the device.
    pub in_flight: u32,
    /// The number of its requests that wait.
    pub queued: u32,
    /// Whether its task's next request is expected soon.
    pub short_think: bool,
    /// Whether its requests are far from each other.
    pub seeky: bool,
    /// When its slot is over.
    pub deadline: Instant,
    /// Whether it may resume with what is left of its budget.
    pub credit: bool,
    /// Whether it began in a large burst, and so is not raised.
    pub in_large_burst: bool,
}

/// Questions.
impl Bfq {
    /// The queue that a request is, or was last, in.
    #[must_use]
    pub fn queue_of(&self, tag: Tag) -> QueueRef {
        QueueRef(self.rqs[tag].queue)
    }

    /// The queue that has the disk.
    #[must_use]
    pub fn serving(&self) -> Option<QueueRef> {
        self.in_service.map(QueueRef)
    }

    /// The queues that wait for the disk or have it.
    pub fn busy(&self) -> impl Iterator<Item = QueueRef> + '_ {
        self.queues.iter().filter(|(_, queue)| queue.busy).map(|(q, _)| QueueRef(q))
    }

    /// The number of queues that wait for the disk or have it.
    #[must_use]
    pub fn busy_queues(&self) -> u32 {
        self.tot_busy()
    }

    /// What the device moves at full speed in a slot, in sectors.
    #[must_use]
    pub fn max_budget(&self) -> u32 {
        self.bmax_now
    }

    /// What can be seen of a queue.
    #[must_use]
    pub fn view(&self, queue: QueueRef) -> View {
        let QueueRef(q) = queue;
        let (queue, h) = (&self.queues[q], &self.hierarchy);
        View {
            task: queue.task,
            shared: queue.shared,
            sync: queue.sync,
            busy: queue.busy,
            waiting: queue.waiting,
            class: h.class(q),
            weight: h.weight(q),
            base_weight: h.base_weight(q),
            factor: queue.raise.factor(),
            raise_start: queue.raise.period().0,
            raise_len: queue.raise.period().1,
            budget: h.budget(q),
            service: h.service(q),
            next_budget: queue.next_budget,
            times: h.times(q),
            vtime: h.vtime(h.group(q), h.class(q)),
            in_flight: queue.in_flight,
            queued: queue.requests.len(),
            short_think: queue.past.thinks_shortly(),
            seeky: self.is_seeky(q),
            deadline: queue.slot_deadline,
            credit: queue.hole_credit,
            in_large_burst: self.rules.bursts.in_large(q),
        }
    }

    /// Why the disk would be kept for a queue, or not: the answers that this comes from.
    pub fn explain(&self, queue: QueueRef) -> impl core::fmt::Debug + use<> {
        let QueueRef(q) = queue;
        let (boosts, needed, asymmetric) = (self.boosts(q), self.needed(q), self.asymmetric(q));
        let (io_bound, refs) = (self.queues[q].past.is_io_bound(), self.queues[q].process_refs);
        let raised = self.wr_busy;
        Explanation { boosts, needed, asymmetric, io_bound, refs, raised, in_flight: self.in_flight }
    }

    fn link_of(&self, task: TaskId) -> Option<LinkId> {
        Some(self.link(self.tasks.find(task)?, 0))
    }
}

/// See [`Bfq::explain`].
#[derive(Clone, Copy, Debug)]
#[allow(dead_code, reason = "read by Debug")]
struct Explanation {
    boosts: bool,
    needed: bool,
    asymmetric: bool,
    io_bound: bool,
    refs: u32,
    raised: u32,
    in_flight: u32,
}

/// Another's decisions.
impl Bfq {
    /// While muted, arrivals and completions decide nothing: no queue is preempted, expires or is idled for.
    pub const fn mute(&mut self, on: bool) {
        self.setting.decides = !on;
    }

    /// The queue in service loses the disk; if `idled`, its slot was of no use since the idling began. False
    /// if no queue is in service.
    pub fn force_expire(&mut self, cx: &mut Cx<'_>, why: Reason, idled: bool) -> bool {
        if self.in_service.is_none() {
            return false;
        }
        let reason = match why {
            Reason::IdleTimeout => Expire::TooIdle,
            Reason::BudgetTimeout => Expire::BudgetTimeout,
            Reason::BudgetExhausted => Expire::BudgetExhausted,
            Reason::Preempted => Expire::Preempted,
            _ => Expire::NoMoreRequests,
        };
        let end = if idled && self.idle_start > self.slot_start { self.idle_start } else { cx.now };
        self.expire_as_of(cx, reason, end);
        true
    }

    /// A queue gets the disk. False if one has it, or if this one does not want it.
    pub fn force_select(&mut self, cx: &mut Cx<'_>, queue: QueueRef) -> bool {
        if self.in_service.is_some() || !self.queues[queue.0].busy {
            return false;
        }
        self.hierarchy.prefer(queue.0);
        self.set_in_service(cx) == Some(queue.0)
    }

    /// Sends a request that waits, whatever queue is in service.
    pub fn force_issue(&mut self, cx: &mut Cx<'_>, tag: Tag) -> Dispatch {
        let q = self.rqs[tag].queue;
        self.queues[q].next_rq = Some(tag);
        if self.in_service == Some(q) && self.queues[q].waiting {
            self.stop_idling(q);
        }
        self.serve(cx, Some(Imposed { queue: q, tag, draining: false }))
    }

    /// A task's next sync request goes to that queue, or to one of its own if there is none: merges or splits
    /// its present one. For before the request comes.
    pub fn force_queue(&mut self, cx: &mut Cx<'_>, task: TaskId, to: Option<QueueRef>) {
        let Some(link) = self.link_of(task) else { return };
        match (self.links[link].sync, to) {
            (Some(q), Some(QueueRef(to))) if q != to => self.force_merge(cx, link, q, to),
            (Some(q), None) => {
                self.queues[q].shared = true;
                self.queues[q].split_wanted = true;
                self.links[link].stably_merged = false;
            }
            _ => {}
        }
    }

    /// Whether the disk idles for the queue in service.
    pub fn force_waiting(&mut self, cx: &mut Cx<'_>, on: bool) {
        match self.in_service {
            Some(q) if on && !self.queues[q].waiting => {
                self.start_idling(cx, q);
            }
            Some(q) if !on => self.stop_idling(q),
            _ => {}
        }
    }

    /// The task of `link` goes over from `q` to `x`, whatever speaks against it: for comparisons.
    fn force_merge(&mut self, cx: &mut Cx<'_>, link: LinkId, q: QueueId, x: QueueId) {
        if self.queues[q].merge_to.is_some() {
            for _ in 0..self.queues[q].process_refs {
                self.drop_redirections(cx, q);
            }
            self.queues[q].merge_to = None;
        }
        if self.link_to(q, x).is_some() {
            self.follow_merges(cx, link);
        }
    }

    /// Virtual times are ordered as the kernel orders them, where that is odd.
    pub(super) fn order_as_kernel(&mut self, on: bool) {
        self.hierarchy.set_kernel_forget(on);
        self.hierarchy.set_kernel_next(on);
        self.hierarchy.set_kernel_search(on);
    }
}

/// Another's numbers.
impl Bfq {
    /// Gives a queue these virtual times.
    pub fn adopt_times(&mut self, now: Instant, queue: QueueRef, start: u64, finish: u64) {
        self.hierarchy.adopt_times(now, queue.0, start, finish);
    }

    /// Gives a queue this budget for its slot, in sectors.
    pub fn adopt_budget(&mut self, queue: QueueRef, sectors: u32) {
        self.hierarchy.set_budget(queue.0, sectors);
    }

    /// Gives a queue this budget for its next slot, in sectors.
    pub fn adopt_next_budget(&mut self, queue: QueueRef, sectors: u32) {
        self.queues[queue.0].next_budget = sectors;
    }

    /// Raises a queue by a factor (1: not at all), since `start` and for `len`.
    pub fn adopt_raise(&mut self, queue: QueueRef, factor: u32, start: Instant, len: Duration) {
        let q = queue.0;
        if let Some(Change { before, .. }) = self.queues[q].raise.change(factor, Reason::None) {
            self.set_factor(q, before, factor);
        }
        self.queues[q].raise.adopt(start, len);
    }

    /// Raises a queue by a factor from now on, for as long as a period of ours. The factor of a queue that
    /// `began` just now shows whether the burst that it belongs to is large.
    pub fn adopt_factor(&mut self, cx: &mut Cx<'_>, queue: QueueRef, factor: u32, began: bool) {
        let q = queue.0;
        let in_large = factor == 1 && began && self.queues[q].raise.is_raised();
        if self.rules.bursts.setting.on
            && in_large != self.rules.bursts.in_large(q)
            && (in_large || factor > 1)
        {
            self.adopt_large_burst(cx, q, in_large);
        }
        self.adopt_raise(queue, factor, self.tick(cx.now), self.raise_len_of(factor));
        self.apply_weight(cx, q);
    }

    /// Puts a queue's weight in force, if that is still to be done.
    pub fn adopt_weight(&mut self, cx: &mut Cx<'_>, queue: QueueRef) {
        self.apply_weight(cx, queue.0);
    }

    /// Sets whether a queue's next request is expected soon.
    pub fn adopt_short_think(&mut self, queue: QueueRef, short: bool) {
        self.queues[queue.0].past.adopt_short_think(short);
    }

    /// The slot began later than noted, or earlier, by this much.
    pub fn adopt_clock(&mut self, by: Duration, later: bool) {
        self.slot_start = if later { self.slot_start + by } else { self.slot_start - by };
    }

    /// What the device moves at full speed in a slot, in sectors.
    pub const fn adopt_max_budget(&mut self, sectors: u32) {
        self.bmax_now = sectors;
    }

    /// For comparisons: a queue that began just now is in a large burst, or is not.
    pub(super) fn adopt_large_burst(&mut self, cx: &mut Cx<'_>, q: QueueId, large: bool) {
        let queues = &self.queues;
        self.rules.bursts.adopt(q, large, |marked| cx.note(Reason::LargeBurst, queues[marked].task));
    }
}
