//! What hostile clients of an NBD server cost an honest one: its latency alone, and beside crowds of each
//! kind.
//!
//! `cargo run --release --example crowd -- FILE [PRESET] [SECONDS [ROUNDS]]`
//!
//! The honest client reads 4 KiB at random, four requests at a time, the same each time. In each round it
//! does so alone and then beside a crowd, for each crowd, so that whatever else the machine does meets both
//! alike; at the end stand the medians of the ratios. A crowd that asks for data gets what its share of the
//! disk is before it is measured: until nothing more is read for it. The crowds are in this process, too, so
//! what they need of the processors counts as well.
//!
//! The honest client's export has weight 10,000. Crowds that only hold connections, or break them, use the
//! same export. Crowds that keep the server at work have an export of weight 100, so that 99 of 100 parts of
//! the disk are guaranteed to the honest client. With a preset the disk is as slow as that model; it is then
//! the disk that is shared, and p99 is to be at most 1.10 of alone. Without one the processors are what is
//! short, which no scheduler of a disk shares out: a crowd at work takes what the kernel gives its threads,
//! and the figures say how much that is.
//!
//! `CROWD=TEXT` in the environment runs only crowds whose name has that text.

#![allow(clippy::disallowed_methods, reason = "it measures real time")]

#[path = "../tests/nbd_client/mod.rs"]
mod nbd_client;

use fairhead_device::DeviceParams;
use fairhead_live::DiskOptions;
use fairhead_live::nbd::{Export, Listen, Options, Server};
use nbd_client::{FLUSH, READ, WRITE, flagged, reply, request, status};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const DEPTH: usize = 4;
const BLOCK: usize = 4096;
const TRIM: u16 = 4;
const WRITE_ZEROES: u16 = 6;
/// Bytes of the crowd's file.
const CROWD_SIZE: u64 = 64 << 20;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let Some(file) = args.first() else { return Err("crowd FILE [PRESET] [SECONDS [ROUNDS]]".into()) };
    let preset = args.get(1).filter(|a| a.parse::<u64>().is_err());
    let seconds = args.get(1 + usize::from(preset.is_some()));
    let time = Duration::from_secs(seconds.map_or(Ok(3), |a| a.parse())?);
    let rounds: usize = args.get(2 + usize::from(preset.is_some())).map_or(Ok(5), |a| a.parse())?;
    let socket = std::env::temp_dir().join(format!("fairhead-crowd-{}", std::process::id()));
    let disk = DiskOptions::new::<&str>([]).scheduler("bfq")?;
    let disk = match preset {
        Some(preset) => disk.emulate(DeviceParams::preset(preset)?),
        None => disk.rotational(false).depth(32),
    };
    let listen = [Listen::Unix(socket.clone())];
    let theirs = tempfile::NamedTempFile::new_in(Path::new(file).parent().ok_or("FILE is in no folder")?)?;
    File::create(theirs.path())?.set_len(CROWD_SIZE)?;
    let exports = [Export::new("disk", file), Export::new("crowd", theirs.path())];
    let server = Server::start(disk, &exports, &listen, Options::default())?;
    server.disk().set_weight("disk", 10_000)?;
    let named = std::env::var("CROWD").unwrap_or_default();
    let crowds: Vec<_> = CROWDS.iter().filter(|(name, _)| name.contains(&named)).collect();
    let mut all = vec![Vec::new(); crowds.len()];
    println!("{:<32} {:>9} {:>8} {:>8} {:>8}", "", "reads", "p50 us", "p99 us", "max us");
    for _ in 0..rounds {
        for ((name, crowd), pairs) in crowds.iter().zip(&mut all) {
            let alone = measure(&server, &socket, time, ("alone", |_, end| wait(end)))?;
            pairs.push((alone, measure(&server, &socket, time, (name, *crowd))?));
        }
    }
    println!("\n{:<32} {:>8} {:>8}", "of what it is alone", "p50", "p99");
    for ((name, _), pairs) in crowds.iter().zip(&all) {
        let ratios = |what: usize| {
            let mut ratios: Vec<f64> =
                pairs.iter().map(|(alone, beside)| beside[what] as f64 / alone[what].max(1) as f64).collect();
            ratios.sort_unstable_by(f64::total_cmp);
            ratios
        };
        let (p50, p99) = (ratios(0), ratios(1));
        let [first, median, last] = [0, rounds / 2, rounds - 1].map(|i| p99[i]);
        println!("{name:<32} {:>8.3} {median:>8.3}   ({first:.3} to {last:.3})", p50[rounds / 2]);
    }
    if let Ok(Some(lateness)) = server.disk().lateness() {
        println!("emulated disk: {lateness}");
    }
    let _ = server.stop();
    Ok(())
}

/// The honest client's median, 99th percentile and maximum in microseconds.
fn measure(
    server: &Server,
    socket: &Path,
    time: Duration,
    (name, crowd): (&str, Crowd),
) -> io::Result<[u128; 3]> {
    let end = AtomicBool::new(false);
    let mut took = std::thread::scope(|scope| {
        let end = &end;
        let hostile = scope.spawn(move || crowd(socket, end));
        settle(server);
        let took = honest(socket, time);
        end.store(true, Ordering::Relaxed);
        hostile.join().expect("the crowd")?;
        took
    })?;
    took.sort_unstable();
    let [p50, p99, max] =
        [0.5, 0.99, 1.0].map(|part| took[((took.len() - 1) as f64 * part) as usize].as_micros());
    println!("{name:<32} {:>9} {p50:>8} {p99:>8} {max:>8}", took.len());
    Ok([p50, p99, max])
}

/// Waits until the server has nothing left to read: a quarter of a second at least, ten at most.
fn settle(server: &Server) {
    let read = || server.stats()[0].1.read_bytes;
    let mut before = u64::MAX;
    for _ in 0..40 {
        std::thread::sleep(Duration::from_millis(250));
        let now = read();
        if std::mem::replace(&mut before, now) == now {
            return;
        }
    }
}

type Crowd = fn(&Path, &AtomicBool) -> io::Result<()>;

const CROWDS: [(&str, Crowd); 13] = [
    ("1 that never reads", |socket, end| never_read(1, socket, end)),
    ("20 that never read", |socket, end| never_read(20, socket, end)),
    ("1000 half-open handshakes", |socket, end| {
        let _open = (0..1000).map(|_| UnixStream::connect(socket)).collect::<io::Result<Vec<_>>>()?;
        wait(end)
    }),
    ("200 a second that talk nonsense", |socket, end| {
        for i in 0_u32.. {
            if end.load(Ordering::Relaxed) {
                break;
            }
            // In the handshake, or after it. It may have hung up already.
            let mut one = if i % 2 == 0 { UnixStream::connect(socket)? } else { connect(socket)? };
            let _ = one.write_all(&[7; 5000]);
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }),
    ("200 a second killed in a write", |socket, end| {
        while !end.load(Ordering::Relaxed) {
            let mut one = connect(socket)?;
            let write = request(WRITE, 0, 0, 1 << 20);
            one.write_all(&[write, vec![7; 100_000]].concat())?;
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }),
    // All places but the one that the honest client comes for.
    ("255 idle, and a newcomer", |socket, end| {
        let _idle = (0..255).map(|_| connect(socket)).collect::<io::Result<Vec<_>>>()?;
        wait(end)
    }),
    ("1000 a second come and go", |socket, end| {
        while !end.load(Ordering::Relaxed) {
            drop(connect(socket)?);
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }),
    ("20 that read a byte at a time", |socket, end| {
        let much: Vec<u8> = (0..64).flat_map(|i| request(READ, 0, i << 20, 1 << 20)).collect();
        let mut slow = (0..20).map(|_| at(socket, "crowd")).collect::<io::Result<Vec<_>>>()?;
        slow.iter_mut().try_for_each(|one| one.write_all(&much))?;
        while !end.load(Ordering::Relaxed) {
            slow.iter_mut().try_for_each(|one| one.read_exact(&mut [0]))?;
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }),
    ("8 ask for block status", |socket, end| {
        together(8, || {
            let mut one = nbd_client::mapper(socket, "crowd")?;
            while !end.load(Ordering::Relaxed) {
                status(&mut one, 0, 0, CROWD_SIZE as u32);
            }
            Ok(())
        })
    }),
    ("1 writes 32 MiB at a time", |socket, end| {
        flood(1, 1, socket, end, |i| [request(WRITE, i, 0, 32 << 20), vec![1; 32 << 20]].concat())
    }),
    ("4 trim and write zeroes", |socket, end| {
        flood(4, 16, socket, end, |i| {
            let kind = if i % 2 == 0 { TRIM } else { WRITE_ZEROES };
            request(kind, i, i * 0x9e37 % 1000 * 65_536, 65_536)
        })
    }),
    ("4 write 1000 bytes anywhere", |socket, end| {
        flood(4, 8, socket, end, |i| {
            [request(WRITE, i, i * 7_919_777 % (CROWD_SIZE - 1000), 1000), vec![1; 1000]].concat()
        })
    }),
    ("4 write with FUA and flush", |socket, end| {
        flood(4, 8, socket, end, |i| {
            let write = flagged(1, WRITE, i, i * 0x9e37 % 16_000 * 4096, 4096);
            if i % 2 == 0 { request(FLUSH, i, 0, 0) } else { [write, vec![1; 4096]].concat() }
        })
    }),
];

/// Runs `work` in `count` threads, and returns the first error.
fn together(count: usize, work: impl Fn() -> io::Result<()> + Sync) -> io::Result<()> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..count).map(|_| scope.spawn(&work)).collect();
        threads.into_iter().try_for_each(|t| t.join().expect("a part of the crowd"))
    })
}

/// Opens connections that each keep `depth` requests in flight. `ask` makes a request from its number.
fn flood(
    connections: usize,
    depth: u64,
    socket: &Path,
    end: &AtomicBool,
    ask: fn(u64) -> Vec<u8>,
) -> io::Result<()> {
    together(connections, || {
        let mut one = at(socket, "crowd")?;
        (0..depth).try_for_each(|i| one.write_all(&ask(i)))?;
        for i in depth.. {
            assert_eq!(reply(&mut one).0, 0, "no error");
            if end.load(Ordering::Relaxed) {
                break;
            }
            one.write_all(&ask(i))?;
        }
        Ok(())
    })
}

/// They ask for a thousand megabytes each.
fn never_read(count: usize, socket: &Path, end: &AtomicBool) -> io::Result<()> {
    let much: Vec<u8> = (0..1000).flat_map(|i| request(READ, 0, (i % 16) << 20, 1 << 20)).collect();
    let mut unread = Vec::new();
    for _ in 0..count {
        let mut one = connect(socket)?;
        one.set_nonblocking(true)?;
        // It need not take all of it.
        let _ = one.write(&much);
        unread.push(one);
    }
    wait(end)
}

fn wait(end: &AtomicBool) -> io::Result<()> {
    while !end.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

fn connect(path: &Path) -> io::Result<UnixStream> {
    at(path, "disk")
}

fn at(path: &Path, export: &str) -> io::Result<UnixStream> {
    Ok(nbd_client::client(path, export)?.0)
}

/// How long each of its reads took.
fn honest(path: &Path, time: Duration) -> io::Result<Vec<Duration>> {
    let mut socket = connect(path)?;
    let mut chance = 77_u64;
    let mut began = [Instant::now(); DEPTH];
    let mut took = Vec::new();
    let mut ask = |socket: &mut UnixStream, slot: usize| {
        chance ^= chance << 13;
        chance ^= chance >> 7;
        chance ^= chance << 17;
        socket.write_all(&request(READ, slot as u64, chance % 4096 * BLOCK as u64, BLOCK as u32))
    };
    let start = Instant::now();
    for (slot, began) in began.iter_mut().enumerate() {
        *began = Instant::now();
        ask(&mut socket, slot)?;
    }
    let mut reply = [0; 16 + BLOCK];
    while start.elapsed() < time {
        socket.read_exact(&mut reply)?;
        let slot = usize::from(reply[15]) % DEPTH;
        took.push(began[slot].elapsed());
        began[slot] = Instant::now();
        ask(&mut socket, slot)?;
    }
    Ok(took)
}
