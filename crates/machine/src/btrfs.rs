//! Quotas of btrfs file systems, as `/sys/fs/btrfs` has them since Linux 6.1.
//
//= linux fs/btrfs sysfs: /sys/fs/btrfs/UUID/qgroups/{enabled,mode}, /sys/fs/btrfs/UUID/devices

use crate::tree::Tree;

const FOLDER: &str = "sys/fs/btrfs";

/// A btrfs file system.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Btrfs {
    /// Its UUID.
    pub uuid: String,
    /// The block devices that it is on, such as `sda2`.
    pub devices: Vec<String>,
    /// Whether each change is charged to groups of quotas, backwards through all snapshots. Simple quotas
    /// (`squota`), which charge once and forwards, do not count.
    pub has_quotas: bool,
}

impl Btrfs {
    /// The mounted file systems, in the order of their UUIDs.
    pub(crate) fn all(tree: &Tree) -> Vec<Self> {
        let uuids = tree.names(FOLDER).into_iter().filter(|name| name.contains('-'));
        uuids.map(|uuid| Self::read(tree, uuid)).collect()
    }

    fn read(tree: &Tree, uuid: String) -> Self {
        let folder = format!("{FOLDER}/{uuid}");
        let quotas = format!("{folder}/qgroups");
        let is_on = tree.number(&format!("{quotas}/enabled")) == Some(1);
        let is_simple = tree.text(&format!("{quotas}/mode")).is_some_and(|mode| mode == "squota");
        let devices = tree.names(&format!("{folder}/devices"));
        Self { uuid, devices, has_quotas: is_on && !is_simple }
    }
}
