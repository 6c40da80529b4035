//! What every format becomes: a request with its time.

use fairhead_core::{Duration, Sector, TaskId};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::BitOr;

/// What was asked of the disk.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub enum Op {
    /// From disk to memory.
    Read,
    /// From memory to disk.
    Write,
    /// The contents are no longer needed.
    Discard,
    /// What was written is to be stable. Has no sectors.
    Flush,
}

/// What else is known of a request. Formats that tell none of it leave it empty.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Hash)]
pub struct Flags(u8);

impl Flags {
    /// Nothing is known.
    pub const NONE: Self = Self(0);
    /// Flagged as one that somebody waits for. Reads often are not flagged; see [`Record::is_sync`].
    pub const SYNC: Self = Self(1);
    /// Of metadata.
    pub const META: Self = Self(2);
    /// Read ahead of need.
    pub const AHEAD: Self = Self(4);
    /// Stable when it completes (force unit access).
    pub const FUA: Self = Self(8);
    /// What was written before has to be stable first.
    pub const PREFLUSH: Self = Self(16);

    /// Whether all of `other` are set.
    #[must_use]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitOr for Flags {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// A device (or file, or volume) of a trace: an index into [`Names`], in order of appearance.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash, Default)]
pub struct DeviceId(pub u32);

/// One request as it was recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Record {
    /// When it was made: time since the first request of the trace. Never less than that of the record before.
    pub at: Duration,
    /// When the device was given it, on the same clock; at least `at`. Only kernel traces tell.
    pub issued: Option<Duration>,
    /// When it completed, on the same clock; at least `at`. `None` if that is not recorded.
    pub completed: Option<Duration>,
    /// Who asked: the process's number in kernel traces and recorded start-ups, else 0.
    pub task: TaskId,
    /// Of which device.
    pub device: DeviceId,
    /// Read, write, discard or flush.
    pub op: Op,
    /// Sync, metadata and so on.
    pub flags: Flags,
    /// The first sector.
    pub sector: Sector,
    /// How many sectors; 0 for a flush, else at least 1.
    pub sectors: u32,
}

impl Record {
    /// A request of that time and place about which nothing else is known.
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

    /// The sector behind the last.
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.sector.0 + self.sectors as u64
    }

    /// Whether somebody waits for it: every read that is not read-ahead, and what is flagged so.
    #[must_use]
    pub fn is_sync(&self) -> bool {
        self.flags.has(Flags::SYNC) || (self.op == Op::Read && !self.flags.has(Flags::AHEAD))
    }
}

/// The most devices that a trace may name, and the most tasks whose names are kept.
pub const NAMES_MAX: usize = 1 << 16;
/// The longest name of a device, in bytes: that of a file.
const NAME_BYTES_MAX: usize = 4096;

/// What devices and tasks are called.
#[derive(Clone, Default, Debug)]
pub struct Names {
    devices: Vec<String>,
    by_name: BTreeMap<String, u32>,
    tasks: BTreeMap<u32, String>,
    last: u32,
}

impl Names {
    /// A device's name as the trace has it: `8,0`, `src1.0`, a path. Empty for a device that is not of this trace.
    #[must_use]
    pub fn device(&self, id: DeviceId) -> &str {
        self.devices.get(id.0 as usize).map_or("", String::as_str)
    }

    /// How many devices have appeared so far.
    #[must_use]
    pub fn devices(&self) -> usize {
        self.devices.len()
    }

    /// A task's name, where the trace tells one.
    #[must_use]
    pub fn task(&self, id: TaskId) -> Option<&str> {
        self.tasks.get(&id.0).map(String::as_str)
    }

    /// The device of that name, new or known. Control characters are replaced: names are printed.
    ///
    /// # Errors
    /// If there are too many, or the name is too long.
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

    /// Calls a task so, unless it has a name or too many have. Control characters are replaced.
    pub fn name_task(&mut self, id: TaskId, name: &str) {
        let has_room = self.tasks.len() < NAMES_MAX && name.len() <= NAME_BYTES_MAX && !name.is_empty();
        if has_room && !self.tasks.contains_key(&id.0) {
            self.tasks.insert(id.0, printable(name).into_owned());
        }
    }
}

/// The name without control characters.
fn printable(name: &str) -> Cow<'_, str> {
    if name.chars().any(char::is_control) {
        Cow::Owned(name.replace(char::is_control, "\u{fffd}"))
    } else {
        Cow::Borrowed(name)
    }
}

/// What was passed over or put right while reading. All zero for a clean trace.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Notes {
    /// Requests or events that came so late that putting them in order would have needed too much memory: they were
    /// given the time of the one before.
    pub late: u64,
    /// Requests without sectors that are no flush.
    pub empty: u64,
    /// Events that the recording says it lost.
    pub lost: u64,
}
