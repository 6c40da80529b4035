//! Which change is active in this process. This crate exists in the copy of the repository only.
//!
//! `FAIRHEAD_MUTANT` is the number of the active change. `FAIRHEAD_MUTANT_RECORD` is a file that gets one
//! line, number and name of the thread, for each change that a thread reaches; no change is active then.
//!
//! Both are read before `main`: reading a variable allocates, and tests count allocations. For the same
//! reason a line is made on the stack.
#![allow(internal_features, reason = "a const fn has to read the number, which the stable language forbids")]
#![feature(core_intrinsics, const_eval_select)]

use std::cell::Cell;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

const NONE: u32 = u32::MAX;
const RECORDING: u32 = u32::MAX - 1;

static ACTIVE: AtomicU32 = AtomicU32::new(NONE);
static RECORD: OnceLock<File> = OnceLock::new();

thread_local! {
    /// One bit for each change that this thread has reached.
    static REACHED: [Cell<u64>; 64] = const { [const { Cell::new(0) }; 64] };
}

/// Whether change `n` is active. The compiler, when it evaluates a constant, has none.
#[inline(always)]
pub const fn on(n: u32) -> bool {
    core::intrinsics::const_eval_select((n,), in_a_constant, in_the_program)
}

const fn in_a_constant(_: u32) -> bool {
    false
}

#[inline(always)]
fn in_the_program(n: u32) -> bool {
    let active = ACTIVE.load(Relaxed);
    if active == RECORDING {
        reached(n);
    }
    active == n
}

#[cold]
fn reached(n: u32) {
    let is_new = REACHED.try_with(|words| {
        let (word, bit) = (&words[n as usize / 64], 1 << (n % 64));
        let before = word.replace(word.get() | bit);
        before & bit == 0
    });
    if is_new != Ok(true) {
        return;
    }
    let mut line = [0; 1024];
    let mut rest = &mut line[..];
    let thread = std::thread::current();
    let fits = writeln!(rest, "{n}\t{}", thread.name().unwrap_or("")).is_ok();
    let length = 1024 - rest.len();
    if let (true, Some(mut file)) = (fits, RECORD.get()) {
        file.write_all(&line[..length]).expect("the record of reached changes is written");
    }
}

extern "C" fn at_start() {
    if let Some(path) = std::env::var_os("FAIRHEAD_MUTANT_RECORD") {
        let file = OpenOptions::new().append(true).create(true).open(path);
        RECORD.get_or_init(|| file.expect("the record of reached changes is opened"));
        ACTIVE.store(RECORDING, Relaxed);
    } else if let Ok(n) = std::env::var("FAIRHEAD_MUTANT") {
        ACTIVE.store(n.parse().expect("FAIRHEAD_MUTANT is a number"), Relaxed);
    }
}

// SAFETY: an entry of this section is a function without arguments that returns; it is called once, in one
// thread, before `main`, when the C library is ready.
#[unsafe(link_section = ".init_array")]
#[used]
static AT_START: extern "C" fn() = at_start;
