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

#[cfg(test)]
mod tests {
    use super::super::log::Log;
    use super::*;

    #[test]
    fn a_task_is_where_it_first_reads() {
        let text = " fio-5 [0] d..1. 5.000001: 7,0 I WS 16 + 8 [fio]\n fio-5 [0] d..1. 5.000002: 7,0 I RS 960 + 8 [fio]\n \
                    fio-5 [0] d..1. 5.000003: 7,0 I RS 8 + 8 [fio]\n fio-6 [0] d..1. 5.000004: 7,0 I W 16 + 8 [fio]\n";
        let (mut log, mut reads) = (Log::open(text.as_bytes(), "x").unwrap(), FirstReads::default());
        while let Some(line) = log.next_event().unwrap() {
            reads.look(&line);
        }
        assert_eq!(reads.place(5, Sector(16)), Sector(960), "not where it writes others' pages");
        assert_eq!(reads.place(6, Sector(16)), Sector(16), "it reads nothing");
    }
}
