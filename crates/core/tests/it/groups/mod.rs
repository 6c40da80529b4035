//! What groups are promised, kept by whole schedulers: shares by weight at every level, guarantees, and
//! changes under load.
//!
//! ```text
//!   seed ──► Tree (parents, weights, whose tasks where) ──► World: closed-loop tasks, an elevator, a toy device
//!               │                                             │ device time of each group
//!               └──► the fluid ideal: exact shares ◄──────────┘ compared
//! ```
//!
//! The device's time is counted by the device here, not by the scheduler that is judged.

mod live;
mod reservations;
mod shares;
mod tree;
mod world;
