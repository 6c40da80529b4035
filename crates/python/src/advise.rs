//! `fairhead.advise`: which scheduler, and why.

use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::channel;

use fairhead_core::Duration;
use fairhead_core::sched::any::shown;
use fairhead_lab::output::advice::{self as written, Drawn, Labels};
use fairhead_lab::plan::positive_time;
use fairhead_lab::schedulers::choose_scheduler;
use fairhead_sim::advise::{self as lab, Candidate, Question, Stage, WORK_PER_S};
use fairhead_sim::job::Kind;
use fairhead_sim::parallel;
use fairhead_sim::satisfaction::Emphasis;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;

use crate::asked::{Asked, NameOrClass};
use crate::columns::Columns;
use crate::error::{Error, caught, of_lab, of_run};
use crate::sweep::Until;
use crate::table::{Table, escaped};
use crate::waiting::wait;

/// The answer of `advise`.
#[pyclass(frozen, module = "fairhead")]
pub(crate) struct Advice {
    labels: Labels,
    question: Question,
    advice: lab::Advice,
}

impl Advice {
    fn winner(&self) -> &Candidate {
        &self.advice.candidates[self.advice.winner]
    }
}

#[pymethods]
impl Advice {
    /// The scheduler to use.
    #[getter]
    fn scheduler(&self) -> &str {
        shown(self.winner().preset)
    }

    /// The winner in words: the scheduler and the tunables that differ from its own.
    #[getter]
    fn winner_name(&self) -> String {
        self.winner().name()
    }

    /// The scheduler that it was compared with.
    #[getter]
    fn against(&self) -> String {
        self.advice.candidates[0].name()
    }

    /// The answer, line by line.
    #[getter]
    fn verdict(&self) -> Vec<String> {
        written::lines(&self.labels, &self.advice, Drawn { has_details: true, ..Drawn::default() })
    }

    /// A row for each candidate that ran: its runs, how much of what they get alone all jobs together get,
    /// and that against the one in use (above 1 is better).
    #[getter]
    fn candidates(&self) -> Table {
        let (all, book) = (&self.advice.candidates, &self.advice.book);
        let ran: Vec<usize> = (0..all.len()).filter(|&c| !book.standings[c].race.is_empty()).collect();
        let mut table = Columns::new(ran.len());
        table.texts("candidate", ran.iter().map(|&c| all[c].name()));
        table.texts("scheduler", ran.iter().map(|&c| shown(all[c].preset)));
        table.counts("runs", ran.iter().map(|&c| book.told(c).len() as u64));
        table.reals("of_alone", ran.iter().map(|&c| book.satisfaction(c)));
        table.reals("change", ran.iter().map(|&c| book.against(c, 0).load.ratio));
        table.into()
    }

    /// A row for each job: what it gets alone, under the one in use and under the other, and how much of
    /// alone that is.
    #[getter]
    fn jobs(&self) -> Table {
        let rows = self.advice.verdict().rows;
        let mut table = Columns::new(rows.len());
        let job = |r: &lab::Row| &self.advice.load.jobs.jobs[r.job];
        table.texts("job", rows.iter().map(|r| job(r).name.clone()));
        table.texts("kind", rows.iter().map(|r| self.advice.load.parties[r.job].kind.word()));
        table.reals("alone", rows.iter().map(|r| r.alone));
        table.reals("default", rows.iter().map(|r| r.now.amount));
        table.reals("compared", rows.iter().map(|r| r.then.amount));
        table.reals("default_of_alone", rows.iter().map(|r| r.now.satisfaction));
        table.reals("compared_of_alone", rows.iter().map(|r| r.then.satisfaction));
        table.into()
    }

    /// The bytes of `fairhead advise --output-format json`.
    fn json(&self) -> String {
        written::json(&self.labels, self.question.seed, &self.advice)
    }

    /// `json()` as dictionaries and lists.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.import("json")?.getattr("loads")?.call1((self.json(),))
    }

    /// The text of `fairhead advise --details`: the answer, tables, reasons, what to do.
    fn table(&self) -> String {
        let drawn = Drawn { is_unicode: true, has_details: true, ..Drawn::default() };
        written::human(&self.labels, &self.advice, drawn)
    }

    /// The page of `fairhead advise --report`, one HTML file. Some runs are repeated for its pictures.
    fn page(&self, py: Python<'_>) -> PyResult<String> {
        let runs = py.detach(|| caught(|| written::shown_runs(&self.question, &self.advice)))?;
        let runs = runs.map_err(of_run)?;
        Ok(written::page(&self.labels, &self.question, &self.advice, &runs, "fairhead.advise, Python"))
    }

    fn __repr__(&self) -> String {
        self.verdict().join("\n")
    }

    fn _repr_html_(&self) -> String {
        self.verdict().iter().map(|line| format!("<p>{}</p>", escaped(line))).collect()
    }
}

/// Which jobs count more.
fn emphasis(goal: &str, of_job: Option<String>) -> PyResult<Emphasis> {
    Ok(match (goal, of_job) {
        ("even", Some(name)) => Emphasis::Job(name),
        (_, Some(_)) => return Err(Error::new_err("goal and for_job exclude each other")),
        ("even", None) => Emphasis::Even,
        ("starts", None) => Emphasis::Kind(Kind::Start),
        ("rates", None) => Emphasis::Kind(Kind::Paced),
        ("waits", None) => Emphasis::Kind(Kind::Waiting),
        ("bulk", None) => Emphasis::Kind(Kind::Bulk),
        (other, None) => {
            let known = "even, starts, rates, waits, bulk";
            return Err(Error::new_err(format!("unknown goal '{other}'; there are {known}")));
        }
    })
}

#[pyfunction]
#[pyo3(signature = (job, *, disk, schedulers, goal, budget, seed, against=None, for_job=None, rounds=None,
                    host=None, runtime=None, threads=None, progress=None))]
#[allow(clippy::too_many_arguments, reason = "Python's keywords")]
pub(crate) fn advise(
    py: Python<'_>,
    job: String,
    disk: String,
    schedulers: Vec<NameOrClass<'_>>,
    goal: &str,
    budget: &str,
    seed: u64,
    against: Option<String>,
    for_job: Option<String>,
    rounds: Option<u32>,
    host: Option<String>,
    runtime: Option<String>,
    threads: Option<usize>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Advice> {
    let emphasis = self::emphasis(goal, for_job)?;
    let has_names = !schedulers.is_empty();
    let asked = Asked::new(job, disk, schedulers, host, runtime)?;
    let plan = asked.plan()?;
    if let Emphasis::Job(name) = &emphasis
        && plan.jobs.jobs.iter().all(|j| j.name != *name)
    {
        let known: Vec<&str> = plan.jobs.jobs.iter().map(|j| j.name.as_str()).collect();
        return Err(Error::new_err(format!("no job '{name}'; there are {}", known.join(", "))));
    }
    let budget = positive_time("budget", budget).map_err(of_lab)?;
    let only = has_names.then(|| asked.named(&plan)).transpose()?;
    let labels = Labels::new(&plan.disk.0, &plan.host.0, &emphasis);
    let question = Question {
        jobs: plan.jobs,
        disk: plan.disk.1,
        host: plan.host.1,
        emphasis,
        seed,
        work: WORK_PER_S * budget.as_ms() / 1000,
        rounds,
        against: against.as_deref().map(choose_scheduler).transpose().map_err(of_lab)?,
        only,
    };
    let threads = if asked.has_python() { 1 } else { threads.unwrap_or_else(parallel::available) };
    let percent = |s: Stage| {
        let all = question.work.max(s.work).max(Duration::from_ns(1)).as_ns();
        usize::try_from(u128::from(s.work.as_ns()) * 100 / u128::from(all)).unwrap_or(0)
    };
    let (stop, answer) = (AtomicBool::new(false), Mutex::new(None));
    std::thread::scope(|scope| {
        let (sender, receiver) = channel();
        let sender = Mutex::new(sender);
        let (question, stop, answer, percent) = (&question, &stop, &answer, &percent);
        scope.spawn(move || {
            let stage = |s: Stage| {
                if let Ok(sender) = sender.lock() {
                    let _ = sender.send(percent(s));
                }
            };
            let result = caught(|| lab::advise(question, threads, &Until(stop), &stage));
            if let Ok(mut place) = answer.lock() {
                *place = Some(result);
            }
            drop(sender);
        });
        wait(py, receiver, 100, progress.as_ref(), stop)
    })?;
    let answer = answer.into_inner().ok().flatten().transpose()?.transpose().map_err(of_run)?;
    let (question, advice) = answer.flatten().ok_or_else(|| PyKeyboardInterrupt::new_err(()))?;
    Ok(Advice { labels, question, advice })
}
