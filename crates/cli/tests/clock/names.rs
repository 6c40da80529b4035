//! Names in a mount, for callers of whom one is stuck: a folder of the source hangs, as one on a network does
//! whose server is away. Here it is another mount, whose server is stopped.

#![allow(clippy::disallowed_methods, reason = "processes and their time-outs are real")]

use crate::may_mount::may_mount;
use crate::process::{Process, fairhead, start};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A mounted folder; gone with its server.
struct Mounted {
    server: Process,
    at: PathBuf,
}

impl Mounted {
    fn new(source: &Path, at: &Path) -> Self {
        let (server, line, _said) = start(fairhead().arg("mount").arg(source).arg(at).stdout(Stdio::null()));
        assert!(line.contains("Ctrl-C ends it"), "{line}");
        Self { server, at: at.to_owned() }
    }

    fn signal(&self, name: &str) {
        let done = Command::new("kill").args([name, &self.server.0.id().to_string()]).status();
        assert!(done.unwrap().success());
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        self.server.kill();
        let _ = Command::new("umount").arg("--lazy").arg(&self.at).status();
    }
}

/// Looks at a name in another process, which may be stuck.
fn look(path: &Path) -> Child {
    Command::new("stat").arg(path).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

#[test]
fn names_in_a_folder_that_hangs_delay_no_others() {
    if !may_mount() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for name in ["away", "source", "source/hangs", "mnt"] {
        fs::create_dir(at(name)).unwrap();
    }
    fs::write(at("source/other"), b"").unwrap();
    let inner = Mounted::new(&at("away"), &at("source/hangs"));
    let outer = Mounted::new(&at("source"), &at("mnt"));
    // The kernel knows the folder, and asks for what is in it.
    fs::metadata(at("mnt/hangs")).unwrap();
    inner.signal("-STOP");
    let mut stuck: Vec<Child> = (0..16).map(|i| look(&at(&format!("mnt/hangs/{i}")))).collect();
    std::thread::sleep(Duration::from_millis(500));

    let (mut other, start) = (look(&at("mnt/other")), Instant::now());
    let mut is_done = false;
    while !is_done && start.elapsed() < Duration::from_secs(5) {
        is_done = other.try_wait().unwrap().is_some();
        std::thread::sleep(Duration::from_millis(10));
    }
    // Before anything can fail: no signal ends what waits for a stopped server.
    inner.signal("-CONT");
    stuck.iter_mut().chain([&mut other]).for_each(|child| drop(child.wait()));
    drop(outer);
    assert!(is_done, "a name elsewhere waits for the folder that hangs");
}
