//! `--resume FILE`: the results of finished runs in a file, so that an interrupted command can be resumed.
//!
//! ```text
//! fairhead runs 9ab3… 5f0c…  which build of the program, and which question they are of
//! 17<tab>…                   the name of a run, and its result
//! ```
//!
//! A line is written when its run is done. A line that is cut off (because the machine stopped) is dropped,
//! and new lines follow the last whole one. A file of another question, of another build of the program, or
//! in use by another process, is refused: two builds of one version may simulate differently.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock};

use fairhead_sim::resumable::Keep;

use crate::error::CliError;

/// Results, kept in a file if there is one.
#[derive(Debug, Default)]
pub(crate) struct Resume {
    known: BTreeMap<String, String>,
    file: Option<Mutex<File>>,
    failed: AtomicBool,
}

/// Whether Ctrl-C has been pressed, and whether the command reacts to it.
static OVER: AtomicBool = AtomicBool::new(false);
static HANDLED: AtomicBool = AtomicBool::new(false);

/// Requests that no more runs are begun. Returns whether the command reacts to this; the second time it does
/// not.
pub(crate) fn end() -> bool {
    HANDLED.load(Ordering::Relaxed) && !OVER.swap(true, Ordering::Relaxed)
}

/// Whether Ctrl-C was pressed.
pub(crate) fn is_over() -> bool {
    OVER.load(Ordering::Relaxed)
}

impl Resume {
    /// Opens the file, or makes it; without one nothing is kept. The results of the files `merge` are known,
    /// too, and go to the file if it does not have them.
    pub(crate) fn open(path: Option<&Path>, merge: &[PathBuf], fingerprint: u64) -> Result<Self, CliError> {
        let mut resume = Self::alone(path, fingerprint)?;
        for other in merge {
            resume.add(other, fingerprint)?;
        }
        Ok(resume)
    }

    /// Adds the results of a file. Another result for a run that is known is refused: a run has one.
    fn add(&mut self, from: &Path, fingerprint: u64) -> Result<(), CliError> {
        let text = std::fs::read(from)
            .map_err(|e| CliError::Misuse(format!("cannot read '{}': {e}", from.display())))?;
        let (more, _) = read(&text, &heading(build()?, fingerprint)).ok_or_else(|| other(from))?;
        for (run, result) in more {
            match self.known.get(&run) {
                None => {
                    self.keep(&run, &result);
                    self.known.insert(run, result);
                }
                Some(known) if *known == result => {}
                Some(_) => {
                    return Err(CliError::Failed(format!(
                        "'{}': its result of run {run} is not that of the files before it; one of them was \
                         changed, or the machines compute differently",
                        from.display()
                    )));
                }
            }
        }
        Ok(())
    }

    fn alone(path: Option<&Path>, fingerprint: u64) -> Result<Self, CliError> {
        HANDLED.store(true, Ordering::Relaxed);
        let Some(path) = path else { return Ok(Self::default()) };
        let failed =
            |e: &dyn std::fmt::Display| CliError::Failed(format!("cannot use '{}': {e}", path.display()));
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(|e| failed(&e))?;
        file.try_lock().map_err(|e| failed(&e))?;
        let mut text = Vec::new();
        file.read_to_end(&mut text).map_err(|e| failed(&e))?;
        let heading = heading(build()?, fingerprint);
        let (known, whole) = match text.is_empty() {
            true => (BTreeMap::new(), 0),
            false => read(&text, &heading).ok_or_else(|| other(path))?,
        };
        let begin = |file: &mut File| {
            file.set_len(whole)?;
            file.seek(SeekFrom::End(0))?;
            if whole == 0 { file.write_all(heading.as_bytes()) } else { Ok(()) }
        };
        begin(&mut file).map_err(|e| failed(&e))?;
        Ok(Self { known, file: Some(Mutex::new(file)), failed: AtomicBool::new(false) })
    }

    /// How many results were in the file.
    pub(crate) fn count(&self) -> usize {
        self.known.len()
    }

    /// Whether a result could not be written.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }
}

fn heading(build: u64, fingerprint: u64) -> String {
    format!("fairhead runs {build:016x} {fingerprint:016x}\n")
}

/// A digest of the running program, even if its file has been replaced meanwhile.
fn build() -> Result<u64, CliError> {
    static BUILD: OnceLock<u64> = OnceLock::new();
    if let Some(build) = BUILD.get() {
        return Ok(*build);
    }
    let program = std::fs::read("/proc/self/exe").map_err(|e| {
        CliError::Failed(format!("cannot read this program, whose results --resume keeps: {e}"))
    })?;
    Ok(*BUILD.get_or_init(|| digest(&program)))
}

/// FNV-1a over words instead of bytes, the last one filled up with zeros: a program has tens of millions of
/// bytes.
fn digest(bytes: &[u8]) -> u64 {
    let word = |chunk: &[u8]| chunk.iter().rev().fold(0, |word, b| word << 8 | u64::from(*b));
    let step = |hash: u64, word: u64| (hash ^ word).wrapping_mul(0x0000_0100_0000_01b3);
    let hash = bytes.chunks(8).map(word).fold(0xcbf2_9ce4_8422_2325, step);
    step(hash, bytes.len() as u64)
}

fn other(path: &Path) -> CliError {
    CliError::Misuse(format!(
        "'{}' has no results of this question by this build of fairhead (another job, disk, tunable, seed or program); name another file",
        path.display()
    ))
}

/// The results, and how many bytes are whole lines. Nothing if it is of another question; a heading that was
/// cut off is none.
fn read(text: &[u8], heading: &str) -> Option<(BTreeMap<String, String>, u64)> {
    if heading.as_bytes().starts_with(text) && text.len() < heading.len() {
        return Some((BTreeMap::new(), 0));
    }
    let results = text.strip_prefix(heading.as_bytes())?;
    let whole = results.iter().rposition(|b| *b == b'\n').map_or(0, |i| i + 1);
    let lines = std::str::from_utf8(&results[..whole]).ok()?;
    let pair = |l: &str| l.split_once('\t').map(|(run, result)| (run.to_owned(), result.to_owned()));
    Some((lines.lines().filter_map(pair).collect(), (heading.len() + whole) as u64))
}

impl Keep for Resume {
    fn known(&self, run: &str) -> Option<&str> {
        self.known.get(run).map(String::as_str)
    }

    fn keep(&self, run: &str, result: &str) {
        let Some(Ok(mut file)) = self.file.as_ref().map(Mutex::lock) else { return };
        if file.write_all(format!("{run}\t{result}\n").as_bytes()).is_err() {
            self.failed.store(true, Ordering::Relaxed);
        }
    }

    fn is_over(&self) -> bool {
        is_over()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_goes_on_behind_its_last_whole_line() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("runs");
        let first = Resume::open(Some(&path), &[], 1).unwrap();
        first.keep("a", "1 2");
        first.keep("b", "3");
        drop(first);
        let whole = std::fs::read(&path).unwrap();
        for cut in 0..=whole.len() {
            std::fs::write(&path, &whole[..cut]).unwrap();
            let again = Resume::open(Some(&path), &[], 1).unwrap();
            let lines = whole[..cut].iter().filter(|b| **b == b'\n').count();
            assert_eq!(again.count(), lines.saturating_sub(1), "{cut} bytes");
            again.keep("c", "4");
            drop(again);
            let third = Resume::open(Some(&path), &[], 1).unwrap();
            assert_eq!((third.known("c"), third.count()), (Some("4"), lines.max(1)), "{cut} bytes");
        }
        assert!(
            matches!(Resume::open(Some(&path), &[], 2), Err(CliError::Misuse(m)) if m.contains("another job"))
        );
        std::fs::write(&path, "something else\n").unwrap();
        assert!(Resume::open(Some(&path), &[], 1).is_err());
        assert_eq!(std::fs::read(&path).unwrap(), b"something else\n", "it is left alone");
    }

    #[test]
    fn digests_of_other_bytes_are_others() {
        let bytes = [7_u8; 20];
        assert_eq!(digest(&bytes), digest(&[7; 20]));
        for i in 0..20 {
            let mut changed = bytes;
            changed[i] ^= 1;
            assert_ne!(digest(&bytes), digest(&changed), "byte {i}");
        }
        assert_ne!(digest(&[1, 0]), digest(&[1]), "zeros at the end count");
    }

    #[test]
    fn two_do_not_use_a_file_at_once() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("runs");
        let _first = Resume::open(Some(&path), &[], 1).unwrap();
        assert!(matches!(Resume::open(Some(&path), &[], 1), Err(CliError::Failed(_))));
    }
}
