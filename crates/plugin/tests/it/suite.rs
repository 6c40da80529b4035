//! What every scheduler must pass, through the C ABI.

use crate::tools::example;
use fairhead_core::sched::any::{AnyConfig, AnyScheduler};
use fairhead_core::sched::outside::{Config, Factory};
use fairhead_core::{
    Control, Dispatch, Duration, Elevator, GroupId, Insert, Instant, Limits, Max, Request, Sector, Sectors,
    Tag, TaskId,
};
use fairhead_outside::ADIOS;
use fairhead_suite::Suite;
use std::num::NonZeroU64;

/// The suite of ADIOS as a library. Without its bound on waiting, which `fairhead-outside` tests.
fn adios() -> Suite {
    let plugin = fairhead_plugin::open(&example("adios").to_string_lossy()).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(plugin.tunables(), ADIOS.tunables());
    Suite::of(plugin)
}

#[test]
fn adios_from_a_library_storms() {
    adios().storms("adios_from_a_library_storms");
}

#[test]
fn adios_from_a_library_small_cases() {
    adios().small_cases();
}

/// A limit holds a request, its group is removed, and then the library gets it: for the group around it.
#[test]
fn a_request_that_a_limit_holds_outlives_its_group() {
    let plugin = fairhead_plugin::open(&example("adios").to_string_lossy()).unwrap_or_else(|e| panic!("{e}"));
    let config = AnyConfig::Outside(Config::of(plugin).unwrap_or_else(|unfit| panic!("{unfit}")));
    let limits = Limits { groups: 4, ..Limits::default() };
    let mut elevator = Elevator::<AnyScheduler>::new(limits, config).expect("an elevator");
    let (mut now, group) = (Instant::EPOCH, GroupId(1));
    let max = Max { riops: NonZeroU64::new(10), ..Max::default() };
    elevator.control(now, Control::SetMax(group, max)).expect("a limit");
    for (tag, sector) in [(Tag(0), 0), (Tag(1), 8000)] {
        let rq = Request { group, ..Request::read(TaskId(1), Sector(sector), Sectors(8)) };
        assert_eq!(elevator.insert(now, tag, rq), Insert::Queued);
    }
    assert_eq!(elevator.dispatch(now), Dispatch::Issue(Tag(0)));
    elevator.complete(now, Tag(0)).for_each(drop);
    assert_ne!(elevator.dispatch(now), Dispatch::Issue(Tag(1)), "the limit holds it");
    elevator.control(now, Control::GroupExit(group)).expect("it goes");
    now = now + Duration::from_secs(1);
    elevator.timer(now);
    assert_eq!(elevator.dispatch(now), Dispatch::Issue(Tag(1)));
}
