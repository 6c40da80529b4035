//! Exports of files that cannot be written, beside one that can.

#![allow(clippy::disallowed_methods, reason = "sockets and their time-outs are real")]

use crate::nbd_client::{FLUSH, READ, WRITE, client, reply, request};
use fairhead_live::DiskOptions;
use fairhead_live::control::Change;
use fairhead_live::nbd::{Export, Listen, Options, Server};
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

const SIZE: usize = 1 << 20;
const NOT_PERMITTED: u32 = 1;

/// A file that even root cannot write, until this is dropped.
struct Fixed(PathBuf);

impl Fixed {
    /// `None` where there are no such files.
    fn new(path: &Path) -> Option<Self> {
        fs::write(path, vec![7; SIZE]).unwrap();
        let done = Command::new("chattr").arg("+i").arg(path).output();
        if !done.is_ok_and(|out| out.status.success()) {
            println!("skipped: no file can be made immutable here");
            return None;
        }
        Some(Self(path.to_owned()))
    }
}

impl Drop for Fixed {
    fn drop(&mut self) {
        let _ = Command::new("chattr").arg("-i").arg(&self.0).status();
    }
}

#[test]
fn a_file_that_cannot_be_written_is_served_beside_one_that_can() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let Some(fixed) = Fixed::new(&folder.path().join("fixed")) else { return };
    let (written, socket) = (folder.path().join("written"), folder.path().join("socket"));
    fs::write(&written, vec![8; SIZE]).unwrap();
    let fixed_export = |name| Export { read_only: true, ..Export::new(name, &fixed.0) };
    let disk = DiskOptions::new::<&str>([]).scheduler("noop").unwrap();
    let exports = [fixed_export("fixed"), Export::new("written", &written)];
    let server = Server::start(disk, &exports, &[Listen::Unix(socket.clone())], Options::default()).unwrap();

    let ask = |export, kind, data: &[u8]| {
        let (mut client, size) = client(&socket, export).unwrap();
        assert_eq!(size, SIZE as u64);
        let len = if kind == FLUSH { 0 } else { 4096 };
        client.write_all(&[&request(kind, 1, 0, len)[..], data].concat()).unwrap();
        let (error, _) = reply(&mut client);
        let mut page = vec![0; if kind == READ && error == 0 { 4096 } else { 0 }];
        client.read_exact(&mut page).unwrap();
        (error, page)
    };
    assert_eq!(ask("fixed", READ, &[]), (0, vec![7; 4096]));
    assert_eq!(ask("fixed", WRITE, &[9; 4096]), (NOT_PERMITTED, vec![]));
    assert_eq!(ask("fixed", FLUSH, &[]), (0, vec![]));
    assert_eq!(ask("written", WRITE, &[9; 4096]), (0, vec![]));
    assert_eq!(ask("written", READ, &[]), (0, vec![9; 4096]));
    // One that comes later is opened for what it is for, too.
    server.exports().remove("fixed", true).unwrap();
    let late = (0..100).any(|_| {
        thread::sleep(Duration::from_millis(20));
        server.exports().add(&fixed_export("late"), Change::default()).is_ok()
    });
    assert!(late, "the image is free once its export has gone");
    assert_eq!(ask("late", READ, &[]), (0, vec![7; 4096]));
    drop(server);
}

/// To open a FIFO for reading would keep the server's control socket waiting for a writer.
#[test]
fn a_fifo_is_no_image_that_can_be_added() {
    let folder = tempfile::tempdir().unwrap();
    let (image, fifo) = (folder.path().join("image"), folder.path().join("fifo"));
    fs::write(&image, vec![7; SIZE]).unwrap();
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let disk = DiskOptions::new::<&str>([]).scheduler("noop").unwrap();
    let listen = [Listen::Unix(folder.path().join("socket"))];
    let server = Server::start(disk, &[Export::new("a", &image)], &listen, Options::default()).unwrap();
    for read_only in [true, false] {
        let export = Export { read_only, ..Export::new("fifo", &fifo) };
        let why = server.exports().add(&export, Change::default()).unwrap_err().to_string();
        assert!(why.ends_with("fifo: not a file or block device"), "{why}");
    }
}
