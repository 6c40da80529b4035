//! What the doctor found: a table of disks and the findings one by one, or one JSON object.

use fairhead_machine::text::{printable, printable_json};
use fairhead_machine::{Disk, Finding, Machine, Setter, Severity, Subject};
use serde_json::{Value, json};

use super::table::{Best, Cell, Table};
use crate::args::ReportFormat;

/// A machine and what is wrong with it.
pub(crate) struct Diagnosis<'a> {
    /// The facts.
    pub(crate) machine: &'a Machine,
    /// The findings.
    pub(crate) findings: &'a [Finding],
    /// What the lab says to each finding, sentence by sentence; empty if it was not asked.
    pub(crate) numbers: &'a [Vec<String>],
}

/// The diagnosis as text, with a line break at its end.
pub(crate) fn render(d: &Diagnosis<'_>, format: ReportFormat, coloured: bool) -> String {
    match format {
        ReportFormat::Human => human(d, coloured),
        ReportFormat::Json => {
            let text = serde_json::to_string_pretty(&object(d)).expect("a JSON value can be written");
            printable_json(&text).into_owned() + "\n"
        }
    }
}

fn human(d: &Diagnosis<'_>, coloured: bool) -> String {
    let columns = ["disk", "kind", "bus", "size", "model", "queues", "depth", "scheduler", "set by"];
    let table = Table {
        words: columns.len(),
        columns: columns.map(|c| (c, Best::None)).to_vec(),
        blocks: vec![d.machine.disks.iter().map(|disk| row(d.machine, disk)).collect()],
    };
    let mut text = table.render(coloured);
    for line in surroundings(d.machine) {
        text.push_str(&format!("\n{}\n", printable(&line)));
    }
    for (n, finding) in d.findings.iter().enumerate() {
        text.push_str(&one(n + 1, finding, d.numbers.get(n).map_or(&[], Vec::as_slice)));
    }
    text.push_str(&format!("\n{}\n", summary(d.findings)));
    text
}

fn row(machine: &Machine, disk: &Disk) -> Vec<Cell> {
    let depth = disk.device_depth.map(|d| d.to_string());
    let requests = disk.queue.get("nr_requests").map(|n| format!("{n} requests"));
    let words = [
        disk.name.clone(),
        kind(disk),
        disk.bus.name().to_owned(),
        size(disk.bytes),
        disk.model.clone(),
        disk.hardware_queues.to_string(),
        depth.or(requests).unwrap_or_default(),
        disk.scheduler.clone().unwrap_or_else(|| "(no queue)".to_owned()),
        machine.setter(disk).as_ref().map(setter).unwrap_or_default(),
    ];
    // A device names its own model, and a terminal must not obey it.
    words.into_iter().map(|w| Cell::label(printable(&w))).collect()
}

/// The kind, with what else decides about a scheduler.
fn kind(disk: &Disk) -> String {
    let name = disk.kind.name();
    match (disk.is_path, disk.is_zoned()) {
        (true, _) => format!("{name} (path)"),
        (_, true) => format!("{name} (zoned)"),
        _ if disk.is_multipath => "multipath disk".to_owned(),
        _ => name.to_owned(),
    }
}

/// A size as disks are sold: powers of 1000.
fn size(bytes: u64) -> String {
    let units = [(1_000_000_000_000, "TB"), (1_000_000_000, "GB"), (1_000_000, "MB")];
    let (unit, name) = units.into_iter().find(|(unit, _)| bytes >= *unit).unwrap_or((1000, "kB"));
    format!("{}.{} {name}", bytes / unit, bytes % unit * 10 / unit)
}

fn setter(setter: &Setter) -> String {
    match setter {
        Setter::Udev(file, line) => format!("{file}:{line}"),
        Setter::Tuned(profile) => format!("tuned, profile {profile}"),
        Setter::Tlp(file) => format!("TLP, {file}"),
        Setter::CommandLine(word) => format!("the kernel's command line, {word}"),
        Setter::Kernel => "the kernel's default".to_owned(),
        Setter::Patched => "the patched kernel, or by hand".to_owned(),
        Setter::Unknown => "by hand, or a program".to_owned(),
    }
}

/// What the reader has to know about where this ran.
fn surroundings(machine: &Machine) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(kind) = &machine.container {
        lines.push(format!(
            "This is a container ({kind}). The disks are those of its host, and their settings can be changed there."
        ));
    }
    if machine.is_guest {
        lines.push(
            "This machine is a guest. What its virtual disks are made of, and who shares them, cannot be seen."
                .to_owned(),
        );
    }
    if let [first, rest @ ..] = machine.unseen.as_slice() {
        let more = if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) };
        lines.push(format!("Could not be read without root: {first}{more}. Something may be wrong there."));
    }
    lines
}

fn one(number: usize, f: &Finding, lab: &[String]) -> String {
    let [what, why, mend, undo] = [&f.what, &f.why, &f.mend, &f.undo].map(|text| printable(text));
    let mut text = format!("\n{number}. {what} [{}, {}]\n", severity(f.severity), f.check);
    text.push_str(&format!("   Why:  {why}\n"));
    for sentence in lab {
        text.push_str(&format!("         {sentence}\n"));
    }
    text.push_str(&format!("   Do:   {mend}\n   Undo: {undo}\n"));
    text
}

const fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Fault => "fault",
        Severity::Advice => "advice",
    }
}

fn summary(findings: &[Finding]) -> String {
    let count = |s| findings.iter().filter(|f| f.severity == s).count();
    match (count(Severity::Fault), count(Severity::Advice)) {
        (0, 0) => "Nothing found.".to_owned(),
        (faults, advice) => {
            let plural = if faults == 1 { "" } else { "s" };
            format!(
                "{faults} fault{plural}, {advice} of advice. Commands last until the next start of the machine."
            )
        }
    }
}

fn object(d: &Diagnosis<'_>) -> Value {
    let disk = |disk: &Disk| {
        json!({
            "name": disk.name,
            "kind": disk.kind.name(),
            "bus": disk.bus.name(),
            "model": disk.model,
            "id_serial": disk.id_serial,
            "size_bytes": disk.bytes,
            "rotational": disk.rotational,
            "hardware_queues": disk.hardware_queues,
            "device_depth": disk.device_depth,
            "scheduler": disk.scheduler,
            "schedulers": disk.offered,
            "set_by": d.machine.setter(disk).as_ref().map(setter),
            "queue": disk.queue,
            "tunables": disk.tunables,
        })
    };
    let finding = |(n, f): (usize, &Finding)| {
        let subject = match &f.subject {
            Subject::Machine => None,
            Subject::Disk(name) => Some(name),
        };
        json!({
            "check": f.check,
            "disk": subject,
            "severity": severity(f.severity),
            "what": f.what,
            "why": f.why,
            "lab": d.numbers.get(n).filter(|lab| !lab.is_empty()).map(|lab| lab.join(" ")),
            "do": f.mend,
            "undo": f.undo,
        })
    };
    json!({
        "release": d.machine.release,
        "container": d.machine.container,
        "guest": d.machine.is_guest,
        "unseen": d.machine.unseen,
        "disks": d.machine.disks.iter().map(disk).collect::<Vec<_>>(),
        "findings": d.findings.iter().enumerate().map(finding).collect::<Vec<_>>(),
    })
}
