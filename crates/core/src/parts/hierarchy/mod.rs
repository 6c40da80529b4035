//! Groups in groups, each shared by weight: B-WF2Q+ at every level.
//!
//! A leaf is what is served in the end, a queue of requests, say; a group holds leaves and groups. Every
//! group has a *schedule* of its children: one [service tree](super::wf2q) for each class, of which RT goes
//! before BE and BE before IDLE, but that IDLE has a turn when it had none for 200 ms
//! ([`Hierarchy::set_idle_turns`]). The root has a schedule, and has no parent.
//!
//! ```text
//!   root ─┬─ a   10                      a leaf's share is the product of the shares on its way up:
//!         └─ G  100 ─┬─ b  80            a 1/11, b 10/11 * 8/9, c 10/11 * 1/9
//!                    └─ c  10
//! ```
//!
//! One leaf is in service at a time, and with it the groups above it. It is chosen with a *budget* of
//! sectors, and what it has been given is its *service*; both are the caller's to set and to compare.
//! [`Hierarchy::select`] looks for the best child of the root, and follows it down: each group keeps its
//! `next`, the child to serve next as things stood when something last changed in there. A group asks for the
//! budget of its `next`. It waits in its parent's tree exactly as long as it has a `next`, even while it is
//! in service: another of its children may be next.
//!
//! ```text
//!   activate ──► (waits) ──► select ──► served … ──► expire_requeue or deactivate ──► reset_service
//!                   ▲  │ deactivate                          │
//!                   └──┴─────────────────────────────────────┘
//! ```
//!
//! Each event is a walk from a leaf up, and ends where nothing changes any more; the walk of an expiry always
//! gets to the root, for every group in service must pay. At each level that it comes through, `next` is
//! looked up afresh, so the selected entity is the one that B-WF2Q+ chooses at that moment. Virtual time
//! jumps to the first start when no entity is in service, so that one is eligible.
//!
//! A leaf that stops early pays for what it was given, not for its budget: its finish is computed again. If
//! it was served ahead of its share it stays on the idle tree, keeping its weight in the sum, until virtual
//! time gets there. With *credit* (it was only a little late, and kept its remaining budget) it resumes where
//! it stopped, in the past if need be, but with a finish not before now. New weights and classes are stored
//! and take effect when the leaf or group is next put on a tree, for what is on one is sorted by them; or at
//! once, by [`Hierarchy::reweigh`].
//!
//! It does not know requests, when a leaf should stop, or what raises a weight. It does not check that
//! weights are within a user's range (they are at least 1 here), and a group with children, once active,
//! cannot change its parent.
//!
//! [`Hierarchy::set_kernel_forget`] and [`Hierarchy::set_kernel_next`] bring back the kernel's ways where we
//! know better, for comparisons.

//= linux-6.12 block/bfq-wf2q.c, docs/reference/bfq.md#16-hierarchy
//= paper: J. Bennett, H. Zhang 1997, "Hierarchical packet fair queueing algorithms"

mod check;
mod steps;

use self::steps::tree_of;
use super::wf2q::{ServiceTree, Standing, Wf2q, later};
use crate::table::Table;
use crate::units::{Class, Duration, GroupId, Id, Instant, id};
use core::marker::PhantomData;

/// The IDLE class has a turn when it had none for longer than this.
//= linux-6.12 block/bfq-wf2q.c BFQ_CL_IDLE_TIMEOUT, docs/reference/bfq.md#15-choosing-across-classes
const IDLE_TURN: Duration = Duration::from_ms(200);
/// A group's weight until it is set.
//= linux-6.12 block/bfq-cgroup.c CGROUP_WEIGHT_DFL, docs/reference/bfq.md#17-weights-and-their-changes
const GROUP_WEIGHT: u32 = 100;
/// A leaf's weight until it is placed: that of best effort, level 4.
const LEAF_WEIGHT: u32 = 40;

id! {
    /// A child of some group: the leaves come first, then the groups.
    Entity(u32)
}

const CLASSES: [Class; 3] = [Class::RealTime, Class::BestEffort, Class::Idle];

/// What a leaf or group has, apart from its times.
#[derive(Clone, Copy, Debug)]
struct Share {
    /// The group that it is a child of.
    group: GroupId,
    class: Class,
    new_class: Class,
    base: u32,
    new_base: u32,
    /// By what the base is multiplied once it is applied.
    raise: u32,
    /// Weight or class wait to be applied.
    dirty: bool,
    budget: u32,
    service: u32,
}

/// The state of the turns among a group's children.
#[derive(Clone, Copy, Debug)]
struct Schedule {
    trees: [ServiceTree; 3],
    in_service: Option<Entity>,
    /// The root has none: its choice is made when it is asked for.
    next: Option<Entity>,
    /// When the IDLE class had its last turn, or wanted none.
    idle_turn: Option<Instant>,
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub(crate) struct Hierarchy<I> {
    nodes: Wf2q<Entity>,
    shares: Table<Entity, Share>,
    schedules: Table<GroupId, Schedule>,
    /// How many entities are leaves.
    leaves: u32,
    /// From `select` to `reset_service`.
    serving: Option<Entity>,
    /// Where virtual times start.
    origin: u64,
    idle_turns: bool,
    kernel_next: bool,
    id: PhantomData<I>,
}

impl<I: Id> Hierarchy<I> {
    /// Leaves `0..leaves` and groups `0..groups`, the root included; all inactive, every group below the
    /// root. Allocates.
    #[must_use]
    pub(crate) fn new(leaves: usize, groups: u32) -> Self {
        Self::starting_at(leaves, groups, 0)
    }

    /// Makes a hierarchy as [`Self::new`] does, with all virtual times starting at `origin`. The origin
    /// changes no decision.
    ///
    /// # Panics
    /// If leaves and groups together are 2^32 or more.
    #[must_use]
    pub(crate) fn starting_at(leaves: usize, groups: u32, origin: u64) -> Self {
        let groups = groups.max(1) as usize;
        assert!(leaves + groups < u32::MAX as usize, "too many leaves");
        let leaf = Share {
            group: GroupId::ROOT,
            class: Class::BestEffort,
            new_class: Class::BestEffort,
            base: LEAF_WEIGHT,
            new_base: LEAF_WEIGHT,
            raise: 1,
            dirty: false,
            budget: 0,
            service: 0,
        };
        let schedule =
            Schedule { trees: [ServiceTree::new(origin); 3], in_service: None, next: None, idle_turn: None };
        let mut this = Self {
            nodes: Wf2q::new(leaves + groups, origin),
            shares: Table::new(leaves + groups, leaf),
            schedules: Table::new(groups, schedule),
            leaves: Entity::from_index(leaves).0,
            serving: None,
            origin,
            idle_turns: true,
            kernel_next: false,
            id: PhantomData,
        };
        for i in 0..leaves + groups {
            let e = Entity::from_index(i);
            let weight = if i < leaves { LEAF_WEIGHT } else { GROUP_WEIGHT };
            (this.shares[e].base, this.shares[e].new_base) = (weight, weight);
            this.weigh(e, weight);
        }
        this
    }

    /// Whether the IDLE class has a turn when it had none for 200 ms; if not, it waits for all others.
    /// Default on.
    pub(crate) const fn set_idle_turns(&mut self, on: bool) {
        self.idle_turns = on;
    }

    /// Searches for the next entity as the kernel does: see [`Wf2q::set_kernel_search`]. Default off.
    pub(crate) const fn set_kernel_search(&mut self, on: bool) {
        self.nodes.set_kernel_search(on);
    }

    /// Idle entities are forgotten as the kernel does it: see [`Wf2q::set_kernel_forget`]. Default off.
    pub(crate) const fn set_kernel_forget(&mut self, on: bool) {
        self.nodes.set_kernel_forget(on);
    }

    /// `next` is kept as the kernel keeps it. To be set before anything is active. Default off. When on:
    ///
    /// - the root has a `next` too;
    /// - an entity that is activated or requeued is compared with the `next` of before, and if it wins there
    ///   is no look-up (so virtual time does not jump to the first to be activated, and what became eligible
    ///   meanwhile has to wait); a deactivation on expiry leaves another `next` as it is;
    /// - a group leaves its parent's tree on selection when it has one active child, whatever that one has
    ///   below it, and the parent's `next` is not looked up again; it is back on the tree after a change
    ///   below, even if no child there waits;
    /// - a group in service that is requeued when a child becomes active pays for its service then and again
    ///   on expiry;
    /// - a leaf of a lower class outweighs others by weight;
    /// - the IDLE class's turn is used up by the look-up that finds it, even if `next` is looked up again
    ///   before it is selected.
    pub(crate) const fn set_kernel_next(&mut self, on: bool) {
        self.kernel_next = on;
    }

    // Structure.

    /// Puts a group below another, before anything is active in it. Groups are below the root until then.
    ///
    /// # Panics
    /// If `group` is the root, is not detached, or would be below itself.
    pub(crate) fn set_parent(&mut self, group: GroupId, parent: GroupId) {
        let e = self.entity(group).expect("the root has no parent");
        assert!(self.nodes.standing(e) == Standing::Detached, "a new parent for an active group");
        let mut above = Some(parent);
        while let Some(g) = above {
            assert!(g != group, "a group below itself");
            above = self.parent(g);
        }
        self.shares[e].group = parent;
    }

    /// The group's group; `None` for the root.
    #[inline]
    #[must_use]
    pub(crate) fn parent(&self, group: GroupId) -> Option<GroupId> {
        self.entity(group).map(|e| self.shares[e].group)
    }

    /// Sets a leaf up anew: its group, class and weight at once, not raised; its times, budget and service
    /// start again.
    ///
    /// # Panics
    /// If it is not detached or still in service.
    pub(crate) fn place(&mut self, leaf: I, group: GroupId, class: Class, weight: u32) {
        let e = Self::leaf(leaf);
        self.assert_movable(e);
        let base = weight.max(1);
        self.shares[e] = Share {
            group,
            class,
            new_class: class,
            base,
            new_base: base,
            raise: 1,
            dirty: false,
            budget: 0,
            service: 0,
        };
        self.nodes.set_times(e, self.origin, self.origin);
        self.weigh(e, base);
    }

    /// Puts a leaf into another group. It keeps everything else.
    ///
    /// # Panics
    /// If it is not detached or still in service.
    pub(crate) fn move_to(&mut self, leaf: I, group: GroupId) {
        let e = Self::leaf(leaf);
        self.assert_movable(e);
        self.shares[e].group = group;
    }

    fn assert_movable(&self, e: Entity) {
        assert!(self.nodes.standing(e) == Standing::Detached, "it is still attached where it was");
        assert!(self.serving != Some(e), "it is still in service");
    }

    /// Whether a leaf in the group waits or is in service.
    #[must_use]
    pub(crate) fn is_group_active(&self, group: GroupId) -> bool {
        let schedule = &self.schedules[group];
        schedule.next.is_some() || schedule.in_service.is_some()
    }

    /// The leaf's group.
    #[inline]
    #[must_use]
    pub(crate) fn group(&self, leaf: I) -> GroupId {
        self.shares[Self::leaf(leaf)].group
    }

    // Weights.

    /// Gives a leaf another class and weight, when it is next put on a tree or by
    /// [`Hierarchy::apply_weight`]. The weight is at least 1.
    pub(crate) fn set_weight(&mut self, leaf: I, class: Class, base: u32) {
        let share = &mut self.shares[Self::leaf(leaf)];
        (share.new_class, share.new_base, share.dirty) = (class, base.max(1), true);
    }

    /// Multiplies a leaf's weight by `factor` (at least 1), at the same time as [`Hierarchy::set_weight`]
    /// would.
    pub(crate) fn set_raise(&mut self, leaf: I, factor: u32) {
        let share = &mut self.shares[Self::leaf(leaf)];
        (share.raise, share.dirty) = (factor.max(1), true);
    }

    /// Applies a leaf's weight now, wherever it is, without new times. A new class waits until later.
    pub(crate) fn apply_weight(&mut self, leaf: I) {
        let e = Self::leaf(leaf);
        let share = &mut self.shares[e];
        share.base = share.new_base;
        share.dirty = share.new_class != share.class;
        let weight = share.base.saturating_mul(share.raise);
        self.weigh(e, weight);
    }

    /// Gives a group another weight (at least 1), when it is next put on a tree.
    ///
    /// # Panics
    /// If it is the root, which has none.
    pub(crate) fn set_group_weight(&mut self, group: GroupId, weight: u32) {
        let e = self.entity(group).expect("the root has no weight");
        let share = &mut self.shares[e];
        (share.new_base, share.dirty) = (weight.max(1), true);
    }

    /// Gives a leaf another class and weight (at least 1) at once, with new times: what it is ahead of its
    /// share by, or behind, stays the same amount of service. So it neither waits for what was counted by the
    /// old weight, nor gains.
    pub(crate) fn reweigh(&mut self, now: Instant, leaf: I, class: Class, weight: u32) {
        self.reweigh_entity(now, Self::leaf(leaf), class, weight);
    }

    /// Gives a group another class and weight at once, as [`Self::reweigh`] does for a leaf.
    ///
    /// # Panics
    /// If it is the root, which has no weight.
    pub(crate) fn reweigh_group(&mut self, now: Instant, group: GroupId, class: Class, weight: u32) {
        let e = self.entity(group).expect("the root has no weight");
        self.reweigh_entity(now, e, class, weight);
    }

    /// The leaf's weight in force, raised if it is.
    #[inline]
    #[must_use]
    pub(crate) fn weight(&self, leaf: I) -> u32 {
        self.nodes.weight(Self::leaf(leaf))
    }

    /// The leaf's weight in force, not raised.
    #[inline]
    #[must_use]
    pub(crate) fn base_weight(&self, leaf: I) -> u32 {
        self.shares[Self::leaf(leaf)].base
    }

    /// Returns the factor of the leaf's weight, as last set; in force or not.
    #[cfg(test)]
    pub(crate) fn raise(&self, leaf: I) -> u32 {
        self.shares[Self::leaf(leaf)].raise
    }

    /// The leaf's class in force.
    #[inline]
    #[must_use]
    pub(crate) fn class(&self, leaf: I) -> Class {
        self.shares[Self::leaf(leaf)].class
    }

    /// The group's weight in force; for the root, which has none, the default of 100.
    #[inline]
    #[must_use]
    pub(crate) fn group_weight(&self, group: GroupId) -> u32 {
        self.entity(group).map_or(GROUP_WEIGHT, |e| self.nodes.weight(e))
    }

    // Budget and service.

    /// Returns the service that the leaf may be given in one stay in service, in sectors.
    #[inline]
    #[must_use]
    pub(crate) fn budget(&self, leaf: I) -> u32 {
        self.shares[Self::leaf(leaf)].budget
    }

    /// Sets the budget. Sorts nothing: it is for a leaf in no tree, or followed by [`Hierarchy::requeue`].
    #[inline]
    pub(crate) fn set_budget(&mut self, leaf: I, budget: u32) {
        self.shares[Self::leaf(leaf)].budget = budget;
    }

    /// Returns the service that the leaf was given and has not paid for, in sectors.
    #[inline]
    #[must_use]
    pub(crate) fn service(&self, leaf: I) -> u32 {
        self.shares[Self::leaf(leaf)].service
    }

    /// Returns what is left of the leaf's budget, in sectors; negative when it was given more.
    #[inline]
    #[must_use]
    pub(crate) fn left(&self, leaf: I) -> i64 {
        let share = &self.shares[Self::leaf(leaf)];
        i64::from(share.budget) - i64::from(share.service)
    }

    /// Sets the service.
    #[inline]
    pub(crate) fn set_service(&mut self, leaf: I, service: u32) {
        self.shares[Self::leaf(leaf)].service = service;
    }

    // Events.

    /// A leaf has work again. `credit`: it resumes where it stopped, if that is in the past.
    ///
    /// # Panics
    /// If it is active or in service.
    pub(crate) fn activate(&mut self, now: Instant, leaf: I, credit: bool) {
        let e = Self::leaf(leaf);
        let standing = self.nodes.standing(e);
        assert!(matches!(standing, Standing::Detached | Standing::Idle), "{leaf:?} is {standing:?} already");
        self.walk_up(now, e, credit, false);
    }

    /// An active leaf that is not in service got another budget.
    ///
    /// # Panics
    /// If it is not active.
    pub(crate) fn requeue(&mut self, now: Instant, leaf: I) {
        let e = Self::leaf(leaf);
        assert!(self.nodes.standing(e) == Standing::Active, "{leaf:?} is not active");
        self.walk_up(now, e, false, false);
    }

    /// The leaf in service gives way and still has work. [`Hierarchy::reset_service`] follows.
    ///
    /// # Panics
    /// If it is not in service.
    pub(crate) fn expire_requeue(&mut self, now: Instant, leaf: I) {
        let e = Self::leaf(leaf);
        assert!(self.serving == Some(e), "{leaf:?} is not in service");
        self.walk_up(now, e, false, true);
    }

    /// A leaf has nothing more to do. `may_idle`: it may wait on the idle tree for virtual time. `on_expiry`:
    /// it was in service, and [`Hierarchy::reset_service`] follows. Nothing happens to one that is detached,
    /// and one that is idle at most leaves the idle tree.
    pub(crate) fn deactivate(&mut self, now: Instant, leaf: I, may_idle: bool, on_expiry: bool) {
        let mut e = Self::leaf(leaf);
        match self.nodes.standing(e) {
            Standing::Detached => return,
            //= deviates wf2q-idle-stays
            Standing::Idle if may_idle => return,
            Standing::Idle => return self.detach(leaf),
            Standing::Active | Standing::Held => {}
        }
        let expiring = on_expiry || self.serving == Some(e);
        let mut may_idle = may_idle;
        // As far up as groups run out of children.
        let mut above = loop {
            let group = self.shares[e].group;
            self.leave(e, may_idle);
            let afresh = !self.kernel_next && (expiring || group == GroupId::ROOT);
            if afresh || self.schedules[group].next == Some(e) {
                self.update_next(now, group, None, expiring);
            }
            let schedule = &self.schedules[group];
            if schedule.next.is_some() || schedule.in_service.is_some() {
                break self.entity(group);
            }
            let Some(parent) = self.entity(group) else { return };
            (e, may_idle) = (parent, true);
        };
        // Those further up get new times.
        while let Some(e) = above {
            let group = self.shares[e].group;
            self.refile(e);
            if !self.update_next(now, group, Some(e), expiring) && !expiring {
                return;
            }
            above = self.entity(group);
        }
    }

    /// Takes a leaf off the idle tree before virtual time has got to it. Nothing happens to one that is
    /// detached.
    ///
    /// # Panics
    /// If it is active or in service.
    pub(crate) fn detach(&mut self, leaf: I) {
        let e = Self::leaf(leaf);
        match self.nodes.standing(e) {
            Standing::Detached => {}
            Standing::Idle => {
                let tree = tree_of(&mut self.schedules, &self.shares[e]);
                self.nodes.hold(tree, e);
                self.nodes.detach(tree, e);
            }
            standing => panic!("{leaf:?} is {standing:?}, not idle"),
        }
    }

    /// Takes a group without active children off its parent's idle tree, so that it can have another parent.
    /// Nothing happens to one that is active or detached.
    pub(crate) fn detach_group(&mut self, group: GroupId) {
        if let Some(e) = self.entity(group).filter(|&e| self.nodes.standing(e) == Standing::Idle) {
            let tree = tree_of(&mut self.schedules, &self.shares[e]);
            self.nodes.hold(tree, e);
            self.nodes.detach(tree, e);
        }
    }

    /// Chooses the leaf to serve: it and the groups above it are in service now. `None` when no leaf is
    /// active.
    ///
    /// # Panics
    /// If a leaf is in service already.
    pub(crate) fn select(&mut self, now: Instant) -> Option<I> {
        assert!(self.serving.is_none(), "two leaves in service");
        let mut group = GroupId::ROOT;
        let mut e =
            if self.kernel_next { self.schedules[group].next } else { self.look_up(now, group, true) }?;
        let leaf = loop {
            let schedule = &mut self.schedules[group];
            schedule.in_service = Some(e);
            let share = &self.shares[e];
            //= deviates wf2q-idle-turn
            if share.class == Class::Idle && !self.kernel_next {
                schedule.idle_turn = Some(now);
            }
            let inner = self.group_of(e);
            if inner.is_none_or(|inner| self.kernel_next && self.has_one_active(inner)) {
                self.nodes.hold(tree_of(&mut self.schedules, share), e);
            }
            let Some(inner) = inner else { break e };
            group = inner;
            e = self.schedules[group].next.expect("an active group has a next child");
        };
        self.serving = Some(leaf);
        // Each group on the way has its next entity in service now, and looks for another.
        while group != GroupId::ROOT || self.kernel_next {
            let go_on = self.update_next(now, group, None, false);
            let Some(e) = self.entity(group) else { break };
            if self.schedules[group].next.is_none() && !self.kernel_next {
                self.nodes.hold(tree_of(&mut self.schedules, &self.shares[e]), e);
            }
            if !go_on {
                break;
            }
            group = self.shares[e].group;
        }
        Some(I::from_index(leaf.index()))
    }

    /// Ends the stay in service: after it no leaf is in service, and the groups above have paid. The leaf
    /// keeps its service count, for the caller to clear or to keep. Nothing happens when no leaf is in
    /// service.
    ///
    /// # Panics
    /// If the leaf was neither requeued nor deactivated.
    pub(crate) fn reset_service(&mut self) {
        let Some(leaf) = self.serving.take() else { return };
        assert!(self.nodes.standing(leaf) != Standing::Held, "in service, and nowhere else");
        let mut group = self.shares[leaf].group;
        loop {
            self.schedules[group].in_service = None;
            let Some(e) = self.entity(group) else { return };
            self.shares[e].service = 0;
            group = self.shares[e].group;
        }
    }

    /// The leaf was given `cost` sectors, and so were all groups above it.
    #[inline]
    pub(crate) fn served(&mut self, leaf: I, cost: u32) {
        let mut above = Some(Self::leaf(leaf));
        while let Some(e) = above {
            let share = &mut self.shares[e];
            share.service = share.service.saturating_add(cost);
            let group = share.group;
            self.nodes.serve(&mut self.schedules[group].trees[share.class as usize], cost);
            above = self.entity(group);
        }
    }

    /// A leaf that is not in service, active or not, was given `cost` sectors out of turn, and so were all
    /// groups above it. It pays at once, and so do those above that are not in service. `at_most`: what would
    /// take one of them further ahead of virtual time than if it had been given this much does not count,
    /// neither for it nor for virtual time.
    pub(crate) fn charge(&mut self, now: Instant, leaf: I, cost: u32, at_most: u32) {
        let mut above = Some(Self::leaf(leaf));
        while let Some(e) = above {
            let share = &mut self.shares[e];
            let (group, class) = (share.group, share.class);
            let schedule = &mut self.schedules[group];
            if schedule.in_service == Some(e) {
                share.service = share.service.saturating_add(cost);
                self.nodes.serve(&mut schedule.trees[class as usize], cost);
            } else {
                self.pay(e, cost, at_most);
                self.update_next(now, group, Some(e), false);
            }
            above = self.entity(group);
        }
    }

    // Another implementation's state: for comparisons only.

    /// Makes an active leaf the one that [`Hierarchy::select`] returns next, whichever leaf would be chosen
    /// otherwise.
    pub(crate) fn prefer(&mut self, leaf: I) {
        let mut e = Self::leaf(leaf);
        while self.nodes.standing(e) == Standing::Active {
            let group = self.shares[e].group;
            self.schedules[group].next = Some(e);
            match self.entity(group) {
                Some(above) => e = above,
                None => return,
            }
        }
    }

    /// Gives a leaf other times. Virtual time follows if the leaf had started with it, just now.
    pub(crate) fn adopt_times(&mut self, now: Instant, leaf: I, start: u64, finish: u64) {
        let e = Self::leaf(leaf);
        let (group, standing) = (self.shares[e].group, self.nodes.standing(e));
        let tree = tree_of(&mut self.schedules, &self.shares[e]);
        let entered_now = self.nodes.times(e).0 == tree.vtime();
        if standing == Standing::Detached || standing == Standing::Held {
            self.nodes.set_times(e, start, finish);
            return;
        }
        self.nodes.hold(tree, e);
        self.nodes.set_times(e, start, finish);
        if standing == Standing::Idle {
            self.nodes.retire(tree, e);
            return;
        }
        // A leaf that has just started took the tree's virtual time as its start, so the other
        // implementation's virtual time is known.
        if entered_now {
            tree.adopt_vtime(start);
        }
        self.nodes.activate(tree, e);
        let on_expiry = self.schedules[group].in_service.is_none();
        let next = self.look_up(now, group, on_expiry);
        self.schedules[group].next = next;
    }

    // Questions.

    /// The leaf in service.
    #[inline]
    #[must_use]
    pub(crate) fn in_service(&self) -> Option<I> {
        self.serving.map(|e| I::from_index(e.index()))
    }

    /// Whether another child of the root would be next than the one in service: if not, there is no reason to
    /// replace it.
    #[inline]
    #[must_use]
    pub(crate) fn may_preempt(&self) -> bool {
        let root = &self.schedules[GroupId::ROOT];
        match root.in_service {
            _ if self.kernel_next => root.next != root.in_service,
            Some(e) if self.group_of(e).is_none() => true,
            served => self.best(GroupId::ROOT) != served,
        }
    }

    /// Whether the leaf waits on an active tree.
    #[inline]
    #[must_use]
    pub(crate) fn is_active(&self, leaf: I) -> bool {
        self.nodes.standing(Self::leaf(leaf)) == Standing::Active
    }

    /// Whether the leaf counts in the sum of weights: it is active, in service or on an idle tree.
    #[inline]
    #[must_use]
    pub(crate) fn is_attached(&self, leaf: I) -> bool {
        self.nodes.standing(Self::leaf(leaf)) != Standing::Detached
    }

    /// The leaf's start and finish.
    #[inline]
    #[must_use]
    pub(crate) fn times(&self, leaf: I) -> (u64, u64) {
        self.nodes.times(Self::leaf(leaf))
    }

    /// The group's start and finish; of the root, which has none, where virtual time started.
    #[must_use]
    pub(crate) fn group_times(&self, group: GroupId) -> (u64, u64) {
        self.entity(group).map_or((self.origin, self.origin), |e| self.nodes.times(e))
    }

    /// Virtual time of a class within a group.
    #[inline]
    #[must_use]
    pub(crate) fn vtime(&self, group: GroupId, class: Class) -> u64 {
        self.schedules[group].trees[class as usize].vtime()
    }

    /// The part of `all` that is due to the leaf's group by weight, as things stand; to the leaf, as far as
    /// it is not raised, if it is a child of the root.
    #[must_use]
    pub(crate) fn part(&self, leaf: I, all: u64) -> u64 {
        let group = self.group(leaf);
        let mut e = self.entity(group).unwrap_or(Self::leaf(leaf));
        let mut part = all;
        loop {
            let share = &self.shares[e];
            let own = u64::from(if self.group_of(e).is_none() { share.base } else { self.nodes.weight(e) });
            let sum = self.schedules[share.group].trees[share.class as usize].weight();
            part = part.saturating_mul(own) / sum.max(own);
            let Some(above) = self.entity(share.group) else { return part };
            e = above;
        }
    }

    /// The sum of the weights of a group's children of one class.
    #[inline]
    #[must_use]
    pub(crate) fn total_weight(&self, group: GroupId, class: Class) -> u64 {
        self.schedules[group].trees[class as usize].weight()
    }

    /// Whether `leaf` is of a higher class than `other`, or weighs more. Leaves of one group are compared by
    /// their own weights, else by their groups' (a child of the root by its own).
    //= linux-6.12 block/bfq-iosched.c bfq_bfqq_higher_class_or_weight
    //= docs/reference/bfq.md#73-from-idle-to-busy
    #[must_use]
    pub(crate) fn outweighs(&self, leaf: I, other: I) -> bool {
        //= deviates bfq-preempt-class
        if self.class(leaf) < self.class(other) || self.class(leaf) > self.class(other) && !self.kernel_next {
            return self.class(leaf) < self.class(other);
        }
        if self.group(leaf) == self.group(other) {
            return self.weight(leaf) > self.weight(other);
        }
        let outer = |leaf| match self.group(leaf) {
            GroupId::ROOT => self.weight(leaf),
            group => self.group_weight(group),
        };
        outer(leaf) > outer(other)
    }
}

#[cfg(test)]
mod tests;
