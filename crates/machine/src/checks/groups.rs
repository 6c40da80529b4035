//! Weights of control groups that do not arrive.

use crate::cgroups::Controller;
use crate::disks::Disk;
use crate::finding::{Finding, Severity, Subject};
use crate::lab::{Comparison, Load, Setting};
use crate::machine::Machine;
use crate::text::shell_word;

/// A group's weight that is not the default, in words.
fn weight(machine: &Machine) -> Option<String> {
    if let Some(unit) = machine.units.iter().find(|u| u.key == "IOWeight" && u.value != "100") {
        return Some(format!("{} has IOWeight={} ({})", unit.name, unit.value, unit.file));
    }
    let group = machine.cgroups.weights.first()?;
    Some(format!("group {} has {} {}", group.group, group.file, group.weight))
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
    // What the schedulers of patched kernels do with weights is not known.
    let ignores = |d: &&Disk| NO_WEIGHTS.iter().any(|s| d.runs(s));
    for disk in bottom(machine).filter(ignores).filter(|d| !d.is_zoned()) {
        let now = disk.scheduler.clone().unwrap_or_default();
        let what =
            format!("{who}, but {} runs {now}, and io.cost is off: the weight has no effect.", disk.name);
        let why = "Only bfq and io.cost share a disk by weight.";
        let fair = disk.fair_scheduler();
        let mut finding = Finding::about_machine(Severity::Fault, what, why).choose(disk, fair);
        finding.subject = Subject::Disk(disk.name.clone());
        finding.lab = Comparison::on(disk, Load::Weights, Setting::of(&now), Setting::of(fair));
        findings.push(finding);
    }
}

/// Schedulers that share nothing by weight.
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
    finding.lab = Comparison::on(disk, Load::Weights, with((a, b)), with((*low, *most)));
    findings.push(finding);
}

pub(super) fn device_weight(machine: &Machine, findings: &mut Vec<Finding>) {
    for unit in machine.units.iter().filter(|u| u.key == "IODeviceWeight") {
        let device = unit.value.split_whitespace().next().unwrap_or_default();
        let disk = bottom(machine).find(|d| device.ends_with(&d.name) && d.runs("bfq"));
        let Some(disk) = disk else { continue };
        let what = format!("{} has IODeviceWeight={}, but {} runs bfq.", unit.name, unit.value, disk.name);
        let why = "systemd writes a device's weight to io.weight only, which bfq does not read.";
        let mut finding = Finding::about_machine(Severity::Fault, what, why);
        finding.subject = Subject::Disk(disk.name.clone());
        let weight = unit.value.split_whitespace().nth(1).unwrap_or("100");
        let name = shell_word(&unit.name);
        finding.mend = format!("systemctl set-property {name} {}", shell_word(&format!("IOWeight={weight}")));
        finding.undo = format!("systemctl set-property {name} IOWeight=");
        findings.push(finding);
    }
}

/// Something in a unit that needs the controller, in words.
fn needs_controller(machine: &Machine) -> Option<String> {
    let keys = [
        "IOWeight",
        "IODeviceWeight",
        "IOReadBandwidthMax",
        "IOWriteBandwidthMax",
        "IOReadIOPSMax",
        "IOWriteIOPSMax",
        "IODeviceLatencyTargetSec",
    ];
    let unit = machine.units.iter().find(|u| keys.contains(&u.key.as_str()))?;
    Some(format!("{} has {}={} ({})", unit.name, unit.key, unit.value, unit.file))
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
    let mut finding = Finding::about_machine(Severity::Fault, what, why);
    finding.mend =
        "# add systemd.unified_cgroup_hierarchy=1 to the kernel's command line, and restart".to_owned();
    finding.undo = "# remove it, and restart".to_owned();
    findings.push(finding);
}
