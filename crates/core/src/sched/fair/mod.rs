//! What a scheduler offers to be made fair between groups by the IO controller, which is to come here.

use super::Scheduler;
use crate::elevator::Cx;
use crate::units::GroupId;

/// A scheduler whose requests can be kept apart by group.
///
/// The controller puts one group *in force* at a time by [`Divisible::swap`] and calls the scheduler with that group's requests
/// only, as if there were no others: `insert`, `merged`, `joined`, `complete` and so on with the group of the request in force, and
/// `dispatch` only while the group in force has the disk. A group has the disk from [`Divisible::enter`] to [`Divisible::leave`].
pub trait Divisible: Scheduler {
    /// What it has of its own for each group: queues, where it stands in a batch. Small: it is swapped often.
    type Context: core::fmt::Debug;

    /// That of a group without requests.
    fn context(&self) -> Self::Context;

    /// Puts `context`, that of `group`, in force, and leaves there that of the group before.
    fn swap(&mut self, group: GroupId, context: &mut Self::Context);

    /// The group in force gets the disk: what was running when it lost it goes on, with the time that was left.
    fn enter(&mut self, _cx: &mut Cx<'_>) {}

    /// Whether the group in force can lose the disk without harm: not in the middle of a change, or while its next request is
    /// awaited.
    fn may_leave(&self) -> bool {
        true
    }

    /// The group in force loses the disk, whether it may or not: from now on nothing is awaited, and time does not count.
    fn leave(&mut self, _cx: &mut Cx<'_>) {}
}
