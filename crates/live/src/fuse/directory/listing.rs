//! What is in a folder, as it was when the listing began: a program that reads on gets no name twice.
//!
//! A name comes with its inode number. Of a folder on which something is mounted, file systems give the
//! number of the folder below; where there may be such names, each file is looked at.

use super::by_descriptor::proc_path;
use super::{Directory, Handle, VALID_S, lock};
use crate::bio::Errno;
use crate::fuse::protocol::{Attr, Entries, Reply};
use rustix::fs::{AtFlags, StatxFlags, makedev};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirEntryExt, FileTypeExt, MetadataExt};
use std::sync::Arc;

#[derive(Debug)]
pub(super) struct Entry {
    name: OsString,
    inode: u64,
    kind: u32,
}

impl Directory {
    pub(super) fn list(&self, node: u64, handle: u64, offset: u64, size: u32, plus: bool) -> Reply {
        let fresh = (offset == 0).then(|| self.read_folder(node)).transpose()?;
        // Reads and writes need the handles, too, and must not wait for what follows.
        let entries = match lock(&self.handles).get_mut(handle as usize) {
            Some(Handle::Folder(entries)) => {
                if let Some(fresh) = fresh {
                    *entries = Arc::new(fresh);
                }
                Arc::clone(entries)
            }
            _ => return Err(Errno(libc::EBADF)),
        };
        let mut out = Entries::new(size);
        for (i, entry) in entries.iter().enumerate().skip(offset as usize) {
            let name = entry.name.as_bytes();
            if !out.has_room(name, plus) {
                break;
            }
            let is_dot = i < 2;
            // One that is gone by now has no node; to look it up tells so.
            let seen =
                if is_dot { None } else { plus.then(|| self.look_up(node, &entry.name).ok()).flatten() };
            let with =
                plus.then(|| seen.map_or((0, Attr::default(), 0), |(node, attr)| (node, attr, VALID_S)));
            let inode = seen.map_or(entry.inode, |(_, attr)| attr.inode);
            out.push(name, inode, i as u64 + 1, entry.kind, with);
        }
        Ok(out.finish())
    }

    fn read_folder(&self, node: u64) -> Result<Vec<Entry>, Errno> {
        let path = self.node(node)?;
        let own = path.metadata()?;
        let inode = self.inodes.of(&own);
        let dot = |name: &str| Entry { name: name.into(), inode, kind: libc::DT_DIR.into() };
        let mut entries = vec![dot("."), dot("..")];
        for entry in fs::read_dir(proc_path(&path))? {
            let entry = entry?;
            let kind = entry.file_type().map_or(libc::DT_UNKNOWN, |t| match t {
                t if t.is_dir() => libc::DT_DIR,
                t if t.is_file() => libc::DT_REG,
                t if t.is_symlink() => libc::DT_LNK,
                t if t.is_fifo() => libc::DT_FIFO,
                t if t.is_socket() => libc::DT_SOCK,
                t if t.is_block_device() => libc::DT_BLK,
                _ => libc::DT_CHR,
            });
            let name = entry.file_name();
            let there = if self.is_mixed { self.number_of(&path, &name) } else { None };
            let inode = there.unwrap_or_else(|| self.inodes.number(own.dev(), entry.ino()));
            entries.push(Entry { name, inode, kind: kind.into() });
        }
        Ok(entries)
    }

    /// The inode number of what has that name, on whichever device. A file system that does not answer is not
    /// waited for.
    fn number_of(&self, folder: &File, name: &OsStr) -> Option<u64> {
        let how = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT | AtFlags::STATX_DONT_SYNC;
        let stat = rustix::fs::statx(folder, name, how, StatxFlags::INO).ok()?;
        Some(self.inodes.number(makedev(stat.stx_dev_major, stat.stx_dev_minor), stat.stx_ino))
    }
}
