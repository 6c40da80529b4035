//! Development tasks.
//!
//! ```text
//! cargo xtask test                  everything that must hold before a change lands (CI runs exactly this)
//! cargo xtask ci                    the same
//! cargo xtask bench [--check]       instructions and allocations per request → bench/RESULTS.md; or only the limits
//! cargo xtask fuzz [--minutes N] [TARGET…]   fuzzing, 10 minutes per target unless told otherwise
//! ```
//!
//! No dependencies: a bare clone builds this in a second or two, before anything else can go wrong.

mod bench;
mod callgrind;
mod fuzz;
mod shell;
mod steps;

#[cfg(test)]
mod arch;

use std::env;
use std::process::ExitCode;

const USAGE: &str = "usage: cargo xtask test | ci | bench [--check] | fuzz [--minutes N] [TARGET…]";

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let outcome = match args.as_slice() {
        ["test" | "ci"] => return steps::run(),
        ["bench"] => bench::report(),
        ["bench", "--check"] => bench::check().map(|outcome| println!("{outcome}")),
        ["fuzz", rest @ ..] => fuzz::run(rest),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}
