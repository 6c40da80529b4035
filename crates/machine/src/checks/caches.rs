//! Write caches, write-back, and discards.

use crate::disks::{Bus, Disk, Kind};
use crate::finding::{Finding, Severity};
use crate::machine::Machine;
use crate::text::shell_word;

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
        // Before 6.2 the kernel shows the default also where it has switched wbt off with bfq.
        if machine.kernel.is_before(6, 2) && us == if disk.rotational { 75_000 } else { 2_000 } {
            continue;
        }
        let what = format!("{} has wbt_lat_usec {us} under bfq.", disk.name);
        let why = "wbt holds writes back by its own measure before bfq sees them, so that bfq cannot share \
                   them by weight. The kernel switches it off with bfq; it was switched on by hand or by a rule.";
        let finding = Finding::about(disk, Severity::Advice, what, why);
        findings.push(finding.set(disk, "wbt_lat_usec", &us.to_string(), "0"));
    }
}

pub(super) fn unthrottled(machine: &Machine, findings: &mut Vec<Finding>) {
    // cfq switches wbt off, as bfq does; what other kernels' schedulers do is not known.
    let unfair = |d: &&Disk| ["none", "mq-deadline", "kyber", "noop", "deadline"].iter().any(|s| d.runs(s));
    let rotates = |d: &&Disk| d.kind == Kind::Rotating && !d.is_path;
    for disk in machine.disks.iter().filter(rotates).filter(unfair) {
        if disk.queue_number("wbt_lat_usec") != Some(0) {
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
        let Some(top) = machine.disk(&mount.disk) else { continue };
        // btrfs with discard=async collects them; that is another option's name. A layer such as LUKS may
        // not pass them on.
        if !mount.has("discard") || takes_no_discards(top) {
            continue;
        }
        let is_slow =
            |d: &&Disk| d.kind == Kind::Ssd && matches!(d.bus, Bus::Sata | Bus::Usb) && !takes_no_discards(d);
        let Some(disk) = machine.bottoms(top).into_iter().find(is_slow) else { continue };
        let over = if top.name == disk.name { String::new() } else { format!(" (through {})", top.name) };
        let what = format!("{} on {}{over} is mounted with discard.", mount.folder, disk.name);
        let why = "Each deletion sends discards, and many SATA drives stop all other commands for them. \
                   fstrim once a week does the same at night.";
        let mut finding = Finding::about(disk, Severity::Advice, what, why);
        let folder = shell_word(&mount.folder);
        finding.mend = format!("systemctl enable --now fstrim.timer && mount -o remount,nodiscard {folder}");
        finding.undo = format!("mount -o remount,discard {folder} && systemctl disable --now fstrim.timer");
        findings.push(finding);
    }
}

fn takes_no_discards(disk: &Disk) -> bool {
    disk.queue_number("discard_max_bytes") == Some(0)
}
