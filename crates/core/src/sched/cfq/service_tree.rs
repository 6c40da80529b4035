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

use super::era::Layout;
use super::queue::Queue;
use super::rules::idling::Members;
use super::rules::lengths::{BusyAverage, Crowd, Lengths};
use super::shares::Shares;
use super::view::{Kind, QueueId};
use crate::groups::Groups;
use crate::parts::think_time::ThinkTime;
use crate::parts::tree::{Forest, Tree};
use crate::table::Table;
use crate::units::{Class, Duration, GroupId, Instant};

/// How far behind the last an idle-class queue is filed.
//= linux-2.6.33 block/cfq-iosched.c CFQ_IDLE_DELAY
const IDLE_DELAY: Duration = Duration::from_ms(200);
/// How far before the first a preempting queue is filed.
//= linux-2.6.33 block/cfq-iosched.c cfq_service_tree_add
const FRONT: Duration = Duration::from_secs(1);
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
    busy_average: BusyAverage,
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

impl Group {
    fn count(&self, class: Class, kind: Kind) -> u32 {
        self.trees[tree_index(class, kind)].queues.len()
    }

    /// Busy queues of a class; of IDLE those of BE, as its slices are BE's.
    fn busy(&self, class: Class) -> u32 {
        let base = if class == Class::RealTime { 0 } else { 3 };
        self.trees[base..base + 3].iter().map(|t| t.queues.len()).sum()
    }

    /// Whether any busy queue is sync; of the idle class none counts.
    pub(super) fn has_sync(&self) -> bool {
        let classes = [Class::RealTime, Class::BestEffort];
        classes.iter().any(|&c| self.count(c, Kind::Sync) + self.count(c, Kind::SyncNoIdle) > 0)
    }

    /// The average number of busy queues of a class, brought up to date.
    pub(super) fn update_busy_average(&mut self, class: Class) -> u32 {
        let busy = self.busy(class);
        self.busy_average.update(class, busy)
    }

    /// Its think time, and that of one of its trees.
    #[inline(always)]
    pub(super) fn thinks(&mut self, tree: Option<u8>) -> (Option<&mut ThinkTime>, &mut ThinkTime) {
        (tree.map(|tree| &mut self.trees[usize::from(tree)].think), &mut self.think)
    }

    /// A sync request of `queue`, which is one of its, completed.
    #[inline]
    pub(super) fn completed(&mut self, now: Instant, queue: &Queue) {
        let tree = queue.tree.map_or_else(|| tree_index(queue.prio.class, queue.kind()), usize::from);
        self.trees[tree].think.completed(now);
        self.think.completed(now);
    }

    /// What a rule sees of it.
    #[inline(always)]
    pub(super) const fn members(&self) -> Members<'_> {
        Members { queues: self.queues, dispatched: self.dispatched, think: &self.think }
    }
}

/// All groups' trees, and what is being served of them.
#[derive(Debug)]
pub(super) struct Trees {
    pub(super) layout: Layout,
    pub(super) groups: Table<GroupId, Group>,
    /// Which group is next.
    pub(super) shares: Shares,
    /// The queues in the groups' trees.
    pub(super) filed: Forest<QueueId>,
    /// Busy queues of all groups, and those of them that are sync.
    pub(super) busy: u32,
    pub(super) busy_sync: u32,
    pub(super) serving: Serving,
    /// Until when.
    serving_until: Instant,
    /// Under the controller, the group that has the disk.
    pub(super) in_force: GroupId,
}

impl Trees {
    /// Empty ones, for `queues` queues. Allocates.
    pub(super) fn new(layout: Layout, groups: u32, queues: usize, tick: Duration) -> Self {
        Self {
            layout,
            groups: Table::new(groups as usize, Group::default()),
            shares: Shares::new(groups, layout.is_flat, tick),
            filed: Forest::new(queues),
            busy: 0,
            busy_sync: 0,
            serving: Serving { class: Class::BestEffort, kind: Kind::Async },
            serving_until: Instant::from_ns(1),
            in_force: GroupId::ROOT,
        }
    }

    /// A queue has requests again, and was in no tree.
    pub(super) fn add(
        &mut self,
        groups: &Groups,
        now: Instant,
        id: QueueId,
        queue: &mut Queue,
        lengths: &Lengths,
    ) {
        let index = tree_index(queue.prio.class, queue.kind());
        let key = if index == IDLE {
            self.idle_key(id, queue, now)
        // A queue that the controller suspended in mid-slice continues first.
        } else if queue.slice_left.is_zero() {
            self.turn_key(queue, now, lengths)
        } else {
            self.front_key(queue, index, now)
        };
        #[allow(clippy::cast_possible_truncation, reason = "there are 7 trees")]
        let tree = index as u8;
        queue.tree = Some(tree);
        // The key has taken the residue into account, once.
        queue.slice_resid = 0;
        let group = &mut self.groups[queue.group];
        self.filed.insert(&mut group.trees[index].queues, id, key.as_ns());
        self.busy += 1;
        self.busy_sync += u32::from(queue.sync);
        group.queues += 1;
        if self.layout.divides && group.queues == 1 {
            self.shares.activate(groups, queue.group);
        }
    }

    /// A queue has no requests, and no slice.
    pub(super) fn remove(&mut self, groups: &mut Groups, id: QueueId, queue: &mut Queue) {
        let Some(tree) = queue.tree.take() else { return };
        self.busy -= 1;
        self.busy_sync -= u32::from(queue.sync);
        let group = &mut self.groups[queue.group];
        self.filed.remove(&mut group.trees[usize::from(tree)].queues, id);
        group.queues -= 1;
        if group.queues > 0 {
            return;
        }
        // What was left of the workload slice is not kept for a group that leaves: when it comes back, kinds
        // compete anew.
        group.saved = None;
        if self.layout.divides {
            self.shares.deactivate(queue.group);
            if !self.shares.is_empty() {
                groups.dequeued(queue.group);
            }
        }
    }

    /// The group in which a queue is to be filed instead of where it is. Without isolation, one that seeks is
    /// the root's, and one that does no more its own group's.
    //= linux-2.6.33 block/cfq-iosched.c cfq_service_tree_add, group_isolation
    #[inline]
    pub(super) fn other_group(&self, queue: &Queue) -> Option<GroupId> {
        if !self.layout.moves_seeky {
            return None;
        }
        let to = match queue.kind() {
            Kind::Sync => queue.home,
            Kind::SyncNoIdle => GroupId::ROOT,
            Kind::Async => return None,
        };
        (queue.group != to).then_some(to)
    }

    /// Puts a busy queue where it belongs in the tree of its class and kind, which may have changed.
    pub(super) fn file(
        &mut self,
        now: Instant,
        id: QueueId,
        queue: &mut Queue,
        place: Place,
        lengths: &Lengths,
    ) {
        let index = tree_index(queue.prio.class, queue.kind());
        let key = if index == IDLE {
            self.idle_key(id, queue, now)
        } else if place == Place::Front {
            self.front_key(queue, index, now)
        } else {
            let key = self.turn_key(queue, now, lengths);
            queue.slice_resid = 0;
            key
        };
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

    fn idle_key(&self, id: QueueId, queue: &Queue, now: Instant) -> Instant {
        let group = &self.groups[queue.group];
        let last = self.filed.last(&group.trees[IDLE].queues).filter(|&l| l != id);
        last.map_or(now, |l| Instant::from_ns(self.filed.key(l))) + IDLE_DELAY
    }

    /// Now, put off for others with longer slices, and earlier by what the queue has to get from its last
    /// slice.
    fn turn_key(&self, queue: &Queue, now: Instant, lengths: &Lengths) -> Instant {
        let others = i64::from(self.groups[queue.group].queues) - 1;
        let offset = lengths.offset(queue.sync, queue.prio, others).saturating_sub(queue.slice_resid);
        Instant::from_ns(now.as_ns().saturating_add_signed(offset).max(1))
    }

    /// The queue to be served next, and whether its kind was chosen anew. There must be one.
    pub(super) fn choose(&mut self, now: Instant, lengths: &Lengths) -> (QueueId, bool) {
        let group = if self.layout.divides {
            self.shares.choose().expect("a request waits, so a group is active")
        } else {
            self.in_force
        };
        let is_new = self.choose_workload(now, group, lengths);
        let tree = &self.groups[group].trees[tree_index(self.serving.class, self.serving.kind)].queues;
        let first = self.filed.first(tree).expect("a request waits, so a queue is in the tree chosen for it");
        (first, is_new)
    }

    /// Chooses class, kind and workload slice. Answers whether the kind was chosen anew.
    fn choose_workload(&mut self, now: Instant, of: GroupId, lengths: &Lengths) -> bool {
        let group = &self.groups[of];
        let before = self.serving.class;
        let mut restored = before;
        // In the past: without a saved slice a kind is chosen anew.
        self.serving_until = now - Duration::from_ns(1);
        if let Some((left, serving)) = group.saved {
            self.serving_until = now + left;
            self.serving = serving;
            restored = serving.class;
        }
        let classes = [Class::RealTime, Class::BestEffort];
        let Some(class) = classes.into_iter().find(|&c| group.busy(c) > 0) else {
            self.serving.class = Class::Idle;
            self.serving_until = now + lengths.idle_workload();
            return false;
        };
        self.serving.class = class;
        // From 3.x on, a kind is kept only within its class.
        let may_keep = self.layout.keeps_kind || class == restored;
        if may_keep && now <= self.serving_until && group.count(class, self.serving.kind) > 0 {
            return false;
        }
        self.serving.kind = self.earliest_kind(group, class);
        self.serving_until = now + self.workload_slice(of, class, self.serving.kind, lengths);
        true
    }

    /// The kind whose first queue has the smallest key.
    fn earliest_kind(&self, group: &Group, class: Class) -> Kind {
        let first = |kind: Kind| self.filed.first(&group.trees[tree_index(class, kind)].queues);
        let keyed = Kind::ALL.into_iter().filter_map(|k| Some((self.filed.key(first(k)?), k)));
        // Of equal keys the first: async, then sync without idling, then sync
        // (docs/reference/cfq.md#54-choosing-group-class-and-type).
        keyed.min_by_key(|&(key, _)| key).map_or(Kind::SyncNoIdle, |(_, kind)| kind)
    }

    fn workload_slice(&self, of: GroupId, class: Class, kind: Kind, lengths: &Lengths) -> Duration {
        let group = &self.groups[of];
        let crowd = Crowd {
            of_kind: group.count(class, kind),
            of_class: group.busy(class),
            asynchronous: group.count(Class::RealTime, Kind::Async)
                + group.count(Class::BestEffort, Kind::Async),
            all: self.busy,
        };
        lengths.workload(class, kind, &crowd, group.busy_average, self.part_of(of, lengths.target()))
    }

    /// A group's part of the time in which everyone should have a turn.
    pub(super) fn part_of(&self, group: GroupId, all: Duration) -> Duration {
        if self.layout.divides { self.shares.part_of(group, all) } else { all }
    }

    /// Remembers what is left of the workload slice, for the group's next turn.
    pub(super) fn save_workload(&mut self, group: GroupId, now: Instant) {
        let left = self.serving_until.saturating_since(now);
        self.groups[group].saved = (!left.is_zero()).then_some((left, self.serving));
    }

    /// The first queue of all, in order of groups, classes and kinds.
    pub(super) fn first(&self) -> Option<QueueId> {
        let group = if self.layout.divides { self.shares.first()? } else { self.in_force };
        self.groups[group].trees.iter().find_map(|tree| self.filed.first(&tree.queues))
    }
}
