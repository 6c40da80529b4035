//! Which task of the scheduler's a request is of, and with what priority.

use super::rings::Served;
use fairhead_core::units::{Class, IoPrio, TaskId};

/// Tasks of devices begin here, behind those of NBD's connections; each device has this many.
const TASKS: u32 = 3 << 29;
pub(super) const TASKS_EACH: u32 = 32;

/// The task of requests without a priority of their own.
const USUAL: u32 = TASKS_EACH - 1;

pub(super) fn task_of(device: usize, code: u32) -> TaskId {
    TaskId(TASKS + TASKS_EACH * device as u32 + code)
}

/// The task and priority of a request. A guest that is not alone in its group is not real-time there: it
/// would go before tenants that are not its own.
pub(super) fn priority(of_guest: Option<IoPrio>, served: &Served) -> (u32, IoPrio) {
    let Some(prio) = of_guest else { return (USUAL, served.prio) };
    let prio = match prio.class {
        Class::RealTime if !served.is_alone_in_group => IoPrio::new(Class::BestEffort, 0),
        _ => prio,
    };
    let class = match prio.class {
        Class::RealTime => 0,
        Class::BestEffort => 1,
        Class::Idle => 2,
    };
    (8 * class + u32::from(prio.level), prio)
}
