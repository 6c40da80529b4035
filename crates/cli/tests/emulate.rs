//! `fairhead emulate` and `fairhead mount` from beginning to end.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

fn scratch(name: &str) -> Option<PathBuf> {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
    fs::create_dir_all(dir.join("mnt")).unwrap();
    fs::create_dir_all(dir.join("source")).unwrap();
    let is_root = Command::new("id").arg("-u").output().is_ok_and(|o| o.stdout == b"0\n");
    let why = match fs::OpenOptions::new().read(true).write(true).open("/dev/fuse") {
        Err(e) => format!("/dev/fuse: {e}"),
        Ok(_) if is_root => return Some(dir),
        Ok(_) => "only root may mount".to_owned(),
    };
    eprintln!("skipped: {why}");
    None
}

/// Starts it, and waits for its first line.
fn start(dir: &PathBuf, args: &[&str]) -> (Child, String, BufReader<std::process::ChildStderr>) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_fairhead"))
        .args(args)
        .current_dir(dir)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    (child, line, said)
}

/// Ends it as `systemctl stop` does; what it printed.
fn end(mut child: Child) -> String {
    assert!(Command::new("kill").arg(child.id().to_string()).status().unwrap().success());
    let mut out = String::new();
    child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    assert!(child.wait().unwrap().success());
    out
}

#[test]
fn a_disk_is_shown_until_it_is_told_to_end_and_then_tells_how_late_it_was() {
    let Some(dir) = scratch("emulate") else { return };
    fs::write(dir.join("image"), vec![5; 1 << 20]).unwrap();
    let (child, line, _said) = start(&dir, &["emulate", "nvme", "image", "mnt"]);
    assert!(line.contains("as slow as nvme"), "{line}");
    assert!(fs::read(dir.join("mnt/disk")).unwrap() == vec![5; 1 << 20]);
    let out = end(child);
    assert!(out.contains(" ios; ") && out.contains("99 % less than"), "{out}");
    assert!(!dir.join("mnt/disk").exists(), "unmounted");
    fs::remove_dir_all(dir).unwrap();
}

#[test]
fn a_folder_is_shown_until_it_is_told_to_end() {
    let Some(dir) = scratch("mount") else { return };
    let (child, line, _said) =
        start(&dir, &["mount", "source", "mnt", "--sched", "cfq", "--emulate", "nvme"]);
    assert!(line.contains("scheduled by cfq"), "{line}");
    fs::write(dir.join("mnt/a"), vec![9; 300_000]).unwrap();
    assert_eq!(fs::read(dir.join("source/a")).unwrap(), vec![9; 300_000]);
    assert!(end(child).contains(" ios; "));
    assert!(!dir.join("mnt/a").exists(), "unmounted");
    fs::remove_dir_all(dir).unwrap();
}

#[test]
fn a_folder_can_be_controlled() {
    let Some(dir) = scratch("control") else { return };
    let (child, _, _said) = start(&dir, &["mount", "source", "mnt", "--control", "c"]);
    fs::write(dir.join("mnt/a"), vec![9; 300_000]).unwrap();
    fs::File::open(dir.join("mnt/a")).unwrap().sync_all().unwrap();
    let ctl = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fairhead"));
        let out = command.arg("ctl").arg(dir.join("c")).args(words).output().unwrap();
        assert!(out.status.success(), "{words:?}: {}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).unwrap()
    };
    ctl(&["sched", "cfq+groups"]);
    let stats: serde_json::Value = serde_json::from_str(&ctl(&[])).unwrap();
    assert_eq!(stats["scheduler"], "cfq+groups");
    let written = |g: &serde_json::Value| g["io_service_bytes"]["Write"].as_u64().unwrap();
    let sum: u64 = stats["groups"].as_array().unwrap().iter().map(written).sum();
    assert!(sum >= 300_000, "{stats}");
    end(child);
    assert!(!dir.join("c").exists() && !dir.join("mnt/a").exists());
    fs::remove_dir_all(dir).unwrap();
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
    assert_eq!((code, line.lines().count()), (Some(1), 1), "{line}");
    let (code, line) = said(&["mount", "/no/such/folder", "/tmp"]);
    assert_eq!((code, line.lines().count()), (Some(1), 1), "{line}");
    assert_eq!(said(&["mount", "/", "/tmp", "--sched", "bfk"]).0, Some(2));
}
