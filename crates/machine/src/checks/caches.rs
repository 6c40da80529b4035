//! Write caches, write-back, and discards.

use crate::disks::{Bus, Kind};
use crate::finding::{Finding, Severity};
use crate::machine::Machine;

pub(super) fn flushes_dropped(machine: &Machine, findings: &mut Vec<Finding>) {
    for disk in &machine.disks {
        let through = disk.queue.get("write_cache").is_some_and(|c| c == "write through");
        if !through || disk.device_write_back != Some(true) {
            continue;
        }
        let what = format!(
            "{} has a volatile write cache, and the kernel treats it as a disk without one (queue/write_cache).",
            disk.name
        );
        let why = "fsync then sends no flush: after a power cut, data that programs were told are safe may be \
                   gone.";
        let finding = Finding::about(disk, Severity::Fault, what, why);
        findings.push(finding.set(disk, "write_cache", "'write through'", "'write back'"));
    }
}

pub(super) fn throttled_twice(machine: &Machine, findings: &mut Vec<Finding>) {
    for disk in machine.disks.iter().filter(|d| d.runs("bfq")) {
        let Some(us) = disk.queue_number("wbt_lat_usec").filter(|&us| us > 0) else { continue };
        if shows_what_is_off(&machine.release) && us == if disk.rotational { 75_000 } else { 2_000 } {
            continue;
        }
        let what = format!("{} has wbt_lat_usec {us} under bfq.", disk.name);
        let why = "wbt holds writes back by its own measure before bfq sees them, so that bfq cannot share \
                   them by weight. The kernel switches it off with bfq; it was switched on by hand or by a rule.";
        let finding = Finding::about(disk, Severity::Advice, what, why);
        findings.push(finding.set(disk, "wbt_lat_usec", &us.to_string(), "0"));
    }
}

/// Whether the kernel shows the default of `wbt_lat_usec` also where it has switched wbt off with bfq: those
/// before 6.2 do.
fn shows_what_is_off(release: &str) -> bool {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map_while(|n| n.parse::<u32>().ok());
    matches!((numbers.next(), numbers.next()), (Some(major), Some(minor)) if (major, minor) < (6, 2))
}

pub(super) fn unthrottled(machine: &Machine, findings: &mut Vec<Finding>) {
    for disk in machine.disks.iter().filter(|d| d.kind == Kind::Rotating && !d.runs("bfq")) {
        if disk.scheduler.is_none() || disk.queue_number("wbt_lat_usec") != Some(0) {
            continue;
        }
        let what = format!("{} is a rotating disk with wbt_lat_usec 0.", disk.name);
        let why = "Nothing holds the write-back of a large copy back from the reads of others. The kernel's \
                   default for such a disk is 75000 (75 ms).";
        let finding = Finding::about(disk, Severity::Advice, what, why);
        findings.push(finding.set(disk, "wbt_lat_usec", "0", "75000"));
    }
}

pub(super) fn discard_at_once(machine: &Machine, findings: &mut Vec<Finding>) {
    for mount in &machine.mounts {
        let Some(disk) = machine.disk(&mount.disk) else { continue };
        let slow = disk.kind == Kind::Ssd && matches!(disk.bus, Bus::Sata | Bus::Usb);
        // btrfs with discard=async collects them; that is another option's name.
        if !slow || !mount.has("discard") {
            continue;
        }
        let what = format!("{} on {} is mounted with discard.", mount.folder, disk.name);
        let why = "Each deletion sends discards, and many SATA drives stop all other commands for them. \
                   fstrim once a week does the same at night.";
        let mut finding = Finding::about(disk, Severity::Advice, what, why);
        finding.mend =
            format!("systemctl enable --now fstrim.timer && mount -o remount,nodiscard {}", mount.folder);
        finding.undo =
            format!("mount -o remount,discard {} && systemctl disable --now fstrim.timer", mount.folder);
        findings.push(finding);
    }
}
