//! Where sectors are and when they pass under the head.
//!
//! All rotation is in one monotone *phase function* `P(lba)`: the time at which a sector would begin to pass
//! under the head if the drive streamed from sector 0 without ever losing a revolution. Streaming from `a` to
//! `b` takes `P(b) - P(a)`; the angle of a sector is `P(lba) mod Trev`.
//!
//! ```text
//!     P(lba) = P0(zone) + track_in_zone * (Trev + Tskew) + floor(offset * Trev / spt)
//!
//!      track k                    skew   track k+1
//!     |s0|s1|s2| ...        |s532|......|s0|s1| ...
//!     |<------- Trev ----------->|<----------------- period = Trev + Tskew per track
//! ```
//!
//! Worked number: 7200 rpm, 533 sectors per track, 1.2 ms skew: a track takes 8.333 + 1.2 ms and holds
//! 272,896 bytes, so the zone sustains 28.6 MB/s.
//!
//! The end of a run of sectors is when its last sector has passed: [`Geometry::end_phase`] leaves out the
//! switch to the next track that `P` of the following sector contains.
//!
//! Different skews for head and cylinder switches, and spared sectors, are `track_map.rs`, for drives that
//! were measured.
//= docs/reference/devices.md#11-geometry

use crate::params::{DiskParams, Layout, RaStop};
pub(crate) use crate::position::{Arm, Place};
use crate::track_map::TrackMap;
use alloc::boxed::Box;
use alloc::vec::Vec;

/// Division by a number that stays: a multiplication and a correction, exact for every dividend.
///
/// With `m = floor((2^64 - 1) / d)` the product's upper half is the quotient or one less.
//= Granlund & Montgomery 1994, Division by Invariant Integers using Multiplication
#[derive(Clone, Copy, Debug)]
struct Divisor {
    d: u64,
    m: u64,
}

impl Divisor {
    fn new(d: u64) -> Self {
        Self { d, m: u64::MAX / d }
    }

    #[allow(clippy::cast_possible_truncation, reason = "the upper half of a 128-bit product has 64 bits")]
    fn div_rem(self, x: u64) -> (u64, u64) {
        let q = ((u128::from(x) * u128::from(self.m)) >> 64) as u64;
        let r = x - q * self.d;
        if r >= self.d { (q + 1, r - self.d) } else { (q, r) }
    }

    fn div(self, x: u64) -> u64 {
        self.div_rem(x).0
    }
}

/// One zone with its sums over the zones before it.
#[derive(Clone, Copy, Debug)]
struct ZoneStart {
    lba: u64,
    track: u64,
    phase: u64,
    spt: Divisor,
    sector_time: u64,
}

/// The map from sectors to tracks and phases. Times in nanoseconds.
#[derive(Clone, Debug)]
pub(crate) struct Geometry {
    zones: Box<[ZoneStart]>,
    heads: Divisor,
    layout: Layout,
    /// Sectors of the whole drive.
    pub(crate) capacity: u64,
    /// One revolution.
    pub(crate) t_rev: u64,
    by_t_rev: Divisor,
    /// One revolution and one track switch.
    period: Divisor,
    /// Of a measured drive: says all instead.
    map: Option<Box<TrackMap>>,
}

impl Geometry {
    /// The parameters must have been checked.
    pub(crate) fn new(p: &DiskParams) -> Self {
        let t_rev = 60_000_000_000 / u64::from(p.rpm);
        let period = t_rev + p.t_switch.as_ns();
        let mut at = ZoneStart { lba: 0, track: 0, phase: 0, spt: Divisor::new(1), sector_time: 0 };
        let mut zones = Vec::with_capacity(p.zones.len());
        for z in &p.zones {
            let spt = u64::from(z.spt);
            at.spt = Divisor::new(spt);
            at.sector_time = t_rev / spt;
            zones.push(at);
            at.lba += z.tracks * spt;
            at.track += z.tracks;
            at.phase += z.tracks * period;
        }
        let map = (!p.map.is_empty()).then(|| Box::new(TrackMap::new(p, t_rev)));
        Self {
            zones: zones.into(),
            heads: Divisor::new(u64::from(p.heads)),
            layout: p.layout,
            capacity: map.as_ref().map_or(at.lba, |m| m.capacity),
            t_rev,
            by_t_rev: Divisor::new(t_rev),
            period: Divisor::new(period),
            map,
        }
    }

    /// The zone of a sector; the last zone for the end of the drive.
    fn zone(&self, lba: u64) -> &ZoneStart {
        &self.zones[self.zones.partition_point(|z| z.lba <= lba) - 1]
    }

    /// When a sector begins to pass, where it is, and how long it takes.
    pub(crate) fn place(&self, lba: u64) -> Place {
        if let Some(map) = &self.map {
            return map.place(lba);
        }
        let z = self.zone(lba);
        let (k, offset) = z.spt.div_rem(lba - z.lba);
        let track = z.track + k;
        Place {
            phase: z.phase + k * self.period.d + z.spt.div(offset * self.t_rev),
            arm: Arm { track, cyl: self.cylinder(track) },
            sector_time: z.sector_time,
        }
    }

    /// When the last sector before `end` has passed, in phase time. `end` is at least 1.
    pub(crate) fn end_phase(&self, end: u64) -> u64 {
        if let Some(map) = &self.map {
            return map.end_phase(end);
        }
        let last = end - 1;
        let z = self.zone(last);
        let (k, offset) = z.spt.div_rem(last - z.lba);
        z.phase + k * self.period.d + z.spt.div((offset + 1) * self.t_rev)
    }

    /// The first sector that has not passed completely at `phase`: the inverse of [`Self::end_phase`]. No
    /// sector passes while the head switches to the next track.
    pub(crate) fn lba_at(&self, phase: u64) -> u64 {
        if let Some(map) = &self.map {
            return map.lba_at(phase);
        }
        let z = &self.zones[self.zones.partition_point(|z| z.phase <= phase) - 1];
        let (k, r) = self.period.div_rem(phase - z.phase);
        // The largest o with floor(o * t_rev / spt) <= r.
        let o = self.by_t_rev.div((r.min(self.t_rev) + 1) * z.spt.d - 1).min(z.spt.d);
        (z.lba + k * z.spt.d + o).min(self.capacity)
    }

    /// The arm's place over a sector; over the last track for the end of the drive.
    pub(crate) fn arm(&self, lba: u64) -> Arm {
        if let Some(map) = &self.map {
            return map.arm(lba);
        }
        let lba = lba.min(self.capacity - 1);
        let z = self.zone(lba);
        let track = z.track + z.spt.div(lba - z.lba);
        Arm { track, cyl: self.cylinder(track) }
    }

    fn cylinder(&self, track: u64) -> u64 {
        match self.layout {
            Layout::CylinderMajor => self.heads.div(track),
            Layout::SurfaceSerpentine { tracks } => {
                let run = u64::from(tracks);
                let band = track / (run * self.heads.d);
                let within = track % (run * self.heads.d);
                let (surface, i) = (within / run, within % run);
                band * run + if surface % 2 == 0 { i } else { run - 1 - i }
            }
        }
    }

    /// How many sectors of the same track pass in `wait` before `lba` does.
    pub(crate) fn sectors_before(&self, lba: u64, wait: u64) -> u64 {
        if let Some(map) = &self.map {
            return map.sectors_before(lba, wait);
        }
        let z = self.zone(lba);
        (wait.min(self.t_rev) * z.spt.d / self.t_rev).min((lba - z.lba) % z.spt.d)
    }

    /// Where look-ahead behind `end` stops, of a stream that began at `start`; the end of the drive if
    /// nowhere.
    pub(crate) fn ra_stop(&self, start: u64, end: u64, stop: RaStop) -> u64 {
        let last = end.max(1) - 1;
        match stop {
            RaStop::Never => self.capacity,
            RaStop::Track => self.boundary(last, false),
            RaStop::Cylinder => self.boundary(last, true),
            RaStop::NextTrack => {
                let here = self.boundary(last, false);
                let came_over = self.boundary(start.min(last), false) <= last;
                if came_over && here < self.capacity { self.boundary(here, false) } else { here }
            }
        }
    }

    /// The first sector beyond the track, or the cylinder, of `lba`. Zones begin with whole cylinders, or
    /// nearly.
    fn boundary(&self, lba: u64, cylinder: bool) -> u64 {
        if let Some(map) = &self.map {
            return map.boundary(lba, cylinder);
        }
        let z = self.zone(lba);
        let run = z.spt.d * if cylinder { self.heads.d } else { 1 };
        (z.lba + (lba - z.lba) / run * run + run).min(self.capacity)
    }

    /// How long a head that is ready at `t` waits for a sector. A wait of all but one sector time of a
    /// revolution is no wait: it is a continuation that rounding made late.
    pub(crate) fn wait(&self, t: u64, to: &Place) -> u64 {
        let (target, now) = (self.by_t_rev.div_rem(to.phase).1, self.by_t_rev.div_rem(t).1);
        let wait = if target >= now { target - now } else { target + self.t_rev - now };
        if wait > self.t_rev - to.sector_time { 0 } else { wait }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::{DeviceParams, Zone};

    fn tiny(layout: Layout) -> Geometry {
        let Ok(DeviceParams::Disk(mut p)) = DeviceParams::preset("ide2004") else { unreachable!() };
        p.zones = vec![Zone { tracks: 12, spt: 533 }, Zone { tracks: 8, spt: 500 }];
        p.layout = layout;
        p.heads = 2;
        Geometry::new(&p)
    }

    #[test]
    fn phase_is_monotone_and_streams_at_the_zone_rate() {
        let g = tiny(Layout::CylinderMajor);
        assert_eq!(g.capacity, 12 * 533 + 8 * 500);
        for lba in 0..g.capacity - 1 {
            assert!(g.place(lba).phase < g.place(lba + 1).phase, "sector {lba}");
        }
        // 7200 rpm: 8,333,333 ns a revolution; 1.2 ms to the next track.
        assert_eq!(g.place(533).phase, 8_333_333 + 1_200_000);
        assert_eq!(g.place(12 * 533 + 500).phase - g.place(12 * 533).phase, 8_333_333 + 1_200_000);
        assert_eq!(g.end_phase(533), 8_333_333, "a whole track is read in one revolution");
    }

    #[test]
    fn lba_at_is_the_inverse_of_end_phase() {
        let g = tiny(Layout::CylinderMajor);
        for end in 1..=g.capacity {
            let phase = g.end_phase(end);
            assert_eq!(g.lba_at(phase), end, "at the end of sector {}", end - 1);
            assert_eq!(g.lba_at(phase - 1), end - 1, "just before the end of sector {}", end - 1);
        }
        // Nothing passes during the switch.
        assert_eq!(g.lba_at(8_333_333 + 1_199_999), 533);
    }

    #[test]
    fn look_ahead_stops_where_it_is_told() {
        let g = tiny(Layout::CylinderMajor);
        let at = |start, end, stop| g.ra_stop(start, end, stop);
        assert_eq!((at(0, 8, RaStop::Never), at(0, 8, RaStop::Track)), (g.capacity, 533));
        assert_eq!((at(0, 533, RaStop::Cylinder), at(0, 1067, RaStop::Cylinder)), (1066, 2132));
        assert_eq!(at(0, 533, RaStop::NextTrack), 533, "a stream that has seen one track");
        assert_eq!(at(0, 534, RaStop::NextTrack), 3 * 533, "and one that has seen the next");
        assert_eq!(at(g.capacity - 600, g.capacity, RaStop::NextTrack), g.capacity);
    }

    #[test]
    fn divisors_divide() {
        for d in [1, 2, 3, 10, 533, 8_333_333, 9_533_333, 1 << 40, u64::MAX / 2, u64::MAX] {
            for x in [0, 1, d - 1, d, d.saturating_add(1), d.saturating_mul(7), u64::MAX - 1, u64::MAX] {
                assert_eq!(Divisor::new(d).div_rem(x), (x / d, x % d), "{x} / {d}");
            }
        }
    }

    #[test]
    fn a_late_continuation_loses_no_revolution() {
        let g = tiny(Layout::CylinderMajor);
        let to = g.place(100);
        let (p, st) = (to.phase, to.sector_time);
        assert_eq!(g.wait(p, &to), 0);
        assert_eq!(g.wait(p - 1000, &to), 1000);
        assert_eq!(g.wait(p + st - 1, &to), 0, "within the rounding of one sector");
        assert_eq!(g.wait(p + st + 1, &to), g.t_rev - st - 1, "really late");
    }

    #[test]
    fn layouts_place_tracks() {
        let g = tiny(Layout::CylinderMajor);
        let cyls: Vec<_> = (0..6).map(|t| g.arm(t * 533).cyl).collect();
        assert_eq!(cyls, [0, 0, 1, 1, 2, 2]);
        let g = tiny(Layout::SurfaceSerpentine { tracks: 3 });
        let cyls: Vec<_> = (0..12).map(|t| g.arm(t * 533).cyl).collect();
        assert_eq!(cyls, [0, 1, 2, 2, 1, 0, 3, 4, 5, 5, 4, 3]);
        assert_eq!(g.arm(g.capacity).track, 19, "the end of the drive is over its last track");
    }
}
