//! `fairhead completions SHELL` and `fairhead man [DIR]`: what a package has beside the program, made by the
//! program itself, so that they always fit each other.

use clap::builder::PossibleValuesParser;
use clap::{Arg, Command, CommandFactory};
use fairhead_device::preset_names;
use std::path::Path;

use crate::args::{Cli, CompletionsArgs, ManArgs};
use crate::error::CliError;
use crate::out;
use fairhead_lab::schedulers::catalogue;

/// The script for a shell, to stdout.
pub(crate) fn completions(args: &CompletionsArgs) -> Result<(), CliError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut with_names(Cli::command()), "fairhead", &mut script);
    out::print(&String::from_utf8_lossy(&script))
}

/// Returns the commands with lists of the built-in names at the arguments for schedulers and disks: shells
/// offer those.
fn with_names(command: Command) -> Command {
    command.mut_args(with_names_of).mut_subcommands(with_names)
}

fn with_names_of(arg: Arg) -> Arg {
    let is_disk =
        arg.get_value_names().is_some_and(|names| names.iter().any(|n| n.starts_with("PRESET|FILE")));
    match arg.get_id().as_str() {
        "sched" | "against" => arg.value_parser(PossibleValuesParser::new(catalogue().names())),
        _ if is_disk => arg.value_parser(PossibleValuesParser::new(preset_names())),
        _ => arg,
    }
}

/// The page of the program to stdout, or all pages into a folder.
pub(crate) fn man(args: &ManArgs) -> Result<(), CliError> {
    match &args.folder {
        Some(folder) if folder.is_file() => Err(CliError::Failed(format!(
            "cannot write manual pages to '{}': it is a file; name a folder",
            folder.display()
        ))),
        Some(folder) => write_all(folder).map_err(|e| {
            CliError::Failed(format!("cannot write manual pages to '{}': {e}", folder.display()))
        }),
        None => {
            let mut page = Vec::new();
            let rendered = clap_mangen::Man::new(Cli::command()).render(&mut page);
            rendered.map_err(|e| CliError::Failed(format!("cannot make the manual page: {e}")))?;
            out::print(&String::from_utf8_lossy(&page))
        }
    }
}

fn write_all(folder: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    clap_mangen::generate_to(Cli::command(), folder)
}
