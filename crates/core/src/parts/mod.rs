//! Parts that schedulers are built from: each one small type, tested alone, owned as a field.
//!
//! A part never names a scheduler. It changes itself and returns what happened; the scheduler updates its own
//! books.

pub(crate) mod choose;
pub(crate) mod decay;
pub(crate) mod disk_time;
pub(crate) mod dispatch_list;
pub(crate) mod fair_tree;
#[cfg(test)]
#[allow(clippy::float_arithmetic, clippy::std_instead_of_core, reason = "tests may use std and floats")]
mod fairness;
pub(crate) mod fifo;
pub(crate) mod hash;
pub(crate) mod hierarchy;
pub(crate) mod merge;
mod red_black;
pub(crate) mod sorted;
pub(crate) mod tasks;
pub(crate) mod think_time;
pub(crate) mod throttle;
pub(crate) mod tree;
pub(crate) mod wf2q;
pub(crate) mod wide;
