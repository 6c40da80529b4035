//! Clients of one server that would take more than their share, by other commands than reads and writes.

#![allow(clippy::disallowed_methods, reason = "sockets and their time-outs are real")]

use crate::flaky_disk::FlakyDisk;
use crate::in_time::{in_time, in_time_by, too_late, within};
use crate::nbd_client;
use crate::nbd_client::{BLOCK_STATUS, READ, WRITE, mapper, reply, request, status};
use fairhead_core::Max;
use fairhead_live::DiskOptions;
use fairhead_live::nbd::{Export, Listen, Options, Server};
use std::fs::File;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::num::NonZeroU64;
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

const SIZE: u64 = 8 << 20;
/// The bytes of the longest write, and of one that the engine does not divide.
const LONGEST: usize = 32 << 20;
const SHORT: usize = 128 << 10;
/// How often a client writes as much as the longest write has.
const WRITES: u32 = 24;

fn serve(folder: &Path, scheduler: &str, exports: &[Export]) -> (Server, PathBuf) {
    let socket = folder.join("socket");
    let disk = DiskOptions::new::<&str>([]).scheduler(scheduler).unwrap().depth(8);
    (start(disk, exports, &[Listen::Unix(socket.clone())]).0, socket)
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
        within(took, Duration::from_secs(1), "a read");
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
        within(took, Duration::from_secs(5), "the end");
    });
}

/// The processor time that a thread of this process has used.
fn processor_time(thread: libc::pid_t) -> Duration {
    // The kernel numbers the clock of a thread so: `MAKE_THREAD_CPUCLOCK` in linux/posix-timers.h.
    const OF_THREAD: libc::clockid_t = 4;
    const SCHEDULED: libc::clockid_t = 2;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: it writes to `time` only.
    let result = unsafe { libc::clock_gettime(!thread << 3 | OF_THREAD | SCHEDULED, &raw mut time) };
    assert_eq!(result, 0, "the thread runs");
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// How long a thread could run and had no processor: the second number of its `schedstat`.
fn lateness(schedstat: &File) -> Duration {
    let mut text = [0; 64];
    let len = schedstat.read_at(&mut text, 0).unwrap();
    let text = std::str::from_utf8(&text[..len]).unwrap();
    Duration::from_nanos(text.split(' ').nth(1).unwrap().parse().unwrap())
}

/// The engines' threads of this process.
fn engines() -> Vec<libc::pid_t> {
    let all = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let named = all.filter(|t| std::fs::read(t.path().join("comm")).is_ok_and(|name| name == b"fairhead\n"));
    named.map(|t| t.file_name().to_str().unwrap().parse().unwrap()).collect()
}

/// Starts a server. Returns its engine's thread, too.
fn start(disk: DiskOptions, exports: &[Export], listen: &[Listen]) -> (Server, libc::pid_t) {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let before = engines();
    let server = Server::start(disk, exports, listen, Options::default()).unwrap();
    // A thread takes its name itself, as soon as it has a processor.
    let began = Instant::now();
    let engine = loop {
        if let Some(engine) = engines().into_iter().find(|thread| !before.contains(thread)) {
            break engine;
        }
        assert!(began.elapsed() < Duration::from_secs(10), "it has started one");
        std::thread::yield_now();
    };
    (server, engine)
}

/// Writes 32 MiB at a time over TCP, whose sockets hold most, in requests of `len` bytes.
fn writes(address: SocketAddr, len: usize, ends: &AtomicBool, done: &AtomicU32) {
    let mut socket = TcpStream::connect(address).unwrap();
    socket.read_exact(&mut [0; 18]).unwrap();
    let (mut writer, _) = nbd_client::choose(socket, "writer").unwrap();
    let one = |at: usize| [request(WRITE, 1, at as u64, len as u32), vec![2; len]].concat();
    let bytes = (0..LONGEST).step_by(len).map(one).collect::<Vec<_>>().concat();
    // It ends in any case, so that a reader that fails does not wait for it.
    for _ in 0..100 {
        if ends.load(Ordering::Relaxed) {
            break;
        }
        writer.write_all(&bytes).unwrap();
        (0..LONGEST / len).for_each(|_| assert_eq!(reply(&mut writer), (0, 1)));
        done.fetch_add(1, Ordering::Relaxed);
    }
}

/// What the engine's thread does at a time, before it turns to another client, is to take less than this. It
/// receives and copies 128 KiB at a time, in some 50 us.
const AT_A_TIME: Duration = Duration::from_micros(300);

fn read_once(reader: &mut UnixStream, at: u64) {
    reader.write_all(&request(READ, 7, at, 4096)).unwrap();
    assert_eq!(reply(reader), (0, 7));
    reader.read_exact(&mut [0; 4096]).unwrap();
}

/// Reads 4 KiB at a time until the other client has written [`WRITES`] times. Returns by how much the reads
/// beside one write waited longer than [`AT_A_TIME`], in all: the median of the writes, as a fault of the
/// engine meets each of them and one of the machine meets few. A read waits while the engine's thread works,
/// in processor time: as long as that thread has no processor does not count, and neither does what it did
/// while the reader had none.
fn waits(reader: &mut UnixStream, engine: libc::pid_t, writes: &AtomicU32) -> Duration {
    let schedstat = File::open("/proc/thread-self/schedstat").unwrap();
    let first = writes.load(Ordering::Relaxed);
    let (mut reads, mut longer) = (0_u32, vec![Duration::ZERO; WRITES as usize]);
    loop {
        let write = (writes.load(Ordering::Relaxed) - first) as usize;
        if write >= longer.len() {
            break;
        }
        let (worked, was_late) = (processor_time(engine), lateness(&schedstat));
        read_once(reader, u64::from(reads) % 1024 * 4096);
        let waited = (processor_time(engine) - worked).saturating_sub(lateness(&schedstat) - was_late);
        longer[write] += waited.saturating_sub(AT_A_TIME);
        reads += 1;
    }
    longer.sort_unstable();
    let [median, most] = [longer[longer.len() / 2], longer[longer.len() - 1]];
    println!("{reads} reads waited {median:?} longer beside a write in the middle, {most:?} at most");
    median
}

/// The processor time that this machine takes now to make memory for the longest write and to fill it.
fn whole_write() -> Duration {
    // SAFETY: it has no argument.
    let me = unsafe { libc::gettid() };
    let before = processor_time(me);
    std::hint::black_box(vec![1_u8; LONGEST]);
    processor_time(me) - before
}

/// How long the machine below this one kept its processors, in all: the kernel counts it in ticks of 10 ms.
/// It counts as processor time of the thread that had one.
fn stolen() -> Duration {
    let stat = std::fs::read_to_string("/proc/stat").unwrap();
    let ticks = stat.split_whitespace().nth(8).map_or(0, |steal| steal.parse().unwrap());
    Duration::from_millis(10) * ticks
}

/// A client that writes 32 MiB at a time does not keep the engine's thread from its neighbour: not by making
/// memory for the data, nor by receiving or copying them. The control is a client that writes as much in
/// short requests. What the machine does beside this does not count, and a slow machine may take longer.
#[test]
fn the_longest_writes_do_not_keep_the_engine_from_a_reader() {
    let Ok(folder) = tempfile::tempdir_in("/dev/shm") else { return println!("skipped: no files in memory") };
    if !Path::new("/proc/thread-self/schedstat").exists() {
        return println!("skipped: the kernel does not tell how long threads wait");
    }
    let exports = ["writer", "reader"].map(|name| {
        let path = folder.path().join(name);
        std::fs::write(&path, vec![1; LONGEST]).unwrap();
        Export::new(name, path)
    });
    let socket = folder.path().join("socket");
    let listen = [Listen::Unix(socket.clone()), Listen::Tcp("127.0.0.1:0".parse().unwrap())];
    // Reads go before writes: with noop a read would wait for all pieces of a long write, which the engine
    // handles meanwhile. A scheduler that keeps the disk idle would add up to 8 ms at a time.
    let disk = DiskOptions::new::<&str>([]).scheduler("mq-deadline").unwrap().depth(8);
    let attempt = |len| {
        let (server, engine) = start(disk.clone(), &exports, &listen);
        let Listen::Tcp(address) = server.addresses()[1] else { unreachable!("it is the second") };
        let (mut reader, _) = nbd_client::client(&socket, "reader").unwrap();
        // An engine that starts registers its memory with the kernel, which takes it some milliseconds once.
        read_once(&mut reader, 0);
        let (ends, writes) = (AtomicBool::new(false), AtomicU32::new(0));
        std::thread::scope(|scope| {
            scope.spawn(|| self::writes(address, len, &ends, &writes));
            let waits = waits(&mut reader, engine, &writes);
            ends.store(true, Ordering::Relaxed);
            waits
        })
    };
    let judged = || {
        let before = stolen();
        // Half a millisecond where memory for one takes 20 ms.
        let whole = whole_write() / 40;
        let (short, longest): (Vec<_>, Vec<_>) = (0..3).map(|_| (attempt(SHORT), attempt(LONGEST))).unzip();
        let [short, longest] = [short, longest].map(|all| all.into_iter().min().unwrap());
        println!(
            "reads waited {longest:?} longer, {short:?} beside short writes; {whole:?} more is the most"
        );
        (longest.saturating_sub(short + whole), stolen() - before)
    };
    in_time_by(|| {
        let (by, late) = judged();
        (if by.is_zero() { Ok(()) } else { too_late(by) }, late)
    });
}
