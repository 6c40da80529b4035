//! `fairhead serve` among clients that mean no good: the others go on, memory has a bound, and it ends when it is told to.

#![allow(clippy::disallowed_methods, reason = "processes and their time-outs are real")]

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const SIZE: u64 = 64 << 20;
/// What the data of all requests may hold, and as much again for everything else.
const MEMORY_MAX_KIB: u64 = 512 << 10;
const CHOICE: &[u8] = b"\0\0\0\x03IHAVEOPT\0\0\0\x01\0\0\0\x02vm";

/// A folder with a disk in it and a server on it, both gone with the test.
struct Served {
    path: PathBuf,
    child: Child,
}

impl Served {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("fairhead-hostile-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir(&path).unwrap();
        File::create(path.join("disk.img")).unwrap().set_len(SIZE).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_fairhead"))
            .args(["serve", "--sched", "bfq", "--depth", "8", "--export"])
            .arg(format!("vm={}", path.join("disk.img").display()))
            .arg("--socket")
            .arg(path.join("s"))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with("fairhead: listening on "), "{line}");
        Self { path, child }
    }

    fn connect(&self) -> io::Result<UnixStream> {
        let mut socket = UnixStream::connect(self.path.join("s"))?;
        socket.set_read_timeout(Some(Duration::from_secs(20)))?;
        socket.set_write_timeout(Some(Duration::from_secs(20)))?;
        socket.read_exact(&mut [0; 18])?;
        Ok(socket)
    }

    fn client(&self) -> io::Result<UnixStream> {
        let mut socket = self.connect()?;
        socket.write_all(CHOICE)?;
        socket.read_exact(&mut [0; 10])?;
        Ok(socket)
    }

    /// The most memory that it has ever had, in KiB.
    fn memory_max(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).expect("a process has memory");
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

fn request(kind: u16, cookie: u64, offset: u64, len: u32) -> Vec<u8> {
    let mut bytes = 0x2560_9513_u32.to_be_bytes().to_vec();
    bytes.extend([0, 0]);
    bytes.extend(kind.to_be_bytes());
    bytes.extend(cookie.to_be_bytes());
    bytes.extend(offset.to_be_bytes());
    bytes.extend(len.to_be_bytes());
    bytes
}

fn reply(socket: &mut UnixStream) -> (u32, u64) {
    let mut head = [0; 16];
    socket.read_exact(&mut head).expect("an answer within twenty seconds");
    assert_eq!(head[..4], [0x67, 0x44, 0x66, 0x98]);
    (u32::from_be_bytes(head[4..8].try_into().unwrap()), u64::from_be_bytes(head[8..].try_into().unwrap()))
}

struct Chance(u64);

impl Chance {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) % n
    }

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
        3 => socket.write_all(&CHOICE[..chance.below(CHOICE.len() as u64) as usize])?,
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
            // A request and a half, in the half of the disk that nobody uses.
            socket.write_all(&request(0, 1, SIZE / 2, 1 << 20))?;
            socket.write_all(&request(1, 2, SIZE / 2, 1 << 20))?;
            socket.write_all(&chance.bytes(9000))?;
        }
    }
    Ok(())
}

/// Writes and reads its own part, and looks at what it gets. Answers how long the longest took.
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
    let mut served = Served::new("crowd");
    let alone = honest(&served, 200);
    // They ask for a thousand megabytes each, and read nothing.
    let mut deaf: Vec<UnixStream> = (0..20).map(|_| served.client().unwrap()).collect();
    let much: Vec<u8> = (0..1000).flat_map(|i| request(0, i, (i % 32) << 20, 1 << 20)).collect();
    for socket in &mut deaf {
        socket.set_nonblocking(true).unwrap();
        // It need not take all of it.
        let _ = socket.write(&much);
    }
    let mut half: Vec<UnixStream> = (0..10).map(|_| served.client().unwrap()).collect();
    half.iter_mut()
        .for_each(|s| s.write_all(&[request(1, 1, SIZE / 2, 32 << 20), vec![0; 99]].concat()).unwrap());
    // A process may have fewer files open; then they are fewer.
    let open: Vec<UnixStream> =
        (0..1000).map_while(|_| UnixStream::connect(served.path.join("s")).ok()).collect();
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
    assert!(Command::new("kill").arg(served.child.id().to_string()).status().unwrap().success());
    let status = served.child.wait().unwrap();
    assert!(start.elapsed() < Duration::from_secs(5), "it ended after {:?}", start.elapsed());
    let mut text = String::new();
    served.child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    assert!(status.success() && text.contains("\nvm "), "{text}");
}
