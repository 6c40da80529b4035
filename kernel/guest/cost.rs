// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cost DEVICE TASKS REQUESTS BATCH`: reads of 4 KiB at drawn places, past the page cache, as fast as they
//! go. For `bench/kernel_cost.sh`; a static program without crates.
//!
//! Each task sends REQUESTS reads, BATCH at a time, by the kernel's asynchronous I/O: a batch is inserted as
//! a whole. The last line is "cost TASKS BATCH: N requests in T ns". In a guest whose clock is its
//! instructions, and on a disk that is never waited for, T is how many instructions they took.

use std::arch::asm;
use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::{Arc, Barrier};
use std::time::Instant;

const O_DIRECT: i32 = 0o40000;
const BLOCK: usize = 4096;
const IO_SETUP: usize = 206;
const IO_GETEVENTS: usize = 208;
const IO_SUBMIT: usize = 209;

/// `struct iocb` of linux/aio_abi.h, a read (opcode 0).
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Control {
    data: u64,
    key: u32,
    flags: u32,
    opcode: u16,
    priority: u16,
    file: u32,
    buffer: u64,
    bytes: u64,
    offset: i64,
    reserved: u64,
    more_flags: u32,
    event: u32,
}

/// `struct io_event`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Event {
    data: u64,
    control: u64,
    result: i64,
    more: i64,
}

/// A system call; the program ends if it fails.
fn call(number: usize, args: [usize; 5], what: &str) -> usize {
    let answer: isize;
    // SAFETY: callers pass pointers to memory of their own that lives until the kernel has finished with it.
    unsafe {
        asm!("syscall", inlateout("rax") number => answer, in("rdi") args[0], in("rsi") args[1],
             in("rdx") args[2], in("r10") args[3], in("r8") args[4], out("rcx") _, out("r11") _);
    }
    usize::try_from(answer).unwrap_or_else(|_| {
        eprintln!("cost: {what}: error {}", -answer);
        std::process::exit(1)
    })
}

fn below(state: &mut u64, n: u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    (*state >> 11) % n
}

/// Sends `requests` reads, `batch` at a time.
fn run(file: &File, blocks: u64, seed: u64, requests: usize, batch: usize) {
    let mut state = seed;
    // Pages that are there before the first read wants them.
    let memory = vec![1_u8; (batch + 1) * BLOCK];
    let first = memory.as_ptr() as usize + memory.as_ptr().align_offset(BLOCK);
    let mut context = 0_usize;
    call(IO_SETUP, [batch, &raw mut context as usize, 0, 0, 0], "io_setup");
    let mut controls = vec![Control::default(); batch];
    let mut events = vec![Event::default(); batch];
    for _ in 0..requests / batch {
        for (i, control) in controls.iter_mut().enumerate() {
            *control = Control {
                file: u32::try_from(file.as_raw_fd()).unwrap_or_default(),
                buffer: (first + i * BLOCK) as u64,
                bytes: BLOCK as u64,
                offset: (below(&mut state, blocks) * BLOCK as u64).cast_signed(),
                ..Control::default()
            };
        }
        let pointers: Vec<usize> = controls.iter().map(|c| &raw const *c as usize).collect();
        let sent = call(IO_SUBMIT, [context, batch, pointers.as_ptr() as usize, 0, 0], "io_submit");
        assert_eq!(sent, batch, "all were taken");
        let got =
            call(IO_GETEVENTS, [context, batch, batch, events.as_mut_ptr() as usize, 0], "io_getevents");
        assert_eq!(got, batch, "all were answered");
        assert!(events.iter().all(|e| e.result == BLOCK as i64), "a read failed");
    }
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let number = |i: usize| args.get(i).and_then(|a| a.parse::<usize>().ok()).filter(|&n| n > 0);
    let (Some(device), Some(tasks), Some(requests), Some(batch)) =
        (args.get(1), number(2), number(3), number(4))
    else {
        eprintln!("usage: cost DEVICE TASKS REQUESTS BATCH");
        std::process::exit(2);
    };
    let open = || OpenOptions::new().read(true).custom_flags(O_DIRECT).open(device);
    let blocks = std::fs::read_to_string(format!("/sys/block/{}/size", device.trim_start_matches("/dev/")));
    let blocks = blocks.ok().and_then(|n| n.trim().parse::<u64>().ok()).unwrap_or(0) / 8;
    assert!(blocks > 0, "{device} has no blocks");
    let ready = Arc::new(Barrier::new(tasks));
    let threads: Vec<_> = (1..=tasks)
        .map(|seed| {
            let (ready, file) = (ready.clone(), open().expect("a disk"));
            std::thread::spawn(move || {
                run(&file, blocks, seed as u64 * 7919, batch * 4, batch);
                ready.wait();
                let from = Instant::now();
                run(&file, blocks, seed as u64 * 104_729, requests, batch);
                (from, Instant::now())
            })
        })
        .collect();
    // From the first task's beginning to the last one's end, whenever this task gets a processor.
    let times: Vec<_> = threads.into_iter().map(|thread| thread.join().expect("a task ends")).collect();
    let from = times.iter().map(|t| t.0).min().expect("a task");
    let until = times.iter().map(|t| t.1).max().expect("a task");
    let took = (until - from).as_nanos();
    println!("cost {tasks} {batch}: {} requests in {took} ns", tasks * (requests / batch * batch));
}
