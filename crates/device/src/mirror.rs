//! RAID 1: the same sectors on several devices; reads go to one of them, writes to all.
//!
//! ```text
//!   queues = "per-member" (Linux md): the host drives members()      queues = "one" (a controller): this device
//!
//!     balance ─┬─► queue, scheduler ─► member 0                        queue, scheduler ─► balance ─┬─► member 0
//!              └─► queue, scheduler ─► member 1                                                     └─► member 1
//! ```
//!
//! [`ReadBalance`] says where a read goes: to the member whose last read it continues, so that a stream stays in one place; else
//! to one with nothing to do; else to the one whose head is nearest; member 0 of equals. Two streams thus settle on a member each,
//! and run at nearly twice the speed of one disk.
//!
//! The [`Mirror`] takes as many commands as its members together. Whatever a member has no room for waits in front of it, in
//! order. A write is done when the last member has it, a flush when the last member is clean.
//!
//! Worked number (`raid1_2009`, queues = "one"): of two sequential readers the first goes to member 0 and the second, as
//! member 0 is busy, to member 1; 72 MB/s each. Reads of one stream never alternate, so one reader gets 72 MB/s.
//!
//! What this does not do: fail, rebuild, or give a member with a shorter queue more than its turn.
//= Fairhead device notes 2.5

use crate::params::Raid1Params;
use crate::parts::Parts;
use crate::{Command, Counters, Device, DeviceOp, Facts, ParamError};
use fairhead_core::elevator::Actuators;
use fairhead_core::units::{Duration, Instant, Sector, Tag};
use std::collections::VecDeque;

/// Where the reads of a mirror go.
#[derive(Clone, Debug)]
pub struct ReadBalance {
    /// By member: behind its last read, and behind its last read or write.
    reads: Box<[Sector]>,
    heads: Box<[Sector]>,
}

impl ReadBalance {
    /// For so many members, at least one.
    #[must_use]
    pub fn new(members: usize) -> Self {
        let at = vec![Sector(0); members].into_boxed_slice();
        Self { reads: at.clone(), heads: at }
    }

    /// The member for a read that begins at `start`. `is_idle` says which have nothing to do.
    pub fn choose(&self, start: Sector, is_idle: impl Fn(usize) -> bool) -> usize {
        let continues = self.reads.iter().position(|&end| end == start);
        continues.or_else(|| (0..self.heads.len()).find(|&m| is_idle(m))).unwrap_or_else(|| {
            let distance = |&m: &usize| self.heads[m].0.abs_diff(start.0);
            // The first of equals.
            (0..self.heads.len()).min_by_key(distance).unwrap_or(0)
        })
    }

    /// A read that ends at `end` goes to a member.
    pub fn read(&mut self, member: usize, end: Sector) {
        (self.reads[member], self.heads[member]) = (end, end);
    }

    /// A write that ends at `end` goes to all.
    pub fn write(&mut self, end: Sector) {
        self.heads.fill(end);
    }
}

/// Devices with the same contents behind one queue. See the module's text; made by [`Device::new`].
#[derive(Clone, Debug)]
pub struct Mirror {
    members: Box<[Member]>,
    balance: ReadBalance,
    facts: Facts,
    in_flight: u16,
    busy_since: Instant,
    parts: Parts,
    /// What members after the first have counted of commands that all of them got.
    recounted: Counters,
    counters: Counters,
}

#[derive(Clone, Debug)]
struct Member {
    device: Device,
    /// Commands that it has no room for, in order.
    waiting: VecDeque<Command>,
    /// With those that wait.
    in_flight: u32,
}

impl Mirror {
    pub(crate) fn new(p: &Raid1Params) -> Result<Self, ParamError> {
        p.check().map_err(|e| e.of(&p.name))?;
        let devices = p.members.iter().map(Device::new).collect::<Result<Vec<_>, _>>()?;
        let facts = Facts::mirrored(devices.iter().map(Device::facts));
        let depth = usize::from(facts.queue_depth);
        let member = |device| Member { device, waiting: VecDeque::with_capacity(depth), in_flight: 0 };
        Ok(Self {
            balance: ReadBalance::new(devices.len()),
            members: devices.into_iter().map(member).collect(),
            facts,
            in_flight: 0,
            busy_since: Instant::EPOCH,
            parts: Parts::new(depth),
            recounted: Counters::default(),
            counters: Counters::default(),
        })
    }

    pub(crate) fn facts(&self) -> Facts {
        self.facts
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.counters
    }

    pub(crate) fn busy_time(&self, now: Instant) -> Duration {
        self.counters.busy_time_until(now, (self.in_flight > 0).then_some(self.busy_since))
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.in_flight == 0
    }

    pub(crate) fn can_accept(&self) -> bool {
        self.in_flight < self.facts.queue_depth
    }

    pub(crate) fn submit(&mut self, now: Instant, cmd: Command) {
        assert!(self.can_accept(), "submit: the set's queue is full");
        let (start, end) = (cmd.start.0, cmd.start.0.saturating_add(u64::from(cmd.len.0)));
        assert!(
            cmd.op == DeviceOp::Flush || (start < end && end <= self.facts.capacity),
            "submit: sectors {start} to {end} of a set of {}",
            self.facts.capacity
        );
        if self.in_flight == 0 {
            self.busy_since = now;
        }
        self.in_flight += 1;
        if cmd.op == DeviceOp::Read {
            let m = self.balance.choose(cmd.start, |m| self.members[m].in_flight == 0);
            self.balance.read(m, Sector(end));
            self.give(now, m, cmd);
        } else {
            if cmd.op != DeviceOp::Flush {
                self.balance.write(Sector(end));
            }
            #[allow(clippy::cast_possible_truncation, reason = "a few members")]
            self.parts.begin(cmd.tag, self.members.len() as u32);
            (0..self.members.len()).for_each(|m| self.give(now, m, cmd));
        }
        self.count();
    }

    fn give(&mut self, now: Instant, m: usize, cmd: Command) {
        self.members[m].in_flight += 1;
        self.members[m].waiting.push_back(cmd);
        self.pass_on(now, m);
    }

    /// Gives a member what it has room for.
    fn pass_on(&mut self, now: Instant, m: usize) {
        let member = &mut self.members[m];
        while member.device.can_accept()
            && let Some(cmd) = member.waiting.pop_front()
        {
            if m > 0 && cmd.op != DeviceOp::Read {
                self.recounted.count_command(cmd.op, 1);
                let is_write = cmd.op == DeviceOp::Write;
                self.recounted.bytes_written += if is_write { cmd.len.bytes() } else { 0 };
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
            self.in_flight -= 1;
            if self.in_flight == 0 {
                self.counters.busy_time += at.since(self.busy_since);
            }
            return Some(tag);
        }
    }

    fn count(&mut self) {
        let busy_time = self.counters.busy_time;
        self.counters = Counters::sum(self.members.iter().map(|m| m.device.counters()));
        self.counters.uncount(&self.recounted);
        self.counters.busy_time = busy_time;
    }
}

impl Facts {
    /// What a driver can know of a mirror of such members.
    ///
    /// # Panics
    /// When there are none.
    #[must_use]
    pub fn mirrored(members: impl Iterator<Item = Self>) -> Self {
        let both = |a: Self, b: Self| Self {
            capacity: a.capacity.min(b.capacity),
            rotational: a.rotational || b.rotational,
            queue_depth: a.queue_depth.saturating_add(b.queue_depth),
            max_request: a.max_request.min(b.max_request),
            write_cache: a.write_cache || b.write_cache,
            fua: a.fua && b.fua,
            actuators: Actuators::default(),
        };
        members.reduce(both).expect("a set has members")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::DeviceParams;
    use fairhead_core::units::Sectors;

    fn mirror(text: &str) -> Mirror {
        match DeviceParams::from_toml(text, "test") {
            Ok(DeviceParams::Raid1(p)) => Mirror::new(&p).unwrap_or_else(|e| panic!("{e}")),
            other => panic!("{other:?}"),
        }
    }

    const TWO: &str = "base = \"raid1_2009\"";

    fn command(tag: u16, op: DeviceOp, start: u64, sectors: u32) -> Command {
        Command { tag: Tag(tag), op, start: Sector(start), len: Sectors(sectors), fua: false }
    }

    /// Runs until all is done; tags in the order of completion.
    fn drain(d: &mut Mirror) -> Vec<u16> {
        let mut log = Vec::new();
        while let Some(at) = d.next_event() {
            while let Some(tag) = d.poll(at) {
                log.push(tag.0);
            }
        }
        assert!(d.is_idle() && d.members.iter().all(|m| m.in_flight == 0 && m.waiting.is_empty()));
        log
    }

    #[test]
    fn a_stream_stays_where_it_is_then_the_idle_then_the_nearest() {
        let mut b = ReadBalance::new(2);
        let (idle, busy) = (|_: usize| true, |_: usize| false);
        assert_eq!(b.choose(Sector(500), idle), 0, "the first of equals");
        b.read(0, Sector(508));
        assert_eq!(b.choose(Sector(9000), |m| m == 1), 1, "the idle one");
        b.read(1, Sector(9008));
        assert_eq!(b.choose(Sector(9008), |m| m == 0), 1, "it continues, although the other is idle");
        assert_eq!((b.choose(Sector(600), busy), b.choose(Sector(8000), busy)), (0, 1), "the nearest");
        b.write(Sector(7000));
        assert_eq!(b.choose(Sector(8000), busy), 0, "a write moved both to one place");
        assert_eq!(b.choose(Sector(9008), busy), 1, "but the stream is still member 1's");
    }

    #[test]
    fn a_set_takes_as_much_as_its_members_and_two_reads_go_to_two() {
        let mut d = mirror(TWO);
        assert_eq!(d.facts().queue_depth, 2);
        d.submit(Instant::EPOCH, command(0, DeviceOp::Read, 1_000_000, 8));
        d.submit(Instant::EPOCH, command(1, DeviceOp::Read, 90_000_000, 8));
        assert!(!d.can_accept());
        assert!(d.members.iter().all(|m| m.in_flight == 1));
        assert_eq!(drain(&mut d).len(), 2);
        assert_eq!((d.counters.reads, d.counters.bytes_read), (2, 8192));
    }

    #[test]
    fn a_write_is_done_when_both_have_it_and_counts_once() {
        let mut d = mirror("base = \"raid1_2009\"\nmembers = [\"sata2009\", \"ide2004\"]\n");
        d.submit(Instant::EPOCH, command(0, DeviceOp::Write, 5000, 256));
        let at = d.next_event().expect("a write in flight");
        assert_eq!(d.poll(at), None, "the quicker of the two");
        assert_eq!(drain(&mut d), [0]);
        d.submit(Instant::EPOCH + fairhead_core::Duration::from_secs(1), command(1, DeviceOp::Flush, 0, 0));
        assert_eq!(drain(&mut d), [1]);
        let c = d.counters;
        assert_eq!((c.writes, c.bytes_written, c.flushes), (1, 131_072, 1));
        assert_eq!((c.destages, c.destaged_sectors), (2, 512), "both have brought it to the media");
    }

    #[test]
    fn whatever_comes_completes_once() {
        for members in ["[\"sata2009\", \"sata2009\"]", "[\"nas2020\", \"ide2004\", \"flashcard2010\"]"] {
            let text = format!("base = \"raid1_2009\"\nmembers = {members}\n");
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

    fn random_run(text: &str, seed: u64, extra: bool) -> Vec<u16> {
        let mut d = mirror(text);
        let mut state = seed * 2 + 1;
        let mut below = |n: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % n
        };
        let (mut now, mut log, mut sent) = (Instant::EPOCH, Vec::new(), 0);
        let mut in_flight = vec![false; 300];
        while sent < 300 || !d.is_idle() {
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
        let c = d.counters;
        assert_eq!(c.reads + c.writes + c.flushes + c.discards, 300, "seed {seed}: each is counted once");
        log
    }
}
