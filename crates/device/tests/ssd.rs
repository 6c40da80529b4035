//! Solid-state devices do what the table of presets says they do, and what data sheets say where the table is silent.
//!
//! A closed loop: so many commands outstanding, each followed by the next one 3 us after its completion, which is what the
//! host of the table took.
//= Fairhead device notes 2.2 to 2.4, 3.4 type=test

mod host;

use fairhead_core::units::{Duration, Instant, Sector, Sectors, Tag};
use fairhead_device::{Command, Device, DeviceOp, DeviceParams, SsdParams};
use host::Rng;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

fn ssd(name: &str) -> SsdParams {
    match DeviceParams::preset(name) {
        Ok(DeviceParams::Ssd(p)) => p,
        other => panic!("{name}: {other:?}"),
    }
}

fn device(p: &SsdParams) -> Device {
    Device::new(&DeviceParams::Ssd(p.clone())).unwrap_or_else(|e| panic!("{e}"))
}

/// What the host does.
#[derive(Clone, Copy)]
struct Load {
    op: DeviceOp,
    kib: u32,
    depth: u16,
    /// Sectors from the start of the device that are used; none: in sequence from its start.
    random_in: Option<u64>,
}

const HOST: Duration = Duration::from_us(3);

/// A device and a host that keeps it busy.
struct Loop {
    dev: Device,
    now: Instant,
    rng: Rng,
    at: u64,
}

impl Loop {
    fn new(p: &SsdParams) -> Self {
        Self { dev: device(p), now: Instant::EPOCH, rng: Rng(7), at: 0 }
    }

    fn next_place(&mut self, load: Load) -> Sector {
        let sectors = u64::from(load.kib) * 2;
        match load.random_in {
            Some(range) => Sector(self.rng.below(range / sectors) * sectors),
            None => {
                if self.at + sectors > self.dev.facts().capacity {
                    self.at = 0;
                }
                self.at += sectors;
                Sector(self.at - sectors)
            }
        }
    }

    /// Runs `commands` and lets them end. Answers commands per second.
    fn run(&mut self, load: Load, commands: u64) -> u64 {
        let begin = self.now;
        let (mut ready, mut sent, mut done) = (BinaryHeap::new(), 0, 0);
        for tag in 0..load.depth {
            ready.push(Reverse((self.now, tag)));
        }
        while done < commands {
            let host = ready.peek().filter(|_| sent < commands).map(|r| r.0.0);
            let next = [host, self.dev.next_event()].into_iter().flatten().min();
            self.now = next.unwrap_or_else(|| panic!("stuck at {:?}", self.now));
            while let Some(tag) = self.dev.poll(self.now) {
                done += 1;
                ready.push(Reverse((self.now + HOST, tag.0)));
            }
            while let Some(Reverse((at, tag))) = ready.peek().copied()
                && at <= self.now
                && sent < commands
            {
                ready.pop();
                let (start, len) = (self.next_place(load), Sectors(load.kib * 2));
                self.dev.submit(self.now, Command { tag: Tag(tag), op: load.op, start, len, fua: false });
                sent += 1;
            }
        }
        commands * 1_000_000_000 / self.now.since(begin).as_ns()
    }
}

fn reads(p: &SsdParams, kib: u32, depth: u16) -> u64 {
    let random_in = (kib == 4).then_some(p.capacity);
    let load = Load { op: DeviceOp::Read, kib, depth, random_in };
    Loop::new(p).run(load, if depth == 1 || kib > 4 { 3_000 } else { 30_000 })
}

#[track_caller]
fn within(what: &str, ours: u64, table: u64, percent: u64) {
    println!("{what}: {ours}, table {table}");
    assert!(100 * ours.abs_diff(table) <= percent * table, "{what}: {ours}, table {table}");
}

/// The rows "model gives": 4 KiB alone and at most, MB/s of 128 KiB in sequence alone and with others.
///
/// Two differ for `nvme`. 128 KiB take 107.6 us of which 38.6 us are on the link, so that it takes three to fill it. And the
/// table's 367k reads a second come from channels that serve pages in the order of their commands; in the order in which
/// they are ready, 128 commands at once do what the command processor can, 1/1.55 us. The data sheet says 600k.
//= deviates ssd-nvme-depth
//= deviates ssd-channel-order
#[test]
fn presets_read_as_fast_as_the_table_says() {
    for (name, depth, alone, most, seq_alone, seq_most) in [
        ("plextor_m5s", 31, 8000, 90_900, 283, 400),
        ("sata_ssd", 31, 12_500, 98_000, 391, 550),
        ("emmc51", 1, 4800, 4800, 183, 183),
        ("microsd_a1", 1, 2100, 2100, 63, 63),
        ("nvme", 128, 18_200, 645_000, 1218, 3400),
    ] {
        let p = SsdParams { prefetch: 0, ..ssd(name) };
        within(&format!("{name}, 4 KiB alone"), reads(&p, 4, 1), alone, 3);
        within(
            &format!("{name}, 128 KiB alone, MB/s"),
            reads(&p, 128, 1) * 131_072 / 1_000_000,
            seq_alone,
            3,
        );
        for d in [if name == "nvme" { 3 } else { 2 }, 8] {
            let p = SsdParams { queue_depth: p.queue_depth.min(d), ..p.clone() };
            let mb_s = reads(&p, 128, p.queue_depth) * 131_072 / 1_000_000;
            within(&format!("{name}, 128 KiB {d} at once, MB/s"), mb_s, seq_most, 3);
        }
        within(&format!("{name}, 4 KiB {depth} at once"), reads(&p, 4, depth), most, 3);
    }
}
