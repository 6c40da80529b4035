//! Loads an NBD server as fast as one connection can: 4 KiB reads at random places, so many under way at all times.
//!
//! `cargo run --release --example nbd_load -- SOCKET [DEPTH [SECONDS [EXPORT]]]`
//!
//! Made for comparing servers: all requests that fit are sent in one call, replies are counted as they come, and nothing is looked at twice.

#![allow(clippy::disallowed_methods, reason = "it measures real time")]

#[path = "../tests/nbd_client/mod.rs"]
mod nbd_client;

use nbd_client::{DISCONNECT, READ, request};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

const BLOCK: u32 = 4096;
const REPLY: usize = 16;

fn main() -> io::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |i: usize, usual: u64| args.get(i).and_then(|a| a.parse().ok()).unwrap_or(usual);
    let Some(path) = args.first() else {
        eprintln!("nbd_load SOCKET [DEPTH [SECONDS [EXPORT]]]");
        std::process::exit(2);
    };
    let (depth, seconds) = (number(1, 64), number(2, 3));
    let (mut socket, size) = nbd_client::client(path.as_ref(), args.get(3).map_or("", String::as_str))?;
    let done = load(&mut socket, size, depth as usize, Duration::from_secs(seconds))?;
    println!("depth {depth}: {} reads a second", done / seconds);
    Ok(())
}

fn load(socket: &mut UnixStream, size: u64, depth: usize, time: Duration) -> io::Result<u64> {
    let mut chance = 0x9e37_79b9_7f4a_7c15_u64;
    let mut requests = Vec::new();
    let mut ask = |requests: &mut Vec<u8>| {
        chance ^= chance << 13;
        chance ^= chance >> 7;
        chance ^= chance << 17;
        let offset = chance % (size / u64::from(BLOCK)) * u64::from(BLOCK);
        requests.extend(request(READ, chance, offset, BLOCK));
    };
    (0..depth).for_each(|_| ask(&mut requests));
    let mut input = vec![0; 1 << 20];
    let (mut pending, mut done, mut open) = (0, 0, depth);
    let start = Instant::now();
    // In the end everything is waited for: there are servers that do not survive who leaves without his replies.
    while open > 0 {
        socket.write_all(&requests)?;
        requests.clear();
        let n = socket.read(&mut input)?;
        if n == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        pending += n;
        let is_over = start.elapsed() >= time;
        while pending >= REPLY + BLOCK as usize {
            pending -= REPLY + BLOCK as usize;
            done += 1;
            if is_over {
                open -= 1;
            } else {
                ask(&mut requests);
            }
        }
    }
    socket.write_all(&request(DISCONNECT, 0, 0, 0))?;
    Ok(done)
}
