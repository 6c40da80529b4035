//! Settings in files that do not do what they say.

use crate::disks::Bus;
use crate::finding::{Finding, Severity};
use crate::machine::Machine;
use crate::setters::Setter;
use crate::udev::{Matches, Rule};

/// The schedulers of kernels since 5.0. Others were removed.
const KNOWN: [&str; 4] = ["none", "mq-deadline", "kyber", "bfq"];

fn place(rule: &Rule) -> String {
    format!("{}:{}", rule.file, rule.line)
}

/// Rules that set a scheduler, with its name.
fn schedulers(machine: &Machine) -> impl Iterator<Item = (&Rule, &str)> {
    machine.rules.iter().filter_map(|rule| {
        let (_, value) = rule.sets.iter().rev().find(|(name, _)| name == "scheduler")?;
        Some((rule, value.as_str()))
    })
}

pub(super) fn no_such_scheduler(machine: &Machine, findings: &mut Vec<Finding>) {
    for (rule, name) in schedulers(machine) {
        let offered = machine.disks.iter().any(|d| d.offered.iter().any(|s| s == name));
        if KNOWN.contains(&name) || offered {
            continue;
        }
        let what = format!("{} sets the scheduler {name}, which this kernel does not have.", place(rule));
        let why = "The kernel refuses it, and the disk keeps its default. cfq, deadline and noop went with \
                   Linux 5.0; bfq, mq-deadline and none took their places.";
        let mut finding = Finding::about_machine(Severity::Fault, what, why);
        let new = match name {
            "cfq" | "bfq-mq" | "bfq-sq" => "bfq",
            "noop" => "none",
            _ => "mq-deadline",
        };
        let edit =
            |from: &str, to: &str| format!("sed -i '{}s/\"{from}\"/\"{to}\"/' {}", rule.line, rule.file);
        (finding.mend, finding.undo) = (edit(name, new), edit(new, name));
        findings.push(finding);
    }
}

pub(super) fn not_in_force(machine: &Machine, findings: &mut Vec<Finding>) {
    for disk in &machine.disks {
        let Some(now) = &disk.scheduler else { continue };
        let Some((rule, wanted)) = machine.rule_for(disk, "scheduler") else { continue };
        if wanted == now || !KNOWN.contains(&wanted) || rule.matches(disk) != Matches::Yes {
            continue;
        }
        // A daemon that sets another is a finding of its own.
        if matches!(machine.setter(disk), Some(Setter::Tuned(_) | Setter::Tlp(_))) {
            continue;
        }
        let what = format!("{} sets {wanted} for {}, which runs {now}.", place(rule), disk.name);
        let why = "The module was not loaded when the rule ran, or the scheduler was changed since.";
        let mut finding = Finding::about(disk, Severity::Fault, what, why).choose(disk, wanted);
        if wanted != "none" {
            finding.mend = format!(
                "echo {wanted} > /etc/modules-load.d/{wanted}.conf && modprobe {wanted} && udevadm trigger --sysname-match={}",
                disk.name
            );
        }
        findings.push(finding);
    }
}

pub(super) fn no_such_disk(machine: &Machine, findings: &mut Vec<Finding>) {
    // Loop devices and layers have no serial number. Of a disk whose number is not known a rule may be.
    let real: Vec<_> = machine.disks.iter().filter(|d| d.bus != Bus::None).collect();
    for rule in &machine.rules {
        let Some(serial) = rule.serial().filter(|_| !rule.sets.is_empty()) else { continue };
        if real.is_empty() || real.iter().any(|d| rule.matches(d) != Matches::No) {
            continue;
        }
        let what =
            format!("{} is for a disk with the serial number {serial}, which is not there.", place(rule));
        let why = "It does nothing. If the disk is only unplugged, leave it.";
        let mut finding = Finding::about_machine(Severity::Advice, what, why);
        let (file, line) = (&rule.file, rule.line);
        finding.mend = format!("sed -i '{line}s/^/#/' {file}");
        finding.undo = format!("sed -i '{line}s/^#//' {file}");
        findings.push(finding);
    }
}

pub(super) fn elevator(machine: &Machine, findings: &mut Vec<Finding>) {
    let word = machine.command_line.split_whitespace().find(|w| w.starts_with("elevator="));
    let Some(word) = word else { return };
    let what = format!("The kernel's command line has {word}.");
    let why = "It has had no effect since Linux 5.0. A udev rule chooses a scheduler.";
    let mut finding = Finding::about_machine(Severity::Fault, what, why);
    finding.mend =
        format!("# remove {word} from GRUB_CMDLINE_LINUX in /etc/default/grub, and run update-grub");
    finding.undo = "# put it back, and run update-grub".to_owned();
    findings.push(finding);
}

pub(super) fn disagree(machine: &Machine, findings: &mut Vec<Finding>) {
    for disk in &machine.disks {
        let Some((rule, by_rule)) = machine.rule_for(disk, "scheduler") else { continue };
        if rule.matches(disk) != Matches::Yes {
            continue;
        }
        for daemon in &machine.daemons {
            let Some(other) = daemon.for_disk(&disk.name).filter(|s| *s != by_rule) else { continue };
            let (name, file, mend) = match &daemon.setter {
                Setter::Tuned(profile) => (
                    "tuned",
                    format!("its profile {profile}"),
                    format!(
                        "# remove elevator={other} from [disk] of the profile {profile}, then: systemctl restart tuned"
                    ),
                ),
                Setter::Tlp(file) => (
                    "TLP",
                    file.clone(),
                    format!("sed -i 's/^DISK_IOSCHED/#DISK_IOSCHED/' {file} && tlp start"),
                ),
                _ => continue,
            };
            let what = format!(
                "{} sets {by_rule} for {}, and {name} sets {other} ({file}).",
                place(rule),
                disk.name
            );
            let why = "Which one wins depends on which comes last, at each start and each plugging in.";
            let mut finding = Finding::about(disk, Severity::Fault, what, why);
            finding.undo = if name == "TLP" {
                format!("sed -i 's/^#DISK_IOSCHED/DISK_IOSCHED/' {file} && tlp start")
            } else {
                format!("# put elevator={other} back, then: systemctl restart tuned")
            };
            finding.mend = mend;
            findings.push(finding);
        }
    }
}
