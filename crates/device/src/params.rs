//! What describes a device: the numbers that a preset sets.

use fairhead_core::units::{Duration, Sectors};
use std::fmt;

/// A run of tracks with the same number of sectors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Zone {
    /// Tracks, at least 1.
    pub tracks: u64,
    /// Sectors per track, at least 1.
    pub spt: u32,
}

/// How tracks follow each other over the surfaces.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Layout {
    /// All tracks of a cylinder, then the next cylinder.
    #[default]
    CylinderMajor,
    /// So many tracks of one surface, then back on the next.
    SurfaceSerpentine {
        /// Tracks per surface before the surface changes.
        tracks: u32,
    },
}

/// When a write is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum CacheMode {
    /// When its bytes are in the buffer.
    #[default]
    WriteBack,
    /// When its bytes are on the media.
    WriteThrough,
}

/// A hard disk. Times in nanoseconds, rates in bytes per second.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DiskParams {
    /// What reports call it.
    pub name: String,
    /// Revolutions per minute.
    pub rpm: u32,
    /// Surfaces.
    pub heads: u32,
    /// Outermost first.
    pub zones: Vec<Zone>,
    /// Order of the tracks.
    pub layout: Layout,
    /// Head switch, and the skew between tracks that hides it.
    pub t_switch: Duration,
    /// Single-track seek, settling included.
    pub seek_a: Duration,
    /// Seek time per square root of a cylinder, up to the knee.
    pub seek_b: Duration,
    /// Cylinders from which the seek time grows linearly.
    pub seek_knee: u64,
    /// Picoseconds per cylinder beyond the knee.
    pub seek_c_ps: u64,
    /// What a write waits longer than a read before it may begin.
    pub write_settle: Duration,
    /// From the command to the first byte of a hit.
    pub ov_hit: Duration,
    /// From the command to the start of the seek of a miss.
    pub ov_miss: Duration,
    /// From the command to readiness for the data of a write.
    pub ov_write: Duration,
    /// Set-up of each destaged extent.
    pub ov_dest: Duration,
    /// End of a flush.
    pub ov_flush: Duration,
    /// Interface, bytes per second.
    pub bus_rate: u64,
    /// Segments of the read buffer.
    pub nseg: u32,
    /// All segments together, bytes.
    pub buffer_bytes: u64,
    /// How far look-ahead goes beyond what was asked for. Zero: no look-ahead.
    pub ra_max: Sectors,
    /// Look-ahead resumes when the unread part falls to this many thousandths of `ra_max`.
    pub low_water_permille: u32,
    /// From a miss or foreign hit to the stop of the look-ahead; `None`: as `ov_miss`.
    pub ra_abort: Option<Duration>,
    /// Hits in the so many most recently used segments do not stop the look-ahead.
    pub ra_keep: u32,
    /// A read that begins so few sectors ahead of the look-ahead waits for it.
    pub stream_gap: Sectors,
    /// A hit with the media at rest restarts look-ahead for its stream.
    pub ra_on_hit: bool,
    /// Look-ahead that is always finished before the arm leaves.
    pub min_ra: Sectors,
    /// Keep what passes by while waiting for the first sector.
    pub read_on_arrival: bool,
    /// When a write is done.
    pub cache_mode: CacheMode,
    /// Extents of the write cache.
    pub wc_slots: u32,
    /// Bytes of the write cache.
    pub wc_bytes: u64,
    /// Destage starts so long after a write at the earliest.
    pub wc_delay: Duration,
    /// Destage only while the host waits for nothing (unless the cache is nearly full).
    pub destage_idle_only: bool,
    /// Commands held at once.
    pub queue_depth: u16,
    /// Thousandths of its age that are taken off a command's access time.
    pub age_weight_permille: u32,
    /// A command older than this goes first.
    pub age_max: Duration,
    /// How much of one sequential stream is served in a row while others wait.
    pub stream_burst: Sectors,
    /// Largest command.
    pub max_request: Sectors,
}

/// A flash card without queueing. Times in nanoseconds; costs per KiB in picoseconds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CardParams {
    /// What reports call it.
    pub name: String,
    /// Size in sectors.
    pub capacity: u64,
    /// Fixed part of a read.
    pub read_latency: Duration,
    /// Picoseconds per KiB read.
    pub read_per_kib_ps: u64,
    /// Extra for a read across a boundary of allocation units.
    pub read_cross: Duration,
    /// Fixed part of a write.
    pub write_latency: Duration,
    /// Picoseconds per KiB written.
    pub write_per_kib_ps: u64,
    /// Allocation unit.
    pub au: Sectors,
    /// Units that can be open for writing at once.
    pub open_au: u32,
    /// Picoseconds per KiB copied when a unit is closed.
    pub copy_per_kib_ps: u64,
    /// Erase of a unit.
    pub t_erase: Duration,
    /// Extra for a small write off the append point of an open unit.
    pub page_rmw: Duration,
    /// So many of them and the unit is merged.
    pub au_log: u32,
    /// Largest command.
    pub max_request: Sectors,
}

/// The description of a device.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum DeviceParams {
    /// A hard disk.
    Disk(DiskParams),
    /// A flash card.
    Card(CardParams),
}

/// Why a description is no device: one line with file, line and key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParamError(String);

impl fmt::Display for ParamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ParamError {}

/// The built-in presets, disks first.
#[must_use]
pub fn preset_names() -> &'static [&'static str] {
    &["ide2004", "sata2009", "nas2020", "flashcard2010"]
}

/// The text of a built-in preset.
#[must_use]
pub fn preset_text(_name: &str) -> Option<&'static str> {
    None
}

/// The candidate nearest to `word` by edit distance, if it is near enough to be what was meant.
#[must_use]
pub fn nearest_word<'a>(_word: &str, _candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    None
}

impl DeviceParams {
    /// A built-in preset.
    ///
    /// # Errors
    /// When there is no such preset; the error names the nearest.
    pub fn preset(name: &str) -> Result<Self, ParamError> {
        Err(ParamError(format!("preset {name}: not there yet")))
    }

    /// A user's preset. `file_name` is for error messages.
    ///
    /// # Errors
    /// The first thing that is wrong, with line and key.
    pub fn from_toml(_text: &str, file_name: &str) -> Result<Self, ParamError> {
        Err(ParamError(format!("{file_name}: not there yet")))
    }
}
