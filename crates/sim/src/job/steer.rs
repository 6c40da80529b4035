//! Options by which jobs steer themselves and each other: `flow`, `latency_target`, `rate_min`,
//! `max_latency`, `exit_what`.
//
//= fio-3.33 HOWTO "flow", "latency_target", "latency_window", "latency_percentile", "latency_run", "rate_min", "exit_what"

use super::model::PerOp;
use super::options::Draft;
use fairhead_core::units::Duration;

/// `flow`: the job's share of the calls of all jobs with its `flow_id`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flow {
    /// Its weight; 0: it is not held back.
    pub weight: u32,
    /// `flow_id`: which jobs share.
    pub id: u32,
    /// `flow_sleep`: how long a job that is ahead waits, with none of its calls in flight. Zero: it waits for
    /// the others.
    pub sleep: Duration,
}

/// `latency_target`: the job looks for the most calls in flight that keep a latency.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LatencyTarget {
    /// `latency_target`. Zero: no target.
    pub target: Duration,
    /// `latency_window`: how long each number of calls in flight is tried.
    pub window: Duration,
    /// `latency_percentile`: how many percent of the calls have to keep it.
    pub percentile: f64,
    /// `latency_run`: whether the job continues when it has found the number, instead of ending.
    pub run: bool,
}

impl Default for LatencyTarget {
    fn default() -> Self {
        Self { target: Duration::ZERO, window: Duration::ZERO, percentile: 100.0, run: false }
    }
}

/// `rate_min`, `rate_iops_min`, `rate_cycle`: below that a job ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateMin {
    /// Bytes a second.
    pub bytes: PerOp<Option<u64>>,
    /// Calls a second.
    pub calls: PerOp<Option<u32>>,
    /// Over how long they are counted. Default 1 s.
    pub cycle: Duration,
}

impl Default for RateMin {
    fn default() -> Self {
        Self { bytes: PerOp::default(), calls: PerOp::default(), cycle: Duration::from_secs(1) }
    }
}

/// `exit_what`: which jobs `exitall` ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ExitWhat {
    /// The jobs of the reporting group.
    #[default]
    Group,
    /// All that run; those behind the next stone wall start then.
    Stonewall,
    /// All, those behind stone walls too.
    All,
}

/// What contradicts itself among them.
pub(super) fn check(draft: &Draft) -> Result<(), (u32, String)> {
    let job = &draft.job;
    let (min, max) = (&job.rate_min, &job.rate);
    let exceeds = |min: Option<u64>, max: Option<u64>| matches!((min, max), (Some(a), Some(b)) if a > b);
    let wide = |calls: Option<u32>| calls.map(u64::from);
    let pairs = [
        ("rate_min", min.bytes.read, max.read),
        ("rate_min", min.bytes.write, max.write),
        ("rate_iops_min", wide(min.calls.read), wide(job.rate_iops.read)),
        ("rate_iops_min", wide(min.calls.write), wide(job.rate_iops.write)),
    ];
    if let Some((option, least, most)) = pairs.into_iter().find(|p| exceeds(p.1, p.2)) {
        let (least, most) = (least.unwrap_or(0), most.unwrap_or(0));
        let message =
            format!("{option}={least} is more than the cap of {most}, so the job would end at once");
        return Err((draft.line_of(option), message));
    }
    let only = ["latency_window", "latency_percentile", "latency_run"];
    if job.latency_target.target.is_zero()
        && let Some(option) = only.into_iter().find(|o| draft.given.contains_key(o))
    {
        return Err((
            draft.line_of(option),
            format!("{option} has no target; add one such as latency_target=5ms"),
        ));
    }
    if job.flow.weight == 0
        && let Some(option) = ["flow_id", "flow_sleep"].into_iter().find(|o| draft.given.contains_key(o))
    {
        return Err((draft.line_of(option), format!("{option} has no flow; add one such as flow=1")));
    }
    Ok(())
}
