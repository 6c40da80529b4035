//! The settings of a disk's queue: reads them, and makes others be in force.
//!
//! A change of scheduler throws away the tunables of the old scheduler, the number of requests and, for some
//! schedulers, the throttling of writeback. So [`Settings`] are read as a whole before a change, and
//! [`Queue::set`] writes whatever differs: the scheduler first, then the other files, again until nothing
//! differs, because some files of a queue are two views of one value (`slice_idle` and `slice_idle_us`). The
//! kernel makes 4 of a smaller `nr_requests` that is written, but gives 2 with a scheduler to a disk with one
//! tag: that number is put back by choosing the scheduler again.
//!
//! A queue is held by its folder and not by its name: if the disk goes away and another gets its name, every
//! access says that the disk is gone. The same handle carries a lock, so that two programs of this kind do
//! not change one disk at a time; the lock ends with the last process that has the handle.
//!
//! What this does not do: know which values make sense ([`ranges`](crate::ranges) does). What the kernel made
//! another value of comes back as [`Changed`].
//
//= Documentation/block/switching-sched.rst; Documentation/ABI/stable/sysfs-block

use crate::disks::chosen_scheduler;
use crate::ranges;
use crate::requests::WRITABLE_MIN;
use std::collections::BTreeMap;
use std::fmt;
use std::fs::{File, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// The files of `queue/` that a change of scheduler resets, beside `iosched/`.
pub(crate) const RESET: [&str; 3] = ["nr_requests", "async_depth", "wbt_lat_usec"];

/// How often the files are gone through before a value that does not stay is an error.
const PASSES: usize = 4;

/// A scheduler and files of `queue/` with their values, such as `nr_requests` and `iosched/slice_idle`.
///
/// Written as words: `scheduler=bfq iosched/slice_idle=8 nr_requests=64`.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Settings {
    /// The scheduler; `None` leaves the present one.
    pub scheduler: Option<String>,
    /// Values by the path of the file below `queue/`.
    pub values: BTreeMap<String, String>,
}

impl Settings {
    /// Reads settings from words, as [`Settings`] are displayed. `None` if a word is not `NAME=VALUE`, or
    /// could lead out of the folder.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut settings = Self::default();
        for word in text.split_whitespace() {
            let (name, value) = word.split_once('=')?;
            if name.starts_with('/') || name.split('/').any(|part| part.is_empty() || part == "..") {
                return None;
            }
            if name == "scheduler" {
                settings.scheduler = Some(value.to_owned());
            } else {
                settings.values.insert(name.to_owned(), value.to_owned());
            }
        }
        Some(settings)
    }

    /// The settings as pairs of a file below `queue/` and its value, the scheduler first.
    pub fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        let scheduler = self.scheduler.as_deref().map(|s| ("scheduler", s));
        scheduler.into_iter().chain(self.values.iter().map(|(n, v)| (n.as_str(), v.as_str())))
    }
}

impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (name, value)) in self.pairs().enumerate() {
            write!(f, "{}{name}={value}", if i > 0 { " " } else { "" })?;
        }
        Ok(())
    }
}

/// Why a setting could not be read or made.
#[derive(Debug)]
pub struct QueueError {
    /// What was tried, such as `write '7' to /sys/block/sda/queue/nr_requests`.
    what: String,
    /// The kernel's answer.
    error: io::Error,
    /// Whether the disk is not there any more.
    pub is_gone: bool,
}

impl QueueError {
    /// Whether only root may do this.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        self.error.kind() == ErrorKind::PermissionDenied
    }

    /// Whether `/sys` is read-only, as in most containers.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.error.kind() == ErrorKind::ReadOnlyFilesystem
    }
}

impl fmt::Display for QueueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {}: {}", self.what, self.error)
    }
}

impl std::error::Error for QueueError {}

/// A setting of which the kernel's file reads another value than was written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Changed {
    /// The file below `queue/`.
    pub name: String,
    /// What was written.
    pub written: String,
    /// What the file reads.
    pub read: String,
}

impl Changed {
    /// Whether the kernel only rounded the value, to its tick or to whole pages, or has put its default for
    /// the number that stands for it.
    #[must_use]
    pub fn is_rounded(&self) -> bool {
        ranges::taken(&self.name, &self.written, &self.read)
    }
}

/// The queue of a disk that is there.
#[derive(Debug)]
pub struct Queue {
    name: String,
    folder: File,
}

impl Queue {
    /// Opens the queue of the disk with that name in `/sys/block`.
    ///
    /// # Errors
    ///
    /// The folder cannot be opened.
    pub fn open(disk: &str) -> Result<Self, QueueError> {
        Self::at(disk, &PathBuf::from(format!("/sys/block/{disk}/queue")))
    }

    /// Opens the folder of a queue; `disk` is its name in messages.
    ///
    /// # Errors
    ///
    /// The folder cannot be opened.
    pub fn at(disk: &str, folder: &Path) -> Result<Self, QueueError> {
        let opened = File::open(folder);
        let what = format!("open {}", folder.display());
        let folder = opened.map_err(|error| QueueError { what, error, is_gone: false })?;
        Ok(Self { name: disk.to_owned(), folder })
    }

    /// Takes the lock on the queue; false if another process has it.
    ///
    /// # Errors
    ///
    /// The folder cannot be locked at all.
    pub fn lock(&self) -> io::Result<bool> {
        match self.folder.try_lock() {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(e)) => Err(e),
        }
    }

    /// The number of the handle, for a process that inherits it.
    pub(crate) fn handle(&self) -> i32 {
        self.folder.as_raw_fd()
    }

    /// The disk's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The path through the handle. It leads to this disk's folder, or nowhere.
    fn place(&self, file: &str) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}/{file}", self.handle()))
    }

    fn error(&self, what: &str, file: &str, error: io::Error) -> QueueError {
        let what = format!("{what} /sys/block/{}/queue/{file}", self.name);
        QueueError { what, error, is_gone: self.is_gone() }
    }

    /// Whether the disk is not there any more.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.place("scheduler").symlink_metadata().is_err()
    }

    /// Whether the disk holds nothing now: a drive without a medium, a loop device without a file.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        std::fs::read_to_string(self.place("../size")).is_ok_and(|size| size.trim() == "0")
    }

    fn read(&self, file: &str) -> io::Result<String> {
        Ok(std::fs::read_to_string(self.place(file))?.trim().to_owned())
    }

    /// Writes a file of the queue.
    fn write(&self, file: &str, value: &str) -> Result<(), QueueError> {
        let open = || std::fs::OpenOptions::new().write(true).truncate(true).open(self.place(file));
        // One write: the kernel takes each as a whole.
        let written = open().and_then(|mut f| f.write_all(value.as_bytes()));
        written.map_err(|e| self.error(&format!("write '{value}' to"), file, e))
    }

    /// The scheduler in force.
    ///
    /// # Errors
    ///
    /// The disk is gone, or has no schedulers.
    pub fn scheduler(&self) -> Result<String, QueueError> {
        let text = self.read("scheduler").map_err(|e| self.error("read", "scheduler", e))?;
        // Without brackets it is the only word.
        Ok(chosen_scheduler(&text).unwrap_or(&text).to_owned())
    }

    /// Reads what a change of scheduler would reset, and the files of `more`.
    ///
    /// # Errors
    ///
    /// The scheduler or a file of `more` cannot be read.
    pub fn settings<'a>(&self, more: impl IntoIterator<Item = &'a str>) -> Result<Settings, QueueError> {
        let mut settings = Settings { scheduler: Some(self.scheduler()?), values: BTreeMap::new() };
        let tunables = std::fs::read_dir(self.place("iosched")).into_iter().flatten().flatten();
        let names = tunables.filter_map(|e| e.file_name().into_string().ok()).map(|n| format!("iosched/{n}"));
        for name in RESET.into_iter().map(str::to_owned).chain(names) {
            // Not every kernel and disk has each of them; some answer with an error instead of a value.
            if self.is_writable(&name)
                && let Ok(value) = self.read(&name)
            {
                settings.values.insert(name, value);
            }
        }
        for name in more {
            // A tunable of a scheduler that is not in force has no value to remember.
            if !name.starts_with("iosched/") {
                let value = self.read(name).map_err(|e| self.error("read", name, e))?;
                settings.values.insert(name.to_owned(), value);
            }
        }
        Ok(settings)
    }

    /// Whether settings may be written, without writing one.
    ///
    /// # Errors
    ///
    /// Only root may, `/sys` is read-only, or the disk is gone.
    pub fn check(&self) -> Result<(), QueueError> {
        let opened = std::fs::OpenOptions::new().write(true).open(self.place("scheduler"));
        opened.map(|_| ()).map_err(|e| self.error("write to", "scheduler", e))
    }

    fn is_writable(&self, file: &str) -> bool {
        self.place(file).metadata().is_ok_and(|m| !m.permissions().readonly())
    }

    /// Makes the settings be in force: writes the files that differ. Returns those of which the kernel made
    /// another value.
    ///
    /// # Errors
    ///
    /// A file cannot be written, or the disk is gone; or another scheduler is in force than was written.
    pub fn set(&self, settings: &Settings) -> Result<Vec<Changed>, QueueError> {
        if let Some(scheduler) = &settings.scheduler
            && self.scheduler()? != *scheduler
        {
            self.write("scheduler", scheduler)?;
            let now = self.scheduler()?;
            if now != *scheduler {
                let error = io::Error::other(format!("it reads '{now}' afterwards"));
                return Err(self.error(&format!("write '{scheduler}' to"), "scheduler", error));
            }
        }
        if let Some(scheduler) = &settings.scheduler
            && self.has_more_requests(settings)
        {
            self.write("scheduler", "none")?;
            self.write("scheduler", scheduler)?;
        }
        for _ in 0..PASSES {
            let different = self.different(settings)?;
            if different.is_empty() {
                break;
            }
            for (name, value) in &different {
                self.write(name, value)?;
            }
        }
        let changed = self.different(settings)?.into_iter();
        let changed = changed.filter_map(|(name, written)| {
            let read = self.read(&name).ok()?;
            Some(Changed { name, written, read })
        });
        Ok(changed.collect())
    }

    /// Whether the settings have fewer requests than can be written, and the queue has more.
    fn has_more_requests(&self, settings: &Settings) -> bool {
        let wanted =
            settings.values.get("nr_requests").filter(|n| n.parse().is_ok_and(|n: i64| n < WRITABLE_MIN));
        wanted.is_some_and(|wanted| self.read("nr_requests").is_ok_and(|present| present != *wanted))
    }

    /// The settings that are not in force, without the scheduler.
    fn different(&self, settings: &Settings) -> Result<Vec<(String, String)>, QueueError> {
        let mut different = Vec::new();
        for (name, value) in &settings.values {
            let present = self.read(name).map_err(|e| self.error("read", name, e))?;
            if present != *value {
                different.push((name.clone(), value.clone()));
            }
        }
        Ok(different)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_words() {
        let text = "scheduler=bfq iosched/slice_idle=8 nr_requests=64";
        let settings = Settings::parse(text).unwrap();
        assert_eq!(settings.scheduler.as_deref(), Some("bfq"));
        assert_eq!(settings.to_string(), text);
        assert_eq!(Settings::parse("").unwrap().to_string(), "");
    }

    #[test]
    fn settings_that_lead_elsewhere_are_refused() {
        for text in ["nr_requests", "/etc/passwd=x", "../size=1", "iosched/../../x=1", "iosched//x=1", "=1"] {
            assert!(Settings::parse(text).is_none(), "{text}");
        }
    }

    /// A folder with files stands for a queue: what is written there is not put in brackets.
    #[test]
    fn only_what_differs_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name);
        std::fs::create_dir(file("iosched")).unwrap();
        for (name, value) in [("scheduler", "none"), ("nr_requests", "64"), ("iosched/a", "1")] {
            std::fs::write(file(name), value).unwrap();
        }
        let queue = Queue::at("sda", folder.path()).unwrap();
        let before = queue.settings([]).unwrap();
        assert_eq!(before.to_string(), "scheduler=none iosched/a=1 nr_requests=64");
        let wanted = Settings::parse("scheduler=bfq iosched/a=2").unwrap();
        assert!(queue.set(&wanted).unwrap().is_empty());
        assert_eq!(queue.settings([]).unwrap().to_string(), "scheduler=bfq iosched/a=2 nr_requests=64");
        assert!(queue.set(&before).unwrap().is_empty());
        assert_eq!(queue.settings([]).unwrap(), before);
        let missing = queue.set(&Settings::parse("iosched/b=2").unwrap()).unwrap_err();
        assert!(missing.to_string().starts_with("cannot read /sys/block/sda/queue/iosched/b: "), "{missing}");
        assert!(!missing.is_gone);
    }

    /// The kernel gives 2 requests with a scheduler to a disk with one tag, and makes 4 of a 2 that is
    /// written.
    #[test]
    fn two_requests_are_put_back_by_choosing_the_scheduler_again() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name);
        for (name, value) in [("scheduler", "bfq"), ("nr_requests", "64")] {
            std::fs::write(file(name), value).unwrap();
        }
        let queue = Queue::at("sda", folder.path()).unwrap();
        assert!(queue.has_more_requests(&Settings::parse("scheduler=bfq nr_requests=2").unwrap()));
        for enough in ["scheduler=bfq nr_requests=4", "scheduler=bfq nr_requests=64", "scheduler=bfq"] {
            assert!(!queue.has_more_requests(&Settings::parse(enough).unwrap()), "{enough}");
        }
        std::fs::write(file("nr_requests"), "2").unwrap();
        assert!(!queue.has_more_requests(&Settings::parse("scheduler=bfq nr_requests=2").unwrap()));
    }

    #[test]
    fn a_lock_is_one_processs() {
        let folder = tempfile::tempdir().unwrap();
        let (a, b) = (Queue::at("a", folder.path()).unwrap(), Queue::at("a", folder.path()).unwrap());
        assert!(a.lock().unwrap() && !b.lock().unwrap());
        drop(a);
        assert!(b.lock().unwrap());
    }

    #[test]
    fn another_folder_of_the_same_name_is_not_the_queue() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("queue");
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("scheduler"), "none").unwrap();
        let queue = Queue::at("sda", &folder).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("scheduler"), "none").unwrap();
        assert!(queue.is_gone());
        assert!(queue.set(&Settings::parse("scheduler=bfq").unwrap()).unwrap_err().is_gone);
        assert_eq!(std::fs::read_to_string(folder.join("scheduler")).unwrap(), "none");
    }
}
