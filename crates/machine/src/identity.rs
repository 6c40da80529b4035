//! By what a udev rule knows one disk from all others.
//!
//! A name such as `sda` may be another disk's after the next start. A rule asks for a property that udev
//! reads from the device, or for an attribute of the device in `/sys`:
//!
//! | key | what it is | of |
//! |---|---|---|
//! | `ENV{ID_SERIAL}` | the serial number, with the model | SATA, SAS, USB, NVMe, MMC, virtio with a serial |
//! | `ENV{ID_WWN}` | the world-wide name | SATA, SAS |
//! | `ATTR{wwid}` | the namespace's name | NVMe, also where udev's database cannot be seen |
//! | `ATTR{serial}` | the serial number that the host gave | virtio, as above |
//! | `ATTR{loop/backing_file}` | the file | loop devices |
//! | `ENV{ID_PATH}` | the place where the disk is attached: another disk there gets the same | all others |
//!
//! The first key that the disk has, and that no other disk of the machine has with the same value, is taken:
//! cheap bridges from USB give all disks one serial number.
//!
//! What this does not do: choose a rule for a class of disks. A disk with none of these gets no rule.
//
//= udev(7); Documentation/ABI/stable/sysfs-block

use crate::disks::Disk;
use crate::keys::KEYS;

/// The condition of a rule that holds for one disk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Identity {
    /// The key, such as `ENV{ID_SERIAL}`.
    pub key: &'static str,
    /// Its value.
    pub value: String,
}

impl Identity {
    /// The identity of the disk among all disks of the machine.
    ///
    /// # Errors
    ///
    /// One line that says why there is none.
    pub fn of(disk: &Disk, all: &[Disk]) -> Result<Self, String> {
        let mut why = Vec::new();
        for key in KEYS {
            let Some(value) = disk.identity.get(key) else { continue };
            let twin = all.iter().find(|d| d.name != disk.name && d.identity.get(key) == Some(value));
            if let Some(twin) = twin {
                why.push(format!("{key} is also {}'s", twin.name));
            } else if !is_plain(value) {
                why.push(format!("{key} has characters that a rule cannot ask for"));
            } else {
                return Ok(Self { key, value: value.clone() });
            }
        }
        let why = if why.is_empty() { "no serial number, name or place".to_owned() } else { why.join("; ") };
        Err(format!("{} has nothing by which a udev rule could know it alone: {why}", disk.name))
    }

    /// The key in words.
    #[must_use]
    pub fn words(&self) -> &'static str {
        match self.key {
            "ENV{ID_SERIAL}" | "ATTR{serial}" => "by its serial number",
            "ENV{ID_WWN}" => "by its world-wide name",
            "ATTR{wwid}" => "by its namespace's name",
            "ATTR{loop/backing_file}" => "by its file: any loop device with that file",
            _ => "by the place where it is attached: another disk there gets the same",
        }
    }

    /// Whether the disk has this identity.
    #[must_use]
    pub fn is(&self, disk: &Disk) -> bool {
        disk.identity.get(self.key) == Some(&self.value)
    }

    /// The value as part of a file's name. Two values never have one name.
    pub(crate) fn slug(&self) -> String {
        const LENGTH_MAX: usize = 100;
        let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
        let name: String = self.value.chars().map(plain).take(LENGTH_MAX).collect();
        if name == self.value { name } else { format!("{name}-{:016x}", fnv(self.value.as_bytes())) }
    }
}

/// Whether a rule can ask for the value as it is: no characters of patterns and of quoting.
fn is_plain(value: &str) -> bool {
    !value.is_empty() && value.chars().all(|c| !c.is_control() && !"\"\\*?[]|".contains(c))
}

/// FNV-1a, 64 bits.
fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Tree;

    fn machine(disks: &[(&str, &str, &str)]) -> Vec<Disk> {
        let root = tempfile::tempdir().unwrap();
        let write = |path: String, text: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        for (n, (name, database, wwid)) in disks.iter().enumerate() {
            write(format!("sys/block/{name}/size"), "100");
            write(format!("sys/block/{name}/dev"), &format!("8:{n}"));
            write(format!("sys/block/{name}/wwid"), wwid);
            write(format!("run/udev/data/b8:{n}"), database);
        }
        Disk::all(&Tree::new(root.path()))
    }

    #[test]
    fn the_best_key_that_is_the_disks_alone() {
        let both = "E:ID_SERIAL=0123456789AB\nE:ID_PATH=pci-1";
        let disks = machine(&[
            ("sda", "E:ID_PATH=pci-0\nE:ID_SERIAL=WDC_1\n", ""),
            ("sdb", both, ""),
            ("sdc", "E:ID_SERIAL=0123456789AB\nE:ID_PATH=pci-2", ""),
            ("sdd", "", "eui.0025"),
            ("vda", "", ""),
        ]);
        let of = |n: usize| Identity::of(&disks[n], &disks).map(|i| format!("{}={}", i.key, i.value));
        assert_eq!(of(0).unwrap(), "ENV{ID_SERIAL}=WDC_1");
        assert_eq!(of(1).unwrap(), "ENV{ID_PATH}=pci-1");
        assert_eq!(of(3).unwrap(), "ATTR{wwid}=eui.0025");
        assert_eq!(
            of(4).unwrap_err(),
            "vda has nothing by which a udev rule could know it alone: no serial number, name or place"
        );
    }

    #[test]
    fn what_a_rule_cannot_ask_for_is_no_identity() {
        let disks = machine(&[("sda", "E:ID_SERIAL=a*b", ""), ("sdb", "", "a\"b")]);
        let said = Identity::of(&disks[0], &disks).unwrap_err();
        assert!(said.ends_with("ENV{ID_SERIAL} has characters that a rule cannot ask for"), "{said}");
        assert!(Identity::of(&disks[1], &disks).is_err());
    }

    #[test]
    fn names_of_files_differ_as_the_values_do() {
        let slug = |value: &str| Identity { key: KEYS[0], value: value.to_owned() }.slug();
        assert_eq!(slug("WDC_WD20-1.2"), "WDC_WD20-1.2");
        assert_ne!(slug("/a/b"), slug("/a_b"));
        assert!(slug(&"/x".repeat(500)).len() < 200 && !slug("../../x").contains('/'));
    }
}
