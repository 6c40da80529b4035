//! Under the controller: which group has the disk is not ours to choose.
//!
//! CFQ keeps its groups apart as it does by itself; but it serves only the group *in force*, charges none,
//! and lets no queue preempt one of another group. Inside the group everything is as without groups, so that
//! a group that is alone notices nothing.
//!
//! A group can lose the disk at any moment, and then its active queue is *suspended*: it goes before all
//! others of its kind when the group has the disk again, for what was left of its slice. Otherwise who
//! happens to be second in a group would always be cut short. With slices of 100 ms for queues and 150 ms for
//! groups, and two readers r and s in a group:
//!
//! ```text
//!   the group's turns       |      1      |      2      |
//!   suspended               | r 100  s 50 | s 50  r 100 |      150 ms each
//!   expired, and filed last | r 100  s 50 | r 100  s 50 |      200 and 100
//! ```
//!
//! Async requests are their own group's in every era, and seeky queues stay in theirs.
//!
//! It does not wait for the sake of a group that lost the disk, nor refuse to lose it: the head will be
//! elsewhere.
//!
//= docs/reference/groups.md#6-schedulers-in-the-layer CFQ

use super::era::Layout;
use super::service_tree::Place;
use super::view::Expire;
use super::{Cfq, Config};
use crate::config::{ConfigError, Tunables};
use crate::elevator::{Cx, Limits};
use crate::request::Requests;
use crate::sched::fair::Divisible;
use crate::units::{Duration, GroupId};

impl Divisible for Cfq {
    const DIVIDED: &'static str = "cfq+groups";

    /// What it has for each group is in a table of its own.
    type Context = ();

    fn divided(limits: Limits, config: Config) -> Result<Self, ConfigError> {
        config.validate()?;
        Ok(Self::with(&limits, &config, Layout::confined(&config, &limits)))
    }

    fn context(&self) {}

    fn swap(&mut self, group: GroupId, (): &mut ()) {
        self.trees.in_force = group;
    }

    fn leave(&mut self, cx: &mut Cx<'_>) {
        let Some(id) = self.turn.active else { return };
        let queue = &self.queues[id];
        let left = if queue.slice.is_new { Duration::from_ns(u64::MAX) } else { queue.slice.left(cx.now) };
        if left.is_zero() {
            return self.expire(cx, Expire::Used);
        }
        self.expire(cx, Expire::Suspended);
        // Also if it is empty: when it sends its next request.
        let queue = &mut self.queues[id];
        queue.slice_left = if queue.slice_left.is_zero() { left } else { queue.slice_left.min(left) };
        if self.queues[id].is_busy() {
            self.file(cx, id, Place::Front);
            self.refresh_position(cx.requests, id);
        }
    }

    fn check_each<'a>(&'a self, _: impl Iterator<Item = &'a ()>, requests: &Requests) {
        self.walk(requests);
    }
}

impl Cfq {
    /// Whether no request of the group in force waits: the only queue of it that may be busy and empty is the
    /// active one.
    pub(super) fn has_none(&self) -> bool {
        let group = self.trees.in_force;
        let is_idle = |id| self.queues[id].group == group && self.queues[id].is_empty();
        self.trees.groups[group].queues == u32::from(self.turn.active.is_some_and(is_idle))
    }
}
