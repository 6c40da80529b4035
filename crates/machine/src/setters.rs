//! What set the scheduler of a disk.
//!
//! A program leaves no trace when it writes to sysfs. What is known is which settings would give what is in
//! force: the last udev rule for the disk, the active profile of tuned, TLP, or the kernel's own choice.

use crate::disks::Disk;
use crate::tree::Tree;
use crate::udev::Rule;

/// What has probably set the scheduler.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Setter {
    /// A udev rule: file and line.
    Udev(String, usize),
    /// The active profile of tuned.
    Tuned(String),
    /// TLP, by its file.
    Tlp(String),
    /// The kernel: `none` for a disk with several hardware queues, else `mq-deadline`.
    Kernel,
    /// None of these: a person, or a program that wrote to sysfs.
    Unknown,
}

/// A program that sets schedulers at start-up, with what it would set.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Daemon {
    pub(crate) setter: Setter,
    /// The disks by name; none for all.
    disks: Vec<String>,
    /// The schedulers in the same order; the last is for all that follow.
    schedulers: Vec<String>,
}

impl Daemon {
    /// What tuned and TLP would set.
    pub(crate) fn all(tree: &Tree) -> Vec<Self> {
        [tuned(tree), tlp(tree)].into_iter().flatten().collect()
    }

    /// What it sets for the disk.
    pub(crate) fn for_disk(&self, disk: &str) -> Option<&str> {
        let at = match self.disks.as_slice() {
            [] => 0,
            disks => disks.iter().position(|d| d == disk)?,
        };
        self.schedulers.get(at).or(self.schedulers.last()).map(String::as_str)
    }
}

/// The profile that tuned has active; one may include others, which are not followed.
fn tuned(tree: &Tree) -> Option<Daemon> {
    let profile = tree.text("etc/tuned/active_profile")?;
    let folders = ["etc/tuned", "etc/tuned/profiles", "usr/lib/tuned", "usr/lib/tuned/profiles"];
    let text = folders.iter().find_map(|f| tree.text(&format!("{f}/{profile}/tuned.conf")))?;
    let disk = section(&text, "disk");
    let value = |key: &str| assigned(&disk, key).map(str::to_owned);
    let schedulers = vec![value("elevator")?];
    let disks = value("devices").unwrap_or_default();
    let disks =
        disks.split([',', ' ']).filter(|d| !d.is_empty() && !d.contains('*')).map(str::to_owned).collect();
    Some(Daemon { setter: Setter::Tuned(profile), disks, schedulers })
}

/// The lines of a section `[NAME]`.
fn section<'a>(text: &'a str, name: &str) -> Vec<&'a str> {
    let header = format!("[{name}]");
    let lines = text.lines().map(str::trim).skip_while(|l| *l != header).skip(1);
    lines.take_while(|l| !l.starts_with('[')).collect()
}

/// The value of the last line `KEY=value`.
fn assigned<'a>(lines: &[&'a str], key: &str) -> Option<&'a str> {
    let value = |line: &&'a str| {
        let (k, v) = line.split_once('=')?;
        (k.trim() == key).then(|| v.trim().trim_matches('"'))
    };
    lines.iter().rev().find_map(value)
}

fn tlp(tree: &Tree) -> Option<Daemon> {
    let mut files = vec!["etc/tlp.conf".to_owned()];
    files.extend(tree.names("etc/tlp.d").into_iter().map(|n| format!("etc/tlp.d/{n}")));
    let (mut disks, mut schedulers, mut from) = (Vec::new(), Vec::new(), None);
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    for file in files {
        let text = tree.text(&file).unwrap_or_default();
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        if let Some(names) = assigned(&lines, "DISK_DEVICES") {
            disks = words(names);
        }
        if let Some(names) = assigned(&lines, "DISK_IOSCHED") {
            schedulers = words(names);
            from = Some(format!("/{file}"));
        }
    }
    // TLP's own default is these two names.
    if disks.is_empty() {
        disks = vec!["nvme0n1".to_owned(), "sda".to_owned()];
    }
    Some(Daemon { setter: Setter::Tlp(from?), disks, schedulers })
}

/// The kernel's own choice for the disk.
pub(crate) fn kernel_default(disk: &Disk) -> &'static str {
    let single = disk.hardware_queues <= 1 && !matches!(disk.kind, crate::disks::Kind::Loop);
    if single && disk.offered.iter().any(|s| s == "mq-deadline") { "mq-deadline" } else { "none" }
}

/// What has probably set the scheduler that is in force.
pub(crate) fn setter(disk: &Disk, rules: &[Rule], daemons: &[Daemon]) -> Option<Setter> {
    let scheduler = disk.scheduler.as_deref()?;
    // Daemons come after udev at start-up.
    let daemon = daemons.iter().rev().find(|d| d.for_disk(&disk.name) == Some(scheduler));
    if let Some(daemon) = daemon {
        return Some(daemon.setter.clone());
    }
    Some(match Rule::setting(rules, disk, "scheduler") {
        Some((rule, value)) if value == scheduler => Setter::Udev(rule.file.clone(), rule.line),
        _ if kernel_default(disk) == scheduler => Setter::Kernel,
        _ => Setter::Unknown,
    })
}
