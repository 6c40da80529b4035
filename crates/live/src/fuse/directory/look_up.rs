//! Which file a node or a name is.
//!
//! A node whose descriptor had to go is opened again: by its file handle, where the file system has handles
//! and this process may use them, else by its name in its folder. Each mount in the folder is tried once.

use super::by_descriptor::proc_path;
use super::{Directory, Mounts, VALID_S, lock};
use crate::bio::Errno;
use crate::fuse::file_handle::FileHandle;
use crate::fuse::nodes::{Closed, Found, Key, Way, open_path};
use crate::fuse::protocol::{Attr, Reply};
use crate::heap;
use rustix::fs::{Mode, OFlags, ResolveFlags};
use std::ffi::OsStr;
use std::fs::File;
use std::sync::{Arc, Mutex, PoisonError};

impl Directory {
    /// A descriptor that names a node.
    pub(super) fn node(&self, node: u64) -> Result<Arc<File>, Errno> {
        let found = lock(&self.nodes).find(node)?;
        let file = match found {
            Found::Here(file) => return Ok(file),
            Found::ByHandle(..) => found.open()?,
            Found::ByNames(..) => {
                let _names = self.names.read().unwrap_or_else(PoisonError::into_inner);
                // They may have changed before they were held.
                let found = lock(&self.nodes).find(node)?;
                found.open()?
            }
        };
        let closed = lock(&self.nodes).keep(node, Arc::clone(&file));
        drop(closed);
        Ok(file)
    }

    /// The node of what has that name now, looked up once more.
    pub(super) fn look_up(&self, folder: u64, name: &OsStr) -> Result<(u64, Attr), Errno> {
        self.know(open_path(&*self.node(folder)?, name)?, Some((folder, name)))
    }

    /// The node of what a descriptor names, which has a name in a folder or none at all.
    pub(super) fn know(&self, path: File, named: Option<(u64, &OsStr)>) -> Result<(u64, Attr), Errno> {
        let meta = path.metadata()?;
        let (key, attr) = (Key::of(&meta), self.attr(&meta));
        if let Some(node) = lock(&self.nodes).seen_again(key) {
            return Ok((node, attr));
        }
        let file = Arc::new(path);
        let way = handle_way(&self.mounts, &file).unwrap_or_else(|| match named {
            Some((folder, name)) => Way::Name { folder, name: name.to_owned() },
            None => Way::Open(Arc::clone(&file)),
        });
        let (node, closed) = lock(&self.nodes).know(file, key, way);
        drop(closed);
        Ok((node, attr))
    }

    pub(super) fn entry(&self, folder: u64, name: &OsStr) -> Reply {
        Ok(entry_reply(self.look_up(folder, name)?))
    }

    /// As [`Self::entry`], unless the name leads to another mount, or the folder is not found at once.
    pub(super) fn entry_here(&self, folder: u64, name: &OsStr) -> Option<Reply> {
        match self.open_here(folder, name)? {
            Ok(path) => Some(self.know(path, Some((folder, name))).map(entry_reply)),
            Err(errno) => Some(Err(errno)),
        }
    }

    /// Opens what has that name, to name it, or finds that there is nothing; `None` if it is on another
    /// mount, or the folder is not found at once.
    pub(super) fn open_here(&self, folder: u64, name: &OsStr) -> Option<Result<File, Errno>> {
        let how = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = self.node(folder).ok()?;
        match rustix::fs::openat2(&*folder, name, how, Mode::empty(), ResolveFlags::NO_XDEV) {
            Ok(path) => Some(Ok(path.into())),
            Err(rustix::io::Errno::NOENT) => Some(Err(Errno(libc::ENOENT))),
            Err(_) => None,
        }
    }

    pub(super) fn forget(&self, lookups: impl IntoIterator<Item = (u64, u64)>) {
        let mut closed = Closed::new();
        let mut nodes = lock(&self.nodes);
        lookups.into_iter().for_each(|(node, lookups)| nodes.forget(node, lookups, &mut closed));
        let gives_back = nodes.gives_back();
        drop(nodes);
        drop(closed);
        if gives_back {
            heap::give_back();
        }
    }
}

/// The way to a file by its handle, if its file system has handles and this process may use them.
pub(super) fn handle_way(mounts: &Mutex<Mounts>, path: &File) -> Option<Way> {
    let (handle, id) = FileHandle::of(path).ok()?;
    match lock(mounts).get(&id) {
        Some(None) => return None,
        Some(Some(mount)) => {
            if let Some(mount) = mount.upgrade() {
                return Some(Way::Handle { mount, handle });
            }
        }
        None => {}
    }
    // A file that may be opened without any effect.
    let kind = path.metadata().ok()?.file_type();
    if !kind.is_dir() && !kind.is_file() {
        return None;
    }
    let mount = Arc::new(File::open(proc_path(path)).ok()?);
    let known = match handle.open(&mount).map_err(|e| e.raw_os_error()) {
        Ok(_) => Some(Arc::downgrade(&mount)),
        Err(Some(libc::EPERM | libc::EOPNOTSUPP)) => None,
        Err(_) => return None,
    };
    let is_usable = known.is_some();
    lock(mounts).insert(id, known);
    is_usable.then_some(Way::Handle { mount, handle })
}

/// The file that a name in a folder leads to.
pub(super) fn named(folder: &File, name: &OsStr) -> Result<(Key, Arc<File>), Errno> {
    let file = open_path(folder, name)?;
    Ok((Key::of(&file.metadata()?), Arc::new(file)))
}

/// The answer to a look-up.
fn entry_reply((node, attr): (u64, Attr)) -> Vec<u8> {
    let mut out = Vec::with_capacity(128);
    attr.entry(&mut out, node, VALID_S);
    out
}
