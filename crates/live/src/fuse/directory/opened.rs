//! The files that programs have open, and those that are opened as they are made.
//!
//! A handle has the file twice: past the page cache for what is aligned, which is what the scheduler can see,
//! and through it for the rest. What is in memory is opened once. Each open file costs its client descriptors
//! of its share (`open_files.rs`).

use super::attributes::shed;
use super::by_descriptor::{open_at, proc_path};
use super::names::set_mask;
use super::{Directory, Handle, LENDING, Other, VALID_S, lock};
use crate::bio::{Errno, FileId, Op};
use crate::fuse::front::Place;
use crate::fuse::open_files::Opener;
use crate::fuse::protocol::{self, Attr, Header, Operation, Reply, opened};
use crate::fuse::range::Range;
use crate::opening::waits;
use crate::rights::Caller;
use crate::store::is_in_memory;
use fairhead_core::units::Sector;
use rustix::fs::{OFlags, SeekFrom};
use std::ffi::OsStr;
use std::fs::{File, OpenOptions, Permissions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::sync::Arc;

/// What direct I/O needs.
const ALIGN: u64 = 4096;
/// The most callers besides the first one that an open file has numbers for.
const OTHERS_MAX: usize = 16;
/// The most descriptors of a file that a program has open: twice two.
const DESCRIPTORS_MAX: usize = 4;

impl Directory {
    /// What opens a file for a client.
    pub(super) fn on_opening(&self, header: &Header, group: &str, operation: &Operation<'_>) -> Reply {
        let opener = Opener::new(group, header.uid);
        let reply = match *operation {
            Operation::Open { flags } => self.open_node(header, header.node, &opener, flags, None),
            Operation::Create { name, flags, mode, umask } => {
                set_mask(umask);
                self.create(header, &opener, name, flags, mode)
            }
            Operation::TmpFile { flags, mode, umask } => {
                set_mask(umask);
                self.create_nameless(header, &opener, flags, mode)
            }
            Operation::FsyncDir { .. } => self.open_folder(header.node, &opener),
            _ => self.do_it(header, operation),
        };
        // The limit that is reached is not that of the program which opens it.
        reply.map_err(|e| if e.0 == libc::EMFILE { Errno(libc::ENFILE) } else { e })
    }

    /// Opens a node's file, to serve it, unless it was opened when it was made: its mode may forbid that to
    /// be done again.
    ///
    /// # Errors
    /// `ENFILE` if the client has its share of open files.
    fn open_node(
        &self,
        header: &Header,
        node: u64,
        opener: &Opener,
        flags: u32,
        made: Option<File>,
    ) -> Reply {
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
        let caller = header.caller().unwrap_or(Caller::UNKNOWN);
        // The table has a file in memory twice.
        let descriptors = if is_in_memory { 2 } else { 1 };
        let add = |file: Arc<File>| {
            lock(&self.open_files).take(opener, descriptors)?;
            let file = self.table.add_for(caller, file);
            lock(&self.openers).insert(file, (opener.clone(), descriptors));
            Ok::<_, Errno>(file)
        };
        let buffered = add(Arc::clone(&file))?;
        // The ring takes files in memory for slow unless told that they are not.
        let more = if is_in_memory { libc::O_DIRECT | libc::O_NONBLOCK } else { libc::O_DIRECT };
        let direct = if is_at_once { None } else { open(more).ok() };
        let direct = direct.map(|f| add(Arc::new(f))).transpose();
        let direct = direct.inspect_err(|_| self.close_file(buffered))?;
        let start = {
            let mut nodes = lock(&self.nodes);
            nodes.opened(node, &file);
            nodes.region(node, size)
        };
        let is_direct = flags & libc::O_DIRECT != 0;
        let (opener, others) = (caller, Vec::new());
        let file = Handle::File { file, buffered, direct, start, is_direct, size, opener, others };
        let handle = lock(&self.handles).insert(file);
        // Otherwise a program that waits for direct I/O could not be interrupted.
        let how = if is_direct { opened::DIRECT_IO } else { 0 };
        Ok(protocol::opened_reply(handle as u64, how | opened::PARALLEL_DIRECT_WRITES))
    }

    /// Opens a folder to flush it. The answer is its number in the table, for the front.
    fn open_folder(&self, node: u64, opener: &Opener) -> Reply {
        let folder = File::open(proc_path(&*self.node(node)?))?;
        lock(&self.open_files).take(opener, 1)?;
        let file = self.table.add(folder);
        self.table.sync_whole(file);
        lock(&self.openers).insert(file, (opener.clone(), 1));
        Ok(file.0.to_ne_bytes().to_vec())
    }

    /// How files are opened so that the ring does not take them for slow, if they are in memory.
    const fn at_once(&self) -> OFlags {
        if self.in_memory.is_some() { OFlags::NONBLOCK } else { OFlags::empty() }
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
                let how = how | OFlags::NONBLOCK | OFlags::NOCTTY;
                let file = open_at(&folder, name, how, mode & !LENDING).map_err(looked_up_again)?;
                // A FIFO or device is the kernel's to open, once it has looked the name up again.
                if !file.metadata()?.is_file() {
                    return Err(Errno(libc::ESTALE));
                }
                if self.at_once().is_empty() {
                    waits(&file)?;
                }
                file
            }
            made => {
                let file = made?;
                self.own(header, name, mode)?;
                file
            }
        };
        let (node, attr) = self.look_up(header.node, name)?;
        self.created(header, (node, attr), opener, flags, file)
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
        self.created(header, (node, attr), opener, flags, file)
    }

    /// The answer to who made a file and has it open.
    fn created(
        &self,
        header: &Header,
        (node, attr): (u64, Attr),
        opener: &Opener,
        flags: u32,
        file: File,
    ) -> Reply {
        let mut out = Vec::with_capacity(144);
        attr.entry(&mut out, node, VALID_S);
        match self.open_node(header, node, opener, flags, Some(file)) {
            Ok(opened) => out.extend(opened),
            Err(errno) => {
                self.forget([(node, 1)]);
                return Err(errno);
            }
        }
        Ok(out)
    }

    pub(super) fn handle_file(&self, handle: u64) -> Result<Arc<File>, Errno> {
        match lock(&self.handles).get(handle as usize) {
            Some(Handle::File { file, .. }) => Ok(Arc::clone(file)),
            _ => Err(Errno(libc::EBADF)),
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

    /// What is done to open files, and is no reading or writing of the caller's data.
    pub(super) fn on_file(&self, operation: &Operation<'_>) -> Reply {
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

    /// Where the bytes of a range are for the disk; `None` if there is nothing to do.
    pub(super) fn place_of(&self, header: &Header, range: &Range) -> Result<Option<Place>, Errno> {
        let (file, buffered, direct, start, is_direct, size) =
            match lock(&self.handles).get(range.handle as usize) {
                Some(Handle::File { file, buffered, direct, start, is_direct, size, .. }) => {
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
        let (buffered, direct) = match header.caller() {
            Some(caller) => self.numbers_for(caller, range.handle)?,
            None => (buffered, direct),
        };
        let direct = direct.filter(|_| is_aligned && u64::from(range.len).is_multiple_of(ALIGN));
        let (file, len) = (direct.unwrap_or(buffered), range.len);
        let place = Place { file, sector, len, answered: len, fua: range.fua && is_direct, has_shed };
        Ok((range.len > 0).then_some(place))
    }

    /// The numbers of an open file for a caller that writes to it, through the page cache and past it.
    fn numbers_for(&self, caller: Caller, handle: u64) -> Result<(FileId, Option<FileId>), Errno> {
        let mut handles = lock(&self.handles);
        let Some(Handle::File { buffered, direct, opener, others, .. }) = handles.get_mut(handle as usize)
        else {
            return Err(Errno(libc::EBADF));
        };
        if caller == *opener {
            return Ok((*buffered, *direct));
        }
        let known = others.iter().find(|other| other.caller == caller);
        // With too many callers, the next ones have the rights of one before them, but not of root.
        let is_full = others.len() >= OTHERS_MAX;
        let known = known.or_else(|| others.iter().find(|other| is_full && other.caller.uid != 0));
        if let Some(other) = known {
            return Ok((other.buffered, other.direct));
        }
        let again = |file| self.table.again_for(caller, file);
        let other = Other { caller, buffered: again(*buffered), direct: direct.map(again) };
        others.push(other);
        Ok((other.buffered, other.direct))
    }

    /// The number in the table that an open file has for the page cache.
    pub(super) fn table_file(&self, handle: u64) -> Result<FileId, Errno> {
        match lock(&self.handles).get(handle as usize) {
            Some(Handle::File { buffered, .. }) => Ok(*buffered),
            _ => Err(Errno(libc::EBADF)),
        }
    }

    /// A handle is used no more. Returns the files of the table that it had.
    pub(super) fn let_go(&self, handle: u64) -> Vec<FileId> {
        match lock(&self.handles).try_remove(handle as usize) {
            Some(Handle::File { buffered, direct, others, .. }) => {
                let others = others.iter().flat_map(|other| [Some(other.buffered), other.direct]);
                [Some(buffered), direct].into_iter().chain(others).flatten().collect()
            }
            _ => Vec::new(),
        }
    }

    /// A file of the table is used no more.
    pub(super) fn close_file(&self, file: FileId) {
        // First, as its number may be given out again at once.
        let opener = lock(&self.openers).remove(&file);
        self.table.remove(file);
        if let Some((opener, descriptors)) = opener {
            lock(&self.open_files).give_back(&opener, descriptors);
        }
    }
}

/// What a FIFO without a reader or a socket says, which is not for this process to open.
const fn looked_up_again(errno: Errno) -> Errno {
    if errno.0 == libc::ENXIO { Errno(libc::ESTALE) } else { errno }
}
