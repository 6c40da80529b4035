//! The integration tests, in one program.

mod outside_groups;
mod question;
