//! The properties and attributes by which a udev rule can know a disk ([`Identity`](crate::Identity) tells
//! which of them it takes), and what a disk has for each. Properties are read from udev's database in
//! `/run/udev/data`, attributes from `/sys`.
//
//= udev(7); Documentation/ABI/stable/sysfs-block

use crate::tree::Tree;
use std::collections::BTreeMap;

/// The keys, the best first.
pub(crate) const KEYS: [&str; 6] = [
    "ENV{ID_SERIAL}",
    "ENV{ID_WWN}",
    "ATTR{wwid}",
    "ATTR{serial}",
    "ATTR{loop/backing_file}",
    "ENV{ID_PATH}",
];

/// What udev's database has about a disk.
#[derive(Default)]
pub(crate) struct Database {
    /// Whether it has an entry.
    pub(crate) exists: bool,
    /// The properties: lines `E:KEY=VALUE`.
    pub(crate) properties: BTreeMap<String, String>,
    /// The links below `/dev`: lines `S:disk/by-id/…`.
    pub(crate) links: Vec<String>,
}

impl Database {
    /// Reads the entry of the disk with this device number, such as `8:0`.
    pub(crate) fn read(tree: &Tree, device: &str) -> Self {
        let path = format!("run/udev/data/b{device}");
        let text = tree.text(&path).unwrap_or_default();
        let properties = text.lines().filter_map(|l| l.strip_prefix("E:")?.split_once('='));
        Self {
            exists: tree.exists(&path),
            // Of a property that is there twice, the first counts.
            properties: properties.rev().map(|(k, v)| (k.to_owned(), v.to_owned())).collect(),
            links: text.lines().filter_map(|l| l.strip_prefix("S:")).map(str::to_owned).collect(),
        }
    }
}

/// What the disk has for each key. A property that udev's database has not is left out, and so are all if
/// there is none.
pub(crate) fn read(tree: &Tree, disk: &str, database: &Database) -> BTreeMap<&'static str, String> {
    let value = |key: &'static str| {
        let (kind, name) = key.strip_suffix('}')?.split_once('{')?;
        match kind {
            "ENV" => database.properties.get(name).cloned(),
            _ => tree.text(&format!("sys/block/{disk}/{name}")),
        }
    };
    let found = KEYS.into_iter().filter_map(|key| Some((key, value(key)?)));
    found.filter(|(_, value)| !value.is_empty()).collect()
}
