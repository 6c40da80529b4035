//! The integration tests, in one program.

#[path = "../support/mod.rs"]
mod support;

mod golden;
mod groups;
mod idle_tasks;
mod limits;
mod mq_deadline_log;
mod small;
mod suite;
mod twin;
