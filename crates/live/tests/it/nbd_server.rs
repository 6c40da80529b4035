//! The server over real sockets: what clients see, and what those who misbehave cannot do to others.

#![allow(clippy::disallowed_methods, reason = "sockets and their time-outs are real")]

use crate::in_time::{in_time, timely};
use crate::nbd_client;
use crate::nbd_client::{reply, request};
use fairhead_live::nbd::{Export, Listen, Options, Server};
use fairhead_live::{DiskOptions, Fault, FaultOp, Faults, Harm};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{IntoRawFd, OwnedFd};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const SIZE: u64 = 8 << 20;

/// A file and a place for a socket, both removed again.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        File::create(place.file()).unwrap().set_len(SIZE).unwrap();
        place
    }
    /// In memory: the server reads such files by itself, and sends the pages of large reads as they are.
    fn in_memory() -> Option<Self> {
        let place = Self(tempfile::tempdir_in("/dev/shm").ok()?);
        std::fs::write(place.file(), vec![0; SIZE as usize]).unwrap();
        Some(place)
    }
    /// One of each kind.
    fn all() -> impl Iterator<Item = Self> {
        [Some(Self::new()), Self::in_memory()].into_iter().flatten()
    }
    fn file(&self) -> PathBuf {
        self.0.path().join("disk.img")
    }
    fn socket(&self) -> PathBuf {
        self.0.path().join("socket")
    }
    fn server(&self, options: Options) -> Server {
        let disk = DiskOptions::new::<&str>([]).scheduler("noop").unwrap().depth(8);
        let exports = [Export::new("disk", self.file())];
        Server::start(disk, &exports, &[Listen::Unix(self.socket())], options).unwrap()
    }
    fn connect(&self) -> UnixStream {
        let socket = UnixStream::connect(self.socket()).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        socket
    }
    /// A client in transmission, with simple replies.
    fn client(&self) -> UnixStream {
        let (socket, size) = nbd_client::client(&self.socket(), "disk").unwrap();
        assert_eq!(size, SIZE);
        socket
    }
}

/// Waits until the server has hung up, and not much else.
fn hung_up(mut socket: impl Read) {
    let mut rest = Vec::new();
    // A reset is as good as an end.
    let _ = socket.read_to_end(&mut rest);
    assert!(rest.len() < 4096, "{} bytes", rest.len());
}

fn pattern(len: usize, seed: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 31 + seed * 7 + i / 4096) as u8).collect()
}

#[test]
fn what_is_written_is_read_whatever_its_size() {
    Place::all().for_each(|place| reads_what_it_wrote(&place));
}

#[test]
fn a_file_in_memory_takes_any_offset_and_length() {
    let Some(place) = Place::in_memory() else { return println!("skipped: no files in memory") };
    // A hole, from which file systems let more be read than from data.
    File::create(place.file()).unwrap().set_len(SIZE).unwrap();
    let server = place.server(Options::default());
    let mut socket = place.client();
    for (i, (offset, len)) in [(777, 1), (1001, 1000), (12_345, 300_001), (4095, 2)].into_iter().enumerate() {
        let data = pattern(len, i);
        socket.write_all(&[request(1, 1, offset, len as u32), data.clone()].concat()).unwrap();
        assert_eq!(reply(&mut socket), (0, 1));
        socket.write_all(&request(0, 2, offset, len as u32)).unwrap();
        assert_eq!(reply(&mut socket), (0, 2));
        let mut read = vec![0; len];
        socket.read_exact(&mut read).unwrap();
        assert!(read == data, "{len} bytes at {offset} came back changed");
    }
    drop(socket);
    let _ = server.stop();
}

fn reads_what_it_wrote(place: &Place) {
    let server = place.server(Options::default());
    let mut socket = place.client();
    for (i, len) in [512, 4096, 12_288, 65_536, 100_352, 1 << 20, 5 << 20].into_iter().enumerate() {
        let data = pattern(len, i);
        let mut bytes = [request(1, 1, 4096, len as u32), data.clone(), request(3, 2, 0, 0)].concat();
        // A reply may not come before its request is whole, so this is sent in one go however large.
        bytes.extend(request(0, 3, 4096, 512));
        socket.write_all(&bytes).unwrap();
        let mut seen: Vec<(u32, u64)> = Vec::new();
        for _ in 0..3 {
            let (errno, cookie) = reply(&mut socket);
            if cookie == 3 {
                socket.read_exact(&mut [0; 512]).unwrap();
            }
            seen.push((errno, cookie));
        }
        seen.sort_unstable();
        assert_eq!(seen, [(0, 1), (0, 2), (0, 3)]);
        socket.write_all(&request(0, 4, 4096, len as u32)).unwrap();
        assert_eq!(reply(&mut socket), (0, 4));
        let mut read = vec![0; len];
        socket.read_exact(&mut read).unwrap();
        assert!(read == data, "{len} bytes came back changed");
        let mut stored = vec![0; len];
        File::open(place.file()).unwrap().read_exact_at(&mut stored, 4096).unwrap();
        assert!(stored == data, "{len} bytes were stored changed");
    }
    socket.write_all(&request(2, 0, 0, 0)).unwrap();
    hung_up(socket);
    let stats = server.stop()[0].1;
    assert_eq!((stats.connections, stats.writes, stats.flushes, stats.errors), (1, 7, 7, 0));
}

#[test]
fn a_thousand_requests_in_one_go_are_answered_once_each() {
    let place = Place::new();
    let data = pattern(SIZE as usize, 3);
    OpenOptions::new().write(true).open(place.file()).unwrap().write_all_at(&data, 0).unwrap();
    let _server = place.server(Options::default());
    let socket = place.client();
    let mut writer = socket.try_clone().unwrap();
    let sender = std::thread::spawn(move || {
        let all: Vec<u8> = (0..1000).flat_map(|i| request(0, i, i * 8192, 4096)).collect();
        // Cut where it hurts.
        all.chunks(1001).for_each(|piece| writer.write_all(piece).unwrap());
        writer.write_all(&request(2, 0, 0, 0)).unwrap();
    });
    let (mut socket, mut seen) = (socket, vec![false; 1000]);
    for _ in 0..1000 {
        let (errno, cookie) = reply(&mut socket);
        let mut page = [0; 4096];
        assert_eq!(errno, 0);
        socket.read_exact(&mut page).unwrap();
        let at = cookie as usize * 8192;
        assert!(page[..] == data[at..at + 4096], "request {cookie}");
        assert!(!std::mem::replace(&mut seen[cookie as usize], true), "request {cookie} twice");
    }
    sender.join().unwrap();
    hung_up(socket);
}

#[test]
fn replies_that_do_not_fit_the_socket_come_all_the_same() {
    let place = Place::new();
    let data = pattern(SIZE as usize, 5);
    OpenOptions::new().write(true).open(place.file()).unwrap().write_all_at(&data, 0).unwrap();
    let _server = place.server(Options::default());
    let mut socket = place.client();
    let large = 700 << 10;
    let mut all: Vec<u8> = (0..10)
        .flat_map(|i| [request(0, i, i << 19, large), request(0, i + 10, i << 19, 512)].concat())
        .collect();
    all.extend(request(2, 0, 0, 0));
    socket.write_all(&all).unwrap();
    // The server has to wait in the middle of a reply, with the end of the connection before it.
    std::thread::sleep(Duration::from_millis(300));
    let mut seen = [false; 20];
    for _ in 0..20 {
        let (errno, cookie) = reply(&mut socket);
        assert_eq!(errno, 0);
        assert!(!std::mem::replace(&mut seen[cookie as usize], true), "request {cookie} twice");
        let (at, len) = if cookie < 10 { (cookie << 19, large) } else { ((cookie - 10) << 19, 512) };
        let mut read = vec![0; len as usize];
        socket.read_exact(&mut read).unwrap();
        assert!(read == data[at as usize..][..len as usize], "request {cookie}");
    }
    hung_up(socket);
}

#[test]
fn garbage_and_hang_ups_leave_others_alone() {
    let place = Place::new();
    let server = place.server(Options { connections_max: 8, ..Options::default() });
    let mut good = place.client();
    for round in 0..40_u64 {
        let mut bad = place.connect();
        let _ = bad.write_all(&pattern(round as usize * 9, round as usize));
        drop(bad);
        let mut bad = place.client();
        bad.write_all(&request(0, 1, 0, 1 << 20)).unwrap();
        bad.write_all(&request(1, 2, 0, 1 << 20)).unwrap();
        bad.write_all(&[0; 5000]).unwrap();
        // Gone with a read unanswered and a write half sent.
        drop(bad);
        let mut bad = place.client();
        bad.write_all(b"and now for something completely different").unwrap();
        hung_up(bad);
        good.write_all(&request(0, round, 4096, 4096)).unwrap();
        assert_eq!(reply(&mut good), (0, round));
        good.read_exact(&mut [0; 4096]).unwrap();
    }
    assert_eq!(server.stats()[0].1.violations, 40);
    drop(good);
    let mut stored = vec![1; 1 << 20];
    File::open(place.file()).unwrap().read_exact_at(&mut stored, 0).unwrap();
    assert!(stored.iter().all(|b| *b == 0), "half a write was done");
}

#[test]
fn who_does_not_read_is_not_read_from() {
    in_time(|| {
        let place = Place::new();
        let server = place.server(Options::default());
        let mut unread = place.client();
        unread.set_write_timeout(Some(Duration::from_millis(300))).unwrap();
        let ask: Vec<u8> = (0..1000).flat_map(|i| request(0, i, 0, 1 << 20)).collect();
        let mut sent = 0_usize;
        while let Ok(n) = unread.write(&ask) {
            sent += n;
            assert!(sent < 10 << 20, "it takes requests for {} MiB and more", sent / 28);
        }
        let stats = server.stats()[0].1;
        assert!(
            stats.read_bytes < 128 << 20,
            "it has read {} MiB that no client took",
            stats.read_bytes >> 20
        );
        let mut good = place.client();
        good.write_all(&request(0, 1, 0, 4096)).unwrap();
        assert_eq!(reply(&mut good), (0, 1));
        let start = Instant::now();
        let _ = server.stop();
        timely(start.elapsed() < Duration::from_secs(5), "it stops");
    });
}

#[test]
fn half_a_write_keeps_no_memory_from_others() {
    let place = Place::new();
    let file = OpenOptions::new().write(true).open(place.file()).unwrap();
    file.set_len(64 << 20).unwrap();
    let faults = Faults::default();
    let disk = DiskOptions::new::<&str>([]).scheduler("noop").unwrap().depth(8).faults(&faults);
    let exports = [Export::new("disk", place.file())];
    let server = Server::start(disk, &exports, &[Listen::Unix(place.socket())], Options::default()).unwrap();
    let connect = || {
        let mut socket = place.connect();
        socket.read_exact(&mut [0; 18]).unwrap();
        socket.write_all(b"\0\0\0\x03IHAVEOPT\0\0\0\x01\0\0\0\x04disk").unwrap();
        socket.read_exact(&mut [0; 10]).unwrap();
        socket
    };
    let mut good = connect();
    let half: Vec<UnixStream> = (0..8)
        .map(|i| {
            let mut socket = connect();
            socket.write_all(&[request(1, i, 0, 32 << 20), vec![1; 100]].concat()).unwrap();
            socket
        })
        .collect();
    std::thread::sleep(Duration::from_millis(300));
    // A little goes all the time, several requests at once, and much as soon as those who do not go on are
    // gone.
    let stuck = Harm::Stuck(Duration::from_millis(500));
    faults.add(Fault { op: FaultOp::Read, file: 0, bytes: 8192..12_288, times: 1, harm: stuck });
    good.write_all(&[request(0, 7, 8192, 4096), request(0, 1, 0, 4096)].concat()).unwrap();
    for cookie in [1, 7] {
        assert_eq!(reply(&mut good), (0, cookie), "what is stuck holds up nothing else");
        good.read_exact(&mut [0; 4096]).unwrap();
    }
    good.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    good.write_all(&request(0, 2, 0, 4 << 20)).unwrap();
    assert_eq!(reply(&mut good), (0, 2));
    good.read_exact(&mut vec![0; 4 << 20]).unwrap();
    drop(half);
    let _ = server.stop();
}

#[test]
fn half_open_handshakes_give_way() {
    in_time(|| {
        let place = Place::new();
        let server = place.server(Options { connections_max: 20, ..Options::default() });
        let mut good = place.client();
        let half: Vec<UnixStream> = (0..200).map(|_| place.connect()).collect();
        let mut late = place.client();
        for socket in [&mut good, &mut late] {
            socket.write_all(&request(0, 1, 0, 4096)).unwrap();
            assert_eq!(reply(socket), (0, 1));
            socket.read_exact(&mut [0; 4096]).unwrap();
        }
        let start = Instant::now();
        let _ = server.stop();
        timely(start.elapsed() < Duration::from_secs(2), "no connection had anything to wait for");
        half.into_iter().for_each(hung_up);
    });
}

#[test]
fn sockets_are_private_and_go_with_the_server() {
    let place = Place::new();
    let server = place.server(Options::default());
    let mode = place.socket().metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let again = || {
        let disk = DiskOptions::new::<&str>([]);
        Server::start(
            disk,
            &[Export::new("x", place.file())],
            &[Listen::Unix(place.socket())],
            Options { force_share: true, ..Options::default() },
        )
    };
    assert!(again().unwrap_err().to_string().ends_with("another server listens there"));
    drop(server);
    assert!(!place.socket().exists());
    // What a killed server leaves is no hindrance, even if it goes a little later than its process; a file
    // is.
    drop(UnixListener::bind(place.socket()).unwrap());
    drop(again().unwrap());
    let lingers = UnixListener::bind(place.socket()).unwrap();
    let goes = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(120));
        drop(lingers);
    });
    drop(again().expect("it waits for it"));
    goes.join().unwrap();
    File::create(place.socket()).unwrap();
    assert!(again().unwrap_err().to_string().ends_with("there is a file of that name"));
}

#[test]
fn a_socket_of_a_manager_outlives_the_server() {
    let place = Place::new();
    let unix = UnixListener::bind(place.socket()).unwrap();
    served_twice(&place, &unix.into(), || UnixStream::connect(place.socket()));
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = tcp.local_addr().unwrap();
    served_twice(&place, &tcp.into(), || TcpStream::connect(address));
}

/// Starts two servers, one after the other, on a socket that they inherit.
fn served_twice<S: Read + Write>(place: &Place, socket: &OwnedFd, connect: impl Fn() -> std::io::Result<S>) {
    let serve = || {
        let descriptor = socket.try_clone().unwrap().into_raw_fd();
        let listen = [Listen::Descriptor(descriptor as u32)];
        let disk = DiskOptions::new::<&str>([]);
        Server::start(disk, &[Export::new("disk", place.file())], &listen, Options::default()).unwrap()
    };
    let server = serve();
    let mut first = connect().unwrap();
    first.read_exact(&mut [0; 18]).unwrap();
    let began = Instant::now();
    let _ = server.stop();
    assert!(began.elapsed() < Duration::from_secs(3), "it stopped after {:?}", began.elapsed());
    hung_up(first);
    let mut second = connect().expect("the manager listens on");
    let server = serve();
    second.write_all(&nbd_client::choice("disk")).unwrap();
    second.read_exact(&mut [0; 28]).expect("the next server has it");
    drop(second);
    let _ = server.stop();
}

#[test]
fn tcp_is_for_this_machine_unless_told() {
    let place = Place::new();
    let start = |address: &str, trust_network| {
        let options = Options { trust_network, ..Options::default() };
        let listen = [Listen::Tcp(address.parse().unwrap())];
        Server::start(DiskOptions::new::<&str>([]), &[Export::new("disk", place.file())], &listen, options)
    };
    assert!(start("0.0.0.0:0", false).unwrap_err().to_string().contains("other machines"));
    assert!(start("[::]:0", false).is_err());
    drop(start("0.0.0.0:0", true).unwrap());
    let server = start("127.0.0.1:0", false).unwrap();
    let Listen::Tcp(address) = server.addresses()[0] else { panic!("TCP") };
    let mut socket = TcpStream::connect(address).unwrap();
    let mut greeting = [0; 18];
    socket.read_exact(&mut greeting).unwrap();
    assert_eq!(&greeting, b"NBDMAGICIHAVEOPT\0\x03");
    drop(server);
    hung_up(socket);
}

/// Several clients with large requests: the ring's workers copy.
fn with_workers(place: &Place, threads: u32) -> Server {
    let disk = DiskOptions::new::<&str>([]).scheduler("bfq").unwrap().depth(8).threads(threads);
    // By the page cache, where every transfer is a copy.
    let exports = [Export::new("disk", place.file())];
    Server::start(disk.direct(false), &exports, &[Listen::Unix(place.socket())], Options::default()).unwrap()
}

/// Each client writes to a part of its own, flushes, and reads, eight requests of 256 KiB at a time, with a
/// pattern of its own each time. What it reads after the answers to its writes is what it wrote; what is in
/// the file after a flush, too.
#[test]
fn large_data_are_the_same_whoever_copies_them() {
    const LEN: usize = 256 << 10;
    for (threads, place) in [0, 1, 4].into_iter().flat_map(|threads| Place::all().map(move |p| (threads, p)))
    {
        let place = &place;
        let server = with_workers(place, threads);
        let work = |client: usize| {
            let mut socket = place.client();
            let at = |i: usize| ((client * 8 + i) * LEN) as u64;
            for round in 0..6 {
                let data = |i: usize| pattern(LEN, client * 1000 + round * 8 + i);
                for i in 0..8 {
                    socket.write_all(&request(1, i as u64, at(i), LEN as u32)).unwrap();
                    socket.write_all(&data(i)).unwrap();
                }
                (0..8).for_each(|_| assert_eq!(reply(&mut socket).0, 0));
                socket.write_all(&request(3, 99, 0, 0)).unwrap();
                assert_eq!(reply(&mut socket), (0, 99));
                let file = File::open(place.file()).unwrap();
                let asked: Vec<u8> = (0..8).flat_map(|i| request(0, i as u64, at(i), LEN as u32)).collect();
                socket.write_all(&asked).unwrap();
                let mut got = vec![0; LEN];
                for _ in 0..8 {
                    let (error, i) = reply(&mut socket);
                    assert_eq!(error, 0);
                    socket.read_exact(&mut got).unwrap();
                    assert!(got == data(i as usize), "client {client}, round {round}, {i}: other data");
                    file.read_exact_at(&mut got, at(i as usize)).unwrap();
                    assert!(got == data(i as usize), "client {client}, round {round}, {i}: not in the file");
                }
            }
        };
        std::thread::scope(|s| {
            for client in 0..4 {
                s.spawn(move || work(client));
            }
        });
        let done = server.stop();
        assert_eq!(done.len(), 1);
    }
}

/// Clients hang up while workers copy their data, to and fro, and before they have sent what they announced.
/// The others notice nothing, and the server stops at once with everything full.
#[test]
fn who_hangs_up_in_the_middle_of_large_data_harms_nobody() {
    Place::all().for_each(|place| hang_up_in_the_middle(&place));
}

fn hang_up_in_the_middle(place: &Place) {
    const LEN: usize = 1 << 20;
    let server = with_workers(place, 4);
    let mut other = place.client();
    for round in 0..16 {
        let mut socket = place.client();
        let reads: Vec<u8> = (0..8).flat_map(|i| request(0, i, i * LEN as u64, LEN as u32)).collect();
        socket.write_all(&reads).unwrap();
        let mut some = vec![0; round * 25_000 + 1];
        socket.read_exact(&mut some).unwrap();
        if round % 2 == 0 {
            // The reply is not read, and the rest of this never comes.
            socket.write_all(&request(1, 9, 4 << 20, LEN as u32)).unwrap();
            let _ = socket.set_write_timeout(Some(Duration::from_millis(20)));
            let _ = socket.write(&pattern(LEN / 2, round));
        }
        drop(socket);
        let data = pattern(LEN, round);
        other.write_all(&[request(1, 1, 0, LEN as u32), data.clone(), request(3, 2, 0, 0)].concat()).unwrap();
        let mut heard = [reply(&mut other), reply(&mut other)];
        heard.sort_unstable();
        assert_eq!(heard, [(0, 1), (0, 2)]);
        other.write_all(&request(0, 3, 0, LEN as u32)).unwrap();
        assert_eq!(reply(&mut other), (0, 3));
        let mut got = vec![0; LEN];
        other.read_exact(&mut got).unwrap();
        assert!(got == data, "round {round}");
    }
    // These are never read.
    let full: Vec<UnixStream> = (0..4)
        .map(|_| {
            let mut socket = place.client();
            let reads: Vec<u8> =
                (0..32).flat_map(|i| request(0, i, i % 8 * LEN as u64, LEN as u32)).collect();
            socket.write_all(&reads).unwrap();
            socket
        })
        .collect();
    std::thread::sleep(Duration::from_millis(100));
    let began = Instant::now();
    let _ = server.stop();
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    drop(full);
}

/// The pages of a file in memory are sent as they are. What is behind the end of one that was cut has none:
/// these bytes are zeros, also where the other half of the read has pages.
#[test]
fn a_file_in_memory_that_was_cut_reads_as_zeros_behind_its_end() {
    const LEN: usize = 1 << 20;
    const END: usize = (700 << 10) + 100;
    let Some(place) = Place::in_memory() else { return println!("skipped: no files in memory") };
    let server = with_workers(&place, 4);
    let mut socket = place.client();
    let data = pattern(LEN, 1);
    std::fs::write(place.file(), &data).unwrap();
    let file = OpenOptions::new().write(true).open(place.file()).unwrap();
    file.set_len(END as u64).unwrap();
    for round in 0..3 {
        socket.write_all(&request(0, round, 0, LEN as u32)).unwrap();
        assert_eq!(reply(&mut socket), (0, round));
        let mut got = vec![9; LEN];
        socket.read_exact(&mut got).unwrap();
        assert!(got[..END] == data[..END], "round {round}");
        assert!(got[END..].iter().all(|b| *b == 0), "round {round}");
    }
    drop(socket);
    let _ = server.stop();
}

/// Small reads of such a file are sent from where it is mapped. Where it was cut, that is an error of the
/// call that sends: also of replies that wait in the socket meanwhile.
#[test]
fn small_reads_of_a_file_that_was_cut_are_zeros_behind_its_end() {
    const LEN: usize = 8 << 10;
    const END: usize = (1 << 20) + 100;
    let Some(place) = Place::in_memory() else { return println!("skipped: no files in memory") };
    let server = with_workers(&place, 4);
    let (mut early, mut late) = (place.client(), place.client());
    let data = pattern(SIZE as usize, 1);
    std::fs::write(place.file(), &data).unwrap();
    // More than the socket takes: the last ones are sent after the cut.
    let ask = |i: u64| request(0, i, i * LEN as u64, LEN as u32);
    let asked: Vec<u8> = (0..SIZE / LEN as u64).flat_map(ask).collect();
    for part in asked.chunks(28 * 200) {
        early.write_all(part).unwrap();
    }
    std::thread::sleep(Duration::from_millis(50));
    OpenOptions::new().write(true).open(place.file()).unwrap().set_len(END as u64).unwrap();
    late.write_all(&asked[28 * 120..28 * 140]).unwrap();
    let check = |socket: &mut UnixStream, may_be_older: bool| {
        let (error, i) = reply(socket);
        assert_eq!(error, 0);
        let (mut got, at) = (vec![9; LEN], i as usize * LEN);
        socket.read_exact(&mut got).unwrap();
        let left = END.saturating_sub(at).min(LEN);
        assert!(got[..left] == data[at..at + left], "{i}");
        let are_zeros = got[left..].iter().all(|b| *b == 0);
        let are_older =
            may_be_older && got[left..].iter().zip(&data[at + left..]).all(|(b, old)| [0, *old].contains(b));
        assert!(are_zeros || are_older, "{i}");
    };
    (0..20).for_each(|_| check(&mut late, false));
    (0..SIZE / LEN as u64).for_each(|_| check(&mut early, true));
    drop((early, late));
    let _ = server.stop();
}

/// Reading a hole takes no memory, also one that a client has made.
#[test]
fn reads_of_what_was_discarded_take_no_memory() {
    let Some(place) = Place::in_memory() else { return println!("skipped: no files in memory") };
    let server = with_workers(&place, 0);
    let mut socket = place.client();
    let used = || File::open(place.file()).unwrap().metadata().unwrap().blocks() * 512;
    assert_eq!(used(), SIZE);
    let read_all = |socket: &mut UnixStream| {
        for i in 0..SIZE / 4096 {
            socket.write_all(&request(0, i, i * 4096, 4096)).unwrap();
            assert_eq!(reply(socket), (0, i));
            socket.read_exact(&mut [0; 4096]).unwrap();
        }
    };
    read_all(&mut socket);
    socket.write_all(&request(4, 1, 0, SIZE as u32 / 2)).unwrap();
    assert_eq!(reply(&mut socket), (0, 1));
    assert_eq!(used(), SIZE / 2);
    read_all(&mut socket);
    assert_eq!(used(), SIZE / 2);
    drop(socket);
    let _ = server.stop();
}

/// Large writes, one behind the other: their data go to a file in memory through pipes, if they come in
/// pages; in the end a client sends byte by byte.
#[test]
fn data_of_writes_are_what_was_sent_however_they_were_cut() {
    for place in Place::all() {
        let server = with_workers(&place, 0);
        let mut socket = place.client();
        for (round, len) in [16 << 10, 64 << 10, 200_000, (256 << 10) - 512, 32 << 10].into_iter().enumerate()
        {
            let data = |i: usize| pattern(len, round * 100 + i);
            let at = |i: usize| (i * (300 << 10) + round * 512) as u64;
            let asked: Vec<u8> =
                (0..8).flat_map(|i| [request(1, i as u64, at(i), len as u32), data(i)].concat()).collect();
            let mut sender = socket.try_clone().unwrap();
            let sends = std::thread::spawn(move || {
                let mut sent = 0;
                while sent < asked.len() {
                    let piece = [1 << 20, 70_001, 4096, 100_000, 1][round];
                    let piece = if sent > 2 * len { piece } else { 1 << 20 };
                    let end = (sent + piece).min(asked.len());
                    sender.write_all(&asked[sent..end]).unwrap();
                    sent = end;
                }
            });
            let mut answered = [false; 8];
            for _ in 0..8 {
                let (error, i) = reply(&mut socket);
                assert!(error == 0 && !std::mem::replace(&mut answered[i as usize], true), "{error}, {i}");
            }
            sends.join().unwrap();
            let file = File::open(place.file()).unwrap();
            for i in 0..8 {
                let mut got = vec![0; len];
                file.read_exact_at(&mut got, at(i)).unwrap();
                assert!(got == data(i), "round {round}, write {i}");
            }
        }
        drop(socket);
        let _ = server.stop();
    }
}

/// Resident memory of this process, in bytes.
fn resident() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    pages.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

/// A MiB for each reply, and the replies of a client.
const LARGE: usize = 1 << 20;
const LARGE_EACH: u64 = 16;

/// While others need the memory, the server hangs up on a client that reads nothing for this long.
const UNREAD_MAX: Duration = Duration::from_secs(4);

/// Forty clients ask for 16 MiB each, by a MiB, and read nothing. Their replies take no more memory than all
/// together may have. Then they read, all at once, and each gets everything.
#[test]
fn replies_that_nobody_reads_are_bounded_whoever_copies_them() {
    in_time(|| Place::all().for_each(|place| holds_back_what_is_not_read(&place)));
}

fn holds_back_what_is_not_read(place: &Place) {
    let all = pattern(SIZE as usize, 3);
    std::fs::write(place.file(), &all).unwrap();
    let server = with_workers(place, 4);
    let before = resident();
    let clients: Vec<UnixStream> = (0..40)
        .map(|_| {
            let mut socket = place.client();
            let one = |i| request(0, i, i % 8 * LARGE as u64, LARGE as u32);
            socket.write_all(&(0..LARGE_EACH).flat_map(one).collect::<Vec<u8>>()).unwrap();
            socket
        })
        .collect();
    let asked = Instant::now();
    // Until no more is read.
    let (mut reads, mut still) = (0, 0);
    while still < 5 {
        std::thread::sleep(Duration::from_millis(50));
        let now = server.stats()[0].1.reads;
        still = if now == reads && now > 0 { still + 1 } else { 0 };
        reads = now;
        assert!(asked.elapsed() < Duration::from_secs(60), "{reads} replies, and no end");
    }
    let grown = resident().saturating_sub(before) >> 20;
    assert!(grown < 512, "{grown} MiB for {reads} replies");
    assert!(reads < 40 * LARGE_EACH, "all {reads} replies wait: nothing was held back");
    std::thread::scope(|scope| {
        let readers: Vec<_> =
            clients.iter().map(|socket| scope.spawn(|| reads_everything(socket, &all, asked))).collect();
        for reader in readers {
            reader.join().unwrap_or_else(|why| std::panic::resume_unwind(why));
        }
    });
    let _ = server.stop();
}

/// Reads all replies of a client that has read nothing since `asked`. The server may have hung up on it only
/// if it took longer than it may.
fn reads_everything(mut socket: &UnixStream, all: &[u8], asked: Instant) {
    let (mut seen, mut got, mut last) = ([false; LARGE_EACH as usize], vec![0; LARGE], asked);
    for _ in 0..LARGE_EACH {
        let unread = last.elapsed();
        let heard = nbd_client::hear(&mut socket).and_then(|heard| Ok((heard, socket.read_exact(&mut got)?)));
        let Ok(((error, i), ())) = heard else {
            assert!(last.elapsed() >= UNREAD_MAX, "{heard:?}, after {unread:?} without a read");
            return timely(false, format!("a client reads within {UNREAD_MAX:?}"));
        };
        last = Instant::now();
        assert!(error == 0 && !std::mem::replace(&mut seen[i as usize], true), "{error}, {i} once more");
        assert!(got == all[(i as usize % 8) * LARGE..][..LARGE], "{i}: other data");
    }
}
