//! A backing store that fails: the right error goes to the right request, those beside it get what is theirs,
//! and what hangs hangs alone.

#![allow(clippy::disallowed_methods, reason = "what is stuck is stuck in real time")]

use crate::in_time::{in_time, in_time_by, timely, too_late};
use fairhead_core::units;
use fairhead_live::nbd::{Export, Listen, Options, Server};
use fairhead_live::{Client, Disk, DiskOptions, Errno, Fault, FaultOp, Faults, Harm, Settings};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const BLOCK: u64 = 4096;
const SIZE: u64 = 1 << 20;
const EROFS: Errno = Errno(libc::EROFS);
const ENOSPC: Errno = Errno(libc::ENOSPC);
const EAGAIN: Errno = Errno(libc::EAGAIN);
const TIMEOUT_MS: u64 = 500;
const MS: Duration = Duration::from_millis(1);

/// A folder, removed again.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        // In memory if possible, where nothing takes long that is not told to.
        let place = Self(tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap());
        let image: Vec<u8> = (0..SIZE / BLOCK).flat_map(old).collect();
        fs::write(place.file(), image).unwrap();
        place
    }
    fn file(&self) -> PathBuf {
        self.0.path().join("disk.img")
    }
    fn options(&self, faults: &Faults) -> DiskOptions {
        let timeout = units::Duration::from_ms(TIMEOUT_MS);
        let settings = Settings { timeout: Some(timeout), ..Settings::default() };
        DiskOptions::new([self.file()])
            .scheduler("deadline")
            .unwrap()
            .settings(settings)
            .depth(8)
            .faults(faults)
    }
    fn stored(&self, block: u64) -> Vec<u8> {
        let mut bytes = vec![0; BLOCK as usize];
        File::open(self.file()).unwrap().read_exact_at(&mut bytes, block * BLOCK).unwrap();
        bytes
    }
}

/// What a block holds at first, and after a test has written it.
fn old(block: u64) -> Vec<u8> {
    (0..BLOCK).map(|i| (block * 7 + i / 64) as u8).collect()
}

fn new(block: u64) -> Vec<u8> {
    old(block).iter().map(|b| !b).collect()
}

fn blocks(range: Range<u64>) -> Range<u64> {
    range.start * BLOCK..range.end * BLOCK
}

fn fault(op: FaultOp, range: Range<u64>, times: u32, harm: Harm) -> Fault {
    Fault { op, file: 0, bytes: blocks(range), times, harm }
}

fn write(disk: &Disk, client: &Client, block: u64) -> fairhead_live::Pending<()> {
    let mut data = disk.buffer(BLOCK as usize);
    data.copy_from_slice(&new(block));
    client.write(0, block * BLOCK, data)
}

/// Something takes the whole disk, so that what is asked for meanwhile waits in the scheduler and is merged
/// there.
fn while_it_is_busy<R>(disk: &Disk, faults: &Faults, ask: impl FnOnce() -> R) -> R {
    let client = disk.client("busy").unwrap();
    for i in 0..8 {
        faults.add(fault(FaultOp::Read, 200 + i * 2..201 + i * 2, 1, Harm::Stuck(60 * MS)));
    }
    let busy: Vec<_> = (0..8).map(|i| client.read(0, (200 + i * 2) * BLOCK, BLOCK as u32)).collect();
    let asked = ask();
    busy.into_iter().for_each(|b| assert!(b.wait().is_ok()));
    asked
}

#[test]
fn an_error_in_a_merged_transfer_goes_to_the_one_it_is_about() {
    in_time(|| {
        for errno in [Errno::IO, ENOSPC, EROFS] {
            let place = Place::new();
            let faults = Faults::default();
            let disk = Disk::open(place.options(&faults)).unwrap();
            let client = disk.client("a").unwrap();
            let writes = while_it_is_busy(&disk, &faults, || {
                faults.add(fault(FaultOp::Write, 13..14, u32::MAX, Harm::Error(errno)));
                (10..18).map(|block| write(&disk, &client, block)).collect::<Vec<_>>()
            });
            for (block, outcome) in (10..18).zip(writes) {
                let expected = if block == 13 { Err(errno) } else { Ok(()) };
                assert_eq!(outcome.wait(), expected, "block {block}");
                assert!(
                    place.stored(block) == if block == 13 { old(block) } else { new(block) },
                    "block {block}"
                );
            }
            let merged = disk.groups().unwrap().iter().map(|g| g.1.io_merged.total()).sum::<u64>();
            timely(merged >= 7, format_args!("they were to be merged: {merged}"));
            faults.clear();
            let reads = while_it_is_busy(&disk, &faults, || {
                faults.add(fault(FaultOp::Read, 15..16, u32::MAX, Harm::Error(Errno::IO)));
                (10..18).map(|block| client.read(0, block * BLOCK, BLOCK as u32)).collect::<Vec<_>>()
            });
            for (block, outcome) in (10..18).zip(reads) {
                let expected = if block == 13 { old(block) } else { new(block) };
                match outcome.wait() {
                    Ok(data) => assert!(block != 15 && data[..] == expected[..], "block {block}"),
                    Err(e) => assert_eq!((block, e), (15, Errno::IO)),
                }
            }
        }
    });
}

#[test]
fn short_transfers_and_those_that_may_go_well_later_are_continued() {
    for direct in [false, true] {
        let place = Place::new();
        let faults = Faults::default();
        let disk = Disk::open(place.options(&faults).direct(direct)).unwrap();
        let client = disk.client("a").unwrap();
        let least = if direct { 4096 } else { 1001 };
        for op in [FaultOp::Read, FaultOp::Write] {
            faults.add(fault(op, 0..200, 40, Harm::Short(least)));
            faults.add(fault(op, 0..200, 40, Harm::Error(EAGAIN)));
            faults.add(fault(op, 0..200, 40, Harm::Error(Errno::INTR)));
        }
        let mut data = disk.buffer(16 * BLOCK as usize);
        (0..16).for_each(|i| data[i * 4096..(i + 1) * 4096].copy_from_slice(&new(64 + i as u64)));
        let writes = while_it_is_busy(&disk, &faults, || {
            let first = client.write_through(0, 64 * BLOCK, data);
            let rest: Vec<_> = (32..40).map(|block| write(&disk, &client, block)).collect();
            (first, rest)
        });
        assert_eq!(writes.0.wait(), Ok(()));
        writes.1.into_iter().for_each(|w| assert_eq!(w.wait(), Ok(())));
        let all = client.read(0, 32 * BLOCK, 48 * BLOCK as u32).wait().unwrap();
        for block in 32..80 {
            let at = ((block - 32) * BLOCK) as usize;
            let expected = if !(40..64).contains(&block) { new(block) } else { old(block) };
            assert!(all[at..at + BLOCK as usize] == expected, "block {block}");
            assert!(place.stored(block) == expected, "block {block} of the file");
        }
    }
}

#[test]
fn a_stuck_write_times_out_and_what_it_does_late_harms_nobody() {
    in_time(|| {
        let place = Place::new();
        let faults = Faults::default();
        let disk = Disk::open(place.options(&faults)).unwrap();
        let (a, b) = (disk.client("a").unwrap(), disk.client("b").unwrap());
        faults.add(fault(FaultOp::Write, 20..21, 1, Harm::Stuck(2000 * MS)));
        let start = Instant::now();
        let stuck = write(&disk, &a, 20);
        // Other clients continue all the time, and so does the one that waits.
        let mut others = 0;
        while start.elapsed() < 250 * MS {
            let block = 30 + others % 100;
            assert_eq!(write(&disk, &b, block).wait(), Ok(()));
            let read = a.read(0, block * BLOCK, BLOCK as u32).wait().unwrap();
            assert!(read[..] == new(block)[..]);
            others += 1;
        }
        timely(others > 20, format_args!("{others} in a quarter of a second"));
        assert_eq!(stuck.wait(), Err(Errno::TIMEDOUT));
        let took = start.elapsed();
        assert!(took >= 500 * MS, "{took:?}");
        timely(took < 1800 * MS, format_args!("given up after {took:?}"));
        // No client reads what may still change, and no client writes what may be overwritten.
        let doubtful = b.read(0, 19 * BLOCK, 3 * BLOCK as u32).wait().err();
        let overwriting = write(&disk, &b, 20).wait();
        assert!(b.read(0, 21 * BLOCK, BLOCK as u32).wait().is_ok());
        assert_eq!(b.flush(0).wait(), Ok(()));
        let stored = place.stored(20);
        timely(start.elapsed() < 1950 * MS, "all this before the stuck write comes");
        assert_eq!((doubtful, overwriting), (Some(Errno::TIMEDOUT), Err(Errno::TIMEDOUT)));
        assert!(stored == old(20));
        std::thread::sleep((2100 * MS).saturating_sub(start.elapsed()));
        timely(place.stored(20) == new(20), "it has come late");
        let read = b.read(0, 20 * BLOCK, BLOCK as u32).wait();
        timely(!matches!(read, Err(Errno::TIMEDOUT)), "and is certain again");
        assert!(read.unwrap()[..] == new(20)[..]);
        let start = Instant::now();
        drop(disk);
        timely(start.elapsed() < 500 * MS, "nothing is left");
    });
}

#[test]
fn a_stuck_read_times_out_and_its_memory_is_not_used_again_too_early() {
    let place = Place::new();
    let faults = Faults::default();
    let disk = Disk::open(place.options(&faults)).unwrap();
    let client = disk.client("a").unwrap();
    faults.add(fault(FaultOp::Read, 5..6, 1, Harm::Stuck(800 * MS)));
    let start = Instant::now();
    let stuck = client.read(0, 5 * BLOCK, BLOCK as u32);
    assert_eq!(stuck.wait().err(), Some(Errno::TIMEDOUT));
    // Were the buffer given out again, the late read would show in another client's data.
    let mut held = Vec::new();
    while start.elapsed() < 1000 * MS {
        let block = 40 + held.len() as u64 % 50;
        held.push((block, client.read(0, block * BLOCK, BLOCK as u32).wait().unwrap()));
        std::thread::sleep(5 * MS);
    }
    held.iter().for_each(|(block, data)| assert!(data[..] == old(*block)[..], "block {block}"));
}

#[test]
fn what_is_always_told_to_come_again_ends_with_a_time_out() {
    in_time(|| {
        let place = Place::new();
        let faults = Faults::default();
        let disk = Disk::open(place.options(&faults)).unwrap();
        let client = disk.client("a").unwrap();
        faults.add(fault(FaultOp::Read, 5..6, u32::MAX, Harm::Error(EAGAIN)));
        let stuck = client.read(0, 5 * BLOCK, BLOCK as u32);
        for block in 10..30 {
            assert!(client.read(0, block * BLOCK, BLOCK as u32).wait().is_ok());
        }
        assert_eq!(stuck.wait().err(), Some(Errno::TIMEDOUT));
        let start = Instant::now();
        drop(disk);
        timely(start.elapsed() < Duration::from_secs(1), "it is not tried for ever");
    });
}

#[test]
fn nothing_is_stable_before_the_disk_says_so() {
    let place = Place::new();
    let faults = Faults::default();
    let disk = Disk::open(place.options(&faults)).unwrap();
    let client = disk.client("a").unwrap();
    assert_eq!(write(&disk, &client, 3).wait(), Ok(()));
    faults.add(fault(FaultOp::Flush, 0..1, 1, Harm::Stuck(150 * MS)));
    let start = Instant::now();
    assert_eq!(client.flush(0).wait(), Ok(()));
    assert!(start.elapsed() >= 150 * MS, "answered before it was done");
    faults.add(fault(FaultOp::Write, 4..5, 1, Harm::Stuck(150 * MS)));
    let start = Instant::now();
    assert_eq!(client.write_through(0, 4 * BLOCK, disk.buffer(4096)).wait(), Ok(()));
    assert!(start.elapsed() >= 150 * MS, "answered before it was done");
}

#[test]
fn a_stuck_flush_times_out_for_all_who_wait_for_it() {
    in_time(|| {
        let place = Place::new();
        let faults = Faults::default();
        let disk = Disk::open(place.options(&faults)).unwrap();
        let (a, b) = (disk.client("a").unwrap(), disk.client("b").unwrap());
        faults.add(fault(FaultOp::Flush, 0..1, 1, Harm::Stuck(2500 * MS)));
        let start = Instant::now();
        let first = a.flush(0);
        let second = b.flush(0);
        assert_eq!(write(&disk, &b, 7).wait(), Ok(()));
        assert_eq!(first.wait(), Err(Errno::TIMEDOUT));
        assert_eq!(second.wait(), Err(Errno::TIMEDOUT));
        let third = a.flush(0).wait();
        timely(start.elapsed() < 2200 * MS, "they did not wait for what is stuck");
        assert_eq!(third, Err(Errno::TIMEDOUT));
        assert_eq!(write(&disk, &b, 8).wait(), Ok(()));
        std::thread::sleep((2600 * MS).saturating_sub(start.elapsed()));
        assert_eq!(b.flush(0).wait(), Ok(()));
    });
}

#[test]
fn a_failed_flush_is_told_to_everybody_whose_writes_it_may_have_lost() {
    let place = Place::new();
    let faults = Faults::default();
    let disk = Disk::open(place.options(&faults)).unwrap();
    let [a, b] = ["a", "b"].map(|group| disk.client(group).unwrap());
    assert_eq!(write(&disk, &b, 7).wait(), Ok(()));
    faults.add(fault(FaultOp::Flush, 0..1, 1, Harm::Error(Errno::IO)));
    assert_eq!(a.flush(0).wait(), Err(Errno::IO));
    assert_eq!(b.flush(0).wait(), Err(Errno::IO), "the kernel says it once, but it was about b's write");
    assert_eq!([&a, &b].map(|c| c.flush(0).wait()), [Ok(()), Ok(())], "and once is enough");
    assert_eq!(disk.client("c").unwrap().flush(0).wait(), Ok(()), "who came later has lost nothing");
}

#[test]
fn a_write_through_the_page_cache_that_fails_may_have_heard_of_anothers_loss() {
    for direct in [false, true] {
        let place = Place::new();
        let faults = Faults::default();
        let disk = Disk::open(place.options(&faults).direct(direct)).unwrap();
        let [a, b] = ["a", "b"].map(|group| disk.client(group).unwrap());
        assert_eq!(write(&disk, &b, 7).wait(), Ok(()));
        faults.add(fault(FaultOp::Write, 3..4, 1, Harm::Error(Errno::IO)));
        assert_eq!(a.write_through(0, 3 * BLOCK, disk.buffer(4096)).wait(), Err(Errno::IO));
        let told = if direct { Ok(()) } else { Err(Errno::IO) };
        assert_eq!(b.flush(0).wait(), told, "direct: {direct}");
        assert_eq!(b.flush(0).wait(), Ok(()));
    }
}

#[test]
fn zeroing_finds_another_way_and_says_so_if_there_is_none() {
    let place = Place::new();
    let faults = Faults::default();
    let disk = Disk::open(place.options(&faults)).unwrap();
    let client = disk.client("a").unwrap();
    let len = 4 * BLOCK as u32;
    faults.add(fault(FaultOp::Allocate, 0..256, 3, Harm::Error(Errno(libc::EOPNOTSUPP))));
    assert_eq!(client.discard(0, 60 * BLOCK, len).wait(), Ok(()), "a disk may do nothing");
    assert!(place.stored(60) == old(60));
    assert_eq!(client.zero(0, 60 * BLOCK, len, true).wait(), Ok(()), "twice refused, then written");
    assert!((60..64).all(|block| place.stored(block).iter().all(|b| *b == 0)));
    faults.clear();
    faults.add(fault(FaultOp::Allocate, 0..256, 1, Harm::Error(ENOSPC)));
    assert_eq!(client.zero(0, 70 * BLOCK, len, false).wait(), Err(ENOSPC));
    assert!(place.stored(70) == old(70));
    assert_eq!(client.discard(0, 70 * BLOCK, len).wait(), Ok(()));
}

#[test]
fn a_file_that_shrinks_reads_as_zeros_behind_its_end() {
    let place = Place::new();
    let disk = Disk::open(place.options(&Faults::default())).unwrap();
    let client = disk.client("a").unwrap();
    File::options().write(true).open(place.file()).unwrap().set_len(10 * BLOCK + 512).unwrap();
    let data = client.read(0, 9 * BLOCK, 4 * BLOCK as u32).wait().unwrap();
    assert!(data[..4096] == old(9)[..] && data[4096..4608] == old(10)[..512]);
    assert!(data[4608..].iter().all(|b| *b == 0));
}

/// A file system of one megabyte, gone with the test.
struct Tiny(PathBuf);

impl Drop for Tiny {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

#[test]
fn a_full_file_system_fails_those_writes_that_need_room() {
    let place = Place::new();
    let tiny = place.0.path().join("tiny");
    fs::create_dir(&tiny).unwrap();
    let mount = Command::new("mount").args(["-t", "tmpfs", "-o", "size=1m", "tiny"]).arg(&tiny).output();
    if !mount.is_ok_and(|o| o.status.success()) {
        return println!("skipped: cannot mount a tmpfs");
    }
    let tiny = Tiny(tiny);
    let file = tiny.0.join("sparse.img");
    File::create(&file).unwrap().set_len(4 << 20).unwrap();
    let disk = Disk::open(DiskOptions::new([&file]).scheduler("noop").unwrap().depth(4)).unwrap();
    let client = disk.client("a").unwrap();
    let write = |i: u64| {
        let mut data = disk.buffer(64 << 10);
        data.fill(i as u8 + 1);
        client.write(0, i * (64 << 10), data)
    };
    let outcomes: Vec<_> = (0..64).map(write).collect();
    let outcomes: Vec<_> = outcomes.into_iter().map(|w| w.wait()).collect();
    let full = outcomes.iter().filter(|o| **o == Err(ENOSPC)).count();
    assert!(full > 40 && outcomes.iter().all(|o| matches!(o, Ok(()) | Err(ENOSPC))), "{outcomes:?}");
    for (i, outcome) in outcomes.iter().enumerate() {
        let data = client.read(0, i as u64 * (64 << 10), 64 << 10).wait().unwrap();
        assert!(outcome.is_err() || data.iter().all(|b| *b == i as u8 + 1), "write {i} was answered well");
    }
    assert_eq!(client.flush(0).wait(), Ok(()));
    let there = outcomes.iter().position(Result::is_ok).unwrap() as u64;
    assert_eq!(write(there).wait(), Ok(()), "what has its room keeps it");
    drop(disk);
}

/// A client of the server, with simple replies.
fn connect(place: &Place) -> UnixStream {
    let mut socket = UnixStream::connect(place.0.path().join("socket")).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    socket.read_exact(&mut [0; 18]).unwrap();
    socket.write_all(b"\0\0\0\x03IHAVEOPT\0\0\0\x01\0\0\0\x04disk").unwrap();
    socket.read_exact(&mut [0; 10]).unwrap();
    socket
}

fn request(kind: u16, flags: u16, cookie: u64, block: u64, len: u32) -> Vec<u8> {
    let mut bytes = 0x2560_9513_u32.to_be_bytes().to_vec();
    bytes.extend(flags.to_be_bytes());
    bytes.extend(kind.to_be_bytes());
    bytes.extend(cookie.to_be_bytes());
    bytes.extend((block * BLOCK).to_be_bytes());
    bytes.extend(len.to_be_bytes());
    bytes
}

/// The error and the cookie of the next reply; what is read is thrown away if `len` of the cookie is not 0.
fn reply(socket: &mut UnixStream, len: impl Fn(u64) -> usize) -> (u64, u32) {
    let mut head = [0; 16];
    socket.read_exact(&mut head).unwrap();
    let errno = u32::from_be_bytes(head[4..8].try_into().unwrap());
    let cookie = u64::from_be_bytes(head[8..].try_into().unwrap());
    if errno == 0 {
        socket.read_exact(&mut vec![0; len(cookie)]).unwrap();
    }
    (cookie, errno)
}

#[test]
fn over_nbd_each_gets_its_own_error_and_the_stuck_one_a_time_out() {
    in_time(|| {
        let place = Place::new();
        let faults = Faults::default();
        let exports = [Export::new("disk", place.file())];
        let listen = [Listen::Unix(place.0.path().join("socket"))];
        let server = Server::start(place.options(&faults), &exports, &listen, Options::default()).unwrap();
        let (mut socket, mut other) = (connect(&place), connect(&place));
        faults.add(fault(FaultOp::Read, 1..2, u32::MAX, Harm::Error(Errno::IO)));
        faults.add(fault(FaultOp::Write, 2..3, u32::MAX, Harm::Error(ENOSPC)));
        faults.add(fault(FaultOp::Write, 3..4, u32::MAX, Harm::Error(EROFS)));
        faults.add(fault(FaultOp::Read, 5..6, u32::MAX, Harm::Stuck(2000 * MS)));
        faults.add(fault(FaultOp::Flush, 0..1, 1, Harm::Error(Errno::IO)));
        let page = vec![9; BLOCK as usize];
        let all = [
            request(0, 0, 10, 0, 4096),
            request(0, 0, 11, 1, 4096),
            [request(1, 0, 12, 2, 4096), page.clone()].concat(),
            [request(1, 1, 13, 3, 4096), page.clone()].concat(),
            [request(1, 1, 14, 4, 4096), page].concat(),
            request(0, 0, 15, 5, 4096),
            request(3, 0, 16, 0, 0),
        ];
        let start = Instant::now();
        socket.write_all(&all.concat()).unwrap();
        let len = |cookie| if matches!(cookie, 10 | 11 | 15) { 4096 } else { 0 };
        let mut seen: Vec<_> = (0..6).map(|_| reply(&mut socket, len)).collect();
        seen.sort_unstable();
        assert_eq!(seen, [(10, 0), (11, 5), (12, 28), (13, 1), (14, 0), (16, 5)]);
        timely(start.elapsed() < 490 * MS, "they did not wait for the one that is stuck");
        for cookie in 0..20 {
            other.write_all(&request(0, 0, cookie, 50 + cookie, 4096)).unwrap();
            assert_eq!(reply(&mut other, |_| 4096), (cookie, 0));
        }
        assert_eq!(reply(&mut socket, len), (15, 5), "EIO is what the protocol has for a time-out");
        timely(start.elapsed() < 1900 * MS, "a time-out comes in time");
        std::thread::sleep((2100 * MS).saturating_sub(start.elapsed()));
        socket.write_all(&request(0, 0, 17, 4, 4096)).unwrap();
        assert_eq!(reply(&mut socket, |_| 4096), (17, 0), "nothing was answered twice");
        let stats = server.stop()[0].1;
        assert_eq!((stats.errors, stats.violations), (5, 0));
    });
}

#[test]
fn what_could_not_be_made_stable_is_not_called_so_because_it_works_the_second_time() {
    let place = Place::new();
    let faults = Faults::default();
    let exports = [Export::new("disk", place.file())];
    let listen = [Listen::Unix(place.0.path().join("socket"))];
    let server = Server::start(place.options(&faults), &exports, &listen, Options::default()).unwrap();
    let (mut socket, mut other) = (connect(&place), connect(&place));
    while_it_is_busy(server.disk(), &faults, || {
        faults.add(fault(FaultOp::Flush, 0..1, 1, Harm::Error(Errno::IO)));
        let all: Vec<u8> = (0..4).flat_map(|i| request(6, 1, i, 30 + i, 4096)).collect();
        socket.write_all(&all).unwrap();
    });
    let failed = (0..4).filter(|_| reply(&mut socket, |_| 0).1 == 5).count();
    assert!(failed > 0, "one flush failed, and no client got the error");
    let mut flush = |cookie| {
        other.write_all(&request(3, 0, cookie, 0, 0)).unwrap();
        reply(&mut other, |_| 0)
    };
    assert_eq!(
        (flush(1), flush(2)),
        ((1, 5), (2, 0)),
        "what the kernel said then may have been about anybody's"
    );
}

#[test]
fn who_is_hung_up_on_leaves_no_write_that_overtakes_its_successors() {
    let place = Place::new();
    let faults = Faults::default();
    let exports = [Export::new("disk", place.file())];
    let listen = [Listen::Unix(place.0.path().join("socket"))];
    let _server = Server::start(place.options(&faults), &exports, &listen, Options::default()).unwrap();
    let mut first = connect(&place);
    faults.add(fault(FaultOp::Write, 8..9, 1, Harm::Stuck(150 * MS)));
    first.write_all(&[request(1, 0, 1, 8, 4096), vec![1; 4096]].concat()).unwrap();
    // It is at the disk; then the client is gone, and comes back.
    std::thread::sleep(30 * MS);
    drop(first);
    let mut second = connect(&place);
    std::thread::sleep(30 * MS);
    second.write_all(&[request(1, 1, 2, 8, 4096), vec![2; 4096]].concat()).unwrap();
    assert_eq!(reply(&mut second, |_| 0), (2, 0));
    std::thread::sleep(200 * MS);
    assert!(place.stored(8).iter().all(|b| *b == 2), "an acknowledged write is gone");
}

#[test]
fn what_is_late_on_a_busy_machine_is_tried_again_and_then_skipped() {
    let (calm, busy) = (Duration::from_millis(3), Duration::from_millis(300));
    let mut tries = 0;
    let mut attempt = |fails: u32, late| {
        tries += 1;
        (if tries <= fails { too_late(calm) } else { Ok(()) }, late)
    };
    assert!(in_time_by(|| attempt(2, busy)), "the third goes well");
    assert!(!in_time_by(|| (too_late(calm), busy)), "none goes well");
    let (just, much) = (too_late(calm), too_late(2 * busy));
    for (outcome, late) in [(just, calm), (much, busy), (Err(Box::new("wrong") as Box<_>), busy)] {
        let mut outcome = Some(outcome);
        let failed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            in_time_by(|| (outcome.take().unwrap(), late));
        }));
        assert!(failed.is_err(), "it fails, the first time");
    }
}
