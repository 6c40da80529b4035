//! `fairhead arena`: loads, disks and schedulers from the arguments, the cells from the simulator.

use fairhead_lab::arena::DISKS;
use fairhead_lab::output::arena as output;
use fairhead_report::svg::Picture;
use fairhead_sim::SimError;
use fairhead_sim::arena::{Arena, Cell};
use fairhead_sim::job::{self, JobFile};
use fairhead_sim::resumable::fingerprint;
use fairhead_sim::sweep::{Part, Setting};

use crate::args::{ArenaArgs, ArenaFormat, ReplayArgs};
use crate::error::CliError;
use crate::files::{Outputs, will_read};
use crate::memory;
use crate::out::{self, Progress};
use crate::output::page;
use crate::plan::{choose_schedulers, choose_setting, read_jobs};
use crate::resume::Resume;
use crate::run::write_pictures;

/// Runs the cells, and writes those that are done, be it all.
pub(crate) fn arena(args: &ArenaArgs) -> Result<(), CliError> {
    let arena = plan(args)?;
    arena.loads.iter().flat_map(|l| &l.notes).for_each(|n| out::note(n));
    args.merge.iter().for_each(|file| will_read(file));
    Outputs::default()
        .file("-o", args.output.file.as_deref())
        .file("--resume", args.resume.as_deref())
        .file("--report", args.report.as_deref())
        .pictures(args.pictures.as_deref())
        .check()?;
    let resume = Resume::open(args.resume.as_deref(), &args.merge, fingerprint(&arena))?;
    let part = args.shard.unwrap_or(Part::WHOLE);
    let count = (0..arena.count()).filter(|&i| part.has(i)).count();
    let threads = threads(&arena, args.threads.count())?;
    let progress = Progress::counted("running cells", resume.count().min(count), count);
    let cells = arena.run(part, threads, &resume, &|done| progress.at(done, count));
    drop(progress);
    let cells = cells.map_err(|e| match e.error {
        SimError::Group(_) => CliError::Failed(e.to_string()),
        _ => CliError::Misuse(e.to_string()),
    })?;
    write(args, &arena, &cells)?;
    if resume.has_failed() {
        out::note("some cells could not be written to the file of --resume");
    }
    match cells.iter().flatten().count() {
        done if done == count => Ok(()),
        done => {
            let how = match args.resume {
                Some(_) => "the same command resumes",
                None => "--resume FILE would keep them",
            };
            Err(CliError::Failed(format!("interrupted: {done} of {count} cells are done; {how}")))
        }
    }
}

/// Writes the results, and the page; the results whatever becomes of the page.
fn write(args: &ArenaArgs, arena: &Arena, cells: &[Option<Cell>]) -> Result<(), CliError> {
    let beside = write_beside(args, arena, cells);
    let file = args.output.file.as_deref();
    let text = match args.output.format {
        ArenaFormat::Human => output::human(arena, cells, out::coloured(file)),
        ArenaFormat::Csv => output::csv(arena, cells),
        ArenaFormat::Json => output::json(arena, cells),
    };
    beside.and(out::results(file, &text))
}

/// Writes the page and the pictures.
fn write_beside(args: &ArenaArgs, arena: &Arena, cells: &[Option<Cell>]) -> Result<(), CliError> {
    if args.report.is_none() && args.pictures.is_none() {
        return Ok(());
    }
    let page = output::page(arena, cells, &page::command_line(std::env::args_os()));
    if let Some(file) = &args.report {
        out::write(Some(file), &page.html())?;
    }
    if let Some(folder) = &args.pictures {
        let file = |p: &Picture| (format!("{}.svg", p.name), p.to_file());
        write_pictures(folder, &page.pictures().iter().map(file).collect::<Vec<_>>())?;
    }
    Ok(())
}

/// How many cells fit into memory at a time.
fn threads(arena: &Arena, most: usize) -> Result<usize, CliError> {
    let mut threads = most;
    for jobs in &arena.loads {
        for s in &arena.settings {
            threads = memory::at_a_time(jobs, (&s.disk, &s.host), threads)?;
        }
    }
    Ok(threads)
}

fn plan(args: &ArenaArgs) -> Result<Arena, CliError> {
    let loads = loads(args)?;
    let schedulers = choose_schedulers(&args.sched, &loads[0])?;
    let tuned = fairhead_lab::sweep::tuned(&schedulers, &args.set)?;
    let mut settings: Vec<Setting> = Vec::new();
    let default = || DISKS.map(str::to_owned).to_vec();
    let names = if args.disk.is_empty() { default() } else { args.disk.clone() };
    for name in &names {
        let ((name, disk), (_, host)) = choose_setting(name.trim(), None)?;
        if settings.iter().any(|s| s.name == name) {
            return Err(CliError::Misuse(format!("disk '{name}' is named twice")));
        }
        settings.push(Setting { name, disk, host });
    }
    Ok(Arena { loads, settings, tuned, seed: args.seed, seeds: args.seeds })
}

fn loads(args: &ArenaArgs) -> Result<Vec<JobFile>, CliError> {
    let misuse = |e: job::JobError| CliError::Misuse(e.to_string());
    if args.loads.is_empty() {
        return fairhead_lab::arena::loads().map(|w| job::parse(w.text, w.name).map_err(misuse)).collect();
    }
    let mut loads: Vec<JobFile> = Vec::new();
    for path in &args.loads {
        let jobs = read_jobs(Some(path), None, &ReplayArgs::default(), None)?;
        if loads.iter().any(|l| l.file_name == jobs.file_name) {
            return Err(CliError::Misuse(format!("load '{}' is named twice", jobs.file_name)));
        }
        loads.push(jobs);
    }
    Ok(loads)
}
