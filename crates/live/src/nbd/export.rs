//! An export as it is asked for, and what has to be found out about its file before it is served: opening,
//! checking and locking it, at the start and later.

use super::export_table::Served;
use super::image_lock::{self, Conflict};
use super::session::Facts;
use super::tls::{TlsMode, TlsOptions};
use crate::bio::FileId;
use crate::counters::Counters;
use crate::error::{Error, ErrorKind};
use crate::mapped::Map;
use crate::opening::open_blocks;
use crate::peer::Allowed;
use crate::store::{Identity, identity, is_in_memory};
use fairhead_core::units::{IoPrio, Sector};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf, absolute};
use std::sync::Arc;

/// A name of the protocol's has 4096 bytes at most.
const NAME_MAX: usize = 4096;

/// A file that clients may use.
#[derive(Clone, PartialEq, Debug)]
pub struct Export {
    /// The export's name for clients.
    pub name: String,
    /// The file or block device.
    pub file: PathBuf,
    /// The group on whose account it is used.
    pub group: String,
    /// The class and level of its requests within the group.
    pub prio: IoPrio,
    /// Whether writes are refused.
    pub read_only: bool,
    /// A description for users.
    pub description: String,
    /// The users that may open it over a unix socket. Default: none is named, here and in `allow_gids`; then
    /// every client may, or, if another export names some, only the user of the server and root.
    pub allow_uids: Vec<u32>,
    /// The groups whose users may open it, too.
    pub allow_gids: Vec<u32>,
    /// The clients with TLS that may open it: names in their certificates, which have to be verified.
    pub allow_names: Vec<String>,
    /// How many connections it may have. Default: as many as the server.
    pub connections_max: Option<usize>,
}

impl Export {
    /// An export in a group of its own, which has its name.
    #[must_use]
    pub fn new(name: impl Into<String>, file: impl Into<PathBuf>) -> Self {
        let name = name.into();
        Self {
            group: name.clone(),
            name,
            file: file.into(),
            prio: IoPrio::default(),
            read_only: false,
            description: String::new(),
            allow_uids: Vec::new(),
            allow_gids: Vec::new(),
            allow_names: Vec::new(),
            connections_max: None,
        }
    }
}

impl Export {
    pub(super) const fn names_users(&self) -> bool {
        !(self.allow_uids.is_empty() && self.allow_gids.is_empty())
    }

    pub(super) const fn names_peers(&self) -> bool {
        self.names_users() || !self.allow_names.is_empty()
    }
}

/// The clients that may open each export. A socket that only its owner can open needs no list.
pub(super) fn allowed(exports: &[Export], is_selective: bool) -> Vec<Allowed> {
    let own = vec![0, rustix::process::geteuid().as_raw()];
    let of = |e: &Export| match e.names_peers() {
        true => Allowed::Some {
            users: e.allow_uids.clone(),
            groups: e.allow_gids.clone(),
            names: e.allow_names.clone(),
        },
        false if is_selective => Allowed::Some { users: own.clone(), groups: Vec::new(), names: Vec::new() },
        false => Allowed::All,
    };
    exports.iter().map(of).collect()
}

/// Names in certificates mean nothing if these are not verified.
pub(super) fn check_certificates(export: &Export, tls: &TlsOptions) -> Result<(), Error> {
    if export.allow_names.is_empty() || tls.mode != TlsMode::Off && tls.verify_peer {
        return Ok(());
    }
    let why =
        format!("export {}: it names clients by their certificates, which are not verified", export.name);
    Err(Error::new(ErrorKind::Setting, why))
}

pub(super) fn check_name(export: &Export) -> Result<(), Error> {
    if export.name.len() <= NAME_MAX && export.description.len() <= NAME_MAX {
        return Ok(());
    }
    let why = format!("export {:.20}…: names and descriptions have {NAME_MAX} bytes at most", export.name);
    Err(Error::new(ErrorKind::Setting, why))
}

/// What is found out about a file before it is served.
#[derive(Debug)]
pub(super) struct Looked {
    /// The image, to be locked; the lock holds as long as this is open.
    pub(super) lock: Arc<File>,
    pub(super) identity: Option<Identity>,
    pub(super) punches: bool,
}

pub(super) fn look(path: &Path, read_only: bool) -> Result<Looked, Error> {
    let failed = |e: io::Error| Error::new(ErrorKind::File, format!("{}: {e}", path.display()));
    let file = open_blocks(path, !read_only, 0).map_err(failed)?;
    Ok(Looked { punches: !read_only && punches(&file), identity: identity(&file), lock: Arc::new(file) })
}

/// Whether the file system can punch holes. Behind the end of a file that changes nothing.
fn punches(file: &File) -> bool {
    let Ok(len) = file.metadata().map(|m| m.len().next_multiple_of(4096)) else { return false };
    let Ok(at) = i64::try_from(len) else { return false };
    let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    // Of a block device only what is there can be punched.
    // SAFETY: it names no memory.
    file.metadata().is_ok_and(|m| m.is_file())
        && unsafe { libc::fallocate(file.as_raw_fd(), mode, at, 4096) } == 0
}

/// Locks an image.
pub(super) fn lock(file: &File, path: &Path, writes: bool) -> Result<(), Error> {
    let failed = |e: io::Error| Error::new(ErrorKind::File, format!("{}: {e}", path.display()));
    let why = match image_lock::lock(file, writes).map_err(failed)? {
        Ok(()) => return Ok(()),
        Err(Conflict::IsWritten) => "another program writes it",
        Err(Conflict::IsProtected) => "another program uses it and forbids others to write",
    };
    Err(Error::new(ErrorKind::Locked, format!("{}: {why}", path.display())))
}

/// What clients learn of an export.
pub(super) fn facts(export: &Export, looked: &Looked, size: u64, rotational: bool) -> Facts {
    Facts {
        name: export.name.clone(),
        description: export.description.clone(),
        size,
        write_end: size,
        // What direct I/O does not take goes through the page cache.
        block_size_min: 1,
        read_only: export.read_only,
        rotational,
        fast_zero: looked.punches,
    }
}

/// What the front needs of an export.
pub(super) fn served(
    export: &Export,
    looked: Looked,
    (file, start): (FileId, Sector),
    allowed: Allowed,
    counters: Arc<Counters>,
) -> Served {
    let has_pages = is_in_memory(&looked.lock);
    Served {
        file,
        path: absolute(&export.file).unwrap_or_else(|_| export.file.clone()),
        identity: looked.identity,
        start,
        group: export.group.clone(),
        prio: export.prio,
        has_pages,
        map: has_pages.then(|| Map::new(&looked.lock)).flatten(),
        lock: looked.lock,
        allowed,
        connections_max: export.connections_max.unwrap_or(usize::MAX),
        counters,
    }
}
