//! Changes from outside: whether one can be made, and what it changes.
//!
//! [`Groups::check`] refuses before anything changes. So what has several trees, one for each device of
//! a set, can ask all of them before it changes one.

use super::{Group, Groups, Max, Min, Policy, Refusal};
use crate::request::Requests;
use crate::units::{Class, Duration, GroupId, IoPrio, TaskId, Weight};

/// A change from outside.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Control {
    /// A group's weight among its siblings.
    SetWeight(GroupId, Weight),
    /// The weight of a group's own tasks among the groups in it.
    SetLeafWeight(GroupId, Weight),
    /// A group's class among its siblings.
    SetClass(GroupId, Class),
    /// Weight and class of a group on this device only, or no more.
    SetPolicy(GroupId, Option<Policy>),
    /// The most that a group gets.
    SetMax(GroupId, Max),
    /// A group's guarantee.
    SetMin(GroupId, Min),
    /// The mean latency that a group's requests should have, or none: for schedulers that protect groups.
    SetLatency(GroupId, Option<Duration>),
    /// A task's priority, for its requests to come.
    SetPrio(TaskId, IoPrio),
    /// A task is gone; requests of its that wait are still served.
    TaskExit(TaskId),
    /// A group is inside another (second), not in the root, while neither it nor any group in it has
    /// requests. Makes a new group of one that is gone.
    SetParent(GroupId, GroupId),
    /// A group without groups in it is gone, and its limits with it; requests of its that wait are still
    /// served.
    GroupExit(GroupId),
}

impl Control {
    /// The group whose weight, leaf weight or class may be another now.
    #[must_use]
    pub(crate) const fn reweighed(&self) -> Option<GroupId> {
        match *self {
            Self::SetWeight(g, _)
            | Self::SetLeafWeight(g, _)
            | Self::SetClass(g, _)
            | Self::SetPolicy(g, _) => Some(g),
            _ => None,
        }
    }
}

impl Groups {
    /// Whether a change can be made, and if so makes it here. The scheduler is called next.
    pub(crate) fn control(&mut self, change: &Control, requests: &Requests) -> Result<(), Refusal> {
        self.check(change, requests)?;
        self.make(change);
        Ok(())
    }

    /// Whether a change can be made.
    pub(crate) fn check(&self, change: &Control, requests: &Requests) -> Result<(), Refusal> {
        match *change {
            Control::SetPrio(..) | Control::TaskExit(_) => Ok(()),
            Control::SetWeight(group, weight) => {
                Self::in_range(weight)?;
                self.existing(group).map(drop)
            }
            Control::SetLeafWeight(group, weight) => {
                Self::in_range(weight)?;
                // The root's own tasks, too, have a weight among its groups.
                let is_there = self.groups.get(group).is_some_and(|g| !g.is_gone);
                if is_there { Ok(()) } else { Err(Refusal::NoGroup(group)) }
            }
            Control::SetPolicy(group, policy) => {
                policy.map_or(Ok(()), |policy| Self::in_range(policy.weight))?;
                self.existing(group).map(drop)
            }
            Control::SetClass(group, _) | Control::SetLatency(group, _) => self.existing(group).map(drop),
            Control::SetMax(group, max) => {
                if max.burst > Max::BURST_MAX {
                    return Err(Refusal::Burst(max.burst));
                }
                self.existing(group)?;
                self.keeps_limits(group, change)
            }
            Control::SetMin(group, min) => {
                self.existing(group)?;
                self.is_feasible(group, min)?;
                self.keeps_limits(group, change)
            }
            Control::SetParent(group, parent) => {
                self.may_move(group, parent, requests)?;
                // A group that is gone has no guarantees.
                if self.groups[group].is_gone { Ok(()) } else { self.keeps_limits(group, change) }
            }
            Control::GroupExit(group) => {
                let has_groups = self.existing(group)?.children > 0;
                if has_groups { Err(Refusal::Busy(group)) } else { Ok(()) }
            }
        }
    }

    /// Makes a change that can be made.
    fn make(&mut self, change: &Control) {
        match *change {
            Control::SetPrio(..) | Control::TaskExit(_) => {}
            Control::SetWeight(group, weight) => self.groups[group].weight = weight,
            Control::SetLeafWeight(group, weight) => self.groups[group].leaf_weight = weight,
            Control::SetClass(group, class) => self.groups[group].class = class,
            Control::SetPolicy(group, policy) => self.groups[group].policy = policy,
            Control::SetMax(group, max) => self.groups[group].max = max,
            Control::SetMin(group, min) => self.groups[group].min = min,
            Control::SetLatency(group, latency) => self.groups[group].latency = latency,
            Control::SetParent(group, parent) => self.move_to(group, parent),
            Control::GroupExit(group) => self.exit(group),
        }
    }

    fn in_range(weight: Weight) -> Result<(), Refusal> {
        if weight.0.get() <= Weight::MAX { Ok(()) } else { Err(Refusal::Weight(weight)) }
    }

    /// A group that can be changed.
    fn existing(&self, group: GroupId) -> Result<&Group, Refusal> {
        if group == GroupId::ROOT {
            return Err(Refusal::Root);
        }
        self.groups.get(group).filter(|g| !g.is_gone).ok_or(Refusal::NoGroup(group))
    }

    /// Whether the device is good for a group's guarantee beside all others.
    fn is_feasible(&self, group: GroupId, min: Min) -> Result<(), Refusal> {
        let others = self.groups.iter().filter(|&(g, _)| g != group);
        let sum = u64::from(min.iops) + others.map(|(_, g)| u64::from(g.min.iops)).sum::<u64>();
        if self.capacity > 0 && min.iops > 0 && sum > u64::from(self.capacity) {
            return Err(Refusal::Infeasible { sum, capacity: self.capacity });
        }
        Ok(())
    }

    /// Whether what is guaranteed inside a group, and each group above, is within its limit once a change of
    /// the group is made.
    fn keeps_limits(&self, group: GroupId, change: &Control) -> Result<(), Refusal> {
        let parent = |g: GroupId| match *change {
            Control::SetParent(moved, parent) if moved == g => Some(parent),
            _ => self.parent(g),
        };
        let max = |g: GroupId| match *change {
            Control::SetMax(limited, max) if limited == g => max,
            _ => self.groups[g].max,
        };
        let min = |g: GroupId| match *change {
            Control::SetMin(guaranteed, min) if guaranteed == g => min,
            _ => self.groups[g].min,
        };
        let above = |g| core::iter::successors(Some(g), |&g| parent(g));
        for at in above(group) {
            let Some(limit) = max(at).iops() else { continue };
            let inside = self.groups.iter().map(|(g, _)| g).filter(|&g| above(g).any(|g| g == at));
            let iops = inside.map(|g| u64::from(min(g).iops)).sum();
            if iops > limit {
                return Err(Refusal::AboveLimit { iops, limit });
            }
        }
        Ok(())
    }

    /// Whether a group can be made, or moved, to be inside another.
    fn may_move(&self, group: GroupId, parent: GroupId, requests: &Requests) -> Result<(), Refusal> {
        if group == GroupId::ROOT {
            return Err(Refusal::Root);
        }
        if self.groups.get(group).is_none() {
            return Err(Refusal::NoGroup(group));
        }
        if !self.exists(parent) {
            return Err(Refusal::NoGroup(parent));
        }
        if self.is_inside(parent, group) {
            return Err(Refusal::Loop(group));
        }
        // A scheduler has counted each request for its group and those above; a move would have to be undone
        // in all of these books.
        if requests.has_any(|g| self.is_inside(g, group)) {
            return Err(Refusal::Busy(group));
        }
        Ok(())
    }

    fn move_to(&mut self, group: GroupId, parent: GroupId) {
        if self.groups[group].is_gone {
            self.forget(group);
        } else {
            let old = self.groups[group].parent;
            self.groups[old].children -= 1;
        }
        self.groups[group].parent = parent;
        self.groups[parent].children += 1;
    }

    /// A group that is gone, and has no requests, leaves its number to a new one. What it got stays with the
    /// group that it was in, as do groups in it, which are gone too.
    fn forget(&mut self, group: GroupId) {
        let parent = self.groups[group].parent;
        self.bequeath(group, parent);
        self.clear(group);
        self.groups[group] = Group::NEW;
        for (_, g) in self.groups.iter_mut().filter(|(_, g)| g.parent == group) {
            g.parent = parent;
        }
        if self.served == Some(group) {
            (self.served, self.idle_since, self.idled) = (None, None, Duration::ZERO);
        }
    }

    /// Adds what a group got, and what groups in it got that are gone, to what is kept at another. In two
    /// steps: the figures of a group are large, and a kernel's stack is small.
    fn bequeath(&mut self, group: GroupId, to: GroupId) {
        self.bequeath_own(group, to);
        let gone = self.gone[group];
        self.gone[to].add(&gone);
    }

    #[inline(never)]
    fn bequeath_own(&mut self, group: GroupId, to: GroupId) {
        let stats = self.settled(group);
        self.gone[to].add(&stats);
    }

    fn exit(&mut self, group: GroupId) {
        let g = &mut self.groups[group];
        g.is_gone = true;
        // No call could change them any more.
        (g.min, g.max, g.latency) = (Min::default(), Max::default(), None);
        let parent = g.parent;
        self.groups[parent].children -= 1;
    }
}
