//! The write buffer: memory between the link and the dies.
//!
//! ```text
//!   waiting ──► accepted: crosses the link ──► landed: fills the open unit ──► unit: on its way to a die ──► programmed
//!               room is taken                  done, unless FUA                                              room is back
//! ```
//!
//! A *unit* is what a die programs at once, a page on every plane. A command that finds too little room gets
//! in piece by piece, in whole pages.
//!
//! *Epochs* tell when a flush or FUA write is done. Each of them ends the epoch before it: the open unit goes
//! out as it is, and the command is done when no unit of its epoch, or of an earlier one, is on its way.
//!
//! What this does not do: merge overwrites; hold data back until the drive is idle: a full unit goes out at
//! once.
//= docs/reference/devices.md#22-sata-ssds

use super::timers::NEVER;
use alloc::collections::VecDeque;

/// Data on the link, or a barrier between them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Landing {
    pub(super) at: u64,
    pub(super) sectors: u32,
    /// Whether garbage collection will have to pay for them.
    pub(super) random: bool,
    /// The command that ends an epoch with this.
    pub(super) barrier: Option<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Epoch {
    /// Units on their way.
    units: u32,
    /// The command that waits for them, once the epoch has ended.
    ended_by: Option<u32>,
}

/// Lengths in sectors.
#[derive(Clone, Debug)]
pub(super) struct WriteBuffer {
    capacity: u64,
    page: u64,
    unit: u64,
    /// Accepted and not yet programmed.
    held: u64,
    /// The part of it that has landed in the open unit.
    open: u64,
    /// Writes that are not wholly accepted, and flushes behind them.
    pub(super) waiting: VecDeque<u32>,
    landing: VecDeque<Landing>,
    /// When data land next.
    pub(super) next: u64,
    /// The last one is open.
    epochs: VecDeque<Epoch>,
    /// Number of the first of them.
    first: u32,
}

impl WriteBuffer {
    pub(super) fn new(capacity: u64, page: u64, planes: u64, depth: usize) -> Self {
        let mut epochs = VecDeque::with_capacity(depth + 1);
        epochs.push_back(Epoch { units: 0, ended_by: None });
        let pieces = usize::try_from(capacity / page).unwrap_or(usize::MAX);
        Self {
            capacity,
            page,
            unit: page * planes,
            held: 0,
            open: 0,
            waiting: VecDeque::with_capacity(depth),
            landing: VecDeque::with_capacity(pieces + depth + 1),
            next: NEVER,
            epochs,
            first: 0,
        }
    }

    /// The most units that can be on their way at once: full ones, and one cut short by each barrier.
    pub(super) fn units_max(&self, depth: usize) -> usize {
        usize::try_from(self.capacity / self.unit).unwrap_or(usize::MAX) + depth + 1
    }

    /// How much of a write gets in now.
    pub(super) fn take(&mut self, wanted: u64) -> u64 {
        let room = self.capacity - self.held;
        let taken = if wanted <= room { wanted } else { room / self.page * self.page };
        self.held += taken;
        taken
    }

    /// What was taken crosses the link; later ones land later.
    pub(super) fn cross(&mut self, landing: Landing) {
        debug_assert!(self.landing.back().is_none_or(|l| l.at <= landing.at), "the link is in order");
        if self.landing.is_empty() {
            self.next = landing.at;
        }
        self.landing.push_back(landing);
    }

    pub(super) fn land(&mut self) -> Option<Landing> {
        let landing = self.landing.pop_front()?;
        self.next = self.landing.front().map_or(NEVER, |l| l.at);
        self.open += u64::from(landing.sectors);
        Some(landing)
    }

    /// The next unit to program and the number of its epoch; one that is not full only on `force`.
    #[allow(clippy::cast_possible_truncation, reason = "a unit is 8 pages of 256 KiB at most")]
    pub(super) fn unit(&mut self, force: bool) -> Option<(u32, u32)> {
        let sectors = self.open.min(self.unit);
        if sectors < self.unit && !(force && sectors > 0) {
            return None;
        }
        self.open -= sectors;
        let newest = self.epochs.len() - 1;
        self.epochs[newest].units += 1;
        Some((sectors as u32, self.first.wrapping_add(newest as u32)))
    }

    /// A command ends the epoch.
    pub(super) fn end_epoch(&mut self, slot: u32) {
        if let Some(newest) = self.epochs.back_mut() {
            newest.ended_by = Some(slot);
        }
        self.epochs.push_back(Epoch { units: 0, ended_by: None });
    }

    pub(super) fn programmed(&mut self, sectors: u32, epoch: u32) {
        self.held -= u64::from(sectors);
        self.epochs[epoch.wrapping_sub(self.first) as usize].units -= 1;
    }

    /// The next command whose epoch, with all before it, is on the flash.
    pub(super) fn settled(&mut self) -> Option<u32> {
        let slot = self.epochs.front().filter(|e| e.units == 0)?.ended_by?;
        self.epochs.pop_front();
        self.first = self.first.wrapping_add(1);
        Some(slot)
    }

    /// Whether a command waits for programs.
    pub(super) fn is_pressed(&self) -> bool {
        !self.waiting.is_empty() || self.epochs.len() > 1
    }

    /// How much the lists hold without allocating.
    #[cfg(test)]
    pub(super) fn room_of_lists(&self) -> usize {
        self.waiting.capacity() + self.landing.capacity() + self.epochs.capacity()
    }

    /// What must hold at any time.
    #[cfg(test)]
    pub(super) fn check(&self) {
        let crossing: u64 = self.landing.iter().map(|l| u64::from(l.sectors)).sum();
        assert!(self.held <= self.capacity, "no more data than room");
        assert!(self.open + crossing <= self.held, "what has landed or crosses was accepted");
        assert!(self.open < self.unit, "a full unit goes out at once");
        assert!(self.epochs.back().is_some_and(|e| e.ended_by.is_none()), "the last epoch is open");
        if self.epochs.iter().all(|e| e.units == 0) {
            assert_eq!(self.open + crossing, self.held, "all the rest is on its way");
        }
    }
}
