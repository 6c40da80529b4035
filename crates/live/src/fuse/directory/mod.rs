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
//! | file | what it has |
//! |---|---|
//! | `look_up.rs` | which file a node or a name is |
//! | `names.rs` | names that are made, changed and removed |
//! | `opened.rs` | files that programs have open, and where their bytes are for the disk |
//! | `attributes.rs`, `listing.rs` | what a file is; what is in a folder |
//! | `quick.rs` | what waits for nothing |
//!
//! What it does not do: locks, which the kernel keeps among the callers of the mount itself.

mod attributes;
mod by_descriptor;
mod listing;
mod look_up;
mod names;
mod opened;
mod quick;

use super::callers::Callers;
use super::front::{AtOnce, Place, Tree, Who};
use super::inode::Inodes;
use super::nodes::{Nodes, Way};
use super::open_files::{OpenFiles, Opener};
use super::protocol::{self, Attr, DATA_MAX, Header, Operation, Reply, Terms, flag};
use super::range::Range;
use super::source::Source;
use super::space::SpaceWatch;
use crate::bio::{Errno, FileId};
use crate::engine::Context;
use crate::rights::Caller;
use crate::store::{FileTable, is_in_memory};
use fairhead_core::units::Sector;
use listing::Entry;
use look_up::handle_way;
use rustix::process::{Resource, getrlimit};
use slab::Slab;
use std::collections::HashMap;
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};

/// How long the kernel may remember names and attributes, in seconds: changes below the mount are seen after
/// that.
const VALID_S: u64 = 1;
/// Set-user-ID and set-group-ID.
const LENDING: u32 = 0o6000;
/// The most requests that may be here while no caller in the kernel waits for them. The waiting requests of a
/// limited group must not keep those of others from coming.
const BACKGROUND_MAX: u16 = 2048;
/// Descriptors of nodes beyond this number are not worth the kernel's memory.
const NODE_DESCRIPTORS_MAX: u64 = 32 << 10;

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
        /// The caller that opened it.
        opener: Caller,
        /// Numbers of the file for the other callers that write to it.
        others: Vec<Other>,
    },
    Folder(Arc<Vec<Entry>>),
}

/// A caller that writes to a file which another one has opened, and the numbers that the file has for it.
#[derive(Clone, Copy, Debug)]
struct Other {
    caller: Caller,
    buffered: FileId,
    direct: Option<FileId>,
}

/// By the kernel's number: a file on each mount that file handles are opened through; `None` where they
/// cannot be.
type Mounts = HashMap<i32, Option<Weak<File>>>;

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Directory {
    table: Arc<FileTable>,
    nodes: Arc<Mutex<Nodes>>,
    space: SpaceWatch,
    handles: Mutex<Slab<Handle>>,
    callers: Mutex<Callers>,
    open_files: Mutex<OpenFiles>,
    /// By file of the table: the client that has it open, and its descriptors.
    openers: Mutex<HashMap<FileId, (Opener, usize)>>,
    mounts: Mutex<Mounts>,
    /// That of the folder itself.
    #[allow(dead_code, reason = "it keeps the mount among those that are known")]
    root_mount: Option<Arc<File>>,
    /// Held while names that lead to nodes change, and while they are followed.
    names: RwLock<()>,
    /// The device of the folder, if that is in memory.
    in_memory: Option<u64>,
    inodes: Inodes,
    /// Whether names in one folder may be those of files on several devices.
    is_mixed: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Directory {
    pub(super) fn new(source: Source) -> io::Result<Self> {
        let Source { root, is_mixed, .. } = source;
        let mounts = Mutex::default();
        let root_mount = match handle_way(&mounts, &root) {
            Some(Way::Handle { mount, .. }) => Some(mount),
            _ => None,
        };
        let device = root.metadata()?.dev();
        let in_memory = is_in_memory(&root).then_some(device);
        // A quarter is for nodes, a half for what programs have open, the rest for everything else.
        let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let for_nodes = (descriptors / 4).min(NODE_DESCRIPTORS_MAX) as usize;
        let same = root.try_clone()?;
        let nodes = Arc::new(Mutex::new(Nodes::new(root, for_nodes)?));
        Ok(Self {
            table: Arc::default(),
            space: SpaceWatch::start(same, Arc::clone(&nodes))?,
            nodes,
            handles: Mutex::default(),
            callers: Mutex::default(),
            open_files: Mutex::new(OpenFiles::new((descriptors / 2) as usize)),
            openers: Mutex::default(),
            mounts,
            root_mount,
            names: RwLock::default(),
            in_memory,
            inodes: Inodes::new(device),
            is_mixed,
        })
    }

    pub(crate) fn table(&self) -> Arc<FileTable> {
        Arc::clone(&self.table)
    }

    /// What the kernel shows of a file.
    fn attr(&self, meta: &Metadata) -> Attr {
        Attr { inode: self.inodes.of(meta), ..Attr::of(meta) }
    }

    fn do_it(&self, header: &Header, operation: &Operation<'_>) -> Reply {
        let node = header.node;
        match *operation {
            Operation::GetAttr => Ok(self.attr(&self.node(node)?.metadata()?).reply(VALID_S)),
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

    fn place(&self, header: &Header, range: &Range) -> Result<Option<Place>, Errno> {
        self.place_of(header, range)
    }

    fn file(&self, _: u64, handle: u64) -> Result<FileId, Errno> {
        self.table_file(handle)
    }

    fn no_space(&self) {
        self.space.is_full();
    }

    fn sync_whole(&self, file: FileId) {
        self.table.sync_whole(file);
    }

    fn who(&self, context: &mut Context, header: &Header, writes: bool) -> Who {
        lock(&self.callers).who(context, header.pid, header.node, writes)
    }

    fn release(&self, handle: u64) -> Vec<FileId> {
        self.let_go(handle)
    }

    fn close(&self, file: FileId) {
        self.close_file(file);
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
            _ => {
                // The right to what takes space is the caller's.
                let caller = header.caller().filter(|_| operation.takes_space());
                let _acting = match caller.map(Caller::act).transpose() {
                    Ok(acting) => acting,
                    Err(e) => return Some(Err(e.into())),
                };
                let reply = self.on_opening(header, group, operation);
                if reply.as_ref().is_err_and(|e| e.is_no_space()) {
                    self.space.is_full();
                }
                return Some(reply);
            }
        }
        None
    }
}
