//! What describes a device: the numbers that a preset sets, and which of them are possible.
//!
//! All public, so that an experiment may change one number of a preset; [`crate::Device::new`] checks them
//! again. Where a bound below is not physical, it keeps integer arithmetic on nanoseconds within 64 bits: a
//! device can be absurd, but never wrong.
//!
//! What this does not do: read files (`preset/`); describe a host.
//= docs/reference/devices.md#17-parameters, docs/reference/devices.md#21-simple-cards to 2.4

mod check;

pub(crate) use check::{Fault, printable};

use crate::Driver;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use fairhead_core::units::{Duration, Sectors};

/// A run of tracks with the same number of sectors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Zone {
    /// Tracks, at least 1.
    pub tracks: u64,
    /// Sectors per track, at least 1.
    pub spt: u32,
}

/// A zone as a drive's manual, or its extraction, tells it. Skews and the offset are thousandths of a sector.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct MapZone {
    /// The first cylinder; cylinders between zones hold no data.
    pub first_cylinder: u64,
    /// Cylinders, at least 1.
    pub cylinders: u64,
    /// Sectors per track, at least 1.
    pub spt: u32,
    /// From the start of a track to the start of the next on the same cylinder.
    pub track_skew: u64,
    /// From the start of a cylinder's last track to the start of the next cylinder.
    pub cylinder_skew: u64,
    /// The angle of the zone's first sector.
    pub offset: u64,
    /// Sectors without data at the start of the zone.
    pub front: u64,
    /// Spare sectors at the end of the zone.
    pub spares: u64,
    /// The spares of each group of tracks that has its own; `None` if the zone has them.
    pub unit: Option<SpareUnit>,
    /// Bad sectors that are passed over, counted from the start of the zone, in order.
    pub slips: Vec<u64>,
}

/// Spare sectors that return every few tracks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SpareUnit {
    /// Tracks, at least 1.
    pub tracks: u64,
    /// Spare sectors of them, fewer than they have.
    pub spares: u64,
    /// The spares come first, not last.
    pub at_front: bool,
    /// Bad sectors use none of these spares: what comes behind them moves on by one, over the whole zone.
    pub kept: bool,
}

/// Overheads that depend on what the command before was: `[after a read, after a write]`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Overheads {
    /// From the command to the first byte of a hit.
    pub read_hit: [Duration; 2],
    /// From the command to the start of the seek of a miss.
    pub read_miss: [Duration; 2],
    /// From the command to readiness for the data of a write that is done when it is in the buffer.
    pub write_hit: [Duration; 2],
    /// From the command to the start of the seek of any other write.
    pub write_miss: [Duration; 2],
    /// From the command to the first byte of such a write's data.
    pub write_data: [Duration; 2],
    /// From the end of `read_miss` until the drive has let go of the bus; it cannot take it up again before.
    pub read_leave: [Duration; 2],
    /// From the decision to take up the bus for a read from the media until its first byte crosses.
    pub read_join: Duration,
    /// From the last byte of a read to its completion.
    pub read_end: Duration,
    /// From the last byte of a write that is done in the buffer to its completion.
    pub write_end: Duration,
    /// From the last sector on the media to the completion of any other write.
    pub write_media_end: Duration,
}

/// Where look-ahead ends, besides at its length.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum RaStop {
    /// Nowhere.
    #[default]
    Never,
    /// At the end of the track.
    Track,
    /// At the end of the cylinder.
    Cylinder,
    /// At the end of the track; at the end of the next one if the stream came over from the track before.
    NextTrack,
}

/// How tracks follow each other over the surfaces.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Layout {
    /// All tracks of a cylinder, then the next cylinder.
    #[default]
    CylinderMajor,
    /// A number of tracks of one surface, then back on the next.
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
    /// One sentence on what it is.
    pub about: String,
    /// Revolutions per minute.
    pub rpm: u32,
    /// Surfaces.
    pub heads: u32,
    /// Arms that move independently, each with its share of surfaces, sectors and buffer; 1 to 8. Default 1.
    pub actuators: u32,
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
    /// The time by which a seek before a write is shorter; the result is never negative. For measured drives,
    /// some of which settle sooner to write.
    pub write_settle_less: Duration,
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
    /// The number of most recently used segments in which a hit does not stop the look-ahead.
    pub ra_keep: u32,
    /// A read that begins at most this many sectors ahead of the look-ahead waits for it.
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
    /// The earliest start of destage after a write.
    pub wc_delay: Duration,
    /// Destage only while the host waits for nothing (unless the cache is nearly full).
    pub destage_idle_only: bool,
    /// Commands held at once.
    pub queue_depth: u16,
    /// Thousandths of its age that are taken off a command's access time.
    pub age_weight_permille: u32,
    /// A command older than this goes first.
    pub age_max: Duration,
    /// How much of one sequential stream is served in a row while others wait: of reads, or of cached writes
    /// on their way to the media. [`Self::longest_wait`] is what follows for a read.
    pub stream_burst: Sectors,
    /// Largest command.
    pub max_request: Sectors,
    /// The driver that it is behind; `None`: the usual one of such a device.
    pub driver: Option<Driver>,
    /// Exact zones: with skews, spares and bad sectors. Empty, the default: `zones` say all. Else `zones`
    /// repeat their tracks, and `t_switch` is the head switch alone.
    pub map: Vec<MapZone>,
    /// Sectors that the host sees of the map; 0, the default: all.
    pub map_capacity: u64,
    /// Measured seek times by cylinders, in order, straight lines between; empty, the default: `seek_a` to
    /// `seek_c`.
    pub seek_table: Vec<(u64, Duration)>,
    /// Overheads by history, instead of `ov_hit`, `ov_miss` and `ov_write`.
    pub overheads: Option<Overheads>,
    /// The bus takes part of a read so early: when that many thousandths of it, at least a sector, are in the
    /// buffer. The last sector crosses after it was read. `None`, the default: at once, and 4 KiB cross after
    /// they were read.
    pub read_watermark_permille: Option<u32>,
    /// The watermark is a share of `segment`, not of the read. Default no.
    pub watermark_of_segment: bool,
    /// Of a read that is in the buffer in part the bus takes what is there at once, whatever the watermark.
    /// Default yes.
    pub partial_hits: bool,
    /// What the host asked for last stays in its segment: look-ahead ends when the segment is full. Otherwise
    /// look-ahead pushes it out.
    pub keeps_requested: bool,
    /// Reads may be answered from what earlier ones left in the buffer. Default yes.
    pub read_cache: bool,
    /// What one segment of the read buffer holds at most; 0, the default: four times `ra_max`.
    pub segment: Sectors,
    /// Where look-ahead ends, besides at `ra_max`.
    pub ra_stop: RaStop,
    /// A read within one track begins wherever the head comes down on it, not at its first sector. Default
    /// no.
    pub read_anywhere: bool,
    /// Whether a write that is done on the media may start anywhere in its track. Default no.
    pub write_anywhere: bool,
    /// Writes that continue the last one share its place in the write cache. Default yes.
    pub wc_merge: bool,
    /// A write that does not continue the one before it reaches the media after this time at the earliest.
    pub write_seek_min: Duration,
}

/// A flash card without queueing. Times in nanoseconds; costs per KiB in picoseconds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CardParams {
    /// What reports call it.
    pub name: String,
    /// One sentence on what it is.
    pub about: String,
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
    /// The number of small writes off the append point after which an open unit is merged.
    pub au_log: u32,
    /// Largest command.
    pub max_request: Sectors,
    /// The driver that it is behind; `None`: the usual one of such a device.
    pub driver: Option<Driver>,
}

/// What a full SLC cache does with more data.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum SlcFull {
    /// They go to the native cells; the cache is emptied in the gaps.
    #[default]
    Direct,
    /// They wait until as much has moved from the cache to the native cells.
    Fold,
    /// They go to the native cells, and the cache is emptied beside them. It is used again when it is empty.
    Drain,
}

/// A solid-state device: SATA or NVMe drive, eMMC, microSD card. Rates in bytes per second.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SsdParams {
    /// What reports call it.
    pub name: String,
    /// One sentence on what it is.
    pub about: String,
    /// Size in sectors.
    pub capacity: u64,
    /// Buses between controller and flash, 1 to 64.
    pub channels: u32,
    /// Dies on each, 1 to 64; at most 1024 in all.
    pub dies_per_channel: u32,
    /// Planes that program, and read consecutive pages, together; 1 to 8. Default 1.
    pub planes: u32,
    /// What a die reads at once on each plane: a power of two from 4 KiB to 256 KiB.
    pub page: Sectors,
    /// Pages of a block, 1 to 65,536. Default 256.
    pub pages_per_block: u32,
    /// Sensing a page.
    pub t_read: Duration,
    /// Programming a page on every plane.
    pub t_prog: Duration,
    /// The time to program a page of every plane in the SLC cache.
    pub t_prog_slc: Duration,
    /// Erasing a block on every plane.
    pub t_erase: Duration,
    /// What a read waits when it suspends a program or an erase. Default zero: it cannot, it waits for the
    /// end.
    pub t_suspend: Duration,
    /// A channel, bytes per second.
    pub channel_rate: u64,
    /// The link to the host, bytes per second and direction.
    pub link_rate: u64,
    /// Reads and writes share the link. Default no.
    pub half_duplex: bool,
    /// Command processing; commands of one server follow each other.
    pub t_cmd: Duration,
    /// Command processors, 1 to 64. Default 1.
    pub cmd_servers: u32,
    /// From there until the dies may begin with a read; of many commands at a time.
    pub t_fix: Duration,
    /// From there until the data of a write may cross the link.
    pub t_fix_write: Duration,
    /// Commands held at once.
    pub queue_depth: u16,
    /// The write buffer, bytes; at least two programs' worth.
    pub write_buffer: u64,
    /// Reads take their turn for the buffer with writes, so that they wait behind those that find it full.
    /// Default no.
    pub shared_buffer: bool,
    /// The time of a flush beyond what it waits for. Default 0.5 ms.
    pub t_flush: Duration,
    /// A flush is a command like others (NVMe); else nothing is accepted until it is done. Default no.
    pub flush_queued: bool,
    /// Buffered writes survive a power failure, so that a flush waits for nothing. Default no.
    pub power_loss_protection: bool,
    /// The SLC cache in flash of its own, bytes. Default none.
    pub slc: u64,
    /// The additional size of the SLC cache in flash that holds no data, in bytes. Default 0.
    pub slc_dynamic: u64,
    /// What a full SLC cache does with more. Default: lets it pass.
    pub slc_full: SlcFull,
    /// Share of the SLC cache that is in use at first, thousandths; no more than there are data. Default
    /// none.
    pub slc_fill_permille: u32,
    /// Bits of a native cell, 2 to 5: a unit in the SLC cache takes the room of this many. Default 3.
    pub cell_bits: u32,
    /// Share of the capacity that holds data at first, from its beginning, thousandths. Default 1000.
    pub fill_permille: u32,
    /// Garbage collection and folding move pages inside a die; else through the channel. Default yes.
    pub copy_back: bool,
    /// Generation of the PCIe link, 1 to 6, which bounds `link_rate`; zero: the link is none. Default zero.
    pub pcie: u32,
    /// Lanes of it, 1 to 16. Default 4.
    pub pcie_lanes: u32,
    /// The SLC cache is emptied when the host has been idle for this time. Default 100 ms.
    pub slc_idle: Duration,
    /// Over-provisioning: flash beyond the capacity, thousandths of it. Default 70.
    pub spare_permille: u32,
    /// Garbage collection moves data of those parts only that were overwritten at random of late. Default: of
    /// the whole drive.
    pub hot_parts: bool,
    /// Write amplification of random overwrites, thousandths, 1000 to 100,000; `None`: from the spare flash.
    pub write_amplification_permille: Option<u32>,
    /// Read ahead of a sequential reader into memory, bytes. Default none.
    pub prefetch: u64,
    /// Allocation unit of a card that has them; zero: the device maps pages. Default zero.
    pub au: Sectors,
    /// Units that can be open for writing at once.
    pub open_au: u32,
    /// Picoseconds per KiB copied when a unit is closed.
    pub copy_per_kib_ps: u64,
    /// Extra for a small write off the append point of an open unit.
    pub page_rmw: Duration,
    /// The number of small writes off the append point after which an open unit is merged.
    pub au_log: u32,
    /// Largest command.
    pub max_request: Sectors,
    /// The driver that it is behind; `None`: the usual one of such a device.
    pub driver: Option<Driver>,
}

/// Where the members of a set are visible.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Queues {
    /// The host: each member has a queue and a scheduler of its own, as with Linux md.
    #[default]
    PerMember,
    /// A controller: the host sees one disk with one queue, as deep as all of theirs together.
    One,
}

/// Several devices with the same contents.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Raid1Params {
    /// What reports call it.
    pub name: String,
    /// One sentence on what it is.
    pub about: String,
    /// 2 to 8 of them; none is a set itself.
    pub members: Vec<DeviceParams>,
    /// Where the members are visible. Default: to the host.
    pub queues: Queues,
}

/// Several devices whose sectors are used by turns.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Raid0Params {
    /// What reports call it.
    pub name: String,
    /// One sentence on what it is.
    pub about: String,
    /// 2 to 32 of them; none is a set itself.
    pub members: Vec<DeviceParams>,
    /// How many sectors of a member come before those of the next.
    pub chunk: Sectors,
    /// Where the members are visible. Default: to the host.
    pub queues: Queues,
}

/// The description of a device.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
#[allow(clippy::large_enum_variant, reason = "there are a handful of them, and none where it is hot")]
pub enum DeviceParams {
    /// A hard disk.
    Disk(DiskParams),
    /// A flash card.
    Card(CardParams),
    /// A solid-state device.
    Ssd(SsdParams),
    /// Several devices with the same contents.
    Raid1(Raid1Params),
    /// Several devices whose sectors are used by turns.
    Raid0(Raid0Params),
}

impl DeviceParams {
    /// What reports call the device.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Disk(p) => &p.name,
            Self::Card(p) => &p.name,
            Self::Ssd(p) => &p.name,
            Self::Raid1(p) => &p.name,
            Self::Raid0(p) => &p.name,
        }
    }

    /// One sentence on what it is.
    #[must_use]
    pub fn about(&self) -> &str {
        match self {
            Self::Disk(p) => &p.about,
            Self::Card(p) => &p.about,
            Self::Ssd(p) => &p.about,
            Self::Raid1(p) => &p.about,
            Self::Raid0(p) => &p.about,
        }
    }

    /// The members that a host drives through a queue each; none for what is one device to the host.
    #[must_use]
    pub fn members(&self) -> Option<&[Self]> {
        match self {
            Self::Raid1(p) if p.queues == Queues::PerMember => Some(&p.members),
            Self::Raid0(p) if p.queues == Queues::PerMember => Some(&p.members),
            _ => None,
        }
    }

    /// The chunk by which the members' sectors are used by turns; none for what is no stripe.
    #[must_use]
    pub const fn stripe_chunk(&self) -> Option<Sectors> {
        match self {
            Self::Raid0(p) => Some(p.chunk),
            _ => None,
        }
    }

    /// Whether it is made of others.
    const fn is_set(&self) -> bool {
        matches!(self, Self::Raid1(_) | Self::Raid0(_))
    }
}

/// Why a description is no device: one line with file, line and key, and what would be right.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParamError(pub(crate) String);

impl fmt::Display for ParamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for ParamError {}

/// The bad sectors of a zone whose spares are kept, counted without the spares.
pub(crate) fn slots(z: &MapZone, u: SpareUnit) -> Vec<u64> {
    let (unit, before) = (u.tracks * u64::from(z.spt), if u.at_front { u.spares } else { 0 });
    let used = unit - u.spares;
    let slot = |s: &u64| {
        let s = s.checked_sub(z.front)?;
        let within = (s % unit).checked_sub(before).filter(|&w| w < used)?;
        Some(s / unit * used + within)
    };
    z.slips.iter().filter_map(slot).collect()
}

/// Sectors of a zone that hold data.
pub(crate) fn zone_sectors(z: &MapZone, heads: u64) -> u64 {
    let spt = u64::from(z.spt);
    let all = z.cylinders * heads * spt;
    match z.unit {
        Some(u) => {
            let (unit, used) = (u.tracks * spt, u.tracks * spt - u.spares);
            let bad = if u.kept { slots(z, u).len() as u64 } else { 0 };
            (all / unit * used + (all % unit).min(used)).saturating_sub(z.front + bad)
        }
        None => all.saturating_sub(z.front + z.spares.max(z.slips.len() as u64)),
    }
}
