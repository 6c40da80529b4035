//! Tests.

mod conform;
mod engine;
mod heuristics;
mod rig;
mod tasks;
