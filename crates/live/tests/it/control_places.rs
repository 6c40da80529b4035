//! What clients of the control socket that misbehave are answered, and what they cannot take from others.

use fairhead_live::control::{Caller, ControlOptions, ControlServer};
use fairhead_live::{Disk, DiskOptions};
use serde_json::Value;
use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;
use tempfile::TempDir;

struct Place {
    folder: TempDir,
    _disk: Disk,
    control: ControlServer,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let image = folder.path().join("disk.img");
        File::create(&image).unwrap().set_len(1 << 20).unwrap();
        let disk = Disk::open(DiskOptions::new([image]).scheduler("noop").unwrap()).unwrap();
        let socket = Some(folder.path().join("control"));
        let metrics = Some("127.0.0.1:0".parse().unwrap());
        let options = ControlOptions { socket, metrics, ..ControlOptions::default() };
        let control = ControlServer::start(&disk, &options).unwrap();
        Self { folder, _disk: disk, control }
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("control")
    }
}

/// The client is still sending when its line is known to be too long: it sends all, and reads why.
#[test]
fn a_megabyte_without_an_end_of_line_is_answered() {
    let place = Place::new();
    let mut stream = UnixStream::connect(place.socket()).unwrap();
    let most = Some(Duration::from_secs(30));
    stream.set_read_timeout(most).unwrap();
    stream.set_write_timeout(most).unwrap();
    stream.write_all(&vec![b'x'; 1 << 20]).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let answer: Value = serde_json::from_str(&answer).unwrap();
    assert!(answer["error"].as_str().unwrap().contains("at most 65536 bytes"), "{answer}");
    Caller::connect(&place.socket()).unwrap().ask(r#"{"do":"stats"}"#).unwrap();
}

/// The server throws a part of it away, and then closes.
#[test]
fn a_line_without_an_end_is_not_read_for_ever() {
    let place = Place::new();
    let mut stream = UnixStream::connect(place.socket()).unwrap();
    stream.set_write_timeout(Some(Duration::from_secs(30))).unwrap();
    let chunk = vec![b'x'; 1 << 20];
    let sent = (0..64).take_while(|_| stream.write_all(&chunk).is_ok()).count();
    assert!(sent < 20, "{sent} MiB were read");
}

/// Any user of the machine may open the port for metrics, and none but the owner the socket.
#[test]
fn clients_of_the_metrics_take_no_place_at_the_socket() {
    let place = Place::new();
    let address = place.control.metrics().unwrap();
    let mut strangers: Vec<_> = (0..24).map(|_| TcpStream::connect(address).unwrap()).collect();
    strangers.iter_mut().for_each(|stream| stream.write_all(b"G").unwrap());
    // The server has let them in once it has refused some.
    let mut refused = String::new();
    strangers[23].set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let _ = strangers[23].read_to_string(&mut refused);
    Caller::connect(&place.socket()).unwrap().ask(r#"{"do":"stats"}"#).unwrap();
}
