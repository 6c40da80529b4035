//! What switching schedulers costs those who do I/O meanwhile: how long requests take, and for how long
//! nothing at all is answered.
//!
//! `cargo run --release --example switching -- FILE [SECONDS]`
//!
//! Four threads read at random, 16 requests each at a time. Runs with and without changes take turns; in
//! those with, a scheduler is switched and ten weights are changed so often that it comes to 1,000 and
//! 10,000.

#![allow(clippy::disallowed_methods, reason = "it measures real time")]

use fairhead_core::sched::any::preset;
use fairhead_live::{Disk, DiskOptions};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const THREADS: u64 = 4;
const DEPTH: usize = 16;
const BLOCK: u32 = 4096;
const SWITCHES: u32 = 1000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let Some(path) = args.first() else { return Err("switching FILE [SECONDS]".into()) };
    let seconds = args.get(1).map_or(Ok(5), |a| a.parse())?;
    let disk = Disk::open(DiskOptions::new([path]).scheduler("bfq")?.rotational(false).depth(32))?;
    println!("{:<8} {:>9} {:>27} {:>27}", "", "", "request us: p50 p99 max", "pause us: p50 p99 max");
    for _ in 0..3 {
        for changes in [false, true] {
            run(&disk, Duration::from_secs(seconds), changes)?;
        }
    }
    Ok(())
}

fn run(disk: &Disk, time: Duration, changes: bool) -> Result<(), Box<dyn std::error::Error>> {
    let stop = &AtomicBool::new(false);
    let mut done =
        std::thread::scope(|scope| -> Result<Vec<(Instant, Duration)>, Box<dyn std::error::Error>> {
            let workers: Vec<_> = (0..THREADS).map(|t| scope.spawn(move || load(disk, t, stop))).collect();
            if changes {
                change(disk, time)?;
            } else {
                std::thread::sleep(time);
            }
            stop.store(true, Ordering::Relaxed);
            Ok(workers.into_iter().flat_map(|w| w.join().expect("a worker")).collect())
        })?;
    done.sort_unstable();
    let mut pauses: Vec<Duration> = done.windows(2).map(|w| w[1].0 - w[0].0).collect();
    let mut took: Vec<Duration> = done.iter().map(|d| d.1).collect();
    let label = if changes { "changes" } else { "quiet" };
    println!("{label:<8} {:>9} {:>27} {:>27}", took.len(), shown(&mut took), shown(&mut pauses));
    Ok(())
}

/// A thousand switches and ten thousand weights, evenly over the time.
fn change(disk: &Disk, time: Duration) -> Result<(), fairhead_live::Error> {
    let start = Instant::now();
    for i in 0..SWITCHES {
        let name = ["cfq", "bfq", "deadline", "kyber", "noop"][i as usize % 5];
        disk.switch((preset(name).expect("a preset").config)())?;
        for j in 0..10 {
            disk.set_weight(&format!("group{}", j % THREADS), 100 + (i % 9 * 100 + j as u32) as u16)?;
        }
        std::thread::sleep((time * (i + 1) / SWITCHES).saturating_sub(start.elapsed()));
    }
    Ok(())
}

/// Requests: when they were done, and how long they took.
fn load(disk: &Disk, thread: u64, stop: &AtomicBool) -> Vec<(Instant, Duration)> {
    let client = disk.client(&format!("group{thread}")).expect("a client");
    let blocks = disk.size(0).expect("a file") / u64::from(BLOCK);
    let mut chance = thread * 77 + 1;
    let mut ask = || {
        chance ^= chance << 13;
        chance ^= chance >> 7;
        chance ^= chance << 17;
        (Instant::now(), client.read(0, chance % blocks * u64::from(BLOCK), BLOCK))
    };
    let mut under_way: std::collections::VecDeque<_> = (0..DEPTH).map(|_| ask()).collect();
    let mut done = Vec::new();
    while let Some((start, read)) = under_way.pop_front() {
        read.wait().expect("a read");
        let now = Instant::now();
        done.push((now, now - start));
        if !stop.load(Ordering::Relaxed) {
            under_way.push_back(ask());
        }
    }
    done
}

fn shown(times: &mut [Duration]) -> String {
    times.sort_unstable();
    let at = |part: f64| times[((times.len() - 1) as f64 * part) as usize].as_micros();
    format!("{} {} {}", at(0.5), at(0.99), at(1.0))
}
