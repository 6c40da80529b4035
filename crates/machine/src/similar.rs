//! The built-in disk that is most like a real one: for questions to the lab about the disk at hand.
//!
//! The kind decides. No measurement is made; `fairhead calibrate` makes one.

use crate::disks::{Bus, Disk, Kind};

/// The name of the preset most like the disk; `None` for a disk made of others, or behind a network, of which
/// nothing is known.
#[must_use]
pub fn similar_preset(disk: &Disk) -> Option<&'static str> {
    match (disk.kind, disk.bus) {
        (Kind::Rotating, _) => Some("nas2020"),
        (Kind::Ssd, _) => Some("sata_ssd"),
        (Kind::Nvme, _) => Some("nvme"),
        (Kind::Emmc, _) => Some("emmc51"),
        (Kind::Card, Bus::Mmc) => Some("microsd_a1"),
        (Kind::Card, _) => Some("flashcard2010"),
        (Kind::Virtual | Kind::Volume | Kind::Loop | Kind::Stacked | Kind::Network, _) => None,
    }
}
