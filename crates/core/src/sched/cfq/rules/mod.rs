//! CFQ's rules.

pub(crate) mod cooperate;
pub(crate) mod depth;
pub(crate) mod idling;
pub(crate) mod preempt;
