//! A change of one disk that lasts: a file with a udev rule, and the present values.
//!
//! A [`Plan`] is made from what is there, without writing: the file before and after, and the settings now
//! and then. A second change of a disk replaces the first; what the first one set and the second does not
//! goes back to what was before both, and that is also what the undoing of either puts back.
//!
//! [`Plan::carry_out`] changes the present values first and reads them back: if the kernel refuses a value,
//! or makes another one of it than a rounded one, the values go back and no file is written. If the file
//! cannot be written, the values go back, too. The file appears complete or not at all.
//!
//! What this does not do: ask, or tell udev.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use crate::disks::Disk;
use crate::identity::Identity;
use crate::machine::Machine;
use crate::queue::{Changed, Queue, QueueError, RESET, Settings};
use crate::rule_file::{RuleFile, difference};
use crate::text::printable;
use crate::tree::Tree;

/// What would be done to a disk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// The path of the file, below the root.
    path: String,
    /// Its text; empty if there is none.
    old: String,
    /// Its text afterwards; `None` removes it.
    new: Option<String>,
    /// The present settings, as far as they change.
    present: Settings,
    /// The settings afterwards.
    target: Settings,
    /// The names of the settings that were asked for: their values must be in force in the end.
    asked: Vec<String>,
    /// Whether the tunables of the scheduler must go through the kernel's defaults.
    resets: bool,
}

/// Why a plan could not be carried out.
#[derive(Debug)]
pub enum ApplyError {
    /// The disk refuses a setting.
    Queue(QueueError),
    /// The kernel made another value of a setting. The settings are as before.
    Changed(Changed),
    /// The file cannot be written or removed: path and reason. The settings are as before.
    File(String, io::Error),
}

impl Plan {
    /// Plans that a rule sets this for the disk.
    ///
    /// # Errors
    ///
    /// One line: nothing tells the disk from others, its file was edited by hand, or it is gone.
    pub fn apply(tree: &Tree, machine: &Machine, disk: &Disk, sets: Settings) -> Result<Self, String> {
        let found = RuleFile::find(tree, disk);
        let earlier = found.as_ref().map(|f| f.content.clone().ok_or_else(|| edited(&f.path))).transpose()?;
        let names = sets.pairs().chain(earlier.iter().flat_map(|e| e.sets.pairs())).map(|(n, _)| n);
        let present = present(tree, disk, names)?;
        let mut before = present.clone();
        let mut target = sets.clone();
        if let Some(earlier) = &earlier {
            // What was remembered is from before the first change.
            before.scheduler.clone_from(&earlier.before.scheduler);
            before.values.retain(|n, _| !is_reset(n));
            before.values.extend(earlier.before.values.clone());
            target = overlaid(&before, &sets);
        }
        let dropped = |e: &RuleFile| {
            e.sets.values.keys().any(|n| n.starts_with("iosched/") && !target.values.contains_key(n))
        };
        let resets = earlier.as_ref().is_some_and(dropped) && target.scheduler == present.scheduler;
        let identity = match &earlier {
            Some(earlier) => earlier.identity.clone(),
            None => Identity::of(disk, &machine.disks)?,
        };
        let asked = sets.values.keys().cloned().collect();
        let file = RuleFile {
            disk: disk.name.clone(),
            model: printable(&disk.model).into_owned(),
            identity,
            before,
            sets,
        };
        let (path, old) = found.map_or_else(|| (file.path(), String::new()), |f| (f.path, f.text));
        Ok(Self { path, old, new: Some(file.text()), present, target, asked, resets })
    }

    /// Plans that the disk's file goes away, and its settings are as before.
    ///
    /// # Errors
    ///
    /// One line: there is no file, or it was edited by hand.
    pub fn undo(tree: &Tree, disk: &Disk) -> Result<Self, String> {
        let found = RuleFile::find(tree, disk);
        let found =
            found.ok_or_else(|| format!("nothing to undo: no rule of fairhead's for {}", disk.name))?;
        let content = found.content.ok_or_else(|| edited(&found.path))?;
        let present = present(tree, disk, content.sets.pairs().map(|(n, _)| n))?;
        let (path, old, target) = (found.path, found.text, content.before);
        Ok(Self { path, old, new: None, present, target, asked: Vec::new(), resets: false })
    }

    /// Whether there is nothing to do.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        self.new.as_ref() == Some(&self.old) && self.changes().is_empty()
    }

    /// The path of the file, from the root.
    #[must_use]
    pub fn path(&self) -> String {
        format!("/{}", self.path)
    }

    /// What becomes of the file, line by line.
    #[must_use]
    pub fn difference(&self) -> String {
        difference(&self.old, self.new.as_deref().unwrap_or_default())
    }

    /// What changes at once: name, present value (empty if it is another scheduler's), and value to be.
    #[must_use]
    pub fn changes(&self) -> Vec<(String, String, String)> {
        let present = |name: &str| self.present.pairs().find(|(n, _)| *n == name).map_or("", |(_, v)| v);
        let all = self.target.pairs().map(|(n, v)| (n.to_owned(), present(n).to_owned(), v.to_owned()));
        all.filter(|(_, present, value)| present != value).collect()
    }

    /// The files below `queue/` that get a value.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.target.pairs().map(|(name, _)| name)
    }

    /// The scheduler that is needed; `None` leaves the present one.
    #[must_use]
    pub fn scheduler(&self) -> Option<&str> {
        self.target.scheduler.as_deref()
    }

    /// Whether the file could be written, without writing it.
    ///
    /// # Errors
    ///
    /// The folder, or the next one above that exists, cannot be written to.
    pub fn check(&self, tree: &Tree) -> Result<(), ApplyError> {
        let path = tree.place(&self.path);
        let folder = path.ancestors().skip(1).find(|f| f.exists()).unwrap_or(Path::new("/"));
        may_write(folder).map_err(|e| ApplyError::File(self.path(), e))
    }

    /// Changes the settings of the queue, if there is one, and then the file. Returns the settings of which
    /// the kernel made another value.
    ///
    /// # Errors
    ///
    /// A setting is refused, or one that was asked for has another value afterwards, which is more than
    /// rounded; or the file cannot be written. Nothing is changed then.
    pub fn carry_out(&self, tree: &Tree, queue: Option<&Queue>) -> Result<Vec<Changed>, ApplyError> {
        let mut changed = Vec::new();
        if let Some(queue) = queue {
            let set = || {
                if self.resets {
                    queue.set(&Settings { scheduler: Some("none".to_owned()), ..Settings::default() })?;
                }
                queue.set(&self.target)
            };
            changed = set().map_err(|e| {
                let _ = queue.set(&self.present);
                ApplyError::Queue(e)
            })?;
            let is_asked = |c: &&Changed| self.asked.contains(&c.name) && !c.is_rounded();
            if let Some(wrong) = changed.iter().find(is_asked).cloned() {
                let _ = queue.set(&self.present);
                return Err(ApplyError::Changed(wrong));
            }
        }
        let path = tree.place(&self.path);
        let done = match &self.new {
            Some(text) => write_whole(&path, text),
            None => fs::remove_file(&path),
        };
        done.map_err(|e| {
            let _ = queue.map(|q| q.set(&self.present));
            ApplyError::File(self.path(), e)
        })?;
        Ok(changed)
    }
}

fn edited(path: &str) -> String {
    format!("/{path} was edited by hand, so it stays as it is; remove it yourself to go on: rm /{path}")
}

fn is_reset(name: &str) -> bool {
    name.starts_with("iosched/") || RESET.contains(&name)
}

/// The settings of `before` that stay, with those of `sets` over them.
fn overlaid(before: &Settings, sets: &Settings) -> Settings {
    let mut target = before.clone();
    if sets.scheduler.is_some() && sets.scheduler != before.scheduler {
        // What belongs to the other scheduler has no meaning under this one.
        target.values.retain(|n, _| !is_reset(n));
        target.scheduler.clone_from(&sets.scheduler);
    }
    target.values.extend(sets.values.clone());
    target
}

fn present<'a>(tree: &Tree, disk: &Disk, names: impl Iterator<Item = &'a str>) -> Result<Settings, String> {
    let folder = tree.place(&format!("sys/block/{}/queue", disk.name));
    let names = names.filter(|n| *n != "scheduler");
    Queue::at(&disk.name, &folder).and_then(|q| q.settings(names)).map_err(|e| e.to_string())
}

/// Writes a file so that it appears complete or not at all, also if the machine stops meanwhile.
fn write_whole(path: &Path, text: &str) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(folder)?;
    // udev reads names that end in .rules only.
    let part = path.with_extension(format!("part{}", std::process::id()));
    let written = File::create(&part).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&part, path)?;
        File::open(folder)?.sync_all()
    });
    if written.is_err() {
        let _ = fs::remove_file(&part);
    }
    written
}

fn may_write(folder: &Path) -> io::Result<()> {
    use std::os::unix::ffi::OsStrExt;
    let path = std::ffi::CString::new(folder.as_os_str().as_bytes())?;
    // SAFETY: the path ends in a zero and lives until the call returns.
    if unsafe { libc::access(path.as_ptr(), libc::W_OK) } == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
