//! Schedulers that are not of the lineage in `fairhead-core`, written with nothing but what that crate offers
//! to any other: see `fairhead_core::sched::outside`.
//!
//! Each module is one scheduler and names the public description that it was written from. None has been
//! compared with its original, decision by decision. A program that wants them all takes [`ALL`].
#![forbid(unsafe_code)]

pub mod adios;
pub mod iocost;
pub mod iolatency;
mod lists;

use fairhead_core::sched::outside::{Factory, Of};

/// ADIOS.
pub static ADIOS: Of<adios::Adios> =
    Of::new("deadlines from a learned latency of the disk, batches within a window, for flash");

/// io.cost, over no scheduler.
pub static IOCOST: Of<iocost::IoCost> =
    Of::new("shares of groups by what requests cost, as cgroup v2's io.cost")
        .keeping(&["weight", "leaf_weight"]);

/// io.latency, over no scheduler.
pub static IOLATENCY: Of<iolatency::IoLatency> =
    Of::new("latency targets of groups, kept by throttling their peers, as cgroup v2's io.latency")
        .keeping(&["latency"]);

/// All schedulers of this crate.
pub static ALL: [&dyn Factory; 3] = [&ADIOS, &IOCOST, &IOLATENCY];
