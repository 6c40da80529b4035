//! Test-suites of others for NBD servers, with `fairhead serve` in the place of the server that they know.
//!
//! `FAIRHEAD_SUITES` names them, `all` or some of `qemu,libnbd`; without it nothing runs, because they fetch
//! the source of a package and take minutes. What must pass is kept in `suites/*.txt`: each test that passes
//! with the server that the suite is for, and why not if one need not pass with ours. `suites/run-*` says how
//! a suite is run by hand.
//!
//! Two suites whose source cannot be had everywhere, nbd-tester-client and nbdkit's corpus for fuzzing, are
//! written anew from their descriptions in `suites/tester.py`. That takes seconds, so it always runs.

#![allow(clippy::disallowed_methods, reason = "programs are real")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What is kept beside this test.
fn kept(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suites").join(name)
}

/// What a script says on standard output.
fn said(command: &mut Command) -> String {
    let out = command.output().unwrap();
    assert!(out.status.success(), "{command:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

/// Whether the suite is asked for, and its programs are there. If not, a line says why.
fn wanted(suite: &str, programs: &[&str]) -> bool {
    let asked = std::env::var("FAIRHEAD_SUITES").unwrap_or_default();
    if asked != "all" && !asked.split(',').any(|s| s == suite) {
        println!("skipped: FAIRHEAD_SUITES does not name '{suite}'");
        return false;
    }
    for program in programs {
        if Command::new(program).arg("--version").output().is_err() {
            println!("skipped: {program} is not installed");
            return false;
        }
    }
    true
}

/// The unpacked source of a package, in a folder that stays from run to run.
fn source(package: &str) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("suites");
    let said = said(Command::new(kept("fetch")).arg(package).arg(folder));
    if said.starts_with('/') {
        return Some(PathBuf::from(said.trim_end()));
    }
    println!("{}", said.trim_end());
    None
}

/// Names, and why one need not pass.
fn list(text: &str) -> BTreeMap<&str, Option<&str>> {
    let lines = text.lines().filter(|l| !l.starts_with('#'));
    lines.map(|l| l.split_once(' ').map_or((l, None), |(name, why)| (name, Some(why)))).collect()
}

/// Runs what is in the list. Everything in it that has no excuse must pass.
fn judge(suite: &str, list_file: &str, run: impl FnOnce(&[&str], &Path) -> Command) {
    let text = fs::read_to_string(kept(list_file)).unwrap();
    let list = list(&text);
    // Some tests run in no folder whose name has a dot.
    let folder = tempfile::Builder::new().prefix("suites-").tempdir().unwrap();
    let names: Vec<&str> = list.keys().copied().collect();
    let said = said(run(&names, folder.path()).env("FAIRHEAD", env!("CARGO_BIN_EXE_fairhead")));
    let outcomes: BTreeMap<&str, &str> = said.lines().filter_map(|l| l.split_once(' ')).collect();
    let mut wrong = Vec::new();
    for (name, excuse) in list {
        match (outcomes.get(name).copied(), excuse) {
            (Some("pass"), Some(why)) => println!("{suite} {name} passes, although: {why}"),
            (Some("pass"), None) => (),
            (_, Some(why)) => println!("{suite} {name} does not pass: {why}"),
            (outcome, None) => wrong.push((name, outcome)),
        }
    }
    let passed = outcomes.values().filter(|o| **o == "pass").count();
    println!("{suite}: {passed} of {} pass", names.len());
    let place = folder.keep();
    assert!(wrong.is_empty(), "{suite}: {wrong:?}; what they said is in {}", place.display());
    fs::remove_dir_all(place).unwrap();
}

#[test]
fn qemu_iotests_pass_as_with_qemu_nbd() {
    let programs = ["qemu-nbd", "qemu-img", "qemu-io", "qemu-system-x86_64", "qemu-storage-daemon"];
    if !wanted("qemu", &programs) {
        return;
    }
    let Some(source) = source("qemu") else { return };
    judge("qemu-iotests", "qemu-iotests.txt", |names, folder| {
        let mut command = Command::new(kept("run-qemu"));
        command.arg(source).arg(folder).args(names);
        command
    });
}

#[test]
fn tests_of_libnbd_pass() {
    if !wanted("libnbd", &["cc", "nbdinfo", "python3"]) {
        return;
    }
    let Some(source) = source("libnbd") else { return };
    judge("libnbd", "libnbd.txt", |_, folder| {
        let mut command = Command::new(kept("run-libnbd"));
        command.arg(source).arg(folder);
        command
    });
}

#[test]
fn what_nbd_tester_and_a_corpus_for_fuzzing_do_is_served() {
    const SIZE: u64 = 5 << 30;
    if Command::new("python3").arg("--version").output().is_err() {
        return println!("skipped: python3 is not installed");
    }
    let folder = tempfile::tempdir().unwrap();
    for mode in [&[][..], &["--cached"]] {
        fs::File::create(folder.path().join("disk")).unwrap().set_len(SIZE).unwrap();
        let out = Command::new(env!("CARGO_BIN_EXE_fairhead"))
            .args(["serve", "--export", "disk=disk", "--socket", "s"])
            .args(mode)
            .arg("--run")
            .arg(format!("python3 '{}' s disk {SIZE} > said", kept("tester.py").display()))
            .current_dir(folder.path())
            .output()
            .unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        let said = fs::read_to_string(folder.path().join("said")).unwrap();
        assert_eq!(said.lines().filter(|l| l.ends_with(" pass")).count(), 8, "{mode:?}: {said}");
    }
}
