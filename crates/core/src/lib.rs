//! Disk schedulers as one pure state machine: requests come in, one decision comes out, a completion comes
//! back.
//!
//! What a driver (a simulator, a live engine, a kernel module) owes the [`Elevator`], and what it gets:
//!
//! 1. Wait for **one** of: an arrival, a completion, a timer, a control change. Tell the elevator, with
//!    `now`.
//! 2. While the device has a free slot, call `dispatch(now)`; on `Issue(tag)` send that request, else stop.
//! 3. Arm **one** timer at `next_timer()`, or none. Go to 1.
//!
//! Time never goes backwards; equal instants are fine, and then the order of calls is the order of events. A
//! spurious `timer` does no harm; an `Issue` is a promise to obey. The core never asks for the time, never
//! allocates after `new`, never blocks, never logs, and uses no floats. One elevator per device; its owner
//! serialises the calls.
//!
//! ```
//! use fairhead_core::{Dispatch, Elevator, Instant, Insert, Limits, Request, Sector, Sectors, Tag, TaskId};
//! use fairhead_core::sched::noop::Noop;
//!
//! let mut elevator = Elevator::<Noop>::new(Limits::default(), Default::default())?;
//! let now = Instant::EPOCH;
//! let read = |start| Request::read(TaskId(1), Sector(start), Sectors(8));
//! assert_eq!(elevator.insert(now, Tag(0), read(100)), Insert::Queued);
//! let merged = elevator.insert(now, Tag(1), read(108));
//! assert!(matches!(merged, Insert::Merged { into: Tag(0), .. }));
//! assert_eq!(elevator.dispatch(now), Dispatch::Issue(Tag(0)));
//! assert!(elevator.complete(now, Tag(0)).eq([Tag(0), Tag(1)]));
//! # Ok::<(), fairhead_core::config::ConfigError>(())
//! ```
//!
//! Start reading at [`elevator`], then [`sched`] and a short scheduler such as [`sched::noop`].
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]
#![deny(clippy::float_arithmetic, clippy::std_instead_of_core, clippy::alloc_instead_of_core)]

pub mod config;
pub mod elevator;
pub mod groups;
mod parts;
pub mod request;
pub mod sched;
mod table;
#[cfg(test)]
#[allow(clippy::std_instead_of_core, reason = "tests may use std")]
mod testkit;
pub mod trace;
pub mod units;

// The files that unit tests share with the suites in `tests/` name this crate as those do.
#[cfg(test)]
extern crate self as fairhead_core;

pub use elevator::{
    Act, Actuators, Books, Control, Cx, Dispatch, Elevator, End, Hold, Insert, Limits, Rest, Timer,
};
pub use groups::{GroupStats, Groups, Max, Min, Policy, Refusal, Split};
pub use parts::merge::Edges;
pub use request::{Op, Request, Requests, State};
pub use trace::{Action, Detail, Reason, TraceEvent};
pub use units::{Class, Duration, GroupId, Instant, IoPrio, Sector, Sectors, Tag, TaskId, Weight};

/// The examples of the README, as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
