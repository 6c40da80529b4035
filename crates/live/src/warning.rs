//! Lines on standard error that nobody may read.
//!
//! `eprintln!` panics when standard error is closed, as it is when the program that logs it has ended. The
//! thread that schedules must not end with it, so what cannot be said is left unsaid.

use std::io::Write;

/// Prints a line, if somebody listens.
pub(crate) fn warn(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}
