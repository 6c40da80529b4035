//! The integration tests, in one program.

mod doctor;
mod tracefs;
mod trees;
