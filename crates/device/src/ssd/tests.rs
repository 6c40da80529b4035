//! Properties of the device under random commands, checked from the inside after every step, and small timelines whose
//! numbers are worked out in the test.

use super::*;
use crate::params::DeviceParams;

fn preset(name: &str) -> SsdParams {
    match DeviceParams::preset(name) {
        Ok(DeviceParams::Ssd(p)) => p,
        other => panic!("{name}: {other:?}"),
    }
}

fn ssd(p: &SsdParams) -> Ssd {
    Ssd::new(p).unwrap_or_else(|e| panic!("{e}"))
}

fn command(tag: u16, op: DeviceOp, start: u64, len: u32) -> Command {
    Command { tag: Tag(tag), op, start: Sector(start), len: Sectors(len), fua: false }
}

impl Ssd {
    /// What must hold at any time.
    fn check(&self) {
        self.buffer.check();
        self.dies.check();
        assert!(self.done.len() <= usize::from(self.in_flight), "no more completions than commands");
        assert!(self.slots.len() <= usize::from(self.facts.queue_depth), "no more slots than commands");
        assert!(!self.someone_waits() || self.next_event().is_some(), "nobody waits without an event");
        assert_eq!(
            self.slots.len() - self.free.len() + self.done.len() + usize::from(self.held_flush.is_some()),
            usize::from(self.in_flight),
            "every command is somewhere, once"
        );
    }
}

/// Xorshift: a fixed sequence for each seed.
struct Rng(u64);

impl Rng {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % n
    }
    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// A drive with some of the options, small enough that commands meet each other.
fn random_params(r: &mut Rng) -> SsdParams {
    let mut p = preset(["plextor_m5s", "sata_ssd", "nvme", "emmc51", "microsd_a1"][r.below(5) as usize]);
    p.capacity = 2048 + r.below(100_000);
    p.channels = 1 + r.below(4) as u32;
    p.dies_per_channel = 1 + r.below(4) as u32;
    p.planes = 1 + r.below(4) as u32;
    p.pages_per_block = 1 + r.below(20) as u32;
    p.write_buffer = u64::from(p.planes) * p.page.bytes() * (2 + r.below(20));
    p.queue_depth = [1, 2, 8, 32, 200][r.below(5) as usize];
    p.t_suspend = Duration::from_us(r.below(2) * r.below(100));
    p.flush_queued = r.chance(50);
    p.power_loss_protection = r.chance(10);
    p.spare_permille = r.below(300) as u32;
    if r.chance(50) {
        p.slc = (u64::from(p.planes) * p.page.bytes() * (1 + r.below(30))).min(p.capacity * 512);
    } else {
        p.slc = 0;
    }
    p.slc_idle = Duration::from_us(r.below(5000));
    if p.au.0 == 0 {
        p.cmd_servers = 1 + r.below(3) as u32;
    }
    if r.chance(10) {
        (p.t_cmd, p.t_fix) = (Duration::ZERO, Duration::ZERO);
    }
    p
}

/// What a run of random commands gave: tag and instant of each completion.
fn random_run(seed: u64, commands: u32) -> Vec<(u16, u64)> {
    let mut r = Rng(seed);
    let p = random_params(&mut r);
    let mut dev = ssd(&p);
    let (mut now, mut sent, mut log) = (Instant::EPOCH, 0, Vec::new());
    let mut free: Vec<u16> = (0..p.queue_depth).rev().collect();
    let mut at = 0;
    let (write_percent, pause_percent) = (r.below(100), r.below(30));
    while log.len() < commands as usize {
        let before = sent;
        while sent < commands && dev.can_accept() && !r.chance(10) {
            let tag = free.pop().unwrap_or_else(|| panic!("seed {seed}: room but no tag"));
            let op = match r.below(100) {
                0..3 => DeviceOp::Flush,
                3..6 => DeviceOp::Discard,
                n if n < write_percent => DeviceOp::Write,
                _ => DeviceOp::Read,
            };
            let longest = if r.chance(10) { 2000 } else { 32 };
            let len = 1 + r.below(longest).min(p.capacity - 1);
            if !r.chance(30) || at + len > p.capacity {
                at = r.below(p.capacity - len + 1);
            }
            dev.submit(now, Command { fua: r.chance(5), ..command(tag, op, at, len as u32) });
            dev.check();
            (at, sent) = (at + len, sent + 1);
        }
        let next = dev.next_event();
        if next.is_none() || r.chance(pause_percent) {
            // Time passes for the host, but never beyond the device's next event.
            let longest = if r.chance(5) { 20_000_000 } else { 30_000 };
            let pause = now + Duration::from_ns(r.below(longest));
            now = next.map_or(pause, |n| n.min(pause));
        } else if let Some(next) = next {
            assert!(
                next > now || (next == now && sent > before),
                "seed {seed}: {next:?} after a poll at {now:?}"
            );
            assert!(next.since(now) < Duration::from_secs(10), "seed {seed}: {next:?} is no finite time");
            now = next;
        }
        while let Some(tag) = dev.poll(now) {
            assert!(!free.contains(&tag.0), "seed {seed}: {tag:?} completes twice");
            free.push(tag.0);
            log.push((tag.0, now.as_ns()));
            dev.check();
        }
        dev.check();
    }
    assert!(dev.is_idle() && dev.next_event().is_none() && dev.poll(now + Duration::from_secs(9)).is_none());
    assert_eq!(
        dev.counters.flushes + dev.counters.discards + dev.counters.reads + dev.counters.writes,
        u64::from(commands)
    );
    log
}

#[test]
fn random_commands_each_complete_once_and_the_same_way_again() {
    for seed in 1..300 {
        let log = random_run(seed * 0x9e37_79b9, 400);
        if seed % 10 == 0 {
            assert_eq!(log, random_run(seed * 0x9e37_79b9, 400), "seed {seed}: deterministic");
        }
    }
}
