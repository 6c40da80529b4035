//! The integration tests, in one program.

mod any;
mod clouds;
mod flushes;
mod golden;
mod kept;
mod perf;
mod ring;
mod shared_data;
mod snoop;
