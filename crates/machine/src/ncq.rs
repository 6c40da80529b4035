//! Whether a SATA disk and its controller can queue commands at all (NCQ).
//!
//! ```text
//! /sys/devices/pci…/ata1/host0/target0:0:0/0:0:0:0/block/sda    what /sys/block/sda is a link to
//!                   ata1/host0/scsi_host/host0/can_queue        how many commands the controller takes: 1, 31 or 32
//!                   ata1/link1/dev1.0/ata_device/dev1.0/id      what the disk says about itself: 256 words
//! ```
//!
//! Bit 8 of word 76 is set if the disk can. Behind a port multiplier the disk's words are not looked for.
//
//= ATA/ATAPI Command Set (ACS-3) 7.12.7.36 "Word 76: Serial ATA Capabilities"
//= linux Documentation/ABI/testing/sysfs-ata

use crate::tree::Tree;

/// Whether both can; `None` where the kernel does not tell.
pub(crate) fn is_able(tree: &Tree, disk: &str) -> Option<bool> {
    let link = tree.link(&format!("sys/block/{disk}"))?;
    let parts: Vec<&str> = link.trim_start_matches("../").split('/').collect();
    let is_port = |p: &&str| p.strip_prefix("ata").is_some_and(|n| n.parse::<u32>().is_ok());
    let at = parts.iter().position(is_port)?;
    let (port, host) = (format!("sys/{}", parts[..=at].join("/")), *parts.get(at + 1)?);
    if tree.number(&format!("{port}/{host}/scsi_host/{host}/can_queue")) == Some(1) {
        return Some(false);
    }
    // Host, channel, target and unit.
    let target = parts.get(at + 3)?.split(':').nth(2)?;
    let number = parts[at].trim_start_matches("ata");
    let device = format!("dev{number}.{target}");
    let words = tree.text(&format!("{port}/link{number}/{device}/ata_device/{device}/id"))?;
    let word = u16::from_str_radix(words.split_ascii_whitespace().nth(76)?, 16).ok()?;
    Some(word & 1 << 8 != 0)
}
