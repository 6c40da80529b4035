//! Means, intervals and Student's t, for few seeds.
//!
//! Example: of the ratios 2.0, 2.1 and 1.92, [`Ratio::of`] their logarithms is 2.01, between 1.80 and 2.24.
//!
//! The t distribution with a whole number of degrees of freedom has a finite series, so nothing is
//! approximated but by the arithmetic; its quantile is found by halving an interval. Sums go from the first
//! to the last: the same bits everywhere.
//
//= M. Abramowitz, I. Stegun, "Handbook of mathematical functions", 26.7.3 and 26.7.4

/// The probability with which |t| is below `t`, with `freedom` degrees of freedom, at least 1.
#[must_use]
pub fn student_within(t: f64, freedom: u32) -> f64 {
    let angle = libm::atan(t / libm::sqrt(f64::from(freedom)));
    let (sin, cos) = (libm::sin(angle), libm::cos(angle));
    let odd = freedom % 2 == 1;
    // The terms are cos, 2/3 cos^3, 2·4/(3·5) cos^5 … for odd ones, and 1, 1/2 cos^2, 1·3/(2·4) cos^4 … for
    // even ones.
    let (mut term, mut sum) = (if odd { cos } else { 1.0 }, 0.0);
    let mut power = if odd { 1 } else { 0 };
    while power + 2 <= freedom {
        sum += term;
        term *= cos * cos * f64::from(power + 1) / f64::from(power + 2);
        power += 2;
    }
    if odd { (angle + sin * sum) * std::f64::consts::FRAC_2_PI } else { sin * sum }
}

/// Returns the bound that |t| stays below with this probability (0.95 for an interval of 95 %), with
/// `freedom` degrees of freedom, at least 1.
#[must_use]
pub fn student(probability: f64, freedom: u32) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    while student_within(high, freedom) < probability && high < 1e9 {
        high *= 2.0;
    }
    // The 53 bits of a mantissa, and some for the doubling.
    for _ in 0..80 {
        let middle = f64::midpoint(low, high);
        if student_within(middle, freedom) < probability {
            low = middle;
        } else {
            high = middle;
        }
    }
    f64::midpoint(low, high)
}

/// A mean, and how far it may be off.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mean {
    /// How many values.
    pub count: u32,
    /// The mean of the values; 0 of none.
    pub mean: f64,
    /// The standard deviation of the values, with `count - 1`; 0 of one.
    pub deviation: f64,
}

impl Mean {
    /// Computes the statistics of these values.
    #[must_use]
    pub fn of(values: &[f64]) -> Self {
        let count = u32::try_from(values.len()).unwrap_or(u32::MAX);
        let n = f64::from(count.max(1));
        let mean = values.iter().sum::<f64>() / n;
        let squares = values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>();
        let deviation = if count > 1 { libm::sqrt(squares / (n - 1.0)) } else { 0.0 };
        Self { count, mean, deviation }
    }

    /// Half the width of the interval that holds the true mean with this probability; nothing is known from
    /// fewer than two.
    #[must_use]
    pub fn half_width(&self, probability: f64) -> Option<f64> {
        let freedom = self.count.checked_sub(1).filter(|f| *f > 0)?;
        Some(student(probability, freedom) * self.deviation / libm::sqrt(f64::from(self.count)))
    }
}

/// A ratio with its interval: the mean of logarithms, told as a ratio.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// How many pairs.
    pub count: u32,
    /// The geometric mean.
    pub ratio: f64,
    /// The interval's lower end; 0 of fewer than two.
    pub low: f64,
    /// Its upper end; infinite of fewer than two.
    pub high: f64,
}

impl Ratio {
    /// Computes the ratio and its interval from logarithms of ratios.
    #[must_use]
    pub fn of(logarithms: &[f64], probability: f64) -> Self {
        let mean = Mean::of(logarithms);
        let half = mean.half_width(probability).unwrap_or(f64::INFINITY);
        Self {
            count: mean.count,
            ratio: libm::exp(mean.mean),
            low: libm::exp(mean.mean - half),
            high: libm::exp(mean.mean + half),
        }
    }

    /// Whether the interval is so wide that the ratio says nothing: its ends differ by more than a factor of
    /// 4. Example: a factor of 7 between 0.11 and 433.
    #[must_use]
    pub fn is_vague(&self) -> bool {
        self.high > 4.0 * self.low
    }

    /// Returns the finding, if `equal` (1.05, say) is a factor not worth mentioning.
    #[must_use]
    pub fn finding(&self, equal: f64) -> Finding {
        match (self.low, self.high) {
            (low, high) if low >= 1.0 / equal && high <= equal => Finding::NoDifference,
            (low, _) if low > 1.0 => Finding::Better,
            (_, high) if high < 1.0 => Finding::Worse,
            _ => Finding::NothingFound,
        }
    }
}

/// The finding that a ratio's interval allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    /// All of it is above 1.
    Better,
    /// All of it is below 1.
    Worse,
    /// It is narrow, and at 1.
    NoDifference,
    /// It is wide, and holds 1: more seeds might tell.
    NothingFound,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64, by: f64) -> bool {
        (a - b).abs() <= by
    }

    /// As printed, to three decimals.
    //= NIST/SEMATECH e-Handbook of statistical methods, 1.3.6.7.2, columns 0.90, 0.975 and 0.995 type=test
    const TABLE: [(u32, f64, f64, f64); 12] = [
        (1, 3.078, 12.706, 63.657),
        (2, 1.886, 4.303, 9.925),
        (3, 1.638, 3.182, 5.841),
        (4, 1.533, 2.776, 4.604),
        (5, 1.476, 2.571, 4.032),
        (7, 1.415, 2.365, 3.499),
        (10, 1.372, 2.228, 3.169),
        (15, 1.341, 2.131, 2.947),
        (23, 1.319, 2.069, 2.807),
        (30, 1.310, 2.042, 2.750),
        (60, 1.296, 2.000, 2.660),
        (100, 1.290, 1.984, 2.626),
    ];

    #[test]
    fn student_is_as_in_the_printed_table() {
        for (freedom, t90, t975, t995) in TABLE {
            for (probability, t) in [(0.80, t90), (0.95, t975), (0.99, t995)] {
                let ours = student(probability, freedom);
                assert!(near(ours, t, 0.000_501), "{freedom}, {probability}: {ours}, printed {t}");
            }
        }
    }

    #[test]
    fn student_becomes_the_normal_distribution() {
        assert!(near(student(0.95, 100_000), 1.959_964, 1e-4));
        // With one degree it is Cauchy's: the quartile is 1.
        assert!(near(student(0.5, 1), 1.0, 1e-12));
        assert!(near(student_within(0.0, 7), 0.0, 1e-15));
    }

    /// Student's own example of two soporifics, ten patients each treated with both: the mean gain is 1.58
    /// hours with a t of 4.06, and the interval of 95 % from 0.70 to 2.46.
    //= Student 1908, section IX; the interval as in R's manual of t.test(extra ~ group, sleep, paired) type=test
    #[test]
    fn students_own_example() {
        let gains = [1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4];
        let mean = Mean::of(&gains);
        assert!(near(mean.mean, 1.58, 1e-12) && near(mean.deviation, 1.229_995, 1e-6), "{mean:?}");
        let half = mean.half_width(0.95).unwrap();
        assert!(near(mean.mean - half, 0.700_114, 1e-6) && near(mean.mean + half, 2.459_886, 1e-6), "{half}");
        let t = mean.mean / (mean.deviation / 10.0_f64.sqrt());
        assert!(near(t, 4.062_1, 1e-4), "{t}");
        assert!(near(1.0 - student_within(t, 9), 0.002_833, 1e-6));
    }

    #[test]
    fn the_modules_example() {
        let logs = [160.0 / 80.0, 210.0 / 100.0, 240.0 / 125.0_f64].map(f64::ln);
        let r = Ratio::of(&logs, 0.95);
        assert!(near(r.ratio, 2.01, 0.005) && near(r.low, 1.80, 0.01) && near(r.high, 2.24, 0.01), "{r:?}");
        assert_eq!(r.finding(1.05), Finding::Better);
    }

    #[test]
    fn a_finding_needs_more_than_one_value() {
        let found = |values: &[f64]| Ratio::of(values, 0.95).finding(1.05);
        assert_eq!(found(&[1.0]), Finding::NothingFound);
        assert_eq!(found(&[]), Finding::NothingFound);
        assert_eq!(found(&[1.0, 1.0]), Finding::Better);
        assert_eq!(found(&[-1.0, -1.0]), Finding::Worse);
        assert_eq!(found(&[0.0, 0.0]), Finding::NoDifference);
        // Significant, and not worth mentioning.
        assert_eq!(found(&[0.01, 0.01, 0.011]), Finding::NoDifference);
        assert_eq!(found(&[0.5, -0.5]), Finding::NothingFound);
    }
}
