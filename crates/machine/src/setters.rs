//! What set the scheduler of a disk.
//!
//! A program leaves no trace when it writes to sysfs. What is known is which settings would give what is in
//! force: the last udev rule for the disk, the active profile of tuned, TLP, the kernel's command line, or
//! the kernel's own choice.

use crate::disks::{Bus, Disk, Kind};
use crate::kernel::Kernel;
use crate::tlp::Tlp;
use crate::tree::Tree;
use crate::tuned::Tuned;

/// What has probably set the scheduler.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Setter {
    /// A udev rule: file and line.
    Udev(String, usize),
    /// The active profile of tuned.
    Tuned(String),
    /// TLP, by its file.
    Tlp(String),
    /// The kernel's command line, by its word, before Linux 5.0.
    CommandLine(String),
    /// The kernel: `none` for a disk with several hardware queues, else `mq-deadline`.
    Kernel,
    /// A scheduler that only a patched kernel has: its default, or a person or program.
    Patched,
    /// None of these: a person, or a program that wrote to sysfs.
    Unknown,
}

/// A program that sets schedulers at start-up, with what it would set.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Daemon {
    Tuned(Tuned),
    Tlp(Tlp),
}

impl Daemon {
    /// What tuned and TLP would set.
    pub(crate) fn all(tree: &Tree) -> Vec<Self> {
        let tuned = Tuned::read(tree).map(Self::Tuned);
        tuned.into_iter().chain(Tlp::read(tree).map(Self::Tlp)).collect()
    }

    /// What it sets for the disk.
    pub(crate) fn for_disk(&self, disk: &Disk) -> Option<&str> {
        match self {
            Self::Tuned(tuned) => tuned.for_disk(disk),
            Self::Tlp(tlp) => tlp.for_disk(disk),
        }
    }

    pub(crate) fn setter(&self) -> Setter {
        match self {
            Self::Tuned(tuned) => Setter::Tuned(tuned.profile.clone()),
            Self::Tlp(tlp) => Setter::Tlp(tlp.file.clone()),
        }
    }
}

/// The word `elevator=` of the kernel's command line; the last counts.
pub(crate) fn elevator(command_line: &str) -> Option<&str> {
    command_line.split_whitespace().rfind(|w| w.starts_with("elevator="))
}

/// The scheduler that the command line chooses for a disk with the old queue.
pub(crate) fn by_command_line<'a>(disk: &Disk, command_line: &'a str) -> Option<&'a str> {
    let name = elevator(command_line)?.strip_prefix("elevator=")?;
    let name = if name == "as" { "anticipatory" } else { name };
    disk.offered.iter().any(|s| s == name).then_some(name).filter(|_| disk.has_old_queue())
}

/// Whether the scheduler may be the kernel's own choice for the disk.
pub(crate) fn is_kernels_choice(disk: &Disk, kernel: &Kernel, scheduler: &str) -> bool {
    // The default of kernels before 5.0 is about their old queue; disks of blk-mq do not have it.
    if let Some(default) = kernel.built_in_default()
        && (disk.has_old_queue() || !matches!(default, "cfq" | "deadline" | "noop"))
    {
        return default == scheduler;
    }
    if disk.has_old_queue() {
        // Which one was built in is the distribution's choice.
        return matches!(scheduler, "cfq" | "deadline");
    }
    let has_deadline = disk.offered.iter().any(|s| s == "mq-deadline");
    if disk.is_zoned() && kernel.is_before(6, 10) {
        return scheduler == if has_deadline { "mq-deadline" } else { "none" };
    }
    if disk.kind == Kind::Loop {
        return scheduler == "none" || (scheduler == "mq-deadline" && kernel.is_before(5, 15));
    }
    if disk.hardware_queues <= 1 && has_deadline {
        return scheduler == "mq-deadline";
    }
    // Queues of one SCSI host may share its tags, and then count as one.
    scheduler == "none" || (scheduler == "mq-deadline" && matches!(disk.bus, Bus::Sas | Bus::Sata))
}
