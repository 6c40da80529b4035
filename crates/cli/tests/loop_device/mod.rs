//! A loop device of a test's own, and the settings of its queue.

#![allow(dead_code, reason = "no test binary needs all of it")]

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A loop device, detached when it is dropped.
pub(crate) struct LoopDevice(pub(crate) String);

impl LoopDevice {
    /// Attaches the file; `None`, and a line that says why, where that cannot be done.
    pub(crate) fn attach(file: &Path) -> Option<Self> {
        if std::fs::metadata("/proc/self").unwrap().uid() != 0 {
            eprintln!("skipped: only root has loop devices");
            return None;
        }
        let out = Command::new("losetup").args(["-f", "--show"]).arg(file).output();
        match out {
            Ok(out) if out.status.success() => {
                let path = String::from_utf8(out.stdout).unwrap();
                Some(Self(path.trim().strip_prefix("/dev/").unwrap().to_owned()))
            }
            Ok(out) => {
                eprintln!("skipped: losetup: {}", String::from_utf8_lossy(&out.stderr).trim());
                None
            }
            Err(e) => {
                eprintln!("skipped: losetup: {e}");
                None
            }
        }
    }

    fn place(&self, file: &str) -> PathBuf {
        PathBuf::from(format!("/sys/block/{}/queue/{file}", self.0))
    }

    pub(crate) fn read(&self, file: &str) -> String {
        std::fs::read_to_string(self.place(file)).unwrap().trim().to_owned()
    }

    pub(crate) fn write(&self, file: &str, value: &str) {
        std::fs::write(self.place(file), value).unwrap_or_else(|e| panic!("{file}: {e}"));
    }

    /// Whether the kernel offers the scheduler, with a line if not.
    pub(crate) fn has(&self, scheduler: &str) -> bool {
        let has = self.read("scheduler").contains(scheduler);
        if !has {
            eprintln!("skipped: the kernel has no {scheduler}");
        }
        has
    }

    /// Every file of `queue/` that can be read, with its text.
    pub(crate) fn all(&self) -> BTreeMap<String, String> {
        let mut all = BTreeMap::new();
        let mut folders = vec![self.place("")];
        while let Some(folder) = folders.pop() {
            // A folder of tunables goes away while the scheduler changes.
            for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
                if entry.file_type().is_ok_and(|t| t.is_dir()) {
                    folders.push(entry.path());
                } else if let Ok(text) = std::fs::read_to_string(entry.path()) {
                    all.insert(entry.path().display().to_string(), text);
                }
            }
        }
        all
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let _ = std::fs::write(self.place("scheduler"), "none");
        let _ = Command::new("losetup").args(["-d", &format!("/dev/{}", self.0)]).status();
    }
}
