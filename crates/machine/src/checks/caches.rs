//! Write caches, write-back, and discards.
//!
//! The bound of unwritten data of one disk is `max_bytes` with `strict_limit` in `/sys/class/bdi/8:16`, since
//! Linux 6.2. `tests/it/bound.rs` tries it: of 192 MiB, 191 were unwritten without it and 48 with 64 MiB.
//
//= linux Documentation/ABI/testing/sysfs-class-bdi

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
    // ZFS holds its writes back itself, and its threads were seen to wait for wbt for good.
    let rotates = |d: &&Disk| d.kind == Kind::Rotating && !d.is_path && !d.is_of_zfs;
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

/// How many bytes a second are written to a slow disk on USB, for a guess of how long memory takes to empty.
const STICK_RATE: u64 = 10_000_000;
/// How many bytes a second are written to a rotating disk on USB.
const ROTATING_RATE: u64 = 100_000_000;
/// The longest time of unwritten data, in seconds, that is no finding.
const SECONDS_MAX: u64 = 60;
/// The bound that is advised for one disk: some seconds of its writes.
const BOUND: u64 = 64 << 20;

pub(super) fn unwritten_much(machine: &Machine, findings: &mut Vec<Finding>) {
    let Some(max) = machine.memory.dirty_max() else { return };
    for disk in machine.disks.iter().filter(|d| d.bus == Bus::Usb && !d.read_only) {
        let rate = match disk.kind {
            Kind::Card => STICK_RATE,
            Kind::Rotating => ROTATING_RATE,
            _ => continue,
        };
        if max / rate <= SECONDS_MAX || disk.is_write_back_bounded == Some(true) {
            continue;
        }
        let what = format!(
            "Up to {}.{} GB may wait in memory for {}, which is {} at {} MB/s.",
            max / 1_000_000_000,
            max % 1_000_000_000 / 100_000_000,
            disk.name,
            minutes(max / rate),
            rate / 1_000_000
        );
        let why = "A copy then seems to be done long before it is, a program that waits for its own data waits \
                   for all of it, and taking the disk out loses the rest.";
        let finding = Finding::about(disk, Severity::Advice, what, why);
        findings.push(bound_write_back(machine, disk, finding));
    }
}

/// Adds the commands that bound the unwritten data: of the disk alone where the kernel can, else of all.
fn bound_write_back(machine: &Machine, disk: &Disk, finding: Finding) -> Finding {
    let Some(device) = disk.device.as_deref().filter(|_| disk.is_write_back_bounded.is_some()) else {
        let (bytes, percent) = ("vm.dirty_bytes", machine.memory.dirty_percent);
        let mend =
            format!("sysctl {bytes}={} vm.dirty_background_bytes={BOUND}  # holds for all disks", 4 * BOUND);
        let undo = match machine.memory.dirty_bytes {
            0 => format!("sysctl vm.dirty_ratio={percent} vm.dirty_background_ratio=10"),
            old => format!("sysctl {bytes}={old} vm.dirty_background_ratio=10"),
        };
        return finding.by(mend, undo);
    };
    let place = format!("/sys/class/bdi/{device}");
    finding.by(
        format!("echo 1 > {place}/strict_limit && echo {BOUND} > {place}/max_bytes"),
        format!("echo 0 > {place}/strict_limit && echo 100 > {place}/max_ratio"),
    )
}

/// A duration in words.
fn minutes(seconds: u64) -> String {
    if seconds < 120 { format!("{seconds} seconds") } else { format!("{} minutes", seconds / 60) }
}
