//! Loads a vhost-user-blk device without a virtual machine: random reads or writes of one size, as many at a
//! time as are asked for, by one thread.
//!
//! `cargo run --release -p fairhead-live --example vhost_load -- SOCKET [DEPTH] [BYTES] [SECONDS] [r|w]
//! [PID]`
//!
//! Prints requests per second, the median and 99th percentile of their latency; and with a process's id,
//! the time that this process was running for each request.

#![allow(clippy::disallowed_methods, reason = "real time is what is measured")]

#[path = "../tests/vhost_guest/mod.rs"]
mod vhost_guest;

use std::path::Path;
use std::time::{Duration, Instant};
use vhost_guest::{Guest, READ, SLOTS, WRITE, Wishes};

/// The time that a process has been running, in microseconds.
fn ran(pid: Option<&str>) -> f64 {
    let Some(pid) = pid else { return 0.0 };
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let ns = threads.filter_map(|thread| {
        let text = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<f64>().ok()
    });
    ns.sum::<f64>() / 1000.0
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |i: usize, usual: u64| args.get(i).map_or(usual, |a| a.parse().expect("a number"));
    let Some(socket) = args.first() else {
        return eprintln!("write the device's socket");
    };
    let (depth, len, seconds) = (number(1, 32), number(2, 4096), number(3, 5));
    assert!((1..=u64::from(SLOTS)).contains(&depth), "1 to {SLOTS} at a time");
    let kind = if args.get(4).is_some_and(|a| a == "w") { WRITE } else { READ };
    let pid = args.get(5).map(String::as_str);
    // Not every server keeps marks of what is in flight.
    let wishes = Wishes { inflight: false, ..Wishes::default() };
    let mut guest = Guest::connect(Path::new(socket), wishes);
    let sectors = u64::from_le_bytes(guest.config()[..8].try_into().expect("eight bytes"));
    let places = sectors * 512 / len;
    let memory = guest.memory.clone();
    let queue = &mut guest.queues[0];
    let mut began = [Instant::now(); SLOTS as usize];
    let mut latencies = Vec::with_capacity(1 << 22);
    let mut chance = 0x9e37_79b9_7f4a_7c15u64;
    let (start, before) = (Instant::now(), ran(pid));
    let end = start + Duration::from_secs(seconds);
    let mut count = 0u64;
    while Instant::now() < end {
        while queue.in_flight() < depth as usize {
            chance ^= chance << 13;
            chance ^= chance >> 7;
            chance ^= chance << 17;
            let slot =
                queue.submit(&memory, kind, 0, chance % places * len / 512, len as u32).expect("a slot");
            began[usize::from(slot)] = Instant::now();
        }
        queue.kick(&memory);
        let mut done = queue.wait(&memory, Duration::from_secs(30)).expect("an answer");
        loop {
            assert_eq!(done.status, 0, "the server says that a request failed");
            latencies.push(began[usize::from(done.slot)].elapsed().as_nanos() as u64);
            count += 1;
            match queue.take(&memory) {
                Some(next) => done = next,
                None => break,
            }
        }
    }
    let took = start.elapsed().as_secs_f64();
    latencies.sort_unstable();
    let at = |percent: usize| latencies[(latencies.len() - 1) * percent / 100] as f64 / 1000.0;
    print!("{:.0} requests/s, p50 {:.1} us, p99 {:.1} us", count as f64 / took, at(50), at(99));
    match pid {
        Some(_) => println!(", server {:.2} us/request", (ran(pid) - before) / count as f64),
        None => println!(),
    }
}
