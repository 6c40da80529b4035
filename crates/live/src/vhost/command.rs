//! What devices' threads tell the engine's thread.
//!
//! What it does not do: send or obey it (`session.rs`, `front/`).

use super::event_fd::Caller;
use super::inflight::RingMarks;
use super::split_ring::SplitRing;
use std::fs::File;
use std::sync::{Arc, mpsc};

/// What the thread of a device's socket tells the front.
#[derive(Debug)]
pub(super) struct Command {
    pub(super) device: usize,
    pub(super) session: u64,
    pub(super) what: What,
}

/// See [`Command`].
#[derive(Debug)]
pub(super) enum What {
    /// A virtual machine has connected.
    Begin,
    /// A ring may be read.
    Start(usize, Box<Setup>),
    /// Another eventfd for signals.
    Call(usize, Option<Box<Caller>>),
    /// A ring is not read any more. The answer is how far it was read; it comes when all that was read is
    /// answered.
    Stop(usize, mpsc::Sender<u16>),
    /// The connection is gone.
    End,
}

/// What a ring begins with.
#[derive(Debug)]
pub(super) struct Setup {
    pub(super) split: SplitRing,
    pub(super) kick: Arc<File>,
    pub(super) call: Option<Box<Caller>>,
    pub(super) marks: Option<RingMarks>,
    /// Whether writes are stable when they are answered, because the guest does not flush.
    pub(super) is_write_through: bool,
}
