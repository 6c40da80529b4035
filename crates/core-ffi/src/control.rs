//! Changes from outside: weights, classes, limits, guarantees, targets, priorities, exits.

use crate::instance::{Instance, take, with};
use crate::types::*;
use fairhead_core::{Control, Duration, GroupId, Max, Min, Refusal, TaskId};

/// Makes a change.
///
/// # Safety
/// `at` points to an instance.
unsafe fn change(at: *mut Instance, now_ns: u64, change: Result<Control, Status>) -> Status {
    // SAFETY: the caller's promise.
    unsafe {
        with(at, |it| {
            let change = change?;
            let now = it.advance(now_ns)?;
            match it.healthy(|e| e.control(now, change)) {
                Some(Ok(())) => Ok(FH_OK),
                Some(Err(Refusal::NoGroup(_))) => Err(FH_E_GROUP),
                Some(Err(Refusal::Weight(_) | Refusal::Burst(_))) => Err(FH_E_RANGE),
                Some(Err(_)) => Err(FH_E_REFUSED),
                None => Err(FH_E_POISONED),
            }
        })
    }
}

/// A group's weight among its siblings.
///
/// # Safety
/// `at` points to an instance.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fh_set_weight(at: *mut Instance, now_ns: u64, group: u32, weight: u32) -> Status {
    let weight = self::weight(weight).ok_or(FH_E_RANGE);
    // SAFETY: the caller's promise.
    unsafe { change(at, now_ns, weight.map(|w| Control::SetWeight(GroupId(group), w))) }
}

/// The weight of a group's own tasks among the groups in it.
///
/// # Safety
/// `at` points to an instance.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fh_set_leaf_weight(
    at: *mut Instance,
    now_ns: u64,
    group: u32,
    weight: u32,
) -> Status {
    let weight = self::weight(weight).ok_or(FH_E_RANGE);
    // SAFETY: the caller's promise.
    unsafe { change(at, now_ns, weight.map(|w| Control::SetLeafWeight(GroupId(group), w))) }
}

/// A group's class among its siblings.
///
/// # Safety
/// `at` points to an instance.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fh_set_class(at: *mut Instance, now_ns: u64, group: u32, class: u32) -> Status {
    let class = self::class(class).ok_or(FH_E_RANGE);
    // SAFETY: the caller's promise.
    unsafe { change(at, now_ns, class.map(|c| Control::SetClass(GroupId(group), c))) }
}

/// Weight and class of a group on this device only, or (weight 0) no more.
///
/// # Safety
/// `at` points to an instance.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fh_set_policy(
    at: *mut Instance,
    now_ns: u64,
    group: u32,
    weight: u32,
    class: u32,
) -> Status {
    let group = GroupId(group);
    let policy = match weight {
        0 => Ok(Control::SetPolicy(group, None)),
        _ => policy(weight, class).ok_or(FH_E_RANGE).map(|p| Control::SetPolicy(group, Some(p))),
    };
    // SAFETY: the caller's promise.
    unsafe { change(at, now_ns, policy) }
}

/// The most that a group gets.
///
/// # Safety
/// `at` points to an instance and `max` to limits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fh_set_max(at: *mut Instance, now_ns: u64, group: u32, max: *const FhMax) -> Status {
    // SAFETY: the caller's promises.
    unsafe {
        let max: Result<Max, Status> = take(max).map(FhMax::to_core);
        let max = max.and_then(|m| if m.burst > Max::BURST_MAX { Err(FH_E_RANGE) } else { Ok(m) });
        change(at, now_ns, max.map(|m| Control::SetMax(GroupId(group), m)))
    }
}

/// A group's guarantee, in requests a second.
///
/// # Safety
/// `at` points to an instance.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fh_set_min(at: *mut Instance, now_ns: u64, group: u32, iops: u32) -> Status {
    // SAFETY: the caller's promise.
    unsafe { change(at, now_ns, Ok(Control::SetMin(GroupId(group), Min { iops }))) }
}

/// The mean latency that a group's requests should have, in nanoseconds; 0: any.
///
/// # Safety
/// `at` points to an instance.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fh_set_latency(
    at: *mut Instance,
    now_ns: u64,
    group: u32,
    target_ns: u64,
) -> Status {
    let target = (target_ns > 0).then(|| Duration::from_ns(target_ns));
    // SAFETY: the caller's promise.
    unsafe { change(at, now_ns, Ok(Control::SetLatency(GroupId(group), target))) }
}

/// A task's priority, for its requests to come.
///
/// # Safety
/// `at` points to an instance.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fh_set_priority(
    at: *mut Instance,
    now_ns: u64,
    task: u32,
    class: u8,
    level: u8,
) -> Status {
    let prio = prio(class, level).ok_or(FH_E_RANGE);
    // SAFETY: the caller's promise.
    unsafe { change(at, now_ns, prio.map(|p| Control::SetPrio(TaskId(task), p))) }
}

/// A task is gone.
///
/// # Safety
/// `at` points to an instance.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fh_task_exit(at: *mut Instance, now_ns: u64, task: u32) -> Status {
    // SAFETY: the caller's promise.
    unsafe { change(at, now_ns, Ok(Control::TaskExit(TaskId(task)))) }
}

/// A group is inside another.
///
/// # Safety
/// `at` points to an instance.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fh_set_parent(at: *mut Instance, now_ns: u64, group: u32, parent: u32) -> Status {
    // SAFETY: the caller's promise.
    unsafe { change(at, now_ns, Ok(Control::SetParent(GroupId(group), GroupId(parent)))) }
}

/// A group is gone.
///
/// # Safety
/// `at` points to an instance.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fh_group_exit(at: *mut Instance, now_ns: u64, group: u32) -> Status {
    // SAFETY: the caller's promise.
    unsafe { change(at, now_ns, Ok(Control::GroupExit(GroupId(group)))) }
}

/// Whether a request like this one may have a tag now.
///
/// # Safety
/// `at` points to an instance and `request` to a request.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fh_has_room(at: *mut Instance, request: *const FhRequest) -> Status {
    // SAFETY: the caller's promises.
    unsafe {
        with(at, |it| {
            let (rq, _) = take(request)?.to_core(it.limits.groups)?;
            Ok(it.healthy(|e| e.has_room(&rq)).unwrap_or(true).into())
        })
    }
}

/// Whether the next request of the task that sent `done` would go first if it came at once.
///
/// # Safety
/// `at` points to an instance and `done` to a request.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fh_prefers(at: *mut Instance, done: *const FhRequest) -> Status {
    // SAFETY: the caller's promises.
    unsafe {
        with(at, |it| {
            let (rq, _) = take(done)?.to_core(it.limits.groups)?;
            Ok(it.healthy(|e| e.prefers(&rq)).unwrap_or(false).into())
        })
    }
}

/// Whether the scheduler asks for a dispatch.
///
/// # Safety
/// `at` points to an instance.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fh_wants_run(at: *mut Instance) -> Status {
    // SAFETY: the caller's promise.
    unsafe {
        with(at, |it| {
            let asks = it.healthy(|e| e.wants_run());
            Ok(asks.unwrap_or_else(|| it.ledger.has_waiting()).into())
        })
    }
}
