//! Random faults over real connections: transfers that fail, are short, late, or to be tried again, and
//! clients that go away in the middle of anything.
//!
//! Each client has a part of an export to itself and knows what may be in every sector of it: what its last
//! acknowledged write put there, and besides what writes put there that failed, or of which it did not wait
//! to hear. What it reads must be one of these, byte by byte; each answer must be to a question that is open.
//! One export has no faults: whatever happens on the other one, its client gets everything.
//!
//! `FAIRHEAD_SEED=N cargo test --test it nbd_faults` runs one story; without it, a few are. A failure names
//! the seed and the step.

#![allow(clippy::disallowed_methods, reason = "sockets and their time-outs are real")]

use crate::nbd_client;
use crate::nbd_client::{FLUSH, READ, WRITE, hear, request};
use fairhead_live::nbd::{Export, Listen, Options, Server};
use fairhead_live::{DiskOptions, Errno, Fault, FaultOp, Faults, Harm};
use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

const SECTOR: usize = 512;
/// The bytes of an export that are one client's.
const PART: usize = 2 << 20;
const CLIENTS: usize = 3;
const STEPS: usize = 150;
/// Requests that a client has open at a time.
const DEPTH: usize = 8;

/// xorshift, as short as it gets.
struct Chance(u64);

impl Chance {
    const fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }
    const fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize % n
    }
    const fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
}

/// What write number `version` puts at this byte of the export; 0 is the time before all.
const fn byte(version: u32, at: usize) -> u8 {
    if version == 0 {
        return 0;
    }
    let n = (version as usize).wrapping_mul(0x9e37_79b1) ^ at.wrapping_mul(0x85eb_ca6b);
    (n >> 13) as u8 ^ n as u8
}

/// What may be in a sector.
#[derive(Clone, Debug)]
struct Sector {
    acknowledged: u32,
    /// Writes since then of which it is not known.
    maybe: Vec<u32>,
    /// Writes of connections that are gone: these may still come.
    ghosts: Vec<u32>,
}

/// A request that is open.
#[derive(Debug)]
enum Open {
    Read(Range<usize>),
    Write(Range<usize>, u32),
    Flush,
}

impl Open {
    fn range(&self) -> Range<usize> {
        match self {
            Self::Read(range) | Self::Write(range, _) => range.clone(),
            Self::Flush => 0..0,
        }
    }
}

/// A client with a part of an export, from `start` on.
struct Client<'a> {
    story: String,
    socket_path: &'a Path,
    export: &'a str,
    start: usize,
    /// Whether nothing may fail.
    is_spared: bool,
    chance: Chance,
    sectors: Vec<Sector>,
    open: BTreeMap<u64, Open>,
    socket: UnixStream,
    cookie: u64,
    version: u32,
    /// Requests that were answered well, and not.
    answers: [usize; 2],
}

impl<'a> Client<'a> {
    fn new(story: String, socket_path: &'a Path, export: &'a str, part: usize, seed: u64) -> Self {
        let sector = Sector { acknowledged: 0, maybe: Vec::new(), ghosts: Vec::new() };
        Self {
            story,
            socket_path,
            export,
            start: part * PART,
            is_spared: false,
            chance: Chance::new(seed),
            sectors: vec![sector; PART / SECTOR],
            open: BTreeMap::new(),
            socket: nbd_client::client(socket_path, export).unwrap().0,
            cookie: 0,
            version: 0,
            answers: [0; 2],
        }
    }

    /// A range that no open request touches.
    fn range(&mut self) -> Option<Range<usize>> {
        let most = [8, 8, 64, 64, 128, 400, 1200][self.chance.below(7)];
        let len = (1 + self.chance.below(most)) * SECTOR;
        let from = self.chance.below((PART - len) / SECTOR) * SECTOR;
        let range = from..from + len;
        let is_free = self.open.values().all(|o| {
            let other = o.range();
            other.end <= range.start || range.end <= other.start
        });
        is_free.then_some(range)
    }

    fn ask(&mut self, open: Open) -> Vec<u8> {
        self.cookie += 1;
        let range = open.range();
        let (offset, len) = ((self.start + range.start) as u64, range.len() as u32);
        let bytes = match &open {
            Open::Read(_) => request(READ, self.cookie, offset, len),
            Open::Flush => request(FLUSH, self.cookie, 0, 0),
            Open::Write(_, version) => {
                let data: Vec<u8> = range.map(|at| byte(*version, at)).collect();
                [request(WRITE, self.cookie, offset, len), data].concat()
            }
        };
        self.open.insert(self.cookie, open);
        bytes
    }

    /// Sends, in two parts at times; answers stay where they are meanwhile.
    fn send(&mut self, bytes: &[u8]) {
        let cut = if self.chance.one_in(3) { self.chance.below(bytes.len()) } else { bytes.len() };
        for part in [&bytes[..cut], &bytes[cut..]] {
            self.socket.write_all(part).unwrap_or_else(|e| panic!("{}: {e}", self.story));
        }
    }

    fn step(&mut self) {
        match self.chance.below(100) {
            0 if !self.is_spared => return self.vanish(),
            1..4 => {
                let bytes = self.ask(Open::Flush);
                self.send(&bytes);
            }
            n => {
                if let Some(range) = self.range() {
                    self.version += 1;
                    let open = if n < 55 { Open::Read(range) } else { Open::Write(range, self.version) };
                    let bytes = self.ask(open);
                    self.send(&bytes);
                }
            }
        }
        while self.open.len() >= DEPTH || !self.open.is_empty() && self.chance.one_in(4) {
            self.hear();
        }
    }

    /// An answer, to a question that is open.
    fn hear(&mut self) {
        let (error, cookie) = hear(&mut self.socket).unwrap_or_else(|e| panic!("{}: {e}", self.story));
        let open =
            self.open.remove(&cookie).unwrap_or_else(|| panic!("{}: {cookie} is not open", self.story));
        self.answers[usize::from(error != 0)] += 1;
        assert!(error == 0 || !self.is_spared, "{}: error {error} where there are no faults", self.story);
        match open {
            Open::Read(range) if error == 0 => {
                let mut data = vec![0; range.len()];
                self.socket.read_exact(&mut data).unwrap_or_else(|e| panic!("{}: {e}", self.story));
                self.check(range.start, &data);
            }
            Open::Write(range, version) => {
                for sector in &mut self.sectors[range.start / SECTOR..range.end / SECTOR] {
                    if error == 0 {
                        (sector.acknowledged, sector.maybe) = (version, Vec::new());
                    } else {
                        sector.maybe.push(version);
                    }
                }
            }
            Open::Read(_) | Open::Flush => {}
        }
    }

    fn check(&self, from: usize, data: &[u8]) {
        for (i, got) in data.iter().enumerate() {
            let (at, sector) = (from + i, &self.sectors[(from + i) / SECTOR]);
            let mut versions = [&sector.maybe, &sector.ghosts].into_iter().flatten().copied();
            let is_one =
                *got == byte(sector.acknowledged, at) || versions.any(|version| *got == byte(version, at));
            assert!(is_one, "{}: {got} at {at} of {}, which has {sector:?}", self.story, self.export);
        }
    }

    /// Goes away without a word: behind its requests, in the middle of one, or with half an answer read; and
    /// comes back.
    fn vanish(&mut self) {
        if let Some(range) = self.range() {
            self.version += 1;
            let is_read = self.chance.one_in(2);
            let open = if is_read { Open::Read(range) } else { Open::Write(range, self.version) };
            let bytes = self.ask(open);
            let sent = if is_read { bytes.len() } else { self.chance.below(bytes.len()) };
            let _ = self.socket.write_all(&bytes[..sent]);
        }
        if self.chance.one_in(2) {
            let mut some = vec![0; 1 + self.chance.below(100_000)];
            let _ = self.socket.set_read_timeout(Some(Duration::from_millis(5)));
            let _ = self.socket.read(&mut some);
        }
        if self.chance.one_in(2) {
            let how = [Shutdown::Both, Shutdown::Read, Shutdown::Write][self.chance.below(3)];
            let _ = self.socket.shutdown(how);
        }
        for open in std::mem::take(&mut self.open).into_values() {
            if let Open::Write(range, version) = open {
                for sector in &mut self.sectors[range.start / SECTOR..range.end / SECTOR] {
                    sector.ghosts.push(version);
                }
            }
        }
        self.socket = nbd_client::client(self.socket_path, self.export)
            .unwrap_or_else(|e| panic!("{}: others are served: {e}", self.story))
            .0;
    }

    /// Hears all that is open, and reads everything.
    fn finish(&mut self) {
        while !self.open.is_empty() {
            self.hear();
        }
        self.is_spared = true;
        for at in (0..PART).step_by(PART / 16) {
            let bytes = self.ask(Open::Read(at..at + PART / 16));
            self.send(&bytes);
            self.hear();
        }
    }

    /// Nothing more comes than what was asked for.
    fn nothing_more(&mut self) {
        let _ = self.socket.set_read_timeout(Some(Duration::from_millis(20)));
        let more = self.socket.read(&mut [0]);
        let is_silent =
            more.as_ref().is_err_and(|e| matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut));
        assert!(is_silent, "{}: an answer to nothing: {more:?}", self.story);
    }
}

/// Something that goes wrong for a while, somewhere in the first file.
fn some_fault(chance: &mut Chance) -> Fault {
    let op = [FaultOp::Read, FaultOp::Write, FaultOp::Write, FaultOp::Flush][chance.below(4)];
    let from = (chance.below(CLIENTS * PART / SECTOR) * SECTOR) as u64;
    let len = (1 + chance.below(1024)) * SECTOR;
    let errno = [Errno::IO, Errno(libc::ENOSPC), Errno(libc::EINTR), Errno(libc::EAGAIN)][chance.below(4)];
    let harm = match chance.below(4) {
        0 => Harm::Short(1 + chance.below(100_000) as u64),
        1 => Harm::Stuck(Duration::from_millis(1 + chance.below(8) as u64)),
        _ => Harm::Error(errno),
    };
    Fault { op, file: 0, bytes: from..from + len as u64, times: 1 + chance.below(3) as u32, harm }
}

/// One server, clients on the first export that faults are on, and one on the second.
fn story(folder: &Path, scheduler: &str, seed: u64) -> [usize; 2] {
    let (paths, socket) = (["first", "second"].map(|name| folder.join(name)), folder.join("socket"));
    for path in &paths {
        // Data, no hole, so that a file in memory is mapped.
        std::fs::write(path, vec![0; CLIENTS * PART]).unwrap();
    }
    let faults = Faults::default();
    let disk = DiskOptions::new::<PathBuf>([]).scheduler(scheduler).unwrap().depth(8).faults(&faults);
    let exports = ["first", "second"].map(|name| Export::new(name, folder.join(name)));
    let server = Server::start(disk, &exports, &[Listen::Unix(socket.clone())], Options::default()).unwrap();
    let client = |number: usize| {
        let export = if number < CLIENTS { "first" } else { "second" };
        let story = format!("seed {seed}, {scheduler}, client {number}");
        let mut client = Client::new(story, &socket, export, number % CLIENTS, seed * 16 + number as u64);
        client.is_spared = number == CLIENTS;
        client
    };
    let mut clients: Vec<Client<'_>> = (0..=CLIENTS).map(client).collect();
    std::thread::scope(|scope| {
        let running: Vec<_> = (clients.iter_mut())
            .map(|client| scope.spawn(move || (0..STEPS).for_each(|_| client.step())))
            .collect();
        let mut chance = Chance::new(seed);
        while running.iter().any(|r| !r.is_finished()) {
            faults.add(some_fault(&mut chance));
            std::thread::sleep(Duration::from_millis(2));
        }
        running.into_iter().for_each(|r| r.join().unwrap());
    });
    faults.clear();
    clients.iter_mut().for_each(Client::finish);
    clients.iter_mut().for_each(Client::nothing_more);
    let answers = clients.iter().fold([0; 2], |[well, ill], c| [well + c.answers[0], ill + c.answers[1]]);
    let done = server.stop();
    assert_eq!(done[1].1.errors, 0, "seed {seed}: on the export without faults");
    for client in &clients {
        let file = std::fs::File::open(&paths[usize::from(client.export == "second")]).unwrap();
        let mut data = vec![0; PART];
        file.read_exact_at(&mut data, client.start as u64).unwrap();
        client.check(0, &data);
    }
    answers
}

/// In memory, and on what there is for temporary files.
#[test]
fn nothing_acknowledged_is_lost_and_no_answer_comes_twice() {
    let seeds = match std::env::var("FAIRHEAD_SEED").map(|s| s.parse()) {
        Ok(Ok(seed)) => seed..seed + 1,
        _ => 1..4,
    };
    // How many faults a story meets depends on how fast it goes; all together meet some.
    let mut failed = 0;
    for in_memory in [true, false] {
        let folder = if in_memory { tempfile::tempdir_in("/dev/shm") } else { tempfile::tempdir() };
        let Ok(folder) = folder else {
            println!("skipped: no files in memory");
            continue;
        };
        for seed in seeds.clone() {
            let scheduler = ["noop", "bfq", "kyber"][seed as usize % 3];
            let [well, ill] = story(folder.path(), scheduler, seed);
            assert!(well > STEPS, "seed {seed}: {well} answers were good, {ill} were not");
            failed += ill;
        }
    }
    assert!(failed > 0, "no answer failed in any story");
}
