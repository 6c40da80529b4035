//! A summary of a trace: duration, number and sizes of requests, how sequential they are, tasks and devices.

use crate::record::{DeviceId, Op, Record};
use fairhead_core::{Duration, TaskId};
use std::collections::BTreeMap;

/// The most sizes, tasks and devices that are counted one by one. Later ones are counted in the sums only.
const KINDS_MAX: usize = 1 << 16;

/// The requests of one operation.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct OpSummary {
    /// The number of requests.
    pub requests: u64,
    /// The number of sectors of all of them.
    pub sectors: u64,
    /// The number of requests that count as sync ([`Record::is_sync`]).
    pub sync: u64,
    /// The number of requests that begin where the previous one of the same task, device and operation ended.
    pub sequential: u64,
}

/// A request size and the number of requests that have it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SizeCount {
    /// The size in sectors.
    pub sectors: u32,
    /// The number of requests.
    pub requests: u64,
}

/// A summary of a trace, in bounded memory: add every request, then ask.
///
/// ```
/// use fairhead_trace::{Op, Summary};
/// let csv = "0,20941264,8192,W,0.5\n0,20941280,8192,W,0.7\n";
/// let mut summary = Summary::default();
/// for record in fairhead_trace::read("a", csv.as_bytes()).unwrap() {
///     summary.add(&record.unwrap());
/// }
/// assert_eq!((summary.requests(), summary.of(Op::Write).sequential), (2, 1));
/// assert_eq!(summary.span.as_ms(), 200);
/// ```
#[derive(Clone, Default, Debug)]
pub struct Summary {
    /// The time from the first request to the last.
    pub span: Duration,
    ops: [OpSummary; 4],
    sizes: BTreeMap<u32, u64>,
    tasks: BTreeMap<u32, u64>,
    devices: BTreeMap<u32, u64>,
    /// The highest sector after a request, by device.
    ends: BTreeMap<u32, u64>,
    /// The sector after the last request, by device, task and operation.
    last: BTreeMap<(u32, u32, Op), u64>,
    /// The number of requests whose completion is recorded.
    pub completed: u64,
    /// The sum of the times from request to completion.
    pub latency: Duration,
    /// The longest time from request to completion.
    pub latency_max: Duration,
}

impl Summary {
    /// Counts a request.
    pub fn add(&mut self, r: &Record) {
        self.span = self.span.max(r.at);
        let key = (r.device.0, r.task.0, r.op);
        let continues = self.last.get(&key) == Some(&r.sector.0);
        let op = &mut self.ops[r.op as usize];
        op.requests += 1;
        op.sectors += u64::from(r.sectors);
        op.sync += u64::from(r.is_sync());
        op.sequential += u64::from(continues && r.op != Op::Flush);
        set(&mut self.last, key, r.end());
        count(&mut self.tasks, r.task.0);
        count(&mut self.devices, r.device.0);
        if r.op != Op::Flush {
            count(&mut self.sizes, r.sectors);
            let end = self.ends.get(&r.device.0).copied().unwrap_or(0);
            set(&mut self.ends, r.device.0, end.max(r.end()));
        }
        if let Some(done) = r.completed {
            let latency = done.saturating_sub(r.at);
            self.completed += 1;
            self.latency += latency;
            self.latency_max = self.latency_max.max(latency);
        }
    }

    /// Returns the number of requests.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.ops.iter().map(|o| o.requests).sum()
    }

    /// Returns the counts of one operation.
    #[must_use]
    pub const fn of(&self, op: Op) -> &OpSummary {
        &self.ops[op as usize]
    }

    /// Returns the most frequent sizes, at most `most`.
    #[must_use]
    pub fn sizes(&self, most: usize) -> Vec<SizeCount> {
        let top = top(&self.sizes, most);
        top.into_iter().map(|(sectors, requests)| SizeCount { sectors, requests }).collect()
    }

    /// Returns the number of different sizes.
    #[must_use]
    pub fn size_kinds(&self) -> usize {
        self.sizes.len()
    }

    /// Returns the tasks with the most requests, at most `most`, each with its number of requests.
    #[must_use]
    pub fn tasks(&self, most: usize) -> Vec<(TaskId, u64)> {
        top(&self.tasks, most).into_iter().map(|(id, n)| (TaskId(id), n)).collect()
    }

    /// Returns the number of tasks.
    #[must_use]
    pub fn task_kinds(&self) -> usize {
        self.tasks.len()
    }

    /// Returns the devices with the most requests, at most `most`: the number of requests, and the sector
    /// after the last one used.
    #[must_use]
    pub fn devices(&self, most: usize) -> Vec<(DeviceId, u64, u64)> {
        let end = |id: u32| self.ends.get(&id).copied().unwrap_or(0);
        top(&self.devices, most).into_iter().map(|(id, n)| (DeviceId(id), n, end(id))).collect()
    }

    /// Returns the number of devices.
    #[must_use]
    pub fn device_kinds(&self) -> usize {
        self.devices.len()
    }
}

fn set<K: Ord>(map: &mut BTreeMap<K, u64>, key: K, value: u64) {
    if map.len() < KINDS_MAX || map.contains_key(&key) {
        map.insert(key, value);
    }
}

fn count(map: &mut BTreeMap<u32, u64>, key: u32) {
    let n = map.get(&key).copied().unwrap_or(0);
    set(map, key, n + 1);
}

/// Returns the keys with the highest counts, highest first; among equals the smaller key first.
fn top(map: &BTreeMap<u32, u64>, most: usize) -> Vec<(u32, u64)> {
    let mut all: Vec<(u32, u64)> = map.iter().map(|(k, n)| (*k, *n)).collect();
    all.sort_by_key(|(k, n)| (std::cmp::Reverse(*n), *k));
    all.truncate(most);
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Flags;
    use fairhead_core::Sector;

    fn record(us: u64, task: u32, op: Op, sector: u64, sectors: u32) -> Record {
        let at = Duration::from_us(us);
        Record { task: TaskId(task), ..Record::new(at, op, Sector(sector), sectors) }
    }

    #[test]
    fn interleaved_streams_are_sequential_each() {
        let mut s = Summary::default();
        for i in 0..4 {
            s.add(&record(10 * i, 1, Op::Read, 8 * i, 8));
            s.add(&record(10 * i + 5, 2, Op::Read, 5000 + 16 * i, 16));
        }
        s.add(&record(100, 1, Op::Write, 32, 8));
        assert_eq!(*s.of(Op::Read), OpSummary { requests: 8, sectors: 96, sync: 8, sequential: 6 });
        assert_eq!(*s.of(Op::Write), OpSummary { requests: 1, sectors: 8, sync: 0, sequential: 0 });
        assert_eq!((s.requests(), s.span), (9, Duration::from_us(100)));
        let size = |sectors, requests| SizeCount { sectors, requests };
        assert_eq!(s.sizes(5), [size(8, 5), size(16, 4)]);
        assert_eq!(s.tasks(1), [(TaskId(1), 5)]);
        assert_eq!(s.devices(5), [(DeviceId(0), 9, 5064)]);
    }

    #[test]
    fn latency_is_of_those_that_completed() {
        let mut s = Summary::default();
        for (us, took) in [(0, Some(10)), (5, None), (7, Some(30))] {
            let completed = took.map(|t: u64| Duration::from_us(us + t));
            s.add(&Record { completed, ..record(us, 0, Op::Write, 0, 1) });
        }
        assert_eq!(
            (s.completed, s.latency, s.latency_max),
            (2, Duration::from_us(40), Duration::from_us(30))
        );
    }

    #[test]
    fn read_ahead_is_not_sync_and_flushes_have_no_size() {
        let mut s = Summary::default();
        s.add(&Record { flags: Flags::AHEAD, ..record(0, 0, Op::Read, 0, 8) });
        s.add(&record(0, 0, Op::Flush, 0, 0));
        assert_eq!((s.of(Op::Read).sync, s.of(Op::Flush).requests, s.size_kinds()), (0, 1, 1));
    }

    #[test]
    fn memory_is_bounded() {
        let mut s = Summary::default();
        for i in 0..KINDS_MAX as u32 + 100 {
            s.add(&record(0, i, Op::Read, 0, i + 1));
        }
        assert_eq!((s.size_kinds(), s.task_kinds(), s.last.len()), (KINDS_MAX, KINDS_MAX, KINDS_MAX));
        assert_eq!(s.requests(), KINDS_MAX as u64 + 100);
    }
}
