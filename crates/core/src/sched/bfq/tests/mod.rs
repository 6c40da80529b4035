//! Tests.

mod heuristics;
