//! Where the sectors of a measured drive are: zones with their own skews, spares and bad sectors.
//!
//! [`crate::geometry`] knows one skew for all tracks and no spares, which is enough for a drive of a class. A
//! drive that was taken apart by measurement brings a list of [`MapZone`]s. The phase function stays what it
//! was, monotone, with streaming from `a` to `b` taking `P(b) - P(a)`; only its steps differ:
//!
//! ```text
//!     sector of the zone   front | data … x … data | spares        x: a bad sector, passed over ("slipped")
//!     start of track k     k * Trev + ((heads - 1) * cylinder + head) * track skew + cylinder * cylinder skew
//!     start of a zone      the next whole revolution, plus the zone's offset
//! ```
//!
//! Worked number: a zone of 254 sectors per track at 10,045 rpm with a skew of 97 sectors between the tracks
//! of a cylinder: a track starts 5.973 + 2.281 ms after the one before, whatever the head switch itself
//! takes.
//!
//! What this does not do: bad sectors that are kept elsewhere (remapped); a seek between zones that takes
//! longer than the rest of the revolution; a head switch longer than the skew.

use crate::params::{DiskParams, MapZone, slots, zone_sectors};
use crate::position::{Arm, Place};
use alloc::boxed::Box;
use alloc::vec::Vec;

#[derive(Clone, Debug)]
struct Start {
    lba: u64,
    track: u64,
    phase: u64,
}

/// The map. Times in nanoseconds.
#[derive(Clone, Debug)]
pub(crate) struct TrackMap {
    zones: Box<[(Start, MapZone)]>,
    heads: u64,
    t_rev: u64,
    pub(crate) capacity: u64,
}

/// Where on the media a sector is.
struct Spot<'a> {
    at: &'a Start,
    zone: &'a MapZone,
    /// Track of the zone, and sector of the track.
    track: u64,
    sector: u64,
}

/// How many bad sectors are before a place that would be `sector` if there were none.
fn passed_over(bad: &[u64], sector: u64) -> u64 {
    // The i-th is before the place if it is once the i bad ones before it have been passed over.
    let (mut lo, mut hi) = (0, bad.len());
    while lo < hi {
        let i = lo.midpoint(hi);
        if bad[i] <= sector + i as u64 { lo = i + 1 } else { hi = i }
    }
    lo as u64
}

/// Where a sector of a zone is.
fn spot_in<'a>(at: &'a Start, zone: &'a MapZone, lba: u64) -> Spot<'a> {
    let spt = u64::from(zone.spt);
    let mut offset = lba - at.lba;
    let kept = zone.unit.is_some_and(|u| u.kept);
    if kept {
        // Bad sectors are counted without the spares, which they do not use: the data move on over the whole
        // zone.
        offset += passed_over(&zone.slips, offset);
    }
    // The run of sectors that shares its spares, and the place in it if no sector were bad.
    let (from, to, mut sector) = match zone.unit {
        Some(u) => {
            let (unit, used) = (u.tracks * spt, u.tracks * spt - u.spares);
            let from = zone.front + offset / used * unit;
            (from, from + unit, from + offset % used + if u.at_front { u.spares } else { 0 })
        }
        None => (0, u64::MAX, zone.front + offset),
    };
    if !kept {
        let slips = &zone.slips;
        let bad = &slips[slips.partition_point(|&s| s < from)..slips.partition_point(|&s| s < to)];
        if zone.unit.is_some_and(|u| u.at_front) {
            // What the bad ones take comes from the spares in front, so the data begin earlier by that much.
            sector -= (bad.len() as u64).min(sector - from);
        }
        sector += passed_over(bad, sector);
    }
    Spot { at, zone, track: sector / spt, sector: sector % spt }
}

impl TrackMap {
    /// The parameters must have been checked, and have a map.
    pub(crate) fn new(p: &DiskParams, t_rev: u64) -> Self {
        let heads = u64::from(p.heads);
        let mut map = Self { zones: Box::new([]), heads, t_rev, capacity: 0 };
        let (mut zones, mut at) = (Vec::new(), Start { lba: 0, track: 0, phase: 0 });
        for z in &p.map {
            at.phase = at.phase.next_multiple_of(t_rev) + map.sectors_time(z, z.offset);
            let tracks = z.cylinders * heads;
            let held = zone_sectors(z, heads);
            let mut z = z.clone();
            if let Some(u) = z.unit.filter(|u| u.kept) {
                z.slips = slots(&z, u);
            }
            let last = spot_in(&at, &z, at.lba + held - 1);
            // No request waits for the spare tracks behind it.
            let phase = map.phase(&last, last.sector + 1);
            let next = Start { lba: at.lba + held, track: at.track + tracks, phase };
            zones.push((core::mem::replace(&mut at, next), z));
        }
        map.zones = zones.into();
        map.capacity = if p.map_capacity == 0 { at.lba } else { at.lba.min(p.map_capacity) };
        map
    }

    /// Returns the time that `thousandths` of a sector take to pass.
    fn sectors_time(&self, z: &MapZone, thousandths: u64) -> u64 {
        let ns = u128::from(thousandths) * u128::from(self.t_rev) / (1000 * u128::from(z.spt));
        u64::try_from(ns).unwrap_or(u64::MAX / 4)
    }

    /// How far the start of track `k` of a zone is behind `k` revolutions.
    fn skew(&self, z: &MapZone, k: u64) -> u64 {
        let (cylinder, head) = (k / self.heads, k % self.heads);
        let switches = cylinder * (self.heads - 1) + head;
        self.sectors_time(z, switches.saturating_mul(z.track_skew).saturating_add(cylinder * z.cylinder_skew))
    }

    fn spot(&self, lba: u64) -> Spot<'_> {
        let (at, zone) = &self.zones[self.zones.partition_point(|(s, _)| s.lba <= lba) - 1];
        spot_in(at, zone, lba)
    }

    fn phase(&self, s: &Spot<'_>, sector: u64) -> u64 {
        let within = self.sectors_time(s.zone, sector * 1000);
        s.at.phase + s.track * self.t_rev + self.skew(s.zone, s.track) + within
    }

    fn arm_of(&self, s: &Spot<'_>) -> Arm {
        Arm { track: s.at.track + s.track, cyl: s.zone.first_cylinder + s.track / self.heads }
    }

    /// As the geometry's.
    pub(crate) fn place(&self, lba: u64) -> Place {
        let s = self.spot(lba);
        let sector_time = self.t_rev / u64::from(s.zone.spt);
        Place { phase: self.phase(&s, s.sector), arm: self.arm_of(&s), sector_time }
    }

    /// As the geometry's.
    pub(crate) fn arm(&self, lba: u64) -> Arm {
        self.arm_of(&self.spot(lba.min(self.capacity - 1)))
    }

    /// As the geometry's.
    pub(crate) fn end_phase(&self, end: u64) -> u64 {
        let s = self.spot(end - 1);
        self.phase(&s, s.sector + 1)
    }

    /// As the geometry's: the last `end` whose phase has come.
    pub(crate) fn lba_at(&self, phase: u64) -> u64 {
        let (mut lo, mut hi) = (0, self.capacity);
        while lo < hi {
            let end = lo + (hi - lo).div_ceil(2);
            if self.end_phase(end) <= phase { lo = end } else { hi = end - 1 }
        }
        lo
    }

    /// Sectors of the same track that pass in `wait` before `lba` does.
    pub(crate) fn sectors_before(&self, lba: u64, wait: u64) -> u64 {
        let s = self.spot(lba);
        let passing = wait.min(self.t_rev) * u64::from(s.zone.spt) / self.t_rev;
        passing.min(s.sector).min(lba - s.at.lba)
    }

    /// The first sector beyond the track, or the cylinder, of `lba`.
    pub(crate) fn boundary(&self, lba: u64, cylinder: bool) -> u64 {
        let place = |x: u64| {
            let arm = self.arm(x);
            if cylinder { (arm.cyl, 0) } else { (arm.cyl, arm.track) }
        };
        let here = place(lba);
        // A track or cylinder is a run of sectors; it ends within its own size.
        let z = self.spot(lba).zone;
        let most = u64::from(z.spt) * if cylinder { self.heads } else { 1 };
        let (mut lo, mut hi) = (lba, (lba + most).min(self.capacity));
        while lo + 1 < hi {
            let mid = lo.midpoint(hi);
            if place(mid) == here { lo = mid } else { hi = mid }
        }
        hi
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::{DeviceParams, SpareUnit, Zone};

    fn map(zones: Vec<MapZone>) -> TrackMap {
        let Ok(DeviceParams::Disk(mut p)) = DeviceParams::preset("ide2004") else { unreachable!() };
        p.heads = 2;
        p.zones = zones.iter().map(|z| Zone { tracks: z.cylinders * 2, spt: z.spt }).collect();
        p.map = zones;
        p.check().unwrap_or_else(|e| panic!("{e:?}"));
        TrackMap::new(&p, 10_000_000)
    }

    /// 100 sectors of 0.1 ms a track; skews of 20 and 30 sectors.
    fn zone() -> MapZone {
        MapZone { cylinders: 3, spt: 100, track_skew: 20_000, cylinder_skew: 30_000, ..MapZone::default() }
    }

    #[test]
    fn tracks_are_skewed_by_their_own_amounts() {
        let m = map(vec![zone(), MapZone { first_cylinder: 5, offset: 7_000, spt: 50, ..zone() }]);
        let ms = |lba| m.place(lba).phase / 100_000;
        // Tenths of milliseconds: a track is 100, its skew 20 within the cylinder and 30 across.
        assert_eq!([ms(0), ms(99), ms(100), ms(200), ms(300)], [0, 99, 120, 250, 370]);
        assert_eq!(m.place(600).phase % 10_000_000, 1_400_000, "7 sectors of 0.2 ms from the index");
        assert_eq!(m.arm(600).cyl, 5, "cylinders between the zones are passed over");
        assert_eq!(m.capacity, 900);
    }

    #[test]
    fn bad_and_spare_sectors_hold_no_data() {
        let m = map(vec![MapZone { slips: vec![0, 3, 4, 100], spares: 10, ..zone() }]);
        assert_eq!(m.capacity, 600 - 10, "the bad ones use spares");
        let sectors: Vec<_> = (0..5).map(|x| m.place(x).phase / 100_000).collect();
        assert_eq!(sectors, [1, 2, 5, 6, 7]);
        assert_eq!(m.place(97).phase / 100_000, 121, "sector 100 is bad, so the track begins with 101");
        let unit = SpareUnit { tracks: 2, spares: 10, at_front: false, kept: false };
        let m = map(vec![MapZone { unit: Some(unit), slips: vec![5], ..zone() }]);
        assert_eq!(m.capacity, 3 * 190);
        assert_eq!(m.place(5).phase / 100_000, 6);
        assert_eq!((m.arm(189).cyl, m.arm(190).cyl), (0, 1), "the second cylinder begins where it did");
        assert_eq!(m.place(190).phase / 100_000, 250);
    }

    #[test]
    fn spares_that_are_kept_let_the_data_move_on() {
        let unit = |kept| Some(SpareUnit { tracks: 2, spares: 10, at_front: true, kept });
        // Sector 3 is a spare, 12 and 13 the third and fourth of data; 210 the first of data of the second
        // cylinder.
        let of = |kept| map(vec![MapZone { unit: unit(kept), slips: vec![3, 12, 13, 210], ..zone() }]);
        let (used, kept) = (of(false), of(true));
        assert_eq!((used.capacity, kept.capacity), (3 * 190, 3 * 190 - 3));
        let at = |m: &TrackMap, x| m.place(x).phase / 100_000;
        assert_eq!([0, 1, 2, 3].map(|x| at(&kept, x)), [10, 11, 14, 15]);
        assert_eq!((kept.arm(187).cyl, kept.arm(188).cyl, at(&kept, 188)), (0, 1, 250 + 11));
        assert_eq!((used.arm(189).cyl, used.arm(190).cyl), (0, 1));
        assert_eq!([0, 1, 4, 5].map(|x| at(&used, x)), [8, 9, 14, 15], "three of the ten spares are in use");
        for end in 1..=kept.capacity {
            assert_eq!(kept.lba_at(kept.end_phase(end)), end, "at sector {end}");
        }
    }

    #[test]
    fn spare_tracks_between_zones_cost_no_time() {
        // 300 of 600 sectors are spare: the next zone is as far as a revolution and the rest of one.
        let m = map(vec![MapZone { spares: 300, ..zone() }, MapZone { first_cylinder: 3, ..zone() }]);
        assert_eq!(m.place(300).phase, m.end_phase(300).next_multiple_of(10_000_000));
        assert_eq!((m.arm(299).cyl, m.arm(300).cyl, m.arm(300).track), (1, 3, 6));
    }

    #[test]
    fn lba_at_is_the_inverse_of_end_phase() {
        let unit = SpareUnit { tracks: 1, spares: 3, at_front: true, kept: false };
        let m = map(vec![
            MapZone { front: 13, slips: vec![40, 41, 99, 230], spares: 5, ..zone() },
            MapZone { first_cylinder: 9, unit: Some(unit), spt: 70, ..zone() },
        ]);
        for end in 1..=m.capacity {
            let phase = m.end_phase(end);
            assert_eq!((m.lba_at(phase), m.lba_at(phase - 1)), (end, end - 1), "at sector {end}");
        }
        for lba in 0..m.capacity - 1 {
            let same = |cylinder: bool| {
                let (a, b) = (m.arm(lba), m.arm(lba + 1));
                if cylinder { a.cyl == b.cyl } else { a.track == b.track }
            };
            for cylinder in [false, true] {
                assert_eq!(m.boundary(lba, cylinder) > lba + 1, same(cylinder), "sector {lba}");
            }
        }
    }
}
