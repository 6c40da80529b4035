//! The integration tests, in one program.

mod apply;
mod bound;
mod doctor;
mod museum;
mod tracefs;
mod trees;
mod voice;
