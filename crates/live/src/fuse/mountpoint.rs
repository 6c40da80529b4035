//! Putting a file system where it shall be seen, and taking it away: `mount(2)` for those who may, `fusermount3` for others.

use crate::error::{Error, ErrorKind};
use std::ffi::{CString, OsStr};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where something is mounted. It is taken away when this is dropped.
#[derive(Debug)]
pub(crate) struct Mountpoint {
    path: PathBuf,
}

fn failed(kind: ErrorKind, path: &Path, what: impl std::fmt::Display) -> Error {
    Error::new(kind, format!("{}: {what}", path.display()))
}

fn c_string(text: &OsStr) -> io::Result<CString> {
    CString::new(text.as_bytes()).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))
}

impl Mountpoint {
    /// Mounts; what is asked there is to be read from the file, which never blocks.
    ///
    /// # Errors
    /// If it is no directory, there is no FUSE, or it may not be.
    pub(crate) fn mount(path: &Path, data_max: u32) -> Result<(Self, File), Error> {
        let path = path.canonicalize().map_err(|e| failed(ErrorKind::File, path, e))?;
        if !path.is_dir() {
            return Err(failed(ErrorKind::File, &path, "not a directory"));
        }
        let file = match Self::mount_directly(&path, data_max) {
            Err(e) if e.raw_os_error() == Some(libc::EPERM) => {
                Self::ask_fusermount(&path, data_max).map_err(|e| failed(ErrorKind::Mount, &path, e))?
            }
            other => {
                other.map_err(|e| failed(ErrorKind::Mount, &path, format!("cannot mount there: {e}")))?
            }
        };
        Ok((Self { path }, file))
    }

    fn mount_directly(path: &Path, data_max: u32) -> io::Result<File> {
        let file =
            OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open("/dev/fuse")?;
        // SAFETY: these only answer numbers.
        let (uid, gid) = unsafe { (libc::geteuid(), libc::getegid()) };
        let options = format!(
            "fd={},rootmode=40000,user_id={uid},group_id={gid},allow_other,default_permissions,max_read={data_max}",
            file.as_raw_fd()
        );
        let (target, options) = (c_string(path.as_os_str())?, c_string(OsStr::new(&options))?);
        let flags = libc::MS_NOSUID | libc::MS_NODEV;
        // SAFETY: all are strings that end with a zero and outlive the call.
        let result = unsafe {
            libc::mount(
                c"fairhead".as_ptr(),
                target.as_ptr(),
                c"fuse.fairhead".as_ptr(),
                flags,
                options.as_ptr().cast(),
            )
        };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(file) }
    }

    /// The helper of the fuse3 package may mount for those who may not, and hands over the file through a socket.
    fn ask_fusermount(path: &Path, data_max: u32) -> io::Result<File> {
        let (ours, theirs) = UnixStream::pair()?;
        // SAFETY: duplicating a descriptor; the copy stays open in the child, which is what it is for.
        let passed = unsafe { libc::dup(theirs.as_raw_fd()) };
        if passed < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: just made, and nobody else's.
        let passed = unsafe { OwnedFd::from_raw_fd(passed) };
        drop(theirs);
        let status = Command::new("fusermount3")
            .arg("-o")
            .arg(format!("default_permissions,max_read={data_max},fsname=fairhead,subtype=fairhead"))
            .arg("--")
            .arg(path)
            .env("_FUSE_COMMFD", passed.as_raw_fd().to_string())
            .status()
            .map_err(|e| {
                io::Error::other(format!("only root may mount, and fusermount3 cannot be run: {e}"))
            })?;
        drop(passed);
        if !status.success() {
            return Err(io::Error::other(format!("fusermount3 ended with {status}")));
        }
        let file = receive_file(ours.as_raw_fd())?;
        // SAFETY: the descriptor is open.
        let result = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(file) }
    }

    /// Takes it away: it is not seen any more, and ends when nobody has anything open there.
    pub(crate) fn unmount(path: &Path) -> io::Result<()> {
        let target = c_string(path.as_os_str())?;
        // SAFETY: a string that ends with a zero and outlives the call.
        if unsafe { libc::umount2(target.as_ptr(), libc::MNT_DETACH | libc::UMOUNT_NOFOLLOW) } == 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        if error.raw_os_error() != Some(libc::EPERM) {
            return Err(error);
        }
        let status = Command::new("fusermount3").args(["-u", "-z", "--"]).arg(path).status()?;
        if status.success() { Ok(()) } else { Err(error) }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

/// A file that comes through a socket with one byte of nothing.
fn receive_file(socket: RawFd) -> io::Result<File> {
    let mut byte = 0_u8;
    let mut vector = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    let mut control = [0_u64; 8];
    // SAFETY: all zeros is an empty message.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut vector;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = std::mem::size_of_val(&control);
    // SAFETY: what the message names is on this function's stack.
    if unsafe { libc::recvmsg(socket, &raw mut message, libc::MSG_CMSG_CLOEXEC) } < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has filled in the control part.
    let part = unsafe { libc::CMSG_FIRSTHDR(&raw const message).as_ref() };
    match part {
        Some(part) if part.cmsg_level == libc::SOL_SOCKET && part.cmsg_type == libc::SCM_RIGHTS => {
            // SAFETY: a part of this type has at least one descriptor, which is ours now.
            Ok(unsafe { File::from_raw_fd(libc::CMSG_DATA(part).cast::<RawFd>().read_unaligned()) })
        }
        _ => Err(io::Error::other("fusermount3 sent no file")),
    }
}
