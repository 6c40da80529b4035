//! From a place on the recorded devices to one on the replaying disk.
//!
//! ```text
//!   device 0   device 1            Fit::Scale: piece k of n goes to piece k·m/n of m, and keeps its inside
//!   |--------|----|  ──► |-----|   Fit::Wrap:  sector modulo the disk's size
//! ```

use super::options::{Fit, Options};
use fairhead_core::Sector;
use fairhead_trace::Record;

/// Devices lie at multiples of 1 MiB, as partitions do.
const DEVICE_ALIGN: u64 = 2048;
/// What stays whole when a trace is scaled: 16 MiB.
const PIECE_SECTORS: u64 = 1 << 15;

/// Where a recording's requests go.
#[derive(Clone, Debug)]
pub struct Place {
    /// By device: its first sector, before everything is made to fit.
    bases: Vec<u64>,
    scale: u64,
    align: u64,
    /// All that the recording touches, and what there is for it, in sectors.
    extent: u64,
    room: u64,
    fit: Fit,
    piece: u64,
}

/// Where a request goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Placed {
    /// Its first sector.
    pub start: Sector,
    /// How many it has there; fewer than recorded only if there is no room for more.
    pub sectors: u32,
    /// Whether it had to move to fit.
    pub moved: bool,
}

impl Place {
    /// Makes a mapping for devices of which these numbers of sectors are used, after `replay_scale`, on a
    /// disk with `room` sectors.
    ///
    /// # Errors
    /// If there is no room, or the devices add up to more than can be counted.
    pub fn new(ends: &[u64], options: &Options, room: u64) -> Result<Self, String> {
        if room == 0 {
            return Err("there is no room on the disk for the trace; use a smaller offset=".to_owned());
        }
        let scale = u64::from(options.scale.max(1));
        let mut bases = Vec::with_capacity(ends.len());
        let mut extent = 0_u64;
        for &end in ends {
            if options.redirect {
                bases.push(0);
                extent = extent.max(end);
            } else {
                bases.push(extent);
                let more = extent.checked_add(end).and_then(|e| e.checked_next_multiple_of(DEVICE_ALIGN));
                extent = more.ok_or("its devices add up to more sectors than can be counted")?;
            }
        }
        // The gap behind the last device is none.
        if let (Some(base), Some(end), false) = (bases.last(), ends.last(), options.redirect) {
            extent = extent.min(base.saturating_add(*end));
        }
        let piece = (room / 16 / 8 * 8).clamp(1, PIECE_SECTORS);
        let align = options.align.max(1);
        Ok(Self { bases, scale, align, extent, room, fit: options.fit, piece })
    }

    /// How many sectors there would have to be for everything to stay where it was.
    #[must_use]
    pub const fn extent(&self) -> u64 {
        self.extent
    }

    /// How many sectors there are for it.
    #[must_use]
    pub const fn room(&self) -> u64 {
        self.room
    }

    /// Whether everything stays where it was.
    #[must_use]
    pub const fn fits(&self) -> bool {
        self.extent <= self.room
    }

    /// Where the request goes.
    #[must_use]
    pub fn of(&self, record: &Record) -> Placed {
        let base = self.bases.get(record.device.0 as usize).copied().unwrap_or(0);
        let wanted = (base + record.sector.0 / self.scale) / self.align * self.align;
        let len = u64::from(record.sectors).min(self.room);
        let inside = match self.fit {
            _ if self.fits() => wanted,
            Fit::Wrap => wanted % self.room,
            Fit::Scale => {
                let (from, to) = (self.extent.div_ceil(self.piece), (self.room / self.piece).max(1));
                let piece = u128::from(wanted / self.piece) * u128::from(to) / u128::from(from);
                u64::try_from(piece).unwrap_or(0) * self.piece + wanted % self.piece
            }
        };
        let start = inside.min(self.room - len);
        let sectors = u32::try_from(len).unwrap_or(record.sectors);
        Placed { start: Sector(start), sectors, moved: start != wanted }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairhead_core::Duration;
    use fairhead_trace::{DeviceId, Op};

    fn read(device: u32, sector: u64, sectors: u32) -> Record {
        Record { device: DeviceId(device), ..Record::new(Duration::ZERO, Op::Read, Sector(sector), sectors) }
    }

    fn place(ends: &[u64], room: u64, change: impl Fn(&mut Options)) -> Place {
        let mut options = Options::default();
        change(&mut options);
        Place::new(ends, &options, room).unwrap()
    }

    #[test]
    fn what_fits_stays_and_devices_lie_one_after_the_other() {
        let p = place(&[1000, 5000], 10_000, |_| {});
        assert_eq!((p.extent(), p.fits()), (7048, true));
        let at = |d, s| p.of(&read(d, s, 8));
        assert_eq!(at(0, 992), Placed { start: Sector(992), sectors: 8, moved: false });
        assert_eq!(at(1, 0).start, Sector(2048));
        let p = place(&[1000, 5000], 10_000, |o| o.redirect = true);
        assert_eq!((p.extent(), p.of(&read(1, 7, 8)).start), (5000, Sector(7)));
    }

    #[test]
    fn nothing_leaves_the_disk() {
        for fit in [Fit::Scale, Fit::Wrap] {
            for room in [1, 7, 100, 4096, 1_000_003] {
                let p = place(&[77, 3_000_000], room, |o| o.fit = fit);
                for (d, s, n) in [(0, 76, 1), (1, 2_999_000, 1000), (1, 1_234_567, 2048), (0, 0, 77)] {
                    let at = p.of(&read(d, s, n));
                    assert!(at.start.0 + u64::from(at.sectors) <= room, "{fit:?} {room} {s} {at:?}");
                    assert_eq!(u64::from(at.sectors), u64::from(n).min(room));
                }
            }
        }
    }

    #[test]
    fn scaled_is_in_order_and_sequential_in_a_piece() {
        // 1 TiB onto 100 GiB: pieces of 16 MiB.
        let (extent, room) = (1 << 31, 209_715_200);
        let p = place(&[extent], room, |_| {});
        let at = |s| p.of(&read(0, s, 8)).start.0;
        assert_eq!(at(8) - at(0), 8);
        assert_eq!(at(PIECE_SECTORS * 5 + 16) - at(PIECE_SECTORS * 5 + 8), 8);
        let step = 12_345_678;
        let piece = |s| at(s) / PIECE_SECTORS;
        assert!((0..extent / step - 1).all(|i| piece(i * step) <= piece((i + 1) * step)));
        assert!(at(extent - 8) > room / 100 * 99, "the end of one is the end of the other");
        assert!(p.of(&read(0, extent / 2, 8)).moved);
    }

    #[test]
    fn wrapped_keeps_distances() {
        let p = place(&[1 << 31], 1 << 20, |o| o.fit = Fit::Wrap);
        assert_eq!(p.of(&read(0, (5 << 20) + 77, 8)).start, Sector(77));
        assert!(!p.of(&read(0, 77, 8)).moved);
    }

    #[test]
    fn fios_scale_and_align() {
        let p = place(&[1 << 31], 1 << 40, |o| (o.scale, o.align) = (10, 8));
        assert_eq!(p.of(&read(0, 1009, 8)), Placed { start: Sector(96), sectors: 8, moved: false });
        assert!(Place::new(&[1], &Options::default(), 0).is_err());
        assert!(Place::new(&[u64::MAX / 2; 3], &Options::default(), 1).is_err());
    }
}
