//! A drawn job file in the lab, on a disk that is almost as quick as the memory that fio's files lie in, with
//! as many seeds as its chance asks for.

use super::{Call, Client, Entry, Seen};
use fairhead_core::sched::any::PRESETS;
use fairhead_device::DeviceParams;
use fairhead_sim::job::{self, JobFile};
use fairhead_sim::journal::{self, CallKind, Sink};
use fairhead_sim::{Host, Outcome, Scenario};
use std::cell::RefCell;
use std::collections::BTreeMap;

const DISK: &str = "nvme";

/// The disk without what takes time in it: each call ends a few microseconds after its command.
fn memory() -> DeviceParams {
    let text = fairhead_device::preset_text(DISK).expect("a disk");
    let quick = |key: &str| match key {
        "t_read" | "t_prog" | "t_prog_slc" | "t_erase" | "t_fix" | "t_fix_write" | "t_cmd" | "t_flush"
        | "t_suspend" => Some("\"0.1us\""),
        "link_rate" | "channel_rate" => Some("\"20000MB/s\""),
        _ => None,
    };
    let line = |line: &str| match line.split_once('=').and_then(|(key, _)| quick(key.trim()).zip(Some(key))) {
        Some((value, key)) => format!("{key}= {value}\n"),
        None => format!("{line}\n"),
    };
    DeviceParams::from_toml(&text.lines().map(line).collect::<String>(), "memory.toml").expect("a disk")
}

/// The lab with a job file.
pub(super) struct Lab {
    pub(super) jobs: Result<JobFile, String>,
    /// By seed, as far as it was asked for.
    runs: RefCell<Vec<Result<Seen, String>>>,
}

impl Lab {
    pub(super) fn new(text: &str) -> Self {
        let jobs = job::parse(text, "job.fio").map_err(|e| e.to_string());
        Self { jobs, runs: RefCell::default() }
    }

    /// What happens with a seed.
    pub(super) fn run(&self, seed: usize) -> Result<Seen, String> {
        let mut runs = self.runs.borrow_mut();
        for seed in runs.len()..=seed {
            runs.push(self.jobs.clone().and_then(|jobs| run(jobs, seed as u64 + 1)));
        }
        runs[seed].clone()
    }
}

#[derive(Default)]
struct Calls(Vec<journal::Call>);

impl Sink for Calls {
    fn call(&mut self, call: &journal::Call) {
        self.0.push(*call);
    }
}

fn run(jobs: JobFile, seed: u64) -> Result<Seen, String> {
    let preset = PRESETS.iter().find(|p| p.name == "noop").expect("a scheduler");
    let scenario = Scenario {
        jobs,
        disk: memory(),
        host: Host::for_disk(DISK),
        scheduler: preset.name.to_owned(),
        config: (preset.config)(),
        seed,
        interval: None,
        time_max: None,
        watch: None,
    };
    let mut calls = Calls::default();
    let outcome = journal::record(&scenario, &mut calls).map_err(|e| e.to_string())?;
    calls.0.sort_by_key(|c| c.id);
    let files = file_numbers(&scenario.jobs);
    let clients = scenario.jobs.clients().enumerate().map(|(i, c)| {
        let names = c.job.file_names(c.clone);
        let slot = |file: u32| names.iter().position(|n| files.get(n) == Some(&file));
        let own = || calls.0.iter().filter(move |call| call.client == i);
        let mut ends_ms: Vec<f64> = own()
            .filter(|c| c.measured && matches!(c.kind, CallKind::Read | CallKind::Write))
            .filter_map(|c| c.ended)
            .map(|d| d.as_ns() as f64 / 1e6)
            .collect();
        ends_ms.sort_by(f64::total_cmp);
        let call = |call: &journal::Call| {
            let kind = match call.kind {
                CallKind::Read => 'r',
                CallKind::Write => 'w',
                _ => 's',
            };
            Call { kind, file: slot(call.file), offset: call.offset, len: call.bytes }
        };
        Client { calls: own().map(call).collect(), ends_ms }
    });
    let clients = clients.collect();
    let whys = ["nothing left to do", "longer than its range"];
    let idle = outcome.notes.iter().any(|n| whys.iter().any(|why| n.contains(why)));
    Ok(Seen { entries: entries(&scenario.jobs, &outcome), clients, idle })
}

/// The lab numbers files in the order in which they are named first.
fn file_numbers(jobs: &JobFile) -> BTreeMap<String, u32> {
    let mut numbers = BTreeMap::new();
    for c in jobs.clients() {
        for name in c.job.file_names(c.clone) {
            let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
            numbers.entry(name).or_insert(next);
        }
    }
    numbers
}

/// Consecutive clients with `group_reporting` in the same group are one entry, under the name of the first.
fn entries(jobs: &JobFile, outcome: &Outcome) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    let all: Vec<_> = jobs.clients().zip(&outcome.clients).collect();
    // fio reports the first clone of a job, then the others from the last.
    let of_job = |job: usize| {
        let mut clones: Vec<_> = all.iter().filter(|(c, _)| c.job_index == job).collect();
        clones[1..].reverse();
        clones
    };
    for (c, stats) in (0..jobs.jobs.len()).flat_map(of_job) {
        let group = u64::from(c.job.group);
        let joins = c.job.group_reporting && entries.last().is_some_and(|e| e.group == group);
        if !joins {
            entries.push(Entry { name: c.job.name.clone(), group, ..Entry::default() });
        }
        let entry = entries.last_mut().expect("just added");
        for (i, s) in [&stats.read, &stats.write].into_iter().enumerate() {
            entry.calls[i] += s.calls;
            entry.bytes[i] += s.bytes;
        }
    }
    entries
}
