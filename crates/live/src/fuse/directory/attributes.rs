//! What a file is, beside its data: owner, mode, size, times, extended attributes and flags, and what its
//! file system says of itself. All of it is asked of the folder's file system and changed there.
//!
//! Two things differ for the callers of a mount, since the file system below sees the owner of the mount: an
//! extended attribute for administrators is not listed for others, and a write takes away the bits that lend
//! rights ([`shed`]).

use super::by_descriptor::proc_path;
use super::{Directory, VALID_S};
use crate::bio::Errno;
use crate::fuse::protocol::{self, Header, Operation, Reply, SetAttr, Time, command, put32, put64};
use rustix::fs::{AtFlags, CWD, IFlags, StatxFlags, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, XattrFlags};
use rustix::ioctl::{Setter, Updater, ioctl};
use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

/// The names of all extended attributes of a file, in bytes.
//= linux-6.12 include/uapi/linux/limits.h XATTR_LIST_MAX
const XATTRS_MAX: u32 = 65536;

impl Directory {
    pub(super) fn set_attr(&self, node: u64, set: &SetAttr) -> Reply {
        let path = self.node(node)?;
        let name = proc_path(&path);
        if let Some(mode) = set.mode {
            fs::set_permissions(&name, Permissions::from_mode(mode & 0o7777))?;
        }
        // Owners who are "changed" to what they are, when the time of change is.
        let is_nothing = set.mode.or(set.uid).or(set.gid).is_none() && set.size.is_none();
        if set.uid.or(set.gid).is_some() || is_nothing && set.atime.or(set.mtime).is_none() {
            std::os::unix::fs::chown(&name, set.uid, set.gid)?;
        }
        if let Some(size) = set.size {
            match set.handle.map(|h| self.handle_file(h)) {
                Some(Ok(file)) => file.set_len(size)?,
                _ => OpenOptions::new().write(true).open(&name)?.set_len(size)?,
            }
        }
        if set.sheds {
            shed(&path)?;
        }
        if set.atime.or(set.mtime).is_some() {
            let time = |t: Option<Time>| match t {
                None => Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
                Some(Time::Now) => Timespec { tv_sec: 0, tv_nsec: UTIME_NOW },
                Some(Time::At(tv_sec, ns)) => Timespec { tv_sec, tv_nsec: ns.into() },
            };
            let times = Timestamps { last_access: time(set.atime), last_modification: time(set.mtime) };
            rustix::fs::utimensat(CWD, &name, &times, AtFlags::empty())?;
        }
        Ok(self.attr(&path.metadata()?).reply(VALID_S))
    }

    //= linux-6.12 include/uapi/linux/fuse.h struct fuse_kstatfs
    pub(super) fn statfs(&self, node: u64) -> Reply {
        let path = self.node(node)?;
        let stat = rustix::fs::fstatvfs(&*path)?;
        let mut out = Vec::with_capacity(80);
        for n in [stat.f_blocks, stat.f_bfree, stat.f_bavail, stat.f_files, stat.f_ffree] {
            put64(&mut out, n);
        }
        for n in [stat.f_bsize, stat.f_namemax, stat.f_frsize, 0] {
            put32(&mut out, n as u32);
        }
        out.resize(80, 0);
        Ok(out)
    }

    pub(super) fn statx(&self, node: u64, mask: u32) -> Reply {
        let path = self.node(node)?;
        let mask = StatxFlags::from_bits_retain(mask);
        // The empty name is the file itself.
        let mut stat = rustix::fs::statx(&*path, "", AtFlags::EMPTY_PATH, mask)?;
        let device = rustix::fs::makedev(stat.stx_dev_major, stat.stx_dev_minor);
        stat.stx_ino = self.inodes.number(device, stat.stx_ino);
        Ok(protocol::statx_reply(&stat, VALID_S))
    }

    pub(super) fn read_link(&self, node: u64) -> Reply {
        let path = self.node(node)?;
        // The empty name is the link itself.
        Ok(rustix::fs::readlinkat(&*path, "", Vec::new())?.into_bytes())
    }

    /// An answer with a value of at most `size` bytes; of size 0: with the length of the value, from `ask`.
    fn sized(
        size: u32,
        ask: impl FnOnce() -> rustix::io::Result<usize>,
        read: impl FnOnce(&mut [u8]) -> rustix::io::Result<usize>,
    ) -> Reply {
        if size == 0 {
            return Ok([(ask()? as u32).to_ne_bytes(), [0; 4]].concat());
        }
        let mut value = vec![0_u8; size as usize];
        let len = read(&mut value)?;
        value.truncate(len);
        Ok(value)
    }

    pub(super) fn xattr(&self, header: &Header, operation: &Operation<'_>) -> Reply {
        use rustix::fs::{getxattr, getxattr_query, listxattr, listxattr_query};
        let path = self.node(header.node)?;
        let path = &proc_path(&path);
        match *operation {
            Operation::GetXattr { name, size } => {
                Self::sized(size, || getxattr_query(path, name), |value| getxattr(path, name, value))
            }
            Operation::ListXattr { size } => {
                let all = |size| Self::sized(size, || listxattr_query(path), |names| listxattr(path, names));
                if header.uid == 0 { all(size) } else { seen_by_all(&all(XATTRS_MAX)?, size) }
            }
            Operation::SetXattr { name, value, flags, clears_sgid } => {
                rustix::fs::setxattr(path, name, value, XattrFlags::from_bits_retain(flags))?;
                if clears_sgid {
                    // The file system below sees an owner of this mount who may keep the bit.
                    let mode = fs::metadata(path)?.mode() & 0o7777 & !libc::S_ISGID;
                    fs::set_permissions(path, Permissions::from_mode(mode))?;
                }
                Ok(Vec::new())
            }
            Operation::RemoveXattr { name } => {
                rustix::fs::removexattr(path, name)?;
                Ok(Vec::new())
            }
            _ => Err(Errno(libc::ENOSYS)),
        }
    }

    pub(super) fn ioctl(&self, node: u64, command: u32, data: &[u8]) -> Reply {
        use command::{GET_FLAGS, GET_XATTR, SET_FLAGS, SET_XATTR};
        if !matches!(command, GET_FLAGS | SET_FLAGS | GET_XATTR | SET_XATTR) {
            return Err(Errno(libc::ENOTTY));
        }
        let path = self.node(node)?;
        let kind = path.metadata()?.file_type();
        if !kind.is_file() && !kind.is_dir() {
            return Err(Errno(libc::ENOTTY));
        }
        let file = OpenOptions::new().read(true).open(proc_path(&path))?;
        let mut value = [0_u8; 28];
        let len = data.len().min(value.len());
        value[..len].copy_from_slice(&data[..len]);
        let mut out = vec![0; 16];
        match command {
            GET_FLAGS => out.extend(rustix::fs::ioctl_getflags(&file)?.bits().to_ne_bytes()),
            SET_FLAGS => {
                let flags = u32::from_ne_bytes([value[0], value[1], value[2], value[3]]);
                rustix::fs::ioctl_setflags(&file, IFlags::from_bits_retain(flags))?;
            }
            GET_XATTR => {
                // SAFETY: this command writes the 28 bytes of a `struct fsxattr`, the size of the value.
                unsafe { ioctl(&file, Updater::<GET_XATTR, _>::new(&mut value)) }?;
                out.extend(value);
            }
            _ => {
                // SAFETY: this command reads the 28 bytes of a `struct fsxattr`, the size of the value.
                unsafe { ioctl(&file, Setter::<SET_XATTR, _>::new(value)) }?;
            }
        }
        Ok(out)
    }
}

/// Clears set-user-ID and set-group-ID after a write, as the kernel does for a writer without that right; the
/// latter counts only if the group may run the file. Returns whether there was any to clear.
pub(super) fn shed(file: &File) -> Result<bool, Errno> {
    let meta = file.metadata()?;
    let lending = libc::S_ISUID | if meta.mode() & libc::S_IXGRP != 0 { libc::S_ISGID } else { 0 };
    let is_lent = meta.is_file() && meta.mode() & lending != 0;
    if is_lent {
        match fs::set_permissions(proc_path(file), Permissions::from_mode(meta.mode() & 0o7777 & !lending)) {
            // The owner of this mount may write but not set such bits either, so the file system below clears
            // them.
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {}
            done => done?,
        }
    }
    Ok(is_lent)
}

/// Returns those of the zero-terminated names that are not for administrators alone; their total length if
/// `size` is 0.
///
/// # Errors
/// `ERANGE` if `size` is too small for them.
fn seen_by_all(names: &[u8], size: u32) -> Reply {
    let seen = names.split_inclusive(|b| *b == 0).filter(|name| !name.starts_with(b"trusted."));
    let seen = seen.collect::<Vec<_>>().concat();
    match size as usize {
        0 => Ok([(seen.len() as u32).to_ne_bytes(), [0; 4]].concat()),
        room if room < seen.len() => Err(Errno(libc::ERANGE)),
        _ => Ok(seen),
    }
}
