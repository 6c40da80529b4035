//! What an instance does: counts, statistics of groups, the trace, checks, and what poisoned it.

use crate::instance::{Instance, put, with};
use crate::texts::Text;
use crate::types::*;
use core::ffi::c_char;
use fairhead_core::{Detail, GroupId, GroupStats, Reason, Split, Tag, TraceEvent};

/// How many requests there are in each state: `struct fh_counts`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs, reason = "documented in the header")]
pub struct FhCounts {
    pub waiting: u32,
    pub issued: u32,
    pub carried: u32,
    pub held: u32,
    pub trace_lost: u64,
}

/// Counts of reads, writes and discards, and of sync ones among all: `struct fh_split`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs, reason = "documented in the header")]
pub struct FhSplit {
    pub read: u64,
    pub write: u64,
    pub discard: u64,
    pub sync: u64,
}

impl FhSplit {
    fn of(split: &Split) -> Self {
        Self { read: split.read(), write: split.write(), discard: split.discard(), sync: split.sync() }
    }
}

/// A group's statistics: `struct fh_stats`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs, reason = "documented in the header")]
pub struct FhStats {
    pub bytes: FhSplit,
    pub requests: FhSplit,
    pub merged: FhSplit,
    pub queued: FhSplit,
    pub service_ns: FhSplit,
    pub wait_ns: FhSplit,
    pub throttled_ns: FhSplit,
    pub disk_ns: u64,
    pub disk_sectors: u64,
}

/// An event of the trace: `struct fh_event`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "documented in the header")]
pub struct FhEvent {
    pub at_ns: u64,
    pub sector: u64,
    pub numbers: [u64; 4],
    pub sectors: u32,
    pub task: u32,
    pub tag: u16,
    pub reason: u8,
    pub action: c_char,
    pub detail: u32,
}

/// The sizes that the header's structs have, as in `types.rs`.
#[cfg(target_pointer_width = "64")]
const _: () = {
    assert!(size_of::<FhCounts>() == 24 && size_of::<FhSplit>() == 32);
    assert!(size_of::<FhStats>() == 240 && size_of::<FhEvent>() == 64);
};

macro_rules! reasons {
    ($($name:ident,)*) => {
        /// All reasons, in the order of their numbers.
        pub(crate) const REASONS: &[(Reason, &str)] = &[$((Reason::$name, stringify!($name)),)*];

        /// Does not compile if core has a reason that is not in the list.
        #[allow(dead_code, reason = "it is there to be compiled")]
        const fn is_listed(reason: Reason) -> bool {
            match reason {
                $(Reason::$name => true,)*
            }
        }
    };
}

reasons! {
    None,
    Arrival,
    Batch,
    NewBatch,
    FifoExpired,
    WritesStarved,
    Aged,
    Requeued,
    Nearest,
    Drain,
    Anticipate,
    AnticipationHit,
    AnticipationClose,
    AnticipationTimeout,
    AnticipationUseless,
    BatchChange,
    SliceIdle,
    WorkloadIdle,
    GroupIdle,
    SliceStart,
    SliceUsed,
    SliceEmpty,
    IdleTimeout,
    AsyncQuota,
    Preempted,
    Cooperator,
    QueueMerge,
    QueueSplit,
    TaskExit,
    Depth,
    NoToken,
    HigherClass,
    DrainKind,
    BudgetExhausted,
    BudgetTimeout,
    Times,
    RaisedInteractive,
    RaisedSoftRealTime,
    RaisedAsync,
    RaiseEnd,
    LargeBurst,
    RateUpdate,
    Injected,
    Waker,
    Actuator,
    WakerFound,
    Reserved,
    Protected,
    Limit,
}

/// The numbers behind an event, and which kind they are.
fn numbers(detail: Detail) -> (u32, [u64; 4]) {
    match detail {
        Detail::None => (0, [0; 4]),
        Detail::Budget { budget } => (1, [budget.into(), 0, 0, 0]),
        Detail::Slot { service, budget, slow } => (2, [service.into(), budget.into(), slow.into(), 0]),
        Detail::Times { group, start, finish, weight } => {
            (3, [group.map_or(u64::MAX, |g| g.0.into()), start, finish, weight.into()])
        }
        Detail::Raised { factor, at_most } => (4, [factor.into(), at_most.as_ns(), 0, 0]),
        Detail::Rate { rate } => (5, [rate, 0, 0, 0]),
    }
}

#[allow(clippy::cast_possible_wrap, reason = "ASCII")]
fn event(event: &TraceEvent) -> FhEvent {
    let (detail, numbers) = numbers(event.detail);
    FhEvent {
        at_ns: clock(event.at),
        sector: event.start.0,
        numbers,
        sectors: event.len.0,
        task: event.task.0,
        tag: event.tag.map_or(FH_NO_TAG, |tag| tag.0),
        reason: event.reason as u8,
        action: event.action.letter() as u8 as c_char,
        detail,
    }
}

/// The name of a reason.
///
/// # Safety
/// `name` points to where a text fits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fh_reason_name(reason: u8, name: *mut FhText) -> Status {
    let Some((_, found)) = REASONS.get(usize::from(reason)) else { return FH_E_RANGE };
    // SAFETY: the caller's promise.
    unsafe { put(name, FhText::of(found)) };
    FH_OK
}

/// The oldest events of the trace, which are gone then.
///
/// # Safety
/// `at` points to an instance, `events` to where `room` events fit, and `count` to where a number fits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fh_drain_trace(
    at: *mut Instance,
    events: *mut FhEvent,
    room: usize,
    count: *mut usize,
) -> Status {
    // SAFETY: the caller's promises.
    unsafe {
        put(count, 0);
        with(at, |it| {
            if count.is_null() || events.is_null() && room > 0 {
                return Err(FH_E_NULL);
            }
            let mut drained = 0;
            while drained < room {
                let next = it.healthy(|e| e.drain_trace().next()).ok_or(FH_E_POISONED)?;
                let Some(next) = next else { break };
                events.add(drained).write(event(&next));
                drained += 1;
            }
            put(count, drained);
            Ok(FH_OK)
        })
    }
}

/// How many requests there are in each state.
///
/// # Safety
/// `at` points to an instance and `counts` to where they fit.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fh_counts(at: *mut Instance, counts: *mut FhCounts) -> Status {
    // SAFETY: the caller's promises.
    unsafe {
        with(at, |it| {
            let [waiting, issued, carried] = it.ledger.counts();
            let seen = it.healthy(|e| (e.requests().held(), e.trace_lost()));
            let (held, trace_lost) = seen.unwrap_or_default();
            put(counts, FhCounts { waiting, issued, carried, held, trace_lost });
            Ok(FH_OK)
        })
    }
}

/// A group's statistics.
///
/// # Safety
/// `at` points to an instance and `stats` to where they fit.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fh_stats(at: *mut Instance, group: u32, stats: *mut FhStats) -> Status {
    // SAFETY: the caller's promises.
    unsafe {
        with(at, |it| {
            if group >= it.limits.groups {
                return Err(FH_E_GROUP);
            }
            let read = it.healthy(|e| {
                let s: GroupStats = e.stats(GroupId(group));
                put(
                    stats,
                    FhStats {
                        bytes: FhSplit::of(&s.io_service_bytes),
                        requests: FhSplit::of(&s.io_serviced),
                        merged: FhSplit::of(&s.io_merged),
                        queued: FhSplit::of(&s.io_queued),
                        service_ns: FhSplit::of(&s.io_service_time),
                        wait_ns: FhSplit::of(&s.io_wait_time),
                        throttled_ns: FhSplit::of(&s.throttled_time),
                        disk_ns: s.disk_time.as_ns(),
                        disk_sectors: s.disk_sectors,
                    },
                );
            });
            read.map(|()| FH_OK).ok_or(FH_E_POISONED)
        })
    }
}

/// A request that waits or is at the device, as it is now.
///
/// # Safety
/// `at` points to an instance and `request` to where one fits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fh_request(at: *mut Instance, tag: u16, request: *mut FhRequest) -> Status {
    // SAFETY: the caller's promises.
    unsafe {
        with(at, |it| {
            match it.ledger.place(tag) {
                None => return Err(FH_E_TAG),
                Some(crate::ledger::Place::Free) => return Err(FH_E_STATE),
                Some(_) => (),
            }
            let rq = it.healthy(|e| e.requests()[Tag(tag)].rq).ok_or(FH_E_POISONED)?;
            put(request, FhRequest::of(&rq));
            Ok(FH_OK)
        })
    }
}

/// Walks everything; an inconsistency poisons the instance.
///
/// # Safety
/// `at` points to an instance.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fh_check(at: *mut Instance) -> Status {
    // SAFETY: the caller's promise.
    unsafe {
        with(at, |it| {
            let ours = it.ledger.counts();
            let checked = it.healthy(|e| {
                e.check();
                let r = e.requests();
                let theirs = r.queued() + r.issued() + r.merged() + r.held();
                assert!(theirs == ours.iter().sum::<u32>(), "elevator and ledger count different requests");
                assert!(r.issued() == ours[1], "elevator and ledger disagree about the device");
            });
            checked.map(|()| FH_OK).ok_or(FH_E_POISONED)
        })
    }
}

/// Whether the instance is poisoned; what the panic said.
///
/// # Safety
/// `at` points to an instance; `said`, if it is not null, to where a text fits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fh_is_poisoned(at: *mut Instance, said: *mut FhError) -> Status {
    // SAFETY: the caller's promises.
    unsafe {
        with(at, |it| {
            put(said, FhError { text: *it.said().as_bytes() });
            Ok(it.is_poisoned().into())
        })
    }
}

/// Poisons the instance.
///
/// # Safety
/// `at` points to an instance.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fh_poison(at: *mut Instance) -> Status {
    // SAFETY: the caller's promise.
    unsafe {
        with(at, |it| {
            if !it.is_poisoned() {
                it.poison(Text::of("by the caller"));
            }
            Ok(FH_OK)
        })
    }
}
