//! The checks: each looks at the facts and returns what it found.
//!
//! A check is silent when it cannot tell. It never takes a disk's kind for sure that the kernel only guesses:
//! of virtual disks nothing is said about what they are made of.

mod caches;
mod fitness;
mod groups;
mod priorities;
mod queue;
mod rules;
mod stacking;

use crate::finding::Finding;
use crate::machine::Machine;

/// A check.
pub struct Check {
    /// Its name, in findings.
    pub name: &'static str,
    /// What it looks for, in one line.
    pub about: &'static str,
    pub(crate) look: fn(&Machine, &mut Vec<Finding>),
}

impl std::fmt::Debug for Check {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

macro_rules! checks {
    ($($name:literal, $about:literal, $look:path;)*) => {
        /// All checks, in the order in which their findings are shown.
        pub const CHECKS: &[Check] = &[$(Check { name: $name, about: $about, look: $look },)*];
    };
}

checks! {
    "flushes-dropped", "the kernel sends no flushes to a disk with a volatile write cache", caches::flushes_dropped;
    "scheduler-unfit-rotating", "a rotating disk under `none`, `kyber` or `noop`", fitness::rotating;
    "scheduler-slow-start", "a rotating disk or SATA SSD under `mq-deadline`: programs start slowly beside a copy", fitness::slow_start;
    "scheduler-unfit-card", "a stick, card or eMMC device under another scheduler than `bfq`", fitness::card;
    "scheduler-unfit-nvme", "an NVMe SSD under `bfq`", fitness::nvme;
    "bfq-early", "`bfq` of Linux 4.12 to 4.15, under which disks stopped for good", fitness::early_bfq;
    "scheduler-unfit-zoned", "a host-managed zoned disk under another scheduler than `mq-deadline`, before Linux 6.10", fitness::zoned;
    "low-latency-off", "`bfq` with `low_latency` off", fitness::low_latency_off;
    "slice-idle-off", "`bfq` on a rotating disk with `slice_idle` 0", fitness::slice_idle_off;
    "priority-ignored", "I/O priorities under a scheduler that ignores them", priorities::ignored;
    "priority-level-ignored", "levels of the best-effort class under `mq-deadline`, which knows classes only", priorities::levels_ignored;
    "weight-ignored", "weights of groups while neither `bfq` nor `io.cost` is in force", groups::weight_ignored;
    "weight-squeezed", "`IOWeight` above 100, which systemd converts to nearly equal weights of BFQ", groups::weight_squeezed;
    "device-weight-ignored", "`IODeviceWeight` for a disk that does not get it: under `bfq`, or without `io.cost`", groups::device_weight;
    "controller-off", "settings of groups while the io controller is not passed on to them", groups::controller_off;
    "controller-v1", "`IOWeight` on a machine whose io controller is that of version 1", groups::controller_v1;
    "controller-not-delegated", "I/O settings of users' units while the io controller is not passed on to users", groups::not_delegated;
    "limit-buffered", "a limit of a group's writes of version 1, which buffered writes pass by", groups::limit_buffered;
    "command-queueing-off", "a SATA disk that takes one command at a time", queue::command_queueing;
    "requests-few", "fewer requests in the queue than the device takes at once, or than 16 under a scheduler", queue::requests_few;
    "merges-off", "merging of requests switched off", queue::merges_off;
    "statistics-off", "statistics of the disk switched off", queue::statistics_off;
    "read-ahead-off", "no read-ahead", queue::read_ahead_off;
    "read-ahead-by-guess", "the read-ahead of a rotating disk on a virtual disk, since Linux 6.17", queue::read_ahead_by_guess;
    "entropy-from-ssd", "an SSD that feeds the kernel's random numbers", queue::entropy;
    "throttled-twice", "`wbt` switched on under `bfq`", caches::throttled_twice;
    "writeback-unthrottled", "`wbt` switched off on a rotating disk under a scheduler without fairness", caches::unthrottled;
    "unwritten-much", "a slow disk on USB for which minutes of writes may wait in memory", caches::unwritten_much;
    "rotational-wrong", "an SSD that the kernel takes for a rotating disk", fitness::rotational_wrong;
    "loop-buffered", "a loop device that caches its file a second time", stacking::loop_buffered;
    "scheduled-twice", "`bfq` on a disk that is made of disks with schedulers of their own", stacking::scheduled_twice;
    "btrfs-quotas", "a btrfs file system with quotas, which snapshots make expensive", stacking::btrfs_quotas;
    "discard-at-once", "a file system that discards at each deletion, on a SATA or USB SSD", caches::discard_at_once;
    "rule-without-scheduler", "a udev rule that sets a scheduler which this kernel does not have", rules::no_such_scheduler;
    "rule-not-in-force", "a udev rule whose setting is not in force", rules::not_in_force;
    "rule-for-other-scheduler", "a udev rule that sets a tunable which the scheduler in force does not have", rules::of_other_scheduler;
    "rule-for-no-disk", "a udev rule for a disk that is not there", rules::no_such_disk;
    "elevator-ignored", "`elevator=` on the command line of a kernel that ignores it, or that has no such scheduler", rules::elevator;
    "setters-disagree", "tuned or TLP set another scheduler than a udev rule", rules::disagree;
    "setter-without-scheduler", "tuned or TLP set a scheduler that the disk cannot have", rules::daemon_without;
}

/// Runs all checks. Findings come in the order of disks within each check.
#[must_use]
pub fn run(machine: &Machine) -> Vec<Finding> {
    let mut findings = Vec::new();
    for check in CHECKS {
        let from = findings.len();
        (check.look)(machine, &mut findings);
        findings[from..].iter_mut().for_each(|f| f.check = check.name);
    }
    findings
}
