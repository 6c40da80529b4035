//! `fairhead record`: what the disks of this machine do, to a file, and a summary of it.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fairhead_machine::Tree;
use fairhead_machine::record::{self, Ended, Outcome, Plan, Target};
use fairhead_trace::{Summary, Tasks, open};

use crate::args::RecordArgs;
use crate::error::CliError;
use crate::files::Outputs;
use crate::out::{self, Progress};
use crate::output::record::{Recorded, render};
use crate::plan::positive_time;

/// Whether a recording runs, and whether Ctrl-C was pressed.
static UNDER_WAY: AtomicBool = AtomicBool::new(false);
static OVER: AtomicBool = AtomicBool::new(false);

/// Tells a recording to end and keep what there is. Returns whether there is one; the second time there is
/// none, so that a second Ctrl-C ends the program.
pub(crate) fn end() -> bool {
    UNDER_WAY.load(Ordering::Relaxed) && !OVER.swap(true, Ordering::Relaxed)
}

/// Records, then reads the file and prints what is in it.
pub(crate) fn record(args: &RecordArgs) -> Result<(), CliError> {
    Outputs::default().file("-o", Some(&args.output)).check()?;
    let time = Duration::from_nanos(positive_time("--time", &args.time)?.as_ns());
    let targets = record::targets(&Tree::new("/"), &args.disks).map_err(CliError::Misuse)?;
    let plan = Plan { targets, time, file_bytes: args.size << 20, buffer_bytes: args.buffer << 20 };
    let outcome = to_file(&plan, &args.output)?;
    summarise(args, &plan.targets, &outcome)
}

/// Records a disk to a file, for `advise`.
pub(crate) fn for_advice(target: Target, time: Duration, file: &Path) -> Result<(), CliError> {
    let plan = Plan { targets: vec![target], time, file_bytes: 1 << 30, buffer_bytes: 32 << 20 };
    to_file(&plan, file)?;
    if is_empty(file) {
        return Err(CliError::Failed("no requests were made in this time: nothing to advise on".to_owned()));
    }
    Ok(())
}

/// The disk or partition that the word means.
pub(crate) fn target(word: &str) -> Result<Target, CliError> {
    let found = record::targets(&Tree::new("/"), &[word.to_owned()]).map_err(CliError::Misuse)?;
    found.into_iter().next().ok_or_else(|| CliError::Misuse(format!("no disk '{word}'")))
}

/// Records to a file that appears when it is complete, and says what a reader of it must know.
fn to_file(plan: &Plan, output: &Path) -> Result<Outcome, CliError> {
    let mut outcome = None;
    let mut failure = None;
    UNDER_WAY.store(true, Ordering::Relaxed);
    let written = out::complete(output, |file| match tape(plan, file) {
        Ok(came_to) => {
            outcome = Some(came_to);
            Ok(())
        }
        Err(message) => {
            failure = Some(message);
            Err(io::Error::other("not recorded"))
        }
    });
    UNDER_WAY.store(false, Ordering::Relaxed);
    if let Some(message) = failure {
        return Err(CliError::Failed(message));
    }
    written?;
    let Some(outcome) = outcome else { return Err(CliError::Failed("nothing was recorded".to_owned())) };
    warn(&outcome, plan);
    Ok(outcome)
}

fn tape(plan: &Plan, file: File) -> Result<Outcome, String> {
    let progress = Progress::timed("recording");
    let names: Vec<&str> = plan.targets.iter().map(|t| t.name.as_str()).collect();
    let began = |removed: &[String]| {
        for name in removed {
            out::note(&format!("removed the trace instance {name}, which a killed run had left behind"));
        }
        let seconds = plan.time.as_secs_f64();
        out::note(&format!("recording {} for {seconds}s; Ctrl-C ends it earlier", names.join(", ")));
    };
    let ms = |time: Duration| usize::try_from(time.as_millis()).unwrap_or(usize::MAX);
    record::record(plan, file, began, |so_far, requests| {
        progress.say(format!("recording, {requests} requests"));
        progress.at(ms(so_far), ms(plan.time));
        !OVER.load(Ordering::Relaxed)
    })
}

/// Says what a reader of the figures must know.
fn warn(outcome: &Outcome, plan: &Plan) {
    if outcome.lost > 0 {
        let larger = (plan.buffer_bytes >> 20).saturating_mul(4);
        out::note(&format!(
            "{} events were lost, so requests may be missing: record again with fairhead record --buffer {larger}",
            outcome.lost
        ));
    }
    match outcome.ended {
        Ended::Time => {}
        Ended::Full => out::note(&format!(
            "the file reached {} MiB after {:.1}s, where the recording ended; --size sets that",
            plan.file_bytes >> 20,
            outcome.time.as_secs_f64()
        )),
        Ended::Told => out::note(&format!("ended after {:.1}s", outcome.time.as_secs_f64())),
    }
    if outcome.own > 0 {
        out::note(&format!("{} requests of fairhead itself are left out", outcome.own));
    }
}

fn summarise(args: &RecordArgs, targets: &[Target], outcome: &Outcome) -> Result<(), CliError> {
    let shown = args.output.display().to_string();
    let (mut summary, mut tasks) = (Summary::default(), Tasks::default());
    if is_empty(&args.output) {
        out::note("no requests were made in this time");
        return Ok(());
    }
    let failed = |e: fairhead_trace::TraceError| CliError::Failed(e.to_string());
    let mut trace = open(&args.output).map_err(failed)?;
    for record in trace.by_ref() {
        let record = record.map_err(failed)?;
        summary.add(&record);
        tasks.add(&record);
    }
    let recorded =
        Recorded { file: &shown, targets, outcome, names: trace.names(), summary: &summary, tasks: &tasks };
    out::print(&render(&recorded, args.output_format, out::coloured(None)))
}

/// Whether nothing was recorded, or to a sink that cannot be read.
fn is_empty(file: &Path) -> bool {
    !file.metadata().is_ok_and(|m| m.is_file() && m.len() > 0)
}
