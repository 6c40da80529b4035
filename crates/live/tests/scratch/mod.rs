//! A folder, and a mount of it.

use crate::may_mount;
use fairhead_live::{DiskOptions, Mount, Transport};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Copies a file by `copy_file_range` alone, or moves it by `sendfile` to nowhere.
#[allow(dead_code, reason = "no test binary needs all of it")]
pub(crate) const COPY: &str = "
import os, sys
how, one, other = sys.argv[1:]
a = os.open(one, os.O_RDONLY)
b = os.open(other, os.O_CREAT | os.O_WRONLY)
left = os.fstat(a).st_size
while left:
    n = os.copy_file_range(a, b, left) if how == 'copy' else os.sendfile(b, a, None, left)
    assert n > 0
    left -= n
";

pub(crate) struct Scratch {
    dir: TempDir,
}

#[allow(dead_code, reason = "no test binary needs all of it")]
impl Scratch {
    /// `None` where nothing can be mounted.
    pub(crate) fn new() -> Option<Self> {
        Self::inside(Path::new(env!("CARGO_TARGET_TMPDIR")))
    }

    /// Makes a scratch folder inside `dir`.
    pub(crate) fn inside(dir: &Path) -> Option<Self> {
        if !may_mount::may_mount() {
            return None;
        }
        // Others than who made it go in, too.
        let all = fs::Permissions::from_mode(0o755);
        let dir = tempfile::Builder::new().permissions(all).tempdir_in(dir).unwrap();
        fs::create_dir(dir.path().join("mnt")).unwrap();
        fs::create_dir(dir.path().join("source")).unwrap();
        Some(Self { dir })
    }

    pub(crate) fn mount(&self, scheduler: &str) -> Mount {
        self.mount_with(DiskOptions::new::<PathBuf>([]).scheduler(scheduler).unwrap())
    }

    pub(crate) fn mount_with(&self, options: DiskOptions) -> Mount {
        // `FUSE_TRANSPORT=uring` and `=dev` have all tests go one way.
        let transport = match std::env::var("FUSE_TRANSPORT").as_deref() {
            Ok("uring") => Transport::Uring,
            Ok("dev") => Transport::Dev,
            _ => Transport::Auto,
        };
        let options = options.transport(transport);
        Mount::directory(options, &self.dir.path().join("source"), &self.dir.path().join("mnt")).unwrap()
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join("mnt").join(name)
    }

    pub(crate) fn below(&self, name: &str) -> PathBuf {
        self.dir.path().join("source").join(name)
    }
}
