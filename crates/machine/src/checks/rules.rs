//! Settings in files that do not do what they say.

use crate::disks::{Bus, Disk, Kind};
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
    if machine.disks.iter().any(offers) {
        return true;
    }
    // A module of blk-mq is of no use to disks with the old queue.
    if machine.kernel.lacks(name) || (KNOWN.contains(&name) && has_old_queues_only(machine)) {
        return false;
    }
    if machine.kernel.has_module_for(name) {
        return true;
    }
    let since = match name {
        "mq-deadline" => (4, 11),
        "bfq" | "kyber" => (4, 12),
        _ => (0, 0),
    };
    KNOWN.contains(&name) && !machine.kernel.is_before(since.0, since.1)
}

fn has_old_queues_only(machine: &Machine) -> bool {
    let mut disks = machine.disks.iter().filter(|d| d.schedules()).peekable();
    disks.peek().is_some() && disks.all(Disk::has_old_queue)
}

/// Why a kernel refuses the scheduler that a setting names.
fn refused(machine: &Machine, name: &str) -> &'static str {
    if is_foreign(name) {
        "The kernel refuses it, and the disk keeps its default. Only a patched kernel, or a module from \
         outside, has a scheduler of that name."
    } else if !KNOWN.contains(&name) {
        "The kernel refuses it, and the disk keeps its default. cfq, deadline and noop went with Linux \
         5.0; bfq, mq-deadline and none took their places."
    } else if machine.kernel.is_before(4, 12) {
        "The kernel refuses it, and the disk keeps its default. mq-deadline came with Linux 4.11, bfq and \
         kyber with 4.12."
    } else if has_old_queues_only(machine) {
        "The kernel refuses it, and the disk keeps its default: the disks here have the old queue, whose \
         schedulers are noop, deadline and cfq."
    } else {
        "The kernel refuses it, and the disk keeps its default: it was built without this scheduler, or a \
         file in /etc/modprobe.d keeps the module out."
    }
}

/// The scheduler that takes the place of one that these disks cannot have.
fn successor(machine: &Machine, disks: &[&Disk], name: &str) -> &'static str {
    let all = || machine.disks.iter().filter(|d| disks.is_empty() || disks.iter().any(|o| o.name == d.name));
    let is_old = all().any(Disk::has_old_queue);
    let has_bfq = || all().any(|d| machine.can_have(d, "bfq"));
    let is_slow = |d: &Disk| matches!(d.kind, Kind::Rotating | Kind::Ssd | Kind::Card | Kind::Emmc);
    match name {
        "bfq" | "kyber" if is_old => "cfq",
        "mq-deadline" if is_old => "deadline",
        "none" if is_old => "noop",
        "cfq" | "bfq-mq" | "bfq-sq" | "mq-deadline" if has_bfq() => "bfq",
        // Where none would be a finding of its own, or the one in force is, bfq is what is advised.
        "noop" if has_bfq() && !disks.is_empty() && disks.iter().all(|d| is_slow(d)) => "bfq",
        "noop" | "mq-deadline" => "none",
        _ => "mq-deadline",
    }
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
    for (rule, name) in schedulers(machine) {
        if exists(machine, name) {
            continue;
        }
        let what = format!("{} sets the scheduler {name}, which this kernel does not have.", place(rule));
        let mut finding = Finding::about_machine(Severity::Fault, what, refused(machine, name));
        let its = |d: &&Disk| machine.rule_is_for(rule, d);
        let new = successor(machine, &machine.disks.iter().filter(its).collect::<Vec<_>>(), name);
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

/// Whether the scheduler is one of the queue that the disk does not have.
fn is_of_other_queue(disk: &Disk, scheduler: &str) -> bool {
    let is_old = matches!(scheduler, "noop" | "deadline" | "cfq" | "anticipatory");
    let is_offered = disk.offered.iter().any(|s| s == scheduler);
    !is_offered && !is_foreign(scheduler) && is_old != disk.has_old_queue()
}

/// Numbers in `queue/` that rules set and that stay as they are set.
const NUMBERS: [&str; 7] =
    ["read_ahead_kb", "nr_requests", "rotational", "add_random", "iostats", "nomerges", "rq_affinity"];

pub(super) fn not_in_force(machine: &Machine, findings: &mut Vec<Finding>) {
    scheduler_not_in_force(machine, findings);
    for disk in &machine.disks {
        for name in NUMBERS {
            let Some((rule, wanted)) = machine.certain_rule_for(disk, name) else { continue };
            let (Some(now), Ok(number)) = (disk.queue_number(name), wanted.parse::<i64>()) else { continue };
            if now == number {
                continue;
            }
            let what = format!("{} sets {name} {wanted} for {}, which has {now}.", place(rule), disk.name);
            let why = "The rule came before the disk was there, or another setting came after it: each change \
                       of the scheduler, for one, gives nr_requests its default again.";
            let finding = Finding::about(disk, Severity::Fault, what, why);
            let mut finding = finding.set(disk, name, &now.to_string(), wanted);
            if rule.is_for_change() {
                finding.mend = format!("udevadm trigger --action=change --sysname-match={}", disk.name);
            }
            findings.push(finding);
        }
    }
}

fn scheduler_not_in_force(machine: &Machine, findings: &mut Vec<Finding>) {
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
        if is_of_other_queue(disk, wanted) {
            let new = successor(machine, &[disk], wanted);
            let why = "Disks with the old queue have noop, deadline and cfq; disks with that of blk-mq have \
                       none, mq-deadline, kyber and bfq. The kernel refuses the name of the other queue.";
            let mend = format!("# in {}, write {new} for disks such as {}", place(rule), disk.name);
            let finding = Finding::about(disk, Severity::Fault, what, why);
            findings.push(finding.by(mend, format!("# write {wanted} again")));
            continue;
        }
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
    let finding = Finding::about_machine(Severity::Fault, what, why);
    let is_plain = word.chars().all(|c| c.is_ascii_alphanumeric() || "=-_".contains(c));
    findings.push(match machine.command_line_file.as_ref().filter(|_| is_plain) {
        Some(file) => {
            finding.by(format!("sed -i 's/ *{word}//' {file}"), format!("sed -i '1s/$/ {word}/' {file}"))
        }
        None => finding.by(
            format!("# remove {word} from GRUB_CMDLINE_LINUX in /etc/default/grub, and run update-grub"),
            "# put it back, and run update-grub",
        ),
    });
}

pub(super) fn disagree(machine: &Machine, findings: &mut Vec<Finding>) {
    for disk in &machine.disks {
        let Some((rule, by_rule)) = machine.certain_rule_for(disk, "scheduler") else { continue };
        for daemon in &machine.daemons {
            // What the disk cannot have does not come to be, and is a finding of its own.
            let counts = |s: &&str| *s != by_rule && !is_refused(machine, disk, s);
            let Some(other) = daemon.for_disk(disk).filter(counts) else { continue };
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

/// Tunables of schedulers that rules set, and the schedulers that have them.
const TUNABLES: [(&str, &[&str]); 10] = [
    ("slice_idle", &["bfq", "cfq"]),
    ("low_latency", &["bfq", "cfq"]),
    ("back_seek_max", &["bfq", "cfq"]),
    ("group_idle", &["cfq"]),
    ("quantum", &["cfq"]),
    ("target_latency", &["cfq"]),
    ("fifo_batch", &["mq-deadline", "deadline"]),
    ("writes_starved", &["mq-deadline", "deadline"]),
    ("read_lat_nsec", &["kyber"]),
    ("strict_guarantees", &["bfq"]),
];

pub(super) fn of_other_scheduler(machine: &Machine, findings: &mut Vec<Finding>) {
    for disk in &machine.disks {
        let Some(now) = disk.scheduler.as_deref() else { continue };
        for (tunable, owners) in TUNABLES {
            let set = machine.certain_rule_for(disk, &format!("iosched/{tunable}"));
            let Some((rule, value)) = set.filter(|_| !owners.contains(&now)) else { continue };
            // A scheduler of a patched kernel may have it.
            if disk.tunables.contains_key(tunable) || is_foreign(now) {
                continue;
            }
            let what = format!(
                "{} sets {tunable} {value} for {}, which runs {now} and has no such tunable.",
                place(rule),
                disk.name
            );
            let why = "A scheduler's tunables are there while it is in force only. A rule that chooses the \
                       scheduler has to come before.";
            let (file, lines) = (shell_word(&rule.file), lines(rule));
            let finding = Finding::about(disk, Severity::Fault, what, why);
            findings.push(
                finding
                    .by(format!("sed -i '{lines}s/^/#/' {file}"), format!("sed -i '{lines}s/^#//' {file}")),
            );
        }
    }
}

/// Whether the kernel would refuse the scheduler for the disk.
fn is_refused(machine: &Machine, disk: &Disk, name: &str) -> bool {
    let can_be = !disk.has_old_queue() && exists(machine, name);
    !can_be && disk.offered.iter().all(|s| s != name)
}

pub(super) fn daemon_without(machine: &Machine, findings: &mut Vec<Finding>) {
    for disk in &machine.disks {
        for daemon in &machine.daemons {
            let Some(name) = daemon.for_disk(disk) else { continue };
            if disk.scheduler.is_none() || !is_refused(machine, disk, name) {
                continue;
            }
            let new = successor(machine, &[disk], name);
            let (who, file, mend) = match daemon.setter() {
                Setter::Tuned(profile) => {
                    let mend = format!("# write elevator={new} in [disk] of the profile {profile}");
                    ("tuned", format!("profile {profile}"), format!("{mend}, then: systemctl restart tuned"))
                }
                Setter::Tlp(file) => {
                    let mend = format!("# write {new} for {name} in DISK_IOSCHED of {file}, then: tlp start");
                    ("TLP", file, mend)
                }
                _ => continue,
            };
            let what = format!("{who} sets {name} for {} ({file}), which cannot have it.", disk.name);
            let finding = Finding::about(disk, Severity::Fault, what, refused(machine, name));
            findings.push(finding.by(mend, format!("# write {name} again")));
        }
    }
}
