//! The integration tests, in one program.

mod groups;
mod suite;
