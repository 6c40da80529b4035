//! How many small changes of the code the tests notice: the program in `mutants/`.
//!
//! It is a crate of its own because it reads Rust with `syn`, and this crate has no dependencies.

use crate::shell::cargo;

/// Passes `args` to it. What it prints is seen as it comes.
pub(crate) fn run(args: &[&str]) -> Result<(), String> {
    let status = cargo("run --quiet --package fairhead-mutants --").args(args).status();
    match status.map_err(|e| format!("cargo: {e}"))? {
        status if status.success() => Ok(()),
        status => Err(format!("cargo xtask mutants: {status}")),
    }
}
