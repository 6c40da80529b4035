//! A job file from standard input: `fairhead run -`.

use std::io::{self, IsTerminal, Read as _};
use std::sync::OnceLock;

use fairhead_sim::job;

use crate::error::CliError;
use crate::out;
use crate::replay;

/// What stands for standard input where a job file is named.
pub(crate) const NAME: &str = "-";
/// What it is called in results and errors.
pub(crate) const SHOWN: &str = "stdin";

/// The bytes of standard input, which are read once: a question may look at its jobs twice.
pub(crate) fn job() -> Result<&'static [u8], CliError> {
    static READ: OnceLock<Vec<u8>> = OnceLock::new();
    if let Some(bytes) = READ.get() {
        return Ok(bytes);
    }
    let stdin = io::stdin();
    if stdin.is_terminal() {
        out::note("reading a job file from the terminal; Ctrl-D ends it");
    }
    let mut bytes = Vec::new();
    // One more than a job file may have, for the parser to refuse.
    let read = stdin.lock().take(job::BYTES_MAX as u64 + 1).read_to_end(&mut bytes);
    read.map_err(|e| CliError::Misuse(format!("cannot read standard input: {e}")))?;
    if replay::are_of_a_trace(&bytes) {
        let wrong =
            "stdin: is a trace in a pipe; a trace is read more than once, so write it to a file first";
        return Err(CliError::Misuse(wrong.to_owned()));
    }
    Ok(READ.get_or_init(|| bytes))
}
