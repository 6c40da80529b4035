//! A storage engine's two kinds of work on one disk: queries that a program waits for, and a compaction in
//! the background.
//!
//! ```text
//! cargo run --release -p fairhead-live --example compaction [FILE]
//! ```
//!
//! On an emulated disk (a 7200 rpm drive of 2009, in real time), for each scheduler: how long a random read
//! of 4 KiB takes while a compaction reads and rewrites the file in pieces of 1 MiB, and how fast the
//! compaction is. Without a file it makes one of 64 MiB and removes it afterwards.

use fairhead_live::{Disk, DiskOptions};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const MIB: u64 = 1 << 20;
const SECONDS: u64 = 3;

fn main() -> Result<(), Box<dyn Error>> {
    let given = std::env::args_os().nth(1).map(PathBuf::from);
    let path = given
        .clone()
        .unwrap_or_else(|| std::env::temp_dir().join(format!("compaction-{}", std::process::id())));
    if given.is_none() {
        std::fs::write(&path, vec![1; 64 * MIB as usize])?;
    }
    println!("scheduler        query, mean ms     max ms    compaction MB/s");
    let outcome =
        ["noop", "deadline", "cfq", "bfq", "noop+groups"].iter().try_for_each(|name| measure(name, &path));
    if given.is_none() {
        std::fs::remove_file(&path)?;
    }
    outcome
}

fn measure(scheduler: &str, path: &Path) -> Result<(), Box<dyn Error>> {
    let model = fairhead_device::DeviceParams::preset("sata2009")?;
    let disk = Disk::open(DiskOptions::new([path]).scheduler(scheduler)?.emulate(model))?;
    let size = disk.size(0).unwrap_or(0) / MIB * MIB;
    disk.set_weight("queries", 800)?;
    let (stop, mut written) = (AtomicBool::new(false), 0);
    let (queries, compaction) = (disk.client("queries")?, disk.client("compaction")?);
    let waits = std::thread::scope(|scope| {
        let compacting = scope.spawn(|| -> Result<u64, fairhead_live::Errno> {
            let mut written = 0;
            while !stop.load(Ordering::Relaxed) {
                let at = written % size;
                let data = compaction.read(0, at, MIB as u32).wait()?;
                compaction.write(0, at, data).wait()?;
                written += MIB;
            }
            Ok(written)
        });
        let waits = query(&queries, size);
        stop.store(true, Ordering::Relaxed);
        written = compacting.join().expect("does not panic")?;
        waits
    })?;
    let mean = waits.iter().sum::<Duration>() / waits.len().max(1) as u32;
    let max = waits.iter().max().copied().unwrap_or_default();
    let ms = |d: Duration| d.as_secs_f64() * 1000.0;
    println!(
        "{scheduler:<16} {:>14.1} {:>10.1} {:>18.1}",
        ms(mean),
        ms(max),
        (2 * written / SECONDS) as f64 / 1e6
    );
    Ok(())
}

/// Random reads of 4 KiB, each after the one before.
#[allow(clippy::disallowed_methods, reason = "real time is what this is about")]
fn query(client: &fairhead_live::Client, size: u64) -> Result<Vec<Duration>, fairhead_live::Errno> {
    let (begin, mut waits, mut at) = (Instant::now(), Vec::new(), 12_345_u64);
    while begin.elapsed() < Duration::from_secs(SECONDS) {
        at = at.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let start = Instant::now();
        let page = client.read(0, (at >> 16) % (size / 4096) * 4096, 4096).wait()?;
        waits.push(start.elapsed());
        assert_eq!(page.len(), 4096);
    }
    Ok(waits)
}
