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
//! Short seeks accelerate and brake, long ones coast; `a` contains the settling. Worked number: with a = 1.2
//! ms, b = 0.0676 ms, knee = 12,000, c = 270 ns and 35,000 cylinders a full stroke takes 1.2 + 7.4 + 6.2 =
//! 14.8 ms. Square roots are integer square roots of `b^2 (d - 1)`, exact to a nanosecond and the same on
//! every machine.
//= Ruemmler & Wilkes 1994, seek time: a square root up to a knee, linear beyond
//= docs/reference/devices.md#12-seek

use crate::geometry::Arm;
use crate::params::DiskParams;
use alloc::boxed::Box;

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
            self.a + isqrt(self.b_squared * (d - 1))
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

    /// Returns the longest seek on a disk of `cylinders` cylinders, or a head switch if that takes longer.
    /// Curves rise; measured ones may not, quite.
    pub(crate) fn longest(&self, cylinders: u64) -> u64 {
        let measured = self.table.iter().map(|s| s.1).max();
        measured.unwrap_or_else(|| self.curve(cylinders.max(1))).max(self.t_switch)
    }

    /// Returns the largest number of cylinders that can be reached within `time`.
    pub(crate) fn reach(&self, time: u64) -> u64 {
        if !self.table.is_empty() {
            // Measured curves are not monotone; between two distances the time is no less than the least of
            // what follows.
            let beyond = self.table.partition_point(|s| s.2 <= time);
            return self.table.get(beyond).map_or(u64::MAX, |s| if beyond == 0 { 0 } else { s.0 });
        }
        let (spare, coasts) = (time.saturating_sub(self.a) + 1, time >= self.at_knee);
        match time {
            t if t < self.a => 0,
            // (d - knee) c / 1000, rounded down, is at most what is left.
            t if coasts => {
                let left = (t - self.at_knee + 1).saturating_mul(1000) - 1;
                left.checked_div(self.c_ps).map_or(u64::MAX, |d| self.knee.saturating_add(d))
            }
            // The root of b^2 (d - 1), rounded down, is at most what is left.
            _ => {
                (spare * spare - 1).checked_div(self.b_squared).map_or(self.knee, |d| (d + 1).min(self.knee))
            }
        }
    }
}

/// The square root, rounded down.
///
/// The processor's is right to the last of its 53 bits, everywhere alike (IEEE 754), so it is off by one at
/// most and then put right; the integer one of the standard library takes five times as long. A kernel has
/// no floats, and takes that one.
#[cfg(not(target_os = "none"))]
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "put right below"
)]
fn isqrt(n: u64) -> u64 {
    let root = (n as f64).sqrt() as u64;
    let is_within = |r: u64| r.checked_mul(r).is_some_and(|square| square <= n);
    match (is_within(root), is_within(root + 1)) {
        (false, _) => root - 1,
        (true, false) => root,
        (true, true) => root + 1,
    }
}

#[cfg(target_os = "none")]
fn isqrt(n: u64) -> u64 {
    n.isqrt()
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

    /// Mean over random pairs, weighting distance d by 2 (n - d) / n^2, and the full stroke: the published
    /// class.
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

    #[test]
    fn roots_are_those_of_the_standard_library() {
        let squares = (1..64).flat_map(|s| {
            let r = (1_u64 << (s / 2)) + s * 977;
            [r * r - 1, r * r, r * r + 1, (1 << s) - 1, 1 << s]
        });
        let ends = [0, 1, 2, 3, u64::MAX, u64::MAX - 1, (1 << 32) - 1, 4_294_967_295 * 4_294_967_295 - 1];
        for n in squares.chain(ends) {
            assert_eq!(isqrt(n), n.isqrt(), "{n}");
        }
    }

    /// Nothing beyond the reach is reached in time, and of a curve the next cylinder within it is.
    #[test]
    fn what_is_out_of_reach_takes_longer() {
        for preset in ["ide2004", "sata2009", "nas2020", "measured"] {
            let (mut s, n) = curve(if preset == "measured" { "ide2004" } else { preset });
            if preset == "measured" {
                // With a dip: 300 cylinders take less than 200.
                let least = [(1, 900_000, 900_000), (200, 2_000_000, 1_900_000), (300, 1_900_000, 1_900_000)];
                s.table = least.into_iter().chain([(20_000, 9_000_000, 9_000_000)]).collect();
            }
            for d in (1..n - 1).step_by((n / 1000).max(1) as usize) {
                for time in [s.curve(d) - 1, s.curve(d), s.curve(d) + 1] {
                    let reach = s.reach(time);
                    let beyond =
                        [1, 2, 10, 1000].map(|by| reach.saturating_add(by)).into_iter().filter(|d| *d < n);
                    for far in beyond {
                        assert!(s.curve(far) > time, "{preset}: {far} in {time} ns, reach {reach}");
                    }
                    assert!(time < s.curve(d) || reach >= d, "{preset}: {d} in {time} ns, reach {reach}");
                }
            }
            assert_eq!(s.reach(0), 0);
        }
    }
}
