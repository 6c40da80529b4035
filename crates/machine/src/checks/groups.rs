//! Weights of control groups that do not arrive.

use crate::cgroups::Controller;
use crate::disks::Disk;
use crate::finding::{Finding, Severity};
use crate::lab::{Comparison, Load, Setting};
use crate::machine::Machine;
use crate::text::shell_word;
use crate::units::Unit;

/// A group's weight that is not the default, in words.
fn weight(machine: &Machine) -> Option<String> {
    if let Some(unit) = machine.units.iter().find(|u| u.key == "IOWeight" && u.value != "100") {
        return Some(said(unit));
    }
    let group = machine.cgroups.weights.first()?;
    Some(format!("group {} has {} {}", group.group, group.file, group.weight))
}

/// A setting of a unit, in words.
fn said(unit: &Unit) -> String {
    format!("{} has {}={} ({})", unit.name, unit.key, unit.value, unit.file)
}

/// The disks that requests of programs are scheduled on.
fn bottom(machine: &Machine) -> impl Iterator<Item = &Disk> {
    machine.disks.iter().filter(|d| d.schedules())
}

pub(super) fn weight_ignored(machine: &Machine, findings: &mut Vec<Finding>) {
    let Some(who) = weight(machine) else { return };
    // Where io.cost is on for a disk, the weights work with any scheduler.
    if !machine.cgroups.io_cost.is_empty() || machine.cgroups.controller == Controller::None {
        return;
    }
    for disk in bottom(machine).filter(|d| ignores_weights(d)).filter(|d| !d.is_zoned()) {
        let now = disk.scheduler.clone().unwrap_or_default();
        let what =
            format!("{who}, but {} runs {now}, and io.cost is off: the weight has no effect.", disk.name);
        let why = "Only bfq and io.cost share a disk by weight.";
        let fair = disk.fair_scheduler();
        let finding = Finding::about(disk, Severity::Fault, what, why).choose_if(machine, disk, fair);
        let lab = Comparison::on(disk, Load::Weights, Setting::of(&now), Setting::of(fair));
        findings.push(finding.compared(lab));
    }
}

/// Schedulers that share nothing by weight. What the schedulers of other patched kernels do is not known.
const NO_WEIGHTS: [&str; 6] = ["none", "mq-deadline", "kyber", "adios", "noop", "deadline"];

/// What systemd makes of a weight of 1 to 10,000 for BFQ, whose weights are 1 to 1,000: the same up to 100,
/// and above that a line from 100 to 1,000.
pub(super) fn bfq_weight(weight: u32) -> u32 {
    if weight <= 100 { weight } else { 100 + (weight - 100) * 900 / 9900 }
}

pub(super) fn weight_squeezed(machine: &Machine, findings: &mut Vec<Finding>) {
    let high: Vec<_> = machine
        .units
        .iter()
        .filter(|u| u.key == "IOWeight")
        .filter_map(|u| Some((u, u.number().filter(|&n| n > 100)?)))
        .collect();
    let Some(disk) = bottom(machine).find(|d| d.runs("bfq")) else { return };
    let [(first, low), .., (last, most)] = high.as_slice() else { return };
    let (a, b) = (bfq_weight(*low), bfq_weight(*most));
    let what = format!(
        "{} has IOWeight={low} and {} IOWeight={most}; systemd passes them to bfq as {a} and {b}.",
        first.name, last.name
    );
    let why = "systemd maps 100 to 10,000 onto BFQ's 100 to 1,000, so that weights above 100 are nearly \
               equal. Weights of at most 100 keep their proportion.";
    let mut finding = Finding::about_machine(Severity::Fault, what, why);
    let scale = (*low).max(*most);
    let set =
        |unit: &str, weight: u32| format!("systemctl set-property {} IOWeight={weight}", shell_word(unit));
    let small = |w: u32| (w * 100 / scale).max(1);
    finding.mend = format!("{}; {}", set(&first.name, small(*low)), set(&last.name, small(*most)));
    finding.undo = format!("{}; {}", set(&first.name, *low), set(&last.name, *most));
    let with = |weights| Setting { weights: Some(weights), ..Setting::of("bfq") };
    finding.lab.extend(Comparison::on(disk, Load::Weights, with((a, b)), with((*low, *most))));
    findings.push(finding);
}

/// Whether a unit's `IODeviceWeight` is for the disk: it names the disk, or a folder of a file system on it.
fn is_for(machine: &Machine, unit: &Unit, disk: &Disk) -> bool {
    let place = unit.value.split_whitespace().next().unwrap_or_default();
    let is_name = place.strip_prefix("/dev/") == Some(&disk.name);
    let mut mounts = machine.mounts.iter().filter(|m| m.folder == place);
    let is_below = |name: &str| {
        machine.disk(name).is_some_and(|top| machine.bottoms(top).iter().any(|d| d.name == disk.name))
    };
    unit.key == "IODeviceWeight" && (is_name || mounts.any(|m| is_below(&m.disk)))
}

pub(super) fn device_weight(machine: &Machine, findings: &mut Vec<Finding>) {
    let has_cost = !machine.cgroups.io_cost.is_empty();
    for unit in machine.units.iter().filter(|u| u.key == "IODeviceWeight") {
        let Some(disk) = bottom(machine).find(|d| is_for(machine, unit, d)) else { continue };
        let is_bfq = disk.runs("bfq");
        // Version 1 has a finding of its own, and what other schedulers do with weights is not known.
        if !is_bfq && (has_cost || machine.cgroups.controller != Controller::On || !ignores_weights(disk)) {
            continue;
        }
        let now = disk.scheduler.as_deref().unwrap_or_default();
        let what = format!("{} has IODeviceWeight={}, but {} runs {now}.", unit.name, unit.value, disk.name);
        let why = if is_bfq {
            "systemd writes a device's weight to io.weight only, which bfq does not read."
        } else {
            "io.cost alone reads a device's weight, and it is off. bfq reads the weight of a unit for all disks."
        };
        let mut finding = Finding::about(disk, Severity::Fault, what, why);
        if !is_bfq {
            finding = finding.choose_if(machine, disk, disk.fair_scheduler());
        }
        let weight = unit.value.split_whitespace().nth(1).unwrap_or("100");
        let name = shell_word(&unit.name);
        let also = |before: &str| if before.is_empty() { String::new() } else { format!("{before} && ") };
        let weight = shell_word(&format!("IOWeight={weight}")).into_owned();
        let mend = format!("{}systemctl set-property {name} {weight}", also(&finding.mend));
        let undo = format!("{}systemctl set-property {name} IOWeight=", also(&finding.undo));
        findings.push(if finding.mend.starts_with('#') { finding } else { finding.by(mend, undo) });
    }
}

/// Whether it is known that the disk's scheduler shares nothing by weight.
fn ignores_weights(disk: &Disk) -> bool {
    NO_WEIGHTS.iter().any(|s| disk.runs(s))
}

/// Settings of units that need the controller.
const NEEDS_CONTROLLER: [&str; 7] = [
    "IOWeight",
    "IODeviceWeight",
    "IOReadBandwidthMax",
    "IOWriteBandwidthMax",
    "IOReadIOPSMax",
    "IOWriteIOPSMax",
    "IODeviceLatencyTargetSec",
];

/// Something in a unit that needs the controller, in words.
fn needs_controller(machine: &Machine) -> Option<String> {
    let unit = machine.units.iter().find(|u| NEEDS_CONTROLLER.contains(&u.key.as_str()))?;
    Some(said(unit))
}

pub(super) fn controller_off(machine: &Machine, findings: &mut Vec<Finding>) {
    let (Controller::Off, Some(who)) = (machine.cgroups.controller, needs_controller(machine)) else {
        return;
    };
    let what = format!("{who}, but the root group does not pass the io controller on.");
    let mut finding =
        Finding::about_machine(Severity::Fault, what, "Groups have no weights and no limits then.");
    finding.mend = "echo +io > /sys/fs/cgroup/cgroup.subtree_control".to_owned();
    finding.undo = "echo -io > /sys/fs/cgroup/cgroup.subtree_control".to_owned();
    findings.push(finding);
}

pub(super) fn controller_v1(machine: &Machine, findings: &mut Vec<Finding>) {
    let (Controller::V1, Some(who)) = (machine.cgroups.controller, needs_controller(machine)) else { return };
    let what = format!("{who}, but the io controller is that of version 1 (blkio).");
    let why =
        "Version 1 does not charge buffered writes to a group, and systemd's IO settings need version 2.";
    let finding = Finding::about_machine(Severity::Fault, what, why);
    findings.push(to_version_2(machine, finding));
}

/// Adds what leads to version 2 of control groups.
fn to_version_2(machine: &Machine, finding: Finding) -> Finding {
    if machine.kernel.is_before(4, 5) {
        return finding.by("# version 2 of control groups needs Linux 4.5 at least", "# nothing was changed");
    }
    let mend = "# add systemd.unified_cgroup_hierarchy=1 to the kernel's command line, and restart";
    finding.by(mend, "# remove it, and restart")
}

pub(super) fn limit_buffered(machine: &Machine, findings: &mut Vec<Finding>) {
    let Some(limit) = machine.cgroups.limits.first() else { return };
    let what = format!("group {} has {} {}, a limit of version 1.", limit.group, limit.file, limit.text);
    let why = "It holds back direct writes only. A write into the page cache is carried out later by a thread \
               of the kernel, which belongs to no group of version 1. io.max of version 2 limits both.";
    let finding = Finding::about_machine(Severity::Fault, what, why);
    findings.push(to_version_2(machine, finding));
}

pub(super) fn not_delegated(machine: &Machine, findings: &mut Vec<Finding>) {
    let needs = machine.user_units.iter().find(|u| NEEDS_CONTROLLER.contains(&u.key.as_str()));
    let (Some(unit), Some(group)) = (needs, &machine.cgroups.without_io) else { return };
    let what = format!("{}, but the io controller is not passed on to {group}.", said(unit));
    let why = "systemd passes cpu, memory and pids on to the managers of users, and io only where a drop-in says so.";
    let folder = "/etc/systemd/system/user@.service.d";
    let text = "[Service]\\nDelegate=cpu cpuset io memory pids\\n";
    let mend = format!(
        "mkdir -p {folder} && printf '{text}' > {folder}/50-io.conf && systemctl daemon-reload  # log in anew"
    );
    let finding = Finding::about_machine(Severity::Fault, what, why);
    findings.push(finding.by(mend, format!("rm {folder}/50-io.conf && systemctl daemon-reload")));
}
