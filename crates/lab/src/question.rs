//! A question to the lab, and its answer.

use fairhead_core::sched::catalogue::Catalogue;
use fairhead_device::DeviceParams;
use fairhead_report::Recording;
use fairhead_sim::job::{self, JobFile, Surroundings, nearest};
use fairhead_sim::journal::Sink;
use fairhead_sim::sweep::Base;
use fairhead_sim::{Host, Outcome, SimError, why};

use crate::Error;
use crate::output::{Csv, Export, Human, Json, JsonPlus, Report, page};
use crate::plan::{self, Plan};
use crate::schedulers::{catalogue, choose_among};
use crate::simulate::{Wanted, alone, name_as_shown, one};
use crate::tunables;
use crate::workloads::WORKLOADS;

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Job {
    /// A built-in workload, by its name.
    Named(String),
    /// The text of a fio job file.
    Text {
        /// What answers and errors call it.
        name: String,
        /// The job file.
        text: String,
    },
}

/// A disk model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Disk {
    /// A preset, by its name.
    Named(String),
    /// The text of a TOML file, as `fairhead show DISK` prints it.
    Toml {
        /// What errors call it.
        name: String,
        /// The file.
        text: String,
    },
}

/// What `fairhead run` can be asked, without files and terminals. The options mean what its flags mean.
#[derive(Clone)]
pub struct Question {
    /// The jobs. Default: the first of [`WORKLOADS`].
    pub job: Job,
    /// The disk. Default: `nas2020`.
    pub disk: Disk,
    /// The machine around it, as `--host`. Default: that of the disk's time.
    pub host: Option<String>,
    /// The schedulers that can be named. Default: [`catalogue`].
    pub catalogue: Catalogue,
    /// The names of the schedulers. Default: none, which means all, as for `fairhead run`.
    pub schedulers: Vec<String>,
    /// Tunables, each `SCHED.TUNABLE=VALUE`. Default: none.
    pub set: Vec<String>,
    /// The random seed. Default: 1.
    pub seed: u64,
    /// Ends the jobs after this time, such as `10s`. Default: as the jobs say.
    pub runtime: Option<String>,
    /// The length of the intervals of a series, such as `1s`. Default: no series.
    pub interval: Option<String>,
    /// How often the disk time of control groups is reported. Default: not at all.
    pub watch: Option<String>,
    /// The clients whose time is to be explained: `JOB`, `JOB.CLONE`, or one of these and `@FROM-TO`.
    /// Default: none.
    pub why: Option<String>,
}

impl Default for Question {
    fn default() -> Self {
        Self {
            job: Job::Named(WORKLOADS[0].name.to_owned()),
            disk: Disk::Named("nas2020".to_owned()),
            host: None,
            catalogue: catalogue(),
            schedulers: Vec::new(),
            set: Vec::new(),
            seed: 1,
            runtime: None,
            interval: None,
            watch: None,
            why: None,
        }
    }
}

/// Reads a file that a job file or a disk names.
pub type Files<'a> = &'a dyn Fn(&str) -> Result<Vec<u8>, String>;

/// Where there are no files.
fn no_files(name: &str) -> Result<Vec<u8>, String> {
    Err(format!("cannot read '{name}': there are no files here"))
}

impl Question {
    /// Looks everything up. A job file that names other files cannot be used: see [`Self::plan_with`].
    ///
    /// # Errors
    /// If something is not there, or cannot be.
    pub fn plan(&self) -> Result<Plan, Error> {
        self.plan_with(&no_files)
    }

    /// Looks everything up; `files` reads the disks and start-up traces that the job file names.
    ///
    /// # Errors
    /// If something is not there, or cannot be.
    pub fn plan_with(&self, files: Files<'_>) -> Result<Plan, Error> {
        let disk = match &self.disk {
            Disk::Named(name) => plan::choose_preset(name)?,
            Disk::Toml { name, text } => of_toml(text, name).map_err(Error::Misuse)?,
        };
        let of_run = disk.0.clone();
        let read = |host: &Host| self.jobs(host, files);
        let ((disk, host), jobs) = plan::choose_load(disk, self.host.as_deref(), read)?;
        let choose = |name: &str| choose_among(&self.catalogue, name);
        let mut schedulers = plan::choose_schedulers(&self.schedulers, &jobs, choose)?;
        self.set.iter().try_for_each(|text| tunables::set(&mut schedulers, text))?;
        let time = |flag: &str, text: &Option<String>| {
            text.as_deref().map(|t| plan::positive_time(flag, t)).transpose()
        };
        let interval = time("--interval", &self.interval)?;
        let why = self.why.as_deref().map(|text| plan::choose_clients(&jobs, text)).transpose()?;
        let watch = self.watch.as_deref().map(|text| plan::choose_watch(text, &jobs)).transpose()?;
        Ok(Plan { jobs, disk, of_run, host, schedulers, seed: self.seed, interval, watch, why })
    }

    /// Answers the question on this thread.
    ///
    /// # Errors
    /// If something is not there, or cannot be.
    pub fn answer(&self) -> Result<Answer, Error> {
        Answer::of(self.plan()?, false, |_| None)
    }

    fn jobs(&self, host: &Host, files: Files<'_>) -> Result<JobFile, Error> {
        let misuse = |e: job::JobError| Error::Misuse(e.to_string());
        let around = Surroundings { host: Some(host), ..Surroundings::NONE };
        let mut jobs = match &self.job {
            Job::Text { name, text } => job::parse_bytes(text.as_bytes(), name, &around),
            Job::Named(name) => match WORKLOADS.iter().find(|w| w.name == name) {
                Some(w) => job::parse(w.text, w.name),
                None => return Err(unknown_workload(name)),
            },
        }
        .map_err(misuse)?;
        let disk = |name: &str| match plan::choose_preset(name) {
            Ok((_, model)) => Ok(model),
            Err(unknown) => match files(name).map(String::from_utf8) {
                Ok(Ok(text)) => of_toml(&text, name).map(|d| d.1),
                Ok(Err(_)) => Err(format!("{name}: not a text in UTF-8")),
                Err(_) => Err(unknown.to_string()),
            },
        };
        jobs.read_disks(disk).map_err(misuse)?;
        jobs.read_traces(files).map_err(misuse)?;
        let told = |e: job::JobError| if e.line == 0 { Error::Misuse(e.message) } else { misuse(e) };
        jobs.read_recordings(&|_, _| {}).map_err(told)?;
        if let Some(text) = &self.runtime {
            let runtime = Some(plan::positive_time("--runtime", text)?);
            jobs.jobs.iter_mut().for_each(|j| j.runtime = runtime);
        }
        Ok(jobs)
    }
}

/// A disk out of a TOML text, under its own name.
fn of_toml(text: &str, name: &str) -> Result<(String, DeviceParams), String> {
    let params = DeviceParams::from_toml(text, name).map_err(|e| e.to_string())?;
    Ok((params.name().to_owned(), params))
}

fn unknown_workload(name: &str) -> Error {
    Error::Misuse(match nearest(name, WORKLOADS.iter().map(|w| w.name)) {
        Some(word) => format!("no workload '{name}'; did you mean '{word}'?"),
        None => format!("no workload '{name}' (fairhead list workloads)"),
    })
}

fn failed(e: SimError) -> Error {
    match e {
        SimError::Group(message) => Error::Failed(message),
        e => Error::Misuse(e.to_string()),
    }
}

/// What came out.
pub struct Answer {
    /// What was asked.
    pub plan: Plan,
    /// The outcomes, one for each of the plan's schedulers, in order.
    pub outcomes: Vec<Outcome>,
    /// Where the time of the plan's clients went, for each outcome; empty if the question has no `why`.
    pub why: Vec<why::Report>,
    /// What pictures need, for each outcome; empty if they were not asked for.
    pub pictured: Vec<Recording>,
}

impl Answer {
    /// Runs the plan on this thread. `sink` gives what hears the events of the run of a scheduler, by its
    /// index in the plan.
    ///
    /// # Errors
    /// If a scenario is impossible.
    pub fn of<'s>(
        plan: Plan,
        pictures: bool,
        mut sink: impl FnMut(usize) -> Option<&'s mut dyn Sink>,
    ) -> Result<Self, Error> {
        let (mut outcomes, mut why, mut pictured) = (Vec::new(), Vec::new(), Vec::new());
        for (i, scheduler) in plan.schedulers.iter().enumerate() {
            let wanted = Wanted { why: plan.why.as_ref(), pictures };
            let mut done = one(&plan.scenario(scheduler), wanted, sink(i)).map_err(failed)?;
            name_as_shown(&mut done.outcome);
            outcomes.push(done.outcome);
            why.extend(done.why);
            pictured.extend(done.pictured);
        }
        plan.watch_is_short_enough(&outcomes)?;
        Ok(Self { plan, outcomes, why, pictured })
    }

    /// The answer as formats take it.
    #[must_use]
    pub fn report(&self) -> Report<'_> {
        Report { plan: &self.plan, outcomes: &self.outcomes, why: &self.why }
    }

    /// The JSON of `fairhead run --output-format json`, as a value.
    #[must_use]
    pub fn value(&self) -> serde_json::Value {
        Json::value(&self.report())
    }

    /// The bytes of `fairhead run --output-format json`.
    #[must_use]
    pub fn json(&self) -> String {
        Json.render(&self.report())
    }

    /// The bytes of `fairhead run --output-format json+`, which need a plan with an interval of
    /// [`crate::output::SAMPLE`].
    #[must_use]
    pub fn json_plus(&self) -> String {
        JsonPlus.render(&self.report())
    }

    /// The bytes of `fairhead run --output-format csv`.
    #[must_use]
    pub fn csv(&self) -> String {
        Csv.render(&self.report())
    }

    /// The table of `fairhead run`.
    #[must_use]
    pub fn table(&self) -> String {
        Human { coloured: false, columns: None }.render(&self.report())
    }

    /// The page of `fairhead run --report`, if pictures were asked for; `command` is what it says made it.
    ///
    /// # Errors
    /// If a job does not run alone.
    pub fn page(&self, command: &str) -> Result<String, Error> {
        Ok(page::run(&self.report(), &self.pictured, &self.alone()?, command))
    }

    /// The pictures of `fairhead run --pictures`, names and SVG, if they were asked for.
    ///
    /// # Errors
    /// If a job does not run alone.
    pub fn pictures(&self) -> Result<Vec<(String, String)>, Error> {
        Ok(page::files(&self.report(), &self.pictured, &self.alone()?))
    }

    fn alone(&self) -> Result<Base, Error> {
        alone(&self.plan, &self.outcomes, 1).map_err(failed)
    }
}
