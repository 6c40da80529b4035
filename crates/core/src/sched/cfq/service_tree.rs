//! The order of turns: the queues of a group, in trees by class and kind.
//!
//! ```text
//!             Async   SyncNoIdle   Sync
//!     RT      tree    tree         tree       RT before BE before IDLE, strictly
//!     BE      tree    tree         tree       within a class each kind gets a *workload slice* in turn,
//!     IDLE          one tree                  within a tree each queue a slice, by key
//! ```
//!
//! A key is a time: now, plus an offset that is larger for lower priorities and more queues, less what was
//! left of the last slice. The kind that comes next is that whose first queue has the smallest key. Its
//! workload slice is its queues' part of the group's slice: with 3 sync and 1 seeky queue and 300 ms, sync
//! queues get 225 ms, then the seeky one 75 ms. Async queues get 40 % of their part, and share their part
//! with all queues.
//!
//! A queue stays in its tree, and counts as busy, until its slice is over, even when its last request has
//! left.
//!
//! All this is for each group; with several, the group is chosen first (shares.rs).
//!
//= linux-2.6.33 block/cfq-iosched.c cfq_service_tree_add, choose_service_tree

use super::queue::{Kind, Queue, QueueId};
use super::{Cfq, mul_div};
use crate::elevator::Cx;
use crate::parts::think_time::ThinkTime;
use crate::parts::tree::Tree;
use crate::units::{Class, Duration, GroupId, Instant};

/// How far behind the last an idle-class queue is filed.
//= linux-2.6.33 block/cfq-iosched.c CFQ_IDLE_DELAY
const IDLE_DELAY: Duration = Duration::from_ms(200);
/// How far before the first a preempting queue is filed.
//= linux-2.6.33 block/cfq-iosched.c cfq_service_tree_add
const FRONT: Duration = Duration::from_secs(1);
/// A workload slice has at least this many ticks.
//= linux-2.6.33 block/cfq-iosched.c CFQ_MIN_TT
const MIN_TICKS: u64 = 2;
/// The old average's weight in the average of busy queues, plus one.
//= linux-2.6.33 block/cfq-iosched.c cfq_hist_divisor
const HISTORY: u32 = 4;

/// The index of the idle class's tree.
const IDLE: usize = 6;
/// How many trees a group has.
pub(super) const TREES: usize = 7;

/// Queues by key.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ServiceTree {
    pub(super) queues: Tree,
    /// Of all tasks whose queues are here.
    pub(super) think: ThinkTime,
}

/// Queues that share the disk as one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Group {
    pub(super) trees: [ServiceTree; TREES],
    /// Busy queues.
    pub(super) queues: u32,
    /// Of RT and of BE queues.
    busy_average: [u32; 2],
    /// Requests issued and not completed.
    pub(super) dispatched: u32,
    pub(super) think: ThinkTime,
    /// What was left of the workload slice when the last queue's slice ended.
    pub(super) saved: Option<(Duration, Serving)>,
}

/// What is being served.
#[derive(Clone, Copy, Debug)]
pub(super) struct Serving {
    pub(super) class: Class,
    pub(super) kind: Kind,
}

/// Where to file a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    /// Its place by key, for its turn.
    Turn,
    /// Before everyone else in its tree.
    Front,
}

pub(super) const fn tree_index(class: Class, kind: Kind) -> usize {
    match class {
        Class::RealTime => kind as usize,
        Class::BestEffort => 3 + kind as usize,
        Class::Idle => IDLE,
    }
}

/// The index of a class in `busy_average`; IDLE counts as BE.
const fn rt_or_be(class: Class) -> usize {
    !matches!(class, Class::RealTime) as usize
}

impl Group {
    fn count(&self, class: Class, kind: Kind) -> u32 {
        self.trees[tree_index(class, kind)].queues.len()
    }

    /// Busy queues of a class; of IDLE those of BE, as its slices are BE's.
    fn busy(&self, class: Class) -> u32 {
        let base = 3 * rt_or_be(class);
        self.trees[base..base + 3].iter().map(|t| t.queues.len()).sum()
    }

    /// Whether any busy queue is sync; of the idle class none counts.
    pub(super) fn has_sync(&self) -> bool {
        let classes = [Class::RealTime, Class::BestEffort];
        classes.iter().any(|&c| self.count(c, Kind::Sync) + self.count(c, Kind::SyncNoIdle) > 0)
    }

    /// The average number of busy queues of a class, brought up to date: it grows fast and decays slowly.
    //= linux-2.6.33 block/cfq-iosched.c cfq_group_get_avg_queues
    pub(super) fn update_busy_average(&mut self, class: Class) -> u32 {
        let busy = self.busy(class);
        let average = &mut self.busy_average[rt_or_be(class)];
        *average = ((HISTORY - 1) * busy.max(*average) + busy.min(*average) + HISTORY / 2) / HISTORY;
        *average
    }
}

impl Cfq {
    /// A queue has requests again, and was in no tree.
    pub(super) fn add_busy(&mut self, cx: &mut Cx<'_>, id: QueueId) {
        if self.moves_seeky {
            self.change_group(cx, id);
        }
        let queue = &self.queues[id];
        let (index, sync) = (tree_index(queue.prio.class, queue.kind()), queue.sync);
        let key = if index == IDLE {
            self.idle_key(id, cx.now)
        // A queue that the controller suspended in mid-slice continues first.
        } else if queue.slice_left.is_zero() {
            self.turn_key(queue, cx.now)
        } else {
            self.front_key(queue, index, cx.now)
        };
        let queue = &mut self.queues[id];
        #[allow(clippy::cast_possible_truncation, reason = "there are 7 trees")]
        let tree = index as u8;
        queue.tree = Some(tree);
        // The key has taken the residue into account, once.
        queue.slice_resid = 0;
        let of = queue.group;
        let group = &mut self.groups[of];
        self.filed.insert(&mut group.trees[index].queues, id, key.as_ns());
        self.busy_queues += 1;
        self.busy_sync_queues += u32::from(sync);
        group.queues += 1;
        if self.divides && group.queues == 1 {
            self.shares.activate(&cx.books.groups, of);
        }
    }

    /// A queue has no requests, and no slice.
    pub(super) fn remove_busy(&mut self, cx: &mut Cx<'_>, id: QueueId) {
        self.leave_position(id);
        let queue = &mut self.queues[id];
        let Some(tree) = queue.tree.take() else { return };
        self.busy_queues -= 1;
        self.busy_sync_queues -= u32::from(queue.sync);
        let of = queue.group;
        let group = &mut self.groups[of];
        self.filed.remove(&mut group.trees[usize::from(tree)].queues, id);
        group.queues -= 1;
        if group.queues > 0 {
            return;
        }
        // What was left of the workload slice is not kept for a group that leaves: when it comes back, kinds
        // compete anew.
        group.saved = None;
        if self.divides {
            self.shares.deactivate(of);
            if !self.shares.is_empty() {
                cx.books.groups.dequeued(of);
            }
        }
    }

    /// Without isolation, files a queue that seeks in the root, and one that does no more in its own group
    /// again. It keeps the residue of its last slice.
    //= linux-2.6.33 block/cfq-iosched.c cfq_service_tree_add, group_isolation
    fn change_group(&mut self, cx: &mut Cx<'_>, id: QueueId) {
        let queue = &self.queues[id];
        let (from, to) = match queue.kind() {
            Kind::Async => return,
            Kind::SyncNoIdle => (queue.group, GroupId::ROOT),
            Kind::Sync => (queue.group, queue.home),
        };
        if from == to {
            return;
        }
        // Filing uses the residue up; the queue is only moved here, so it keeps it.
        let (residue, was_busy) = (queue.slice_resid, queue.is_busy());
        self.groups[from].dispatched -= queue.dispatched;
        self.groups[to].dispatched += queue.dispatched;
        if was_busy {
            self.remove_busy(cx, id);
        }
        self.queues[id].group = to;
        if was_busy {
            self.add_busy(cx, id);
            self.queues[id].slice_resid = residue;
            self.refresh_position(cx.requests, id);
        }
    }

    /// Puts a busy queue where it belongs in the tree of its class and kind, which may have changed.
    pub(super) fn file(&mut self, cx: &mut Cx<'_>, id: QueueId, place: Place) {
        if self.moves_seeky {
            self.change_group(cx, id);
        }
        let now = cx.now;
        let queue = &self.queues[id];
        let index = tree_index(queue.prio.class, queue.kind());
        let key = if index == IDLE {
            self.idle_key(id, now)
        } else if place == Place::Front {
            self.front_key(queue, index, now)
        } else {
            let key = self.turn_key(queue, now);
            self.queues[id].slice_resid = 0;
            key
        };
        let queue = &mut self.queues[id];
        // The key is a time, so a queue whose kind changed can take it along into the other tree.
        let Some(old) = queue.tree.map(usize::from) else { return };
        let trees = &mut self.groups[queue.group].trees;
        if old != index {
            #[allow(clippy::cast_possible_truncation, reason = "there are 7 trees")]
            let tree = index as u8;
            queue.tree = Some(tree);
            self.filed.remove(&mut trees[old].queues, id);
            self.filed.insert(&mut trees[index].queues, id, key.as_ns());
        } else if self.filed.key(id) != key.as_ns() {
            self.filed.set_key(&mut trees[index].queues, id, key.as_ns());
        }
    }

    fn front_key(&self, queue: &Queue, index: usize, now: Instant) -> Instant {
        let first = self.filed.first(&self.groups[queue.group].trees[index].queues);
        first.map_or(now, |q| Instant::from_ns(self.filed.key(q))) - FRONT
    }

    fn idle_key(&self, id: QueueId, now: Instant) -> Instant {
        let group = &self.groups[self.queues[id].group];
        let last = self.filed.last(&group.trees[IDLE].queues).filter(|&l| l != id);
        last.map_or(now, |l| Instant::from_ns(self.filed.key(l))) + IDLE_DELAY
    }

    /// Now, put off by how much shorter this queue's slices are than the longest, for each other queue; and
    /// earlier by what it has to get from its last slice. A queue that was not busy is not counted yet.
    //= linux-2.6.33 block/cfq-iosched.c cfq_slice_offset
    fn turn_key(&self, queue: &Queue, now: Instant) -> Instant {
        let shorter = self.slices[1][0].as_ns().cast_signed() - self.prio_slice(queue).as_ns().cast_signed();
        let others = i64::from(self.groups[queue.group].queues) - 1;
        let offset = others.saturating_mul(shorter).saturating_sub(queue.slice_resid);
        Instant::from_ns(now.as_ns().saturating_add_signed(offset).max(1))
    }

    /// The queue to be served next. There must be one.
    pub(super) fn choose_queue(&mut self, now: Instant) -> QueueId {
        let group = if self.divides {
            self.shares.choose().expect("a request waits, so a group is active")
        } else {
            self.in_force
        };
        self.choose_workload(now, group);
        let tree = &self.groups[group].trees[tree_index(self.serving.class, self.serving.kind)].queues;
        self.filed.first(tree).expect("a request waits, so a queue is in the tree chosen for it")
    }

    /// Class, kind and workload slice.
    fn choose_workload(&mut self, now: Instant, of: GroupId) {
        let group = &self.groups[of];
        let before = self.serving.class;
        let mut restored = before;
        // In the past: without a saved slice a kind is chosen anew.
        self.workload_expires = now - Duration::from_ns(1);
        if let Some((left, serving)) = group.saved {
            self.workload_expires = now + left;
            self.serving = serving;
            restored = serving.class;
        }
        let classes = [Class::RealTime, Class::BestEffort];
        let Some(class) = classes.into_iter().find(|&c| group.busy(c) > 0) else {
            self.serving.class = Class::Idle;
            self.workload_expires = now + self.tick;
            return;
        };
        self.serving.class = class;
        // From 3.x on, a kind is kept only within its class.
        let may_keep = !self.config.era.since_3() || class == restored;
        if may_keep && now <= self.workload_expires && group.count(class, self.serving.kind) > 0 {
            return;
        }
        self.serving.kind = self.earliest_kind(group, class);
        self.workload_expires = now + self.workload_slice(of, class, self.serving.kind);
        self.noidle_requires_idle = false;
    }

    /// The kind whose first queue has the smallest key.
    fn earliest_kind(&self, group: &Group, class: Class) -> Kind {
        let first = |kind: Kind| self.filed.first(&group.trees[tree_index(class, kind)].queues);
        let keyed = Kind::ALL.into_iter().filter_map(|k| Some((self.filed.key(first(k)?), k)));
        // Of equal keys the first: async, then sync without idling, then sync
        // (docs/reference/cfq.md#54-choosing-group-class-and-type).
        keyed.min_by_key(|&(key, _)| key).map_or(Kind::SyncNoIdle, |(_, kind)| kind)
    }

    fn workload_slice(&self, of: GroupId, class: Class, kind: Kind) -> Duration {
        let (config, group) = (&self.config, &self.groups[of]);
        let busy = group.busy_average[rt_or_be(class)].max(group.busy(class));
        let part = self.group_slice(of) * u64::from(group.count(class, kind)) / u64::from(busy);
        let slice = if kind == Kind::Async {
            // Async queues get no more than their part of the latency target among all busy queues, whichever
            // groups these are in; then as much less as an async slice is shorter than a sync one.
            let queues = group.count(Class::RealTime, kind) + group.count(Class::BestEffort, kind);
            let fair = config.target_latency * u64::from(queues) / u64::from(self.busy_queues);
            mul_div(part.min(fair), config.slice_async, config.slice_sync)
        } else {
            part.max(config.slice_idle * 2)
        };
        self.whole_ticks(slice).max(self.tick * MIN_TICKS)
    }

    /// A group's part of the time in which everyone should have a turn.
    pub(super) fn group_slice(&self, group: GroupId) -> Duration {
        let all = self.config.target_latency;
        if self.divides { self.shares.part_of(group, all) } else { all }
    }

    /// Remembers what is left of the workload slice, for the group's next turn.
    pub(super) fn save_workload(&mut self, group: GroupId, now: Instant) {
        let left = self.workload_expires.saturating_since(now);
        self.groups[group].saved = (!left.is_zero()).then_some((left, self.serving));
    }
}
