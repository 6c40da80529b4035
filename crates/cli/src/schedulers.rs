//! The schedulers that can be named on the command line: those that `fairhead_lab` knows, and libraries.
//!
//! [`choose_scheduler`] is where every name of a scheduler is looked up. A file's name is a library, which
//! the commands of the lab load: [`in_child`] has them do that in a child process.

use fairhead_core::sched::any::AnyConfig;
use fairhead_core::sched::catalogue::Named;
use fairhead_core::sched::outside::{Config, Factory};
use fairhead_lab::schedulers::{self, catalogue};
use fairhead_plugin::{Verdict, is_library, is_watched, open, supervise};
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use crate::args::{Cli, Command};
use crate::error::{CliError, fail};
use crate::out;

/// Returns a scheduler by its name, or that of a library; `none` and `noop` are the same.
pub(crate) fn choose_scheduler(name: &str) -> Result<Named, CliError> {
    if is_library(name) { of_library(name) } else { choose_linked(name) }
}

/// Returns a scheduler by its name for a server, with the tunables that it has there by default. What a
/// library does wrong would end a server.
pub(crate) fn choose_for_live(name: &str) -> Result<Named, CliError> {
    if is_library(name) {
        return Err(CliError::Misuse(format!(
            "'{name}': schedulers from libraries run in the lab only (run, advise, sweep, show), because a crash of theirs would end a server"
        )));
    }
    choose_linked(name).map(|named| Named { config: named.config.live(), ..named })
}

/// Loads a library, or finds the one that is loaded.
fn of_library(path: &str) -> Result<Named, CliError> {
    if !is_watched() {
        return Err(CliError::Failed(format!("'{path}': this command loads no libraries")));
    }
    let plugin = open(path).map_err(|e| CliError::Misuse(e.to_string()))?;
    let misuse =
        |what: &dyn std::fmt::Display| CliError::Misuse(format!("scheduler library '{path}': {what}"));
    if catalogue().outside().any(|known| known.name == plugin.name()) {
        return Err(misuse(&format!(
            "'{}' is a scheduler that is linked in; name yours differently",
            plugin.name()
        )));
    }
    let config = Config::of(plugin).map_err(|unfit| misuse(&unfit))?;
    Ok(Named { name: plugin.name(), about: plugin.about(), config: AnyConfig::Outside(config) })
}

/// Whether the command line names a library where the command loads one.
fn names_library(cli: &Cli) -> bool {
    let any = |names: &[String]| names.iter().any(|name| is_library(name.trim()));
    match &cli.command {
        Some(Command::Run(args)) => any(&args.sched),
        Some(Command::Sweep(args)) => any(&args.sched),
        Some(Command::Advise(args)) => any(&args.sched) || args.against.as_deref().is_some_and(is_library),
        Some(Command::Show(args)) => args.name.ends_with(".so"),
        _ => false,
    }
}

/// The recordings that the command writes while it runs: after a crash of the child only its parent can
/// remove what there is of them. One that another process writes at this moment is not among them.
fn recordings(cli: &Cli) -> Vec<PathBuf> {
    let Some(Command::Run(args)) = &cli.command else { return Vec::new() };
    args.record.files().map(out::part_of).filter(|part| !part.exists()).collect()
}

/// Runs the command in a child process if it loads a library, and returns how that ended. In the child, and
/// for a command that loads none, it returns nothing: go on.
pub(crate) fn in_child(cli: &Cli) -> Option<ExitCode> {
    if !names_library(cli) {
        return None;
    }
    if is_watched() {
        fairhead_plugin::on_fault(end_by_fault);
        let watched = fairhead_plugin::watch();
        return watched.err().map(|e| fail(&CliError::Failed(format!("cannot watch libraries: {e}"))));
    }
    let parts = recordings(cli);
    Some(match supervise(std::env::args_os()) {
        Ok(Verdict::Exit(code)) => ExitCode::from(code),
        Ok(Verdict::Broken(line)) => {
            // The bar of the child may still be there.
            if io::stderr().is_terminal() {
                let _ = write!(io::stderr(), "\r\x1b[2K");
            }
            out::remove_parts(&parts);
            fail(&CliError::Failed(line))
        }
        Err(e) => fail(&CliError::Failed(format!("cannot start a process for libraries: {e}"))),
    })
}

/// Ends the child: a library broke a rule.
fn end_by_fault(line: &str) -> ! {
    out::wipe_progress();
    fail(&CliError::Failed(line.to_owned()));
    out::exit_without_parts(1)
}

/// Returns a scheduler that is linked into the program.
fn choose_linked(name: &str) -> Result<Named, CliError> {
    Ok(schedulers::choose_scheduler(name)?)
}

/// Whether tunables that are set say how long the disk idles: what a user sets wins over the bound that live
/// disks have.
pub(crate) fn sets_idling(set: &[String]) -> bool {
    set.iter().any(|text| {
        let name = text.split('=').next().unwrap_or_default();
        matches!(name.rsplit('.').next(), Some("slice_idle" | "strict_guarantees"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_servers_bfq_has_on_what_is_our_own_and_the_labs_has_not() {
        for own in ["streams", "ncq_protection", "repairs"] {
            assert_eq!(choose_for_live("bfq").unwrap().config.get(own), Some(1), "{own}");
            assert_eq!(choose_scheduler("bfq").unwrap().config.get(own), Some(0), "{own}");
        }
        assert_eq!(choose_for_live("bfq-v8").unwrap(), choose_scheduler("bfq-v8").unwrap());
    }

    #[test]
    fn libraries_are_for_the_lab() {
        let said = choose_for_live("./libmine.so").unwrap_err().to_string();
        assert!(said.contains("'./libmine.so'") && said.contains("lab only"), "{said}");
        assert!(choose_scheduler("./libmine.so").unwrap_err().to_string().contains("loads no libraries"));
        let parse = |argv: &[&str]| crate::args::parse(argv.iter().map(Into::into)).unwrap();
        assert!(names_library(&parse(&["fairhead", "run", "--sched", "bfq, ./libmine.so"])));
        assert!(names_library(&parse(&["fairhead", "advise", "database", "--against", "libmine.so"])));
        assert!(!names_library(&parse(&["fairhead", "show", "./disk.toml"])));
        assert!(!names_library(&parse(&["fairhead", "run", "--sched", "cfq-2.6.10,deadline+groups"])));
    }
}
