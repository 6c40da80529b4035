//! Whether the scheduler suits the kind of disk. What suits which is in docs/nvme.md, with measurements.

use crate::disks::{Bus, Disk, Kind};
use crate::finding::{Finding, Severity};
use crate::lab::{Comparison, Load, Setting};
use crate::machine::Machine;

fn unfit(disk: &Disk, better: &str, load: Load, why: &str) -> Finding {
    let now = disk.scheduler.clone().unwrap_or_default();
    let what = format!("{} is a {} under {now}.", disk.name, disk.kind.name());
    let mut finding = Finding::about(disk, Severity::Advice, what, why).choose(disk, better);
    finding.lab = Comparison::on(disk, load, Setting::of(&now), Setting::of(better));
    finding
}

fn of_kind(machine: &Machine, kinds: &[Kind], schedulers: &[&str]) -> Vec<Disk> {
    let fits = |d: &&Disk| kinds.contains(&d.kind) && schedulers.iter().any(|s| d.runs(s));
    machine.disks.iter().filter(fits).cloned().collect()
}

pub(super) fn rotating(machine: &Machine, findings: &mut Vec<Finding>) {
    let why = "Its head goes where the next request is, in the order of arrival. One program that copies \
               makes all others wait.";
    for disk in of_kind(machine, &[Kind::Rotating], &["none", "kyber"]) {
        findings.push(unfit(&disk, "bfq", Load::StartUp, why));
    }
}

pub(super) fn slow_start(machine: &Machine, findings: &mut Vec<Finding>) {
    let why = "mq-deadline keeps requests from waiting too long, but does not share the disk between \
               programs. bfq does; on a server whose only load is one database, stay.";
    for disk in of_kind(machine, &[Kind::Rotating, Kind::Ssd], &["mq-deadline"]) {
        findings.push(unfit(&disk, "bfq", Load::StartUp, why));
    }
}

pub(super) fn card(machine: &Machine, findings: &mut Vec<Finding>) {
    let why = "Such flash does one thing at a time, and a write can take as long as hundreds of reads.";
    let others = ["none", "mq-deadline", "kyber"];
    for disk in of_kind(machine, &[Kind::Card, Kind::Emmc], &others) {
        findings.push(unfit(&disk, "bfq", Load::StartUp, why));
    }
}

pub(super) fn nvme(machine: &Machine, findings: &mut Vec<Finding>) {
    let why = "bfq does its work under one lock for the disk, which limits what several processors can send.";
    for disk in of_kind(machine, &[Kind::Nvme], &["bfq"]) {
        // Weights of groups are a reason to have it.
        if machine.cgroups.weights.is_empty() && machine.units.iter().all(|u| u.key != "IOWeight") {
            findings.push(unfit(&disk, "none", Load::DeepReaders, why));
        }
    }
}

pub(super) fn low_latency_off(machine: &Machine, findings: &mut Vec<Finding>) {
    let why = "bfq then does not prefer programs that start or that wait for a person.";
    for disk in machine.disks.iter().filter(|d| d.runs("bfq") && d.tunable("low_latency") == Some(0)) {
        let what = format!("{} runs bfq with low_latency 0.", disk.name);
        let mut finding =
            Finding::about(disk, Severity::Advice, what, why).set(disk, "iosched/low_latency", "0", "1");
        let before = Setting { tunables: vec![("low_latency", 0)], ..Setting::of("bfq") };
        finding.lab = Comparison::on(disk, Load::StartUp, before, Setting::of("bfq"));
        findings.push(finding);
    }
}

pub(super) fn slice_idle_off(machine: &Machine, findings: &mut Vec<Finding>) {
    let why = "bfq then does not wait for a reader's next request, and the head moves between readers.";
    let off = |d: &&Disk| d.kind == Kind::Rotating && d.runs("bfq") && d.tunable("slice_idle") == Some(0);
    for disk in machine.disks.iter().filter(off) {
        let what = format!("{} is a rotating disk under bfq with slice_idle 0.", disk.name);
        let mut finding =
            Finding::about(disk, Severity::Advice, what, why).set(disk, "iosched/slice_idle", "0", "8");
        let before = Setting { tunables: vec![("slice_idle", 0)], ..Setting::of("bfq") };
        finding.lab = Comparison::on(disk, Load::Streams, before, Setting::of("bfq"));
        findings.push(finding);
    }
}

pub(super) fn rotational_wrong(machine: &Machine, findings: &mut Vec<Finding>) {
    let why = "bfq then idles to save seeks that there are none of, and rules for rotating disks apply.";
    let is_ssd =
        |d: &&Disk| d.rotational && d.kind == Kind::Ssd && matches!(d.bus, Bus::Usb | Bus::Sata | Bus::Sas);
    for disk in machine.disks.iter().filter(is_ssd) {
        let what = format!(
            "{} calls itself '{}', and the kernel takes it for a rotating disk.",
            disk.name, disk.model
        );
        findings.push(Finding::about(disk, Severity::Advice, what, why).set(disk, "rotational", "1", "0"));
    }
}
