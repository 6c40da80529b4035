//! `fairhead`: parse, call, print.
//!
//! ```text
//! argv ─► args (what was written) ─► plan (what it means, or one line why not) ─┬► sim ─► output (table, JSON, CSV)
//!                                                                              └► live: until it is told to stop
//! ```
//!
//! No logic worth testing on its own lives here. Exit codes: 0 done, 1 failed, 2 misuse; a file that is named
//! and is missing or malformed is misuse. Errors are one line on stderr that says what is wrong and what
//! would be right. Results go to stdout or the file of `-o`; a reader that closes the pipe early ends the
//! program quietly.

mod advise;
mod apply;
mod arena;
mod args;
mod calibrate;
mod confine;
mod conform;
mod control;
mod doctor;
mod emulate;
mod error;
mod files;
mod ladder;
mod list;
mod memory;
mod mount;
mod new_scheduler;
mod out;
mod output;
mod packaging;
mod pipe;
mod plan;
mod record;
mod recordings;
mod replay;
mod replay_live;
mod reproduce;
mod resume;
mod run;
mod schedulers;
mod serve;
mod share;
mod show;
mod sweep;
mod top;
mod trace;
mod try_disk;
mod validate;
mod welcome;
mod workloads;

use std::process::ExitCode;

use args::{Cli, Command};
use error::{CliError, fail};

fn main() -> ExitCode {
    let cli = match args::parse(std::env::args_os()) {
        Ok(cli) => cli,
        Err(answer) => return answer,
    };
    if let Some(ended) = schedulers::in_child(&cli) {
        return ended;
    }
    // These listen for Ctrl-C themselves: in a thread, which must not be there before they are confined.
    // A watchdog ignores it.
    let listens = matches!(cli.command, Some(Command::Emulate(_) | Command::Mount(_) | Command::Serve(_)));
    if !listens && !matches!(cli.command, Some(Command::PutBack(_))) {
        end_quietly_on_ctrl_c();
    }
    match run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => fail(&e),
    }
}

fn run(cli: Cli) -> Result<(), CliError> {
    let Some(command) = cli.command else { return welcome::welcome(cli.all) };
    match command {
        Command::Run(args) => run::run(&args.with_fios_output()),
        Command::Advise(args) => advise::advise(&args),
        Command::Sweep(args) => sweep::sweep(&args),
        Command::Arena(args) => arena::arena(&args),
        Command::Ladder(args) => ladder::ladder(&args),
        Command::Reproduce(args) => reproduce::reproduce(&args),
        Command::Trace(args) => trace::trace(&args),
        Command::Conform(args) => conform::conform(&args),
        Command::Doctor(args) => doctor::doctor(&args),
        Command::Record(args) => record::record(&args),
        Command::Try(args) => try_disk::try_disk(&args),
        Command::Apply(args) => apply::apply(&args),
        Command::PutBack(args) => try_disk::put_back(&args),
        Command::Serve(args) => serve::serve(&args),
        Command::ReplayLive(args) => replay_live::replay_live(&args),
        Command::Emulate(args) => emulate::emulate(&args),
        Command::Mount(args) => mount::mount(&args),
        Command::Ctl(args) => control::ctl(&args),
        Command::Top(args) => top::top(&args),
        Command::Calibrate(args) => calibrate::calibrate(&args),
        Command::Validate(args) => validate::validate(&args),
        Command::NewScheduler(args) => new_scheduler::new_scheduler(&args),
        Command::List(args) => list::list(args.what),
        Command::Show(args) => show::show(&args.name),
        Command::Completions(args) => packaging::completions(&args),
        Command::Man(args) => packaging::man(&args),
    }
}

/// What shells expect of a program that SIGINT has ended.
pub(crate) const EXIT_INTERRUPTED: i32 = 128 + 2;

/// Ctrl-C ends the run at once, with the progress bar wiped and nothing half-written: results are written
/// when complete. A server is asked to end instead, and does so by itself. A command with `--resume` finishes
/// its current runs, and a second Ctrl-C ends it. SIGTERM does the same.
pub(crate) fn end_quietly_on_ctrl_c() {
    // Without a handler the default action does nearly the same, so failing to set one is no error.
    let _ = ctrlc::set_handler(|| {
        if serve::end() || resume::end() || record::end() || try_disk::end() {
            return;
        }
        out::wipe_progress();
        top::restore_before_exit();
        out::note("interrupted");
        out::exit_without_parts(EXIT_INTERRUPTED);
    });
}
