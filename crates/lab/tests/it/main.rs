//! The integration tests, in one program.

mod arena;
mod outside_groups;
mod question;
