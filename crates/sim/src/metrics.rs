//! What a run measured: per client and in total, over the whole run and per interval.
//!
//! Rates are over a client's own time, from its start to its last completion, as fio has it. A latency is
//! that of a call, from its submission to the completion of its last piece.

use crate::error::SimError;
use crate::job::{SteadyFigure, SteadyState};
use crate::latencies::Latencies;
use fairhead_core::{Class, Duration, GroupStats, Max, Min, Weight};

/// The calls of one client in one direction.
#[derive(Clone, Debug, PartialEq)]
pub struct OpStats {
    /// Calls completed.
    pub calls: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// The longest call, exactly.
    pub latency_max: Duration,
    /// All latencies added up.
    pub latency_sum: Duration,
    /// The shortest call, exactly.
    pub latency_min: Duration,
    /// How often each latency occurred, to two digits.
    pub latency_ns: Latencies,
}

impl OpStats {
    pub(crate) const fn new() -> Self {
        Self {
            calls: 0,
            bytes: 0,
            latency_max: Duration::ZERO,
            latency_sum: Duration::ZERO,
            latency_min: Duration::MAX,
            latency_ns: Latencies::new(),
        }
    }

    /// Adds a call that moved this many bytes and took this long.
    pub fn record(&mut self, bytes: u64, latency: Duration) {
        self.calls += 1;
        self.bytes += bytes;
        self.latency_max = self.latency_max.max(latency);
        self.latency_min = self.latency_min.min(latency);
        self.latency_sum += latency;
        self.latency_ns.record(latency.as_ns().max(1));
    }

    /// The `percent`th percentile of the latency (0 to 100), or nothing if there was no call.
    #[must_use]
    pub fn percentile(&self, percent: f64) -> Option<Duration> {
        let ns = self.latency_ns.percentile(percent);
        // The histogram rounds up; nothing took longer than the longest.
        (self.calls > 0).then(|| Duration::from_ns(ns).min(self.latency_max))
    }

    /// The mean latency, or nothing if there was no call.
    #[must_use]
    pub fn latency_mean(&self) -> Option<Duration> {
        (self.calls > 0).then(|| self.latency_sum / self.calls)
    }

    /// Adds another's figures.
    pub fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.bytes += other.bytes;
        self.latency_max = self.latency_max.max(other.latency_max);
        self.latency_min = self.latency_min.min(other.latency_min);
        self.latency_sum += other.latency_sum;
        self.latency_ns.add(&other.latency_ns);
    }
}

impl Default for OpStats {
    fn default() -> Self {
        Self::new()
    }
}

/// One client's figures.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientStats {
    /// The job's name.
    pub name: String,
    /// Which job of the file.
    pub job: usize,
    /// Which clone of the job.
    pub clone: u32,
    /// The reporting group.
    pub group: u32,
    /// When it started, from the start of the run.
    pub started: Duration,
    /// From its start to its end.
    pub elapsed: Duration,
    /// Reads.
    pub read: OpStats,
    /// Writes.
    pub write: OpStats,
    /// Discards.
    pub trim: OpStats,
    /// Fsyncs and fdatasyncs.
    pub sync: OpStats,
    /// The fsyncs and fdatasyncs that fio measures: all but those of `end_fsync` and `fsync_on_close`.
    pub sync_of_load: OpStats,
    /// The number of fsyncs in [`ClientStats::sync_of_load`], which is fio's `total_ios` of `sync`.
    pub fsyncs: u64,
    /// The bytes and calls while all jobs beside it ran; `None` if it ran alone, or the jobs never ran all at
    /// once.
    pub together: Option<Together>,
    /// Its time on processors.
    pub cpu: CpuStats,
    /// How many calls began with 1 of the client's in flight (itself), 2 to 3, 4 to 7, and so on by powers of
    /// two, 64 or more. Syncs are left out.
    pub depths: [u64; DEPTHS],
    /// Start-ups, one by one; empty for clients that start nothing.
    pub startups: Vec<StartUp>,
    /// The frames that a media player showed and dropped; `None` for clients that play nothing.
    pub frames: Option<Frames>,
    /// How a trace's task was replayed; `None` for clients that replay none.
    pub replayed: Option<Replayed>,
    /// Whether its figures, or those of its reporting group, became steady; `None` if it did not look, or
    /// another client of the group has it.
    pub steady: Option<Steadiness>,
}

/// The result of a job's `steadystate`.
#[derive(Clone, Debug, PartialEq)]
pub struct Steadiness {
    /// The criterion.
    pub criterion: SteadyState,
    /// Whether it was found, which ended the job.
    pub attained: bool,
    /// The largest distance from the mean in the last window, or its slope with the sign, in calls or bytes a
    /// second. 0 if no window was full.
    pub off: f64,
    /// The figure in the unit of the criterion's limit.
    pub figure: f64,
    /// Calls and bytes a second in the seconds of the last window.
    pub samples: Vec<(u64, u64)>,
}

impl Steadiness {
    /// The means of calls and of bytes a second.
    #[must_use]
    pub fn means(&self) -> (u64, u64) {
        let n = self.samples.len().max(1) as u64;
        let sum = self.samples.iter().fold((0, 0), |sum, s| (sum.0 + s.0, sum.1 + s.1));
        (sum.0 / n, sum.1 / n)
    }
}

impl std::fmt::Display for Steadiness {
    /// fio's line.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (iops, bw) = self.means();
        write!(
            f,
            "steadystate attained={}, bw={}KiB/s, iops={iops}, {}{}={:.3}{}",
            if self.attained { "yes" } else { "no" },
            bw / 1024,
            if self.criterion.of == SteadyFigure::Calls { "iops" } else { "bw" },
            if self.criterion.by_slope { " slope" } else { " mean dev" },
            self.figure,
            if self.criterion.in_percent { "%" } else { "" },
        )
    }
}

/// The bytes and calls of a client in the part of a run in which all jobs that ran beside each other were
/// running: from the last start, after `ramp_time`, to the first end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Together {
    /// How long that was.
    pub span: Duration,
    /// Bytes of calls that ended then, in all directions.
    pub bytes: u64,
}

/// How a client used processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct CpuStats {
    /// Time that its program computed.
    pub user: Duration,
    /// Time in system calls: copying, the block layer, the scheduler; with what precedes a call (`think` of
    /// the host).
    pub system: Duration,
    /// How often it waited for something and was woken.
    pub switches: u64,
}

/// What the processors did, all processes added up, on hosts of the multi-queue era
/// ([`Cores`](crate::host::Cores)).
///
/// ```
/// # use fairhead_core::Duration;
/// # use fairhead_sim::metrics::CpuBooks;
/// let us = Duration::from_us;
/// let books = CpuBooks { submit: us(5), complete: us(3), lock_wait: us(2), ..CpuBooks::default() };
/// assert_eq!((books.total(), books.lock_permille()), (us(10), 200));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct CpuBooks {
    /// The programs' own computing: `thinktime_spin`, `fh_cpu`, and the like.
    pub user: Duration,
    /// Preparing and submitting calls: program and system call, block layer, driver; of buffered calls
    /// copying, too.
    pub submit: Duration,
    /// Completions: interrupts, waking processes, and their taking note.
    pub complete: Duration,
    /// The scheduler's own work, under its lock or not; with what taking over a contended lock costs.
    pub scheduler: Duration,
    /// Waiting for the scheduler's lock.
    pub lock_wait: Duration,
}

impl CpuBooks {
    /// All of it: the time that processors worked.
    #[must_use]
    pub fn total(&self) -> Duration {
        self.user + self.submit + self.complete + self.scheduler + self.lock_wait
    }

    /// The share of that time that went into waiting for the lock, in thousandths.
    #[must_use]
    pub fn lock_permille(&self) -> u64 {
        rate(self.lock_wait.as_ns(), self.total()) / 1_000_000
    }

    /// Adds another's.
    pub(crate) fn add(&mut self, other: &Self) {
        self.user += other.user;
        self.submit += other.submit;
        self.complete += other.complete;
        self.scheduler += other.scheduler;
        self.lock_wait += other.lock_wait;
    }
}

/// The number of classes of [`ClientStats::depths`].
pub const DEPTHS: usize = 7;

/// The statistics of a recorded task's requests in a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Replayed {
    /// Requests of the recording; those that were not made were left when the run ended.
    pub recorded: u64,
    /// Requests made.
    pub made: u64,
    /// The number of these that were sent later than due, because too many were in flight.
    pub late: u64,
    /// The longest delay of those.
    pub late_max: Duration,
    /// All delays added up.
    pub late_sum: Duration,
    /// Requests of a closed loop that waited for other tasks to come near: none may get farther ahead than
    /// what is kept in memory.
    pub held: u64,
    /// Made at another place than recorded, so that they fit the disk.
    pub moved: u64,
    /// The number that were shortened, because they were longer than the disk.
    pub cut: u64,
}

impl Replayed {
    /// Adds another task's.
    pub fn add(&mut self, other: &Self) {
        self.recorded += other.recorded;
        self.made += other.made;
        self.late += other.late;
        self.late_max = self.late_max.max(other.late_max);
        self.late_sum += other.late_sum;
        self.held += other.held;
        self.moved += other.moved;
        self.cut += other.cut;
    }

    /// The mean delay of all that were made.
    #[must_use]
    pub fn late_mean(&self) -> Duration {
        self.late_sum / self.made.max(1)
    }
}

/// The frames of a film.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frames {
    /// Shown when they were due.
    pub shown: u64,
    /// Not there when they were due.
    pub dropped: u64,
}

impl Frames {
    /// All of them.
    #[must_use]
    pub const fn all(self) -> u64 {
        self.shown + self.dropped
    }

    /// How many of 100 000 were dropped: thousandths of a percent.
    #[must_use]
    pub fn drop_rate(self) -> u64 {
        (self.dropped * 100_000).checked_div(self.all()).unwrap_or(0)
    }
}

/// How long an application took to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StartUp {
    /// From its beginning to its last read's completion, or to its time-out.
    pub took: Duration,
    /// False: it took longer than that, and was given up.
    pub finished: bool,
}

impl StartUp {
    /// The mean of several, or nothing of none.
    pub fn mean(all: impl Iterator<Item = Self>) -> Option<Self> {
        let (mut sum, mut count, mut finished) = (Duration::ZERO, 0, true);
        for one in all {
            (sum, count, finished) = (sum + one.took, count + 1, finished && one.finished);
        }
        (count > 0).then(|| Self { took: sum / count, finished })
    }
}

impl ClientStats {
    /// Bytes in all directions.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.read.bytes + self.write.bytes + self.trim.bytes
    }

    /// The mean time of its start-ups. Not finished if one of them was not: it took longer then. Nothing for
    /// clients that start nothing.
    #[must_use]
    pub fn startup_time(&self) -> Option<StartUp> {
        StartUp::mean(self.startups.iter().copied())
    }

    /// Bytes per second in all directions.
    #[must_use]
    pub fn bandwidth(&self) -> u64 {
        rate(self.bytes(), self.elapsed)
    }

    /// Bytes per second in the time in which all jobs ran if there was such a time, and otherwise over its
    /// own.
    #[must_use]
    pub fn speed(&self) -> u64 {
        self.together.map_or_else(|| self.bandwidth(), |t| rate(t.bytes, t.span))
    }

    /// Calls per second in all directions, in thousandths.
    #[must_use]
    pub fn milli_iops(&self) -> u64 {
        rate((self.read.calls + self.write.calls + self.trim.calls) * 1000, self.elapsed)
    }

    /// The longest call in any direction.
    #[must_use]
    pub fn latency_max(&self) -> Duration {
        self.read.latency_max.max(self.write.latency_max).max(self.trim.latency_max)
    }
}

/// `amount` per second over `time`.
#[must_use]
pub fn rate(amount: u64, time: Duration) -> u64 {
    if time.is_zero() {
        return 0;
    }
    u64::try_from(u128::from(amount) * 1_000_000_000 / u128::from(time.as_ns())).unwrap_or(u64::MAX)
}

/// The statistics of a disk.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct DiskStats {
    /// Its own counters.
    pub counters: fairhead_device::Counters,
    /// Time with a command in flight.
    pub busy: Duration,
    /// Time during which requests waited, the disk had nothing to do, and the scheduler kept it so on
    /// purpose.
    pub idled: Duration,
    /// Time during which the scheduler's lock was held, on hosts of the multi-queue era. It ends a little
    /// after the run if visits are still to come.
    pub lock_held: Duration,
    /// Requests issued.
    pub issued: u64,
    /// Pieces of calls that were merged into others' requests.
    pub merged: u64,
    /// Bytes that were asked of the request queue (`bi` of vmstat, in bytes).
    pub read_bytes: u64,
    /// Bytes that were sent to it (`bo`).
    pub written_bytes: u64,
}

impl DiskStats {
    /// What a series has of them.
    pub(crate) const fn point(&self) -> DiskPoint {
        DiskPoint { read_bytes: self.read_bytes, written_bytes: self.written_bytes, busy: self.busy }
    }
}

/// One of several disks.
#[derive(Clone, Debug, PartialEq)]
pub struct DiskOutcome {
    /// The name in the job file.
    pub label: String,
    /// Its scheduler's (preset's) name.
    pub scheduler: String,
    /// The statistics of the disk.
    pub stats: DiskStats,
    /// Per interval.
    pub series: Vec<DiskPoint>,
}

/// The statistics of the page cache. All in pages of 4 KiB, but for the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct CacheStats {
    /// Pages read from the disk, asked for or ahead.
    pub pages_read: u64,
    /// Pages written to the disk.
    pub pages_written: u64,
    /// Pages that calls looked for or wrote in memory.
    pub touched: u64,
    /// Pages that a read did not find, and that no read-ahead was about to bring.
    pub misses: u64,
    /// Pages that a read had to wait for.
    pub waits: u64,
    /// Clean pages dropped for others.
    pub evicted: u64,
    /// Pages that the disk did not have yet when the run ended.
    pub dirty_at_end: u64,
    /// How often a client was held back because too much was dirty.
    pub throttled: u64,
}

/// One interval's figures of the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct DiskPoint {
    /// Bytes that were asked of the request queue.
    pub read_bytes: u64,
    /// Bytes that were sent to it.
    pub written_bytes: u64,
    /// Time with a command in flight.
    pub busy: Duration,
}

impl DiskPoint {
    pub(crate) fn plus(self, next: &Self) -> Self {
        Self {
            read_bytes: self.read_bytes + next.read_bytes,
            written_bytes: self.written_bytes + next.written_bytes,
            busy: self.busy + next.busy,
        }
    }

    pub(crate) fn since(&self, before: &Self) -> Self {
        Self {
            read_bytes: self.read_bytes - before.read_bytes,
            written_bytes: self.written_bytes - before.written_bytes,
            busy: self.busy.saturating_sub(before.busy),
        }
    }
}

/// One interval's figures of one client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Point {
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Calls completed.
    pub calls: u64,
    /// Reads among them.
    pub reads: u64,
    /// Writes among them.
    pub writes: u64,
    /// The longest of all calls.
    pub latency_max: Duration,
}

impl Point {
    pub(crate) fn add(&mut self, next: &Self) {
        self.read_bytes += next.read_bytes;
        self.written_bytes += next.written_bytes;
        self.calls += next.calls;
        self.reads += next.reads;
        self.writes += next.writes;
        self.latency_max = self.latency_max.max(next.latency_max);
    }
}

/// A control group: what it was given (last), and what it got.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupOutcome {
    /// Its path from the root; `/` for the root.
    pub path: String,
    /// The group around it: an index in [`Outcome::groups`]. The root is around itself.
    pub parent: usize,
    /// Its weight among its siblings.
    pub weight: Weight,
    /// The weight of its own tasks among the groups in it.
    pub leaf_weight: Weight,
    /// Its class.
    pub class: Class,
    /// Its limit.
    pub max: Max,
    /// Its guarantee.
    pub min: Min,
    /// The statistics of its own tasks; not those of groups inside it. In a mirror, of all members added up.
    pub stats: GroupStats,
}

/// A run's figures.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The scheduler's (preset's) name.
    pub scheduler: String,
    /// The seed.
    pub seed: u64,
    /// How much virtual time passed.
    pub elapsed: Duration,
    /// Per client, in the order of the job file.
    pub clients: Vec<ClientStats>,
    /// The disk; several together.
    pub disk: DiskStats,
    /// Each of several disks, in the order of [`JobFile::disks`](crate::job::JobFile::disks); empty for one.
    pub disks: Vec<DiskOutcome>,
    /// The length of an interval, if a series was asked for: as asked for, or doubled until a long run's
    /// points are few enough to keep.
    pub interval: Option<Duration>,
    /// Per interval, per client.
    pub series: Vec<Vec<Point>>,
    /// Per interval, the disk; several together.
    pub disk_series: Vec<DiskPoint>,
    /// The control groups, the root first; none if the jobs name none.
    pub groups: Vec<GroupOutcome>,
    /// The settings of groups that the scheduler does not keep, in the words of job files (`weight`, `class`,
    /// …).
    pub groups_not_kept: Vec<&'static str>,
    /// Per interval of [`watch`](crate::Scenario::watch) and the part of one at the end, per group: the disk
    /// time that its own tasks were charged.
    pub watch: Vec<Vec<Duration>>,
    /// The page cache.
    pub cache: CacheStats,
    /// How long the host's processors worked, all added up.
    pub cpu_busy: Duration,
    /// The work of the processors, on hosts of the multi-queue era; empty on others.
    pub cpu: CpuBooks,
    /// How many of them there were.
    pub cpus: u32,
    /// How many events the simulator handled.
    pub events: u64,
    /// Notes for the user about the run.
    pub notes: Vec<String>,
}

impl Outcome {
    /// Returns the throughput of all clients over the longest client's time, in bytes per second.
    #[must_use]
    pub fn bandwidth(&self) -> u64 {
        let longest = self.clients.iter().map(|c| c.elapsed).max().unwrap_or_default();
        rate(self.clients.iter().map(ClientStats::bytes).sum(), longest)
    }

    /// The share of the processors' time without work, in thousandths.
    #[must_use]
    pub fn cpu_idle_permille(&self) -> u64 {
        let all = self.elapsed * u64::from(self.cpus);
        rate(all.saturating_sub(self.cpu_busy).as_ns(), all) / 1_000_000
    }

    /// Returns the statistics of a group with all groups inside it.
    #[must_use]
    pub fn group_total(&self, group: usize) -> GroupStats {
        let mut sum = GroupStats::default();
        let inside = (0..self.groups.len()).filter(|&g| self.is_inside(g, group));
        inside.for_each(|g| sum.add(&self.groups[g].stats));
        sum
    }

    /// Whether group `inner` is `outer`, or somewhere inside it.
    #[must_use]
    pub fn is_inside(&self, inner: usize, outer: usize) -> bool {
        let around = |&g: &usize| (g != 0).then(|| self.groups[g].parent);
        std::iter::successors(Some(inner), around).any(|g| g == outer)
    }

    /// Smallest client bandwidth over largest, in thousandths; nothing with fewer than two clients.
    #[must_use]
    pub fn fairness_permille(&self) -> Option<u64> {
        let all = || self.clients.iter().map(ClientStats::bandwidth);
        let max = all().max().filter(|&m| m > 0 && self.clients.len() > 1)?;
        Some(all().min()? * 1000 / max)
    }
}

/// A shorthand for results of this crate.
pub type Result<T> = std::result::Result<T, SimError>;
