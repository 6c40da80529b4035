//! Allocation units: why it matters to a simple card where the last writes were.
//!
//! Cards keep a few units (AUs, typically 4 MiB) *open*, each with an append point:
//!
//! ```text
//!     AU  [#########|.....................]      write at | : nothing extra
//!                   append point                 elsewhere in an open AU: one page read and rewritten, and after
//!                                                `au_log` of them the AU is merged
//!                                                in an AU that is not open: the least recently used one is closed
//! ```
//!
//! Closing an AU that was not rewritten completely copies what is left of its old contents:
//! `valid * copy + erase`. Worked number (`flashcard2010`): an AU abandoned after 1 MiB costs 3072 KiB x 86
//! us + 2 ms = 267 ms.
//!
//! What this does not do: remember which pages hold data (an AU's unwritten part always counts as valid).
//= docs/reference/devices.md#21-simple-cards

use crate::Counters;
use alloc::vec::Vec;
use fairhead_core::units::{Duration, Sectors};

/// What upkeep costs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Costs {
    pub(crate) copy_per_kib_ps: u64,
    pub(crate) t_erase: Duration,
    pub(crate) page_rmw: Duration,
}

/// The units that are open.
#[derive(Clone, Debug)]
pub(crate) struct Units {
    /// Sectors of a unit.
    size: u64,
    /// How many can be open.
    most: usize,
    log: u32,
    costs: Costs,
    /// Least recently used first.
    open: Vec<OpenUnit>,
}

/// A unit that is open for writing.
#[derive(Clone, Copy, Debug)]
struct OpenUnit {
    index: u64,
    /// Sectors from the unit's start to the append point.
    written: u64,
    /// Writes off the append point so far.
    logged: u32,
}

impl Units {
    pub(crate) fn new(size: Sectors, most: u32, log: u32, costs: Costs) -> Self {
        let most = most as usize;
        Self { size: u64::from(size.0), most, log, costs, open: Vec::with_capacity(most) }
    }

    /// What a write to `[start, end)` costs beyond its data.
    pub(crate) fn write(&mut self, start: u64, end: u64, counters: &mut Counters) -> Duration {
        let (mut at, mut cost) = (start, Duration::ZERO);
        while at < end {
            let index = at / self.size;
            let (begin, stop) = (index * self.size, end.min((index + 1) * self.size));
            cost += self.write_in_unit(index, at - begin, stop - begin, counters);
            at = stop;
        }
        cost
    }

    /// What a write to `[from, to)` of a unit costs beyond its data.
    fn write_in_unit(&mut self, index: u64, from: u64, to: u64, counters: &mut Counters) -> Duration {
        let mut cost = Duration::ZERO;
        let mut unit = match self.open.iter().position(|u| u.index == index) {
            Some(i) => self.open.remove(i),
            None => {
                if self.open.len() == self.most {
                    let oldest = self.open.remove(0);
                    cost += self.close(oldest, counters);
                }
                // What lies before the first write is copied when the unit is closed, like what lies behind.
                OpenUnit { index, written: from, logged: 0 }
            }
        };
        if from == unit.written {
            unit.written = to;
        } else {
            counters.page_rewrites += 1;
            cost += self.costs.page_rmw;
            unit.logged += 1;
            if unit.logged >= self.log {
                cost += self.close(unit, counters);
                unit.logged = 0;
            }
        }
        // A unit written to its end starts over: nothing of the old contents is left to copy.
        if unit.written < self.size || unit.logged > 0 {
            self.open.push(unit);
        }
        cost
    }

    /// Copies what the unit still has of its old contents, and erases it.
    fn close(&self, unit: OpenUnit, counters: &mut Counters) -> Duration {
        counters.unit_merges += 1;
        per_kib(self.size - unit.written, self.costs.copy_per_kib_ps) + self.costs.t_erase
    }
}

/// Returns the time of `sectors` at `ps` picoseconds per KiB.
pub(crate) fn per_kib(sectors: u64, ps: u64) -> Duration {
    Duration::from_ns(sectors * ps / 2000)
}
