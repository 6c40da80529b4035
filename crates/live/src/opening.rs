//! Opening files whose names others may have made: what is no file, or has become none since it was named,
//! is refused at once.
//!
//! To open a FIFO waits for its other end, and to open a device may do something. So a name is looked at
//! first, opened without waiting (`O_NONBLOCK`), and what was opened is looked at again: the name may have
//! changed in between.

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use std::fs::{File, FileType, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

/// How a file is opened so that nothing is waited for, and a terminal does not become ours.
const AT_ONCE: i32 = libc::O_NONBLOCK | libc::O_NOCTTY;

/// Opens a file or block device, for reading only unless it `writes`. `flags` are more flags of `open(2)`.
///
/// # Errors
/// If it cannot be opened, or is something else.
pub(crate) fn open_blocks(path: &Path, writes: bool, flags: i32) -> io::Result<File> {
    check(path.metadata()?.file_type())?;
    let opened = OpenOptions::new().read(true).write(writes).custom_flags(flags | AT_ONCE).open(path);
    // What a FIFO or a socket says.
    let file = opened.map_err(|e| if e.raw_os_error() == Some(libc::ENXIO) { wrong_kind() } else { e })?;
    check(file.metadata()?.file_type())?;
    if flags & libc::O_NONBLOCK == 0 {
        waits(&file)?;
    }
    Ok(file)
}

/// Makes or empties a file that is written. It may be a FIFO that a program reads.
///
/// # Errors
/// If it cannot be opened, or is a FIFO that no program reads.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    let mut how = OpenOptions::new();
    let opened = how.write(true).create(true).truncate(true).custom_flags(AT_ONCE).open(path);
    let file = opened.map_err(|e| match e.raw_os_error() {
        Some(libc::ENXIO) => io::Error::other("a FIFO that no program reads; name a file"),
        _ => e,
    })?;
    waits(&file)?;
    Ok(file)
}

/// The bytes of a file, at most `most`.
///
/// # Errors
/// If it cannot be read, is no file, or is longer.
pub(crate) fn read_file(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let is_file = |kind: FileType| if kind.is_file() { Ok(()) } else { Err(io::Error::other("not a file")) };
    is_file(path.metadata()?.file_type())?;
    let file = OpenOptions::new().read(true).custom_flags(AT_ONCE).open(path)?;
    is_file(file.metadata()?.file_type())?;
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::other(format!("longer than {most} bytes")));
    }
    Ok(bytes)
}

/// What is done to the file from now on waits as usual.
pub(crate) fn waits(file: &File) -> io::Result<()> {
    Ok(fcntl_setfl(file, fcntl_getfl(file)?.difference(OFlags::NONBLOCK))?)
}

fn check(kind: FileType) -> io::Result<()> {
    if kind.is_file() || kind.is_block_device() { Ok(()) } else { Err(wrong_kind()) }
}

fn wrong_kind() -> io::Error {
    io::Error::other("not a file or block device")
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, FileType as Kind, Mode, mknodat};
    use std::path::PathBuf;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    fn fifo(folder: &Path) -> PathBuf {
        let path = folder.join("fifo");
        mknodat(CWD, &path, Kind::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        path
    }

    #[test]
    fn a_fifo_is_refused_without_waiting() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = fifo(folder.path());
        for writes in [false, true] {
            let why = open_blocks(&fifo, writes, 0).unwrap_err().to_string();
            assert_eq!(why, "not a file or block device");
        }
        assert_eq!(open_blocks(Path::new("/dev/null"), false, 0).unwrap_err().kind(), io::ErrorKind::Other);
        assert!(create(&fifo).unwrap_err().to_string().contains("no program reads"));
        assert_eq!(read_file(&fifo, 10).unwrap_err().to_string(), "not a file");
        let other_end = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(&fifo).unwrap();
        assert!(create(&fifo).is_ok(), "a program reads it");
        drop(other_end);
    }

    /// A name that is a file when it is looked at, and a FIFO when it is opened.
    #[test]
    fn a_name_that_changes_meanwhile_keeps_no_thread() {
        let folder = tempfile::tempdir().unwrap();
        let (fifo, file, name) =
            (fifo(folder.path()), folder.path().join("file"), folder.path().join("name"));
        std::fs::write(&file, [7; 10]).unwrap();
        std::fs::hard_link(&file, &name).unwrap();
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                let put = |what: &Path| {
                    let new = folder.path().join("new");
                    std::fs::hard_link(what, &new).unwrap();
                    std::fs::rename(&new, &name).unwrap();
                };
                while !is_over.load(Ordering::Relaxed) {
                    put(&fifo);
                    put(&file);
                }
            });
            let is_file = |file: &File| file.metadata().unwrap().is_file();
            for writes in [false, true].into_iter().cycle().take(20_000) {
                assert!(open_blocks(&name, writes, 0).is_ok_and(|f| is_file(&f)) || name.exists());
            }
            is_over.store(true, Ordering::Relaxed);
        });
    }

    #[test]
    fn what_is_opened_waits_as_usual() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let flags = |file: &File| fcntl_getfl(file).unwrap();
        assert!(!flags(&open_blocks(file.path(), true, 0).unwrap()).contains(OFlags::NONBLOCK));
        let at_once = open_blocks(file.path(), true, libc::O_NONBLOCK).unwrap();
        assert!(flags(&at_once).contains(OFlags::NONBLOCK));
        std::fs::write(file.path(), [1; 20]).unwrap();
        assert_eq!(read_file(file.path(), 20).unwrap().len(), 20);
        assert_eq!(read_file(file.path(), 19).unwrap_err().to_string(), "longer than 19 bytes");
    }
}
