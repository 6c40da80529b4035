//! What the suites share: chance, oracles, an elevator under observation, and a storm of operations to put it
//! in.
//!
//! ```text
//!   seeds ──► Chance ──► Storm (operations, faults, virtual time, a device)
//!                          │
//!                          ▼
//!                       Subject ──► Elevator<AnyScheduler>   and, in lockstep, a twin with extra timer calls
//!                          │
//!                          ▼
//!                       Ledger  (what must hold, kept apart from the system: std collections, its own arithmetic)
//! ```
//!
//! These files are in the crate `fairhead-suite`, for the schedulers of others. The tests of `fairhead-core`
//! compile them through a link, since that crate has no dependencies, and so do the fuzz targets, with bytes
//! in place of a seed.
#![allow(dead_code, reason = "each test binary uses a part of it")]
#![allow(unreachable_pub, reason = "some items are public in the crate `fairhead-suite`, and only there")]

pub(crate) mod alloc;
pub(crate) mod bounds;
pub(crate) mod calm;
pub(crate) mod chance;
pub(crate) mod draw;
pub(crate) mod exhaust;
pub(crate) mod ledger;
pub(crate) mod seeds;
pub(crate) mod shrink;
pub(crate) mod small;
pub(crate) mod storm;
pub(crate) mod subject;
pub(crate) mod tally;
