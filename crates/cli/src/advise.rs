//! `fairhead advise`: the question from the arguments, the answer from the simulator, and the report.

use std::path::Path;

use fairhead_core::Duration;
use fairhead_core::sched::any::AnyConfig;
use fairhead_core::sched::catalogue::Named;
use fairhead_lab::output::advice::{self as written, Drawn, Labels};
use fairhead_lab::output::so_far;
use fairhead_sim::advise::{self, Advice, Answer, Question, SoFar, Stage, WORK_PER_S};
use fairhead_sim::resumable::fingerprint;
use fairhead_sim::satisfaction::Emphasis;
use fairhead_sim::{Host, SimError};

use crate::args::{AdviseArgs, DISK, Goal, ReportFormat};
use crate::error::CliError;
use crate::files::Outputs;
use crate::memory;
use crate::out::{self, Progress};
use crate::output::page::command_line;
use crate::plan::{choose_disk, choose_load, positive_time, read_jobs};
use crate::record;
use crate::resume::Resume;
use crate::schedulers::choose_scheduler;

/// Asks what the arguments say, and writes the answer.
pub(crate) fn advise(args: &AdviseArgs) -> Result<(), CliError> {
    let recorded = args.record.as_deref().map(|time| record(args, time)).transpose()?;
    let load = match &recorded {
        Some(disk) => (args.recording.as_path(), disk.as_str()),
        None => (args.load.job.as_path(), args.disk.as_deref().unwrap_or(DISK)),
    };
    let (question, labels) = question(args, load)?;
    question.jobs.notes.iter().for_each(|n| out::note(n));
    let threads = memory::at_a_time(&question.jobs, (&question.disk, &question.host), args.threads.count())?;
    let progress = Progress::bounded("racing");
    let stage = |s: Stage| show(&progress, &question, s);
    Outputs::default()
        .file("-o", args.output.file.as_deref())
        .file("--report", args.report.as_deref())
        .file("--resume", args.resume.as_deref())
        .check()?;
    let resume = Resume::open(args.resume.as_deref(), &[], of_runs(&question))?;
    let answer = advise::answer(&question, threads, &resume, &stage).map_err(|e| match e {
        SimError::Group(message) => CliError::Failed(message),
        e => CliError::Misuse(e.to_string()),
    })?;
    drop(progress);
    let (question, answer) = match answer {
        Answer::Whole(whole) => *whole,
        Answer::SoFar(so_far) => return interrupted(args, &labels, &question, &so_far),
    };
    // The answer is printed whatever becomes of the page.
    let page = args.report.as_deref().map_or(Ok(()), |file| write_page(file, &labels, &question, &answer));
    let file = args.output.file.as_deref();
    let text = match args.output.format {
        ReportFormat::Human => written::human(&labels, &answer, drawn(args, file)),
        ReportFormat::Json => written::json(&labels, question.seed, &answer),
    };
    page.and(out::results(file, &text))?;
    if file.is_some() {
        out::note(&format!("seed {}", args.seed.number));
    }
    Ok(())
}

/// How the answer is drawn: as the terminal can, and in a file without colours.
fn drawn(args: &AdviseArgs, file: Option<&Path>) -> Drawn {
    let look = out::look();
    Drawn {
        is_coloured: out::coloured(file),
        is_unicode: look.is_unicode,
        has_details: args.details,
    }
}

fn write_page(file: &Path, labels: &Labels, question: &Question, answer: &Advice) -> Result<(), CliError> {
    let shown = written::shown_runs(question, answer).map_err(|e| CliError::Failed(e.to_string()))?;
    let command = command_line(std::env::args_os());
    out::write(Some(file), &written::page(labels, question, answer, &shown, &command))
}

/// Prints what is known so far. The files that were asked for are for a whole answer and are not written.
fn interrupted(
    args: &AdviseArgs,
    labels: &Labels,
    question: &Question,
    known: &SoFar,
) -> Result<(), CliError> {
    out::print(&match args.output.format {
        ReportFormat::Human => so_far::human(labels, question, known, out::coloured(None)),
        ReportFormat::Json => so_far::json(labels, question, known),
    })?;
    let how = if args.resume.is_some() {
        "the same command resumes"
    } else {
        "--resume FILE would keep the finished runs"
    };
    Err(CliError::Failed(format!("interrupted before there was an answer; {how}")))
}

/// Records the disk that stands in place of the job. Returns what simulates it, as `--disk` takes it.
fn record(args: &AdviseArgs, time: &str) -> Result<String, CliError> {
    // What is wrong with the arguments is said before a minute has passed.
    Outputs::default()
        .file("-o", args.output.file.as_deref())
        .file("--report", args.report.as_deref())
        .file("--resume", args.resume.as_deref())
        .file("--recording", Some(&args.recording))
        .check()?;
    schedulers(args)?;
    positive_time("--budget", &args.budget)?;
    let time = positive_time("--record", time)?;
    let target = record::target(&args.load.job.to_string_lossy())?;
    let disk = match &args.disk {
        Some(name) if !name.starts_with("/dev/") => {
            choose_disk(name)?;
            name.clone()
        }
        Some(device) => choose_disk(device)?.0,
        None => choose_disk(&format!("/dev/{}", target.disk))?.0,
    };
    record::for_advice(target, std::time::Duration::from_nanos(time.as_ns()), &args.recording)?;
    out::note(&format!("the recording is in {}", args.recording.display()));
    Ok(disk)
}

/// The fingerprint of what the runs depend on: not their number or the weights of the figures. A built-in
/// scheduler is what its name says; one from outside is known by its tunables and code, too.
fn of_runs(q: &Question) -> u64 {
    let outside: Vec<&Named> = q
        .only
        .iter()
        .flatten()
        .chain(&q.against)
        .filter(|named| matches!(named.config, AnyConfig::Outside(_)))
        .collect();
    fingerprint(&(&q.jobs, &q.disk, &q.host, outside))
}

/// The bar goes by reckoned work: of the budget at most, or of what has been done if that is more.
fn show(progress: &Progress, question: &Question, s: Stage) {
    let steps = |work: Duration| usize::try_from(work.as_ns()).unwrap_or(usize::MAX);
    progress.say(format!("round {}: {} of {} runs", s.round, s.done, s.runs));
    progress.at(steps(s.work), steps(question.work.max(s.work)));
}

/// The schedulers to compare with, and to compare.
fn schedulers(args: &AdviseArgs) -> Result<(Option<Named>, Vec<Named>), CliError> {
    let against = args.against.as_deref().map(choose_scheduler).transpose()?;
    let only = args.sched.iter().map(|name| choose_scheduler(name));
    Ok((against, only.collect::<Result<_, _>>()?))
}

/// The question about a job or trace, and a disk.
fn question(args: &AdviseArgs, (job, disk): (&Path, &str)) -> Result<(Question, Labels), CliError> {
    let budget = positive_time("--budget", &args.budget)?;
    let load =
        |host: &Host| read_jobs(Some(job), Some(host), &args.load.replay, args.runtime.time.as_deref());
    let ((disk, host), jobs) = choose_load(disk, args.host.as_deref(), load)?;
    if let Some(name) = args.of_job.as_deref().filter(|n| jobs.jobs.iter().all(|j| j.name != *n)) {
        let known: Vec<&str> = jobs.jobs.iter().map(|j| j.name.as_str()).collect();
        return Err(CliError::Misuse(format!("no job '{name}'; there are {}", known.join(", "))));
    }
    let (against, only) = schedulers(args)?;
    let emphasis = match (&args.of_job, args.goal) {
        (Some(name), _) => Emphasis::Job(name.clone()),
        (None, Goal::Even) => Emphasis::Even,
        (None, Goal::Kind(kind)) => Emphasis::Kind(kind),
    };
    let labels = Labels::new(&disk.0, &host.0, &emphasis);
    let question = Question {
        jobs,
        disk: disk.1,
        host: host.1,
        emphasis,
        seed: args.seed.number,
        work: WORK_PER_S * budget.as_ms() / 1000,
        rounds: args.rounds,
        against,
        only: (!args.sched.is_empty()).then_some(only),
    };
    Ok((question, labels))
}
