//! Schedulers as shared libraries: the C ABI, what exports a Rust scheduler through it, what loads one, and
//! the process that a loaded one runs in.
//!
//! ```text
//!   include/fairhead-scheduler.h   the interface, for people and C
//!       │
//!   abi, words                     the same in Rust; core's types to and from it
//!       ├── export, prelude        in a library: the table of a Rust scheduler; the names that it needs
//!       └── load ─► hosted         in the program: opens and checks a library; drives an instance
//!                     │
//!                   watch          what a library is doing, in memory that two processes share
//!                     │
//!                 supervise        the parent of the process that loads libraries; says how that one ended
//! ```
//!
//! # A library cannot be trusted
//!
//! It may crash, loop, leave the process, or answer nonsense. So a program that loads one does it in a child
//! process of itself ([`supervise`]). The module `hosted` writes into a page that both share which function
//! of which library it enters, with the last request, and checks each answer. The parent sees a death by a
//! signal, an exit in the middle of a call, or a call that lasts too long, and puts it into one line.
//!
//! # A scheduler in Rust
//!
//! A Rust scheduler wants the elevator's table of requests ([`Cx`](fairhead_core::Cx)), which does not pass
//! through C. An exported one therefore has an elevator of its own in the library, which merges nothing and
//! decides nothing: it repeats what the program's elevator says, so both tables are the same, and each answer
//! is what it would have been inside the program. [`export!`] is all that an author writes.
//!
//! # What it does not do
//!
//! It cannot keep a library from writing files or reading memory: a child process is not a sandbox, so load
//! what you would run. A scheduler from a library does not see the groups' statistics and leaves no notes in
//! the trace, and it is not asked whose turn it is among groups: `bfq` and `cfq` as libraries would lose
//! that. Limits of groups are the elevator's, and are not passed on.
//!
//! This crate has the only `unsafe` Rust of the lab. Rules for it: `fairhead-scheduler.h`, at its top.

pub mod abi;
pub mod export;
mod hosted;
mod load;
pub mod prelude;
mod supervise;
mod watch;
mod words;

pub use load::{LoadError, Plugin, is_library, open};
pub use supervise::{Verdict, supervise};
pub use watch::{is_watched, on_fault, watch};

/// The text of `fairhead-scheduler.h`.
pub const HEADER: &str = include_str!("../include/fairhead-scheduler.h");

/// The examples of the README, as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
