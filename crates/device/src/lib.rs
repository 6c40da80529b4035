//! Disk models as sans-I/O state machines, and the presets that describe real drives.
//!
//! A [`Device`] takes commands and returns completions. It never sleeps, never reads a clock and never draws
//! a random number, so the same commands at the same instants give the same completions on every machine. The
//! lab drives it in virtual time, a live engine in real time.
//!
//! ```text
//!                 submit(now, command)                     ┌─ Disk: interface machine ┬ buffer ┬ media machine
//!    driver  ──────────────────────────────►  Device ──────┤        decode, bus       │ read   │ seek, rotation,
//!            ◄──────────────────────────────               │                          └ write  ┘ look-ahead, destage
//!                 poll(now) → tag                          ├─ Card: latency and allocation units
//!                 next_event() → when                      ├─ Ssd: command processor, dies, channels, link, write buffer
//!                                                          └─ MultiDisk, Set: several of them behind one queue
//! ```
//!
//! The driver's part:
//!
//! 1. While [`Device::can_accept`], send commands with [`Device::submit`].
//! 2. Arm one timer at [`Device::next_event`], or none.
//! 3. When it fires, call [`Device::poll`] until it returns `None`. Go to 1.
//!
//! Time never goes backwards. `next_event` is the very instant of a completion, or an earlier one: of an
//! inner step that a command waits for (room in the write cache, the arm), or before which none can be done;
//! then `poll` returns `None` and the next `next_event` is later. Extra polls do no harm. Nothing is
//! allocated per command.
//!
//! # Example
//!
//! One sequential reader and its think time, on the drive of the 2004 comparison. The published rate is
//! 19,837 KiB/s.
//!
//! ```
//! use fairhead_core::units::{Duration, Instant, Sector, Sectors, Tag};
//! use fairhead_device::{Command, Device, DeviceOp, DeviceParams};
//!
//! let params = DeviceParams::preset("ide2004")?;
//! let mut disk = Device::new(&params)?;
//! let (mut now, mut at) = (Instant::EPOCH, Sector(20_000));
//! let block = Sectors::from_bytes(4096);
//!
//! while now < Instant::EPOCH + Duration::from_secs(1) {
//!     disk.submit(now, Command { tag: Tag(0), op: DeviceOp::Read, start: at, len: block, fua: false });
//!     while let Some(event) = disk.next_event() {
//!         now = event;
//!         if disk.poll(now) == Some(Tag(0)) {
//!             break;
//!         }
//!     }
//!     at = at + block;
//!     now = now + Duration::from_us(25 + 98); // interrupt, then the process
//! }
//!
//! let c = disk.counters();
//! assert!(c.bytes_read / 1024 > 19_500 && c.bytes_read / 1024 < 20_000);
//! assert_eq!((c.misses, c.lost_revolutions), (1, 0)); // the drive reads ahead of a sequential reader
//! # Ok::<(), fairhead_device::ParamError>(())
//! ```
//!
//! A custom drive starts from a preset and changes what differs; see [`DeviceParams::from_toml`]:
//!
//! ```
//! use fairhead_device::DeviceParams;
//!
//! let mine = DeviceParams::from_toml("base = \"ide2004\"\nra_keep = 16\n", "mine.toml");
//! assert!(mine.is_ok());
//! let wrong = DeviceParams::from_toml("base = \"ide2004\"\nra_keeps = 16\n", "mine.toml");
//! assert_eq!(
//!     wrong.map_err(|e| e.to_string()),
//!     Err("mine.toml:2: ra_keeps: no such key, did you mean ra_keep?".to_owned())
//! );
//! ```
//!
//! # What this crate does not do
//!
//! It does not hold data, does not model hosts, kernels or file systems, and its devices never fail.
//!
//! # Without std
//!
//! For the target `x86_64-unknown-none`, a kernel, the models and their parameters are compiled, but nothing
//! that reads files or calibrates: no std, no floats. A disk is then made of a row of integers,
//! [`DeviceParams::to_words`].

#![cfg_attr(target_os = "none", no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

mod au;
#[cfg(not(target_os = "none"))]
pub mod calibrate;
mod card;
mod counters;
#[cfg(not(target_os = "none"))]
pub mod demerit;
mod disk;
#[cfg(not(target_os = "none"))]
mod disksim;
mod driver;
mod geometry;
mod joint;
mod mirror;
mod params;
mod parts;
mod position;
#[cfg(not(target_os = "none"))]
mod preset;
mod seek;
mod set;
mod ssd;
mod stripe;
mod track_map;
mod words;

pub use card::Card;
pub use counters::Counters;
pub use disk::{Disk, MultiDisk};
pub use driver::Driver;
pub use mirror::ReadBalance;
pub use params::{
    CacheMode, CardParams, DeviceParams, DiskParams, Layout, MapZone, Overheads, ParamError, Queues, RaStop,
    Raid0Params, Raid1Params, SlcFull, SpareUnit, SsdParams, Zone,
};
#[cfg(not(target_os = "none"))]
pub use preset::{nearest_word, preset_names, preset_text};
pub use set::Set;
pub use ssd::Ssd;
pub use stripe::StripeMap;

use alloc::boxed::Box;
use fairhead_core::elevator::Actuators;
use fairhead_core::units::{Duration, Instant, Sector, Sectors, Tag};

/// The kind of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum DeviceOp {
    /// Media or buffer to host.
    Read,
    /// Host to buffer or media.
    Write,
    /// Done when everything accepted before it is on the media. `start` and `len` are ignored.
    Flush,
    /// The host no longer needs these sectors.
    Discard,
}

/// One command from the host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Command {
    /// Comes back from [`Device::poll`]. Unique among the commands in flight.
    pub tag: Tag,
    /// The kind of the command.
    pub op: DeviceOp,
    /// The first sector.
    pub start: Sector,
    /// The length; at least one sector for everything but a flush.
    pub len: Sectors,
    /// Force unit access: a write that is done only when it is on the media.
    pub fua: bool,
}

/// The facts that a driver can know about a device before it sends anything.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Facts {
    /// Size in sectors.
    pub capacity: u64,
    /// Whether there is an arm to move and a platter to wait for.
    pub rotational: bool,
    /// Commands it holds at once, at least 1.
    pub queue_depth: u16,
    /// The driver that it is behind.
    pub driver: Driver,
    /// The largest command it takes.
    pub max_request: Sectors,
    /// Whether completed writes may be lost at power failure until a flush.
    pub write_cache: bool,
    /// Whether it honours [`Command::fua`] itself.
    pub fua: bool,
    /// Which ranges of sectors are served independently of each other; one for most devices.
    pub actuators: Actuators,
}

impl Facts {
    /// The number of its driver's tags, for each hardware queue: how many requests may have left the
    /// scheduler at a time.
    #[must_use]
    pub const fn tags(&self) -> u16 {
        self.driver.tags(self.queue_depth)
    }
}

/// A device of any kind.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Device {
    /// A hard disk.
    Disk(Box<Disk>),
    /// A hard disk with several actuators.
    MultiDisk(Box<MultiDisk>),
    /// A flash card without queueing.
    Card(Box<Card>),
    /// A solid-state device.
    Ssd(Box<Ssd>),
    /// Several devices with the same contents, or whose sectors are used by turns.
    Set(Box<Set>),
}

/// A model by itself: on the stack of a kernel there is room for one, not for one of each kind side by side.
#[inline(never)]
fn boxed<P, T>(make: impl FnOnce(&P) -> Result<T, ParamError>, params: &P) -> Result<Box<T>, ParamError> {
    make(params).map(Box::new)
}

macro_rules! each {
    ($self:expr, $d:ident => $e:expr) => {
        match $self {
            Device::Disk($d) => $e,
            Device::MultiDisk($d) => $e,
            Device::Card($d) => $e,
            Device::Ssd($d) => $e,
            Device::Set($d) => $e,
        }
    };
}

/// What one drive knows of itself, and several drives behind one queue of all of them together.
macro_rules! known {
    ($self:expr, $d:ident => $e:expr) => {
        match $self {
            Device::Disk($d) => $e,
            Device::MultiDisk(several) => {
                let $d = several.joint();
                $e
            }
            Device::Card($d) => $e,
            Device::Ssd($d) => $e,
            Device::Set(several) => {
                let $d = several.joint();
                $e
            }
        }
    };
}

impl Device {
    /// A device at rest, all caches empty. A set whose members have queues of their own is one device here,
    /// too; a host that drives its members makes one device for each of [`DeviceParams::members`].
    ///
    /// # Errors
    /// When a parameter is impossible; the error names it and the allowed range.
    pub fn new(params: &DeviceParams) -> Result<Self, ParamError> {
        Ok(match params {
            DeviceParams::Disk(p) if p.actuators > 1 => Self::MultiDisk(boxed(MultiDisk::new, p)?),
            DeviceParams::Disk(p) => Self::Disk(boxed(Disk::new, p)?),
            DeviceParams::Card(p) => Self::Card(boxed(Card::new, p)?),
            DeviceParams::Ssd(p) => Self::Ssd(boxed(Ssd::new, p)?),
            DeviceParams::Raid1(p) => Self::Set(boxed(Set::mirror, p)?),
            DeviceParams::Raid0(p) => Self::Set(boxed(Set::stripe, p)?),
        })
    }

    /// Returns the facts that a driver can know beforehand.
    #[must_use]
    pub fn facts(&self) -> Facts {
        known!(self, d => d.facts())
    }

    /// Whether there is room for one more command.
    #[must_use]
    pub fn can_accept(&self) -> bool {
        each!(self, d => d.can_accept())
    }

    /// Hands over a command.
    ///
    /// # Panics
    /// When the device [cannot accept](Self::can_accept) one, when the command is empty or ends beyond the
    /// device, or when time runs backwards: bugs of the driver.
    pub fn submit(&mut self, now: Instant, cmd: Command) {
        each!(self, d => d.submit(now, cmd));
    }

    /// The one instant at which the driver must call [`poll`](Self::poll), if any.
    #[must_use]
    pub fn next_event(&self) -> Option<Instant> {
        each!(self, d => d.next_event())
    }

    /// The next command that was done at or before `now`. Call until `None`.
    pub fn poll(&mut self, now: Instant) -> Option<Tag> {
        each!(self, d => d.poll(now))
    }

    /// Brings [`counters`](Self::counters) and [`unseen`](Self::unseen) up to `now`, where they are of the
    /// last call. Returns when what they were brought up by happened last.
    pub fn catch_up(&mut self, now: Instant) -> Option<Instant> {
        match self {
            Self::Ssd(ssd) => ssd.catch_up(now),
            Self::Set(set) => set.catch_up(now),
            Self::Disk(_) | Self::MultiDisk(_) | Self::Card(_) => None,
        }
    }

    /// How many instants there were at which something happened inside that a command waited for, and the
    /// driver did not poll, less its polls at which there was nothing. So how much a run does can be counted
    /// whatever is polled.
    #[must_use]
    pub fn unseen(&self) -> i64 {
        match self {
            Self::Ssd(ssd) => ssd.unseen(),
            Self::Set(set) => set.unseen(),
            Self::Disk(_) | Self::MultiDisk(_) | Self::Card(_) => 0,
        }
    }

    /// The sector that the head is about to reach, where there is one head; asking changes nothing. What the
    /// drive does on its own account is seen as far as a command has needed to know of it.
    #[must_use]
    pub fn head(&self, now: Instant) -> Option<Sector> {
        match self {
            Self::Disk(disk) => Some(disk.head(now)),
            _ => None,
        }
    }

    /// Returns the counters since the device was made.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        known!(self, d => d.counters())
    }

    /// How long at least one command of the host was in flight, until `now`: it and the time without any add
    /// up to the time that has passed.
    #[must_use]
    pub fn busy_time(&self, now: Instant) -> Duration {
        known!(self, d => d.busy_time(now))
    }

    /// Whether no command of the host is in flight. Cached writes may still be on their way to the media.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        known!(self, d => d.is_idle())
    }
}

/// The examples of the README, as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
