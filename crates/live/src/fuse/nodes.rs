//! The files that the kernel knows: their numbers, and where each begins on the disk that the scheduler sees.
//!
//! A node has a descriptor that only names it (`O_PATH`), and is found by device and inode, so that hard
//! links are one node. It stays as long as the kernel has not forgotten it as often as it has looked it up.
//!
//! ```text
//!   look up a/b ─► device 8, inode 77 ─► node 5, once        forget 5, once ─► gone
//! ```
//!
//! What it does not do: open, read or write anything.

use super::protocol::{Attr, ROOT};
use crate::bio::Errno;
use fairhead_core::units::Sector;
use std::collections::HashMap;
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

/// The least region of a file, in bytes.
const REGION_MIN: u64 = 64 << 20;

#[derive(Debug)]
struct Node {
    path: Arc<File>,
    lookups: u64,
    key: (u64, u64),
    start: Option<Sector>,
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Nodes {
    /// Numbers begin at 1, the root.
    all: HashMap<u64, Node>,
    by_key: HashMap<(u64, u64), u64>,
    last: u64,
    /// Where the next file begins.
    next_sector: u64,
}

impl Nodes {
    /// The root alone.
    pub(super) fn new(root: File) -> io::Result<Self> {
        let meta = root.metadata()?;
        let key = (meta.dev(), meta.ino());
        let node = Node { path: Arc::new(root), lookups: 1, key, start: None };
        let (all, by_key) = (HashMap::from([(ROOT, node)]), HashMap::from([(key, ROOT)]));
        Ok(Self { all, by_key, last: ROOT, next_sector: 0 })
    }

    /// What names a node.
    pub(super) fn path(&self, node: u64) -> Result<Arc<File>, Errno> {
        self.all.get(&node).map(|n| Arc::clone(&n.path)).ok_or(Errno(libc::ESTALE))
    }

    /// The node of what a descriptor names, looked up once more.
    pub(super) fn know(&mut self, path: File, meta: &Metadata) -> (u64, Attr) {
        let key = (meta.dev(), meta.ino());
        let known = self.by_key.get(&key).copied();
        let number = known.unwrap_or_else(|| {
            self.last += 1;
            self.all.insert(self.last, Node { path: Arc::new(path), lookups: 0, key, start: None });
            self.by_key.insert(key, self.last);
            self.last
        });
        self.all.get_mut(&number).expect("just seen").lookups += 1;
        (number, Attr::of(meta))
    }

    /// The kernel drops `lookups` of its references to this node.
    pub(super) fn forget(&mut self, number: u64, lookups: u64) {
        let Some(node) = self.all.get_mut(&number).filter(|_| number != ROOT) else { return };
        node.lookups = node.lookups.saturating_sub(lookups);
        if node.lookups == 0 {
            let key = node.key;
            self.all.remove(&number);
            self.by_key.remove(&key);
        }
    }

    /// Where a file begins: in the order in which they were first opened.
    pub(super) fn region(&mut self, node: u64, size: u64) -> Sector {
        let next = Sector(self.next_sector);
        let Some(n) = self.all.get_mut(&node) else { return next };
        if let Some(start) = n.start {
            return start;
        }
        n.start = Some(next);
        self.next_sector += size.max(REGION_MIN).next_multiple_of(1 << 20) / 512 + 2048;
        next
    }
}
