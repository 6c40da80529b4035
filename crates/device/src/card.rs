//! A flash card without queueing: CompactFlash, old SD, USB stick.
//!
//! Reads cost a fixed part and a part per KiB, wherever they are. Writes do too, and then it matters where the last ones
//! were: the card keeps a few *allocation units* (AUs, typically 4 MiB) open, each with an append point.
//!
//! ```text
//!     AU  [#########|.....................]      write at | : nothing extra
//!                   append point                 elsewhere in an open AU: one page read and rewritten, and after
//!                                                `au_log` of them the AU is merged
//!                                                in an AU that is not open: the least recently used one is closed
//! ```
//!
//! Closing an AU that was not rewritten completely copies what is left of its old contents: `valid * copy + erase`. Worked
//! number (`flashcard2010`): an AU abandoned after 1 MiB costs 3072 KiB x 86 us + 2 ms = 267 ms.
//!
//! What this does not do: remember which pages hold data (an AU's unwritten part always counts as valid), wear, the FAT
//! area of SD cards that takes random writes well.
//= Fairhead device notes 2.1

use crate::params::CardParams;
use crate::{Command, Counters, DeviceOp, Facts, ParamError};
use fairhead_core::elevator::Actuators;
use fairhead_core::units::{Duration, Instant, Tag};

/// A flash card without queueing. See the module's text; made by [`crate::Device::new`].
#[derive(Clone, Debug)]
pub struct Card {
    p: CardParams,
    /// The command in flight.
    done: Option<(Instant, Tag)>,
    since: Instant,
    /// Units being written, least recently used first.
    open: Vec<OpenUnit>,
    counters: Counters,
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

impl Card {
    pub(crate) fn new(p: &CardParams) -> Result<Self, ParamError> {
        p.check().map_err(|e| e.of(&p.name))?;
        let open = Vec::with_capacity(p.open_au as usize);
        Ok(Self { p: p.clone(), done: None, since: Instant::EPOCH, open, counters: Counters::default() })
    }

    pub(crate) fn facts(&self) -> Facts {
        Facts {
            capacity: self.p.capacity,
            rotational: false,
            queue_depth: 1,
            max_request: self.p.max_request,
            write_cache: false,
            fua: true,
            actuators: Actuators::default(),
        }
    }

    pub(crate) fn can_accept(&self) -> bool {
        self.done.is_none()
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.done.is_none()
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.counters
    }

    pub(crate) fn next_event(&self) -> Option<Instant> {
        self.done.map(|d| d.0)
    }

    pub(crate) fn poll(&mut self, now: Instant) -> Option<Tag> {
        let (at, tag) = self.done.take_if(|d| d.0 <= now)?;
        self.counters.busy_time += at.since(self.since);
        Some(tag)
    }

    pub(crate) fn submit(&mut self, now: Instant, cmd: Command) {
        assert!(self.done.is_none(), "submit: the card takes one command at a time");
        let (start, sectors) = (cmd.start.0, u64::from(cmd.len.0));
        let end = start.saturating_add(sectors);
        assert!(
            cmd.op == DeviceOp::Flush || (start < end && end <= self.p.capacity),
            "submit: sectors {start} to {end} of a card of {}",
            self.p.capacity
        );
        let cost = match cmd.op {
            DeviceOp::Read => self.read(start, end),
            DeviceOp::Write => self.write(start, end),
            // Every write is on the flash when it completes.
            DeviceOp::Flush => {
                self.counters.flushes += 1;
                Duration::ZERO
            }
            DeviceOp::Discard => {
                self.counters.discards += 1;
                Duration::ZERO
            }
        };
        self.since = now;
        self.done = Some((now + cost, cmd.tag));
    }

    fn read(&mut self, start: u64, end: u64) -> Duration {
        self.counters.reads += 1;
        self.counters.bytes_read += (end - start) * 512;
        self.counters.misses += 1;
        let au = u64::from(self.p.au.0);
        let crosses = start / au != (end - 1) / au;
        let cross = if crosses { self.p.read_cross } else { Duration::ZERO };
        self.p.read_latency + per_kib(end - start, self.p.read_per_kib_ps) + cross
    }

    fn write(&mut self, start: u64, end: u64) -> Duration {
        self.counters.writes += 1;
        self.counters.bytes_written += (end - start) * 512;
        let au = u64::from(self.p.au.0);
        let mut cost = self.p.write_latency + per_kib(end - start, self.p.write_per_kib_ps);
        let mut at = start;
        while at < end {
            let unit = at / au;
            let stop = end.min((unit + 1) * au);
            cost += self.write_in_unit(unit, at - unit * au, stop - unit * au);
            at = stop;
        }
        cost
    }

    /// What a write to `[from, to)` of a unit costs beyond its data.
    fn write_in_unit(&mut self, index: u64, from: u64, to: u64) -> Duration {
        let mut cost = Duration::ZERO;
        let mut unit = match self.open.iter().position(|u| u.index == index) {
            Some(i) => self.open.remove(i),
            None => {
                if self.open.len() == self.p.open_au as usize {
                    let oldest = self.open.remove(0);
                    cost += self.close(oldest);
                }
                // What lies before the first write is copied when the unit is closed, like what lies behind.
                OpenUnit { index, written: from, logged: 0 }
            }
        };
        if from == unit.written {
            unit.written = to;
        } else {
            self.counters.page_rewrites += 1;
            cost += self.p.page_rmw;
            unit.logged += 1;
            if unit.logged >= self.p.au_log {
                cost += self.close(unit);
                unit.logged = 0;
            }
        }
        // A unit written to its end starts over: nothing of the old contents is left to copy.
        if unit.written < u64::from(self.p.au.0) || unit.logged > 0 {
            self.open.push(unit);
        }
        cost
    }

    /// Copies what the unit still has of its old contents, and erases it.
    fn close(&mut self, unit: OpenUnit) -> Duration {
        self.counters.unit_merges += 1;
        let valid = u64::from(self.p.au.0) - unit.written;
        per_kib(valid, self.p.copy_per_kib_ps) + self.p.t_erase
    }
}

/// The time of `sectors` at so many picoseconds per KiB.
fn per_kib(sectors: u64, ps: u64) -> Duration {
    Duration::from_ns(sectors * ps / 2000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::DeviceParams;
    use fairhead_core::units::{Sector, Sectors};

    fn card() -> Card {
        let Ok(DeviceParams::Card(p)) = DeviceParams::preset("flashcard2010") else { unreachable!() };
        Card::new(&p).unwrap_or_else(|e| panic!("{e}"))
    }

    /// Microseconds that a command takes.
    fn us(card: &mut Card, op: DeviceOp, start: u64, kib: u32) -> u64 {
        let now = Instant::EPOCH + Duration::from_secs(card.counters.reads + card.counters.writes);
        let cmd = Command { tag: Tag(3), op, start: Sector(start), len: Sectors(kib * 2), fua: false };
        card.submit(now, cmd);
        assert!(!card.can_accept() && card.poll(now).is_none());
        let Some(at) = card.next_event() else { panic!("a command in flight has an event") };
        assert_eq!(card.poll(at), Some(Tag(3)));
        at.since(now).as_us()
    }

    #[test]
    //= Fairhead device notes 3.3 type=test
    fn reads_cost_what_was_calibrated() {
        let mut c = card();
        for (kib, us_published) in [(4, 1276), (32, 2481), (64, 3859)] {
            let us = us(&mut c, DeviceOp::Read, 12_345, kib);
            assert!(us.abs_diff(us_published) <= 1, "{kib} KiB: {us} us, calibrated {us_published}");
        }
    }

    #[test]
    fn appending_costs_nothing_extra_and_closing_a_unit_does() {
        let mut c = card();
        let plain = 1500 + 4 * 8138 / 100;
        for i in 0..4 {
            assert_eq!(us(&mut c, DeviceOp::Write, i * 8, 4), plain, "append {i}");
        }
        // Two units are open; a third closes the first, of which 16 KiB of 4096 were written.
        assert_eq!(us(&mut c, DeviceOp::Write, 8192, 4), plain);
        let with_gc = us(&mut c, DeviceOp::Write, 2 * 8192, 4);
        let gc = (4096 - 16) * 8612 / 100 + 2000;
        assert!((with_gc - plain).abs_diff(gc) <= 1, "{} us", with_gc - plain);
        assert_eq!(c.counters.unit_merges, 1);
        // Still open: the second.
        assert_eq!(us(&mut c, DeviceOp::Write, 8192 + 8, 4), plain);
    }

    #[test]
    fn rewrites_in_an_open_unit_pile_up_until_it_is_merged() {
        let mut c = card();
        let plain = us(&mut c, DeviceOp::Write, 0, 64);
        for i in 1..16 {
            let us = us(&mut c, DeviceOp::Write, 0, 64);
            assert_eq!(us, plain + 1500, "rewrite {i}");
        }
        assert!(us(&mut c, DeviceOp::Write, 0, 64) > plain + 300_000, "the sixteenth merges 4 MiB");
        assert_eq!((c.counters.page_rewrites, c.counters.unit_merges), (16, 1));
    }

    #[test]
    fn a_unit_written_to_its_end_leaves_nothing_to_copy() {
        let mut c = card();
        for i in 0..3 * 64 {
            us(&mut c, DeviceOp::Write, i * 128, 64);
        }
        assert_eq!(c.counters.unit_merges, 0);
    }
}
