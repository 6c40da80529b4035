//! `fairhead serve` is killed, or its clients are, at random moments: what was acknowledged is there.
//!
//! Each client has a part of the disk to itself and stamps every sector that it writes with its place, a
//! serial number and a pattern that follows from both. It keeps, for each block, which write was acknowledged
//! last, which was so before an acknowledged flush (or was one with FUA), and which was sent last; what is
//! read must lie between. No block has two requests in flight.
//!
//! The page cache outlives a process that is killed. So this is about the order in which the server does and
//! acknowledges things, and about requests whose client has gone; not about a loss of power.
//!
//! `FAIRHEAD_KILLS` says how often; 20 times otherwise.

#![allow(clippy::disallowed_methods, reason = "processes are real")]

use crate::nbd_client;
use crate::nbd_client::{FLUSH, READ, WRITE, flagged, hear, request};
use crate::process::{Process, fairhead, start};
use crate::stamps::{BLOCK, Chance, Known, stamped};
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tempfile::TempDir;

/// Blocks of a client.
const PART: u64 = 384;
/// The most blocks of one request: of seven out of eight, and of the others, which other threads copy, or
/// which are sent as pages.
const SHORT: u64 = 8;
const RUN: u64 = 96;
const CLIENTS: u64 = 2;
/// Requests of a client that are in flight.
const DEPTH: usize = 16;

/// A folder with a disk in it, removed again.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self::with(tempfile::tempdir().unwrap())
    }
    /// In memory, where the server sends the pages of large reads as they are.
    fn in_memory() -> Option<Self> {
        Some(Self::with(tempfile::tempdir_in("/dev/shm").ok()?))
    }
    fn with(folder: TempDir) -> Self {
        let place = Self(folder);
        File::create(place.file()).unwrap().set_len(PART * CLIENTS * BLOCK as u64).unwrap();
        place
    }
    fn file(&self) -> PathBuf {
        self.0.path().join("disk.img")
    }
    fn socket(&self) -> PathBuf {
        self.0.path().join("s")
    }
    fn serve(&self, sched: &str, more: &[&str]) -> Process {
        let export = format!("vm={}", self.file().display());
        let (process, line, _) = start(
            fairhead()
                .args(["serve", "--depth", "8", "--sched", sched, "--export", &export, "--socket"])
                .arg(self.socket())
                .args(more)
                .stdout(Stdio::null()),
        );
        assert!(line.starts_with("fairhead: listening on "), "{line}");
        process
    }
}

enum PendingRequest {
    Read(u64, u64),
    Write {
        first: u64,
        count: u64,
        serial: u64,
        fua: bool,
    },
    /// What had been acknowledged when it was sent.
    Flush(Vec<u64>),
}

#[derive(Clone, Copy, Default, Debug)]
struct Sum {
    writes: u64,
    reads: u64,
    flushes: u64,
    /// The number of blocks of writes that were done and never acknowledged.
    surprises: u64,
}

struct Client {
    chance: Chance,
    base: u64,
    known: Vec<Known>,
    /// Something is asked about the block.
    busy: [bool; PART as usize],
    asked: HashMap<u64, PendingRequest>,
    serial: u64,
    sum: Sum,
}

impl Client {
    fn new(number: u64, seed: u64) -> Self {
        Self {
            chance: Chance(seed.wrapping_add(number) | 1),
            base: number * PART,
            known: vec![Known::default(); PART as usize],
            busy: [false; PART as usize],
            asked: HashMap::new(),
            serial: 0,
            sum: Sum::default(),
        }
    }

    /// The bytes of another request, if there is one that can be made now.
    fn ask(&mut self) -> Option<Vec<u8>> {
        self.serial += 1;
        let serial = self.serial;
        let kind = self.chance.below(100);
        if kind < 8 {
            self.asked
                .insert(serial, PendingRequest::Flush(self.known.iter().map(|k| k.acknowledged).collect()));
            return Some(request(FLUSH, serial, 0, 0));
        }
        let first = self.chance.below(PART);
        let most = if self.chance.below(8) == 0 { RUN } else { SHORT };
        let count = 1 + self.chance.below(most.min(PART - first));
        let range = first as usize..(first + count) as usize;
        if self.busy[range.clone()].contains(&true) {
            return None;
        }
        self.busy[range.clone()].fill(true);
        let (offset, len) = ((self.base + first) * BLOCK as u64, count as usize * BLOCK);
        if kind < 40 {
            self.asked.insert(serial, PendingRequest::Read(first, count));
            return Some(request(READ, serial, offset, len as u32));
        }
        self.known[range].iter_mut().for_each(|k| k.sent = serial);
        let fua = kind < 50;
        self.asked.insert(serial, PendingRequest::Write { first, count, serial, fua });
        let mut bytes = flagged(u16::from(fua), WRITE, serial, offset, len as u32);
        (first..first + count).for_each(|i| bytes.extend(stamped(self.base + i, serial)));
        Some(bytes)
    }

    /// Hears one reply.
    fn hear(&mut self, socket: &mut impl Read) -> io::Result<()> {
        let (error, cookie) = hear(socket)?;
        assert_eq!(error, 0, "no error");
        // What is only half here was not read; the block is known as before.
        let PendingRequest::Read(first, count) = self.asked[&cookie] else {
            self.done(cookie);
            return Ok(());
        };
        let mut data = vec![0; count as usize * BLOCK];
        socket.read_exact(&mut data)?;
        self.asked.remove(&cookie);
        self.sum.reads += 1;
        self.check(first, &data);
        Ok(())
    }

    fn done(&mut self, cookie: u64) {
        match self.asked.remove(&cookie) {
            Some(PendingRequest::Write { first, count, serial, fua }) => {
                self.sum.writes += 1;
                let range = first as usize..(first + count) as usize;
                self.busy[range.clone()].fill(false);
                for k in &mut self.known[range] {
                    k.acknowledged = serial;
                    k.stable = if fua { serial } else { k.stable };
                }
            }
            Some(PendingRequest::Flush(acknowledged)) => {
                self.sum.flushes += 1;
                self.known.iter_mut().zip(acknowledged).for_each(|(k, a)| k.stable = k.stable.max(a));
            }
            _ => panic!("request {cookie} was answered, but not asked"),
        }
    }

    /// What was read from there on.
    fn check(&mut self, first: u64, data: &[u8]) {
        for (i, bytes) in (first..).zip(data.chunks_exact(BLOCK)) {
            let _ = self.known[i as usize].check(self.base + i, bytes);
            self.busy[i as usize] = false;
        }
    }

    /// Reads and writes until the connection ends, or is to be ended.
    fn work(&mut self, mut socket: UnixStream, hang_up: &AtomicBool) -> io::Result<()> {
        loop {
            let mut bytes = Vec::new();
            for _ in 0..DEPTH {
                if self.asked.len() < DEPTH {
                    bytes.extend(self.ask().unwrap_or_default());
                }
            }
            if hang_up.load(Ordering::Relaxed) {
                // Somewhere inside a request, or behind one.
                let some = self.chance.below(bytes.len() as u64 + 1) as usize;
                return socket.write_all(&bytes[..some]);
            }
            socket.write_all(&bytes)?;
            self.hear(&mut socket)?;
        }
    }

    /// Notes that requests in flight will not be acknowledged any more, and reads what is there now.
    fn look_again(&mut self, socket: &mut UnixStream) -> io::Result<()> {
        self.asked.clear();
        self.busy.fill(false);
        for first in (0..PART).step_by(RUN as usize) {
            self.serial += 1;
            self.asked.insert(self.serial, PendingRequest::Read(first, RUN));
            let at = (self.base + first) * BLOCK as u64;
            socket.write_all(&request(READ, self.serial, at, RUN as u32 * BLOCK as u32))?;
            self.hear(socket)?;
        }
        Ok(())
    }

    /// Against the file itself.
    fn compare(&mut self, file: &File) {
        for i in 0..PART {
            let mut bytes = vec![0; BLOCK];
            file.read_exact_at(&mut bytes, (self.base + i) * BLOCK as u64).unwrap();
            let known = &mut self.known[i as usize];
            let serials = known.check(self.base + i, &bytes);
            self.sum.surprises += u64::from(serials[0] > known.acknowledged);
        }
    }
}

#[test]
fn what_was_acknowledged_is_there_whoever_is_killed() {
    kill_at(&Place::new());
}

#[test]
fn what_was_acknowledged_is_there_also_in_a_file_in_memory() {
    let Some(place) = Place::in_memory() else { return println!("skipped: no files in memory") };
    kill_at(&place);
}

fn kill_at(place: &Place) {
    let number = |name: &str| std::env::var(name).ok().map(|n| n.parse::<u64>().expect("a number"));
    let cycles = number("FAIRHEAD_KILLS").unwrap_or(20);
    let seed = std::env::var("FAIRHEAD_SEED").unwrap_or_default();
    let seed =
        seed.bytes().fold(0x9e37_79b9_7f4a_7c15_u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3));
    let mut chance = Chance(seed | 1);
    let mut clients: Vec<Client> = (0..CLIENTS).map(|i| Client::new(i, seed)).collect();
    let mut server = None;
    let (mut killed, mut hung_up) = (0, 0);
    let is_enough = |client: &Client| client.sum.writes > cycles && client.sum.flushes > 0;
    // Where the machine is so busy that little was done, more cycles follow, ten times as long.
    let mut factors = (0..cycles).map(|_| 1).chain((0..cycles).map(|_| 10));
    while let Some(factor) = factors.next().filter(|f| *f == 1 || !clients.iter().all(is_enough)) {
        let running = server.take().unwrap_or_else(|| {
            let sched = ["noop", "deadline", "bfq", "cfq", "kyber"][chance.below(5) as usize];
            let threads = ["0", "1", "4"][chance.below(3) as usize];
            let more = [&["--threads", threads][..], &["--threads", threads, "--cached"]];
            place.serve(sched, more[chance.below(2) as usize])
        });
        let end = AtomicBool::new(false);
        let kills = chance.below(2) == 0;
        let time = factor * Duration::from_micros(1000 + chance.below(60_000));
        server = std::thread::scope(|scope| {
            let workers: Vec<_> = (clients.iter_mut())
                .map(|client| {
                    let mut socket = nbd_client::client(&place.socket(), "vm").unwrap().0;
                    let end = &end;
                    scope.spawn(move || {
                        // An error is the end of the server, and no news.
                        let seen = client.look_again(&mut socket);
                        let _ = seen.and_then(|()| client.work(socket, end));
                    })
                })
                .collect();
            std::thread::sleep(time);
            let left = if kills {
                drop(running);
                None
            } else {
                end.store(true, Ordering::Relaxed);
                Some(running)
            };
            workers.into_iter().for_each(|w| w.join().expect("see above"));
            left
        });
        *(if kills { &mut killed } else { &mut hung_up }) += 1;
        if server.is_none() {
            let file = File::open(place.file()).unwrap();
            clients.iter_mut().for_each(|c| c.compare(&file));
        }
    }
    println!("{killed} servers and {hung_up} times the clients killed");
    for client in &clients {
        println!("{:?}", client.sum);
        assert!(is_enough(client), "hardly anything was done");
    }
}
