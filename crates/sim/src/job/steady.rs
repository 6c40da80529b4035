//! `steadystate`: a job ends when its figures have become steady.
//
//= fio-3.33 HOWTO "steadystate", "steadystate_duration", "steadystate_ramp_time"

use super::error::clean;
use super::value::Arg;
use fairhead_core::units::Duration;

/// `steadystate` and what belongs to it: which figures are looked at, how, and when they are steady enough.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SteadyState {
    /// Which figure of each second is looked at. Default calls a second.
    pub of: SteadyFigure,
    /// True: the slope of a line through the window has to be small. False: so has the largest distance from
    /// the window's mean. Default true.
    pub by_slope: bool,
    /// The job ends when the figure is below this. Default 0.01.
    pub limit: f64,
    /// Whether the limit is in percent of the window's mean; otherwise in calls or bytes a second. Default
    /// true.
    pub in_percent: bool,
    /// `steadystate_duration`: how long the window is, of which only whole seconds count. Below 1 s, as by
    /// default: nothing is looked at.
    pub duration: Duration,
    /// `steadystate_ramp_time`: how long after the job's start the first second begins that counts. Default
    /// zero.
    pub ramp: Duration,
}

/// The figure that is counted in each second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SteadyFigure {
    /// Calls.
    Calls,
    /// Bytes.
    Bytes,
}

impl Default for SteadyState {
    /// fio's `iops_slope:0.01%`, over no time.
    fn default() -> Self {
        Self {
            of: SteadyFigure::Calls,
            by_slope: true,
            limit: 0.01,
            in_percent: true,
            duration: Duration::ZERO,
            ramp: Duration::ZERO,
        }
    }
}

impl SteadyState {
    /// Whether the job looks for a steady state at all.
    #[must_use]
    pub const fn is_on(&self) -> bool {
        self.duration.as_ns() >= 1_000_000_000
    }

    /// The criterion in fio's words, such as `iops_slope`.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match (self.of, self.by_slope) {
            (SteadyFigure::Calls, false) => "iops",
            (SteadyFigure::Calls, true) => "iops_slope",
            (SteadyFigure::Bytes, false) => "bw",
            (SteadyFigure::Bytes, true) => "bw_slope",
        }
    }

    /// Returns this criterion with the value of `steadystate=`: `iops:2`, `bw_slope:0.3%`.
    pub(super) fn with(self, arg: &Arg<'_>) -> Result<Self, String> {
        let example = format!("such as {}=iops_slope:0.3%", arg.key);
        let Some((word, limit)) = arg.value.split_once(':') else {
            return Err(format!("'{}' has no limit behind a colon, {example}", arg.show()));
        };
        let known = [
            ("iops", (SteadyFigure::Calls, false)),
            ("iops_slope", (SteadyFigure::Calls, true)),
            ("bw", (SteadyFigure::Bytes, false)),
            ("bw_slope", (SteadyFigure::Bytes, true)),
        ];
        let (of, by_slope) = arg.with(word).word(&known)?;
        let wrong = || format!("'{}' is no limit in '{}', {example}", clean(limit), arg.show());
        let percent = limit.strip_suffix('%');
        let limit = match (percent, of) {
            (None, SteadyFigure::Bytes) =>
            {
                #[allow(clippy::cast_precision_loss, reason = "a bandwidth to compare with")]
                arg.with(limit).bytes().map(|bytes| bytes as f64)?
            }
            (number, _) => number.unwrap_or(limit).trim().parse::<f64>().map_err(|_| wrong())?,
        };
        if !limit.is_finite() || limit <= 0.0 {
            return Err(format!("'{}': nothing is below a limit of {limit}, {example}", arg.show()));
        }
        Ok(Self { of, by_slope, limit, in_percent: percent.is_some(), ..self })
    }
}
