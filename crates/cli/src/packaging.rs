//! `fairhead completions SHELL` and `fairhead man [DIR]`: what a package has beside the program, made by the
//! program itself, so that they always fit each other.

use clap::CommandFactory;
use std::path::Path;

use crate::args::{Cli, CompletionsArgs, ManArgs};
use crate::error::CliError;
use crate::out;

/// The script for a shell, to stdout.
pub(crate) fn completions(args: &CompletionsArgs) -> Result<(), CliError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "fairhead", &mut script);
    out::print(&String::from_utf8_lossy(&script))
}

/// The page of the program to stdout, or all pages into a folder.
pub(crate) fn man(args: &ManArgs) -> Result<(), CliError> {
    match &args.folder {
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
