//! Programs that tests run, and files that cargo has built beside them.

#![allow(dead_code, reason = "no test binary needs all of it")]

use std::path::{Path, PathBuf};
use std::process::Command;

/// A path in this package.
pub(crate) fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Whether a program is not there; says so.
pub(crate) fn missing(program: &str) -> bool {
    let is_missing = Command::new(program).arg("--version").output().is_err();
    if is_missing {
        println!("skipped: {program} is not installed");
    }
    is_missing
}

/// What a program prints; it must succeed.
pub(crate) fn run(command: &mut Command) -> String {
    let out = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let [said, wrong] = [&out.stdout, &out.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    assert!(out.status.success(), "{command:?}: {}\n{said}{wrong}", out.status);
    said
}

/// A library that cargo has built from `examples`.
pub(crate) fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("this test");
    let built = test.parent().and_then(Path::parent).expect("target/PROFILE/deps");
    let library = built.join("examples").join(format!("lib{name}.so"));
    assert!(library.exists(), "cargo builds {} before this test", library.display());
    library
}
