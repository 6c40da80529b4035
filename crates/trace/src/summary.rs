//! What a user would want to know of a trace first: how long, how many, what, how large, how sequential, whose.

use crate::record::{DeviceId, Op, Record};
use fairhead_core::{Duration, TaskId};
use std::collections::BTreeMap;

/// How many sizes, tasks and devices are told apart; others are counted together.
const KINDS_MAX: usize = 1 << 16;

/// Requests of one operation.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct OpSummary {
    /// How many.
    pub requests: u64,
    /// How many sectors together.
    pub sectors: u64,
    /// How many are flagged or taken as sync.
    pub sync: u64,
    /// How many begin where the one before of the same task, device and operation ended.
    pub sequential: u64,
}

/// A size and how many have it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SizeCount {
    /// In sectors.
    pub sectors: u32,
    /// How many requests.
    pub requests: u64,
}

/// A summary, in bounded memory.
#[derive(Clone, Default, Debug)]
pub struct Summary {
    /// The time from the first request to the last.
    pub span: Duration,
    ops: [OpSummary; 4],
    sizes: BTreeMap<u32, u64>,
    tasks: BTreeMap<u32, u64>,
    devices: BTreeMap<u32, u64>,
    /// The sectors behind the last, by device.
    ends: BTreeMap<u32, u64>,
    /// Where the last request ended.
    last: BTreeMap<(u32, u32, Op), u64>,
    /// How many completions are recorded.
    pub completed: u64,
    /// The times from requests to completions, added up.
    pub latency: Duration,
    /// The longest of them.
    pub latency_max: Duration,
}

impl Summary {
    /// Adds a request.
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

    /// How many requests.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.ops.iter().map(|o| o.requests).sum()
    }

    /// Those of an operation.
    #[must_use]
    pub const fn of(&self, op: Op) -> &OpSummary {
        &self.ops[op as usize]
    }

    /// The most frequent sizes, at most `most`.
    #[must_use]
    pub fn sizes(&self, most: usize) -> Vec<SizeCount> {
        let top = top(&self.sizes, most);
        top.into_iter().map(|(sectors, requests)| SizeCount { sectors, requests }).collect()
    }

    /// How many sizes there are.
    #[must_use]
    pub fn size_kinds(&self) -> usize {
        self.sizes.len()
    }

    /// Who asked most, at most `most`, with how many requests.
    #[must_use]
    pub fn tasks(&self, most: usize) -> Vec<(TaskId, u64)> {
        top(&self.tasks, most).into_iter().map(|(id, n)| (TaskId(id), n)).collect()
    }

    /// How many tasks there are.
    #[must_use]
    pub fn task_kinds(&self) -> usize {
        self.tasks.len()
    }

    /// The devices with most requests, at most `most`: requests, and the sector behind the last that was asked for.
    #[must_use]
    pub fn devices(&self, most: usize) -> Vec<(DeviceId, u64, u64)> {
        let end = |id: u32| self.ends.get(&id).copied().unwrap_or(0);
        top(&self.devices, most).into_iter().map(|(id, n)| (DeviceId(id), n, end(id))).collect()
    }

    /// How many devices there are.
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

/// The keys with the highest counts, highest first; the smaller key first among equals.
fn top(map: &BTreeMap<u32, u64>, most: usize) -> Vec<(u32, u64)> {
    let mut all: Vec<(u32, u64)> = map.iter().map(|(k, n)| (*k, *n)).collect();
    all.sort_by_key(|(k, n)| (std::cmp::Reverse(*n), *k));
    all.truncate(most);
    all
}
