//! Flushes on their way to the disk: which flush of the device answers which request of a program.
//!
//! A flush names no sectors, so that order alone says what belongs together. The kernel keeps the flushes
//! that programs want (`FWS`) in a list, and answers all that are in it by one flush of the device (`FF`):
//!
//! ```text
//! Q FWS   Q FWS   D FF     Q FWS   C FF     D FF   C FF
//! └ a     └ b     └ a, b   └ c     └ a, b   └ c    └ c
//! ```
//!
//! Most kernels complete the `FF` at sector 18446744073709551615 (-1: no sector), some at sector 0. The flush
//! that precedes or follows a write (`FWFS`) is an `FF`, too; it answers nothing but what is in the list.
//!
//! **Limits.** A disk with several hardware queues has a list for each; here it is one, so that a flush may
//! get the times of its neighbour. A device that reports no issue (dm, md) completes its oldest flush. A
//! flush whose completion is missing for [`LONGEST`] is given up, so that later completions are not taken for
//! its own.

use fairhead_core::Duration;
use std::collections::{BTreeMap, VecDeque};

/// The kernel's time limit of a request, 30 s, after which a completion was lost by the recording.
const LONGEST: Duration = Duration::from_ms(30_000);
/// The most flushes of one device that are in flight. One more ends the wait for the first.
const IN_FLIGHT_MAX: usize = 1024;

/// The flushes of all devices. Records are named by their numbers, which rise.
#[derive(Default)]
pub(crate) struct Flushes {
    devices: BTreeMap<u32, OfDevice>,
}

/// The flushes of one device.
#[derive(Default)]
struct OfDevice {
    /// The records that no flush of the device answers yet, oldest first.
    waiting: VecDeque<u64>,
    /// The flushes that the device works on, oldest first.
    in_flight: VecDeque<InFlight>,
    /// Whether the recording has issues of flushes of this device.
    has_issues: bool,
}

/// A flush that the device works on.
struct InFlight {
    issued: Duration,
    /// The records that it answers.
    answers: Vec<u64>,
}

impl Flushes {
    /// Adds a record that waits for a flush.
    pub(crate) fn add(&mut self, device: u32, record: u64) {
        self.devices.entry(device).or_default().waiting.push_back(record);
    }

    /// Whether a record of the device waits for a flush.
    pub(crate) fn waits(&self, device: u32) -> bool {
        self.devices.get(&device).is_some_and(|d| !d.waiting.is_empty())
    }

    /// The device gets a flush. Returns the records that it answers.
    pub(crate) fn issue(&mut self, device: u32, at: Duration) -> Vec<u64> {
        let of = self.devices.entry(device).or_default();
        of.has_issues = true;
        if of.in_flight.len() == IN_FLIGHT_MAX {
            of.in_flight.pop_front();
        }
        let answers: Vec<u64> = of.waiting.drain(..).collect();
        of.in_flight.push_back(InFlight { issued: at, answers: answers.clone() });
        answers
    }

    /// A flush of the device completes. Returns the records that it answers.
    pub(crate) fn complete(&mut self, device: u32, at: Duration) -> Vec<u64> {
        let Some(of) = self.devices.get_mut(&device) else { return Vec::new() };
        while of.in_flight.front().is_some_and(|f| at.saturating_sub(f.issued) > LONGEST) {
            of.in_flight.pop_front();
        }
        match of.in_flight.pop_front() {
            Some(done) => done.answers,
            None if of.has_issues => Vec::new(),
            None => of.waiting.pop_front().into_iter().collect(),
        }
    }

    /// The device gives its last flush back, which is issued again.
    pub(crate) fn requeue(&mut self, device: u32) {
        let Some(of) = self.devices.get_mut(&device) else { return };
        for record in of.in_flight.pop_back().map_or(Vec::new(), |f| f.answers).into_iter().rev() {
            of.waiting.push_front(record);
        }
    }

    /// Forgets a record that waits no longer. It is the oldest of all records.
    pub(crate) fn forget(&mut self, device: u32, record: u64) {
        let Some(of) = self.devices.get_mut(&device) else { return };
        if of.waiting.front() == Some(&record) {
            of.waiting.pop_front();
        }
        for flush in &mut of.in_flight {
            flush.answers.retain(|r| *r != record);
        }
    }
}
