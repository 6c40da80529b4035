//! What must hold, in three lanes: while working, before a change lands, at night.
//!
//! ```text
//!   cargo xtask test --quick [CRATE…]   what a change can break, by the crate graph: `quick`
//!   cargo xtask test [--all]            before a change lands; CI runs this
//!   cargo xtask test --nightly [STEP]   the rest; a name runs that step alone
//!
//!   BUILD ─► TESTS ─┬─► CLOCKS            CLOCKS: tests that ask for real time, one at a time
//!                   └─► LINT ──► BESIDE   at idle priority, in the time that these leave
//!   FETCH ─┬─► EARLY ──────────► BESIDE   the same, a second line: what needs no program of the tests first
//!          └─► GUEST                      the same: a virtual machine
//! ```
//!
//! The tests begin when all is built and fetched. What is beside them is compilers and a machine of virtual
//! time. Browsers and clusters of processes, which give up what does not answer, begin when the tests have
//! ended: till then the processors are used up, and what has idle priority stands still for minutes.
//!
//! Each step is a process of its own (`cargo xtask step NAME`), whose cost is measured (`cost`). One that
//! does not end is stopped after [`LIMIT`] or [`LIMIT_BESIDE`]. A step whose inputs are as they were when its
//! recorded result was made is not repeated (`records`); `--all` repeats it.
//!
//! Each step prints one line with its time as it ends; a failed one is followed by what its command said. The
//! last line counts tests: those that cargo ran, and one for each other step that failed or was skipped. A
//! test that says `skipped: <why>` counts as skipped, not as passed.

mod changed_line;
mod cost;
mod drawn;
mod list;
mod prepare;
mod programs;
mod quick;
mod records;
mod table;

pub(crate) use cost::as_wrapper;
pub(crate) use list::package_in_debian;
pub(crate) use records::record;
pub(crate) use table::print;

use crate::dist;
use crate::outcome::{Count, Outcome};
use list::{BESIDE, BUILD, CLOCKS, EARLY, FETCH, GUEST, LINT, Step, TESTS};
use std::ffi::OsStr;
use std::fmt;
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// The longest that a step of the middle lane may take, in seconds: a test that hangs must not take the
/// machine with it.
const LIMIT: &str = "1500";

/// The longest for a step beside others: at idle priority it may stand still for as long as they take.
const LIMIT_BESIDE: &str = "2400";

/// The variable that tells a step that it runs at night.
const NIGHTLY: &str = "FAIRHEAD_NIGHTLY";

/// The variable that tells a step to run although its inputs are as they were.
const ALL: &str = "FAIRHEAD_ALL";

/// `cargo xtask test …`
pub(crate) fn run(args: &[&str]) -> ExitCode {
    match args {
        [] => lane(&[]),
        ["--all"] => lane(&[(ALL, "1")]),
        ["--nightly"] => nightly(),
        ["--nightly", name] => only(name),
        ["--quick", crates @ ..] => quick::run(crates),
        [other, ..] => {
            eprintln!("test takes --all, --quick [CRATE…] or --nightly [STEP], not '{other}'");
            ExitCode::from(2)
        }
    }
}

/// The lane before a change lands. All steps run, also after one has failed.
fn lane(variables: &[(&str, &str)]) -> ExitCode {
    cost::forget();
    let [guest, early, lint, beside] = [(); 4].map(|()| AtomicUsize::new(0));
    let total = thread::scope(|scope| {
        let idle = |steps, next| scope.spawn(move || taken(steps, next, variables, true));
        let build = scope.spawn(|| in_order(BUILD, variables));
        let mut total = in_order(FETCH, variables);
        let guest = idle(GUEST, &guest);
        let early = idle(EARLY, &early);
        total.add(joined(build));
        total.add(in_order(TESTS, variables));
        let lint = idle(LINT, &lint);
        let [first, second] = [lint, early].map(|before| {
            let beside = &beside;
            scope.spawn(move || {
                let mut count = joined(before);
                count.add(taken(BESIDE, beside, variables, true));
                count
            })
        });
        total.add(in_order(CLOCKS, variables));
        [guest, first, second].into_iter().for_each(|line| total.add(joined(line)));
        total
    });
    ended(total)
}

/// What a line of steps counted.
fn joined(line: thread::ScopedJoinHandle<'_, Count>) -> Count {
    line.join().expect("a step that fails says so")
}

/// All that there is.
fn nightly() -> ExitCode {
    let variables = [(ALL, "1"), (NIGHTLY, "1")];
    cost::forget();
    let mut total = Count::default();
    for steps in [FETCH, BUILD, TESTS, GUEST, EARLY, LINT, BESIDE, CLOCKS, list::NIGHTLY] {
        total.add(in_order(steps, &variables));
    }
    ended(total)
}

/// One step as at night, with what it needs.
fn only(name: &str) -> ExitCode {
    let Some(step) = list::find(name) else { return no_step(name) };
    let variables = [(ALL, "1"), (NIGHTLY, "1")];
    let mut total = in_order(FETCH, &variables);
    total.add(in_order(std::slice::from_ref(step), &variables));
    ended(total)
}

fn no_step(name: &str) -> ExitCode {
    eprintln!("no step '{name}'; cargo xtask test prints the names as it goes");
    ExitCode::from(2)
}

fn ended(total: Count) -> ExitCode {
    println!("{total}");
    if total.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs steps one after another. Returns how many tests and steps passed, failed and were skipped.
fn in_order(steps: &[Step], variables: &[(&str, &str)]) -> Count {
    taken(steps, &AtomicUsize::new(0), variables, false)
}

/// Runs steps, each as a process, from the one with the index `next` on. Others that count on with the same
/// `next` take their steps from the same list. Returns how many tests and steps passed, failed and were
/// skipped.
fn taken(steps: &[Step], next: &AtomicUsize, variables: &[(&str, &str)], is_beside: bool) -> Count {
    let mut total = Count::default();
    while let Some(step) = steps.get(next.fetch_add(1, Ordering::Relaxed)) {
        let mut process = process(step.name, variables, is_beside);
        let status = process.status();
        match cost::read(step.name) {
            Some(row) => total.add(row.count),
            None => {
                let how = status.map_or_else(|e| e.to_string(), |status| status.to_string());
                let limit = limit(is_beside);
                line("FAILED", step.name, 0.0, &format!("ended by itself or after {limit} s: {how}"));
                total.fail();
            }
        }
    }
    total
}

const fn limit(is_beside: bool) -> &'static str {
    if is_beside { LIMIT_BESIDE } else { LIMIT }
}

/// The process of a step: at idle priority if it runs beside others, and ended after its time. A night has no
/// limit.
fn process(name: &str, variables: &[(&str, &str)], is_beside: bool) -> Command {
    let this = std::env::current_exe().unwrap_or_else(|_| "xtask".into());
    let has_limit = !variables.iter().any(|(name, _)| *name == NIGHTLY) && crate::shell::exists("timeout");
    let is_idle = is_beside && crate::shell::exists("chrt");
    let mut words: Vec<&OsStr> = Vec::new();
    if has_limit {
        // It ends the whole group of its step, and itself with this process.
        if crate::shell::exists("setpriv") {
            words.extend(["setpriv", "--pdeathsig", "TERM"].map(OsStr::new));
        }
        words.extend(["timeout", "--kill-after=10", limit(is_beside)].map(OsStr::new));
    }
    if is_idle {
        words.extend(["chrt", "--idle", "0"].map(OsStr::new));
    }
    words.extend([this.as_os_str(), OsStr::new("step"), OsStr::new(name)]);
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).envs(variables.iter().copied());
    // The tests have built it. To build it by itself would build some crates again, with other features.
    let program = dist::target().join("sim/fairhead");
    if is_beside && program.exists() {
        command.env(dist::PROGRAM, program);
    }
    cost::watch_compilers(name, &mut command);
    command
}

/// `cargo xtask step NAME`: one step, in this process.
pub(crate) fn step(name: &str) -> ExitCode {
    let Some(step) = list::find(name) else { return no_step(name) };
    let start = cost::now();
    let is_kept = !step.inputs.is_empty() || list::is_nightly(step);
    let state = if is_kept { records::state(step.inputs) } else { String::new() };
    let known = if std::env::var_os(ALL).is_none() { records::unchanged(name, step.inputs) } else { None };
    let is_known = known.is_some();
    let outcome = known.map_or_else(step.run, |result| Ok(Outcome::Passed(result)));
    let (verdict, count, note) = match outcome {
        Ok(Outcome::Tests(count)) if count.failed == 0 => ("ok", count, count.to_string()),
        Ok(Outcome::Tests(count)) => ("FAILED", count, count.to_string()),
        Ok(Outcome::Passed(note)) => ("ok", Count::default(), note),
        Ok(Outcome::Skipped(why)) => {
            ("skipped", Count { skipped: 1, ..Count::default() }, format!("skipped: {why}"))
        }
        Err(said) => {
            eprintln!("{said}");
            ("FAILED", Count { failed: 1, ..Count::default() }, String::new())
        }
    };
    line(verdict, name, start.elapsed().as_secs_f64(), &note);
    let state = if is_known { "" } else { &state };
    if let Err(said) = cost::write(name, start.elapsed(), count, &note, state) {
        eprintln!("{said}");
        return ExitCode::FAILURE;
    }
    if count.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn line(verdict: &str, name: &str, seconds: f64, note: &dyn fmt::Display) {
    println!("{verdict:<7} {name:<25} {seconds:>6.1} s  {note}");
}
