//! One published number beside ours: how far off ours is, whether that counts as reproduced, and why not.

/// A number as a source printed it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Published {
    /// A number.
    Number(f64),
    /// Two measurements of what is one simulation here; ours is held against the farther of the two.
    Twice(f64, f64),
    /// A claim: between these two, in whole numbers of `step`. Ours is rounded as the claim was.
    Range {
        /// The least that counts.
        least: f64,
        /// The most that counts; infinite if the claim has no upper end.
        most: f64,
        /// What the source rounded to.
        step: f64,
    },
    /// The source printed only that it is more than this: the measurement was given up.
    MoreThan(f64),
    /// There is no published number: the figure is ours alone.
    Nothing,
}

/// How far ours may be from what was published and still count as reproduced.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// At most this part of the published number.
    Relative(f64),
    /// At most this many times as much, or as little.
    Factor(f64),
    /// At most this far, in the unit of the figure.
    Absolute(f64),
    /// A claim is a bound by itself.
    Claim,
}

/// The role of a number: whether it may count as a prediction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Standing {
    /// It is held to a bound.
    Judged(Bound),
    /// It had a hand in the model, and so predicts nothing; it may be held to a bound even so.
    Calibrates(Option<Bound>),
    /// It is shown and not judged, for this reason.
    Listed(&'static str),
    /// There is no published number.
    Ours,
}

/// Why some numbers miss their bounds: an entry of the list of deviations, and that in one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cause {
    /// The name of the entry in `docs/deviations.md`.
    pub id: &'static str,
    /// In one line.
    pub why: &'static str,
}

/// A number that is known to miss its bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Known {
    /// Its relative error when it was put on the list, with the sign.
    pub error: f64,
    /// Why it misses.
    pub cause: Cause,
}

/// How much farther off than recorded a known miss may be, in parts of the recorded error and of the
/// published number: what a change that does not concern it can move it.
const DRIFT: (f64, f64) = (0.10, 0.02);

impl Known {
    /// Whether this error is worse than the one on the list, or has the other sign.
    fn is_worse(&self, error: f64) -> bool {
        let sign = self.error.signum();
        error * sign > self.error.abs() * (1.0 + DRIFT.0) + DRIFT.1 || error * sign < 0.0
    }
}

/// The result of a comparison with a published number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is within its bound.
    Ok,
    /// It misses its bound, as is known.
    KnownMiss,
    /// It misses its bound.
    Miss,
    /// It had a hand in the model, and is within its bound if it has one.
    Calibrates,
    /// It is shown and not judged.
    Listed,
    /// It is ours alone.
    New,
}

/// A published number and ours.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// The row's id.
    pub row: String,
    /// The column.
    pub metric: &'static str,
    /// The unit of both numbers.
    pub unit: &'static str,
    /// The published number.
    pub published: Published,
    /// Our number: the mean over the layouts.
    pub ours: f64,
    /// Standard deviation over the layouts.
    pub spread: f64,
    /// The role of the number.
    pub standing: Standing,
    /// If it is known to miss its bound: since when how far, and why.
    pub known: Option<Known>,
}

impl Figure {
    /// (ours - published) / published, where that is defined: 0 within a claim or beyond what was given up.
    #[must_use]
    pub fn error(&self) -> Option<f64> {
        let to = |published: f64| (self.ours - published) / published;
        let error = match self.published {
            Published::Number(published) => to(published),
            Published::Twice(a, b) => to(if (self.ours - a).abs() > (self.ours - b).abs() { a } else { b }),
            Published::Range { least, most, step } => {
                let ours = (self.ours / step).round() * step;
                // Half a step is for what rounding leaves of a step that is no binary fraction.
                if ours < least - step / 2.0 {
                    to(least)
                } else if ours > most + step / 2.0 {
                    to(most)
                } else {
                    0.0
                }
            }
            Published::MoreThan(published) if self.ours >= published => 0.0,
            Published::MoreThan(published) => to(published),
            Published::Nothing => return None,
        };
        error.is_finite().then_some(error)
    }

    /// The error of a prediction: none for a number that calibrated the model, or that was not published.
    #[must_use]
    pub fn predicted(&self) -> Option<f64> {
        (!self.is_calibration()).then(|| self.error()).flatten()
    }

    /// Whether it had a hand in the model.
    #[must_use]
    pub fn is_calibration(&self) -> bool {
        matches!(self.standing, Standing::Calibrates(_))
    }

    /// Returns the bound that the number is held to.
    #[must_use]
    pub fn bound(&self) -> Option<Bound> {
        match self.standing {
            Standing::Judged(bound) => Some(bound),
            Standing::Calibrates(bound) => bound,
            Standing::Listed(_) | Standing::Ours => None,
        }
    }

    /// Why it is listed only, or the one line why it misses.
    #[must_use]
    pub fn reason(&self) -> Option<&'static str> {
        match (self.standing, self.verdict()) {
            (Standing::Listed(reason), _) => Some(reason),
            (_, Verdict::KnownMiss) => self.known.map(|k| k.cause.why),
            _ => None,
        }
    }

    /// Whether it is within its bound; `None` where it is held to none.
    #[must_use]
    pub fn holds(&self) -> Option<bool> {
        let bound = self.bound()?;
        if !self.ours.is_finite() {
            return Some(false);
        }
        let off = |published: f64| match bound {
            Bound::Relative(most) => (self.ours - published).abs() <= most * published,
            Bound::Factor(most) => self.ours * most >= published && self.ours <= published * most,
            Bound::Absolute(most) => (self.ours - published).abs() <= most,
            Bound::Claim => self.error() == Some(0.0),
        };
        match self.published {
            Published::Number(published) => Some(off(published)),
            Published::Twice(a, b) => Some(off(a) && off(b)),
            Published::Range { .. } => Some(self.error() == Some(0.0)),
            Published::MoreThan(published) => Some(self.ours >= published),
            Published::Nothing => None,
        }
    }

    /// Returns the result of the comparison.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        match (self.holds(), self.standing) {
            (Some(false), _) if self.known.is_some() => Verdict::KnownMiss,
            (Some(false), _) => Verdict::Miss,
            (Some(true), Standing::Judged(_)) => Verdict::Ok,
            (_, Standing::Calibrates(_)) => Verdict::Calibrates,
            (_, Standing::Listed(_)) => Verdict::Listed,
            (None, Standing::Judged(_)) | (_, Standing::Ours) => Verdict::New,
        }
    }

    /// What is wrong with it, in a line: a miss that is new or worse than known; and, if `complete`, one that
    /// is on the list and misses no longer.
    pub(super) fn fault(&self, complete: bool) -> Option<String> {
        match (self.verdict(), self.known) {
            (Verdict::Miss, _) => Some(self.to_string()),
            (Verdict::KnownMiss, Some(known)) => {
                let worse = self.error().is_none_or(|e| known.is_worse(e));
                worse.then(|| format!("{self}; the list of known misses has {:+.1} %", known.error * 100.0))
            }
            (_, Some(_)) if complete => Some(format!("{self}: misses no longer; take it off the list")),
            _ => None,
        }
    }
}

impl std::fmt::Display for Figure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { row, metric, ours, unit, .. } = self;
        let digits = if ours.abs() < 100.0 { 2 } else { 0 };
        write!(f, "{row} {metric}: published {}, ours {ours:.digits$} {unit}", self.published)?;
        if let Some(error) = self.error() {
            write!(f, ": {:+.1} %", error * 100.0)?;
        }
        self.bound().map_or(Ok(()), |bound| write!(f, ", allowed {bound}"))
    }
}

impl std::fmt::Display for Bound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Relative(most) => write!(f, "{:.0}%", most * 100.0),
            Self::Factor(most) => write!(f, "x{most}"),
            Self::Absolute(most) => write!(f, "±{most}"),
            Self::Claim => write!(f, "as claimed"),
        }
    }
}

impl std::fmt::Display for Published {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(v) => f.write_str(&short(*v)),
            Self::Twice(a, b) if a == b => f.write_str(&short(*a)),
            Self::Twice(a, b) => write!(f, "{}, {}", short(*a), short(*b)),
            Self::Range { least, most, .. } if most.is_infinite() => write!(f, ">={}", short(*least)),
            Self::Range { least, most, .. } => write!(f, "{}-{}", short(*least), short(*most)),
            Self::MoreThan(v) => write!(f, ">{}", short(*v)),
            Self::Nothing => Ok(()),
        }
    }
}

/// With as many decimals as matter.
#[must_use]
pub fn short(v: f64) -> String {
    match v.abs() {
        a if a >= 1000.0 => format!("{v:.0}"),
        a if a >= 10.0 => format!("{v:.1}").trim_end_matches(".0").to_owned(),
        _ => format!("{v:.3}").trim_end_matches('0').trim_end_matches('.').to_owned(),
    }
}

/// A property that the published tables show and ours must.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// The property.
    pub what: String,
    /// Our figures.
    pub got: String,
    /// Whether it holds.
    pub holds: bool,
    /// The meaning of a miss.
    pub weight: Weight,
}

/// The meaning of a property that does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// A failure.
    Required,
    /// It is known not to hold; that it does would be news.
    Known(Cause),
    /// It is shown and not judged, for this reason.
    Listed(&'static str),
}

impl Check {
    pub(super) fn fault(&self, complete: bool) -> Option<String> {
        let Self { what, got, .. } = self;
        match (self.weight, self.holds) {
            (Weight::Required, false) => Some(format!("{what}: {got}")),
            (Weight::Known(_), true) if complete => {
                Some(format!("{what}: {got}: misses no longer; take it off the list"))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAUSE: Cause = Cause { id: "x", why: "for a reason" };

    fn figure(published: Published, ours: f64, bound: Bound) -> Figure {
        Figure {
            row: "R".to_owned(),
            metric: "bw",
            unit: "KiB/s",
            published,
            ours,
            spread: 0.0,
            standing: Standing::Judged(bound),
            known: None,
        }
    }

    #[test]
    fn each_kind_of_bound_has_its_edges() {
        use Bound::{Absolute, Claim, Factor, Relative};
        let of = |published, bound, ours| figure(published, ours, bound).holds().unwrap();
        let number = Published::Number(100.0);
        for (bound, within, beyond) in [
            (Relative(0.05), [95.0, 105.0], [94.9, 105.1]),
            (Factor(2.0), [50.0, 200.0], [49.9, 200.1]),
            (Absolute(3.0), [97.0, 103.0], [96.9, 103.1]),
        ] {
            assert!(within.iter().all(|&o| of(number, bound, o)), "{bound:?}");
            assert!(!beyond.iter().any(|&o| of(number, bound, o)), "{bound:?}");
        }
        // What was measured twice has to be near both.
        assert!(of(Published::Twice(100.0, 104.0), Relative(0.05), 102.0));
        assert!(!of(Published::Twice(100.0, 110.0), Relative(0.05), 102.0));
        // "Five to nine times" is 4.5 to 9.4.
        let claim = Published::Range { least: 5.0, most: 9.0, step: 1.0 };
        assert!([4.5, 5.0, 9.0, 9.4].iter().all(|&o| of(claim, Claim, o)));
        assert!(![4.4, 9.6, f64::NAN].iter().any(|&o| of(claim, Claim, o)));
        assert!(of(Published::MoreThan(60.0), Relative(0.1), 60.0));
        assert!(!of(Published::MoreThan(60.0), Relative(0.1), 59.0));
        assert!(!of(number, Relative(0.1), f64::NAN), "a row without a result is no reproduction");
    }

    #[test]
    fn errors_are_to_the_nearest_end_of_a_claim_and_to_the_farther_of_two_measurements() {
        let error = |published, ours| figure(published, ours, Bound::Claim).error();
        let claim = Published::Range { least: 1.15, most: 1.30, step: 0.01 };
        assert_eq!(error(claim, 1.146), Some(0.0));
        assert_eq!(error(claim, 1.30), Some(0.0));
        assert!((error(claim, 1.0).unwrap() + 0.1304).abs() < 1e-3);
        assert!((error(claim, 1.56).unwrap() - 0.2).abs() < 1e-9);
        assert_eq!(error(Published::Twice(100.0, 80.0), 90.5), Some((90.5 - 80.0) / 80.0));
        assert_eq!(error(Published::Number(0.0), 3.0), None, "nothing is a part of nothing");
        assert_eq!(error(Published::MoreThan(60.0), 61.0), Some(0.0));
    }

    #[test]
    fn a_known_miss_fails_if_it_gets_worse_changes_sign_or_is_gone() {
        let of = |error: f64, ours: f64, complete: bool| {
            let known = Some(Known { error, cause: CAUSE });
            Figure { known, ..figure(Published::Number(100.0), ours, Bound::Relative(0.05)) }.fault(complete)
        };
        assert_eq!(of(0.5, 150.0, true), None);
        assert_eq!(of(0.5, 130.0, true), None, "a miss that gets better still is one");
        assert!(of(0.5, 158.0, true).unwrap().ends_with("the list of known misses has +50.0 %"));
        assert!(of(0.5, 60.0, true).is_some(), "too little where it was too much");
        assert!(of(0.5, 103.0, true).unwrap().ends_with("take it off the list"));
        assert_eq!(of(0.5, 103.0, false), None, "fewer layouts than the list was made with");
        let unknown = figure(Published::Number(100.0), 110.0, Bound::Relative(0.05));
        assert_eq!(unknown.verdict(), Verdict::Miss);
        assert_eq!(unknown.fault(false).unwrap(), "R bw: published 100, ours 110 KiB/s: +10.0 %, allowed 5%");
    }

    #[test]
    fn a_property_fails_if_it_must_hold_and_does_not_or_the_other_way_round() {
        let check = |weight, holds| Check { what: "a".to_owned(), got: "b".to_owned(), holds, weight };
        assert_eq!(check(Weight::Required, false).fault(true), Some("a: b".to_owned()));
        assert_eq!(check(Weight::Required, true).fault(true), None);
        assert_eq!(check(Weight::Known(CAUSE), false).fault(true), None);
        assert!(check(Weight::Known(CAUSE), true).fault(true).is_some());
        assert_eq!(check(Weight::Listed("why"), false).fault(true), None);
    }
}
