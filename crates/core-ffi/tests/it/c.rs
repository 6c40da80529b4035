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
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c").join(format!("{name}.c"));
    let Some(program) = build(&source, flags) else { return };
    assert_eq!(run(&mut Command::new(&program)).trim(), "ok");
}

/// Builds a program. Returns it, or `None` if there is no compiler.
fn build(source: &Path, flags: &[&str]) -> Option<PathBuf> {
    let Some(cc) = compiler() else {
        println!("skipped: there is no C compiler");
        return None;
    };
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let name = source.file_stem().expect("a name of a program");
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let mut build = Command::new(cc);
    build.args(["-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Werror"]).args(flags);
    build.arg("-I").arg(here.join("include")).arg("-o").arg(&program);
    build.arg(source).arg(library()).args(SYSTEM);
    run(&mut build);
    Some(program)
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

/// The example of the documentation: two tenants read a file.
#[test]
fn two_tenants_read_a_file() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let source = here.join("../../examples/c/two_tenants.c");
    if !source.exists() {
        println!("skipped: the example is in the repository, not in the package");
        return;
    }
    let Some(program) = build(&source, SANITIZED) else { return };
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("two_tenants.data");
    let bytes: Vec<u8> = (0..4_u32 << 20).map(|i| (i * 31 + (i >> 12) * 7) as u8).collect();
    std::fs::write(&file, bytes).expect("a file of 4 MiB");
    let said = run(Command::new(program).arg(&file).arg("0.5"));
    assert!(said.contains("tenant 1: ") && said.contains("tenant 2: "), "{said}");
    assert!(!said.contains(": 0 reads") && said.ends_with("\n0 reads were wrong\n"), "{said}");
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
