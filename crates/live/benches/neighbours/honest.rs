//! The honest tenant: reads of 4 KiB at random, one at a time, as quickly as they are answered.

use crate::nbd_client::{self, READ, reply, request};
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

pub(crate) const BLOCK: usize = 4096;

/// What it got.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kept {
    pub(crate) reads: usize,
    pub(crate) p99: Duration,
    pub(crate) longest: Duration,
}

/// Numbers that jump about, the same each time.
pub(crate) struct Draw(pub(crate) u64);

impl Draw {
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

/// Does this again and again, with the offset of a block each time.
fn again(time: Duration, blocks: u64, mut once: impl FnMut(u64)) -> Kept {
    let (mut draw, mut times, end) = (Draw(7), Vec::new(), Instant::now() + time);
    while Instant::now() < end {
        let began = Instant::now();
        once(draw.below(blocks) * BLOCK as u64);
        times.push(began.elapsed());
    }
    times.sort_unstable();
    let p99 = times.get(times.len() * 99 / 100).copied().unwrap_or(time);
    Kept { reads: times.len(), p99, longest: times.last().copied().unwrap_or(time) }
}

/// A client of NBD.
pub(crate) struct Client {
    socket: UnixStream,
    blocks: u64,
}

impl Client {
    pub(crate) fn new(path: &Path, export: &str) -> Self {
        let (socket, size) = nbd_client::client(path, export).expect("a place for an honest client");
        Self { socket, blocks: size / BLOCK as u64 }
    }

    pub(crate) fn run(&mut self, time: Duration) -> Kept {
        let (socket, mut data) = (&mut self.socket, [0; BLOCK]);
        again(time, self.blocks, |offset| {
            socket.write_all(&request(READ, 1, offset, BLOCK as u32)).expect("the server listens");
            assert_eq!(reply(socket), (0, 1));
            socket.read_exact(&mut data).expect("data");
        })
    }

    /// The longest of some flushes.
    pub(crate) fn flush_time(&mut self) -> Duration {
        let mut once = || {
            let began = Instant::now();
            self.socket.write_all(&request(nbd_client::FLUSH, 1, 0, 0)).expect("the server listens");
            assert_eq!(reply(&mut self.socket), (0, 1));
            began.elapsed()
        };
        (0..20).map(|_| once()).max().unwrap_or_default()
    }
}

/// A program that reads a file of a mount, past the page cache.
pub(crate) fn read_file(path: &Path, time: Duration) -> Kept {
    let file = File::options().read(true).custom_flags(libc::O_DIRECT).open(path).expect("a file");
    let mut space = vec![0; 2 * BLOCK];
    let at = space.as_ptr().align_offset(BLOCK);
    let blocks = file.metadata().expect("a file").len() / BLOCK as u64;
    again(time, blocks, |offset| {
        file.read_exact_at(&mut space[at..at + BLOCK], offset).expect("data");
    })
}
