//! Locks on images, so that two programs do not write the same one.
//!
//! QEMU and its tools lock single bytes of an image, far behind what any of them means as data. A shared
//! lock at 100 + N says "I do N", one at 200 + N says "no other program may do N". N is 0 for reading, 1
//! for writing, and 3 for changing the size. All locks are shared ones. A program first takes its own, then
//! looks whether others hold the opposite of one of them. Of two that start at once, both may be refused,
//! but never both get the image.
//!
//! An export reads; unless it is read-only, it writes; it forbids other programs to write and to change the
//! size. That excludes another server of ours, a virtual machine and `qemu-nbd`, in whichever order they
//! start. Several read-only servers of one image are possible. The locks belong to the open file
//! (`F_OFD_SETLK`) and go with it, also when the process is killed.
//!
//! Limits: locks are advisory, so `dd` does not ask. A file system without locks has none here either. QEMU
//! locks regular files only, so a block device is protected from our own servers alone.
//!
//! Source: the numbers are what QEMU 7.2 holds, as `/proc/locks` shows it while `qemu-nbd` and `qemu-io` run;
//! the rules are in QEMU's documentation, *Disk image file locking*. A test compares with both programs.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// What may be done to an image: also the offset of its lock behind [`DOES`] and [`DENIES`].
const READ: i64 = 0;
const WRITE: i64 = 1;
const RESIZE: i64 = 3;

/// The first byte of the locks that say what their holder does.
const DOES: i64 = 100;

/// The first byte of the locks that say what their holder forbids others to do.
const DENIES: i64 = 200;

/// Why an image cannot be locked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Conflict {
    /// Another program writes the image, or may change its size.
    IsWritten,
    /// Another program uses the image and forbids others to write it.
    IsProtected,
}

/// Locks an image for as long as `file` is open.
///
/// # Errors
/// If another program uses the image in a way that is not compatible, as the inner result; if the kernel
/// refuses the locks for another reason, as the outer one.
pub(super) fn lock(file: &File, writes: bool) -> io::Result<Result<(), Conflict>> {
    let does: &[i64] = if writes { &[READ, WRITE] } else { &[READ] };
    let denies = [WRITE, RESIZE];
    for byte in does.iter().map(|n| DOES + n).chain(denies.map(|n| DENIES + n)) {
        match shared(file, byte) {
            // The file system has no locks.
            Err(e) if matches!(e.raw_os_error(), Some(libc::ENOLCK | libc::EOPNOTSUPP | libc::ENOSYS)) => {
                return Ok(Ok(()));
            }
            other => other?,
        }
    }
    for n in does {
        if is_held(file, DENIES + n)? {
            return Ok(Err(Conflict::IsProtected));
        }
    }
    for n in denies {
        if is_held(file, DOES + n)? {
            return Ok(Err(Conflict::IsWritten));
        }
    }
    Ok(Ok(()))
}

/// Takes the shared lock of a byte.
fn shared(file: &File, byte: i64) -> io::Result<()> {
    call(file, libc::F_OFD_SETLK, libc::F_RDLCK, byte).map(|_| ())
}

/// Whether another open file holds the lock of a byte.
fn is_held(file: &File, byte: i64) -> io::Result<bool> {
    call(file, libc::F_OFD_GETLK, libc::F_WRLCK, byte).map(|kind| kind != libc::F_UNLCK)
}

/// A call about the lock of one byte. Returns the kind of lock that the kernel answers.
fn call(file: &File, command: i32, kind: i32, byte: i64) -> io::Result<i32> {
    #[allow(clippy::cast_possible_truncation, reason = "the constants fit")]
    let mut lock = libc::flock {
        l_type: kind as i16,
        l_whence: libc::SEEK_SET as i16,
        l_start: byte,
        l_len: 1,
        // Must be 0 for locks of open files.
        l_pid: 0,
    };
    // SAFETY: `lock` is valid for the call, and the kernel keeps no reference to it.
    let result = unsafe { libc::fcntl(file.as_raw_fd(), command, &raw mut lock) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(i32::from(lock.l_type)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::OpenOptions;

    /// Opens the image anew for each way of use, and locks it.
    fn uses<const N: usize>(ways: [bool; N]) -> Vec<Result<(), Conflict>> {
        let path = std::env::temp_dir().join(format!("fairhead-lock-{}-{ways:?}", std::process::id()));
        std::fs::write(&path, [0; 4096]).unwrap();
        let mut open = Vec::new();
        let results = ways.map(|writes| {
            let file = OpenOptions::new().read(true).write(writes).open(&path).unwrap();
            let result = lock(&file, writes).unwrap();
            open.push(file);
            result
        });
        std::fs::remove_file(&path).unwrap();
        results.into()
    }

    #[test]
    fn readers_share_an_image_and_writers_do_not() {
        assert_eq!(uses([false, false, false]), [Ok(()); 3]);
        // A writer denies no reading.
        assert_eq!(uses([true, false]), [Ok(()), Err(Conflict::IsWritten)]);
        assert_eq!(uses([false, true]), [Ok(()), Err(Conflict::IsProtected)]);
        assert_eq!(uses([true, true]), [Ok(()), Err(Conflict::IsProtected)]);
    }

    #[test]
    fn a_closed_file_holds_nothing() {
        let path = std::env::temp_dir().join(format!("fairhead-unlock-{}", std::process::id()));
        std::fs::write(&path, [0; 16]).unwrap();
        let open = || OpenOptions::new().read(true).write(true).open(&path).unwrap();
        for _ in 0..2 {
            let file = open();
            assert_eq!(lock(&file, true).unwrap(), Ok(()));
        }
        std::fs::remove_file(&path).unwrap();
    }
}
