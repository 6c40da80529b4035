//! The kernel's trace ring buffer, in the binary form in which `per_cpu/cpuN/trace_pipe_raw` of a tracefs
//! instance hands it out: pages of events, and the `format` files that say where each field is.
//!
//! ```text
//! events/header_page          ─► Layout ─┐
//! trace_pipe_raw of each CPU  ─► page ───┴─► Page: raw events with their time, and how many were lost before
//! events/block/*/format       ─► Decoder ──► BlockEvent: action, device, sectors, process, I/O priority
//! ```
//!
//! **A page** has a header (the time of its first event; how many bytes of events follow; two flags for lost
//! events), then events. Each event begins with 4 bytes: 5 bits of type or length, and 27 bits of time since
//! the event before, in nanoseconds. Longer gaps are events of their own.
//!
//! ```text
//! type 0       data; its length follows        type 29   padding, or a discarded event
//! type 1..28   data of 4 × type bytes          type 30   more bits of the time since the event before
//!                                              type 31   the time itself, 59 bits
//! ```
//!
//! **Nothing has a fixed place.** Kernels differ in the fields of an event and in their order, so offsets and
//! sizes come from the `format` files of the kernel that recorded. A field that older kernels lack (the I/O
//! priority, before 6.10) is `None`.
//!
//! Pages are of the machine that runs: its byte order, which this module takes for the pages'. It does no
//! input or output: `fairhead_machine::tracefs` opens the files.
//!
//! A damaged page ends with one error that names the byte; the events before it are good.
//
//= linux include/linux/ring_buffer.h enum ring_buffer_type
//= linux Documentation/trace/events.rst "Event formats"

mod block;
mod format;
mod page;

pub use block::{BlockEvent, Comm, Decoder, EVENTS};
pub use format::{EventFormat, Field, Layout};
pub use page::{Lost, Page, RawEvent};
