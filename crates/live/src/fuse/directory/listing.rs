//! What is in a folder, as it was when the listing began: a program that reads on gets no name twice.

use super::by_descriptor::proc_path;
use super::{Directory, Handle, VALID_S, lock};
use crate::bio::Errno;
use crate::fuse::protocol::{Attr, Entries, Reply};
use std::ffi::OsString;
use std::fs;
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
            out.push(name, entry.inode, i as u64 + 1, entry.kind, with);
        }
        Ok(out.finish())
    }

    fn read_folder(&self, node: u64) -> Result<Vec<Entry>, Errno> {
        let path = self.node(node)?;
        let inode = path.metadata()?.ino();
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
            entries.push(Entry { name: entry.file_name(), inode: entry.ino(), kind: kind.into() });
        }
        Ok(entries)
    }
}
