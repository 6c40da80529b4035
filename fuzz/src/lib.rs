//! What is fuzzed: the parsers, with bytes that users might hand in, and the elevator, with operations made of bytes.
//!
//! Each target is a function here, so that a fuzzer (`cargo xtask fuzz`, or `cargo fuzz run TARGET`) and a plain test
//! (`tests/replay.rs`, over the committed corpus) run the same code.

#[path = "../../crates/core/tests/support/mod.rs"]
mod support;

use fairhead_core::sched::any::PRESETS;
use fairhead_device::DeviceParams;
use fairhead_sim::{conform, job};
use std::fmt::Display;
use support::chance::Chance;
use support::storm::Storm;

/// A message must be one line that says in which file it is.
fn check_message(error: &impl Display, file: &str) {
    let message = error.to_string();
    assert!(message.starts_with(file), "does not begin with the file: {message:?}");
    let clean = !message.chars().any(char::is_control);
    assert!(clean && message.len() < 2000, "not one readable line: {message:?}");
}

/// Any bytes give a job file or a one-line error.
pub fn job_file(data: &[u8]) {
    match job::parse_bytes(data, "fuzz.fio") {
        // What was accepted can be asked for its clients.
        Ok(file) => assert!(file.clients().take(1000).count() > 0, "a job file without a client"),
        Err(error) => check_message(&error, "fuzz.fio"),
    }
}

/// Any text gives a device or a one-line error.
pub fn disk_preset(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match DeviceParams::from_toml(text, "fuzz.toml") {
        Ok(device) => assert!(!device.name().is_empty(), "a device without a name"),
        Err(error) => check_message(&error, "fuzz.toml"),
    }
}

/// Any bytes give a comparison or a one-line error, and counts that make sense.
pub fn kernel_log(data: &[u8]) {
    match conform::compare(&mut || Ok(data), "fuzz.txt", &mut |_| {}) {
        Ok(report) => {
            for (topic, a) in &report.agreements {
                assert!(a.agreed <= a.compared && a.compared > 0, "{}", topic.name());
            }
        }
        Err(error) => check_message(&error, "fuzz.txt"),
    }
}

/// Any operations keep the promises of the suite.
pub fn elevator(data: &[u8]) {
    let mut chance = Chance::Bytes(data.to_vec());
    let preset = chance.pick(PRESETS);
    Storm::draw(&mut chance, preset).run();
}
