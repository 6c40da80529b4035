//! Parts that schedulers are built from: each one small type, tested alone, owned as a field.
//!
//! A part never names a scheduler. It changes itself and returns what happened; the scheduler updates its own
//! books.

pub mod choose;
pub mod decay;
pub mod disk_time;
pub mod dispatch_list;
pub mod fair_tree;
pub mod fifo;
pub mod hash;
pub mod hierarchy;
pub mod merge;
mod red_black;
pub mod sorted;
pub mod tasks;
pub mod think_time;
pub mod throttle;
pub mod tree;
pub mod wf2q;
