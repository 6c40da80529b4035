//! `fairhead run`: one simulation per scheduler, several at once, and the report.

use std::path::{Path, PathBuf};

use fairhead_lab::output::page;
use fairhead_lab::output::{Csv, Export, Human, Json, JsonPlus, Report, SAMPLE};
use fairhead_lab::simulate::{One, Wanted, alone, name_as_shown, one};
use fairhead_lab::{Plan, Scheduler};
use fairhead_sim::journal::fio_log;
use fairhead_sim::{Outcome, Scenario, SimError, hang_on_starts, parallel, why};

use crate::args::{Format, RunArgs};
use crate::error::CliError;
use crate::files::Outputs;
use crate::memory;
use crate::out::{self, Progress};
use crate::output::page::command_line;
use crate::plan;
use crate::recordings::Recording;
use crate::replay;

/// Runs the plan that the arguments make, and writes the report.
pub(crate) fn run(args: &RunArgs) -> Result<(), CliError> {
    let plan = plan::of(args)?;
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
    let mut recorded = Ok(());
    let Done { mut outcomes, why, pictured, logs } = match Recording::new(&args.record, scenarios.len())? {
        None => {
            let all = || simulate_all(&scenarios, wanted, threads);
            replay::with_progress(&plan.jobs, scenarios.len(), "replaying", all).map_err(failed)?
        }
        Some(mut recording) => {
            let all = || record_all(&scenarios, wanted, &mut recording);
            let all = replay::with_progress(&plan.jobs, scenarios.len(), "replaying", all).map_err(failed)?;
            recorded = recording.finish();
            all
        }
    };
    plan.watch_is_short_enough(&outcomes)?;
    outcomes.iter_mut().for_each(name_as_shown);
    for note in new_notes(&plan, &outcomes) {
        out::note(note);
    }
    if args.jitter_starts {
        for (scenario, outcome) in scenarios.iter().zip(&outcomes) {
            hang_on_starts(scenario, outcome).map_err(failed)?.iter().for_each(|n| out::note(n));
        }
    }
    let report = Report { plan: &plan, outcomes: &outcomes, why: &why };
    // The results are printed whatever becomes of the files beside them.
    let beside = write_beside(args, &report, logs, &pictured, threads);
    let printed = print_results(args, &report);
    recorded.and(beside).and(printed)
}

/// Writes fio's logs, the page and the pictures.
fn write_beside(
    args: &RunArgs,
    report: &Report<'_>,
    logs: Vec<fio_log::Recorder>,
    pictured: &[fairhead_report::Recording],
    threads: usize,
) -> Result<(), CliError> {
    let plan = report.plan;
    for (s, log) in plan.schedulers.iter().zip(logs) {
        let files = log.finish(&plan.jobs, &part(plan, s.name));
        files.iter().try_for_each(|(name, text)| out::write(Some(Path::new(name)), text))?;
    }
    if args.report.is_none() && args.pictures.is_none() {
        return Ok(());
    }
    let base = alone(plan, report.outcomes, threads).map_err(|e| CliError::Failed(e.to_string()))?;
    if let Some(file) = &args.report {
        let page = page::run(report, pictured, &base, &command_line(std::env::args_os()));
        out::write(Some(file), &page)?;
    }
    match &args.pictures {
        Some(folder) => write_pictures(folder, &page::files(report, pictured, &base)),
        None => Ok(()),
    }
}

/// Writes the results where they are wanted.
fn print_results(args: &RunArgs, report: &Report<'_>) -> Result<(), CliError> {
    let file = args.output.file.as_deref();
    if file.is_none() && args.record.takes_terminal() {
        return Ok(());
    }
    let export: Box<dyn Export> = match args.output.format {
        Format::Human => Box::new(Human { coloured: out::coloured(file), columns: out::columns(file) }),
        Format::Json => Box::new(Json),
        Format::JsonPlus => Box::new(JsonPlus),
        Format::Csv => Box::new(Csv),
    };
    out::results(file, &export.render(report))?;
    if file.is_some() {
        out::note(&format!("seed {}", report.plan.seed));
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

fn scenario(plan: &Plan, scheduler: &Scheduler, sampled: bool) -> Scenario {
    let scenario = plan.scenario(scheduler);
    if sampled { Scenario { interval: Some(SAMPLE), ..scenario } } else { scenario }
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
        self.outcomes.push(one.outcome);
        self.why.extend(one.why);
        self.pictured.extend(one.pictured);
        self.logs.extend(one.logs);
    }
}

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
