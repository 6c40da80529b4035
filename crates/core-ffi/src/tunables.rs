//! Schedulers and their tunables, by number and by name.

use crate::create::{status_of, text};
use crate::instance::{Instance, put, with};
use crate::types::*;
use core::ffi::c_char;
use fairhead_core::config::Unit;
use fairhead_core::sched::any::{AnyConfig, PRESETS, preset};

/// The description of a tunable: `struct fh_tunable`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "documented in the header")]
pub struct FhTunable {
    pub name: FhText,
    pub effect: FhText,
    pub min: u64,
    pub max: u64,
    pub preset: u64,
    pub unit: u32,
    pub words: u32,
}

/// The size that the header's struct has, as in `types.rs`.
#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<FhTunable>() == 64);

/// How many schedulers there are.
#[unsafe(no_mangle)]
pub extern "C" fn fh_scheduler_count() -> usize {
    PRESETS.len()
}

/// The name of a scheduler, and what it is.
///
/// # Safety
/// `name` and `about`, if they are not null, point to where texts fit.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fh_scheduler(index: usize, name: *mut FhText, about: *mut FhText) -> Status {
    let Some(preset) = PRESETS.get(index) else { return FH_E_RANGE };
    // SAFETY: the caller's promises.
    unsafe {
        put(name, FhText::of(preset.name));
        put(about, FhText::of(preset.about));
    }
    FH_OK
}

/// The tunables of a scheduler, as its preset has them.
///
/// # Safety
/// `scheduler` is null or points to text that ends with a zero.
unsafe fn config(scheduler: *const c_char) -> Result<AnyConfig, Status> {
    // SAFETY: the caller's promise.
    let name = unsafe { text(scheduler) }.ok_or(FH_E_NULL)?;
    preset(name).map(|p| (p.config)()).ok_or(FH_E_SCHEDULER)
}

/// How many tunables a scheduler has.
///
/// # Safety
/// `scheduler` points to text that ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fh_tunable_count(scheduler: *const c_char) -> Status {
    // SAFETY: the caller's promise.
    match unsafe { config(scheduler) } {
        Ok(config) => i32::try_from(config.list().len()).unwrap_or(i32::MAX),
        Err(status) => status,
    }
}

/// The description of a tunable.
///
/// # Safety
/// `scheduler` points to text that ends with a zero, and `tunable` to where a description fits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fh_tunable(
    scheduler: *const c_char,
    index: usize,
    tunable: *mut FhTunable,
) -> Status {
    // SAFETY: the caller's promises.
    let config = match unsafe { config(scheduler) } {
        Ok(config) => config,
        Err(status) => return status,
    };
    let Some(t) = config.list().get(index) else { return FH_E_TUNABLE };
    let (unit, words) = match t.unit {
        Unit::Time => (1, 0),
        Unit::Count => (2, 0),
        Unit::Switch => (3, 0),
        Unit::KiB => (4, 0),
        Unit::Sectors => (5, 0),
        Unit::Choice(words) => (6, u32::try_from(words.len()).unwrap_or(0)),
    };
    let described = FhTunable {
        name: FhText::of(t.name),
        effect: FhText::of(t.effect),
        min: t.min,
        max: t.max,
        preset: config.get(t.name).unwrap_or(0),
        unit,
        words,
    };
    // SAFETY: the caller's promise.
    unsafe { put(tunable, described) };
    FH_OK
}

/// A word that a tunable can take.
///
/// # Safety
/// `scheduler` points to text that ends with a zero, and `word` to where a text fits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fh_tunable_word(
    scheduler: *const c_char,
    index: usize,
    value: u32,
    word: *mut FhText,
) -> Status {
    // SAFETY: the caller's promise.
    let config = match unsafe { config(scheduler) } {
        Ok(config) => config,
        Err(status) => return status,
    };
    let Some(t) = config.list().get(index) else { return FH_E_TUNABLE };
    let Unit::Choice(words) = t.unit else { return FH_E_RANGE };
    let Some(found) = words.get(value as usize) else { return FH_E_RANGE };
    // SAFETY: the caller's promise.
    unsafe { put(word, FhText::of(found)) };
    FH_OK
}

/// A tunable's value.
///
/// # Safety
/// `at` points to an instance, `name` to text that ends with a zero, and `value` to where a number fits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fh_get(at: *mut Instance, name: *const c_char, value: *mut u64) -> Status {
    // SAFETY: the caller's promises.
    unsafe {
        with(at, |it| {
            let name = text(name).ok_or(FH_E_NULL)?;
            put(value, it.config.get(name).ok_or(FH_E_TUNABLE)?);
            Ok(FH_OK)
        })
    }
}

/// Changes a tunable.
///
/// # Safety
/// `at` points to an instance, and `name` to text that ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fh_set(at: *mut Instance, now_ns: u64, name: *const c_char, value: u64) -> Status {
    // SAFETY: the caller's promises.
    unsafe {
        with(at, |it| {
            let name = text(name).ok_or(FH_E_NULL)?;
            let mut config = it.config;
            config.set(name, value).map_err(|error| status_of(&error))?;
            let now = it.advance(now_ns)?;
            match it.healthy(|e| e.reconfigure(now, config)) {
                Some(Ok(true)) => {
                    it.config = config;
                    Ok(FH_OK)
                }
                Some(Ok(false)) if it.config == config => Ok(FH_OK),
                Some(Ok(false)) => Err(FH_E_REFUSED),
                Some(Err(error)) => Err(status_of(&error)),
                None => Err(FH_E_POISONED),
            }
        })
    }
}
