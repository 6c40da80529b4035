//! What a request costs, in nanoseconds of device time: a base cost, which is another for a random than for a
//! sequential request, and a cost for each sector.
//!
//! The six figures of `io.cost.model` say it. A disk that reads 100 MB/s and 100 random requests of 4 KiB a
//! second needs 41 µs for the 4 KiB themselves, and 10 ms - 41 µs besides for a random request.

use fairhead_core::{Limits, Op, Request};

/// The six figures: bytes a second in large sequential requests, sequential and random requests of 4 KiB a
/// second.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Figures {
    pub(super) rbps: u64,
    pub(super) rseqiops: u64,
    pub(super) rrandiops: u64,
    pub(super) wbps: u64,
    pub(super) wseqiops: u64,
    pub(super) wrandiops: u64,
}

/// A hard disk: what the lab's `sata2009` does without a scheduler, 4 requests of 1 MiB or 32 of 4 KiB at a
/// time, rounded. Random writes go to its cache.
const DISK: Figures = Figures {
    rbps: 72_000_000,
    rseqiops: 17_500,
    rrandiops: 165,
    wbps: 72_000_000,
    wseqiops: 17_500,
    wrandiops: 400,
};

/// A solid-state drive behind SATA: the lab's `sata_ssd`, likewise.
const SSD: Figures = Figures {
    rbps: 550_000_000,
    rseqiops: 100_000,
    rrandiops: 98_000,
    wbps: 550_000_000,
    wseqiops: 100_000,
    wrandiops: 98_000,
};

/// A drive with more than one hardware queue: the lab's `nvme`, with 128 requests of 4 KiB at a time.
const NVME: Figures = Figures {
    rbps: 3_400_000_000,
    rseqiops: 358_000,
    rrandiops: 358_000,
    wbps: 3_400_000_000,
    wseqiops: 358_000,
    wrandiops: 358_000,
};

/// A deeper queue than SATA's is one of several.
const SATA_DEPTH: u16 = 32;

impl Figures {
    /// Those of the device's class.
    pub(super) const fn of(limits: &Limits) -> Self {
        match (limits.rotational, limits.queue_depth) {
            (true, _) => DISK,
            (false, ..=SATA_DEPTH) => SSD,
            (false, _) => NVME,
        }
    }
}

/// A linear model of one direction.
#[derive(Clone, Copy, Debug)]
struct Line {
    sequential_ns: u64,
    random_ns: u64,
    ps_per_sector: u64,
}

const SECTOR: u64 = 512;
/// The sectors of the requests that `iops` counts.
const PAGE: u64 = 8;

impl Line {
    const fn new(bps: u64, seqiops: u64, randiops: u64) -> Self {
        let ps_per_sector = SECTOR * 1_000_000_000_000 / bps;
        let page_ns = PAGE * ps_per_sector / 1000;
        Self {
            sequential_ns: (1_000_000_000 / seqiops).saturating_sub(page_ns),
            random_ns: (1_000_000_000 / randiops).saturating_sub(page_ns),
            ps_per_sector,
        }
    }
}

/// See the [module](self).
#[derive(Clone, Copy, Debug)]
pub(super) struct Model {
    read: Line,
    write: Line,
}

impl Model {
    /// All figures are above 0.
    pub(super) const fn new(f: &Figures) -> Self {
        Self {
            read: Line::new(f.rbps, f.rseqiops, f.rrandiops),
            write: Line::new(f.wbps, f.wseqiops, f.wrandiops),
        }
    }

    const fn line(&self, op: Op) -> &Line {
        match op {
            Op::Read => &self.read,
            Op::Write | Op::Discard => &self.write,
        }
    }

    /// A request's cost, in nanoseconds.
    pub(super) const fn cost(&self, rq: &Request, is_random: bool) -> u64 {
        let line = self.line(rq.op);
        let base = if is_random { line.random_ns } else { line.sequential_ns };
        base.saturating_add(self.size_cost(rq.op, rq.len.0))
    }

    /// What sectors cost, besides the base cost. The size of a discard costs nothing: no data moves.
    pub(super) const fn size_cost(&self, op: Op, sectors: u32) -> u64 {
        match op {
            Op::Discard => 0,
            _ => (sectors as u64).saturating_mul(self.line(op).ps_per_sector) / 1000,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairhead_core::{Sector, Sectors, TaskId};

    #[test]
    fn the_six_figures_are_what_the_model_predicts() {
        let model = Model::new(&Figures { wbps: 50_000_000, wrandiops: 50, ..DISK });
        let second = |cost: u64| 1_000_000_000 / cost;
        let read = |sectors| Request::read(TaskId(1), Sector(0), Sectors(sectors));
        let write = |sectors| Request::write(TaskId(1), Sector(0), Sectors(sectors));
        assert_eq!(second(model.cost(&read(8), true)), 165);
        assert_eq!(second(model.cost(&read(8), false)), 17_500);
        assert_eq!(second(model.cost(&write(8), true)), 50);
        // In large requests the base cost hardly counts.
        let mib = second(model.cost(&write(2048), false));
        assert_eq!(mib, 50_000_000 / (1 << 20));
        let discard = Request { op: Op::Discard, ..write(1 << 20) };
        assert!(model.cost(&discard, false) < model.cost(&write(1 << 20), false));
    }

    #[test]
    fn a_model_whose_figures_contradict_each_other_has_no_negative_costs() {
        let model = Model::new(&Figures { rbps: 1_000_000, rseqiops: 1_000_000, ..DISK });
        assert_eq!(model.cost(&Request::read(TaskId(1), Sector(0), Sectors(8)), false), 4_096_000);
    }
}
