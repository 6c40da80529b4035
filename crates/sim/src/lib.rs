//! Simulator.

pub mod job;
