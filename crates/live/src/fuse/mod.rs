//! The fronts that look like files: the kernel's FUSE on one side, the engine on the other.
//!
//! ```text
//!   program ─read(2)─► kernel ─/dev/fuse─► FuseFront ─bio─► RequestQueue ─► store, model
//!                             ◄─one write─           ◄answer─
//! ```
//!
//! [`Mount::emulate`] shows one file that is as slow as a disk of another time.
//!
//! **Why a protocol layer of our own.** A scheduler holds requests, so a caller that is killed while its
//! request waits has to be let go by an answer to FUSE's INTERRUPT, or it stays unkillable until the disk
//! gets round to it. Of the crates there are, by their sources: fuser 0.18 answers INTERRUPT with ENOSYS;
//! fuse-backend-rs 0.14 has an empty function for it, and its replies are return values, so that each waiting
//! request pins a thread; fuse3 0.10 delivers it, into a tokio or async-io runtime of its own with a task for
//! each request; polyfuse 0.5.1 delivers it and replies from any thread, but reads by blocking calls into
//! memory that is not aligned and brings tracing and zerocopy along. None lets the engine's own thread read
//! and reply, where a hand-over between threads costs half of the operations per second that there can be,
//! and none puts a write's data where direct I/O can take them. What is needed of the protocol are 400 lines
//! without unsafe code.

mod callers;
mod descriptors;
mod directory;
mod entry;
mod file_handle;
mod from_bytes;
mod front;
mod in_pieces;
mod incoming;
mod inode;
mod mountpoint;
mod name_threads;
mod nodes;
mod one_file;
mod open_files;
mod protocol;
mod queues;
mod range;
mod shares;
mod source;
mod space;
mod way;

use crate::disk::{Disk, DiskOptions};
use crate::emulation::Lateness;
use crate::error::{Error, ErrorKind};
use crate::opening::open_blocks;
use crate::request_queue::Settings;
use directory::Directory;
use fairhead_device::{Device, DeviceParams};
pub use from_bytes::serve_bytes;
use front::{Channel, FuseFront, Tree};
use mountpoint::Mountpoint;
use one_file::OneFile;
use protocol::{DATA_MAX, opcode};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use source::Source;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::available_parallelism;
use std::time::Duration;
pub use way::Way;

/// The operations of the kernel's that are known, by name: what tests go through.
pub const OPCODES: &[(&str, u32)] = opcode::ALL;

/// The most bios and bytes of one mount that may wait; while more do, nothing is read from the kernel,
/// interrupts included. The kernel lets through fewer than that where no caller waits, so only many threads
/// reach this limit.
const BIOS_MAX: u32 = 1024;
const BYTES_MAX: u64 = 256 << 20;

/// A mounted file system. When it is dropped, it is unmounted; programs that still use it get an error.
#[derive(Debug)]
pub struct Mount {
    disk: Disk,
    channel: Arc<Channel>,
    point: Mountpoint,
    is_unmounted: Arc<AtomicBool>,
    ended: Mutex<mpsc::Receiver<()>>,
}

/// Takes a mount away, from any thread.
#[derive(Clone, Debug)]
pub struct Unmount {
    path: PathBuf,
    /// Whether that was done. What is mounted at the path afterwards is another mount.
    is_done: Arc<AtomicBool>,
}

impl Unmount {
    /// Unmounts it: it is not visible any more, and [`Mount::wait`] ends as soon as no program has anything
    /// open there.
    ///
    /// # Errors
    /// If it is not mounted, or may not be taken away.
    pub fn unmount(&self) -> io::Result<()> {
        if self.is_done.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        let done = Mountpoint::unmount(&self.path);
        if done.is_err() {
            self.is_done.store(false, Ordering::Release);
        }
        done
    }
}

impl Mount {
    /// A file named `disk` in the folder `at`: the bytes of `file`, as slow as the disk of these parameters.
    /// Requests reach the model in the order in which they come, as many at a time as it takes, so that its
    /// user schedules: a kernel, through a loop device.
    ///
    /// # Errors
    /// If the file cannot be opened or is empty, `at` cannot be mounted on, or the engine does not start.
    pub fn emulate(params: DeviceParams, file: &Path, at: &Path) -> Result<Self, Error> {
        let failed = |what: String| Error::new(ErrorKind::File, format!("{}: {what}", file.display()));
        let meta = file.metadata().map_err(|e| failed(e.to_string()))?;
        let size = if meta.file_type().is_block_device() {
            open_blocks(file, false, 0)
                .and_then(|mut f| io::Seek::seek(&mut f, io::SeekFrom::End(0)))
                .map_err(|e| failed(e.to_string()))?
        } else {
            meta.len()
        };
        if size == 0 {
            return Err(failed("empty; its size is the disk's: truncate -s 10G makes it 10 GiB".to_owned()));
        }
        let model = Device::new(&params).map_err(|e| Error::new(ErrorKind::Setting, e.to_string()))?;
        let settings =
            Settings { client_bios_max: BIOS_MAX, client_bytes_max: BYTES_MAX, ..Settings::default() };
        let mut options =
            Self::of_model(params, model.facts().queue_depth).scheduler("noop")?.settings(settings);
        options.table = Some(OneFile::table(file).map_err(|e| failed(e.to_string()))?.into());
        Self::show(options, OneFile::new(size, &meta), file, at)
    }

    /// Says how many requests a disk of this model takes at a time, and whether it has a head.
    #[must_use]
    pub fn about_model(params: &DeviceParams) -> String {
        let depth = Device::new(params).map_or(1, |model| model.facts().queue_depth);
        Self::of_model(params.clone(), depth).about()
    }

    fn of_model(params: DeviceParams, depth: u16) -> DiskOptions {
        DiskOptions::new::<&Path>([]).depth(depth).emulate(params)
    }

    /// The folder `source` as it is, in the folder `at`, except that what is read and written goes through
    /// the scheduler of these options: each thread has a queue, its I/O priority counts, and its cgroup is
    /// its group. The options name no files.
    ///
    /// What is mounted in `source` shows, as of now; what is mounted there later does not. `at` may be inside
    /// of `source`, if the process may copy mounts (`CAP_SYS_ADMIN`); through the mount it is the folder
    /// below.
    ///
    /// # Errors
    /// If the folder cannot be opened, `at` cannot be mounted on or is inside of `source` and may not be, a
    /// recording would be in the mount, or the engine does not start.
    pub fn directory(mut options: DiskOptions, source: &Path, at: &Path) -> Result<Self, Error> {
        let failed = |e: io::Error| Error::new(ErrorKind::File, format!("{}: {e}", source.display()));
        // Before the mount is there, so that it is not in itself.
        let opened = Source::open(source).map_err(failed)?;
        if !opened.is_copy && opened.is_around(at).unwrap_or(false) {
            let why = "inside the folder that is mounted; only root can mount there, on Linux 5.12 and later";
            return Err(Error::new(ErrorKind::Setting, format!("{}: {why}", at.display())));
        }
        if let Some(path) = &options.record {
            Self::refuse_inside(at, path, "a recording")?;
        }
        let tree = Directory::new(opened).map_err(failed)?;
        options.table = Some(tree.table());
        let settings =
            Settings { client_bios_max: BIOS_MAX, client_bytes_max: BYTES_MAX, ..Settings::default() };
        Self::show(options.settings(settings).on_device_of(source), tree, source, at)
    }

    /// Refuses a file of this process that would be in the mount at `at`: the process would wait for itself.
    /// `what` names the file in the error.
    ///
    /// # Errors
    /// If the file would be there.
    pub fn refuse_inside(at: &Path, file: &Path, what: &str) -> Result<(), Error> {
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        // The file may be a link into the mount, to a file that is yet to be made. If its folder does not
        // exist either, making the file fails later.
        let target = file.read_link().ok().and_then(|to| folder.join(to).parent()?.canonicalize().ok());
        let place = file.canonicalize().ok().or(target).ok_or(()).or_else(|()| folder.canonicalize());
        let (Ok(at), Ok(place)) = (at.canonicalize(), place) else { return Ok(()) };
        if !place.starts_with(&at) {
            return Ok(());
        }
        let why = format!("{what} cannot be in the mount of the same command; name a place outside of");
        Err(Error::new(ErrorKind::Setting, format!("{}: {why} {}", file.display(), at.display())))
    }

    fn show(options: DiskOptions, tree: impl Tree, source: &Path, at: &Path) -> Result<Self, Error> {
        // A thread for each processor; but a model keeps time in one.
        let processors =
            if options.is_emulated() { 1 } else { available_parallelism().map_or(1, usize::from) };
        let queues = options.transport.wants_queues()?.then_some(processors);
        let source = source.canonicalize().unwrap_or_else(|_| source.to_owned());
        let (point, file) = Mountpoint::mount(at, &source, DATA_MAX)?;
        let (gone, ended) = mpsc::channel();
        let failed = |e| Error::new(ErrorKind::Stopped, format!("cannot start threads: {e}"));
        let (channel, bell) = Channel::new(file).map_err(failed)?;
        let (channel, tree) = (Arc::new(channel), Arc::new(tree));
        let ways = (Arc::clone(&channel), bell);
        let disk = FuseFront::hire(&channel, &tree).map_err(failed).and_then(|workers| {
            Disk::open_with(options, |_, pool| FuseFront::new(ways, tree, workers, gone, pool, queues))
        });
        match disk {
            Ok(disk) => {
                let (is_unmounted, ended) = (Arc::default(), Mutex::new(ended));
                Ok(Self { disk, channel, point, is_unmounted, ended })
            }
            Err(e) => {
                // It was mounted a moment ago, and no thread serves it.
                let _ = Mountpoint::end(point.path());
                Err(e)
            }
        }
    }

    /// Raises this process's soft limit of open files to the hard one: every file that a program has open in
    /// a mount needs descriptors. A mount adapts to the limit that there is when it is made. Returns the
    /// limit; `None` if there is none.
    ///
    /// # Errors
    /// If the limit may not be changed.
    pub fn raise_descriptor_limit() -> io::Result<Option<u64>> {
        let limit = getrlimit(Resource::Nofile);
        setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit })?;
        Ok(limit.maximum)
    }

    /// Waits until it is unmounted, by any process, or its engine has stopped.
    pub fn wait(&self) {
        // Nothing is sent: the other end is dropped.
        let _ = self.ended.lock().unwrap_or_else(PoisonError::into_inner).recv();
    }

    /// Waits as [`Self::wait`] does, but no longer than `most`. Returns whether it has ended.
    #[must_use]
    pub fn wait_for(&self, most: Duration) -> bool {
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(most);
        ended != Err(mpsc::RecvTimeoutError::Timeout)
    }

    /// Returns a handle that unmounts it, for another thread.
    #[must_use]
    pub fn unmounter(&self) -> Unmount {
        Unmount { path: self.point.path().to_owned(), is_done: Arc::clone(&self.is_unmounted) }
    }

    /// The disk behind it.
    #[must_use]
    pub const fn disk(&self) -> &Disk {
        &self.disk
    }

    /// Whether its requests come by FUSE over io_uring. That is known once the kernel has asked something.
    #[must_use]
    pub fn is_over_uring(&self) -> bool {
        self.channel.has_queues()
    }

    /// The file that [`Self::emulate`] shows.
    #[must_use]
    pub fn file(&self) -> PathBuf {
        self.point.path().join(one_file::NAME)
    }

    /// Measures the time to the emulated disk of these parameters and back: for a program that reads the
    /// file, and through a loop device. The disk is read for that, so call it before any other process uses
    /// the mount; afterwards the model is as if it had not been used.
    ///
    /// # Errors
    /// If the disk cannot be read or its model cannot be renewed. Each way has an error of its own: the
    /// machine may be too busy for one, and few users may have a loop device.
    pub fn ways(&self, params: &DeviceParams) -> io::Result<(io::Result<Way>, io::Result<Way>)> {
        let file = way::open(&self.file())?;
        if file.metadata()?.len() < way::LEN as u64 {
            return Err(io::Error::other("the disk is smaller than 4 KiB"));
        }
        let kept = || self.lateness().map_err(io::Error::other).map(Option::unwrap_or_default);
        let mut buffer = self.disk.buffer(way::LEN);
        let renew = || self.disk.renew_model(params).map_err(io::Error::other);
        way::measure_both(&file, &mut buffer, kept, renew)
    }

    /// Returns how late the model's answers were, if the disk is emulated.
    ///
    /// # Errors
    /// If the engine has stopped.
    pub fn lateness(&self) -> Result<Option<Lateness>, Error> {
        self.disk.lateness()
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // Unless it is unmounted already.
        if !self.is_unmounted.load(Ordering::Acquire)
            && self.ended.get_mut().unwrap_or_else(PoisonError::into_inner).try_recv()
                == Err(mpsc::TryRecvError::Empty)
        {
            let _ = Mountpoint::end(self.point.path());
        }
    }
}
