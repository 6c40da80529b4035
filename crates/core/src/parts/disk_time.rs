//! Virtual disk time: which of nested groups to serve next, as CFS chooses tasks and CFQ queues.
//!
//! Every group has a *leaf*, its own tasks, beside the groups in it; they are the group's children. (A group
//! without groups in it has just that one, and is taken for its own leaf: that saves a level. When a child
//! was active there does not count for forgetting debts.) Each child has a weight, a class and a *virtual
//! disk time*: what it was given, divided by its weight and multiplied by the default weight. The child with
//! the least is next, for it has had the least for its weight; [`DiskTime::select`] goes from the root down
//! to a leaf. Classes are strict among siblings: one tree for each, and RT before BE before IDLE. Two groups
//! of weights 1000 and 500, slices of 100 ms, default weight 100:
//!
//! ```text
//!        A    B
//!        0    0     both just came, A first: A is given 100 ms, and pays 100 * 100 / 1000 = 10
//!       10    0     B is given 100 ms, and pays 20
//!       10   20     A
//!       20   20     B: equal ones take turns in the order in which they got there
//!       20   40     A
//!       30   40     A …   two slices for A for one of B
//! ```
//!
//! [`DiskTime::charge`] charges a leaf and all groups around it, and files each anew: what one group does not
//! use falls to its siblings first. Each tree remembers the least virtual time of those it serves, which
//! never goes back. A child that becomes active (again) is filed there, or where it was if that is later:
//! being away earns no credit, and pays no debt. Only when no child has wanted the tree for a second
//! (`FORGET`) are debts forgotten, for at a weight of 1 beside 10000 one slice is a debt of 1000 s.
//!
//! A new weight holds at once. What a child is ahead by stays the same *amount of service*: it is divided by
//! the new weight instead of the old one. So a child whose weight goes up from 1 to 10000 does not sit out a
//! debt counted at weight 1, and one whose weight goes down does not start without any. A new class moves it
//! to another tree, as far ahead there.
//!
//! This is start-time fair queueing with CFS's names. While two siblings both have work, what they are given,
//! each divided by its weight, differs by at most the sum of one turn of each, divided by its weight.
//!
//! Everything is O(log n) at each level in the mean. Virtual times are numbers of 64 bits that do not wrap:
//! before they would, a tree's times are all set back by the same amount, which takes time for each group
//! there is, about once in hours.
//!
//! It knows no slices, no idling and no requests, and not what is counted as service.
//!
//! [B-WF2Q+](super::hierarchy) can charge time as well, and gives the same shares. But it sorts by the end of
//! a turn whose length it has to know before, and the controller's slices shrink when more groups come:
//! groups that were filed with long turns wait for many short ones. Of twenty readers that start together one
//! waits for 983 ms by B-WF2Q+, and for 496 ms here; `with_many_groups_slices_shrink` in
//! `fair/tests/shares.rs` allows 700 ms.
//!
//= docs/reference/groups.md#3-engine-f
//= deviates fair-forget
//= deviates fair-two-engines
//= paper: P. Goyal, H. Vin, H. Cheng 1996, "Start-time fair queuing" (the bound)

use super::tree::{Forest, Tree};
use super::wide;
use crate::table::Table;
use crate::units::{Class, Duration, GroupId, Instant, Weight, id};

/// How many binary places of a virtual time are fraction: a service of 1 at the largest weight is 10485.76
/// units, so what rounding gives away is less than one in 10,000.
const SHIFT: u32 = 20;
/// Beyond this, times are set back. A single charge is less than 2^59.
const LATE: u64 = 1 << 62;
/// Debts are forgotten when a tree was empty for longer than this. Ours: much longer than a think time, much
/// shorter than what a user would wait for.
const FORGET: Duration = Duration::from_secs(1);

id! {
    /// A child of some group: a group, or the leaf of one.
    Entity(u32)
}

impl Entity {
    #[inline]
    const fn leaf(group: GroupId) -> Self {
        Self(2 * group.0 + 1)
    }

    /// Returns a group as its parent's child; `None` for the root, which has no parent.
    #[inline]
    fn group(group: GroupId) -> Option<Self> {
        (group != GroupId::ROOT).then_some(Self(2 * group.0))
    }

    /// Returns the group, or the group that the leaf belongs to.
    #[inline]
    const fn number(self) -> GroupId {
        GroupId(self.0 / 2)
    }

    #[inline]
    const fn is_leaf(self) -> bool {
        self.0 % 2 == 1
    }
}

/// What a child has.
#[derive(Clone, Copy, Debug)]
struct Share {
    parent: GroupId,
    class: Class,
    weight: u32,
    /// While it is on no tree; else the key there counts.
    vtime: u64,
}

/// The children of one class of a group.
#[derive(Clone, Copy, Debug)]
struct Service {
    tree: Tree,
    /// The weights on the tree, and the sum of weight times key.
    weight: u64,
    sum: u128,
    /// `min_vdisktime` when it was last asked for.
    min: u64,
    /// The largest of those who left.
    latest: u64,
    empty_since: Instant,
}

/// What a group has inside.
#[derive(Clone, Copy, Debug)]
struct Inside {
    services: [Service; 3],
    /// How many groups, active or not.
    groups: u32,
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub(crate) struct DiskTime {
    forest: Forest<Entity>,
    shares: Table<Entity, Share>,
    insides: Table<GroupId, Inside>,
}

/// What `used` is in virtual time.
#[inline]
fn vtime(used: u32, weight: u32) -> u64 {
    ((u64::from(used) << SHIFT) * u64::from(Weight::DEFAULT.get())) / u64::from(weight)
}

impl Service {
    /// `min_vdisktime`, which continues with the first child that waits or is served.
    #[inline]
    fn min(&mut self, forest: &Forest<Entity>) -> u64 {
        if let Some(first) = forest.first(&self.tree) {
            self.min = self.min.max(forest.key(first));
        }
        self.min
    }

    /// Where all who wait would be if each had been given its share: the mean of their times, by weight.
    fn mean(&mut self, forest: &Forest<Entity>) -> u64 {
        let min = self.min(forest);
        if self.weight == 0 {
            return min;
        }
        wide::div_rem(self.sum, self.weight).0.max(min)
    }

    #[inline]
    fn insert(&mut self, forest: &mut Forest<Entity>, e: Entity, weight: u32, key: u64) {
        forest.insert_maybe_first(&mut self.tree, e, key);
        self.weight += u64::from(weight);
        self.sum += u128::from(weight) * u128::from(key);
    }

    #[inline]
    fn remove(&mut self, forest: &mut Forest<Entity>, e: Entity, weight: u32) {
        self.weight -= u64::from(weight);
        self.sum -= u128::from(weight) * u128::from(forest.key(e));
        forest.remove(&mut self.tree, e);
    }

    /// Files it `by` later.
    #[inline]
    fn advance(&mut self, forest: &mut Forest<Entity>, e: Entity, weight: u32, by: u64) -> u64 {
        let key = forest.key(e) + by;
        forest.set_key(&mut self.tree, e, key);
        self.sum += u128::from(weight) * u128::from(by);
        key
    }
}

impl DiskTime {
    /// Makes a tree for `groups` groups, the root included. All are children of the root, with weight 100 and
    /// class BE, and none is active. Allocates.
    #[must_use]
    pub(crate) fn new(groups: u32) -> Self {
        Self::starting_at(groups, 0)
    }

    /// Makes a tree as [`Self::new`] does, with all virtual times starting at `origin`. The origin changes no
    /// decision.
    ///
    /// # Panics
    /// If there are 2^30 groups or more.
    #[must_use]
    pub(crate) fn starting_at(groups: u32, origin: u64) -> Self {
        let groups = groups.max(1);
        assert!(groups < 1 << 30, "too many groups");
        let share = Share {
            parent: GroupId::ROOT,
            class: Class::BestEffort,
            weight: Weight::DEFAULT.get(),
            vtime: origin,
        };
        let service = Service {
            tree: Tree::default(),
            weight: 0,
            sum: 0,
            min: origin,
            latest: origin,
            empty_since: Instant::EPOCH,
        };
        let mut shares = Table::<Entity, _>::new(2 * groups as usize, share);
        for (e, share) in shares.iter_mut().filter(|(e, _)| e.is_leaf()) {
            share.parent = e.number();
        }
        let mut insides = Table::new(groups as usize, Inside { services: [service; 3], groups: 0 });
        insides[GroupId::ROOT].groups = groups - 1;
        Self { forest: Forest::new(2 * groups as usize), shares, insides }
    }

    /// Puts a group into another one, while nothing in it is active. Its lead over its siblings is forgotten.
    ///
    /// # Panics
    /// If something is active in it, or it is the root, or it would be inside itself.
    pub(crate) fn set_parent(&mut self, group: GroupId, parent: GroupId) {
        let e = Entity::group(group).expect("the root has no parent");
        assert!(!self.forest.contains(e), "a new parent for an active group");
        let mut above = Some(parent);
        while let Some(at) = above {
            assert!(at != group, "a group inside itself");
            above = self.parent(at);
        }
        let share = &mut self.shares[e];
        let old = core::mem::replace(&mut share.parent, parent);
        share.vtime = 0;
        if old == parent {
            return;
        }
        // The old parent may have become its own leaf now, and the new one may be no more.
        let leaf = Entity::leaf(old);
        self.insides[old].groups -= 1;
        if self.own(old) != leaf && self.forest.contains(leaf) {
            self.leave(leaf);
        }
        let (before, leaf) = (self.own(parent), Entity::leaf(parent));
        self.insides[parent].groups += 1;
        if before != leaf {
            self.shares[leaf].vtime = 0;
            if self.forest.contains(before) {
                self.enter(leaf);
            }
        }
    }

    /// The group's group; `None` for the root.
    #[must_use]
    pub(crate) fn parent(&self, group: GroupId) -> Option<GroupId> {
        Entity::group(group).map(|e| self.shares[e].parent)
    }

    /// Gives a group another weight (at least 1) and class, at once. Nothing happens to the root.
    pub(crate) fn set_group(&mut self, group: GroupId, weight: u32, class: Class) {
        if let Some(e) = Entity::group(group) {
            self.reweigh(e, weight, class);
        }
    }

    /// Gives a group's leaf another weight (at least 1) and class, at once.
    pub(crate) fn set_leaf(&mut self, group: GroupId, weight: u32, class: Class) {
        self.reweigh(Entity::leaf(group), weight, class);
    }

    fn reweigh(&mut self, e: Entity, weight: u32, class: Class) {
        let (old, weight) = (self.shares[e], weight.max(1));
        if (old.weight, old.class) == (weight, class) {
            return;
        }
        let services = &mut self.insides[old.parent].services;
        let [from, to] = [old.class, class].map(|class| services[class as usize].min(&self.forest));
        let was_active = self.forest.contains(e);
        let before = if was_active { self.forest.key(e) } else { old.vtime };
        // The lead over the tree's minimum is service by weight: it is kept as service, so a child neither
        // sits out a debt of its old weight nor escapes it.
        let ahead = wide::mul_div(before.saturating_sub(from), old.weight.into(), weight.into());
        let vtime = to + ahead.min(LATE);
        self.shares[e] = Share { weight, class, vtime, ..old };
        if was_active {
            services[old.class as usize].remove(&mut self.forest, e, old.weight);
            services[class as usize].insert(&mut self.forest, e, weight, vtime);
        } else {
            let latest = &mut services[class as usize].latest;
            *latest = vtime.max(*latest);
        }
        if vtime > LATE {
            self.set_back(old.parent, class);
        }
    }

    /// A group's own tasks have work. Nothing happens if they had.
    pub(crate) fn activate(&mut self, now: Instant, leaf: GroupId) {
        let mut next = Some(self.own(leaf));
        while let Some(e) = next.filter(|&e| !self.forest.contains(e)) {
            let Share { parent, class, .. } = self.shares[e];
            let service = &mut self.insides[parent].services[class as usize];
            if service.tree.is_empty() && now.saturating_since(service.empty_since) > FORGET {
                service.min = service.min.max(service.latest);
            }
            self.enter(e);
            next = Entity::group(parent);
        }
    }

    /// They have none. Nothing happens if they had none.
    pub(crate) fn deactivate(&mut self, now: Instant, leaf: GroupId) {
        let mut next = Some(self.own(leaf));
        while let Some(e) = next.filter(|&e| self.forest.contains(e)) {
            self.leave(e);
            let Share { parent, class, .. } = self.shares[e];
            let services = &mut self.insides[parent].services;
            services[class as usize].empty_since = now;
            if services.iter().any(|s| !s.tree.is_empty()) {
                return;
            }
            next = Entity::group(parent);
        }
    }

    /// What stands for a group's own tasks.
    #[inline]
    fn own(&self, group: GroupId) -> Entity {
        match Entity::group(group) {
            Some(e) if self.insides[group].groups == 0 => e,
            _ => Entity::leaf(group),
        }
    }

    /// Puts an entity on its tree: where it was, but not before all others.
    #[inline]
    fn enter(&mut self, e: Entity) {
        let share = &self.shares[e];
        let service = &mut self.insides[share.parent].services[share.class as usize];
        let key = share.vtime.max(service.min(&self.forest));
        service.insert(&mut self.forest, e, share.weight, key);
    }

    /// Takes an entity off its tree.
    #[inline]
    fn leave(&mut self, e: Entity) {
        let share = &mut self.shares[e];
        let service = &mut self.insides[share.parent].services[share.class as usize];
        service.min(&self.forest);
        share.vtime = self.forest.key(e);
        service.latest = service.latest.max(share.vtime);
        service.remove(&mut self.forest, e, share.weight);
    }

    /// The leaf to serve next; `None` when none is active. A leaf in service stays on its tree.
    #[inline]
    #[must_use]
    pub(crate) fn select(&self) -> Option<GroupId> {
        let mut group = GroupId::ROOT;
        loop {
            let inside = &self.insides[group];
            let [first, second, third] = inside.services.each_ref().map(|s| self.forest.first(&s.tree));
            let e = first.or(second).or(third)?;
            group = e.number();
            if e.is_leaf() || self.insides[group].groups == 0 {
                return Some(group);
            }
        }
    }

    /// An active leaf was given `used` in its turn, and so were the groups around it.
    ///
    /// # Panics
    /// If it is not active.
    pub(crate) fn spend(&mut self, leaf: GroupId, used: u32) {
        let mut next = Some(self.own(leaf));
        while let Some(e) = next {
            let Share { parent, class, weight, .. } = self.shares[e];
            let service = &mut self.insides[parent].services[class as usize];
            let key = service.advance(&mut self.forest, e, weight, vtime(used, weight));
            if key > LATE {
                self.set_back(parent, class);
            }
            next = Entity::group(parent);
        }
    }

    /// A leaf, active or not, was given `used` out of its turn; so were the groups around it. `at_most`: none
    /// of them gets further ahead of its share than if it had been given this much; what would take it there
    /// is forgotten.
    ///
    /// Ahead of its share is ahead of the mean, not of the first: while n others have a turn each, the first
    /// stays behind though all together go on, and a child that is given its share meanwhile, but out of its
    /// turn, must pay for all of it.
    pub(crate) fn charge(&mut self, leaf: GroupId, used: u32, at_most: u32) {
        let mut next = Some(self.own(leaf));
        while let Some(e) = next {
            let share = &mut self.shares[e];
            let Share { parent, class, weight, .. } = *share;
            let service = &mut self.insides[parent].services[class as usize];
            let (is_active, most) =
                (self.forest.contains(e), service.mean(&self.forest) + vtime(at_most, weight));
            // A child that is away has no credit from its old time: at least the tree's minimum.
            let old = if is_active { self.forest.key(e) } else { share.vtime.max(service.min) };
            let new = (old + vtime(used, weight)).min(most).max(old);
            if is_active {
                service.advance(&mut self.forest, e, weight, new - old);
            } else {
                share.vtime = new;
                service.latest = service.latest.max(new);
            }
            // Times are set back long before they wrap.
            if new > LATE {
                self.set_back(parent, class);
            }
            next = Entity::group(parent);
        }
    }

    /// Sets the times of all children of one class back, so that they start at 0. Order and distances stay.
    #[cold]
    fn set_back(&mut self, group: GroupId, class: Class) {
        let service = &mut self.insides[group].services[class as usize];
        let by = service.min(&self.forest);
        let earlier = |vtime: u64| vtime.saturating_sub(by).min(LATE);
        (service.min, service.latest, service.sum) = (0, earlier(service.latest), 0);
        let mut at = self.forest.first(&service.tree);
        while let Some(e) = at {
            at = self.forest.next(e);
            let key = earlier(self.forest.key(e));
            self.forest.set_key(&mut service.tree, e, key);
            service.sum += u128::from(self.shares[e].weight) * u128::from(key);
        }
        for (_, share) in self.shares.iter_mut().filter(|(_, s)| (s.parent, s.class) == (group, class)) {
            share.vtime = earlier(share.vtime);
        }
    }

    /// Whether a group's own tasks have work.
    #[inline]
    #[must_use]
    pub(crate) fn is_active(&self, leaf: GroupId) -> bool {
        self.forest.contains(self.own(leaf))
    }

    /// Walks everything and panics if something is wrong. O(groups^2): for tests.
    pub(crate) fn check(&self) {
        for (group, Inside { services, groups }) in self.insides.iter() {
            for (class, service) in services.iter().enumerate() {
                self.forest.check(&service.tree);
                let (mut weight, mut sum) = (0, 0);
                for e in self.forest.iter(&service.tree) {
                    let share = &self.shares[e];
                    assert_eq!((share.parent, share.class as usize), (group, class), "{e:?} is elsewhere");
                    assert!(self.forest.key(e) >= service.min, "{e:?} has a credit");
                    assert!(self.forest.key(e) <= LATE, "{e:?} is too late");
                    weight += u64::from(share.weight);
                    sum += u128::from(share.weight) * u128::from(self.forest.key(e));
                }
                assert_eq!((service.weight, service.sum), (weight, sum), "weights in {group:?}");
            }
            let inside = |(e, s): &(Entity, &Share)| e.0 > 0 && !e.is_leaf() && s.parent == group;
            assert_eq!(self.shares.iter().filter(inside).count(), *groups as usize, "groups in {group:?}");
            let wanted = services.iter().any(|s| !s.tree.is_empty());
            let Some(e) = Entity::group(group) else { continue };
            assert!(*groups > 0 || !wanted, "{group:?} is its own leaf");
            assert!(
                *groups == 0 || self.forest.contains(e) == wanted,
                "{group:?} waits if something in it does"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec;
    use std::vec::Vec;

    const NOW: Instant = Instant::EPOCH;
    const BE: Class = Class::BestEffort;
    const A: GroupId = GroupId(1);
    const B: GroupId = GroupId(2);

    fn turns(tree: &mut DiskTime, count: usize, used: u32) -> Vec<GroupId> {
        let mut turns = vec![];
        for _ in 0..count {
            let leaf = tree.select().expect("a leaf waits");
            tree.spend(leaf, used);
            turns.push(leaf);
        }
        tree.check();
        turns
    }

    /// The example above.
    #[test]
    fn turns_are_as_in_the_example() {
        let mut tree = DiskTime::new(3);
        tree.set_group(A, 1000, BE);
        tree.set_group(B, 500, BE);
        tree.activate(NOW, A);
        tree.activate(NOW, B);
        assert_eq!(turns(&mut tree, 9, 100), [A, B, A, B, A, A, B, A, A]);
    }

    /// One unit of service at a time, to the largest weight beside one of 1: nothing is lost by rounding.
    #[test]
    fn small_services_are_not_rounded_away() {
        let mut tree = DiskTime::new(3);
        tree.set_group(A, 9999, BE);
        tree.set_group(B, 10, BE);
        tree.activate(NOW, A);
        tree.activate(NOW, B);
        let order = turns(&mut tree, 100_000, 1);
        let seldom = order.iter().filter(|&&g| g == B).count();
        assert!((99..=101).contains(&seldom), "{seldom} of 100000");
    }

    #[test]
    fn being_away_earns_nothing_and_pays_nothing() {
        let mut tree = DiskTime::new(3);
        tree.activate(NOW, A);
        turns(&mut tree, 50, 100);
        tree.activate(NOW, B);
        assert_eq!(turns(&mut tree, 4, 100), [A, B, A, B], "B has no credit");
        // A is a turn ahead of B and goes; it cannot shed that by coming back.
        assert_eq!(turns(&mut tree, 1, 100), [A]);
        tree.deactivate(NOW, A);
        tree.activate(NOW, A);
        assert_eq!(turns(&mut tree, 2, 100), [B, A]);
        // Another class or another weight does not change it, either.
        tree.set_group(A, 100, Class::RealTime);
        tree.set_group(A, 100, BE);
        assert_eq!(turns(&mut tree, 2, 100), [B, A]);
    }

    //= docs/reference/groups.md#3-engine-f type=test
    #[test]
    fn debts_are_forgotten_when_nobody_cares() {
        for (away, second) in [(Duration::from_secs(1), B), (Duration::from_ms(1001), A)] {
            let mut tree = DiskTime::new(3);
            tree.set_group(A, 1, BE);
            tree.activate(NOW, A);
            tree.activate(NOW, B);
            assert_eq!(turns(&mut tree, 2, 100), [A, B]);
            tree.deactivate(NOW, A);
            tree.deactivate(NOW, B);
            tree.activate(NOW + away, B);
            tree.activate(NOW + away, A);
            assert_eq!(turns(&mut tree, 5, 100), [B, second, B, B, B], "after {away:?}");
        }
    }

    #[test]
    fn times_are_set_back_before_they_are_too_large() {
        let mut tree = DiskTime::starting_at(3, LATE - 10 * vtime(100, 100));
        tree.activate(NOW, A);
        tree.activate(NOW, B);
        let order = turns(&mut tree, 100, 100);
        assert!(order.chunks(2).all(|two| two == [A, B]), "{order:?}");
        assert!(tree.forest.key(Entity::group(A).unwrap()) < LATE / 2);
        // The largest there is, to the smallest weight, again and again.
        tree.set_group(A, 1, BE);
        for _ in 0..100 {
            tree.charge(A, u32::MAX, u32::MAX);
            tree.spend(A, u32::MAX);
            tree.check();
        }
        assert_eq!(turns(&mut tree, 3, 100), [B, B, B]);
    }
}
