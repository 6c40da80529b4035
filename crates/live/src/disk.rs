//! The library: a scheduled disk for programs that do their own I/O, such as storage engines.
//!
//! Open a [`Disk`] on one or more files, make a [`Client`] for each kind of work with its group, class and
//! priority, and submit; what comes back is [`Pending`], to wait for or to await. All clients, in whatever
//! threads, are scheduled together.
//!
//! ```
//! use fairhead_live::{Disk, DiskOptions};
//!
//! let path = std::env::temp_dir().join(format!("fairhead-doc-{}", std::process::id()));
//! std::fs::write(&path, vec![7; 1 << 20])?;
//! let disk = Disk::open(DiskOptions::new([&path]).scheduler("bfq")?)?;
//!
//! let queries = disk.client("queries")?;
//! let compaction = disk.client("compaction")?;
//! disk.set_weight("queries", 800)?;
//!
//! let background = compaction.write(0, 0, disk.buffer(256 << 10));
//! let page = queries.read(0, 512 << 10, 4096).wait()?; // does not wait for the compaction
//! assert!(page.iter().all(|b| *b == 7));
//! background.wait()?;
//! compaction.flush(0).wait()?; // stable now
//! # drop(disk);
//! # std::fs::remove_file(&path)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! What it does not do: cache, order overlapping requests that are in flight together (no disk does), grow
//! files.

use crate::alignment::block_size;
use crate::bio::{Bio, ClientId, Errno, FileId, Flush, Op};
use crate::buffer::{Buffer, Pool};
use crate::clock::{self, Clock};
use crate::depth::{Depth, Facts, Source};
use crate::emulation::{Emulation, Lateness};
use crate::engine::{Context, Engine, Front, Inputs, Mailbox, Message, OUTSIDE, STOPPED_MAX};
use crate::error::{Error, ErrorKind};
use crate::extents::Finder;
use crate::faults::Faults;
use crate::groups::GroupTable;
use crate::opening::open_blocks;
use crate::recorder::Recorder;
use crate::request_queue::{RequestQueue, Settings};
use crate::ring::Ring;
use crate::store::{Cached, FileTable, Store, identity, is_in_memory};
use crate::transport::Transport;
use crate::turns::Turns;
use fairhead_core::groups::GroupStats;
use fairhead_core::sched::any::{self, AnyConfig};
use fairhead_core::units::{Class, Duration, GroupId, Id, IoPrio, Sector, Sectors, TaskId, Weight};
use fairhead_core::{Control, Max, Min};
use fairhead_device::DeviceParams;
use fairhead_inbox::Inbox;
use std::fs::File;
use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::task::{self, Poll, Waker};
use std::thread::{self, JoinHandle};

/// Memory that is registered with the kernel beforehand, in bytes; less if limits on locked memory forbid it.
const ARENA: usize = 32 << 20;

/// Between the sectors of two files, so that nothing is merged across.
pub(crate) const GAP: u64 = 1 << 11;

/// The files of a disk, and how they are scheduled.
#[derive(Clone, Debug)]
pub struct DiskOptions {
    /// The files; of each, whether it is only read.
    files: Vec<(PathBuf, bool)>,
    config: AnyConfig,
    settings: Settings,
    emulate: Option<DeviceParams>,
    pub(crate) depth: Option<u16>,
    threads: Option<u32>,
    timeout: Option<Duration>,
    capacity: u32,
    direct: bool,
    rotational: Option<bool>,
    /// Whether the scheduler idles for as long as it wants.
    idles_freely: bool,
    /// Facts of the device that later files will be on.
    device: Option<Facts>,
    pub(crate) record: Option<PathBuf>,
    faults: Option<Faults>,
    /// For mounts.
    pub(crate) transport: Transport,
    /// Files that come and go; those that are named above are the first ones.
    pub(crate) table: Option<Arc<FileTable>>,
}

impl DiskOptions {
    /// Makes options for a disk of these files or block devices, which must exist. The scheduler is `bfq`.
    #[must_use]
    pub fn new<P: AsRef<Path>>(files: impl IntoIterator<Item = P>) -> Self {
        Self {
            files: files.into_iter().map(|p| (p.as_ref().to_owned(), false)).collect(),
            config: (any::preset("bfq").expect("a preset").config)().live(),
            settings: Settings::default(),
            emulate: None,
            depth: None,
            threads: None,
            timeout: None,
            capacity: 0,
            direct: true,
            rotational: None,
            idles_freely: false,
            device: None,
            record: None,
            faults: None,
            transport: Transport::default(),
            table: None,
        }
    }

    /// Schedules by the preset of that name: `fairhead list schedulers` has all.
    ///
    /// # Errors
    /// If there is none.
    pub fn scheduler(mut self, name: &str) -> Result<Self, Error> {
        let preset = any::preset(name).ok_or_else(|| {
            Error::new(ErrorKind::Setting, format!("scheduler {name}: there is none of that name"))
        })?;
        self.config = (preset.config)().live();
        Ok(self)
    }

    /// Schedules by a scheduler with these tunables.
    #[must_use]
    pub const fn config(mut self, config: AnyConfig) -> Self {
        self.config = config;
        self
    }

    /// Sets how many ios the disk has at a time, 1 to 1024. Default: as many as a disk with a head takes into
    /// its own queue, up to 32 (1 if that is unknown); for others 32, and down to 8 while it takes long for
    /// them.
    #[must_use]
    pub const fn depth(mut self, depth: u16) -> Self {
        self.depth = Some(depth);
        self
    }

    /// Sets how many threads may copy large data beside the engine's own. Default: four for each processor.
    /// With 0, one thread does everything that the kernel does not hand over by itself.
    #[must_use]
    pub const fn threads(mut self, threads: u32) -> Self {
        self.threads = Some(threads);
        self
    }

    /// How long the disk may take for one request or flush before clients get [`Errno::TIMEDOUT`]. Default:
    /// as long as it takes. Overrides [`Settings::timeout`].
    #[must_use]
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Makes the disk as slow as this model, in real time.
    #[must_use]
    pub fn emulate(mut self, params: DeviceParams) -> Self {
        self.emulate = Some(params);
        self
    }

    /// Sets how many requests a second the disk is good for: guarantees that add up to more are refused.
    /// Default 0: unknown, none is refused.
    #[must_use]
    pub const fn capacity(mut self, requests: u32) -> Self {
        self.capacity = requests;
        self
    }

    /// Whether to bypass the page cache. Default true, where the file system can; else it cannot be known
    /// what is at the disk.
    #[must_use]
    pub const fn direct(mut self, direct: bool) -> Self {
        self.direct = direct;
        self
    }

    /// Of these files; of each, whether it is only read.
    pub(crate) fn files(mut self, files: impl IntoIterator<Item = (PathBuf, bool)>) -> Self {
        self.files = files.into_iter().collect();
        self
    }

    /// Whether it is a disk with a head. Default: what the model says, or else the kernel of the devices that
    /// the files are on.
    #[must_use]
    pub const fn rotational(mut self, rotational: bool) -> Self {
        self.rotational = Some(rotational);
        self
    }

    /// The disk may be idle on purpose for as long as the scheduler's tunables say. Default: so on a disk
    /// with a head, and not at all on others, but for tasks that are known to send their next request at
    /// once (see [`Limits`](fairhead_core::Limits::idle_for_quick_only)).
    #[must_use]
    pub const fn idles_freely(mut self) -> Self {
        self.idles_freely = true;
        self
    }

    /// Records the events and decisions of the elevator in a file, for
    /// [`recording::replay`](crate::recording::replay).
    #[must_use]
    pub fn record(mut self, path: impl Into<PathBuf>) -> Self {
        self.record = Some(path.into());
        self
    }

    /// Sets the way that requests take from the kernel, for a [`Mount`](crate::Mount). Default:
    /// [`Transport::Auto`].
    #[must_use]
    pub const fn transport(mut self, transport: Transport) -> Self {
        self.transport = transport;
        self
    }

    /// Whether a model makes it slow.
    pub(crate) const fn is_emulated(&self) -> bool {
        self.emulate.is_some()
    }

    /// Injects faults at the files, on purpose. Default: none.
    #[must_use]
    pub fn faults(mut self, faults: &Faults) -> Self {
        self.faults = Some(faults.clone());
        self
    }

    /// The files that come are on the device that this is on.
    pub(crate) fn on_device_of(mut self, path: &Path) -> Self {
        self.device = Some(Facts::of(path));
        self
    }

    /// Whether it is to be a disk with a head, and how many requests its own queue takes.
    pub(crate) fn facts(&self) -> Facts {
        let model = self.emulate.as_ref().and_then(|params| Emulation::new(params).ok());
        let model = model.map(|model| {
            let facts = model.facts();
            Facts { is_rotational: facts.rotational, queue: Some(facts.queue_depth), source: Source::Model }
        });
        let facts = model.or(self.device).unwrap_or_else(|| {
            let files = self.files.iter().map(|(path, _)| Facts::of(path));
            // Of several, it is as slow as the slowest.
            files.min_by_key(|facts| (!facts.is_rotational, facts.queue)).unwrap_or_default()
        });
        match self.rotational {
            Some(is_rotational) => Facts { is_rotational, source: Source::Caller, ..facts },
            None => facts,
        }
    }

    /// Sizes and times; `limits.queue_depth`, `capacity`, `rotational` and `actuators` are set when the disk
    /// is opened.
    #[must_use]
    pub const fn settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// Whether requests have a time limit.
    pub(crate) const fn has_timeout(&self) -> bool {
        self.timeout.is_some() || self.settings.timeout.is_some()
    }

    /// The files are put into this table, where others may join them.
    pub(crate) fn with_table(mut self, files: &Arc<FileTable>) -> Self {
        self.table = Some(Arc::clone(files));
        self
    }

    /// Opens a file, for reading only if `read_only`.
    pub(crate) fn open_file(
        &self,
        path: &Path,
        read_only: bool,
    ) -> Result<(File, u64, Option<Cached>), Error> {
        let failed = |e: &io::Error| Error::new(ErrorKind::File, format!("{}: {e}", path.display()));
        let open = |flags| open_blocks(path, !read_only, flags);
        let direct = if self.direct { open(libc::O_DIRECT) } else { open(0) };
        let file = match direct {
            Err(e) if e.raw_os_error() == Some(libc::EINVAL) => open(0),
            other => other,
        }
        .map_err(|e| failed(&e))?;
        let is_in_memory = is_in_memory(&file);
        let file = if self.direct && is_in_memory {
            // The ring takes such files for slow, and has a thread do each transfer, unless told that they
            // are not.
            open(libc::O_DIRECT | libc::O_NONBLOCK).unwrap_or(file)
        } else {
            file
        };
        let size = io::Seek::seek(&mut &file, io::SeekFrom::End(0)).map_err(|e| failed(&e))?;
        let align = if self.direct && !is_in_memory { block_size(path) } else { 1 };
        let cached = (align > 1).then(|| open(0)).transpose().map_err(|e| failed(&e))?;
        if let Some(cached) = &cached {
            if identity(cached) != identity(&file) {
                return Err(failed(&io::Error::other("its name has become that of another file")));
            }
            // Pages that are read ahead could be beside a direct write, and keep what was there before. A
            // file system that takes no advice reads ahead.
            let _ = rustix::fs::fadvise(cached, 0, None, rustix::fs::Advice::Random);
        }
        Ok((file, size, cached.map(|file| Cached { file, align: align.into() })))
    }
}

/// A file of a disk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    pub(crate) size: u64,
    pub(crate) start: Sector,
    /// What direct I/O takes is a multiple of this.
    pub(crate) align: u32,
}

#[derive(Debug)]
pub(crate) struct Shared {
    mail: Arc<Mailbox>,
    pool: Arc<Pool>,
    files: Vec<Extent>,
    cookies: AtomicU64,
    tasks: AtomicU64,
}

/// A scheduled disk. When it is dropped, it finishes what is in flight and refuses what comes after that.
/// What takes longer than a few seconds is left to the kernel.
#[derive(Debug)]
pub struct Disk {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<io::Result<()>>>,
    /// Says nothing, but ends with the thread.
    ended: Mutex<mpsc::Receiver<()>>,
}

impl Disk {
    /// Opens the files and starts the engine.
    ///
    /// # Errors
    /// If a file cannot be opened, a setting is out of range, or there is no io_uring.
    pub fn open(options: DiskOptions) -> Result<Self, Error> {
        Self::open_with(options, |_, _| ())
    }

    /// With a front, which is made of what it needs to know: the files, in order, and where its memory comes
    /// from.
    pub(crate) fn open_with<F: Front + 'static>(
        options: DiskOptions,
        front: impl FnOnce(&[Extent], &Arc<Pool>) -> F,
    ) -> Result<Self, Error> {
        let files = options.table.clone().unwrap_or_default();
        let (mut extents, mut next) = (Vec::new(), 0);
        for (path, read_only) in &options.files {
            let (file, size, cached) = options.open_file(path, *read_only)?;
            let align = cached.as_ref().map_or(1, |c| c.align as u32);
            extents.push(Extent { size, start: Sector(next), align });
            next += size.div_ceil(512) + GAP;
            files.add_with(file.into(), cached);
        }
        let emulation = options.emulate.as_ref().map(Emulation::new).transpose();
        let emulation = emulation.map_err(|e| Error::new(ErrorKind::Setting, e.to_string()))?;
        let settings = Self::settings(&options, emulation.as_ref());
        let mut queue = RequestQueue::new(settings, options.config)
            .map_err(|e| Error::new(ErrorKind::Setting, e.to_string()))?;
        let recorder = options.record.as_deref().map(|path| Recorder::start(path, &mut queue)).transpose()?;
        let clock = Clock::start();
        let is_emulated = emulation.is_some();
        let groups = GroupTable::new(settings.limits.groups);
        let turns = Turns::default();
        let (now, busy) = (clock.now(), None);
        let context = Context { now, queue, groups, emulation, polls: false, turns, busy };
        let failed = |e: io::Error| Error::new(ErrorKind::Ring, format!("io_uring: {e}"));
        let (bell, ringer) = io::pipe().map_err(failed)?;
        let mail = Arc::new(Mailbox { inbox: Inbox::new(), bell: ringer });
        let pool = Pool::new(ARENA);
        let front = front(&extents, &pool);
        let faults = options.faults;
        let threads = options
            .threads
            .unwrap_or_else(|| 4 * thread::available_parallelism().map_or(1, |n| n.get() as u32));
        let shared = Shared {
            mail: Arc::clone(&mail),
            pool: Arc::clone(&pool),
            files: extents,
            cookies: AtomicU64::new(0),
            tasks: AtomicU64::new(1),
        };
        let (ready, started) = mpsc::channel();
        let (lives, ended) = mpsc::channel::<()>();
        let thread = thread::Builder::new().name("fairhead".to_owned()).spawn(move || {
            let _lives = lives;
            let mut ring = match if front.sends_commands() { Ring::with_commands(0) } else { Ring::new() } {
                Ok(ring) => ring,
                Err(e) => {
                    let _ = ready.send(Err(e));
                    return Ok(());
                }
            };
            ring.set_threads(threads);
            clock::be_punctual(is_emulated);
            // SAFETY: the engine has the store, which has the pool, and drops the ring before both.
            let _ = pool.arena().is_some_and(|(start, len)| unsafe { ring.register(start, len) });
            let _ = ready.send(Ok(()));
            let engine = Arc::clone(&mail);
            // An engine that has stopped has no use for an answer.
            let hear = move |number, extents| engine.send(Message::Found { number, extents }).is_ok();
            let finder = Finder::new(hear);
            let inputs = Inputs { mail, bell, rung: pool.buffer(64), clock, recorder };
            let store = Store::new(files, pool, faults, finder);
            Engine::new(context, store, front, inputs).run(ring)
        });
        let thread = thread.map_err(failed)?;
        match started.recv() {
            Ok(Ok(())) => {
                Ok(Self { shared: Arc::new(shared), thread: Some(thread), ended: Mutex::new(ended) })
            }
            Ok(Err(e)) => Err(failed(e)),
            Err(_) => Err(Error::new(ErrorKind::Ring, "the engine did not start")),
        }
    }

    fn settings(options: &DiskOptions, emulation: Option<&Emulation>) -> Settings {
        let mut settings = options.settings;
        let limits = &mut settings.limits;
        let facts = options.facts();
        limits.rotational = facts.is_rotational;
        limits.capacity = options.capacity;
        if let Some(facts) = emulation.map(Emulation::facts) {
            limits.actuators = facts.actuators;
            limits.max_sectors = limits.max_sectors.min(facts.max_request);
        }
        settings.timeout = options.timeout.or(settings.timeout);
        limits.queue_depth = options.depth.unwrap_or_else(|| Depth::usual(facts.is_rotational, facts.queue));
        settings.adaptive_depth = options.depth.is_none() && emulation.is_none() && facts.can_adapt();
        limits.idle_for_quick_only = !options.idles_freely && !facts.is_rotational;
        // Within a group, such a bound made a program start half as fast beside new readers.
        limits.spares_groups = !options.idles_freely && facts.is_rotational;
        limits.turns_within = Duration::from_ms(200);
        limits.one_youth = true;
        settings
    }

    /// Memory for data, `len` bytes: what it holds is not defined.
    #[must_use]
    pub fn buffer(&self, len: usize) -> Buffer {
        self.shared.pool.buffer(len)
    }

    /// The size of a file, in bytes; files count from 0, in the order in which they were named.
    #[must_use]
    pub fn size(&self, file: u32) -> Option<u64> {
        self.shared.files.get(file as usize).map(|f| f.size)
    }

    /// Whether the engine has not stopped by itself, because of an error.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// Makes a client in the group of this name (`a/b` is `b` inside `a`; the empty name is the root). A
    /// group that does not exist is made.
    ///
    /// # Errors
    /// If there can be no more groups, or the engine has stopped.
    pub fn client(&self, group: &str) -> Result<Client, Error> {
        let name = group.to_owned();
        let (id, group) = self.call(move |context| {
            let group = context.groups.ensure(context.now, &mut context.queue, &name)?;
            Ok((context.queue.join(), group))
        })??;
        let task = TaskId(self.shared.tasks.fetch_add(1, Ordering::Relaxed) as u32);
        Ok(Client { shared: Arc::clone(&self.shared), id, group, task, prio: IoPrio::default() })
    }

    /// The way to the engine, for another thread.
    pub(crate) fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.shared)
    }

    /// Has the engine do something, and waits for what comes of it.
    pub(crate) fn call<R: Send + 'static>(
        &self,
        f: impl FnOnce(&mut Context) -> R + Send + 'static,
    ) -> Result<R, Error> {
        self.shared.call(f)
    }

    /// A change of a group that there is, or is made by it.
    fn control(
        &self,
        group: &str,
        change: impl Fn(GroupId) -> Control + Send + 'static,
    ) -> Result<(), Error> {
        let name = group.to_owned();
        self.call(move |context| {
            let group = context.groups.ensure(context.now, &mut context.queue, &name)?;
            let refused = |r| Error::new(ErrorKind::Group, format!("group {name}: {r}"));
            context.queue.control(context.now, change(group)).map_err(refused)
        })?
    }

    /// A group's weight, 1 to 10000.
    ///
    /// # Errors
    /// If it is out of range, or the engine has stopped.
    pub fn set_weight(&self, group: &str, weight: u16) -> Result<(), Error> {
        let wrong = || Error::new(ErrorKind::Setting, format!("group {group}: weight {weight}: 1 to 10000"));
        let weight = Weight::new(weight).ok_or_else(wrong)?;
        self.control(group, move |g| Control::SetWeight(g, weight))
    }

    /// A group's class: real-time before best-effort before idle.
    ///
    /// # Errors
    /// If it is the root, or the engine has stopped.
    pub fn set_class(&self, group: &str, class: Class) -> Result<(), Error> {
        self.control(group, move |g| Control::SetClass(g, class))
    }

    /// The most that a group gets.
    ///
    /// # Errors
    /// If it is the root, contradicts a guarantee, or the engine has stopped.
    pub fn set_max(&self, group: &str, max: Max) -> Result<(), Error> {
        self.control(group, move |g| Control::SetMax(g, max))
    }

    /// The least that a group gets.
    ///
    /// # Errors
    /// If it is the root, contradicts a limit, or the engine has stopped.
    pub fn set_min(&self, group: &str, min: Min) -> Result<(), Error> {
        self.control(group, move |g| Control::SetMin(g, min))
    }

    /// A group without groups in it is no more: what its clients send counts for the group around it.
    ///
    /// # Errors
    /// If there is none, there are groups in it, or the engine has stopped.
    pub fn remove_group(&self, group: &str) -> Result<(), Error> {
        let name = group.to_owned();
        self.call(move |context| context.groups.remove(context.now, &mut context.queue, &name))?
    }

    /// The groups by name, the root's being empty, and what each got without the groups in it.
    ///
    /// # Errors
    /// If the engine has stopped.
    pub fn groups(&self) -> Result<Vec<(String, GroupStats)>, Error> {
        self.call(|context| {
            let all = [("", GroupId::ROOT)].into_iter().chain(context.groups.names());
            let stats = context.queue.all_stats();
            all.map(|(name, id)| (name.to_owned(), stats[id.index()])).collect()
        })
    }

    /// Changes the scheduler or its tunables, under load: nothing stops, nothing is lost.
    ///
    /// # Errors
    /// If a tunable is out of range, or the engine has stopped.
    pub fn switch(&self, config: AnyConfig) -> Result<(), Error> {
        self.call(move |context| context.queue.switch(context.now, config))?
            .map_err(|e| Error::new(ErrorKind::Setting, e.to_string()))
    }

    /// Sets how many ios the disk has at a time, 1 to 1024; `None` goes back to the default.
    ///
    /// # Errors
    /// If it is out of range, or the engine has stopped.
    pub fn set_depth(&self, depth: Option<u16>) -> Result<(), Error> {
        self.call(move |context| context.queue.set_depth(depth))?
            .map_err(|e| Error::new(ErrorKind::Setting, e))
    }

    /// Returns how late the model's answers were, if the disk is emulated.
    ///
    /// # Errors
    /// If the engine has stopped.
    pub fn lateness(&self) -> Result<Option<Lateness>, Error> {
        self.call(|context| context.lateness())
    }

    /// The emulated disk of these parameters is as if nothing had happened to it.
    pub(crate) fn renew_model(&self, params: &DeviceParams) -> Result<(), Error> {
        let params = params.clone();
        self.call(move |context| {
            if let Some(model) = &mut context.emulation {
                model.renew(&params);
            }
        })
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = self.shared.mail.send(Message::Stop);
        let ended = self.ended.get_mut().unwrap_or_else(PoisonError::into_inner);
        let is_stuck = ended.recv_timeout(STOPPED_MAX) == Err(mpsc::RecvTimeoutError::Timeout);
        if let Some(thread) = self.thread.take().filter(|_| !is_stuck) {
            let _ = thread.join();
        }
    }
}

impl Shared {
    /// Wakes the engine, to look at what others have left for it. Returns whether there is one.
    pub(crate) fn wake(&self) -> bool {
        self.tell(Message::Call(Box::new(|_| ()))).is_ok()
    }

    /// Sends a message to the engine. Returns the message if the engine has stopped.
    pub(crate) fn tell(&self, message: Message) -> Result<(), Message> {
        self.mail.send(message)
    }

    pub(crate) fn call<R: Send + 'static>(
        &self,
        f: impl FnOnce(&mut Context) -> R + Send + 'static,
    ) -> Result<R, Error> {
        let stopped = || Error::new(ErrorKind::Stopped, "the engine has stopped");
        let (answer, answered) = mpsc::channel();
        let call = move |context: &mut Context| {
            let _ = answer.send(f(context));
        };
        self.mail.send(Message::Call(Box::new(call))).map_err(|_| stopped())?;
        answered.recv().map_err(|_| stopped())
    }
}

/// A client: one task of the scheduler's, with its own queue.
#[derive(Debug)]
pub struct Client {
    shared: Arc<Shared>,
    id: ClientId,
    group: GroupId,
    task: TaskId,
    prio: IoPrio,
}

impl Client {
    /// Sets the client's class and level, 0 to 7. Default: best effort 4.
    ///
    /// # Panics
    /// If the level is above 7.
    #[must_use]
    pub fn with_prio(mut self, prio: IoPrio) -> Self {
        assert!(prio.level <= 7, "levels are 0 to 7");
        self.prio = prio;
        self
    }

    /// Reads `len` bytes of a file from `offset` on. `EBADF`: there is no such file. `EINVAL`: `len` is 0, or
    /// the range reaches beyond the end of the file.
    #[must_use = "it is carried out anyway, but only this has its result"]
    pub fn read(&self, file: u32, offset: u64, len: u32) -> Pending<Buffer> {
        self.submit(Op::Read, file, offset, len, None, false, |data| data.expect("a read brings data"))
    }

    /// Writes all of `data` at `offset`. It is stable after a [flush](Self::flush). `EBADF`: there is no such
    /// file. `ENOSPC`: the range reaches beyond the end of the file.
    #[must_use = "it is carried out anyway, but only this has its result"]
    pub fn write(&self, file: u32, offset: u64, data: Buffer) -> Pending<()> {
        self.submit(Op::Write, file, offset, data.len() as u32, Some(data), false, drop)
    }

    /// Writes all of `data` as [`Self::write`] does, and completes when it is stable.
    #[must_use = "it is carried out anyway, but only this has its result"]
    pub fn write_through(&self, file: u32, offset: u64, data: Buffer) -> Pending<()> {
        self.submit(Op::Write, file, offset, data.len() as u32, Some(data), true, drop)
    }

    /// Discards `len` bytes: their contents are no longer needed, and read as zeros or as before.
    #[must_use = "it is carried out anyway, but only this has its result"]
    pub fn discard(&self, file: u32, offset: u64, len: u32) -> Pending<()> {
        self.submit(Op::Discard, file, offset, len, None, false, drop)
    }

    /// Makes `len` bytes read as zeros; their space may be given back only if `may_discard`.
    #[must_use = "it is carried out anyway, but only this has its result"]
    pub fn zero(&self, file: u32, offset: u64, len: u32, may_discard: bool) -> Pending<()> {
        self.submit(Op::Zero { may_discard }, file, offset, len, None, false, drop)
    }

    /// Makes all writes to the file stable that were answered before the call.
    #[must_use = "it is carried out anyway, but only this has its result"]
    pub fn flush(&self, file: u32) -> Pending<()> {
        let (pending, slot, cookie) = self.pending();
        if self.shared.files.get(file as usize).is_none() {
            slot.fill(Err(Errno(libc::EBADF)));
            return pending;
        }
        let done = Box::new(move |result: Result<(), Errno>, _| slot.fill(result));
        let flush = Flush { file: FileId(file), task: self.task, group: self.group, prio: self.prio, cookie };
        let message = Message::Flush { client: self.id, flush, done };
        self.send(message);
        pending
    }

    fn pending<T>(&self) -> (Pending<T>, Arc<Slot<T>>, u64) {
        let slot = Arc::new(Slot::new());
        let cookie = OUTSIDE | self.shared.cookies.fetch_add(1, Ordering::Relaxed);
        let pending = Pending { slot: Arc::clone(&slot), shared: Arc::clone(&self.shared), cookie };
        (pending, slot, cookie)
    }

    fn send(&self, message: Message) {
        if let Err(Message::Submit { done, .. } | Message::Flush { done, .. }) =
            self.shared.mail.send(message)
        {
            done(Err(Errno::SHUTDOWN), None);
        }
    }

    #[allow(clippy::too_many_arguments, reason = "each of its callers leaves most of them out")]
    fn submit<T: Send + 'static>(
        &self,
        op: Op,
        file: u32,
        offset: u64,
        len: u32,
        data: Option<Buffer>,
        fua: bool,
        bring: impl FnOnce(Option<Buffer>) -> T + Send + 'static,
    ) -> Pending<T> {
        let (pending, slot, cookie) = self.pending();
        let extent = match self.shared.files.get(file as usize) {
            None => Err(Errno(libc::EBADF)),
            Some(_) if len == 0 => Err(Errno(libc::EINVAL)),
            Some(f) if offset.checked_add(u64::from(len)).is_none_or(|end| end > f.size) => {
                Err(Errno(if op == Op::Read { libc::EINVAL } else { libc::ENOSPC }))
            }
            Some(f) => Ok(f),
        };
        let extent = match extent {
            Ok(extent) => extent,
            Err(errno) => {
                slot.fill(Err(errno));
                return pending;
            }
        };
        let bio = Bio {
            op,
            file: FileId(file),
            offset,
            len,
            sector: Sector(extent.start.0 + offset / Sectors(1).bytes()),
            fua,
            sync: true,
            task: self.task,
            group: self.group,
            prio: self.prio,
            cookie,
        };
        let done = Box::new(move |result: Result<(), Errno>, data| slot.fill(result.map(|()| bring(data))));
        self.send(Message::Submit { client: self.id, bio, data, done });
        pending
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let id = self.id;
        let task = self.task;
        let leave = move |context: &mut Context| {
            context.queue.depart(id);
            // A task's exit cannot be refused.
            let _ = context.queue.control(context.now, Control::TaskExit(task));
        };
        let _ = self.shared.mail.send(Message::Call(Box::new(leave)));
    }
}

#[derive(Debug)]
enum Outcome<T> {
    None,
    Awaited(Waker),
    Here(Result<T, Errno>),
    Taken,
}

#[derive(Debug)]
struct Slot<T> {
    outcome: Mutex<Outcome<T>>,
    filled: Condvar,
}

impl<T> Slot<T> {
    fn new() -> Self {
        Self { outcome: Mutex::new(Outcome::None), filled: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Outcome<T>> {
        self.outcome.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fill(&self, result: Result<T, Errno>) {
        let before = std::mem::replace(&mut *self.lock(), Outcome::Here(result));
        self.filled.notify_all();
        if let Outcome::Awaited(waker) = before {
            waker.wake();
        }
    }
}

/// An operation that was submitted: wait for it, or await it. It is carried out even if the handle is
/// dropped.
#[derive(Debug)]
pub struct Pending<T> {
    slot: Arc<Slot<T>>,
    shared: Arc<Shared>,
    cookie: u64,
}

impl<T> Pending<T> {
    /// Waits for what becomes of it.
    ///
    /// # Errors
    /// What the disk says; [`Errno::INTR`] if it was cancelled, [`Errno::TIMEDOUT`] if the disk did not
    /// answer.
    ///
    /// # Panics
    /// If it has been polled to its end before.
    pub fn wait(self) -> Result<T, Errno> {
        let mut outcome = self.slot.lock();
        loop {
            match std::mem::replace(&mut *outcome, Outcome::Taken) {
                Outcome::Here(result) => return result,
                Outcome::Taken => panic!("the outcome has been taken"),
                before => *outcome = before,
            }
            outcome = self.slot.filled.wait(outcome).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Takes it back, if it is not done: then it ends at once with [`Errno::INTR`]. What the disk is at it
    /// finishes; a write may be done or not.
    pub fn cancel(&self) {
        let _ = self.shared.mail.send(Message::Cancel { cookie: self.cookie });
    }
}

impl<T> Future for Pending<T> {
    type Output = Result<T, Errno>;

    fn poll(self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> Poll<Self::Output> {
        let mut outcome = self.slot.lock();
        match std::mem::replace(&mut *outcome, Outcome::Taken) {
            Outcome::Here(result) => Poll::Ready(result),
            Outcome::Taken => panic!("polled after its end"),
            Outcome::None | Outcome::Awaited(_) => {
                *outcome = Outcome::Awaited(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bfq_has_on_what_is_our_own() {
        let live = (any::preset("bfq").unwrap().config)().live();
        assert_eq!(DiskOptions::new(["/nowhere"]).config, live);
        assert_eq!(DiskOptions::new(["/nowhere"]).scheduler("bfq").unwrap().config, live);
        let v8 = (any::preset("bfq-v8").unwrap().config)();
        assert_eq!(DiskOptions::new(["/nowhere"]).scheduler("bfq-v8").unwrap().config, v8, "others have not");
    }

    #[test]
    fn an_emulated_disk_has_as_many_as_its_queue_takes() {
        for (preset, depth, adapts) in
            [("nas2020", 31, false), ("sata2009", 1, false), ("plextor_m5s", 32, false)]
        {
            let model = DeviceParams::preset(preset).unwrap();
            let emulation = Emulation::new(&model).unwrap();
            let settings = |options: DiskOptions| {
                let settings = Disk::settings(&options, Some(&emulation));
                (settings.limits.queue_depth, settings.adaptive_depth)
            };
            let options = DiskOptions::new(["/nowhere"]).emulate(model);
            assert_eq!(settings(options.clone()), (depth, adapts), "{preset}");
            assert_eq!(settings(options.depth(2)), (2, false), "{preset}, set to 2");
        }
    }
}
