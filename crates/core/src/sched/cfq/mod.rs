//! CFQ, completely fair queueing: each task's sync requests have a queue, each queue gets the disk for a time
//! slice.
//!
//! For disks that several tasks share: each gets its part of the *time*, streams stay streams, interactive
//! tasks do not wait for a writer's backlog. This is the scheduler as of Linux 2.6.33, 2.6.34 and 3.10
//! ([`Era`]); those before time slices, and the first with them, are elsewhere.
//!
//! ```text
//!  insert ──► queue of the task ──► service trees: class × kind ──► active queue ──► device
//!               │ (queues.rs,           (service_tree.rs)              slice (slices.rs)
//!               │  queue_merge.rs)
//!               └─► hooks.rs: what happened ──► rules ──► worth idling for? preempts? near another? …
//! ```
//!
//! What is in this file is the policy: what is done when a request comes, when the driver asks for one, and
//! when one completes. The engine ([`Cfq`]) has six parts: tasks, queues, trees, whose turn it is, the
//! device, and the rules (`rules/`), which it asks in `hooks.rs`. A rule owns its settings and its state,
//! sees plain facts (`view.rs`) and answers; it changes nothing. `era.rs` chooses the settings from the
//! tunables.
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
//! place because that has nothing to send for a moment, is waited for (rules/idling.rs).
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
mod era;
mod hooks;
mod queue;
mod queue_merge;
mod queues;
mod rules;
mod service_tree;
mod shares;
mod slices;
mod tasks;
#[cfg(test)]
mod tests;
mod view;

pub use self::config::{Config, Era, Seek};

use self::era::{Layout, back_seek};
use self::queue::Rq;
use self::queues::{Before, Queues, Setting};
use self::rules::Rules;
use self::service_tree::{Group, Trees};
use self::slices::Turn;
use self::tasks::Tasks;
use self::view::{Expire, QueueId, Ticks};
use super::Scheduler;
use crate::config::{ConfigError, Tunables};
use crate::elevator::{Control, Cx, Dispatch, End, Hold, Limits, Timer};
use crate::parts::tasks::TaskSlot;
use crate::request::{Request, Requests};
use crate::trace::Reason;
use crate::units::{GroupId, Instant, Sector, Tag, TaskId};

/// See the [module](self).
#[derive(Debug)]
pub struct Cfq {
    rules: Rules,
    tasks: Tasks,
    queues: Queues,
    trees: Trees,
    turn: Turn,
    device: Device,
}

/// The device, as far as requests say.
#[derive(Debug)]
struct Device {
    /// Requests that it has.
    in_driver: u32,
    /// Requests that were issued and are not complete: async, sync.
    in_flight: [u32; 2],
    /// The end of the last request issued.
    head: Sector,
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
        Ok(Self::with(&limits, &config, Layout::new(&config, &limits)))
    }

    #[inline]
    fn chooses_groups(&self) -> bool {
        true
    }

    fn insert(&mut self, cx: &mut Cx<'_>, tag: Tag) {
        let rq = cx.requests[tag].rq;
        let slot = self.slot_of(cx, rq.task);
        let id = self.queue_for(cx, slot, &rq);
        self.store(cx, tag, id, slot, &rq);
        self.learn(cx, id, slot, &rq);
        if self.turn.active != Some(id) {
            self.try_preempt(cx, id, &rq);
        } else if self.queues[id].wait_request {
            self.end_idling(cx, id, &rq);
        }
    }

    fn dispatch(&mut self, cx: &mut Cx<'_>) -> Dispatch {
        if self.queues.waiting == 0 || (self.trees.layout.is_confined && self.has_none()) {
            return Dispatch::Empty;
        }
        let Some(id) = self.select(cx) else { return Dispatch::Hold(Hold::SliceIdle) };
        if !self.may_dispatch(id, cx.now) {
            return Dispatch::Hold(Hold::Depth);
        }
        let tag = self.pick(cx, id);
        self.issue(cx.requests, id, tag);
        if self.turn.task.is_none() {
            self.turn.task = Some(self.queues.rqs[tag].context);
        }
        let queue = &self.queues[id];
        if self.trees.busy > 1 {
            // Async queues have a quota of requests besides their time, and the idle class sends one at a
            // time (docs/reference/cfq.md#55-dispatch).
            let quota = || self.rules.lengths.async_quota(queue.prio);
            let quota_used = !queue.sync && u64::from(queue.slice_dispatch) >= quota();
            if quota_used || queue.is_idle_class() {
                self.expire(cx, Expire::AsyncQuota);
            }
        }
        Dispatch::Issue(tag)
    }

    fn drain(&mut self, cx: &mut Cx<'_>) -> Option<Tag> {
        self.expire(cx, Expire::Drain);
        let id = self.trees.first()?;
        let tag = self.queues[id].next.expect("only the active queue may be empty");
        self.issue(cx.requests, id, tag);
        self.lost_request(cx, id);
        Some(tag)
    }

    fn merged(&mut self, cx: &mut Cx<'_>, kept: Tag, end: End) {
        if end == End::Back {
            return;
        }
        let id = self.queues.rqs[kept].queue;
        self.queues.reposition(id, kept, cx.requests[kept].rq.start);
        self.queues.prefer(cx.requests, id, kept, self.device.head);
        if self.turn.active != Some(id) && self.queues[id].next == Some(kept) {
            self.refresh_position(cx.requests, id);
        }
    }

    fn joined(&mut self, cx: &mut Cx<'_>, kept: Tag, gone: Tag) {
        let Rq { queue: id, context, .. } = self.queues.rqs[gone];
        self.queues.forget(cx.requests, gone, kept);
        if self.turn.active != Some(id) {
            self.lost_request(cx, id);
        }
        self.finish(context);
        self.reap(cx, id);
    }

    fn complete(&mut self, cx: &mut Cx<'_>, tag: Tag) {
        let Rq { queue: id, context, .. } = self.queues.rqs[tag];
        // Before the counts go down: the device had this request until now.
        self.rules_completed(cx.now);
        let queue = &mut self.queues[id];
        queue.dispatched -= 1;
        self.device.in_driver -= 1;
        self.device.in_flight[usize::from(queue.sync)] -= 1;
        let group = &mut self.trees.groups[queue.group];
        group.dispatched -= 1;
        if queue.sync {
            self.tasks[context].think.completed(cx.now);
            if self.rules.thinking.of_groups {
                group.completed(cx.now, queue);
            }
            self.rules.depth.completed(cx.now, cx.requests[tag].since);
        }
        if self.turn.active == Some(id) {
            self.review_slice(cx, id, tag);
        }
        self.finish(context);
        // The last task has left the queue; this may have been its last request.
        if self.queues[id].process_refs == 0 {
            self.reap(cx, id);
        }
    }

    fn requeue(&mut self, _cx: &mut Cx<'_>, _tag: Tag) {
        self.device.in_driver -= 1;
    }

    fn reissue(&mut self, cx: &mut Cx<'_>, tag: Tag) {
        self.device.in_driver += 1;
        self.device.head = cx.requests[tag].rq.end();
    }

    fn control(&mut self, cx: &mut Cx<'_>, change: &Control) {
        match *change {
            Control::SetPrio(task, prio) => {
                let slot = self.slot_of(cx, task);
                if slot != self.tasks.fallback() {
                    self.tasks[slot].set_prio(prio);
                }
            }
            Control::TaskExit(task) => {
                if let Some(slot) = self.tasks.find(task) {
                    self.exit(cx, slot);
                }
            }
            Control::SetParent(group, parent) => self.set_parent(cx, group, parent),
            Control::SetWeight(group, _) | Control::SetPolicy(group, _) => {
                self.trees.shares.reweigh(&cx.books.groups, group);
            }
            // Leaf weights are read when they begin to count; a group that is gone loses its queues with its
            // requests.
            _ => {}
        }
    }

    fn timer(&mut self, cx: &mut Cx<'_>) {
        if self.turn.timer.is_some_and(|when| cx.now >= when) {
            self.idle_timeout(cx);
        }
    }

    fn next_timer(&self) -> Option<(Instant, Timer)> {
        self.turn.timer.map(|when| (when, Timer::SliceIdle))
    }

    fn may_merge(&self, requests: &Requests, into: Tag, rq: &Request) -> bool {
        let queue = self.queues.rqs[into].queue;
        if requests[into].rq.sync != rq.sync {
            return false;
        }
        let context = self.tasks.find(rq.task).map(|slot| &self.tasks[slot]).filter(|c| !c.exited);
        queue == self.queues.mergeable(rq, context)
    }

    fn check(&self, requests: &Requests) {
        self.walk(requests);
    }
}

impl Cfq {
    /// A scheduler with valid tunables, for groups that are kept in this way. Allocates.
    fn with(limits: &Limits, config: &Config, layout: Layout) -> Self {
        let count = Queues::count(limits);
        let setting = Setting {
            back: back_seek(config),
            fifo_expire: [config.fifo_expire_async, config.fifo_expire_sync],
            async_in_root: layout.async_in_root,
        };
        Self {
            rules: Rules::new(config, limits, &layout, count),
            tasks: Tasks::new(limits.tasks),
            queues: Queues::new(limits, setting),
            trees: Trees::new(layout, limits.groups, count, Ticks::new(limits.tick).one),
            turn: Turn::default(),
            device: Device { in_driver: 0, in_flight: [0; 2], head: Sector(0) },
        }
    }
}

/// Requests come.
impl Cfq {
    /// What is known of a task. If no more tasks can be known, one that has been idle for long makes room.
    #[inline]
    fn slot_of(&mut self, cx: &mut Cx<'_>, task: TaskId) -> TaskSlot {
        let slot = self.tasks.claim(cx.now, task);
        if slot != self.tasks.fallback() || !self.make_room(cx) {
            return slot;
        }
        self.tasks.claim(cx.now, task)
    }

    /// Forgets a task that has been idle for long. Returns whether there was one.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self, cx: &mut Cx<'_>) -> bool {
        let turn = &self.turn;
        let has_turn = |slot, queue| turn.task == Some(slot) || turn.active.is_some() && queue == turn.active;
        let eldest = self.tasks.eldest(cx.now, has_turn);
        if let Some(slot) = eldest {
            self.exit(cx, slot);
        }
        eldest.is_some()
    }

    /// The queue that a request belongs to.
    fn queue_for(&mut self, cx: &mut Cx<'_>, slot: TaskSlot, rq: &Request) -> QueueId {
        if slot == self.tasks.fallback() {
            // More tasks than `Limits::tasks`, none idle: these share one sync queue in each group, as with
            // the kernel's `oom_cfqq`.
            let asynchronous = || self.queues.async_queue(rq.group, rq.prio);
            return if rq.sync { QueueId::fallback(rq.group) } else { asynchronous() };
        }
        let context = &mut self.tasks[slot];
        let prio = context.see_prio(rq.sync, rq.prio);
        if !rq.sync {
            return self.queues.async_queue(rq.group, prio);
        }
        // The usual case: its own queue, with nothing to change.
        if let Some(id) = context.sync_queue.filter(|_| !context.prio_changed)
            && self.queues[id].stays()
            && self.queues[id].home == rq.group
        {
            return id;
        }
        let id = self.sync_queue(cx, slot, rq, prio);
        if self.tasks[slot].prio_changed && self.queues.is_own(id) {
            self.tasks[slot].prio_changed = false;
            self.queues[id].set_prio(prio);
            // Cooperators are looked for among queues of one level, which has changed.
            self.rules.cooperation.forget();
        }
        id
    }

    /// Puts a request into its queue, and the queue among the busy ones.
    #[inline]
    fn store(&mut self, cx: &mut Cx<'_>, tag: Tag, id: QueueId, slot: TaskSlot, rq: &Request) {
        let Before { next: before, is_busy } = self.queues.put(cx.now, tag, id, slot, rq);
        if !is_busy {
            self.add_busy(cx, id);
        }
        if before.is_some() {
            self.queues.prefer(cx.requests, id, tag, self.device.head);
        }
        // The active queue is in no tree of positions: the head is where it reads.
        if self.turn.active != Some(id) && self.queues[id].next != before {
            self.refresh_position(cx.requests, id);
        }
    }
}

/// Requests go.
impl Cfq {
    /// The queue that is to send the next request, which is then active; `None` to wait for the active one.
    fn select(&mut self, cx: &mut Cx<'_>) -> Option<QueueId> {
        let mut cooperator = None;
        if let Some(id) = self.turn.active {
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
        let id = cooperator.unwrap_or_else(|| self.choose(cx.now));
        self.activate(cx, id);
        Some(id)
    }

    /// The queue whose turn is next.
    fn choose(&mut self, now: Instant) -> QueueId {
        let (id, is_new_kind) = self.trees.choose(now, &self.rules.lengths);
        if is_new_kind {
            self.rules.idling.kind_chosen();
        }
        id
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
        if queue.slice.is_used(now) && !queue.must_dispatch {
            // A group that becomes empty loses its virtual time. So the completion in flight is awaited,
            // which can then extend the slice.
            let alone = self.trees.groups[queue.group].queues == 1;
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
        if self.turn.timer.is_some() {
            return Verdict::Wait;
        }
        self.rules_ran_empty(id, now);
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
        let next = queue.next;
        if look && let Some(oldest) = self.queues.expired(cx.now, id) {
            cx.why = Reason::FifoExpired;
            return oldest;
        }
        cx.why = Reason::Nearest;
        next.expect("a queue that has requests has a candidate")
    }

    /// Hands a request to the device.
    #[inline]
    fn issue(&mut self, requests: &Requests, id: QueueId, tag: Tag) {
        let queue = self.queues.take(requests, id, tag);
        self.device.in_flight[usize::from(queue.sync)] += 1;
        self.trees.groups[queue.group].dispatched += 1;
        self.device.in_driver += 1;
        self.device.head = requests[tag].rq.end();
    }

    /// A queue that is not active has one request less.
    fn lost_request(&mut self, cx: &mut Cx<'_>, id: QueueId) {
        if self.queues[id].is_empty() {
            self.remove_busy(cx, id);
        } else {
            self.refresh_position(cx.requests, id);
        }
    }

    /// The idle timer's time has come.
    fn idle_timeout(&mut self, cx: &mut Cx<'_>) {
        self.turn.timer = None;
        let Some(id) = self.turn.active else { return };
        if self.trees.layout.divides {
            cx.books.groups.idled(cx.now);
        }
        let queue = &mut self.queues[id];
        if queue.must_dispatch {
            return;
        }
        if queue.slice.is_used(cx.now) {
            self.expire(cx, Expire::Used);
        } else if queue.is_empty() {
            queue.window.disappointed();
            self.expire(cx, Expire::IdleTimeout);
        }
    }
}

/// Requests complete, tasks exit.
impl Cfq {
    /// A request of the active queue completed.
    //= linux-2.6.33 block/cfq-iosched.c cfq_completed_request
    fn review_slice(&mut self, cx: &mut Cx<'_>, id: QueueId, tag: Tag) {
        // The slice's clock starts with its first completion: the seek to its data is not charged to it.
        if self.queues[id].slice.is_new {
            self.start_clock(id, cx.now);
        }
        let more = self.stretches(id, cx.now);
        let queue = &mut self.queues[id];
        if let Some(more) = more {
            queue.slice.end = cx.now + more;
            queue.wait_busy = true;
        }
        // The idle class gets one request at a time.
        if queue.slice.is_used(cx.now) || queue.is_idle_class() {
            self.expire(cx, Expire::Completed);
            return;
        }
        if !queue.sync || !queue.is_empty() || self.close_cooperator(id).is_some() {
            return;
        }
        let (trees, queues) = (&self.trees, &self.queues);
        let alone = || trees.groups[queues[id].group].queues == 1;
        if self.rules.idling.considers(cx.requests[tag].rq.no_idle, trees.serving.kind, alone) {
            self.arm_idle(cx, id);
        }
    }

    /// One request less that keeps a task's slot from being given to another.
    fn finish(&mut self, slot: TaskSlot) {
        let context = &mut self.tasks[slot];
        context.outstanding -= 1;
        if context.exited && context.outstanding == 0 {
            self.release(slot);
        }
    }

    fn exit(&mut self, cx: &mut Cx<'_>, slot: TaskSlot) {
        let context = &mut self.tasks[slot];
        if core::mem::replace(&mut context.exited, true) {
            return;
        }
        // Requests in flight refer to the slot; the last one to complete releases it.
        let unused = context.outstanding == 0;
        if let Some(id) = context.sync_queue.take() {
            // No further request can come, so there is nothing to idle for.
            if self.turn.active == Some(id) {
                self.expire(cx, Expire::TaskExit);
            }
            self.drop_reference(cx, id);
        }
        if unused {
            self.release(slot);
        }
    }

    fn release(&mut self, slot: TaskSlot) {
        if self.turn.task == Some(slot) {
            self.turn.task = None;
        }
        self.tasks.release(slot);
    }

    /// A group in which there are no requests is inside another from now on, and may be a new one.
    fn set_parent(&mut self, cx: &mut Cx<'_>, group: GroupId, parent: GroupId) {
        // It may still be waited for. The books have those that were removed inside it elsewhere already.
        let is_inside = |id| self.trees.shares.is_inside(self.queues[id].group, group);
        if self.turn.active.is_some_and(is_inside) {
            self.expire(cx, Expire::Empty);
        }
        self.trees.shares.set_parent(group, parent);
        // Averages, think time and a saved workload belong to the old place.
        self.trees.groups[group] = Group::default();
    }
}
