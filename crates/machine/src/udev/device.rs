//! What a rule's conditions see of a disk: its name, attributes and properties, and those of the devices that
//! it hangs on.
//!
//! ```text
//! /sys/devices/pci0000:00/0000:00:14.0/usb1/1-2/host6/target6:0:0/6:0:0:0/block/sda     the disk
//!                                           1-2      ◄── SUBSYSTEMS=="usb", ATTRS{idVendor}=="0951"
//! ```
//!
//! Conditions on parents (`KERNELS`, `SUBSYSTEMS`, `DRIVERS`, `ATTRS`) must all hold for one of these.
//
//= udev(7)

use std::collections::BTreeMap;

use super::Matches;
use super::glob::glob;
use super::rule::{Condition, Rule, property};
use crate::disks::Disk;
use crate::tree::Tree;

/// A disk, as rules see it at one event.
pub(super) struct Device<'a> {
    pub(super) tree: &'a Tree,
    pub(super) disk: &'a Disk,
    /// The event: `add` or `change`.
    pub(super) action: &'a str,
    /// Properties that rules assigned; no value for one that is not known.
    pub(super) assigned: BTreeMap<String, Option<String>>,
    /// The folders of the disk and of what it hangs on, from `sys/`, the disk first.
    chain: Vec<String>,
}

/// What there is for a key.
enum Value {
    /// Any of these will do.
    Of(Vec<String>),
    /// There is nothing: no condition holds.
    Missing,
    /// It is not looked up here.
    Unknown,
}

impl Value {
    fn one(text: &str) -> Self {
        Self::Of(vec![text.to_owned()])
    }
}

impl<'a> Device<'a> {
    pub(super) fn new(tree: &'a Tree, disk: &'a Disk, action: &'a str) -> Self {
        Self { tree, disk, action, assigned: BTreeMap::new(), chain: chain(tree, &disk.name) }
    }

    /// Whether all conditions of the rule hold.
    pub(super) fn fits(&self, rule: &Rule) -> Matches {
        let (of_parents, own): (Vec<&Condition>, Vec<&Condition>) =
            rule.conditions.iter().partition(|c| is_of_parents(&c.key));
        let own = all(own.iter().map(|c| self.holds(c)));
        if own == Matches::No || of_parents.is_empty() {
            return own;
        }
        let at = |folder: &String| all(of_parents.iter().map(|c| self.holds_at(c, folder)));
        let parents = self.chain.iter().map(at).max().unwrap_or(Matches::No);
        own.min(parents)
    }

    fn holds(&self, condition: &Condition) -> Matches {
        if let Some(file) = condition.key.strip_prefix("TEST") {
            // The braces may have a mode; what is there is taken to have it.
            return if file.is_empty() || file.starts_with('{') {
                self.test(condition)
            } else {
                Matches::Maybe
            };
        }
        // The scheduler was another one when the rule ran: a bracket in a pattern asks for what was in force.
        if condition.key == "ATTR{queue/scheduler}" && condition.pattern.contains(['[', '\\']) {
            return Matches::Maybe;
        }
        judge(condition, self.value(&condition.key))
    }

    /// What the disk has for a key that is not about parents.
    fn value(&self, key: &str) -> Value {
        match key {
            "KERNEL" => Value::one(&self.disk.name),
            "SUBSYSTEM" => Value::one("block"),
            "ACTION" => Value::one(self.action),
            "DRIVER" => Value::one(""),
            "DEVPATH" => Value::one(self.chain[0].trim_start_matches("sys")),
            "SYMLINK" if self.disk.is_in_database => Value::Of(self.disk.links.clone()),
            _ => match key.split_once('{').map(|(kind, name)| (kind, name.trim_end_matches('}'))) {
                Some(("ATTR", file)) => self.attribute(&format!("sys/block/{}", self.disk.name), file),
                Some(("SYSCTL", name)) => self.attribute("proc/sys", &name.replace('.', "/")),
                Some(("ENV", _)) => property(key).map_or(Value::Unknown, |name| self.property(name)),
                _ => Value::Unknown,
            },
        }
    }

    fn property(&self, name: &str) -> Value {
        if let Some(value) = self.assigned.get(name) {
            return value.as_deref().map_or(Value::Unknown, Value::one);
        }
        match name {
            "DEVTYPE" => Value::one("disk"),
            "SUBSYSTEM" => Value::one("block"),
            "ACTION" => Value::one(self.action),
            "DEVNAME" => Value::one(&format!("/dev/{}", self.disk.name.replace('!', "/"))),
            // Names with a dot are not kept, and without the database it is not known what there is.
            _ if name.starts_with('.') => Value::Unknown,
            _ => match self.disk.properties.get(name) {
                Some(value) => Value::one(value),
                None if self.disk.is_in_database => Value::one(""),
                None => Value::Unknown,
            },
        }
    }

    /// The attribute of a device. One that is missing in a folder that is there is missing; a copy of
    /// another machine may lack a folder.
    fn attribute(&self, folder: &str, file: &str) -> Value {
        if let Some((device, file)) = file.strip_prefix('[').and_then(|f| f.split_once(']')) {
            return self.attribute_of_other(device, file);
        }
        let path = format!("{folder}/{file}");
        match self.tree.text_if_readable(&path) {
            Some(text) => Value::Of(vec![text]),
            None if self.tree.exists(&path) => Value::Unknown,
            None => match path.rsplit_once('/') {
                Some((folder, _)) if self.tree.exists(folder) => Value::Missing,
                _ => Value::Unknown,
            },
        }
    }

    /// The attribute of a device elsewhere: `[dmi/id]sys_vendor` is that of device `id` of subsystem `dmi`.
    fn attribute_of_other(&self, device: &str, file: &str) -> Value {
        let Some((subsystem, name)) = device.split_once('/') else { return Value::Unknown };
        let folders =
            [format!("sys/class/{subsystem}/{name}"), format!("sys/bus/{subsystem}/devices/{name}")];
        let text = folders.iter().find_map(|f| self.tree.text_if_readable(&format!("{f}/{file}")));
        text.map_or(Value::Unknown, |t| Value::Of(vec![t]))
    }

    /// Whether there is a file of that name, from the device's folder or from the root.
    fn test(&self, condition: &Condition) -> Matches {
        let pattern = &condition.pattern;
        if pattern.contains(['$', '%', '*', '?', '[']) {
            return Matches::Maybe;
        }
        let path = match pattern.strip_prefix('/') {
            Some(path) => path.to_owned(),
            None => format!("sys/block/{}/{pattern}", self.disk.name),
        };
        let is_there = self.tree.exists(&path);
        // Of a path from the root, a copy has a part only; of the disk's folder it has all.
        if !is_there && pattern.starts_with('/') && !self.tree.is_live() {
            return Matches::Maybe;
        }
        if is_there == condition.differs { Matches::No } else { Matches::Yes }
    }

    /// Whether a condition on parents holds for the device in the folder.
    fn holds_at(&self, condition: &Condition, folder: &str) -> Matches {
        let base = folder.rsplit('/').next().unwrap_or_default();
        let link = |name: &str| {
            let target = self.tree.link(&format!("{folder}/{name}"))?;
            Some(target.rsplit('/').next().unwrap_or_default().to_owned())
        };
        let value = match condition.key.as_str() {
            "KERNELS" => Value::one(base),
            "SUBSYSTEMS" => link("subsystem")
                .or_else(|| likely_subsystem(folder))
                .map_or(if self.tree.is_live() { Value::one("") } else { Value::Unknown }, |s| {
                    Value::one(&s)
                }),
            "DRIVERS" => match link("driver") {
                Some(driver) => Value::one(&driver),
                None if self.tree.is_live() => Value::one(""),
                None => Value::Unknown,
            },
            key => match key.strip_prefix("ATTRS{").and_then(|k| k.strip_suffix('}')) {
                Some(file) => match self.attribute(folder, file) {
                    // A copy may have the folders and not all of their files.
                    Value::Missing if !self.tree.is_live() => Value::Unknown,
                    value => value,
                },
                None => Value::Unknown,
            },
        };
        judge(condition, value)
    }
}

fn is_of_parents(key: &str) -> bool {
    matches!(key, "KERNELS" | "SUBSYSTEMS" | "DRIVERS" | "TAGS") || key.starts_with("ATTRS{")
}

fn all(answers: impl Iterator<Item = Matches>) -> Matches {
    answers.min().unwrap_or(Matches::Yes)
}

fn judge(condition: &Condition, value: Value) -> Matches {
    let values = match value {
        Value::Of(values) => values,
        Value::Missing => return Matches::No,
        Value::Unknown => return Matches::Maybe,
    };
    if condition.pattern.contains('$') {
        return Matches::Maybe;
    }
    let case = |text: &str| if condition.ignores_case { text.to_lowercase() } else { text.to_owned() };
    let pattern = case(&condition.pattern);
    // White space at the end of an attribute is not read; a pattern may have it.
    let fits = |v: &String| pattern.split('|').any(|p| glob(p, &case(v)) || glob(p.trim_end(), &case(v)));
    if values.iter().any(fits) == condition.differs { Matches::No } else { Matches::Yes }
}

/// The folders of the disk and of the devices that it hangs on. A folder without a file `uevent` is no
/// device, if the tree has such files at all.
fn chain(tree: &Tree, disk: &str) -> Vec<String> {
    let Some(link) = tree.link(&format!("sys/block/{disk}")) else {
        return vec![format!("sys/block/{disk}")];
    };
    let path = format!("sys/{}", link.trim_start_matches("../").trim_start_matches("/sys/"));
    let mut folders = Vec::new();
    let mut rest = path.as_str();
    while rest.matches('/').count() > 2 || folders.is_empty() {
        folders.push(rest.to_owned());
        let Some((parent, _)) = rest.rsplit_once('/') else { break };
        rest = parent;
    }
    let is_device = |f: &String| tree.exists(&format!("{f}/uevent"));
    if folders[1..].iter().any(is_device) {
        let disk = folders.remove(0);
        folders.retain(is_device);
        folders.insert(0, disk);
    }
    folders
}

/// The subsystem of a device by its name, for a copy without the links.
fn likely_subsystem(folder: &str) -> Option<String> {
    let mut parts = folder.rsplit('/');
    let (name, parent) = (parts.next()?, parts.next().unwrap_or_default());
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_hexdigit());
    let numbers = name.split(':').filter(|n| is_number(n.split('.').next().unwrap_or_default())).count();
    let begins =
        |prefix: &str| name.strip_prefix(prefix).is_some_and(|n| n.starts_with(|c: char| c.is_ascii_digit()));
    let subsystem = if parent == "block" {
        "block"
    } else if name.starts_with("pci") || name == "block" {
        // The root of a bus, or no device at all.
        ""
    } else if numbers == 4 && name.matches(':').count() == 3 || begins("host") || begins("target") {
        "scsi"
    } else if numbers == 3 && name.matches(':').count() == 2 && name.contains('.') {
        "pci"
    } else if begins("usb") || (name.contains('-') && name.starts_with(|c: char| c.is_ascii_digit())) {
        "usb"
    } else if begins("virtio") {
        "virtio"
    } else if begins("nvme") {
        "nvme"
    } else if begins("mmc") {
        "mmc"
    } else {
        return None;
    };
    Some(subsystem.to_owned())
}
