//! NBD's extended headers: requests and replies with 64-bit lengths, put together by hand after the
//! protocol's description.

#![allow(clippy::disallowed_methods, reason = "sockets and their time-outs are real")]

use crate::nbd_client;
use crate::nbd_client::{BLOCK_STATUS, FLUSH, READ, WRITE, connect, option, option_reply};
use fairhead_live::DiskOptions;
use fairhead_live::nbd::{Export, Listen, Options, Server};
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use tempfile::TempDir;

const SIZE: u64 = 9 << 30;
const PAYLOAD: u16 = 1 << 5;
const TRIM: u16 = 4;
const ZEROES: u16 = 6;
const INVALID: u32 = 22;

struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        let place = Self { folder: tempfile::tempdir().unwrap() };
        File::create(place.image()).unwrap().set_len(SIZE).unwrap();
        place
    }

    fn image(&self) -> PathBuf {
        self.folder.path().join("disk")
    }

    fn serve(&self) -> Server {
        let disk = DiskOptions::new::<&str>([]).scheduler("bfq").unwrap().depth(8);
        let listen = [Listen::Unix(self.folder.path().join("socket"))];
        Server::start(disk, &[Export::new("disk", self.image())], &listen, Options::default()).unwrap()
    }

    /// A client with extended headers that may ask for block status.
    fn client(&self) -> UnixStream {
        let mut socket = connect(&self.folder.path().join("socket")).unwrap();
        socket.write_all(b"\0\0\0\x03").unwrap();
        assert_eq!(ask(&mut socket, 11, b"x"), 0x8000_0003, "it has no data");
        assert_eq!(ask(&mut socket, 11, b""), 1);
        assert_eq!(ask(&mut socket, 8, b""), 0x8000_000a, "structured replies are implied");
        let contexts = [&b"\0\0\0\x04disk\0\0\0\x01\0\0\0\x0f"[..], b"base:allocation"].concat();
        assert_eq!(ask(&mut socket, 10, &contexts), 1);
        assert_eq!(ask(&mut socket, 7, b"\0\0\0\x04disk\0\0"), 1);
        socket
    }
}

fn ask(socket: &mut UnixStream, kind: u32, data: &[u8]) -> u32 {
    socket.write_all(&option(kind, data)).unwrap();
    loop {
        let (_, reply, _) = option_reply(socket).unwrap();
        if reply == 1 || reply >= 1 << 31 {
            return reply;
        }
    }
}

fn request(flags: u16, kind: u16, cookie: u64, offset: u64, len: u64) -> Vec<u8> {
    let mut bytes = 0x21e4_1c71_u32.to_be_bytes().to_vec();
    bytes.extend(flags.to_be_bytes());
    bytes.extend(kind.to_be_bytes());
    [cookie, offset, len].iter().for_each(|n| bytes.extend(n.to_be_bytes()));
    bytes
}

/// The kind and the payload of the only chunk of a reply to this request.
fn reply(socket: &mut UnixStream, cookie: u64, offset: u64) -> (u16, Vec<u8>) {
    let mut head = [0; 32];
    socket.read_exact(&mut head).unwrap();
    let number = |at: usize| u64::from_be_bytes(head[at..at + 8].try_into().unwrap());
    assert_eq!(head[..6], [0x6e, 0x8a, 0x27, 0x8c, 0, 1], "an extended reply with one chunk");
    assert_eq!((number(8), number(16)), (cookie, offset));
    let mut payload = vec![0; number(24) as usize];
    socket.read_exact(&mut payload).unwrap();
    (u16::from_be_bytes([head[6], head[7]]), payload)
}

fn error(payload: &[u8]) -> u32 {
    u32::from_be_bytes(payload[..4].try_into().unwrap())
}

const DONE: (u16, Vec<u8>) = (0, Vec::new());

#[test]
fn every_request_has_a_long_header_and_every_reply() {
    let place = Place::new();
    let _server = place.serve();
    let mut socket = place.client();
    let far = SIZE - (1 << 20);
    let data: Vec<u8> = (0..1 << 20).map(|i| (i % 253) as u8).collect();
    // Large writes one after the other: headers are 32 bytes long wherever they are.
    for i in 0..4 {
        let head = request(PAYLOAD, WRITE, i, far, 1 << 20);
        socket.write_all(&[head, data.clone()].concat()).unwrap();
    }
    (0..4).for_each(|i| assert_eq!(reply(&mut socket, i, far), DONE));
    socket.write_all(&request(0, READ, 5, far, 1 << 20)).unwrap();
    let (kind, payload) = reply(&mut socket, 5, far);
    assert_eq!((kind, &payload[..8]), (1, &far.to_be_bytes()[..]));
    assert!(payload[8..] == data, "what was written is read");
    socket.write_all(&request(0, FLUSH, 6, 0, 0)).unwrap();
    assert_eq!(reply(&mut socket, 6, 0), DONE);
    // Without the flag, the length of a write is that of its data, too.
    socket.write_all(&[request(0, WRITE, 7, 0, 3), b"abc".to_vec()].concat()).unwrap();
    assert_eq!(reply(&mut socket, 7, 0), DONE);
}

#[test]
fn what_is_refused_is_refused_with_its_offset_and_what_follows_is_understood() {
    let place = Place::new();
    let _server = place.serve();
    let mut socket = place.client();
    let mut refused = |bytes: Vec<u8>, offset: u64| {
        socket.write_all(&bytes).unwrap();
        let (kind, payload) = reply(&mut socket, 9, offset);
        assert_eq!(kind, 1 << 15 | 1);
        error(&payload)
    };
    assert_eq!(refused([request(PAYLOAD, READ, 9, 512, 5), b"12345".to_vec()].concat(), 512), INVALID);
    assert_eq!(refused(request(0, READ, 9, 0, 33 << 20), 0), INVALID, "reads stay short");
    assert_eq!(refused(request(0, TRIM, 9, 4096, u64::MAX), 4096), INVALID);
    assert_eq!(refused(request(0, ZEROES, 9, 1, SIZE), 1), 28);
    assert_eq!(refused([request(PAYLOAD, WRITE, 9, SIZE, 4096), vec![0; 4096]].concat(), SIZE), 28);
    assert_eq!(refused(request(0, 77, 9, 8, 0), 8), INVALID);
    // A header of the short kind, or data without an end, break the protocol.
    for wrong in [nbd_client::request(READ, 1, 0, 512), request(PAYLOAD, WRITE, 1, 0, 1 << 40)] {
        let mut socket = place.client();
        socket.write_all(&wrong).unwrap();
        assert_eq!(socket.read(&mut [0]).unwrap_or(0), 0, "it is hung up on");
    }
}

/// More than 4 GiB at a time: charged in full, and never more of it in the queue than a part.
#[test]
fn long_discards_zeroing_and_questions_are_done_in_parts() {
    let place = Place::new();
    let image = File::options().write(true).open(place.image()).unwrap();
    let ends = [0, 5 << 30, SIZE - 4096];
    ends.iter().for_each(|&at| image.write_all_at(&[7; 4096], at).unwrap());
    image.sync_all().unwrap();
    let server = place.serve();
    let mut socket = place.client();
    // All extents are in the answers, however many questions it takes.
    let (mut at, mut data) = (0, 0);
    while at < SIZE {
        socket.write_all(&request(0, BLOCK_STATUS, 1, at, SIZE - at)).unwrap();
        let (kind, payload) = reply(&mut socket, 1, at);
        let count = u32::from_be_bytes(payload[4..8].try_into().unwrap()) as usize;
        assert_eq!((kind, &payload[..4], payload.len()), (6, &[0, 0, 0, 1][..], 8 + 16 * count));
        for extent in payload[8..].chunks(16) {
            let number = |i: usize| u64::from_be_bytes(extent[i..i + 8].try_into().unwrap());
            at += number(0);
            data += if number(8) == 0 { number(0) } else { 0 };
        }
    }
    assert_eq!(at, SIZE);
    assert!((3 * 4096..1 << 20).contains(&data), "{data} bytes of data");
    socket.write_all(&request(0, TRIM, 2, 0, 6 << 30)).unwrap();
    assert_eq!(reply(&mut socket, 2, 0), DONE);
    let zero = request(0, ZEROES, 3, 5 << 30, 4 << 30);
    socket.write_all(&zero).unwrap();
    assert_eq!(reply(&mut socket, 3, 5 << 30), DONE);
    let image = File::open(place.image()).unwrap();
    for at in ends {
        let mut block = [1; 4096];
        image.read_exact_at(&mut block, at).unwrap();
        assert_eq!(block, [0; 4096], "at {at}");
    }
    assert_eq!(image.metadata().unwrap().len(), SIZE);
    println!("{} blocks in use", image.metadata().unwrap().blocks());
    let groups = server.disk().groups().unwrap();
    let (_, stats) = groups.iter().find(|(name, _)| name == "disk").unwrap();
    assert_eq!(stats.io_service_bytes.discard() + stats.io_service_bytes.write(), 10 << 30, "all is charged");
    assert_eq!(server.stats()[0].1.writes, 2);
}
