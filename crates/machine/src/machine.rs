//! All facts about a machine's disks, in one place.

use std::collections::BTreeMap;

use crate::ananicy;
use crate::btrfs::Btrfs;
use crate::cgroups::Cgroups;
use crate::disks::Disk;
use crate::kernel::Kernel;
use crate::memory::Memory;
use crate::mounts::Mount;
use crate::processes::Priority;
use crate::setters::{Daemon, Setter, by_command_line, elevator, is_kernels_choice};
use crate::tree::Tree;
use crate::udev::{Effects, Matches, Rule};
use crate::units::Unit;

/// A machine, as far as its files tell.
#[derive(Debug)]
pub struct Machine {
    /// The disks, in the order of their names.
    pub disks: Vec<Disk>,
    /// The file systems on them.
    pub mounts: Vec<Mount>,
    /// The udev rules that set attributes of queues, in udev's order.
    pub rules: Vec<Rule>,
    /// What administrators wrote into units about disks.
    pub units: Vec<Unit>,
    /// What administrators wrote into units of users' managers about disks.
    pub user_units: Vec<Unit>,
    /// The control groups.
    pub cgroups: Cgroups,
    /// Processes with an I/O priority of their own.
    pub priorities: Vec<Priority>,
    /// Ananicy's first file that sets I/O classes, if it is installed and sets some.
    pub ananicy: Option<String>,
    /// The memory.
    pub memory: Memory,
    /// The mounted btrfs file systems.
    pub btrfs: Vec<Btrfs>,
    /// The kernel's command line.
    pub command_line: String,
    /// The file with the kernel's command line, where the boot loader reads one, as on a Raspberry Pi.
    pub command_line_file: Option<String>,
    /// The kernel's release, such as `6.12.9`.
    pub release: String,
    /// The kernel, and what follows from its version.
    pub kernel: Kernel,
    /// The kind of container that the program runs in, such as `docker`; `None` outside.
    pub container: Option<String>,
    /// Whether the machine is a guest of a hypervisor.
    pub is_guest: bool,
    /// Paths that exist and could not be read.
    pub unseen: Vec<String>,
    pub(crate) daemons: Vec<Daemon>,
    /// What the rules do for each disk, by its name.
    effects: BTreeMap<String, Effects>,
}

impl Machine {
    /// Collects the facts below the tree's root.
    #[must_use]
    pub fn read(tree: &Tree) -> Self {
        let (disks, rules) = (Disk::all(tree), Rule::all(tree));
        let release = tree.text("proc/sys/kernel/osrelease").unwrap_or_default();
        let effects = disks.iter().map(|d| (d.name.clone(), Effects::of(&rules, tree, d))).collect();
        let mut machine = Self {
            disks,
            mounts: Mount::all(tree),
            rules,
            units: Unit::all(tree),
            user_units: Unit::of_users(tree),
            cgroups: Cgroups::read(tree),
            priorities: Priority::all(tree),
            ananicy: ananicy::sets_classes(tree),
            memory: Memory::read(tree),
            btrfs: Btrfs::all(tree),
            command_line: tree.text("proc/cmdline").unwrap_or_default(),
            command_line_file: command_line_file(tree),
            kernel: Kernel::read(tree, &release),
            release,
            container: container(tree),
            is_guest: is_guest(tree),
            unseen: Vec::new(),
            daemons: Daemon::all(tree),
            effects,
        };
        machine.unseen = tree.unseen();
        machine
    }

    /// The disk of that name.
    #[must_use]
    pub fn disk(&self, name: &str) -> Option<&Disk> {
        self.disks.iter().find(|d| d.name == name)
    }

    /// The probable setter of the disk's scheduler; `None` for a disk without one.
    #[must_use]
    pub fn setter(&self, disk: &Disk) -> Option<Setter> {
        let scheduler = disk.scheduler.as_deref()?;
        // Daemons come after udev at start-up.
        let daemon = self.daemons.iter().rev().find(|d| d.for_disk(disk) == Some(scheduler));
        if let Some(daemon) = daemon {
            return Some(daemon.setter());
        }
        let rule = self.effects_for(disk).and_then(|e| e.setter_of("scheduler", scheduler));
        if let Some(rule) = rule.and_then(|number| self.rules.get(number)) {
            return Some(Setter::Udev(rule.file.clone(), rule.line));
        }
        let by_word = by_command_line(disk, &self.command_line);
        Some(match (by_word, elevator(&self.command_line)) {
            (Some(name), Some(word)) if name == scheduler => Setter::CommandLine(word.to_owned()),
            (None, _) if is_kernels_choice(disk, &self.kernel, scheduler) => Setter::Kernel,
            _ if is_foreign(scheduler) => Setter::Patched,
            _ => Setter::Unknown,
        })
    }

    /// The program, in words, that sets the scheduler of the disk at each start, to another one than a udev
    /// rule does.
    #[must_use]
    pub fn other_setter(&self, disk: &Disk) -> Option<String> {
        let rule = self.rule_for(disk, "scheduler").map(|(_, value)| value);
        let daemon = self.daemons.iter().rev().find(|d| {
            let sets = d.for_disk(disk);
            sets.is_some() && sets != rule
        })?;
        Some(match daemon.setter() {
            Setter::Tuned(profile) => format!("tuned (profile {profile})"),
            Setter::Tlp(file) => format!("TLP ({file})"),
            _ => return None,
        })
    }

    /// The last udev rule that sets `queue/NAME` of the disk, and its value. It may be one of which it is not
    /// certain that it matches.
    #[must_use]
    pub fn rule_for<'a>(&'a self, disk: &Disk, name: &str) -> Option<(&'a Rule, &'a str)> {
        let (rule, value, _) = self.effects_for(disk)?.setting(name)?;
        Some((self.rules.get(rule)?, value))
    }

    /// The last udev rule that sets `queue/NAME` of the disk, if it is certain that the rule matches and that
    /// no later one does.
    pub(crate) fn certain_rule_for<'a>(&'a self, disk: &Disk, name: &str) -> Option<(&'a Rule, &'a str)> {
        let (rule, value, is_certain) = self.effects_for(disk)?.setting(name)?;
        is_certain.then_some((self.rules.get(rule)?, value))
    }

    /// Whether the rule with this place in `rules` is for the disk.
    pub(crate) fn matches(&self, rule: usize, disk: &Disk) -> Matches {
        self.effects_for(disk).map_or(Matches::Maybe, |e| e.matches(rule))
    }

    /// Whether it is certain that the rule is for the disk.
    pub(crate) fn rule_is_for(&self, rule: &Rule, disk: &Disk) -> bool {
        let at = self.rules.iter().position(|r| std::ptr::eq(r, rule));
        at.is_some_and(|at| self.matches(at, disk) == Matches::Yes)
    }

    fn effects_for(&self, disk: &Disk) -> Option<&Effects> {
        self.effects.get(&disk.name)
    }

    /// Whether the disk can be given the scheduler: its queue and its kernel have it, its zones do not need
    /// another one, and no report says that the disk stops under it.
    pub(crate) fn can_have(&self, disk: &Disk, scheduler: &str) -> bool {
        let is_offered = disk.offered.iter().any(|s| s == scheduler);
        if disk.has_old_queue() || matches!(scheduler, "cfq" | "deadline" | "noop") {
            return is_offered;
        }
        if scheduler == "bfq" && (self.has_early_bfq() || disk.is_zoned()) {
            return false;
        }
        is_offered || !(self.kernel.lacks(scheduler) || self.kernel.is_before(4, 12))
    }

    /// Whether the kernel's bfq is one of Linux 4.12 to 4.15, under which disks stopped.
    pub(crate) fn has_early_bfq(&self) -> bool {
        self.kernel.is_before(4, 16) && !self.kernel.is_before(4, 12)
    }

    /// The disks at the bottom of a disk: those that it is made of, and that are made of none.
    pub(crate) fn bottoms<'a>(&'a self, disk: &'a Disk) -> Vec<&'a Disk> {
        let (mut found, mut to_do, mut seen) = (Vec::new(), vec![disk], Vec::new());
        while let Some(disk) = to_do.pop() {
            if seen.contains(&disk.name.as_str()) {
                continue;
            }
            seen.push(&disk.name);
            let below: Vec<&Disk> = disk.below.iter().rev().filter_map(|name| self.disk(name)).collect();
            if below.is_empty() {
                found.push(disk);
            }
            to_do.extend(below);
        }
        found
    }
}

/// The schedulers of kernels as they are published, of all versions.
pub(crate) const PUBLISHED: [&str; 8] =
    ["none", "mq-deadline", "kyber", "bfq", "noop", "deadline", "cfq", "anticipatory"];

/// Whether only a patched kernel, or a module from outside, has the scheduler.
pub(crate) fn is_foreign(scheduler: &str) -> bool {
    !PUBLISHED.contains(&scheduler)
}

fn command_line_file(tree: &Tree) -> Option<String> {
    let files = ["boot/firmware/cmdline.txt", "boot/cmdline.txt"];
    files.into_iter().find(|f| tree.text_if_readable(f).is_some()).map(|f| format!("/{f}"))
}

/// The container, by the files that its managers leave.
fn container(tree: &Tree) -> Option<String> {
    if tree.exists("run/.containerenv") {
        return Some("podman".to_owned());
    }
    if tree.exists(".dockerenv") {
        return Some("docker".to_owned());
    }
    // systemd-nspawn and LXC tell the first process.
    tree.text("run/systemd/container").filter(|name| !name.is_empty())
}

fn is_guest(tree: &Tree) -> bool {
    let info = tree.text("proc/cpuinfo").unwrap_or_default();
    info.lines().any(|l| l.starts_with("flags") && l.split_whitespace().any(|f| f == "hypervisor"))
}
