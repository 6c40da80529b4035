//! What a job is, by its options.

use crate::job::{Direction, Job, JobFile, Kind, Program, SyncMode};
use fairhead_core::Class;

/// What a job is: what `fh_kind` says, or else the first of these that holds.
///
/// | its options | kind |
/// |---|---|
/// | `fh_workload=startup` or `replay`; `exitall` without `runtime` | start |
/// | `rate`, `rate_iops`, `fh_workload=player` | paced |
/// | class real time, `thinktime`, `fsync`, `fdatasync`, `sync`, a task of a trace | waiting |
/// | random reads, one at a time, beside jobs that do something else | waiting |
/// | all others | bulk |
#[must_use]
pub fn kind(jobs: &JobFile, job: &Job) -> Kind {
    if let Some(kind) = job.kind {
        return kind;
    }
    match job.program {
        Some(Program::StartUp(_) | Program::Replay) => Kind::Start,
        Some(Program::Player { .. }) => Kind::Paced,
        Some(Program::Trace) => Kind::Waiting,
        _ if job.exitall && job.runtime.is_none() => Kind::Start,
        _ if has_rate(job) => Kind::Paced,
        _ if is_urgent(job) || !job.thinktime.is_zero() || syncs(job) => Kind::Waiting,
        _ if seeks(job) && !is_idle_class(job) && jobs.jobs.iter().any(|other| !seeks(other)) => {
            Kind::Waiting
        }
        _ => Kind::Bulk,
    }
}

fn has_rate(job: &Job) -> bool {
    let (bytes, calls) = (&job.rate, &job.rate_iops);
    [bytes.read, bytes.write, bytes.trim].iter().any(Option::is_some)
        || [calls.read, calls.write, calls.trim].iter().any(Option::is_some)
}

fn is_urgent(job: &Job) -> bool {
    job.prio.is_some_and(|p| p.class == Class::RealTime)
}

/// Whether a write waits until it is stable.
fn syncs(job: &Job) -> bool {
    job.fsync > 0 || job.fdatasync > 0 || job.sync != SyncMode::None
}

/// Whether it reads at random, one call at a time.
fn seeks(job: &Job) -> bool {
    job.iodepth == 1 && job.rw.direction == Direction::Read && job.random_pct.read >= 50
}

/// Whether the job may wait until others have no work.
pub(super) fn is_idle_class(job: &Job) -> bool {
    job.prio.is_some_and(|p| p.class == Class::Idle)
}
