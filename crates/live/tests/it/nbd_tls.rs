//! TLS: what a client may do before and after it begins, who it is, and what a hostile one cannot do to
//! others. Certificates are made by gnutls' certtool; other people's clients are in `cli/tests/it/tls.rs`.

#![allow(clippy::disallowed_methods, reason = "sockets and their time-outs are real")]

use crate::certificates::Certificates;
use crate::nbd_client;
use crate::nbd_client::{READ, WRITE, choice, connect, hear, option, option_reply, reply, request};
use fairhead_live::nbd::{Export, Listen, Options, Server, TlsMode, TlsOptions};
use fairhead_live::{DiskOptions, ErrorKind};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const SIZE: u64 = 64 << 20;
const STARTTLS: u32 = 5;
const LIST: u32 = 3;
const INFO: u32 = 6;
const GO: u32 = 7;
const STRUCTURED: u32 = 8;
const META: u32 = 10;
const ACK: u32 = 1;
const UNSUPPORTED: u32 = 0x8000_0001;
const INVALID: u32 = 0x8000_0003;
const TLS_NEEDED: u32 = 0x8000_0005;
const UNKNOWN: u32 = 0x8000_0006;

type Secure = StreamOwned<ClientConnection, UnixStream>;

struct Place {
    folder: TempDir,
    certificates: Certificates,
}

impl Place {
    fn new() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        File::create(folder.path().join("disk")).unwrap().set_len(SIZE).unwrap();
        let certificates = Certificates::new(folder.path())?;
        Some(Self { folder, certificates })
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    fn export(&self, name: &str) -> Export {
        Export::new(name, self.folder.path().join("disk"))
    }

    fn serve(&self, exports: &[Export], mode: TlsMode, verify_peer: bool, options: Options) -> Server {
        let disk = DiskOptions::new::<&str>([]).scheduler("noop").unwrap().depth(8);
        let tls = TlsOptions { mode, certificates: self.certificates.folder.clone(), verify_peer };
        let options = Options { tls, ..options };
        let began = Instant::now();
        loop {
            let listen = [Listen::Unix(self.socket())];
            match Server::start(disk.clone(), exports, &listen, options.clone()) {
                // A certtool of another test that just begins still has the image of the server before open.
                Err(e) if e.kind() == ErrorKind::Locked && began.elapsed() < Duration::from_secs(10) => {
                    std::thread::sleep(Duration::from_millis(10));
                }
                other => return other.unwrap(),
            }
        }
    }

    /// How this client begins TLS.
    fn client(&self, name: Option<&str>) -> ClientConfig {
        let folder = &self.certificates.folder;
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(folder.join("ca-cert.pem")).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider);
        let builder = builder.with_safe_default_protocol_versions().unwrap().with_root_certificates(roots);
        let Some(name) = name else { return builder.with_no_client_auth() };
        let own = folder.join(name);
        let certificate = CertificateDer::from_pem_file(own.join("client-cert.pem")).unwrap();
        let key = PrivateKeyDer::from_pem_file(own.join("client-key.pem")).unwrap();
        builder.with_client_auth_cert(vec![certificate], key).unwrap()
    }

    /// A connection that has begun TLS, as this client if one is named.
    fn secure(&self, name: Option<&str>) -> Secure {
        let mut socket = connect(&self.socket()).unwrap();
        socket.write_all(b"\0\0\0\x03").unwrap();
        ask(&mut socket, STARTTLS, b"").unwrap();
        let config = Arc::new(self.client(name));
        let session = ClientConnection::new(config, ServerName::try_from("localhost").unwrap()).unwrap();
        StreamOwned::new(session, socket)
    }
}

/// Sends an option; returns the kind of its last reply.
fn ask(socket: &mut (impl Read + Write), kind: u32, data: &[u8]) -> std::io::Result<u32> {
    socket.write_all(&option(kind, data))?;
    loop {
        let (_, reply, _) = option_reply(socket)?;
        if reply == ACK || reply >= 1 << 31 {
            return Ok(reply);
        }
    }
}

fn name(export: &str) -> Vec<u8> {
    [&(export.len() as u32).to_be_bytes()[..], export.as_bytes(), &[0, 0]].concat()
}

/// Chooses an export, writes and reads.
fn use_it(socket: &mut Secure, export: &str) {
    assert_eq!(ask(socket, GO, &name(export)).unwrap(), ACK);
    let data: Vec<u8> = (0..1 << 20).map(|i| (i % 251) as u8).collect();
    socket.write_all(&[request(WRITE, 1, 4096, 1 << 20), data.clone()].concat()).unwrap();
    assert_eq!(reply(socket), (0, 1));
    socket.write_all(&request(READ, 2, 4096, 1 << 20)).unwrap();
    assert_eq!(reply(socket), (0, 2));
    let mut read = vec![0; 1 << 20];
    socket.read_exact(&mut read).unwrap();
    assert!(read == data, "what was written is read");
}

#[test]
fn where_tls_is_required_nothing_is_told_without_it() {
    let Some(place) = Place::new() else { return };
    let _server = place.serve(&[place.export("disk")], TlsMode::Require, false, Options::default());
    let mut plain = connect(&place.socket()).unwrap();
    plain.write_all(b"\0\0\0\x03").unwrap();
    for (kind, data) in [(LIST, vec![]), (INFO, name("disk")), (GO, name("disk")), (STRUCTURED, vec![])] {
        assert_eq!(ask(&mut plain, kind, &data).unwrap(), TLS_NEEDED, "option {kind}");
    }
    assert_eq!(ask(&mut plain, STARTTLS, b"x").unwrap(), INVALID, "it has no data");
    let mut old = connect(&place.socket()).unwrap();
    old.write_all(&choice("disk")).unwrap();
    assert!(option_reply(&mut old).is_err(), "the old way to an export has no other answer");
    let mut secure = place.secure(None);
    assert_eq!(ask(&mut secure, STARTTLS, b"").unwrap(), INVALID, "it has begun");
    use_it(&mut secure, "disk");
}

#[test]
fn where_tls_is_on_clients_may_do_without_and_where_it_is_off_they_have_to() {
    let Some(place) = Place::new() else { return };
    let server = place.serve(&[place.export("disk")], TlsMode::On, false, Options::default());
    use_it(&mut place.secure(None), "disk");
    assert!(nbd_client::client(&place.socket(), "disk").is_ok());
    drop(server);
    let _server = place.serve(&[place.export("disk")], TlsMode::Off, false, Options::default());
    let mut plain = connect(&place.socket()).unwrap();
    plain.write_all(b"\0\0\0\x03").unwrap();
    assert_eq!(ask(&mut plain, STARTTLS, b"").unwrap(), UNSUPPORTED);
}

/// An attacker on the network could have sent what came before TLS (as in CVE-2021-3716).
#[test]
fn what_came_without_tls_does_not_count() {
    let Some(place) = Place::new() else { return };
    let _server = place.serve(&[place.export("disk")], TlsMode::On, false, Options::default());
    // Behind the option, in one piece with it: the connection ends.
    for behind in [option(LIST, b""), option(STRUCTURED, b""), b"x".to_vec()] {
        let mut socket = connect(&place.socket()).unwrap();
        socket.write_all(&[b"\0\0\0\x03", &option(STARTTLS, b"")[..], &behind].concat()).unwrap();
        let answers: Vec<u32> =
            std::iter::from_fn(|| option_reply(&mut socket).ok()).map(|(option, ..)| option).collect();
        assert!(answers.iter().all(|&option| option == STARTTLS), "{answers:?}");
    }
    // In a piece of its own: it is no TLS.
    let mut socket = connect(&place.socket()).unwrap();
    socket.write_all(b"\0\0\0\x03").unwrap();
    assert_eq!(ask(&mut socket, STARTTLS, b"").unwrap(), ACK);
    socket.write_all(&option(LIST, b"")).unwrap();
    let mut rest = Vec::new();
    let _ = socket.read_to_end(&mut rest);
    assert!(!rest.windows(4).any(|bytes| bytes == b"disk"), "an answer without TLS");
    // Negotiated before: forgotten.
    let mut socket = connect(&place.socket()).unwrap();
    socket.write_all(b"\0\0\0\x03").unwrap();
    assert_eq!(ask(&mut socket, STRUCTURED, b"").unwrap(), ACK);
    assert_eq!(ask(&mut socket, STARTTLS, b"").unwrap(), ACK);
    let config = Arc::new(place.client(None));
    let session = ClientConnection::new(config, ServerName::try_from("localhost").unwrap()).unwrap();
    let mut socket = StreamOwned::new(session, socket);
    let contexts = [&name("disk")[..8], &[0, 0, 0, 0]].concat();
    assert_eq!(ask(&mut socket, META, &contexts).unwrap(), INVALID, "structured replies first");
    use_it(&mut socket, "disk");
}

#[test]
fn an_export_is_for_those_whose_certificates_it_names() {
    let Some(place) = Place::new() else { return };
    let alice = Export { allow_names: vec!["alice".to_owned()], ..place.export("a") };
    let bob = Export { allow_names: vec!["bob.example".to_owned()], ..place.export("b") };
    let options = Options { connections_per_peer: Some(2), ..Options::default() };
    let server = place.serve(&[alice, bob, place.export("own")], TlsMode::Require, true, options);
    let mut first = place.secure(Some("alice"));
    assert_eq!(ask(&mut first, GO, &name("b")).unwrap(), UNKNOWN);
    use_it(&mut first, "a");
    let mut other = place.secure(Some("bob"));
    assert_eq!(ask(&mut other, GO, &name("a")).unwrap(), UNKNOWN);
    use_it(&mut other, "b");
    // Connections count for the certificate.
    let mut second = place.secure(Some("alice"));
    use_it(&mut second, "a");
    assert!(ask(&mut place.secure(Some("alice")), LIST, b"").is_err(), "the third is one too many");
    // A client without a certificate, or with one of another authority, or a revoked one, learns nothing.
    for name in [None, Some("stranger"), Some("revoked")] {
        assert!(ask(&mut place.secure(name), LIST, b"").is_err(), "{name:?}");
    }
    use_it(&mut place.secure(Some("bob")), "b");
    drop(server);
    let carol = Export { allow_names: vec!["carol".to_owned()], ..place.export("c") };
    let disk = DiskOptions::new::<&str>([]);
    let why = Server::start(disk, &[carol], &[Listen::Unix(place.socket())], Options::default()).unwrap_err();
    assert!(why.to_string().contains("which are not verified"), "{why}");
}

#[test]
fn a_client_that_was_refused_finds_its_place_free_when_it_hears_of_it() {
    let Some(place) = Place::new() else { return };
    let options = Options { connections_per_peer: Some(1), ..Options::default() };
    let _server = place.serve(&[place.export("own")], TlsMode::Require, true, options);
    for _ in 0..100 {
        assert!(ask(&mut place.secure(Some("stranger")), LIST, b"").is_err());
    }
}

/// Clients that begin TLS and then say nothing, or nonsense, or do not read, delay no other.
#[test]
fn hostile_clients_delay_nobody() {
    let Some(place) = Place::new() else { return };
    let options = Options { connections_max: 32, ..Options::default() };
    let server = place.serve(&[place.export("disk")], TlsMode::On, false, options);
    let begin = || {
        let mut socket = connect(&place.socket()).unwrap();
        socket.write_all(b"\0\0\0\x03").unwrap();
        assert_eq!(ask(&mut socket, STARTTLS, b"").unwrap(), ACK);
        socket
    };
    let _silent: Vec<UnixStream> = (0..31).map(|_| begin()).collect();
    // A newcomer gets the place of the oldest handshake.
    let mut honest = place.secure(None);
    use_it(&mut honest, "disk");
    for _ in 0..20 {
        begin().write_all(&[0x16; 4096]).unwrap();
    }
    // One that does not read its replies: 4,096 of 1 MiB.
    let mut deaf = place.secure(None);
    assert_eq!(ask(&mut deaf, GO, &name("disk")).unwrap(), ACK);
    deaf.sock.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
    for i in 0..4096 {
        if deaf.write_all(&request(READ, i, 0, 1 << 20)).and_then(|()| deaf.flush()).is_err() {
            break;
        }
    }
    let began = Instant::now();
    for cookie in 0..100 {
        honest.write_all(&request(READ, cookie, 0, 4096)).unwrap();
        assert_eq!(reply(&mut honest), (0, cookie));
        honest.read_exact(&mut [0; 4096]).unwrap();
    }
    println!("100 reads took {:?}", began.elapsed());
    let began = Instant::now();
    let stats = server.stop();
    println!("stopped after {:?}", began.elapsed());
    assert!(stats[0].1.reads >= 101, "{stats:?}");
    assert!(hear(&mut honest).is_err(), "it is hung up on");
}

/// What a client asked for before it said goodbye is done, also if it does not read the replies.
#[test]
fn a_goodbye_is_heard_behind_what_was_asked() {
    let Some(place) = Place::new() else { return };
    let server = place.serve(&[place.export("disk")], TlsMode::Require, false, Options::default());
    for i in 0..20_u8 {
        let mut socket = place.secure(None);
        assert_eq!(ask(&mut socket, GO, &name("disk")).unwrap(), ACK);
        let writes: Vec<u8> = [request(WRITE, 1, u64::from(i) << 20, 1 << 20), vec![i + 1; 1 << 20]].concat();
        socket.write_all(&[writes, request(2, 0, 0, 0)].concat()).unwrap();
        socket.conn.send_close_notify();
        // The server may have heard the goodbye and be gone by now.
        let _ = socket.flush();
        let mut rest = Vec::new();
        let _ = socket.read_to_end(&mut rest);
        assert_eq!(rest.len(), 16, "one reply");
    }
    drop(server);
    let image = std::fs::read(place.folder.path().join("disk")).unwrap();
    for i in 0..20 {
        assert!(image[i << 20..(i + 1) << 20].iter().all(|&byte| byte == i as u8 + 1), "write {i}");
    }
}

/// Half of the keys of elliptic curves that certtool writes have one byte more than they should.
#[test]
fn keys_of_certtool_are_taken_as_they_are() {
    let Some(place) = Place::new() else { return };
    for _ in 0..8 {
        place.certificates.renew_server("ecdsa");
        let _server = place.serve(&[place.export("disk")], TlsMode::Require, false, Options::default());
        use_it(&mut place.secure(None), "disk");
    }
}

#[test]
fn certificates_that_cannot_be_had_are_named() {
    let Some(place) = Place::new() else { return };
    let start = |certificates: PathBuf, verify_peer| {
        let tls = TlsOptions { mode: TlsMode::On, certificates, verify_peer };
        let disk = DiskOptions::new::<&str>([]);
        let options = Options { tls, ..Options::default() };
        Server::start(disk, &[place.export("disk")], &[Listen::Unix(place.socket())], options)
            .map(drop)
            .map_err(|e| e.to_string())
    };
    let empty = place.folder.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    let why = start(empty.clone(), false).unwrap_err();
    assert!(why.ends_with("server-cert.pem: No such file or directory (os error 2)"), "{why}");
    let pki = &place.certificates.folder;
    std::fs::copy(pki.join("server-cert.pem"), empty.join("server-cert.pem")).unwrap();
    std::fs::copy(pki.join("ca-cert.pem"), empty.join("server-key.pem")).unwrap();
    let why = start(empty.clone(), false).unwrap_err();
    assert!(why.ends_with("server-key.pem: nothing of the kind is in it"), "{why}");
    std::fs::copy(pki.join("ca-key.pem"), empty.join("server-key.pem")).unwrap();
    let why = start(empty.clone(), false).unwrap_err();
    assert!(why.contains("server-cert.pem: "), "the key of another certificate: {why}");
    std::fs::copy(pki.join("server-key.pem"), empty.join("server-key.pem")).unwrap();
    start(empty.clone(), false).unwrap();
    let why = start(empty, true).unwrap_err();
    assert!(why.contains("ca-cert.pem: No such file"), "{why}");
}
