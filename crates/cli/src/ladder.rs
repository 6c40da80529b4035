//! `fairhead ladder`: BFQ's switches, one by one, on a job of the user's or on the loads that they were
//! written for.

use std::path::Path;

use fairhead_papers::ladder::{self, Rung, SCENARIOS, SWITCHES, Verdict};
use fairhead_sim::job::{JobFile, nearest};
use fairhead_sim::{Host, Outcome, Scenario, SimError, parallel, simulate};

use crate::args::{LadderArgs, ReplayArgs};
use crate::error::CliError;
use crate::files::Outputs;
use crate::out::{self, Progress};
use crate::output::{Ladder, Verdicts};
use crate::plan::{choose_load, read_jobs};

/// What a ladder is climbed with unless a job is named: three applications that start while ten readers
/// stream.
const DEFAULT: &str = "startup-10r-seq";

/// Runs what the arguments name, and writes the table.
pub(crate) fn ladder(args: &LadderArgs) -> Result<(), CliError> {
    let file = args.output.file.as_deref();
    // Again when the job is known, which must not be overwritten.
    Outputs::default().file("-o", file).check()?;
    let threads = args.threads.count();
    let coloured = out::coloured(file);
    let text = match &args.scenario {
        Some(name) => {
            let chosen = choose_scenarios(name)?;
            let progress = Progress::new("simulating");
            let done = |n| progress.at(n, chosen.len());
            let verdicts = parallel::map(chosen.len(), threads, &done, |i| chosen[i].judge(args.seed.number));
            let verdicts = verdicts.into_iter().collect::<Result<Vec<Verdict>, SimError>>();
            let verdicts = verdicts.map_err(|e| CliError::Failed(e.to_string()))?;
            Verdicts { scenarios: &chosen, verdicts: &verdicts, seed: args.seed.number, coloured }
                .render(args.output.format)
        }
        None => climb(args, threads, coloured)?,
    };
    out::results(file, &text)?;
    if file.is_some() {
        out::note(&format!("seed {}", args.seed.number));
    }
    Ok(())
}

/// The job on every rung.
fn climb(args: &LadderArgs, threads: usize, coloured: bool) -> Result<String, CliError> {
    let job = args.job.as_deref().unwrap_or(Path::new(DEFAULT));
    let load =
        |host: &Host| read_jobs(Some(job), Some(host), &ReplayArgs::default(), args.runtime.time.as_deref());
    let ((disk, host), jobs) = choose_load(&args.disk.name, args.host.as_deref(), load)?;
    let foreground = choose_foreground(&jobs, args.foreground.as_deref())?;
    let rungs = choose_rungs(args)?;
    Outputs::default().file("-o", args.output.file.as_deref()).check()?;
    jobs.notes.iter().for_each(|n| out::note(n));
    let progress = Progress::new("simulating");
    let done = |n| progress.at(n, rungs.len());
    let outcomes = parallel::map(rungs.len(), threads, &done, |i| {
        simulate(&Scenario {
            jobs: jobs.clone(),
            disk: disk.1.clone(),
            host: host.1.clone(),
            scheduler: "bfq".to_owned(),
            config: rungs[i].config,
            seed: args.seed.number,
            interval: None,
            time_max: None,
            watch: None,
        })
    });
    let outcomes = outcomes.into_iter().collect::<Result<Vec<Outcome>, SimError>>();
    let outcomes = outcomes.map_err(|e| CliError::Misuse(e.to_string()))?;
    let ladder = Ladder {
        title: format!("{} on {}, host of {}, seed {}", jobs.file_name, disk.0, host.0, args.seed.number),
        jobs: &jobs,
        foreground,
        rungs: &rungs,
        outcomes: &outcomes,
        against_first: args.without_each,
        coloured,
    };
    Ok(ladder.render(args.output.format))
}

fn choose_rungs(args: &LadderArgs) -> Result<Vec<Rung>, CliError> {
    match &args.only {
        Some(name) => ladder::switch(name).map(ladder::only).ok_or_else(|| unknown_switch(name, "")),
        None if args.without_each => Ok(ladder::without_each()),
        None => Ok(ladder::rungs()),
    }
}

fn choose_scenarios(name: &str) -> Result<Vec<ladder::Scenario>, CliError> {
    let chosen: Vec<_> = SCENARIOS.iter().filter(|s| name == "all" || s.switch == name).copied().collect();
    match (chosen.is_empty(), ladder::switch(name)) {
        (false, _) => Ok(chosen),
        (true, Some(_)) => Err(CliError::Misuse(format!("there is no scenario for '{name}' yet"))),
        (true, None) => Err(unknown_switch(name, "all, ")),
    }
}

fn unknown_switch(name: &str, also: &str) -> CliError {
    let known = || SWITCHES.iter().map(|s| s.name);
    CliError::Misuse(match nearest(name, known()) {
        Some(word) => format!("bfq has no switch '{name}'; did you mean '{word}'?"),
        None => format!(
            "bfq has no switch '{name}'; write one of {also}{}",
            known().collect::<Vec<_>>().join(", ")
        ),
    })
}

fn choose_foreground(jobs: &JobFile, name: Option<&str>) -> Result<usize, CliError> {
    let Some(name) = name else { return Ok(ladder::foreground(jobs)) };
    jobs.jobs.iter().position(|j| j.name == name).ok_or_else(|| {
        let known: Vec<&str> = jobs.jobs.iter().map(|j| j.name.as_str()).collect();
        CliError::Misuse(format!("no job '{name}'; there are {}", known.join(", ")))
    })
}
