//! Names that come, go and change: files, folders, links and devices that are made without being opened.
//!
//! What is made belongs to its maker, although this process makes it. Nodes that are found by their names
//! have to hear of each change.

use super::by_descriptor::proc_path;
use super::look_up::named;
use super::{Directory, LENDING, lock};
use crate::bio::Errno;
use crate::fuse::nodes::{Closed, open_path};
use crate::fuse::protocol::{Header, Operation, Reply};
use rustix::fs::{AtFlags, CWD, FileType, Gid, Mode, RenameFlags, Uid};
use rustix::process::{getegid, geteuid};
use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::sync::PoisonError;

impl Directory {
    /// What is done to names.
    pub(super) fn on_name(&self, header: &Header, operation: &Operation<'_>) -> Reply {
        let node = header.node;
        match *operation {
            Operation::Lookup { name } => self.entry(node, name),
            Operation::SymLink { name, target } => {
                self.make(header, name, (0, 0), |folder, _| rustix::fs::symlinkat(target, folder, name))
            }
            Operation::MkNod { name, mode, rdev, umask } => {
                let kind = FileType::from_raw_mode(mode);
                self.make(header, name, (mode, umask), |folder, mode| {
                    rustix::fs::mknodat(folder, name, kind, mode, rdev.into())
                })
            }
            Operation::MkDir { name, mode, umask } => {
                self.make(header, name, (mode & 0o1777, umask), |folder, mode| {
                    rustix::fs::mkdirat(folder, name, mode)
                })
            }
            Operation::Unlink { name } => self.remove(node, name, AtFlags::empty()),
            Operation::RmDir { name } => self.remove(node, name, AtFlags::REMOVEDIR),
            Operation::Rename { name, to, new_name, flags } => self.rename(header, name, to, new_name, flags),
            Operation::Link { node, name } => self.link(header, node, name),
            _ => self.on_file(operation),
        }
    }

    /// Something is made in a folder by a call that gets the folder and the mode.
    fn make(
        &self,
        header: &Header,
        name: &OsStr,
        (mode, mask): (u32, u32),
        call: impl FnOnce(&File, Mode) -> rustix::io::Result<()>,
    ) -> Reply {
        let folder = self.node(header.node)?;
        set_mask(mask);
        call(&folder, Mode::from_raw_mode(mode & !LENDING))?;
        self.own(header, name, mode)?;
        self.entry(header.node, name)
    }

    /// What was just made belongs to who made it; its group may come from the folder. Bits that lend rights
    /// come last, when it is clear whose.
    pub(super) fn own(&self, header: &Header, name: &OsStr, mode: u32) -> Result<(), Errno> {
        // What this process makes is its own, and its group is inherited without any help.
        let is_ours = header.uid == geteuid().as_raw() && header.gid == getegid().as_raw();
        if is_ours && mode & LENDING == 0 {
            return Ok(());
        }
        let folder = self.node(header.node)?;
        let is_inherited = folder.metadata()?.mode() & libc::S_ISGID != 0;
        // An id of all ones means in the kernel, too, that the owner stays as it is.
        let uid = (header.uid != u32::MAX).then(|| Uid::from_raw(header.uid));
        let gid = (!is_inherited && header.gid != u32::MAX).then(|| Gid::from_raw(header.gid));
        rustix::fs::chownat(&*folder, name, uid, gid, AtFlags::SYMLINK_NOFOLLOW)?;
        if mode & LENDING == 0 {
            return Ok(());
        }
        let path = open_path(&folder, name)?;
        let mode = path.metadata()?.mode() & 0o7777 | mode & LENDING;
        Ok(fs::set_permissions(proc_path(&path), Permissions::from_mode(mode))?)
    }

    /// Gives a file another name. Nodes that are found by their names have to hear of it.
    fn rename(&self, header: &Header, name: &OsStr, to: u64, new_name: &OsStr, flags: u32) -> Reply {
        let (from, to_folder) = (self.node(header.node)?, self.node(to)?);
        let flags = RenameFlags::from_bits_retain(flags);
        let rename = || rustix::fs::renameat_with(&*from, name, &*to_folder, new_name, flags);
        if !lock(&self.nodes).has_names() {
            rename()?;
            return Ok(Vec::new());
        }
        let _names = self.names.write().unwrap_or_else(PoisonError::into_inner);
        let moved = named(&from, name)?;
        let there = named(&to_folder, new_name).ok();
        rename()?;
        let mut nodes = lock(&self.nodes);
        let closed = match there {
            // Two names of one file: nothing has changed.
            Some((key, _)) if key == moved.0 => Closed::new(),
            Some((key, _)) if flags.contains(RenameFlags::EXCHANGE) => nodes.renamed(key, header.node, name),
            Some((key, file)) => nodes.removed(key, file),
            None => Closed::new(),
        };
        let also_closed = nodes.renamed(moved.0, to, new_name);
        drop(nodes);
        drop((closed, also_closed));
        Ok(Vec::new())
    }

    fn link(&self, header: &Header, node: u64, name: &OsStr) -> Reply {
        let (target, folder) = (self.node(node)?, self.node(header.node)?);
        rustix::fs::linkat(CWD, proc_path(&target), &*folder, name, AtFlags::SYMLINK_FOLLOW)?;
        self.entry(header.node, name)
    }

    /// Removes a name. A node that was found by that name, and a folder in which a program may still be, keep
    /// their descriptors until the kernel forgets them.
    fn remove(&self, folder: u64, name: &OsStr, flags: AtFlags) -> Reply {
        let folder = self.node(folder)?;
        let has_names = lock(&self.nodes).has_names();
        let _names = has_names.then(|| self.names.write().unwrap_or_else(PoisonError::into_inner));
        let kept = has_names || flags.contains(AtFlags::REMOVEDIR);
        let kept = kept.then(|| named(&folder, name)).transpose()?;
        rustix::fs::unlinkat(&*folder, name, flags)?;
        if let Some((key, file)) = kept {
            let closed = lock(&self.nodes).removed(key, file);
            drop(closed);
        }
        Ok(Vec::new())
    }
}

/// Sets the mask for what this thread makes from now on. Threads that make files have masks of their own.
pub(super) fn set_mask(mask: u32) {
    rustix::process::umask(Mode::from_bits_retain(mask & 0o777));
}
