//! `fairhead.sweep`: a grid of runs as one table.
//!
//! After an interrupt no more runs are begun. The exception comes when those that have begun have ended.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;

use fairhead_core::sched::any::shown;
use fairhead_lab::output::columns::{self, Value};
use fairhead_lab::sweep::tuned;
use fairhead_sim::parallel;
use fairhead_sim::resumable::{Keep, fingerprint};
use fairhead_sim::sweep::{COLUMNS, Part, Row, Setting, Sweep, Swept};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;

use crate::asked::{Asked, NameOrClass};
use crate::columns::Columns;
use crate::error::{Error, caught, of_lab, of_run};
use crate::table::Table;
use crate::waiting::wait;

/// Keeps nothing, and is over when the flag is set.
pub(crate) struct Until<'a>(pub(crate) &'a AtomicBool);

impl Keep for Until<'_> {
    fn known(&self, _: &str) -> Option<&str> {
        None
    }
    fn keep(&self, _: &str, _: &str) {}
    fn is_over(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The most points, as `fairhead sweep` has it.
const POINTS_MAX: u64 = 1_000_000;

/// The grid.
fn grid(asked: &Asked, disks: Vec<String>, set: &[String], seed: u64, seeds: u32) -> PyResult<Sweep> {
    let mut all: Option<Sweep> = None;
    for name in disks {
        let plan = asked.plan_on(name)?;
        let setting = Setting { name: plan.disk.0, disk: plan.disk.1, host: plan.host.1 };
        match &mut all {
            None => {
                let tuned = tuned(&plan.schedulers, set).map_err(of_lab)?;
                all = Some(Sweep { jobs: plan.jobs, settings: vec![setting], tuned, seed, seeds });
            }
            Some(all) if fingerprint(&all.jobs) == fingerprint(&plan.jobs) => all.settings.push(setting),
            Some(_) => {
                let wrong = "the job is another one on each disk's host; sweep one disk at a time";
                return Err(Error::new_err(wrong));
            }
        }
    }
    let all = all.ok_or_else(|| Error::new_err("no disk to sweep; disks=[\"nas2020\"]"))?;
    let count = (all.settings.len() * all.tuned.len()) as u64 * u64::from(seeds);
    if count > POINTS_MAX {
        let wrong = format!("{count} points are more than {POINTS_MAX}; sweep fewer values or seeds");
        return Err(Error::new_err(wrong));
    }
    Ok(all)
}

/// The rows as columns.
fn table(sweep: &Sweep, swept: &Swept) -> Columns {
    let there: Vec<(usize, &Row)> =
        swept.rows.iter().enumerate().filter_map(|(i, r)| Some((i, r.as_ref()?))).collect();
    let points = || there.iter().map(|(i, _)| sweep.point(*i));
    let mut table = Columns::new(there.len());
    table.counts("point", there.iter().map(|(i, _)| *i as u64));
    table.texts("disk", points().map(|p| &sweep.settings[p.setting].name));
    table.texts("scheduler", points().map(|p| shown(sweep.tuned[p.tuned].scheduler)));
    table.texts("set", points().map(|p| &sweep.tuned[p.tuned].set));
    table.counts("seed", points().map(|p| p.seed));
    for column in swept.bases.first().map_or_else(Vec::new, |base| columns::of(&base.load)) {
        let values: Vec<Value> =
            there.iter().map(|(i, row)| column.value(&swept.bases[sweep.point(*i).setting], row)).collect();
        let real = |value: &Value| if let Value::Real(real) = value { Some(*real) } else { None };
        let whole = |value: &Value| if let Value::Whole(whole) = value { Some(*whole) } else { None };
        if column.is_real() {
            table.reals(&column.name, values.iter().filter_map(real));
        } else {
            table.counts(&column.name, values.iter().filter_map(whole));
        }
    }
    for (i, name) in COLUMNS.iter().enumerate() {
        table.numbers(name, there.iter().map(|(_, row)| row.figures()[i]));
    }
    table
}

#[pyfunction]
#[pyo3(signature = (job, *, disks, schedulers, set, seed, seeds, part, host=None, runtime=None, threads=None,
                    progress=None))]
#[allow(clippy::too_many_arguments, reason = "Python's keywords")]
pub(crate) fn sweep(
    py: Python<'_>,
    job: String,
    disks: Vec<String>,
    schedulers: Vec<NameOrClass<'_>>,
    set: Vec<String>,
    seed: u64,
    seeds: u32,
    part: (u32, u32),
    host: Option<String>,
    runtime: Option<String>,
    threads: Option<usize>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Table> {
    let first = disks.first().cloned().unwrap_or_default();
    let asked = Asked::new(job, first, schedulers, host, runtime)?;
    let grid = grid(&asked, disks, &set, seed, seeds)?;
    let part = Part { number: part.0, of: part.1 };
    if part.number < 1 || part.number > part.of {
        let wrong = format!(
            "part=({}, {}): write the number of the part, from 1, and of how many",
            part.number, part.of
        );
        return Err(Error::new_err(wrong));
    }
    // Threads that run Python take turns anyway.
    let threads = if asked.has_python() { 1 } else { threads.unwrap_or_else(parallel::available) };
    let count = (0..grid.count()).filter(|&i| part.has(i)).count();
    let (stop, rows) = (AtomicBool::new(false), Mutex::new(None));
    std::thread::scope(|scope| {
        let (sender, receiver) = channel();
        let sender = Mutex::new(sender);
        let (grid, stop, rows) = (&grid, &stop, &rows);
        scope.spawn(move || {
            let done = |n| {
                if let Ok(sender) = sender.lock() {
                    let _ = sender.send(n);
                }
            };
            let result = caught(|| grid.run(part, threads, &Until(stop), &done));
            if let Ok(mut place) = rows.lock() {
                *place = Some(result);
            }
            drop(sender);
        });
        wait(py, receiver, count, progress.as_ref(), stop)
    })?;
    match rows.into_inner().ok().flatten() {
        Some(swept) => Ok(table(&grid, &swept?.map_err(of_run)?).into()),
        None => Err(PyKeyboardInterrupt::new_err(())),
    }
}
