//! What waits for nothing, and so is done on the engine's thread instead of one for names: operations on one
//! name or on attributes, if the folder is in memory.

use super::{Directory, lock};
use crate::fuse::nodes::Found;
use crate::fuse::protocol::{self, Header, Operation};
use rustix::fs::AtFlags;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

/// The most bytes of a file that is removed at once: its pages are taken back, which takes about 1 ms for
/// these.
const REMOVED_MAX: u64 = 4 << 20;

/// The most nodes that are forgotten at once.
const FORGOTTEN_MAX: usize = 32;

impl Directory {
    /// Whether an operation on what is in memory waits for nothing: what is done to one name or to
    /// attributes. Other file systems may wait for a disk, and those that are mounted in the folder for
    /// anything.
    pub(super) fn is_quick(&self, header: &Header, operation: &Operation<'_>) -> bool {
        let node = header.node;
        match *operation {
            // What is only made, and not opened, is nowhere else.
            Operation::Create { flags, .. } if flags as i32 & libc::O_EXCL != 0 => true,
            Operation::Create { name, .. } => self.open_here(node, name).is_some(),
            Operation::Unlink { name } => {
                let stat = |folder: Arc<File>| rustix::fs::statat(&*folder, name, AtFlags::SYMLINK_NOFOLLOW);
                // If it is not there, it takes no time.
                self.node(node).map(stat).is_ok_and(|s| s.map_or(true, |s| s.st_size as u64 <= REMOVED_MAX))
            }
            Operation::SetAttr(set) => set.size.is_none(),
            Operation::GetAttr
            | Operation::StatX { .. }
            | Operation::Open { .. }
            | Operation::OpenDir
            | Operation::Flush { .. } => true,
            Operation::Forget { .. } => self.is_let_go_quickly(node),
            Operation::BatchForget { pairs } => {
                pairs.len() <= FORGOTTEN_MAX * 16
                    && protocol::forgotten(pairs).all(|(node, _)| self.is_let_go_quickly(node))
            }
            _ => false,
        }
    }

    /// Whether the file or folder that an operation is about is in memory, with the folder that is mounted.
    pub(super) fn is_in_memory(&self, node: u64, operation: &Operation<'_>) -> bool {
        let is_batch = matches!(operation, Operation::BatchForget { .. });
        self.in_memory.is_some_and(|device| is_batch || lock(&self.nodes).is_on(node, device))
    }

    /// Whether it takes no time to close the descriptor of a node, which may be the last one of a removed
    /// file.
    fn is_let_go_quickly(&self, node: u64) -> bool {
        let found = lock(&self.nodes).find(node);
        let is_small = |file: &File| {
            let meta = file.metadata();
            meta.is_ok_and(|m| Some(m.dev()) == self.in_memory && m.len() <= REMOVED_MAX)
        };
        matches!(found, Ok(Found::Here(file)) if is_small(&file))
    }
}
