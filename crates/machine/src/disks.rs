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
    /// A volume of a RAID controller or of a storage array. What it is made of cannot be seen.
    Volume,
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
            Self::Volume => "volume of an array",
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
    /// Whether it passes the page cache, or cannot: the kernel has had the choice since 4.4.
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
    /// The properties of the disk in udev's database.
    pub properties: BTreeMap<String, String>,
    /// The links to the disk below `/dev`, such as `disk/by-id/ata-WDC_1`.
    pub links: Vec<String>,
    /// The device number, such as `8:0`, if the kernel's files have it.
    pub device: Option<String>,
    /// The size in bytes.
    pub bytes: u64,
    /// Whether the kernel takes it for a rotating disk.
    pub rotational: bool,
    /// Whether the disk cannot be written.
    pub read_only: bool,
    /// Whether the device says that it can be taken out.
    pub removable: bool,
    /// The number of hardware queues.
    pub hardware_queues: usize,
    /// How many tags the driver has for each hardware queue, where the kernel says so.
    pub tags: Option<u32>,
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
    /// The disks that it is made of. For a partition stands its disk.
    pub below: Vec<String>,
    /// The disks that are made of it or of its partitions.
    pub above: Vec<String>,
    /// Whether it is a multipath disk: its requests are scheduled here and not on the paths below.
    pub is_multipath: bool,
    /// Whether it is one path of a multipath disk.
    pub is_path: bool,
    /// Whether ZFS has it, or a partition of it: ZFS orders and limits its requests itself, in own threads.
    pub is_of_zfs: bool,
    /// Whether the kernel bounds the unwritten data of this disk by itself (`bdi/strict_limit`); `None`
    /// before Linux 6.2.
    pub is_write_back_bounded: Option<bool>,
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

    /// Whether the disk has zones: `queue/zoned` is `host-managed` or `host-aware`.
    #[must_use]
    pub fn is_zoned(&self) -> bool {
        self.is_host_managed() || self.queue.get("zoned").is_some_and(|z| z == "host-aware")
    }

    /// Whether the disk has zones that take writes in order only.
    #[must_use]
    pub fn is_host_managed(&self) -> bool {
        self.queue.get("zoned").is_some_and(|z| z == "host-managed")
    }

    /// Whether the disk has the queue of kernels before 5.0: its schedulers are `noop`, `deadline` and `cfq`.
    #[must_use]
    pub fn has_old_queue(&self) -> bool {
        self.offered.iter().any(|s| matches!(s.as_str(), "noop" | "deadline" | "cfq"))
    }

    /// Whether requests of programs are scheduled here: not on a layer above, nor on a path of a multipath
    /// disk, nor on a loop device, nor where ZFS sends them in their place.
    #[must_use]
    pub fn schedules(&self) -> bool {
        let is_layer = !self.below.is_empty() && !self.is_multipath;
        let is_own = !self.is_path && !self.is_of_zfs && !is_layer;
        self.scheduler.is_some() && is_own && self.kind != Kind::Loop
    }

    /// The scheduler that shares the disk between programs and groups: `bfq`, or `cfq` on the old queue.
    #[must_use]
    pub fn fair_scheduler(&self) -> &'static str {
        if self.has_old_queue() { "cfq" } else { "bfq" }
    }

    /// Reads all disks, without those that are empty, those that the kernel hides (the paths of an NVMe
    /// namespace), and those of the kernel's own use (memory, floppy and optical disks, boot partitions of
    /// eMMC devices).
    pub(crate) fn all(tree: &Tree) -> Vec<Self> {
        let names = tree.names("sys/block");
        let mut disks: Vec<Self> = names.iter().filter_map(|name| Self::read(tree, name)).collect();
        let is_multipath = |d: &&Self| d.is_multipath;
        let paths: Vec<String> = disks.iter().filter(is_multipath).flat_map(|d| d.below.clone()).collect();
        let heads: Vec<String> = disks.iter().filter(is_multipath).map(|d| d.name.clone()).collect();
        for disk in &mut disks {
            disk.is_path = paths.contains(&disk.name) || disk.above.iter().any(|a| heads.contains(a));
        }
        disks
    }

    fn read(tree: &Tree, name: &str) -> Option<Self> {
        if is_of_the_kernels_use(name) || tree.number(&format!("sys/block/{name}/hidden")) == Some(1) {
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
        let word = |path: &str| tree.text(&file(path)).filter(|text| !text.is_empty());
        // Cards have a name instead.
        let model = word("device/model").or_else(|| word("device/name")).unwrap_or_default();
        let made_by = made_by(&word("device/vendor").unwrap_or_default(), &model, bus, &path);
        let kind = match made_by.unwrap_or_else(|| kind(name, bus, rotational, &model)) {
            // On USB, a stick or a card says that it can be taken out, and a disk in a case does not.
            Kind::Rotating if bus == Bus::Usb && word("removable").as_deref() == Some("1") => Kind::Card,
            _ if bus == Bus::Mmc && word("device/type").as_deref() == Some("MMC") => Kind::Emmc,
            kind => kind,
        };
        let (scheduler, offered) = schedulers(&tree.text(&file("queue/scheduler")).unwrap_or_default());
        let read_all = |folder: &str| -> BTreeMap<String, String> {
            let names = tree.names(&file(folder)).into_iter();
            names.filter_map(|n| Some((n.clone(), tree.text(&file(&format!("{folder}/{n}")))?))).collect()
        };
        let backing = tree
            .text(&file("loop/backing_file"))
            .map(|path| Loop { file: path, direct: tree.number(&file("loop/dio")) != Some(0) });
        let device = tree.text(&file("dev")).unwrap_or_default();
        let database = keys::Database::read(tree, &device);
        let identity = keys::read(tree, name, &database);
        let is_of_zfs = is_of_zfs(tree, name, &database);
        let strict = tree.number::<u8>(&format!("sys/class/bdi/{device}/strict_limit"));
        let flag = |path: &str| tree.number(&file(path)) == Some(1);
        Some(Self {
            name: name.to_owned(),
            kind,
            bus,
            model,
            id_serial: identity.get("ENV{ID_SERIAL}").cloned(),
            identity,
            is_in_database: database.exists,
            properties: database.properties,
            links: database.links,
            device: Some(device).filter(|d| !d.is_empty()),
            bytes: sectors * 512,
            rotational,
            read_only: flag("ro"),
            removable: flag("removable"),
            hardware_queues: tree.names(&file("mq")).len().max(1),
            tags: tree.number(&file("mq/0/nr_tags")),
            device_depth: tree.number(&file("device/queue_depth")),
            can_queue: ncq::is_able(tree, name),
            scheduler,
            offered,
            queue: read_all("queue"),
            tunables: read_all("queue/iosched"),
            device_write_back: device_write_back(tree, name),
            below: below(tree, name),
            above: above(tree, name),
            is_multipath: tree.text(&file("dm/uuid")).is_some_and(|id| id.starts_with("mpath-")),
            is_path: false,
            is_of_zfs,
            is_write_back_bounded: strict.map(|limit| limit == 1),
            backing,
        })
    }
}

/// Whether udev found a member of a ZFS pool on the disk or on a partition of it.
fn is_of_zfs(tree: &Tree, name: &str, database: &keys::Database) -> bool {
    let is_member = |d: &keys::Database| d.properties.get("ID_FS_TYPE").is_some_and(|t| t == "zfs_member");
    let parts = tree.devices(name);
    is_member(database)
        || parts
            .iter()
            .any(|(major, minor)| is_member(&keys::Database::read(tree, &format!("{major}:{minor}"))))
}

/// Whether the name is the prefix and a number.
fn is_numbered(name: &str, prefix: &str) -> bool {
    name.strip_prefix(prefix).is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
}

/// Whether programs have no use for the disk of that name: memory, floppy and optical disks, and the
/// partitions of an eMMC device that hold its boot loader and its keys.
fn is_of_the_kernels_use(name: &str) -> bool {
    if ["ram", "zram", "fd", "sr"].iter().any(|p| is_numbered(name, p)) {
        return true;
    }
    let part = name.strip_prefix("mmcblk").map(|n| n.trim_start_matches(|c: char| c.is_ascii_digit()));
    part.is_some_and(|p| p == "rpmb" || is_numbered(p, "boot"))
}

/// The disks that the disk is made of, in order. A layer over a partition is one over its disk.
fn below(tree: &Tree, name: &str) -> Vec<String> {
    let slaves = tree.names(&format!("sys/block/{name}/slaves"));
    let disk = |slave: String| {
        let is_disk = tree.exists(&format!("sys/block/{slave}"));
        if is_disk { slave } else { tree.disk_of_partition(&slave).unwrap_or(slave) }
    };
    let mut disks: Vec<String> = slaves.into_iter().map(disk).collect();
    disks.sort();
    disks.dedup();
    disks
}

/// The disks that are made of the disk or of its partitions, in order.
fn above(tree: &Tree, name: &str) -> Vec<String> {
    let folder = format!("sys/block/{name}");
    let mut disks = tree.names(&format!("{folder}/holders"));
    for part in tree.names(&folder).into_iter().filter(|n| n.starts_with(name)) {
        disks.extend(tree.names(&format!("{folder}/{part}/holders")));
    }
    disks.sort();
    disks.dedup();
    disks
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
        Bus::None if ["bcache", "drbd"].iter().any(|p| is_numbered(name, p)) => Kind::Stacked,
        Bus::None if ["nbd", "rbd"].iter().any(|p| is_numbered(name, p)) => Kind::Network,
        Bus::None => Kind::Virtual,
    }
}

/// The kind of a disk that only looks like one of its bus: a hypervisor's disk, or a volume of an array. Most
/// of them say that they rotate.
fn made_by(vendor: &str, model: &str, bus: Bus, path: &str) -> Option<Kind> {
    if !matches!(bus, Bus::Sata | Bus::Sas | Bus::Usb) {
        return None;
    }
    let (vendor, model) = (vendor.trim().to_ascii_lowercase(), model.trim().to_ascii_lowercase());
    let is_hypervisor = HYPERVISORS.contains(&vendor.as_str())
        || HYPERVISOR_MODELS.iter().any(|m| model.starts_with(m))
        // Block storage of clouds: Oracle, DigitalOcean, Hetzner, Linode.
        || matches!(model.as_str(), "blockvolume" | "volume");
    if is_hypervisor {
        return Some(Kind::Virtual);
    }
    // A remote port of Fibre Channel, a session of iSCSI.
    let is_remote = path.contains("/rport-") || path.contains("/session");
    let is_array = ARRAYS.contains(&vendor.as_str()) || ARRAY_MODELS.iter().any(|m| model.contains(m));
    (is_remote || is_array).then_some(Kind::Volume)
}

/// Vendors, in small letters, whose SCSI disks are those of guests or of targets made of software.
const HYPERVISORS: [&str; 14] = [
    "msft", "vmware", "vmware,", "qemu", "google", "nutanix", "bhyve", "xen", "linux", "lio-org", "iet",
    "vbox", "aix", "xensrc",
];

/// How the models of ATA disks of hypervisors, and of some SCSI disks, begin.
const HYPERVISOR_MODELS: [&str; 10] = [
    "qemu ",
    "vbox ",
    "vmware ",
    "virtual disk",
    "virtual hd",
    "virtual-disk",
    "bhyve ",
    "persistentdisk",
    "ephemeraldisk",
    "parallels ",
];

/// Vendors of RAID controllers and of storage arrays, as their volumes have them.
const ARRAYS: [&str; 16] = [
    "adaptec",
    "areca",
    "avago",
    "lsi",
    "3ware",
    "amcc",
    "netapp",
    "pure",
    "dgc",
    "emc",
    "nimble",
    "3pardata",
    "compelnt",
    "infinidat",
    "synology",
    "truenas",
];

/// Words in the models of volumes of RAID controllers.
const ARRAY_MODELS: [&str; 6] = ["perc ", "megaraid", "serveraid", "logical volume", "raid", "msa "];

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
    fn disks_of_hypervisors_and_volumes_by_vendor_and_model() {
        for (vendor, model) in [
            ("Msft    ", "Virtual Disk    "),
            ("VMware  ", "Virtual disk    "),
            ("VMware, ", "VMware Virtual S"),
            ("QEMU    ", "QEMU HARDDISK   "),
            ("ATA     ", "QEMU HARDDISK   "),
            ("ATA     ", "VBOX HARDDISK   "),
            ("Google  ", "PersistentDisk  "),
            ("ORACLE  ", "BlockVolume     "),
            ("DO      ", "Volume          "),
        ] {
            assert_eq!(made_by(vendor, model, Bus::Sas, ""), Some(Kind::Virtual), "{vendor}{model}");
        }
        assert_eq!(made_by("DELL", "PERC H730P Mini", Bus::Sas, ""), Some(Kind::Volume));
        assert_eq!(made_by("HP", "LOGICAL VOLUME", Bus::Sas, ""), Some(Kind::Volume));
        assert_eq!(made_by("HPE", "MSA 2040 SAN", Bus::Sas, "/host1/rport-1:0-0/"), Some(Kind::Volume));
        for (vendor, model) in [("ATA", "WDC WD4003"), ("SEAGATE", "ST4000NM0023"), ("ATA", "VK0480GDJXU")] {
            assert_eq!(made_by(vendor, model, Bus::Sas, "/host0/port-0:0/end_device-0:0"), None);
        }
    }

    #[test]
    fn boot_partitions_of_emmc_devices_are_the_kernels() {
        for name in ["mmcblk0boot0", "mmcblk2boot1", "mmcblk0rpmb", "zram0", "sr0"] {
            assert!(is_of_the_kernels_use(name), "{name}");
        }
        for name in ["mmcblk0", "mmcblk1gp0", "sda", "loop0", "fda"] {
            assert!(!is_of_the_kernels_use(name), "{name}");
        }
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
