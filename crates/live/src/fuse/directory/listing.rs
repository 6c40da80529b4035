//! What is in a folder, as it was when the listing began: a program that reads on gets no name twice.
//!
//! All listings together have [`LISTED_MAX`] names. Beyond that the longest go, and what reads on in one of
//! these reads the folder again; it may then get a name twice, or miss one, if names have changed.
//!
//! A name comes with its inode number. Of a folder on which something is mounted, file systems give the
//! number of the folder below; where there may be such names, each file is looked at.

use super::by_descriptor::proc_path;
use super::{Directory, Handle, VALID_S, lock};
use crate::bio::Errno;
use crate::fuse::protocol::{Attr, Entries, Reply};
use rustix::fs::{AtFlags, StatxFlags, makedev};
use slab::Slab;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirEntryExt, FileTypeExt, MetadataExt};
use std::sync::Arc;

/// The most names that listings keep, some 100 bytes each.
const LISTED_MAX: usize = 2 << 20;

/// A listing of fewer names makes no other one go.
const SHORT: usize = 1 << 10;

#[derive(Debug)]
pub(super) struct Entry {
    name: OsString,
    inode: u64,
    kind: u32,
}

impl Directory {
    pub(super) fn list(&self, node: u64, handle: u64, offset: u64, size: u32, plus: bool) -> Reply {
        // Reads and writes need the handles, too, and must not wait for what follows.
        let known = match lock(&self.handles).get(handle as usize) {
            Some(Handle::Folder(entries)) => Arc::clone(entries),
            _ => return Err(Errno(libc::EBADF)),
        };
        let entries = if offset == 0 || known.is_empty() {
            let fresh = Arc::new(self.read_folder(node)?);
            keep(&mut lock(&self.handles), handle as usize, &fresh, LISTED_MAX);
            fresh
        } else {
            known
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

/// Keeps a listing for a handle, and as many of the others as there is room for.
fn keep(handles: &mut Slab<Handle>, handle: usize, listing: &Arc<Vec<Entry>>, most: usize) {
    let Some(Handle::Folder(entries)) = handles.get_mut(handle) else { return };
    *entries = Arc::clone(listing);
    if listing.len() <= SHORT {
        return;
    }
    let mut all: Vec<(usize, &mut Arc<Vec<Entry>>)> = handles
        .iter_mut()
        .filter_map(|(at, handle)| match handle {
            Handle::Folder(entries) => Some((at, entries)),
            Handle::File { .. } => None,
        })
        .collect();
    let mut sum: usize = all.iter().map(|(_, entries)| entries.len()).sum();
    all.sort_by_key(|(_, entries)| entries.len());
    for (_, entries) in all.into_iter().rev().filter(|(at, _)| *at != handle) {
        if sum <= most {
            break;
        }
        sum -= std::mem::take(entries).len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listing(names: usize) -> Arc<Vec<Entry>> {
        Arc::new((0..names).map(|i| Entry { name: i.to_string().into(), inode: 1, kind: 0 }).collect())
    }

    #[test]
    fn listings_keep_a_bounded_number_of_names() {
        let mut handles: Slab<Handle> = Slab::new();
        let lens = |handles: &Slab<Handle>| -> Vec<usize> {
            let len = |handle: &Handle| match handle {
                Handle::Folder(entries) => entries.len(),
                Handle::File { .. } => 0,
            };
            handles.iter().map(|(_, handle)| len(handle)).collect()
        };
        for names in [3, 1500, 2000, 1200] {
            let handle = handles.insert(Handle::Folder(Arc::default()));
            keep(&mut handles, handle, &listing(names), 5000);
        }
        assert_eq!(lens(&handles), [3, 1500, 2000, 1200], "there is room");
        keep(&mut handles, 3, &listing(1600), 5000);
        assert_eq!(lens(&handles), [3, 1500, 0, 1600], "the longest of the others goes");
        keep(&mut handles, 2, &listing(9000), 5000);
        assert_eq!(lens(&handles), [0, 0, 9000, 0], "one is always kept");
    }
}
