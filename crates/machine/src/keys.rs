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

/// What the disk has for each key. A property that udev's database has not is left out, and so are all if
/// there is none.
pub(crate) fn read(tree: &Tree, disk: &str) -> BTreeMap<&'static str, String> {
    let device = tree.text(&format!("sys/block/{disk}/dev")).unwrap_or_default();
    let database = tree.text(&format!("run/udev/data/b{device}")).unwrap_or_default();
    let value = |key: &'static str| {
        let (kind, name) = key.strip_suffix('}')?.split_once('{')?;
        match kind {
            "ENV" => {
                let mut lines = database.lines().filter_map(|l| l.strip_prefix("E:")?.split_once('='));
                lines.find(|(n, _)| *n == name).map(|(_, v)| v.to_owned())
            }
            _ => tree.text(&format!("sys/block/{disk}/{name}")),
        }
    };
    let found = KEYS.into_iter().filter_map(|key| Some((key, value(key)?)));
    found.filter(|(_, value)| !value.is_empty()).collect()
}
