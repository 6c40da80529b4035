//! Where each task reads first, which shows which job it is.
//!
//! A task's first request may be another's data: before it works on a block device, fio has the device's page
//! cache written back, and the task that asks for it writes the pages of all.

use super::line::{Line, What};
use fairhead_core::{Op, Sector};
use std::collections::BTreeMap;

/// More tasks than any log has.
const TASKS_MAX: usize = 1 << 16;

/// The sector of each task's first read.
#[derive(Clone, Default, Debug)]
pub(super) struct FirstReads(BTreeMap<u32, Sector>);

impl FirstReads {
    /// Looks at the next line of a log.
    pub(super) fn look(&mut self, line: &Line) {
        if let What::Inserted(io) = line.what
            && io.op == Op::Read
            && self.0.len() < TASKS_MAX
        {
            self.0.entry(line.thread.pid).or_insert(io.start);
        }
    }

    /// The place that shows which job a task is: that of its first read; `first` if it reads nothing.
    pub(super) fn place(&self, pid: u32, first: Sector) -> Sector {
        self.0.get(&pid).copied().unwrap_or(first)
    }
}
