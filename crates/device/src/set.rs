//! Several devices behind one queue: the same sectors on all of them (RAID 1), or theirs by turns (RAID 0).
//!
//! ```text
//!   queues = "per-member" (Linux md, LVM): the host drives members()      queues = "one" (a controller): this device
//!
//!     spread ─┬─► queue, scheduler ─► member 0                              queue, scheduler ─► spread ─┬─► member 0
//!             └─► queue, scheduler ─► member 1                                                          └─► member 1
//! ```
//!
//! Where a command goes is said by [`ReadBalance`] and [`StripeMap`]. The [`Set`] takes as many commands as
//! its members together. Whatever a member has no room for waits in front of it, in order. A command is done
//! when the last member that has a part of it is.
//!
//! What this does not do: fail, rebuild, or give a member with a shorter queue more than its turn.
//= docs/reference/devices.md#25-compositions

use crate::joint::Joint;
use crate::mirror::ReadBalance;
use crate::params::{Raid0Params, Raid1Params};
use crate::parts::Parts;
use crate::stripe::StripeMap;
use crate::{Command, Device, DeviceOp, Facts, ParamError};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use fairhead_core::units::{Instant, Sector, Sectors, Tag};

/// Where a command goes.
#[derive(Clone, Debug)]
enum Spread {
    /// A read to one member, the rest to all.
    Mirror(ReadBalance),
    /// To the members that have a part of it.
    Stripe(StripeMap),
}

/// Several devices behind one queue. See the module's text; made by [`Device::new`].
#[derive(Clone, Debug)]
pub struct Set {
    members: Box<[Member]>,
    spread: Spread,
    /// Members after the first have counted again what several of them got.
    joint: Joint,
    parts: Parts,
    scratch: Vec<(usize, Sector, Sectors)>,
}

#[derive(Clone, Debug)]
struct Member {
    device: Device,
    /// Commands that it has no room for, in order; and how many bytes of each were counted elsewhere, if it
    /// was.
    waiting: VecDeque<(Command, Option<u64>)>,
    /// With those that wait.
    in_flight: u32,
}

impl Set {
    /// Members with the same contents.
    pub(crate) fn mirror(p: &Raid1Params) -> Result<Self, ParamError> {
        p.check().map_err(|e| e.of(&p.name))?;
        let devices = p.members.iter().map(Device::new).collect::<Result<Vec<_>, _>>()?;
        let facts = Facts::mirrored(devices.iter().map(Device::facts));
        let spread = Spread::Mirror(ReadBalance::new(devices.len()));
        Ok(Self::of(devices, spread, facts))
    }

    /// Members whose sectors are used by turns.
    pub(crate) fn stripe(p: &Raid0Params) -> Result<Self, ParamError> {
        p.check().map_err(|e| e.of(&p.name))?;
        let devices = p.members.iter().map(Device::new).collect::<Result<Vec<_>, _>>()?;
        let capacities: Vec<u64> = devices.iter().map(|d| d.facts().capacity).collect();
        let map = StripeMap::new(p.chunk, &capacities);
        let facts = Facts::striped(devices.iter().map(Device::facts), map.capacity());
        Ok(Self::of(devices, Spread::Stripe(map), facts))
    }

    fn of(devices: Vec<Device>, spread: Spread, facts: Facts) -> Self {
        let (depth, members_max) = (usize::from(facts.queue_depth), devices.len());
        let member = |device| Member { device, waiting: VecDeque::with_capacity(depth), in_flight: 0 };
        Self {
            spread,
            members: devices.into_iter().map(member).collect(),
            joint: Joint::new(facts),
            parts: Parts::new(depth),
            scratch: Vec::with_capacity(members_max),
        }
    }

    pub(crate) const fn joint(&self) -> &Joint {
        &self.joint
    }

    pub(crate) const fn can_accept(&self) -> bool {
        self.joint.has_room()
    }

    pub(crate) fn submit(&mut self, now: Instant, cmd: Command) {
        assert!(self.can_accept(), "submit: the set's queue is full");
        let (_, end) = self.joint.begin(now, cmd);
        match &mut self.spread {
            Spread::Mirror(balance) if cmd.op == DeviceOp::Read => {
                let m = balance.choose(cmd.start, |m| self.members[m].in_flight == 0);
                balance.read(m, Sector(end));
                self.give(now, m, cmd, None);
            }
            Spread::Mirror(balance) => {
                if cmd.op != DeviceOp::Flush {
                    balance.write(Sector(end));
                }
                let again = if cmd.op == DeviceOp::Write { cmd.len.bytes() } else { 0 };
                self.give_all(now, cmd, again);
            }
            Spread::Stripe(_) if cmd.op == DeviceOp::Flush => self.give_all(now, cmd, 0),
            Spread::Stripe(map) => {
                let mut parts = core::mem::take(&mut self.scratch);
                parts.extend(map.parts(cmd.start, cmd.len));
                #[allow(clippy::cast_possible_truncation, reason = "a few members")]
                self.parts.begin(cmd.tag, parts.len() as u32);
                for (i, (m, start, len)) in parts.drain(..).enumerate() {
                    self.give(now, m, Command { start, len, ..cmd }, (i > 0).then_some(0));
                }
                self.scratch = parts;
            }
        }
        self.count();
    }

    /// Gives a command to all members; the members after the first count `again` bytes once more.
    fn give_all(&mut self, now: Instant, cmd: Command, again: u64) {
        #[allow(clippy::cast_possible_truncation, reason = "a few members")]
        self.parts.begin(cmd.tag, self.members.len() as u32);
        (0..self.members.len()).for_each(|m| self.give(now, m, cmd, (m > 0).then_some(again)));
    }

    fn give(&mut self, now: Instant, m: usize, cmd: Command, again: Option<u64>) {
        self.members[m].in_flight += 1;
        self.members[m].waiting.push_back((cmd, again));
        self.pass_on(now, m);
    }

    /// Gives a member what it has room for.
    fn pass_on(&mut self, now: Instant, m: usize) {
        let member = &mut self.members[m];
        while member.device.can_accept()
            && let Some((cmd, again)) = member.waiting.pop_front()
        {
            if let Some(bytes) = again {
                self.joint.recounted.count_command(cmd.op, 1);
                self.joint.recounted.bytes_written += bytes;
            }
            member.device.submit(now, cmd);
        }
    }

    pub(crate) fn next_event(&self) -> Option<Instant> {
        self.members.iter().filter_map(|m| m.device.next_event()).min()
    }

    pub(crate) fn poll(&mut self, now: Instant) -> Option<Tag> {
        loop {
            let event = |m: usize| Some((self.members[m].device.next_event()?, m));
            let (at, m) = (0..self.members.len()).filter_map(event).min().filter(|n| n.0 <= now)?;
            let done = self.members[m].device.poll(at);
            if done.is_some() {
                self.members[m].in_flight -= 1;
            }
            self.pass_on(now, m);
            self.count();
            let Some(tag) = done.filter(|&t| self.parts.is_last(t)) else { continue };
            self.joint.end(at);
            return Some(tag);
        }
    }

    pub(crate) fn catch_up(&mut self, now: Instant) -> Option<Instant> {
        let last = self.members.iter_mut().filter_map(|m| m.device.catch_up(now)).max();
        self.count();
        last
    }

    pub(crate) fn unseen(&self) -> i64 {
        self.members.iter().map(|m| m.device.unseen()).sum()
    }

    fn count(&mut self) {
        self.joint.count(self.members.iter().map(|m| m.device.counters()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::DeviceParams;
    use fairhead_core::units::Sectors;

    fn set(text: &str) -> Set {
        match DeviceParams::from_toml(text, "test") {
            Ok(DeviceParams::Raid0(p)) => Set::stripe(&p).unwrap_or_else(|e| panic!("{e}")),
            Ok(DeviceParams::Raid1(p)) => Set::mirror(&p).unwrap_or_else(|e| panic!("{e}")),
            other => panic!("{other:?}"),
        }
    }

    const TWO: &str = "base = \"raid1_2009\"";

    fn command(tag: u16, op: DeviceOp, start: u64, sectors: u32) -> Command {
        Command { tag: Tag(tag), op, start: Sector(start), len: Sectors(sectors), fua: false }
    }

    /// Runs until all is done; tags in the order of completion.
    fn drain(d: &mut Set) -> Vec<u16> {
        let mut log = Vec::new();
        while let Some(at) = d.next_event() {
            while let Some(tag) = d.poll(at) {
                log.push(tag.0);
            }
        }
        assert!(d.joint.is_idle() && d.members.iter().all(|m| m.in_flight == 0 && m.waiting.is_empty()));
        log
    }

    #[test]
    fn a_set_takes_as_much_as_its_members_and_two_reads_go_to_two() {
        let mut d = set(TWO);
        assert_eq!(d.joint.facts().queue_depth, 2);
        d.submit(Instant::EPOCH, command(0, DeviceOp::Read, 1_000_000, 8));
        d.submit(Instant::EPOCH, command(1, DeviceOp::Read, 90_000_000, 8));
        assert!(!d.can_accept());
        assert!(d.members.iter().all(|m| m.in_flight == 1));
        assert_eq!(drain(&mut d).len(), 2);
        assert_eq!((d.joint.counters().reads, d.joint.counters().bytes_read), (2, 8192));
    }

    #[test]
    fn a_write_is_done_when_both_have_it_and_counts_once() {
        let mut d = set("base = \"raid1_2009\"\nmembers = [\"sata2009\", \"ide2004\"]\n");
        d.submit(Instant::EPOCH, command(0, DeviceOp::Write, 5000, 256));
        let at = d.next_event().expect("a write in flight");
        assert_eq!(d.poll(at), None, "the quicker of the two");
        assert_eq!(drain(&mut d), [0]);
        d.submit(Instant::EPOCH + fairhead_core::Duration::from_secs(1), command(1, DeviceOp::Flush, 0, 0));
        assert_eq!(drain(&mut d), [1]);
        let c = *d.joint.counters();
        assert_eq!((c.writes, c.bytes_written, c.flushes), (1, 131_072, 1));
        assert_eq!((c.destages, c.destaged_sectors), (2, 512), "both have brought it to the media");
    }

    #[test]
    fn a_stripe_splits_what_crosses_a_chunk_and_counts_it_once() {
        let text = "kind = \"raid0\"\nmembers = [\"sata2009\", \"sata2009\", \"sata2009\"]\nchunk = \"64KiB\"\nqueues = \"one\"\n";
        let mut d = set(text);
        let one =
            Device::new(&DeviceParams::preset("sata2009").expect("built in")).expect("possible").facts();
        assert_eq!(d.joint.facts().capacity, one.capacity / 128 * 128 * 3);
        assert_eq!(d.joint.facts().queue_depth, one.queue_depth * 3);
        // Chunks of 128 sectors: the last 28 of chunk 0, all of 1, the first 44 of 2.
        d.submit(Instant::EPOCH, command(0, DeviceOp::Read, 100, 200));
        assert!(d.members.iter().all(|m| m.in_flight == 1));
        assert_eq!(drain(&mut d), [0]);
        assert_eq!((d.joint.counters().reads, d.joint.counters().bytes_read), (1, 200 * 512));
        let later = Instant::EPOCH + fairhead_core::Duration::from_secs(1);
        d.submit(later, command(1, DeviceOp::Write, 128, 128));
        assert_eq!(d.members.iter().map(|m| m.in_flight).collect::<Vec<_>>(), [0, 1, 0]);
        d.submit(later, command(2, DeviceOp::Flush, 0, 0));
        assert_eq!(drain(&mut d), [1, 2]);
        let c = *d.joint.counters();
        assert_eq!((c.writes, c.bytes_written, c.flushes), (1, 65_536, 1));
    }

    #[test]
    fn whatever_comes_completes_once() {
        for members in ["[\"sata2009\", \"sata2009\"]", "[\"nas2020\", \"ide2004\", \"flashcard2010\"]"] {
            for kind in ["kind = \"raid1\"", "kind = \"raid0\"\nchunk = \"4KiB\""] {
                let text = format!("{kind}\nmembers = {members}\n");
                for seed in 0..40 {
                    let log = random_run(&text, seed, false);
                    assert_eq!(log.len(), 300, "{members}, seed {seed}");
                    assert_eq!(
                        log,
                        random_run(&text, seed, true),
                        "{members}, seed {seed}: a poll changed something"
                    );
                }
            }
        }
    }

    fn random_run(text: &str, seed: u64, extra: bool) -> Vec<u16> {
        let mut d = set(text);
        let mut state = seed * 2 + 1;
        let mut below = |n: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % n
        };
        let (mut now, mut log, mut sent) = (Instant::EPOCH, Vec::new(), 0);
        let mut in_flight = vec![false; 300];
        while sent < 300 || !d.joint.is_idle() {
            let arrival = (sent < 300).then(|| now + fairhead_core::Duration::from_ns(below(4_000_000)));
            while let Some(at) = d.next_event().filter(|&at| arrival.is_none_or(|a| at <= a)) {
                now = at;
                while let Some(tag) = d.poll(now) {
                    assert!(std::mem::take(&mut in_flight[usize::from(tag.0)]), "seed {seed}: {tag:?} twice");
                    log.push(tag.0);
                }
                assert_ne!(d.next_event(), Some(now), "seed {seed}: the same event twice");
            }
            let Some(arrival) = arrival else { continue };
            now = arrival;
            assert!(!extra || d.poll(now).is_none(), "seed {seed}");
            if d.can_accept() {
                let op =
                    [DeviceOp::Read, DeviceOp::Read, DeviceOp::Write, DeviceOp::Flush, DeviceOp::Discard]
                        [below(5) as usize];
                let len = 1 + below(64);
                d.submit(now, command(sent, op, below(1_000_000), len as u32));
                in_flight[usize::from(sent)] = true;
                sent += 1;
            }
        }
        let c = *d.joint.counters();
        assert_eq!(c.reads + c.writes + c.flushes + c.discards, 300, "seed {seed}: each is counted once");
        log
    }
}
