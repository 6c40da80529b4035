// SPDX-License-Identifier: MIT OR Apache-2.0
//! `load DEVICE SEED TASKS OPERATIONS [FROM_MIB [adjacent]]`: reads and writes a disk, and verifies every
//! byte that it reads. For the guest of `cargo xtask kernel test`; a static program without crates.
//!
//! Each task has 8 MiB of the disk to itself, from FROM_MIB on. It draws what it does: reads and writes of 1
//! to 128 sectors, past the page cache; runs of adjacent ones, which the block layer can merge; and writes
//! through the cache that are then made stable. A sector holds its number, the count of its writes, and words
//! that follow from both; a task remembers the counts. With `adjacent`, the tasks write one region together
//! instead, each the next 4 KiB, and it is verified in the end: what waits can be merged then.
//!
//! `load job FILE PLAN DEVICE` runs a job file; see `jobs.rs`. `load cost DEVICE TASKS REQUESTS BATCH` reads
//! as fast as it goes; see `cost.rs`.
//!
//! The last line says how much was read and written, or what was wrong; then the exit status is 1.

mod aio;
mod cost;
mod jobs;

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const SECTOR: usize = 512;
const REGION: u64 = 8 << 20;
const LONGEST: usize = 128;
const O_DIRECT: i32 = 0o40000;

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % n
    }
}

/// What a sector holds after `count` writes.
fn fill(to: &mut [u8], sector: u64, count: u32) {
    let mut word = sector.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from(count) << 40;
    for (i, bytes) in to.chunks_exact_mut(8).enumerate() {
        let value = match i {
            0 => sector,
            1 => u64::from(count),
            _ => {
                word = word.rotate_left(23).wrapping_mul(0xbf58_476d_1ce4_e5b9).wrapping_add(i as u64);
                word
            }
        };
        bytes.copy_from_slice(&value.to_le_bytes());
    }
}

/// A buffer that a disk can be read into past the cache.
struct Buffer(Vec<u8>, usize);

impl Buffer {
    /// Room for as many sectors.
    fn new(longest: usize) -> Self {
        let bytes = vec![0; longest * SECTOR + 4096];
        let at = bytes.as_ptr().align_offset(4096);
        Self(bytes, at)
    }

    fn sectors(&mut self, n: usize) -> &mut [u8] {
        &mut self.0[self.1..self.1 + n * SECTOR]
    }
}

struct Task {
    direct: File,
    cached: File,
    first: u64,
    counts: Vec<u32>,
    chance: Random,
    buffer: Buffer,
    read: u64,
    written: u64,
}

impl Task {
    fn new(device: &str, seed: u64, number: u64, from: u64) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        Ok(Self {
            cached: options.open(device)?,
            direct: options.custom_flags(O_DIRECT).open(device)?,
            first: (from + number * REGION) / SECTOR as u64,
            counts: vec![0; REGION as usize / SECTOR],
            chance: Random(seed.wrapping_mul(31).wrapping_add(number + 1) | 1),
            buffer: Buffer::new(LONGEST),
            read: 0,
            written: 0,
        })
    }

    fn write(&mut self, cached: bool, at: usize, n: usize) -> io::Result<()> {
        for (i, sector) in self.buffer.sectors(n).chunks_exact_mut(SECTOR).enumerate() {
            self.counts[at + i] += 1;
            fill(sector, self.first + (at + i) as u64, self.counts[at + i]);
        }
        let file = if cached { &self.cached } else { &self.direct };
        self.written += n as u64;
        file.write_all_at(self.buffer.sectors(n), (self.first + at as u64) * SECTOR as u64)
    }

    fn verify(&mut self, at: usize, n: usize) -> io::Result<()> {
        let first = self.first;
        self.direct.read_exact_at(self.buffer.sectors(n), (first + at as u64) * SECTOR as u64)?;
        let mut right = [0; SECTOR];
        for (i, sector) in self.buffer.sectors(n).chunks_exact(SECTOR).enumerate() {
            let (number, count) = (first + (at + i) as u64, self.counts[at + i]);
            if count > 0 {
                fill(&mut right, number, count);
                if sector != right {
                    let found =
                        |i: usize| u64::from_le_bytes(sector[i..i + 8].try_into().unwrap_or_default());
                    return Err(io::Error::other(format!(
                        "sector {number}: want write {count}, found sector {} write {}",
                        found(0),
                        found(8)
                    )));
                }
            }
        }
        self.read += n as u64;
        Ok(())
    }

    /// One drawn operation.
    fn step(&mut self) -> io::Result<()> {
        let n = 1 + self.chance.below(LONGEST as u64) as usize;
        let at = self.chance.below((self.counts.len() - 8 * LONGEST) as u64) as usize;
        match self.chance.below(8) {
            0..=2 => self.verify(at, n),
            3..=5 => self.write(false, at, n),
            6 => {
                // A run of short neighbours, which the cache writes together: whole pages, so that nothing
                // has to be read first.
                let at = at / 8 * 8;
                for i in 0..32 {
                    self.write(true, at + i * 8, 8)?;
                }
                self.cached.sync_data()?;
                self.verify(at, LONGEST)?;
                self.verify(at + LONGEST, LONGEST)
            }
            _ => (0..4).try_for_each(|i| self.verify(at + i * 8, 8)),
        }
    }

    fn run(&mut self, operations: u64) -> io::Result<()> {
        (0..operations).try_for_each(|_| self.step())?;
        (0..self.counts.len() / LONGEST).try_for_each(|i| self.verify(i * LONGEST, LONGEST))
    }
}

/// One of several tasks that write one region together, once, up to `most` pieces.
fn adjacent(mut task: Task, next: &AtomicUsize, most: u64) -> io::Result<(u64, u64)> {
    const PIECE: usize = 8;
    let pieces = task.counts.len() / PIECE;
    loop {
        let i = next.fetch_add(1, Ordering::Relaxed);
        if i >= pieces.min(most as usize) {
            return Ok((task.read, task.written));
        }
        // Of 16 pieces the even ones first: the odd ones then close gaps between requests that wait.
        let (group, j) = (i / 16 * 16, i % 16);
        let piece = group + if j < 8 { 2 * j } else { 2 * j - 15 };
        task.write(false, piece * PIECE, PIECE)?;
    }
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().collect();
    match args.get(1).map(String::as_str) {
        Some("job") => return jobs::main(&args[2..]),
        Some("cost") => return cost::main(&args[2..]),
        _ => {}
    }
    let number = |i: usize, default| args.get(i).and_then(|a| a.parse::<u64>().ok()).unwrap_or(default);
    let (Some(device), seed, tasks, operations) = (args.get(1), number(2, 1), number(3, 2), number(4, 100))
    else {
        eprintln!("usage: load DEVICE SEED TASKS OPERATIONS [FROM_MIB [adjacent]]");
        return ExitCode::from(2);
    };
    let from = number(5, 0) << 20;
    let together = args.get(6).is_some_and(|a| a == "adjacent");
    let next = Arc::new(AtomicUsize::new(0));
    let threads: Vec<_> = (0..tasks)
        .map(|i| {
            let (device, next) = (device.clone(), next.clone());
            std::thread::spawn(move || {
                if together {
                    return adjacent(Task::new(&device, seed, 0, from)?, &next, operations);
                }
                let mut task = Task::new(&device, seed, i, from)?;
                task.run(operations).map(|()| (task.read, task.written))
            })
        })
        .collect();
    let (mut read, mut written, mut status) = (0, 0, ExitCode::SUCCESS);
    for thread in threads {
        match thread.join() {
            Ok(Ok((r, w))) => (read, written) = (read + r, written + w),
            Ok(Err(error)) => {
                println!("load: {device}: {error}");
                status = ExitCode::FAILURE;
            }
            Err(_) => status = ExitCode::FAILURE,
        }
    }
    if together {
        let verified = Task::new(device, seed, 0, from).and_then(|mut task| {
            let written = (operations as usize / 16 * 16 * 8).min(task.counts.len());
            task.counts[..written].fill(1);
            task.run(0).map(|()| task.read)
        });
        match verified {
            Ok(n) => read += n,
            Err(error) => {
                println!("load: {device}: {error}");
                status = ExitCode::FAILURE;
            }
        }
    }
    println!("load: {device}: {read} sectors verified, {written} written");
    status
}
