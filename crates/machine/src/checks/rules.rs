//! Settings in files that do not do what they say.

use crate::disks::{Bus, Disk};
use crate::finding::{Finding, Severity};
use crate::machine::{Machine, is_foreign};
use crate::setters::{Setter, elevator as elevator_word};
use crate::text::shell_word;
use crate::udev::{Matches, Rule};

/// The schedulers of kernels since 5.0. Others were removed.
const KNOWN: [&str; 4] = ["none", "mq-deadline", "kyber", "bfq"];

/// Whether the kernel can have the scheduler: a disk offers it, a module is it, or its version has it.
fn exists(machine: &Machine, name: &str) -> bool {
    let offers = |d: &Disk| d.offered.iter().any(|s| s == name);
    if machine.disks.iter().any(offers) || machine.kernel.has_module_for(name) {
        return true;
    }
    let since = match name {
        "mq-deadline" => (4, 11),
        "bfq" | "kyber" => (4, 12),
        _ => (0, 0),
    };
    KNOWN.contains(&name) && !machine.kernel.is_before(since.0, since.1)
}

fn place(rule: &Rule) -> String {
    format!("{}:{}", rule.file, rule.line)
}

/// The lines of a rule as an address of sed.
fn lines(rule: &Rule) -> String {
    if rule.last > rule.line { format!("{},{}", rule.line, rule.last) } else { rule.line.to_string() }
}

/// Rules that set a scheduler, with its name. One that asks first which schedulers there are is left out
/// unless it may be for a disk; so is a value that udev has yet to put in.
fn schedulers(machine: &Machine) -> impl Iterator<Item = (&Rule, &str)> {
    machine.rules.iter().enumerate().filter_map(|(number, rule)| {
        let (_, value) = rule.sets.iter().rev().find(|(name, _)| name == "scheduler")?;
        let is_for_one = || machine.disks.iter().any(|d| machine.matches(number, d) == Matches::Yes);
        let counts = !value.contains(['$', '%']) && (!rule.asks_for_scheduler() || is_for_one());
        counts.then_some((rule, value.as_str()))
    })
}

pub(super) fn no_such_scheduler(machine: &Machine, findings: &mut Vec<Finding>) {
    let is_old = machine.disks.iter().any(Disk::has_old_queue);
    for (rule, name) in schedulers(machine) {
        if exists(machine, name) {
            continue;
        }
        let what = format!("{} sets the scheduler {name}, which this kernel does not have.", place(rule));
        let why = if is_foreign(name) {
            "The kernel refuses it, and the disk keeps its default. Only a patched kernel, or a module from \
             outside, has a scheduler of that name."
        } else if KNOWN.contains(&name) {
            "The kernel refuses it, and the disk keeps its default. mq-deadline came with Linux 4.11, bfq and \
             kyber with 4.12."
        } else {
            "The kernel refuses it, and the disk keeps its default. cfq, deadline and noop went with Linux \
             5.0; bfq, mq-deadline and none took their places."
        };
        let mut finding = Finding::about_machine(Severity::Fault, what, why);
        let new = match name {
            "bfq" | "kyber" if is_old => "cfq",
            "mq-deadline" if is_old => "deadline",
            "none" if is_old => "noop",
            "cfq" | "bfq-mq" | "bfq-sq" => "bfq",
            "noop" => "none",
            _ => "mq-deadline",
        };
        let file = shell_word(&rule.file);
        let edit = |from: &str, to: &str| {
            if from.chars().chain(to.chars()).all(|c| c.is_ascii_alphanumeric() || "-_".contains(c)) {
                format!("sed -i '{}s/\"{from}\"/\"{to}\"/' {file}", lines(rule))
            } else {
                format!("# write {to} for {from} in line {} of {file}", rule.line)
            }
        };
        (finding.mend, finding.undo) = (edit(name, new), edit(new, name));
        findings.push(finding);
    }
}

pub(super) fn not_in_force(machine: &Machine, findings: &mut Vec<Finding>) {
    for disk in &machine.disks {
        let Some(now) = &disk.scheduler else { continue };
        let Some((rule, wanted)) = machine.certain_rule_for(disk, "scheduler") else { continue };
        if wanted == now || !exists(machine, wanted) {
            continue;
        }
        // A zoned disk may need its own scheduler, and the kernel then refuses a rule for all disks.
        if disk.is_zoned() && !disk.offered.iter().any(|s| s == wanted) {
            continue;
        }
        // A daemon that sets another is a finding of its own.
        if matches!(machine.setter(disk), Some(Setter::Tuned(_) | Setter::Tlp(_))) {
            continue;
        }
        let what = format!("{} sets {wanted} for {}, which runs {now}.", place(rule), disk.name);
        let why = "The module was not loaded when the rule ran, or the scheduler was changed since.";
        let mut finding = Finding::about(disk, Severity::Fault, what, why).choose(disk, wanted);
        if wanted != "none" && !disk.has_old_queue() {
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
    for (number, rule) in machine.rules.iter().enumerate() {
        let Some(serial) = rule.serial().filter(|_| !rule.sets.is_empty()) else { continue };
        if real.is_empty() || real.iter().any(|d| machine.matches(number, d) != Matches::No) {
            continue;
        }
        let what =
            format!("{} is for a disk with the serial number {serial}, which is not there.", place(rule));
        let why = "It does nothing. If the disk is only unplugged, leave it.";
        let mut finding = Finding::about_machine(Severity::Advice, what, why);
        let (file, lines) = (shell_word(&rule.file), lines(rule));
        finding.mend = format!("sed -i '{lines}s/^/#/' {file}");
        finding.undo = format!("sed -i '{lines}s/^#//' {file}");
        findings.push(finding);
    }
}

pub(super) fn elevator(machine: &Machine, findings: &mut Vec<Finding>) {
    let Some(word) = elevator_word(&machine.command_line) else { return };
    let name = word.trim_start_matches("elevator=");
    let why = if !machine.disks.iter().any(Disk::has_old_queue) {
        if machine.kernel.is_before(5, 0) {
            "It is for disks with the old queue, and all disks here have that of blk-mq. A udev rule chooses a \
             scheduler."
        } else {
            "It has had no effect since Linux 5.0. A udev rule chooses a scheduler."
        }
    } else if name == "as" || exists(machine, name) {
        return;
    } else {
        "This kernel has no such scheduler, and takes its default."
    };
    let what = format!("The kernel's command line has {word}.");
    let mut finding = Finding::about_machine(Severity::Fault, what, why);
    finding.mend =
        format!("# remove {word} from GRUB_CMDLINE_LINUX in /etc/default/grub, and run update-grub");
    finding.undo = "# put it back, and run update-grub".to_owned();
    findings.push(finding);
}

pub(super) fn disagree(machine: &Machine, findings: &mut Vec<Finding>) {
    for disk in &machine.disks {
        let Some((rule, by_rule)) = machine.certain_rule_for(disk, "scheduler") else { continue };
        for daemon in &machine.daemons {
            let Some(other) = daemon.for_disk(disk).filter(|s| *s != by_rule) else { continue };
            let (name, file, mend) = match daemon.setter() {
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
                    format!("sed -i 's/^DISK_IOSCHED/#DISK_IOSCHED/' {} && tlp start", shell_word(&file)),
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
                format!("sed -i 's/^#DISK_IOSCHED/DISK_IOSCHED/' {} && tlp start", shell_word(&file))
            } else {
                format!("# put elevator={other} back, then: systemctl restart tuned")
            };
            finding.mend = mend;
            findings.push(finding);
        }
    }
}
