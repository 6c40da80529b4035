//! What every scheduler must pass, through the C ABI.

mod tools;

use fairhead_core::sched::outside::Factory;
use fairhead_outside::ADIOS;
use fairhead_suite::Suite;
use tools::example;

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
