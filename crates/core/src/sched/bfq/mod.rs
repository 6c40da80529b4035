//! BFQ, budget fair queueing: each task's requests have a queue, and each queue gets the disk for a budget of
//! sectors.
//!
//! For whatever several tasks share, from a card to an array: each gets its part of the *service* by its
//! weight, whatever the others do, and within that what a user waits for comes first. This is the scheduler
//! of Linux 6.12; each patch of its history is a switch of [`Config`], and with all of them off what is left
//! is the engine of 2010.
//!
//! ```text
//!  insert ─► queue of the task (queues.rs) ─► hierarchy: group × class, B-WF2Q+ ─► queue in service ─► device
//!              └─ merging.rs: shared?           (parts/hierarchy/)                 slot.rs: budget, time, idling
//!                                                                                  ├─ budget.rs: charge, feed back
//!  from outside: group.rs (groups, priorities, tags)                               └─ injection.rs: others meanwhile
//!
//!  hooks/: what happened ──► rules/: burst, depth, early, history, idle, inject, merge, …
//!  hooks/: applies it  ◄── Effect ──┘
//! ```
//!
//! # Engine and rules
//!
//! The *engine* (`engine/`) keeps queues and gives turns. A *rule* (`rules/`) watches what happens, keeps its
//! own state, and asks for an effect; it cannot reach a queue. `era.rs` chooses the settings of both from the
//! tunables, `hooks/` is where the engine asks the rules, and this file has the decision: requests come and
//! go. What only compares the scheduler with a kernel is in `conform.rs`.
//!
//! A request's way, file by file, is in docs/architecture.md. What there is of queues and tasks is in
//! `engine/queue.rs`, and no file here leads back to itself by its imports.
//!
//! A queue is selected with a budget, in sectors, and has the disk until it has sent as many (or something
//! else ends its *slot*: see `engine/slot.rs`). Then it is due again when each other queue has had a share of
//! the same size for its weight. Budgets say how long turns are, weights how much one gets: a queue with a
//! large budget has long turns, and waits for as long.
//!
//! Example: two tasks read in sequence, weights 40 and 80, budgets of 256 sectors each. Virtual time is
//! service divided by the sum of the weights, 120. The budget of the first takes it 256 / 40 = 6.4 of it to
//! pay off, that of the second 3.2: so both start at 0, the second finishes first, at 3.2, has a second turn
//! until 6.4, and then the first has its turn:
//!
//! ```text
//!   turn       2         2         1         2         2         1             per turn 256 sectors, 4 requests of 64
//!   virtual    0 ─ 2.1 ─── 4.3 ─────  6.4 ─── 8.5 ─── 10.7 ───── 12.8
//! ```
//!
//! Between its requests each thinks for 0.1 ms, and the disk idles for it, at most 8 ms. Now a program
//! starts, whose 4 reads need 3 ms of computing each before the next. Its queue is new, so interactive: it
//! weighs 30 times as much and takes the disk away at once; the disk idles for it while it computes, and the
//! readers wait for 20 ms in all instead of it for each of its reads. What was left of the preempted reader's
//! budget is its when it comes back.
//!
//! # How long one waits
//!
//! Classes are strict: RT requests can keep BE and IDLE ones waiting for ever, BE ones IDLE ones, but that an
//! IDLE queue has a turn after at most 200 ms and one slot. Within a class and group, a queue of weight w
//! among weights that sum to W, with Q sectors to go, is through when the device has done (Q + B + B + L) W /
//! w sectors, where B is the largest budget and L the largest request; a slot lasts for at most
//! `timeout_sync` times the factor of raising, until the next event, and then one idle period. With groups
//! these add up, level by level. A raised queue counts with 30 or 3000 times its weight, for at most 25 s or
//! as long as it plays: meanwhile others get next to nothing if it takes everything, which is why it is
//! raised no longer than for 120000 sectors. Within a queue a request is passed over until its fifo time;
//! then it is next in the queue's slot, unless a newcomer is nearer. What the device does with the requests
//! that it has is not in this bound.
//!
//! # From the kernel's hooks to ours
//!
//! - "Run the queue" is `wants_run`, for drivers that do not dispatch after every completion and timer
//!   anyway.
//! - A request that is handed back stays with the elevator, which issues it first: for BFQ it is still at the
//!   device.
//! - "Has a running thread" is true of a task until it exits.
//! - Where the kernel counts in ticks, [`Config::tick`] does, if it is not zero.
//!
//! # What it does not do
//!
//! Flush and pass-through requests (the driver's), statistics of groups (a reader of the trace has them), one
//! queue for all threads of a program (it sees tasks). All of its state is behind one lock, so fast devices
//! are often better off without.
//!
//= linux-6.12 block/bfq-iosched.c, block/bfq-wf2q.c, block/bfq-cgroup.c, docs/reference/bfq.md
//= paper: P. Valente, F. Checconi 2010, "High throughput disk scheduling with fair bandwidth distribution"
//= paper: P. Valente, A. Avanzini 2015, "Evolution of the BFQ storage-I/O scheduler", MST

mod config;
pub mod conform;
mod engine;
mod era;
mod hooks;
mod retune;
mod rules;
#[cfg(test)]
mod tests;
mod view;

pub use self::config::Config;

use self::engine::queue::{ASYNC_KINDS, Link, LinkId, Process, Queue, Rq};
use self::engine::setting::Setting;
use self::rules::Rules;
use self::rules::raise::Youth;
use self::view::{Expire, Kind, QueueId};
use super::Scheduler;
use crate::config::{ConfigError, Tunables};
use crate::elevator::{Actuators, Control, Cx, Dispatch, End, Hold, Limits, Timer};
use crate::parts::choose::first_is_nearer;
use crate::parts::fifo::{Fifo, Links};
use crate::parts::hash::Hash;
use crate::parts::hierarchy::Hierarchy;
use crate::parts::sorted::SortedLinks;
use crate::parts::tasks::{TaskMap, TaskSlot};
use crate::parts::tree::{Forest, Tree};
use crate::request::{Request, Requests};
use crate::table::Table;
use crate::trace::Reason;
use crate::units::{Class, GroupId, Id, Instant, IoPrio, Sector, Tag, TaskId};
use core::ops::Range;

/// B until it is known better, in sectors.
//= linux-6.12 block/bfq-iosched.c bfq_default_max_budget, docs/reference/bfq.md#21-maximum-budget
const DEFAULT_BUDGET: u32 = 16 * 1024;

/// The number of different weights that queues can have: 10, 20, … 80.
const WEIGHTS: usize = 8;

/// The place of a weight among these.
const fn weight_index(weight: u32) -> usize {
    (weight / 10 - 1) as usize & (WEIGHTS - 1)
}

/// Per group, beside what the hierarchy has.
#[derive(Clone, Copy, Debug, Default)]
struct Group {
    /// Queues by the position of their next request. The nodes are in `Bfq::by_position`.
    positions: Tree,
    /// Queues with queued or in-flight requests.
    queues_pending: u32,
    /// The sync queue that was created last, for newcomers to be compared with.
    last_created: Option<QueueId>,
    /// Requests in existence, in the groups inside it too. Not kept for the root.
    allocated: u32,
    /// If its tasks share one.
    youth: Youth,
}

/// A request that is to be sent whatever the rules say.
#[derive(Clone, Copy, Debug)]
struct Imposed {
    queue: QueueId,
    tag: Tag,
    /// Whether all requests are taken back, so that its queue keeps the disk afterwards.
    draining: bool,
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct Bfq {
    config: Config,
    limits: Limits,
    setting: Setting,
    /// The number of tags.
    tags: u32,
    actuators: Actuators,
    several_actuators: bool,

    tasks: TaskMap,
    processes: Table<TaskSlot, Process>,
    links: Table<LinkId, Link>,
    queues: Table<QueueId, Queue>,
    pool: Fifo<QueueId>,
    pool_links: Links<QueueId>,
    rqs: Table<Tag, Rq>,
    sorted: SortedLinks,
    hierarchy: Hierarchy<QueueId>,
    groups: Table<GroupId, Group>,
    /// The async queues by group, class and level, and actuator.
    async_queues: Hash<QueueId>,
    by_position: Forest<QueueId>,
    /// Sectors at which the queue in service, while it has no request, is close to none of these.
    gap: Range<u64>,

    /// Busy queues, most recently activated or requeued first, per actuator.
    active: [Fifo<QueueId>; Actuators::MAX],
    active_links: Links<QueueId>,
    /// The number of busy queues in each class, and in all.
    busy: [u32; 3],
    busy_in_all: u32,
    wr_busy: u32,
    groups_pending: u32,
    /// The number of queues that are counted under each weight (10, 20, … 80), and a bit for each weight
    /// under which there are any.
    weights: [u32; WEIGHTS],
    weights_in_use: u32,
    queued: u32,
    in_flight: u32,
    in_flight_of: [u32; Actuators::MAX],
    /// Requests in existence, by [`Kind`].
    in_use: [u32; 3],

    in_service: Option<QueueId>,
    /// The end of the last request that it sent; 0 before the first.
    in_service_last_pos: Sector,
    last_pos: Sector,
    last_completion: Option<Instant>,
    slot_start: Instant,
    idle_start: Instant,
    /// When a slot last began of a queue that reads no stream; kept where [`Limits::turns_within`] is set.
    other_than_stream: Instant,
    /// Whether the disk idles for fewer queues than the tunables say: see [`Limits::idle_for_quick_only`] and
    /// [`Limits::spares_groups`].
    idles_less: bool,
    idle_timer: Option<Instant>,
    slots_seen: u32,
    /// Sectors at peak rate within `timeout_sync`.
    bmax_now: u32,
    rules: Rules,
    /// The last completion, timer or change asks the driver for a dispatch.
    wants_run: bool,
    /// Whether requests at the device are counted by actuator, or by the rules of 2010.
    counts_sent: bool,
}

impl Scheduler for Bfq {
    const NAME: &'static str = "bfq";
    type Config = Config;

    fn new(limits: Limits, config: Config) -> Result<Self, ConfigError> {
        config.validate()?;
        let mut this = Self::make(limits, config);
        for q in this.all_queues().filter(|&q| q != QueueId::FALLBACK) {
            this.pool_links.push_back(&mut this.pool, q);
        }
        this.queues[QueueId::FALLBACK].in_use = true;
        this.queues[QueueId::FALLBACK].next_budget = this.first_budget();
        this.order_as_kernel(this.setting.as_kernel);
        if this.setting.max_budget.is_some() {
            this.recompute_bmax();
        }
        Ok(this)
    }

    #[inline]
    fn chooses_groups(&self) -> bool {
        true
    }

    fn insert(&mut self, cx: &mut Cx<'_>, tag: Tag) {
        let rq = cx.requests[tag].rq;
        let slot = self.process(cx, &rq);
        let actuator = self.actuator_for(&rq);
        let link = (slot != self.tasks.fallback()).then(|| self.link(slot, actuator));
        let q = link.map_or(QueueId::FALLBACK, |link| self.queue_for(cx, slot, link, &rq));
        let kind = Kind::of(&rq);
        self.allocate(q, kind);
        let expire = self.setting.fifo_expire[usize::from(rq.sync)];
        #[allow(clippy::cast_possible_truncation, reason = "there are at most 8")]
        let actuator = actuator as u8;
        let deadline = cx.now + expire;
        self.rqs[tag] = Rq { queue: q, process: slot, actuator, kind, deadline };
        let short_think = self.rules_arrived(cx, q, &rq);
        let process = &mut self.processes[slot];
        process.requests += 1;
        if process.requests == 1 && rq.sync {
            self.rules_arrived_alone(cx, q, short_think);
        }
        self.store(cx, q, tag, link, &rq);
        if self.in_service == Some(q) && self.queues[q].waiting {
            self.end_idling(cx, q, &rq);
        }
    }

    fn dispatch(&mut self, cx: &mut Cx<'_>) -> Dispatch {
        self.serve(cx, None)
    }

    fn drain(&mut self, cx: &mut Cx<'_>) -> Option<Tag> {
        loop {
            let q = match self.in_service {
                Some(q) => q,
                None => self.set_in_service(cx)?,
            };
            match self.queues[q].next_rq {
                Some(tag) if self.has_budget_for(cx.requests, q, tag) => {
                    let _ = self.serve(cx, Some(Imposed { queue: q, tag, draining: true }));
                    return Some(tag);
                }
                Some(_) => self.expire(cx, Expire::BudgetExhausted),
                None => self.expire(cx, Expire::NoMoreRequests),
            }
        }
    }

    fn merged(&mut self, cx: &mut Cx<'_>, kept: Tag, end: End) {
        let q = self.rqs[kept].queue;
        let before = self.queues[q].next_rq;
        if end == End::Front {
            let start = cx.requests[kept].rq.start;
            self.sorted.reposition(&mut self.queues[q].requests, kept, start);
            self.prefer(cx, q, kept);
        }
        let next = self.queues[q].next_rq;
        if next == Some(kept) {
            //= deviates bfq-fit-budget
            if next != before || !self.setting.as_kernel {
                self.update_next(cx, q);
            }
            self.reposition(cx, q);
        }
    }

    fn joined(&mut self, cx: &mut Cx<'_>, kept: Tag, gone: Tag) {
        let Rq { queue: q, process, deadline, .. } = self.rqs[gone];
        let grown = self.rqs[kept].queue;
        // The two may be of different queues, after a merge of queues; then `kept` stays where it is.
        if grown == q {
            self.rqs[kept].deadline = self.rqs[kept].deadline.min(deadline);
        }
        if self.queues[q].next_rq == Some(gone) {
            self.queues[q].next_rq =
                if grown == q { Some(kept) } else { self.next_after(cx.requests, cx.now, q, gone) };
        }
        let requests = &mut self.queues[q].requests;
        if grown == q {
            self.sorted.join(requests, cx.requests, kept, gone);
        } else {
            self.sorted.remove(requests, gone);
        }
        self.queued -= 1;
        self.release(q, self.rqs[gone].kind);
        self.settle_in(cx, q);
        if self.queues[grown].next_rq == Some(kept) {
            let len = cx.requests[kept].rq.len + cx.requests[gone].rq.len;
            self.update_budget(cx, grown, len);
        }
        self.forget_request(cx.now, process);
        self.reap(q);
    }

    fn complete(&mut self, cx: &mut Cx<'_>, tag: Tag) {
        let Rq { queue: q, process, actuator, kind, .. } = self.rqs[tag];
        self.rules_completed(cx, q, tag, kind);
        self.in_flight -= 1;
        if self.counts_sent {
            self.count_completed(usize::from(actuator), kind);
        }
        self.release(q, kind);
        if self.limits.one_youth {
            self.hear_of_group(cx.now, q);
        }
        let queue = &mut self.queues[q];
        queue.in_flight -= 1;
        queue.past.completed(cx.now);
        self.rules.wakers.completed(q, !queue.shared);
        let (drained, unused) = (queue.in_flight == 0, queue.process_refs == 0);
        let paced = queue.raise.awaits_completion();
        if drained && !queue.busy {
            self.drained(cx.now, q);
        }
        if drained && paced && self.is_empty(q) {
            self.raise_completed(cx.now, q);
        }
        let idles = self.in_service == Some(q) && self.setting.decides && self.review_completion(cx, q);
        self.wants_run = self.in_flight == 0 && !idles;
        self.forget_request(cx.now, process);
        if unused {
            self.reap(q);
        }
    }

    fn control(&mut self, cx: &mut Cx<'_>, change: &Control) {
        let served = self.in_service.is_some();
        self.change(cx, *change);
        self.wants_run |= served && self.in_service.is_none();
    }

    fn reconfigure(&mut self, cx: &mut Cx<'_>, config: Config) -> Result<bool, ConfigError> {
        self.retune(cx, config)
    }

    fn timer(&mut self, cx: &mut Cx<'_>) {
        if self.idle_timer.is_some_and(|when| cx.now >= when) {
            self.idle_timeout(cx);
            self.wants_run = true;
        }
    }

    /// When the device has run empty, unless that is what idling is for; when idling has ended in vain; and
    /// when the task in service is gone.
    //= linux-6.12 block/bfq-iosched.c bfq_completed_request, bfq_idle_slice_timer
    //= docs/reference/bfq.md#77-complete
    fn wants_run(&self) -> bool {
        self.wants_run
    }

    fn next_timer(&self) -> Option<(Instant, Timer)> {
        self.idle_timer.map(|when| (when, Timer::SliceIdle))
    }

    fn prepare_merge(&mut self, cx: &mut Cx<'_>, rq: &Request) {
        if !rq.sync || self.tasks.find(rq.task).is_none() {
            return;
        }
        let slot = self.process(cx, rq);
        let link = self.link(slot, self.actuator_for(rq));
        if let Some(q) = self.links[link].sync {
            self.cooperate(cx, q, link, rq.start);
        }
    }

    /// Only requests of one queue.
    //= deviates bfq-insert-merge
    fn may_merge(&self, requests: &Requests, into: Tag, rq: &Request) -> bool {
        if requests[into].rq.sync != rq.sync {
            return false;
        }
        let link = self.tasks.find(rq.task).map(|slot| &self.links[self.link(slot, self.actuator_for(rq))]);
        let own = link.and_then(|link| if rq.sync { link.sync } else { link.asyn });
        own == Some(self.rqs[into].queue)
    }

    fn has_room(&self, rq: &Request) -> bool {
        self.admits(rq)
    }

    fn depth_for(&self, rq: &Request) -> u32 {
        self.tag_depth(rq)
    }

    fn has_room_below(&self, rq: &Request, depth: u32) -> bool {
        self.admits_below(rq, depth)
    }

    /// The task's queue is in service and is idled for: meanwhile others' requests would be injected.
    fn prefers(&self, done: &Request) -> bool {
        let slot = self.tasks.find(done.task).filter(|_| done.sync);
        let own = slot.and_then(|slot| self.links[self.link(slot, self.actuator_for(done))].sync);
        own.is_some() && own == self.in_service && own.is_some_and(|q| self.must_idle(q))
    }

    fn check(&self, requests: &Requests) {
        self.walk(requests);
    }
}

/// Requests come.
impl Bfq {
    /// The actuator that a request needs: that of its last sector.
    #[inline]
    fn actuator_for(&self, rq: &Request) -> usize {
        if self.several_actuators { self.actuators.of(Sector(rq.end().0 - 1)) } else { 0 }
    }

    /// The queue that a request belongs to.
    #[inline]
    fn queue_for(&mut self, cx: &mut Cx<'_>, slot: TaskSlot, link: LinkId, rq: &Request) -> QueueId {
        if !rq.sync {
            return match self.links[link].asyn {
                Some(q) => q,
                None => self.async_queue(cx, slot, link),
            };
        }
        // The usual case: a queue that it has had alone for a while.
        let own = self.links[link].sync.filter(|&q| {
            let queue = &self.queues[q];
            queue.owner == Some(link) && !queue.just_created
        });
        let q = match own {
            Some(q) => q,
            None => self.unusual_queue_for(cx, slot, link),
        };
        if q == QueueId::FALLBACK {
            return q;
        }
        self.cooperate(cx, q, link, rq.start)
    }

    /// The queue for a sync request of a task that has no queue, shares one, or has a new one.
    #[inline(never)]
    fn unusual_queue_for(&mut self, cx: &mut Cx<'_>, slot: TaskSlot, link: LinkId) -> QueueId {
        let q = match self.links[link].sync {
            Some(_) => self.split_if_wanted(cx, slot, link),
            None => self.new_sync_queue(cx, slot, link, false),
        };
        let queue = &mut self.queues[q];
        if q != QueueId::FALLBACK && queue.merge_to.is_none() && queue.process_refs == 1 {
            queue.owner = Some(link);
        }
        if queue.just_created {
            self.rules_created(cx, q);
        }
        q
    }

    /// A request of `link` at `position` comes to `q`: the queue that it goes to, after the merge that may be
    /// due.
    #[inline(always)]
    fn cooperate(&mut self, cx: &mut Cx<'_>, q: QueueId, link: LinkId, position: Sector) -> QueueId {
        if self.find_cooperator(cx, q, position, link).is_none() {
            return q;
        }
        self.go_over(cx, q, link)
    }

    #[inline(never)]
    fn go_over(&mut self, cx: &mut Cx<'_>, q: QueueId, link: LinkId) -> QueueId {
        let target = self.follow_merges(cx, link);
        self.queues[q].just_created = false;
        target
    }

    /// Puts a request into its queue, and the queue among the busy ones.
    #[inline]
    fn store(&mut self, cx: &mut Cx<'_>, q: QueueId, tag: Tag, link: Option<LinkId>, rq: &Request) {
        self.queued += 1;
        let queue = &mut self.queues[q];
        let (old_factor, before, busy) = (queue.raise.factor(), queue.next_rq, queue.busy);
        self.sorted.insert_maybe_first(&mut queue.requests, tag, rq.start);
        if before.is_none() {
            queue.next_rq = Some(tag);
        } else {
            self.prefer(cx, q, tag);
        }
        let changed = before.is_none() || self.queues[q].next_rq != before;
        if changed && self.in_service != Some(q) {
            self.reposition(cx, q);
        }
        let mut interactive = false;
        if !busy {
            interactive = self.wake(cx, q, link);
        } else {
            if !rq.sync {
                self.raise_async(cx, q);
            }
            if changed {
                self.update_next(cx, q);
            }
        }
        self.raise_arrived(cx.now, q, old_factor, interactive);
    }

    /// The queue in service, for which the disk idles, has a request again. A small one might grow, if the
    /// slot is not over: then only its dispatch ends the idling.
    fn end_idling(&mut self, cx: &mut Cx<'_>, q: QueueId, rq: &Request) {
        let timed_out = self.timed_out(cx.now, q);
        if !timed_out && self.queues[q].requests.len() == 1 && self.awaits_more(q, rq.len) {
            return;
        }
        self.stop_idling(q);
        if timed_out && self.setting.decides {
            self.expire(cx, Expire::BudgetTimeout);
        }
    }

    /// Makes `tag` the next request of `q` if it is better than the present one, seen from where the head is;
    /// not if that is next because it had waited for too long.
    //= deviates bfq-overdue
    #[inline]
    fn prefer(&mut self, cx: &Cx<'_>, q: QueueId, tag: Tag) {
        let best = match self.queues[q].next_rq {
            Some(next) if self.queues[q].overdue == Some(next) && self.is_overdue(cx.now, q, next) => next,
            Some(next) => self.better(cx.requests, next, tag, self.last_pos),
            None => tag,
        };
        self.queues[q].next_rq = Some(best);
    }

    /// Whether `tag` is the oldest of `q`, and has waited for too long.
    #[inline]
    fn is_overdue(&self, now: Instant, q: QueueId, tag: Tag) -> bool {
        now >= self.rqs[tag].deadline && self.queues[q].requests.oldest() == Some(tag)
    }

    /// Sync before async, metadata before others, then the nearer one.
    fn better(&self, requests: &Requests, a: Tag, b: Tag, last: Sector) -> Tag {
        let (first, second) = (&requests[a].rq, &requests[b].rq);
        let first_wins = if first.sync != second.sync {
            first.sync
        } else if first.meta != second.meta {
            first.meta
        } else {
            first_is_nearer(first.start, second.start, last, self.setting.back)
        };
        if first_wins { a } else { b }
    }
}

/// Requests go.
impl Bfq {
    /// Chooses a request, or takes the one that is `imposed`, hands it to the device, and looks at what that
    /// changes for its queue.
    ///
    /// One function for all that send requests, so that what it calls is in it once.
    #[inline(never)]
    fn serve(&mut self, cx: &mut Cx<'_>, imposed: Option<Imposed>) -> Dispatch {
        let (q, tag) = match imposed {
            Some(Imposed { queue, tag, .. }) => (queue, tag),
            None => match self.choose(cx) {
                Ok(chosen) => chosen,
                Err(answer) => return answer,
            },
        };
        self.issue(cx, q, tag);
        if self.in_service == Some(q) && !imposed.is_some_and(|imposed| imposed.draining) {
            self.check_raise_end(cx, q);
            let queue = &self.queues[q];
            let gives_way = queue.class == Class::Idle && self.others_are_busy();
            if gives_way || self.rules.early.has_sent_all(queue.sync, self.tot_busy()) {
                self.expire(cx, Expire::BudgetExhausted);
            }
        }
        Dispatch::Issue(tag)
    }

    /// The queue to serve, and its next request; or why there is none.
    #[inline(always)]
    fn choose(&mut self, cx: &mut Cx<'_>) -> Result<(QueueId, Tag), Dispatch> {
        if self.in_service.is_none() && self.tot_busy() == 0 {
            return Err(Dispatch::Empty);
        }
        if self.setting.strict && self.in_flight > 0 {
            return Err(Dispatch::Hold(Hold::Depth));
        }
        if self.rules.protect.holds_all() {
            return Err(Dispatch::Hold(Hold::Depth));
        }
        let Some((q, why)) = self.select(cx) else { return Err(Dispatch::Hold(Hold::SliceIdle)) };
        let queue = &self.queues[q];
        if self.rules.early.holds(queue.sync) {
            return Err(Dispatch::Hold(Hold::Depth));
        }
        let Some(tag) = queue.next_rq else { return Err(Dispatch::Hold(Hold::SliceIdle)) };
        cx.why = self.why(cx, q, tag, why);
        Ok((q, tag))
    }

    /// Hands a request to the device.
    #[inline(always)]
    fn issue(&mut self, cx: &mut Cx<'_>, q: QueueId, tag: Tag) {
        let rq = cx.requests[tag].rq;
        let queue = &self.queues[q];
        let (raised, alone) = (queue.raise.is_raised(), queue.requests.len() == 1);
        let cost = self.cost(q, rq.len);
        self.served(cx.now, q, cost);
        let serving = self.in_service == Some(q);
        let raised = self.rules_dispatched(cx, q, tag, &rq, raised);
        self.last_pos = rq.end();
        if serving {
            self.in_service_last_pos = rq.end();
        }
        self.in_flight += 1;
        if self.counts_sent {
            self.count_sent(tag, serving);
        }
        self.rules_sent(cx.now, tag, Kind::of(&rq), raised);
        self.queued -= 1;
        let next = if alone { None } else { self.next_after(cx.requests, cx.now, q, tag) };
        let queue = &mut self.queues[q];
        queue.fifo_checked = true;
        queue.next_rq = next;
        queue.in_flight += 1;
        self.sorted.remove_maybe_last(&mut queue.requests, tag);
        if !serving {
            self.settle_in(cx, q);
        }
    }

    /// A request goes to a device with several actuators, or under the rules of 2010.
    #[inline(never)]
    fn count_sent(&mut self, tag: Tag, in_slot: bool) {
        let Rq { actuator, kind, .. } = self.rqs[tag];
        if self.several_actuators {
            self.in_flight_of[usize::from(actuator)] += 1;
        }
        self.rules.early.dispatched(kind != Kind::Async, in_slot);
    }

    /// A request of such a device, or under such rules, is done.
    #[inline(never)]
    fn count_completed(&mut self, actuator: usize, kind: Kind) {
        if self.several_actuators {
            self.in_flight_of[actuator] -= 1;
        }
        self.rules.early.completed(kind != Kind::Async);
    }

    /// The last request of `q`, which has none to send, is done.
    fn drained(&mut self, now: Instant, q: QueueId) {
        let tick = self.tick(now);
        self.queues[q].drain(tick);
        self.uncount(q);
    }

    /// A request left `q`, which may be empty now, or have another next one.
    fn settle_in(&mut self, cx: &mut Cx<'_>, q: QueueId) {
        if self.in_service == Some(q) {
            return;
        }
        if self.is_empty(q) {
            self.unposition(q);
            if self.queues[q].busy {
                self.raise_emptied(q);
                self.go_idle(cx, q);
            }
        } else {
            self.update_next(cx, q);
            self.reposition(cx, q);
        }
    }

    /// The next request of `q` when `tag` has gone: once in a slot the oldest if it has waited for too long,
    /// else the nearer neighbour, where behind the last is the first.
    fn next_after(&mut self, requests: &Requests, now: Instant, q: QueueId, tag: Tag) -> Option<Tag> {
        let queue = &mut self.queues[q];
        if !core::mem::replace(&mut queue.fifo_checked, true) {
            let oldest = queue.requests.oldest().filter(|&t| t != tag && now >= self.rqs[t].deadline);
            if oldest.is_some() {
                queue.overdue = oldest.filter(|_| !self.setting.as_kernel);
                return oldest;
            }
        }
        let wrapped = || self.sorted.lowest(&self.queues[q].requests).filter(|&first| first != tag);
        let behind = self.sorted.next(tag).or_else(wrapped);
        match (behind, self.sorted.prev(tag)) {
            (Some(a), Some(b)) => Some(self.better(requests, a, b, requests[tag].rq.start)),
            (a, b) => a.or(b),
        }
    }

    /// Why `tag` is sent, when its queue is for the reason `why`.
    #[inline]
    fn why(&self, cx: &Cx<'_>, q: QueueId, tag: Tag, why: Reason) -> Reason {
        let expired = cx.books.trace.enabled() && self.is_overdue(cx.now, q, tag);
        if expired { Reason::FifoExpired } else { why }
    }

    /// A request of the queue in service completed: does it keep the disk? Answers whether it has nothing to
    /// send and is waited for.
    fn review_completion(&mut self, cx: &mut Cx<'_>, q: QueueId) -> bool {
        let queue = &self.queues[q];
        let (sync, empty, drained) = (queue.sync, queue.next_rq.is_none(), queue.in_flight == 0);
        self.rules_completed_in_slot(cx.now, q, sync);
        if empty && self.will_idle(q) && (!drained || self.start_idling(cx, q)) {
            return true;
        }
        if self.may_time_out(cx.now, q) {
            self.expire(cx, Expire::BudgetTimeout);
        } else if empty {
            self.expire(cx, Expire::NoMoreRequests);
        }
        false
    }
}

/// Clocks and counts.
impl Bfq {
    /// Now, by the clock of whatever is not measured finely.
    #[inline]
    fn tick(&self, now: Instant) -> Instant {
        now.floor_to(self.setting.tick)
    }

    /// All queues that there can be, whether in use or not.
    fn all_queues(&self) -> impl Iterator<Item = QueueId> + use<> {
        (1..self.queues.len()).map(QueueId::from_index)
    }

    /// The number of busy queues.
    #[inline]
    fn tot_busy(&self) -> u32 {
        self.busy_in_all
    }

    /// Whether more queues than one are busy: asked for queues of the idle class, of which there are few.
    #[cold]
    #[inline(never)]
    fn others_are_busy(&self) -> bool {
        self.tot_busy() > 1
    }

    fn make(limits: Limits, config: Config) -> Self {
        let (actuators, groups) = era::size(&config, &limits);
        let tasks = TaskMap::new(limits.tasks);
        let links = tasks.table_len() * actuators.count();
        let asyncs = groups as usize * ASYNC_KINDS * actuators.count();
        // Queue 0 does not exist, and 1 is the fallback.
        let queues = 2 + links + links.min(asyncs) + usize::from(limits.tags);
        let setting = Setting::new(&config, limits.rotational);
        let rules = Rules::new(&config, &limits, queues);
        let past = rules.history.created(Instant::EPOCH, false, true);
        let queue = Queue::new(false, IoPrio::default(), TaskId(0), past, Instant::EPOCH);
        let process = Process::new(TaskId(0), GroupId::ROOT);
        let rq = Rq::blank(tasks.fallback());
        Self {
            setting,
            tags: limits.requests(),
            several_actuators: actuators.count() > 1,
            actuators,
            processes: Table::new(tasks.table_len(), process),
            tasks,
            links: Table::new(links, Link::default()),
            queues: Table::new(queues, queue),
            pool: Fifo::default(),
            pool_links: Links::new(queues),
            rqs: Table::new(usize::from(limits.tags), rq),
            sorted: SortedLinks::new(limits.tags),
            hierarchy: Hierarchy::new(queues, groups),
            groups: Table::new(groups as usize, Group::default()),
            async_queues: Hash::new(queues),
            by_position: Forest::new(queues),
            gap: 0..0,
            active: [Fifo::default(); Actuators::MAX],
            active_links: Links::new(queues),
            busy: [0; 3],
            busy_in_all: 0,
            wr_busy: 0,
            groups_pending: 0,
            weights: [0; WEIGHTS],
            weights_in_use: 0,
            queued: 0,
            in_flight: 0,
            in_flight_of: [0; Actuators::MAX],
            in_use: [0; 3],
            in_service: None,
            in_service_last_pos: Sector(0),
            last_pos: Sector(0),
            last_completion: None,
            slot_start: Instant::EPOCH,
            idle_start: Instant::EPOCH,
            other_than_stream: Instant::EPOCH,
            idles_less: limits.idle_for_quick_only || limits.spares_groups,
            idle_timer: None,
            slots_seen: 0,
            bmax_now: DEFAULT_BUDGET,
            counts_sent: actuators.count() > 1 || rules.early.setting.on,
            rules,
            wants_run: false,
            limits,
            config,
        }
    }
}
