//! Settings of systemd units that are about disks, as far as an administrator made them: in `/etc`.
//!
//! Units of packages are left out. Many ask for the idle class for a job at night, and it does no harm if
//! that has no effect.

use crate::tree::Tree;

const FOLDER: &str = "etc/systemd/system";
const USERS_FOLDER: &str = "etc/systemd/user";

/// A setting of a unit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unit {
    /// The unit, such as `backup.service`.
    pub name: String,
    /// The file, from the root.
    pub file: String,
    /// The key, such as `IOWeight`.
    pub key: String,
    /// The value as it is written.
    pub value: String,
}

impl Unit {
    /// All such settings, in the order of files. An empty value takes a setting back and is left out.
    pub(crate) fn all(tree: &Tree) -> Vec<Self> {
        Self::below(tree, FOLDER)
    }

    /// The settings of units that the managers of all users start.
    pub(crate) fn of_users(tree: &Tree) -> Vec<Self> {
        Self::below(tree, USERS_FOLDER)
    }

    fn below(tree: &Tree, place: &str) -> Vec<Self> {
        let mut settings = Vec::new();
        for name in tree.names(place) {
            if is_unit(&name) {
                settings.extend(read(tree, &name, &format!("{place}/{name}")));
            } else if let Some(unit) = name.strip_suffix(".d") {
                let folder = format!("{place}/{name}");
                for file in tree.names(&folder).iter().filter(|f| f.ends_with(".conf")) {
                    settings.extend(read(tree, unit, &format!("{folder}/{file}")));
                }
            }
        }
        settings
    }

    /// The number of a setting, such as a weight.
    #[must_use]
    pub fn number(&self) -> Option<u32> {
        self.value.parse().ok()
    }
}

fn is_unit(name: &str) -> bool {
    [".service", ".slice", ".scope", ".socket", ".mount"].iter().any(|end| name.ends_with(end))
}

fn read(tree: &Tree, unit: &str, path: &str) -> Vec<Unit> {
    let text = tree.text(path).unwrap_or_default();
    let lines = text.lines().filter_map(|line| line.trim().split_once('='));
    let ours = lines.map(|(k, v)| (k.trim(), v.trim())).filter(|(k, v)| k.starts_with("IO") && !v.is_empty());
    let setting = |(k, v): (&str, &str)| Unit {
        name: unit.to_owned(),
        file: format!("/{path}"),
        key: k.to_owned(),
        value: v.to_owned(),
    };
    ours.map(setting).collect()
}
