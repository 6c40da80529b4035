//! Making an instance, in the caller's memory or by its allocator, and its end.

use crate::instance::{Instance, enter, put, take};
use crate::ledger::Ledger;
use crate::memory::{Block, within};
use crate::need;
use crate::panics;
use crate::texts::Text;
use crate::types::*;
use core::ffi::{CStr, c_char, c_void};
use core::fmt::Write;
use core::{ptr, slice};
use fairhead_core::config::ConfigError;
use fairhead_core::sched::any::{AnyConfig, AnyScheduler, preset};
use fairhead_core::{Elevator, Limits};

/// What went wrong, as a status and in words.
struct Failure(Status, Text);

impl Failure {
    fn of(status: Status, text: &str) -> Self {
        Self(status, Text::of(text))
    }
}

/// Everything that an instance is made of but its memory.
struct Plan {
    limits: Limits,
    config: AnyConfig,
    size: usize,
}

/// Writes core's defaults.
///
/// # Safety
/// `limits` points to where a `struct fh_limits` fits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fh_limits_init(limits: *mut FhLimits) -> Status {
    if limits.is_null() {
        return FH_E_NULL;
    }
    // SAFETY: the caller's promise.
    unsafe { put(limits, FhLimits::defaults()) };
    FH_OK
}

/// How much memory an instance needs, and where it may begin.
///
/// # Safety
/// `limits` points to limits, `scheduler` to text that ends with a zero; `size`, `align` and `why`, if they
/// are not null, to where their values fit.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fh_size(
    limits: *const FhLimits,
    scheduler: *const c_char,
    size: *mut usize,
    align: *mut usize,
    why: *mut FhError,
) -> Status {
    // SAFETY: the caller's promises.
    unsafe {
        answer(why, plan(limits, scheduler, ptr::null(), 0)).map_or_else(
            |status| status,
            |plan| {
                put(size, plan.size);
                put(align, align_of::<Instance>());
                FH_OK
            },
        )
    }
}

/// Makes an instance in memory of the caller's.
///
/// # Safety
/// `memory` points to `size` bytes that nothing else uses; the rest is as for [`fh_create_with`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fh_create(
    memory: *mut c_void,
    size: usize,
    limits: *const FhLimits,
    scheduler: *const c_char,
    settings: *const FhSetting,
    count: usize,
    made: *mut *mut Instance,
    why: *mut FhError,
) -> Status {
    // SAFETY: the caller's promises.
    unsafe {
        put(made, ptr::null_mut());
        let plan = match answer(why, plan(limits, scheduler, settings, count)) {
            Ok(plan) => plan,
            Err(status) => return status,
        };
        if made.is_null() || memory.is_null() {
            return FH_E_NULL;
        }
        if size < plan.size || !memory.cast::<Instance>().is_aligned() {
            let mut text = Text::default();
            let align = align_of::<Instance>();
            let _ = write!(text, "{} bytes at a multiple of {align} are needed", plan.size);
            return answer(why, Err::<(), _>(Failure(FH_E_MEMORY, text))).map_or_else(|e| e, |()| FH_OK);
        }
        match answer(why, build(memory.cast(), &plan, None)) {
            Ok(()) => {
                put(made, memory.cast());
                FH_OK
            }
            Err(status) => status,
        }
    }
}

/// Makes an instance in one piece of memory from the caller's allocator.
///
/// # Safety
/// `allocator` points to functions that give and take back memory as `malloc` and `free` do; `limits` to
/// limits; `scheduler` and the names of `count` `settings` to text that ends with a zero; `made` to where a
/// pointer fits; `why`, if it is not null, to where its text fits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fh_create_with(
    allocator: *const FhAllocator,
    limits: *const FhLimits,
    scheduler: *const c_char,
    settings: *const FhSetting,
    count: usize,
    made: *mut *mut Instance,
    why: *mut FhError,
) -> Status {
    // SAFETY: the caller's promises.
    unsafe {
        put(made, ptr::null_mut());
        let plan = match answer(why, plan(limits, scheduler, settings, count)) {
            Ok(plan) => plan,
            Err(status) => return status,
        };
        let allocator = match take(allocator) {
            Ok(allocator) => allocator,
            Err(status) => return status,
        };
        let (Some(alloc), Some(free), false) = (allocator.alloc, allocator.free, made.is_null()) else {
            return FH_E_NULL;
        };
        let memory = alloc(allocator.context, plan.size, align_of::<Instance>());
        let outcome = if memory.is_null() || !memory.cast::<Instance>().is_aligned() {
            let mut text = Text::default();
            let _ = write!(text, "the allocator has no {} aligned bytes", plan.size);
            Err(Failure(FH_E_MEMORY, text))
        } else {
            build(memory.cast(), &plan, Some(allocator))
        };
        match answer(why, outcome) {
            Ok(()) => {
                put(made, memory.cast());
                FH_OK
            }
            Err(status) => {
                if !memory.is_null() {
                    free(allocator.context, memory, plan.size);
                }
                status
            }
        }
    }
}

/// The end of an instance.
///
/// # Safety
/// `at` points to an instance.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fh_destroy(at: *mut Instance) -> Status {
    // SAFETY: the caller's promise.
    let mut entered = match unsafe { enter(at) } {
        Ok(entered) => entered,
        Err(status) => return status,
    };
    let (allocator, size) = (entered.allocator, entered.size);
    // Core's parts own nothing outside of the block, and are not dropped.
    entered.unmark();
    drop(entered);
    if let Some(FhAllocator { free: Some(free), context, .. }) = allocator {
        // SAFETY: the block is from this allocator, and no call will enter it again.
        unsafe { free(context, at.cast(), size) };
    }
    FH_OK
}

/// After a creation was left in its middle: another one may begin.
#[cfg(not(feature = "std"))]
#[unsafe(no_mangle)]
pub extern "C" fn fh_create_abandoned() {
    crate::memory::abandon();
}

/// Panics in the middle of a call: to try what a driver does then. Returns only if the instance is poisoned.
///
/// # Safety
/// `at` points to an instance.
#[cfg(not(feature = "std"))]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fh_panic(at: *mut Instance) -> Status {
    // SAFETY: the caller's promise.
    unsafe {
        crate::instance::with(at, |it| {
            it.healthy(|_| panic!("a panic was asked for"));
            Err(FH_E_POISONED)
        })
    }
}

/// Passes a result on; an error as a status, with its words where C wants them.
///
/// # Safety
/// `why` is null or points to where its text fits.
unsafe fn answer<T>(why: *mut FhError, outcome: Result<T, Failure>) -> Result<T, Status> {
    outcome.map_err(|Failure(status, text)| {
        // SAFETY: the caller's promise.
        unsafe { put(why, FhError { text: *text.as_bytes() }) };
        status
    })
}

/// What is to be made.
///
/// # Safety
/// As [`fh_create_with`].
unsafe fn plan(
    limits: *const FhLimits,
    scheduler: *const c_char,
    settings: *const FhSetting,
    count: usize,
) -> Result<Plan, Failure> {
    if limits.is_null() {
        return Err(Failure::of(FH_E_NULL, "the limits are null"));
    }
    // SAFETY: the caller's promise; the first word is there in every version.
    let abi = unsafe { (&raw const (*limits).abi).read() };
    if abi != crate::ABI_VERSION {
        let mut text = Text::default();
        let ours = crate::ABI_VERSION;
        let _ = write!(text, "the limits are of version {abi}, the library is of version {ours}");
        return Err(Failure(FH_E_VERSION, text));
    }
    // SAFETY: the caller's promise.
    let limits = unsafe { limits.read() }.to_core().map_err(|name| {
        let mut text = Text::default();
        let _ = write!(text, "the limit {name} is out of range");
        Failure(FH_E_LIMIT, text)
    })?;
    // SAFETY: the caller's promise.
    let name = unsafe { text(scheduler) }.ok_or_else(|| Failure::of(FH_E_NULL, "no scheduler is named"))?;
    let Some(preset) = preset(name) else {
        let mut text = Text::default();
        let _ = write!(text, "there is no scheduler '{name}'");
        return Err(Failure(FH_E_SCHEDULER, text));
    };
    if settings.is_null() && count > 0 {
        return Err(Failure::of(FH_E_NULL, "the settings are null"));
    }
    let mut config = (preset.config)();
    // SAFETY: the caller's promise.
    let settings = if count == 0 { &[][..] } else { unsafe { slice::from_raw_parts(settings, count) } };
    for setting in settings {
        // SAFETY: the caller's promise.
        let name = unsafe { text(setting.name) };
        let name = name.ok_or_else(|| Failure::of(FH_E_NULL, "a setting has no name"))?;
        config.set(name, setting.value).map_err(|error| refused(name, &error))?;
    }
    let parts = need::bytes(&config, &limits)
        .ok_or_else(|| Failure::of(FH_E_LIMIT, "the limits need more memory than there can be"))?;
    Ok(Plan { limits, config, size: size_of::<Instance>() + parts })
}

/// The error for a tunable or limit that core does not take.
pub(crate) fn status_of(error: &ConfigError) -> Status {
    if error.tunable.is_none() { FH_E_TUNABLE } else { FH_E_RANGE }
}

fn refused(name: &str, error: &ConfigError) -> Failure {
    let mut text = Text::default();
    let _ = match error.tunable {
        None => write!(text, "no tunable named '{name}'"),
        Some(_) => write!(text, "{error}"),
    };
    Failure(status_of(error), text)
}

/// The longest name that is looked at.
const LONGEST_NAME: usize = 64;

/// A name from C; `None` if it is null. One that is too long or not text is no name of anything: "?".
///
/// # Safety
/// `at` is null or points to text that ends with a zero.
pub(crate) unsafe fn text<'a>(at: *const c_char) -> Option<&'a str> {
    if at.is_null() {
        return None;
    }
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(at) }.to_str().unwrap_or("?");
    Some(if text.len() > LONGEST_NAME { "?" } else { text })
}

/// Makes what needs memory. A function of its own, as its frame is large.
#[inline(never)]
fn parts(plan: &Plan) -> Result<(Ledger, Elevator<AnyScheduler>), Option<ConfigError>> {
    let ledger = Ledger::new(plan.limits.tags).ok_or(None)?;
    // After an error what was made is dropped here, where that frees nothing.
    let elevator = Elevator::<AnyScheduler>::new(plan.limits, plan.config).map_err(Some)?;
    Ok((ledger, elevator))
}

/// Makes the instance at `memory`.
///
/// # Safety
/// `memory` is aligned, and `plan.size` bytes there are unused.
unsafe fn build(memory: *mut Instance, plan: &Plan, allocator: Option<FhAllocator>) -> Result<(), Failure> {
    let head = size_of::<Instance>();
    // SAFETY: the block is longer than the head.
    let block = Block::new(unsafe { memory.cast::<u8>().add(head) }, plan.size - head);
    let made = panics::caught(|| within(&block, || parts(plan)));
    match made {
        Ok(Some(Ok((ledger, elevator)))) => {
            let mut it = Instance::new(plan.limits, plan.config, elevator, ledger);
            (it.allocator, it.size) = (allocator, plan.size);
            debug_assert!(block.used() <= plan.size - head, "within the block");
            // SAFETY: the caller's promise.
            unsafe { memory.write(it) };
            Ok(())
        }
        Ok(Some(Err(Some(error)))) => {
            let is_limit = error.tunable.is_some_and(|t| t.effect == "a size that an elevator is made for");
            let failure = refused(error.field, &error);
            Err(if is_limit { Failure(FH_E_LIMIT, failure.1) } else { failure })
        }
        Ok(None) => Err(Failure::of(FH_E_BUSY, "another instance is being made")),
        Ok(Some(Err(None))) => Err(Failure::of(FH_E_MEMORY, "the memory is too small")),
        Err(said) => Err(Failure(FH_E_MEMORY, said)),
    }
}

/// Makes an instance with as much memory as it is given; returns how much it used: for the test of
/// `need.rs`.
#[cfg(test)]
pub(crate) fn used(limits: &Limits, config: AnyConfig, size: usize) -> Option<usize> {
    let mut memory = std::vec::Vec::<u8>::with_capacity(size);
    let block = Block::new(memory.as_mut_ptr(), size);
    let made = panics::caught(|| {
        within(&block, || {
            let ledger = Ledger::new(limits.tags);
            core::mem::forget((ledger, Elevator::<AnyScheduler>::new(*limits, config).ok()?));
            Some(())
        })
    });
    made.ok()??.map(|()| block.used())
}
