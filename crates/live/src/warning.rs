//! Lines on standard error, which may be closed.
//!
//! `eprintln!` panics when standard error is closed, as it is when the program that logs it has ended. The
//! thread that schedules must not end with it, so an error is ignored.

use std::io::Write;

/// Prints a line, unless standard error is closed.
pub(crate) fn warn(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}
