//! Flushes: of each file one at a time, for all who asked before it began.
//!
//! ```text
//!   asks 1 ──► begins, covers 1
//!   asks 2, asks 3                     wait: what they are about may have come after it began
//!              done ──► 1 hears it
//!              begins, covers 2 and 3
//! ```
//!
//! If one fails, data of any client may be lost, and the kernel reports that only once. The clients that wait
//! for the next flush fail with it, and every client that was connected then [gets the error](Flushes::news)
//! with its next flush. While a flush that was given up may still complete, flushes of its file fail.
//!
//! What it does not do: know its clients. `W` is a client that waits.

use crate::bio::{Errno, FileId};
use fairhead_core::units::Instant;
use std::collections::VecDeque;

#[derive(Debug)]
struct File<W> {
    /// When the running one is given up; `None` if never, or if it has been.
    gives_up: Option<Instant>,
    is_given_up: bool,
    is_running: bool,
    is_in_line: bool,
    /// The last failure, and when that was.
    failed: Option<(u64, Errno)>,
    /// The clients that wait for the running flush, and for the next.
    covered: Vec<W>,
    waiting: Vec<W>,
}

impl<W> Default for File<W> {
    fn default() -> Self {
        let (covered, waiting) = (Vec::new(), Vec::new());
        Self {
            gives_up: None,
            is_given_up: false,
            is_running: false,
            is_in_line: false,
            failed: None,
            covered,
            waiting,
        }
    }
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Flushes<W> {
    files: Vec<File<W>>,
    /// Files of which one is to begin.
    line: VecDeque<FileId>,
}

impl<W> Flushes<W> {
    pub(crate) const fn new() -> Self {
        Self { files: Vec::new(), line: VecDeque::new() }
    }

    fn of(&mut self, file: FileId) -> &mut File<W> {
        let index = file.0 as usize;
        if self.files.len() <= index {
            self.files.resize_with(index + 1, File::default);
        }
        &mut self.files[index]
    }

    /// Whether a flush of this file is running, or is to begin.
    pub(crate) fn knows(&self, file: FileId) -> bool {
        self.files.get(file.0 as usize).is_some_and(|f| f.is_running || f.is_in_line || !f.waiting.is_empty())
    }

    /// Asks for a flush of this file.
    ///
    /// # Errors
    /// Returns `who` if a flush that was given up may still complete.
    pub(crate) fn ask(&mut self, file: FileId, who: W) -> Result<(), W> {
        let f = self.of(file);
        if f.is_given_up {
            return Err(who);
        }
        f.waiting.push(who);
        self.line_up(file);
        Ok(())
    }

    fn line_up(&mut self, file: FileId) {
        let f = self.of(file);
        if !f.is_running && !f.is_in_line && !f.waiting.is_empty() {
            f.is_in_line = true;
            self.line.push_back(file);
        }
    }

    /// The files of which a flush is to begin, in the order in which they were asked for.
    pub(crate) fn line(&self) -> impl Iterator<Item = FileId> + '_ {
        self.line.iter().copied()
    }

    /// Those that wait for the next flush of this file.
    pub(crate) fn waiting(&self, file: FileId) -> &[W] {
        self.files.get(file.0 as usize).map_or(&[], |f| &f.waiting)
    }

    /// The file whose flush begins now, if there is one; at `gives_up`, if ever, it is given up.
    pub(crate) fn begin(&mut self, gives_up: Option<Instant>) -> Option<FileId> {
        let file = *self.line.front()?;
        self.begin_with(file, gives_up);
        Some(file)
    }

    /// The flush of this file, which is in [line](Self::line), begins now. Returns those that it is for.
    pub(crate) fn begin_with(&mut self, file: FileId, gives_up: Option<Instant>) -> &[W] {
        self.line.retain(|f| *f != file);
        let f = self.of(file);
        f.covered = std::mem::take(&mut f.waiting);
        (f.is_in_line, f.is_running, f.gives_up) = (false, true, gives_up);
        &f.covered
    }

    /// The running flush is done. Returns the clients to answer: all that wait, if it failed.
    pub(crate) fn done(&mut self, file: FileId, is_well: bool) -> Vec<W> {
        let f = self.of(file);
        (f.is_running, f.gives_up, f.is_given_up) = (false, None, false);
        let mut whom = std::mem::take(&mut f.covered);
        if !is_well {
            whom.append(&mut f.waiting);
        }
        self.line_up(file);
        whom
    }

    /// A flush that is to be given up by now, and the clients that wait for it or the next.
    pub(crate) fn give_up(&mut self, now: Instant) -> Option<(FileId, Vec<W>)> {
        let index = self.files.iter().position(|f| f.gives_up.is_some_and(|at| at <= now))?;
        let f = &mut self.files[index];
        (f.gives_up, f.is_given_up) = (None, true);
        let mut whom = std::mem::take(&mut f.covered);
        whom.append(&mut f.waiting);
        Some((FileId(index as u32), whom))
    }

    /// When the next one is.
    pub(crate) fn next_timer(&self) -> Option<Instant> {
        self.files.iter().filter_map(|f| f.gives_up).min()
    }

    /// Something in the file could not be made stable, at this moment.
    pub(crate) fn failed(&mut self, file: FileId, moment: u64, errno: Errno) {
        self.of(file).failed = Some((moment, errno));
    }

    /// Nothing of the sort happened to the file that has this number now.
    pub(crate) fn forget(&mut self, file: FileId) {
        self.of(file).failed = None;
    }

    /// The last failure, and when it was, if that is after `heard`.
    pub(crate) fn news(&self, file: FileId, heard: u64) -> Option<(u64, Errno)> {
        self.files.get(file.0 as usize)?.failed.filter(|&(at, _)| at > heard)
    }

    /// How many are running that were not given up.
    pub(crate) fn running(&self) -> usize {
        self.files.iter().filter(|f| f.is_running && !f.is_given_up).count()
    }

    /// All who wait.
    pub(crate) fn all(&self) -> impl Iterator<Item = &W> {
        self.files.iter().flat_map(|f| f.covered.iter().chain(&f.waiting))
    }
}
