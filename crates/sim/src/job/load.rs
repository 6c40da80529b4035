//! What a job does, in a few plain types: which calls, how large, in what order, where.
//!
//! ```text
//! rw=randrw            Pattern { direction: Mixed, random: true }
//! bs=4k,64k            PerOp { read: Fixed(4096), write: Fixed(65536), trim: Fixed(65536) }
//! size=10%             Size::Percent(10)
//! ```
//!
//! They know nothing of jobs, files and lines: an option's parser makes them, a [`Job`](super::Job) holds
//! them, and the engine reads them.

use fairhead_core::units::Sector;

/// One value for each direction, as fio's `read,write,trim` lists have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PerOp<T> {
    /// The value for reads.
    pub read: T,
    /// The value for writes.
    pub write: T,
    /// The value for trims.
    pub trim: T,
}

impl<T: Clone> PerOp<T> {
    /// Makes an entry with the same value for reads, writes and trims.
    pub fn all(value: T) -> Self {
        Self { read: value.clone(), write: value.clone(), trim: value }
    }
}

/// `rw`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pattern {
    /// The kind of calls.
    pub direction: Direction,
    /// Whether offsets jump (`rand…`).
    pub random: bool,
}

/// The kind of calls that a job makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Direction {
    /// Reads.
    #[default]
    Read,
    /// Writes.
    Write,
    /// Both, mixed by `rwmixread`.
    Mixed,
    /// Discards.
    Trim,
}

/// How large calls are, in bytes. Never empty, never 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BlockSize {
    /// Always the same.
    Fixed(u32),
    /// `bsrange`: evenly drawn among the multiples of `min` from `min` to `max`.
    Range {
        /// The smallest.
        min: u32,
        /// The largest; above `min`.
        max: u32,
    },
    /// `bssplit`: sizes and their percentages, which add up to 100.
    Split(Vec<(u32, u8)>),
}

impl BlockSize {
    /// The smallest call in bytes. Offsets are multiples of it.
    #[must_use]
    pub fn min_bytes(&self) -> u32 {
        match self {
            Self::Fixed(b) | Self::Range { min: b, .. } => *b,
            Self::Split(parts) => parts.iter().map(|p| p.0).min().unwrap_or(1),
        }
    }

    /// The largest call in bytes.
    #[must_use]
    pub fn max_bytes(&self) -> u32 {
        match self {
            Self::Fixed(b) | Self::Range { max: b, .. } => *b,
            Self::Split(parts) => parts.iter().map(|p| p.0).max().unwrap_or(1),
        }
    }

    /// A size in it that is no multiple of a sector's 512 bytes.
    pub(super) fn unaligned(&self) -> Option<u32> {
        let odd = |b: &u32| !b.is_multiple_of(512);
        match self {
            Self::Fixed(b) => Some(*b).filter(odd),
            Self::Range { min, .. } => Some(*min).filter(odd),
            Self::Split(parts) => parts.iter().map(|p| p.0).find(odd),
        }
    }
}

impl Default for BlockSize {
    fn default() -> Self {
        Self::Fixed(4096)
    }
}

/// `random_distribution`.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Distribution {
    /// Every block alike.
    #[default]
    Uniform,
    /// The block of rank `k` with a likelihood of `k^-theta`. Above 0, not 1.
    Zipf(f64),
    /// Pareto's, of power `h`, between 0 and 1.
    Pareto(f64),
    /// Normal around the middle, with that deviation in percent of the range.
    Normal(f64),
    /// Some percent of the calls in each of several parts, one behind the other. Their percentages add up
    /// to 100.
    Zoned(Vec<RandomZone>),
}

/// A part of a file and its share of random calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RandomZone {
    /// Percent of the calls.
    pub percent: u8,
    /// How long it is: bytes, or percent of the range.
    pub size: Size,
}

/// `rw_sequencer`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sequencer {
    /// One behind the other.
    #[default]
    Sequential,
    /// To the same place.
    Identical,
}

/// `file_service_type`: how a client with several files picks the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FileService {
    /// One call each, in turn.
    #[default]
    RoundRobin,
    /// One file to its end, then the next.
    Sequential,
    /// By lot.
    Random,
}

/// `unified_rw_reporting`: how a report shows the directions of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unified {
    /// Reads, writes and trims each by themselves.
    #[default]
    Apart,
    /// All together, and nothing else.
    Mixed,
    /// Each by themselves, and all together.
    Both,
}

/// Which percentiles of latencies a report in fio's layout shows.
#[derive(Debug, Clone, PartialEq)]
pub struct Percentiles {
    /// `percentile_list`, in order. `None`: fio's own.
    pub list: Option<Vec<f64>>,
    /// `clat_percentiles`: of completion latencies. Default true.
    pub of_completion: bool,
    /// `lat_percentiles`: of whole latencies. Default false.
    pub of_all: bool,
}

impl Default for Percentiles {
    fn default() -> Self {
        Self { list: None, of_completion: true, of_all: false }
    }
}

/// `verify`: what was written is read again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verify {
    /// `verify_backlog`: after that many writes. `None`: when all is written.
    pub backlog: Option<u32>,
    /// `verify_backlog_batch`: how many of them at a time. At least 1.
    pub batch: u32,
}

/// `sync`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SyncMode {
    /// A buffered write is done when its pages are dirty.
    #[default]
    None,
    /// `O_DSYNC`: when the data is stable.
    Dsync,
    /// `O_SYNC`: when data and metadata are.
    Sync,
}

/// What of a job its user feels: which of its figures says how well it fares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// It begins, works and is done, and a user waits until it is: the start of a program, a build.
    Start,
    /// It wants a rate and no more: a film, a camera.
    Paced,
    /// A user waits for each of its calls: a query, a commit.
    Waiting,
    /// It takes what it can get: a copy, a backup.
    Bulk,
}

impl Kind {
    /// All kinds, with the words of `fh_kind`.
    pub const WORDS: &[(&str, Self)] =
        &[("start", Self::Start), ("paced", Self::Paced), ("waiting", Self::Waiting), ("bulk", Self::Bulk)];

    /// The value of `fh_kind`.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Paced => "paced",
            Self::Waiting => "waiting",
            Self::Bulk => "bulk",
        }
    }
}

/// `ioengine`, by what the disk sees of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Engine {
    /// One call at a time: `sync psync vsync pvsync pvsync2 mmap splice`.
    #[default]
    Sync,
    /// `iodepth` calls in flight: `libaio io_uring posixaio`.
    Async,
    /// Calls that are done when they are made, without any disk: `null`.
    Null,
}

/// An amount of data, as far as the job file says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// A number of bytes.
    Bytes(u64),
    /// A percentage, 1 to 100: of the target (file or disk) for `size` and `offset`, of the disk for
    /// `filesize`, of the job's size for `io_size`.
    Percent(u8),
}

impl Size {
    /// In bytes, where `whole` bytes are 100 percent.
    #[must_use]
    pub fn bytes_of(self, whole: u64) -> u64 {
        match self {
            Self::Bytes(b) => b,
            // 100 percent must be all of it, and a disk times 100 must not overflow.
            Self::Percent(p) => whole / 100 * u64::from(p) + whole % 100 * u64::from(p) / 100,
        }
    }
}

impl Default for Size {
    fn default() -> Self {
        Self::Bytes(0)
    }
}

/// `fh_workload`: programs that a pattern cannot describe (docs/reference/hosts.md#workloads).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Program {
    /// A file system check: bitmaps and inode table of every block group, over the whole disk.
    Fsck,
    /// A sequential table scan of 8 KiB reads through the page cache.
    DbScan,
    /// An application that starts: cold reads that depend on each other, with computing in between.
    StartUp(Application),
    /// A recorded start-up, [`Job::startup_trace`](super::Job::startup_trace).
    Replay,
    /// A recorded trace, [`Job::replay`](super::Job::replay).
    Trace,
    /// A media player: 24 frames a second, each with a deadline.
    Player {
        /// The film's bits per second. Default 4 Mbit/s.
        bits_per_s: u64,
    },
}

/// `zonemode=strided`: parts of the file with gaps between them. In sectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Zones {
    /// `zonesize`: how much is moved in a zone before the next one begins. Never 0.
    pub size: u64,
    /// `zonerange`: how long a zone is. Never 0; default `size`.
    pub range: u64,
    /// `zoneskip`: the gap to the next zone. Default 0.
    pub skip: u64,
}

/// The applications whose start-up is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Application {
    /// `xterm /bin/true`: 164 reads, 3.8 MB.
    Xterm,
    /// `gnome-terminal -e /bin/true`: 789 reads, 13 MB.
    GnomeTerminal,
    /// `lowriter --terminate_after_init`: 606 reads, 45 MB.
    LoWriter,
    /// `OpenOffice` Writer: 900 reads.
    OoWriter,
    /// `konsole -e /bin/true`: 2500 reads.
    Konsole,
    /// `bash -c exit`: 41 reads, an assumption.
    Bash,
}

/// `fh_layout`: how files lie on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Layout {
    /// Each in one piece, one after the other.
    #[default]
    Contiguous,
    /// The files of all clones in turn, in pieces of that many bytes: what several writers in one directory
    /// leave.
    Interleaved {
        /// Bytes per piece; a multiple of 512.
        piece_bytes: u32,
    },
    /// The layout of ext2's allocator for files that are written at the same time.
    Ext2,
    /// In pieces all over the disk.
    Scattered,
}

/// `fh_metadata`: whether the host knows where the files' blocks are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Metadata {
    /// It does.
    #[default]
    Cached,
    /// Only of the first 48 KiB: the first direct call to each further 4 MiB reads an indirect block before
    /// its data, as on ext2.
    Cold,
}

/// `fh_start`: where the first file goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// At that sector.
    At(Sector),
    /// At that share of the disk, in percent: 0 the outermost tracks, 100 the end.
    Percent(u8),
}
