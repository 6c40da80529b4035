//! `fairhead emulate` and `fairhead mount` from beginning to end.

use crate::may_mount;
use crate::process::{Process, fairhead, start};
use std::fs;
use std::io::{BufReader, Read};
use std::process::{ChildStderr, Command, Stdio};
use tempfile::TempDir;

/// `None` where nothing can be mounted.
fn scratch() -> Option<TempDir> {
    if !may_mount::may_mount() {
        return None;
    }
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    fs::create_dir(dir.path().join("mnt")).unwrap();
    fs::create_dir(dir.path().join("source")).unwrap();
    Some(dir)
}

/// Starts it, and waits for its first line.
fn begin(dir: &TempDir, args: &[&str]) -> (Process, String, BufReader<ChildStderr>) {
    start(fairhead().args(args).current_dir(dir).stdout(Stdio::piped()))
}

/// Ends it as `systemctl stop` does; what it printed.
fn end(mut process: Process) -> String {
    assert!(Command::new("kill").arg(process.0.id().to_string()).status().unwrap().success());
    let mut out = String::new();
    process.0.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    assert!(process.0.wait().unwrap().success());
    out
}

#[test]
fn a_disk_is_shown_until_it_is_told_to_end_and_then_tells_how_late_it_was() {
    let Some(dir) = scratch() else { return };
    fs::write(dir.path().join("image"), vec![5; 1 << 20]).unwrap();
    let (process, line, _said) = begin(&dir, &["emulate", "nvme", "image", "mnt"]);
    assert!(line.contains("as slow as nvme"), "{line}");
    assert!(fs::read(dir.path().join("mnt/disk")).unwrap() == vec![5; 1 << 20]);
    let out = end(process);
    assert!(out.contains(" ios; ") && out.contains("99 % less than"), "{out}");
    assert!(out.contains("\nwaits for a processor: ") && out.contains(" % of the model's time"), "{out}");
    assert!(!dir.path().join("mnt/disk").exists(), "unmounted");
    dir.close().unwrap();
}

/// What it says of its distance is what `run --host` takes; and the time that the measurement took the model
/// is not in its figures.
#[test]
fn a_disk_tells_how_far_away_it_is_in_the_words_of_the_lab() {
    let Some(dir) = scratch() else { return };
    fs::write(dir.path().join("image"), vec![5; 1 << 20]).unwrap();
    fs::write(dir.path().join("job.fio"), "[r]\nrw=randread\nbs=4k\ndirect=1\nsize=1m\nnumber_ios=10\n")
        .unwrap();
    let (process, _, _said) = begin(&dir, &["emulate", "nas2020", "image", "mnt"]);
    let out = end(process);
    assert!(out.starts_with("0 ios; 0 moments"), "the measurement does not count: {out}");
    let paths: Vec<&str> = out.lines().filter(|l| l.starts_with("path ")).collect();
    assert_eq!(paths.len(), 2, "{out}");
    for line in paths {
        let Some((_, host)) = line.split_once("; --host ") else {
            assert!(line.contains("not measured: "), "{line}");
            println!("skipped: {line}");
            continue;
        };
        assert!(host.starts_with("2020,path="), "{host}");
        let run = fairhead()
            .args(["run", "job.fio", "--disk", "nas2020", "--host", host])
            .current_dir(&dir)
            .output();
        assert!(run.unwrap().status.success(), "{host}");
    }
    dir.close().unwrap();
}

#[test]
fn a_folder_is_shown_until_it_is_told_to_end() {
    let Some(dir) = scratch() else { return };
    let (process, line, _said) =
        begin(&dir, &["mount", "source", "mnt", "--sched", "cfq", "--emulate", "nvme"]);
    assert!(line.contains("scheduled by cfq"), "{line}");
    fs::write(dir.path().join("mnt/a"), vec![9; 300_000]).unwrap();
    assert_eq!(fs::read(dir.path().join("source/a")).unwrap(), vec![9; 300_000]);
    assert!(end(process).contains(" ios; "));
    assert!(!dir.path().join("mnt/a").exists(), "unmounted");
    dir.close().unwrap();
}

#[test]
fn a_folder_can_be_controlled() {
    let Some(dir) = scratch() else { return };
    let (process, _, _said) = begin(&dir, &["mount", "source", "mnt", "--control", "c"]);
    fs::write(dir.path().join("mnt/a"), vec![9; 300_000]).unwrap();
    fs::File::open(dir.path().join("mnt/a")).unwrap().sync_all().unwrap();
    let ctl = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fairhead"));
        let out = command.arg("ctl").arg(dir.path().join("c")).args(words).output().unwrap();
        assert!(out.status.success(), "{words:?}: {}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).unwrap()
    };
    ctl(&["sched", "cfq+groups"]);
    let stats: serde_json::Value = serde_json::from_str(&ctl(&[])).unwrap();
    assert_eq!(stats["scheduler"], "cfq+groups");
    let written = |g: &serde_json::Value| g["io_service_bytes"]["Write"].as_u64().unwrap();
    let sum: u64 = stats["groups"].as_array().unwrap().iter().map(written).sum();
    assert!(sum >= 300_000, "{stats}");
    end(process);
    assert!(!dir.path().join("c").exists() && !dir.path().join("mnt/a").exists());
    dir.close().unwrap();
}

#[test]
fn what_is_wrong_is_one_line() {
    let said = |args: &[&str]| {
        let out = Command::new(env!("CARGO_BIN_EXE_fairhead")).args(args).output().unwrap();
        (out.status.code(), String::from_utf8(out.stderr).unwrap())
    };
    let (code, line) = said(&["emulate", "nas2002", "x", "y"]);
    assert_eq!(
        (code, line.as_str()),
        (Some(2), "fairhead: unknown disk 'nas2002'; did you mean 'nas2020'?\n")
    );
    let (code, line) = said(&["emulate", "nvme", "/no/such/file", "/tmp"]);
    assert_eq!((code, line.lines().count()), (Some(2), 1), "{line}");
    let (code, line) = said(&["mount", "/no/such/folder", "/tmp"]);
    assert_eq!((code, line.lines().count()), (Some(2), 1), "{line}");
    assert_eq!(said(&["mount", "/", "/tmp", "--sched", "bfk"]).0, Some(2));
}
