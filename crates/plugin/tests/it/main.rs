//! The integration tests, in one program.

#[path = "../tools/mod.rs"]
mod tools;

mod c;
mod suite;
