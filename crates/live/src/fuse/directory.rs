//! A tree that is a folder, passed through. Data go through the engine, names and attributes straight to the
//! folder's file system.
//!
//! Each [node](Nodes) that the kernel knows has a way to its file, and a descriptor that only names it while
//! it is in use. A handle has the file twice: past the page cache for what is aligned, which is what the
//! scheduler can see, and through it for the rest, since a program may write any bytes. The file system below
//! keeps the two in step. Open files need descriptors of their own; each client has a [share](OpenFiles) of
//! them.
//!
//! Each file is a region of the disk, in the order in which they were first opened: a position is for the
//! scheduler to know what is in a row, not where it is.
//!
//! What it does not do: locks, which the kernel keeps among the callers of the mount itself.

use super::callers::Callers;
use super::file_handle::FileHandle;
use super::front::{AtOnce, Place, Tree, Who};
use super::nodes::{Closed, Found, Key, Nodes, Way, open_path};
use super::open_files::{OpenFiles, Opener};
use super::protocol::{
    self, Attr, DATA_MAX, Entries, Header, Operation, Reply, SetAttr, Terms, Time, command, flag, opened,
    put32, put64,
};
use super::range::Range;
use crate::bio::{Errno, FileId, Op};
use crate::engine::Context;
use crate::store::{FileTable, is_in_memory};
use fairhead_core::units::Sector;
use rustix::fs::{
    AtFlags, CWD, FileType, Gid, IFlags, Mode, OFlags, RenameFlags, ResolveFlags, SeekFrom, StatxFlags,
    Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, Uid, XattrFlags,
};
use rustix::ioctl::{Setter, Updater, ioctl};
use rustix::process::{Resource, getegid, geteuid, getrlimit};
use slab::Slab;
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirEntryExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};

/// How long the kernel may remember names and attributes, in seconds: changes below the mount are seen after
/// that.
const VALID_S: u64 = 1;
/// The names of all extended attributes of a file, in bytes.
//= linux-6.12 include/uapi/linux/limits.h XATTR_LIST_MAX
const XATTRS_MAX: u32 = 65536;
/// Set-user-ID and set-group-ID.
const LENDING: u32 = 0o6000;
/// What direct I/O needs.
const ALIGN: u64 = 4096;
/// The most requests that may be here while no caller in the kernel waits for them. The waiting requests of a
/// limited group must not keep those of others from coming.
const BACKGROUND_MAX: u16 = 2048;
/// Descriptors of nodes beyond this number are not worth the kernel's memory.
const NODE_DESCRIPTORS_MAX: u64 = 32 << 10;

#[derive(Debug)]
struct Entry {
    name: OsString,
    inode: u64,
    kind: u32,
}

/// The most descriptors of a file that a program has open: twice two.
const DESCRIPTORS_MAX: usize = 4;

/// What a program has open.
#[derive(Debug)]
enum Handle {
    File {
        file: Arc<File>,
        buffered: FileId,
        direct: Option<FileId>,
        start: Sector,
        is_direct: bool,
        /// How long the file was when that was last looked up.
        size: u64,
    },
    Folder(Arc<Vec<Entry>>),
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Directory {
    table: Arc<FileTable>,
    nodes: Mutex<Nodes>,
    handles: Mutex<Slab<Handle>>,
    callers: Mutex<Callers>,
    open_files: Mutex<OpenFiles>,
    /// By file of the table: the client that has it open, and its descriptors.
    openers: Mutex<HashMap<FileId, (Opener, usize)>>,
    /// By the kernel's number: a file on each mount that file handles are opened through; `None` where they
    /// cannot be.
    mounts: Mutex<HashMap<i32, Option<Weak<File>>>>,
    /// That of the folder itself.
    #[allow(dead_code, reason = "it keeps the mount among those that are known")]
    root_mount: Option<Arc<File>>,
    /// Held while names that lead to nodes change, and while they are followed.
    names: RwLock<()>,
    /// The device of the folder, if that is in memory.
    in_memory: Option<u64>,
}

/// The most bytes of a file that is removed at once: its pages are taken back, which takes about 1 ms for
/// these.
const REMOVED_MAX: u64 = 4 << 20;

/// The most nodes that are forgotten at once.
const FORGOTTEN_MAX: usize = 32;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl From<io::Error> for Errno {
    fn from(e: io::Error) -> Self {
        Self(e.raw_os_error().unwrap_or(libc::EIO))
    }
}

impl From<rustix::io::Errno> for Errno {
    fn from(e: rustix::io::Errno) -> Self {
        Self(e.raw_os_error())
    }
}

/// Sets the mask for what this thread makes from now on. Threads that make files have masks of their own.
fn set_mask(mask: u32) {
    rustix::process::umask(Mode::from_bits_retain(mask & 0o777));
}

/// Clears set-user-ID and set-group-ID after a write, as the kernel does for a writer without that right; the
/// latter counts only if the group may run the file. Returns whether there was any to clear.
fn shed(file: &File) -> Result<bool, Errno> {
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

/// The answer to a look-up.
fn entry_reply((node, attr): (u64, Attr)) -> Vec<u8> {
    let mut out = Vec::with_capacity(128);
    attr.entry(&mut out, node, VALID_S);
    out
}

/// A name for what the descriptor names.
fn proc_path(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// Opens a name in a folder. The mode is for the ways that make a file.
fn open_at(folder: &File, name: &OsStr, how: OFlags, mode: u32) -> Result<File, Errno> {
    let file = rustix::fs::openat(folder, name, how | OFlags::CLOEXEC, Mode::from_bits_retain(mode))?;
    Ok(file.into())
}

/// The file that a name in a folder leads to.
fn named(folder: &File, name: &OsStr) -> Result<(Key, Arc<File>), Errno> {
    let file = open_path(folder, name)?;
    Ok((Key::of(&file.metadata()?), Arc::new(file)))
}

/// The way to a file by its handle, if its file system has handles and this process may use them.
fn handle_way(mounts: &Mutex<HashMap<i32, Option<Weak<File>>>>, path: &File) -> Option<Way> {
    let (handle, id) = FileHandle::of(path).ok()?;
    match lock(mounts).get(&id) {
        Some(None) => return None,
        Some(Some(mount)) => {
            if let Some(mount) = mount.upgrade() {
                return Some(Way::Handle { mount, handle });
            }
        }
        None => {}
    }
    // A file that may be opened without any effect.
    let kind = path.metadata().ok()?.file_type();
    if !kind.is_dir() && !kind.is_file() {
        return None;
    }
    let mount = Arc::new(File::open(proc_path(path)).ok()?);
    let known = match handle.open(&mount).map_err(|e| e.raw_os_error()) {
        Ok(_) => Some(Arc::downgrade(&mount)),
        Err(Some(libc::EPERM | libc::EOPNOTSUPP)) => None,
        Err(_) => return None,
    };
    let is_usable = known.is_some();
    lock(mounts).insert(id, known);
    is_usable.then_some(Way::Handle { mount, handle })
}

impl Directory {
    pub(crate) fn open(source: &Path) -> io::Result<Self> {
        let root =
            OpenOptions::new().read(true).custom_flags(libc::O_PATH | libc::O_DIRECTORY).open(source)?;
        let mounts = Mutex::default();
        let root_mount = match handle_way(&mounts, &root) {
            Some(Way::Handle { mount, .. }) => Some(mount),
            _ => None,
        };
        let in_memory = is_in_memory(&root).then(|| root.metadata().map(|m| m.dev())).transpose()?;
        // A quarter is for nodes, a half for what programs have open, the rest for everything else.
        let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let for_nodes = (descriptors / 4).min(NODE_DESCRIPTORS_MAX) as usize;
        Ok(Self {
            table: Arc::default(),
            nodes: Mutex::new(Nodes::new(root, for_nodes)?),
            handles: Mutex::default(),
            callers: Mutex::default(),
            open_files: Mutex::new(OpenFiles::new((descriptors / 2) as usize)),
            openers: Mutex::default(),
            mounts,
            root_mount,
            names: RwLock::default(),
            in_memory,
        })
    }

    pub(crate) fn table(&self) -> Arc<FileTable> {
        Arc::clone(&self.table)
    }

    /// A descriptor that names a node.
    fn node(&self, node: u64) -> Result<Arc<File>, Errno> {
        let found = lock(&self.nodes).find(node)?;
        let file = match found {
            Found::Here(file) => return Ok(file),
            Found::ByHandle(..) => found.open()?,
            Found::ByNames(..) => {
                let _names = self.names.read().unwrap_or_else(PoisonError::into_inner);
                // They may have changed before they were held.
                let found = lock(&self.nodes).find(node)?;
                found.open()?
            }
        };
        let closed = lock(&self.nodes).keep(node, Arc::clone(&file));
        drop(closed);
        Ok(file)
    }

    fn handle_file(&self, handle: u64) -> Result<Arc<File>, Errno> {
        match lock(&self.handles).get(handle as usize) {
            Some(Handle::File { file, .. }) => Ok(Arc::clone(file)),
            _ => Err(Errno(libc::EBADF)),
        }
    }

    /// The node of what has that name now, looked up once more.
    fn look_up(&self, folder: u64, name: &OsStr) -> Result<(u64, Attr), Errno> {
        self.know(open_path(&*self.node(folder)?, name)?, Some((folder, name)))
    }

    /// The node of what a descriptor names, which has a name in a folder or none at all.
    fn know(&self, path: File, named: Option<(u64, &OsStr)>) -> Result<(u64, Attr), Errno> {
        let meta = path.metadata()?;
        let (key, attr) = (Key::of(&meta), Attr::of(&meta));
        if let Some(node) = lock(&self.nodes).seen_again(key) {
            return Ok((node, attr));
        }
        let file = Arc::new(path);
        let way = handle_way(&self.mounts, &file).unwrap_or_else(|| match named {
            Some((folder, name)) => Way::Name { folder, name: name.to_owned() },
            None => Way::Open(Arc::clone(&file)),
        });
        let (node, closed) = lock(&self.nodes).know(file, key, way);
        drop(closed);
        Ok((node, attr))
    }

    fn entry(&self, folder: u64, name: &OsStr) -> Reply {
        Ok(entry_reply(self.look_up(folder, name)?))
    }

    /// As [`Self::entry`], unless the name leads to another mount, or the folder is not found at once.
    fn entry_here(&self, folder: u64, name: &OsStr) -> Option<Reply> {
        match self.open_here(folder, name)? {
            Ok(path) => Some(self.know(path, Some((folder, name))).map(entry_reply)),
            Err(errno) => Some(Err(errno)),
        }
    }

    /// Opens what has that name, to name it, or finds that there is nothing; `None` if it is on another
    /// mount, or the folder is not found at once.
    fn open_here(&self, folder: u64, name: &OsStr) -> Option<Result<File, Errno>> {
        let how = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = self.node(folder).ok()?;
        match rustix::fs::openat2(&*folder, name, how, Mode::empty(), ResolveFlags::NO_XDEV) {
            Ok(path) => Some(Ok(path.into())),
            Err(rustix::io::Errno::NOENT) => Some(Err(Errno(libc::ENOENT))),
            Err(_) => None,
        }
    }

    /// What was just made belongs to who made it; its group may come from the folder. Bits that lend rights
    /// come last, when it is clear whose.
    fn own(&self, header: &Header, name: &OsStr, mode: u32) -> Result<(), Errno> {
        // What this process makes is its own, and its group is inherited without any help.
        let is_ours = header.uid == geteuid().as_raw() && header.gid == getegid().as_raw();
        if is_ours && mode & LENDING == 0 {
            return Ok(());
        }
        let folder = self.node(header.node)?;
        let is_inherited = folder.metadata()?.mode() & libc::S_ISGID != 0;
        // An id of all ones means in the kernel, too, that the owner stays as it is.
        let uid = (header.uid != u32::MAX).then(|| Uid::from_raw(header.uid));
        let gid = (!is_inherited && header.gid != u32::MAX).then(|| Gid::from_raw(header.gid));
        rustix::fs::chownat(&*folder, name, uid, gid, AtFlags::SYMLINK_NOFOLLOW)?;
        if mode & LENDING == 0 {
            return Ok(());
        }
        let path = open_path(&folder, name)?;
        let mode = path.metadata()?.mode() & 0o7777 | mode & LENDING;
        Ok(fs::set_permissions(proc_path(&path), Permissions::from_mode(mode))?)
    }

    /// Something is made in a folder by a call that gets the folder and the mode.
    fn make(
        &self,
        header: &Header,
        name: &OsStr,
        (mode, mask): (u32, u32),
        call: impl FnOnce(&File, Mode) -> rustix::io::Result<()>,
    ) -> Reply {
        let folder = self.node(header.node)?;
        set_mask(mask);
        call(&folder, Mode::from_raw_mode(mode & !LENDING))?;
        self.own(header, name, mode)?;
        self.entry(header.node, name)
    }

    fn set_attr(&self, node: u64, set: &SetAttr) -> Reply {
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
        Ok(Attr::of(&path.metadata()?).reply(VALID_S))
    }

    /// Opens a node's file, to serve it, unless it was opened when it was made: its mode may forbid that to
    /// be done again.
    ///
    /// # Errors
    /// `ENFILE` if the client has its share of open files.
    fn open_node(&self, node: u64, opener: &Opener, flags: u32, made: Option<File>) -> Reply {
        let path = self.node(node)?;
        let is_appended = flags as i32 & libc::O_APPEND != 0;
        let flags = flags as i32
            & !(libc::O_APPEND
                | libc::O_CREAT
                | libc::O_EXCL
                | libc::O_NOFOLLOW
                | libc::O_TRUNC
                | libc::O_TMPFILE);
        let mode = flags & libc::O_ACCMODE;
        let kept = flags & libc::O_NOATIME;
        let open_so = |extra| {
            OpenOptions::new()
                .read(mode != libc::O_WRONLY)
                .write(mode != libc::O_RDONLY)
                .custom_flags(kept | extra)
                .open(proc_path(&path))
        };
        let open = |extra| match open_so(extra) {
            // A file that can only be appended to.
            Err(e) if e.raw_os_error() == Some(libc::EPERM) && is_appended => open_so(extra | libc::O_APPEND),
            other => other,
        };
        let at_once = self.at_once().bits() as i32;
        let file = Arc::new(made.map_or_else(|| open(at_once), Ok)?);
        let meta = file.metadata()?;
        let size = meta.len();
        // Opened at once, so that a second way to it is of no use.
        let is_at_once = self.in_memory == Some(meta.dev());
        let is_in_memory = is_at_once || is_in_memory(&file);
        // The table has a file in memory twice.
        let descriptors = if is_in_memory { 2 } else { 1 };
        let add = |file: Arc<File>| {
            lock(&self.open_files).take(opener, descriptors)?;
            let file = self.table.add(file);
            lock(&self.openers).insert(file, (opener.clone(), descriptors));
            Ok::<_, Errno>(file)
        };
        let buffered = add(Arc::clone(&file))?;
        // The ring takes files in memory for slow unless told that they are not.
        let more = if is_in_memory { libc::O_DIRECT | libc::O_NONBLOCK } else { libc::O_DIRECT };
        let direct = if is_at_once { None } else { open(more).ok() };
        let direct = direct.map(|f| add(Arc::new(f))).transpose();
        let direct = direct.inspect_err(|_| self.close(buffered))?;
        let start = {
            let mut nodes = lock(&self.nodes);
            nodes.opened(node, &file);
            nodes.region(node, size)
        };
        let is_direct = flags & libc::O_DIRECT != 0;
        let file = Handle::File { file, buffered, direct, start, is_direct, size };
        let handle = lock(&self.handles).insert(file);
        // Otherwise a program that waits for direct I/O could not be interrupted.
        let how = if is_direct { opened::DIRECT_IO } else { 0 };
        Ok(protocol::opened_reply(handle as u64, how | opened::PARALLEL_DIRECT_WRITES))
    }

    /// How files are opened so that the ring does not take them for slow, if they are in memory.
    const fn at_once(&self) -> OFlags {
        if self.in_memory.is_some() { OFlags::NONBLOCK } else { OFlags::empty() }
    }

    /// Whether it takes no time to close the descriptor of a node, which may be the last one of a removed
    /// file.
    fn is_let_go_quickly(&self, node: u64) -> bool {
        let found = lock(&self.nodes).find(node);
        let is_small = |file: &File| {
            let meta = file.metadata();
            meta.is_ok_and(|m| Some(m.dev()) == self.in_memory && m.len() <= REMOVED_MAX)
        };
        matches!(found, Ok(Found::Here(file)) if is_small(&file))
    }

    /// Whether the file or folder that an operation is about is in memory, with the folder that is mounted.
    fn is_in_memory(&self, node: u64, operation: &Operation<'_>) -> bool {
        let is_batch = matches!(operation, Operation::BatchForget { .. });
        self.in_memory.is_some_and(|device| is_batch || lock(&self.nodes).is_on(node, device))
    }

    /// Whether an operation on what is in memory waits for nothing: what is done to one name or to
    /// attributes. Other file systems may wait for a disk, and those that are mounted in the folder for
    /// anything.
    fn is_quick(&self, header: &Header, operation: &Operation<'_>) -> bool {
        let node = header.node;
        match *operation {
            // What is only made, and not opened, is nowhere else.
            Operation::Create { flags, .. } if flags as i32 & libc::O_EXCL != 0 => true,
            Operation::Create { name, .. } => self.open_here(node, name).is_some(),
            Operation::Unlink { name } => {
                let stat = |folder: Arc<File>| rustix::fs::statat(&*folder, name, AtFlags::SYMLINK_NOFOLLOW);
                // If it is not there, it takes no time.
                self.node(node).map(stat).is_ok_and(|s| s.map_or(true, |s| s.st_size as u64 <= REMOVED_MAX))
            }
            Operation::SetAttr(set) => set.size.is_none(),
            Operation::GetAttr
            | Operation::StatX { .. }
            | Operation::Open { .. }
            | Operation::OpenDir
            | Operation::Flush { .. } => true,
            Operation::Forget { .. } => self.is_let_go_quickly(node),
            Operation::BatchForget { pairs } => {
                pairs.len() <= FORGOTTEN_MAX * 16
                    && protocol::forgotten(pairs).all(|(node, _)| self.is_let_go_quickly(node))
            }
            _ => false,
        }
    }

    fn read_folder(&self, node: u64) -> Result<Vec<Entry>, Errno> {
        let path = self.node(node)?;
        let inode = path.metadata()?.ino();
        let dot = |name: &str| Entry { name: name.into(), inode, kind: libc::DT_DIR.into() };
        let mut entries = vec![dot("."), dot("..")];
        for entry in fs::read_dir(proc_path(&path))? {
            let entry = entry?;
            let kind = entry.file_type().map_or(libc::DT_UNKNOWN, |t| match t {
                t if t.is_dir() => libc::DT_DIR,
                t if t.is_file() => libc::DT_REG,
                t if t.is_symlink() => libc::DT_LNK,
                t if t.is_fifo() => libc::DT_FIFO,
                t if t.is_socket() => libc::DT_SOCK,
                t if t.is_block_device() => libc::DT_BLK,
                _ => libc::DT_CHR,
            });
            entries.push(Entry { name: entry.file_name(), inode: entry.ino(), kind: kind.into() });
        }
        Ok(entries)
    }

    fn list(&self, node: u64, handle: u64, offset: u64, size: u32, plus: bool) -> Reply {
        let fresh = (offset == 0).then(|| self.read_folder(node)).transpose()?;
        // Reads and writes need the handles, too, and must not wait for what follows.
        let entries = match lock(&self.handles).get_mut(handle as usize) {
            Some(Handle::Folder(entries)) => {
                if let Some(fresh) = fresh {
                    *entries = Arc::new(fresh);
                }
                Arc::clone(entries)
            }
            _ => return Err(Errno(libc::EBADF)),
        };
        let mut out = Entries::new(size);
        for (i, entry) in entries.iter().enumerate().skip(offset as usize) {
            let name = entry.name.as_bytes();
            if !out.has_room(name, plus) {
                break;
            }
            let is_dot = i < 2;
            // One that is gone by now has no node; to look it up tells so.
            let seen =
                if is_dot { None } else { plus.then(|| self.look_up(node, &entry.name).ok()).flatten() };
            let with =
                plus.then(|| seen.map_or((0, Attr::default(), 0), |(node, attr)| (node, attr, VALID_S)));
            out.push(name, entry.inode, i as u64 + 1, entry.kind, with);
        }
        Ok(out.finish())
    }

    //= linux-6.12 include/uapi/linux/fuse.h struct fuse_kstatfs
    fn statfs(&self, node: u64) -> Reply {
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

    fn xattr(&self, header: &Header, operation: &Operation<'_>) -> Reply {
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

    /// Gives a file another name. Nodes that are found by their names have to hear of it.
    fn rename(&self, header: &Header, name: &OsStr, to: u64, new_name: &OsStr, flags: u32) -> Reply {
        let (from, to_folder) = (self.node(header.node)?, self.node(to)?);
        let flags = RenameFlags::from_bits_retain(flags);
        let rename = || rustix::fs::renameat_with(&*from, name, &*to_folder, new_name, flags);
        if !lock(&self.nodes).has_names() {
            rename()?;
            return Ok(Vec::new());
        }
        let _names = self.names.write().unwrap_or_else(PoisonError::into_inner);
        let moved = named(&from, name)?;
        let there = named(&to_folder, new_name).ok();
        rename()?;
        let mut nodes = lock(&self.nodes);
        let closed = match there {
            // Two names of one file: nothing has changed.
            Some((key, _)) if key == moved.0 => Closed::new(),
            Some((key, _)) if flags.contains(RenameFlags::EXCHANGE) => nodes.renamed(key, header.node, name),
            Some((key, file)) => nodes.removed(key, file),
            None => Closed::new(),
        };
        let also_closed = nodes.renamed(moved.0, to, new_name);
        drop(nodes);
        drop((closed, also_closed));
        Ok(Vec::new())
    }

    fn link(&self, header: &Header, node: u64, name: &OsStr) -> Reply {
        let (target, folder) = (self.node(node)?, self.node(header.node)?);
        rustix::fs::linkat(CWD, proc_path(&target), &*folder, name, AtFlags::SYMLINK_FOLLOW)?;
        self.entry(header.node, name)
    }

    /// Removes a name. A node that was found by that name, and a folder in which a program may still be, keep
    /// their descriptors until the kernel forgets them.
    fn remove(&self, folder: u64, name: &OsStr, flags: AtFlags) -> Reply {
        let folder = self.node(folder)?;
        let has_names = lock(&self.nodes).has_names();
        let _names = has_names.then(|| self.names.write().unwrap_or_else(PoisonError::into_inner));
        let kept = has_names || flags.contains(AtFlags::REMOVEDIR);
        let kept = kept.then(|| named(&folder, name)).transpose()?;
        rustix::fs::unlinkat(&*folder, name, flags)?;
        if let Some((key, file)) = kept {
            let closed = lock(&self.nodes).removed(key, file);
            drop(closed);
        }
        Ok(Vec::new())
    }

    fn create(&self, header: &Header, opener: &Opener, name: &OsStr, flags: u32, mode: u32) -> Reply {
        let folder = self.node(header.node)?;
        // A file that could not be opened is not made.
        lock(&self.open_files).after(opener, DESCRIPTORS_MAX)?;
        let wished = OFlags::from_bits_retain(flags) & (OFlags::EXCL | OFlags::ACCMODE);
        let how = OFlags::CREATE | OFlags::NOFOLLOW | wished | self.at_once();
        let file = match open_at(&folder, name, how | OFlags::EXCL, mode & !LENDING) {
            // It is there, or was made a moment ago.
            Err(Errno(libc::EEXIST)) if !wished.contains(OFlags::EXCL) => {
                open_at(&folder, name, how, mode & !LENDING)?
            }
            made => {
                let file = made?;
                self.own(header, name, mode)?;
                file
            }
        };
        let (node, attr) = self.look_up(header.node, name)?;
        self.created(node, attr, opener, flags, file)
    }

    /// A file without a name, in the file system of the folder.
    fn create_nameless(&self, header: &Header, opener: &Opener, flags: u32, mode: u32) -> Reply {
        let folder = self.node(header.node)?;
        let wished = OFlags::from_bits_retain(flags) & (OFlags::EXCL | OFlags::ACCMODE);
        let how = OFlags::TMPFILE | wished | self.at_once();
        let file = open_at(&folder, OsStr::new("."), how, mode & !LENDING)?;
        let is_inherited = folder.metadata()?.mode() & libc::S_ISGID != 0;
        std::os::unix::fs::fchown(&file, Some(header.uid), (!is_inherited).then_some(header.gid))?;
        if mode & LENDING != 0 {
            let mode = file.metadata()?.mode() & 0o7777 | mode & LENDING;
            file.set_permissions(Permissions::from_mode(mode))?;
        }
        let path = OpenOptions::new().read(true).custom_flags(libc::O_PATH).open(proc_path(&file))?;
        let (node, attr) = self.know(path, None)?;
        self.created(node, attr, opener, flags, file)
    }

    /// The answer to who made a file and has it open.
    fn created(&self, node: u64, attr: Attr, opener: &Opener, flags: u32, file: File) -> Reply {
        let mut out = Vec::with_capacity(144);
        attr.entry(&mut out, node, VALID_S);
        match self.open_node(node, opener, flags, Some(file)) {
            Ok(opened) => out.extend(opened),
            Err(errno) => {
                self.forget([(node, 1)]);
                return Err(errno);
            }
        }
        Ok(out)
    }

    fn forget(&self, lookups: impl IntoIterator<Item = (u64, u64)>) {
        let mut closed = Closed::new();
        let mut nodes = lock(&self.nodes);
        lookups.into_iter().for_each(|(node, lookups)| nodes.forget(node, lookups, &mut closed));
        drop(nodes);
        drop(closed);
    }

    fn ioctl(&self, node: u64, command: u32, data: &[u8]) -> Reply {
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

    fn statx(&self, node: u64, mask: u32) -> Reply {
        let path = self.node(node)?;
        let mask = StatxFlags::from_bits_retain(mask);
        // The empty name is the file itself.
        let stat = rustix::fs::statx(&*path, "", AtFlags::EMPTY_PATH, mask)?;
        Ok(protocol::statx_reply(&stat, VALID_S))
    }

    /// What is done to open files, and is no reading or writing of the caller's data.
    fn on_file(&self, operation: &Operation<'_>) -> Reply {
        match *operation {
            Operation::LSeek { handle, offset, whence } => {
                let file = self.handle_file(handle)?;
                let to = match whence as i32 {
                    libc::SEEK_SET => SeekFrom::Start(offset),
                    libc::SEEK_CUR => SeekFrom::Current(offset as i64),
                    libc::SEEK_END => SeekFrom::End(offset as i64),
                    libc::SEEK_DATA => SeekFrom::Data(offset),
                    libc::SEEK_HOLE => SeekFrom::Hole(offset),
                    _ => return Err(Errno(libc::EINVAL)),
                };
                let at = rustix::fs::seek(&*file, to)?;
                Ok(at.to_ne_bytes().to_vec())
            }
            _ => Err(Errno(libc::ENOSYS)),
        }
    }

    /// What is done to names.
    fn on_name(&self, header: &Header, operation: &Operation<'_>) -> Reply {
        let node = header.node;
        match *operation {
            Operation::Lookup { name } => self.entry(node, name),
            Operation::SymLink { name, target } => {
                self.make(header, name, (0, 0), |folder, _| rustix::fs::symlinkat(target, folder, name))
            }
            Operation::MkNod { name, mode, rdev, umask } => {
                let kind = FileType::from_raw_mode(mode);
                self.make(header, name, (mode, umask), |folder, mode| {
                    rustix::fs::mknodat(folder, name, kind, mode, rdev.into())
                })
            }
            Operation::MkDir { name, mode, umask } => {
                self.make(header, name, (mode & 0o1777, umask), |folder, mode| {
                    rustix::fs::mkdirat(folder, name, mode)
                })
            }
            Operation::Unlink { name } => self.remove(node, name, AtFlags::empty()),
            Operation::RmDir { name } => self.remove(node, name, AtFlags::REMOVEDIR),
            Operation::Rename { name, to, new_name, flags } => self.rename(header, name, to, new_name, flags),
            Operation::Link { node, name } => self.link(header, node, name),
            _ => self.on_file(operation),
        }
    }

    /// What opens a file for a client.
    fn on_opening(&self, header: &Header, group: &str, operation: &Operation<'_>) -> Reply {
        let opener = Opener::new(group, header.uid);
        let reply = match *operation {
            Operation::Open { flags } => self.open_node(header.node, &opener, flags, None),
            Operation::Create { name, flags, mode, umask } => {
                set_mask(umask);
                self.create(header, &opener, name, flags, mode)
            }
            Operation::TmpFile { flags, mode, umask } => {
                set_mask(umask);
                self.create_nameless(header, &opener, flags, mode)
            }
            _ => self.do_it(header, operation),
        };
        // The limit that is reached is not that of the program which opens it.
        reply.map_err(|e| if e.0 == libc::EMFILE { Errno(libc::ENFILE) } else { e })
    }

    fn do_it(&self, header: &Header, operation: &Operation<'_>) -> Reply {
        let node = header.node;
        match *operation {
            Operation::GetAttr => Ok(Attr::of(&self.node(node)?.metadata()?).reply(VALID_S)),
            Operation::SetAttr(set) => self.set_attr(node, &set),
            Operation::ReadLink => self.read_link(node),
            Operation::OpenDir => {
                let handle = lock(&self.handles).insert(Handle::Folder(Arc::default()));
                Ok(protocol::opened_reply(handle as u64, 0))
            }
            Operation::ReadDir { handle, offset, size, plus } => self.list(node, handle, offset, size, plus),
            Operation::ReleaseDir { handle } => {
                lock(&self.handles).try_remove(handle as usize);
                Ok(Vec::new())
            }
            Operation::FsyncDir { .. } => {
                let path = self.node(node)?;
                File::open(proc_path(&path))?.sync_all()?;
                Ok(Vec::new())
            }
            Operation::StatFs => self.statfs(node),
            Operation::StatX { mask } => self.statx(node, mask),
            Operation::Ioctl { command, data } => self.ioctl(node, command, data),
            Operation::SetXattr { .. }
            | Operation::GetXattr { .. }
            | Operation::ListXattr { .. }
            | Operation::RemoveXattr { .. } => self.xattr(header, operation),
            // There is nothing to do when a file is closed, and the kernel need not ask again.
            Operation::Flush { .. } => Err(Errno(libc::ENOSYS)),
            Operation::Destroy => Ok(Vec::new()),
            _ => self.on_name(header, operation),
        }
    }

    /// The size of an open file, which its handle keeps.
    fn look_up_size(&self, handle: u64, file: &File) -> Result<u64, Errno> {
        let len = file.metadata()?.len();
        if let Some(Handle::File { size, .. }) = lock(&self.handles).get_mut(handle as usize) {
            *size = len;
        }
        Ok(len)
    }

    fn read_link(&self, node: u64) -> Reply {
        let path = self.node(node)?;
        // The empty name is the link itself.
        Ok(rustix::fs::readlinkat(&*path, "", Vec::new())?.into_bytes())
    }
}

impl Tree for Directory {
    fn terms(&self) -> Terms {
        Terms {
            background_max: BACKGROUND_MAX,
            data_max: DATA_MAX,
            flags: flag::ASYNC_READ
                | flag::ASYNC_DIO
                | flag::BIG_WRITES
                | flag::DONT_MASK
                | flag::POSIX_ACL
                | flag::HANDLE_KILLPRIV_V2
                | flag::SETXATTR_EXT
                | flag::MAX_PAGES
                | flag::PARALLEL_DIROPS
                | flag::AUTO_INVAL_DATA
                | flag::DO_READDIRPLUS
                | flag::READDIRPLUS_AUTO
                | flag::INIT_EXT
                | flag::DIRECT_IO_ALLOW_MMAP,
        }
    }

    fn place(&self, range: &Range) -> Result<Option<Place>, Errno> {
        let (file, buffered, direct, start, is_direct, size) =
            match lock(&self.handles).get(range.handle as usize) {
                Some(Handle::File { file, buffered, direct, start, is_direct, size }) => {
                    (Arc::clone(file), *buffered, *direct, *start, *is_direct, *size)
                }
                _ => return Err(Errno(libc::EBADF)),
            };
        let has_shed = range.sheds && shed(&file)?;
        let sector = Sector(start.0 + range.offset / 512);
        let is_aligned = range.offset.is_multiple_of(ALIGN);
        if range.op == Op::Read {
            // If the file is shorter by now, the disk says so; if it is longer, the size is looked up.
            let is_inside = range.offset.saturating_add(range.len.into()) <= size;
            let size = if is_inside { size } else { self.look_up_size(range.handle, &file)? };
            let left = size.saturating_sub(range.offset);
            let answered = u64::from(range.len).min(left) as u32;
            let whole = u64::from(answered).next_multiple_of(ALIGN) as u32;
            return Ok((answered > 0).then(|| match direct.filter(|_| is_aligned) {
                Some(file) => Place { file, sector, len: whole, answered, fua: false, has_shed },
                None => Place { file: buffered, sector, len: answered, answered, fua: false, has_shed },
            }));
        }
        let direct = direct.filter(|_| is_aligned && u64::from(range.len).is_multiple_of(ALIGN));
        let (file, len) = (direct.unwrap_or(buffered), range.len);
        let place = Place { file, sector, len, answered: len, fua: range.fua && is_direct, has_shed };
        Ok((range.len > 0).then_some(place))
    }

    fn file(&self, _: u64, handle: u64) -> Result<FileId, Errno> {
        match lock(&self.handles).get(handle as usize) {
            Some(Handle::File { buffered, .. }) => Ok(*buffered),
            _ => Err(Errno(libc::EBADF)),
        }
    }

    fn sync_whole(&self, file: FileId) {
        self.table.sync_whole(file);
    }

    fn who(&self, context: &mut Context, header: &Header, writes: bool) -> Who {
        lock(&self.callers).who(context, header.pid, header.node, writes)
    }

    fn release(&self, handle: u64) -> Vec<FileId> {
        match lock(&self.handles).try_remove(handle as usize) {
            Some(Handle::File { buffered, direct, .. }) => [buffered].into_iter().chain(direct).collect(),
            _ => Vec::new(),
        }
    }

    fn close(&self, file: FileId) {
        // First, as its number may be given out again at once.
        let opener = lock(&self.openers).remove(&file);
        self.table.remove(file);
        if let Some((opener, descriptors)) = opener {
            lock(&self.open_files).give_back(&opener, descriptors);
        }
    }

    fn may_block(&self) -> bool {
        true
    }

    fn answer_at_once(&self, header: &Header, group: &str, operation: &Operation<'_>) -> AtOnce {
        if !self.is_in_memory(header.node, operation) {
            return AtOnce::MayBlock;
        }
        match *operation {
            // To find out whether it is here is most of the work.
            Operation::Lookup { name } => match self.entry_here(header.node, name) {
                Some(reply) => AtOnce::Done(Some(reply)),
                None => AtOnce::MayBlock,
            },
            _ if self.is_quick(header, operation) => AtOnce::Done(self.answer(header, group, operation)),
            _ => AtOnce::MayBlock,
        }
    }

    fn answer(&self, header: &Header, group: &str, operation: &Operation<'_>) -> Option<Reply> {
        match *operation {
            Operation::Forget { lookups } => self.forget([(header.node, lookups)]),
            Operation::BatchForget { pairs } => self.forget(protocol::forgotten(pairs)),
            _ => return Some(self.on_opening(header, group, operation)),
        }
        None
    }
}
