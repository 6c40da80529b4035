//! The lab for Python: the extension module `fairhead._fairhead`.
//!
//! ```text
//!   fairhead/__init__.py   keywords, paths, several forms of an argument ─┐
//!   fairhead/__init__.pyi  types                                          ▼
//!   this module            run · sweep · advise ─► fairhead-lab, fairhead-sim ─► Result, Table, Advice
//!                          reproduce ─► fairhead-papers · read_trace, write_trace ─► fairhead-trace
//!                          a class in Python ─► a scheduler from outside (`scheduler.rs`)
//! ```
//!
//! Runs do not hold the interpreter, but for those of schedulers in Python. Results are columns, which other
//! libraries read where they are (`arrow.rs`, the only unsafe code here).
//!
//! It has no logic of the lab: the JSON is that of `fairhead run`, byte by byte.

#![deny(unsafe_code)]

mod advise;
#[allow(unsafe_code, reason = "the Arrow C stream interface is structures of pointers")]
mod arrow;
mod asked;
mod columns;
mod error;
mod lists;
mod reproduce;
mod requests;
mod result;
mod run;
mod scheduler;
mod sweep;
mod table;
mod trace;
mod waiting;

/// See `fairhead/__init__.py`.
#[pyo3::pymodule(name = "_fairhead")]
mod module {
    #[pymodule_export]
    use crate::advise::{Advice, advise};
    #[pymodule_export]
    use crate::error::Error;
    #[pymodule_export]
    use crate::lists::{disk, disks, schedulers, tunables, workload, workloads};
    #[pymodule_export]
    use crate::reproduce::{Reproduction, reproduce, sources};
    #[pymodule_export]
    use crate::result::RunResult;
    #[pymodule_export]
    use crate::run::run;
    #[pymodule_export]
    use crate::scheduler::{DiskFacts, PyRequest, Wait};
    #[pymodule_export]
    use crate::sweep::sweep;
    #[pymodule_export]
    use crate::table::Table;
    #[pymodule_export]
    use crate::trace::{Trace, read_trace, write_trace};
    #[pymodule_export]
    #[allow(non_upper_case_globals, reason = "Python's name for it")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
