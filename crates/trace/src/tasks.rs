//! A summary of a trace by process: requests, bytes, latency and order of each.
//!
//! Latencies are counted in buckets whose width is at most 1/64 of their latency, so that a percentile is
//! exact to 1.6 %, and memory does not grow with the trace.

use crate::record::{Op, Record};
use fairhead_core::{Duration, TaskId};
use std::collections::BTreeMap;

/// The most tasks that are counted one by one. The rest is counted as the task of number 0.
const TASKS_MAX: usize = 4096;
/// Buckets for each power of two, and how many bits say which of them.
const STEPS: u32 = 1 << STEP_BITS;
const STEP_BITS: u32 = 6;

/// The requests of one task.
#[derive(Clone, Default, Debug)]
pub struct TaskSummary {
    /// The number of requests.
    pub requests: u64,
    /// The number of sectors that were read.
    pub read_sectors: u64,
    /// The number of sectors that were written or discarded.
    pub written_sectors: u64,
    /// The number of requests with sectors that begin where the task's previous one of the same device and
    /// operation ended.
    pub sequential: u64,
    /// The number of requests with sectors.
    pub with_sectors: u64,
    buckets: BTreeMap<u32, u64>,
    completed: u64,
}

impl TaskSummary {
    /// Returns the latency that this share of the completed requests, in thousandths, did not exceed: 990 is
    /// the 99th percentile. `None` if no request has a completion.
    #[must_use]
    pub fn latency(&self, thousandths: u64) -> Option<Duration> {
        let rank = (u128::from(self.completed) * u128::from(thousandths)).div_ceil(1000).max(1);
        let mut seen = 0;
        for (bucket, n) in &self.buckets {
            seen += u128::from(*n);
            if seen >= rank {
                return Some(Duration::from_ns(upper(*bucket)));
            }
        }
        None
    }
}

/// A summary by task, in bounded memory: add every request, then ask.
///
/// ```
/// use fairhead_core::{Duration, Sector, TaskId};
/// use fairhead_trace::{Op, Record, Tasks};
/// let mut tasks = Tasks::default();
/// for i in 0..100 {
///     let at = Duration::from_ms(i);
///     let completed = Some(at + Duration::from_us(if i == 99 { 900 } else { 100 }));
///     tasks.add(&Record { task: TaskId(7), completed, ..Record::new(at, Op::Read, Sector(i * 8), 8) });
/// }
/// let (id, fio) = tasks.busiest(5)[0];
/// assert_eq!((id, fio.requests, fio.sequential), (TaskId(7), 100, 99));
/// assert!(fio.latency(990).unwrap() < Duration::from_us(102));
/// assert!(fio.latency(1000).unwrap() >= Duration::from_us(900));
/// ```
#[derive(Clone, Default, Debug)]
pub struct Tasks {
    tasks: BTreeMap<u32, TaskSummary>,
    ends: BTreeMap<(u32, u32, Op), u64>,
}

impl Tasks {
    /// Counts a request.
    pub fn add(&mut self, r: &Record) {
        let known = self.tasks.len() < TASKS_MAX || self.tasks.contains_key(&r.task.0);
        let id = if known { r.task.0 } else { 0 };
        let task = self.tasks.entry(id).or_default();
        task.requests += 1;
        if r.sectors > 0 {
            let end = self.ends.entry((id, r.device.0, r.op)).or_insert(u64::MAX);
            task.with_sectors += 1;
            task.sequential += u64::from(*end == r.sector.0);
            *end = r.end();
            let moved = if r.op == Op::Read { &mut task.read_sectors } else { &mut task.written_sectors };
            *moved += u64::from(r.sectors);
        }
        if let Some(done) = r.completed {
            *task.buckets.entry(bucket(done.saturating_sub(r.at).as_ns())).or_insert(0) += 1;
            task.completed += 1;
        }
    }

    /// Returns the tasks with the most sectors, at most `most`; among equals the smaller number first.
    #[must_use]
    pub fn busiest(&self, most: usize) -> Vec<(TaskId, &TaskSummary)> {
        let mut all: Vec<_> = self.tasks.iter().map(|(id, t)| (TaskId(*id), t)).collect();
        all.sort_by_key(|(id, t)| (std::cmp::Reverse(t.read_sectors + t.written_sectors), id.0));
        all.truncate(most);
        all
    }

    /// Returns the number of tasks.
    #[must_use]
    pub fn count(&self) -> usize {
        self.tasks.len()
    }
}

/// Returns the bucket of a latency: itself below 64 ns, else its power of two and the next six bits.
fn bucket(ns: u64) -> u32 {
    if ns < u64::from(STEPS) {
        return ns as u32;
    }
    let power = ns.ilog2();
    let step = (ns >> (power - STEP_BITS)) as u32 & (STEPS - 1);
    (power - STEP_BITS + 1) * STEPS + step
}

/// Returns the highest latency of a bucket.
fn upper(bucket: u32) -> u64 {
    if bucket < STEPS {
        return u64::from(bucket);
    }
    let (power, step) = (bucket / STEPS + STEP_BITS - 1, bucket % STEPS);
    let first = u128::from(STEPS + step) << (power - STEP_BITS);
    let last = first + (1u128 << (power - STEP_BITS)) - 1;
    u64::try_from(last).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_holds_its_latencies_to_a_sixty_fourth() {
        for ns in (0..200_000).chain([u64::MAX, u64::MAX - 1, 1 << 40]) {
            let top = upper(bucket(ns));
            assert!(
                top >= ns && u128::from(top - ns) * 64 <= u128::from(ns),
                "{ns} is in the bucket up to {top}"
            );
            assert_eq!(bucket(top), bucket(ns));
        }
    }

    #[test]
    fn tasks_are_bounded() {
        let mut tasks = Tasks::default();
        for i in 0..10_000 {
            let r = Record::new(Duration::ZERO, Op::Write, fairhead_core::Sector(0), 8);
            tasks.add(&Record { task: TaskId(i + 1), ..r });
        }
        assert_eq!(tasks.count(), TASKS_MAX + 1);
        assert_eq!(tasks.busiest(1)[0].1.requests, 10_000 - TASKS_MAX as u64);
    }
}
