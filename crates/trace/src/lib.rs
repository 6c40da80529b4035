//! Recorded disk requests: traces of many formats, read and written as streams in bounded memory.
//!
//! [`open`] takes a file of any known format, compressed or not, detects the format from its first bytes, and
//! returns an iterator over [`Record`]s in order of time, the [`Trace`]. [`read`] does it for bytes from any
//! source; [`Kept`] is for bytes that can be had once only, as those of a pipe, and are needed more often.
//!
//! ```
//! let csv = "128166372003061629,src1,0,Write,8192,4096,153\n128166372003061639,src1,0,Read,0,512,60\n";
//! let mut trace = fairhead_trace::read("src1.csv", csv.as_bytes()).unwrap();
//! assert_eq!(trace.format(), fairhead_trace::Format::Msr);
//! let first = trace.next().unwrap().unwrap();
//! assert_eq!((first.at.as_ns(), first.sector.0, first.sectors), (0, 16, 8));
//! assert_eq!(trace.names().device(first.device), "src1.0");
//! assert_eq!(trace.next().unwrap().unwrap().at.as_ns(), 1000);
//! assert!(trace.next().is_none());
//! ```
//!
//! ```text
//! bytes ─► unpack ─► format ─┬─ requests ────────────────────► in order of time ─► Trace
//!                            └─ events ─► in order of time ─► assembled ────────┘
//! ```
//!
//! These rules hold for all formats:
//!
//! - The first request is at time 0, and times never go backwards. Requests that are out of order are sorted
//!   within a window; those that come later than that get the time of the one before, and are counted in
//!   [`Notes`].
//! - Sectors have 512 bytes. A request in bytes becomes all sectors that it touches.
//! - Damage ends the trace, after the requests before it, with a one-line error: its place, and what would be
//!   right.
//!
//! The crate does not replay traces, does not choose among devices, and knows nothing of schedulers: of
//! `fairhead-core` it uses the units. The modules under [`mod@format`] explain the fields of each format, and
//! which of them are ignored.

#![forbid(unsafe_code)]

mod assemble;
mod error;
mod event;
mod events;
mod fields;
mod flushes;
pub mod format;
mod kept;
mod lines;
mod pages;
mod reader;
mod record;
mod reorder;
pub mod ring;
mod stable;
mod summary;
mod tasks;
mod unpack;
mod writer;

pub use error::{Place, TraceError};
pub use event::{Action, Event};
pub use format::Format;
pub use kept::Kept;
pub use reader::{Trace, files_of, open, read, read_as, read_set};
pub use record::{DeviceId, Flags, NAMES_MAX, Names, Notes, Op, Record};
pub use summary::{OpSummary, SizeCount, Summary};
pub use tasks::{TaskSummary, Tasks};
pub use writer::{Target, Writer, check};

/// The examples of the README, as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
