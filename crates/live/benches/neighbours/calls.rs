//! A program's calls for each operation that the kernel asks of a mount: what has it ask that, in a folder of
//! its own.

use crate::honest::BLOCK;
use crate::messages::Work;
use std::ffi::CString;
use std::fs::{self, File, OpenOptions, Permissions};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// What a program does again and again in a folder of its own.
pub(crate) type Call = fn(&Home);

/// What has the kernel ask for an operation, and what that has the disk do; `None`: the kernel says it for
/// itself, and no call makes it do so alone. An operation that is not named here is a mistake, so that a new
/// one gets its call.
pub(crate) fn call_of(operation: &str) -> Option<(Call, Work)> {
    Some(match operation {
        "INIT" | "DESTROY" | "INTERRUPT" | "FORGET" | "BATCH_FORGET" => return None,
        "LOOKUP" => (|h| _ = fs::metadata(h.at("nothing")), Work::None),
        "GETATTR" | "STATX" => (|h| _ = fs::metadata(&h.file), Work::None),
        "SETATTR" => (|h| _ = fs::set_permissions(&h.file, Permissions::from_mode(0o600)), Work::None),
        "READLINK" => (|h| _ = fs::read_link(h.at("link")), Work::None),
        "SYMLINK" | "UNLINK" => (|h| make_and_remove(h, |at| symlink("x", at).is_ok()), Work::None),
        "MKNOD" => (|h| make_and_remove(h, fifo), Work::None),
        "MKDIR" | "RMDIR" => (
            |h| {
                let _ = fs::create_dir(h.at("folder"));
                let _ = fs::remove_dir(h.at("folder"));
            },
            Work::None,
        ),
        "RENAME" | "RENAME2" => (
            |h| {
                let _ = fs::rename(h.at("a"), h.at("b"));
                let _ = fs::rename(h.at("b"), h.at("a"));
            },
            Work::None,
        ),
        "LINK" => (|h| make_and_remove(h, |at| fs::hard_link(&h.file, at).is_ok()), Work::None),
        "OPEN" | "RELEASE" | "FLUSH" => (|h| _ = File::open(&h.file), Work::None),
        "READ" => (|h| h.read(), Work::Disk),
        "WRITE" => (|h| h.write(), Work::Disk),
        "STATFS" => (|h| _ = rustix::fs::statvfs(&h.file), Work::None),
        "FSYNC" => (|h| _ = h.open.sync_all(), Work::Flush),
        "FSYNCDIR" => (|h| _ = h.folder.sync_all(), Work::Flush),
        "SYNCFS" => (|h| _ = rustix::fs::syncfs(&h.folder), Work::Flush),
        "SETXATTR" | "REMOVEXATTR" => (attribute, Work::None),
        "GETXATTR" => (|h| _ = rustix::fs::getxattr(&h.file, "user.none", &mut [0; 64]), Work::None),
        "LISTXATTR" => (|h| _ = rustix::fs::listxattr(&h.file, &mut [0; 64]), Work::None),
        "OPENDIR" | "RELEASEDIR" | "READDIR" | "READDIRPLUS" => {
            (|h| _ = fs::read_dir(&h.path).map(Iterator::count), Work::None)
        }
        "ACCESS" => (|h| _ = rustix::fs::access(&h.file, rustix::fs::Access::READ_OK), Work::None),
        "CREATE" => (|h| make_and_remove(h, |at| File::create(at).is_ok()), Work::None),
        "IOCTL" => (|h| _ = rustix::fs::ioctl_getflags(&h.open), Work::None),
        "FALLOCATE" => (allocate, Work::Disk),
        "LSEEK" => (|h| _ = rustix::fs::seek(&h.open, rustix::fs::SeekFrom::Hole(0)), Work::None),
        "COPY_FILE_RANGE" => (
            |h| {
                let (mut from, mut to) = (0, 0);
                let _ = rustix::fs::copy_file_range(&h.open, Some(&mut from), &h.other, Some(&mut to), 65536);
            },
            Work::Disk,
        ),
        "TMPFILE" => (
            |h| {
                let options = OpenOptions::new().write(true).custom_flags(libc::O_TMPFILE).open(&h.path);
                drop(options);
            },
            Work::None,
        ),
        unknown => panic!("calls.rs: which call has the kernel ask for {unknown}?"),
    })
}

/// A folder of one thread's own in the mount, and what is in it.
pub(crate) struct Home {
    path: PathBuf,
    file: PathBuf,
    open: File,
    /// Past the page cache.
    direct: File,
    other: File,
    folder: File,
    space: Vec<u8>,
}

impl Home {
    pub(crate) fn new(path: &Path) -> std::io::Result<Self> {
        fs::create_dir_all(path)?;
        let file = path.join("file");
        fs::write(&file, vec![1; 256 << 10])?;
        fs::write(path.join("a"), b"a")?;
        let _ = symlink("file", path.join("link"));
        let both = |flags| OpenOptions::new().read(true).write(true).custom_flags(flags).open(&file);
        let other = OpenOptions::new().create(true).truncate(false).write(true).open(path.join("other"))?;
        let (open, direct, folder) = (both(0)?, both(libc::O_DIRECT)?, File::open(path)?);
        let space = vec![1; 2 * BLOCK];
        Ok(Self { path: path.to_owned(), file, open, direct, other, folder, space })
    }

    fn at(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    fn block(&self) -> &[u8] {
        let at = self.space.as_ptr().align_offset(BLOCK);
        &self.space[at..at + BLOCK]
    }

    fn read(&self) {
        let mut space = vec![0; 2 * BLOCK];
        let at = space.as_ptr().align_offset(BLOCK);
        let _ = self.direct.read_exact_at(&mut space[at..at + BLOCK], 0);
    }

    fn write(&self) {
        let _ = self.direct.write_all_at(self.block(), 0);
    }
}

fn make_and_remove(home: &Home, make: impl Fn(&Path) -> bool) {
    let at = home.at("new");
    if make(&at) {
        let _ = fs::remove_file(at);
    }
}

fn fifo(at: &Path) -> bool {
    let Ok(name) = CString::new(at.as_os_str().as_bytes()) else { return false };
    // SAFETY: the name ends with a zero.
    unsafe { libc::mkfifo(name.as_ptr(), 0o600) == 0 }
}

fn attribute(home: &Home) {
    let flags = rustix::fs::XattrFlags::empty();
    let _ = rustix::fs::setxattr(&home.file, "user.a", &[1; 200], flags);
    let _ = rustix::fs::removexattr(&home.file, "user.a");
}

fn allocate(home: &Home) {
    // SAFETY: it names no memory.
    unsafe { libc::posix_fallocate(home.other.as_raw_fd(), 0, 1 << 20) };
    let _ = home.other.set_len(0);
}
