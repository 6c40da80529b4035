//! The suite that every scheduler passes, and the longest waits that these promise.

use fairhead_core::Op;
use fairhead_core::sched::catalogue::Catalogue;
use fairhead_outside::{ADIOS, ALL, IOCOST, IOLATENCY, adios};
use fairhead_suite::{SERVICE_MAX, Suite};

#[test]
fn names_are_new() {
    assert!(Catalogue::new(&ALL).is_ok());
}

/// Until its deadline others may go first; from then on those with earlier deadlines, each for one service,
/// and what is batched or at the disk.
fn adios() -> Suite {
    Suite::of(&ADIOS).bounded(|config, load, rq| {
        let name = match rq.op {
            Op::Read => "lat_target_read",
            Op::Write => "lat_target_write",
            Op::Discard => "lat_target_discard",
        };
        let target = fairhead_core::Duration::from_ns(config.get(name)?);
        let ahead = SERVICE_MAX * (2 * load.requests + load.depth);
        Some(target + adios::LATENCY_MAX + load.tick * 2 + ahead)
    })
}

#[test]
fn adios_storms() {
    adios().storms("adios_storms");
}

#[test]
fn adios_small_cases() {
    adios().small_cases();
}

/// Each of those that are here already, and the request itself, may wait for a budget until the disk has had
/// nothing to do for long enough, and for its service.
fn iocost() -> Suite {
    Suite::of(&IOCOST).bounded(|config, load, _| {
        let stall = fairhead_core::Duration::from_ns(config.get("stall_max")?);
        Some((SERVICE_MAX + stall + load.tick * 2) * (load.requests + load.depth))
    })
}

#[test]
fn iocost_storms() {
    iocost().storms("iocost_storms");
}

#[test]
fn iocost_small_cases() {
    iocost().small_cases();
}

/// With one group nothing is throttled: those that are here already go first.
fn iolatency() -> Suite {
    Suite::of(&IOLATENCY).bounded(|_, load, _| Some(SERVICE_MAX * load.requests))
}

#[test]
fn iolatency_storms() {
    iolatency().storms("iolatency_storms");
}

#[test]
fn iolatency_small_cases() {
    iolatency().small_cases();
}
