//! Disks made of others.

use crate::finding::{Finding, Severity};
use crate::machine::Machine;

pub(super) fn loop_buffered(machine: &Machine, findings: &mut Vec<Finding>) {
    for disk in &machine.disks {
        let Some(backing) = disk.backing.as_ref().filter(|b| !b.direct) else { continue };
        let what = format!("{} caches {} a second time (direct I/O is off).", disk.name, backing.file);
        let why = "Data are in memory twice, and what the loop device calls written may only be in the page \
                   cache of its file.";
        let mut finding = Finding::about(disk, Severity::Advice, what, why);
        finding.mend = format!("losetup --direct-io=on /dev/{}", disk.name);
        finding.undo = format!("losetup --direct-io=off /dev/{}", disk.name);
        findings.push(finding);
    }
}

pub(super) fn scheduled_twice(machine: &Machine, findings: &mut Vec<Finding>) {
    for disk in machine.disks.iter().filter(|d| d.runs("bfq") && !d.below.is_empty()) {
        let below = disk.below.iter().filter_map(|name| machine.disk(name));
        let Some(lower) = below.into_iter().find(|d| d.runs("bfq")) else { continue };
        let what = format!("{} runs bfq, and so does {} below it.", disk.name, lower.name);
        let why = "Both idle for the same reader, one after the other, and the lower one sees the programs \
                   already mixed.";
        findings.push(Finding::about(disk, Severity::Advice, what, why).choose(disk, "none"));
    }
}
