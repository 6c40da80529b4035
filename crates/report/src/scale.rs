//! Scales: from values to fractions of an axis, with ticks that people can read, in the field's units.
//!
//! A linear axis from 0 to 187 MiB/s has ticks at 0, 50, 100 and 150; a time axis from 0 to 22 s at 0, 5, 10,
//! 15 and 20 s; a logarithmic one from 80 us to 1.3 s at 100us, 1ms, 10ms, 100ms and 1s. There are at most
//! about six ticks, because pictures may be 330 pixels wide.

/// The unit of the numbers on an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Nanoseconds.
    Time,
    /// Bytes per second, shown in MiB/s.
    Rate,
    /// Percent.
    Percent,
    /// A part of a whole, or a factor.
    Share,
    /// Bytes, shown in decimal units as disk sizes are.
    Bytes,
}

/// An axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Scale {
    low: f64,
    high: f64,
    kind: Kind,
    unit: Unit,
}

/// How values become places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Linear,
    /// By factors.
    Log,
    /// Percent, by factors of what is left to 100: 90, 99 and 99.9 are at equal distances.
    Nines,
}

/// How many nines an axis of them has; what is above them is at its end.
const NINES: f64 = 3.5;

const MIB: f64 = 1_048_576.0;

impl Scale {
    /// Makes a linear axis from `low` to `high`.
    pub(crate) fn linear(low: f64, high: f64, unit: Unit) -> Self {
        let high = if high > low { high } else { low + 1.0 };
        Self { low, high, kind: Kind::Linear, unit }
    }

    /// Makes a linear axis from 0 to the next tick at or above `high`.
    pub(crate) fn up_to_a_tick(high: f64, unit: Unit) -> Self {
        let exact = Self::linear(0.0, high, unit);
        let step = exact.step();
        Self { high: (exact.high / step).ceil() * step, ..exact }
    }

    /// From `low` to `high`, both above 0, by factors; at least one of ten.
    pub(crate) fn log(low: f64, high: f64, unit: Unit) -> Self {
        let low = low.max(1e-9);
        let high = high.max(low * 10.0);
        Self { low, high, kind: Kind::Log, unit }
    }

    /// Makes an axis of percentiles from 0 to the largest: the last tenth, hundredth and thousandth have as
    /// much room as the first nine tenths.
    pub(crate) const fn nines() -> Self {
        Self { low: 0.0, high: 100.0, kind: Kind::Nines, unit: Unit::Percent }
    }

    /// Where it begins and ends.
    pub(crate) const fn range(&self) -> (f64, f64) {
        (self.low, self.high)
    }

    /// Where on the axis: from 0 to 1.
    pub(crate) fn at(&self, value: f64) -> f64 {
        let part = match self.kind {
            Kind::Log => (value.max(self.low) / self.low).ln() / (self.high / self.low).ln(),
            Kind::Linear => (value - self.low) / (self.high - self.low),
            Kind::Nines => -(1.0 - value.min(100.0) / 100.0).log10() / NINES,
        };
        part.clamp(0.0, 1.0)
    }

    /// Values with their labels.
    pub(crate) fn ticks(&self) -> Vec<(f64, String)> {
        let values = match self.kind {
            Kind::Log => self.log_ticks(),
            Kind::Linear => self.linear_ticks(),
            Kind::Nines => vec![50.0, 90.0, 99.0, 99.9],
        };
        values.into_iter().map(|v| (v, self.label(v))).collect()
    }

    /// 1, 2 or 5 times a power of ten (of time: what clocks have), so that there are four to six.
    fn step(&self) -> f64 {
        let base = if self.unit == Unit::Rate { MIB } else { 1.0 };
        let rough = (self.high - self.low) / base / 5.0;
        let power = 10f64.powf(rough.log10().floor());
        let digit = match rough / power {
            d if d > 5.0 => 10.0,
            d if d > 2.0 => 5.0,
            d if d > 1.0 => 2.0,
            _ => 1.0,
        };
        digit * power * base
    }

    fn linear_ticks(&self) -> Vec<f64> {
        let step = self.step();
        let first = (self.low / step - 1e-9).ceil();
        (0..12).map(|i| (first + f64::from(i)) * step).take_while(|v| *v <= self.high + step * 1e-9).collect()
    }

    /// Powers of ten, or as many between them as are needed for three.
    fn log_ticks(&self) -> Vec<f64> {
        // Of many decades every other is enough.
        #[allow(clippy::cast_possible_truncation, reason = "tens of decades")]
        let (from, to) = (self.low.log10().floor() as i32, self.high.log10().ceil() as i32);
        let every = ((to - from) / 7 + 1).max(1);
        let is_inside = |v: &f64| (self.low * 0.999..=self.high * 1.001).contains(v);
        for digits in [&[1.0][..], &[1.0, 3.0], &[1.0, 2.0, 5.0]] {
            let decades = (from..=to).filter(|p| p.rem_euclid(every) == 0);
            let all = decades.flat_map(|p| digits.iter().map(move |d| d * 10f64.powi(p)));
            let found: Vec<f64> = all.filter(is_inside).collect();
            if found.len() >= 3 {
                return found;
            }
        }
        // Less than a factor of three or so: even steps are as good.
        Self { kind: Kind::Linear, ..*self }.linear_ticks()
    }

    /// A value of a tick.
    fn label(&self, v: f64) -> String {
        match self.unit {
            Unit::Time => scaled(v, &[(1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns")]),
            Unit::Rate => plain(v / MIB),
            Unit::Percent => format!("{}%", plain(v)),
            Unit::Share => plain(v),
            Unit::Bytes => bytes(v),
        }
    }
}

/// Bytes, in decimal units with three digits.
pub(crate) fn about_bytes(v: f64) -> String {
    let power = 10f64.powf(v.max(1.0).log10().floor() - 2.0);
    bytes((v / power).round() * power)
}

/// Bytes, in decimal units.
fn bytes(v: f64) -> String {
    scaled(v, &[(1e12, " TB"), (1e9, " GB"), (1e6, " MB"), (1e3, " kB"), (1.0, " B")])
}

/// In the largest unit of which it has at least one.
fn scaled(v: f64, units: &[(f64, &str)]) -> String {
    let fits = |u: &&(f64, &str)| v.abs() >= u.0 * 0.999_999;
    match units.iter().find(fits) {
        Some((unit, name)) => format!("{}{name}", plain(v / unit)),
        None => "0".to_owned(),
    }
}

/// Without digits that say nothing.
fn plain(v: f64) -> String {
    let text = format!("{v:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(s: Scale) -> Vec<String> {
        s.ticks().into_iter().map(|t| t.1).collect()
    }

    #[test]
    fn ticks_are_round_and_few() {
        assert_eq!(labels(Scale::linear(0.0, 22e9, Unit::Time)), ["0", "5s", "10s", "15s", "20s"]);
        assert_eq!(labels(Scale::linear(0.0, 187.0 * MIB, Unit::Rate)), ["0", "50", "100", "150"]);
        assert_eq!(labels(Scale::log(80e3, 1.3e9, Unit::Time)), ["100us", "1ms", "10ms", "100ms", "1s"]);
        assert_eq!(labels(Scale::linear(0.0, 2e12, Unit::Bytes)), ["0", "500 GB", "1 TB", "1.5 TB", "2 TB"]);
        assert_eq!(labels(Scale::log(1.3e6, 9e8, Unit::Time)), ["3ms", "10ms", "30ms", "100ms", "300ms"]);
    }

    #[test]
    fn nines_are_at_equal_distances() {
        let scale = Scale::nines();
        assert_eq!(labels(scale), ["50%", "90%", "99%", "99.9%"]);
        let [a, b, c] = [90.0, 99.0, 99.9].map(|p| scale.at(p));
        assert!((b - 2.0 * a).abs() < 1e-9 && (c - 3.0 * a).abs() < 1e-9);
        assert!(scale.at(0.0).abs() < 1e-9 && (scale.at(100.0) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn any_range_has_ticks_in_it_and_not_many() {
        for low in [0.0, 1.0, 999.0, 1e6] {
            for span in [1e-3, 0.7, 1.0, 3.3, 42.0, 1e5, 7.7e11] {
                for unit in [Unit::Time, Unit::Rate, Unit::Percent, Unit::Bytes] {
                    for scale in [Scale::linear(low, low + span, unit), Scale::log(low, low + span, unit)] {
                        let ticks = scale.ticks();
                        assert!((1..=12).contains(&ticks.len()) || low + span < 10.0, "{scale:?}: {ticks:?}");
                        assert!(ticks.iter().all(|t| (0.0..=1.0).contains(&scale.at(t.0))), "{scale:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn an_axis_of_nothing_is_one_all_the_same() {
        let scale = Scale::linear(0.0, 0.0, Unit::Time);
        assert!(scale.at(0.0).abs() < 1e-9 && scale.at(5.0) <= 1.0);
        assert!(Scale::log(0.0, 0.0, Unit::Time).at(0.0).is_finite());
    }

    #[test]
    fn an_axis_up_to_a_tick_ends_there() {
        let scale = Scale::up_to_a_tick(187.0 * MIB, Unit::Rate);
        assert!((scale.range().1 - 200.0 * MIB).abs() < 1.0);
        assert!((Scale::up_to_a_tick(100.0, Unit::Percent).range().1 - 100.0).abs() < 1e-9);
    }
}
