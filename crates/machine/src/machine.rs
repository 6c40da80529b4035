//! All facts about a machine's disks, in one place.

use crate::cgroups::Cgroups;
use crate::disks::Disk;
use crate::mounts::Mount;
use crate::processes::Priority;
use crate::setters::{Daemon, Setter, setter};
use crate::tree::Tree;
use crate::udev::Rule;
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
    /// The control groups.
    pub cgroups: Cgroups,
    /// Processes with an I/O priority of their own.
    pub priorities: Vec<Priority>,
    /// The kernel's command line.
    pub command_line: String,
    /// The kernel's release, such as `6.12.9`.
    pub release: String,
    /// The kind of container that the program runs in, such as `docker`; `None` outside.
    pub container: Option<String>,
    /// Whether the machine is a guest of a hypervisor.
    pub is_guest: bool,
    /// Paths that exist and could not be read.
    pub unseen: Vec<String>,
    pub(crate) daemons: Vec<Daemon>,
}

impl Machine {
    /// Collects the facts below the tree's root.
    #[must_use]
    pub fn read(tree: &Tree) -> Self {
        let mut machine = Self {
            disks: Disk::all(tree),
            mounts: Mount::all(tree),
            rules: Rule::all(tree),
            units: Unit::all(tree),
            cgroups: Cgroups::read(tree),
            priorities: Priority::all(tree),
            command_line: tree.text("proc/cmdline").unwrap_or_default(),
            release: tree.text("proc/sys/kernel/osrelease").unwrap_or_default(),
            container: container(tree),
            is_guest: is_guest(tree),
            unseen: Vec::new(),
            daemons: Daemon::all(tree),
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
        setter(disk, &self.rules, &self.daemons)
    }

    /// The program, in words, that sets the scheduler of the disk at each start, to another one than a udev
    /// rule does.
    #[must_use]
    pub fn other_setter(&self, disk: &Disk) -> Option<String> {
        let rule = self.rule_for(disk, "scheduler").map(|(_, value)| value);
        let daemon = self.daemons.iter().rev().find(|d| {
            let sets = d.for_disk(&disk.name);
            sets.is_some() && sets != rule
        })?;
        Some(match &daemon.setter {
            Setter::Tuned(profile) => format!("tuned (profile {profile})"),
            Setter::Tlp(file) => format!("TLP ({file})"),
            _ => return None,
        })
    }

    /// The last udev rule that sets `queue/NAME` of the disk, and its value.
    #[must_use]
    pub fn rule_for<'a>(&'a self, disk: &Disk, name: &str) -> Option<(&'a Rule, &'a str)> {
        Rule::setting(&self.rules, disk, name)
    }
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
