//! Power cuts under a server: what it has acknowledged as stable is there afterwards.
//!
//! The disk is a file on FUSE that forgets what was not synced. A client writes blocks, each with a stamp of
//! its own, and at some moment the power is cut: from then on nothing changes on the disk. Each block whose
//! FUA write, or whose write before a flush, was acknowledged has that stamp, or one of a later write, on the
//! disk.
//!
//! `FAIRHEAD_CUTS=1000 cargo test --profile sim -p fairhead-live --test it power_cut` cuts 1,000 times for
//! each kind; without it, 25 times, which are 100 in all.

#![allow(clippy::disallowed_methods, reason = "sockets and their time-outs are real")]

use crate::flaky_disk::FlakyDisk;
use crate::nbd_client;
use crate::nbd_client::{FLUSH, WRITE, flagged, hear, request};
use fairhead_live::nbd::{Export, Listen, Options, Server};
use fairhead_live::{Client, Disk, DiskOptions, Errno, Fault, FaultOp, Faults, Harm, Pending};
use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::time::Duration;

const BLOCK: usize = 4096;
const BLOCKS: u64 = 64;
const FUA: u16 = 1;
/// Writes that a client has open at a time.
const DEPTH: u64 = 8;

fn cuts() -> u64 {
    std::env::var("FAIRHEAD_CUTS").map_or(25, |n| n.parse().expect("a number"))
}

/// The block of a write, which is also in its data. The stamp of a write is its cookie.
const fn block_of(stamp: u64) -> u64 {
    stamp.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32 & (BLOCKS - 1)
}

fn data(stamp: u64) -> Vec<u8> {
    stamp.to_be_bytes().repeat(BLOCK / 8)
}

/// What the disk has to have: for each block, the last stamp that is stable.
#[derive(Default)]
struct Promised(BTreeMap<u64, u64>);

impl Promised {
    fn stable(&mut self, stamp: u64) {
        let last = self.0.entry(block_of(stamp)).or_default();
        *last = stamp.max(*last);
    }

    /// The blocks that are not on the disk as was promised.
    fn lost(&self, disk: &[u8]) -> Vec<u64> {
        let stamp = |block: u64| {
            let at = block as usize * BLOCK;
            u64::from_be_bytes(disk[at..at + 8].try_into().expect("eight bytes"))
        };
        self.0
            .iter()
            .filter(|(block, promised)| stamp(**block) < **promised)
            .map(|(block, _)| *block)
            .collect()
    }
}

/// Writes with FUA until the power is gone. No block has two writes open.
fn write_through(mut socket: UnixStream) -> Promised {
    let (mut promised, mut open, mut stamp) = (Promised::default(), Vec::new(), 0);
    loop {
        while open.len() < DEPTH as usize {
            stamp += 1;
            if open.iter().any(|o| block_of(*o) == block_of(stamp)) {
                continue;
            }
            let at = block_of(stamp) * BLOCK as u64;
            let bytes = [flagged(FUA, WRITE, stamp, at, BLOCK as u32), data(stamp)].concat();
            if socket.write_all(&bytes).is_err() {
                return promised;
            }
            open.push(stamp);
        }
        match hear(&mut socket) {
            Ok((0, stamp)) => {
                promised.stable(stamp);
                open.retain(|o| *o != stamp);
            }
            _ => return promised,
        }
    }
}

/// Writes a few blocks and flushes, until the power is gone.
fn write_and_flush(mut socket: UnixStream) -> Promised {
    let (mut promised, mut stamp) = (Promised::default(), 0);
    loop {
        let first = stamp + 1;
        for _ in 0..DEPTH {
            stamp += 1;
            let at = block_of(stamp) * BLOCK as u64;
            let bytes = [request(WRITE, stamp, at, BLOCK as u32), data(stamp)].concat();
            if socket.write_all(&bytes).is_err() || hear(&mut socket).ok() != Some((0, stamp)) {
                return promised;
            }
        }
        let flush = request(FLUSH, 0, 0, 0);
        if socket.write_all(&flush).is_err() || hear(&mut socket).ok() != Some((0, 0)) {
            return promised;
        }
        (first..=stamp).for_each(|stamp| promised.stable(stamp));
    }
}

/// Cuts the power of a server's disk, again and again.
fn cut(direct: bool, client: fn(UnixStream) -> Promised) {
    let (mut lost, mut promised) = (0, 0);
    for round in 0..cuts() {
        let Some(disk) = FlakyDisk::new(BLOCKS as usize * BLOCK) else { return };
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("socket");
        let options = DiskOptions::new::<&str>([]).scheduler("noop").unwrap().depth(8).direct(direct);
        let exports = [Export::new("disk", disk.file())];
        let listen = [Listen::Unix(socket.clone())];
        let server = Server::start(options, &exports, &listen, Options::default()).unwrap();
        let connection = nbd_client::client(&socket, "disk").unwrap().0;
        let writes = std::thread::spawn(move || client(connection));
        // Longer each time, on a machine so busy that nothing was acknowledged yet.
        let times = if promised == 0 { round + 1 } else { 1 };
        std::thread::sleep(Duration::from_micros(times * (1500 + round * 7919 % 6000)));
        disk.cut();
        let promise = writes.join().unwrap();
        drop(server);
        promised += promise.0.len();
        lost += promise.lost(&disk.stable()).len();
    }
    assert_eq!(lost, 0, "of {promised} blocks that were acknowledged as stable");
    assert!(promised > 0, "the power was cut before anything was acknowledged");
    println!("{promised} blocks, none lost, in {} cuts", cuts());
}

#[test]
fn fua_survives_with_direct_io() {
    cut(true, write_through);
}

#[test]
fn fua_survives_with_the_page_cache() {
    cut(false, write_through);
}

#[test]
fn a_flush_survives_with_direct_io() {
    cut(true, write_and_flush);
}

#[test]
fn a_flush_survives_with_the_page_cache() {
    cut(false, write_and_flush);
}

fn through(disk: &Disk, client: &Client, block: u64) -> Pending<()> {
    let mut bytes = disk.buffer(BLOCK);
    bytes.copy_from_slice(&data(block + 1));
    client.write_through(0, block * BLOCK as u64, bytes)
}

/// Two neighbours are written by one operation, which does the first only; the second one fails. The first
/// one is answered when it is stable, and with an error if it cannot be.
#[test]
fn a_write_whose_neighbour_fails_is_stable_before_it_is_answered() {
    for sync in [Ok(()), Err(Errno::IO)] {
        let Some(flaky) = FlakyDisk::new(BLOCKS as usize * BLOCK) else { return };
        let faults = Faults::default();
        let options = DiskOptions::new([flaky.file()]).scheduler("noop").unwrap().depth(1).faults(&faults);
        let disk = Disk::open(options).unwrap();
        let client = disk.client("a").unwrap();
        let add = |op, block: u64, times, harm| {
            let bytes = block * BLOCK as u64..(block + 1) * BLOCK as u64;
            faults.add(Fault { op, file: 0, bytes, times, harm });
        };
        // Meanwhile the two are merged.
        add(FaultOp::Read, 40, 1, Harm::Stuck(Duration::from_millis(200)));
        add(FaultOp::Write, 8, 1, Harm::Short(BLOCK as u64));
        add(FaultOp::Write, 9, u32::MAX, Harm::Error(Errno::IO));
        if let Err(errno) = sync {
            add(FaultOp::Flush, 0, 1, Harm::Error(errno));
        }
        let busy = client.read(0, 40 * BLOCK as u64, BLOCK as u32);
        let [first, second] = [8, 9].map(|block| through(&disk, &client, block));
        assert!(busy.wait().is_ok());
        assert_eq!((first.wait(), second.wait()), (sync, Err(Errno::IO)));
        let stable = flaky.stable()[8 * BLOCK..9 * BLOCK] == data(9);
        assert!(sync.is_err() || stable, "it was answered, and a power cut would lose it");
        let merged = disk.groups().unwrap().iter().map(|g| g.1.io_merged.total()).sum::<u64>();
        assert_eq!(merged, 1, "they were to be one operation");
    }
}

/// A flush and the sync of a write with FUA are not at work together: the kernel would report an error to one
/// of them, and it may be about the writes of both.
#[test]
fn a_flush_and_the_sync_of_a_write_share_their_errors() {
    for is_flush_first in [true, false] {
        let Some(flaky) = FlakyDisk::new(BLOCKS as usize * BLOCK) else { return };
        let faults = Faults::default();
        let options = DiskOptions::new([flaky.file()]).scheduler("noop").unwrap().depth(8).faults(&faults);
        let disk = Disk::open(options).unwrap();
        let [a, b] = ["a", "b"].map(|group| disk.client(group).unwrap());
        let harm = Harm::Stuck(Duration::from_millis(300));
        faults.add(Fault { op: FaultOp::Flush, file: 0, bytes: 0..1, times: 1, harm });
        let (flush, write) = if is_flush_first {
            let flush = a.flush(0);
            (flush, through(&disk, &b, 3))
        } else {
            let write = through(&disk, &b, 3);
            // Its bytes are written, and its sync is stuck.
            std::thread::sleep(Duration::from_millis(50));
            (a.flush(0), write)
        };
        std::thread::sleep(Duration::from_millis(100));
        flaky.fail_sync();
        assert_eq!((flush.wait(), write.wait()), (Err(Errno::IO), Err(Errno::IO)), "{is_flush_first}");
        assert_eq!((a.flush(0).wait(), through(&disk, &b, 4).wait()), (Ok(()), Ok(())));
    }
}

/// Writes that are done at the same time are made stable together.
#[test]
fn writes_with_fua_share_a_sync() {
    let Some(disk) = FlakyDisk::new(BLOCKS as usize * BLOCK) else { return };
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let options = DiskOptions::new::<&str>([]).scheduler("noop").unwrap().depth(32);
    let exports = [Export::new("disk", disk.file())];
    let _server =
        Server::start(options, &exports, &[Listen::Unix(socket.clone())], Options::default()).unwrap();
    let mut connection = nbd_client::client(&socket, "disk").unwrap().0;
    disk.set_sync(Duration::from_millis(20));
    let all: Vec<u8> = (0..32)
        .flat_map(|i| [flagged(FUA, WRITE, i, i * 2 * BLOCK as u64, BLOCK as u32), data(i)].concat())
        .collect();
    connection.write_all(&all).unwrap();
    for _ in 0..32 {
        assert_eq!(hear(&mut connection).unwrap().0, 0);
    }
    let syncs = disk.syncs();
    assert!((1..=16).contains(&syncs), "{syncs} syncs for 32 writes");
}
