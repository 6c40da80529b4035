//! Clients of one server that would take more than their share, by other commands than reads and writes.

#![allow(clippy::disallowed_methods, reason = "sockets and their time-outs are real")]

mod flaky_disk;
mod in_time;
mod may_mount;
mod nbd_client;

use fairhead_core::Max;
use fairhead_live::DiskOptions;
use fairhead_live::nbd::{Export, Listen, Options, Server};
use flaky_disk::FlakyDisk;
use in_time::{in_time, timely};
use nbd_client::{BLOCK_STATUS, READ, WRITE, mapper, reply, request, status};
use std::fs::File;
use std::io::{Read, Write};
use std::num::NonZeroU64;
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const SIZE: u64 = 8 << 20;

fn serve(folder: &Path, scheduler: &str, exports: &[Export]) -> (Server, PathBuf) {
    let socket = folder.join("socket");
    let disk = DiskOptions::new::<&str>([]).scheduler(scheduler).unwrap().depth(8);
    let server = Server::start(disk, exports, &[Listen::Unix(socket.clone())], Options::default()).unwrap();
    (server, socket)
}

fn image(folder: &Path, name: &str) -> PathBuf {
    let path = folder.join(name);
    File::create(&path).unwrap().set_len(SIZE).unwrap();
    path
}

#[test]
fn block_status_is_charged_to_its_group() {
    let folder = tempfile::tempdir().unwrap();
    let (server, socket) = serve(folder.path(), "bfq", &[Export::new("disk", image(folder.path(), "disk"))]);
    let mut client = mapper(&socket, "disk").unwrap();
    for i in 0..50 {
        assert_eq!(status(&mut client, 0, i * 8192, 1 << 20), [(1 << 20, true)]);
    }
    let groups = server.disk().groups().unwrap();
    let (_, stats) = groups.iter().find(|(name, _)| name == "disk").unwrap();
    assert_eq!((stats.io_serviced.read(), stats.io_service_bytes.read()), (50, 50 * 4096));
}

#[test]
fn block_status_counts_for_the_limits_of_its_group() {
    let folder = tempfile::tempdir().unwrap();
    let (server, socket) = serve(folder.path(), "bfq", &[Export::new("disk", image(folder.path(), "disk"))]);
    server.disk().set_max("disk", Max { riops: NonZeroU64::new(100), ..Max::default() }).unwrap();
    let mut client = mapper(&socket, "disk").unwrap();
    let began = Instant::now();
    (0..51).for_each(|_| drop(status(&mut client, 0, 0, 1 << 20)));
    assert!(began.elapsed() >= Duration::from_millis(450), "{:?} for 51 of 100 a second", began.elapsed());
}

/// The bytes that a question costs may lie on both sides of a place where reads and writes are cut.
#[test]
fn block_status_has_one_answer_across_the_end_of_a_piece() {
    const END: u64 = 512 << 10;
    let folder = tempfile::tempdir().unwrap();
    let path = image(folder.path(), "disk");
    File::options().write(true).open(&path).unwrap().write_all_at(&[7; 64 << 10], END).unwrap();
    let (server, socket) = serve(folder.path(), "bfq", &[Export::new("disk", &path)]);
    let mut client = mapper(&socket, "disk").unwrap();
    let expected = status(&mut client, 0, END - 4096, 64 << 10);
    assert_eq!(expected, [(4096, true), (60 << 10, false)]);
    for riops in [None, NonZeroU64::new(200)] {
        server.disk().set_max("disk", Max { riops, ..Max::default() }).unwrap();
        for before in [512, 1024, 3584] {
            let extents = status(&mut client, 0, END - before, 64 << 10);
            assert_eq!(extents, [(before as u32, true), ((64 << 10) - before as u32, false)], "{riops:?}");
        }
    }
    let groups = server.disk().groups().unwrap();
    let (_, stats) = groups.iter().find(|(name, _)| name == "disk").unwrap();
    assert_eq!(stats.io_serviced.read(), 7, "one request for each question");
}

/// A file with many extents takes many questions, and the answers add up.
#[test]
fn the_answer_about_block_status_is_bounded_and_the_client_asks_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = image(folder.path(), "disk");
    let file = File::options().write(true).open(&path).unwrap();
    let block = 8192;
    (0..SIZE / block).step_by(2).for_each(|i| file.write_all_at(&[7; 8192], i * block).unwrap());
    file.sync_all().unwrap();
    let (_server, socket) = serve(folder.path(), "bfq", &[Export::new("disk", &path)]);
    let mut client = mapper(&socket, "disk").unwrap();
    let (mut at, mut found) = (0, 0);
    while at < SIZE {
        let extents = status(&mut client, 0, at, (SIZE - at) as u32);
        assert!((1..=64).contains(&extents.len()), "{} extents at once", extents.len());
        for (len, is_hole) in extents {
            let has_data = (at..at + u64::from(len)).step_by(block as usize).any(|b| b / block % 2 == 0);
            assert!(!(is_hole && has_data), "{len} bytes at {at}");
            at += u64::from(len);
            found += 1;
        }
    }
    assert_eq!(at, SIZE);
    println!("{found} extents");
    // One is enough for a client that says so.
    assert_eq!(status(&mut client, 8, 0, SIZE as u32).len(), 1);
}

/// The engine's thread does not wait for a file system that is slow to find holes. The question takes one of
/// the eight places at the disk, as a read does that takes as long.
#[test]
fn a_slow_answer_about_block_status_delays_only_its_client() {
    let Some(disk) = FlakyDisk::new(SIZE as usize) else { return };
    in_time(|| {
        let folder = tempfile::tempdir().unwrap();
        let exports = [Export::new("slow", disk.file()), Export::new("good", image(folder.path(), "good"))];
        let (server, socket) = serve(folder.path(), "noop", &exports);
        let mut asks = mapper(&socket, "slow").unwrap();
        let mut good = nbd_client::client(&socket, "good").unwrap().0;
        disk.set_seek(Duration::from_secs(2));
        let answer = std::thread::spawn(move || status(&mut asks, 0, 0, 1 << 20));
        std::thread::sleep(Duration::from_millis(100));
        let began = Instant::now();
        good.write_all(&request(READ, 1, 0, 4096)).unwrap();
        assert_eq!(reply(&mut good), (0, 1));
        good.read_exact(&mut [0; 4096]).unwrap();
        let took = began.elapsed();
        disk.set_seek(Duration::ZERO);
        assert_eq!(answer.join().unwrap(), [(1 << 20, false)]);
        drop(server);
        timely(took < Duration::from_secs(1), format!("a read took {took:?}"));
    });
}

/// A file system that hangs, and clients that do not read their replies, do not hold up the end. What was
/// acknowledged is in the file.
#[test]
fn a_server_ends_in_time_whatever_is_stuck() {
    let Some(disk) = FlakyDisk::new(SIZE as usize) else { return };
    in_time(|| {
        let folder = tempfile::tempdir().unwrap();
        let path = image(folder.path(), "good");
        let exports = [Export::new("slow", disk.file()), Export::new("good", &path)];
        let (server, socket) = serve(folder.path(), "noop", &exports);
        let unread: Vec<UnixStream> = (0..8)
            .map(|_| {
                let mut client = nbd_client::client(&socket, "good").unwrap().0;
                let asked: Vec<u8> = (0..64).flat_map(|i| request(READ, i, (i % 8) << 20, 1 << 20)).collect();
                client.write_all(&asked).unwrap();
                client
            })
            .collect();
        let mut good = nbd_client::client(&socket, "good").unwrap().0;
        good.write_all(&[request(WRITE, 1, 0, 4096), vec![7; 4096]].concat()).unwrap();
        assert_eq!(reply(&mut good), (0, 1));
        let mut asks = mapper(&socket, "slow").unwrap();
        disk.set_seek(Duration::from_secs(20));
        asks.write_all(&request(BLOCK_STATUS, 1, 0, 1 << 20)).unwrap();
        std::thread::sleep(Duration::from_millis(200));
        let began = Instant::now();
        let _ = server.stop();
        let took = began.elapsed();
        disk.set_seek(Duration::ZERO);
        drop(unread);
        let mut stored = [0; 4096];
        File::open(&path).unwrap().read_exact_at(&mut stored, 0).unwrap();
        assert_eq!(stored, [7; 4096]);
        timely(took < Duration::from_secs(5), format!("it took {took:?}"));
    });
}

/// Reads of 4 KiB, one at a time, for a while. Returns how many there were in a second.
fn reads_a_second(client: &mut UnixStream, time: Duration) -> f64 {
    let (began, mut done) = (Instant::now(), 0_u32);
    while began.elapsed() < time {
        client.write_all(&request(READ, done.into(), u64::from(done) % 1024 * 4096, 4096)).unwrap();
        assert_eq!(reply(client), (0, done.into()));
        client.read_exact(&mut [0; 4096]).unwrap();
        done += 1;
    }
    f64::from(done) / began.elapsed().as_secs_f64()
}

/// A client that writes 32 MiB at a time leaves its neighbour a fair part: half would be its share.
#[test]
fn the_longest_writes_leave_a_reader_its_share() {
    const LEN: usize = 32 << 20;
    let Ok(folder) = tempfile::tempdir_in("/dev/shm") else { return println!("skipped: no files in memory") };
    in_time(|| {
        let exports = ["writer", "reader"].map(|name| {
            let path = folder.path().join(name);
            std::fs::write(&path, vec![1; LEN]).unwrap();
            Export::new(name, path)
        });
        let (server, socket) = serve(folder.path(), "bfq", &exports);
        let mut reader = nbd_client::client(&socket, "reader").unwrap().0;
        let mut writer = nbd_client::client(&socket, "writer").unwrap().0;
        let alone = reads_a_second(&mut reader, Duration::from_millis(300));
        let ends = AtomicBool::new(false);
        let (beside, writes) = std::thread::scope(|scope| {
            let writes = scope.spawn(|| {
                let bytes = [request(WRITE, 1, 0, LEN as u32), vec![2; LEN]].concat();
                let mut done = 0;
                while !ends.load(Ordering::Relaxed) {
                    writer.write_all(&bytes).unwrap();
                    assert_eq!(reply(&mut writer), (0, 1));
                    done += 1;
                }
                done
            });
            let beside = reads_a_second(&mut reader, Duration::from_secs(1));
            ends.store(true, Ordering::Relaxed);
            (beside, writes.join().unwrap())
        });
        drop(server);
        println!("{alone:.0} reads a second alone, {beside:.0} beside {writes} writes of 32 MiB");
        timely(beside >= alone / 4.0, format!("{beside:.0} reads a second, and {alone:.0} alone"));
    });
}
