// SPDX-License-Identifier: MIT OR Apache-2.0
//! `load cost DEVICE TASKS REQUESTS BATCH`: reads of 4 KiB at drawn places, past the page cache, as fast as
//! they go. For `bench/kernel_cost.sh`.
//!
//! Each task sends REQUESTS reads, BATCH at a time: a batch is inserted as a whole. The last line is "cost
//! TASKS BATCH: N requests in T ns". In a guest whose clock is its instructions, and on a disk that is never
//! waited for, T is how many instructions they took.

use crate::aio::{Aio, Event, Iocb};
use crate::{Buffer, O_DIRECT, Random, SECTOR};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::process::ExitCode;
use std::sync::{Arc, Barrier};
use std::time::Instant;

const BLOCK: usize = 8 * SECTOR;

/// Sends `requests` reads, `batch` at a time.
fn run(file: &File, blocks: u64, seed: u64, requests: usize, batch: usize) -> io::Result<()> {
    let mut random = Random(seed);
    let mut buffer = Buffer::new(batch * BLOCK / SECTOR);
    let memory = buffer.sectors(batch * BLOCK / SECTOR);
    // So that its pages are there before the first read wants them.
    memory.fill(1);
    let first = memory.as_mut_ptr() as u64;
    let aio = Aio::new(batch)?;
    let mut calls = vec![Iocb::default(); batch];
    let mut events = vec![Event::default(); batch];
    for _ in 0..requests / batch {
        for (i, call) in calls.iter_mut().enumerate() {
            *call = Iocb {
                fd: file.as_raw_fd() as u32,
                buffer: first + (i * BLOCK) as u64,
                length: BLOCK as u64,
                offset: random.below(blocks) * BLOCK as u64,
                ..Iocb::default()
            };
        }
        let list: Vec<*mut Iocb> = calls.iter_mut().map(|call| &raw mut *call).collect();
        // SAFETY: the control blocks and the buffer stay until all of these have ended, below.
        unsafe { aio.submit(&list)? };
        let ended = aio.wait(batch, &mut events)?;
        if let Some(event) = ended.iter().find(|e| e.result != BLOCK as i64) {
            return Err(io::Error::from_raw_os_error((-event.result) as i32));
        }
    }
    Ok(())
}

/// A task: some reads to warm up, and, when all are ready, those that count. Returns when these began and
/// ended.
fn task(
    file: &File,
    blocks: u64,
    seed: u64,
    requests: usize,
    batch: usize,
    ready: &Barrier,
) -> io::Result<(Instant, Instant)> {
    run(file, blocks, seed * 7919, batch * 4, batch)?;
    ready.wait();
    let from = Instant::now();
    run(file, blocks, seed * 104_729, requests, batch)?;
    Ok((from, Instant::now()))
}

/// The time of all tasks, in nanoseconds.
fn measured(device: &str, tasks: usize, requests: usize, batch: usize) -> io::Result<u128> {
    let size = std::fs::read_to_string(format!("/sys/block/{}/size", device.trim_start_matches("/dev/")))?;
    let blocks = size.trim().parse::<u64>().map_err(io::Error::other)? / 8;
    let ready = Arc::new(Barrier::new(tasks));
    let mut threads = Vec::new();
    for seed in 1..=tasks as u64 {
        let file = OpenOptions::new().read(true).custom_flags(O_DIRECT).open(device)?;
        let ready = ready.clone();
        threads.push(std::thread::spawn(move || task(&file, blocks, seed, requests, batch, &ready)));
    }
    // From the first task's beginning to the last one's end, whenever this task gets a processor.
    let mut times = Vec::new();
    for thread in threads {
        times.push(thread.join().map_err(|_| io::Error::other("a task panicked"))??);
    }
    let from = times.iter().map(|t| t.0).min();
    let until = times.iter().map(|t| t.1).max();
    Ok(until.zip(from).map_or(0, |(until, from)| (until - from).as_nanos()))
}

/// The command; see the file's text.
pub(crate) fn main(args: &[String]) -> ExitCode {
    let number = |i: usize| args.get(i).and_then(|a| a.parse::<usize>().ok()).filter(|&n| n > 0);
    let (Some(device), Some(tasks), Some(requests), Some(batch)) =
        (args.first(), number(1), number(2), number(3))
    else {
        eprintln!("usage: load cost DEVICE TASKS REQUESTS BATCH");
        return ExitCode::from(2);
    };
    match measured(device, tasks, requests, batch) {
        Ok(ns) => {
            println!("cost {tasks} {batch}: {} requests in {ns} ns", tasks * (requests / batch * batch));
            ExitCode::SUCCESS
        }
        Err(error) => {
            println!("load: {device}: {error}");
            ExitCode::FAILURE
        }
    }
}
