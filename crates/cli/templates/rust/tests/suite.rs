//! What every scheduler must pass.

use fairhead_core::Duration;
use fairhead_core::sched::outside::Of;
use fairhead_suite::{SERVICE_MAX, Suite};
use upwards::Upwards;

static UPWARDS: Of<Upwards> = Of::new("upwards and around, with patience");

/// A request goes first after `patience`: then only older ones, and what is at the device, are before it.
fn suite() -> Suite {
    Suite::of(&UPWARDS).bounded(|config, load, _| {
        let patience = Duration::from_ns(config.get("patience")?);
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
