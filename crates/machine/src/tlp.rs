//! The schedulers that TLP sets.
//!
//! `DISK_DEVICES` and `DISK_IOSCHED` are lists of equal order. A disk is named by its name or by its ID, a
//! link in `/dev/disk/by-id`. A disk without a word of its own, or with `keep` or `_`, is left as it is.
//! Files of `/etc/tlp.d` are read in the order of their names, and `/etc/tlp.conf` last: the last assignment
//! counts, and `+=` adds to it.
//
//= https://linrunner.de/tlp/settings/disks.html; https://linrunner.de/tlp/settings/introduction.html

use crate::disks::Disk;
use crate::tree::Tree;

/// What TLP sets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Tlp {
    /// The file that names the schedulers.
    pub(crate) file: String,
    disks: Vec<String>,
    schedulers: Vec<String>,
}

impl Tlp {
    /// Reads TLP's settings; `None` if it is not there, is switched off, or sets no scheduler.
    pub(crate) fn read(tree: &Tree) -> Option<Self> {
        let parts = tree.names("etc/tlp.d").into_iter().filter(|n| n.ends_with(".conf"));
        let mut files = vec!["etc/default/tlp".to_owned()];
        files.extend(parts.map(|n| format!("etc/tlp.d/{n}")));
        files.push("etc/tlp.conf".to_owned());
        let (mut disks, mut schedulers, mut from) = (None, String::new(), None);
        let mut is_on = true;
        for file in files {
            let text = tree.text(&file).unwrap_or_default();
            for (key, adds, value) in text.lines().filter_map(assignment) {
                match key {
                    "DISK_DEVICES" => put(disks.get_or_insert_default(), adds, &value),
                    "DISK_IOSCHED" => {
                        put(&mut schedulers, adds, &value);
                        from = Some(format!("/{file}"));
                    }
                    "TLP_ENABLE" => is_on = value.trim() != "0",
                    _ => {}
                }
            }
        }
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        // These two names are TLP's own default; an empty list switches the settings off.
        let disks = words(&disks.unwrap_or_else(|| "nvme0n1 sda".to_owned()));
        from.filter(|_| is_on).map(|file| Self { file, disks, schedulers: words(&schedulers) })
    }

    /// The scheduler that it sets for the disk.
    pub(crate) fn for_disk(&self, disk: &Disk) -> Option<&str> {
        let is = |name: &String| {
            *name == disk.name || disk.links.iter().any(|l| l.strip_prefix("disk/by-id/") == Some(name))
        };
        // Of a disk that is named twice the last word counts.
        let at = self.disks.iter().rposition(is)?;
        self.schedulers.get(at).map(String::as_str).filter(|s| !matches!(*s, "keep" | "_"))
    }
}

fn put(list: &mut String, adds: bool, value: &str) {
    if !adds {
        list.clear();
    }
    list.push(' ');
    list.push_str(value);
}

/// `KEY="value"  # comment`: key, whether it adds, and the value.
fn assignment(line: &str) -> Option<(&str, bool, String)> {
    let (key, value) = line.trim().split_once('=')?;
    if key.starts_with('#') {
        return None;
    }
    let (key, adds) = key.strip_suffix('+').map_or((key, false), |k| (k, true));
    let value = value.trim();
    let inner = match value.strip_prefix(['"', '\'']) {
        Some(rest) => rest.split(['"', '\'']).next().unwrap_or_default(),
        None => value.split('#').next().unwrap_or_default().trim(),
    };
    Some((key.trim(), adds, inner.to_owned()))
}
