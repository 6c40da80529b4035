//! A disk with an NBD front: opening files and sockets, and putting away the latter.

use super::front::{Listener, NbdFront, Served};
use super::image_lock::{self, Conflict};
use super::peer::Allowed;
use super::session::Facts;
use super::stats::{Counters, ExportStats, Exports};
use crate::bio::FileId;
use crate::disk::{Disk, DiskOptions};
use crate::error::{Error, ErrorKind};
use crate::fronts::Both;
use crate::mapped::Map;
use crate::socket::{ForWhom, SocketFile, inherited, open_unix};
use crate::store::is_in_memory;
use crate::vhost::{self, Device};
use fairhead_core::units::IoPrio;
use rustix::net::{AddressFamily, getsockname};
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A file that clients may use.
#[derive(Clone, Debug)]
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
            connections_max: None,
        }
    }
}

impl Export {
    fn names_peers(&self) -> bool {
        !(self.allow_uids.is_empty() && self.allow_gids.is_empty())
    }
}

/// The clients that may open each export. A socket that only its owner can open needs no list.
fn allowed(exports: &[Export]) -> Vec<Allowed> {
    let is_shared = exports.iter().any(Export::names_peers);
    let own = vec![0, rustix::process::geteuid().as_raw()];
    let of = |e: &Export| match e.names_peers() {
        true => Allowed::Some { users: e.allow_uids.clone(), groups: e.allow_gids.clone() },
        false if is_shared => Allowed::Some { users: own.clone(), groups: Vec::new() },
        false => Allowed::All,
    };
    exports.iter().map(of).collect()
}

/// An address that clients connect to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Listen {
    /// A unix socket, mode 0600; 0666 if an export names the users or groups that may open it.
    Unix(PathBuf),
    /// TCP; port 0 is any that is free.
    Tcp(SocketAddr),
    /// A socket that a service manager has opened and passed to the process as this descriptor; see
    /// [`Listen::inherited`].
    Descriptor(u32),
}

impl Listen {
    /// The sockets that a service manager has opened for this process, as systemd does for a unit with a
    /// `.socket` file.
    //= man7 sd_listen_fds.3 NOTES
    #[must_use]
    pub fn inherited() -> Vec<Self> {
        const FIRST: u32 = 3;
        let number = |name: &str| std::env::var(name).ok()?.parse::<u32>().ok();
        let is_ours = number("LISTEN_PID") == Some(std::process::id());
        let count = number("LISTEN_FDS").filter(|_| is_ours).unwrap_or(0);
        (FIRST..FIRST.saturating_add(count)).map(Self::Descriptor).collect()
    }
}

/// Options of a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// How many connections there may be. Default 256.
    pub connections_max: usize,
    /// How many connections one user of a unix socket, or one address of TCP, may have. Default: as many as
    /// there may be.
    pub connections_per_peer: Option<usize>,
    /// Whether TCP may be opened to other machines. Nothing is encrypted, and clients are not authenticated.
    /// Default false.
    pub trust_network: bool,
    /// Whether files are served that other programs have locked. Default false.
    pub force_share: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { connections_max: 256, connections_per_peer: None, trust_network: false, force_share: false }
    }
}

/// A name of the protocol's has 4096 bytes at most.
const NAME_MAX: usize = 4096;

/// A disk that is served. When it is dropped, what clients are waiting for is finished, within five seconds,
/// and they are hung up on.
#[derive(Debug)]
pub struct Server {
    // In this order: first no new clients, then no old ones.
    sockets: Vec<SocketFile>,
    disk: Disk,
    devices: vhost::Opened,
    exports: Exports,
    addresses: Vec<Listen>,
}

impl Server {
    /// Opens the exports' files and serves them. The files of `disk`, if any, are not used: they are the
    /// exports'.
    ///
    /// # Errors
    /// If a name is used twice, a file or socket cannot be had, or as [`Disk::open`].
    pub fn start(
        disk: DiskOptions,
        exports: &[Export],
        listen: &[Listen],
        options: Options,
    ) -> Result<Self, Error> {
        Self::start_with_devices(disk, exports, listen, &[], options)
    }

    /// Serves exports to clients of sockets, and devices to virtual machines, all from one disk.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn start_with_devices(
        disk: DiskOptions,
        exports: &[Export],
        listen: &[Listen],
        devices: &[Device],
        options: Options,
    ) -> Result<Self, Error> {
        let images = images(exports, devices);
        check_names(exports, &images)?;
        let all_read_only = images.iter().all(|image| image.read_only);
        let disk = disk.files(images.iter().map(|image| image.file.to_owned())).read_only(all_read_only);
        let rotational = disk.facts().is_rotational;
        let mut looked = images.iter().map(look).collect::<Result<Vec<_>, _>>()?;
        if !options.force_share {
            lock_images(&images, &looked)?;
        }
        let for_whom = if exports.iter().any(Export::names_peers) { ForWhom::All } else { ForWhom::Owner };
        let (mut listeners, mut sockets, mut addresses) = (Vec::new(), Vec::new(), Vec::new());
        for place in listen {
            let (listener, socket, address) = open_socket(place, options.trust_network, for_whom)?;
            listeners.push(listener);
            sockets.extend(socket);
            addresses.push(address);
        }
        let counters: Vec<Arc<Counters>> = images.iter().map(|_| Arc::default()).collect();
        let of_devices = looked.drain(exports.len()..).map(|looked| looked.file);
        let of_devices = of_devices.zip(counters[exports.len()..].iter().cloned()).collect();
        let mut devices_ready = vhost::Prepared::open(devices, of_devices)?;
        let in_place = !disk.has_timeout();
        let disk = Disk::open_with(disk, |extents, pool| {
            let (extents, of_devices) = extents.split_at(exports.len());
            let groups: Vec<&str> = exports.iter().map(|e| e.group.as_str()).collect();
            let guests = devices_ready.front(of_devices, exports.len(), &groups, pool, in_place);
            let facts = exports.iter().zip(&looked).zip(extents).map(|((export, looked), extent)| Facts {
                name: export.name.clone(),
                description: export.description.clone(),
                size: extent.size,
                // What direct I/O does not take goes through the page cache.
                block_size_min: 1,
                read_only: export.read_only,
                rotational,
                fast_zero: looked.punches,
            });
            let facts = facts.collect();
            let served = exports
                .iter()
                .zip(looked.drain(..))
                .zip(extents)
                .zip(&counters)
                .zip(allowed(exports))
                .enumerate()
                .map(|(i, ((((export, looked), extent), counters), allowed))| Served {
                    file: FileId(i as u32),
                    start: extent.start,
                    group: export.group.clone(),
                    prio: export.prio,
                    has_pages: is_in_memory(&looked.file),
                    map: is_in_memory(&looked.file).then(|| Map::new(&looked.file)).flatten(),
                    _lock: looked.file,
                    allowed,
                    connections_max: export.connections_max.unwrap_or(usize::MAX),
                    counters: Arc::clone(counters),
                });
            let sockets = NbdFront::new(
                facts,
                served.collect(),
                listeners,
                (options.connections_max.max(1), options.connections_per_peer.unwrap_or(usize::MAX)),
                Arc::clone(pool),
            );
            Both { sockets, guests }
        })?;
        let exports = Exports(images.iter().map(|image| image.name.to_owned()).zip(counters).collect());
        let devices = devices_ready.start(&disk.shared())?;
        Ok(Self { sockets, disk, devices, exports, addresses })
    }

    /// The disk: to change groups and the scheduler, under load.
    #[must_use]
    pub const fn disk(&self) -> &Disk {
        &self.disk
    }

    /// Returns the addresses, with the ports that were chosen.
    #[must_use]
    pub fn addresses(&self) -> &[Listen] {
        &self.addresses
    }

    /// Returns the name and the statistics of each export, in order.
    #[must_use]
    pub fn stats(&self) -> Vec<(String, ExportStats)> {
        self.exports.look()
    }

    /// To look at that from elsewhere.
    #[must_use]
    pub fn exports(&self) -> Exports {
        self.exports.clone()
    }

    /// Completes what is in flight and stops. Returns the name and the statistics of each export.
    #[must_use]
    pub fn stop(self) -> Vec<(String, ExportStats)> {
        let Self { sockets, disk, devices, exports, .. } = self;
        drop(sockets);
        drop(disk);
        drop(devices);
        exports.look()
    }
}

/// A file that is served, in whatever way.
#[derive(Clone, Copy, Debug)]
struct Image<'a> {
    name: &'a str,
    file: &'a Path,
    read_only: bool,
}

/// The files in the order of their numbers: those of exports, then those of devices.
fn images<'a>(exports: &'a [Export], devices: &'a [Device]) -> Vec<Image<'a>> {
    let of_exports = exports.iter().map(|e| Image { name: &e.name, file: &e.file, read_only: e.read_only });
    let of_devices = devices.iter().map(|d| Image { name: &d.name, file: &d.file, read_only: d.read_only });
    of_exports.chain(of_devices).collect()
}

fn check_names(exports: &[Export], images: &[Image<'_>]) -> Result<(), Error> {
    let wrong = |message: String| Err(Error::new(ErrorKind::Setting, message));
    if images.is_empty() {
        return wrong("there is nothing to export".to_owned());
    }
    for e in exports {
        if e.name.len() > NAME_MAX || e.description.len() > NAME_MAX {
            return wrong(format!(
                "export {:.20}…: names and descriptions have {NAME_MAX} bytes at most",
                e.name
            ));
        }
    }
    for (i, image) in images.iter().enumerate() {
        if images[..i].iter().any(|o| o.name == image.name) {
            return wrong(format!("export {}: there are two of that name", image.name));
        }
    }
    Ok(())
}

/// What is found out about a file before it is served.
#[derive(Debug)]
struct Looked {
    file: File,
    punches: bool,
}

fn look(image: &Image<'_>) -> Result<Looked, Error> {
    let failed = |e: io::Error| Error::new(ErrorKind::File, format!("{}: {e}", image.file.display()));
    let file = OpenOptions::new().read(true).write(!image.read_only).open(image.file).map_err(failed)?;
    Ok(Looked { punches: !image.read_only && punches(&file), file })
}

/// Locks each file once, however many exports and devices it has, for as long as it is open.
fn lock_images(images: &[Image<'_>], looked: &[Looked]) -> Result<(), Error> {
    let failed = |path: &Path, e: io::Error| Error::new(ErrorKind::File, format!("{}: {e}", path.display()));
    let same = |a: &Metadata, b: &Metadata| (a.dev(), a.ino()) == (b.dev(), b.ino());
    let files = images.iter().zip(looked).map(|(i, l)| l.file.metadata().map_err(|why| failed(i.file, why)));
    let files = files.collect::<Result<Vec<_>, _>>()?;
    for (i, (image, looked)) in images.iter().zip(looked).enumerate() {
        if files[..i].iter().any(|earlier| same(earlier, &files[i])) {
            continue;
        }
        let writes = images.iter().zip(&files).any(|(o, file)| same(file, &files[i]) && !o.read_only);
        let locked = image_lock::lock(&looked.file, writes).map_err(|e| failed(image.file, e))?;
        let why = match locked {
            Ok(()) => continue,
            Err(Conflict::IsWritten) => "another program writes it",
            Err(Conflict::IsProtected) => "another program uses it and forbids others to write",
        };
        return Err(Error::new(ErrorKind::Locked, format!("{}: {why}", image.file.display())));
    }
    Ok(())
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

/// Refuses an address that other machines can reach, unless the network is trusted.
fn check_reach(address: SocketAddr, trust_network: bool) -> Result<(), Error> {
    if address.ip().is_loopback() || trust_network {
        return Ok(());
    }
    let why = "can be reached from other machines, and nothing is encrypted or asks for a password";
    Err(Error::new(ErrorKind::Socket, format!("{address} {why}")))
}

fn open_socket(
    place: &Listen,
    trust_network: bool,
    for_whom: ForWhom,
) -> Result<(Listener, Option<SocketFile>, Listen), Error> {
    match place {
        Listen::Unix(path) => {
            let (listener, file) = open_unix(path, for_whom)?;
            Ok((Listener::Unix(listener), Some(file), place.clone()))
        }
        Listen::Descriptor(number) => {
            let socket = inherited(*number)?;
            let family = getsockname(&socket).map(|name| name.address_family());
            if family == Ok(AddressFamily::UNIX) {
                let listener = UnixListener::from(socket);
                let address = listener.local_addr().ok();
                let path = address.and_then(|address| address.as_pathname().map(Path::to_owned));
                let place = path.map_or_else(|| place.clone(), Listen::Unix);
                return Ok((Listener::Unix(listener), None, place));
            }
            let listener = TcpListener::from(socket);
            let failed = |e| Error::new(ErrorKind::Socket, format!("descriptor {number}: {e}"));
            let address = listener.local_addr().map_err(failed)?;
            check_reach(address, trust_network)?;
            Ok((Listener::Tcp(listener), None, Listen::Tcp(address)))
        }
        Listen::Tcp(address) => {
            check_reach(*address, trust_network)?;
            let failed = |e| Error::new(ErrorKind::Socket, format!("cannot listen on {address}: {e}"));
            let listener = TcpListener::bind(address).map_err(failed)?;
            let address = listener.local_addr().map_err(failed)?;
            Ok((Listener::Tcp(listener), None, Listen::Tcp(address)))
        }
    }
}
