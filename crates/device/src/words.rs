//! A device's description as a row of integers, for a host that reads no files: the kernel.
//!
//! ```text
//!     shape  kind  name…  about…  rpm  heads  …        each field in the order of its struct
//!     Vec, String: length, then the elements (eight bytes of text in a word)
//!     Option:      0; or 1, then the value
//! ```
//!
//! The row is for a build of the same sources. Its first word is made of the names of all fields, so a row
//! that another version has written is refused, not misread. What is read is checked as a file is, by
//! [`Device::new`](crate::Device::new).

use crate::Driver;
use crate::params::{
    CacheMode, CardParams, DeviceParams, DiskParams, Layout, MapZone, Overheads, ParamError, Queues, RaStop,
    Raid0Params, Raid1Params, SlcFull, SpareUnit, SsdParams, Zone,
};
use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;
use fairhead_core::units::{Duration, Sectors};

impl DeviceParams {
    /// The description as a row of integers. [`from_words`](Self::from_words) makes the same of it.
    ///
    /// ```
    /// use fairhead_device::DeviceParams;
    /// let disk = DeviceParams::preset("nas2020")?;
    /// assert_eq!(DeviceParams::from_words(&disk.to_words())?, disk);
    /// # Ok::<(), fairhead_device::ParamError>(())
    /// ```
    #[must_use]
    pub fn to_words(&self) -> Vec<u64> {
        let mut out = Vec::new();
        SHAPE.put(&mut out);
        self.put(&mut out);
        out
    }

    /// The device that [`to_words`](Self::to_words) wrote.
    ///
    /// # Errors
    /// When another version wrote the row, or when it is cut or too long.
    pub fn from_words(words: &[u64]) -> Result<Self, ParamError> {
        let mut rest = words;
        let wrong = |why: &str| ParamError(why.to_owned());
        if u64::take(&mut rest) != Some(SHAPE) {
            return Err(wrong("this row of numbers is of another version; write it anew"));
        }
        match take_any(&mut rest) {
            Some(params) if rest.is_empty() => Ok(params),
            Some(_) => Err(wrong("this row of numbers is longer than a disk")),
            None => Err(wrong("this row of numbers is cut, or has a number that cannot be")),
        }
    }
}

/// What can be written as words and read again.
trait Words: Sized {
    fn put(&self, out: &mut Vec<u64>);
    /// The value at the start of the row, which becomes shorter; `None` if there is none.
    fn take(row: &mut &[u64]) -> Option<Self>;
}

impl Words for u64 {
    fn put(&self, out: &mut Vec<u64>) {
        out.push(*self);
    }

    fn take(row: &mut &[u64]) -> Option<Self> {
        row.split_off_first().copied()
    }
}

macro_rules! integers {
    ($($type:ty),*) => { $(
        impl Words for $type {
            fn put(&self, out: &mut Vec<u64>) {
                out.push(u64::from(*self));
            }

            fn take(row: &mut &[u64]) -> Option<Self> {
                Self::try_from(u64::take(row)?).ok()
            }
        }
    )* };
}
integers!(u32, u16);

impl Words for bool {
    fn put(&self, out: &mut Vec<u64>) {
        out.push(u64::from(*self));
    }

    fn take(row: &mut &[u64]) -> Option<Self> {
        match u64::take(row)? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }
}

impl Words for Duration {
    fn put(&self, out: &mut Vec<u64>) {
        self.as_ns().put(out);
    }

    fn take(row: &mut &[u64]) -> Option<Self> {
        u64::take(row).map(Self::from_ns)
    }
}

impl Words for Sectors {
    fn put(&self, out: &mut Vec<u64>) {
        self.0.put(out);
    }

    fn take(row: &mut &[u64]) -> Option<Self> {
        u32::take(row).map(Self)
    }
}

impl Words for String {
    fn put(&self, out: &mut Vec<u64>) {
        out.push(self.len() as u64);
        for bytes in self.as_bytes().chunks(8) {
            out.push(bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)));
        }
    }

    fn take(row: &mut &[u64]) -> Option<Self> {
        let length = usize::take(row)?;
        let words = row.split_off(..length.div_ceil(8))?;
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.truncate(length);
        Self::from_utf8(bytes).ok()
    }
}

impl Words for usize {
    fn put(&self, out: &mut Vec<u64>) {
        out.push(*self as u64);
    }

    fn take(row: &mut &[u64]) -> Option<Self> {
        Self::try_from(u64::take(row)?).ok()
    }
}

impl<T: Words> Words for Vec<T> {
    fn put(&self, out: &mut Vec<u64>) {
        self.len().put(out);
        self.iter().for_each(|each| each.put(out));
    }

    fn take(row: &mut &[u64]) -> Option<Self> {
        // No element is shorter than a word, so a length beyond the row is wrong, and nothing is allocated.
        let length = usize::take(row).filter(|n| *n <= row.len())?;
        (0..length).map(|_| T::take(row)).collect()
    }
}

impl<T: Words> Words for Option<T> {
    fn put(&self, out: &mut Vec<u64>) {
        self.is_some().put(out);
        if let Some(value) = self {
            value.put(out);
        }
    }

    fn take(row: &mut &[u64]) -> Option<Self> {
        if bool::take(row)? { T::take(row).map(Some) } else { Some(None) }
    }
}

impl<A: Words, B: Words> Words for (A, B) {
    fn put(&self, out: &mut Vec<u64>) {
        self.0.put(out);
        self.1.put(out);
    }

    fn take(row: &mut &[u64]) -> Option<Self> {
        Some((A::take(row)?, B::take(row)?))
    }
}

impl<T: Words> Words for [T; 2] {
    fn put(&self, out: &mut Vec<u64>) {
        self.iter().for_each(|each| each.put(out));
    }

    fn take(row: &mut &[u64]) -> Option<Self> {
        Some([T::take(row)?, T::take(row)?])
    }
}

/// Adds the bytes of a text to a hash.
const fn hash(mut hash: u64, text: &str) -> u64 {
    let (bytes, mut i) = (text.as_bytes(), 0);
    while i < bytes.len() {
        hash = (hash ^ bytes[i] as u64).wrapping_mul(0x0100_0000_01b3);
        i += 1;
    }
    hash
}

/// Structs by their fields, all of which have to be named: the compiler refuses a list that lacks one. And
/// the hash of all names.
macro_rules! structs {
    ($($type:ident { $($field:ident),* $(,)? })*) => {
        $(
            impl Words for $type {
                fn put(&self, out: &mut Vec<u64>) {
                    let Self { $($field),* } = self;
                    $($field.put(out);)*
                }

                fn take(row: &mut &[u64]) -> Option<Self> {
                    Some(Self { $($field: Words::take(row)?),* })
                }
            }
        )*
        /// What every row begins with.
        const SHAPE: u64 = hash(0xcbf2_9ce4_8422_2325, stringify!($($type $($field)*)*));
    };
}

structs! {
    Zone { tracks, spt }
    MapZone {
        first_cylinder, cylinders, spt, track_skew, cylinder_skew, offset, front, spares, unit, slips,
    }
    SpareUnit { tracks, spares, at_front, kept }
    Overheads {
        read_hit, read_miss, write_hit, write_miss, write_data, read_leave, read_join, read_end, write_end,
        write_media_end,
    }
    DiskParams {
        name, about, rpm, heads, actuators, zones, layout, t_switch, seek_a, seek_b, seek_knee, seek_c_ps,
        write_settle, write_settle_less, ov_hit, ov_miss, ov_write, ov_dest, ov_flush, bus_rate, nseg,
        buffer_bytes, ra_max, low_water_permille, ra_abort, ra_keep, stream_gap, ra_on_hit, min_ra,
        read_on_arrival, cache_mode, wc_slots, wc_bytes, wc_delay, destage_idle_only, queue_depth,
        age_weight_permille, age_max, stream_burst, max_request, driver, map, map_capacity, seek_table, overheads,
        read_watermark_permille, watermark_of_segment, partial_hits, keeps_requested, read_cache, segment,
        ra_stop, read_anywhere, write_anywhere, wc_merge, write_seek_min,
    }
    CardParams {
        name, about, capacity, read_latency, read_per_kib_ps, read_cross, write_latency, write_per_kib_ps, au,
        open_au, copy_per_kib_ps, t_erase, page_rmw, au_log, max_request,
        driver,
    }
    SsdParams {
        name, about, capacity, channels, dies_per_channel, planes, page, pages_per_block, t_read, t_prog,
        t_prog_slc, t_erase, t_suspend, channel_rate, link_rate, half_duplex, t_cmd, cmd_servers, t_fix,
        t_fix_write, queue_depth, write_buffer, shared_buffer, t_flush, flush_queued, power_loss_protection,
        slc, slc_dynamic, slc_full, slc_fill_permille, cell_bits, fill_permille, copy_back, pcie, pcie_lanes,
        slc_idle, spare_permille, hot_parts, write_amplification_permille, prefetch, au, open_au,
        copy_per_kib_ps, page_rmw, au_log, max_request, driver,
    }
    Raid1Params { name, about, members, queues }
    Raid0Params { name, about, members, chunk, queues }
}

/// Choices by their number.
macro_rules! choices {
    ($($type:ident { $($variant:ident = $number:literal),* $(,)? })*) => { $(
        impl Words for $type {
            fn put(&self, out: &mut Vec<u64>) {
                out.push(match self { $(Self::$variant => $number),* });
            }

            fn take(row: &mut &[u64]) -> Option<Self> {
                match u64::take(row)? {
                    $($number => Some(Self::$variant),)*
                    _ => None,
                }
            }
        }
    )* };
}

choices! {
    CacheMode { WriteBack = 0, WriteThrough = 1 }
    RaStop { Never = 0, Track = 1, Cylinder = 2, NextTrack = 3 }
    SlcFull { Direct = 0, Fold = 1, Drain = 2 }
    Queues { PerMember = 0, One = 1 }
    Driver { Usb = 0, Pata = 1, Mmc = 2, Ahci = 3, Sas = 4, Nvme = 5, Virtio = 6, Loop = 7 }
}

impl Words for Layout {
    fn put(&self, out: &mut Vec<u64>) {
        match self {
            Self::CylinderMajor => None,
            Self::SurfaceSerpentine { tracks } => Some(*tracks),
        }
        .put(out);
    }

    fn take(row: &mut &[u64]) -> Option<Self> {
        let tracks = <Option<u32> as Words>::take(row)?;
        Some(tracks.map_or(Self::CylinderMajor, |tracks| Self::SurfaceSerpentine { tracks }))
    }
}

impl Words for DeviceParams {
    fn put(&self, out: &mut Vec<u64>) {
        let kind: u64 = match self {
            Self::Disk(_) => 0,
            Self::Card(_) => 1,
            Self::Ssd(_) => 2,
            Self::Raid1(_) => 3,
            Self::Raid0(_) => 4,
        };
        kind.put(out);
        match self {
            Self::Disk(p) => p.put(out),
            Self::Card(p) => p.put(out),
            Self::Ssd(p) => p.put(out),
            Self::Raid1(p) => p.put(out),
            Self::Raid0(p) => p.put(out),
        }
    }

    /// A device that is no set: members of sets are none, so reading ends.
    fn take(row: &mut &[u64]) -> Option<Self> {
        Some(match u64::take(row)? {
            0 => Self::Disk(Words::take(row)?),
            1 => Self::Card(Words::take(row)?),
            2 => Self::Ssd(Words::take(row)?),
            _ => return None,
        })
    }
}

/// A device of any kind.
fn take_any(row: &mut &[u64]) -> Option<DeviceParams> {
    match row.split_first()? {
        (3, mut rest) => {
            let set = Words::take(&mut rest).map(DeviceParams::Raid1);
            *row = rest;
            set
        }
        (4, mut rest) => {
            let set = Words::take(&mut rest).map(DeviceParams::Raid0);
            *row = rest;
            set
        }
        _ => Words::take(row),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preset::preset_names;

    #[test]
    fn presets_come_back() {
        for name in preset_names() {
            let p = DeviceParams::preset(name).unwrap();
            assert_eq!(DeviceParams::from_words(&p.to_words()), Ok(p), "{name}");
        }
    }

    #[test]
    fn what_no_preset_has_comes_back() {
        let Ok(DeviceParams::Disk(mut p)) = DeviceParams::preset("ide2004") else { unreachable!() };
        let unit = Some(SpareUnit { tracks: 2, spares: 4, at_front: true, kept: false });
        p.map = alloc::vec![MapZone {
            cylinders: 3,
            spt: 9,
            slips: alloc::vec![3, 9],
            unit,
            ..MapZone::default()
        }];
        p.seek_table = alloc::vec![(1, Duration::from_ns(7)), (2, Duration::from_ns(9))];
        p.overheads = Some(Overheads { read_miss: [Duration::from_ns(1); 2], ..Overheads::default() });
        (p.layout, p.ra_stop) = (Layout::SurfaceSerpentine { tracks: 4 }, RaStop::NextTrack);
        (p.read_watermark_permille, p.ra_abort) = (Some(250), Some(Duration::from_ns(5)));
        p.name = "än eight and more".to_owned();
        let p = DeviceParams::Disk(p);
        assert_eq!(DeviceParams::from_words(&p.to_words()), Ok(p));
    }

    /// No cut and no changed word makes it panic or allocate beyond the row.
    #[test]
    fn wrong_rows_are_refused() {
        let why = |words: &[u64]| DeviceParams::from_words(words).map_err(|e| e.to_string());
        for name in ["nas2020", "sata_ssd", "raid1_2009"] {
            let words = DeviceParams::preset(name).unwrap().to_words();
            for end in 0..words.len() {
                assert!(why(&words[..end]).is_err(), "{name} cut at {end}");
            }
            for i in 0..words.len() {
                for value in [0, 1, 2, 5, u64::MAX] {
                    let mut wrong = words.clone();
                    wrong[i] = value;
                    // Possible or not: an answer.
                    let _ = DeviceParams::from_words(&wrong).map(|p| crate::Device::new(&p).map(|_| ()));
                }
            }
            assert!(why(&[&words[..], &[0]].concat()).is_err_and(|e| e.contains("longer than a disk")));
        }
        assert!(why(&[7, 0]).is_err_and(|e| e.contains("another version")));
    }
}
