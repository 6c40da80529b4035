//! Where results go: stdout or a file, in colour only where someone looks; and the progress bar.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::error::CliError;

/// Writes `text` to stdout.
pub(crate) fn print(text: &str) -> Result<(), CliError> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|e| match e.kind() {
        io::ErrorKind::BrokenPipe => CliError::Closed,
        _ => CliError::Failed(format!("cannot write the results: {e}")),
    })
}

/// Writes `text` to the file, or to stdout when there is none. The file appears complete or not at all.
pub(crate) fn write(file: Option<&Path>, text: &str) -> Result<(), CliError> {
    let Some(path) = file else { return print(text) };
    complete(path, |part| std::fs::write(part, text))
}

/// Has `make` write a file that appears complete or not at all: it is given the path to write to.
pub(crate) fn complete(path: &Path, make: impl FnOnce(&Path) -> io::Result<()>) -> Result<(), CliError> {
    let mut part = path.as_os_str().to_owned();
    part.push(".part");
    let part = Path::new(&part);
    // A pipe or device cannot be replaced by a complete file.
    let special = path.metadata().is_ok_and(|m| !m.is_file());
    let result = if special { make(path) } else { make(part).and_then(|()| std::fs::rename(part, path)) };
    result.map_err(|e| {
        // It may never have been made.
        let _ = std::fs::remove_file(part);
        CliError::Failed(format!("cannot write '{}': {e}", path.display()))
    })
}

/// A file that is written bit by bit, or the terminal (`-`). The file appears complete, at [`Stream::finish`], or not at all.
pub(crate) struct Stream {
    /// The file, and where it is until it is complete.
    path: Option<(PathBuf, Option<PathBuf>)>,
}

impl Stream {
    /// Begins; gives what to write to.
    pub(crate) fn create(path: &Path) -> Result<(Self, Box<dyn Write>), CliError> {
        if path.as_os_str() == "-" {
            return Ok((Self { path: None }, Box::new(BufWriter::new(io::stdout()))));
        }
        // A pipe or device cannot be replaced by a complete file.
        let special = path.metadata().is_ok_and(|m| !m.is_file());
        let part = (!special).then(|| {
            let mut part = path.as_os_str().to_owned();
            part.push(".part");
            PathBuf::from(part)
        });
        let file = File::create(part.as_deref().unwrap_or(path));
        let file = file.map_err(|e| CliError::Failed(format!("cannot write '{}': {e}", path.display())))?;
        Ok((Self { path: Some((path.to_owned(), part)) }, Box::new(BufWriter::new(file))))
    }

    /// Everything was written, or could not be.
    pub(crate) fn finish(mut self, written: io::Result<()>) -> Result<(), CliError> {
        let Some((path, part)) = self.path.take() else {
            return written.map_err(|e| match e.kind() {
                io::ErrorKind::BrokenPipe => CliError::Closed,
                _ => CliError::Failed(format!("cannot write to the terminal: {e}")),
            });
        };
        let done = written.and_then(|()| part.as_ref().map_or(Ok(()), |part| std::fs::rename(part, &path)));
        done.map_err(|e| {
            let message = format!("cannot write '{}': {e}", path.display());
            self.path = Some((path, part));
            CliError::Failed(message)
        })
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if let Some((_, Some(part))) = &self.path {
            let _ = std::fs::remove_file(part);
        }
    }
}

/// A line for the user beside the results.
pub(crate) fn note(text: &str) {
    eprintln!("fairhead: {text}");
}

/// Whether to use colour: on a terminal, unless `NO_COLOR` is set to anything (<https://no-color.org>).
pub(crate) fn coloured(file: Option<&Path>) -> bool {
    file.is_none() && io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
}

/// The bar on the terminal, for Ctrl-C to wipe.
static BAR: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// How far a long run has come; on stderr, if that is a terminal, and only once it takes longer than a second.
pub(crate) struct Progress(ProgressBar);

/// A run that ends sooner needs no bar.
const BAR_AFTER: Duration = Duration::from_secs(1);

impl Progress {
    /// Nothing is done yet.
    pub(crate) fn new(what: &'static str) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        if let Ok(style) = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len}") {
            bar.set_style(style);
        }
        bar.set_message(what);
        Self(bar)
    }

    /// As [`Progress::new`], for work in equal pieces of which some have been done before: says how long the rest takes.
    pub(crate) fn counted(what: &'static str, before: usize, total: usize) -> Self {
        let progress = Self::new(what);
        if let Ok(style) = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len}, {eta} more") {
            progress.0.set_style(style);
        }
        progress.0.set_length(total as u64);
        progress.0.set_position(before.min(total) as u64);
        progress.0.reset_eta();
        progress
    }

    /// As [`Progress::new`], for work of which only an upper bound is known: says how long it takes at most.
    pub(crate) fn bounded(what: &'static str) -> Self {
        let progress = Self::new(what);
        if let Ok(style) = ProgressStyle::with_template("{msg} {wide_bar} at most {eta} more") {
            progress.0.set_style(style);
        }
        progress
    }

    /// As [`Progress::new`], for one long piece of work: says how long it will take.
    pub(crate) fn timed(what: &'static str) -> Self {
        let progress = Self::new(what);
        if let Ok(style) = ProgressStyle::with_template("{msg} {wide_bar} {percent}%, {eta} more") {
            progress.0.set_style(style);
        }
        progress
    }

    /// Says what is being done now.
    pub(crate) fn say(&self, what: String) {
        self.0.set_message(what);
    }

    /// `done` simulations of `total` are done. May be called from any thread.
    pub(crate) fn at(&self, done: usize, total: usize) {
        if self.0.is_hidden() && io::stderr().is_terminal() && self.0.elapsed() > BAR_AFTER {
            self.0.set_draw_target(ProgressDrawTarget::stderr());
            if let Ok(mut bar) = BAR.lock() {
                *bar = Some(self.0.clone());
            }
        }
        self.0.set_length(total as u64);
        self.0.set_position(done as u64);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// Removes the bar from the terminal, if there is one.
pub(crate) fn wipe_progress() {
    if let Ok(bar) = BAR.lock()
        && let Some(bar) = bar.as_ref()
    {
        bar.finish_and_clear();
    }
}
