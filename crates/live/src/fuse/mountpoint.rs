//! Mounting and unmounting: by `mount(2)` if the process may call it, else by `fusermount3`.

use crate::error::{Error, ErrorKind};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::mount::{MountFlags, UnmountFlags};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use rustix::process::{getegid, geteuid};
use std::ffi::{CString, OsString};
use std::fs::{File, OpenOptions};
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
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

/// The way out for someone who finds a mount whose server was killed.
fn dead(path: &Path) -> String {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let command = if geteuid().is_root() { "umount --lazy" } else { "fusermount3 -u -z" };
    format!("a mount is still there whose server has ended; remove it with: {command} {}", path.display())
}

/// A path as a value among options of `fusermount3`, which commas separate.
fn escaped(path: &Path) -> OsString {
    let mut bytes = Vec::new();
    for byte in path.as_os_str().as_bytes() {
        if matches!(byte, b',' | b'\\') {
            bytes.push(b'\\');
        }
        bytes.push(*byte);
    }
    OsString::from_vec(bytes)
}

impl Mountpoint {
    /// Mounts; what is asked there is to be read from the file, which never blocks. Lists of mounts show the
    /// source.
    ///
    /// # Errors
    /// If it is no directory, there is no FUSE, or it may not be.
    pub(crate) fn mount(path: &Path, source: &Path, data_max: u32) -> Result<(Self, File), Error> {
        let looked_at = path.canonicalize().and_then(|path| Ok((path.metadata()?, path)));
        let (meta, path) = looked_at.map_err(|e| match e.raw_os_error() {
            // The second one is for those that asked while it ended.
            Some(libc::ENOTCONN | libc::ECONNABORTED) => failed(ErrorKind::Mount, path, dead(path)),
            _ => failed(ErrorKind::File, path, e),
        })?;
        if !meta.is_dir() {
            return Err(failed(ErrorKind::File, &path, "not a directory"));
        }
        let file = match Self::mount_directly(&path, source, data_max) {
            // Users may not call `mount(2)`, and on some systems may not open `/dev/fuse`.
            Err(e) if matches!(e.raw_os_error(), Some(libc::EPERM | libc::EACCES)) => {
                Self::ask_fusermount(&path, source, data_max)
                    .map_err(|e| failed(ErrorKind::Mount, &path, e))?
            }
            other => {
                other.map_err(|e| failed(ErrorKind::Mount, &path, format!("cannot mount there: {e}")))?
            }
        };
        Ok((Self { path }, file))
    }

    fn mount_directly(path: &Path, source: &Path, data_max: u32) -> io::Result<File> {
        let file =
            OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open("/dev/fuse")?;
        let (uid, gid) = (geteuid().as_raw(), getegid().as_raw());
        let options = format!(
            "fd={},rootmode=40000,user_id={uid},group_id={gid},allow_other,default_permissions,max_read={data_max}",
            file.as_raw_fd()
        );
        let options = CString::new(options)?;
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        rustix::mount::mount(source, path, "fuse.fairhead", flags, options.as_c_str())?;
        Ok(file)
    }

    /// The helper of the fuse3 package may mount for those who may not, and hands over the file through a
    /// socket.
    fn ask_fusermount(path: &Path, source: &Path, data_max: u32) -> io::Result<File> {
        let (ours, theirs) = UnixStream::pair()?;
        // The copy, unlike the socket itself, stays open in the child.
        let passed = rustix::io::dup(&theirs)?;
        drop(theirs);
        let mut options =
            OsString::from(format!("default_permissions,max_read={data_max},subtype=fairhead,fsname="));
        options.push(escaped(source));
        let status = Command::new("fusermount3")
            .arg("-o")
            .arg(options)
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
        let file = receive_file(&ours)?;
        fcntl_setfl(&file, OFlags::NONBLOCK)?;
        Ok(file)
    }

    /// Unmounts it: it is not visible any more, and ends when no program has anything open there.
    pub(crate) fn unmount(path: &Path) -> io::Result<()> {
        Self::unmount_so(path, UnmountFlags::DETACH)
    }

    /// Ends it: it is not visible any more, and every request to it fails from now on, also those that wait.
    ///
    /// The connection is aborted at once. It would otherwise end when the last copy of its descriptor is
    /// closed, and a program that is being started has such a copy until it runs: if it closes a file of the
    /// mount before that, it waits for an answer that never comes.
    pub(crate) fn end(path: &Path) -> io::Result<()> {
        Self::unmount_so(path, UnmountFlags::DETACH | UnmountFlags::FORCE)
    }

    fn unmount_so(path: &Path, flags: UnmountFlags) -> io::Result<()> {
        let error = match rustix::mount::unmount(path, flags | UnmountFlags::NOFOLLOW) {
            Err(rustix::io::Errno::PERM) => io::Error::from(rustix::io::Errno::PERM),
            done => return Ok(done?),
        };
        let status = Command::new("fusermount3").args(["-u", "-z", "--"]).arg(path).status()?;
        if status.success() { Ok(()) } else { Err(error) }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

/// A file that comes through a socket with one byte of nothing.
fn receive_file(socket: &UnixStream) -> io::Result<File> {
    let mut byte = [0_u8];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    recvmsg(socket, &mut [IoSliceMut::new(&mut byte)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let mut files = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut files) => files.next(),
        _ => None,
    });
    files.next().map(File::from).ok_or_else(|| io::Error::other("fusermount3 sent no file"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
    use std::io::{IoSlice, Read, Seek, Write};
    use std::os::fd::AsFd;

    #[test]
    fn a_file_comes_through_a_socket() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"sent").unwrap();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let files = [file.as_fd()];
        assert!(control.push(SendAncillaryMessage::ScmRights(&files)));
        sendmsg(&theirs, &[IoSlice::new(&[0])], &mut control, SendFlags::empty()).unwrap();

        let mut received = receive_file(&ours).unwrap();
        received.rewind().unwrap();
        let mut text = String::new();
        received.read_to_string(&mut text).unwrap();
        assert_eq!(text, "sent");
    }

    #[test]
    fn a_comma_in_a_path_separates_no_options() {
        assert_eq!(escaped(Path::new("/srv/a,b\\c d")), OsString::from("/srv/a\\,b\\\\c d"));
    }

    #[test]
    fn a_byte_without_a_file_is_an_error() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        theirs.write_all(&[0]).unwrap();
        assert_eq!(receive_file(&ours).unwrap_err().to_string(), "fusermount3 sent no file");
    }
}
