//! Tenants of one server: which exports they see and open, how many connections they may have, and that none
//! locks the others out.
//!
//! Clients of other users and processes are Python programs; those of other users need root.

#![allow(clippy::disallowed_methods, reason = "sockets and their time-outs are real")]

use crate::nbd_client;
use crate::nbd_client::{READ, connect, option, option_reply, reply, request};
use fairhead_live::nbd::{Export, Listen, Options, Server};
use fairhead_live::{DiskOptions, ErrorKind};
use std::fs::{File, Permissions};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const SIZE: u64 = 1 << 20;
const LIST: u32 = 3;
const GO: u32 = 7;
const ACK: u32 = 1;
const SERVER: u32 = 2;
const POLICY: u32 = 0x8000_0002;
const UNKNOWN: u32 = 0x8000_0006;
/// A user and a group that own nothing here.
const STRANGER: u32 = 4711;

struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::Builder::new().permissions(Permissions::from_mode(0o755)).tempdir().unwrap();
        File::create(folder.path().join("disk")).unwrap().set_len(SIZE).unwrap();
        Self { folder }
    }

    fn export(&self, name: &str) -> Export {
        Export::new(name, self.folder.path().join("disk"))
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    fn serve(&self, exports: &[Export], options: Options) -> Server {
        let disk = DiskOptions::new::<&str>([]).scheduler("noop").unwrap().depth(8);
        let listen = [Listen::Unix(self.socket()), Listen::Tcp("127.0.0.1:0".parse().unwrap())];
        let began = Instant::now();
        loop {
            match Server::start(disk.clone(), exports, &listen, options.clone()) {
                // A program of another test that just begins still has the image of the server before open.
                Err(e) if e.kind() == ErrorKind::Locked && began.elapsed() < Duration::from_secs(10) => {
                    std::thread::sleep(Duration::from_millis(10));
                }
                other => return other.unwrap(),
            }
        }
    }
}

fn name(export: &str) -> Vec<u8> {
    [&(export.len() as u32).to_be_bytes()[..], export.as_bytes()].concat()
}

/// Says hello and sends options; returns the kinds of their replies, and the names of a list.
fn negotiate(mut socket: impl Read + Write, options: &[(u32, Vec<u8>)]) -> (Vec<u32>, Vec<String>) {
    socket.write_all(b"\0\0\0\x03").unwrap();
    let (mut kinds, mut names) = (Vec::new(), Vec::new());
    for (kind, data) in options {
        socket.write_all(&option(*kind, data)).unwrap();
        let last = loop {
            let (_, reply, data) = option_reply(&mut socket).unwrap();
            match reply {
                SERVER => names.push(String::from_utf8(data[4..].to_vec()).unwrap()),
                3 => {}
                last => break last,
            }
        };
        kinds.push(last);
    }
    (kinds, names)
}

fn go(export: &str) -> (u32, Vec<u8>) {
    (GO, [&name(export)[..], &[0, 0]].concat())
}

/// What a client in Python begins with: to connect and say hello, and to send an option and hear its replies.
const PYTHON: &str = r"
import socket, struct, sys

def get(s, size):
    # MSG_WAITALL does not wait on a socket with a time limit.
    data = b''
    while len(data) < size:
        more = s.recv(size - len(data))
        if not more:
            raise EOFError('the server ended it')
        data += more
    return data

def connect():
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(20)
    s.connect(sys.argv[1])
    get(s, 18)
    s.sendall(bytes([0, 0, 0, 3]))
    return s

def options(s, kind, data):
    s.sendall(b'IHAVEOPT' + struct.pack('>II', kind, len(data)) + data)
    replies = []
    while not replies or 1 < replies[-1][0] < 1 << 31:
        _, _, kind, size = struct.unpack('>QIII', get(s, 20))
        replies.append((kind, get(s, size)))
    return replies

def name(export):
    return struct.pack('>I', len(export)) + export.encode()
";

/// Another process, of this user: it runs some lines of Python, of which the last prints a line, and waits
/// for the end of its input. If it prints none, its own words end the test.
fn other_process(socket: &Path, user: Option<u32>, lines: &str) -> (Child, String) {
    let program = format!("{PYTHON}\n{lines}\nsys.stdout.flush()\nsys.stdin.read()\n");
    let mut python = Command::new("python3");
    python
        .args(["-c", &program])
        .arg(socket)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    if let Some(user) = user {
        python.uid(user).gid(user);
    }
    let mut child = python.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    if line.is_empty() {
        let Output { status, stderr, .. } = child.wait_with_output().unwrap();
        panic!("Python ended with {status}: {}", String::from_utf8_lossy(&stderr));
    }
    (child, line)
}

fn is_root() -> bool {
    let is_root = std::fs::metadata("/proc/self").unwrap().uid() == 0;
    if !is_root {
        println!("skipped: only root has clients of other users");
    }
    is_root
}

fn end(mut child: Child) {
    drop(child.stdin.take());
    child.wait().unwrap();
}

#[test]
fn a_tenant_sees_and_opens_what_it_may_and_nothing_else() {
    if !is_root() {
        return;
    }
    let place = Place::new();
    let by_user = Export { allow_uids: vec![STRANGER], ..place.export("by-user") };
    let by_group = Export { allow_gids: vec![STRANGER], ..place.export("by-group") };
    let other = Export { allow_uids: vec![STRANGER + 1], ..place.export("other") };
    let server = place.serve(&[by_user, by_group, other, place.export("own")], Options::default());
    let tell = "seen = [d[4:].decode() for k, d in options(connect(), 3, b'') if k == 2]\n\
                opened = [options(connect(), 7, name(n) + bytes(2))[-1][0] for n in \
                ['by-user', 'by-group', 'other', 'own', '']]\n\
                print(seen, opened)";
    let (child, line) = other_process(&place.socket(), Some(STRANGER), tell);
    end(child);
    assert_eq!(line.trim(), format!("['by-user', 'by-group'] [1, 1, {UNKNOWN}, {UNKNOWN}, {UNKNOWN}]"));
    // The user of the server has the exports that name no user. Over TCP a client has no name.
    let (kinds, names) =
        negotiate(connect(&place.socket()).unwrap(), &[(LIST, vec![]), go("other"), go("own")]);
    assert_eq!((&kinds[..], &names[..]), (&[ACK, UNKNOWN, ACK][..], &["own".to_owned()][..]));
    let Listen::Tcp(address) = server.addresses()[1] else { panic!("TCP") };
    let mut socket = TcpStream::connect(address).unwrap();
    socket.read_exact(&mut [0; 18]).unwrap();
    let (kinds, names) = negotiate(socket, &[(LIST, vec![]), go("own"), go("by-user")]);
    assert_eq!((kinds, names.len()), (vec![ACK, UNKNOWN, UNKNOWN], 0));
}

/// Without a loopback in the kernel no client can connect from here, so the test only listens.
#[test]
fn a_port_for_virtual_machines_is_listened_on_and_let_go() {
    let place = Place::new();
    let disk = DiskOptions::new::<&str>([]);
    let listen = [Listen::Vsock(47_111)];
    let start = || Server::start(disk.clone(), &[place.export("own")], &listen, Options::default());
    match start() {
        Err(e) if e.to_string().contains("Address family not supported") => println!("skipped: no vsock"),
        Err(e) => panic!("{e}"),
        Ok(server) => {
            assert_eq!(server.addresses(), listen);
            let other = Export::new("other", place.folder.path().join("other"));
            File::create(&other.file).unwrap().set_len(SIZE).unwrap();
            let why = Server::start(disk.clone(), &[other], &listen, Options::default()).unwrap_err();
            assert!(why.to_string().starts_with("cannot listen on vsock port 47111: Address"), "{why}");
            drop(server);
            drop(start().unwrap());
        }
    }
}

#[test]
fn a_socket_is_private_unless_an_export_names_its_users() {
    let place = Place::new();
    let mode = || place.socket().metadata().unwrap().permissions().mode() & 0o777;
    drop(place.serve(&[place.export("own")], Options::default()));
    let _server = place.serve(&[place.export("own")], Options::default());
    assert_eq!(mode(), 0o600);
    drop(_server);
    let export = Export { allow_gids: vec![STRANGER], ..place.export("theirs") };
    let _server = place.serve(&[export], Options::default());
    assert_eq!(mode(), 0o666);
}

#[test]
fn an_export_has_as_many_connections_as_it_may_have() {
    let place = Place::new();
    let few = Export { connections_max: Some(2), ..place.export("few") };
    let _server = place.serve(&[few, place.export("many")], Options::default());
    let first = nbd_client::client(&place.socket(), "few").unwrap().0;
    let _second = nbd_client::client(&place.socket(), "few").unwrap();
    let ask = |options: &[(u32, Vec<u8>)]| negotiate(connect(&place.socket()).unwrap(), options).0;
    assert_eq!(ask(&[go("few"), go("many")]), [POLICY, ACK]);
    assert!(nbd_client::client(&place.socket(), "few").is_err(), "there is no way to refuse but to hang up");
    drop(first);
    let again = (0..100).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(20));
        ask(&[go("few")]) == [ACK]
    });
    assert!(again, "one has gone");
}

#[test]
fn a_peer_has_as_many_connections_as_it_may_have() {
    let place = Place::new();
    let options = Options { connections_per_peer: Some(3), ..Options::default() };
    let _server = place.serve(&[place.export("disk")], options);
    let mut ours: Vec<UnixStream> =
        (0..3).map(|_| nbd_client::client(&place.socket(), "disk").unwrap().0).collect();
    assert!(connect(&place.socket()).is_err(), "the fourth is hung up on");
    for socket in &mut ours {
        socket.write_all(&request(READ, 1, 0, 4096)).unwrap();
        assert_eq!(reply(socket), (0, 1));
        socket.read_exact(&mut [0; 4096]).unwrap();
    }
}

/// One client has taken all places and is silent. A newcomer gets in all the same, and so does the next; a
/// client with one connection keeps it.
#[test]
fn idle_connections_of_one_client_lock_no_other_out() {
    let place = Place::new();
    let options = Options { connections_max: 16, ..Options::default() };
    let _server = place.serve(&[place.export("disk")], options);
    let mut honest = nbd_client::client(&place.socket(), "disk").unwrap().0;
    let all = "all = [connect() for _ in range(15)]\n\
               for s in all: options(s, 7, name('disk') + bytes(2))\n\
               print('all')";
    let (child, line) = other_process(&place.socket(), None, all);
    assert_eq!(line.trim(), "all");
    let mut more: Vec<UnixStream> =
        (0..4).map(|_| nbd_client::client(&place.socket(), "disk").expect("a place").0).collect();
    for socket in more.iter_mut().chain([&mut honest]) {
        socket.write_all(&request(READ, 1, 0, 4096)).unwrap();
        assert_eq!(reply(socket), (0, 1));
        socket.read_exact(&mut [0; 4096]).unwrap();
    }
    end(child);
}
