//! The folder that a mount shows, as it is when the mount begins.
//!
//! A mountpoint inside SOURCE would lead to the mount itself. To answer a request about it, the server would
//! send a request to itself, and wait for ever. So the mount does not show SOURCE itself but a private copy
//! of the mounts there, which later mounts do not reach:
//!
//! ```text
//!   /srv  ext4                           copy:  /  ext4
//!   ├─ data  tmpfs          open_tree           ├─ data  tmpfs
//!   └─ in  the mount of /srv  (later)           └─ in  an empty folder of the ext4
//! ```
//!
//! Only mounts are copied, not files: those are the same ones, and all changes show. The copy has no name. It
//! ends when its last descriptor is closed; until then its file systems stay in use.
//!
//! Only a process that may mount (`CAP_SYS_ADMIN`) can make such a copy. Others look at SOURCE itself, and a
//! mountpoint inside it is refused.

use rustix::fs::{CWD, Mode, OFlags};
use rustix::mount::{OpenTreeFlags, open_tree};
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// An open folder.
#[derive(Debug)]
pub(super) struct Source {
    /// Names the folder only.
    pub(super) root: File,
    /// Whether it is a copy, on which nothing is mounted later.
    pub(super) is_copy: bool,
    /// Whether there may be several file systems in it, or inode numbers of several devices in one.
    pub(super) is_mixed: bool,
}

impl Source {
    /// Opens the folder, as a copy if this process may have one.
    ///
    /// # Errors
    /// If it is no folder, or cannot be opened.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let how = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = File::from(rustix::fs::openat(CWD, path, how, Mode::empty())?);
        let is_mixed = has_mounts_inside(path) || numbers_by_layer(&root);
        Ok(match copy(&root) {
            Ok(root) => Self { root, is_copy: true, is_mixed },
            // Not permitted, a kernel before 5.12, or a mount that may not be copied.
            Err(_) => Self { root, is_copy: false, is_mixed },
        })
    }

    /// Whether a folder is somewhere inside, by whichever names: then a mount on it is, too.
    pub(super) fn is_around(&self, folder: &Path) -> io::Result<bool> {
        let place = |meta: &fs::Metadata| (meta.dev(), meta.ino());
        let own = place(&self.root.metadata()?);
        // What is mounted on the folder itself is not below it.
        let above = folder.canonicalize()?.ancestors().skip(1).map(Path::to_owned).collect::<Vec<_>>();
        Ok(above.iter().any(|folder| folder.metadata().is_ok_and(|meta| place(&meta) == own)))
    }
}

/// A copy of the mounts at and below a folder, which hears of no later ones.
fn copy(folder: &File) -> io::Result<File> {
    let how = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE
        | OpenTreeFlags::AT_EMPTY_PATH;
    let copy = File::from(open_tree(folder, "", how)?);
    //= man7 mount_setattr.2
    let private = libc::mount_attr { attr_set: 0, attr_clr: 0, propagation: libc::MS_PRIVATE, userns_fd: 0 };
    // SAFETY: an empty name that ends with a zero, and a structure of the size that is given; both outlive
    // the call, and the kernel only reads them.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            copy.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH | libc::AT_RECURSIVE,
            &raw const private,
            size_of::<libc::mount_attr>(),
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    // A descriptor made by `open_tree` names the folder, as one opened with `O_PATH` does.
    Ok(copy)
}

/// Whether anything is mounted inside a folder; if that is not known, something may be.
fn has_mounts_inside(folder: &Path) -> bool {
    let Ok(folder) = folder.canonicalize() else { return true };
    let Ok(mounts) = fs::read("/proc/self/mountinfo") else { return true };
    mounts.split(|&byte| byte == b'\n').any(|line| {
        let place = line.split(|&byte| byte == b' ').nth(4);
        place.is_some_and(|place| {
            let place = unescaped(place);
            place != folder && place.starts_with(&folder)
        })
    })
}

/// A path of `mountinfo`, in which some bytes are written as `\040`.
fn unescaped(bytes: &[u8]) -> PathBuf {
    let mut path = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let [first, tail @ ..] = rest {
        let escape = tail.first_chunk::<3>().filter(|_| *first == b'\\');
        let octal = escape.and_then(|digits| std::str::from_utf8(digits).ok());
        match octal.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                path.push(byte);
                rest = &tail[3..];
            }
            None => {
                path.push(*first);
                rest = tail;
            }
        }
    }
    PathBuf::from(std::ffi::OsString::from_vec(path))
}

/// Whether one file system has files of several devices: the layers of an overlay, the subvolumes of btrfs
/// and bcachefs.
fn numbers_by_layer(folder: &File) -> bool {
    //= linux include/uapi/linux/magic.h
    const OVERLAYFS: u64 = 0x794c_7630;
    const BTRFS: u64 = 0x9123_683e;
    const BCACHEFS: u64 = 0xca45_1a4e;
    rustix::fs::fstatfs(folder).is_ok_and(|stat| {
        // The type of this field, and its sign, depend on the processor.
        matches!(stat.f_type as u64 & 0xffff_ffff, OVERLAYFS | BTRFS | BCACHEFS)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_of_the_list_of_mounts_is_read() {
        assert_eq!(unescaped(br"/srv/a\040b\134c"), Path::new(r"/srv/a b\c"));
        assert_eq!(unescaped(br"/srv/\04"), Path::new(r"/srv/\04"));
    }

    #[test]
    fn a_folder_is_around_what_is_inside_it() {
        let folder = tempfile::tempdir().unwrap();
        let (inner, beside) = (folder.path().join("a/b"), folder.path().join("c"));
        fs::create_dir_all(&inner).unwrap();
        fs::create_dir(&beside).unwrap();
        let source = Source::open(&folder.path().join("a")).unwrap();
        assert!(source.is_around(&inner).unwrap());
        assert!(!source.is_around(&beside).unwrap());
        // The mount would hide the folder, which is open already.
        assert!(!source.is_around(&folder.path().join("a")).unwrap());
        assert!(Source::open(&folder.path().join("none")).is_err());
    }
}
