//! Whether the scheduler suits the kind of disk. What suits which is in docs/nvme.md, with measurements.

use crate::disks::{Bus, Disk, Kind};
use crate::finding::{Finding, Severity};
use crate::lab::{Comparison, Load, Setting};
use crate::machine::Machine;

fn unfit(disk: &Disk, better: &str, load: Load, why: &str) -> Finding {
    let now = disk.scheduler.clone().unwrap_or_default();
    let what = format!("{} is a {} under {now}.", disk.name, disk.kind.name());
    let mut finding = Finding::about(disk, Severity::Advice, what, why).choose(disk, better);
    finding.lab.extend(Comparison::on(disk, load, Setting::of(&now), Setting::of(better)));
    finding
}

/// The disks of these kinds under one of these schedulers, without paths of multipath disks, whose schedulers
/// are passed by, and without disks of ZFS, which has a scheduler of its own and wants none below.
fn of_kind(machine: &Machine, kinds: &[Kind], schedulers: &[&str]) -> Vec<Disk> {
    let is_own = |d: &Disk| !d.is_path && !d.is_of_zfs;
    let fits = |d: &&Disk| kinds.contains(&d.kind) && is_own(d) && schedulers.iter().any(|s| d.runs(s));
    machine.disks.iter().filter(fits).cloned().collect()
}

pub(super) fn rotating(machine: &Machine, findings: &mut Vec<Finding>) {
    let why = "Its head goes where the next request is, in the order of arrival. One program that copies \
               makes all others wait. On a server whose only load is one database, mq-deadline is better.";
    for disk in of_kind(machine, &[Kind::Rotating], &["none", "kyber", "noop"]) {
        let better = if machine.can_have(&disk, "bfq") {
            "bfq"
        } else {
            let offered = |s: &&str| disk.offered.iter().any(|o| o == s);
            let Some(better) = ["mq-deadline", "cfq", "deadline"].into_iter().find(offered) else { continue };
            better
        };
        // That a zoned disk needs mq-deadline is a fault of its own.
        if !needs_order_of(machine, &disk) {
            findings.push(unfit(&disk, better, Load::StartUp, why));
        }
    }
}

pub(super) fn slow_start(machine: &Machine, findings: &mut Vec<Finding>) {
    let why = "mq-deadline keeps requests from waiting too long, but does not share the disk between \
               programs. bfq does; on a server whose only load is one database, stay.";
    for disk in of_kind(machine, &[Kind::Rotating, Kind::Ssd], &["mq-deadline"]) {
        // A kernel that is known to be built without bfq is a finding; of others it is not said.
        let lacks = machine.kernel.lacks("bfq") && !machine.has_early_bfq() && !disk.is_zoned();
        if lacks || machine.can_have(&disk, "bfq") {
            let finding = unfit(&disk, "bfq", Load::StartUp, why);
            findings.push(finding.choose_if(machine, &disk, "bfq"));
        }
    }
}

pub(super) fn card(machine: &Machine, findings: &mut Vec<Finding>) {
    let why = "Such flash does one thing at a time, and a write can take as long as hundreds of reads. On a \
               server whose only load is one database, stay.";
    let others = ["none", "mq-deadline", "kyber"];
    for disk in of_kind(machine, &[Kind::Card, Kind::Emmc], &others) {
        if machine.can_have(&disk, "bfq") {
            findings.push(unfit(&disk, "bfq", Load::StartUp, why));
        }
    }
}

pub(super) fn nvme(machine: &Machine, findings: &mut Vec<Finding>) {
    let why = "A program starts sooner beside readers under it. In return bfq does its work under one lock for \
               the disk, which limits what several processors can send. Keep it where a person waits; many \
               deep readers are better served without a scheduler.";
    for disk in of_kind(machine, &[Kind::Nvme], &["bfq"]) {
        // Weights of groups are a reason to have it. A zoned disk may need mq-deadline.
        let has_weights = || machine.units.iter().any(|u| u.key == "IOWeight");
        if machine.cgroups.weights.is_empty() && !has_weights() && !needs_order_of(machine, &disk) {
            let start =
                Comparison::on(&disk, Load::StartUpBesideReaders, Setting::of("bfq"), Setting::of("none"));
            let mut finding = unfit(&disk, "none", Load::DeepReaders, why).compared(start);
            finding.mend = format!("# if deep readers count more than starts: {}", finding.mend);
            findings.push(finding);
        }
    }
}

/// The early bfq of mainline: a disk could stop for good after a request was taken back, as when a partition
/// table is written.
//= https://github.com/NixOS/nixpkgs/issues/35025
pub(super) fn early_bfq(machine: &Machine, findings: &mut Vec<Finding>) {
    let runs = |d: &&Disk| machine.has_early_bfq() && !d.has_old_queue() && d.runs("bfq") && !d.is_path;
    for disk in machine.disks.iter().filter(runs) {
        let what = format!("{} runs the bfq of Linux 4.12 to 4.15.", disk.name);
        let why = "Under it disks stopped for good, for instance when a partition table was written. Programs \
                   start more slowly without it, until the kernel is a newer one.";
        let finding = Finding::about(disk, Severity::Fault, what, why);
        findings.push(finding.choose(disk, "mq-deadline"));
    }
}

/// Whether the disk's zones take writes in order only, and the kernel leaves their order to the scheduler.
fn needs_order_of(machine: &Machine, disk: &Disk) -> bool {
    disk.is_host_managed() && machine.kernel.is_before(6, 10) && !machine.kernel.is_before(4, 16)
}

pub(super) fn zoned(machine: &Machine, findings: &mut Vec<Finding>) {
    let why = "Its zones take writes in order only. Before Linux 6.10 mq-deadline alone keeps that order; \
               under other schedulers a write can come too early and fail.";
    let needed = |d: &Disk| if d.has_old_queue() { "deadline" } else { "mq-deadline" };
    let fits = |d: &&Disk| needs_order_of(machine, d) && d.schedules() && !d.runs(needed(d));
    for disk in machine.disks.iter().filter(fits) {
        let now = disk.scheduler.clone().unwrap_or_default();
        let what = format!("{} is a host-managed zoned disk under {now}.", disk.name);
        let finding = Finding::about(disk, Severity::Fault, what, why);
        findings.push(finding.choose(disk, needed(disk)));
    }
}

pub(super) fn low_latency_off(machine: &Machine, findings: &mut Vec<Finding>) {
    let why = "bfq then does not prefer programs that start or that wait for a person.";
    let is_off = |d: &&Disk| d.runs("bfq") && !d.is_path && d.tunable("low_latency") == Some(0);
    for disk in machine.disks.iter().filter(is_off) {
        let what = format!("{} runs bfq with low_latency 0.", disk.name);
        let mut finding =
            Finding::about(disk, Severity::Advice, what, why).set(disk, "iosched/low_latency", "0", "1");
        let before = Setting { tunables: vec![("low_latency", 0)], ..Setting::of("bfq") };
        finding.lab.extend(Comparison::on(disk, Load::StartUp, before, Setting::of("bfq")));
        findings.push(finding);
    }
}

pub(super) fn slice_idle_off(machine: &Machine, findings: &mut Vec<Finding>) {
    let why = "bfq then does not wait for a reader's next request, and the head moves between readers.";
    let is_off = |d: &&Disk| d.runs("bfq") && d.tunable("slice_idle") == Some(0);
    for disk in of_kind(machine, &[Kind::Rotating], &["bfq"]).iter().filter(is_off) {
        let what = format!("{} is a rotating disk under bfq with slice_idle 0.", disk.name);
        let mut finding =
            Finding::about(disk, Severity::Advice, what, why).set(disk, "iosched/slice_idle", "0", "8");
        let before = Setting { tunables: vec![("slice_idle", 0)], ..Setting::of("bfq") };
        finding.lab.extend(Comparison::on(disk, Load::Streams, before, Setting::of("bfq")));
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
