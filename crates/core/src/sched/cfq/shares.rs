//! Which group is next: the groups that have busy queues, by virtual time.
//!
//! A group's virtual time is the disk time that it was charged, divided by its share, so that a group with a
//! smaller share falls behind sooner. The group with the smallest is chosen each time a slice ends; weights
//! act through how often a group is chosen. All groups of all levels are in one tree; what the hierarchy says
//! is in the shares:
//!
//! ```text
//!   root ─┬─ A 500 ─┬─ AA 500       AA: 500/1500 of A, which is 500/750 of all: 0.2222
//!         │         └─ AB 1000      AB: 1000/1500 of 500/750: 0.4444
//!         └─ B 250                  B: 250/750: 0.3333
//! ```
//!
//! Only who is *active* counts: who has busy queues, or active groups inside. A group's own queues are one
//! more child of it, with the leaf weight. Before 3.9 all groups, the root included, were on one level
//! (*flat*): then a group's time is divided by its weight alone, as if 100 were the weight of all.
//!
//! A group that becomes active is placed behind all others, wherever it was before; so one that is not always
//! busy loses its share, unless it is waited for (rules/idling.rs). Weights that change count from the next
//! charge or activation on.
//!
//! It knows no queues, and does not know why a group is charged.
//!
//= linux-2.6.33, linux-3.10 block/cfq-iosched.c cfq_group_service_tree_add, cfqg_scale_charge
//= docs/reference/cfq.md#62-group-tree

use crate::groups::Groups;
use crate::parts::tree::{Forest, Tree};
use crate::parts::wide::mul_div;
use crate::table::Table;
use crate::units::{Duration, GroupId, Weight};

/// The whole disk, in shares.
//= deviates cfq-fine-shares
const WHOLE: u64 = 1 << 32;
/// A single charge is never more than this, so that virtual times can be added: centuries.
const CHARGE_MAX: u64 = 1 << 61;
/// Virtual times beyond this are all set back.
const FAR: u64 = 1 << 62;
/// How far behind the last an active group is placed, in 4096ths of a tick: 200 ticks, not scaled as charges
/// are.
//= linux-2.6.33 block/cfq-iosched.c cfq_group_service_tree_add, CFQ_IDLE_DELAY
const DELAY: u64 = 200;

/// What one group has and adds.
#[derive(Clone, Copy, Debug)]
struct Share {
    parent: GroupId,
    /// What it added to its parent's sum, and its own queues to its own.
    weight: u32,
    leaf_weight: u32,
    /// Its active children, its own queues included, and the sum of their weights.
    active: u32,
    sum: u64,
    /// Its own queues' part of the disk when it was last charged or became active, unless flat. Charges go by
    /// it.
    part: u64,
}

impl Share {
    const NEW: Self = Self { parent: GroupId::ROOT, weight: 0, leaf_weight: 0, active: 0, sum: 0, part: 0 };
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Shares {
    shares: Table<GroupId, Share>,
    /// The active ones by virtual time.
    order: Forest<GroupId>,
    tree: Tree,
    /// Where virtual time is when no group is active.
    min: u64,
    delay: u64,
    is_flat: bool,
}

impl Shares {
    /// None active. Allocates.
    pub(super) fn new(groups: u32, is_flat: bool, tick: Duration) -> Self {
        let count = groups as usize;
        Self {
            shares: Table::new(count, Share::NEW),
            order: Forest::new(count),
            tree: Tree::default(),
            min: 0,
            delay: (tick.as_ns() / 4096).saturating_mul(DELAY),
            is_flat,
        }
    }

    /// The active group that comes next.
    pub(super) fn first(&self) -> Option<GroupId> {
        self.order.first(&self.tree)
    }

    /// Chooses the first group and returns it.
    pub(super) fn choose(&mut self) -> Option<GroupId> {
        let first = self.first()?;
        self.min = self.min.max(self.order.key(first));
        Some(first)
    }

    /// Whether no group is active.
    pub(super) fn is_empty(&self) -> bool {
        self.tree.is_empty()
    }

    /// The part of `time` that an active group's own queues are due, among those that are active now.
    //= deviates cfq-present-share
    pub(super) fn part_of(&self, group: GroupId, time: Duration) -> Duration {
        let (part, whole) = if self.is_flat {
            (u64::from(self.shares[group].weight), self.shares[GroupId::ROOT].sum)
        } else {
            (self.present_part(group), WHOLE)
        };
        Duration::from_ns(mul_div(time.as_ns(), part, whole))
    }

    /// An active group's own queues' part of the disk.
    fn present_part(&self, group: GroupId) -> u64 {
        let own = &self.shares[group];
        let mut part = WHOLE * u64::from(own.leaf_weight) / own.sum;
        let mut at = group;
        while let Some(up) = self.parent(at) {
            part = part * u64::from(self.shares[at].weight) / self.shares[up].sum;
            at = up;
        }
        part.max(1)
    }

    /// A group has busy queues.
    pub(super) fn activate(&mut self, groups: &Groups, group: GroupId) {
        let at = match self.order.last(&self.tree) {
            Some(last) => self.order.key(last).saturating_add(self.delay),
            None => self.min,
        };
        self.join(groups, group);
        self.order.insert(&mut self.tree, group, at);
    }

    /// A group has no more busy queues.
    pub(super) fn deactivate(&mut self, group: GroupId) {
        self.order.remove(&mut self.tree, group);
        self.part(group);
    }

    /// An active group is charged `time`, at its old share; from now on weights are those of `groups`.
    //= linux-3.10 block/cfq-iosched.c cfq_group_served
    pub(super) fn charge(&mut self, groups: &Groups, group: GroupId, time: Duration) {
        let share = &self.shares[group];
        let scaled = if self.is_flat {
            mul_div(time.as_ns(), Weight::DEFAULT.get().into(), share.weight.into())
        } else {
            mul_div(time.as_ns(), WHOLE, share.part)
        };
        let scaled = scaled.min(CHARGE_MAX);
        self.part(group);
        self.join(groups, group);
        let at = self.order.key(group).saturating_add(scaled);
        self.order.set_key(&mut self.tree, group, at);
        if at > FAR {
            self.set_back();
        }
    }

    /// A group has another weight. If it is active only through groups in it, that may be so for ever: it
    /// counts at once.
    //= deviates cfq-weight-now
    pub(super) fn reweigh(&mut self, groups: &Groups, group: GroupId) {
        let Some(up) = self.parent(group).filter(|_| self.shares[group].active > 0) else { return };
        let weight = groups.weight(group).get();
        let old = core::mem::replace(&mut self.shares[group].weight, weight);
        self.shares[up].sum = self.shares[up].sum - u64::from(old) + u64::from(weight);
    }

    /// A group in which nothing is active is inside another from now on.
    pub(super) fn set_parent(&mut self, group: GroupId, parent: GroupId) {
        assert_eq!(self.shares[group].active, 0, "an active group moves");
        self.shares[group] = Share { parent, ..Share::NEW };
    }

    /// Whether `inner` is `outer`, or counts as somewhere inside it.
    pub(super) fn is_inside(&self, inner: GroupId, outer: GroupId) -> bool {
        core::iter::successors(Some(inner), |&g| self.parent(g)).any(|g| g == outer)
    }

    /// The group above, if levels count.
    fn parent(&self, group: GroupId) -> Option<GroupId> {
        (group != GroupId::ROOT && !self.is_flat).then(|| self.shares[group].parent)
    }

    /// Adds a group's own queues to those that share the disk.
    fn join(&mut self, groups: &Groups, group: GroupId) {
        if self.is_flat {
            return self.join_flat(groups, group);
        }
        let leaf = groups.leaf_weight(group).get();
        let own = &mut self.shares[group];
        let mut is_first = own.active == 0;
        own.leaf_weight = leaf;
        own.active += 1;
        own.sum += u64::from(leaf);
        let mut at = group;
        // Only the first active group below a parent activates it, and with that takes its part of the
        // parent's weight.
        while let Some(up) = self.parent(at).filter(|_| is_first) {
            // A changed weight comes into force here, while the group is in no sum
            // (docs/reference/cfq.md#66-hierarchy).
            let weight = groups.weight(at).get();
            self.shares[at].weight = weight;
            let above = &mut self.shares[up];
            is_first = above.active == 0;
            above.active += 1;
            above.sum += u64::from(weight);
            at = up;
        }
        self.shares[group].part = self.present_part(group);
    }

    /// Adds a group, on one level. The root's `sum` is that of all weights, its own is its leaf weight.
    fn join_flat(&mut self, groups: &Groups, group: GroupId) {
        let is_root = group == GroupId::ROOT;
        let weight = if is_root { groups.leaf_weight(group) } else { groups.weight(group) }.get();
        self.shares[GroupId::ROOT].sum += u64::from(weight);
        let own = &mut self.shares[group];
        own.weight = weight;
        own.active = 1;
    }

    /// Takes a group's own queues out of those that share the disk.
    fn part(&mut self, group: GroupId) {
        if self.is_flat {
            let own = &mut self.shares[group];
            own.active = 0;
            let weight = u64::from(own.weight);
            self.shares[GroupId::ROOT].sum -= weight;
            return;
        }
        let own = &mut self.shares[group];
        own.active -= 1;
        own.sum -= u64::from(own.leaf_weight);
        let mut at = group;
        while let Some(up) = self.parent(at).filter(|_| self.shares[at].active == 0) {
            let weight = u64::from(self.shares[at].weight);
            let above = &mut self.shares[up];
            above.active -= 1;
            above.sum -= weight;
            at = up;
        }
    }

    /// Sets all virtual times back, so that they do not overflow after a long time.
    fn set_back(&mut self) {
        let Some(first) = self.first() else { return };
        let by = self.order.key(first);
        let mut next = Some(first);
        while let Some(group) = next {
            next = self.order.next(group);
            let at = self.order.key(group) - by;
            self.order.set_key(&mut self.tree, group, at);
        }
        self.min = self.min.saturating_sub(by);
    }

    /// A group's virtual time.
    #[cfg(test)]
    pub(super) fn time_of(&self, group: GroupId) -> u64 {
        self.order.key(group)
    }

    /// Walks everything; `is_busy` says whether a group has busy queues.
    pub(super) fn check(&self, is_busy: impl Fn(GroupId) -> bool) {
        self.order.check(&self.tree);
        for (group, share) in self.shares.iter() {
            assert_eq!(
                self.order.contains(group),
                is_busy(group),
                "active if and only if there are busy queues"
            );
            if self.is_flat {
                assert_eq!(share.active > 0, is_busy(group), "active");
                continue;
            }
            let own = is_busy(group);
            let inside = self.shares.iter().filter(|&(g, s)| self.parent(g) == Some(group) && s.active > 0);
            let (count, sum) = inside.fold((0, 0), |(n, sum), (_, s)| (n + 1, sum + u64::from(s.weight)));
            assert_eq!(share.active, count + u32::from(own), "active children of {group:?}");
            let leaf = if own { u64::from(share.leaf_weight) } else { 0 };
            assert_eq!(share.sum, sum + leaf, "weights in {group:?}");
        }
        if self.is_flat {
            let active = self.shares.iter().filter(|(_, s)| s.active > 0);
            let sum: u64 = active.map(|(_, s)| u64::from(s.weight)).sum();
            assert_eq!(sum, self.shares[GroupId::ROOT].sum, "weights");
        }
    }
}

#[cfg(test)]
mod tests;
