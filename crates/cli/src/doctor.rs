//! `fairhead doctor`: the machine's facts, the checks' findings, and the lab's numbers for them.

use fairhead_machine::{Finding, Machine, Subject, Tree, checks};

use crate::args::{DoctorArgs, ReportFormat};
use crate::error::CliError;
use crate::files::Outputs;
use crate::out::{self, Progress};
use crate::output::doctor::{self, Diagnosis};

/// Looks at the machine, and writes what was found.
pub(crate) fn doctor(args: &DoctorArgs) -> Result<(), CliError> {
    let file = args.output.file.as_deref();
    Outputs::default().file("-o", file).check()?;
    let mut machine = Machine::read(&Tree::new(&args.root));
    if machine.disks.is_empty() {
        return Err(CliError::Misuse(nothing_seen(args, &machine)));
    }
    let mut findings = checks::run(&machine);
    if let Some(name) = &args.disk {
        let name = name.strip_prefix("/dev/").unwrap_or(name);
        choose(&mut machine, &mut findings, name)?;
    }
    let numbers = if args.quick { Vec::new() } else { numbers(&findings) };
    let diagnosis = Diagnosis { machine: &machine, findings: &findings, numbers: &numbers };
    let format = if args.json { ReportFormat::Json } else { args.output.format };
    out::results(file, &doctor::render(&diagnosis, format, out::coloured(file)))?;
    if findings.is_empty() { Ok(()) } else { Err(CliError::Found) }
}

fn nothing_seen(args: &DoctorArgs, machine: &Machine) -> String {
    let root = args.root.display();
    match &machine.container {
        Some(kind) => {
            format!("no disks in {root}/sys/block: this is a container ({kind}); run doctor on its host")
        }
        None => format!("no disks in {root}/sys/block; --root names the folder that has sys, proc and etc"),
    }
}

/// Leaves one disk, and what is about it or about the machine.
fn choose(machine: &mut Machine, findings: &mut Vec<Finding>, name: &str) -> Result<(), CliError> {
    if machine.disk(name).is_none() {
        let names: Vec<&str> = machine.disks.iter().map(|d| d.name.as_str()).collect();
        return Err(CliError::Misuse(format!("no disk '{name}'; there are {}", names.join(", "))));
    }
    machine.disks.retain(|d| d.name == name);
    findings.retain(|f| f.subject == Subject::Machine || f.subject == Subject::Disk(name.to_owned()));
    Ok(())
}

/// What the lab says to each finding, a sentence for each comparison. Equal comparisons run once.
fn numbers(findings: &[Finding]) -> Vec<Vec<String>> {
    let progress = Progress::new("in the lab");
    let mut known: Vec<(&fairhead_machine::lab::Comparison, Option<String>)> = Vec::new();
    let mut numbers = Vec::new();
    for (n, finding) in findings.iter().enumerate() {
        progress.at(n, findings.len());
        let mut sentences = Vec::new();
        for comparison in &finding.lab {
            let at = known.iter().position(|(c, _)| *c == comparison).unwrap_or_else(|| {
                known.push((comparison, comparison.sentence()));
                known.len() - 1
            });
            sentences.extend(known[at].1.clone());
        }
        numbers.push(sentences);
    }
    numbers
}
