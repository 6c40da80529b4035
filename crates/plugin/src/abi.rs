//! C's structs and numbers, as `fairhead-scheduler.h` has them and documents them.
//!
//! `tests/c/layout.c` and the sizes at the end of this file hold both sides to the same layout.
#![allow(missing_docs, reason = "documented in the header")]

use std::ffi::{c_char, c_void};

/// The version of the interface: what `FH_SCHEDULER_ABI` in the header says. It grows when a library that was
/// compiled against the header before would not work any longer.
pub const VERSION: u32 = 1;

/// The name of the function that a library has.
pub const SYMBOL: &std::ffi::CStr = c"fairhead_scheduler";

pub const FH_EMPTY: i32 = 0;
pub const FH_ISSUE: i32 = 1;
pub const FH_HOLD: i32 = 3;

pub const FH_MERGED_BACK: i32 = 1;
pub const FH_MERGED_FRONT: i32 = 2;

pub const FH_NO_TAG: u16 = u16::MAX;

pub const FH_KEEPS_WEIGHT: u32 = 1;
pub const FH_KEEPS_LEAF_WEIGHT: u32 = 2;
pub const FH_KEEPS_CLASS: u32 = 4;
pub const FH_KEEPS_MIN: u32 = 8;
pub const FH_KEEPS_LATENCY: u32 = 16;

/// `struct fh_request`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
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

/// `struct fh_scheduler_limits`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct FhSchedulerLimits {
    pub abi: u32,
    pub tags: u32,
    pub pool: u32,
    pub tasks: u32,
    pub groups: u32,
    pub capacity: u32,
    pub max_sectors: u32,
    pub max_segments: u32,
    pub rotational: u32,
    pub queue_depth: u32,
    pub observed: u32,
    pub reserved: u32,
    pub actuators: [u64; 7],
    pub fail: Option<unsafe extern "C" fn(*const c_char)>,
}

/// `struct fh_scheduler_tunable`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct FhSchedulerTunable {
    pub name: *const c_char,
    pub effect: *const c_char,
    pub min: u64,
    pub max: u64,
    pub preset: u64,
    pub unit: u32,
    pub words: u32,
    pub word: *const *const c_char,
}

/// `struct fh_scheduler_answer`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct FhSchedulerAnswer {
    pub tag: u16,
    pub why: u8,
    pub hold: u8,
}

/// `struct fh_scheduler_control`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct FhSchedulerControl {
    pub kind: u32,
    pub id: u32,
    pub a: u32,
    pub b: u32,
}

type This = *mut c_void;
type Rq = *const FhRequest;
type Answer = *mut FhSchedulerAnswer;
type Sizes = *const FhSchedulerLimits;

/// `struct fh_scheduler_ops`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct FhSchedulerOps {
    pub abi: u32,
    pub size: u32,
    pub name: *const c_char,
    pub about: *const c_char,
    pub tunables: *const FhSchedulerTunable,
    pub tunable_count: u32,
    pub keeps: u32,
    pub memory: Option<unsafe extern "C" fn(Sizes) -> usize>,
    pub create: Option<unsafe extern "C" fn(This, Sizes, *const u64) -> i32>,
    pub destroy: Option<unsafe extern "C" fn(This)>,
    pub insert: Option<unsafe extern "C" fn(This, u64, u16, Rq)>,
    pub grown: Option<unsafe extern "C" fn(This, u64, u16, i32, u16, Rq, Rq)>,
    pub remove: Option<unsafe extern "C" fn(This, u64, u16)>,
    pub joined: Option<unsafe extern "C" fn(This, u64, u16, u16, Rq)>,
    pub dispatch: Option<unsafe extern "C" fn(This, u64, Answer) -> i32>,
    pub drain: Option<unsafe extern "C" fn(This, u64, Answer) -> i32>,
    pub complete: Option<unsafe extern "C" fn(This, u64, u16, Rq)>,
    pub requeue: Option<unsafe extern "C" fn(This, u64, u16)>,
    pub reissue: Option<unsafe extern "C" fn(This, u64, u16)>,
    pub control: Option<unsafe extern "C" fn(This, u64, *const FhSchedulerControl)>,
    pub retune: Option<unsafe extern "C" fn(This, u64, *const u64) -> i32>,
    pub timer: Option<unsafe extern "C" fn(This, u64)>,
    pub next_timer: Option<unsafe extern "C" fn(This, *mut u64, *mut u32) -> i32>,
    pub wants_run: Option<unsafe extern "C" fn(This) -> i32>,
    pub prepare_merge: Option<unsafe extern "C" fn(This, u64, Rq)>,
    pub may_merge: Option<unsafe extern "C" fn(This, u16, Rq) -> i32>,
    pub has_room: Option<unsafe extern "C" fn(This, Rq) -> i32>,
    pub prefers: Option<unsafe extern "C" fn(This, Rq) -> i32>,
    pub front_merges: Option<unsafe extern "C" fn(This) -> i32>,
    pub ends_only: Option<unsafe extern "C" fn(This) -> i32>,
    pub neighbour: Option<unsafe extern "C" fn(This, u16, i32) -> u16>,
    pub check: Option<unsafe extern "C" fn(This) -> i32>,
}

// SAFETY: the header asks that a table and what it points to is never changed.
unsafe impl Send for FhSchedulerOps {}
// SAFETY: as above.
unsafe impl Sync for FhSchedulerOps {}

/// The sizes that the header's structs have where pointers have 8 bytes, as in `tests/c/layout.c`.
#[cfg(target_pointer_width = "64")]
const _: () = {
    assert!(size_of::<FhRequest>() == 24 && size_of::<FhSchedulerLimits>() == 112);
    assert!(size_of::<FhSchedulerTunable>() == 56 && size_of::<FhSchedulerAnswer>() == 4);
    assert!(size_of::<FhSchedulerControl>() == 16 && size_of::<FhSchedulerOps>() == 240);
};
