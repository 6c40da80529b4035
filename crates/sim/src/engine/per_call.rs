//! What every call asks of its job.

use crate::job::{Engine, Job, PerOp};
use fairhead_core::{Duration, IoPrio};

/// What every call asks of its job, side by side: the job itself has more than a kilobyte.
#[derive(Debug)]
pub(super) struct PerCall {
    /// The engine makes no I/O.
    pub(super) is_null: bool,
    /// Calls bypass the page cache.
    pub(super) is_direct: bool,
    /// It polls for completions.
    pub(super) polls: bool,
    /// The most calls that are submitted at a time.
    pub(super) batch: u32,
    /// CPU time before a call, if it is not the host's, and for each 4 KiB of it.
    pub(super) think: Option<Duration>,
    pub(super) per_4k: Duration,
    /// I/O priority of calls that have none of their own.
    pub(super) prio: IoPrio,
    pub(super) write_sync: Option<bool>,
    /// Some calls have a priority of their own.
    pub(super) has_prios: bool,
    /// It thinks between calls.
    pub(super) thinks: bool,
    /// A slow call or a low rate ends it.
    pub(super) has_bounds: bool,
    /// Each call is measured by itself.
    pub(super) is_measured_alone: bool,
}

impl PerCall {
    pub(super) fn of(job: &Job) -> Self {
        let (longest, rate) = (&job.max_latency, &job.rate_min);
        Self {
            is_null: job.engine == Engine::Null,
            is_direct: job.direct,
            polls: job.hipri,
            batch: job.iodepth_batch,
            think: job.think,
            per_4k: job.cpu_per_4k,
            prio: job.prio.unwrap_or_default(),
            write_sync: job.direct_write_sync,
            has_prios: !(job.call_prio.read.is_empty() && job.call_prio.write.is_empty()),
            thinks: !job.thinktime.is_zero(),
            has_bounds: *longest != PerOp::all(None)
                || rate.bytes != PerOp::all(None)
                || rate.calls != PerOp::all(None),
            is_measured_alone: job.query_calls <= 1,
        }
    }
}
