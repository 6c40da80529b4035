//! The lab: a deterministic simulator of processes, a host and a disk around the schedulers of
//! `fairhead-core`.
//!
//! A [`Scenario`] is everything that decides a run: a job file, a disk, a host, a scheduler and a seed.
//! [`simulate`] turns it into an [`Outcome`]: per client and in total, how much, how fast, how long it
//! waited; and what the disk did. The same scenario gives the same outcome, bit by bit, on every machine.
//!
//! ```
//! use fairhead_core::sched::any::preset;
//! use fairhead_device::DeviceParams;
//! use fairhead_sim::{Host, Scenario, job, simulate};
//!
//! let jobs = job::parse("[reader]\nrw=randread\nsize=64k\ndirect=1\n", "small.fio").unwrap();
//! let scenario = Scenario {
//!     jobs,
//!     disk: DeviceParams::preset("nas2020").unwrap(),
//!     host: Host::named("2020").unwrap(),
//!     scheduler: "bfq".to_owned(),
//!     config: (preset("bfq").unwrap().config)(),
//!     seed: 1,
//!     interval: None,
//!     time_max: None,
//!     watch: None,
//! };
//! let outcome = simulate(&scenario).unwrap();
//! assert_eq!(outcome.clients[0].read.bytes, 65_536);
//! assert_eq!(outcome.clients[0].read.calls, 16);
//! ```

#![forbid(unsafe_code)]

pub mod advise;
pub mod arena;
mod engine;
mod error;
mod event;
pub mod ext2;
pub mod host;
pub mod idled;
pub mod job;
pub mod journal;
pub mod latencies;
pub mod layout;
pub mod metrics;
pub mod parallel;
pub mod rates;
pub mod replay;
pub mod resumable;
pub mod rng;
pub mod satisfaction;
mod starts;
pub mod sweep;
pub mod why;

pub use engine::memory::{Memory, memory};
pub use engine::{Scenario, capacity, groups_kept, simulate, simulate_unless};
pub use error::SimError;
pub use host::Host;
pub use metrics::Outcome;
pub use starts::hang_on_starts;
