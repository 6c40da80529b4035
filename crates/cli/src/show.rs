//! `fairhead show NAME`: a scheduler's tunables, a disk's description, a workload's job file; a disk's FILE
//! as TOML.

use fairhead_core::config::{Shown, Unit};
use fairhead_core::sched::catalogue::Named;
use fairhead_device::{preset_names, preset_text};
use fairhead_lab::output::text::wrapped;
use fairhead_sim::job::nearest;
use std::path::Path;

use crate::error::CliError;
use crate::out;
use crate::plan;
use crate::schedulers::choose_scheduler;
use crate::workloads::{self, PROGRAMS};
use fairhead_lab::schedulers::catalogue;
use fairhead_lab::tunables::range;

pub(crate) fn show(name: &str) -> Result<(), CliError> {
    if let Some(named) = catalogue().find(name) {
        return out::print(&scheduler(&named));
    }
    if name.ends_with(".so") {
        return out::print(&scheduler(&choose_scheduler(name)?));
    }
    if let Some(text) = preset_text(name) {
        return out::print(text);
    }
    if let Some(w) = workloads::find(name) {
        return out::print(w.text);
    }
    if let Some((_, about)) = PROGRAMS.iter().find(|(n, _)| *n == name) {
        return out::print(&format!("# {about}\n[{name}]\nfh_workload={name}\n"));
    }
    // A disk in a file, as a TOML file.
    if Path::new(name).is_file() {
        return out::print(&plan::choose_disk(name)?.1.to_toml());
    }
    let known = catalogue()
        .names()
        .chain(preset_names().iter().copied())
        .chain(workloads::all().map(|w| w.name))
        .chain(PROGRAMS.iter().map(|p| p.0));
    Err(CliError::Misuse(match nearest(name, known) {
        Some(word) => format!("nothing is called '{name}'; did you mean '{word}'?"),
        None => format!("nothing is called '{name}'; see fairhead list schedulers, disks or workloads"),
    }))
}

/// Columns of text before it wraps.
const WIDTH: usize = 100;

/// A scheduler: what it is, and each tunable with its value there and its effect.
fn scheduler(named: &Named) -> String {
    let config = named.config;
    let mut text = format!("{}: {}\n", named.name, named.about);
    let list = config.list();
    if list.is_empty() {
        text.push_str("\nno tunables\n");
    }
    if !list.is_empty() {
        text.push_str("\nTUNABLE = DEFAULT    kind, range\n");
    }
    for t in list {
        let value = Shown(t.unit, config.get(t.name).unwrap_or(0));
        text.push_str(&format!("\n{} = {value}    {}, {}\n", t.name, unit_name(t.unit), range(t)));
        for line in wrapped(t.effect, WIDTH - 4) {
            text.push_str(&format!("    {line}\n"));
        }
    }
    text
}

fn unit_name(unit: Unit) -> &'static str {
    match unit {
        Unit::Time => "time",
        Unit::Count => "number",
        Unit::Switch => "switch",
        Unit::KiB | Unit::Sectors => "size",
        Unit::Choice(_) => "choice",
    }
}
