//! What flushes cost, through each front: those that flush without end, with a limit or a small weight.

#![allow(clippy::disallowed_methods, reason = "limits are in real time")]

use crate::cgroup::Cgroup;
use crate::in_time::{in_time, timely};
use crate::nbd_client::{self, FLUSH, READ, reply, request};
use crate::scratch::Scratch;
use crate::vhost_guest::{FLUSH as GUEST_FLUSH, Guest, Wishes};
use fairhead_core::Max;
use fairhead_device::DeviceParams;
use fairhead_live::nbd::{Export, Listen, Options, Server};
use fairhead_live::vhost::Device;
use fairhead_live::{Disk, DiskOptions, ErrorKind};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::num::NonZeroU64;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const SIZE: u64 = 8 << 20;

/// What a limit of ten a second lets pass after the first one.
const TEN: Duration = Duration::from_millis(990);

fn ten_a_second() -> Max {
    let ten = NonZeroU64::new(10);
    Max { riops: ten, wiops: ten, ..Max::default() }
}

fn options(scheduler: &str) -> DiskOptions {
    DiskOptions::new::<&str>([]).scheduler(scheduler).unwrap()
}

fn image(folder: &Path, name: &str) -> std::path::PathBuf {
    let path = folder.join(name);
    File::create(&path).unwrap().set_len(SIZE).unwrap();
    path
}

fn serve(folder: &Path, disk: DiskOptions, names: &[&str]) -> Server {
    let exports: Vec<Export> = names.iter().map(|name| Export::new(*name, image(folder, name))).collect();
    let listen = [Listen::Unix(folder.join("socket"))];
    Server::start(disk, &exports, &listen, Options::default()).unwrap()
}

/// How long it takes to do this eleven times.
fn eleven(mut once: impl FnMut()) -> Duration {
    let began = Instant::now();
    (0..11).for_each(|_| once());
    began.elapsed()
}

#[test]
fn a_flush_over_nbd_counts_for_the_limits_of_its_group() {
    for scheduler in ["noop", "bfq", "mq-deadline"] {
        let folder = tempfile::tempdir().unwrap();
        let server = serve(folder.path(), options(scheduler), &["disk"]);
        server.disk().set_max("disk", ten_a_second()).unwrap();
        let mut client = nbd_client::client(&folder.path().join("socket"), "disk").unwrap().0;
        let took = eleven(|| {
            client.write_all(&request(FLUSH, 1, 0, 0)).unwrap();
            assert_eq!(reply(&mut client), (0, 1));
        });
        assert!(took >= TEN, "{scheduler}: {took:?}");
        // Those that wait together are one.
        let all: Vec<u8> = (0..200).flat_map(|i| request(FLUSH, i, 0, 0)).collect();
        client.write_all(&all).unwrap();
        (0..200).for_each(|_| assert_eq!(reply(&mut client).0, 0));
        let groups = server.disk().groups().unwrap();
        let (_, stats) = groups.iter().find(|(name, _)| name == "disk").unwrap();
        let (count, bytes) = (stats.io_serviced.total(), stats.io_service_bytes.total());
        assert!((12..40).contains(&count) && bytes == 512 * count, "{scheduler}: {count} writes of {bytes}");
    }
}

#[test]
fn a_flush_of_the_library_counts_for_the_limits_of_its_group() {
    let folder = tempfile::tempdir().unwrap();
    let disk = DiskOptions::new([image(folder.path(), "disk")]).scheduler("bfq").unwrap();
    let disk = match Disk::open(disk) {
        Err(e) if e.kind() == ErrorKind::Ring => return println!("skipped: {e}"),
        other => other.unwrap(),
    };
    let client = disk.client("vm").unwrap();
    disk.set_max("vm", ten_a_second()).unwrap();
    let took = eleven(|| client.flush(0).wait().unwrap());
    assert!(took >= TEN, "{took:?}");
    // It is held for another tenth of a second, and then the limit is no more.
    let began = Instant::now();
    disk.set_max("vm", Max { wiops: NonZeroU64::new(1), ..Max::default() }).unwrap();
    let held = [client.flush(0), client.flush(0)];
    disk.set_max("vm", Max::default()).unwrap();
    held.into_iter().for_each(|flush| flush.wait().unwrap());
    println!("held for {:?}", began.elapsed());
}

#[test]
fn a_flush_of_a_guest_counts_for_the_limits_of_its_group() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("guest.sock");
    let devices = [Device::new("guest", &socket, image(folder.path(), "guest"))];
    let server = match Server::start_with_devices(options("bfq"), &[], &[], &devices, Options::default()) {
        Err(e) if e.kind() == ErrorKind::Ring => return println!("skipped: {e}"),
        other => other.unwrap(),
    };
    let mut guest = Guest::connect(&socket, Wishes::default());
    assert_eq!(guest.ask(GUEST_FLUSH, 0, &[], 0).0, 0);
    server.disk().set_max("guest", ten_a_second()).unwrap();
    let took = eleven(|| assert_eq!(guest.ask(GUEST_FLUSH, 0, &[], 0).0, 0));
    assert!(took >= TEN, "{took:?}");
}

const SYNCS: &str = "
import os, sys, time
fd = os.open(sys.argv[1], os.O_RDONLY)
began = time.monotonic()
for _ in range(11): os.fsync(fd)
print(time.monotonic() - began)
";

/// A file that nothing was written to, and a folder.
#[test]
fn fsync_in_a_mount_counts_for_the_limits_of_the_callers_cgroup() {
    let Some(scratch) = Scratch::new() else { return };
    let Some(cgroup) = Cgroup::new("syncs") else { return };
    fs::write(scratch.below("clean"), vec![7; 4096]).unwrap();
    fs::create_dir(scratch.below("folder")).unwrap();
    fs::write(scratch.below("script"), SYNCS).unwrap();
    let mount = scratch.mount("bfq");
    // The programs' own names are read, too.
    let max = Max { wiops: NonZeroU64::new(10), ..Max::default() };
    mount.disk().set_max(&cgroup.name, max).unwrap();
    for name in ["clean", "folder"] {
        let (script, at) = (scratch.below("script"), scratch.at(name));
        let ran = cgroup.command(&format!("python3 {} {}", script.display(), at.display())).output().unwrap();
        let text = String::from_utf8_lossy(&ran.stdout);
        let Ok(took) = text.trim().parse::<f64>() else {
            return println!("skipped: {text} {}", String::from_utf8_lossy(&ran.stderr));
        };
        assert!(took >= TEN.as_secs_f64(), "{name}: {took} s for eleven");
    }
    drop(mount);
}

/// A program that waits for its limit ends at once when it is killed.
#[test]
fn a_held_fsync_does_not_keep_its_program_from_its_end() {
    in_time(|| {
        let Some(scratch) = Scratch::new() else { return };
        let Some(cgroup) = Cgroup::new("killed") else { return };
        fs::write(scratch.below("clean"), vec![7; 4096]).unwrap();
        let mount = scratch.mount("bfq");
        let max = Max { wiops: NonZeroU64::new(1), ..Max::default() };
        mount.disk().set_max(&cgroup.name, max).unwrap();
        let program = format!(
            "python3 -c \"import os; f=os.open('{}',0); print(1, flush=True)\nwhile 1: os.fsync(f)\"",
            scratch.at("clean").display()
        );
        let mut child = cgroup.command(&program).stdout(std::process::Stdio::piped()).spawn().unwrap();
        child.stdout.take().unwrap().read_exact(&mut [0]).unwrap();
        std::thread::sleep(Duration::from_millis(100));
        let began = Instant::now();
        child.kill().unwrap();
        child.wait().unwrap();
        timely(began.elapsed() < Duration::from_millis(300), "a killed program ends");
        drop(mount);
    });
}

/// Asks for the same again and again, until `ends`, and counts: all, and those that took longer than
/// [`LATE`].
fn again(socket: &Path, export: &str, ends: &AtomicBool, kind: u16, len: usize) -> (u32, u32) {
    let mut client = nbd_client::client(socket, export).unwrap().0;
    let (mut data, mut count, mut late) = (vec![0; len], 0, 0);
    while !ends.load(Ordering::Relaxed) {
        let at = if kind == READ { u64::from(count) % 2048 * 4096 } else { 0 };
        let began = Instant::now();
        client.write_all(&request(kind, 1, at, len as u32)).unwrap();
        assert_eq!(reply(&mut client), (0, 1));
        client.read_exact(&mut data).unwrap();
        count += 1;
        late += u32::from(began.elapsed() > LATE);
    }
    (count, late)
}

/// More than a read and a flush of the model take. Behind a client that had no processor for so long, the
/// server takes it for one that wants nothing, and does not keep flushes waiting for it.
const LATE: Duration = Duration::from_micros(800);

/// How many reads one export and flushes another had side by side, or without `reads` the latter alone; and
/// the number of late reads.
fn side_by_side(socket: &Path, reads: bool) -> (u32, u32, u32) {
    let ends = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| if reads { again(socket, "good", &ends, READ, 4096) } else { (0, 0) });
        let flusher = scope.spawn(|| again(socket, "evil", &ends, FLUSH, 0));
        std::thread::sleep(Duration::from_secs(1));
        ends.store(true, Ordering::Relaxed);
        let (reads, late) = reader.join().unwrap();
        (reads, flusher.join().unwrap().0, late)
    })
}

/// A neighbour of weight 1 that flushed at depth 1 left a reader a quarter of its reads.
#[test]
fn flushes_beside_a_reader_take_what_their_weight_allows() {
    let folder = tempfile::tempdir().unwrap();
    let disk = options("bfq").emulate(DeviceParams::preset("sata_ssd").unwrap());
    let server = serve(folder.path(), disk, &["good", "evil"]);
    let socket = folder.path().join("socket");
    in_time(|| {
        let (_, alone, _) = side_by_side(&socket, false);
        for (weight, percent) in [(1, 10), (100, 70)] {
            server.disk().set_weight("evil", weight).unwrap();
            let (reads, flushes, late) = side_by_side(&socket, true);
            let figures =
                format!("weight {weight}: {reads} reads, {late} late; {flushes} of {alone} flushes");
            println!("{figures}");
            // Two for each time that the reader was away, one before it was back and one as it came.
            timely(reads > 500 && flushes <= alone * percent / 100 + 2 * late, figures);
        }
    });
}
