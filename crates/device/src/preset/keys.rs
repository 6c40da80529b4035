//! The keys of each kind of device: which there are, which of them are needed, where each one's value goes,
//! and what options are by default.

use super::values::Slot;
use crate::params::{
    CacheMode, CardParams, DeviceParams, DiskParams, Layout, Queues, RaStop, Raid0Params, Raid1Params,
    SlcFull, SsdParams,
};
use fairhead_core::units::{Duration, Sectors};

impl DeviceParams {
    /// Where the value of a key goes.
    pub(super) fn slot(&mut self, key: &str) -> Option<Slot<'_>> {
        match self {
            Self::Disk(p) => disk_slot(p, key),
            Self::Card(p) => card_slot(p, key),
            Self::Ssd(p) => ssd_slot(p, key),
            Self::Raid1(p) => raid1_slot(p, key),
            Self::Raid0(p) => raid0_slot(p, key),
        }
    }

    /// All keys, those without a default first, and how many those are.
    pub(super) fn keys(&self) -> (&'static [&'static str], usize) {
        match self {
            Self::Disk(_) => (DISK_KEYS, DISK_REQUIRED),
            Self::Card(_) => (CARD_KEYS, CARD_REQUIRED),
            Self::Ssd(_) => (SSD_KEYS, SSD_REQUIRED),
            Self::Raid1(_) => (RAID1_KEYS, RAID1_REQUIRED),
            Self::Raid0(_) => (RAID0_KEYS, RAID0_REQUIRED),
        }
    }
}

/// What a drive's description cannot do without.
const DISK_REQUIRED: usize = 20;
const DISK_KEYS: &[&str] = &[
    "rpm",
    "heads",
    "zones",
    "t_switch",
    "seek_a",
    "seek_b",
    "seek_knee",
    "seek_c",
    "write_settle",
    "ov_hit",
    "ov_miss",
    "ov_write",
    "ov_dest",
    "bus_rate",
    "buffer",
    "nseg",
    "ra_max",
    "wc_slots",
    "wc_bytes",
    "queue_depth",
    "actuators",
    "layout",
    "ov_flush",
    "low_water",
    "ra_abort",
    "ra_keep",
    "stream_gap",
    "ra_on_hit",
    "min_ra",
    "read_on_arrival",
    "cache_mode",
    "wc_delay",
    "destage_idle_only",
    "age_weight",
    "age_max",
    "stream_burst",
    "max_request",
    "driver",
    "map",
    "map_capacity",
    "seek_table",
    "overheads",
    "read_watermark",
    "watermark_of_segment",
    "partial_hits",
    "keeps_requested",
    "read_cache",
    "segment",
    "ra_stop",
    "read_anywhere",
    "write_anywhere",
    "wc_merge",
    "write_seek_min",
    "write_settle_less",
];

fn disk_slot<'a>(p: &'a mut DiskParams, key: &str) -> Option<Slot<'a>> {
    Some(match key {
        "rpm" => Slot::Count(&mut p.rpm),
        "heads" => Slot::Count(&mut p.heads),
        "actuators" => Slot::Count(&mut p.actuators),
        "zones" => Slot::Zones(&mut p.zones),
        "t_switch" => Slot::Time(&mut p.t_switch),
        "seek_a" => Slot::Time(&mut p.seek_a),
        "seek_b" => Slot::Time(&mut p.seek_b),
        "seek_knee" => Slot::Count64(&mut p.seek_knee),
        "seek_c" => Slot::Picoseconds(&mut p.seek_c_ps),
        "write_settle" => Slot::Time(&mut p.write_settle),
        "write_settle_less" => Slot::Time(&mut p.write_settle_less),
        "ov_hit" => Slot::Time(&mut p.ov_hit),
        "ov_miss" => Slot::Time(&mut p.ov_miss),
        "ov_write" => Slot::Time(&mut p.ov_write),
        "ov_dest" => Slot::Time(&mut p.ov_dest),
        "ov_flush" => Slot::Time(&mut p.ov_flush),
        "bus_rate" => Slot::Rate(&mut p.bus_rate),
        "buffer" => Slot::Bytes(&mut p.buffer_bytes),
        "nseg" => Slot::Count(&mut p.nseg),
        "ra_max" => Slot::Sectors(&mut p.ra_max),
        "low_water" => Slot::Permille(&mut p.low_water_permille),
        "ra_abort" => Slot::Abort(&mut p.ra_abort),
        "ra_keep" => Slot::Count(&mut p.ra_keep),
        "stream_gap" => Slot::Sectors(&mut p.stream_gap),
        "ra_on_hit" => Slot::Flag(&mut p.ra_on_hit),
        "min_ra" => Slot::Sectors(&mut p.min_ra),
        "read_on_arrival" => Slot::Flag(&mut p.read_on_arrival),
        "cache_mode" => Slot::Mode(&mut p.cache_mode),
        "wc_slots" => Slot::Count(&mut p.wc_slots),
        "wc_bytes" => Slot::Bytes(&mut p.wc_bytes),
        "wc_delay" => Slot::Time(&mut p.wc_delay),
        "destage_idle_only" => Slot::Flag(&mut p.destage_idle_only),
        "queue_depth" => Slot::Count16(&mut p.queue_depth),
        "age_weight" => Slot::Permille(&mut p.age_weight_permille),
        "age_max" => Slot::Time(&mut p.age_max),
        "stream_burst" => Slot::Sectors(&mut p.stream_burst),
        "max_request" => Slot::Sectors(&mut p.max_request),
        "driver" => Slot::Driver(&mut p.driver),
        "layout" => Slot::Layout(&mut p.layout),
        "map" => Slot::Map(&mut p.map),
        "map_capacity" => Slot::Capacity(&mut p.map_capacity),
        "seek_table" => Slot::SeekTable(&mut p.seek_table),
        "overheads" => Slot::Overheads(&mut p.overheads),
        "read_watermark" => Slot::Watermark(&mut p.read_watermark_permille),
        "watermark_of_segment" => Slot::Flag(&mut p.watermark_of_segment),
        "partial_hits" => Slot::Flag(&mut p.partial_hits),
        "keeps_requested" => Slot::Flag(&mut p.keeps_requested),
        "read_cache" => Slot::Flag(&mut p.read_cache),
        "segment" => Slot::Sectors(&mut p.segment),
        "ra_stop" => Slot::RaStop(&mut p.ra_stop),
        "read_anywhere" => Slot::Flag(&mut p.read_anywhere),
        "write_anywhere" => Slot::Flag(&mut p.write_anywhere),
        "wc_merge" => Slot::Flag(&mut p.wc_merge),
        "write_seek_min" => Slot::Time(&mut p.write_seek_min),
        _ => return None,
    })
}

/// A drive of which nothing is known but the defaults of the options.
pub(crate) fn blank_disk() -> DiskParams {
    let (t, none) = (Duration::ZERO, Sectors(0));
    DiskParams {
        name: String::new(),
        about: String::new(),
        rpm: 0,
        heads: 0,
        actuators: 1,
        zones: Vec::new(),
        layout: Layout::CylinderMajor,
        t_switch: t,
        seek_a: t,
        seek_b: t,
        seek_knee: 0,
        seek_c_ps: 0,
        write_settle: t,
        write_settle_less: t,
        ov_hit: t,
        ov_miss: t,
        ov_write: t,
        ov_dest: t,
        //= docs/reference/devices.md#15-write-buffer-and-destaging
        //= docs/reference/devices.md#14-read-buffer-and-look-ahead, docs/reference/devices.md#16-queueing
        ov_flush: Duration::from_us(100),
        bus_rate: 0,
        nseg: 0,
        buffer_bytes: 0,
        ra_max: none,
        low_water_permille: 500,
        ra_abort: None,
        ra_keep: 2,
        stream_gap: Sectors(64),
        ra_on_hit: false,
        min_ra: none,
        read_on_arrival: false,
        cache_mode: CacheMode::WriteBack,
        wc_slots: 0,
        wc_bytes: 0,
        wc_delay: t,
        destage_idle_only: false,
        queue_depth: 0,
        //= docs/reference/devices.md#16-queueing: 0.02 to 0.1; 500 ms; 2 MB
        age_weight_permille: 20,
        age_max: Duration::from_ms(500),
        stream_burst: Sectors(4096),
        max_request: Sectors(1024),
        driver: None,
        map: Vec::new(),
        map_capacity: 0,
        seek_table: Vec::new(),
        overheads: None,
        read_watermark_permille: None,
        watermark_of_segment: false,
        partial_hits: true,
        keeps_requested: false,
        read_cache: true,
        segment: none,
        ra_stop: RaStop::Never,
        read_anywhere: false,
        write_anywhere: false,
        wc_merge: true,
        write_seek_min: t,
    }
}

/// What a card's description cannot do without.
const CARD_REQUIRED: usize = 5;
const CARD_KEYS: &[&str] = &[
    "capacity",
    "read_latency",
    "read_per_kib",
    "write_latency",
    "write_per_kib",
    "read_cross",
    "au",
    "open_au",
    "copy_per_kib",
    "t_erase",
    "page_rmw",
    "au_log",
    "max_request",
    "driver",
];

fn card_slot<'a>(p: &'a mut CardParams, key: &str) -> Option<Slot<'a>> {
    Some(match key {
        "capacity" => Slot::Capacity(&mut p.capacity),
        "read_latency" => Slot::Time(&mut p.read_latency),
        "read_per_kib" => Slot::Picoseconds(&mut p.read_per_kib_ps),
        "read_cross" => Slot::Time(&mut p.read_cross),
        "write_latency" => Slot::Time(&mut p.write_latency),
        "write_per_kib" => Slot::Picoseconds(&mut p.write_per_kib_ps),
        "au" => Slot::Sectors(&mut p.au),
        "open_au" => Slot::Count(&mut p.open_au),
        "copy_per_kib" => Slot::Picoseconds(&mut p.copy_per_kib_ps),
        "t_erase" => Slot::Time(&mut p.t_erase),
        "page_rmw" => Slot::Time(&mut p.page_rmw),
        "au_log" => Slot::Count(&mut p.au_log),
        "max_request" => Slot::Sectors(&mut p.max_request),
        "driver" => Slot::Driver(&mut p.driver),
        _ => return None,
    })
}

/// A card of which nothing is known but the defaults of the options.
pub(super) fn blank_card() -> CardParams {
    let t = Duration::ZERO;
    CardParams {
        name: String::new(),
        about: String::new(),
        capacity: 0,
        read_latency: t,
        read_per_kib_ps: 0,
        read_cross: t,
        write_latency: t,
        write_per_kib_ps: 0,
        //= docs/reference/devices.md#21-simple-cards
        //= docs/reference/devices.md#33-flashcard2010: 4 MiB typical, 2 open
        au: Sectors(8192),
        open_au: 2,
        copy_per_kib_ps: 0,
        t_erase: t,
        page_rmw: t,
        au_log: 16,
        max_request: Sectors(256),
        driver: None,
    }
}

/// What a solid-state device's description cannot do without.
const SSD_REQUIRED: usize = 14;
const SSD_KEYS: &[&str] = &[
    "capacity",
    "channels",
    "dies_per_channel",
    "page",
    "t_read",
    "t_prog",
    "t_erase",
    "channel_rate",
    "link_rate",
    "t_cmd",
    "t_fix",
    "t_fix_write",
    "queue_depth",
    "write_buffer",
    "planes",
    "pages_per_block",
    "t_prog_slc",
    "t_suspend",
    "half_duplex",
    "cmd_servers",
    "t_flush",
    "flush_queued",
    "power_loss_protection",
    "shared_buffer",
    "slc",
    "slc_dynamic",
    "slc_full",
    "slc_fill",
    "slc_idle",
    "cell_bits",
    "fill",
    "copy_back",
    "pcie",
    "pcie_lanes",
    "spare",
    "hot_parts",
    "write_amplification",
    "prefetch",
    "au",
    "open_au",
    "copy_per_kib",
    "page_rmw",
    "au_log",
    "max_request",
    "driver",
];

fn ssd_slot<'a>(p: &'a mut SsdParams, key: &str) -> Option<Slot<'a>> {
    Some(match key {
        "capacity" => Slot::Capacity(&mut p.capacity),
        "channels" => Slot::Count(&mut p.channels),
        "dies_per_channel" => Slot::Count(&mut p.dies_per_channel),
        "page" => Slot::Sectors(&mut p.page),
        "t_read" => Slot::Time(&mut p.t_read),
        "t_prog" => Slot::Time(&mut p.t_prog),
        "t_erase" => Slot::Time(&mut p.t_erase),
        "channel_rate" => Slot::Rate(&mut p.channel_rate),
        "link_rate" => Slot::Rate(&mut p.link_rate),
        "t_cmd" => Slot::Time(&mut p.t_cmd),
        "t_fix" => Slot::Time(&mut p.t_fix),
        "t_fix_write" => Slot::Time(&mut p.t_fix_write),
        "queue_depth" => Slot::Count16(&mut p.queue_depth),
        "write_buffer" => Slot::Bytes(&mut p.write_buffer),
        "planes" => Slot::Count(&mut p.planes),
        "pages_per_block" => Slot::Count(&mut p.pages_per_block),
        "t_prog_slc" => Slot::Time(&mut p.t_prog_slc),
        "t_suspend" => Slot::Time(&mut p.t_suspend),
        "half_duplex" => Slot::Flag(&mut p.half_duplex),
        "cmd_servers" => Slot::Count(&mut p.cmd_servers),
        "t_flush" => Slot::Time(&mut p.t_flush),
        "flush_queued" => Slot::Flag(&mut p.flush_queued),
        "power_loss_protection" => Slot::Flag(&mut p.power_loss_protection),
        "shared_buffer" => Slot::Flag(&mut p.shared_buffer),
        "slc" => Slot::Bytes(&mut p.slc),
        "slc_dynamic" => Slot::Bytes(&mut p.slc_dynamic),
        "slc_full" => Slot::SlcFull(&mut p.slc_full),
        "slc_fill" => Slot::Permille(&mut p.slc_fill_permille),
        "slc_idle" => Slot::Time(&mut p.slc_idle),
        "cell_bits" => Slot::Count(&mut p.cell_bits),
        "fill" => Slot::Permille(&mut p.fill_permille),
        "copy_back" => Slot::Flag(&mut p.copy_back),
        "pcie" => Slot::Count(&mut p.pcie),
        "pcie_lanes" => Slot::Count(&mut p.pcie_lanes),
        "spare" => Slot::Permille(&mut p.spare_permille),
        "hot_parts" => Slot::Flag(&mut p.hot_parts),
        "write_amplification" => Slot::Times(&mut p.write_amplification_permille),
        "prefetch" => Slot::Bytes(&mut p.prefetch),
        "au" => Slot::Sectors(&mut p.au),
        "open_au" => Slot::Count(&mut p.open_au),
        "copy_per_kib" => Slot::Picoseconds(&mut p.copy_per_kib_ps),
        "page_rmw" => Slot::Time(&mut p.page_rmw),
        "au_log" => Slot::Count(&mut p.au_log),
        "max_request" => Slot::Sectors(&mut p.max_request),
        "driver" => Slot::Driver(&mut p.driver),
        _ => return None,
    })
}

/// A solid-state device of which nothing is known but the defaults of the options.
pub(super) fn blank_ssd() -> SsdParams {
    let (t, none) = (Duration::ZERO, Sectors(0));
    SsdParams {
        name: String::new(),
        about: String::new(),
        capacity: 0,
        channels: 0,
        dies_per_channel: 0,
        planes: 1,
        page: none,
        pages_per_block: 256,
        t_read: t,
        t_prog: t,
        // Of use only with an SLC cache.
        t_prog_slc: Duration::from_us(200),
        t_erase: t,
        t_suspend: t,
        channel_rate: 0,
        link_rate: 0,
        half_duplex: false,
        t_cmd: t,
        cmd_servers: 1,
        t_fix: t,
        t_fix_write: t,
        queue_depth: 0,
        write_buffer: 0,
        //= docs/reference/devices.md#22-sata-ssds: 0.5 to 3 ms; at least 0.1 s; 7 % is 1024 sold as 953
        t_flush: Duration::from_us(500),
        flush_queued: false,
        power_loss_protection: false,
        slc: 0,
        slc_dynamic: 0,
        slc_full: SlcFull::Direct,
        slc_fill_permille: 0,
        shared_buffer: false,
        cell_bits: 3,
        fill_permille: 1000,
        copy_back: true,
        pcie: 0,
        pcie_lanes: 4,
        slc_idle: Duration::from_ms(100),
        spare_permille: 70,
        hot_parts: false,
        write_amplification_permille: None,
        prefetch: 0,
        au: none,
        //= docs/reference/devices.md#21-simple-cards: as of a card
        open_au: 2,
        copy_per_kib_ps: 0,
        page_rmw: t,
        au_log: 16,
        max_request: Sectors(1024),
        driver: None,
    }
}

/// What a set's description cannot do without.
const RAID1_REQUIRED: usize = 1;
const RAID1_KEYS: &[&str] = &["members", "queues"];

fn raid1_slot<'a>(p: &'a mut Raid1Params, key: &str) -> Option<Slot<'a>> {
    Some(match key {
        "members" => Slot::Members(&mut p.members),
        "queues" => Slot::Queues(&mut p.queues),
        _ => return None,
    })
}

/// A set without members.
pub(super) fn blank_raid1() -> Raid1Params {
    Raid1Params { name: String::new(), about: String::new(), members: Vec::new(), queues: Queues::default() }
}

const RAID0_REQUIRED: usize = 1;
const RAID0_KEYS: &[&str] = &["members", "chunk", "queues"];

fn raid0_slot<'a>(p: &'a mut Raid0Params, key: &str) -> Option<Slot<'a>> {
    Some(match key {
        "members" => Slot::Members(&mut p.members),
        "chunk" => Slot::Sectors(&mut p.chunk),
        "queues" => Slot::Queues(&mut p.queues),
        _ => return None,
    })
}

/// A stripe without members, with the chunk that Linux md takes.
//= mdadm(8) "--chunk": the default is 512 KiB
pub(super) fn blank_raid0() -> Raid0Params {
    Raid0Params {
        name: String::new(),
        about: String::new(),
        members: Vec::new(),
        chunk: Sectors(1024),
        queues: Queues::default(),
    }
}
