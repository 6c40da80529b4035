//! Loads an NBD server as fast as a client can: reads or writes at random places, with a fixed number in
//! flight.
//!
//! `cargo run --release --example nbd_load -- SOCKET [DEPTH [SECONDS [EXPORTS [BYTES [read|write]]]]]`
//!
//! EXPORTS are names with commas in between: a connection, and a thread of its own, for each; one may be
//! named several times. BYTES is the size of a request, 4096 if it is not said. Made for comparing servers:
//! all requests that fit are sent in one call, replies are counted as they come, and nothing is looked at
//! twice.

#![allow(clippy::disallowed_methods, reason = "it measures real time")]

#[path = "../tests/nbd_client/mod.rs"]
mod nbd_client;

use nbd_client::{DISCONNECT, READ, WRITE, request};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

const REPLY: usize = 16;

/// What a connection asks for.
#[derive(Clone, Copy)]
struct Load {
    depth: usize,
    bytes: usize,
    is_write: bool,
    time: Duration,
}

fn main() -> io::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |i: usize, usual: u64| args.get(i).and_then(|a| a.parse().ok()).unwrap_or(usual);
    let Some(path) = args.first() else {
        eprintln!("nbd_load SOCKET [DEPTH [SECONDS [EXPORTS [BYTES [read|write]]]]]");
        std::process::exit(2);
    };
    let (depth, seconds, bytes) = (number(1, 64), number(2, 3), number(4, 4096) as usize);
    let is_write = args.get(5).is_some_and(|op| op == "write");
    let load = Load { depth: depth as usize, bytes, is_write, time: Duration::from_secs(seconds) };
    let exports = args.get(3).map_or("", String::as_str).split(',');
    let clients: Vec<_> = exports
        .zip(1..)
        .map(|(export, seed)| {
            let (path, export) = (path.clone(), export.to_owned());
            std::thread::spawn(move || {
                let (mut socket, size) = nbd_client::client(path.as_ref(), &export)?;
                load.run(&mut socket, size, seed)
            })
        })
        .collect();
    let mut done = 0;
    for client in clients {
        done += client.join().expect("a client does not panic")?;
    }
    let what = if is_write { "writes" } else { "reads" };
    println!("depth {depth}: {} {what} a second", done / seconds);
    Ok(())
}

impl Load {
    fn run(self, socket: &mut UnixStream, size: u64, seed: u64) -> io::Result<u64> {
        let mut chance = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(seed);
        let mut next = || {
            chance ^= chance << 13;
            chance ^= chance >> 7;
            chance ^= chance << 17;
            (chance, chance % (size / self.bytes as u64) * self.bytes as u64)
        };
        let data = vec![7; if self.is_write { self.bytes } else { 0 }];
        let command = if self.is_write { WRITE } else { READ };
        let mut requests = Vec::new();
        let mut ask = |requests: &mut Vec<u8>| {
            let (cookie, offset) = next();
            requests.extend(request(command, cookie, offset, self.bytes as u32));
            requests.extend_from_slice(&data);
        };
        let reply = REPLY + if self.is_write { 0 } else { self.bytes };
        let mut input = vec![0; 1 << 20];
        let (mut pending, mut done, mut open) = (0, 0, self.depth);
        let (mut unsent, mut sent) = (self.depth, 0);
        let start = Instant::now();
        // In the end all replies are waited for: some servers do not survive a client that leaves without
        // them.
        while open > 0 {
            while unsent > 0 || sent < requests.len() {
                if sent == requests.len() {
                    requests.clear();
                    sent = 0;
                    let few = unsent.min((1 << 20) / self.bytes.max(1)).max(1);
                    (0..few).for_each(|_| ask(&mut requests));
                    unsent -= few;
                }
                sent += socket.write(&requests[sent..])?;
            }
            let n = socket.read(&mut input)?;
            if n == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            pending += n;
            let is_over = start.elapsed() >= self.time;
            while pending >= reply {
                pending -= reply;
                done += 1;
                if is_over {
                    open -= 1;
                } else {
                    unsent += 1;
                }
            }
        }
        socket.write_all(&request(DISCONNECT, 0, 0, 0))?;
        Ok(done)
    }
}
