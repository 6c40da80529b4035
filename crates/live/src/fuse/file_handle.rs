//! File handles: names for files that need no descriptor and survive a rename.
//!
//! A handle is what a file system knows a file by, such as inode and generation. It leads back to the file
//! for a process with `CAP_DAC_READ_SEARCH`, through any descriptor on the same mount, and to nothing
//! (`ESTALE`) once the file is gone, even if its inode number is in use again.
//!
//! What it does not do: decide when a descriptor is closed (`nodes.rs`).

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};

/// The largest handle, in bytes.
//= linux-6.12 include/linux/exportfs.h MAX_HANDLE_SZ
const HANDLE_MAX: usize = 128;

/// The kernel's `struct file_handle`, with room for the largest one.
#[repr(C)]
struct RawHandle {
    len: u32,
    kind: i32,
    bytes: [u8; HANDLE_MAX],
}

/// A file's handle on its file system.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct FileHandle {
    kind: i32,
    bytes: Box<[u8]>,
}

impl FileHandle {
    /// Returns the handle of a file, and the number of the mount that it was reached through.
    ///
    /// # Errors
    /// `EOPNOTSUPP` if the file system has no handles.
    pub(super) fn of(file: &File) -> io::Result<(Self, i32)> {
        let mut raw = RawHandle { len: HANDLE_MAX as u32, kind: 0, bytes: [0; HANDLE_MAX] };
        let mut mount: libc::c_int = 0;
        // SAFETY: the kernel reads the empty name, which ends with a zero, and writes the number and at most
        // `len` bytes behind the two words, which is what the structure has room for.
        let result = unsafe {
            libc::syscall(
                libc::SYS_name_to_handle_at,
                file.as_raw_fd(),
                c"".as_ptr(),
                &raw mut raw,
                &raw mut mount,
                libc::AT_EMPTY_PATH,
            )
        };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
        let bytes = raw.bytes[..(raw.len as usize).min(HANDLE_MAX)].into();
        Ok((Self { kind: raw.kind, bytes }, mount))
    }

    /// Opens the file, to name it (`O_PATH`). `mount` is any file on the same mount, opened without `O_PATH`.
    ///
    /// # Errors
    /// `EPERM` without `CAP_DAC_READ_SEARCH`; `ESTALE` if the file is gone.
    pub(super) fn open(&self, mount: &File) -> io::Result<File> {
        let mut raw = RawHandle { len: self.bytes.len() as u32, kind: self.kind, bytes: [0; HANDLE_MAX] };
        raw.bytes[..self.bytes.len()].copy_from_slice(&self.bytes);
        let how = libc::O_PATH | libc::O_NOFOLLOW | libc::O_CLOEXEC;
        // SAFETY: the kernel reads `len` bytes behind the two words, which are there.
        let fd =
            unsafe { libc::syscall(libc::SYS_open_by_handle_at, mount.as_raw_fd(), &raw const raw, how) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a new descriptor that nothing else has.
        Ok(unsafe { File::from_raw_fd(fd as i32) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn a_handle_leads_to_the_file_by_any_name_until_it_is_gone() {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let (old, new) = (dir.path().join("old"), dir.path().join("new"));
        fs::write(&old, b"x").unwrap();
        let (handle, mount) = match FileHandle::of(&File::open(&old).unwrap()) {
            Ok(both) => both,
            Err(e) => return println!("skipped: no handles here: {e}"),
        };
        let folder = File::open(dir.path()).unwrap();
        assert_eq!(FileHandle::of(&folder).unwrap().1, mount);
        let opened = match handle.open(&folder) {
            Err(e) if e.raw_os_error() == Some(libc::EPERM) => return println!("skipped: {e}"),
            other => other.unwrap(),
        };
        assert_eq!(opened.metadata().unwrap().ino(), fs::metadata(&old).unwrap().ino());
        fs::rename(&old, &new).unwrap();
        assert_eq!(handle.open(&folder).unwrap().metadata().unwrap().len(), 1);
        fs::remove_file(&new).unwrap();
        assert!(handle.open(&folder).is_ok(), "it is open");
        drop(opened);
        assert_eq!(handle.open(&folder).unwrap_err().raw_os_error(), Some(libc::ESTALE));
    }
}
