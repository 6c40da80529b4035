//! Recorded disk requests: traces of many formats, read and written as streams in bounded memory.
//!
//! [`open`] takes a file of any known format, packed or not, looks at how it begins, and gives a [`Trace`]: an iterator of
//! [`Record`]s in order of time. [`read`] does the same for bytes from anywhere.
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
//! What is the same for all formats: the first request is at time 0; times never go backwards (what comes out of order is put in order
//! within a window, what comes later than that is moved, and counted in [`Notes`]); sectors have 512 bytes, and a request in bytes becomes the
//! sectors that it touches; damage ends the trace with one line that says where it is and what would be right, after the requests before it.
//!
//! It does not replay, does not choose among devices, and knows nothing of schedulers: of `fairhead-core` it uses the units.
//! What each format means and what of it is passed over is told in its module under [`mod@format`].

#![forbid(unsafe_code)]

mod assemble;
mod error;
mod event;
mod fields;
pub mod format;
mod lines;
mod reader;
mod record;
mod reorder;
mod summary;
mod unpack;

pub use error::{Place, TraceError};
pub use event::{Action, Event};
pub use format::Format;
pub use reader::{Trace, files_of, open, read, read_as, read_set};
pub use record::{DeviceId, Flags, NAMES_MAX, Names, Notes, Op, Record};
pub use summary::{OpSummary, SizeCount, Summary};

/// The examples of the README, as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
