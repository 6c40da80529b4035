//! From points to the parameters of the seek curve.
//!
//! The model's curve is `a + b sqrt(d - 1)` up to the knee and a straight line beyond, over cylinders. With
//! the knee given it is linear in `a`, `b` and `c`, so least squares have an answer in closed form; knees are
//! tried one by one. What counts is the relative error, as short seeks are as frequent in practice as long
//! ones.
//!
//! A cylinder is as many tracks as there are surfaces, which reads hardly show: `b sqrt(d)` over tracks is
//! the same curve for any number, but for its first few cylinders. The number that fits best is taken, and
//! its confidence is low.
//= docs/reference/devices.md#12-seek

use super::seeks::Point;

/// `a + b sqrt(d - 1) + c (d - knee)`, ns over cylinders.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Curve {
    pub(super) heads: u32,
    pub(super) a: f64,
    pub(super) b: f64,
    pub(super) knee: f64,
    pub(super) c: f64,
    /// Root mean square of the relative error of the points.
    pub(super) error: f64,
}

fn basis(cylinders: f64, knee: f64) -> [f64; 3] {
    [1.0, (cylinders.min(knee) - 1.0).max(0.0).sqrt(), (cylinders - knee).max(0.0)]
}

/// Three equations, three unknowns; by elimination.
fn solve(mut m: [[f64; 4]; 3]) -> Option<[f64; 3]> {
    for i in 0..3 {
        let pivot = (i..3).max_by(|&x, &y| m[x][i].abs().total_cmp(&m[y][i].abs()))?;
        m.swap(i, pivot);
        let row = m[i];
        if row[i].abs() < 1e-12 {
            return None;
        }
        for other in (0..3).filter(|r| *r != i) {
            let f = m[other][i] / row[i];
            m[other].iter_mut().zip(row).for_each(|(x, y)| *x -= f * y);
        }
    }
    Some([m[0][3] / m[0][0], m[1][3] / m[1][1], m[2][3] / m[2][2]])
}

impl Curve {
    /// Returns the time of a seek over this many tracks, starting anywhere in a cylinder, in ns.
    pub(super) fn over_tracks(&self, tracks: f64) -> f64 {
        self.over(tracks / f64::from(self.heads))
    }

    fn over(&self, cylinders: f64) -> f64 {
        let [_, root, far] = basis(cylinders, self.knee);
        self.a + self.b * root + self.c * far
    }

    /// With this knee, by least squares; weights make the errors relative.
    fn with_knee(points: &[(f64, f64)], knee: f64, heads: u32) -> Option<Self> {
        let mut m = [[0.0; 4]; 3];
        for &(d, t) in points {
            let x = basis(d, knee);
            let w = 1.0 / (t * t);
            for i in 0..3 {
                for k in 0..3 {
                    m[i][k] += w * x[i] * x[k];
                }
                m[i][3] += w * x[i] * t;
            }
        }
        // Nothing beyond the knee: no slope there.
        if m[2][2] == 0.0 {
            m[2] = [0.0, 0.0, 1.0, 0.0];
        }
        let [a, b, c] = solve(m)?;
        let mut curve = Self { heads, a, b, knee, c, error: 0.0 };
        let squares = points.iter().map(|&(d, t)| (curve.over(d) / t - 1.0).powi(2)).sum::<f64>();
        curve.error = (squares / points.len() as f64).sqrt();
        (a > 0.0 && b >= 0.0 && c >= 0.0).then_some(curve)
    }

    fn with_heads(points: &[Point], heads: u32) -> Option<Self> {
        let points: Vec<(f64, f64)> =
            points.iter().map(|p| ((p.tracks / f64::from(heads)).max(1.0), p.least)).collect();
        let longest = points.iter().map(|p| p.0).fold(1.0, f64::max);
        let knees = (0..60).map(|i| longest.powf(0.35 + 0.65 * f64::from(i) / 59.0).max(2.0).round());
        knees
            .filter_map(|knee| Self::with_knee(&points, knee, heads))
            .min_by(|a, b| a.error.total_cmp(&b.error))
    }

    /// The best curve through the points, whose times are seeks alone; `None` if no curve of this form is
    /// near them.
    pub(super) fn through(points: &[Point]) -> Option<Self> {
        if points.len() < 6 {
            return None;
        }
        // Points far off a first curve were disturbed.
        let first = Self::among_heads(points)?;
        let limit = (3.0 * first.error).max(0.05);
        let kept: Vec<Point> = points
            .iter()
            .copied()
            .filter(|p| {
                (first.over_tracks(p.tracks.max(f64::from(first.heads))) / p.least - 1.0).abs() <= limit
            })
            .collect();
        if kept.len() * 4 < points.len() * 3 { Some(first) } else { Self::among_heads(&kept) }
    }

    fn among_heads(points: &[Point]) -> Option<Self> {
        let all = (1..=16).filter_map(|heads| Self::with_heads(points, heads));
        all.min_by(|a, b| a.error.total_cmp(&b.error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_comes_back_from_its_points() {
        let real = Curve { heads: 4, a: 1.2e6, b: 67_600.0, knee: 12_000.0, c: 270.0, error: 0.0 };
        let points: Vec<Point> = (0..25)
            .map(|i| 8.0 * (130_000.0_f64 / 8.0).powf(f64::from(i) / 24.0))
            .map(|tracks| Point { tracks, least: real.over_tracks(tracks) })
            .collect();
        let c = Curve::through(&points).unwrap();
        assert!(c.error < 0.01, "{c:?}");
        for p in &points {
            let e = (c.over_tracks(p.tracks) / p.least - 1.0).abs();
            assert!(e < 0.01, "{} tracks: {e}", p.tracks);
        }
        assert!((c.a / real.a - 1.0).abs() < 0.03, "{c:?}");
    }
}
