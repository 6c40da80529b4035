//! A backing store that fails, in real time: what hangs hangs alone, and ends with a time-out.

#![allow(clippy::disallowed_methods, reason = "what is stuck is stuck in real time")]

use crate::faulty_disk::{
    BLOCK, EAGAIN, ENOSPC, EROFS, MS, Place, connect, fault, new, old, reply, request, serve,
    while_it_is_busy, write,
};
use crate::in_time::{in_time, in_time_by, timely, too_late};
use fairhead_live::{Disk, Errno, FaultOp, Faults, Harm};
use std::io::Write;
use std::time::{Duration, Instant};

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
fn over_nbd_each_gets_its_own_error_and_the_stuck_one_a_time_out() {
    in_time(|| {
        let faults = Faults::default();
        let (place, server) = serve(&faults);
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
fn who_is_hung_up_on_leaves_no_write_that_overtakes_its_successors() {
    let faults = Faults::default();
    let (place, _server) = serve(&faults);
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
