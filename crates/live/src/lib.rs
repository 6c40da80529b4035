//! The schedulers on real disks, in user space.
//!
//! ```text
//!   library ──┐                              ┌───────────────────────────────┐
//!   FUSE    ──┼─► bios ─► RequestQueue ─ios─►│ Store: io_uring, real files   │
//!   NBD     ──┤          Elevator (core)     │ Emulation: a model's real time│
//!   vhost   ──┘                              │                               │
//!                                            └───────────────────────────────┘
//! ```

mod alignment;
mod at_disk;
mod awaiting;
mod bio;
pub mod buffer;
mod causes;
mod client_lanes;
mod clock;
pub mod confine;
pub mod control;
mod counters;
mod data;
mod depth;
mod der;
mod disk;
mod disk_about;
mod emulation;
mod engine;
pub mod error;
mod extents;
mod faults;
mod file_table;
mod flush_shares;
mod flushes;
mod fronts;
mod fuse;
mod groups;
mod guest_data;
mod hands;
mod heap;
mod lane_id;
mod latency;
mod mapped;
pub mod nbd;
#[cfg(test)]
mod neighbours;
mod numbers;
mod opening;
mod peer;
mod pipes;
mod polling;
mod probe;
mod recorder;
pub mod recording;
pub mod request_queue;
mod rights;
mod ring;
mod scheduler_switch;
mod size_limit;
mod socket;
#[cfg(test)]
mod stage;
mod store;
mod transfer;
mod transport;
mod turns;
pub mod vhost;
mod vsock;
mod waits;
mod warning;

pub use bio::{Answer, Bio, BioId, ClientId, Errno, FileId, Flush, Op, Origin};
pub use buffer::{Buffer, Pool};
pub use disk::{Client, Disk, DiskOptions, Pending};
pub use emulation::Lateness;
pub use error::{Error, ErrorKind};
pub use faults::{Fault, FaultOp, Faults, Harm};
pub use fuse::{Mount, Unmount, Way};
#[doc(hidden)]
pub use fuse::{OPCODES, serve_bytes};
pub use heap::keep_heap_small;
pub use probe::Probe;
pub use request_queue::{IoId, Piece, RequestQueue, Settings, Start};
pub use size_limit::raise_size_limit;
pub use transfer::{Run, Then, Transfer};
pub use transport::Transport;
pub use waits::{Waits, Watch};
