//! A question from Python's arguments.

use std::io::Read as _;

use fairhead_core::sched::any::AnyConfig;
use fairhead_core::sched::catalogue::{self, Catalogue};
use fairhead_lab::schedulers::choose_among;
use fairhead_lab::workloads::WORKLOADS;
use fairhead_lab::{Disk, Job, Plan, Question, Scheduler};
use pyo3::prelude::*;
use pyo3::types::PyType;

use crate::error::{Error, of_lab};
use crate::scheduler;

/// The most bytes of a file that a job or a disk names.
const BYTES_MAX: u64 = 64 << 20;

/// Reads a file.
fn read(name: &str) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let file = std::fs::File::open(name);
    let size = file.and_then(|f| f.take(BYTES_MAX + 1).read_to_end(&mut bytes));
    match size {
        Err(e) => Err(format!("cannot read '{name}': {e}")),
        Ok(n) if n as u64 > BYTES_MAX => Err(format!("cannot read '{name}': larger than 64 MiB")),
        Ok(_) => Ok(bytes),
    }
}

/// Reads a text.
pub(crate) fn read_text(name: &str) -> PyResult<String> {
    let bytes = read(name).map_err(Error::new_err)?;
    String::from_utf8(bytes).map_err(|_| Error::new_err(format!("{name}: not a text in UTF-8")))
}

/// What a job, a disk or a scheduler is given as.
#[derive(FromPyObject)]
pub(crate) enum NameOrClass<'py> {
    /// A name.
    Name(String),
    /// The class of a scheduler in Python.
    Class(Bound<'py, PyType>),
}

/// The job that is meant: its text if there are several lines, a file, or a built-in workload.
fn job(name: String) -> PyResult<Job> {
    if name.contains('\n') {
        return Ok(Job::Text { name: "job".to_owned(), text: name });
    }
    let is_file = std::path::Path::new(&name).exists();
    if !is_file && (WORKLOADS.iter().any(|w| w.name == name) || !name.contains(['/', '.'])) {
        return Ok(Job::Named(name));
    }
    Ok(Job::Text { text: read_text(&name)?, name })
}

/// The disk that is meant, likewise; a file has a name with `.` or `/` in it.
fn disk(name: String) -> PyResult<Disk> {
    if name.contains('\n') {
        return Ok(Disk::Toml { name: "disk".to_owned(), text: name });
    }
    let is_file = name.contains('/') || std::path::Path::new(&name).exists();
    if !is_file || fairhead_device::preset_names().contains(&name.as_str()) {
        return Ok(Disk::Named(name));
    }
    Ok(Disk::Toml { text: read_text(&name)?, name })
}

/// The arguments that all questions have.
pub(crate) struct Asked {
    question: Question,
    /// The names of the schedulers in Python.
    mine: Vec<String>,
}

/// The schedulers of a question: names for it, and classes for its catalogue.
struct Named {
    names: Vec<String>,
    catalogue: Catalogue,
    mine: Vec<String>,
}

fn named(schedulers: Vec<NameOrClass<'_>>) -> PyResult<Named> {
    let (mut names, mut classes, mut mine) = (Vec::new(), Vec::new(), Vec::new());
    for s in schedulers {
        match s {
            NameOrClass::Name(name) => names.push(name),
            NameOrClass::Class(class) => {
                let name = scheduler::name_of(&class)?;
                names.push(name.clone());
                mine.push(name);
                classes.push(class);
            }
        }
    }
    Ok(Named { names, catalogue: scheduler::catalogue(&classes)?, mine })
}

impl Asked {
    pub(crate) fn new(
        job_name: String,
        disk_name: String,
        schedulers: Vec<NameOrClass<'_>>,
        host: Option<String>,
        runtime: Option<String>,
    ) -> PyResult<Self> {
        let Named { names, catalogue, mine } = named(schedulers)?;
        let question = Question {
            job: job(job_name)?,
            disk: disk(disk_name)?,
            host,
            catalogue,
            schedulers: names,
            runtime,
            ..Question::default()
        };
        Ok(Self { question, mine })
    }

    /// The question, to add to it.
    pub(crate) fn question(&mut self) -> &mut Question {
        &mut self.question
    }

    /// Whether there are schedulers in Python.
    pub(crate) fn has_python(&self) -> bool {
        !self.mine.is_empty()
    }

    /// Whether this scheduler is one in Python.
    pub(crate) fn is_python(&self, scheduler: &Scheduler) -> bool {
        matches!(scheduler.config, AnyConfig::Outside(_)) && self.mine.iter().any(|m| m == scheduler.name)
    }

    /// The plan's schedulers by their names, with their own tunables.
    pub(crate) fn named(&self, plan: &Plan) -> PyResult<Vec<catalogue::Named>> {
        let find = |s: &Scheduler| choose_among(&self.question.catalogue, s.name).map_err(of_lab);
        plan.schedulers.iter().map(find).collect()
    }

    /// Looks everything up.
    pub(crate) fn plan(&self) -> PyResult<Plan> {
        self.question.plan_with(&read).map_err(of_lab)
    }

    /// Looks everything up for another disk.
    pub(crate) fn plan_on(&self, name: String) -> PyResult<Plan> {
        let question = Question { disk: disk(name)?, ..self.question.clone() };
        question.plan_with(&read).map_err(of_lab)
    }
}
