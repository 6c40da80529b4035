//! The integration tests, in one program.

mod answers;
mod arena;
mod outside_groups;
mod question;
