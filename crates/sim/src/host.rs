//! The machine around the disk: processors, the costs of one I/O, and the kernel's habits of an era.
//!
//! A closed loop of small reads spends its time like this (2004 values):
//!
//! ```text
//!   process            interrupt              disk
//!   think 98 µs ─► insert ─► dispatch ─► command … completion ─► t_irq 25 µs ─► dispatch next ─► wake the process
//!   └─ overlaps with the disk serving others                     └─ nothing overlaps with this on a disk of depth 1
//! ```
//!
//! A buffered call that misses pays for its requests *while the disk works*: the process hands in a request
//! and stays on a CPU for `request` and the scheduler's cost before it sleeps; if the data are there earlier,
//! it continues when it has paid.
//!
//! ```text
//!   random reader of 2016:  call 1.7 µs ─► request 79 µs ──┬─► next call        four CPUs: 4 / 80.7 µs = 49.6 k reads/s
//!                                  └─► disk 130 µs ────────┘                              of 4 KiB = 203 MB/s
//! ```
//!
//! Nothing else fits the published run: ten readers whose disk takes 130 µs could not keep four CPUs busy all
//! of the time (they did) with 80.7 µs each that came before or after the disk's part.
//!
//! The costs are separate parameters because they sit in different places of that loop; one client's
//! bandwidth fixes only their sum. **Until Linux 4.20 the request queue is run from the interrupt before the
//! woken process can submit again**: with another request pending, that one is dispatched first. This is
//! deceptive idleness, the reason why AS and CFQ wait. The multi-queue layer of later kernels does not ask
//! the scheduler after a completion ([`MultiQueue`]): a process that submits again within some milliseconds
//! comes first, although nothing is kept idle for it.
//!
//! What this does not do: charge the CPU for the flusher's requests, prefer one process to another (the run
//! queue is first come, first served), or tell one CPU's caches from another's.
//
//= docs/reference/hosts.md#processors-and-costs, docs/reference/hosts.md#submission-paths

mod cores;
mod memory;

use crate::job::time_value;
pub use cores::{Cores, Elevator, Lock};
use fairhead_core::sched::any::AnyConfig;
use fairhead_core::{Duration, Instant, Sectors};
use std::ops::RangeInclusive;

/// A host. Times are per I/O unless they say otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// How many processors run the processes.
    pub cpus: u32,
    /// CPU time from a process's wake-up to its next submission: system call, set-up, copying.
    pub think: Duration,
    /// The time from the device's completion to the next dispatch.
    pub irq: Duration,
    /// Added to `irq`, exponentially distributed with this mean, so that no result depends on exact
    /// resonance.
    pub irq_jitter: Duration,
    /// CPU time of each request that a buffered call causes: making it, its interrupt, leaving the CPU and
    /// coming back. It is spent while the disk works (see the module's text).
    pub request: Duration,
    /// CPU time of the scheduler per request, by name; a scheduler that is not listed costs none. Added to
    /// `think`, or to `request`.
    pub sched_cost: Vec<(&'static str, Duration)>,
    /// Whether the scheduler's cost is spent under the one lock of its queue: then no two requests leave it
    /// closer together.
    pub sched_serial: bool,
    /// CPU time of allocating a new 4 KiB block of a file, in the direct call that writes it.
    pub allocate: Duration,
    /// Additional time of a direct write into a hole of a file, per 4 KiB: it is made through the page cache
    /// and waited for.
    pub hole: Duration,
    /// The clock that schedulers see: steps of 1/HZ, or exact if zero. BFQ and Kyber, which time in
    /// nanoseconds, see an exact one everywhere; what BFQ counts in ticks it counts in these, unless its own
    /// `tick` is set.
    pub tick: Duration,
    /// The largest request.
    pub max_request: Sectors,
    /// The most pieces of memory that a request is made of (`max_segments`). It limits writes of a disk's own
    /// pages (`filename=/dev/…`), which are a piece each.
    pub segments: u32,
    /// How many requests may be allocated before a process waits for one, if not as many as by default: in
    /// the multi-queue layer all (without a scheduler at most the driver's tags), in the single-queue layer
    /// of each kind (sync, async).
    pub nr_requests: Option<u32>,
    /// Whether direct writes are flagged sync.
    pub direct_write_sync: bool,
    /// How requests are held back to be merged before the device gets them.
    pub plug: Plug,
    /// The multi-queue layer, on hosts of its time; none: the single-queue layer, which runs the queue at
    /// each completion.
    pub multi_queue: Option<MultiQueue>,
    /// CPU time of an I/O on hosts where a process runs on one processor at a time and requests are given out
    /// by hardware queue. `None`: each call takes any processor that is free (`think`, `sched_cost`), and
    /// requests come from one pool.
    pub cores: Option<Cores>,
    /// The time from a call to the device, and again from the device's completion to the interrupt: a loop
    /// device, FUSE or NBD in between. It occupies no processor, and requests travel side by side.
    pub path: Duration,
    /// Added to `path` on the way back, exponentially distributed with this mean.
    pub path_jitter: Duration,
    /// The mean time from one process's start to the next when several start together, in the order of the
    /// job file; half of it is exponentially distributed.
    pub start_gap: Duration,
    /// Whether they start in the reverse order.
    pub starts_reversed: bool,
    /// CPU time of a buffered call, without the data: system call and look-up.
    pub buffered: Duration,
    /// CPU time of copying a page (4 KiB) between a process and the page cache.
    pub copy: Duration,
    /// CPU time of a flusher for each page that it writes: it makes no request faster than that.
    pub write_page: Duration,
    /// Bytes of memory that the page cache may fill.
    pub memory: u64,
    /// The largest window of read-ahead in pages; twice that for a file that its reader declared sequential.
    pub read_ahead: u32,
    /// Above this share of memory (percent) dirty pages are written in the background.
    pub dirty_background_pct: u8,
    /// Above this share of memory, in percent, processes that dirty pages are held back.
    pub dirty_pct: u8,
    /// The background limit in bytes in place of `dirty_background_pct`; 0: the share holds.
    pub dirty_background_bytes: u64,
    /// The limit in bytes in place of `dirty_pct`; 0: the share holds.
    pub dirty_bytes: u64,
    /// How often the flusher looks for old dirty pages.
    pub flush_interval: Duration,
    /// How old a dirty file has to be to be written then.
    pub dirty_expire: Duration,
    /// Which threads write dirty pages.
    pub flusher: Flusher,
    /// What holds back a process that dirties pages beyond the limit.
    pub throttle: Throttle,
    /// Whether an fsync makes the disk empty its write cache.
    pub fsync_flushes: bool,
    /// Whether pages that are written in the background belong to the control group that dirtied them, and
    /// not to the root.
    pub cgroup_writeback: bool,
}

/// Which threads write dirty pages, by era.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flusher {
    /// Until 2.6.31: threads of a pool that serves all disks, here one for the limit and one for old pages.
    /// They turn to something else for up to 100 ms when the disk's request queue is congested.
    Pdflush,
    /// Since 2.6.32: one thread per disk. It waits for requests as any other task does.
    PerDevice,
}

/// What holds back a process that dirties pages beyond the hard limit, by era.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Throttle {
    /// Until 3.1: it writes pages itself, asynchronously and in its own name.
    WriteBack,
    /// Since 3.2: it sleeps.
    Sleep,
}

/// What runs the request queue on hosts of the multi-queue layer.
///
/// A completion by itself does not ask the scheduler again. A request that the scheduler has held back is
/// looked at
///
/// - at the next insertion by any task;
/// - after a completion, if the device was full when the scheduler was last asked;
/// - when the scheduler asks for a run ([`Elevator::wants_run`](fairhead_core::Elevator::wants_run));
/// - by a delayed run, at least 3 ms after a dispatch that found requests and was given none. Insertions do
///   not put it off.
///
/// ```text
///   completion ──┬─ device was full, or the scheduler asks ─► worker ─ 15 µs ─► dispatch
///                └─► wake the process ─ 6 µs ─► its next insertion ─► dispatch: it comes first
///   dispatch was given nothing ─ 4 to 8 ms (HZ = 250) ─► dispatch
/// ```
//= docs/reference/nvme.md#4-after-a-completion
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MultiQueue {
    /// The time from the request for a run to the worker's dispatch.
    pub worker: Duration,
    /// The clock's interrupts a second, in which delayed runs are counted.
    pub hz: u32,
}

impl MultiQueue {
    /// After how long a dispatch that was given nothing is repeated.
    //= docs/reference/nvme.md#4-after-a-completion (d)
    pub const DELAY: Duration = Duration::from_ms(3);

    /// When the delayed run is due that begins to wait now. The delay is rounded up to whole ticks and is
    /// counted from the next tick on.
    ///
    /// Traced on Linux 6.18 with HZ = 250: a timer of one tick, which expires at the second tick.
    //= deviates delayed-run
    #[must_use]
    pub fn delayed_run(&self, now: Instant) -> Instant {
        let tick = Duration::from_ns(1_000_000_000 / u64::from(self.hz.max(1)));
        let ticks = Self::DELAY.as_ns().div_ceil(tick.as_ns());
        Instant::EPOCH + tick * (now.since(Instant::EPOCH) / tick + ticks + 1)
    }
}

/// Plugging, by era.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plug {
    /// Until 2.6.38: a device queue that was empty waits for 4 requests, for 3 ms, or for a process that
    /// waits for I/O.
    Device,
    /// Since 2.6.39: a task collects its own requests until it waits.
    Task,
}

impl Plug {
    /// How many requests pull the plug.
    //= linux-2.6.33 block/blk-settings.c unplug_thresh
    pub const THRESHOLD: u32 = 4;
    /// After how long it comes out by itself.
    //= linux-2.6.33 block/blk-settings.c unplug_delay
    pub const DELAY: Duration = Duration::from_ms(3);
    /// How many requests a task collects at most.
    //= docs/reference/elevators.md#16-plugging
    pub const TASK_REQUESTS: usize = 16;
    /// The most requests that a task collects in the multi-queue layer.
    //= docs/reference/nvme.md#1-the-path-of-a-request no scheduler
    pub const QUEUES_REQUESTS: usize = 32;
    /// A task that collected a request this long hands everything in.
    //= docs/reference/elevators.md#16-plugging
    pub const TASK_SECTORS: Sectors = Sectors(256);
}

impl Host {
    /// The machine of `cfq-timeslices-2004`: one processor of 2004, an IDE disk, Linux 2.6.10-rc.
    #[must_use]
    pub fn of_2004() -> Self {
        Self {
            cpus: 1,
            // A 4 KiB hit takes 0.2016 ms in all (19 837 KiB/s): less irq, the drive's hit overhead and the
            // bus.
            //= cfq-timeslices-2004, case 1, deadline, 1 client
            think: Duration::from_ns(98_400),
            irq: Duration::from_us(20),
            irq_jitter: Duration::from_us(5),
            // In the cost of a call's pages, from which it was not told apart.
            request: Duration::ZERO,
            // 19 480 and 19 433 KiB/s against deadline's 19 837.
            //= cfq-timeslices-2004, case 1, as and cfq, 1 client
            sched_cost: vec![("as", Duration::from_ns(3_700)), ("cfq", Duration::from_ns(4_200))],
            // With one CPU there is no other to lock out.
            sched_serial: false,
            // 13 406 KiB/s for new files against what the drive's cache takes.
            //= cfq-timeslices-2004, case 3, deadline, 1 client
            allocate: Duration::from_us(113),
            // 6749 KiB/s for random writes of a sparse file, where new files take 13 406.
            //= cfq-timeslices-2004, case 4, deadline, 1 client
            hole: Duration::from_us(289),
            tick: Duration::from_ms(1),
            max_request: Sectors(256),
            segments: 128,
            nr_requests: None,
            direct_write_sync: false,
            plug: Plug::Device,
            multi_queue: None,
            cores: None,
            path: Duration::ZERO,
            path_jitter: Duration::ZERO,
            // Hosts of published tables: their runs are compared as they are, and all of them last for
            // seconds.
            start_gap: Duration::ZERO,
            starts_reversed: false,
            // 60 MB/s read and written at 2 to 3 % of (presumably) four processors: about 6 us for each 4
            // KiB, of which the call takes a third.
            //= docs/reference/published-results.md#17-vmstat R000-V-new, column sy
            buffered: Duration::from_us(2),
            copy: Duration::from_us(4),
            // In the cost of a call's pages, from which it was not told apart.
            write_page: Duration::ZERO,
            //= docs/reference/hosts.md#page-cache-and-readahead
            memory: 1 << 30,
            //= docs/reference/hosts.md#page-cache-and-readahead
            read_ahead: 32,
            //= docs/reference/hosts.md#dirty-pages-and-flusher
            dirty_background_pct: 10,
            dirty_pct: 40,
            dirty_background_bytes: 0,
            dirty_bytes: 0,
            flush_interval: Duration::from_secs(5),
            dirty_expire: Duration::from_secs(30),
            flusher: Flusher::Pdflush,
            throttle: Throttle::WriteBack,
            // ext2 of that time never told the disk.
            fsync_flushes: false,
            // Since 4.2, and only for the groups of cgroup v2.
            //= Documentation/admin-guide/cgroup-v2.rst "Writeback"
            cgroup_writeback: false,
        }
    }

    /// The machine of `cfq-seeky-ssd-2010`: Linux 2.6.33 and a flash card.
    #[must_use]
    pub fn of_2010() -> Self {
        Self {
            cpus: 2,
            think: Duration::from_us(15),
            irq: Duration::from_us(20),
            irq_jitter: Duration::from_us(5),
            sched_cost: Vec::new(),
            allocate: Duration::from_us(20),
            // In proportion: an assumption.
            hole: Duration::from_us(50),
            tick: Duration::from_ms(1),
            max_request: Sectors(1024),
            direct_write_sync: true,
            plug: Plug::Device,
            // Half of 2004's: an assumption.
            buffered: Duration::from_us(1),
            copy: Duration::from_us(2),
            dirty_pct: 20,
            flusher: Flusher::PerDevice,
            fsync_flushes: true,
            ..Self::of_2004()
        }
    }

    /// The machine of `bfq-v8-2016`: four processors, a SATA SSD, a Linux between 3.17 and 4.7, whose disks
    /// had one queue.
    #[must_use]
    pub fn of_2016() -> Self {
        Self {
            cpus: 4,
            // Two thirds and half of 2010's: assumptions.
            think: Duration::from_us(10),
            irq: Duration::from_us(10),
            // With the call and its page 80.7 us for a random read of 4 KiB: 203 MB/s on four CPUs without
            // idle time.
            //= bfq-v8-2016, 10 raw random readers, noop (R004-T-rand)
            request: Duration::from_us(79),
            // 202, 193 and 191 MB/s against noop's 203; contention for the queue's lock included.
            //= bfq-v8-2016, 10 raw random readers, deadline, cfq and bfq (R004-T-rand)
            sched_cost: vec![
                ("deadline", Duration::from_ns(400)),
                ("cfq", Duration::from_ns(4_200)),
                ("bfq", Duration::from_ns(5_100)),
            ],
            // Half of 2010's: assumptions.
            allocate: Duration::from_us(10),
            hole: Duration::from_us(25),
            //= docs/reference/hosts.md#page-cache-and-readahead
            max_request: Sectors(1024),
            plug: Plug::Task,
            // 4 GB/s, and a system call: assumptions; `request` is fitted with them.
            buffered: Duration::from_ns(700),
            copy: Duration::from_us(1),
            throttle: Throttle::Sleep,
            ..Self::of_2010()
        }
    }

    /// A present-day machine.
    #[must_use]
    pub fn of_2020() -> Self {
        Self {
            cpus: 4,
            think: Duration::from_us(5),
            irq: Duration::from_us(5),
            irq_jitter: Duration::from_us(1),
            // The page has none, mq-deadline and bfq; the others as the one that is most like them.
            //= docs/reference/hosts.md#processors-and-costs
            sched_cost: vec![
                ("noop", Duration::from_ns(300)),
                ("deadline", Duration::from_ns(700)),
                ("mq-deadline", Duration::from_ns(700)),
                ("kyber", Duration::from_ns(700)),
                ("as", Duration::from_ns(1_900)),
                ("cfq", Duration::from_ns(1_900)),
                ("bfq", Duration::from_ns(1_900)),
            ],
            sched_serial: true,
            allocate: Duration::from_us(2),
            hole: Duration::from_us(5),
            tick: Duration::ZERO,
            max_request: Sectors(2560),
            direct_write_sync: true,
            plug: Plug::Task,
            // Traced on Linux 6.18 on a virtual machine: 13 to 50 us from queueing the work to its start;
            // less where nothing is in the way. HZ is that of most distributions.
            //= docs/reference/hosts.md#worker-delay
            multi_queue: Some(MultiQueue { worker: Duration::from_us(15), hz: 250 }),
            // fio 3.33 with ten jobs: the first request of the last comes 0.6 to 1.2 ms after that of the
            // first; with two jobs, 3 to 157 us later, or earlier, in one case of three.
            start_gap: Duration::from_us(90),
            // A memory bandwidth of 10 GB/s and a system call without mitigations: an assumption.
            buffered: Duration::from_ns(400),
            copy: Duration::from_ns(400),
            // Traced on Linux 6.18, where a flusher makes 20 requests of 128 pages in 2.37 ms.
            //= docs/reference/hosts.md#dirty-pages-and-flusher
            write_page: Duration::from_ns(925),
            throttle: Throttle::Sleep,
            cgroup_writeback: true,
            ..Self::of_2010()
        }
    }

    /// Gives a host the processors of a study of schedulers on NVMe drives: ten cores, Linux 6.3.
    ///
    /// Calibrated with the rows of `reproduce icpe24` that are named below, all of which are marked there:
    /// one process at depth 1 and 256, and 1 and 256 processes. The shares of lock time at 2, 5 and 10
    /// processes of depth 128 say how the hand-over grows; no other row tells.
    #[must_use]
    pub fn with_processors_of_2023(self) -> Self {
        let ns = Duration::from_ns;
        let lock = |[insert, dispatch, complete, alone, hand_over]: [u64; 5], waiters_max| Lock {
            insert: ns(insert),
            dispatch: ns(dispatch),
            complete: ns(complete),
            alone: ns(alone),
            hand_over: ns(hand_over),
            waiters_max,
            insert_batch: 1,
            dispatch_batch: 1,
        };
        // Together 0.59 us a request: 295.3k of one process where none has 357.9k. What a lone request costs
        // more, and the hand-over: 425.3k of 256 processes. How much of the first is under the lock is an
        // assumption.
        //= icpe24 D256-mq-deadline, N256-mq-deadline, L2, L5 and L10-mq-deadline
        let mq_deadline = Elevator { work: ns(50), lock: Some(lock([270, 270, 0, 400, 680], 1)) };
        // 1.46 us: 235.0k; 281.5k of 256 processes. The hand-over was 190 and the lone request's part 1,000
        // until five deep readers got less than half of what they get without a scheduler, which is said of
        // the study's hardware.
        //= icpe24 D256-bfq, N256-bfq, L2, L5 and L10-bfq
        let bfq = Elevator { work: ns(100), lock: Some(lock([500, 460, 400, 950, 210], 2)) };
        Self {
            cpus: 10,
            //= icpe24 D1-none: 69.4 us from call to call, of which 68.4 are the call's
            think: ns(300),
            // Waking and completing are CPU time below.
            irq: Duration::ZERO,
            irq_jitter: Duration::ZERO,
            sched_cost: Vec::new(),
            sched_serial: false,
            // With `think` 2.79 us a request: 357.9k of one process. How they share that is an assumption.
            //= icpe24 D256-none
            cores: Some(Cores {
                call: ns(400),
                submit: ns(890),
                complete: ns(1_200),
                // Half of `complete`: an assumption.
                poll: ns(600),
                // An assumption.
                wake: ns(1_500),
                spread_pct: 30,
                schedulers: vec![
                    ("mq-deadline", mq_deadline),
                    ("bfq", bfq),
                    // 274.8k; its locks are as many as there are processors and queues.
                    //= icpe24 D256-kyber
                    ("kyber", Elevator { work: ns(850), lock: None }),
                ],
            }),
            ..self
        }
    }

    /// Gives a host the processors of 2023 with a later kernel: mq-deadline inserts and dispatches up to 32
    /// requests each time that it takes its lock. Nothing else is known to differ, and no row is fitted to
    /// it.
    //= docs/reference/nvme.md#23-lock-contention later kernels
    #[must_use]
    pub fn with_processors_of_2024(self) -> Self {
        let mut host = self.with_processors_of_2023();
        let schedulers = host.cores.iter_mut().flat_map(|c| &mut c.schedulers);
        for (_, elevator) in schedulers.filter(|(name, _)| *name == "mq-deadline") {
            if let Some(lock) = &mut elevator.lock {
                (lock.insert_batch, lock.dispatch_batch) = (32, 32);
            }
        }
        host
    }

    /// The names of the hosts: the years whose habits they have.
    pub const NAMES: &'static [&'static str] = &["2004", "2010", "2016", "2020"];

    /// Names that hosts had, and how these are written now.
    const FORMER: &'static [(&'static str, &'static str)] =
        &[("2023", "2020,processors=2023"), ("2024", "2020,processors=2024")];

    /// The host of that name, a year.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "2004" => Some(Self::of_2004()),
            "2010" => Some(Self::of_2010()),
            "2016" => Some(Self::of_2016()),
            "2020" => Some(Self::of_2020()),
            _ => None,
        }
    }

    /// One line about a host that is written as it was in former versions.
    ///
    /// ```
    /// # use fairhead_sim::Host;
    /// let line = "--host 2023: written --host 2020,processors=2023 now (the queues are those of 2020)";
    /// assert_eq!(Host::replaced("2023,hz=1000").as_deref(), Some(line));
    /// assert_eq!(Host::replaced("2020"), None);
    /// ```
    #[must_use]
    pub fn replaced(text: &str) -> Option<String> {
        let year = text.split(',').next().unwrap_or_default().trim();
        let (name, now) = Self::FORMER.iter().find(|(name, _)| *name == year)?;
        Some(format!("--host {name}: written --host {now} now (the queues are those of 2020)"))
    }

    /// A host as it is written on a command line, and its full name: a year, then settings, each behind a
    /// comma. Without a year it is the one that goes with the disk.
    ///
    /// ```
    /// # use fairhead_sim::Host;
    /// let (name, host) = Host::parse("path=60us,hz=1000", "nas2020").unwrap();
    /// assert_eq!((name.as_str(), host.path.as_us()), ("2020,path=60us,hz=1000", 60));
    /// ```
    ///
    /// # Errors
    /// What is wrong with the text, and what would be right.
    pub fn parse(text: &str, disk: &str) -> std::result::Result<(String, Self), String> {
        let words = || text.split(',').map(str::trim).filter(|w| !w.is_empty());
        let year = words().next().filter(|w| !w.contains('='));
        let base = year.unwrap_or_else(|| Self::name_for_disk(disk));
        let former = Self::FORMER.iter().find(|(name, _)| *name == base);
        let mut name = former.map_or(base, |(_, now)| now).to_owned();
        words().skip(usize::from(year.is_some())).for_each(|word| name = format!("{name},{word}"));
        let mut all = name.split(',');
        let year = all.next().unwrap_or_default();
        let known = || format!("unknown host '{year}'; write one of {}", Self::NAMES.join(", "));
        let mut host = Self::named(year).ok_or_else(known)?;
        all.try_for_each(|word| host.set(word))?;
        Ok((name, host))
    }

    /// Changes one setting, written as `name=value`.
    fn set(&mut self, word: &str) -> std::result::Result<(), String> {
        const HZ: RangeInclusive<u32> = 24..=1000;
        // As sysfs takes them.
        const REQUESTS: RangeInclusive<u32> = 4..=2048;
        let wrong = |right: &str| format!("host setting '{word}': {right}");
        match word.split_once('=') {
            Some(("path", value)) => self.path = time_value("path", value).map_err(|e| wrong(&e))?,
            Some(("path_jitter", value)) => {
                self.path_jitter = time_value("path_jitter", value).map_err(|e| wrong(&e))?;
            }
            Some(("start_gap", value)) => {
                self.start_gap = time_value("start_gap", value).map_err(|e| wrong(&e))?;
            }
            Some(("starts", "reversed")) => self.starts_reversed = true,
            Some(("nr_requests", value)) => {
                let count = value.parse().ok().filter(|n| REQUESTS.contains(n));
                self.nr_requests = Some(count.ok_or_else(|| wrong("write a number from 4 to 2048"))?);
            }
            Some(("processors", year)) => {
                if self.multi_queue.is_none() {
                    return Err(wrong("only hosts of the multi-queue layer (2020) have these"));
                }
                let host = std::mem::replace(self, Self::of_2020());
                *self = match year {
                    "2023" => host.with_processors_of_2023(),
                    "2024" => host.with_processors_of_2024(),
                    _ => return Err(wrong("write processors=2023 or processors=2024")),
                };
            }
            Some(("hz", value)) => {
                let hz = value.parse().ok().filter(|hz| HZ.contains(hz));
                let hz = hz.ok_or_else(|| wrong("write a number of ticks a second from 24 to 1000"))?;
                let none = || wrong("only hosts of the multi-queue layer (2020) count in these");
                self.multi_queue.as_mut().ok_or_else(none)?.hz = hz;
            }
            Some((name, value)) if memory::SETTINGS.contains(&name) => {
                self.set_memory(name, value).map_err(|e| wrong(&e))?;
            }
            _ => {
                return Err(wrong(
                    "there are processors=YEAR, nr_requests=N, path=TIME, path_jitter=TIME, start_gap=TIME, \
                     starts=reversed, hz=N, dirty_bytes=SIZE, dirty_background_bytes=SIZE and read_ahead_kb=N",
                ));
            }
        }
        Ok(())
    }

    /// The name of the host that goes with a disk: of its time for built-in ones, `2020` for others.
    #[must_use]
    pub fn name_for_disk(disk: &str) -> &'static str {
        match disk {
            "ide2004" => "2004",
            "sata2009" | "raid1_2009" | "flashcard2010" => "2010",
            "plextor_m5s" => "2016",
            "nvme" | "980pro" | "pcie4" | "pcie5" | "dramless" => "2020,processors=2023",
            _ => "2020",
        }
    }

    /// The host that goes with a disk.
    #[must_use]
    pub fn for_disk(disk: &str) -> Self {
        Self::parse("", disk).map_or_else(|_| Self::of_2020(), |(_, host)| host)
    }

    /// Returns the events after a completion that run the queue under this scheduler. Schedulers that the
    /// multi-queue layer never had are driven as they were in their time on any host.
    #[must_use]
    pub fn multi_queue_for(&self, scheduler: &str, config: &AnyConfig) -> Option<MultiQueue> {
        let is_modern = match config {
            AnyConfig::Noop(_) | AnyConfig::MqDeadline(_) | AnyConfig::Kyber(_) | AnyConfig::Outside(_) => {
                true
            }
            AnyConfig::Bfq(_) => !matches!(scheduler, "bfq-v0" | "bfq-v8"),
            _ => false,
        };
        self.multi_queue.filter(|_| is_modern)
    }

    /// How many requests of a kind the single-queue layer has.
    pub(crate) fn requests_of_a_kind(&self) -> u32 {
        // Schedulers that the multi-queue layer never had are given more on its hosts.
        self.nr_requests.unwrap_or(if self.multi_queue.is_some() { 256 } else { 128 })
    }

    /// Returns the CPU time of the named scheduler per request. `cfq-ts1` costs what `cfq` does.
    #[must_use]
    pub fn sched_cost(&self, scheduler: &str) -> Duration {
        self.sched_cost
            .iter()
            .filter(|(name, _)| scheduler.starts_with(name))
            .map(|c| c.1)
            .max()
            .unwrap_or(Duration::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_read_and_what_is_wrong_is_named() {
        let (name, host) = Host::parse("2020,path=1ms", "ide2004").unwrap();
        assert_eq!((name.as_str(), host.path), ("2020,path=1ms", Duration::from_ms(1)));
        assert_eq!(Host::parse("", "ide2004").unwrap(), ("2004".to_owned(), Host::of_2004()));
        let now = Host::parse("2023,hz=1000", "sata_ssd").unwrap();
        assert_eq!(now, Host::parse("2020,processors=2023,hz=1000", "sata_ssd").unwrap());
        assert_eq!(now.0, "2020,processors=2023,hz=1000");
        for (text, wrong) in [
            ("2021", "2004, 2010, 2016, 2020"),
            ("2020,path=60", "path=60"),
            ("2020,hz=0", "24 to 1000"),
            ("2010,hz=100", "2020"),
            ("2020,ram=1g", "nr_requests=N, path=TIME"),
            ("2020,nr_requests=3", "a number from 4 to 2048"),
            ("2020,processors=2022", "write processors=2023 or processors=2024"),
            ("2010,processors=2023", "multi-queue layer (2020)"),
        ] {
            let message = Host::parse(text, "nas2020").unwrap_err();
            assert!(message.contains(wrong), "{text}: {message}");
        }
    }

    /// Traced on Linux 6.18: a delayed run begun in jiffy 2043 is due at 2045 with 250 ticks a second.
    #[test]
    fn a_delayed_run_comes_at_the_second_tick() {
        let ms = |ms: u64| Instant::EPOCH + Duration::from_ms(ms);
        let at = |hz: u32, now: Instant| MultiQueue { worker: Duration::ZERO, hz }.delayed_run(now);
        assert_eq!(at(250, ms(400) + Duration::from_us(1)), ms(408));
        assert_eq!(at(250, ms(404) - Duration::from_us(1)), ms(408));
        assert_eq!(at(1000, ms(400) + Duration::from_us(1)), ms(404));
        assert_eq!(at(100, ms(400) + Duration::from_us(1)), ms(420));
    }
}
