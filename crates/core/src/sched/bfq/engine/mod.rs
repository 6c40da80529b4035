//! BFQ's engine: it keeps queues and gives turns. Only these files change queues and their hierarchy.
//!
//! | file | has |
//! |---|---|
//! | [`queue`] | what there is of queues, of the tasks that use them, and of requests |
//! | [`queues`] | how queues come and go, and which one a task has |
//! | [`merging`] | tasks that share a queue, and part again |
//! | [`positions`] | queues in the order of their next requests' positions |
//! | [`slot`] | how a queue gets the disk, keeps it, and loses it |
//! | [`budget`] | how much it may send, what that costs |
//! | [`injection`] | which queues can be served while the disk is kept for another one |
//! | [`group`] | groups, priorities, tags: what comes from outside |
//! | [`setting`] | what all of this is set to |
//! | [`check`] | what must hold between events |
//!
//! What is to be done in a case that the literature calls a heuristic is asked of [`hooks`](super::hooks), by
//! the name of the question.

mod budget;
mod check;
mod group;
mod injection;
mod merging;
mod positions;
pub(crate) mod queue;
pub(crate) mod queues;
pub(crate) mod setting;
mod slot;
