//! Options by which jobs steer themselves and each other: `flow`, `latency_target`, `rate_min`,
//! `max_latency`, `exit_what`.
//
//= fio-3.33 HOWTO "flow", "latency_target", "latency_window", "latency_percentile", "latency_run", "rate_min", "exit_what"

use super::load::PerOp;
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
