// SPDX-License-Identifier: MIT OR Apache-2.0
//! `load job FILE PLAN DEVICE`: runs a job file of the lab's on a disk, call by call as the lab would.
//!
//! Where each client reads and writes is in the plan, which was made of the lab's own run (`bench/guest.sh`),
//! so that no difference comes from other random numbers:
//!
//! ```text
//! client R.0
//! r 203350328 8 1        read 8 sectors there
//! r 0 128 4000           4000 reads of 128 sectors, each behind the one before
//! w 4096 16 1
//! ```
//!
//! The rest is from the job file: `numjobs`, `iodepth` (1: plain calls; more: Linux AIO), `thinktime`,
//! `rate`, `start_delay`, `prioclass`, `prio`, `time_based` with `runtime`, `direct` (0: through the page
//! cache of the device), `fsync`. A client without `time_based` ends with its plan. One with it continues the
//! run of calls that its plan ends with; a plan that ends otherwise and is too short is an error. Clients
//! start one after the other, as in the lab.
//!
//! A line for each client says what it did, and one more for `NAME/sync` how long its fsyncs took:
//!
//! ```text
//! client NAME start_ns elapsed_ns bytes calls lat_sum_ns lat_max_ns p50_ns p99_ns late_sum_ns late_max_ns
//! ```
//!
//! The percentiles are those of the reads; of the writes if there was no read. A call of a client with a rate
//! is late by the time from when it was due to its beginning.

use crate::aio::{Aio, Event, Iocb};
use crate::{Buffer, O_DIRECT};
use std::ffi::{c_int, c_long};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::process::ExitCode;

/// From one client's start to the next, and from the making of all threads to the first: as in the lab's
/// host of 2020.
const START_GAP_NS: u64 = 90_000;
const READY_NS: u64 = 50_000_000;
const SECOND: u64 = 1_000_000_000;

// The system's own functions, of the C library that the standard library is linked with.
unsafe extern "C" {
    fn syscall(number: c_long, ...) -> c_long;
    fn prctl(what: c_int, ...) -> c_int;
}
const PR_SET_TIMERSLACK: c_int = 29;
const CLOCK_GETTIME: c_long = 228;
const CLOCK_NANOSLEEP: c_long = 230;
const IOPRIO_SET: c_long = 251;
const CLOCK_MONOTONIC: c_long = 1;
const TIMER_ABSTIME: c_long = 1;

fn now() -> u64 {
    let mut time = [0_u64; 2];
    // SAFETY: room for seconds and nanoseconds is there.
    unsafe { syscall(CLOCK_GETTIME, CLOCK_MONOTONIC, time.as_mut_ptr()) };
    time[0] * SECOND + time[1]
}

fn sleep_until(at: u64) {
    let time = [at / SECOND, at % SECOND];
    // SAFETY: seconds and nanoseconds are read, and nothing is written.
    unsafe { syscall(CLOCK_NANOSLEEP, CLOCK_MONOTONIC, TIMER_ABSTIME, time.as_ptr(), 0) };
}

/// What a section of a job file says.
#[derive(Clone, Debug, Default)]
struct Job {
    name: String,
    numjobs: u64,
    depth: usize,
    think_ns: u64,
    rate: Option<u64>,
    delay_ns: u64,
    /// Class and level.
    prio: (u64, u64),
    time_based: bool,
    runtime_ns: u64,
    direct: bool,
    /// After how many writes an fsync comes; 0: never.
    fsync: u64,
}

/// A number with a unit: of a size k, m, g; of a time us, ms, s, or nothing.
fn quantity(value: &str, units: &[(&str, u64)], default: u64) -> Result<u64, String> {
    let digits = value.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = value[digits.len()..].to_ascii_lowercase();
    let factor = match unit.as_str() {
        "" => default,
        unit => units.iter().find(|u| u.0 == unit).ok_or_else(|| format!("{value}: unknown unit"))?.1,
    };
    digits.parse::<u64>().map(|n| n * factor).map_err(|_| format!("{value}: a number is needed"))
}

impl Job {
    fn set(&mut self, key: &str, value: Option<&str>) -> Result<(), String> {
        const TIMES: &[(&str, u64)] = &[("us", 1_000), ("ms", 1_000_000), ("s", SECOND)];
        const SIZES: &[(&str, u64)] = &[("k", 1 << 10), ("m", 1 << 20), ("g", 1 << 30)];
        let text = value.unwrap_or("1");
        let number = || text.parse::<u64>().map_err(|_| format!("{key}={text}: a number is needed"));
        match key {
            "numjobs" => self.numjobs = number()?,
            "iodepth" => self.depth = number()? as usize,
            "thinktime" => self.think_ns = quantity(text, TIMES, 1_000)?,
            "rate" => self.rate = Some(quantity(text, SIZES, 1)?),
            "start_delay" | "startdelay" => self.delay_ns = quantity(text, TIMES, SECOND)?,
            "prioclass" => self.prio.0 = number()?,
            "prio" => self.prio.1 = number()?,
            "time_based" => self.time_based = number()? != 0,
            "runtime" => self.runtime_ns = quantity(text, TIMES, SECOND)?,
            "direct" => self.direct = number()? != 0,
            "fsync" => self.fsync = number()?,
            // The plan says where; and all of this runs in one way here. A new disk has nothing in the cache,
            // and the kernel is not told how a file will be read.
            "rw" | "bs" | "size" | "offset" | "offset_increment" | "number_ios" | "rwmixread"
            | "norandommap" | "filename" | "ioengine" | "description" | "invalidate" | "fadvise_hint" => {}
            _ => return Err(format!("unknown option '{key}'")),
        }
        Ok(())
    }
}

/// The sections of a job file, each with what `[global]` says.
fn parse(text: &str) -> Result<Vec<Job>, String> {
    let (mut global, mut jobs) = (Job { numjobs: 1, depth: 1, ..Job::default() }, Vec::<Job>::new());
    for (number, line) in text.lines().enumerate() {
        let line = line.split([';', '#']).next().unwrap_or_default().trim();
        if let Some(name) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
            if name != "global" {
                jobs.push(Job { name: name.to_owned(), ..global.clone() });
            }
        } else if !line.is_empty() {
            let (key, value) = line.split_once('=').map_or((line, None), |(k, v)| (k.trim(), Some(v.trim())));
            let job = jobs.last_mut().unwrap_or(&mut global);
            job.set(key, value).map_err(|why| format!("line {}: {why}", number + 1))?;
        }
    }
    Ok(jobs)
}

/// Calls, each behind the one before.
#[derive(Clone, Copy, Debug)]
struct Run {
    write: bool,
    sector: u64,
    sectors: u64,
    count: u64,
}

/// The runs of each client that the plan names.
fn plan(text: &str) -> Result<Vec<(String, Vec<Run>)>, String> {
    let mut clients: Vec<(String, Vec<Run>)> = Vec::new();
    for (i, line) in text.lines().enumerate() {
        let wrong = || format!("plan, line {}: want 'client NAME' or 'r|w SECTOR SECTORS COUNT'", i + 1);
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        match words[..] {
            ["client", name] => clients.push((name.to_owned(), Vec::new())),
            [op @ ("r" | "w"), sector, sectors, count] => {
                let number = |text: &str| text.parse::<u64>().map_err(|_| wrong());
                let run = Run {
                    write: op == "w",
                    sector: number(sector)?,
                    sectors: number(sectors)?,
                    count: number(count)?,
                };
                clients.last_mut().ok_or_else(wrong)?.1.push(run);
            }
            _ => return Err(wrong()),
        }
    }
    Ok(clients)
}

/// How long calls of a kind took.
#[derive(Clone, Debug, Default)]
struct Waits(Vec<u64>);

impl Waits {
    /// Room whose pages are there before the first call, as far as most clients need it.
    fn new() -> Self {
        let mut waits = vec![1; 1 << 15];
        waits.clear();
        Self(waits)
    }

    /// The wait that this percentage of the calls do not exceed; 0 of no calls.
    fn percentile(&mut self, percent: usize) -> u64 {
        self.0.sort_unstable();
        let at = (self.0.len() * percent).div_ceil(100);
        self.0.get(at.saturating_sub(1)).copied().unwrap_or(0)
    }

    fn sum(&self) -> u64 {
        self.0.iter().sum()
    }

    fn max(&self) -> u64 {
        self.0.iter().copied().max().unwrap_or(0)
    }
}

/// What a client has done.
#[derive(Clone, Debug, Default)]
struct Done {
    start_ns: u64,
    elapsed_ns: u64,
    bytes: u64,
    reads: Waits,
    writes: Waits,
    syncs: Waits,
    late_sum_ns: u64,
    late_max_ns: u64,
}

impl Done {
    fn print(mut self, name: &str) {
        let calls = self.reads.0.len() + self.writes.0.len();
        let (sum, max) = (self.reads.sum() + self.writes.sum(), self.reads.max().max(self.writes.max()));
        let (start, elapsed) = (self.start_ns, self.elapsed_ns);
        let waits = if self.reads.0.is_empty() { &mut self.writes } else { &mut self.reads };
        let (p50, p99) = (waits.percentile(50), waits.percentile(99));
        println!(
            "client {name} {start} {elapsed} {} {calls} {sum} {max} {p50} {p99} {} {}",
            self.bytes, self.late_sum_ns, self.late_max_ns
        );
        let s = &mut self.syncs;
        if !s.0.is_empty() {
            let (p50, p99) = (s.percentile(50), s.percentile(99));
            let (sum, max) = (s.sum(), s.max());
            println!("client {name}/sync {start} {elapsed} 0 {} {sum} {max} {p50} {p99} 0 0", s.0.len());
        }
    }
}

struct Client {
    job: Job,
    name: String,
    runs: Vec<Run>,
    /// The run, and how many of its calls were made.
    at: (usize, u64),
    file: File,
    buffers: Vec<Buffer>,
    issued: u64,
    done: Done,
}

impl Client {
    fn new(job: &Job, name: String, runs: Vec<Run>, device: &str) -> io::Result<Self> {
        let longest = runs.iter().map(|r| r.sectors).max().unwrap_or(8) as usize;
        let flags = if job.direct { O_DIRECT } else { 0 };
        Ok(Self {
            job: job.clone(),
            name,
            at: (0, 0),
            file: OpenOptions::new().read(true).write(true).custom_flags(flags).open(device)?,
            buffers: (0..job.depth).map(|_| Self::buffer(longest)).collect(),
            runs,
            issued: 0,
            done: Done { reads: Waits::new(), writes: Waits::new(), ..Done::default() },
        })
    }

    /// A buffer whose pages are there before the first call wants them.
    fn buffer(longest: usize) -> Buffer {
        let mut buffer = Buffer::new(longest);
        buffer.sectors(longest).fill(1);
        buffer
    }

    /// The next call. `None` at the end of the plan, where that is the end of the client.
    fn next(&mut self) -> io::Result<Option<Run>> {
        let (run, made) = self.at;
        let is_last = run + 1 >= self.runs.len();
        let Some(r) = self.runs.get(run).copied() else { return Ok(None) };
        if made < r.count || is_last && self.job.time_based && r.count > 1 {
            self.at.1 += 1;
            let call = Run { sector: r.sector + made * r.sectors, count: 1, ..r };
            self.issued += call.sectors * 512;
            return Ok(Some(call));
        }
        self.at = (run + 1, 0);
        if is_last && self.job.time_based {
            return Err(io::Error::other(format!("the plan of {} is too short", self.name)));
        }
        self.next()
    }

    fn note(&mut self, call: Run, since: u64, until: u64) {
        self.done.bytes += call.sectors * 512;
        let waits = if call.write { &mut self.done.writes } else { &mut self.done.reads };
        waits.0.push(until - since);
    }

    /// Waits for the rate. When the next call is due; never, without one.
    fn pace(&self, start: u64) -> u64 {
        let Some(rate) = self.job.rate else { return u64::MAX };
        let due = start + (u128::from(self.issued) * u128::from(SECOND) / u128::from(rate)) as u64;
        if due > now() {
            sleep_until(due);
        }
        due
    }

    /// Makes what was written stable, where it is time for that.
    fn sync(&mut self) -> io::Result<()> {
        if self.job.fsync > 0 && self.done.writes.0.len() as u64 % self.job.fsync == 0 {
            let since = now();
            self.file.sync_all()?;
            self.done.syncs.0.push(now() - since);
        }
        Ok(())
    }

    fn run(mut self, zero: u64, number: u64) -> io::Result<Done> {
        let start = zero + number * START_GAP_NS + self.job.delay_ns;
        // SAFETY: numbers only; sleeping is to be exact, and the priority is this thread's.
        unsafe {
            prctl(PR_SET_TIMERSLACK, 1_u64);
            if self.job.prio.0 > 0 {
                syscall(IOPRIO_SET, 1_u64, 0_u64, self.job.prio.0 << 13 | self.job.prio.1);
            }
        }
        sleep_until(start);
        let end = if self.job.time_based { start + self.job.runtime_ns } else { u64::MAX };
        if self.job.depth == 1 {
            self.run_sync(start, end)?
        } else {
            self.run_deep(end)?
        };
        self.done.start_ns = start - zero;
        self.done.elapsed_ns = now() - start;
        Ok(self.done)
    }

    /// One call after the other.
    fn run_sync(&mut self, start: u64, end: u64) -> io::Result<()> {
        loop {
            let due = self.pace(start);
            let since = now();
            let Some(call) = (if since < end { self.next()? } else { None }) else { break };
            let bytes = self.buffers[0].sectors(call.sectors as usize);
            if call.write {
                self.file.write_all_at(bytes, call.sector * 512)?;
            } else {
                self.file.read_exact_at(bytes, call.sector * 512)?;
            }
            let until = now();
            self.note(call, since, until);
            let late = since.saturating_sub(due);
            self.done.late_sum_ns += late;
            self.done.late_max_ns = self.done.late_max_ns.max(late);
            if call.write {
                self.sync()?;
            }
            if self.job.think_ns > 0 {
                sleep_until(until + self.job.think_ns);
            }
        }
        Ok(())
    }

    /// As many calls at a time as the depth says, each handed in by itself.
    fn run_deep(&mut self, end: u64) -> io::Result<()> {
        let depth = self.job.depth;
        let aio = Aio::new(depth)?;
        let mut slots: Vec<(Run, u64, Iocb)> = Vec::new();
        let idle = Run { write: false, sector: 0, sectors: 0, count: 0 };
        slots.resize(depth, (idle, 0, Iocb::default()));
        let mut events = vec![Event::default(); depth];
        let (mut free, mut in_flight): (Vec<usize>, usize) = ((0..depth).rev().collect(), 0);
        let mut is_over = false;
        loop {
            while !is_over && let Some(slot) = free.pop() {
                match if now() < end { self.next()? } else { None } {
                    Some(call) => {
                        self.submit(&aio, call, slot, &mut slots)?;
                        in_flight += 1;
                    }
                    None => is_over = true,
                }
            }
            if in_flight == 0 {
                return Ok(());
            }
            let ended = aio.wait(1, &mut events)?;
            let until = now();
            for event in ended {
                let slot = event.data as usize;
                let (call, since, _) = slots[slot];
                if event.result != (call.sectors * 512) as i64 {
                    return Err(io::Error::from_raw_os_error((-event.result) as i32));
                }
                self.note(call, since, until);
                free.push(slot);
                in_flight -= 1;
            }
        }
    }

    fn submit(
        &mut self,
        aio: &Aio,
        call: Run,
        slot: usize,
        slots: &mut [(Run, u64, Iocb)],
    ) -> io::Result<()> {
        let bytes = self.buffers[slot].sectors(call.sectors as usize);
        let iocb = Iocb {
            data: slot as u64,
            op: u16::from(call.write),
            fd: self.file.as_raw_fd() as u32,
            buffer: bytes.as_mut_ptr() as u64,
            length: bytes.len() as u64,
            offset: call.sector * 512,
            ..Iocb::default()
        };
        slots[slot] = (call, now(), iocb);
        // SAFETY: the control block and the buffer stay until the call has ended, as their slot is taken.
        unsafe { aio.submit(&[&raw mut slots[slot].2]) }
    }
}

/// All clients, with the plan's calls.
fn clients(file: &str, plan_file: &str, device: &str) -> Result<Vec<Client>, String> {
    let read = |path: &str| std::fs::read_to_string(path).map_err(|e| format!("{path}: {e}"));
    let jobs = parse(&read(file)?).map_err(|why| format!("{file}: {why}"))?;
    let mut plans = plan(&read(plan_file)?)?;
    let mut clients = Vec::new();
    for job in &jobs {
        for clone in 0..job.numjobs {
            let name = if job.numjobs > 1 { format!("{}.{clone}", job.name) } else { job.name.clone() };
            let at = plans.iter().position(|p| p.0 == name);
            let at = at.ok_or_else(|| format!("{plan_file}: no client {name}"))?;
            let (name, runs) = plans.swap_remove(at);
            clients.push(Client::new(job, name, runs, device).map_err(|e| format!("{device}: {e}"))?);
        }
    }
    Ok(clients)
}

/// The command; see the file's text.
pub(crate) fn main(args: &[String]) -> ExitCode {
    let [file, plan, device] = args else {
        eprintln!("usage: load job FILE PLAN DEVICE");
        return ExitCode::from(2);
    };
    let clients = match clients(file, plan, device) {
        Ok(clients) => clients,
        Err(why) => {
            println!("load: {why}");
            return ExitCode::FAILURE;
        }
    };
    let zero = now() + READY_NS;
    let run = |(number, client): (usize, Client)| {
        let name = client.name.clone();
        (name, std::thread::spawn(move || client.run(zero, number as u64)))
    };
    let threads: Vec<_> = clients.into_iter().enumerate().map(run).collect();
    let mut status = ExitCode::SUCCESS;
    for (name, thread) in threads {
        match thread.join() {
            Ok(Ok(done)) => done.print(&name),
            Ok(Err(error)) => {
                println!("load: {name}: {error}");
                status = ExitCode::FAILURE;
            }
            Err(_) => status = ExitCode::FAILURE,
        }
    }
    status
}
