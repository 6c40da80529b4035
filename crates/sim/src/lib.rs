//! The lab: a deterministic simulator of processes, a host and a disk around the schedulers of `fairhead-core`.
//!
//! A [`Scenario`] is everything that decides a run: a job file, a disk, a host, a scheduler and a seed. [`simulate`]
//! turns it into an [`Outcome`]: per client and in total, how much, how fast, how long it waited; and what the disk did.
//! The same scenario gives the same outcome, bit by bit, on every machine.

#![forbid(unsafe_code)]

pub mod advise;
pub mod conform;
mod engine;
mod error;
mod event;
pub mod ext2;
pub mod host;
pub mod job;
pub mod journal;
pub mod kept;
pub mod ladder;
pub mod latencies;
pub mod layout;
pub mod metrics;
pub mod parallel;
pub mod replay;
pub mod reproduce;
pub mod rng;
mod starts;
pub mod sweep;
pub mod validate;
pub mod why;

pub use engine::{Memory, Scenario, capacity, groups_kept, memory, simulate};
pub use error::SimError;
pub use host::Host;
pub use metrics::Outcome;
pub use starts::hang_on_starts;
