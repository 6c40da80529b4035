//! Requests that direct I/O does not take as they are: any offset and any length, on files in memory and on
//! disks.

#![allow(clippy::disallowed_methods, reason = "sockets and their time-outs are real")]

use crate::in_time::{in_time, timely};
use crate::nbd_client;
use crate::nbd_client::{READ, WRITE, flagged, reply, request};
use fairhead_live::nbd::{Export, Listen, Options, Server};
use fairhead_live::{Client, Disk, DiskOptions, Errno, Fault, FaultOp, Faults, Harm, Pending};
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const TRIM: u16 = 4;
const ZERO: u16 = 6;
const FUA: u16 = 1;
/// Not a multiple of anything.
const SIZE: usize = (1 << 20) + 777;

struct Place(TempDir);

impl Place {
    /// On a disk, beside the programs, and in memory.
    fn all() -> impl Iterator<Item = Self> {
        let disk = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        [Some(disk), tempfile::tempdir_in("/dev/shm").ok()].into_iter().flatten().map(|folder| {
            let place = Self(folder);
            File::create(place.file()).unwrap().write_all(&pattern(SIZE, 0)).unwrap();
            place
        })
    }

    fn file(&self) -> PathBuf {
        self.0.path().join("disk.img")
    }

    fn serve(&self, faults: &Faults) -> Server {
        let disk = DiskOptions::new::<&str>([]).scheduler("noop").unwrap().depth(8).faults(faults);
        let listen = [Listen::Unix(self.0.path().join("socket"))];
        Server::start(disk, &[Export::new("disk", self.file())], &listen, Options::default()).unwrap()
    }

    fn client(&self) -> UnixStream {
        let (socket, size) = nbd_client::client(&self.0.path().join("socket"), "disk").unwrap();
        assert_eq!(size, SIZE as u64, "the whole file is exported");
        socket
    }
}

fn pattern(len: usize, seed: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 31 + seed * 7 + i / 4096) as u8).collect()
}

fn read(socket: &mut UnixStream, at: usize, len: usize) -> Vec<u8> {
    socket.write_all(&request(READ, 9, at as u64, len as u32)).unwrap();
    assert_eq!(reply(socket), (0, 9), "{len} bytes at {at}");
    let mut data = vec![0; len];
    socket.read_exact(&mut data).unwrap();
    data
}

#[test]
fn any_offset_and_length_is_served() {
    for place in Place::all() {
        let server = place.serve(&Faults::default());
        let mut socket = place.client();
        let mut disk = pattern(SIZE, 0);
        let cases = [
            (777, 1),
            (1001, 1000),
            (512, 512),
            (4095, 2),
            (12_345, 300_001),
            (4096, 8192),
            (SIZE - 777, 777),
            (SIZE - 1, 1),
            (0, SIZE),
        ];
        for (i, (at, len)) in cases.into_iter().enumerate() {
            let kind = [WRITE, WRITE, ZERO, WRITE, TRIM][i % 5];
            let data = if kind == WRITE { pattern(len, i + 1) } else { Vec::new() };
            let flags = if i % 2 == 0 { FUA } else { 0 };
            socket
                .write_all(&[flagged(flags, kind, 1, at as u64, len as u32), data.clone()].concat())
                .unwrap();
            assert_eq!(reply(&mut socket), (0, 1), "command {kind}, {len} bytes at {at}");
            match kind {
                WRITE => disk[at..at + len].copy_from_slice(&data),
                ZERO => disk[at..at + len].fill(0),
                // What was discarded reads as zeros or as before.
                _ => {
                    let now = read(&mut socket, at, len);
                    let old = disk[at..at + len].iter().zip(&now);
                    assert!(old.into_iter().all(|(old, new)| *new == 0 || new == old));
                    disk[at..at + len].copy_from_slice(&now);
                }
            }
            let from = at.saturating_sub(5000);
            let end = (at + len + 5000).min(SIZE);
            assert!(read(&mut socket, from, end - from) == disk[from..end], "case {i}");
        }
        socket.write_all(&request(3, 2, 0, 0)).unwrap();
        assert_eq!(reply(&mut socket), (0, 2));
        drop(socket);
        let _ = server.stop();
        assert!(std::fs::read(place.file()).unwrap() == disk, "the file");
    }
}

/// Four clients write to the same pages, each to bytes of its own: some writes are whole blocks, which go
/// past the page cache, and some are not.
#[test]
fn neighbours_within_a_page_keep_their_bytes() {
    const PAGES: usize = 4;
    for place in Place::all() {
        let server = place.serve(&Faults::default());
        let work = |client: usize| {
            let mut socket = place.client();
            // The first two have blocks of 512 bytes, and the others parts of one.
            let (at, len) = [(0, 512), (512, 1024), (1536, 100), (1636, 1900)][client];
            for round in 0..400 {
                let data = |page: usize| pattern(len, client * 10_000 + round * PAGES + page);
                let asked: Vec<u8> = (0..PAGES)
                    .flat_map(|page| {
                        let head = request(WRITE, page as u64, (page * 4096 + at) as u64, len as u32);
                        [head, data(page)].concat()
                    })
                    .collect();
                socket.write_all(&asked).unwrap();
                (0..PAGES).for_each(|_| assert_eq!(reply(&mut socket).0, 0));
                let page = round % PAGES;
                let got = read(&mut socket, page * 4096 + at, len);
                assert!(got == data(page), "client {client}, round {round}: its bytes were taken back");
            }
        };
        std::thread::scope(|s| {
            for client in 0..4 {
                s.spawn(move || work(client));
            }
        });
        let _ = server.stop();
    }
}

fn write_through(disk: &Disk, client: &Client, at: u64, len: usize) -> Pending<()> {
    client.write_through(0, at, disk.buffer(len))
}

/// The kernel reports once that pages could not be written, and a write with FUA past the page cache may be
/// what hears it. Then it is about the writes through the page cache that wait for a sync, and about those
/// before the next flush.
#[test]
fn a_direct_write_that_fails_may_have_heard_of_the_loss_of_pages() {
    let place = Place::all().next().expect("there is a disk");
    let faults = Faults::default();
    let options = DiskOptions::new([place.file()]).scheduler("noop").unwrap().depth(8).faults(&faults);
    let disk = Disk::open(options).unwrap();
    let [a, b] = ["a", "b"].map(|group| disk.client(group).unwrap());
    let stuck = Harm::Stuck(Duration::from_millis(300));
    faults.add(Fault { op: FaultOp::Flush, file: 0, bytes: 0..1, times: 1, harm: stuck });
    let bad = Harm::Error(Errno::IO);
    faults.add(Fault { op: FaultOp::Write, file: 0, bytes: 65536..65537, times: 1, harm: bad });
    let part = write_through(&disk, &b, 8292, 100);
    // Its bytes are in a page, and its sync is stuck.
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(write_through(&disk, &a, 65536, 4096).wait(), Err(Errno::IO));
    assert_eq!(part.wait(), Err(Errno::IO), "it may have been about this page");
    assert_eq!([&b, &b].map(|client| client.flush(0).wait()), [Err(Errno::IO), Ok(())], "once");
    assert_eq!(write_through(&disk, &b, 8292, 100).wait(), Ok(()));
}

/// Two neighbours are written by one operation through the page cache, which does the first only. The second
/// one goes past the page cache, and is stable by itself; the first one has to be synced.
#[test]
fn a_run_that_changes_its_way_is_synced_as_a_whole() {
    let place = Place::all().next().expect("there is a disk");
    let faults = Faults::default();
    let options = DiskOptions::new([place.file()]).scheduler("noop").unwrap().depth(1).faults(&faults);
    let disk = Disk::open(options).unwrap();
    let client = disk.client("a").unwrap();
    let add = |op, bytes, harm| faults.add(Fault { op, file: 0, bytes, times: 1, harm });
    // Meanwhile the two are merged.
    add(FaultOp::Read, 65536..65537, Harm::Stuck(Duration::from_millis(200)));
    add(FaultOp::Write, 8192..12288, Harm::Short(3996));
    add(FaultOp::Flush, 0..1, Harm::Error(Errno::IO));
    let busy = client.read(0, 65536, 4096);
    let writes = [write_through(&disk, &client, 8292, 3996), write_through(&disk, &client, 12288, 4096)];
    assert!(busy.wait().is_ok());
    assert_eq!(writes.map(Pending::wait), [Err(Errno::IO); 2], "the sync of both fails");
    let merged = disk.groups().unwrap().iter().map(|g| g.1.io_merged.total()).sum::<u64>();
    assert_eq!(merged, 1, "they were to be one operation");
}

/// A read of part of a page leaves the page in the page cache. Beside a direct write of the page that could
/// be what was there before, and a later write of part of it would bring that back. The file has two numbers,
/// as it has with two exports.
#[test]
fn a_read_of_part_of_a_page_and_a_write_of_the_page_wait_for_each_other() {
    let place = Place::all().next().expect("there is a disk");
    let faults = Faults::default();
    let files = [place.file(), place.file()];
    let disk =
        Disk::open(DiskOptions::new(files).scheduler("noop").unwrap().depth(8).faults(&faults)).unwrap();
    let client = disk.client("a").unwrap();
    let harm = Harm::Stuck(Duration::from_millis(300));
    let write = |page: u64, byte: u8| {
        let mut data = disk.buffer(4096);
        data.fill(byte);
        client.write(0, page * 4096, data)
    };
    for (page, file) in [(2, 0), (4, 1)] {
        let bytes = page * 4096..(page + 1) * 4096;
        faults.add(Fault { op: FaultOp::Write, file: 0, bytes: bytes.clone(), times: 1, harm });
        let written = write(page, 1);
        let read = client.read(file, bytes.start + 100, 50).wait().unwrap();
        assert!(read[..] == [1; 50], "file {file}: read beside a write that came before");
        assert_eq!(written.wait(), Ok(()));
        faults.add(Fault { op: FaultOp::Read, file, bytes: bytes.clone(), times: 1, harm });
        let read = client.read(file, bytes.start + 100, 50);
        assert_eq!(write(page, 2).wait(), Ok(()));
        assert!(read.wait().unwrap()[..] == [1; 50], "file {file}: written beside a read that came before");
    }
}

/// A write of part of a page is stuck. A write of a block in the same page waits for it, as it might be
/// undone; others do not.
#[test]
fn a_write_of_part_of_a_page_is_alone_in_its_page() {
    let place = Place::all().next().expect("there is a disk");
    let faults = Faults::default();
    let server = place.serve(&faults);
    in_time(|| {
        let (mut socket, mut other) = (place.client(), place.client());
        let stuck = Harm::Stuck(Duration::from_millis(700));
        faults.add(Fault { op: FaultOp::Write, file: 0, bytes: 8292..8293, times: 1, harm: stuck });
        socket.write_all(&[request(WRITE, 1, 8292, 100), vec![1; 100]].concat()).unwrap();
        std::thread::sleep(Duration::from_millis(50));
        let began = Instant::now();
        socket.write_all(&[request(WRITE, 2, 8192, 4096), vec![2; 4096]].concat()).unwrap();
        other.write_all(&[request(WRITE, 3, 4096, 4096), vec![3; 4096]].concat()).unwrap();
        assert_eq!(reply(&mut other), (0, 3));
        timely(began.elapsed() < Duration::from_millis(500), "the page before is free");
        assert_eq!((reply(&mut socket), reply(&mut socket)), ((0, 1), (0, 2)), "in this order");
        assert!(read(&mut socket, 8192, 4096) == [2; 4096]);
    });
    let _ = server.stop();
    let mut stored = [0; 4096];
    File::open(place.file()).unwrap().read_exact_at(&mut stored, 8192).unwrap();
    assert_eq!(stored, [2; 4096]);
}
