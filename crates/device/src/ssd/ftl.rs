//! What the flash translation layer costs, without a page map.
//!
//! Pages are appended round-robin over the dies. A drive that is overwritten at random has to move `WA - 1` pages for each
//! page written, and to erase a block for each block's worth; for uniform random overwrites on flash with a spare part
//! `s` (over-provisioning and what the host has discarded, relative to the data),
//!
//! ```text
//!     WA = (1 + s) / (2 s),  1 to 10           7 % spare: 7.6          28 %: 2.3          sequential: 1
//! ```
//!
//! The fractions are accumulated for each die, and whole operations come due with its next program: 7.6 becomes six moves
//! after some programs and seven after others. A write is sequential if it goes on where one of the last 16 streams
//! ended, or is as large as a block.
//!
//! **SLC cache.** Programs are fast until its room is used up, then native. It is emptied while the host has been idle for
//! `slc_idle`; once full also in the gaps between the programs, and it is used again when half of it is free.
//!
//! What this does not do: know which pages are valid. The estimate holds for a drive in a steady state; it says nothing on
//! when garbage collection begins on a fresh one, or on hot and cold data.
//= Fairhead device notes 2.2

use crate::params::SsdParams;

/// Streams of sequential writes that are told apart.
const STREAMS: usize = 16;
/// Parts of the device in which discarded sectors are counted.
const PARTS: u64 = 4096;

/// What goes with a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Charge {
    pub(super) die: u32,
    pub(super) slc: bool,
    /// Units to move on that die.
    pub(super) moves: u32,
    /// Blocks to erase on it.
    pub(super) erases: u32,
}

/// What a die has to do for what was programmed on it.
#[derive(Clone, Copy, Debug, Default)]
struct Debt {
    /// Thousandths of sectors to move.
    moves: u64,
    /// Sectors to erase.
    erases: u64,
}

/// The state of the flash translation layer. Lengths in sectors.
#[derive(Clone, Debug)]
pub(super) struct Ftl {
    dies: u32,
    next_die: u32,
    unit: u64,
    block: u64,
    // Write amplification.
    capacity: u64,
    spare_permille: u64,
    fixed: Option<u64>,
    /// Ends of the last streams, least recently used first.
    streams: [u64; STREAMS],
    /// Thousandths of sectors to move for what has come in since the last program.
    owed: u64,
    /// For each die. A common account would come due on the same dies again and again, as often as its period and the
    /// number of dies have a divisor in common.
    debts: Vec<Debt>,
    /// Discarded and not written since, in each part of the device.
    discarded: Vec<u64>,
    discarded_sum: u64,
    // The SLC cache, in units.
    slc_size: u64,
    pub(super) slc_used: u64,
    /// It was full, and is not half empty yet.
    pub(super) slc_full: bool,
}

impl Ftl {
    pub(super) fn new(p: &SsdParams) -> Self {
        let unit = u64::from(p.page.0) * u64::from(p.planes);
        Self {
            dies: p.channels * p.dies_per_channel,
            next_die: 0,
            unit,
            block: unit * u64::from(p.pages_per_block),
            capacity: p.capacity,
            spare_permille: u64::from(p.spare_permille),
            fixed: p.write_amplification_permille.map(u64::from),
            streams: [0; STREAMS],
            owed: 0,
            debts: vec![Debt::default(); (p.channels * p.dies_per_channel) as usize],
            discarded: vec![0; usize::try_from(PARTS).unwrap_or(0)],
            discarded_sum: 0,
            slc_size: p.slc / 512 / unit,
            slc_used: 0,
            slc_full: false,
        }
    }

    /// Whether garbage collection pays for a write of `[start, end)`.
    pub(super) fn is_random(&mut self, start: u64, end: u64) -> bool {
        let known = self.streams.iter().position(|&e| e == start);
        self.streams[known.unwrap_or(0)..].rotate_left(1);
        self.streams[STREAMS - 1] = end;
        known.is_none() && end - start < self.block
    }

    /// Thousandths of pages programmed for each page of random overwrites.
    fn amplification(&self) -> u64 {
        if let Some(fixed) = self.fixed {
            return fixed;
        }
        let data = self.capacity - self.discarded_sum;
        let spare = self.capacity * self.spare_permille / 1000 + self.discarded_sum;
        // Both are below 2^41, so thousands of them fit.
        ((data + spare) * 1000 / (2 * spare).max(1)).clamp(1000, 10_000)
    }

    /// Sectors have come in.
    pub(super) fn wrote(&mut self, sectors: u64, random: bool) {
        if random {
            self.owed += sectors * (self.amplification() - 1000);
        }
    }

    /// Where the next unit is programmed, and what comes with it.
    #[allow(clippy::cast_possible_truncation, reason = "a few operations each")]
    pub(super) fn program(&mut self) -> Charge {
        let die = self.next_die;
        self.next_die = (die + 1) % self.dies;
        if self.slc_used < self.slc_size && !self.slc_full {
            self.slc_used += 1;
            self.slc_full = self.slc_used == self.slc_size;
            // Collected when it leaves the cache, in a migration's own programs.
            self.owed = 0;
            return Charge { die, slc: true, moves: 0, erases: 0 };
        }
        let debt = &mut self.debts[die as usize];
        debt.moves += std::mem::take(&mut self.owed);
        let moves = debt.moves / (1000 * self.unit);
        debt.moves -= moves * 1000 * self.unit;
        debt.erases += (1 + moves) * self.unit;
        let erases = debt.erases / self.block;
        debt.erases -= erases * self.block;
        Charge { die, slc: false, moves: moves as u32, erases: erases as u32 }
    }

    pub(super) fn has_slc(&self) -> bool {
        self.slc_size > 0
    }

    /// A unit has left the SLC cache.
    pub(super) fn migrated(&mut self) {
        self.slc_used -= 1;
        self.slc_full &= self.slc_used > self.slc_size / 2;
    }

    /// The host does not need these sectors.
    pub(super) fn discard(&mut self, start: u64, end: u64) {
        self.each_part(start, end, |now, size, sectors| size.min(now + sectors));
    }

    /// Sectors that were discarded may have been written again.
    pub(super) fn overwrite(&mut self, start: u64, end: u64) {
        if self.discarded_sum > 0 {
            self.each_part(start, end, |now, _, sectors| now.saturating_sub(sectors));
        }
    }

    /// Changes the count of each part that `[start, end)` touches: from what it is, its size, and the sectors inside.
    fn each_part(&mut self, start: u64, end: u64, change: impl Fn(u64, u64, u64) -> u64) {
        let size = self.capacity.div_ceil(PARTS);
        let mut at = start;
        while at < end {
            let part = at / size;
            let stop = end.min((part + 1) * size);
            let whole = size.min(self.capacity - part * size);
            let count = &mut self.discarded[usize::try_from(part).unwrap_or(usize::MAX)];
            let new = change(*count, whole, stop - at);
            self.discarded_sum = self.discarded_sum - *count + new;
            *count = new;
            at = stop;
        }
    }
}
