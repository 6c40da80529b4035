//! `fairhead sweep`: the grid from the arguments, the rows from the simulator, and the table.

use fairhead_report::svg::Picture;
use fairhead_sim::SimError;
use fairhead_sim::resumable::fingerprint;
use fairhead_sim::sweep::{Part, Setting, Sweep, Swept};

use crate::args::SweepArgs;
use crate::error::CliError;
use crate::files::{Outputs, will_read};
use crate::memory;
use crate::out::{self, Progress};
use crate::output::{page, parquet, sweep};
use crate::plan::{choose_schedulers, choose_setting, read_jobs};
use crate::resume::Resume;
use crate::run::write_pictures;
use fairhead_lab::plan::with_disks_of;

/// Runs the grid, and writes the rows that are done, be it all.
pub(crate) fn sweep(args: &SweepArgs) -> Result<(), CliError> {
    let grid = grid(args)?;
    grid.jobs.notes.iter().for_each(|n| out::note(n));
    args.merge.iter().for_each(|file| will_read(file));
    Outputs::default()
        .file("-o", args.output.file.as_deref())
        .file("--resume", args.resume.as_deref())
        .file("--report", args.report.as_deref())
        .file("--parquet", args.parquet.as_deref())
        .pictures(args.pictures.as_deref())
        .check()?;
    let resume = Resume::open(args.resume.as_deref(), &args.merge, fingerprint(&grid))?;
    let part = args.shard.unwrap_or(Part::WHOLE);
    let count = (0..grid.count()).filter(|&i| part.has(i)).count();
    let mut threads = args.threads.count();
    for s in &grid.settings {
        threads = memory::at_a_time(&grid.jobs, (&s.disk, &s.host), threads)?;
    }
    let progress = Progress::counted("sweeping", resume.count().min(count), count);
    let swept = grid.run(part, threads, &resume, &|done| progress.at(done, count)).map_err(|e| match e {
        SimError::Group(message) => CliError::Failed(message),
        e => CliError::Misuse(e.to_string()),
    })?;
    drop(progress);
    // The rows are printed whatever becomes of the files beside them.
    let beside = write_beside(args, &grid, &swept);
    let file = args.output.file.as_deref();
    let text = sweep::render(&grid, &swept, args.output.format, out::coloured(file));
    beside.and(out::results(file, &text))?;
    if file.is_some() {
        out::note(&format!("seed {}", args.seed));
    }
    if resume.has_failed() {
        out::note("some results could not be written to the file of --resume");
    }
    match swept.rows.iter().flatten().count() {
        done if done == count => Ok(()),
        done => {
            let how = if args.resume.is_some() {
                "the same command resumes"
            } else {
                "--resume FILE would keep them"
            };
            Err(CliError::Failed(format!("interrupted: {done} of {count} points are done; {how}")))
        }
    }
}

/// Writes the page, the pictures and the Parquet file.
fn write_beside(args: &SweepArgs, grid: &Sweep, swept: &Swept) -> Result<(), CliError> {
    if args.report.is_some() || args.pictures.is_some() {
        let page = sweep::page(grid, swept, &page::command_line(std::env::args_os()));
        if let Some(file) = &args.report {
            out::write(Some(file), &page.html())?;
        }
        if let Some(folder) = &args.pictures {
            let file = |p: &Picture| (format!("{}.svg", p.name), p.to_file());
            write_pictures(folder, &page.pictures().iter().map(file).collect::<Vec<_>>())?;
        }
    }
    match &args.parquet {
        Some(file) => out::complete(file, |file| parquet::write(grid, swept, file)),
        None => Ok(()),
    }
}

/// The most rows of a grid.
const POINTS_MAX: u64 = 1_000_000;

fn grid(args: &SweepArgs) -> Result<Sweep, CliError> {
    let jobs = read_jobs(Some(&args.load.job), None, &args.load.replay, args.runtime.time.as_deref())?;
    let tuned = fairhead_lab::sweep::tuned(&choose_schedulers(&args.sched, &jobs)?, &args.set)?;
    let setting = |name: &String| {
        let first = choose_setting(name.trim(), args.host.as_deref())?;
        let ((name, disk), (_, host)) = with_disks_of(&jobs, first, args.host.as_deref())?;
        Ok(Setting { name, disk, host })
    };
    let settings = args.disk.iter().map(setting).collect::<Result<Vec<_>, CliError>>()?;
    let count = (settings.len() * tuned.len()) as u64 * u64::from(args.seeds);
    if count > POINTS_MAX {
        let wrong = format!("{count} points are more than {POINTS_MAX}; sweep fewer values or seeds");
        return Err(CliError::Misuse(wrong));
    }
    Ok(Sweep { jobs, settings, tuned, seed: args.seed, seeds: args.seeds })
}
