//! A hard disk with several arms: each serves a contiguous range of sectors, and they move independently.
//!
//! ```text
//!                                    ┌─ actuator 0: media machine, sectors 0 to n/2      ┐
//!   one queue ─► interface machine ──┤                                                   ├─ one spindle
//!                                    └─ actuator 1: media machine, sectors n/2 to n      ┘
//! ```
//!
//! Every actuator has its share of the surfaces, so each range goes from the outer zones to the inner ones. A
//! command within a range is served by its actuator, which chooses the best of *its* commands; one across a
//! boundary is served in parts that complete together. Streams in different ranges do not disturb each other
//! but for the interface, which decodes and moves cached data for all; two streams in one range share one
//! arm, as on any disk.
//!
//! Worked number (`dual_actuator`): two streams at the outer edges of the two ranges get 209 MB/s each, in
//! one range 209 MB/s together at the very best.
//!
//! Each arm is a [`Disk`] of its own here, with its share of tracks, surfaces and buffer, and they hand the
//! interface round.
//!
//! What this does not do: let one range use another's idle buffer; move parts of a command at different times
//! over the bus.
//= docs/reference/devices.md#25-compositions
//= deviates actuator-buffer

use super::Disk;
use super::link::Link;
use crate::joint::Joint;
use crate::params::{DiskParams, Zone};
use crate::parts::Parts;
use crate::{Command, DeviceOp, Facts, ParamError};
use alloc::boxed::Box;
use alloc::vec::Vec;
use fairhead_core::elevator::Actuators;
use fairhead_core::units::{Instant, Sector, Sectors, Tag};

/// A hard disk with several arms. See the module's text; made by [`crate::Device::new`].
#[derive(Clone, Debug)]
pub struct MultiDisk {
    arms: Box<[Arm]>,
    /// Arms after the first have counted again what more than one of them serves.
    joint: Joint,
    /// When the interface that all share can take up the next command.
    interface_free: u64,
    /// What crosses to and from the host.
    link: Link,
    /// The flush in flight: until it is done nothing is accepted.
    barrier: Option<Tag>,
    /// Commands that more than one arm serves.
    parts: Parts,
}

/// An actuator with the range of sectors that it serves.
#[derive(Clone, Debug)]
struct Arm {
    disk: Disk,
    start: u64,
    end: u64,
}

impl MultiDisk {
    pub(crate) fn new(p: &DiskParams) -> Result<Self, ParamError> {
        p.check().map_err(|e| e.of(&p.name))?;
        let (mut arms, mut starts, mut at) = (Vec::new(), Vec::new(), 0);
        for i in 0..p.actuators {
            let mut disk = Disk::new(&share(p, i))?;
            disk.keeps_link = true;
            let end = at + disk.facts().capacity;
            arms.push(Arm { disk, start: at, end });
            starts.push(Sector(at));
            at = end;
        }
        let facts = Facts { capacity: at, actuators: Actuators::at(&starts[1..]), ..arms[0].disk.facts() };
        Ok(Self {
            arms: arms.into(),
            joint: Joint::new(facts),
            interface_free: 0,
            link: Link::new(usize::from(p.queue_depth)),
            barrier: None,
            parts: Parts::new(usize::from(p.queue_depth)),
        })
    }

    pub(crate) const fn joint(&self) -> &Joint {
        &self.joint
    }

    pub(crate) const fn can_accept(&self) -> bool {
        self.joint.has_room() && self.barrier.is_none()
    }

    pub(crate) fn submit(&mut self, now: Instant, cmd: Command) {
        assert!(self.can_accept(), "submit: the disk's queue is full");
        let (start, end) = self.joint.begin(now, cmd);
        let mut parts = 0;
        for i in 0..self.arms.len() {
            let arm = &self.arms[i];
            let part = if cmd.op == DeviceOp::Flush {
                self.barrier = Some(cmd.tag);
                cmd
            } else if start < arm.end && arm.start < end {
                let (from, to) = (start.max(arm.start), end.min(arm.end));
                #[allow(clippy::cast_possible_truncation, reason = "no longer than the command")]
                let len = Sectors((to - from) as u32);
                Command { start: Sector(from - arm.start), len, ..cmd }
            } else {
                continue;
            };
            parts += 1;
            self.with_interface(i, |disk| disk.submit(now, part));
        }
        self.parts.begin(cmd.tag, parts);
        self.joint.recounted.count_command(cmd.op, u64::from(parts) - 1);
        self.count();
    }

    pub(crate) fn next_event(&self) -> Option<Instant> {
        self.arms.iter().filter_map(|a| a.disk.next_event()).min()
    }

    pub(crate) fn poll(&mut self, now: Instant) -> Option<Tag> {
        loop {
            let next = (0..self.arms.len()).filter_map(|i| Some((self.arms[i].disk.next_event()?, i))).min();
            let (at, i) = next.filter(|n| n.0 <= now)?;
            let done = self.with_interface(i, |disk| disk.poll(at));
            self.count();
            let Some(tag) = done.filter(|&t| self.parts.is_last(t)) else { continue };
            if self.barrier == Some(tag) {
                self.barrier = None;
            }
            self.joint.end(at);
            return Some(tag);
        }
    }

    /// One arm's turn at the interface.
    fn with_interface<R>(&mut self, i: usize, turn: impl FnOnce(&mut Disk) -> R) -> R {
        let disk = &mut self.arms[i].disk;
        disk.interface_free = self.interface_free;
        core::mem::swap(&mut disk.link, &mut self.link);
        let result = turn(disk);
        core::mem::swap(&mut disk.link, &mut self.link);
        self.interface_free = disk.interface_free;
        result
    }

    fn count(&mut self) {
        self.joint.count(self.arms.iter().map(|a| a.disk.counters()));
    }
}

/// What one of the actuators has of the drive.
fn share(p: &DiskParams, i: u32) -> DiskParams {
    let (n, i) = (u64::from(p.actuators), u64::from(i));
    let tracks = |z: &Zone| z.tracks * (i + 1) / n - z.tracks * i / n;
    let zones = p.zones.iter().map(|z| Zone { tracks: tracks(z), ..*z }).collect();
    DiskParams {
        zones,
        heads: p.heads / p.actuators,
        nseg: p.nseg / p.actuators,
        buffer_bytes: p.buffer_bytes / n,
        wc_slots: p.wc_slots / p.actuators,
        wc_bytes: p.wc_bytes / n,
        actuators: 1,
        ..p.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Rng, random_command, random_params};
    use super::*;
    use crate::params::DeviceParams;
    use fairhead_core::units::Duration;

    fn dual() -> MultiDisk {
        let Ok(DeviceParams::Disk(p)) = DeviceParams::preset("dual_actuator") else { unreachable!() };
        MultiDisk::new(&p).unwrap_or_else(|e| panic!("{e}"))
    }

    fn read(tag: u16, start: u64, sectors: u32) -> Command {
        let op = DeviceOp::Read;
        Command { tag: Tag(tag), op, start: Sector(start), len: Sectors(sectors), fua: false }
    }

    /// Runs until all is done; tags with their times in microseconds.
    fn drain(disk: &mut MultiDisk) -> Vec<(u16, u64)> {
        let mut log = Vec::new();
        while let Some(at) = disk.next_event() {
            while let Some(tag) = disk.poll(at) {
                log.push((tag.0, at.since(Instant::EPOCH).as_us()));
            }
        }
        assert!(disk.joint.is_idle());
        log
    }

    #[test]
    fn the_ranges_are_told() {
        let d = dual();
        let (facts, half) = (d.joint.facts(), d.arms[1].start);
        assert_eq!(facts.actuators.count(), 2);
        assert!(
            half.abs_diff(facts.capacity / 2) < facts.capacity / 1000,
            "half of the sectors, but for whole tracks"
        );
        assert_eq!(facts.actuators.of(Sector(half - 1)), 0);
        assert_eq!(facts.actuators.of(Sector(half)), 1);
    }

    #[test]
    fn a_command_across_the_boundary_completes_once_when_both_parts_have() {
        let mut d = dual();
        let half = d.arms[1].start;
        d.submit(Instant::EPOCH, read(0, half - 8, 16));
        let both = drain(&mut d)[0].1;
        let alone = |start| {
            let mut d = dual();
            d.submit(Instant::EPOCH, read(0, start, 8));
            drain(&mut d)[0].1
        };
        let (first, second) = (alone(half - 8), alone(half));
        assert!(both.abs_diff(first.max(second)) < 100, "{both} us, parts {first} and {second} us");
        assert_eq!(
            (d.joint.counters().reads, d.joint.counters().misses, d.joint.counters().bytes_read),
            (1, 2, 8192)
        );
    }

    #[test]
    fn arms_move_at_the_same_time_and_one_arm_does_not() {
        let mut d = dual();
        let half = d.arms[1].start;
        // Both arms start at the outer edge of their ranges.
        let far = half / 2;
        d.submit(Instant::EPOCH, read(0, far, 8));
        d.submit(Instant::EPOCH, read(1, half + far, 8));
        let apart = drain(&mut d).last().map_or(0, |l| l.1);
        let mut d = dual();
        d.submit(Instant::EPOCH, read(0, far, 8));
        d.submit(Instant::EPOCH, read(1, far / 2, 8));
        let together = drain(&mut d).last().map_or(0, |l| l.1);
        assert!(apart < 17_000, "one seek and at most one revolution: {apart} us");
        assert!(together > apart + 2_000, "{together} us with one arm, {apart} us with two");
    }

    #[test]
    fn a_flush_waits_for_both_arms_and_nothing_overtakes_it() {
        let mut d = dual();
        let half = d.arms[1].start;
        let write = |tag, start| Command { op: DeviceOp::Write, ..read(tag, start, 64) };
        d.submit(Instant::EPOCH, write(0, 4_000_000));
        d.submit(Instant::EPOCH, write(1, half + 4_000_000));
        d.submit(Instant::EPOCH, Command { op: DeviceOp::Flush, ..read(2, 0, 0) });
        assert!(!d.can_accept());
        let log = drain(&mut d);
        assert_eq!(log.last().map(|l| l.0), Some(2));
        assert_eq!(
            (d.joint.counters().flushes, d.joint.counters().destages, d.joint.counters().destaged_sectors),
            (1, 2, 128)
        );
        assert!(d.can_accept());
        assert_eq!(d.joint.counters().busy_time.as_us(), log[2].1);
    }

    /// Random commands, some across boundaries; every completion with its instant. `extra` polls in between
    /// must change nothing.
    fn random_run(seed: u64, extra: bool) -> Vec<(u64, u16)> {
        let mut r = Rng(seed * 2 + 1);
        let mut p = random_params(&mut r);
        p.actuators = 2 + r.below(3) as u32;
        p.heads *= p.actuators;
        (p.nseg, p.wc_slots) = (p.nseg * p.actuators, p.wc_slots * p.actuators);
        (p.buffer_bytes, p.wc_bytes) = (4 * p.buffer_bytes, 4 * 4096 + 4 * p.wc_bytes);
        p.zones.iter_mut().for_each(|z| z.tracks += 8);
        let mut d = MultiDisk::new(&p).unwrap_or_else(|e| panic!("{e}"));
        let boundaries: Vec<u64> = d.arms.iter().map(|a| a.end).collect();
        let mut polls = Rng(seed + 77);
        let (mut hot, mut log, mut now) = ([0; 3], Vec::new(), Instant::EPOCH);
        let mut in_flight = vec![false; 500];
        let mut sent = 0;
        while sent < 500 || !d.joint.is_idle() {
            let arrival = if sent == 500 { None } else { Some(now + Duration::from_ns(r.below(8_000_000))) };
            while let Some(at) = d.next_event().filter(|&at| arrival.is_none_or(|a| at <= a)) {
                assert!(at >= now, "seed {seed}: an event in the past");
                now = at;
                while let Some(tag) = d.poll(now) {
                    assert!(std::mem::take(&mut in_flight[usize::from(tag.0)]), "seed {seed}: {tag:?} twice");
                    log.push((now.as_ns(), tag.0));
                }
                assert_ne!(d.next_event(), Some(now), "seed {seed}: the same event twice");
            }
            let Some(arrival) = arrival else { continue };
            now = arrival;
            if extra && polls.chance(50) {
                assert_eq!(d.poll(now), None, "seed {seed}");
            }
            if d.can_accept() {
                let mut cmd = random_command(&mut r, sent, d.joint.facts().capacity, &mut hot);
                if r.chance(20) {
                    let at = boundaries[r.below(boundaries.len() as u64 - 1) as usize];
                    cmd.start = Sector(at.saturating_sub(r.below(u64::from(cmd.len.0) + 1)));
                }
                d.submit(now, cmd);
                in_flight[usize::from(sent)] = true;
                sent += 1;
            }
        }
        let c = *d.joint.counters();
        assert_eq!(c.reads + c.writes + c.flushes + c.discards, 500, "seed {seed}: each is counted once");
        log
    }

    #[test]
    fn whatever_comes_completes_once() {
        for seed in 0..200 {
            let log = random_run(seed, false);
            assert_eq!(log.len(), 500, "seed {seed}");
            assert_eq!(log, random_run(seed, true), "seed {seed}: a poll changed something");
        }
    }
}
