//! `fairhead replay-live`: what was decided live, decided again.

use std::fs::File;
use std::io::BufReader;

use fairhead_lab::schedulers::catalogue;
use fairhead_live::recording::replay;

use crate::args::ReplayLiveArgs;
use crate::error::CliError;
use crate::out;

/// Replays a recording, and fails if anything is decided differently.
pub(crate) fn replay_live(args: &ReplayLiveArgs) -> Result<(), CliError> {
    let name = args.recording.display();
    let file = File::open(&args.recording).map_err(|e| CliError::Misuse(format!("{name}: {e}")))?;
    let replayed =
        replay(BufReader::new(file), &catalogue()).map_err(|e| CliError::Misuse(format!("{name}: {e}")))?;
    if let Some(differs) = replayed.differs {
        return Err(CliError::Failed(format!("{name}: {differs}")));
    }
    let schedulers = match replayed.schedulers {
        1 => String::new(),
        n => format!(", {n} schedulers one after the other"),
    };
    out::print(&format!(
        "{} events{schedulers}: all {} decisions are the same\n",
        replayed.events, replayed.decisions
    ))
}
