//! What there is: schedulers and their tunables, disks, workloads.

use fairhead_core::config::Shown;
use fairhead_core::sched::any::{PRESETS, shown};
use fairhead_core::sched::catalogue::Named;
use fairhead_device::preset_names;
use fairhead_lab::schedulers::{catalogue, choose_scheduler};
use fairhead_lab::tunables::range;
use fairhead_lab::workloads::WORKLOADS;
use pyo3::prelude::*;

use crate::columns::Columns;
use crate::error::{Error, of_lab};
use crate::table::Table;

/// The built-in schedulers, in the order of their lineage, then those from outside it.
#[pyfunction]
pub(crate) fn schedulers() -> Table {
    let all: Vec<Named> = PRESETS.iter().map(Named::from).chain(catalogue().outside()).collect();
    let mut table = Columns::new(all.len());
    table.texts("name", all.iter().map(|s| shown(s.name)));
    table.texts("about", all.iter().map(|s| s.about));
    table.into()
}

/// The tunables of a scheduler: name, default with its unit, range, effect.
#[pyfunction]
pub(crate) fn tunables(scheduler: &str) -> PyResult<Table> {
    let config = choose_scheduler(scheduler).map_err(of_lab)?.config;
    let list = config.list();
    let mut table = Columns::new(list.len());
    table.texts("name", list.iter().map(|t| t.name));
    let default = |name: &str| config.get(name).unwrap_or(0);
    table.texts("default", list.iter().map(|t| Shown(t.unit, default(t.name)).to_string()));
    table.texts("range", list.iter().map(range));
    table.texts("effect", list.iter().map(|t| t.effect.trim()));
    Ok(table.into())
}

/// The names of the built-in disks.
#[pyfunction]
pub(crate) fn disks() -> Vec<&'static str> {
    preset_names().to_vec()
}

/// A built-in disk as a TOML text, to change and pass as `disk`.
#[pyfunction]
pub(crate) fn disk(name: &str) -> PyResult<&'static str> {
    fairhead_device::preset_text(name)
        .ok_or_else(|| Error::new_err(format!("unknown disk '{name}'; fairhead.disks() names them")))
}

/// The built-in workloads.
#[pyfunction]
pub(crate) fn workloads() -> Table {
    let mut table = Columns::new(WORKLOADS.len());
    table.texts("name", WORKLOADS.iter().map(|w| w.name));
    table.texts("about", WORKLOADS.iter().map(|w| w.about));
    table.into()
}

/// The job file of a built-in workload, to change and pass as `job`.
#[pyfunction]
pub(crate) fn workload(name: &str) -> PyResult<&'static str> {
    let found = WORKLOADS.iter().find(|w| w.name == name);
    found
        .map(|w| w.text)
        .ok_or_else(|| Error::new_err(format!("unknown workload '{name}'; fairhead.workloads() names them")))
}
