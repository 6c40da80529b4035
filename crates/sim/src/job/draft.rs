//! A section of a job file while its lines are read.

use std::collections::BTreeMap;

use fairhead_core::units::Class;

use super::cmdprio::Said;
use super::disks::Disk;
use super::groups::Own;
use super::load::PerOp;
use super::model::Job;
use crate::replay::Options;

/// A job in the making: the fields so far, and what is only settled when the section ends.
#[derive(Debug, Clone, Default)]
pub(super) struct Draft {
    pub(super) job: Job,
    /// The line of each option that was given, under its main name.
    pub(super) given: BTreeMap<&'static str, u32>,
    pub(super) stonewall: bool,
    pub(super) new_group: bool,
    pub(super) kb_base: Option<u64>,
    pub(super) buffered: Option<bool>,
    pub(super) direct: Option<bool>,
    pub(super) random_pct: Option<PerOp<u8>>,
    pub(super) prio_level: Option<u8>,
    pub(super) prio_class: Option<Class>,
    pub(super) startup_trace: Option<String>,
    pub(super) iolog: Option<String>,
    pub(super) replay: Options,
    pub(super) cmdprio: Said,
    pub(super) strided: bool,
    /// In bytes; 0 as good as not given.
    pub(super) zone_size: u64,
    pub(super) zone_range: u64,
    pub(super) zone_skip: u64,
    /// What is said of the job's own cgroup.
    pub(super) own: Own,
    pub(super) cgroup_nodelete: bool,
    /// The disks that the job's files lie on.
    pub(super) disks: Vec<Disk>,
    pub(super) cpus: Option<u32>,
    /// `create_only`: it makes its files, and no call.
    pub(super) creates_only: bool,
    /// `serialize_overlap`: no two calls in flight are to the same place.
    pub(super) serializes: bool,
    /// `fill_device`: without a size, it writes until the disk is full.
    pub(super) fills: bool,
    /// `verify` other than none, or `verify_pattern`; `do_verify=0` takes it back.
    pub(super) verify: bool,
    pub(super) verify_pattern: bool,
    pub(super) no_verify: bool,
    /// 0: none.
    pub(super) verify_backlog: u32,
    pub(super) verify_batch: u32,
}

impl Draft {
    /// Where the option was given, or else the section's heading.
    pub(super) fn line_of(&self, option: &str) -> u32 {
        self.given.get(option).copied().unwrap_or(self.job.line)
    }

    /// The last of the options, for a message about several.
    pub(super) fn last_of(&self, options: &[&str]) -> u32 {
        options.iter().filter_map(|o| self.given.get(o)).max().copied().unwrap_or(self.job.line)
    }
}
