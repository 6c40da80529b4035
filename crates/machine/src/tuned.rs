//! The schedulers that the active profile of tuned sets.
//!
//! ```text
//! [main]                       a profile is its own sections over those of the profiles it includes
//! include=throughput-performance
//! [disk_fast]                  a section is an instance of the plug-in `type`, by default of its own name
//! type=disk
//! devices=nvme*, !nvme1n1      patterns; with `!` what is left out; all disks if there is none
//! elevator=none
//! ```
//!
//! A disk belongs to the first instance of `disk` that takes it, in the order of `priority` and then of
//! sections; no other one sets anything for it. Disks that can be taken out, and cards, belong to none. An
//! instance of `sysfs` writes to paths: `/sys/block/sd*/queue/scheduler=bfq`.
//!
//! What this does not do: run the functions `${f:…}` of a profile. A value with one is unknown.
//
//= tuned.conf(5); Red Hat Enterprise Linux 9, "Customizing TuneD profiles"

use std::collections::BTreeMap;

use crate::disks::{Bus, Disk};
use crate::tree::Tree;
use crate::udev::glob;

/// Where profiles are, the strongest first.
const FOLDERS: [&str; 4] = ["etc/tuned/profiles", "etc/tuned", "usr/lib/tuned/profiles", "usr/lib/tuned"];

/// How many profiles are read: one may include itself.
const PROFILES_MAX: usize = 64;

/// The active profile.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Tuned {
    /// Its name; several are divided by blanks.
    pub(crate) profile: String,
    instances: Vec<Section>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Section {
    name: String,
    options: BTreeMap<String, String>,
}

impl Section {
    fn option(&self, key: &str) -> Option<&str> {
        self.options.get(key).map(String::as_str)
    }

    fn is_set(&self, key: &str) -> Option<bool> {
        Some(matches!(self.option(key)?.to_ascii_lowercase().as_str(), "1" | "true" | "yes" | "y" | "on"))
    }

    fn kind(&self) -> &str {
        self.option("type").unwrap_or(&self.name)
    }

    fn priority(&self) -> i64 {
        self.option("priority").and_then(|p| p.parse().ok()).unwrap_or(0)
    }

    /// Whether the instance takes the disk; `None` if that is not known.
    fn takes(&self, disk: &Disk) -> Option<bool> {
        if let Some(regex) = self.option("devices_udev_regex") {
            return has_property(disk, regex);
        }
        let words = self.option("devices").unwrap_or("*");
        if words.contains("${") {
            return None;
        }
        let words = words.split([',', ' ', '\t', ';']).filter(|w| !w.is_empty());
        let (without, with): (Vec<&str>, Vec<&str>) = words.partition(|w| w.starts_with('!'));
        let is_with = with.is_empty() || with.iter().any(|p| glob(p, &disk.name));
        Some(is_with && !without.iter().any(|p| glob(&p[1..], &disk.name)))
    }
}

impl Tuned {
    /// Reads the active profile; `None` if there is none.
    pub(crate) fn read(tree: &Tree) -> Option<Self> {
        let profile = tree.text("etc/tuned/active_profile").filter(|p| !p.is_empty())?;
        let (mut sections, mut left) = (Vec::new(), PROFILES_MAX);
        for name in profile.split_whitespace() {
            merge(&mut sections, load(tree, name, &mut left));
        }
        let variables = sections.iter().find(|s| s.name == "variables").cloned();
        let is_ours =
            |s: &Section| matches!(s.kind(), "disk" | "sysfs") && s.is_set("enabled") != Some(false);
        let mut instances: Vec<Section> = sections.into_iter().filter(is_ours).collect();
        for instance in &mut instances {
            instance.options.values_mut().for_each(|v| *v = expanded(v, variables.as_ref()));
        }
        instances.sort_by_key(Section::priority);
        Some(Self { profile, instances })
    }

    /// The scheduler that it sets for the disk.
    pub(crate) fn for_disk(&self, disk: &Disk) -> Option<&str> {
        let set = self.by_path(disk).or_else(|| self.by_plug_in(disk))?;
        Some(set).filter(|e| !e.is_empty() && !e.contains("${"))
    }

    fn by_plug_in(&self, disk: &Disk) -> Option<&str> {
        if disk.removable || disk.bus == Bus::Mmc {
            return None;
        }
        let mut disks = self.instances.iter().filter(|i| i.kind() == "disk");
        let instance = disks.find(|i| i.takes(disk) != Some(false))?;
        instance.takes(disk).and(instance.option("elevator"))
    }

    fn by_path(&self, disk: &Disk) -> Option<&str> {
        let path = format!("/sys/block/{}/queue/scheduler", disk.name);
        let mut paths = self.instances.iter().filter(|i| i.kind() == "sysfs").flat_map(|i| &i.options);
        // Of two patterns that fit, the last counts.
        paths.rfind(|(pattern, _)| glob(pattern, &path)).map(|(_, value)| value.as_str())
    }
}

/// The sections of a profile over those of the profiles that it includes; `left` profiles may be read.
fn load(tree: &Tree, profile: &str, left: &mut usize) -> Vec<Section> {
    if *left == 0 || profile.contains('/') || profile.starts_with('.') {
        return Vec::new();
    }
    *left -= 1;
    let text = FOLDERS.iter().find_map(|f| tree.text(&format!("{f}/{profile}/tuned.conf")));
    let own = parse(&text.unwrap_or_default());
    let main = own.iter().find(|s| s.name == "main");
    let includes = main.and_then(|m| m.option("include")).unwrap_or_default().to_owned();
    let mut sections = Vec::new();
    // A name after a minus sign may be missing.
    for name in includes.split([',', ' ']).map(|n| n.trim_start_matches('-')).filter(|n| !n.is_empty()) {
        merge(&mut sections, load(tree, name, left));
    }
    merge(&mut sections, own);
    sections
}

/// Lays sections over others: options of one name are replaced, `drop` takes some away, and with `replace`
/// nothing of the old section stays.
fn merge(sections: &mut Vec<Section>, over: Vec<Section>) {
    for new in over {
        let Some(old) = sections.iter_mut().find(|s| s.name == new.name) else {
            sections.push(new);
            continue;
        };
        if new.is_set("replace") == Some(true) {
            *old = new;
            continue;
        }
        for dropped in new.option("drop").unwrap_or_default().split(',') {
            old.options.remove(dropped.trim());
        }
        // What an instance is for is the new section's word, or its default.
        for key in ["type", "devices", "devices_udev_regex", "enabled"] {
            old.options.remove(key);
        }
        old.options.extend(new.options);
    }
}

fn parse(text: &str) -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    for line in text.lines().map(str::trim).filter(|l| !l.starts_with(['#', ';'])) {
        if let Some(name) = line.strip_prefix('[').and_then(|l| l.split(']').next()) {
            sections.push(Section { name: name.trim().to_owned(), options: BTreeMap::new() });
        } else if let (Some(section), Some((key, value))) = (sections.last_mut(), line.split_once('=')) {
            let value = value.trim().trim_matches('"').to_owned();
            section.options.insert(key.trim().to_owned(), value);
        }
    }
    sections
}

/// The value with `${NAME}` replaced by variables of the profile, as far as there are such.
fn expanded(value: &str, variables: Option<&Section>) -> String {
    let mut value = value.to_owned();
    for (name, text) in variables.into_iter().flat_map(|v| &v.options) {
        value = value.replace(&format!("${{{name}}}"), text);
    }
    value
}

/// Whether a property of the disk fits an expression like `(ID_WWN=0x5)|(ID_WWN=0x6)`; `None` for an
/// expression with more to it.
fn has_property(disk: &Disk, regex: &str) -> Option<bool> {
    if regex.contains(['*', '+', '?', '[', '\\', '^', '$', '{']) || disk.properties.is_empty() {
        return None;
    }
    let mut words = regex.split('|').map(|w| w.trim_matches(['(', ')'])).filter(|w| !w.is_empty());
    Some(words.any(|w| disk.properties.iter().any(|(k, v)| format!("{k}={v}").contains(w))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_over_another() {
        let mut sections = parse("[main]\na=1\n[disk]\ndevices=sda\nelevator=none\nreadahead=>4096\n");
        merge(&mut sections, parse("# mine\n[disk]\nelevator = bfq\ndrop=readahead\n[net]\n"));
        let disk = &sections[1];
        assert_eq!((disk.option("elevator"), disk.option("devices")), (Some("bfq"), None));
        assert_eq!((disk.option("readahead"), sections.len()), (None, 3));
        merge(&mut sections, parse("[disk]\nreplace=1\n"));
        assert_eq!(sections[1].option("elevator"), None);
    }

    #[test]
    fn variables_are_put_in() {
        let variables = parse("[variables]\nsched=bfq\n").remove(0);
        assert_eq!(expanded("${sched}", Some(&variables)), "bfq");
        assert_eq!(expanded("${f:exec:x}", Some(&variables)), "${f:exec:x}");
    }
}
