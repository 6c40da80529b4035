//! A flash card without queueing: CompactFlash, old SD, USB stick.
//!
//! Reads cost a fixed part and a part per KiB, wherever they are. Writes do too, and then it matters where
//! the last ones were: the card keeps a few *allocation units* open, each with an append point (`au.rs`).
//!
//! What this does not do: remember which pages hold data (an AU's unwritten part always counts as valid),
//! wear, the FAT area of SD cards that takes random writes well.
//= docs/reference/devices.md#21-simple-cards

use crate::au::{Costs, Units, per_kib};
use crate::params::CardParams;
use crate::{Command, Counters, DeviceOp, Driver, Facts, ParamError};
use fairhead_core::elevator::Actuators;
use fairhead_core::units::{Duration, Instant, Tag};

/// A flash card without queueing. See the module's text; made by [`crate::Device::new`].
#[derive(Clone, Debug)]
pub struct Card {
    p: CardParams,
    /// The command in flight.
    done: Option<(Instant, Tag)>,
    since: Instant,
    units: Units,
    counters: Counters,
}

impl Card {
    pub(crate) fn new(p: &CardParams) -> Result<Self, ParamError> {
        p.check().map_err(|e| e.of(&p.name))?;
        let costs = Costs { copy_per_kib_ps: p.copy_per_kib_ps, t_erase: p.t_erase, page_rmw: p.page_rmw };
        let units = Units::new(p.au, p.open_au, p.au_log, costs);
        Ok(Self { p: p.clone(), done: None, since: Instant::EPOCH, units, counters: Counters::default() })
    }

    pub(crate) fn facts(&self) -> Facts {
        Facts {
            capacity: self.p.capacity,
            rotational: false,
            queue_depth: 1,
            driver: self.p.driver.unwrap_or(Driver::Mmc),
            max_request: self.p.max_request,
            write_cache: false,
            fua: true,
            actuators: Actuators::default(),
        }
    }

    pub(crate) fn can_accept(&self) -> bool {
        self.done.is_none()
    }

    pub(crate) fn busy_time(&self, now: Instant) -> Duration {
        self.counters.busy_time_until(now, self.done.map(|_| self.since))
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
        let extra = self.units.write(start, end, &mut self.counters);
        self.p.write_latency + per_kib(end - start, self.p.write_per_kib_ps) + extra
    }
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
    //= docs/reference/devices.md#33-flashcard2010 type=test
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
