//! Groups, priorities, and which request may have a tag: what comes from outside.
//!
//! A task's requests say which group they are made for and how urgent they are. When either has changed since
//! the task's last request, its queues follow: a sync queue moves to the other group, or takes the new weight
//! with its next insertion; an async queue is the group's, so the task goes to another one.
//!
//! **Admission.** A writer could fill all tags, and readers could not even ask. So async requests get half of
//! the tags, and all writes three quarters; 3/16 and 6/16 while a queue is raised. Of its part, each group
//! and queue may have as much as its weight says, so that a group with many requests does not keep the others
//! from asking.
//!
//! Example: 256 tags, no queue raised, a group of weight 100 beside one of 300: its async writes may have 128
//! * 100 / 400 = 32 tags.
//!
//! A group that goes leaves its queues to the group that it was in, as later requests of its tasks are that
//! group's. (The kernel moves them to the root.)
//
//= linux-6.12 block/bfq-cgroup.c bfq_bfqq_move, bfq_bic_update_cgroup, bfq_pd_offline; block/bfq-iosched.c
//= linux-6.12 block/bfq-iosched.c bfq_check_ioprio_change, bfq_limit_depth, bfqq_request_over_limit
//= docs/reference/bfq.md#712-priority-changes

use super::queue::{LinkId, Process};
use crate::elevator::{Control, Cx};
use crate::parts::tasks::TaskSlot;
use crate::request::Request;
use crate::sched::bfq::Bfq;
use crate::sched::bfq::rules::raise::Youth;
use crate::sched::bfq::view::{Expire, Kind, QueueId};
use crate::units::{Class, GroupId, Id, IoPrio, TaskId, Weight};

/// The largest weight of a group.
//= linux-6.12 block/bfq-iosched.h BFQ_MAX_WEIGHT, docs/reference/bfq.md#17-weights-and-their-changes
const WEIGHT_MAX: u32 = 1000;
/// The weight of a group that was given no other.
//= linux-6.12 block/bfq-cgroup.c CGROUP_WEIGHT_DFL, docs/reference/bfq.md#17-weights-and-their-changes
const WEIGHT_DEFAULT: u32 = 100;

/// The part of the tags that async requests may have, in sixteenths: while no queue is raised, and while one
/// is.
//= linux-6.12 block/bfq-iosched.c bfq_update_depths, docs/reference/bfq.md#311-request-pool-saturation
const ASYNC_PART: [u32; 2] = [8, 3];
/// The part of the tags that all writes may have, in sixteenths: while no queue is raised, and while one is.
const WRITE_PART: [u32; 2] = [12, 6];

/// Tasks, as of their requests.
impl Bfq {
    /// The task that sends `rq`, whose queues are as the request says from now on.
    #[inline(always)]
    pub(crate) fn process(&mut self, cx: &mut Cx<'_>, rq: &Request) -> TaskSlot {
        let (mut slot, mut new) = self.tasks.claim(rq.task);
        if slot == self.tasks.fallback() {
            if !self.make_room(cx) {
                return slot;
            }
            (slot, new) = self.tasks.claim(rq.task);
        }
        let (group, kind) = (self.group_in_range(rq.group), usize::from(rq.sync));
        let process = &self.processes[slot];
        let changed = process.seen[kind] != rq.prio || process.group != group || process.prio_changed[kind];
        if new || changed || process.exited {
            self.follow(cx, slot, new, rq);
        }
        slot
    }

    /// Forgets a task that has been idle for long, so that another can have its slot. Returns whether there
    /// was one.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self, cx: &mut Cx<'_>) -> bool {
        let Self { tasks, processes, links, in_service, actuators, .. } = self;
        let count = actuators.count();
        let idle_since = |slot: TaskSlot| {
            let process = &processes[slot];
            let mut own = (0..count).map(|i| &links[LinkId::from_index(slot.index() * count + i)]);
            let stays = process.requests > 0
                || process.exited
                || process.has_own_prio()
                || in_service.is_some() && own.any(|link| link.sync == *in_service);
            (!stays).then_some(process.last)
        };
        let eldest = tasks.eldest(cx.now, idle_since);
        if let Some(slot) = eldest {
            // Async queues are the group's: another task may be in service through one.
            for actuator in 0..self.actuators.count() {
                let link = self.link(slot, actuator);
                self.drop_async(cx, link);
            }
            self.exit(cx, slot);
        }
        eldest.is_some()
    }

    /// A task is new, or its request says something else than those before.
    #[inline(never)]
    fn follow(&mut self, cx: &mut Cx<'_>, slot: TaskSlot, new: bool, rq: &Request) {
        // Its group may have gone while it waited for a limit.
        let (group, kind) = (self.home(cx, rq.group), usize::from(rq.sync));
        self.meet(slot, new, rq.task, group);
        let process = &mut self.processes[slot];
        process.see_prio(kind, rq.prio);
        let repriced = core::mem::take(&mut process.prio_changed[kind]);
        if process.group != group {
            self.move_process(cx, slot, group);
        }
        if repriced {
            self.change_prio(cx, slot, rq.sync);
        }
    }

    /// If a task was not known, or had gone, nothing is remembered of it but its requests in existence.
    fn meet(&mut self, slot: TaskSlot, new: bool, task: TaskId, group: GroupId) {
        let Process { requests, exited, last, .. } = self.processes[slot];
        if new || exited {
            self.processes[slot] = Process { requests, last, ..Process::new(task, group) };
        }
    }

    /// Without hierarchy, and for numbers that are too large, there is the root.
    #[inline]
    fn group_in_range(&self, group: GroupId) -> GroupId {
        if self.setting.groups && group.index() < self.groups.len() { group } else { GroupId::ROOT }
    }

    /// The group that requests of this group belong to: it may be gone.
    fn home(&self, cx: &Cx<'_>, group: GroupId) -> GroupId {
        self.group_in_range(cx.books.groups.home(group))
    }

    /// A task has another priority for requests of one kind.
    fn change_prio(&mut self, cx: &mut Cx<'_>, slot: TaskSlot, sync: bool) {
        for actuator in 0..self.actuators.count() {
            let link = self.link(slot, actuator);
            if !sync {
                self.drop_async(cx, link);
            } else if let Some(q) = self.links[link].sync {
                self.set_prio(q, self.processes[slot].prio[1]);
            }
        }
    }

    fn drop_async(&mut self, cx: &mut Cx<'_>, link: LinkId) {
        if let Some(q) = self.links[link].asyn.take() {
            self.leave_queue(cx, q);
        }
    }

    /// A task is in another group.
    fn move_process(&mut self, cx: &mut Cx<'_>, slot: TaskSlot, group: GroupId) {
        self.processes[slot].group = group;
        for actuator in 0..self.actuators.count() {
            let link = self.link(slot, actuator);
            if self.links[link].asyn.is_some_and(|q| self.group_of(q) != group) {
                self.drop_async(cx, link);
            }
            let Some(q) = self.links[link].sync else { continue };
            let queue = &self.queues[q];
            // Other tasks may be about to come to it from the old group, by a merge.
            if !queue.shared && queue.merge_to.is_none() && queue.process_refs == 1 {
                if self.group_of(q) != group {
                    self.move_queue(cx, q, group);
                }
            } else if !self.chain_is_in(q, group) {
                self.forget_stable_target(link);
                self.links[link].sync = None;
                self.quit_queue(cx, q);
            }
        }
    }

    fn chain_is_in(&self, q: QueueId, group: GroupId) -> bool {
        let mut chain = core::iter::successors(Some(q), |&q| self.queues[q].merge_to);
        chain.all(|q| self.group_of(q) == group)
    }

    /// Puts a queue, whatever it is doing, into another group.
    fn move_queue(&mut self, cx: &mut Cx<'_>, q: QueueId, group: GroupId) {
        if self.in_service == Some(q) {
            self.expire(cx, Expire::Preempted);
        }
        self.clear_last_created(q);
        self.unposition(q);
        let counted = self.queues[q].pending_counted;
        if counted {
            self.uncount(q);
        }
        let busy = self.queues[q].busy;
        if busy {
            self.hierarchy.deactivate(self.tick(cx.now), q, false, false);
        } else {
            self.hierarchy.detach(q);
        }
        let requests = self.queues[q].requests.len() + self.queues[q].in_flight;
        self.allocated_in(self.group_of(q), |n| n - requests);
        self.hierarchy.move_to(q, group);
        self.allocated_in(group, |n| n + requests);
        if busy {
            self.hierarchy.activate(self.tick(cx.now), q, false);
        }
        if counted {
            self.count(q);
        }
        self.refresh_weight(q);
        self.note_times(cx, q);
        if !self.is_empty(q) {
            self.reposition(cx, q);
        }
    }
}

/// Changes from outside.
impl Bfq {
    pub(crate) fn change(&mut self, cx: &mut Cx<'_>, change: Control) {
        match change {
            Control::SetPrio(task, prio) => self.set_task_prio(cx, task, prio),
            Control::TaskExit(task) => {
                if let Some(slot) = self.tasks.find(task) {
                    self.exit(cx, slot);
                }
            }
            Control::SetWeight(group, _) | Control::SetPolicy(group, _) => {
                self.set_group_weight(group, cx.books.groups.weight(group));
            }
            // It has neither classes of groups nor weights of their own tasks; guarantees are the
            // controller's.
            Control::SetLeafWeight(..)
            | Control::SetClass(..)
            | Control::SetMax(..)
            | Control::SetMin(..)
            | Control::SetLatency(..) => {}
            Control::SetParent(group, parent) => self.set_parent(cx, group, parent),
            Control::GroupExit(group) => self.exit_group(cx, group),
        }
    }

    fn set_task_prio(&mut self, cx: &mut Cx<'_>, task: TaskId, prio: IoPrio) {
        let (mut slot, mut new) = self.tasks.claim(task);
        if slot == self.tasks.fallback() && self.make_room(cx) {
            (slot, new) = self.tasks.claim(task);
        }
        if slot != self.tasks.fallback() {
            self.meet(slot, new, task, GroupId::ROOT);
            self.processes[slot].set_prio(prio);
        }
    }

    /// A group of which there is an entity: neither the root, nor out of range.
    fn is_group(&self, group: GroupId) -> bool {
        group != GroupId::ROOT && self.group_in_range(group) == group
    }

    /// Weights above 1000 count as 1000.
    //= deviates bfq-group-weight
    fn set_group_weight(&mut self, group: GroupId, weight: Weight) {
        if self.is_group(group) {
            self.hierarchy.set_group_weight(group, u32::from(weight.0.get()).min(WEIGHT_MAX));
        }
    }

    /// A group without requests is inside another, and what is in it with it. One of its queues may still
    /// have the disk, or its place, and be awaited; or have requests that its task made before it came to the
    /// group.
    fn set_parent(&mut self, cx: &mut Cx<'_>, group: GroupId, parent: GroupId) {
        if !self.is_group(group) {
            return;
        }
        for q in self.all_queues() {
            if self.is_busy_inside(q, group) {
                self.take_out(cx, q);
            }
        }
        self.groups[group].youth = Youth::default();
        self.hierarchy.detach_group(group);
        let allocated = self.groups[group].allocated;
        if let Some(above) = self.hierarchy.parent(group) {
            self.allocated_in(above, |n| n - allocated);
        }
        let parent = self.group_in_range(parent);
        self.hierarchy.set_parent(group, parent);
        self.allocated_in(parent, |n| n + allocated);
        for q in self.all_queues() {
            if self.is_busy_inside(q, group) {
                self.put_back(cx, q);
            }
        }
    }

    fn is_busy_inside(&self, q: QueueId, group: GroupId) -> bool {
        self.queues[q].busy && self.is_inside(self.group_of(q), group)
    }

    /// Whether `group` is `outer`, or somewhere inside it.
    pub(crate) fn is_inside(&self, group: GroupId, outer: GroupId) -> bool {
        core::iter::successors(Some(group), |&g| self.hierarchy.parent(g)).any(|g| g == outer)
    }

    /// A busy queue leaves the hierarchy, until [`Self::put_back`] if it has requests.
    fn take_out(&mut self, cx: &mut Cx<'_>, q: QueueId) {
        let (serving, empty) = (self.in_service == Some(q), self.is_empty(q));
        match (serving, empty) {
            (true, true) => return self.expire(cx, Expire::NoMoreRequests),
            (true, false) => self.expire(cx, Expire::Preempted),
            (false, true) => return self.go_idle(cx, q),
            (false, false) => {}
        }
        self.hierarchy.deactivate(self.tick(cx.now), q, false, false);
    }

    fn put_back(&mut self, cx: &mut Cx<'_>, q: QueueId) {
        self.hierarchy.activate(self.tick(cx.now), q, false);
        self.refresh_weight(q);
        self.note_times(cx, q);
    }

    /// The group's tasks and queues are those of the group above from now on; its number may come back.
    //= deviates bfq-group-exit
    fn exit_group(&mut self, cx: &mut Cx<'_>, group: GroupId) {
        if !self.is_group(group) {
            return;
        }
        let home = self.home(cx, group);
        for i in 0..self.processes.len() {
            let slot = TaskSlot::from_index(i);
            if self.processes[slot].group != group {
                continue;
            }
            self.processes[slot].group = home;
            for actuator in 0..self.actuators.count() {
                let link = self.link(slot, actuator);
                self.drop_async(cx, link);
            }
        }
        for q in self.all_queues() {
            if self.queues[q].in_use && self.group_of(q) == group {
                self.unregister_async(q);
                self.move_queue(cx, q, home);
            }
        }
        self.hierarchy.detach_group(group);
        self.hierarchy.set_group_weight(group, WEIGHT_DEFAULT);
    }
}

/// Admission.
impl Bfq {
    /// Whether a request like this one may have a tag now.
    pub(crate) fn admits(&self, rq: &Request) -> bool {
        if !self.setting.limits_tags {
            return true;
        }
        let (in_use, limit) = self.use_and_limit(rq);
        in_use < limit && self.share_admits(rq, limit)
    }

    /// How many requests of a kind have tags, and how many may.
    fn use_and_limit(&self, rq: &Request) -> (u32, u32) {
        let raised = usize::from(self.wr_busy > 0);
        let part = |sixteenths: u32| (self.tags * sixteenths / 16).max(1);
        let [_, writes, asyncs] = self.in_use;
        //= deviates bfq-admission
        match Kind::of(rq) {
            Kind::SyncRead => (0, self.tags),
            Kind::SyncWrite => (writes + asyncs, part(WRITE_PART[raised])),
            Kind::Async => (asyncs, part(ASYNC_PART[raised])),
        }
    }

    /// How many requests of its kind may have tags before it gets one: one, if its queue has its share.
    pub(crate) fn tag_depth(&self, rq: &Request) -> u32 {
        let (_, limit) = self.use_and_limit(rq);
        if !self.setting.limits_tags || self.share_admits(rq, limit) { limit } else { 1 }
    }

    /// Whether it may have a tag with that depth, whatever is its queue's share by now.
    ///
    /// Traced on Linux 6.18: a flusher that finds its share used up by 31 writes waits until all of them have
    /// completed, though the reader that had the other half has gone meanwhile.
    pub(crate) fn admits_below(&self, rq: &Request, depth: u32) -> bool {
        !self.setting.limits_tags || self.use_and_limit(rq).0 < depth
    }

    /// Whether its queue, and each group above, has less than its share of `limit` tags.
    fn share_admits(&self, rq: &Request, limit: u32) -> bool {
        let Some(slot) = self.tasks.find(rq.task) else { return true };
        let link = &self.links[self.link(slot, self.actuator_for(rq))];
        let Some(q) = (if rq.sync { link.sync } else { link.asyn }) else { return true };
        if !self.hierarchy.is_attached(q) {
            return true;
        }
        let mut limit = u64::from(limit);
        for depth in (0..self.path(q).count()).rev() {
            let Some((group, inside)) = self.path(q).nth(depth) else { return true };
            let (weight, all, has) = match inside {
                Some(inner) => {
                    let all = self.hierarchy.total_weight(group, Class::BestEffort);
                    (self.hierarchy.group_weight(inner), all, self.groups[inner].allocated)
                }
                None => {
                    let queue = &self.queues[q];
                    let has = queue.requests.len() + queue.in_flight;
                    (self.hierarchy.weight(q), self.weight_beside(q), has)
                }
            };
            if all < u64::from(weight) {
                return true;
            }
            limit = ((limit * u64::from(weight) + all / 2) / all).max(1);
            if u64::from(has) >= limit {
                return false;
            }
        }
        true
    }

    /// From the queue up: each group above, and which of the group's groups leads to the queue.
    fn path(&self, q: QueueId) -> impl Iterator<Item = (GroupId, Option<GroupId>)> + '_ {
        let first = (self.group_of(q), None);
        core::iter::successors(Some(first), |&(group, _)| Some((self.hierarchy.parent(group)?, Some(group))))
    }

    /// The weights of the queues beside `q`; higher classes count eightfold for each class that they are
    /// above.
    fn weight_beside(&self, q: QueueId) -> u64 {
        let class = self.class(q);
        let classes = [Class::RealTime, Class::BestEffort, Class::Idle].into_iter().filter(|&c| c <= class);
        classes.fold(0, |sum, c| sum * 8 + self.hierarchy.total_weight(self.group_of(q), c))
    }

    /// A request comes into existence in `q`.
    #[inline]
    pub(crate) fn allocate(&mut self, q: QueueId, kind: Kind) {
        self.in_use[kind as usize] += 1;
        if self.has_groups() {
            self.allocated_in(self.group_of(q), |n| n + 1);
        }
    }

    /// It is no more.
    #[inline]
    pub(crate) fn release(&mut self, q: QueueId, kind: Kind) {
        self.in_use[kind as usize] -= 1;
        if self.has_groups() {
            self.allocated_in(self.group_of(q), |n| n - 1);
        }
    }

    /// Whether there are groups but the root, of which the number of requests is not kept.
    #[inline]
    fn has_groups(&self) -> bool {
        self.groups.len() > 1
    }

    /// Changes the number of requests of a group and of those above it.
    #[inline]
    fn allocated_in(&mut self, mut group: GroupId, change: impl Fn(u32) -> u32) {
        while let Some(above) = self.hierarchy.parent(group) {
            let allocated = &mut self.groups[group].allocated;
            *allocated = change(*allocated);
            group = above;
        }
    }
}
