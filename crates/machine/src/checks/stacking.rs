//! Disks made of others, and file systems that do more than is seen.

use crate::finding::{Finding, Severity};
use crate::machine::Machine;
use crate::mounts::Mount;
use crate::text::shell_word;

pub(super) fn loop_buffered(machine: &Machine, findings: &mut Vec<Finding>) {
    for disk in &machine.disks {
        let Some(backing) = disk.backing.as_ref().filter(|b| !b.direct) else { continue };
        // Of an image that is only read, such as a snap's, the copy in its own cache is small and compressed.
        let is_read_only = |m: &Mount| m.disk == disk.name && m.has("ro");
        if disk.read_only || machine.mounts.iter().any(is_read_only) {
            continue;
        }
        let what = format!("{} caches {} a second time (direct I/O is off).", disk.name, backing.file);
        let why = "Data are in memory twice, and what the loop device calls written may only be in the page \
                   cache of its file.";
        let mut finding = Finding::about(disk, Severity::Advice, what, why);
        let device = shell_word(&format!("/dev/{}", disk.name)).into_owned();
        finding.mend = format!("losetup --direct-io=on {device}");
        finding.undo = format!("losetup --direct-io=off {device}");
        findings.push(finding);
    }
}

pub(super) fn scheduled_twice(machine: &Machine, findings: &mut Vec<Finding>) {
    for disk in machine.disks.iter().filter(|d| d.runs("bfq") && !d.below.is_empty()) {
        // The paths of a multipath disk are sent what it has scheduled, past their own schedulers.
        let mut below = machine.bottoms(disk).into_iter();
        let Some(lower) = below.find(|d| d.runs("bfq") && !d.is_path) else { continue };
        let what = format!("{} runs bfq, and so does {} below it.", disk.name, lower.name);
        let why = "Both idle for the same reader, one after the other, and the lower one sees the programs \
                   already mixed.";
        findings.push(Finding::about(disk, Severity::Advice, what, why).choose(disk, "none"));
    }
}

pub(super) fn btrfs_quotas(machine: &Machine, findings: &mut Vec<Finding>) {
    for fs in machine.btrfs.iter().filter(|fs| fs.has_quotas) {
        let is_on = |m: &&Mount| {
            m.fs == "btrfs" && fs.devices.iter().any(|d| m.device == format!("/dev/{d}") || m.disk == *d)
        };
        let folder = machine.mounts.iter().find(is_on).map_or("/", |m| &m.folder);
        let what = format!("The btrfs file system at {folder} has quotas on.");
        let why = "When a snapshot goes, btrfs charges each of its extents to all who share it, in the kernel: \
                   minutes of processor time and of waiting commits, which no I/O priority holds back. Without \
                   quotas snapper no longer knows how much space a snapshot takes, and removes by number.";
        let folder = shell_word(folder);
        let finding = Finding::about_machine(Severity::Advice, what, why);
        let commands = (format!("btrfs quota disable {folder}"), format!("btrfs quota enable {folder}"));
        findings.push(finding.by(commands.0, commands.1));
    }
}
