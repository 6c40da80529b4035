//! The integration tests, in one program.

mod any;
mod golden;
mod ring;
mod shared_data;
