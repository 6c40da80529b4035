//! A folder, and a mount of it.

use crate::may_mount;
use fairhead_live::{DiskOptions, Mount};
use std::fs;
use std::path::{Path, PathBuf};

pub(crate) struct Scratch {
    dir: PathBuf,
}

#[allow(dead_code, reason = "no test binary needs all of it")]
impl Scratch {
    /// `None` where nothing can be mounted.
    pub(crate) fn new(name: &str) -> Option<Self> {
        let dir = std::env::var_os("CARGO_TARGET_TMPDIR").map_or_else(std::env::temp_dir, PathBuf::from);
        Self::inside(&dir, name)
    }

    /// The same in a folder of one's choice.
    pub(crate) fn inside(dir: &Path, name: &str) -> Option<Self> {
        if !may_mount::may_mount() {
            return None;
        }
        let dir = dir.join(format!("mount-{name}-{}", std::process::id()));
        fs::create_dir_all(dir.join("mnt")).unwrap();
        fs::create_dir_all(dir.join("source")).unwrap();
        Some(Self { dir })
    }

    pub(crate) fn mount(&self, scheduler: &str) -> Mount {
        self.mount_with(DiskOptions::new::<PathBuf>([]).scheduler(scheduler).unwrap())
    }

    pub(crate) fn mount_with(&self, options: DiskOptions) -> Mount {
        Mount::directory(options, &self.dir.join("source"), &self.dir.join("mnt")).unwrap()
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.dir.join("mnt").join(name)
    }

    pub(crate) fn below(&self, name: &str) -> PathBuf {
        self.dir.join("source").join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}
