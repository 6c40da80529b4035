//! Core's types as the numbers of C's, and back.

use crate::abi::{
    FH_MERGED_BACK, FH_MERGED_FRONT, FhRequest, FhSchedulerControl, FhSchedulerLimits, VERSION,
};
use fairhead_core::config::Unit;
use fairhead_core::{
    Actuators, Class, Control, Duration, End, GroupId, Hold, Instant, IoPrio, Limits, Min, Op, Policy,
    Reason, Request, Sector, Sectors, TaskId, Timer, Weight,
};
use std::ffi::c_char;
use std::num::NonZeroU16;

const SYNC: u8 = 1;
const META: u8 = 2;
const NO_IDLE: u8 = 4;

/// Time in C's numbers: nanoseconds since core's epoch.
pub(crate) fn ns(at: Instant) -> u64 {
    at.saturating_since(Instant::EPOCH).as_ns()
}

pub(crate) fn instant(ns: u64) -> Instant {
    Instant::EPOCH + Duration::from_ns(ns)
}

impl From<&Request> for FhRequest {
    fn from(rq: &Request) -> Self {
        let flag = |is: bool, flag: u8| if is { flag } else { 0 };
        Self {
            sector: rq.start.0,
            sectors: rq.len.0,
            task: rq.task.0,
            group: rq.group.0,
            op: rq.op as u8,
            prio_class: rq.prio.class as u8,
            prio_level: rq.prio.level,
            flags: flag(rq.sync, SYNC) | flag(rq.meta, META) | flag(rq.no_idle, NO_IDLE),
        }
    }
}

impl FhRequest {
    /// The request for core. `None` if a number in it stands for nothing.
    pub(crate) fn to_core(self) -> Option<Request> {
        let op = match self.op {
            0 => Op::Read,
            1 => Op::Write,
            2 => Op::Discard,
            _ => return None,
        };
        Some(Request {
            start: Sector(self.sector),
            len: Sectors(self.sectors),
            op,
            sync: self.flags & SYNC > 0,
            meta: self.flags & META > 0,
            no_idle: self.flags & NO_IDLE > 0,
            task: TaskId(self.task),
            group: GroupId(self.group),
            prio: prio(self.prio_class.into(), self.prio_level.into())?,
        })
    }
}

fn class(number: u32) -> Option<Class> {
    match number {
        0 => Some(Class::RealTime),
        1 => Some(Class::BestEffort),
        2 => Some(Class::Idle),
        _ => None,
    }
}

fn prio(class: u32, level: u32) -> Option<IoPrio> {
    let level = u8::try_from(level).ok().filter(|l| *l < 8)?;
    Some(IoPrio::new(self::class(class)?, level))
}

fn weight(number: u32) -> Option<Weight> {
    let narrow = u16::try_from(number).ok().and_then(NonZeroU16::new)?;
    (narrow.get() <= Weight::MAX).then_some(Weight(narrow))
}

pub(crate) const fn end_number(end: End) -> i32 {
    match end {
        End::Back => FH_MERGED_BACK,
        End::Front => FH_MERGED_FRONT,
    }
}

pub(crate) const fn end(number: i32) -> Option<End> {
    match number {
        FH_MERGED_BACK => Some(End::Back),
        FH_MERGED_FRONT => Some(End::Front),
        _ => None,
    }
}

/// A list of all values of an enum of core, in the order of their numbers. Does not compile if core has one
/// that is not in the list.
macro_rules! numbers {
    ($(#[$doc:meta])* $list:ident: $kind:ident = $($name:ident)*) => {
        $(#[$doc])*
        const $list: &[$kind] = &[$($kind::$name,)*];

        const _: fn($kind) = |value| match value {
            $($kind::$name => {})*
        };
    };
}

numbers! {
    /// Reasons to hold, by number from 1 on.
    HOLDS: Hold = Anticipate SliceIdle DrainBatch Depth HigherClass IdleClass Limit
}

numbers! {
    /// Reasons of timers, by number from 1 on.
    TIMERS: Timer = Anticipate SliceIdle IdleClass Window Protect Limit
}

numbers! {
    /// Reasons, by number from 0 on.
    REASONS: Reason = None Arrival Batch NewBatch FifoExpired WritesStarved Aged Requeued Nearest Drain
    Anticipate AnticipationHit AnticipationClose AnticipationTimeout AnticipationUseless BatchChange SliceIdle
    WorkloadIdle GroupIdle SliceStart SliceUsed SliceEmpty IdleTimeout AsyncQuota Preempted Cooperator
    QueueMerge QueueSplit TaskExit Depth NoToken HigherClass DrainKind BudgetExhausted BudgetTimeout Times
    RaisedInteractive RaisedSoftRealTime RaisedAsync RaiseEnd LargeBurst RateUpdate Injected Waker Actuator
    WakerFound Reserved Protected Limit
}

/// Finds what has a number from 1 on.
fn numbered<T: Copy>(all: &[T], number: u32) -> Option<T> {
    all.get(usize::try_from(number).ok()?.checked_sub(1)?).copied()
}

/// 0 for what is not in the list, which does not happen.
#[allow(clippy::cast_possible_truncation, reason = "a short list")]
fn number<T: PartialEq>(all: &[T], of: &T) -> u8 {
    all.iter().position(|t| t == of).map_or(0, |i| i as u8 + 1)
}

pub(crate) fn hold(number: u8) -> Option<Hold> {
    numbered(HOLDS, number.into())
}

pub(crate) fn hold_number(hold: Hold) -> u8 {
    number(HOLDS, &hold)
}

pub(crate) fn timer(number: u32) -> Option<Timer> {
    numbered(TIMERS, number)
}

pub(crate) fn timer_number(timer: Timer) -> u32 {
    number(TIMERS, &timer).into()
}

pub(crate) fn reason(number: u8) -> Option<Reason> {
    REASONS.get(usize::from(number)).copied()
}

#[allow(clippy::cast_possible_truncation, reason = "a short list")]
pub(crate) fn reason_number(reason: Reason) -> u8 {
    REASONS.iter().position(|r| *r == reason).unwrap_or(0) as u8
}

/// The words of units without words; `None` for numbers that stand for nothing, and for words.
pub(crate) const fn unit(number: u32) -> Option<Unit> {
    match number {
        1 => Some(Unit::Time),
        2 => Some(Unit::Count),
        3 => Some(Unit::Switch),
        4 => Some(Unit::KiB),
        5 => Some(Unit::Sectors),
        _ => None,
    }
}

/// The number of the unit that has words.
pub(crate) const UNIT_WORD: u32 = 6;

pub(crate) const fn unit_number(unit: Unit) -> u32 {
    match unit {
        Unit::Time => 1,
        Unit::Count => 2,
        Unit::Switch => 3,
        Unit::KiB => 4,
        Unit::Sectors => 5,
        Unit::Choice(_) => UNIT_WORD,
    }
}

impl FhSchedulerLimits {
    /// Core's limits for a library, without what is the elevator's alone.
    pub(crate) fn of(limits: &Limits, fail: unsafe extern "C" fn(*const c_char)) -> Self {
        let mut actuators = [0; 7];
        actuators.iter_mut().zip(limits.actuators.starts()).for_each(|(to, start)| *to = start.0);
        Self {
            abi: VERSION,
            tags: limits.tags.into(),
            pool: limits.pool.into(),
            tasks: limits.tasks,
            groups: limits.groups,
            capacity: limits.capacity,
            max_sectors: limits.max_sectors.0,
            max_segments: limits.max_segments.into(),
            rotational: limits.rotational.into(),
            queue_depth: limits.queue_depth.into(),
            observed: (limits.trace > 0).into(),
            reserved: 0,
            actuators,
            fail: Some(fail),
        }
    }

    /// Limits for an elevator in a library, which repeats what another one does. `None` if a number is out of
    /// range.
    pub(crate) fn to_core(self) -> Option<Limits> {
        let narrow = |value: u32| u16::try_from(value).ok();
        let used = self.actuators.iter().take_while(|s| **s > 0).count();
        let starts = self.actuators.map(Sector);
        Some(Limits {
            tags: narrow(self.tags)?,
            pool: narrow(self.pool)?,
            tasks: self.tasks,
            groups: self.groups,
            capacity: self.capacity,
            max_sectors: Sectors(self.max_sectors),
            max_segments: narrow(self.max_segments)?,
            merges: false,
            rotational: self.rotational == 1,
            queue_depth: narrow(self.queue_depth)?,
            // Some schedulers find out a reason only if there is a trace to keep it.
            trace: self.observed,
            actuators: Actuators::at(&starts[..used]),
            ..Limits::default()
        })
    }
}

impl FhSchedulerControl {
    /// A change for a library; `None` for those that are the elevator's business.
    pub(crate) fn of(change: &Control) -> Option<Self> {
        let of = |kind, id, a, b| Some(Self { kind, id, a, b });
        match *change {
            Control::SetWeight(group, weight) => of(1, group.0, weight.0.get().into(), 0),
            Control::SetLeafWeight(group, weight) => of(2, group.0, weight.0.get().into(), 0),
            Control::SetClass(group, class) => of(3, group.0, class as u32, 0),
            Control::SetPolicy(group, None) => of(4, group.0, 0, 0),
            Control::SetPolicy(group, Some(p)) => of(4, group.0, p.weight.0.get().into(), p.class as u32),
            Control::SetMin(group, min) => of(5, group.0, min.iops, 0),
            Control::SetPrio(task, prio) => of(6, task.0, prio.class as u32, prio.level.into()),
            Control::TaskExit(task) => of(7, task.0, 0, 0),
            Control::SetParent(group, parent) => of(8, group.0, parent.0, 0),
            Control::GroupExit(group) => of(9, group.0, 0, 0),
            Control::SetLatency(group, target) => {
                let ns = target.map_or(0, Duration::as_ns);
                #[allow(clippy::cast_possible_truncation, reason = "in two halves")]
                of(10, group.0, ns as u32, (ns >> 32) as u32)
            }
            Control::SetMax(..) => None,
        }
    }

    /// The change for core; `None` if a number stands for nothing.
    pub(crate) fn to_core(self) -> Option<Control> {
        let group = GroupId(self.id);
        Some(match self.kind {
            1 => Control::SetWeight(group, weight(self.a)?),
            2 => Control::SetLeafWeight(group, weight(self.a)?),
            3 => Control::SetClass(group, class(self.a)?),
            4 if self.a == 0 => Control::SetPolicy(group, None),
            4 => Control::SetPolicy(group, Some(Policy { weight: weight(self.a)?, class: class(self.b)? })),
            5 => Control::SetMin(group, Min { iops: self.a }),
            6 => Control::SetPrio(TaskId(self.id), prio(self.a, self.b)?),
            7 => Control::TaskExit(TaskId(self.id)),
            8 => Control::SetParent(group, GroupId(self.a)),
            9 => Control::GroupExit(group),
            10 => {
                let ns = u64::from(self.b) << 32 | u64::from(self.a);
                Control::SetLatency(group, (ns > 0).then(|| Duration::from_ns(ns)))
            }
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_and_changes_come_back_as_they_were() {
        let read = Request::read(TaskId(7), Sector(1 << 40), Sectors(8));
        let write = Request::write(TaskId(8), Sector(5), Sectors(1));
        let odd = Request {
            op: Op::Discard,
            meta: true,
            no_idle: true,
            group: GroupId(3),
            prio: IoPrio::new(Class::Idle, 7),
            ..write
        };
        for rq in [read, write, odd] {
            assert_eq!(FhRequest::from(&rq).to_core(), Some(rq));
        }
        let weight = Weight(NonZeroU16::new(250).unwrap());
        let (group, policy) = (GroupId(2), Policy { weight, class: Class::RealTime });
        for change in [
            Control::SetWeight(group, weight),
            Control::SetLeafWeight(group, weight),
            Control::SetClass(group, Class::Idle),
            Control::SetPolicy(group, None),
            Control::SetPolicy(group, Some(policy)),
            Control::SetMin(group, Min { iops: 50 }),
            Control::SetPrio(TaskId(9), IoPrio::new(Class::RealTime, 1)),
            Control::TaskExit(TaskId(9)),
            Control::SetParent(group, GroupId(1)),
            Control::GroupExit(group),
            Control::SetLatency(group, Some(Duration::from_ns(7_000_000_001))),
            Control::SetLatency(group, None),
        ] {
            assert_eq!(FhSchedulerControl::of(&change).unwrap().to_core(), Some(change));
        }
    }

    #[test]
    fn numbers_that_stand_for_nothing_are_seen() {
        let rq = FhRequest::from(&Request::read(TaskId(1), Sector(0), Sectors(8)));
        assert!(FhRequest { op: 3, ..rq }.to_core().is_none());
        assert!(FhRequest { prio_level: 8, ..rq }.to_core().is_none());
        assert_eq!((hold(0), hold(8), timer(0), timer(7), reason(200)), (None, None, None, None, None));
        assert!(HOLDS.iter().all(|h| hold(hold_number(*h)) == Some(*h)));
        assert!(TIMERS.iter().all(|t| timer(timer_number(*t)) == Some(*t)));
        assert!(REASONS.iter().all(|r| reason(reason_number(*r)) == Some(*r)));
        // The header names these.
        let named = [1, 2, 3, 4, 5, 6, 8, 9].map(|n| reason(n).unwrap());
        assert_eq!(
            named,
            [
                Reason::Arrival,
                Reason::Batch,
                Reason::NewBatch,
                Reason::FifoExpired,
                Reason::WritesStarved,
                Reason::Aged,
                Reason::Nearest,
                Reason::Drain
            ]
        );
    }
}
