//! The single steps of an event: where an entity is filed, what it pays, and which child is next.

use super::{Entity, Hierarchy, IDLE_TURN, Schedule, Share};
use crate::parts::wf2q::{ServiceTree, Standing, later, sectors, vt};
use crate::parts::wide::mul_div;
use crate::table::Table;
use crate::units::{Class, GroupId, Id, Instant};

impl<I: Id> Hierarchy<I> {
    #[inline]
    pub(super) fn leaf(leaf: I) -> Entity {
        Entity::from_index(leaf.index())
    }

    /// A group as its parent's child.
    #[inline]
    pub(super) fn entity(&self, group: GroupId) -> Option<Entity> {
        (group != GroupId::ROOT).then(|| Entity(self.leaves + group.0))
    }

    /// The group that an entity is, if it is one.
    #[inline]
    pub(super) fn group_of(&self, e: Entity) -> Option<GroupId> {
        e.0.checked_sub(self.leaves).map(GroupId)
    }

    /// Gives an entity a weight, and its tree the difference.
    pub(super) fn weigh(&mut self, e: Entity, weight: u32) {
        let tree = tree_of(&mut self.schedules, &self.shares[e]);
        self.nodes.set_weight(tree, e, weight);
    }

    /// Whether exactly one child waits.
    pub(super) fn has_one_active(&self, group: GroupId) -> bool {
        let mut active = self.schedules[group].trees.iter().filter(|tree| tree.has_active());
        let one = active
            .next()
            .is_some_and(|tree| self.nodes.next(tree).is_some_and(|e| self.nodes.is_only_active(tree, e)));
        one && active.next().is_none()
    }

    /// A leaf was activated or requeued: puts it and everyone above it on their trees, as far as that changes
    /// something.
    pub(super) fn walk_up(&mut self, now: Instant, leaf: Entity, credit: bool, on_expiry: bool) {
        let mut e = leaf;
        loop {
            let group = self.shares[e].group;
            if self.schedules[group].in_service == Some(e) || self.nodes.standing(e) == Standing::Active {
                self.refile(e);
            } else {
                self.enter(e, credit);
            }
            let go_on = self.update_next(now, group, Some(e), on_expiry) || on_expiry;
            match self.entity(group) {
                Some(above) if go_on => e = above,
                _ => return,
            }
        }
    }

    /// An entity that was detached or idle gets a start, and onto the active tree.
    #[inline]
    fn enter(&mut self, e: Entity, credit: bool) {
        let tree = tree_of(&mut self.schedules, &self.shares[e]);
        let finish = self.nodes.times(e).1;
        let shift_back = credit && later(tree.vtime(), finish);
        let mut start = if shift_back { finish } else { tree.vtime() };
        if self.nodes.standing(e) == Standing::Idle {
            self.nodes.hold(tree, e);
            if later(finish, start) {
                start = finish;
            }
        } else {
            self.nodes.attach(tree, e);
        }
        self.file(e, start, shift_back);
    }

    /// An active entity, or one in service, gets new times.
    #[inline]
    pub(super) fn refile(&mut self, e: Entity) {
        let share = &self.shares[e];
        let mut start = self.nodes.times(e).0;
        let serving = self.schedules[share.group].in_service == Some(e);
        if serving {
            start = start.wrapping_add(vt(share.service, u64::from(self.nodes.weight(e))));
        }
        self.nodes.hold(tree_of(&mut self.schedules, share), e);
        if let (true, Some(inner), false) = (serving, self.group_of(e), self.kernel_next) {
            //= deviates wf2q-pays-once
            self.shares[e].service = 0;
            //= deviates wf2q-waits
            if self.schedules[inner].next.is_none() {
                // No entity waits in there except the one in service.
                self.nodes.set_times(e, start, start);
                return;
            }
        }
        self.file(e, start, false);
    }

    /// Puts a held entity on the active tree. `pull_up`: its finish may be in the past and should not.
    #[inline(always)]
    fn file(&mut self, e: Entity, start: u64, pull_up: bool) {
        let start = if self.shares[e].dirty { self.apply(e, start) } else { start };
        let share = &self.shares[e];
        let tree = tree_of(&mut self.schedules, share);
        let weight = self.nodes.weight(e);
        let (mut start, mut finish) = (start, start.wrapping_add(vt(share.budget, u64::from(weight))));
        if pull_up && later(tree.vtime(), finish) {
            let behind = tree.vtime().wrapping_sub(finish) / u64::from(share.raise);
            start = start.wrapping_add(behind);
            finish = finish.wrapping_add(behind);
        }
        self.nodes.set_times(e, start, finish);
        self.nodes.activate(tree, e);
    }

    /// Applies a waiting weight and class to a held entity; answers its start, which is another in another
    /// tree.
    fn apply(&mut self, e: Entity, start: u64) -> u64 {
        let share = &mut self.shares[e];
        let old = *share;
        (share.base, share.class, share.dirty) = (share.new_base, share.new_class, false);
        let weight = share.base.saturating_mul(share.raise);
        if old.class == share.class {
            self.weigh(e, weight);
            return start;
        }
        self.nodes.detach(tree_of(&mut self.schedules, &old), e);
        let tree = tree_of(&mut self.schedules, share);
        self.nodes.set_weight(tree, e, weight);
        self.nodes.attach(tree, e);
        tree.vtime()
    }

    /// Applies another weight and class now.
    pub(super) fn reweigh_entity(&mut self, now: Instant, e: Entity, class: Class, weight: u32) {
        let (old, old_weight, weight) = (self.shares[e], self.nodes.weight(e), weight.max(1));
        let share = &mut self.shares[e];
        (share.base, share.new_base, share.raise) = (weight, weight, 1);
        (share.class, share.new_class, share.dirty) = (class, class, false);
        if (old.class, old_weight) == (class, weight) {
            return;
        }
        let (standing, (start, finish)) = (self.nodes.standing(e), self.nodes.times(e));
        let tree = tree_of(&mut self.schedules, &old);
        let before = tree.vtime();
        // An entity is taken off the tree of its old class: weight sums and order there depend on its old
        // weight.
        if standing != Standing::Detached {
            self.nodes.hold(tree, e);
            self.nodes.detach(tree, e);
        }
        let tree = tree_of(&mut self.schedules, &self.shares[e]);
        self.nodes.set_weight(tree, e, weight);
        if standing == Standing::Detached {
            return;
        }
        self.nodes.attach(tree, e);
        let now_at = tree.vtime();
        // Distances to virtual time are service by weight. Rescaled, the entity keeps the service that it is
        // ahead or behind by, and the new tree's clock is the reference.
        let at = |vtime: u64| {
            let ahead = later(vtime, before);
            let by = if ahead { vtime.wrapping_sub(before) } else { before.wrapping_sub(vtime) };
            let by = rescale(by, old_weight, weight);
            if ahead { now_at.wrapping_add(by) } else { now_at.wrapping_sub(by) }
        };
        match standing {
            Standing::Active => {
                self.file(e, at(start), false);
                // Its finish time has moved, so its group may have another next entity, and so on up.
                if self.update_next(now, old.group, Some(e), false)
                    && let Some(above) = self.entity(old.group)
                {
                    self.walk_up(now, above, false, false);
                }
            }
            Standing::Idle => self.rest(e, at(finish)),
            Standing::Held | Standing::Detached => self.nodes.set_times(e, at(start), at(finish)),
        }
    }

    /// An entity that is not in service pays for service now.
    pub(super) fn pay(&mut self, e: Entity, cost: u32, at_most: u32) {
        let (standing, (start, finish), weight) =
            (self.nodes.standing(e), self.nodes.times(e), u64::from(self.nodes.weight(e)));
        let tree = tree_of(&mut self.schedules, &self.shares[e]);
        let from = match standing {
            Standing::Active => start,
            Standing::Idle => finish,
            Standing::Held | Standing::Detached => tree.vtime(),
        };
        match standing {
            Standing::Detached => self.nodes.attach(tree, e),
            _ => self.nodes.hold(tree, e),
        }
        // The debt is bounded: what would take the entity further than `at_most` ahead of virtual time is
        // forgotten.
        let room = tree.vtime().wrapping_add(vt(at_most, weight)).wrapping_sub(from);
        let cost = if later(room, 0) { cost.min(sectors(room, weight)) } else { 0 };
        self.nodes.serve(tree, cost);
        let to = from.wrapping_add(vt(cost, weight));
        if standing == Standing::Active { self.file(e, to, false) } else { self.rest(e, to) }
    }

    /// Takes a held entity out of the schedule until it has work: it waits on the idle tree for virtual time
    /// to get to `finish`, or need not wait.
    fn rest(&mut self, e: Entity, finish: u64) {
        self.nodes.set_times(e, finish, finish);
        let tree = tree_of(&mut self.schedules, &self.shares[e]);
        if later(finish, tree.vtime()) {
            self.nodes.retire(tree, e);
        } else {
            self.nodes.detach(tree, e);
        }
    }

    /// Takes an entity out of the schedule, after it paid for its service. An entity that was served ahead of
    /// its share stays on the idle tree, if `may_idle`.
    pub(super) fn leave(&mut self, e: Entity, may_idle: bool) {
        let share = &mut self.shares[e];
        let start = self.nodes.times(e).0;
        // Only the service that it got is paid for, not the budget that its finish was computed with.
        let finish = start.wrapping_add(vt(share.service, u64::from(self.nodes.weight(e))));
        let schedule = &mut self.schedules[share.group];
        if schedule.in_service == Some(e) {
            schedule.in_service = None;
        } else {
            share.service = 0;
        }
        let tree = &mut schedule.trees[share.class as usize];
        self.nodes.hold(tree, e);
        self.nodes.set_times(e, start, finish);
        if may_idle && later(finish, tree.vtime()) {
            self.nodes.retire(tree, e);
        } else {
            self.nodes.detach(tree, e);
        }
    }

    /// Finds a schedule's next child, after `changed` got new times, or after something else. Returns whether
    /// the group's own place must change: it has a next child now and had none, or the other way round, or it
    /// has one with a smaller budget (a larger one can wait until the group is filed anew).
    //= deviates wf2q-next
    #[inline(always)]
    pub(super) fn update_next(
        &mut self,
        now: Instant,
        group: GroupId,
        changed: Option<Entity>,
        on_expiry: bool,
    ) -> bool {
        if group == GroupId::ROOT && !self.kernel_next {
            let root = &mut self.schedules[group];
            if root.in_service.is_none()
                && let Some(tree) = root.trees.iter_mut().find(|tree| tree.has_active())
            {
                // The root keeps no next child, but its virtual time must not stay behind all that wait, or
                // none would be eligible.
                self.nodes.jump(tree);
            }
            return false;
        }
        self.update_group(now, group, changed, on_expiry)
    }

    fn update_group(
        &mut self,
        now: Instant,
        group: GroupId,
        changed: Option<Entity>,
        on_expiry: bool,
    ) -> bool {
        let before = self.schedules[group].next;
        // As the kernel: a newcomer that wins against the old choice replaces it without a look-up.
        let newcomer =
            changed.filter(|&e| self.kernel_next && before != Some(e) && self.is_before(e, before));
        let next = newcomer.or_else(|| self.look_up(now, group, on_expiry));
        self.schedules[group].next = next;
        let Some(next) = next else { return before.is_some() && !self.kernel_next };
        let mut shrank = false;
        if let Some(e) = self.entity(group) {
            let budget = self.shares[next].budget;
            shrank = core::mem::replace(&mut self.shares[e].budget, budget) > budget;
        }
        before.is_none() || shrank
    }

    /// Whether an active entity would be served before `next`, as the kernel sees it: what else became
    /// eligible since `next` was looked up is left out.
    fn is_before(&self, e: Entity, next: Option<Entity>) -> bool {
        if self.nodes.standing(e) != Standing::Active {
            return false;
        }
        let Some(next) = next else { return true };
        let (share, other) = (&self.shares[e], &self.shares[next]);
        let vtime = self.schedules[share.group].trees[share.class as usize].vtime();
        let ((start, finish), (_, other_finish)) = (self.nodes.times(e), self.nodes.times(next));
        share.class == other.class && !later(start, vtime) && later(other_finish, finish)
    }

    /// The child to serve next, by class and then by virtual times.
    pub(super) fn look_up(&mut self, now: Instant, group: GroupId, on_expiry: bool) -> Option<Entity> {
        let kernel_next = self.kernel_next;
        let schedule = &mut self.schedules[group];
        let mut first = Class::RealTime;
        let last_turn = *schedule.idle_turn.get_or_insert(now);
        // The IDLE class would starve beside busy others: it has a turn each 200 ms
        // (docs/reference/bfq.md#15-choosing-across-classes).
        if self.idle_turns && now > last_turn + IDLE_TURN {
            let waits = schedule.trees[Class::Idle as usize].has_active();
            if waits {
                first = Class::Idle;
            }
            if !waits || kernel_next {
                schedule.idle_turn = Some(now);
            }
        }
        let tree = schedule.trees[first as usize..].iter_mut().find(|tree| tree.has_active())?;
        // While a child is in service virtual time advances by its service alone.
        if schedule.in_service.is_none() || on_expiry {
            self.nodes.jump(tree);
        }
        self.nodes.next(tree)
    }

    /// The best child of the highest class that waits.
    pub(super) fn best(&self, group: GroupId) -> Option<Entity> {
        let trees = &self.schedules[group].trees;
        trees.iter().find(|tree| tree.has_active()).and_then(|tree| self.nodes.next(tree))
    }
}

/// A distance in virtual time that is the same service at another weight.
fn rescale(by: u64, old_weight: u32, weight: u32) -> u64 {
    mul_div(by, old_weight.into(), weight.into())
}

/// The tree that an entity belongs to.
#[inline]
pub(super) fn tree_of<'a>(schedules: &'a mut Table<GroupId, Schedule>, share: &Share) -> &'a mut ServiceTree {
    &mut schedules[share.group].trees[share.class as usize]
}
