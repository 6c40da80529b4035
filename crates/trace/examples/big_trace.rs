//! Writes a trace of any size, for measurements: blktrace's binary form of a machine with a backup, a
//! database, a log and its flusher.
//!
//! ```text
//! cargo run --release -p fairhead-trace --example big_trace -- 10240 big.blktrace.0      # MiB, file
//! ```
//!
//! Some 60 requests a second, each with its issue and its completion: 144 bytes. The same size gives the same
//! bytes.

use fairhead_core::{Duration, Sector, TaskId};
use fairhead_trace::format::blktrace::Writer;
use fairhead_trace::{Flags, Names, Op, Record};
use std::fs::File;
use std::io::{self, BufWriter};

/// Queue, issue and completion.
const BYTES_EACH: u64 = 3 * 48;

/// xorshift64*.
struct Rng(u64);

impl Rng {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % n
    }
}

fn main() -> io::Result<()> {
    let mut args = std::env::args().skip(1);
    let (Some(mib), Some(path)) = (args.next().and_then(|n| n.parse::<u64>().ok()), args.next()) else {
        return Err(io::Error::other("usage: big_trace MIB FILE"));
    };
    let mut names = Names::default();
    names.add_device("8,0").map_err(io::Error::other)?;
    for (pid, name) in
        [(100, "tar"), (200, "postgres"), (300, "postgres"), (400, "jbd2/sda1-8"), (500, "kworker/u8:1")]
    {
        names.name_task(TaskId(pid), name);
    }
    let mut writer = Writer::new(BufWriter::with_capacity(1 << 20, File::create(path)?));
    let (mut rng, mut at) = (Rng(42), Duration::ZERO);
    let (mut backup, mut log) = (0, 1 << 20);
    for _ in 0..mib * (1 << 20) / BYTES_EACH {
        at += Duration::from_us(rng.below(32_000));
        let record = |pid, op, sector, sectors, flags, took| Record {
            task: TaskId(pid),
            flags,
            issued: Some(at + Duration::from_us(5)),
            completed: Some(at + Duration::from_us(10 + took)),
            ..Record::new(at, op, Sector(sector), sectors)
        };
        let record = match rng.below(10) {
            0..4 => {
                backup = (backup + 256) % 1_000_000_000;
                record(100, Op::Read, backup, 256, Flags::NONE, 1500)
            }
            n @ 4..7 => {
                let sector = 1_000_000_000 + rng.below(40_000_000) * 16;
                record(
                    if n % 2 == 0 { 200 } else { 300 },
                    Op::Read,
                    sector,
                    16,
                    Flags::NONE,
                    4000 + rng.below(9000),
                )
            }
            7 => {
                log = (1 << 20) + (log + 16) % (1 << 20);
                record(400, Op::Write, log, 16, Flags::SYNC | Flags::FUA, 9000)
            }
            _ => record(
                500,
                Op::Write,
                1_000_000_000 + rng.below(1 << 26) * 8,
                8,
                Flags::NONE,
                rng.below(30_000),
            ),
        };
        writer.write(&record, &names)?;
    }
    writer.finish()
}
