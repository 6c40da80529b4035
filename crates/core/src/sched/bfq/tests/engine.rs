//! The engine, rule by rule: budgets, slots, idling, classes, groups, admission.

mod budgets;
mod engine_of_2010;
mod idles;
mod outside;
mod retuning;
mod slots;

use super::rig::*;
use crate::sched::bfq::rules::idle::Boost;
use crate::sched::bfq::view::Expire;
use crate::trace::Detail;
use crate::units::Weight;
use core::num::NonZeroU16;

/// Tasks 1 and 2 have requests, and task 1's queue is in service.
fn two_readers(config: Config) -> Rig {
    let mut rig = Rig::new(config);
    for i in 0..4 {
        rig.insert(read(1, 1000 + 8 * i));
        rig.insert(read(2, 9_000_000 + 8 * i));
    }
    assert_eq!(rig.issue().1, 1);
    rig
}

fn in_service(rig: &Rig) -> Option<TaskId> {
    rig.bfq.in_service.map(|q| rig.bfq.queues[q].task)
}

fn random(task: u32, i: u64) -> Request {
    read(task, (i * 7_654_321) % (1 << 30) + 8)
}

/// Makes a task's queue seeky, or not.
fn seek(rig: &mut Rig, task: u32, seeky: bool) {
    let bits = if seeky { u32::MAX >> 8 } else { 1 };
    rig.queue(task).past.has_seeks(bits);
}
