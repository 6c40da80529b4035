//! What a test needs to be a client of NBD: the shortest way to an export, requests, and simple replies.
//!
//! Bytes are put together by hand here, after the protocol's description, and not by the code that is tested.

#![allow(dead_code, reason = "no test binary needs all of it")]

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

pub(crate) const READ: u16 = 0;
pub(crate) const WRITE: u16 = 1;
/// "I go."
pub(crate) const DISCONNECT: u16 = 2;
pub(crate) const FLUSH: u16 = 3;
pub(crate) const BLOCK_STATUS: u16 = 7;

/// Of a client that chooses an export without negotiation.
pub(crate) fn choice(export: &str) -> Vec<u8> {
    let len = export.len() as u32;
    [b"\0\0\0\x03IHAVEOPT\0\0\0\x01", &len.to_be_bytes()[..], export.as_bytes()].concat()
}

/// Connects, to wait twenty seconds for anything at most, and hears the greeting.
pub(crate) fn connect(path: &Path) -> io::Result<UnixStream> {
    let mut socket = UnixStream::connect(path)?;
    socket.set_read_timeout(Some(Duration::from_secs(20)))?;
    socket.set_write_timeout(Some(Duration::from_secs(20)))?;
    socket.read_exact(&mut [0; 18])?;
    Ok(socket)
}

/// A client in transmission, with simple replies; and how large its export is.
pub(crate) fn client(path: &Path, export: &str) -> io::Result<(UnixStream, u64)> {
    choose(connect(path)?, export)
}

/// Chooses an export on a socket that has heard the greeting. Returns how large the export is, too.
pub(crate) fn choose<S: Read + Write>(mut socket: S, export: &str) -> io::Result<(S, u64)> {
    socket.write_all(&choice(export))?;
    let mut told = [0; 10];
    socket.read_exact(&mut told)?;
    Ok((socket, u64::from_be_bytes(told[..8].try_into().expect("eight bytes"))))
}

/// A client in transmission that may ask for block status, with structured replies.
pub(crate) fn mapper(path: &Path, export: &str) -> io::Result<UnixStream> {
    let mut socket = connect(path)?;
    let name = [&(export.len() as u32).to_be_bytes()[..], export.as_bytes()].concat();
    let context = b"base:allocation";
    let contexts = [&name[..], &[0, 0, 0, 1, 0, 0, 0, context.len() as u8], context].concat();
    let options = [option(8, b""), option(10, &contexts), option(7, &[&name[..], &[0, 0]].concat())];
    socket.write_all(&[b"\0\0\0\x03", &options.concat()[..]].concat())?;
    // The last reply of the last option is an acknowledgement.
    loop {
        let (option, kind, _) = option_reply(&mut socket)?;
        assert!(kind < 1 << 31, "option {option} was refused");
        if (option, kind) == (7, 1) {
            return Ok(socket);
        }
    }
}

/// An option of the handshake.
pub(crate) fn option(kind: u32, data: &[u8]) -> Vec<u8> {
    [b"IHAVEOPT", &kind.to_be_bytes()[..], &(data.len() as u32).to_be_bytes(), data].concat()
}

/// The option, the kind and the data of the next reply of the handshake.
pub(crate) fn option_reply(socket: &mut impl Read) -> io::Result<(u32, u32, Vec<u8>)> {
    let mut head = [0; 20];
    socket.read_exact(&mut head)?;
    let number = |at: usize| u32::from_be_bytes(head[at..at + 4].try_into().expect("four bytes"));
    let mut data = vec![0; number(16) as usize];
    socket.read_exact(&mut data)?;
    Ok((number(8), number(12), data))
}

/// Asks for block status, and returns the extents: lengths, and whether each is a hole.
pub(crate) fn status(socket: &mut UnixStream, flags: u16, offset: u64, len: u32) -> Vec<(u32, bool)> {
    socket.write_all(&flagged(flags, BLOCK_STATUS, 1, offset, len)).expect("it listens");
    let mut head = [0; 20];
    socket.read_exact(&mut head).expect("an answer within twenty seconds");
    assert_eq!(head[..8], [0x66, 0x8e, 0x33, 0xef, 0, 1, 0, 5], "the only chunk, about block status");
    let mut data = vec![0; u32::from_be_bytes(head[16..].try_into().expect("four bytes")) as usize];
    socket.read_exact(&mut data).expect("the rest of it");
    let numbers: Vec<u32> =
        data.chunks(4).map(|n| u32::from_be_bytes(n.try_into().expect("four bytes"))).collect();
    assert_eq!(numbers[0], 1, "the context");
    numbers[1..].chunks(2).map(|e| (e[0], e[1] != 0)).collect()
}

/// A request without its data.
pub(crate) fn request(kind: u16, cookie: u64, offset: u64, len: u32) -> Vec<u8> {
    flagged(0, kind, cookie, offset, len)
}

/// A request with flags.
pub(crate) fn flagged(flags: u16, kind: u16, cookie: u64, offset: u64, len: u32) -> Vec<u8> {
    let mut bytes = 0x2560_9513_u32.to_be_bytes().to_vec();
    bytes.extend(flags.to_be_bytes());
    bytes.extend(kind.to_be_bytes());
    bytes.extend(cookie.to_be_bytes());
    bytes.extend(offset.to_be_bytes());
    bytes.extend(len.to_be_bytes());
    bytes
}

/// The error and the cookie of the next reply; data, if there are any, follow.
///
/// # Panics
/// If it is no reply.
pub(crate) fn hear(socket: &mut impl Read) -> io::Result<(u32, u64)> {
    let mut head = [0; 16];
    socket.read_exact(&mut head)?;
    assert_eq!(head[..4], [0x67, 0x44, 0x66, 0x98], "a reply");
    let error = u32::from_be_bytes(head[4..8].try_into().expect("four bytes"));
    Ok((error, u64::from_be_bytes(head[8..].try_into().expect("eight bytes"))))
}

/// Reads a reply that must come.
pub(crate) fn reply(socket: &mut impl Read) -> (u32, u64) {
    hear(socket).expect("an answer within twenty seconds")
}
