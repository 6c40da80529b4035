//! Programs in C against the library: with the sanitizers of addresses and undefined behaviour, and with a
//! heap that must not be used.
//!
//! The library that is linked is the one that cargo has built beside this test.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What the library needs of the system.
const SYSTEM: &[&str] = &["-lpthread", "-ldl", "-lm"];

/// The C compiler; `None` if there is none.
fn compiler() -> Option<String> {
    let cc = env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    Command::new(&cc).arg("--version").output().ok().filter(|out| out.status.success()).map(|_| cc)
}

/// The static library of this build.
fn library() -> PathBuf {
    let test = env::current_exe().expect("this test");
    let library = test.with_file_name("libfairhead.a");
    assert!(library.exists(), "cargo builds {} before this test", library.display());
    library
}

fn run(command: &mut Command) -> String {
    let out = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let [said, wrong] = [&out.stdout, &out.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    assert!(out.status.success(), "{command:?}: {}\n{said}{wrong}", out.status);
    said
}

/// Builds and runs a program of `tests/c`.
fn try_program(name: &str, flags: &[&str]) {
    let Some(cc) = compiler() else {
        println!("skipped: there is no C compiler");
        return;
    };
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let mut build = Command::new(cc);
    build.args(["-std=c11", "-D_GNU_SOURCE", "-O1", "-g", "-Wall", "-Wextra", "-Werror"]).args(flags);
    build.arg("-I").arg(here.join("include")).arg("-o").arg(&program);
    build.arg(here.join("tests/c").join(format!("{name}.c"))).arg(library()).args(SYSTEM);
    run(&mut build);
    assert_eq!(run(&mut Command::new(&program)).trim(), "ok");
}

const SANITIZED: &[&str] = &["-fsanitize=address,undefined", "-fno-sanitize-recover=all"];

#[test]
fn the_life_of_every_scheduler() {
    try_program("life", SANITIZED);
}

#[test]
fn misuse_is_an_error_code() {
    try_program("misuse", SANITIZED);
}

#[test]
fn structs_have_one_layout() {
    try_program("layout", SANITIZED);
}

#[test]
fn nothing_allocates_after_creation() {
    let wrapped = "-Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=posix_memalign,--wrap=aligned_alloc,--wrap=free";
    try_program("no_heap", &[wrapped]);
}

/// A program in C++ can include the header.
#[test]
fn the_header_is_c_plus_plus_too() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let Ok(out) = Command::new("c++").arg("--version").output() else {
        println!("skipped: there is no C++ compiler");
        return;
    };
    assert!(out.status.success());
    let header = here.join("include/fairhead.h");
    run(Command::new("c++")
        .args(["-std=c++11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-x", "c++"])
        .arg(header));
}
