//! The disks of a machine, as `/sys/block` describes them.

use crate::keys;
use crate::ncq;
use crate::tree::Tree;
use std::collections::BTreeMap;

/// What a disk is made of, as far as the kernel can tell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A rotating disk.
    Rotating,
    /// An SSD with one queue: SATA or SAS.
    Ssd,
    /// An SSD on NVMe.
    Nvme,
    /// A USB stick or an SD card: flash that does one thing at a time.
    Card,
    /// An eMMC device, soldered in.
    Emmc,
    /// A disk of a hypervisor. What is below it cannot be seen.
    Virtual,
    /// A file as a disk.
    Loop,
    /// A disk made of others: device mapper or md.
    Stacked,
    /// A disk behind a network: nbd or rbd.
    Network,
}

impl Kind {
    /// The kind in words.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rotating => "rotating disk",
            Self::Ssd => "SSD",
            Self::Nvme => "NVMe SSD",
            Self::Card => "flash card or stick",
            Self::Emmc => "eMMC device",
            Self::Virtual => "virtual disk",
            Self::Loop => "file as a disk (loop)",
            Self::Stacked => "made of other disks",
            Self::Network => "network disk",
        }
    }
}

/// How a disk is attached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "names of buses")]
pub enum Bus {
    Sata,
    Sas,
    Usb,
    Nvme,
    Mmc,
    Virtio,
    Xen,
    None,
}

impl Bus {
    /// The bus in words; empty for a disk without one.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sata => "SATA",
            Self::Sas => "SAS or SCSI",
            Self::Usb => "USB",
            Self::Nvme => "PCIe",
            Self::Mmc => "MMC",
            Self::Virtio => "virtio",
            Self::Xen => "Xen",
            Self::None => "",
        }
    }
}

/// What a loop device is made of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Loop {
    /// The file.
    pub file: String,
    /// Whether it passes the page cache.
    pub direct: bool,
}

/// One disk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Disk {
    /// Its name in `/sys/block`, such as `sda`.
    pub name: String,
    /// What it is made of.
    pub kind: Kind,
    /// How it is attached.
    pub bus: Bus,
    /// The model as the device names it; empty if it does not.
    pub model: String,
    /// The serial number as udev names it (`ID_SERIAL`), if its database has one.
    pub id_serial: Option<String>,
    /// What a udev rule could know the disk by: key of the rule, such as `ENV{ID_SERIAL}`, and value.
    pub identity: BTreeMap<&'static str, String>,
    /// Whether udev's database has an entry for the disk.
    pub is_in_database: bool,
    /// The size in bytes.
    pub bytes: u64,
    /// Whether the kernel takes it for a rotating disk.
    pub rotational: bool,
    /// The number of hardware queues.
    pub hardware_queues: usize,
    /// How many commands the device takes at once, where the kernel says so (SCSI).
    pub device_depth: Option<u32>,
    /// Whether the disk and its controller can take several commands at once, where the kernel says so (ATA).
    pub can_queue: Option<bool>,
    /// The scheduler in force; `None` for a disk without a queue of requests.
    pub scheduler: Option<String>,
    /// The schedulers that could be chosen now.
    pub offered: Vec<String>,
    /// The files of `queue/`, by name.
    pub queue: BTreeMap<String, String>,
    /// The tunables of the scheduler, by name.
    pub tunables: BTreeMap<String, String>,
    /// Whether the device itself has a volatile write cache, where the kernel asked it (SCSI).
    pub device_write_back: Option<bool>,
    /// The disks that it is made of.
    pub below: Vec<String>,
    /// The disks that are made of it.
    pub above: Vec<String>,
    /// What a loop device is made of.
    pub backing: Option<Loop>,
}

impl Disk {
    /// The number in the file `name` of `queue/`.
    #[must_use]
    pub fn queue_number(&self, name: &str) -> Option<i64> {
        self.queue.get(name)?.parse().ok()
    }

    /// The number of a tunable of the scheduler.
    #[must_use]
    pub fn tunable(&self, name: &str) -> Option<i64> {
        self.tunables.get(name)?.parse().ok()
    }

    /// Whether this scheduler is in force.
    #[must_use]
    pub fn runs(&self, scheduler: &str) -> bool {
        self.scheduler.as_deref() == Some(scheduler)
    }

    /// Reads all disks, without those that are empty and those of the kernel's own use (memory, floppy and
    /// optical disks).
    pub(crate) fn all(tree: &Tree) -> Vec<Self> {
        tree.names("sys/block").iter().filter_map(|name| Self::read(tree, name)).collect()
    }

    fn read(tree: &Tree, name: &str) -> Option<Self> {
        if ["ram", "zram", "fd", "sr"].iter().any(|p| is_numbered(name, p)) {
            return None;
        }
        let file = |path: &str| format!("sys/block/{name}/{path}");
        let sectors: u64 = tree.number(&file("size"))?;
        if sectors == 0 {
            return None;
        }
        let path = tree.link(&format!("sys/block/{name}")).unwrap_or_default();
        let bus = bus(name, &path);
        let rotational = tree.number(&file("queue/rotational")) == Some(1);
        let mut model = tree.text(&file("device/model")).unwrap_or_default();
        if model.is_empty() {
            // Cards have a name instead.
            model = tree.text(&file("device/name")).unwrap_or_default();
        }
        let mut kind = kind(name, bus, rotational, &model);
        if bus == Bus::Mmc && tree.text(&file("device/type")).as_deref() == Some("MMC") {
            kind = Kind::Emmc;
        }
        let (scheduler, offered) = schedulers(&tree.text(&file("queue/scheduler")).unwrap_or_default());
        let read_all = |folder: &str| -> BTreeMap<String, String> {
            let names = tree.names(&file(folder)).into_iter();
            names.filter_map(|n| Some((n.clone(), tree.text(&file(&format!("{folder}/{n}")))?))).collect()
        };
        let backing = tree
            .text(&file("loop/backing_file"))
            .map(|path| Loop { file: path, direct: tree.number(&file("loop/dio")) == Some(1) });
        let device = tree.text(&file("dev")).unwrap_or_default();
        let identity = keys::read(tree, name);
        Some(Self {
            name: name.to_owned(),
            kind,
            bus,
            model,
            id_serial: identity.get("ENV{ID_SERIAL}").cloned(),
            identity,
            is_in_database: tree.exists(&format!("run/udev/data/b{device}")),
            bytes: sectors * 512,
            rotational,
            hardware_queues: tree.names(&file("mq")).len().max(1),
            device_depth: tree.number(&file("device/queue_depth")),
            can_queue: ncq::is_able(tree, name),
            scheduler,
            offered,
            queue: read_all("queue"),
            tunables: read_all("queue/iosched"),
            device_write_back: device_write_back(tree, name),
            below: tree.names(&file("slaves")),
            above: tree.names(&file("holders")),
            backing,
        })
    }
}

/// Whether the name is the prefix and a number.
fn is_numbered(name: &str, prefix: &str) -> bool {
    name.strip_prefix(prefix).is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
}

/// The bus, by the kernel's name of the disk and its path in `/sys/devices`.
fn bus(name: &str, path: &str) -> Bus {
    if name.starts_with("nvme") {
        Bus::Nvme
    } else if name.starts_with("mmcblk") {
        Bus::Mmc
    } else if name.starts_with("xvd") {
        Bus::Xen
    } else if path.contains("/usb") {
        Bus::Usb
    } else if path.contains("/ata") {
        Bus::Sata
    } else if path.contains("/virtio") || name.starts_with("vd") {
        Bus::Virtio
    } else if name.starts_with("sd") {
        Bus::Sas
    } else {
        Bus::None
    }
}

fn kind(name: &str, bus: Bus, rotational: bool, model: &str) -> Kind {
    match bus {
        Bus::Nvme => Kind::Nvme,
        Bus::Mmc => Kind::Card,
        Bus::Virtio | Bus::Xen => Kind::Virtual,
        Bus::Usb if is_stick(model) => Kind::Card,
        Bus::Usb | Bus::Sata | Bus::Sas if !rotational || is_ssd(model) => Kind::Ssd,
        Bus::Usb | Bus::Sata | Bus::Sas => Kind::Rotating,
        Bus::None if is_numbered(name, "loop") => Kind::Loop,
        Bus::None if is_numbered(name, "dm-") || name.starts_with("md") => Kind::Stacked,
        Bus::None if ["nbd", "rbd"].iter().any(|p| is_numbered(name, p)) => Kind::Network,
        Bus::None => Kind::Virtual,
    }
}

/// Whether a disk on USB is a stick or a card by its model. Sticks report themselves as rotating disks, so
/// the kernel's word does not tell.
fn is_stick(model: &str) -> bool {
    let model = model.to_ascii_lowercase();
    let words = [
        "flash",
        "datatraveler",
        "cruzer",
        "ultra fit",
        "stick",
        "transmemory",
        "jetflash",
        "card",
        "sd/mmc",
    ];
    words.iter().any(|w| model.contains(w))
}

/// Whether the model names itself an SSD, whatever the flag says: bridges from USB to SATA or NVMe often do
/// not pass on that a disk does not rotate.
fn is_ssd(model: &str) -> bool {
    let model = model.to_ascii_lowercase();
    ["ssd", "nvme", "solid state"].iter().any(|w| model.contains(w))
}

/// What the file `queue/scheduler` says: `none [mq-deadline] bfq`.
fn schedulers(text: &str) -> (Option<String>, Vec<String>) {
    let offered = text.split_whitespace().map(|n| n.trim_matches(['[', ']']).to_owned()).collect();
    (chosen_scheduler(text).map(str::to_owned), offered)
}

/// The name in brackets. A disk without a queue has the single word `none`, without brackets.
pub(crate) fn chosen_scheduler(text: &str) -> Option<&str> {
    text.split_whitespace().find_map(|n| n.strip_prefix('[')?.strip_suffix(']'))
}

/// What a SCSI disk said about its own cache: `sys/block/sda/device/scsi_disk/0:0:0:0/cache_type`.
fn device_write_back(tree: &Tree, name: &str) -> Option<bool> {
    let folder = format!("sys/block/{name}/device/scsi_disk");
    let disk = tree.names(&folder).into_iter().next()?;
    let text = tree.text(&format!("{folder}/{disk}/cache_type"))?;
    Some(text.starts_with("write back"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chosen_scheduler_stands_in_brackets() {
        assert_eq!(schedulers("none [mq-deadline] bfq").0.as_deref(), Some("mq-deadline"));
        assert_eq!(schedulers("none [mq-deadline] bfq").1, ["none", "mq-deadline", "bfq"]);
        assert_eq!(schedulers("none"), (None, vec!["none".to_owned()]));
    }

    #[test]
    fn kinds_by_bus_flag_and_model() {
        assert_eq!(kind("sda", Bus::Sata, true, "WDC WD40"), Kind::Rotating);
        assert_eq!(kind("sda", Bus::Sata, false, "Samsung SSD 870"), Kind::Ssd);
        assert_eq!(kind("sdb", Bus::Usb, true, "Ultra Fit"), Kind::Card);
        assert_eq!(kind("sdb", Bus::Usb, true, "Elements 25A2"), Kind::Rotating);
        assert_eq!(kind("sdb", Bus::Usb, true, "Portable SSD T5"), Kind::Ssd);
        assert_eq!(kind("vda", Bus::Virtio, true, ""), Kind::Virtual);
        assert_eq!(kind("dm-0", Bus::None, false, ""), Kind::Stacked);
        assert_eq!(kind("loop0", Bus::None, false, ""), Kind::Loop);
    }
}
