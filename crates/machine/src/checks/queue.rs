//! Settings of the queue itself.

use std::fmt::Write as _;

use crate::disks::{Bus, Disk, Kind};
use crate::finding::{Finding, Severity};
use crate::lab::{Comparison, Load, Setting};
use crate::machine::Machine;
use crate::requests::{self, ENOUGH, FEW, WRITABLE_MIN};
use crate::text::shell_word;

pub(super) fn command_queueing(machine: &Machine, findings: &mut Vec<Finding>) {
    // A drive or controller was found to fail with it.
    if machine.command_line.split_whitespace().any(|w| w.starts_with("libata.force=") && w.contains("noncq"))
    {
        return;
    }
    let is_real = |d: &Disk| d.bus == Bus::Sata && d.kind != Kind::Virtual;
    let is_off = |d: &&Disk| is_real(d) && d.device_depth == Some(1) && d.can_queue != Some(false);
    for disk in machine.disks.iter().filter(is_off) {
        let what = format!("{} takes one command at a time (device/queue_depth is 1).", disk.name);
        let why = "A SATA drive takes 31 or 32 and chooses the nearest itself; an SSD works on many at once. \
                   If the drive is known to lose data with command queueing, leave it.";
        let mut finding = Finding::about(disk, Severity::Advice, what, why);
        let command = |n: u32| format!("echo {n} > /sys/block/{}/device/queue_depth", disk.name);
        (finding.mend, finding.undo) = (command(31), command(1));
        findings.push(finding);
    }
}

/// The kernel's default of `nr_requests` for a disk with a scheduler, if the disk takes 128 or more at once.
const DEFAULT_REQUESTS: i64 = 256;

pub(super) fn requests_few(machine: &Machine, findings: &mut Vec<Finding>) {
    for disk in machine.disks.iter().filter(|d| !d.runs("none") && !d.is_path) {
        let Some(requests) = disk.queue_number("nr_requests") else { continue };
        let Some(depth) = disk.device_depth.filter(|&depth| requests < i64::from(depth)) else {
            if requests < FEW && disk.schedules() && !disk.has_old_queue() {
                findings.push(no_choice(disk, requests));
            }
            continue;
        };
        // A host or an array says that it takes thousands; the kernel's default is a choice to have then.
        if matches!(disk.kind, Kind::Virtual | Kind::Volume) && requests >= DEFAULT_REQUESTS {
            continue;
        }
        let what = format!(
            "{} has {requests} requests in its queue, and the device takes {depth} at once.",
            disk.name
        );
        let why = "The scheduler never has a choice: whatever comes goes to the device at once.";
        let new = (2 * depth).max(64).to_string();
        let finding = Finding::about(disk, Severity::Advice, what, why);
        findings.push(finding.set(disk, "nr_requests", &requests.to_string(), &new));
    }
}

/// So few requests that the scheduler has no choice, though the device takes no more at once.
fn no_choice(disk: &Disk, requests: i64) -> Finding {
    let scheduler = disk.scheduler.as_deref().unwrap_or_default();
    let what = format!("{} has {requests} requests in its queue, from which {scheduler} chooses.", disk.name);
    let mut why =
        "A program that waits for one of them is not known to the scheduler: it can starve.".to_owned();
    let recorded = requests::recorded(disk, scheduler);
    if !recorded.is_empty() {
        let _ = write!(why, " {recorded} (Linux 6.12, docs/reports/bfq-nr-requests-2.md).");
    }
    let (old, new) = (requests.to_string(), ENOUGH.to_string());
    let mut finding = Finding::about(disk, Severity::Advice, what, &why).set(disk, "nr_requests", &old, &new);
    if requests < WRITABLE_MIN {
        // The kernel makes 4 of a smaller number that is written, and gives the present one with a scheduler.
        let place = shell_word(&format!("/sys/block/{}/queue/scheduler", disk.name)).into_owned();
        finding.undo = format!("echo none > {place} && echo {scheduler} > {place}");
    }
    finding
}

pub(super) fn merges_off(machine: &Machine, findings: &mut Vec<Finding>) {
    // The drivers of loop devices, and old ones of NVMe, switch merging off themselves.
    let by_driver = |d: &Disk| {
        d.kind == Kind::Loop || d.is_path || (d.kind == Kind::Nvme && machine.kernel.is_before(5, 0))
    };
    for disk in machine.disks.iter().filter(|d| !by_driver(d)) {
        let Some(level) = disk.queue_number("nomerges").filter(|&n| n > 0) else { continue };
        let what = format!("{} has nomerges {level}.", disk.name);
        let why = "Neighbouring requests go to the device one by one, which costs a rotating disk and a flash \
                   card most. It is a setting for measurements.";
        let finding = Finding::about(disk, Severity::Advice, what, why);
        findings.push(finding.set(disk, "nomerges", &level.to_string(), "0"));
    }
}

pub(super) fn statistics_off(machine: &Machine, findings: &mut Vec<Finding>) {
    let off = |d: &&Disk| d.queue_number("iostats") == Some(0) && d.scheduler.is_some();
    for disk in machine.disks.iter().filter(off) {
        let what = format!("{} has iostats 0.", disk.name);
        let why = "iostat, sar and monitoring read zeros for this disk.";
        findings.push(Finding::about(disk, Severity::Advice, what, why).set(disk, "iostats", "0", "1"));
    }
}

pub(super) fn read_ahead_off(machine: &Machine, findings: &mut Vec<Finding>) {
    for disk in machine.disks.iter().filter(|d| !d.is_path && d.queue_number("read_ahead_kb") == Some(0)) {
        let what = format!("{} has read_ahead_kb 0.", disk.name);
        let why = "Each read of a file waits for the disk; the kernel's default is 128.";
        let mut finding =
            Finding::about(disk, Severity::Advice, what, why).set(disk, "read_ahead_kb", "0", "128");
        let scheduler = disk.scheduler.clone().unwrap_or_default();
        let with = |kib| Setting { read_ahead_kib: Some(kib), ..Setting::of(&scheduler) };
        finding.lab.extend(Comparison::on(disk, Load::Streams, with(0), with(128)));
        findings.push(finding);
    }
}

/// The read-ahead that Linux 6.17 and later give a disk that says it rotates, in KiB.
const FOR_ROTATING: i64 = 4096;

pub(super) fn read_ahead_by_guess(machine: &Machine, findings: &mut Vec<Finding>) {
    if machine.kernel.is_before(6, 17) {
        return;
    }
    let is_guess = |d: &&Disk| {
        let by_rule = machine.rule_for(d, "read_ahead_kb").is_some();
        d.kind == Kind::Virtual
            && d.rotational
            && d.queue_number("read_ahead_kb") == Some(FOR_ROTATING)
            && !by_rule
    };
    for disk in machine.disks.iter().filter(is_guess) {
        let what = format!("{} is a virtual disk that says it rotates, with read_ahead_kb 4096.", disk.name);
        let why = "Since Linux 6.17 such a disk gets 32 times the read-ahead of others. On flash in a data \
                   centre, programs that read files here and there get up to 4 MiB for each page, which fills \
                   the memory and the limit of bytes a second. Long streams over a network may gain by it.";
        let finding = Finding::about(disk, Severity::Advice, what, why);
        findings.push(finding.set(disk, "read_ahead_kb", "4096", "128"));
    }
}

pub(super) fn entropy(machine: &Machine, findings: &mut Vec<Finding>) {
    // Of a stick on USB the kernel thinks that it rotates, and 1 is its default.
    let is_flash = |d: &Disk| {
        matches!(d.kind, Kind::Ssd | Kind::Nvme | Kind::Emmc) || (d.kind == Kind::Card && d.bus == Bus::Mmc)
    };
    for disk in machine.disks.iter().filter(|d| is_flash(d) && d.queue_number("add_random") == Some(1)) {
        let what = format!("{} is an SSD with add_random 1.", disk.name);
        let why = "Each completion costs processor time for random numbers that an SSD does not improve.";
        findings.push(Finding::about(disk, Severity::Advice, what, why).set(disk, "add_random", "1", "0"));
    }
}
