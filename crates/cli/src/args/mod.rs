//! What can be written on the command line. Parsing only: what the words mean is settled in `plan`.

mod arena;
mod common;
mod help;
mod lab;
mod live;
mod machine;
mod mistakes;
mod recorded;

pub(crate) use arena::{ArenaArgs, ArenaFormat};
pub(crate) use common::{DISK, Format, ReportFormat, SweepFormat, TableFormat};
pub(crate) use lab::{
    AdviseArgs, Goal, LadderArgs, RecordingArgs, ReplayArgs, ReplayFit, ReplayMode, ReproduceArgs, RunArgs,
    SweepArgs,
};
pub(crate) use live::{
    ControlArgs, CtlArgs, EmulateArgs, MountArgs, ReplayLiveArgs, ServeArgs, TlsArg, TopArgs,
};
pub(crate) use machine::{ApplyArgs, DoctorArgs, PutBackArgs, RecordArgs, TryArgs};
pub(crate) use recorded::{CalibrateArgs, ConformArgs, TraceArgs, TraceTarget, ValidateArgs};

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::error::{CliError, fail};

/// Compare disk schedulers: which one, with which tunables, suits my workload on my disk, and why.
#[derive(Debug, Parser)]
#[command(
    name = "fairhead",
    version,
    max_term_width = 100,
    disable_help_subcommand = true,
    args_conflicts_with_subcommands = true
)]
#[command(
    after_help = "Without a command it draws how long a program takes to start beside ten readers, by \
        scheduler.\n\nfairhead help COMMAND shows the options of a command. Pages named docs/… are in \
        Fairhead's repository, and in /usr/share/doc/fairhead of its package.\n\nExit codes: 0 success; 1 \
        failure; 2 misuse: the command line is wrong, or a file that it names is missing or malformed."
)]
pub(crate) struct Cli {
    /// Without a command: a table of the built-in load under every scheduler, instead of the picture.
    #[arg(long)]
    pub(crate) all: bool,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Simulate a fio job file or a trace under one or several schedulers and compare the results.
    Run(RunArgs),
    /// Find the best scheduler and tunables for a job on a disk by many simulations, and explain the choice.
    Advise(AdviseArgs),
    /// Simulate every combination of schedulers, tunables, disks and seeds, and write a row of figures for
    /// each.
    Sweep(SweepArgs),
    /// Run many loads on many disks under several schedulers, and report how far each is from the best.
    Arena(ArenaArgs),
    /// Turn BFQ's heuristics on one by one and report what each gains.
    Ladder(LadderArgs),
    /// Simulate published measurements and compare the results with them, number by number.
    Reproduce(ReproduceArgs),
    /// Describe a recorded block trace, or convert it to another format.
    Trace(TraceArgs),
    /// Replay a kernel's log of its scheduler into Fairhead's, and list where the two decide differently.
    Conform(ConformArgs),
    /// Replay the recorded requests of a drive through a disk model, and report the error of its response
    /// times.
    Validate(ValidateArgs),
    /// Measure a real disk, without changing its data, and fit a disk model to it.
    Calibrate(CalibrateArgs),
    /// Look at the disks of this machine: how they are set, who set them, and what is wrong with that.
    Doctor(DoctorArgs),
    /// Record what the disks of this machine do, to a file that `run`, `advise` and `trace` read.
    Record(RecordArgs),
    /// Compare two schedulers on a disk of this machine under its own load, in turns, and put the present one
    /// back.
    Try(TryArgs),
    /// Set the scheduler of one disk of this machine for good: now, and by a udev rule for it alone.
    Apply(ApplyArgs),
    /// Put a disk's settings back when `try` ends; `try` starts this itself.
    #[command(hide = true)]
    PutBack(PutBackArgs),
    /// Serve files as block devices over NBD, with scheduling, weights and limits for each.
    Serve(ServeArgs),
    /// Replay a recording of `serve --record` or `mount --record`, and check that every decision is the same.
    ReplayLive(ReplayLiveArgs),
    /// Mount a file that is as slow as a given disk, in real time, for any program or a loop device.
    Emulate(EmulateArgs),
    /// Mount a folder so that its reads and writes are scheduled by thread, I/O priority and cgroup.
    Mount(MountArgs),
    /// Read the statistics of a running `serve` or `mount`, or change its groups, scheduler, tunables or
    /// depth.
    Ctl(CtlArgs),
    /// Show the share of each group of a running `serve` or `mount`, once per interval.
    Top(TopArgs),
    /// Write a folder with a scheduler of your own, in Rust or C: it builds, and its tests run.
    NewScheduler(NewSchedulerArgs),
    /// List the disks, schedulers or workloads that are built in.
    List(ListArgs),
    /// Show the tunables of a scheduler, the description of a disk or the job file of a workload.
    Show(ShowArgs),
    /// Print a completion script for a shell.
    Completions(CompletionsArgs),
    /// Print the manual page, or write a page for each command into a folder.
    Man(ManArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// What to list.
    pub(crate) what: Listed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Listed {
    Disks,
    Schedulers,
    Workloads,
}

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// A scheduler, disk or workload, a library with a scheduler (.so), or a disk file (TOML, or DiskSim's
    /// .diskspecs or .parv), which is printed as TOML.
    pub(crate) name: String,
}

#[derive(Debug, Args)]
pub(crate) struct NewSchedulerArgs {
    /// The scheduler's name, or a path that ends with it: a new folder. Small letters, digits, - and _.
    #[arg(value_name = "NAME")]
    pub(crate) folder: PathBuf,
    /// The language.
    #[arg(long, value_enum, default_value_t = Language::Rust)]
    pub(crate) lang: Language,
    /// A clone of Fairhead's repository, whose crates the scheduler uses. Default: the one that the new
    /// folder is in; outside of any, the published crates.
    #[arg(long, value_name = "DIR")]
    pub(crate) fairhead: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Language {
    Rust,
    C,
}

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell.
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Write fairhead.1 and a page for each command into this folder. Default: print fairhead.1.
    #[arg(value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,
}

/// Parses the command line. On `--help` or an error it prints the text and returns the exit code.
pub(crate) fn parse(argv: impl IntoIterator<Item = OsString>) -> Result<Cli, ExitCode> {
    let argv = help::as_option(with_pasted_line(argv.into_iter().collect()));
    Cli::try_parse_from(&argv).map_err(|e| match e.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            help::print(&e);
            ExitCode::SUCCESS
        }
        _ => fail(&CliError::Misuse(mistakes::explain(&e, &argv))),
    })
}

/// The arguments with `--` in front of a line of fio's that was pasted behind `run`.
fn with_pasted_line(mut argv: Vec<OsString>) -> Vec<OsString> {
    let is_run = argv.get(1).is_some_and(|word| word == "run");
    let before = argv.iter().take_while(|word| *word != "--");
    let fio = before.clone().position(|word| word == "fio").filter(|at| is_run && *at > 1);
    if let Some(at) = fio
        && argv.get(at + 1).is_some_and(|next| next.to_string_lossy().starts_with('-'))
    {
        argv.insert(at, "--".into());
    }
    argv
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    pub(super) fn refused(argv: &[&str]) -> String {
        let argv: Vec<OsString> = std::iter::once(&"fairhead").chain(argv).map(OsString::from).collect();
        mistakes::explain(&Cli::try_parse_from(&argv).unwrap_err(), &argv)
    }

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_flag_of_the_last_commands() {
        let parse = |argv: &[&str]| Cli::try_parse_from([&["fairhead"], argv].concat()).unwrap().command;
        let shell = |name| match parse(&["completions", name]) {
            Some(Command::Completions(args)) => args.shell,
            other => panic!("{other:?}"),
        };
        assert_eq!((shell("bash"), shell("fish")), (clap_complete::Shell::Bash, clap_complete::Shell::Fish));
        let folder = |argv| match parse(argv) {
            Some(Command::Man(args)) => args.folder,
            other => panic!("{other:?}"),
        };
        assert_eq!((folder(&["man"]), folder(&["man", "x"])), (None, Some("x".into())));
        assert!(refused(&["completions", "tcsh"]).contains("bash"));
        let validate = |argv: &[&str]| match parse(&[&["validate", "d", "--trace", "t"], argv].concat()) {
            Some(Command::Validate(args)) => args,
            other => panic!("{other:?}"),
        };
        assert_eq!(validate(&[]).bus_rate, None);
        let all = validate(&["--bus-rate", "10MB/s", "--output-format", "json", "-o", "x"]);
        assert_eq!((all.bus_rate.as_deref(), all.output.file), (Some("10MB/s"), Some("x".into())));
        assert_eq!(all.output.format, ReportFormat::Json);
    }

    #[test]
    fn mistakes_are_one_line_with_the_nearest_word() {
        assert_eq!(refused(&["rnu"]), "unrecognized subcommand 'rnu'; did you mean 'run'?");
        assert_eq!(refused(&["advice"]), "unrecognized subcommand 'advice'; did you mean 'advise'?");
        assert_eq!(refused(&["simulate"]), "unrecognized subcommand 'simulate'; did you mean 'run'?");
        for (argv, line) in [
            (&["run", "--runtime", "-5s"][..], "--runtime -5s: a value below zero has no meaning here"),
            (&["record", "-t", "-1"], "-t -1: a value below zero has no meaning here"),
            (&["run", "-5s"], "unexpected argument '-5' found"),
            (&["doctor", "--quick", "-5"], "unexpected argument '-5' found"),
            (&["run", "--json"], "unexpected argument '--json' found; did you mean '--output-format json'?"),
            (&["run", "--time", "5s"], "unexpected argument '--time' found; did you mean '--runtime'?"),
            (&["run", "-disk", "nvme"], "unexpected argument '-d' found; did you mean '--disk'?"),
            (
                &["run", "x", "--sched", "noop", "bfq"],
                "unexpected argument 'bfq' found; several values are one word with commas: --sched noop,bfq",
            ),
            (
                &["run", "x", "--sched=noop,", "bfq"],
                "unexpected argument 'bfq' found; several values are one word with commas: --sched noop,bfq",
            ),
            (&["version"], "unrecognized subcommand 'version'; did you mean '--version'?"),
            (
                &["run", "--threads", "many"],
                "invalid value 'many' for '--threads <N>': a whole number is needed",
            ),
            (
                &["apply", "sda"],
                "the following required arguments were not provided: [SCHEDULER] [NAME=VALUE]...",
            ),
            (
                &["list", "all"],
                "invalid value 'all' for '<WHAT>'; [possible values: disks, schedulers, workloads]",
            ),
        ] {
            assert_eq!(refused(argv), line);
        }
        assert_eq!(
            refused(&["run", "--shced", "noop"]),
            "unexpected argument '--shced' found; did you mean '--sched'?"
        );
        assert_eq!(
            refused(&["list", "disk"]),
            "invalid value 'disk' for '<WHAT>'; [possible values: disks, schedulers, workloads]; did you mean 'disks'?"
        );
        assert_eq!(refused(&["show"]), "the following required arguments were not provided: <NAME>");
        assert!(refused(&["run", "--threads", "0"]).contains("1..=1024"));
        assert!(
            refused(&["run", "--seed", "x"])
                .ends_with("a number from 0 to 18446744073709551615, decimal or 0x…")
        );
    }
}
