//! The disks of the machine at hand: how they are set, who set them, and what is wrong with it.
//!
//! ```text
//! /sys /proc /etc ─► Tree ─► Machine: disks, udev rules, units, cgroups ─► checks ─► findings ─► lab: a number
//! ```
//!
//! [`Machine::read`] collects facts and judges nothing. Each check of [`checks`] looks at the facts and
//! returns findings: what is wrong, why it matters, the command that mends it, and the command that undoes
//! that. A finding may name a load whose figures before and after the lab computes ([`lab`]).
//!
//! All paths are below a root folder, so that a test can build a machine out of files.
//!
//! Two parts write, and only when they are asked to: [`Queue`] changes the settings of a disk, which a
//! [`Watchdog`](watchdog::Watchdog) puts back after a trial; and [`RuleFile`] is the udev rule that keeps
//! them over starts, for one disk ([`Identity`]). [`trial`] compares two settings by what programs got.
//!
//! What this does not do: read what a container hides, ask a drive about its health, or look inside a RAID
//! controller.

mod ananicy;
mod apply;
mod btrfs;
mod cgroups;
pub mod checks;
mod disks;
mod finding;
mod identity;
mod kernel;
mod keys;
pub mod lab;
mod locate;
mod machine;
mod memory;
mod mounts;
mod ncq;
mod process;
mod processes;
mod queue;
mod ranges;
pub mod record;
mod requests;
mod rule_file;
mod setters;
mod similar;
pub mod text;
mod tlp;
pub mod tracefs;
mod tree;
pub mod trial;
mod tuned;
mod udev;
mod units;
mod wanted;
pub mod watchdog;

pub use apply::{ApplyError, Plan};
pub use btrfs::Btrfs;
pub use cgroups::{Cgroups, Controller, GroupLimit, GroupWeight};
pub use disks::{Bus, Disk, Kind, Loop};
pub use finding::{Finding, Severity, Subject};
pub use identity::Identity;
pub use kernel::Kernel;
pub use machine::Machine;
pub use memory::Memory;
pub use mounts::Mount;
pub use process::{ends_with_parent, is_root, monotonic_ns};
pub use processes::Priority;
pub use queue::{Changed, Queue, QueueError, Settings};
pub use rule_file::{Found, RuleFile, difference};
pub use setters::Setter;
pub use similar::similar_preset;
pub use tree::Tree;
pub use udev::Rule;
pub use units::Unit;
pub use wanted::wanted;
