//! A small closed-loop host for tests: clients that think, submit one request and wait for it. Not a model of
//! a kernel: requests are issued first come, first served, which for closed loops with one request each is
//! taking turns.

#![allow(dead_code, reason = "each test file uses a part")]

use fairhead_core::units::{Duration, Instant, Sector, Sectors, Tag};
use fairhead_device::{Command, Device, DeviceOp, DeviceParams, DiskParams};
use std::collections::VecDeque;

/// A preset that is a disk.
pub(crate) fn disk(name: &str) -> DiskParams {
    match DeviceParams::preset(name) {
        Ok(DeviceParams::Disk(p)) => p,
        other => panic!("{name}: {other:?}"),
    }
}

/// A fixed sequence of numbers.
pub(crate) struct Rng(pub(crate) u64);

impl Rng {
    //= Marsaglia 2003, Xorshift RNGs
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(n)) >> 64) as u64
    }
}

/// What the clients do.
pub(crate) struct Load {
    pub(crate) clients: u64,
    pub(crate) op: DeviceOp,
    pub(crate) sectors: u64,
    pub(crate) random: bool,
    /// From being woken to the next request.
    pub(crate) think: Duration,
    /// First sector of the first file.
    pub(crate) from: u64,
    /// Sectors per file; 0: all share the whole disk.
    pub(crate) file: u64,
}

/// The calibrated think time of the 2004 machine, and what allocating a new block costs it.
//= docs/reference/devices.md#31-ide2004
const THINK: Duration = Duration::from_ns(98_400);
const ALLOCATE: Duration = Duration::from_us(113);
const GIB: u64 = 2 << 20;

impl Load {
    pub(crate) fn sequential_reads(clients: u64) -> Self {
        let (sectors, op) = (8, DeviceOp::Read);
        Self { clients, op, sectors, random: false, think: THINK, from: 20_000, file: GIB }
    }
    pub(crate) fn sequential_writes(clients: u64) -> Self {
        Self { op: DeviceOp::Write, think: THINK + ALLOCATE, ..Self::sequential_reads(clients) }
    }
    /// Runs of 4 KiB anywhere on the disk.
    pub(crate) fn random_reads(clients: u64) -> Self {
        Self { random: true, from: 0, file: 0, ..Self::sequential_reads(clients) }
    }
}

pub(crate) struct Figures {
    pub(crate) kib_per_s: u64,
    pub(crate) iops: u64,
    pub(crate) completed: u64,
}

pub(crate) struct Host {
    pub(crate) dev: Device,
    rng: Rng,
    capacity: u64,
}

impl Host {
    pub(crate) fn new(p: &DiskParams) -> Self {
        let dev = Device::new(&DeviceParams::Disk(p.clone())).unwrap_or_else(|e| panic!("{e}"));
        let capacity = dev.facts().capacity;
        Self { dev, rng: Rng(0x9e37_79b9_7f4a_7c15), capacity }
    }

    /// From completion to the next issue: 0.020 ms and an exponential part of mean 0.005 ms.
    fn irq(&mut self) -> Duration {
        let u = (self.rng.below(1 << 20) + 1) as f64 / (1u64 << 20) as f64;
        Duration::from_ns(20_000 + (-5_000.0 * u.ln()) as u64)
    }

    pub(crate) fn run(&mut self, load: &Load, seconds: u64) -> Figures {
        let n = load.clients as usize;
        let start = Instant::EPOCH;
        let stop = start + Duration::from_secs(seconds);
        let mut at = vec![0u64; n];
        // Clients that will submit, clients whose request waits to be issued.
        let mut thinking: Vec<(Instant, usize)> = (0..n).map(|c| (start, c)).collect();
        let mut queue: VecDeque<usize> = VecDeque::new();
        // When the queue may be run again, and which thread it wakes: after each interrupt.
        let mut irqs: VecDeque<(Instant, usize)> = VecDeque::new();
        let mut now = start;
        let mut completed = 0;
        while now < stop {
            let think = thinking.iter().copied().min();
            let irq = irqs.iter().copied().min();
            let dev = self.dev.next_event();
            let next = [think.map(|t| t.0), irq.map(|t| t.0), dev].into_iter().flatten().min();
            now = next.unwrap_or_else(|| panic!("stuck at {now:?}"));
            // Device first, then the queue, then the processes.
            if dev == Some(now) {
                while let Some(tag) = self.dev.poll(now) {
                    completed += 1;
                    let t = now + self.irq();
                    irqs.push_back((t, usize::from(tag.0)));
                }
                continue;
            }
            let mut run = irqs.is_empty();
            if let Some((t, c)) = irq
                && t == now
            {
                irqs.retain(|i| i.1 != c);
                thinking.push((now + load.think, c));
                run = true;
            } else if let Some((t, c)) = think
                && t == now
            {
                thinking.retain(|i| i.1 != c);
                queue.push_back(c);
                run = self.dev.facts().queue_depth > 1 || irqs.is_empty();
            }
            while run
                && self.dev.can_accept()
                && let Some(c) = queue.pop_front()
            {
                let (from, size) = match load.file {
                    0 => (0, self.capacity),
                    file => (load.from + c as u64 * file, file),
                };
                if load.random {
                    at[c] = self.rng.below(size / load.sectors) * load.sectors;
                } else if at[c] + load.sectors > size {
                    at[c] = 0;
                }
                let (tag, op, len) = (Tag(c as u16), load.op, Sectors(load.sectors as u32));
                self.dev.submit(now, Command { tag, op, start: Sector(from + at[c]), len, fua: false });
                at[c] += load.sectors;
            }
        }
        let kib = completed * load.sectors / 2;
        Figures { kib_per_s: kib / seconds, iops: completed / seconds, completed }
    }
}
