//! Twenty tenants that think and reconnect, beside a probe of the disk that they are on.
//!
//! Each tenant has an export of its own, one request at a time (reads, writes of 4 KiB and of 77 bytes, some
//! of them FUA), 4 ms of thought, and a new connection after each thirty requests. The probe writes and reads
//! a file of the same file system in the same way, past the server. No request takes over a second, beside a
//! probe that sees none; where the probe saw one, within two seconds of it nothing is judged.

use crate::honest::{BLOCK, Draw};
use crate::nbd_client::{self, READ, WRITE, flagged};
use crate::processes::Player;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

const EXPORTS: usize = 20;
const SIZE: u64 = 32 << 20;
const THINKS: Duration = Duration::from_millis(4);
const RECONNECTS: u64 = 30;
const LONG: Duration = Duration::from_secs(1);
/// A wait of the probe explains waits this long before and after it.
const NEAR: Duration = Duration::from_secs(2);

/// What one of them saw.
#[derive(Default)]
struct Seen {
    requests: u64,
    longest: Duration,
    /// When requests that took over [`LONG`] began, since the start, and what they took.
    long: Vec<(Duration, Duration)>,
    /// Connections that failed.
    failed: u64,
}

impl Seen {
    fn saw(&mut self, at: Duration, took: Duration) {
        self.requests += 1;
        self.longest = self.longest.max(took);
        if took > LONG {
            self.long.push((at, took));
        }
    }
}

pub(crate) fn run(time: Duration) -> ExitCode {
    match soak(time) {
        Ok(is_well) => ExitCode::from(u8::from(!is_well)),
        Err(e) => {
            eprintln!("neighbours: soak: {e}");
            ExitCode::FAILURE
        }
    }
}

fn soak(time: Duration) -> io::Result<bool> {
    // On the disk that the repository is on, and not in memory.
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
    for name in (0..EXPORTS).map(|i| format!("e{i}")).chain(["probe".to_owned()]) {
        File::create(dir.path().join(name))?.set_len(SIZE)?;
    }
    let at = dir.path().to_str().expect("a plain name");
    let mut server = Player::server(&["soak", at, &EXPORTS.to_string()]);
    let line = server.line();
    if line != "ready" {
        return Err(io::Error::other(line));
    }
    let began = Instant::now();
    let (tenants, probe) = std::thread::scope(|scope| {
        let socket = dir.path().join("socket");
        let tenants: Vec<_> = (0..EXPORTS)
            .map(|i| {
                let socket = socket.clone();
                scope.spawn(move || tenant(&socket, i, began, time))
            })
            .collect();
        let probe = scope.spawn(|| probe(&dir.path().join("probe"), began, time));
        let tenants: Vec<Seen> = tenants.into_iter().map(|t| t.join().expect("a tenant")).collect();
        (tenants, probe.join().expect("the probe"))
    });
    let probe = probe?;
    Ok(judge(&tenants, &probe))
}

fn judge(tenants: &[Seen], probe: &Seen) -> bool {
    let requests: u64 = tenants.iter().map(|t| t.requests).sum();
    let longest = tenants.iter().map(|t| t.longest).max().unwrap_or_default();
    let failed: u64 = tenants.iter().map(|t| t.failed).sum();
    let long: Vec<_> = tenants.iter().flat_map(|t| &t.long).collect();
    let is_explained = |&&&(at, took): &&&(Duration, Duration)| {
        probe.long.iter().any(|&(p, p_took)| at < p + p_took + NEAR && p < at + took + NEAR)
    };
    let explained = long.iter().filter(is_explained).count();
    println!("{EXPORTS} tenants: {requests} requests, the longest {longest:?}, {failed} connections failed");
    println!("probe: {} requests, the longest {:?}", probe.requests, probe.longest);
    println!("{} requests over {LONG:?}, {explained} of them while the probe saw one, too", long.len());
    long.len() == explained && failed == 0 && requests > 0
}

fn tenant(socket: &Path, number: usize, began: Instant, time: Duration) -> Seen {
    let (mut seen, mut draw) = (Seen::default(), Draw(number as u64 + 1));
    let mut client: Option<UnixStream> = None;
    while began.elapsed() < time {
        let is_due = seen.requests % RECONNECTS == 0;
        if client.is_none() || is_due {
            drop(client.take());
            client = nbd_client::client(socket, &format!("e{number}")).ok().map(|(socket, _)| socket);
        }
        let at = began.elapsed();
        match client.as_mut().map(|client| request(client, &mut draw)) {
            Some(Ok(())) => seen.saw(at, began.elapsed() - at),
            _ => {
                seen.failed += 1;
                client = None;
            }
        }
        std::thread::sleep(THINKS);
    }
    seen
}

fn request(client: &mut UnixStream, draw: &mut Draw) -> io::Result<()> {
    let offset = draw.below(200) * BLOCK as u64;
    let data = [b'd'; BLOCK];
    let is_read = match draw.below(3) {
        0 => {
            client.write_all(&flagged(0, READ, 1, offset, BLOCK as u32))?;
            true
        }
        1 => {
            let fua = draw.below(2) as u16;
            client.write_all(&[&flagged(fua, WRITE, 1, offset, BLOCK as u32)[..], &data].concat())?;
            false
        }
        _ => {
            client.write_all(&[&flagged(0, WRITE, 1, offset + 7, 77)[..], &data[..77]].concat())?;
            false
        }
    };
    let mut head = [0; 16];
    client.read_exact(&mut head)?;
    if head[4..8] != [0; 4] {
        return Err(io::Error::other("an error of the disk"));
    }
    if is_read { client.read_exact(&mut [0; BLOCK]) } else { Ok(()) }
}

/// What the disk does past the server.
fn probe(path: &Path, began: Instant, time: Duration) -> io::Result<Seen> {
    let file = File::options().read(true).write(true).custom_flags(libc::O_DIRECT).open(path)?;
    let (mut seen, mut draw, mut space) = (Seen::default(), Draw(99), vec![b'p'; 2 * BLOCK]);
    let start = space.as_ptr().align_offset(BLOCK);
    let block = &mut space[start..start + BLOCK];
    while began.elapsed() < time {
        let (offset, at) = (draw.below(200) * BLOCK as u64, began.elapsed());
        match draw.below(2) {
            0 => file.read_exact_at(block, offset)?,
            _ => file.write_all_at(block, offset)?,
        }
        seen.saw(at, began.elapsed() - at);
        std::thread::sleep(THINKS);
    }
    Ok(seen)
}
