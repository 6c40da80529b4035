//! I/O priorities that have no effect.
//!
//! bfq and cfq honour classes and levels. mq-deadline honours classes, since Linux 5.14. kyber, `none`, and
//! the old noop and deadline honour nothing. A drive may honour priorities of commands itself, which needs a
//! switch that is off by default.

use crate::disks::Disk;
use crate::finding::{Finding, Severity};
use crate::lab::{Comparison, Load, Setting};
use crate::machine::Machine;

/// The unit or process that has a priority, in words; `None` if there is none.
fn setters(machine: &Machine, only_levels: bool) -> Option<String> {
    let unit = machine.units.iter().find(|u| {
        let is_level = u.key == "IOSchedulingPriority";
        is_level
            || (!only_levels && u.key == "IOSchedulingClass" && !matches!(u.value.as_str(), "none" | "0"))
    });
    if let Some(unit) = unit {
        return Some(format!("{} has {}={} ({})", unit.name, unit.key, unit.value, unit.file));
    }
    if let Some(file) = machine.ananicy.as_ref().filter(|_| !only_levels) {
        return Some(format!("Ananicy gives programs I/O classes ({file})"));
    }
    let process = machine.priorities.iter().find(|p| !only_levels || p.class == 2)?;
    let class = ["none", "real-time", "best-effort", "idle"].get(usize::from(process.class)).unwrap_or(&"?");
    Some(format!("process {} ({}) has the class {class}, level {}", process.pid, process.name, process.level))
}

/// Disks whose scheduler is one of these, and that could have another one: a zoned disk may need its own.
fn disks<'a>(machine: &'a Machine, schedulers: &'a [&str]) -> impl Iterator<Item = &'a Disk> {
    let could = |d: &&Disk| d.schedules() && !d.is_zoned();
    machine.disks.iter().filter(could).filter(move |d| schedulers.iter().any(|s| d.runs(s)))
}

pub(super) fn ignored(machine: &Machine, findings: &mut Vec<Finding>) {
    let Some(who) = setters(machine, false) else { return };
    let mut deaf = vec!["none", "kyber", "noop", "deadline"];
    if machine.kernel.is_before(5, 14) {
        deaf.push("mq-deadline");
    }
    for disk in disks(machine, &deaf) {
        let now = disk.scheduler.clone().unwrap_or_default();
        let what = format!("{who}, but {now} on {} ignores I/O priorities.", disk.name);
        let why = "What should stay in the background takes the disk from all others.";
        let fair = disk.fair_scheduler();
        let finding = Finding::about(disk, Severity::Fault, what, why).choose_if(machine, disk, fair);
        let lab = Comparison::on(disk, Load::Urgent, Setting::of(&now), Setting::of(fair));
        findings.push(finding.compared(lab));
    }
}

pub(super) fn levels_ignored(machine: &Machine, findings: &mut Vec<Finding>) {
    let Some(who) = setters(machine, true) else { return };
    // An older kernel's mq-deadline knows no classes either, which is a finding of its own.
    if machine.kernel.is_before(5, 14) {
        return;
    }
    for disk in disks(machine, &["mq-deadline"]) {
        let what = format!("{who}, but mq-deadline on {} knows classes only, not levels.", disk.name);
        let why = "Two programs of the best-effort class are equal there, whatever their levels.";
        findings.push(Finding::about(disk, Severity::Fault, what, why).choose_if(machine, disk, "bfq"));
    }
}
