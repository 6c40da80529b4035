//! Whether a model's parameters are possible, and what is wrong if not: the key, and what would be right.

use super::{
    CardParams, DeviceParams, DiskParams, Layout, ParamError, Raid0Params, Raid1Params, SlcFull, SsdParams,
    zone_sectors,
};
use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use fairhead_core::elevator::Actuators;
use fairhead_core::units::Duration;

/// An impossible value, before it is known where it was written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Fault {
    pub(crate) key: &'static str,
    pub(crate) why: String,
}

impl Fault {
    /// As an error of the device called `name`.
    pub(crate) fn of(self, name: &str) -> ParamError {
        ParamError(format!("{}: {}: {}", printable(name), self.key, self.why))
    }
}

/// A word from a file, fit for one line of a message: without control characters, and not too long.
pub(crate) fn printable(word: &str) -> String {
    let mut out: String = word.chars().take(60).flat_map(char::escape_debug).collect();
    if word.chars().nth(60).is_some() {
        out.push('…');
    }
    out
}

fn fault<T>(key: &'static str, why: String) -> Result<T, Fault> {
    Err(Fault { key, why })
}

fn count(key: &'static str, v: u64, lo: u64, hi: u64) -> Result<(), Fault> {
    if (lo..=hi).contains(&v) { Ok(()) } else { fault(key, format!("{v} is out of range: {lo} to {hi}")) }
}

fn time(key: &'static str, v: Duration, most: Duration) -> Result<(), Fault> {
    if v <= most { Ok(()) } else { fault(key, format!("{v} is out of range: 0ns to {most}")) }
}

fn bytes(key: &'static str, v: u64, lo: u64, hi: u64) -> Result<(), Fault> {
    if (lo..=hi).contains(&v) { Ok(()) } else { fault(key, format!("{v}B is out of range: {lo}B to {hi}B")) }
}

/// Below 1 MB/s the time of the largest request would not fit 64 bits of picoseconds.
fn rate(key: &'static str, v: u64) -> Result<(), Fault> {
    if (1_000_000..=1_000_000_000_000).contains(&v) {
        Ok(())
    } else {
        fault(key, format!("{v}B/s is out of range: 1MB/s to 1000GB/s"))
    }
}

/// Overheads, settling and switches: at most a second.
const SECOND: Duration = Duration::from_secs(1);
/// Delays and ages: at most an hour.
const HOUR: Duration = Duration::from_secs(3600);
const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
/// The most tracks of a drive: 10^9 tracks of at most 1.1 s keep the phase function within 64 bits.
const TRACKS_MAX: u64 = 1_000_000_000;
/// The most a request can count.
const REQUEST_MAX: u64 = u32::MAX as u64 * 512;

impl DiskParams {
    /// Whether a drive like this is possible.
    pub(crate) fn check(&self) -> Result<(), Fault> {
        self.check_geometry()?;
        self.check_seek()?;
        for (key, v) in [
            ("ov_hit", self.ov_hit),
            ("ov_miss", self.ov_miss),
            ("ov_write", self.ov_write),
            ("ov_dest", self.ov_dest),
            ("ov_flush", self.ov_flush),
            ("ra_abort", self.ra_abort.unwrap_or_default()),
        ] {
            time(key, v, SECOND)?;
        }
        rate("bus_rate", self.bus_rate)?;
        self.check_buffers()?;
        self.check_actuators()?;
        self.check_overheads()?;
        self.check_map()?;
        count("queue_depth", u64::from(self.queue_depth), 1, 1024)?;
        if self.age_weight_permille > 1000 {
            return fault("age_weight", "must be 0 to 1".to_owned());
        }
        time("age_max", self.age_max, HOUR)?;
        bytes("max_request", self.max_request.bytes(), 4 * KIB, REQUEST_MAX)
    }

    fn check_geometry(&self) -> Result<(), Fault> {
        count("rpm", u64::from(self.rpm), 60, 100_000)?;
        count("heads", u64::from(self.heads), 1, 1000)?;
        time("t_switch", self.t_switch, Duration::from_ms(100))?;
        count("zones", self.zones.len() as u64, 1, 1000)?;
        let mut tracks = 0;
        for (i, z) in self.zones.iter().enumerate() {
            let bad = |why: String| fault("zones", format!("zone {i}: {why}"));
            if !(1..=TRACKS_MAX).contains(&z.tracks) {
                return bad(format!("{} tracks are out of range: 1 to {TRACKS_MAX}", z.tracks));
            }
            if !(1..=100_000).contains(&z.spt) {
                return bad(format!("{} sectors per track are out of range: 1 to 100000", z.spt));
            }
            if i > 0 && self.map.is_empty() && z.spt > self.zones[i - 1].spt {
                return bad(format!(
                    "{} sectors per track after {}: zones go from the outside in, with fewer each time",
                    z.spt,
                    self.zones[i - 1].spt
                ));
            }
            tracks += z.tracks;
            if tracks > TRACKS_MAX {
                return bad(format!("more than {TRACKS_MAX} tracks in all"));
            }
        }
        if let Layout::SurfaceSerpentine { tracks } = self.layout {
            count("layout", u64::from(tracks), 1, 1_000_000)?;
        }
        Ok(())
    }

    /// Each actuator gets something of everything, and the same number of surfaces.
    fn check_actuators(&self) -> Result<(), Fault> {
        count("actuators", u64::from(self.actuators), 1, Actuators::MAX as u64)?;
        let n = u64::from(self.actuators);
        let least = self.zones.iter().map(|z| z.tracks).min().unwrap_or(0);
        let shared = [u64::from(self.nseg), u64::from(self.wc_slots), least];
        if !self.heads.is_multiple_of(self.actuators) || shared.iter().any(|&s| s < n) {
            return fault(
                "actuators",
                format!(
                    "{n} need a multiple of {n} heads and {n} segments, cache slots and tracks of each zone"
                ),
            );
        }
        if self.ra_max.bytes() > self.buffer_bytes / n || self.wc_bytes / n < 4 * KIB {
            return fault(
                "actuators",
                format!("{n} need ra_max and 4096B of wc_bytes in a {n}th of the buffers"),
            );
        }
        Ok(())
    }

    fn check_overheads(&self) -> Result<(), Fault> {
        let Some(o) = self.overheads else { return Ok(()) };
        let pairs = [o.read_hit, o.read_miss, o.read_leave, o.write_hit, o.write_miss, o.write_data];
        let ends = [o.read_join, o.read_end, o.write_end, o.write_media_end];
        pairs.iter().flatten().chain(&ends).try_for_each(|&v| time("overheads", v, SECOND))
    }

    /// What is exact must fit what is not.
    fn check_map(&self) -> Result<(), Fault> {
        if self.seek_table.windows(2).any(|w| w[0].0 >= w[1].0) || self.seek_table.iter().any(|s| s.0 == 0) {
            return fault("seek_table", "needs ascending cylinders from 1 on".to_owned());
        }
        for &(_, v) in &self.seek_table {
            time("seek_table", v, SECOND)?;
        }
        if self.read_watermark_permille.is_some_and(|w| w > 1000) {
            return fault("read_watermark", "must be 0 to 1".to_owned());
        }
        if self.map.is_empty() {
            return Ok(());
        }
        if self.actuators > 1 || self.layout != Layout::CylinderMajor || self.map.len() != self.zones.len() {
            return fault("map", "needs one actuator, whole cylinders and one of `zones` each".to_owned());
        }
        let (mut next, heads) = (0, u64::from(self.heads));
        for (i, z) in self.map.iter().enumerate() {
            let same =
                z.cylinders.saturating_mul(heads) == self.zones[i].tracks && z.spt == self.zones[i].spt;
            let tracks = z.unit.map_or(1, |u| u.tracks);
            let room = z.unit.is_none_or(|u| {
                (1..=TRACKS_MAX).contains(&u.tracks) && u.spares < u.tracks * u64::from(z.spt)
            });
            let skews = [z.track_skew, z.cylinder_skew, z.offset].iter().all(|&s| s <= 1_000_000_000);
            let ordered = z.slips.is_sorted() && z.first_cylinder >= next;
            if !(same && room && skews && ordered) || z.first_cylinder > TRACKS_MAX || tracks == 0 {
                return fault(
                    "map",
                    format!(
                        "zone {i} is inconsistent: its tracks, slips or first cylinder do not fit the zones before it"
                    ),
                );
            }
            if zone_sectors(z, heads) == 0 {
                return fault("map", format!("zone {i} holds no data"));
            }
            next = z.first_cylinder + z.cylinders;
        }
        Ok(())
    }

    fn check_seek(&self) -> Result<(), Fault> {
        time("seek_a", self.seek_a, SECOND)?;
        time("seek_b", self.seek_b, SECOND)?;
        time("write_settle", self.write_settle, SECOND)?;
        time("write_settle_less", self.write_settle_less, SECOND)?;
        time("write_seek_min", self.write_seek_min, SECOND)?;
        count("seek_knee", self.seek_knee, 1, TRACKS_MAX)?;
        let b = u128::from(self.seek_b.as_ns());
        // (1 s)^2 in ns^2: the square root part of the curve stays below a second.
        if b * b * u128::from(self.seek_knee) > 1_000_000_000_000_000_000 {
            return fault(
                "seek_b",
                format!("{} times the root of {} cylinders is over 1s", self.seek_b, self.seek_knee),
            );
        }
        if self.seek_c_ps > 1_000_000_000 {
            return fault("seek_c", format!("{}ps is out of range: 0ns to 1ms", self.seek_c_ps));
        }
        Ok(())
    }

    fn check_buffers(&self) -> Result<(), Fault> {
        count("nseg", u64::from(self.nseg), 1, 1024)?;
        bytes("buffer", self.buffer_bytes, 4 * KIB, 64 * GIB)?;
        if self.ra_max.bytes() > self.buffer_bytes {
            let (ra, buffer) = (self.ra_max.bytes(), self.buffer_bytes);
            return fault("ra_max", format!("{ra}B does not fit a buffer of {buffer}B"));
        }
        if self.low_water_permille > 1000 {
            return fault("low_water", "must be 0 to 1".to_owned());
        }
        if self.min_ra > self.ra_max {
            let (min, max) = (self.min_ra.bytes(), self.ra_max.bytes());
            return fault("min_ra", format!("{min}B is more than ra_max, {max}B"));
        }
        count("wc_slots", u64::from(self.wc_slots), 1, 65_536)?;
        bytes("wc_bytes", self.wc_bytes, 4 * KIB, 64 * GIB)?;
        time("wc_delay", self.wc_delay, HOUR)
    }
}

impl CardParams {
    /// Whether a card like this is possible.
    pub(crate) fn check(&self) -> Result<(), Fault> {
        // 2^40 sectors: 512 TiB.
        bytes("capacity", self.capacity.saturating_mul(512), 64 * KIB, 512 << 40)?;
        for (key, v) in [
            ("read_latency", self.read_latency),
            ("read_cross", self.read_cross),
            ("write_latency", self.write_latency),
            ("t_erase", self.t_erase),
            ("page_rmw", self.page_rmw),
        ] {
            time(key, v, SECOND)?;
        }
        for (key, ps) in [
            ("read_per_kib", self.read_per_kib_ps),
            ("write_per_kib", self.write_per_kib_ps),
            ("copy_per_kib", self.copy_per_kib_ps),
        ] {
            // 2^31 KiB in the largest request, at 1 ms each, are 2^61 ps.
            if ps > 1_000_000_000 {
                return fault(key, format!("{ps}ps is out of range: 0ns to 1ms"));
            }
        }
        bytes("au", self.au.bytes(), 4 * KIB, GIB)?;
        count("open_au", u64::from(self.open_au), 1, 1024)?;
        count("au_log", u64::from(self.au_log), 1, 1_000_000)?;
        bytes("max_request", self.max_request.bytes(), 4 * KIB, REQUEST_MAX)
    }
}

impl SsdParams {
    /// Whether a device like this is possible.
    pub(crate) fn check(&self) -> Result<(), Fault> {
        // 2^40 sectors: 512 TiB.
        bytes("capacity", self.capacity.saturating_mul(512), MIB, 512 << 40)?;
        self.check_flash()?;
        self.check_controller()?;
        self.check_writes()?;
        bytes("max_request", self.max_request.bytes(), 4 * KIB, REQUEST_MAX)
    }

    fn check_flash(&self) -> Result<(), Fault> {
        count("channels", u64::from(self.channels), 1, 64)?;
        count("dies_per_channel", u64::from(self.dies_per_channel), 1, 64)?;
        if self.dies() > 1024 {
            return fault(
                "dies_per_channel",
                format!("{} dies are too many: at most 1024 in all", self.dies()),
            );
        }
        count("planes", u64::from(self.planes), 1, 8)?;
        bytes("page", self.page.bytes(), 4 * KIB, 256 * KIB)?;
        if !self.page.bytes().is_power_of_two() {
            return fault("page", format!("{}B is not a power of two", self.page.bytes()));
        }
        count("pages_per_block", u64::from(self.pages_per_block), 1, 65_536)?;
        for (key, v) in [
            ("t_read", self.t_read),
            ("t_prog", self.t_prog),
            ("t_prog_slc", self.t_prog_slc),
            ("t_erase", self.t_erase),
            ("t_suspend", self.t_suspend),
        ] {
            time(key, v, SECOND)?;
        }
        rate("channel_rate", self.channel_rate)
    }

    fn check_controller(&self) -> Result<(), Fault> {
        for (key, v) in [
            ("t_cmd", self.t_cmd),
            ("t_fix", self.t_fix),
            ("t_fix_write", self.t_fix_write),
            ("t_flush", self.t_flush),
        ] {
            time(key, v, SECOND)?;
        }
        rate("link_rate", self.link_rate)?;
        self.check_pcie()?;
        count("cmd_servers", u64::from(self.cmd_servers), 1, 64)?;
        count("queue_depth", u64::from(self.queue_depth), 1, 1024)?;
        if self.prefetch > 0 {
            bytes("prefetch", self.prefetch, self.page.bytes(), GIB)?;
        }
        Ok(())
    }

    /// The link carries no more than its lanes do.
    fn check_pcie(&self) -> Result<(), Fault> {
        count("pcie", u64::from(self.pcie), 0, 6)?;
        count("pcie_lanes", u64::from(self.pcie_lanes), 1, 16)?;
        let most = pcie_rate(self.pcie, self.pcie_lanes);
        if self.pcie > 0 && self.link_rate > most {
            let (mb, lanes) = (most / 1_000_000, self.pcie_lanes);
            return fault(
                "link_rate",
                format!("{}B/s is too much: PCIe {} x{lanes} carries {mb}MB/s", self.link_rate, self.pcie),
            );
        }
        Ok(())
    }

    fn check_writes(&self) -> Result<(), Fault> {
        let unit = self.page.bytes() * u64::from(self.planes);
        count("cell_bits", u64::from(self.cell_bits), 2, 5)?;
        count("fill", u64::from(self.fill_permille), 0, 1000)?;
        count("slc_fill", u64::from(self.slc_fill_permille), 0, 1000)?;
        if self.slc_dynamic > 0 {
            bytes("slc_dynamic", self.slc_dynamic, unit, self.capacity * 512)?;
        }
        if self.slc_full == SlcFull::Fold && self.slc == 0 {
            return fault("slc_full", "\"fold\" needs a part of the cache of its own, slc".to_owned());
        }
        bytes("write_buffer", self.write_buffer, 2 * unit, 4 * GIB)?;
        if self.slc > 0 {
            bytes("slc", self.slc, unit, self.capacity * 512)?;
        }
        time("slc_idle", self.slc_idle, HOUR)?;
        count("spare", u64::from(self.spare_permille), 0, 1000)?;
        if let Some(wa) = self.write_amplification_permille
            && !(1000..=100_000).contains(&wa)
        {
            return fault("write_amplification", "must be 1 to 100".to_owned());
        }
        if self.au.0 == 0 {
            return Ok(());
        }
        bytes("au", self.au.bytes(), 4 * KIB, GIB)?;
        count("open_au", u64::from(self.open_au), 1, 1024)?;
        count("au_log", u64::from(self.au_log), 1, 1_000_000)?;
        time("page_rmw", self.page_rmw, SECOND)?;
        if self.copy_per_kib_ps > 1_000_000_000 {
            return fault("copy_per_kib", format!("{}ps is out of range: 0ns to 1ms", self.copy_per_kib_ps));
        }
        if self.cmd_servers > 1 {
            return fault("cmd_servers", "must be 1 with allocation units".to_owned());
        }
        Ok(())
    }

    fn dies(&self) -> u32 {
        self.channels.saturating_mul(self.dies_per_channel)
    }
}

/// What lanes of a generation carry in one direction, bytes per second: transfers a second, less the line
/// code.
///
/// Packets take a few percent more, so that drives reach at most nine tenths of it.
fn pcie_rate(generation: u32, lanes: u32) -> u64 {
    // Bits of data on a lane in a microsecond.
    let bits: u64 = match generation {
        0 | 1 => 2500 * 8 / 10,
        2 => 5000 * 8 / 10,
        3 => 8000 * 128 / 130,
        4 => 16_000 * 128 / 130,
        5 => 32_000 * 128 / 130,
        // Blocks of 256 bytes with 14 of check and 6 of framing.
        _ => 64_000 * 236 / 256,
    };
    bits * 1_000_000 / 8 * u64::from(lanes)
}

impl Raid1Params {
    /// Whether a set like this is possible.
    pub(crate) fn check(&self) -> Result<(), Fault> {
        count("members", self.members.len() as u64, 2, 8)?;
        no_sets(&self.members)
    }
}

impl Raid0Params {
    /// Whether a stripe like this is possible.
    pub(crate) fn check(&self) -> Result<(), Fault> {
        count("members", self.members.len() as u64, 2, 32)?;
        no_sets(&self.members)?;
        //= md(4), mdadm(8) "--chunk": a multiple of 4 KiB
        bytes("chunk", self.chunk.bytes(), 4 * KIB, GIB)?;
        if !self.chunk.bytes().is_multiple_of(4 * KIB) {
            return fault("chunk", format!("{}B is not a multiple of 4KiB", self.chunk.bytes()));
        }
        Ok(())
    }
}

fn no_sets(members: &[DeviceParams]) -> Result<(), Fault> {
    if members.iter().any(DeviceParams::is_set) {
        return fault("members", "a set cannot contain a set".to_owned());
    }
    Ok(())
}
