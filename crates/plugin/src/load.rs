//! Opens a library, and checks it before anything of it is used.
//!
//! The file must be a shared library for this machine, must have the function `fairhead_scheduler`, and that
//! must return a table of this version with a name, the functions that cannot be missing, and tunables that
//! a command line can set. What is wrong is one line that names the file.
//!
//! A library is opened once, and stays for as long as the process: its scheduler is a
//! [`Factory`] that is leaked on purpose.

use crate::abi::{
    FH_KEEPS_CLASS, FH_KEEPS_LATENCY, FH_KEEPS_LEAF_WEIGHT, FH_KEEPS_MIN, FH_KEEPS_WEIGHT, FhSchedulerOps,
    FhSchedulerTunable, SYMBOL, VERSION,
};
use crate::hosted::{Hosted, Library};
use crate::watch::{Function, Watched, register};
use crate::words;
use fairhead_core::Limits;
use fairhead_core::config::{ConfigError, Tunable, Unit};
use fairhead_core::sched::outside::{DynScheduler, Factory, MAX_TUNABLES};
use std::ffi::{CStr, CString, c_char};
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Why a library cannot be used: one line, which names the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadError(String);

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for LoadError {}

/// Whether a name of a scheduler is a library's file: it has a `/`, or ends with `.so`.
#[must_use]
pub fn is_library(name: &str) -> bool {
    name.contains('/') || Path::new(name).extension().is_some_and(|e| e == "so")
}

/// The scheduler of a library: a factory beside the built-in ones.
#[derive(Debug)]
pub struct Plugin {
    library: Library,
    name: &'static str,
    about: &'static str,
    presets: Vec<u64>,
    keeps: Vec<&'static str>,
    identity: u64,
}

impl Factory for Plugin {
    fn name(&self) -> &'static str {
        self.name
    }
    fn about(&self) -> &'static str {
        self.about
    }
    fn tunables(&self) -> &'static [Tunable] {
        self.library.tunables
    }
    fn default_of(&self, index: usize) -> u64 {
        self.presets.get(index).copied().unwrap_or(0)
    }
    fn make(&self, limits: Limits, values: &[u64]) -> Result<Box<dyn DynScheduler>, ConfigError> {
        Ok(Box::new(Hosted::new(&self.library, limits, values)?))
    }
    fn groups(&self) -> &'static [&'static str] {
        // As long as the process: a factory is.
        Vec::leak(self.keeps.clone())
    }
    fn can_serve(&self) -> bool {
        false
    }
    fn identity(&self) -> u64 {
        self.identity
    }
}

/// Opens a library, or returns the one that was opened by this name before.
///
/// # Errors
/// If the file cannot be used.
pub fn open(path: &str) -> Result<&'static Plugin, LoadError> {
    static OPEN: Mutex<Vec<(PathBuf, &'static Plugin)>> = Mutex::new(Vec::new());
    let wrong = |what: &str| LoadError(format!("scheduler library '{path}': {what}"));
    let file = Path::new(path).canonicalize().map_err(|e| {
        let what =
            if e.kind() == std::io::ErrorKind::NotFound { "no such file".into() } else { e.to_string() };
        wrong(&what)
    })?;
    let mut all = OPEN.lock().map_err(|_| wrong("another one could not be opened"))?;
    if let Some((_, plugin)) = all.iter().find(|(known, _)| *known == file) {
        return Ok(plugin);
    }
    if !file.is_file() {
        return Err(wrong("not a file"));
    }
    let bytes = std::fs::read(&file).map_err(|e| wrong(&e.to_string()))?;
    look(&bytes).map_err(|what| wrong(&what))?;
    let number = register(path);
    let watched = Watched::new(number);
    watched.is_here();
    let ops = load(&file, &watched).map_err(|what| wrong(&what))?;
    let plugin = plugin(ops, path, number, digest(&bytes)).map_err(|what| wrong(&what))?;
    let plugin: &'static Plugin = Box::leak(Box::new(plugin));
    all.push((file, plugin));
    Ok(plugin)
}

/// Whether these are a shared library for this machine: the first bytes of the file say so.
//= elf(5): e_ident, e_type, e_machine
fn look(bytes: &[u8]) -> Result<(), String> {
    let number = |at: usize| bytes.get(at..at + 2).map(|b| u16::from_ne_bytes([b[0], b[1]]));
    let (Some(kind), Some(machine)) = (number(16), number(18)) else {
        return Err("not a shared library (ELF), but a short file".to_owned());
    };
    if !bytes.starts_with(b"\x7fELF") {
        return Err("not a shared library (ELF)".to_owned());
    }
    let own = if cfg!(target_pointer_width = "64") { 2 } else { 1 };
    if bytes[4] != own || machine != MACHINE {
        return Err(format!("for another processor (ELF machine {machine}, this one is {MACHINE})"));
    }
    const SHARED: u16 = 3;
    if kind != SHARED {
        return Err("an object file or program, not a shared library; link it with -shared -fPIC".to_owned());
    }
    Ok(())
}

/// The number of this machine in ELF files.
const MACHINE: u16 = if cfg!(target_arch = "x86_64") {
    62
} else if cfg!(target_arch = "aarch64") {
    183
} else if cfg!(target_arch = "riscv64") {
    243
} else if cfg!(target_arch = "powerpc64") {
    21
} else if cfg!(target_arch = "s390x") {
    22
} else {
    0
};

/// FNV-1a.
fn digest(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x0000_0100_0000_01b3))
}

/// What the dynamic linker says went wrong.
fn linker_says() -> String {
    // SAFETY: takes nothing; the text stays until the next call of this thread.
    let said = unsafe { libc::dlerror() };
    if said.is_null() {
        return "the dynamic linker says nothing".to_owned();
    }
    // SAFETY: a text that ends with a zero.
    unsafe { CStr::from_ptr(said) }.to_string_lossy().into_owned()
}

/// Loads a library and calls its function.
fn load(file: &Path, watched: &Watched) -> Result<&'static FhSchedulerOps, String> {
    let path = CString::new(file.as_os_str().as_bytes()).map_err(|_| "a zero in the name".to_owned())?;
    watched.enter(Function::Loading);
    // SAFETY: this runs code of the library: the user has named it for that.
    let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    watched.leave();
    if handle.is_null() {
        return Err(format!("cannot be loaded: {}", linker_says()));
    }
    // SAFETY: a handle that is open, and a name that ends with a zero.
    let symbol = unsafe { libc::dlsym(handle, SYMBOL.as_ptr()) };
    if symbol.is_null() {
        return Err(
            "has no function 'fairhead_scheduler'; FH_SCHEDULER() of fairhead-scheduler.h defines it in C, fairhead_plugin::export! in Rust"
                .to_owned(),
        );
    }
    // SAFETY: the header says that this function is of this type.
    let table: extern "C" fn() -> *const FhSchedulerOps = unsafe { std::mem::transmute(symbol) };
    watched.enter(Function::Table);
    let ops = table();
    watched.leave();
    if ops.is_null() {
        return Err("fairhead_scheduler() returned no table".to_owned());
    }
    // SAFETY: every version begins with these two numbers and the name.
    let (abi, size) = unsafe { ((&raw const (*ops).abi).read(), (&raw const (*ops).size).read()) };
    if abi != VERSION {
        // SAFETY: as above.
        let name = unsafe { text((&raw const (*ops).name).read()) }.unwrap_or("?");
        return Err(format!(
            "'{name}' has version {abi} of the scheduler interface, and this fairhead has version {VERSION}; compile it with the fairhead-scheduler.h of this fairhead"
        ));
    }
    if size as usize != size_of::<FhSchedulerOps>() {
        return Err(format!(
            "its table has {size} bytes instead of {}; set .size to sizeof(struct fh_scheduler_ops)",
            size_of::<FhSchedulerOps>()
        ));
    }
    // SAFETY: a table of this version, which the header asks never to change; the library is never closed.
    Ok(unsafe { &*ops })
}

/// A text of the library's.
///
/// # Safety
/// Null, or a text that ends with a zero and stays.
unsafe fn text(at: *const c_char) -> Option<&'static str> {
    if at.is_null() {
        return None;
    }
    // SAFETY: as the caller says.
    unsafe { CStr::from_ptr(at) }.to_str().ok()
}

/// A list of the library's; empty if it is null.
///
/// # Safety
/// Null, or `count` values that stay.
const unsafe fn list<T>(at: *const T, count: u32) -> &'static [T] {
    if at.is_null() {
        return &[];
    }
    // SAFETY: as the caller says.
    unsafe { std::slice::from_raw_parts(at, count as usize) }
}

/// The factory of a table.
fn plugin(ops: &'static FhSchedulerOps, path: &str, number: u32, identity: u64) -> Result<Plugin, String> {
    // SAFETY: a table of this version, here and below; the header asks for what these need.
    let name = unsafe { text(ops.name) }.ok_or("its table has no name in UTF-8")?;
    // SAFETY: as above.
    let about = unsafe { text(ops.about) }.unwrap_or("");
    for (is_there, function) in [
        (ops.memory.is_some(), "memory"),
        (ops.create.is_some(), "create"),
        (ops.insert.is_some(), "insert"),
        (ops.remove.is_some() || ops.joined.is_some(), "remove' or 'joined"),
        (ops.dispatch.is_some(), "dispatch"),
    ] {
        if !is_there {
            return Err(format!("'{name}' has no function '{function}' in its table, and needs one"));
        }
    }
    if ops.tunable_count as usize > MAX_TUNABLES {
        return Err(format!("'{name}' has more than {MAX_TUNABLES} tunables"));
    }
    // SAFETY: as above.
    let listed = unsafe { list(ops.tunables, ops.tunable_count) };
    let tunables = listed.iter().map(|t| tunable(name, t)).collect::<Result<Vec<_>, _>>()?;
    let keeps = [
        (FH_KEEPS_WEIGHT, "weight"),
        (FH_KEEPS_LEAF_WEIGHT, "leaf_weight"),
        (FH_KEEPS_CLASS, "class"),
        (FH_KEEPS_MIN, "min_iops"),
        (FH_KEEPS_LATENCY, "latency"),
    ];
    Ok(Plugin {
        library: Library { ops, path: path.to_owned(), number, tunables: tunables.leak() },
        name,
        about,
        presets: listed.iter().map(|t| t.preset).collect(),
        keeps: keeps.iter().filter(|(bit, _)| ops.keeps & bit != 0).map(|(_, word)| *word).collect(),
        identity,
    })
}

/// A tunable of a table.
fn tunable(scheduler: &str, t: &FhSchedulerTunable) -> Result<Tunable, String> {
    // SAFETY: a tunable of a table of this version, here and below.
    let name = unsafe { text(t.name) }.ok_or(format!("'{scheduler}' has a tunable without a name"))?;
    let unit = if t.unit == words::UNIT_WORD {
        // SAFETY: as above.
        let words = unsafe { list(t.word, t.words) };
        // SAFETY: as above.
        let words: Option<Vec<&'static str>> = words.iter().map(|w| unsafe { text(*w) }).collect();
        words.map(|w| Unit::Choice(w.leak()))
    } else {
        words::unit(t.unit)
    };
    let unit =
        unit.ok_or(format!("tunable '{name}' of '{scheduler}' has no unit that there is ({})", t.unit))?;
    // SAFETY: as above.
    let effect = unsafe { text(t.effect) }.unwrap_or("");
    Ok(Tunable { name, unit, min: t.min, max: t.max, effect })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_libraries_are_told_from_names_of_schedulers() {
        for name in ["./libmine.so", "libmine.so", "/a/b", "build/mine"] {
            assert!(is_library(name), "{name}");
        }
        for name in ["bfq", "cfq-2.6.10", "deadline+groups", "so", "mine.sox"] {
            assert!(!is_library(name), "{name}");
        }
    }

    #[test]
    fn files_that_are_no_library_are_refused_by_their_first_bytes() {
        assert!(
            look(b"#!/bin/sh\necho a script that is long enough")
                .unwrap_err()
                .contains("not a shared library")
        );
        assert!(look(b"\x7fELF").unwrap_err().contains("short"));
        let mut bytes = std::fs::read("/proc/self/exe").unwrap();
        bytes[16..18].copy_from_slice(&3_u16.to_ne_bytes());
        assert_eq!(look(&bytes), Ok(()));
        bytes[16..18].copy_from_slice(&1_u16.to_ne_bytes());
        assert!(look(&bytes).unwrap_err().contains("-shared"));
        bytes[18..20].copy_from_slice(&243_u16.wrapping_add(1).to_ne_bytes());
        assert!(look(&bytes).unwrap_err().contains("another processor"));
    }
}
