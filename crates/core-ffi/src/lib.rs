//! The C ABI of Fairhead's schedulers: what storage engines, plug-ins and kernels link.
//!
//! `include/fairhead.h` is the interface, written by hand and documented there; this crate implements it and
//! is the only unsafe Rust around core. A call goes through these files:
//!
//! ```text
//!   fairhead.h      C's view: functions, types, units, errors
//!      │
//!   calls control tunables observe create     check arguments, one function for each of the header
//!      │
//!   instance        who may enter; catches panics; which of the two answers
//!      ├── Elevator<AnyScheduler>             healthy: the scheduler decides
//!      └── ledger                             poisoned: first in, first out
//!   memory, need    where memory comes from, and how much
//!   types, texts    C's structs, codes and words
//! ```
//!
//! # Memory
//!
//! An instance is one block: the head, and behind it everything that core allocates. How much is known before
//! (`need.rs`, a bound for each scheduler that is linear in the limits), so creation in the caller's memory
//! and by the caller's allocator are the same: one block, which is there or is not. While an instance is made
//! this crate's global allocator gives core parts of the block, one behind the other (`memory.rs`); at any
//! other time it passes calls on to the system, or refuses them in a build without std. After creation core
//! does not allocate (but in `fh_check`, which is for tests), and never frees: `fh_destroy` gives the block
//! back as a whole.
//!
//! # Panics
//!
//! A bug of core must not end the program of a caller, nor lose its requests. Each call is caught; after a
//! panic the instance is *poisoned*: the elevator is not used again, and the ledger, which is kept beside it
//! from the caller's calls and the answers alone, hands out what waits in order of arrival. How this goes
//! without unwinding, for a kernel: `panics.rs`.
//!
//! # Bars, and what holds them
//!
//! | bar | held by |
//! |---|---|
//! | no allocation after creation | `tests/c/no_heap.c`: a heap that ends the program |
//! | no float, no 128-bit division | `cargo xtask ffi`: symbols of a build without floats in hardware |
//! | no stack frame above 1 KiB but in creation | `cargo xtask ffi`: prologues of the disassembly |
//! | misuse is an error code | `tests/c/misuse.c`, under the address and undefined behaviour sanitizers |
//! | a panic without std comes to the hook | `cargo xtask ffi`: `tests/c/no_std.c` |
//! | the same decisions as in Rust | `tests/same_decisions.rs`: drawn storms of every preset |
//! | nothing lost or doubled after a panic | `src/tests/poison.rs`: a panic before or after each kind of call |
//!
//! # What it does not do
//!
//! It takes no lock: the owner serialises calls, as with the elevator (calls that overlap are refused where
//! they are seen). It does no I/O and reads no clock.
#![cfg_attr(not(feature = "std"), no_std)]

extern crate alloc;

pub mod calls;
pub mod control;
pub mod create;
mod instance;
mod ledger;
mod memory;
mod need;
pub mod observe;
mod panics;
#[cfg(test)]
mod tests;
mod texts;
pub mod tunables;
pub mod types;

pub use instance::Instance;

/// The version of the ABI: what `FH_ABI_VERSION` in the header says. It grows when a caller that was compiled
/// against the header before would not work any longer.
pub const ABI_VERSION: u32 = 1;

/// Returns the version of the ABI that the library has.
#[unsafe(no_mangle)]
pub extern "C" fn fh_abi_version() -> u32 {
    ABI_VERSION
}

/// Returns the version of the library, as text that ends with a zero.
#[unsafe(no_mangle)]
pub extern "C" fn fh_version() -> *const core::ffi::c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}
