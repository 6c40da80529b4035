//! The integration tests, in one program.

mod c;
mod same_decisions;
