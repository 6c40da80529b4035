//! vhost-user-blk: the disk's files as disks of virtual machines, through memory that both share.
//!
//! ```text
//!   virtual machine ─socket─► device.rs: a thread ─► session.rs: memory, rings, features
//!                                                         │ commands
//!   guest's rings ◄──── shared memory ────► front/,  on the engine's thread ─► RequestQueue ─► …
//! ```
//!
//! A [`Device`] is a file of the disk with a socket of its own, for one virtual machine at a time. It is a
//! group like an export of NBD, with weight, class, limits and guarantee. The I/O priority of a process in
//! the guest becomes that of its requests, within the group.
//!
//! | file | what it has |
//! |---|---|
//! | `device.rs` | sockets and threads |
//! | `session.rs` | what messages mean |
//! | `front/` | requests: from rings to the queue and back |
//! | `request.rs`, `config_space.rs` | virtio-blk: what is asked for, what a device says of itself |
//! | `split_ring.rs`, `inflight.rs` | virtqueues, and marks that survive the server |
//! | `memory.rs`, `sigbus.rs`, `event_fd.rs` | what a virtual machine shares, and how it cannot hurt with it |
//!
//! A guest and its virtual machine are not trusted. Nothing that they send, share or change later stops the
//! server, or takes more of it than a bounded part of a turn.
//!
//! What it does not do: live migration, packed rings, postcopy.

mod command;
mod config_space;
mod device;
mod event_fd;
mod front;
#[doc(hidden)]
pub mod fuzzing;
mod inflight;
mod memory;
mod request;
mod session;
mod shared;
mod sigbus;
mod split_ring;
mod start;

pub use device::{Device, QUEUES_MAX};
pub(crate) use front::{COOKIE, KIND, VhostFront};
/// The types of requests that are known, by name: what tests go through.
#[doc(hidden)]
pub const REQUESTS: &[(&str, u32)] = request::kind::ALL;

pub(crate) use start::{Opened, Prepared, overlap};
