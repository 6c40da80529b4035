//! The integration tests, in one program.

mod kernel_logs;
