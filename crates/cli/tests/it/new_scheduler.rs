//! `fairhead new-scheduler`: the folders build with the command that they name, pass their suites, decide
//! alike, and get the same advice; and every command of docs/extend.md runs, in its order.

#![allow(clippy::disallowed_methods, reason = "programs are real")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The root of the repository. Nothing in a package, which has no crates beside it.
fn root() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    if !root.join("docs/extend.md").is_file() {
        println!("skipped: the documents are in the repository, not in the package");
        return None;
    }
    Some(root.canonicalize().expect("the repository's root"))
}

fn fairhead(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fairhead")).args(args).current_dir(folder).output().expect("it runs")
}

/// What a command prints; it must succeed.
fn said(command: &mut Command) -> String {
    let out = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let [said, wrong] = [&out.stdout, &out.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    assert!(out.status.success(), "{command:?}: {}\n{said}{wrong}", out.status);
    said
}

/// One at a time: they build into one folder.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Where the folders' crates are built: kept from run to run, so that core is built once.
fn target() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("new-scheduler")
}

/// A command in a folder, with the program in the path and cargo without the network. `build`: where cargo
/// builds.
fn command(program: &str, folder: &Path, build: Option<&Path>) -> Command {
    let program_folder = Path::new(env!("CARGO_BIN_EXE_fairhead")).parent().expect("a folder");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path =
        std::env::join_paths(std::iter::once(program_folder.to_owned()).chain(std::env::split_paths(&path)));
    let mut command = Command::new(program);
    command.current_dir(folder).env("PATH", path.expect("a path")).env("CARGO_NET_OFFLINE", "true");
    command.env_remove("CARGO_TARGET_DIR").env("FAIRHEAD_SEEDS", "16");
    // What is built runs for a moment: without optimizations it is there soonest, with the same decisions.
    command.env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0");
    if let Some(build) = build {
        command.env("CARGO_TARGET_DIR", build);
    }
    command
}

fn missing(program: &str) -> bool {
    let is_missing = Command::new(program).arg("--version").output().is_err();
    if is_missing {
        println!("skipped: {program} is not installed");
    }
    is_missing
}

#[test]
fn both_languages_build_pass_the_suite_and_decide_alike() {
    let Some(root) = root() else { return };
    if ["cargo", "make", "cc"].into_iter().any(missing) {
        return;
    }
    let (_alone, place) = (alone(), tempfile::tempdir().expect("a folder"));
    let root = root.display().to_string();
    let make = |folder: &str, lang| {
        let out = fairhead(place.path(), &["new-scheduler", folder, "--lang", lang, "--fairhead", &root]);
        assert!(out.status.success(), "{out:?}");
        let next = String::from_utf8_lossy(&out.stdout).into_owned();
        assert!(
            next.starts_with(&format!("cd {folder}\n")) && next.contains("\nfairhead run --sched "),
            "{next}"
        );
        place.path().join(folder)
    };
    // One name, so that what they print can be compared as it is.
    let (rust, c) = (make("rust/my-first", "rust"), make("c/my-first", "c"));
    said(command("cargo", &rust, Some(&target())).args(["build", "--release"]));
    said(command("make", &c, None).arg("CFLAGS=-O2 -Wall -Wextra -Werror"));
    let library = target().join("release/libmy_first.so");
    let job = format!("{root}/examples/readers-and-writers.fio");
    let run = |library: &str| {
        let mut command = command("fairhead", &c, None);
        command.args(["run", &job, "--output-format", "csv", "--sched", library, "--runtime", "3s"]);
        said(&mut command)
    };
    let [by_rust, by_c] = [&*library.display().to_string(), "./libmy-first.so"].map(run);
    assert!(by_rust.contains("my-first"), "{by_rust}");
    assert_eq!(by_rust, by_c);
    let advise = |library: &str| {
        let mut command = command("fairhead", &c, None);
        command.args(["advise", &job, "--sched", &format!("{library},mq-deadline"), "--rounds", "1"]);
        said(command.args(["--runtime", "3s", "--output-format", "json"]))
    };
    let [by_rust, by_c] = [&*library.display().to_string(), "./libmy-first.so"].map(advise);
    let advice: serde_json::Value = serde_json::from_str(&by_rust).expect("JSON");
    let candidates = advice["candidates"].as_array().expect("a list");
    assert!(candidates.iter().any(|c| c["scheduler"] == "my-first"), "{by_rust}");
    assert_eq!(by_rust, by_c);
    for (program, folder, args) in [("cargo", &rust, &["test", "--release"][..]), ("make", &c, &["test"])] {
        let passed = said(command(program, folder, Some(&target())).args(args));
        assert!(passed.contains("2 passed; 0 failed"), "{passed}");
    }
}

/// A scheduler in Rust that panics says where.
#[test]
fn a_panic_in_rust_is_one_line_with_its_place() {
    let Some(root) = root() else { return };
    if missing("cargo") {
        return;
    }
    let (_alone, place) = (alone(), tempfile::tempdir().expect("a folder"));
    let root = root.display().to_string();
    assert!(fairhead(place.path(), &["new-scheduler", "panics", "--fairhead", &root]).status.success());
    let folder = place.path().join("panics");
    let file = folder.join("src/lib.rs");
    let source = std::fs::read_to_string(&file).expect("the source");
    let wrong = source.replace("self.waiting.push(tag);", "self.waiting[70_000 + usize::from(tag.0)] = tag;");
    assert_ne!(wrong, source);
    std::fs::write(&file, wrong).expect("the source");
    said(command("cargo", &folder, Some(&target())).args(["build", "--release"]));
    let library = target().join("release/libpanics.so").display().to_string();
    let out = fairhead(&folder, &["run", "--sched", &library]);
    let line = String::from_utf8_lossy(&out.stderr);
    assert_eq!((out.status.code(), line.lines().count()), (Some(1), 1), "{line}");
    assert!(line.contains("libpanics.so', insert: failed: panicked at src/lib.rs:"), "{line}");
    assert!(line.contains("index out of bounds"), "{line}");
}

#[test]
fn folders_that_are_there_and_bad_names_are_refused() {
    let place = tempfile::tempdir().expect("a folder");
    let refused = |args: &[&str]| {
        let out = fairhead(place.path(), &[&["new-scheduler"], args].concat());
        let line = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!((out.status.code(), line.lines().count()), (Some(2), 1), "{line}");
        line
    };
    std::fs::create_dir(place.path().join("mine")).expect("a folder");
    assert!(refused(&["mine"]).contains("'mine' is there already"));
    assert!(refused(&["bfq"]).contains("'bfq': a built-in scheduler has this name"));
    assert!(refused(&["Mine"]).contains("'Mine': a name is 1 to 32 small letters"));
    assert!(refused(&["match"]).contains("'match': this word means something"));
    assert!(
        refused(&["mine2", "--fairhead", "mine"]).contains("'mine' is no clone of Fairhead's repository")
    );
    assert!(refused(&["mine2", "--lang", "python"]).contains("[possible values: rust, c]"));
    assert!(std::fs::read_dir(place.path()).expect("a folder").count() == 1, "nothing else was made");
    // Outside of a clone the crates are those that are published.
    assert!(fairhead(place.path(), &["new-scheduler", "mine2"]).status.success());
    let manifest = std::fs::read_to_string(place.path().join("mine2/Cargo.toml")).expect("a manifest");
    assert!(manifest.contains(&format!("fairhead-core = \"{}\"", env!("CARGO_PKG_VERSION"))), "{manifest}");
}

/// The lines of the `bash` blocks of a document.
fn commands(text: &str) -> Vec<&str> {
    let (mut inside, mut found) = (false, Vec::new());
    for line in text.lines() {
        if line.starts_with("```") {
            inside = line == "```bash";
        } else if inside {
            found.push(line);
        }
    }
    found
}

/// The root of the repository is stood in for by a folder with links to what the page needs, so that nothing
/// is left behind.
#[test]
fn every_command_of_the_page_runs_in_its_order() {
    let Some(root) = root() else { return };
    if ["cargo", "make", "cc", "bash"].into_iter().any(missing) {
        return;
    }
    let (_alone, place) = (alone(), tempfile::tempdir().expect("a folder"));
    for name in ["Cargo.toml", "Cargo.lock", "crates", "examples", "xtask", "bench", "mutants"] {
        std::os::unix::fs::symlink(root.join(name), place.path().join(name)).expect("a link");
    }
    let text = std::fs::read_to_string(root.join("docs/extend.md")).expect("the page");
    let lines = commands(&text);
    assert!(lines.len() >= 16, "only {} commands found: has the fence changed?", lines.len());
    // The page builds where the folder is; crates that both languages use are built once here.
    let script =
        lines.join("\n").replace("target/release/lib", &format!("{}/release/lib", target().display()));
    let mut bash = command("bash", place.path(), Some(&target()));
    said(bash.args(["-euxc", &script]));
    assert!(
        place.path().join("mine/report.html").is_file()
            && place.path().join("mine-in-c/libmine-in-c.so").is_file()
    );
}
