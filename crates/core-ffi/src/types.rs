//! C's structs and codes, as `fairhead.h` has them, and what they are in core's terms.
//!
//! `tests/c/layout.c` and the sizes at the end of this file hold both sides to the same layout.

use core::ffi::{CStr, c_char, c_void};
use core::num::{NonZeroU16, NonZeroU64};
use fairhead_core::{
    Actuators, Class, Duration, End, GroupId, Hold, Instant, IoPrio, Limits, Max, Op, Policy, Request,
    Sector, Sectors, TaskId, Timer, Weight,
};

/// What functions return: 0 or more is an answer, less is an error.
pub type Status = i32;

/// It is done.
pub const FH_OK: Status = 0;
/// `fh_insert`: the request waits.
pub const FH_QUEUED: Status = 0;
/// `fh_insert`: the request is a part of another, behind it.
pub const FH_MERGED_BACK: Status = 1;
/// `fh_insert`: the request is a part of another, in front of it.
pub const FH_MERGED_FRONT: Status = 2;
/// `fh_dispatch`: no request waits.
pub const FH_EMPTY: Status = 0;
/// `fh_dispatch`: a request goes to the device.
pub const FH_ISSUE: Status = 1;
/// `fh_dispatch`: the turn of a request that was removed; its tag is free.
pub const FH_GONE: Status = 2;
/// `fh_dispatch`: requests wait, and the disk does not get them yet.
pub const FH_HOLD: Status = 3;
/// `fh_dispatch_batch`: as many requests were issued as there was room for.
pub const FH_FULL: Status = 4;

/// A pointer that must not be is null.
pub const FH_E_NULL: Status = -1;
/// Not an instance, or one that was destroyed.
pub const FH_E_INSTANCE: Status = -2;
/// The struct is of another version of the ABI.
pub const FH_E_VERSION: Status = -3;
/// A limit is out of range.
pub const FH_E_LIMIT: Status = -4;
/// There is no scheduler of that name.
pub const FH_E_SCHEDULER: Status = -5;
/// The scheduler has no tunable of that name or number.
pub const FH_E_TUNABLE: Status = -6;
/// A value is out of range.
pub const FH_E_RANGE: Status = -7;
/// The memory is too small, not aligned, or not to be had.
pub const FH_E_MEMORY: Status = -8;
/// There is no such tag.
pub const FH_E_TAG: Status = -9;
/// The tag is not in the state that the call needs.
pub const FH_E_STATE: Status = -10;
/// The request has no length, ends beyond the last sector number, or has an unknown operation or priority.
pub const FH_E_REQUEST: Status = -11;
/// There is no such group.
pub const FH_E_GROUP: Status = -12;
/// Time went backwards.
pub const FH_E_TIME: Status = -13;
/// The change cannot be made now.
pub const FH_E_REFUSED: Status = -14;
/// Another call on the instance has not returned.
pub const FH_E_BUSY: Status = -15;
/// The instance is poisoned, and this is not to be had from it any longer.
pub const FH_E_POISONED: Status = -16;

/// No tag.
pub const FH_NO_TAG: u16 = u16::MAX;

/// Sizes and facts that an instance is made for: `struct fh_limits`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "documented in the header")]
pub struct FhLimits {
    pub abi: u32,
    pub tags: u32,
    pub pool: u32,
    pub tasks: u32,
    pub groups: u32,
    pub capacity: u32,
    pub max_sectors: u32,
    pub max_segments: u32,
    pub merges: u32,
    pub rotational: u32,
    pub queue_depth: u32,
    pub trace: u32,
    pub tick_ns: u64,
    pub actuators: [u64; 7],
}

impl FhLimits {
    /// Core's defaults.
    #[must_use]
    pub fn defaults() -> Self {
        let l = Limits::default();
        Self {
            abi: crate::ABI_VERSION,
            tags: l.tags.into(),
            pool: l.pool.into(),
            tasks: l.tasks,
            groups: l.groups,
            capacity: l.capacity,
            max_sectors: l.max_sectors.0,
            max_segments: l.max_segments.into(),
            merges: l.merges.into(),
            rotational: l.rotational.into(),
            queue_depth: l.queue_depth.into(),
            trace: l.trace,
            tick_ns: l.tick.as_ns(),
            actuators: [0; 7],
        }
    }

    /// These limits for core; the name of the first that is out of range.
    pub(crate) fn to_core(self) -> Result<Limits, &'static str> {
        let narrow = |value: u32, name| u16::try_from(value).map_err(|_| name);
        // The root's actuators are ascending, and end with the first 0.
        let used = self.actuators.iter().take_while(|s| **s > 0).count();
        let [starts, rest] = [&self.actuators[..used], &self.actuators[used..]];
        if starts.windows(2).any(|pair| pair[0] >= pair[1]) || rest.iter().any(|s| *s > 0) {
            return Err("actuators");
        }
        let mut sectors = [Sector(0); 7];
        sectors.iter_mut().zip(starts).for_each(|(to, start)| *to = Sector(*start));
        if self.merges > 1 || self.rotational > 1 {
            return Err(if self.merges > 1 { "merges" } else { "rotational" });
        }
        let limits = Limits {
            tags: narrow(self.tags, "tags")?,
            pool: narrow(self.pool, "pool")?,
            tasks: self.tasks,
            groups: self.groups,
            capacity: self.capacity,
            max_sectors: Sectors(self.max_sectors),
            max_segments: narrow(self.max_segments, "max_segments")?,
            merges: self.merges == 1,
            rotational: self.rotational == 1,
            queue_depth: narrow(self.queue_depth, "queue_depth")?,
            tick: Duration::from_ns(self.tick_ns),
            trace: self.trace,
            actuators: Actuators::at(&sectors[..used]),
            ..Limits::default()
        };
        // Core names them the same when it looks; here they decide how much memory is asked for.
        let large = |value: u32| value == 0 || value > 1 << 24;
        match limits {
            _ if limits.tags == 0 => Err("tags"),
            _ if large(limits.tasks) => Err("tasks"),
            _ if large(limits.groups) => Err("groups"),
            _ if limits.trace > 1 << 24 => Err("trace"),
            _ => Ok(limits),
        }
    }
}

/// A request: `struct fh_request`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "documented in the header")]
pub struct FhRequest {
    pub sector: u64,
    pub sectors: u32,
    pub task: u32,
    pub group: u32,
    pub op: u8,
    pub prio_class: u8,
    pub prio_level: u8,
    pub flags: u8,
}

/// A program waits for the request.
pub const FH_SYNC: u8 = 1;
/// The request is for metadata.
pub const FH_META: u8 = 2;
/// No dependent request follows.
pub const FH_NO_IDLE: u8 = 4;
/// The request is not merged.
pub const FH_ALONE: u8 = 8;

impl FhRequest {
    /// The request for core, and whether it must stay alone. `groups`: how many groups there may be.
    pub(crate) fn to_core(self, groups: u32) -> Result<(Request, bool), Status> {
        // Bits that none of these may have, looked at together.
        const UNKNOWN: u32 = !u32::from_le_bytes([3, 3, 7, 15]);
        let small = u32::from_le_bytes([self.op, self.prio_class, self.prio_level, self.flags]);
        let ends = self.sector.checked_add(self.sectors.into()).is_some();
        if small & UNKNOWN != 0 || self.sectors == 0 || !ends {
            return Err(FH_E_REQUEST);
        }
        let op = match self.op {
            0 => Op::Read,
            1 => Op::Write,
            2 => Op::Discard,
            _ => return Err(FH_E_REQUEST),
        };
        let prio = prio(self.prio_class, self.prio_level).ok_or(FH_E_REQUEST)?;
        if self.group >= groups {
            return Err(FH_E_GROUP);
        }
        let rq = Request {
            start: Sector(self.sector),
            len: Sectors(self.sectors),
            op,
            // A read is one that a program waits for.
            sync: op == Op::Read || self.flags & FH_SYNC > 0,
            meta: self.flags & FH_META > 0,
            no_idle: self.flags & FH_NO_IDLE > 0,
            task: TaskId(self.task),
            group: GroupId(self.group),
            prio,
        };
        Ok((rq, self.flags & FH_ALONE > 0))
    }

    /// A request of core's.
    pub(crate) fn of(rq: &Request) -> Self {
        let flag = |is: bool, flag: u8| if is { flag } else { 0 };
        Self {
            sector: rq.start.0,
            sectors: rq.len.0,
            task: rq.task.0,
            group: rq.group.0,
            op: rq.op as u8,
            prio_class: rq.prio.class as u8,
            prio_level: rq.prio.level,
            flags: flag(rq.sync, FH_SYNC) | flag(rq.meta, FH_META) | flag(rq.no_idle, FH_NO_IDLE),
        }
    }
}

/// A priority from its class (0 real time, 1 best effort, 2 idle) and level.
pub(crate) fn prio(class: u8, level: u8) -> Option<IoPrio> {
    let class = self::class(class.into())?;
    (level < 8).then(|| IoPrio::new(class, level))
}

/// A class from its number.
pub(crate) fn class(number: u32) -> Option<Class> {
    match number {
        0 => Some(Class::RealTime),
        1 => Some(Class::BestEffort),
        2 => Some(Class::Idle),
        _ => None,
    }
}

/// A weight from its number, 1 to 10000.
pub(crate) fn weight(number: u32) -> Option<Weight> {
    let narrow = u16::try_from(number).ok().and_then(NonZeroU16::new)?;
    (narrow.get() <= Weight::MAX).then_some(Weight(narrow))
}

/// A policy from its weight and class.
pub(crate) fn policy(weight: u32, class: u32) -> Option<Policy> {
    Some(Policy { weight: self::weight(weight)?, class: self::class(class)? })
}

/// An end of a request: 1 back, 2 front, as `fh_insert` answers.
pub(crate) fn end(number: i32) -> Option<End> {
    match number {
        FH_MERGED_BACK => Some(End::Back),
        FH_MERGED_FRONT => Some(End::Front),
        _ => None,
    }
}

/// The number of an end.
pub(crate) fn end_number(end: End) -> Status {
    match end {
        End::Back => FH_MERGED_BACK,
        End::Front => FH_MERGED_FRONT,
    }
}

/// The number of a reason to hold.
pub(crate) fn hold_number(hold: Hold) -> u32 {
    match hold {
        Hold::Anticipate => 1,
        Hold::SliceIdle => 2,
        Hold::DrainBatch => 3,
        Hold::Depth => 4,
        Hold::HigherClass => 5,
        Hold::IdleClass => 6,
        Hold::Limit => 7,
    }
}

/// The number of a timer's reason.
pub(crate) fn timer_number(timer: Timer) -> u32 {
    match timer {
        Timer::Anticipate => 1,
        Timer::SliceIdle => 2,
        Timer::IdleClass => 3,
        Timer::Window => 4,
        Timer::Protect => 5,
        Timer::Limit => 6,
    }
}

/// C's clock, whose zero is core's epoch.
pub(crate) fn instant(now_ns: u64) -> Instant {
    Instant::EPOCH + Duration::from_ns(now_ns)
}

/// A time of core's on C's clock.
pub(crate) fn clock(at: Instant) -> u64 {
    at.saturating_since(Instant::EPOCH).as_ns()
}

/// A tag with its request, for a batch: `struct fh_arrival`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "documented in the header")]
pub struct FhArrival {
    pub request: FhRequest,
    pub tag: u16,
    pub into: u16,
    pub answer: i32,
}

/// Limits of a group: `struct fh_max`; 0 is without a limit.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "documented in the header")]
pub struct FhMax {
    pub rbps: u64,
    pub wbps: u64,
    pub riops: u64,
    pub wiops: u64,
    pub burst_ns: u64,
}

impl FhMax {
    pub(crate) fn to_core(self) -> Max {
        Max {
            rbps: NonZeroU64::new(self.rbps),
            wbps: NonZeroU64::new(self.wbps),
            riops: NonZeroU64::new(self.riops),
            wiops: NonZeroU64::new(self.wiops),
            burst: Duration::from_ns(self.burst_ns),
        }
    }
}

/// A tunable's value at creation: `struct fh_setting`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "documented in the header")]
pub struct FhSetting {
    pub name: *const c_char,
    pub value: u64,
}

/// The caller's allocator: `struct fh_allocator`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "documented in the header")]
pub struct FhAllocator {
    pub alloc: Option<unsafe extern "C" fn(*mut c_void, usize, usize) -> *mut c_void>,
    pub free: Option<unsafe extern "C" fn(*mut c_void, *mut c_void, usize)>,
    pub context: *mut c_void,
}

/// Text without a zero at its end: `struct fh_text`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "documented in the header")]
pub struct FhText {
    pub at: *const c_char,
    pub length: usize,
}

impl FhText {
    pub(crate) fn of(text: &'static str) -> Self {
        Self { at: text.as_ptr().cast(), length: text.len() }
    }
}

/// What went wrong, in words: `struct fh_error`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "documented in the header")]
pub struct FhError {
    pub text: [u8; 112],
}

/// Errors in words, by number from -1 downwards; each ends with a zero.
const WORDS: [&CStr; 16] = [
    c"a pointer is null",
    c"not an elevator, or one that was destroyed",
    c"another version of the interface",
    c"a limit is out of range",
    c"no scheduler of that name",
    c"no tunable of that name or number",
    c"a value is out of range",
    c"the memory is too small or not aligned, or there is none",
    c"no such tag",
    c"the tag is in another state",
    c"a request without length, beyond the last sector, or of an unknown kind",
    c"no such group",
    c"time went backwards",
    c"the change cannot be made now",
    c"another call has not returned",
    c"the elevator is poisoned",
];

/// Returns an error in words.
#[unsafe(no_mangle)]
pub extern "C" fn fh_error_text(status: Status) -> *const c_char {
    let index = usize::try_from(-1_i64 - i64::from(status)).unwrap_or(usize::MAX);
    WORDS.get(index).copied().unwrap_or(c"no error").as_ptr()
}

/// The sizes that the header's structs have where pointers have 8 bytes; `tests/c/layout.c` has the same.
#[cfg(target_pointer_width = "64")]
const _: () = {
    assert!(size_of::<FhLimits>() == 112 && size_of::<FhRequest>() == 24 && size_of::<FhArrival>() == 32);
    assert!(size_of::<FhMax>() == 40 && size_of::<FhSetting>() == 16 && size_of::<FhAllocator>() == 24);
    assert!(size_of::<FhText>() == 16 && size_of::<FhError>() == 112);
};
