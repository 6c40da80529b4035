//! `fairhead.run`: one simulation for each scheduler.
//!
//! Built-in schedulers run on threads of their own, with the interpreter detached. Those in Python run one
//! after the other on the calling thread, which is attached anyway: so a call of a method costs little, and
//! Ctrl-C interrupts the class's own code. A run ends within a few events of an interrupt.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};

use fairhead_lab::simulate::{One, Wanted, name_as_shown, one};
use fairhead_lab::{Answer, Plan};
use fairhead_sim::journal::Sink;
use fairhead_sim::{Scenario, journal, parallel, simulate_unless};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;

use crate::asked::{Asked, NameOrClass};
use crate::error::{caught, of_lab, of_run, raise};
use crate::requests::Requests;
use crate::result::RunResult;
use crate::waiting::{tell, wait};

/// What is wanted of a run beside its figures.
#[derive(Clone, Copy)]
struct Beside {
    pictures: bool,
    requests: bool,
}

/// What came of one run.
struct Ran {
    one: One,
    requests: Option<Requests>,
}

/// Ends a run that is observed; its requests, if they are wanted.
struct Watch<'a> {
    stop: &'a AtomicBool,
    requests: Option<Requests>,
}

impl Sink for Watch<'_> {
    fn begins(&mut self, run: &journal::Run) {
        if let Some(requests) = &mut self.requests {
            requests.begins(run);
        }
    }

    fn request(&mut self, request: &journal::Request) {
        if let Some(requests) = &mut self.requests {
            requests.request(request);
        }
    }

    fn event(&mut self, _event: &journal::Event) {
        if self.stop.load(Ordering::Relaxed) {
            raise(interrupted());
        }
    }
}

/// What a run says that was stopped; the reason is another's exception.
fn interrupted() -> PyErr {
    PyKeyboardInterrupt::new_err(())
}

/// Runs one scenario, unless `stop`.
fn ran(plan: &Plan, scenario: &Scenario, beside: Beside, stop: &AtomicBool) -> PyResult<Ran> {
    let wanted = Wanted { why: plan.why.as_ref(), pictures: beside.pictures };
    if wanted.why.is_none() && !beside.pictures && !beside.requests {
        let outcome = caught(|| simulate_unless(scenario, stop))?.map_err(of_run)?.ok_or_else(interrupted)?;
        return Ok(Ran { one: One { outcome, why: None, pictured: None, logs: None }, requests: None });
    }
    let mut watch = Watch { stop, requests: beside.requests.then(Requests::default) };
    let one = caught(|| one(scenario, wanted, Some(&mut watch)))?.map_err(of_run)?;
    Ok(Ran { one, requests: watch.requests })
}

/// All runs of a plan, for each of its schedulers.
struct Runs<'a> {
    plan: &'a Plan,
    beside: Beside,
    stop: AtomicBool,
    done: AtomicUsize,
    results: Vec<Mutex<Option<PyResult<Ran>>>>,
}

impl Runs<'_> {
    /// Runs number `i`. Returns how many are done.
    fn run(&self, i: usize) -> usize {
        let scenario = self.plan.scenario(&self.plan.schedulers[i]);
        let result = ran(self.plan, &scenario, self.beside, &self.stop);
        if result.is_err() {
            self.stop.store(true, Ordering::Relaxed);
        }
        if let Ok(mut place) = self.results[i].lock() {
            *place = Some(result);
        }
        self.done.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// A worker's part: the next of `mine`, until there is none.
    fn work(&self, mine: &[usize], next: &AtomicUsize, done: &Sender<usize>) {
        while let Some(&i) = mine.get(next.fetch_add(1, Ordering::Relaxed)) {
            if self.stop.load(Ordering::Relaxed) || done.send(self.run(i)).is_err() {
                return;
            }
        }
    }
}

/// Runs all; the first exception ends them.
fn run_all(
    py: Python<'_>,
    asked: &Asked,
    plan: &Plan,
    beside: Beside,
    threads: usize,
    progress: Option<&Py<PyAny>>,
) -> PyResult<Vec<Ran>> {
    let count = plan.schedulers.len();
    let runs = Runs {
        plan,
        beside,
        stop: AtomicBool::new(false),
        done: AtomicUsize::new(0),
        results: (0..count).map(|_| Mutex::new(None)).collect(),
    };
    let (python, native): (Vec<usize>, Vec<usize>) =
        (0..count).partition(|&i| asked.is_python(&plan.schedulers[i]));
    let next = AtomicUsize::new(0);
    let mut ended = Ok(());
    std::thread::scope(|scope| {
        let (sender, receiver) = channel();
        for _ in 0..threads.clamp(1, native.len().max(1)) {
            let sender = sender.clone();
            let (runs, native, next) = (&runs, &native, &next);
            scope.spawn(move || runs.work(native, next, &sender));
        }
        drop(sender);
        for &i in &python {
            if ended.is_err() || runs.stop.load(Ordering::Relaxed) {
                break;
            }
            let done = runs.run(i);
            ended = tell(py, progress, done, count).and_then(|()| py.check_signals());
        }
        if ended.is_err() {
            runs.stop.store(true, Ordering::Relaxed);
        }
        let waited = wait(py, receiver, count, progress, &runs.stop);
        if ended.is_ok() {
            ended = waited;
        }
    });
    ended?;
    let mut all: Vec<Option<PyResult<Ran>>> =
        runs.results.into_iter().map(|place| place.into_inner().unwrap_or(None)).collect();
    // A run that was stopped says so; what counts is why.
    let is_why =
        |r: &Option<PyResult<Ran>>| matches!(r, Some(Err(e)) if !e.is_instance_of::<PyKeyboardInterrupt>(py));
    if let Some(i) = all.iter().position(is_why) {
        return all.swap_remove(i).unwrap_or_else(|| Err(interrupted())).map(|ran| vec![ran]);
    }
    all.into_iter().map(|r| r.unwrap_or_else(|| Err(interrupted()))).collect()
}

#[pyfunction]
#[pyo3(signature = (job, *, disk, schedulers, set, seed, host=None, runtime=None, interval=None, watch=None,
                    why=None, pictures=false, requests=false, threads=None, progress=None))]
#[allow(clippy::too_many_arguments, reason = "Python's keywords")]
pub(crate) fn run(
    py: Python<'_>,
    job: String,
    disk: String,
    schedulers: Vec<NameOrClass<'_>>,
    set: Vec<String>,
    seed: u64,
    host: Option<String>,
    runtime: Option<String>,
    interval: Option<String>,
    watch: Option<String>,
    why: Option<String>,
    pictures: bool,
    requests: bool,
    threads: Option<usize>,
    progress: Option<Py<PyAny>>,
) -> PyResult<RunResult> {
    let mut asked = Asked::new(job, disk, schedulers, host, runtime)?;
    let question = asked.question();
    (question.set, question.seed) = (set, seed);
    (question.interval, question.watch, question.why) = (interval, watch, why);
    let plan = asked.plan()?;
    let beside = Beside { pictures, requests };
    let threads = threads.unwrap_or_else(parallel::available);
    let all = run_all(py, &asked, &plan, beside, threads, progress.as_ref())?;
    let mut answer = Answer { plan, outcomes: Vec::new(), why: Vec::new(), pictured: Vec::new() };
    let mut journals = Vec::new();
    for Ran { mut one, requests } in all {
        name_as_shown(&mut one.outcome);
        journals.extend(requests.map(|r| (one.outcome.scheduler.clone(), r)));
        answer.outcomes.push(one.outcome);
        answer.why.extend(one.why);
        answer.pictured.extend(one.pictured);
    }
    answer.plan.watch_is_short_enough(&answer.outcomes).map_err(of_lab)?;
    Ok(RunResult::new(answer, journals))
}
