//! A cgroup of a test's own.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// A cgroup, taken away again.
pub(crate) struct Cgroup {
    pub(crate) name: String,
    path: PathBuf,
}

impl Cgroup {
    /// `None` where none can be made.
    pub(crate) fn new(what: &str) -> Option<Self> {
        let name = format!("fairhead-test-{what}-{}", std::process::id());
        let made = ["/sys/fs/cgroup/blkio", "/sys/fs/cgroup"]
            .map(|root| PathBuf::from(root).join(&name))
            .into_iter()
            .find(|at| fs::create_dir(at).is_ok());
        if made.is_none() {
            eprintln!("skipped: no cgroup can be made");
        }
        Some(Self { name, path: made? })
    }

    /// A program in it.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("echo $$ > {}/cgroup.procs && exec {program}", self.path.display())]);
        command
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // A process inside it is gone a moment after its parent has seen that.
        for _ in 0..100 {
            if fs::remove_dir(&self.path).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
