//! Tests.

mod engine;
mod heuristics;
mod rig;
