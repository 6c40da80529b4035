//! The integration tests, in one program.

mod ladder;
mod recorded_drives;
