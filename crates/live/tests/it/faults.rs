//! A backing store that fails: the right error goes to the right request, and those beside it get what is
//! theirs.

#![allow(clippy::disallowed_methods, reason = "what is stuck is stuck in real time")]

use crate::faulty_disk::{
    BLOCK, EAGAIN, ENOSPC, MS, Place, connect, fault, new, old, reply, request, serve, while_it_is_busy,
    write,
};
use fairhead_live::{Disk, DiskOptions, Errno, FaultOp, Faults, Harm};
use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

/// A file system of one megabyte, gone with the test.
struct Tiny(PathBuf);

impl Drop for Tiny {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
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

#[test]
fn what_could_not_be_made_stable_is_not_called_so_because_it_works_the_second_time() {
    let faults = Faults::default();
    let (place, server) = serve(&faults);
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
