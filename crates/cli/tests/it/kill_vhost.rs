//! `fairhead serve --vhost-user` is killed with requests in flight: the next server answers each of them,
//! once, and what was acknowledged is there.
//!
//! The guest is a driver in this program. It stamps every block that it writes, as in `kill.rs`, and connects
//! again after each kill, with the marks of requests in flight that the virtual machine keeps. A request that
//! is answered twice, or not at all, fails the test.
//!
//! `FAIRHEAD_KILLS` says how often; 10 times otherwise.

#![allow(clippy::disallowed_methods, reason = "processes are real")]

use crate::process::{Process, fairhead, start};
use crate::stamps::{BLOCK, Chance, Known, stamped};
use crate::vhost_guest::{Done, FLUSH, Guest, READ, SLOTS, WRITE, Wishes};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const BLOCKS: u64 = 512;
/// The most blocks of a request.
const RUN: u64 = 8;
const DEPTH: usize = 24;
const QUEUES: usize = 2;

struct Place(TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        File::create(place.file()).unwrap().set_len(BLOCKS * BLOCK as u64).unwrap();
        place
    }
    fn file(&self) -> PathBuf {
        self.0.path().join("disk.img")
    }
    fn socket(&self) -> PathBuf {
        self.0.path().join("vm.sock")
    }
    fn serve(&self) -> Process {
        let device = format!("{}={}", self.socket().display(), self.file().display());
        let mut serve = fairhead();
        serve
            .args(["serve", "--depth", "8", "--sched", "bfq", "--vhost-user", &device])
            .stdout(Stdio::null());
        let (process, line, _) = start(&mut serve);
        assert!(line.starts_with("fairhead: listening on "), "{line}");
        process
    }
}

#[derive(Clone)]
enum Asked {
    Read(u64, u64),
    Write { first: u64, count: u64, serial: u64 },
    Flush(Vec<u64>),
}

#[derive(Clone, Copy, Default, Debug)]
struct Sum {
    reads: u64,
    writes: u64,
    flushes: u64,
    /// Requests that were in flight when a server was killed.
    survivors: usize,
}

/// The programs in the guest.
struct Load {
    guest: Guest,
    chance: Chance,
    known: Vec<Known>,
    busy: Vec<bool>,
    asked: Vec<Vec<Option<Asked>>>,
    serial: u64,
    sum: Sum,
}

impl Load {
    fn new(place: &Place) -> Self {
        let wishes = Wishes { queues: QUEUES, ..Wishes::default() };
        Self {
            guest: Guest::connect(&place.socket(), wishes),
            chance: Chance(0x5eed_0000_0000_0001),
            known: vec![Known::default(); BLOCKS as usize],
            busy: vec![false; BLOCKS as usize],
            asked: vec![vec![None; usize::from(SLOTS)]; QUEUES],
            serial: 0,
            sum: Sum::default(),
        }
    }

    fn ask(&mut self, q: usize) {
        let count = 1 + self.chance.below(RUN);
        let first = self.chance.below(BLOCKS - count);
        let range = first as usize..(first + count) as usize;
        if self.busy[range.clone()].contains(&true) {
            return;
        }
        let memory = self.guest.memory.clone();
        let queue = &mut self.guest.queues[q];
        let slot = *queue.free.last().expect("a slot");
        let (sector, len) = (first * (BLOCK / 512) as u64, count as u32 * BLOCK as u32);
        let (asked, kind, len) = match self.chance.below(16) {
            0 => (Asked::Flush(self.known.iter().map(|k| k.acknowledged).collect()), FLUSH, 0),
            1..6 => (Asked::Read(first, count), READ, len),
            _ => {
                self.serial += 1;
                let serial = self.serial;
                let data: Vec<u8> = (first..first + count).flat_map(|b| stamped(b, serial)).collect();
                memory.write(queue.data(slot), &data);
                self.known[range.clone()].iter_mut().for_each(|k| k.sent = serial);
                (Asked::Write { first, count, serial }, WRITE, len)
            }
        };
        if len > 0 {
            self.busy[range].fill(true);
        }
        assert_eq!(queue.submit(&memory, kind, 0, sector, len), Some(slot));
        self.asked[q][usize::from(slot)] = Some(asked);
    }

    fn answered(&mut self, q: usize, done: Done) {
        assert_eq!(done.status, 0);
        match self.asked[q][usize::from(done.slot)].take().expect("it was asked") {
            Asked::Read(first, count) => {
                let mut bytes = vec![0; count as usize * BLOCK];
                self.guest.memory.read(self.guest.queues[q].data(done.slot), &mut bytes);
                for (block, bytes) in (first..).zip(bytes.chunks_exact(BLOCK)) {
                    self.known[block as usize].check(block, bytes);
                    self.busy[block as usize] = false;
                }
                self.sum.reads += 1;
            }
            Asked::Write { first, count, serial } => {
                for block in first as usize..(first + count) as usize {
                    self.known[block].acknowledged = serial;
                    self.busy[block] = false;
                }
                self.sum.writes += 1;
            }
            Asked::Flush(then) => {
                self.known.iter_mut().zip(then).for_each(|(k, n)| k.stable = k.stable.max(n));
                self.sum.flushes += 1;
            }
        }
    }

    fn work(&mut self, time: Duration) {
        let end = Instant::now() + time;
        while Instant::now() < end {
            for q in 0..QUEUES {
                for _ in 0..DEPTH {
                    if self.guest.queues[q].in_flight() < DEPTH {
                        self.ask(q);
                    }
                }
                let memory = self.guest.memory.clone();
                self.guest.queues[q].kick(&memory);
                while let Some(done) = self.guest.queues[q].take(&memory) {
                    self.answered(q, done);
                }
            }
            std::thread::yield_now();
        }
    }

    fn drain(&mut self) {
        let memory = self.guest.memory.clone();
        for q in 0..QUEUES {
            while self.guest.queues[q].in_flight() > 0 {
                let done = self.guest.queues[q].wait(&memory, Duration::from_secs(60));
                self.answered(q, done.expect("nothing is lost"));
            }
        }
    }
}

#[test]
fn nothing_is_lost_or_done_twice_when_the_server_is_killed() {
    let kills = std::env::var("FAIRHEAD_KILLS").map_or(10, |n| n.parse().expect("a number of kills"));
    let place = Place::new();
    let mut server = place.serve();
    let mut load = Load::new(&place);
    for _ in 0..kills {
        let time = Duration::from_millis(10 + load.chance.below(60));
        load.work(time);
        server.kill();
        load.sum.survivors += load.guest.queues.iter().map(|q| q.in_flight()).sum::<usize>();
        server = place.serve();
        load.guest.reconnect(&place.socket()).unwrap();
        load.drain();
    }
    let image = File::open(place.file()).unwrap();
    let mut bytes = vec![0; BLOCK];
    for block in 0..BLOCKS {
        image.read_exact_at(&mut bytes, block * BLOCK as u64).unwrap();
        load.known[block as usize].check(block, &bytes);
    }
    println!("{kills} kills: {:?}", load.sum);
    assert!(load.sum.survivors > 0, "no kill came while anything was in flight");
}
