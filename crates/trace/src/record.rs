//! A request with its times, which all formats are turned into.

use fairhead_core::{Duration, Sector, TaskId};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::BitOr;

/// The operation of a request.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub enum Op {
    /// A read, from disk to memory.
    Read,
    /// A write, from memory to disk.
    Write,
    /// A discard (trim): the contents are no longer needed.
    Discard,
    /// A flush: completed writes must be on stable storage when it completes. It has no sectors.
    Flush,
}

/// Further properties of a request. Empty for formats that do not record them.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Hash)]
pub struct Flags(u8);

impl Flags {
    /// No property is recorded.
    pub const NONE: Self = Self(0);
    /// The recording flags it as sync. Reads often have no flag; see [`Record::is_sync`].
    pub const SYNC: Self = Self(1);
    /// It reads or writes metadata.
    pub const META: Self = Self(2);
    /// It is read-ahead.
    pub const AHEAD: Self = Self(4);
    /// It is on stable storage when it completes (force unit access).
    pub const FUA: Self = Self(8);
    /// Earlier writes must be on stable storage before it.
    pub const PREFLUSH: Self = Self(16);

    /// Whether all flags of `other` are set.
    #[must_use]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    pub(crate) const fn bits(self) -> u8 {
        self.0
    }

    pub(crate) const fn of_bits(bits: u8) -> Self {
        Self(bits)
    }
}

impl BitOr for Flags {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// The id of a device, file or volume of a trace: an index into [`Names`], in order of appearance.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash, Default)]
pub struct DeviceId(pub u32);

/// One request as it was recorded.
///
/// ```
/// use fairhead_core::{Duration, Sector};
/// use fairhead_trace::{Op, Record};
/// let read = Record::new(Duration::from_ms(3), Op::Read, Sector(2048), 8);
/// assert_eq!(read.end(), 2056);
/// assert!(read.is_sync() && read.completed.is_none());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Record {
    /// When the request was made, since the first request of the trace. Never less than that of the previous
    /// record.
    pub at: Duration,
    /// When it was issued to the device, on the same clock; at least `at`. Recorded in kernel traces only.
    pub issued: Option<Duration>,
    /// When it completed, on the same clock; at least `at`. `None` if that is not recorded.
    pub completed: Option<Duration>,
    /// The task that made it: the process id in kernel traces and recorded start-ups, else 0.
    pub task: TaskId,
    /// The device of the request.
    pub device: DeviceId,
    /// The operation.
    pub op: Op,
    /// Further properties: sync, metadata and so on.
    pub flags: Flags,
    /// The first sector.
    pub sector: Sector,
    /// The number of sectors; 0 for a flush, else at least 1.
    pub sectors: u32,
}

impl Record {
    /// Makes a record with this time and place and no other information.
    #[must_use]
    pub const fn new(at: Duration, op: Op, sector: Sector, sectors: u32) -> Self {
        Self {
            at,
            issued: None,
            completed: None,
            task: TaskId(0),
            device: DeviceId(0),
            op,
            flags: Flags::NONE,
            sector,
            sectors,
        }
    }

    /// Returns the sector after the last one.
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.sector.0 + self.sectors as u64
    }

    /// Whether a program waits for it: true for every read that is not read-ahead, and for every request
    /// flagged as sync.
    #[must_use]
    pub fn is_sync(&self) -> bool {
        self.flags.has(Flags::SYNC) || (self.op == Op::Read && !self.flags.has(Flags::AHEAD))
    }
}

/// The most devices that a trace may name, and the most tasks whose names are kept.
pub const NAMES_MAX: usize = 1 << 16;
/// The longest name of a device (which may be a file), in bytes.
const NAME_BYTES_MAX: usize = 4096;

/// The names of devices and tasks of a trace.
///
/// ```
/// let mut names = fairhead_trace::Names::default();
/// let disk = names.add_device("8,0").unwrap();
/// assert_eq!((names.device(disk), names.devices()), ("8,0", 1));
/// ```
#[derive(Clone, Default, Debug)]
pub struct Names {
    devices: Vec<String>,
    by_name: BTreeMap<String, u32>,
    tasks: BTreeMap<u32, String>,
    last: u32,
}

impl Names {
    /// Returns the name of a device as the trace has it: `8,0`, `src1.0`, a path. Empty for a device of
    /// another trace.
    #[must_use]
    pub fn device(&self, id: DeviceId) -> &str {
        self.devices.get(id.0 as usize).map_or("", String::as_str)
    }

    /// Returns the number of devices so far.
    #[must_use]
    pub fn devices(&self) -> usize {
        self.devices.len()
    }

    /// Returns the name of a task, if the trace has one.
    #[must_use]
    pub fn task(&self, id: TaskId) -> Option<&str> {
        self.tasks.get(&id.0).map(String::as_str)
    }

    /// Returns the id of the device with this name, which may be new. Control characters in the name are
    /// replaced, because names are printed.
    ///
    /// # Errors
    /// If there are too many devices, or the name is too long.
    pub fn add_device(&mut self, name: &str) -> Result<DeviceId, String> {
        let name = &*printable(name);
        if self.devices.get(self.last as usize).is_some_and(|known| known == name) {
            return Ok(DeviceId(self.last));
        }
        let id = match self.by_name.get(name) {
            Some(id) => *id,
            None if self.devices.len() == NAMES_MAX => return Err(format!("more than {NAMES_MAX} devices")),
            None if name.len() > NAME_BYTES_MAX => {
                return Err(format!("a device's name of {} bytes; at most {NAME_BYTES_MAX}", name.len()));
            }
            None => {
                let id = u32::try_from(self.devices.len()).map_err(|e| e.to_string())?;
                self.devices.push(name.to_owned());
                self.by_name.insert(name.to_owned(), id);
                id
            }
        };
        self.last = id;
        Ok(DeviceId(id))
    }

    /// Names a task, unless it has a name already or too many tasks have one. Control characters are
    /// replaced.
    pub fn name_task(&mut self, id: TaskId, name: &str) {
        let has_room = self.tasks.len() < NAMES_MAX && name.len() <= NAME_BYTES_MAX && !name.is_empty();
        if has_room && !self.tasks.contains_key(&id.0) {
            self.tasks.insert(id.0, printable(name).into_owned());
        }
    }
}

impl Names {
    /// Names a task anew: the last name counts. Bounded as [`Self::name_task`].
    pub(crate) fn rename_task(&mut self, id: TaskId, name: &str) {
        if !name.is_empty() {
            self.tasks.remove(&id.0);
            self.name_task(id, name);
        }
    }
}

/// Returns the name without control characters.
pub(crate) fn printable(name: &str) -> Cow<'_, str> {
    if name.chars().any(char::is_control) {
        Cow::Owned(name.replace(char::is_control, "\u{fffd}"))
    } else {
        Cow::Borrowed(name)
    }
}

/// Counts of what was ignored or corrected while reading. All are 0 for a clean trace.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Notes {
    /// Requests or events that came too late to be put in order in bounded memory. They got the time of the
    /// one before.
    pub late: u64,
    /// Requests without sectors that are not flushes.
    pub empty: u64,
    /// Events that the recording reports as lost.
    pub lost: u64,
}
