//! A disk whose backing store fails, and a client of it over NBD.

#![allow(dead_code, reason = "no test binary needs all of it")]
#![allow(clippy::disallowed_methods, reason = "what is stuck is stuck in real time")]

use fairhead_core::units;
use fairhead_live::nbd::{Export, Listen, Options, Server};
use fairhead_live::{Client, Disk, DiskOptions, Errno, Fault, FaultOp, Faults, Harm, Settings};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;
use tempfile::TempDir;

pub(crate) const BLOCK: u64 = 4096;
pub(crate) const SIZE: u64 = 1 << 20;
pub(crate) const EROFS: Errno = Errno(libc::EROFS);
pub(crate) const ENOSPC: Errno = Errno(libc::ENOSPC);
pub(crate) const EAGAIN: Errno = Errno(libc::EAGAIN);
pub(crate) const TIMEOUT_MS: u64 = 500;
pub(crate) const MS: Duration = Duration::from_millis(1);

/// A folder, removed again.
pub(crate) struct Place(pub(crate) TempDir);

impl Place {
    pub(crate) fn new() -> Self {
        // In memory if possible, where nothing takes long that is not told to.
        let place = Self(tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap());
        let image: Vec<u8> = (0..SIZE / BLOCK).flat_map(old).collect();
        fs::write(place.file(), image).unwrap();
        place
    }
    pub(crate) fn file(&self) -> PathBuf {
        self.0.path().join("disk.img")
    }
    pub(crate) fn options(&self, faults: &Faults) -> DiskOptions {
        let timeout = units::Duration::from_ms(TIMEOUT_MS);
        let settings = Settings { timeout: Some(timeout), ..Settings::default() };
        DiskOptions::new([self.file()])
            .scheduler("deadline")
            .unwrap()
            .settings(settings)
            .depth(8)
            .faults(faults)
    }
    pub(crate) fn stored(&self, block: u64) -> Vec<u8> {
        let mut bytes = vec![0; BLOCK as usize];
        File::open(self.file()).unwrap().read_exact_at(&mut bytes, block * BLOCK).unwrap();
        bytes
    }
}

/// A server of a disk with faults, and where it is; [`connect`] makes a client of it.
pub(crate) fn serve(faults: &Faults) -> (Place, Server) {
    let place = Place::new();
    let exports = [Export::new("disk", place.file())];
    let listen = [Listen::Unix(place.0.path().join("socket"))];
    let server = Server::start(place.options(faults), &exports, &listen, Options::default()).unwrap();
    (place, server)
}

/// What a block holds at first, and after a test has written it.
pub(crate) fn old(block: u64) -> Vec<u8> {
    (0..BLOCK).map(|i| (block * 7 + i / 64) as u8).collect()
}

pub(crate) fn new(block: u64) -> Vec<u8> {
    old(block).iter().map(|b| !b).collect()
}

pub(crate) fn blocks(range: Range<u64>) -> Range<u64> {
    range.start * BLOCK..range.end * BLOCK
}

pub(crate) fn fault(op: FaultOp, range: Range<u64>, times: u32, harm: Harm) -> Fault {
    Fault { op, file: 0, bytes: blocks(range), times, harm }
}

pub(crate) fn write(disk: &Disk, client: &Client, block: u64) -> fairhead_live::Pending<()> {
    let mut data = disk.buffer(BLOCK as usize);
    data.copy_from_slice(&new(block));
    client.write(0, block * BLOCK, data)
}

/// Something takes the whole disk, so that what is asked for meanwhile waits in the scheduler and is merged
/// there.
pub(crate) fn while_it_is_busy<R>(disk: &Disk, faults: &Faults, ask: impl FnOnce() -> R) -> R {
    let client = disk.client("busy").unwrap();
    for i in 0..8 {
        faults.add(fault(FaultOp::Read, 200 + i * 2..201 + i * 2, 1, Harm::Stuck(60 * MS)));
    }
    let busy: Vec<_> = (0..8).map(|i| client.read(0, (200 + i * 2) * BLOCK, BLOCK as u32)).collect();
    let asked = ask();
    busy.into_iter().for_each(|b| assert!(b.wait().is_ok()));
    asked
}

/// A client of the server, with simple replies.
pub(crate) fn connect(place: &Place) -> UnixStream {
    let mut socket = UnixStream::connect(place.0.path().join("socket")).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    socket.read_exact(&mut [0; 18]).unwrap();
    socket.write_all(b"\0\0\0\x03IHAVEOPT\0\0\0\x01\0\0\0\x04disk").unwrap();
    socket.read_exact(&mut [0; 10]).unwrap();
    socket
}

pub(crate) fn request(kind: u16, flags: u16, cookie: u64, block: u64, len: u32) -> Vec<u8> {
    let mut bytes = 0x2560_9513_u32.to_be_bytes().to_vec();
    bytes.extend(flags.to_be_bytes());
    bytes.extend(kind.to_be_bytes());
    bytes.extend(cookie.to_be_bytes());
    bytes.extend((block * BLOCK).to_be_bytes());
    bytes.extend(len.to_be_bytes());
    bytes
}

/// The error and the cookie of the next reply; what is read is thrown away if `len` of the cookie is not 0.
pub(crate) fn reply(socket: &mut UnixStream, len: impl Fn(u64) -> usize) -> (u64, u32) {
    let mut head = [0; 16];
    socket.read_exact(&mut head).unwrap();
    let errno = u32::from_be_bytes(head[4..8].try_into().unwrap());
    let cookie = u64::from_be_bytes(head[8..].try_into().unwrap());
    if errno == 0 {
        socket.read_exact(&mut vec![0; len(cookie)]).unwrap();
    }
    (cookie, errno)
}
