//! How long the arm takes from one track to another.
//!
//! ```text
//!     same track                0
//!     other head, same cylinder t_switch
//!     1 <= d <= knee            a + b * sqrt(d - 1)
//!     d > knee                  a + b * sqrt(knee - 1) + c * (d - knee)
//! ```
//!
//! A measured drive brings a table instead, `seek_table`: straight lines between its points.
//!
//! Short seeks accelerate and brake, long ones coast; `a` contains the settling. Worked number: with a = 1.2 ms,
//! b = 0.0676 ms, knee = 12,000, c = 270 ns and 35,000 cylinders a full stroke takes 1.2 + 7.4 + 6.2 = 14.8 ms.
//! Square roots are integer square roots of `b^2 (d - 1)`, exact to a nanosecond and the same on every machine.
//= Ruemmler & Wilkes 1994, seek time: a square root up to a knee, linear beyond
//= Fairhead device notes 1.2

use crate::geometry::Arm;
use crate::params::DiskParams;

/// A drive's seek curve. Times in nanoseconds.
#[derive(Clone, Debug)]
pub(crate) struct SeekCurve {
    t_switch: u64,
    a: u64,
    b_squared: u64,
    knee: u64,
    at_knee: u64,
    c_ps: u64,
    /// Measured: cylinders, their time, and the least time of these or more.
    table: Box<[(u64, u64, u64)]>,
}

impl SeekCurve {
    /// The parameters must have been checked: `b * sqrt(knee)` below 4 s.
    pub(crate) fn new(p: &DiskParams) -> Self {
        let b = p.seek_b.as_ns();
        let mut curve = Self {
            t_switch: p.t_switch.as_ns(),
            a: p.seek_a.as_ns(),
            b_squared: b * b,
            knee: p.seek_knee,
            at_knee: 0,
            c_ps: p.seek_c_ps,
            table: p.seek_table.iter().map(|&(d, t)| (d, t.as_ns(), t.as_ns())).collect(),
        };
        for i in (1..curve.table.len()).rev() {
            curve.table[i - 1].2 = curve.table[i - 1].2.min(curve.table[i].2);
        }
        curve.at_knee = curve.curve(p.seek_knee);
        curve
    }

    /// On the straight line between the measured distances around `d`; beyond the ends, as at them.
    fn measured(&self, d: u64) -> u64 {
        let i = self.table.partition_point(|s| s.0 < d).min(self.table.len() - 1);
        let (d1, t1, _) = self.table[i];
        if i == 0 || d >= d1 {
            return t1;
        }
        let (d0, t0, _) = self.table[i - 1];
        (t0 * (d1 - d) + t1 * (d - d0)) / (d1 - d0)
    }

    fn curve(&self, d: u64) -> u64 {
        if !self.table.is_empty() {
            self.measured(d)
        } else if d <= self.knee {
            self.a + (self.b_squared * (d - 1)).isqrt()
        } else {
            self.at_knee + (d - self.knee) * self.c_ps / 1000
        }
    }

    /// From one place to another; a write's longer settling is the caller's.
    pub(crate) fn time(&self, from: Arm, to: Arm) -> u64 {
        match from.cyl.abs_diff(to.cyl) {
            0 if from.track == to.track => 0,
            0 => self.t_switch,
            d => self.curve(d),
        }
    }

    /// At least this long for any place `d` cylinders away.
    pub(crate) fn at_least(&self, d: u64) -> u64 {
        match (d, self.table.is_empty()) {
            (0, _) => 0,
            (_, true) => self.curve(d),
            // Measured curves are not monotone; between two distances the time is no less than the lesser end's.
            (_, false) => self.table[self.table.partition_point(|s| s.0 <= d).saturating_sub(1)].2,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::DeviceParams;

    fn curve(preset: &str) -> (SeekCurve, u64) {
        let Ok(DeviceParams::Disk(p)) = DeviceParams::preset(preset) else { unreachable!() };
        let tracks: u64 = p.zones.iter().map(|z| z.tracks).sum();
        (SeekCurve::new(&p), tracks / u64::from(p.heads))
    }

    fn at(track: u64, cyl: u64) -> Arm {
        Arm { track, cyl }
    }

    #[test]
    fn the_four_cases() {
        let (s, _) = curve("ide2004");
        assert_eq!(s.time(at(5, 1), at(5, 1)), 0);
        assert_eq!(s.time(at(5, 1), at(6, 1)), 1_200_000, "head switch");
        assert_eq!(s.time(at(5, 1), at(8, 2)), 1_200_000, "one cylinder: a");
        assert_eq!(s.time(at(8, 2), at(5, 1)), 1_200_000, "both ways alike");
        // b * sqrt(100) = 676,000 ns
        assert_eq!(s.time(at(0, 0), at(0, 101)), 1_200_000 + 676_000);
        let (knee, beyond) = (s.time(at(0, 0), at(0, 12_000)), s.time(at(0, 0), at(0, 13_000)));
        assert_eq!(beyond - knee, 270_000, "270 ns a cylinder beyond the knee");
    }

    /// Mean over random pairs, weighting distance d by 2 (n - d) / n^2, and the full stroke: the published class.
    #[test]
    fn means_and_full_strokes_are_those_of_the_class() {
        for (preset, mean_us, full_us) in
            [("ide2004", 7_900, 14_800), ("sata2009", 7_800, 15_800), ("nas2020", 6_900, 13_600)]
        {
            let (s, n) = curve(preset);
            let step = (n / 10_000).max(1);
            let (mut sum, mut weight) = (0u128, 0u128);
            for d in (1..n).step_by(step as usize) {
                sum += u128::from(n - d) * u128::from(s.curve(d));
                weight += u128::from(n - d);
            }
            let mean = (sum / weight / 1000) as u64;
            let full = s.curve(n - 1) / 1000;
            assert!(mean.abs_diff(mean_us) <= 150, "{preset}: mean {mean} us, published {mean_us}");
            assert!(full.abs_diff(full_us) <= 150, "{preset}: full {full} us, published {full_us}");
        }
    }
}
