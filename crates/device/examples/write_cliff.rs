//! Writes solid-state drives through, in sequence, and says where they get slower.
//!
//! ```text
//! cargo run --release -p fairhead-device --example write_cliff             the NVMe presets, erased
//! cargo run --release -p fairhead-device --example write_cliff my.toml     a disk file or preset, as full as it says
//! ```
//!
//! 1 MiB at a time, eight at once, and the speed of each thousandth of the drive. A *cliff* is where the mean
//! of ten differs most, and by more than a fifth, from that of the ten before.

use fairhead_core::units::{Instant, Sector, Sectors, Tag};
use fairhead_device::{Command, Device, DeviceOp, DeviceParams};

const DEPTH: u16 = 8;
const LEN: u32 = 2048;

/// MB/s of each thousandth of the drive.
fn written_through(params: &DeviceParams) -> Result<Vec<u64>, Box<dyn std::error::Error>> {
    let mut dev = Device::new(params)?;
    let facts = dev.facts();
    let len = LEN.min(facts.max_request.0);
    let part = facts.capacity / 1000 / u64::from(len) * u64::from(len);
    let (mut now, mut begin, mut at) = (Instant::EPOCH, Instant::EPOCH, 0);
    let mut free: Vec<u16> = (0..DEPTH.min(facts.queue_depth)).collect();
    let mut speeds = Vec::new();
    while speeds.len() < 1000 {
        while let Some(tag) = free.pop() {
            let (tag, start) = (Tag(tag), Sector(at));
            dev.submit(now, Command { tag, op: DeviceOp::Write, start, len: Sectors(len), fua: false });
            at += u64::from(len);
            if at % part == 0 {
                let ns = now.since(begin).as_ns().max(1);
                speeds.push(part * 512 * 1000 / ns);
                begin = now;
            }
        }
        now = dev.next_event().ok_or("the drive has stopped")?;
        while let Some(tag) = dev.poll(now) {
            free.push(tag.0);
        }
    }
    Ok(speeds)
}

/// Thousandths on either side of a cliff.
const WINDOW: usize = 10;

/// Where the speed changes for good, in thousandths; the beginning first, the end last.
fn cliffs(speeds: &[u64]) -> Vec<usize> {
    let mean = |s: &[u64]| s.iter().sum::<u64>() / WINDOW as u64;
    // Thousandths by which the speed behind differs from that before.
    let change = |i: usize| {
        let (before, behind) = (mean(&speeds[i - WINDOW..i]), mean(&speeds[i..i + WINDOW]));
        before.abs_diff(behind) * 1000 / before.max(behind).max(1)
    };
    let places = WINDOW..speeds.len() - WINDOW;
    let changes: Vec<u64> = places.clone().map(change).collect();
    let steepest = |i: &usize| {
        let at = i - WINDOW;
        let near = &changes[at.saturating_sub(WINDOW)..changes.len().min(at + WINDOW)];
        changes[at] > 200 && near.iter().max() == Some(&changes[at])
    };
    [0].into_iter().chain(places.filter(steepest)).chain([speeds.len()]).collect()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let names: Vec<String> = std::env::args().skip(1).collect();
    let mut drives = Vec::new();
    for name in &names {
        drives.push(if name.ends_with(".toml") {
            DeviceParams::from_toml(&std::fs::read_to_string(name)?, name)?
        } else {
            DeviceParams::preset(name)?
        });
    }
    if names.is_empty() {
        for name in ["nvme", "980pro", "pcie4", "pcie5", "dramless"] {
            let text = format!("base = \"{name}\"\nname = \"{name}\"\nfill = 0.0\n");
            drives.push(DeviceParams::from_toml(&text, name)?);
        }
    }
    for params in drives {
        let speeds = written_through(&params)?;
        let gb = Device::new(&params)?.facts().capacity * 512 / 1000;
        println!("{}", params.name());
        for pair in cliffs(&speeds).windows(2) {
            let ns: u64 = speeds[pair[0]..pair[1]].iter().map(|s| 1_000_000_000 / s.max(&1)).sum();
            let mb_s = (pair[1] - pair[0]) as u64 * 1_000_000_000 / ns.max(1);
            let place = |i: usize| i as u64 * gb / 1_000_000_000;
            println!("  {:5} to {:5} GB: {mb_s:6} MB/s", place(pair[0]), place(pair[1]));
        }
    }
    Ok(())
}
