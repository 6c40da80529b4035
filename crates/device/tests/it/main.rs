//! The integration tests, in one program.

#[path = "../host/mod.rs"]
mod host;

mod closed_loop;
mod greedy;
mod link;
mod presets;
mod ssd;
mod waits;
