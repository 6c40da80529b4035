//! Sockets to listen on: unix sockets in the file system, for their owner or for all, which are removed with
//! their listener; and those that a service manager has opened.

use crate::error::{Error, ErrorKind};
use rustix::fs::{Mode, fchmod};
use rustix::net::sockopt::socket_acceptconn;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with};
use std::fs::Permissions;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A socket in the file system, which is removed with its listener.
#[derive(Debug)]
pub(crate) struct SocketFile {
    path: PathBuf,
    inode: u64,
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        // A socket that another process has put there since is not ours to remove.
        if self.path.symlink_metadata().is_ok_and(|m| m.ino() == self.inode) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Takes a socket that a service manager has opened and passed as this descriptor.
///
/// # Errors
/// If it is not a socket that is listened on.
pub(crate) fn inherited(descriptor: u32) -> Result<OwnedFd, Error> {
    let wrong = |why: &str| Error::new(ErrorKind::Socket, format!("descriptor {descriptor}: {why}"));
    let fd = RawFd::try_from(descriptor).map_err(|_| wrong("there is no such descriptor"))?;
    // It is not passed on to programs that this one starts.
    // SAFETY: it names no memory.
    if unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) } != 0 {
        return Err(wrong("there is no such descriptor"));
    }
    // SAFETY: the manager opened it for this process, and nothing else here knows its number.
    let socket = unsafe { OwnedFd::from_raw_fd(fd) };
    if socket_acceptconn(&socket).unwrap_or(false) {
        Ok(socket)
    } else {
        Err(wrong("no socket that listens"))
    }
}

/// Whether a server listens, and continues to: the kernel takes a ring apart in its own time, so the socket
/// of a server that was killed may outlive its process a little.
fn is_served(path: &Path) -> io::Result<bool> {
    for _ in 0..LOOKS {
        match UnixStream::connect(path) {
            Ok(_) => std::thread::sleep(PAUSE),
            Err(e) if e.kind() == io::ErrorKind::ConnectionRefused => return Ok(false),
            Err(e) => return Err(e),
        }
    }
    Ok(true)
}

/// How often to look at a socket, and how long to wait in between: a second in all.
const LOOKS: u32 = 20;
const PAUSE: Duration = Duration::from_millis(50);

/// The users that can open a socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ForWhom {
    Owner,
    All,
}

/// Listens on a new unix socket that only its owner can open.
fn bind_private(path: &Path) -> io::Result<UnixListener> {
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    // The kernel makes the file with the mode that the socket has. The mask of the process for files would
    // do, too, but other threads make files meanwhile.
    fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
    bind(&socket, &SocketAddrUnix::new(path)?)?;
    // As many as the kernel lets wait.
    listen(&socket, -1)?;
    Ok(UnixListener::from(socket))
}

/// Listens on a unix socket. A socket without a listener is replaced.
pub(crate) fn open_unix(path: &Path, for_whom: ForWhom) -> Result<(UnixListener, SocketFile), Error> {
    let wrong =
        |message: String| Error::new(ErrorKind::Socket, format!("socket {}: {message}", path.display()));
    if let Ok(meta) = path.symlink_metadata() {
        if !meta.file_type().is_socket() {
            return Err(wrong("there is a file of that name".to_owned()));
        }
        if is_served(path).map_err(|e| wrong(e.to_string()))? {
            return Err(wrong("another server listens there".to_owned()));
        }
        // What a server left that was killed.
        std::fs::remove_file(path).map_err(|e| wrong(e.to_string()))?;
    }
    let listener = bind_private(path).map_err(|e| wrong(e.to_string()))?;
    let made = path.metadata().map_err(|e| wrong(e.to_string()))?;
    debug_assert_eq!(made.permissions().mode() & 0o077, 0);
    if for_whom == ForWhom::All {
        std::fs::set_permissions(path, Permissions::from_mode(0o666)).map_err(|e| wrong(e.to_string()))?;
    }
    Ok((listener, SocketFile { path: path.to_owned(), inode: made.ino() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program that serves may have other things to do.
    #[test]
    fn what_other_threads_make_meanwhile_has_the_mode_that_they_want() {
        let folder = tempfile::tempdir().unwrap();
        let make = |number: u32| {
            let path = folder.path().join(number.to_string());
            std::fs::create_dir(&path).unwrap();
            path.metadata().unwrap().permissions().mode()
        };
        let wanted = make(0);
        std::thread::scope(|scope| {
            let path = folder.path().join("socket");
            let opens = scope.spawn(move || {
                for _ in 0..1000 {
                    drop(open_unix(&path, ForWhom::Owner).unwrap());
                }
            });
            for number in (1..).take_while(|_| !opens.is_finished()) {
                assert_eq!(make(number), wanted);
            }
        });
    }
}
