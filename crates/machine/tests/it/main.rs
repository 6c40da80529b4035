//! The integration tests, in one program.

mod apply;
mod doctor;
mod tracefs;
mod trees;
