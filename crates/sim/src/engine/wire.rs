//! The way from a queue to its device and back: the device, what the way takes, and the lock at its start.
//!
//! ```text
//!   queue ─► one lock: a request each `lock` ─► `path`: requests travel side by side ─► device
//! ```
//!
//! What this does not do: delay completions. The way back is part of the interrupt.

use crate::metrics::Result;
use fairhead_core::{Duration, Instant, Tag};
use fairhead_device::{Command, Device, DeviceParams, Facts};
use std::collections::VecDeque;

/// The tag of the one flush that may be in flight.
pub(super) const FLUSH_TAG: Tag = Tag(u16::MAX);

/// A device behind a way that takes time.
#[derive(Debug)]
pub(super) struct Wire {
    pub(super) device: Device,
    /// What the way takes, and commands that are on it: when they arrive.
    path: Duration,
    on_the_way: VecDeque<(Instant, Command)>,
    /// How long the scheduler's lock is held for each request, and until when it is held.
    pub(super) lock: Duration,
    locked_until: Instant,
}

impl Wire {
    pub(super) fn new(disk: &DeviceParams, path: Duration) -> Result<Self> {
        let (on_the_way, locked_until) = (VecDeque::new(), Instant::EPOCH);
        Ok(Self { device: Device::new(disk)?, path, on_the_way, lock: Duration::ZERO, locked_until })
    }

    pub(super) fn facts(&self) -> Facts {
        self.device.facts()
    }

    /// The time at which the lock is free, if it is held now: a dispatch would have to spin for it.
    #[inline]
    pub(super) fn locked_until(&self, now: Instant) -> Option<Instant> {
        (now < self.locked_until).then_some(self.locked_until)
    }

    /// Sends a request that the scheduler gave under its lock. Returns whether the device has it now.
    #[inline]
    pub(super) fn send_locked(&mut self, now: Instant, command: Command) -> bool {
        self.locked_until = now + self.lock;
        self.send(now, command)
    }

    /// Sends a command to the device, which has it when it has been on its way for long enough. Returns
    /// whether that is now.
    #[inline]
    pub(super) fn send(&mut self, now: Instant, command: Command) -> bool {
        if self.path.is_zero() {
            self.device.submit(now, command);
        } else {
            self.on_the_way.push_back((now + self.path, command));
        }
        self.path.is_zero()
    }

    /// When the device wants to be polled, or the next command arrives at it.
    #[inline]
    pub(super) fn due(&self) -> Option<Instant> {
        let due = self.device.next_event();
        match self.on_the_way.front() {
            None => due,
            Some(&(arrival, _)) => Some(due.map_or(arrival, |due| due.min(arrival))),
        }
    }

    /// Gives the device the next command that has arrived by now. Returns whether there was one.
    #[inline]
    pub(super) fn arrive(&mut self, now: Instant) -> bool {
        let Some(&(_, command)) = self.on_the_way.front().filter(|a| a.0 <= now) else { return false };
        self.on_the_way.pop_front();
        self.device.submit(now, command);
        true
    }
}
