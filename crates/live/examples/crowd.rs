//! What hostile clients of an NBD server cost an honest one: its latency alone, and beside crowds of each kind.
//!
//! `cargo run --release --example crowd -- FILE [SECONDS]`
//!
//! The honest client reads 4 KiB at random, four requests at a time. The crowds are in this process, too, so what they need of the processors
//! counts as well; see how many operations there were.

#![allow(clippy::disallowed_methods, reason = "it measures real time")]

use fairhead_live::DiskOptions;
use fairhead_live::nbd::{Export, Listen, Options, Server};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const DEPTH: usize = 4;
const BLOCK: usize = 4096;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let Some(file) = args.first() else { return Err("crowd FILE [SECONDS]".into()) };
    let time = Duration::from_secs(args.get(1).map_or(Ok(3), |a| a.parse())?);
    let socket = std::env::temp_dir().join(format!("fairhead-crowd-{}", std::process::id()));
    let disk = DiskOptions::new::<&str>([]).scheduler("bfq")?.rotational(false).depth(32);
    let listen = [Listen::Unix(socket.clone())];
    let server = Server::start(disk, &[Export::new("disk", file)], &listen, Options::default())?;
    println!("{:<34} {:>9} {:>8} {:>8} {:>8}", "", "reads", "p50 us", "p99 us", "max us");
    for _ in 0..3 {
        for (name, crowd) in CROWDS {
            let end = AtomicBool::new(false);
            let mut took = std::thread::scope(|scope| {
                let (end, socket) = (&end, &socket);
                let hostile = scope.spawn(move || crowd(socket, end));
                std::thread::sleep(Duration::from_millis(500));
                let took = honest(socket, time);
                end.store(true, Ordering::Relaxed);
                hostile.join().expect("the crowd")?;
                took
            })?;
            took.sort_unstable();
            let at = |part: f64| took[((took.len() - 1) as f64 * part) as usize].as_micros();
            println!("{name:<34} {:>9} {:>8} {:>8} {:>8}", took.len(), at(0.5), at(0.99), at(1.0));
        }
    }
    let _ = server.stop();
    Ok(())
}

type Crowd = fn(&Path, &AtomicBool) -> io::Result<()>;

const CROWDS: [(&str, Crowd); 4] = [
    ("alone", |_, end| wait(end)),
    ("1000 half-open handshakes", |socket, end| {
        let _open = (0..1000).map(|_| UnixStream::connect(socket)).collect::<io::Result<Vec<_>>>()?;
        wait(end)
    }),
    ("20 that never read", |socket, end| {
        let much: Vec<u8> = (0..1000).flat_map(|_| request(0, 1 << 20)).collect();
        let mut deaf = Vec::new();
        for _ in 0..20 {
            let mut one = connect(socket)?;
            one.set_nonblocking(true)?;
            // It need not take all of it.
            let _ = one.write(&much);
            deaf.push(one);
        }
        wait(end)
    }),
    ("500 a second that talk nonsense", |socket, end| {
        while !end.load(Ordering::Relaxed) {
            let mut one = connect(socket)?;
            // It may have hung up already.
            let _ = one.write_all(&request(0, 4096)).and_then(|()| one.write_all(&[7; 5000]));
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    }),
];

fn wait(end: &AtomicBool) -> io::Result<()> {
    while !end.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

fn connect(path: &Path) -> io::Result<UnixStream> {
    let mut socket = UnixStream::connect(path)?;
    socket.read_exact(&mut [0; 18])?;
    socket.write_all(b"\0\0\0\x03IHAVEOPT\0\0\0\x01\0\0\0\x04disk")?;
    socket.read_exact(&mut [0; 10])?;
    Ok(socket)
}

/// A read.
fn request(offset: u64, len: u32) -> Vec<u8> {
    let mut bytes = 0x2560_9513_u32.to_be_bytes().to_vec();
    bytes.extend([0; 12]);
    bytes.extend(offset.to_be_bytes());
    bytes.extend(len.to_be_bytes());
    bytes
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
        let mut bytes = request(chance % 4096 * BLOCK as u64, BLOCK as u32);
        bytes[8..16].copy_from_slice(&(slot as u64).to_be_bytes());
        socket.write_all(&bytes)
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
