//! Where results go: stdout or a file, in colour only on a terminal; and the progress bar.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::error::{CliError, one_line};

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
    complete(path, |mut file| file.write_all(text.as_bytes()))
}

/// Writes the results of a command to the file, or to stdout when there is none. If the file cannot be
/// written, the results go to stdout, so that the work was not for nothing, and the error comes back.
pub(crate) fn results(file: Option<&Path>, text: &str) -> Result<(), CliError> {
    let written = write(file, text);
    if file.is_some() && written.is_err() {
        print(text)?;
    }
    written
}

/// Has `make` write a file that appears complete or not at all.
pub(crate) fn complete(path: &Path, make: impl FnOnce(File) -> io::Result<()>) -> Result<(), CliError> {
    let cannot = |e| CliError::Failed(format!("cannot write '{}': {e}", path.display()));
    let (part, file) = Part::create(path).map_err(cannot)?;
    make(file).and_then(|()| part.finish()).map_err(cannot)
}

/// Files that are being written, for Ctrl-C to remove.
static PARTS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// A file that is being written under another name. Dropped before [`Part::finish`], it is removed.
struct Part {
    path: PathBuf,
    /// The name until it is complete; none for a pipe or device, which cannot be replaced.
    part: Option<PathBuf>,
}

impl Part {
    /// Begins; gives what to write to.
    fn create(path: &Path) -> io::Result<(Self, File)> {
        let special = is_special(path);
        // What a link leads to is replaced, not the link.
        let target = if special { None } else { path.canonicalize().ok().filter(|_| path.is_symlink()) };
        let path = target.as_deref().unwrap_or(path);
        let part = (!special).then(|| part_of(path));
        // Made under the lock: it cannot appear after Ctrl-C has removed what there is.
        let mut parts = PARTS.lock().unwrap_or_else(PoisonError::into_inner);
        let file = File::create(part.as_deref().unwrap_or(path))?;
        parts.extend(part.clone());
        Ok((Self { path: path.to_owned(), part }, file))
    }

    /// It is complete: it gets its name.
    fn finish(mut self) -> io::Result<()> {
        let Some(part) = &self.part else { return Ok(()) };
        let mut parts = PARTS.lock().unwrap_or_else(PoisonError::into_inner);
        std::fs::rename(part, &self.path)?;
        parts.retain(|p| p != part);
        self.part = None;
        Ok(())
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if let Some(part) = &self.part {
            let _ = std::fs::remove_file(part);
            PARTS.lock().unwrap_or_else(PoisonError::into_inner).retain(|p| p != part);
        }
    }
}

/// Whether a file is written to as it is: a pipe, a device, or an open file of this process such as
/// `/dev/stdout`, in place of which no other file may come.
pub(crate) fn is_special(path: &Path) -> bool {
    path.metadata().is_ok_and(|m| !m.is_file()) || is_handle(path)
}

/// Whether the path leads to an open file of this process. `/dev/stdout` is a link to such a path.
fn is_handle(path: &Path) -> bool {
    const LINKS_MAX: usize = 8;
    let mut at = path.to_owned();
    for _ in 0..LINKS_MAX {
        if at.starts_with("/proc") || at.starts_with("/dev/fd") {
            return true;
        }
        let Ok(target) = at.read_link() else { return false };
        at = at.parent().unwrap_or(Path::new("/")).join(target);
    }
    false
}

/// The name of a file while it is being written.
pub(crate) fn part_of(path: &Path) -> PathBuf {
    let mut part = path.as_os_str().to_owned();
    part.push(".part");
    PathBuf::from(part)
}

/// Removes files that another process, which is gone, has not completed.
pub(crate) fn remove_parts(parts: &[PathBuf]) {
    for part in parts {
        let _ = std::fs::remove_file(part);
    }
}

/// Ends the program at once, without the files that are not complete.
pub(crate) fn exit_without_parts(code: i32) -> ! {
    // Kept until the end: nothing is begun or completed any more.
    let parts = PARTS.lock().unwrap_or_else(PoisonError::into_inner);
    for part in parts.iter() {
        let _ = std::fs::remove_file(part);
    }
    std::process::exit(code)
}

/// A file that is written bit by bit, or the terminal (`-`). The file appears complete, at
/// [`Stream::finish`], or not at all.
pub(crate) struct Stream {
    part: Option<Part>,
}

impl Stream {
    /// Begins; gives what to write to.
    pub(crate) fn create(path: &Path) -> Result<(Self, Box<dyn Write>), CliError> {
        if path.as_os_str() == "-" {
            return Ok((Self { part: None }, Box::new(BufWriter::new(io::stdout()))));
        }
        let part = Part::create(path);
        let (part, file) =
            part.map_err(|e| CliError::Failed(format!("cannot write '{}': {e}", path.display())))?;
        Ok((Self { part: Some(part) }, Box::new(BufWriter::new(file))))
    }

    /// Everything was written, or could not be.
    pub(crate) fn finish(self, written: io::Result<()>) -> Result<(), CliError> {
        let Some(part) = self.part else {
            return written.map_err(|e| match e.kind() {
                io::ErrorKind::BrokenPipe => CliError::Closed,
                _ => CliError::Failed(format!("cannot write to the terminal: {e}")),
            });
        };
        let path = part.path.clone();
        let done = written.and_then(|()| part.finish());
        done.map_err(|e| CliError::Failed(format!("cannot write '{}': {e}", path.display())))
    }
}

/// Prints a line for the user beside the results. An error is ignored: a server continues without a reader.
pub(crate) fn note(text: &str) {
    let _ = writeln!(io::stderr(), "fairhead: {}", one_line(text));
}

/// Whether to use colour: on a terminal, unless `NO_COLOR` is set to anything (<https://no-color.org>).
pub(crate) fn coloured(file: Option<&Path>) -> bool {
    file.is_none() && io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
}

/// How wide results may be: what COLUMNS says, or else the terminal, if they go there.
pub(crate) fn columns(file: Option<&Path>) -> Option<usize> {
    if file.is_some() {
        return None;
    }
    let said = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok()).filter(|n| *n > 0);
    let terminal = || ratatui::crossterm::terminal::size().ok().map(|(columns, _)| usize::from(columns));
    said.or_else(|| io::stdout().is_terminal().then(terminal).flatten())
}

/// A colour of the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Colour {
    /// The terminal's own.
    Plain,
    /// For what is best.
    Good,
}

/// What stdout can show.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Look {
    /// Whether colours are wanted.
    pub(crate) is_coloured: bool,
    /// Whether the characters of Unicode can be shown.
    pub(crate) is_unicode: bool,
}

impl Look {
    /// What to write before and after a coloured text.
    pub(crate) fn paint(&self, colour: Colour) -> (&'static str, &'static str) {
        match colour {
            Colour::Good if self.is_coloured => ("\x1b[32m", "\x1b[0m"),
            _ => ("", ""),
        }
    }
}

/// What stdout can show: by the terminal's kind and the language that the environment names.
pub(crate) fn look() -> Look {
    let set = |name: &str| std::env::var(name).ok().filter(|v| !v.is_empty());
    let language = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(set).unwrap_or_default();
    let is_dumb = set("TERM").is_some_and(|t| t == "dumb");
    let is_utf8 = ["utf-8", "utf8"].iter().any(|u| language.to_ascii_lowercase().ends_with(u));
    Look { is_coloured: coloured(None) && !is_dumb, is_unicode: is_utf8 && !is_dumb }
}

/// The bar on the terminal, for Ctrl-C to wipe.
static BAR: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// How far a long run has come; on stderr, if that is a terminal, and only once it takes longer than a
/// second.
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

    /// As [`Progress::new`], for work in equal pieces of which some have been done before: says how long the
    /// rest takes.
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

    /// As [`Progress::new`], for a pipe whose length nothing tells: says how many bytes have been read.
    pub(crate) fn piped() -> Self {
        let progress = Self::new("reading the trace");
        if let Ok(style) = ProgressStyle::with_template("{msg} {binary_bytes}") {
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
