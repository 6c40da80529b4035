//! What is read of pipes: `fairhead run -`, `/dev/stdin`, a fifo, `<(…)`.
//!
//! A pipe gives its bytes once, and a question may look at its jobs twice and runs them many times. So each
//! pipe is read once: a trace's requests are kept in a file without a name ([`Kept`]), a job file in memory.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Cursor, IsTerminal, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use fairhead_sim::job;
use fairhead_trace::Kept;

use crate::error::CliError;
use crate::files;
use crate::out::{self, Progress};
use crate::replay;

/// What stands for standard input where a job file is named.
pub(crate) const STDIN: &str = "-";
/// What it is called in results and errors.
pub(crate) const STDIN_SHOWN: &str = "stdin";

/// What was in a pipe.
#[derive(Clone)]
pub(crate) enum Piped {
    /// A trace.
    Trace(Arc<Kept>),
    /// Anything else: as many bytes as the largest job file has, and one more for its parser to refuse.
    Text(Vec<u8>),
}

/// Whether what is at the path can be read once only: standard input, a pipe, a terminal.
pub(crate) fn is_pipe(path: &Path) -> bool {
    let is_no_file = |m: std::fs::Metadata| !m.is_file() && !m.is_dir() && !m.file_type().is_block_device();
    path == Path::new(STDIN) || path.metadata().is_ok_and(is_no_file)
}

/// What is in the pipe, which is read when this is first called for it.
pub(crate) fn read(path: &Path) -> Result<Piped, CliError> {
    static READ: Mutex<BTreeMap<PathBuf, Piped>> = Mutex::new(BTreeMap::new());
    let mut all = READ.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(piped) = all.get(path) {
        return Ok(piped.clone());
    }
    let piped = if path == Path::new(STDIN) {
        if io::stdin().is_terminal() {
            out::note("reading a job file from the terminal; Ctrl-D ends it");
        }
        read_new(STDIN_SHOWN, io::stdin())
    } else {
        files::will_read(path);
        let cannot = |e| CliError::Misuse(format!("cannot read '{}': {e}", path.display()));
        read_new(&path.to_string_lossy(), File::open(path).map_err(cannot)?)
    }?;
    all.insert(path.to_owned(), piped.clone());
    Ok(piped)
}

fn read_new(name: &str, mut input: impl Read + 'static) -> Result<Piped, CliError> {
    let cannot = |e| CliError::Misuse(format!("cannot read '{name}': {e}"));
    let mut bytes = Vec::new();
    input.by_ref().take(replay::HEAD_BYTES).read_to_end(&mut bytes).map_err(cannot)?;
    if replay::begins_trace_in_pipe(&bytes) {
        let progress = Progress::piped();
        let shown = |n: u64| progress.at(usize::try_from(n).unwrap_or(usize::MAX), 0);
        let kept = Kept::of(name, Cursor::new(bytes).chain(input), &shown);
        return kept.map(|kept| Piped::Trace(Arc::new(kept))).map_err(|e| CliError::Misuse(e.to_string()));
    }
    let rest = (job::BYTES_MAX as u64 + 1).saturating_sub(bytes.len() as u64);
    input.take(rest).read_to_end(&mut bytes).map_err(cannot)?;
    Ok(Piped::Text(bytes))
}

/// The bytes of a pipe where a trace is of no use.
pub(crate) fn text(path: &Path) -> Result<Vec<u8>, CliError> {
    match read(path)? {
        Piped::Text(bytes) => Ok(bytes),
        Piped::Trace(kept) => {
            Err(CliError::Misuse(format!("{}: is a trace; a job file is expected here", kept.name())))
        }
    }
}

/// The trace of a pipe where nothing else is of use.
pub(crate) fn trace(path: &Path) -> Result<Arc<Kept>, CliError> {
    match read(path)? {
        Piped::Trace(kept) => Ok(kept),
        Piped::Text(bytes) => {
            // What it is not is what the reader of traces says.
            let name = if path == Path::new(STDIN) { STDIN_SHOWN.into() } else { path.to_string_lossy() };
            let kept = Kept::of(&name, Cursor::new(bytes), &|_| {});
            kept.map(Arc::new).map_err(|e| CliError::Misuse(e.to_string()))
        }
    }
}
