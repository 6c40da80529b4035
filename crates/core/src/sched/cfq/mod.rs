//! CFQ, completely fair queueing: each task's sync requests have a queue, each queue gets the disk for a time
//! slice.
//!
//! For disks that several tasks share: each gets its part of the *time*, streams stay streams, interactive
//! tasks do not wait for a writer's backlog. This is the scheduler as of Linux 2.6.33, 2.6.34 and 3.10
//! ([`Era`]); those before time slices, and the first with them, are elsewhere.
//!
//! ```text
//!  insert ──► queue of the task ──► service trees: class × kind ──► active queue ──► device
//!               │  (queue.rs)            (service_tree.rs)          slice (slices.rs), depth (depth.rs)
//!               ├─ think time, seeks (stats.rs) ─► worth idling for? (idling.rs)
//!               ├─ preempts the active queue? (preempt.rs)
//!               └─ reads one stream with another? (cooperate.rs)
//! ```
//!
//! Example: two tasks read sequentially, and think 0.1 ms between requests. Task 1 is served; when its queue
//! runs empty the disk idles, at most 8 ms, and the next request comes after 0.1 ms. After 100 ms its slice
//! is over, and task 2 has the disk for 100 ms. The head goes from one place to the other ten times a second,
//! not a thousand times.
//!
//! # How long one waits
//!
//! Classes are strict: RT requests can keep BE and IDLE ones waiting for ever, BE ones IDLE ones. Within a
//! class, with n busy queues of level 4 and everything at its default, a queue waits for the slices of the
//! others: with `low_latency` about 300 ms for n up to 18, and n × 16 ms beyond; without it (n - 1) × 100 ms.
//! To this come, for each slice, the requests that were at the device when it ended, and the slices of other
//! kinds. Lower levels are put off further: by n times the difference between the longest slice and theirs.
//! Within a queue a request is passed over until its fifo time, and then served in the queue's next slice at
//! the latest, one for each slice.
//!
//! That is with a device that takes one request at a time. If it takes several, async requests have no bound,
//! as it was in these kernels: an async queue must wait until no sync request is at the device, and a sync
//! request that comes meanwhile takes its slice away.
//!
//! From 3.10 on no queue has a bound beside two tasks that are not worth waiting for, such as random readers,
//! as long as `quirk_preempt_empty` is on: each preempts the other while that has its only request at the
//! device, and passes all that wait. A device that takes n requests then serves n + 1 such tasks. With the
//! quirk off they take turns.
//!
//! # From the kernel's hooks to ours
//!
//! - In the kernel `dispatch` moves a request to a list from which the driver takes it later. Here the driver
//!   has it at once; *dispatched* and *in driver* differ only for a request that was handed back and waits to
//!   be issued again (dispatched, not in driver).
//! - "Run the queue" needs nothing: the driver asks after every insertion, completion and timer while there
//!   is room. So a short request that an idling queue sends leaves at once; the kernel, when plugged, gave it
//!   a moment to grow.
//! - Requests may start at the same sector; kernels before 3.x pushed the older one out.
//! - A tick, where the rules count in ticks, is [`Limits::tick`], or 1 ms if that is zero. With
//!   `Limits::tick` slices are whole ticks, as the kernel's divisions made them; without it they are exact to
//!   the nanosecond.
//!
//! # Groups
//!
//! Each group has trees of its own, and each time a slice ends the group comes next that had the least disk
//! time for its share (shares.rs). Queues of different groups have nothing to do with each other, but that
//! sync requests and higher classes preempt across groups. A group that has one queue, and would lose its
//! place because that has nothing to send for a moment, is waited for (idling.rs).
//!
//! # What it does not do
//!
//! A group's class means nothing here: classes of groups, like guarantees for them, are the
//! [controller](super::fair)'s. Under it, as `cfq+groups`, the controller chooses the group (divided.rs).
//!
//= linux-2.6.33, linux-2.6.34, linux-3.10 block/cfq-iosched.c, docs/reference/cfq.md#5-workload-trees

mod check;
mod config;
mod divided;
mod queue;
mod rules;
mod service_tree;
mod shares;
mod slices;
mod stats;
#[cfg(test)]
mod tests;

pub use self::config::{Config, Era, Seek};

use self::queue::{Context, Kind, LEVELS, Queue, QueueId, Rq, SHARED};
use self::rules::depth::NEVER_LATE;
use self::service_tree::{Group, Serving, tree_index};
use self::shares::Shares;
use self::slices::NOWHERE;
use self::slices::{Expire, slice_table};
use self::stats::DepthProbe;
use super::Scheduler;
use crate::config::{ConfigError, Tunables};
use crate::elevator::{Control, Cx, Dispatch, End, Hold, Limits, Timer};
use crate::parts::choose::{BackSeek, first_is_nearer};
use crate::parts::fifo::{Fifo, Links};
use crate::parts::sorted::SortedLinks;
use crate::parts::tasks::{TaskMap, TaskSlot};
use crate::parts::think_time::ThinkTime;
use crate::parts::tree::{Forest, Tree};
use crate::request::{Request, Requests};
use crate::table::Table;
use crate::trace::Reason;
use crate::units::{Class, Duration, GroupId, Id, Instant, IoPrio, Sector, Tag, TaskId};
use core::ops::Range;

/// See the [module](self).
#[derive(Debug)]
pub struct Cfq {
    config: Config,
    /// The seek rule, never `Auto`.
    seek: Seek,
    back: BackSeek,
    /// Full slices by kind and level.
    slices: [[Duration; LEVELS]; 2],
    /// How long tasks, and groups, are taken to think at most: twice the time for which they are waited for.
    longest_think: Duration,
    longest_group_think: Duration,
    /// What "a tick" means, and whether the clock advances in these.
    tick: Duration,
    quantised: bool,
    rotational: bool,

    tasks: TaskMap,
    contexts: Table<TaskSlot, Context>,
    queues: Table<QueueId, Queue>,
    free: Fifo<QueueId>,
    free_links: Links<QueueId>,
    rqs: Table<Tag, Rq>,
    links: SortedLinks,

    groups: Table<GroupId, Group>,
    shares: Shares,
    /// Whether there are several groups among which it chooses, and whether they are waited for.
    divides: bool,
    group_idles: bool,
    /// Whether seeky queues are filed in the root, and async requests are the root's.
    moves_seeky: bool,
    async_in_root: bool,
    /// Whether the controller chooses the group (divided.rs), and which.
    is_confined: bool,
    in_force: GroupId,
    /// The queues in the groups' trees.
    filed: Forest<QueueId>,
    /// Queues by the position of their candidate, for each level.
    positions: [Tree; LEVELS],
    by_position: Forest<QueueId>,

    serving: Serving,
    workload_expires: Instant,
    noidle_requires_idle: bool,
    active: Option<QueueId>,
    /// The task whose request was the first in this slice.
    active_context: Option<TaskSlot>,
    idle_timer: Option<Instant>,
    /// When the active queue got the disk, and how long its slice is; zero while its clock has not started.
    activated: Instant,
    slice: Duration,

    busy_queues: u32,
    busy_sync_queues: u32,
    rq_queued: u32,
    /// At the device.
    in_driver: u32,
    /// Issued and not completed: async, sync.
    in_flight: [u32; 2],
    /// The end of the last request issued.
    last_position: Sector,
    /// Where the head may be without a cooperator of the active queue being near.
    no_neighbour: Range<u64>,
    /// When a sync request was last late.
    last_delayed_sync: Option<Instant>,
    probe: DepthProbe,
}

/// What to do about the active queue.
enum Verdict {
    Keep,
    Wait,
    Leave(Expire),
    Cooperate(QueueId),
}

impl Scheduler for Cfq {
    const NAME: &'static str = "cfq";
    type Config = Config;

    fn new(limits: Limits, config: Config) -> Result<Self, ConfigError> {
        config.validate()?;
        let tags = usize::from(limits.tags);
        // A task that goes from group to group can leave many queues behind.
        let spare = if limits.groups > 1 { u32::MAX } else { limits.tasks };
        let queues = Self::make_queues(limits.groups, limits.tasks + spare.min(u32::from(limits.tags)));
        let (mut free, mut free_links) = (Fifo::default(), Links::new(queues.len()));
        for id in ((limits.groups * SHARED) as usize..queues.len()).map(QueueId::from_index) {
            free_links.push_back(&mut free, id);
        }
        let tasks = TaskMap::new(limits.tasks);
        let context = Context::new(ThinkTime::default());
        let fallback = tasks.fallback();
        let queue = QueueId::fallback(GroupId::ROOT);
        let rq = Rq { queue, context: fallback, deadline: Instant::EPOCH, meta: false };
        let whole_ticks = |d: Duration| floor(d, limits.tick);
        let (era, divides) = (config.era, limits.groups > 1);
        let tick = if limits.tick.is_zero() { Duration::from_ms(1) } else { limits.tick };
        Ok(Self {
            seek: match config.seek {
                Seek::Auto if limits.rotational => Seek::Distance,
                Seek::Auto => Seek::Size,
                rule => rule,
            },
            back: BackSeek {
                max: 2 * u64::from(config.back_seek_max.0),
                penalty: u64::from(config.back_seek_penalty),
            },
            slices: slice_table(&config, whole_ticks),
            longest_think: config.slice_idle * 2,
            longest_group_think: config.group_idle * 2,
            tick,
            quantised: !limits.tick.is_zero(),
            rotational: limits.rotational,
            contexts: Table::new(tasks.table_len(), context),
            tasks,
            free,
            free_links,
            rqs: Table::new(tags, rq),
            links: SortedLinks::new(limits.tags),
            groups: Table::new(limits.groups as usize, Group::default()),
            shares: Shares::new(limits.groups, !era.since_3(), tick),
            divides,
            group_idles: era.since_3() && !config.group_idle.is_zero(),
            moves_seeky: divides && !era.since_3() && !config.group_isolation,
            async_in_root: !era.since_4_3(),
            is_confined: false,
            in_force: GroupId::ROOT,
            filed: Forest::new(queues.len()),
            positions: [Tree::default(); LEVELS],
            by_position: Forest::new(queues.len()),
            queues,
            serving: Serving { class: Class::BestEffort, kind: Kind::Async },
            workload_expires: Instant::from_ns(1),
            noidle_requires_idle: false,
            active: None,
            active_context: None,
            idle_timer: None,
            activated: Instant::EPOCH,
            slice: Duration::ZERO,
            busy_queues: 0,
            busy_sync_queues: 0,
            rq_queued: 0,
            in_driver: 0,
            in_flight: [0; 2],
            last_position: Sector(0),
            no_neighbour: NOWHERE,
            last_delayed_sync: None,
            probe: DepthProbe::default(),
            config,
        })
    }

    #[inline]
    fn chooses_groups(&self) -> bool {
        true
    }

    fn insert(&mut self, cx: &mut Cx<'_>, tag: Tag) {
        let rq = cx.requests[tag].rq;
        let slot = self.context(cx.now, rq.task);
        let id = self.queue_for(cx, slot, &rq);
        self.store(cx, tag, id, slot, &rq);
        self.learn(cx, id, slot, &rq);
        if self.active != Some(id) {
            self.try_preempt(cx, id, &rq);
        } else if self.queues[id].wait_request {
            self.end_idling(cx, id, &rq);
        }
    }

    fn dispatch(&mut self, cx: &mut Cx<'_>) -> Dispatch {
        if self.rq_queued == 0 || (self.is_confined && self.has_none()) {
            return Dispatch::Empty;
        }
        let Some(id) = self.select(cx) else { return Dispatch::Hold(Hold::SliceIdle) };
        if !self.may_dispatch(id, cx.now) {
            return Dispatch::Hold(Hold::Depth);
        }
        let tag = self.pick(cx, id);
        self.issue(cx.requests, id, tag);
        self.active_context.get_or_insert(self.rqs[tag].context);
        let queue = &self.queues[id];
        if self.busy_queues > 1 {
            // Async queues have a quota of requests besides their time, and the idle class sends one at a
            // time (docs/reference/cfq.md#55-dispatch).
            let quota_used = !queue.sync && u64::from(queue.slice_dispatch) >= self.async_quota(queue);
            if quota_used || queue.is_idle_class() {
                self.expire(cx, Expire::AsyncQuota);
            }
        }
        Dispatch::Issue(tag)
    }

    fn drain(&mut self, cx: &mut Cx<'_>) -> Option<Tag> {
        self.expire(cx, Expire::Drain);
        let group = if self.divides { self.shares.first()? } else { self.in_force };
        let id = self.groups[group].trees.iter().find_map(|tree| self.filed.first(&tree.queues))?;
        let tag = self.queues[id].next.expect("only the active queue may be empty");
        self.issue(cx.requests, id, tag);
        if self.queues[id].is_empty() {
            self.remove_busy(cx, id);
        } else {
            self.refresh_position(cx.requests, id);
        }
        Some(tag)
    }

    fn merged(&mut self, cx: &mut Cx<'_>, kept: Tag, end: End) {
        if end == End::Back {
            return;
        }
        let id = self.rqs[kept].queue;
        self.links.reposition(&mut self.queues[id].requests, kept, cx.requests[kept].rq.start);
        self.prefer(cx.requests, id, kept);
        if self.active != Some(id) && self.queues[id].next == Some(kept) {
            self.refresh_position(cx.requests, id);
        }
    }

    fn joined(&mut self, cx: &mut Cx<'_>, kept: Tag, gone: Tag) {
        let Rq { queue: id, context, deadline, .. } = self.rqs[gone];
        let survivor = &mut self.rqs[kept];
        // The two may be of different queues, after a merge of queues; then `kept` stays where it is.
        if survivor.queue == id {
            survivor.deadline = survivor.deadline.min(deadline);
        }
        self.forget(cx.requests, id, gone, kept);
        if self.active != Some(id) {
            if self.queues[id].is_empty() {
                self.remove_busy(cx, id);
            } else {
                self.refresh_position(cx.requests, id);
            }
        }
        self.finish(context);
        self.reap(cx, id);
    }

    fn complete(&mut self, cx: &mut Cx<'_>, tag: Tag) {
        let Rq { queue: id, context, .. } = self.rqs[tag];
        // Before the counts go down: the device had this request until now.
        self.watch_depth();
        let queue = &mut self.queues[id];
        queue.dispatched -= 1;
        self.in_driver -= 1;
        self.in_flight[usize::from(queue.sync)] -= 1;
        if queue.sync {
            self.note_sync_completion(cx, id, context, tag);
        } else {
            self.groups[queue.group].dispatched -= 1;
        }
        if self.active == Some(id) {
            self.review_slice(cx, id, tag);
        }
        self.finish(context);
        // The last task has left the queue; this may have been its last request.
        if self.queues[id].process_refs == 0 {
            self.reap(cx, id);
        }
    }

    fn requeue(&mut self, _cx: &mut Cx<'_>, _tag: Tag) {
        self.in_driver -= 1;
    }

    fn reissue(&mut self, cx: &mut Cx<'_>, tag: Tag) {
        self.in_driver += 1;
        self.last_position = cx.requests[tag].rq.end();
    }

    fn control(&mut self, cx: &mut Cx<'_>, change: &Control) {
        match *change {
            Control::SetPrio(task, prio) => {
                let slot = self.context(cx.now, task);
                if slot != self.tasks.fallback() {
                    self.contexts[slot].set_prio(prio);
                }
            }
            Control::TaskExit(task) => {
                if let Some(slot) = self.tasks.find(task) {
                    self.exit(cx, slot);
                }
            }
            Control::SetParent(group, parent) => self.set_parent(cx, group, parent),
            Control::SetWeight(group, _) | Control::SetPolicy(group, _) => {
                self.shares.reweigh(&cx.books.groups, group);
            }
            // Leaf weights are read when they begin to count; a group that is gone loses its queues with its
            // requests.
            _ => {}
        }
    }

    fn timer(&mut self, cx: &mut Cx<'_>) {
        if self.idle_timer.is_some_and(|when| cx.now >= when) {
            self.idle_timeout(cx);
        }
    }

    fn next_timer(&self) -> Option<(Instant, Timer)> {
        self.idle_timer.map(|when| (when, Timer::SliceIdle))
    }

    fn may_merge(&self, requests: &Requests, into: Tag, rq: &Request) -> bool {
        let queue = self.rqs[into].queue;
        if requests[into].rq.sync != rq.sync {
            return false;
        }
        let context = self.tasks.find(rq.task).map(|slot| &self.contexts[slot]).filter(|c| !c.exited);
        if rq.sync {
            let own = context.and_then(|c| c.sync_queue);
            return queue == own.unwrap_or(QueueId::fallback(rq.group));
        }
        queue == self.async_queue(rq.group, context.map_or(rq.prio, |c| c.prio(false, rq.prio)))
    }

    fn check(&self, requests: &Requests) {
        self.walk(requests);
    }
}

/// Requests come.
impl Cfq {
    /// What is known of a task; made if need be, and anew if it had gone.
    fn context(&mut self, now: Instant, task: TaskId) -> TaskSlot {
        let (slot, new) = self.tasks.claim(task);
        let context = &mut self.contexts[slot];
        if new || context.exited {
            let outstanding = context.outstanding;
            *context = Context::new(ThinkTime::since(now));
            context.outstanding = outstanding;
        }
        slot
    }

    /// The queue that a request belongs to.
    fn queue_for(&mut self, cx: &mut Cx<'_>, slot: TaskSlot, rq: &Request) -> QueueId {
        if slot == self.tasks.fallback() {
            // More tasks than `Limits::tasks`: these share one sync queue in each group, as with the kernel's
            // `oom_cfqq`.
            return if rq.sync { QueueId::fallback(rq.group) } else { self.async_queue(rq.group, rq.prio) };
        }
        let context = &mut self.contexts[slot];
        let prio = context.see_prio(rq.sync, rq.prio);
        if !rq.sync {
            return self.async_queue(rq.group, prio);
        }
        // The usual case: its own queue, with nothing to change.
        if let Some(id) = context.sync_queue.filter(|_| !context.prio_changed)
            && self.queues[id].stays()
            && self.queues[id].home == rq.group
        {
            return id;
        }
        let id = self.sync_queue(cx, slot, rq, prio);
        if self.contexts[slot].prio_changed && self.is_own(id) {
            self.contexts[slot].prio_changed = false;
            self.queues[id].set_prio(prio);
            // Cooperators are looked for among queues of one level, which has changed.
            self.no_neighbour = NOWHERE;
        }
        id
    }

    /// The shared queue for async requests that come from a group: its own, since 4.3.
    //= linux-4.3 block/cfq-iosched.c cfq_async_queue_prio
    fn async_queue(&self, group: GroupId, prio: IoPrio) -> QueueId {
        QueueId::of_async(if self.async_in_root { GroupId::ROOT } else { group }, prio)
    }

    /// Whether a queue is one of the pool, that comes and goes.
    fn is_own(&self, id: QueueId) -> bool {
        id.index() >= self.groups.len() * SHARED as usize
    }

    /// Puts a request into its queue, and the queue among the busy ones.
    #[inline]
    fn store(&mut self, cx: &mut Cx<'_>, tag: Tag, id: QueueId, slot: TaskSlot, rq: &Request) {
        let expire = if rq.sync { self.config.fifo_expire_sync } else { self.config.fifo_expire_async };
        self.rqs[tag] = Rq { queue: id, context: slot, deadline: cx.now + expire, meta: rq.meta };
        self.rq_queued += 1;
        let queue = &mut self.queues[id];
        self.links.insert(&mut queue.requests, tag, rq.start);
        queue.meta_pending += u32::from(rq.meta);
        let before = queue.next;
        if before.is_none() {
            queue.next = Some(tag);
        }
        if !queue.is_busy() {
            // As if a sync request had been late one second ago: async depth begins at the ten requests that
            // the ramp reaches by then (docs/reference/cfq.md#55-dispatch).
            self.last_delayed_sync.get_or_insert(cx.now - NEVER_LATE);
            self.add_busy(cx, id);
        }
        if before.is_some() {
            self.prefer(cx.requests, id, tag);
        }
        // The active queue is in no tree of positions: the head is where it reads.
        if self.active != Some(id) && self.queues[id].next != before {
            self.refresh_position(cx.requests, id);
        }
    }

    /// Think time, seeks, and whether the queue is worth idling for.
    #[inline]
    fn learn(&mut self, cx: &Cx<'_>, id: QueueId, slot: TaskSlot, rq: &Request) {
        let config = &self.config;
        let (queue, context) = (&mut self.queues[id], &mut self.contexts[slot]);
        context.outstanding += 1;
        if queue.sync || config.quirk_async_think {
            context.think.arrived_within(cx.now, self.longest_think);
        }
        // From 3.x on trees and groups have think times of their own, for `group_idle` and the last queue of
        // a tree.
        if config.era.since_3() {
            let group = &mut self.groups[queue.group];
            if let Some(tree) = queue.tree.filter(|_| queue.sync) {
                group.trees[usize::from(tree)].think.arrived_within(cx.now, self.longest_think);
            }
            group.think.arrived_within(cx.now, self.longest_group_think);
        }
        queue.seek.arrived(self.seek, rq.start, rq.len);
        if queue.sync && !queue.is_idle_class() {
            // From 3.x on, a candidate that promises that nothing will follow closes the window.
            let ends_here = config.era.since_3() && queue.next.is_some_and(|tag| cx.requests[tag].rq.no_idle);
            queue.update_idle_window(config.slice_idle, self.seek, &context.think, ends_here);
        }
    }

    /// The active queue, for which the disk was idling, has something to send: now, or, if it is a single
    /// page and no other queue waits, as soon as the driver wants it.
    //= linux-2.6.33 block/cfq-iosched.c cfq_rq_enqueued
    fn end_idling(&mut self, cx: &mut Cx<'_>, id: QueueId, rq: &Request) {
        const PAGE_SECTORS: u32 = 8;
        if self.divides {
            cx.books.groups.idled(cx.now);
        }
        // A single page may be the first of several that will be merged; it waits for the driver if that
        // delays no other queue.
        if rq.len.0 > PAGE_SECTORS || self.busy_queues > 1 {
            self.idle_timer = None;
            self.queues[id].wait_request = false;
        } else {
            self.queues[id].must_dispatch = true;
        }
    }

    /// Makes `tag` its queue's candidate if it is better than the present one, seen from where the head is.
    fn prefer(&mut self, requests: &Requests, id: QueueId, tag: Tag) {
        let best = match self.queues[id].next {
            Some(next) => self.better(requests, next, tag, self.last_position),
            None => tag,
        };
        self.queues[id].next = Some(best);
    }

    /// Metadata before others, then the nearer one.
    fn better(&self, requests: &Requests, a: Tag, b: Tag, last: Sector) -> Tag {
        let (meta_a, meta_b) = (self.rqs[a].meta, self.rqs[b].meta);
        let first = if meta_a == meta_b {
            first_is_nearer(requests[a].rq.start, requests[b].rq.start, last, self.back)
        } else {
            meta_a
        };
        if first { a } else { b }
    }
}

/// Requests go.
impl Cfq {
    /// The queue that is to send the next request, which is then active; `None` to wait for the active one.
    fn select(&mut self, cx: &mut Cx<'_>) -> Option<QueueId> {
        let mut cooperator = None;
        if let Some(id) = self.active {
            match self.review(id, cx.now) {
                Verdict::Keep => return Some(id),
                Verdict::Wait => return None,
                Verdict::Leave(why) => self.expire(cx, why),
                Verdict::Cooperate(other) => {
                    self.set_up_merge(id, other);
                    // The tasks come to the common queue one by one, with their next requests; for now the
                    // disk goes to the neighbour, whose data is nearest.
                    self.expire(cx, Expire::Cooperator);
                    cooperator = Some(other);
                }
            }
        }
        let id = cooperator.unwrap_or_else(|| self.choose_queue(cx.now));
        self.activate(cx, id);
        Some(id)
    }

    /// Whether the active queue keeps the disk.
    //= linux-2.6.33 block/cfq-iosched.c cfq_select_queue
    fn review(&mut self, id: QueueId, now: Instant) -> Verdict {
        let queue = &self.queues[id];
        let (empty, in_flight) = (queue.is_empty(), queue.dispatched > 0);
        // The request came that the slice was extended for: the group is busy again and keeps its place on
        // its tree, which was the purpose (docs/reference/cfq.md#65-keeping-a-share).
        if queue.wait_busy && !empty {
            return Verdict::Leave(Expire::Used);
        }
        if self.slice_used(id, now) && !queue.must_dispatch {
            // A group that becomes empty loses its virtual time. So the completion in flight is awaited,
            // which can then extend the slice.
            let alone = self.groups[queue.group].queues == 1;
            let wait = (alone && empty && in_flight && self.should_idle(id)) || self.group_waits(id);
            return if wait { Verdict::Wait } else { Verdict::Leave(Expire::Used) };
        }
        if !empty {
            return Verdict::Keep;
        }
        // A cooperator goes before idling: its requests are where the head is already.
        if let Some(other) = self.close_cooperator(id) {
            return Verdict::Cooperate(other);
        }
        if self.idle_timer.is_some() {
            return Verdict::Wait;
        }
        self.stop_idling_if_outrun(id, now);
        if (in_flight && self.should_idle(id)) || self.group_waits(id) {
            return Verdict::Wait;
        }
        Verdict::Leave(Expire::Empty)
    }

    /// The active queue's oldest request if it waited for too long, once in a slice; else its candidate.
    fn pick(&mut self, cx: &mut Cx<'_>, id: QueueId) -> Tag {
        let queue = &mut self.queues[id];
        // Once in a slice: otherwise a queue with expired requests would be served in FIFO order, seek by
        // seek.
        let look = !core::mem::replace(&mut queue.fifo_checked, true);
        if let Some(oldest) = queue.requests.oldest().filter(|&tag| look && cx.now >= self.rqs[tag].deadline)
        {
            cx.why = Reason::FifoExpired;
            return oldest;
        }
        cx.why = Reason::Nearest;
        queue.next.expect("a queue that has requests has a candidate")
    }

    /// Hands a request to the device. The next candidate is one of its neighbours: the head will be there.
    #[inline]
    fn issue(&mut self, requests: &Requests, id: QueueId, tag: Tag) {
        // The neighbours are looked up while the request is still in the sorted queue.
        let next = if self.queues[id].queued() == 1 { None } else { self.neighbour(requests, id, tag) };
        let queue = &mut self.queues[id];
        queue.next = next;
        self.links.remove(&mut queue.requests, tag);
        queue.meta_pending -= u32::from(self.rqs[tag].meta);
        self.rq_queued -= 1;
        queue.dispatched += 1;
        queue.slice_dispatch += 1;
        queue.must_dispatch = false;
        self.in_flight[usize::from(queue.sync)] += 1;
        self.groups[queue.group].dispatched += 1;
        self.in_driver += 1;
        self.last_position = requests[tag].rq.end();
    }

    /// `gone` became part of `kept`, which may take its age.
    fn forget(&mut self, requests: &Requests, id: QueueId, gone: Tag, kept: Tag) {
        if self.queues[id].next == Some(gone) {
            self.queues[id].next = self.neighbour(requests, id, gone);
        }
        let queue = &mut self.queues[id];
        if self.rqs[kept].queue == id {
            self.links.join(&mut queue.requests, requests, kept, gone);
        } else {
            self.links.remove(&mut queue.requests, gone);
        }
        queue.meta_pending -= u32::from(self.rqs[gone].meta);
        self.rq_queued -= 1;
    }

    /// The better of the requests before and behind `tag`, wrapping to the first, seen from the start of
    /// `tag`.
    fn neighbour(&self, requests: &Requests, id: QueueId, tag: Tag) -> Option<Tag> {
        let wrapped = || self.links.lowest(&self.queues[id].requests).filter(|&first| first != tag);
        let behind = self.links.next(tag).or_else(wrapped);
        match (behind, self.links.prev(tag)) {
            (Some(a), Some(b)) => Some(self.better(requests, a, b, requests[tag].rq.start)),
            (a, b) => a.or(b),
        }
    }
}

/// Requests complete, tasks exit.
impl Cfq {
    fn watch_depth(&mut self) {
        // A queue that keeps few requests in flight by itself says nothing about the device's depth.
        let light = self.active.is_some_and(|id| {
            let queue = &self.queues[id];
            queue.idle_window && DepthProbe::is_light(queue.dispatched + queue.queued())
        });
        self.probe.completed(self.in_driver, self.rq_queued, light);
    }

    fn note_sync_completion(&mut self, cx: &Cx<'_>, id: QueueId, context: TaskSlot, tag: Tag) {
        self.contexts[context].think.completed(cx.now);
        let queue = &self.queues[id];
        let group = &mut self.groups[queue.group];
        group.dispatched -= 1;
        if self.config.era.since_3() {
            let tree = queue.tree.map_or_else(|| tree_index(queue.prio.class, queue.kind()), usize::from);
            group.trees[tree].think.completed(cx.now);
            group.think.completed(cx.now);
        }
        // A late sync request sends the depth of async queues back to one; it then grows by one with each
        // `slice_sync`.
        if cx.requests[tag].since + self.config.fifo_expire_sync <= cx.now {
            self.last_delayed_sync = Some(cx.now);
        }
    }

    /// A request of the active queue completed.
    //= linux-2.6.33 block/cfq-iosched.c cfq_completed_request
    fn review_slice(&mut self, cx: &mut Cx<'_>, id: QueueId, tag: Tag) {
        // The slice's clock starts with its first completion: the seek to its data is not charged to it.
        if self.queues[id].slice_new {
            self.start_clock(id, cx.now);
        }
        if self.should_wait_busy(id, cx.now) {
            let config = &self.config;
            let more = if config.slice_idle.is_zero() { config.group_idle } else { config.slice_idle };
            self.queues[id].slice_end = cx.now + more;
            self.queues[id].wait_busy = true;
        }
        let queue = &self.queues[id];
        // The idle class gets one request at a time.
        if self.slice_used(id, cx.now) || queue.is_idle_class() {
            self.expire(cx, Expire::Completed);
            return;
        }
        if !queue.sync || !queue.is_empty() || self.close_cooperator(id).is_some() {
            return;
        }
        // Queues of the tree without idling are served without waits between them. 2.6.33 waits for the last
        // of them only if a request of this turn may be followed by a dependent one.
        self.noidle_requires_idle |= !cx.requests[tag].rq.no_idle;
        let idles = self.config.era.since_3()
            || self.serving.kind == Kind::Sync
            || self.noidle_requires_idle
            || self.groups[self.queues[id].group].queues == 1;
        if idles {
            self.arm_idle(cx, id);
        }
    }

    /// One request less that keeps a task's slot from being given to another.
    fn finish(&mut self, slot: TaskSlot) {
        let context = &mut self.contexts[slot];
        context.outstanding -= 1;
        if context.exited && context.outstanding == 0 {
            self.release(slot);
        }
    }

    fn exit(&mut self, cx: &mut Cx<'_>, slot: TaskSlot) {
        let context = &mut self.contexts[slot];
        if core::mem::replace(&mut context.exited, true) {
            return;
        }
        // Requests in flight refer to the slot; the last one to complete releases it.
        let unused = context.outstanding == 0;
        if let Some(id) = context.sync_queue.take() {
            // No further request can come, so there is nothing to idle for.
            if self.active == Some(id) {
                self.expire(cx, Expire::TaskExit);
            }
            self.drop_reference(cx, id);
        }
        if unused {
            self.release(slot);
        }
    }

    fn release(&mut self, slot: TaskSlot) {
        if self.active_context == Some(slot) {
            self.active_context = None;
        }
        self.tasks.release(slot);
    }

    /// A group in which there are no requests is inside another from now on, and may be a new one.
    fn set_parent(&mut self, cx: &mut Cx<'_>, group: GroupId, parent: GroupId) {
        // It may still be waited for.
        let is_inside = |id| cx.books.groups.is_inside(self.queues[id].group, group);
        if self.active.is_some_and(is_inside) {
            self.expire(cx, Expire::Empty);
        }
        self.shares.set_parent(group, parent);
        // Averages, think time and a saved workload belong to the old place.
        self.groups[group] = Group::default();
    }

    /// The shared queues of each group, and `own` for tasks.
    fn make_queues(groups: u32, own: u32) -> Table<QueueId, Queue> {
        let none = TaskId(0);
        let blank = Queue::new(true, IoPrio::default(), none, GroupId::ROOT);
        let mut queues = Table::new((groups * SHARED + own) as usize, blank);
        for group in (0..groups).map(GroupId) {
            queues[QueueId::fallback(group)] = Queue::new(true, IoPrio::default(), none, group);
            for level in 0..8 {
                for class in [Class::RealTime, Class::BestEffort, Class::Idle] {
                    let prio = IoPrio::new(class, level);
                    queues[QueueId::of_async(group, prio)] = Queue::new(false, prio, none, group);
                }
            }
        }
        queues
    }

    /// Rounds down to ticks, if the clock advances in ticks.
    fn whole_ticks(&self, d: Duration) -> Duration {
        if self.quantised { floor(d, self.tick) } else { d }
    }
}

/// `d` rounded down to a multiple of `tick`, unless that is zero.
fn floor(d: Duration, tick: Duration) -> Duration {
    if tick.is_zero() { d } else { tick * (d / tick) }
}

/// `a x b / c` for `c` that is not zero.
fn mul_div(a: Duration, b: Duration, c: Duration) -> Duration {
    let (a, b, c) = (a.as_ns(), b.as_ns(), c.as_ns());
    if let Some(product) = a.checked_mul(b) {
        return Duration::from_ns(product / c);
    }
    Duration::from_ns(u64::try_from(u128::from(a) * u128::from(b) / u128::from(c)).unwrap_or(u64::MAX))
}
