//! The header: one layout with Rust, beside `fairhead.h`, and in C++.

use crate::tools::{here, missing, run};
use std::process::Command;

#[test]
fn structs_have_one_layout() {
    if missing("cc") {
        return;
    }
    let program = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("layout");
    let both = here("../core-ffi/include");
    for flags in [&[][..], &["-DWITH_FAIRHEAD_H"]] {
        if !flags.is_empty() && !both.exists() {
            println!("skipped: fairhead.h is in the repository, not in the package");
            continue;
        }
        let mut build = Command::new("cc");
        build
            .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-I"])
            .arg(here("include"))
            .arg("-I")
            .arg(&both);
        run(build.args(flags).arg("-o").arg(&program).arg(here("tests/c/layout.c")));
        assert_eq!(run(&mut Command::new(&program)).trim(), "ok");
    }
}

#[test]
fn the_header_is_c_plus_plus_too() {
    if missing("c++") {
        return;
    }
    let flags = ["-std=c++11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-x", "c++"];
    run(Command::new("c++").args(flags).arg(here("include/fairhead-scheduler.h")));
}

#[test]
fn the_version_is_the_same_in_both_languages() {
    let line = format!("#define FH_SCHEDULER_ABI {}\n", fairhead_plugin::abi::VERSION);
    assert!(fairhead_plugin::HEADER.contains(&line));
}
