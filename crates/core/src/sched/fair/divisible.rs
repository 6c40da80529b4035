//! What a scheduler offers to be made fair between groups.
//!
//! Tables by request and by task are shared by all groups; what a scheduler has for each group, its queues
//! and where it stands in a batch, is its [`Divisible::Context`]. One context is *in force*, and the
//! scheduler works on it as if there were no other. So memory grows with requests and groups, not with their
//! product, and a scheduler that is used by itself pays nothing for this: it has one context, always in
//! force.
//!
//! ```text
//!   group in force:   A      A       B       A        A        B      B        B
//!   the disk is:      –  enter(A)  insert  insert  leave(A)    –   enter(B)  dispatch
//! ```

use crate::config::ConfigError;
use crate::elevator::{Cx, Limits};
use crate::request::Requests;
use crate::sched::Scheduler;
use crate::units::GroupId;

/// A scheduler whose requests can be kept apart by group.
///
/// The controller calls `insert`, `merged`, `joined`, `complete`, `requeue` and `reissue` with the group of
/// the request in force, which may not be the one that has the disk. A group has the disk from
/// [`Divisible::enter`] to [`Divisible::leave`], and at most one has; `dispatch`, `drain` and `timer` come
/// with it in force, and so do changes of tasks, if any group has the disk. `next_timer` and `has_room` can
/// be asked whichever group is in force: which task is awaited, and until when, is a property of the device.
pub trait Divisible: Scheduler {
    /// Its name under the controller.
    const DIVIDED: &'static str;

    /// What it has of its own for each group: queues, where it stands in a batch. Small: it is copied often.
    type Context: Copy + core::fmt::Debug;

    /// A scheduler to be used under the controller. The only call that may allocate.
    ///
    /// # Errors
    /// If a tunable is out of range.
    fn divided(limits: Limits, config: Self::Config) -> Result<Self, ConfigError> {
        Self::new(limits, config)
    }

    /// That of a group without requests.
    fn context(&self) -> Self::Context;

    /// Puts `context`, that of `group`, in force, and leaves there that of the group before.
    fn swap(&mut self, group: GroupId, context: &mut Self::Context);

    /// The group in force gets the disk: what was running when it lost it continues, with the time that was
    /// left.
    fn enter(&mut self, _cx: &mut Cx<'_>) {}

    /// Whether the group in force, which has the disk, can lose it without harm: not in the middle of a
    /// change, or while its next request is awaited.
    fn may_leave(&self) -> bool {
        true
    }

    /// The group in force loses the disk, whether it may or not: from now on nothing is awaited, and time
    /// does not count.
    fn leave(&mut self, _cx: &mut Cx<'_>) {}

    /// As [`Scheduler::check`], of the context in force and `others`: those of all other groups.
    fn check_each<'a>(&'a self, others: impl Iterator<Item = &'a Self::Context>, requests: &Requests)
    where
        Self::Context: 'a;
}
