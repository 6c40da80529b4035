//! `fairhead mount` is killed, or a program that uses it is, at random moments: what was acknowledged is
//! there.
//!
//! As in `kill.rs`, blocks are stamped, and it is known of each which write was acknowledged last. The
//! program is a process of its own (this test, told so by its environment), so that it can be killed inside a
//! call; before and after each call it says so through a socket, and what it said before it was killed is
//! heard. Each of its threads has a part of the file to itself and makes one call at a time, past the page
//! cache or through it.
//!
//! A mount that was killed is taken away with `umount -l` and mounted again. While it lives no call may fail.

#![allow(clippy::disallowed_methods, reason = "processes are real")]

use crate::may_mount;
use crate::process::{Process, fairhead, start};
use crate::stamps::{BLOCK, Chance, Known, serials, stamped};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, mpsc};
use std::time::Duration;
use tempfile::TempDir;

/// Blocks of a thread, and of one call.
const PART: u64 = 64;
const RUN: u64 = 8;
const THREADS: u64 = 4;
/// Serial numbers of a program.
const SERIALS: u64 = 1 << 32;
//= linux-6.12 include/uapi/asm-generic/fcntl.h O_DIRECT; arch/arm64/include/uapi/asm/fcntl.h
const O_DIRECT: i32 =
    if cfg!(any(target_arch = "arm", target_arch = "aarch64")) { 0o20_0000 } else { 0o4_0000 };

const FILE: &str = "FAIRHEAD_KILL_FILE";
const FIRST: &str = "FAIRHEAD_KILL_FIRST";

/// What the program says. Numbers are those of the thread, the first block in its part, how many, and the
/// write.
const WRITES: u64 = 1;
const FLUSHES: u64 = 2;
/// The call went well; behind a read, the writes that it found follow.
const DONE: u64 = 3;
const READ: u64 = 4;
const FAILED: u64 = 5;

type Record = [u64; 5];

fn say(socket: &Mutex<UnixStream>, record: Record, more: &[u64]) {
    let bytes: Vec<u8> = record.iter().chain(more).flat_map(|n| n.to_le_bytes()).collect();
    // No reader is left, so the result is not needed.
    let _ = socket.lock().unwrap().write_all(&bytes);
}

fn numbers<const N: usize>(socket: &mut UnixStream) -> Option<[u64; N]> {
    let mut numbers = [0; N];
    for number in &mut numbers {
        let mut bytes = [0; 8];
        socket.read_exact(&mut bytes).ok()?;
        *number = u64::from_le_bytes(bytes);
    }
    Some(numbers)
}

/// The program: reads all, then does anything, until it is killed or the mount is gone.
fn program(path: &Path, first: u64) {
    let socket = io::stdin().as_fd().try_clone_to_owned().expect("a socket instead of a keyboard");
    let socket = Mutex::new(UnixStream::from(socket));
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let socket = &socket;
            scope.spawn(move || {
                let chance = Chance(first.wrapping_mul(THREADS).wrapping_add(thread) | 1);
                let mut caller = Caller { thread, chance, serial: first, socket };
                if let Err(e) = caller.call(path) {
                    let errno = e.raw_os_error().unwrap_or(0);
                    say(socket, [FAILED, thread, errno.unsigned_abs().into(), 0, 0], &[]);
                }
            });
        }
    });
}

struct Caller<'a> {
    thread: u64,
    chance: Chance,
    serial: u64,
    socket: &'a Mutex<UnixStream>,
}

impl Caller<'_> {
    fn say(&self, kind: u64, first: u64, count: u64, more: &[u64]) {
        say(self.socket, [kind, self.thread, first, count, self.serial], more);
    }

    fn call(&mut self, path: &Path) -> io::Result<()> {
        let flags = if self.chance.below(2) == 0 { O_DIRECT } else { 0 };
        let file = OpenOptions::new().read(true).write(true).custom_flags(flags).open(path)?;
        for first in (0..PART).step_by(RUN as usize) {
            self.read(&file, first, RUN)?;
        }
        loop {
            let first = self.chance.below(PART);
            let count = 1 + self.chance.below(RUN.min(PART - first));
            self.serial += 1;
            match self.chance.below(100) {
                0..10 => {
                    self.say(FLUSHES, 0, 0, &[]);
                    if self.chance.below(2) == 0 { file.sync_all() } else { file.sync_data() }?;
                }
                10..40 => {
                    self.read(&file, first, count)?;
                    continue;
                }
                _ => {
                    self.say(WRITES, first, count, &[]);
                    let from = self.thread * PART + first;
                    let data: Vec<u8> = (from..from + count).flat_map(|b| stamped(b, self.serial)).collect();
                    file.write_all_at(&data, from * BLOCK as u64)?;
                }
            }
            self.say(DONE, 0, 0, &[]);
        }
    }

    fn read(&self, file: &File, first: u64, count: u64) -> io::Result<()> {
        let mut data = vec![0; count as usize * BLOCK];
        let from = self.thread * PART + first;
        file.read_exact_at(&mut data, from * BLOCK as u64)?;
        let found: Vec<u64> =
            (from..).zip(data.chunks_exact(BLOCK)).flat_map(|(block, bytes)| serials(block, bytes)).collect();
        self.say(READ, first, count, &found);
        Ok(())
    }
}

/// What a thread waits for.
enum PendingRequest {
    Write {
        first: u64,
        count: u64,
        serial: u64,
    },
    /// What had been acknowledged when it was asked.
    Flush(Vec<u64>),
}

/// What is known of a thread's part of the file.
#[derive(Default)]
struct Part {
    known: Vec<Known>,
    asked: Option<PendingRequest>,
}

#[derive(Default, Debug)]
struct Sum {
    writes: u64,
    reads: u64,
    flushes: u64,
    /// Calls that failed since the mount was gone.
    failed: u64,
}

struct Books {
    parts: Vec<Part>,
    sum: Sum,
}

impl Books {
    fn new() -> Self {
        let part = || Part { known: vec![Known::default(); PART as usize], asked: None };
        Self { parts: (0..THREADS).map(|_| part()).collect(), sum: Sum::default() }
    }

    /// Listens to a program until it is gone, and tells when it has begun. Returns the errors that it met.
    fn listen(&mut self, socket: &mut UnixStream, begun: &mpsc::Sender<()>) -> Vec<u64> {
        let mut errors = Vec::new();
        self.parts.iter_mut().for_each(|p| p.asked = None);
        while let Some([kind, thread, first, count, serial]) = numbers(socket) {
            let part = &mut self.parts[thread as usize];
            // Once is enough.
            let _ = begun.send(());
            match kind {
                WRITES => {
                    part.known[first as usize..(first + count) as usize]
                        .iter_mut()
                        .for_each(|k| k.sent = serial);
                    part.asked = Some(PendingRequest::Write { first, count, serial });
                }
                FLUSHES => {
                    part.asked =
                        Some(PendingRequest::Flush(part.known.iter().map(|k| k.acknowledged).collect()));
                }
                READ => {
                    for (block, known) in
                        (first..).zip(&mut part.known[first as usize..(first + count) as usize])
                    {
                        let Some(found) = numbers(socket) else { return errors };
                        known.check_serials(thread * PART + block, found);
                    }
                    self.sum.reads += 1;
                }
                DONE => match part.asked.take().expect("something was asked") {
                    PendingRequest::Write { first, count, serial } => {
                        let written = &mut part.known[first as usize..(first + count) as usize];
                        written.iter_mut().for_each(|k| k.acknowledged = serial);
                        self.sum.writes += 1;
                    }
                    PendingRequest::Flush(acknowledged) => {
                        part.known.iter_mut().zip(acknowledged).for_each(|(k, a)| k.stable = k.stable.max(a));
                        self.sum.flushes += 1;
                    }
                },
                FAILED => errors.push(first),
                _ => panic!("the program says {kind}"),
            }
        }
        self.sum.failed += errors.len() as u64;
        errors
    }

    /// Against the file itself.
    fn compare(&mut self, file: &Path) {
        let file = File::open(file).unwrap();
        let known = self.parts.iter_mut().flat_map(|p| &mut p.known);
        for (block, known) in (0..).zip(known) {
            let mut bytes = vec![0; BLOCK];
            file.read_exact_at(&mut bytes, block * BLOCK as u64).unwrap();
            let _ = known.check(block, &bytes);
        }
    }
}

/// A folder, and where it is mounted.
struct Place(TempDir);

impl Place {
    /// `None` where nothing can be mounted.
    fn new() -> Option<Self> {
        if !may_mount::may_mount() {
            return None;
        }
        let place = Self(tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap());
        ["source", "mnt"].iter().for_each(|n| std::fs::create_dir(place.0.path().join(n)).unwrap());
        File::create(place.below()).unwrap().set_len(THREADS * PART * BLOCK as u64).unwrap();
        Some(place)
    }

    fn below(&self) -> PathBuf {
        self.0.path().join("source/file")
    }

    fn mount(&self, sched: &str) -> Mounted<'_> {
        let (process, line, _) = start(
            fairhead()
                .args(["mount", "--depth", "8", "--sched", sched, "source", "mnt"])
                .current_dir(&self.0)
                .stdout(Stdio::null()),
        );
        assert!(line.contains("scheduled by"), "{line}");
        Mounted { place: self, process }
    }

    /// Starts the program. Its end of the socket is closed here, so that this one hears when it is gone.
    fn program(&self, first: u64) -> (Child, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", TEST])
            .env(FILE, self.0.path().join("mnt/file"))
            .env(FIRST, first.to_string())
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        (child, ours)
    }
}

/// Killed when it is dropped, and taken away.
struct Mounted<'a> {
    place: &'a Place,
    process: Process,
}

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        self.process.kill();
        let status = Command::new("umount").arg("-l").arg(self.place.0.path().join("mnt")).status().unwrap();
        assert!(status.success() || std::thread::panicking(), "umount: {status}");
    }
}

const TEST: &str = "kill_mount::what_was_acknowledged_is_there_whoever_is_killed";

#[test]
fn what_was_acknowledged_is_there_whoever_is_killed() {
    let number = |name: &str| std::env::var(name).ok().map(|n| n.parse::<u64>().expect("a number"));
    if let Some(file) = std::env::var_os(FILE) {
        return program(Path::new(&file), number(FIRST).expect("the first serial number"));
    }
    let cycles = number("FAIRHEAD_KILLS").unwrap_or(20);
    let Some(place) = Place::new() else { return };
    let seed = std::env::var("FAIRHEAD_SEED").unwrap_or_default();
    let seed =
        seed.bytes().fold(0x9e37_79b9_7f4a_7c15_u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3));
    let mut chance = Chance(seed | 1);
    let mut books = Books::new();
    let mut mounted = None;
    let mut killed = 0;
    for cycle in 0..cycles {
        let running = mounted.take().unwrap_or_else(|| {
            place.mount(["noop", "deadline", "bfq", "cfq", "kyber"][chance.below(5) as usize])
        });
        let is_mount = chance.below(2) == 0;
        let (mut child, mut socket) = place.program(cycle * SERIALS);
        let time = Duration::from_micros(chance.below(60_000));
        let (tell, begun) = mpsc::channel();
        let errors = std::thread::scope(|scope| {
            let listener = scope.spawn(|| books.listen(&mut socket, &tell));
            begun.recv_timeout(Duration::from_secs(20)).expect("the program begins");
            std::thread::sleep(time);
            if is_mount {
                drop(running);
            } else {
                child.kill().unwrap();
                mounted = Some(running);
            }
            // It ends by itself when its mount is gone.
            let status = child.wait().unwrap();
            assert!(!is_mount || status.success(), "the program: {status}");
            listener.join().expect("see above")
        });
        assert!(is_mount || errors.is_empty(), "calls failed with {errors:?}, and the mount was there");
        if is_mount {
            killed += 1;
            books.compare(&place.below());
        }
    }
    println!("{killed} mounts and {} programs killed: {:?}", cycles - killed, books.sum);
    drop(mounted);
    books.compare(&place.below());
    assert!(books.sum.writes > cycles && books.sum.flushes > 0, "hardly anything was done");
}
