//! `fairhead reproduce`: the published tables beside ours.

use fairhead_device::preset_names;
use fairhead_papers::reproduce::{Options, Report, Setting, Source, hold_against, written};
use std::path::Path;

use crate::args::{ReplayArgs, ReproduceArgs, TableFormat};
use crate::error::CliError;
use crate::files::{self, Outputs};
use crate::out::{self, Progress};
use crate::plan::{choose_setting, read_jobs, read_text};

/// Runs the sources that the arguments name, writes the tables, and judges them if asked to.
pub(crate) fn reproduce(args: &ReproduceArgs) -> Result<(), CliError> {
    let options = Options {
        layouts: args.layouts,
        seed: args.seed,
        threads: args.threads.count(),
        only: args.only.clone(),
        // A file for other programs has all layouts of each row.
        early: args.check && matches!(args.output.format, TableFormat::Human),
    };
    let file = args.output.file.as_deref();
    args.figures.as_deref().into_iter().for_each(files::will_read);
    Outputs::default().file("-o", file).check()?;
    let reports = match &args.figures {
        Some(file) => vec![figures(args, file, &options)?],
        None => tables(args, &options)?,
    };
    if let Some(only) = &args.only
        && reports.iter().all(|r| r.figures.is_empty())
    {
        return Err(CliError::Misuse(format!("--only {only}: no row has that in its id")));
    }
    let text = match args.output.format {
        TableFormat::Human => written::table(&reports, out::coloured(file)),
        TableFormat::Json => written::json(&reports),
        TableFormat::Csv => written::csv(&reports),
    };
    out::results(file, &text)?;
    if file.is_some() {
        out::note(&format!("seed {}", args.seed));
    }
    if args.check { judge(&reports) } else { Ok(()) }
}

/// The published tables.
fn tables(args: &ReproduceArgs, options: &Options) -> Result<Vec<Report>, CliError> {
    let mut reports = Vec::new();
    for source in Source::choose(args.source.as_deref()).map_err(CliError::Misuse)? {
        let progress = Progress::new("reproducing");
        let report = source.reproduce(options, &|done, total| progress.at(done, total));
        reports.push(report.map_err(|e| CliError::Failed(e.to_string()))?);
    }
    Ok(reports)
}

/// The user's own measurements. Paths of job files and disk files are relative to the folder of the CSV file.
fn figures(args: &ReproduceArgs, file: &Path, options: &Options) -> Result<Report, CliError> {
    let text = read_text(file)?;
    let beside = |name: &str| file.parent().unwrap_or(Path::new("")).join(name);
    let read = |job: &str, disk: Option<&str>, host: Option<&str>| {
        let own = disk.map(|d| {
            if preset_names().contains(&d) { d.to_owned() } else { beside(d).display().to_string() }
        });
        let host = host.or(args.host.as_deref());
        let (disk, host) =
            choose_setting(own.as_deref().unwrap_or(&args.disk), host).map_err(|e| e.to_string())?;
        let jobs = read_jobs(Some(&beside(job)), Some(&host.1), &ReplayArgs::default(), None);
        Ok(Setting { jobs: jobs.map_err(|e| e.to_string())?, disk: disk.1, host: host.1 })
    };
    let progress = Progress::new("reproducing");
    let report =
        hold_against(&text, &file.to_string_lossy(), options, &read, &|done, total| progress.at(done, total));
    report.map_err(CliError::Misuse)
}

/// Names the known misses, with their reasons, and fails on what is not as the list of them has it.
fn judge(reports: &[Report]) -> Result<(), CliError> {
    reports.iter().flat_map(Report::known_misses).for_each(|m| out::note(&format!("known miss: {m}")));
    let faults: Vec<String> = reports.iter().flat_map(Report::faults).collect();
    faults.iter().for_each(|m| out::note(m));
    match faults.len() {
        0 => Ok(()),
        1 => Err(CliError::Failed("1 number or property is not as expected".to_owned())),
        n => Err(CliError::Failed(format!("{n} numbers or properties are not as expected"))),
    }
}
