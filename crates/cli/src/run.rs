//! `fairhead run`: one simulation per scheduler, several at once, and the report.

use std::path::{Path, PathBuf};

use fairhead_core::sched::any::shown;
use fairhead_report::{Participants, Recorder};
use fairhead_sim::journal::{Sink, Sinks, fio_log};
use fairhead_sim::{Outcome, Scenario, SimError, hang_on_starts, journal, parallel, simulate, why};

use crate::args::{Format, RunArgs};
use crate::error::CliError;
use crate::files::Outputs;
use crate::memory;
use crate::out::{self, Progress};
use crate::output::{Csv, Export, Human, Json, JsonPlus, Report, fio, page, time};
use crate::plan::{Plan, Why};
use crate::recordings::Recording;
use crate::replay;

/// Runs the plan that the arguments make, and writes the report.
pub(crate) fn run(args: &RunArgs) -> Result<(), CliError> {
    let plan = Plan::new(args)?;
    let logs: Vec<PathBuf> = (plan.schedulers.iter())
        .flat_map(|s| fio_log::names(&plan.jobs, &part(&plan, s.name)))
        .map(PathBuf::from)
        .collect();
    outputs(args, &logs).check()?;
    plan.jobs.notes.iter().for_each(|n| out::note(n));
    let sampled = args.output.format == Format::JsonPlus;
    let scenarios: Vec<Scenario> = plan.schedulers.iter().map(|s| scenario(&plan, s, sampled)).collect();
    let threads = memory::at_a_time(&plan.jobs, (&plan.disk.1, &plan.host.1), args.threads.count())?;
    let failed = |e| match e {
        SimError::Group(message) => CliError::Failed(message),
        e => CliError::Misuse(e.to_string()),
    };
    let wanted =
        Wanted { why: plan.why.as_ref(), pictures: args.report.is_some() || args.pictures.is_some() };
    let Done { mut outcomes, why, pictured, logs } = match Recording::new(&args.record, scenarios.len())? {
        None => {
            let all = || simulate_all(&scenarios, wanted, threads);
            replay::with_progress(&plan.jobs, scenarios.len(), "replaying", all).map_err(failed)?
        }
        Some(mut recording) => {
            let all = || record_all(&scenarios, wanted, &mut recording);
            let all = replay::with_progress(&plan.jobs, scenarios.len(), "replaying", all).map_err(failed)?;
            recording.finish()?;
            all
        }
    };
    watch_is_short_enough(&plan, &outcomes)?;
    outcomes.iter_mut().for_each(name_as_shown);
    for note in new_notes(&plan, &outcomes) {
        out::note(note);
    }
    for (s, log) in plan.schedulers.iter().zip(logs) {
        let files = log.finish(&plan.jobs, &part(&plan, s.name));
        files.iter().try_for_each(|(name, text)| out::write(Some(Path::new(name)), text))?;
    }
    if args.jitter_starts {
        for (scenario, outcome) in scenarios.iter().zip(&outcomes) {
            hang_on_starts(scenario, outcome).map_err(failed)?.iter().for_each(|n| out::note(n));
        }
    }
    let file = args.output.file.as_deref();
    let export: Box<dyn Export> = match args.output.format {
        Format::Human => Box::new(Human { coloured: out::coloured(file) }),
        Format::Json => Box::new(Json),
        Format::JsonPlus => Box::new(JsonPlus),
        Format::Csv => Box::new(Csv),
    };
    let report = Report { plan: &plan, outcomes: &outcomes, why: &why };
    if let Some(file) = &args.report {
        out::write(Some(file), &page::run(&report, &pictured, &page::command_line(std::env::args_os())))?;
    }
    if let Some(folder) = &args.pictures {
        write_pictures(folder, &page::files(&report, &pictured))?;
    }
    if file.is_none() && args.record.takes_terminal() {
        return Ok(());
    }
    let text = export.render(&report);
    out::write(file, &text)?;
    if file.is_some() {
        out::note(&format!("seed {}", plan.seed));
    }
    Ok(())
}

/// Runs the plan on `threads` threads and writes nothing. Returns an outcome for each scheduler.
pub(crate) fn outcomes(plan: &Plan, threads: usize) -> Result<Vec<Outcome>, CliError> {
    let scenarios: Vec<Scenario> = plan.schedulers.iter().map(|s| scenario(plan, s, false)).collect();
    let threads = memory::at_a_time(&plan.jobs, (&plan.disk.1, &plan.host.1), threads)?;
    let wanted = Wanted { why: None, pictures: false };
    let done = simulate_all(&scenarios, wanted, threads);
    let mut outcomes = done.map(|done| done.outcomes).map_err(|e| CliError::Failed(e.to_string()))?;
    outcomes.iter_mut().for_each(name_as_shown);
    Ok(outcomes)
}

/// Names the schedulers of an outcome as users know them: `none`, not `noop`.
fn name_as_shown(outcome: &mut Outcome) {
    let of_disks = outcome.disks.iter_mut().map(|d| &mut d.scheduler);
    for name in of_disks.chain([&mut outcome.scheduler]) {
        *name = shown(name).to_owned();
    }
}

/// What is put into the names of fio's logs: the scheduler, if there are several.
fn part(plan: &Plan, scheduler: &str) -> String {
    if plan.schedulers.len() > 1 { format!("-{scheduler}") } else { String::new() }
}

/// The files that the arguments and the jobs name for results.
fn outputs<'a>(args: &'a RunArgs, logs: &'a [PathBuf]) -> Outputs<'a> {
    let outputs = logs.iter().fold(Outputs::default(), |all, log| all.file("a log of the job", Some(log)));
    outputs
        .file("-o", args.output.file.as_deref())
        .file("--requests", args.record.requests.as_deref())
        .file("--trace-out", args.record.trace_out.as_deref())
        .file("--timeline", args.record.timeline.as_deref())
        .file("--report", args.report.as_deref())
        .pictures(args.pictures.as_deref())
}

/// Writes pictures into a folder, which is made if there is none.
pub(crate) fn write_pictures(folder: &Path, files: &[(String, String)]) -> Result<(), CliError> {
    std::fs::create_dir_all(folder)
        .map_err(|e| CliError::Failed(format!("cannot make the folder '{}': {e}", folder.display())))?;
    files.iter().try_for_each(|(name, text)| out::write(Some(&folder.join(name)), text))
}

/// A whole interval is the least that one can watch.
fn watch_is_short_enough(plan: &Plan, outcomes: &[Outcome]) -> Result<(), CliError> {
    let longest = outcomes.iter().map(|o| o.elapsed).max().unwrap_or_default();
    match plan.watch {
        Some(period) if period > longest => Err(CliError::Misuse(format!(
            "--watch={} is longer than the run, which ended after {}",
            time(period),
            time(longest)
        ))),
        _ => Ok(()),
    }
}

fn scenario(plan: &Plan, scheduler: &crate::tunables::Scheduler, sampled: bool) -> Scenario {
    Scenario {
        jobs: plan.jobs.clone(),
        disk: plan.disk.1.clone(),
        host: plan.host.1.clone(),
        scheduler: scheduler.name.to_owned(),
        config: scheduler.config,
        seed: plan.seed,
        interval: if sampled { Some(fio::SAMPLE) } else { plan.interval },
        time_max: None,
        watch: plan.watch,
    }
}

/// What the simulator has to say beyond the notes of the job file, once.
fn new_notes<'o>(plan: &Plan, outcomes: &'o [Outcome]) -> Vec<&'o str> {
    let mut notes: Vec<&str> = Vec::new();
    for note in outcomes.iter().flat_map(|o| &o.notes) {
        if !plan.jobs.notes.contains(note) && !notes.contains(&note.as_str()) {
            notes.push(note);
        }
    }
    notes
}

/// Whether there is a bar of the simulations that are done: a replay has its own.
fn has_bar(scenarios: &[Scenario]) -> bool {
    scenarios.iter().all(|s| s.jobs.replay_progress().is_none())
}

/// What is wanted beside the outcomes.
#[derive(Clone, Copy)]
struct Wanted<'a> {
    /// Where the time of these went.
    why: Option<&'a Why>,
    /// What pictures need.
    pictures: bool,
}

/// What came of the scenarios, in order.
#[derive(Default)]
struct Done {
    outcomes: Vec<Outcome>,
    why: Vec<why::Report>,
    pictured: Vec<fairhead_report::Recording>,
    logs: Vec<fio_log::Recorder>,
}

impl Done {
    fn add(&mut self, one: One) {
        self.outcomes.push(one.0);
        self.why.extend(one.1);
        self.pictured.extend(one.2);
        self.logs.extend(one.3);
    }
}

/// What came of one.
type One = (Outcome, Option<why::Report>, Option<fairhead_report::Recording>, Option<fio_log::Recorder>);

/// Simulates all. Which thread runs which one changes none of them.
fn simulate_all(scenarios: &[Scenario], wanted: Wanted<'_>, threads: usize) -> Result<Done, SimError> {
    let progress = Progress::new("simulating");
    let has_bar = has_bar(scenarios);
    let done = |n| {
        if has_bar {
            progress.at(n, scenarios.len());
        }
    };
    let all = parallel::map(scenarios.len(), threads, &done, |i| one(&scenarios[i], wanted, None));
    let mut sum = Done::default();
    all.into_iter().try_for_each(|one| one.map(|one| sum.add(one)))?;
    Ok(sum)
}

/// Runs the scenarios one by one, so that recordings are in order and no run is kept in memory.
fn record_all(
    scenarios: &[Scenario],
    wanted: Wanted<'_>,
    recording: &mut Recording,
) -> Result<Done, SimError> {
    let progress = Progress::new("simulating");
    let mut sum = Done::default();
    for (i, scenario) in scenarios.iter().enumerate() {
        sum.add(one(scenario, wanted, Some(recording))?);
        if has_bar(scenarios) {
            progress.at(i + 1, scenarios.len());
        }
    }
    Ok(sum)
}

/// Simulates one scenario, and passes its events to all recorders.
fn one(scenario: &Scenario, wanted: Wanted<'_>, recording: Option<&mut Recording>) -> Result<One, SimError> {
    let mut recorder = wanted.pictures.then(|| Recorder::new(Participants::new(&scenario.jobs)));
    let has_logs = scenario.jobs.jobs.iter().any(|j| !j.logs.is_empty());
    let mut logs = has_logs.then(|| fio_log::Recorder::new(&scenario.jobs));
    let mut sinks = Sinks::default();
    sinks.0.extend(logs.as_mut().map(|r| r as &mut dyn Sink));
    sinks.0.extend(recording.map(|r| r as &mut dyn Sink));
    sinks.0.extend(recorder.as_mut().map(|r| r as &mut dyn Sink));
    let (outcome, why) = match (wanted.why, sinks.0.is_empty()) {
        (None, true) => (simulate(scenario)?, None),
        (None, false) => (journal::record(scenario, &mut sinks)?, None),
        (Some(why), _) => {
            why::answer(scenario, &why.clients, why.when, &mut sinks).map(|(o, why)| (o, Some(why)))?
        }
    };
    Ok((outcome, why, recorder.map(Recorder::finish), logs))
}
