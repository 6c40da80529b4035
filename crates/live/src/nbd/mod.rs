//! NBD: the disk's files as block devices for many tenants, over unix sockets and TCP.
//!
//! ```text
//!   client ─socket─► Session: the protocol, no I/O ─► front: sockets on the engine's ring ─► RequestQueue ─► …
//! ```
//!
//! A [`Server`] is a disk whose front talks NBD. Each [`Export`] is a file of the disk, in a group that has
//! its weight, class, limits and guarantee. Each connection is a queue of the scheduler's within that group,
//! so that a client with several connections wins nothing from other exports.
//!
//! A unix socket is for its owner only, unless exports say which users and groups may open them; then every
//! process can connect, and sees the exports that it may open.
//!
//! Clients may use TLS, or have to (`tls/`), and be known by their certificates.
//!
//! What it does not do: passwords and pre-shared keys. TCP is refused beyond this machine unless TLS is
//! required, or the network is declared trusted.
//!
//! From the protocol's public description.
//= nbd doc/proto.md

mod connection;
mod desk;
mod export;
mod export_keys;
mod export_table;
mod front;
mod image_lock;
mod server;
mod session;
mod tls;
mod wire;

pub use crate::counters::ExportStats;
pub use desk::Exports;
pub use export::Export;
pub use export_keys::EXPORT_KEYS;
pub use server::{Listen, Options, Server};
pub use session::{Access, Command, Errno, Facts, Head, INPUT_MAX, Request, Session, Step, TRANSFER_MAX};
pub use tls::{TlsMode, TlsOptions};

/// The options of a handshake that the server knows, by name: what tests go through.
#[doc(hidden)]
pub const OPTIONS: &[(&str, u32)] = wire::option::ALL;

/// The commands that the server knows, by name: what tests go through.
#[doc(hidden)]
pub const COMMANDS: &[(&str, u16)] = wire::command::ALL;
