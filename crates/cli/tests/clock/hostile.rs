//! `fairhead serve` among hostile clients: the other clients continue, memory has a bound, and a signal ends
//! it.

#![allow(clippy::disallowed_methods, reason = "processes and their time-outs are real")]

use crate::nbd_client;
use crate::nbd_client::{choice, reply, request};
use crate::process::{Process, fairhead, start};
use crate::stamps::Chance;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const SIZE: u64 = 64 << 20;
/// What the data of all requests may hold, and as much again for everything else.
const MEMORY_MAX_KIB: u64 = 512 << 10;
/// A folder with a disk in it and a server on it, both gone with the test.
struct Served {
    folder: TempDir,
    process: Process,
}

impl Served {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let disk = folder.path().join("disk.img");
        File::create(&disk).unwrap().set_len(SIZE).unwrap();
        let (process, line, _) = start(
            fairhead()
                .args(["serve", "--sched", "bfq", "--depth", "8", "--export"])
                .arg(format!("vm={}", disk.display()))
                .arg("--socket")
                .arg(folder.path().join("s"))
                .stdout(Stdio::piped()),
        );
        assert!(line.starts_with("fairhead: listening on "), "{line}");
        Self { folder, process }
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("s")
    }

    fn connect(&self) -> io::Result<UnixStream> {
        nbd_client::connect(&self.socket())
    }

    fn client(&self) -> io::Result<UnixStream> {
        Ok(nbd_client::client(&self.socket(), "vm")?.0)
    }

    /// The most memory that it has ever had, in KiB.
    fn memory_max(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.0.id())).unwrap();
        let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).expect("a process has memory");
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }
}

trait Bytes {
    fn bytes(&mut self, most: u64) -> Vec<u8>;
}

impl Bytes for Chance {
    fn bytes(&mut self, most: u64) -> Vec<u8> {
        let len = self.below(most + 1);
        (0..len).map(|_| self.below(256) as u8).collect()
    }
}

/// Something senseless in one of the protocol's states, and gone.
fn garbage(served: &Served, chance: &mut Chance) -> io::Result<()> {
    let option = |chance: &mut Chance, kind: u32, data: &[u8]| {
        let len = if chance.below(4) == 0 { chance.below(1 << 32) as u32 } else { data.len() as u32 };
        [b"IHAVEOPT", &kind.to_be_bytes()[..], &len.to_be_bytes(), data].concat()
    };
    let state = chance.below(8);
    let mut socket = if state < 4 { served.connect()? } else { served.client()? };
    match state {
        0 => socket.write_all(&chance.bytes(100))?,
        1 | 2 => {
            socket.write_all(b"\0\0\0\x03")?;
            for _ in 0..chance.below(20) {
                let data = chance.bytes(60);
                let kind = chance.below(13) as u32;
                // Not the way out of the handshake.
                socket.write_all(&option(chance, if kind == 1 { 99 } else { kind }, &data))?;
            }
        }
        3 => {
            let choice = choice("vm");
            socket.write_all(&choice[..chance.below(choice.len() as u64) as usize])?;
        }
        4 => socket.write_all(&chance.bytes(4000))?,
        5 | 6 => {
            // Known requests that change nothing, and unknown ones; some of them nowhere, some for too much.
            for cookie in 0..chance.below(60) {
                let kind = [0, 0, 3, 5, 7, 8, 99, 0xffff][chance.below(8) as usize];
                let len = chance.below(1 << 20) as u32 >> chance.below(12);
                let mut bytes = request(kind, cookie, chance.below(2 * SIZE) & !511, len & !511);
                bytes[5] = chance.below(3) as u8;
                socket.write_all(&bytes)?;
            }
        }
        _ => {
            // A request and a half, in the half of the disk that no other client uses.
            socket.write_all(&request(0, 1, SIZE / 2, 1 << 20))?;
            socket.write_all(&request(1, 2, SIZE / 2, 1 << 20))?;
            socket.write_all(&chance.bytes(9000))?;
        }
    }
    Ok(())
}

/// Writes and reads its own part, and looks at what it gets. Returns how long the longest took.
fn honest(served: &Served, rounds: u64) -> Duration {
    let mut socket = served.client().unwrap();
    let mut longest = Duration::ZERO;
    for round in 0..rounds {
        let start = Instant::now();
        let len = 4096 << (round % 6);
        let data: Vec<u8> = (0..len).map(|i| (round * 31 + i / 512) as u8).collect();
        let at = round % 100 * 131_072;
        socket.write_all(&[request(1, round, at, len as u32), data.clone()].concat()).unwrap();
        assert_eq!(reply(&mut socket), (0, round));
        socket.write_all(&request(0, round, at, len as u32)).unwrap();
        assert_eq!(reply(&mut socket), (0, round));
        let mut read = vec![0; len as usize];
        socket.read_exact(&mut read).unwrap();
        assert!(read == data, "round {round}");
        longest = longest.max(start.elapsed());
    }
    longest
}

#[test]
fn the_others_go_on_memory_has_a_bound_and_it_ends() {
    let mut served = Served::new();
    let alone = honest(&served, 200);
    // They ask for a thousand megabytes each, and read nothing.
    let mut unread: Vec<UnixStream> = (0..20).map(|_| served.client().unwrap()).collect();
    let much: Vec<u8> = (0..1000).flat_map(|i| request(0, i, (i % 32) << 20, 1 << 20)).collect();
    for socket in &mut unread {
        socket.set_nonblocking(true).unwrap();
        // It need not take all of it.
        let _ = socket.write(&much);
    }
    let mut half: Vec<UnixStream> = (0..10).map(|_| served.client().unwrap()).collect();
    half.iter_mut()
        .for_each(|s| s.write_all(&[request(1, 1, SIZE / 2, 32 << 20), vec![0; 99]].concat()).unwrap());
    // A process may have fewer files open; then they are fewer.
    let open: Vec<UnixStream> = (0..1000).map_while(|_| UnixStream::connect(served.socket()).ok()).collect();
    let (end, met) = (AtomicBool::new(false), AtomicU64::new(0));
    let longest = std::thread::scope(|scope| {
        for seed in 1..=2 {
            let (served, end, met) = (&served, &end, &met);
            scope.spawn(move || {
                let mut chance = Chance(seed * 0x9e37_79b9);
                while !end.load(Ordering::Relaxed) {
                    // Being hung up on is what it is after.
                    let _ = garbage(served, &mut chance);
                    met.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let longest = honest(&served, 400);
        end.store(true, Ordering::Relaxed);
        longest
    });
    let memory = served.memory_max();
    println!(
        "longest round: {alone:?} alone, {longest:?} beside {met:?} who talk nonsense and {} who say nothing; {memory} KiB",
        open.len()
    );
    assert!(memory < MEMORY_MAX_KIB, "{memory} KiB");
    let start = Instant::now();
    assert!(Command::new("kill").arg(served.process.0.id().to_string()).status().unwrap().success());
    let status = served.process.0.wait().unwrap();
    assert!(start.elapsed() < Duration::from_secs(5), "it ended after {:?}", start.elapsed());
    let mut text = String::new();
    served.process.0.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    assert!(status.success() && text.contains("\nvm "), "{text}");
}
