//! A disk with an NBD front: opening files and sockets, and putting away the latter.

use super::desk::{Desk, Exports};
use super::export::{self, Export, Looked, allowed, check_certificates, check_name, look};
use super::export_table::ExportTable;
use super::front::{Listener, NbdFront};
use super::tls::relay::Threads;
use super::tls::{Tls, TlsMode, TlsOptions};
use crate::bio::FileId;
use crate::counters::{Books, Counters, ExportStats};
use crate::disk::{Disk, DiskOptions};
use crate::error::{Error, ErrorKind};
use crate::fronts::Both;
use crate::peer::Allowed;
use crate::socket::{ForWhom, SocketFile, inherited, open_unix};
use crate::store::FileTable;
use crate::vhost::{self, Device};
use crate::vsock;
use rustix::net::{AddressFamily, getsockname};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

/// An address that clients connect to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Listen {
    /// A unix socket, mode 0600; 0666 if an export names the users or groups that may open it.
    Unix(PathBuf),
    /// TCP; port 0 is any that is free.
    Tcp(SocketAddr),
    /// A port for the virtual machines of this machine.
    Vsock(u32),
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
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// How many connections there may be. Default 256.
    pub connections_max: usize,
    /// How many connections one user of a unix socket, or one address of TCP, may have. Default: as many as
    /// there may be.
    pub connections_per_peer: Option<usize>,
    /// Whether TCP may be opened to other machines although TLS is not required. Clients that do not use TLS
    /// are neither encrypted nor authenticated. Default false.
    pub trust_network: bool,
    /// Whether files are served that other programs have locked. Default false.
    pub force_share: bool,
    /// Encryption. Default: none.
    pub tls: TlsOptions,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            connections_max: 256,
            connections_per_peer: None,
            trust_network: false,
            force_share: false,
            tls: TlsOptions::default(),
        }
    }
}

/// How long threads may take to encrypt and send what there is, at the end.
const ENCRYPT_MAX: Duration = Duration::from_millis(500);

/// A disk that is served. When it is dropped, what clients are waiting for is finished, within five seconds,
/// and they are hung up on.
#[derive(Debug)]
pub struct Server {
    // In this order: first no new clients, then no old ones.
    sockets: Vec<SocketFile>,
    disk: Disk,
    devices: vhost::Opened,
    /// Those that encrypt for clients.
    threads: Option<Arc<Threads>>,
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
        exports.iter().try_for_each(|export| check_certificates(export, &options.tls))?;
        let tls = Tls::new(&options.tls)?;
        let disk = disk.files(images.iter().map(|image| (image.file.to_owned(), image.read_only)));
        let rotational = disk.facts().is_rotational;
        let mut looked = images.iter().map(|i| look(i.file, i.read_only)).collect::<Result<Vec<_>, _>>()?;
        share_locks(&mut looked, &images);
        if !options.force_share {
            lock_images(&images, &looked)?;
        }
        let for_whom = if exports.iter().any(Export::names_users) { ForWhom::All } else { ForWhom::Owner };
        let is_trusted = options.trust_network || options.tls.mode == TlsMode::Require;
        let (listeners, sockets, addresses) = open_sockets(listen, is_trusted, for_whom)?;
        let (books, files) = (Books::default(), Arc::new(FileTable::default()));
        let of_devices = looked.split_off(exports.len()).into_iter().map(|looked| looked.lock);
        let counters: Vec<Arc<Counters>> = devices.iter().map(|_| Arc::default()).collect();
        let of_devices = of_devices.zip(counters.iter().cloned()).collect();
        let mut devices_ready = vhost::Prepared::open(devices, of_devices)?;
        let in_place = !disk.has_timeout();
        let (to_front, orders) = mpsc::channel();
        let is_shared = for_whom == ForWhom::All;
        let is_selective = exports.iter().any(Export::names_peers);
        let threads = tls.as_ref().map(|tls| Arc::clone(&tls.threads));
        let disk_options = disk.clone().with_table(&files);
        let disk = Disk::open_with(disk_options.clone(), |extents, pool| {
            let (of_exports, of_devices) = extents.split_at(exports.len());
            let groups: Vec<&str> = exports.iter().map(|e| e.group.as_str()).collect();
            let guests = devices_ready.front(of_devices, exports.len(), &groups, pool, in_place);
            let one = |(i, ((export, looked), allowed)): (usize, ((&Export, Looked), Allowed))| {
                let (extent, counters) = (&of_exports[i], Arc::default());
                books.add(&export.name, &counters);
                let facts = export::facts(export, &looked, extent.size, rotational);
                let place = (FileId(i as u32), extent.start);
                (facts, export::served(export, looked, place, allowed, counters))
            };
            let looked = exports.iter().zip(looked).zip(allowed(exports, is_selective));
            let table = looked.enumerate().map(one).collect();
            devices.iter().zip(&counters).for_each(|(device, counters)| books.add(&device.name, counters));
            let taken = of_devices.iter().map(|extent| (extent.start, extent.size));
            let sockets = NbdFront::new(
                ExportTable::new(table, taken, Arc::clone(&files), books.clone()),
                orders,
                listeners,
                tls,
                (options.connections_max.max(1), options.connections_per_peer.unwrap_or(usize::MAX)),
                Arc::clone(pool),
            );
            Both { sockets, guests }
        })?;
        let exports = Exports(Arc::new(Desk {
            engine: disk.shared(),
            orders: to_front,
            changes: Mutex::default(),
            disk: disk_options,
            files,
            books,
            devices: devices.iter().map(|d| (d.name.clone(), d.group.clone())).collect(),
            force_share: options.force_share,
            is_shared,
            is_selective,
            tls: options.tls.clone(),
            is_rotational: rotational,
        }));
        let devices = devices_ready.start(&disk.shared())?;
        Ok(Self { sockets, disk, devices, threads, exports, addresses })
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
        let Self { sockets, disk, devices, threads, exports, .. } = self;
        drop(sockets);
        drop(disk);
        drop(devices);
        if let Some(threads) = threads {
            threads.wait(ENCRYPT_MAX);
        }
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
    exports.iter().try_for_each(check_name)?;
    for (i, image) in images.iter().enumerate() {
        if images[..i].iter().any(|o| o.name == image.name) {
            return wrong(format!("export {}: there are two of that name", image.name));
        }
    }
    Ok(())
}

/// Exports and devices of one image have one lock: that of the one that writes, if there is one.
fn share_locks(looked: &mut [Looked], images: &[Image<'_>]) {
    for i in 0..looked.len() {
        let Some(identity) = looked[i].identity else { continue };
        let same = |&j: &usize| looked[j].identity == Some(identity);
        let all: Vec<usize> = (0..looked.len()).filter(same).collect();
        let best = all.iter().find(|&&j| !images[j].read_only).or(all.first());
        if let Some(&best) = best {
            looked[i].lock = Arc::clone(&looked[best].lock);
        }
    }
}

/// Locks each file once, however many exports and devices it has, for as long as it is open.
fn lock_images(images: &[Image<'_>], looked: &[Looked]) -> Result<(), Error> {
    for (i, (image, one)) in images.iter().zip(looked).enumerate() {
        let same = |other: &Looked| Arc::ptr_eq(&other.lock, &one.lock);
        if looked[..i].iter().any(same) {
            continue;
        }
        let writes = images.iter().zip(looked).any(|(other, file)| same(file) && !other.read_only);
        export::lock(&one.lock, image.file, writes)?;
    }
    Ok(())
}

/// Refuses an address that other machines can reach, unless TLS is required or the network is trusted.
fn check_reach(address: SocketAddr, is_trusted: bool) -> Result<(), Error> {
    if address.ip().is_loopback() || is_trusted {
        return Ok(());
    }
    let why = "can be reached from other machines, and nothing is encrypted or asks for a password";
    Err(Error::new(ErrorKind::Socket, format!("{address} {why}")))
}

/// Listeners, the sockets' files, and the addresses with the ports that were chosen.
type Places = (Vec<Listener>, Vec<SocketFile>, Vec<Listen>);

fn open_sockets(listen: &[Listen], is_trusted: bool, for_whom: ForWhom) -> Result<Places, Error> {
    let (mut listeners, mut sockets, mut addresses) = Places::default();
    for place in listen {
        let (listener, socket, address) = open_socket(place, is_trusted, for_whom)?;
        listeners.push(listener);
        sockets.extend(socket);
        addresses.push(address);
    }
    Ok((listeners, sockets, addresses))
}

fn open_socket(
    place: &Listen,
    is_trusted: bool,
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
            if family == Ok(AddressFamily::VSOCK) {
                return Ok((Listener::Vsock(socket), None, place.clone()));
            }
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
            check_reach(address, is_trusted)?;
            Ok((Listener::Tcp(listener), None, Listen::Tcp(address)))
        }
        Listen::Vsock(port) => {
            let failed =
                |e| Error::new(ErrorKind::Socket, format!("cannot listen on vsock port {port}: {e}"));
            Ok((Listener::Vsock(vsock::listen(*port).map_err(failed)?), None, place.clone()))
        }
        Listen::Tcp(address) => {
            check_reach(*address, is_trusted)?;
            let failed = |e| Error::new(ErrorKind::Socket, format!("cannot listen on {address}: {e}"));
            let listener = TcpListener::bind(address).map_err(failed)?;
            let address = listener.local_addr().map_err(failed)?;
            Ok((Listener::Tcp(listener), None, Listen::Tcp(address)))
        }
    }
}
