//! `fairhead run`: one simulation per scheduler, several at once, and the report.

use fairhead_sim::{Outcome, Scenario, SimError, journal, parallel, simulate, why};

use crate::args::{Format, RunArgs};
use crate::error::CliError;
use crate::out::{self, Progress};
use crate::output::{Csv, Export, Human, Json, JsonPlus, Report, time};
use crate::plan::Plan;
use crate::record::Recording;
use crate::replay;

/// Runs the plan that the arguments make, and writes the report.
pub(crate) fn run(args: &RunArgs) -> Result<(), CliError> {
    let plan = Plan::new(args)?;
    plan.jobs.notes.iter().for_each(|n| out::note(n));
    let scenarios: Vec<Scenario> = plan.schedulers.iter().map(|s| scenario(&plan, s)).collect();
    let threads = args.threads.map_or_else(parallel::available, usize::from);
    let clients = plan.why.as_ref().map(|w| w.1.as_slice());
    let failed = |e| match e {
        SimError::Group(message) => CliError::Failed(message),
        e => CliError::Misuse(e.to_string()),
    };
    let (outcomes, why) = match Recording::new(&args.record, scenarios.len())? {
        None => {
            let all = || simulate_all(&scenarios, clients, threads);
            replay::with_progress(&plan.jobs, scenarios.len(), "replaying", all).map_err(failed)?
        }
        Some(mut recording) => {
            let all = || record_all(&scenarios, clients, &mut recording);
            let all = replay::with_progress(&plan.jobs, scenarios.len(), "replaying", all).map_err(failed)?;
            recording.finish()?;
            all
        }
    };
    watch_is_short_enough(&plan, &outcomes)?;
    for note in new_notes(&plan, &outcomes) {
        out::note(note);
    }
    let file = args.output.as_deref();
    let export: Box<dyn Export> = match args.output_format {
        Format::Human => Box::new(Human { coloured: out::coloured(file) }),
        Format::Json => Box::new(Json),
        Format::JsonPlus => Box::new(JsonPlus),
        Format::Csv => Box::new(Csv),
    };
    if file.is_none() && args.record.takes_terminal() {
        return Ok(());
    }
    let text = export.render(&Report { plan: &plan, outcomes: &outcomes, why: &why });
    out::write(file, &text)?;
    if file.is_some() {
        out::note(&format!("seed {}", plan.seed));
    }
    Ok(())
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

fn scenario(plan: &Plan, scheduler: &crate::tunables::Scheduler) -> Scenario {
    Scenario {
        jobs: plan.jobs.clone(),
        disk: plan.disk.1.clone(),
        host: plan.host.1.clone(),
        scheduler: scheduler.name.to_owned(),
        config: scheduler.config,
        seed: plan.seed,
        interval: plan.interval,
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

/// The outcome of each scenario, in order, and where the time of some clients went, if asked. Which thread runs which one
/// changes none of them.
fn simulate_all(
    scenarios: &[Scenario],
    clients: Option<&[usize]>,
    threads: usize,
) -> Result<(Vec<Outcome>, Vec<why::Report>), SimError> {
    // A replay has a bar of its own.
    let has_bar = scenarios.iter().all(|s| s.jobs.replay_progress().is_none());
    let progress = Progress::new("simulating");
    let done = |n| {
        if has_bar {
            progress.at(n, scenarios.len())
        }
    };
    let Some(clients) = clients else {
        let all = parallel::map(scenarios.len(), threads, &done, |i| simulate(&scenarios[i]));
        return Ok((all.into_iter().collect::<Result<_, _>>()?, Vec::new()));
    };
    let all = parallel::map(scenarios.len(), threads, &done, |i| why::explain(&scenarios[i], clients));
    Ok(all.into_iter().collect::<Result<Vec<_>, _>>()?.into_iter().unzip())
}

/// The same one by one, so that what is recorded comes in order and no run is kept in memory.
fn record_all(
    scenarios: &[Scenario],
    clients: Option<&[usize]>,
    recording: &mut Recording,
) -> Result<(Vec<Outcome>, Vec<why::Report>), SimError> {
    let progress = Progress::new("simulating");
    let (mut outcomes, mut reports) = (Vec::new(), Vec::new());
    for (i, scenario) in scenarios.iter().enumerate() {
        match clients {
            None => outcomes.push(journal::record(scenario, recording)?),
            Some(clients) => {
                let (outcome, report) = journal::record_and_explain(scenario, clients, recording)?;
                outcomes.push(outcome);
                reports.push(report);
            }
        }
        if has_bar(scenarios) {
            progress.at(i + 1, scenarios.len());
        }
    }
    Ok((outcomes, reports))
}
