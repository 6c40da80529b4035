//! `fairhead.reproduce`: what others published, beside what the lab gives.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;

use fairhead_papers::reproduce::{Figure, Options, Published, Report, SOURCES, Setting, Source};
use fairhead_papers::reproduce::{hold_against, written};
use fairhead_sim::parallel;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;

use crate::asked::{Asked, read_text};
use crate::columns::Columns;
use crate::error::{Error, caught, of_run, raise};
use crate::table::{Table, escaped};
use crate::waiting::wait;

/// The result of `reproduce`: published numbers, each beside that of the lab.
#[pyclass(frozen, module = "fairhead")]
pub(crate) struct Reproduction {
    reports: Vec<Report>,
}

impl Reproduction {
    fn figures_of(&self) -> impl Iterator<Item = (&Report, &Figure)> + Clone {
        self.reports.iter().flat_map(|r| r.figures.iter().map(move |f| (r, f)))
    }
}

#[pymethods]
impl Reproduction {
    /// The names of the sources.
    #[getter]
    fn sources(&self) -> Vec<&str> {
        self.reports.iter().map(|r| r.source).collect()
    }

    /// A row for each number, in the unit that its column `unit` has. `published` and `error` are missing
    /// (NaN) where there is not one number; `published_text` is what was printed.
    #[getter]
    fn figures(&self) -> Table {
        let all = || self.figures_of();
        let mut table = Columns::new(all().count());
        table.texts("source", all().map(|(r, _)| r.source));
        table.texts("row", all().map(|(_, f)| &f.row));
        table.texts("metric", all().map(|(_, f)| f.metric));
        table.texts("unit", all().map(|(_, f)| f.unit));
        let published = |p| if let Published::Number(v) = p { v } else { f64::NAN };
        table.reals("published", all().map(|(_, f)| published(f.published)));
        table.texts("published_text", all().map(|(_, f)| f.published.to_string()));
        table.reals("ours", all().map(|(_, f)| f.ours));
        table.reals("spread", all().map(|(_, f)| f.spread));
        table.reals("error", all().map(|(_, f)| f.error().unwrap_or(f64::NAN)));
        table.texts("tolerance", all().map(|(_, f)| written::tolerance(f)));
        table.texts("verdict", all().map(|(_, f)| written::verdict(f).to_lowercase()));
        table.texts("reason", all().map(|(_, f)| f.reason().unwrap_or_default()));
        table.into()
    }

    /// A row for each property that the sources state in words.
    #[getter]
    fn properties(&self) -> Table {
        let all = || self.reports.iter().flat_map(|r| r.checks.iter().map(move |c| (r, c)));
        let mut table = Columns::new(all().count());
        table.texts("source", all().map(|(r, _)| r.source));
        table.texts("property", all().map(|(_, c)| &c.what));
        table.texts("ours", all().map(|(_, c)| &c.got));
        table.texts("verdict", all().map(|(_, c)| written::verdict_of_property(c).to_lowercase()));
        table.into()
    }

    /// What misses its bound and is known to, with the reason; a line each.
    #[getter]
    fn known_misses(&self) -> Vec<String> {
        self.reports.iter().flat_map(Report::known_misses).collect()
    }

    /// What is not as the list of known misses has it, a line each: on these `fairhead reproduce --check`
    /// fails.
    #[getter]
    fn faults(&self) -> Vec<String> {
        self.reports.iter().flat_map(Report::faults).collect()
    }

    /// The bytes of `fairhead reproduce --output-format json`.
    fn json(&self) -> String {
        written::json(&self.reports)
    }

    /// The bytes of `fairhead reproduce --output-format csv`.
    fn csv(&self) -> String {
        written::csv(&self.reports)
    }

    /// The tables of `fairhead reproduce`.
    fn table(&self) -> String {
        written::table(&self.reports, false)
    }

    fn __repr__(&self) -> String {
        self.table()
    }

    fn _repr_html_(&self) -> String {
        format!("<pre>{}</pre>", escaped(&self.table()))
    }
}

/// The sources that `reproduce` knows, with the numbers that mean them, too.
#[pyfunction]
pub(crate) fn sources() -> Table {
    let mut table = Columns::new(SOURCES.len());
    table.texts("name", SOURCES.iter().map(|s| s.name));
    table.texts("number", SOURCES.iter().map(|s| s.number.unwrap_or_default()));
    table.texts("about", SOURCES.iter().map(|s| s.about));
    table.into()
}

/// What is to be reproduced.
enum What {
    /// Published tables.
    Sources(Vec<&'static Source>),
    /// The user's own measurements: the name of a file, and its text.
    Figures(Figures),
}

struct Figures {
    file: String,
    text: String,
    disk: String,
    host: Option<String>,
}

impl Figures {
    /// Reads a job file. Paths of job files and disk files are relative to the folder of the file of figures.
    fn setting(&self, job: &str, disk: Option<&str>, host: Option<&str>) -> Result<Setting, String> {
        let folder = Path::new(&self.file).parent().unwrap_or(Path::new(""));
        let beside = |name: &str| folder.join(name).to_string_lossy().into_owned();
        let disk = disk.map_or_else(
            || self.disk.clone(),
            |d| if fairhead_device::preset_names().contains(&d) { d.to_owned() } else { beside(d) },
        );
        let host = host.map(str::to_owned).or_else(|| self.host.clone());
        let asked = Asked::new(beside(job), disk, Vec::new(), host, None);
        let plan = asked.and_then(|asked| asked.plan()).map_err(|e| told(&e))?;
        Ok(Setting { jobs: plan.jobs, disk: plan.disk.1, host: plan.host.1 })
    }
}

/// The text of an error without the name of its class.
fn told(e: &PyErr) -> String {
    Python::attach(|py| e.value(py).to_string())
}

impl What {
    /// Runs everything. `progress` hears how much is done, in percent.
    fn run(&self, options: &Options, progress: &(dyn Fn(usize) + Sync)) -> PyResult<Vec<Report>> {
        let percent = |done: usize, of: usize| done * 100 / of.max(1);
        match self {
            Self::Figures(figures) => {
                let read =
                    |job: &str, disk: Option<&str>, host: Option<&str>| figures.setting(job, disk, host);
                let told = |done, of| progress(percent(done, of));
                let report = hold_against(&figures.text, &figures.file, options, &read, &told);
                Ok(vec![report.map_err(Error::new_err)?])
            }
            Self::Sources(sources) => {
                let one = |(i, source): (usize, &&Source)| {
                    let told = |done, of| progress((i * 100 + percent(done, of)) / sources.len());
                    source.reproduce(options, &told).map_err(of_run)
                };
                sources.iter().enumerate().map(one).collect()
            }
        }
    }
}

#[pyfunction]
#[pyo3(signature = (sources, *, figures, disk, host, only, layouts, seed, threads=None, progress=None))]
#[allow(clippy::too_many_arguments, reason = "Python's keywords")]
pub(crate) fn reproduce(
    py: Python<'_>,
    sources: Vec<String>,
    figures: Option<String>,
    disk: String,
    host: Option<String>,
    only: Option<String>,
    layouts: u32,
    seed: u64,
    threads: Option<usize>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Reproduction> {
    if !(1..=1000).contains(&layouts) {
        return Err(Error::new_err(format!("layouts={layouts} is out of range; write 1 to 1000")));
    }
    let what = match figures {
        Some(_) if !sources.is_empty() => {
            return Err(Error::new_err("source and figures exclude each other; name one of them"));
        }
        Some(file) => What::Figures(Figures { text: read_text(&file)?, file, disk, host }),
        None if sources.is_empty() => What::Sources(SOURCES.iter().collect()),
        None => {
            let chosen: Result<Vec<_>, _> = sources.iter().map(|name| Source::choose(Some(name))).collect();
            What::Sources(chosen.map_err(Error::new_err)?.concat())
        }
    };
    let options =
        Options { layouts, seed, threads: threads.unwrap_or_else(parallel::available), only, early: false };
    let (stop, answer) = (AtomicBool::new(false), Mutex::new(None));
    std::thread::scope(|scope| {
        let (sender, receiver) = channel();
        let sender = Mutex::new(sender);
        let (what, options, stop, answer) = (&what, &options, &stop, &answer);
        scope.spawn(move || {
            let done = |percent| {
                // Each thread of the runs comes by here after a run, and ends.
                if stop.load(Ordering::Relaxed) {
                    raise(PyKeyboardInterrupt::new_err(()));
                }
                if let Ok(sender) = sender.lock() {
                    let _ = sender.send(percent);
                }
            };
            let result = caught(|| what.run(options, &done));
            if let Ok(mut place) = answer.lock() {
                *place = Some(result.flatten());
            }
            drop(sender);
        });
        wait(py, receiver, 100, progress.as_ref(), stop)
    })?;
    let reports = answer.into_inner().ok().flatten().ok_or_else(|| PyKeyboardInterrupt::new_err(()))??;
    if let Some(only) = &options.only
        && reports.iter().all(|r| r.figures.is_empty())
    {
        return Err(Error::new_err(format!("only='{only}': no row has that in its id")));
    }
    Ok(Reproduction { reports })
}
