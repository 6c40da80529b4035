//! Reads the small files below a root folder that say how a machine is set.
//!
//! A file that is missing reads as `None`. A file that may not be read does, too, and its path is kept in the
//! list of what could not be seen: a report must not take silence for health.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

/// The most bytes read of one file. Files of sysfs have a page; rules and units are a few KiB.
pub(crate) const SIZE_MAX: u64 = 1 << 20;

/// A machine's files, below a root folder.
#[derive(Debug)]
pub struct Tree {
    root: PathBuf,
    unseen: RefCell<BTreeSet<String>>,
}

impl Tree {
    /// The files below `root`; `/` is the machine at hand.
    #[must_use]
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), unseen: RefCell::default() }
    }

    /// Whether this is the machine at hand and not a copy of one.
    pub(crate) fn is_live(&self) -> bool {
        self.root == Path::new("/")
    }

    /// The place of `path`, which begins without a slash, below the root.
    pub(crate) fn place(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    /// The file's text without white space around it; `None` if it is missing or may not be read.
    pub(crate) fn text(&self, path: &str) -> Option<String> {
        self.read(path).map_err(|e| self.note(path, &e)).ok()
    }

    /// The text of a file that is not missed if it may not be read.
    pub(crate) fn text_if_readable(&self, path: &str) -> Option<String> {
        self.read(path).ok()
    }

    fn read(&self, path: &str) -> std::io::Result<String> {
        let mut text = Vec::new();
        std::fs::File::open(self.place(path))?.take(SIZE_MAX).read_to_end(&mut text)?;
        Ok(String::from_utf8_lossy(&text).trim().to_owned())
    }

    /// The file's number.
    pub(crate) fn number<N: std::str::FromStr>(&self, path: &str) -> Option<N> {
        self.text(path)?.parse().ok()
    }

    /// The names in a folder, in order; none if it is missing or may not be read.
    pub(crate) fn names(&self, path: &str) -> Vec<String> {
        let entries = match std::fs::read_dir(self.place(path)) {
            Ok(entries) => entries,
            Err(e) => {
                self.note(path, &e);
                return Vec::new();
            }
        };
        let mut names: Vec<String> = entries.filter_map(|e| e.ok()?.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    /// The device numbers, major and minor, of a disk and of its partitions.
    #[must_use]
    pub fn devices(&self, disk: &str) -> Vec<(u32, u32)> {
        let folder = format!("sys/block/{disk}");
        let parts =
            self.names(&folder).into_iter().filter(|n| self.exists(&format!("{folder}/{n}/partition")));
        let files =
            std::iter::once(format!("{folder}/dev")).chain(parts.map(|n| format!("{folder}/{n}/dev")));
        let number = |file: String| {
            let (major, minor) =
                self.text(&file)?.split_once(':').map(|(a, b)| (a.to_owned(), b.to_owned()))?;
            Some((major.parse().ok()?, minor.parse().ok()?))
        };
        files.filter_map(number).collect()
    }

    /// The disk that has the partition of this name.
    pub(crate) fn disk_of_partition(&self, name: &str) -> Option<String> {
        self.names("sys/block")
            .into_iter()
            .find(|disk| self.exists(&format!("sys/block/{disk}/{name}/partition")))
    }

    /// Where the link leads, as it is written.
    pub(crate) fn link(&self, path: &str) -> Option<String> {
        std::fs::read_link(self.place(path)).ok()?.to_str().map(str::to_owned)
    }

    /// Whether there is such a file or folder.
    pub(crate) fn exists(&self, path: &str) -> bool {
        self.place(path).symlink_metadata().is_ok()
    }

    /// The paths that exist and could not be read, in order.
    pub(crate) fn unseen(&self) -> Vec<String> {
        self.unseen.borrow().iter().cloned().collect()
    }

    /// Some files of sysfs answer with an error where the hardware has no answer; only a refusal counts.
    fn note(&self, path: &str, e: &std::io::Error) {
        if e.kind() == ErrorKind::PermissionDenied {
            self.unseen.borrow_mut().insert(format!("/{path}"));
        }
    }
}
