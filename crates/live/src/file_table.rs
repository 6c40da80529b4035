//! The files of a disk: what is known of each, and the numbers by which the engine names them.
//!
//! An open file may have several numbers, one for each caller on whose [rights](crate::rights) it is written.
//!
//! What it does not do: read or write (`store.rs`).

use crate::bio::FileId;
use crate::rights::Caller;
use io_uring::types::FsyncFlags;
use slab::Slab;
use std::fs::File;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Whether a file is in a tmpfs.
pub(crate) fn is_in_memory(file: &File) -> bool {
    rustix::fs::fstatfs(file).is_ok_and(|facts| facts.f_type == libc::TMPFS_MAGIC)
}

/// What there is to know of an open file.
struct Facts {
    identity: Option<Identity>,
    is_in_memory: bool,
    /// Whether a write with `RWF_DSYNC` is stable when it returns, however it is done. Whether it is cannot
    /// be tried out: what a store has not made stable looks the same until its power is cut.
    keeps_dsync: bool,
}

impl Facts {
    fn of(file: &File) -> Self {
        const KNOWN: [libc::c_long; 5] = [
            libc::TMPFS_MAGIC,
            libc::EXT4_SUPER_MAGIC,
            libc::XFS_SUPER_MAGIC,
            libc::BTRFS_SUPER_MAGIC,
            libc::F2FS_SUPER_MAGIC,
        ];
        let meta = file.metadata().ok();
        let is_device = meta.as_ref().is_some_and(|m| m.file_type().is_block_device());
        let kind = rustix::fs::fstatfs(file).ok().map(|facts| facts.f_type);
        let is_known = kind.is_some_and(|kind| KNOWN.contains(&kind));
        let identity = meta.map(|m| if is_device { (true, m.rdev(), 0) } else { (false, m.dev(), m.ino()) });
        Self { identity, is_in_memory: kind == Some(libc::TMPFS_MAGIC), keeps_dsync: is_device || is_known }
    }
}

/// A file through the page cache, for what direct I/O does not take.
#[derive(Debug)]
pub(crate) struct Cached {
    pub(crate) file: File,
    /// What direct I/O takes is a multiple of this power of two.
    pub(crate) align: u64,
}

/// What tells files apart: whether it is a block device, and its number; or its file system and its number
/// there.
pub(crate) type Identity = (bool, u64, u64);

pub(crate) fn identity(file: &File) -> Option<Identity> {
    Facts::of(file).identity
}

#[derive(Debug)]
pub(crate) struct Open {
    pub(crate) file: Arc<File>,
    identity: Option<Identity>,
    cached: Option<Cached>,
    /// Whether the processor copies what is read and written: it is in the page cache, or in memory
    /// altogether.
    is_copied: bool,
    /// See [`Facts`].
    keeps_dsync: bool,
    /// The file by another way, if it is in memory: its pages can be handed on as they are.
    pub(crate) pages: Option<Arc<File>>,
    /// On whose [rights](crate::rights) it is written; `None`: on those of this process.
    pub(crate) caller: Option<Caller>,
    /// The file of the table that this is another number of.
    original: Option<FileId>,
}

/// The files of a disk by number. They may come and go; one that goes must not be asked for any more.
#[derive(Debug, Default)]
pub(crate) struct FileTable {
    files: Mutex<Slab<Open>>,
    /// Files whose next flush includes metadata such as times.
    whole: Mutex<Vec<FileId>>,
}

impl FileTable {
    pub(crate) fn files(&self) -> MutexGuard<'_, Slab<Open>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, file: impl Into<Arc<File>>) -> FileId {
        self.add_with(file.into(), None)
    }

    /// Adds a file that is opened for direct I/O, with the way for what that does not take.
    pub(crate) fn add_with(&self, file: Arc<File>, cached: Option<Cached>) -> FileId {
        // SAFETY: it names no memory.
        let is_cached = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETFL) & libc::O_DIRECT == 0 };
        let Facts { identity, is_in_memory, keeps_dsync } = Facts::of(&file);
        let is_copied = is_cached || is_in_memory;
        // What is opened around the page cache hands on copies.
        let pages =
            is_in_memory.then(|| File::open(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()).flatten();
        let pages = pages.map(Arc::new);
        let (caller, original) = (None, None);
        let open = Open { file, identity, cached, is_copied, keeps_dsync, pages, caller, original };
        FileId(self.files().insert(open) as u32)
    }

    /// Adds a file that is written on the rights of this caller.
    pub(crate) fn add_for(&self, caller: Caller, file: Arc<File>) -> FileId {
        let id = self.add(file);
        self.files()[id.0 as usize].caller = Some(caller);
        id
    }

    /// Another number of an open file, for what another caller writes there.
    pub(crate) fn again_for(&self, caller: Caller, file: FileId) -> FileId {
        let mut files = self.files();
        let of = &files[file.0 as usize];
        let again = Open {
            file: Arc::clone(&of.file),
            identity: of.identity,
            cached: None,
            is_copied: of.is_copied,
            keeps_dsync: of.keeps_dsync,
            pages: of.pages.clone(),
            caller: Some(caller),
            original: Some(of.original.unwrap_or(file)),
        };
        FileId(files.insert(again) as u32)
    }

    /// The caller on whose rights a file is written, if it is not this process.
    pub(crate) fn caller(&self, file: FileId) -> Option<Caller> {
        self.files()[file.0 as usize].caller
    }

    /// The number by which an open file is synced: the kernel tells it of an error once.
    pub(crate) fn synced_as(&self, file: FileId) -> FileId {
        self.files()[file.0 as usize].original.unwrap_or(file)
    }

    pub(crate) fn remove(&self, file: FileId) {
        self.files().remove(file.0 as usize);
    }

    /// The next flush of this file is not of its data alone.
    pub(crate) fn sync_whole(&self, file: FileId) {
        self.whole().push(file);
    }

    fn whole(&self) -> MutexGuard<'_, Vec<FileId>> {
        self.whole.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How the next flush of this file is to be.
    pub(crate) fn flush_flags(&self, file: FileId) -> FsyncFlags {
        let mut whole = self.whole();
        let before = whole.len();
        whole.retain(|f| *f != file);
        if whole.len() < before { FsyncFlags::empty() } else { FsyncFlags::DATASYNC }
    }

    /// Whether writes go through the page cache.
    pub(crate) fn is_cached(&self, file: FileId) -> bool {
        // SAFETY: it names no memory.
        unsafe { libc::fcntl(self.fd(file), libc::F_GETFL) & libc::O_DIRECT == 0 }
    }

    /// Whether there may be pages of it in the page cache that are not written yet.
    pub(crate) fn has_pages(&self, file: FileId) -> bool {
        self.is_cached(file) || self.cached_fd(file).is_some()
    }

    /// Whether these are numbers of one file.
    pub(crate) fn is_same(&self, one: FileId, other: FileId) -> bool {
        let files = self.files();
        let identity = |file: FileId| files[file.0 as usize].identity;
        one == other || identity(one).is_some_and(|file| identity(other) == Some(file))
    }

    pub(crate) fn is_in_memory(&self, file: FileId) -> bool {
        self.files()[file.0 as usize].pages.is_some()
    }

    /// Whether writes to this file are stable when they return, if they say so ([`Facts`]). Those
    /// through the page cache are not: of two at a time, one may hear of the error of the other.
    pub(crate) fn keeps_dsync(&self, file: FileId, is_cached: bool) -> bool {
        self.files()[file.0 as usize].keeps_dsync && !is_cached && !self.is_cached(file)
    }

    /// Whether the processor copies what is read and written.
    pub(crate) fn is_copied(&self, file: FileId) -> bool {
        self.files()[file.0 as usize].is_copied
    }

    /// Whether an operation at this offset, of these parts of memory or of `len` bytes, has to go through the
    /// page cache of a file that is otherwise read and written directly; and whether there is such a way.
    pub(crate) fn needs_cache(
        &self,
        file: FileId,
        offset: u64,
        len: u64,
        parts: &[libc::iovec],
    ) -> (bool, bool) {
        let files = self.files();
        let Some(Cached { align, .. }) = files[file.0 as usize].cached else { return (false, false) };
        let all = parts.iter().fold(offset | len, |all, p| all | p.iov_base as u64 | p.iov_len as u64);
        (!all.is_multiple_of(align), true)
    }

    /// The way through the page cache.
    pub(crate) fn cached_fd(&self, file: FileId) -> Option<RawFd> {
        self.files()[file.0 as usize].cached.as_ref().map(|cached| cached.file.as_raw_fd())
    }

    /// # Panics
    /// If there is none of that number.
    pub(crate) fn fd(&self, file: FileId) -> RawFd {
        self.files()[file.0 as usize].file.as_raw_fd()
    }
}
