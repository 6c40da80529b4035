//! What a device's thread and the engine's thread both know of it.
//!
//! What it does not do: change anything of a session that runs; its numbers are read at the next request.

use super::config_space::Facts;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// What the threads share about a device.
#[derive(Debug)]
pub(super) struct Shared {
    size: AtomicU64,
    /// Whether writes wait for a flush.
    is_cached: AtomicBool,
    is_read_only: bool,
    block: u32,
    queues: u16,
    id: [u8; super::request::ID],
}

impl Shared {
    pub(super) fn new(serial: &str, is_read_only: bool, queues: u16, (size, align): (u64, u32)) -> Self {
        let mut id = [0; super::request::ID];
        id.iter_mut().zip(serial.bytes()).for_each(|(to, from)| *to = from);
        Self {
            size: AtomicU64::new(size),
            is_cached: AtomicBool::new(true),
            is_read_only,
            block: align,
            queues,
            id,
        }
    }

    /// Notes another size of the image. Returns the old one.
    pub(super) fn set_size(&self, size: u64) -> u64 {
        self.size.swap(size, Ordering::Relaxed)
    }

    pub(super) fn size(&self) -> u64 {
        self.size.load(Ordering::Relaxed)
    }

    pub(super) const fn is_read_only(&self) -> bool {
        self.is_read_only
    }

    pub(super) const fn queues(&self) -> u16 {
        self.queues
    }

    pub(super) const fn id(&self) -> [u8; super::request::ID] {
        self.id
    }

    pub(super) fn is_cached(&self) -> bool {
        self.is_cached.load(Ordering::Relaxed)
    }

    pub(super) fn set_cached(&self, is_cached: bool) {
        self.is_cached.store(is_cached, Ordering::Relaxed);
    }

    pub(super) fn facts(&self) -> Facts {
        Facts {
            size: self.size(),
            is_read_only: self.is_read_only,
            block: self.block,
            queues: self.queues,
            is_cached: self.is_cached(),
        }
    }
}
