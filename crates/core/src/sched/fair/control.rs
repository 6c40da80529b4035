//! Changes from outside: weights, classes, guarantees, parents, tunables, tasks and groups that go.

use super::config::{Charge, Config, Layer};
use super::member::Member;
use super::slice::Expire;
use super::{Divisible, Fair, Mode, Unit};
use crate::config::{ConfigError, Tunables};
use crate::elevator::{Control, Cx};
use crate::units::{Class, GroupId, Id};

/// How groups share a device, and what.
pub(super) fn sharing(layer: &Layer, is_fast: bool) -> (Mode, Unit) {
    let shares = is_fast && layer.fairness == 0 && layer.charge != Charge::Time;
    let unit = match layer.charge {
        Charge::Auto if shares => Unit::Sectors,
        Charge::Auto | Charge::Time => Unit::Time,
        Charge::Sectors => Unit::Sectors,
        Charge::Requests => Unit::Requests,
    };
    (if shares { Mode::Shared } else { Mode::Slices }, unit)
}

impl<S: Divisible> Fair<S> {
    pub(super) fn change(&mut self, cx: &mut Cx<'_>, change: &Control) {
        if self.mode == Mode::Single {
            return self.sched.control(cx, change);
        }
        if let Some(group) = change.reweighed() {
            let reclassed = matches!(change, Control::SetClass(..) | Control::SetPolicy(..));
            return self.reweigh(cx, group, reclassed);
        }
        match *change {
            Control::SetMin(group, _) => self.guarantee(cx, group),
            Control::SetParent(group, parent) => self.move_group(cx, group, parent),
            Control::GroupExit(group) => {
                // A group that is gone is not waited for; its guarantee goes with it.
                self.members[group].is_gone = true;
                self.guarantee(cx, group);
            }
            Control::TaskExit(task) => {
                // Idling for a task that has exited would be in vain.
                if let Some(group) = self.active {
                    self.force(group);
                    self.members[group].has_exited |= self.members[group].task == task;
                }
                self.sched.control(cx, change);
            }
            _ => self.sched.control(cx, change),
        }
    }

    /// The engine is for good. The rest holds from the next turn, or the next look, on.
    pub(super) fn retune(&mut self, cx: &mut Cx<'_>, config: Config<S::Config>) -> Result<bool, ConfigError> {
        config.layer.validate()?;
        let (old, new) = (&self.config, &config);
        // The engines keep different virtual times, so the caller has to drain and build anew.
        if old.layer.engine != new.layer.engine {
            new.inner.validate()?;
            return Ok(false);
        }
        let same =
            <S::Config as Tunables>::LIST.iter().all(|t| old.inner.get(t.name) == new.inner.get(t.name));
        if !same && !self.sched.reconfigure(cx, config.inner)? {
            return Ok(false);
        }
        self.config = config;
        if self.mode != Mode::Single {
            let shared = sharing(&config.layer, self.is_fast);
            if shared != (self.mode, self.unit) {
                // The running slice was measured in the old unit.
                self.expire(cx, Expire::Used);
                (self.mode, self.unit) = shared;
            }
        }
        Ok(true)
    }

    /// Weight, leaf weight or class of a group may be another now. A slice of the group that has the disk
    /// ends if its class might not be the highest any more.
    fn reweigh(&mut self, cx: &mut Cx<'_>, group: GroupId, reclassed: bool) {
        let groups = &cx.books.groups;
        let (weight, leaf) = (groups.weight(group).get(), groups.leaf_weight(group).get());
        self.tree.set_shares(group, weight, leaf, groups.class(group));
        if reclassed {
            let mut all = (0..self.members.len()).map(GroupId::from_index);
            self.has_classes = all.any(|g| groups.class(g) != Class::BestEffort);
            if self.tree.active() > 1 {
                self.expire(cx, Expire::Preempted);
            }
        }
    }

    /// What a group is guaranteed may be another now.
    fn guarantee(&mut self, cx: &mut Cx<'_>, group: GroupId) {
        let m = &mut self.members[group];
        self.reserve.part(group);
        m.clock.set(cx.books.groups.min(group).iops);
        if m.queued > 0 {
            self.reserve.join(group, &mut m.clock, cx.now);
        }
    }

    /// A group is inside another now. Neither it nor any in it has requests; one may still have the disk. If
    /// it was gone, it is a new one, and the books have those that were removed inside it elsewhere already.
    fn move_group(&mut self, cx: &mut Cx<'_>, group: GroupId, parent: GroupId) {
        if self.active.is_some_and(|active| self.tree.is_inside(active, group)) {
            self.expire(cx, Expire::Empty);
        }
        self.tree.set_parent(group, parent);
        if self.members[group].is_gone {
            self.members[group] = Member::new();
            let mut fresh = self.sched.context();
            if self.in_force == group {
                self.sched.swap(group, &mut fresh);
            } else {
                self.contexts[group] = fresh;
            }
            self.reweigh(cx, group, true);
        }
    }
}
