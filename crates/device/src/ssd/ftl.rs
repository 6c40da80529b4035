//! What the flash translation layer costs, without a page map.
//!
//! Pages are appended round-robin over the dies. A drive that is overwritten at random has to move `WA - 1`
//! pages for each page written, and to erase a block for each block's worth; for uniform random overwrites on
//! flash with a spare part `s` (over-provisioning and what the host has discarded, relative to the data),
//!
//! ```text
//!     WA = (1 + s) / (2 s),  1 to 10           7 % spare: 7.6          28 %: 2.3          sequential: 1
//! ```
//!
//! The fractions are accumulated for each die, and whole operations come due with its next program: 7.6
//! becomes six moves after some programs and seven after others. A write is sequential if it begins where one
//! of the last 16 streams ended, or is as large as a block.
//!
//! **SLC cache.** Programs are fast until its room is used up, then native. It is emptied while the host has
//! been idle for `slc_idle`; once full also in the gaps between the programs, and it is used again when half
//! of it is free. Its room is flash of its own (`slc`) and, where the drive holds no data, more of it
//! (`slc_dynamic`). A unit in a cell of one bit takes the room of `b` native ones, and one of these was its
//! own in any case:
//!
//! ```text
//!     room = slc + min(slc_dynamic, free / (b - 1))       three bits, drive of 900 GB, no limit: the first 300 GB
//! ```
//!
//! As the drive fills up, the room shrinks. What is beyond it must leave at once: such units are *folded*,
//! which is moved to native cells, on the dies of the programs that come in. So the speed of a drive that is
//! written through falls twice:
//!
//! ```text
//!   GB/s  ████████                            cost of a unit:   t_prog_slc
//!                 ██████                                        t_prog
//!                       ███████████                             t_prog + (t_read + t_prog) / (b - 1)
//!         ─ slc_dynamic ┴ free / (b - 1) = slc_dynamic
//! ```
//!
//! With `slc_full = "fold"` all data pass through the cache, and a full one folds a unit for each that comes
//! in: `t_prog_slc + t_read + t_prog`. The blocks of the cache are erased then, too, `b` times as often as
//! native ones.
//!
//! With `slc_full = "drain"` a full cache is folded away beside the native programs, `1 / (b - 1)` of a unit
//! with each as if there were no room, and is used again once it is empty: a drive that is written through
//! gets fast again.
//!
//! **Hot parts.** The formula is for a drive that is overwritten everywhere. What is never overwritten ends
//! up in blocks of its own, in which nothing is to be gained, so that all of the spare flash serves the rest.
//! With `hot_parts` the data in the formula are those of the parts that random overwrites have touched since
//! the spare flash was last written twice over:
//!
//! ```text
//!     1 TB, 90 GB spare, overwritten all over:   (1000 + 90) / 180 = 6.06        100 GB of it: 1.06        4 GB of it: 1
//! ```
//!
//! What this does not do: know which pages are valid. The estimate holds for a drive in the steady state of
//! its load: while parts of it were never written these count as spare, but not when the first block comes
//! free, nor does it tell how the blocks sort themselves out when the load changes.
//= docs/reference/devices.md#22-sata-ssds
//= docs/reference/devices.md#slc-cache

use crate::params::{SlcFull, SsdParams};
use alloc::vec;
use alloc::vec::Vec;

/// The number of sequential streams of writes that are recognised.
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
    /// Units to fold on it: out of the SLC cache into native cells.
    pub(super) folds: u32,
    /// Blocks to erase on it.
    pub(super) erases: u32,
}

/// Units that leave the SLC cache with a program while far too many are in it.
const FOLDS: u64 = 4;

/// What a die has to do for what was programmed on it.
#[derive(Clone, Copy, Debug, Default)]
struct Debt {
    /// Thousandths of sectors to move.
    moves: u64,
    /// Sectors to erase.
    erases: u64,
    /// Native programs since the last fold.
    folds: u64,
}

/// Parts that random overwrites have touched of late: now, and in the time before.
#[derive(Clone, Debug)]
struct Hot {
    now: [u64; WORDS],
    before: [u64; WORDS],
    /// In either.
    parts: u64,
    /// Sectors overwritten at random in the present time.
    written: u64,
}

/// A bit for each part.
#[allow(clippy::cast_possible_truncation, reason = "64")]
const WORDS: usize = PARTS as usize / 64;

impl Default for Hot {
    fn default() -> Self {
        Self { now: [0; WORDS], before: [0; WORDS], parts: 0, written: 0 }
    }
}

impl Hot {
    /// A random overwrite of `sectors` sectors in the parts `first` to `last`. A period ends when the spare
    /// flash was written once over.
    #[allow(clippy::cast_possible_truncation, reason = "there are 4096 parts")]
    fn touch(&mut self, first: u64, last: u64, sectors: u64, spare: u64) {
        for part in first..=last {
            let (word, bit) = (part as usize / 64, 1 << (part % 64));
            self.parts += u64::from((self.now[word] | self.before[word]) & bit == 0);
            self.now[word] |= bit;
        }
        self.written += sectors;
        if self.written >= spare {
            (self.before, self.now, self.written) = (self.now, [0; WORDS], 0);
            self.parts = self.before.iter().map(|w| u64::from(w.count_ones())).sum();
        }
    }
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
    /// For each die. A common account would come due on the same dies again and again, as often as its period
    /// and the number of dies have a divisor in common.
    debts: Vec<Debt>,
    /// Parts that are overwritten at random; none: all count.
    hot: Option<Hot>,
    /// Discarded and not written since, in each part of the device.
    discarded: Vec<u64>,
    discarded_sum: u64,
    // The SLC cache, in units.
    slc_size: u64,
    slc_dynamic: u64,
    pub(super) slc_used: u64,
    /// Bits of a native cell.
    bits: u64,
    /// A full cache folds.
    fold: bool,
    /// A full cache is emptied before it is used again.
    drain: bool,
    /// Nothing has been programmed yet, so that a cache may be full at first and not know.
    untouched: bool,
    /// Thousandths of sectors to move for what is in the cache of such a drive.
    owed_cached: u64,
    /// It was full, and is not half empty yet.
    pub(super) slc_full: bool,
}

impl Ftl {
    pub(super) fn new(p: &SsdParams) -> Self {
        let unit = u64::from(p.page.0) * u64::from(p.planes);
        let mut ftl = Self {
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
            hot: p.hot_parts.then(Hot::default),
            discarded: vec![0; usize::try_from(PARTS).unwrap_or(0)],
            discarded_sum: 0,
            slc_size: p.slc / 512 / unit,
            slc_dynamic: p.slc_dynamic / 512 / unit,
            slc_used: 0,
            bits: u64::from(p.cell_bits),
            fold: p.slc_full == SlcFull::Fold,
            drain: p.slc_full == SlcFull::Drain,
            untouched: true,
            owed_cached: 0,
            slc_full: false,
        };
        // Below 2^41 sectors, so a thousand of them fit.
        ftl.discard(p.capacity * u64::from(p.fill_permille) / 1000, p.capacity);
        let data = (ftl.capacity - ftl.discarded_sum) / unit;
        ftl.slc_used = (ftl.slc_room() * u64::from(p.slc_fill_permille) / 1000).min(data);
        ftl
    }

    /// Units that the SLC cache has room for, those in it included.
    fn slc_room(&self) -> u64 {
        self.slc_size + self.slc_dynamic.min(self.discarded_sum / (self.bits - 1) / self.unit)
    }

    /// Sectors of flash without data that the SLC cache takes.
    fn slc_borrowed(&self) -> u64 {
        self.slc_used.saturating_sub(self.slc_size) * (self.bits - 1) * self.unit
    }

    /// Whether garbage collection pays for a write of `[start, end)`.
    pub(super) fn is_random(&mut self, start: u64, end: u64) -> bool {
        let known = self.streams.iter().position(|&e| e == start);
        self.streams[known.unwrap_or(0)..].rotate_left(1);
        self.streams[STREAMS - 1] = end;
        let is_random = known.is_none() && end - start < self.block;
        if is_random && let Some(hot) = &mut self.hot {
            let (size, spare) = (self.capacity.div_ceil(PARTS), self.capacity * self.spare_permille / 1000);
            hot.touch(start / size, (end - 1) / size, end - start, spare);
        }
        is_random
    }

    /// Thousandths of pages programmed for each page of random overwrites.
    pub(super) fn amplification(&self) -> u64 {
        if let Some(fixed) = self.fixed {
            return fixed;
        }
        let data = (self.capacity - self.discarded_sum).min(self.hot_sectors());
        let free = self.discarded_sum.saturating_sub(self.slc_borrowed());
        let spare = self.capacity * self.spare_permille / 1000 + free;
        // Both are below 2^41, so thousands of them fit.
        ((data + spare) * 1000 / (2 * spare).max(1)).clamp(1000, 10_000)
    }

    /// Sectors of parts that are overwritten at random; more than there are, if that is not known.
    fn hot_sectors(&self) -> u64 {
        self.hot.as_ref().map_or(u64::MAX, |hot| hot.parts * self.capacity.div_ceil(PARTS))
    }

    /// Sectors have come in.
    pub(super) fn wrote(&mut self, sectors: u64, random: bool) {
        if random {
            self.owed += sectors * (self.amplification() - 1000);
        }
    }

    /// Where the next unit is programmed, and what comes with it, while `migrating` units leave the SLC cache
    /// in the gaps.
    #[allow(clippy::cast_possible_truncation, reason = "a few operations each")]
    pub(super) fn program(&mut self, migrating: u64) -> Charge {
        let die = self.next_die;
        self.next_die = (die + 1) % self.dies;
        let room = self.slc_room();
        self.untouched = false;
        // Its room may have grown: the host has discarded.
        self.slc_full &= self.slc_used > self.low_water(room);
        if self.slc_used < room && !self.slc_full {
            self.slc_used += 1;
            self.slc_full = self.slc_used == room;
            // Collected when it leaves the cache: by a fold, or in a migration's own programs.
            let owed = core::mem::take(&mut self.owed);
            self.owed_cached += if self.fold { owed } else { 0 };
            return Charge { die, slc: true, moves: 0, folds: 0, erases: 0 };
        }
        self.slc_full |= self.has_slc();
        let folds = self.fold_out(die as usize, room, migrating);
        let debt = &mut self.debts[die as usize];
        debt.moves += core::mem::take(&mut self.owed);
        let moves = debt.moves / (1000 * self.unit);
        debt.moves -= moves * 1000 * self.unit;
        // Native cells take what comes in or what is folded; the cache's blocks hold less.
        let native = u64::from(!self.fold) + folds + moves;
        debt.erases += (native + folds * self.bits) * self.unit;
        let erases = debt.erases / self.block;
        debt.erases -= erases * self.block;
        Charge { die, slc: self.fold, moves: moves as u32, folds: folds as u32, erases: erases as u32 }
    }

    /// A full cache is used again when no more units than that are left in it.
    fn low_water(&self, room: u64) -> u64 {
        if self.drain { 0 } else { room / 2 }
    }

    /// Units leave the SLC cache for one that comes in: what is beyond its room, or all in turn, not counting
    /// those on their way out.
    ///
    /// Each die has its share of them: a native program takes the room of `1 / (b - 1)` units.
    fn fold_out(&mut self, die: usize, room: u64, migrating: u64) -> u64 {
        let arrives = u64::from(self.fold);
        let stay = self.slc_used.saturating_sub(migrating);
        let beyond = (stay + arrives).saturating_sub(room);
        let over = if self.drain { stay } else { beyond };
        let debt = &mut self.debts[die].folds;
        *debt += u64::from(over > 0);
        let mut folds = arrives;
        if !self.fold && *debt >= self.bits - 1 {
            (*debt, folds) = (0, 1);
        }
        if beyond > 2 * u64::from(self.dies) {
            folds = FOLDS;
        }
        let folds = folds.min(over).min(stay);
        self.slc_used = self.slc_used + arrives - folds;
        if self.fold {
            self.owed_cached += core::mem::take(&mut self.owed);
            self.owed = self.leave(folds);
        }
        folds
    }

    /// The share of such units in what is owed for the SLC cache.
    fn leave(&mut self, units: u64) -> u64 {
        if self.owed_cached == 0 {
            return 0;
        }
        let all = self.slc_used + units;
        let share = u128::from(self.owed_cached) * u128::from(units) / u128::from(all.max(1));
        let share = u64::try_from(share).unwrap_or(self.owed_cached);
        self.owed_cached -= share;
        share
    }

    pub(super) fn has_slc(&self) -> bool {
        self.slc_size + self.slc_dynamic > 0
    }

    /// A unit has left the SLC cache in a gap, and its share of garbage collection is done there, too.
    pub(super) fn migrated(&mut self) {
        self.slc_used -= 1;
        self.slc_full &= self.slc_used > self.low_water(self.slc_room());
        self.leave(1);
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

    /// Changes the count of each part that `[start, end)` touches: from what it is, its size, and the sectors
    /// inside.
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

#[cfg(test)]
impl Ftl {
    /// Sectors without data.
    pub(super) fn free(&self) -> u64 {
        self.discarded_sum
    }

    /// What must hold at any time, while `migrating` units leave the SLC cache in the gaps.
    pub(super) fn check(&self, migrating: u64) {
        assert!(self.discarded_sum <= self.capacity, "no more is free than there is");
        assert!(migrating <= self.slc_used, "only what is in the cache leaves it");
        let most = self.slc_size + self.slc_dynamic;
        assert!(self.slc_used - migrating <= most, "{} units in a cache of {most}", self.slc_used);
        let is_known = self.slc_full || self.untouched;
        assert!(self.slc_used < most || most == 0 || is_known, "a cache without room is full");
    }
}
