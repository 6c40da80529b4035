//! What every scheduler must pass, for the library beside this folder.
#![cfg(test)]

use fairhead_suite::{SERVICE_MAX, Suite};

/// A request goes first after `patience`: then only older ones, and what is at the device, are before it.
fn suite() -> Suite {
    let library = fairhead_plugin::open(concat!(env!("CARGO_MANIFEST_DIR"), "/../libupwards.so"));
    Suite::of(library.expect("make builds the library")).bounded(|config, load, _| {
        let patience = fairhead_suite::Duration::from_ns(config.get("patience")?);
        Some(patience + load.tick * 2 + SERVICE_MAX * (load.requests + load.depth))
    })
}

#[test]
fn storms() {
    suite().storms("storms");
}

#[test]
fn small_cases() {
    suite().small_cases();
}
